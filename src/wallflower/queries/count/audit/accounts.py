"""Accounts of what a count draws, in every mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.audit.answers import (
    Accounts,
    Case,
    DrawRecord,
    LawCheck,
    Part,
    exponential,
    gaussian,
    gaussian_at_delta,
    join,
    laplace,
)
from wallflower.data import Points
from wallflower.neighbours.noisy_count import size_cap
from wallflower.neighbours.radii import DEFAULT_RADII, middle_radius
from wallflower.privacy import Loss
from wallflower.queries.count.audit.at_radius import FAR_DISTANCE, LINE, STAR
from wallflower.queries.count.audit.by_group import KEEPING, TABLES, table_of
from wallflower.queries.count.by_group import GroupCounts
from wallflower.queries.count.count import Count, CountAnswer
from wallflower.queries.count.two_sided import TwoSidedCounted

PURE, CONCENTRATED, WIDE = Loss("1"), Loss.zcdp("1/2"), Loss("1/4", delta="1/5")
TESTED: Final = Loss("60")  # enough for a test of crowding among seven records
SMOOTH: Final = Loss("1", delta="1e-6")
HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
SLACK: Final = 2
MOVES: Final = 3 * 128 + 1  # steps of 1/128: slack + 1 records, and one for the solver
FLOOR_MOVES: Final = 2 * 128 + 1
CROWDING_MOVES: Final = (4 + 5 + 2) * 128 + 4  # of a test of crowding by four neighbours
LARGER_TEST: Final = Loss("60")  # of sixteen records, where a seventh of it is too little for ten neighbours
LARGER_CROWDING_MOVES: Final = (10 + 13 + 2) * 128 + 4
GROUP_MOVES: Final = 2 * (2 * 128 + 1)  # a record leaves one group and joins another
RADII: Final = 101  # of the public grid
WITHOUT_DRAWS: Final = frozenset({"columns", "scale"})


def _points(records: Any) -> Points:
    return Points.from_array(np.array(records, dtype=np.float64)[:, None], name="made-up")


def _count(loss: Loss = PURE, **details: Any) -> Count:
    usual: dict[str, Any] = {"neighbours": 1, "radius": 1.0, "slack": SLACK, "normalise": False}
    return Count(loss=loss, **usual | details)


# A record in the middle of two others is what makes them inliers.
ON_STAR: Final = (_points([0.0, *STAR]), _points([-FAR_DISTANCE, *STAR]))
ON_LINE: Final = (_points([0.0, *LINE]), _points([-FAR_DISTANCE, *LINE]))
CHANGED_WARD: Final = (table_of(TABLES[0]), table_of(TABLES[1]))
KEPT_WARD: Final = (table_of(KEEPING[0]), table_of(KEEPING[1]))
# The only record of a ward, which nobody is in without it.
EMPTIED_WARD: Final = tuple(
    table_of([[9.0, ward], *([place, 0.0] for place in (-1.0, 0.0, 1.0))]) for ward in (1.0, 0.0)
)
# Five records have four neighbours, and no more, until one of them moves away.
CROWDED: Final = (_points([0.0] * 5 + [9.0, 20.0]), _points([0.0] * 4 + [30.0, 9.0, 20.0]))
CROWDED_STEPS: Final = 5 * 128
OTHERS: Final = [100.0 * place for place in range(15)]
APART: Final = (_points([0.0, *OTHERS]), _points([-FAR_DISTANCE, *OTHERS]))
COUNT: Final = ("count",)
# Three records in one place are near each other at every radius, until one moves away: then all three are outliers.
# Three others have company from a radius of 3.8 on, so that there the curve falls by as much.
BESIDE_THREE: Final = [
    0.0,
    0.0,
    FAR_DISTANCE,
    FAR_DISTANCE,
    FAR_DISTANCE + 3.8,
    2 * FAR_DISTANCE,
    3 * FAR_DISTANCE,
    4 * FAR_DISTANCE,
]
AT_RADII: Final = (_points([0.0, *BESIDE_THREE]), _points([9 * FAR_DISTANCE, *BESIDE_THREE]))


def _group(ward: str, moves: int = GROUP_MOVES) -> tuple[Part, Part]:
    """The two numbers of a ward; what they spend is what both wards spend, since a record can be in two."""
    return (
        laplace(f"count of {ward}", moves=moves, epsilon="9/10"),
        laplace(f"size of {ward}", moves=2, epsilon="1/10"),
    )


def _spend(part: Part, spends: Fraction) -> Part:
    return replace(part, spends=spends)


def _counts(answer: GroupCounts) -> tuple[int, ...]:
    return tuple(int(row["outliers"]) for row in answer.value)


def _numbers(answer: GroupCounts) -> list[int]:
    return [number for row in answer.value for number in (128 * row["outliers"], row["size"])]


def _laws_of_groups(shown: float) -> tuple[LawCheck, LawCheck]:
    """The counts of two wards together, which show this share of all, then their sizes: a tenth."""
    return (
        LawCheck(parts=("groups",), draws=(0, 2), least=shown - 0.005, most=shown + 0.005, seen=_counts),
        LawCheck(parts=("groups",), draws=(1, 3), least=0.0999, most=0.1, seen=_are_large),
    )


def _are_large(answer: GroupCounts) -> tuple[bool, ...]:
    return tuple(row["size"] >= 3 for row in answer.value)


def _value(answer: CountAnswer) -> int:
    assert not isinstance(answer, GroupCounts)
    return answer.value


def _floor(answer: TwoSidedCounted) -> int:
    return answer.floor


# The star in degrees of longitude on the equator, where one degree is 111.2 km.
ON_EQUATOR: Final = tuple(
    Points.from_array(
        np.array([[0.0, place] for place in (first, -1.0, 1.0, 60.0, 100.0, 140.0, 140.0)]), name="made-up"
    )
    for first in (0.0, -90.0)
)
METRIC_SETTINGS: Final[Mapping[str, tuple[Any, float]]] = {
    "manhattan": (ON_STAR, 1.0),
    "chebyshev": (ON_STAR, 1.0),
    "haversine": (ON_EQUATOR, 111.3),
}


def _metric_cases(metric: str) -> tuple[Case, Case, Case]:
    """The account of a count does not depend on the metric.  (R)"""
    tables, radius = METRIC_SETTINGS[metric]
    return (
        Case(
            name=metric,
            query=_count(metric=metric, radius=radius),
            released=lambda answer: [128 * answer.value],
            tables=tables,
            parts=(laplace("count", moves=MOVES, epsilon=1),),
            laws=(LawCheck(parts=COUNT, least=0.99),),
        ),
        Case(
            name=f"{metric} at ρ",
            query=_count(CONCENTRATED, metric=metric, radius=radius),
            tables=tables,
            parts=(gaussian("count", moves=MOVES, rho="1/2"),),
            laws=(LawCheck(parts=COUNT, least=0.9),),
        ),
        Case(
            name=f"{metric} at δ",
            query=_count(WIDE, metric=metric, radius=radius),
            tables=tables,
            parts=(gaussian_at_delta("count", moves=MOVES, epsilon="1/4", delta="1/5"),),
            laws=(LawCheck(parts=COUNT, least=0.9),),
        ),
    )


GRID_RADII: Final = frozenset(middle_radius(DEFAULT_RADII, place) for place in range(RADII))
CASES: Final[tuple[Case, ...]] = (
    Case(
        name="extension",
        query=_count(),
        released=lambda answer: [128 * answer.value],
        tables=ON_STAR,
        parts=(laplace("count", moves=MOVES, epsilon=1),),
        laws=(LawCheck(parts=COUNT, least=0.99),),
    ),
    Case(
        name="extension, certified",
        query=_count(certify=True),
        released=lambda answer: [128 * answer.value],
        tables=ON_STAR,
        parts=(laplace("count", moves=MOVES, epsilon=1),),
        laws=(LawCheck(parts=COUNT, least=0.99),),
    ),
    Case(
        name="extension, certified, at ρ",
        query=_count(CONCENTRATED, certify=True),
        tables=ON_STAR,
        parts=(gaussian("count", moves=MOVES, rho="1/2"),),
        laws=(LawCheck(parts=COUNT, least=0.9),),
    ),
    Case(
        name="extension, certified, at δ",
        query=_count(WIDE, certify=True),
        tables=ON_STAR,
        parts=(gaussian_at_delta("count", moves=MOVES, epsilon="1/4", delta="1/5"),),
        laws=(LawCheck(parts=COUNT, least=0.9),),
    ),
    Case(
        name="extension, certified, degree cap by the test",
        query=_count(TESTED, slack=None, neighbours=4, certify=True),
        tables=ON_STAR,
        parts=(
            laplace("crowding", moves=CROWDING_MOVES, epsilon=TESTED.epsilon / 7),
            laplace("count", moves=4 * 128 + 1, epsilon=6 * TESTED.epsilon / 7),
        ),
        laws=(
            LawCheck(
                parts=("crowding",),
                least=0.453,
                most=0.454,
                seen=lambda answer: answer.cap.crowding > 0.9,
                tables=CROWDED,
            ),
            LawCheck(parts=COUNT, least=0.99, seen=_value, tables=CROWDED, shifts={0: CROWDED_STEPS}),
        ),
    ),
    Case(
        name="extension, default degree cap",
        query=_count(slack=None, normalise=True),
        tables=ON_STAR,
        parts=(laplace("count", moves=(size_cap(len(STAR) + 1, 1, PURE, dimension=1) + 1) * 128 + 1, epsilon=1),),
        laws=(LawCheck(parts=COUNT, least=0.99),),
    ),
    Case(
        name="extension, degree cap by the test",
        query=_count(TESTED, slack=None, neighbours=4),
        tables=ON_STAR,
        parts=(
            laplace("crowding", moves=CROWDING_MOVES, epsilon=TESTED.epsilon / 7),
            laplace("count", moves=4 * 128 + 1, epsilon=6 * TESTED.epsilon / 7),
        ),
        laws=(
            LawCheck(
                parts=("crowding",),
                least=0.453,
                most=0.454,
                seen=lambda answer: answer.cap.crowding > 0.9,
                tables=CROWDED,
            ),
            LawCheck(parts=COUNT, least=0.99, seen=_value, tables=CROWDED, shifts={0: CROWDED_STEPS}),
        ),
    ),
    Case(
        name="extension, degree cap by the larger test",
        query=_count(LARGER_TEST, slack=None, neighbours=10),
        tables=APART,
        parts=(
            laplace("crowding", moves=LARGER_CROWDING_MOVES, epsilon=2 * LARGER_TEST.epsilon / 7),
            laplace("count", moves=4 * 128 + 1, epsilon=5 * LARGER_TEST.epsilon / 7),
        ),
        without_law={
            "crowding": "the laws of the smaller test run the same code",
            "count": "the laws of the smaller test run the same code",
        },
    ),
    Case(
        name="extension at ρ",
        query=_count(CONCENTRATED),
        tables=ON_STAR,
        parts=(gaussian("count", moves=MOVES, rho="1/2"),),
        laws=(LawCheck(parts=COUNT, least=0.9),),
    ),
    Case(
        name="extension at δ",
        query=_count(WIDE),
        tables=ON_STAR,
        parts=(gaussian_at_delta("count", moves=MOVES, epsilon="1/4", delta="1/5"),),
        laws=(LawCheck(parts=COUNT, least=0.9),),
    ),
    Case(
        name="global",
        query=_count(mechanism="global", neighbours=3, slack=None),
        tables=ON_LINE,
        parts=(laplace("count", moves=7, epsilon=1),),
        laws=(LawCheck(parts=COUNT, least=0.99),),
    ),
    Case(
        name="global at ρ",
        query=_count(CONCENTRATED, mechanism="global", neighbours=3, slack=None),
        tables=ON_LINE,
        parts=(gaussian("count", moves=7, rho="1/2"),),
        laws=(LawCheck(parts=COUNT, least=0.9),),
    ),
    Case(
        name="global at δ",
        query=_count(WIDE, mechanism="global", neighbours=3, slack=None),
        tables=ON_LINE,
        parts=(gaussian_at_delta("count", moves=7, epsilon="1/4", delta="1/5"),),
        laws=(LawCheck(parts=COUNT, least=0.99),),
    ),
    Case(
        name="smooth",
        query=_count(SMOOTH, mechanism="smooth", neighbours=3, slack=None),
        tables=ON_LINE,
        parts=(
            Part(name="count", spends=Fraction(1), draws=(DrawRecord("laplace", Fraction(2 * 7 * 128)),), noisy=(0,)),
        ),
        drift=0.02,
        laws=(LawCheck(parts=COUNT, least=0.49, most=0.51),),
    ),
    Case(
        name="two-sided interval",
        released=lambda answer: [128 * answer.value, 128 * answer.floor],
        query=_count(interval="two-sided"),
        tables=ON_STAR,
        parts=(
            laplace("count", moves=MOVES, epsilon=HALF),
            laplace("floor", moves=FLOOR_MOVES, epsilon=HALF),
        ),
        laws=(LawCheck(parts=COUNT, least=0.99, seen=_value), LawCheck(parts=("floor",), least=0.9, seen=_floor)),
    ),
    Case(
        name="two-sided interval at ρ",
        query=_count(CONCENTRATED, interval="two-sided"),
        tables=ON_STAR,
        parts=(gaussian("count", moves=MOVES, rho="1/4"), gaussian("floor", moves=FLOOR_MOVES, rho="1/4")),
        laws=(
            LawCheck(parts=COUNT, least=0.86, most=0.88, seen=_value),
            LawCheck(parts=("floor",), least=0.92, seen=_floor),
        ),
    ),
    Case(
        name="two-sided interval at δ",
        query=_count(WIDE, interval="two-sided"),
        tables=ON_STAR,
        parts=(
            gaussian_at_delta("count", moves=MOVES, epsilon="1/8", delta="1/10"),
            gaussian_at_delta("floor", moves=FLOOR_MOVES, epsilon="1/8", delta="1/10"),
        ),
        laws=(
            LawCheck(parts=COUNT, least=0.98, seen=_value),
            LawCheck(parts=("floor",), least=0.97, seen=_floor),
        ),
    ),
    Case(
        name="at a share",
        query=_count(neighbours=2, radius=None, share="2/3"),
        tables=AT_RADII,
        parts=(
            exponential("radius", epsilon=HALF, moves=MOVES, candidates=RADII),
            laplace("count", moves=MOVES, epsilon=HALF),
        ),
        is_public=lambda answer: answer.radius in GRID_RADII,
        laws=(
            LawCheck(parts=("radius",), least=0.85, most=0.87, seen=lambda answer: answer.radius > 3.7),
            LawCheck(parts=COUNT, least=0.9, seen=_value),
        ),
    ),
    Case(
        name="at a share, at δ",
        query=_count(WIDE, neighbours=2, radius=None, share="2/3"),
        tables=AT_RADII,
        parts=(
            replace(exponential("radius", epsilon="1/8", moves=MOVES, candidates=RADII), delta=Fraction(0)),
            gaussian_at_delta("count", moves=MOVES, epsilon="1/8", delta="1/5"),
        ),
        laws=(
            LawCheck(parts=("radius",), least=0.85, most=0.87, seen=lambda answer: answer.radius > 3.7),
            LawCheck(parts=COUNT, least=0.97, seen=_value),
        ),
    ),
    Case(
        name="at a share, two-sided",
        query=_count(neighbours=2, radius=None, share="2/3", interval="two-sided"),
        tables=AT_RADII,
        parts=(
            exponential("radius", epsilon=HALF, moves=MOVES, candidates=RADII),
            laplace("count", moves=MOVES, epsilon="1/4"),
            laplace("floor", moves=FLOOR_MOVES, epsilon="1/4"),
        ),
        laws=(
            LawCheck(parts=("radius",), least=0.85, most=0.87, seen=lambda answer: answer.radius > 3.7),
            LawCheck(parts=COUNT, least=0.99, seen=_value),
            LawCheck(parts=("floor",), least=0.74, most=0.75, seen=lambda answer: _floor(answer.count)),
        ),
    ),
    Case(
        name="by group",
        released=_numbers,
        query=_count(by=("ward",)),
        rho=(Fraction(9, 10) * Fraction(385, 257)) ** 2 / 8,  # a record that keeps its group moves one count further
        tables=CHANGED_WARD,
        parts=(_spend(join("groups", *_group("A"), *_group("B")), Fraction(1)),),
        laws=_laws_of_groups(0.885),
    ),
    Case(
        name="by group, one of which is empty",
        released=_numbers,
        query=_count(by=("ward",)),
        rho=(Fraction(9, 10) * Fraction(385, 257)) ** 2 / 8,
        tables=(EMPTIED_WARD[0], EMPTIED_WARD[1]),
        parts=(_spend(join("groups", *_group("A"), *_group("B")), Fraction(1)),),
        laws=_laws_of_groups(0.437),
    ),
    Case(
        name="by group, degree cap 3",
        released=_numbers,
        query=_count(by=("ward",), slack=3),
        rho=Fraction(205, 1000),
        tables=CHANGED_WARD,
        parts=(_spend(join("groups", *_group("A", 2 * (3 * 128 + 1)), *_group("B", 2 * (3 * 128 + 1))), Fraction(1)),),
        laws=_laws_of_groups(0.593),
    ),
    Case(
        name="by public group",
        query=_count(by=("ward",), public_groups=True),
        claimed={"public": ("ward",)},
        tables=KEPT_WARD,
        parts=(
            laplace("count of A", moves=MOVES, epsilon=1),
            _spend(laplace("count of B", moves=MOVES, epsilon=1), Fraction(0)),
        ),
        laws=(LawCheck(parts=("count of A",), least=0.99),),
    ),
    *(case for metric in METRIC_SETTINGS for case in _metric_cases(metric)),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)
