"""Attacks on counts whose distances have labels in them, and broken ones that an audit has to catch.

A record is a number and one of three labels; the oracle takes the distance as it is stated, from the cells themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, ScriptedNoise, World, audit_bound, audit_exact
from wallflower.data import Column, Points, Schema, Table
from wallflower.machine.lazy import load
from wallflower.neighbours.radii import Tally
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.schema.columns import float_array, text_array

WARDS: Final = ("A", "B", "C")
WEIGHT: Final = 1.25
REACH: Final = 0.9  # with a mean over two columns: labels that differ are 0.88 apart, places one apart 0.71
SCHEMA: Final = Schema(columns=(Column("x"), Column("ward", categories=WARDS, weight=WEIGHT)))
# The first is near the second and the third, which differ in both columns and are not near each other; the last is far.
SMALL: Final = World(((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 2.0), (9.0, 2.0)), 4)
SLACK, PLENTY = 2, 1000


def label_findings() -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    yield audit_exact(_count, _brute_count, SMALL.arrays(), name="exact counts with labels in distances")
    tally = Tally(neighbours=1, slack=SLACK, columns=2)
    yield audit_bound(
        lambda _: float(tally.sensitivity), partial(_steps, tally), SMALL, name="labels: what the noise hides"
    )
    codes = "broken: labels taken for numbers"
    yield audit_exact(partial(_count, points=_as_numbers), _brute_count, SMALL.arrays(), name=codes, expected=True)
    wide = Tally(neighbours=1, slack=PLENTY)
    yield audit_exact(
        lambda values: _steps(wide, values) / wide.unit,
        _brute_count,
        SMALL.arrays(),
        name="broken: a mean over coordinates instead of columns",
        expected=True,
    )


def _points(values: Any) -> Points:
    places, wards = np.array(values, dtype=np.float64).T
    cells = {"x": float_array(places), "ward": text_array(WARDS[int(ward)] for ward in wards)}
    return Table(arrow=load("pyarrow").table(cells), schema=SCHEMA, name="made-up").points(labels=True)  # (W)


def _as_numbers(values: Any) -> Points:
    """BROKEN: the first and the last of three labels are twice as far apart."""
    return Points.from_array(np.array(values) * np.array([1.0, WEIGHT]), columns=("x", "ward"), name="made-up")


def _count(values: Floats, points: Any = _points) -> int:
    query = Count(neighbours=1, radius=REACH, slack=PLENTY, loss=Loss("1"))
    return int(query.answer(points(values), ScriptedNoise()))


def _steps(tally: Tally, values: Floats) -> float:
    return float(tally.steps(_points(values).values, REACH))


def _brute_count(values: Floats) -> int:
    """Every record beside every other one, by the distance that is stated."""
    records = [tuple(row) for row in values.tolist()]

    def near(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        apart = (one[0] - other[0]) ** 2 + WEIGHT**2 * (one[1] != other[1])
        return math.sqrt(apart / 2) <= REACH

    return sum(not any(near(one, other) for j, other in enumerate(records) if j != i) for i, one in enumerate(records))
