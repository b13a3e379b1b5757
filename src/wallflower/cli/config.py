"""Show the effective settings of a project, and where each comes from."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import typer
from rich.table import Table

from wallflower.cli.options import JsonOption
from wallflower.cli.show import show, show_json
from wallflower.config import ANALYST, FILE, LEDGER, VARIABLE, Config, Source, find_config
from wallflower.data.scans import MEMORY
from wallflower.ledger.store import home_of
from wallflower.query.parameter import Question, list_parameters
from wallflower.release import system_user

_PASSWORD: Final = re.compile(r"(://[^/@:]*):[^/@]*@")
_BUILT_IN: Final = "built in"


def add(app: typer.Typer) -> None:
    """`config`."""
    app.command("config", epilog="Example: wallflower config --json", rich_help_panel="Try it")(show_config)


def show_config(as_json: JsonOption = False) -> None:
    """Show the effective settings and where each comes from: environment, wallflower.toml or built in.

    Nothing is opened: neither a data set nor a ledger.
    """
    config = find_config()
    settings = _settings(config)
    if as_json:
        named = {} if config is None else {name: _facts(source) for name, source in config.datasets.items()}
        values = {name: {"value": value, "from": origin} for name, value, origin in settings}
        show_json({"file": None if config is None else str(config.path), "settings": values, "datasets": named})
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("file", "none" if config is None else str(config.path), _whereabouts(config))
    for setting in settings:
        table.add_row(*setting)
    for name, source in (config.datasets if config is not None else {}).items():
        facts = _facts(source)
        table.add_row(
            f"data set {name}", facts.pop("source"), ", ".join(f"{key} {value}" for key, value in facts.items())
        )
    show(table)


def defaults(config: Config | None, questions: tuple[Question, ...]) -> dict[str, Any]:
    """Return the defaults that the project file sets for options, by command."""
    if config is None or config.neighbours is None:
        return {}
    values = {"neighbours": config.neighbours}
    supporting = [
        question
        for question in questions
        if "neighbours" in {parameter.name for parameter in list_parameters(question)}
    ]
    verbs = {question.kind: {"fit": values} if question.is_model else values for question in supporting}
    return {**verbs, "plan": {question.kind: values for question in supporting}, "rehearse": values}


def _settings(config: Config | None) -> list[tuple[str, str, str]]:
    current = config or Config(Path(FILE))
    room = f"${MEMORY}" if os.environ.get(MEMORY) else "half of the machine's"
    engine = f"memory; tiles for Parquet that does not fit {room}"
    return [
        ("ledger", *_setting(LEDGER, current.ledger, str(home_of() / "ledger.db"))),
        ("analyst", *_setting(ANALYST, current.analyst, system_user())),
        ("engine", current.engine or engine, FILE if current.engine else _BUILT_IN),
        ("neighbours", str(current.neighbours or "required"), FILE if current.neighbours else _BUILT_IN),
    ]


def _setting(variable: str, value: str | None, usual: str) -> tuple[str, str]:
    if os.environ.get(variable):
        return _mask(os.environ[variable]), f"${variable}"
    return (_mask(value), FILE) if value is not None else (usual, _BUILT_IN)


def _whereabouts(config: Config | None) -> str:
    if os.environ.get(VARIABLE):
        return f"${VARIABLE}"
    return "" if config is None else "found here" if config.path.parent == Path.cwd() else "found above this folder"


def _facts(source: Source) -> dict[str, Any]:
    facts = {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(source).items() if value
    }
    return {name: _mask(value) if isinstance(value, str) else value for name, value in facts.items()}


def _mask(text: str) -> str:
    """Mask the password in a URL or a path."""
    return _PASSWORD.sub(r"\1:***@", text)
