"""A threshold for scores nobody has seen: where a noisy histogram shows the widest gap.

Each server sums its shares of [score >= threshold] over all readings of a window, takes differences for the bins in
between, and adds noise of its own to every bin before the two sums are put together. Whoever knows one server's noise
still faces the other's (proof.md, label (T)). Choosing is post-processing.
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
from wallflower.sensors.comparison import Keys, evaluate
from wallflower.sensors.dcf import Shares

Ints = NDArray[np.int64]

BINS: Final = 64
MISS: Final = 1e-6  # the chance that noise alone makes any empty bin look occupied
_MOVED: Final = 2  # bins that one reading changes, by one each


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """The scores of the widest empty run, from `start` to before `stop`, and the threshold in its middle.

    `bounded` says that readings were seen beyond it. Without, the run reaches to the end of the domain, and whoever is
    there is among too few to be seen.
    """

    start: int
    stop: int
    bounded: bool

    @property
    def threshold(self) -> int:
        return (self.start + self.stop) // 2


def edges(bits: int, count: int = BINS) -> tuple[int, ...]:
    """Public thresholds that cut the scores of so many bits into even bins.

    >>> edges(6, 4)
    (0, 8, 16, 24)
    """
    domain = 2 ** (bits - 1)
    if not 1 < count <= domain:
        raise ParameterError(f"count: {count} bins do not fit scores of {bits} bits; pass from 2 to {domain}.")
    return tuple(domain * i // count for i in range(count))


def counts(party: int, keys: Keys, thresholds: Sequence[int]) -> Shares:
    """A server's shares of how many scores are in each bin; those of several batches may be added."""
    _check_rising(thresholds)
    above = [int(evaluate(party, keys, level).sum(dtype=np.uint64)) for level in thresholds]
    return np.array([(one - other) % 2**32 for one, other in pairwise([*above, 0])], dtype=np.uint32)


def noisy(counts: Shares, epsilon: Exact, noise: Noise) -> Shares:
    """A server's shares with its noise: the only ones that may leave it.  (T)"""
    drawn = draws(noise, "laplace", _scale(epsilon), len(counts))
    return np.asarray((counts.astype(np.int64) + drawn) % 2**32).astype(np.uint32)


def histogram(share_a: Shares, share_b: Shares) -> Ints:
    """The noisy numbers of both servers put together.

    >>> histogram(np.array([5, 1], np.uint32), np.array([3, 2**32 - 4], np.uint32))
    array([ 8, -3])
    """
    if share_a.dtype != np.uint32 or share_b.dtype != np.uint32 or share_a.shape != share_b.shape:
        raise DataError("shares: not 32-bit numbers for the same bins; pass what both servers sent.")
    return np.asarray((share_a + share_b).view(np.int32).astype(np.int64))


def choose(
    histogram: ArrayLike, thresholds: Sequence[int], epsilon: Exact, *, bits: int, miss: float = MISS
) -> Gap | None:
    """The widest run of bins that look empty, between bins that do not, or else beyond them; None where there is none.

    >>> choose([900, 5, -3, 2, 700, 4, 1, 0], edges(6, 8), "1", bits=6)
    Gap(start=4, stop=16, bounded=True)
    """
    _check_rising(thresholds)
    seen = np.asarray(histogram) > occupancy_cut(epsilon, len(thresholds), miss)
    if len(seen) != len(thresholds):
        raise DataError("histogram: not one number for each threshold; pass what `histogram` gave for these.")
    ends = [*thresholds, 2 ** (bits - 1)]
    runs, at = [], 0
    for occupied, bins in groupby(seen.tolist()):
        length = len(list(bins))
        if not occupied and at > 0:
            last = at + length
            runs.append(Gap(start=ends[at], stop=ends[last], bounded=last < len(thresholds)))
        at += length
    return max(runs, key=lambda gap: (gap.bounded, gap.stop - gap.start), default=None)


def occupancy_cut(epsilon: Exact, bins: int, miss: float = MISS) -> int:
    """The largest number that noise shows in any of so many empty bins, but for a chance of `miss`.

    The noise is the sum of two discrete Laplace draws of scale s; for large s its tail is (1 + t/2s) e^(-t/s) / 2.

    >>> occupancy_cut("0.1", 64), occupancy_cut("1", 64)
    (393, 39)
    """
    if not 0 < miss < 1:
        raise ParameterError(f"miss: {miss} is no chance between 0 and 1; pass one such as 1e-6.")
    pace = 1 / float(_scale(epsilon))
    high = 1
    while bins * _tail(pace, high + 1) > miss:
        high *= 2
    low = 0
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if bins * _tail(pace, middle + 1) <= miss else (middle + 1, high)
    return low


def _tail(pace: float, least: int) -> float:
    """P(Z >= least) for 1 or more, where P(Z = k) = ((1-p)/(1+p))² p^|k| (|k| + (1+p²)/(1-p²)) and p = e^-pace."""
    p, rest = math.exp(-pace), -math.expm1(-pace)
    centre = (1 + p * p) / -math.expm1(-2 * pace)
    return (rest / (1 + p)) ** 2 * math.exp(-pace * least) * ((least + centre) / rest + p / rest**2)


def _scale(epsilon: Exact) -> Fraction:
    amount = exact(epsilon)
    if amount <= 0:
        raise ParameterError("epsilon: a loss of 0 allows no histogram at all; pass more than 0, such as '0.1'.")
    return _MOVED / amount


def _check_rising(thresholds: Sequence[int]) -> None:
    if len(thresholds) < 2 or thresholds[0] != 0 or any(one >= other for one, other in pairwise(thresholds)):
        raise ParameterError("thresholds: not two or more rising numbers from 0 on; take those of `edges`.")
