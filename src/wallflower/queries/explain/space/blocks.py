"""Work through all contexts in blocks, on all cores, in bounded memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.errors import ParameterError
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.cube import Bools, Counts, Cube, Ints, cubes
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable

T = TypeVar("T")
Fill = Callable[[int, NDArray[Any], Counts], None]
Walk = tuple[Counts, Floats, Ints, Ints, Bools, Ints, int, int, int]  # what every kernel of a cube begins with
Part = tuple[int, int, Fill]  # the first index, how many contexts, and what fills in a stretch of them

BLOCK: Final = 1 << 20
LEAST: Final = 1 << 12
SWEPT: Final = 40  # bits of an index; beyond, a pass would take days


def in_blocks(
    space: Space, parts: Iterator[Part], kind: type, reduce: Callable[[int, NDArray[Any], Counts], T]
) -> Iterator[T]:
    """Fill blocks of outcomes (of type `kind`) and populations; yields what `reduce` makes of each, in order."""
    if space.length > SWEPT:
        raise ParameterError(
            f"domain_sizes: 2^{space.length} contexts are more than the 2^{SWEPT} that can all be examined; "
            "name fewer values, or choose a search that asks about few."
        )
    with progress.steps("examining contexts", space.count) as step:
        if space.count <= LEAST:  # threads would take longer to start than the contexts to examine
            yield from _one_by_one(parts, kind, reduce, step)
        else:
            yield from _on_all_cores(space, parts, kind, reduce, step)


def _one_by_one(
    parts: Iterator[Part], kind: type, reduce: Callable[[int, NDArray[Any], Counts], T], step: progress.Step
) -> Iterator[T]:
    for first, count, fill in parts:
        outcomes: NDArray[Any] = np.empty(count, kind)
        populations = np.empty(count, np.int32)
        fill(0, outcomes, populations)
        yield reduce(first, outcomes, populations)
        step(count)


def _on_all_cores(
    space: Space,
    parts: Iterator[Part],
    kind: type,
    reduce: Callable[[int, NDArray[Any], Counts], T],
    step: progress.Step,
) -> Iterator[T]:
    cores = len(os.sched_getaffinity(0))
    block = 1 << (max(LEAST, min(BLOCK, space.count // (4 * cores))).bit_length() - 1)
    rooms: SimpleQueue[tuple[NDArray[Any], Counts]] = SimpleQueue()
    for _ in range(cores):
        rooms.put((np.empty(block, kind), np.empty(block, np.int32)))

    def examine(first: int, start: int, stop: int, fill: Fill) -> T:
        room = rooms.get()
        try:
            outcomes, populations = room[0][: stop - start], room[1][: stop - start]
            fill(start, outcomes, populations)
            return reduce(first + start, outcomes, populations)
        finally:
            rooms.put(room)

    with ThreadPoolExecutor(cores) as pool:
        waiting: deque[tuple[int, Future[T]]] = deque()
        try:
            for first, count, fill in parts:
                for start in range(0, count, block):
                    stop = min(start + block, count)
                    waiting.append((stop - start, pool.submit(examine, first, start, stop, fill)))
                    while len(waiting) > 3 * cores:
                        yield _finish_first(waiting, step)
            while waiting:
                yield _finish_first(waiting, step)
        finally:
            for _, future in waiting:
                future.cancel()


def _finish_first(waiting: deque[tuple[int, Future[T]]], step: progress.Step) -> T:
    count, future = waiting.popleft()
    found = future.result()
    step(count)
    return found


def walk_parts(
    table: RankedTable | CellTable,
    whole: Counts,
    broken: Floats,
    work: Callable[[int, Walk, NDArray[Any], Counts], None],
) -> Iterator[Part]:
    """Parts that walk the cubes of some measures: `work(first index, walk, outcomes, populations)` fills in a stretch.

    `walk` has memory for the sums, the way, and the leaves to visit.
    """
    for first, cube in cubes(table, whole, broken):
        yield first, cube.leaf << cube.bits, _filler(first, cube, work)


def _filler(first: int, cube: Cube, work: Callable[[int, Walk, NDArray[Any], Counts], None]) -> Fill:
    idle: SimpleQueue[tuple[Counts, Floats]] = SimpleQueue()
    for _ in range(len(os.sched_getaffinity(0))):
        idle.put(cube.arenas())

    def fill(start: int, outcomes: NDArray[Any], populations: Counts) -> None:
        arenas = idle.get()
        leaves = start // cube.leaf, (start + len(outcomes)) // cube.leaf, cube.leaf
        try:
            work(first, (*arenas, *cube.way(), *leaves), outcomes, populations)
        finally:
            idle.put(arenas)

    return fill
