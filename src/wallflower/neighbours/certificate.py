"""Exact bounds on the extension: the solver's floats become whole numbers, and whole-number arithmetic checks them.

`certify` of `extension.py` computes its bounds with floats, and proof.md of `count` bounds their rounding. Here the
same allocation and the same prices are rounded to whole units, made feasible, and checked, constraint by constraint: an
allocation is a lower bound of E (C1), prices are an upper one (C2). `check_allocation` and `check_prices` are, line by
line, `check_allocation` and `check_prices` of `proofs/theories/Duality.v`, where `certificate_sound` proves what an
accepted certificate means. The solver needs no trust then. Two things still do: that the lists of neighbours are
complete (P), and that these few lines of Python do what they say.

A certificate is for audits and tests. No release runs it: its result depends on the records, so after the charge it
could neither be told nor change the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.neighbours.extension import MAX_LISTED_RECORDS, UNIT, Assignment, Demand, assign
from wallflower.neighbours.pairs import Floats, Ints, Tree, count_neighbours
from wallflower.neighbours.region import Region, list_all_neighbours

PARTS_PER_RECORD: Final = (
    UNIT << 22
)  # parts of 1: equal shares are whole numbers of them, and sums over 2²⁰ records fit 64 bits
EDGES_PER_CHECK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Allocation:
    """Who gets what: edge e carries `flow[e]` from `supplier[e]` to `consumer[e]`; record j asks one supplier for up to
    `cap[j]`, and gets `got[j]`. All in `PARTS_PER_RECORD`, by places in the tree."""

    consumer: Ints
    supplier: Ints
    flow: Ints
    cap: Ints
    got: Ints


@dataclass(frozen=True, slots=True)
class Prices:
    """What supply costs at each record, and the cost at which each record can be served, in `PARTS_PER_RECORD`."""

    price: Ints
    cost: Ints


@dataclass(frozen=True, slots=True)
class ExactBounds:
    """E lies between `lower` and `upper`, exactly; `value` is the float that the program would use.

    >>> ExactBounds(lower=Fraction(3), upper=Fraction(3), value=3.0).supports(Fraction(1, 256))
    True
    """

    lower: Fraction
    upper: Fraction
    value: float

    def supports(self, gap: Fraction) -> bool:
        """Whether the value is within `gap` below E, up to half of it for float sums: what (N) and (F) assume."""
        value = Fraction(self.value)
        return self.upper - self.lower <= gap and abs(value - self.lower) <= gap / 2


def certify_exactly(tree: Tree, neighbours: int, slack: int, gap: float) -> ExactBounds:
    """Solve the programme as a release does, and bound its value by a checked certificate.

    Raises ParameterError for more than 2²⁰ records, and ArithmeticError if a certificate is not accepted.
    """
    if tree.n > MAX_LISTED_RECORDS:
        raise ParameterError(
            f"records: {tree.n:,} are too many for a certificate. At most {MAX_LISTED_RECORDS:,}. Take a sample."
        )
    assignment = assign(tree, neighbours, float(slack), gap)
    allocation = round_allocation(tree, neighbours, slack, assignment)
    prices = round_prices(tree, neighbours, assignment)
    if not check_allocation(tree, neighbours, slack, allocation) or not check_prices(tree, neighbours, prices):
        raise ArithmeticError("the certificate is not accepted")
    assert assignment.bounds is not None
    lower = Fraction(int(allocation.got.sum()), PARTS_PER_RECORD)
    return ExactBounds(lower=lower, upper=dual_bound(tree, neighbours, slack, prices), value=assignment.bounds.lower)


def round_allocation(tree: Tree, neighbours: int, slack: int, assignment: Assignment) -> Allocation:
    """Round flows down to whole parts, cut those of suppliers that are still above their cap, and add up."""
    consumer, supplier, flow = _edges_of(assignment)
    limit = slack * PARTS_PER_RECORD
    load = _sum_by(supplier, flow, tree.n)
    for i in np.flatnonzero(load > limit):  # by rounding alone, so few and by little
        mine = np.flatnonzero(supplier == i)
        flow[mine] = [int(amount) * limit // int(load[i]) for amount in flow[mine]]
    cap = np.zeros(tree.n, dtype=np.int64)
    np.maximum.at(cap, consumer, flow)
    got = np.clip(_sum_by(consumer, flow, tree.n) - (neighbours - 1) * cap, 0, PARTS_PER_RECORD)
    idle = got == 0  # a record that gets nothing asks nothing: what its flows leave over serves nobody
    cap[idle] = 0
    flow[idle[consumer]] = 0
    return Allocation(consumer, supplier, flow, cap, got)


def round_prices(tree: Tree, neighbours: int, assignment: Assignment) -> Prices:
    """Round prices to whole parts, and take for each record the largest cost that they allow (C2)."""
    floats = np.zeros(tree.n) if assignment.prices is None else assignment.prices
    price = np.rint(np.maximum(floats, 0.0) * PARTS_PER_RECORD).astype(np.int64)
    cost = np.zeros(tree.n, dtype=np.int64)
    who = _within_reach(tree, price)
    row, supplier = list_all_neighbours(tree, who)
    order = np.lexsort((price[supplier], row))
    starts = np.searchsorted(row, np.arange(len(who)))
    degree = np.bincount(row, minlength=len(who))
    running = np.cumsum(price[supplier[order]])
    before = np.where(starts > 0, running[starts - 1], 0)
    taken = np.arange(len(row)) - starts[row] + 1
    spare = taken - neighbours + 1
    quotient = np.where(spare > 0, (running - before[row]) // np.maximum(spare, 1), PARTS_PER_RECORD)
    if len(who):
        least = np.minimum(np.minimum.reduceat(quotient, starts), PARTS_PER_RECORD)
        cost[who] = np.where(degree >= neighbours, least, 0)
    return Prices(price, cost)


def check_allocation(tree: Tree, neighbours: int, slack: int, allocation: Allocation) -> bool:
    """Check every constraint of the programme: `check_allocation` of Duality.v."""
    consumer, supplier, flow = allocation.consumer, allocation.supplier, allocation.flow
    cap, got = allocation.cap, allocation.got
    served = _sum_by(consumer, flow, tree.n)
    load = _sum_by(supplier, flow, tree.n)
    return bool(
        _are_edges(tree, consumer, supplier)
        and ((got >= 0) & (got <= PARTS_PER_RECORD)).all()
        and (cap >= 0).all()
        and ((flow >= 0) & (flow <= cap[consumer])).all()
        and (got + (neighbours - 1) * cap <= served).all()
        and (load <= slack * PARTS_PER_RECORD).all()
    )


def check_prices(tree: Tree, neighbours: int, prices: Prices) -> bool:
    """Check that prices are not negative and costs affordable: `check_prices` of Duality.v.

    A record without a priced neighbour can have the cost 0 only, and 0 is always affordable; so only the others are
    added up. All neighbours of theirs count.
    """
    price, cost = prices.price, prices.cost
    who = _within_reach(tree, price)
    others = np.ones(tree.n, dtype=np.bool_)
    others[who] = False
    row, supplier = list_all_neighbours(tree, who)
    lacking = _sum_by(row, np.maximum(0, cost[who][row] - price[supplier]), len(who))
    return bool(
        (price >= 0).all()
        and (cost >= 0).all()
        and (cost[others] == 0).all()
        and (lacking <= (neighbours - 1) * cost[who]).all()
    )


def dual_bound(tree: Tree, neighbours: int, slack: int, prices: Prices) -> Fraction:
    """Add up what the prices prove: `dual_bound` of Duality.v."""
    is_inlier = count_neighbours(tree, neighbours) >= neighbours
    gains = np.maximum(0, PARTS_PER_RECORD - prices.cost[is_inlier])
    return Fraction(slack * sum(prices.price.tolist()) + int(gains.sum()), PARTS_PER_RECORD)


def _edges_of(assignment: Assignment) -> tuple[Ints, Ints, Ints]:
    demand, region = assignment.demand, assignment.region
    if demand is None:
        raise ArithmeticError("the solver kept no allocation")
    pieces = [_equal_edges(demand), _moved_edges(demand)]
    if region is not None:
        pieces.append(_region_edges(region))
    consumer, supplier, flow = (np.concatenate(piece) for piece in zip(*pieces, strict=True))
    kept = flow > 0
    return consumer[kept], supplier[kept], flow[kept]


def _equal_edges(demand: Demand) -> tuple[Ints, Ints, Ints]:
    asks = np.flatnonzero(demand.share > 0)
    listed = np.arange(demand.met.shape[1]) < demand.asked[asks, None]
    consumer = np.repeat(asks, demand.asked[asks])
    return consumer, demand.met[asks][listed].astype(np.int64), demand.share[consumer] * (PARTS_PER_RECORD // UNIT)


def _moved_edges(demand: Demand) -> tuple[Ints, Ints, Ints]:
    listed = np.arange(demand.listed.shape[1]) < demand.length[:, None]
    consumer = np.repeat(demand.active.astype(np.int64), demand.length)
    return consumer, demand.listed[listed].astype(np.int64), _in_parts(demand.flow[listed])


def _region_edges(region: Region) -> tuple[Ints, Ints, Ints]:
    flow = np.clip(region.flow, 0.0, region.cap[region.consumer])
    return region.who[region.consumer].astype(np.int64), region.supplier.astype(np.int64), _in_parts(flow)


def _in_parts(flow: Floats) -> Ints:
    return np.floor(np.clip(flow, 0.0, 1.0) * PARTS_PER_RECORD).astype(np.int64)


def _within_reach(tree: Tree, price: Ints) -> NDArray[np.int32]:
    """The records that have a priced neighbour."""
    _, reached = list_all_neighbours(tree, np.flatnonzero(price > 0).astype(np.int32))
    return np.unique(reached).astype(np.int32)


def _sum_by(index: NDArray[np.integer], amounts: Ints, size: int) -> Ints:
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, index, amounts)
    return sums


def _are_edges(tree: Tree, consumer: Ints, supplier: Ints) -> bool:
    """Whether all these pairs are near, of two different records, and none is there twice."""
    if (consumer == supplier).any() or len(np.unique(consumer * tree.n + supplier)) < len(consumer):
        return False
    sizes = np.diff(tree.starts)
    records = np.concatenate([tree.blocks[leaf, :, : sizes[leaf]].T for leaf in range(tree.leaves)])
    for start in range(0, len(consumer), EDGES_PER_CHECK):
        one = records[consumer[start : start + EDGES_PER_CHECK]]
        other = records[supplier[start : start + EDGES_PER_CHECK]]
        total = np.zeros(len(one))
        for column in range(one.shape[1]):  # in the order of `near`, so that the sums are the same to the bit  (P)
            difference = one[:, column] - other[:, column]
            total += difference * difference
        if (total > tree.reach).any():
            return False
    return True
