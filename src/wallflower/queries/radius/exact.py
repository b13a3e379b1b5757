"""The radius at which a share of the records are outliers, without privacy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from wallflower.neighbours.pairs import matrix
from wallflower.neighbours.radii import count_curve, radius_errors


def exact_radius(
    points: ArrayLike, share: Fraction, radii: Sequence[float], neighbours: int, *, normalise: bool = True
) -> float:
    """The first radius of the grid whose error is the least.

    >>> exact_radius([[0.0], [1.0], [2.0], [9.0]], Fraction(1, 4), (0.5, 1.0, 2.0, 8.0), 1)
    0.5
    """
    values = matrix(points)
    curve = np.array(count_curve(values, radii, neighbours, normalise=normalise), dtype=np.int64)
    scaled = curve * share.denominator
    return radii[int(np.argmin(radius_errors(scaled, share.numerator * len(values))))]
