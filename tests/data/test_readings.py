"""Readings in long format: one record for each time, with an entry for each person."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallflower as wf
from scripted_noise import Scripted
from wallflower.data import Column, Schema, load
from wallflower.data.readings import pivot
from wallflower.data.scans import load_into
from wallflower.errors import DataError, ParameterError
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.schema import Person
from wallflower.units import Protection, price

FILL = 4.0
NAMES = st.sampled_from(["a", "A ", "b", "B", "c"])
READINGS = st.lists(st.tuples(NAMES, st.integers(-2, 11), st.integers(-3, 3)), min_size=2, max_size=20)
REDUCTIONS = {"mean": statistics.fmean, "max": max, "sum": sum, "median": statistics.median, "count": len}


def schema(aggregate: str = "mean", *, fill: bool = True, **stated: Any) -> Schema:
    column = Column("load", low=-100, high=100, missing=FILL if fill else None)
    person = Person(id="meter", rollup={"load": aggregate}, time="hour")
    return Schema(columns=(column,), person=person, **stated)


def readings(rows: Sequence[tuple[str, Any, float]]) -> Any:
    return pa.table(dict(zip(("meter", "hour", "load"), map(list, zip(*rows, strict=True)), strict=True)))


def oracle(rows: Sequence[tuple[str, int, float]], aggregate: str) -> list[dict[str, Any]]:
    """The wide table, one cell at a time in plain Python."""
    cells: dict[tuple[str, int], list[float]] = defaultdict(list)
    for name, time, value in rows:
        cells[name.strip().lower(), time].append(value)
    people, times = sorted({name for name, _ in cells}), sorted({time for _, time in cells})
    reduce = REDUCTIONS[aggregate]
    return [
        {"hour": str(time)} | {name: reduce(cells[name, time]) if (name, time) in cells else FILL for name in people}
        for time in times
    ]


@pytest.mark.parametrize("aggregate", REDUCTIONS)
@given(rows=READINGS)
def test_an_entry_is_the_aggregate_of_one_person_at_one_time(aggregate: str, rows: list[Any]) -> None:
    wide, facts = pivot(readings(rows), schema(aggregate))
    expected = oracle(rows, aggregate)
    assert wide.column_names == list(expected[0]) == list(facts.names or ())
    assert [record["hour"] for record in wide.to_pylist()] == [record["hour"] for record in expected]
    for record, entries in zip(wide.to_pylist(), expected, strict=True):
        assert {**record, "hour": 0} == pytest.approx({**entries, "hour": 0})


@given(rows=READINGS)
def test_tiles_have_the_same_records_as_memory(rows: list[Any]) -> None:
    if len({row[1] for row in rows}) < 2:
        return
    here, kept = load(readings(rows), schema=schema()), load_into(readings(rows), "tiles", schema=schema())
    assert here.columns == kept.columns
    assert here.n == kept.n
    places = range(1, len(here.columns))
    cells = [np.concatenate(part) for part in zip(*kept.sheet.chunks(places), strict=True)]  # type: ignore[union-attr]
    assert [part.tolist() for part in cells] == [here.cells(name).tolist() for name in here.columns[1:]]


def test_replacing_readings_of_a_person_replaces_entries_of_her_column() -> None:
    """(Y4) on every world: her entries change and no others, one for each time; of one time, one entry alone."""
    others = [("b", 1, 1.0), ("b", 2, 2.0), ("b", 3, 0.0), ("c", 2, 5.0)]
    choices = [(), (0.0,), (2.0,), (0.0, 2.0)]
    worlds = {}
    for world in product(choices, repeat=3):
        own = [("a", time, value) for time, values in enumerate(world, 1) for value in values]
        if own:  # the set of identifiers is public
            worlds[world] = pivot(readings([*others[:2], *own, *others[2:]]), schema())[0].to_pylist()
    for left, right in product(worlds, repeat=2):
        changed = {
            (name, place)
            for place, (one, other) in enumerate(zip(worlds[left], worlds[right], strict=True))
            for name in one
            if one[name] != other[name]
        }
        assert changed <= {("a", place) for place in range(3) if left[place] != right[place]}


@pytest.mark.parametrize(
    ("times", "labels"),
    [
        (["10", "9", "9.0"], ["9", "10"]),
        (["2026-01-02", "2026-01-01 23:00", "2026-01-02 00:00"], ["2026-01-01 23:00", "2026-01-02"]),
        (["2026-01-01T02:00+02:00", "2026-01-01T00:00Z", "2026-01-01T01:00Z"], None),
        ([12345678901234567891 // 10, 12345678901234567881 // 10, 12345678901234567891 // 10], None),
    ],
)
def test_times_are_sorted_as_moments(times: list[Any], labels: list[str] | None) -> None:
    wide, _ = pivot(readings([("a", time, 1.0) for time in map(str, times)]), schema())
    assert wide.num_rows == 2
    if labels is not None:
        assert wide["hour"].to_pylist() == labels


@pytest.mark.parametrize("time", ["soon", "", "nan", "2026-01-01T00:00Z"])
def test_a_time_that_cannot_be_sorted_is_refused(time: str) -> None:
    with pytest.raises(DataError, match="time zone") as refusal:
        pivot(readings([("a", "2026-01-01", 1.0), ("a", time, 2.0)]), schema())
    assert "soon" not in str(refusal.value)


def test_times_that_are_no_cells_are_refused_without_quoting_them() -> None:
    rows = pa.table({"meter": ["a", "b"], "hour": [["secret"], ["b"]], "load": [1.0, 2.0]})
    person = Person(id="meter", time="hour", rollup={"load": "mean"})
    with pytest.raises(DataError) as caught:
        load(rows, schema=Schema(columns=(Column("load", low=0, high=9),), person=person))
    assert "secret" not in str(caught.value)


def test_what_has_no_entry_is_refused() -> None:
    with pytest.raises(DataError, match="no reading"):
        pivot(readings([("a", 1, 1.0), ("a", 2, 1.0), ("b", 1, 1.0)]), schema(fill=False))
    with pytest.raises(DataError, match="without an identifier"):
        pivot(readings([("a", 1, 1.0), ("", 1, 1.0)]), schema())
    with pytest.raises(DataError, match="called so"):
        pivot(readings([("Hour", 1, 1.0), ("a", 1, 1.0)]), schema())
    with pytest.raises(DataError, match="bounds"):
        load(readings([("a", 1, 60.0), ("a", 1, 60.0), ("a", 2, 0.0)]), schema=schema("sum"))


@pytest.mark.parametrize(
    "stated",
    [
        {"max_rows": 2},
        {"rollup": {"load": "mean", "voltage": "mean"}},
        {"rollup": {"hour": "mean"}},
        {"rollup": {"load": "mean"}, "id": "hour"},
    ],
)
def test_an_unclear_stream_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Person(**{"id": "meter", "time": "hour", **stated})


def test_labels_are_no_entries() -> None:
    person = Person(id="meter", rollup={"state": "mode"}, time="hour")
    facts = Schema(columns=(Column("state", categories=("on", "off")),), person=person)
    with pytest.raises(ParameterError, match="labels"):
        pivot(pa.table({"meter": ["a"], "hour": [1], "state": ["on"]}), facts)


def test_a_person_over_the_whole_stream_is_protected_unless_another_unit_of_time_is_stated(tmp_path: Path) -> None:
    assert schema().protects == Protection(rows="time", unit="person")
    hour = Protection(rows="time", unit="entry")
    assert schema(protects=hour).protects == hour
    with pytest.raises(ParameterError, match="rows"):
        schema(protects=Protection())
    path = tmp_path / "meters.toml"
    for facts in (schema(), schema(protects=hour)):
        path.write_text(facts.to_toml())
        assert Schema.read(path) == facts


def long_and_wide(folder: Path) -> tuple[Path, Path]:
    """The same stream in both formats, the rows of the first in any order."""
    values = np.random.default_rng(3).normal(0.0, 1.0, (40, 3)).round(3)
    values[7] += 9.0
    wide = [["hour", "m1", "m2", "m3"], *([str(hour), *row] for hour, row in enumerate(values.tolist()))]
    rows = [[f"M{meter + 1}", str(hour), values[hour, meter]] for hour in range(40) for meter in range(3)]
    long = [["meter", "hour", "load"], *(rows[place] for place in np.random.default_rng(4).permutation(len(rows)))]
    for name, table in {"wide.csv": wide, "long.csv": long}.items():
        (folder / name).write_text("\n".join(",".join(map(str, row)) for row in table) + "\n")
    return folder / "long.csv", folder / "wide.csv"


WIDE = Schema(
    columns=(Column("hour", time=True), *(Column(name, low=-100, high=100) for name in ("m1", "m2", "m3"))),
    protects=Protection(rows="time", unit="person"),
)
LEVELS = [{"level": "person", "cutoff": 3}, {"level": "window", "window": 5}, {"level": "entry"}]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level["level"])
def test_a_watch_answers_and_costs_alike_in_both_formats(level: dict[str, Any], tmp_path: Path) -> None:
    query = Watch(threshold=8.0, low=-5.0, high=5.0, loss=Loss("1"), time="hour", **level)
    long, wide = long_and_wide(tmp_path)
    tables = [load(long, schema=schema(fill=False)), load(wide, schema=WIDE)]
    views = [query.view(table) for table in tables]
    assert views[0].columns == views[1].columns
    assert query.answer(views[0], Scripted(7)) == query.answer(views[1], Scripted(7))
    claims = [query.claim(view) for view in views]
    assert claims[0] == claims[1]
    assert tables[0].schema.protects == tables[1].schema.protects
    booked = {"person": 1, "window": 8, "entry": 40}  # of 40 observations, which are 8 windows of 5
    assert price(claims[0], tables[0].schema.protects).epsilon == booked[level["level"]]


def test_the_ledger_books_a_watch_in_the_unit_of_the_stream(tmp_path: Path) -> None:
    long, _ = long_and_wide(tmp_path)
    meters = wf.open(long, schema=schema(fill=False), ledger=tmp_path / "ledger.db", name="meters")
    query = {"threshold": 8.0, "low": -5.0, "high": 5.0, "time": "hour", "force": True}
    release = meters.watch(**query, level="person", epsilon="0.5")
    assert set(release.value["times"]) <= {str(hour) for hour in range(40)}
    assert meters.budget().spent.epsilon == Fraction(1, 2)
    meters.watch(**query, level="entry", epsilon="0.01")
    assert meters.budget().spent.epsilon == Fraction(1, 2) + 40 * Fraction(1, 100)


def test_a_fleet_takes_readings_as_they_come_and_books_the_stated_times(tmp_path: Path) -> None:
    """A person is a stream of a fleet: an entry costs once, and a person as often as she may be observed."""
    query = Watch(threshold=3.0, low=-5.0, high=5.0, loss=Loss("0.01"))
    for unit, spent in {
        Protection(rows="time", unit="entry"): Fraction(1, 100),
        Protection(rows="time", unit="person", times=40): Fraction(40, 100),
    }.items():
        book = wf.Ledger.open(tmp_path / f"{unit.unit}.db")
        facts, store = schema(fill=False, protects=unit), tmp_path / f"{unit.unit}-fleet.db"
        with wf.fleet(query, dataset="meters", ledger=book, store=store, schema=facts, force=True) as fleet:
            assert len(fleet.decide_many(["m1", "m2", "m1"], [1, 1, 2], [0.1, 0.2, 0.3])) == 3
        assert book.account("meters").spent.epsilon == spent
