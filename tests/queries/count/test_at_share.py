"""A count at a radius that is drawn with it."""

from fractions import Fraction

import numpy as np
import pytest

import wallflower as wf
from wallflower import Count, Loss, Points
from wallflower.errors import LossMismatch, ParameterError
from wallflower.neighbours.radii import DEFAULT_RADII, middle_radius
from wallflower.noise import system_noise
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.near import MIN_TARGET_RATIO
from wallflower.synthetic import mixture


class Watched:
    """Real noise that notes the scales it is asked for."""

    def __init__(self):
        self.real, self.scales = system_noise(), []

    def laplace(self, scale):
        self.scales.append(scale)
        return self.real.laplace(scale)

    def __getattr__(self, name):
        return getattr(self.real, name)


def asked(**changes):
    return Count(**{"neighbours": 5, "share": "2%", "loss": Loss("2"), **changes})


@pytest.fixture(scope="module")
def points():
    return Points.from_array(mixture(3000, 3, seed=5), name="people")


def test_a_share_is_read_as_it_is_written():
    assert asked().share == asked(share="1/50").share == asked(share=0.02).share == Fraction(1, 50)
    assert Count.from_json(asked().to_json()) == asked()


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"share": None}, ParameterError, "exactly one of them"),
        ({"radius": 1.0}, ParameterError, "exactly one of them"),
        ({"share": "0%"}, ParameterError, "between 0 and 1"),
        ({"share": "100%"}, ParameterError, "between 0 and 1"),
        ({"share": "many"}, ParameterError, "share between 0 and 1|no share"),
        ({"by": ("ward",)}, ParameterError, "a count by group does not take it"),
        ({"mechanism": "global"}, ParameterError, "does not take it"),
        ({"loss": Loss.zcdp("1")}, LossMismatch, "state epsilon"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, error, words):
    with pytest.raises(error, match=words):
        asked(**changes)


def test_the_count_has_half_of_the_loss_and_all_of_delta(points):
    noise = Watched()
    asked(slack=3).answer(points, noise)
    assert noise.scales == [4 * 128 + 1]
    assert asked(loss=Loss("1", delta="1e-6")).variant.at_radius(1.0).loss == Loss("1/2", delta="1e-6")


def test_radius_and_count_are_told_together(points, tmp_path):
    made = wf.open(points, ledger=tmp_path / "ledger.db").count(neighbours=5, share="5%", epsilon="1")
    radius = made.extras["radius"]
    assert radius in {middle_radius(DEFAULT_RADII, place) for place in range(len(DEFAULT_RADII))}
    assert str(made.booked) == "ε = 1"


def test_the_drawn_radius_gives_about_the_wanted_share(points):
    """At ε = 40 an error of 20 records or more has a chance below 1e-12."""
    value = asked(share="5%", loss=Loss("40"), slack=5).answer(points, system_noise())
    before = count_outliers(points.values, value.radius * 2 ** (-1 / 32), 5)
    after = count_outliers(points.values, value.radius * 2 ** (1 / 32), 5)
    assert after - 20 <= 150 <= before + 20


def test_a_two_sided_interval_knows_its_floor(points):
    query = asked(interval="two-sided", loss=Loss("8"))
    value = query.answer(points, system_noise())
    read = query.reading(value, points)
    assert read.extras["at_least"] is not None
    assert read.extras["floor"] == value.count.floor


@pytest.mark.parametrize("n", [1000, 10_000])
def test_the_plan_says_when_a_share_is_too_small(n):
    plan = asked().plan(n=n, dimension=3)
    slack = asked().variant.at_radius(1.0).rule(n, 3).narrow
    assert plan.useful == (n * Fraction(1, 50) >= MIN_TARGET_RATIO * (slack + 1))
    assert ("too few" in plan.verdict) == (not plan.useful)
    least = asked(loss=Loss(plan.smallest_useful_epsilon))
    assert least.plan(n=n, dimension=3).useful


def test_settings_of_numpy_are_taken_for_what_they_are():
    assert Count(neighbours=np.int64(5), radius=np.float64(1.5), loss=Loss("1")).radius == 1.5
