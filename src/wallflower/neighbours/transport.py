"""Solve one transport programme for scarce supply, with bounds that do not trust the solver.

Consumers ask suppliers with little room, and have fewer than k neighbours with room enough for everybody. An interior
point method solves most programmes; should its bounds not meet, HiGHS tries, then subgradients, which always end
(proof.md of `count`, label (C2)). HiGHS alone is no substitute: on 1,385 consumers with 83,000 edges its dual simplex
takes 41 CPU seconds and its interior point 59, this one 2.5 (`python -m benchmarks contests` has the tables).

The interior point goes by the structure of the programme: one unknown price per supplier. Newton's equations for flows,
caps and prices reduce to one symmetric positive system over the suppliers, a sum of small blocks, one per consumer;
`frontals.py` solves it. All iterates are feasible for flows and for prices.

A *pair* is a slack and its price, whose product vanishes at the optimum. In order: for each edge its flow and reduced
cost; for each edge what is left below the cap, and the price of the cap; for each consumer what is left to be served,
and its gain; for each supplier the room left, and its price. The products add up to the gap. Two more numbers of
each consumer have no pair: its cap and its worth, which is 1 - gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wallflower.machine.heavy import scipy_optimize as _optimize
from wallflower.machine.heavy import scipy_sparse as _sparse
from wallflower.machine.jit import light_kernel
from wallflower.neighbours.frontals import Frontals, dissect, factor, solve
from wallflower.neighbours.pairs import Floats, Ints

HIGHS_RUNS = (
    ("highs-ds", {"presolve": True}),
    ("highs-ds", {"presolve": False}),
    ("highs-ipm", {"presolve": True}),
)
INTERIOR_TOLERANCE_SHARE = 0.5  # of the tolerance: what the interior point leaves to rounding


@dataclass(frozen=True, slots=True)
class TransportLP:
    """Edge e joins `consumer[e]` to `supplier[e]`, sorted by consumer. Supplier i can give `room[i]` and stands at
    `address[i]` of the tree. Consumer c also has `free[c]` < k neighbours that can give as much as it asks."""

    consumer: Ints
    supplier: Ints
    free: Ints
    room: Floats
    neighbours: int
    address: Ints


@dataclass(frozen=True, slots=True)
class TransportSolution:
    """What each contestant gets, along which edges, the most it asks of one supplier, what it could gain at these
    prices, the prices."""

    served: Floats
    flow: Floats
    cap: Floats
    gain: Floats
    prices: Floats

    def gap(self, room: Floats) -> float:
        return float(self.gain.sum() + room @ self.prices - self.served.sum())


def solve_transport(contest: TransportLP, tolerance: float) -> TransportSolution:
    """Solve one contest to within `tolerance`: by an interior point, should that not be exact enough by HiGHS, and
    should no run of it be either, by subgradients, which converge whatever the rounding."""
    verdict = _make_feasible(contest, *_interior(contest, INTERIOR_TOLERANCE_SHARE * tolerance))
    for method, options in HIGHS_RUNS:
        if verdict.gap(contest.room) <= tolerance:
            return verdict
        verdict = _make_feasible(contest, *_highs(contest, method, options))
    return solve_by_subgradients(contest, verdict, tolerance)


def _interior(contest: TransportLP, aim: float) -> tuple[Floats, Floats, Floats]:
    starts = np.searchsorted(contest.consumer, np.arange(len(contest.free) + 1))
    bits = int(contest.address.max(initial=1)).bit_length()
    fronts = dissect(starts, contest.supplier, contest.address, bits)
    return interior_point(starts, contest.supplier, contest.neighbours - 1 - contest.free, contest.room, fronts, aim)


def _highs(contest: TransportLP, method: str, options: dict[str, bool]) -> tuple[Floats, Floats, Floats]:
    """Flows, caps and prices as the solver reports them. Columns: y and mu by consumer, f by edge."""
    consumers, edges, suppliers = len(contest.free), len(contest.consumer), len(contest.room)
    each, edge = np.arange(consumers), np.arange(edges)
    served = [(each, each, np.ones(consumers)), (each, consumers + each, contest.neighbours - 1.0 - contest.free)]
    served += [(contest.consumer, 2 * consumers + edge, -np.ones(edges))]
    capped = [(consumers + edge, 2 * consumers + edge, np.ones(edges))]
    capped += [(consumers + edge, consumers + contest.consumer, -np.ones(edges))]
    supply = [(consumers + edges + contest.supplier, 2 * consumers + edge, np.ones(edges))]
    rows, columns, weights = (np.concatenate(part) for part in zip(*served, *capped, *supply, strict=True))
    shape = (consumers + edges + suppliers, 2 * consumers + edges)
    result = _optimize.linprog(
        c=np.concatenate([-np.ones(consumers), np.zeros(consumers + edges)]),
        A_ub=_sparse.coo_array((weights, (rows, columns)), shape=shape).tocsr(),
        b_ub=np.concatenate([np.zeros(consumers + edges), contest.room]),
        bounds=(0, 1),  # (C3)
        method=method,
        options=options | {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        return np.zeros(edges), np.zeros(consumers), np.zeros(suppliers)
    prices = -result.ineqlin.marginals[consumers + edges :]
    return result.x[2 * consumers :], result.x[consumers : 2 * consumers], prices


def _make_feasible(contest: TransportLP, flow: Floats, cap: Floats, prices: Floats) -> TransportSolution:
    """Make the flows feasible and the prices non-negative, and take their worth (C2)."""
    consumers = len(contest.free)
    cap, prices = np.clip(cap, 0.0, 1.0), np.maximum(prices, 0.0)
    flow = np.clip(flow, 0.0, cap[contest.consumer])
    load = np.bincount(contest.supplier, weights=flow, minlength=len(contest.room))
    flow = flow * np.where(load > contest.room, contest.room / np.maximum(load, 1e-300), 1.0)[contest.supplier]
    got = np.bincount(contest.consumer, weights=flow, minlength=consumers)
    served = np.clip(got + (contest.free - contest.neighbours + 1) * cap, 0.0, 1.0)
    cost = _cheapest(contest, prices)[0]
    return TransportSolution(served, flow, cap, np.maximum(0.0, 1.0 - cost), prices)


def solve_by_subgradients(contest: TransportLP, best: TransportSolution, tolerance: float) -> TransportSolution:
    """Prices follow the excess demand with steps 1/sqrt(t); the average reply since the last power of two becomes
    feasible and best [NO09]."""
    flow, cap, turn, since = np.zeros(len(contest.consumer)), np.zeros(len(contest.free)), 0, 0
    prices = best.prices
    while best.gap(contest.room) > tolerance:
        turn, since = turn + 1, 1 if turn & (turn + 1) == 0 else since + 1
        _, mu, asked = _cheapest(contest, prices)
        flow = flow + (asked - flow) / since
        cap = cap + (mu - cap) / since
        load = np.bincount(contest.supplier, weights=asked, minlength=len(contest.room))
        prices = np.maximum(0.0, prices + (load - contest.room) / (10.0 * np.sqrt(turn)))
        now = _make_feasible(contest, flow, cap, prices)
        fuller = now if now.served.sum() > best.served.sum() else best
        cheaper = min(now, best, key=lambda v: float(v.gain.sum() + contest.room @ v.prices))
        best = TransportSolution(fuller.served, fuller.flow, fuller.cap, cheaper.gain, cheaper.prices)
    return best


def _cheapest(contest: TransportLP, prices: Floats) -> tuple[Floats, Floats, Floats]:
    """For each consumer the least it pays to be served: its s cheapest suppliers give 1/(s-k+1) each, s as best fits.
    Also what it asks of each, and along which edges."""
    starts = np.searchsorted(contest.consumer, np.arange(len(contest.free) + 1))
    order = np.lexsort((prices[contest.supplier], contest.consumer))
    return _cheapest_in_order(starts, order, prices[contest.supplier], contest.free, contest.neighbours)


@light_kernel
def _cheapest_in_order(
    starts: Ints, order: Ints, price: Floats, free: Ints, neighbours: int
) -> tuple[Floats, Floats, Floats]:
    cost, mu, asked = np.full(len(free), np.inf), np.zeros(len(free)), np.zeros(len(price))
    for c in range(len(free)):
        total, taken = 0.0, 0
        for s in range(starts[c + 1] - starts[c]):
            total += price[order[starts[c] + s]]
            spare = free[c] + s + 1 - neighbours + 1
            if spare > 0 and total / spare <= cost[c]:
                cost[c], mu[c], taken = total / spare, 1.0 / spare, s + 1
        if cost[c] < 1.0:
            for s in range(taken):
                asked[order[starts[c] + s]] = mu[c]
        else:
            mu[c] = 0.0
    return cost, mu, asked


MAX_STEPS = 300  # the largest contests of the study need 140; HiGHS, which follows, would take hours there
MAX_CORRECTORS = 6
STALLED_GAP_RATIO, MAX_STALLED_STEPS = 0.99, 8
BOUNDARY_SHARE = 0.995  # how much of the way to the nearest limit a step may go


def interior_point(
    starts: Ints, supplier: Ints, short: Ints, room: Floats, fronts: Frontals, aim: float
) -> tuple[Floats, Floats, Floats]:
    """Flows, caps and prices whose worths differ by at most `aim`, unless rounding or MAX_STEPS forbid it: Mehrotra's
    predictor and corrector, then Gondzio's correctors while they lengthen the step [Gon96].

    Consumer c has the edges `starts[c]` to `starts[c+1]-1` and lacks `short[c]` free suppliers, so that it is served
    sum f - short cap.
    """
    edges, consumers = len(supplier), len(short)
    pairs, free = _begin(starts, supplier, short, room)
    newton = Newton(starts, supplier, short, pairs, fronts)
    moves, shifts = newton.directions()
    trial, others = newton.directions()
    gap, stuck = _gap(pairs, moves, 0.0, 0.0), 0
    for _ in range(MAX_STEPS):
        if not aim < gap < np.inf:
            break
        newton.factor()
        tau = -pairs[0] * pairs[1]
        newton.direct(tau, moves, shifts)
        primal, dual = _reach(pairs[0], moves[0]), _reach(pairs[1], moves[1])
        centre = max((_gap(pairs, moves, primal, dual) / gap) ** 3, 1e-8) * gap / len(tau)
        tau += centre - moves[0] * moves[1]
        newton.direct(tau, moves, shifts)
        primal, dual = _reach(pairs[0], moves[0]), _reach(pairs[1], moves[1])
        for _ in range(MAX_CORRECTORS):
            if min(primal, dual) > 0.9:
                break
            _centre(pairs, moves, min(1.0, 1.2 * primal + 0.1), min(1.0, 1.2 * dual + 0.1), centre, tau)
            newton.direct(tau, trial, others)
            further, dearer = _reach(pairs[0], trial[0]), _reach(pairs[1], trial[1])
            if further + dearer < primal + dual + 0.02:
                break
            primal, dual = further, dearer
            moves, shifts, trial, others = trial, others, moves, shifts
        pairs += np.array([[primal], [dual]]) * moves
        free += np.array([[primal], [dual]]) * shifts
        before, gap = gap, _gap(pairs, moves, 0.0, 0.0)
        stuck = stuck + 1 if gap > STALLED_GAP_RATIO * before else 0
        if stuck == MAX_STALLED_STEPS:  # rounding lets it go no further
            break
    return pairs[0, :edges], free[0], pairs[1, 2 * edges + consumers :]


class Newton:
    """Newton's equations at the present pairs, factored."""

    def __init__(self, starts: Ints, supplier: Ints, short: Ints, pairs: Floats, fronts: Frontals) -> None:
        self._graph, self._pairs, self._fronts = (starts, supplier, short), pairs, fronts
        self._weights, self._blocks = np.zeros((5, len(supplier))), np.empty((4, len(short)))
        self._work, self._stack = np.empty(fronts.room[0] ** 2), np.empty(fronts.room[1])
        self._factors = np.empty(fronts.panel[-1])
        self._base = 2 * len(supplier) + len(short)

    def directions(self) -> tuple[Floats, Floats]:
        """Room for one direction."""
        return np.zeros(self._pairs.shape), np.zeros((2, len(self._graph[2])))

    def factor(self) -> None:
        starts, _, short = self._graph
        plan, diagonal = self._fronts, np.empty(len(self._fronts.rank))
        _weigh(starts, short, self._pairs, self._weights, self._blocks)
        diagonal[plan.rank] = self._pairs[0, self._base :] / self._pairs[1, self._base :]
        factor(
            plan.first, plan.ahead, plan.spots, plan.children, plan.joins, plan.members, plan.slot, plan.panel,
            self._work, self._stack, starts, diagonal, self._weights, self._factors,
        )  # fmt: skip

    def direct(self, tau: Floats, moves: Floats, shifts: Floats) -> None:
        """The direction towards products that differ from today's by `tau`."""
        plan, right = self._fronts, np.empty(len(self._fronts.rank))
        _ask(*self._graph, self._pairs, self._weights, self._blocks, tau, plan.rank, right, moves, shifts)
        solve(plan.first, plan.ahead, plan.later, plan.panel, self._factors, right)
        _reply(*self._graph, self._weights, self._blocks, plan.rank, right, moves, shifts)


