"""Neighbouring phases are alike: what differs between them by no more than noise is smoothed away.

This is post-processing of noisy numbers, and costs nothing. Details are taken off scale by scale, from one phase to the
next up to a quarter of the cycle; of each scale as much is kept as its energy exceeds what noise would give it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def smooth(values: Floats, variances: Floats) -> Floats:
    """Values around a cycle whose errors have these variances; an infinite one says that nothing is known there.

    >>> smooth(np.array([1.0, 1.0, 9.0, 1.0]), np.zeros(4))
    array([1., 1., 9., 1.])
    """
    is_known = np.isfinite(variances)
    if not is_known.any():
        return values
    rest = np.interp(np.arange(len(values)), *_around(values, is_known))
    error = float(np.mean(variances[is_known]))
    kernel = np.zeros(len(values))
    kernel[0] = 1.0
    kept, reach = np.zeros(len(values)), 1
    while 4 * reach <= len(values):
        lower, wider = _mean_of_three(rest, reach), _mean_of_three(kernel, reach)
        detail, chance = rest - lower, error * float(np.sum((kernel - wider) ** 2))
        energy = float(np.mean(detail**2))
        kept += detail * max(0.0, 1 - chance / energy) if energy > 0 else 0.0
        rest, kernel, reach = lower, wider, 2 * reach
    return kept + rest


def _around(values: Floats, is_known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Places and values of what is known, once before and once after the cycle as well."""
    places, size = np.flatnonzero(is_known).astype(np.float64), len(values)
    known = values[is_known]
    return np.concatenate([places - size, places, places + size]), np.tile(known, 3)


def _mean_of_three(values: Floats, reach: int) -> Floats:
    return (np.roll(values, reach) + values + np.roll(values, -reach)) / 3
