"""OUTLIERDETECT of [Deg20] on the paper's own example: its formulas, its runs, and what it costs.

`theorem_2` and `theorem_3` are the printed formulas evaluated as they stand. They are right on paper and wrong on a
machine; `queries.watch.rates` computes the same without cancelling and overflowing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np

from wallflower.data import Points
from wallflower.machine.heavy import scipy_optimize as _optimize
from wallflower.machine.heavy import scipy_special as _special
from wallflower.neighbours.pairs import Floats
from wallflower.papers.degue2020.detection import flags
from wallflower.papers.facts import printed_facts
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.forecast.rates import rates, true_positive_at
from wallflower.synthetic import mixture

FACTS: Final = printed_facts("degue2020")
ENTRIES: Final = int(FACTS["n"].number)
LENGTH: Final = int(FACTS["m"].number)
CENTRE: Final = FACTS["1 mu"].number
VARIANCE: Final = FACTS["1 Sigma 1"].number
RHO: Final = FACTS["rho = Delta"].number
TRUTH: Final = FACTS["h"].number
SPREAD: Final = math.sqrt(VARIANCE)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)
REACH: Final = 1e4  # entries are clipped this far from their mean, ten of their deviations: hardly ever


def input_perturbation_at(false_positive: float, epsilon: float) -> float:
    """The outliers found by noise on every entry [Deg20, I], at the threshold with this false positive rate.

    Each entry of the example gets Laplace noise for a change by ρ, which costs `epsilon` for one entry, and the sum of
    the noisy entries is compared with the threshold on either side. Computed, not simulated.

    >>> round(input_perturbation_at(0.1, 100.0), 3)
    1.0
    """
    usual, outliers = (_quantiles(from_, to) for from_, to in ((0.0, 1 - outlier_share()), (1 - outlier_share(), 1.0)))
    tail = partial(_laplace_total_tail, scale=RHO / epsilon)

    def flagged(threshold: float, distances: Floats) -> float:
        return float(np.average(tail(threshold - distances) + tail(threshold + distances), weights=_WEIGHTS))

    reach = 10 * SPREAD + 40 * ENTRIES * RHO / epsilon
    at = _optimize.brentq(lambda threshold: flagged(threshold, usual) - false_positive, 0.0, reach)
    return flagged(at, outliers)


def _quantiles(low: float, high: float) -> Floats:
    """The distances of usual observations or of outliers, at the nodes of a quadrature over their probabilities."""
    probabilities = low + (high - low) * (1 + _NODES) / 2
    return np.asarray(SPREAD * _special.ndtri((1 + probabilities) / 2))


def _laplace_total_tail(t: Floats, scale: float) -> Floats:
    """The chance that as many Laplace draws as there are entries add up to more than t: a difference of two gammas."""
    nodes, weights = _special.roots_genlaguerre(60, ENTRIES - 1)
    above = _special.gammaincc(ENTRIES, np.abs(t)[:, None] / scale + nodes) @ (weights / weights.sum())
    return np.asarray(np.where(t >= 0, above, 1 - above))


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


def outlier_share(truth: float = TRUTH) -> float:
    """How many of the observations are outliers.

    >>> round(outlier_share(), 4)
    0.0961
    """
    return math.erfc(truth / (SPREAD * math.sqrt(2)))


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
    """Run the mechanism on a number of draws of the signal, each with noise and a noisy threshold of its own."""
    query = watch(epsilon, threshold)
    counts = []
    for seed in range(runs):
        signal = _signal(seed, length)
        is_outlier = np.abs(signal.values.sum(axis=1) - CENTRE) >= truth
        flagged = flags(query, signal)
        counts.append([(flagged & kind).sum() for kind in (~is_outlier, is_outlier)] + [is_outlier.sum()])
    wrong, right, outliers = np.array(counts, dtype=np.float64).T
    return Simulation(false_positive=Share(wrong, length - outliers), true_positive=Share(right, outliers))


def theorem_2(epsilon: float, truth: float = TRUTH) -> float:
    """1 - P_II as printed: something huge times something tiny."""
    c, a1, a2 = _constants(truth)

    def term(times: int) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            grown = np.exp(times * a1 * epsilon + times**2 * a2 * epsilon**2)
            return float(grown * _special.erfc(a1 / (2 * math.sqrt(a2)) + times * epsilon * math.sqrt(a2)))

    return 1 + c / 6 * term(2) - 2 * c / 3 * term(1)


def theorem_3(epsilon: float, truth: float = TRUTH) -> float:
    """P_I as printed: a product of something huge and a difference of two that are nearly one."""
    c, a1, a2 = _constants(truth)

    def between(times: int) -> float:
        end = times * epsilon * math.sqrt(a2)
        return float(_special.erf(end) - _special.erf(-a1 / (2 * math.sqrt(a2)) + end))

    with np.errstate(over="ignore", invalid="ignore"):
        left = c * np.exp(-2 * a1 * epsilon + a2 * epsilon**2) / (6 * (c - 1))
        right = 4 * np.exp(a1 * epsilon) * between(1) - np.exp(3 * a2 * epsilon**2) * between(2)
        return float(left * right)


def expected_flags(epsilon: float, threshold: float) -> float:
    """How many of the observations are flagged, on average."""
    found, outliers = rates("paper", threshold=threshold, epsilon=epsilon, **world()), outlier_share()
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


def _constants(truth: float) -> tuple[float, float, float]:
    """c, a1 and a2 of both theorems."""
    return 1 / outlier_share(truth), truth / (4 * RHO), VARIANCE / (32 * RHO**2)
