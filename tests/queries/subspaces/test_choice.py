"""What each choice may spend, and how often it is right."""

import math
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from oracle import permute_and_flip_law

from wallflower.neighbours.noisy_count import count_noise
from wallflower.privacy import Kind, Loss, epsilon_of_zcdp
from wallflower.queries.subspaces.choice import Draws, count_loss, draws, least_lead, parts, precision


def test_pure_choices_divide_the_loss_exactly():
    for mechanism in ("permute-and-flip", "exponential"):
        assert draws(mechanism, Loss("1"), 3).each * 3 == 1


@pytest.mark.parametrize("top", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("delta", ["1e-2", "1e-6"])
def test_bounded_range_choices_imply_the_stated_loss(top, delta):
    loss = Loss("1", delta=delta)
    each = draws("exponential", loss, top).each
    assert each >= Fraction(1, top)
    if each > Fraction(1, top):
        assert epsilon_of_zcdp(top * float(each) ** 2 / 8, float(loss.delta)) <= 1
    assert draws("permute-and-flip", loss, top).each == Fraction(1, top)


def test_a_delta_too_small_to_use_leaves_plain_composition():
    assert draws("exponential", Loss("1", delta=Fraction(1, 10**200)), 50).each == Fraction(1, 50)


@pytest.mark.parametrize(("mechanism", "divisor"), [("exponential", 8), ("permute-and-flip", 2)])
def test_concentrated_choices_add_up_to_rho(mechanism, divisor):
    each = draws(mechanism, Loss.zcdp("1/3"), 4).each
    assert 4 * each**2 / divisor <= Fraction(1, 3)
    assert 4 * each**2 / divisor == pytest.approx(1 / 3, rel=1e-8)


def test_the_parts_make_up_the_whole():
    for loss in (Loss("1"), Loss("1", delta="1e-6"), Loss.zcdp("0.3")):
        choice, counts = parts(loss, Fraction(1, 3))
        assert choice + counts == loss


def test_counts_take_the_way_with_less_noise():
    loss = Loss("1", delta="1e-6")
    few, many = count_loss(loss, 1, slack=3), count_loss(loss, 30, slack=3)
    assert few.kind is Kind.PURE
    assert many.kind is Kind.ZCDP
    assert count_noise(3, many).deviation() < count_noise(3, Loss("1/30")).deviation()
    assert epsilon_of_zcdp(float(30 * many.rho), 1e-6) <= 1
    assert count_loss(Loss.zcdp("1/2"), 4, slack=3).rho == Fraction(1, 8)


def law_of_levels(mechanism, best, others, gap, each):
    """The chance of one of the best, from the law of the mechanism over all candidates."""
    scores = [gap] * best + [0] * others
    if mechanism == "exponential":
        weights = np.exp(float(each) * np.array(scores) / 2)
        return weights[:best].sum() / weights.sum()
    return permute_and_flip_law(scores, 1, float(each))[:best].sum()


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
@pytest.mark.parametrize(("best", "others", "gap"), [(1, 1, 1), (1, 5, 3), (2, 4, 2), (3, 3, 0)])
def test_expected_precision_is_that_of_the_mechanism(mechanism, best, others, gap):
    made = Draws(mechanism=mechanism, each=Fraction(4, 5))

    def expected(good, bad, left):
        if left == 0:
            return 0.0
        hit = law_of_levels(mechanism, good, bad, gap, made.each) if good else 0.0
        after = hit * (1 + expected(good - 1, bad, left - 1)) if good else 0.0
        return after + ((1 - hit) * expected(good, bad - 1, left - 1) if bad else 0.0)

    found = precision(made, candidates=best + others, top=best, lead=gap)
    assert found == pytest.approx(expected(best, others, best) / best, rel=1e-9)


def hits(mechanism, scores, best, left, each):
    """The expected number of the `best` first that `left` choices take, from the law of each choice."""
    if left == 0:
        return 0.0
    weights = np.exp(float(each) * (np.array(scores) - max(scores)) / 2)
    law = weights / weights.sum() if mechanism == "exponential" else permute_and_flip_law(scores, 1, float(each))
    return sum(
        chance * ((at < best) + hits(mechanism, scores[:at] + scores[at + 1 :], best - (at < best), left - 1, each))
        for at, chance in enumerate(law)
    )


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_precision_is_the_least_of_all_tables_whose_best_stand_out(mechanism):
    made, lead = Draws(mechanism=mechanism, each=Fraction(4, 5)), 2
    for top, others in ((1, 3), (2, 2), (2, 3)):
        least = precision(made, candidates=top + others, top=top, lead=lead)
        for above in combinations_with_replacement((0, 1, 6), top):
            for below in combinations_with_replacement((0, 1, 6), others):
                scores = [lead + score for score in above] + [-score for score in below]
                found = hits(mechanism, scores, top, top, made.each) / top
                assert found >= least - 1e-9
                assert set(above + below) != {0} or found == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_the_lead_that_is_needed_is_just_enough(mechanism):
    made = Draws(mechanism=mechanism, each=Fraction(1, 3))
    for candidates, top in ((2, 1), (10, 2), (100_000, 4)):
        lead = least_lead(made, candidates=candidates, top=top, right=0.9)
        at = [precision(made, candidates=candidates, top=top, lead=lead * part) for part in (0.998, 1.001)]
        assert at[0] < 0.9 < at[1]


def test_precision_goes_from_chance_to_certainty_for_long_lists_too():
    for mechanism in ("exponential", "permute-and-flip"):
        for candidates in (10, 100_000):
            at = [
                precision(Draws(mechanism=mechanism, each=Fraction(e)), candidates=candidates, top=2, lead=5.0)
                for e in (Fraction(1, 10**6), 1, 2, 4, 8, 16)
            ]
            assert at == sorted(at)
            assert at[0] == pytest.approx(2 / candidates, rel=1e-4)
            assert at[-1] > 0.99
            assert all(map(math.isfinite, at))
