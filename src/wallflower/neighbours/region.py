"""The region around crowded suppliers: whose supply is decided again while all other supply stays as it is.

Consumers in the region contest the room that the others leave. The optimum of that smaller programme is, with the
others, all served, a lower bound of E; its prices are an upper bound once every consumer in reach of a priced supplier,
inside or outside, is held to the least that it can pay (proof.md of `count`, label (C2)). Outsiders who pay more than
that are why the bounds differ, so they join.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import light_kernel
from wallflower.neighbours.pairs import Floats, Graph, Index, Ints, Tree, count_neighbours, list_neighbours
from wallflower.neighbours.transport import TransportLP, solve_transport

Flags = NDArray[np.bool_]

EDGES_PER_BATCH = 4_000  # edges: small contests are decided together
LIST_CELLS = 1 << 25
PRICE_CUTS = (0.0, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3)


@dataclass(frozen=True, slots=True)
class Certificate:
    """`lower` is the worth of a feasible allocation, `upper` that of feasible prices: E lies between."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Part:
    """What must be known of a table that is part of a larger one, in tree order: whose demand is decided here, what all
    others ask of each supplier (in units, `extension.py`), and whose neighbours are all in this part."""

    consumers: Flags
    base: Ints
    whole: Flags


@dataclass(slots=True)
class Region:
    """Edge e joins `consumer[e]`, a row of `who`, to `supplier[e]`, sorted by consumer: all neighbours of all of `who`.
    It carries `flow[e]`, at most `cap[consumer[e]]`. The first `settled` consumers were in an earlier round."""

    tree: Tree | Graph
    neighbours: int
    who: Index = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    consumer: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    supplier: Index = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    flow: Floats = field(default_factory=lambda: np.empty(0))
    cap: Floats = field(default_factory=lambda: np.empty(0))
    prices: Floats = field(default_factory=lambda: np.empty(0))
    settled: int = 0
    whole: Flags | None = None  # whose neighbours are all in the tree, where not everybody's are

    def join(self, new: Index) -> None:
        """Take these consumers into the region."""
        consumer, supplier = list_all_neighbours(self.tree, new)
        self.consumer = np.concatenate([self.consumer, len(self.who) + consumer])
        self.supplier = np.concatenate([self.supplier, supplier])
        self.who = np.concatenate([self.who, new])
        self.flow = np.concatenate([self.flow, np.zeros(len(supplier))])
        self.cap = np.concatenate([self.cap, np.zeros(len(new))])

    def incomplete_consumers(self) -> Index:
        """The consumers whose neighbours are not all known."""
        return self.who[:0] if self.whole is None else self.who[~self.whole[self.who]]

    def settle(self, room: Floats, tolerance: float) -> None:
        """Decide who gets what of the room, to within `tolerance` in all. Contests that nobody joined stand."""
        names, local = np.unique(self.supplier, return_inverse=True)
        starts = np.searchsorted(self.consumer, np.arange(len(self.who) + 1))
        rooms, busy, served = room[names], np.ones(len(names), dtype=np.bool_), np.zeros(len(self.who), dtype=np.bool_)
        flow, cap = np.zeros(len(self.flow)), np.zeros(len(self.cap))
        _spare(starts, local, rooms, self.neighbours, busy, served, flow, cap)
        label = _components(starts, local, busy, served)
        stands = np.ones(len(label) + 1, dtype=np.bool_)
        stands[label[self.settled :]] = False
        keep = stands[label] & ~served
        prices = np.zeros(self.tree.n)
        held = keep[self.consumer]
        flow[held], cap[keep] = self.flow[held], self.cap[keep]
        known = np.unique(self.supplier[held & busy[local]])
        prices[known] = self.prices[known]
        self.flow, self.cap, self.prices = flow, cap, prices
        open_consumers = np.flatnonzero(~keep & ~served)
        self._decide(open_consumers, label, starts, local, names, rooms, busy, tolerance)
        self.settled = len(self.who)

    def _decide(
        self, who: Ints, label: Ints, starts: Ints, local: Ints, names: Index, rooms: Floats, busy: Flags, total: float
    ) -> None:
        """Decide the contests of these consumers, small ones together."""
        who = who[np.argsort(label[who], kind="stable")]
        edges = np.cumsum(np.diff(starts)[who])
        change = np.flatnonzero(np.diff(label[who])) + 1
        cuts = (
            change[np.flatnonzero(np.diff(edges[change - 1] // EDGES_PER_BATCH, prepend=0))] if len(change) else change
        )
        for part in np.split(who, cuts) if len(who) else []:
            part = np.sort(part)
            mine = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in part])
            contested = busy[local[mine]]
            renamed = np.searchsorted(part, self.consumer[mine])
            spare = np.bincount(renamed[~contested], minlength=len(part))
            kinds, mapped = np.unique(local[mine[contested]], return_inverse=True)
            contest = TransportLP(
                renamed[contested], mapped, spare, rooms[kinds], self.neighbours, self._addresses(names[kinds])
            )
            verdict = solve_transport(contest, total * len(part) / len(who))
            self.cap[part] = verdict.cap
            self.flow[mine] = verdict.cap[renamed]
            self.flow[mine[contested]] = verdict.flow
            self.prices[names[kinds]] = verdict.prices

    def _addresses(self, suppliers: Index) -> Ints:
        return np.searchsorted(self.tree.starts, suppliers, side="right") - 1

    def sum_service(self, room: Floats) -> float:
        """What the consumers of the region get from the room, flows cut down to what fits: feasible whatever the
        solver said."""
        flow = np.clip(self.flow, 0.0, self.cap[self.consumer])
        load = sum_by_index(self.supplier, flow, self.tree.n)
        fit = np.where(load > room, np.maximum(room, 0.0) / np.maximum(load, 1e-300), 1.0)
        got = sum_by_index(self.consumer, flow * fit[self.supplier], len(self.who))
        return float(np.clip(got - (self.neighbours - 1) * self.cap, 0.0, 1.0).sum())

    def dearest(self, slack: float | Floats) -> tuple[float, Floats, Floats]:
        """The best bound that these prices prove: slack sum p - sum of what consumers save, which is at most 1 each and
        the least they can pay; also the prices, small ones cut, and what each consumer saves. Whose neighbours are not
        all known is not held to save anything.  (C4)"""
        priced = np.flatnonzero(self.prices > 0).astype(np.int32)
        row, consumer = list_all_neighbours(self.tree, priced)
        order = np.lexsort((self.prices[priced[row]], consumer))
        who, starts = np.unique(consumer[order], return_index=True)
        price = self.prices[priced[row]][order]
        starts = np.append(starts, len(price))
        near = count_neighbours(self.tree, int(np.diff(starts).max(initial=0)) + self.neighbours, who.astype(np.int32))
        best = (np.inf, self.prices, self.prices)
        for cut in PRICE_CUTS:
            kept = np.where(self.prices > cut, self.prices, 0.0)
            least = np.zeros(self.tree.n)
            least[who] = _least(starts, np.where(price > cut, price, 0.0), near, self.neighbours)
            if self.whole is not None:
                least[~self.whole] = 0.0
            worth = float((slack * kept).sum()) - float(least.sum())
            if worth < best[0]:
                best = (worth, kept, least)
        return best


def list_all_neighbours(tree: Tree | Graph, who: Index) -> tuple[Ints, Index]:
    """All neighbours of these records: pairs (row of `who`, neighbour), in order of rows."""
    found = count_neighbours(tree, tree.n, who)
    widest = max(1, int(found.max(initial=1)))
    near = [np.empty(0, dtype=np.int32)]
    for some in np.array_split(who, 1 + len(who) * widest // LIST_CELLS):
        met, have = list_neighbours(tree, widest, some)
        near.append(met[np.arange(widest) < have[:, None]])
    return np.repeat(np.arange(len(who)), found), np.concatenate(near)


def sum_by_index(index: Index | Ints, amounts: Floats, size: int) -> Floats:
    """The amounts that share an index, added up so that rounding does not grow with their number.  (F)"""
    sums = np.zeros((2, size))
    _add_all(index, amounts, sums)
    return np.asarray(sums[0] + sums[1])


@light_kernel
def _add_all(index: Index | Ints, amounts: Floats, sums: Floats) -> None:
    for e in range(len(index)):
        add_compensated(sums, index[e], amounts[e])


@light_kernel
def add_compensated(sums: Floats, at: int, amount: float) -> None:
    """Add to `sums[0, at]`, and what rounding took to `sums[1, at]` [Neu74]."""
    before = sums[0, at]
    after = before + amount
    sums[1, at] += (before - after) + amount if abs(before) >= abs(amount) else (amount - after) + before
    sums[0, at] = after


@light_kernel
def _spare(
    starts: Ints, supplier: Ints, room: Floats, neighbours: int, busy: Flags, served: Flags, flow: Floats, cap: Floats
) -> None:
    """Find the suppliers that could not run short if all that list them asked 1 (C3), and serve who has k of them."""
    asking = np.zeros(len(room), dtype=np.int64)
    for e in range(len(supplier)):
        asking[supplier[e]] += 1
    changed = True
    while changed:
        changed = False
        for i in range(len(room)):
            if busy[i] and asking[i] <= room[i]:
                busy[i], changed = False, True
        for c in range(len(served)):
            spare = 0
            for e in range(starts[c], starts[c + 1]):
                spare += 0 if busy[supplier[e]] else 1
            if spare >= neighbours and not served[c]:
                served[c], changed = True, True
                cap[c] = 1.0 / (spare - neighbours + 1)
                for e in range(starts[c], starts[c + 1]):
                    if busy[supplier[e]]:
                        asking[supplier[e]] -= 1
                    else:
                        flow[e] = cap[c]


@light_kernel
def _components(starts: Ints, supplier: Ints, busy: Flags, served: Flags) -> Ints:
    """For each consumer the first consumer that it is linked with through busy suppliers; one past all if served."""
    link = np.arange(len(served))
    owner = np.full(len(busy), -1)
    for c in range(len(served)):
        for e in range(starts[c], starts[c + 1]):
            i = supplier[e]
            if served[c] or not busy[i]:
                continue
            if owner[i] < 0:
                owner[i] = c
            one, two = c, owner[i]
            while link[one] != one:
                link[one] = link[link[one]]
                one = link[one]
            while link[two] != two:
                link[two] = link[link[two]]
                two = link[two]
            link[max(one, two)] = min(one, two)
    for c in range(len(served)):
        link[c] = len(served) if served[c] else link[link[c]]
    return link


@light_kernel
def _least(starts: Ints, price: Floats, near: Ints, neighbours: int) -> Floats:
    """The least each consumer can pay, up to 1: its s cheapest suppliers give 1/(s-k+1) each, s as best fits.
    Neighbours without a price come first; outliers cannot be served."""
    least = np.zeros(len(near))
    for c in range(len(near)):
        taken = near[c] - (starts[c + 1] - starts[c])
        if taken >= neighbours or near[c] < neighbours:
            continue
        total, cost = 0.0, 1.0
        for e in range(starts[c], starts[c + 1]):
            total += price[e]
            taken += 1
            if taken >= neighbours:
                cost = min(cost, total / (taken - neighbours + 1))
        least[c] = cost
    return least
