"""Correction of noise at two servers without cryptography: modes paper and grid.

The analyst knows perturbed distances; the correction server knows d_diff, by how far noise moved each distance. What
each learns from the other is in proof.md, label (L). Readings are named by their position; sets come sorted.

Mode paper is the correction of [Boe17], step by step as the servers see it, and in one call (`correct`):

`find_cut`      correction server   which presumed outliers to keep, and d_TP
`candidates`    analyst             which other readings are far enough out for layers 2 and 3
`layers`        correction server   which of these were outliers before the noise

Mode grid decides by one comparison. The analyst sends the ring of width `step` in which a perturbed distance lies; the
correction server flags where d_diff <= step·ring - bound. With r the distance before the noise (proof.md, label (G)):

    r < bound           is never flagged
    r >= bound + step   is always flagged

Distances are whole numbers of the stream's grid, so that these lines hold exactly for the numbers in use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Gap = Literal["upper", "literal"]

GAPS: Final = ("upper", "literal")
MAX_DISTANCE: Final = 2**60  # sums and differences of smaller numbers stay within 64 bits


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """The sets of the paper, as sorted positions. `d_tp` is None if no reading was presumed an outlier."""

    tp: Ints
    fp: Ints
    d_tp: float | None
    i2: Ints
    i3: Ints
    fn1: Ints
    fn2: Ints
    fn3: Ints
    output: Ints


def correct(
    distance_perturbed: ArrayLike, d_diff: ArrayLike, presumed: ArrayLike, width: float, *, gap: Gap = "upper"
) -> Correction:
    """Run all steps of mode paper at once, with the knowledge of both servers.

    >>> correction = correct([5, 13, 60, 10, 52], [5, 12, 58, 9, 12], [2, 4], 2.0)
    >>> correction.tp, correction.fp, correction.d_tp, correction.output
    (array([4]), array([2]), 12.0, array([1, 4]))
    """
    distances, moved = _check_numbers(distance_perturbed, "distance_perturbed"), _check_numbers(d_diff, "d_diff")
    if len(distances) != len(moved):
        raise DataError("distance_perturbed, d_diff: must be equally many. Pass both for every reading.")
    positions = _check_positions(presumed, len(moved), "presumed")
    cut, d_tp = find_cut(moved[positions], gap=gap)
    is_kept = moved[positions] <= (np.inf if cut is None else cut)
    i2, i3 = candidates(distances, positions, d_tp, width)
    fn1, fn2, fn3 = layers(moved, positions, i2, i3, d_tp, width)
    output = np.flatnonzero(_mark(len(moved), positions[is_kept], fn1, fn2, fn3))
    return Correction(positions[is_kept], positions[~is_kept], d_tp, i2, i3, fn1, fn2, fn3, output)


def find_cut(d_diff: ArrayLike, *, gap: Gap = "upper") -> tuple[float | None, float | None]:
    """Return the largest d_diff of presumed outliers that is kept, and d_TP, the smallest; None if none is presumed.

    The cut is the lower end of the widest gap, the last of equal ones. "upper" counts only gaps that start at 0 or
    above, since noise that moved a reading inwards is not a sign of a false positive; "literal" counts all, as printed.

    >>> find_cut([-40.0, 1.0, 2.0, 3.0]), find_cut([-40.0, 1.0, 2.0, 3.0], gap="literal"), find_cut([])
    ((2.0, -40.0), (-40.0, -40.0), (None, None))
    """
    if gap not in GAPS:
        raise ParameterError(f"gap: {gap!r} must be one of upper, literal. Pass one of them.")
    ordered = np.sort(_check_numbers(d_diff, "d_diff"))
    if len(ordered) == 0:
        return None, None
    gaps = np.diff(ordered)
    if gap == "upper":
        gaps = gaps[np.searchsorted(ordered, 0.0) :]
    cut = ordered[-1] if len(gaps) == 0 else ordered[len(ordered) - 2 - int(np.argmax(gaps[::-1]))]
    return float(cut), float(ordered[0])


def candidates(
    distance_perturbed: ArrayLike, presumed: ArrayLike, d_tp: float | None, width: float
) -> tuple[Ints, Ints]:
    """Return I2 and I3: readings not presumed, but at least d_TP, or d_TP + width, away from the centre."""
    distances = _check_numbers(distance_perturbed, "distance_perturbed")
    is_other = ~_mark(len(distances), _check_positions(presumed, len(distances), "presumed"))
    further = _outer_distance(d_tp, width)
    if d_tp is None or further is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.flatnonzero(is_other & (distances >= d_tp)), np.flatnonzero(is_other & (distances >= further))


def layers(
    d_diff: ArrayLike, presumed: ArrayLike, i2: ArrayLike, i3: ArrayLike, d_tp: float | None, width: float
) -> tuple[Ints, Ints, Ints]:
    """Return FN_L1, FN_L2 and FN_L3: the outliers that were not presumed, by how far noise moved them."""
    moved = _check_numbers(d_diff, "d_diff")
    presumed = _check_positions(presumed, len(moved), "presumed")
    inwards = np.flatnonzero(~_mark(len(moved), presumed) & (moved < 0))
    second, third = _check_positions(i2, len(moved), "i2"), _check_positions(i3, len(moved), "i3")
    further = _outer_distance(d_tp, width)
    if d_tp is None or further is None:
        return inwards, second[:0], third[:0]
    little, more = moved[second], moved[third]
    return inwards, second[(little >= 0) & (little <= d_tp)], third[(more >= d_tp) & (more <= further)]


def ring_numbers(distance_perturbed: ArrayLike, step: int) -> Ints:
    """Return the ring of each reading, counted from the centre: what the analyst sends in mode grid.

    >>> ring_numbers([0, 9, 10, 25], 10)
    array([0, 0, 1, 2])
    """
    _check_length(step, "step")
    return _check_integers(distance_perturbed, "distance_perturbed") // step


def flag_by_rings(d_diff: ArrayLike, rings: ArrayLike, step: int, bound: int) -> Flags:
    """Return which readings are outliers: what the correction server computes in mode grid.

    >>> flag_by_rings([0, 0, 20], [1, 2, 2], 10, 20)
    array([False,  True, False])
    """
    _check_length(step, "step")
    _check_length(bound, "bound")
    moved, numbers = _check_integers(d_diff, "d_diff"), _check_integers(rings, "rings")
    if moved.shape != numbers.shape or (numbers > MAX_DISTANCE // step).any():
        raise DataError("d_diff, rings: they do not belong together. Pass one ring, of the same step, for each d_diff.")
    return np.asarray(moved <= step * numbers - bound)  # (G)


def _outer_distance(d_tp: float | None, width: float) -> float | None:
    if not 0 <= width < np.inf:
        raise ParameterError(f"width: {width!r} must be 0 or more. Pass how wide the region of the outliers is.")
    return None if d_tp is None else d_tp + width


def _check_numbers(values: ArrayLike, name: str) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise DataError(f"{name}: must be a list of finite numbers. Pass one number for each reading.")
    return numbers


def _check_integers(values: ArrayLike, name: str) -> Ints:
    numbers: NDArray[Any] = np.asarray(values)
    if numbers.size == 0:
        return np.empty(numbers.shape, dtype=np.int64)
    if not np.issubdtype(numbers.dtype, np.integer) or numbers.max() > MAX_DISTANCE or numbers.min() < -MAX_DISTANCE:
        raise DataError(f"{name}: must be whole numbers below 2**60. Measure them in steps of the stream's grid.")
    return cast(Ints, numbers.astype(np.int64))


def _check_length(value: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= MAX_DISTANCE:
        raise ParameterError(f"{name}: {value!r} must be a whole number above 0. Pass it in steps of the grid.")


def _check_positions(values: ArrayLike, count: int, name: str) -> Ints:
    """Return positions of readings, sorted."""
    positions: NDArray[Any] = np.asarray(values)
    if positions.size == 0:
        return np.empty(0, dtype=np.int64)
    if positions.ndim != 1 or not np.issubdtype(positions.dtype, np.integer):
        raise DataError(f"{name}: must be a list of positions. Pass whole numbers, as numpy.flatnonzero gives them.")
    if positions.min() >= 0 and positions.max() < count:
        ordered = np.flatnonzero(_mark(count, positions))
        if len(ordered) == len(positions):
            return ordered
    raise DataError(f"{name}: positions must be different and from 0 to {count - 1}. Pass each reading once.")


def _mark(count: int, *positions: NDArray[Any]) -> Flags:
    marks = np.zeros(count, dtype=np.bool_)
    for marked in positions:
        marks[marked] = True
    return marks
