"""Every context in which a record is an outlier, without sampling.

All engines work through the contexts in blocks, on all cores, and forget a block once it is reduced: a table with 2³²
contexts needs no more memory than one with 2²². Detectors without an engine of their own are asked context by context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    Detector,
    Distance,
    FixedBins,
    Grubbs,
    Histogram,
    Lof,
    Tukey,
    kappas_of,
)
from wallflower.queries.explain.engines.lof import thin
from wallflower.queries.explain.engines.sums import beyond, fences, judge_of, near, nothing
from wallflower.queries.explain.space.bitsets import Bitsets, bitsets, members, sparse
from wallflower.queries.explain.space.blocks import Part, Walk, in_blocks, walk_parts
from wallflower.queries.explain.space.cells import CellTable, cells_of, is_divided
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.cube import Bools, Counts, Ints, far, few, sums_of
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable, rank_table

T = TypeVar("T")
Look = Callable[[int, Bools, Counts], None]  # fills in validity from an index on, where populations are known

HELD: Final = 1 << 24  # results for so many contexts are kept; beyond, they are reduced block by block
NEVER: Final = 2.0  # (Σz)² is at most Σz² for two records, of which one is the record itself
ASKED: Final = 1 << 20  # a detector without an engine is asked about at most so many contexts


@dataclass(frozen=True, slots=True)
class Evaluation:
    """For every context, by index: whether the record is an outlier in it, and how many records it selects."""

    space: Space
    valid: Bools
    populations: Counts

    def contexts(self) -> dict[str, int]:
        """The valid contexts and their populations."""
        return {self.space.bits(at): int(self.populations[at]) for at in np.flatnonzero(self.valid).tolist()}


def valid_contexts(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> dict[str, int]:
    """The contexts that contain the record and in which it is an outlier, each with its population.

    >>> codes, metric = [[0], [0], [0], [1], [1], [1]], [1.0, 2.0, 9.0, 8.0, 9.0, 9.5]
    >>> valid_contexts(codes, [2], metric, 2, Distance(k=1, radius=1.0))
    {'10': 3}
    """
    return evaluate(codes, domain_sizes, metric, record, detector).contexts()


def evaluate(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> Evaluation:
    """Examine all contexts and keep what was found, for up to 2²⁴ of them."""
    table = rank_table(codes, domain_sizes, metric, record)
    if table.space.count > HELD:
        raise ParameterError(
            f"domain_sizes: {table.space.count} contexts are more than the {HELD} that can be kept; "
            "name fewer values, or reduce them block by block with `sweep`."
        )
    valid, populations = np.empty(table.space.count, np.bool_), np.empty(table.space.count, np.int32)

    def keep(first: int, here: Bools, counts: Counts) -> None:
        valid[first : first + len(here)], populations[first : first + len(here)] = here, counts

    for _ in sweep(table, detector, keep):
        pass
    return Evaluation(table.space, valid, populations)


def by_population(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> Ints:
    """How many valid contexts there are of every population from 0 to the number of records; any number of contexts."""
    table = rank_table(codes, domain_sizes, metric, record)
    total = np.zeros(table.n + 1, np.int64)

    def tally(first: int, valid: Bools, populations: Counts) -> Ints:
        found = np.zeros(table.n + 1, np.int64)
        _tally(valid, populations, found)
        return found

    for found in sweep(table, detector, tally):
        total += found
    return total


def sweep(table: RankedTable | CellTable, detector: Detector, reduce: Callable[[int, Bools, Counts], T]) -> Iterator[T]:
    """Examine all contexts in blocks; yields what `reduce(first index, valid, populations)` says, block after block.

    `reduce` runs in the thread that examined the block, and must copy what it wants to keep.
    """
    return in_blocks(table.space, parts(table, detector), np.bool_, reduce)


def parts(table: RankedTable | CellTable, detector: Detector) -> Iterator[Part]:
    """All contexts in parts that fill in validity and populations, for `in_blocks`."""
    return ENGINES.get(type(detector), _ask_each)(
        cells_of(table, detector) if is_divided(detector) else table, detector
    )


def ask(detector: Detector, values: Floats, index: int) -> bool:
    """What a detector without an engine says; where it fails it found no outlier, since the failure would tell."""
    try:
        return bool(detector.outlier(values, index))
    except Exception:  # noqa: BLE001 - it is not our code, and it is looking at records
        return False


def examiner(table: RankedTable | CellTable, detector: Detector) -> Callable[[int], tuple[bool, int]]:
    """Answers about single contexts, for searches that ask about few: whether one is valid, and its population."""
    if is_divided(detector):
        return _by_cells(cells_of(table, detector), detector)
    assert isinstance(table, RankedTable)
    return _by_records(table, detector)


def _by_cells(table: CellTable, detector: Detector) -> Callable[[int], tuple[bool, int]]:
    judge, weights = judge_of(table, detector), table.weights

    def examine(index: int) -> tuple[bool, int]:
        chosen = table.members(index)
        return judge(chosen), int(weights[chosen].sum())

    return examine


def _by_records(table: RankedTable, detector: Detector) -> Callable[[int], tuple[bool, int]]:
    bits, place = bitsets(table), table.record
    look = LOOKS[type(detector)](table, bits, detector) if type(detector) in LOOKS else None

    def examine(index: int) -> tuple[bool, int]:
        words = np.empty(bits.last.shape[1], np.uint64)
        population = members(*bits.parts(), index, words)
        if look:
            valid = np.empty(1, np.bool_)
            look(index, valid, np.array([population], np.int32))
            return bool(valid[0]), population
        chosen = np.unpackbits(words.view(np.uint8), bitorder="little", count=table.n).view(np.bool_)
        return ask(detector, table.values[chosen], int(np.count_nonzero(chosen[:place]))), population

    return examine


@kernel
def _tally(valid: Bools, populations: Counts, found: Ints) -> None:
    for x in range(len(valid)):
        found[populations[x]] += valid[x]


def _by_moments(table: CellTable, detector: Grubbs | ClampedGrubbs) -> Iterator[Part]:
    """Grubbs: sums of z = x_V - x, so that nothing large cancels, and one comparison per context."""
    tie, judge = 1e-9 + 1e-14 * table.n, judge_of(table, detector)

    def work(first: int, walk: Walk, valid: Bools, populations: Counts) -> None:
        sums = np.empty((2, len(valid)))
        sums_of(*walk, populations[None], sums)
        kappa = np.where(populations > 2, kappas_of(detector.alpha, populations), NEVER)
        if far(sums, kappa, tie, valid):
            begin, square, bound = first + walk[-3] * walk[-1], sums[0] * sums[0], kappa * sums[1]
            for at in np.flatnonzero(np.abs(square - bound) < tie * bound).tolist():
                valid[at] = judge(table.members(begin + at))

    return walk_parts(table, table.weights[None], table.sums, work)


def _by_counts(table: CellTable, detector: Distance | FixedBins) -> Iterator[Part]:
    """Distance and fixed bins: how many are near the record, against a limit per population."""

    def work(_: int, walk: Walk, valid: Bools, populations: Counts) -> None:
        few(*walk, *detector.limit, valid, populations)

    return walk_parts(table, near(table), nothing(len(table.slots)), work)


def _by_quartiles(table: CellTable, detector: Tukey) -> Iterator[Part]:
    whole, pairs = fences(table, detector)

    def work(_: int, walk: Walk, valid: Bools, populations: Counts) -> None:
        margins = np.empty(len(valid))
        beyond(*walk, *pairs, margins, populations)
        np.greater(margins, 0, out=valid)

    return walk_parts(table, whole, nothing(len(table.slots)), work)


def _by_bits(table: RankedTable, look: Look) -> Iterator[Part]:
    """Populations from a cube, then a look at the members' bits."""

    def work(first: int, walk: Walk, valid: Bools, populations: Counts) -> None:
        start, leaf = walk[-3], walk[-1]
        sums_of(*walk, populations[None], nothing(len(valid)))
        look(first + start * leaf, valid, populations)

    return walk_parts(table, np.ones((1, table.n), np.int32), nothing(table.n), work)


