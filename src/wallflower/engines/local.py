"""Tiles on one machine, out of core: what is in memory at a time is one chunk of the table, or one tile.

Kernels run on all cores, tile after tile. How much is read and written follows from the number of records and columns.
"""

from __future__ import annotations

import math
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.engines.engine import Cells, ChunkTask, Codes, Floats, Given, Task
from wallflower.errors import SourceError

Ints = NDArray[np.int64]
Place = tuple[int, int, Any]  # where an array begins, how many numbers it has, and of which kind

DEALS = 1024  # times that records are dealt out to tiles, so that a tile has at most that many pieces
PARTS = 100  # steps that are told of a pass over the tiles: how many tiles there are depends on the records


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Keeps tables in scratch files of this process."""

    name: str = "tiles"

    def find(self, _: object) -> None:
        """It reads nothing by itself."""

    def keep(self, words: str, chunks: Iterable[Cells], total: int) -> LocalSheet:
        """Keep a table that comes in `total` chunks."""
        sheet = LocalSheet()
        with progress.steps(words, total) as step:
            for cells in chunks:
                sheet.add(cells)
                step()
        return sheet


class LocalSheet:
    """A table in a scratch file, chunk by chunk, and column by column within."""

    def __init__(self, scratch: Scratch | None = None) -> None:
        self.n, self.ordered = 0, True
        self._scratch = scratch or Scratch()
        self._places: list[list[Place]] = []

    def add(self, cells: Cells) -> None:
        """Take in some more records."""
        self.place([(self._scratch.append(column), len(column), column.dtype) for column in cells])

    def place(self, columns: list[Place]) -> None:
        """Take in some more records, which the scratch file has already."""
        self._places.append(columns)
        self.n += columns[0][1]

    def chunks(self, columns: Sequence[int]) -> Iterator[Cells]:
        for places in self._places:
            yield [self._scratch.read(*places[column]) for column in columns]

    def each(self, words: str, columns: Sequence[int], task: ChunkTask, given: Given) -> Iterator[Given]:
        """The task's answer for every chunk."""
        with progress.steps(words, len(self._places)) as step:
            for cells in self.chunks(columns):
                yield task(cells, given)
                step()

    def group(self, columns: Sequence[int], codes: Codes, groups: int) -> Iterator[LocalSheet]:
        """Write the records again, those of one group side by side within every chunk; then tell groups one by one."""
        scratch, written = Scratch(), []
        try:
            with progress.steps("sorting records by group", len(self._places)) as step:
                for cells, by in zip(self.chunks(range(self._width)), self.chunks(columns), strict=True):
                    code = codes(by)
                    order = np.argsort(code, kind="stable")
                    starts = [(scratch.append(column[order]), column.dtype) for column in cells]
                    written.append((starts, np.searchsorted(code[order], np.arange(groups + 1))))
                    step()
            for group in range(groups):
                sheet = LocalSheet(scratch)
                sheet.ordered = False  # who is in a group moves all that come after
                for starts, edges in written:
                    if count := int(edges[group + 1] - edges[group]):
                        sheet.place([(at + int(edges[group]) * kind.itemsize, count, kind) for at, kind in starts])
                yield sheet
        finally:
            scratch.close()

    @property
    def _width(self) -> int:
        return len(self._places[0])

    @contextmanager
    def tile(self, columns: Sequence[int], shape: Callable[[Cells], Floats], *, size: int) -> Iterator[LocalTiles]:
        """Cut the records into tiles, which last as long as the block."""
        with progress.steps("cutting the table into tiles", 2 * len(self._places)) as step:
            tiling = plan_tiles(self._sample(columns, shape, step), self.n, size)
            dealt = self._deal(columns, shape, tiling, step)
        tiles = None
        try:
            tiles = LocalTiles(dealt)
            yield tiles
        finally:
            dealt.scratch.close()
            if tiles is not None:
                tiles.close()

    def _sample(self, columns: Sequence[int], shape: Callable[[Cells], Floats], step: progress.Step) -> Floats:
        """Every so-manieth record."""
        every, start, taken = max(1, self.n // SAMPLE), 0, []
        for cells in self.chunks(columns):
            picked = [column[-start % every :: every] for column in cells]
            start += len(cells[0])
            if len(picked[0]):
                taken.append(shape(picked))
            step()
        return np.concatenate(taken)

    def _deal(
        self, columns: Sequence[int], shape: Callable[[Cells], Floats], tiling: Tiling, step: progress.Step
    ) -> _DealtRows:
        """Write the records, those of one tile side by side within every deal: of a chunk, or of a few."""
        dealt, start, chunks = _DealtRows(Scratch(), []), 0, self.chunks(columns)
        many = -(-len(self._places) // DEALS)
        while taken := list(islice(chunks, many)):
            values = np.concatenate([shape(cells) for cells in taken])
            tile = tiling.assign(values, start)
            start += len(values)
            few = tile.astype(np.min_scalar_type(tiling.tiles))  # numbers of one or two bytes are sorted soonest
            dealt.scratch.append(values[np.argsort(few, kind="stable")])
            counts = np.bincount(tile, minlength=tiling.tiles)
            dealt.edges.append(start - len(values) + np.concatenate([[0], np.cumsum(counts)]))
            dealt.width = values.shape[1]
            step(len(taken))
        return dealt


@dataclass(slots=True)
class _DealtRows:
    """Rows in the order of deals, then of tiles; those of tile t in deal c begin at row `edges[c][t]`."""

    scratch: Scratch
    edges: list[Ints]
    width: int = 0

    def sizes(self) -> Ints:
        """How many records each tile has."""
        sizes: Ints = np.sum([np.diff(edges) for edges in self.edges], axis=0)
        return sizes

    def rows(self, tile: int) -> Floats:
        """The records of a tile, in lexicographic order."""
        pieces, width = [], self.width
        for edges in self.edges:
            start, stop = int(edges[tile]), int(edges[tile + 1])
            if start < stop:
                pieces.append(self.scratch.read(start * width * 8, (stop - start) * width, np.float64))
        return sort_block(np.concatenate(pieces).reshape(-1, width))


class LocalTiles:
    """Tiles in a scratch file, those without a record left out."""

    def __init__(self, dealt: _DealtRows) -> None:
        self._scratch, self._places, self._width = Scratch(), [], dealt.width
        boxes = []
        kept = np.flatnonzero(dealt.sizes())
        with progress.steps("sorting tiles", PARTS) as step:
            for done, tile in enumerate(kept.tolist()):
                values = dealt.rows(tile)
                boxes.append((values.min(axis=0), values.max(axis=0)))
                self._places.append((self._scratch.append(values), len(values)))
                _advance(step, done, len(kept))
        self.low, self.high = np.array([low for low, _ in boxes]), np.array([high for _, high in boxes])

    def each(self, words: str, task: Task, given: Callable[[int], Given | None]) -> Iterator[tuple[int, Given]]:
        """The task's answer for every tile that something is given to."""
        with progress.steps(words, PARTS) as step:
            for tile, (start, rows) in enumerate(self._places):
                if (arguments := given(tile)) is not None:
                    values = self._scratch.read(start, rows * self._width, np.float64).reshape(rows, self._width)
                    yield tile, task(values, arguments)
                _advance(step, tile, len(self._places))

    def close(self) -> None:
        """Free the room."""
        self._scratch.close()


def _advance(step: progress.Step, done: int, of: int) -> None:
    step(PARTS * (done + 1) // of - PARTS * done // of)


FOLDER: Final = "WALLFLOWER_SCRATCH"


class Scratch:
    """A file of arrays."""

    def __init__(self) -> None:
        self._end = 0
        try:
            with tempfile.TemporaryFile(dir=os.environ.get(FOLDER)) as file:
                self._file = os.dup(file.fileno())
        except OSError as error:
            refusal = _no_room(error)
        else:
            self.close = weakref.finalize(self, os.close, self._file)
            return
        raise refusal

    def append(self, array: NDArray[Any]) -> int:
        """Write an array; where it begins."""
        start, data = self._end, memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        while len(data):
            try:
                written = os.pwrite(self._file, data[: 1 << 30], self._end)
            except OSError as error:
                refusal = _no_room(error)
                break
            self._end, data = self._end + written, data[written:]
        else:
            return start
        raise refusal

    def read(self, start: int, count: int, kind: Any) -> NDArray[Any]:
        """Read that many numbers of this type from there on."""
        array = np.empty(count, dtype=kind)
        buffer = memoryview(array.view(np.uint8).data)
        while len(buffer):
            got = os.preadv(self._file, [buffer[: 1 << 30]], start)
            start, buffer = start + got, buffer[got:]
        return array


def _no_room(error: OSError) -> SourceError:
    """How much is written follows from the number of records and columns, so that it fails tells nothing else."""
    where = os.environ.get(FOLDER) or tempfile.gettempdir()
    return SourceError(
        f"the scratch folder {where} cannot be written to ({os.strerror(error.errno or 0)}). "
        f"Free some room, or name another folder with {FOLDER}."
    )


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
    for index, part in enumerate(heaps):
        yield from _sort_heap(part, column + index % 2, most)


def _deal(heap: _Heap, column: int, cuts: Rows) -> list[_Heap]:
    """Below the first cut, equal to it, between it and the second, and so on."""
    heaps = [_Heap() for _ in range(2 * len(cuts) + 1)]
    for block in heap.blocks():
        cells = block[:, column]
        below, equal = np.searchsorted(cuts, cells, side="left"), np.searchsorted(cuts, cells, side="right")
        slot = below + equal
        order = np.argsort(slot, kind="stable")
        edges = np.searchsorted(slot[order], np.arange(len(heaps) + 1))
        for part, (start, stop) in zip(heaps, pairwise(edges), strict=True):
            part.add(block[order[start:stop]])
    return heaps


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
