"""Attacks on the counts of groups, and broken ones that an audit has to catch.

What is sound is the released code: its counts beside brute force, how far all of them move together on every table of
a tiny world, and what each number of an answer tells on tables between which a record changes its group.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, ScriptedNoise, World, audit_bound, audit_exact
from wallflower.audit.laws import audit_numbers
from wallflower.audit.scripts import ShortNoise
from wallflower.data import Column, Schema, Table
from wallflower.machine.lazy import load
from wallflower.mechanisms import Additive, calibrate
from wallflower.neighbours.noisy_count import STEP
from wallflower.privacy import Loss
from wallflower.queries.count.by_group import OUTLIERS, SIZE, SIZES_PART, CountByGroup, GroupCounts, Row
from wallflower.schema.columns import float_array, text_array

LOSS: Final = Loss("1")
SLACK, PLENTY = 2, 1000
WARDS: Final = ("A", "B")
SCHEMA: Final = Schema(columns=(Column("x"), Column("ward", categories=WARDS, public=True)))

# A record is a place and a ward. The one in the middle, in whichever ward it is, makes inliers of the two beside it.
SMALL: Final = World(tuple(product((-1.0, 0.0, 1.0), (0.0, 1.0))), 5)
BESIDE: Final = [[-1.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]]
TABLES: Final = ([[0.0, 0.0], *BESIDE], [[0.0, 1.0], *BESIDE])
KEEPING: Final = ([[0.0, 0.0], *BESIDE], [[9.0, 0.0], *BESIDE])  # it goes far away, within its ward


def group_findings() -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    exact = partial(_counts, _query(slack=PLENTY))
    yield audit_exact(exact, _brute_counts, SMALL.arrays(), name="exact counts of two groups")
    yield audit_bound(
        lambda _: _hidden(_query()), partial(_moves, _query()), SMALL, name="groups: what their noise hides together"
    )
    yield _attack_parts(_query(), name="groups, pure")
    short = "broken: groups, a tenth short"
    yield _attack_parts(_query(), name=short, through=ShortNoise, expected=True)
    for name, broken in BROKEN.items():
        yield _attack_parts(_query(broken), name=f"broken: {name}", expected=True)
    yield _attack_counts(_query(public=True), KEEPING, name="groups that are public")
    for name, through, tables in (
        ("public groups, a tenth short", ShortNoise, KEEPING),
        ("public groups, and a record changes its group", lambda noise: noise, TABLES),
    ):
        yield _attack_counts(_query(public=True), tables, name=f"broken: {name}", through=through, expected=True)
    everywhere = "broken: neighbours of other groups count"
    yield audit_exact(exact, partial(_brute_counts, is_within=False), SMALL.arrays(), name=everywhere, expected=True)


def _query(kind: type[CountByGroup] = CountByGroup, *, slack: int = SLACK, public: bool = False) -> CountByGroup:
    return kind(neighbours=1, radius=1.0, by=("ward",), loss=LOSS, normalise=False, slack=slack, public_groups=public)


def table_of(values: Any) -> Table:
    places, wards = np.array(values, dtype=np.float64).T
    cells = {"x": float_array(places), "ward": text_array(WARDS[int(ward)] for ward in wards)}
    return Table(arrow=load("pyarrow").table(cells), schema=SCHEMA, name="made-up")


def _answer(query: CountByGroup, values: Any, noise: Any) -> list[Row]:
    return query.answer(query.view(table_of(values)), noise).value


def _counts(query: CountByGroup, values: Floats) -> tuple[int, ...]:
    return tuple(row[OUTLIERS] for row in _answer(query, values, ScriptedNoise()))


def _brute_counts(values: Floats, *, is_within: bool = True) -> tuple[int, ...]:
    """Every record beside every other one of its group, or of all."""
    records = [tuple(row) for row in values.tolist()]
    lonely = [
        not any(
            abs(x - place) <= 1.0 and (ward == group or not is_within)
            for j, (place, group) in enumerate(records)
            if j != i
        )
        for i, (x, ward) in enumerate(records)
    ]
    return tuple(
        sum(alone and ward == group for alone, (_, ward) in zip(lonely, records, strict=True)) for group in (0, 1)
    )


def _moves(query: CountByGroup, values: Floats) -> list[float]:
    """Two numbers whose larger change is the sum of the changes of both counts."""
    view = query.view(table_of(values))
    first, second = (query._steps(records, view.dimension) for _, records in view.members())
    return [float(first + second), float(first - second)]


def _hidden(query: CountByGroup) -> float:
    """By how many steps the noise lets one record move all counts together, by its own word."""
    return float(query.law.scale * (1 - SIZES_PART) * LOSS.epsilon)


def _attack_parts(query: CountByGroup, **how: Any) -> Finding:
    """What each number tells about a record that changes its group."""
    return _attack(query, TABLES, (OUTLIERS, SIZE), **how)


def _attack_counts(query: CountByGroup, tables: Any, **how: Any) -> Finding:
    """What the counts tell of one record, where sizes have no noise.  (B4)"""
    return _attack(query, tables, (OUTLIERS,), **how)


def _attack(query: CountByGroup, tables: Any, told: tuple[str, ...], **how: Any) -> Finding:
    numbers = {
        f"{part} of {WARDS[group]}": partial(_read_number, group=group, part=part)
        for group, part in product(range(len(WARDS)), told)
    }
    views = [query.view(table_of(values)) for values in tables]
    return audit_numbers(query.answer, views, numbers, claimed=LOSS, **how)


def _read_number(answer: GroupCounts, *, group: int, part: str) -> int:
    return int(answer.value[group][part])


# Broken, on purpose


class _MovesOneGroup(CountByGroup):
    """BROKEN: as if a record could not change its group."""

    @property
    def law(self) -> Additive:
        steps = (self.cap + 1) * STEP.denominator + 1
        return calibrate(steps, Loss((1 - SIZES_PART) * self.loss.amount), step=STEP)


class _SizesUnpaid(CountByGroup):
    """BROKEN: counts at the whole loss, and sizes besides."""

    @property
    def law(self) -> Additive:
        return calibrate(2 * (self.cap * STEP.denominator + 1), self.loss, step=STEP)


class _SizesMoveByOne(CountByGroup):
    """BROKEN: a record that changes its group moves two sizes."""

    @property
    def size_law(self) -> Additive:
        return calibrate(1, Loss(SIZES_PART * self.loss.amount), step=Fraction(1))


BROKEN: Final[dict[str, type[CountByGroup]]] = {
    "a record cannot change its group": _MovesOneGroup,
    "sizes are released without a cost": _SizesUnpaid,
    "a changed group moves one size": _SizesMoveByOne,
}
