"""What is in force of a project's settings, and where each comes from."""

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
from wallflower.query.forms import Question, blanks
from wallflower.release import system_user

_PASSWORD: Final = re.compile(r"(://[^/@:]*):[^/@]*@")
_BUILT_IN: Final = "built in"


def add(app: typer.Typer) -> None:
    """`config`."""
    app.command("config", epilog="Example: wallflower config --json", rich_help_panel="Try it")(show_config)


def show_config(as_json: JsonOption = False) -> None:
    """What is in force where no option says otherwise, and where it comes from: environment, wallflower.toml, built in.

    Nothing is opened: neither a data set nor a ledger.
    """
    config = find_config()
    settings = _settings(config)
    if as_json:
        named = {} if config is None else {name: _facts(own) for name, own in config.datasets.items()}
        told = {name: {"value": value, "from": origin} for name, value, origin in settings}
        show_json({"file": None if config is None else str(config.path), "settings": told, "datasets": named})
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("file", "none" if config is None else str(config.path), _whereabouts(config))
    for setting in settings:
        table.add_row(*setting)
    for name, own in (config.datasets if config is not None else {}).items():
        facts = _facts(own)
        table.add_row(
            f"data set {name}", facts.pop("source"), ", ".join(f"{key} {told}" for key, told in facts.items())
        )
    show(table)


def defaults(config: Config | None, questions: tuple[Question, ...]) -> dict[str, Any]:
    """What the file says for options of questions that nobody states, by command."""
    if config is None or config.neighbours is None:
        return {}
    said = {"neighbours": config.neighbours}
    asked = [question for question in questions if "neighbours" in {blank.name for blank in blanks(question)}]
    verbs = {question.kind: {"fit": said} if question.fits else said for question in asked}
    return {**verbs, "plan": {question.kind: said for question in asked}, "rehearse": said}


def _settings(config: Config | None) -> list[tuple[str, str, str]]:
    said = config or Config(Path(FILE))
    room = f"${MEMORY}" if os.environ.get(MEMORY) else "half of the machine's"
    engine = f"memory; tiles for Parquet that does not fit {room}"
    return [
        ("ledger", *_setting(LEDGER, said.ledger, str(home_of() / "ledger.db"))),
        ("analyst", *_setting(ANALYST, said.analyst, system_user())),
        ("engine", said.engine or engine, FILE if said.engine else _BUILT_IN),
        ("neighbours", str(said.neighbours or "to be said"), FILE if said.neighbours else _BUILT_IN),
    ]


def _setting(variable: str, said: str | None, usual: str) -> tuple[str, str]:
    if os.environ.get(variable):
        return _mask(os.environ[variable]), f"${variable}"
    return (_mask(said), FILE) if said is not None else (usual, _BUILT_IN)


def _whereabouts(config: Config | None) -> str:
    if os.environ.get(VARIABLE):
        return f"${VARIABLE}"
    return "" if config is None else "found here" if config.path.parent == Path.cwd() else "found above this folder"


def _facts(own: Source) -> dict[str, Any]:
    told = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(own).items() if value}
    return {name: _mask(value) if isinstance(value, str) else value for name, value in told.items()}


def _mask(place: str) -> str:
    """A place without the password that its URL may hold."""
    return _PASSWORD.sub(r"\1:***@", place)
