"""One-sided noise as a table: how likely a query passes a threshold that is so many steps above it.

With exponential noise that is e^(-g/b) for a gap of g steps, and 1 from the threshold on. As in `staircase`, the
probabilities in use are whole numbers out of 2^64, and every table proves to itself before it exists that they never
fall faster than they may: T_g <= B T_(g+1) with B <= e^(1/b) a fraction (proof.md, label (V)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.noise import Noise
from wallflower.queries.watch.staircase import WHOLE, Ints, Words, lower_exponential

LONGEST: Final = 2_000_000  # entries; at 44 scales, scales up to about 45,000 steps
SHARPEST: Final = Fraction(1, 64)  # scale; e^(-1/b) is then below 2^-64 already
_FAR: Final = 45  # scales beyond which e^(-g/b) is below 2^-64


@dataclass(frozen=True, slots=True, eq=False)
class PassTable:
    """P(pass | gap g) = thresholds[g - 1] / 2^64 for g = 1, 2, …, constant beyond the last; 1 when there is no gap.

    >>> table = PassTable.of(Fraction(4))
    >>> [round(float(table.probability(g)), 4) for g in (0, 1, 4, 8)]
    [1.0, 0.7788, 0.3679, 0.1353]
    """

    scale: Fraction
    thresholds: Words

    @staticmethod
    def of(scale: Fraction) -> PassTable:
        """The table of a noise scale in steps, the same object for the same scale."""
        if scale < SHARPEST or _FAR * scale > LONGEST:
            raise ParameterError(
                f"scale: {float(scale):g} steps of noise is outside 1/64 to {LONGEST // _FAR:,}. Use a coarser grid."
            )
        return _table(scale)

    def __post_init__(self) -> None:
        if self.thresholds.flags.writeable or self.thresholds.dtype != np.uint64:
            raise ParameterError("thresholds: not a proved table of 64-bit words; build it with PassTable.of.")
        _prove(self.thresholds.tolist(), lower_exponential(1 / self.scale))

    def probability(self, gap: int) -> Fraction:
        """The exact probability that a query passes that is `gap` steps short of the threshold."""
        if gap <= 0:
            return Fraction(1)
        return Fraction(int(self.thresholds[min(gap, len(self.thresholds)) - 1]), WHOLE)

    def passes(self, gaps: Ints, words: Words) -> NDArray[np.bool_]:
        """Whether each passes, given a word for each, drawn evenly from 0 … 2^64 - 1."""
        places = np.clip(gaps, 1, len(self.thresholds)) - 1
        return np.asarray((gaps <= 0) | (words < self.thresholds[places]))


def geometric(scale: Fraction, noise: Noise) -> int:
    """One-sided noise, P(z) proportional to exp(-z/scale) for z = 0, 1, …

    It is a two-sided draw that came out at 0 or above, which at least every other does, whatever the scale; how often
    it is drawn again depends on nothing but chance.
    """
    while (drawn := noise.laplace(scale)) < 0:
        pass
    return drawn


@lru_cache(maxsize=32)
def _table(scale: Fraction) -> PassTable:
    pace = lower_exponential(1 / scale)
    entries, last = [], WHOLE
    for _ in range(math.ceil(_FAR * scale) + 1):
        last = -(-last * pace.denominator // pace.numerator)  # rounded up, so that it never falls too fast
        entries.append(last)
        if last == 1:
            break
    table = np.array(entries, dtype=np.uint64)
    table.flags.writeable = False
    return PassTable(scale, table)


def _prove(entries: list[int], pace: Fraction) -> None:
    """Refuse a table that is not what (V) needs, in whole numbers."""
    for above, below in pairwise([WHOLE, *entries]):
        if not 0 < below <= above or above * pace.denominator > pace.numerator * below:
            raise ParameterError(
                "thresholds: the table falls faster than its scale allows; build it with PassTable.of."
            )
