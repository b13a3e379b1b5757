"""Every factor of the table is needed, and enough: small worlds, all neighbours, all statistics of a family.

A statistic is a whole number with two-sided geometric noise of ratio 1/2, so that its loss is a power of 2 and exact:
it states ε = ln 2 when its own neighbours differ by one at most. `needed` looks for the worst such statistic in another
unit. Gaussians have the same statistics with other noise; their divergences are sums over whole numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from wallflower.errors import Untranslatable
from wallflower.privacy import Loss
from wallflower.units import DELTA_GRID, NEIGHBOURS, Basis, Claim, Protection, exp_bounds, price

World = tuple[int, ...]
Relation = Callable[[World, World], bool]

BASE = Fraction(2)  # e^ε of what is stated
OUTPUTS = range(-30, 31)


@cache
def loss_of_shift(shift: int) -> Fraction:
    """The largest ratio of two geometric laws, one shifted; their normaliser is the same."""
    law = {output: BASE ** -abs(output) for output in OUTPUTS}
    shifted = {output: BASE ** -abs(output - shift) for output in OUTPUTS}
    return max(max(law[output] / shifted[output], shifted[output] / law[output]) for output in OUTPUTS)


def needed(
    worlds: Sequence[World], statistics: Iterable[Sequence[int]], protects: Relation, declared: Relation
) -> Fraction:
    """The largest loss between declared neighbours, over statistics that lose at most ε between their own.

    A statistic is its value in each world.
    """
    values = np.array(list(statistics))
    own, others = (
        [(i, j) for i, one in enumerate(worlds) for j, other in enumerate(worlds[:i]) if near(one, other)]
        for near in (protects, declared)
    )
    stated, lost = (
        np.abs(values[:, firsts] - values[:, seconds]).max(axis=1) for firsts, seconds in map(split, (own, others))
    )
    assert (lost[stated == 0] == 0).all()
    assert loss_of_shift(1) == BASE
    return max(loss_of_shift(int(shift)) for shift in set(lost[stated <= 1]))


def split(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    assert pairs
    return [one for one, _ in pairs], [other for _, other in pairs]


def linear(worlds: Sequence[World]) -> Iterable[Sequence[int]]:
    """Sums and differences of what is in a world."""
    for weights in itertools.product((-1, 0, 1), repeat=len(worlds[0])):
        yield [sum(weight * value for weight, value in zip(weights, world, strict=True)) for world in worlds]


def factor(protects: Basis, declared: Protection, **said: Any) -> int:
    found = price(Claim(loss=Loss("0.1", neighbours=NEIGHBOURS[protects]), **said), declared).factor
    assert found.denominator == 1
    return int(found)


def over(window: int, **said: Any) -> Protection:
    return Protection(rows="time", unit="window", window=window, **said)


# Tables: a world counts how many records there are of each of three sorts

TABLES = [world for world in itertools.product(range(4), repeat=3) if sum(world) <= 3]


def differ(one: World, other: World) -> tuple[int, int]:
    """How many records are in one only, and in the other only."""
    gone = [left - right for left, right in zip(one, other, strict=True)]
    return sum(step for step in gone if step > 0), -sum(step for step in gone if step < 0)


def added(one: World, other: World) -> bool:
    return differ(one, other) in ((0, 1), (1, 0))


def replaced(one: World, other: World, records: int = 1) -> bool:
    left, right = differ(one, other)
    return left == right <= records


def test_a_replaced_record_needs_two_steps_of_membership() -> None:
    k = factor("membership", Protection())
    assert k == 2
    assert needed(TABLES, linear(TABLES), added, replaced) == BASE**k
    assert needed(TABLES, linear(TABLES), added, added) == BASE


def test_removed_first_the_middle_table_is_no_larger() -> None:
    pairs = [(one, other) for one in TABLES for other in TABLES if one != other and replaced(one, other)]
    for one, other in pairs:
        middle = tuple(map(min, one, other))
        assert middle in TABLES
        assert sum(middle) == sum(one) - 1
        assert added(one, middle)
        assert added(middle, other)


@pytest.mark.parametrize("each", [1, 2, 3])
def test_a_person_with_several_records_needs_a_step_for_each(each: int) -> None:
    k = factor("record", Protection(units_per_person=each))
    assert k == each
    assert needed(TABLES, linear(TABLES), replaced, lambda one, other: replaced(one, other, each)) == BASE**k


def test_no_factor_hides_a_size_that_is_told() -> None:
    """The number of records, told as it is: nothing is lost by a replaced record, everything by one that is added."""
    laws = {world: {sum(world): 1} for world in TABLES}
    assert all(laws[one] == laws[other] for one in TABLES for other in TABLES if replaced(one, other))
    assert all(not laws[one].keys() & laws[other].keys() for one in TABLES for other in TABLES if added(one, other))
    for amount in ("0", "0.1"):
        with pytest.raises(Untranslatable):
            price(Claim(loss=Loss(amount)), Protection(unit="membership"))


# Delta: e^ε = 2 exactly, and laws on two outputs, told by how likely the first is


def is_close(one: Fraction, other: Fraction, ratio: Fraction, delta: Fraction) -> bool:
    pairs = ((one, other), (other, one), (1 - one, 1 - other), (1 - other, 1 - one))
    return all(left <= ratio * right + delta for left, right in pairs)


def test_no_three_laws_leak_more_than_delta_of_two_steps() -> None:
    grid, delta = [Fraction(i, 40) for i in range(41)], Fraction(1, 20)
    near = {one: [other for other in grid if is_close(one, other, BASE, delta)] for one in grid}
    leaks = {one - BASE**2 * other for one in grid for middle in near[one] for other in near[middle]}
    assert max(leaks) == delta * (1 + BASE)


@pytest.mark.parametrize("steps", [2, 3, 5])
def test_delta_of_several_steps_is_attained(steps: int) -> None:
    """Laws at e^ε rounded down leak what the table says, to the last digit it has."""
    epsilon, delta = Fraction(1, 2), Fraction(1, 10**6)
    ratio, _ = exp_bounds(epsilon, 60)
    laws = [delta * sum((ratio**j for j in range(step)), Fraction()) for step in range(steps + 1)]
    assert all(is_close(one, other, ratio, delta) for one, other in itertools.pairwise(laws))
    leak = laws[-1] - ratio**steps * laws[0]
    table = price(Claim(loss=Loss(epsilon, delta=delta)), Protection(units_per_person=steps)).delta
    assert 0 <= table - leak <= Fraction(2, DELTA_GRID)


def test_delta_of_membership_is_that_of_two_steps() -> None:
    claim = Claim(loss=Loss("0.5", delta="1e-6", neighbours=NEIGHBOURS["membership"]))
    twice = price(Claim(loss=Loss("0.5", delta="1e-6")), Protection(units_per_person=2))
    assert price(claim, Protection()) == twice


# Streams: a world has a row of cells for each observation


def grid(times: int, columns: int) -> list[World]:
    return list(itertools.product((0, 1), repeat=times * columns))


def entries_of(columns: int, window: int, *, one_sign: bool = False) -> Relation:
    """At most one cell in each of so many consecutive observations."""

    def near(one: World, other: World) -> bool:
        places = [place for place in range(len(one)) if one[place] != other[place]]
        times = [place // columns for place in places]
        signs = {one[place] - other[place] for place in places}
        alone = len(set(times)) == len(times) and (not times or times[-1] - times[0] < window)
        return alone and not (one_sign and len(signs) > 1)

    return near


def row_of(columns: int, rows: int = 1) -> Relation:
    """All cells of so many consecutive observations."""

    def near(one: World, other: World) -> bool:
        times = [place // columns for place in range(len(one)) if one[place] != other[place]]
        return not times or times[-1] - times[0] < rows

    return near


@pytest.mark.parametrize(("protects", "window"), [("entry", 1), ("person", 2)])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_a_row_needs_a_step_for_each_column(protects: Basis, window: int, columns: int) -> None:
    worlds = grid(2, columns)
    k = factor(protects, Protection(), columns=columns)
    assert k == columns
    assert needed(worlds, linear(worlds), entries_of(columns, window), row_of(columns)) == BASE**k


@pytest.mark.parametrize("protects", ["record", "entry"])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_window_needs_a_step_for_each_observation(protects: Basis, window: int) -> None:
    worlds = grid(3, 2)
    own = row_of(2) if protects == "record" else entries_of(2, 1)
    k = factor(protects, over(window), steps=3)
    assert k == window
    assert needed(worlds, linear(worlds), own, entries_of(2, window)) == BASE**k


def test_no_more_steps_than_observations_that_are_read() -> None:
    worlds = grid(2, 1)
    for declared in (over(9), Protection(rows="time", unit="person")):
        k = factor("entry", declared, steps=2)
        assert k == 2
        assert needed(worlds, linear(worlds), entries_of(1, 1), entries_of(1, 9)) == BASE**k


@pytest.mark.parametrize(("short", "long"), [(1, 3), (2, 3), (2, 4), (3, 4), (2, 5), (3, 5), (4, 2)])
def test_a_long_window_needs_as_many_short_ones_as_cover_it(short: int, long: int) -> None:
    worlds = grid(5, 1)
    k = factor("window", over(long), window=short)
    assert k == math.ceil(long / short)
    assert needed(worlds, linear(worlds), entries_of(1, short), entries_of(1, long)) == BASE**k


def at_most(times: int, window: int) -> Relation:
    """Cells in at most so many observations, wherever they are in a window."""
    inside = entries_of(1, window)
    return lambda one, other: inside(one, other) and sum(a != b for a, b in zip(one, other, strict=True)) <= times


@pytest.mark.parametrize("times", [1, 2, 3, 4])
@pytest.mark.parametrize(("short", "long"), [(1, 3), (2, 3), (2, 5), (2, None), (3, None), (4, None)])
def test_times_is_a_count_and_not_the_length_of_a_run(short: int, long: int | None, times: int) -> None:
    """A person in three of seven observations, far apart, is in three windows of 2."""
    worlds, most = grid(7, 1), 7
    declared = Protection(rows="time", unit="person", times=times) if long is None else over(long, times=times)
    k = factor("window", declared, window=short, steps=most)
    assert k == min(math.ceil((long or most) / short), times)
    assert needed(worlds, linear(worlds), entries_of(1, short), at_most(times, long or most)) == BASE**k
    if short == 1:
        assert factor("entry", declared, steps=most) == k


def test_a_loss_for_a_person_covers_every_window() -> None:
    worlds = grid(3, 2)
    for window in (1, 2, 3):
        assert factor("person", over(window)) == 1
        assert needed(worlds, linear(worlds), entries_of(2, 3), entries_of(2, window)) == BASE


@pytest.mark.parametrize(("times", "window", "k"), [(2, 2, 2), (3, 3, 2), (3, 2, 2), (3, 1, 1)])
def test_changes_of_both_signs_need_two_steps_of_one_sign(times: int, window: int, k: int) -> None:
    """The first observation less the second: changes that go the same way cancel, others add up."""
    worlds = grid(times, 1)
    assert factor("person", over(window), one_sign=True) == k
    assert needed(worlds, linear(worlds), entries_of(1, times, one_sign=True), entries_of(1, window)) == BASE**k


def test_a_row_replaced_needs_two_steps_of_one_sign() -> None:
    """One column less the other; a row may rise in one and fall in the other."""
    worlds = grid(1, 2)

    def one_sign(one: World, other: World) -> bool:
        return len({left - right for left, right in zip(one, other, strict=True)} - {0}) <= 1

    k = factor("record", Protection(), one_sign=True)
    assert k == 2
    assert needed(worlds, linear(worlds), one_sign, row_of(2)) == BASE**k


@pytest.mark.parametrize(("span", "change"), [(4, 1), (5, 2), (6, 3), (6, 4), (5, 5)])
def test_the_whole_range_needs_as_many_changes_as_cover_it(span: int, change: int) -> None:
    worlds = [(value,) for value in range(span + 1)]
    statistics = [[0, *itertools.accumulate(steps)] for steps in itertools.product((-1, 0, 1), repeat=span)]
    moves = math.ceil(Fraction(span, change))
    k = factor("entry", Protection(rows="time", unit="entry"), moves=moves)
    assert k == moves
    found = needed(worlds, statistics, lambda one, other: abs(one[0] - other[0]) <= change, lambda one, other: True)
    assert found == BASE**k


# Independent factors: one flag for each observation, by randomised response with e^ε = 2


def flags(world: World) -> dict[World, Fraction]:
    """The law of a flag for each observation, right with probability 2/3."""
    right = BASE / (1 + BASE)
    outputs = itertools.product((0, 1), repeat=len(world))
    return {
        output: math.prod(
            (right if told == value else 1 - right for told, value in zip(output, world, strict=True)),
            start=Fraction(1),
        )
        for output in outputs
    }


def divergence(one: dict[World, Fraction], other: dict[World, Fraction], order: float) -> float:
    total = math.fsum(float(one[output]) ** order * float(other[output]) ** (1 - order) for output in one)
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("window", [1, 2, 3, 4])
def test_independent_flags_lose_a_sum_of_losses_and_a_sum_of_squares(window: int) -> None:
    worlds = grid(window, 1)
    laws = {world: flags(world) for world in worlds}
    worst = max(laws[one][output] / laws[other][output] for one in worlds for other in worlds for output in worlds)
    k = factor("entry", over(window), separable=True)
    assert worst == BASE**k
    single = price(Claim(loss=Loss("0.1", neighbours=NEIGHBOURS["entry"])), over(1)).rho
    assert (
        price(Claim(loss=Loss("0.1", neighbours=NEIGHBOURS["entry"]), separable=True), over(window)).rho == k * single
    )
    for order in (1.5, 2.0, 5.0):
        of_one = divergence(flags((0,)), flags((1,)), order)
        of_all = max(divergence(laws[one], laws[other], order) for one in worlds for other in worlds)
        assert of_all == pytest.approx(k * of_one, rel=1e-12)
        assert of_all <= order * k * math.log(2) ** 2 / 2


# Gaussians: whole numbers with probability proportional to exp(-z²/2σ²)

VARIANCE = 9
STATED = Fraction(1, 2 * VARIANCE)  # ρ of a shift by one
NUMBERS = np.arange(-400, 401)


def gaussian_divergence(shift: int, order: float) -> float:
    weights = -(NUMBERS**2) / (2 * VARIANCE)
    moved = -((NUMBERS - shift) ** 2) / (2 * VARIANCE)
    normal = np.log(np.exp(weights).sum())
    return float(np.log(np.exp(order * weights + (1 - order) * moved - normal).sum()) / (order - 1))


@pytest.mark.parametrize("shift", [1, 2, 3, 4, 10])
@pytest.mark.parametrize("order", [2, 3, 5])
def test_a_gaussian_loses_by_the_square_of_its_shift(shift: int, order: int) -> None:
    assert gaussian_divergence(shift, order) == pytest.approx(order * shift**2 * float(STATED), rel=1e-9)
    for between in (order - 0.9, order - 0.5):
        assert gaussian_divergence(shift, between) <= between * shift**2 * float(STATED) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("protects", "declared", "said", "shift"),
    [
        ("membership", Protection(), {}, 2),
        ("entry", Protection(), {"columns": 3}, 3),
        ("entry", over(4), {}, 4),
        ("entry", Protection(rows="time", unit="entry"), {"moves": 10}, 10),
        ("window", over(3), {"window": 2}, 2),
        ("person", over(2), {"one_sign": True}, 2),
        ("record", Protection(units_per_person=3), {}, 3),
    ],
)
def test_squares_of_a_group_are_those_of_the_gaussian(
    protects: Basis, declared: Protection, said: dict[str, Any], shift: int
) -> None:
    """The statistics that attain the factors above, with Gaussian noise instead."""
    found = price(Claim(loss=Loss.zcdp(STATED, neighbours=NEIGHBOURS[protects]), **said), declared)
    assert found.factor == shift
    assert 0 <= found.rho - shift**2 * STATED < Fraction(1, 10**24)
    assert gaussian_divergence(shift, 2) == pytest.approx(2 * float(found.rho), rel=1e-9)


def test_squares_of_independent_observations_add_up_and_those_of_one_change_do_not() -> None:
    """Four observations with noise of their own, each moved by three: four times nine."""
    claim = Claim(loss=Loss.zcdp(STATED, neighbours=NEIGHBOURS["entry"]), moves=3, separable=True)
    assert price(claim, over(4)).rho == 4 * 9 * STATED
    assert 4 * gaussian_divergence(3, 2) == pytest.approx(2 * float(price(claim, over(4)).rho), rel=1e-9)
