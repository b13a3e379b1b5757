"""Grubbs' test: far from the mean in standard deviations; plain, and clamped to public bounds, which has a margin.

With z = x_V - x over the records of a context, the record is an outlier exactly when (Σz)² > κ Σz², which is the usual
form of the test solved for sums. Sums of z, not of x, so that nothing large cancels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.heavy import numpy_polynomial as _polynomial
from wallflower.machine.heavy import scipy_special as _special
from wallflower.machine.jit import kernel
from wallflower.queries.explain.detectors.base import (
    CellDetector,
    CellMarginDetector,
    Judge,
    Rule,
    check_bounds,
    check_setting,
    public_bounds,
)
from wallflower.queries.explain.space.cubes import Part, Walk, sum_leaves, walk_parts
from wallflower.queries.explain.space.tables import MAX_METRIC, Bools, CellTable, Counts, Division, Floats
from wallflower.schema import Column

CHEBYSHEV_DEGREE: Final = 14
MAX_TABLE_RECORDS: Final = 1 << 22  # critical values of up to this many records are kept in a table
NEVER: Final = 2.0  # as κ: (Σz)² is at most Σz² for two records, of which one is the record itself
MAX_LARGEST: Final = 1 << 22  # records; n²·2⁻⁵³ alone is 1/512 there, so sums over more are rounded too much  (F)
UNIT_ROUNDOFF: Final = 2.0**-53


class _GrubbsTest(CellDetector):
    """What both forms of the test share: it decides by Σz and Σz², exactly where they are close to the threshold."""

    __slots__ = ()
    alpha: float

    def judge(self, table: CellTable) -> Judge:
        weights = table.weights
        return lambda chosen: rejects(self.alpha, int(weights[chosen].sum()), *table.exact_sums(chosen))

    def sweep_cells(self, table: CellTable) -> Iterator[Part]:
        tie, judge = 1e-9 + 1e-14 * table.n, self.judge(table)

        def work(first: int, walk: Walk, valid: Bools, populations: Counts) -> None:
            sums = np.empty((2, len(valid)))
            sum_leaves(*walk, populations[None], sums)
            kappa = np.where(populations > 2, kappas_of(self.alpha, populations), NEVER)
            if _compare(sums, kappa, tie, valid):
                begin, square, bound = first + walk[-3] * walk[-1], sums[0] * sums[0], kappa * sums[1]
                for at in np.flatnonzero(np.abs(square - bound) < tie * bound).tolist():
                    valid[at] = judge(table.members(begin + at))

        return walk_parts(table, table.weights[None], table.sums, work)


@dataclass(frozen=True, slots=True)
class Grubbs(_GrubbsTest):
    """Grubbs' two-sided test; the record need not be the most extreme. One far record overturns it: no margin.

    >>> Grubbs().outlier(np.array([9.0, 1.0, 1.1, 0.9, 1.0, 1.05]), 0)
    True
    """

    kind: ClassVar[str] = "grubbs"
    nanoseconds_per_context: ClassVar[float] = 15.0

    alpha: float = field(default=0.05, metadata={"help": "level of the test"})

    def __post_init__(self) -> None:
        check_alpha(self.alpha)

    def outlier(self, values: Floats, index: int, /) -> bool:
        return _is_rejected(self.alpha, values, index)

    @classmethod
    def examples(cls) -> tuple[Grubbs, ...]:
        return cls(), cls(0.4)

    def divide(self) -> Division:
        return Division(parts=1, place=_whole, sums=2, numbers=_moments)


@dataclass(frozen=True, slots=True)
class ClampedGrubbs(_GrubbsTest, CellMarginDetector):
    """Grubbs' test on the metric clamped to public bounds, so that one record can only move it so far.

    (Σz)² > κ Σz² follows from ±Σz > Σz²/2Z + κZ/2 for any scale Z, and each scale is linear in the records: the margin
    is the greatest over `steps` scales. It is about n/20, so `tukey` is mostly the better choice.

    >>> ClampedGrubbs(0.0, 10.0, largest=100).outlier(np.array([9.0, 1.0, 1.1, 0.9, 1.0, 1.05]), 0)
    True
    """

    kind: ClassVar[str] = "clamped-grubbs"
    nanoseconds_per_context: ClassVar[float] = 120.0

    low: float = field(metadata={"help": "smaller values count as this"})
    high: float = field(metadata={"help": "larger values count as this"})
    largest: int = field(metadata={"help": "public bound on the number of records, for the margin"})
    alpha: float = field(default=0.05, metadata={"help": "level of the test"})
    steps: int = field(default=48, metadata={"help": "number of scales that the margin tries"})

    def __post_init__(self) -> None:
        check_alpha(self.alpha)
        check_bounds(self.low, self.high)
        width, bounds = self.high - self.low, (self.low, self.high)
        check_setting("low, high", bounds, width >= 1 / MAX_METRIC, "ranges of 1e-100 or more", "pass a wider one")
        fits = 3 <= self.largest <= 2**31
        check_setting("largest", self.largest, fits, "3 to 2^31", "pass a public bound on the records")
        check_setting("steps", self.steps, 2 <= self.steps <= 1000, "2 to 1000", "pass 48 unless you know better")

    def outlier(self, values: Floats, index: int, /) -> bool:
        return _is_rejected(self.alpha, np.clip(values, self.low, self.high), index)

    @classmethod
    def examples(cls) -> tuple[ClampedGrubbs, ...]:
        return cls(0.0, 10.0, 8), cls(2.0, 9.0, 14, 0.4, 9)

    @classmethod
    def from_settings(cls, settings: dict[str, Any], metric: Column, size: int) -> ClampedGrubbs:
        low, high = public_bounds(cls.kind, settings, metric)
        return cls(**{"largest": max(3, size)} | settings | {"low": low, "high": high})

    def check_size(self, size: int) -> None:
        if self.largest < size:
            raise ParameterError(
                f"detector: largest is {self.largest:,}, and tables may have {size:,} records. Omit largest, or "
                f"pass {size:,} or more."
            )

    def divide(self) -> Division:
        def numbers(values: Floats, own: float) -> Sequence[Floats]:
            return _moments(np.clip(values, self.low, self.high), self.clamp(own))

        return Division(parts=1, place=_whole, sums=2, numbers=numbers)

    def rule(self, table: CellTable) -> Rule:
        if table.n > self.largest:
            raise DataError("the table has more records than the public bound `largest`; raise the bound.")
        kappa, weights = kappas(self.alpha, table.n), scales(self, self.clamp(table.own))
        tie = 1e-12 + 1e-15 * table.n

        def margins(counts: NDArray[Any], sums: Floats) -> Floats:
            margins = np.empty(counts.shape[1])
            _fill_margins(counts[0].astype(np.int32), sums, kappa, weights, tie, margins)
            return margins

        return Rule(table.weights[None], table.sums, margins)

    def greatest_margins(self, populations: Floats) -> Floats:
        return populations - 1 - kappas_at(self.alpha, populations)

    def rounding(self, own: float) -> float:
        """Add up what sums, their combination, the tie that is cut off at 0, and weights are rounded by, for every
        scale; in units of 2⁻⁵³."""
        n, width = float(self.largest), self.high - self.low
        one, two, bound = np.abs(scales(self, self.clamp(own))).T
        step = float(np.abs(_kappa_increments(self.alpha, self.largest)).max())
        sums = n * n * (one * width + two * width**2)
        combined = 8 * n * (one * width + two * width**2 + bound)
        tie = one * n * width * ((1e-12 + 1e-15 * n) / UNIT_ROUNDOFF + 4 * n + 8)
        moved = 8 * (one * width + two * width**2 + bound * step)
        return float((sums + combined + tie + moved).max()) * UNIT_ROUNDOFF * 1.01

    def max_rounding(self) -> float:
        if self.largest >= MAX_LARGEST:  # surely too much, and the table of critical values would be long
            return math.inf
        # It is not largest at an end or in the middle. Δ_Z changes by a share of 48δ/width at most within δ of a point
        # of this grid, δ = width/512: by less than 0.1.
        return max(map(self.rounding, np.linspace(self.low, self.high, 257).tolist())) * 1.12

    def clamp(self, value: float) -> float:
        """Return a value within the bounds."""
        return min(max(value, self.low), self.high)


def check_alpha(alpha: float) -> None:
    """Refuse what is not a level of the test."""
    check_setting("alpha", alpha, 1e-12 <= alpha <= 0.5, "1e-12 to 1/2", "pass a level such as 0.05")


def rejects(alpha: float, n: int, total: float, squares: float) -> bool:
    """Return whether the test calls the record an outlier among `n`, by Σz and Σz²."""
    return n > 2 and total * total > float(kappas_of(alpha, np.array([n]))[0]) * squares


def _is_rejected(alpha: float, values: Floats, index: int) -> bool:
    z = values[index] - values
    return rejects(alpha, len(values), math.fsum(z.tolist()), math.fsum((z * z).tolist()))


def _whole(values: Floats, own: float) -> NDArray[Any]:
    return np.zeros(len(values), np.int64)


def _moments(values: Floats, own: float) -> Sequence[Floats]:
    z = own - values
    return z, z * z


def scales(detector: ClampedGrubbs, own: float) -> Floats:
    """Return for every scale Z and side the weights of T₁, T₂ and κ in the margin: (±1, -1/2Z, -Z/2), divided by the
    most that a record moves their sum.

    A record moves ±z - z²/2Z by its own part, and κ by one of its increments up to the public bound; the two
    parts are worst at an end of their ranges, or at the vertex z = ±Z.
    """
    width = detector.high - detector.low
    extremes = _kappa_increments(detector.alpha, detector.largest)
    scale, side = np.geomspace(width / 1000, width, detector.steps)[:, None], np.array([1.0, -1.0])
    ends = np.sort([side * (own - detector.high), side * (own - detector.low)], axis=0)
    z = np.broadcast_arrays(*ends, np.clip(scale, *ends))
    parts = np.stack(z) - np.square(z) / (2 * scale)
    most = np.abs(parts[..., None] - extremes * scale[..., None] / 2).max(axis=(0, -1))
    return np.stack([side / most, -1 / (2 * scale * most), -scale / (2 * most)], axis=-1).reshape(-1, 3)


# Critical values


def kappas(alpha: float, largest: int) -> Floats:
    """Return κ for 0 … `largest` records: κ = n(n-1)t² / (n-2+nt²), t the upper α/2n point of Student's law with n-2
    degrees. With two records κ = 1 and with one κ = 0, the limits for which the test never succeeds.

    >>> kappas(0.05, 3).round(3).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    return _kappa_table(alpha, max(6, (max(largest, 1)).bit_length()))[: largest + 1]


