"""Statistics of a watch: how an observation becomes one whole number, its distance from what is typical, on a grid.

Every entry is clipped to its public bounds; a missing entry, or one that is not a number, counts as the middle of its
bounds. So nothing is raised because of what was seen, and one entry of one observation moves the distance by at most
`sensitivity` steps, whatever it was and becomes (proof.md, label (Q)).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.queries.watch.forecast.population import (
    Gaussian,
    Population,
    population_of_largest,
    population_of_length,
    population_of_sum,
)
from wallflower.schema import Column, Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Vector = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]

ENTRIES_PER_PART: Final = 2**17  # measured at a time, so that intermediate results stay in the cache
STEPS_PER_ENTRY: Final = 2**20  # about as many grid steps as one entry can move the distance by
MAX_CORNER_COLUMNS: Final = 10  # up to which all corners of the bounds are examined
MAX_STEPS: Final = 2**52  # distances stay below this, so that floats hold them exactly
FLOAT_ERROR: Final = 1e-9  # relative; more than floats can be off in a sensitivity that is a quotient or a root
_BOUNDS_ERROR: Final = 1e-9  # relative: bounds that were scaled elsewhere may differ from ours in the last digits


# Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The public range of the entries of an observation: one pair for each column.

    >>> Bounds(low=(0.0, 0.0), high=(1.0, 2.0)).clip(np.array([[9.0, np.nan]]))
    array([[1., 1.]])
    """

    low: Vector
    high: Vector

    def __post_init__(self) -> None:
        if not self.low or len(self.low) != len(self.high):
            raise ParameterError("bounds: every column needs a low and a high; pass as many of one as of the other.")
        if not all(-1e100 <= low < high <= 1e100 for low, high in zip(self.low, self.high, strict=True)):
            raise ParameterError("bounds: low must be below high in every column, both from -1e100 to 1e100.")

    @classmethod
    def of(cls, low: float | None, high: float | None, dimension: int, schema: Schema | None) -> Self:
        """Return the bounds that a query states for every column, or where it states none the schema's.

        Bounds of the schema are scaled as the numbers are, so what a plan says, which knows no schema, holds for the
        answer too.
        """
        columns = (schema.columns or ()) if schema is not None else ()
        ranges = [_scaled_range(column) for column in columns] if len(columns) == dimension else []
        ranges = ranges or [(-math.inf, math.inf)] * dimension
        lows = [start if low is None else low for start, _ in ranges]
        highs = [end if high is None else high for _, end in ranges]
        if any(map(math.isinf, (*lows, *highs))) and (low is None or high is None):
            raise ParameterError(
                "low, high: the entries of an observation need public bounds, which are enforced by clipping. Pass "
                "both, or state them for each column in the schema."
            )
        return cls(low=tuple(map(float, lows)), high=tuple(map(float, highs)))

    @property
    def widths(self) -> Floats:
        return np.subtract(self.high, self.low)

    def clip(self, rows: Floats) -> Floats:
        """Return the rows with every entry within its bounds; one that is not a number counts as the middle."""
        low, middle, high = _low_middle_high(self.low, self.high)
        return np.minimum(np.maximum(np.where(np.isnan(rows), middle, rows), low), high)

    def distances_to(self, centre: Floats) -> Floats:
        """Return how far an entry of each column can be from its centre."""
        return np.maximum(np.abs(np.array(self.low) - centre), np.abs(np.array(self.high) - centre))


@lru_cache(maxsize=64)
def _low_middle_high(low: Vector, high: Vector) -> tuple[Floats, Floats, Floats]:
    """Cached: one observation at a time would build the arrays each time."""
    ends = np.array(low), np.array(high)
    return ends[0], ends[0] / 2 + ends[1] / 2, ends[1]


