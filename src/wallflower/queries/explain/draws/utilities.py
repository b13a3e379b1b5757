"""How useful a context is, in mode ocdp: a whole number that one other record moves by no more than the sensitivity.

`Population` and `Overlap` count records, so all contexts are scored at once, and a record that joins never lowers them.
A function of the user's is asked context by context, and only where the record is an outlier.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.names import check_label, name_callable
from wallflower.queries.explain.detectors.base import CUSTOM, Examine, require_records
from wallflower.queries.explain.space.bitsets import make_bitsets, members
from wallflower.queries.explain.space.cubes import LEAF_BITS, Fill, Part, count_parts
from wallflower.queries.explain.space.tables import AnyTable, Bools, CellTable, Counts, Floats

MAX_SCORE: Final = 2**31 - 1
MAX_SCORED_BITS: Final = 20  # of an index, where a function is asked about all contexts


class Utility(ABC):
    """How useful contexts are. Scores are whole numbers within ±(2³¹ - 1)."""

    __slots__ = ()
    counts_records: ClassVar[bool] = True  # whether a score is a sum over the records of a context
    sensitivity: int = 1  # how far one other record, added or removed, moves any score
    monotone: bool = True  # whether one record that is added moves all scores in one direction

    @abstractmethod
    def measure(self, table: AnyTable) -> Counts | None:
        """Return what every record counts, or None where a score is not a sum over records."""

    @abstractmethod
    def score_parts(self, table: AnyTable, parts: Iterator[Part]) -> Iterator[Part]:
        """Return parts that fill in scores in the place of populations."""

    @abstractmethod
    def score_single(self, table: AnyTable, examine: Examine) -> Examine:
        """Return a function that examines single contexts, with scores in the place of populations."""


@dataclass(frozen=True, slots=True)
class Population(Utility):
    """The number of records that a context selects.

    >>> str(Population())
    'population'
    """

    def __str__(self) -> str:
        return "population"

    def measure(self, table: AnyTable) -> Counts:
        return table.weights

    def score_parts(self, table: AnyTable, parts: Iterator[Part]) -> Iterator[Part]:
        return parts

    def score_single(self, table: AnyTable, examine: Examine) -> Examine:
        return examine


@dataclass(frozen=True, slots=True)
class Overlap(Utility):
    """The number of records that a context shares with a public one, which need not contain the record."""

    context: str = field(metadata={"help": "the public context, one bit per value"})

    def __str__(self) -> str:
        return "overlap"

    def measure(self, table: AnyTable) -> Counts:
        return select_rows(table, self.context) * table.weights

    def score_parts(self, table: AnyTable, parts: Iterator[Part]) -> Iterator[Part]:
        return _replace_counts(parts, count_parts(table, self.measure(table)))

    def score_single(self, table: AnyTable, examine: Examine) -> Examine:
        shared = select_rows(table, self.context)
        if not shared.any():
            return lambda index: (examine(index)[0], 0)
        if isinstance(table, CellTable):
            counts = shared * table.weights
            return lambda index: (examine(index)[0], int(counts[table.members(index)].sum()))
        bits = make_bitsets(replace(table, slots=table.slots[shared], values=table.values[shared]))

        def score(index: int) -> tuple[bool, int]:
            return examine(index)[0], members(*bits.parts(), index, np.empty(bits.last.shape[1], np.uint64))

        return score


@dataclass(frozen=True, slots=True)
class CustomUtility(Utility):
    """A whole-number function of a context's bits and its metric values in rising order.

    It must be deterministic and safe in several threads. Numbers beyond ±(2³¹ - 1) count as those, and where it fails
    it counts as 0, since an error would reveal records; the sensitivity covers that too.

    function     how useful a context is
    sensitivity  the most that one other record, added or removed, moves it by
    monotone     a record that joins never lowers it, or never raises it; it pays half then
    name         name in a release; default: the module and the name of the function

    >>> str(CustomUtility(lambda bits, values: -bits.count("1"), sensitivity=1, name="few values"))
    'custom:few values'
    """

    counts_records: ClassVar[bool] = False

    function: Callable[[str, Floats], int] = field(metadata={"help": "how useful a context is"})
    sensitivity: int = field(metadata={"help": "the most that one other record moves it by"})
    monotone: bool = field(default=False, metadata={"help": "a record that joins never lowers it, or never raises it"})
    name: str | None = field(default=None, metadata={"help": "name in a release; default: that of the function"})

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ParameterError(f"function: a {type(self.function).__name__} cannot be called. Pass a function.")
        check_label(self.name)
        if not isinstance(self.sensitivity, int) or not 1 <= self.sensitivity <= MAX_SCORE:
            raise ParameterError(f"sensitivity: {self.sensitivity!r} is outside 1 to 2^31; pass a whole number.")

    def __str__(self) -> str:
        return f"{CUSTOM}:{self.name or name_callable(self.function)}"

    def measure(self, table: AnyTable) -> None:
        return None

    def score_parts(self, table: AnyTable, parts: Iterator[Part]) -> Iterator[Part]:
        if table.space.length > MAX_SCORED_BITS:
            raise ParameterError(
                f"domain_sizes: {table.space.count} contexts are more than the 2^{MAX_SCORED_BITS} that a function is "
                "asked to rate; name fewer values, or choose a search that examines few."
            )
        for first, count, fill in parts:
            yield first, count, self._score_part(table, first, fill)

    def score_single(self, table: AnyTable, examine: Examine) -> Examine:
        def score(index: int) -> tuple[bool, int]:
            valid, _ = examine(index)
            return valid, self._score(table, index) if valid else 0

        return score

    def _score_part(self, table: AnyTable, first: int, fill: Fill) -> Fill:
        def score(start: int, valid: Bools, scores: Counts) -> None:
            fill(start, valid, scores)
            for x in np.flatnonzero(valid).tolist():
                scores[x] = self._score(table, first + start + x)

        return score

    def _score(self, table: AnyTable, index: int) -> int:
        values, _ = require_records(table).select(index)
        try:
            score = operator.index(self.function(table.space.bits(index), values))
        except Exception:  # noqa: BLE001 - code of the user's that sees records: its error would reveal them
            return 0
        return max(-MAX_SCORE, min(MAX_SCORE, score))


@dataclass(frozen=True, slots=True)
class Even(Utility):
    """The same score for all contexts, for even draws."""

    def measure(self, table: AnyTable) -> Counts:
        return np.zeros(len(table.slots), np.int32)

    def score_parts(self, table: AnyTable, parts: Iterator[Part]) -> Iterator[Part]:
        def level(fill: Fill) -> Fill:
            def fill_zeros(start: int, valid: Bools, scores: Counts) -> None:
                fill(start, valid, scores)
                scores[:] = 0

            return fill_zeros

        for first, count, fill in parts:
            yield first, count, level(fill)

    def score_single(self, table: AnyTable, examine: Examine) -> Examine:
        return lambda index: (examine(index)[0], 0)


def select_rows(table: AnyTable, context: str) -> Bools:
    """Return which rows are in a context that need not contain the record in question."""
    sizes, end = table.space.sizes, 0
    if len(context) != sum(sizes) or set(context) - {"0", "1"}:
        raise ParameterError(f"context: {context!r} is not {sum(sizes)} bits; write one 0 or 1 per public value.")
    chosen = np.ones(len(table.slots), np.bool_)
    for attribute, (size, own) in enumerate(zip(sizes, table.space.own, strict=True)):
        part, end = context[end : end + size], end + size
        allowed = np.array([bit == "1" for bit in part[own] + part[:own] + part[own + 1 :]])
        chosen &= allowed[table.slots[:, attribute]]
    return chosen


def _replace_counts(parts: Iterator[Part], counted: Iterator[Part]) -> Iterator[Part]:
    """Return the validity of the first parts with the counts of the others; both go through all contexts in order."""
    begin = end = 0
    for first, count, fill in parts:
        at = first
        while at < first + count:
            if at >= end:
                begin, size, fill_counts = next(counted)
                end = begin + size
            stop = min(first + count, end)
            yield at, stop - at, _fill_both(fill, at - first, _fill_any_stretch(fill_counts, size), at - begin)
            at = stop


def _fill_both(fill: Fill, shift: int, fill_scores: Callable[[int, Counts], None], start_of_scores: int) -> Fill:
    def fill_both(start: int, valid: NDArray[np.bool_], scores: Counts) -> None:
        fill(shift + start, valid, scores)
        fill_scores(start_of_scores + start, scores)

    return fill_both


def _fill_any_stretch(fill: Fill, size: int) -> Callable[[int, Counts], None]:
    """Return what fills any stretch of a part of `size` contexts, where the cube gives whole leaves."""
    leaf = min(1 << LEAF_BITS, size)

    def fill_scores(start: int, scores: Counts) -> None:
        low, high = start // leaf * leaf, -(-(start + len(scores)) // leaf) * leaf
        whole = np.empty(high - low, np.int32)
        fill(low, whole, whole)
        scores[:] = whole[start - low : start - low + len(scores)]

    return fill_scores