@light_kernel
def _begin(starts: Ints, supplier: Ints, short: Ints, room: Floats) -> tuple[Floats, Floats]:
    """A feasible start well inside all limits: everybody asks the same of a supplier, which keeps some room.

    That serves nobody yet, but the products differ less than at shares that serve: a fifth fewer steps follow.
    """
    edges, consumers = len(supplier), len(short)
    pairs, free = np.empty((2, 2 * edges + consumers + len(room))), np.empty((2, consumers))
    asking = np.zeros(len(room))
    for e in range(edges):
        asking[supplier[e]] += 1.0
    left = pairs[0, 2 * edges + consumers :]
    left[:] = room
    pairs[1, 2 * edges + consumers :] = 0.4
    for c in range(consumers):
        most, total = 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            flow = 0.7 * min(1.0, room[supplier[e]] / asking[supplier[e]])
            pairs[0, e] = flow
            most, total = max(most, flow), total + flow
        if short[c] > 0:
            part, free[0, c] = 1.0, max(1.3 * most, (total - 0.5) / short[c])
        else:  # who lacks none has a cap of 1, and nothing but its demand limits what it asks
            part, free[0, c] = 0.5 / max(total, 0.5), 1.0
        free[1, c] = 0.3
        pairs[0, 2 * edges + c], pairs[1, 2 * edges + c] = 1.0 - part * total + short[c] * free[0, c], 0.7
        price = 0.3 * short[c] / (starts[c + 1] - starts[c])
        for e in range(starts[c], starts[c + 1]):
            pairs[0, e] *= part
            left[supplier[e]] -= pairs[0, e]
            pairs[0, edges + e] = free[0, c] - pairs[0, e] if short[c] > 0 else 1.0
            pairs[1, e], pairs[1, edges + e] = 0.1 + price, price
    return pairs, free


