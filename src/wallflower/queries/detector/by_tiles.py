"""The detector of a table that an engine keeps: counts of chunks add up, so they are those of the table in memory.

Spreads are measured on pairs of records by their places. So they need an engine with whom records stay where they
came: where the order may follow from what is in them, one record could move every pair.  (S)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wallflower.data import Points, TiledPoints, TiledTable
from wallflower.engines import Given
from wallflower.errors import EngineMismatch
from wallflower.queries.detector.grids import Grid, Ints, arrays_of, count_cells
from wallflower.queries.detector.model import Model, count_above
from wallflower.queries.detector.tasks import tally_cells, tally_scores


def require_places(table: TiledTable) -> None:
    """Refuse, by public facts, to measure spreads where records have no places."""
    if not table.sheet.ordered:
        raise EngineMismatch(
            table.engine,
            "detector with private spreads",
            "State the columns' public scales in the schema and ask with spreads='schema'",
        )


def cells_of(data: Points | TiledPoints, grids: Sequence[Grid]) -> Ints:
    """How many records are in each cell of each grid.  (C)"""
    if not isinstance(data, TiledPoints):
        return count_cells(data.values, grids)
    found: Ints = np.sum([part["counts"] for part in data.each("counting cells", tally_cells, _given(grids))], axis=0)
    return found


def numbers_above(data: Points | TiledPoints, model: Model) -> Ints:
    """How many records have a score above each threshold.  (H)"""
    if not isinstance(data, TiledPoints):
        return count_above(model.score(data.values), model.thresholds)
    given = {**_given(model.grids), "surprises": model.surprises, "thresholds": model.thresholds}
    found: Ints = np.sum([part["above"] for part in data.each("scoring records", tally_scores, given)], axis=0)
    return found


def _given(grids: Sequence[Grid]) -> Given:
    return dict(zip(("columns", "widths", "offsets"), arrays_of(grids), strict=True))
