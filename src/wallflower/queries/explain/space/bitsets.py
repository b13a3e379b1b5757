"""Who is in a context, as bits in order of the metric: for detectors that look at the records around one of them.

For every attribute and every choice of its values there is a row of bits, one bit per record. A context is the AND of
one row per attribute. The leading attributes are joined once for many contexts; the last bits of an index (`inner`)
then cost one AND per word that is looked at, and most detectors look at few words around the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba.cpython.unsafe import numbers
from numpy.typing import NDArray

from wallflower.machine.jit import kernel
from wallflower.queries.explain.space.cube import Bools, Counts, Ints
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable

Words = NDArray[np.uint64]

INNER: Final = 10  # at most so many bits of an index are served by one table
ROOM: Final = 1 << 29  # at most so many bits of one table
CHUNK: Final = 8  # values of an attribute are joined by tables of so many
ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE: Final = np.uint64(1)

_leading_zeros: Any = numbers.leading_zeros
_trailing_zeros: Any = numbers.trailing_zeros


@dataclass(frozen=True, slots=True)
class Bitsets:
    """Tables of bit rows: one for the last `inner` bits of an index, chunks of at most 8 bits for those before.

    `closes` is 1 where a chunk ends its attribute. It is 2 for the values of the last attribute that the inner table
    leaves over, whose rows are joined by OR with the inner ones.
    """

    inner: int
    last: Words
    rows: Words
    starts: Ints
    shifts: Ints
    widths: Ints
    closes: Ints

    def parts(self) -> tuple[int, Words, Words, Ints, Ints, Ints, Ints]:
        return self.inner, self.last, self.rows, self.starts, self.shifts, self.widths, self.closes


def bitsets(table: RankedTable) -> Bitsets:
    """Bit rows for a table."""
    free, shift = table.space.free, 0
    cut = len(free)
    most = min(INNER, max(1, ROOM // table.n).bit_length())
    while cut > 0 and shift + free[cut - 1] <= most:
        cut -= 1
        shift += free[cut]
    spill = shift == 0 and cut > 0  # the last attribute alone is more than an inner table holds
    inner = CHUNK if spill else shift
    last = _join_choices(table, cut - 1, free[-1] - CHUNK, CHUNK, own=False) if spill else _last(table, cut)
    rows = [np.empty((0, last.shape[1]), np.uint64)]
    starts: list[int] = []
    shifts: list[int] = []
    widths: list[int] = []
    closes: list[int] = []
    for attribute in range(cut - 1, -1, -1):
        left = free[attribute] - (inner if spill and attribute == cut - 1 else 0)
        shift += free[attribute] - left
        first = len(starts)
        for end in range(left, -1 if left == 0 else 0, -CHUNK):
            width = min(CHUNK, end)
            starts.append(sum(map(len, rows)))
            rows.append(_join_choices(table, attribute, end - width, width, own=len(starts) - 1 == first))
            shifts.append(shift)
            widths.append(width)
            closes.append(0)
            shift += width
        closes[-1] = 2 if spill and attribute == cut - 1 else 1
    numbers = (np.array(each, dtype=np.int64) for each in (starts, shifts, widths, closes))
    return Bitsets(inner, last, np.concatenate(rows), *numbers)


def _join_choices(table: RankedTable, attribute: int, before: int, width: int, *, own: bool) -> Words:
    """A row for every choice among `width` values of an attribute, those after its first `before` others."""
    column = table.slots[:, attribute]
    found = _pack(column == 0 if own else np.zeros(table.n, np.bool_))[None]
    for slot in range(before + width, before, -1):
        found = np.concatenate([found, found | _pack(column == slot)])
    return found


def _last(table: RankedTable, cut: int) -> Words:
    """A row for every choice in the attributes from `cut` on."""
    found = _pack(np.ones(table.n, np.bool_))[None]
    for attribute in range(cut, len(table.space.free)):
        others = _join_choices(table, attribute, 0, table.space.free[attribute], own=True)
        found = (found[:, None] & others[None]).reshape(-1, found.shape[1])
    return found


def _pack(chosen: Bools) -> Words:
    padded = np.zeros(-(-len(chosen) // 64) * 64, np.bool_)
    padded[: len(chosen)] = chosen
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


@kernel
def lead(rows: Words, starts: Ints, shifts: Ints, widths: Ints, closes: Ints, index: int, both: Words) -> None:
    """Join the leading attributes: row 0 of `both` is to be met with an inner row, row 1 is in whatever that says."""
    words = both.shape[1]
    held = np.zeros(words, np.uint64)
    for w in range(words):
        both[0, w], both[1, w] = ALL, np.uint64(0)
    for c in range(len(starts)):
        row = rows[starts[c] + ((index >> shifts[c]) & ((1 << widths[c]) - 1))]
        for w in range(words):
            held[w] |= row[w]
        if closes[c] == 1:
            for w in range(words):
                both[0, w] &= held[w]
                both[1, w] &= held[w]
                held[w] = 0
        elif closes[c] == 2:
            for w in range(words):
                both[1, w] = held[w]
                held[w] = 0


@kernel
def members(
    inner: int, last: Words, rows: Words, starts: Ints, shifts: Ints, widths: Ints, closes: Ints, index: int,
    found: Words,
) -> int:  # fmt: skip
    """The bits of a single context; returns its population."""
    both = np.empty((2, last.shape[1]), np.uint64)
    lead(rows, starts, shifts, widths, closes, index, both)
    row, n = last[index & ((1 << inner) - 1)], 0
    for w in range(len(found)):
        found[w] = (both[0, w] & row[w]) | both[1, w]
        n += _ones(found[w])
    return n


@kernel
def _ones(word: np.uint64) -> int:
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def lowest(word: np.uint64) -> int:
    return int(_trailing_zeros(word))


@kernel
def highest(word: np.uint64) -> int:
    return 63 - int(_leading_zeros(word))


@kernel
def _place(x: float, low: float, scale: float, bins: int) -> int:
    at = (x - low) * scale
    return int(at) if at < bins - 1 else bins - 1


@kernel
def sparse(
    inner: int, last: Words, rows: Words, starts: Ints, shifts: Ints, widths: Ints, closes: Ints, begin: int,
    values: Floats, record: int, fraction: float, populations: Counts, valid: Bools,
) -> None:  # fmt: skip
    """Valid where the record's bin, among √n from the least to the largest member, holds few."""
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
        valid[x] = high > low and _mates(both, row, values, record, low, bins / (high - low), bins, limit) < limit


