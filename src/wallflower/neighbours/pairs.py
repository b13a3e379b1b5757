"""Who is near whom: one canonical pair test, and a tree that only proposes.

`near(a, b)` sums squared differences in column order, so it is a deterministic, symmetric function of the pair alone:
no other row can flip it. The tree skips whole boxes when they are out of reach, and takes them whole when they are
inside it, by a margin of one part in 10⁹ that no rounding of `near` can cross (proof.md of `count`, label (P)).

Records are kept in blocks of one leaf each, column by column, so that a leaf is compared in one vectorised sweep.
The kernels release the interpreter lock and run on all cores; they are safe in threads and after a fork.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.jit import light_kernel
from wallflower.progress import count_cores

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Index = NDArray[np.int32]

LEAF_RECORDS = 32
MIN_PARALLEL_RECORDS = 128  # records: their neighbours are searched on one core
BOX_MARGIN = 1e-9


@dataclass(frozen=True, slots=True)
class Tree:
    """A balanced tree over records. Node 1 is the root, node v has children 2v and 2v+1; leaves are the last level."""

    order: Ints
    starts: Ints
    low: Floats
    high: Floats
    blocks: Floats
    reach: float

    @property
    def n(self) -> int:
        return len(self.order)

    @property
    def leaves(self) -> int:
        return len(self.starts) - 1


class Graph(Protocol):
    """Records and who is near whom, by any symmetric relation: `Relation` is one."""

    @property
    def n(self) -> int: ...
    @property
    def starts(self) -> Ints: ...
    def counts(self, cap: int, of: Index | None = None) -> Ints: ...
    def lists(self, length: int, of: Index | None = None) -> tuple[Index, Ints]: ...


def squared_reach(radius: float, dimension: int, *, normalise: bool) -> float:
    """The largest sum of squared differences that counts as near."""
    if not 1e-100 <= radius <= 1e120:  # squares must neither vanish nor overflow; `per_column` multiplies by √columns
        raise ParameterError(f"radius: {radius!r} is outside 1e-100 to 1e120; pass a positive distance.")
    return radius * radius * dimension if normalise else radius * radius


def near(one: Floats, other: Floats, reach: float) -> bool:
    """Whether two records are neighbours: the definition that every index obeys."""
    total = 0.0
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        total += (a - b) * (a - b)
    return total <= reach


def build_tree(values: Floats, reach: float) -> Tree:
    """Grow the tree over the rows of `values`."""
    n, dimension = values.shape
    depth = max(0, int(np.ceil(np.log2(max(n, 1) / LEAF_RECORDS))))
    leaves = 1 << depth
    starts = np.arange(leaves + 1, dtype=np.int64) * n // leaves
    order = np.arange(n, dtype=np.int64)
    low, high = np.empty((2 * leaves, dimension)), np.empty((2 * leaves, dimension))
    columns = np.array(values.T, order="C")
    tops = min(depth, 3)
    for level in range(tops):
        _split_level(columns, order, starts, low, high, 1 << level, 1)
    _split_level(columns, order, starts, low, high, 1 << tops, depth - tops + 1)
    blocks = np.empty((leaves, dimension, int(np.diff(starts).max(initial=1))))
    on_all_cores(leaves, lambda a, b: _fill(columns, starts, blocks, a, b))
    return Tree(order, starts, low, high, blocks, reach)


def index_points(points: ArrayLike, radius: float, *, normalise: bool) -> Tree:
    """The tree over the records, for one reach."""
    values = as_matrix(points)
    return build_tree(values, squared_reach(radius, values.shape[1], normalise=normalise))


def as_matrix(points: ArrayLike) -> Floats:
    """The records as a finite matrix, one row each; a vector is one column."""
    values = np.asarray(points, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(
            "points must be a table of numbers with at least one row and one column; pass one row per record."
        )
    if not np.isfinite(values).all():
        raise DataError("points hold missing or infinite numbers; every cell must be a finite number.")
    return values


def count_neighbours(tree: Tree | Graph, cap: int, of: Index | None = None) -> Ints:
    """How many others are near each record (in tree order), counted up to `cap`; or of the records `of` alone."""
    if not isinstance(tree, Tree):
        return tree.counts(cap, of)
    who = np.arange(tree.n, dtype=np.int32) if of is None else of
    found = np.zeros(len(who), dtype=np.int64)
    nothing = np.empty((len(who), 0), dtype=np.int32)
    on_all_cores(
        len(who), lambda a, b: _search(*_parts(tree), who[a:b], cap, nothing[a:b], found[a:b]), few=MIN_PARALLEL_RECORDS
    )
    return found


def list_neighbours(tree: Tree | Graph, length: int, of: Index | None = None) -> tuple[Index, Ints]:
    """The first `length` neighbours met by each record, as positions in tree order, and how many those are.

    Records are met from the own leaf outwards and in cyclic order within a leaf, so that no record is met by
    everybody: in a dense leaf every record is listed equally often.
    """
    if not isinstance(tree, Tree):
        return tree.lists(length, of)
    who = np.arange(tree.n, dtype=np.int32) if of is None else of
    met = np.zeros((len(who), length), dtype=np.int32)
    found = np.zeros(len(who), dtype=np.int64)
    on_all_cores(
        len(who), lambda a, b: _search(*_parts(tree), who[a:b], length, met[a:b], found[a:b]), few=MIN_PARALLEL_RECORDS
    )
    return met, found


def find_near_points(tree: Tree, points: Floats, length: int, skip: Index) -> tuple[Index, Ints]:
    """The first `length` records near each of these points, which may come from elsewhere, and how many those are.

    A point that is record `skip[q]` of the tree itself does not meet that one; -1 for those that are not in it.
    """
    met = np.zeros((len(points), length), dtype=np.int32)
    found = np.zeros(len(points), dtype=np.int64)
    on_all_cores(
        len(points),
        lambda a, b: _visit(*_parts(tree), points[a:b], skip[a:b], met[a:b], found[a:b]),
        few=MIN_PARALLEL_RECORDS,
    )
    return met, found


def on_all_cores(items: int, work: Callable[[int, int], object], *, few: int = 2) -> None:
    """Call `work(start, stop)` over slices of `range(items)`, on every core this process may use; fewer items than
    `few` are done sooner than a thread is started."""
    cores = count_cores()
    if items < few or cores == 1:
        work(0, items)
        return
    edges = np.linspace(0, items, min(items, 8 * cores) + 1, dtype=np.int64).tolist()
    with ThreadPoolExecutor(cores) as pool:
        for done in [pool.submit(work, start, stop) for start, stop in pairwise(edges)]:
            done.result()


def _split_level(columns: Floats, order: Ints, starts: Ints, low: Floats, high: Floats, size: int, levels: int) -> None:
    on_all_cores(size, lambda a, b: _split(columns, order, starts, low, high, size + a, size + b, levels))


def _parts(tree: Tree) -> tuple[Ints, Floats, Floats, Floats, float]:
    return tree.starts, tree.low, tree.high, tree.blocks, tree.reach


@light_kernel
def _split(
    columns: Floats, order: Ints, starts: Ints, low: Floats, high: Floats, first: int, last: int, levels: int
) -> None:
    """Box the nodes first … last-1 and halve them at the middle of their widest column, `levels` levels deep.

    Cells move with their records, and a node is done with all below it before the next: what is looked at lies
    together, and from some level on in the cache of a core.
    """
    leaves = len(starts) - 1
    bottom = _level_size(first) << (levels - 1)
    stack = np.empty(64, np.int64)
    for root in range(first, last):
        top = 0
        stack[0] = root
        while top >= 0:
            node = stack[top]
            top -= 1
            size = _level_size(node)
            span = leaves // size
            at = (node - size) * span
            start, stop = starts[at], starts[at + span]
            widest = _box(columns, start, stop, low[node], high[node])
            if span > 1:
                _select(columns, widest, order, start, stop - 1, starts[at + span // 2])
                if size < bottom:
                    stack[top + 1], stack[top + 2] = 2 * node + 1, 2 * node
                    top += 2


@light_kernel
def _level_size(node: int) -> int:
    size = 1
    while 2 * size <= node:
        size *= 2
    return size


@light_kernel
def _box(columns: Floats, start: int, stop: int, low: Floats, high: Floats) -> int:
    """Note the box of some records; its widest column."""
    widest, width = 0, -1.0
    for c in range(len(columns)):
        least, most = np.inf, -np.inf
        for i in range(start, stop):
            x = columns[c, i]
            least, most = min(least, x), max(most, x)
        low[c], high[c] = least, most
        if most - least > width:
            widest, width = c, most - least
    return widest


@light_kernel
def _select(columns: Floats, by: int, order: Ints, left: int, right: int, middle: int) -> None:
    """Quickselect: afterwards everything before `middle` is at most what stands there, everything after at least."""
    column = columns[by]
    while left < right:
        a, b, c = column[left], column[(left + right) // 2], column[right]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = left, right
        while i <= j:
            while column[i] < pivot:
                i += 1
            while column[j] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                for each in range(len(columns)):
                    columns[each, i], columns[each, j] = columns[each, j], columns[each, i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@light_kernel
def _fill(columns: Floats, starts: Ints, blocks: Floats, first: int, last: int) -> None:
    """Copy the cells of leaves; what is left of a block is near nobody."""
    for leaf in range(first, last):
        start, size = starts[leaf], starts[leaf + 1] - starts[leaf]
        for c in range(len(columns)):
            for s in range(blocks.shape[2]):
                blocks[leaf, c, s] = columns[c, start + s] if s < size else np.inf


@light_kernel
def _search(
    starts: Ints, low: Floats, high: Floats, blocks: Floats, reach: float, who: Index, cap: int, met: Index, found: Ints
) -> None:
    """Meet up to `cap` neighbours of each of `who`; note them in `met` where it has room."""
    leaves = len(starts) - 1
    dimension, size = blocks.shape[1], blocks.shape[2]
    point, sums = np.empty(dimension), np.empty(size)
    stack = np.empty(64, np.int64)
    for q in range(len(who)):
        own = who[q] * leaves // starts[leaves]
        while starts[own + 1] <= who[q]:
            own += 1
        slot = who[q] - starts[own]
        for c in range(dimension):
            point[c] = blocks[own, c, slot]
        node, top, met_now = leaves + own, 0, 0
        stack[top] = node
        while True:
            while top >= 0 and met_now < cap:
                child = stack[top]
                top -= 1
                verdict = _reach_of(point, low[child], high[child], reach)
                if verdict < 0:
                    continue
                if child < leaves and (verdict == 0 or met.shape[1] > 0):
                    stack[top + 1], stack[top + 2] = 2 * child + 1, 2 * child
                    top += 2
                    continue
                if child < leaves:
                    span = leaves // _level_size(child)
                    at = (child - _level_size(child)) * span
                    met_now += starts[at + span] - starts[at]
                    continue
                if verdict == 0:
                    _sweep(point, blocks[child - leaves], reach, sums)
                else:
                    sums[:] = 0.0
                met_now = _collect(sums, reach, starts, child - leaves, own, slot, cap, met[q], met_now)
            if node == 1 or met_now >= cap:
                break
            top = 0
            stack[0] = node ^ 1
            node //= 2
        found[q] = min(met_now, cap)


@light_kernel
def _visit(
    starts: Ints,
    low: Floats,
    high: Floats,
    blocks: Floats,
    reach: float,
    points: Floats,
    skip: Index,
    met: Index,
    found: Ints,
) -> None:
    """Meet the records near each point from the root on, with the pair test of `_search`; note them in `met`."""
    leaves, cap = len(starts) - 1, met.shape[1]
    sums, stack = np.empty(blocks.shape[2]), np.empty(64, np.int64)
    for q in range(len(points)):
        point, top, met_now = points[q], 0, 0
        stack[0] = 1
        while top >= 0 and met_now < cap:
            node = stack[top]
            top -= 1
            verdict = _reach_of(point, low[node], high[node], reach)
            if verdict < 0:
                continue
            if node < leaves:
                stack[top + 1], stack[top + 2] = 2 * node + 1, 2 * node
                top += 2
                continue
            leaf = node - leaves
            if verdict == 0:
                _sweep(point, blocks[leaf], reach, sums)
            else:
                sums[:] = 0.0
            own = leaf if starts[leaf] <= skip[q] < starts[leaf + 1] else -1
            slot = skip[q] - starts[leaf] if own == leaf else q % max(1, starts[leaf + 1] - starts[leaf])
            met_now = _collect(sums, reach, starts, leaf, own, slot, cap, met[q], met_now)
        found[q] = met_now


@light_kernel
def _reach_of(point: Floats, low: Floats, high: Floats, reach: float) -> int:
    """-1: the whole box is out of reach; 1: the whole box is within it; 0: look inside."""
    nearest, farthest = 0.0, 0.0
    for c in range(len(point)):
        below, above = low[c] - point[c], point[c] - high[c]
        gap = max(below, above, 0.0)
        far = max(-below, -above)
        nearest += gap * gap
        farthest += far * far
    if nearest > reach * (1 + BOX_MARGIN):
        return -1
    return 1 if farthest < reach * (1 - BOX_MARGIN) else 0


@light_kernel
def _sweep(point: Floats, block: Floats, reach: float, sums: Floats) -> None:
    """Squared distances to a whole leaf, each summed in column order; stops when all are already too far."""
    sums[:] = 0.0
    for c in range(len(point)):
        x = point[c]
        row = block[c]
        for s in range(len(sums)):
            step = x - row[s]
            sums[s] += step * step
        if c % 8 == 7 and _all_above(sums, reach):
            return


@light_kernel
def _all_above(sums: Floats, reach: float) -> bool:
    for s in range(len(sums)):  # noqa: SIM110 - compiles in a tenth of the time of numpy's
        if sums[s] <= reach:
            return False
    return True


@light_kernel
def _collect(
    sums: Floats, reach: float, starts: Ints, leaf: int, own: int, slot: int, cap: int, met: Index, met_now: int
) -> int:
    """Note the near records of a leaf in cyclic order from the asker's own slot, never the asker itself."""
    size = starts[leaf + 1] - starts[leaf]
    for turn in range(1, size + 1):
        s = (slot + turn) % size
        if met_now >= cap:
            break
        if sums[s] <= reach and not (leaf == own and s == slot):
            if len(met) > 0:
                met[met_now] = starts[leaf] + s
            met_now += 1
    return met_now
