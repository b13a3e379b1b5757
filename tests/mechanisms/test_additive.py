"""Calibrated and smooth noise, against direct summation."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.audit.answers import sum_law
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import (
    Additive,
    additive,
    calibrate,
    calibrate_counts,
    epsilon_each,
    epsilon_of_range,
    gaussian_scale,
    smooth_additive,
    smooth_beta,
)
from wallflower.mechanisms.additive import counts_scale
from wallflower.noise import round_up
from wallflower.privacy import Kind, Loss, Neighbours

ONE = Fraction(1)
LOG_DENSITIES = {"laplace": lambda z, scale: -np.abs(z) / scale, "gaussian": lambda z, scale: -(z**2) / (2 * scale**2)}


def law_of(name: str, scale: float, shift: int = 0, reach: int | None = None) -> np.ndarray:
    reach = reach or math.ceil(60 * scale) + 10
    centred = np.exp(LOG_DENSITIES[name](np.arange(-2 * reach, 2 * reach + 1.0), scale))
    at = np.exp(LOG_DENSITIES[name](np.arange(-reach, reach + 1.0) - shift, scale))
    return at / centred.sum()


def divergence(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The smallest δ for which `one` hides behind `other` at this ε."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


# What is said about the noise


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0, 7.5, 200.0, 300.0])
@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_figures_match_direct_summation(name, scale):
    law, step = law_of(name, scale), Fraction(1, 4)
    at = np.arange(len(law)) - len(law) // 2
    additive = Additive(name, Fraction(scale), step)
    assert additive.deviation() == pytest.approx(math.sqrt(law @ at**2) / 4, rel=1e-9)
    assert additive.mean_error() == pytest.approx(law @ np.abs(at) / 4, rel=1e-9)
    for steps in (-900, -3, -1, 0, 1, 2, 3, 40, 900):
        expected = law[at >= steps].sum()
        assert additive.upper_tail(steps / 4) == pytest.approx(expected, rel=1e-7, abs=1e-15)
        assert additive.upper_tail(steps / 4 - 0.1) == pytest.approx(expected, rel=1e-7, abs=1e-15)


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 0.999])
@pytest.mark.parametrize("scale", [0.01, 0.4, 1.0, 33.3, 400.0])
@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_half_width_is_the_smallest_that_covers(name, scale, confidence):
    law = law_of(name, scale)
    at = np.abs(np.arange(len(law)) - len(law) // 2)
    width = int(Additive(name, Fraction(scale), Fraction(1, 2)).half_width(confidence) * 2)
    assert law[at <= width].sum() >= confidence - 1e-9
    assert width == 0 or law[at < width].sum() < confidence + 1e-9


@pytest.mark.parametrize("scale", [0.01, 1.0, 255.0, 257.0, 1e4, 1e9, 2.0**51])
@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_figures_are_finite_and_ordered_at_every_scale(name, scale):
    additive = Additive(name, Fraction(scale), Fraction(1, 128))
    assert 0 <= additive.mean_error() <= additive.deviation() < math.inf
    assert 0 <= additive.half_width(0.5) <= additive.half_width(0.95) <= additive.half_width(0.999) < 40 * scale
    tails = [additive.upper_tail(x * scale / 128) for x in (-800, -2, -1, 0, 1e-12, 1, 2, 5, 30, 800)]
    assert tails == sorted(tails, reverse=True)
    assert all(0 <= tail <= 1 for tail in tails)


@pytest.mark.parametrize("name", LOG_DENSITIES)
def test_large_scales_approach_the_continuous_law(name):
    additive = Additive(name, Fraction(10**9), ONE)
    deviation, mean, width = {
        "laplace": (math.sqrt(2), 1.0, math.log(20)),
        "gaussian": (1.0, math.sqrt(2 / math.pi), 1.959963984540054),
    }[name]
    assert additive.deviation() == pytest.approx(deviation * 1e9, rel=1e-8)
    assert additive.mean_error() == pytest.approx(mean * 1e9, rel=1e-8)
    assert additive.half_width() == pytest.approx(width * 1e9, rel=1e-8)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_a_confidence_outside_zero_to_one_is_refused(confidence):
    with pytest.raises(ParameterError, match="confidence"):
        Additive("laplace", ONE, ONE).half_width(confidence)


# Calibration


@given(
    st.integers(min_value=0, max_value=10**6),
    st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**9),
)
def test_a_pure_loss_is_met_exactly_and_by_the_scale_the_sampler_uses(sensitivity, epsilon):
    additive = calibrate(sensitivity, Loss(epsilon), step=ONE)
    assert additive.law == "laplace"
    assert max(1, sensitivity) / additive.scale <= epsilon
    assert max(1, sensitivity) / (additive.scale * (1 - Fraction(1, 10**12))) > epsilon
    assert Fraction(round_up(additive.scale)) == additive.scale


@given(
    st.integers(min_value=0, max_value=10**6),
    st.fractions(min_value=Fraction(1, 10**6), max_value=50, max_denominator=10**9),
)
def test_a_zcdp_loss_is_met_exactly_and_by_the_scale_the_sampler_uses(sensitivity, rho):
    additive = calibrate(sensitivity, Loss.zcdp(rho), step=ONE)
    square = Fraction(max(1, sensitivity)) ** 2
    assert additive.law == "gaussian"
    assert square <= 2 * rho * additive.scale**2
    assert square > 2 * rho * (additive.scale * (1 - Fraction(1, 10**12))) ** 2
    assert Fraction(round_up(additive.scale)) == additive.scale


GAUSSIANS = [
    (sensitivity, Fraction(epsilon), Fraction(delta))
    for sensitivity in (1, 3, 40)
    for epsilon in ("1/10", "1", "4", "12")
    for delta in ("1/10", "1/1000", "1/10000000")
]


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), GAUSSIANS, ids=str)
def test_the_gaussian_scale_is_enough_for_every_shift_and_hardly_more(sensitivity, epsilon, delta):
    scale = float(gaussian_scale(sensitivity, epsilon, delta))

    def leaks(stretch: float) -> list[float]:
        reach = math.ceil(45 * scale) + 2 * sensitivity
        centred = law_of("gaussian", scale * stretch, 0, reach)
        shifts = range(1, sensitivity + 1)
        return [
            divergence(centred, law_of("gaussian", scale * stretch, shift, reach), float(epsilon)) for shift in shifts
        ]

    found = leaks(1.0)
    assert found == sorted(found)
    assert max(found) <= delta
    assert max(leaks(0.98)) > delta


@pytest.mark.parametrize("scale", [60.0, 255.0, 700.0])
@pytest.mark.parametrize("sensitivity", [1, 50, 2000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1000), Fraction(1, 4), Fraction(6)], ids=str)
def test_the_integral_is_a_tight_bound_of_the_sum(scale, sensitivity, epsilon):
    edge = epsilon * Fraction(scale) ** 2 / sensitivity - Fraction(sensitivity, 2)
    summed = additive._summed_leak(scale, sensitivity, edge)
    integrated = additive._integrated_leak(scale, sensitivity, edge)
    assert summed <= integrated <= summed * (1 + 8 * (1 + abs(edge) / scale) / scale) + 1e-300


def continuous_scale(epsilon: float, delta: float) -> float:
    """[BW18, Thm 8] by numerical integration of the excess, not by differences of tails."""
    at = np.linspace(-30, 30, 600_001)
    low, high = 0.01, 100.0
    for _ in range(30):
        middle = (low + high) / 2
        excess = np.exp(-(at**2) / 2) - np.exp(epsilon - (at + 1 / middle) ** 2 / 2)
        leak = np.maximum(excess, 0).sum() * (at[1] - at[0]) / math.sqrt(2 * math.pi)
        low, high = (low, middle) if leak <= delta else (middle, high)
    return high


@pytest.mark.parametrize(("epsilon", "delta"), [("0.1", "1e-5"), ("1", "1e-5"), ("9", "1e-9")])
def test_the_gaussian_scale_of_a_fine_grid_is_that_of_the_continuous_law(epsilon, delta):
    continuous = continuous_scale(float(epsilon), float(delta))
    for sensitivity in (10**5, 10**9):
        scale = gaussian_scale(sensitivity, Fraction(epsilon), Fraction(delta)) / sensitivity
        assert continuous * (1 - 1e-6) <= scale <= continuous * (1 + 1e-4)


def test_a_gaussian_scale_is_found_quickly():
    gaussian_scale(2, ONE, Fraction(1, 10**5))
    started = time.process_time()
    for sensitivity in (1, 19, 83, 10**4, 10**8):
        gaussian_scale(sensitivity, Fraction(7, 9), Fraction(1, 10**7))
    assert time.process_time() - started < 5 * 0.2  # seconds of work; 50 ms each on a quiet machine


@pytest.mark.parametrize(
    ("loss", "law"),
    [
        (Loss("0.1", delta="1e-12"), "laplace"),
        (Loss("0.1", delta="0.1"), "gaussian"),
        (Loss("20", delta="1e-3"), "laplace"),
        (Loss("1", delta=Fraction(1, 10**150)), "laplace"),
    ],
    ids=str,
)
def test_an_approximate_loss_gets_the_law_that_deviates_less(loss, law):
    additive = calibrate(5, loss, step=ONE)
    assert additive.law == law
    assert additive.deviation() <= calibrate(5, Loss(loss.epsilon), step=ONE).deviation()


@pytest.mark.parametrize("loss", [Loss("1"), Loss("1", delta="1e-6"), Loss.zcdp("0.1")], ids=str)
def test_a_constant_is_treated_as_if_it_could_move_by_one_step(loss):
    assert calibrate(0, loss, step=ONE) == calibrate(1, loss, step=ONE)


@pytest.mark.parametrize("kind", [Kind.OUTPUT_CONSTRAINED, Kind.METRIC])
def test_a_loss_without_a_theorem_is_refused(kind):
    with pytest.raises(LossMismatch, match="no theorem"):
        calibrate(1, Loss("1", kind=kind, neighbours=Neighbours.READING), step=ONE)


@pytest.mark.parametrize(
    ("sensitivity", "loss", "step"),
    [
        (1, Loss("0"), ONE),
        (1, Loss("0", delta="1e-6"), ONE),
        (1, Loss.zcdp("0"), ONE),
        (-1, Loss("1"), ONE),
        (2**52, Loss("1"), ONE),
        (10**400, Loss.zcdp("1"), ONE),
        (1, Loss("1"), Fraction(0)),
        (1, Loss("1"), Fraction(-1)),
        (2**51, Loss("1e-9"), ONE),
        (2**51, Loss("1e-9", delta="1e-9"), ONE),
        (2**51, Loss.zcdp("1e-99"), ONE),
    ],
    ids=str,
)
def test_an_impossible_calibration_is_refused(sensitivity, loss, step):
    with pytest.raises(ParameterError):
        calibrate(sensitivity, loss, step=step)


@pytest.mark.parametrize(
    "delta", [Fraction(0), ONE, Fraction(2), Fraction(1, 10**101)], ids=lambda delta: f"{float(delta):g}"
)
def test_a_delta_out_of_reach_is_refused(delta):
    for ask in (
        lambda: gaussian_scale(1, ONE, delta),
        lambda: smooth_beta(ONE, delta, least=1, step=ONE),
        lambda: epsilon_each(ONE, delta, 2),
    ):
        with pytest.raises(ParameterError, match="delta"):
            ask()


# Noise that follows a smooth bound

SMOOTH = [(Fraction(e), Fraction(d)) for e in ("1/5", "1", "5", "20", "40") for d in ("1/100", "1/1000000")]
STEPS = [Fraction(1), Fraction(1, 8)]


def smooth_leak(epsilon: Fraction, beta: float, step: Fraction, stretch: float = 1.0) -> float:
    """The worst δ over bounds, their neighbours' bounds, and shifts that the bounds allow, by direct summation."""
    worst = 0.0
    for bound, direction, share in itertools.product((1.0, 1.7, 6.0), (-1, -0.5, 1), (0, 0.5, 1)):
        near = max(1.0, bound * math.exp(direction * beta))
        scales = [stretch * float(smooth_additive(one, epsilon, step=step).scale) for one in (bound, near)]
        shift = math.floor(share * min(bound, near) / step)
        reach = math.ceil(40 * max(scales)) + 2 * shift
        for one, other in itertools.permutations(scales):
            laws = law_of("laplace", one, 0, reach), law_of("laplace", other, shift, reach)
            worst = max(worst, divergence(*laws, float(epsilon)))
    return worst


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), SMOOTH, ids=str)
def test_smooth_noise_keeps_its_delta_and_a_broken_one_does_not(epsilon, delta, step):
    beta = smooth_beta(epsilon, delta, least=1, step=step)
    assert smooth_leak(epsilon, beta, step) <= delta
    assert smooth_leak(epsilon, 3 * beta, step) > delta
    assert smooth_leak(epsilon, beta, step, stretch=0.5) > delta


