"""Lists of names and letters on the command line: one file, one reader, and nothing beside it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from wallflower.cli import main
from wallflower.ledger import Ledger

RECORDS = 300
LIST = ["--detector", "2", "--most", "5", "--epsilon", "3", "--identifier", "id", "--above=-1e9", "--force"]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with records, their schema, a ledger and a detector."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    values = np.random.default_rng(5).normal(size=(RECORDS, 2))
    lines = [f"p/{at:03},{x:.4f},{y:.4f}" for at, (x, y) in enumerate(values.tolist())]
    Path("icu.csv").write_text("\n".join(["id,x,y", *lines, ""]))
    Path("icu.toml").write_text('name = "icu"\n[columns.id]\nidentifier = true\n[columns.x]\n[columns.y]\n')
    assert main(["budget", "grant", "icu", "--epsilon", "40", "--reason", "test", "--yes"]) == 0
    fit = ["detector", "fit", "icu.csv", "--schema", "icu.toml", "--epsilon", "2", "--model", "model.json", "--force"]
    assert main(fit) == 0
    capsys.readouterr()
    return tmp_path


def allow(most: int = 50) -> int:
    terms = ["--detector", "2", "--most", str(most), "--reason", "review", "--yes"]
    return main(["budget", "allow-naming", "icu", *terms])


def ask(*more: str) -> int:
    return main(["who", "icu.csv", "--schema", "icu.toml", *LIST, *more])


def charges(room: Path) -> int:
    with Ledger.open(room / "ledger.db") as book:
        return len(book.history("icu", event="charge"))


def names_in(text: str) -> set[str]:
    return {f"p/{at:03}" for at in range(RECORDS) if f"p/{at:03}" in text}


def test_a_list_goes_to_its_file_and_nowhere_else(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert allow() == 0
    capsys.readouterr()
    assert ask("--list", "list.json", "--json", "--report", "page.html", "--show", "score") == 0
    shown = capsys.readouterr()
    place = room / "list.json"
    stored = json.loads(place.read_text())
    names = {row["record"] for row in stored["list"]}
    assert names
    assert names <= names_in(place.read_text())
    assert place.stat().st_mode & 0o777 == 0o600
    for text in (shown.out, shown.err, (room / "page.html").read_text(), *map(str, capsys.readouterr())):
        assert not names_in(text)
    with Ledger.open(room / "ledger.db") as book:
        assert not names_in(json.dumps(list(book.export())))
    assert json.loads(shown.out)["value"] is None


def test_a_repeated_key_finds_the_list_only_where_its_file_is(room: Path) -> None:
    assert allow() == 0
    again = ("--list", "list.json", "--idempotency-key", "k")
    assert ask(*again) == 0
    content = Path("list.json").read_bytes()
    assert ask(*again) == 0
    assert Path("list.json").read_bytes() == content
    Path("list.json").rename("elsewhere.json")
    assert ask(*again) == 2
    assert charges(room) == 2
    assert not Path("list.json").exists()


@pytest.mark.parametrize(
    ("more", "code"),
    [((), 2), (("--list", "icu.csv"), 4), (("--list", "nowhere/list.json"), 4), (("--list", "new.json"), 3)],
)
def test_without_a_place_or_an_allowance_nothing_is_charged(room: Path, more: tuple[str, ...], code: int) -> None:
    before = Path("icu.csv").read_bytes()
    if code != 3:
        assert allow() == 0
    assert ask(*more) == code
    assert charges(room) == 1
    assert Path("icu.csv").read_bytes() == before
    assert not Path("new.json").exists()


def test_a_list_never_replaces_a_file_that_came_in_between(room: Path) -> None:
    assert allow() == 0
    Path("list.json").write_text("of somebody else")
    assert ask("--list", "list.json", "--idempotency-key", "new") == 0
    assert Path("list.json").read_text() == "of somebody else"
    (place,) = room.glob("list-*.json")
    assert json.loads(place.read_text())["list"]


def test_an_allowance_needs_a_reason_a_detector_and_a_yes(room: Path) -> None:
    assert main(["budget", "allow-naming", "icu", "--detector", "2", "--most", "5", "--yes"]) == 2
    assert main(["budget", "allow-naming", "icu", "--detector", "1", "--most", "5", "--reason", "x", "--yes"]) == 2
    assert main(["budget", "allow-naming", "icu", "--detector", "2", "--most", "5", "--reason", "x"]) == 2
    assert allow(5) == 0
    with Ledger.open(room / "ledger.db") as book:
        assert [entry.details["reason"] for entry in book.history(event="naming")] == ["review"]


def test_letters_tell_each_person_her_own_score_and_nothing_else(room: Path) -> None:
    assert main(["detector", "letters", "model.json", "icu.csv", "--identifier", "id", "--out", "letters"]) == 0
    folder = room / "letters"
    assert folder.stat().st_mode & 0o777 == 0o700
    letters = {path.name: json.loads(path.read_text()) for path in folder.iterdir()}
    assert len(letters) == RECORDS
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    for name, letter in letters.items():
        assert name == letter["identifier"].replace("/", "%2F") + ".json"
        assert names_in(json.dumps(letter)) == {letter["identifier"]}
        assert sum(letter["contributions"].values()) == pytest.approx(letter["score"])
    assert main(["detector", "letters", "model.json", "icu.csv", "--identifier", "id", "--out", "letters.csv"]) == 0
    rows = list(csv.DictReader(Path("letters.csv").read_text().splitlines()))
    assert Path("letters.csv").stat().st_mode & 0o777 == 0o600
    assert {row["identifier"]: float(row["score"]) for row in rows} == {
        letter["identifier"]: letter["score"] for letter in letters.values()
    }
    assert charges(room) == 1


def test_letters_are_refused_where_one_could_reach_somebody_else(room: Path) -> None:
    Path("twice.csv").write_text("id,x,y\na,1,2\nb,2,3\na,3,4\n")
    assert main(["detector", "letters", "model.json", "twice.csv", "--identifier", "id", "--out", "new"]) == 2
    assert not Path("new").exists()
    Path("there").mkdir()
    assert main(["detector", "letters", "model.json", "icu.csv", "--identifier", "id", "--out", "there"]) == 4
