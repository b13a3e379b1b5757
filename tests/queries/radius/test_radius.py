"""The radius of a wanted share: what it is, how far off, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import wallflower as wf
from wallflower.audit.answers import Recorder
from wallflower.errors import LossMismatch, NotUseful, ParameterError
from wallflower.neighbours.radii import DEFAULT_RADII, Tally, middle_radius, outlier_curve, pick_radii, radius_errors
from wallflower.noise import system_noise
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.radius import Radius
from wallflower.queries.radius.audit import exact_radius

RECORDS = np.random.default_rng(3).normal(size=(1200, 3))
POINTS = wf.Points.from_array(RECORDS, columns=["a", "b", "c"], name="people")


def asked(**more):
    return Radius(**{"neighbours": 5, "share": "5%", "loss": wf.Loss("1")} | more)


@pytest.mark.slow
@pytest.mark.parametrize("graded", [False, True])
def test_the_plan_says_how_far_off_the_radius_is(graded):
    """With 95 % within `off`: of 20 answers more than 12 would be beyond with a chance below 1e-11."""
    query = asked(graded=graded, slack=None if graded else 2, loss=wf.Loss("2"), verify=False)
    tally, most = query.tally(1200, 3), query.off(1200, 3)
    curve = outlier_curve(RECORDS, query.grid, tally)
    missed = radius_errors(curve, 60 * tally.unit) / tally.unit
    beyond, places = 0, {middle_radius(query.grid, place): place for place in range(len(query.grid))}
    for _ in range(20):
        (radius,) = pick_radii(curve, 1200, query.grid, [query.share], tally, epsilon=Fraction(2), noise=system_noise())
        beyond += missed[places[radius]] > most
    assert beyond <= 12
    assert most < 30


def test_with_much_loss_it_is_the_exact_radius():
    query = asked(loss=wf.Loss("1000"), slack=30)
    found = exact_radius(RECORDS, Fraction(1, 20), query.grid, 5)
    radius = middle_radius(query.grid, query.grid.index(found))
    assert query.answer(POINTS, system_noise()) == {"radius": radius, "outliers": count_outliers(RECORDS, radius, 5)}


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
    share = Fraction(11) * Fraction(most) / 1200 / Fraction(3, 4)  # of ε goes to the choice
    assert asked(share=share, slack=3).plan(n=1200, dimension=3).useful
    assert not asked(share=share - Fraction(1, 10**6), slack=3).plan(n=1200, dimension=3).useful
    with pytest.raises(NotUseful, match="from ε"):
        people.radius(neighbours=5, share="1%", epsilon="0.3")


def test_a_radius_goes_with_the_scale_that_was_released(tmp_path):
    wide = wf.Points.from_array(RECORDS * np.array([1e3, 1e-4, 1.0]), columns=["a", "b", "c"], name="people")
    people = wf.open(wide, ledger=tmp_path / "ledger.db")
    spreads = people.scale(epsilon="0.2")
    found = people.radius(neighbours=5, share="20%", epsilon="0.6", scale=spreads, force=True)
    assert found.value["radius"] in {middle_radius(DEFAULT_RADII, place) for place in range(len(DEFAULT_RADII))}
    assert any("ledger entry 1" in note for note in found.notes)
    assert found.extras["target"] == 240


def unscaled(n=3000):
    """An identifier, years and milligrams: at no radius of the grid are there few outliers."""
    draw = np.random.default_rng(8)
    columns = [np.arange(n, dtype=float) * 37, draw.normal(60, 9, n), draw.exponential(900, n)]
    return wf.Points.from_array(np.column_stack(columns), columns=["number", "years", "milligrams"], name="people")


def test_a_share_that_no_radius_has_is_seen_and_said(tmp_path):
    """Before, the release said that about 2 % were outliers where all were. The noise passes 12 half-widths with a
    chance below 1e-15."""
    points = unscaled()
    people = wf.open(points, ledger=tmp_path / "ledger.db")
    made = people.radius(neighbours=5, share="2%", epsilon="1", slack=3)
    truth = count_outliers(points.values, made.value["radius"], 5)
    assert truth == points.n
    assert made.quality.verdict == "check first"
    assert any("2.0 % was asked for" in words for words in made.quality.conditions)
    assert made.extras["at_most"] > 0.9 * points.n
    assert "estimate" in made.text
    assert "asked for: 60" in made.text


def test_a_share_that_is_met_is_not_doubted():
    """Scripted noise of 0, and the best candidate, so nothing is left to chance."""
    query = asked(loss=wf.Loss("10"), slack=30)
    value = query.answer(POINTS, Recorder())
    assert not query.reading(value, POINTS).quality.conditions


def test_without_verification_the_condition_comes_first():
    query = asked(verify=False)
    value = query.answer(POINTS, system_noise())
    assert set(value) == {"radius"}
    assert query.reading(value, POINTS).text.startswith("If ")
    assert any("verifies" in words for words in query.conditions(POINTS))
    assert not any("verifies" in words for words in asked().conditions(POINTS))


@pytest.mark.parametrize("graded", [False, True])
def test_the_number_at_the_radius_has_its_noise_and_no_more(graded):
    """With scripted noise of 0 it is the number that the extension, or the flow, has there."""
    query = asked(graded=graded, slack=None if graded else 3)
    value = query.answer(POINTS, Recorder())
    tally = query.tally(POINTS.n, POINTS.dimension)
    assert value["mass" if graded else "outliers"] == round(tally.steps(RECORDS, value["radius"]) / tally.unit)
