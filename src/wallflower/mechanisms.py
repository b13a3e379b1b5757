"""Noise on whole numbers and private choice; every guarantee is proved in `mechanisms.md` under its label.

Nothing here knows a person: it sees a value on a public grid, scores that are whole numbers, and a sensitivity that the
caller has proved for his own notion of neighbours. Everything raised here depends on parameters, never on scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import LossMismatch, ParameterError
from wallflower.lazy import Lazy
from wallflower.noise import Noise, round_up
from wallflower.privacy import Kind, Loss, zcdp_of_epsilon

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

LawName = Literal["laplace", "gaussian"]
Whole = NDArray[Any]  # whole numbers; of Python where they may be longer than 64 bits

_SUMMED: Final = 256.0  # below this many steps the discrete Gaussian is summed term by term
_MARGIN: Final = 1e-9  # covers the rounding of every float that a guarantee depends on
_SMALLEST_DELTA: Final = Fraction(1, 10**100)
_WORD: Final = 128  # bits of one word of the exponential mechanism
_NOTHING: Final = 10_000  # exp(-x) of what is above is 0 in floats


class _Law(Protocol):
    """A symmetric law on the whole numbers."""

    def deviation(self, scale: float) -> float: ...

    def mean_error(self, scale: float) -> float: ...

    def tail(self, scale: float, least: int) -> float:
        """P(Z >= least) for `least` of one or more."""

    def guess(self, scale: float, miss: float) -> int:
        """Nearly the smallest h with P(Z > h) <= miss."""


class _Laplace:
    def deviation(self, scale: float) -> float:
        return math.sqrt(2) * math.exp(-0.5 / scale) / -math.expm1(-1 / scale)

    def mean_error(self, scale: float) -> float:
        return 2 * math.exp(-1 / scale) / -math.expm1(-2 / scale)

    def tail(self, scale: float, least: int) -> float:
        return math.exp(-least / scale) / (1 + math.exp(-1 / scale))

    def guess(self, scale: float, miss: float) -> int:
        return math.ceil(-scale * math.log(miss * (1 + math.exp(-1 / scale)))) - 1


class _Gaussian:
    def deviation(self, scale: float) -> float:
        if scale > _SUMMED:
            return scale
        at, weights = _masses(scale)
        return math.sqrt(2 * float(at**2 @ weights))

    def mean_error(self, scale: float) -> float:
        if scale > _SUMMED:  # Euler-Maclaurin, next term of order scale**-4
            return math.sqrt(2 / math.pi) * (scale - 1 / (12 * scale))
        at, weights = _masses(scale)
        return 2 * float(at @ weights)

    def tail(self, scale: float, least: int) -> float:
        if scale <= _SUMMED:
            return float(_masses(scale)[1][least:].sum())
        at = (least - 0.5) / scale
        density = math.exp(-at * at / 2) / math.sqrt(2 * math.pi)
        return math.erfc(at / math.sqrt(2)) / 2 - at * density / (24 * scale * scale)

    def guess(self, scale: float, miss: float) -> int:
        return math.ceil(-scale * NormalDist().inv_cdf(miss))


_LAWS: Final[Mapping[LawName, _Law]] = {"laplace": _Laplace(), "gaussian": _Gaussian()}


@lru_cache(maxsize=64)
def _masses(scale: float) -> tuple[np.ndarray, np.ndarray]:
    at = np.arange(math.ceil(39 * scale) + 2, dtype=np.float64)
    weights = np.exp(-((at / scale) ** 2) / 2)
    return at, weights / (2 * weights.sum() - 1)


@dataclass(frozen=True, slots=True)
class Additive:
    """Noise to be added to a value on a grid. All figures but `scale` and `draw` are in units of the answer.

    >>> noise = Additive("laplace", scale=Fraction(256), step=Fraction(1, 128))
    >>> noise.half_width(), round(noise.deviation(), 3), round(noise.upper_tail(6), 3)
    (5.9921875, 2.828, 0.025)
    """

    law: LawName
    scale: Fraction
    step: Fraction

    def draw(self, noise: Noise) -> int:
        """One draw, in steps of the grid."""
        return noise.laplace(self.scale) if self.law == "laplace" else noise.gaussian(self.scale)

    def deviation(self) -> float:
        return _LAWS[self.law].deviation(float(self.scale)) * float(self.step)

    def mean_error(self) -> float:
        """The mean of the absolute noise."""
        return _LAWS[self.law].mean_error(float(self.scale)) * float(self.step)

    def half_width(self, confidence: float = 0.95) -> float:
        """The smallest h on the grid with P(|Z| <= h) >= confidence."""
        if not 0 < confidence < 1:
            raise ParameterError(f"confidence: {confidence} is not between 0 and 1; pass 0.95 for 95 in 100.")
        law, scale, miss = _LAWS[self.law], float(self.scale), (1 - confidence) / 2
        width = max(0, law.guess(scale, miss))
        while law.tail(scale, width + 1) > miss:
            width += 1
        while width > 0 and law.tail(scale, width) <= miss:
            width -= 1
        return float(width * self.step)

    def upper_tail(self, x: float) -> float:
        """P(Z >= x)."""
        law, scale, least = _LAWS[self.law], float(self.scale), math.ceil(Fraction(x) / self.step)
        return law.tail(scale, least) if least > 0 else 1 - law.tail(scale, 1 - least)


# Calibration


def calibrate(sensitivity: int, loss: Loss, *, step: Fraction) -> Additive:
    """The noise that hides a change of `sensitivity` steps at this loss. A constant is treated as if it could move.

    Released    the value plus the noise, in steps of the grid        Neighbours  those of the sensitivity
    Guarantee   that of `loss`: pure, approximate or zCDP             Proof       (L) (G1) (G2) (Z)

    >>> calibrate(3, Loss("0.5"), step=Fraction(1))
    Additive(law='laplace', scale=Fraction(6, 1), step=Fraction(1, 1))
    """
    if loss.kind not in _CALIBRATIONS:
        raise LossMismatch(
            f"additive noise has no theorem for a {loss.kind} loss; pass a pure, approximate or zCDP loss."
        )
    if not 0 <= sensitivity < 2**52:
        raise ParameterError(f"sensitivity: {sensitivity} steps is outside 0 to 2**52; use a coarser grid.")
    if step <= 0:
        raise ParameterError(f"step: {step} is not above 0; pass the size of one step of the grid.")
    _positive(loss.amount)
    law, scale = _CALIBRATIONS[loss.kind](max(1, sensitivity), loss)
    return Additive(law, scale, step)


def gaussian_scale(sensitivity: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The scale of the discrete Gaussian that hides `sensitivity` steps at (ε, δ) [BW18; CKS20, Thm 7].  (G1) (G2)

    >>> 3.74 < gaussian_scale(1, Fraction(1), Fraction(1, 10**5)) < 3.75
    True
    """
    _positive(epsilon)
    _some_delta(delta)
    return _gaussian_scale(max(1, sensitivity), epsilon, delta)


