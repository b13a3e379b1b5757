"""The data room: private records held to public facts (`Table`), and the numbers a question looks at (`Points`).

Every refusal comes while loading, before a question is asked and paid for. Messages and reprs hold public facts only:
names, types, bounds and the number of records, never a value, nor how many of them were wrong or where.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.data.cells import (
    ROWS,
    check_numbers,
    clip_cells,
    coded_names,
    fit_cells,
    group_cells,
    hold_finite,
    is_text,
    measured_names,
    no_identifier,
    not_numbers,
    number_names,
    places_of,
    require_values,
    scale_columns,
    type_of,
)
from wallflower.data.joins import SecondTable
from wallflower.data.people import PersonRows, choose_rows, plain_identifiers, record_schema, roll_up
from wallflower.data.readings import pivot
from wallflower.data.sources.files import number_columns, read, select, view_matrix
from wallflower.data.tiled_table import TiledPoints, TiledTable
from wallflower.errors import DataError, EngineMismatch
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.names import name_from_file
from wallflower.schema import Column, Schema, WayToRead
from wallflower.schema.columns import SourceTable, numbers_of, pick, text_array
from wallflower.schema.schema import require_rows

__all__ = [
    "Column",
    "Points",
    "Schema",
    "Table",
    "TiledPoints",
    "TiledTable",
    "describe",
    "load",
    "points_of",
    "survey",
]


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Points:
    """Records as numbers, publicly scaled.

    values   float64, n by dimension, finite and read-only
    columns  the names of the columns
    name     the name that the budget is tracked under
    schema   the public facts that they were read by
    """

    values: Floats
    columns: tuple[str, ...]
    name: str
    schema: Schema

    def __post_init__(self) -> None:
        if self.values.shape[1:] != (len(self.columns),) or not self.n or not np.isfinite(self.values).all():
            raise DataError("points are one record or more, a finite number for each column. Use load or from_array.")
        object.__setattr__(self, "values", _make_read_only(np.array(self.values, dtype=np.float64, order="C")))

    @classmethod
    def from_array(
        cls,
        array: ArrayLike,
        columns: Sequence[str] | None = None,
        name: str = "unnamed",
        schema: Schema | None = None,
    ) -> Self:
        """Points from a 2-D array; with a schema its values are bounded and scaled as `load` would.

        array    rows of numbers, one for each record
        columns  a name for each column; default: the schema's, then x1, x2, …
        name     the name that the budget is tracked under
        schema   public facts: bounds, centers, scales

        >>> Points.from_array([[1.0, 2.0], [3.0, 4.0]], name="people")
        Points(name='people', n=2, columns=('x1', 'x2'))
        """
        values, schema = view_matrix(array), schema or Schema()
        names = tuple(columns or schema.names or number_columns(values.shape[1]))
        if len(names) != values.shape[1] or not len(values):
            raise DataError("an array needs a record, and a name for each of its columns. Pass columns=[...] to match.")
        if schema.columns is not None:
            pick(names, schema.numbers)
        facts = schema.only(names)
        for start in range(0, len(values), ROWS):
            rows = np.ascontiguousarray(values[start : start + ROWS].T)
            for column, cells in zip(facts.columns or (), rows, strict=True):
                check_numbers(cells, column, schema.clip)
        return cls(values=scale_columns(values.T, facts), columns=names, name=name, schema=facts)

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.values)

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """For each column, which coordinates of `values` it is: one, or of three labels and more, one a label."""
        return places_of(self.columns, self.schema)

    def __len__(self) -> int:
        return self.n

    def subspace(self, names: Iterable[str]) -> Points:
        """The same records, seen in these columns only."""
        chosen = pick(names, self.columns)
        values = self.values[:, [self.columns.index(name) for name in chosen]]
        return Points(values=values, columns=chosen, name=self.name, schema=self.schema.only(chosen))

    def rescale(self, scales: Mapping[str, float]) -> Points:
        """The same records by other public scales, column by column; the others keep theirs."""
        facts = self.schema.only(self.columns)
        ratios = [float(c.scale) / scales.get(c.name, c.scale) for c in facts.columns or ()]
        with np.errstate(over="ignore"):
            values = hold_finite(self.values * np.array(ratios))
        return Points(values=values, columns=self.columns, name=self.name, schema=facts.rescale(scales))

    def times(self, column: str) -> list[str]:
        """When each record was observed; here nobody has said."""
        raise DataError(
            f"column {column!r} was asked for as a time, and these are numbers alone. Open a table whose schema states "
            "`time = true` for it.",
            column=column,
        )

    def __repr__(self) -> str:
        return f"Points(name={self.name!r}, n={self.n}, columns={self.columns!r})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Table:
    """Private records that fit their public schema: numbers as they came, labels coded by their categories.

    arrow    the records themselves
    schema   their public facts
    name     the name that the budget is tracked under
    ordered  the source has an order of its own, so a row number names a record
    people   the rows by person, where the schema keeps a few rows of each: `draw` chooses them, query by query
    """

    arrow: Any
    schema: Schema
    name: str
    ordered: bool = True
    people: PersonRows | None = None

    def __post_init__(self) -> None:
        if self.n < 2:
            raise DataError(
                f"{self.name}: fewer than two records, and one record has no neighbours. Load more of them."
            )
        require_rows(self.schema, self.n, self.name)
        is_stated = self.schema.columns is not None
        object.__setattr__(self, "schema", self.schema.only(self.columns))
        counted = [column.name for column in self.schema.columns or () if column.unit is not None]
        text = [name for name in self.numbers if is_text(self.arrow[name].type) and name not in counted]
        if text:
            raise not_numbers(text, is_public=is_stated or len(text) < self.dimension)
        columns = self.schema.columns or ()
        require_values({column.name: self.arrow[column.name] for column in columns}, columns)
        fitted = {column.name: fit_cells(self.arrow[column.name], column, self.schema.clip) for column in columns}
        object.__setattr__(self, "arrow", _pa.table(fitted))
        if self.max_rows is not None:
            assert self.schema.person is not None
            object.__setattr__(self, "people", PersonRows(self.arrow[self.schema.person.id], self.schema.person))

    @property
    def max_rows(self) -> int | None:
        """The number of rows of each person that a query may see, where the schema limits it."""
        return None if self.schema.person is None else self.schema.person.max_rows

    @property
    def n(self) -> int:
        """The number of records that a query sees."""
        if self.people is None or self.max_rows is None:
            return int(self.arrow.num_rows)
        return int(np.minimum(self.people.sizes, self.max_rows).sum())

    def draw(self, order: Callable[[int, int], NDArray[np.int64]]) -> Table:
        """Return the table that one query looks at: at most `max_rows` rows of each person, drawn in secret.  (Y2)"""
        if self.people is None or self.max_rows is None:
            return self
        rows = choose_rows(self.people, self.max_rows, order)
        drawn = copy(self)
        object.__setattr__(drawn, "arrow", self.arrow.take(_pa.array(rows)))
        object.__setattr__(drawn, "people", None)
        return drawn

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.arrow.column_names)

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that points are made of."""
        return self.schema.numbers

    def require(self, columns: Iterable[str] = (), *, rows: int = 2) -> Self:
        """Return this table, or refuse it from public facts: these columns as numbers, and that many records."""
        chosen = tuple(columns)
        if chosen:
            number_names(chosen, self.columns, self.schema)
        if self.n < rows:
            raise DataError(f"{self.name}: the question needs {rows} records or more. Ask it of a larger table.")
        return self

    def points(self, columns: Iterable[str] | None = None, *, labels: bool = False) -> Points:
        """The number columns (or those named), scaled by the public schema; with `labels`, weighted labels too."""
        if not labels:
            return TablePoints(self, number_names(columns, self.columns, self.schema))
        return TablePoints(self, measured_names(columns, self.columns, self.schema))

    def coded_points(self, columns: Iterable[str] | None = None) -> Points:
        """The numbers, scaled by the public schema, and the labels as codes: one coordinate for each column."""
        coded = copy(self)
        object.__setattr__(coded, "schema", self.schema.coded())
        return TablePoints(coded, coded_names(columns, self.columns, self.schema))

    def rescale(self, scales: Mapping[str, float]) -> Table:
        """The same records by other public scales, column by column; the others keep theirs. Nothing is refused."""
        rescaled = copy(self)
        object.__setattr__(rescaled, "schema", self.schema.rescale(scales))
        return rescaled

    def codes(self, column: str) -> NDArray[np.int64]:
        """Labels as places in the public categories, or numbers as places between the public edges."""
        self._require_drawn()
        (name,) = pick([column], self.columns)
        facts, cells = next(known for known in self.schema.columns or () if known.name == name), self.arrow[name]
        labelled = facts.categories is not None
        return group_cells(numbers_of(cells.combine_chunks().indices if labelled else cells), facts)

    def coordinates(self, column: str) -> NDArray[Any]:
        """What points are made of: the numbers of a column as they came, or the codes of its labels."""
        self._require_drawn()
        return self.codes(column) if self.schema.only([column]).numbers == () else numbers_of(self.arrow[column])

    def cells(self, column: str) -> Floats:
        """The numbers of a column in their own unit, moved into their bounds."""
        self._require_drawn()
        (name,) = number_names([column], self.columns, self.schema)
        (facts,) = self.schema.only([name]).columns or ()
        return clip_cells(numbers_of(self.arrow[name]), facts)

    def row(self, column: str, wanted: str) -> int:
        """The row of the one record with this identifier."""
        self._require_drawn()
        (name,) = pick([column], self.columns)
        (facts,) = self.schema.only([name]).columns or ()
        if not facts.identifier:
            raise no_identifier(name)
        if self.schema.person is not None and name == self.schema.person.id:
            (wanted,) = plain_identifiers(text_array([wanted]), name).to_pylist()
        rows = _compute.indices_nonzero(_compute.equal(self.arrow[name], wanted))
        if len(rows) != 1:  # decided by named records alone, which nobody protects
            raise DataError(f"record: not exactly one has this {name}. Check what you asked for.", column=name)
        return int(rows[0].as_py())

    def times(self, column: str) -> list[str]:
        """When each record was observed: cells that the schema makes public, as text."""
        (name,) = pick([column], self.columns)
        (facts,) = self.schema.only([name]).columns or ()
        if not facts.time:
            raise DataError(
                f"column {name!r} is private; what is told of flagged records is a public time. If it is one, the data "
                "owner states `time = true` for it in the schema.",
                column=name,
            )
        times: list[str] = self.arrow[name].to_pylist()
        return times

    def _require_drawn(self) -> None:
        """No query sees more rows of a person than were drawn for it."""
        assert self.people is None, "draw the rows of each person before a look"

    def __repr__(self) -> str:
        return f"Table(name={self.name!r}, n={self.n}, columns={self.columns!r})"


