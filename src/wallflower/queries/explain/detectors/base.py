"""What a detector is. Derive a new one from the class that promises most:

Detector            any rule; asked about one context at a time
RecordDetector      looks at the records around one of them, as bits in order of the metric
CellDetector        decides from counts and sums by cell: all contexts at once, on any engine
MarginDetector      has a margin, so that mode dp can use it
CellMarginDetector  both: `divide` and `rule` say it all

`outlier(values, index)` is the reference that every faster method obeys to the last bit. It depends on the values as a
multiset: no order of rows may change it. Contexts hold the record itself, so `values` always contains `values[index]`.
A class that lacks a method cannot be instantiated, and mypy says so; CONTRIBUTING.md shows how to add one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar, Final, Self, get_type_hints

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.names import name_callable
from wallflower.queries.explain.space.bitsets import Bitsets, make_bitsets, members
from wallflower.queries.explain.space.cubes import MAX_BITS, Part, Walk, count_parts, sum_leaves, walk_parts
from wallflower.queries.explain.space.tables import (
    MAX_METRIC,
    AnyTable,
    Bools,
    CellTable,
    Counts,
    Division,
    Floats,
    RankedTable,
)
from wallflower.schema import Column
from wallflower.text import Message, t

Examine = Callable[[int], tuple[bool, int]]  # a context, by index: whether it is valid, and its population
Judge = Callable[[Bools], bool]  # cells that a context selects: whether the record is an outlier among their records
Look = Callable[[int, Bools, Counts], None]  # fills in validity from an index on, where populations are known

CUSTOM: Final = "custom"
KEPT_CONTEXTS: Final = 1 << 24  # results for up to this many are kept; beyond, they are reduced block by block
TOTALS_PER_CHUNK: Final = 1 << 22  # numbers that a rule sees at a time
DEFAULT_POINTS: Final = 101  # of a grid, or edges of bins, between the public bounds of the metric
MAX_POINTS: Final = 4096
MIN_SECONDS: Final = 0.1  # of any look at the records


@dataclass(frozen=True)
class Detector(ABC):
    """Says whether one record is an outlier among others; deterministic, and indifferent to the order of records.

    Subclasses are frozen dataclasses whose fields are the settings. This base asks `outlier` about one context after
    the other, which a few contexts can afford; a failure counts as no outlier, since an error would reveal records.
    """

    __slots__ = ()

    kind: ClassVar[str] = CUSTOM
    nanoseconds_per_context: ClassVar[float] = 100_000.0  # on two cores
    examines_all: ClassVar[bool] = False  # whether there is a faster way than one context after the other
    max_bits: ClassVar[int] = 20  # of an index, where all contexts are examined

    @abstractmethod
    def outlier(self, values: Floats, index: int, /) -> bool:
        """Return whether the record at `index` is an outlier among `values`."""

    @classmethod
    @abstractmethod
    def examples(cls) -> tuple[Self, ...]:
        """Return detectors for tiny tables with a metric from 0 to 10; the contract suite attacks each of them."""

    # Settings as text

    @classmethod
    def parameters(cls) -> Mapping[str, Any]:
        """Return the settings that the text form takes, with their types."""
        return _field_types(cls)

    @classmethod
    def from_settings(cls, settings: dict[str, Any], metric: Column, size: int) -> Self:
        """Make the detector that text describes, for a metric with these public facts and up to `size` records."""
        required = (item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING)
        missing = [name for name in required if name not in settings]
        if missing:
            raise ParameterError(f"detector: {cls.kind} needs {', '.join(missing)}; write {cls.kind}:{missing[0]}=...")
        return cls(**settings)

    def __str__(self) -> str:
        """Return the detector as text; code of the user's is only named."""
        if self.kind == CUSTOM:
            return f"{CUSTOM}:{name_callable(type(self))}"
        changed = [item.name for item in fields(self) if getattr(self, item.name) != item.default]
        settings = ",".join(f"{name}={_format_value(getattr(self, name))}" for name in changed)
        return f"{self.kind}:{settings}" if settings else self.kind

    # Public facts: they depend on the settings alone, and are checked before the charge

    def check_size(self, size: int) -> None:  # noqa: B027 - most detectors serve tables of any size
        """Refuse tables of up to `size` records if the detector cannot serve them."""

    def flags_everyone(self, size: int) -> bool:
        """Return whether every record is an outlier in every table of up to `size` records."""
        return False

    @classmethod
    def estimate_seconds(cls, contexts: int, n: int) -> float:
        """Estimate how long two cores take to examine `contexts` contexts of `n` records."""
        return MIN_SECONDS + contexts * cls.nanoseconds_per_context / 1e9

    def max_singles(self, contexts: int) -> int:
        """Return the number of contexts to examine one by one before examining all at once is faster."""
        return contexts

    def can_examine_all(self, contexts: int) -> bool:
        """Return whether all contexts can be examined at once and the results kept."""
        return self.examines_all and contexts <= KEPT_CONTEXTS

    # What looks at records

    def prepare(self, table: AnyTable) -> AnyTable:
        """Return the table in the form that the detector works on, to be prepared once and used often."""
        return table

    def sweep(self, table: AnyTable) -> Iterator[Part]:
        """Return all contexts in parts that fill in validity and populations, for `run_in_blocks`."""
        examine = self.examine(table)
        if table.space.length > self.max_bits:
            raise ParameterError(
                f"domain_sizes: {table.space.count} contexts are more than the 2^{self.max_bits} that a detector "
                "without an engine is asked about; name fewer values, or choose a search that examines few."
            )

        def fill(start: int, valid: Bools, populations: Counts) -> None:
            for x in range(len(valid)):
                valid[x], populations[x] = examine(start + x)

        yield 0, table.space.count, fill

    def examine(self, table: AnyTable) -> Examine:
        """Return a function that examines single contexts, for searches that ask about few."""
        ranked = require_records(table)

        def examine(index: int) -> tuple[bool, int]:
            values, position = ranked.select(index)
            return self.try_outlier(values, position), len(values)

        return examine

    def try_outlier(self, values: Floats, index: int) -> bool:
        """Return what `outlier` says, and False where it fails."""
        try:
            return bool(self.outlier(values, index))
        except Exception:  # noqa: BLE001 - code of the user's that sees records: its error would reveal them
            return False


