"""How the cells of a column become numbers, coordinates or codes, each by its own record and the public schema alone.

So one record moves one point. What is filled, clipped or encoded is what the schema says, and no message tells how many
cells it was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data.sources.texts import MISSING
from wallflower.errors import DataError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.machine.heavy import pyarrow_types as _types
from wallflower.schema import Column, Schema
from wallflower.schema.column import UNITS
from wallflower.schema.columns import (
    EXACT_BELOW,
    call_or_refuse,
    float_array,
    list_names,
    numbers_of,
    pick,
    text_array,
    too_precise,
)

Floats = NDArray[np.float64]

ROWS: Final = 1 << 14  # that are worked on at a time, so that they stay in the cache
LONGEST: Final = 256  # bytes of an identifier or a time that an engine keeps
_SECOND: Final = 1_000_000  # in microseconds, which dates are counted in


def not_numbers(names: Sequence[str], *, is_public: bool) -> DataError:
    """Without a schema, a header of nothing but text may be a record, and is not repeated."""
    which = f"column {list_names(names)}" if is_public else "every column"
    return DataError(
        f"{which} holds text (or numbers mixed with text) where numbers are needed. Choose number columns "
        "(--columns a,b or --without c), give labels their public categories and dates a unit and a since in the "
        "schema, or say how numbers are written (--decimal, --thousands).",
        column=names[0] if is_public else None,
    )


def no_identifier(name: str) -> DataError:
    """What a record cannot be looked up in."""
    return DataError(f"column {name!r} is no identifier. State `identifier = true` in the schema.", column=name)


def text_bytes(cells: Any, column: Column) -> NDArray[np.bytes_]:
    """Identifiers and times as an engine keeps them: bytes of one length, so they must not be long."""
    words = cells.cast(_pa.binary()).fill_null(b"")
    if len(words) and _compute.max(_compute.binary_length(words)).as_py() > LONGEST:
        raise DataError(
            f"column {column.name!r} has texts of more than {LONGEST} bytes, and an engine keeps shorter ones. Leave "
            f"it out (without, --without {column.name}), or open the table in memory.",
            column=column.name,
        )
    return np.array(words.to_pylist(), dtype=np.bytes_)


def is_text(kind: Any) -> bool:
    """Whether cells of this Arrow type are text."""
    kind = _plain(kind)
    return bool(_types.is_string(kind) or _types.is_large_string(kind) or _types.is_string_view(kind))


def type_of(kind: Any) -> str:
    """A word for a type of Arrow: the rest of its name, keys of a struct or a time zone, may come from cells."""
    kind = _plain(kind)
    if is_text(kind):
        return "text"
    if _types.is_temporal(kind):
        return "time of day" if _types.is_time(kind) else "duration" if _types.is_duration(kind) else "date"
    if _is_number(kind) or _types.is_null(kind):
        return "number"
    return re.split(r"\W", str(kind))[0]


def fit_cells(cells: Any, column: Column, clip: bool) -> Any:
    """The cells of a column, held to what the schema says of it: text, codes or numbers."""
    if column.time and cells.null_count:
        raise _no_value(column.name)
    if column.identifier or column.time:
        return cells.cast(_pa.string())
    if column.categories is not None:
        return _encode(cells, column)
    values = _floats(read_dates(cells, column) if column.unit is not None else cells, column)
    check_numbers(values, column, clip)
    return float_array(values)


def check_numbers(values: Floats, column: Column, clip: bool) -> None:
    """Refuse numbers that do not fit what the schema says of them."""
    name = column.name
    ends = np.array([values.min(), values.max()]) if len(values) else np.zeros(2)  # NaN if any number is
    if np.isnan(ends).any():
        raise _no_value(name)
    if np.isinf(ends).any():
        raise DataError(f"column {name!r} has infinite values. Replace them by a public bound.", column=name)
    if column.integer and bool((values != np.floor(values)).any()):
        raise DataError(
            f"column {name!r} is whole numbers in the schema and not in the data. Correct one.", column=name
        )
    if not clip and not np.array_equal(ends, clip_cells(ends, column)):
        raise DataError(
            f"column {name!r} has values outside its public bounds [{column.low}, {column.high}]. "
            "Widen the bounds without looking at the data, or set clip = true in the schema.",
            column=name,
        )
    if not np.isfinite(_scale(ends, column)).all():  # it is monotone, so the ends leave float64 first
        raise DataError(
            f"column {name!r}: scaled by the schema, it leaves float64. Choose a larger scale.", column=name
        )


def group_labels(column: Column) -> tuple[str, ...]:
    """The public groups that a column makes: its categories, or what its edges cut.

    >>> group_labels(Column("age", edges=(18, 65)))
    ('below 18', '18 to 65', '65 and more')
    """
    if column.categories is not None:
        return column.labels
    if column.edges is None:
        raise DataError(
            f"column {column.name!r} was asked to make groups, and the schema states neither categories nor edges of "
            "it. Which groups there are must be public: state them in the schema.",
            column=column.name,
        )
    edges = [f"{edge:g}" for edge in column.edges]
    between = (f"{low} to {high}" for low, high in pairwise(edges))
    return (f"below {edges[0]}", *between, f"{edges[-1]} and more")


def group_cells(cells: NDArray[Any], column: Column) -> NDArray[np.int64]:
    """Codes of labels as they are, or numbers as places between the public edges."""
    if column.categories is not None:
        return cells.astype(np.int64)
    if column.edges is None:
        raise DataError(
            f"column {column.name!r} has no categories and no edges. State one in the schema.", column=column.name
        )
    return np.searchsorted(column.edges, clip_cells(cells, column), side="right")


def clip_cells(values: Floats, column: Column) -> Floats:
    """Values moved into their bounds; where the schema does not clip, `check_numbers` has left none outside."""
    if column.low is None and column.high is None:
        return values
    return np.clip(values, column.low, column.high)


def scale_columns(cells: Iterable[NDArray[Any]], schema: Schema) -> Floats:
    """Columns side by side: numbers moved into their bounds and scaled, codes of labels as coordinates."""
    columns = list(zip(cells, schema.columns or (), strict=True))
    count = len(columns[0][0]) if columns else 0
    first = _side_by_side(columns, slice(0, ROWS))
    if count <= ROWS:
        return first
    coordinates = np.empty((count, first.shape[1]))
    coordinates[:ROWS] = first
    for start in range(ROWS, count, ROWS):
        coordinates[start : start + ROWS] = _side_by_side(columns, slice(start, start + ROWS))
    return coordinates


def _side_by_side(columns: Sequence[tuple[NDArray[Any], Column]], rows: slice) -> Floats:
    return hold_finite(
        np.column_stack([encode(c[rows], f) if f.categories is not None else _scale(c[rows], f) for c, f in columns])
    )


def hold_finite(values: Floats) -> Floats:
    """Numbers beyond the largest float as that one, by a rule for each number alone: scales that were released may be
    small, and nothing is refused for it."""
    most = np.finfo(np.float64).max
    return np.clip(values, -most, most)


def encode(codes: NDArray[Any], column: Column) -> Floats:
    """Labels as coordinates whose Euclidean distance is `weight` where they differ; without a weight, their codes.

    Two labels are 0 and the weight on one axis, which is exact. Of more, each has an axis of its own, on which it is
    the largest number whose doubled square, as computers add it up, is not above the squared weight: so records that
    differ in nothing else are within a radius of the weight, and as far apart as float64 can say.
    """
    if column.weight is None:
        return np.asarray(codes, dtype=np.float64)[:, None]
    weight = float(column.weight)
    if column.width == 1:
        return np.asarray(codes, dtype=np.float64)[:, None] * weight
    side = weight / math.sqrt(2)
    while 2 * (side * side) > weight * weight:
        side = math.nextafter(side, 0)
    return np.where(np.asarray(codes)[:, None] == np.arange(column.width), side, 0.0)


def _scale(values: Floats, column: Column) -> Floats:
    with np.errstate(over="ignore"):
        return (clip_cells(values, column) - float(column.center)) / float(column.scale)


def _plain(kind: Any) -> Any:
    """The type of the cells, also where Arrow keeps them in a dictionary."""
    return kind.value_type if _types.is_dictionary(kind) else kind


def _is_number(kind: Any) -> bool:
    kinds = (_types.is_integer, _types.is_decimal, _types.is_floating, _types.is_boolean)
    return any(matches(kind) for matches in kinds)


def _encode(cells: Any, column: Column) -> Any:
    kind, labels = cells.type, text_array(column.labels)
    if not (is_text(kind) or _types.is_integer(kind) or _types.is_boolean(kind) or _types.is_null(kind)):
        raise DataError(
            f"column {column.name!r} has categories in the schema and is neither text nor whole numbers in the source. "
            "Write its labels as text.",
            column=column.name,
        )
    words = cells.cast(_pa.string())
    codes = _compute.index_in(words.combine_chunks(), value_set=labels)
    if column.missing is not None:
        empty = _compute.is_in(_compute.utf8_lower(words), value_set=text_array([*MISSING, None])).combine_chunks()
        filling = column.labels.index(str(column.missing))
        codes = _compute.if_else(_compute.and_(empty, codes.is_null()), np.int32(filling).item(), codes)
        codes = codes.cast(_pa.int32())
    if column.other is not None:
        codes = codes.fill_null(column.labels.index(str(column.other)))
    if codes.null_count:
        raise DataError(
            f"column {column.name!r} has a label that is missing or not among its public categories "
            f"({list_names(column.labels)}). Name a category for the rest (other = ...), state what stands for a "
            "missing one (missing = ...), or correct the data.",
            column=column.name,
        )
    return _pa.DictionaryArray.from_arrays(codes, labels)


def _floats(cells: Any, column: Column) -> Floats:
    name, kind = column.name, _plain(cells.type)
    if (_types.is_null(kind) or cells.null_count) and column.missing is None:
        raise _no_value(name)
    is_integer, is_decimal = _types.is_integer(kind), _types.is_decimal(kind)
    if not (_is_number(kind) or _types.is_null(kind)):
        raise DataError(
            f"column {name!r} is of type {type_of(kind)}, and only numbers, decimals and true/false are read as "
            "numbers. Give a date a unit and the public date it is counted since, in the schema "
            '(unit = "days", since = "2000-01-01"), and leave other things out.',
            column=name,
        )
    exact = cells.cast(kind)
    if is_decimal:
        exact = exact.cast(_pa.string())  # Arrow rounds text to the nearest float, and decimals only nearly
    values = _fill(exact.cast(_pa.float64(), safe=False), column)
    is_whole = is_integer or (is_decimal and kind.scale <= 0)
    if is_whole and bool((np.abs(values) >= EXACT_BELOW).any()):
        raise too_precise(name)
    return values


def _fill(cells: Any, column: Column) -> Floats:
    if column.missing is None:
        plain: Floats = numbers_of(cells)
        return plain
    values: Floats = numbers_of(_compute.fill_null(cells, math.nan))
    return np.where(np.isnan(values), float(column.missing), values)


def read_dates(cells: Any, column: Column) -> Any:
    """Dates and times as numbers: the number of units since the public date, or since midnight."""
    kind, unit = _plain(cells.type), UNITS[str(column.unit)]
    if _types.is_null(kind):
        return cells
    refusal = _no_date(column)
    ticks = call_or_refuse(lambda: _microseconds(cells.cast(kind), column), lambda _: refusal)
    return _compute.divide(ticks.cast(_pa.float64(), safe=False), float(unit.total_seconds() * _SECOND))


def _microseconds(cells: Any, column: Column) -> Any:
    """How long after `since`, or after midnight, as whole numbers."""
    kind = cells.type
    if _is_number(kind) and column.layout is not None:
        cells, kind = cells.cast(_pa.string()), _pa.string()  # 20011231 is a date if the schema says so
    if is_text(kind):
        cells = _parse_dates(cells, column)
        kind = cells.type
    if column.origin is None:
        if not (_types.is_time(kind) or _types.is_duration(kind)):
            raise _no_date(column)
        span = _pa.time64("us") if _types.is_time(kind) else _pa.duration("us")
        return cells.cast(span, safe=False).cast(_pa.int64())
    if not (_types.is_timestamp(kind) or _types.is_date(kind)):
        raise _no_date(column)
    moments = cells.cast(_pa.timestamp("us", tz=getattr(kind, "tz", None)), safe=False).cast(_pa.int64())
    began = int(np.datetime64(column.origin, "us").astype(np.int64))
    return _compute.subtract(moments, began)


def _parse_dates(cells: Any, column: Column) -> Any:
    """Text as dates, or as times of the day; what is missing stays so."""
    missing = _compute.is_in(_compute.utf8_lower(cells), value_set=text_array(MISSING))
    words = _compute.if_else(missing, text_array([None])[0], cells)
    if column.origin is None:
        midnight = text_array(["1970-01-01"])[0]
        joined = _compute.binary_join_element_wise(midnight, words, text_array([" "])[0])
        return joined.cast(_pa.timestamp("us")).cast(_pa.int64()).cast(_pa.duration("us"))
    if column.layout is not None:
        return _compute.strptime(words, format=column.layout, unit="us")
    try:
        return words.cast(_pa.timestamp("us"))
    except _pa.ArrowInvalid:
        return words.cast(_pa.timestamp("us", tz="UTC"))  # with offsets, as 2001-12-31T23:59:59+01:00


def _no_date(column: Column) -> DataError:
    if column.origin is None:
        needed = "times of the day as 23:59 or 23:59:59"
        advice = 'State since when a date is counted (since = "2000-01-01" in the schema), or correct the data.'
    else:
        needed = f"dates as {column.layout or '2001-12-31 or 2001-12-31 23:59:59'}"
        advice = 'State how they are written (layout = "%d.%m.%Y" in the schema), or correct the data.'
    return DataError(
        f"column {column.name!r} is counted in {column.unit}, which needs {needed} in every cell. {advice}",
        column=column.name,
    )


def require_values(cells: Mapping[str, Any], columns: Iterable[Column]) -> None:
    """Refuse columns of numbers with gaps that nothing stands for: all of them at once."""
    gaps = [column.name for column in columns if column.categories is None and _has_gaps(cells[column.name], column)]
    if gaps:
        raise _no_value(*gaps)


def _has_gaps(cells: Any, column: Column) -> bool:
    if column.identifier or (column.missing is not None and not column.time):
        return False
    if cells.null_count:
        return True
    return _types.is_floating(cells.type) and bool(_compute.any(_compute.is_nan(cells)).as_py())


def _no_value(*names: str) -> DataError:
    which = f"column {names[0]!r} has" if len(names) == 1 else f"columns {', '.join(map(repr, names))} have"
    return DataError(
        f"{which} missing values (empty, NA, NaN, ?), and every record needs a value. "
        "State a public constant for them (missing = ... in the schema), or leave those records out.",
        column=names[0],
    )


def number_names(asked: Iterable[str] | None, columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The columns asked for, all of them numbers; None: all but those whose names are those of identifiers."""
    numbers = schema.numbers
    names = pick(_default_columns(numbers, schema) if asked is None else asked, columns)
    for name in names:
        if name not in numbers:
            raise DataError(
                f"column {name!r} holds labels, and points are made of numbers ({list_names(numbers) or 'none'}). "
                f"Leave it out; codes({name!r}) gives its codes.",
                column=name,
            )
    return names


