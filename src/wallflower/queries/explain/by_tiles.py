"""An explanation of a table that an engine keeps: one pass gives its cells, and contexts are weighed by these.

What a cell adds up to is exact, so the cells are those of the table in memory, and so is everything that follows (C).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from wallflower.data import TiledTable
from wallflower.engines import Cells, Given
from wallflower.errors import DataError, EngineMismatch
from wallflower.queries.explain.case import require_columns
from wallflower.queries.explain.detectors import Detector
from wallflower.queries.explain.detectors.names import name_of
from wallflower.queries.explain.parameters import Settings
from wallflower.queries.explain.space.cells import DIVISIONS, CellTable, cell_table, is_divided
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.tallies import add_up
from wallflower.queries.explain.tasks import CaseCells, CellTask, find_records

MOST: Final = 1 << 29  # records; four times as many are still a number of 32 bits
MOST_PARTS: Final = 1 << 26  # cells, times the parts that a detector divides each into


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TiledCase:
    """One record among the others, as `Case`; `own` are the codes of the record and its metric."""

    data: TiledTable
    case: CaseCells
    own: Given
    n: int

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.case.columns)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    def table_for(self, detector: Detector) -> CellTable:
        """The table by cells, as this detector needs it."""
        sizes = tuple(len(domain.labels) for domain in self.case.domains)
        places = [self.data.columns.index(name) for name in self.columns]
        parts = self.data.sheet.each("adding up cells", places, CellTask(self.case, detector), self.own)
        space = Space(sizes, tuple(self.own["codes"].tolist()))
        return cell_table(space, float(self.own["metric"][0]), add_up(map(dict, parts)), detector)

    def __repr__(self) -> str:
        return f"TiledCase(at most {self.n} records, columns={self.columns!r})"


def case_on_tiles(query: Settings, table: TiledTable, detector: Detector) -> TiledCase:
    """The case, if it can be answered by counts and sums; refused by public facts, and by whether there is the record
    that was named."""
    require_decomposition(query, table.engine, detector)
    require_columns(table, query.domains, query.metric)
    facts = {column.name: column for column in table.schema.columns or ()}
    case = CaseCells(query.domains, tuple(facts[name] for name in query.columns))
    places = [table.columns.index(name) for name in query.columns]
    found = (
        _find_by_name(query.identifier, query.record, table, places)
        if query.identifier
        else _find_by_row(int(query.record), table, places)
    )
    codes, metric = case(found)
    return TiledCase(table, case, {"codes": codes[0], "metric": metric}, query.most)


def require_decomposition(query: Settings, engine: str, detector: Detector) -> None:
    """Refuse what is not a matter of counts and sums."""
    cells = math.prod(query.sizes)
    parts = DIVISIONS[type(detector)](detector).parts if is_divided(detector) else 0
    unfit = {
        f"the detector {name_of(query.detector)}": (
            parts == 0,
            "Choose tukey, distance, bins or clamped-grubbs, or with mode ocdp grubbs",
        ),
        "a utility of your own": (not isinstance(query.utility, str), "Choose population or overlap"),
        f"a bound of {query.most:,} records": (query.most > MOST, f"State a size of at most {MOST:,}"),
        f"{cells:,} combinations of values": (cells * parts > MOST_PARTS, "Name fewer columns or values"),
    }
    for asked, (is_asked, instead) in unfit.items():
        if is_asked:
            raise EngineMismatch(engine, f"explain with {asked}", instead)


def _find_by_name(identifier: str, record: str, table: TiledTable, places: Sequence[int]) -> Cells:
    column = table.identifier(identifier)
    given = {"name": np.array(record.encode("utf-8"))}
    told = list(table.sheet.each("finding the record", [column, *places], find_records, given))
    found = [np.concatenate([each[str(at)] for each in told]) for at in range(len(places))]
    if len(found[0]) != 1:
        raise DataError(f"record: not exactly one has this {identifier}. Check what you asked for.", column=identifier)
    return found


def _find_by_row(row: int, table: TiledTable, places: Sequence[int]) -> Cells:
    if not table.sheet.ordered:  # another record could move the one that is asked about
        raise EngineMismatch(table.engine, "explain with a record by its row", "Name it by a column of identifiers")
    if row >= table.n:
        raise DataError("record: the table has no such row; rows are counted from 0. Check it.")
    for cells in table.sheet.chunks(places):
        if row < len(cells[0]):
            return [column[row : row + 1] for column in cells]
        row -= len(cells[0])
    raise AssertionError("an engine keeps all rows")
