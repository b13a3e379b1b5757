"""The sparse vector technique with one-sided noise: a noisy threshold, drawn once, and a cutoff on flags.

`PassTable` is exponential noise as a table: a query that is `gap` steps short of the threshold passes with probability
e^(-gap/b), and with probability 1 from the threshold on. As in `staircase`, the probabilities in use are whole numbers
out of 2^64, and every table proves to itself before it exists that they never fall faster than they may:
T_g <= B T_(g+1) with B <= e^(1/b) a fraction (proof.md, label (V)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.noise import Noise, words
from wallflower.queries.watch.detectors.base import (
    COARSE_STEPS,
    Chances,
    Detector,
    Floats,
    Ints,
    Law,
    Output,
    Secret,
    count_gaps,
)
from wallflower.queries.watch.detectors.staircase import WHOLE, Words, lower_exponential
from wallflower.queries.watch.forecast.rates import sum_of_laplaces

MAX_TABLE_ENTRIES: Final = 2_000_000  # at 44 scales, scales up to about 45,000 steps
MIN_SCALE: Final = Fraction(1, 64)  # e^(-1/b) is then below 2^-64 already
_TABLE_SCALES: Final = 45  # scales beyond which e^(-g/b) is below 2^-64
FAR_SCALES: Final = 4  # an adaptive detector first asks whether a distance is this many scales beyond the threshold


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
        """Return the table of a noise scale in steps, the same object for the same scale."""
        if scale < MIN_SCALE or _TABLE_SCALES * scale > MAX_TABLE_ENTRIES:
            raise ParameterError(
                f"scale: {float(scale):g} steps of noise is outside 1/64 to {MAX_TABLE_ENTRIES // _TABLE_SCALES:,}. "
                "Use a coarser grid."
            )
        return _table(scale)

    def __post_init__(self) -> None:
        if self.thresholds.flags.writeable or self.thresholds.dtype != np.uint64:
            raise ParameterError("thresholds: not a proved table of 64-bit words; build it with PassTable.of.")
        _prove(self.thresholds.tolist(), lower_exponential(1 / self.scale))

    def probability(self, gap: int) -> Fraction:
        """Return the exact probability that a query passes that is `gap` steps short of the threshold."""
        if gap <= 0:
            return Fraction(1)
        return Fraction(int(self.thresholds[min(gap, len(self.thresholds)) - 1]), WHOLE)

    def passes(self, gaps: Ints, words: Words) -> NDArray[np.bool_]:
        """Return whether each query passes, by a word for each, drawn uniformly from 0 … 2^64 - 1."""
        indices = np.clip(gaps, 1, len(self.thresholds)) - 1
        return np.asarray((gaps <= 0) | (words < self.thresholds[indices]))


def draw_geometric(scale: Fraction, noise: Noise) -> int:
    """Draw one-sided noise, P(z) proportional to exp(-z/scale) for z = 0, 1, …

    It is a two-sided draw that came out at 0 or above, which at least every other does, whatever the scale; how often
    it is repeated depends on chance alone.
    """
    while (drawn := noise.laplace(scale)) < 0:
        pass
    return drawn


@lru_cache(maxsize=32)
def _table(scale: Fraction) -> PassTable:
    pace = lower_exponential(1 / scale)
    entries, last = [], WHOLE
    for _ in range(math.ceil(_TABLE_SCALES * scale) + 1):
        last = -(-last * pace.denominator // pace.numerator)  # rounded up, so that it never falls too fast
        entries.append(last)
        if last == 1:
            break
    table = np.array(entries, dtype=np.uint64)
    table.flags.writeable = False
    return PassTable(scale, table)


def _prove(entries: list[int], pace: Fraction) -> None:
    """Refuse a table that does not satisfy what (V) needs, in whole numbers."""
    for above, below in pairwise([WHOLE, *entries]):
        if not 0 < below <= above or above * pace.denominator > pace.numerator * below:
            raise ParameterError(
                "thresholds: the table falls faster than its scale allows; build it with PassTable.of."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse(Detector):
    """The sparse vector technique with exponential noise: one noisy threshold, and `cutoff` flags at most.  (V)

    Flags are counted in halves: a flag costs 2, and `limit` is 2 per flag of the cutoff.

    cutoff     the number of flags after which the watch is exhausted
    two_sided  for contributions of one sign: test above and below, each with its own threshold, at half the noise.  (T)
    adaptive   test first whether the distance is far beyond the threshold, which costs half a flag.  (A)

    >>> detector = Sparse(threshold=100, sensitivity=1, epsilon=Fraction(1), cutoff=10)
    >>> detector.limit, detector.is_over(19)
    (20, True)
    """

    name: ClassVar[str] = "svt-exponential"
    note: ClassVar[str] = "one-sided noise; stops after the cutoff"

    epsilon: Fraction
    cutoff: int
    two_sided: bool = False
    adaptive: bool = False

    def __post_init__(self) -> None:
        if self.fineness < 1:
            raise ParameterError(
                f"cutoff: {self.cutoff} flags at ε = {float(self.epsilon):.4g} need more noise than can be tabulated. "
                "Lower the cutoff, or spend more."
            )

    @property
    def limit(self) -> int:
        return 2 * self.cutoff

    def is_over(self, spent: int) -> bool:
        return spent >= self.limit - 1  # one more flag must always be affordable

    @property
    def parts(self) -> tuple[Fraction, Fraction]:
        """The parts of ε of the threshold and of the flags: 1 to (moves)^(2/3), which is the best split."""
        return _parts(self.epsilon, self._moves)

    @property
    def fineness(self) -> int:
        """Coarse steps per sensitivity: as many as the table can hold."""
        return _fineness(self.epsilon, self._moves, self.adaptive)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on a query, in coarse steps; never below what a table can hold."""
        return _scale(self.epsilon, self._moves, self.adaptive)

    @property
    def _moves(self) -> int:
        return self.cutoff * (1 if self.two_sided else 2)

    def secret(self, noise: Noise) -> Secret:
        return tuple(draw_geometric(self.fineness / self.parts[0], noise) for _ in range(2 if self.two_sided else 1))

    def reserve(self, looks: int) -> int:
        return 2 * min(looks, max(1, self.cutoff // 64))

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, max_spent: int | None = None
    ) -> Output:
        sides = (distances, -distances) if self.two_sided else (np.abs(distances),)
        costs = np.zeros(len(distances), dtype=np.int64)
        for side, above in zip(sides, secret, strict=True):
            gaps = self._coarse(self.threshold) + above - self._coarse(side)
            costs = np.where(costs == 0, self._costs(gaps, noise), costs)  # a side is tested only if none passed yet
        total = spent + np.cumsum(costs)
        end = (self.limit if max_spent is None else min(max_spent, self.limit)) - 1  # one more flag must be affordable
        costs = costs[: 0 if spent >= end else int(np.searchsorted(total, end)) + 1]
        return Output(costs > 0, spent + int(costs.sum()))

    def law(self) -> Law:
        return self._law(math.exp(-self.parts[0] / self.fineness), 0)

    def law_in_run(self, quantile: float) -> Law:
        """With two thresholds both stand at the quantile, which is a little far out."""
        shift = math.floor(-math.log1p(-quantile) * self.fineness / self.parts[0])
        return self._law(0.0, shift)

    def alternatives(self, step: float) -> tuple[Chances, ...]:
        unit, ratio = self.sensitivity * step / float(self.epsilon), (2 * self.cutoff) ** (2 / 3)
        noise = sum_of_laplaces(2 * self.cutoff * unit * (1 + 1 / ratio), unit * (1 + ratio))
        note = "the usual sparse vector; stops after the cutoff"
        return (Chances("svt-laplace", note, noise.law_at(self.threshold, step)),)

    def flags_until_end(self) -> tuple[int, ...]:
        return (self.cutoff, 2 * self.cutoff - 1) if self.adaptive else (self.cutoff,)  # (A) half a flag is left

    def _costs(self, gaps: Ints, noise: Noise) -> Ints:
        near = 2 * PassTable.of(self.scale).passes(gaps, words(noise, len(gaps))).astype(np.int64)
        if not self.adaptive:
            return near
        beyond = gaps + math.ceil(FAR_SCALES * self.scale)
        far = PassTable.of(2 * self.scale).passes(beyond, words(noise, len(gaps)))
        return np.where(far, 1, near)

    def _coarse(self, distance: Ints | int) -> Ints:
        return np.asarray(distance * np.int64(self.fineness) // self.sensitivity)

    def _law(self, high: float, shift: int) -> Law:
        """The law where P(threshold noise >= z + 1 | >= z) is `high` (0: there is none), thresholds `shift` higher."""
        decay, beyond = math.exp(-1 / self.scale), math.ceil(FAR_SCALES * self.scale)

        def short(gaps: Ints, rate: float) -> Floats:
            """The mean of rate^g over the noise on the threshold, where the gap g is above 0."""
            waited = high ** np.maximum(1 - gaps, 0).astype(np.float64)
            return np.asarray(waited * (1 - high) / (1 - high * rate) * rate ** np.maximum(gaps, 1).astype(np.float64))

        def passes(distances: Ints) -> Floats:
            gaps = count_gaps(self, distances, self.fineness) + shift
            certain = np.where(gaps > 0, 0.0, 1 - high ** np.maximum(1 - gaps, 0).astype(np.float64))
            near = np.asarray(certain + short(gaps, decay))
            if not self.adaptive:
                return near
            half = math.sqrt(decay)  # the far test passes with e^(-(g + beyond)/2b), else the near one decides
            return np.asarray(near + half**beyond * (short(gaps, half) - short(gaps, half**3)))

        def chance(distances: Ints) -> Floats:
            if not self.two_sided:
                return passes(np.abs(distances))
            above, below = passes(distances), passes(-distances)
            return np.asarray(above + below - above * below)

        return chance


@lru_cache(maxsize=64)
def _parts(epsilon: Fraction, moves: int) -> tuple[Fraction, Fraction]:
    threshold = epsilon / (1 + Fraction(moves ** (2 / 3)))
    return threshold, epsilon - threshold


@lru_cache(maxsize=64)
def _fineness(epsilon: Fraction, moves: int, adaptive: bool) -> int:
    flags = _parts(epsilon, moves)[1]
    return min(COARSE_STEPS, math.floor(MAX_TABLE_ENTRIES // 46 * flags / (moves * (2 if adaptive else 1))))


@lru_cache(maxsize=64)
def _scale(epsilon: Fraction, moves: int, adaptive: bool) -> Fraction:
    return max(MIN_SCALE, moves * _fineness(epsilon, moves, adaptive) / _parts(epsilon, moves)[1])