def kappas_of(alpha: float, counts: NDArray[Any]) -> Floats:
    """Return κ for these numbers of records: from a table, or where that would be long, one by one.

    >>> kappas_of(0.05, np.array([2, 10])).tolist() == kappas(0.05, 10)[[2, 10]].tolist()
    True
    """
    largest = int(counts.max(initial=0))
    if largest <= MAX_TABLE_RECORDS:
        tabled: Floats = kappas(alpha, largest)[counts]
        return tabled
    distinct, back = np.unique(counts, return_inverse=True)
    computed: Floats = _kappas_among(alpha, distinct)[back]
    return computed


def kappas_at(alpha: float, counts: Floats) -> Floats:
    """Return κ for these numbers of records, without a table of all below them.

    >>> kappas_at(0.05, np.array([1.0, 2.0, 10.0])).tolist() == kappas(0.05, 10)[[1, 2, 10]].tolist()
    True
    """
    n = np.maximum(counts, 3.0)
    student = -_special.stdtrit(n - 2, alpha / (2 * n))
    return np.where(counts < 3, np.maximum(counts - 1, 0.0), n * (n - 1) / ((n - 2) / student**2 + n))


@lru_cache(maxsize=8)
def _kappa_increments(alpha: float, largest: int) -> Floats:
    """Return the least and the greatest increment of κ from one record on."""
    increments = np.diff(kappas(alpha, largest)[1:])
    return np.array([increments.min(), increments.max()])


