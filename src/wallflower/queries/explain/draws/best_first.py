"""One draw from the exponential mechanism that looks at as few contexts as it can: best-first search with lazy noise.

The mechanism chooses the context with the highest rate·score + G, where every context has a Gumbel G of its own. A node
of the search is a set of contexts that agree in the bits decided so far. It carries the smallest X = exp(-G) among its
contexts, an exponential variable, and the score of its largest context, the one with all other bits set, which no
context of the node exceeds. Splitting a node in halves hands X to one of them by a fair coin; the smallest of the other
half is X plus a fresh exponential variable. Contexts come off the heap in falling order of rate·score + G, so the
valid ones among them are the draws, one after another without replacement.  (G)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import prod
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.noise import Noise, words
from wallflower.queries.explain.detectors.base import KEPT_CONTEXTS, Detector
from wallflower.queries.explain.draws.utilities import Utility
from wallflower.queries.explain.exact import sweep
from wallflower.queries.explain.space.tables import AnyTable, Bools, Counts, Floats, Ints

Number = TypeVar("Number", bound=np.generic)
Words = NDArray[np.uint64]
Bytes = NDArray[np.int8]
Nodes = tuple[Counts, Ints, Bytes, Counts, Floats, Floats]  # the heap; index, bits left, score, X and rate·score + G
Cells = tuple[Ints, Ints, Ints]  # bits that are needed, what it counts, and where those that need a bit begin

MAX_NODES: Final = KEPT_CONTEXTS  # so a draw from contexts that can be kept is always finished
MAX_INDEX_BITS: Final = 62  # of contexts that can be examined one by one
MAX_DENSE_CELLS: Final = 1 << 22  # combinations of values that are counted in one array
BATCH_NODES: Final = 1 << 10  # nodes that are split before more noise is drawn
CONTEXTS_AT_ONCE: Final = 64  # taken off the heap
ONE: Final = np.uint64(1)
STOPPED: Final = -1
NONE_LEFT: Final = -2


def draw_best_first(
    table: AnyTable,
    detector: Detector,
    utility: Utility,
    *,
    rate: Fraction,
    top: int,
    noise: Noise,
    limit: int = MAX_NODES,
) -> tuple[list[int], bool]:
    """Draw up to `top` valid contexts by the law of `draw_direct`, in real numbers; and whether it was finished.

    It is finished if there are `top` of them, or as many as are valid. It gives up after about `limit` nodes, which
    cannot happen with no more contexts than that. When it does depends on scores, so an unfinished draw is not the
    exponential mechanism's, and not even that there was one is covered by its guarantee.
    """
    measure = utility.measure(table)
    if measure is None:
        raise ParameterError("utility: best-first search needs one that counts records; choose direct or another.")
    if table.space.length > MAX_INDEX_BITS:
        raise ParameterError(
            f"domain_sizes: best-first search takes up to 2^{MAX_INDEX_BITS} contexts; name fewer values."
        )
    valid, drawn = _validity(table, detector), list[int]()
    for index in _leaves(table, measure, float(rate), noise, limit):
        if index < 0:
            return drawn, index == NONE_LEFT
        drawn += [index] if valid(index) else []
        if len(drawn) == top:
            break
    return drawn, True


def _validity(table: AnyTable, detector: Detector) -> Callable[[int], bool]:
    """Return a function that examines contexts one by one, until it is faster to examine all of them."""
    examine, count, singles, known = detector.examine(table), table.space.count, 0, np.empty(0, np.bool_)
    most = detector.max_singles(count) if detector.can_examine_all(count) else count

    def keep(first: int, valid: Bools, _: Counts) -> None:
        known[first : first + len(valid)] = valid

    def is_valid(index: int) -> bool:
        nonlocal singles, known
        singles += 1
        if singles <= most:
            return examine(index)[0]
        if not len(known):
            known = np.empty(count, np.bool_)
            for _ in sweep(table, detector, keep):
                pass
        return bool(known[index])

    return is_valid


def _leaves(table: AnyTable, measure: Counts, rate: float, noise: Noise, limit: int) -> Iterator[int]:
    """Yield contexts in falling order of rate·score + G; NONE_LEFT after the last, STOPPED at the limit."""
    cells, nodes, state = _cells(table, measure), _new_nodes(4 * BATCH_NODES), np.array([1, 1, 0], np.int64)
    leaves, fresh = np.empty(CONTEXTS_AT_ONCE, np.int64), words(noise, BATCH_NODES)
    _plant(int(measure.sum()), table.space.length, rate, words(noise, 1), *nodes)
    while state[0] > 0:
        count = _next(state, *nodes, *cells, rate, fresh, leaves)
        yield from leaves[:count].tolist()
        if state[1] > limit:
            yield STOPPED
        if state[2] == len(fresh):
            fresh, state[2] = words(noise, BATCH_NODES), 0
        if state[1] + BATCH_NODES > len(nodes[0]):
            nodes = _longer(nodes)
    yield NONE_LEFT


def _new_nodes(size: int) -> Nodes:
    integers = np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int8), np.empty(size, np.int32)
    return *integers, np.empty(size), np.empty(size)


def _longer(nodes: Nodes) -> Nodes:
    heap, index, left, score, least, height = nodes
    return _twice(heap), _twice(index), _twice(left), _twice(score), _twice(least), _twice(height)


def _twice(array: NDArray[Number]) -> NDArray[Number]:
    return np.concatenate([array, np.empty_like(array)])


def _cells(table: AnyTable, measure: Counts) -> Cells:
    """Return the cells that count: for every bit of an index those that need it, with all the bits they need."""
    free, low = table.space.free, np.cumsum([0, *table.space.free[::-1]])[-2::-1]
    shape = tuple(others + 1 for others in free)
    if prod(shape) <= MAX_DENSE_CELLS:
        cell = np.ravel_multi_index(tuple(table.slots.T), shape)
        held = np.bincount(cell, weights=measure, minlength=prod(shape)).astype(np.int64)
        slots, counts = np.stack(np.unravel_index(np.flatnonzero(held), shape), axis=1), held[held > 0]
    else:
        slots, place = np.unique(table.slots, axis=0, return_inverse=True)
        counts = np.bincount(place.reshape(-1), weights=measure, minlength=len(slots)).astype(np.int64)
    bits = np.where(slots > 0, np.int64(1) << np.where(slots > 0, low + np.array(free) - slots, 0), 0)
    masks = np.bitwise_or.reduce(bits, axis=1)
    needing = [np.flatnonzero(masks >> bit & 1) for bit in range(table.space.length)]
    starts = np.cumsum([0, *map(len, needing)])
    order = np.concatenate([np.empty(0, np.int64), *needing])
    return masks[order], counts[order], starts


@kernel
def _exponential(word: np.uint64) -> float:
    """Return an exponential variable from the upper 63 bits of a word, neither 0 nor infinite."""
    part = (float(word >> ONE) + 0.5) * 2.0**-63
    return float(-np.log1p(-min(part, 1 - 2.0**-53)))


@kernel
def _plant(
    total: int, length: int, rate: float, fresh: Words,
    heap: Counts, index: Ints, left: Bytes, score: Counts, least: Floats, height: Floats,
) -> None:  # fmt: skip
    heap[0], index[0], left[0], score[0] = 0, (1 << length) - 1, length, total
    least[0] = _exponential(fresh[0]) * 2.0**-length
    height[0] = rate * total - np.log(least[0])


@kernel
def _next(
    state: Ints, heap: Counts, index: Ints, left: Bytes, score: Counts, least: Floats, height: Floats,
    masks: Ints, counts: Ints, starts: Ints, rate: float, fresh: Words, leaves: Ints,
) -> int:  # fmt: skip
    """Split the highest nodes and take single contexts off the heap, until `leaves` is full or more noise is needed.

    `state` is how many nodes the heap has, how many there have been, and how many words were used.
    """
    taken = 0
    while state[0] > 0 and taken < len(leaves):
        node = heap[0]
        if left[node] == 0:
            state[0] -= 1
            heap[0] = heap[state[0]]
            _sink(heap, state[0], height)
            leaves[taken] = index[node]
            taken += 1
        elif state[2] == len(fresh):
            break
        else:
            _split(node, state[1], index, left, score, least, fresh[state[2]], masks, counts, starts)
            height[node] = rate * score[node] - np.log(least[node])
            height[state[1]] = rate * score[state[1]] - np.log(least[state[1]])
            _sink(heap, state[0], height)
            heap[state[0]] = state[1]
            state += 1
            _rise(heap, state[0] - 1, height)
    return taken


@kernel
def _split(
    node: int, new: int, index: Ints, left: Bytes, score: Counts, least: Floats, word: np.uint64,
    masks: Ints, counts: Ints, starts: Ints,
) -> None:  # fmt: skip
    """Decide the highest bit that is left: the node keeps it, the new one does not, and a coin says who keeps X."""
    left[node] -= 1
    bit = left[node]
    lost = 0
    for cell in range(starts[bit], starts[bit + 1]):
        lost += counts[cell] if masks[cell] & ~index[node] == 0 else 0
    index[new], left[new], score[new], least[new] = index[node] ^ (1 << bit), bit, score[node] - lost, least[node]
    least[new if word & ONE else node] += _exponential(word) * 2.0 ** -float(bit)


@kernel
def _sink(heap: Counts, size: int, height: Floats) -> None:
    """Put the first node of the heap into its place."""
    at, node = 0, heap[0]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and height[heap[below + 1]] > height[heap[below]]:
            below += 1
        if height[heap[below]] <= height[node]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = node


@kernel
def _rise(heap: Counts, at: int, height: Floats) -> None:
    """Put the last node of the heap into its place."""
    node = heap[at]
    while at > 0 and height[heap[(at - 1) // 2]] < height[node]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = node
