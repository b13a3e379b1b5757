"""Walk down an order of records, with one coin for each, and name those whose coin says so.

A record is skipped with probability exactly e^(-ε), whatever the others are, and the walk ends at the wanted number of
names. Every coin belongs to one record and every outcome shows the named records alone, in their order: (L). Which
ranks names can come from is public, because it follows from ε and the wanted number: (R).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Final, TypeVar

from wallflower.machine.heavy import scipy_special as _special
from wallflower.noise import Noise

T = TypeVar("T")

NEGLIGIBLE: Final = 1e-9  # a rank beyond which nobody is named more often than this is called the furthest


def name_in_order(ranked: Iterable[T], most: int, epsilon: Fraction, noise: Noise) -> list[T]:
    """Return the first `most` records whose own coin names them; each coin skips with probability e^(-ε).  (L)

    Coins are tossed when their record is reached, which has the law of one coin for every record: those that are never
    reached decide nothing.
    """
    named: list[T] = []
    for record in ranked:
        if not noise.flip(epsilon):
            named.append(record)
            if len(named) == most:
                break
    return named


def name_chance(epsilon: Fraction) -> float:
    """Return the chance that a record is named when its turn comes, which no mechanism can raise at this ε.  (B)

    >>> round(name_chance(Fraction(3, 4)), 4)
    0.5276
    """
    return -math.expm1(-float(epsilon))


def rank_chance(rank: int, most: int, epsilon: Fraction) -> float:
    """Return the chance that the record of this rank, counted from 1, is named.  (R)

    >>> [round(rank_chance(rank, 2, Fraction(3, 4)), 4) for rank in (1, 2, 3, 5)]
    [0.5276, 0.5276, 0.3807, 0.1436]
    """
    chance, before = name_chance(epsilon), rank - 1
    return chance if before < most else chance * float(_special.bdtr(most - 1, before, chance))


def furthest_rank(most: int, epsilon: Fraction) -> int:
    """Return the rank beyond which nobody is named with a chance above `NEGLIGIBLE`.  (R)

    >>> [furthest_rank(20, Fraction(epsilon)) for epsilon in ("0.75", "0.375", "0.075")]
    [89, 164, 750]
    """
    low = high = most
    while rank_chance(high, most, epsilon) > NEGLIGIBLE:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if rank_chance(middle, most, epsilon) > NEGLIGIBLE else (low, middle)
    return low - 1


def expected_ranks(most: int, epsilon: Fraction) -> float:
    """Return the mean rank of the last name, where enough records take part.

    >>> round(expected_ranks(20, Fraction(3, 4)), 1)
    37.9
    """
    return most / name_chance(epsilon)
