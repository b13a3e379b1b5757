"""Join the columns of a second table, with one row per identifier, to the records of the first.

The join is a function of a record's identifier and of the second table's row with that identifier, if there is one. It
neither adds nor removes a record, and no row of the second table enters the records of two people: with `person` the
records or rows of one identifier are one person's, and without it no identifier may repeat (Y3). Proof: proof.md of
`ledger`. Identifiers are compared as those of people are, by `plain_identifiers`; a missing one matches none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.data.people import PersonRows
from wallflower.data.sources.files import read_second
from wallflower.errors import DataError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.schema import Column, Schema
from wallflower.schema.columns import list_names, numbers_of
from wallflower.schema.person import Person

Ints = NDArray[np.int64]
_NO_ROW = -1


class SecondTable:
    """The second table of a join, in memory: `join` adds its columns to the records of the first, part by part."""

    def __init__(self, table: Any, schema: Schema) -> None:
        assert schema.join is not None
        self._schema, self._on, self._columns = schema, schema.join.on, schema.join.columns or ()
        self._table = table
        rows = _rows_by_identifier(table, self._on)
        if _repeats(rows):
            raise DataError(
                f"join: column {self._on!r} of the second table repeats, and a join needs one row per identifier. "
                "Make one row of those with the same identifier.",
                column=self._on,
            )
        self._ids = rows.ids
        self._row_of_id = np.append(rows.order[rows.starts[:-1]], 0)  # at `_NO_ROW`: any, since it is masked
        self._is_used = np.zeros(len(rows.ids), dtype=np.bool_)
        self._unmatched = set[str]()

    @classmethod
    def read(cls, schema: Schema, *, limit_bytes: int | None = None) -> Self:
        """Read the second table of a schema whose join names its columns, as `select` returns it."""
        assert schema.join is not None
        return cls(read_second(schema, schema.join.columns, limit_bytes=limit_bytes), schema)

    def joined_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of the records, after the join: the identifier stays where the schema wants it."""
        return (*(name for name in names if name != self._on or self._keeps_identifier), *self._columns)

    def join(self, table: Any) -> Any:
        """Return records of the first table with the columns of the second.  (Y3)"""
        if set(self._columns) & set(table.column_names):
            raise DataError(
                "join: both tables have a column of the same name. Rename one, or state `columns` in [join].",
                column=self._on,
            )
        place = self._match(_rows_by_identifier(table, self._on))
        rows = _pa.array(self._row_of_id[place], mask=place == _NO_ROW)
        cells = {name: self._table[name].take(rows) for name in self._columns}
        self._require_filled(place)
        return _pa.table({n: cells[n] if n in cells else table[n] for n in self.joined_names(table.column_names)})

    def _match(self, rows: PersonRows) -> Ints:
        """Return the place of each row's identifier in the second table, or `_NO_ROW`."""
        places = _compute.index_in(rows.ids, value_set=self._ids, skip_nulls=True)
        place_of_id = numbers_of(_compute.fill_null(places, _NO_ROW)).astype(np.int64)
        if self._schema.person is None:
            self._require_unique(rows, place_of_id)
        place = np.empty(len(rows.order), dtype=np.int64)
        place[rows.order] = np.repeat(place_of_id, rows.sizes)
        return place

    def _require_unique(self, rows: PersonRows, place_of_id: Ints) -> None:
        """Refuse an identifier that repeats in the first table, in this part or an earlier one."""
        is_matched = place_of_id != _NO_ROW
        matched = place_of_id[is_matched]
        unmatched = rows.ids.take(_pa.array(np.flatnonzero(~is_matched))).drop_null().to_pylist()
        if _repeats(rows) or self._is_used[matched].any() or not self._unmatched.isdisjoint(unmatched):
            raise DataError(
                f"join: column {self._on!r} of the first table repeats, so that one row of the second would be in "
                "several records. Declare [person] with this identifier, or make one record of those rows.",
                column=self._on,
            )
        self._is_used[matched] = True
        self._unmatched.update(unmatched)

    def _require_filled(self, place: Ints) -> None:
        """Refuse records without a row in the second table, unless a public constant stands for its cells."""
        columns = {column.name: column for column in self._schema.columns or ()}
        gaps = [name for name in self._columns if not _is_filled(columns.get(name) or Column(name))]
        if gaps and (place == _NO_ROW).any():
            raise DataError(
                f"join: the second table lacks a row for some records, and nothing stands for {list_names(gaps)} of "
                "these. Complete the second table, or state a public constant (missing = ... in the schema).",
                column=gaps[0],
            )

    @property
    def _keeps_identifier(self) -> bool:
        return self._schema.person is not None or self._on in (self._schema.names or ())


def _rows_by_identifier(table: Any, column: str) -> PersonRows:
    return PersonRows(table[column], Person(id=column, max_rows=1))


def _repeats(rows: PersonRows) -> bool:
    return bool((rows.sizes > 1).any())


def _is_filled(column: Column) -> bool:
    return column.missing is not None or column.other is not None or column.identifier
