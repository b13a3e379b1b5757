"""Random grids: two columns each, cells that wrap round, so that no bounds and no location are needed.

Everything about a grid is public: its columns, widths and offsets come from a key that was drawn before any record was
looked at, from spreads that were released, and from the schema, which says how many labels a column has. A label is a
whole number, its code, and has a row of its own where there are 16 labels or fewer; more of them share rows, others in
every grid. A cell depends on one record and on these numbers alone.  (C)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import kernel
from wallflower.progress import count_cores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIDE: Final = 16  # cells on a side, after which they wrap round
CELLS: Final = SIDE * SIDE
NARROWEST: Final = 2.0  # spreads that a cell is wide at least; twice that at most
PART: Final = 2**14  # records at a time, so that what is computed on the way stays in the cache
MIN_COMPILED_RECORDS: Final = 2**14  # from here a compiled loop on all cores is worth loading its compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cells of two columns, named by their places: x is in row floor(x/width + offset), modulo 16."""

    columns: tuple[int, int]
    widths: tuple[float, float]
    offsets: tuple[float, float]

    def cells(self, values: Floats) -> Ints:
        """The cell of each record, from 0 to 255."""
        first, second = (self.side(at, values[:, column]) for at, column in enumerate(self.columns))
        return first * SIDE + second

    def side(self, at: int, values: Floats) -> Ints:
        """The rows, or the columns, that values of the first, or the second, column are in."""
        return _places(values, self.widths[at], self.offsets[at])

    def to_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "widths": list(self.widths), "offsets": list(self.offsets)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        (a, b), (u, v), (s, t) = stored["columns"], stored["widths"], stored["offsets"]
        return cls(columns=(int(a), int(b)), widths=(float(u), float(v)), offsets=(float(s), float(t)))


def _places(values: Floats, width: float, offset: float) -> Ints:
    """Along one side, from 0 to 15; what is not finite is in 0."""
    with np.errstate(all="ignore"):
        sides = np.floor(values / width + offset) % SIDE
    return np.where(np.isfinite(sides), sides, 0.0).astype(np.int64)


class Coins:
    """Pseudo-random numbers, which anyone who knows the key can reproduce."""

    def __init__(self, key: int) -> None:
        self._key, self._drawn = key.to_bytes(16, "big"), 0

    def word(self) -> int:
        """The next 64 bits."""
        block = hashlib.shake_256(self._key + self._drawn.to_bytes(8, "big")).digest(8)
        self._drawn += 1
        return int.from_bytes(block, "big")

    def uniform(self) -> float:
        """A number from 0 to below 1, in steps of 2^-53."""
        return (self.word() >> 11) * 2.0**-53

    def shuffle(self, items: Sequence[int]) -> list[int]:
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.word() * (last + 1) >> 64
            order[last], order[other] = order[other], order[last]
        return order


def deal(columns: Sequence[int], count: int, coins: Coins) -> list[tuple[int, int]]:
    """Pairs of columns, from shuffled decks, so that all come equally often; of a single one twice the same.

    >>> deal([3], 2, Coins(1)), sorted(sum(deal([0, 1, 2, 3], 4, Coins(1)), ()))
    ([(3, 3), (3, 3)], [0, 0, 1, 1, 2, 2, 3, 3])
    """
    if len(columns) == 1:
        return [(columns[0], columns[0])] * count
    deck: list[int] = []
    pairs: list[tuple[int, int]] = []
    while len(pairs) < count:
        if len(deck) < 2:
            deck = _without_repeat(deck, coins.shuffle(columns))
        pairs.append((deck[0], deck[1]))
        deck = deck[2:]
    return pairs


def _without_repeat(left: list[int], deck: list[int]) -> list[int]:
    """What was left over, then a new deck, which does not begin with the same column."""
    if left and deck[0] == left[0]:
        deck[0], deck[1] = deck[1], deck[0]
    return left + deck


def lay_grids(
    spreads: Mapping[int, float], count: int, coins: Coins, labels: Mapping[int, int] | None = None
) -> list[Grid]:
    """Lay `count` random grids over columns whose spreads are known, and columns of that many labels."""
    sizes = labels or {}
    grids = []
    for pair in deal(sorted({*spreads, *sizes}), count, coins):
        turns = [coins.uniform() for _ in pair]
        widths = [
            _label_width(sizes[column], turn) if column in sizes else NARROWEST * 2.0**turn * spreads[column]
            for column, turn in zip(pair, turns, strict=True)
        ]
        shifts = [SIDE * coins.uniform() for _ in pair]
        offsets = [
            float(math.floor(shift)) if column in sizes else shift for column, shift in zip(pair, shifts, strict=True)
        ]
        grids.append(Grid(columns=pair, widths=(widths[0], widths[1]), offsets=(offsets[0], offsets[1])))
    return grids