class RecordDetector(Detector):
    """Looks at the members of a context around the record: they are next to it in order of the metric."""

    __slots__ = ()
    examines_all: ClassVar[bool] = True
    max_bits: ClassVar[int] = MAX_BITS
    reference_records: ClassVar[int] = 51_000  # of the table that `nanoseconds_per_context` was measured on

    @abstractmethod
    def look(self, table: RankedTable, bits: Bitsets) -> Look:
        """Return a function that fills in validity from an index on, where populations are known."""

    @classmethod
    def estimate_seconds(cls, contexts: int, n: int) -> float:
        growth = max(0.2, n / cls.reference_records)  # rows of bits grow with the table
        return MIN_SECONDS + contexts * cls.nanoseconds_per_context * growth / 1e9

    def max_singles(self, contexts: int) -> int:
        return contexts // 256

    def sweep(self, table: AnyTable) -> Iterator[Part]:
        """Take populations from a cube, then look at the members' bits."""
        ranked = require_records(table)
        look = self.look(ranked, make_bitsets(ranked))
        for first, count, fill in count_parts(ranked, ranked.weights):
            yield first, count, _look_after(fill, look, first)

    def examine(self, table: AnyTable) -> Examine:
        ranked = require_records(table)
        bits = make_bitsets(ranked)
        look = self.look(ranked, bits)

        def examine(index: int) -> tuple[bool, int]:
            population = members(*bits.parts(), index, np.empty(bits.last.shape[1], np.uint64))
            valid = np.empty(1, np.bool_)
            look(index, valid, np.array([population], np.int32))
            return bool(valid[0]), population

        return examine


