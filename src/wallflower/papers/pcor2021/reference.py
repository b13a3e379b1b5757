"""The paper's reference file (6.2), where a register is small: every context, with the outliers of each.

Only used to find records to ask about: each of them is examined exactly before anything is said of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.papers.data.registers import Register
from wallflower.queries.explain.detectors import Detector, Grubbs, Histogram
from wallflower.queries.explain.detectors.grubbs import kappas
from wallflower.queries.explain.space.tables import Bools
from wallflower.synthetic import Floats, Ints

MAX_REFERENCE_CONTEXTS: Final = 1 << 14  # contexts of a whole register; with more of them there is no such file


def find_outliers(register: Register, detector: Detector) -> Bools:
    """Which records are outliers in some context."""
    flag, found = FLAGS[type(detector)], np.zeros(register.n, np.bool_)
    cells = np.ravel_multi_index(tuple(register.codes.T), register.sizes)
    for chosen in contexts(register.sizes):
        inside = np.flatnonzero(chosen[cells])
        found[inside] |= flag(register.metric[inside], detector)
    return found


def has_file(register: Register, detector: Detector) -> bool:
    return type(detector) in FLAGS and math.prod((1 << size) - 1 for size in register.sizes) <= MAX_REFERENCE_CONTEXTS


def contexts(sizes: tuple[int, ...]) -> Iterator[Bools]:
    """Which cells each context lets in: one value or more of every attribute.

    >>> [context.tolist() for context in contexts((2, 1))]
    [[True, False], [False, True], [True, True]]
    """
    choices = [
        np.array([[number >> bit & 1 for bit in range(size)] for number in range(1, 1 << size)]) for size in sizes
    ]
    for chosen in product(*choices):
        context: NDArray[np.int64] = np.ones(1, np.int64)
        for here in chosen:
            context = np.outer(context, here).ravel()
        yield context.astype(np.bool_)


def _far(values: Floats, detector: Grubbs) -> Bools:
    """In the form that `Grubbs.outlier` decides by: with z = x_V - x, (Σz)² > κ Σz²."""
    n = len(values)
    if n < 3:
        return np.zeros(n, np.bool_)
    off = values - values.mean()
    totals, squares = n * off, (off * off).sum() + n * off * off
    return np.asarray(totals * totals > kappas(detector.alpha, n)[-1] * squares)


def _sparse(values: Floats, detector: Histogram) -> Bools:
    n, bins = len(values), int(np.sqrt(len(values)))
    if n < 2 or values.max() == values.min():
        return np.zeros(n, np.bool_)
    places: Ints = ((values - values.min()) * (bins / (values.max() - values.min()))).astype(np.int64)
    places = np.minimum(places, bins - 1)
    return np.asarray(np.bincount(places, minlength=bins)[places] < detector.fraction * n)


FLAGS: Final[dict[type, Callable[..., Bools]]] = {Grubbs: _far, Histogram: _sparse}
