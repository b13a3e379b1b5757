"""The part of a table that an explanation looks at: checked by public facts, and read only once it is paid for.

A table in memory is ranked by the metric. Of a table that an engine keeps, one pass adds up the cells, exactly, so they
are those of the table in memory, and so is everything that follows (C). What runs on an engine knows no noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points, Table, TiledTable
from wallflower.data.cells import clip_cells
from wallflower.engines.engine import Cells, Given
from wallflower.errors import DataError, EngineMismatch
from wallflower.queries.explain.detectors.base import CellDetector, Detector
from wallflower.queries.explain.space.contexts import Domain, Space
from wallflower.queries.explain.space.tables import (
    MAX_METRIC,
    CellTable,
    Floats,
    Ints,
    RankedTable,
    add_tallies,
    rank_table,
    slots_from,
    tally_cells,
)
from wallflower.schema import Column
from wallflower.schema.columns import pick

MAX_TILED_RECORDS: Final = 1 << 29  # four times as many are still a number of 32 bits
MAX_TILED_PARTS: Final = 1 << 26  # cells, times the parts that a detector divides each into


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """One record among the others. `n` is the public bound: how many records there are is protected."""

    data: Table | Points
    domains: tuple[Domain, ...]
    metric: str
    row: int
    n: int

    def __post_init__(self) -> None:
        require_columns(self.data, self.domains, self.metric)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(domain.name for domain in self.domains), self.metric)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def table_for(self, detector: Detector) -> RankedTable:
        """Return the records as a detector sees them; read at the first call."""
        return self.table

    @cached_property
    def table(self) -> RankedTable:
        """The records in order of the metric."""
        codes = np.stack([_encode(self.data, domain) for domain in self.domains], axis=1)
        sizes = [len(domain.labels) for domain in self.domains]
        return rank_table(codes, sizes, clip_metric(_numbers(self.data, self.metric)), self.row)

    def __repr__(self) -> str:
        return f"Case(at most {self.n} records, columns={self.columns!r})"


@dataclass(frozen=True, slots=True)
class CaseCells:
    """Makes codes and the metric of an engine's cells, by what is public: the domains and the schema's columns."""

    domains: tuple[Domain, ...]
    columns: tuple[Column, ...]

    def __call__(self, cells: Cells) -> tuple[Ints, Floats]:
        *context, (metric, column) = zip(cells, self.columns, strict=True)
        codes = [
            cut_numbers(domain, clip_cells(values, facts)) if domain.edges else values.astype(np.int64)
            for domain, (values, facts) in zip(self.domains, context, strict=True)
        ]
        return np.stack(codes, axis=1), clip_metric(clip_cells(metric, column))


@dataclass(frozen=True, slots=True)
class CellTask:
    """Adds up the records of a chunk; the codes and the metric of the record in question are passed along."""

    case: CaseCells
    detector: CellDetector

    def __call__(self, cells: Cells, given: Given) -> Given:
        codes, metric = self.case(cells)
        free = [len(domain.labels) - 1 for domain in self.case.domains]
        slots, own = slots_from(codes, given["codes"]), float(given["metric"][0])
        return tally_cells(slots, metric, own, free, self.detector.divide())


def find_records(cells: Cells, given: Given) -> Given:
    """Return the other cells of the records whose first cell is the name: of two records at most."""
    rows = np.flatnonzero(cells[0] == given["name"])[:2]
    return {str(place): column[rows] for place, column in enumerate(cells[1:])}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TiledCase:
    """One record among the others, as `Case`; `record` holds the codes of the record and its metric."""

    data: TiledTable
    case: CaseCells
    record: Given
    n: int

    @classmethod
    def find(
        cls, table: TiledTable, domains: tuple[Domain, ...], metric: str, record: str, identifier: str | None, n: int
    ) -> TiledCase:
        """Find the record, by an identifier or by its row; refuse by public facts, and if it is not there."""
        require_columns(table, domains, metric)
        columns = (*(domain.name for domain in domains), metric)
        facts = {column.name: column for column in table.schema.columns or ()}
        case = CaseCells(domains, tuple(facts[name] for name in columns))
        places = [table.columns.index(name) for name in columns]
        cells = (
            _find_by_name(identifier, record, table, places) if identifier else _find_by_row(int(record), table, places)
        )
        codes, values = case(cells)
        return cls(table, case, {"codes": codes[0], "metric": values}, n)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.case.columns)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def table_for(self, detector: Detector) -> CellTable:
        """Add the table up by cells, as the detector needs them."""
        if not isinstance(detector, CellDetector):
            raise EngineMismatch(self.data.engine, f"explain with {detector}", "Choose another detector")
        sizes = tuple(len(domain.labels) for domain in self.case.domains)
        places = [self.data.columns.index(name) for name in self.columns]
        tallies = self.data.sheet.each("adding up cells", places, CellTask(self.case, detector), self.record)
        space = Space(sizes, tuple(self.record["codes"].tolist()))
        own = float(self.record["metric"][0])
        return CellTable.from_tally(space, own, add_tallies(map(dict, tallies)), detector.divide())

    def __repr__(self) -> str:
        return f"TiledCase(at most {self.n} records, columns={self.columns!r})"


def require_cells(engine: str, detector: Detector, cells: int, size: int, instead: str) -> None:
    """Refuse what an engine cannot add up by cells: a detector that needs records, or too many of them or of cells."""
    name = str(detector).partition(":")[0]
    parts = detector.divide().parts if isinstance(detector, CellDetector) else 0
    if not parts:
        raise EngineMismatch(engine, f"explain with the detector {name}", f"Choose {instead}")
    if size > MAX_TILED_RECORDS:
        raise EngineMismatch(
            engine, f"explain with a bound of {size:,} records", f"State a size of at most {MAX_TILED_RECORDS:,}"
        )
    if cells * parts > MAX_TILED_PARTS:
        raise EngineMismatch(engine, f"explain with {cells:,} combinations of values", "Name fewer columns or values")


def require_columns(data: Table | Points | TiledTable, domains: Sequence[Domain], metric: str) -> None:
    """Refuse a table that was not read with these domains, by its public facts."""
    pick([metric], data.columns if isinstance(data, Points) else data.numbers)
    for domain in domains:
        pick([domain.name], data.columns)
        if isinstance(data, Points) or domain.name in data.numbers:
            if not domain.edges:
                raise DataError(
                    f"column {domain.name!r} was read as numbers, and the domain has labels for it. Load it with the "
                    "domain as its schema, or cut it at edges.",
                    column=domain.name,
                )
            continue
        (facts,) = data.schema.only([domain.name]).columns or ()
        if domain.edges or facts.labels != tuple(map(str, domain.labels)):
            raise DataError(
                f"column {domain.name!r} was read with other categories than the domain states. Load it with the "
                "domain.",
                column=domain.name,
            )


def cut_numbers(domain: Domain, values: Floats) -> Ints:
    """Return the intervals between public edges that numbers lie in; beyond the outer edges, the outer ones."""
    return domain.encode(np.clip(values, domain.edges[0], domain.edges[-1]))


def clip_metric(values: Floats) -> Floats:
    """Return numbers within ±1e100: others could overflow, and an error would reveal them."""
    return np.clip(values, -MAX_METRIC, MAX_METRIC)


def _encode(data: Table | Points, domain: Domain) -> Ints:
    if domain.edges:
        return cut_numbers(domain, _numbers(data, domain.name))
    return data.codes(domain.name) if isinstance(data, Table) else domain.encode(_numbers(data, domain.name))


def _numbers(data: Table | Points, name: str) -> NDArray[np.float64]:
    return data.subspace([name]).values[:, 0] if isinstance(data, Points) else data.cells(name)


def _find_by_name(identifier: str, record: str, table: TiledTable, places: Sequence[int]) -> Cells:
    column = table.identifier(identifier)
    name = {"name": np.array(record.encode("utf-8"))}
    chunks = list(table.sheet.each("finding the record", [column, *places], find_records, name))
    cells = [np.concatenate([chunk[str(place)] for chunk in chunks]) for place in range(len(places))]
    if len(cells[0]) != 1:
        raise DataError(f"record: not exactly one has this {identifier}. Check what you asked for.", column=identifier)
    return cells


def _find_by_row(row: int, table: TiledTable, places: Sequence[int]) -> Cells:
    if not table.sheet.ordered:  # another record could move the one that the query is about
        raise EngineMismatch(table.engine, "explain with a record by its row", "Name it by a column of identifiers")
    if row >= table.n:
        raise DataError("record: the table has no such row; rows are counted from 0. Check it.")
    for cells in table.sheet.chunks(places):
        if row < len(cells[0]):
            return [column[row : row + 1] for column in cells]
        row -= len(cells[0])
    raise AssertionError("an engine keeps all rows")
