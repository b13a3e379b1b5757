"""Observations as a person has them: a text of CSV or of JSON lines, as rows for a watch.

A cell that is missing or no number is none, so that no observation is refused for what it is. A line that is built
wrongly is refused by its number; no message holds a cell.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wallflower.data.lines import number
from wallflower.errors import DataError
from wallflower.schema.columns import list_names

MOST: Final = 100_000  # observations at a time
_TIME: Final = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Observations in order, and when each was made, if the text says so."""

    rows: list[list[float | None]]
    times: list[str] | None = None


def read_feed(text: str, columns: Sequence[str]) -> Observations:
    """The observations in a text: JSON lines if it begins as JSON does, else CSV."""
    lines = [(place, line) for place, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        raise DataError("observations: there are none. Choose a file, or type a line for each observation.")
    if len(lines) > MOST + 1:
        raise DataError(f"observations: there are more than {MOST:,}. Send fewer at a time, or over HTTP.")
    is_json = lines[0][1].lstrip()[0] in "{["
    found = list(_json_rows(lines, columns) if is_json else _csv_rows(lines, columns))
    times = [time for _, time in found if time is not None]
    return Observations(rows=[row for row, _ in found], times=times if len(times) == len(found) else None)


def _json_rows(
    lines: Sequence[tuple[int, str]], columns: Sequence[str]
) -> Iterator[tuple[list[float | None], str | None]]:
    for place, line in lines:
        try:
            stated: Any = json.loads(line)
        except (ValueError, RecursionError):
            stated = None
        if isinstance(stated, dict):
            time = stated.get(_TIME) if _TIME not in columns else None
            yield [_entry(stated.get(name)) for name in columns], str(time) if time is not None else None
        elif isinstance(stated, list) and len(stated) == len(columns):
            yield [_entry(cell) for cell in stated], None
        else:
            raise DataError(
                f"line {place}: it is no JSON object, nor a list of {len(columns)} entries. Write one a line, such as "
                f"{json.dumps(dict.fromkeys(columns, 1.5))[:200]}"
            )


def _csv_rows(
    lines: Sequence[tuple[int, str]], columns: Sequence[str]
) -> Iterator[tuple[list[float | None], str | None]]:
    rows = csv.reader([line for _, line in lines], strict=True)
    head = [name.strip() for name in _cells(rows, lines[0][0])]
    missing = [name for name in columns if name not in head]
    if missing:
        raise DataError(
            f"line {lines[0][0]}: it does not name {list_names(missing)}. The first line of CSV names the columns; "
            f"this watch has {list_names(columns)}. Add it."
        )
    where = [head.index(name) for name in columns]
    time = head.index(_TIME) if _TIME in head and _TIME not in columns else None
    for place, _ in lines[1:]:
        cells = _cells(rows, place)
        if len(cells) != len(head):
            raise DataError(f"line {place}: it has {len(cells)} cells where the first has {len(head)}. Correct it.")
        yield [_entry(cells[at]) for at in where], None if time is None else cells[time].strip()


def _cells(rows: Iterator[list[str]], place: int) -> list[str]:
    try:
        return next(rows, [])
    except csv.Error:
        raise DataError(f"line {place}: its quotes do not close. Correct it.") from None


def _entry(cell: object) -> float | None:
    value = math.nan if isinstance(cell, bool) else number(cell)
    return value if math.isfinite(value) else None
