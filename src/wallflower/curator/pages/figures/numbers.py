"""A released value of many numbers as a table: a row for each group, radius, phase or column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from wallflower.query.picture import Cell, Sheet
from wallflower.release.words import as_words, readable

_LONGEST: Final = 100  # characters of a value that are read at a glance
_MOST: Final = 1000  # rows on a page; a program gets all


@dataclass(frozen=True, slots=True)
class Numbers:
    """Rows under headings, as they are shown."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def words_of(sheet: Sheet) -> Numbers:
    """What a picture shows, as it is read.

    >>> words_of(Sheet(("radius", "outliers"), ((0.25, 1200), (2.375, None))))
    Numbers(headings=('radius', 'outliers'), rows=(('0.25', '1,200'), ('2.375', '')))
    """
    return Numbers(sheet.headings, tuple(tuple(map(cell_words, row)) for row in sheet.rows[:_MOST]))


def cell_words(value: Cell) -> str:
    """A number or a name, on a picture and in the table under it."""
    match value:
        case None:
            return ""
        case float() if not value.is_integer():
            return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
        case _:
            return readable(value)


def is_brief(value: Any) -> bool:
    """Whether a value can stand at the head of its page.

    >>> is_brief(14), is_brief({"scale": {"age": 13.1}})
    (True, False)
    """
    parts = value if isinstance(value, list) else [value]
    return not any(isinstance(part, Mapping) for part in parts) and len(readable(value)) <= _LONGEST


def numbers_of(value: Any) -> Numbers | None:
    """The table of a value, what tells its rows apart first; None where there is none.

    >>> numbers_of({"key": "0a", "scale": {"age": 13.1}})
    Numbers(headings=('', 'scale'), rows=(('age', '13.1'),))
    >>> numbers_of({"outliers": [7, 3], "radii": [1, 2]})
    Numbers(headings=('radii', 'outliers'), rows=(('1', '7'), ('2', '3')))
    >>> numbers_of({"columns": ["age"], "centre": [[7, 3]]})
    Numbers(headings=('', 'centre age'), rows=(('1', '7'), ('2', '3')))
    """
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return _table({name: [one.get(name) for one in value] for name in value[0]})
    if not isinstance(value, Mapping):
        return None
    for name, part in value.items():
        if isinstance(part, Mapping):
            return _table({"": list(part), name: list(part.values())})
    lists = dict(_lists(value))
    longest = max(map(len, lists.values()), default=0)
    return _table({name: part for name, part in lists.items() if len(part) == longest}) if longest else None


def _lists(value: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Every list of plain values, those within a list too: named after the column that they belong to."""
    columns = value.get("columns", ())
    for name, part in value.items():
        if not isinstance(part, list) or not part:
            continue
        if isinstance(part[0], list):
            for place, inner in enumerate(part):
                yield f"{name} {columns[place] if place < len(columns) else place + 1}", inner
        elif part is not columns:
            yield name, part


def _table(lists: Mapping[str, Sequence[Any]]) -> Numbers:
    """Lists side by side, what tells rows apart first; where nothing does, their numbers."""
    apart = {name: part for name, part in lists.items() if _tells_apart(part)}
    rest = {name: part for name, part in lists.items() if name not in apart}
    count = len(next(iter(lists.values())))
    shown = (apart or {"": range(1, count + 1)}) | rest
    rows = zip(*shown.values(), strict=True)
    return Numbers(
        tuple(map(as_words, shown)),
        tuple(tuple(map(readable, row)) for _, row in zip(range(_MOST), rows, strict=False)),
    )


def _tells_apart(part: Sequence[Any]) -> bool:
    is_text = any(isinstance(one, str) for one in part)
    return is_text or (all(isinstance(one, int | float) for one in part) and all(a < b for a, b in pairwise(part)))
