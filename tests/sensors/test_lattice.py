"""Noise on whole-number points has its law to the last bit: fast where floats decide, exact where they cannot."""

import math
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from sensor_laws import Script, fits

from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.sensors.perturbation import (
    MAX_PLANAR_COLUMNS,
    MAX_SCALE,
    MIN_SCALE,
    accept_candidates,
    draw_laplace,
    draw_planar,
    flip_exactly,
    invert_exactly,
    proposal_scale,
)

STRETCHES = [(0.9, False), (1.0, True), (1.1, False)]
LAST = 2**64 - 1


def law_of(scale, columns, reach):
    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * columns, indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    weights = np.exp(-np.sqrt((points.astype(float) ** 2).sum(axis=1)) / scale)
    return dict(zip(map(tuple, points.tolist()), (weights / weights.sum()).tolist(), strict=True))


@cache
def sample_of_60_000(scale, columns):
    return tuple(map(tuple, draw_planar(scale, columns, 60_000, system_noise()).tolist()))


@pytest.mark.slow
@pytest.mark.parametrize(("stretch", "same"), STRETCHES)
@pytest.mark.parametrize(
    ("scale", "columns", "reach"),
    [
        (Fraction(2, 3), 1, 60),
        (Fraction(7), 1, 400),
        (Fraction(1, 2), 2, 30),
        (Fraction(2), 2, 80),
        (Fraction(1), 3, 25),
    ],
    ids=str,
)
def test_points_have_the_law_they_claim(scale, columns, reach, stretch, same):
    assert fits(sample_of_60_000(scale, columns), law_of(float(scale) * stretch, columns, reach)) is same


@pytest.mark.parametrize("columns", range(1, MAX_PLANAR_COLUMNS + 1))
def test_lengths_have_the_mean_and_spread_of_a_gamma_law(columns):
    """On a fine grid the length of the noise is Gamma(columns, scale), and no direction is preferred.

    Seven standard errors: a right sampler is further off once in 10¹¹ runs.
    """
    count = 40_000
    drawn = draw_planar(Fraction(5000), columns, count, system_noise()) / 5000
    lengths = np.sqrt((drawn**2).sum(axis=1))
    assert abs(lengths.mean() - columns) < 7 * math.sqrt(columns / count)
    assert abs((lengths**2).mean() / (columns * (columns + 1)) - 1) < 0.1
    assert np.abs(drawn.mean(axis=0)).max() < 7 * math.sqrt((columns + 1) / count)


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("scale", [MIN_SCALE, Fraction(3, 7), Fraction(50), MAX_SCALE], ids=str)
def test_floats_decide_as_exact_arithmetic_does(scale, columns):
    """With a margin of everything, every decision is made exactly; the points are the same."""
    noise = system_noise()
    drawn = noise.words(150 * (1 if columns == 1 else columns + 1)).reshape(150, -1)
    assert np.array_equal(
        accept_candidates(drawn, scale, columns, noise), accept_candidates(drawn, scale, columns, noise, margin=2.0)
    )


@pytest.mark.parametrize("scale", [Fraction(3), Fraction(1, 3), Fraction(1000)], ids=str)
@pytest.mark.parametrize("length", [1, 5, 12])
def test_a_word_on_the_border_is_decided_by_further_ones(scale, length):
    context = Context(prec=60)
    ratio = Fraction(length) / scale
    border = context.exp(context.divide(Decimal(-ratio.numerator), Decimal(ratio.denominator)))
    word = int(context.multiply(border, Decimal(2**63)))
    nobody = Script([])
    assert invert_exactly(word - 1, scale, nobody) == length
    assert invert_exactly(word + 1, scale, nobody) == length - 1
    assert invert_exactly(word, scale, Script([0])) == length
    assert invert_exactly(word, scale, Script([LAST])) == length - 1


def test_the_smallest_words_draw_on_and_the_largest_give_zero():
    assert invert_exactly(0, Fraction(1), Script([0, 2**63])) == math.floor((63 + 64 + 1) * math.log(2))
    assert invert_exactly(2**63 - 1, Fraction(10), Script([])) == 0
    drawn = np.array([[6], [2**64 - 2], [2**64 - 1]], dtype=np.uint64)
    assert accept_candidates(drawn, Fraction(1), 1, Script([])).ravel().tolist() == [math.floor(61 * math.log(2)), 0]


def test_a_coin_on_the_border_is_decided_by_further_words():
    scale, point = Fraction(4), [3, -4]
    wide = proposal_scale(scale, 2)
    context = Context(prec=60)
    exponent = Fraction(7) / wide - Fraction(5) / scale
    border = context.exp(context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator)))
    word = int(context.multiply(border, Decimal(2**64)))
    assert flip_exactly(point, word - 1, scale, wide, Script([]))
    assert not flip_exactly(point, word + 1, scale, wide, Script([]))
    assert flip_exactly(point, word, scale, wide, Script([0]))
    assert not flip_exactly(point, word, scale, wide, Script([LAST]))


def test_the_zero_is_always_kept_and_counted_once():
    assert flip_exactly([0, 0], LAST, Fraction(3), proposal_scale(Fraction(3), 2), Script([0]))
    plus, minus, low = LAST - 1, LAST, 0
    drawn = np.array([[plus, plus, low], [plus, minus, low], [minus, plus, low]], dtype=np.uint64)
    assert accept_candidates(drawn, Fraction(1), 2, Script([])).tolist() == [[0, 0]]


@pytest.mark.parametrize("columns", range(2, MAX_PLANAR_COLUMNS + 1))
@pytest.mark.parametrize("scale", [MIN_SCALE, Fraction(10, 3), MAX_SCALE], ids=str)
def test_candidates_are_never_proposed_too_seldom(columns, scale):
    assert proposal_scale(scale, columns) ** 2 >= columns * scale**2
    assert float(proposal_scale(scale, columns)) == pytest.approx(float(scale) * columns**0.5, rel=1e-12)


def test_scripted_words_make_the_same_points():
    drawn = system_noise().words(3 * 28).tolist()
    assert np.array_equal(draw_planar(Fraction(9), 2, 5, Script(drawn)), draw_planar(Fraction(9), 2, 5, Script(drawn)))


def test_refusals():
    for scale in (Fraction(1, 65), MAX_SCALE + 1):
        with pytest.raises(ParameterError, match="step of the grid"):
            draw_laplace(scale, 1, system_noise())
    for columns in (0, MAX_PLANAR_COLUMNS + 1):
        with pytest.raises(ParameterError, match="columns"):
            draw_planar(Fraction(1), columns, 1, system_noise())
    assert draw_laplace(Fraction(1), 0, system_noise()).shape == (0,)
