"""What is usual at each phase of a season, as it was released: public constants that a watch judges by.

An observation is put in units of its phase: less the centre, divided by the spread, and cut off at public limits. That
is a function of the observation, its public time and released numbers, so whatever holds for entries within limits
holds for it.  (P4)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.queries.watch.seasons.phases import ALWAYS, Phases, require_kind
from wallflower.query.picture import Band

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Numbers = tuple[tuple[float, ...], ...]

LIMIT: Final = 6.0  # spreads from its centre at which an entry is cut off, unless a watch says otherwise
FINEST: Final = 1e-6  # of the limits: a smaller change is lost in floats
SLIGHT: Final = 1e-9  # more than floats can be off in a quotient


class ReleasedBaseline(Protocol):
    """A release of `baseline`, as far as a watch reads it."""

    @property
    def value(self) -> Any: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seasons:
    """The centre and the spread of every column, phase by phase, of one data set. `width` is what all phases share."""

    dataset: str
    columns: tuple[str, ...]
    phases: Phases
    time: str | None
    centre: Numbers
    spread: Numbers
    width: tuple[float, ...]

    def __post_init__(self) -> None:
        require_kind(self.phases.kind)
        shape = (len(self.columns), self.phases.size)
        numbers = np.array(self.centre, dtype=np.float64), np.array(self.spread, dtype=np.float64)
        if not self.columns or any(each.shape != shape or not np.isfinite(each).all() for each in numbers):
            raise _baseline_error()
        if (
            not (numbers[1] > 0).all()
            or len(self.width) != shape[0]
            or not all(0 < each < 1e300 for each in self.width)
        ):
            raise _baseline_error()
        if (self.time is None) != (self.phases.kind == ALWAYS):
            raise _baseline_error()

    @classmethod
    def of(cls, given: Any) -> Self:
        """What was released: a release, its value, or either as plain JSON."""
        if isinstance(given, int):
            raise ParameterError(
                f"baseline: {given} is an entry of a ledger, which a question by itself does not know. Ask a data set "
                "or a service that has it, or pass what was released."
            )
        value = given if isinstance(given, cls | Mapping) else getattr(given, "value", None)
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping) and isinstance(value.get("value"), Mapping):
            value = value["value"]
        if isinstance(value, Mapping) and isinstance(value.get("baseline"), Mapping):
            value = value["baseline"]  # of a scale with locations: one phase
        if not isinstance(value, Mapping) or "phase" not in value:
            raise ParameterError(
                "baseline: it has no phases. A watch takes what `baseline` released with a phase, such as "
                "hour-of-week, or `scale` with locations; one without gives centre and variance, which are options of "
                "their own. Pass such a release."
            )
        return cls.from_json(value)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The constants that `to_json` described."""
        try:
            return cls(
                dataset=str(stored["dataset"]),
                columns=tuple(map(str, stored["columns"])),
                phases=Phases(kind=str(stored["phase"]), labels=tuple(map(str, stored.get("labels", ())))),
                time=stored["time"],
                centre=_rows(stored["centre"]),
                spread=_rows(stored["spread"]),
                width=tuple(map(float, stored["width"])),
            )
        except (KeyError, TypeError, ValueError):
            raise _baseline_error() from None

    def to_json(self) -> dict[str, Any]:
        """What was released, as plain JSON."""
        labels = {"labels": list(self.phases.labels)} if self.phases.labels else {}
        return {
            "phase": self.phases.kind,
            **labels,
            "dataset": self.dataset,
            "time": self.time,
            "columns": list(self.columns),
            "centre": [list(row) for row in self.centre],
            "spread": [list(row) for row in self.spread],
            "width": list(self.width),
        }

    def __str__(self) -> str:
        return f"by {self.phases.kind} of {self.dataset}"

    def picture(self, marks: Sequence[int] = ()) -> Band:
        """The centre of the first column, phase by phase, a spread to either side; marked are these phases."""
        centre, spread = self.centre[0], self.spread[0]
        marked = ", flagged ones marked" if marks else ""
        return Band(
            middle=centre,
            low=tuple(at - wide for at, wide in zip(centre, spread, strict=True)),
            high=tuple(at + wide for at, wide in zip(centre, spread, strict=True)),
            across=f"{self.phases.kind.replace('-', ' ')}{marked}",
            up=f"{self.columns[0]}, as the schema scales it",
            marks=tuple(place for place in marks if place > 0),
        )

    def require_same(self, dataset: str, columns: Sequence[str]) -> None:
        """Refuse other data: their usual is another one, and nobody has paid for it there."""
        if dataset != self.dataset or tuple(columns) != self.columns:
            raise DataError(
                f"baseline: it was learnt of {', '.join(self.columns)} in {self.dataset}, and what is watched is "
                f"{', '.join(columns)} in {dataset}. A baseline serves its own data set and columns, in their order. "
                "Learn one here."
            )

    def places(self, times: Sequence[str] | None, n: int) -> Ints:
        """The phase of each of `n` observations."""
        if times is None or self.phases.kind == ALWAYS:
            return np.zeros(n, dtype=np.int64)
        return self.phases.places(times)

    def standardise(self, rows: Floats, places: Ints) -> Floats:
        """Entries in spreads of their phase from its centre; where the phase is unknown, from a middle one.  (P4)"""
        centre, spread = np.array(self.centre), np.array(self.spread)
        centre = np.column_stack([centre, np.median(centre, axis=1)])
        spread = np.column_stack([spread, np.array(self.width)])
        found: Floats = (rows - centre[:, places].T) / spread[:, places].T
        return found

    def change_in_spreads(self, change: float, reach: float) -> float:
        """The most that an entry that changes by so much moves in any phase, of limits so far apart.  (P4)"""
        least = min(*self.width, *(min(row) for row in self.spread))
        found = change / least * (1 + SLIGHT)
        if not found >= FINEST * reach:
            raise ParameterError(
                f"change: {change:g} is less than a millionth of what a watch measures. Pass a larger one, or leave it "
                "out to have the limits enforce it."
            )
        return found


def round_constants(rows: Floats) -> Numbers:
    """Six digits, as public constants are stated."""
    return tuple(tuple(float(f"{value:.6g}") for value in row) for row in rows.tolist())


def _rows(stored: Any) -> Numbers:
    return tuple(tuple(map(float, row)) for row in stored)


def _baseline_error() -> ParameterError:
    return ParameterError(
        "baseline: it is not what `baseline` releases by phase: finite centres and positive spreads, a row for each "
        "column and a number for each phase. Pass a release, or its JSON."
    )
