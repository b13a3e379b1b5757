"""How surely a record is an outlier in a context: signed margins that one other record moves by at most one.

A margin is positive only where the record is an outlier, and is 1-Lipschitz under adding or removing one record other
than the one in question, in every context at once.  (M)  Local outlier factors and the bins of a context's own range
have none that would be of use: a single record can overturn them whatever the rest looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.jit import kernel
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector, Distance, FixedBins, Tukey, kappas, kappas_at
from wallflower.queries.explain.engines.sums import beyond, fences, near, nothing
from wallflower.queries.explain.exact import HELD
from wallflower.queries.explain.space.blocks import Part, Walk, in_blocks, walk_parts
from wallflower.queries.explain.space.cells import CellTable, cells_of
from wallflower.queries.explain.space.cube import Counts, sums_of
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable, rank_table

T = TypeVar("T")


def margin(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> dict[str, float]:
    """The margin of every context that contains the record.

    >>> codes, metric = [[0], [0], [0], [1], [1], [1]], [1.0, 2.0, 9.0, 8.0, 9.0, 9.5]
    >>> margin(codes, [2], metric, 2, Distance(k=1, radius=1.0))
    {'10': 1.0, '11': -2.0}
    """
    table = rank_table(codes, domain_sizes, metric, record)
    return {table.space.bits(at): value for at, value in enumerate(margins(table, detector)[0].tolist())}


def margins(table: RankedTable | CellTable, detector: Detector) -> tuple[Floats, Counts]:
    """The margins and populations of all contexts by index, for up to 2²⁴ of them."""
    if table.space.count > HELD:
        raise ParameterError(
            f"domain_sizes: {table.space.count} contexts are more than the {HELD} that can be kept; "
            "name fewer values, or reduce them block by block with `margins_in_blocks`."
        )
    found, populations = np.empty(table.space.count), np.empty(table.space.count, np.int32)

    def keep(first: int, here: Floats, counts: Counts) -> None:
        found[first : first + len(here)], populations[first : first + len(here)] = here, counts

    for _ in margins_in_blocks(table, detector, keep):
        pass
    return found, populations


def margins_in_blocks(
    table: RankedTable | CellTable, detector: Detector, reduce: Callable[[int, Floats, Counts], T]
) -> Iterator[T]:
    """Yields what `reduce(first index, margins, populations)` says of every block; see `exact.sweep`."""
    if type(detector) not in MARGINS:
        known = ", ".join(sorted(kind.__name__ for kind in MARGINS))
        raise ParameterError(f"detector: {type(detector).__name__} has no margin; those with one are {known}.")
    return in_blocks(table.space, MARGINS[type(detector)](cells_of(table, detector), detector), np.float64, reduce)


def greatest_margins(detector: Detector, populations: Floats) -> Floats:
    """The largest margin that contexts of so many records can have, whatever the records are.  (U)

    >>> greatest_margins(FixedBins((0.0, 1.0, 2.0)), np.array([400.0, 4000.0])).round(2).tolist()
    [0.0, 9.02]
    """
    found: Floats = GREATEST[type(detector)](detector, populations)
    return found


def _loneliness(table: CellTable, detector: Distance) -> Iterator[Part]:
    """k - N: every near record counts one."""
    return _affine(table, lambda n, count: detector.k + 1.0 - count)


def _sparseness(table: CellTable, detector: FixedBins) -> Iterator[Part]:
    """(τn - c) / (1 - τ): a record in the bin takes 1 - τ off, any other adds τ, which is more where τ > 1/2."""
    tau = detector.fraction
    return _affine(table, lambda n, count: (tau * n - count) / max(tau, 1 - tau))


def _affine(table: CellTable, formula: Callable[[Counts, Counts], NDArray[Any]]) -> Iterator[Part]:
    def work(_: int, walk: Walk, found: Floats, populations: Counts) -> None:
        counts = np.empty((2, len(found)), np.int32)
        sums_of(*walk, counts, nothing(len(found)))
        populations[:], found[:] = counts[0], formula(*counts)

    return walk_parts(table, near(table), nothing(len(table.slots)), work)


def _beyond(table: CellTable, detector: Tukey) -> Iterator[Part]:
    whole, pairs = fences(table, detector)

    def work(_: int, walk: Walk, found: Floats, populations: Counts) -> None:
        beyond(*walk, *pairs, found, populations)

    return walk_parts(table, whole, nothing(len(table.slots)), work)


def _clamped_grubbs(table: CellTable, detector: ClampedGrubbs) -> Iterator[Part]:
    """Grubbs' T₁² > κT₂ follows from ±T₁ > T₂/2Z + κZ/2 for any scale Z; each scale is linear in the records."""
    if table.n > detector.largest:
        raise DataError("the table has more records than the public bound `largest`; raise the bound.")
    kappa = kappas(detector.alpha, table.n)
    weights = scales(detector, min(max(table.own, detector.low), detector.high))
    tie = 1e-12 + 1e-15 * table.n

    def work(_: int, walk: Walk, found: Floats, populations: Counts) -> None:
        sums = np.empty((2, len(found)))
        sums_of(*walk, populations[None], sums)
        _largest(populations, sums, kappa, weights, tie, found)

    return walk_parts(table, table.weights[None], table.sums, work)


