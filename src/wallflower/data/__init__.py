"""The data room: private records held to public facts (`Table`), and the numbers a question looks at (`Points`).

Every refusal comes while loading, before a question is asked and paid for. Messages and reprs hold public facts only:
names, types, bounds and the number of records, never a value, nor how many of them were wrong or where.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.columns import (
    EXACT_BELOW,
    Selection,
    float_array,
    list_names,
    numbers_of,
    pick,
    text_array,
    too_precise,
)
from wallflower.data.sources import matrix, number_columns, read
from wallflower.errors import DataError
from wallflower.lazy import Lazy
from wallflower.names import nearest_name
from wallflower.schema import TEXTS, Column, Schema

__all__ = ["Column", "Points", "Schema", "Table", "describe", "load", "points_of", "scaled"]

if TYPE_CHECKING:
    import pyarrow as _pa
    import pyarrow.compute as _compute
    import pyarrow.types as _types
else:
    _pa = Lazy("pyarrow")
    _compute = Lazy("pyarrow.compute")
    _types = Lazy("pyarrow.types")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Points:
    """Records as numbers, publicly scaled: `values` is float64, n by dimension, finite and read-only."""

    values: Floats
    columns: tuple[str, ...]
    name: str
    schema: Schema

    def __post_init__(self) -> None:
        if self.values.shape[1:] != (len(self.columns),) or not self.n or not np.isfinite(self.values).all():
            raise DataError("points are one record or more, a finite number for each column. Use load or from_array.")
        object.__setattr__(self, "values", _read_only(np.array(self.values, dtype=np.float64, order="C")))

    @classmethod
    def from_array(
        cls,
        array: ArrayLike,
        columns: Sequence[str] | None = None,
        name: str = "unnamed",
        schema: Schema | None = None,
    ) -> Self:
        """Points from a 2-D array; with a schema its values are bounded and scaled as `load` would."""
        values, schema = matrix(array), schema or Schema()
        names = tuple(columns or schema.names or number_columns(values.shape[1]))
        if len(names) != values.shape[1] or not len(values):
            raise DataError("an array needs a record, and a name for each of its columns. Pass columns=[...] to match.")
        if schema.columns is not None:
            pick(names, schema.numbers)
        facts = schema.only(names)
        for column, cells in zip(facts.columns or (), values.T, strict=True):
            _check(cells, column, schema.clip)
        return cls(values=scale_columns(values.T, facts), columns=names, name=name, schema=facts)

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def __len__(self) -> int:
        return self.n

    def subspace(self, names: Iterable[str]) -> Points:
        """The same records, seen in these columns only."""
        chosen = pick(names, self.columns)
        values = self.values[:, [self.columns.index(name) for name in chosen]]
        return Points(values=values, columns=chosen, name=self.name, schema=self.schema.only(chosen))

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
    """Private records that fit their public schema: numbers as they came, labels coded by their categories."""

    arrow: Any
    schema: Schema
    name: str

    def __post_init__(self) -> None:
        rows = self.schema.rows
        if self.n < 2:
            raise DataError(
                f"{self.name}: fewer than two records, and one record has no neighbours. Load more of them."
            )
        if rows is not None and rows != self.n:
            raise DataError(f"{self.name}: the schema says {rows} records, the source has another number. Correct one.")
        is_stated = self.schema.columns is not None
        object.__setattr__(self, "schema", self.schema.only(self.columns))
        text = [name for name in self.numbers if _is_text(self.arrow[name].type)]
        if text:
            raise _not_numbers(text, is_public=is_stated or len(text) < self.dimension)
        columns = self.schema.columns or ()
        fitted = {column.name: _fitted(self.arrow[column.name], column, self.schema.clip) for column in columns}
        object.__setattr__(self, "arrow", _pa.table(fitted))

    @property
    def n(self) -> int:
        return int(self.arrow.num_rows)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.arrow.column_names)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that points are made of."""
        return self.schema.numbers

    def require(self, columns: Iterable[str] = (), *, rows: int = 2) -> Self:
        """This table, or a refusal from public facts: these columns as numbers, and so many records."""
        chosen = tuple(columns)
        if chosen:
            self._numeric(chosen)
        if self.n < rows:
            raise DataError(f"{self.name}: the question needs {rows} records or more. Ask it of a larger table.")
        return self

    def points(self, columns: Iterable[str] | None = None) -> Points:
        """The number columns (or those named), scaled by the public schema."""
        return TablePoints(self, self._numeric(self.numbers if columns is None else columns))

    def codes(self, column: str) -> NDArray[np.int64]:
        """Labels as places in the public categories, or numbers as places between the public edges."""
        (name,) = pick([column], self.columns)
        facts, cells = next(known for known in self.schema.columns or () if known.name == name), self.arrow[name]
        if facts.categories is not None:
            return numbers_of(cells.combine_chunks().indices).astype(np.int64)
        if facts.edges is None:
            raise DataError(f"column {name!r} has no categories and no edges. State one in the schema.", column=name)
        return np.searchsorted(facts.edges, _bounded(numbers_of(cells), facts), side="right")

    def cells(self, column: str) -> Floats:
        """The numbers of a column in their own unit, moved into their bounds."""
        (name,) = self._numeric([column])
        (facts,) = self.schema.only([name]).columns or ()
        return _bounded(numbers_of(self.arrow[name]), facts)

    def row(self, column: str, wanted: str) -> int:
        """The row of the one record with this identifier."""
        (name,) = pick([column], self.columns)
        (facts,) = self.schema.only([name]).columns or ()
        if not facts.identifier:
            raise DataError(f"column {name!r} is no identifier. State `identifier = true` in the schema.", column=name)
        found = _compute.indices_nonzero(_compute.equal(self.arrow[name], wanted))
        if len(found) != 1:
            raise DataError(f"record: not exactly one has this {name}. Check what you asked for.", column=name)
        return int(found[0].as_py())

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
        found: list[str] = self.arrow[name].to_pylist()
        return found

    def __repr__(self) -> str:
        return f"Table(name={self.name!r}, n={self.n}, columns={self.columns!r})"

    def _numeric(self, asked: Iterable[str]) -> tuple[str, ...]:
        names, numbers = pick(asked, self.columns), self.numbers
        for name in names:
            if name not in numbers:
                raise DataError(
                    f"column {name!r} holds labels, and points are made of numbers ({list_names(numbers) or 'none'}). "
                    f"Leave it out; codes({name!r}) gives its codes.",
                    column=name,
                )
        return names


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
            cells = [numbers_of(self._table.arrow[name]) for name in self.columns]
            object.__setattr__(self, "_kept", _read_only(scale_columns(cells, self.schema)))
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
    source: object, *, schema: Schema | None = None, name: str | None = None, limit_bytes: int | None = None
) -> Table:
    """Read a table and hold it to its public schema.

    `source` is a path (.csv, .tsv, these with .gz, .parquet, .arrow, .feather, a directory of .parquet), a database
    URL (duckdb, sqlite, postgresql, with ?table= or ?sql=), an Arrow, pandas or polars table, or a 2-D array. The
    budget hangs on the name: `name`, else the schema's, else the file's.
    """
    facts = schema or Schema()
    labels = frozenset(column.name for column in facts.columns or () if column.kind in TEXTS)
    found = read(source, Selection(names=facts.names, labels=labels), limit_bytes=limit_bytes)
    stem = found.stem and (nearest_name(found.stem) or found.stem)
    return Table(arrow=found.table, schema=facts, name=name or facts.name or stem or "unnamed")