@pytest.mark.parametrize("step", STEPS, ids=str)
@pytest.mark.parametrize("epsilon", [Fraction(20), Fraction(40)], ids=str)
def test_the_published_beta_is_not_enough_for_a_large_epsilon(epsilon, step):
    published = float(epsilon) / (2 * math.log(2e6))
    assert smooth_leak(epsilon, published, step) > 5e-6


def test_beta_grows_with_epsilon_delta_and_the_fineness_of_the_grid():
    def beta(epsilon: str = "1", delta: str = "1/1000000", least: int = 1, step: str = "1") -> float:
        return smooth_beta(Fraction(epsilon), Fraction(delta), least=least, step=Fraction(step))

    assert beta("1/2") < beta("1") < beta("2") < 1
    assert beta(delta="1/1000000000") < beta() < beta(delta="1/1000")
    assert beta() < beta(step="1/2") == pytest.approx(beta(least=2))
    assert beta(delta="99/100") <= 0.5


@pytest.mark.parametrize(("least", "step"), [(0, ONE), (-1, ONE), (1, Fraction(0))])
def test_a_bound_that_may_vanish_is_refused(least, step):
    with pytest.raises(ParameterError, match="least, step"):
        smooth_beta(ONE, Fraction(1, 100), least=least, step=step)


