"""The degree cap of a count: chosen by public facts, or by these and a noisy test of crowding."""

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.spatial import cKDTree

import wallflower as wf
from wallflower import Count, Loss, Points, Profile
from wallflower.audit import ScriptedNoise
from wallflower.data import Schema
from wallflower.neighbours import region
from wallflower.neighbours.noisy_count import (
    STEP,
    TEST_OFFERS,
    calm_share,
    cap_rule,
    crowded_neighbours,
    crowding_sensitivity,
    crowding_steps,
    exact_steps,
    public_cap,
    size_cap,
    split_for_test,
)
from wallflower.neighbours.radii import Tally
from wallflower.neighbours.transport import solve_transport
from wallflower.noise import SystemNoise
from wallflower.queries.count.at_radius import describe_cap
from wallflower.queries.count.audit.choices import BROKEN
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.two_sided import TwoSidedCounted

SETTINGS = [(n, k, e) for n in (50, 367, 1000, 6000, 10**5) for k in (1, 3, 5, 10, 20, 50) for e in ("0.1", "1", "3")]


class Silence(ScriptedNoise):
    """No noise, for the cube too."""

    def below(self, bound):
        return 0

    def flip(self, exponent):
        return False


def lattice(side=40):
    return np.stack(np.meshgrid(np.arange(float(side)), np.arange(float(side))), -1).reshape(-1, 2)


def uniform(n):
    return np.random.default_rng(0).uniform(0, 1, (n, 2))


def on_lattice(**changes):
    settings = {"neighbours": 8, "radius": math.sqrt(2) * (1 + 1e-9), "normalise": False, "loss": Loss("3")}
    return Count(**settings | changes)


@pytest.fixture(scope="module")
def crowded():
    return Points.from_array(lattice(), name="sensors")


@pytest.mark.parametrize(("n", "k", "epsilon"), SETTINGS)
def test_a_calm_table_pays_at_most_half_as_much_again(n, k, epsilon):
    rule, usual = cap_rule(n, k, Loss(epsilon)), size_cap(n, k, Loss(epsilon))
    before = Fraction(usual + 1) / Fraction(epsilon)
    assert (rule.narrow + 1) / rule.numbers.epsilon <= Fraction(3, 2) * before
    assert usual <= rule.narrow <= rule.wide == (rule.wide if rule.test is None else k)
    assert rule.cap_at(0.0) == rule.narrow
    assert usual <= public_cap(n, k, Loss(epsilon)) <= max(usual, k)


@pytest.mark.parametrize("n", [10**4, 10**5])
@pytest.mark.parametrize("loss", [Loss("1"), Loss("1", delta="1e-6"), Loss.zcdp("1/2")])
def test_the_test_and_the_count_share_the_loss(loss, n):
    rule = cap_rule(n, 20, loss)
    spent, left = split_for_test(loss, rule.test_share)
    assert spent.amount + left.amount == loss.amount
    assert (spent.delta, left.delta) == (0, loss.delta)
    assert rule.numbers == left
    assert rule.test is not None
    if loss.kind is spent.kind and loss.kind is not Loss.zcdp("1").kind:
        assert crowding_sensitivity(20) <= rule.test.scale * spent.epsilon < crowding_sensitivity(20) * (1 + 1e-9)


def test_the_cap_grows_with_the_released_crowding_alone():
    rule = cap_rule(6000, 20, Loss("1"))
    caps = [rule.cap_at(share / 100) for share in range(101)]
    assert caps == sorted(caps)
    assert (caps[0], caps[-1]) == (rule.narrow, 20)
    rich = rule.choose(round(6000 * 0.36 / STEP), ScriptedNoise())
    assert (rich.cap, rich.crowding) == (rule.cap_at(0.36), 0.36)


def test_crowding_is_the_number_of_records_with_barely_enough_neighbours():
    values = np.array([0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0, 9.0, 20.0])[:, None]
    assert crowded_neighbours(2) == 3
    assert crowding_steps([values], 1.0, 2, normalise=False) == 3 / STEP
    assert crowding_steps([values, values], 1.0, 2, normalise=False) == 6 / STEP


def test_a_lattice_is_counted_with_a_cap_that_never_binds(crowded):
    query, truth = on_lattice(), count_outliers(crowded.values, math.sqrt(2) * (1 + 1e-9), 8, normalise=False)
    value = query.answer(crowded, ScriptedNoise())
    assert (value.value, value.cap.cap, truth) == (156, 8, 156)
    assert on_lattice(slack=size_cap(1600, 8, Loss("3"))).answer(crowded, ScriptedNoise()).value > 2 * truth
    reading = query.reading(value, crowded)
    assert reading.extras["slack"] == 8
    assert reading.extras["crowding"] == value.cap.crowding > 0.9
    assert "degree cap is 8" in reading.notes[-1]


