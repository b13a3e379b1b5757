"""The detector of a table that an engine keeps: counts of chunks add up, so they are those of the table in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wallflower.data import Points, Table, TiledPoints, TiledTable
from wallflower.engines import Given
from wallflower.queries.detector.grids import Grid, Ints, arrays_of, count_cells
from wallflower.queries.detector.model import Model, count_above
from wallflower.queries.detector.tasks import tally_cells, tally_flags, tally_scores


def cells_of(data: Points | TiledPoints, grids: Sequence[Grid]) -> Ints:
    """How many records are in each cell of each grid.  (C)"""
    if not isinstance(data, TiledPoints):
        return count_cells(data.values, grids)
    found: Ints = np.sum(
        [part["counts"] for part in data.each("counting cells", tally_cells, _grid_arrays(grids))], axis=0
    )
    return found


def numbers_above(data: Points | TiledPoints, model: Model) -> Ints:
    """How many records have a score above each threshold.  (H)"""
    if not isinstance(data, TiledPoints):
        return count_above(model.score(data.values), model.thresholds)
    given = {**_grid_arrays(model.grids), "surprises": model.surprises, "thresholds": model.thresholds}
    found: Ints = np.sum([part["above"] for part in data.each("scoring records", tally_scores, given)], axis=0)
    return found


def flags_by(data: Table | TiledTable, by: Sequence[str], sizes: Sequence[int], model: Model) -> Ints:
    """How many records of each group are not flagged, and how many are, a row for each group.  (F)"""
    facts = {"threshold": np.array(model.require_threshold()), "groups": np.array(math.prod(sizes))}
    given = {**_grid_arrays(model.grids), "surprises": model.surprises, **facts}
    points = data.rescale(model.scales).points(model.columns)
    if isinstance(points, TiledPoints):
        parts = points.each_by("scoring records", by, sizes, tally_flags, given)
    else:
        assert isinstance(data, Table)
        groups = np.ravel_multi_index([data.codes(name) for name in by], tuple(sizes))
        parts = iter([tally_flags(points.values, groups, given)])
    found: Ints = np.sum([part["counts"] for part in parts], axis=0)
    return found.reshape(-1, 2)


def _grid_arrays(grids: Sequence[Grid]) -> Given:
    return dict(zip(("columns", "widths", "offsets"), arrays_of(grids), strict=True))
