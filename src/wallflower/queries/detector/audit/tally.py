"""Attacks on running totals of flags, and broken ones that an audit has to catch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, ScriptedNoise, Way, World, audit_exact
from wallflower.audit.laws import audit_numbers
from wallflower.audit.scripts import ShortNoise
from wallflower.data import Column, Schema, Table
from wallflower.machine.lazy import load
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.detector.grids import CELLS, Grid, Ints
from wallflower.queries.detector.model import Model
from wallflower.queries.detector.tally import RunningTotals, Tally, TallyView
from wallflower.schema.columns import float_array, text_array

TALLY_LOSS: Final = Loss.zcdp("128")  # so that draws have few values, and laws can be added up
PERIODS: Final = 3
GRID: Final = Grid(columns=(0, 0), widths=(1.0, 1.0), offsets=(0.0, 0.0))
# A record is a value, 0 in the full cell or 1 alone, and a day; day 3 is after the last period.
SMALL: Final = World(tuple(product((0.0, 1.0), (0.0, 1.0, 2.0, 3.0))), 2)
MOVED: Final = (
    [[1.0, 0.0], [0.0, 1.0]],
    [[1.0, 2.0], [0.0, 1.0]],
)  # a flagged record, in the first period and the last
UNFLAGGED: Final = ([[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 1.0]])  # the same, flagged and not


def tally_findings() -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    query = tally_of()
    tables = list(SMALL.arrays())
    yield audit_exact(partial(_totals, query), _brute_totals, tables, name="exact running totals")
    yield audit_exact(
        partial(_totals, tally_of(_Early)), _brute_totals, tables, name="broken: one period early", expected=True
    )
    yield _audit_movement(tally_of(), name="how far one record moves Cx")
    yield _audit_movement(tally_of(public_time=True), name="the same, at a public time")
    yield _audit_movement(tally_of(_TwoPeriods), name="broken: a record in two periods", expected=True)
    yield _attack(tally_of(), MOVED, name="running totals")
    yield _attack(tally_of(public_time=True), UNFLAGGED, name="running totals by public times")
    yield _attack(tally_of(), MOVED, name="broken: totals, a tenth short", through=ShortNoise, expected=True)
    yield _attack(tally_of(_NoFactor), MOVED, name="broken: totals, the factor is forgotten", expected=True)
    yield _attack(tally_of(_AsPublic), MOVED, name="broken: totals, times taken for public", expected=True)
    yield _attack(tally_of(_DrawnAgain), MOVED, name="broken: totals, noise drawn again", expected=True)


def tally_of(kind: type[Tally] = Tally, *, public_time: bool = False) -> Tally:
    return kind(detector=1, time="day", start="0", periods=PERIODS, public_time=public_time, loss=TALLY_LOSS)


def view_days(query: Tally, values: Any) -> TallyView:
    """A table of these records, beside a detector that was released before."""
    places, days = np.array(values, dtype=np.float64).T
    times = text_array(f"{day:g}" for day in days) if query.public_time else float_array(days)
    schema = Schema(columns=(Column("x"), Column("day", time=True) if query.public_time else Column("day")))
    table = Table(arrow=load("pyarrow").table({"x": float_array(places), "day": times}), schema=schema, name="made-up")
    counts = np.zeros((1, CELLS), dtype=np.int64)
    counts[0, GRID.cells(np.zeros((1, 1)))] = 10**6
    model = Model(columns=("x",), grids=(GRID,), counts=counts, floor=1.0, schema=schema.only(["x"]))
    stored = {"kind": "detector", "dataset": "made-up", "value": model.to_json() | {"threshold": 1.0}}
    return query.take_releases(query.view(table), {1: stored}.get)


def _totals(query: Tally, values: Floats) -> list[int]:
    return [int(row["flagged"]) for row in query.answer(view_days(query, values), ScriptedNoise()).rows]


def _brute_totals(values: Floats) -> list[int]:
    """Count record by record, period by period."""
    return [sum(value != 0.0 and day < until for value, day in values.tolist()) for until in (1, 2, 3)]


def _audit_movement(query: Tally, *, name: str, expected: bool = False) -> Finding:
    """Whether a pair of adjacent tables moves Cx further than the noise is scaled by."""
    factors, farthest, pairs = query.factors, 0, 0
    known: dict[bytes, Ints] = {}

    def spread(values: Floats) -> Ints:
        if values.tobytes() not in known:
            known[values.tobytes()] = factors.spread(read_counts(query, values))
        return known[values.tobytes()]

    for values in SMALL.arrays():
        for row, site in product(range(len(values)), SMALL.sites):
            other = np.array(values)
            other[row] = site
            if query.public_time and other[row, 1] != values[row, 1]:
                continue
            moved = spread(values) - spread(other)
            farthest, pairs = max(farthest, int(moved @ moved)), pairs + 1
    return Finding(
        name=name,
        way=Way.WORLD,
        claimed=float(factors.square),
        lower=float(farthest),
        caught=farthest > factors.square,
        text=f"the squared length is {farthest} at most in {pairs} pairs, and the noise hides {factors.square}",
        expected=expected,
    )


def read_counts(query: Tally, values: Floats) -> Ints:
    """The counts that an answer hides, found in an answer without noise."""
    hidden = np.array(query.answer(view_days(query, values), ScriptedNoise()).hidden)
    steps = query.factors.steps
    counts: list[int] = []
    for place, number in enumerate(hidden.tolist()):  # the factor is triangular
        rest = number - sum(int(steps[place - at]) * count for at, count in enumerate(counts))
        counts.append(rest // int(steps[0]))
    return np.array(counts, dtype=np.int64)


def _attack(query: Tally, tables: Any, **how: Any) -> Finding:
    """What each hidden number tells about one record."""
    drawn = len(query.answer(view_days(query, tables[0]), ScriptedNoise()).hidden)
    numbers = {f"number {place + 1}": partial(_read_number, place=place) for place in range(drawn)}
    views = [view_days(query, values) for values in tables]
    return audit_numbers(query.answer, views, numbers, claimed=TALLY_LOSS, **how)


def _read_number(answer: RunningTotals, *, place: int) -> int:
    return answer.hidden[place]


# Broken, on purpose


class _Early(Tally):
    """BROKEN: a record counts one period too early."""

    def view(self, data: Any) -> TallyView:
        view = Tally.view(self, data)
        return replace(view, periods=replace(view.periods, start=view.periods.start + 1))


class _TwoPeriods(Tally):
    """BROKEN: a record counts in its period and in the next."""

    def answer(self, data: TallyView, noise: Noise) -> RunningTotals:
        counts = data.counts()
        counts[1:] += data.counts()[:-1]
        hidden = self.factors.hide(counts, self.loss, noise)
        return RunningTotals(tuple(hidden.tolist()), [])


class _NoFactor(Tally):
    """BROKEN: noise as for one count, not for a column of the factor."""

    def answer(self, data: TallyView, noise: Noise) -> RunningTotals:
        factors, single = self.factors, int(self.factors.steps[0]) ** 2
        more = Loss.zcdp(self.loss.rho * factors.square / single)
        hidden = factors.hide(data.counts(), more, noise)
        return RunningTotals(tuple(hidden.tolist()), [])


class _AsPublic(Tally):
    """BROKEN: noise as if no record moved to another period."""

    def answer(self, data: TallyView, noise: Noise) -> RunningTotals:
        hidden = replace(self.factors, moves=False).hide(data.counts(), self.loss, noise)
        return RunningTotals(tuple(hidden.tolist()), [])


class _DrawnAgain(Tally):
    """BROKEN: after a restart the same totals are released with fresh noise."""

    def answer(self, data: TallyView, noise: Noise) -> RunningTotals:
        twice = [self.factors.hide(data.counts(), self.loss, noise).tolist() for _ in range(2)]
        return RunningTotals((*twice[0], *twice[1]), [])
