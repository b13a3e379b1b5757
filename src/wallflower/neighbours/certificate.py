"""Exact bounds on the extension: the solver's floats become whole numbers, and whole-number arithmetic checks them.

`certify` of `extension.py` computes its bounds with floats, and proof.md of `count` bounds their rounding (F). Here the
same allocation and the same prices are rounded to whole parts, made feasible, and checked, constraint by constraint: an
allocation is a lower bound of E (C1), prices are an upper one (C2). `accepts_shares`, `accepts_prices` and the bounds
are, line by line, those of `proofs/theories/Certificate.v`, where it is proved that what they accept is within 1/256 of
E and that a count made from it is private (C5). Two things are trusted still: that the lists of neighbours are complete
(P), and that these few lines of Python do what they say.

A count with `certify=True` is made from accepted certificates alone. None is refused to an analyst: whether one is
accepted depends on the records. A certificate that is not accepted is computed again, at last in fractions, which
cannot fail (`simplex.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.jit import light_kernel
from wallflower.neighbours.extension import MAX_LISTED_RECORDS, UNIT, Assignment, Demand, assign
from wallflower.neighbours.pairs import Floats, Index, Ints, Tree, count_neighbours
from wallflower.neighbours.region import Region, list_all_neighbours
from wallflower.neighbours.simplex import Row, maximise

Flags = NDArray[np.bool_]

MAX_CERTIFIED_RECORDS: Final = MAX_LISTED_RECORDS  # 2²⁰, so that sums over all records fit 64 bits  (C5)
PARTS_PER_RECORD: Final = UNIT << 22  # below 2⁴²; equal shares are whole numbers of parts
MAX_GAP: Final = Fraction(1, 256)  # of a record, between the bounds of an accepted certificate: η of (N)
TOLERANCES: Final = (float(MAX_GAP) / 2, float(MAX_GAP) / 64)  # of the float solver, one after the other


@dataclass(frozen=True, slots=True)
class Allocation:
    """Who gets what: edge e carries `flow[e]` from `supplier[e]` to `consumer[e]`, whose edges follow one another;
    record j asks one supplier for up to `cap[j]`, and gets `got[j]`. In `PARTS_PER_RECORD`, by places in the tree."""

    consumer: Index
    supplier: Index
    flow: Ints
    cap: Ints
    got: Ints


@dataclass(frozen=True, slots=True)
class Prices:
    """What supply costs at each record, and the cost at which each record can be served, in `PARTS_PER_RECORD`."""

    price: Ints
    cost: Ints


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The records `who` that have a priced neighbour, with all their neighbours: `row[e]` of `who` is near
    `supplier[e]`."""

    who: Index
    row: Ints
    supplier: Index


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


def serve_parts(tree: Tree, neighbours: int, slack: int) -> int:
    """Return the parts that an accepted certificate serves: E is within 1/256 above, whatever computed it.  (C5)"""
    for allocation, prices in _propose(tree, neighbours, slack):
        bounds = check_certificate(tree, neighbours, slack, allocation, prices)
        if bounds is not None and bounds[1] - bounds[0] <= MAX_GAP:
            return int(allocation.got.sum())
    raise AssertionError("the simplex method is exact")


def count_steps(n: int, parts: int, steps_per_record: int) -> int:
    """Return the number of outliers in steps, rounded: `whole_steps` of Certificate.v, for 128 steps.  (C5)

    >>> count_steps(10, 7 * PARTS_PER_RECORD, 128) / 128
    3.0
    """
    doubled = 2 * steps_per_record * (n * PARTS_PER_RECORD - parts) + PARTS_PER_RECORD
    return doubled // (2 * PARTS_PER_RECORD)


def certify_exactly(tree: Tree, neighbours: int, slack: int, gap: float) -> ExactBounds:
    """Solve the programme as a release does, and bound its value by a checked certificate.

    Raises ParameterError for more than 2²⁰ records, and ArithmeticError if a certificate is not accepted.
    """
    check_size(tree.n)
    assignment = assign(tree, neighbours, float(slack), gap)
    allocation = round_allocation(tree, neighbours, slack, assignment)
    bounds = check_certificate(tree, neighbours, slack, allocation, round_prices(tree, neighbours, assignment.prices))
    if bounds is None:
        raise ArithmeticError("the certificate is not accepted")
    assert assignment.bounds is not None
    return ExactBounds(*bounds, value=assignment.bounds.lower)


def check_size(n: int) -> None:
    """Refuse tables of more records than sums of parts fit 64 bits for."""
    if n > MAX_CERTIFIED_RECORDS:
        raise ParameterError(
            f"records: {n:,} are too many for a certificate. At most {MAX_CERTIFIED_RECORDS:,}. Take a sample."
        )


