"""What the papers printed: followed to the letter, with the pairs of tables that refute it and the δ they need."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from wallflower.neighbours.pairs import Floats
from wallflower.papers import methods, printed
from wallflower.papers.balls import enclosing_reach, heaviest_ball
from wallflower.papers.printed import Table, candidates_bar, japanese_step
from wallflower.papers.witnesses import EIGHT, EPSILON, GROUPS, Normal, least_delta
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.sensitivity import local_bounds
from wallflower.synthetic import mixture, synthetic1

LINE = np.array([[0.0], [2], [4], [6]])
CROSS = np.array([[0.0, 0], [0, 2], [1, 1], [1, 3], [2, 2]])


# Balls


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_the_heaviest_ball_is_that_of_all_sets(seed: int) -> None:
    places = np.round(mixture(8, 3, seed=seed), 1)
    sets = (list(chosen) for size in range(1, 9) for chosen in combinations(range(8), size))
    held = max(len(chosen) for chosen in sets if enclosing_reach(places[chosen]) <= 0.8 * (1 + 1e-9))
    assert heaviest_ball(places, 0.8) == held


@pytest.mark.parametrize("seed", range(20))
def test_the_heaviest_ball_is_the_same_in_a_wider_space(seed: int) -> None:
    places = mixture(25, 2, seed=seed)
    assert heaviest_ball(np.hstack([places, np.zeros((25, 1))]), 0.5) == heaviest_ball(places, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_an_enclosing_ball_is_the_smallest_even_on_a_grid(seed: int) -> None:
    places = np.round(2 * mixture(12, 4, seed=seed))
    centre = places.mean(axis=0)
    for step in range(1, 20_000):  # towards the farthest, ever less: it ends within a thousandth
        centre += (places[((places - centre) ** 2).sum(axis=1).argmax()] - centre) / (step + 1)
    reached = ((places - centre) ** 2).sum(axis=1).max()
    assert reached * 0.999 <= enclosing_reach(places) <= reached * (1 + 1e-9)


def test_records_that_coincide_weigh_what_they_are() -> None:
    around = np.vstack([np.eye(34), -np.eye(34)])[:46]
    assert heaviest_ball(np.repeat(around, 5, axis=0), 1.0) == 230
    assert heaviest_ball(np.repeat(around, 5, axis=0), 0.99) < 230


# How far two laws are apart


@pytest.mark.parametrize(
    ("one", "other"),
    [((0, 2), (3, 2)), ((0, 2), (0, 3)), ((5, 1), (3, 4)), ((0, 1), (0, 1)), ((0, 1.0), (0.1, 1.001))],
)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
def test_the_least_delta_is_that_of_a_sum(one: tuple[float, float], other: tuple[float, float], epsilon: float) -> None:
    at = np.linspace(-60, 60, 400_001)
    first, second = (np.exp(-(((at - middle) / width) ** 2) / 2) / width for middle, width in (one, other))
    step = (at[1] - at[0]) / math.sqrt(2 * math.pi)
    summed = max(
        float(np.maximum(a - math.exp(epsilon) * b, 0).sum() * step) for a, b in ((first, second), (second, first))
    )
    assert least_delta(Normal(*one), Normal(*other), epsilon) == pytest.approx(summed, abs=1e-6)


# The English paper


def test_algorithm_2_as_printed_is_not_private() -> None:
    assert (EIGHT.one != EIGHT.other).any(axis=1).sum() == 1
    assert [law.mean for law in EIGHT.laws()] == [0, 1]
    assert EIGHT.delta() == pytest.approx(0.1271, abs=1e-4)
    assert f"δ={EIGHT.delta():.3f}" in methods.PRINTED.why
    assert f"tables of {len(EIGHT.one)} records" in methods.PRINTED.why


def test_algorithm_2_as_printed_on_synthetic_1() -> None:
    alpha, beta = methods.gaussian_pace(0.7, 0.01)
    assert printed.smooth_as_printed(synthetic1(seed=0), 1.1, 3, beta=beta) / alpha == pytest.approx(584.85, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("beta", [0.02, 0.3])
def test_algorithm_2_stops_where_the_rest_cannot_matter_or_is_above_the_cap(seed: int, beta: float) -> None:
    """Without its early stop it keeps at least as much; what it leaves out lies above e^(-tβ) N."""
    values = synthetic1(seed)[:30]
    table = Table(values, 1.1, 3)
    steps = [
        math.exp(-beta * t) * (max(table.hold(printed.without_last(band)) for band in table.bands(t)) + t + 1)
        for t in range(31)
    ]
    found = printed.smooth_as_printed(values, 1.1, 3, beta=beta)
    assert found in steps
    assert found >= max(min(step, math.exp(-beta * t) * 30) for t, step in enumerate(steps))


def test_algorithm_1_misses_the_last_record() -> None:
    values = np.array([[0.0], [0.0], [1.0], [2.0]])
    assert printed.smooth_as_printed(values, 1.0, 1, beta=50.0) == 1
    assert local_bounds(values, 1.0, 1, upto=0) == [2]


def test_as_defined_agrees_with_the_package_below_the_cap() -> None:
    values = synthetic1(seed=1)
    bounds = local_bounds(values, 1.1, 3, upto=5)
    assert max(bounds) < 16
    assert printed.smooth_as_defined(values, 1.1, 3, beta=2.0) == pytest.approx(
        max(bound * math.exp(-2.0 * t) for t, bound in enumerate(bounds))
    )


def test_the_lower_bound_is_no_bound() -> None:
    signs = synthetic_signs(32, 400)
    one = np.vstack([np.repeat(signs, 3, axis=0), np.full((1, 32), 9.0)])
    other = np.vstack([np.repeat(signs, 3, axis=0), np.zeros((1, 32))])
    moved = count_outliers(one, 1.0, 3) - count_outliers(other, 1.0, 3)
    assert (moved, printed.lower_bound(32, 3)) == (1201, 193)
    width = printed.noise_for_global(193, 0.7)
    assert least_delta(Normal(0, width), Normal(moved, width), 0.7) > 0.1


def synthetic_signs(dimension: int, wanted: int) -> Floats:
    """Corners of a cube, each more than 60 degrees from every other: further apart than from the middle."""
    kept = np.empty((0, dimension))
    for corner in np.sign(mixture(20 * wanted, dimension, seed=0)):
        if len(kept) < wanted and (kept @ corner < dimension / 2).all():
            kept = np.vstack([kept, corner])
    assert len(kept) == wanted
    return kept


# The Japanese paper


@pytest.mark.parametrize(("place", "needed"), list(enumerate((0.0146, 0.0460, 0.1524, 0.2025))))
def test_the_japanese_noise_is_not_private(place: int, needed: float) -> None:
    witness = GROUPS[place]
    assert (witness.one != witness.other).any(axis=1).sum() == 1
    assert [law.mean for law in witness.laws()] == [0, witness.neighbours + 1]
    assert witness.delta() == pytest.approx(needed, abs=1e-4)
    assert witness.delta() > printed.DELTA


def test_the_marked_curve_quotes_its_witness() -> None:
    witness = next(each for each in GROUPS if each.neighbours == 20)
    assert f"δ={witness.delta():.3f}" in methods.JAPANESE.why
    assert f"tables of {len(witness.one)} records" in methods.JAPANESE.why
    assert f"ε={EPSILON}" in methods.JAPANESE.why


def test_more_groups_need_no_less_than_claimed_from_k_10_on() -> None:
    """The early stop at N e^(-βt) is out of the way: four groups need what forty do."""
    alpha, beta = methods.gaussian_pace(0.7, 0.01)
    one = np.repeat(np.eye(4), 11, axis=0)
    other = one.copy()
    other[-1] = 50
    laws = [Normal(count_outliers(x, 0.5, 10), printed.japanese(x, 0.5, 10, beta=beta) / alpha) for x in (one, other)]
    assert least_delta(laws[0], laws[1], 0.7) == pytest.approx(0.0400, abs=1e-4)


def test_a_table_that_the_equations_keep_apart_well() -> None:
    """Five records around each of 46 places: one more in the middle moves the count by 231, and the bound knows."""
    around = np.vstack([np.eye(34), -np.eye(34)])[:46]
    one = np.vstack([np.repeat(around, 5, axis=0), np.full((5, 34), 50.0) * np.arange(1, 6)[:, None]])
    other = one.copy()
    other[-1] = 0
    alpha, beta = methods.gaussian_pace(0.7, 0.01)
    bounds = [printed.japanese(x, 1.0, 5, beta=beta, normalise=False) for x in (one, other)]
    assert bounds == pytest.approx([225.64, 231.0], abs=0.01)
    assert least_delta(Normal(235, bounds[0] / alpha), Normal(4, bounds[1] / alpha), 0.7) < 1e-6


@pytest.mark.parametrize(("points", "moved"), [(LINE, 3), (CROSS, 5)])
def test_theorem_4_holds_and_the_smooth_bound_lies_below_the_sensitivity(points: Floats, moved: int) -> None:
    assert best_move(points, 1.0, 1) == moved
    assert printed.japanese_local_bound(points, 1.0, 1, normalise=False) == moved
    assert printed.japanese(points, 1.0, 1, beta=50.0, normalise=False) == 2
    table = Table(points, 1.0, 1, normalise=False)
    assert candidates_bar(table, 0, 0) == 1  # (22) at t=0, where (21) is IC
    assert table.hold(table.degree == 0) == moved - 1


def best_move(points: Floats, radius: float, neighbours: int) -> int:
    """How far one record put on a grid, or far away, moves the count."""
    axis = np.arange(-1.0, 6.0)
    places = np.stack(np.meshgrid(*[axis] * points.shape[1]), axis=-1).reshape(-1, points.shape[1])
    before = count_outliers(points, radius, neighbours, normalise=False)
    moved = []
    for which in range(len(points)):
        for place in [*places, np.full(points.shape[1], 99.0)]:
            other = points.copy()
            other[which] = place
            moved.append(abs(count_outliers(other, radius, neighbours, normalise=False) - before))
    return max(moved)


@pytest.mark.parametrize("seed", range(10))
def test_the_steps_are_those_of_the_equations_word_for_word(seed: int) -> None:
    values = np.round(2 * mixture(14, 1, seed=seed), 1)
    near = np.abs(values - values.T) <= 1.0
    degree = near.sum(axis=1) - 1
    centres = np.concatenate([values[:, 0] - 1, values[:, 0] + 1, values[:, 0]])

    def outward(centre: float, k: int, t: int) -> int:
        return sum(int(((np.abs(values[:, 0] - centre) <= 1 + 1e-9) & (degree == k + i)).sum()) for i in range(t + 1))

    def inward(centre: float, k: int, t: int) -> int:
        within = np.abs(values[:, 0] - centre) <= 1 + 1e-9
        return sum(int((within & (degree == k - i)).sum()) for i in range(1, t + 1))

    def bar(k: int, t: int) -> int:
        return max(outward(x, k, t) for x in values[:, 0]) + max(inward(x, k, t) for x in centres)

    table = Table(values, 1.0, 3)
    found = [japanese_step(table, t) for t in range(15)]
    assert found == [max(bar(3, t), bar(2, t)) + t + 1 for t in range(15)]
    best = 0.0
    for t, step in enumerate(found):
        if best > 14 * math.exp(-0.1 * t):
            break
        best = max(best, step * math.exp(-0.1 * t))
    assert printed.japanese(values, 1.0, 3, beta=0.1) == pytest.approx(best)


def test_example_1_moves_by_nine_on_an_octagon_and_by_one_as_described() -> None:
    """Two records on each of four places have a twin each: with x0 that is 2, below k=3, before x0 is moved."""
    described = np.repeat([[1.0, 0], [-1, 0], [0, 1], [0, -1]], 2, axis=0)
    octagon = np.array([[math.cos(turn * math.pi / 4), math.sin(turn * math.pi / 4)] for turn in range(8)])
    for around, moved in ((described, [8, 9]), (octagon, [0, 9])):
        tables = (np.vstack([around, [place]]) for place in ([0, 0], [9, 9]))
        assert [count_outliers(points, 1 + 1e-9, 3, normalise=False) for points in tables] == moved
    assert printed.japanese_lower_bound(9, 2, 3) == 9


def test_example_2_both_ways_give_four() -> None:
    spokes = np.array([[math.cos(turn), math.sin(turn)] for turn in (0.0, 2.1, 4.2)])
    hub, away = np.vstack([spokes, [[0, 0]]]), np.vstack([spokes, [[9, 9]]])
    for points in (hub, away):
        assert printed.japanese_local_bound(points, 1 + 1e-9, 1, normalise=False) == 4
        assert best_move(points, 1 + 1e-9, 1) == 4
    assert Table(hub, 1 + 1e-9, 1, normalise=False).degree.tolist() == [1, 1, 1, 3]


def test_example_3_is_larger_by_the_equations_than_it_says() -> None:
    """x0 with a neighbour of degree k=1 and one of degree k+1: it says 2 + 1, (23) gives 3 + t + 1."""
    points = np.array([[0.0], [-1.0], [1.0], [2.0]])  # x0, its two neighbours, and what the second has besides
    table = Table(points, 1.0, 1)
    assert table.degree.tolist() == [2, 1, 2, 1]
    neighbours = table.near[0] & (np.arange(4) != 0)
    assert (neighbours & (table.degree >= 1) & (table.degree <= 2)).sum() == 2  # as the example counts, without x0
    assert candidates_bar(table, 1, 1) == 3
    assert japanese_step(table, 1) == 5
