"""An observation becomes a whole number that one entry moves by no more than is said, whatever it was and becomes."""

import math
from itertools import product

import numpy as np
import pytest

from wallflower.errors import DataError, ParameterError
from wallflower.queries.watch.statistics import MAX_STEPS, STATISTICS, STEPS_PER_ENTRY, Bounds, make_statistic

INF, NAN = math.inf, math.nan
ODD = (-INF, -3.0, -1.0, -0.5, -0.0, 1e-300, 0.25, 0.5, 1.0, 1.5, 2.5, 1e300, INF, NAN)
MEAN, COVARIANCE = (0.5, -0.25, 1.0), ((2.0, 0.7, -0.3), (0.7, 1.0, 0.2), (-0.3, 0.2, 0.5))
BOX = Bounds(low=(-1.0, -2.0, 0.0), high=(2.0, 0.5, 1.5))


def held(rows):
    rows = np.where(np.isnan(rows), (np.array(BOX.low) + BOX.high) / 2, rows)
    return np.clip(rows, BOX.low, BOX.high)


def random_rows(seed, size):
    draw = np.random.default_rng(seed)
    rows = draw.uniform(-3, 3, (size, 3))
    return np.where(draw.random(rows.shape) < 0.2, draw.choice(ODD, rows.shape), rows)


def changed(rows, seed):
    """The same rows, each with one entry replaced."""
    draw = np.random.default_rng(seed)
    other, at = rows.copy(), draw.integers(3, size=len(rows))
    other[np.arange(len(rows)), at] = np.where(draw.random(len(rows)) < 0.5, draw.choice(ODD, len(rows)), 2 * at - 1.7)
    return other


@pytest.mark.parametrize("weights", [None, (1.0, -2.0, 0.3), (-1.0, -1.0, -1.0), (0.0, 0.0, 5.0)])
def test_a_sum_is_clipped_and_rounded_entry_by_entry(weights):
    made = make_statistic("sum" if weights is None else "weighted", BOX, centre=0.3, weights=weights)
    factors = weights or (1.0, 1.0, 1.0)
    for row in product(ODD, repeat=3):
        expected = -math.floor(0.3 / made.step + 0.5)
        for factor, entry, low, high in zip(factors, row, BOX.low, BOX.high, strict=True):
            entry = low / 2 + high / 2 if math.isnan(entry) else min(max(entry, low), high)
            expected += (-1 if factor < 0 else 1) * math.floor(entry * abs(factor) / made.step + 0.5)
        assert made.measure(np.array([row])).tolist() == [expected]
    exact = held(random_rows(1, 500)) @ np.array(factors) - 0.3
    assert np.abs(made.measure(random_rows(1, 500)) * made.step - exact).max() <= 2.5 * made.step


@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, -2.0, 0.3), (-0.1, 0.0, 1e-9)])
def test_one_entry_moves_a_sum_by_move_at_most_and_sometimes_does(weights):
    made = make_statistic("weighted", BOX, weights=weights)
    farthest = 0
    for rest in product((-1.0, 0.5, NAN), repeat=2):
        for at in range(3):
            rows = np.array([[*rest[:at], entry, *rest[at:]] for entry in ODD])
            found = made.measure(rows)
            farthest = max(farthest, int(found.max() - found.min()))
    assert farthest == made.sensitivity


@pytest.mark.parametrize("low", [0.0, -7.3, 1e6 + 0.1])
def test_a_lone_entry_moves_by_its_range(low):
    made = make_statistic("sum", Bounds(low=(low,), high=(low + 2.6,)))
    found = made.measure(np.array([low, low + 1.3, low + 2.6, INF, -INF, NAN]))
    assert found.max() - found.min() == made.sensitivity
    assert found[1] == found[5]
    assert STEPS_PER_ENTRY <= made.sensitivity <= 2 * STEPS_PER_ENTRY + 1