def test_each_draw_of_a_tested_count_has_its_part_of_the_loss(crowded):
    script = ScriptedNoise()
    value = on_lattice(interval="two-sided").answer(crowded, script)
    assert isinstance(value, TwoSidedCounted)
    spent, left = split_for_test(Loss("3"), value.cap.test_share)
    half, cap = left.epsilon / 2, value.cap.cap
    expected = [crowding_sensitivity(8) / spent.epsilon, (128 * (cap + 1) + 1) / half, (128 * cap + 1) / half]
    assert [float(scale) for _, scale in script.asked] == pytest.approx([float(scale) for scale in expected])


def test_the_interval_of_a_release_is_that_of_its_cap(crowded):
    query = on_lattice()
    value = query.answer(crowded, ScriptedNoise())
    low, high = query.reading(value, crowded).interval
    wide = (
        on_lattice(slack=8, loss=split_for_test(Loss("3"), value.cap.test_share)[1]).variant.noise(1600, 2).half_width()
    )
    assert high - value.value == pytest.approx(wide, abs=1)
    assert low < value.value


def test_a_cap_that_is_asked_for_is_taken_without_a_test(crowded):
    script = ScriptedNoise()
    value = on_lattice(slack=3).answer(crowded, script)
    assert value.cap is None
    assert len(script.asked) == 1
    assert on_lattice(slack=3).reading(value, crowded).extras["slack_reason"] == "asked for"


def test_groups_share_one_test(crowded):
    schema = Schema.of(["x", "y", "half"], categories={"half": ["left", "right"]})
    x, y = crowded.values.T
    cells = {"x": x, "y": y, "half": np.where(x < 20, "left", "right")}
    table = wf.load(pa.table(cells), schema=schema, name="halves")
    query = on_lattice(by=("half",), loss=Loss("9"))
    view, script = query.view(table), ScriptedNoise()
    groups = query.answer(view, script)
    assert groups.cap.cap == 8
    assert [row["outliers"] for row in groups.value] == [116, 116]  # the rims of two halves
    spent, left = split_for_test(Loss("9"), groups.cap.test_share)
    assert float(script.asked[0][1]) == pytest.approx(float(crowding_sensitivity(8) / spent.epsilon))
    assert float(script.asked[1][1]) == pytest.approx(float(2 * (128 * 8 + 1) / (Fraction(9, 10) * left.epsilon)))
    reading = query.reading(groups, view)
    assert reading.extras["slack"] == 8
    bars = query.as_released(reading.extras, view).picture(groups.value, view)
    assert bars.intervals == tuple((float(low), float(high)) for low, high in reading.extras["intervals"])


def test_a_profile_tests_the_most_crowded_radius(crowded):
    query = Profile(neighbours=8, radii=(0.5, 1.5, 9.0), loss=Loss("3"), normalise=False)
    value = query.answer(crowded, Silence())
    assert (value["slack"], value["outliers"]) == (8, [1600, 156, 0])
    assert query.reading(value, crowded).extras["reach"] > query.reach(1600, 2)


def test_a_curve_is_not_solved_where_it_is_cut(monkeypatch, crowded):
    tally = Tally(neighbours=8, slack=3, normalise=False)
    solved = tally.steps(crowded.values, 1.2)
    assert min(tally.steps(crowded.values, 1.2, 100), 100) == min(solved, 100)
    monkeypatch.setattr("wallflower.neighbours.extension.certify", lambda *_: pytest.fail("solved"))
    assert tally.steps(crowded.values, 1.2, 100) >= 100


def test_the_plan_shows_the_expected_error_of_calm_and_of_crowded_tables():
    plan = Count(neighbours=20, radius=1.0, loss=Loss("1")).plan(n=6000, dimension=2)
    figures = plan.options[0].figures
    assert figures["error"] < figures["total"] < 1.25 * figures["error"]  # bias, and a cap that grows by chance
    assert 1.5 * figures["error"] < figures["crowded"] < 60
    assert "from 6 on a calm table to 20 on a crowded one" in plan.notes[0]
    small = Count(neighbours=20, radius=1.0, loss=Loss("0.1")).plan(n=6000, dimension=2).options[0].figures
    assert small["crowded"] > small["error"] + 100  # no test can be afforded, and the cap is small


