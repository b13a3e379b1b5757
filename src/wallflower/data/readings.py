"""Bring readings in long format together: one record for each time, with an entry for each person.

Readings come as rows of an identifier, a time and a value. A watch reads a record for each time, with a column for each
person. The entry of a person at a time is computed from her readings at that time and from nothing else, so that
replacing all readings of a person replaces one entry of each record, and replacing those of one time replaces one entry
of one record (Y4). Which people and which times there are is public. Proof: proof.md of `ledger`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data.people import PersonRows, record_schema, roll_up
from wallflower.errors import DataError, ParameterError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.machine.heavy import pyarrow_types as _types
from wallflower.schema import Column, Schema
from wallflower.schema.columns import call_or_refuse, float_array, numbers_of, text_array
from wallflower.schema.person import Person

Ints = NDArray[np.int64]

MAX_CELLS: Final = 10**9  # of the table that is made: times by people


def pivot(table: Any, schema: Schema, *, ordered: bool = True) -> tuple[Any, Schema]:
    """Make one record of the readings of each time, as an Arrow table with its schema.  (Y4)

    Records are sorted by time. A column is called as the identifier of its person is compared, in small
    letters, and columns are sorted by these names. Several readings of a person at one time are brought
    together by the aggregate of the roll-up; where there is none, `missing` of the value's column is the entry.

    table   readings with the columns that `Person.source_columns` names
    schema  with `person.time`, and the bounds of an entry
    ordered the source has an order of its own, as for `roll_up`
    """
    person = schema.person
    assert person is not None
    assert person.time is not None
    people, names = _encode_people(table[person.id], person)
    times, labels = _encode_times(table[person.time], person.time)
    if len(names) * len(labels) > MAX_CELLS:
        raise DataError(f"the stream has more than {MAX_CELLS:,} entries, times by people. Load a part of it.")
    columns = _stream_columns(schema, person.time, names)
    entries = np.full((len(labels), len(names)), np.nan)
    places, values = _aggregate_readings(table, schema, people * len(labels) + times, ordered=ordered)
    entries[places % len(labels), places // len(labels)] = values
    _fill(entries, schema)
    cells = {name: float_array(np.ascontiguousarray(entries[:, place])) for place, name in enumerate(names)}
    return _pa.table({person.time: text_array(labels), **cells}), replace(schema, columns=columns, person=None)


def _aggregate_readings(table: Any, schema: Schema, cells: Ints, *, ordered: bool) -> tuple[Ints, NDArray[np.float64]]:
    """Roll up the readings of each cell, as if a person and a time together were a person; return cells and entries."""
    person = schema.person
    assert person is not None
    long = table.set_column(table.column_names.index(person.id), person.id, _pa.array(cells).cast(_pa.string()))
    facts = replace(schema, person=replace(person, time=None), protects=None)
    records = roll_up(long, facts, ordered=ordered)
    value = _value_of(person)
    return numbers_of(records[person.id].cast(_pa.int64())), numbers_of(records[value])


def _stream_columns(schema: Schema, time: str, names: list[str]) -> tuple[Column, ...]:
    """The public facts of the records: a time, and for each person those of the value."""
    facts = (record_schema(schema).columns or ())[-1]
    if facts.categories is not None:
        raise ParameterError(
            f"person.rollup: column {facts.name!r} has labels, and an entry of a stream is a number. Choose another."
        )
    if time in names:
        raise DataError(
            f"column {time!r} holds the times, and an identifier is called so too. Rename the column.", column=time
        )
    return (Column(time, time=True), *(replace(facts, name=name) for name in names))


def _encode_people(identifiers: Any, person: Person) -> tuple[Ints, list[str]]:
    """The place of each reading's person among their names, and the names in order; none may be missing."""
    rows = PersonRows(identifiers, replace(person, missing_id="own"))
    if rows.ids.null_count:
        raise DataError(
            f"column {person.id!r} has readings without an identifier, and an entry of a stream belongs to somebody. "
            "Complete them, or leave those readings out.",
            column=person.id,
        )
    names = rows.ids.to_pylist()
    order = sorted(range(len(names)), key=names.__getitem__)
    place_of_code = np.empty(len(names), dtype=np.int64)
    place_of_code[order] = np.arange(len(names))
    places = np.empty(len(rows.order), dtype=np.int64)
    places[rows.order] = np.repeat(place_of_code, rows.sizes)
    return places, [names[code] for code in order]


def _encode_times(cells: Any, column: str) -> tuple[Ints, list[str]]:
    """The place of each reading's time, and the times in order as texts; one time may be written in several ways."""
    whole = cells.combine_chunks() if isinstance(cells, _pa.ChunkedArray) else cells
    texts = call_or_refuse(lambda: whole.cast(_pa.string()), lambda _: _no_times(column))
    moments = _read_moments(whole)
    if moments is None or moments.null_count or (_types.is_floating(moments.type) and _has_nan(moments)):
        raise _no_times(column)
    places = numbers_of(_compute.rank(moments, sort_keys="ascending", tiebreaker="dense")).astype(np.int64) - 1
    spelling = _compute.sort_indices(
        _pa.table({"place": places, "text": texts}), sort_keys=[("place", "ascending"), ("text", "ascending")]
    )
    spelt = numbers_of(spelling).astype(np.int64)
    _, first = np.unique(places[spelt], return_index=True)
    return places, texts.take(_pa.array(spelt[first])).to_pylist()


def _no_times(column: str) -> DataError:
    return DataError(
        f"column {column!r} holds the times of readings: every one needs a number or a date (2001-12-31 23:59), "
        "all of them with a time zone or none. Correct the data.",
        column=column,
    )


def _read_moments(cells: Any) -> Any:
    """Cells as numbers or dates that can be sorted; None where they cannot be read. Whole numbers are not rounded."""
    if not (_types.is_string(cells.type) or _types.is_large_string(cells.type)):
        return cells
    trimmed = _compute.utf8_trim_whitespace(cells)
    for kind in (_pa.int64(), _pa.float64(), _pa.timestamp("us"), _pa.timestamp("us", "UTC")):
        try:
            return trimmed.cast(kind)
        except _pa.ArrowInvalid:
            continue
    return None


def _value_of(person: Person) -> str:
    """The column of values: a stream has one."""
    (value,) = tuple(person.rollup or ())
    return value


def _has_nan(cells: Any) -> bool:
    return bool(_compute.any(_compute.is_nan(cells)).as_py())


def _fill(entries: NDArray[np.float64], schema: Schema) -> None:
    """Put the public constant where a person has no reading, or refuse the stream."""
    assert schema.person is not None
    value = _value_of(schema.person)
    constant = next((column.missing for column in schema.columns or () if column.name == value), None)
    is_absent = np.isnan(entries)
    if constant is None and is_absent.any():
        raise DataError(
            f"column {value!r}: a person has no reading at some time, and every entry needs a value. State a public "
            "constant for those (missing = ... in the schema), or complete the readings.",
            column=value,
        )
    entries[is_absent] = np.nan if constant is None else float(constant)
