"""Noise on whole numbers: how much hides one record, and what it does to an answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Literal, Protocol

import numpy as np

from wallflower.errors import LossMismatch, ParameterError
from wallflower.machine.heavy import scipy_special as _special
from wallflower.noise import Noise, round_up
from wallflower.privacy import Kind, Loss

LawName = Literal["laplace", "gaussian"]

_MAX_SUMMED_SCALE: Final = 256.0  # below this many steps the discrete Gaussian is summed term by term
FLOAT_MARGIN: Final = 1e-9  # covers the rounding of every float that a guarantee depends on
SMALLEST_DELTA: Final = Fraction(1, 10**100)
MIN_COUNTS_SCALE: Final = 2.0  # from here sums of discrete Gaussian noise are nearly discrete Gaussian (G3)
MAX_MOVED: Final = 2**14
LATTICE_MARGIN: Final = Fraction(1, 10**12)  # by how much they differ at most, as a share of δ (G3)


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
        if scale > _MAX_SUMMED_SCALE:
            return scale
        at, weights = _masses(scale)
        return math.sqrt(2 * float(at**2 @ weights))

    def mean_error(self, scale: float) -> float:
        if scale > _MAX_SUMMED_SCALE:  # Euler-Maclaurin, next term of order scale**-4
            return math.sqrt(2 / math.pi) * (scale - 1 / (12 * scale))
        at, weights = _masses(scale)
        return 2 * float(at @ weights)

    def tail(self, scale: float, least: int) -> float:
        if scale <= _MAX_SUMMED_SCALE:
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
    require_positive(loss.amount)
    law, scale = _CALIBRATIONS[loss.kind](max(1, sensitivity), loss)
    return Additive(law, scale, step)


def gaussian_scale(sensitivity: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The scale of the discrete Gaussian that hides `sensitivity` steps at (ε, δ) [BW18; CKS20, Thm 7].  (G1) (G2)

    >>> 3.74 < gaussian_scale(1, Fraction(1), Fraction(1, 10**5)) < 3.75
    True
    """
    require_positive(epsilon)
    require_delta(delta)
    return _gaussian_scale(max(1, sensitivity), epsilon, delta)


def calibrate_counts(moved: int, loss: Loss) -> Additive:
    """The noise of each of many counts, `moved` of which one record moves, each by 1.

    Laplace noise has to hide the sum of these changes, Gaussian noise the root of the sum of their squares.

    Released    every count plus noise of its own                      Neighbours  those of the changes
    Guarantee   that of `loss`: pure, approximate or zCDP             Proof       (L) (G3) (Z)

    >>> calibrate_counts(40, Loss("0.5")).scale, calibrate_counts(40, Loss.zcdp("1/5")).law
    (Fraction(80, 1), 'gaussian')
    >>> at_delta = calibrate_counts(40, Loss("0.5", delta="1e-6"))
    >>> at_delta.law, round(at_delta.deviation())
    ('gaussian', 51)
    """
    if not 1 <= moved <= MAX_MOVED:
        raise ParameterError(f"moved: {moved} counts is outside 1 to {MAX_MOVED}; use fewer tables.")
    if loss.kind is Kind.ZCDP:
        require_positive(loss.amount)
        return Additive("gaussian", _root_up(moved / (2 * loss.rho)), Fraction(1))  # (Z)
    laplace = calibrate(moved, Loss(loss.epsilon), step=Fraction(1))  # (L)
    if loss.delta < SMALLEST_DELTA:
        return laplace
    gaussian = Additive("gaussian", counts_scale(moved, loss.epsilon, loss.delta), Fraction(1))
    return min(laplace, gaussian, key=Additive.deviation)


