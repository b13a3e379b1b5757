"""Columns that a query takes for public: charge, account and release say that their cells are not hidden."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wallflower as wf
from wallflower.cli import main
from wallflower.ledger import Account
from wallflower.release.guarantee import Guarantee
from wallflower.report import card
from wallflower.schema import Column, Schema
from wallflower.units import Claim, Protection

SCHEMA = Schema(name="people", columns=(Column("ward", categories=("A", "B"), public=True), Column("x", low=0, high=1)))
HIDDEN = "one record, whatever is in it (how many records there are is public)"
NOT_WARD = f"{HIDDEN}; a change of its ward, which the schema calls public, is not hidden"


def open_people(place: Path, ward: str = "A") -> Any:
    frame = pd.DataFrame({"ward": [ward] + ["A", "B"] * 200, "x": np.linspace(0, 1, 401)})
    return wf.open(frame, schema=SCHEMA, ledger=place)


def count_by_ward(people: Any, *, public: bool) -> Any:
    return people.count(neighbours=2, radius=0.1, by=("ward",), public_groups=public, epsilon="0.2", force=True)


@pytest.mark.parametrize("ward", ["A", "B"])
def test_exact_sizes_come_with_words_that_do_not_promise_to_hide_them(ward: str, tmp_path: Path) -> None:
    """Two tables that differ in the ward of one record: the sizes tell them apart, whatever ε is."""
    people = open_people(tmp_path / "ledger.db", ward)
    made = count_by_ward(people, public=True)
    assert [row["size"] for row in made.value] == ([201, 200] if ward == "A" else [200, 201])
    assert made.protects == NOT_WARD
    assert made.guarantee.public == ("ward",)
    assert "keeps its ward" in made.guarantee.text
    assert made.to_dict()["guarantee"]["public"] == ["ward"]
    assert wf.Release.from_dict(made.to_dict()).guarantee == made.guarantee
    account = people.budget()
    assert account.public == {"people": ("ward",)}
    assert f"the loss of {NOT_WARD}" in str(account)
    assert account.to_json("people")["protects"] == NOT_WARD
    assert Account.from_json(account.to_json()).public == account.public


def test_the_account_says_so_from_the_first_such_answer_on(tmp_path: Path) -> None:
    people = open_people(tmp_path / "ledger.db")
    before = count_by_ward(people, public=False)
    assert before.protects == HIDDEN
    assert people.budget().public == {}
    count_by_ward(people, public=True)
    after = people.count(neighbours=2, radius=0.1, epsilon="0.1", columns=("x",), force=True)
    assert after.protects == NOT_WARD, "of all that was answered together a change of ward is not hidden"
    assert after.guarantee.public == (), "by itself this answer hides it"
    assert "ward" not in after.guarantee.text
    with wf.Ledger.open(tmp_path / "ledger.db") as ledger:
        charges = ledger.history("people", event="charge")
        assert ledger.verify().entries
    assert [json.loads(entry.unit or "").get("public") for entry in charges] == [None, ["ward"], None]
    assert [json.loads(entry.claim or "").get("public") for entry in charges] == [None, ["ward"], None]


def test_a_shared_account_names_the_columns_of_each_data_set(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with wf.Ledger.open(place) as ledger:
        ledger.declare("visits", by="steward", account="people", reason="the same people")
    count_by_ward(open_people(place), public=True)
    with wf.Ledger.open(place) as ledger:
        account = ledger.account("visits")
    assert account.public == {"people": ("ward",)}
    assert account.protects("visits") == HIDDEN
    assert account.protects("people") == account.protects() == NOT_WARD


def test_the_command_line_and_the_report_say_it(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("WALLFLOWER_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("COLUMNS", "300")
    made = count_by_ward(open_people(tmp_path / "ledger.db"), public=True)
    assert main(["budget", "show", "people"]) == 0
    assert "does not cover a change of ward" in " ".join(capsys.readouterr().out.split())
    assert main(["budget", "show", "people", "--json"]) == 0
    assert '"ward"' in capsys.readouterr().out
    assert "a change of its ward" in card(made)


def test_only_a_query_that_relies_on_it_names_public_columns() -> None:
    asked = {"neighbours": 2, "radius": 0.1, "by": ("ward",), "loss": wf.Loss("1")}
    assert wf.Count(**asked).public_columns() == ()
    assert wf.Count(**asked, public_groups=True).public_columns() == ("ward",)
    assert "public" not in Claim(loss=wf.Loss("1")).to_json()
    assert Protection().text_but([]) == HIDDEN
    assert Guarantee(wf.Loss("1")).to_json() == Guarantee.from_json(Guarantee(wf.Loss("1")).to_json()).to_json()
