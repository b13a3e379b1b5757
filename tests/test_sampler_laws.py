"""The samplers have the laws that the theorems speak of: fractions, by enumeration of their random choices.

Coq proves theorems about laws (`proofs/`); these tests tie the Python samplers to them. Each random choice is one of
finitely many, all equally likely; every path is followed until it is rarer than a bound, and what is cut off is kept as
doubt.
Draws of Laplace and Gaussian noise are OpenDP's and cannot be enumerated from here: `tests/test_noise.py` draws them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

import wallflower.noise as noise_module
from wallflower.mechanisms.choice import exponential, exponential_level, permute_and_flip
from wallflower.noise import SystemNoise, sample
from wallflower.units import exp_bounds


class OutOfScriptError(Exception):
    """The sampler asks for one more choice than the script has."""

    def __init__(self, bound: int) -> None:
        self.bound = bound


def enumerate_law(
    draw: Callable[[Callable[[int], int]], Hashable], least: Fraction
) -> tuple[dict[Hashable, Fraction], Fraction]:
    """Return the probability of each result, as far as paths of probability `least` or more decide it, and the rest."""
    law: dict[Hashable, Fraction] = defaultdict(Fraction)
    doubt, paths = Fraction(), [((), Fraction(1))]
    while paths:
        script, chance = paths.pop()
        left = list(script)

        def choose(bound: int, left: list[int] = left) -> int:
            if not left:
                raise OutOfScriptError(bound)
            return left.pop(0)

        try:
            law[draw(choose)] += chance
        except OutOfScriptError as more:
            if chance / more.bound < least:
                doubt += chance
            else:
                paths += [((*script, number), chance / more.bound) for number in range(more.bound)]
    return law, doubt


class ScriptedBelow(SystemNoise):
    """The system's noise, whose only randomness is a given choice of whole numbers."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.choose = choose

    def below(self, bound: int) -> int:
        return self.choose(bound)


class FewWords(SystemNoise):
    """Words of a few bits: a sampler that is even for these is even for words of 64, by the same symmetry."""

    def __init__(self, choose: Callable[[int], int], letters: int) -> None:
        self.choose, self.letters = choose, letters

    def words(self, size: int) -> Any:
        return np.array([self.choose(self.letters) for _ in range(size)], dtype=np.uint64)


@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 2), Fraction(2, 3), Fraction(1), Fraction(3, 2), Fraction(2)]
)
def test_a_coin_shows_heads_with_probability_exp_minus_its_exponent(exponent: Fraction, monkeypatch: Any) -> None:
    def draw(choose: Callable[[int], int]) -> bool:
        monkeypatch.setattr(noise_module.secrets, "randbelow", choose)
        return SystemNoise().flip(exponent)

    law, doubt = enumerate_law(draw, Fraction(1, 10**7))
    low, high = exp_bounds(-exponent, 40)
    assert law[True] <= high
    assert low <= law[True] + doubt
    assert doubt < Fraction(1, 1000)
    assert not law[True] <= low * Fraction(99, 100) <= law[True] + doubt  # an exponent off by a hundredth would show
    assert sum(law.values()) + doubt == 1


@pytest.mark.parametrize(("bound", "size"), [(3, 3), (3, 2), (4, 2)])
def test_the_head_of_a_permutation_is_exactly_even(bound: int, size: int) -> None:
    """(U) where much of the table is sampled: ties are drawn again, so every list has the same chance."""
    law, doubt = enumerate_law(
        lambda choose: tuple(FewWords(choose, 4).sample(bound, size).tolist()), Fraction(1, 4 ** (2 * bound))
    )
    assert set(law) == set(permutations(range(bound), size))
    assert len(set(law.values())) == 1
    assert doubt < 1


def test_the_first_different_draws_are_exactly_even() -> None:
    """(U) where little of the table is sampled."""
    law, doubt = enumerate_law(lambda choose: tuple(FewWords(choose, 8).sample(5, 2).tolist()), Fraction(1, 8**6))
    assert set(law) == set(permutations(range(5), 2))
    assert len(set(law.values())) == 1
    assert doubt < Fraction(9, 10)


