"""What to expect of a context before anybody looks, from public facts and a public model of the table.

The model: the records spread evenly over the combinations of values, and the record in question stands out in every
context, by a public share of its records or as far as the detector lets any record stand out. Then a context's
population follows from how many values of every attribute it allows, and contexts with equal populations can be counted
instead of listed. What holds without the model, for every table, is said to hold at least or at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    Detector,
    Distance,
    FixedBins,
    Grubbs,
    Histogram,
    Lof,
    Tukey,
)
from wallflower.queries.explain.margins import greatest_margins
from wallflower.queries.explain.modes import chance_of_none, exponents

Floats = NDArray[np.float64]

FINE, COARSE, MANY = 1e10, 1e3, 1 << 15  # populations are told apart by so many steps of their logarithm; if many
NANOSECONDS: Final[Mapping[type, float]] = {
    Grubbs: 15.0,
    ClampedGrubbs: 120.0,
    Distance: 10.0,
    FixedBins: 10.0,
    Tukey: 300.0,
    Histogram: 110.0,
    Lof: 1300.0,
}
LEAST: Final = 0.1  # seconds that any look takes
ASKING: Final = 100_000.0  # nanoseconds for one context where a detector has no engine


@dataclass(frozen=True, slots=True)
class Spread:
    """How many contexts there are (logarithms) of every population (as rising shares of the table), under the model."""

    logs: Floats
    shares: Floats
    contexts: int

    def utility(self, scores: Floats, rate: float) -> float:
        """The expected population, as a share of the largest, of a draw proportional to exp(rate · score)."""
        weights = self.logs + rate * scores
        weights = np.exp(weights - weights.max())
        return float((weights * self.shares).sum() / weights.sum())

    def place(self, rank: int) -> int:
        """Where the context is listed that has the `rank`-th largest population."""
        until = np.cumsum(np.exp(np.minimum(self.logs[::-1], 60.0))) >= rank - 0.5
        return len(until) - 1 - int(np.argmax(until))

    def best_of(self, samples: int) -> float:
        """The expected population, as a share of the largest, of the best of so many uniform draws."""
        counts = np.exp(self.logs - self.logs.max())
        below = np.minimum(np.cumsum(counts) / counts.sum(), 1.0) ** samples
        return float((self.shares * np.diff(below, prepend=0.0)).sum())


@lru_cache(maxsize=8)
def spread(sizes: tuple[int, ...]) -> Spread:
    """The contexts of domains of these sizes.

    >>> found = spread((2, 2))
    >>> np.exp(found.logs).round().tolist(), found.shares.round(3).tolist()
    ([1.0, 2.0, 1.0], [0.25, 0.5, 1.0])
    """
    logs, shares = np.zeros(1), np.ones(1)
    for size in sizes:
        chosen = np.arange(1, size + 1)
        ways = np.array([_log_choices(size - 1, count - 1) for count in chosen.tolist()])
        logs, shares = _merge((logs[:, None] + ways).ravel(), (shares[:, None] * (chosen / size)).ravel())
    return Spread(logs, shares, 1 << sum(sizes) - len(sizes))


def _merge(logs: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """One entry for each population; the largest stands for those that cannot be told apart."""
    steps = np.round((COARSE if len(shares) > MANY else FINE) * np.log(shares))
    kept, place = np.unique(steps, return_inverse=True)
    many, largest = np.full(len(kept), -np.inf), np.zeros(len(kept))
    np.logaddexp.at(many, place, logs)
    np.maximum.at(largest, place, shares)
    return many, largest


def _log_choices(among: int, chosen: int) -> float:
    return math.lgamma(among + 1) - math.lgamma(chosen + 1) - math.lgamma(among - chosen + 1)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What mode dp does: `baseless` and `least_none` whatever the table, the others under the model.

    `baseless` bounds the chance that a context is named where no margin is above 0, `least_none` that none is said.
    `none` is how likely it is to say none; `valid` how likely the first context is valid, once one is named; `invalid`
    bounds the chance that any of them is not, wherever the best stand out as they do in the model; `utility` is the
    expected population of the first, as a share of the largest, 0 if it is not valid.
    """

    baseless: float
    least_none: float
    none: float
    valid: float
    invalid: float
    utility: float


def outlook(
    model: Spread, detector: Detector, size: int, *, parts: tuple[Fraction, Fraction], top: int, clear: float
) -> Outlook:
    """What to expect of tables of `size` records; the margin of a context is `clear` of its records."""
    deciding, each = parts
    populations = np.floor(model.shares * size + 1e-6)
    greatest = greatest_margins(detector, populations)  # (U)
    margins = greatest if isinstance(detector, Distance) else np.minimum(clear * populations, greatest)
    contexts = model.contexts
    heights = exponents(margins, populations, contexts=contexts, size=size, each=each)
    chances = np.exp(model.logs + heights - (model.logs + heights).max())
    chances /= chances.sum()
    valid, last = margins > 0, model.place(top)
    return Outlook(
        baseless=1 - chance_of_none(0.0, deciding),
        least_none=chance_of_none(float(greatest.max()), deciding),
        none=chance_of_none(float(margins.max()), deciding),
        valid=min(1.0, float(chances[valid].sum())),
        invalid=_bound(float(heights[last]), contexts, top) if valid[last] else 1.0,
        utility=float((chances * model.shares)[valid].sum()),
    )


def _bound(height: float, contexts: int, top: int) -> float:
    """How likely any of `top` is invalid where as many contexts have this exponent, and the others 0 at most.  (I)"""
    return min(1.0, top / (1 + math.exp(min(height - math.log(contexts - 1), 700.0)))) if contexts > 1 else 0.0


def seconds(detector: type, contexts: int, n: int) -> float:
    """About how long two cores take to examine so many contexts of `n` records."""
    each = NANOSECONDS.get(detector, ASKING)
    if detector in (Histogram, Lof):
        each *= max(0.2, n / 51_000)  # rows of bits grow with the table
    return LEAST + contexts * each / 1e9
