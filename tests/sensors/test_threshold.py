"""A threshold from noisy shares: the sums are right, the noise is what it should be, the gap is found."""

from fractions import Fraction

import numpy as np
import pytest
from sensor_laws import fits

from wallflower.errors import DataError, ParameterError
from wallflower.noise import system_noise
from wallflower.sensors.comparison import deal
from wallflower.sensors.threshold import (
    FALSE_OCCUPANCY,
    Gap,
    add_noise,
    bin_edges,
    choose_gap,
    combine_counts,
    occupancy_cut,
    share_counts,
)


def two_laplaces(scale, reach):
    at = np.arange(-reach, reach + 1)
    one = np.exp(-np.abs(at) / float(scale))
    one /= one.sum()
    both = np.convolve(one, one)
    return dict(zip(range(-2 * reach, 2 * reach + 1), both.tolist(), strict=True))


def test_shares_add_up_to_the_histogram():
    scores = np.random.default_rng(0).integers(0, 128, 3000)
    keys, levels = deal(scores, 8), bin_edges(8, 16)
    total = combine_counts(share_counts(0, keys[0], levels), share_counts(1, keys[1], levels))
    assert np.array_equal(total, np.histogram(scores, bins=[*levels, 128])[0])


def test_batches_may_be_added():
    levels = bin_edges(6, 8)
    first, second = deal([1, 9, 30], 6), deal([2, 31], 6)
    shares = [
        share_counts(party, first[party], levels) + share_counts(party, second[party], levels) for party in (0, 1)
    ]
    assert np.array_equal(combine_counts(*shares), np.histogram([1, 9, 30, 2, 31], bins=[*levels, 32])[0])


@pytest.mark.slow
@pytest.mark.parametrize(("stretch", "same"), [(0.9, False), (1.0, True), (1.1, False)])
def test_each_server_adds_the_noise_it_should(stretch, same):
    drawn = add_noise(np.zeros(60_000, dtype=np.uint32), "1/2", system_noise()).view(np.int32)
    scale = 4 * stretch
    weights = np.exp(-np.abs(np.arange(-300, 301)) / scale)
    law = dict(zip(range(-300, 301), (weights / weights.sum()).tolist(), strict=True))
    assert fits(drawn.tolist(), law) is same


def test_noise_is_asked_for_every_bin_at_two_over_epsilon():
    class Noted:
        def __init__(self):
            self.scales = []

        def laplace(self, scale):
            self.scales.append(scale)
            return -3

    noise = Noted()
    assert combine_counts(add_noise(np.array([5, 0], np.uint32), "0.1", noise), np.zeros(2, np.uint32)).tolist() == [
        2,
        -3,
    ]
    assert noise.scales == [Fraction(20)] * 2


@pytest.mark.parametrize("epsilon", ["0.1", "1/2", "1", "4"])
@pytest.mark.parametrize("bins", [2, 64])
def test_the_cut_is_the_smallest_that_empty_bins_stay_below(epsilon, bins):
    cut = occupancy_cut(epsilon, bins)
    law = two_laplaces(2 / Fraction(epsilon), 1500)
    beyond = sum(chance for value, chance in law.items() if value > cut)
    reached = sum(chance for value, chance in law.items() if value >= cut)
    assert bins * beyond <= FALSE_OCCUPANCY * (1 + 1e-9)
    assert bins * reached > FALSE_OCCUPANCY


def test_the_cut_is_that_of_the_continuous_law_where_noise_is_large():
    scale, cut = 200.0, occupancy_cut("0.01", 64)
    assert 64 * 0.5 * (1 + cut / (2 * scale)) * np.exp(-cut / scale) == pytest.approx(FALSE_OCCUPANCY, rel=0.02)


def test_the_widest_gap_between_crowds_is_chosen():
    levels = bin_edges(8, 16)  # of 8 scores each
    seen = [900, 800, 5, 700, 3, -4, 2, 600, 1, 0, 2, 0, -1, 0, 0, 0]
    assert choose_gap(seen, levels, "1", bits=8) == Gap(start=32, stop=56, bounded=True)
    assert choose_gap(seen, levels, "1", bits=8).threshold == 44


def test_without_a_crowd_beyond_the_gap_reaches_to_the_end():
    assert choose_gap([900, 0, 0, 0], bin_edges(6, 4), "1", bits=6) == Gap(start=8, stop=32, bounded=False)
    assert choose_gap([0, 900, 0, 0], bin_edges(6, 4), "1", bits=6) == Gap(start=16, stop=32, bounded=False)
    assert choose_gap([0, 0, 0, 900], bin_edges(6, 4), "1", bits=6) is None
    assert choose_gap([0, 0, 0, 0], bin_edges(6, 4), "1", bits=6) is None
    assert choose_gap([900] * 4, bin_edges(6, 4), "1", bits=6) is None


@pytest.mark.slow
def test_from_keys_to_a_threshold_that_separates():
    draw = np.random.default_rng(4)
    scores = np.concatenate([draw.integers(0, 300, 18_000), draw.integers(1200, 1400, 2000)])
    keys, levels, noise = deal(scores, 12), bin_edges(12), system_noise()
    shares = [add_noise(share_counts(party, keys[party], levels), "1", noise) for party in (0, 1)]
    gap = choose_gap(combine_counts(*shares), levels, "1", bits=12)
    assert gap.bounded
    assert 300 <= gap.threshold <= 1200


@pytest.mark.parametrize("levels", [(0,), (1, 2), (0, 5, 5), (0, 7, 3)])
def test_thresholds_rise_from_zero(levels):
    with pytest.raises(ParameterError, match="rising"):
        share_counts(0, deal([3], 6)[0], levels)
    with pytest.raises(ParameterError, match="rising"):
        choose_gap([0] * len(levels), levels, "1", bits=6)


def test_other_refusals():
    with pytest.raises(ParameterError, match="fit"):
        bin_edges(6, 33)
    with pytest.raises(ParameterError, match="epsilon"):
        add_noise(np.zeros(2, np.uint32), "0", system_noise())
    with pytest.raises(ParameterError, match="miss"):
        occupancy_cut("1", 64, 0.0)
    with pytest.raises(DataError, match="one number for each"):
        choose_gap([1, 2], bin_edges(6, 4), "1", bits=6)
    with pytest.raises(DataError, match="same bins"):
        combine_counts(np.zeros(2, np.uint32), np.zeros(3, np.uint32))
