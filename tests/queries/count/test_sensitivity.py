"""Bounds hold on every table of tiny worlds, and equal the vectors computed by brute force."""

import math

import numpy as np
import pytest
from scipy.special import betainc
from test_exact import points_of
from worlds import FINE_LINE, LINE, SQUARE, neighbours_of, outliers, tables

from vectors import vectors
from wallflower.errors import ParameterError
from wallflower.neighbours.limits import KISSING_NUMBERS, kissing_number
from wallflower.queries.count.sensitivity import (
    _adjacency,
    global_bound,
    local_bounds,
    peel,
    smooth_bound,
    sweep,
    window,
)

WORLDS = {
    "line": (LINE, 5, 1.0),
    "fine line": (FINE_LINE, 4, 1.0),
    "square": (SQUARE, 4, 1.0),
}


@pytest.mark.parametrize("case", vectors("count.json"))
def test_vectors(case):
    given, expected = case["input"], case["expected"]
    if "k" not in given:
        return covers(given, expected)
    points, k, r, normalise = points_of(given), given["k"], given["r"], given["normalised_distance"]
    assert global_bound(len(points), points.shape[1], k) == expected["gs_upper"]
    bounds = expected["U_sequence_exact_cover_capped_by_gs"]
    assert local_bounds(points, r, k, upto=len(bounds) - 1, normalise=normalise) == bounds
    assert local_bounds(points, r, k, upto=len(bounds) + 3, normalise=normalise)[-1] == bounds[-1]
    for beta, value in expected["smooth_S"].items():
        assert smooth_bound(points, r, k, beta=float(beta), normalise=normalise) == pytest.approx(value, rel=1e-9)
    return None


def covers(given, expected):
    line, places = np.sort(given["x"]), np.array(given["P"])
    for radius, most in expected["cover_1d"].items():
        assert window(line, (2 * float(radius)) ** 2) == most
    for radius, most in expected["cover_2d"].items():
        assert sweep(places, float(radius) ** 2 * (1 + 1e-9)) == most
    for radius, most in expected["degeneracy_plus1_2d"].items():
        assert peel(_adjacency(places, (2 * float(radius)) ** 2)) == most


@pytest.mark.parametrize("case", vectors("extension.json"))
def test_local_bounds_of_the_extension_cases(case):
    assert local_bounds(case["X"], case["r"], case["k"], upto=5, normalise=False) == case["U"]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("k", [1, 2])
def test_on_every_tiny_table_the_bounds_hold_and_are_smooth(world, k):
    sites, n, radius = WORLDS[world]
    beta, upto = 0.3, 4
    every = list(tables(sites, n))
    place = {choice: np.array([sites[i] for i in choice]) for choice in every}
    count = {choice: outliers(place[choice], radius, k, normalise=False) for choice in every}
    ladder = {c: local_bounds(place[c], radius, k, upto=upto, normalise=False) for c in every}
    smooth = {c: smooth_bound(place[c], radius, k, beta=beta, normalise=False) for c in every}
    worst = 0
    for choice in every:
        around = set(neighbours_of(choice, sites))
        here = max(abs(count[choice] - count[other]) for other in around)
        worst = max(worst, here)
        assert ladder[choice][0] >= here
        assert smooth[choice] >= here
        for other in around:
            assert smooth[choice] <= math.exp(beta) * smooth[other] * (1 + 1e-12)
            assert all(ladder[choice][t] <= ladder[other][t + 1] for t in range(upto))
    assert 0 < worst <= global_bound(n, len(sites[0]), k)


def test_the_global_bound_is_reached_on_the_line():
    before = np.array([[0.0], [-1], [-1], [-1], [1], [1], [1]])
    after = before.copy()
    after[0] = 100
    assert outliers(after, 1.0, 3) - outliers(before, 1.0, 3) == global_bound(7, 1, 3) == 7


def test_the_global_bound_is_reached_in_the_plane():
    """Five clusters of k around one record, pairwise more than a radius apart: 5k + 1 flip at once."""
    angle = 2 * np.pi * np.arange(5) / 5
    ring = np.repeat(np.column_stack([np.cos(angle), np.sin(angle)]), 3, axis=0) * 0.99
    before, after = np.vstack([[[0.0, 0.0]], ring]), np.vstack([[[50.0, 50.0]], ring])
    assert outliers(after, 1.0, 3, normalise=False) - outliers(before, 1.0, 3, normalise=False) == 16
    assert global_bound(16, 2, 3) == 16


def test_kissing_numbers_never_fall_and_continue_past_the_table():
    values = [kissing_number(d) for d in range(1, 61)]
    assert values == sorted(values)
    assert values[: len(KISSING_NUMBERS)] == list(KISSING_NUMBERS)
    assert kissing_number(25) >= 197_040  # a lattice packing that is known
    assert kissing_number(5000) > 0
    with pytest.raises(ParameterError, match="dimension"):
        kissing_number(0)


@pytest.mark.parametrize("dimension", [25, 26, 30, 61, 300, 900])
def test_beyond_the_table_a_cap_of_the_sphere_is_measured(dimension):
    share = float(betainc((dimension - 1) / 2, 0.5, 0.25))
    assert kissing_number(dimension) == pytest.approx(min(1e15, 2 / share), rel=1e-8)
    assert kissing_number(dimension) >= math.floor(min(1e15, 2 / share))


@pytest.mark.parametrize("radius", [0.7, 1.0, 1.5])
def test_a_turning_disc_finds_the_best_centre(radius):
    """Against all discs through two places, and those around one."""
    places = np.random.default_rng(5).integers(0, 6, (25, 2)).astype(float)
    best = 1
    for a in places:
        for b in places:
            half = np.linalg.norm(b - a) / 2
            if 0 < half <= radius:
                normal = np.array([a[1] - b[1], b[0] - a[0]]) / (2 * half)
                for side in (-1, 1):
                    centre = (a + b) / 2 + side * normal * math.sqrt(radius**2 - half**2)
                    best = max(best, int((np.linalg.norm(places - centre, axis=1) <= radius * (1 + 1e-9)).sum()))
        best = max(best, int((places == a).all(axis=1).sum()))
    assert sweep(places, radius**2 * (1 + 2e-9)) == best


def test_every_licensed_cover_is_at_least_the_exact_one():
    draw = np.random.default_rng(2)
    for _ in range(20):
        places = draw.integers(0, 8, (30, 2)) / 2
        exact = sweep(places, 1.0 + 1e-9)
        beside = _adjacency(places, 4.0)
        closed = np.sort(beside.sum(1) + 1)[::-1]
        rank = int((closed >= np.arange(1, 31)).sum())
        assert exact <= peel(beside) <= rank <= 30


def test_many_records_in_high_dimension_use_the_public_rule():
    points = np.random.default_rng(0).standard_normal((12_000, 5))
    bounds = local_bounds(points, 0.5, 3, upto=2)
    assert 1 <= bounds[0] <= bounds[1] <= bounds[2] <= global_bound(12_000, 5, 3)


@pytest.mark.parametrize("beta", [0.0, -0.1, float("inf"), float("nan")])
def test_a_beta_that_is_not_positive_is_refused(beta):
    with pytest.raises(ParameterError, match="beta"):
        smooth_bound([[0.0], [1.0]], 1.0, 1, beta=beta)