class CellDetector(Detector):
    """Decides from counts and sums by cell, so that every engine can keep the table."""

    __slots__ = ()
    examines_all: ClassVar[bool] = True
    max_bits: ClassVar[int] = MAX_BITS

    @abstractmethod
    def divide(self) -> Division:
        """Return how the metric is divided, and which numbers are added up."""

    @abstractmethod
    def judge(self, table: CellTable) -> Judge:
        """Return a function that decides about a single context, by the cells that it selects."""

    @abstractmethod
    def sweep_cells(self, table: CellTable) -> Iterator[Part]:
        """Return all contexts in parts that fill in validity and populations."""

    def max_singles(self, contexts: int) -> int:
        return 16

    def prepare(self, table: AnyTable) -> CellTable:
        return table.by_cells(self.divide())

    def sweep(self, table: AnyTable) -> Iterator[Part]:
        return self.sweep_cells(self.prepare(table))

    def examine(self, table: AnyTable) -> Examine:
        cells = self.prepare(table)
        judge, weights = self.judge(cells), cells.weights

        def examine(index: int) -> tuple[bool, int]:
            chosen = cells.members(index)
            return judge(chosen), int(weights[chosen].sum())

        return examine


class MarginDetector(Detector):
    """Has a margin: how many other records would have to change before the record is no outlier.

    A margin is positive only where the record is an outlier, and one other record that joins or leaves moves it by at
    most 1, in every context at once.  (M)  Mode dp draws contexts by it.
    """

    __slots__ = ()

    @abstractmethod
    def margins(self, table: AnyTable) -> Iterator[Part]:
        """Return all contexts in parts that fill in margins and populations, for `run_in_blocks`."""

    @abstractmethod
    def greatest_margins(self, populations: Floats) -> Floats:
        """Return the greatest margin that contexts of these populations can have, whatever the records are.  (U)"""

    @abstractmethod
    def rounding(self, own: float) -> float:
        """Return an e such that one other record moves computed margins by 1 + 2e at most, where the record's metric
        is `own`. Sums may run in any order.  (F)"""

    def max_rounding(self) -> float:
        """Return the greatest rounding for any record."""
        return self.rounding(0.0)

    def replacement(self) -> Fraction | None:
        """Return how far one record that is *replaced* moves a margin, but for rounding; None: no better bound is
        proved than that one record leaves and another joins.  (X)"""
        return None

    def expected_margins(self, populations: Floats, clear: float) -> Floats:
        """Return the margins that a plan assumes: a share of the context, as far as the detector allows."""
        return np.minimum(clear * populations, self.greatest_margins(populations))

    def assumption(self, clear: float) -> Message:
        """Say what `expected_margins` assumes."""
        return t(
            "the record stands out by {share:.3g} % of a context, or as far as {detector} lets any",
            share=100 * clear,
            detector=str(self).partition(":")[0],
        )

    def caution(self) -> Message | None:
        """Say what the guarantee rests on beside our proof, if on anything."""
        return None


@dataclass(frozen=True, slots=True)
class Rule:
    """How margins follow from totals over the cells of a context.

    counts   whole numbers to add up, one row per measure and one column per cell; the first row is `table.weights`
    sums     real numbers to add up
    margins  the margins of contexts, from their totals: arrays with the same rows and one column per context
    """

    counts: Counts
    sums: Floats
    margins: Callable[[NDArray[Any], Floats], Floats]


class CellMarginDetector(CellDetector, MarginDetector):
    """A margin by cells. The record is an outlier exactly where the margin is positive, unless a subclass decides
    otherwise with `judge` and `sweep_cells`."""

    __slots__ = ()

    @abstractmethod
    def rule(self, table: CellTable) -> Rule:
        """Return what is added up by cell, and how margins follow from the totals."""

    def judge(self, table: CellTable) -> Judge:
        rule = self.rule(table)

        def judge(chosen: Bools) -> bool:
            counts = rule.counts[:, chosen].sum(axis=1, dtype=np.int64, keepdims=True)
            return bool(rule.margins(counts, rule.sums[:, chosen].sum(axis=1, keepdims=True))[0] > 0)

        return judge

    def sweep_cells(self, table: CellTable) -> Iterator[Part]:
        return _apply_rule(table, self.rule(table), lambda margins, valid: np.greater(margins, 0, out=valid))

    def margins(self, table: AnyTable) -> Iterator[Part]:
        cells = self.prepare(table)
        return _apply_rule(cells, self.rule(cells), lambda margins, outcomes: np.copyto(outcomes, margins))


