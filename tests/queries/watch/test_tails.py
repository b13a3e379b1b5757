"""One-sided noise: the table never falls too fast, is the exponential to the last digits, and draws follow the law."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.queries.watch.detectors.sparse import MAX_TABLE_ENTRIES, MIN_SCALE, PassTable, draw_geometric
from wallflower.queries.watch.detectors.staircase import WHOLE

SCALES = [Fraction(text) for text in ("1/64", "1/3", "1", "7/2", "40", "1000", "12345/7")]
LAST = WHOLE - 1


def falling(scale, gap):
    """e^(-gap/scale) to sixty digits."""
    with localcontext(Context(prec=60)):
        return Fraction((-gap * Decimal(scale.denominator) / Decimal(scale.numerator)).exp())


def sealed(values):
    words = np.array(values, dtype=np.uint64)
    words.flags.writeable = False
    return words


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_further_step_costs_no_more_than_its_share_exactly(scale):
    table = PassTable.of(scale)
    most = 1 / falling(scale, 1) * (1 + Fraction(1, 10**55))
    chances = [table.probability(gap) for gap in range(-2, len(table.thresholds) + 4)]
    assert all(0 < below <= above <= most * below for above, below in pairwise(chances))
    assert chances[:3] == [1, 1, 1]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_probabilities_are_the_exponential_up_to_rounding(scale):
    table = PassTable.of(scale)
    for gap in {1, 2, 3, math.ceil(scale), math.ceil(7 * scale), math.ceil(44 * scale), 10**9}:
        error = table.probability(gap) - falling(scale, min(gap, 10**6))
        assert 0 <= error < Fraction(1, 10**15)


def test_the_words_below_an_entry_pass_and_no_others():
    table = PassTable.of(Fraction(7, 2))
    gaps = np.arange(1, len(table.thresholds) + 5)
    first = np.array([int(table.probability(int(gap)) * WHOLE) for gap in gaps], dtype=np.uint64)
    assert table.passes(gaps, first - np.uint64(1)).all()
    assert not table.passes(gaps, first).any()
    assert table.passes(np.array([0, -1, -(2**60)]), np.full(3, LAST, np.uint64)).all()
    assert not table.passes(np.array([2**60]), np.full(1, LAST, np.uint64)).any()


def test_a_table_that_falls_faster_is_refused():
    scale = Fraction(4)
    good = PassTable.of(scale).thresholds
    assert PassTable.of(scale) is PassTable.of(Fraction(4))
    assert len(PassTable(scale, good).thresholds) == len(good)
    for at in (0, 1, 17):
        values = good.tolist()
        values[at] -= values[at] // 10**6 + 1
        with pytest.raises(ParameterError, match="falls faster"):
            PassTable(scale, sealed(values))
    with pytest.raises(ParameterError, match="falls faster"):
        PassTable(scale, PassTable.of(Fraction(39, 10)).thresholds)
    assert PassTable(Fraction(39, 10), good).probability(1) == PassTable.of(scale).probability(1)


@pytest.mark.parametrize("values", [[0], [2**63, 2**63 + 1], [2**63, 1]])
def test_never_rising_and_certainty_are_refused(values):
    with pytest.raises(ParameterError, match="falls faster"):
        PassTable(Fraction(1), sealed(values))


def test_tables_that_could_change_are_refused():
    good = PassTable.of(Fraction(4)).thresholds
    for values in (good.copy(), good.astype(np.int64)):
        with pytest.raises(ParameterError, match="not a proved table"):
            PassTable(Fraction(4), values)


@pytest.mark.parametrize("scale", [MIN_SCALE * Fraction(99, 100), Fraction(MAX_TABLE_ENTRIES, 44)], ids=str)
def test_scales_no_table_holds_are_refused(scale):
    with pytest.raises(ParameterError, match="coarser grid"):
        PassTable.of(scale)


class Drawn:
    """Hands out these draws, one by one."""

    def __init__(self, *drawn):
        self.drawn, self.scales = list(drawn), []

    def laplace(self, scale):
        self.scales.append(scale)
        return self.drawn.pop(0)


@pytest.mark.parametrize(("drawn", "kept"), [((0,), 0), ((5, 9), 5), ((-1, -7, 3), 3), ((-2, 0), 0)])
def test_the_first_draw_that_is_not_negative_counts(drawn, kept):
    """P(z | z >= 0) is proportional to e^(-z/scale): that of the two-sided law is, and nothing is added or cut."""
    noise = Drawn(*drawn)
    assert draw_geometric(Fraction(9, 2), noise) == kept
    assert set(noise.scales) == {Fraction(9, 2)}


def test_a_scale_far_below_one_is_drawn_at_once():
    assert draw_geometric(Fraction(1, 1000), system_noise()) == 0


@pytest.fixture(scope="module")
def draws():
    return np.array([draw_geometric(Fraction(3), system_noise()) for _ in range(24_000)])


@pytest.mark.slow
@pytest.mark.parametrize(("stretch", "fits"), [(0.9, False), (1.0, True), (1.1, False)])
def test_draws_have_the_scale_they_claim(draws, stretch, fits):
    """A tenth is 15 deviations of the mean away, so either mistake takes 7 of them: once in 10^11."""
    mean = 1 / math.expm1(1 / (3 * stretch))
    assert bool(abs(draws.mean() - mean) < 7 * draws.std() / math.sqrt(len(draws))) is fits
    assert draws.min() == 0
