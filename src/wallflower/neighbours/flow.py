"""The outlier mass, and the largest flow behind it: every record serves at most k others, and wants k itself.

Proved in proof.md of `count`, label (M). Records first pair off and serve each other; what is left over is brought
home by shortest augmenting paths, which stay short because the pairs leave as much supply as demand everywhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.machine.jit import light_kernel
from wallflower.neighbours.limits import check_neighbours
from wallflower.neighbours.pairs import Index, Ints, Tree, index_points, list_neighbours

Flags = NDArray[np.bool_]


def outlier_mass(points: ArrayLike, radius: float, neighbours: int, *, normalise: bool = True) -> float:
    """A graded count of outliers: each record counts by the share of its `neighbours` wanted neighbours it lacks.

    Every record serves at most `neighbours` others, so one record replaced moves the mass by at most 2 (label (M)).

    >>> outlier_mass([[0.0], [0.0], [9.0]], 1.0, 2)
    2.0
    """
    check_neighbours(neighbours)
    tree = index_points(points, radius, normalise=normalise)
    return (tree.n * neighbours - largest_flow(tree, neighbours)) / neighbours


def largest_flow(tree: Tree, neighbours: int) -> int:
    """The most units that records can serve to near ones: one to each, `neighbours` given and taken by each at most.

    Not all pairs are listed. Suppliers that keep room after pairing offer it to many near consumers; and a longer list
    can only help a consumer that an unserved one can reach, so those lists grow until none of them is cut off (M).
    """
    most = max(tree.n - 1, 0)
    width = min(most, 2 * neighbours + 6)
    starts, near = _flatten(*list_neighbours(tree, width))
    cut = (np.diff(starts) == width) & (width < most)
    service = _Service(starts, near, min(neighbours, most))
    roomy = np.flatnonzero(service.given < service.most).astype(np.int32)
    offers, takers = _flatten(*list_neighbours(tree, min(most, 16 * neighbours + 64), roomy))
    starts, near = _add_pairs(starts, near, takers, np.repeat(roomy, np.diff(offers)))
    while (stuck := service.extend(starts, near, cut)).any():
        width = min(4 * width, most)
        who = np.flatnonzero(stuck).astype(np.int32)
        longer, theirs = _flatten(*list_neighbours(tree, width, who))
        lengths = np.diff(longer)
        cut[who] = (lengths == width) & (width < most)
        starts, near = _add_pairs(starts, near, np.repeat(who, lengths), theirs)
    return service.flow


class _Service:
    """Who serves whom: record i serves clients[i, : given[i]]; record j is served by taken[j] records."""

    def __init__(self, starts: Ints, near: Index, most: int) -> None:
        n = len(starts) - 1
        self.most = most
        self.wanted = np.minimum(np.diff(starts), most).astype(np.int32)
        self.given, self.taken = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.clients = np.zeros((n, most), dtype=np.int32)
        pair(starts, near, self.given, self.taken, self.clients)

    @property
    def flow(self) -> int:
        return int(self.taken.sum())

    def extend(self, starts: Ints, near: Index, cut: Flags) -> Flags:
        """Serve all that the lists allow; which cut-off lists stand in the way of more."""
        stuck = np.zeros(len(self.given), dtype=np.bool_)
        augment(starts, near, cut, self.wanted, self.given, self.taken, self.clients, stuck)
        return stuck


def _flatten(met: Index, found: Ints) -> tuple[Ints, Index]:
    """Rows of different length, end to end."""
    starts = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum(found, out=starts[1:])
    return starts, met[np.arange(met.shape[1]) < found[:, None]]


def _add_pairs(starts: Ints, near: Index, consumers: Index, suppliers: Index) -> tuple[Ints, Index]:
    """The lists with these pairs added."""
    lengths = np.diff(starts)
    more = np.bincount(consumers, minlength=len(lengths))
    longer = np.zeros(len(starts), dtype=np.int64)
    np.cumsum(lengths + more, out=longer[1:])
    joined = np.empty(longer[-1], dtype=np.int32)
    _join(starts, near, longer, consumers, suppliers, joined)
    return longer, joined


@light_kernel
def _join(starts: Ints, near: Index, longer: Ints, consumers: Index, suppliers: Index, joined: Index) -> None:
    n = len(starts) - 1
    place = np.empty(n, np.int64)
    for j in range(n):
        size = starts[j + 1] - starts[j]
        for e in range(size):
            joined[longer[j] + e] = near[starts[j] + e]
        place[j] = longer[j] + size
    for e in range(len(consumers)):
        joined[place[consumers[e]]] = suppliers[e]
        place[consumers[e]] += 1


@light_kernel
def pair(starts: Ints, near: Index, given: Index, taken: Index, clients: Index) -> None:
    """Let near records serve each other while both have room, those with few neighbours first."""
    n, most = clients.shape
    for turn in range(2):
        for j in range(n):
            if (starts[j + 1] - starts[j] < 2 * most) != (turn == 0):
                continue
            for e in range(starts[j], starts[j + 1]):
                i = near[e]
                if given[j] == most:
                    break
                if given[i] < most and not _serves(clients, given, j, i):
                    clients[i, given[i]], clients[j, given[j]] = j, i
                    given[i] += 1
                    given[j] += 1
    taken[:] = given


@light_kernel
def _serves(clients: Index, given: Index, supplier: int, consumer: int) -> bool:
    for slot in range(given[supplier]):  # noqa: SIM110 - compiles in a tenth of the time of any()
        if clients[supplier, slot] == consumer:
            return True
    return False


@light_kernel
def augment(
    starts: Ints, near: Index, cut: Flags, wanted: Index, given: Index, taken: Index, clients: Index, stuck: Flags
) -> None:
    """Shortest augmenting paths from every consumer that wants more. What a failed search has seen leads nowhere ever
    after (M), so it is left out of all later ones."""
    n = len(given)
    via, lost = np.zeros(n, np.int32), np.zeros(n, np.int32)
    seen_supplier, seen_consumer = np.zeros(n, np.int32), np.zeros(n, np.int32)  # 0 not seen, -1 leads nowhere
    queue = np.empty(n, np.int32)
    turn = 0
    for root in range(n):
        while taken[root] < wanted[root] and seen_consumer[root] >= 0:
            turn += 1
            free, tail = _path(root, turn, starts, near, given, clients, via, lost, seen_supplier, seen_consumer, queue)
            if free >= 0:
                _shift(root, free, given, clients, via, lost)
                taken[root] += 1
                continue
            for at in range(tail):
                consumer = queue[at]
                seen_consumer[consumer] = -1
                stuck[consumer] = cut[consumer]
                for e in range(starts[consumer], starts[consumer + 1]):
                    if seen_supplier[near[e]] == turn:
                        seen_supplier[near[e]] = -1


@light_kernel
def _path(
    root: int,
    turn: int,
    starts: Ints,
    near: Index,
    given: Index,
    clients: Index,
    via: Index,
    lost: Index,
    seen_supplier: Index,
    seen_consumer: Index,
    queue: Index,
) -> tuple[int, int]:
    """Search breadth first for a supplier with room: it, or -1, and how many consumers were asked."""
    most = clients.shape[1]
    queue[0] = root
    seen_consumer[root] = turn
    head, tail = 0, 1
    while head < tail:
        consumer = queue[head]
        head += 1
        for e in range(starts[consumer], starts[consumer + 1]):
            i = near[e]
            if seen_supplier[i] == turn or seen_supplier[i] < 0 or _serves(clients, given, i, consumer):
                continue
            seen_supplier[i] = turn
            via[i] = consumer
            if given[i] < most:
                return i, tail
            for slot in range(most):
                other = clients[i, slot]
                if seen_consumer[other] != turn and seen_consumer[other] >= 0:
                    seen_consumer[other] = turn
                    lost[other] = i
                    queue[tail] = other
                    tail += 1
    return -1, tail


@light_kernel
def _shift(root: int, free: int, given: Index, clients: Index, via: Index, lost: Index) -> None:
    """Give the room at `free` to the consumer that asked for it, its former supplier to the one before, and so on."""
    supplier = free
    slot = given[free]
    given[free] += 1
    while True:
        consumer = via[supplier]
        clients[supplier, slot] = consumer
        if consumer == root:
            return
        supplier = lost[consumer]
        slot = 0
        while clients[supplier, slot] != consumer:
            slot += 1