# The checker: `accepts` of Certificate.v. Every number is checked to be at most PARTS_PER_RECORD before it is added, so
# that no sum over 2²⁰ records can overflow 64 bits (`bounded_sum_fits`, `machine_sum_exact`).


def check_certificate(
    tree: Tree, neighbours: int, slack: int, allocation: Allocation, prices: Prices
) -> tuple[Fraction, Fraction] | None:
    """Return the bounds on E that a certificate proves; None if it is not accepted."""
    around = list_surroundings(tree, prices.price)
    if not accepts_shares(tree, neighbours, slack, allocation) or not accepts_prices(neighbours, prices, around):
        return None
    lower = Fraction(int(allocation.got.sum()), PARTS_PER_RECORD)
    return lower, Fraction(bound_parts(tree, neighbours, slack, prices), PARTS_PER_RECORD)


def accepts_shares(tree: Tree, neighbours: int, slack: int, allocation: Allocation) -> bool:
    """Check every constraint of the programme: `accepts_shares` of Certificate.v."""
    n, cap, got = tree.n, allocation.cap, allocation.got
    consumer, supplier = allocation.consumer, allocation.supplier
    if not (n <= MAX_CERTIFIED_RECORDS and len(cap) == len(got) == n and _are_parts(cap) and _are_parts(got)):
        return False
    if len(consumer) and not (0 <= min(consumer.min(), supplier.min()) <= max(consumer.max(), supplier.max()) < n):
        return False
    served, load = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    last, begun = np.full(n, -1), np.zeros(n, dtype=np.bool_)
    are_edges = _check_edges(
        _list_records(tree), tree.reach, consumer, supplier, allocation.flow, cap, served, load, last, begun
    )
    factor = min(neighbours - 1, MAX_CERTIFIED_RECORDS)  # no record has more neighbours
    return bool(
        are_edges
        and (got + factor * cap <= served).all()
        and (slack > MAX_CERTIFIED_RECORDS or (load <= slack * PARTS_PER_RECORD).all())
    )


def accepts_prices(neighbours: int, prices: Prices, around: Surroundings) -> bool:
    """Check that prices are not negative and costs affordable: `accepts_prices` of Certificate.v.

    A record without a priced neighbour can have the cost 0 only, and 0 is always affordable; so only the others are
    added up. All neighbours of theirs count.
    """
    price, cost, who = prices.price, prices.cost, around.who
    if not (_are_parts(price) and _are_parts(cost)) or np.count_nonzero(cost) > np.count_nonzero(cost[who]):
        return False
    lacking = np.zeros(len(who), dtype=np.int64)
    _add_lacking(around.row, around.supplier, price, cost[who], lacking)
    factor = min(neighbours - 1, MAX_CERTIFIED_RECORDS)
    return bool((lacking <= factor * cost[who]).all())


def bound_parts(tree: Tree, neighbours: int, slack: int, prices: Prices) -> int:
    """Add up what accepted prices prove: `parts_bound` of Certificate.v."""
    is_inlier = count_neighbours(tree, neighbours) >= neighbours
    gains = np.maximum(0, PARTS_PER_RECORD - prices.cost[is_inlier])
    return slack * int(prices.price.sum()) + int(gains.sum())


def list_surroundings(tree: Tree, price: Ints) -> Surroundings:
    """List all neighbours of the records that have a priced one.  (P)"""
    _, reached = list_all_neighbours(tree, np.flatnonzero(price).astype(np.int32))
    who = np.unique(reached).astype(np.int32)
    return Surroundings(who, *list_all_neighbours(tree, who))


def _are_parts(numbers: Ints) -> bool:
    return bool(((numbers >= 0) & (numbers <= PARTS_PER_RECORD)).all())


def _list_records(tree: Tree) -> Floats:
    """Return the records in tree order."""
    inner = np.arange(tree.blocks.shape[2]) < np.diff(tree.starts)[:, None]
    return np.ascontiguousarray(tree.blocks.transpose(0, 2, 1)[inner])


@light_kernel
def _check_edges(
    records: Floats,
    reach: float,
    consumer: Index,
    supplier: Index,
    flow: Ints,
    cap: Ints,
    served: Ints,
    load: Ints,
    last: Ints,
    begun: Flags,
) -> bool:
    """Whether all edges are of two different near records, none is there twice, and none carries more than its cap; add
    up what is served and supplied. `last` notes who last asked a supplier, which is enough: the edges of a consumer
    follow one another, since each has `begun` once."""
    for e in range(len(consumer)):
        j, i = consumer[e], supplier[e]
        if e == 0 or j != consumer[e - 1]:
            if begun[j]:
                return False
            begun[j] = True
        if i == j or last[i] == j or flow[e] < 0 or flow[e] > cap[j]:
            return False
        total = 0.0
        for c in range(records.shape[1]):  # in the order of `near`, so that the sums are the same to the bit  (P)
            difference = records[j, c] - records[i, c]
            total += difference * difference
        if not total <= reach:
            return False
        last[i] = j
        served[j] += flow[e]
        load[i] += flow[e]
    return True