def check_bounds(low: float | None, high: float | None, dimension: int, schema: Schema | None) -> None:
    """Refuse bounds of a query outside the range that the schema makes public, as the numbers are scaled.

    Clipping would move entries to where no column has any, and the answer would describe the bounds, not the data. One
    pair of bounds holds for all columns. It may lie within their ranges taken together, which clips, or contain them
    all, which does nothing; and it must meet the range of every column.
    """
    columns = (schema.columns or ()) if schema is not None else ()
    if len(columns) != dimension or (low is None and high is None):
        return
    ranges = [_scaled_range(column) for column in columns]
    lowest, highest = min(start for start, _ in ranges), max(end for _, end in ranges)
    bottom, top = lowest if low is None else low, highest if high is None else high
    slack = _BOUNDS_ERROR * max(1.0, abs(bottom), abs(top)) if math.isfinite(bottom) and math.isfinite(top) else 0.0
    is_within = lowest - slack <= bottom and top <= highest + slack
    is_around = bottom <= lowest + slack and highest - slack <= top
    for column, (start, end) in zip(columns, ranges, strict=True):
        if not (is_within or is_around) or bottom >= end or top <= start:
            raise ParameterError(
                f"low, high: {_show_range(low, high)} is outside the public range of {column.name}, which is "
                f"{_show_range(start, end)}{_show_scaling(column)}. Pass bounds within the public range, on the same "
                "scale."
            )


def _scaled_range(column: Column) -> tuple[float, float]:
    """The public range of a column as its numbers are read; infinite where the schema has no bound."""
    center, scale = float(column.center), float(column.scale)
    low = -math.inf if column.low is None else (column.low - center) / scale
    high = math.inf if column.high is None else (column.high - center) / scale
    return low, high


def _show_range(low: float | None, high: float | None) -> str:
    start, end = (None if bound is None or math.isinf(bound) else bound for bound in (low, high))
    if start is None:
        return f"up to {end:g}"
    return f"from {start:g}" if end is None else f"{start:g} to {end:g}"


def _show_scaling(column: Column) -> str:
    """How the schema reads the numbers of a column, and its range as it is written."""
    measure = f" {column.measure}" if column.measure else ""
    if (column.center, column.scale) == (0, 1):
        return measure
    shift = f"subtracting {column.center:g} and " if column.center else ""
    return f" after {shift}dividing by {column.scale:g} ({_show_range(column.low, column.high)}{measure} as written)"


