"""The question as people ask it: its price, its plan, its private answer, its reading."""

import json
import math
from bisect import bisect_left
from fractions import Fraction

import numpy as np
import pytest
from worlds import outliers

from wallflower import Count, Loss, Points
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.ledger import Ledger
from wallflower.mechanisms import Additive
from wallflower.neighbours.extension import inliers
from wallflower.neighbours.noisy_count import STEP
from wallflower.noise import system_noise
from wallflower.privacy import Kind, Neighbours
from wallflower.queries.count.at_radius import Counted
from wallflower.queries.count.two_sided import TwoSidedCounted
from wallflower.query import two_digits_up
from wallflower.release import Release, release
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
    assert asked().answer(points, Scripted()).value == outliers(points.values, 1.1, 3) == 5


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
    answer = asked().answer(synthetic(), Scripted(steps)).value
    assert answer == value
    assert type(answer) is int


def test_noise_below_seven_at_seven_tenths_without_delta():
    """What the paper claimed for its Figure 3 and could not have had."""
    assert asked(loss=Loss("0.7")).variant.noise(50, 2).deviation() < 7
    draws = [asked(loss=Loss("0.7"), slack=2).variant.noise(50, 2).draw(system_noise()) * STEP for _ in range(3000)]
    assert 5.3 < math.sqrt(sum(float(z) ** 2 for z in draws) / 3000) < 7


@pytest.mark.parametrize(
    ("n", "loss", "slack"),
    [
        (100, Loss("1"), 2),
        (101, Loss("1"), 3),
        (1000, Loss("1"), 3),
        (10_000, Loss("1"), 5),
        (50_000, Loss("1"), 7),
        (10**6, Loss("1"), 10),
        (10**6, Loss("1/20"), 7),
        (10**6, Loss.zcdp("1/800"), 7),
    ],
)
def test_the_slack_is_chosen_from_public_facts(n, loss, slack):
    rule = asked(neighbours=5, loss=loss).variant.rule
    assert rule(n, None).narrow == rule(n, 3).narrow == slack


@pytest.mark.parametrize(
    ("neighbours", "dimension", "slack"), [(1, 1, 2), (3, 1, 6), (1, 2, 6), (2, 2, 10), (1, 3, 10)]
)
def test_the_slack_stops_where_more_of_it_buys_nothing(neighbours, dimension, slack):
    assert asked(neighbours=neighbours).variant.rule(10**6, dimension).narrow == slack


@pytest.mark.parametrize(("dimension", "enough"), [(1, 2), (2, 6)])
def test_with_so_much_slack_the_extension_is_the_exact_count(dimension, enough):
    """Also with duplicates, lattices and hubs, which load a record most."""
    draw = np.random.default_rng(dimension)
    for turn in range(60):
        neighbours, grain = int(draw.integers(1, 5)), (1, 2, 1000)[turn % 3]
        points = draw.integers(0, 4 * grain, (int(draw.integers(5, 60)), dimension)) / grain
        if turn % 2:
            points = np.vstack([points, np.zeros((neighbours, dimension))])
        found = inliers(points, 1.0, neighbours, slack=enough * neighbours, normalise=False)
        assert found == pytest.approx(len(points) - outliers(points, 1.0, neighbours, normalise=False), abs=1e-6)


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
    """The mean of 8,000 draws is 8 % off once in 10¹¹ runs."""
    noise = asked(slack=2).variant.noise(10**6, 2)
    draws = [abs(noise.draw(system_noise())) for _ in range(8000)]
    assert float(sum(draws) * STEP / 8000) == pytest.approx(noise.mean_error(), rel=0.08)


def law_of_count(n, noise, draw):
    """The chance of every released number: the draw from which on it is 1 or more, and the tails of the noise."""
    reach = range(-256 * n, 256 * n)
    first = reach[bisect_left(reach, 1, key=lambda steps: draw(Scripted(steps)))]
    shift = first * noise.step - Fraction(1, 2)
    above = [1.0, *(noise.upper_tail(float(value - Fraction(1, 2) + shift)) for value in range(1, n + 1)), 0.0]
    return {value: above[value] - above[value + 1] for value in range(n + 1)}


def crowd(groups=4, size=4):
    """Groups in which everybody has just enough neighbours: no outlier, and an extension that counts many."""
    return Points.from_array(np.array([[100.0 * g, 0.1 * i] for g in range(groups) for i in range(size)]), name="crowd")