@light_kernel
def _add_lacking(row: Ints, supplier: Index, price: Ints, cost: Ints, lacking: Ints) -> None:
    """Add up what the neighbours of each record lack to its cost."""
    for e in range(len(row)):
        lacking[row[e]] += max(0, cost[row[e]] - price[supplier[e]])


# What is checked: rounded from the solver's floats, or computed in fractions. Nothing here is trusted.


def _propose(tree: Tree, neighbours: int, slack: int) -> Iterator[tuple[Allocation, Prices]]:
    """Make certificates, each more exact than the one before; the last one is exact."""
    for tolerance in TOLERANCES:
        assignment = assign(tree, neighbours, float(slack), tolerance)
        allocation = round_allocation(tree, neighbours, slack, assignment)
        yield allocation, round_prices(tree, neighbours, assignment.prices)
    yield solve_in_fractions(tree, neighbours, slack)


def round_allocation(tree: Tree, neighbours: int, slack: int, assignment: Assignment) -> Allocation:
    """Round flows down to whole parts, cut those of suppliers that are still above their cap, and add up."""
    return complete_allocation(tree.n, neighbours, slack, *_edges_of(assignment))


def complete_allocation(
    n: int, neighbours: int, slack: int, consumer: Index, supplier: Index, flow: Ints
) -> Allocation:
    """Cut the flows of suppliers above their cap, and find what the consumers get of the rest."""
    _, load, _ = _sum_edges(n, consumer, supplier, flow)
    excess = np.maximum(load - min(slack, MAX_CERTIFIED_RECORDS) * PARTS_PER_RECORD, 0)
    if excess.any():  # by rounding alone, so by little
        _cut_flows(supplier, flow, excess)
    served, _, cap = _sum_edges(n, consumer, supplier, flow)
    got = np.clip(served - (neighbours - 1) * cap, 0, PARTS_PER_RECORD)
    idle = got == 0  # a record that gets nothing asks nothing: what its flows leave over serves nobody
    cap[idle] = 0
    flow[idle[consumer]] = 0
    return Allocation(consumer, supplier, flow, cap, got)


def round_prices(tree: Tree, neighbours: int, floats: Floats | None) -> Prices:
    """Round prices to whole parts, and take for each record the largest cost that they allow (C2). A price above 1 buys
    no more than 1."""
    if floats is None:
        return Prices(np.zeros(tree.n, dtype=np.int64), np.zeros(tree.n, dtype=np.int64))
    price = np.rint(np.clip(floats, 0.0, 1.0) * PARTS_PER_RECORD).astype(np.int64)
    around, cost = list_surroundings(tree, price), np.zeros(tree.n, dtype=np.int64)
    most = np.zeros(len(around.who), dtype=np.int64)
    starts = np.searchsorted(around.row, np.arange(len(around.who) + 1))
    _find_costs(starts, price[around.supplier], neighbours, PARTS_PER_RECORD, most)
    cost[around.who] = most
    return Prices(price, cost)


def solve_in_fractions(tree: Tree, neighbours: int, slack: int) -> tuple[Allocation, Prices]:
    """Solve the whole programme by the simplex method and round its solution down to parts: exact up to these. Its time
    grows so fast with the table that it is for small ones, and for the theorem."""
    is_inlier = count_neighbours(tree, neighbours) >= neighbours
    who = np.flatnonzero(is_inlier).astype(np.int32)
    row, supplier = list_all_neighbours(tree, who)
    rows, limits = _list_constraints(len(who), row.tolist(), supplier.tolist(), neighbours, slack)
    solution, prices = maximise({j: Fraction(1) for j in range(len(who))}, rows, limits)
    flow = [int(solution.get(2 * len(who) + e, Fraction(0)) * PARTS_PER_RECORD) for e in range(len(row))]
    edges = who[row], supplier, np.array(flow, dtype=np.int64)
    floats = np.zeros(tree.n)
    for i, price in zip(np.unique(supplier).tolist(), prices[2 * len(who) + len(row) :], strict=True):
        floats[i] = float(price)
    return complete_allocation(tree.n, neighbours, slack, *edges), round_prices(tree, neighbours, floats)