@light_kernel
def _gap(pairs: Floats, moves: Floats, primal: float, dual: float) -> float:
    """The sum of the products after such a step."""
    total = 0.0
    for i in range(pairs.shape[1]):
        total += (pairs[0, i] + primal * moves[0, i]) * (pairs[1, i] + dual * moves[1, i])
    return total


@light_kernel
def _reach(values: Floats, moves: Floats) -> float:
    """The longest step, up to 1, that keeps all values positive."""
    longest = 1.0 / BOUNDARY_SHARE
    for i in range(len(values)):
        if values[i] + longest * moves[i] < 0.0:
            longest = -values[i] / moves[i]
    return BOUNDARY_SHARE * longest


@light_kernel
def _centre(pairs: Floats, moves: Floats, primal: float, dual: float, centre: float, tau: Floats) -> None:
    """Aim products that a longer step would make too small or too large back at the centre's neighbourhood."""
    for i in range(len(tau)):
        product = (pairs[0, i] + primal * moves[0, i]) * (pairs[1, i] + dual * moves[1, i])
        if product < 0.1 * centre:
            tau[i] += 0.1 * centre - product
        elif product > 10.0 * centre:
            tau[i] += max(10.0 * centre - product, -10.0 * centre)


@light_kernel
def _weigh(starts: Ints, short: Ints, pairs: Floats, weights: Floats, blocks: Floats) -> None:
    """Newton's equations with all but the prices of suppliers eliminated. Per edge: phi = f/D and psi = f z/(s D),
    where D = r + f z/s, then plus and minus of the consumer's block, diag(phi) + plus plus' - minus minus', and z/s."""
    edges = weights.shape[1]
    for c in range(len(short)):
        a, b, total = -float(short[c]), 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            f, s, r, z = pairs[0, e], pairs[0, edges + e], pairs[1, e], pairs[1, edges + e]
            ratio = z / s
            d = r + f * ratio
            weights[0, e], weights[1, e], weights[4, e] = f / d, f * ratio / d, ratio
            a, b, total = a + weights[1, e], b + ratio * r / d, total + weights[0, e]
        if short[c] == 0:
            b = 1.0
        served = total + pairs[0, 2 * edges + c] / pairs[1, 2 * edges + c]
        det = a * a + b * served
        blocks[0, c], blocks[1, c], blocks[2, c], blocks[3, c] = a, b, served, det
        small, large = 1.0 / np.sqrt(b), np.sqrt(b / det)
        for e in range(starts[c], starts[c + 1]):
            weights[2, e] = weights[1, e] * small
            weights[3, e] = (weights[0, e] + a / b * weights[1, e]) * large


