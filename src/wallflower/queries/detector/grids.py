"""Random grids: two columns each, cells that wrap round, so that no bounds and no location are needed.

Everything about a grid is public: its columns, widths and offsets come from a key that was drawn before any record was
looked at, and from spreads that were released. A cell depends on one record and on these numbers alone.  (C)
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SIDE: Final = 16  # cells on a side, after which they wrap round
CELLS: Final = SIDE * SIDE
NARROWEST: Final = 2.0  # spreads that a cell is wide at least; twice that at most
PART: Final = 2**14  # records at a time, so that what is computed on the way stays in the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Cells of two columns, named by their places: x is in row floor(x/width + offset), modulo 16."""

    columns: tuple[int, int]
    widths: tuple[float, float]
    offsets: tuple[float, float]

    def cells(self, values: Floats) -> Ints:
        """The cell of each record, from 0 to 255."""
        first, second = (
            _places(values[:, column], width, offset)
            for column, width, offset in zip(self.columns, self.widths, self.offsets, strict=True)
        )
        return first * SIDE + second

    def to_json(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "widths": list(self.widths), "offsets": list(self.offsets)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        (a, b), (u, v), (s, t) = stored["columns"], stored["widths"], stored["offsets"]
        return cls(columns=(int(a), int(b)), widths=(float(u), float(v)), offsets=(float(s), float(t)))


def _places(values: Floats, width: float, offset: float) -> Ints:
    """Along one side, from 0 to 15; what is not finite is in 0."""
    with np.errstate(all="ignore"):
        found = np.floor(values / width + offset) % SIDE
    return np.where(np.isfinite(found), found, 0.0).astype(np.int64)


class Coins:
    """Numbers that whoever knows the key can draw again."""

    def __init__(self, key: int) -> None:
        self._key, self._drawn = key.to_bytes(16, "big"), 0

    def word(self) -> int:
        """The next 64 bits."""
        block = hashlib.shake_256(self._key + self._drawn.to_bytes(8, "big")).digest(8)
        self._drawn += 1
        return int.from_bytes(block, "big")

    def uniform(self) -> float:
        """From 0 to below 1, in steps of 2^-53."""
        return (self.word() >> 11) * 2.0**-53

    def shuffled(self, items: Sequence[int]) -> list[int]:
        found = list(items)
        for last in range(len(found) - 1, 0, -1):
            other = self.word() * (last + 1) >> 64
            found[last], found[other] = found[other], found[last]
        return found


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
            deck = _without_repeat(deck, coins.shuffled(columns))
        pairs.append((deck[0], deck[1]))
        deck = deck[2:]
    return pairs


def _without_repeat(left: list[int], deck: list[int]) -> list[int]:
    """What was left over, then a new deck, which does not begin with the same column."""
    if left and deck[0] == left[0]:
        deck[0], deck[1] = deck[1], deck[0]
    return left + deck


def lay_grids(spreads: Mapping[int, float], count: int, coins: Coins) -> list[Grid]:
    """So many grids over columns whose spreads are known."""
    grids = []
    for pair in deal(sorted(spreads), count, coins):
        widths = [NARROWEST * 2.0 ** coins.uniform() * spreads[column] for column in pair]
        offsets = [SIDE * coins.uniform() for _ in pair]
        grids.append(Grid(columns=pair, widths=(widths[0], widths[1]), offsets=(offsets[0], offsets[1])))
    return grids


def parts_of(values: Floats) -> Iterator[slice]:
    """The records, part by part."""
    for start in range(0, len(values), PART):
        yield slice(start, start + PART)


def count_cells(values: Floats, grids: Sequence[Grid]) -> Ints:
    """How many records are in each cell of each grid: one record is in one cell of each.  (C)"""
    found = np.zeros((len(grids), CELLS), dtype=np.int64)
    for part in parts_of(values):
        for place, grid in enumerate(grids):
            found[place] += np.bincount(grid.cells(values[part]), minlength=CELLS)
    return found
