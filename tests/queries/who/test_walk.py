"""The walk: one coin for each record, and which ranks names can come from."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from wallflower.audit.laws import law_of
from wallflower.queries.who.walk import (
    NEGLIGIBLE,
    expected_ranks,
    furthest_rank,
    name_chance,
    name_in_order,
    rank_chance,
)

EPSILON = Fraction(3, 4)


@pytest.mark.parametrize(
    ("most", "epsilon", "rank"),
    [(20, "0.75", 89), (20, "0.375", 164), (20, "0.075", 750), (100, "0.75", 282), (100, "0.375", 504),
     (100, "0.075", 2262)],
)  # fmt: skip
def test_beyond_the_furthest_rank_nobody_is_named_more_than_once_in_a_billion(
    most: int, epsilon: str, rank: int
) -> None:
    amount = Fraction(epsilon)
    assert furthest_rank(most, amount) == rank
    assert rank_chance(rank, most, amount) > NEGLIGIBLE >= rank_chance(rank + 1, most, amount)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_chance_of_a_rank_is_that_of_its_coin_among_all_coins(most: int) -> None:
    size, chance = 4, name_chance(EPSILON)
    for rank in range(1, size + 1):
        total = 0.0
        for coins in product((True, False), repeat=size):
            named = [at for at, coin in enumerate(coins, start=1) if coin][:most]
            total += math.prod(chance if coin else 1 - chance for coin in coins) * (rank in named)
        assert rank_chance(rank, most, EPSILON) == pytest.approx(total, rel=1e-12)


def test_coins_that_are_not_reached_decide_nothing() -> None:
    law = law_of(lambda noise: tuple(name_in_order(range(3), 1, EPSILON, noise)))
    skipped = math.exp(-0.75)
    assert law == pytest.approx({(at,): (1 - skipped) * skipped**at for at in range(3)} | {(): skipped**3}, rel=1e-12)


def test_a_walk_stops_at_the_last_name() -> None:
    class AllNamed:
        def flip(self, exponent: Fraction) -> bool:
            return False

    reached: list[int] = []

    def ranked():
        for at in range(10):
            reached.append(at)
            yield at

    assert name_in_order(ranked(), 3, EPSILON, AllNamed()) == [0, 1, 2]  # type: ignore[arg-type]
    assert reached == [0, 1, 2]


def test_the_last_name_stands_at_the_expected_rank() -> None:
    chances = [rank_chance(rank, 20, EPSILON) - rank_chance(rank, 19, EPSILON) for rank in range(1, 400)]
    mean = sum(rank * chance for rank, chance in enumerate(chances, start=1))  # the rank at which the 20th name stands
    assert mean == pytest.approx(expected_ranks(20, EPSILON), rel=1e-9)
