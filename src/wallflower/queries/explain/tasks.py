"""What is done with a chunk of the table: its records are added up cell by cell, or the one that is named is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wallflower.data.cells import clip_cells
from wallflower.engines import Cells, Given
from wallflower.queries.explain.case import cut_numbers, hold_metric
from wallflower.queries.explain.detectors import Detector
from wallflower.queries.explain.space.cells import tally_records
from wallflower.queries.explain.space.contexts import Domain
from wallflower.queries.explain.space.ranked_table import Floats, slots_of
from wallflower.schema import Column

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CaseCells:
    """Makes codes and the metric of cells, by what is public: the domains, and the columns that they come from."""

    domains: tuple[Domain, ...]
    columns: tuple[Column, ...]

    def __call__(self, cells: Cells) -> tuple[Ints, Floats]:
        *context, metric = zip(cells, self.columns, strict=True)
        codes = [_codes(domain, *each) for domain, each in zip(self.domains, context, strict=True)]
        return np.stack(codes, axis=1), hold_metric(clip_cells(*metric))


@dataclass(frozen=True, slots=True)
class CellTask:
    """What the records of a chunk add up to; the record in question is given."""

    case: CaseCells
    detector: Detector

    def __call__(self, cells: Cells, given: Given) -> Given:
        codes, metric = self.case(cells)
        free = [len(domain.labels) - 1 for domain in self.case.domains]
        return tally_records(slots_of(codes, given["codes"]), metric, float(given["metric"][0]), free, self.detector)


def find_records(cells: Cells, given: Given) -> Given:
    """The other cells of records whose first has the name that is given: of one, or of two if there are more."""
    found = np.flatnonzero(cells[0] == given["name"])[:2]
    return {str(at): column[found] for at, column in enumerate(cells[1:])}


def _codes(domain: Domain, cells: NDArray[Any], column: Column) -> Ints:
    return cut_numbers(domain, clip_cells(cells, column)) if domain.edges else cells.astype(np.int64)