@lru_cache(maxsize=256)
def _gaussian_scale(sensitivity: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    def enough(scale: float) -> bool:
        return _leak(scale, sensitivity, epsilon) * (1 + _MARGIN) <= float(delta)

    high = round_up(min(sensitivity / epsilon, Fraction(2**51)))
    while not enough(high):
        high = round_up(Fraction(2 * high))
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    for _ in range(32):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Fraction(high)


def _leak(scale: float, sensitivity: int, epsilon: Fraction) -> float:
    """At least the smallest δ of discrete Gaussian noise at ε.  (G1)"""
    edge = epsilon * Fraction(scale) ** 2 / sensitivity - Fraction(sensitivity, 2)
    return (_summed_leak if scale <= _SUMMED else _integrated_leak)(scale, sensitivity, edge)


def _summed_leak(scale: float, sensitivity: int, edge: Fraction) -> float:
    first, reach = math.floor(edge) + 1, math.ceil(40 * scale) + 1
    at = np.arange(max(first, -reach), max(first, 0) + reach)
    beyond = (at - first) + float(first - edge)
    weights = np.exp(-((at / scale) ** 2) / 2) * -np.expm1(-sensitivity * beyond / scale**2)
    return float(weights.sum()) / (1 + 2 * float(np.exp(-((np.arange(1, reach) / scale) ** 2) / 2).sum()))


def _integrated_leak(scale: float, sensitivity: int, edge: Fraction) -> float:
    """The continuous law's δ, and the peak of its integrand for the sum over whole numbers.  (G2)"""
    start, shift = float(edge) / scale, sensitivity / scale
    mass = math.erfc(start / math.sqrt(2)) / 2
    hidden = math.exp(-start * start / 2) * float(_special.erfcx((start + shift) / math.sqrt(2))) / 2
    peak = (start + math.sqrt(start * start + 4)) / 2
    height = min(1.0, shift * (peak - start) * math.exp(-peak * peak / 2)) / (scale * math.sqrt(2 * math.pi))
    return mass - hidden + height + 1e-12 * (1 + start * start) * mass


def _pure(sensitivity: int, loss: Loss) -> tuple[LawName, Fraction]:
    return "laplace", Fraction(round_up(sensitivity / loss.epsilon))  # (L)


def _approximate(sensitivity: int, loss: Loss) -> tuple[LawName, Fraction]:
    """Whichever of two valid laws deviates less: a choice by public facts."""
    laplace = _pure(sensitivity, loss)
    if loss.delta < _SMALLEST_DELTA:
        return laplace
    gaussian: tuple[LawName, Fraction] = ("gaussian", gaussian_scale(sensitivity, loss.epsilon, loss.delta))
    return min(laplace, gaussian, key=lambda found: _LAWS[found[0]].deviation(float(found[1])))


def _concentrated(sensitivity: int, loss: Loss) -> tuple[LawName, Fraction]:
    square = sensitivity**2 / (2 * loss.rho)
    return "gaussian", Fraction(round_up(Fraction(math.isqrt(math.ceil(square * 4**60)) + 1, 2**60)))  # (Z)


_CALIBRATIONS: Final[Mapping[Kind, Callable[[int, Loss], tuple[LawName, Fraction]]]] = {
    Kind.PURE: _pure,
    Kind.APPROXIMATE: _approximate,
    Kind.ZCDP: _concentrated,
}


def _positive(epsilon: Fraction) -> None:
    if epsilon <= 0:
        raise ParameterError("epsilon: a loss of 0 allows no answer at all; pass more than 0, such as '0.1'.")


def _some_delta(delta: Fraction) -> None:
    if not _SMALLEST_DELTA <= delta < 1:
        raise ParameterError("delta: this mechanism needs a delta from 1e-100 to below 1; pass one such as '1e-6'.")


# Noise that follows a smooth bound


def smooth_beta(epsilon: Fraction, delta: Fraction, *, least: int, step: Fraction) -> float:
    """How fast a bound on the local sensitivity may change (S(x) <= e^β S(x')) for `smooth_additive`.  (S)

    `least` is a public lower bound of S, in units of the answer. The returned β is a little too small, which leaves
    room for a relative error of 1e-12 in a computed S.

    >>> beta = smooth_beta(Fraction(1), Fraction(1, 10**6), least=1, step=Fraction(1))
    >>> 1 / (2 * math.log(2e6)) < beta < 0.05
    True
    """
    _positive(epsilon)
    _some_delta(delta)
    if least < 1 or step <= 0:
        raise ParameterError(f"least, step: {least} and {step}; both must be above 0, least a whole number.")
    pace, half = float(epsilon * step / (2 * least)), float(epsilon) / 2

    def leak(reach: float) -> float:
        growth = half / reach
        fraction = math.expm1(-pace * growth) / math.expm1(-pace * (1 + growth))
        return fraction * (math.exp(-reach) + math.exp(-2 * reach)) / (1 + math.exp(-pace))

    low, high = 1.0, 1 - math.log(delta)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if leak(middle) <= float(delta) else (middle, high)
    beta = math.log1p(half / high) * (1 - _MARGIN) - 1e-12
    if beta <= 0:
        raise ParameterError(f"epsilon: {float(epsilon):g} is too small for smooth noise; use the global bound.")
    return beta


def smooth_additive(bound: float, epsilon: Fraction, *, step: Fraction) -> Additive:
    """Noise for a `smooth_beta`-smooth bound. Its scale depends on the data: draw from it, never show it.  (S)

    >>> smooth_additive(3.0, Fraction(1, 2), step=Fraction(1)).scale
    Fraction(12, 1)
    """
    return Additive("laplace", Fraction(round_up(2 * Fraction(bound) / (epsilon * step))), step)


# Private choice


def permute_and_flip(scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, noise: Noise) -> int:
    """The index of one high score, under pure ε-DP [MS20, Algorithm 1].  (P)

    Every coin is flipped, also those behind the winner, so that the work does not show where it stood.
    """
    unit = Fraction(epsilon) / (2 * max(1, sensitivity))
    heads = [noise.flip(unit * gap) for gap in _gaps(scores, epsilon)]
    order = list(range(len(heads)))
    for last in range(len(order) - 1, 0, -1):
        other = noise.below(last + 1)
        order[last], order[other] = order[other], order[last]
    return next(index for index in order if heads[index])


def exponential(scores: Sequence[int], *, sensitivity: int, epsilon: Fraction, noise: Noise) -> int:
    """The index of one score, with probability proportional to exp(ε·score/(2·sensitivity)), exactly.  (E1) (E2)"""
    unit = Fraction(epsilon) / (2 * max(1, sensitivity))
    return _drawn(np.array(_gaps(scores, epsilon)), np.ones(len(scores), np.int64), unit, noise)


def exponential_level(gaps: Whole, counts: Whole, *, rate: Fraction, noise: Noise) -> tuple[int, int]:
    """One of many that are only counted: a place i with probability proportional to counts[i]·exp(-rate·gaps[i]),
    exactly, and a uniform rank below its count. Some count is above 0.  (E2) (E3)
    """
    _positive(rate)
    place = _drawn(np.maximum(gaps - gaps[counts > 0].min(), 0), counts, rate, noise)
    return place, noise.below(int(counts[place]))


def _drawn(gaps: Whole, counts: Whole, rate: Fraction, noise: Noise) -> int:
    """A place; bits are read until they leave no other. The smallest gap that counts is 0.  (E2)"""
    word, bits = noise.below(1 << _WORD), _WORD
    place = _surely(word, gaps, counts, rate)
    while place is None:
        around = ((n, _around(rate * gap, bits // 3)) for gap, n in zip(gaps.tolist(), counts.tolist(), strict=True))
        place = _decided(word, bits, [(n * low, n * high) for n, (low, high) in around])
        if place is None:  # in the first turn with probability below 2**-120 times the candidates squared
            word, bits = (word << _WORD) | noise.below(1 << _WORD), bits + _WORD
    return place


def _surely(word: int, gaps: Whole, counts: Whole, rate: Fraction) -> int | None:
    """The place of the first word by sums of floats, unless their errors could change it.  (E3)"""
    sums = np.cumsum(counts * np.exp(-_exponents(gaps, rate)))
    place = min(int(np.searchsorted(sums, word / 2**_WORD * sums[-1], side="right")), len(sums) - 1)
    total, low, high = (Fraction(float(sums[at])) for at in (-1, place - 1, place))
    slack = total * (Fraction(1, 2**40) + Fraction(len(sums), 2**52))
    above = place == 0 or low + slack <= Fraction(word, 2**_WORD) * (total - slack)
    return place if above and Fraction(word + 1, 2**_WORD) * (total + slack) <= high - slack else None


def _exponents(gaps: Whole, rate: Fraction) -> NDArray[np.float64]:
    """The rate times each gap; where a gap is longer than a machine word the product is rounded, not its factors."""
    if gaps.dtype == object:
        return np.array([float(min(rate * gap, _NOTHING)) for gap in gaps.tolist()])
    return gaps.astype(np.float64) * float(rate)


@lru_cache(maxsize=256)
def epsilon_each(epsilon: Fraction, delta: Fraction, h: int) -> Fraction:
    """What each of `h` exponential choices may spend at (ε, δ): the root of 8ρ/h, rounded down.  (E1)"""
    _positive(epsilon)
    _some_delta(delta)
    if h < 1:
        raise ParameterError(f"h: {h} is fewer than one; pass how many candidates to choose.")
    return Fraction(math.sqrt(8 * zcdp_of_epsilon(float(epsilon), float(delta)) / h) * (1 - _MARGIN))


def bounded_range_pays(epsilon: Fraction, delta: Fraction, h: int) -> bool:
    """Whether `epsilon_each` is more than ε/h: a rule by public facts.

    >>> [bounded_range_pays(Fraction(1), Fraction(1, 10**6), h) for h in (1, 5, 6)]
    [False, False, True]
    """
    return delta >= _SMALLEST_DELTA and epsilon_each(epsilon, delta, h) > epsilon / h


def _gaps(scores: Sequence[int], epsilon: Fraction) -> list[int]:
    _positive(epsilon)
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


def _decided(word: int, bits: int, weights: Sequence[tuple[int, int]]) -> int | None:
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
