"""Whether new records are flagged as often as the fitted ones were to be: post-processing of a detector.

The interval is exact [CP34]: whatever the share among the records to come, it holds that share in 95 batches of 100 at
least. The fitted share is known as far as the threshold was: it misses what was wanted by as much as its release says.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from wallflower.errors import DataError
from wallflower.machine.heavy import scipy_special as _special

DOUBT: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """Flags of a batch: `interval` holds the flag rate of records to come, `expected` that of the fitted ones,
    with 95 % confidence each. `expected` is None if the detector was fitted without a contamination."""

    records: int
    flagged: int
    interval: tuple[float, float]
    expected: tuple[float, float] | None

    @property
    def share(self) -> float:
        return self.flagged / self.records

    @property
    def has_drifted(self) -> bool:
        """Whether the intervals do not overlap."""
        return self.expected is not None and not (
            self.interval[0] <= self.expected[1] and self.expected[0] <= self.interval[1]
        )

    @property
    def text(self) -> str:
        """The comparison, as a sentence."""
        low, high = self.interval
        counts = (
            f"{self.flagged:,} of {self.records:,} records are flagged, {self.share:.3%} (95 % interval {low:.3%} to "
        )
        if self.expected is None:
            return f"{counts}{high:.3%})."
        least, most = self.expected
        verdict = "more" if low > most else "fewer" if high < least else "not distinguishable from"
        than = "" if verdict.startswith("not") else " than"
        return f"{counts}{high:.3%}): {verdict}{than} the {least:.3%} to {most:.3%} of the fitted ones."

    def to_json(self) -> dict[str, Any]:
        return {
            "records": self.records,
            "flagged": self.flagged,
            "share": self.share,
            "interval": list(self.interval),
            "expected": None if self.expected is None else list(self.expected),
            "has_drifted": self.has_drifted,
        }


def drift_of(records: int, flagged: int, *, wanted: Fraction | None, miss: float) -> Drift:
    """Compare the flag rate of a batch with the rate that was wanted."""
    if not records:
        raise DataError("drift: there are no records to compare. Pass some.")
    expected = None if wanted is None else (max(0.0, float(wanted) - miss), min(1.0, float(wanted) + miss))
    return Drift(records=records, flagged=flagged, interval=exact_interval(flagged, records), expected=expected)


def exact_interval(hits: int, of: int) -> tuple[float, float]:
    """Return the exact 95 % confidence interval of a share [CP34].

    >>> [round(end, 4) for end in exact_interval(0, 100)], [round(end, 4) for end in exact_interval(50, 100)]
    ([0.0, 0.0362], [0.3983, 0.6017])
    """
    low = float(_special.betaincinv(hits, of - hits + 1, DOUBT / 2)) if hits else 0.0
    high = float(_special.betaincinv(hits + 1, of - hits, 1 - DOUBT / 2)) if hits < of else 1.0
    return low, high