# Statistics


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Statistic(ABC):
    """A distance on a grid: `measure` gives it in whole steps.

    bounds              the public range of the entries, enforced by clipping
    step                the width of a grid step, a power of two
    sensitivity         steps that one entry can move the distance by
    range_sensitivity   the same where no smaller change is assumed: an entry goes through its whole range.  (C)
    record_sensitivity  steps that all entries of an observation together can move it by.  (R)
    max_distance        steps; no observation within the bounds is further off

    To add one, write a subclass and add it to `STATISTICS`; mypy refuses a class that lacks a method.
    """

    name: ClassVar[str]
    is_sum: ClassVar[bool] = False  # whether it has a sign, a centre and a variance of its own

    bounds: Bounds
    step: float
    sensitivity: int
    range_sensitivity: int
    record_sensitivity: int
    max_distance: int

    @classmethod
    @abstractmethod
    def build(
        cls,
        bounds: Bounds,
        *,
        changes: Floats,
        centre: float,
        weights: Vector | None,
        mean: Vector | None,
        covariance: Matrix | None,
    ) -> Self:
        """Build the statistic. `changes` is the most that an entry of each column changes by."""

    @abstractmethod
    def distance(self, rows: Floats) -> Ints:
        """Return the distance of each of a few rows, in steps."""

    @abstractmethod
    def population(self, law: Gaussian, *, weights: Floats, centre: float, outlier_from: float) -> Population:
        """Return the outliers and the others of a stated Gaussian, as this statistic measures them."""

    def measure(self, rows: Floats) -> Ints:
        """Return the distance of each row, in steps."""
        rows = self.shape_rows(rows)
        part = max(1, ENTRIES_PER_PART // rows.shape[1])
        distances = np.empty(len(rows), dtype=np.int64)
        for start in range(0, len(rows), part):
            distances[start : start + part] = self.distance(rows[start : start + part])
        return distances

    def shape_rows(self, rows: NDArray[Any]) -> Floats:
        """Return the rows as floats, one for each observation; those of a single column may be a list of numbers."""
        with np.errstate(over="ignore"):  # of a wider float; it is clipped like any other
            floats = np.asarray(rows, dtype=np.float64)
        floats = floats[:, None] if floats.ndim == 1 else floats
        if floats.ndim != 2 or floats.shape[1] != len(self.bounds.low):
            raise DataError(
                f"observations have {len(self.bounds.low)} columns here. Pass one row for each, with as many entries."
            )
        return floats

    def steps(self, amount: float) -> int:
        """Return a public amount of the statistic in steps; beyond what a distance can be, all amounts are alike."""
        return math.floor(min(max(amount / self.step, -2.0 * MAX_STEPS), 2.0 * MAX_STEPS) + 0.5)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum(Statistic):
    """The sum of the entries minus its centre, with a sign.

    Entries are rounded one by one, so that sums of whole numbers are exact.
    """

    name: ClassVar[str] = "sum"
    is_sum: ClassVar[bool] = True

    signs: Ints
    magnitudes: Floats  # of the weights
    centre_steps: int

    @classmethod
    def build(
        cls,
        bounds: Bounds,
        *,
        changes: Floats,
        centre: float,
        weights: Vector | None,
        mean: Vector | None,
        covariance: Matrix | None,
    ) -> Self:
        columns = len(bounds.low)
        factors = np.ones(columns) if weights is None else np.array(weights, dtype=np.float64)
        if len(factors) != columns or not np.isfinite(factors).all() or not np.abs(factors).max() > 1e-100:
            raise ParameterError(
                f"weights: {columns} finite numbers are needed, one for each column, not all of them 0."
            )
        change = float(np.max(np.abs(factors) * changes))
        step = _floor_power_of_two(change / STEPS_PER_ENTRY)
        furthest = float(np.maximum(np.abs(bounds.low), np.abs(bounds.high)) @ np.abs(factors)) + abs(centre)
        _check_width(furthest / step + columns + 1)
        low, high = (_round_to_steps(np.array(ends) * np.abs(factors), step) for ends in (bounds.low, bounds.high))
        signs = np.where(factors < 0, -1, 1).astype(np.int64)
        centre_steps = math.floor(centre / step + 0.5)
        ends = (int(np.sum(pick(signs * low, signs * high))) for pick in (np.minimum, np.maximum))
        range_sensitivity = max(1, int(np.max(high - low)))
        is_enforced = bool((changes >= bounds.widths).all())
        return cls(
            bounds=bounds,
            step=step,
            sensitivity=range_sensitivity if is_enforced else math.ceil(change / step) + 1,
            range_sensitivity=range_sensitivity,
            record_sensitivity=max(1, int(np.sum(high - low))),
            max_distance=max(abs(end - centre_steps) for end in ends),
            signs=signs,
            magnitudes=np.abs(factors),
            centre_steps=centre_steps,
        )

    def distance(self, rows: Floats) -> Ints:
        steps = _round_to_steps(self.bounds.clip(rows) * self.magnitudes, self.step)
        if len(self.signs) == 1:
            return np.asarray(self.signs[0] * steps[:, 0] - self.centre_steps)
        return np.asarray(steps @ self.signs - self.centre_steps)

    def population(self, law: Gaussian, *, weights: Floats, centre: float, outlier_from: float) -> Population:
        return population_of_sum(self.measure, law, weights, centre, outlier_from)


class WeightedSum(Sum):
    """The weighted sum of the entries minus its centre, with a sign."""

    __slots__ = ()
    name: ClassVar[str] = "weighted"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mahalanobis(Statistic):
    """The root of (x - μ)' Σ⁻¹ (x - μ); never its square, which one entry can move without limit."""

    name: ClassVar[str] = "mahalanobis"

    mean: Floats
    factor: Floats  # a square root of Σ⁻¹

    @classmethod
    def build(
        cls,
        bounds: Bounds,
        *,
        changes: Floats,
        centre: float,
        weights: Vector | None,
        mean: Vector | None,
        covariance: Matrix | None,
    ) -> Self:
        middle, spread = _mean_and_covariance(len(bounds.low), mean, covariance)
        if np.linalg.cond(spread) > 1e12:
            raise ParameterError(
                "covariance: it is singular or nearly so. Add a small public constant to its diagonal."
            )
        precision = np.linalg.inv(spread)
        factor: Floats = np.asarray(np.linalg.cholesky((precision + precision.T) / 2), dtype=np.float64)
        lengths = np.sqrt(np.diag(precision))
        change = float(np.max(changes * lengths)) * (1 + FLOAT_ERROR)
        step = _floor_power_of_two(change / STEPS_PER_ENTRY)
        furthest = float(bounds.distances_to(middle) @ np.linalg.norm(factor, axis=1))
        _check_width(furthest / step * (3 * len(middle) + 8))  # float errors add up over the entries
        return cls(
            bounds=bounds,
            step=step,
            sensitivity=math.ceil(change / step) + 1,
            range_sensitivity=_count_steps(np.max(bounds.widths * lengths), step),
            record_sensitivity=_count_steps(np.sum(bounds.widths * lengths), step),
            max_distance=_count_steps(_longest(bounds, middle, factor), step),
            mean=middle,
            factor=factor,
        )

    def distance(self, rows: Floats) -> Ints:
        return _round_to_steps(np.linalg.norm((self.bounds.clip(rows) - self.mean) @ self.factor, axis=1), self.step)

    def population(self, law: Gaussian, *, weights: Floats, centre: float, outlier_from: float) -> Population:
        return population_of_length(self.measure, law, outlier_from)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Largest(Statistic):
    """The largest |x_i - μ_i| / σ_i."""

    name: ClassVar[str] = "max"

    mean: Floats
    deviations: Floats

    @classmethod
    def build(
        cls,
        bounds: Bounds,
        *,
        changes: Floats,
        centre: float,
        weights: Vector | None,
        mean: Vector | None,
        covariance: Matrix | None,
    ) -> Self:
        middle, spread = _mean_and_covariance(len(bounds.low), mean, covariance)
        deviations = np.sqrt(np.diag(spread))
        change = float(np.max(changes / deviations)) * (1 + FLOAT_ERROR)
        step = _floor_power_of_two(change / STEPS_PER_ENTRY)
        furthest = np.max(bounds.distances_to(middle) / deviations)
        _check_width(float(furthest) / step * 8)
        range_sensitivity = _count_steps(np.max(bounds.widths / deviations), step)
        return cls(
            bounds=bounds,
            step=step,
            sensitivity=math.ceil(change / step) + 1,
            range_sensitivity=range_sensitivity,
            record_sensitivity=range_sensitivity,
            max_distance=_count_steps(furthest, step),
            mean=middle,
            deviations=deviations,
        )

    def distance(self, rows: Floats) -> Ints:
        ratios = np.abs(self.bounds.clip(rows) - self.mean) / self.deviations
        return _round_to_steps(np.max(ratios, axis=1), self.step)

    def population(self, law: Gaussian, *, weights: Floats, centre: float, outlier_from: float) -> Population:
        return population_of_largest(self.measure, law, outlier_from)


STATISTICS: Final[Mapping[str, type[Statistic]]] = {
    kind.name: kind for kind in (Sum, WeightedSum, Mahalanobis, Largest)
}


def statistic_named(name: str) -> type[Statistic]:
    """Return the class of a statistic, or refuse its name.

    >>> statistic_named("max").is_sum
    False
    """
    if name not in STATISTICS:
        raise ParameterError(f"statistic: {name!r} is not known; it is one of {', '.join(STATISTICS)}.")
    return STATISTICS[name]


def make_statistic(
    statistic: str,
    bounds: Bounds,
    *,
    centre: float = 0.0,
    weights: Vector | None = None,
    mean: Vector | None = None,
    covariance: Matrix | None = None,
    change: float | None = None,
) -> Statistic:
    """Build a statistic by name. `change` is the most an entry is assumed to change by; default: the bounds enforce it.

    >>> total = make_statistic("sum", Bounds(low=(0.0, 0.0), high=(1.0, 1.0)), centre=1.0)
    >>> total.measure(np.array([[0.5, 0.5], [9.0, np.nan]])) * total.step
    array([0. , 0.5])
    """
    kind = statistic_named(statistic)
    if change is not None and not 1e-200 < change < math.inf:
        raise ParameterError(f"change: {change!r} is not a positive number; omit it to have the bounds enforce it.")
    changes = bounds.widths if change is None else np.minimum(bounds.widths, change)
    return kind.build(bounds, changes=changes, centre=centre, weights=weights, mean=mean, covariance=covariance)


def _mean_and_covariance(columns: int, mean: Vector | None, covariance: Matrix | None) -> tuple[Floats, Floats]:
    if mean is None or covariance is None:
        raise ParameterError("mean, covariance: this statistic needs both, public; pass them, or use the sum.")
    middle, spread = np.array(mean, dtype=np.float64), np.array(covariance, dtype=np.float64)
    if middle.shape != (columns,) or spread.shape != (columns, columns):
        raise ParameterError(f"mean, covariance: {columns} numbers and {columns} rows of {columns} are needed.")
    is_good = np.isfinite(middle).all() and np.isfinite(spread).all() and np.allclose(spread, spread.T)
    if not is_good or np.linalg.eigvalsh(spread).min() <= 0:
        raise ParameterError(
            "covariance: it must be symmetric and positive. Check it, or add a constant to its diagonal."
        )
    return middle, spread


def _longest(bounds: Bounds, mean: Floats, factor: Floats) -> float:
    """The length at the furthest corner of the bounds; an upper bound of it where there are too many corners."""
    if len(mean) > MAX_CORNER_COLUMNS:
        furthest = bounds.distances_to(mean)
        together = float(np.linalg.norm(furthest) * np.linalg.norm(factor, 2))
        return min(together, float(furthest @ np.linalg.norm(factor, axis=1)))
    corners = np.zeros((1, factor.shape[1]))
    for low, high, row in zip(np.subtract(bounds.low, mean), np.subtract(bounds.high, mean), factor, strict=True):
        corners = np.concatenate((corners + low * row, corners + high * row))
    return float(np.linalg.norm(corners, axis=1).max())


def _check_width(steps: float) -> None:
    """Refuse distances that floats would not hold; compared as a float, since a whole number of 64 bits wraps."""
    if not steps < MAX_STEPS:
        raise ParameterError("bounds: they are too wide for how little one entry may change. Narrow the bounds.")


def _round_to_steps(amounts: Floats, step: float) -> Ints:
    """Round to whole steps, halves upwards: half-to-even would turn a move of one step into two."""
    return np.floor(amounts / step + 0.5).astype(np.int64)


def _count_steps(amount: float, step: float) -> int:
    """A sensitivity that is a quotient or a root, in steps, with what rounding may add.  (Q)"""
    return math.ceil(amount * (1 + FLOAT_ERROR) / step) + 1


def _floor_power_of_two(amount: float) -> float:
    """The power of two at or below an amount: dividing by it is exact."""
    return 2.0 ** math.floor(math.log2(amount))
