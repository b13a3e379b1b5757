"""A released value for people and spreadsheets: as text, and as rows of a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from wallflower.machine.heavy import pandas as _pandas
from wallflower.privacy import Kind, Loss
from wallflower.query import Plan
from wallflower.text import Message, join, label, t

Row = dict[str, Any]

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
_MAX_ITEMS, _FIRST = 24, 12  # a longer list is read by its beginning


def readable(value: object) -> Message:
    """A value as a reader wants it: numbers rounded, names that belong together joined by ×.

    >>> readable(1234.5678), readable(0.01234), readable(14)
    ('1,234.6', '0.0123', '14')
    >>> readable([1, 2]), readable([["age"], ["age", "hours"]])
    ('1, 2', 'age; age × hours')
    >>> readable([{"columns": ["age", "hours"], "outliers": 14}])
    'columns age × hours, outliers 14'
    >>> readable([{"context": "job is all but dean", "bits": "0111"}])
    'job is all but dean'
    >>> readable(list(range(1000)))[-21:]
    ' 11, … (1,000 in all)'
    >>> readable({"times": [f"{hour}:00" for hour in range(1000)]})[-25:]
    ', 11:00, … (1,000 in all)'
    """
    match value:
        case True:
            return t("yes")
        case False:
            return t("no")
        case None:
            return t("not proved")
        case float():
            return _round(value)
        case int():
            return t("{value:,}", value=value)
        case {"context": str() as context}:
            return label(context)  # its bits are for programs
        case Mapping():
            pairs = [join(" ", (label(as_words(name)), _part(item))) for name, item in value.items()]
            return join(", ", pairs) if pairs else t("none")
        case list() | tuple():
            between = "; " if any(isinstance(item, list | tuple | Mapping) for item in value) else ", "
            items = [_part(item) for item in value[: _FIRST if len(value) > _MAX_ITEMS else None]]
            if len(value) > _MAX_ITEMS:
                items.append(t("… ({n:,} in all)", n=len(value)))
            return join(between, items) if items else t("none")
        case _:
            return label(str(value))


def as_words(name: str) -> str:
    """A name from a program, as words."""
    return name.replace("_", " ")


def rough(value: float) -> Message:
    """A number to three digits.

    >>> rough(3.9512), rough(12.0), rough(1099.4)
    ('3.95', '12', '1,100')
    """
    return t("{value:,g}", value=float(f"{value:.3g}"))


def rows_of(plan: Plan) -> Iterator[tuple[str, ...]]:
    """The options of a plan in words: mechanism, a figure for each heading (empty if it has none), note."""
    for option in plan.options:
        is_chosen = option.mechanism == plan.chosen
        name = t("{mechanism} (chosen)", mechanism=option.mechanism) if is_chosen else option.mechanism
        figures = (rough(option.figures[key]) if key in option.figures else "" for key in plan.headings)
        yield name, *figures, option.note


def symbol(loss: Loss) -> str:
    """The letter a loss is written with."""
    return "ρ" if loss.kind is Kind.ZCDP else "ε"


def _part(item: object) -> Message:
    """An item of something larger, where names in a list are one thing, such as a set of columns."""
    if isinstance(item, list | tuple) and item and all(isinstance(name, str) for name in item):
        return label(" × ".join(item)) if len(item) <= _MAX_ITEMS else readable(item)
    return readable(item)


def _round(value: float) -> Message:
    if value.is_integer() and abs(value) < 2**53:
        return t("{value:,}", value=int(value))
    return t("{value:,.1f}", value=value) if abs(value) >= 1 else t("{value:.3g}", value=value)


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
    """Return rows as a pandas DataFrame, where pandas is installed."""
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