@lru_cache(maxsize=1024)
def counts_scale(moved: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The scale of discrete Gaussian noise on many counts, `moved` of which move by 1, at (ε, δ).  (G3)"""
    require_positive(epsilon)
    require_delta(delta)
    part = delta * (1 - LATTICE_MARGIN)

    def enough(scale: float) -> bool:
        leak = _leak(moved * Fraction(scale) ** 2, moved, epsilon)
        return scale >= MIN_COUNTS_SCALE and leak * (1 + FLOAT_MARGIN) <= float(part)

    return _search_scale(enough, min(1 / epsilon, Fraction(2**40)))


@lru_cache(maxsize=256)
def _gaussian_scale(sensitivity: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    def enough(scale: float) -> bool:
        return _leak(Fraction(scale) ** 2, sensitivity, epsilon) * (1 + FLOAT_MARGIN) <= float(delta)

    return _search_scale(enough, min(sensitivity / epsilon, Fraction(2**51)))


def _search_scale(enough: Callable[[float], bool], start: Fraction) -> Fraction:
    """Nearly the least scale that is enough: a number that was checked, whatever the search does."""
    high = round_up(start)
    while not enough(high):
        high = round_up(Fraction(2 * high))
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    for _ in range(32):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Fraction(high)


def _leak(square: Fraction, sensitivity: int, epsilon: Fraction) -> float:
    """At least the smallest δ at ε of discrete Gaussian noise whose scale has this square.  (G1)"""
    edge, scale = epsilon * square / sensitivity - Fraction(sensitivity, 2), math.sqrt(square)
    return (_summed_leak if scale <= _MAX_SUMMED_SCALE else _integrated_leak)(scale, sensitivity, edge)


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


def _calibrate_pure(sensitivity: int, loss: Loss) -> tuple[LawName, Fraction]:
    return "laplace", Fraction(round_up(sensitivity / loss.epsilon))  # (L)


def _calibrate_approximate(sensitivity: int, loss: Loss) -> tuple[LawName, Fraction]:
    """Whichever of two valid laws deviates less: a choice by public facts."""
    laplace = _calibrate_pure(sensitivity, loss)
    if loss.delta < SMALLEST_DELTA:
        return laplace
    gaussian: tuple[LawName, Fraction] = ("gaussian", gaussian_scale(sensitivity, loss.epsilon, loss.delta))
    return min(laplace, gaussian, key=lambda found: _LAWS[found[0]].deviation(float(found[1])))


def gaussian_for_norm(square: int, loss: Loss) -> Additive:
    """The noise of each of several whole numbers that one change moves by a vector of squared length `square`.  (V)

    >>> gaussian_for_norm(4, Loss.zcdp("1/2")).scale == calibrate(2, Loss.zcdp("1/2"), step=Fraction(1)).scale
    True
    """
    require_positive(loss.amount)
    return Additive("gaussian", _root_up(Fraction(max(1, square)) / (2 * loss.rho)), Fraction(1))


def _calibrate_concentrated(sensitivity: int, loss: Loss) -> tuple[LawName, Fraction]:
    return "gaussian", _root_up(sensitivity**2 / (2 * loss.rho))  # (Z)


def _root_up(square: Fraction) -> Fraction:
    """At least the root, by whole numbers."""
    return Fraction(round_up(Fraction(math.isqrt(math.ceil(square * 4**60)) + 1, 2**60)))


_CALIBRATIONS: Final[Mapping[Kind, Callable[[int, Loss], tuple[LawName, Fraction]]]] = {
    Kind.PURE: _calibrate_pure,
    Kind.APPROXIMATE: _calibrate_approximate,
    Kind.ZCDP: _calibrate_concentrated,
}


def require_positive(epsilon: Fraction) -> None:
    if epsilon <= 0:
        raise ParameterError("epsilon: a loss of 0 allows no answer at all; pass more than 0, such as '0.1'.")


def require_delta(delta: Fraction) -> None:
    if not SMALLEST_DELTA <= delta < 1:
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
    require_positive(epsilon)
    require_delta(delta)
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
    beta = math.log1p(half / high) * (1 - FLOAT_MARGIN) - 1e-12
    if beta <= 0:
        raise ParameterError(f"epsilon: {float(epsilon):g} is too small for smooth noise; use the global bound.")
    return beta


def smooth_additive(bound: float, epsilon: Fraction, *, step: Fraction) -> Additive:
    """Noise for a `smooth_beta`-smooth bound. Its scale depends on the data: draw from it, never show it.  (S)

    >>> smooth_additive(3.0, Fraction(1, 2), step=Fraction(1)).scale
    Fraction(12, 1)
    """
    return Additive("laplace", Fraction(round_up(2 * Fraction(bound) / (epsilon * step))), step)