class TablePoints(Points):
    """Columns of a table, scaled when they are first looked at: a plan and a refusal never are."""

    __slots__ = ("_kept", "_table")
    _kept: Floats | None
    _table: Table

    def __init__(self, table: Table, columns: tuple[str, ...]) -> None:
        facts = table.schema.only(columns)
        for slot, value in {"columns": columns, "name": table.name, "schema": facts}.items():
            object.__setattr__(self, slot, value)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_kept", None)

    @property
    def values(self) -> Floats:
        if self._kept is None:
            cells = [self._table.coordinates(name) for name in self.columns]
            object.__setattr__(self, "_kept", _make_read_only(scale_columns(cells, self.schema)))
        assert self._kept is not None
        return self._kept

    @property
    def n(self) -> int:
        return self._table.n

    def subspace(self, names: Iterable[str]) -> Points:
        return TablePoints(self._table, pick(names, self.columns))

    def times(self, column: str) -> list[str]:
        return self._table.times(column)


def load(
    source: object,
    *,
    schema: Schema | None = None,
    name: str | None = None,
    limit_bytes: int | None = None,
    **written: Unpack[WayToRead],
) -> Table:
    """Read a table and hold it to its public schema.

    What does not fit is refused here, before a question is asked; no message holds a value.

    source       a path (.csv, .tsv, .jsonl, .ndjson, these with .gz, .xlsx, .xls, .ods, .parquet, .arrow, .feather, a
                 directory of .parquet), a database URL (duckdb, sqlite, postgresql, with ?table= or ?sql=), an Arrow,
                 pandas or polars table, or a 2-D array
    schema       its public facts; default: all columns, as numbers
    name         the name that the budget is tracked under; default: the schema's, then the file's
    limit_bytes  the most bytes that are read; default: $WALLFLOWER_MAX_BYTES, or 4 GiB
    written      how a file is written: `separator`, `encoding`, `decimal`, `thousands`, `sheet`, and `without` which
                 columns it is read
    """
    facts = (schema or Schema()).but_read(written)
    source_table, facts = _read_selection(source, facts, limit_bytes)
    stem = source_table.stem and (name_from_file(source_table.stem) or source_table.stem)
    called = name or facts.name or stem or "unnamed"
    arrow, person = source_table.table, facts.person
    if person is not None and person.time is not None:
        arrow, facts = pivot(arrow, facts, ordered=source_table.ordered)
        return Table(arrow=arrow, schema=facts, name=called)
    if person is not None and person.rollup is not None:
        arrow = roll_up(arrow, facts, ordered=source_table.ordered)
    if facts.join is not None:
        arrow = SecondTable.read(facts, limit_bytes=limit_bytes).join(arrow)
    is_ordered = source_table.ordered and person is None
    return Table(arrow=arrow, schema=record_schema(facts), name=called, ordered=is_ordered)