@kernel
def _mates(
    both: Words, row: Words, values: Floats, record: int, low: float, scale: float, bins: int, limit: float
) -> int:
    """How many members share the record's bin, counted outwards from it until they are enough."""
    own, here, n = _place(values[record], low, scale, bins), record >> 6, len(values)
    found, w, word = 0, here, ((both[0, here] & row[here]) | both[1, here]) & (ALL << np.uint64(record & 63))
    while found < limit:
        if _place(values[min(64 * w + 63, n - 1)], low, scale, bins) != own:
            while word != 0 and _place(values[64 * w + lowest(word)], low, scale, bins) == own:
                found += 1
                word &= word - ONE
            break
        found += _ones(word)
        w += 1
        if w == len(row):
            break
        word = (both[0, w] & row[w]) | both[1, w]
    w, word = here, ((both[0, here] & row[here]) | both[1, here]) & ((ONE << np.uint64(record & 63)) - ONE)
    while found < limit:
        if _place(values[64 * w], low, scale, bins) != own:
            while word != 0 and _place(values[64 * w + highest(word)], low, scale, bins) == own:
                found += 1
                word &= ~(ONE << np.uint64(highest(word)))
            break
        found += _ones(word)
        w -= 1
        if w < 0:
            break
        word = (both[0, w] & row[w]) | both[1, w]
    return found