@light_kernel
def _ask(
    starts: Ints,
    supplier: Ints,
    short: Ints,
    pairs: Floats,
    weights: Floats,
    blocks: Floats,
    tau: Floats,
    rank: Ints,
    right: Floats,
    moves: Floats,
    shifts: Floats,
) -> None:
    """The right-hand side of the system over suppliers; what does not depend on prices waits in moves and shifts."""
    edges, base = len(supplier), 2 * len(supplier) + len(short)
    for i in range(len(rank)):
        right[rank[i]] = tau[base + i] / pairs[1, base + i]
    for c in range(len(short)):
        a, b, served, det = blocks[0, c], blocks[1, c], blocks[2, c], blocks[3, c]
        one, two = 0.0, tau[2 * edges + c] / pairs[1, 2 * edges + c]
        for e in range(starts[c], starts[c + 1]):
            push = tau[edges + e] / pairs[0, edges + e] if short[c] > 0 else 0.0
            pull = weights[0, e] * (tau[e] / pairs[0, e] - push)
            moves[0, e], moves[1, edges + e] = pull, push
            one, two = one + push + weights[4, e] * pull, two + pull
        cap, worth = (served * one - a * two) / det, -(a * one + b * two) / det
        shifts[0, c], shifts[1, c] = cap, worth
        for e in range(starts[c], starts[c + 1]):
            right[rank[supplier[e]]] += moves[0, e] + weights[1, e] * cap + weights[0, e] * worth


