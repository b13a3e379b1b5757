"""How far one record can move the count: everywhere (global), here (local), and smoothly in between.

`global_bound` holds for every table of that size. `local_bounds` gives U_t, a bound that still holds after any t
records were replaced; `smooth_bound` is the largest of e^(-beta t) U_t, which moves by at most a factor e^beta between
neighbouring tables [NRS07]. All are capped by the same global bound (proof.md, labels (G) (U) (S)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.neighbours.limits import check_neighbours, global_bound, kissing_number, rounding_bound
from wallflower.neighbours.pairs import BOX_MARGIN, Floats, Ints, Tree, build_tree, count_neighbours, index_points

__all__ = [
    "global_bound",
    "kissing_number",
    "local_bounds",
    "peel",
    "rounded_smooth_bound",
    "rounding_bound",
    "rows",
    "smooth_bound",
    "sweep",
    "window",
]

PEEL_LIMIT = 10_000
_EXACT: Final[Mapping[int, str]] = {1: "window", 2: "sweep"}
_BY_PAIRS: Final[Mapping[int, str]] = {1: "window"}  # rounded angles can see four places at once and, without one, two


def local_bounds(points: ArrayLike, radius: float, neighbours: int, *, upto: int, normalise: bool = True) -> list[int]:
    """U_0 … U_upto: bounds on how far one record can move the count, t replacements away.

    >>> local_bounds([[0.0], [0.0], [1.0], [2.0]], 1.0, 1, upto=1)
    [2, 3]
    """
    check_neighbours(neighbours)
    if upto < 0:
        raise ParameterError(f"upto: {upto!r} is negative; pass the largest number of replacements wanted.")
    tree = index_points(points, radius, normalise=normalise)
    ladder = _Ladder(tree, neighbours, upto, global_bound(*_facts(tree), neighbours), _EXACT)
    return [ladder.bound(t) for t in range(upto + 1)]


def smooth_bound(points: ArrayLike, radius: float, neighbours: int, *, beta: float, normalise: bool = True) -> float:
    """The beta-smooth upper bound on the local sensitivity of the count, in real arithmetic (S)."""
    tree = index_points(points, radius, normalise=normalise)
    return _climb(tree, neighbours, beta, global_bound(*_facts(tree), neighbours), _EXACT)


def rounded_smooth_bound(
    points: ArrayLike, radius: float, neighbours: int, *, beta: float, normalise: bool = True
) -> float:
    """`smooth_bound` from rounded distances alone, no angles: what a release may use (S)."""
    tree = index_points(points, radius, normalise=normalise)
    return _climb(tree, neighbours, beta, rounding_bound(*_facts(tree), neighbours), _BY_PAIRS)


def _facts(tree: Tree) -> tuple[int, int]:
    return tree.n, tree.blocks.shape[1]


def _climb(tree: Tree, neighbours: int, beta: float, highest: int, covers: Mapping[int, str]) -> float:
    if not 0 < beta < math.inf:
        raise ParameterError(f"beta: {beta!r} is not a positive number; it follows from epsilon and delta.")
    if highest == 0:
        return 0.0
    ladder = _Ladder(tree, neighbours, math.ceil(math.log(highest) / beta), highest, covers)
    best = 0.0
    for t in range(ladder.upto + 1):
        if highest * math.exp(-beta * t) <= best:
            break
        if ladder.ceiling(t) * math.exp(-beta * t) > best:  # otherwise U_t cannot matter
            best = max(best, ladder.bound(t) * math.exp(-beta * t))
    return best


class _Ladder:
    """U_t for growing t. P_t holds the records whose degree is within t of k, or of k-1; a new record must lie near
    all it flips, so the flipped ones fit one ball: U_t = cover(P_t) + t + 1."""

    def __init__(self, tree: Tree, neighbours: int, upto: int, highest: int, covers: Mapping[int, str]) -> None:
        self.highest = highest
        self.upto = min(upto, tree.n)
        degree = count_neighbours(tree, neighbours + self.upto + 1)
        self.steps = [np.abs(degree - level) for level in (neighbours, neighbours - 1)]
        band = np.flatnonzero(np.minimum(*self.steps) <= self.upto)
        self.steps = [step[band] for step in self.steps]
        self.cover = _Cover(rows(tree)[band], tree, covers)

    def ceiling(self, t: int) -> int:
        """What U_t cannot exceed, without looking at places."""
        return min(self.highest, max(int(np.count_nonzero(step <= t)) for step in self.steps) + t + 1)

    def bound(self, t: int) -> int:
        t = min(t, self.upto)
        if self.highest <= t + 1:
            return self.highest
        most = max(self.cover(np.flatnonzero(step <= t), self.highest - t - 1) for step in self.steps)
        return min(self.highest, most + t + 1)


class _Cover:
    """A licensed bound on the most records of a set that one ball of the reach can hold (L). Which one is used
    depends on the dimension and the number of records, which are public."""

    def __init__(self, values: Floats, tree: Tree, covers: Mapping[int, str]) -> None:
        self.values = values
        self.reach = tree.reach * (1 + BOX_MARGIN) ** 2
        self.doubled = 4.0 * self.reach
        name = covers.get(values.shape[1], "peel" if tree.n <= PEEL_LIMIT else "rank")
        self.method = {"window": self._window, "sweep": self._sweep, "peel": self._peel, "rank": self._rank}[name]
        self.beside = _adjacency(values, self.doubled) if name == "peel" else np.empty((0, 0), np.bool_)

    def __call__(self, members: Ints, enough: int) -> int:
        """The bound for these members, or anything from `enough` upwards once that is reached."""
        return self.method(members, enough) if len(members) else 0

    def _window(self, members: Ints, enough: int) -> int:
        return window(np.sort(self.values[members, 0]), self.doubled)

    def _sweep(self, members: Ints, enough: int) -> int:
        return sweep(self.values[members], self.reach)

    def _peel(self, members: Ints, enough: int) -> int:
        return peel(self.beside[np.ix_(members, members)])

    def _rank(self, members: Ints, enough: int) -> int:
        beside = np.sort(count_neighbours(build_tree(self.values[members], self.doubled), enough) + 1)[::-1]
        return int(np.count_nonzero(beside >= np.arange(1, len(beside) + 1)))


def rows(tree: Tree) -> Floats:
    """The records in tree order."""
    inner = np.arange(tree.blocks.shape[2]) < np.diff(tree.starts)[:, None]
    return np.ascontiguousarray(tree.blocks.transpose(0, 2, 1)[inner])


@kernel
def window(ordered: Floats, doubled: float) -> int:
    """Exact in one dimension: the most ordered values within one interval of squared length `doubled`."""
    best, first = 0, 0
    for last in range(len(ordered)):
        while (ordered[last] - ordered[first]) ** 2 > doubled:
            first += 1
        best = max(best, last - first + 1)
    return best


@kernel
def sweep(places: Floats, reach: float) -> int:
    """Exact in two dimensions: turn a disc around each place, with the place on its rim, and count what it holds."""
    radius, best = math.sqrt(reach), 0
    for c in range(len(places)):
        angles, turns = np.empty(3 * len(places)), np.empty(3 * len(places), np.int64)
        events, always = 0, 0
        for o in range(len(places)):
            across, up = places[o, 0] - places[c, 0], places[o, 1] - places[c, 1]
            far = math.sqrt(across * across + up * up)
            if far == 0.0:
                always += 1
            elif far <= 2 * radius:
                middle, half = math.atan2(up, across), math.acos(far / (2 * radius))
                start, stop = middle - half, middle + half
                if start < -math.pi:
                    start, stop = start + 2 * math.pi, stop + 2 * math.pi
                angles[events], turns[events] = start, 1
                angles[events + 1], turns[events + 1] = stop, -1
                events += 2
                if stop >= math.pi:  # the arc reaches round to where the turn began
                    always_on = stop - 2 * math.pi
                    angles[events], turns[events] = always_on, -1
                    always += 1
                    events += 1
        best = max(best, always + _most(angles[:events], turns[:events]))
    return best


@kernel
def _most(angles: Floats, turns: Ints) -> int:
    """The most arcs open at once; at one angle, arcs open before others close."""
    best, open_now, start = 0, 0, 0
    order = np.argsort(angles)
    while start < len(order):
        stop = start
        while stop < len(order) and angles[order[stop]] == angles[order[start]]:
            stop += 1
        for e in range(start, stop):
            open_now += max(turns[order[e]], 0)
        best = max(best, open_now)
        for e in range(start, stop):
            open_now += min(turns[order[e]], 0)
        start = stop
    return best


@kernel
def peel(beside: NDArray[np.bool_]) -> int:
    """Degeneracy + 1: take away the record with the fewest others beside it, again and again."""
    n = len(beside)
    degree = np.empty(n, np.int64)
    for i in range(n):
        degree[i] = beside[i].sum()
    left, deepest = np.ones(n, np.bool_), 0
    for _ in range(n):
        least = -1
        for i in range(n):
            if left[i] and (least < 0 or degree[i] < degree[least]):
                least = i
        deepest = max(deepest, degree[least])
        left[least] = False
        for i in range(n):
            if left[i] and beside[least, i]:
                degree[i] -= 1
    return deepest + 1


@kernel
def _adjacency(values: Floats, doubled: float) -> NDArray[np.bool_]:
    n, dimension = values.shape
    beside = np.zeros((n, n), np.bool_)
    for i in range(n):
        for j in range(i):
            total = 0.0
            for c in range(dimension):
                total += (values[i, c] - values[j, c]) ** 2
            beside[i, j] = beside[j, i] = total <= doubled
    return beside
