"""Scales are rounded up and losses down, to the last digit: a guard that is missing is off by one part in 2^40 or less,
which no law shows. So each is compared in whole numbers."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from wallflower.mechanisms import calibrate, calibrate_cube, gaussian_scale, smooth_additive
from wallflower.mechanisms.additive import smooth_beta
from wallflower.neighbours.noisy_count import GAP, STEP, count_noise, crowding_sensitivity, gap_steps
from wallflower.noise import round_up
from wallflower.privacy import Loss, zcdp_of_epsilon
from wallflower.queries.subspaces.choice import draws, rho_of
from wallflower.queries.watch import Watch
from wallflower.queries.watch.detectors import GaussianPerStep

TINY = Fraction(1, 10**12)  # by more than this nothing is rounded
AMOUNTS = [Fraction(top, bottom) for top in (1, 2, 3, 7) for bottom in (3, 7, 10, 11, 997)]
MARGIN = Fraction(9, 10**10)  # nearly the part in 10^9 by which sums of floats are distrusted


@pytest.mark.parametrize("amount", AMOUNTS)
def test_scales_are_rounded_up_and_hardly(amount: Fraction) -> None:
    for sensitivity in (1, 3, 385, 10**6 + 1):
        wanted = sensitivity / amount
        assert wanted <= Fraction(round_up(wanted)) <= wanted * (1 + TINY)
        for made in (
            calibrate(sensitivity, Loss(amount), step=STEP),
            calibrate_cube(3, sensitivity, Loss(amount), step=STEP),
        ):
            assert wanted <= made.scale <= wanted * (1 + TINY)
        square = sensitivity**2 / (2 * amount)
        found = calibrate(sensitivity, Loss.zcdp(amount), step=STEP).scale ** 2
        assert square <= found <= square * (1 + TINY)
        bound = math.nextafter(float(sensitivity), math.inf)
        smooth = 2 * Fraction(bound) / (amount * STEP)
        assert smooth <= smooth_additive(bound, amount, step=STEP).scale <= smooth * (1 + TINY)


@pytest.mark.parametrize("amount", AMOUNTS)
@pytest.mark.parametrize("mechanism", ["exponential", "permute-and-flip"])
def test_choices_together_spend_no_more_than_their_loss(amount: Fraction, mechanism: str) -> None:
    for top in (1, 2, 3, 7):
        spent = rho_of(draws(mechanism, Loss.zcdp(amount), top), top)
        assert amount * (1 - Fraction(1, 10**8)) <= spent <= amount
        assert draws(mechanism, Loss(amount), top).each * top == amount


def test_what_an_epsilon_and_a_delta_become_is_rounded_down() -> None:
    for spread, level, details in (
        (1, "person", {"steps": 1}),
        (2, "person", {"steps": 2}),
        (3, "window", {"window": 3}),
    ):
        query = Watch(threshold=1.0, low=0.0, high=1.0, level=level, loss=Loss("1", delta="1/100"), **details)  # type: ignore[arg-type]
        detector = query.detector(query.statistic_on(1))
        assert isinstance(detector, GaussianPerStep)
        spent = detector.loss.rho * spread
        right = Fraction(zcdp_of_epsilon(1.0, 0.01))
        assert right * (1 - Fraction(1, 10**8)) <= spent <= right * (1 - MARGIN)


@pytest.mark.parametrize(("sensitivity", "epsilon", "delta"), [(1, "1", "1/100"), (3, "1/2", "1/1000")])
def test_gaussian_noise_at_delta_keeps_a_margin(sensitivity: int, epsilon: str, delta: str) -> None:
    """The leak of its scale, summed with 40 digits."""
    scale = gaussian_scale(sensitivity, Fraction(epsilon), Fraction(delta))
    with localcontext() as digits:
        digits.prec = 40
        wide = 2 * Decimal(scale.numerator) ** 2 / Decimal(scale.denominator) ** 2
        loss = Decimal(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
        places = range(-math.ceil(15 * scale), math.ceil(15 * scale) + 1)
        weights = {place: (-Decimal(place**2) / wide).exp() for place in range(places[0], places[-1] + sensitivity + 1)}
        excess = sum(
            max(Decimal(0), weights[place] - loss.exp() * weights[place + sensitivity]) for place in places
        ) / sum(weights[place] for place in places)
    leak = Fraction(excess)
    assert leak * (1 + MARGIN) <= Fraction(delta)
    assert leak >= Fraction(delta) * (1 - Fraction(1, 10**4))


def test_the_solver_pays_for_its_gap() -> None:
    """A certified value is below the extension by GAP at most, on either table: two gaps are one step of the grid."""
    assert 2 * Fraction(GAP) <= STEP
    assert [gap_steps(n, 8, 7) for n in (0, 9_999, 10_000, 10**9)] == [0, 0, 8 * 128 // 32, 8 * 128 // 32]
    assert gap_steps(10**9, 7, 7) == 0
    assert count_noise(7, Loss("1"), gap=32).scale >= 8 * 128 + 32 + 1
    assert count_noise(2, Loss("1")).scale >= 3 * 128 + 1
    assert [crowding_sensitivity(neighbours) for neighbours in (1, 4, 20)] == [
        (1 + 2 + 2) * 128 + 4,  # four values of the extension, each with a step for the solver
        (4 + 5 + 2) * 128 + 4,
        (20 + 25 + 2) * 128 + 4,
    ]


def test_a_smooth_bound_may_be_off_by_its_rounding() -> None:
    """Of the largest β that keeps δ, found here without a margin, a part in 10^9 and 1e-12 are left."""
    epsilon, delta = Fraction(1), Fraction(1, 10**6)
    beta = smooth_beta(epsilon, delta, least=1, step=Fraction(1))

    def leak(reach: float) -> float:
        growth = 0.5 / reach
        fraction = math.expm1(-0.5 * growth) / math.expm1(-0.5 * (1 + growth))
        return fraction * (math.exp(-reach) + math.exp(-2 * reach)) / (1 + math.exp(-0.5))

    low, high = 1.0, 20.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if leak(middle) <= float(delta) else (middle, high)
    largest = math.log1p(0.5 / high)
    assert largest * (1 - 2e-9) - 1e-11 < beta <= largest * (1 - 0.9e-9) - 0.9e-12
