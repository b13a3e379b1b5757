"""The correction of [Boe17], step by step as the two servers see it, and in one call.

The analyst knows perturbed distances and which readings it presumes to be outliers; the correction server knows
d_diff, by how far noise moved each distance. Neither step needs what the other side knows:

`threshold`     correction server   which presumed outliers to keep, and d_TP
`candidates`    analyst             which others are far enough out for layers 2 and 3
`layers`        correction server   which of these were outliers before the noise

What this tells the servers is in proof.md, label (L). Readings are named by their place; sets come sorted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Gap = Literal["upper", "literal"]

GAPS: Final = ("upper", "literal")


@dataclass(frozen=True, slots=True, eq=False)
class Correction:
    """The sets of the paper, as sorted places. `d_tp` is None where nothing was presumed."""

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
    """All steps at once, for one who knows both sides.

    >>> found = correct([5, 13, 60, 10, 52], [5, 12, 58, 9, 12], [2, 4], 2.0)
    >>> found.tp, found.fp, found.d_tp, found.output
    (array([4]), array([2]), 12.0, array([1, 4]))
    """
    distances, moved = _numbers(distance_perturbed, "distance_perturbed"), _numbers(d_diff, "d_diff")
    if len(distances) != len(moved):
        raise DataError("distance_perturbed, d_diff: not as many of one as of the other; pass both for every reading.")
    places = _places(presumed, len(moved), "presumed")
    cut, d_tp = threshold(moved[places], gap=gap)
    keep = moved[places] <= (np.inf if cut is None else cut)
    i2, i3 = candidates(distances, places, d_tp, width)
    fn1, fn2, fn3 = layers(moved, places, i2, i3, d_tp, width)
    output = np.flatnonzero(_mark(len(moved), places[keep], fn1, fn2, fn3))
    return Correction(places[keep], places[~keep], d_tp, i2, i3, fn1, fn2, fn3, output)


def threshold(d_diff: ArrayLike, *, gap: Gap = "upper") -> tuple[float | None, float | None]:
    """Of the presumed outliers' d_diff: the largest that is kept, and d_TP, the smallest; None for none presumed.

    The cut is the lower end of the widest gap, the last of equal ones. "upper" counts only gaps that start at 0 or
    above, since noise that moved a reading inwards is no sign of a false positive; "literal" counts all, as printed.

    >>> threshold([-40.0, 1.0, 2.0, 3.0]), threshold([-40.0, 1.0, 2.0, 3.0], gap="literal"), threshold([])
    ((2.0, -40.0), (-40.0, -40.0), (None, None))
    """
    if gap not in GAPS:
        raise ParameterError(f"gap: {gap!r} is no rule for the threshold; pass 'upper' or 'literal'.")
    ordered = np.sort(_numbers(d_diff, "d_diff"))
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
    """I2 and I3: who is not presumed, yet at least d_TP, or d_TP + width, away from the centre."""
    distances = _numbers(distance_perturbed, "distance_perturbed")
    others = ~_mark(len(distances), _places(presumed, len(distances), "presumed"))
    further = _further(d_tp, width)
    if d_tp is None or further is None:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.flatnonzero(others & (distances >= d_tp)), np.flatnonzero(others & (distances >= further))


def layers(
    d_diff: ArrayLike, presumed: ArrayLike, i2: ArrayLike, i3: ArrayLike, d_tp: float | None, width: float
) -> tuple[Ints, Ints, Ints]:
    """FN_L1, FN_L2 and FN_L3: the outliers that were not presumed, by how far noise moved them."""
    moved = _numbers(d_diff, "d_diff")
    presumed = _places(presumed, len(moved), "presumed")
    inwards = np.flatnonzero(~_mark(len(moved), presumed) & (moved < 0))
    second, third = _places(i2, len(moved), "i2"), _places(i3, len(moved), "i3")
    further = _further(d_tp, width)
    if d_tp is None or further is None:
        return inwards, second[:0], third[:0]
    little, more = moved[second], moved[third]
    return inwards, second[(little >= 0) & (little <= d_tp)], third[(more >= d_tp) & (more <= further)]


def _further(d_tp: float | None, width: float) -> float | None:
    if not 0 <= width < np.inf:
        raise ParameterError(f"width: {width!r} is not a width of 0 or more; pass how wide the outliers' region is.")
    return None if d_tp is None else d_tp + width


def _numbers(values: ArrayLike, name: str) -> Floats:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise DataError(f"{name}: not a list of finite numbers; pass one number for each reading.")
    return found


def _places(values: ArrayLike, count: int, name: str) -> Ints:
    """Places of readings, sorted."""
    found: NDArray[Any] = np.asarray(values)
    if found.size == 0:
        return np.empty(0, dtype=np.int64)
    if found.ndim != 1 or not np.issubdtype(found.dtype, np.integer):
        raise DataError(f"{name}: not a list of places; pass whole numbers, as numpy.flatnonzero gives them.")
    if found.min() >= 0 and found.max() < count:
        ordered = np.flatnonzero(_mark(count, found))
        if len(ordered) == len(found):
            return ordered
    raise DataError(f"{name}: a place is named twice or outside 0 to {count - 1}; pass each reading once.")


def _mark(count: int, *places: NDArray[Any]) -> NDArray[np.bool_]:
    marks = np.zeros(count, dtype=np.bool_)
    for named in places:
        marks[named] = True
    return marks
