"""What a watch says about its units, its assumed change and its cost is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wallflower as wf
from wallflower import cli
from wallflower.dataset import Dataset
from wallflower.errors import BudgetExhausted
from wallflower.schema import Column

FRAME = pd.DataFrame({"demand": 4.6 + 0.5 * np.random.default_rng(0).normal(size=600)})


@pytest.fixture
def book(tmp_path: Path) -> wf.Ledger:
    made = wf.Ledger.open(tmp_path / "ledger.db")
    made.declare("grid", wf.Protection(rows="time", unit="entry"), by="owner", reason="single readings")
    made.grant("grid", wf.Loss("500"), by="owner")
    return made


def grid(book: wf.Ledger, **facts: Any) -> Dataset:
    column = Column("demand", low=0, high=12, **facts)
    return wf.open(FRAME, schema=wf.Schema(name="grid", columns=(column,), clip=True), ledger=book)


def test_a_guarantee_with_a_change_says_the_change_and_what_was_charged(book: wf.Ledger) -> None:
    data = grid(book)
    watched = data.watch(threshold=2.0, centre=4.6, change=0.1, epsilon="1", force=True)
    learnt = data.baseline(season="always", change=0.1, epsilon="0.3", force=True)
    for made, booked in ((watched, "ε = 120"), (learnt, "ε = 36")):
        words = made.guarantee.text
        assert "any one entry of one observation changed by at most 0.1," in words
        assert "within its public range" not in words
        assert f"Larger changes, up to the whole public range, are covered by the {booked} that was charged." in words
        stored = made.to_dict()["guarantee"]
        assert stored["text"] == words
        assert stored["booked"]["amount"] == booked.removeprefix("ε = ")
        assert wf.Release.from_dict(made.to_dict()).guarantee == made.guarantee
        assert "changed by at most 0.1" in made._repr_html_() or "changed by at most 0.1" in str(made)
    plain = data.watch(threshold=2.0, centre=4.6, epsilon="1", force=True)
    assert "changed within its public range" in plain.guarantee.text


def test_a_person_level_guarantee_with_a_change_says_it_too(tmp_path: Path) -> None:
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.declare("grid", wf.Protection(rows="time", unit="person"), by="owner", reason="one house")
        book.grant("grid", wf.Loss("5000"), by="owner")
        made = grid(book).watch(
            threshold=2.0, centre=4.6, change=0.5, level="person", cutoff=2, epsilon="1", force=True
        )
    assert "any one person's contributions to the whole stream changed, each by at most 0.5," in made.guarantee.text


def test_a_watch_says_what_entries_are_divided_by_and_both_units(book: wf.Ledger) -> None:
    scaled = grid(book, scale=2.0)
    asked = {"threshold": 1.0, "centre": 2.3, "epsilon": "1"}
    words = (
        "By the schema, entries are divided by: demand 2. So the centre 2.3 is 4.6 and the threshold 1 is 2 in the "
        "units of the columns."
    )
    assert words in scaled.plan.watch(**asked).notes
    assert words in scaled.watch(**asked, force=True).notes
    centred = grid(book, scale=2.0, center=4.0).plan.watch(threshold=1.0, centre=0.3, epsilon="1")
    assert any("the centre 0.3 is 4.6 and the threshold 1 is 2" in note for note in centred.notes)
    assert any(note.startswith("Entries are divided by 1:") for note in grid(book).plan.watch(**asked).notes)


def test_the_plan_takes_the_bounds_of_the_schema(book: wf.Ledger) -> None:
    data = grid(book)
    stated = {"threshold": 2.0, "centre": 4.6, "variance": 0.25, "epsilon": "60"}
    assert data.plan.watch(**stated).verdict == data.plan.watch(**stated, low=0.0, high=12.0).verdict
    assert "state its variance" not in data.plan.watch(**stated).verdict


def test_the_plan_shows_what_the_budget_would_be_charged(book: wf.Ledger, tmp_path: Path) -> None:
    data = grid(book)
    asked = {"threshold": 2.0, "centre": 4.6, "change": 0.1, "epsilon": "0.3"}
    (note,) = [note for note in data.plan.watch(**asked).notes if "charged" in note]
    assert note.startswith(
        "The budget would be charged ε = 36. It counts 120 times, because the assumed change fits 120"
    )
    with wf.Ledger.open(tmp_path / "people.db") as other:
        unit = wf.Protection(units_per_person=5)
        schema = wf.Schema(name="visits", columns=(Column("demand", scale=1.0),), protects=unit)
        visits = wf.open(FRAME, schema=schema, ledger=other)
        notes = visits.plan.count(neighbours=3, radius=1.0, epsilon="0.5").notes
    assert any(note.startswith("The budget would be charged ε = 2.5. It counts 5 times") for note in notes)


def test_a_refusal_names_the_change_where_that_is_the_reason(book: wf.Ledger) -> None:
    with pytest.raises(BudgetExhausted) as refusal:
        grid(book).watch(threshold=2.0, centre=4.6, change=0.01, epsilon="1", force=True)
    assert "the assumed change fits 1,200 times into the public range" in str(refusal.value)
    assert "another unit" not in str(refusal.value)


def test_init_invents_no_scale_for_rows_of_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    FRAME.to_csv("grid.csv", index=False)
    bounds = ("--bounds", "demand=0,12")
    assert cli.main(["init", "grid.csv", *bounds, "--rows", "time", "--protects", "entry", "-o", "time.toml"]) == 0
    assert "scale" not in wf.Schema.read("time.toml").to_json()["columns"]["demand"]
