"""The collection of numbers read off the papers on streams and sensors, where it is at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from wallflower.papers.facts import Fact, printed_facts

COLLECTION = Path(__file__).parents[2].parent / "shared" / "papers" / "printed"


def require_same_numbers(paper: str, collected: str) -> None:
    """Every row of the collection has its numbers in a fact of the package; one name is the start of the other."""
    path = COLLECTION / f"{collected}.csv"
    if not path.exists():
        pytest.skip("the collection of printed numbers is not beside this repository")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        facts = printed_facts(paper).items()
        named = [fact for item, fact in facts if item.startswith(row["item"]) or row["item"].startswith(item)]
        assert Fact(row["value"], row["where"]).numbers in [fact.numbers for fact in named], row