@pytest.mark.parametrize("change", [0.1, 0.3, 1.0, 2.4999])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_an_entry_that_changes_as_little_as_assumed_moves_as_little_as_said(statistic, change):
    weights = (1.0, -2.0, 0.3) if statistic == "weighted" else None
    made = make_statistic(statistic, BOX, weights=weights, mean=MEAN, covariance=COVARIANCE, change=change)
    draw = np.random.default_rng(7)
    rows = np.concatenate([draw.uniform(-3, 3, (4000, 3)), made.step * draw.integers(-5, 5, (4000, 3)) + made.step / 2])
    other, at = rows.copy(), draw.integers(3, size=len(rows))
    other[np.arange(len(rows)), at] += draw.choice([-change, change], len(rows))
    moved = np.abs(made.measure(rows) - made.measure(other))
    assert moved.max() <= made.sensitivity
    assert moved.max() >= (0.8 if change < 1 else 0.4) * made.sensitivity  # a distance folds around the mean
    assert made.sensitivity <= 2 * STEPS_PER_ENTRY + 2


def test_an_assumption_wider_than_the_bounds_is_enforced_by_them():
    assert make_statistic("sum", BOX, change=50.0).sensitivity == make_statistic("sum", BOX).sensitivity


@pytest.mark.parametrize("statistic", ["mahalanobis", "max"])
def test_distances_are_those_of_numpy(statistic):
    made = make_statistic(statistic, BOX, mean=MEAN, covariance=COVARIANCE)
    rows = random_rows(2, 2000)
    away = held(rows) - MEAN
    expected = {
        "mahalanobis": np.sqrt(np.einsum("ni,ij,nj->n", away, np.linalg.inv(COVARIANCE), away)),
        "max": np.max(np.abs(away) / np.sqrt(np.diag(COVARIANCE)), axis=1),
    }[statistic]
    assert np.abs(made.measure(rows) - expected / made.step).max() <= 0.5 + 1e-6
    assert not made.is_sum


@pytest.mark.parametrize("statistic", STATISTICS)
def test_random_changes_never_move_more(statistic):
    weights = (0.5, -2.0, 1.0) if statistic == "weighted" else None
    made = make_statistic(statistic, BOX, weights=weights, mean=MEAN, covariance=COVARIANCE)
    for seed in range(5):
        rows = random_rows(seed, 4000)
        moved = np.abs(made.measure(rows) - made.measure(changed(rows, seed + 100)))
        assert 0.4 * made.sensitivity < moved.max() <= made.sensitivity


def test_the_sensitivity_of_mahalanobis_is_reached_and_more_than_one_over_the_deviation():
    wide = Bounds(low=(-9.0,) * 3, high=(9.0,) * 3)
    made, naive = (
        make_statistic(each, wide, mean=(0.0,) * 3, covariance=COVARIANCE, change=1.0)
        for each in ("mahalanobis", "max")
    )
    at = int(np.argmax(np.diag(np.linalg.inv(COVARIANCE))))
    rows = np.zeros((2, 3))
    rows[:, at] = 4.0, 5.0
    moved = abs(int(np.subtract(*made.measure(rows))))
    assert made.sensitivity - 4 <= moved <= made.sensitivity
    assert moved * made.step > 1.1 * naive.sensitivity * naive.step


@pytest.mark.parametrize("statistic", STATISTICS)
def test_missing_entries_count_as_the_middle(statistic):
    weights = (1.0, -2.0, 0.3) if statistic == "weighted" else None
    made = make_statistic(statistic, BOX, weights=weights, mean=MEAN, covariance=COVARIANCE)
    middle = (np.array(BOX.low) + BOX.high) / 2
    for at in range(3):
        row = np.array([0.1, 0.2, 0.3])
        gone, filled = row.copy(), row.copy()
        gone[at], filled[at] = NAN, middle[at]
        assert made.measure(gone[None]) == made.measure(filled[None])