def _list_constraints(
    consumers: int, row: list[int], supplier: list[int], neighbours: int, slack: int
) -> tuple[list[Row], list[int]]:
    """Return the programme of (E): columns are y, μ and f; rows are y ≤ 1, demand, f ≤ μ, and supply in order."""
    one, edge = Fraction(1), 2 * consumers
    served = [{j: one} for j in range(consumers)]
    demand = [{j: one, consumers + j: Fraction(neighbours - 1)} for j in range(consumers)]
    supply: dict[int, Row] = {i: {} for i in sorted(set(supplier))}
    for e, (j, i) in enumerate(zip(row, supplier, strict=True)):
        demand[j][edge + e] = -one
        supply[i][edge + e] = one
    even = [{edge + e: one, consumers + j: -one} for e, j in enumerate(row)]
    limits = [1] * consumers + [0] * (consumers + len(row)) + [slack] * len(supply)
    return [*served, *demand, *even, *supply.values()], limits


def _edges_of(assignment: Assignment) -> tuple[Index, Index, Ints]:
    """Return all edges of an assignment, those of a consumer one after the other."""
    demand, region = assignment.demand, assignment.region
    if demand is None:
        raise ArithmeticError("the solver kept no allocation")
    others = [_moved_edges(demand)]
    if region is not None:
        others.append(_region_edges(region))
    equal = int(demand.asked[demand.share > 0].sum())
    size = equal + sum(len(flow) for _, _, flow in others)
    consumer, supplier = np.empty(size, dtype=np.int32), np.empty(size, dtype=np.int32)
    flow = np.empty(size, dtype=np.int64)
    _list_equal_edges(demand.met, demand.asked, demand.share, PARTS_PER_RECORD // UNIT, consumer, supplier, flow)
    for piece in others:
        stop = equal + len(piece[2])
        consumer[equal:stop], supplier[equal:stop], flow[equal:stop] = piece
        equal = stop
    return consumer, supplier, flow


@light_kernel
def _list_equal_edges(
    met: Index, asked: Ints, share: Ints, parts: int, consumer: Index, supplier: Index, flow: Ints
) -> None:
    e = 0
    for j in range(len(share)):
        if share[j] > 0:
            for place in range(asked[j]):
                consumer[e], supplier[e], flow[e] = j, met[j, place], share[j] * parts
                e += 1


def _moved_edges(demand: Demand) -> tuple[Index, Index, Ints]:
    listed = np.arange(demand.listed.shape[1]) < demand.length[:, None]
    return np.repeat(demand.active, demand.length), demand.listed[listed], _in_parts(demand.flow[listed])


def _region_edges(region: Region) -> tuple[Index, Index, Ints]:
    flow = np.clip(region.flow, 0.0, region.cap[region.consumer])
    return region.who[region.consumer], region.supplier, _in_parts(flow)


def _in_parts(flow: Floats) -> Ints:
    return np.floor(np.clip(flow, 0.0, 1.0) * PARTS_PER_RECORD).astype(np.int64)


def _sum_edges(n: int, consumer: Index, supplier: Index, flow: Ints) -> tuple[Ints, Ints, Ints]:
    """Return what each record gets, what it supplies, and the most that it asks of one supplier."""
    served, load, cap = (np.zeros(n, dtype=np.int64) for _ in range(3))
    _add_edges(consumer, supplier, flow, served, load, cap)
    return served, load, cap


@light_kernel
def _add_edges(consumer: Index, supplier: Index, flow: Ints, served: Ints, load: Ints, cap: Ints) -> None:
    for e in range(len(consumer)):
        j = consumer[e]
        served[j] += flow[e]
        load[supplier[e]] += flow[e]
        cap[j] = max(cap[j], flow[e])


@light_kernel
def _cut_flows(supplier: Index, flow: Ints, excess: Ints) -> None:
    for e in range(len(supplier)):
        cut = min(flow[e], excess[supplier[e]])
        flow[e] -= cut
        excess[supplier[e]] -= cut


@light_kernel
def _find_costs(starts: Ints, price: Ints, neighbours: int, most: int, cost: Ints) -> None:
    """The largest cost of each record: the least, over s from `neighbours` on, of the sum of its s lowest prices
    divided by s - neighbours + 1.  (C2)"""
    for j in range(len(cost)):
        prices = np.sort(price[starts[j] : starts[j + 1]])
        if len(prices) < neighbours:
            continue
        total, least = 0, most
        for s in range(len(prices)):
            total += prices[s]
            if s + 1 >= neighbours:
                least = min(least, total // (s + 2 - neighbours))
        cost[j] = least
