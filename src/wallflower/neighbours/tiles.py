"""Count inliers, and extend their number, of records that are cut into tiles: only strays travel.

A stray has fewer than k neighbours in its own tile. All others are inliers at home, and are served there. Strays meet
the tiles in reach of them; a stray with k neighbours in all is an inlier too, and is served by the least loaded of
these. If no supplier is crowded, every inlier is served.

Otherwise the *core*, the consumers that ask a crowded supplier, is put together with its neighbours in one place, and
served again as a table in memory would be; what everybody else asks stays as it is. If a supplier that then has a price
is asked by others too, they join the core. It only grows, so this ends.

The tasks are what is done inside one tile: functions of its records, in lexicographic order, and of packed arguments.
Records are named by their place in that order. Proved in proof.md of `count`, labels (T) (C4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.engines.engine import Floats, Given, Tiles
from wallflower.machine.jit import kernel
from wallflower.neighbours.extension import UNIT, Assignment, assign, equal_shares, list_length, serve_evenly
from wallflower.neighbours.pairs import (
    BOX_MARGIN,
    Index,
    Ints,
    Tree,
    build_tree,
    count_neighbours,
    find_near_points,
    list_neighbours,
)
from wallflower.neighbours.region import Certificate, Part

PLACE_BITS = 32  # a record is named by its tile and, in the lower bits, its place there
TILE_BYTES = 1 << 28
MIN_TILE_RECORDS = 1 << 12


def tile_size(dimension: int, neighbours: int) -> int:
    """Return the number of records of a tile, so that work on one takes about TILE_BYTES."""
    each = 40 * dimension + 8 * list_length(neighbours) + 100
    return max(MIN_TILE_RECORDS, TILE_BYTES // each)


@dataclass(frozen=True, slots=True)
class Records:
    """Some records of the table: what they are named by, and where they are."""

    name: Ints
    point: Floats

    def __len__(self) -> int:
        return len(self.name)

    @property
    def tile(self) -> Ints:
        return self.name >> PLACE_BITS

    def skip(self, tile: int) -> Ints:
        """Their places in this tile, -1 for those of other tiles."""
        return np.where(self.tile == tile, self.name & ((1 << PLACE_BITS) - 1), -1)

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
        crowded.append(told["crowded"] + (tile << PLACE_BITS))
        pairs.append(np.stack([near(tile)[told["row"]], told["place"] + (tile << PLACE_BITS), told["load"]]))
    return _merge(inliers, strays, np.concatenate(pairs, axis=1), np.concatenate(crowded), neighbours, slack)


def gather(answers: Iterable[tuple[int, Given]], dimension: int) -> Records:
    """The records that tasks found, by name."""
    names, points = [np.empty(0, dtype=np.int64)], [np.empty((0, dimension))]
    for tile, told in answers:
        names.append(told["place"] + (tile << PLACE_BITS))
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
    line, gap_limit = records.point[order, axis], float(np.sqrt(reach * (1 + BOX_MARGIN))) * (1 + BOX_MARGIN)

    def near(tile: int) -> Ints:
        with np.errstate(over="ignore"):
            ends = tiles.low[tile, axis] - gap_limit, tiles.high[tile, axis] + gap_limit
            beside = np.sort(order[np.searchsorted(line, ends[0], "left") : np.searchsorted(line, ends[1], "right")])
            total = np.zeros(len(beside))
            for column, low, high in zip(records.point.T, tiles.low[tile], tiles.high[tile], strict=True):
                gap = np.maximum(np.maximum(low - column[beside], column[beside] - high), 0.0)
                total += gap * gap
            near: Ints = beside[total <= reach * (1 + BOX_MARGIN)]
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
    asked, share = equal_shares(np.minimum(np.diff(starts), list_length(neighbours)), neighbours)
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


Flags = NDArray[np.bool_]


def certify_tiles(tiles: Tiles, reach: float, neighbours: int, slack: float, tolerance: float) -> Certificate:
    """Bounds on E that differ by at most `tolerance`, of records that are cut into tiles."""
    service = serve(tiles, reach, neighbours, slack)
    if len(service.crowded) == 0:
        return Certificate(float(service.inliers), float(service.inliers))  # (C1)
    with progress.hush():
        return _Repair(tiles, service, reach, neighbours, slack).certify(tolerance)


@dataclass(slots=True)
class _Surroundings:
    """The core and its neighbours, by name: their places, what others ask of them, whose neighbours are all here."""

    records: Records
    base: Ints
    consumers: Flags
    whole: Flags


class _Repair:
    """The core, and who of it is known with all its neighbours."""

    def __init__(self, tiles: Tiles, service: Service, reach: float, neighbours: int, slack: float) -> None:
        self._tiles, self._service, self._slack = tiles, service, slack
        self._reach, self._neighbours = reach, neighbours
        self._asked = {"reach": reach, "neighbours": neighbours}
        self._core = Records(np.empty(0, dtype=np.int64), np.empty((0, tiles.low.shape[1])))
        self._whole = np.empty(0, dtype=np.int64)

    def certify(self, tolerance: float) -> Certificate:
        """Decide the core again, with more of its neighbours and more clients, until the bounds hold for the table."""
        self._join(self._service.crowded)
        while True:
            part = self._surroundings()
            found, order = self._decide(part, tolerance)
            if found.bounds is None:
                assert found.missing is not None
                assert found.full is not None
                self._whole = np.union1d(self._whole, part.records.name[order[found.missing]])
                self._join(part.records.name[order[found.full]])
                continue
            priced = np.zeros(len(order), dtype=np.bool_)
            if found.prices is not None:
                priced[order] = found.prices > 0
            shared = part.records.name[priced & (part.base > 0)]
            if len(shared) == 0:
                outside = self._service.inliers - len(self._core)
                return Certificate(outside + found.bounds.lower, outside + found.bounds.upper)
            before = self._core.name
            self._join(shared)
            self._whole = np.union1d(self._whole, np.setdiff1d(self._core.name, before))  # they contest it

    def _decide(self, part: _Surroundings, tolerance: float) -> tuple[Assignment, Ints]:
        tree = build_tree(part.records.point, self._reach)
        order = tree.order
        inside = Part(part.consumers[order], part.base[order], part.whole[order])
        return assign(tree, self._neighbours, self._slack, tolerance, inside), order

    def _join(self, suppliers: Ints) -> None:
        """Take in the records that ask these suppliers."""

        def pack_for(tile: int) -> Given | None:
            mine = suppliers[suppliers >> PLACE_BITS == tile] & ((1 << PLACE_BITS) - 1)
            return pack(**self._asked, suppliers=mine) if len(mine) else None

        service = self._service
        home = gather(self._tiles.each("finding clients", find_clients, pack_for), self._tiles.low.shape[1])
        stray = service.strays.take(np.unique(service.stray[np.isin(service.supplier, suppliers)]))
        names = np.concatenate([self._core.name, home.name, stray.name])
        points = np.concatenate([self._core.point, home.point, stray.point])
        kept, first = np.unique(names, return_index=True)
        self._core = Records(kept, points[first])

    def _surroundings(self) -> _Surroundings:
        """Fetch the neighbours of the core: as many as it may look at, and all of those that contest."""
        core, tiles = self._core, self._tiles
        whole = np.isin(core.name, self._whole)
        near = in_reach(tiles, core, self._reach)
        length = 4 * list_length(self._neighbours)

        def pack_for(tile: int) -> Given | None:
            mine = near(tile)
            if len(mine) == 0:
                return None
            some, own = core.take(mine), core.skip(tile)
            asked = {"point": some.point, "skip": some.skip(tile), "whole": whole[mine], "core": own[own >= 0]}
            return pack(**self._asked, **asked, length=length)

        names, points, loads = [], [], []
        for tile, told in tiles.each("fetching neighbours", find_suppliers, pack_for):
            names.append(told["place"] + (tile << PLACE_BITS))
            points.append(told["point"])
            loads.append(told["load"])
        name, base = np.concatenate(names), np.concatenate(loads)
        self._add_strays(name, base)
        consumers = np.isin(name, core.name)
        return _Surroundings(Records(name, np.concatenate(points)), base, consumers, np.isin(name, core.name[whole]))

    def _add_strays(self, name: Ints, base: Ints) -> None:
        """Add what strays outside of the core ask of these records, which stand in order."""
        service = self._service
        outside = ~np.isin(service.strays.name, self._core.name)[service.stray]
        supplier, share = service.supplier[outside], service.share[outside]
        at = np.searchsorted(name, supplier)
        hit = np.minimum(at, len(name) - 1)
        known = name[hit] == supplier
        np.add.at(base, hit[known], share[known])


def find_strays(values: Floats, given: Given) -> Given:
    """The records with fewer than k neighbours in their own tile, and where they are."""
    tree = build_tree(values, _number(given, "reach"))
    stray = np.sort(tree.order[count_neighbours(tree, _whole(given, "neighbours")) < _whole(given, "neighbours")])
    return {"place": stray, "point": values[stray]}


def serve_home(values: Floats, given: Given) -> Given:
    """Serve the inliers of the tile from it, and meet the strays in reach: how many inliers, which suppliers are
    crowded by them alone, and for each stray its neighbours here with what these are asked for already."""
    neighbours = _whole(given, "neighbours")
    tree = build_tree(values, _number(given, "reach"))
    loads, inliers = serve_evenly(tree, neighbours)
    met, found = find_near_points(tree, given["point"], list_length(neighbours), _places_in(tree, given["skip"]))
    row, place = _pairs(met, found)
    return {
        "inliers": np.array([inliers]),
        "crowded": np.sort(tree.order[loads > _number(given, "slack") * UNIT]),
        "row": row,
        "place": tree.order[place],
        "load": loads[place],
    }


def find_clients(values: Floats, given: Given) -> Given:
    """The inliers of the tile that ask any of these suppliers of it, and where they are."""
    tree = build_tree(values, _number(given, "reach"))
    met, found = list_neighbours(tree, min(max(tree.n - 1, 0), list_length(_whole(given, "neighbours"))))
    asked, share = equal_shares(found, _whole(given, "neighbours"))
    wanted = np.zeros(tree.n, dtype=np.bool_)
    wanted[_places_in(tree, given["suppliers"])] = True
    asks = (wanted[met] & (np.arange(met.shape[1]) < asked[:, None])).any(axis=1) & (share > 0)
    client = np.sort(tree.order[asks])
    return {"place": client, "point": values[client]}


def find_suppliers(values: Floats, given: Given) -> Given:
    """The records near these points, and the `core` of this tile itself: where they are, and what the inliers of this
    tile outside of the core ask of them. Near each point as many as `length` says are found, all if it is `whole`."""
    tree = build_tree(values, _number(given, "reach"))
    core = _places_in(tree, given["core"])
    loads, _ = serve_evenly(tree, _whole(given, "neighbours"), core)
    wanted = np.zeros(tree.n, dtype=np.bool_)
    wanted[core] = True
    point, skip, length = given["point"], _places_in(tree, given["skip"]), _whole(given, "length")
    whole = given["whole"]
    while len(point):
        met, found = find_near_points(tree, point, length, skip)
        wanted[_pairs(met, found)[1]] = True
        cut = whole & (found == length)
        point, skip, whole, length = point[cut], skip[cut], whole[cut], 4 * length
    place = np.sort(tree.order[wanted])
    back = np.empty(tree.n, dtype=np.int64)
    back[tree.order] = loads
    return {"place": place, "point": values[place], "load": back[place]}


def _places_in(tree: Tree, places: Ints) -> Index:
    """Places of the lexicographic order as places of the tree; those that are below 0 stay so."""
    back = np.empty(tree.n + 1, dtype=np.int32)
    back[tree.order] = np.arange(tree.n)
    back[-1] = -1
    return back[np.maximum(places, -1)]


def _pairs(met: Index, found: Ints) -> tuple[Ints, Ints]:
    """Rows of different length as pairs."""
    row = np.repeat(np.arange(len(found)), found)
    return row, met[np.arange(met.shape[1]) < found[:, None]].astype(np.int64)


def _number(given: Given, name: str) -> float:
    return float(given[name][()])


def _whole(given: Given, name: str) -> int:
    return int(given[name][()])


def pack(**numbers: Any) -> Given:
    """Numbers as they are given to a task."""
    return {name: np.asarray(number) for name, number in numbers.items()}
