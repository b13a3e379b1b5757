"""How an observation becomes one whole number: its distance from what is usual, on a grid.

Every entry is a total function of itself: clipped to its public bounds, and in the middle of them when it is missing or
not a number, so that nothing is raised because of what was seen. Then one entry of one observation moves the distance
by at most `move` steps, whatever it was and becomes (proof.md, label (Q)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PART: Final = 2**17  # entries measured at a time
FINE: Final = 2**20  # steps of the grid that one entry can move the distance by, about
CORNERS: Final = 10  # columns up to which all corners of the bounds are looked at
LARGEST: Final = 2**52  # distances stay below this, so floats hold them exactly
_SLIGHT: Final = 1e-9  # more than floats can be off in a sensitivity that is a quotient or a root


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where the entries of an observation lie, publicly: one pair for each column."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.low or len(self.low) != len(self.high):
            raise ParameterError("bounds: every column needs a low and a high; pass as many of one as of the other.")
        if not all(-1e100 <= low < high <= 1e100 for low, high in zip(self.low, self.high, strict=True)):
            raise ParameterError("bounds: low must be below high in every column, both from -1e100 to 1e100.")

    @property
    def widths(self) -> Floats:
        return np.subtract(self.high, self.low)

    def hold(self, rows: Floats) -> Floats:
        """The rows, every entry within its bounds; what is no number counts as the middle."""
        low, middle, high = _ends(self.low, self.high)
        return np.minimum(np.maximum(np.where(np.isnan(rows), middle, rows), low), high)


@lru_cache(maxsize=64)
def _ends(low: tuple[float, ...], high: tuple[float, ...]) -> tuple[Floats, Floats, Floats]:
    """Low, middle and high of every column: made once, since one observation at a time would make them each time."""
    ends = np.array(low), np.array(high)
    return ends[0], ends[0] / 2 + ends[1] / 2, ends[1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gauge:
    """A statistic on a grid: `measure` gives distances in whole steps, one entry moves each by `move` at most.

    `widest` is the most that one entry moves it by where no change is assumed, `span` the most that all entries of an
    observation do together.  (C) (R) `signed` says that a distance has a sign, which side of the usual it is on. No
    observation is further off than `farthest`, whatever its entries are before they are clipped.
    """

    bounds: Bounds
    step: float
    move: int
    widest: int
    span: int
    farthest: int
    signed: bool
    distance: Callable[[Floats], Ints]

    def measure(self, rows: Floats) -> Ints:
        """The distance of each row, in steps."""
        rows = self.shape_rows(rows)
        part = max(1, PART // rows.shape[1])  # so that what is computed on the way stays in the cache
        found = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), part):
            found[start : start + part] = self.distance(rows[start : start + part])
        return found

    def shape_rows(self, rows: NDArray[Any]) -> Floats:
        """The rows as floats, one for each observation; those of a single column may come as a list of numbers."""
        with np.errstate(over="ignore"):  # of a wider float; it is clamped like any other
            found = np.asarray(rows, dtype=np.float64)
        found = found[:, None] if found.ndim == 1 else found
        if found.ndim != 2 or found.shape[1] != len(self.bounds.low):
            raise DataError(
                f"observations have {len(self.bounds.low)} columns here. Pass one row for each, with as many entries."
            )
        return found

    def steps(self, amount: float) -> int:
        """A public amount of the statistic in steps; beyond what a distance can be, all amounts are alike."""
        return math.floor(min(max(amount / self.step, -2.0 * LARGEST), 2.0 * LARGEST) + 0.5)


def gauge(
    statistic: str,
    bounds: Bounds,
    *,
    centre: float = 0.0,
    weights: tuple[float, ...] | None = None,
    mean: tuple[float, ...] | None = None,
    covariance: tuple[tuple[float, ...], ...] | None = None,
    rho: float | None = None,
) -> Gauge:
    """The gauge of a statistic. `rho` is assumed to be the most an entry changes; left out, the bounds enforce it.

    >>> made = gauge("sum", Bounds(low=(0.0, 0.0), high=(1.0, 1.0)), centre=1.0)
    >>> made.measure(np.array([[0.5, 0.5], [9.0, np.nan]])) * made.step
    array([0. , 0.5])
    """
    if statistic not in STATISTICS:
        raise ParameterError(f"statistic: {statistic!r} is not known; it is one of {', '.join(STATISTICS)}.")
    if rho is not None and not 1e-200 < rho < math.inf:
        raise ParameterError(f"rho: {rho!r} is not a positive number; leave it out to have the bounds enforce it.")
    moves = bounds.widths if rho is None else np.minimum(bounds.widths, rho)
    return STATISTICS[statistic](bounds, moves, centre, weights, mean, covariance)


def _sum(bounds: Bounds, moves: Floats, centre: float, weights: tuple[float, ...] | None, *_: object) -> Gauge:
    """a'x minus its centre. Entries are rounded one by one, so that sums of whole numbers are exact."""
    columns = len(bounds.low)
    factors = np.ones(columns) if weights is None else np.array(weights, dtype=np.float64)
    if len(factors) != columns or not np.isfinite(factors).all() or not np.abs(factors).max() > 1e-100:
        raise ParameterError(f"weights: {columns} finite numbers are needed, one for each column, not all of them 0.")
    reach = float(np.max(np.abs(factors) * moves))
    step = _power_of_two(reach / FINE)
    farthest = float(np.maximum(np.abs(bounds.low), np.abs(bounds.high)) @ np.abs(factors)) + abs(centre)
    _check_width(farthest / step + columns + 1)
    low, high = (_round_to_steps(np.array(ends) * np.abs(factors), step) for ends in (bounds.low, bounds.high))
    signs = np.where(factors < 0, -1, 1).astype(np.int64)
    usual = math.floor(centre / step + 0.5)
    ends = (int(np.sum(pick(signs * low, signs * high))) for pick in (np.minimum, np.maximum))
    enforced = bool((moves >= bounds.widths).all())
    widest, span = max(1, int(np.max(high - low))), max(1, int(np.sum(high - low)))
    move = widest if enforced else math.ceil(reach / step) + 1

    def distance(rows: Floats) -> Ints:
        held = bounds.hold(rows)
        if columns == 1:
            return np.asarray(signs[0] * _round_to_steps(held[:, 0] * abs(factors[0]), step) - usual)
        return np.asarray(_round_to_steps(held * np.abs(factors), step) @ signs - usual)

    return Gauge(
        bounds=bounds,
        step=step,
        move=move,
        widest=widest,
        span=span,
        farthest=max(abs(end - usual) for end in ends),
        signed=True,
        distance=distance,
    )


