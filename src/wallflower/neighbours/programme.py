"""The contest for scarce suppliers: an exact linear programme by HiGHS, with bounds that do not trust the solver.

Contestants are the consumers with fewer than k neighbours that are not scarce. All others are served elsewhere, so the
optimum of this small programme and the number of the others make up E, and its prices prove it (proof.md of `count`,
label (C2)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wallflower.jit import kernel
from wallflower.lazy import Lazy
from wallflower.neighbours.pairs import Floats, Index, Ints, Tree, counts, lists

if TYPE_CHECKING:
    import scipy.optimize as _optimize
    import scipy.sparse as _sparse
    import scipy.sparse.csgraph as _graphs
else:
    _optimize = Lazy("scipy.optimize")
    _sparse = Lazy("scipy.sparse")
    _graphs = Lazy("scipy.sparse.csgraph")

Flags = NDArray[np.bool_]

PART_EDGES = 4_000
LIST_CELLS = 1 << 25
SOLVERS = (
    ("highs-ds", {"presolve": True}),
    ("highs-ds", {"presolve": False}),
    ("highs-ipm", {"presolve": True}),
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """`lower` is the worth of a feasible allocation, `upper` that of feasible prices: E lies between."""

    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class Contest:
    """Edge e joins `consumer[e]` to a scarce `supplier[e]`, sorted by consumer. Consumer c also has `free[c]` < k
    neighbours that are not scarce; scarce supplier i can still give `room[i]`."""

    consumer: Ints
    supplier: Ints
    free: Ints
    room: Floats
    neighbours: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What each contestant gets, the most it asks of one supplier, what it could gain at these prices, the prices."""

    served: Floats
    cap: Floats
    gain: Floats
    prices: Floats

    def gap(self, room: Floats) -> float:
        return float(self.gain.sum() + room @ self.prices - self.served.sum())


def settle_contest(
    tree: Tree, who: Index, scarce: Flags, neighbours: int, slack: float, total: float, tolerance: float
) -> tuple[Certificate, Floats]:
    """Bounds on E when all but `who` of `total` inliers are served without the scarce suppliers; also what the
    contestants ask of the suppliers that are not scarce."""
    consumer, supplier = neighbourhoods(tree, who)
    held = scarce[supplier]
    free = np.bincount(consumer[~held], minlength=len(who))
    kinds, local = np.unique(supplier[held], return_inverse=True)
    contest = Contest(consumer[held], local, free, np.full(len(kinds), slack), neighbours)
    verdict = _by_parts(contest, tolerance)
    others = total - len(who)
    lower = others + float(verdict.served.sum())
    upper = others + float(verdict.gain.sum()) + slack * float(verdict.prices.sum())  # (C2)
    asked = np.zeros(tree.n)
    np.add.at(asked, supplier[~held], verdict.cap[consumer[~held]])
    return Certificate(lower, max(lower, upper)), asked


def neighbourhoods(tree: Tree, who: Index) -> tuple[Ints, Index]:
    """All neighbours of these records: pairs (row of `who`, neighbour), in order of rows."""
    found = counts(tree, tree.n, who)
    widest = max(1, int(found.max(initial=1)))
    near = [np.empty(0, dtype=np.int32)]
    for some in np.array_split(who, 1 + len(who) * widest // LIST_CELLS):
        met, have = lists(tree, widest, some)
        near.append(met[np.arange(widest) < have[:, None]])
    return np.repeat(np.arange(len(who)), found), np.concatenate(near)


def _by_parts(contest: Contest, tolerance: float) -> Verdict:
    """Solve the independent parts of a contest one by one."""
    served, cap, gain = np.empty((3, len(contest.free)))
    prices = np.zeros(len(contest.room))
    parts = _parts(contest)
    for consumers, edges in parts:
        part, suppliers = _restrict(contest, consumers, edges)
        verdict = decide(part, tolerance / len(parts))
        served[consumers], cap[consumers], gain[consumers] = verdict.served, verdict.cap, verdict.gain
        prices[suppliers] = verdict.prices
    return Verdict(served, cap, gain, prices)


def decide(contest: Contest, tolerance: float) -> Verdict:
    """Solve one contest to within `tolerance`: by HiGHS, and should no run of it be exact enough, by subgradients,
    which converge whatever the rounding."""
    for method, options in SOLVERS:
        verdict = _verdict(contest, *_highs(contest, method, options))
        if verdict.gap(contest.room) <= tolerance:
            return verdict
    return subgradients(contest, verdict.prices, tolerance)


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
    fit = np.where(load > contest.room, contest.room / np.maximum(load, 1e-300), 1.0)
    got = np.bincount(contest.consumer, weights=flow * fit[contest.supplier], minlength=consumers)
    served = np.clip(got + (contest.free - contest.neighbours + 1) * cap, 0.0, 1.0)
    cost = _cheapest(contest, prices)[0]
    return Verdict(served, cap, np.maximum(0.0, 1.0 - cost), prices)


def subgradients(contest: Contest, prices: Floats, tolerance: float) -> Verdict:
    """Prices follow the excess demand with steps 1/sqrt(t); the average reply since the last power of two becomes
    feasible and best [NO09]."""
    flow, cap, turn, since = np.zeros(len(contest.consumer)), np.zeros(len(contest.free)), 0, 0
    best = _verdict(contest, flow, cap, prices)
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
        best = Verdict(fuller.served, fuller.cap, cheaper.gain, cheaper.prices)
    return best


def _parts(contest: Contest) -> list[tuple[Ints, Ints]]:
    """Independent parts of a contest, small ones together: the consumers and the edges of each."""
    consumers, suppliers = len(contest.free), len(contest.room)
    if consumers == 0:
        return []
    joined = _sparse.coo_array(
        (np.ones(len(contest.consumer)), (contest.consumer, consumers + contest.supplier)),
        shape=(consumers + suppliers, consumers + suppliers),
    )
    label = _graphs.connected_components(joined, directed=False)[1]
    weight = np.bincount(label[contest.consumer], minlength=label.max() + 1)
    batch = (np.cumsum(weight) - weight) // PART_EDGES
    of_consumer = batch[label[:consumers]]
    by_consumer, by_edge = (
        np.argsort(of_consumer, kind="stable"),
        np.argsort(of_consumer[contest.consumer], kind="stable"),
    )
    names = np.unique(of_consumer)
    consumer_cuts = np.searchsorted(of_consumer[by_consumer], names)[1:]
    edge_cuts = np.searchsorted(of_consumer[contest.consumer][by_edge], names)[1:]
    return list(zip(np.split(by_consumer, consumer_cuts), np.split(by_edge, edge_cuts), strict=True))


def _restrict(contest: Contest, consumers: Ints, edges: Ints) -> tuple[Contest, Ints]:
    suppliers, local = np.unique(contest.supplier[edges], return_inverse=True)
    renamed = np.searchsorted(consumers, contest.consumer[edges])
    part = Contest(renamed, local, contest.free[consumers], contest.room[suppliers], contest.neighbours)
    return part, suppliers


def _cheapest(contest: Contest, prices: Floats) -> tuple[Floats, Floats, Floats]:
    """For each consumer the least it pays to be served: its s cheapest suppliers give 1/(s-k+1) each, s as best fits.
    Also what it asks of each, and along which edges."""
    starts = np.searchsorted(contest.consumer, np.arange(len(contest.free) + 1))
    order = np.lexsort((prices[contest.supplier], contest.consumer))
    return _cheapest_in_order(starts, order, prices[contest.supplier], contest.free, contest.neighbours)


@kernel
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
