"""What to expect of a context before anybody looks, from public facts and a public model of the table.

The model: the records spread evenly over the combinations of values, and the record in question is an outlier in every
context, by a margin that is a public share of the context. Then a context's population follows from how many values of
every attribute it allows, and contexts with equal populations can be counted instead of listed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.queries.explain.detectors import ClampedGrubbs, Distance, FixedBins, Grubbs, Histogram, Lof, Tukey

Floats = NDArray[np.float64]

FINE: Final = 1000  # populations are told apart by so many steps of their logarithm
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
    """How many contexts there are (logarithms) of every population (as shares of the whole table), under the model."""

    logs: Floats
    shares: Floats

    def utility(self, scores: Floats, rate: float) -> float:
        """The expected population, as a share of the largest, of a draw proportional to exp(rate · score)."""
        weights = self.logs + rate * scores
        weights = np.exp(weights - weights.max())
        return float((weights * self.shares).sum() / weights.sum())

    def ranked(self, place: int) -> float:
        """The population of the `place`-th largest context, as a share of the largest."""
        order = np.argsort(-self.shares)
        until = np.cumsum(np.exp(np.minimum(self.logs[order], 60.0))) >= place - 0.5
        return float(self.shares[order][int(np.argmax(until))])

    def best_of(self, samples: int) -> float:
        """The expected population, as a share of the largest, of the best of so many uniform draws."""
        order = np.argsort(self.shares)
        counts = np.exp(self.logs[order] - self.logs.max())
        below = np.minimum(np.cumsum(counts) / counts.sum(), 1.0) ** samples
        return float((self.shares[order] * np.diff(below, prepend=0.0)).sum())


def spread(sizes: Sequence[int]) -> Spread:
    """The contexts of domains of these sizes.

    >>> found = spread((2, 2))
    >>> np.exp(found.logs).round().tolist(), found.shares.round(3).tolist()
    ([1.0, 2.0, 1.0], [0.25, 0.5, 1.0])
    """
    steps, logs = np.zeros(1, np.int64), np.zeros(1)
    for size in sizes:
        chosen = np.arange(1, size + 1)
        more = np.round(FINE * np.log(chosen / size)).astype(np.int64)
        ways = np.array([math.log(math.comb(size - 1, count - 1)) for count in chosen.tolist()])
        steps, logs = _merged((steps[:, None] + more).ravel(), (logs[:, None] + ways).ravel())
    return Spread(logs, np.exp(steps / FINE))


def _merged(steps: NDArray[np.int64], logs: Floats) -> tuple[NDArray[np.int64], Floats]:
    kept, place = np.unique(steps, return_inverse=True)
    top = logs.max()
    return kept, top + np.log(np.bincount(place, weights=np.exp(logs - top)))


def seconds(detector: type, contexts: int, n: int) -> float:
    """About how long two cores take to examine so many contexts of `n` records."""
    each = NANOSECONDS.get(detector, ASKING)
    if detector in (Histogram, Lof):
        each *= max(0.2, n / 51_000)  # rows of bits grow with the table
    return LEAST + contexts * each / 1e9
