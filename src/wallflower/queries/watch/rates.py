"""How often a private watch is right, from public numbers alone.

The score q = |s - μ| of an observation is half-normal with the given `variance`. It is an outlier when q >= `truth`; it
is flagged when q + noise >= `threshold`. The two are separate: moving `threshold` under a fixed `truth` gives the ROC.

Every law of noise here has a logarithmically concave tail, so what is integrated is positive, has one peak and one bend
(at the threshold). Both rates and both complements are integrated as they are, in logarithms, never as one minus the
other: nothing cancels, nothing overflows, and a rate of 1e-200 has as many good digits as one of 1/2.

Rates of a sparse vector mechanism are those of one observation before the cutoff is reached, over runs: within one run
the noisy threshold is drawn once, and `run_interval` says how far apart runs are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, Required, TypedDict, Unpack, get_args

import numpy as np

from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.queries.watch.forecast.integrals import Floats, Side, Tail, log_integral, log_slice, log_stairs

__all__ = [
    "ExponentialDifference",
    "LaplaceSum",
    "Mechanism",
    "Mixture",
    "Rates",
    "Roc",
    "Setting",
    "Tail",
    "difference_of_exponentials",
    "laplace_noise",
    "rates",
    "rates_of_tail",
    "roc",
    "run_interval",
    "staircase_at",
    "sum_of_laplaces",
    "true_positive_at",
]

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

Mechanism = Literal["paper", "laplace", "staircase", "svt-laplace", "svt-exponential"]

_REACH: Final = 50.0  # given an outlier, P(q > truth + 50σ) < e^-1250 is no number any more
_FINE, _COARSE = 1e-11, 0.02  # how near a wanted false positive rate is met, in log-odds


class Setting(TypedDict, total=False):
    """What every mechanism is asked about. `epsilon` is its parameter: the paper's own for "paper", the loss of one
    changed entry for "laplace" and "staircase", the loss of one person for the sparse vectors. Only these have a
    `cutoff`, the number of flags after which they stop (1 if not given), and may be `monotone`: one person moves all
    scores in one direction, which halves the noise on them."""

    variance: Required[float]
    truth: Required[float]
    rho: Required[float]
    epsilon: Required[float]
    cutoff: int | None
    monotone: bool


@dataclass(frozen=True, slots=True)
class Rates:
    """P(flag | no outlier), P(flag | outlier), and what each lacks to one, with a relative accuracy of its own."""

    false_positive: float
    true_positive: float
    true_negative: float
    false_negative: float


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """Both rates, one point for each threshold; the false positive rate rises along the arrays."""

    thresholds: Floats
    false_positive: Floats
    true_positive: Floats


@dataclass(frozen=True, slots=True)
class Mixture:
    """Use `lower` with probability `share`, else `upper`, by a coin that ignores the data."""

    lower: float
    upper: float
    share: float
    true_positive: float


def rates(mechanism: Mechanism, *, threshold: float, **setting: Unpack[Setting]) -> Rates:
    """The rates of a mechanism.

    >>> given = dict(variance=3.01e7, truth=9130, threshold=9130, rho=500, epsilon=1)
    >>> found = rates("paper", **given), rates("staircase", **given)
    >>> [(round(each.false_positive, 4), round(each.true_positive, 4)) for each in found]
    [(0.0817, 0.7472), (0.0101, 0.9313)]
    """
    return _world(mechanism, **setting).rates(threshold)


def rates_of_tail(tail: Tail, *, variance: float, truth: float, threshold: float) -> Rates:
    """The rates under any noise on the score whose tail is logarithmically concave, in the units of the score.

    >>> found = rates_of_tail(laplace_noise(500), variance=3.01e7, truth=9130, threshold=9130)
    >>> round(found.true_positive, 4)
    0.9182
    """
    return _World(partial(log_integral, tail), variance, truth).rates(threshold)


def roc(mechanism: Mechanism, *, points: int = 200, **setting: Unpack[Setting]) -> Roc:
    """The curve of both rates, from a false positive rate of 1e-4 to one minus it, about evenly in log-odds.

    >>> curve = roc("laplace", variance=1, truth=2, rho=0.1, epsilon=1, points=5)
    >>> curve.false_positive.round(2)
    array([0.  , 0.01, 0.5 , 0.99, 1.  ])
    """
    if not 2 <= points <= 10_000:
        raise ParameterError(f"points: {points!r} is outside 2 to 10,000; 200 draw a smooth curve.")
    world = _world(mechanism, **setting)
    end = _special.logit(1e-4)
    at = world.threshold_at(_special.expit(np.linspace(end, -end, points)), _COARSE)
    return Roc(at, world.share(at, outlier=False), world.share(at, outlier=True))


def true_positive_at(mechanism: Mechanism, false_positive: float, **setting: Unpack[Setting]) -> tuple[float, float]:
    """The threshold with this false positive rate, and the true positive rate there.

    The false positive rate is continuous, since q has a density, and falls as the threshold rises: there is one.

    >>> round(true_positive_at("staircase", 0.01, variance=3.01e7, truth=9130, rho=500, epsilon=1)[1], 3)
    0.929
    """
    _check_level("false_positive", false_positive)
    world = _world(mechanism, **setting)
    at = world.threshold_at(np.array([float(false_positive)]), _FINE)
    return float(at[0]), float(world.share(at, outlier=True)[0])


def staircase_at(false_positive: float, **setting: Unpack[Setting]) -> Mixture:
    """The most true positives that staircases reach at this false positive rate, with a coin between two thresholds.

    Their frontier has its corners at the thresholds truth + j rho. Between two corners the curve of single thresholds
    hangs below the chord: little where rho is small beside the spread, much where it is not.

    >>> given = dict(variance=1, truth=1.645, rho=1, epsilon=2)
    >>> round(staircase_at(0.05, **given).true_positive, 3), round(true_positive_at("staircase", 0.05, **given)[1], 3)
    (0.709, 0.614)
    """
    threshold, _ = true_positive_at("staircase", false_positive, **setting)
    truth, rho = setting["truth"], setting["rho"]
    corner = truth + math.floor((threshold - truth) / rho) * rho
    low, high = (rates("staircase", threshold=at, **setting) for at in (corner, corner + rho))
    share = (false_positive - high.false_positive) / (low.false_positive - high.false_positive)
    share = min(max(share, 0.0), 1.0)
    return Mixture(corner, corner + rho, share, share * low.true_positive + (1 - share) * high.true_positive)


def run_interval(
    mechanism: Mechanism, *, threshold: float, level: float = 0.9, **setting: Unpack[Setting]
) -> tuple[float, float]:
    """Where the false positive rate of a single long run lies, with probability `level`.

    A noisy threshold is drawn once and shared by the run. Laws without one ("laplace", "staircase") have equal ends.

    >>> low, high = run_interval("paper", variance=3.01e7, truth=9130, threshold=9130, rho=500, epsilon=1)
    >>> round(low, 4), round(high, 4)
    (0.0215, 0.1892)
    """
    _check_level("level", level)
    world, shifts = _world(mechanism, **setting), np.zeros(2)
    world.check(threshold)
    if mechanism in _SHARED:
        query, shared = _scales(mechanism, **setting)
        tail, quantile = _SHARED[mechanism]
        world.law = partial(log_integral, tail(query, 0.0))
        shifts = shared * np.array([quantile((1 + level) / 2), quantile((1 - level) / 2)])
    low, high = world.share(threshold + shifts, outlier=False)
    return float(low), float(high)


# Laws of noise


@dataclass(frozen=True, slots=True)
class LaplaceSum:
    """Two Laplace draws added; `narrow` may be 0. Nothing cancels however near the two scales are."""

    wide: float
    narrow: float

    def log_above(self, t: Floats) -> Floats:
        far = self._log_tail(np.abs(t))
        return np.where(t >= 0, far, np.log1p(-np.exp(far)))

    def log_below(self, t: Floats) -> Floats:
        return self.log_above(-t)

    def _log_tail(self, t: Floats) -> Floats:
        """(wide² e^(-t/wide) - narrow² e^(-t/narrow)) / (2 (wide² - narrow²)), with the difference divided out."""
        plain = -t / self.wide - math.log(2)
        if self.narrow == 0:
            return plain
        gap = t / self.narrow * ((self.wide - self.narrow) / self.wide)
        extra = self.narrow / (self.wide + self.narrow) * (t / self.wide) * _special.exprel(-gap)
        return np.asarray(plain + np.log1p(extra))


@dataclass(frozen=True, slots=True)
class ExponentialDifference:
    """An exponential draw for the query minus one for the threshold; a scale of 0 leaves that draw out."""

    query: float
    threshold: float

    def log_above(self, t: Floats) -> Floats:
        up, down = np.array([self.query, self.threshold]) / (self.query + self.threshold)
        with np.errstate(divide="ignore"):
            short = np.log(up) + _decay(np.maximum(t, 0), self.query)
            beyond = up - down * np.expm1(_decay(np.maximum(-t, 0), self.threshold))
            return np.asarray(np.where(t >= 0, short, np.log(beyond)))

    def log_below(self, t: Floats) -> Floats:
        return ExponentialDifference(self.threshold, self.query).log_above(-t)


def _decay(t: Floats, scale: float) -> Floats:
    return -t / scale if scale > 0 else np.where(t > 0, -np.inf, 0.0)


def laplace_noise(scale: float) -> LaplaceSum:
    """Laplace noise."""
    return sum_of_laplaces(scale, 0.0)


def sum_of_laplaces(first: float, second: float) -> LaplaceSum:
    """The sum, or the difference, of two Laplace draws; the second scale may be 0."""
    _check_scales(first, second)
    return LaplaceSum(float(max(first, second)), float(min(first, second)))


def difference_of_exponentials(query: float, threshold: float) -> ExponentialDifference:
    """One-sided noise on the query minus one-sided noise on the threshold; the second scale may be 0."""
    _check_scales(query, threshold)
    return ExponentialDifference(float(query), float(threshold))


def _laplace_quantile(p: float) -> float:
    return math.log(2 * p) if p < 0.5 else -math.log(2 * (1 - p))


_Shared = tuple[Callable[[float, float], Tail], Callable[[float], float]]
_SHARED: Final[Mapping[Mechanism, _Shared]] = {
    "paper": (sum_of_laplaces, _laplace_quantile),
    "svt-laplace": (sum_of_laplaces, _laplace_quantile),
    "svt-exponential": (difference_of_exponentials, lambda p: -math.log1p(-p)),
}


def _scales(mechanism: Mechanism, **setting: Unpack[Setting]) -> tuple[float, float]:
    """The scales of the noise on query and threshold: the budget is split 1 : moves^(2/3), which is the best split."""
    unit = setting["rho"] / setting["epsilon"]
    if mechanism == "paper":
        return 4 * unit, 2 * unit
    moves = (1 if setting.get("monotone") else 2) * (setting.get("cutoff") or 1)
    ratio = moves ** (2 / 3)
    return moves * unit * (1 + 1 / ratio), unit * (1 + ratio)


def _world(mechanism: Mechanism, **setting: Unpack[Setting]) -> _World:
    _check_setting(mechanism, **setting)
    rho, epsilon = float(setting["rho"]), float(setting["epsilon"])
    if mechanism == "staircase":
        law: _Law = partial(log_stairs, rho, epsilon)
    elif mechanism == "laplace":
        law = partial(log_integral, laplace_noise(rho / epsilon))
    else:
        law = partial(log_integral, _SHARED[mechanism][0](*_scales(mechanism, **setting)))
    return _World(law, setting["variance"], setting["truth"])


# Scores and thresholds


_Law = Callable[[Side, bool], Floats]  # the logarithm of P(q is on that side, and flagged or not)


class _World:
    """A law of decisions on half-normal scores."""

    def __init__(self, law: _Law, variance: float, truth: float) -> None:
        _check("variance", variance, 1e-200, 1e200, "pass the variance of the score")
        self.law, self.spread, self.truth = law, math.sqrt(variance), float(truth)
        _check("truth", truth, 1e-9 * self.spread, 1e3 * self.spread, "count it in standard deviations of the score")

    def check(self, threshold: float) -> None:
        far = 1e15 * self.spread
        _check("threshold", threshold, -far, far, "so far away all scores are alike")

    def rates(self, threshold: float) -> Rates:
        self.check(threshold)
        at = np.array([float(threshold)])
        kinds = [(False, True), (True, True), (False, False), (True, False)]
        return Rates(*(float(self.share(at, outlier=outlier, flagged=flagged)[0]) for outlier, flagged in kinds))

    def share(self, at: Floats, *, outlier: bool, flagged: bool = True) -> Floats:
        """P(flagged, or not, given an outlier, or none) at each threshold."""
        low, high = (self.truth, self.truth + _REACH * self.spread) if outlier else (0.0, self.truth)
        at = at[:, None]
        start = np.minimum(at, high)
        short = Side(self.spread, -1, start, at - start, np.maximum(start - low, 0))
        start = np.maximum(at, low)
        beyond = Side(self.spread, 1, start, start - at, np.maximum(high - start, 0))
        scale = self.truth / self.spread
        whole = log_slice(scale, math.inf) if outlier else log_slice(0.0, scale)
        return np.minimum(np.exp(np.logaddexp(self.law(short, flagged), self.law(beyond, flagged)) - whole), 1.0)

    def threshold_at(self, wanted: Floats, near: float) -> Floats:
        """Where the false positive rate is as wanted; every third step halves, the others interpolate in log-odds."""
        low, high = np.full_like(wanted, -self.truth), np.full_like(wanted, 2 * self.truth)
        while np.any(short := (under := self._excess(low, wanted)) < 0):
            low = np.where(short, 4 * low, low)
        while np.any(short := (over := self._excess(high, wanted)) > 0):
            high = np.where(short, 4 * high, high)
        near = near + 4e-16 / np.min(wanted * (1 - wanted))
        for turn in range(200):
            part = np.divide(under, under - over, out=np.zeros_like(under), where=under > over) if turn % 3 else 0.5
            middle = low + (high - low) * part
            found = self._excess(middle, wanted)
            if np.all(np.abs(found) <= near):
                break
            low, under = np.where(found > 0, middle, low), np.where(found > 0, found, under)
            high, over = np.where(found > 0, high, middle), np.where(found > 0, over, found)
        return np.asarray(middle)

    def _excess(self, at: Floats, wanted: Floats) -> Floats:
        share = np.clip(self.share(at, outlier=False), 1e-300, 1 - 1e-16)
        return np.asarray(_special.logit(share) - _special.logit(wanted))


# Refusals


def _check(name: str, value: float, low: float, high: float, advice: str) -> None:
    if not low <= value <= high:
        raise ParameterError(f"{name}: {value!r} is outside {low:g} to {high:g}; {advice}.")


def _check_level(name: str, value: float) -> None:
    _check(name, value, 1e-12, 1 - 1e-12, "pass a share, such as 0.01 or 0.9")


def _check_scales(first: float, second: float) -> None:
    if not (0 < first <= 1e250 and 0 <= second <= 1e250):
        raise ParameterError(
            f"scale: {first!r} and {second!r} are no noise; the first is positive, the second may be 0."
        )


def _check_setting(mechanism: Mechanism, **setting: Unpack[Setting]) -> None:
    if mechanism not in get_args(Mechanism):
        raise ParameterError(f"mechanism: {mechanism!r} is unknown; choose from {', '.join(get_args(Mechanism))}.")
    _check("rho", setting["rho"], 1e-100, 1e100, "pass how far one entry of one observation can move the score")
    _check("epsilon", setting["epsilon"], 1e-9, 1e9, "pass the privacy loss as a number, such as 1")
    cutoff = setting.get("cutoff")
    if not mechanism.startswith("svt-") and (cutoff is not None or setting.get("monotone")):
        raise ParameterError(f"{mechanism}: it has no cutoff and is not monotone; leave both out, or ask for an svt.")
    if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, int) or not 1 <= cutoff <= 10**9):
        raise ParameterError(f"cutoff: {cutoff!r} is not a whole number from 1 to 1e9; pass the most flags wanted.")
