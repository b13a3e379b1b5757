"""Sums over every context at once: a cube of cells, unfolded by subset doubling.

A measure is a number per record, or per cell, and every context wants its sum. Cells are combinations of values. The
sum over a context adds one slice per chosen value, and sums over all subsets of values cost one addition each: the sum
with one more value is the sum without it plus that value's slice. The lowest bits of an index are unfolded beforehand
into a *leaf*, a vector of sums that fits the nearest cache; the higher bits are walked in counting order, where the
sums that belong to the leading bits stay where they are until one of those bits changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.jit import kernel
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable, Slots, choose_records

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]
Bools = NDArray[np.bool_]

LEAF: Final = 10  # bits of a leaf: 1024 contexts, fewer where there are many measures
CELLS: Final = 1 << 20  # more numbers are not unfolded; the first attributes are then taken one choice at a time


@dataclass(frozen=True, slots=True)
class Cube:
    """Whole and broken measures of all cells, and how to walk them.

    `size`, `slot`, `opens` and `room` have one entry per walked bit, highest first: how many numbers the bit's slices
    hold, where its slice stands among those of its attribute, whether it is the attribute's first, and where sums go.
    """

    whole: Counts
    broken: Floats
    size: Ints
    slot: Ints
    opens: Bools
    room: Ints
    leaf: int

    @property
    def bits(self) -> int:
        return len(self.size)

    def arenas(self) -> tuple[Counts, Floats]:
        """The cells with room for sums behind them: one copy for every thread."""
        end = self.whole.shape[1] + int(self.size.sum())
        whole, broken = np.empty((len(self.whole), end), np.int32), np.empty((len(self.broken), end))
        whole[:, : self.whole.shape[1]], broken[:, : self.broken.shape[1]] = self.whole, self.broken
        return whole, broken

    def way(self) -> tuple[Ints, Ints, Bools, Ints]:
        return self.size, self.slot, self.opens, self.room


def cubes(table: RankedTable | CellTable, whole: Counts, broken: Floats) -> Iterator[tuple[int, Cube]]:
    """Cubes that together hold all contexts, each with the index of its first one; mostly there is a single cube."""
    free = table.space.free
    weight = max(1, (len(whole) + 2 * len(broken)) // 5)  # in units of what Grubbs' test needs
    bits = max(min(5, LEAF), LEAF - weight.bit_length() + 1)
    lead = 0
    while lead < len(free) and _unfolded_size(free[lead:], bits) > CELLS // weight:
        lead += 1
    below = sum(free[lead:])
    for choice in range(1 << sum(free[:lead])):
        kept = choose_records(table.slots, free[:lead], choice)
        yield choice << below, _cube(table.slots[kept, lead:], free[lead:], bits, whole[:, kept], broken[:, kept])


def _split(free: Sequence[int], bits: int) -> tuple[int, int, int]:
    """The attribute that is cut in two by the leaf, how many of its values are in the leaf, and the leaf's bits."""
    leaf = min(bits, sum(free))
    within, cut = 0, len(free)
    while cut > 0 and within < leaf:
        cut -= 1
        within += free[cut]
    return cut, (leaf - (within - free[cut]) if cut < len(free) else 0), leaf


def _unfolded_size(free: Sequence[int], bits: int) -> int:
    cut, inside, leaf = _split(free, bits)
    walked = [others + 1 for others in free[:cut]] + [free[cut] - inside + 1 if cut < len(free) else 1]
    return prod(walked) << leaf


def _cube(slots: Slots, free: Sequence[int], bits: int, whole: Counts, broken: Floats) -> Cube:
    cut, inside, leaf = _split(free, bits)
    size: list[int] = []
    slot: list[int] = []
    opens: list[bool] = []
    rest = 1 << leaf
    for others in reversed([*free[:cut], *(free[at] - inside for at in range(cut, min(cut + 1, len(free))))]):
        size[:0] = [rest] * others
        slot[:0] = [rest * at for at in range(1, others + 1)]
        opens[:0] = [at == 0 for at in range(others)]
        rest *= others + 1
    room = rest + np.concatenate([[0], np.cumsum(size, dtype=np.int64)])[:-1]
    shape = tuple(others + 1 for others in free)
    cell = np.ravel_multi_index(tuple(slots.T), shape) if len(free) else np.zeros(len(slots), np.int64)

    def unfold(measures: NDArray[Any], kind: type) -> NDArray[Any]:
        found: NDArray[Any] = np.empty((len(measures), rest), kind)
        for at, measure in enumerate(measures):
            sums = np.bincount(cell, weights=measure, minlength=prod(shape)).reshape(shape)
            found[at] = _unfold(sums.astype(kind), cut, inside).reshape(-1)
        return found

    way = np.array(size, np.int64), np.array(slot, np.int64), np.array(opens, np.bool_), room.astype(np.int64)
    return Cube(unfold(whole, np.int32), unfold(broken, np.float64), *way, 1 << leaf)


