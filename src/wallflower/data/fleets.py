"""Observations of many streams as they come: JSON lines, each with a stream, a time and its numbers.

{"stream": "m1", "time": "2026-01-01T00:15:00Z", "value": 3.2}
{"stream": "m2", "time": "2026-01-01T00:15:00Z", "load": 3.2, "voltage": 229.8}

Lines are handed on as soon as they arrive. A missing number is NaN, and a whole number may have any length. A line
without stream or time is refused by its number, after those before it were handed on. No message quotes a line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data.lines import STDIN, number, read_lines
from wallflower.errors import DataError
from wallflower.schema.columns import list_names

VALUE: Final = "value"  # what a fleet of one column may call it
RESERVED: Final = ("stream", "time")
_MOST_DIGITS: Final = 4_000  # Python makes no whole number of more than 4,300


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Observations that arrived together."""

    streams: list[str] = field(default_factory=list)
    times: list[str | int | None] = field(default_factory=list)  # None: a number too long to be a time
    rows: list[list[float]] = field(default_factory=list)

    @property
    def array(self) -> NDArray[np.float64]:
        return np.array(self.rows)


def fleet_batches(source: str, columns: Sequence[str]) -> Iterator[Batch]:
    """The observations of a file, or of standard input (`-`), whatever has arrived together."""
    where = "standard input" if source == STDIN else source
    for lines in read_lines(source, where):
        batch, refusal = Batch(), None
        for place, line in lines:
            if not line.strip():
                continue
            try:
                stream, time, row = _parse_line(line, columns)
            except ValueError as fault:
                refusal = DataError(f"line {place}: {fault}")
                break
            batch.streams.append(stream)
            batch.times.append(time)
            batch.rows.append(row)
        if batch.rows:
            yield batch
        if refusal is not None:
            raise refusal


class _Misbuilt(ValueError):
    """A line that is not built as it must be; says how, never what is in it."""


def _parse_line(line: bytes, columns: Sequence[str]) -> tuple[str, str | int | None, list[float]]:
    found = _object(line)
    stream, time = found.pop("stream", None), found.pop("time", None)
    is_endless = isinstance(time, float) and math.isinf(time)
    has_time = is_endless or (isinstance(time, str | int) and not isinstance(time, bool))
    if not isinstance(stream, str) or not stream or not has_time:
        raise _Misbuilt(
            "it has no stream or no time. A line of a fleet has a stream, as text, and a time, as text or a whole "
            "number. Mend the line; those before it are decided."
        )
    if len(columns) == 1 and VALUE in found and columns[0] not in found:
        found[columns[0]] = found.pop(VALUE)
    if not found.keys() <= set(columns):
        raise _Misbuilt(
            f"it has names that are not columns; besides stream and time a line has {list_names(columns)}"
            f"{' or value' if len(columns) == 1 else ''}. Leave the others out."
        )
    return stream, None if is_endless else time, [number(found.get(name)) for name in columns]


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line, parse_int=_parse_whole)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise _Misbuilt("it is no JSON object. Write one on each line; those before it are decided.")
    return found


def _parse_whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
