"""Clusters are those of scikit-learn, label by label, ties and borders included."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN

from wallflower.errors import DataError, ParameterError
from wallflower.sensors.detectors import dbscan, outside_biggest_cluster

pytestmark = pytest.mark.slow  # together more than `make check` has room for

MADE = {
    "normal": lambda draw, n, d: draw.normal(size=(n, d)),
    "whole numbers": lambda draw, n, d: draw.integers(-6, 6, (n, d)).astype(float),
    "eighths": lambda draw, n, d: draw.integers(-40, 40, (n, d)) / 8,
    "five of each": lambda draw, n, d: np.repeat(draw.normal(size=(-(-n // 5), d)), 5, axis=0),
    "one decimal": lambda draw, n, d: np.round(draw.normal(size=(n, d)) * 2, 1),
    "two clouds": lambda draw, n, d: draw.normal(size=(n, d)) * 0.1 + draw.integers(0, 2, (n, 1)),
    "heavy tails": lambda draw, n, d: draw.standard_cauchy(size=(n, d)),
}
RADII = [0.1, 0.25, 0.5, 1.0, 2**0.5, 2.0, 5**0.5, 2.5]


def theirs(points, radius, neighbours):
    return DBSCAN(eps=radius, min_samples=neighbours, algorithm="kd_tree").fit_predict(points)


def literally(points, radius, neighbours):
    """The definition, with a table of all pairs."""
    near = ((points[:, None] - points[None]) ** 2).sum(axis=2) <= radius * radius
    core, labels, following = near.sum(axis=1) >= neighbours, np.full(len(points), -1), 0
    for start in range(len(points)):
        if core[start] and labels[start] < 0:
            todo = [start]
            while todo:
                at = todo.pop()
                if labels[at] < 0:
                    labels[at] = following
                    todo += np.flatnonzero(near[at]).tolist() if core[at] else []
            following += 1
    return labels


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("columns", [1, 2, 3, 6])
def test_labels_are_those_of_scikit_learn(kind, columns):
    draw = np.random.default_rng(list(MADE).index(kind) + 10 * columns)
    for _ in range(8):
        points = draw.permutation(MADE[kind](draw, int(draw.integers(1, 300)), columns))
        radius, neighbours = float(draw.choice(RADII)), int(draw.integers(1, 20))
        expected = theirs(points, radius, neighbours)
        assert np.array_equal(dbscan(points, radius, neighbours), expected)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.heavy) for seed in range(2, 6))])
def test_so_are_many_more(seed):
    draw = np.random.default_rng(1000 + seed)
    for _ in range(300):
        points = MADE[str(draw.choice(list(MADE)))](
            draw, int(draw.integers(1, 600)), int(draw.choice([1, 2, 2, 2, 3, 5]))
        )
        points = draw.permutation(points)
        radius, neighbours = float(draw.choice(RADII)), int(draw.integers(1, 30))
        assert np.array_equal(dbscan(points, radius, neighbours), theirs(points, radius, neighbours))


@settings(max_examples=200, deadline=None)
@given(
    points=st.lists(st.tuples(*[st.integers(-5, 5)] * 2), min_size=1, max_size=25),
    square=st.integers(1, 20),
    neighbours=st.integers(1, 6),
)
def test_ties_at_the_radius_are_within_it(points, square, neighbours):
    values, radius = np.array(points, dtype=float), float(np.sqrt(square))
    expected = literally(values, radius, neighbours)
    assert np.array_equal(dbscan(values, radius, neighbours), expected)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.tuples(*[st.integers(-12, 12)] * 3), min_size=1, max_size=120),
    columns=st.integers(1, 3),
    quarter_radius=st.integers(1, 20),
    neighbours=st.integers(1, 9),
)
def test_labels_on_a_grid_are_those_of_scikit_learn(rows, columns, quarter_radius, neighbours):
    points = np.array(rows, dtype=float)[:, :columns] / 2  # ties at the radius, points on top of each other, borders
    expected = theirs(points, quarter_radius / 4, neighbours)
    assert np.array_equal(dbscan(points, quarter_radius / 4, neighbours), expected)


@pytest.mark.parametrize("spread", [0.02, 0.5, 3.0])
def test_labels_of_many_points_are_those_of_scikit_learn(spread):
    draw = np.random.default_rng(5)
    points = draw.normal(size=(5000, 2)) * spread + draw.laplace(size=(5000, 2)) * spread
    assert np.array_equal(dbscan(points, 0.5, 15), theirs(points, 0.5, 15))


def test_points_far_apart_are_in_clusters_of_their_own():
    points = np.array([[0.0, 0.0], [0.0, 0.5], [1e13, 0.0], [1e13, 0.25], [-1e300, 0.0], [5e12, 1e200]])
    assert dbscan(points, 0.5, 2).tolist() == [0, 0, 1, 1, -1, -1]


def test_points_of_the_same_place_and_a_single_one():
    assert dbscan(np.zeros((50, 2)), 1e-9, 50).tolist() == [0] * 50
    assert dbscan(np.zeros((50, 2)), 1e-9, 51).tolist() == [-1] * 50
    assert dbscan([[3.0, 4.0]], 0.5, 1).tolist() == [0]
    assert dbscan([[3.0, 4.0]], 0.5, 2).tolist() == [-1]


def test_a_border_point_between_two_clusters_goes_to_the_first():
    line = [[0.0, 0.0], [0.5, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [3.5, 0.0], [4.0, 0.0]]
    assert dbscan(line, 1.0, 4).tolist() == theirs(np.array(line), 1.0, 4).tolist()
    assert dbscan(line[::-1], 1.0, 4).tolist() == theirs(np.array(line[::-1]), 1.0, 4).tolist()


def test_outliers_are_outside_the_biggest_cluster():
    draw = np.random.default_rng(2)
    crowd, group, lone = draw.normal(size=(400, 2)) * 0.2, draw.normal(size=(60, 2)) * 0.1 + 9, [[-9.0, -9.0]]
    found = outside_biggest_cluster(np.vstack([group, crowd, lone]))
    assert found[:60].all()
    assert found[-1]
    assert not found[60:-1].any()
    assert outside_biggest_cluster(np.arange(40.0).reshape(20, 2)).all()


@pytest.mark.parametrize("neighbours", [0, -1, 2.0, True])
def test_neighbours_are_counted(neighbours):
    with pytest.raises(ParameterError, match="neighbours"):
        dbscan([[0.0, 0.0]], 1.0, neighbours)


def test_other_refusals():
    with pytest.raises(ParameterError, match="radius"):
        dbscan([[0.0, 0.0]], 0.0, 3)
    with pytest.raises(DataError, match="missing or infinite"):
        dbscan([[0.0, np.nan]], 1.0, 3)


@pytest.mark.slow
def test_a_window_of_100_000_points_takes_no_longer_than_it_may():
    draw = np.random.default_rng(0)
    dbscan(draw.normal(size=(1000, 2)), 0.5, 15)
    for spread in (0.03, 1.0, 5.0, 50.0):
        points = draw.laplace(size=(100_000, 2)) * spread
        start = time.process_time()
        dbscan(points, 0.5, 15)
        assert time.process_time() - start < 0.6
