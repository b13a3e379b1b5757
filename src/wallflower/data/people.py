"""Bring the rows of each person together: one record per person, or at most a few rows of each.

Everything here is a function of one person's rows at a time. A rolled-up record is computed from the rows with one
identifier and from no other row, whatever order the source is read in, so replacing a person replaces one record (Y1).
Which rows `max_rows` keeps is decided by secret random numbers and by how many rows a person has, never by what is in
them, so replacing a person's kept rows replaces at most that many records (Y2). Proofs: proof.md of `ledger`.
"""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from wallflower.data.cells import fit_cells
from wallflower.data.sources.files import read, select
from wallflower.data.sources.texts import MISSING
from wallflower.engines.local import FOLDER as SCRATCH_FOLDER
from wallflower.errors import DataError, ParameterError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.machine.heavy import pyarrow_types as _types
from wallflower.machine.jit import kernel
from wallflower.schema import Column, Schema, WayToRead
from wallflower.schema.columns import float_array, numbers_of, text_array
from wallflower.schema.person import LABEL_AGGREGATES, UNBOUNDED_AGGREGATES, Person

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROWS_PER_PART: Final = 1 << 22  # rows that a roll-up holds in memory at a time


class PersonRows:
    """The rows of a table by person: `order` lists rows person after person, `starts` says where each one begins."""

    def __init__(self, identifiers: Any, person: Person) -> None:
        codes, self.ids = _encode_identifiers(identifiers, person)
        self.order, self.starts = _sort_by_code(codes, len(self.ids))

    @property
    def people(self) -> int:
        """The number of people."""
        return len(self.ids)

    @property
    def sizes(self) -> Ints:
        """The number of rows of each person."""
        return np.diff(self.starts)

    def gather(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values person after person, those of one person in rising order: the order of rows does not count."""
        gathered = values[self.order].astype(np.float64)
        _sort_segments(gathered, self.starts)
        return gathered


def roll_up(table: Any, schema: Schema, *, ordered: bool = True) -> Any:
    """Make one record of the rows of each person, as an Arrow table; the schema describes the records.

    table   rows with the columns that `Person.source_columns` names
    schema  with `person.rollup`, and the bounds of the records
    ordered the source has an order of its own: without one, `first` and `last` need a column that orders rows
    """
    person = _person_of(schema)
    if person.order is None and not ordered and {"first", "last"} & set((person.rollup or {}).values()):
        raise ParameterError(
            "person.rollup: this source has no order of its own, and `first` and `last` need one. State `order` in "
            "[person], the column that orders the rows of a person."
        )
    groups = PersonRows(table[person.id], person)
    ranks = np.arange(table.num_rows) if person.order is None else _order_ranks(table[person.order], person)
    columns = {column.name: column for column in record_schema(schema).columns or ()}
    records = {person.id: groups.ids}
    for name, aggregate in (person.rollup or {}).items():
        column = columns[name]
        if aggregate == "count":
            records[name] = float_array(groups.sizes.astype(np.float64))
            continue
        cells = fit_cells(table[name], _row_facts(_source_facts(schema, name), aggregate), schema.clip)
        records[name] = _aggregate(aggregate, cells, column, groups, ranks)
    return _pa.table(records)


def roll_up_chunks(chunks: Iterable[Any], schema: Schema, *, rows: int, ordered: bool) -> Iterator[Any]:
    """Roll up a source that is read in chunks: rows are first parted by identifier, so that memory holds one part.

    A part has all rows of its people. Which part a person is in follows from the identifier alone.
    """
    person = _person_of(schema)
    parts = max(1, -(-rows // ROWS_PER_PART))
    with _Parts(parts) as files:
        for chunk in chunks:
            part = _part_of(chunk[person.id], parts)
            for number in np.unique(part).tolist():
                files.write(number, chunk.take(_pa.array(np.flatnonzero(part == number))))
        for table in files.tables():
            yield roll_up(table, schema, ordered=ordered)


class _Parts:
    """Arrow tables in scratch files without names, one for each part; gone with the process."""

    def __init__(self, parts: int) -> None:
        self._stack, self._writers = ExitStack(), dict[int, Any]()
        folder = os.environ.get(SCRATCH_FOLDER)
        make = partial(tempfile.TemporaryFile, dir=folder)
        self._files = [self._stack.enter_context(make()) for _ in range(parts)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def write(self, number: int, table: Any) -> None:
        if number not in self._writers:
            self._writers[number] = _pa.ipc.new_stream(self._files[number], table.schema)
        self._writers[number].write_table(table)

    def tables(self) -> Iterator[Any]:
        """Return each part that has rows, whole."""
        for number, writer in sorted(self._writers.items()):
            writer.close()
            self._files[number].seek(0)
            with _pa.ipc.open_stream(self._files[number]) as stream:
                yield stream.read_all()


def _part_of(identifiers: Any, parts: int) -> Ints:
    """The part of each row: a checksum of its normalised identifier. Rows without one go to the first part."""
    coded = _plain_identifiers(identifiers).dictionary_encode()
    numbers = np.array([0, *(zlib.crc32(text.encode()) % parts for text in coded.dictionary.to_pylist())])
    return numbers[numbers_of(_compute.fill_null(coded.indices, -1)).astype(np.int64) + 1]


def choose_rows(groups: PersonRows, max_rows: int, order: Callable[[int, int], Ints]) -> Ints:
    """Choose at most `max_rows` rows of each person by a secret random order of all rows, whatever is in them.  (Y2)

    order  returns that many different row numbers below a bound, in random order (`noise.sample` of a release)

    >>> identifiers = text_array(["a", "b", "a", "a"])
    >>> groups = PersonRows(identifiers, Person(id="name", max_rows=2))
    >>> choose_rows(groups, 2, lambda bound, size: np.arange(size)).tolist()
    [0, 1, 2]
    """
    rows = len(groups.order)
    rank = np.empty(rows, dtype=np.int64)
    rank[order(rows, rows)] = np.arange(rows)
    shuffled = groups.order[_argsort_segments(rank[groups.order], groups.starts)]
    place_within_person = np.arange(rows) - np.repeat(groups.starts[:-1], groups.sizes)
    return np.sort(shuffled[place_within_person < max_rows])


def record_schema(schema: Schema) -> Schema:
    """Return the schema of the records that `roll_up` makes: dates are numbers by then, and no cell is missing.

    >>> person = Person(id="patient", rollup={"visits": "count"})
    >>> record_schema(Schema(columns=(Column("visits", low=0, high=20),), person=person)).names
    ('patient', 'visits')
    """
    person = schema.person
    if person is None:
        return schema
    if person.rollup is None:
        stated = schema.columns
        if stated is None or person.id in (schema.names or ()):
            return schema
        return replace(schema, columns=(Column(person.id, identifier=True), *stated))
    columns = [Column(person.id, identifier=True)]
    for name, aggregate in person.rollup.items():
        facts = _source_facts(schema, name)
        if aggregate in UNBOUNDED_AGGREGATES and (facts.low is None or facts.high is None):
            raise ParameterError(
                f"person.rollup: {aggregate} of column {name!r} grows with the number of rows. State its low and high "
                "in the schema; larger values are clipped or refused."
            )
        if facts.categories is not None and aggregate not in LABEL_AGGREGATES:
            raise ParameterError(
                f"person.rollup: column {name!r} has labels, which take {', '.join(LABEL_AGGREGATES)}. "
                "Correct the schema."
            )
        columns.append(
            replace(facts, unit=None, since=None, layout=None, missing=None, integer=_stays_whole(facts, aggregate))
        )
    return replace(schema, columns=tuple(columns))


def most_rows_of_one(source: object, column: str, **written: Unpack[WayToRead]) -> int:
    """Return the largest number of rows that share one identifier. It depends on records: for the data steward only."""
    _, wanted = select(Schema(columns=(Column(column, identifier=True),)).but_read(written))
    rows = PersonRows(read(source, wanted).table[column], Person(id=column, max_rows=1))
    return int(rows.sizes.max(initial=0))


def _person_of(schema: Schema) -> Person:
    assert schema.person is not None
    return schema.person


def _source_facts(schema: Schema, name: str) -> Column:
    return next((column for column in schema.columns or () if column.name == name), Column(name))


def _row_facts(column: Column, aggregate: str) -> Column:
    """The facts that single rows are held to: bounds of a sum are those of the record, not of a row."""
    return replace(column, low=None, high=None) if aggregate in UNBOUNDED_AGGREGATES else column


def _stays_whole(column: Column, aggregate: str) -> bool:
    return column.integer and aggregate not in ("mean", "median")


def _encode_identifiers(cells: Any, person: Person) -> tuple[Ints, Any]:
    """A code for each row and the identifier of each code. Case and surrounding spaces do not make another person."""
    people = _plain_identifiers(cells).dictionary_encode()
    codes = numbers_of(_compute.fill_null(people.indices, -1)).astype(np.int64)
    alone = np.flatnonzero(codes < 0)
    if len(alone) and person.missing_id == "refuse":
        raise DataError(
            f"column {person.id!r} has rows without an identifier, which the schema refuses. Complete them, or state "
            'missing_id = "own": each such row is then a person of its own.',
            column=person.id,
        )
    codes[alone] = len(people.dictionary) + np.arange(len(alone))
    used, codes = np.unique(codes, return_inverse=True)
    names = _pa.concat_arrays([people.dictionary, text_array([None] * len(alone))])
    return codes.astype(np.int64), names.take(_pa.array(used))


def _plain_identifiers(cells: Any) -> Any:
    """Identifiers as they are compared: without case and surrounding spaces; missing ones are null."""
    texts = cells.cast(_pa.string())
    coded = (texts.combine_chunks() if isinstance(texts, _pa.ChunkedArray) else texts).dictionary_encode()
    plain = _compute.utf8_lower(_compute.utf8_trim_whitespace(_compute.utf8_normalize(coded.dictionary, form="NFKC")))
    is_missing = _compute.is_in(plain, value_set=text_array(MISSING))
    return _compute.if_else(is_missing, text_array([None])[0], plain).take(coded.indices)


def _order_ranks(cells: Any, person: Person) -> NDArray[Any]:
    """Ranks of the cells of the column that orders rows: numbers, dates, or texts such as 2001-12-31."""
    whole = cells.combine_chunks() if isinstance(cells, _pa.ChunkedArray) else cells
    if _types.is_string(whole.type) or _types.is_large_string(whole.type):
        try:
            whole = whole.cast(_pa.timestamp("us"))
        except _pa.ArrowInvalid:
            whole = None
    if whole is None or whole.null_count:
        raise DataError(
            f"column {person.order!r} orders the rows of a person: every row needs a number or a date (2001-12-31)."
            " Correct the data, or choose another column.",
            column=person.order,
        )
    ranks = _compute.rank(whole, sort_keys="ascending", tiebreaker="dense")
    return numbers_of(ranks).astype(np.int64)


def _aggregate(aggregate: str, cells: Any, column: Column, groups: PersonRows, ranks: Ints) -> Any:
    has_labels = column.categories is not None
    values = numbers_of(cells.indices if has_labels else cells)
    if aggregate in ("first", "last"):
        ordered = values[groups.order].astype(np.float64)
        result = _pick_of_segments(ordered, ranks[groups.order], groups.starts, aggregate == "last")
    else:
        result = _REDUCTIONS[aggregate](groups.gather(values), groups.starts)
    if has_labels:
        return _pa.DictionaryArray.from_arrays(_pa.array(result.astype(np.int32)), text_array(column.labels))
    return float_array(result)


def _sum(values: Floats, starts: Ints) -> Floats:
    totals: Floats = np.add.reduceat(values, starts[:-1])
    return totals


def _mean(values: Floats, starts: Ints) -> Floats:
    means: Floats = _sum(values, starts) / np.diff(starts)
    return means


def _median(values: Floats, starts: Ints) -> Floats:
    sizes = np.diff(starts)
    low, high = values[starts[:-1] + (sizes - 1) // 2], values[starts[:-1] + sizes // 2]
    medians: Floats = np.where(low == high, low, low / 2 + high / 2)
    return medians


def _mode(values: Floats, starts: Ints) -> Floats:
    return np.asarray(_mode_of_segments(values, starts))


def _any(values: Floats, starts: Ints) -> Floats:
    return (np.maximum.reduceat(np.abs(values), starts[:-1]) > 0).astype(np.float64)


def _all(values: Floats, starts: Ints) -> Floats:
    return (np.minimum.reduceat(np.abs(values), starts[:-1]) > 0).astype(np.float64)


# Values come sorted within each person, so that sums and ties do not depend on the order of rows.
_REDUCTIONS: Final[Mapping[str, Callable[[Floats, Ints], Floats]]] = {
    "min": lambda values, starts: values[starts[:-1]],
    "max": lambda values, starts: values[starts[1:] - 1],
    "sum": _sum,
    "mean": _mean,
    "median": _median,
    "mode": _mode,
    "any": _any,
    "all": _all,
}


def _sort_by_code(codes: Ints, people: int) -> tuple[Ints, Ints]:
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=people))]).astype(np.int64)
    return _scatter_rows(codes, starts), starts


@kernel
def _scatter_rows(codes: Ints, starts: Ints) -> Ints:
    """Counting sort: rows by code, those of one code in their order."""
    cursor = starts[:-1].copy()
    order = np.empty(len(codes), dtype=np.int64)
    for row in range(len(codes)):
        order[cursor[codes[row]]] = row
        cursor[codes[row]] += 1
    return order


@kernel
def _sort_segments(values: Floats, starts: Ints) -> None:
    """Sort each segment in place; most people have few rows."""
    for segment in range(len(starts) - 1):
        if starts[segment + 1] - starts[segment] > 1:
            values[starts[segment] : starts[segment + 1]] = np.sort(values[starts[segment] : starts[segment + 1]])


@kernel
def _argsort_segments(keys: Ints, starts: Ints) -> Ints:
    """Positions that sort each segment by its keys, which may repeat."""
    order = np.arange(len(keys))
    for segment in range(len(starts) - 1):
        first, last = starts[segment], starts[segment + 1]
        if last - first > 1:
            order[first:last] = first + np.argsort(keys[first:last], kind="mergesort")
    return order


@kernel
def _pick_of_segments(values: Floats, ranks: Ints, starts: Ints, pick_last: bool) -> Floats:
    """The value of the least rank of each segment, or of the greatest. Of equal ranks the smallest value is first and
    the largest last, so that the order of rows does not count."""
    picked = np.empty(len(starts) - 1)
    for segment in range(len(starts) - 1):
        best = starts[segment]
        for position in range(starts[segment] + 1, starts[segment + 1]):
            ahead = ranks[position] - ranks[best] if pick_last else ranks[best] - ranks[position]
            larger = values[position] - values[best] if pick_last else values[best] - values[position]
            if ahead > 0 or (ahead == 0 and larger > 0):
                best = position
        picked[segment] = values[best]
    return picked


@kernel
def _mode_of_segments(values: Floats, starts: Ints) -> Floats:
    """The most frequent value of each sorted segment; of several, the smallest."""
    modes = np.empty(len(starts) - 1)
    for segment in range(len(starts) - 1):
        best, run, start = 0, 0, starts[segment]
        for position in range(starts[segment], starts[segment + 1]):
            if position > starts[segment] and values[position] != values[position - 1]:
                start = position
            run = position - start + 1
            if run > best:
                best = run
                modes[segment] = values[position]
    return modes
