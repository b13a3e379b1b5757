"""How often a private watch is right, from public numbers alone.

The score q = |s - μ| of an observation is half-normal with the given `variance`. It is an outlier when q >= `truth`; it
is flagged when q + noise >= `threshold`. The two are separate: moving `threshold` under a fixed `truth` gives the ROC.

Every law of noise here has a logarithmically concave tail, so what is integrated is positive, has one peak and one bend
(at the threshold). Both rates and both complements are integrated as they are, in logarithms, never as one minus the
other: nothing cancels, nothing overflows, and a rate of 1e-200 has as many good digits as one of 1/2.

Rates of a sparse vector mechanism are those of one observation before the cutoff is reached, over runs: within one run
the noisy threshold is drawn once, and `run_interval` says how far apart runs are.

Numerics. A function is integrated by its logarithm, which is concave up to one bend at the threshold. The search closes
in on the peak until the interval holds all but e^-45 of the total; Gauss' rule on panels that shrink towards the bend
does the rest. All terms are positive, so the relative error of the whole is that of one term, about 1e-13.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final, Literal, Required, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.heavy import scipy_special as _special

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Logarithm = Callable[[Floats], Floats]
Mechanism = Literal["paper", "laplace", "staircase", "svt-laplace", "svt-exponential"]

_REACH_DEVIATIONS: Final = 50.0  # given an outlier, P(q > truth + 50σ) < e^-1250 underflows
_FINE_LOG_ODDS, _COARSE_LOG_ODDS = 1e-11, 0.02  # how near a wanted false positive rate is met, in log-odds


class Setting(TypedDict, total=False):
    """Arguments of every mechanism.

    variance  of the score before its absolute value is taken
    truth     a score is an outlier from here on
    rho       the most that one entry can move the score
    epsilon   the paper's own for "paper", the loss of one changed entry for "laplace" and "staircase", the loss of one
              person for the sparse vectors
    cutoff    sparse vectors only: the number of flags after which they stop (default: 1)
    monotone  sparse vectors only: one person moves all scores in one direction, which halves the noise on them
    """

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
    """Compute the rates of a mechanism.

    >>> setting = dict(variance=3.01e7, truth=9130, threshold=9130, rho=500, epsilon=1)
    >>> pair = rates("paper", **setting), rates("staircase", **setting)
    >>> [(round(r.false_positive, 4), round(r.true_positive, 4)) for r in pair]
    [(0.0817, 0.7472), (0.0101, 0.9313)]
    """
    return _world(mechanism, **setting).rates(threshold)


def rates_of_tail(tail: Tail, *, variance: float, truth: float, threshold: float) -> Rates:
    """Compute the rates under any noise on the score whose tail is logarithmically concave, in the units of the score.

    >>> round(rates_of_tail(laplace_noise(500), variance=3.01e7, truth=9130, threshold=9130).true_positive, 4)
    0.9182
    """
    return _World(partial(log_integral, tail), variance, truth).rates(threshold)


def roc(mechanism: Mechanism, *, points: int = 200, **setting: Unpack[Setting]) -> Roc:
    """Compute the curve of both rates, from a false positive rate of 1e-4 to one minus it, about evenly in log-odds.

    >>> curve = roc("laplace", variance=1, truth=2, rho=0.1, epsilon=1, points=5)
    >>> curve.false_positive.round(2)
    array([0.  , 0.01, 0.5 , 0.99, 1.  ])
    """
    if not 2 <= points <= 10_000:
        raise ParameterError(f"points: {points!r} is outside 2 to 10,000; 200 draw a smooth curve.")
    world = _world(mechanism, **setting)
    end = _special.logit(1e-4)
    at = world.threshold_at(_special.expit(np.linspace(end, -end, points)), _COARSE_LOG_ODDS)
    return Roc(at, world.share(at, outlier=False), world.share(at, outlier=True))


def true_positive_at(mechanism: Mechanism, false_positive: float, **setting: Unpack[Setting]) -> tuple[float, float]:
    """Find the threshold with this false positive rate; return it with the true positive rate there.

    The false positive rate is continuous, since q has a density, and falls as the threshold rises: there is one.

    >>> round(true_positive_at("staircase", 0.01, variance=3.01e7, truth=9130, rho=500, epsilon=1)[1], 3)
    0.929
    """
    _check_level("false_positive", false_positive)
    world = _world(mechanism, **setting)
    at = world.threshold_at(np.array([float(false_positive)]), _FINE_LOG_ODDS)
    return float(at[0]), float(world.share(at, outlier=True)[0])


def staircase_at(false_positive: float, **setting: Unpack[Setting]) -> Mixture:
    """Find the most true positives that staircases reach at this rate, with a coin between two thresholds.

    Their frontier has its corners at the thresholds truth + j rho. Between two corners the curve of single thresholds
    hangs below the chord: little where rho is small beside the spread, much where it is not.

    >>> setting = dict(variance=1, truth=1.645, rho=1, epsilon=2)
    >>> single = true_positive_at("staircase", 0.05, **setting)[1]
    >>> round(staircase_at(0.05, **setting).true_positive, 3), round(single, 3)
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
    """Return where the false positive rate of a single long run lies, with probability `level`.

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


class Tail(ABC):
    """A law of noise Z with a logarithmically concave tail, by the logarithms of P(Z >= t) and P(Z < t)."""

    __slots__ = ()

    @abstractmethod
    def log_above(self, t: Floats) -> Floats:
        """Return log P(Z >= t)."""

    @abstractmethod
    def log_below(self, t: Floats) -> Floats:
        """Return log P(Z < t)."""

    def law_at(self, threshold: int, step: float) -> Callable[[Ints], Floats]:
        """Return P(flag) of distances in grid steps, when this noise is added to them."""
        return lambda distances: np.exp(self.log_above((threshold - np.abs(distances)) * step))


@dataclass(frozen=True, slots=True)
class LaplaceSum(Tail):
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
class ExponentialDifference(Tail):
    """An exponential draw for the query minus one for the threshold; with a scale of 0 that draw is absent."""

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
    """Return Laplace noise of this scale."""
    return sum_of_laplaces(scale, 0.0)


def sum_of_laplaces(first: float, second: float) -> LaplaceSum:
    """Return the sum, or the difference, of two Laplace draws; the second scale may be 0."""
    _check_scales(first, second)
    return LaplaceSum(float(max(first, second)), float(min(first, second)))


def difference_of_exponentials(query: float, threshold: float) -> ExponentialDifference:
    """Return one-sided noise on the query minus one-sided noise on the threshold; the second scale may be 0."""
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


@dataclass(frozen=True, slots=True)
class Side:
    """The scores of one kind on one side of the threshold, by their distance from it: one row for each threshold."""

    spread: float
    away: int  # -1 short of the threshold, +1 beyond it
    start: Floats  # the score nearest to the threshold
    near: Floats  # its distance
    length: Floats  # how much further the side reaches

    def standard(self, offset: Floats) -> Floats:
        """The score so far beyond the nearest one, in spreads."""
        return np.maximum(self.start + self.away * offset, 0) / self.spread


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
        low, high = (self.truth, self.truth + _REACH_DEVIATIONS * self.spread) if outlier else (0.0, self.truth)
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
            excess = self._excess(middle, wanted)
            if np.all(np.abs(excess) <= near):
                break
            low, under = np.where(excess > 0, middle, low), np.where(excess > 0, excess, under)
            high, over = np.where(excess > 0, high, middle), np.where(excess > 0, over, excess)
        return np.asarray(middle)

    def _excess(self, at: Floats, wanted: Floats) -> Floats:
        share = np.clip(self.share(at, outlier=False), 1e-300, 1 - 1e-16)
        return np.asarray(_special.logit(share) - _special.logit(wanted))


# Integrals and sums of positive functions with one peak, in logarithms


_LOG_DROP: Final = 45.0  # what lies e^45 below the peak is ignored
_ZOOMS: Final = 6
_GRID: Final = np.unique(
    np.concatenate([np.linspace(0, 1, 17), 2.0 ** -np.arange(0, 61, 4), 1 - 0.125 ** np.arange(9)])
)
_SPLITS: Final = np.linspace(0, 1, 7)
_LEVELS: Final = 0.25 ** np.arange(1, 25)  # panels shrink towards the bend
_GAUSS_NODES: Final = 16


def log_integral(tail: Tail, side: Side, flagged: bool) -> Floats:
    """log P(q is on that side, and flagged or not), under noise with this tail."""
    chance = tail.log_above if flagged else tail.log_below

    def log_f(offset: Floats) -> Floats:
        x = side.standard(offset)
        return np.asarray(chance(-side.away * (side.near + offset)) - x * x / 2 + math.log(2 / math.pi) / 2)

    edges = _panels(*_support(log_f, side.length), side.near)
    widths, (gauss_nodes, gauss_weights) = np.diff(edges)[..., None] / 2, _gauss_rule()
    return _log_sum(log_f, edges[:, :-1, None] + widths * (1 + gauss_nodes), widths * gauss_weights / side.spread)


def log_stairs(rho: float, epsilon: float, side: Side, flagged: bool) -> Floats:
    """log P(q is on that side, and flagged or not), under the staircase: steps of width rho are counted from the
    threshold; the first and the last may be cut, those between are summed."""
    toll = float(np.logaddexp(0.0, epsilon))
    rare = flagged == (side.away < 0)

    def log_cell(step: Floats, begin: Floats, width: Floats) -> Floats:
        chance = -epsilon * step - toll
        mass = log_slice(side.standard(begin if side.away > 0 else begin + width), width / side.spread)
        return np.asarray(mass + (chance if rare else np.log1p(-np.exp(chance))))

    def log_f(offset: Floats) -> Floats:
        return log_cell(first + 1 + offset, rest + offset * rho, np.full_like(offset, rho))

    begun = np.fmod(side.near, rho)
    first, rest = np.rint((side.near - begun) / rho), rho - begun  # exact however far away the threshold is
    inner = np.maximum(np.floor((side.length - rest) / rho), 0)
    start = np.minimum(rest + inner * rho, side.length)
    last = log_cell(first + 1 + inner, start, side.length - start)
    cut = log_cell(first, np.zeros_like(rest), np.minimum(rest, side.length))
    cut = np.logaddexp(cut, np.where(side.length > rest, last, -np.inf))[:, 0]
    low, high = _support(log_f, inner)
    edges = np.ceil(_panels(np.floor(low), np.minimum(np.ceil(high + 1), inner), first + 1))
    nodes, weights = _sum_rule(np.diff(edges))
    return np.logaddexp(cut, _log_sum(log_f, edges[:, :-1, None] + nodes, weights))


@lru_cache(maxsize=1)
def _gauss_rule() -> tuple[Floats, Floats]:
    """Computed on first use: `numpy.polynomial` would slow down the start of every command."""
    nodes, weights = np.polynomial.legendre.leggauss(_GAUSS_NODES)
    return nodes, weights


def _support(log_f: Logarithm, length: Floats) -> tuple[Floats, Floats]:
    """An interval of [0, length] that holds all but e^-45 of the total, and little more: it closes in on the peak."""
    low, high = np.zeros_like(length), length
    for _ in range(_ZOOMS):
        grid = low + (high - low) * _GRID
        values = log_f(grid)
        kept = values >= np.max(values, axis=1, keepdims=True) - _LOG_DROP
        first = np.maximum(np.argmax(kept, axis=1) - 1, 0)
        last = np.minimum(len(_GRID) - np.argmax(kept[:, ::-1], axis=1), len(_GRID) - 1)
        low, high = np.take_along_axis(grid, first[:, None], 1), np.take_along_axis(grid, last[:, None], 1)
    return low, high


def _panels(low: Floats, high: Floats, near: Floats) -> Floats:
    """Edges of panels in [low, high]: even ones, and ones that shrink fourfold towards the bend, `near` before 0."""
    shrinking = np.clip((near + high) * _LEVELS - near, low, high)
    return np.sort(np.concatenate([low + (high - low) * _SPLITS, shrinking], axis=1), axis=1)


def _log_sum(log_f: Logarithm, nodes: Floats, weights: Floats) -> Floats:
    values = log_f(nodes.reshape(len(nodes), -1))
    peak = np.maximum(np.max(values, axis=1, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(weights.reshape(len(nodes), -1) * np.exp(values - peak), axis=1))
    return np.asarray(total + peak[:, 0])


def _sum_rule(numbers: Floats) -> tuple[Floats, Floats]:
    """Gauss' rule for the sum over 0 … n-1, for each n: nodes and weights from the recurrence of Chebyshev's discrete
    polynomials. Up to sixteen terms it is the sum itself; a longer smooth sum costs no more."""
    distinct, which = np.unique(numbers, return_inverse=True)
    i = np.arange(1, _GAUSS_NODES)
    squared = i**2 * np.maximum(distinct[:, None] ** 2 - i**2, 0) / (4 * (4 * i**2 - 1))
    matrix = np.zeros((len(distinct), _GAUSS_NODES, _GAUSS_NODES))
    matrix[:, i, i - 1] = np.sqrt(squared)
    nodes, vectors = np.linalg.eigh(matrix)  # reads the lower triangle
    nodes += (distinct[:, None] - 1) / 2
    weights = distinct[:, None] * vectors[:, 0, :] ** 2
    shape = (*numbers.shape, _GAUSS_NODES)
    return nodes[which].reshape(shape), weights[which].reshape(shape)


def log_slice(low: Floats | float, width: Floats | float) -> Floats:
    """log P(low <= q/σ <= low + width); a thin slice by its series, since the difference would cancel."""
    middle, high = np.add(low, np.divide(width, 2)), np.add(low, width)
    with np.errstate(all="ignore"):
        w, m = np.square(width), middle**2
        series = w * (m - 1) / 24 + w**2 * (m**2 - 6 * m + 3) / 1920
        thin = np.log(width) - m / 2 + np.log1p(series) + math.log(2 / math.pi) / 2
        left, right = (_special.erfcx(np.divide(end, math.sqrt(2))) for end in (low, high))
        thick = np.log(left - np.exp(-width * middle) * right) - np.square(low) / 2
    return np.asarray(np.where(width * (1 + middle) < 0.02, thin, thick))


# Refusals


def _check(name: str, value: float, low: float, high: float, advice: str) -> None:
    if not low <= value <= high:
        raise ParameterError(f"{name}: {value!r} is outside {low:g} to {high:g}; {advice}.")


def _check_level(name: str, value: float) -> None:
    _check(name, value, 1e-12, 1 - 1e-12, "pass a share, such as 0.01 or 0.9")


def _check_scales(first: float, second: float) -> None:
    if not (0 < first <= 1e250 and 0 <= second <= 1e250):
        raise ParameterError(
            f"scale: {first!r} and {second!r} are not noise scales. The first must be positive, the second may be 0."
        )


def _check_setting(mechanism: Mechanism, **setting: Unpack[Setting]) -> None:
    if mechanism not in get_args(Mechanism):
        raise ParameterError(f"mechanism: {mechanism!r} is unknown; choose from {', '.join(get_args(Mechanism))}.")
    _check("rho", setting["rho"], 1e-100, 1e100, "pass how far one entry of one observation can move the score")
    _check("epsilon", setting["epsilon"], 1e-9, 1e9, "pass the privacy loss as a number, such as 1")
    cutoff = setting.get("cutoff")
    if not mechanism.startswith("svt-") and (cutoff is not None or setting.get("monotone")):
        raise ParameterError(
            f"{mechanism}: cutoff and monotone are settings of the sparse vectors. Omit both, or choose an svt."
        )
    if cutoff is not None and (isinstance(cutoff, bool) or not isinstance(cutoff, int) or not 1 <= cutoff <= 10**9):
        raise ParameterError(f"cutoff: {cutoff!r} is not a whole number from 1 to 1e9; pass the most flags wanted.")
