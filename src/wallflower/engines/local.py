"""Tiles on one machine, out of core: what is in memory at a time is one chunk of the table, or one tile.

Kernels run on all cores, tile after tile. How much is read and written follows from the number of records and columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.engines import Cells, ChunkTask, Codes, Floats, Given, Task
from wallflower.engines.order import sort_block
from wallflower.engines.scratch import Scratch
from wallflower.engines.tiling import SAMPLE, Tiling, plan_tiles

Ints = NDArray[np.int64]
Place = tuple[int, int, Any]  # where an array begins, how many numbers it has, and of which kind

DEALS = 1024  # times that records are dealt out to tiles, so that a tile is put together of so many pieces at most
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
        """Write the records anew, those of one group side by side within every chunk; then tell groups one by one."""
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
        found, width = [], self.width
        for edges in self.edges:
            start, stop = int(edges[tile]), int(edges[tile + 1])
            if start < stop:
                found.append(self.scratch.read(start * width * 8, (stop - start) * width, np.float64))
        return sort_block(np.concatenate(found).reshape(-1, width))


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
                if (told := given(tile)) is not None:
                    values = self._scratch.read(start, rows * self._width, np.float64).reshape(rows, self._width)
                    yield tile, task(values, told)
                _advance(step, tile, len(self._places))

    def close(self) -> None:
        """Free the room."""
        self._scratch.close()


def _advance(step: progress.Step, done: int, of: int) -> None:
    step(PARTS * (done + 1) // of - PARTS * done // of)
