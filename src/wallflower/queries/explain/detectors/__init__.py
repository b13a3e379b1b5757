"""What makes a record an outlier among the records of a context: plain definitions, one class each.

`outlier(values, index)` is the reference that every fast engine obeys to the last bit. It depends on the values as a
multiset: sums of a test are those of real numbers, rounded once, and sums of densities run in rising order of the
metric, so no order of rows can tip one. Contexts hold the record itself, so `values` always contains `values[index]`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy, load
from wallflower.names import check_label, name_callable

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

Floats = NDArray[np.float64]

EPSILON: Final = 1e-10  # keeps a local density finite where records coincide, as in scikit-learn
HUGE: Final = 1e100  # squares of what is smaller never overflow
DEGREE: Final = 14
TABLED: Final = 1 << 22  # critical values of up to so many records are kept in a table


class Detector(Protocol):
    """Says whether one record is an outlier among others; deterministic, whatever the order of the records."""

    def outlier(self, values: Floats, index: int, /) -> bool: ...


@dataclass(frozen=True, slots=True)
class Grubbs:
    """Far from the mean in standard deviations, by Grubbs' two-sided test; the record need not be the most extreme."""

    alpha: float = field(default=0.05, metadata={"help": "level of the test"})

    def __post_init__(self) -> None:
        _check("alpha", self.alpha, 1e-12 <= self.alpha <= 0.5, "1e-12 to 1/2", "pass a level such as 0.05")

    def outlier(self, values: Floats, index: int, /) -> bool:
        """With z = x_V - x: outlier exactly when (Σz)² > κ Σz², which is the usual form of the test solved for sums."""
        others = values[index] - values
        return self.rejects(len(values), math.fsum(others.tolist()), math.fsum((others * others).tolist()))

    def rejects(self, n: int, total: float, squares: float) -> bool:
        """Whether the test calls the record an outlier among `n`, by Σz and Σz²."""
        return n > 2 and total * total > float(kappas_of(self.alpha, np.array([n]))[0]) * squares


@dataclass(frozen=True, slots=True)
class ClampedGrubbs:
    """Grubbs' test on the metric clamped to public bounds, so that one record can only move it so far."""

    low: float = field(metadata={"help": "smaller values count as this"})
    high: float = field(metadata={"help": "larger values count as this"})
    largest: int = field(metadata={"help": "public bound on the number of records, for the margin"})
    alpha: float = field(default=0.05, metadata={"help": "level of the test"})
    steps: int = field(default=48, metadata={"help": "how many scales the margin tries"})

    def __post_init__(self) -> None:
        Grubbs(self.alpha)
        _check_bounds(self.low, self.high)
        width = self.high - self.low
        _check("low, high", (self.low, self.high), width >= 1 / HUGE, "ranges of 1e-100 or more", "pass a wider one")
        _check("largest", self.largest, 3 <= self.largest <= 2**31, "3 to 2^31", "pass a public bound on the records")
        _check("steps", self.steps, 2 <= self.steps <= 1000, "2 to 1000", "pass 48 unless you know better")

    def outlier(self, values: Floats, index: int, /) -> bool:
        return Grubbs(self.alpha).outlier(np.clip(values, self.low, self.high), index)


@dataclass(frozen=True, slots=True)
class Lof:
    """Less dense than its neighbours: the local outlier factor of the metric exceeds a fixed threshold.

    Neighbourhoods include ties. One record can move a factor from below the threshold to far above it and nothing
    outweighs that, so there is no margin of use: this detector has no plain differential privacy here.
    """

    k: int = field(default=20, metadata={"help": "size of a neighbourhood"})
    threshold: float = field(default=1.5, metadata={"help": "records with a larger factor are outliers"})

    def __post_init__(self) -> None:
        _check("k", self.k, 1 <= self.k <= 10_000, "1 to 10000", "pass a number such as 20")
        _check("threshold", self.threshold, 0 < self.threshold <= HUGE, "0 to 1e100", "pass a factor such as 1.5")

    def outlier(self, values: Floats, index: int, /) -> bool:
        if len(values) <= self.k:
            return False
        ranked = np.sort(values)
        place = int(np.searchsorted(ranked, values[index]))
        near = self._around(ranked, place)
        densities = [self._density(ranked, int(other)) for other in near]
        return float(np.cumsum(densities)[-1]) / len(near) / self._density(ranked, place) > self.threshold

    def _around(self, ranked: Floats, place: int) -> NDArray[np.int64]:
        near = np.abs(ranked - ranked[place]) <= self._distance(ranked, place)
        near[place] = False
        return np.flatnonzero(near)

    def _distance(self, ranked: Floats, place: int) -> float:
        return float(np.sort(np.delete(np.abs(ranked - ranked[place]), place))[self.k - 1])

    def _density(self, ranked: Floats, place: int) -> float:
        near = self._around(ranked, place)
        reaches = [max(self._distance(ranked, int(at)), float(abs(ranked[at] - ranked[place]))) for at in near]
        return 1.0 / (float(np.cumsum(reaches)[-1]) / len(near) + EPSILON)