LOSSES = [Loss("1/2"), Loss("3"), Loss("1", delta="1e-6"), Loss.zcdp("1/4")]
SOLD = [  # smooth noise needs a delta
    (mechanism, loss)
    for mechanism in ("extension", "global", "smooth")
    for loss in LOSSES
    if mechanism != "smooth" or loss.kind is Kind.APPROXIMATE
]


@pytest.mark.parametrize(("mechanism", "loss"), SOLD, ids=str)
@pytest.mark.parametrize(("points", "truth"), [(synthetic(), 5), (crowd(), 0)], ids=["calm", "crowded"])
def test_what_an_interval_states_holds_by_the_law_of_its_noise(mechanism, points, truth, loss):
    """The upper end always, with 97.5 %; both ends where `at_least` is stated, with 95 %. On the crowd a default count
    is far too high, and states no lower end."""
    slack = 3 if mechanism == "extension" else None  # a fixed cap, so that an answer draws once
    query = asked(mechanism=mechanism, loss=loss, slack=slack)
    readings = {value: query.reading(Counted(value), points) for value in range(points.n + 1)}
    chances = law_of_count(points.n, _drawn_noise(query, points), lambda noise: query.answer(points, noise).value)
    assert sum(chance for v, chance in chances.items() if readings[v].extras["at_most"] >= truth) >= 0.975
    stated = {v for v, said in readings.items() if said.extras["at_least"] is not None}
    assert stated == (set() if mechanism == "extension" else set(readings))
    if mechanism != "extension" or points.name != "crowd":
        assert sum(p for v, p in chances.items() if readings[v].interval[0] <= truth <= readings[v].interval[1]) >= 0.95


def _drawn_noise(query, points):
    """The law that an answer truly draws from: for `smooth` narrower than the stated one."""
    script = Scripted()
    query.answer(points, script)
    ((law, scale), *_) = script.scales
    return Additive(law, scale, query.variant.noise(points.n, points.dimension).step)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize(("points", "truth"), [(synthetic(), 5), (crowd(), 0)], ids=["calm", "crowded"])
def test_a_two_sided_interval_covers_whatever_the_data(points, truth, loss):
    query = asked(interval="two-sided", loss=loss, slack=3)  # a fixed cap, so that an answer draws twice
    count = law_of_count(points.n, query.variant.noise(points.n, 2), lambda noise: query.answer(points, noise).value)
    floor = law_of_count(
        points.n, query.variant.floor_noise(points.n, 2), lambda noise: query.answer(points, noise).floor
    )
    covered = 0.0
    for value, chance in count.items():
        for below, other in floor.items():
            low, high = query.reading(TwoSidedCounted(value, floor=below), points).interval
            assert low <= value <= high
            covered += chance * other * (low <= truth <= high)
    assert covered >= 0.95


def test_a_two_sided_answer_draws_twice_at_half_the_loss_each():
    noise, query = Scripted(), asked(interval="two-sided", slack=3, loss=Loss("1", delta="1e-30"))
    answer = query.answer(synthetic(), noise)
    assert query.variant.loss_per_number == Loss("1/2", delta="5e-31")
    assert query.cost() == Loss("1", delta="1e-30")
    assert [scale for _, scale in noise.scales] == [2 * (4 * 128 + 1), 2 * (3 * 128 + 1)]
    assert (answer.value, answer.floor) == (5, 5)
    assert asked(interval="two-sided", loss=Loss.zcdp("1/3")).variant.loss_per_number == Loss.zcdp("1/6")


