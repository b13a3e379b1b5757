"""The region's solver: its bounds hold and meet on graphs made to be hard, and its parts compute what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import extension, outliers

from wallflower.neighbours import extension as room
from wallflower.neighbours import region, transport
from wallflower.neighbours.extension import certify
from wallflower.neighbours.frontals import dissect, factor, solve
from wallflower.neighbours.pairs import build_tree
from wallflower.neighbours.transport import TransportLP, solve_by_subgradients, solve_transport

GAP = 1 / 256


def grid(side):
    return np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2).astype(float)


def clusters(sizes, apart=10.0):
    """Micro-clusters: all records of one are duplicates."""
    return np.concatenate([np.full((size, 1), apart * at) for at, size in enumerate(sizes)])


def star(leaves, stars=3):
    """Hubs whose leaves are near nobody else."""
    angle = 2 * np.pi * np.arange(leaves) / leaves
    one = np.vstack([np.zeros(2), np.column_stack([np.cos(angle), np.sin(angle)]) * 0.999])
    return np.concatenate([one + np.array([10.0 * s, 0.0]) for s in range(stars)])


HARD = {
    "a lattice with exactly k neighbours": (grid(9), 1.0, 4, 1.0),
    "a lattice with exactly k neighbours and corners": (grid(8), 2.0, 8, 3.0),
    "a lattice on a line": (np.arange(60.0)[:, None], 2.0, 4, 1.0),
    "clusters of k + 1": (clusters([6] * 12), 1.0, 5, 1.0),
    "clusters of k + 1 and more": (clusters([6, 7, 8, 20, 6, 3]), 1.0, 5, 1.0),
    "stars": (star(5), 1.0, 1, 1.0),
    "stars with more slack": (star(5), 1.0, 1, 2.0),
    "a chain of clusters": (clusters([3, 1, 3, 1, 3, 1, 3], apart=0.9), 1.0, 3, 1.0),
    "a chain of clusters, three to each": (clusters([3, 1, 3, 1, 3, 1, 3], apart=0.9), 1.0, 4, 1.5),
    "sparse, in the plane": (np.random.default_rng(5).uniform(0, 9, (90, 2)), 1.3, 4, 1.0),
    "sparse, on the line": (np.random.default_rng(6).uniform(0, 30, (90, 1)), 1.0, 4, 1.0),
    "duplicates among strangers": (np.random.default_rng(7).integers(0, 5, (70, 2)).astype(float), 1.0, 12, 1.0),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("tolerance", [GAP, 1e-7])
def test_the_bounds_hold_and_meet(name, tolerance):
    points, radius, k, slack = HARD[name]
    bounds = certify(build_tree(points, radius * radius), k, slack, tolerance)
    truth = extension(points, radius, k, slack, normalise=False)
    assert bounds.lower - 1e-8 <= truth <= bounds.upper + 1e-8
    assert bounds.upper - bounds.lower <= tolerance
    assert bounds.upper <= len(points) - outliers(points, radius, k, normalise=False)


def test_most_of_the_hard_tables_need_the_region(monkeypatch):
    """Otherwise the test above would say little."""
    asked = []
    monkeypatch.setattr(
        region, "solve_transport", lambda contest, aim: asked.append(contest) or solve_transport(contest, aim)
    )
    needed = 0
    for points, radius, k, slack in HARD.values():
        asked.clear()
        certify(build_tree(points, radius * radius), k, slack, GAP)
        needed += bool(asked)
    assert needed >= 9


@st.composite
def contests(draw):
    """Random contests: caps of all kinds, suppliers with next to no room, and none that all could use at will."""
    make = np.random.default_rng(draw(st.integers(0, 2**32)))
    consumers, suppliers, k = draw(st.integers(1, 12)), draw(st.integers(1, 12)), draw(st.integers(1, 6))
    near = make.random((consumers, suppliers)) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    near[np.arange(consumers), make.integers(0, suppliers, consumers)] = True
    used = np.flatnonzero(near.any(0))
    consumer, supplier = np.nonzero(near[:, used])
    free = make.integers(0, k, consumers)
    limits = make.choice([1e-7, 1e-3, 0.5, 1.0, 2.0, 3.0], len(used))
    return TransportLP(consumer, supplier, free, limits, k, make.integers(0, 64, len(used)))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(contests())
def test_the_interior_point_agrees_with_highs(contest):
    found = transport._make_feasible(contest, *transport._interior(contest, 1e-6))
    truth = transport._make_feasible(contest, *transport._highs(contest, "highs-ds", {"presolve": True}))
    assert truth.gap(contest.room) <= 1e-6
    value = truth.served.sum()
    assert found.served.sum() <= value + 1e-6
    assert found.gain.sum() + contest.room @ found.prices >= value - 1e-6
    assert solve_transport(contest, 1e-6).served.sum() == pytest.approx(value, abs=2e-6)


def test_the_interior_point_alone_decides_a_large_contest(monkeypatch):
    """1,000 records, of which 800 contest everything: no other solver is asked."""
    monkeypatch.setattr(transport, "_highs", None)
    points = np.random.default_rng(0).uniform(0, 1, (1000, 2))
    bounds = certify(build_tree(points, 14 / (np.pi * 1000)), 10, 3.0, GAP)
    assert bounds.upper - bounds.lower <= GAP
    assert 1000 - bounds.lower == pytest.approx(255.725, abs=2 * GAP)


def test_only_what_somebody_joined_is_decided_again(monkeypatch):
    """Two places far apart: who joins in one leaves the contest of the other as it is."""
    decided = []
    monkeypatch.setattr(
        region,
        "solve_transport",
        lambda contest, aim: decided.append(len(contest.free)) or solve_transport(contest, aim),
    )
    points = np.random.default_rng(3).uniform(0, 1, (3000, 2))
    tree = build_tree(points, 12 / (np.pi * 3000))
    bounds = certify(tree, 5, 3.0, GAP)
    assert bounds.upper - bounds.lower <= GAP
    asked = len(decided)
    monkeypatch.setattr(region, "EDGES_PER_BATCH", 1)
    assert abs(certify(tree, 5, 3.0, GAP).lower - bounds.lower) <= GAP
    assert len(decided) >= 2 * asked


def test_subgradients_end_on_their_own():
    contest = TransportLP(
        np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([0, 0]), np.array([0.5, 0.7]), 1, np.zeros(2, int)
    )
    start = transport._make_feasible(contest, np.zeros(4), np.zeros(2), np.zeros(2))
    assert solve_by_subgradients(contest, start, 0.01).served.sum() == pytest.approx(1.2, abs=0.011)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 400), st.integers(1, 60))
def test_fronts_solve_what_they_factor(seed, suppliers, consumers):
    """Against the dense matrix: diag(d) + the sum of diag(own) + plus plus' - minus minus'."""
    make = np.random.default_rng(seed)
    place = np.sort(make.integers(0, 1024, suppliers))
    rows = [
        np.unique(make.integers(0, min(9, suppliers), 5) + make.integers(0, max(1, suppliers - 9)))
        for _ in range(consumers)
    ]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    supplier = np.concatenate(rows)
    weights, diagonal = make.random((5, len(supplier))), 1 + make.random(suppliers)
    weights[3] *= 0.1
    plan = dissect(starts, supplier, place, 10)
    dense = np.diag(diagonal)
    for c in range(consumers):
        at, mine = supplier[starts[c] : starts[c + 1]], slice(starts[c], starts[c + 1])
        dense[at, at] += weights[0, mine]
        dense[np.ix_(at, at)] += np.outer(weights[2, mine], weights[2, mine]) - np.outer(
            weights[3, mine], weights[3, mine]
        )
    ordered = np.empty(suppliers)
    ordered[plan.rank] = diagonal
    factors = np.empty(plan.panel[-1])
    factor(
        plan.first, plan.ahead, plan.spots, plan.children, plan.joins, plan.members, plan.slot, plan.panel,
        np.empty(plan.room[0] ** 2), np.empty(plan.room[1]), starts, ordered, weights, factors,
    )  # fmt: skip
    right = make.random(suppliers)
    x = np.empty(suppliers)
    x[plan.rank] = right
    solve(plan.first, plan.ahead, plan.later, plan.panel, factors, x)
    assert dense @ x[plan.rank] == pytest.approx(right, abs=1e-9)


def test_sums_do_not_lose_small_terms():
    """A hundred thousand shares of 1/3 and as many taken off again leave nothing but the one that was there."""
    amounts = np.concatenate([[1e-9], np.full(100_000, 1 / 3), np.full(100_000, -1 / 3)])
    plain = np.cumsum(amounts)[-1]
    assert abs(plain - 1e-9) > 1e-13
    assert region.sum_by_index(np.zeros(len(amounts), dtype=np.int64), amounts, 1)[0] == pytest.approx(1e-9, abs=1e-20)


def test_spreading_keeps_everybody_served_and_relieves():
    points = np.random.default_rng(2).uniform(0, 1, (2000, 2))
    tree = build_tree(points, 14 / (np.pi * 2000))
    demand = room.uniform_demand(tree, 5)
    before, total = np.maximum(demand.loads - 3, 0).sum(), demand.sum_service(5)
    room.spread_demand(demand, tree, 5, 3.0)
    assert demand.sum_service(5) == pytest.approx(total, abs=1e-9)
    assert (demand.flow >= 0).all()
    assert np.maximum(demand.loads - 3, 0).sum() < 0.5 * before


@given(found=st.lists(st.integers(0, 90), min_size=1), k=st.integers(1, 30))
def test_equal_shares_are_whole_units_that_serve_exactly(found, k):
    asked, share = room.equal_shares(np.array(found), k)
    assert (asked <= found).all()
    inlier = np.array(found) >= k
    assert ((asked - k + 1) * share == np.where(inlier, room.UNIT, 0)).all()
    assert (room.UNIT % share[inlier] == 0).all()


def test_loads_of_equal_shares_are_the_same_in_any_order():
    draw = np.random.default_rng(7)
    met = draw.integers(0, 40, (500, 20)).astype(np.int32)
    asked, share = room.equal_shares(draw.integers(0, 21, 500), 5)
    loads, again = np.zeros(40, dtype=np.int64), np.zeros(40, dtype=np.int64)
    who = np.flatnonzero(share).astype(np.int32)
    room.add_shares(met, asked, share, who, loads)
    room.add_shares(met, asked, share, draw.permutation(who), again)
    assert loads.tolist() == again.tolist()
    assert loads.sum() == (asked * share).sum()
