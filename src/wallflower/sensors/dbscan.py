"""DBSCAN [EKSX96] that fits in memory: exact, and without a list of neighbours.

A point is core when at least `neighbours` points, itself included, lie within `radius`, the rim included. Core points
within `radius` of each other are in one cluster; any other point within `radius` of a core point is on the border of a
cluster; the rest is noise. Labels are those of scikit-learn: clusters are numbered by their first core point, a point
on two borders goes to the cluster with the smaller number, noise is -1.

Two columns are sorted into cells whose diagonal is a little below `radius`: all points of a cell are near each other,
so a cell of `neighbours` points is core without counting, and cells are joined rather than points. Any other number of
columns, and points too far apart for cells, go through the tree of `neighbours.pairs`. Both leave each decision to the
same pair test, so they agree to the last bit (proof.md, label (C)).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.neighbours.pairs import MARGIN, matrix, squared_reach
from wallflower.sensors.dbscan_tree import by_tree, number_clusters, root, roots, union

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_CELLS: Final = 2**30  # a side; beyond, rounding could put a point into the wrong cell
_SLIGHT: Final = 2.0**-20  # by how much a cell is smaller than it might be; more than rounding can be off
_PAD: Final = 4  # empty columns of cells between the end of one row and the start of the next


def dbscan(points: ArrayLike, radius: float, neighbours: int) -> Ints:
    """The cluster of each point, -1 for noise.

    >>> dbscan([[0, 0], [0, 1], [1, 0], [9, 9]], 1.0, 3)
    array([ 0,  0,  0, -1])
    """
    if isinstance(neighbours, bool) or not isinstance(neighbours, int | np.integer) or neighbours < 1:
        raise ParameterError(f"neighbours: {neighbours!r} is not a whole number from 1; a core point counts itself.")
    values, reach = matrix(points), squared_reach(radius, 1, normalise=False)
    if values.shape[1] == 2:
        side = radius / math.sqrt(2) * (1 - _SLIGHT)
        low, high = values.min(axis=0), values.max(axis=0)
        if all((far - near) / side < MOST_CELLS for near, far in zip(low.tolist(), high.tolist(), strict=True)):
            return _by_cells(values, low, side, reach, int(neighbours))
    return by_tree(values, reach, int(neighbours))


def outside(points: ArrayLike, radius: float = 0.5, neighbours: int = 15) -> Flags:
    """Who is an outlier: everyone outside the biggest cluster, or everyone where there is none.

    >>> outside([[0, 0], [0, 1], [1, 0], [9, 9]], 1.0, 3)
    array([False, False, False,  True])
    """
    labels = dbscan(points, radius, neighbours)
    sizes = np.bincount(labels[labels >= 0], minlength=1)
    return np.asarray((labels < 0) | (labels != np.argmax(sizes)))


def _by_cells(values: Floats, low: Floats, side: float, reach: float, neighbours: int) -> Ints:
    """The clusters of points in two columns."""
    place = np.floor((values - low) / side).astype(np.int64)
    row = int(place[:, 0].max()) + 1 + _PAD
    keys = place[:, 1] * row + place[:, 0]
    order = np.argsort(keys, kind="stable")
    cells, starts = np.unique(keys[order], return_index=True)
    starts = np.append(starts, len(values))
    x, y = (np.ascontiguousarray(values[order, c]) for c in (0, 1))
    windows = _windows(cells, row)
    core = np.zeros(len(values), dtype=np.bool_)
    _count(x, y, starts, windows, reach, neighbours, core)
    boxes = _boxes(x, y, starts, core)
    parents = np.arange(len(cells))
    for apart in (1, 2):  # close cells first: they are joined at the first pair that is tried, and join the others
        _join(x, y, starts, cells, row, windows, apart, reach, core, boxes, parents)
    groups = np.repeat(roots(parents), np.diff(starts))
    numbers = number_clusters(groups, core, order)
    _border(x, y, starts, windows, reach, core, boxes, numbers)
    labels = np.empty(len(values), dtype=np.int64)
    labels[order] = numbers
    return labels


@kernel
def _windows(cells: Ints, row: int) -> Ints:
    """For each cell, and each row of cells up to two away, which cells are up to two columns away: from, to before."""
    windows = np.empty((len(cells), 5, 2), np.int64)
    for line in range(5):
        start, stop = 0, 0
        for c in range(len(cells)):
            middle = cells[c] + (line - 2) * row
            while start < len(cells) and cells[start] < middle - 2:
                start += 1
            while stop < len(cells) and cells[stop] <= middle + 2:
                stop += 1
            windows[c, line, 0], windows[c, line, 1] = start, stop
    return windows


@kernel
def _count(x: Floats, y: Floats, starts: Ints, windows: Ints, reach: float, neighbours: int, core: Flags) -> None:
    """Who is core. A cell with enough points is core as it is."""
    for c in range(len(windows)):
        own = starts[c + 1] - starts[c]
        for p in range(starts[c], starts[c + 1]):
            found = own
            for line in range(5):
                for q in range(starts[windows[c, line, 0]], starts[windows[c, line, 1]]):
                    if found >= neighbours:
                        break
                    if starts[c] <= q < starts[c + 1]:
                        continue
                    across, along = x[p] - x[q], y[p] - y[q]
                    if across * across + along * along <= reach:
                        found += 1
            core[p] = found >= neighbours


@kernel
def _boxes(x: Floats, y: Floats, starts: Ints, core: Flags) -> Floats:
    """The corners of each cell's core points; where there are none, the box is nowhere."""
    boxes = np.empty((len(starts) - 1, 4))
    for c in range(len(boxes)):
        left, right, low, high = np.inf, -np.inf, np.inf, -np.inf
        for p in range(starts[c], starts[c + 1]):
            if core[p]:
                left, right, low, high = min(left, x[p]), max(right, x[p]), min(low, y[p]), max(high, y[p])
        boxes[c, 0], boxes[c, 1], boxes[c, 2], boxes[c, 3] = left, right, low, high
    return boxes


