"""Correction by coarse distances: one comparison decides, and never flags a reading inside the core.

The analyst tells in which ring of width `step` a perturbed distance lies; the correction server, who knows d_diff,
flags where d_diff <= step·ring - bound. With r the distance before the noise (proof.md, label (G)):

    r < bound           is never flagged
    r >= bound + step   is always flagged

Distances are whole numbers of the stream's grid, so that these lines hold for the numbers in use and not nearly.
"""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError

Ints = NDArray[np.int64]

LARGEST: Final = 2**60  # sums and differences of what is smaller stay within 64 bits


def bins(distance_perturbed: ArrayLike, step: int) -> Ints:
    """The ring of each reading, counted from the centre: what the analyst sends.

    >>> bins([0, 9, 10, 25], 10)
    array([0, 0, 1, 2])
    """
    _size(step, "step")
    return whole(distance_perturbed, "distance_perturbed") // step


def flags(d_diff: ArrayLike, bins: ArrayLike, step: int, bound: int) -> NDArray[np.bool_]:
    """Which readings are outliers: what the correction server finds.

    >>> flags([0, 0, 20], [1, 2, 2], 10, 20)
    array([False,  True, False])
    """
    _size(step, "step")
    _size(bound, "bound")
    moved, rings = whole(d_diff, "d_diff"), whole(bins, "bins")
    if moved.shape != rings.shape or (rings > LARGEST // step).any():
        raise DataError("d_diff, bins: they do not belong together; pass one ring, of the same step, for each d_diff.")
    return np.asarray(moved <= step * rings - bound)  # (G)


def whole(values: ArrayLike, name: str) -> Ints:
    """The values as 64-bit whole numbers, none of them rounded."""
    found: NDArray[Any] = np.asarray(values)
    if found.size == 0:
        return np.empty(found.shape, dtype=np.int64)
    if not np.issubdtype(found.dtype, np.integer) or found.max() > LARGEST or found.min() < -LARGEST:
        raise DataError(f"{name}: not whole numbers below 2**60; measure them in steps of the stream's grid.")
    return cast(Ints, found.astype(np.int64))


def _size(value: int, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= LARGEST:
        raise ParameterError(f"{name}: {value!r} is not a whole number above 0; pass it in steps of the grid.")
