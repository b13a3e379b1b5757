"""The bench of statements: its tables are hard, its checks can fail, and no label or ranking is false."""

from __future__ import annotations

from pathlib import Path

import pytest

from wallflower.data import Table
from wallflower.papers import STUDIES
from wallflower.papers.studies import statements
from wallflower.papers.studies.statements import check_all, check_plan, hard_tables, study

TABLES = {here.name: here for here in hard_tables()}


def test_the_study_is_a_command() -> None:
    assert "statements" in STUDIES


def test_the_tables_are_the_hard_ones() -> None:
    assert {"unscaled", "lattice", "micro-clusters", "repeats", "groups"} <= set(TABLES)
    assert not TABLES["unscaled"].is_scaled


def test_every_query_that_states_its_accuracy_in_numbers_is_held_to_it() -> None:
    found = {check.query for name in ("bell", "groups") for check in check_all(TABLES[name])}
    assert found == {"plan", "count", "count, share", "count, by", "compare", "subspaces", "detector"}


@pytest.mark.parametrize("name", ["unscaled", "groups"])
def test_statements_without_a_chance_of_error_are_true(name: str) -> None:
    assert all(check.is_true for _ in range(2) for check in check_all(TABLES[name]) if check.allowed == 0)


def test_a_plan_of_unscaled_columns_that_were_called_scaled_would_be_caught() -> None:
    """The check can fail: a plan that is useful, on a table of which the study knows that it has no scale."""
    bell = TABLES["bell"]
    mislabelled = _Mislabelled(name="bell", why="", values=bell.values, radius=bell.radius, is_scaled=False)
    assert not check_plan(mislabelled).is_true


class _Mislabelled(statements.HardTable):
    """A table with scales of which the study believes that it has none."""

    __slots__ = ()

    def table(self) -> Table:
        return TABLES["bell"].table()


@pytest.mark.slow
def test_a_quick_study_leaves_a_table_and_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "FEW_RUNS", 1)
    paths = {path.name for path in study(tmp_path, True, lambda _: None)}
    assert paths == {"statements.csv", "statements.html"}
