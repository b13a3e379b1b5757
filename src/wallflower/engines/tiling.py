"""Which record goes to which tile: halves of halves of a sample.

Correctness never depends on it: whatever the tiles, the same records give the same answer. It only decides how many
records have neighbours in another tile, and how large a tile is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wallflower.engines import Floats

Ints = NDArray[np.int64]

SAMPLE = 200_000
HEAVY = 2  # times the wanted size: a leaf that holds more, as of equal records, is dealt out by turns


@dataclass(frozen=True, slots=True)
class Tiling:
    """Node v sends a record to node 2v + 1 if its coordinate `column[v]` is above `value[v]`, else to 2v; leaf l is
    dealt out by turns to the tiles from `first[l]` to `first[l+1]-1`."""

    depth: int
    column: Ints
    value: Floats
    first: Ints

    @property
    def tiles(self) -> int:
        return int(self.first[-1])

    def assign(self, values: Floats, start: int) -> Ints:
        """The tile of each of these records, of which the first is number `start` of the table."""
        leaf = self.leaves(values)
        parts = np.diff(self.first)[leaf]
        tile: Ints = self.first[leaf] + (start + np.arange(len(values))) % parts
        return tile

    def leaves(self, values: Floats) -> Ints:
        node, rows = np.ones(len(values), dtype=np.int64), np.arange(len(values))
        for _ in range(self.depth):
            node = 2 * node + (values[rows, self.column[node]] > self.value[node])
        return node - (1 << self.depth)


def plan_tiles(sample: Floats, n: int, size: int) -> Tiling:
    """Halve a sample, at the middle of its widest column, until a leaf stands for about `size` of `n` records."""
    depth = max(0, math.ceil(math.log2(max(n, 1) / size)))
    column, value = np.zeros(2 << depth, dtype=np.int64), np.full(2 << depth, np.inf)
    members = {1: sample}
    for node in range(1, 1 << depth):
        mine = members.pop(node)
        if len(mine):
            with np.errstate(over="ignore", invalid="ignore"):  # any column will do, and a warning depends on records
                column[node] = int(np.argmax(mine.std(axis=0)))
            value[node] = _middle(mine[:, column[node]])
        above = mine[:, column[node]] > value[node]
        members[2 * node], members[2 * node + 1] = mine[~above], mine[above]
    held = np.array([len(members[leaf]) for leaf in range(1 << depth, 2 << depth)]) * n / max(1, len(sample))
    parts = np.where(held > HEAVY * size, np.ceil(held / size), 1).astype(np.int64)
    return Tiling(depth, column, value, np.concatenate([[0], np.cumsum(parts)]))


def _middle(column: Floats) -> float:
    """The median, or the next value below if nothing were above it."""
    middle, most = float(np.partition(column, len(column) // 2)[len(column) // 2]), float(column.max())
    return middle if middle < most else float(column[column < most].max(initial=-np.inf))