def test_an_epsilon_too_small_for_smooth_noise_is_refused():
    with pytest.raises(ParameterError, match="too small for smooth noise"):
        smooth_beta(Fraction(1, 10**12), Fraction(1, 10**6), least=1, step=ONE)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1", "1/1000"), ("1", "1/1000000"), ("1/2", "1/10000"), ("2", "1/1000")]
)
def test_noise_of_a_bound_that_grows_as_it_may_leaks_no_more_than_delta(epsilon: str, delta: str) -> None:
    """A scale that is e^β wider: what it puts beyond e^(ε/2) times the narrower one, added up."""
    step, half = Fraction(1, 16), float(Fraction(epsilon)) / 2
    beta = smooth_beta(Fraction(epsilon), Fraction(delta), least=1, step=step)
    narrow = float(smooth_additive(1.0, Fraction(epsilon), step=step).scale)
    at = np.abs(np.arange(-4000, 4001))
    laws = [np.exp(-at / scale) for scale in (narrow * math.exp(beta), narrow)]
    wide, close = (law / law.sum() for law in laws)
    beyond = float(np.maximum(0.0, wide - math.exp(half) * close).sum())
    assert 0.7 < beyond / float(Fraction(delta)) <= 1


# Many counts


def vector_leak(scale, numbers, epsilon):
    """The δ of the definition where every one of a few numbers moves by 1, added up over all vectors of noise."""
    at = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    grid = np.array(list(itertools.product(at.tolist(), repeat=numbers)), dtype=np.float64)
    here, there = (np.exp(-((grid + move) ** 2).sum(axis=1) / (2 * scale**2)) for move in (0, 1))
    total = np.exp(-((at / scale) ** 2) / 2).sum() ** numbers
    return float(np.maximum(here - math.exp(epsilon) * there, 0).sum() / total)


