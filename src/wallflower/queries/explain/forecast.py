"""What to expect of an answer before the look at the records, from public facts and a public model of the table.

The model: the records spread evenly over the combinations of values, and the record in question stands out in every
context, by a public share of its records or as far as the detector lets any record stand out. Then a context's
population follows from how many values of every attribute it allows, and contexts with equal populations can be counted
instead of listed. What holds without the model, for every table, is called *at least* or *at most*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.queries.explain.detectors.base import MarginDetector
from wallflower.queries.explain.draws.dp import chance_of_none, exponents

Floats = NDArray[np.float64]

FINE_STEPS: Final = 1e10  # of the logarithm of populations, by which they are distinguished,
COARSE_STEPS: Final = 1e3  # and where there are more than
MAX_FINE_POPULATIONS: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class Spread:
    """The number of contexts (logarithms) of every population (as rising shares of the table), under the model."""

    logs: Floats
    shares: Floats
    contexts: int

    def utility(self, scores: Floats, rate: float) -> float:
        """Return the expected population, as a share of the largest, of a draw proportional to exp(rate · score)."""
        weights = self.logs + rate * scores
        weights = np.exp(weights - weights.max())
        return float((weights * self.shares).sum() / weights.sum())

    def position(self, rank: int) -> int:
        """Return where the context is listed that has the `rank`-th largest population."""
        until = np.cumsum(np.exp(np.minimum(self.logs[::-1], 60.0))) >= rank - 0.5
        return len(until) - 1 - int(np.argmax(until))

    def best_of(self, samples: int) -> float:
        """Return the expected population, as a share of the largest, of the best of `samples` uniform draws."""
        counts = np.exp(self.logs - self.logs.max())
        below = np.minimum(np.cumsum(counts) / counts.sum(), 1.0) ** samples
        return float((self.shares * np.diff(below, prepend=0.0)).sum())


@lru_cache(maxsize=8)
def spread_evenly(sizes: tuple[int, ...]) -> Spread:
    """Return the contexts of domains of these sizes.

    >>> model = spread_evenly((2, 2))
    >>> np.exp(model.logs).round().tolist(), model.shares.round(3).tolist()
    ([1.0, 2.0, 1.0], [0.25, 0.5, 1.0])
    """
    logs, shares = np.zeros(1), np.ones(1)
    for size in sizes:
        chosen = np.arange(1, size + 1)
        ways = np.array([_log_choices(size - 1, count - 1) for count in chosen.tolist()])
        logs, shares = _merge((logs[:, None] + ways).ravel(), (shares[:, None] * (chosen / size)).ravel())
    return Spread(logs, shares, 1 << sum(sizes) - len(sizes))


def _merge(logs: Floats, shares: Floats) -> tuple[Floats, Floats]:
    """Return one entry for each population; the largest stands for those that are not distinguished."""
    steps = np.round((COARSE_STEPS if len(shares) > MAX_FINE_POPULATIONS else FINE_STEPS) * np.log(shares))
    kept, place = np.unique(steps, return_inverse=True)
    merged, largest = np.full(len(kept), -np.inf), np.zeros(len(kept))
    np.logaddexp.at(merged, place, logs)
    np.maximum.at(largest, place, shares)
    return merged, largest


def _log_choices(among: int, chosen: int) -> float:
    return math.lgamma(among + 1) - math.lgamma(chosen + 1) - math.lgamma(among - chosen + 1)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect of mode dp: `baseless` and `least_none` whatever the table, the others under the model.

    baseless    bound on the chance that a context is named where no margin is above 0
    least_none  bound from below on the chance of none
    none        chance of none
    valid       chance that the first context is valid, once one is named
    invalid     bound on the chance that any context is not valid, wherever the best stand out as they do in the model
    utility     expected population of the first context, as a share of the largest, 0 if it is not valid
    """

    baseless: float
    least_none: float
    none: float
    valid: float
    invalid: float
    utility: float


def expect(
    model: Spread, detector: MarginDetector, size: int, *, deciding: Fraction, each: Fraction, top: int, clear: float
) -> Outlook:
    """Return what to expect of tables of `size` records; the margin of a context is `clear` of its records."""
    populations, contexts = np.floor(model.shares * size + 1e-6), model.contexts
    greatest = detector.greatest_margins(populations)  # (U)
    margins = detector.expected_margins(populations, clear)
    heights = exponents(margins, populations, contexts=contexts, size=size, each=each)
    chances = np.exp(model.logs + heights - (model.logs + heights).max())
    chances /= chances.sum()
    valid, last = margins > 0, model.position(top)
    return Outlook(
        baseless=1 - chance_of_none(0.0, deciding),
        least_none=chance_of_none(float(greatest.max()), deciding),
        none=chance_of_none(float(margins.max()), deciding),
        valid=min(1.0, float(chances[valid].sum())),
        invalid=_bound_invalid(float(heights[last]), contexts, top) if valid[last] else 1.0,
        utility=float((chances * model.shares)[valid].sum()),
    )


def _bound_invalid(height: float, contexts: int, top: int) -> float:
    """Bound the chance that any of `top` is invalid where as many contexts have this exponent, the others 0.  (I)"""
    return min(1.0, top / (1 + math.exp(min(height - math.log(contexts - 1), 700.0)))) if contexts > 1 else 0.0
