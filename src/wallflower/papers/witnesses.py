"""Neighbouring tables that the papers' noise tells apart, and the δ that each pair needs, exactly.

A mechanism that claims (ε, δ) is refuted by one pair whose least δ is larger. Between two normal laws it has a closed
form: the likelihood ratio exceeds e^ε inside or outside an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from wallflower.neighbours.pairs import Floats
from wallflower.papers import printed
from wallflower.papers.methods import gaussian_pace
from wallflower.queries.count.exact import count_outliers

EPSILON: Final = 0.7
AFAR: Final = 50.0  # a place that is near no other record of a witness


@dataclass(frozen=True, slots=True)
class Normal:
    """A released count: its mean and its standard deviation."""

    mean: float
    deviation: float

    def inside(self, low: float, high: float) -> float:
        return _below((high - self.mean) / self.deviation) - _below((low - self.mean) / self.deviation)

    def outside(self, low: float, high: float) -> float:
        return _below((low - self.mean) / self.deviation) + _below((self.mean - high) / self.deviation)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Witness:
    """Two tables that differ in their last record, and the printed bound that is asked about both."""

    label: str
    bound: Callable[..., float]
    one: Floats
    other: Floats
    neighbours: int
    radius: float = 1.0

    def laws(self, epsilon: float = EPSILON) -> tuple[Normal, Normal]:
        """The counts that are released of either table."""
        return self._law(self.one, epsilon), self._law(self.other, epsilon)

    def delta(self, epsilon: float = EPSILON) -> float:
        """The least δ under which the printed noise keeps ε between these two."""
        return least_delta(*self.laws(epsilon), epsilon)

    def _law(self, points: Floats, epsilon: float) -> Normal:
        alpha, beta = gaussian_pace(epsilon, printed.DELTA)
        count = count_outliers(points, self.radius, self.neighbours)
        return Normal(count, self.bound(points, self.radius, self.neighbours, beta=beta) / alpha)


def least_delta(one: Normal, other: Normal, epsilon: float) -> float:
    """The least δ at which neither law is more than e^ε times the other, but for δ.

    >>> round(least_delta(Normal(0, 1), Normal(1, 1), 1.0), 4)
    0.1269
    """
    return max(_one_way(one, other, epsilon), _one_way(other, one, epsilon))


def _one_way(one: Normal, other: Normal, epsilon: float) -> float:
    """sup over sets T of P(T) - e^ε Q(T): T is where a quadratic in the outcome, ln P/Q - ε, is positive."""
    weight, rival = 1 / one.deviation**2, 1 / other.deviation**2
    square = (rival - weight) / 2
    slope = one.mean * weight - other.mean * rival
    constant = (other.mean**2 * rival - one.mean**2 * weight) / 2 + math.log(other.deviation / one.deviation) - epsilon
    if square == 0:  # equal deviations: T is a half-line
        if slope == 0:
            return 0.0
        turn = math.copysign(1.0, slope)
        edge = -constant / slope
        return _side(one, edge, turn) - math.exp(epsilon) * _side(other, edge, turn)
    inner = slope**2 - 4 * square * constant
    if inner <= 0:
        return 0.0
    low, high = sorted((-slope + sign * math.sqrt(inner)) / (2 * square) for sign in (-1, 1))
    part = Normal.inside if square < 0 else Normal.outside
    return part(one, low, high) - math.exp(epsilon) * part(other, low, high)


def _side(law: Normal, edge: float, turn: float) -> float:
    return _below(turn * (law.mean - edge) / law.deviation)


def _below(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


def groups(neighbours: int) -> Witness:
    """k+1 records on each of two unit vectors, all of degree k, against one of them far away.

    The moved record leaves k others of degree k-1, which the Japanese sums count beside the k+1 of the other group, so
    its noise grows by more than e^β.
    """
    one = np.repeat(np.eye(2), neighbours + 1, axis=0)
    return Witness(
        label=f"two groups of {neighbours + 1} records, k={neighbours}",
        bound=printed.japanese,
        one=one,
        other=_with_last(one, AFAR),
        neighbours=neighbours,
        radius=math.sqrt(0.5),  # per column: a distance of 1, where the groups are √2 apart
    )


def _with_last(points: Floats, place: float) -> Floats:
    moved = points.copy()
    moved[-1] = place
    return moved


_EIGHT: Final = np.array([[1.0], [1], [1], [1], [2], [1], [0], [0]])
EIGHT: Final = Witness(
    label="{1, 1, 1, 1, 2, 1, 0, 0} and its last at 12, k=1",
    bound=printed.smooth_as_printed,
    one=_EIGHT,
    other=_with_last(_EIGHT, 12.0),
    neighbours=1,
)
GROUPS: Final = tuple(map(groups, (5, 10, 20, 30)))
