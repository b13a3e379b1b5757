"""Outliers against the radius: what is left out changes nothing, and one record moves no value by more than it may."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.audit.laws import law_of
from wallflower.errors import ParameterError
from wallflower.neighbours.radii import (
    DEFAULT_RADII,
    Tally,
    choose_radii,
    curve_around,
    error_reach,
    evaluate_falling,
    middle_radius,
    outlier_curve,
    pick_radii,
    radius_errors,
    radius_grid,
    target_steps,
)
from wallflower.noise import system_noise

GRID = radius_grid(0.1, 6.4, 2)
WAYS = [Tally(neighbours=2, slack=2, normalise=False), Tally(neighbours=2, slack=None, normalise=False)]
CROSS = np.array([[0.0], [1.0], [1.0], [-1.0], [-1.0], [2.5], [4.0], [4.1], [4.3]])


def brute_outliers(values: np.ndarray, radius: float, neighbours: int) -> int:
    gaps = np.sqrt(((values[:, None] - values) ** 2).sum(axis=2))
    return int(np.count_nonzero(np.count_nonzero(gaps <= radius, axis=1) - 1 < neighbours))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_a_falling_function_is_known_where_its_ends_agree(falls):
    values = (sum(falls) - np.cumsum(falls)).tolist()
    assert evaluate_falling(values.__getitem__, len(values)) == values


@pytest.mark.parametrize("tally", WAYS, ids=["extension", "graded"])
def test_the_curve_is_what_each_radius_gives_by_itself(tally):
    found = outlier_curve(CROSS, GRID, tally)
    assert found.tolist() == [tally.steps(CROSS, radius) for radius in GRID]
    assert (np.diff(found) <= 0).all()
    cut = outlier_curve(CROSS, GRID, tally, low=tally.unit, high=4 * tally.unit)
    assert cut.tolist() == np.clip(found, tally.unit, 4 * tally.unit).tolist()


def test_with_slack_enough_the_curve_counts_every_outlier():
    tally = Tally(neighbours=2, slack=4, normalise=False)
    found = outlier_curve(CROSS, GRID, tally) / tally.unit
    assert found.tolist() == [brute_outliers(CROSS, radius, 2) for radius in GRID]


@pytest.mark.parametrize("tally", WAYS, ids=["extension", "graded"])
def test_one_record_moves_the_whole_curve_by_no_more_than_it_may_and_by_that_much(tally):
    moves = []
    for place in (0, 1, 5):
        for to in (-9.0, -1.0, 0.0, 4.2, 9.0):
            other = CROSS.copy()
            other[place] = to
            moves.append(np.abs(outlier_curve(CROSS, GRID, tally) - outlier_curve(other, GRID, tally)).max())
    assert max(moves) <= tally.sensitivity
    assert max(moves) >= tally.unit


def test_the_sensitivity_of_one_radius_is_that_of_all_of_them():
    """k + 1 records in one place, far from the rest, and one of them moves away: E falls by L + 1 at every radius."""
    tally = Tally(neighbours=3, slack=3, normalise=False)
    together, apart = np.zeros((12, 1)), np.zeros((12, 1))
    together[4:, 0] = apart[4:, 0] = np.arange(1, 9) * 100.0
    apart[0] = 1e4
    moves = outlier_curve(apart, GRID, tally) - outlier_curve(together, GRID, tally)
    assert moves.tolist() == [4 * tally.unit] * len(GRID)


@pytest.mark.parametrize("target", [1, 5, 10, 25, 50])
def test_errors_are_zero_where_the_curve_crosses(target):
    curve = np.array([50, 44, 30, 18, 9, 4, 1, 0])
    errors = radius_errors(curve, target)
    for place, error in enumerate(errors.tolist()):
        after = curve[min(place + 1, 7)]
        assert error == max(0, target - curve[place], after - target)
    assert errors.min() == 0


def test_the_draw_has_the_law_of_the_exponential_mechanism_on_the_errors():
    tally, epsilon, grid = WAYS[0], Fraction(9), GRID[::2]
    curve = outlier_curve(CROSS, grid, tally)
    targets = [target_steps(Fraction(share), len(CROSS), tally) for share in ("1/3", "2/3")]
    rows = [radius_errors(curve, target) for target in targets]
    shares = [Fraction(1, 3), Fraction(2, 3)]
    around = curve_around(CROSS, grid, shares, tally, epsilon)
    found = law_of(
        lambda noise: tuple(pick_radii(around, len(CROSS), grid, shares, tally, epsilon=epsilon, noise=noise))
    )
    further = [middle_radius(grid, place) for place in range(len(grid))]
    assert set(choose_radii(CROSS, grid, shares, tally, epsilon=epsilon, noise=system_noise())) <= set(further)
    rate = 9 / (2 * tally.sensitivity)
    weights = {
        (one, two): math.exp(-rate * max(rows[0][i], rows[1][j]))
        for i, one in enumerate(further)
        for j, two in enumerate(further)
    }
    whole = sum(weights.values())
    assert {pair: found.get(pair, 0.0) for pair in weights} == pytest.approx(
        {pair: weight / whole for pair, weight in weights.items()}, abs=1e-10
    )


def test_what_is_cut_off_is_never_chosen():
    reach = error_reach(WAYS[0], 100, 1, Fraction(1, 2))
    assert 100 * math.exp(-reach * 0.5 / (2 * WAYS[0].sensitivity)) <= 1e-13


def test_the_usual_grid_is_fine_where_radii_are_and_wide_where_there_is_little_left():
    steps = np.diff(np.log2(DEFAULT_RADII))
    assert steps == pytest.approx([1 / 16] * 96 + [1 / 2] * 4)
    assert (DEFAULT_RADII[0], DEFAULT_RADII[-1]) == (1 / 16, 16)
    assert all(a < middle_radius(DEFAULT_RADII, place) < b for place, (a, b) in enumerate(pairwise(DEFAULT_RADII)))


@pytest.mark.parametrize("ends", [(1.0, 1.0), (2.0, 1.0), (0.0, 1.0), (1e-50, 1e50)])
def test_a_grid_has_ends_that_make_sense(ends):
    with pytest.raises(ParameterError):
        partial(radius_grid, *ends)()
