"""The number of inliers, and its extension, of records that are cut into tiles: only strays travel.

A stray has fewer than k neighbours in its own tile. All others are inliers at home, and are served there. Strays meet
the tiles in reach of them; who has k neighbours in all is an inlier too, and is served by the least loaded of these. If
no supplier is crowded, every inlier is served; else the surroundings of the crowded are decided anew (repair.py).

Proved in proof.md of `count`, labels (T) (C4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from wallflower.engines import Floats, Given, Tiles
from wallflower.machine.jit import kernel
from wallflower.neighbours.extension import UNIT, equal_shares, generous
from wallflower.neighbours.pairs import MARGIN, Ints
from wallflower.neighbours.tiles.tasks import find_strays, pack, serve_home

SHIFT = 32  # a record is named by its tile and, in the lower bits, its place there
TILE_BYTES = 1 << 28
SMALLEST_TILE = 1 << 12


def tile_size(dimension: int, neighbours: int) -> int:
    """How many records to a tile, so that work on one takes about so many bytes as TILE_BYTES."""
    each = 40 * dimension + 8 * generous(neighbours) + 100
    return max(SMALLEST_TILE, TILE_BYTES // each)


@dataclass(frozen=True, slots=True)
class Records:
    """Some records of the table: what they are named by, and where they are."""

    name: Ints
    point: Floats

    def __len__(self) -> int:
        return len(self.name)

    @property
    def tile(self) -> Ints:
        return self.name >> SHIFT

    def skip(self, tile: int) -> Ints:
        """Their places in this tile, -1 for those of other tiles."""
        return np.where(self.tile == tile, self.name & ((1 << SHIFT) - 1), -1)

    def take(self, which: Ints) -> Records:
        return Records(self.name[which], self.point[which])


@dataclass(frozen=True, slots=True)
class Service:
    """Who is served. `strays` are the inliers among the strays; edge e says that `strays[stray[e]]` asks `share[e]`
    units of record `supplier[e]`. Records of `crowded` are asked for more than the slack."""

    inliers: int
    strays: Records
    stray: Ints
    supplier: Ints
    share: Ints
    crowded: Ints


def count_inliers(tiles: Tiles, reach: float, neighbours: int) -> int:
    """How many records have k neighbours."""
    return serve(tiles, reach, neighbours, np.inf).inliers


def serve(tiles: Tiles, reach: float, neighbours: int, slack: float) -> Service:
    """Serve every inlier: at home, or where strays are in reach of."""
    asked = {"reach": reach, "neighbours": neighbours, "slack": slack}
    strays = gather(tiles.each("finding strays", find_strays, lambda _: pack(**asked)), tiles.low.shape[1])
    inliers, crowded, pairs = 0, [np.empty(0, dtype=np.int64)], [np.empty((3, 0), dtype=np.int64)]
    near = in_reach(tiles, strays, reach)

    def pack_for(tile: int) -> Given:
        mine = strays.take(near(tile))
        return pack(**asked, point=mine.point, skip=mine.skip(tile))

    for tile, told in tiles.each("serving tiles", serve_home, pack_for):
        inliers += int(told["inliers"][0])
        crowded.append(told["crowded"] + (tile << SHIFT))
        pairs.append(np.stack([near(tile)[told["row"]], told["place"] + (tile << SHIFT), told["load"]]))
    return _merge(inliers, strays, np.concatenate(pairs, axis=1), np.concatenate(crowded), neighbours, slack)


def gather(answers: Iterable[tuple[int, Given]], dimension: int) -> Records:
    """The records that tasks found, by name."""
    names, points = [np.empty(0, dtype=np.int64)], [np.empty((0, dimension))]
    for tile, told in answers:
        names.append(told["place"] + (tile << SHIFT))
        points.append(told["point"])
    return Records(np.concatenate(names), np.concatenate(points))


def in_reach(tiles: Tiles, records: Records, reach: float) -> Callable[[int], Ints]:
    """Which of the records may have a neighbour in a tile: by the gap to its box, with a margin for rounding.  (P)

    Records stand in the order of one column, so that a tile looks at those beside it and not at all. A difference that
    leaves float64 is infinite and out of reach, as it should be; the warning of it would depend on records.
    """
    with np.errstate(over="ignore"):
        axis = int(np.argmax(tiles.high.max(axis=0) - tiles.low.min(axis=0)))
    order = np.argsort(records.point[:, axis], kind="stable")
    line, gap_limit = records.point[order, axis], float(np.sqrt(reach * (1 + MARGIN))) * (1 + MARGIN)

    def near(tile: int) -> Ints:
        with np.errstate(over="ignore"):
            ends = tiles.low[tile, axis] - gap_limit, tiles.high[tile, axis] + gap_limit
            beside = np.sort(order[np.searchsorted(line, ends[0], "left") : np.searchsorted(line, ends[1], "right")])
            total = np.zeros(len(beside))
            for column, low, high in zip(records.point.T, tiles.low[tile], tiles.high[tile], strict=True):
                gap = np.maximum(np.maximum(low - column[beside], column[beside] - high), 0.0)
                total += gap * gap
            near: Ints = beside[total <= reach * (1 + MARGIN)]
            return near

    return near


def _merge(inliers: int, strays: Records, pairs: Ints, crowded: Ints, neighbours: int, slack: float) -> Service:
    """Find the inliers among the strays and serve them, those with the fewest neighbours first."""
    degree = np.bincount(pairs[0], minlength=len(strays))
    pairs = pairs[:, degree[pairs[0]] >= neighbours]
    kept = np.flatnonzero(degree >= neighbours)
    pairs = pairs[:, np.lexsort((pairs[1], pairs[0]))]
    stray = np.searchsorted(kept, pairs[0])
    name, first, supplier = np.unique(pairs[1], return_index=True, return_inverse=True)
    loads = pairs[2][first]
    starts = np.searchsorted(stray, np.arange(len(kept) + 1))
    asked, share = equal_shares(np.minimum(np.diff(starts), generous(neighbours)), neighbours)
    turn = np.argsort(np.diff(starts), kind="stable")
    asks = np.zeros(len(stray), dtype=np.int64)
    _serve_strays(starts, supplier, turn, asked, share, loads, asks)
    full = np.union1d(crowded, name[loads > slack * UNIT])
    used = asks > 0
    return Service(inliers + len(kept), strays.take(kept), stray[used], pairs[1][used], asks[used], full)


@kernel
def _serve_strays(starts: Ints, supplier: Ints, turn: Ints, asked: Ints, share: Ints, loads: Ints, asks: Ints) -> None:
    """Each in turn asks the least loaded of its neighbours, of equally loaded ones the first."""
    for c in turn:
        for _ in range(asked[c]):
            best = -1
            for e in range(starts[c], starts[c + 1]):
                if asks[e] == 0 and (best < 0 or loads[supplier[e]] < loads[supplier[best]]):
                    best = e
            asks[best] = share[c]
        for e in range(starts[c], starts[c + 1]):
            loads[supplier[e]] += asks[e]