def test_a_two_sided_release_is_a_whole_number_with_its_interval_and_comes_back_from_json(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("synthetic-1", Loss("3"), by="owner")
        made = release(asked(interval="two-sided", loss=Loss("3")), synthetic(), ledger, analyst="ana")
    again = Release.from_dict(json.loads(made.to_json()))
    assert again == made
    assert type(again.value) is int
    assert again.interval == made.interval == (again.extras["at_least"], again.extras["at_most"])
    assert again.extras["floor"] in range(51)
    assert made.text.endswith(f"(95 % confidence); estimate {made.value}.")


def test_the_plan_of_a_two_sided_interval_says_how_far_either_end_reaches():
    query = asked(interval="two-sided", loss=Loss("1"))
    plan = query.plan(n=10_000, dimension=7)
    below, above = (law(10_000, 7).half_width() for law in (query.variant.floor_noise, query.variant.noise))
    assert plan.verdict == f"useful: -{below:.3g} and +{above:.3g} (95 %, both ends proved) among 10,000 records"
    assert above > 2 * asked().variant.noise(10_000, 7).half_width() * 0.9
    assert dict(plan.curve)[1.0] == above


def test_scenario_one_is_read_off_the_released_number_and_states_what_is_proved():
    points, query = synthetic(), asked(mechanism="global")
    low, high = (query.reading(Counted(value), points).extras["any"] for value in (0, 50))
    assert low["says"] is False
    assert high["says"] is True
    assert low["false_alarm"] <= 0.05
    assert low["p_value"] == 1 > 0.5 > high["p_value"]
    noise = query.variant.noise(50, 2)
    assert noise.upper_tail(low["threshold"] - 0.5) == low["false_alarm"]
    assert 1 - noise.upper_tail(low["threshold"] - 0.5 - low["found_from"]) <= 0.05
    raised = asked().reading(Counted(50), points).extras["any"]
    assert raised["says"] is True
    assert raised["false_alarm"] is raised["p_value"] is None
    two_sided = asked(interval="two-sided").reading(TwoSidedCounted(50, floor=0), points).extras["any"]
    assert (two_sided["says"], two_sided["p_value"], two_sided["found_from"]) == (False, 1.0, None)


@pytest.mark.parametrize(("epsilon", "is_mute"), [("0.05", True), ("9", False)])
@pytest.mark.parametrize("given", [{}, {"mechanism": "global"}, {"interval": "two-sided"}])
def test_a_no_that_could_not_be_a_yes_is_said_to_mean_nothing(epsilon, is_mute, given):
    highest = TwoSidedCounted(50, floor=50) if "interval" in given else Counted(50)
    reading = asked(loss=Loss(epsilon), **given).reading(highest, synthetic())
    assert reading.extras["any"]["says"] is not is_mute
    assert any("has no power" in note for note in reading.notes) is is_mute


def test_the_words_state_a_lower_end_only_where_it_is_proved():
    points = synthetic()
    assert (
        asked().reading(Counted(5), points).text
        == "At most 14 of 50 records are outliers (97.5 % confidence); estimate 5."
    )
    assert (
        asked(mechanism="global")
        .reading(Counted(5), points)
        .text.startswith("0 to 50 of 50 records are outliers (95 %")
    )
    assert (
        asked(interval="two-sided")
        .reading(TwoSidedCounted(5, floor=4), points)
        .text.startswith("0 to 23 of 50 records are outliers (95 %")
    )


def test_numbers_of_numpy_are_taken_as_what_they_are():
    query = asked(neighbours=np.int64(3), radius=np.float64(1.5), slack=np.int16(2))
    assert query == asked(radius=1.5, slack=2)
    assert json.loads(json.dumps(query.to_json()))["neighbours"] == 3


def test_noise_beyond_what_can_be_drawn_is_refused_before_anybody_pays(tmp_path):
    tiny = Loss("1e-15", delta="1e-6")
    for mechanism in ("extension", "global", "smooth"):
        with Ledger.open(tmp_path / f"{mechanism}.db") as ledger:
            ledger.grant("synthetic-1", Loss("1", delta="1/2"), by="owner")
            with pytest.raises(ParameterError, match="epsilon"):
                release(asked(mechanism=mechanism, loss=tiny), synthetic(), ledger, analyst="ana")
            assert not ledger.history("synthetic-1", event="charge")
    with pytest.raises(ParameterError, match="delta"):
        asked(mechanism="smooth", loss=Loss("1", delta=Fraction(1, 10**120)))


def test_a_mechanism_that_cannot_be_is_left_out_of_the_plan_of_another():
    plan = asked(loss=Loss("1e-9", delta=Fraction(1, 10**120))).plan(n=1000, dimension=2)
    assert [option.mechanism for option in plan.options] == ["extension", "global"]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"neighbours": 0}, ParameterError),
        ({"radius": -1.0}, ParameterError),
        ({"mechanism": "magic"}, ParameterError),
        ({"slack": 1}, ParameterError),
        ({"slack": 2.5}, ParameterError),
        ({"slack": 3.0}, ParameterError),
        ({"slack": True}, ParameterError),
        ({"interval": "wide"}, ParameterError),
        ({"interval": "two-sided", "mechanism": "global"}, ParameterError),
        ({"neighbours": 2.0}, ParameterError),
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
    assert asked(columns=("flat",)).answer(asked(columns=("flat",)).view(points), Scripted()).value == 0
    assert asked(columns=("far",)).answer(asked(columns=("far",)).view(points), Scripted()).value == 20


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