def test_a_remainder_would_not_be_even() -> None:
    """The test above has power: cutting words by a remainder, as is often done, is seen."""

    class Remainders(FewWords):
        def _indices(self, bound: int, size: int) -> Any:
            return (self.words(size) % np.uint64(bound)).astype(np.int64)

    law, _ = enumerate_law(lambda choose: tuple(Remainders(choose, 8).sample(5, 2).tolist()), Fraction(1, 8**5))
    assert len(set(law.values())) > 1


def test_swaps_are_exactly_even() -> None:
    """(U) for a noise without words."""

    class Plain:
        def __init__(self, choose: Callable[[int], int]) -> None:
            self.below = choose

    law, doubt = enumerate_law(lambda choose: tuple(sample(Plain(choose), 4, 3).tolist()), Fraction(1, 1000))
    assert law == dict.fromkeys(permutations(range(4), 3), Fraction(1, 24))
    assert doubt == 0


def exact_weights(gaps: list[int], counts: list[int], rate: Fraction) -> list[Decimal]:
    """Normalised weights counts[j]·exp(-rate·gaps[j]), to sixty digits."""
    with localcontext(prec=60):
        weights = [
            count * (-(Decimal(rate.numerator) / Decimal(rate.denominator)) * gap).exp()
            for gap, count in zip(gaps, counts, strict=True)
        ]
        total = sum(weights)
        return [weight / total for weight in weights]


def find_border(draw: Callable[[int], int], place: int) -> int:
    """The least first word for which the draw is beyond `place`; places follow each other as words grow."""
    low, high = 0, 1 << 128
    while low < high:
        middle = (low + high) // 2
        if draw(middle) > place:
            high = middle
        else:
            low = middle + 1
    return low


@pytest.mark.parametrize(
    ("gaps", "counts", "rate"),
    [
        ([0, 1, 2, 5], [1, 1, 1, 1], Fraction(1, 2)),
        ([3, 0, 7], [2, 1, 10], Fraction(1, 3)),
        ([0, 40], [1, 9], Fraction(1)),
    ],
)
def test_a_choice_has_the_law_of_the_exponential_mechanism(gaps: list[int], counts: list[int], rate: Fraction) -> None:
    """(E2): the share of 128-bit words that lead to each place is its weight, but for 2⁻¹²⁰."""

    def draw(word: int) -> int:
        script = iter([word, *[0] * 40])
        noise = ScriptedBelow(lambda bound: next(script) % bound)
        return exponential_level(np.array(gaps), np.array(counts), rate=rate, noise=noise)[0]

    edges = [0, *(find_border(draw, place) for place in range(len(gaps)))]
    assert edges[-1] == 1 << 128
    for (low, high), weight in zip(pairwise(edges), exact_weights(gaps, counts, rate), strict=True):
        share = Fraction(high - low, 1 << 128)
        assert abs(share - Fraction(weight)) <= Fraction(1, 1 << 118)


def test_the_exponential_mechanism_divides_by_twice_the_sensitivity() -> None:
    """`exponential_private` of Real.v speaks of exp(-ε·err/2D)."""
    scores, epsilon, sensitivity = [5, 3, 0], Fraction(3, 2), 2

    def draw(word: int) -> int:
        script = iter([word, *[0] * 40])
        noise = ScriptedBelow(lambda bound: next(script) % bound)
        return exponential(scores, sensitivity=sensitivity, epsilon=epsilon, noise=noise)

    weights = exact_weights([0, 2, 5], [1, 1, 1], epsilon / (2 * sensitivity))
    share = Fraction(find_border(draw, 0), 1 << 128)
    assert abs(share - Fraction(weights[0])) <= Fraction(1, 1 << 118)


def test_permute_and_flip_has_the_law_of_its_proof(monkeypatch: Any) -> None:
    """(P) of mechanisms: with two candidates at gap g the worse one wins with probability e^(-εg/2D)/2."""

    def draw(choose: Callable[[int], int]) -> int:
        monkeypatch.setattr(noise_module.secrets, "randbelow", choose)
        return permute_and_flip([2, 0], sensitivity=1, epsilon=Fraction(1), noise=ScriptedBelow(choose))

    law, doubt = enumerate_law(draw, Fraction(1, 10**6))
    low, high = exp_bounds(Fraction(-1), 40)
    assert law[1] <= high / 2
    assert low / 2 <= law[1] + doubt
    assert doubt < Fraction(1, 1000)
