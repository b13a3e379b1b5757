"""Rows of people: one record per person, or at most a few rows of each, whatever engine and order."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallflower as wf
from wallflower.data import Column, Schema, load
from wallflower.data.people import most_rows_of_one, roll_up
from wallflower.data.scans import load_into
from wallflower.errors import DataError, ParameterError
from wallflower.privacy import Loss
from wallflower.schema.person import AGGREGATES, Person
from wallflower.units import Claim, Protection, price

ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "A", " a", "b", "B ", "c", "", "12345678901234567890", "12345678901234567891"]),
        st.integers(-3, 3),
        st.integers(0, 3),
        st.sampled_from(["x", "y", "z"]),
    ),
    min_size=3,
    max_size=25,
)
NUMBERS = tuple(aggregate for aggregate in AGGREGATES if aggregate != "count")


def oracle(rows: Sequence[tuple[str, float, int, str]], aggregate: str, column: int, order: bool) -> list[Any]:
    """The aggregate of each person, computed one person at a time in plain Python."""
    people: dict[Any, list[tuple[float, int, Any]]] = defaultdict(list)
    for position, row in enumerate(rows):
        name = row[0].strip().lower() or ("nobody", position)
        people[name].append((row[2] if order else position, position, row[column]))
    reduce: dict[str, Callable[[list[Any]], Any]] = {
        "min": min,
        "max": max,
        "mean": statistics.fmean,
        "sum": sum,
        "median": statistics.median,
        "mode": lambda cells: min(set(cells), key=lambda cell: (-cells.count(cell), cell)),
        "any": lambda cells: float(any(cells)),
        "all": lambda cells: float(all(cells)),
    }
    answers = []
    for seen in people.values():
        if aggregate == "count":
            answers.append(len(seen))
        elif aggregate == "first":
            answers.append(min(seen, key=lambda item: (item[0], item[2]))[2])
        elif aggregate == "last":
            answers.append(max(seen, key=lambda item: (item[0], item[2]))[2])
        else:
            answers.append(reduce[aggregate]([item[2] for item in seen]))
    return sorted(answers)


def visits(rows: Sequence[tuple[str, float, int, str]]) -> Any:
    columns = zip(*rows, strict=True)
    return pa.table(dict(zip(("who", "pulse", "day", "ward"), map(list, columns), strict=True)))


def schema(**person: Any) -> Schema:
    columns = (
        Column("pulse", low=-1000, high=1000),
        Column("day", low=0, high=1000),
        Column("visits", low=0, high=1000),
        Column("ward", categories=("x", "y", "z")),
    )
    kept = person.get("rollup") or {"pulse": "", "day": ""}
    return Schema(columns=tuple(c for c in columns if c.name in kept), person=Person(id="who", **person))


@pytest.mark.parametrize("ordered_by", [None, "day"])
@pytest.mark.parametrize("aggregate", NUMBERS)
@given(rows=ROWS)
def test_each_aggregate_is_that_of_one_person_alone(aggregate: str, ordered_by: str | None, rows: list[Any]) -> None:
    facts = schema(rollup={"pulse": aggregate, "visits": "count"}, order=ordered_by)
    records = roll_up(visits(rows), facts)
    assert sorted(records["visits"].to_pylist()) == oracle(rows, "count", 1, False)
    assert sorted(records["pulse"].to_pylist()) == pytest.approx(oracle(rows, aggregate, 1, ordered_by is not None))


@pytest.mark.parametrize("aggregate", ["first", "last", "mode"])
@given(rows=ROWS)
def test_labels_have_aggregates_too(aggregate: str, rows: list[Any]) -> None:
    records = roll_up(visits(rows), schema(rollup={"ward": aggregate}))
    assert sorted(records["ward"].to_pylist()) == oracle(rows, aggregate, 3, False)


@given(rows=ROWS, seed=st.integers(0, 1000))
def test_records_do_not_depend_on_the_order_of_rows(rows: list[Any], seed: int) -> None:
    facts = schema(rollup={"pulse": "mean", "day": "first", "ward": "mode"}, order="day")
    shuffled = [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]

    def records(given: list[Any]) -> list[Any]:
        return sorted(map(str, roll_up(visits(given), facts).to_pylist()))

    assert records(rows) == records(shuffled)


@given(rows=ROWS)
def test_tiles_have_the_same_records_as_memory(rows: list[Any]) -> None:
    facts = schema(rollup={"pulse": "mean", "visits": "count", "ward": "mode"})
    people = {row[0].strip().lower() for row in rows if row[0]}
    if len(people) + sum(not row[0] for row in rows) < 2:
        return
    here, kept = load(visits(rows), schema=facts), load_into(visits(rows), "tiles", schema=facts)
    assert here.n == kept.n
    assert here.columns == kept.columns
    assert not here.ordered
    own = sorted(zip(*(here.coordinates(name).tolist() for name in ("pulse", "visits", "ward")), strict=True))
    (cells,) = kept.sheet.chunks([1, 2, 3])  # type: ignore[union-attr]
    assert own == sorted(zip(*(column.tolist() for column in cells), strict=True))


@pytest.mark.parametrize("part_rows", [1, 3])
def test_parts_on_disk_hold_whole_people(part_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallflower.data.people.ROWS_PER_PART", part_rows)
    rows = [(name, pulse, 0, "x") for pulse, name in enumerate(["a", "b", "A ", "", "c", "b", "a", "", "d", "C"])]
    facts = schema(rollup={"pulse": "sum", "visits": "count"})
    kept = load_into(visits(rows), "tiles", schema=facts)
    cells = [np.concatenate(part) for part in zip(*kept.sheet.chunks([1, 2]), strict=True)]  # type: ignore[union-attr]
    assert sorted(cells[1].tolist()) == oracle(rows, "count", 1, False)
    assert sorted(cells[0].tolist()) == oracle(rows, "sum", 1, False)


WORLD = [tuple(rows) for size in (1, 2, 3) for rows in combinations_with_replacement((0, 1, 2), size)]


@pytest.mark.parametrize("aggregate", NUMBERS)
def test_replacing_a_person_replaces_one_record(aggregate: str) -> None:
    """(Y1) on every world of two fixed people and one whose rows are replaced by any others, however many."""
    facts = schema(rollup={"pulse": aggregate, "visits": "count"})
    others = [("b", 0, 0, "x"), ("b", 2, 0, "x"), ("c", 1, 0, "y")]
    seen = set()
    for own in WORLD:
        rows = [("a", value, 0, "x") for value in own]
        for place in range(len(others) + 1):
            table = roll_up(visits([*others[:place], *rows, *others[place:]]), facts).to_pylist()
            seen.add(tuple(sorted(str(row) for row in table if row["who"] != "a")))
            assert sum(row["who"] == "a" for row in table) == 1
    assert len(seen) == 1


def test_replacing_rows_of_a_person_replaces_at_most_max_rows_records() -> None:
    """(Y2) for every secret order: which rows are kept does not depend on what is in them."""
    names = ["a", "a", "b", "a", "c"]
    for limit in (1, 2):
        facts = schema(max_rows=limit)
        for order in permutations(range(5)):
            kept = set()
            for own in combinations_with_replacement((0, 1, 2), 3):
                values = [own[0], own[1], 0, own[2], 1]
                table = load(
                    visits([(n, v, i, "x") for i, (n, v) in enumerate(zip(names, values, strict=True))]), schema=facts
                )
                drawn = table.draw(lambda bound, size, order=order: np.array(order))
                assert drawn.n == table.n == limit + 2
                rows = drawn.arrow.to_pylist()
                assert sum(row["who"] == "a" for row in rows) == limit
                kept.add(tuple(row["day"] for row in rows))
            assert len(kept) == 1


def test_every_choice_of_rows_is_equally_likely() -> None:
    table = load(visits([("a", i, i, "x") for i in range(3)] + [("b", 0, 9, "x")]), schema=schema(max_rows=2))
    chosen = [
        tuple(table.draw(lambda bound, size, order=order: np.array(order)).arrow["day"].to_pylist())
        for order in permutations(range(4))
    ]
    assert {choice: chosen.count(choice) for choice in set(chosen)} == {(0, 1, 9): 8, (0, 2, 9): 8, (1, 2, 9): 8}


def test_no_query_sees_rows_before_the_draw() -> None:
    table = load(visits([("a", 1, 1, "x"), ("a", 2, 2, "x"), ("b", 3, 3, "x")]), schema=schema(max_rows=1))
    for look in (lambda: table.cells("pulse"), lambda: table.points().values):
        with pytest.raises(AssertionError, match="draw"):
            look()


def test_what_is_declared_is_the_unit_of_protection() -> None:
    rolled, kept = schema(rollup={"pulse": "max"}), schema(max_rows=3)
    claim = Claim(loss=Loss("0.5"))
    assert rolled.protects == Protection(person="who")
    assert price(claim, rolled.protects).epsilon == claim.loss.amount
    assert kept.protects == Protection(person="who", units_per_person=3)
    assert price(claim, kept.protects).epsilon == 3 * claim.loss.amount
    assert "who" in rolled.protects.text
    assert "3" in kept.protects.text


def test_the_declaration_survives_a_file(tmp_path: Path) -> None:
    for facts in (
        schema(rollup={"pulse": "max", "visits": "count"}, order="day"),
        schema(max_rows=3, missing_id="refuse"),
    ):
        path = tmp_path / "people.toml"
        path.write_text(facts.to_toml())
        assert Schema.read(path) == facts


@pytest.mark.parametrize(
    "stated",
    [
        {},
        {"rollup": {"pulse": "max"}, "max_rows": 2},
        {"rollup": {}},
        {"rollup": {"pulse": "loudest"}},
        {"rollup": {"who": "first"}},
        {"max_rows": 0},
        {"max_rows": 2, "order": "day"},
        {"max_rows": True},
        {"max_rows": 2, "missing_id": "drop"},
    ],
)
def test_an_unclear_declaration_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Person(id="who", **stated)


def test_sums_and_counts_need_bounds_and_are_held_to_them() -> None:
    rows = visits([("a", 900, 0, "x"), ("a", 900, 0, "x"), ("b", 1, 0, "x")])
    with pytest.raises(ParameterError, match="grows"):
        load(rows, schema=Schema(columns=(Column("pulse"),), person=Person(id="who", rollup={"pulse": "sum"})))
    facts = schema(rollup={"pulse": "sum"})
    with pytest.raises(DataError):
        load(rows, schema=facts)
    clipped = load(rows, schema=Schema(columns=facts.columns, person=facts.person, clip=True))
    assert sorted(clipped.cells("pulse").tolist()) == [1.0, 1000.0]


@pytest.mark.parametrize("engine", ["memory", "tiles"])
def test_a_mean_stays_within_the_bounds_of_its_cells(engine: str) -> None:
    """The sum of three tenths is more than three times a tenth, by rounding."""
    rows = pa.table({"who": ["a"] * 3 + ["b"], "pulse": [0.1] * 3 + [0.0]})
    facts = Schema(columns=(Column("pulse", low=0, high=0.1),), person=Person(id="who", rollup={"pulse": "mean"}))
    assert load_into(rows, engine, schema=facts).n == 2


@pytest.mark.parametrize("engine", ["memory", "tiles"])
def test_a_sum_beyond_all_numbers_is_clipped_or_refused_as_any_other(engine: str) -> None:
    rows = pa.table({"who": ["a", "a", "b"], "pulse": [1.7e308, 1.7e308, 1.0]})
    facts = Schema(columns=(Column("pulse", low=0, high=9),), person=Person(id="who", rollup={"pulse": "sum"}))
    with pytest.raises(DataError, match="bounds"):
        load_into(rows, engine, schema=facts)
    kept = load_into(rows, engine, schema=replace(facts, clip=True))
    assert kept.n == 2


def test_rows_without_an_identifier_are_people_or_refused() -> None:
    rows = visits([("", 1, 0, "x"), ("NA", 2, 0, "x"), ("b", 3, 0, "x")])
    assert load(rows, schema=schema(rollup={"pulse": "max"})).n == 3
    with pytest.raises(DataError, match="identifier"):
        load(rows, schema=schema(rollup={"pulse": "max"}, missing_id="refuse"))


def test_long_identifiers_are_not_compared_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text("who,pulse\n12345678901234567890,1\n12345678901234567891,2\n0012,3\n12,4\n")
    assert load(path, schema=schema(rollup={"pulse": "max"})).n == 4


def test_first_and_last_need_an_order_where_the_source_has_none() -> None:
    facts = schema(rollup={"pulse": "first"})
    with pytest.raises(ParameterError, match="order"):
        roll_up(visits([("a", 1, 0, "x")]), facts, ordered=False)


def test_repeats_are_counted_for_the_steward() -> None:
    assert most_rows_of_one(pa.table({"who": ["a", "A ", "b", None, None]}), "who") == 2


def test_a_record_is_named_in_any_spelling_of_its_identifier() -> None:
    table = load(
        visits([("P1", 1, 0, "x"), ("p1 ", 2, 0, "x"), ("P2", 3, 0, "x")]), schema=schema(rollup={"pulse": "max"})
    )
    assert table.row("who", " P2") == table.row("who", "p2") == 1
    with pytest.raises(DataError, match="exactly one"):
        table.row("who", "P3")


def test_who_opens_a_table_hears_that_an_identifier_repeats(tmp_path: Path) -> None:
    rows = pa.table({"patient_no": [1, 1, 2, 3], "key": [0.5, 0.5, 1.5, 2.5], "pulse": [1.0, 2.0, 3.0, 4.0]})
    with pytest.warns(UserWarning, match="patient_no repeats, up to 2 rows") as heard:
        wf.open(rows, name="visits", ledger=tmp_path / "ledger.db")
    assert len(heard) == 1
    assert heard[0].filename == __file__


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "declared", [{"person": Person(id="patient_no", max_rows=1)}, {"protects": Protection(units_per_person=2)}]
)
def test_a_declared_unit_is_not_questioned(declared: dict[str, Any], tmp_path: Path) -> None:
    rows = pa.table({"patient_no": [1, 1, 2, 3], "pulse": [1.0, 2.0, 3.0, 4.0]})
    schema = Schema(columns=(Column("pulse", low=0, high=9),), **declared)
    assert wf.open(rows, schema=schema, name="visits", ledger=tmp_path / "ledger.db").name == "visits"
