"""The table as detectors see it: record by record in order of the metric, or added up by cells.

A cell is a combination of context values. Records of one cell are in the same contexts, so a detector that decides from
counts and sums needs only the cells: how many records of each are in each *part* of the metric, and what the numbers
that it compares add up to. The same cells come out of the table in memory and of chunks of it, in any order
(proof.md, (C)): a sum is kept as *terms*, floats that add up to it exactly, and is rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.jit import kernel
from wallflower.queries.explain.space.contexts import Space

Ints = NDArray[np.int64]
Counts = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Tally = dict[str, NDArray[Any]]  # `key`, rising and distinct, with its `count`; `place` of each `term`

MAX_METRIC: Final = 1e100  # squares of smaller numbers never overflow
SLICE_RECORDS: Final = 1 << 20  # records of a table in memory that are tallied at a time
MAX_PENDING: Final = 1 << 20  # terms and keys that wait before they are added up
COUNTING_SORT_KEYS: Final = 1 << 16  # keys below this are sorted by counting

# Exact sums: mantissas are added as whole numbers, in limbs of 32 bits.
LOWEST_EXPONENT: Final = -1074  # the smallest power of two that a float has
LIMB_BITS: Final = 32
LIMB_MASK: Final = (1 << LIMB_BITS) - 1
HALF_LIMB: Final = 1 << LIMB_BITS - 1
FRACTION_MASK: Final = (1 << 52) - 1  # the bits of a float below its leading one
LIMBS: Final = (1024 - LOWEST_EXPONENT) // LIMB_BITS + 4


@dataclass(frozen=True, slots=True)
class Division:
    """How a detector divides the metric by cells.

    parts    number of parts of the metric
    sums     number of sums per cell
    place    part of each value, from the values and the record's own
    numbers  rows of numbers to add up, one row per sum, from the values and the record's own; default: none
    """

    parts: int
    place: Callable[[Floats, float], NDArray[Any]]
    sums: int = 0
    numbers: Callable[[Floats, float], Sequence[Floats]] = lambda values, own: ()


@dataclass(frozen=True, slots=True)
class RankedTable:
    """Records in rising order of the metric.

    `slots` numbers the values of every attribute from the record's own: 0 is its value, then the others in domain
    order. Slot j of an attribute with f other values is bit f - j of its part of an index: the first is the highest.
    """

    space: Space
    slots: Ints
    values: Floats
    record: int

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def own(self) -> float:
        """The metric of the record in question."""
        return float(self.values[self.record])

    @property
    def weights(self) -> Counts:
        """One per record."""
        return np.ones(self.n, np.int32)

    def members(self, index: int) -> Bools:
        """Return which records a context selects."""
        return choose_rows(self.slots, self.space.free, index)

    def select(self, index: int) -> tuple[Floats, int]:
        """Return the metric of a context's records, and the position of the record in question among them."""
        chosen = self.members(index)
        return self.values[chosen], int(np.count_nonzero(chosen[: self.record]))

    def by_cells(self, division: Division) -> CellTable:
        """Add the records up by cells."""
        slices = (slice(start, start + SLICE_RECORDS) for start in range(0, self.n, SLICE_RECORDS))
        tallies = (tally_cells(self.slots[s], self.values[s], self.own, self.space.free, division) for s in slices)
        return CellTable.from_tally(self.space, self.own, add_tallies(tallies), division)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CellTable:
    """The cells that hold a record, in order.

    `slots` as in a ranked table; `parts` counts the records of each part; `sums` are the sums of each cell, rounded
    once; `terms` add up to them exactly, those of sum m at the cells `places[m]`.
    """

    space: Space
    n: int
    own: float
    slots: Ints
    parts: Counts
    sums: Floats
    places: tuple[Ints, ...]
    terms: tuple[Floats, ...]

    @classmethod
    def from_tally(cls, space: Space, own: float, tally: Tally, division: Division) -> CellTable:
        """Make the table from a tally of all records."""
        cell, back = np.unique(tally["key"] // division.parts, return_inverse=True)
        parts = np.zeros((division.parts, len(cell)), np.int32)
        parts[tally["key"] % division.parts, back] = tally["count"]
        key, row = np.divmod(tally["place"], max(1, division.sums))
        order = np.lexsort((key, row))
        place, term, row = np.searchsorted(cell, key // division.parts)[order], tally["term"][order], row[order]
        edges = np.searchsorted(row, np.arange(division.sums + 1))
        places = tuple(place[edges[m] : edges[m + 1]] for m in range(division.sums))
        terms = tuple(term[edges[m] : edges[m + 1]] for m in range(division.sums))
        sums = [round_sums(*pair, len(cell)) for pair in zip(places, terms, strict=True)]
        shape = tuple(others + 1 for others in space.free)
        return cls(
            space=space,
            n=int(tally["count"].sum()),
            own=own,
            slots=np.stack(np.unravel_index(cell, shape), axis=1).astype(np.int64),
            parts=parts,
            sums=np.array(sums).reshape(division.sums, len(cell)),
            places=places,
            terms=terms,
        )

    @property
    def weights(self) -> Counts:
        """The number of records in each cell."""
        weights: Counts = self.parts.sum(axis=0, dtype=np.int32)
        return weights

    def members(self, index: int) -> Bools:
        """Return which cells a context selects."""
        return choose_rows(self.slots, self.space.free, index)

    def exact_sums(self, chosen: Bools) -> list[float]:
        """Return the sums over these cells, each rounded once."""
        pairs = zip(self.places, self.terms, strict=True)
        return [math.fsum(term[chosen[place]].tolist()) for place, term in pairs]

    def by_cells(self, division: Division) -> CellTable:
        """Return the table itself: an engine has added it up already."""
        return self


AnyTable = RankedTable | CellTable


def rank_table(codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int) -> RankedTable:
    """Check a table against its public domains and sort it by the metric.

    >>> rank_table([[0], [1], [1]], [2], [3.0, 1.0, 2.0], record=0).values.tolist()
    [1.0, 2.0, 3.0]
    """
    places = np.asarray(codes)
    places = places[:, None] if places.ndim == 1 else places
    sizes = tuple(int(size) for size in np.atleast_1d(np.asarray(domain_sizes)))
    values = np.asarray(metric, dtype=np.float64)
    if places.ndim != 2 or values.ndim != 1 or places.shape != (len(values), len(sizes)):
        raise DataError("codes and metric must have one row per record, codes one column per domain.")
    if not np.issubdtype(places.dtype, np.integer) or not ((places >= 0) & (places < np.array(sizes))).all():
        raise DataError("codes must be whole numbers from 0 within the public domains; encode the table with them.")
    if not (np.abs(values) <= MAX_METRIC).all():
        raise DataError("the metric holds missing or immense numbers; every value must be within ±1e100.")
    if not 0 <= record < len(values):
        raise ParameterError(f"record: {record!r} is not a row of the table; count rows from 0.")
    own = places[record].astype(np.int64)
    order = np.argsort(values, kind="stable")
    space = Space(sizes, tuple(own.tolist()))
    return RankedTable(space, slots_from(places, own)[order], values[order], int(np.flatnonzero(order == record)[0]))


def slots_from(codes: NDArray[Any], own: Ints) -> Ints:
    """Number codes from the record's own."""
    return np.where(codes == own, 0, np.where(codes < own, codes + 1, codes)).astype(np.int64)


def choose_rows(slots: Ints, free: Sequence[int], index: int) -> Bools:
    """Return which rows the first attributes admit, as far as `free` counts their other values."""
    chosen, shift = np.ones(len(slots), dtype=np.bool_), sum(free)
    for attribute, others in enumerate(free):
        shift -= others
        allowed = [True, *((index >> shift + others - slot) & 1 == 1 for slot in range(1, others + 1))]
        chosen &= np.array(allowed)[slots[:, attribute]]
    return chosen


def tally_cells(slots: Ints, values: Floats, own: float, free: Sequence[int], division: Division) -> Tally:
    """Add some records up, cell by cell and part by part."""
    cell = np.ravel_multi_index(tuple(slots.T), tuple(others + 1 for others in free))
    numbers = np.array(division.numbers(values, own)).reshape(division.sums, len(values))
    return tally_records(cell * division.parts + division.place(values, own), numbers)


def tally_records(key: Ints, numbers: Floats) -> Tally:
    """Count records by key, and add up the rows of `numbers`; a term of row m of a key has place key · rows + m."""
    order = _sort_order(key)
    keys, split = key[order], [(np.empty(0, np.int64), np.empty(0))]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    for row, values in enumerate(numbers):
        place, term = _split_terms(keys, values[order])
        split.append((place * len(numbers) + row, term))
    return {
        "key": keys[starts],
        "count": np.diff(np.append(starts, len(keys))),
        "place": np.concatenate([place for place, _ in split]),
        "term": np.concatenate([term for _, term in split]),
    }


def add_tallies(tallies: Iterable[Tally]) -> Tally:
    """Add tallies up to one of all records."""
    waiting, size = list[Tally](), 0
    for tally in tallies:
        waiting.append(tally)
        size += len(tally["key"]) + len(tally["term"])
        if size > MAX_PENDING:
            waiting, size = [_join_tallies(waiting)], 0
    return _join_tallies(waiting)


def round_sums(place: Ints, term: Floats, places: int) -> Floats:
    """Return the sums at places 0 … places-1, each rounded once; terms come in order of their places."""
    edges, terms = np.searchsorted(place, np.arange(places + 1)).tolist(), term.tolist()
    return np.array([math.fsum(terms[edges[at] : edges[at + 1]]) for at in range(places)])


def _join_tallies(tallies: list[Tally]) -> Tally:
    key, back = np.unique(np.concatenate([tally["key"] for tally in tallies]), return_inverse=True)
    count = np.zeros(len(key), np.int64)
    np.add.at(count, back, np.concatenate([tally["count"] for tally in tallies]))
    place = np.concatenate([tally["place"] for tally in tallies])
    order = _sort_order(place)
    place, term = _split_terms(place[order], np.concatenate([tally["term"] for tally in tallies])[order])
    return {"key": key, "count": count, "place": place, "term": term}


def _sort_order(key: Ints) -> Ints:
    is_small = len(key) > 0 and int(key.max()) < COUNTING_SORT_KEYS
    return np.argsort(key.astype(np.uint16) if is_small else key, kind="stable")


def _split_terms(place: Ints, numbers: Floats) -> tuple[Ints, Floats]:
    """Return terms of the sums of numbers that stand in order of their places."""
    places, terms = np.empty(4 * len(place), np.int64), np.empty(4 * len(place))
    count = _fill_terms(place, np.ascontiguousarray(numbers).view(np.int64), places, terms)
    return places[:count].copy(), terms[:count].copy()


@kernel
def _fill_terms(place: Ints, bits: Ints, places: Ints, terms: Floats) -> int:
    """Add mantissas up as whole numbers of 32 bits at a time, each a multiple of one power of two; then carry.

    Digits are from -2³¹ to below 2³¹, so that a carry ends in the first limb that no number reached into. A number
    reaches into three limbs at most: four terms for each are enough.
    """
    sums, count, low, high = np.zeros(LIMBS, np.int64), 0, LIMBS, -1
    for i in range(len(place)):
        power, whole = (bits[i] >> 52) & 2047, bits[i] & FRACTION_MASK
        if power > 0:
            whole, power = whole | (FRACTION_MASK + 1), power - 1
        limb, off = power >> 5, power & 31
        sign, rest = (-1 if bits[i] < 0 else 1), whole >> (LIMB_BITS - off)
        sums[limb] += sign * ((whole << off) & LIMB_MASK)
        sums[limb + 1] += sign * (rest & LIMB_MASK)
        sums[limb + 2] += sign * (rest >> LIMB_BITS)
        low, high = min(low, limb), max(high, limb + 2)
        if i + 1 == len(place) or place[i + 1] != place[i]:
            carry = 0
            for at in range(low, high + 2):
                held, sums[at] = sums[at] + carry, 0
                digit = ((held + HALF_LIMB) & LIMB_MASK) - HALF_LIMB
                carry = (held - digit) >> LIMB_BITS
                if digit != 0:
                    places[count], terms[count] = place[i], math.ldexp(float(digit), LIMB_BITS * at + LOWEST_EXPONENT)
                    count += 1
            low, high = LIMBS, -1
    return count
