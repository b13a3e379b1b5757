"""Private choice of a threshold: the widest gap of a noisy histogram of scores that nobody has seen.

Each server sums its shares of [score >= threshold] over all readings of a window, takes differences for the bins in
between, and adds noise of its own to every bin before the two sums are combined. A party that knows one server's noise
still faces the other's (proof.md, label (T)). The choice itself is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.noise import Noise, draws
from wallflower.privacy import Exact, exact
from wallflower.sensors.comparison import Keys, Shares, evaluate

Ints = NDArray[np.int64]

DEFAULT_BINS: Final = 64
FALSE_OCCUPANCY: Final = 1e-6  # probability that noise alone makes any empty bin look occupied
_SENSITIVITY: Final = 2  # replacing a reading changes two bins, by one each


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The scores of the widest empty run, from `start` to before `stop`, and the threshold in its middle.

    `bounded` says that readings were seen beyond it. If not, the run reaches to the end of the domain, and the readings
    there, if any, are too few to be seen.
    """

    start: int
    stop: int
    bounded: bool

    @property
    def threshold(self) -> int:
        return (self.start + self.stop) // 2


def bin_edges(bits: int, count: int = DEFAULT_BINS) -> tuple[int, ...]:
    """Return the public thresholds that cut scores of `bits` bits into even bins.

    >>> bin_edges(6, 4)
    (0, 8, 16, 24)
    """
    domain = 2 ** (bits - 1)
    if not 1 < count <= domain:
        raise ParameterError(f"count: {count} bins do not fit scores of {bits} bits. Pass from 2 to {domain}.")
    return tuple(domain * i // count for i in range(count))


def share_counts(party: int, keys: Keys, thresholds: Sequence[int]) -> Shares:
    """Return a server's shares of how many scores are in each bin; those of several batches may be added."""
    _check_rising(thresholds)
    above = [int(evaluate(party, keys, level).sum(dtype=np.uint64)) for level in thresholds]
    return np.array([(lower - upper) % 2**32 for lower, upper in pairwise([*above, 0])], dtype=np.uint32)


def add_noise(counts: Shares, epsilon: Exact, noise: Noise) -> Shares:
    """Return a server's shares with its noise: the only ones that may leave it.  (T)"""
    drawn = draws(noise, "laplace", _noise_scale(epsilon), len(counts))
    return np.asarray((counts.astype(np.int64) + drawn) % 2**32).astype(np.uint32)


def combine_counts(share_a: Shares, share_b: Shares) -> Ints:
    """Return the noisy histogram from the shares of both servers.

    >>> combine_counts(np.array([5, 1], np.uint32), np.array([3, 2**32 - 4], np.uint32))
    array([ 8, -3])
    """
    if share_a.dtype != np.uint32 or share_b.dtype != np.uint32 or share_a.shape != share_b.shape:
        raise DataError("shares: must be 32-bit numbers for the same bins. Pass what both servers sent.")
    return np.asarray((share_a + share_b).view(np.int32).astype(np.int64))


def choose_gap(
    histogram: ArrayLike, thresholds: Sequence[int], epsilon: Exact, *, bits: int, miss: float = FALSE_OCCUPANCY
) -> Gap | None:
    """Return the widest run of bins that look empty, between occupied bins or else beyond them; None if there is none.

    >>> choose_gap([900, 5, -3, 2, 700, 4, 1, 0], bin_edges(6, 8), "1", bits=6)
    Gap(start=4, stop=16, bounded=True)
    """
    _check_rising(thresholds)
    is_occupied = np.asarray(histogram) > occupancy_cut(epsilon, len(thresholds), miss)
    if len(is_occupied) != len(thresholds):
        raise DataError("histogram: must have one number for each threshold. Pass what `combine_counts` returned.")
    ends = [*thresholds, 2 ** (bits - 1)]
    runs, at = [], 0
    for occupied, bins in groupby(is_occupied.tolist()):
        length = len(list(bins))
        if not occupied and at > 0:
            last = at + length
            runs.append(Gap(start=ends[at], stop=ends[last], bounded=last < len(thresholds)))
        at += length
    return max(runs, key=lambda gap: (gap.bounded, gap.stop - gap.start), default=None)


def occupancy_cut(epsilon: Exact, bins: int, miss: float = FALSE_OCCUPANCY) -> int:
    """Return the largest count that noise shows in any of `bins` empty bins, but for a probability of `miss`.

    The noise is the sum of two discrete Laplace draws of scale s; for large s its tail is (1 + t/2s) e^(-t/s) / 2.

    >>> occupancy_cut("0.1", 64), occupancy_cut("1", 64)
    (393, 39)
    """
    if not 0 < miss < 1:
        raise ParameterError(f"miss: {miss} must be a probability between 0 and 1. Pass one such as 1e-6.")
    rate = 1 / float(_noise_scale(epsilon))
    high = 1
    while bins * _tail(rate, high + 1) > miss:
        high *= 2
    low = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bins * _tail(rate, middle + 1) <= miss else (middle + 1, high)
    return low


def _tail(rate: float, low: int) -> float:
    """P(Z >= low) for 1 or more, where P(Z = k) = ((1-p)/(1+p))² p^|k| (|k| + (1+p²)/(1-p²)) and p = e^-rate."""
    p, rest = math.exp(-rate), -math.expm1(-rate)
    centre = (1 + p * p) / -math.expm1(-2 * rate)
    return (rest / (1 + p)) ** 2 * math.exp(-rate * low) * ((low + centre) / rest + p / rest**2)


def _noise_scale(epsilon: Exact) -> Fraction:
    amount = exact(epsilon)
    if amount <= 0:
        raise ParameterError("epsilon: must be above 0 for a histogram. Pass one such as '0.1'.")
    return _SENSITIVITY / amount


def _check_rising(thresholds: Sequence[int]) -> None:
    if len(thresholds) < 2 or thresholds[0] != 0 or any(a >= b for a, b in pairwise(thresholds)):
        raise ParameterError("thresholds: must be two or more rising numbers from 0. Take those of `bin_edges`.")