def _read_selection(source: object, facts: Schema, limit_bytes: int | None) -> tuple[SourceTable, Schema]:
    """The columns that are wanted, and what is public about these."""
    facts, wanted = select(facts)
    return read(source, wanted, limit_bytes=limit_bytes), facts


def survey(
    source: object, *, schema: Schema | None = None, limit_bytes: int | None = None, **written: Unpack[WayToRead]
) -> dict[str, Any]:
    """Names and types of the columns of a source, and how many records it has; columns of text are told, not refused.

    `declared` is whether the source states its types. Those of a text file, a workbook, SQLite and the folders of a
    partitioned table are inferred from cells, and so are a fact about the records. The first line of a text file is not
    repeated if all of the file is text: it may be a record.
    """
    facts = (schema or Schema()).but_read(written)
    source_table, facts = _read_selection(source, facts, limit_bytes)
    kinds = {name: type_of(source_table.table[name].type) for name in source_table.table.column_names}
    if facts.columns is None and not source_table.headed and set(kinds.values()) == {"text"}:
        raise not_numbers(list(kinds), is_public=False)
    stated = {column.name: column for column in facts.columns or ()}
    columns = [_describe_column(stated.get(name), name, kind) for name, kind in kinds.items()]
    stem = source_table.stem and (name_from_file(source_table.stem) or source_table.stem)
    summary = {"name": facts.name or stem or "unnamed", "rows": int(source_table.table.num_rows), "clip": facts.clip}
    return summary | {"columns": columns, "without": list(facts.without), "declared": source_table.declared}