@pytest.mark.parametrize(("numbers", "epsilon", "delta"), [(1, "0.7", "1e-3"), (2, "1.5", "1e-4"), (3, "3", "1e-6")])
def test_noise_on_counts_keeps_delta_by_the_definition_and_no_less_would(numbers, epsilon, delta):
    scale = float(counts_scale(numbers, Fraction(epsilon), Fraction(delta)))
    assert scale > additive.MIN_COUNTS_SCALE
    assert vector_leak(scale, numbers, float(epsilon)) <= float(delta)
    assert vector_leak(0.98 * scale, numbers, float(epsilon)) > float(delta)


@pytest.mark.parametrize("numbers", [2, 40, 500])
def test_sums_of_discrete_gaussian_noise_are_nearly_discrete_gaussian(numbers):
    """The factor between the two laws, at the least scale, as far as floats show it."""
    at, chances = sum_law(additive.MIN_COUNTS_SCALE, numbers)
    wide = additive.MIN_COUNTS_SCALE * math.sqrt(numbers)
    law = np.exp(-((at / wide) ** 2) / 2)
    near = np.abs(at) < 5 * wide
    assert chances[near] / (law / law.sum())[near] == pytest.approx(1, abs=1e-10)


@given(st.integers(1, 2**14), st.fractions(Fraction(1, 10**4), 10))
def test_squares_of_counts_add_up_to_rho(moved, rho):
    law = calibrate_counts(moved, Loss.zcdp(rho))
    assert moved / (2 * law.scale**2) <= rho
    assert moved / (2 * law.scale**2) >= rho * (1 - Fraction(1, 10**9))
    assert epsilon_of_range(rho) ** 2 / 8 <= rho


def test_counts_at_delta_have_the_smaller_of_two_noises():
    wide, narrow = (calibrate_counts(moved, Loss("0.5", delta="1e-6")) for moved in (100, 1))
    assert (wide.law, narrow.law) == ("gaussian", "laplace")
    for moved in (0, 2**14 + 1):
        with pytest.raises(ParameterError):
            calibrate_counts(moved, Loss("1"))
