"""The lower bound is what its linear programme says, never counts too many, and moves slowly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import FINE_LINE, LINE, SQUARE, cliques, lower_bound, neighbours_of, outliers, pairs, tables

from vectors import vectors
from wallflower.errors import DataError, ParameterError
from wallflower.neighbours.pairs import build_tree, index_points, near, squared_reach
from wallflower.queries.count import lower as room
from wallflower.queries.count.cliques import heavy_clique
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.lower import certify_lower, crowded_core, gather, joining_reach, lower_count, solve_core

pytestmark = pytest.mark.slow  # together more than `make check` has room for


@pytest.mark.parametrize("case", vectors("count-bias.json", part="q_low"))
def test_vectors(case):
    about = case["points"], case["radius"], case["neighbours"]
    assert count_outliers(*about, normalise=False) == case["q"]
    found = lower_count(*about, sensitivity=case["sensitivity"], normalise=False)
    assert found == pytest.approx(case["q_low"], abs=1e-6)


@settings(max_examples=80, deadline=None)
@given(
    n=st.integers(1, 30),
    dimension=st.integers(1, 4),
    seed=st.integers(0, 2**32),
    k=st.integers(1, 8),
    sensitivity=st.sampled_from([1.01, 1.5, 2, 2.5, 3, 4, 6, 11]),
    grain=st.sampled_from([1, 2, 1000]),
    normalise=st.booleans(),
)
def test_the_value_is_that_of_all_cliques(n, dimension, seed, k, sensitivity, grain, normalise):
    points = np.random.default_rng(seed).integers(0, 3 * grain, (n, dimension)) / grain
    truth = lower_bound(points, 0.5, k, sensitivity, normalise=normalise)
    assert lower_count(points, 0.5, k, sensitivity=sensitivity, normalise=normalise) == pytest.approx(truth, abs=1e-6)
    assert truth <= outliers(points, 0.5, k, normalise=normalise) + 1e-9


SMALL_WORLDS = [(LINE, 5, 2), (LINE, 5, 3), (FINE_LINE, 4, 2), (SQUARE, 4, 1)]


@pytest.mark.parametrize(
    ("sites", "n", "k", "sensitivity"),
    [
        *((*world, sensitivity) for world in SMALL_WORLDS for sensitivity in (2.0, 2.5)),
        (FINE_LINE, 5, 4, 2.0),
        (SQUARE, 5, 3, 2.5),
        pytest.param(FINE_LINE, 5, 4, 2.5, marks=pytest.mark.heavy),
        pytest.param(SQUARE, 5, 3, 2.0, marks=pytest.mark.heavy),
    ],
)
def test_on_every_tiny_table_one_record_moves_it_by_its_sensitivity_at_most(sites, n, k, sensitivity):
    """And it never counts too many, and all of them where every clique is light."""
    value = {}
    for choice in tables(sites, n):
        points = np.array([sites[i] for i in choice])
        value[choice] = lower_count(points, 1.0, k, sensitivity=sensitivity, normalise=False)
        missing = k - pairs(points, 1.0, normalise=False).sum(1)
        out = missing > 0
        joined = pairs(points[out], 2.0, normalise=False)
        heaviest = max(((1 / missing[out][each]).sum() for each in cliques(joined)), default=0.0) if out.any() else 0.0
        assert value[choice] <= out.sum() + 1e-9
        assert (value[choice] >= out.sum() - 1e-6) == (heaviest <= sensitivity - 1 + 1e-9)
    moves = [abs(value[choice] - value[other]) for choice in value for other in neighbours_of(choice, sites)]
    assert max(moves) <= sensitivity + 1e-6
    assert max(moves) > sensitivity - 1


def test_a_count_that_is_exact_moves_by_more_than_the_bound():
    count = {c: outliers([LINE[i] for i in c], 1.0, 3, normalise=False) for c in tables(LINE, 5)}
    assert max(abs(count[c] - count[o]) for c in count for o in neighbours_of(c, LINE)) > 2.5


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32), dimension=st.integers(1, 40), exponent=st.integers(-90, 90), normalise=st.booleans())
def test_two_records_near_a_third_are_joined_whatever_the_rounding(seed, dimension, exponent, normalise):
    """Both at exactly the radius from the third, on opposite sides and anywhere, nudged outwards while still near."""
    draw, radius = np.random.default_rng(seed), 1.1 * 10.0**exponent
    reach = squared_reach(radius, dimension, normalise=normalise)
    middle = draw.standard_normal(dimension) * radius * draw.choice([0.0, 1.0, 1e6])
    way = draw.standard_normal(dimension)
    way *= np.sqrt(reach) / np.linalg.norm(way)
    ends = []
    for side in (way, -way):
        end = middle + side
        for _ in range(40):
            further = end + side * 2e-16
            end = further if near(further, middle, reach) else end
        ends.append(end)
    if all(near(end, middle, reach) for end in ends):
        assert near(*ends, joining_reach(reach))


@pytest.mark.parametrize(("dimension", "side"), [(1, 30.0), (2, 7.0), (5, 2.0)])
def test_what_is_peeled_away_is_in_no_heavy_clique(dimension, side):
    draw = np.random.default_rng(dimension)
    values, room_left = draw.uniform(0, side, (60, dimension)), 1.5
    graph, weight = build_tree(values, 1.0), draw.uniform(0.1, 1, 60)
    core = set(crowded_core(graph, weight, room_left).tolist())
    joined = pairs(values[graph.order], 1.0, normalise=False)
    heavy = [each for each in cliques(joined) if weight[each].sum() > room_left]
    assert heavy
    assert {member for each in heavy for member in each} <= core < set(range(60))


def test_a_clique_above_the_floor_is_found_wherever_there_is_one():
    draw = np.random.default_rng(5)
    for _ in range(40):
        places, weight = draw.uniform(0, 2, (14, 3)), np.sort(draw.uniform(0.1, 1, 14))[::-1].copy()
        joined = pairs(places, 1.0, normalise=False)
        heaviest = max(weight[each].sum() for each in cliques(joined))
        assert len(heavy_clique(places, 1.0, weight, heaviest + 1e-9)) == 0
        found = heavy_clique(places, 1.0, weight, heaviest - 1e-9)
        assert weight[found].sum() == pytest.approx(heaviest)
        assert joined[np.ix_(found, found)].sum() == len(found) * (len(found) - 1)


def test_twins_stand_at_one_place():
    core = gather(np.array([[0.0], [0.0], [0.5], [3.0]]), np.array([1, 2, 1, 1]), 1.0)
    assert len(core.graph.places) == 2
    assert sorted(zip(core.place, core.missing, core.size, strict=True)) == [
        (0, 1.0, 2.0),
        (0, 2.0, 1.0),
        (1, 1.0, 1.0),
    ]


def test_many_records_in_one_place_and_none_at_all():
    assert lower_count(np.zeros((500, 3)), 1.0, 5, sensitivity=2) == 0
    assert lower_count(np.zeros((5, 3)), 1.0, 10, sensitivity=2) == pytest.approx(5)
    assert lower_count(np.zeros((9, 3)), 1.0, 10, sensitivity=2) == pytest.approx(2, abs=1e-6)
    assert lower_count([7], 1.0, np.int64(1), sensitivity=np.float64(2)) == pytest.approx(1)


def test_the_bounds_agree_to_the_tolerance_and_hold_the_value():
    points = np.random.default_rng(3).uniform(0, 8, (300, 2))
    tree = index_points(points, 0.55, normalise=False)
    rough, fine = (certify_lower(tree, 6, 3.0, tolerance) for tolerance in (1 / 256, 1e-7))
    assert fine.lower < count_outliers(points, 0.55, 6, normalise=False) - 1
    assert rough.upper - rough.lower <= 1 / 256
    assert fine.upper - fine.lower <= 1e-7
    assert rough.lower - 1e-7 <= fine.lower <= fine.upper <= rough.upper + 1e-7


def test_a_solver_that_fails_costs_time_and_never_correctness(monkeypatch):
    core = gather(np.array([[0.0], [0.4], [0.8], [1.2], [1.6]]), np.array([1, 2, 1, 2, 1]), 1.0)
    truth = solve_core(core, 1.0, 1e-7)
    monkeypatch.setattr(room, "HIGHS_RUNS", ())
    alone = solve_core(core, 1.0, 0.01)
    assert alone.upper - alone.lower <= 0.01
    assert alone.lower - 1e-6 <= truth.lower <= alone.upper + 1e-6


@pytest.mark.parametrize(
    ("points", "changes", "error"),
    [
        ([0.0, 1.0], {"sensitivity": 1}, ParameterError),
        ([0.0, 1.0], {"sensitivity": float("nan")}, ParameterError),
        ([0.0, 1.0], {"neighbours": 0}, ParameterError),
        ([0.0, 1.0], {"radius": 0.0}, ParameterError),
        ([0.0, float("nan")], {}, DataError),
        ([], {}, DataError),
    ],
)
def test_what_makes_no_sense_is_refused(points, changes, error):
    with pytest.raises(error):
        lower_count(points, **{"radius": 1.0, "neighbours": 2, "sensitivity": 3, **changes})
