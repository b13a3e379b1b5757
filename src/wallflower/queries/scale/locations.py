"""Where the middle of a column is: a median, on a grid whose step is a part of the spread that was released before.

A grid reaches over the public bounds of its column, or over 4,096 spreads to either side of 0; its last cells hold all
that is further away. Which cell a number falls into depends on nothing but the number and what is public by then.

Proved in proof.md, label (M).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.engines.engine import Given
from wallflower.neighbours.spreads import Floats, Ints, quantile_errors

CELLS: Final = 2**15
PARTS: Final = 4  # cells in a spread
MAX_ERROR_SCALES: Final = (
    30.0  # candidates whose error is this many times 2/ε have a chance below e^-30 each, beside the best
)
HALF: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class Cells:
    """The candidates for the middle of one column."""

    start: float
    step: float
    size: int

    @classmethod
    def of(cls, spread: float, low: float | None, high: float | None) -> Self:
        """As public facts have it: the bounds of a column, and a spread that was released.

        >>> Cells.of(2.0, 0.0, 100.0), Cells.of(1.0, None, None)
        (Cells(start=0.0, step=0.5, size=200), Cells(start=-4096.0, step=0.25, size=32768))
        """
        if low is None or high is None:
            step = spread / PARTS
            return cls(-step * CELLS / 2, step, CELLS)
        step = max(spread / PARTS, (high - low) / CELLS)
        return cls(low, step, min(CELLS, max(1, math.ceil((high - low) / step))))

    def places(self, values: Floats) -> NDArray[np.int64]:
        """The cell of each number."""
        with np.errstate(over="ignore"):
            found = np.floor((values - self.start) / self.step)
        return np.clip(found, 0, self.size - 1).astype(np.int64)

    def count(self, values: Floats) -> Ints:
        """How many of these numbers are in each cell."""
        return np.bincount(self.places(values), minlength=self.size)

    def errors(self, found: Ints) -> Ints:
        """Return by how many records each cell misses the median, of the number in each.  (M)

        >>> Cells(0.0, 1.0, 4).errors(np.array([1, 2, 0, 1])).tolist()
        [1, 0, 1, 1]
        """
        return quantile_errors(np.concatenate([[0], found]), HALF, 1)

    def middle(self, place: int) -> float:
        """The number that a cell stands for."""
        return self.start + (place + 0.5) * self.step

    def is_end(self, place: int) -> bool:
        """Whether a cell holds all that is further away, of a grid that no bounds end."""
        return self.start == -self.step * CELLS / 2 and place in (0, self.size - 1)


@dataclass(frozen=True, slots=True)
class CellCounts:
    """A task of an engine: how many of some points are in each cell of each column."""

    cells: tuple[Cells, ...]

    def __call__(self, values: Floats, _: Given) -> Given:
        return {str(at): cell.count(values[:, at]) for at, cell in enumerate(self.cells)}


def error_limit(columns: int, epsilon: Fraction) -> int:
    """Errors beyond this count as this: cells that have it are chosen less than once in e^30 times, all together."""
    return math.ceil(2 * (MAX_ERROR_SCALES + columns * math.log(CELLS)) / float(epsilon))