def scales(detector: ClampedGrubbs, own: float) -> Floats:
    """For every scale Z and side what T₁, T₂ and κ weigh in the margin: (±1, -1/2Z, -Z/2) over the most a record moves.

    A record moves ±z - z²/2Z by its own part, and κ by one of its increments up to the public bound; the two
    parts are worst at an end of their ranges, or at the vertex z = ±Z.
    """
    width = detector.high - detector.low
    increments = np.diff(kappas(detector.alpha, detector.largest)[1:])
    extremes = np.array([increments.min(), increments.max()])
    scale, side = np.geomspace(width / 1000, width, detector.steps)[:, None], np.array([1.0, -1.0])
    ends = np.sort([side * (own - detector.high), side * (own - detector.low)], axis=0)
    z = np.broadcast_arrays(*ends, np.clip(scale, *ends))
    parts = np.stack(z) - np.square(z) / (2 * scale)
    most = np.abs(parts[..., None] - extremes * scale[..., None] / 2).max(axis=(0, -1))
    return np.stack([side / most, -1 / (2 * scale * most), -scale / (2 * most)], axis=-1).reshape(-1, 3)


@kernel
def _largest(populations: Counts, sums: Floats, kappa: Floats, weights: Floats, tie: float, found: Floats) -> None:
    """The largest margin over scales and sides; never positive where rounding may have made an outlier."""
    for x in range(len(found)):
        one, two, bound = sums[0, x], sums[1, x], kappa[populations[x]]
        best = -np.inf
        for w in range(len(weights)):
            best = max(best, weights[w, 0] * one + weights[w, 1] * two + weights[w, 2] * bound)
        surely = one * one > bound * two * (1 + tie)
        found[x] = best if surely else min(best, 0.0)


MARGINS: Final[dict[type, Callable[[CellTable, Any], Iterator[Part]]]] = {
    ClampedGrubbs: _clamped_grubbs,
    Distance: _loneliness,
    FixedBins: _sparseness,
    Tukey: _beyond,
}

GREATEST: Final[dict[type, Callable[[Any, Floats], Floats]]] = {  # (U)
    ClampedGrubbs: lambda detector, n: n - 1 - kappas_at(detector.alpha, n),
    Distance: lambda detector, n: np.full(len(n), float(detector.k)),
    FixedBins: lambda detector, n: (detector.fraction * n - 1) / max(detector.fraction, 1 - detector.fraction),
    Tukey: lambda detector, n: (n - 4) / 3,
}
