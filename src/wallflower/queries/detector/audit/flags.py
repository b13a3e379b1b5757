"""Attacks on the flags of groups, and broken ones that an audit has to catch."""

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
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.detector.flags import FLAGGED, OTHERS, Flags, FlagView, Row
from wallflower.queries.detector.grids import CELLS, Grid
from wallflower.queries.detector.model import Model
from wallflower.schema.columns import float_array, text_array

LOSS: Final = Loss("1")
WARDS: Final = ("A", "B", "C")
SCHEMA: Final = Schema(columns=(Column("x"), Column("ward", categories=WARDS)))
GRID: Final = Grid(columns=(0, 0), widths=(1.0, 1.0), offsets=(0.0, 0.0))
# A record is a value, 0 in the full cell or 1 alone, and a ward; nobody is in the last ward.
SMALL: Final = World(tuple(product((0.0, 1.0), (0.0, 1.0))), 3)
TABLES: Final = ([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]])
LAST: Final = ([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])  # a ward is left by all


def flag_findings() -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    query = query_of()
    exact, brute = partial(_counts, query), _brute_counts
    yield audit_exact(exact, brute, SMALL.arrays(), name="exact flags of three groups")
    yield audit_exact(
        partial(_counts, query, unusual=False), brute, SMALL.arrays(), name="broken: others for flagged", expected=True
    )
    yield audit_bound(lambda _: _hidden(query), partial(_moves, query), SMALL, name="flags: what noise hides together")
    yield _attack(query, TABLES, name="flags of groups")
    yield _attack(query, TABLES, name="broken: flags, a tenth short", through=ShortNoise, expected=True)
    yield _attack(query_of(_MovesOne), TABLES, name="broken: flags, the factor 2 is forgotten", expected=True)
    yield _attack(query_of(_GroupsSeen), LAST, name="broken: flags, groups from the data", expected=True)


def query_of(kind: type[Flags] = Flags) -> Flags:
    return kind(detector=1, by=("ward",), loss=LOSS)


def table_of(values: Any) -> Table:
    places, wards = np.array(values, dtype=np.float64).T
    cells = {"x": float_array(places), "ward": text_array(WARDS[int(ward)] for ward in wards)}
    return Table(arrow=load("pyarrow").table(cells), schema=SCHEMA, name="made-up")


def view_of(query: Flags, values: Any) -> FlagView:
    return view_table(query, table_of(values))


def view_table(query: Flags, table: Any) -> FlagView:
    """A table, kept by any engine, beside a detector that was released before."""
    counts = np.zeros((1, CELLS), dtype=np.int64)
    counts[0, GRID.cells(np.zeros((1, 1)))] = 10**6
    model = Model(columns=("x",), grids=(GRID,), counts=counts, floor=1.0, schema=SCHEMA.only(["x"]))
    stored = {"kind": "detector", "dataset": "made-up", "value": model.to_json() | {"threshold": 1.0}}
    return query.take_releases(query.view(table), {1: stored}.get)


def _counts(query: Flags, values: Floats, *, unusual: bool = True) -> tuple[int, ...]:
    rows = query.answer(view_of(query, values), ScriptedNoise())
    return tuple(row[part] for row in rows for part in ((FLAGGED, OTHERS) if unusual else (OTHERS, FLAGGED)))


def _brute_counts(values: Floats) -> tuple[int, ...]:
    """Count record by record: a record outside the full cell is flagged."""
    records = [(value != 0.0, int(ward)) for value, ward in values.tolist()]
    return tuple(records.count((is_alone, ward)) for ward in range(len(WARDS)) for is_alone in (True, False))


def _moves(query: Flags, values: Floats) -> list[float]:
    """Sums with every choice of signs: the larger change of any is the change of all counts together."""
    counts = np.array(_counts(query, values)[:4])
    return [float(counts @ np.array([1, *signs])) for signs in product((-1, 1), repeat=3)]


def _hidden(query: Flags) -> float:
    """How far the noise lets one record move all numbers together, by its own word."""
    return float(query.law.scale * LOSS.epsilon)


def _attack(query: Flags, tables: Any, **how: Any) -> Finding:
    """What each number tells about one record."""
    numbers = {
        f"{part} of {ward}": partial(_read_number, ward=ward, part=part)
        for ward, part in product(WARDS, (FLAGGED, OTHERS))
    }
    return audit_numbers(query.answer, [view_of(query, values) for values in tables], numbers, claimed=LOSS, **how)


def _read_number(rows: list[Row], *, ward: str, part: str) -> int:
    """The number of a ward, or -1 where it is not among the groups."""
    return next((int(row[part]) for row in rows if row["ward"] == ward), -1)


# Broken, on purpose


class _MovesOne(Flags):
    """BROKEN: as if a replaced record only left a cell."""

    @property
    def law(self) -> Additive:
        return calibrate(1, self.loss, step=Fraction(1))


class _GroupsSeen(Flags):
    """BROKEN: only groups that somebody is in are told."""

    def answer(self, data: FlagView, noise: Noise) -> list[Row]:
        held = data.counts().sum(axis=1)
        return [row for row, size in zip(Flags.answer(self, data, noise), held, strict=True) if size]
