"""What is done with some points at a time: they are counted by cell, by how unusual they are, or by group and flag."""

from __future__ import annotations

import numpy as np

from wallflower.engines import Floats, Given
from wallflower.queries.detector.grids import Ints, add_surprises, count_cells, grids_of
from wallflower.queries.detector.model import count_above


def tally_cells(values: Floats, given: Given) -> Given:
    """How many points are in each cell of the grids that are given."""
    return {"counts": count_cells(values, grids_of(given["columns"], given["widths"], given["offsets"]))}


def tally_scores(values: Floats, given: Given) -> Given:
    """How many points have a score above each of the thresholds that are given."""
    grids = grids_of(given["columns"], given["widths"], given["offsets"])
    return {"above": count_above(add_surprises(values, grids, given["surprises"]), given["thresholds"])}


def tally_flags(values: Floats, groups: Ints, given: Given) -> Given:
    """How many points of each group are not flagged, and how many are: a point is in one cell.  (F)"""
    grids = grids_of(given["columns"], given["widths"], given["offsets"])
    cells = 2 * groups + (add_surprises(values, grids, given["surprises"]) > given["threshold"])
    return {"counts": np.bincount(cells, minlength=2 * int(given["groups"]))}