def _label_width(size: int, turn: float) -> float:
    """The width of a cell in codes: one code, or where there are more labels than rows a part of one, so that codes are
    scattered over the rows. Codes that follow each other are 1 to 15 rows apart, so they never share one."""
    return 1.0 if size <= SIDE else 1 / (1 + (SIDE - 2) * turn)


def parts_of(values: Floats) -> Iterator[slice]:
    """The records, part by part."""
    for start in range(0, len(values), PART):
        yield slice(start, start + PART)


def count_cells(values: Floats, grids: Sequence[Grid]) -> Ints:
    """How many records are in each cell of each grid: one record is in one cell of each.  (C)"""
    if len(values) >= MIN_COMPILED_RECORDS:
        parts = _spread_work(len(values), lambda rows: _tally(values[rows], *arrays_of(grids)))
        total: Ints = np.sum(parts, axis=0)
        return total
    counts = np.zeros((len(grids), CELLS), dtype=np.int64)
    for part in parts_of(values):
        for at, grid in enumerate(grids):
            counts[at] += np.bincount(grid.cells(values[part]), minlength=CELLS)
    return counts


def add_surprises(values: Floats, grids: Sequence[Grid], surprises: Floats) -> Floats:
    """The mean, over the grids, of what the cell of each record has. Term by term in one order, compiled or not, so
    that it is a function of the record alone.  (H)
    """
    if len(values) >= MIN_COMPILED_RECORDS:
        return np.concatenate(_spread_work(len(values), lambda rows: _add(values[rows], *arrays_of(grids), surprises)))
    scores = np.zeros(len(values))
    for part in parts_of(values):
        sums = np.zeros(len(scores[part]))
        for grid, surprise in zip(grids, surprises, strict=True):
            sums += surprise[grid.cells(values[part])]
        scores[part] = sums / len(grids)
    return scores


def arrays_of(grids: Sequence[Grid]) -> tuple[Ints, Floats, Floats]:
    """Columns, widths and offsets of grids, as compiled loops and tasks take them."""
    columns = np.array([grid.columns for grid in grids], dtype=np.int64)
    return columns, np.array([grid.widths for grid in grids]), np.array([grid.offsets for grid in grids])


def grids_of(columns: Ints, widths: Floats, offsets: Floats) -> list[Grid]:
    """The grids that `arrays_of` described."""
    rows = zip(columns.tolist(), widths.tolist(), offsets.tolist(), strict=True)
    return [Grid(columns=(a, b), widths=(u, v), offsets=(s, t)) for (a, b), (u, v), (s, t) in rows]


def _spread_work(count: int, work: Callable[[slice], Any]) -> list[Any]:
    """What the work comes to on parts of the records, one for each core."""
    cores = count_cores()
    edges = [count * core // cores for core in range(cores + 1)]
    with ThreadPoolExecutor(cores) as pool:
        return list(pool.map(lambda core: work(slice(edges[core], edges[core + 1])), range(cores)))


@kernel
def _side(value: float, width: float, offset: float) -> int:
    """As `_places`: all steps but the division and the sum are exact, and these round alike."""
    position = np.floor(value / width + offset)
    return int(position - 16.0 * np.floor(position / 16.0)) if np.isfinite(position) else 0


@kernel
def _tally(values: Floats, columns: Ints, widths: Floats, offsets: Floats) -> Ints:
    counts = np.zeros((len(columns), 256), dtype=np.int64)
    for row in range(len(values)):
        for grid in range(len(columns)):
            first = _side(values[row, columns[grid, 0]], widths[grid, 0], offsets[grid, 0])
            second = _side(values[row, columns[grid, 1]], widths[grid, 1], offsets[grid, 1])
            counts[grid, 16 * first + second] += 1
    return counts


@kernel
def _add(values: Floats, columns: Ints, widths: Floats, offsets: Floats, surprises: Floats) -> Floats:
    scores = np.zeros(len(values))
    for row in range(len(values)):
        total = 0.0
        for grid in range(len(columns)):
            first = _side(values[row, columns[grid, 0]], widths[grid, 0], offsets[grid, 0])
            second = _side(values[row, columns[grid, 1]], widths[grid, 1], offsets[grid, 1])
            total += surprises[grid, 16 * first + second]
        scores[row] = total / len(columns)
    return scores