def points_of(data: object, columns: Sequence[str] | None) -> Points:
    """Points, a Table, or anything `load` reads, as points in these columns, or in all number columns."""
    if isinstance(data, Points):
        return data.subspace(columns) if columns else data
    table = data if isinstance(data, Table) else load(data, schema=Schema.of(columns) if columns else None)
    return table.points(columns)


def describe(table: Table) -> dict[str, Any]:
    """The public facts of a table: none of it is computed from its records, but their number."""
    columns = [
        {"name": column.name, "type": column.kind}
        | ({"center": column.center, "scale": column.scale} if column.kind != "category" else {})
        | column.facts()
        for column in table.schema.columns or ()
    ]
    return {"name": table.name, "rows": table.n, "clip": table.schema.clip, "columns": columns}


def _not_numbers(names: Sequence[str], *, is_public: bool) -> DataError:
    """Without a schema, a header of nothing but text may be a record, and is not repeated."""
    which = f"column {list_names(names)}" if is_public else "every column"
    return DataError(
        f"{which} holds text (or numbers mixed with text) where numbers are needed. Choose number columns "
        "(--columns a,b or a schema), or give labels their public categories in the schema.",
        column=names[0] if is_public else None,
    )


def _plain(kind: Any) -> Any:
    """The type of the cells, also where Arrow keeps them in a dictionary."""
    return kind.value_type if _types.is_dictionary(kind) else kind


