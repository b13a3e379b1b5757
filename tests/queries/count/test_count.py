"""The question as people ask it: its price, its plan, its private answer, its reading."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from worlds import outliers

from wallflower import Count, Loss, Points
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.neighbours.noisy_count import STEP
from wallflower.noise import system_noise
from wallflower.privacy import Kind, Neighbours
from wallflower.query import two_digits_up
from wallflower.units import Claim


class Scripted:
    """Noise that is known: every draw is the given number of steps; remembers the scales asked for."""

    def __init__(self, steps=0):
        self.steps, self.scales = steps, []

    def laplace(self, scale):
        self.scales.append(("laplace", scale))
        return self.steps

    def gaussian(self, scale):
        self.scales.append(("gaussian", scale))
        return self.steps


def synthetic(seed=0):
    draw = np.random.default_rng(seed)
    points = np.vstack([draw.standard_normal((45, 2)), 20 + 10 * draw.standard_normal((5, 2))])
    return Points.from_array(points, name="synthetic-1")


def asked(**changes):
    return Count(**{"neighbours": 3, "radius": 1.1, "loss": Loss("1"), **changes})


def test_without_noise_the_extension_answers_the_exact_count_on_calm_data():
    points = synthetic()
    assert asked().answer(points, Scripted()) == outliers(points.values, 1.1, 3) == 5


@pytest.mark.parametrize(
    ("changes", "law", "scale"),
    [
        ({"slack": 2}, "laplace", 3 * 128 + 1),
        ({"slack": 3, "loss": Loss("0.5")}, "laplace", 2 * (4 * 128 + 1)),
        ({"slack": 2, "loss": Loss.zcdp("0.5")}, "gaussian", 3 * 128 + 1),
        ({"mechanism": "global"}, "laplace", 6 * 3 + 1),
    ],
)
def test_the_noise_has_the_scale_the_proof_asks_for(changes, law, scale):
    noise = Scripted()
    asked(**changes).answer(synthetic(), noise)
    ((used, steps),) = noise.scales
    assert used == law
    assert scale <= steps <= scale * (1 + 1e-12)


def test_smooth_noise_follows_the_smooth_bound_and_never_the_global_one_on_calm_data():
    noise = Scripted()
    asked(mechanism="smooth", loss=Loss("1", delta="1e-6")).answer(synthetic(), noise)
    ((law, scale),) = noise.scales
    assert law == "laplace"
    assert 2 * 128 <= scale < 2 * 128 * 16


@pytest.mark.parametrize(("steps", "value"), [(10**9, 50), (-(10**9), 0), (64, 6), (63, 5), (-64, 5), (-65, 4)])
def test_the_answer_is_a_whole_number_between_nobody_and_everybody(steps, value):
    answer = asked().answer(synthetic(), Scripted(steps))
    assert answer == value
    assert isinstance(answer, int)


def test_noise_below_seven_at_seven_tenths_without_delta():
    """What the paper claimed for its Figure 3 and could not have had."""
    assert asked(loss=Loss("0.7")).noise(50, 2).deviation() < 7
    draws = [asked(loss=Loss("0.7"), slack=2).noise(50, 2).draw(system_noise()) * STEP for _ in range(3000)]
    assert 5.3 < math.sqrt(sum(float(z) ** 2 for z in draws) / 3000) < 7


@pytest.mark.parametrize(("n", "loss", "slack"), [(50, "1", 2), (367, "1", 3), (100_000, "1", 3), (10**6, "1", 10)])
def test_the_slack_is_chosen_from_public_facts(n, loss, slack):
    assert asked(neighbours=5, loss=Loss(loss)).slack_for(n) == slack


def test_the_plan_needs_no_data_and_says_when_it_is_not_useful():
    plan = asked().plan(n=50, dimension=2)
    assert not plan.useful
    assert plan.verdict.startswith("not useful")
    assert asked(loss=Loss(plan.smallest_useful_epsilon)).plan(n=50, dimension=2).useful
    assert [option.mechanism for option in plan.options] == ["extension", "global"]
    assert json.loads(json.dumps(plan.to_json()))["chosen"] == "extension"
    assert asked(loss=Loss("1", delta="1e-6")).plan(n=50, dimension=2).options[-1].mechanism == "smooth"


@pytest.mark.parametrize("mechanism", ["extension", "global", "smooth"])
def test_the_smallest_useful_loss_is_just_useful(mechanism):
    query = asked(mechanism=mechanism, loss=Loss("0.01", delta="1e-6"))
    smallest = query.plan(n=500, dimension=2).smallest_useful_epsilon
    again = asked(mechanism=mechanism, loss=Loss(smallest, delta="1e-6"))
    assert again.plan(n=500, dimension=2).useful


def test_a_plan_that_nothing_can_save_says_so():
    hopeless = asked(slack=10**6).plan(n=10, dimension=2)
    assert hopeless.smallest_useful_epsilon is None
    assert "no reasonable loss" in hopeless.verdict


def test_the_expected_error_of_the_plan_is_what_draws_show():
    noise = asked(slack=2).noise(10**6, 2)
    draws = [abs(noise.draw(system_noise())) for _ in range(4000)]
    assert float(sum(draws) * STEP / 4000) == pytest.approx(noise.mean_error(), rel=0.08)


def test_the_interval_covers_the_count():
    points, query = synthetic(), asked()
    hits = 0
    for _ in range(300):
        low, high = query.reading(query.answer(points, system_noise()), points).interval
        hits += low <= 5 <= high
    assert hits >= 300 * 0.95 - 20


def test_scenario_one_is_read_off_the_released_number():
    points, query = synthetic(), asked()
    low, high = (query.reading(value, points).extras["any"] for value in (0, 50))
    assert low["says"] is False
    assert high["says"] is True
    assert low["false_alarm"] <= 0.05
    assert low["p_value"] > 0.5 > high["p_value"]
    noise = query.noise(50, 2)
    assert noise.upper_tail(low["threshold"] - 0.5) == low["false_alarm"]
    assert 1 - noise.upper_tail(low["threshold"] - 0.5 - low["found_from"]) <= 0.05


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"neighbours": 0}, ParameterError),
        ({"radius": -1.0}, ParameterError),
        ({"mechanism": "magic"}, ParameterError),
        ({"slack": 1}, ParameterError),
        ({"loss": "1"}, ParameterError),
        ({"loss": Loss(0)}, ParameterError),
        ({"mechanism": "smooth"}, ParameterError),
        ({"loss": Loss("1", neighbours=Neighbours.PERSON)}, LossMismatch),
        ({"loss": Loss("1", kind=Kind.METRIC)}, LossMismatch),
    ],
)
def test_bad_parameters_are_refused_before_any_data(changes, error):
    with pytest.raises(error):
        asked(**changes)


def test_too_few_records_and_unknown_columns_are_refused_by_public_facts():
    with pytest.raises(DataError, match="every record would be an outlier"):
        asked(neighbours=50).view(synthetic())
    with pytest.raises(DataError):
        asked(columns=("nowhere",)).view(synthetic())


def test_columns_choose_the_subspace():
    points = Points.from_array(np.column_stack([np.zeros(20), np.arange(20) * 100.0]), columns=("flat", "far"))
    assert asked(columns=("flat",)).answer(asked(columns=("flat",)).view(points), Scripted()) == 0
    assert asked(columns=("far",)).answer(asked(columns=("far",)).view(points), Scripted()) == 20


@pytest.mark.parametrize("loss", [Loss("0.5"), Loss("0.5", delta="1e-6"), Loss.zcdp("0.1")])
def test_a_count_claims_its_loss_for_one_record_and_nothing_besides(loss):
    points = Points.from_array(np.zeros((20, 2)), columns=("flat", "far"))
    assert asked(loss=loss).claim(points) == Claim(loss=loss, columns=2, steps=20)
    assert asked(loss=loss, columns=("far",)).claim(points.subspace(["far"])) == Claim(loss=loss, columns=1, steps=20)


def test_an_unknown_number_of_records_is_no_number():
    class Unknown:
        n, dimension, columns = 0, 1, ("far",)

    assert asked().claim(Unknown()).steps is None


@pytest.mark.parametrize(("amount", "text"), [(0.08173, "0.082"), (3.0, "3"), (0.0101, "0.011"), (1234.5, "1300")])
def test_two_digits_up(amount, text):
    assert two_digits_up(amount) == text
    assert Fraction(text) >= Fraction(amount) * (1 - Fraction(1, 10**8))
