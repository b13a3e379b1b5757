"""A sensitivity that is replaced by 1, or noise that is a tenth short, does not get past the evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import wallflower.mechanisms as mechanisms
import wallflower.neighbours.noisy_count as noisy_count
import wallflower.queries.count as count
import wallflower.queries.explain.draws.direct as direct
import wallflower.queries.explain.margins as margins
import wallflower.queries.sensors.perturb as perturb
import wallflower.queries.sensors.threshold as threshold
import wallflower.queries.subspaces as subspaces
import wallflower.queries.watch as watch
import wallflower.queries.watch.baseline as baseline
from wallflower.evidence import audits
from wallflower.queries.watch.staircase import Table

pytestmark = pytest.mark.slow

Mutate = Callable[[pytest.MonkeyPatch], None]
TENTH = Fraction(10, 9)


def put(place: Any, name: str, value: Any) -> Mutate:
    return lambda patch: patch.setattr(place, name, value)


def one_unit(query: Any, found: list[int], family: Any, n: int) -> tuple[list[int], int]:
    return found, 1


def gauge_of_one(*asked: Any, **more: Any) -> Any:
    return replace(GAUGE(*asked, **more), move=1)


GAUGE, SCALE, CALIBRATE, SCALES, SHARE = (
    watch.gauge,
    perturb.noise_scale,
    mechanisms.calibrate,
    margins.scales,
    subspaces.draws,
)


def undivided(detector: Any, own: float) -> Any:
    found = SCALES(detector, own)
    return found / abs(found[:, :1])


def short_calibration(size: int, loss: Any, *, step: Fraction) -> Any:
    return replace(found := CALIBRATE(size, loss, step=step), scale=found.scale / TENTH)


def short_table(epsilon: Fraction) -> Any:
    return TABLE(epsilon * TENTH)


TABLE = Table.of

MUTANTS: dict[str, tuple[str, Mutate]] = {
    "extension moves by 1": (
        "count",
        put(noisy_count, "count_noise", lambda slack, loss: CALIBRATE(128, loss, step=Fraction(1, 128))),
    ),
    "global bound is 1": ("count", put(count, "rounding_bound", lambda n, dimension, neighbours: 1)),
    "smooth bound is 1": ("count", put(count._sensitivity, "rounded_smooth_bound", lambda *asked, **more: 1.0)),
    "noise a tenth short, extension": ("count", put(noisy_count, "calibrate", short_calibration)),
    "unit is 1": ("subspaces", put(subspaces.Subspaces, "_comparable", one_unit)),
    "bound of a count is 1": ("subspaces", put(subspaces, "rounding_bound", lambda n, dimension, neighbours: 1)),
    "noise a tenth short, choice": (
        "subspaces",
        put(subspaces, "draws", lambda *asked: replace(found := SHARE(*asked), each=found.each * TENTH)),
    ),
    "move is 1": ("watch", put(watch, "gauge", gauge_of_one)),
    "noise a tenth short, bits": ("watch", put(Table, "of", staticmethod(short_table))),
    "baseline moves by 1": (
        "watch",
        put(baseline, "calibrate", lambda size, loss, *, step: CALIBRATE(1, loss, step=step)),
    ),
    "noise a tenth short, baseline": ("watch", put(baseline, "calibrate", short_calibration)),
    "score moves by 1 step": ("explain", put(direct, "STEPS", 1)),
    "margin is not divided": ("explain", put(margins, "scales", undivided)),
    "noise a tenth short, contexts": ("explain", put(direct, "STEPS", direct.STEPS * Fraction(9, 10))),
    "scale is 1": ("sensors", put(perturb, "noise_scale", lambda *asked: Fraction(1))),
    "noise a tenth short, readings": ("sensors", put(perturb, "noise_scale", lambda *asked: SCALE(*asked) / TENTH)),
    "a reading moves one bin": ("sensors", put(threshold, "_MOVED", 1)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room, mutate = MUTANTS[name]
    mutate(monkeypatch)
    found = next((finding for finding in audits(room, quick=True) if not finding.ok), None)
    assert found is not None, f"{room}: nothing noticed that {name}"
