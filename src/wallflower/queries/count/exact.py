"""The exact count of distance-based outliers, and the degrees behind it.

A record is an outlier when fewer than `neighbours` others lie within `radius`: closed balls, the record itself left
out by its index, so that duplicates are neighbours of each other [KN98]. With `normalise` the distance is the root
of the *mean* squared difference over the columns, as in the papers; without it, plain Euclid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wallflower.errors import DataError
from wallflower.near import Floats, Ints, Tree, counts, plant, squared_reach
from wallflower.queries.count.limits import check_neighbours


def degrees(points: ArrayLike, radius: float, *, cap: int | None = None, normalise: bool = True) -> Ints:
    """How many other records are near each record, counted up to `cap`.

    >>> degrees([[0.0], [0.0], [1.0], [9.0]], 1.0).tolist()
    [2, 2, 2, 0]
    """
    tree = planted(points, radius, normalise=normalise)
    found = np.empty(tree.n, dtype=np.int64)
    found[tree.order] = counts(tree, tree.n if cap is None else cap)
    return found


def count_outliers(points: ArrayLike, radius: float, neighbours: int, *, normalise: bool = True) -> int:
    """How many records have fewer than `neighbours` others within `radius`.

    >>> count_outliers([[0.0], [0.0], [1.0], [9.0]], 1.0, 2)
    1
    """
    check_neighbours(neighbours)
    return int(np.count_nonzero(degrees(points, radius, cap=neighbours, normalise=normalise) < neighbours))


def planted(points: ArrayLike, radius: float, *, normalise: bool) -> Tree:
    """The tree over the records, for one reach."""
    values = matrix(points)
    return plant(values, squared_reach(radius, values.shape[1], normalise=normalise))


def matrix(points: ArrayLike) -> Floats:
    """The records as a finite matrix, one row each; a vector is one column."""
    values = np.asarray(points, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(
            "points must be a table of numbers with at least one row and one column; pass one row per record."
        )
    if not np.isfinite(values).all():
        raise DataError("points hold missing or infinite numbers; every cell must be a finite number.")
    return values