@dataclass(frozen=True, slots=True)
class Histogram:
    """In a bin that holds few: √n equal bins from the least to the largest value of the context."""

    fraction: float = field(default=0.0025, metadata={"help": "a bin with a smaller share of the records is sparse"})

    def __post_init__(self) -> None:
        _check_fraction(self.fraction)

    def outlier(self, values: Floats, index: int, /) -> bool:
        low, high, bins = float(values.min()), float(values.max()), math.isqrt(len(values))
        if not high > low:
            return False
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            place = (values - low) * (np.float64(bins) / (high - low))
            whole = np.where(place < bins - 1, np.floor(place), bins - 1)
        return int(np.count_nonzero(whole == whole[index])) < self.fraction * len(values)


@dataclass(frozen=True, slots=True)
class Distance:
    """Lonely: fewer than `k` other records lie within `radius` of it [KN98]."""

    k: int = field(metadata={"help": "with fewer than this many, a record is an outlier"})
    radius: float = field(metadata={"help": "records closer than this are neighbours"})

    def __post_init__(self) -> None:
        _check("k", self.k, 1 <= self.k <= 2**31, "1 to 2^31", "pass a whole number")
        _check("radius", self.radius, 0 <= self.radius <= HUGE, "0 to 1e100", "pass a distance in units of the metric")

    def near(self, values: Floats, own: float) -> NDArray[np.bool_]:
        """Who is within the radius, the record itself among them."""
        return np.asarray(np.abs(values - own) <= self.radius)

    @property
    def limit(self) -> tuple[float, float]:
        """(a, b): with fewer near than an + b, rounded up, the record is an outlier among n."""
        return 0.0, self.k + 1.0

    def outlier(self, values: Floats, index: int, /) -> bool:
        return int(np.count_nonzero(self.near(values, float(values[index])))) - 1 < self.k


@dataclass(frozen=True, slots=True)
class FixedBins:
    """In a bin that holds few, with public edges; what lies beyond the outer edges belongs to the outer bins."""

    edges: tuple[float, ...] = field(metadata={"help": "edges of the bins, rising"})
    fraction: float = field(default=0.0025, metadata={"help": "a bin with a smaller share of the records is sparse"})

    def __post_init__(self) -> None:
        _check_rising("edges", self.edges)
        _check_fraction(self.fraction)

    @classmethod
    def equal(cls, low: float, high: float, bins: int, fraction: float = 0.0025) -> FixedBins:
        """Bins of equal width between public bounds."""
        _check_bounds(low, high)
        _check("bins", bins, 1 <= bins <= 1_000_000, "1 to 1000000", "pass a whole number")
        return cls(tuple(np.linspace(low, high, bins + 1).tolist()), fraction)

    def near(self, values: Floats, own: float) -> NDArray[np.bool_]:
        """Who shares the record's bin, the record itself among them."""
        inner = np.asarray(self.edges[1:-1])
        return np.asarray(np.searchsorted(inner, values, side="right") == np.searchsorted(inner, own, side="right"))

    @property
    def limit(self) -> tuple[float, float]:
        """(a, b): with fewer near than an + b, rounded up, the record is an outlier among n."""
        return self.fraction, 0.0

    def outlier(self, values: Floats, index: int, /) -> bool:
        return int(np.count_nonzero(self.near(values, float(values[index])))) < self.fraction * len(values)