@kernel
def _beyond(x: float, y: float, box: Floats, reach: float) -> bool:
    across, along = max(box[0] - x, x - box[1], 0.0), max(box[2] - y, y - box[3], 0.0)
    return bool(across * across + along * along > reach * (1 + MARGIN))


@kernel
def _join(
    x: Floats,
    y: Floats,
    starts: Ints,
    cells: Ints,
    row: int,
    windows: Ints,
    apart: int,
    reach: float,
    core: Flags,
    boxes: Floats,
    parents: Ints,
) -> None:
    """Join each cell with later ones, up to `apart` rows and columns away, that hold a core point within reach."""
    for c in range(len(cells)):
        for line in range(2, 3 + apart):
            middle = cells[c] + (line - 2) * row
            for e in range(max(windows[c, line, 0], c + 1), windows[c, line, 1]):
                if abs(cells[e] - middle) > apart or root(parents, c) == root(parents, e):
                    continue
                if _are_linked(x, y, starts, c, e, reach, core, boxes):
                    union(parents, c, e)


@kernel
def _are_linked(x: Floats, y: Floats, starts: Ints, c: int, e: int, reach: float, core: Flags, boxes: Floats) -> bool:
    for p in range(starts[c], starts[c + 1]):
        if not core[p] or _beyond(x[p], y[p], boxes[e], reach):
            continue
        for q in range(starts[e], starts[e + 1]):
            if core[q]:
                across, along = x[p] - x[q], y[p] - y[q]
                if across * across + along * along <= reach:
                    return True
    return False


@kernel
def _border(
    x: Floats, y: Floats, starts: Ints, windows: Ints, reach: float, core: Flags, boxes: Floats, numbers: Ints
) -> None:
    """Give every other point the smallest number among the core points within reach."""
    for c in range(len(windows)):
        for p in range(starts[c], starts[c + 1]):
            if core[p]:
                continue
            best = len(core)
            for line in range(5):
                for e in range(windows[c, line, 0], windows[c, line, 1]):
                    if not _beyond(x[p], y[p], boxes[e], reach):
                        best = _smallest(x, y, starts[e], starts[e + 1], x[p], y[p], reach, core, numbers, best)
            if best < len(core):
                numbers[p] = best


@kernel
def _smallest(
    x: Floats,
    y: Floats,
    start: int,
    stop: int,
    at_x: float,
    at_y: float,
    reach: float,
    core: Flags,
    numbers: Ints,
    best: int,
) -> int:
    """The smallest number of a core point within reach, if below `best`. All core points of a cell have the same."""
    for q in range(start, stop):
        if core[q]:
            if numbers[q] >= best:
                return best
            across, along = at_x - x[q], at_y - y[q]
            if across * across + along * along <= reach:
                return int(numbers[q])
    return best
