"""A Lipschitz extension of the number of inliers: the slack linear programme, solved with a certificate.

Every inlier j asks its neighbours for supply: at most mu_j from each, y_j + (k-1) mu_j in all, y_j <= 1; every record
supplies at most `slack` in all. E is the largest sum of y (proof.md of `count`, label (E)). One record more or less
moves E by at most slack + 1, whatever the dimension, the metric and k.

Evaluation climbs only as far as the data make it: a uniform allocation, then steps that shift demand away from crowded
suppliers, then the exact programme in a region around those still crowded (region.py). It ends with a feasible
allocation (a lower bound) and prices (an upper bound) that agree to `tolerance`, always.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import ParameterError
from wallflower.machine.jit import light_kernel
from wallflower.neighbours.limits import check_neighbours
from wallflower.neighbours.pairs import Floats, Graph, Index, Ints, Tree, index_points, list_neighbours
from wallflower.neighbours.region import Certificate, Part, Region, add_compensated

TOLERANCE = 1e-7
UNIT = 720_720  # equal shares are whole parts of this, so that their sums are exact in any order  (F)
DIVISORS_OF_UNIT = np.array([spare for spare in range(1, 66) if UNIT % spare == 0])
MAX_EXCESS_RATIO = 0.98
RELIEF_LOAD_SHARE = 0.9
MAX_LISTED_RECORDS = 1 << 20  # records of a table whose lists are made again, if they are needed, rather than kept
CONSUMERS_PER_SLICE = 1 << 16  # consumers whose lists are in memory at a time
FULL_LOAD_SHARE = 0.99
MASSIVE_SHARE = 0.2  # of the consumers: a region of this size takes all of them in at once

Flags = NDArray[np.bool_]


def inliers(points: ArrayLike, radius: float, neighbours: int, *, slack: float, normalise: bool = True) -> float:
    """The extension of the number of inliers, to within 1e-6.

    >>> round(inliers([[0.0], [1.0], [1.0], [-1.0], [-1.0]], 1.0, 2, slack=3), 6)
    4.0
    """
    check_neighbours(neighbours)
    if not 1 <= slack <= 1e6:
        raise ParameterError(f"slack: {slack!r} is outside 1 to 1,000,000; 2 or 3 suits most tables.")
    return certify(index_points(points, radius, normalise=normalise), neighbours, float(slack)).lower


def certify(tree: Tree | Graph, neighbours: int, slack: float, tolerance: float = TOLERANCE) -> Certificate:
    """Bounds on E that differ by at most `tolerance`.

    A record that asks a supplier that stays crowded is taken into a region where supply is decided exactly. All others
    stay served as before, but who could pay less at the region's prices joins, until the bounds meet.
    """
    bounds = assign(tree, neighbours, slack, tolerance).bounds
    assert bounds is not None  # all neighbours of a whole table are known
    return bounds


@dataclass(frozen=True, slots=True)
class Assignment:
    """Bounds on what the consumers get, and the prices that prove the upper one; or what must be known better first:
    consumers whose neighbours are `missing`, and suppliers that others outside of this part fill. `demand` and `region`
    hold the flows that prove the lower bound."""

    bounds: Certificate | None
    prices: Floats | None = None
    missing: Index | None = None
    full: Index | None = None
    demand: Demand | None = None
    region: Region | None = None


def assign(tree: Tree | Graph, neighbours: int, slack: float, tolerance: float, part: Part | None = None) -> Assignment:
    """Serve the consumers, of the whole table or of a part of one, as well as `slack` allows."""
    if part is None and tree.n > MAX_LISTED_RECORDS:
        loads, served = serve_evenly(tree, neighbours)
        if loads.max() / UNIT <= slack:
            return Assignment(Certificate(float(served), float(served)))  # (C1)
    demand = uniform_demand(tree, neighbours, part)
    total = float(np.count_nonzero(demand.share))
    if (demand.loads > slack).any():
        spread_demand(demand, tree, neighbours, slack)
    if (demand.loads > slack).any():
        return solve_region(demand, tree, neighbours, slack, tolerance, total, part)
    return Assignment(Certificate(demand.sum_service(neighbours), total), demand=demand)  # (C1)


def serve_evenly(tree: Tree | Graph, neighbours: int, idle: Index | None = None) -> tuple[Ints, int]:
    """What every supplier is asked for by the uniform allocation, in UNITs, and how many that serves; the `idle` ask
    nothing. The lists are never in memory all at once."""
    loads, served = np.zeros(tree.n, dtype=np.int64), 0
    asks = np.ones(tree.n, dtype=np.bool_)
    if idle is not None:
        asks[idle] = False
    for start in range(0, tree.n, CONSUMERS_PER_SLICE):
        who = np.arange(start, min(start + CONSUMERS_PER_SLICE, tree.n), dtype=np.int32)
        met, found = list_neighbours(tree, min(tree.n - 1, list_length(neighbours)), who)
        asked, share = equal_shares(found, neighbours)
        rows = np.flatnonzero((share > 0) & asks[who]).astype(np.int32)
        add_shares(met, asked, share, rows, loads)
        served += len(rows)
    return loads, served


def spread_demand(demand: Demand, tree: Tree | Graph, neighbours: int, slack: float) -> None:
    """Shift demand away from crowded suppliers, and if that is not enough let consumers look further."""
    relieve_suppliers(demand, neighbours, slack)
    if (demand.loads > slack).any() and demand.lengthen(tree, 4 * list_length(neighbours)):
        relieve_suppliers(demand, neighbours, slack)


def solve_region(
    demand: Demand,
    tree: Tree | Graph,
    neighbours: int,
    slack: float,
    tolerance: float,
    total: float,
    part: Part | None = None,
) -> Assignment:
    """Decide the region around crowded suppliers, and widen it until the bounds meet (C2)."""
    region, aim = Region(tree, neighbours, whole=None if part is None else part.whole & part.consumers), tolerance / 2
    left = slack if part is None else slack - part.base / UNIT  # (C4)
    region.join(demand.withdraw(demand.askers(demand.loads > FULL_LOAD_SHARE * slack)))
    while True:
        widen_region(region, demand, slack, part)
        room = slack - demand.loads
        if part is not None:
            full = np.unique(region.supplier[demand.loads[region.supplier] > FULL_LOAD_SHARE * slack])
            missing = region.incomplete_consumers()
            if len(missing) + len(full):
                return Assignment(None, missing=missing, full=full)
        region.settle(room, aim)
        lower = demand.sum_service(neighbours) + region.sum_service(room)
        worth, prices, savings = region.dearest(left)
        bounds = Certificate(lower, max(lower, total + min(worth, 0.0)))  # no prices at all prove E <= total
        if bounds.upper - bounds.lower <= tolerance:
            proof = prices if worth < 0.0 else np.zeros(tree.n)
            return Assignment(bounds, prices=proof, demand=demand, region=region)
        payers = demand.payers(prices, savings, tolerance / 4)
        if len(payers) == 0:  # the bounds differ by rounding: decide all again, more exactly, with all who pay
            aim, region.settled, payers = aim / 4, 0, demand.askers(region.prices > 0)
        region.join(demand.withdraw(payers))


def widen_region(region: Region, demand: Demand, slack: float, part: Part | None = None) -> None:
    """Take in the consumers that nearly fill a supplier of the region: a contest for crumbs is hard to decide.

    A region of many consumers would reach most of the others round by round, and each round solves all of it again. So
    it takes in all others at once. A part of a larger table keeps to the consumers it needs: neighbours of the others
    would have to be fetched.
    """
    touched = np.zeros(len(demand.loads), dtype=np.bool_)
    while True:
        touched[region.supplier] = True
        rows = demand.askers(touched & (demand.loads > FULL_LOAD_SHARE * slack))
        if len(rows) == 0:
            break
        region.join(demand.withdraw(rows))
    outside = int(np.count_nonzero(demand.share)) + len(demand.active)
    if part is None and len(region.who) > MASSIVE_SHARE * (len(region.who) + outside):
        region.join(demand.withdraw(demand.askers(np.ones(len(demand.loads), dtype=np.bool_))))


@dataclass(slots=True)
class Demand:
    """Who asks what of whom. Most consumers ask `share[j]` UNITs of each of the first `asked[j]` of the `found[j]` in
    `met[j]`; the `active` ones have a row of their own instead: `flow[a, e]` of `listed[a, e]`, e < `length[a]`.
    `settled` is the load of the former, in UNITs."""

    met: Index
    found: Ints
    asked: Ints
    share: Ints
    loads: Floats
    settled: Ints
    active: Index
    listed: Index
    length: Ints
    flow: Floats

    def total_up(self) -> None:
        """Add up what every supplier is asked for.  (F)"""
        sums = np.zeros((2, len(self.loads)))
        np.divide(self.settled, UNIT, out=sums[0])
        _add_rows(self.listed, self.length, self.flow, sums)
        np.add(sums[0], sums[1], out=self.loads)

    def sum_service(self, neighbours: int) -> float:
        """What all these consumers get: those with equal shares one each, the others what their flows say."""
        return float(np.count_nonzero(self.share)) + _sum_service(self.listed, self.length, self.flow, neighbours)

    def activate(self, suppliers: Flags) -> None:
        """Give rows of their own to the consumers that ask something of any of these suppliers."""
        hit = np.zeros(len(self.share), dtype=np.bool_)
        _mark(self.met, self.asked, self.share, suppliers, hit)
        new = np.flatnonzero(hit).astype(np.int32)
        add_shares(self.met, self.asked, -self.share, new, self.settled)
        flow = np.where(np.arange(self.listed.shape[1]) < self.asked[new, None], self.share[new, None] / UNIT, 0.0)
        self.share[new] = 0
        rows = np.zeros((len(new), self.listed.shape[1]), dtype=np.int32)
        rows[:, : self.met.shape[1]] = self.met[new]
        self.active = np.concatenate([self.active, new])
        self.listed = np.concatenate([self.listed, rows])
        self.length = np.concatenate([self.length, self.found[new]])
        self.flow = np.concatenate([self.flow, flow])

    def lengthen(self, tree: Tree | Graph, width: int) -> bool:
        """Look further for the active consumers whose lists were cut off; says whether there were any."""
        cut = np.flatnonzero(self.length == self.met.shape[1])
        width = min(width, tree.n - 1)
        if len(cut) == 0 or width <= self.met.shape[1]:
            return False
        wider = np.zeros((len(self.active), width), dtype=np.int32)
        wider[:, : self.listed.shape[1]] = self.listed
        wider[cut], self.length[cut] = list_neighbours(
            tree, width, self.active[cut]
        )  # the same order, so flows keep their place
        self.flow = np.pad(self.flow, ((0, 0), (0, width - self.listed.shape[1])))
        self.listed = wider
        return True

    def askers(self, suppliers: Flags) -> Ints:
        """The rows of the consumers that ask something of any of these suppliers."""
        if not suppliers.any():
            return np.empty(0, dtype=np.int64)
        self.activate(suppliers)
        return np.flatnonzero(_sum_payments(self.listed, self.length, self.flow, suppliers.astype(np.float64)))

    def payers(self, prices: Floats, savings: Floats, enough: float) -> Ints:
        """The rows of the consumers that pay more than they need to; those left out waste `enough` in all at most."""
        self.activate(prices > 0)
        waste = np.maximum(_sum_payments(self.listed, self.length, self.flow, prices) - savings[self.active], 0.0)
        order = np.argsort(waste, kind="stable")  # the smallest stay: every consumer that joins makes a contest larger
        return np.sort(order[np.cumsum(waste[order]) > enough])

    def withdraw(self, rows: Ints) -> Index:
        """Remove these consumers, and what they ask."""
        gone = self.active[rows]
        self.active, self.length = np.delete(self.active, rows), np.delete(self.length, rows)
        self.listed, self.flow = np.delete(self.listed, rows, axis=0), np.delete(self.flow, rows, axis=0)
        self.total_up()
        return gone


def uniform_demand(tree: Tree | Graph, neighbours: int, part: Part | None = None) -> Demand:
    """Every inlier asks the same of each of the first neighbours it meets: 1/(D-k+1) of each of D serves it."""
    width = min(max(tree.n - 1, 0), list_length(neighbours))
    met, found = list_neighbours(tree, width)
    asked, share = equal_shares(found, neighbours)
    if part is not None:
        share[~part.consumers] = 0
    nobody = np.empty(0, dtype=np.int32)
    demand = Demand(
        met=met,
        found=found,
        asked=asked,
        share=share,
        loads=np.zeros(tree.n),
        settled=np.zeros(tree.n, dtype=np.int64) if part is None else part.base.copy(),
        active=nobody,
        listed=np.empty((0, width), dtype=np.int32),
        length=np.empty(0, dtype=np.int64),
        flow=np.empty((0, width)),
    )
    add_shares(met, asked, share, np.flatnonzero(share).astype(np.int32), demand.settled)
    demand.total_up()
    return demand


def equal_shares(found: Ints, neighbours: int) -> tuple[Ints, Ints]:
    """Of how many of its neighbours each consumer asks, and how much of each, in UNITs; outliers ask nothing.

    >>> equal_shares(np.array([2, 3, 19, 20]), 3)
    (array([ 0,  3, 18, 20]), array([     0, 720720,  45045,  40040]))
    """
    each = np.arange(int(found.max(initial=0)) + 1)  # few numbers are found: a table of them is made once
    spare = DIVISORS_OF_UNIT[np.searchsorted(DIVISORS_OF_UNIT, np.maximum(each - neighbours + 1, 1), side="right") - 1]
    asked, share = np.where(each >= neighbours, [neighbours - 1 + spare, UNIT // spare], 0)
    return asked[found], share[found]


def list_length(neighbours: int) -> int:
    """How many suppliers to list at first: enough that a dense neighbourhood is loaded little above 1."""
    return neighbours + max(8, min(3 * neighbours, 64))


def relieve_suppliers(demand: Demand, neighbours: int, slack: float) -> None:
    """Let consumers move away from crowded suppliers, one after the other, while that helps much.

    Every consumer stays served: it mixes allocations that each serve it.  (C1)
    """
    before = np.inf
    while True:
        demand.activate(demand.loads > RELIEF_LOAD_SHARE * slack)
        _relieve(demand.listed, demand.length, demand.flow, demand.loads, neighbours, RELIEF_LOAD_SHARE * slack)
        demand.total_up()
        over = float(np.maximum(demand.loads - slack, 0.0).sum())
        if over == 0.0 or over > MAX_EXCESS_RATIO * before:
            return
        before = over


@light_kernel
def add_shares(met: Index, asked: Ints, share: Ints, who: Index, loads: Ints) -> None:
    """Add what these consumers ask to the loads of their suppliers."""
    for j in who:
        for e in range(asked[j]):
            loads[met[j, e]] += share[j]


@light_kernel
def _add_rows(listed: Index, length: Ints, flow: Floats, sums: Floats) -> None:
    for a in range(len(length)):
        for e in range(length[a]):
            add_compensated(sums, listed[a, e], flow[a, e])


@light_kernel
def _sum_service(listed: Index, length: Ints, flow: Floats, neighbours: int) -> float:
    sums, total = np.zeros((2, 1)), np.zeros((2, 1))
    for a in range(len(length)):
        sums[:] = 0.0
        most = 0.0
        for e in range(length[a]):
            add_compensated(sums, 0, flow[a, e])
            most = max(most, flow[a, e])
        add_compensated(total, 0, min(sums[0, 0] + sums[1, 0] - (neighbours - 1) * most, 1.0))
    return float(total[0, 0] + total[1, 0])


@light_kernel
def _sum_payments(listed: Index, length: Ints, flow: Floats, prices: Floats) -> Floats:
    paid = np.zeros(len(length))
    for a in range(len(length)):
        for e in range(length[a]):
            paid[a] += flow[a, e] * prices[listed[a, e]]
    return paid


@light_kernel
def _mark(met: Index, asked: Ints, share: Ints, suppliers: Flags, hit: Flags) -> None:
    for j in range(len(share)):
        if share[j] > 0:
            for e in range(asked[j]):
                if suppliers[met[j, e]]:
                    hit[j] = True
                    break


@light_kernel
def _relieve(listed: Index, length: Ints, flow: Floats, loads: Floats, neighbours: int, limit: float) -> None:
    """One step of Frank and Wolfe's for each consumer in turn, on the sum of squared loads above the limit [LJSP13]."""
    width = listed.shape[1]
    over, order, best = np.empty(width), np.empty(width, np.int64), np.empty(width)
    for a in range(len(length)):
        count, pays = length[a], False
        for e in range(count):
            over[e] = max(loads[listed[a, e]] - limit, 0.0)
            pays = pays or (over[e] > 0.0 and flow[a, e] > 0.0)
        if pays:
            _reply(over[:count], neighbours, order, best)
            part = _part(listed[a], count, flow[a], best, loads, limit)
            for e in range(count):
                move = part * (best[e] - flow[a, e])
                flow[a, e] += move
                loads[listed[a, e]] += move


@light_kernel
def _reply(over: Floats, neighbours: int, order: Ints, best: Floats) -> None:
    """What a consumer would ask at these prices: 1/(s-k+1) of each of the s cheapest, s as best fits."""
    for e in range(len(over)):
        at = e
        while at > 0 and over[order[at - 1]] > over[e]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = e
        best[e] = 0.0
    total, least, taken = 0.0, np.inf, neighbours
    for s in range(len(over)):
        total += over[order[s]]
        spare = s + 2 - neighbours
        if spare > 0 and total <= least * spare:
            least, taken = total / spare, s + 1
    for s in range(taken):
        best[order[s]] = 1.0 / (taken - neighbours + 1)


@light_kernel
def _part(suppliers: Index, count: int, flow: Floats, best: Floats, loads: Floats, limit: float) -> float:
    """How far to go towards `best`, by halving."""
    low, high = 0.0, 2.0
    for _ in range(8):
        part, slope = 0.5 * (low + high), 0.0
        for e in range(count):
            move = best[e] - flow[e]
            slope += max(loads[suppliers[e]] + part * move - limit, 0.0) * move
        if slope > 0.0:
            high = part
        elif part == 1.0:
            return 1.0
        else:
            low = part
    return low
