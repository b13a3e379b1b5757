"""Choices on many coordinates, and noise on many numbers, against enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from wallflower.audit.laws import law_of, loss_between
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import Cube, calibrate_cube, choice, choose_together, cube, cube_noise
from wallflower.mechanisms.choice import decode, exponential_level
from wallflower.noise import system_noise
from wallflower.privacy import Loss

pytestmark = pytest.mark.slow  # together more than `make check` has room for

ONE = Fraction(1)
ERRORS = ((0, 1, 3), (2, 0, 1, 1), (1, 4))


def enumerated(errors, rate: float) -> dict[tuple[int, ...], float]:
    """The law of the proof, by walking through every tuple."""
    weights = {
        places: math.exp(-rate * max(row[place] for row, place in zip(errors, places, strict=True)))
        for places in itertools.product(*(range(len(row)) for row in errors))
    }
    return {places: weight / sum(weights.values()) for places, weight in weights.items()}


def drawn_law(errors, *, sensitivity: int = 1, epsilon: Fraction = ONE):
    return law_of(lambda noise: choose_together(errors, sensitivity=sensitivity, epsilon=epsilon, noise=noise))


@pytest.mark.parametrize("errors", [ERRORS, ((5,),), ((3, 3), (3, 9)), ((0, 0), (10**9, 0))], ids=str)
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(1, ONE), (4, Fraction(7, 3))])
def test_the_draw_has_the_law_of_the_proof(errors, sensitivity, epsilon):
    law = drawn_law(errors, sensitivity=sensitivity, epsilon=epsilon)
    expected = enumerated(errors, float(epsilon) / (2 * sensitivity))
    assert {places: law.get(places, 0.0) for places in expected} == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(("believed", "private"), [(2, True), (1, False)])
def test_neighbouring_errors_give_laws_within_epsilon_unless_the_sensitivity_is_forgotten(believed, private):
    worst = 0.0
    for errors in ((0, 2, 2, 0), (0, 4, 0, 4)):
        mine = drawn_law((errors[:2], errors[2:]), sensitivity=believed)
        for moved in ((2, -2, 2, -2), (2, -2, -2, 2)):
            other = np.maximum(np.add(errors, moved), 0).tolist()
            near = drawn_law((other[:2], other[2:]), sensitivity=believed)
            worst = max(worst, loss_between(mine, near, Loss("1")))
    assert (worst <= 1 + 1e-9) is private


@pytest.mark.parametrize(
    ("below", "upto"), [((0, 0), (2, 3)), ((1, 2, 0), (3, 2, 4)), ((4,), (9,)), ((1, 1, 1), (2, 2, 2))]
)
def test_every_rank_of_a_shell_is_another_member_of_it(below, upto):
    shell = {
        places
        for places in itertools.product(*map(range, upto))
        if any(place >= least for place, least in zip(places, below, strict=True))
    }
    assert {tuple(decode(rank, below, upto)) for rank in range(len(shell))} == shell
    with pytest.raises(ParameterError):
        decode(len(shell), below, upto)


def test_more_tuples_than_a_float_can_count_are_chosen_from():
    rows = [np.minimum(np.abs(np.arange(960) - 480), 300) for _ in range(120)]
    places = choose_together(rows, sensitivity=1, epsilon=Fraction(20), noise=system_noise())
    assert len(places) == 120
    level = max(int(row[place]) for row, place in zip(rows, places, strict=True))
    assert level < 60  # the mean is 2m/ε = 12; the chance of this is below 1e-15
    many = [np.arange(960) // 8 for _ in range(320)]  # too many even for logarithms
    assert len(choose_together(many, sensitivity=1, epsilon=Fraction(1, 10), noise=system_noise())) == 320


@pytest.mark.parametrize("columns", [12, 40, 90])
def test_logarithms_decide_as_the_enclosures_do(columns):
    gaps = np.arange(200)
    counts = np.array([(2 * gap + 1) ** columns * 2**20 for gap in gaps.tolist()], dtype=object)
    rate, bits = Fraction(columns, 60), 128 * 8
    named = 0
    for part in range(1, 60, 12):
        word = (2**128 * part // 60) + part
        place = choice._surely(word, gaps, counts, rate)
        named += place is not None
        exact = choice._decide(word << (bits - 128), bits, choice._bounds(gaps, counts, rate, bits // 3))
        assert place is None or place == exact
    assert named == 5


def test_a_choice_needs_a_candidate_on_every_coordinate():
    for errors in ([], [[1], []]):
        with pytest.raises(ParameterError):
            choose_together(errors, sensitivity=1, epsilon=ONE, noise=system_noise())


# Cube noise


def level_law(size: int, scale: float, upto: int) -> np.ndarray:
    levels = np.arange(upto)
    logs = size * np.log(2 * levels + 1) - levels / scale
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("scale", [Fraction(1, 4), Fraction(2), Fraction(9, 2)], ids=str)
def test_the_level_has_the_law_of_the_proof(size, scale):
    upto = 400
    counts = np.array(cube._shares(size), dtype=object)
    start = law_of(lambda noise: exponential_level(np.arange(size + 1), counts, rate=1 / scale, noise=noise)[0])
    one = law_of(lambda noise: cube._geometric(scale, noise))
    found = np.array([start.get(k, 0.0) for k in range(upto)])
    geometric = np.array([one.get(g, 0.0) for g in range(upto)])
    for _ in range(size + 1):
        found = np.convolve(found, geometric)[:upto]
    assert found == pytest.approx(level_law(size, float(scale), upto), abs=1e-11)


def test_the_level_is_the_start_and_all_its_numbers():
    class Ones:
        drawn = 0

        def below(self, bound: int) -> int:
            return bound - 1 - bound // 10**6  # the last start

        def laplace(self, scale: Fraction) -> int:
            self.drawn += 1
            return -5 if self.drawn % 2 else 1  # what is below 0 is drawn again

    noise = Ones()
    assert cube._level(3, Fraction(2), noise) == 3 + 4
    assert noise.drawn == 8


def test_cube_noise_falls_with_the_largest_of_its_numbers():
    law = law_of(lambda noise: Cube(1, Fraction(1, 2), ONE).draw(noise)[0], least=1e-7)
    near = {z: math.exp(-2 * abs(z)) for z in range(-4, 5)}
    whole = 1 + 2 / (math.exp(2) - 1)
    for z, weight in near.items():
        assert law.get(z, 0.0) == pytest.approx(weight / whole, abs=1e-5)


@pytest.mark.parametrize(("short", "private"), [(Fraction(1), True), (Fraction(9, 10), False)])
def test_cube_noise_hides_a_move_of_all_numbers_and_not_with_a_tenth_missing(short, private):
    made = calibrate_cube(2, 3, Loss("1"), step=ONE)
    scale = float(made.scale * short)
    grid = list(itertools.product(range(-8, 9), repeat=2))
    ratio = max((max(abs(a + 3), abs(b - 3)) - max(abs(a), abs(b))) / scale for a, b in grid)
    assert (ratio <= 1 + 1e-12) is private


def test_the_figures_of_cube_noise_are_those_of_its_law():
    made = Cube(5, Fraction(7, 2), Fraction(1, 2))
    levels, weights = np.arange(600), level_law(5, 3.5, 600)
    mean = sum(weights[s] * np.abs(np.arange(-s, s + 1)).mean() for s in levels)
    assert made.mean_error() == pytest.approx(mean / 2, rel=1e-9)
    for figure, power in ((made.half_width, 1), (made.reach, 5)):
        width = 2 * figure(0.95)
        covers = [(np.minimum((2 * w + 1) / (2 * levels + 1), 1.0) ** power) @ weights for w in (width - 1, width)]
        assert covers[0] < 0.95 <= covers[1]


def test_figures_of_wide_noise_agree_with_those_of_narrow_noise():
    small, wide = Cube(12, Fraction(500), ONE), Cube(12, Fraction(500_000), ONE)
    for name in ("mean_error", "half_width", "reach"):
        assert getattr(wide, name)() == pytest.approx(1000 * getattr(small, name)(), rel=2e-3)


def test_cube_noise_is_pure_and_of_one_number_at_least():
    with pytest.raises(LossMismatch):
        calibrate_cube(3, 1, Loss.zcdp("1"), step=ONE)
    with pytest.raises(ParameterError):
        cube_noise(0, sensitivity=1, epsilon=ONE, noise=system_noise())
    assert len(cube_noise(9, sensitivity=4, epsilon=Fraction(1, 3), noise=system_noise())) == 9
