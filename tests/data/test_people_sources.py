"""One rolled-up table, whatever holds the rows: files, frames, databases; in memory, on tiles and on Spark."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sparks import spark

from wallflower.data import Column, Schema, load
from wallflower.data.people import PersonRows, fold_text, plain_identifiers
from wallflower.data.scans import load_into
from wallflower.errors import DataError
from wallflower.schema import Join
from wallflower.schema.person import Person

ROLLUP = {"pulse": "max", "weight": "mean", "day": "last", "visits": "count", "ward": "mode"}
MEASURED = ("pulse", "weight", "day", "visits", "ward")
SCHEMA = Schema(
    columns=(
        Column("pulse", low=-1000, high=1000),
        Column("weight", low=-1000, high=1000),
        Column("day", low=0, high=1000),
        Column("visits", low=0, high=1000),
        Column("ward", categories=("x", "y", "z")),
    ),
    person=Person(id="who", rollup=ROLLUP, order="day"),
)
CELLS = st.tuples(st.integers(-3, 3).map(float), st.integers(0, 3), st.sampled_from("xyz"))
TEXTS = st.sampled_from(["a", "A", " a", "b", "B ", "c", "É", "é", "12", "012", "12.0", "90071992547409931", None])
NUMBERS = st.sampled_from([12, 13, 2**53 - 1, 0, -4, None])
LARGE_NUMBERS = st.sampled_from([2**53, 2**53 + 1, 2**62 + 1, 12, None])
numbers_of_databases = count()


def table_of(rows: Sequence[tuple[Any, tuple[float, int, str]]], identifiers: pa.DataType) -> pa.Table:
    return pa.table(
        {
            "who": pa.array([name for name, _ in rows], type=identifiers),
            "pulse": pa.array([cells[0] for _, cells in rows], type=pa.float64()),
            "weight": pa.array([cells[0] / 2 for _, cells in rows], type=pa.float64()),
            "day": pa.array([cells[1] for _, cells in rows], type=pa.int64()),
            "ward": pa.array([cells[2] for _, cells in rows], type=pa.string()),
        }
    )


def people_in(rows: Sequence[tuple[Any, object]]) -> int:
    """The number of people, counted in plain Python."""
    names = {str(name).strip().lower().removesuffix(".0") for name, _ in rows if name is not None}
    return len(names) + sum(name is None for name, _ in rows)


def records_of(source: object, engine: object = "memory") -> list[tuple[float, ...]]:
    """The records of a source without their order, which is that of the source."""
    table = load_into(source, engine, schema=SCHEMA)
    if engine == "memory":
        columns = [table.coordinates(name) for name in MEASURED]  # type: ignore[union-attr]
    else:
        places = [table.columns.index(name) for name in MEASURED]
        columns = [np.concatenate(part) for part in zip(*table.sheet.chunks(places), strict=True)]  # type: ignore[union-attr]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def sources_of(table: pa.Table, folder: Path) -> Iterator[tuple[str, object]]:
    """The same rows in each kind of source that needs no server."""
    yield "pandas", table.to_pandas()  # whole numbers with missing ones become floating point here
    yield "polars", pl.from_arrow(table)
    pq.write_table(table, folder / "visits.parquet", row_group_size=3)
    yield "parquet", folder / "visits.parquet"
    table.to_pandas(integer_object_nulls=True).to_csv(folder / "visits.csv", index=False)
    yield "csv", folder / "visits.csv"
    number = next(numbers_of_databases)
    with duckdb.connect(folder / f"{number}.duckdb") as database:
        database.register("rows", table)
        database.execute("CREATE TABLE visits AS SELECT * FROM rows")
    yield "duckdb", f"duckdb:///{folder / f'{number}.duckdb'}?table=visits"
    with sqlite3.connect(folder / f"{number}.sqlite") as lite:
        lite.execute("CREATE TABLE visits (who, pulse, weight, day, ward)")
        lite.executemany("INSERT INTO visits VALUES (?, ?, ?, ?, ?)", zip(*table.to_pydict().values(), strict=True))
    lite.close()
    yield "sqlite", f"sqlite:///{folder / f'{number}.sqlite'}?table=visits"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(TEXTS, CELLS), min_size=3, max_size=20))
def test_text_identifiers_give_one_table_in_every_source(rows: list[Any], tmp_path: Path) -> None:
    assert_equal_everywhere(rows, table_of(rows, pa.string()), tmp_path)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(NUMBERS, CELLS), min_size=3, max_size=20))
def test_whole_numbers_give_one_table_in_every_source(rows: list[Any], tmp_path: Path) -> None:
    assert_equal_everywhere(rows, table_of(rows, pa.int64()), tmp_path)


def assert_equal_everywhere(rows: list[Any], table: pa.Table, folder: Path) -> None:
    if people_in(rows) < 2:
        return
    wanted = records_of(table)
    assert len(wanted) == people_in(rows)
    for name, source in sources_of(table, folder):
        assert records_of(source) == wanted, name
        assert records_of(source, "tiles") == wanted, f"{name} on tiles"


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=st.lists(st.tuples(LARGE_NUMBERS, CELLS), min_size=3, max_size=12))
def test_large_numbers_are_never_rounded_to_another_person(rows: list[Any], tmp_path: Path) -> None:
    """A frame with missing cells has rounded them already: such a column is refused, and people are never merged."""
    if people_in(rows) < 2:
        return
    table = table_of(rows, pa.int64())
    wanted = records_of(table)
    assert len(wanted) == people_in(rows)
    for name, source in sources_of(table, tmp_path):
        is_rounded = name == "pandas" and source["who"].dtype == float and (source["who"].abs() >= 2**53).any()  # type: ignore[index]
        for engine in ("memory", "tiles"):
            if is_rounded:
                with pytest.raises(DataError, match="two people could share one"):
                    load_into(source, engine, schema=SCHEMA)
            else:
                assert records_of(source, engine) == wanted, (name, engine)


ROWS: list[Any] = [
    ("a", (1.0, 3, "x")),
    ("B ", (2.0, 1, "y")),
    (" A", (-3.0, 2, "x")),
    (None, (0.0, 0, "z")),
    ("b", (2.5, 1, "z")),
    ("12", (1.5, 2, "y")),
    ("12.0", (0.5, 3, "y")),
    (None, (3.0, 0, "x")),
]


@pytest.mark.slow
def test_postgresql_gives_the_same_table(postgres: Any) -> None:
    place = postgres.fresh()
    for number, (rows, kind, stored) in enumerate(
        [
            (ROWS, "text", pa.string()),
            ([(place % 3, cells) for place, (_, cells) in enumerate(ROWS)], "int8", pa.int64()),
        ]
    ):
        table = table_of(rows, stored)
        with psycopg.connect(place) as database:
            database.execute(
                f"CREATE TABLE visits{number} (who {kind}, pulse float8, weight float8, day int8, ward text)"
            )
            database.cursor().executemany(
                f"INSERT INTO visits{number} VALUES (%s, %s, %s, %s, %s)",
                list(zip(*table.to_pydict().values(), strict=True)),
            )
        for engine in ("memory", "tiles"):
            assert records_of(f"{place}?table=visits{number}", engine) == records_of(table)


@pytest.mark.slow
def test_spark_gives_the_same_table(tmp_path: Path) -> None:
    """A frame, a file and a folder that Spark reads, and a table that it is handed."""
    table = table_of(ROWS, pa.string())
    numbers = table_of([(7 + place % 3, cells) for place, (_, cells) in enumerate(ROWS)], pa.int64())
    with spark() as (engine, _):
        for number, rows in enumerate((table, numbers)):
            folder = tmp_path / str(number)
            pq.write_to_dataset(rows, folder, partition_cols=["ward"])
            pq.write_table(rows, tmp_path / "visits.parquet", row_group_size=2)
            frame = engine.find(tmp_path / "visits.parquet").frame
            for source in (frame, tmp_path / "visits.parquet", folder, rows):
                assert records_of(source, engine) == records_of(rows)
            rows_of_people = replace(SCHEMA.only(("pulse", "day")), person=Person(id="who", max_rows=1))
            kept = load_into(frame, engine, schema=rows_of_people)
            assert kept.n == len(records_of(rows))


@pytest.mark.slow
def test_spark_joins_as_memory_does(tmp_path: Path) -> None:
    rows = table_of(ROWS, pa.string())
    (tmp_path / "people.csv").write_text("who,income\nA ,7\nb,8\n")
    columns = (*(SCHEMA.columns or ()), Column("income", low=0, high=9, missing=1))
    schema = replace(SCHEMA, columns=columns, join=Join(table=str(tmp_path / "people.csv"), on="who"))
    pq.write_table(rows, tmp_path / "visits.parquet")
    with spark() as (engine, _):
        kept = load_into(tmp_path / "visits.parquet", engine, schema=schema)
        (incomes,) = zip(*kept.sheet.chunks([kept.columns.index("income")]), strict=True)
    assert sorted(np.concatenate(incomes)) == sorted(load(rows, schema=schema).cells("income"))


# Broken variants: each is a roll-up that somebody might write, and shows people that are not there.


def test_a_roll_up_per_file_is_told_apart(tmp_path: Path) -> None:
    table = table_of(ROWS, pa.string())
    for number, part in enumerate((table.slice(0, 4), table.slice(4))):
        pq.write_table(part, tmp_path / f"part-{number}.parquet")
    per_file = sorted(record for part in (table.slice(0, 4), table.slice(4)) for record in records_of(part))
    for engine in ("memory", "tiles"):
        whole = records_of(tmp_path, engine) if engine == "tiles" else records_of(table)
        assert whole == records_of(table) != per_file


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ("a", "A"),
        ("a", " a "),
        ("é", "e\u0301"),
        ("12", "12.0"),
        ("ａ", "a"),
        ("Strauß", "STRAUSS"),
        ("σας", "ΣΑΣ"),
        ("P 1", "P  1"),
        ("P 1", "P\u00a01"),
        ("P1", "\ufeffP1"),
        ("P1", "P\u200b1"),
        ("P1", "P1\x00"),
    ],
)
def test_ways_to_write_one_identifier_are_one_person(same: str, other: str) -> None:
    rows = [(same, (1.0, 0, "x")), (other, (2.0, 1, "x")), ("somebody else", (0.0, 0, "x"))]
    assert load(table_of(rows, pa.string()), schema=SCHEMA).n == 2


@pytest.mark.parametrize(("first", "second"), [("12", "012"), ("12", "1 2"), ("12.5", "12"), ("é", "e"), ("1e1", "10")])
def test_different_identifiers_stay_different_people(first: str, second: str) -> None:
    rows = [(first, (1.0, 0, "x")), (second, (2.0, 1, "x"))]
    assert load(table_of(rows, pa.string()), schema=SCHEMA).n == 2


@given(text=st.text())
def test_a_folded_identifier_is_folded_for_good(text: str) -> None:
    """Identifiers are compared before and after a roll-up, and in either case alike."""
    folded = fold_text(text)
    assert fold_text(folded) == folded == fold_text(f" {text}\u200b\t")
    (plain,) = plain_identifiers(pa.array([text]), "who").to_pylist()
    assert plain in (None, folded, folded.partition(".")[0])


TEXT_TYPES = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int16(), pa.string()))


@given(
    texts=st.lists(st.one_of(st.none(), st.text(alphabet="aB 0.é\x00", max_size=20)), max_size=40),
    kind=st.sampled_from(TEXT_TYPES),
    cut=st.integers(0, 40),
)
def test_codes_of_identifiers_are_those_of_arrow(texts: list[str | None], kind: pa.DataType, cut: int) -> None:
    """Short texts have a hash table of their own: in chunks, in slices and with cells that are missing."""
    chunks = pa.chunked_array([pa.array(part, pa.string()).cast(kind) for part in (texts[:cut], texts[cut:])])
    for cells in (chunks, chunks.slice(1)):
        people = PersonRows(cells, Person(id="who", max_rows=1))
        names = plain_identifiers(cells, "who").to_pylist()
        assert [people.ids[int(code)].as_py() for code in people.codes] == names
        assert people.people == len(set(names) - {None}) + names.count(None)
        assert people.sizes.tolist() == np.bincount(people.codes, minlength=people.people).tolist()


def test_a_table_of_many_identifiers_grows() -> None:
    names = [f"P{place % 30_000:06d}" for place in range(90_000)]
    people = PersonRows(pa.array(names), Person(id="who", max_rows=1))
    assert people.ids.to_pylist() == [name.lower() for name in names[:30_000]]
    assert (people.codes == np.tile(np.arange(30_000), 3)).all()


@pytest.mark.parametrize("width", [16, 32, 64])
def test_rounded_identifiers_are_refused(width: int) -> None:
    """Floating-point numbers of few bits stop being exact sooner."""
    exact = 2 ** {16: 11, 32: 24, 64: 53}[width]
    cells = pa.array(np.array([exact, 1.0], dtype=f"f{width // 8}"))
    with pytest.raises(DataError, match="two people could share one"):
        plain_identifiers(cells, "who")
    kept = plain_identifiers(pa.array(np.array([exact - 1, 1.0], dtype=f"f{width // 8}")), "who")
    assert kept.to_pylist() == [str(exact - 1), "1"]


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([["secret"], ["b"]]),
        pa.array([{"a": "secret"}, {"a": "b"}]),
        pa.array([b"\xffsecret", b"b"]),
        pa.RunEndEncodedArray.from_arrays([1, 2], ["secret", "b"]),
    ],
    ids=["list", "struct", "bytes", "runs"],
)
def test_cells_that_are_no_identifiers_are_refused_without_quoting_them(cells: pa.Array) -> None:
    rows = table_of([("a", (1.0, 0, "x")), ("b", (2.0, 0, "x"))], pa.string()).set_column(0, "who", cells)
    for engine in ("memory", "tiles"):
        with pytest.raises(DataError) as caught:
            load_into(rows, engine, schema=SCHEMA)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None


def test_floating_point_identifiers_that_are_not_whole_are_refused() -> None:
    frame = table_of(ROWS, pa.string()).to_pandas().assign(who=[0.5, 1.0, 2.0, np.nan, 1.0, 2.0, 3.0, 4.0])
    for engine in ("memory", "tiles"):
        with pytest.raises(DataError, match="two people could share one"):
            load_into(frame, engine, schema=SCHEMA)
    assert len(records_of(frame.assign(who=pd.Series([1.0, 1.0, 2.0, np.nan, 1.0, 2.0, 3.0, 4.0])))) == 5
