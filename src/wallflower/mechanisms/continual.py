"""Running totals under continual release: a square-root factorisation, and correlated noise.

The running totals of counts x_1, x_2, … are Ax, where A is the lower-triangular matrix of ones. Noise of its own on
each count adds up: after T periods it deviates by √T units. The factorisation A = BC with Toeplitz factors, the
coefficients of 1/√(1-q) in both, releases Cx + z and computes the totals from it: after T periods the noise deviates by
about (ln T + 3.4)/π units [FHU23, HUU23]. Here C is rounded to whole numbers, so that Cx + z is exact, and B is
whatever makes BC = A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.mechanisms.additive import Additive, gaussian_for_norm
from wallflower.noise import Noise, draws
from wallflower.privacy import Loss

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MAX_PERIODS: Final = 10_000
MAX_TOTAL: Final = 2**48  # of all counts together, so that sums of steps fit into 64 bits
_LEAST_BITS: Final = 4  # of the grid, where there is one period
_FINE: Final = 1 << 200  # a grid on which coefficients are computed before they are rounded


@dataclass(frozen=True, slots=True)
class Factorisation:
    """The factors of running totals over a public number of periods.  (F1) (F2)

    periods  how many totals there will be at most
    moves    one change may take a unit from one period to another; else it adds or removes one, in one period

    >>> kept, moved = Factorisation(365), Factorisation(365, moves=True)
    >>> [round(factors.deviation(365), 2) for factors in (kept, moved)]  # of a count that is released once
    [2.94, 3.75]
    >>> [round(factors.deviation_of_sums(365), 2) for factors in (kept, moved)]
    [19.1, 27.02]
    """

    periods: int
    moves: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.periods <= MAX_PERIODS:
            raise ParameterError(
                f"periods: {self.periods} is outside 1 to {MAX_PERIODS:,}. Pass fewer, longer periods."
            )

    @property
    def steps(self) -> Ints:
        """The first column of C, in steps of the grid."""
        return _steps(self.periods)

    @property
    def square(self) -> int:
        """The largest square of the Euclidean length by which one change moves Cx, in steps.  (F2)"""
        return _largest_squares(self.periods)[self.moves]

    def law(self, loss: Loss) -> Additive:
        """The noise of each number of Cx, in steps."""
        return gaussian_for_norm(self.square, loss)  # (V)

    def hide(self, counts: Ints, loss: Loss, noise: Noise) -> Ints:
        """Cx + z: the only look at the counts, and the only draws.  (F1)"""
        drawn = draws(noise, "gaussian", self.law(loss).scale, len(counts))
        return self.spread(counts) + drawn

    def spread(self, counts: Ints) -> Ints:
        """Cx for the first counts, in whole steps: no rounding anywhere.  (F1)"""
        known: Ints = np.convolve(counts, self.steps[: len(counts)])[: len(counts)]
        return known

    def totals(self, hidden: Ints) -> Floats:
        """The running totals of what was hidden so far: post-processing.  (F1)"""
        return np.convolve(hidden.astype(np.float64), _inverse(self.periods)[: len(hidden)])[: len(hidden)]

    def deviation(self, period: int) -> float:
        """The standard deviation of the noise in the total after N periods, in units of that of a count that is
        released once at the same loss."""
        weights = _inverse(self.periods)[:period]
        return math.sqrt(self.square) * math.sqrt(float(weights @ weights))

    def deviation_of_sums(self, period: int) -> float:
        """The same where every period is released with noise of its own, and the releases are added up."""
        return math.sqrt(period * (2 if self.moves else 1))

    def half_widths(self, loss: Loss, confidence: float) -> list[int]:
        """For each period, a whole number that the noise of its rounded total exceeds with at most 1 - `confidence`."""
        weights = _inverse(self.periods)
        scale = self.law(loss).deviation() * NormalDist().inv_cdf((1 + confidence) / 2)
        reach = scale * np.sqrt(np.cumsum(weights * weights))
        return [max(0, math.ceil(width - 0.5)) for width in reach.tolist()]


@lru_cache(maxsize=16)
def _steps(periods: int) -> Ints:
    """binom(2k, k)/4^k on the grid, rounded: 1, 1/2, 3/8, …"""
    grid = 1 << (_LEAST_BITS + ((periods - 1).bit_length() + 1) // 2)
    steps, coefficient = [grid], _FINE
    for k in range(1, periods):
        coefficient = coefficient * (2 * k - 1) // (2 * k)
        steps.append((2 * grid * coefficient + _FINE) // (2 * _FINE))
    found = np.array(steps, dtype=np.int64)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=16)
def _largest_squares(periods: int) -> tuple[int, int]:
    """The squared length of the longest column of C, and of the longest difference of two columns or of one and 0.

    The difference of columns i and i + d has more terms the smaller i is, none below 0, so i = 1 is the worst.  (F2)
    """
    steps = _steps(periods)
    squares = np.cumsum(steps * steps)
    column = int(squares[-1])
    if periods == 1:
        return column, column
    products = np.correlate(steps, steps, "full")[periods:]  # of lags 1, 2, …
    differences = column + squares[periods - 2 :: -1] - 2 * products
    return column, max(column, int(differences.max()))


@lru_cache(maxsize=16)
def _inverse(periods: int) -> Floats:
    """The first column of B = A C⁻¹, in units of a count for each step."""
    steps = _steps(periods).astype(np.float64)
    inverse = np.zeros(periods)
    inverse[0] = 1 / steps[0]
    for k in range(1, periods):
        inverse[k] = -float(steps[1 : k + 1] @ inverse[k - 1 :: -1]) / steps[0]
    found: Floats = np.cumsum(inverse)
    found.flags.writeable = False
    return found
