"""NOT PRIVATE: what the papers printed, mistakes included, to be drawn and to be attacked.

`upper_bound` and `smooth_as_defined` alone are sound. Never calibrate a release with the others. Where a printed step
admits two readings, ours is stated. All records are compared with all others, so this is for small tables only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.neighbours.limits import kissing_number
from wallflower.neighbours.pairs import MARGIN, Floats, squared_reach
from wallflower.queries.count.sensitivity import peel, sweep, window

Members = NDArray[np.int64]

DELTA: Final = 0.01
CLAIM: Final = (0.7, 7.0)  # "the standard deviation is below 7 for ε of 0.7 and more"


def lower_bound(dimension: int, neighbours: int) -> int:
    """2dk + 1, which [Oka15] scales its noise by: the count can move by more, so the noise hides too little.

    >>> lower_bound(2, 3)
    13
    """
    return 2 * dimension * neighbours + 1


def upper_bound(dimension: int, neighbours: int) -> int:
    """k K_d + 1 [Oka15, Thm 4], true.

    >>> upper_bound(2, 3)
    19
    """
    touching = 6 if dimension == 2 else kissing_number(dimension)  # the strict number differs in the plane
    return neighbours * touching + 1


def smooth_as_printed(points: Floats, radius: float, neighbours: int, *, epsilon: float) -> float:
    """S by Algorithms 1 and 2 of [Oka15].

    Algorithm 1 never reaches the last member of P_t; the text discounts by e^(-tε) rather than e^(-tβ); Algorithm 2
    stops by a capped bound but keeps uncapped ones. Definition 7 also leaves self out by value, which we mend here: it
    would make the count itself another one.
    """
    world = _World(points, radius, neighbours)
    highest, best = min(len(points), upper_bound(world.dimension, neighbours)), 0.0
    for t in range(len(points)):
        discount = math.exp(-epsilon * t)
        if highest * discount <= best:
            break
        covered = max(world.cover(band[:-1]) for band in _bands(world.degree, neighbours, t))
        best = max(best, discount * (covered + t + 1))
    return best


def smooth_as_defined(points: Floats, radius: float, neighbours: int, *, beta: float) -> float:
    """S as [Oka15, Thm 6] defines it, every U_t at most N: sound, and larger than need be."""
    world = _World(points, radius, neighbours)
    return _smooth(world, world.cover, beta)


def japanese(points: Floats, radius: float, neighbours: int, *, beta: float) -> float:
    """S after [Oka15ja, eqs 19-24], reconstructed: the new record is looked for only where records already are.

    The equations themselves were not at hand. This is the simplest bound that gives what they are known to give:
    2 on {0, 2, 4, 6} (k=1, r=1) where a record put at 3 moves the count by 3, and 2 on five records around (1, 2)
    where one put there moves it by 5.
    """
    world = _World(points, radius, neighbours)
    return _smooth(world, world.centred, beta)


def noise_for_global(bound: float, epsilon: float, delta: float = DELTA) -> float:
    """The papers' Gaussian deviation for a bound on the global sensitivity, Δ sqrt(2 ln(2/δ))/ε."""
    return bound * math.sqrt(2 * math.log(2 / delta)) / epsilon


class _World:
    """Everything about a small table that the printed steps look at."""

    def __init__(self, points: Floats, radius: float, neighbours: int) -> None:
        self.points, self.neighbours, self.dimension = points, neighbours, points.shape[1]
        self.reach = squared_reach(radius, self.dimension, normalise=True) * (1 + MARGIN) ** 2
        self.squared = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
        self.near = self.squared <= squared_reach(radius, self.dimension, normalise=True)
        self.degree = np.count_nonzero(self.near, axis=1) - 1

    def cover(self, members: Members) -> int:
        """The most members that one ball can hold: exact in one and two columns, degeneracy + 1 above."""
        if len(members) == 0:
            return 0
        if self.dimension == 1:
            return int(window(np.sort(self.points[members, 0]), 4 * self.reach))
        if self.dimension == 2:
            return int(sweep(self.points[members], self.reach))
        beside = self.squared[np.ix_(members, members)] <= 4 * self.reach
        np.fill_diagonal(beside, False)
        return int(peel(beside))

    def centred(self, members: Members) -> int:
        """The most members in a ball around a record: one between records is missed."""
        return int(np.count_nonzero(self.near[:, members], axis=1).max(initial=0))


def _smooth(world: _World, cover: Callable[[Members], int], beta: float) -> float:
    n = len(world.points)
    return max(
        math.exp(-beta * t) * min(n, max(map(cover, _bands(world.degree, world.neighbours, t))) + t + 1)
        for t in range(n + 1)
    )


def _bands(degree: Members, neighbours: int, t: int) -> Iterator[Members]:
    """P_t: the records whose degree is within t of k, or of k-1."""
    return (np.flatnonzero(np.abs(degree - level) <= t) for level in (neighbours, neighbours - 1))
