"""Every help text can be read in a terminal of 80 columns."""

from __future__ import annotations

from typing import Any

import pytest
from typer.main import get_command

from wallflower.cli import build
from wallflower.queries import QUERIES

APP = get_command(build(QUERIES))


def commands(words: tuple[str, ...], command: Any) -> Any:
    yield words, command
    for word, below in getattr(command, "commands", {}).items():
        yield from commands((*words, word), below)


@pytest.fixture
def help_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def said(width: int, *words: str) -> str:
        monkeypatch.setenv("COLUMNS", str(width))
        APP.main([*words, "--help"], prog_name="wallflower", standalone_mode=False)
        return capsys.readouterr().out

    return said


@pytest.mark.parametrize(("words", "command"), list(commands((), APP)), ids=str)
def test_help_fits_eighty_columns(words: tuple[str, ...], command: Any, help_of: Any) -> None:
    said = help_of(80, *words)
    assert [line for line in said.splitlines() if len(line.rstrip()) > 80] == []
    if not hasattr(command, "commands"):
        for item in command.params:
            assert squeezed(item.help) in squeezed(said), f"{item.name} is cut up"
            assert not getattr(item, "opts", None) or item.param_type_name == "argument" or item.opts[0] in said


def test_a_wide_terminal_has_a_table(help_of: Any) -> None:
    assert "╭─ Its privacy ─" in help_of(120, "count")


def test_a_default_and_a_need_are_told(help_of: Any) -> None:
    said = help_of(80, "count")
    assert "--neighbours <int>  [required]" in said
    assert "--mechanism <extension|global|smooth>  [default: extension]" in said


def squeezed(words: str) -> str:
    return "".join(words.split())
