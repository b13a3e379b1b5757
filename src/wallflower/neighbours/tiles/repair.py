"""Crowded suppliers of a table that is cut into tiles: their surroundings become a small table of its own.

The *core* are the consumers that ask a crowded supplier. With their neighbours they are put together in one place, and
served anew there as a table in memory would be; what everybody else asks stays as it is. If a supplier that then has a
price is asked by others too, they join the core. It only grows, so this ends.

Proved in proof.md of `count`, label (C4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.engines import Given, Tiles
from wallflower.neighbours.extension import Allotment, allot, generous
from wallflower.neighbours.pairs import Ints, plant
from wallflower.neighbours.region import Certificate, Part
from wallflower.neighbours.tiles.inliers import SHIFT, Records, Service, gather, in_reach, serve
from wallflower.neighbours.tiles.tasks import find_clients, find_suppliers, pack

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
        """Decide the core anew, with more of its neighbours and more clients, until the bounds hold for the table."""
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

    def _decide(self, part: _Surroundings, tolerance: float) -> tuple[Allotment, Ints]:
        tree = plant(part.records.point, self._reach)
        order = tree.order
        inside = Part(part.consumers[order], part.base[order], part.whole[order])
        return allot(tree, self._neighbours, self._slack, tolerance, inside), order

    def _join(self, suppliers: Ints) -> None:
        """Take in whoever asks these suppliers."""

        def pack_for(tile: int) -> Given | None:
            mine = suppliers[suppliers >> SHIFT == tile] & ((1 << SHIFT) - 1)
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
        length = 4 * generous(self._neighbours)

        def pack_for(tile: int) -> Given | None:
            mine = near(tile)
            if len(mine) == 0:
                return None
            some, own = core.take(mine), core.skip(tile)
            asked = {"point": some.point, "skip": some.skip(tile), "whole": whole[mine], "core": own[own >= 0]}
            return pack(**self._asked, **asked, length=length)

        names, points, loads = [], [], []
        for tile, told in tiles.each("fetching neighbours", find_suppliers, pack_for):
            names.append(told["place"] + (tile << SHIFT))
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