def measured_names(asked: Iterable[str] | None, columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The columns asked for: numbers, and labels that have a weight; None: all but those called as identifiers are."""
    measured = schema.distance_columns
    names = pick(_default_columns(measured, schema) if asked is None else asked, columns)
    for name in names:
        if name not in measured:
            raise DataError(
                f"column {name!r} holds labels without a weight, and distances are taken over numbers and weighted "
                f"labels ({list_names(measured) or 'none'}). Leave it out, or state a weight in the schema.",
                column=name,
            )
    return names


def coded_names(asked: Iterable[str] | None, columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The columns asked for: numbers and labels; None: all but those called as identifiers are."""
    coded = (*schema.numbers, *(column.name for column in schema.columns or () if column.kind == "category"))
    names = pick(
        _default_columns([name for name in columns if name in coded], schema) if asked is None else asked, columns
    )
    for name in names:
        if name not in coded:
            raise DataError(
                f"column {name!r} holds identifiers or times, and a cell is made by numbers and by labels with public "
                f"categories ({list_names(coded) or 'none'}). Omit it.",
                column=name,
            )
    return names


def _default_columns(names: Sequence[str], schema: Schema) -> tuple[str, ...]:
    kept = tuple(name for name in names if name not in schema.columns_set_aside)
    if names and not kept:
        raise DataError(
            f"every column of numbers is called as identifiers are ({list_names(names)}), so none is measured unless "
            "you name it. State `columns`, or the bounds of the columns in the schema."
        )
    return kept


def places_of(columns: Sequence[str], schema: Schema) -> tuple[tuple[int, ...], ...]:
    """For each column, which coordinates of a point it is: one, or of three labels and more, one a label."""
    widths = [column.width for column in schema.only(columns).columns or ()]
    ends = np.cumsum([0, *widths]).tolist()
    return tuple(tuple(range(first, last)) for first, last in pairwise(ends))
