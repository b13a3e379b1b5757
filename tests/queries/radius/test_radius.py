"""The radius of a wanted share: what it is, how far off, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import wallflower as wf
from wallflower.errors import LossMismatch, NotUseful, ParameterError
from wallflower.neighbours.radii import USUAL, Tally, middle_of, outlier_curve, pick_radii, radius_errors
from wallflower.noise import system_noise
from wallflower.queries.radius import Radius
from wallflower.queries.radius.exact import exact_radius

RECORDS = np.random.default_rng(3).normal(size=(1200, 3))
POINTS = wf.Points.from_array(RECORDS, columns=["a", "b", "c"], name="people")


def asked(**more):
    return Radius(**{"neighbours": 5, "share": "5%", "loss": wf.Loss("1")} | more)


@pytest.mark.slow
@pytest.mark.parametrize("graded", [False, True])
def test_the_plan_says_how_far_off_the_radius_is(graded):
    """With 95 % within `off`: of 20 answers more than 12 would be beyond with a chance below 1e-11."""
    query = asked(graded=graded, slack=None if graded else 2, loss=wf.Loss("2"))
    tally, most = query.tally(1200, 3), query.off(1200, 3)
    curve = outlier_curve(RECORDS, query.grid, tally)
    missed = radius_errors(curve, 60 * tally.unit) / tally.unit
    beyond, places = 0, {middle_of(query.grid, place): place for place in range(len(query.grid))}
    for _ in range(20):
        (radius,) = pick_radii(curve, 1200, query.grid, [query.share], tally, epsilon=Fraction(2), noise=system_noise())
        beyond += missed[places[radius]] > most
    assert beyond <= 12
    assert most < 30


def test_with_much_loss_it_is_the_exact_radius():
    query = asked(loss=wf.Loss("1000"), slack=30)
    found = exact_radius(RECORDS, Fraction(1, 20), query.grid, 5)
    assert query.answer(POINTS, system_noise()) == middle_of(query.grid, query.grid.index(found))


def test_a_share_is_written_in_many_ways_and_kept_exactly():
    for share in ("5%", "5 %", 0.05, "0.05", "1/20", Fraction(1, 20)):
        assert asked(share=share) == asked()
    assert Radius.from_json(asked().to_json()) == asked()


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": "0"},
        {"share": "100%"},
        {"share": "many"},
        {"share": "1/0"},
        {"neighbours": 0},
        {"loss": wf.Loss.zcdp("1")},
        {"smallest": 2.0, "largest": 1.0},
        {"slack": 0},
        {"slack": 3, "graded": True},
        {"scale": "x"},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises((ParameterError, LossMismatch)):
        asked(**wrong)


def test_too_few_wanted_outliers_are_of_no_use(tmp_path):
    people = wf.open(POINTS, ledger=tmp_path / "ledger.db")
    most = Tally(neighbours=5, slack=3).share
    share = Fraction(11) * Fraction(most) / 1200
    assert asked(share=share, slack=3).plan(n=1200, dimension=3).useful
    assert not asked(share=share - Fraction(1, 10**6), slack=3).plan(n=1200, dimension=3).useful
    with pytest.raises(NotUseful, match="from ε"):
        people.radius(neighbours=5, share="1%", epsilon="0.3")


def test_a_radius_goes_with_the_scale_that_was_released(tmp_path):
    wide = wf.Points.from_array(RECORDS * np.array([1e3, 1e-4, 1.0]), columns=["a", "b", "c"], name="people")
    people = wf.open(wide, ledger=tmp_path / "ledger.db")
    spreads = people.scale(epsilon="0.2")
    found = people.radius(neighbours=5, share="20%", epsilon="0.6", scale=spreads, anyway=True)
    assert found.value in {middle_of(USUAL, place) for place in range(len(USUAL))}
    assert any("ledger entry 1" in note for note in found.notes)
    assert found.extras["target"] == 240
