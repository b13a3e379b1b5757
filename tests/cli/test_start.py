"""`wallflower init` and `wallflower rehearse`: nothing of a record is written down, and nothing is charged."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from wallflower.cli import main
from wallflower.errors import ParameterError
from wallflower.ledger import Ledger
from wallflower.rehearsal import MADE_UP, make_up
from wallflower.schema import Column, Schema

WALLFLOWER = Path(sys.executable).with_name("wallflower")
SECRETS = ("8675309", "Zanzibar", "1999-03-07", "44.25")


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    return tmp_path


def table(rows: int = 400) -> Path:
    draw = np.random.default_rng(3)
    lines = [
        f"{age:.2f};{'NSEW'[ward]};{2000 + day % 20}-01-02;{note};{pay}"
        for age, ward, day, note, pay in zip(
            draw.normal(50, 10, rows),
            draw.integers(0, 4, rows),
            draw.integers(0, 900, rows),
            ["Zanzibar"] * rows,
            draw.integers(10, 99, rows),
            strict=True,
        )
    ]
    lines[7] = "44.25;N;1999-03-07;Zanzibar;8675309"
    Path("people.csv").write_text("age;ward;joined;note;pay\n" + "\n".join(lines) + "\n")
    return Path("people.csv")


SAID = (
    *("--separator", ";", "--bounds", "age=0,120", "--values", "ward=N,E,S,W", "--weight", "ward=0.5"),
    *("--date", "joined=days,2000-01-01", "--types", "pay=integer", "--scale", "pay=30", "--rows", "people"),
)


def test_a_draft_holds_what_was_said_and_nothing_of_a_record(capsys: Any) -> None:
    assert main(["init", str(table()), *SAID]) == 0
    text = Path("people.toml").read_text()
    printed = capsys.readouterr()
    for secret in SECRETS:
        assert secret not in text + printed.out + printed.err
    schema = Schema.read("people.toml")
    assert {column.name: column.facts() for column in schema.columns or ()} == {
        "age": {"low": 0.0, "high": 120.0, "scale": 20.0},
        "ward": {"categories": ["N", "E", "S", "W"], "weight": 0.5},
        "joined": {"unit": "days", "since": "2000-01-01"},
        "pay": {"integer": True, "scale": 30.0},
    }
    assert (schema.rows, schema.name, schema.clip) == (400, "people", True)
    assert schema.file is not None
    assert schema.file.separator == ";"
    assert '# [columns."note"]  text: categories' in text
    assert 'date: unit = "days"' in text, "nobody declared that it is no date"
    assert "inferred from its cells" in text


def test_spreads_are_bought_once_for_all_columns_without_a_scale(capsys: Any) -> None:
    assert main(["init", str(table(3000)), *SAID, "--epsilon", "0.4"]) == 0
    printed = capsys.readouterr()
    text = Path("people.toml").read_text()
    for secret in SECRETS:
        assert secret not in text + printed.out + printed.err
    facts = {column.name: column.facts() for column in Schema.read("people.toml").columns or ()}
    assert 5 < facts["age"]["scale"] < 20, "the ages spread over ten years"
    assert facts["pay"]["scale"] == 30.0, "what was stated is not paid for"
    with Ledger.open() as ledger:
        (released,) = ledger.history("people", event="release")
        assert set(released.details["value"]["scale"]) == {"age", "joined"}
        assert str(ledger.account("people").spent.epsilon) == "2/5"
    assert text.count(f"# scale: released under ε = 0.4, entry {released.charge} of the ledger") == 2
    command = shlex.split(printed.out.strip().splitlines()[-1])
    assert command[command.index("--epsilon") + 1] == "0.6", "what is left"
    assert main([*command[1:], "--dry-run"]) == 0


def mixed_file(cell: str) -> None:
    """Two columns of numbers, but for one cell of the second."""
    rows = np.random.default_rng(0).normal(size=(3000, 2)).round(3).tolist()
    rows[7][1] = cell
    Path("pairs.csv").write_text("a,b\n" + "\n".join(f"{x},{y}" for x, y in rows) + "\n")


def charged_columns() -> list[Any]:
    with Ledger.open() as ledger:
        return [entry.details.get("columns") for entry in ledger.history("pairs", event="charge")]


@pytest.mark.parametrize("cell", ["0.5", "unknown to us"])
def test_cells_do_not_decide_which_columns_are_measured(cell: str, capsys: Any) -> None:
    """One cell of a text file decides whether a column is numbers, and the ledger shows which columns were measured."""
    mixed_file(cell)
    asked = ["init", "pairs.csv", "--no-ask", "--epsilon", "0.5"]
    assert main(asked) != 0
    refusal = " ".join(capsys.readouterr().err.split())
    assert "declares no types" in refusal
    assert "there are a, b" in refusal
    assert charged_columns() == []
    assert main([*asked, "--types", "a=number"]) == 0
    assert charged_columns() == [["a"]]
    with Ledger.open() as ledger:
        (released,) = ledger.history("pairs", event="release")
        assert set(released.details["value"]["scale"]) == {"a"}
        assert released.details["facts"]["dimension"] == 1
    assert ("# scale: not measured" in Path("pairs.toml").read_text()) == (cell == "0.5"), "the draft shows its types"


def test_a_column_that_is_called_numbers_and_is_not_costs_nothing(capsys: Any) -> None:
    mixed_file("unknown to us")
    asked = ["init", "pairs.csv", "--no-ask", "--epsilon", "0.5"]
    assert main([*asked, "--types", "a=number", "--types", "b=number"]) != 0
    assert "column b holds text" in capsys.readouterr().err
    assert charged_columns() == []


def test_sources_that_declare_types_are_measured_without_names() -> None:
    cells = np.random.default_rng(0).normal(size=(2, 3000))
    pyarrow.parquet.write_table(pa.table({"a": cells[0], "b": cells[1]}), "pairs.parquet")
    assert main(["init", "pairs.parquet", "--no-ask", "--epsilon", "0.5"]) == 0
    assert charged_columns() == [["a", "b"]]


def test_a_cell_of_sqlite_may_have_any_type_so_columns_are_named(capsys: Any) -> None:
    with sqlite3.connect("pairs.db") as db:
        db.execute("CREATE TABLE pairs (a REAL, b REAL)")
        db.executemany("INSERT INTO pairs VALUES (?, ?)", np.random.default_rng(0).normal(size=(3000, 2)).tolist())
    asked = ["init", "sqlite:///pairs.db?table=pairs", "--no-ask", "--epsilon", "0.5", "-o", "out.toml"]
    assert main(asked) != 0
    assert "declares no types" in " ".join(capsys.readouterr().err.split())
    assert main([*asked, "--types", "a=number", "--bounds", "b=-9,9"]) == 0
    assert charged_columns() == [["a", "b"]]


def test_bounds_are_bought_with_spreads_and_say_where_they_came_from(capsys: Any) -> None:
    asked = ["init", str(table(3000)), *SAID, "--epsilon", "0.6"]
    assert main([*asked, "--location"]) == 0
    facts = {column.name: column.facts() for column in Schema.read("people.toml").columns or ()}
    day, age = facts["joined"], facts["age"]
    assert day["low"] < day["center"] - 9 * day["scale"] < day["center"] + 9 * day["scale"] < day["high"]
    assert (age["low"], age["high"]) == (0, 120), "what was stated stays"
    with Ledger.open() as ledger:
        (released,) = ledger.history("people", event="release")
        assert released.details["value"]["location"]["joined"] == pytest.approx(day["center"], abs=0.2 * day["scale"])
    text = Path("people.toml").read_text()
    assert f"# bounds, center and scale: released under ε = 0.6, entry {released.charge} of the ledger" in text
    assert main([*asked[:-2], "--location", "--overwrite"]) != 0
    assert "Add an epsilon" in capsys.readouterr().err


def test_the_command_is_one_line_however_long_it_is(capsys: Any) -> None:
    long = Path("a-file-with-a-long-name" * 8 + ".csv")
    table().rename(long)
    assert main(["init", str(long), *SAID, "-o", "people.toml", "--dataset", "people"]) == 0
    (command,) = capsys.readouterr().out.strip().splitlines()
    assert main([*shlex.split(command)[1:], "--dry-run", "--force"]) == 0


def test_spreads_of_no_use_are_not_sold(capsys: Any) -> None:
    assert main(["init", str(table(60)), *SAID, "--epsilon", "0.1"]) != 0
    assert "not useful" in capsys.readouterr().err
    assert not Path("people.toml").exists()
    with Ledger.open() as ledger:
        assert not ledger.history("people", event="charge")


def test_it_ends_with_a_command_that_runs(capsys: Any) -> None:
    assert main(["init", str(table()), *SAID]) == 0
    (command,) = capsys.readouterr().out.splitlines()
    words = shlex.split(command)
    assert words[0] == "wallflower"
    assert main([*words[1:], "--force", "--dry-run"]) == 0


def test_declared_types_are_told_as_declared() -> None:
    pa.parquet.write_table(pa.table({"age": [1.5, 2.5, 3.5], "ward": ["a", "b", "c"]}), "t.parquet")
    assert main(["init", "t.parquet", "-o", "out.toml"]) == 0
    assert "inferred from its cells" not in Path("out.toml").read_text()
    assert Schema.read("out.toml").names == ("age",)


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        (("--bounds", "absent=0,1"), 2, "names no column"),
        (("--types", "age=hue"), 2, "is not a type"),
        (("--bounds", "age=0"), 2, "two are needed"),
        (("-o", "people.json"), 2, ".toml"),
        (("-o", "there.toml"), 4, "--overwrite"),
        (("--types", "age=leave", "--types", "pay=leave"), 2, "no column can be read"),
    ],
)
def test_a_draft_that_cannot_be_made_is_refused_before_it_is_written(
    told: tuple[str, ...], code: int, words: str, capsys: Any
) -> None:
    Path("there.toml").write_text("kept")
    assert main(["init", str(table()), "--separator", ";", *told]) == code
    assert words in " ".join(capsys.readouterr().err.split())
    assert Path("there.toml").read_text() == "kept"
    assert not Path("people.toml").exists()


def test_what_does_not_fit_yet_is_said_without_a_value(capsys: Any) -> None:
    Path("gaps.csv").write_text("age,pay\n8675309,1\n,2\n3,4\n")
    assert main(["init", "gaps.csv"]) == 0
    told = capsys.readouterr().err
    assert "does not fit the draft yet" in told
    assert "8675309" not in told + Path("gaps.toml").read_text()
    assert main(["init", "gaps.csv", "--missing", "age=40", "--overwrite"]) == 0
    assert "does not fit" not in capsys.readouterr().err


def test_the_number_of_records_is_left_out_where_it_is_secret() -> None:
    assert main(["init", str(table()), *SAID, "--protects", "membership"]) == 0
    assert Schema.read("people.toml").rows is None


@pytest.mark.slow
def test_in_a_terminal_it_asks_for_what_no_option_says() -> None:
    table()
    ours, theirs = os.openpty()
    # a slip, then age and its gaps, ward, joined, note, pay without bounds, its scale and its gaps, rows
    answers = "0,x\n0,120\n\nN,E,S,W\n\n\n\n20\n10\npeople\n"
    command = [WALLFLOWER, "init", "people.csv", "--separator", ";"]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True) as asking:
        os.close(theirs)
        os.write(ours, answers.encode())
        assert asking.wait() == 0
    os.close(ours)
    schema = Schema.read("people.toml")
    assert schema.names == ("age", "ward", "pay")
    assert schema.protects is not None
    (pay,) = (column for column in schema.columns or () if column.name == "pay")
    assert (pay.scale, pay.missing) == (20, 10)


# Rehearsals

FACTS = Schema(
    name="people",
    rows=300,
    columns=(
        Column("age", low=0, high=120, scale=20, integer=True),
        Column("joined", unit="days", since="2000-01-01", scale=400, missing=0),
        Column("ward", categories=("N", "E", "S"), weight=0.5),
        Column("id", identifier=True),
    ),
)


def test_made_up_records_come_from_the_schema_alone() -> None:
    made = make_up(FACTS, 500)
    assert made.name == "made-up-people"
    assert made.n == 500
    assert made.columns == ("age", "joined", "ward")
    ages = made.cells("age")
    assert ages.min() >= 0
    assert ages.max() <= 120
    assert (ages == np.floor(ages)).all()
    assert set(made.codes("ward").tolist()) == {0, 1, 2}
    assert make_up(FACTS, 500).points().values.tobytes() == made.points().values.tobytes()
    with pytest.raises(ParameterError, match="nothing can be made up"):
        make_up(Schema(columns=(Column("id", identifier=True),)), 10)


@pytest.mark.slow
def test_a_rehearsal_marks_every_answer_and_charges_nothing(capsys: Any) -> None:
    Path("people.toml").write_text(FACTS.to_toml())
    asked = ["rehearse", "--schema", "people.toml", "--neighbours", "3", "--radius", "0.5", "--epsilon", "1"]
    assert main([*asked, "--report", "page.html", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["made_up"] is True
    assert told["records"] == 300
    trials = {trial["kind"]: trial for trial in told["trials"]}
    assert {"count", "subspaces"} <= {kind for kind, trial in trials.items() if trial["release"]}
    for trial in trials.values():
        assert (trial["release"] is None) is (trial["refusal"] is not None)
        if trial["release"] is not None:
            assert trial["release"]["notes"][0] == MADE_UP
            assert trial["release"]["dataset"] == "made-up-people"
    assert trials["count"]["release"]["parameters"]["radius"] == 0.5
    assert "Made up" in Path("page.html").read_text()
    with Ledger.open("ledger.db") as ledger:
        assert ledger.datasets() == []


@pytest.mark.slow
def test_a_rehearsal_takes_only_the_number_of_records_from_a_file(capsys: Any) -> None:
    table(250)
    assert main(["init", "people.csv", *SAID]) == 0
    text = Path("people.toml").read_text()
    Path("people.toml").write_text("\n".join(line for line in text.splitlines() if not line.startswith("rows = 2")))
    capsys.readouterr()
    assert main(["rehearse", "people.csv", "--schema", "people.toml"]) == 0
    printed = capsys.readouterr()
    assert "250 made-up records" in printed.err
    assert "on made-up records" in printed.out
    for secret in SECRETS:
        assert secret not in printed.out + printed.err


def test_a_rehearsal_without_a_schema_says_what_to_do(capsys: Any) -> None:
    assert main(["rehearse"]) == 2
    assert "wallflower init" in capsys.readouterr().err


# What init proposes, and what it leaves out


def chains(gaps: tuple[str, ...] = ()) -> Path:
    """A table whose first column is an identifier and whose columns have no common unit."""
    draw = np.random.default_rng(4)
    columns = {
        "Patient No.": np.arange(300.0),
        "age": draw.normal(60, 9, 300),
        "kappa": draw.gamma(2, 1, 300),
        "creatinine": draw.gamma(3, 0.3, 300),
    }
    for name in gaps:
        columns[name][5] = np.nan
    pyarrow.parquet.write_table(pa.table(columns), "chains.parquet")
    return Path("chains.parquet")


def test_rows_of_time_are_offered_a_free_plan_and_no_count(capsys: Any) -> None:
    """The statement that was false: the printed step spent 0.9 on a count over columns without a scale."""
    bounds = ["--bounds", "age=0,120"]
    assert main(["init", str(chains()), "--no-ask", "--rows", "time", *bounds]) == 0
    shown = capsys.readouterr().out
    assert shown.split()[:3] == ["wallflower", "plan", "baseline"]
    assert main(shlex.split(shown)[1:]) == 0
    capsys.readouterr()
    assert main(["init", str(chains()), "--no-ask", "--rows", "time", "--overwrite"]) == 0
    shown = capsys.readouterr()
    assert shown.out.strip() == ""
    assert "--bounds COLUMN=LOW,HIGH" in shown.err


def test_unscaled_columns_are_measured_before_anything_is_counted(capsys: Any) -> None:
    """The statement that was false: the printed step spent 0.9 on columns without a scale."""
    assert main(["init", str(chains()), "--no-ask"]) == 0
    shown = capsys.readouterr()
    assert shown.out.split()[:2] == ["wallflower", "scale"]
    assert "--share" not in shown.out
    assert "without one: age, kappa, creatinine" in " ".join(shown.err.split())
    assert main(shlex.split(shown.out)[1:]) == 0
    asked = ["count", "chains.parquet", "--schema", "chains.toml", "--neighbours", "5", "--share", "10%"]
    assert main([*asked, "--scale", "1", "--epsilon", "0.4", "--json", "--force"]) == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert not any("scale" in words for words in told["quality"]["conditions"])


def test_scaled_columns_are_counted_at_once(capsys: Any) -> None:
    scales = [part for name in ("age", "kappa", "creatinine") for part in ("--scale", f"{name}=2")]
    assert main(["init", str(chains()), "--no-ask", *scales]) == 0
    assert capsys.readouterr().out.split()[:2] == ["wallflower", "count"]


def test_a_column_that_is_called_as_identifiers_are_takes_no_part(capsys: Any) -> None:
    assert main(["init", str(chains()), "--no-ask"]) == 0
    assert "identifiers: Patient No." in " ".join(capsys.readouterr().err.split())
    column = next(c for c in Schema.read("chains.toml").columns or () if c.name == "Patient No.")
    assert column.kind == "identifier"
    assert main(["init", str(chains()), "--no-ask", "--types", "Patient No.=number", "-o", "kept.toml"]) == 0
    assert next(c for c in Schema.read("kept.toml").columns or () if c.name == "Patient No.").kind == "number"


def test_all_columns_with_gaps_are_listed_at_once(capsys: Any) -> None:
    assert main(["init", str(chains(("kappa", "creatinine"))), "--no-ask"]) == 0
    assert "columns 'kappa', 'creatinine' have missing values" in " ".join(capsys.readouterr().err.split())


def test_only_some_columns_are_drafted(capsys: Any) -> None:
    assert main(["init", str(chains(("creatinine",))), "--no-ask", "--only", "age,kappa"]) == 0
    assert [column.name for column in Schema.read("chains.toml").columns or ()] == ["age", "kappa"]
    assert "missing values" not in capsys.readouterr().err


def test_columns_that_are_not_asked_for_are_not_checked(capsys: Any) -> None:
    assert main(["init", str(chains(("creatinine",))), "--no-ask"]) == 0
    asked = ["--schema", "chains.toml", "--neighbours", "5", "--radius", "2", "--epsilon", "0.5", "--json", "--force"]
    assert main(["count", "chains.parquet", *asked, "--columns", "age,kappa"]) == 0
    assert main(["count", "chains.parquet", *asked]) == 2
    assert "'creatinine' has missing values" in capsys.readouterr().err
