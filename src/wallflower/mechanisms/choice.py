"""Choose privately among candidates: by scores, by levels that are only counted, one after another, on many
coordinates at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import ParameterError
from wallflower.mechanisms.additive import FLOAT_MARGIN, SMALLEST_DELTA, require_delta, require_positive
from wallflower.noise import Noise, note_choice
from wallflower.privacy import zcdp_of_epsilon

Whole = NDArray[Any]  # whole numbers; of Python where they may be longer than 64 bits

_WORD_BITS: Final = 128  # bits of one word of the exponential mechanism
_MAX_EXPONENT: Final = 10_000  # exp(-x) of what is above is 0 in floats
_MAX_WEIGHED_CANDIDATES: Final = (
    2**100
)  # up to this number of candidates, floats weigh them one by one; beyond, by logarithms
_MAX_LOG_COUNT: Final = 2048.0  # the longest logarithm of a count that floats add up


def permute_and_flip(scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, noise: Noise) -> int:
    """The index of one high score, under pure ε-DP [MS20, Algorithm 1].  (P)

    Every coin is flipped, also those behind the winner, so that the work does not show where it stood.
    """
    unit = Fraction(epsilon) / (2 * max(1, sensitivity))
    gaps = _gaps(scores, epsilon)
    note_choice(noise, "permute-and-flip", unit, gaps, [1] * len(gaps))
    heads = [noise.flip(unit * gap) for gap in gaps]
    order = list(range(len(heads)))
    for last in range(len(order) - 1, 0, -1):
        other = noise.below(last + 1)
        order[last], order[other] = order[other], order[last]
    return next(index for index in order if heads[index])


def exponential(scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, noise: Noise) -> int:
    """The index of one score, with probability proportional to exp(ε·score/(2·sensitivity)), exactly.  (E1) (E2)"""
    unit = Fraction(epsilon) / (2 * max(1, sensitivity))
    return _draw(np.array(_gaps(scores, epsilon)), np.ones(len(scores), np.int64), unit, noise)


def exponential_level(gaps: Whole, counts: Whole, *, rate: Fraction, noise: Noise) -> tuple[int, int]:
    """One of many that are only counted: a place i with probability proportional to counts[i]·exp(-rate·gaps[i]),
    exactly, and a uniform rank below its count. Some count is above 0.  (E2) (E3)
    """
    require_positive(rate)
    place = _draw(np.maximum(gaps - gaps[counts > 0].min(), 0), counts, rate, noise)
    note_choice(noise, "rank", Fraction(0), [0], [int(counts[place])])
    return place, noise.below(int(counts[place]))


def _draw(gaps: Whole, counts: Whole, rate: Fraction, noise: Noise) -> int:
    """A place; bits are read until they leave no other. The smallest gap that counts is 0.  (E2)"""
    note_choice(noise, "exponential", rate, gaps.tolist(), counts.tolist())
    word, bits = noise.below(1 << _WORD_BITS), _WORD_BITS
    place, needed = _surely(word, gaps, counts, rate), sum(counts.tolist()).bit_length()
    while place is None:
        if bits >= needed:  # fewer bits cannot tell the candidates apart
            place = _decide(word, bits, _bounds(gaps, counts, rate, bits // 3))
        if place is None:  # in the first turn with probability below 2**-120 times the levels squared
            word, bits = (word << _WORD_BITS) | noise.below(1 << _WORD_BITS), bits + _WORD_BITS
    return place


def _bounds(gaps: Whole, counts: Whole, rate: Fraction, digits: int) -> list[tuple[int, int]]:
    """Whole numbers below and above the weight of each level, times 10**digits.  (E2)"""
    around = ((n, _around(rate * gap, digits)) for gap, n in zip(gaps.tolist(), counts.tolist(), strict=True))
    return [(n * low, n * high) for n, (low, high) in around]


def _surely(word: int, gaps: Whole, counts: Whole, rate: Fraction) -> int | None:
    """The place of the first word by sums of floats, unless their errors could change it.  (E3)"""
    weights, bits = _weights(gaps, counts, rate)
    if weights is None:
        return None
    sums = np.cumsum(weights)
    place = min(int(np.searchsorted(sums, word / 2**_WORD_BITS * sums[-1], side="right")), len(sums) - 1)
    total, low, high = (Fraction(float(sums[at])) for at in (-1, place - 1, place))
    slack = total * (Fraction(1, 2**bits) + Fraction(len(sums), 2**52))
    above = place == 0 or low + slack <= Fraction(word, 2**_WORD_BITS) * (total - slack)
    return place if above and Fraction(word + 1, 2**_WORD_BITS) * (total + slack) <= high - slack else None


def _weights(gaps: Whole, counts: Whole, rate: Fraction) -> tuple[NDArray[np.float64] | None, int]:
    """The weights of all levels up to a common factor, and to how many bits together; None: too many to weigh.  (E3)"""
    total = sum(counts.tolist())
    if total <= _MAX_WEIGHED_CANDIDATES:
        return np.asarray(counts * np.exp(-_exponents(gaps, rate)), dtype=np.float64), 40
    if math.log(total) > _MAX_LOG_COUNT:
        return None, 0
    logs = np.array([math.log(count) if count else -math.inf for count in counts.tolist()])
    logs -= np.minimum(_exponents(gaps, rate), _MAX_EXPONENT)
    return np.exp(logs - logs.max()), 38


def _exponents(gaps: Whole, rate: Fraction) -> NDArray[np.float64]:
    """The rate times each gap; where a gap is longer than a machine word the product is rounded, not its factors."""
    if gaps.dtype == object:
        return np.array([float(min(rate * gap, _MAX_EXPONENT)) for gap in gaps.tolist()])
    return gaps.astype(np.float64) * float(rate)


@lru_cache(maxsize=256)
def epsilon_each(epsilon: Fraction, delta: Fraction, h: int) -> Fraction:
    """What each of `h` exponential choices may spend at (ε, δ): the root of 8ρ/h, rounded down.  (E1)"""
    require_positive(epsilon)
    require_delta(delta)
    if h < 1:
        raise ParameterError(f"h: {h} is fewer than one; pass how many candidates to choose.")
    return Fraction(math.sqrt(8 * zcdp_of_epsilon(float(epsilon), float(delta)) / h) * (1 - FLOAT_MARGIN))


def epsilon_of_range(rho: Fraction) -> Fraction:
    """The ε of one exponential choice that is ρ-zCDP: the root of 8ρ, rounded down.  (E1)

    >>> epsilon_of_range(Fraction(1, 8))
    Fraction(1, 1)
    """
    return Fraction(math.isqrt(math.floor(8 * rho * 4**60)), 2**60)


def bounded_range_pays(epsilon: Fraction, delta: Fraction, h: int) -> bool:
    """Whether `epsilon_each` is more than ε/h: a rule by public facts.

    >>> [bounded_range_pays(Fraction(1), Fraction(1, 10**6), h) for h in (1, 5, 6)]
    [False, False, True]
    """
    return delta >= SMALLEST_DELTA and epsilon_each(epsilon, delta, h) > epsilon / h


def _gaps(scores: Sequence[int], epsilon: Fraction) -> list[int]:
    require_positive(epsilon)
    if len(scores) == 0:
        raise ParameterError("scores: there is nothing to choose from; pass at least one candidate.")
    best = int(max(scores))
    return [best - int(score) for score in scores]


def _around(penalty: Fraction, digits: int) -> tuple[int, int]:
    """Whole numbers below and above 10**digits * exp(-penalty).  (E2)"""
    if penalty > 3 * digits:
        return 0, 1
    context = Context(prec=digits + 12)
    ratio = context.divide(Decimal(penalty.numerator), Decimal(penalty.denominator))
    near = int(context.scaleb(context.exp(ratio.copy_negate()), Decimal(digits)))
    return max(0, near - 1), near + 2


def _decide(word: int, bits: int, weights: Sequence[tuple[int, int]]) -> int | None:
    """The index that every real number starting with these bits falls on, whatever the weights within their bounds."""
    lows = [0, *accumulate(low for low, _ in weights)]
    highs = [0, *accumulate(high for _, high in weights)]
    from_here, to_here = word * lows[-1], (word + 1) * highs[-1]
    sure = [highs[i] << bits <= from_here and to_here <= lows[i + 1] << bits for i in range(len(weights))]
    return sure.index(True) if any(sure) else None


def peel(
    choose: Callable[..., int], scores: Sequence[int], h: int, *, sensitivity: int, epsilon: Fraction, noise: Noise
) -> list[int]:
    """The indices of `h` high scores, first to last: one after another is chosen at `epsilon` and taken out."""
    if not 1 <= h <= len(scores):
        raise ParameterError(f"h: {h} of {len(scores)} candidates cannot be chosen; pass from 1 to {len(scores)}.")
    left, chosen = list(range(len(scores))), []
    for _ in range(h):
        place = choose([scores[index] for index in left], sensitivity=sensitivity, epsilon=epsilon, noise=noise)
        chosen.append(left.pop(place))
    return chosen


def choose_together(
    errors: Sequence[ArrayLike], *, sensitivity: int, epsilon: Fraction, noise: Noise
) -> tuple[int, ...]:
    """One candidate for each coordinate, with probability proportional to exp(-ε·max error/(2·sensitivity)), exactly.

    `errors[j]` has a whole number, 0 or more, for every candidate of coordinate j; one record moves each by at most
    `sensitivity`.

    Released    the place of one candidate for each coordinate       Neighbours  those of the sensitivity
    Guarantee   pure ε-DP, however many coordinates                  Proof       (J1) (J2)
    """
    found = [np.asarray(each, dtype=np.int64) for each in errors]
    if not found or any(each.ndim != 1 or not len(each) for each in found):
        raise ParameterError("errors: a coordinate has no candidate, or there is no coordinate; pass one at least.")
    require_positive(Fraction(epsilon))
    orders = [np.argsort(each, kind="stable") for each in found]
    levels = np.unique(np.concatenate(found))
    reached = np.stack(
        [np.searchsorted(each[order], levels, side="right") for each, order in zip(found, orders, strict=True)]
    )
    within = [0, *(prod(column) for column in reached.T.tolist())]
    shells = np.array([inner_to - inner for inner, inner_to in pairwise(within)], dtype=object)
    rate = Fraction(epsilon) / (2 * max(1, sensitivity))
    level, rank = exponential_level(levels - levels[0], shells, rate=rate, noise=noise)  # (J1)
    below = reached[:, level - 1].tolist() if level else [0] * len(found)
    places = decode(rank, below, reached[:, level].tolist())
    return tuple(int(order[place]) for order, place in zip(orders, places, strict=True))


def decode(rank: int, below: Sequence[int], upto: Sequence[int]) -> list[int]:
    """The places of one member of a shell: all below `upto`, not all below `below`; one for each rank.  (J2)

    >>> [decode(rank, [1, 1], [2, 2]) for rank in range(3)]
    [[1, 0], [1, 1], [0, 1]]
    """
    for first in range(len(upto)):
        sizes = [*below[:first], upto[first] - below[first], *upto[first + 1 :]]
        block = prod(sizes)
        if rank < block:
            return _digits(rank, sizes, first, below[first])
        rank -= block
    raise ParameterError("rank: it is beyond the shell; pass one below the number of its members.")


def _digits(rank: int, sizes: Sequence[int], first: int, start: int) -> list[int]:
    places = []
    for size in reversed(sizes):
        rank, place = divmod(rank, size)
        places.append(place)
    places.reverse()
    places[first] += start
    return places
