"""What is true of a record's contexts, from all of them: the law of a draw, in both modes, without drawing.

These figures depend on the records. They are computed here because the registers are public; of private ones they must
not be shown.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Final

import numpy as np

from wallflower.papers.data.registers import Register
from wallflower.papers.pcor2021.reference import find_outliers, has_file
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector, Grubbs, Histogram, Lof, Tukey
from wallflower.queries.explain.draws.dp import (
    BASELESS_ODDS,
    FULL_SCORE,
    GRID,
    STEPS,
    population_scale,
    sufficient_score,
)
from wallflower.queries.explain.exact import margins, sweep
from wallflower.queries.explain.space.tables import Bools, Counts, RankedTable, rank_table
from wallflower.synthetic import Floats, Ints, pick_rows

DETECTORS: Final[Mapping[str, Detector]] = {"Grubbs": Grubbs(), "histogram": Histogram(), "LOF": Lof()}
PROBED: Final = 100  # contexts a record is tried in before all are examined, where that is slow
SLOW_DETECTORS: Final = (Lof, Tukey)
UNEVEN: Final = (*SLOW_DETECTORS, Histogram)  # most records are no outliers, and seeing so takes a while
MAX_QUICK_CONTEXTS: Final = 1 << 16  # contexts; examining more of them with these detectors takes seconds
DISTANT: Final = (Grubbs, ClampedGrubbs)
EXTREME: Final = (0.05, 0.95)
DOUBT: Final = Fraction(1, 10)  # the part of the loss that decides whether to say none


@dataclass(frozen=True, slots=True, eq=False)
class Outlier:
    """A record, its valid contexts, how many of them have which population, and how long it took to examine all."""

    register: Register
    row: int
    detector: Detector
    table: RankedTable
    valid: Ints
    counts: Ints
    seconds: float

    @property
    def highest(self) -> int:
        """The largest population of a valid context."""
        return int(np.flatnonzero(self.counts)[-1])

    @property
    def locality(self) -> tuple[float, float]:
        """How many of the contexts beside a valid one are valid, and how many of all are, as shares."""
        is_valid = np.zeros(self.table.space.count, np.bool_)
        is_valid[self.valid] = True
        beside = [float(is_valid[self.valid ^ (1 << bit)].mean()) for bit in range(self.table.space.length)]
        return float(np.mean(beside)), len(self.valid) / self.table.space.count

    @property
    def is_slow(self) -> bool:
        """Whether it takes seconds to examine all contexts."""
        return isinstance(self.detector, SLOW_DETECTORS) and self.table.space.count > MAX_QUICK_CONTEXTS

    @property
    def chance(self) -> float:
        """The expected utility of a valid context taken evenly."""
        return self.expected_utility(0.0)

    def expected_utility(self, rate: float) -> float:
        """The expected utility of a draw proportional to exp(rate·population), as a share of the largest."""
        populations = np.flatnonzero(self.counts)
        logs = np.log(self.counts[populations]) + rate * populations
        weights = np.exp(logs - logs.max())
        return float((weights * populations).sum() / weights.sum()) / self.highest


def outliers(register: Register, detector: Detector, count: int, *, seed: int) -> list[Outlier]:
    """The first `count` records in random order that have a valid context, as far as `likely` looks."""
    tried = (_examine(register, row, table, detector) for row, table in likely(register, detector, seed))
    return list(islice((outlier for outlier in tried if len(outlier.valid)), count))


def _examine(register: Register, row: int, table: RankedTable, detector: Detector) -> Outlier:
    begun = time.perf_counter()
    valid, counts = list_valid(table, detector)
    return Outlier(register, row, detector, table, valid, counts, time.perf_counter() - begun)


def likely(register: Register, detector: Detector, seed: int) -> Iterator[tuple[int, RankedTable]]:
    """Records in random order, as far as they are likely to be outliers and that is quickly seen.

    Where there is a reference file its outliers are taken. Else tests of distance from the mean are asked about the
    tenth with the most extreme metrics only; the others, which take longer, about records that are outliers in one of
    `PROBED` random contexts.
    """
    screened, probed = _screen(register, detector), isinstance(detector, UNEVEN) and not has_file(register, detector)
    for row in pick_rows(register.n, register.n, seed).tolist():
        if not screened[row]:
            continue
        table = rank_table(register.codes, register.sizes, register.metric, row)
        if not probed or _shows(table, detector, row):
            yield row, table


def _screen(register: Register, detector: Detector) -> Bools:
    if has_file(register, detector):
        return find_outliers(register, detector)
    if not isinstance(detector, DISTANT):
        return np.ones(register.n, np.bool_)
    low, high = np.quantile(register.metric, EXTREME)
    return np.asarray((register.metric <= low) | (register.metric >= high))


def _shows(table: RankedTable, detector: Detector, seed: int) -> bool:
    examine = detector.examine(table)
    return any(
        examine(index)[0] for index in pick_rows(table.space.count, min(PROBED, table.space.count), seed).tolist()
    )


def list_valid(table: RankedTable, detector: Detector) -> tuple[Ints, Ints]:
    """The valid contexts by index, and how many there are of every population from 0 to the number of records."""
    listed, total = [], np.zeros(table.n + 1, np.int64)

    def keep(first: int, valid: Bools, populations: Counts) -> tuple[Ints, Ints]:
        return first + np.flatnonzero(valid), np.bincount(populations[valid], minlength=table.n + 1)

    for found, counts in sweep(table, detector, keep):
        listed.append(found)
        total += counts
    return np.concatenate(listed), total


@dataclass(frozen=True, slots=True, kw_only=True)
class Private:
    """The law of one private release about a record.

    How often it is valid, its utility (0 where invalid), how often it says "none" instead, and whether some score is
    high enough for the bound on invalid draws.
    """

    valid: float
    utility: float
    none: float
    is_clear: bool


class Margins:
    """The margins of a record in all contexts, from which the law of a release in mode `dp` follows for any loss."""

    def __init__(self, table: RankedTable, detector: Detector, most: int) -> None:
        self.most, self.contexts = most, table.space.count
        self.margins, self.populations = margins(table, detector)
        self.valid = _valid(table, detector) if isinstance(detector, ClampedGrubbs) else self.margins > 0

    def law(self, loss: str) -> Private:
        """As `wallflower explain` draws: a tenth of the loss decides about "none", the rest is for the draw."""
        deciding, each = Fraction(loss) * DOUBT, Fraction(loss) * (1 - DOUBT)
        scores = self._scores(each)
        weights = np.exp(float(each) / (2 * STEPS) * (scores - scores.max()))
        largest, total = int(self.populations[self.valid].max()), float(weights.sum())
        return Private(
            valid=float(weights[self.valid].sum()) / total,
            utility=float((weights * self.populations)[self.valid].sum()) / total / largest,
            none=_below(float(self.margins.max()), float(deciding)),
            is_clear=bool(scores.max() >= GRID * sufficient_score(self.contexts, each)),
        )

    def _scores(self, each: Fraction) -> Floats:
        """The scores in steps of the grid."""
        cap = FULL_SCORE * float(sufficient_score(self.contexts, each))
        heights = np.minimum(cap, self.populations / float(population_scale(self.contexts, self.most, each)))
        found: Floats = np.floor(GRID * np.minimum(heights, np.clip(self.margins, -cap, cap)))
        return found


def margins_of(register: Register, detector: Detector, count: int, *, seed: int) -> Iterator[Margins]:
    """The margins of the first `count` records in random order that have a valid context, as far as `likely` looks."""
    tried = (Margins(table, detector, register.most) for _, table in likely(register, detector, seed))
    return islice((found for found in tried if found.valid.any()), count)


def _valid(table: RankedTable, detector: Detector) -> Bools:
    return np.concatenate(list(sweep(table, detector, lambda first, valid, populations: valid.copy())))


def _below(margin: float, epsilon: float) -> float:
    """The chance of "none": that the largest margin, with Laplace noise, stays below the threshold of a release."""
    spread = STEPS / epsilon
    gap = spread * math.log(BASELESS_ODDS) - math.floor(GRID * margin)
    tail = math.exp(-abs(gap) / spread) / 2
    return tail if gap < 0 else 1 - tail
