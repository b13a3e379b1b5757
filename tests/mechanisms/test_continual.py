"""Running totals: exact sums, column lengths checked against every pair, and the deviations of the literature."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from wallflower.audit import ScriptedNoise
from wallflower.errors import ParameterError
from wallflower.mechanisms import MAX_PERIODS, Factorisation
from wallflower.noise import system_noise
from wallflower.privacy import Loss


def matrix_of(periods):
    """C, written out."""
    steps = [int(step) for step in Factorisation(periods).steps]
    return [[steps[row - column] if row >= column else 0 for column in range(periods)] for row in range(periods)]


@pytest.mark.parametrize("periods", [1, 2, 3, 4, 7, 16, 17, 33])
def test_the_squares_are_the_largest_over_all_pairs_of_columns(periods):
    columns = list(zip(*matrix_of(periods), strict=True))
    lengths = [sum(step**2 for step in column) for column in columns]
    apart = [sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) for one in columns for other in columns]
    assert Factorisation(periods).square == max(lengths)
    assert Factorisation(periods, moves=True).square == max(*lengths, *apart)


@pytest.mark.parametrize("periods", [1, 2, 5, 40])
def test_the_factor_times_counts_is_exact_and_can_be_computed_period_by_period(periods):
    counts = np.random.default_rng(periods).integers(0, 2**40, periods)
    factors = Factorisation(periods)
    whole = [sum(a * int(b) for a, b in zip(row, counts, strict=True)) for row in matrix_of(periods)]
    assert factors.spread(counts).tolist() == whole
    assert [int(factors.spread(counts[:end])[-1]) for end in range(1, periods + 1)] == whole


@pytest.mark.parametrize("periods", [1, 3, 365, 8760])
def test_without_noise_the_totals_are_the_running_sums(periods):
    counts = np.random.default_rng(1).integers(0, 100, periods)
    factors = Factorisation(periods)
    hidden = factors.hide(counts, Loss.zcdp("1"), ScriptedNoise())
    assert np.round(factors.totals(hidden)).astype(np.int64).tolist() == np.cumsum(counts).tolist()
    assert np.abs(factors.totals(hidden) - np.cumsum(counts)).max() < 1e-6


def test_the_scale_covers_the_square_and_no_more():
    for periods, moves, rho in ((3, True, "1/7"), (365, False, "0.02"), (8760, True, "0.1")):
        factors = Factorisation(periods, moves=moves)
        scale, needed = factors.law(Loss.zcdp(rho)).scale, factors.square / (2 * Fraction(rho))
        assert needed <= scale**2 <= needed * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize(
    ("periods", "kept", "moved", "kept_sums", "moved_sums"),
    [(365, 2.945, 3.748, 19.105, 27.019), (8760, 3.956, 5.186, 93.595, 132.363)],
)
def test_deviations_are_those_of_the_factorisation_and_far_below_those_of_sums(
    periods, kept, moved, kept_sums, moved_sums
):
    one, both = Factorisation(periods), Factorisation(periods, moves=True)
    ideal = sum((math.comb(2 * k, k) / 4**k) ** 2 if k < 500 else 1 / (math.pi * (k + 0.25)) for k in range(periods))
    assert one.deviation(periods) == pytest.approx(kept, abs=1e-3)
    assert ideal <= one.deviation(periods) <= ideal * 1.001  # what rounding to a grid costs
    assert both.deviation(periods) == pytest.approx(moved, abs=2e-3)
    assert one.deviation_of_sums(periods) == pytest.approx(kept_sums, abs=1e-3)
    assert both.deviation_of_sums(periods) == pytest.approx(moved_sums, abs=1e-3)


def test_noise_of_the_totals_has_the_stated_deviation_and_stays_within_its_width():
    """2,000 runs of 24 periods: a deviation is off by 1.6 % (one σ), so bounds of 10 % fail once in 10^9."""
    periods, runs, loss = 24, 2_000, Loss.zcdp("1/2")
    factors, zeros = Factorisation(periods, moves=True), np.zeros(24, dtype=np.int64)
    totals = np.array([factors.totals(factors.hide(zeros, loss, system_noise())) for _ in range(runs)])
    stated = [factors.deviation(period) for period in range(1, periods + 1)]  # a count deviates by 1 at ρ = 1/2
    shown = totals.std(axis=0) / stated
    assert ((shown > 0.9) & (shown < 1.1)).all()
    assert not ((shown / 0.8 > 0.9) & (shown / 0.8 < 1.1)).any(), "a fifth less noise would be noticed"
    widths = np.array(factors.half_widths(loss, 0.95))
    missed = (np.abs(np.floor(totals + 0.5)) > widths).mean(axis=0)
    assert missed.max() < 0.05 + 6 * math.sqrt(0.05 * 0.95 / runs)
    assert missed.min() > 0.005


@pytest.mark.parametrize("periods", [0, MAX_PERIODS + 1])
def test_a_number_of_periods_that_is_out_of_range_is_refused(periods):
    with pytest.raises(ParameterError, match="periods"):
        Factorisation(periods)
