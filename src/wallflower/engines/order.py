"""Rows in lexicographic order, also more of them than fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wallflower.engines.scratch import Scratch

Rows = NDArray[Any]

WAYS = 32  # how many cuts a heap of rows is dealt out by
SEEN = 64  # rows of every block that the cuts are taken from


def sort_block(rows: Rows) -> Rows:
    """Rows that are in memory, in lexicographic order: by the first column, then those that tie in it by the others.

    >>> sort_block(np.array([[3, 1], [1, 2], [1, 1]])).tolist()
    [[1, 1], [1, 2], [3, 1]]
    """
    order = np.argsort(rows[:, 0])
    line = rows[order, 0]
    follows = line[1:] == line[:-1]
    tied = np.flatnonzero(np.append(follows, False) | np.append(False, follows))
    ties = order[tied]
    order[tied] = ties[np.lexsort(rows[ties].T[::-1])]
    ordered: Rows = rows[order]
    return ordered


def sort_rows(blocks: Iterable[Rows], most: int) -> Iterator[Rows]:
    """The rows of all blocks in lexicographic order, in blocks again; about `most` of them are in memory at a time.

    >>> blocks = [np.array([[3, 1], [1, 2]]), np.array([[1, 1], [2, 0], [3, 0]])]
    >>> [block.tolist() for block in sort_rows(blocks, 2)]
    [[[1, 1], [1, 2]], [[2, 0]], [[3, 0], [3, 1]]]
    """
    yield from _sort_heap(_Heap.of(blocks), 0, most)


class _Heap:
    """Rows in a scratch file, in blocks, and some of each block."""

    def __init__(self) -> None:
        self.rows, self._scratch = 0, Scratch()
        self.seen: list[Rows] = []
        self._places: list[tuple[int, tuple[int, ...], Any]] = []

    @classmethod
    def of(cls, blocks: Iterable[Rows]) -> _Heap:
        heap = cls()
        for block in blocks:
            heap.add(block)
        return heap

    def add(self, block: Rows) -> None:
        if len(block):
            self.rows += len(block)
            self.seen.append(block[:: max(1, len(block) // SEEN)].copy())
            self._places.append((self._scratch.append(block), block.shape, block.dtype))

    def blocks(self) -> Iterator[Rows]:
        for start, shape, kind in self._places:
            yield self._scratch.read(start, shape[0] * shape[1], kind).reshape(shape)

    def close(self) -> None:
        self._scratch.close()


def _sort_heap(heap: _Heap, column: int, most: int) -> Iterator[Rows]:
    """Rows of a heap that are equal in the columns before `column`. Those equal to a cut are put by themselves, so
    every heap that is dealt out further is smaller, or has one column less to be sorted by."""
    try:
        if heap.rows == 0:
            return
        width = heap.seen[0].shape[1]
        if heap.rows <= most or column == width:
            for block in heap.blocks() if column == width else [np.concatenate(list(heap.blocks()))]:
                yield sort_block(block)
            return
        sample = np.sort(np.concatenate(heap.seen)[:, column])
        cuts = np.unique(sample[np.linspace(0, len(sample) - 1, WAYS + 2).astype(np.int64)[1:-1]])
        heaps = _deal(heap, column, cuts)
    finally:
        heap.close()
    for place, part in enumerate(heaps):
        yield from _sort_heap(part, column + place % 2, most)


def _deal(heap: _Heap, column: int, cuts: Rows) -> list[_Heap]:
    """Below the first cut, equal to it, between it and the second, and so on."""
    heaps = [_Heap() for _ in range(2 * len(cuts) + 1)]
    for block in heap.blocks():
        cells = block[:, column]
        below, equal = np.searchsorted(cuts, cells, side="left"), np.searchsorted(cuts, cells, side="right")
        place = below + equal
        order = np.argsort(place, kind="stable")
        edges = np.searchsorted(place[order], np.arange(len(heaps) + 1))
        for part, (start, stop) in zip(heaps, pairwise(edges), strict=True):
            part.add(block[order[start:stop]])
    return heaps