def _by_bins(table: RankedTable, detector: Histogram) -> Iterator[Part]:
    return _by_bits(table, _bins(table, bitsets(table), detector))


def _by_density(table: RankedTable, detector: Lof) -> Iterator[Part]:
    return _by_bits(table, _density(table, bitsets(table), detector))


def _bins(table: RankedTable, bits: Bitsets, detector: Histogram) -> Look:
    def look(begin: int, valid: Bools, populations: Counts) -> None:
        sparse(*bits.parts(), begin, table.values, table.record, detector.fraction, populations, valid)

    return look


def _density(table: RankedTable, bits: Bitsets, detector: Lof) -> Look:
    k, threshold = detector.k, detector.threshold

    def look(begin: int, valid: Bools, populations: Counts) -> None:
        thin(*bits.parts(), begin, table.values, table.record, k, threshold, populations, valid)

    return look


def _ask_each(table: RankedTable, detector: Detector) -> Iterator[Part]:
    if table.space.count > ASKED:
        raise ParameterError(
            f"domain_sizes: {table.space.count} contexts are more than the {ASKED} that a detector without an engine "
            "is asked about; name fewer values, or choose a search that asks about few."
        )

    def fill(start: int, valid: Bools, populations: Counts) -> None:
        for x in range(len(valid)):
            inside = table.members(start + x)
            populations[x] = np.count_nonzero(inside)
            place = int(np.count_nonzero(inside[: table.record]))
            valid[x] = ask(detector, table.values[inside], place)

    yield 0, table.space.count, fill


ENGINES: Final[dict[type, Callable[[Any, Any], Iterator[Part]]]] = {
    Grubbs: _by_moments,
    ClampedGrubbs: _by_moments,
    Distance: _by_counts,
    FixedBins: _by_counts,
    Histogram: _by_bins,
    Lof: _by_density,
    Tukey: _by_quartiles,
}

LOOKS: Final[dict[type, Callable[[RankedTable, Bitsets, Any], Look]]] = {Histogram: _bins, Lof: _density}
