"""Which phase of its season an observation belongs to: a public function of its public time.

Times are cells that the schema makes public, and a phase is read off one cell alone. So every observation belongs to
exactly one phase, and how many observations a phase has is public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError

Ints = NDArray[np.int64]

ALWAYS: Final = "always"
WRITTEN: Final = "as-written"
MOST: Final = 10_000  # phases, as they are written
_MONTHS: Final = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)  # days of a leap year before each month


@dataclass(frozen=True, slots=True)
class Calendar:
    """A cycle of so many phases, and the place of a moment in it."""

    size: int
    place: Callable[[datetime], int]


CALENDARS: Final[Mapping[str, Calendar]] = {
    "hour-of-day": Calendar(24, lambda at: at.hour),
    "half-hour-of-day": Calendar(48, lambda at: 2 * at.hour + at.minute // 30),
    "day-of-week": Calendar(7, lambda at: at.weekday()),
    "hour-of-week": Calendar(168, lambda at: 24 * at.weekday() + at.hour),
    "half-hour-of-week": Calendar(336, lambda at: 48 * at.weekday() + 2 * at.hour + at.minute // 30),
    "month-of-year": Calendar(12, lambda at: at.month - 1),
    "day-of-year": Calendar(366, lambda at: _MONTHS[at.month - 1] + at.day - 1),
}
KINDS: Final = (ALWAYS, *CALENDARS, WRITTEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """The phases of a season. `labels` name them where they are written in the data; a calendar knows its own.

    >>> Phases(kind="hour-of-week").places(["2024-01-01 05:30", "2024-01-07T23:00:00"]).tolist()
    [5, 167]
    """

    kind: str
    labels: tuple[str, ...] = ()

    @classmethod
    def among(cls, kind: str, times: Sequence[str]) -> Self:
        """The phases of observations made at these times, or a refusal that quotes none of them."""
        if kind != WRITTEN:
            return cls(kind=kind)
        labels = tuple(sorted(set(times)))
        if len(labels) > MOST:
            raise DataError(
                f"the column of times has more than {MOST:,} different cells, and as written each is a phase of its "
                "own. Choose a calendar, such as hour-of-week."
            )
        return cls(kind=kind, labels=labels)

    @property
    def size(self) -> int:
        return len(self.labels) if self.kind == WRITTEN else CALENDARS[self.kind].size if self.kind != ALWAYS else 1

    @property
    def is_cycle(self) -> bool:
        """Whether phases have neighbours."""
        return self.kind in CALENDARS

    def places(self, times: Sequence[str]) -> Ints:
        """The phase of each time, counted from 0; -1 where a written one is not known."""
        if self.kind == WRITTEN:
            known = {label: place for place, label in enumerate(self.labels)}
            return np.array([known.get(time, -1) for time in times], dtype=np.int64)
        place = CALENDARS[self.kind].place
        return np.array([place(_moment(time)) for time in times], dtype=np.int64)


def require_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ParameterError(f"phase: {kind!r} is not known; it is one of {', '.join(KINDS)}.")


def _moment(time: str) -> datetime:
    try:
        return datetime.fromisoformat(time)
    except (TypeError, ValueError):
        raise DataError(
            "a time cannot be read; a calendar needs times such as 2024-03-01 or 2024-03-01 14:30. Write them so, or "
            f"take the cells as phases: phase {WRITTEN}."
        ) from None
