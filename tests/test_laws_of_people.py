"""Exact laws of the real answers on tables whose rows are brought together by person.

Every query and mode that has an account by hand is asked of visits instead of records: the same attack, with the whole
set of rows of one person replaced, must show no more than is booked. (Y1) (Y2), proof.md of `ledger`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from wallflower import Count, Explain, Subspaces, Watch
from wallflower.audit.answers import Case, LawCheck, audit_draws, audit_law_check, freeze
from wallflower.audit.laws import EXACT, Law, law_of, loss_between
from wallflower.data import Column, Points, Schema, Table, load
from wallflower.data.people import PersonRows, choose_rows, record_schema
from wallflower.errors import DataError
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.release.inputs import project
from wallflower.schema.person import Person
from wallflower.units import price

INPUTS = sys.modules[project.__module__]  # `wallflower.release` is a function too
ID = "patient"
AGGREGATES = ("max", "min", "median", "last", "first", "mode")
LABELS = ("mode", "last")
SPELLINGS = ("p{}", "P{} ", " p{}")  # of one identifier
MAX_VISITS = 3

CASES = [
    case
    for kind in QUERIES
    # rows of people have no order in time, and a threshold (below) is of a detector that was released before
    if kind.kind not in ("watch", "shift") and (accounts := kind.accounts()) is not None
    for case in accounts.cases
    if case.query.kind != "threshold" and isinstance(case.tables[0], Points | Table) and case.tables[0].n > 1
]


class Visits:
    """Rows of people whose roll-up is a given table: one to three rows each, in which all but one cell are decoys."""

    def __init__(self, table: Points | Table) -> None:
        self.table = table
        self.names = tuple(table.columns)
        self.columns = {column.name: column for column in table.schema.only(self.names).columns or ()}
        self.aggregates = {name: self._aggregate(at, name) for at, name in enumerate(self.names)}

    def _aggregate(self, at: int, name: str) -> str:
        if self.columns[name].categories:
            return LABELS[at % 2]
        aggregate = AGGREGATES[at % len(AGGREGATES)]
        return "max" if aggregate == "median" and self.columns[name].integer else aggregate  # a median may be 1.5

    def _cells(self, name: str) -> list[Any]:
        if isinstance(self.table, Table):
            cells: list[Any] = self.table.arrow[name].to_pylist()
            return cells
        column, values = self.columns[name], self.table.values[:, self.names.index(name)]
        raw: list[float] = (values * float(column.scale) + float(column.center)).tolist()
        return raw

    def rows(self) -> Any:
        """Return the visits as an Arrow table: first those that came first, so that records keep their order."""
        records = list(zip(*(self._cells(name) for name in self.names), strict=True))
        rows = []
        for person, record in enumerate(records):
            visits = 1 + (person + len(repr(record))) % MAX_VISITS  # another record has another number of rows
            for visit in range(visits):
                cells = [self._cell(name, cell, visit, visits) for name, cell in zip(self.names, record, strict=True)]
                rows.append((visit, SPELLINGS[visit].format(person), *cells))
        rows.sort(key=lambda row: row[0])
        columns = zip(*rows, strict=True)
        return pa.table(dict(zip(("visit", ID, *self.names), map(list, columns), strict=True)))

    def _cell(self, name: str, cell: Any, visit: int, visits: int) -> Any:
        """The cell of the record in the row that its aggregate picks, and a decoy in every other row."""
        aggregate, column = self.aggregates[name], self.columns[name]
        if column.categories:
            others = [label for label in column.categories if label != cell]
            return others[0] if aggregate == "last" and visit < visits - 1 and others else cell
        low, high = (-np.inf if column.low is None else column.low), (np.inf if column.high is None else column.high)
        below, above = max(low, cell - 1.0), min(high, cell + 1.0)
        decoys = {
            "max": (cell, below, below),
            "min": (cell, above, above),
            "median": (cell, below, above) if visits == MAX_VISITS else (cell, cell),
            "first": (cell, above, below),
            "last": (above, below, cell) if visits == MAX_VISITS else (above, cell) if visits > 1 else (cell,),
            "mode": (cell, above, cell) if visits == MAX_VISITS else (cell, cell),
        }
        return decoys[aggregate][visit]

    @property
    def schema(self) -> Schema:
        person = Person(id=ID, rollup=self.aggregates, order="visit")
        return replace(self.table.schema, columns=tuple(self.columns.values()), person=person, protects=None)

    def load(self) -> Table:
        return load(self.rows(), schema=self.schema, name=self.table.name)


def asked_of_people(case: Case) -> Case:
    """The same account, where the tables are rolled up from visits and are projected as for a release."""
    query = case.query
    if isinstance(query, Explain):
        query = replace(query, identifier=ID, record=f"p{query.record}")

    def view(asked: Any, table: Any) -> Any:
        return project(asked, table if isinstance(table, Table) and table.schema.person else Visits(table).load())

    return replace(case, query=query, view=view)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.query.kind}-{case.name}")
def test_visits_roll_up_to_the_records_of_the_case(case: Case) -> None:
    for table in case.tables:
        rolled = Visits(table).load()
        assert not rolled.ordered
        if isinstance(table, Points):
            np.testing.assert_array_equal(rolled.points(table.columns).values, table.values)
        else:
            assert rolled.arrow.select(table.columns).to_pylist() == table.arrow.to_pylist()


LAWS = [
    pytest.param(case, check, id=f"{case.query.kind}-{case.name}-{' and '.join(check.parts)}-{number}")
    for case in CASES
    for number, check in enumerate(case.laws)
    if check.tables is None or isinstance(check.tables[0], Points | Table)
]


@pytest.mark.slow
@pytest.mark.parametrize(("case", "check"), LAWS)
def test_no_law_of_a_person_shows_more_than_the_query_spends(case: Case, check: LawCheck) -> None:
    """(Y1) in every query and mode: one person's whole set of rows is replaced, by another number of rows too."""
    finding = audit_law_check(asked_of_people(case), check)
    assert not finding.caught, finding.text


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.query.kind}-{case.name}")
def test_what_is_booked_for_a_person_is_what_is_booked_for_a_record(case: Case) -> None:
    people = asked_of_people(case)
    view = people.view(people.query, case.tables[0])
    finding = audit_draws(people)
    assert not finding.caught, finding.text
    claim, declared = people.query.claim(view), Visits(case.tables[0]).schema.protects
    assert declared is not None
    assert declared.person == ID
    if declared.unit == "record" and case.query.cost().kind.name != "OUTPUT_CONSTRAINED":
        assert price(claim, declared).rho == price(claim, replace(declared, person=None)).rho