def test_a_plan_states_the_noise_of_both_outcomes(crowded):
    query = Count(neighbours=20, radius=1.0, loss=Loss("1"))
    rule = query.variant.rule(6000, 2)
    calm, wide = (query.variant.capped_noise(6000, 2, chosen).half_width() for chosen in (None, rule.likely_cap()))
    assert f"±{calm:.3g} (95 %; on a crowded table ±{wide:.3g})" in query.plan(n=6000, dimension=2).reason
    fixed = replace(query, slack=6).plan(n=6000, dimension=2)
    assert "crowded" not in fixed.reason
    curve = Profile(neighbours=20, radii=(0.5, 1.0), loss=Loss("1"))
    assert "on a crowded table" in curve.plan(n=6000, dimension=2).reason
    groups = Count(neighbours=20, radius=1.0, by=("half",), loss=Loss("1"))
    assert "on a crowded table" in groups.plan(n=6000, dimension=2).reason


def test_a_weak_test_gets_two_sevenths_of_the_loss_and_no_wider_cap():
    cheap, strong, weak = (cap_rule(n, k, Loss("1")) for n, k in ((10**5, 20), (6000, 20), (6000, 50)))
    assert [rule.test_share for rule in (cheap, strong, weak)] == [offer.share for offer in TEST_OFFERS]
    assert weak.narrow == size_cap(6000, 50, Loss("1"))
    assert (weak.test_share * 1 + weak.numbers.epsilon, weak.numbers.epsilon) == (1, Fraction(5, 7))
    spent = split_for_test(Loss("1"), weak.test_share)[0]
    assert weak.test is not None
    assert crowding_sensitivity(50) <= weak.test.scale * spent.epsilon < crowding_sensitivity(50) * (1 + 1e-9)
    assert "two sevenths of the loss" in describe_cap(weak.choose(0, ScriptedNoise()), 50)[0]


@pytest.mark.parametrize(("n", "k", "epsilon"), SETTINGS)
def test_chances_of_caps_follow_from_the_law_of_the_test(n, k, epsilon):
    rule = cap_rule(n, k, Loss(epsilon))
    for crowding in (0.0, 0.05, 0.36, 1.0):
        chances = rule.cap_chances(crowding)
        assert sum(chances.values()) == pytest.approx(1.0)
        assert min(chances.values()) >= -1e-12
    if rule.test is None:
        return
    assert rule.cap_at(1.0) == rule.wide or rule.calm + rule.growth[-1] > 1.0
    grown = sum(chance * (cap - rule.narrow) for cap, chance in rule.cap_chances(calm_share(n, k)).items())
    (offer,) = (offer for offer in TEST_OFFERS if offer.share == rule.test_share)
    assert grown <= 1.05 * offer.false_growth * (rule.narrow + 1)  # on a calm table, by chance


def test_the_released_crowding_alone_chooses_the_cap_as_often_as_its_chances_say():
    rule, draws = cap_rule(6000, 20, Loss("1")), 4000
    steps, noise = round(6000 * 0.15 / STEP), SystemNoise()
    caps = Counter(rule.choose(steps, noise).cap for _ in range(draws))
    for cap, chance in rule.cap_chances(0.15).items():
        # Hoeffding: further off in either direction with a chance below 2 exp(-2 · 4000 · 0.05²) = 4.1e-9
        assert abs(caps[cap] / draws - chance) < 0.05


HARD_TABLES = {
    "uniform, 30 %": (lambda: uniform(6000), 20, 0.3),
    "uniform, 86 %": (lambda: uniform(6000), 20, 0.86),
    "uniform, 50 neighbours": (lambda: uniform(6000), 50, 0.5),
    "lattice": (lambda: lattice(80) / 80, 12, 0.05),
}


@pytest.mark.parametrize("name", HARD_TABLES)
def test_the_rule_leaves_no_large_programme_on_crowded_tables(name, monkeypatch):
    """By the sizes of the programmes, not by the clock: the narrow cap would leave thousands of records to contest."""
    make, k, share = HARD_TABLES[name]
    values, sizes = make(), []
    radius = float(np.quantile(cKDTree(values).query(values, k + 1)[0][:, -1], 1 - share)) * (1 + 1e-9)
    monkeypatch.setattr(
        region, "solve_transport", lambda contest, gap: sizes.append(len(contest.free)) or solve_transport(contest, gap)
    )
    rule = cap_rule(len(values), k, Loss("1"))
    crowding = crowding_steps([values], radius, k, normalise=False)
    cap = rule.choose(crowding, ScriptedNoise()).cap
    exact_steps(values, radius, k, cap, normalise=False)
    assert max(sizes, default=0) <= 400


@pytest.mark.slow
def test_what_is_sound_holds_and_what_is_broken_is_caught(quick_findings):
    found = {finding.name: finding for finding in quick_findings("count")}
    sound = ("crowding of tables without contests", "crowding: what its noise hides", "degree cap: test and count")
    assert not any(found[name].caught for name in sound)
    mistakes = ("degree cap, the count at the whole loss", "degree cap, the test at the whole loss")
    for name in (*BROKEN, *mistakes, "degree cap, a tenth short"):
        assert found[f"broken: {name}"].caught
