"""The members of a context as bits in order of the metric, for detectors that look at the records around one of them.

For every attribute and every choice of its values there is a row of bits, one bit per record. A context is the AND of
one row per attribute. The leading attributes are joined once for many contexts; the last bits of an index (`inner`)
then cost one AND per word that is read, and most detectors read few words around the record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import intrinsic, kernel
from wallflower.queries.explain.space.tables import Bools, Ints, RankedTable

Words = NDArray[np.uint64]

INNER_BITS: Final = 10  # bits of an index that one table serves, at most
MAX_TABLE_BITS: Final = 1 << 29
CHUNK_VALUES: Final = 8  # values of an attribute that one table joins
ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
ONE: Final = np.uint64(1)


@intrinsic
def leading_zeros(word: np.uint64) -> int:
    raise NotImplementedError


@intrinsic
def trailing_zeros(word: np.uint64) -> int:
    raise NotImplementedError


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
        """Return the fields, as kernels take them."""
        return self.inner, self.last, self.rows, self.starts, self.shifts, self.widths, self.closes


def make_bitsets(table: RankedTable) -> Bitsets:
    """Make the bit rows of a table."""
    free, shift = table.space.free, 0
    cut = len(free)
    most = min(INNER_BITS, max(1, MAX_TABLE_BITS // table.n).bit_length())
    while cut > 0 and shift + free[cut - 1] <= most:
        cut -= 1
        shift += free[cut]
    spill = shift == 0 and cut > 0  # the last attribute alone is more than an inner table holds
    inner = CHUNK_VALUES if spill else shift
    last = (
        _join_choices(table, cut - 1, free[-1] - CHUNK_VALUES, CHUNK_VALUES, own=False)
        if spill
        else _join_last(table, cut)
    )
    rows = [np.empty((0, last.shape[1]), np.uint64)]
    starts: list[int] = []
    shifts: list[int] = []
    widths: list[int] = []
    closes: list[int] = []
    for attribute in range(cut - 1, -1, -1):
        left = free[attribute] - (inner if spill and attribute == cut - 1 else 0)
        shift += free[attribute] - left
        first = len(starts)
        for end in range(left, -1 if left == 0 else 0, -CHUNK_VALUES):
            width = min(CHUNK_VALUES, end)
            starts.append(sum(map(len, rows)))
            rows.append(_join_choices(table, attribute, end - width, width, own=len(starts) - 1 == first))
            shifts.append(shift)
            widths.append(width)
            closes.append(0)
            shift += width
        closes[-1] = 2 if spill and attribute == cut - 1 else 1
    path = (np.array(numbers, dtype=np.int64) for numbers in (starts, shifts, widths, closes))
    return Bitsets(inner, last, np.concatenate(rows), *path)


def _join_choices(table: RankedTable, attribute: int, before: int, width: int, *, own: bool) -> Words:
    """Return a row for every choice among `width` values of an attribute, those after its first `before` others."""
    column = table.slots[:, attribute]
    choices = _pack(column == 0 if own else np.zeros(table.n, np.bool_))[None]
    for slot in range(before + width, before, -1):
        choices = np.concatenate([choices, choices | _pack(column == slot)])
    return choices


def _join_last(table: RankedTable, cut: int) -> Words:
    """Return a row for every choice in the attributes from `cut` on."""
    choices = _pack(np.ones(table.n, np.bool_))[None]
    for attribute in range(cut, len(table.space.free)):
        others = _join_choices(table, attribute, 0, table.space.free[attribute], own=True)
        choices = (choices[:, None] & others[None]).reshape(-1, choices.shape[1])
    return choices


def _pack(chosen: Bools) -> Words:
    padded = np.zeros(-(-len(chosen) // 64) * 64, np.bool_)
    padded[: len(chosen)] = chosen
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


@kernel
def lead(rows: Words, starts: Ints, shifts: Ints, widths: Ints, closes: Ints, index: int, both: Words) -> None:
    """Join the leading attributes: row 0 of `both` is to be combined with an inner row by AND, row 1 by OR."""
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
    out: Words,
) -> int:  # fmt: skip
    """Write the bits of a single context; return its population."""
    both = np.empty((2, last.shape[1]), np.uint64)
    lead(rows, starts, shifts, widths, closes, index, both)
    row, n = last[index & ((1 << inner) - 1)], 0
    for w in range(len(out)):
        out[w] = (both[0, w] & row[w]) | both[1, w]
        n += count_ones(out[w])
    return n


@kernel
def count_ones(word: np.uint64) -> int:
    """Return the number of bits that are set."""
    word = word - ((word >> ONE) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel
def lowest(word: np.uint64) -> int:
    """Return the position of the lowest bit."""
    return int(trailing_zeros(word))


@kernel
def highest(word: np.uint64) -> int:
    """Return the position of the highest bit."""
    return 63 - int(leading_zeros(word))