@pytest.mark.parametrize("rows", [np.zeros((2, 2)), np.zeros((1, 4)), np.zeros(3), np.zeros((1, 1, 3))])
def test_observations_of_another_width_are_refused(rows):
    with pytest.raises(DataError, match="3 columns here"):
        make_statistic("sum", BOX).measure(rows)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"statistic": "median"}, "it is one of sum, weighted, mahalanobis, max"),
        ({"change": 0.0}, "not a positive number"),
        ({"change": INF}, "not a positive number"),
        ({"statistic": "weighted", "weights": (1.0,)}, "3 finite numbers"),
        ({"statistic": "weighted", "weights": (0.0,) * 3}, "not all of them 0"),
        ({"statistic": "weighted", "weights": (1.0, NAN, 1.0)}, "3 finite numbers"),
        ({"statistic": "mahalanobis"}, "needs both"),
        ({"statistic": "max", "mean": (0.0,), "covariance": ((1.0,),)}, "3 rows of 3"),
        ({"statistic": "max", "mean": MEAN, "covariance": np.diag([1.0, 1.0, 0.0])}, "add a constant"),
        ({"statistic": "max", "mean": MEAN, "covariance": ((1, 2, 0), (0, 1, 0), (0, 0, 1))}, "symmetric"),
        ({"statistic": "max", "mean": (NAN, 0, 0), "covariance": np.eye(3)}, "symmetric and positive"),
        ({"statistic": "mahalanobis", "mean": MEAN, "covariance": np.ones((3, 3))}, "constant to its diagonal"),
        ({"statistic": "mahalanobis", "mean": MEAN, "covariance": np.diag([1, 1, 1e-13])}, "singular"),
    ],
)
def test_what_makes_no_gauge_is_refused(asked, words):
    with pytest.raises(ParameterError, match=words):
        make_statistic(**{"statistic": "sum", "bounds": BOX, **asked})


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("far", [1e12, 1e30, 1e100])
def test_bounds_too_wide_for_whole_numbers_are_refused_and_never_wrap(statistic, far):
    wide = Bounds(low=(-far,) * 3, high=(far,) * 3)
    weights = (1.0, -1.0, 2.0) if statistic == "weighted" else None
    with pytest.raises(ParameterError, match="Narrow the bounds"):
        make_statistic(statistic, wide, weights=weights, mean=MEAN, covariance=COVARIANCE, change=1e-3)
    with pytest.raises(ParameterError, match="Narrow the bounds"):
        make_statistic("sum", Bounds(low=(0.0,), high=(1.0,)), centre=far)


@pytest.mark.parametrize("statistic", STATISTICS)
def test_distances_stay_below_what_floats_hold(statistic):
    weights = (1.0, -1.0, 2.0) if statistic == "weighted" else None
    made = make_statistic(statistic, BOX, weights=weights, mean=MEAN, covariance=COVARIANCE, change=1e-6)
    assert np.abs(made.measure(np.array([[INF, INF, INF], [-INF, INF, -INF]]))).max() < MAX_STEPS


def test_thresholds_are_counted_in_steps_and_end_beyond_all_distances():
    for statistic in STATISTICS:
        weights = (1.0, -2.0, 0.3) if statistic == "weighted" else None
        made = make_statistic(statistic, BOX, weights=weights, mean=MEAN, covariance=COVARIANCE)
        assert math.log2(made.step).is_integer()
        assert made.steps(3 * made.step) == 3
        assert made.steps(2.5 * made.step) == 3
        assert made.steps(-2.5 * made.step) == -2
        assert abs(made.steps(1.7) * made.step - 1.7) <= made.step / 2
        assert MAX_STEPS < made.steps(1e100) <= 2 * MAX_STEPS
        assert -2 * MAX_STEPS <= made.steps(-1e100) < -MAX_STEPS


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ((), (), "every column"),
        ((0.0,), (1.0, 2.0), "as many of one"),
        ((1.0,), (1.0,), "low must be below high"),
        ((NAN,), (1.0,), "low must be below high"),
        ((-INF,), (1.0,), "low must be below high"),
    ],
)
def test_bounds_are_two_numbers_for_each_column(low, high, words):
    with pytest.raises(ParameterError, match=words):
        Bounds(low=low, high=high)
