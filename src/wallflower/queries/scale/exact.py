"""How wide columns are, without noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from wallflower.neighbours.spreads import DIVISORS, Floats, Ints, errors_of, histogram, value_of


def spreads_of(values: Floats, pairs: tuple[Ints, Ints], share: Fraction, groups: list[list[int]]) -> list[float]:
    """The spread of each group of columns, exactly: the first bin that misses the quantile least."""
    first, second = pairs
    found = []
    for members in groups:
        errors = errors_of(histogram(values[:, members], first, second), share, len(members))
        found.append(value_of(int(np.argmin(errors)) + 1) / DIVISORS[share])
    return found
