"""Exact scores: shared sums and trees against plain definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import every, mass_in, outliers_in

from wallflower import progress
from wallflower.errors import ParameterError
from wallflower.neighbours.flow import outlier_mass
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.subspaces import exact
from wallflower.queries.subspaces.exact import scores


def table(n, dimension, seed, digits=1):
    return np.round(np.random.default_rng(seed).normal(size=(n, dimension)), digits)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize(
    ("n", "dimension", "neighbours"), [(3, 2, 1), (12, 3, 2), (25, 4, 3), (25, 2, 24), (25, 2, 40)]
)
def test_scores_are_what_the_definition_says(n, dimension, neighbours, normalise):
    points, family = table(n, dimension, seed=n), every(dimension)
    for radius in (0.1, 0.5, 1.0):
        by_count = [outliers_in(points, s, radius, neighbours, normalise=normalise) for s in family]
        by_mass = [mass_in(points, s, radius, neighbours, normalise=normalise) for s in family]
        found = scores(points, family, radius, neighbours, score="count", normalise=normalise)
        assert found.tolist() == by_count
        found = scores(points, family, radius, neighbours, score="mass", normalise=normalise)
        assert found == pytest.approx(by_mass, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=2, max_size=9),
    st.integers(1, 4),
    st.sampled_from([0.5, 1.0, 1.2]),
)
def test_mass_is_the_largest_flow_on_tiny_grids(points, neighbours, radius):
    values, family = np.array(points, dtype=float), every(3)
    expected = [mass_in(values, s, radius, neighbours) for s in family]
    assert scores(values, family, radius, neighbours) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("score", ["mass", "count"])
def test_both_engines_agree_with_the_room_next_door(monkeypatch, score):
    points, family = table(400, 9, seed=4), [*every(3), (8,), (0, 4, 8), tuple(range(9)), tuple(range(1, 9)), (2, 3, 4)]
    one = outlier_mass if score == "mass" else count_outliers
    expected = [one(points[:, list(s)], 0.35, 3) for s in family]
    assert scores(points, family, 0.35, 3, score=score).tolist() == expected
    monkeypatch.setattr(exact, "MAX_RECORDS_OF_ALL_PAIRS", 10)
    assert scores(points, family, 0.35, 3, score=score).tolist() == expected
    monkeypatch.setattr(exact, "MIN_RECORDS_ONE_BY_ONE", 10)
    assert scores(points, family, 0.35, 3, score=score).tolist() == expected


def test_deep_subspaces_share_their_beginnings_rightly():
    points = table(40, 12, seed=9)
    deep = [tuple(range(n)) for n in range(1, 13)] + [(*range(n), 11) for n in range(1, 11)]
    backwards = deep[::-1]
    expected = [outliers_in(points, s, 0.8, 3) for s in backwards]
    assert scores(points, backwards, 0.8, 3, score="count").tolist() == expected


def test_the_order_of_names_and_of_the_family_changes_nothing():
    points = table(60, 3, seed=2)
    assert scores(points, [(2, 0), (1,)], 0.4, 3).tolist() == scores(points, [(1,), (0, 2)], 0.4, 3).tolist()[::-1]


def test_mass_never_exceeds_the_count_of_outliers_by_more_than_what_is_contested():
    points = table(300, 2, seed=3)
    lacking = scores(points, every(2), 0.3, 4)
    assert (lacking <= 300).all()
    assert (lacking >= 0).all()


@pytest.mark.parametrize("few", [10, 1500])
def test_progress_counts_every_subspace(monkeypatch, few):
    monkeypatch.setattr(exact, "MAX_RECORDS_OF_ALL_PAIRS", few)
    heard = []

    class Listener:
        def begin(self, words, total):
            heard.append((words, total))

        def advance(self, handle, steps):
            heard.append(steps)

        def end(self, handle):
            heard.append("end")

    with progress.report_to(Listener()):
        scores(table(50, 4, seed=0), every(4), 0.4, 3)
    assert heard[0] == ("scoring subspaces", 15)
    assert sum(heard[1:-1]) == 15
    assert heard[-1] == "end"


@pytest.mark.parametrize("family", [[()], [(0, 3)], [(-1,)], [(1, 1)]])
def test_what_is_no_subspace_is_refused(family):
    with pytest.raises(ParameterError, match="places from 0 to 2"):
        scores(table(10, 3, seed=0), family, 0.4, 3)


def test_an_unknown_score_is_refused():
    with pytest.raises(ParameterError, match="one of mass, count"):
        scores(table(10, 3, seed=0), [(0,)], 0.4, 3, score="depth")
