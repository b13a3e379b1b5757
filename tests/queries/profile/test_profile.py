"""The curve of outliers against the radius: its band, its shape, and what is refused."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallflower as wf
from wallflower.errors import LossMismatch, NotUseful, ParameterError
from wallflower.neighbours.radii import Tally
from wallflower.noise import system_noise
from wallflower.queries.profile.profile import RADII, Profile, bend_of, smooth

RECORDS = np.random.default_rng(3).normal(size=(600, 3))
POINTS = wf.Points.from_array(RECORDS, columns=["a", "b", "c"], name="people")
FALLING = np.array([500, 300, 120, 40, 8, 0])


def asked(**more):
    return Profile(**{"neighbours": 5, "loss": wf.Loss("1")} | more)


@given(st.lists(st.integers(-50, 650), min_size=1, max_size=8))
def test_a_smooth_curve_falls_and_is_the_nearest_one(noisy):
    found = smooth(noisy, 600)
    assert found == sorted(found, reverse=True)
    assert all(0 <= value <= 600 for value in found)
    if noisy == sorted(noisy, reverse=True):
        assert found == np.clip(noisy, 0, 600).tolist()


def test_pooling_is_least_squares():
    for noisy in itertools.product(range(4), repeat=3):
        best = min(
            (sum((a - b) ** 2 for a, b in zip(noisy, curve, strict=True)), curve)
            for curve in itertools.product(np.arange(0, 3.01, 0.5), repeat=3)
            if list(curve) == sorted(curve, reverse=True)
        )[0]
        found = smooth([4 * value for value in noisy], 100)
        mine = sum((a - b / 4) ** 2 for a, b in zip(noisy, found, strict=True))
        assert mine <= best + 0.15  # both are rounded


@given(st.lists(st.integers(-80, 80), min_size=6, max_size=6))
def test_smoothing_leads_no_further_from_a_falling_curve(noise):
    found = np.array(smooth(FALLING + np.array(noise), 600))
    assert np.abs(found - FALLING).max() <= max(map(abs, noise)) + 0.5


def test_the_band_holds_all_of_the_curve_as_often_as_it_says():
    """With 95 % or more: of 300 draws more than 45 would be outside with a chance below 1e-10."""
    query, tally = asked(slack=2, radii=(0.25, 0.5, 1.0, 2.0)), Tally(neighbours=5, slack=2, columns=3)
    curve, made = FALLING[:4] * tally.unit, query.noise(600, 3)
    reach, outside = query.reach(600, 3), 0
    for _ in range(300):
        noisy = [int(step) + more for step, more in zip(curve, made.draw(system_noise()), strict=True)]
        found = query.finish(noisy, 600, tally)["outliers"]
        outside += max(abs(a - b) for a, b in zip(found, FALLING, strict=False)) > reach
    assert outside <= 45


def test_with_much_loss_the_curve_is_exact_and_the_shares_lead_to_it():
    query = asked(loss=wf.Loss("4000"), slack=30)
    found = query.answer(POINTS, system_noise())
    assert found["radii"] == list(RADII)
    tally = query.tally(600, 3)
    assert found["outliers"] == [round(tally.steps(RECORDS, radius) / tally.unit) for radius in RADII]
    shares = asked(loss=wf.Loss("4000"), slack=30, shares=("50%", "1/10"))
    radii = shares.answer(POINTS, system_noise())["radii"]
    counts = [tally.steps(RECORDS, radius) / tally.unit for radius in radii]
    assert counts[0] == pytest.approx(60, abs=15)
    assert counts[1] == pytest.approx(300, abs=40)


def test_cube_noise_is_half_of_laplace_noise_and_graded_half_of_that():
    plan = asked(slack=3).plan(n=3772, dimension=6)
    cube, laplace = (option.figures["error"] for option in plan.options)
    assert cube == pytest.approx(13 * 4 / 2, rel=0.02)
    assert laplace == pytest.approx(12 * 4, rel=0.02)
    assert asked(graded=True).noise(3772, 6).mean_error() == pytest.approx(13, rel=0.05)


def test_a_curve_bends_where_it_lies_furthest_below_its_ends():
    assert bend_of((0.25, 0.5, 1.0, 2.0), (90, 20, 10, 0)) == 1
    assert bend_of((0.25, 0.5, 1.0), (90, 80, 0)) is None
    assert bend_of((0.25, 0.5, 1.0), (5, 5, 5)) is None


def test_a_profile_is_drawn_and_told(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.grant("people", wf.Loss("100"), by="owner")
        people = wf.open(POINTS, ledger=book)
        made = people.profile(neighbours=5, radii=(0.25, 0.5, 1.0, 2.0), epsilon="20")
        assert made.extras["bend"] in (0.5, 1.0)
        assert "curve bends" in made.text
        shares = people.profile(neighbours=5, shares=("20%", "50%"), epsilon="5")
        for release in (made, shares):
            assert len(release.plot().axes) == 2
            assert "<svg" in release._repr_html_() or release._repr_html_()
        with pytest.raises(NotUseful):
            people.profile(neighbours=5, epsilon="0.05")


@pytest.mark.parametrize(
    "wrong",
    [
        {"radii": (1.0,), "shares": ("1%",)},
        {"radii": (2.0, 1.0)},
        {"radii": (1.0, 1.0)},
        {"radii": ()},
        {"radii": (0.0, 1.0)},
        {"shares": ("2",)},
        {"shares": ()},
        {"loss": wf.Loss("1", delta="1e-6")},
        {"slack": 2, "graded": True},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises((ParameterError, LossMismatch)):
        asked(**wrong)


def test_shares_are_kept_exactly():
    assert asked(shares=("2%", 0.5, Fraction(1, 3))).shares == ("1/50", "1/2", "1/3")
    assert Profile.from_json(asked(shares=("2%",)).to_json()) == asked(shares=("1/50",))
