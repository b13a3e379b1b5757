"""`wallflower data domain`: the public domain file, from what is said or asked and never from private records."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from wallflower.cli import main
from wallflower.schema import Schema

WALLFLOWER = Path(sys.executable).with_name("wallflower")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    return tmp_path


def said(*arguments: str) -> Schema:
    assert main(["data", "domain", *arguments, "-o", "domain.toml"]) == 0
    return Schema.read("domain.toml")


def test_every_kind_of_column_is_written_and_read_back() -> None:
    Path("jobs.txt").write_text("Dean\n\n Clerk \nDean\n", encoding="utf-8")
    Path("towns.csv").write_text("code,name\n01,North\n02,South\n", encoding="utf-8")
    told = ("--codes", "job=jobs.txt", "--codes", "town=towns.csv:name", "--codes", "area=towns.csv")
    told += ("--values", "year=2008..2010", "--values", "grade=1,2,3", "--edges", "age=18,65", "--bounds", "pay=0,1e6")
    schema = said(*told, "--rows", "900", "--clip")
    facts = {column.name: column.facts() for column in schema.columns or ()}
    assert facts["job"] == {"categories": ["Dean", "Clerk"]}
    assert facts["town"] == {"categories": ["North", "South"]}
    assert facts["area"] == {"categories": ["01", "02"]}
    assert facts["year"] == {"categories": [2008, 2009, 2010]}
    assert facts["grade"] == {"categories": [1, 2, 3]}
    assert facts["age"] == {"edges": [18.0, 65.0]}
    assert facts["pay"] == {"low": 0.0, "high": 1e6}
    assert (schema.rows, schema.clip) == (900, True)


def test_without_a_file_it_is_printed(capsys: Any) -> None:
    assert main(["data", "domain", "--values", "job=a,b"]) == 0
    printed = capsys.readouterr()
    assert tomllib.loads(printed.out) == {"columns": {"job": {"categories": ["a", "b"]}}}
    assert "2^1 contexts" in printed.err


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ((), "no terminal to ask"),
        (("--values", "job"), "names no column"),
        (("--values", "job=a,a"), "differ"),
        (("--codes", "job=nowhere.txt"), "cannot be read"),
        (("--codes", "job=list.csv:town"), "not in the code list"),
        (("--edges", "age=5,3"), "increase"),
        (("--edges", "age=old"), "not a number"),
        (("--bounds", "pay=3"), "two are needed"),
        (("--values", "a=1,2", "-o", "domain.json"), ".toml"),
    ],
)
def test_what_makes_no_domain_is_refused(told: tuple[str, ...], words: str, capsys: Any, monkeypatch: Any) -> None:
    Path("list.csv").write_text("job\nDean\n", encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["data", "domain", *told]) in (2, 4)
    assert words in capsys.readouterr().err


@pytest.mark.slow
def test_at_a_terminal_it_asks_and_asks_again() -> None:
    ours, theirs = os.openpty()
    answers = "job\ndean,dean\ndean,clerk\nyear\n2008..2009\n\npay\n5\n0,100\n"
    command = [WALLFLOWER, "data", "domain", "-o", "domain.toml"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True) as asking:
        os.close(theirs)
        os.write(ours, answers.encode())
        assert asking.wait() == 0
    os.close(ours)
    columns = {column.name: column.facts() for column in Schema.read("domain.toml").columns or ()}
    assert columns == {
        "job": {"categories": ["dean", "clerk"]},
        "year": {"categories": [2008, 2009]},
        "pay": {"low": 0.0, "high": 100.0},
    }