# Order. People stand in the order of their first rows, which a person's rows can change: no law may depend on it.


def backwards(table: Points | Table) -> Points | Table:
    if isinstance(table, Points):
        return replace(table, values=table.values[::-1])
    return replace(table, arrow=table.arrow.take(pa.array(range(table.n - 1, -1, -1))))


def law(query: Any, view: Any, see: Callable[[Any], Hashable] = freeze) -> Law:
    return law_of(lambda noise: see(query.answer(view, noise)))


PLACES = [0.0, 0.0, 1.0, 2.0, 5.0, 5.0, 9.0]
ONE_SIDED = Count(neighbours=1, radius=1.0, slack=2, normalise=False, loss=Loss("1"))


@pytest.mark.parametrize(
    "query",
    [
        ONE_SIDED,
        replace(ONE_SIDED, mechanism="global", slack=None),
        Subspaces(neighbours=1, radius=1.0, columns=("x", "y"), size=1, normalise=False, loss=Loss("1")),
    ],
    ids=lambda query: query.kind,
)
def test_laws_do_not_depend_on_the_order_of_people(query: Any) -> None:
    values = np.column_stack([PLACES, np.arange(7.0) % 3])
    points = Points.from_array(values, columns=("x", "y"), name="made-up")
    first, second = (law(query, query.view(table)) for table in (points, backwards(points)))
    assert loss_between(first, second, Loss("1")) <= EXACT


@pytest.mark.parametrize("person", [{"rollup": {"x": "max"}}, {"max_rows": 1}])
def test_queries_by_the_order_of_rows_are_refused(person: Any) -> None:
    """A watch and a baseline say something of every row; who has several rows could move those of all others."""
    table = load(
        pa.table({ID: ["a", "b", "a"], "x": [0.0, 1.0, 2.0]}),
        schema=Schema(columns=(Column("x", low=-4, high=4),), person=Person(id=ID, **person)),
    )
    for query in (
        Watch(threshold=3.0, low=-4.0, high=4.0, loss=Loss("1")),
        Explain(record="0", metric="x", context=("y",), size=50, loss=Loss("1"), domain=EXPLAINED),
    ):
        with pytest.raises(DataError, match="order"):
            project(query, table)


EXPLAINED = Schema(columns=(Column("y", categories=("u", "v")), Column("x", low=-4, high=4)), clip=True)


# At most a few rows of each person. The secret order of rows is a part of the law.


def few_rows(values: Sequence[float], names: Sequence[str], max_rows: int) -> Table:
    rows = pa.table({ID: list(names), "x": [float(value) for value in values]})
    schema = Schema(columns=(Column("x", low=-100, high=100),), person=Person(id=ID, max_rows=max_rows))
    return load(rows, schema=schema, name="made-up")


def law_with_secret_order(query: Any, table: Table) -> Law:
    """The law of the answer over its own draws and over the rows that are kept, through the projection of a release."""

    def answer(noise: Any) -> Hashable:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(INPUTS, "system_noise", lambda: noise)
            view = project(query, table)
        return freeze(query.answer(view, noise))

    return law_of(answer)


