"""Sets of records that are pairwise joined and heavy: found wherever there is one, by branch and bound.

Places are put in an order in which few come after each one and are joined to it. Every clique has a first place, so
it is found among those: small problems, most of which one bound settles (proof.md, label (Q3)). On a line
the order is that of the places, and what comes after a place and is joined to it is a clique already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import kernel
from wallflower.neighbours.pairs import Floats, Ints

Bits = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Graph:
    """Places that are joined when their squared distance is at most `reach`. Those joined to place v are
    `joined[starts[v] : starts[v + 1]]`, rising; the numbers of the places are their order."""

    places: Floats
    reach: float
    starts: Ints
    joined: Ints

    def beside(self, place: int) -> Ints:
        return self.joined[self.starts[place] : self.starts[place + 1]]

    def after(self, place: int) -> Ints:
        mine = self.beside(place)
        return mine[np.searchsorted(mine, place) :]


def in_order(places: Floats, reach: float, beside: list[Ints]) -> tuple[Graph, Ints]:
    """The graph with few that come after each place and are joined to it, and the new number of every place."""
    starts = np.concatenate([[0], np.cumsum([len(mine) for mine in beside])]).astype(np.int64)
    order = np.argsort(places[:, 0], kind="stable")
    if places.shape[1] > 1:
        order = _least_first(starts, np.concatenate(beside).astype(np.int64))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    joined = np.concatenate([np.sort(number[beside[place]]) for place in order])
    starts = np.concatenate([[0], np.cumsum(np.diff(starts)[order])]).astype(np.int64)
    return Graph(places[order], reach, starts, joined), number


def heavy_cliques(graph: Graph, weight: Floats, room: float) -> Iterator[Ints]:
    """A clique heavier than `room` for every place that is the first of one: none at all only if there is none."""
    for place in np.flatnonzero(_weights_after(graph.starts, graph.joined, weight) > room).tolist():
        others = graph.after(place)
        others = others[weight[others] > 0]
        others = others[np.argsort(-weight[others], kind="stable")]
        found = heavy_clique(graph.places[others], graph.reach, weight[others], room - float(weight[place]))
        if len(found) or weight[place] > room:
            yield np.append(others[found], place)


def enlarge(graph: Graph, clique: Ints) -> Ints:
    """A clique that no place can be added to, with these among its members."""
    common = graph.beside(int(clique[0]))
    for place in clique[1:].tolist():
        common = np.intersect1d(common, graph.beside(place), assume_unique=True)
    while len(common):
        place = int(common[0])
        clique = np.append(clique, place)
        common = np.intersect1d(common, graph.beside(place), assume_unique=True)
    return np.sort(clique)


@kernel
def _weights_after(starts: Ints, joined: Ints, weight: Floats) -> Floats:
    """What each place weighs together with all that come after it and are joined to it; nothing where it is light."""
    total = np.zeros(len(weight))
    for place in range(len(weight)):
        if weight[place] > 0:
            total[place] = weight[place]
            for e in range(starts[place], starts[place + 1]):
                if joined[e] > place:
                    total[place] += weight[joined[e]]
    return total


@kernel
def _least_first(starts: Ints, joined: Ints) -> Ints:
    """Take away the place with the fewest joined to it, again and again: in buckets, linear in the pairs."""
    n = len(starts) - 1
    degree = np.diff(starts)
    first = np.zeros(degree.max() + 2, np.int64)
    for d in degree:
        first[d + 1] += 1
    first = np.cumsum(first)
    order, at, free = np.empty(n, np.int64), np.empty(n, np.int64), first.copy()
    for place in range(n):
        at[place] = free[degree[place]]
        order[at[place]] = place
        free[degree[place]] += 1
    for i in range(n):
        place = order[i]
        for e in range(starts[place], starts[place + 1]):
            other = joined[e]
            if degree[other] > degree[place]:  # moves to the front of its bucket, and the bucket begins after it
                front = max(first[degree[other]], i + 1)
                swapped = order[front]
                order[front], order[at[other]] = other, swapped
                at[swapped], at[other] = at[other], front
                first[degree[other]] = front + 1
                degree[other] -= 1
    return order


@kernel
def heavy_clique(places: Floats, reach: float, weight: Floats, floor: float) -> Ints:
    """A clique of weight above `floor` among places in falling order of their weight; empty only if there is none.

    Branch and bound: a clique has at most one place in a set of places that are pairwise not joined. So it weighs no
    more than the sets that the weight of all places is spread over.
    """
    n, words = len(weight), (len(weight) + 63) // 64
    beside = _bits(places, reach)
    path, gone, many = np.zeros(n + 1, np.int64), np.zeros(n + 2), np.zeros(n + 2, np.int64)
    left = np.zeros((n + 2, words), np.uint64)
    order, bound = np.empty((n + 2, n), np.int64), np.empty((n + 2, n))
    for place in range(n):
        left[0, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
    many[0], joined = _spread(left[0], beside, weight, order[0], bound[0])
    depth = 0
    while depth >= 0:
        last = many[depth] - 1
        if (gone[depth] if last < 0 else gone[depth] + bound[depth, last]) <= floor:
            depth, joined = depth - 1, False
        elif joined:  # heavy enough, and a clique
            return np.concatenate((path[:depth], order[depth, : many[depth]]))
        else:
            place = order[depth, last]
            many[depth] = last
            left[depth, place >> 6] &= ~(np.uint64(1) << np.uint64(place & 63))
            path[depth], gone[depth + 1] = place, gone[depth] + weight[place]
            for w in range(words):
                left[depth + 1, w] = left[depth, w] & beside[place, w]
            depth += 1
            many[depth], joined = _spread(left[depth], beside, weight, order[depth], bound[depth])
    return path[:0]


@kernel
def _bits(places: Floats, reach: float) -> Bits:
    """Who is joined to whom, 64 to a word; nobody to himself."""
    n, dimension = places.shape
    beside = np.zeros((n, (n + 63) // 64), np.uint64)
    for i in range(n):
        for j in range(i):
            total = 0.0
            for c in range(dimension):
                step = places[i, c] - places[j, c]
                total += step * step
            if total <= reach:
                beside[i, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
                beside[j, i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    return beside


@kernel
def _spread(left: Bits, beside: Bits, weight: Floats, order: Ints, bound: Floats) -> tuple[int, bool]:
    """Spread the weight of the places that are left over sets that are pairwise not joined, and note every place when
    all its weight is spent, with what the sets weigh until then; says how many, and whether all are joined."""
    words = len(left)
    bare, apart = left.copy(), np.empty(words, np.uint64)
    rest, members = weight.copy(), np.empty(len(weight), np.int64)
    many, total, joined, more = 0, 0.0, True, True
    while more:
        size, least = 0, np.inf
        apart[:] = bare
        for w in range(words):
            while apart[w]:
                low = apart[w] & (~apart[w] + np.uint64(1))
                place = 64 * w + _exponent(low)
                apart[w] &= ~low
                for v in range(w, words):
                    apart[v] &= ~beside[place, v]
                members[size] = place
                size, least = size + 1, min(least, rest[place])
        more = size > 0
        if more:
            total += least
            joined = joined and size == 1
        for i in range(size):
            place = members[i]
            rest[place] -= least
            if rest[place] <= 0:
                bare[place >> 6] &= ~(np.uint64(1) << np.uint64(place & 63))
                order[many], bound[many] = place, total
                many += 1
    return many, joined


@kernel
def _exponent(power: np.uint64) -> int:
    """The exponent of a power of two that is given as a word."""
    found = 0
    for step in (32, 16, 8, 4, 2, 1):
        if power >> np.uint64(step + found):
            found += step
    return found
