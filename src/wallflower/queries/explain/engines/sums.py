"""Numbers per record whose sums over a context decide."""

from __future__ import annotations

import numpy as np

from wallflower.jit import kernel
from wallflower.queries.explain.detectors import Distance, FixedBins, Tukey
from wallflower.queries.explain.space.cube import Bools, Counts, Ints, changed_bit, descend
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable


def nothing(n: int) -> Floats:
    """No broken measure at all."""
    return np.empty((0, n))


def moments(table: RankedTable) -> tuple[Counts, Floats]:
    """One, z and z², where z = x_V - x."""
    z = table.values[table.record] - table.values
    return np.ones((1, table.n), np.int32), np.stack([z, z * z])


def near(table: RankedTable, detector: Distance | FixedBins) -> Counts:
    """One, and whether a record is near the one in question."""
    return np.stack([np.ones(table.n), detector.near(table.values, float(table.values[table.record]))]).astype(np.int32)


def fences(table: RankedTable, detector: Tukey) -> tuple[Counts, tuple[Ints, Ints]]:
    """One, then for grid points whether a record is at or below it (uppers) or below it (lowers); and pairs of rows.

    A pair is a choice of quartiles that puts the record beyond the fence. Of all lower quartiles that do so with the
    same upper one, the least has the largest margin, and likewise on the other side; so one pair per point suffices.
    """
    own, grid = float(table.values[table.record]), detector.grid
    pairs = []
    for at, point in enumerate(grid):
        low = next((low for low in range(at + 1) if detector.above(own, grid[low], point)), None)
        high = next((high for high in range(len(grid) - 1, at - 1, -1) if detector.below(own, point, grid[high])), None)
        pairs += [(at, low)] if low is not None else []
        pairs += [(high, at)] if high is not None else []
    uppers, lowers = sorted({upper for upper, _ in pairs}), sorted({lower for _, lower in pairs})
    rows = [table.values <= grid[upper] for upper in uppers] + [table.values < grid[lower] for lower in lowers]
    places = [(1 + uppers.index(upper), 1 + len(uppers) + lowers.index(lower)) for upper, lower in pairs]
    first, second = np.array(places, np.int64).reshape(-1, 2).T.copy()
    return np.array([np.ones(table.n), *rows], dtype=np.int32), (first, second)


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
