"""Attacks on the bound from below and on the two-sided interval, and broken ones that an audit has to catch.

What is sound is the released code: its value on every table of tiny worlds, beside all cliques, and the law of both
numbers of a two-sided interval on tables that one record tells apart as far as it can.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, combinations, product
from typing import Final, cast

import numpy as np

from wallflower.audit import Finding, Floats, ScriptedNoise, World, audit_bound, audit_exact
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.data import Points
from wallflower.machine.heavy import scipy_optimize as _optimize
from wallflower.neighbours.noisy_count import GAP, STEP, round_to_records
from wallflower.neighbours.pairs import build_tree
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.lower import certify_lower, lower_count
from wallflower.queries.count.two_sided import TwoSidedCount, TwoSidedCounted

SENSITIVITY, FAR_DISTANCE = 2, 1000.0
LOSSES: Final = (Loss("1"), Loss.zcdp("1/2"))

# One record in the middle of two turns both into inliers; without it they are a clique that counts as one outlier.
STAR: Final = [-1.0, 1.0, FAR_DISTANCE, 2 * FAR_DISTANCE, 4 * FAR_DISTANCE, 4 * FAR_DISTANCE]
TABLES: Final = ([0.0, *STAR], [-FAR_DISTANCE, *STAR])

PATH: Final = World(tuple((float(x),) for x in range(6)), 4)
CROSS: Final = World(((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)), 4)


def lower_findings() -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for place, neighbours, world in (("path", 1, PATH), ("path", 2, PATH), ("cross", 2, CROSS)):
        here, asked = f"on a {place}, k = {neighbours}", _two_sided(LOSSES[0], neighbours)
        exact, brute = (partial(each, neighbours=neighbours) for each in (_exact, _over_all_cliques))
        yield audit_exact(exact, brute, world.arrays(), name=f"lower bound {here}")
        value = partial(_value, neighbours=neighbours)
        yield audit_bound(partial(_hidden, asked), value, world, name=f"lower bound: what its noise hides, {here}")
    for loss in LOSSES:
        first, second = (_law_of_both(_two_sided(loss), records) for records in TABLES)
        yield audit_law(first, second, claimed=loss, name=f"two-sided interval, {loss}")
    for name, (broken, neighbours) in BROKEN_BOUNDS.items():
        value = partial(broken, neighbours=neighbours)
        yield audit_bound(lambda _: SENSITIVITY, value, PATH, name=f"broken: {name}", expected=True)
    unweighted = partial(_over_all_cliques, weigh=np.ones_like)
    yield audit_exact(_exact, unweighted, PATH.arrays(), name="broken: what outliers miss is forgotten", expected=True)
    for name, law in BROKEN_LAWS.items():
        first, second = (law(_two_sided(LOSSES[0]), records) for records in TABLES)
        yield audit_law(first, second, claimed=LOSSES[0], name=f"broken: {name}", expected=True)


def _two_sided(loss: Loss, neighbours: int = 1) -> TwoSidedCount:
    return TwoSidedCount(neighbours=neighbours, radius=1.0, loss=loss, slack=SENSITIVITY, normalise=False)


def _exact(values: Floats, neighbours: int = 2) -> float:
    return round(lower_count(values, 1.0, neighbours, sensitivity=SENSITIVITY, normalise=False), 4)


def _over_all_cliques(
    values: Floats,
    neighbours: int = 2,
    *,
    room: float = SENSITIVITY - 1,
    reach: float = 4.0,
    weigh: Callable[[Floats], Floats] = np.reciprocal,
) -> float:
    """The linear programme with a row for every set of outliers that are pairwise within the reach."""
    apart = ((values[:, None] - values) ** 2).sum(axis=2)
    missing = neighbours + 1.0 - np.count_nonzero(apart <= 1.0, axis=1)
    apart, weight = apart[np.ix_(missing > 0, missing > 0)], weigh(missing[missing > 0])
    everybody = range(len(weight))
    if not len(weight):
        return 0.0
    sets = chain.from_iterable(combinations(everybody, size) for size in range(1, len(weight) + 1))
    near = (each for each in sets if apart[np.ix_(each, each)].max() <= reach)
    return _largest_sum(tuple(tuple(float(weight[j]) * (j in each) for j in everybody) for each in near), room)


@lru_cache(maxsize=2**14)
def _largest_sum(rows: tuple[tuple[float, ...], ...], room: float) -> float:
    """The largest sum of shares from 0 to 1 that every row has room for; many tables of a world share a programme."""
    solved = _optimize.linprog(-np.ones(len(rows[0])), A_ub=rows, b_ub=np.full(len(rows), room), bounds=(0, 1))
    return round(-float(solved.fun), 4)


def _value(values: Floats, neighbours: int) -> float:
    return certify_lower(build_tree(values, 1.0), neighbours, SENSITIVITY, GAP).lower


def _hidden(query: TwoSidedCount, values: Floats) -> float:
    """By how much the noise of the second number lets one record move it, by its own word."""
    script = ScriptedNoise()
    query.answer(Points.from_array(values, name="made-up"), script)
    return float(script.asked[-1][1] * query.loss_per_number.epsilon * STEP)


class _Only:
    """Passes on one of the draws that are asked for; the others are 0."""

    def __init__(self, noise: Noise, place: int) -> None:
        self.noise, self.place = noise, place

    def laplace(self, scale: Fraction) -> int:
        return self._turn(self.noise.laplace, scale)

    def gaussian(self, scale: Fraction) -> int:
        return self._turn(self.noise.gaussian, scale)

    def _turn(self, draw: Callable[[Fraction], int], scale: Fraction) -> int:
        self.place -= 1
        return draw(scale) if self.place == -1 else 0


def _law_of_both(query: TwoSidedCount, records: list[float]) -> Law:
    """Each number has a draw of its own, so their laws multiply; a draw that both would use leaves one without any."""
    points = _points(records)

    def law(part: Callable[[TwoSidedCounted], int], place: int) -> Law:
        return law_of(lambda noise: part(query.answer(points, cast("Noise", _Only(noise, place)))))

    return _both(law(lambda answer: answer.value, 0), law(lambda answer: answer.floor, 1))


def _both(first: Law, second: Law) -> Law:
    return {(a, b): p * q for (a, p), (b, q) in product(first.items(), second.items())}


def _points(records: list[float]) -> Points:
    return Points.from_array(np.array(records)[:, None], name="made-up")


# Broken, on purpose


def _broken_whole_loss(query: TwoSidedCount, records: list[float]) -> Law:
    """BROKEN: both numbers at the whole loss."""
    both = query.loss + query.loss
    return _law_of_both(replace(query, loss=both), records)


def _broken_shared_draw(query: TwoSidedCount, records: list[float]) -> Law:
    """BROKEN: one draw for both numbers."""
    points = _points(records)
    count, floor = query.answer(points, ScriptedNoise()).value, _value(points.values, 1)

    def answer(noise: Noise) -> tuple[int, int]:
        steps = query.noise(points.n, 1).draw(noise)
        first, second = (
            round_to_records(Fraction(steps + math.floor(start / STEP)), points.n) for start in (count, floor)
        )
        return first, second

    return law_of(answer)


BROKEN_BOUNDS: Final[dict[str, tuple[Callable[..., float], int]]] = {
    "the plain number of outliers": (partial(count_outliers, radius=1.0, normalise=False), 2),
    "room for D, not D - 1": (partial(_over_all_cliques, room=SENSITIVITY), 2),
    "cliques within the radius, not twice it": (partial(_over_all_cliques, reach=1.0), 2),
    "a radius a hair too small": (partial(_over_all_cliques, reach=4.0 * (1 - 1e-9)), 2),
}
BROKEN_LAWS: Final[dict[str, Callable[[TwoSidedCount, list[float]], Law]]] = {
    "two-sided, both numbers at the whole loss": _broken_whole_loss,
    "two-sided, one draw for both numbers": _broken_shared_draw,
}
