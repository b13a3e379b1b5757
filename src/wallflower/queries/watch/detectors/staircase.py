"""The staircase: one private bit, or one private whole number, for each observation.

A distance becomes its stair k = (distance - threshold) // sensitivity + 1, in whole numbers, rounded down. One changed
entry moves the distance by at most its sensitivity, so the stair by at most one. The flag goes up with probability
p_k = e^(εk) / (1 + e^ε) for k <= 0 and 1 - p_(1-k) for k >= 1.

The probabilities in use are whole numbers out of 2^64, rounded so that ε bounds them and not only their ideal: with
B <= e^ε a fraction, T_(k+1) <= B T_k and 2^64 - T_k <= B (2^64 - T_(k+1)) hold exactly, and every `Table` proves it
to itself before it exists. Beyond its ends the table stays constant, which costs nothing.

The noisy stair k + G, where P(G = j) is proportional to e^(-ε|j|), costs the same ε and tells more: k + G >= 1 has just
the probability p_k. Release the flag or the score. To release both, take the flag from the score (score >= 1, which
is post-processing and free); a flag from the table beside a score is a second draw and costs a second ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.noise import Noise, draws, round_up, words
from wallflower.queries.watch.detectors.additive import PaperDetector
from wallflower.queries.watch.detectors.base import Chances, Detector, Floats, Ints, Law, Output, Secret
from wallflower.queries.watch.forecast.rates import laplace_noise

Words = NDArray[np.uint64]

WHOLE: Final = 2**64
SMALLEST_EPSILON: Final = Fraction(1, 4096)  # 300,000 entries, a few megabytes; the number of entries grows like 1/ε
_SERIES_BITS: Final = 160
_LARGEST_EPSILON: Final = 64  # e^64 > 2^64: a larger epsilon has the same table


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """P(flag | stair k) = thresholds[k + offset] / 2^64 for k = -offset … offset + 1, and constant beyond.

    >>> table = Table.of(Fraction(1))
    >>> table.offset, [float(round(table.probability(k), 6)) for k in (-99, -1, 0, 1, 2)]
    (44, [0.0, 0.098938, 0.268941, 0.731059, 0.901062])
    """

    epsilon: Fraction
    thresholds: Words

    @staticmethod
    def of(epsilon: Fraction) -> Table:
        """Return the table of a privacy loss, the same object for the same loss."""
        check_epsilon(epsilon)
        return _table(epsilon)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        entries = self.thresholds
        if entries.dtype != np.uint64 or entries.ndim != 1 or len(entries) < 2 or len(entries) % 2:
            raise ParameterError("thresholds: not an even number of 64-bit words in a row; build them with Table.of.")
        if entries.flags.writeable:
            raise ParameterError(
                "thresholds: it can be written to, so it would not stay proved; build it with Table.of."
            )
        _prove(entries.tolist(), lower_exponential(self.epsilon))

    @property
    def offset(self) -> int:
        """The index of stair 0 in `thresholds`."""
        return len(self.thresholds) // 2 - 1

    def probability(self, k: int) -> Fraction:
        """Return the exact probability that stair k is flagged."""
        return Fraction(int(self.thresholds[self._index(k)]), WHOLE)

    def flag(self, k: int, word: int) -> bool:
        """Return whether stair k is flagged by a whole number drawn uniformly from 0 … 2^64 - 1."""
        if not 0 <= word < WHOLE:
            raise ParameterError("word: not a whole number from 0 to 2^64 - 1; draw it with noise.below(2**64).")
        return word < int(self.thresholds[self._index(k)])

    def flags(self, ks: Ints, words: Words) -> NDArray[np.bool_]:
        """Return `flag` for each stair and its own word.

        >>> Table.of(Fraction(1)).flags(np.array([-5, 5]), np.array([2**63, 2**63], dtype=np.uint64))
        array([False,  True])
        """
        ks, words = np.asarray(ks), np.asanyarray(words)
        if ks.dtype != np.int64 or words.dtype != np.uint64 or ks.shape != words.shape:
            raise ParameterError("flags: takes int64 stairs and as many uint64 words; convert both, exactly, before.")
        return np.asarray(words < self.thresholds[np.clip(ks, -self.offset, self.offset + 1) + self.offset])

    def _index(self, k: int) -> int:
        return min(max(k, -self.offset), self.offset + 1) + self.offset


def lower_exponential(epsilon: Fraction) -> Fraction:
    """Return a fraction just below e^epsilon, or just below e^64 if that is less.

    Every term of the series is rounded down.

    >>> float(lower_exponential(Fraction(1)))
    2.718281828459045
    """
    top, bottom = min(epsilon, Fraction(_LARGEST_EPSILON)).as_integer_ratio()
    total, term, n = 0, 1 << _SERIES_BITS, 0
    while term:
        total, n = total + term, n + 1
        term = term * top // (bottom * n)
    return Fraction(total, 1 << _SERIES_BITS)


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
    """Refuse a table unless adjacent stairs are within `bound`, for a flag and for none, both ways."""
    top, bottom = bound.as_integer_ratio()
    within = all(0 < entry < WHOLE for entry in entries) and all(
        low <= high and high * bottom <= low * top and (WHOLE - low) * bottom <= (WHOLE - high) * top
        for low, high in pairwise(entries)
    )
    if not within:
        raise ParameterError("thresholds: two adjacent stairs differ by more than epsilon; build them with Table.of.")


def check_epsilon(epsilon: Fraction) -> None:
    """Refuse a loss that has no table, without building it."""
    if not isinstance(epsilon, Fraction):
        raise ParameterError(f"epsilon: {epsilon!r} is not an exact fraction; pass Fraction(1, 2), never a float.")
    if epsilon < SMALLEST_EPSILON:
        raise ParameterError(
            f"epsilon: {epsilon} is below {SMALLEST_EPSILON} and its table too long; "
            "release `scores` instead, whose flag is score >= 1, or spend more."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase(Detector):
    """One coin for each observation, its odds by how many sensitivities the distance is beyond the threshold.  (S)

    Released    one bit, or with `scores` one whole number, per observation    Unit  one entry of one observation

    >>> detector = Staircase(threshold=0, sensitivity=1, epsilon=Fraction(1))
    >>> detector.law()(np.array([-2, -1, 0])).round(6)
    array([0.963603, 0.901062, 0.731059])
    """

    name: ClassVar[str] = "staircase"
    note: ClassVar[str] = "the best single threshold there is for one entry"

    epsilon: Fraction
    scores: bool = False

    def __post_init__(self) -> None:
        if not self.scores:
            check_epsilon(self.epsilon)  # refuses here, before anything is spent
        else:
            round_up(1 / self.epsilon)

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, max_spent: int | None = None
    ) -> Output:
        stairs = self._stairs(distances)
        if self.scores:
            noisy = stairs + draws(noise, "laplace", 1 / self.epsilon, len(stairs))
            return Output(noisy >= 1, 0, noisy)
        return Output(Table.of(self.epsilon).flags(stairs, words(noise, len(stairs))), 0)

    def law(self) -> Law:
        epsilon = float(self.epsilon)
        log_total = float(np.logaddexp(0.0, epsilon))

        def chance(distances: Ints) -> Floats:
            stairs = self._stairs(distances)
            rare = np.exp(epsilon * np.minimum(stairs, 1 - stairs) - log_total)
            return np.asarray(np.where(stairs <= 0, rare, 1 - rare))

        return chance

    def alternatives(self, step: float) -> tuple[Chances, ...]:
        plain = laplace_noise(self.sensitivity * step / float(self.epsilon)).law_at(self.threshold, step)
        paper = PaperDetector(threshold=self.threshold, sensitivity=self.sensitivity, epsilon=self.epsilon)
        return Chances("laplace", "plain noise on the distance", plain), paper.chances()

    def _stairs(self, distances: Ints) -> Ints:
        return np.asarray((np.abs(distances) - self.threshold) // self.sensitivity + 1)
