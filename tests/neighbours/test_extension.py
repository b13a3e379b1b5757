"""The extension is what the linear programme says, moves slowly, and proves its own value."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from worlds import FINE_LINE, LINE, SQUARE, extension, neighbours_of, outliers, pairs, tables

from vectors import vectors
from wallflower.errors import ParameterError
from wallflower.neighbours import extension as room
from wallflower.neighbours import transport
from wallflower.neighbours.extension import certify, inliers
from wallflower.neighbours.flow import outlier_mass
from wallflower.neighbours.pairs import build_tree, squared_reach


@pytest.mark.parametrize("case", vectors("extension.json"))
def test_vectors(case):
    for slack, value in case["slackLP_inliers"].items():
        found = inliers(case["X"], case["r"], case["k"], slack=float(slack), normalise=False)
        assert found == pytest.approx(float(Fraction(value)), abs=1e-6)
    mass = case["N"] - case[f"M_k(L={case['k']})"] / case["k"]
    assert outlier_mass(case["X"], case["r"], case["k"], normalise=False) == mass


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(2, 40),
    dimension=st.integers(1, 3),
    seed=st.integers(0, 2**32),
    k=st.integers(1, 6),
    slack=st.sampled_from([1.0, 1.5, 2.0, 3.0, 5.0]),
    spread=st.integers(1, 4),
)
def test_the_value_is_that_of_the_whole_programme(n, dimension, seed, k, slack, spread):
    points = np.random.default_rng(seed).integers(0, 4 * spread, (n, dimension)) / 4
    truth = extension(points, 0.5, k, slack)
    assert inliers(points, 0.5, k, slack=slack) == pytest.approx(truth, abs=1e-6)
    assert truth <= n - outliers(points, 0.5, k) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sites", "n", "k"), [(LINE, 5, 1), (LINE, 5, 2), (FINE_LINE, 4, 2), (SQUARE, 4, 1), (SQUARE, 4, 2)]
)
@pytest.mark.parametrize("slack", [1.0, 2.0])
def test_on_every_tiny_table_one_record_moves_it_by_slack_plus_one_at_most(sites, n, k, slack):
    value = {
        choice: inliers([sites[i] for i in choice], 1.0, k, slack=slack, normalise=False) for choice in tables(sites, n)
    }
    moves = [abs(value[choice] - value[other]) for choice in value for other in neighbours_of(choice, sites)]
    assert max(moves) <= slack + 1 + 1e-6


@pytest.mark.parametrize("slack", [1, 2, 3, 5])
def test_a_star_moves_by_exactly_slack_plus_one(slack):
    """With the hub in place it serves `slack` of its leaves, and they serve it; without it nobody is served."""
    angle = 2 * np.pi * np.arange(5) / 5
    leaves = np.column_stack([np.cos(angle), np.sin(angle)]) * 0.99
    hub, away = np.vstack([[[0.0, 0.0]], leaves]), np.vstack([[[50.0, 0.0]], leaves])
    moved = inliers(hub, 1.0, 1, slack=slack, normalise=False) - inliers(away, 1.0, 1, slack=slack, normalise=False)
    assert moved == pytest.approx(min(slack, 5) + 1, abs=1e-6)


def test_two_broken_sensitivities_would_be_seen():
    """The tiny worlds have tables that move the plain count by more than slack + 1: the extension is needed."""
    count = {c: outliers([LINE[i] for i in c], 1.0, 2, normalise=False) for c in tables(LINE, 5)}
    assert max(abs(count[c] - count[o]) for c in count for o in neighbours_of(c, LINE)) > 2 + 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slack", [1.5, 2.0])
def test_the_climb_to_the_programme_is_exact_on_crowded_data(seed, slack):
    """Sparse data, where prices alone do not settle it: compare with the whole programme."""
    points = np.random.default_rng(seed).uniform(0, 1, (150, 2))
    truth = extension(points, 0.11, 5, slack)
    bounds = certify(build_tree(points, squared_reach(0.11, 2, normalise=True)), 5, slack)
    assert bounds.lower == pytest.approx(truth, abs=1e-6)
    assert bounds.lower <= bounds.upper <= bounds.lower + room.TOLERANCE
    assert truth < 150 - outliers(points, 0.11, 5)  # there is a bias, so the programme was needed


def test_the_bias_is_bounded_by_the_uniform_overload():
    points = np.random.default_rng(1).uniform(0, 1, (200, 2))
    near = pairs(points, 0.1)
    degree = near.sum(1)
    share = np.where(degree >= 4, 1 / np.maximum(degree - 3, 1), 0)
    overload = np.maximum(near @ share - 2, 0).sum()
    bias = 200 - outliers(points, 0.1, 4) - inliers(points, 0.1, 4, slack=2)
    assert 0 <= bias <= overload + 1e-6


def test_the_order_of_records_does_not_matter():
    points = np.random.default_rng(8).uniform(0, 1, (300, 3))
    values = {round(inliers(np.random.default_rng(seed).permutation(points), 0.12, 4, slack=2), 5) for seed in range(4)}
    assert len(values) == 1


def test_bounds_do_not_trust_the_solver(monkeypatch):
    """A solver that returns rubbish is found out, and subgradients finish the work to the tolerance asked for."""
    points = np.random.default_rng(4).uniform(0, 1, (40, 1))
    truth = extension(points, 0.03, 3, 2.0)
    monkeypatch.setattr(transport, "_interior", lambda contest, aim: rubbish(contest))
    monkeypatch.setattr(transport, "_highs", lambda contest, method, options: rubbish(contest))
    tree = build_tree(points, squared_reach(0.03, 1, normalise=True))
    bounds = certify(tree, 3, 2.0, tolerance=0.05)
    assert bounds.upper - bounds.lower <= 0.05
    assert bounds.lower - 1e-9 <= truth <= bounds.upper + 1e-9


def rubbish(contest):
    return np.full(len(contest.consumer), 7.0), np.full(len(contest.free), 3.0), np.full(len(contest.room), -2.0)


def test_nobody_and_everybody():
    assert inliers([[0.0]], 1.0, 1, slack=2) == 0
    assert inliers([[0.0], [9.0]], 1.0, 1, slack=2) == 0
    assert inliers(np.zeros((500, 2)), 1.0, 5, slack=2) == 500
    assert outlier_mass([[0.0]], 1.0, 3) == 1.0


@pytest.mark.parametrize("slack", [0, 0.5, -1, float("nan"), 1e9])
def test_a_slack_below_one_is_refused(slack):
    with pytest.raises(ParameterError, match="slack"):
        inliers([[0.0], [1.0]], 1.0, 1, slack=slack)


def flow(points, radius, k):
    """The outlier mass by a linear programme over all pairs."""
    near = np.argwhere(pairs(points, radius))
    n = len(points)
    if len(near) == 0:
        return float(n)
    limits = np.zeros((2 * n, len(near)))
    for e, (i, j) in enumerate(near):
        limits[i, e] = limits[n + j, e] = 1
    from_scipy = linprog(-np.ones(len(near)), A_ub=limits, b_ub=np.full(2 * n, k), bounds=(0, 1))
    return n + from_scipy.fun / k


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 2**32), st.integers(1, 4))
def test_the_mass_is_that_of_the_largest_flow(n, seed, k):
    points = np.random.default_rng(seed).integers(0, 20, (n, 2)) / 10
    assert outlier_mass(points, 0.3, k) == pytest.approx(flow(points, 0.3, k), abs=1e-6)


@pytest.mark.parametrize(("sites", "n", "k"), [(LINE, 5, 2), (SQUARE, 4, 2), (FINE_LINE, 4, 3)])
def test_on_every_tiny_table_the_mass_moves_by_two_at_most(sites, n, k):
    mass = {c: outlier_mass([sites[i] for i in c], 1.0, k, normalise=False) for c in tables(sites, n)}
    assert max(abs(mass[c] - mass[o]) for c in mass for o in neighbours_of(c, sites)) <= 2 + 1e-9