def require_records(table: AnyTable) -> RankedTable:
    """Return a table of records. Tables by cells are refused before the charge, so this cannot fail after it."""
    if isinstance(table, CellTable):
        raise ParameterError("detector: it needs single records, and an engine keeps this table by cells.")
    return table


def _look_after(fill: Callable[[int, NDArray[Any], Counts], None], look: Look, first: int) -> Look:
    def count_and_look(start: int, valid: Bools, populations: Counts) -> None:
        fill(start, valid, populations)
        look(first + start, valid, populations)

    return count_and_look


def _apply_rule(table: CellTable, rule: Rule, write: Callable[[Floats, NDArray[Any]], object]) -> Iterator[Part]:
    """Add up what a rule needs, some leaves at a time, and write what its margins say."""
    rows = len(rule.counts) + len(rule.sums)

    def work(_: int, walk: Walk, outcomes: NDArray[Any], populations: Counts) -> None:
        cube, (first, last, length) = walk[:6], walk[6:]
        step = max(1, TOTALS_PER_CHUNK // (rows * length))
        for leaf in range(first, last, step):
            stop = min(leaf + step, last)
            here = slice((leaf - first) * length, (stop - first) * length)
            contexts = here.stop - here.start
            counts, sums = np.empty((len(rule.counts), contexts), np.int32), np.empty((len(rule.sums), contexts))
            sum_leaves(*cube, leaf, stop, length, counts, sums)
            populations[here] = counts[0]
            write(rule.margins(counts, sums), outcomes[here])

    return walk_parts(table, rule.counts, rule.sums, work)


# Checks and text that detectors share


def check_setting(name: str, value: object, fits: bool, allowed: str, remedy: str) -> None:
    """Refuse a setting that does not fit."""
    if not fits:
        raise ParameterError(f"{name}: {value!r} is outside {allowed}; {remedy}.")


def check_fraction(fraction: float) -> None:
    """Refuse what is not a share."""
    check_setting("fraction", fraction, 0 < fraction < 1, "0 to 1", "pass a small share such as 0.0025")


def check_bounds(low: float, high: float) -> None:
    """Refuse bounds of the metric that are not in order."""
    fits = -MAX_METRIC <= low < high <= MAX_METRIC
    check_setting("low, high", (low, high), fits, "-1e100 to 1e100", "pass low < high")


def check_rising(name: str, points: tuple[float, ...]) -> None:
    """Refuse points that do not rise."""
    rising = len(points) >= 2 and all(np.diff(points) > 0) and -MAX_METRIC <= points[0] <= points[-1] <= MAX_METRIC
    check_setting(name, points if len(points) < 9 else "it", rising, "rising numbers within ±1e100", "pass two or more")


def public_bounds(name: str, settings: Mapping[str, Any], metric: Column) -> tuple[float, float]:
    """Return the bounds of the metric, as the settings state them, or else the schema."""
    low, high = settings.get("low", metric.low), settings.get("high", metric.high)
    if low is None or high is None or not low < high:
        raise ParameterError(
            f"detector: {name} needs public bounds of {metric.name}. State low and high of {metric.name} in the "
            f"domain file, or write {name}:low=0,high=500000."
        )
    return float(low), float(high)


GRID_PARAMETERS: Final[Mapping[str, type]] = {"low": float, "high": float, "points": int}


def fill_grid(name: str, field: str, settings: dict[str, Any], metric: Column) -> dict[str, Any]:
    """Return the settings with a grid in `field`: as stated, or `points` points between the bounds of the metric."""
    bounds = {key: settings.pop(key) for key in GRID_PARAMETERS if key in settings}
    if field in settings:
        return settings
    low, high = public_bounds(name, bounds, metric)
    points = bounds.get("points", DEFAULT_POINTS)
    if not 2 <= points <= MAX_POINTS:
        raise ParameterError(f"detector: points must be from 2 to {MAX_POINTS}, not {points}.")
    return settings | {field: tuple(np.linspace(low, high, points).tolist())}


@cache
def _field_types(cls: type[Detector]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {item.name: hints[item.name] for item in fields(cls)}


def _format_value(value: Any) -> str:
    return "/".join(map(repr, value)) if isinstance(value, tuple) else str(value)
