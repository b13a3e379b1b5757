"""What makes a context useful: a whole number that one other record moves by no more than the sensitivity.

`Population` and `Overlap` count records, so they come in blocks from a cube, and a record that joins never lowers them.
A user's own function is asked context by context, and only where the record is an outlier.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.names import check_label, name_callable
from wallflower.queries.explain.engines.sums import nothing
from wallflower.queries.explain.exact import ASKED
from wallflower.queries.explain.space.bitsets import bitsets, members
from wallflower.queries.explain.space.blocks import Fill, Part, Walk, walk_parts
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.cube import LEAF, Bools, Counts, sums_of
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable

Examine = Callable[[int], tuple[bool, int]]  # whether a context is valid, and its population or score

MOST: Final = 2**31 - 1


class Utility(Protocol):
    """How useful contexts are. Scores are whole numbers within ±(2³¹ - 1)."""

    @property
    def sensitivity(self) -> int:
        """How far one other record, added or removed, moves any score."""

    @property
    def monotone(self) -> bool:
        """Whether one record that is added moves all scores in one direction."""

    def measure(self, table: RankedTable | CellTable) -> Counts | None:
        """What every record counts, where a score is the sum over the records of a context."""

    def score_parts(self, table: RankedTable | CellTable, parts: Iterator[Part]) -> Iterator[Part]:
        """Parts that fill in scores in the place of populations."""

    def score_single(self, table: RankedTable | CellTable, examine: Examine) -> Examine:
        """Answers about single contexts with scores in the place of populations."""


class _Monotone:
    """A score that one record moves by one at most, and all scores the same way."""

    __slots__ = ()

    @property
    def sensitivity(self) -> int:
        return 1

    @property
    def monotone(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Population(_Monotone):
    """How many records a context selects."""

    def measure(self, table: RankedTable | CellTable) -> Counts:
        return table.weights

    def score_parts(self, table: RankedTable | CellTable, parts: Iterator[Part]) -> Iterator[Part]:
        return parts

    def score_single(self, table: RankedTable | CellTable, examine: Examine) -> Examine:
        return examine


@dataclass(frozen=True, slots=True)
class Overlap(_Monotone):
    """How many records a context shares with a chosen public one, which need not contain the record."""

    context: str = field(metadata={"help": "the public context, one bit per value"})

    def measure(self, table: RankedTable | CellTable) -> Counts:
        return select_records(table, self.context) * table.weights

    def score_parts(self, table: RankedTable | CellTable, parts: Iterator[Part]) -> Iterator[Part]:
        def work(_: int, walk: Walk, outcomes: NDArray[Any], scores: Counts) -> None:
            sums_of(*walk, scores[None], nothing(len(scores)))

        return _replace_counts(parts, walk_parts(table, self.measure(table)[None], nothing(len(table.slots)), work))

    def score_single(self, table: RankedTable | CellTable, examine: Examine) -> Examine:
        shared = select_records(table, self.context)
        if not shared.any():
            return lambda index: (examine(index)[0], 0)
        if isinstance(table, CellTable):
            counts = shared * table.weights
            return lambda index: (examine(index)[0], int(counts[table.members(index)].sum()))
        bits = bitsets(replace(table, slots=table.slots[shared], values=table.values[shared]))

        def score(index: int) -> tuple[bool, int]:
            return examine(index)[0], members(*bits.parts(), index, np.empty(bits.last.shape[1], np.uint64))

        return score


@dataclass(frozen=True, slots=True)
class CustomUtility:
    """A user's whole-number function of a context's bits and its metric values in rising order.

    The function must be deterministic and safe in several threads. Numbers beyond ±(2³¹ - 1) count as those, and where
    it fails it counts as 0, since the failure would tell; its sensitivity is stated with that.

    function     says how useful a context is
    sensitivity  the most that one other record, added or removed, moves it by
    monotone     a record that joins never lowers it, or never raises it; it pays half then
    name         its name in a release; default: the module and the name of the function
    """

    function: Callable[[str, Floats], int] = field(metadata={"help": "says how useful a context is"})
    sensitivity: int = field(metadata={"help": "the most that one other record moves it by"})
    monotone: bool = field(default=False, metadata={"help": "a record that joins never lowers it, or never raises it"})
    name: str | None = field(default=None, metadata={"help": "its name in a release; default: that of the function"})

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ParameterError(f"function: a {type(self.function).__name__} cannot be called. Pass a function.")
        check_label(self.name)
        if not isinstance(self.sensitivity, int) or not 1 <= self.sensitivity <= MOST:
            raise ParameterError(f"sensitivity: {self.sensitivity!r} is outside 1 to 2^31; pass a whole number.")

    def __str__(self) -> str:
        return f"custom:{self.name or name_callable(self.function)}"

    def measure(self, table: RankedTable | CellTable) -> None:
        return None

    def score_parts(self, table: RankedTable | CellTable, parts: Iterator[Part]) -> Iterator[Part]:
        if table.space.count > ASKED:
            raise ParameterError(
                f"domain_sizes: {table.space.count} contexts are more than the {ASKED} that a function is asked to "
                "rate; name fewer values, or choose a search that asks about few."
            )
        for first, count, fill in parts:
            yield first, count, self._rate_part(table, first, fill)

    def score_single(self, table: RankedTable | CellTable, examine: Examine) -> Examine:
        def score(index: int) -> tuple[bool, int]:
            valid, _ = examine(index)
            return valid, self._rate(table, index) if valid else 0

        return score

    def _rate_part(self, table: RankedTable | CellTable, first: int, fill: Fill) -> Fill:
        def rate(start: int, valid: Bools, scores: Counts) -> None:
            fill(start, valid, scores)
            for x in np.flatnonzero(valid).tolist():
                scores[x] = self._rate(table, first + start + x)

        return rate

    def _rate(self, table: RankedTable | CellTable, index: int) -> int:
        assert isinstance(table, RankedTable)  # cells have no values, and are refused before the charge
        try:
            found = operator.index(self.function(table.space.bits(index), table.values[table.members(index)]))
        except Exception:  # noqa: BLE001 - it is not our code, and it is looking at records
            return 0
        return max(-MOST, min(MOST, found))


@dataclass(frozen=True, slots=True)
class Even(_Monotone):
    """All contexts alike."""

    def measure(self, table: RankedTable | CellTable) -> Counts:
        return np.zeros(len(table.slots), np.int32)

    def score_parts(self, table: RankedTable | CellTable, parts: Iterator[Part]) -> Iterator[Part]:
        for first, count, fill in parts:
            yield first, count, _level(fill)

    def score_single(self, table: RankedTable | CellTable, examine: Examine) -> Examine:
        return lambda index: (examine(index)[0], 0)


def _level(fill: Fill) -> Fill:
    def level(start: int, valid: Bools, scores: Counts) -> None:
        fill(start, valid, scores)
        scores[:] = 0

    return level


def select_records(table: RankedTable | CellTable, context: str) -> Bools:
    """Which records are in a context that need not contain the record in question."""
    sizes, end = table.space.sizes, 0
    if len(context) != sum(sizes) or set(context) - {"0", "1"}:
        raise ParameterError(f"context: {context!r} is not {sum(sizes)} bits; write one 0 or 1 per public value.")
    found = np.ones(len(table.slots), np.bool_)
    for attribute, (size, own) in enumerate(zip(sizes, table.space.own, strict=True)):
        part, end = context[end : end + size], end + size
        allowed = np.array([bit == "1" for bit in part[own] + part[:own] + part[own + 1 :]])
        found &= allowed[table.slots[:, attribute]]
    return found


def _replace_counts(parts: Iterator[Part], others: Iterator[Part]) -> Iterator[Part]:
    """What the first parts say of validity, with what the others count; both go through all contexts in order."""
    at = end = far = 0
    for first, count, fill in parts:
        at, end = first, first + count
        while at < end:
            if at >= far:
                begin, size, tell = next(others)
                far = begin + size
            stop = min(end, far)
            yield at, stop - at, _both(fill, at - first, _whole(tell, size), at - begin)
            at = stop


def _both(fill: Fill, shift: int, tell: Callable[[int, Counts], None], place: int) -> Fill:
    def both(start: int, valid: Bools, scores: Counts) -> None:
        fill(shift + start, valid, scores)
        tell(place + start, scores)

    return both


def _whole(fill: Fill, size: int) -> Callable[[int, Counts], None]:
    """Fills any stretch of a part of `size` contexts, where the cube gives whole leaves."""
    leaf = min(1 << LEAF, size)

    def tell(start: int, scores: Counts) -> None:
        low, high = start // leaf * leaf, -(-(start + len(scores)) // leaf) * leaf
        room = np.empty(high - low, np.int32)
        fill(low, room, room)
        scores[:] = room[start - low : start - low + len(scores)]

    return tell
