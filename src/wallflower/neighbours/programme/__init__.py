"""One contest for scarce supply: a linear programme, with bounds that do not trust the solver.

Consumers ask suppliers with little room, and have fewer than k neighbours with room enough for everybody. The interior
point of `interior.py` decides most contests; should its bounds not meet, HiGHS tries, then subgradients, which always
end (proof.md of `count`, label (C2)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wallflower.machine.jit import light_kernel
from wallflower.machine.lazy import Lazy
from wallflower.neighbours.pairs import Floats, Ints
from wallflower.neighbours.programme.fronts import dissect
from wallflower.neighbours.programme.interior import interior

if TYPE_CHECKING:
    import scipy.optimize as _optimize
    import scipy.sparse as _sparse
else:
    _optimize = Lazy("scipy.optimize")
    _sparse = Lazy("scipy.sparse")

SOLVERS = (
    ("highs-ds", {"presolve": True}),
    ("highs-ds", {"presolve": False}),
    ("highs-ipm", {"presolve": True}),
)
ENOUGH = 0.5  # of the tolerance: what the interior point leaves to rounding


@dataclass(frozen=True, slots=True)
class Contest:
    """Edge e joins `consumer[e]` to `supplier[e]`, sorted by consumer. Supplier i can give `room[i]` and stands at
    `address[i]` of the tree. Consumer c also has `free[c]` < k neighbours that can give as much as it asks."""

    consumer: Ints
    supplier: Ints
    free: Ints
    room: Floats
    neighbours: int
    address: Ints


@dataclass(frozen=True, slots=True)
class Verdict:
    """What each contestant gets, along which edges, the most it asks of one supplier, what it could gain at these
    prices, the prices."""

    served: Floats
    flow: Floats
    cap: Floats
    gain: Floats
    prices: Floats

    def gap(self, room: Floats) -> float:
        return float(self.gain.sum() + room @ self.prices - self.served.sum())


def decide(contest: Contest, tolerance: float) -> Verdict:
    """Solve one contest to within `tolerance`: by an interior point, should that not be exact enough by HiGHS, and
    should no run of it be either, by subgradients, which converge whatever the rounding."""
    verdict = _verdict(contest, *_interior(contest, ENOUGH * tolerance))
    for method, options in SOLVERS:
        if verdict.gap(contest.room) <= tolerance:
            return verdict
        verdict = _verdict(contest, *_highs(contest, method, options))
    return subgradients(contest, verdict, tolerance)


def _interior(contest: Contest, aim: float) -> tuple[Floats, Floats, Floats]:
    starts = np.searchsorted(contest.consumer, np.arange(len(contest.free) + 1))
    bits = int(contest.address.max(initial=1)).bit_length()
    fronts = dissect(starts, contest.supplier, contest.address, bits)
    return interior(starts, contest.supplier, contest.neighbours - 1 - contest.free, contest.room, fronts, aim)


def _highs(contest: Contest, method: str, options: dict[str, bool]) -> tuple[Floats, Floats, Floats]:
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


def _verdict(contest: Contest, flow: Floats, cap: Floats, prices: Floats) -> Verdict:
    """Make the flows feasible and the prices non-negative, and take their worth (C2)."""
    consumers = len(contest.free)
    cap, prices = np.clip(cap, 0.0, 1.0), np.maximum(prices, 0.0)
    flow = np.clip(flow, 0.0, cap[contest.consumer])
    load = np.bincount(contest.supplier, weights=flow, minlength=len(contest.room))
    flow = flow * np.where(load > contest.room, contest.room / np.maximum(load, 1e-300), 1.0)[contest.supplier]
    got = np.bincount(contest.consumer, weights=flow, minlength=consumers)
    served = np.clip(got + (contest.free - contest.neighbours + 1) * cap, 0.0, 1.0)
    cost = _cheapest(contest, prices)[0]
    return Verdict(served, flow, cap, np.maximum(0.0, 1.0 - cost), prices)


def subgradients(contest: Contest, best: Verdict, tolerance: float) -> Verdict:
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
        now = _verdict(contest, flow, cap, prices)
        fuller = now if now.served.sum() > best.served.sum() else best
        cheaper = min(now, best, key=lambda v: float(v.gain.sum() + contest.room @ v.prices))
        best = Verdict(fuller.served, fuller.flow, fuller.cap, cheaper.gain, cheaper.prices)
    return best


def _cheapest(contest: Contest, prices: Floats) -> tuple[Floats, Floats, Floats]:
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