@light_kernel
def _reply(
    starts: Ints,
    supplier: Ints,
    short: Ints,
    weights: Floats,
    blocks: Floats,
    rank: Ints,
    right: Floats,
    moves: Floats,
    shifts: Floats,
) -> None:
    """All moves, from those of the suppliers' prices."""
    edges, base = len(supplier), 2 * len(supplier) + len(short)
    for i in range(len(rank)):
        moves[0, base + i], moves[1, base + i] = 0.0, right[rank[i]]
    for c in range(len(short)):
        a, b, served, det = blocks[0, c], blocks[1, c], blocks[2, c], blocks[3, c]
        one, two = 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            price = moves[1, base + supplier[e]]
            one, two = one + weights[1, e] * price, two + weights[0, e] * price
        shifts[0, c] += (a * two - served * one) / det
        shifts[1, c] += (a * one + b * two) / det
        cap, worth = shifts[0, c], shifts[1, c]
        left = short[c] * cap
        for e in range(starts[c], starts[c + 1]):
            price = moves[1, base + supplier[e]]
            flow = moves[0, e] - weights[0, e] * (price - worth) + weights[1, e] * cap
            moves[0, e] = flow
            left -= flow
            moves[0, base + supplier[e]] -= flow
            if short[c] > 0:
                moves[0, edges + e] = cap - flow
                moves[1, edges + e] -= weights[4, e] * (cap - flow)
            moves[1, e] = price + moves[1, edges + e] - worth
        moves[0, 2 * edges + c], moves[1, 2 * edges + c] = left, -worth
