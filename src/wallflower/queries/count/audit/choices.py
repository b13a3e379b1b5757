"""Attacks on counts whose degree cap or radius is drawn with them: how far one record moves what the draw goes by, and
what the draw and the count show together.

The choice of radii alone has attacks in the package of `radius`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, World, audit_bound, audit_exact
from wallflower.audit.laws import Law, audit_parts, law_of, loss_between
from wallflower.audit.scripts import ShortNoise
from wallflower.data import Points
from wallflower.mechanisms import calibrate
from wallflower.neighbours.noisy_count import (
    STEP,
    CapRule,
    cap_rule,
    crowded_neighbours,
    crowding_sensitivity,
    crowding_steps,
    split_for_test,
)
from wallflower.neighbours.radii import radius_grid
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.count.at_radius import OneSidedCount
from wallflower.queries.count.at_share import CountAtShare
from wallflower.queries.count.audit.at_radius import FAR_DISTANCE
from wallflower.queries.count.audit.at_radius import STAR as LONELY
from wallflower.queries.count.two_sided import TwoSidedCount

LOSS: Final = Loss("1")
NEIGHBOURS: Final = 2
STAR: Final = World(((-1.0,), (0.0,), (1.0,), (9.0,)), 7)
CALM: Final = World(((0.0,), (9.0,)), 6)
# Tables between which one record moves the crowding, and the count, as far as any known to us
CROWDING: Final = ([-1.0] * 4 + [1.0] * 2 + [9.0], [-1.0] * 3 + [1.0] * 3 + [9.0])
COUNTED: Final = ([0.0, *LONELY], [-FAR_DISTANCE, *LONELY])


def cap_findings() -> Iterator[Finding]:
    """Attack the test of crowding: what must hold, then what must be caught."""
    yield audit_exact(
        _count_crowded, _count_crowded_by_force, CALM.arrays(), name="crowding of tables without contests"
    )
    yield audit_bound(lambda _: _hidden(_rule()), _count_crowded, STAR, name="crowding: what its noise hides")
    for name, steps in BROKEN.items():
        hidden = partial(_as_stated, Fraction(steps, STEP.denominator))
        yield audit_bound(hidden, _count_crowded, STAR, name=f"broken: {name}", expected=True)
    spent, left = split_for_test(LOSS)
    yield _attack_cap(_rule(), left, name="degree cap: test and count")
    yield _attack_cap(_rule(), LOSS, name="broken: degree cap, the count at the whole loss", expected=True)
    yield _attack_cap(_rule(LOSS + spent), left, name="broken: degree cap, the test at the whole loss", expected=True)
    yield _attack_cap(_rule(), left, name="broken: degree cap, a tenth short", through=ShortNoise, expected=True)


def _rule(loss: Loss = LOSS) -> CapRule:
    """The rule of a table that is large enough for a test, with the noise of any."""
    rule = cap_rule(10**6, 20, loss)
    assert rule.test is not None
    spent = split_for_test(loss)[0] if loss == LOSS else LOSS
    test = calibrate(crowding_sensitivity(NEIGHBOURS), spent, step=STEP)
    return CapRule(n=7, narrow=2, wide=4, test=test, numbers=rule.numbers, reason=rule.reason)


def _count_crowded(values: Floats) -> float:
    return float(crowding_steps([values], 1.0, NEIGHBOURS, normalise=False) * STEP)


def _count_crowded_by_force(values: Floats) -> float:
    """How many records have enough neighbours, but not a quarter more, by comparing all with all."""
    degree = np.count_nonzero(np.abs(values - values.T) <= 1.0, axis=1) - 1
    return float(np.count_nonzero((degree >= NEIGHBOURS) & (degree < crowded_neighbours(NEIGHBOURS))))


def _hidden(rule: CapRule) -> float:
    """By how much the noise of the test lets one record move the crowding, by its own word."""
    assert rule.test is not None
    return float(rule.test.scale * split_for_test(LOSS)[0].epsilon * STEP)


def _as_stated(records: Fraction, _: Floats) -> float:
    return float(records)


def _attack_cap(
    rule: CapRule,
    left: Loss,
    *,
    name: str,
    through: Callable[[Noise], Noise] = lambda noise: noise,
    expected: bool = False,
) -> Finding:
    """What the released crowding tells, and the count at the cap that one record moves most."""
    count = OneSidedCount(neighbours=1, radius=1.0, slack=rule.narrow, loss=left, normalise=False)

    def measure(tables: Any, answer: Callable[[Floats], Callable[[Noise], float]]) -> float:
        first, second = (_law(answer(np.array(records)[:, None]), through) for records in tables)
        return loss_between(first, second, LOSS)

    parts = {"crowding": measure(CROWDING, partial(_test, rule)), "count": measure(COUNTED, partial(_answer, count))}
    return audit_parts(parts, claimed=float(LOSS.amount), name=name, expected=expected)


def _law(draw: Callable[[Noise], float], through: Callable[[Noise], Noise]) -> Law:
    return law_of(lambda noise: draw(through(noise)))


def _test(rule: CapRule, values: Floats) -> Callable[[Noise], float]:
    """The crowding as it is released."""
    steps = crowding_steps([values], 1.0, NEIGHBOURS, normalise=False)
    return lambda noise: rule.choose(steps, noise).crowding or 0.0


def _answer(count: OneSidedCount, values: Floats) -> Callable[[Noise], float]:
    points = Points.from_array(values, name="made-up")
    return lambda noise: float(count.answer(points, noise).value)


# Broken, on purpose: how many steps one record would move the crowding by
BROKEN: Final = {
    "the crowding moves as the larger count alone does": (crowded_neighbours(NEIGHBOURS) + 1) * STEP.denominator + 1,
    "the crowding moves as the count does": (NEIGHBOURS + 1) * STEP.denominator + 1,
}


# A radius that is drawn for a share


class _CoarseGrid(CountAtShare):
    """A few radii, so that the law of the choice can be added up."""

    grid = radius_grid(0.5, 4.0, 1)


def share_findings() -> Iterator[Finding]:
    """Attack the drawn radius: what must hold, then what must be caught."""
    query = _CoarseGrid(neighbours=1, share=Fraction(1, 3), slack=2, loss=LOSS, normalise=False)
    count = query.at_radius(1.0)
    yield _attack_share(query, count, name="share: radius and count")
    name = "broken: share, the count at the whole loss"
    yield _attack_share(query, replace(count, loss=LOSS), name=name, expected=True)


def _attack_share(
    query: CountAtShare, count: OneSidedCount | TwoSidedCount, *, name: str, expected: bool = False
) -> Finding:
    def measure(draw: Callable[[Points, Noise], float]) -> float:
        tables = (Points.from_array(np.array(records)[:, None], name="made-up") for records in COUNTED)
        first, second = (law_of(partial(draw, points)) for points in tables)
        return loss_between(first, second, LOSS)

    parts = {
        "radius": measure(query.draw_radius),
        "count": measure(lambda points, noise: count.answer(points, noise).value),
    }
    return audit_parts(parts, claimed=float(LOSS.amount), name=name, expected=expected)
