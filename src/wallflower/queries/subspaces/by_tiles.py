"""Subspaces of a table that an engine keeps: the columns of one subspace after another are held in memory.

So a table may have more columns than memory holds; the records of one subspace must fit, by public facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.data import Points, TiledPoints
from wallflower.data.scans import MEMORY, has_room
from wallflower.errors import EngineMismatch
from wallflower.queries.subspaces.family import Family, Subspace

Floats = NDArray[np.float64]
Score = Callable[[Floats, Sequence[Subspace], Sequence[int]], list[int]]


def require_room(points: TiledPoints, family: Family) -> None:
    """Refuse a table whose widest subspace memory could not hold."""
    widest = family.widest(points.dimension)
    if not has_room(points.n, widest):
        raise EngineMismatch(
            points.table.engine,
            f"subspaces of {widest} columns and {points.n:,} records",
            f"Ask for subspaces of fewer columns, or allow for more memory with {MEMORY}",
        )


def score_in_turn(points: TiledPoints, family: Sequence[Subspace], score: Score) -> list[int]:
    """What each subspace scores, by the same function of the same numbers as in memory."""
    found = []
    with progress.steps("scoring subspaces", len(family)) as step:
        for subspace in family:
            values = values_in(points, subspace)
            with progress.hush():
                found += score(values, [tuple(range(values.shape[1]))], [len(subspace)])
            step()
    return found


def values_in(points: Points | TiledPoints, subspace: Subspace) -> Floats:
    """The coordinates of all records in the columns of a subspace."""
    if isinstance(points, TiledPoints):
        return points.subspace(points.columns[column] for column in subspace).gather()
    places = points.places
    return points.values[:, [place for column in subspace for place in places[column]]]
