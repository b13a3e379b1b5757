"""The instruments find what is broken, and do not cry wolf."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from above import Above
from wallflower.audit import Finding, World, audit, audit_bound, least, most, replay_sampler
from wallflower.audit.laws import audit_law, audit_parts, law_of
from wallflower.data import Points
from wallflower.errors import LossMismatch, ParameterError
from wallflower.evidence import audit_order, audits
from wallflower.mechanisms import calibrate
from wallflower.noise import system_noise, words
from wallflower.privacy import Kind, Loss
from wallflower.queries.count import Count
from wallflower.queries.count.audit.at_radius import (
    BETA,
    CIRCLE,
    PATH,
    PLUS,
    _smooth,
    exact_cover,
    ladder,
    smooth_maximum,
)
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.sensitivity import local_bounds, smooth_bound
from wallflower.queries.watch.detectors.sparse import draw_geometric
from wallflower.query import Query

ONE = Fraction(1)


def laplace(value: int, scale: Fraction):
    return lambda size: value + np.array(system_noise().laplaces(scale, size))


def mixed(*outputs):
    """Each output equally often, in turn."""
    return lambda size: np.resize(outputs, size)


def halves(first, second):
    """One output in the first half of the trials, another in the second."""
    return lambda size: np.repeat([first, second], size // 2)


# Sampling


def test_half_the_noise_is_caught_and_all_of_it_is_not() -> None:
    for scale, broken in ((Fraction(5), True), (Fraction(10), False)):
        found = audit(laplace(0, scale), laplace(10, scale), claimed=Loss("1"), trials=60_000, expected=broken)
        assert found.ok, found
        assert found.lower == pytest.approx(10 / float(scale), rel=0.25)


@pytest.mark.slow
def test_true_noise_is_not_caught_in_twenty_runs() -> None:
    draws = [laplace(value, Fraction(10)) for value in (0, 10)]
    found = [audit(*draws, claimed=Loss("1"), trials=5_000) for _ in range(20)]
    assert not any(finding.caught for finding in found)
    assert np.median([finding.lower for finding in found]) > 0.5


@pytest.mark.slow
def test_noise_short_by_a_tenth_is_caught() -> None:
    found = audit(laplace(0, Fraction(9)), laplace(10, Fraction(9)), claimed=Loss("1"), trials=400_000)
    assert found.caught


@pytest.mark.parametrize("stretch", [Fraction(1), Fraction(1, 2)])
def test_gaussian_noise_is_measured_in_rho(stretch: Fraction) -> None:
    claimed = Loss.zcdp("1/2")
    scale = calibrate(10, claimed, step=ONE).scale * stretch
    draws = [lambda size, at=at: at + np.array(system_noise().gaussians(scale, size)) for at in (0, 10)]
    found = audit(*draws, claimed=claimed, trials=40_000)
    assert found.caught is (stretch < 1)
    assert 0.3 < found.lower * float(stretch) ** 2 / 0.5 <= 1


@pytest.mark.parametrize(("delta", "caught"), [("0.01", True), ("0.2", False)])
def test_delta_is_taken_off(delta: str, caught: bool) -> None:
    def leaky(size: int) -> np.ndarray:
        outputs = np.zeros(size)
        outputs[::10] = 1
        return outputs

    found = audit(leaky, lambda size: np.zeros(size), claimed=Loss("1", delta=delta), trials=10_000)
    assert found.caught is caught


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("outputs", [(0.0, 1.0), (1.0, 0.0), ("none", "some")])
def test_any_side_and_any_output_will_do(outputs: tuple, turned: bool) -> None:
    draws = [mixed(outputs[0]), mixed(outputs[0], outputs[1])]
    assert audit(*(draws[::-1] if turned else draws), claimed=Loss("1"), trials=2_000).caught


def test_a_single_output_is_found_between_others() -> None:
    found = audit(mixed(-1, 1), mixed(-1, 0, 1, 0), claimed=Loss("2"), trials=8_000)
    assert found.caught
    assert "outputs of 0" in found.text


def test_the_search_half_is_never_reused() -> None:
    """A difference in the first half alone chooses the event and proves nothing."""
    found = audit(halves(0, 1), halves(1, 1), claimed=Loss("1"), trials=10_000)
    assert (found.lower, found.caught) == (0, False)


@pytest.mark.parametrize("hits", [0, 1, 17, 500, 999, 1000])
def test_bounds_are_those_of_clopper_and_pearson(hits: int) -> None:
    known = binomtest(hits, 1000).proportion_ci(confidence_level=0.99, method="exact")
    assert float(least(hits, 1000, 0.005)) == pytest.approx(known.low, abs=1e-12)
    assert float(most(hits, 1000, 0.005)) == pytest.approx(known.high, abs=1e-12)


def test_a_claim_without_a_test_is_refused() -> None:
    with pytest.raises(LossMismatch, match="metric-local"):
        audit(mixed(0), mixed(0), claimed=Loss("1", kind=Kind.METRIC))
    with pytest.raises(ParameterError, match="trials"):
        audit(mixed(0), mixed(0), claimed=Loss("1"), trials=1)


# Replaying an answer


def test_replayed_outputs_are_the_answers_outputs() -> None:
    noise = calibrate(3, Loss("1"), step=ONE)
    sample = replay_sampler(lambda source: min(max(4 + noise.draw(source), 0), 9))(20_000)
    assert set(sample.tolist()) == set(range(10))
    assert np.mean(sample <= 4) == pytest.approx(1 - np.exp(-1 / 3) / (1 + np.exp(-1 / 3)), abs=0.02)


@pytest.mark.parametrize(
    "answer",
    [
        lambda noise: 0,
        lambda noise: noise.laplace(ONE) + noise.laplace(ONE),
        lambda noise: noise.below(3),
        lambda noise: noise.laplace(ONE) ** 2,
    ],
)
def test_only_an_answer_that_rises_with_one_draw_is_replayed(answer) -> None:
    with pytest.raises(ParameterError, match="must draw one number"):
        replay_sampler(answer)(1_000)


# Counting


def spread(values: np.ndarray) -> float:
    return float(values.max() - values.min())


def test_a_world_holds_every_table_and_every_neighbour() -> None:
    world = World(((0.0,), (1.0,), (3.0,)), 2)
    assert len(list(world.tables())) == 6
    assert set(world.neighbours(((0.0,), (3.0,)))) == {
        ((1.0,), (3.0,)),
        ((3.0,), (3.0,)),
        ((0.0,), (0.0,)),
        ((0.0,), (1.0,)),
    }


@pytest.mark.parametrize(("bound", "caught"), [(3.0, False), (2.9, True)])
def test_the_spread_of_three_sites_moves_by_three(bound: float, caught: bool) -> None:
    found = audit_bound(lambda _: bound, spread, World(((0.0,), (1.0,), (3.0,)), 2))
    assert (found.caught, found.claimed, found.lower) == (caught, bound, 3.0)
    assert bool(found.counterexample) is caught


@pytest.mark.parametrize(("beta", "caught"), [(0.7, False), (0.69, True)])
def test_a_bound_that_doubles_is_not_smoother_than_ln_two(beta: float, caught: bool) -> None:
    found = audit_bound(lambda values: 4.0 if spread(values) else 8.0, spread, World(((0.0,), (1.0,)), 3), beta=beta)
    assert found.caught is caught
    assert found.lower == pytest.approx(np.log(2))


@pytest.mark.slow
@pytest.mark.parametrize("world", [PATH, PLUS], ids=["line", "plane"])
def test_the_ladder_under_attack_is_ours_when_its_cover_is_exact(world: World) -> None:
    for table in list(world.tables())[::7]:
        values = np.array(table)
        ours = local_bounds(values, 1.2, 1, upto=len(values), normalise=False)
        assert ladder(values, 1.2, exact_cover) == ours
        ours = smooth_bound(values, 1.2, 1, beta=0.2, normalise=False)
        assert smooth_maximum(values, 1.2, 0.2, cover=exact_cover) == pytest.approx(ours)


# Order


def test_a_release_pays_before_it_looks() -> None:
    points = Points.from_array(np.arange(12.0).reshape(6, 2), name="made-up")
    query = Count(neighbours=1, radius=1.0, loss=Loss("1"))
    assert not audit_order(query, points).caught
    assert not audit_order(Count(neighbours=1, radius=1.0, loss=Loss("1"), columns=("x1",)), points).caught
    assert not audit_order(Above(bar=3.0, loss=Loss("1")), points).caught


def test_paying_in_a_transaction_that_is_still_open_is_not_paying() -> None:
    points = Points.from_array(np.arange(6.0)[:, None], name="made-up")
    query = Count(neighbours=1, radius=1.0, loss=Loss("1"))

    def unsure(asked, data, ledger) -> None:
        with ledger._store.write():
            asked.answer(data, system_noise())

    assert audit_order(query, points, ask=unsure).caught
    idle = audit_order(query, points, ask=lambda *_: None)
    assert (idle.caught, idle.text) == (False, "nobody looked")


# The count room


@pytest.fixture
def found(quick_findings: Callable[[str], list[Finding]]) -> list[Finding]:
    return quick_findings("count")


@pytest.mark.slow
def test_every_sound_mechanism_holds(found: list[Finding]) -> None:
    sound = [finding for finding in found if not finding.expected]
    assert len(sound) >= 30
    assert [finding for finding in sound if finding.caught] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake",
    [
        "looks, then pays",
        "a tenth short, extension, pure",
        "a tenth short, extension, zCDP",
        "a tenth short, extension, approximate",
        "a tenth short, global, Laplace",
        "a tenth short, global, Gaussian",
        "smooth noise a tenth short",
        "noise a hundredth short, pure",
        "exact, by value",
        "leaves out itself by value",
        "5k + 1 in spite of rounding",
        "Algorithm 1 skips the last record",
        "the Japanese bound on a line",
        "the Japanese bound in the plane",
        "cover counted around its own members",
        "exact cover if small, else a rough bound",
        "Algorithm 2 caps half of its terms",
    ],
)
def test_every_broken_variant_is_caught(found: list[Finding], mistake: str) -> None:
    (finding,) = (finding for finding in found if mistake in finding.name)
    assert finding.expected
    assert finding.caught, finding


@pytest.mark.slow
def test_the_papers_counterexamples_are_found_again(found: list[Finding]) -> None:
    tables = {finding.name: (finding.counterexample, finding.claimed, finding.lower) for finding in found}
    (table, _), *sizes = tables["broken: Algorithm 1 skips the last record"]
    assert (table, sizes) == (((0.0,), (0.0,), (1.0,), (2.0,)), [1, 2])
    (table, _), *sizes = tables["broken: the Japanese bound on a line"]
    assert (table, sizes) == (((0.0,), (2.0,), (4.0,), (6.0,)), [2, 3])
    (table, _), *sizes = tables["broken: the Japanese bound in the plane"]
    assert (table, sizes) == (((0.0, 0.0), (0.0, 2.0), (1.0, 1.0), (1.0, 3.0), (2.0, 2.0)), [2, 5])


@pytest.mark.slow
def test_the_attack_comes_close_to_a_tight_mechanism(found: list[Finding]) -> None:
    near = {finding.name: finding.lower for finding in found}
    tight = ("extension, pure", "extension, pure, contested", "global, Laplace on a line")
    assert min(near[name] for name in tight) > 0.99


def test_a_release_cannot_reach_the_broken_variants() -> None:
    program = (
        "import sys, wallflower, wallflower.cli, wallflower.release; print([m for m in sys.modules if 'audit' in m])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_an_unknown_question_is_refused_and_a_room_without_attacks_has_none() -> None:
    with pytest.raises(ParameterError, match="Did you mean count"):
        list(audits("cuont"))
    assert list(Query.audits.__func__(Above, quick=True)) == []


# Holes that were ours once


def test_the_released_smooth_bound_holds_where_rounding_favours_the_attacker() -> None:
    assert _smooth("where rounding favours the attacker", CIRCLE, 1.0, normalise=True).ok


def test_the_turning_disc_does_not_hold_there_so_it_is_never_released() -> None:
    bound = partial(smooth_bound, radius=1.0, neighbours=1, beta=BETA, normalise=True)
    truth = partial(count_outliers, radius=1.0, neighbours=1, normalise=True)
    assert audit_bound(bound, truth, CIRCLE, beta=BETA, name="sweep by angles", expected=True).ok


# Laws


def test_a_coin_by_a_table_has_two_branches_of_exact_chances() -> None:
    bounds = np.array([2**62, 3 * 2**62], dtype=np.uint64)
    found = law_of(lambda noise: tuple((words(noise, 2) < bounds).tolist()))
    assert found == {(True, True): 3 / 16, (True, False): 1 / 16, (False, True): 9 / 16, (False, False): 3 / 16}


def test_a_word_that_is_compared_twice_is_one_word() -> None:
    def answer(noise) -> tuple[bool, ...]:
        word = np.repeat(words(noise, 1), 2)
        return tuple((word < np.array([2**62, 2**63], dtype=np.uint64)).tolist())

    assert law_of(answer) == {(True, True): 1 / 4, (False, True): 1 / 4, (False, False): 1 / 2}


def test_words_are_not_used_otherwise() -> None:
    with pytest.raises(ParameterError, match="compared with numbers only"):
        law_of(lambda noise: bool((words(noise, 1) + np.uint64(1)).any()))
    with pytest.raises(ParameterError, match="not compared"):
        law_of(lambda noise: len(words(noise, 1)))


def test_a_number_below_zero_that_is_drawn_again_is_not_drawn() -> None:
    found = law_of(lambda noise: min(draw_geometric(Fraction(2), noise) + 0, 3))
    pace = np.exp(-1 / 2)
    assert [found[z] for z in range(4)] == pytest.approx([(1 - pace) * pace**z for z in range(3)] + [pace**3])


def test_what_is_left_out_is_counted_and_never_shows_a_loss() -> None:
    def answer(value: int):
        return lambda noise: value + noise.laplace(Fraction(2))

    whole = [law_of(answer(value)) for value in (0, 2)]
    partly = [law_of(answer(value), least=1e-4) for value in (0, 2)]
    for law in partly:
        assert sum(law.values()) + law.rest == pytest.approx(1)
        assert 1e-5 < law.rest < 1e-3
    assert audit_law(*whole, claimed=Loss("1")).lower == pytest.approx(1)
    assert 0.9 < audit_law(*partly, claimed=Loss("1")).lower < 1
    with pytest.raises(ParameterError, match="nearly nothing"):
        audit_law(*(law_of(answer(value), least=0.1) for value in (0, 2)), claimed=Loss("1"))


def test_parts_add_up() -> None:
    assert not audit_parts({"one": 0.5, "other": 0.5}, claimed=1.0, name="halves").caught
    assert audit_parts({"one": 0.5, "other": 0.51}, claimed=1.0, name="more").caught


# The page


@pytest.mark.slow
def test_the_page_runs() -> None:
    page = (Path(__file__).parents[1] / "docs" / "audit.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 3
    scope: dict = {}
    for block in blocks:
        exec(compile(block, "docs/audit.md", "exec"), scope)  # noqa: S102
    assert "wallflower audit scale" in page
