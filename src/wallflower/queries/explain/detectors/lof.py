"""Local outlier factor of the metric: the record is less dense than its nearest neighbours.

In one dimension only the members next to the record matter, and they are next to it in rank. The record's neighbours
are among the k members on either side, theirs among 2k, and the distances that those keep among 3k. So 3k + 2 members
are collected on each side; where ties make a neighbourhood reach the end of what was collected while there may be more,
twice as many are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from wallflower.machine.jit import kernel
from wallflower.queries.explain.detectors.base import Look, RecordDetector, check_setting
from wallflower.queries.explain.space.bitsets import ALL, ONE, Bitsets, Words, highest, lead, lowest
from wallflower.queries.explain.space.tables import MAX_METRIC, Bools, Counts, Floats, Ints, RankedTable

MIN_DISTANCE: Final = 1e-10  # keeps a local density finite where records coincide, as in scikit-learn


@dataclass(frozen=True, slots=True)
class Lof(RecordDetector):
    """The local outlier factor of the metric exceeds a fixed threshold.

    Neighbourhoods include ties, and sums of densities run in rising order of the metric. One record can move a factor
    from below the threshold to far above it, whatever the others are, so there is no margin.

    >>> Lof(k=2).outlier(np.array([9.0, 1.0, 1.5, 2.0, 2.5]), 0)
    True
    """

    kind: ClassVar[str] = "lof"
    nanoseconds_per_context: ClassVar[float] = 1300.0

    k: int = field(default=20, metadata={"help": "size of a neighbourhood"})
    threshold: float = field(default=1.5, metadata={"help": "records with a larger factor are outliers"})

    def __post_init__(self) -> None:
        check_setting("k", self.k, 1 <= self.k <= 10_000, "1 to 10000", "pass a number such as 20")
        fits = 0 < self.threshold <= MAX_METRIC
        check_setting("threshold", self.threshold, fits, "0 to 1e100", "pass a factor such as 1.5")

    def outlier(self, values: Floats, index: int, /) -> bool:
        if len(values) <= self.k:
            return False
        ranked = np.sort(values)
        position = int(np.searchsorted(ranked, values[index]))
        near = self._neighbours(ranked, position)
        densities = [self._density(ranked, int(other)) for other in near]
        return float(np.cumsum(densities)[-1]) / len(near) / self._density(ranked, position) > self.threshold

    @classmethod
    def examples(cls) -> tuple[Lof, ...]:
        return (cls(1, 1.2),)

    def look(self, table: RankedTable, bits: Bitsets) -> Look:
        k, threshold = self.k, self.threshold

        def look(begin: int, valid: Bools, populations: Counts) -> None:
            _find_thin(*bits.parts(), begin, table.values, table.record, k, threshold, populations, valid)

        return look

    def _neighbours(self, ranked: Floats, position: int) -> Ints:
        near = np.abs(ranked - ranked[position]) <= self._distance(ranked, position)
        near[position] = False
        return np.flatnonzero(near)

    def _distance(self, ranked: Floats, position: int) -> float:
        return float(np.sort(np.delete(np.abs(ranked - ranked[position]), position))[self.k - 1])

    def _density(self, ranked: Floats, position: int) -> float:
        near = self._neighbours(ranked, position)
        reaches = [max(self._distance(ranked, int(at)), float(abs(ranked[at] - ranked[position]))) for at in near]
        return 1.0 / (float(np.cumsum(reaches)[-1]) / len(near) + MIN_DISTANCE)


@kernel
def _find_thin(
    inner: int, last: Words, rows: Words, starts: Ints, shifts: Ints, widths: Ints, closes: Ints, begin: int,
    values: Floats, record: int, k: int, threshold: float, populations: Counts, valid: Bools,
) -> None:  # fmt: skip
    """Write where the record's local outlier factor exceeds the threshold."""
    both = np.empty((2, last.shape[1]), np.uint64)
    near, kept = np.empty(2 * len(values) + 1), np.empty(2 * len(values) + 1)
    ends = np.empty((len(values) + 1, 2), np.int64)
    for x in range(len(valid)):
        if x & ((1 << inner) - 1) == 0:
            lead(rows, starts, shifts, widths, closes, begin + x, both)
        valid[x] = False
        wanted = 3 * k + 2
        while populations[x] > k:
            row = last[(begin + x) & ((1 << inner) - 1)]
            below, above = _collect(both, row, values, record, wanted, near)
            first = len(values) - below
            factor = _factor(
                near[first : first + below + 1 + above], below, below < wanted, above < wanted, k, kept, ends
            )
            if factor >= 0:
                valid[x] = factor > threshold
                break
            wanted *= 2