@dataclass(frozen=True, slots=True)
class Tukey:
    """Beyond Tukey's fence, with quartiles read outwards on a public grid.

    The upper quartile is the least grid point with more than 3/4 of the records at or below it, the lower one the
    largest with fewer than 1/4 below it; where the grid has no such point there is no outlier on that side.
    """

    grid: tuple[float, ...] = field(metadata={"help": "public points, rising, that quartiles are read on"})
    fence: float = field(default=1.5, metadata={"help": "how many quartile ranges away the fence stands"})

    def __post_init__(self) -> None:
        _check_rising("grid", self.grid)
        _check("grid", len(self.grid), len(self.grid) <= 4096, "2 to 4096 points", "pass a coarser grid")
        _check("fence", self.fence, 0 <= self.fence <= HUGE, "0 to 1e100", "pass a number such as 1.5")

    def outlier(self, values: Floats, index: int, /) -> bool:
        grid, ranked, n = np.asarray(self.grid), np.sort(values), len(values)
        upper = np.flatnonzero(4 * np.searchsorted(ranked, grid, side="right") > 3 * n)
        lower = np.flatnonzero(4 * np.searchsorted(ranked, grid, side="left") < n)
        if not len(upper) or not len(lower):
            return False
        low, high = float(grid[lower[-1]]), float(grid[upper[0]])
        return self.above(float(values[index]), low, high) or self.below(float(values[index]), low, high)

    def above(self, own: float, low: float, high: float) -> bool:
        return own > high + self.fence * (high - low)

    def below(self, own: float, low: float, high: float) -> bool:
        return own < low - self.fence * (high - low)


@dataclass(frozen=True, slots=True)
class CustomDetector:
    """Any function of (values, index): deterministic, indifferent to the order of records, safe in several threads.

    function  says whether values[index] is an outlier among values
    name      its name in a release; default: the module and the name of the function

    >>> str(CustomDetector(max)), str(CustomDetector(lambda values, index: True, name="always"))
    ('custom:builtins.max', 'custom:always')
    """

    function: Callable[[Floats, int], bool] = field(metadata={"help": "says whether values[index] is an outlier"})
    name: str | None = field(default=None, metadata={"help": "its name in a release; default: that of the function"})

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ParameterError(f"function: a {type(self.function).__name__} cannot be called. Pass a function.")
        check_label(self.name)

    def __str__(self) -> str:
        return f"custom:{self.name or name_callable(self.function)}"

    def outlier(self, values: Floats, index: int, /) -> bool:
        """Whether values[index] is an outlier among values, by the function.

        values  the metric values of a context, the record's own among them
        index   the place of the record among them
        """
        return bool(self.function(values, index))


@dataclass(frozen=True, slots=True)
class Pyod:
    """A detector of PyOD, fitted anew in every context, with a fixed threshold on its scores.

    PyOD's own labels cut off a share of the records ("contamination"), so they depend on everybody; a score above an
    absolute threshold does not. `model` is an unfitted detector or its name, such as "ecod.ECOD"; give models that draw
    random numbers a `random_state`. Contexts with fewer than `least` records hold no outlier.
    """

    model: Any = field(metadata={"help": "an unfitted PyOD detector, or its name below pyod.models"})
    threshold: float = field(metadata={"help": "records with a larger score are outliers"})
    least: int = field(default=10, metadata={"help": "smaller contexts hold no outlier"})

    def __post_init__(self) -> None:
        _check("threshold", self.threshold, math.isfinite(self.threshold), "finite numbers", "pass one")
        _check("least", self.least, self.least >= 2, "whole numbers from 2", "pass what the model needs to be fitted")
        if not (isinstance(self.model, str) and self.model.count(".") == 1) and not hasattr(self.model, "fit"):
            raise ParameterError(f'model: {self.model!r} is no PyOD detector; pass one, or a name such as "ecod.ECOD".')

    def outlier(self, values: Floats, index: int, /) -> bool:
        if len(values) < self.least:
            return False
        model = self._fresh()
        model.fit(np.asarray(values, dtype=np.float64)[:, None])
        return bool(model.decision_scores_[index] > self.threshold)

    def _fresh(self) -> Any:
        if not isinstance(self.model, str):
            return copy.deepcopy(self.model)
        module, _, name = self.model.partition(".")
        return getattr(load(f"pyod.models.{module}"), name)()


