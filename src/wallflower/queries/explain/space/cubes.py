"""Sums over every context at once, in blocks, on all cores, in bounded memory.

A measure is a number per record, or per cell, and every context wants its sum. Sums over all subsets of values cost one
addition each: the sum with one more value is the sum without it plus that value's slice. The lowest bits of an index
are unfolded beforehand into a *leaf*, a vector of sums that fits the nearest cache; the higher bits are walked in
counting order, where the sums that belong to the leading bits stay until one of those bits
changes. A block is reduced and forgotten: 2³² contexts need no more memory than 2²².
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from queue import SimpleQueue
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.tables import AnyTable, Bools, Counts, Floats, Ints, choose_rows

T = TypeVar("T")
Fill = Callable[[int, NDArray[Any], Counts], None]  # from an index on: outcomes and populations of a stretch
Part = tuple[int, int, Fill]  # the first index, the number of contexts, and what fills in a stretch of them
Walk = tuple[Counts, Floats, Ints, Ints, Bools, Ints, int, int, int]  # the first arguments of every kernel over a cube
Work = Callable[[int, Walk, NDArray[Any], Counts], None]

LEAF_BITS: Final = 10  # 1024 contexts, fewer where there are many measures
MAX_CELLS: Final = 1 << 20  # numbers that are unfolded; with more, the first attributes are taken one choice at a time
BLOCK_CONTEXTS: Final = 1 << 20
MIN_BLOCK_CONTEXTS: Final = 1 << 12
MAX_BITS: Final = 40  # bits of an index; beyond, a pass would take days


def run_in_blocks(
    space: Space, parts: Iterator[Part], dtype: type, reduce: Callable[[int, NDArray[Any], Counts], T]
) -> Iterator[T]:
    """Examine all contexts, and yield `reduce(first index, outcomes, populations)` of each block, in order.

    `reduce` runs in the thread that filled the block, and must copy what it keeps.
    """
    if space.length > MAX_BITS:
        raise ParameterError(
            f"domain_sizes: 2^{space.length} contexts are more than the 2^{MAX_BITS} that can all be examined; "
            "name fewer values, or choose a search that examines few."
        )
    with progress.steps("examining contexts", space.count) as step:
        if space.count <= MIN_BLOCK_CONTEXTS:  # threads would take longer to start than the contexts to examine
            for first, count, fill in parts:
                outcomes: NDArray[Any] = np.empty(count, dtype)
                populations = np.empty(count, np.int32)
                fill(0, outcomes, populations)
                yield reduce(first, outcomes, populations)
                step(count)
        else:
            yield from _run_on_all_cores(space, parts, dtype, reduce, step)


def _run_on_all_cores(
    space: Space,
    parts: Iterator[Part],
    dtype: type,
    reduce: Callable[[int, NDArray[Any], Counts], T],
    step: progress.Step,
) -> Iterator[T]:
    cores = len(os.sched_getaffinity(0))
    block = 1 << (max(MIN_BLOCK_CONTEXTS, min(BLOCK_CONTEXTS, space.count // (4 * cores))).bit_length() - 1)
    buffers: SimpleQueue[tuple[NDArray[Any], Counts]] = SimpleQueue()
    for _ in range(cores):
        buffers.put((np.empty(block, dtype), np.empty(block, np.int32)))

    def examine(first: int, start: int, stop: int, fill: Fill) -> T:
        buffer = buffers.get()
        try:
            outcomes, populations = buffer[0][: stop - start], buffer[1][: stop - start]
            fill(start, outcomes, populations)
            return reduce(first + start, outcomes, populations)
        finally:
            buffers.put(buffer)

    def finish_first() -> T:
        count, future = waiting.popleft()
        result = future.result()
        step(count)
        return result

    with ThreadPoolExecutor(cores) as pool:
        waiting: deque[tuple[int, Future[T]]] = deque()
        try:
            for first, count, fill in parts:
                for start in range(0, count, block):
                    stop = min(start + block, count)
                    waiting.append((stop - start, pool.submit(examine, first, start, stop, fill)))
                    while len(waiting) > 3 * cores:
                        yield finish_first()
            while waiting:
                yield finish_first()
        finally:
            for _, future in waiting:
                future.cancel()


def walk_parts(table: AnyTable, counts: Counts, sums: Floats, work: Work) -> Iterator[Part]:
    """Return parts that walk the cubes of some measures: `work(first index, walk, outcomes, populations)` fills in a
    stretch. `walk` has memory for the sums, the path, and the leaves to visit."""
    for first, cube in _cubes(table, counts, sums):
        yield first, cube.leaf << cube.bits, _filler(first, cube, work)


def count_parts(table: AnyTable, counts: Counts) -> Iterator[Part]:
    """Return parts that add up one whole-number measure in the place of populations."""

    def work(_: int, walk: Walk, outcomes: NDArray[Any], scores: Counts) -> None:
        sum_leaves(*walk, scores[None], no_sums(len(scores)))

    return walk_parts(table, counts[None], no_sums(len(table.slots)), work)


def no_sums(n: int) -> Floats:
    """Return sums of no measure."""
    return np.empty((0, n))


def _filler(first: int, cube: Cube, work: Work) -> Fill:
    idle: SimpleQueue[tuple[Counts, Floats]] = SimpleQueue()
    for _ in range(len(os.sched_getaffinity(0))):
        idle.put(cube.arenas())

    def fill(start: int, outcomes: NDArray[Any], populations: Counts) -> None:
        arenas = idle.get()
        leaves = start // cube.leaf, (start + len(outcomes)) // cube.leaf, cube.leaf
        try:
            work(first, (*arenas, cube.size, cube.slot, cube.opens, cube.room, *leaves), outcomes, populations)
        finally:
            idle.put(arenas)

    return fill


@dataclass(frozen=True, slots=True)
class Cube:
    """Counts and sums of all cells, and how to walk them.

    `size`, `slot`, `opens` and `room` have one entry per walked bit, highest first: how many numbers the bit's slices
    hold, where its slice stands among those of its attribute, whether it is the attribute's first, and where sums go.
    """

    whole: Counts
    broken: Floats
    size: Ints
    slot: Ints
    opens: Bools
    room: Ints
    leaf: int

    @property
    def bits(self) -> int:
        return len(self.size)

    def arenas(self) -> tuple[Counts, Floats]:
        """Copy the cells with room for sums behind them: one copy per thread."""
        end = self.whole.shape[1] + int(self.size.sum())
        whole, broken = np.empty((len(self.whole), end), np.int32), np.empty((len(self.broken), end))
        whole[:, : self.whole.shape[1]], broken[:, : self.broken.shape[1]] = self.whole, self.broken
        return whole, broken


def _cubes(table: AnyTable, whole: Counts, broken: Floats) -> Iterator[tuple[int, Cube]]:
    """Yield cubes that together hold all contexts, each with its first index; mostly there is a single cube."""
    free = table.space.free
    weight = max(1, (len(whole) + 2 * len(broken)) // 5)  # in units of what Grubbs' test needs
    bits = max(min(5, LEAF_BITS), LEAF_BITS - weight.bit_length() + 1)
    lead = 0
    while lead < len(free) and _unfolded_size(free[lead:], bits) > MAX_CELLS // weight:
        lead += 1
    below = sum(free[lead:])
    for choice in range(1 << sum(free[:lead])):
        kept = choose_rows(table.slots, free[:lead], choice)
        yield choice << below, _make_cube(table.slots[kept, lead:], free[lead:], bits, whole[:, kept], broken[:, kept])


def _split_at_leaf(free: Sequence[int], bits: int) -> tuple[int, int, int]:
    """Return the attribute that the leaf cuts in two, how many of its values are in the leaf, and the leaf's bits."""
    leaf = min(bits, sum(free))
    within, cut = 0, len(free)
    while cut > 0 and within < leaf:
        cut -= 1
        within += free[cut]
    return cut, (leaf - (within - free[cut]) if cut < len(free) else 0), leaf


