"""Draws over all contexts: their law, that nothing is drawn twice, and how far one record moves a score."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from laws import Replayed, exponential_law, fits, table_of, world
from salaries import salaries

from vectors import vectors
from wallflower.errors import ParameterError
from wallflower.mechanisms import exponential_level
from wallflower.noise import system_noise
from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    CustomDetector,
    Distance,
    FixedBins,
    Grubbs,
    Histogram,
    Lof,
    Tukey,
)
from wallflower.queries.explain.detectors.grubbs import kappas, scales
from wallflower.queries.explain.draws import dp as module
from wallflower.queries.explain.draws import exponential
from wallflower.queries.explain.draws.dp import GRID, draw_by_margin, greatest_margin
from wallflower.queries.explain.draws.exponential import choose
from wallflower.queries.explain.draws.ocdp import draw_direct
from wallflower.queries.explain.draws.utilities import CustomUtility, Overlap, Population
from wallflower.queries.explain.exact import evaluate, margins, valid_contexts
from wallflower.queries.explain.space.tables import rank_table

pytestmark = pytest.mark.slow  # together more than `make check` has room for

RATE = Fraction(1, 6)
RATES = {Population(): Fraction(1, 12), Overlap("10110110"): RATE}
STRETCHES = [(0.5, False), (1.0, True), (1.8, False)]
NEAR = "10110110"


def scores_of(table, detector, utility):
    """Scores of the valid contexts, by index."""
    ask = utility.score_single(table, plainly(table, detector))
    found = ((index, *ask(index)) for index in range(table.space.count))
    return {index: score for index, valid, score in found if valid}


def plainly(table, detector):
    def examine(index):
        inside = table.members(index)
        return detector.outlier(table.values[inside], int(inside[: table.record].sum())), int(inside.sum())

    return examine


@pytest.fixture(scope="module")
def counted():
    """Draws of places and ranks among those that are only counted."""
    gaps, counts = np.array([2, 0, 5, 9]), np.array([3, 1, 0, 40])
    return [exponential_level(gaps, counts, rate=Fraction(1, 3), noise=system_noise()) for _ in range(3000)]


@pytest.mark.parametrize(("stretch", "same"), STRETCHES)
def test_a_level_is_drawn_by_its_count_and_its_weight(counted, stretch, same):
    scores = {(place, rank): -gap for place, gap, n in ((0, 2, 3), (1, 0, 1), (3, 9, 40)) for rank in range(n)}
    law = exponential_law(scores, stretch / 3)
    assert fits([(each,) for each in counted], law) is same


@pytest.fixture(scope="module", params=RATES, ids=repr)
def drawn(request):
    """Pairs of contexts, drawn one after the other."""
    table, detector, utility = table_of(), Lof(3, 1.3), request.param
    pairs = [
        tuple(draw_direct(table, detector, utility, rate=RATES[utility], top=2, noise=system_noise()))
        for _ in range(800)
    ]
    return pairs, scores_of(table, detector, utility), RATES[utility]


@pytest.mark.parametrize(("stretch", "same"), STRETCHES)
def test_contexts_are_drawn_by_their_weight_without_replacement(drawn, stretch, same):
    pairs, scores, rate = drawn
    law = exponential_law(scores, stretch * float(rate), top=2)
    assert fits([pair[:1] for pair in pairs], exponential_law(scores, stretch * float(rate))) is same
    seconds = {index: sum(law[pair] for pair in law if pair[1] == index) for index in scores}
    assert fits([second for _, second in pairs], seconds) or not same
    assert all(first != second for first, second in pairs)


def test_a_function_of_ones_own_is_drawn_by_as_well():
    table, detector, rate = table_of(), Lof(3, 1.3), Fraction(1, 12)
    utility = CustomUtility(lambda bits, values: -(10**6) + 9 * bits.count("1"), 9)
    scores = scores_of(table, detector, utility)
    sample = [tuple(draw_direct(table, detector, utility, rate=rate, top=1, noise=system_noise())) for _ in range(400)]
    assert fits(sample, exponential_law(scores, float(rate)))
    assert not fits(sample, exponential_law(scores, 3 * float(rate)))


def test_all_valid_contexts_come_out_once_and_no_other():
    table = table_of()
    for detector in (Lof(3, 1.3), Distance(3, 1.0), Histogram(0.1), CustomDetector(lambda values, index: False)):
        expected = {table.space.index(bits) for bits in valid_contexts(*world(), detector)}
        found = draw_direct(table, detector, Population(), rate=RATE, top=99, noise=system_noise())
        assert len(found) == len(set(found)) == len(expected)
        assert set(found) == expected


def test_one_valid_context_is_the_draw_and_none_is_no_draw():
    table = table_of()
    only = CustomDetector(lambda values, index: len(values) == table.n)
    assert draw_direct(table, only, Population(), rate=RATE, top=3, noise=system_noise()) == [table.space.count - 1]
    never = CustomDetector(lambda values, index: False)
    for utility in (Population(), Overlap(NEAR), CustomUtility(lambda bits, values: 1, 1)):
        assert draw_direct(table, never, utility, rate=RATE, top=3, noise=system_noise()) == []


@pytest.mark.parametrize("utility", [Population(), Overlap("1" * 6 + "101010" + "010111")], ids=repr)
def test_what_is_not_kept_is_drawn_alike(monkeypatch, utility):
    codes, metric, record = salaries(n=2000, sizes=(6, 6, 6))
    table = rank_table(codes, (6, 6, 6), metric, record)
    given = [(top, seed) for top in (1, 4) for seed in range(6)]

    def draws():
        return [
            draw_direct(table, Grubbs(), utility, rate=Fraction(1, 500), top=top, noise=Replayed(seed))
            for top, seed in given
        ]

    kept = draws()
    assert len({index for found in kept for index in found}) > 12
    monkeypatch.setattr(exponential, "KEPT_CONTEXTS", 1)
    assert draws() == kept


def test_margins_that_are_not_kept_are_drawn_alike(monkeypatch):
    codes, metric, record = salaries(n=2000, sizes=(6, 6, 6))
    table, detector = rank_table(codes, (6, 6, 6), metric, record), ClampedGrubbs(5e4, 4e5, 5000)
    given = {"scale": Fraction(31, 3), "cap": Fraction(99, 2), "epsilon": Fraction(1, 5), "top": 3}
    kept = [draw_by_margin(table, detector, **given, noise=Replayed(seed)) for seed in range(5)]
    monkeypatch.setattr(exponential, "KEPT_CONTEXTS", 1)
    assert [draw_by_margin(table, detector, **given, noise=Replayed(seed)) for seed in range(5)] == kept


def test_a_chosen_place_has_the_law_of_its_score():
    scores = {0: 5, 1: -3, 2: 0, 3: 5, 4: 2}
    sample = [
        tuple(choose(list(scores.values()), rate=Fraction(1, 5), top=2, noise=system_noise())) for _ in range(3000)
    ]
    assert fits(sample, exponential_law(scores, 0.2, top=2))
    assert not fits(sample, exponential_law(scores, 0.35, top=2))
    assert choose([], rate=RATE, top=2, noise=system_noise()) == []
    assert sorted(choose([4, 4, 1], rate=RATE, top=9, noise=system_noise())) == [0, 1, 2]


@pytest.mark.parametrize("case", vectors("explain.json", lambda case: "max_utility" in case["detectors"]["grubbs"]))
def test_expected_utility_is_that_of_the_vectors(case):
    table = rank_table(case["codes"], case["domain_sizes"], case["metric"], case["v"])
    detector, expected = Grubbs(case["params"]["alpha"]), case["detectors"]["grubbs"]
    populations = np.array(sorted(expected["valid"].values()))
    for rate in ("0.02", "0.1"):
        weights = np.exp(float(rate) * (populations - populations.max()))
        mean = float(weights @ populations / weights.sum())
        assert mean == pytest.approx(expected[f"em_expected_utility_e1={rate}"], rel=1e-9)
        deviation = float(np.sqrt(weights @ (populations - mean) ** 2 / weights.sum()))
        found = [
            expected["valid"][table.space.bits(index)]
            for _ in range(100)
            for index in draw_direct(table, detector, Population(), rate=Fraction(rate), top=1, noise=system_noise())
        ]
        assert abs(np.mean(found) - mean) < 6.5 * deviation / np.sqrt(len(found)) + 1e-9


# By margin


WITH_MARGIN = [
    Distance(2, 1.0), FixedBins((0.0, 1.5, 3.0, 6.0), 0.3), FixedBins((0.0, 3.0, 6.0), 0.8),
    Tukey((0, 1, 2, 3, 5), 1.0), Tukey((0.5, 2.5, 4.5), 0.1), ClampedGrubbs(0.0, 5.0, 14),
    ClampedGrubbs(2.0, 9.0, 14, 0.4, 9),
]  # fmt: skip
VALUES = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0)


def steps_of(table, detector, scale, cap):
    """The scores of all contexts in steps."""
    blocks = exponential._keep_in_one_block(table.space, module.step_scores(table, detector, scale, int(GRID * cap)))
    (found,) = blocks(lambda first, taking, scores: scores.astype(int))
    return found


def plain_steps(table, detector, scale, cap):
    found, populations = margins(table, detector)
    most = int(GRID * cap)
    return [
        max(-most, min(most, GRID * int(n) * scale.denominator // scale.numerator, int(np.floor(GRID * margin))))
        for n, margin in zip(populations, found, strict=True)
    ]


@pytest.mark.parametrize("detector", WITH_MARGIN, ids=repr)
@pytest.mark.parametrize(("scale", "cap"), [(Fraction(1), Fraction(50)), (Fraction(10, 7), Fraction(5, 3))])
def test_scores_are_the_lesser_of_population_and_margin_on_a_grid(detector, scale, cap):
    codes, sizes, _, record = world(n=14, sizes=(3, 2))
    table = rank_table(codes, sizes, np.random.default_rng(1).choice(VALUES, 14), record)
    assert steps_of(table, detector, scale, cap).tolist() == plain_steps(table, detector, scale, cap)


def test_any_scale_is_divided_by_exactly():
    codes, sizes, metric, record = world()
    table, detector = rank_table(codes, sizes, metric, record), Tukey(tuple(range(30)))
    for scale in (Fraction(10**30 + 1, 10**29), Fraction(3**50, 2**60), Fraction(2**70, 2**70 - 1)):
        assert steps_of(table, detector, scale, Fraction(40)).tolist() == plain_steps(table, detector, scale, 40)


@pytest.mark.parametrize("detector", WITH_MARGIN, ids=repr)
def test_one_record_anywhere_moves_a_score_by_a_step_more_than_the_grid_at_most(detector):
    draw, sizes, most = np.random.default_rng(3), (3, 2), 0
    for turn in range(4):
        n = int(draw.integers(1, 14))
        codes, metric = np.stack([draw.integers(0, size, n) for size in sizes], 1), draw.choice(VALUES, n)
        scale, cap = (Fraction(1), Fraction(99)) if turn % 2 else (Fraction(9, 7), Fraction(17, 6))
        one = rank_table(codes, sizes, metric, 0)
        before, best = steps_of(one, detector, scale, cap), greatest_margin(one, detector)
        for cell, value in product(np.ndindex(*sizes), VALUES):
            more = rank_table(np.append(codes, [cell], axis=0), sizes, np.append(metric, value), 0)
            moved = int(np.abs(steps_of(more, detector, scale, cap) - before).max())
            most = max(most, moved, abs(greatest_margin(more, detector) - best))
    assert GRID * 0.9 < most <= module.STEPS


@pytest.fixture(scope="module")
def by_margins():
    table, detector = table_of(), Distance(3, 3.0)
    given = {"scale": Fraction(15, 2), "cap": Fraction(7, 2), "epsilon": Fraction(1)}
    sample = [tuple(draw_by_margin(table, detector, **given, top=2, noise=system_noise())) for _ in range(1500)]
    return sample, dict(enumerate(plain_steps(table, detector, given["scale"], given["cap"])))


@pytest.mark.parametrize(("stretch", "same"), [(0.3, False), (1.0, True), (1.8, False)])
def test_all_contexts_are_drawn_by_their_margin(by_margins, stretch, same):
    sample, scores = by_margins
    assert len(scores) == 32
    assert min(scores.values()) < 0 < max(scores.values())
    law = exponential_law(scores, stretch / (2 * 257))
    assert fits([pair[:1] for pair in sample], law) is same
    assert all(first != second for first, second in sample)


def test_the_best_margin_is_the_largest_rounded_down():
    codes, metric, record = salaries(n=2000, sizes=(6, 6, 6))
    table = rank_table(codes, (6, 6, 6), metric, record)
    for detector in (ClampedGrubbs(5e4, 4e5, 5000), FixedBins.equal(5e4, 4e5, 90), Distance(9, 500.0)):
        assert greatest_margin(table, detector) == int(np.floor(GRID * margins(table, detector)[0].max()))


def test_valid_contexts_win_where_the_record_stands_out():
    codes, metric, _ = salaries(n=6000, sizes=(5, 5, 5))
    record, detector = int(np.argsort(metric)[-200]), Tukey(tuple(np.linspace(5e4, 4e5, 101).tolist()))
    table, whole = rank_table(codes, (5, 5, 5), metric, record), evaluate(codes, (5, 5, 5), metric, record, detector)
    given = {"scale": Fraction(50), "cap": Fraction(100), "epsilon": Fraction(1)}
    assert 0.2 < whole.valid.mean() < 0.4
    for _ in range(20):
        found = draw_by_margin(table, detector, **given, top=2, noise=system_noise())
        assert whole.valid[found].all()
        assert (whole.populations[found] > 0.4 * whole.populations[whole.valid].max()).all()


@pytest.mark.parametrize("n", [3, 40, 700])
@pytest.mark.parametrize("own", [-1.0, 2.0, 7.3])
def test_computed_margins_are_as_near_to_the_true_ones_as_is_claimed(n, own):
    draw, detector = np.random.default_rng(n), ClampedGrubbs(0.1, 6.7, n + 1, 0.3, 12)
    metric = np.append(own, np.where(draw.random(n) < 0.9, draw.normal(own, 1e-3, n), draw.normal(3, 2, n)))
    table = rank_table(np.zeros((n + 1, 1), int), [1], metric, 0)
    clamped = np.clip(table.values, 0.1, 6.7)
    z = [Fraction(each) for each in (clamped[table.record] - clamped).tolist()]
    one, two, bound = sum(z), sum(each * each for each in z), Fraction(float(kappas(0.3, n + 1)[n + 1]))
    weights = scales(detector, float(clamped[table.record]))
    true = max(Fraction(a) * one + Fraction(b) * two + Fraction(c) * bound for a, b, c in weights.tolist())
    assert abs(true - Fraction(float(margins(table, detector)[0][0]))) <= Fraction(detector.rounding(own))


def test_rounding_grows_with_the_public_bound_until_it_is_refused():
    table = rank_table([[0]] * 3, [1], [1.0, 2.0, 9.0], 2)
    errors = [ClampedGrubbs(0.0, 9.0, largest).rounding(9.0) for largest in (100, 10_000, 300_000, 2_000_000)]
    assert errors == sorted(errors)
    assert errors[2] < 1 / (2 * GRID) <= errors[3]
    greatest_margin(table, ClampedGrubbs(0.0, 9.0, 300_000))
    for refused in (greatest_margin, lambda *given: module.step_scores(*given, Fraction(1), 5)):
        with pytest.raises(ParameterError, match="rounded by more than"):
            refused(table, ClampedGrubbs(0.0, 9.0, 2_000_000))


def test_what_has_no_margin_and_scales_below_one_are_refused():
    table, given = table_of(), {"cap": Fraction(9), "epsilon": Fraction(1), "top": 1, "noise": system_noise()}
    for detector in (Lof(), Grubbs(), Histogram()):
        with pytest.raises(ParameterError, match="has no margin"):
            margins(table, detector)
    with pytest.raises(ParameterError, match=r"^scale: .+; .+\.$"):
        draw_by_margin(table, Distance(1, 1.0), scale=Fraction(99, 100), **given)


def test_a_utility_of_ones_own_is_named_by_where_it_is_defined() -> None:
    def few_values(bits: str, values: object) -> int:
        return -bits.count("1")

    assert str(CustomUtility(few_values, 1)).startswith("custom:")
    assert str(CustomUtility(few_values, 1)).endswith("few_values")
    assert " at 0x" not in str(CustomUtility(lambda bits, values: 1, 1))
