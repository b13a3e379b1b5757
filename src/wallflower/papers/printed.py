"""NOT PRIVATE: what the papers printed, mistakes included, to be drawn and to be attacked.

`upper_bound`, `japanese_local_bound` and `smooth_as_defined` alone are sound. Never calibrate a release with the
others. Where a printed step admits two readings, ours is stated. All records are compared with all others, and what a
ball can hold is found exactly (`balls.py`), so this is for small tables only.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.neighbours.limits import kissing_number
from wallflower.neighbours.pairs import Floats, squared_reach
from wallflower.papers.balls import heaviest_ball

Members = NDArray[np.bool_]

DELTA: Final = 0.01
CLAIM: Final = (0.7, 7.0)  # from this ε on the standard deviation is claimed to be below 7


def lower_bound(dimension: int, neighbours: int) -> int:
    """2dk + 1, which [Oka15] scales its noise by: the count can move by more, so the noise hides too little.

    >>> lower_bound(2, 3)
    13
    """
    return 2 * dimension * neighbours + 1


def japanese_lower_bound(n: int, dimension: int, neighbours: int) -> int:
    """min(N, 2d(k-1) + 1) [Oka15ja, Thm 3], by which it scales the noise of its figures. No upper bound either.

    >>> japanese_lower_bound(9, 2, 3), japanese_lower_bound(235, 34, 5)
    (9, 235)
    """
    return min(n, 2 * dimension * (neighbours - 1) + 1)


def upper_bound(dimension: int, neighbours: int) -> int:
    """k K_d + 1 [Oka15, Thm 4], true.

    >>> upper_bound(2, 3)
    19
    """
    touching = 6 if dimension == 2 else kissing_number(dimension)  # the strict number differs in the plane
    return neighbours * touching + 1


def smooth_as_printed(points: Floats, radius: float, neighbours: int, *, beta: float) -> float:
    """S by Algorithms 1 and 2 of [Oka15], with e^(-tβ) as Algorithm 2 has it (4.2.2 writes e^(-tε)).

    Algorithm 1 never reaches the last member of P, which is taken in the order of the records. Algorithm 2 keeps bounds
    without a cap and stops by bounds that are at most N. Definition 7 also leaves self out by value, which we mend
    here: it would make the count itself another one.
    """
    table = Table(points, radius, neighbours)
    best, n = 0.0, table.n
    covered = [0, 0]  # what one ball holds of the band around k, and of that around k-1, at the t before
    for t in range(n + 1):
        if max((table.ceiling(covered, t - 1, later, beta) for later in range(t, n + 1)), default=0.0) <= best:
            return best
        covered = [table.hold(without_last(band)) for band in table.bands(t)]
        best = max(best, math.exp(-beta * t) * (max(covered) + t + 1))
    return best


def smooth_as_defined(points: Floats, radius: float, neighbours: int, *, beta: float) -> float:
    """S as [Oka15, Thm 6] defines it, every bound at most N: sound, and larger than need be."""
    table = Table(points, radius, neighbours)
    return max(
        math.exp(-beta * t) * min(table.n, max(map(table.hold, table.bands(t))) + t + 1) for t in range(table.n + 1)
    )


def japanese(points: Floats, radius: float, neighbours: int, *, beta: float, normalise: bool = True) -> float:
    """S by [Oka15ja, eqs 17-25 and Algorithm 2], without a cap; it stops at N e^(-βt).

    The step from (21) to (22) is wrong: what a new record may complete is looked for around records only. Nor is S
    smooth, since the record that leaves k+1 others of degree k puts k of them into a sum that was empty.
    """
    table = Table(points, radius, neighbours, normalise)
    best = 0.0
    for t in range(table.n + 1):
        if best > table.n * math.exp(-beta * t):
            return best
        best = max(best, math.exp(-beta * t) * japanese_step(table, t))
    return best


def japanese_step(table: Table, t: int) -> int:
    """The right side of [Oka15ja, eq. 23]: max(OC-bar, IC-bar) + t + 1."""
    return max(candidates_bar(table, table.neighbours, t), candidates_bar(table, table.neighbours - 1, t)) + t + 1


def candidates_bar(table: Table, level: int, t: int) -> int:
    """OC-bar at k [Oka15ja, eq. 20] and IC-bar at k-1 (eq. 22): out over the records plus in over the domain."""
    outward = (table.degree >= level) & (table.degree <= level + t)
    inward = (table.degree >= level - t) & (table.degree < level)
    return table.hold_around_records(outward) + table.hold(inward)


def japanese_local_bound(points: Floats, radius: float, neighbours: int, *, normalise: bool = True) -> int:
    """max(OC, IC) + 1 [Oka15ja, Thm 4], true: OC is over the records and IC over the whole domain."""
    table = Table(points, radius, neighbours, normalise)
    outward, inward = table.degree == neighbours, table.degree == neighbours - 1
    return max(table.hold_around_records(outward), table.hold(inward)) + 1


def noise_for_global(bound: float, epsilon: float, delta: float = DELTA) -> float:
    """The papers' Gaussian deviation for a bound on the global sensitivity, Δ sqrt(2 ln(2/δ))/ε."""
    return bound * math.sqrt(2 * math.log(2 / delta)) / epsilon


class Table:
    """Everything about a small table that the printed steps look at."""

    def __init__(self, points: Floats, radius: float, neighbours: int, normalise: bool = True) -> None:
        self.points, self.neighbours, self.n = points, neighbours, len(points)
        self.reach = squared_reach(radius, points.shape[1], normalise=normalise)
        self.near = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2) <= self.reach
        self.degree = np.count_nonzero(self.near, axis=1) - 1
        self._held: dict[bytes, int] = {}

    def hold(self, members: Members) -> int:
        """The most members that one ball can hold, wherever it is."""
        key = members.tobytes()
        if key not in self._held:
            self._held[key] = heaviest_ball(self.points[members], self.reach)
        return self._held[key]

    def hold_around_records(self, members: Members) -> int:
        """The most members in a ball around a record, which is one of them if it is a member."""
        return int(np.count_nonzero(self.near[:, members], axis=1).max(initial=0))

    def bands(self, t: int) -> tuple[Members, Members]:
        """P of [Oka15, 4.3.1]: the records whose degree is within t of k, and of k-1."""
        return self._band(self.neighbours, t), self._band(self.neighbours - 1, t)

    def ceiling(self, covered: list[int], at: int, later: int, beta: float) -> float:
        """What step `later` can reach, given what balls hold at step `at` [Oka15, Prop. 1]: N at most."""
        sizes = [
            held + self._sizes[which][later] - (self._sizes[which][at] if at >= 0 else 0)
            for which, held in enumerate(covered)
        ]
        return math.exp(-beta * later) * min(self.n, max(sizes) + later + 1)

    @cached_property
    def _sizes(self) -> tuple[list[int], list[int]]:
        """How many records each band has, for every t."""
        one, other = zip(*(map(np.count_nonzero, self.bands(t)) for t in range(self.n + 1)), strict=True)
        return list(map(int, one)), list(map(int, other))

    def _band(self, level: int, t: int) -> Members:
        is_member: Members = np.abs(self.degree - level) <= t
        return is_member


def without_last(members: Members) -> Members:
    """The members that [Oka15, Algorithm 1] reaches: all but the last."""
    kept = members.copy()
    kept[np.flatnonzero(members)[-1:]] = False
    return kept
