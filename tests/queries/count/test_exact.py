"""Degrees and counts are those of the definition, whatever the tree does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import NearestNeighbors
from worlds import pairs

from vectors import vectors
from wallflower.errors import DataError, ParameterError
from wallflower.neighbours.pairs import LEAF_RECORDS, build_tree, list_neighbours, near, squared_reach
from wallflower.queries.count.exact import count_outliers, degrees


def points_of(case):
    if isinstance(case["X"], str):
        draw = np.random.default_rng(0)
        return np.vstack([draw.standard_normal((45, 2)), 20 + 10 * draw.standard_normal((5, 2))])
    return np.array(case["X"])


@pytest.mark.parametrize("case", vectors("count.json", lambda case: "k" in case["input"]))
def test_vectors(case):
    given_, expected = case["input"], case["expected"]
    points, normalise = points_of(given_), given_["normalised_distance"]
    assert degrees(points, given_["r"], normalise=normalise).tolist() == expected["degrees"]
    assert count_outliers(points, given_["r"], given_["k"], normalise=normalise) == expected["outlier_count"]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 9), st.integers(0, 2**32), st.booleans(), st.sampled_from([1, 3, None]))
def test_degrees_are_those_of_the_definition(n, dimension, seed, normalise, cap):
    """A coarse grid of places makes ties and duplicates common."""
    points = np.random.default_rng(seed).integers(-4, 5, (n, dimension)) / 4
    expected = pairs(points, 0.75, normalise=normalise).sum(1)
    found = degrees(points, 0.75, cap=cap, normalise=normalise)
    assert found.tolist() == np.minimum(expected, n if cap is None else cap).tolist()


@pytest.mark.parametrize(("dimension", "radius"), [(1, 0.01), (2, 0.2), (3, 0.4), (7, 0.7), (30, 1.2)])
def test_scikit_learn_finds_the_same(dimension, radius):
    points = np.random.default_rng(7).standard_normal((3000, dimension))
    index = NearestNeighbors(radius=radius * np.sqrt(dimension)).fit(points)
    expected = [len(found) - 1 for found in index.radius_neighbors(points, return_distance=False)]
    assert degrees(points, radius).tolist() == expected


def test_lists_hold_distinct_near_others_and_are_complete_when_not_cut_off():
    points = np.random.default_rng(3).integers(0, 12, (400, 2)) / 4
    tree = build_tree(points, squared_reach(0.5, 2, normalise=True))
    truth = pairs(points, 0.5)[np.ix_(tree.order, tree.order)]
    met, found = list_neighbours(tree, 25)
    for j in range(tree.n):
        mine = met[j, : found[j]].tolist()
        assert len(set(mine)) == len(mine) == min(25, truth[j].sum())
        assert truth[j, mine].all()


def test_a_dense_leaf_lists_everybody_equally_often():
    tree = build_tree(np.zeros((LEAF_RECORDS, 2)), 1.0)
    met, found = list_neighbours(tree, 20)
    assert set(found.tolist()) == {20}
    assert set(np.bincount(met.ravel(), minlength=LEAF_RECORDS).tolist()) == {20}


def test_near_is_closed_symmetric_and_counts_by_index():
    assert near(np.array([0.0, 0.0]), np.array([3.0, 4.0]), 25.0)
    assert near(np.array([3.0, 4.0]), np.array([0.0, 0.0]), 25.0)
    assert not near(np.array([0.0, 0.0]), np.array([3.0, np.nextafter(4.0, 5.0)]), 25.0)
    assert degrees([[1.0], [1.0], [1.0]], 0.5).tolist() == [2, 2, 2]


def test_no_row_can_flip_another_pair():
    """Far rows change the tree, never the verdict on a pair that is exactly at the radius."""
    tied = np.array([[0.1 * i, 0.3 * i] for i in range(40)])
    reach = float(((tied[1] - tied[0]) ** 2).sum()) ** 0.5
    base = pairs(tied, reach, normalise=False)
    for seed in range(20):
        others = np.random.default_rng(seed).standard_normal((200, 2)) * 100 + 1000
        mixed = np.random.default_rng(seed).permutation(np.vstack([tied, others]))
        expected = pairs(mixed, reach, normalise=False).sum(1)
        assert degrees(mixed, reach, normalise=False).tolist() == expected.tolist()
    assert base.sum() > 0


@pytest.mark.parametrize("points", [[], [[]], [[[1.0]]], [[np.nan]], [[np.inf], [1.0]]])
def test_what_is_not_a_table_of_numbers_is_refused(points):
    with pytest.raises(DataError):
        degrees(points, 1.0)


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan"), float("inf"), 1e-200])
def test_a_radius_that_is_no_distance_is_refused(radius):
    with pytest.raises(ParameterError, match="radius"):
        count_outliers([[0.0], [1.0]], radius, 1)


@pytest.mark.parametrize("neighbours", [0, -1, 1.5, True, "3"])
def test_neighbours_must_be_a_positive_whole_number(neighbours):
    with pytest.raises(ParameterError, match="neighbours"):
        count_outliers([[0.0], [1.0]], 1.0, neighbours)


def test_extreme_places_are_counted_right():
    points = np.array([[0.0], [1e200], [1e200], [-1e200], [1e-300]])
    assert count_outliers(points, 1.0, 1) == 1
