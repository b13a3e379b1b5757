"""A lower bound of the number of outliers that one record moves little: what a two-sided interval begins at.

An outlier with `missing` neighbours too few weighs 1/missing. Where outliers that one new record could all be near
weigh more than `sensitivity` - 1 together, they are not counted in full: q_low is the largest sum of shares from 0 to
1 in which no such set, each outlier with its share, weighs more (proof.md, labels (Q1) (Q2)). It is never above
the number of outliers, and a replaced record moves it by at most `sensitivity`, in any dimension.

Evaluation peels away the outliers whose whole surroundings weigh little enough, which is all of them on most tables.
What is left is a linear programme, solved by cutting planes between bounds that agree to `tolerance`, always (Q3).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from wallflower.errors import ParameterError
from wallflower.machine.heavy import scipy_optimize as _optimize
from wallflower.machine.heavy import scipy_sparse as _sparse
from wallflower.neighbours.limits import check_neighbours
from wallflower.neighbours.pairs import (
    BOX_MARGIN,
    Floats,
    Index,
    Ints,
    Tree,
    build_tree,
    count_neighbours,
    index_points,
    list_neighbours,
)
from wallflower.neighbours.transport import HIGHS_RUNS
from wallflower.queries.count.cliques import Graph, enlarge, heavy_cliques, in_order
from wallflower.queries.count.sensitivity import rows

TOLERANCE: Final = 5e-7
ROUNDING: Final = 1e-11  # what sums of weights may be off by, as a share of what they are compared with
LIST_CELLS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Bounds:
    """`lower` is the worth of feasible shares, `upper` that of feasible prices: q_low lies between."""

    lower: float
    upper: float


def lower_count(
    points: ArrayLike, radius: float, neighbours: int, *, sensitivity: float, normalise: bool = True
) -> float:
    """The lower bound of the number of outliers, to within 1e-6.

    >>> round(lower_count([0.0, 0.0, 1.0, 2.0, 3.0, 9.0], 1.0, 3, sensitivity=2), 6)
    3.0
    """
    check_neighbours(neighbours)
    if not 1 < sensitivity <= 1e6:
        raise ParameterError(
            f"sensitivity: {sensitivity!r} is outside 1 to 1,000,000, 1 left out. With less, one record would move "
            "the bound by more than that by itself; 11 suits most tables."
        )
    tree = index_points(points, radius, normalise=normalise)
    return certify_lower(tree, int(neighbours), float(sensitivity), TOLERANCE).lower


def certify_lower(tree: Tree, neighbours: int, sensitivity: float, tolerance: float) -> Bounds:
    """Bounds on q_low that differ by at most `tolerance`."""
    missing = neighbours - count_neighbours(tree, neighbours)
    graph = build_tree(rows(tree)[missing > 0], joining_reach(tree.reach))
    missing = missing[missing > 0][graph.order]
    core = crowded_core(graph, 1.0 / missing, sensitivity - 1.0)
    calm = float(len(missing) - len(core))
    if len(core) == 0:
        return Bounds(calm, calm)
    bounds = solve_core(gather(rows(graph)[core], missing[core], graph.reach), sensitivity - 1.0, tolerance)
    return Bounds(calm + bounds.lower, calm + bounds.upper)


def joining_reach(reach: float) -> float:
    """The squared distance up to which two records are joined: whatever is near a third one is (Q1)."""
    return 4.0 * reach * (1 + BOX_MARGIN) ** 2


def crowded_core(graph: Tree, weight: Floats, room: float) -> Index:
    """The records, in tree order, that are left when those are peeled away, again and again, that weigh at most
    `room` together with all that are left and joined to them: no clique that weighs more has lost a member (Q3)."""
    left, total = np.ones(graph.n, dtype=np.bool_), weight.copy()
    for some, joined in _surroundings(graph, np.arange(graph.n, dtype=np.int32)):
        np.add.at(total, some, weight[joined])
    limit = room * (1 + ROUNDING)
    wave = np.flatnonzero(total <= limit).astype(np.int32)
    while len(wave):
        left[wave] = False
        touched = [np.empty(0, dtype=np.int32)]
        for some, joined in _surroundings(graph, wave):
            np.subtract.at(total, joined, weight[some])
            touched.append(joined[left[joined] & (total[joined] <= limit)])
        wave = np.unique(np.concatenate(touched))
    return np.flatnonzero(left).astype(np.int32)


def _surroundings(graph: Tree, who: Index) -> Iterator[tuple[Index, Index]]:
    """All joined pairs of these records, in pieces: who, and whom it is joined to."""
    found = count_neighbours(graph, graph.n, who)
    piece = np.cumsum(found) // LIST_CELLS
    for some in np.split(np.arange(len(who)), np.flatnonzero(np.diff(piece)) + 1):
        met, have = list_neighbours(graph, max(1, int(found[some].max(initial=1))), who[some])
        yield np.repeat(who[some], have), met[np.arange(met.shape[1]) < have[:, None]]


@dataclass(frozen=True, slots=True)
class Core:
    """Outliers in kinds: those of one kind stand at one place of the graph, or at places joined to the same others,
    and miss as many neighbours. Kind g is at `place[g]`, misses `missing[g]`, and has `size[g]` members."""

    graph: Graph
    place: Ints
    missing: Floats
    size: Floats

    def weights(self, share: Floats) -> Floats:
        """What each place weighs at these shares."""
        weights = np.zeros(len(self.graph.places))
        np.add.at(weights, self.place, share / self.missing)
        return weights


def gather(values: Floats, missing: Ints, reach: float) -> Core:
    """The kinds of these outliers."""
    tree = build_tree(values, reach)
    closed = _closed_neighbourhoods(tree)
    names: dict[bytes, int] = {}
    twin = np.array([names.setdefault(mine.tobytes(), len(names)) for mine in closed])
    first = np.unique(twin, return_index=True)[1]
    kept = [np.unique(twin[closed[record]]) for record in first]
    beside = [mine[mine != place] for place, mine in enumerate(kept)]
    graph, number = in_order(rows(tree)[first], reach, beside)
    each = np.column_stack([number[twin], missing[tree.order]])
    kinds, size = np.unique(each, axis=0, return_counts=True)
    return Core(graph, kinds[:, 0], kinds[:, 1].astype(np.float64), size.astype(np.float64))


def _closed_neighbourhoods(graph: Tree) -> list[Ints]:
    """For every record, in tree order, itself and all that are joined to it, rising."""
    itself = np.arange(graph.n, dtype=np.int32)
    pairs = [(itself, itself), *_surroundings(graph, itself)]
    who, whom = (np.concatenate(part) for part in zip(*pairs, strict=True))
    order = np.lexsort((whom, who))
    return np.split(whom[order].astype(np.int64), np.cumsum(np.bincount(who))[:-1])


# The programme


def solve_core(core: Core, room: float, tolerance: float) -> Bounds:
    """Bounds on the largest sum of shares of the core. Every turn adds a clique that was too heavy, or ends (Q3)."""
    share, upper = core.size, float(core.size.sum())
    spare = tolerance / (4 * upper)  # shares that all cliques have room for but for this part are lowered by it
    cuts: dict[bytes, Ints] = {}
    while True:
        heavy = heavy_cliques(core.graph, core.weights(share), room * (1 + spare))
        found = [enlarge(core.graph, clique) for clique in heavy]
        if not found:
            lower = float(share.sum()) / (1 + spare)
            return Bounds(lower, max(lower, upper))
        cuts |= {clique.tobytes(): clique for clique in found}
        share, upper = _solve(core, list(cuts.values()), room, tolerance / 2)


@dataclass(frozen=True, slots=True)
class _Packing:
    """Find the largest sum of shares, each up to its size, of which no row of `weight` weighs more than `room`."""

    weight: Any
    size: Floats
    room: float

    def fit(self, share: Floats) -> Floats:
        """These shares, lowered until every row has room for them."""
        load = np.maximum(self.weight @ share, self.room)
        fit = np.ones(len(share))
        np.minimum.at(fit, self.weight.indices, np.repeat(self.room / load, np.diff(self.weight.indptr)))
        return share * fit

    def bound(self, prices: Floats) -> float:
        """What no sum of shares exceeds, by these prices of the rows: weak duality (Q2)."""
        gain = np.maximum(0.0, 1.0 - self.weight.T @ prices)
        return float(self.room * prices.sum() + self.size @ gain)


def _solve(core: Core, cuts: list[Ints], room: float, tolerance: float) -> tuple[Floats, float]:
    """Shares that these cliques have room for, and a bound that exceeds their sum by at most `tolerance`."""
    packing = _Packing(_incidence(core, cuts), core.size, room)
    prices = np.zeros(len(cuts))
    for method, options in HIGHS_RUNS:
        share, prices = _highs(packing, method, options)
        if packing.bound(prices) - share.sum() <= tolerance:
            return share, packing.bound(prices)
    return _subgradients(packing, prices, tolerance)


def _incidence(core: Core, cuts: list[Ints]) -> Any:
    """One row for each clique: what a whole member of each kind adds to its weight."""
    row = np.repeat(np.arange(len(cuts)), [len(clique) for clique in cuts])
    shape = (len(cuts), len(core.graph.places))
    inside = _sparse.csr_array((np.ones(len(row)), (row, np.concatenate(cuts))), shape=shape)
    return _sparse.csr_array(inside[:, core.place] * (1.0 / core.missing))


def _highs(packing: _Packing, method: str, options: dict[str, bool]) -> tuple[Floats, Floats]:
    """Shares and prices as the solver reports them, made feasible."""
    result = _optimize.linprog(
        c=-np.ones(len(packing.size)),
        A_ub=packing.weight,
        b_ub=np.full(packing.weight.shape[0], packing.room),
        bounds=np.column_stack([np.zeros(len(packing.size)), packing.size]),
        method=method,
        options=options | {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        return np.zeros(len(packing.size)), np.zeros(packing.weight.shape[0])
    share = packing.fit(np.clip(result.x, 0.0, packing.size))
    return share, np.maximum(0.0, -result.ineqlin.marginals)


def _subgradients(packing: _Packing, prices: Floats, tolerance: float) -> tuple[Floats, float]:
    """Should no run of the solver be exact enough: prices follow what is too heavy, with steps 1/sqrt(t); the average
    reply since the last power of two becomes best [NO09]."""
    reply = best = np.zeros(len(packing.size))
    bound, turn, since = packing.bound(prices), 0, 0
    while bound - best.sum() > tolerance:
        turn, since = turn + 1, 1 if turn & (turn + 1) == 0 else since + 1
        asked = np.where(packing.weight.T @ prices < 1.0, packing.size, 0.0)
        reply = reply + (asked - reply) / since
        prices = np.maximum(0.0, prices + (packing.weight @ asked - packing.room) / (10.0 * math.sqrt(turn)))
        best = max(best, packing.fit(reply), key=np.sum)
        bound = min(bound, packing.bound(prices))
    return best, bound
