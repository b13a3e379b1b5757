"""The bench of statements: its tables are hard, its checks can fail, and no label or ranking is false."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studies.statements import (
    NOT_MEASURED_HERE,
    STATEMENTS,
    WITHOUT_CLAIM,
    check_all,
    check_beside,
    check_plan,
    hard_tables,
    real_tables,
    study,
)

from studies import statements
from wallflower.data import Points, Table
from wallflower.noise import system_noise
from wallflower.papers import STUDIES
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.count import Count
from wallflower.queries.scale import Scale
from wallflower.queries.subspaces import Subspaces
from wallflower.query import Query
from wallflower.release.guarantee import Facts

TABLES = {here.name: here for here in hard_tables()}


def test_the_study_is_a_command() -> None:
    assert "statements" in STUDIES


def test_the_tables_are_the_hard_ones() -> None:
    assert {"unscaled", "lattice", "micro-clusters", "repeats", "groups"} <= set(TABLES)
    assert not TABLES["unscaled"].is_scaled


def test_every_statement_is_checked() -> None:
    made = {check.name for name in ("unscaled", "repeats", "groups") for check in check_all(TABLES[name])}
    assert made | {check.name for check in check_beside(1)} == set(STATEMENTS)


def sentences_of(query: Query[Any, Any], view: Any) -> Iterator[str]:
    """All that one release of this query prints about its accuracy."""
    facts = Facts.of(view, query.cost())
    reading = query.reading(query.answer(view, system_noise()), facts)
    yield from (reading.text, reading.brief, *reading.notes, *query.conditions(view))
    if reading.quality is not None:
        yield from (reading.quality.rule, *reading.quality.conditions)


def find_statement(sentence: str) -> str | None:
    """The name of the statement that a sentence makes, or an empty one where it makes none."""
    found = (name for name, made in STATEMENTS.items() if any(re.search(each, sentence) for each in made.sentences))
    return next(found, "" if any(re.search(each, sentence) for each in (*WITHOUT_CLAIM, *NOT_MEASURED_HERE)) else None)


@pytest.mark.parametrize("kind", [*QUERIES, *COMPANIONS], ids=lambda kind: kind.kind)
def test_every_sentence_about_accuracy_is_a_statement_of_the_bench(kind: type[Query[Any, Any]]) -> None:
    """In every mode that the accounts of the audits know: what a new sentence says must be measured."""
    accounts = kind.accounts()
    assert accounts is not None
    unknown = {
        sentence
        for case in accounts.of(kind)
        if case.name != "event, max"  # nothing is stated of it, and its forecast refuses
        for sentence in sentences_of(case.query, case.view(case.query, case.tables[0]))
        if sentence and find_statement(sentence) is None
    }
    assert unknown == set()


def test_sentences_that_need_other_tables_are_statements_too() -> None:
    """Those that no account has: clear names, missed shares, columns that repeat or not, a group that leads."""
    flat, cloud = np.zeros((400, 2)), np.random.default_rng(2).normal(size=(400, 2))
    far = np.column_stack([np.arange(400) * 100.0, cloud[:, 0]])
    loss = Loss("50")
    asked = [
        (Scale(loss=loss), flat),
        (Scale(loss=loss), cloud),
        (Count(neighbours=5, share="2%", loss=loss), far),
        (Count(neighbours=12, radius=0.4, slack=3, loss=loss), cloud),
        (Subspaces(neighbours=5, radius=0.4, size=1, top=1, loss=loss), far),
    ]
    names = set()
    for query, values in asked:
        for sentence in sentences_of(query, query.view(Points.from_array(values, columns=["id", "y"]))):
            assert not sentence or find_statement(sentence) is not None, sentence
            names.add(find_statement(sentence) if sentence else "")
    assert {"equal pairs", "share", "slack", "unscaled", "stands out"} <= names


def test_a_sentence_that_nobody_measures_would_be_noticed() -> None:
    assert find_statement("Reliable: the noise is small.") is None
    assert find_statement("About 22 of 367 records are outliers.") is None


def test_a_real_table_that_is_absent_is_skipped_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WALLFLOWER_DATA", str(tmp_path))
    reasons: list[str] = []
    assert list(real_tables(reasons.append)) == []
    assert len(reasons) == len(statements.REAL_TABLES)
    assert all("is skipped" in reason for reason in reasons)


@pytest.mark.parametrize("name", ["unscaled", "groups"])
def test_statements_without_a_chance_of_error_are_true(name: str) -> None:
    assert all(check.is_true for _ in range(2) for check in check_all(TABLES[name]) if check.statement.allowed == 0)


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