def _is_text(kind: Any) -> bool:
    kind = _plain(kind)
    return bool(_types.is_string(kind) or _types.is_large_string(kind) or _types.is_string_view(kind))


def _fitted(cells: Any, column: Column, clip: bool) -> Any:
    if column.time and cells.null_count:
        raise _missing(column.name)
    if column.identifier or column.time:
        return cells.cast(_pa.string())
    if column.categories is not None:
        return _coded(cells, column)
    values = _floats(cells, column.name)
    _check(values, column, clip)
    return float_array(values)


def _coded(cells: Any, column: Column) -> Any:
    kind, labels = cells.type, text_array(column.labels)
    if not (_is_text(kind) or _types.is_integer(kind) or _types.is_boolean(kind)):
        raise DataError(
            f"column {column.name!r} has categories in the schema and is neither text nor whole numbers in the source. "
            "Write its labels as text.",
            column=column.name,
        )
    codes = _compute.index_in(cells.cast(_pa.string()).combine_chunks(), value_set=labels)
    if codes.null_count:
        raise DataError(
            f"column {column.name!r} has a label that is missing or not among its public categories "
            f"({list_names(column.labels)}). Add a category for the rest, or correct the data.",
            column=column.name,
        )
    return _pa.DictionaryArray.from_arrays(codes, labels)


def _floats(cells: Any, name: str) -> Floats:
    kind = _plain(cells.type)
    if _types.is_null(kind) or cells.null_count:
        raise _missing(name)
    is_integer, is_decimal = _types.is_integer(kind), _types.is_decimal(kind)
    if not (is_integer or is_decimal or _types.is_floating(kind) or _types.is_boolean(kind)):
        word = re.split(r"\W", str(kind))[0]  # the rest, keys of a struct or a time zone, may come from cells
        raise DataError(
            f"column {name!r} is of type {word}, and only numbers, decimals and true/false are read as numbers. "
            "Turn a date into days since a public date, and leave other things out.",
            column=name,
        )
    exact = cells.cast(kind)
    if is_decimal:
        exact = exact.cast(_pa.string())  # Arrow rounds text to the nearest float, and decimals only nearly
    values: Floats = numbers_of(exact.cast(_pa.float64(), safe=False))
    is_whole = is_integer or (is_decimal and kind.scale <= 0)
    if is_whole and bool((np.abs(values) >= EXACT_BELOW).any()):
        raise too_precise(name)
    return values


def _missing(name: str) -> DataError:
    return DataError(
        f"column {name!r} has missing values (empty, NA, NaN, ?), and every record needs a value. "
        "Fill them with a public constant, or leave those records out.",
        column=name,
    )


def _check(values: Floats, column: Column, clip: bool) -> None:
    name = column.name
    if bool(np.isnan(values).any()):
        raise _missing(name)
    if bool(np.isinf(values).any()):
        raise DataError(f"column {name!r} has infinite values. Replace them by a public bound.", column=name)
    if column.integer and bool((values != np.floor(values)).any()):
        raise DataError(
            f"column {name!r} is whole numbers in the schema and not in the data. Correct one.", column=name
        )
    if not clip and not np.array_equal(values, _bounded(values, column)):
        raise DataError(
            f"column {name!r} has values outside its public bounds [{column.low}, {column.high}]. "
            "Widen the bounds without looking at the data, or set clip = true in the schema.",
            column=name,
        )
    if not np.isfinite(_scale(values, column)).all():
        raise DataError(
            f"column {name!r}: scaled by the schema, it leaves float64. Choose a larger scale.", column=name
        )


def _bounded(values: Floats, column: Column) -> Floats:
    """Values moved into their bounds; where the schema does not clip, `_check` has left none outside."""
    if column.low is None and column.high is None:
        return values
    return np.clip(values, column.low, column.high)


def _read_only(kept: Floats) -> Floats:
    kept.setflags(write=False)
    return kept.view()  # a view of a read-only array cannot be made writeable again


def scale_columns(cells: Iterable[Floats], schema: Schema) -> Floats:
    """Columns of numbers side by side, moved into their bounds and scaled."""
    columns = zip(cells, schema.columns or (), strict=True)
    return np.column_stack([_scale(values, column) for values, column in columns])


def _scale(values: Floats, column: Column) -> Floats:
    with np.errstate(over="ignore"):
        return (_bounded(values, column) - float(column.center)) / float(column.scale)
