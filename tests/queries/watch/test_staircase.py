"""The table is private to the last bit, and close to the ideal staircase."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from vectors import vectors
from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.queries.watch.detectors.staircase import SMALLEST_EPSILON, WHOLE, Staircase, Table, lower_exponential

LOSSES = [
    Fraction(text) for text in ("1/4096", "1/100", "0.1", "1/3", "1", "2.5", "10", "44", "44.4", "45", "50", "1e6")
]
LAST = WHOLE - 1


def exact(epsilon):
    """e^epsilon to sixty digits."""
    with localcontext(Context(prec=60)):
        return Fraction((Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp())


def ideal(k, epsilon):
    grow = exact(epsilon)
    return grow**k / (1 + grow) if k <= 0 else 1 - ideal(1 - k, epsilon)


def entries(table):
    return [int(entry) for entry in table.thresholds]


def sealed(values):
    words = np.array(values, dtype=np.uint64)
    words.flags.writeable = False
    return words


@pytest.mark.parametrize("epsilon", LOSSES, ids=str)
def test_neighbouring_steps_are_within_epsilon_exactly(epsilon):
    table = Table.of(epsilon)
    grow = exact(min(epsilon, Fraction(64))) * (1 - Fraction(1, 10**55))
    reach = range(-table.offset - 3, table.offset + 5) if len(table.thresholds) < 10_000 else range(-3000, 3000)
    flags = [table.probability(k) for k in reach]
    for chances in (flags, [1 - p for p in flags]):
        assert all(0 < p < 1 for p in chances)
        assert all(a <= grow * b and b <= grow * a for a, b in pairwise(chances))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)], ids=str)
def test_any_two_steps_are_within_their_distance(epsilon):
    table, grow = Table.of(epsilon), exact(epsilon)
    reach = range(-30, 32)
    for k in reach:
        for other in reach:
            p, q, most = table.probability(k), table.probability(other), grow ** abs(k - other)
            assert p <= most * q
            assert 1 - p <= most * (1 - q)


@pytest.mark.parametrize("epsilon", LOSSES[:9], ids=str)
def test_probabilities_are_the_ideal_ones_up_to_rounding(epsilon):
    table = Table.of(epsilon)
    allowed = 1 / (1 - 1 / exact(epsilon)) / WHOLE  # each entry is rounded by less than one, and inherits the rest
    for k in (-500, -40, -3, -1, 0, 1, 2, 5, 41):
        assert abs(table.probability(k) - ideal(k, epsilon)) <= allowed
    if epsilon >= Fraction(1, 10):
        assert allowed < Fraction(1, 10**18)


@pytest.mark.parametrize("case", vectors("watch.json", lambda case: case["mechanism"] == "staircase_levels"))
def test_vectors(case):
    table = Table.of(Fraction(case["params"]["eps"]))
    for k in case["params"]["k"]:
        assert float(table.probability(k)) == pytest.approx(float(case["expected"][f"p({k})"]), rel=1e-14)


@pytest.mark.parametrize("epsilon", LOSSES, ids=str)
def test_a_table_mirrors_itself_and_ends_where_it_stops_moving(epsilon):
    table = Table.of(epsilon)
    values = entries(table)
    assert [WHOLE - value for value in values[::-1]] == values
    assert len(values) == 2 * (table.offset + 1)
    assert -(-values[0] // lower_exponential(epsilon)) == values[0]
    assert table.probability(-(10**9)) == table.probability(-table.offset)
    assert table is Table.of(epsilon)


def test_a_huge_epsilon_has_two_entries():
    assert entries(Table.of(Fraction(50))) == [1, LAST]


@pytest.mark.parametrize("epsilon", LOSSES, ids=str)
def test_the_bound_is_below_the_exponential_but_hardly(epsilon):
    true, bound = exact(min(epsilon, Fraction(64))), lower_exponential(epsilon)
    assert true * (1 - Fraction(1, 2**80)) < bound <= true * (1 + Fraction(1, 10**57))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)], ids=str)
def test_an_entry_rounded_the_other_way_is_refused(epsilon):
    table = Table.of(epsilon)
    for k in (0, -1, -7):
        values = entries(table)
        values[table.offset + k] -= 1
        values[table.offset + 1 - k] += 1
        with pytest.raises(ParameterError, match="differ by more than epsilon"):
            Table(epsilon, sealed(values))
    assert entries(Table(epsilon, table.thresholds)) == entries(table)


def test_a_table_of_a_larger_loss_is_refused():
    wider = Table.of(Fraction(11, 10)).thresholds
    with pytest.raises(ParameterError, match="build them with"):
        Table(Fraction(1), wider)
    assert Table(Fraction(6, 5), wider).offset == Table.of(Fraction(11, 10)).offset


@pytest.mark.parametrize("values", [[0, LAST], [0, 0], [2, 1]])
def test_certainty_and_falling_steps_are_refused(values):
    with pytest.raises(ParameterError, match="differ by more than epsilon"):
        Table(Fraction(50), sealed(values))


def test_words_are_counted_exactly():
    """The words below T_k flag and no others, so the probability is T_k / 2^64 without a single draw."""
    table = Table.of(Fraction(1, 3))
    ks = np.arange(-table.offset - 5, table.offset + 7)
    last = np.array([int(table.probability(int(k)) * WHOLE) - 1 for k in ks], dtype=np.uint64)
    assert table.flags(ks, last).all()
    assert not table.flags(ks, last + np.uint64(1)).any()
    assert table.flags(ks, np.zeros(len(ks), np.uint64)).all()
    assert not table.flags(ks, np.full(len(ks), LAST, np.uint64)).any()
    for k, word in zip(ks.tolist(), last.tolist(), strict=True):
        assert table.flag(k, word)
        assert not table.flag(k, word + 1)


def test_extreme_steps_are_clamped():
    far = np.array([np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    assert Table.of(Fraction(1)).flags(far, np.array([2**40, 2**64 - 2**40], dtype=np.uint64)).tolist() == [False, True]


class Scripted:
    """Hands out one draw and remembers the scale."""

    def __init__(self, draw):
        self.draw, self.scales = draw, []

    def laplace(self, scale):
        self.scales.append(scale)
        return self.draw


def test_a_score_is_the_stair_plus_one_draw_of_scale_one_over_epsilon():
    noise = Scripted(-4)
    detector = Staircase(threshold=0, sensitivity=1, epsilon=Fraction(1, 7), scores=True)
    output = detector.decide(np.array([2]), (), 0, noise)
    assert (output.scores.tolist(), output.flags.tolist()) == ([-1], [False])
    assert noise.scales == [7]
    tiny = Staircase(threshold=0, sensitivity=1, epsilon=Fraction(1, 10**9), scores=True)  # has no smallest epsilon
    assert len(tiny.decide(np.array([0]), (), 0, system_noise()).scores) == 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)], ids=str)
def test_a_score_of_one_or_more_has_the_probability_of_a_flag(epsilon):
    a = math.exp(-epsilon)
    for k in range(-5, 7):
        tail = sum((1 - a) / (1 + a) * a ** abs(j) for j in range(1 - k, 200))
        assert float(Table.of(epsilon).probability(k)) == pytest.approx(tail, rel=1e-12)


def test_refusals():
    with pytest.raises(ParameterError, match="never a float"):
        Table.of(0.5)
    with pytest.raises(ParameterError, match="release `scores` instead"):
        Table.of(SMALLEST_EPSILON * Fraction(99, 100))
    with pytest.raises(ParameterError, match="draw it with"):
        Table.of(Fraction(1)).flag(0, WHOLE)
    for ks, words in (([0.5], [1]), ([0], [-1]), ([0, 1], [1])):
        with pytest.raises(ParameterError, match="convert both"):
            Table.of(Fraction(1)).flags(np.array(ks), np.array(words))
    with pytest.raises(ParameterError, match="can be written to"):
        Table(Fraction(1), Table.of(Fraction(1)).thresholds.copy())
    with pytest.raises(ParameterError, match="even number of 64-bit words"):
        Table(Fraction(1), sealed([1, 2, 3]))
