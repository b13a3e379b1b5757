"""Seasonal baselines: what is typical in each bucket of a season, as it was released.

A season divides time into buckets, such as the 168 hours of a week. The bucket of an observation is a public function
of its public time, so every observation belongs to exactly one bucket, and the size of each bucket is public.

A watch with a seasonal baseline measures an observation in units of its bucket: minus the centre, divided by the
spread, and clipped at public limits. That is a function of the observation, its public time and released numbers, so
what holds for entries within bounds holds for it.  (P4)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.drawing.picture import Band
from wallflower.errors import DataError, ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Numbers = tuple[tuple[float, ...], ...]

LIMIT_SPREADS: Final = 6.0  # from its centre, where an entry is clipped unless a watch states other limits
MIN_CHANGE: Final = 1e-6  # of the range: a smaller change is lost in floats
FLOAT_ERROR: Final = 1e-9  # more than floats can be off in a quotient
ALWAYS: Final = "always"
WRITTEN: Final = "as-written"
MAX_BUCKETS: Final = 10_000  # of a season as it is written
_MONTHS: Final = (0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335)  # days of a leap year before each month


@dataclass(frozen=True, slots=True)
class Calendar:
    """A cycle of `size` buckets, and the bucket of a moment."""

    size: int
    bucket: Callable[[datetime], int]


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
class Season:
    """The buckets of a season. `labels` name them where they are written in the data; a calendar knows its own.

    >>> Season(kind="hour-of-week").buckets(["2024-01-01 05:30", "2024-01-07T23:00:00"]).tolist()
    [5, 167]
    """

    kind: str
    labels: tuple[str, ...] = ()

    @classmethod
    def among(cls, kind: str, times: Sequence[str]) -> Self:
        """Return the season of observations made at these times; a refusal quotes none of them."""
        if kind != WRITTEN:
            return cls(kind=kind)
        labels = tuple(sorted(set(times)))
        if len(labels) > MAX_BUCKETS:
            raise DataError(
                f"the column of times has more than {MAX_BUCKETS:,} different cells, and as written each is its own "
                "bucket. Choose a calendar, such as hour-of-week."
            )
        return cls(kind=kind, labels=labels)

    @property
    def size(self) -> int:
        return len(self.labels) if self.kind == WRITTEN else CALENDARS[self.kind].size if self.kind != ALWAYS else 1

    @property
    def is_cycle(self) -> bool:
        """Whether buckets have neighbours."""
        return self.kind in CALENDARS

    def buckets(self, times: Sequence[str]) -> Ints:
        """Return the bucket of each time, counted from 0; -1 where a written one is not known."""
        if self.kind == WRITTEN:
            known = {label: bucket for bucket, label in enumerate(self.labels)}
            return np.array([known.get(time, -1) for time in times], dtype=np.int64)
        bucket = CALENDARS[self.kind].bucket
        return np.array([bucket(_parse_time(time)) for time in times], dtype=np.int64)


def check_season(kind: str) -> None:
    """Refuse a season that is not known."""
    if kind not in KINDS:
        raise ParameterError(f"season: {kind!r} is not known; it is one of {', '.join(KINDS)}.")


def _parse_time(time: str) -> datetime:
    try:
        return datetime.fromisoformat(time)
    except (TypeError, ValueError):
        raise DataError(
            "a time cannot be parsed. A calendar needs times such as 2024-03-01 or 2024-03-01 14:30. Write them so, or "
            f"use the cells as buckets: season {WRITTEN}."
        ) from None


class ReleasedBaseline(Protocol):
    """A release of `baseline` or `scale`: a watch reads its value. (Queries may not import `release`.)"""

    @property
    def value(self) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SeasonalBaseline:
    """The centre and the spread of every column of one data set, bucket by bucket.

    spread  a scale estimate: the mean distance from the centre, as a standard deviation of a Gaussian
    width   the scale estimate of all buckets together: a quantile of the distances
    """

    dataset: str
    columns: tuple[str, ...]
    season: Season
    time: str | None
    centre: Numbers
    spread: Numbers
    width: tuple[float, ...]

    def __post_init__(self) -> None:
        check_season(self.season.kind)
        shape = (len(self.columns), self.season.size)
        numbers = np.array(self.centre, dtype=np.float64), np.array(self.spread, dtype=np.float64)
        if not self.columns or any(rows.shape != shape or not np.isfinite(rows).all() for rows in numbers):
            raise _malformed()
        if (
            not (numbers[1] > 0).all()
            or len(self.width) != shape[0]
            or not all(0 < width < 1e300 for width in self.width)
        ):
            raise _malformed()
        if (self.time is None) != (self.season.kind == ALWAYS):
            raise _malformed()

    @classmethod
    def of(cls, baseline: Any) -> Self:
        """Return a released baseline, from a release, its value, or either as plain JSON."""
        if isinstance(baseline, int):
            raise ParameterError(
                f"baseline: {baseline} is a ledger entry, which a query by itself cannot look up. Ask a data set or a "
                "service that has it, or pass the release."
            )
        value = baseline if isinstance(baseline, cls | Mapping) else getattr(baseline, "value", None)
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and isinstance(value.get("value"), Mapping):
            value = value["value"]
        if isinstance(value, Mapping) and isinstance(value.get("baseline"), Mapping):
            value = value["baseline"]  # of a scale with locations: one bucket
        if not isinstance(value, Mapping) or "season" not in value:
            raise ParameterError(
                "baseline: it has no season. A watch takes what `baseline` released with a season, such as "
                "hour-of-week, or `scale` with locations; a baseline without a season gives centre and variance, which "
                "are options of a watch. Pass such a release."
            )
        return cls.from_json(value)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return the baseline that `to_json` described."""
        try:
            return cls(
                dataset=str(stored["dataset"]),
                columns=tuple(map(str, stored["columns"])),
                season=Season(kind=str(stored["season"]), labels=tuple(map(str, stored.get("labels", ())))),
                time=stored["time"],
                centre=_rows(stored["centre"]),
                spread=_rows(stored["spread"]),
                width=tuple(map(float, stored["width"])),
            )
        except (KeyError, TypeError, ValueError):
            raise _malformed() from None

    def to_json(self) -> dict[str, Any]:
        """Return the released numbers as plain JSON."""
        labels = {"labels": list(self.season.labels)} if self.season.labels else {}
        return {
            "season": self.season.kind,
            **labels,
            "dataset": self.dataset,
            "time": self.time,
            "columns": list(self.columns),
            "centre": [list(row) for row in self.centre],
            "spread": [list(row) for row in self.spread],
            "width": list(self.width),
        }

    def __str__(self) -> str:
        return f"by {self.season.kind} of {self.dataset}"

    def picture(self, marks: Sequence[int] = ()) -> Band:
        """Draw the centre of the first column, bucket by bucket, a spread to either side, with some buckets marked."""
        centre, spread = self.centre[0], self.spread[0]
        marked = ", flagged ones marked" if marks else ""
        return Band(
            middle=centre,
            low=tuple(at - wide for at, wide in zip(centre, spread, strict=True)),
            high=tuple(at + wide for at, wide in zip(centre, spread, strict=True)),
            across=f"{self.season.kind.replace('-', ' ')}{marked}",
            up=f"{self.columns[0]}, as the schema scales it",
            marks=tuple(bucket for bucket in marks if bucket > 0),
        )

    def require_same(self, dataset: str, columns: Sequence[str]) -> None:
        """Refuse other data: what is typical of them was not released."""
        if dataset != self.dataset or tuple(columns) != self.columns:
            raise DataError(
                f"baseline: it was estimated from {', '.join(self.columns)} in {self.dataset}, but the watch reads "
                f"{', '.join(columns)} in {dataset}. A baseline serves its data set and columns, in their order. "
                "Estimate one for this data set."
            )

    def buckets(self, times: Sequence[str] | None, n: int) -> Ints:
        """Return the bucket of each of `n` observations."""
        if times is None or self.season.kind == ALWAYS:
            return np.zeros(n, dtype=np.int64)
        return self.season.buckets(times)

    def standardise(self, rows: Floats, buckets: Ints) -> Floats:
        """Return entries in spreads from the centre of their bucket; in an unknown bucket, from a middle one.  (P4)"""
        centre, spread = np.array(self.centre), np.array(self.spread)
        centre = np.column_stack([centre, np.median(centre, axis=1)])
        spread = np.column_stack([spread, np.array(self.width)])
        return np.asarray((rows - centre[:, buckets].T) / spread[:, buckets].T)

    def change_in_spreads(self, change: float, width: float) -> float:
        """Return how many spreads an entry moves at most in any bucket when it changes by `change`.  (P4)

        width  of the limits, in spreads
        """
        narrowest = min(*self.width, *(min(row) for row in self.spread))
        spreads = change / narrowest * (1 + FLOAT_ERROR)
        if not spreads >= MIN_CHANGE * width:
            raise ParameterError(
                f"change: {change:g} is less than a millionth of what a watch measures. Pass a larger one, or omit it "
                "to have the limits enforce it."
            )
        return spreads


def round_constants(rows: Floats) -> Numbers:
    """Round to six digits, as public constants are stated."""
    return tuple(tuple(float(f"{value:.6g}") for value in row) for row in rows.tolist())


def _rows(stored: Any) -> Numbers:
    return tuple(tuple(map(float, row)) for row in stored)


def _malformed() -> ParameterError:
    return ParameterError(
        "baseline: malformed. A seasonal baseline has finite centres and positive spreads, a row for each column and a "
        "number for each bucket. Pass a release of `baseline` with a season, or its JSON."
    )
