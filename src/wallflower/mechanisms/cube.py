"""Noise on many numbers that one record may all move: uniform in a cube, whose size is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms.additive import require_positive
from wallflower.mechanisms.choice import exponential_level
from wallflower.noise import Noise, round_up
from wallflower.privacy import Kind, Loss

_MIN_LEVELS: Final = 4096  # levels in a figure at least, where there are enough
_MAX_VALUES: Final = 1000


@dataclass(frozen=True, slots=True)
class Cube:
    """Noise to be added to `size` values on a grid: P(z) proportional to exp(-max|z|/scale). All figures but
    `scale` and `draw` are in units of the answer; `half_width` is of each value by itself, `reach` of all at once."""

    size: int
    scale: Fraction
    step: Fraction

    def draw(self, noise: Noise) -> list[int]:
        """One draw, in steps of the grid: a level, then each value evenly within it.  (K1) (K2)"""
        level = _level(self.size, self.scale, noise)
        return [noise.below(2 * level + 1) - level for _ in range(self.size)]

    def mean_error(self) -> float:
        """The mean of the absolute noise of each value."""
        levels, weights = _law(self.size, float(self.scale))
        return float((levels * (levels + 1) / (2 * levels + 1)) @ weights) * float(self.step)

    def half_width(self, confidence: float = 0.95) -> float:
        """The smallest h on the grid with P(|z_i| <= h) >= confidence, for each i."""
        levels, weights = _law(self.size, float(self.scale))

        def inside(width: float) -> float:
            return float(np.minimum((2 * width + 1) / (2 * levels + 1), 1.0) @ weights)

        return _least(inside, confidence, int(levels[-1])) * float(self.step)

    def reach(self, confidence: float = 0.95) -> float:
        """The smallest h on the grid with P(|z_i| <= h for every i) >= confidence."""
        levels, (held, beyond) = _law(self.size, float(self.scale))[0], _sums(self.size, float(self.scale))

        def inside(width: float) -> float:
            first = int(np.searchsorted(levels, width, side="right"))
            return float(held[first]) + math.exp(self.size * math.log(2 * width + 1) + float(beyond[first]))

        return _least(inside, confidence, int(levels[-1])) * float(self.step)


def calibrate_cube(size: int, sensitivity: int, loss: Loss, *, step: Fraction) -> Cube:
    """The noise that hides a change of `sensitivity` steps in each of `size` values at once.

    Released    the values plus the noise, in steps of the grid       Neighbours  those of the sensitivity
    Guarantee   that of `loss`, which is pure                         Proof       (K1) (K2)

    >>> calibrate_cube(12, 4, Loss("0.5"), step=Fraction(1)).scale
    Fraction(8, 1)
    """
    if loss.kind is not Kind.PURE:
        raise LossMismatch(f"cube noise has no theorem for a {loss.kind} loss; pass a pure one, such as Loss('0.5').")
    if not 1 <= size <= _MAX_VALUES:
        raise ParameterError(f"size: {size} is not from 1 to {_MAX_VALUES}; pass how many values get noise.")
    require_positive(loss.epsilon)
    return Cube(size, Fraction(round_up(max(1, sensitivity) / loss.epsilon)), step)  # (K1)


def cube_noise(size: int, *, sensitivity: int, epsilon: Fraction, noise: Noise) -> list[int]:
    """`size` whole numbers with P(z) proportional to exp(-ε·max|z|/sensitivity): added to whole numbers that one record
    moves by at most `sensitivity` each, all of them are ε-DP together.  (K1) (K2)"""
    return calibrate_cube(size, sensitivity, Loss(Fraction(epsilon)), step=Fraction(1)).draw(noise)


def _level(size: int, scale: Fraction, noise: Noise) -> int:
    """P(level) proportional to (2·level+1)^size · exp(-level/scale), without rejection.  (K2)"""
    counts = np.array(_shares(size), dtype=object)
    start, _ = exponential_level(np.arange(size + 1), counts, rate=1 / scale, noise=noise)
    return start + sum(_geometric(scale, noise) for _ in range(size + 1))


def _geometric(scale: Fraction, noise: Noise) -> int:
    """P(g) proportional to exp(-g/scale) on 0, 1, ...: Laplace noise, drawn again while it is below 0."""
    drawn = noise.laplace(scale)
    while drawn < 0:
        drawn = noise.laplace(scale)
    return int(drawn)


@lru_cache(maxsize=64)
def _shares(size: int) -> tuple[int, ...]:
    """Whole numbers b with (2x+1)^size = Σ b_k·C(x+size-k, size) for every x.  (K2)

    >>> _shares(2), sum(_shares(3)) == 2**3 * 6
    ((1, 6, 1), True)
    """
    found: tuple[int, ...] = (1,)
    for n in range(1, size + 1):
        before = (0, *found, 0)
        found = tuple((2 * k + 1) * before[k + 1] + (2 * (n - k) + 1) * before[k] for k in range(n + 1))
    return found


@lru_cache(maxsize=64)
def _law(size: int, scale: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Levels and their chances, but for a rest that no figure shows; of many levels, the middle ones of short runs."""
    reach = math.ceil(scale * (size + 1) + scale * (40 + 8 * math.sqrt(size + 1))) + size
    run = max(1, reach // (_MIN_LEVELS * 8))
    levels = np.arange(run // 2, reach, run, dtype=np.float64)
    logs = size * np.log(2 * levels + 1) - levels / scale
    weights = np.exp(logs - logs.max())
    return levels, weights / weights.sum()


@lru_cache(maxsize=64)
def _sums(size: int, scale: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """The chance of all levels before each, and the logarithm of Σ exp(-level/scale) from it on, as a share of all."""
    levels, weights = _law(size, scale)
    logs = size * np.log(2 * levels + 1) - levels / scale
    falls = np.logaddexp.accumulate((-levels / scale)[::-1])[::-1] - np.logaddexp.reduce(logs)
    return np.append(0.0, np.cumsum(weights)), np.append(falls, -np.inf)


def _least(inside: Any, confidence: float, most: int) -> int:
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence: {confidence} is not between 0 and 1; pass 0.95 for 95 in 100.")
    low, high = -1, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if inside(middle) >= confidence else (middle, high)
    return high
