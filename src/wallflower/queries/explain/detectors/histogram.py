"""Histogram over the range of a context: the record's bin holds few. No margin: one record can stretch the range."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from wallflower.machine.jit import kernel
from wallflower.queries.explain.detectors.base import Look, RecordDetector, check_fraction
from wallflower.queries.explain.space.bitsets import ALL, ONE, Bitsets, Words, count_ones, highest, lead, lowest
from wallflower.queries.explain.space.tables import Bools, Counts, Floats, Ints, RankedTable


@dataclass(frozen=True, slots=True)
class Histogram(RecordDetector):
    """The record's bin holds less than a `fraction` of the context: √n equal bins from its least to its largest value.

    As in [Sha21]. The bins depend on the records, so there is no margin; `bins` has one.

    >>> Histogram(fraction=0.3).outlier(np.array([9.0, 1.0, 2.0, 3.0]), 0)
    True
    """

    kind: ClassVar[str] = "histogram"
    nanoseconds_per_context: ClassVar[float] = 110.0

    fraction: float = field(default=0.0025, metadata={"help": "a bin with a smaller share of the records is sparse"})

    def __post_init__(self) -> None:
        check_fraction(self.fraction)

    def outlier(self, values: Floats, index: int, /) -> bool:
        low, high, bins = float(values.min()), float(values.max()), math.isqrt(len(values))
        if not high > low:
            return False
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            place = (values - low) * (np.float64(bins) / (high - low))
            whole = np.where(place < bins - 1, np.floor(place), bins - 1)
        return int(np.count_nonzero(whole == whole[index])) < self.fraction * len(values)

    @classmethod
    def examples(cls) -> tuple[Histogram, ...]:
        return (cls(0.3),)

    def look(self, table: RankedTable, bits: Bitsets) -> Look:
        def look(begin: int, valid: Bools, populations: Counts) -> None:
            _find_sparse(*bits.parts(), begin, table.values, table.record, self.fraction, populations, valid)

        return look


@kernel
def _place(x: float, low: float, scale: float, bins: int) -> int:
    at = (x - low) * scale
    return int(at) if at < bins - 1 else bins - 1


@kernel
def _find_sparse(
    inner: int, last: Words, rows: Words, starts: Ints, shifts: Ints, widths: Ints, closes: Ints, begin: int,
    values: Floats, record: int, fraction: float, populations: Counts, valid: Bools,
) -> None:  # fmt: skip
    """Write where the record's bin, among √n from the least to the largest member, holds few."""
    words = last.shape[1]
    both = np.empty((2, words), np.uint64)
    for x in range(len(valid)):
        if x & ((1 << inner) - 1) == 0:
            lead(rows, starts, shifts, widths, closes, begin + x, both)
        row = last[(begin + x) & ((1 << inner) - 1)]
        w = 0
        while (both[0, w] & row[w]) | both[1, w] == 0:
            w += 1
        low = values[64 * w + lowest((both[0, w] & row[w]) | both[1, w])]
        w = words - 1
        while (both[0, w] & row[w]) | both[1, w] == 0:
            w -= 1
        high = values[64 * w + highest((both[0, w] & row[w]) | both[1, w])]
        bins = int(np.sqrt(populations[x]))
        limit = fraction * populations[x]
        valid[x] = high > low and _count_mates(both, row, values, record, low, bins / (high - low), bins, limit) < limit


@kernel
def _count_mates(
    both: Words, row: Words, values: Floats, record: int, low: float, scale: float, bins: int, limit: float
) -> int:
    """Count members in the record's bin, outwards from it, until they reach the limit."""
    own, here, n = _place(values[record], low, scale, bins), record >> 6, len(values)
    count, w, word = 0, here, ((both[0, here] & row[here]) | both[1, here]) & (ALL << np.uint64(record & 63))
    while count < limit:
        if _place(values[min(64 * w + 63, n - 1)], low, scale, bins) != own:
            while word != 0 and _place(values[64 * w + lowest(word)], low, scale, bins) == own:
                count += 1
                word &= word - ONE
            break
        count += count_ones(word)
        w += 1
        if w == len(row):
            break
        word = (both[0, w] & row[w]) | both[1, w]
    w, word = here, ((both[0, here] & row[here]) | both[1, here]) & ((ONE << np.uint64(record & 63)) - ONE)
    while count < limit:
        if _place(values[64 * w], low, scale, bins) != own:
            while word != 0 and _place(values[64 * w + highest(word)], low, scale, bins) == own:
                count += 1
                word &= ~(ONE << np.uint64(highest(word)))
            break
        count += count_ones(word)
        w -= 1
        if w < 0:
            break
        word = (both[0, w] & row[w]) | both[1, w]
    return count