# Three rows of `a` in the middle make inliers of those beside; replaced, all of them are far away.
OTHERS = (-1.0, 1.0)
NAMES = ("a", "a", "b", "c")
WORLDS = [((near, other), far) for near in (0.0, 1.0) for other in (0.0, -1.0) for far in ((50.0, 60.0), (50.0, 50.0))]
COUNTS = {
    "one-sided": ONE_SIDED,
    "global": replace(ONE_SIDED, mechanism="global", slack=None),
    "one-sided at ρ": replace(ONE_SIDED, loss=Loss.zcdp("1/2")),
    "one-sided at δ": replace(ONE_SIDED, loss=Loss("1/4", delta="1/100")),
}


def loss_of_rows(query: Any, max_rows: int, worlds: Any = None) -> tuple[float, float]:
    """The greatest loss that replacing the rows of one person shows, and what is booked for it."""
    shown, booked = 0.0, 0.0
    for near, far in WORLDS if worlds is None else worlds:
        tables = [few_rows([*own, *OTHERS], NAMES, max_rows) for own in (near, far)]
        view = project(query, tables[0])
        declared = tables[0].schema.protects
        assert declared is not None
        cost = price(query.claim(view), declared)
        claimed = Loss.zcdp(cost.rho) if cost.epsilon is None else Loss(cost.epsilon, delta=cost.delta)
        laws = [law_with_secret_order(query, table) for table in tables]
        shown = max(shown, loss_between(laws[0], laws[1], claimed))
        booked = float(claimed.amount)
    return shown, booked


@pytest.mark.slow
@pytest.mark.parametrize("max_rows", [1, 2])
@pytest.mark.parametrize("name", COUNTS)
def test_no_law_of_kept_rows_shows_more_than_is_booked(name: str, max_rows: int) -> None:
    """(Y2): ε times the number of rows, ρ times its square, δ by the rule for groups."""
    shown, booked = loss_of_rows(COUNTS[name], max_rows)
    assert shown <= booked * (1 + EXACT)
    assert shown > 0


def test_a_secret_order_hides_which_rows_are_kept() -> None:
    table = few_rows([0.0, 50.0, *OTHERS], NAMES, 1)
    kept = law_of(lambda noise: tuple(table.draw(lambda bound, size: np.array(_order(noise, bound))).cells("x")))
    assert kept == pytest.approx({(0.0, *OTHERS): 0.5, (50.0, *OTHERS): 0.5})


def _order(noise: Any, bound: int) -> list[int]:
    order = list(range(bound))
    for at in range(bound):
        other = at + noise.below(bound - at)
        order[at], order[other] = order[other], order[at]
    return order


# Mutants


def keep_one_row_more(groups: PersonRows, max_rows: int, order: Any) -> Any:
    return choose_rows(groups, max_rows + 1, order)


@pytest.mark.parametrize("name", ["one-sided", "global", "one-sided at ρ"])
def test_a_row_kept_beyond_the_limit_shows_more_than_is_booked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallflower.data.table.choose_rows", keep_one_row_more)
    shown, booked = loss_of_rows(COUNTS[name], 1)
    assert shown > 1.3 * booked


def kept_places(values: Sequence[float]) -> list[int]:
    """The rows of each person that are kept by one secret order, as their places in the source."""
    rows = pa.table({ID: ["a", "a", "a", "b"], "x": [*values, 0.0], "place": [0.0, 1.0, 2.0, 3.0]})
    columns = (Column("x", low=-100, high=100), Column("place", low=0, high=3))
    table = load(rows, schema=Schema(columns=columns, person=Person(id=ID, max_rows=2)))
    return [int(place) for place in table.draw(lambda bound, size: np.array([2, 0, 3, 1])).cells("place")]


def order_by(column: str) -> Any:
    """A broken draw: rows are kept by the cells of a column, and not by a secret order."""

    def draw(table: Table, order: Any) -> Table:
        ranks = np.argsort(table.arrow[column].to_numpy(), kind="stable")
        return SOUND_DRAW(table, lambda bound, size: ranks)

    return draw


SOUND_DRAW = Table.draw


def test_which_rows_are_kept_does_not_depend_on_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = [(0.0, 1.0, 2.0), (2.0, 1.0, 0.0), (5.0, 5.0, -5.0)]
    assert len({tuple(kept_places(world)) for world in worlds}) == 1
    monkeypatch.setattr(Table, "draw", order_by("x"))
    assert len({tuple(kept_places(world)) for world in worlds}) > 1


def rolled_sums(low: float, high: float) -> list[float]:
    rows = pa.table({ID: ["a", "a", "b"], "x": [90.0, 90.0, 1.0]})
    schema = Schema(columns=(Column("x", low=low, high=high),), person=Person(id=ID, rollup={"x": "sum"}), clip=True)
    cells: list[float] = load(rows, schema=schema).cells("x").tolist()
    return cells


def without_bounds(schema: Schema) -> Schema:
    records = record_schema(schema)
    return replace(records, columns=tuple(replace(column, low=None, high=None) for column in records.columns or ()))


def test_a_sum_that_is_not_clipped_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(rolled_sums(0, 100)) == 100
    monkeypatch.setattr("wallflower.data.table.record_schema", without_bounds)
    assert max(rolled_sums(0, 100)) == 180
