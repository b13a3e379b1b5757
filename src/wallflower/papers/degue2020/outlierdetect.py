"""OUTLIERDETECT of [Deg20] on the paper's own example: its formulas, its runs, and what it costs.

`naive_false_positive` and `naive_false_negative` are the printed theorems evaluated as they stand. They are right on
paper and wrong on a machine; `queries.watch.rates` computes the same without cancelling and overflowing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from wallflower.data import Points
from wallflower.lazy import Lazy
from wallflower.neighbours.pairs import Floats
from wallflower.papers.degue2020.detection import flags
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.rates import rates, true_positive_at
from wallflower.synthetic import mixture

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

ENTRIES: Final = 30
LENGTH: Final = 1000
CENTRE: Final = 1.73e4
VARIANCE: Final = 3.01e7
RHO: Final = 500.0
TRUTH: Final = 9.13e3
REACH: Final = 1e4  # entries are clipped this far from their mean, ten of their deviations: hardly ever


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """How many were flagged of how many, run by run."""

    flagged: Floats
    of: Floats

    @property
    def value(self) -> float:
        return float(self.flagged.sum() / self.of.sum())

    @property
    def error(self) -> float:
        """The standard error over runs, which are independent; observations of one run are not."""
        return float(np.sqrt(((self.flagged - self.value * self.of) ** 2).sum()) / self.of.sum())

    @property
    def run(self) -> tuple[float, float]:
        """Where the shares of nine runs in ten lie."""
        low, high = np.quantile(self.flagged / np.maximum(self.of, 1), [0.05, 0.95])
        return float(low), float(high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulation:
    """What came of many runs: shares flagged of what is usual and of the outliers."""

    false_positive: Share
    true_positive: Share


def world(truth: float = TRUTH) -> dict[str, Any]:
    """The example as `rates` takes it."""
    return {"variance": VARIANCE, "rho": RHO, "truth": truth}


def watch(epsilon: str, threshold: float) -> Watch:
    """The mechanism as printed, at the paper's own ε: one entry of one observation pays a quarter of that."""
    middle = CENTRE / ENTRIES
    return Watch(
        level="paper",
        threshold=threshold,
        low=middle - REACH,
        high=middle + REACH,
        change=RHO,
        centre=CENTRE,
        loss=Loss(Fraction(epsilon) / 4),
    )


def simulate(epsilon: str, threshold: float, truth: float, runs: int, length: int = LENGTH) -> Simulation:
    """Run the mechanism on so many draws of the signal, each with noise and a noisy threshold of its own."""
    query = watch(epsilon, threshold)
    counts = []
    for seed in range(runs):
        signal = _signal(seed, length)
        is_outlier = np.abs(signal.values.sum(axis=1) - CENTRE) >= truth
        flagged = flags(query, signal)
        counts.append([(flagged & kind).sum() for kind in (~is_outlier, is_outlier)] + [is_outlier.sum()])
    wrong, right, outliers = np.array(counts, dtype=np.float64).T
    return Simulation(false_positive=Share(wrong, length - outliers), true_positive=Share(right, outliers))


def naive_false_positive(epsilon: float, truth: float = TRUTH) -> float:
    """[Deg20, Thm 3] as it stands: a product of something huge and a difference of two that are nearly one."""
    u, v = _units(epsilon, truth)

    def term(v: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.exp(v * v - 2 * u * v) * (_special.erf(v) - _special.erf(v - u)))

    return (2 / 3 * term(v) - term(2 * v) / 6) / math.erf(u)


def naive_false_negative(epsilon: float, truth: float = TRUTH) -> float:
    """[Deg20, Thm 2] as it stands: something huge times something tiny."""
    u, v = _units(epsilon, truth)

    def term(x: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.exp(x * x) * _special.erfc(x))

    return (2 / 3 * term(u + v) - term(u + 2 * v) / 6) / term(u)


def expected_flags(epsilon: float, threshold: float) -> float:
    """How many of the observations are flagged, on average."""
    found, outliers = rates("paper", threshold=threshold, epsilon=epsilon, **world()), math.erfc(_units(1.0, TRUTH)[0])
    return LENGTH * ((1 - outliers) * found.false_positive + outliers * found.true_positive)


def own_epsilon(spent: float, false_positive: float | None = None) -> float:
    """The paper's ε that comes to a total of `spent` by (K+1)ε/2, K being the flags expected.

    They depend on the threshold: the one with this false positive rate, or the one the paper allows, which is `TRUTH`.

    >>> round(own_epsilon(1.0, 0.1), 4), round(own_epsilon(1.0), 4)
    (0.0197, 0.004)
    """
    epsilon = 2 * spent / (LENGTH * (false_positive or 0.5) + 1)
    for _ in range(30):
        at = TRUTH
        if false_positive is not None:
            at, _ = true_positive_at("paper", false_positive, epsilon=epsilon, **world())
        off = epsilon * (expected_flags(epsilon, at) + 1) / (2 * spent)
        epsilon /= off**0.6  # more flags with a larger ε: dividing by all of it would overshoot
        if abs(off - 1) < 1e-3:
            break
    return epsilon


@lru_cache(maxsize=256)
def _signal(seed: int, length: int) -> Points:
    """Independent entries with the stated mean and variance of their sum, all that the mechanism sees of them."""
    values = CENTRE / ENTRIES + math.sqrt(VARIANCE / ENTRIES) * mixture(length, ENTRIES, seed=seed, share=0)
    return Points.from_array(values)


def _units(epsilon: float, truth: float) -> tuple[float, float]:
    spread = math.sqrt(VARIANCE)
    return truth / (spread * math.sqrt(2)), epsilon * spread / (RHO * math.sqrt(32))
