"""The staircase: one private bit, or one private whole number, for each observation.

A score on a grid is turned into its step k = (score - threshold) // reach + 1, in whole numbers, rounding down. One
changed entry moves the score by at most `reach`, so the step by at most one. The flag goes up with probability
p_k = e^(εk) / (1 + e^ε) for k <= 0 and 1 - p_(1-k) for k >= 1.

The probabilities in use are whole numbers out of 2^64, rounded so that ε bounds them and not only their ideal: with
B <= e^ε a fraction, T_(k+1) <= B T_k and 2^64 - T_k <= B (2^64 - T_(k+1)) hold exactly, and every `Table` proves it
to itself before it exists. Beyond its ends the table stays constant, which costs nothing.

The noisy step k + G, where P(G = j) is proportional to e^(-ε|j|), costs the same ε and tells more: k + G >= 1 has just
the probability p_k. Release the flag or the score. Whoever wants both takes the flag from the score (score >= 1, which
is post-processing and free); a flag from the table beside a score is a second draw and pays a second ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.noise import Noise

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

WHOLE: Final = 2**64
SMALLEST: Final = Fraction(1, 4096)  # 300,000 entries, a few megabytes; the number of entries grows like 1/ε
_BITS: Final = 160
_ENOUGH: Final = 64  # e^64 > 2^64: a larger epsilon has the same table


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """P(flag | step k) = thresholds[k + offset] / 2^64 for k = -offset … offset + 1, and constant beyond.

    >>> table = Table.of(Fraction(1))
    >>> table.offset, [float(round(table.probability(k), 6)) for k in (-99, -1, 0, 1, 2)]
    (44, [0.0, 0.098938, 0.268941, 0.731059, 0.901062])
    """

    epsilon: Fraction
    thresholds: Words

    @staticmethod
    def of(epsilon: Fraction) -> Table:
        """The table of a privacy loss, the same object for the same loss."""
        check_epsilon(epsilon)
        return _table(epsilon)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        entries = self.thresholds
        if entries.dtype != np.uint64 or entries.ndim != 1 or len(entries) < 2 or len(entries) % 2:
            raise ParameterError("thresholds: not an even number of 64-bit words in a row; build them with Table.of.")
        if entries.flags.writeable:
            raise ParameterError("thresholds: they can be written to and would not stay proved; build with Table.of.")
        _prove(entries.tolist(), lower_exponential(self.epsilon))

    @property
    def offset(self) -> int:
        """Where step 0 stands in `thresholds`."""
        return len(self.thresholds) // 2 - 1

    def probability(self, k: int) -> Fraction:
        """The exact probability that step k is flagged."""
        return Fraction(int(self.thresholds[self._place(k)]), WHOLE)

    def flag(self, k: int, word: int) -> bool:
        """Whether step k is flagged, given a whole number drawn evenly from 0 … 2^64 - 1."""
        if not 0 <= word < WHOLE:
            raise ParameterError("word: not a whole number from 0 to 2^64 - 1; draw it with noise.below(2**64).")
        return word < int(self.thresholds[self._place(k)])

    def flags(self, ks: Ints, words: Words) -> NDArray[np.bool_]:
        """`flag` for each step and its own word.

        >>> Table.of(Fraction(1)).flags(np.array([-5, 5]), np.array([2**63, 2**63], dtype=np.uint64))
        array([False,  True])
        """
        ks, words = np.asarray(ks), np.asanyarray(words)
        if ks.dtype != np.int64 or words.dtype != np.uint64 or ks.shape != words.shape:
            raise ParameterError("flags: takes int64 steps and as many uint64 words; convert both, exactly, before.")
        return np.asarray(words < self.thresholds[np.clip(ks, -self.offset, self.offset + 1) + self.offset])

    def _place(self, k: int) -> int:
        return min(max(k, -self.offset), self.offset + 1) + self.offset


def score(k: int, noise: Noise, *, epsilon: Fraction) -> int:
    """The noisy step: a flag where it is 1 or more, and higher the surer. It has no smallest epsilon.

    >>> class Still:
    ...     def laplace(self, scale):
    ...         return -1 if scale == Fraction(1, 2) else 0
    >>> score(3, Still(), epsilon=Fraction(2))
    2
    """
    if not (isinstance(epsilon, Fraction) and epsilon > 0):
        raise ParameterError(f"epsilon: {epsilon!r} is not a positive fraction; pass Fraction(1, 2), never a float.")
    return k + noise.laplace(1 / epsilon)


def lower_exponential(epsilon: Fraction) -> Fraction:
    """A fraction just below e^epsilon, or just below e^64 if that is less: every term of the series is rounded down.

    >>> float(lower_exponential(Fraction(1)))
    2.718281828459045
    """
    top, bottom = min(epsilon, Fraction(_ENOUGH)).as_integer_ratio()
    total, term, n = 0, 1 << _BITS, 0
    while term:
        total, n = total + term, n + 1
        term = term * top // (bottom * n)
    return Fraction(total, 1 << _BITS)


@lru_cache(maxsize=32)
def _table(epsilon: Fraction) -> Table:
    bound = lower_exponential(epsilon)
    lower = [-(-WHOLE // (1 + bound))]
    while (following := -(-lower[-1] * bound.denominator // bound.numerator)) < lower[-1]:
        lower.append(following)
    thresholds = np.array([*lower[::-1], *(WHOLE - entry for entry in lower)], dtype=np.uint64)
    thresholds.flags.writeable = False
    return Table(epsilon, thresholds)


def _prove(entries: list[int], bound: Fraction) -> None:
    """Refuse a table unless every pair of neighbouring steps is within `bound`, for a flag and for none, both ways."""
    top, bottom = bound.as_integer_ratio()
    within = all(0 < entry < WHOLE for entry in entries) and all(
        low <= high and high * bottom <= low * top and (WHOLE - low) * bottom <= (WHOLE - high) * top
        for low, high in pairwise(entries)
    )
    if not within:
        raise ParameterError(
            "thresholds: two neighbouring steps differ by more than epsilon; build them with Table.of."
        )


def check_epsilon(epsilon: Fraction) -> None:
    """Refuse a loss that has no table, without building one."""
    if not isinstance(epsilon, Fraction):
        raise ParameterError(f"epsilon: {epsilon!r} is not an exact fraction; pass Fraction(1, 2), never a float.")
    if epsilon < SMALLEST:
        raise ParameterError(
            f"epsilon: {epsilon} is below {SMALLEST} and its table too long; "
            "release `scores` instead, whose flag is score >= 1, or spend more."
        )