@lru_cache(maxsize=8)
def _kappa_table(alpha: float, octaves: int) -> Floats:
    table = _kappas_among(alpha, np.arange((1 << octaves) + 1))
    table.flags.writeable = False
    return table


def _kappas_among(alpha: float, counts: NDArray[Any]) -> Floats:
    """Return κ for rising numbers of records: exact up to 64; beyond, t is interpolated in log n octave by octave, to
    one part in 10¹².

    Every n has one κ, whatever it is computed with, so the engines and the reference decide alike.
    """
    student = np.full(len(counts), np.inf)
    low, exact = np.searchsorted(counts, [3, 65])
    few = counts[low:exact].astype(np.float64)
    student[low:exact] = -_special.stdtrit(few - 2, alpha / (2 * few))
    for octave in range(6, int(counts[-1]).bit_length() if len(counts) else 0):
        start, stop = np.searchsorted(counts, [(1 << octave) + 1, (2 << octave) + 1])
        if start < stop:
            student[start:stop] = _student(alpha, octave)(np.log2(counts[start:stop]))
    n = counts[low:].astype(np.float64)
    kappa = np.maximum(counts - 1.0, 0.0)
    kappa[low:] = n * (n - 1) / ((n - 2) / student[low:] ** 2 + n)
    return kappa


