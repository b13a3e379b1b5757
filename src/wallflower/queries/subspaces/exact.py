"""The exact scores of subspaces: how many outliers show in each, or what they weigh.

Distances are those of `count`: the root of the mean squared difference over the columns of the subspace, one canonical
pair test, closed balls. Work is shared and cut short wherever the answer allows it:

few records   all pairs at once. Subspaces are taken in dictionary order, so that the squared differences of the columns
              two of them begin with are added up once.
many records  one tree a subspace, searched only until a record has neighbours enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from wallflower import progress
from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.neighbours.flow import augment, largest_flow, pair
from wallflower.neighbours.limits import check_neighbours
from wallflower.neighbours.pairs import Floats, Ints, as_matrix, build_tree, count_neighbours, squared_reach
from wallflower.queries.subspaces.family import Subspace

MAX_RECORDS_OF_ALL_PAIRS: Final = 1500  # records up to which all pairs are compared
SOON: Final = 2**18  # so few distances are taken sooner than threads are started
LEVELS: Final = 6  # how many beginnings are kept at most
MIN_RECORDS_ONE_BY_ONE: Final = (
    250_000  # records from which on one subspace is compared at a time: each has work for all cores
)


def scores(
    points: ArrayLike,
    family: Iterable[Subspace],
    radius: float,
    neighbours: int,
    *,
    score: str = "mass",
    normalise: bool = True,
) -> Floats | Ints:
    """The outlier mass of every subspace, or with score="count" its number of outliers; subspaces are tuples of places.

    >>> table = [[0.0, 0.0], [0.1, 5.0], [0.2, 9.0], [0.3, 0.1]]
    >>> scores(table, [(0,), (1,), (0, 1)], 0.5, 1, score="count").tolist()
    [0, 2, 2]
    >>> scores(table, [(0,), (1,), (0, 1)], 0.5, 2).tolist()
    [0.0, 3.0, 3.0]
    """
    found = units(as_matrix(points), list(family), radius, neighbours, score=score, normalise=normalise)
    return found / neighbours if score == "mass" else found


def units(
    values: Floats,
    family: Sequence[Subspace],
    radius: float,
    neighbours: int,
    *,
    score: str,
    normalise: bool = True,
    sizes: Sequence[int] | None = None,
) -> Ints:
    """Scores as whole numbers: outliers, or units of mass (1/neighbours of a record each).

    `sizes` are the numbers of columns that distances are a mean over, where a column is several places.
    """
    check_neighbours(neighbours)
    if score not in SCORES:
        raise ParameterError(f"score: {score!r} is not known; it is one of {', '.join(SCORES)}.")
    for subspace in family:
        if not subspace or min(subspace) < 0 or max(subspace) >= values.shape[1] or len(set(subspace)) < len(subspace):
            raise ParameterError(
                f"family: {subspace!r} is not a set of places from 0 to {values.shape[1] - 1}; name each column once."
            )
    reaches = [squared_reach(radius, size, normalise=normalise) for size in sizes or map(len, family)]
    engine = _by_pairs if len(values) <= MAX_RECORDS_OF_ALL_PAIRS else _by_trees
    return engine(values, family, reaches, neighbours, score)


def _by_trees(
    values: Floats, family: Sequence[Subspace], reaches: Sequence[float], neighbours: int, score: str
) -> Ints:
    found = np.zeros(len(family), dtype=np.int64)
    workers = 1 if len(values) > MIN_RECORDS_ONE_BY_ONE else _cores()
    with progress.steps("scoring subspaces", len(family)) as step, ThreadPoolExecutor(workers) as pool:

        def look(at: int) -> None:
            found[at] = SCORES[score](values[:, sorted(family[at])], reaches[at], neighbours)
            step()

        for done in [pool.submit(look, at) for at in range(len(family))]:
            done.result()
    return found


def _mass(values: Floats, reach: float, neighbours: int) -> int:
    return len(values) * neighbours - largest_flow(build_tree(values, reach), neighbours)


def _count(values: Floats, reach: float, neighbours: int) -> int:
    return int(np.count_nonzero(count_neighbours(build_tree(values, reach), neighbours) < neighbours))


SCORES: Final[dict[str, Callable[[Floats, float, int], int]]] = {"mass": _mass, "count": _count}


def _by_pairs(
    values: Floats, family: Sequence[Subspace], reaches: Sequence[float], neighbours: int, score: str
) -> Ints:
    tidy = [tuple(sorted(subspace)) for subspace in family]
    order = sorted(range(len(family)), key=tidy.__getitem__)
    starts = np.zeros(len(family) + 1, dtype=np.int64)
    np.cumsum([len(tidy[at]) for at in order], out=starts[1:])
    members = np.array([column for at in order for column in tidy[at]], dtype=np.int64)
    reach = np.array([reaches[at] for at in order], dtype=np.float64)
    columns, lacking = np.ascontiguousarray(values.T), np.zeros(len(family), dtype=np.int64)
    whole = score == "count"
    with progress.steps("scoring subspaces", len(family)) as step:

        def look(first: int, last: int) -> None:
            _score_pairs(
                columns, starts[first : last + 1], members, reach[first:last], neighbours, whole, lacking[first:last]
            )
            step(last - first)

        if len(family) * len(values) ** 2 <= SOON:
            look(0, len(family))
        else:
            _in_slices(len(family), look)
    found = np.empty(len(family), dtype=np.int64)
    found[order] = lacking
    return found


def _in_slices(items: int, look: Callable[[int, int], None]) -> None:
    cores = _cores()
    size = max(1, min(64, -(-items // cores)))  # slices of neighbours in dictionary order share their beginnings
    with ThreadPoolExecutor(cores) as pool:
        for done in [pool.submit(look, at, min(at + size, items)) for at in range(0, items, size)]:
            done.result()


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@kernel
def _score_pairs(
    columns: Floats, starts: Ints, members: Ints, reach: Floats, neighbours: int, whole: bool, lacking: Ints
) -> None:
    """Score subspaces that come in dictionary order: the sums of common beginnings stay where they are."""
    n, levels = columns.shape[1], 1
    for s in range(len(lacking)):
        levels = max(levels, min(LEVELS, starts[s + 1] - starts[s]))
    sums = np.empty((levels, n, n))
    shared, before = 0, starts[0]
    for s in range(len(lacking)):
        first, last = starts[s], starts[s + 1]
        shared = _common(members, before, first, last, levels) if s > 0 else 0
        before = first
        for at in range(first + shared, last):
            level = min(at - first, levels - 1)
            _add_squares(columns[members[at]], sums, level, at == first, at - first > level)
        depth = min(last - first, levels) - 1
        degrees = _degrees(sums[depth], reach[s])
        if whole:
            lacking[s] = np.sum(degrees < neighbours)
        else:
            lacking[s] = n * neighbours - _largest_flow(sums[depth], reach[s], degrees, neighbours)


@kernel
def _common(members: Ints, before: int, first: int, last: int, levels: int) -> int:
    """How many columns a subspace begins with like the one before it, as far as sums of them are kept."""
    shared, most = 0, min(first - before, last - first, levels - 1)
    while shared < most and members[before + shared] == members[first + shared]:
        shared += 1
    return shared


@kernel
def _add_squares(column: Floats, sums: Floats, level: int, fresh: bool, in_place: bool) -> None:
    """The squared differences of one more column, added to the sums of those before it (upper triangle)."""
    below = level if in_place else level - 1
    for i in range(len(column)):
        for j in range(i + 1, len(column)):
            step = column[i] - column[j]
            square = step * step
            sums[level, i, j] = square if fresh else sums[below, i, j] + square


@kernel
def _degrees(sums: Floats, reach: float) -> Ints:
    n = len(sums)
    found = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(i + 1, n):
            if sums[i, j] <= reach:
                found[i] += 1
                found[j] += 1
    return found


@kernel
def _largest_flow(sums: Floats, reach: float, degrees: Ints, neighbours: int) -> int:
    """The largest flow, from the list of all pairs."""
    n = len(sums)
    starts = np.zeros(n + 1, np.int64)
    for i in range(n):
        starts[i + 1] = starts[i] + degrees[i]
    near, filled = np.empty(starts[n], np.int32), starts[:n].copy()
    for i in range(n):
        for j in range(i + 1, n):
            if sums[i, j] <= reach:
                near[filled[i]], near[filled[j]] = j, i
                filled[i] += 1
                filled[j] += 1
    most = max(1, min(neighbours, n - 1))
    given, taken, clients = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros((n, most), np.int32)
    wanted, nowhere = np.minimum(degrees, most).astype(np.int32), np.zeros(n, np.bool_)
    pair(starts, near, given, taken, clients)
    augment(starts, near, nowhere, wanted, given, taken, clients, nowhere)
    return int(np.sum(taken))
