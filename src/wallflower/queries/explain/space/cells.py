"""A table by cells, which are combinations of values: enough for detectors that go by counts and sums.

Of every cell is known how many of its records are in each *part* of the metric, as one detector divides it, and what
the numbers add up to that it compares. Records of one cell are in the same contexts, so nothing else is needed; and the
same cells come out of the table in memory and of chunks of it, in any order (proof.md, (C)).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.queries.explain.detectors import ClampedGrubbs, Detector, Distance, FixedBins, Grubbs, Tukey
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable, Slots, choose_records
from wallflower.queries.explain.space.tallies import Ints, Tally, add_up, round_sums, tally

Counts = NDArray[np.int32]
Bools = NDArray[np.bool_]

SLICE: Final = 1 << 20  # records of a table in memory that are tallied at a time


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellTable:
    """The cells that hold a record, in order: `slots` as in a ranked table, `parts` counts the records of each part.

    `sums` are the sums of each cell, rounded once; `terms` add up to them exactly, those of sum m in `places[m]`.
    """

    space: Space
    n: int
    own: float
    slots: Slots
    parts: Counts
    sums: Floats
    places: tuple[Ints, ...]
    terms: tuple[Floats, ...]

    @property
    def weights(self) -> Counts:
        """How many records each cell holds."""
        found: Counts = self.parts.sum(axis=0, dtype=np.int32)
        return found

    def members(self, index: int) -> Bools:
        """Which cells a context selects."""
        return choose_records(self.slots, self.space.free, index)

    def exactly(self, chosen: Bools) -> list[float]:
        """What the sums of these cells add up to, rounded once."""
        pairs = zip(self.places, self.terms, strict=True)
        return [math.fsum(term[chosen[place]].tolist()) for place, term in pairs]


@dataclass(frozen=True, slots=True)
class Division:
    """How a detector divides the metric: which of so many parts a value is in, and which numbers are added up."""

    parts: int
    sums: int
    place: Callable[[Floats, float], NDArray[Any]]
    numbers: Callable[[Floats, float], Sequence[Floats]]


def is_divided(detector: Detector) -> bool:
    """Whether the detector goes by counts and sums alone."""
    return type(detector) in DIVISIONS


def tally_records(slots: Slots, values: Floats, own: float, free: Sequence[int], detector: Detector) -> Tally:
    """What some records add up to, cell by cell and part by part."""
    divided = DIVISIONS[type(detector)](detector)
    shape = tuple(others + 1 for others in free)
    cell = np.ravel_multi_index(tuple(slots.T), shape)
    numbers = divided.numbers(values, own)
    return tally(
        cell * divided.parts + divided.place(values, own), np.array(numbers).reshape(divided.sums, len(values))
    )


def cell_table(space: Space, own: float, found: Tally, detector: Detector) -> CellTable:
    """The table that a tally of all records is of."""
    divided = DIVISIONS[type(detector)](detector)
    cell, back = np.unique(found["key"] // divided.parts, return_inverse=True)
    parts = np.zeros((divided.parts, len(cell)), np.int32)
    parts[found["key"] % divided.parts, back] = found["count"]
    key, row = np.divmod(found["place"], max(1, divided.sums))
    order = np.lexsort((key, row))
    place, term, row = np.searchsorted(cell, key // divided.parts)[order], found["term"][order], row[order]
    edges = np.searchsorted(row, np.arange(divided.sums + 1))
    places = tuple(place[edges[at] : edges[at + 1]] for at in range(divided.sums))
    terms = tuple(term[edges[at] : edges[at + 1]] for at in range(divided.sums))
    sums = [round_sums(*pair, len(cell)) for pair in zip(places, terms, strict=True)]
    shape = tuple(others + 1 for others in space.free)
    return CellTable(
        space=space,
        n=int(found["count"].sum()),
        own=own,
        slots=np.stack(np.unravel_index(cell, shape), axis=1).astype(np.int64),
        parts=parts,
        sums=np.array(sums).reshape(divided.sums, len(cell)),
        places=places,
        terms=terms,
    )


def cells_of(table: RankedTable | CellTable, detector: Detector) -> CellTable:
    """A table by cells, which an engine may have made already."""
    if isinstance(table, CellTable):
        return table
    slices = (slice(at, at + SLICE) for at in range(0, table.n, SLICE))
    found = (tally_records(table.slots[s], table.values[s], table.own, table.space.free, detector) for s in slices)
    return cell_table(table.space, table.own, add_up(found), detector)


def _whole(values: Floats, own: float) -> Ints:
    return np.zeros(len(values), np.int64)


def _nothing(values: Floats, own: float) -> Sequence[Floats]:
    return ()


def _moments(values: Floats, own: float) -> Sequence[Floats]:
    """z and z², where z = x_V - x, so that nothing large cancels."""
    z = own - values
    return z, z * z


def _clamped_division(detector: ClampedGrubbs) -> Division:
    low, high = detector.low, detector.high
    return Division(1, 2, _whole, lambda values, own: _moments(np.clip(values, low, high), min(max(own, low), high)))


def _on_grid(detector: Tukey) -> Division:
    """Part 2i is between grid points i - 1 and i, part 2i + 1 is point i itself."""
    grid = np.asarray(detector.grid)

    def place(values: Floats, own: float) -> Ints:
        return np.searchsorted(grid, values, side="left") + np.searchsorted(grid, values, side="right")

    return Division(2 * len(grid) + 1, 0, place, _nothing)


DIVISIONS: Final[dict[type, Callable[[Any], Division]]] = {
    Grubbs: lambda detector: Division(1, 2, _whole, _moments),
    ClampedGrubbs: _clamped_division,
    Distance: lambda detector: Division(2, 0, detector.near, _nothing),
    FixedBins: lambda detector: Division(2, 0, detector.near, _nothing),
    Tukey: _on_grid,
}