def _mahalanobis(
    bounds: Bounds,
    moves: Floats,
    centre: float,
    weights: object,
    mean: tuple[float, ...] | None,
    covariance: tuple[tuple[float, ...], ...] | None,
) -> Gauge:
    """The root of (x - μ)' Σ⁻¹ (x - μ); never its square, which one entry can move without limit."""
    usual, spread = _baseline(len(bounds.low), mean, covariance)
    if np.linalg.cond(spread) > 1e12:
        raise ParameterError("covariance: it is singular or nearly so. Add a small public constant to its diagonal.")
    precision = np.linalg.inv(spread)
    factor = np.linalg.cholesky((precision + precision.T) / 2)
    lengths = np.sqrt(np.diag(precision))
    reach = float(np.max(moves * lengths)) * (1 + _SLIGHT)
    step = _power_of_two(reach / FINE)
    farthest = float(_farthest(bounds, usual) @ np.linalg.norm(factor, axis=1))
    _check_width(farthest / step * (3 * len(usual) + 8))  # what floats are off by adds up over the entries

    def distance(rows: Floats) -> Ints:
        return _round_to_steps(np.linalg.norm((bounds.hold(rows) - usual) @ factor, axis=1), step)

    return Gauge(
        bounds=bounds,
        step=step,
        move=math.ceil(reach / step) + 1,
        widest=_whole(np.max(bounds.widths * lengths), step),
        span=_whole(np.sum(bounds.widths * lengths), step),
        farthest=_whole(_longest(bounds, usual, factor), step),
        signed=False,
        distance=distance,
    )


