"""Tukey's fence, with quartiles read on a public grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import kernel
from wallflower.queries.explain.detectors.base import (
    GRID_PARAMETERS,
    MAX_POINTS,
    CellMarginDetector,
    Rule,
    check_rising,
    check_setting,
    fill_grid,
)
from wallflower.queries.explain.space.cubes import Part, Walk, changed_bit, descend, no_sums, walk_parts
from wallflower.queries.explain.space.tables import (
    MAX_METRIC,
    AnyTable,
    Bools,
    CellTable,
    Counts,
    Division,
    Floats,
    Ints,
)
from wallflower.schema import Column


@dataclass(frozen=True, slots=True)
class Tukey(CellMarginDetector):
    """The record is beyond Tukey's fence, with quartiles read outwards on a public grid.

    The default, and the best margin of all: up to a third of the context. The upper quartile is the least grid point
    with more than 3/4 of the records at or below it, the lower one the greatest with fewer than 1/4 below it; where the
    grid has no such point there is no outlier on that side.

    >>> Tukey(grid=(0.0, 1.0, 2.0, 3.0)).outlier(np.array([9.0, 1.0, 1.0, 2.0, 2.0]), 0)
    True
    """

    kind: ClassVar[str] = "tukey"
    nanoseconds_per_context: ClassVar[float] = 300.0

    grid: tuple[float, ...] = field(metadata={"help": "public points, rising, that quartiles are read on"})
    fence: float = field(default=1.5, metadata={"help": "how many quartile ranges away the fence stands"})

    def __post_init__(self) -> None:
        check_rising("grid", self.grid)
        check_setting("grid", len(self.grid), len(self.grid) <= MAX_POINTS, "2 to 4096 points", "pass a coarser grid")
        check_setting("fence", self.fence, 0 <= self.fence <= MAX_METRIC, "0 to 1e100", "pass a number such as 1.5")

    def outlier(self, values: Floats, index: int, /) -> bool:
        grid, ranked, n = np.asarray(self.grid), np.sort(values), len(values)
        upper = np.flatnonzero(4 * np.searchsorted(ranked, grid, side="right") > 3 * n)
        lower = np.flatnonzero(4 * np.searchsorted(ranked, grid, side="left") < n)
        if not len(upper) or not len(lower):
            return False
        low, high = float(grid[lower[-1]]), float(grid[upper[0]])
        return self.is_above(float(values[index]), low, high) or self.is_below(float(values[index]), low, high)

    @classmethod
    def examples(cls) -> tuple[Tukey, ...]:
        return cls((0.0, 1.0, 2.0, 4.0)), cls((0.5, 2.5, 4.5), 0.1)

    @classmethod
    def parameters(cls) -> Mapping[str, Any]:
        return {"grid": tuple[float, ...], "fence": float, **GRID_PARAMETERS}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], metric: Column, size: int) -> Tukey:
        return cls(**fill_grid(cls.kind, "grid", settings, metric))

    def is_above(self, own: float, low: float, high: float) -> bool:
        """Return whether a value is beyond the upper fence of these quartiles."""
        return own > high + self.fence * (high - low)

    def is_below(self, own: float, low: float, high: float) -> bool:
        """Return whether a value is beyond the lower fence of these quartiles."""
        return own < low - self.fence * (high - low)

    def divide(self) -> Division:
        """Part 2i is between grid points i - 1 and i, part 2i + 1 is point i itself."""
        grid = np.asarray(self.grid)

        def place(values: Floats, own: float) -> Ints:
            return np.searchsorted(grid, values, side="left") + np.searchsorted(grid, values, side="right")

        return Division(parts=2 * len(grid) + 1, place=place)

    def rule(self, table: CellTable) -> Rule:
        counts, (uppers, lowers) = self.fences(table)

        def margins(totals: NDArray[Any], _: Floats) -> Floats:
            whole = totals.astype(np.int64)
            n = whole[0]
            pairs = np.minimum(4 * whole[uppers] - 3 * n, n - 4 * whole[lowers])
            return np.asarray(np.maximum(pairs.max(axis=0, initial=-(2**62)), -3 * n) / 3.0)

        return Rule(counts, no_sums(len(table.slots)), margins)

    def sweep_cells(self, table: CellTable) -> Iterator[Part]:
        counts, pairs = self.fences(table)

        def work(_: int, walk: Walk, valid: Bools, populations: Counts) -> None:
            margins = np.empty(len(valid))
            _fill_margins(*walk, *pairs, margins, populations)
            np.greater(margins, 0, out=valid)

        return walk_parts(table, counts, no_sums(len(table.slots)), work)

    def margins(self, table: AnyTable) -> Iterator[Part]:
        cells = self.prepare(table)
        counts, pairs = self.fences(cells)

        def work(_: int, walk: Walk, margins: Floats, populations: Counts) -> None:
            _fill_margins(*walk, *pairs, margins, populations)

        return walk_parts(cells, counts, no_sums(len(cells.slots)), work)

    def greatest_margins(self, populations: Floats) -> Floats:
        return (populations - 4) / 3

    def rounding(self, own: float) -> float:
        return 2.0**-22  # thirds of whole numbers below 2³³

    def replacement(self) -> Fraction:
        return Fraction(4, 3)

    def fences(self, table: CellTable) -> tuple[Counts, tuple[Ints, Ints]]:
        """Return the counts that pairs of quartiles need, and the pairs as rows of the counts.

        The first row counts all records, then come those at or below grid points (for upper quartiles) and those below
        grid points (for lower ones). A pair is a choice of quartiles that puts the record beyond the fence. Of all
        lower quartiles that do so with the same upper one, the least has the greatest margin, and likewise on the
        other side; so one pair per point suffices.
        """
        own, grid = table.own, self.grid
        pairs = []
        for at, point in enumerate(grid):
            low = next((low for low in range(at + 1) if self.is_above(own, grid[low], point)), None)
            high = next(
                (high for high in range(len(grid) - 1, at - 1, -1) if self.is_below(own, point, grid[high])), None
            )
            pairs += [(at, low)] if low is not None else []
            pairs += [(high, at)] if high is not None else []
        uppers, lowers = sorted({upper for upper, _ in pairs}), sorted({lower for _, lower in pairs})
        below = np.cumsum(table.parts, axis=0, dtype=np.int32)
        rows = below[[2 * upper + 1 for upper in uppers] + [2 * lower for lower in lowers]]
        places = [(1 + uppers.index(upper), 1 + len(uppers) + lowers.index(lower)) for upper, lower in pairs]
        first, second = np.array(places, np.int64).reshape(-1, 2).T.copy()
        return np.concatenate([table.weights[None], rows]), (first, second)


@kernel
def _fill_margins(
    whole: Counts, broken: Floats, size: Ints, slot: Ints, opens: Bools, room: Ints, first: int, last: int, length: int,
    uppers: Ints, lowers: Ints, margins: Floats, populations: Counts,
) -> None:  # fmt: skip
    """Write the greatest of min(#{x ≤ q₃} - 3n/4, n/4 - #{x < q₁}) / (3/4) over pairs of quartiles; -n without a pair.

    The rule says the same of totals; this walks the cube itself, since totals of 200 rows would not fit the cache.
    """
    at, base = np.zeros(len(size) + 1, np.int64), np.zeros(len(size) + 1, np.int64)
    best = np.empty(length, np.int32)
    for leaf in range(first, last):
        changed = changed_bit(leaf, first, len(size))
        start = descend(whole, broken, size, slot, opens, room, at, base, leaf, changed)
        to, n = (leaf - first) * length, whole[0, start:]
        for x in range(length):
            best[x] = -3 * n[x]
        for p in range(len(uppers)):
            upper, lower = whole[uppers[p], start:], whole[lowers[p], start:]
            for x in range(length):
                best[x] = max(best[x], min(4 * upper[x] - 3 * n[x], n[x] - 4 * lower[x]))
        for x in range(length):
            populations[to + x] = n[x]
            margins[to + x] = best[x] / 3.0
