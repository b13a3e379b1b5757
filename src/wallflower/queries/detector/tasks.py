"""Count records by cell, score or flag, in memory or part by part: counts of parts add up to those of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wallflower.data import Points, Table, TiledPoints, TiledTable
from wallflower.engines.engine import Floats, Given
from wallflower.queries.detector.grids import Grid, Ints, add_surprises, arrays_of, count_cells, grids_of
from wallflower.queries.detector.model import Model, count_above


def cells_of(data: Points | TiledPoints, grids: Sequence[Grid]) -> Ints:
    """Count the records in each cell of each grid.  (C)"""
    if not isinstance(data, TiledPoints):
        return count_cells(data.values, grids)
    counts: Ints = np.sum(
        [part["counts"] for part in data.each("counting cells", tally_cells, _grid_arrays(grids))], axis=0
    )
    return counts


def numbers_above(data: Points | TiledPoints, model: Model) -> Ints:
    """Count the records with a score above each threshold.  (H)"""
    if not isinstance(data, TiledPoints):
        return count_above(model.score(data.values), model.thresholds)
    arrays = {**_grid_arrays(model.grids), "surprises": model.surprises, "thresholds": model.thresholds}
    above: Ints = np.sum([part["above"] for part in data.each("scoring records", tally_scores, arrays)], axis=0)
    return above


def flags_by(data: Table | TiledTable, by: Sequence[str], sizes: Sequence[int], model: Model) -> Ints:
    """Count the records of each group that are not flagged, and those that are; a row per group.  (F)"""
    facts = {"threshold": np.array(model.require_threshold()), "groups": np.array(math.prod(sizes))}
    arrays = {**_grid_arrays(model.grids), "surprises": model.surprises, **facts}
    points = model.project(data)
    if isinstance(points, TiledPoints):
        parts = points.each_by("scoring records", by, sizes, tally_flags, arrays)
    else:
        assert isinstance(data, Table)
        groups = np.ravel_multi_index([data.codes(name) for name in by], tuple(sizes))
        parts = iter([tally_flags(points.values, groups, arrays)])
    counts: Ints = np.sum([part["counts"] for part in parts], axis=0)
    return counts.reshape(-1, 2)


def _grid_arrays(grids: Sequence[Grid]) -> Given:
    return dict(zip(("columns", "widths", "offsets"), arrays_of(grids), strict=True))


def tally_cells(values: Floats, arrays: Given) -> Given:
    """Count the points in each cell of the grids in `arrays`."""
    return {"counts": count_cells(values, grids_of(arrays["columns"], arrays["widths"], arrays["offsets"]))}


def tally_scores(values: Floats, arrays: Given) -> Given:
    """Count the points with a score above each of the thresholds in `arrays`."""
    grids = grids_of(arrays["columns"], arrays["widths"], arrays["offsets"])
    return {"above": count_above(add_surprises(values, grids, arrays["surprises"]), arrays["thresholds"])}


def tally_flags(values: Floats, groups: Ints, arrays: Given) -> Given:
    """Count the points of each group that are not flagged, and those that are: a point is in one cell.  (F)"""
    grids = grids_of(arrays["columns"], arrays["widths"], arrays["offsets"])
    cells = 2 * groups + (add_surprises(values, grids, arrays["surprises"]) > arrays["threshold"])
    return {"counts": np.bincount(cells, minlength=2 * int(arrays["groups"]))}