def _max(
    bounds: Bounds,
    moves: Floats,
    centre: float,
    weights: object,
    mean: tuple[float, ...] | None,
    covariance: tuple[tuple[float, ...], ...] | None,
) -> Gauge:
    """The largest |x_i - μ_i| / σ_i."""
    usual, spread = _baseline(len(bounds.low), mean, covariance)
    deviations = np.sqrt(np.diag(spread))
    reach = float(np.max(moves / deviations)) * (1 + _SLIGHT)
    step = _power_of_two(reach / FINE)
    _check_width(float(np.max(_farthest(bounds, usual) / deviations)) / step * 8)

    def distance(rows: Floats) -> Ints:
        return _round_to_steps(np.max(np.abs(bounds.hold(rows) - usual) / deviations, axis=1), step)

    widest = _whole(np.max(bounds.widths / deviations), step)
    return Gauge(
        bounds=bounds,
        step=step,
        move=math.ceil(reach / step) + 1,
        widest=widest,
        span=widest,
        farthest=_whole(np.max(_farthest(bounds, usual) / deviations), step),
        signed=False,
        distance=distance,
    )


STATISTICS: Final[Mapping[str, Callable[..., Gauge]]] = {
    "sum": _sum,
    "weighted": _sum,
    "mahalanobis": _mahalanobis,
    "max": _max,
}


def _baseline(
    columns: int, mean: tuple[float, ...] | None, covariance: tuple[tuple[float, ...], ...] | None
) -> tuple[Floats, Floats]:
    if mean is None or covariance is None:
        raise ParameterError("mean, covariance: this statistic needs both, public; pass them, or use the sum.")
    usual, spread = np.array(mean, dtype=np.float64), np.array(covariance, dtype=np.float64)
    if usual.shape != (columns,) or spread.shape != (columns, columns):
        raise ParameterError(f"mean, covariance: {columns} numbers and {columns} rows of {columns} are needed.")
    is_good = np.isfinite(usual).all() and np.isfinite(spread).all() and np.allclose(spread, spread.T)
    if not is_good or np.linalg.eigvalsh(spread).min() <= 0:
        raise ParameterError(
            "covariance: it must be symmetric and positive. Check it, or add a constant to its diagonal."
        )
    return usual, spread


def _farthest(bounds: Bounds, usual: Floats) -> Floats:
    return np.maximum(np.abs(np.array(bounds.low) - usual), np.abs(np.array(bounds.high) - usual))


def _longest(bounds: Bounds, usual: Floats, factor: NDArray[Any]) -> float:
    """The length at the farthest corner of the bounds, or where corners are too many no less than that."""
    if len(usual) > CORNERS:
        farthest = _farthest(bounds, usual)
        together = float(np.linalg.norm(farthest) * np.linalg.norm(factor, 2))
        return min(together, float(farthest @ np.linalg.norm(factor, axis=1)))
    corners = np.zeros((1, factor.shape[1]))
    for low, high, row in zip(np.subtract(bounds.low, usual), np.subtract(bounds.high, usual), factor, strict=True):
        corners = np.concatenate((corners + low * row, corners + high * row))
    return float(np.linalg.norm(corners, axis=1).max())


def _check_width(steps: float) -> None:
    """Refuse distances that floats would not hold; looked at as a float, since a whole number of 64 bits wraps."""
    if not steps < LARGEST:
        raise ParameterError("bounds: they are too wide for how little one entry may change. Narrow the bounds.")


def _round_to_steps(amounts: Floats, step: float) -> Ints:
    """Whole steps, halves upwards: half-to-even would turn a move of one step into two."""
    return np.floor(amounts / step + 0.5).astype(np.int64)


def _whole(reach: float, step: float) -> int:
    """A sensitivity that is a quotient or a root, in steps, with what rounding may add.  (Q)"""
    return math.ceil(reach * (1 + _SLIGHT) / step) + 1


def _power_of_two(amount: float) -> float:
    """The power of two at or below an amount: dividing by it is exact."""
    return 2.0 ** math.floor(math.log2(amount))
