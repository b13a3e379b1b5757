"""Samples have the law they claim, and the tests would notice a scale that is a tenth off, either way.

False alarms and misses have probability below 1e-9 for each test.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from wallflower.mechanisms import Additive, calibrate, epsilon_each, exponential, peel, permute_and_flip
from wallflower.noise import system_noise
from wallflower.privacy import Loss

pytestmark = pytest.mark.slow  # together more than `make check` has room for

ALARM = 1e-11  # what is expected 100 times has a tail a little heavier than chi-square says
LOG_DENSITIES = {"laplace": lambda z, scale: -abs(z) / scale, "gaussian": lambda z, scale: -(z**2) / (2 * scale**2)}


def fits(sample: Iterable[object], law: dict[object, float]) -> bool:
    """Whether a sample could come from this law; outcomes expected less than 100 times are taken together."""
    seen = Counter(sample)
    if not set(seen) <= set(law):
        return False
    size = sum(seen.values())
    common = [outcome for outcome, chance in law.items() if chance * size >= 100]
    observed = [seen[outcome] for outcome in common]
    expected = [law[outcome] * size for outcome in common]
    rest = size - sum(expected)
    if rest >= 100:
        observed, expected = [*observed, size - sum(observed)], [*expected, rest]
    expected = np.array(expected) * (sum(observed) / sum(expected))
    return bool(chisquare(observed, expected).pvalue > ALARM)


def law_of(name: str, scale: float) -> dict[object, float]:
    at = np.arange(-math.ceil(60 * scale) - 60, math.ceil(60 * scale) + 61)
    weights = np.exp(LOG_DENSITIES[name](at.astype(float), scale))
    return dict(zip(at.tolist(), (weights / weights.sum()).tolist(), strict=True))


@lru_cache
def sample_of_60_000(name: str, scale: Fraction) -> tuple[int, ...]:
    return tuple(getattr(system_noise(), f"{name}s")(scale, 60_000))


STRETCHES = [(0.9, False), (1.0, True), (1.1, False)]


@pytest.mark.parametrize(("stretch", "same"), STRETCHES)
@pytest.mark.parametrize("scale", [Fraction(2, 3), Fraction(5), Fraction(37, 3)], ids=str)
@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_noise_has_the_scale_it_claims(name, scale, stretch, same):
    assert fits(sample_of_60_000(name, scale), law_of(name, float(scale) * stretch)) is same


@lru_cache
def draws_of(additive: Additive) -> tuple[int, ...]:
    noise = system_noise()
    return tuple(additive.draw(noise) for _ in range(48_000))


@pytest.mark.parametrize(("stretch", "same"), STRETCHES)
@pytest.mark.parametrize("loss", [Loss("1"), Loss.zcdp("0.5"), Loss("1", delta="0.1")], ids=str)
def test_calibrated_noise_is_drawn_at_its_own_scale(loss, stretch, same):
    additive = calibrate(2, loss, step=Fraction(1))
    assert fits(draws_of(additive), law_of(additive.law, float(additive.scale) * stretch)) is same


@lru_cache
def heads_of_120_000(exponent: Fraction) -> int:
    noise = system_noise()
    return sum(noise.flip(exponent) for _ in range(120_000))


@pytest.mark.parametrize(("stretch", "same"), STRETCHES)
@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(1), Fraction(7, 2)], ids=str)
def test_a_coin_shows_heads_as_often_as_it_should(exponent, stretch, same):
    pvalue = binomtest(heads_of_120_000(exponent), 120_000, math.exp(-float(exponent) * stretch)).pvalue
    assert bool(pvalue > ALARM) is same


@pytest.mark.parametrize("bound", [2, 3, 7, 100])
def test_below_is_uniform(bound):
    sample = [system_noise().below(bound) for _ in range(20_000)]
    assert fits(sample, dict.fromkeys(range(bound), 1 / bound))
    assert not fits(sample, dict.fromkeys(range(bound + 1), 1 / (bound + 1)))


# Private choice


def flipping_law(scores: tuple[int, ...], epsilon: float, sensitivity: int) -> dict[object, float]:
    """Permute-and-flip, by walking through every permutation."""
    coins = [math.exp(epsilon * (score - max(scores)) / (2 * sensitivity)) for score in scores]
    law = dict.fromkeys(range(len(scores)), 0.0)
    for order in itertools.permutations(range(len(scores))):
        still = 1 / math.factorial(len(scores))
        for index in order:
            law[index] += still * coins[index]
            still *= 1 - coins[index]
    return law


def exponential_law(scores: tuple[int, ...], epsilon: float, sensitivity: int) -> dict[object, float]:
    weights = [math.exp(epsilon * (score - max(scores)) / (2 * sensitivity)) for score in scores]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


def peeled(law: Callable[..., dict[object, float]], scores: tuple[int, ...], epsilon: float) -> dict[object, float]:
    pairs = {}
    for first, chance in law(scores, epsilon, 2).items():
        left = [index for index in range(len(scores)) if index != first]
        for place, after in law(tuple(scores[index] for index in left), epsilon, 2).items():
            pairs[first, left[place]] = chance * after
    return pairs


CHOICES = {permute_and_flip: flipping_law, exponential: exponential_law}
SCORES = [(0, 3), (5, 5, 1), (-4, 0, 2, 3), (10, 0, 9, 7, 9)]


@lru_cache
def choices(choose: Callable[..., int], scores: tuple[int, ...]) -> tuple[int, ...]:
    noise = system_noise()
    return tuple(choose(scores, sensitivity=2, epsilon=Fraction(3, 2), noise=noise) for _ in range(32_000))


@pytest.mark.parametrize(("stretch", "same"), [(0.75, False), (1.0, True), (1.33, False)])
@pytest.mark.parametrize("scores", SCORES, ids=str)
@pytest.mark.parametrize("choose", CHOICES, ids=lambda choose: choose.__name__)
def test_a_private_choice_has_the_law_it_claims(choose, scores, stretch, same):
    assert fits(choices(choose, scores), CHOICES[choose](scores, 1.5 * stretch, 2)) is same


@pytest.mark.parametrize("choose", CHOICES, ids=lambda choose: choose.__name__)
def test_the_two_choices_have_different_laws(choose):
    laws = {other: fits(choices(choose, (0, 3)), law((0, 3), 1.5, 2)) for other, law in CHOICES.items()}
    assert laws == {other: other is choose for other in CHOICES}


def largest_each(epsilon: float, delta: float, h: int) -> float:
    """The root of 8ρ/h, ρ as a supremum over Rényi orders of what [CKS20, Prop 12] leaves."""
    beyond = np.logspace(-4, 4, 400_001)
    rho = (epsilon + np.log1p(1 / beyond) + (math.log(delta) + np.log1p(beyond)) / beyond) / (1 + beyond)
    return math.sqrt(8 * rho.max() / h)


SHARES = {
    permute_and_flip: (Fraction(3, 2), lambda: 3 / 2),
    exponential: (epsilon_each(Fraction(3), Fraction(1, 1000), 2), lambda: largest_each(3, 1e-3, 2)),
}


@lru_cache
def pairs(choose: Callable[..., int]) -> tuple[tuple[int, ...], ...]:
    each, noise = SHARES[choose][0], system_noise()
    return tuple(tuple(peel(choose, (4, 0, 2), 2, sensitivity=2, epsilon=each, noise=noise)) for _ in range(12_000))


@pytest.mark.parametrize(("stretch", "same"), [(0.75, False), (1.0, True), (1.33, False)])
@pytest.mark.parametrize("choose", SHARES, ids=lambda choose: choose.__name__)
def test_each_of_two_choices_spends_its_share(choose, stretch, same):
    share = SHARES[choose][1]()
    assert fits(pairs(choose), peeled(CHOICES[choose], (4, 0, 2), share * stretch)) is same