def _describe_column(column: Column | None, name: str, kind: str) -> dict[str, Any]:
    if column is None or (not column.facts() and kind != "number"):
        return {"name": name, "type": kind}
    return column_facts(column)


def points_of(data: object, columns: Sequence[str] | None, *, labels: bool = False) -> Points:
    """Points, a Table, or anything `load` reads, as points in these columns, or in all number columns.

    With `labels`, columns of labels that have a weight are coordinates too.
    """
    if isinstance(data, Points):
        return data.subspace(columns) if columns else data
    if isinstance(data, TiledTable):
        raise EngineMismatch(data.engine)
    table = data if isinstance(data, Table) else load(data, schema=Schema.of(columns) if columns else None)
    return table.points(columns, labels=labels)


def require_row_order(data: object) -> None:
    """Refuse a table in which rows are brought together by person: no answer may depend on the order of its records.

    People stand there in the order of their first rows, so replacing the rows of one person can move all others.  (Y1)
    """
    if isinstance(data, Table) and data.schema.person is not None and not data.ordered:
        raise DataError(
            f"{data.name}: rows are brought together by person, so records have no order in time. Watch a table with "
            "one row for each observation.",
            column=data.schema.person.id,
        )


def describe(table: Table | TiledTable) -> dict[str, Any]:
    """The public facts of a table: none of it is computed from its records, but their number."""
    columns = [column_facts(column) for column in table.schema.columns or ()]
    summary = {"name": table.name, "rows": table.n, "clip": table.schema.clip, "columns": columns}
    summary |= table.schema.words()
    return summary | ({"without": list(table.schema.without)} if table.schema.without else {})


def column_facts(column: Column) -> dict[str, Any]:
    """What is public about a column, as plain JSON."""
    scaling = {"center": column.center, "scale": column.scale} if column.kind != "category" else {}
    return {"name": column.name, "type": column.kind} | scaling | column.facts() | column.words()


def _make_read_only(kept: Floats) -> Floats:
    kept.setflags(write=False)
    return kept.view()  # a view of a read-only array cannot be made writeable again
