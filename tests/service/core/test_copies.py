"""One content has one budget at the service too: copies are refused when a steward loads them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from served import settings

from wallflower.errors import SameRecords
from wallflower.schema import Schema
from wallflower.service.core.facade import Core
from wallflower.service.settings import Registration


def registration_of(folder: Path, name: str, file: str, account: str | None = None) -> Registration:
    schema = Schema.of(["a", "b"], bounds={"a": (0, 100), "b": (0, 100)})
    facts = schema if account is None else Schema(columns=schema.columns, account=account)
    return Registration(analysts=("*",), name=name, source=str(folder / file), schema=facts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [f"{7 * row % 101 % 100},{row * row % 97}" for row in range(80)]
    (tmp_path / "hall.csv").write_text("\n".join(["a,b", *rows]) + "\n")
    shutil.copy(tmp_path / "hall.csv", tmp_path / "copy.csv")
    (tmp_path / "part.csv").write_text(
        "\n".join(["a,b", *rows[:50], *(f"{row},{99 - row}" for row in range(30))]) + "\n"
    )
    return tmp_path


@pytest.mark.parametrize("file", ["hall.csv", "copy.csv", "part.csv"])
def test_settings_with_the_same_records_twice_do_not_start(folder: Path, file: str) -> None:
    twice = (registration_of(folder, "hall", "hall.csv"), registration_of(folder, "hall-2", file))
    with pytest.raises(SameRecords, match="--account hall"):
        Core(settings(folder, datasets=twice)).load()


def test_settings_that_share_an_account_do(folder: Path) -> None:
    shared = (
        registration_of(folder, "hall", "hall.csv"),
        registration_of(folder, "hall-2", "copy.csv", account="hall"),
    )
    core = Core(settings(folder, datasets=shared))
    core.load()
    assert set(core.ledger.account("hall").members) == {"hall", "hall-2"}
    core.close()


def test_a_service_without_a_home_says_that_nothing_was_compared(folder: Path, monkeypatch, caplog) -> None:
    (folder / "taken").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder / "taken"))
    core = Core(settings(folder, datasets=(registration_of(folder, "hall", "hall.csv"),)))
    with caplog.at_level("INFO", logger="wallflower.service"):
        core.load()
    core.close()
    assert "records are not compared with other data sets" in caplog.text
