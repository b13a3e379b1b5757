"""How much one ball of a given radius can hold, exactly, in any number of columns: for small tables.

In one and two columns a sweep finds it. Above, sets of records grow one by one while their smallest enclosing ball is
small enough [FGK03], as in [Oka15, Algorithm 1]. That is exponential at worst. Records that coincide are one place, and
a set is given up when pairs alone show that it cannot end up heavier than the best one so far.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wallflower.neighbours.pairs import BOX_MARGIN, Floats, Ints
from wallflower.queries.count.sensitivity import sweep, window


def heaviest_ball(points: Floats, reach: float) -> int:
    """The most records that one closed ball of squared radius `reach` can hold, wherever its centre is.

    >>> heaviest_ball(np.array([[0.0, 0, 0], [2, 0, 0], [0, 0, 9]]), 1.0)
    2
    """
    wide = reach * (1 + BOX_MARGIN) ** 2  # what touches is held, whatever rounding says
    if len(points) == 0:
        return 0
    match points.shape[1]:
        case 1:
            return int(window(np.sort(points[:, 0]), 4 * wide))
        case 2:
            return int(sweep(points, wide))
        case _:
            return _Growth(points, wide).best


class _Growth:
    """Sets of places that one ball holds, the lightest places first in line; `best` is the weight of the heaviest."""

    def __init__(self, points: Floats, reach: float) -> None:
        places, self.weights = np.unique(points, axis=0, return_counts=True)
        squared = ((places[:, None, :] - places[None, :, :]) ** 2).sum(axis=2)
        self.places, self.reach, self.best = places, reach, 0
        self.beside = squared <= 4 * reach
        order = np.argsort(self.beside @ self.weights, kind="stable")
        for turn, first in enumerate(order):
            later = order[turn + 1 :]
            self._grow([int(first)], later[self.beside[first, later]])

    def _grow(self, held: list[int], left: Ints) -> None:
        self.best = max(self.best, int(self.weights[held].sum()))
        while len(left) and int(self.weights[held].sum()) + self._most(left) > self.best:
            one, left = int(left[-1]), left[:-1]
            if enclosing_reach(self.places[[*held, one]]) <= self.reach:
                self._grow([*held, one], left[self.beside[one, left]])

    def _most(self, left: Ints) -> int:
        """No set of `left` whose members are pairwise close is heavier: one of each colour at most."""
        colours: list[Ints] = []
        for one in left:
            for place, members in enumerate(colours):
                if not self.beside[one, members].any():
                    colours[place] = np.append(members, one)
                    break
            else:
                colours.append(np.array([one]))
        return sum(int(self.weights[members].max()) for members in colours)


def enclosing_reach(points: Floats) -> float:
    """The squared radius of the smallest ball around all points [FGK03].

    The centre walks towards the flat through the farthest points, which stay the farthest, until another is as far.
    Where it stops inside that flat, a point that does not hold it there is let go, and without one it is the centre.

    >>> round(enclosing_reach(np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, 0, 0.5]])), 9)
    1.0
    """
    centre = points[0]
    held = [int(((points - centre) ** 2).sum(axis=1).argmax())]
    while True:
        shares, way = _shares(points[held], centre)
        reach = float(((points[held[0]] - centre) ** 2).sum())
        if float(way @ way) <= 1e-24 * max(reach, 1e-300):
            if shares.min() >= -1e-12 or len(held) == 1:
                return reach
            del held[int(shares.argmin())]
            continue
        step, hit = _first_hit(points, held, centre, way)
        centre = centre + step * way
        if hit is not None:
            held.append(hit)


def _shares(held: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """The weights, of sum 1, of the point nearest to `centre` in the flat through `held`, and the way there."""
    edges = (held[1:] - held[0]).T
    rest = np.linalg.lstsq(edges, centre - held[0], rcond=None)[0] if len(held) > 1 else np.zeros(0)
    nearest = held[0] + edges @ rest
    return np.append(1 - rest.sum(), rest), nearest - centre


def _first_hit(points: Floats, held: list[int], centre: Floats, way: Floats) -> tuple[float, int | None]:
    """How far along `way` (1 is all of it) the centre can go before another point is as far as those held."""
    anchor = points[held[0]]
    pace = (points - anchor) @ way  # how fast a point falls behind the held ones, less than 0 if it does not
    gap = ((anchor - centre) ** 2).sum() - ((points - centre) ** 2).sum(axis=1)
    is_catching: NDArray[np.bool_] = pace < -1e-14 * float(way @ way)
    is_catching[held] = False
    if not is_catching.any():
        return 1.0, None
    steps = np.where(is_catching, np.maximum(gap, 0.0) / np.where(is_catching, -2 * pace, 1.0), np.inf)
    hit = int(steps.argmin())
    return (float(steps[hit]), hit) if steps[hit] < 1.0 else (1.0, None)
