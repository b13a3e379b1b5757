"""Public periods of time: each record is in one of them, or in none, by its own cell alone."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.schema import Column
from wallflower.schema.column import UNITS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOWHERE: Final = -1  # the period of a record that is before the first, after the last, or has no time
_LENGTH: Final = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([a-z]*?)s?\s*", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """Periods of one length, one after the other, on the scale of a column of numbers or of times.

    start   where the first begins, in units of the column; of public times in seconds since `origin`
    length  of each
    count   how many there are
    origin  the date that the numbers count from, where they stand for dates
    unit    what they count
    """

    start: float
    length: float
    count: int
    origin: datetime | None = None
    unit: timedelta = timedelta(seconds=1)

    @classmethod
    def of(cls, column: Column, *, start: str | None, every: str, count: int) -> Self:
        """The periods of a column; refused by what is public of it.

        >>> Periods.of(Column("day", unit="days", since="2026-01-01"), start=None, every="1 week", count=52).length
        7.0
        """
        length, unit = read_length(every)
        if column.time:
            first = _read_moment("start", start)
            if isinstance(first, datetime):
                return cls(start=0.0, length=_in_units(length, unit, timedelta(seconds=1)), count=count, origin=first)
            return cls(start=first, length=_plain(length, unit), count=count)
        if column.unit is None:
            return cls(start=_read_start(column, start), length=_plain(length, unit), count=count)
        own = UNITS[column.unit]
        length = length if unit is None else _in_units(length, unit, own)
        return cls(start=_read_start(column, start), length=length, count=count, origin=_utc(column.origin), unit=own)

    def places(self, numbers: Floats) -> Ints:
        """In which period each is, from 0; `NOWHERE` outside of all. Each is decided by itself."""
        with np.errstate(invalid="ignore", over="ignore"):
            at = np.floor((numbers - self.start) / self.length)
        inside = (at >= 0) & (at < self.count)  # False for NaN
        return np.where(inside, at, NOWHERE).astype(np.int64)

    def numbers(self, times: Iterable[object]) -> Floats:
        """Public times as numbers on this scale; NaN for what cannot be read."""
        return np.array([self._number(time) for time in times], dtype=np.float64)

    def _number(self, time: object) -> float:
        try:
            if self.origin is None:
                return float(time)  # type: ignore[arg-type]
            moment = time if isinstance(time, datetime) else datetime.fromisoformat(str(time).strip())
            return (_utc(moment) - self.origin) / self.unit
        except (TypeError, ValueError, OverflowError):
            return math.nan

    def end(self, period: int) -> str:
        """When a period ends, from 0: a date, or a number, as text."""
        at = self.start + (period + 1) * self.length
        if self.origin is None:
            return f"{at:.10g}"
        try:
            moment = self.origin + at * self.unit
        except OverflowError:
            return f"{at:.10g}"
        is_day = moment == moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return moment.date().isoformat() if is_day else moment.replace(tzinfo=None).isoformat(timespec="seconds")


def read_length(text: str) -> tuple[float, timedelta | None]:
    """A length as a number and a unit, if it has one.

    >>> read_length("7"), read_length("6 hours")
    ((7.0, None), (6.0, datetime.timedelta(seconds=3600)))
    """
    match = _LENGTH.fullmatch(text)
    unit = None if match is None else match[2]
    if match is None or (unit and f"{unit}s" not in UNITS) or not (unit or match[1]) or float(match[1] or 1) <= 0:
        raise ParameterError(
            f"every: {text[:40]!r} is not a length above 0. Write a number, such as 1, with a unit if the column holds "
            f"dates, such as '1 week' ({', '.join(UNITS)})."
        )
    return float(match[1] or 1), UNITS[f"{unit}s"] if unit else None


def _in_units(length: float, unit: timedelta | None, own: timedelta) -> float:
    if unit is None:
        raise ParameterError("every: times are dates, and the length has no unit. Write one, such as '1 day'.")
    return length * (unit / own)


def _plain(length: float, unit: timedelta | None) -> float:
    if unit is not None:
        raise ParameterError("every: the times are numbers, and the length has a unit. Write a number alone.")
    return length


def _read_start(column: Column, start: str | None) -> float:
    """Where the first period begins: as stated, at the lower bound, or at the date that the column counts from."""
    if start is None:
        known = column.low if column.low is not None else 0.0 if column.since is not None else None
        if known is None:
            raise ParameterError(f"start: column {column.name!r} has no lower bound to begin at. Pass a start.")
        return float(known)
    first = _read_moment("start", start)
    if isinstance(first, float):
        return first
    if column.unit is None or column.origin is None:
        raise ParameterError("start: it is a date, and the column holds plain numbers. Pass a number.")
    return (first - _utc(column.origin)) / UNITS[column.unit]


def _read_moment(name: str, text: str | None) -> float | datetime:
    if text is None:
        raise ParameterError(f"{name}: public times have no lower bound to begin at. Pass one, such as 2026-01-01.")
    try:
        number = float(text)
        if math.isfinite(number):
            return number
    except ValueError:
        pass
    try:
        return _utc(datetime.fromisoformat(text.strip()))
    except ValueError:
        raise ParameterError(
            f"{name}: {text[:40]!r} is neither a number nor a date, such as 2026-01-01 or 2026-01-01T06:00. Pass one."
        ) from None


def _utc(moment: datetime | None) -> datetime:
    """The moment with a zone; midnight of the year 1 where a column counts from midnight."""
    known = datetime.min if moment is None else moment
    return known if known.tzinfo else known.replace(tzinfo=UTC)