def kappas(alpha: float, largest: int) -> Floats:
    """κ for 0 … `largest` records: κ = n(n-1)t² / (n-2+nt²), t the upper α/2n point of Student's law with n-2 degrees.

    With two records κ = 1 and with one κ = 0, the limits for which the test never succeeds.
    """
    table = _kappas(alpha, max(6, (max(largest, 1)).bit_length()))
    return table[: largest + 1]


def kappas_of(alpha: float, many: NDArray[Any]) -> Floats:
    """κ for these numbers of records: from a table of all below them, or where that would be long, one by one.

    >>> kappas_of(0.05, np.array([2, 10])).tolist() == kappas(0.05, 10)[[2, 10]].tolist()
    True
    """
    most = int(many.max(initial=0))
    if most <= TABLED:
        few: Floats = kappas(alpha, most)[many]
        return few
    each, back = np.unique(many, return_inverse=True)
    found: Floats = _kappas_among(alpha, each)[back]
    return found


def kappas_at(alpha: float, many: Floats) -> Floats:
    """κ for these numbers of records, without a table of all below them.

    >>> kappas_at(0.05, np.array([1.0, 2.0, 10.0])).tolist() == kappas(0.05, 10)[[1, 2, 10]].tolist()
    True
    """
    some = np.maximum(many, 3.0)
    t = -_special.stdtrit(some - 2, alpha / (2 * some))
    return np.where(many < 3, np.maximum(many - 1, 0.0), some * (some - 1) / ((some - 2) / t**2 + some))


@lru_cache(maxsize=8)
def _kappas(alpha: float, octaves: int) -> Floats:
    found = _kappas_among(alpha, np.arange((1 << octaves) + 1))
    found.flags.writeable = False
    return found


def _kappas_among(alpha: float, many: NDArray[Any]) -> Floats:
    """Exact up to 64 records; beyond, t is interpolated in log n octave by octave, to one part in 10¹² and for ever.

    Every n has one κ, whatever it is asked with, so the engines and the reference decide alike. `many` rises.
    """
    t = np.full(len(many), np.inf)
    low, exact = np.searchsorted(many, [3, 65])
    few = many[low:exact].astype(np.float64)
    t[low:exact] = -_special.stdtrit(few - 2, alpha / (2 * few))
    for octave in range(6, int(many[-1]).bit_length() if len(many) else 0):
        start, stop = np.searchsorted(many, [(1 << octave) + 1, (2 << octave) + 1])
        if start < stop:
            t[start:stop] = _student(alpha, octave)(np.log2(many[start:stop]))
    some = many[low:].astype(np.float64)
    found = np.maximum(many - 1.0, 0.0)
    found[low:] = some * (some - 1) / ((some - 2) / t[low:] ** 2 + some)
    return found


@lru_cache(maxsize=256)
def _student(alpha: float, octave: int) -> Chebyshev:
    def student(log: Floats) -> Floats:
        n = np.exp2(log)
        return np.asarray(-_special.stdtrit(n - 2, alpha / (2 * n)))

    return Chebyshev.interpolate(student, DEGREE, domain=[octave, octave + 1])


def _check(name: str, value: object, fits: bool, allowed: str, remedy: str) -> None:
    if not fits:
        raise ParameterError(f"{name}: {value!r} is outside {allowed}; {remedy}.")


def _check_fraction(fraction: float) -> None:
    _check("fraction", fraction, 0 < fraction < 1, "0 to 1", "pass a small share such as 0.0025")


def _check_bounds(low: float, high: float) -> None:
    _check("low, high", (low, high), -HUGE <= low < high <= HUGE, "-1e100 to 1e100", "pass low < high")


def _check_rising(name: str, points: tuple[float, ...]) -> None:
    rising = len(points) >= 2 and all(np.diff(points) > 0) and -HUGE <= points[0] <= points[-1] <= HUGE
    _check(name, points if len(points) < 9 else "it", rising, "rising numbers within ±1e100", "pass two or more")