@kernel
def _collect(both: Words, row: Words, values: Floats, record: int, wanted: int, near: Floats) -> tuple[int, int]:
    """Put the metric of up to `wanted` members below and above the record around the middle of `near`."""
    middle, here, below, above = len(values), record >> 6, 0, 0
    near[middle] = values[record]
    w, word = here, ((both[0, here] & row[here]) | both[1, here]) & ((ONE << np.uint64(record & 63)) - ONE)
    while True:
        while word != 0 and below < wanted:
            bit = highest(word)
            word ^= ONE << np.uint64(bit)
            below += 1
            near[middle - below] = values[64 * w + bit]
        w -= 1
        if w < 0 or below == wanted:
            break
        word = (both[0, w] & row[w]) | both[1, w]
    w, word = here, ((both[0, here] & row[here]) | both[1, here]) & ((ALL << np.uint64(record & 63)) << ONE)
    while True:
        while word != 0 and above < wanted:
            above += 1
            near[middle + above] = values[64 * w + lowest(word)]
            word &= word - ONE
        w += 1
        if w == len(row) or above == wanted:
            break
        word = (both[0, w] & row[w]) | both[1, w]
    return below, above


@kernel
def _factor(near: Floats, own: int, bottom: bool, top: bool, k: int, kept: Floats, ends: Ints) -> float:
    """Return the factor of near[own]; -1 if it may depend on members that were not collected.

    `bottom` and `top` say that there are no more members on that side.
    """
    n = len(near)
    if n <= k:
        return -1.0
    first, last = _around(near, own, _window(near, own, max(0, own - k), k), k)
    if (first == 0 and not bottom) or (last == n - 1 and not top):
        return -1.0
    low, high, a = n, -1, max(0, first - k)
    for o in range(first, last + 1):
        a = _window(near, o, a, k)
        kept[o] = max(near[o] - near[a], near[a + k] - near[o])
        left, right = _around(near, o, a, k)
        ends[o - first, 0], ends[o - first, 1] = left, right
        low, high = min(low, left), max(high, right)
    if (low < k and not bottom) or (high > n - 1 - k and not top):
        return -1.0
    a = max(0, low - k)
    for q in range(low, first):
        a = _window(near, q, a, k)
        kept[q] = max(near[q] - near[a], near[a + k] - near[q])
    a = max(0, last + 1 - k)
    for q in range(last + 1, high + 1):
        a = _window(near, q, a, k)
        kept[q] = max(near[q] - near[a], near[a + k] - near[q])
    total, mine = 0.0, 0.0
    for o in range(first, last + 1):
        density = _density(near, kept, o, ends[o - first, 0], ends[o - first, 1])
        if o == own:
            mine = density
        else:
            total += density
    return total / (last - first) / mine


@kernel
def _window(near: Floats, i: int, a: int, k: int) -> int:
    """Return where the k + 1 members closest to i begin, from a start that is not to the right of it."""
    while a + k + 1 < len(near) and near[i] - near[a] > near[a + k + 1] - near[i]:
        a += 1
    return a


@kernel
def _around(near: Floats, i: int, a: int, k: int) -> tuple[int, int]:
    """Return the first and last member within the distance of the k-th neighbour, ties included."""
    reach = max(near[i] - near[a], near[a + k] - near[i])
    first, last = a, a + k
    while first > 0 and near[i] - near[first - 1] <= reach:
        first -= 1
    while last < len(near) - 1 and near[last + 1] - near[i] <= reach:
        last += 1
    return first, last


@kernel
def _density(near: Floats, kept: Floats, i: int, first: int, last: int) -> float:
    total = 0.0
    for j in range(first, i):
        total += max(kept[j], near[i] - near[j])
    for j in range(i + 1, last + 1):
        total += max(kept[j], near[j] - near[i])
    return 1.0 / (total / (last - first) + MIN_DISTANCE)
