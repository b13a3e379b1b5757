"""The exact count of distance-based outliers, and the degrees behind it.

A record is an outlier when fewer than `neighbours` others lie within `radius`: closed balls, the record itself left
out by its index, so that duplicates are neighbours of each other [KN98]. With `normalise` the distance is the root
of the *mean* squared difference over the columns [Oka15, 3.1]; without it, plain Euclid [Oka15ja, eq. 1].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wallflower.neighbours.limits import check_neighbours
from wallflower.neighbours.pairs import Ints, count_neighbours, index_points


def degrees(points: ArrayLike, radius: float, *, cap: int | None = None, normalise: bool = True) -> Ints:
    """How many other records are near each record, counted up to `cap`.

    >>> degrees([[0.0], [0.0], [1.0], [9.0]], 1.0).tolist()
    [2, 2, 2, 0]
    """
    tree = index_points(points, radius, normalise=normalise)
    found = np.empty(tree.n, dtype=np.int64)
    found[tree.order] = count_neighbours(tree, tree.n if cap is None else cap)
    return found


def count_outliers(points: ArrayLike, radius: float, neighbours: int, *, normalise: bool = True) -> int:
    """How many records have fewer than `neighbours` others within `radius`.

    >>> count_outliers([[0.0], [0.0], [1.0], [9.0]], 1.0, 2)
    1
    """
    check_neighbours(neighbours)
    return int(np.count_nonzero(degrees(points, radius, cap=neighbours, normalise=normalise) < neighbours))