def _unfold(sums: NDArray[Any], cut: int, inside: int) -> NDArray[Any]:
    """Replace values by sets of values in the leaf's attributes, and in the leaf's part of the one that is cut."""
    for axis in range(sums.ndim - 1, cut, -1):
        sums = _double(sums, axis)
    if cut >= sums.ndim:
        return sums
    outside = sums.shape[cut] - 1 - inside
    own = np.take(sums, [0, *range(outside + 1, sums.shape[cut])], axis=cut)
    within = np.expand_dims(_double(own, cut), cut)
    beyond = np.expand_dims(np.take(sums, range(1, outside + 1), axis=cut), cut + 1)
    return np.concatenate([within, np.repeat(beyond, 1 << inside, axis=cut + 1)], axis=cut)


def _double(sums: NDArray[Any], axis: int) -> NDArray[Any]:
    found = np.take(sums, [0], axis=axis)
    for slot in range(sums.shape[axis] - 1, 0, -1):
        found = np.concatenate([found, np.add(found, np.take(sums, [slot], axis=axis))], axis=axis)
    return found


@kernel
def descend(
    whole: Counts, broken: Floats, size: Ints, slot: Ints, opens: Bools, room: Ints, at: Ints, base: Ints,
    leaf: int, changed: int,
) -> int:  # fmt: skip
    """Bring the sums up to date from bit `changed` on; returns where the leaf of sums stands."""
    bits = len(size)
    for i in range(changed, bits):
        before = at[i]
        base[i] = before if opens[i] else base[i - 1]
        at[i + 1] = before
        if (leaf >> (bits - 1 - i)) & 1:
            other, to = base[i] + slot[i], room[i]
            at[i + 1] = to
            for q in range(len(whole)):
                a, b, out = whole[q, before : before + size[i]], whole[q, other : other + size[i]], whole[q, to:]
                for x in range(size[i]):
                    out[x] = a[x] + b[x]
            for r in range(len(broken)):
                c, d, sums = broken[r, before : before + size[i]], broken[r, other : other + size[i]], broken[r, to:]
                for x in range(size[i]):
                    sums[x] = c[x] + d[x]
    return int(at[bits])


@kernel
def changed_bit(leaf: int, first: int, bits: int) -> int:
    """The highest bit, counted from the top, in which a leaf differs from the one before it."""
    if leaf == first:
        return 0
    steps = leaf ^ (leaf - 1)
    low = -1
    while steps:
        steps >>= 1
        low += 1
    return bits - 1 - low


@kernel
def sums_of(
    whole: Counts, broken: Floats, size: Ints, slot: Ints, opens: Bools, room: Ints, first: int, last: int, length: int,
    whole_out: Counts, broken_out: Floats,
) -> None:  # fmt: skip
    """The sums of all measures for the leaves first … last-1."""
    at, base = np.zeros(len(size) + 1, np.int64), np.zeros(len(size) + 1, np.int64)
    for leaf in range(first, last):
        changed = changed_bit(leaf, first, len(size))
        start = descend(whole, broken, size, slot, opens, room, at, base, leaf, changed)
        to = (leaf - first) * length
        for q in range(len(whole)):
            for x in range(length):
                whole_out[q, to + x] = whole[q, start + x]
        for r in range(len(broken)):
            for x in range(length):
                broken_out[r, to + x] = broken[r, start + x]


@kernel
def few(
    whole: Counts, broken: Floats, size: Ints, slot: Ints, opens: Bools, room: Ints, first: int, last: int, length: int,
    share: float, least: float, valid: Bools, populations: Counts,
) -> None:  # fmt: skip
    """Valid where the second measure is below a limit that grows with the population."""
    at, base = np.zeros(len(size) + 1, np.int64), np.zeros(len(size) + 1, np.int64)
    for leaf in range(first, last):
        changed = changed_bit(leaf, first, len(size))
        start = descend(whole, broken, size, slot, opens, room, at, base, leaf, changed)
        to = (leaf - first) * length
        for x in range(length):
            n = whole[0, start + x]
            populations[to + x] = n
            valid[to + x] = whole[1, start + x] < np.ceil(share * n + least)


@kernel
def far(sums: Floats, kappa: Floats, tie: float, valid: Bools) -> int:
    """Valid where T₁² > κ T₂; returns how many contexts are too close to call, to be decided by exact sums.

    (R) Sums of at most n numbers, each rounded once, are off by at most nu Σ|z|, u = 2⁻⁵³, and Σ|z| ≤ √(n T₂). At the
    threshold |T₁| = √(κ T₂) with κ ≥ n/2, so T₁² and κ T₂ are known to one part in 10nu. Whoever is further apart than
    `tie`, which is more, falls on the same side by the exact sums.
    """
    close = 0
    for x in range(len(valid)):
        square, bound = sums[0, x] * sums[0, x], kappa[x] * sums[1, x]
        valid[x] = square > bound
        close += abs(square - bound) < tie * bound
    return close