def _unfolded_size(free: Sequence[int], bits: int) -> int:
    cut, inside, leaf = _split_at_leaf(free, bits)
    walked = [others + 1 for others in free[:cut]] + [free[cut] - inside + 1 if cut < len(free) else 1]
    return prod(walked) << leaf


def _make_cube(slots: Ints, free: Sequence[int], bits: int, whole: Counts, broken: Floats) -> Cube:
    cut, inside, leaf = _split_at_leaf(free, bits)
    size: list[int] = []
    slot: list[int] = []
    opens: list[bool] = []
    rest = 1 << leaf
    for others in reversed([*free[:cut], *(free[at] - inside for at in range(cut, min(cut + 1, len(free))))]):
        size[:0] = [rest] * others
        slot[:0] = [rest * at for at in range(1, others + 1)]
        opens[:0] = [at == 0 for at in range(others)]
        rest *= others + 1
    room = rest + np.concatenate([[0], np.cumsum(size, dtype=np.int64)])[:-1]
    shape = tuple(others + 1 for others in free)
    cell = np.ravel_multi_index(tuple(slots.T), shape) if len(free) else np.zeros(len(slots), np.int64)

    def unfold(measures: NDArray[Any], dtype: type) -> NDArray[Any]:
        unfolded: NDArray[Any] = np.empty((len(measures), rest), dtype)
        for row, measure in enumerate(measures):
            sums = np.bincount(cell, weights=measure, minlength=prod(shape)).reshape(shape)
            unfolded[row] = _unfold(sums.astype(dtype), cut, inside).reshape(-1)
        return unfolded

    path = np.array(size, np.int64), np.array(slot, np.int64), np.array(opens, np.bool_), room.astype(np.int64)
    return Cube(unfold(whole, np.int32), unfold(broken, np.float64), *path, 1 << leaf)


