"""The profile without privacy, and what is done to a noisy one: post-processing of what is released."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.neighbours.pairs import matrix
from wallflower.neighbours.radii import count_curve


def exact_profile(points: ArrayLike, radii: Sequence[float], neighbours: int, *, normalise: bool = True) -> list[int]:
    """How many outliers there are at each radius.

    >>> exact_profile([[0.0], [1.0], [2.0], [9.0]], (0.5, 1.0, 8.0), 1)
    [4, 1, 0]
    """
    return count_curve(matrix(points), radii, neighbours, normalise=normalise)


def smooth(noisy: ArrayLike, n: int) -> list[int]:
    """Noisy numbers of outliers as a curve that never rises, from 0 to n, in whole records.

    The nearest such curve in squares: neighbours that rise are pooled. It is nowhere further from any falling curve
    than the noisy numbers are somewhere.

    >>> smooth([9.2, 3.0, 5.0, -4.0], 8)
    [8, 4, 4, 0]
    """
    pools: list[tuple[float, int]] = []
    for value in np.asarray(noisy, dtype=np.float64).tolist():
        mean, size = value, 1
        while pools and pools[-1][0] < mean:
            before, many = pools.pop()
            mean, size = (before * many + mean * size) / (many + size), many + size
        pools.append((mean, size))
    return [min(max(math.floor(mean + 0.5), 0), n) for mean, size in pools for _ in range(size)]


def bend_of(places: Sequence[float], heights: Sequence[float]) -> int | None:
    """Where a falling curve bends: the place that lies furthest below the straight line between its ends.

    >>> bend_of((0.25, 0.5, 1.0, 2.0), (90, 20, 10, 0)), bend_of((1.0, 2.0), (9, 0))
    (1, None)
    """
    x, y = np.log(np.asarray(places, dtype=np.float64)), np.asarray(heights, dtype=np.float64)
    if len(x) < 3 or y[0] <= y[-1]:
        return None
    line: NDArray[np.float64] = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    below = line - y
    return int(np.argmax(below)) if below.max() > 0 else None
