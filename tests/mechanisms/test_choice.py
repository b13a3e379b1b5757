"""Private choice, against enumeration of small worlds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.errors import ParameterError
from wallflower.mechanisms import (
    bounded_range_pays,
    choice,
    epsilon_each,
    exponential,
    exponential_level,
    peel,
    permute_and_flip,
)
from wallflower.noise import system_noise

ONE = Fraction(1)


def flipping_law(scores: tuple[int, ...], unit: float) -> np.ndarray:
    """The law of permute-and-flip as the integral of (P), exactly, by polynomials."""
    weights = np.exp(unit * (np.array(scores) - max(scores)))
    law = []
    for index, weight in enumerate(weights):
        others = np.polynomial.Polynomial([1.0])
        for other in np.delete(weights, index):
            others *= np.polynomial.Polynomial([1.0, -other])
        law.append(weight * others.integ()(1.0))
    return np.array(law)


def exponential_law(scores: tuple[int, ...], unit: float) -> np.ndarray:
    weights = np.exp(unit * (np.array(scores) - max(scores)))
    return weights / weights.sum()


def permuted_law(scores: tuple[int, ...], unit: float) -> np.ndarray:
    """The same, by walking through every permutation."""
    coins, law = np.exp(unit * (np.array(scores) - max(scores))), np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        still = 1 / math.factorial(len(scores))
        for index in order:
            law[index] += still * coins[index]
            still *= 1 - coins[index]
    return law


def test_the_integral_of_the_proof_is_the_law_of_the_permutations():
    for scores in itertools.product(range(4), repeat=3):
        assert flipping_law(scores, 0.7) == pytest.approx(permuted_law(scores, 0.7), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("law", [flipping_law, exponential_law])
@pytest.mark.parametrize(("share", "private"), [(1 / 2, True), (0.6, False), (1.0, False)])
def test_all_neighbouring_scores_give_laws_within_epsilon(law, share, private):
    epsilon, worst = 1.0, 0.0
    for scores in itertools.product(range(4), repeat=3):
        mine = law(scores, share * epsilon)
        for change in itertools.product((-1, 0, 1), repeat=3):
            near = law(tuple(np.add(scores, change)), share * epsilon)
            worst = max(worst, float(np.log(mine / near).max()))
    assert (worst <= epsilon + 1e-9) is private


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)], ids=str)
def test_exponential_choices_have_bounded_range(epsilon):
    for scores in itertools.product(range(3), repeat=3):
        for change in itertools.product((-1, 0, 1), repeat=3):
            near = tuple(np.add(scores, change))
            ratio = np.log(exponential_law(scores, float(epsilon) / 2) / exponential_law(near, float(epsilon) / 2))
            assert ratio.max() - ratio.min() <= epsilon + 1e-9


@pytest.mark.parametrize("choose", [permute_and_flip, exponential])
def test_a_choice_among_one_or_with_a_clear_winner_is_that_one(choose):
    assert choose([7], sensitivity=1, epsilon=ONE, noise=system_noise()) == 0
    assert choose([0, 10**6, 5], sensitivity=1, epsilon=ONE, noise=system_noise()) == 1
    assert choose(np.array([0, 10**6, 5]), sensitivity=0, epsilon=ONE, noise=system_noise()) == 1
    assert choose([-(10**30), 10**30], sensitivity=1, epsilon=Fraction(1, 3), noise=system_noise()) == 1


class Scripted:
    """Coins that all show heads, words from a list."""

    def __init__(self, *words: int) -> None:
        self.words, self.coins = list(words), []

    def flip(self, exponent: Fraction) -> bool:
        self.coins.append(exponent)
        return True

    def below(self, bound: int) -> int:
        return self.words.pop(0) % bound


def test_every_coin_is_flipped_with_its_exact_exponent():
    noise = Scripted(0, 0)
    assert permute_and_flip([3, 1, 5], sensitivity=2, epsilon=Fraction(1, 3), noise=noise) == 1
    assert noise.coins == [Fraction(1, 6), Fraction(1, 3), Fraction(0)]


def test_the_exponential_mechanism_asks_for_more_bits_only_when_it_must():
    low, high = 0, 2**128 - 1
    assert exponential([0, 0], sensitivity=1, epsilon=ONE, noise=Scripted(low)) == 0
    undecided = Scripted(high, low, low)
    assert exponential([0, 0], sensitivity=1, epsilon=ONE, noise=undecided) == 1
    assert undecided.words == [low]
    edge = Scripted(2**127 - 1, high, 0)
    assert exponential([0, 0], sensitivity=1, epsilon=ONE, noise=edge) == 0
    assert edge.words == []


WORDS = [0, 1, 2**127 - 1, 2**127, 2**128 - 1, *(2**128 * part // 97 for part in range(1, 97))]


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=12).filter(
        lambda pairs: any(count for _, count in pairs)
    ),
    st.fractions(min_value="1/1000", max_value=50, max_denominator=1000),
    st.sampled_from(WORDS),
)
def test_floats_decide_as_the_enclosures_do(pairs, rate, word):
    gaps, counts = np.array(pairs).T
    gaps = np.maximum(gaps - gaps[counts > 0].min(), 0)
    place = choice._surely(word, gaps, counts, rate)
    around = [choice._around(rate * int(gap), 85) for gap in gaps]
    exact = choice._decide(
        word, 128, [(int(n) * low, int(n) * high) for n, (low, high) in zip(counts, around, strict=True)]
    )
    assert place is None or place == exact
    assert place is None or counts[place] > 0


LONG = [2**63 - 1, 2**63, 2**64, 2**70, 10**320, 10**400]


@pytest.mark.parametrize("longest", LONG, ids=lambda gap: f"{gap.bit_length()} bits")
@pytest.mark.parametrize("penalty", [Fraction(1, 2), Fraction(3), Fraction(10**6)], ids=str)
def test_gaps_longer_than_a_machine_word_weigh_what_they_must(longest, penalty):
    for scores in ([0, longest], [longest, 0, longest // 2]):
        for word in (2**128 * part // 97 for part in range(1, 97)):
            chosen = exponential(scores, sensitivity=1, epsilon=2 * penalty / longest, noise=Scripted(word))
            weights = [choice._around(penalty * (max(scores) - score) / longest, 85) for score in scores]
            assert chosen == choice._decide(word, 128, weights)


def test_floats_leave_to_the_enclosures_what_is_close():
    gaps, counts = np.zeros(2, np.int64), np.ones(2, np.int64)
    for near in range(-(2**86), 2**86, 2**80 + 1):
        assert choice._surely(2**127 + near, gaps, counts, ONE) is None
    for far, place in ((-(2**90), 0), (2**90, 1)):
        assert choice._surely(2**127 + far, gaps, counts, ONE) == place


def test_a_level_is_drawn_where_floats_cannot_tell():
    noise = Scripted(2**127 - 1, 2**127, 4)
    assert exponential_level(np.array([3, 7, 7]), np.array([0, 5, 5]), rate=ONE, noise=noise) == (1, 4)
    assert noise.words == []


def test_a_level_that_counts_nothing_is_never_drawn():
    gaps, counts = np.array([0, 900, 901, 2000]), np.array([0, 3, 0, 1])
    for _ in range(20):
        place, rank = exponential_level(gaps, counts, rate=Fraction(3), noise=system_noise())
        assert place == 1
        assert 0 <= rank < 3


def test_a_level_is_refused_at_no_rate():
    with pytest.raises(ParameterError, match="epsilon"):
        exponential_level(np.array([0]), np.array([1]), rate=Fraction(0), noise=system_noise())


@given(
    st.fractions(min_value=0, max_value=200, max_denominator=10**6),
    st.sampled_from([42, 85]),
)
def test_weights_are_enclosed(penalty, digits):
    low, high = choice._around(penalty, digits)
    finer, above = choice._around(penalty, digits + 30)
    assert low * 10**30 <= finer
    assert above <= high * 10**30
    assert low / 10**digits == pytest.approx(math.exp(-penalty), rel=1e-12, abs=10.0 ** (2 - digits))


@pytest.mark.parametrize("choose", [permute_and_flip, exponential])
@pytest.mark.parametrize("h", [1, 3, 5])
def test_peeling_names_each_candidate_once(choose, h):
    chosen = peel(choose, [4, 8, 1, 9, 9], h, sensitivity=1, epsilon=ONE, noise=system_noise())
    assert len(chosen) == len(set(chosen)) == h
    assert set(chosen) <= set(range(5))


@pytest.mark.parametrize("choose", [permute_and_flip, exponential])
def test_peeling_orders_clear_winners(choose):
    scores = [10**6, 0, 3 * 10**6, 2 * 10**6]
    assert peel(choose, scores, 3, sensitivity=1, epsilon=ONE, noise=system_noise()) == [2, 3, 0]


@pytest.mark.parametrize("h", [-1, 0, 4])
def test_more_or_fewer_than_there_are_is_refused(h):
    with pytest.raises(ParameterError, match="h: "):
        peel(permute_and_flip, [1, 2, 3], h, sensitivity=1, epsilon=ONE, noise=system_noise())


def test_a_share_among_no_draws_is_refused():
    with pytest.raises(ParameterError, match="h: "):
        epsilon_each(ONE, Fraction(1, 9), 0)


@pytest.mark.parametrize("choose", [permute_and_flip, exponential])
def test_a_choice_from_nothing_or_for_nothing_is_refused(choose):
    with pytest.raises(ParameterError, match="nothing to choose from"):
        choose([], sensitivity=1, epsilon=ONE, noise=system_noise())
    with pytest.raises(ParameterError, match="epsilon"):
        choose([1, 2], sensitivity=1, epsilon=Fraction(0), noise=system_noise())


@pytest.mark.parametrize("delta", ["1/100", "1/1000000"])
@pytest.mark.parametrize("h", [1, 5, 40])
def test_each_draw_gets_at_least_the_simple_share_and_stays_within_rho(h, delta):
    epsilon, small = 1.0, math.log(1 / Fraction(delta))
    simple = (math.sqrt(small + epsilon) - math.sqrt(small)) ** 2
    each = epsilon_each(ONE, Fraction(delta), h)
    rho = float(h * each**2 / 8)
    assert rho > simple
    order = 1 + np.logspace(-3, 4, 20_001)
    shown = (order * rho + np.log1p(-1 / order) + (small - np.log(order)) / (order - 1)).min()
    assert 0.999 < shown <= 1 + 1e-6  # the grid misses the best order by a little


def test_bounded_range_pays_from_a_public_number_of_draws():
    def first(delta: Fraction) -> int:
        return next(h for h in range(1, 100) if bounded_range_pays(ONE, delta, h))

    assert (first(Fraction(1, 100)), first(Fraction(1, 10**6))) == (2, 6)
    assert not bounded_range_pays(ONE, Fraction(0), 50)