def _unfold(sums: NDArray[Any], cut: int, inside: int) -> NDArray[Any]:
    """Replace values by sets of values in the leaf's attributes, and in the leaf's part of the one that is cut."""
    for axis in range(sums.ndim - 1, cut, -1):
        sums = _add_subsets(sums, axis)
    if cut >= sums.ndim:
        return sums
    outside = sums.shape[cut] - 1 - inside
    own = np.take(sums, [0, *range(outside + 1, sums.shape[cut])], axis=cut)
    within = np.expand_dims(_add_subsets(own, cut), cut)
    beyond = np.expand_dims(np.take(sums, range(1, outside + 1), axis=cut), cut + 1)
    return np.concatenate([within, np.repeat(beyond, 1 << inside, axis=cut + 1)], axis=cut)


def _add_subsets(sums: NDArray[Any], axis: int) -> NDArray[Any]:
    subsets = np.take(sums, [0], axis=axis)
    for slot in range(sums.shape[axis] - 1, 0, -1):
        subsets = np.concatenate([subsets, np.add(subsets, np.take(sums, [slot], axis=axis))], axis=axis)
    return subsets


@kernel
def descend(
    whole: Counts, broken: Floats, size: Ints, slot: Ints, opens: Bools, room: Ints, at: Ints, base: Ints,
    leaf: int, changed: int,
) -> int:  # fmt: skip
    """Bring the sums up to date from bit `changed` on; return where the leaf of sums stands."""
    bits = len(size)
    for i in range(changed, bits):
        before = at[i]
        base[i] = before if opens[i] else base[i - 1]
        at[i + 1] = before
        if (leaf >> (bits - 1 - i)) & 1:
            other, to = base[i] + slot[i], room[i]
            at[i + 1] = to
            for q in range(len(whole)):
                a, b, out = whole[q, before : before + size[i]], whole[q, other : other + size[i]], whole[q, to:]
                for x in range(size[i]):
                    out[x] = a[x] + b[x]
            for r in range(len(broken)):
                c, d, sums = broken[r, before : before + size[i]], broken[r, other : other + size[i]], broken[r, to:]
                for x in range(size[i]):
                    sums[x] = c[x] + d[x]
    return int(at[bits])


@kernel
def changed_bit(leaf: int, first: int, bits: int) -> int:
    """Return the highest bit, counted from the top, in which a leaf differs from the one before it."""
    if leaf == first:
        return 0
    steps = leaf ^ (leaf - 1)
    low = -1
    while steps:
        steps >>= 1
        low += 1
    return bits - 1 - low


@kernel
def sum_leaves(
    whole: Counts, broken: Floats, size: Ints, slot: Ints, opens: Bools, room: Ints, first: int, last: int, length: int,
    whole_out: Counts, broken_out: Floats,
) -> None:  # fmt: skip
    """Write the sums of all measures for the leaves first … last-1."""
    at, base = np.zeros(len(size) + 1, np.int64), np.zeros(len(size) + 1, np.int64)
    for leaf in range(first, last):
        changed = changed_bit(leaf, first, len(size))
        start = descend(whole, broken, size, slot, opens, room, at, base, leaf, changed)
        to = (leaf - first) * length
        for q in range(len(whole)):
            for x in range(length):
                whole_out[q, to + x] = whole[q, start + x]
        for r in range(len(broken)):
            for x in range(length):
                broken_out[r, to + x] = broken[r, start + x]