@lru_cache(maxsize=256)
def _student(alpha: float, octave: int) -> _polynomial.Chebyshev:
    def student(log: Floats) -> Floats:
        n = np.exp2(log)
        return np.asarray(-_special.stdtrit(n - 2, alpha / (2 * n)))

    return _polynomial.Chebyshev.interpolate(student, CHEBYSHEV_DEGREE, domain=[octave, octave + 1])


@kernel
def _compare(sums: Floats, kappa: Floats, tie: float, valid: Bools) -> int:
    """Write where T₁² > κ T₂; return how many contexts are too close to call, to be decided by exact sums.

    (R) Sums of at most n numbers, each rounded once, are off by at most nu Σ|z|, u = 2⁻⁵³, and Σ|z| ≤ √(n T₂). At the
    threshold |T₁| = √(κ T₂) with κ ≥ n/2, so T₁² and κ T₂ are known to one part in 10nu. Contexts that are further
    apart than `tie`, which is more, fall on the same side by the exact sums.
    """
    close = 0
    for x in range(len(valid)):
        square, bound = sums[0, x] * sums[0, x], kappa[x] * sums[1, x]
        valid[x] = square > bound
        close += abs(square - bound) < tie * bound
    return close


@kernel
def _fill_margins(
    populations: Counts, sums: Floats, kappa: Floats, weights: Floats, tie: float, margins: Floats
) -> None:
    """Write the greatest margin over scales and sides; never positive where rounding may have made an outlier."""
    for x in range(len(margins)):
        one, two, bound = sums[0, x], sums[1, x], kappa[populations[x]]
        best = -np.inf
        for w in range(len(weights)):
            best = max(best, weights[w, 0] * one + weights[w, 1] * two + weights[w, 2] * bound)
        is_sure = one * one > bound * two * (1 + tie)
        margins[x] = best if is_sure else min(best, 0.0)
