"""A released value as rows of a table, for files and spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from wallflower.errors import PackageMissing
from wallflower.machine.lazy import Lazy, is_there
from wallflower.release.words import readable

if TYPE_CHECKING:
    import pandas as _pandas
else:
    _pandas = Lazy("pandas")

Row = dict[str, Any]

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def rows_of_value(value: object, intervals: Sequence[Sequence[float]] | None = None) -> list[Row]:
    """One row for each part of a value, with the interval of each where there are any.

    >>> rows_of_value(14, [(10, 18)])
    [{'value': 14, 'low': 10, 'high': 18}]
    >>> rows_of_value([{"ward": "A", "outliers": 3}])
    [{'ward': 'A', 'outliers': 3}]
    >>> rows_of_value([["age"], ["age", "hours"]])
    [{'place': 1, 'value': 'age'}, {'place': 2, 'value': 'age × hours'}]
    >>> rows_of_value({"radii": [1, 2], "outliers": [7, 3]})
    [{'radii': 1, 'outliers': 7}, {'radii': 2, 'outliers': 3}]
    >>> rows_of_value({"scale": {"age": 13.1}, "key": "0a"})
    [{'name': 'age', 'scale': 13.1}]
    """
    if isinstance(value, Mapping) and (found := _side_by_side(value)):
        return found
    parts = value if isinstance(value, list) else [value]
    is_numbered = isinstance(value, list)
    rows = [_row(part, place if is_numbered else None) for place, part in enumerate(parts, start=1)]
    if intervals is not None and len(intervals) == len(rows):
        return [row | {"low": ends[0], "high": ends[1]} for row, ends in zip(rows, intervals, strict=True)]
    return rows


def to_csv(rows: Sequence[Row]) -> str:
    """Rows as the text of a CSV file, under the names that any of them has.

    >>> to_csv([{"ward": "A, old", "outliers": 3}])
    'ward,outliers\\n"A, old",3\\n'
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(map(sheet_cell, names))
    writer.writerows([sheet_cell(row.get(name, "")) for name in names] for row in rows)
    return target.getvalue()


def sheet_cell(value: object) -> object:
    """A cell that no spreadsheet runs: a text that begins as a formula does, and is no number, has a mark before it.

    >>> [sheet_cell(one) for one in ("=1+1", "-5", "ward", -5)]
    ["'=1+1", '-5', 'ward', -5]
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def to_frame(rows: Sequence[Row]) -> Any:
    """Rows as a pandas DataFrame, where pandas is installed."""
    if not is_there("pandas"):
        raise PackageMissing("to_pandas", package="pandas", extra="frames", instead="to_csv and to_arrow need no other")
    return _pandas.DataFrame(list(rows))


def _side_by_side(value: Mapping[str, Any]) -> list[Row]:
    """The parts of a mapping that are lists of one length, or that have a number for each of the same names."""
    named = {
        name: part for name, part in value.items() if isinstance(part, Mapping) and all(map(_is_cell, part.values()))
    }
    if named:
        names = next(iter(named.values()))
        same = {name: part for name, part in named.items() if part.keys() == names.keys()}
        return [{"name": one} | {name: part[one] for name, part in same.items()} for one in names]
    lists = {name: part for name, part in value.items() if isinstance(part, list) and all(map(_is_cell, part))}
    longest = max(map(len, lists.values()), default=0)
    columns = {name: part for name, part in lists.items() if len(part) == longest}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _is_cell(item: object) -> bool:
    return item is None or isinstance(item, str | int | float)


def _row(part: object, place: int | None) -> Row:
    if isinstance(part, Mapping):
        return {str(name): _cell(item) for name, item in part.items()}
    numbered = {} if place is None else {"place": place}
    return numbered | {"value": _cell([part] if isinstance(part, list) else part)}


def _cell(item: object) -> object:
    return item if isinstance(item, str | int | float) or item is None else readable(item)
