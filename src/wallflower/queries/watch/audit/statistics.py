"""Attacks on what is said of one entry: how many steps of its grid it can move the distance by.

A table of these tiny worlds is one observation, and its records are the entries.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, World, audit_bound
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.statistics import Statistic

SITES: Final = tuple((x,) for x in (-9.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 9.0))
HALVES: Final = World(((0.5,), (1.5,)), 2)  # an entry changes by one step of the grid
_SPREAD: Final[dict[str, Any]] = {"mean": (0.5, 0.5), "covariance": ((1.0, 0.9), (0.9, 1.0))}
_USUAL: Final[dict[str, Any]] = {"threshold": 1.0, "low": 0.0, "high": 1.5, "loss": Loss("1")}
WATCHES: Final = {
    "sum": Watch(**_USUAL, centre=1.0),
    "mahalanobis": Watch(**_USUAL, statistic="mahalanobis", **_SPREAD),
    "max": Watch(**_USUAL, statistic="max", **_SPREAD),
}


def sound_statistics() -> Iterator[Finding]:
    for name, query in WATCHES.items():
        made = query.statistic_on(2)
        bound, truth = partial(_move, made), partial(_measure, made)
        yield audit_bound(bound, truth, World(SITES, 2), name=f"statistic: {name}")
    yield audit_bound(lambda _: 1.0, _half_up, HALVES, name="statistic: halves upwards")


def _move(made: Statistic, _: Floats) -> float:
    return made.sensitivity


def _measure(made: Statistic, values: Floats) -> float:
    return float(made.measure(values.T)[0])


def _half_up(values: Floats) -> float:
    return float(np.floor(values + 0.5).sum())


def _half_even(values: Floats) -> float:
    return float(np.rint(values).sum())


def _square(made: Statistic, values: Floats) -> float:
    return (_measure(made, values) * made.step) ** 2


def broken_statistics() -> Iterator[Finding]:
    yield audit_bound(lambda _: 1.0, _half_even, HALVES, name="broken: halves to even", expected=True)
    far, world = WATCHES["mahalanobis"].statistic_on(2), World(SITES, 2)
    name, reach = "broken: the square of the distance", far.sensitivity * far.step
    yield audit_bound(lambda _: reach, partial(_square, far), world, name=name, expected=True)
    name = "broken: each entry by its own spread, as if the others told nothing of it"
    yield audit_bound(lambda _: 1.5 / far.step, partial(_measure, far), world, name=name, expected=True)
