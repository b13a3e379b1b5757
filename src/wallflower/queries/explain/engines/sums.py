"""Numbers per cell whose sums over a context decide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from wallflower.machine.jit import kernel
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector, Distance, FixedBins, Grubbs, Tukey
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.cube import Bools, Counts, Ints, changed_bit, descend
from wallflower.queries.explain.space.ranked_table import Floats

Judge = Callable[[Bools], bool]  # of which cells are chosen


def nothing(n: int) -> Floats:
    """No broken measure at all."""
    return np.empty((0, n))


def near(table: CellTable) -> Counts:
    """How many records there are, and how many of them are near the one in question."""
    return np.stack([table.weights, table.parts[1]])


def fences(table: CellTable, detector: Tukey) -> tuple[Counts, tuple[Ints, Ints]]:
    """How many records there are, then how many at or below grid points (uppers) or below them (lowers); and pairs.

    A pair is a choice of quartiles that puts the record beyond the fence. Of all lower quartiles that do so with the
    same upper one, the least has the largest margin, and likewise on the other side; so one pair per point suffices.
    """
    own, grid = table.own, detector.grid
    pairs = []
    for at, point in enumerate(grid):
        low = next((low for low in range(at + 1) if detector.above(own, grid[low], point)), None)
        high = next((high for high in range(len(grid) - 1, at - 1, -1) if detector.below(own, point, grid[high])), None)
        pairs += [(at, low)] if low is not None else []
        pairs += [(high, at)] if high is not None else []
    uppers, lowers = sorted({upper for upper, _ in pairs}), sorted({lower for _, lower in pairs})
    below = np.cumsum(table.parts, axis=0, dtype=np.int32)
    rows = below[[2 * upper + 1 for upper in uppers] + [2 * lower for lower in lowers]]
    places = [(1 + uppers.index(upper), 1 + len(uppers) + lowers.index(lower)) for upper, lower in pairs]
    first, second = np.array(places, np.int64).reshape(-1, 2).T.copy()
    return np.concatenate([table.weights[None], rows]), (first, second)


def judge_of(table: CellTable, detector: Detector) -> Judge:
    """Says of single contexts, by the cells that are chosen, whether the record is an outlier."""
    return _JUDGES[type(detector)](table, detector)


def _by_test(table: CellTable, detector: Grubbs | ClampedGrubbs) -> Judge:
    test, weights = Grubbs(detector.alpha), table.weights
    return lambda chosen: test.rejects(int(weights[chosen].sum()), *table.exactly(chosen))


def _by_company(table: CellTable, detector: Distance | FixedBins) -> Judge:
    share, least = detector.limit

    def judge(chosen: Bools) -> bool:
        n, close = near(table)[:, chosen].sum(axis=1).tolist()
        return bool(close < np.ceil(share * n + least))

    return judge


def _by_fences(table: CellTable, detector: Tukey) -> Judge:
    whole, (uppers, lowers) = fences(table, detector)

    def judge(chosen: Bools) -> bool:
        rows = whole[:, chosen].sum(axis=1, dtype=np.int64)
        n = int(rows[0])
        return bool((np.minimum(4 * rows[uppers] - 3 * n, n - 4 * rows[lowers]) > 0).any())

    return judge


_JUDGES: Final[dict[type, Callable[[CellTable, Any], Judge]]] = {
    Grubbs: _by_test,
    ClampedGrubbs: _by_test,
    Distance: _by_company,
    FixedBins: _by_company,
    Tukey: _by_fences,
}


@kernel
def beyond(
    whole: Counts, broken: Floats, size: Ints, slot: Ints, opens: Bools, room: Ints, first: int, last: int, length: int,
    uppers: Ints, lowers: Ints, margins: Floats, populations: Counts,
) -> None:  # fmt: skip
    """The largest of min(#{x ≤ q₃} - 3n/4, n/4 - #{x < q₁}) / (3/4) over pairs of quartiles; -n where there is none."""
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
