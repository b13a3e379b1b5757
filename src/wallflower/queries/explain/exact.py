"""Every context in which a record is an outlier, and every margin, without sampling and without privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import ParameterError
from wallflower.queries.explain.detectors.base import KEPT_CONTEXTS, Detector, MarginDetector
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.cubes import run_in_blocks
from wallflower.queries.explain.space.tables import AnyTable, Bools, Counts, Floats, Ints, rank_table

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Whether the record is an outlier in each context, by index, and how many records the context selects."""

    space: Space
    valid: Bools
    populations: Counts

    def contexts(self) -> dict[str, int]:
        """Return the valid contexts and their populations."""
        return {self.space.bits(index): int(self.populations[index]) for index in np.flatnonzero(self.valid).tolist()}


def valid_contexts(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> dict[str, int]:
    """Return the contexts in which the record is an outlier, each with its population.

    >>> from wallflower.queries.explain.detectors import Distance
    >>> codes, metric = [[0], [0], [0], [1], [1], [1]], [1.0, 2.0, 9.0, 8.0, 9.0, 9.5]
    >>> valid_contexts(codes, [2], metric, 2, Distance(k=1, radius=1.0))
    {'10': 3}
    """
    return evaluate(codes, domain_sizes, metric, record, detector).contexts()


def evaluate(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> Evaluation:
    """Examine all contexts and keep the results, for up to 2²⁴ of them."""
    table = rank_table(codes, domain_sizes, metric, record)
    require_kept(table.space)
    return Evaluation(table.space, *keep_blocks(table.space, np.bool_, lambda keep: sweep(table, detector, keep)))


def count_by_population(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> Ints:
    """Return the number of valid contexts of every population from 0 to the number of records."""
    table = rank_table(codes, domain_sizes, metric, record)

    def count(_: int, valid: Bools, populations: Counts) -> Ints:
        return np.bincount(populations[valid], minlength=table.n + 1)

    return sum(sweep(table, detector, count), start=np.zeros(table.n + 1, np.int64))


def sweep(table: AnyTable, detector: Detector, reduce: Callable[[int, Bools, Counts], T]) -> Iterator[T]:
    """Examine all contexts in blocks, and yield `reduce(first index, valid, populations)` of each, in order."""
    return run_in_blocks(table.space, detector.sweep(table), np.bool_, reduce)


def margin(
    codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int, detector: Detector
) -> dict[str, float]:
    """Return the margin of every context that contains the record.

    >>> from wallflower.queries.explain.detectors import Distance
    >>> codes, metric = [[0], [0], [0], [1], [1], [1]], [1.0, 2.0, 9.0, 8.0, 9.0, 9.5]
    >>> margin(codes, [2], metric, 2, Distance(k=1, radius=1.0))
    {'10': 1.0, '11': -2.0}
    """
    table = rank_table(codes, domain_sizes, metric, record)
    return {table.space.bits(index): value for index, value in enumerate(margins(table, detector)[0].tolist())}


def margins(table: AnyTable, detector: Detector) -> tuple[Floats, Counts]:
    """Return the margins and populations of all contexts by index, for up to 2²⁴ of them."""
    require_kept(table.space)
    return keep_blocks(table.space, np.float64, lambda keep: margins_in_blocks(table, detector, keep))


def margins_in_blocks(table: AnyTable, detector: Detector, reduce: Callable[[int, Floats, Counts], T]) -> Iterator[T]:
    """Compute all margins in blocks, and yield `reduce(first index, margins, populations)` of each, in order."""
    if not isinstance(detector, MarginDetector):
        raise ParameterError(f"detector: {type(detector).__name__} has no margin; choose one that has.")
    return run_in_blocks(table.space, detector.margins(table), np.float64, reduce)


def keep_blocks(
    space: Space, dtype: type, run: Callable[[Callable[[int, NDArray[Any], Counts], None]], Iterator[None]]
) -> tuple[NDArray[Any], Counts]:
    """Return all outcomes and populations, by index."""
    outcomes: NDArray[Any] = np.empty(space.count, dtype)
    populations = np.empty(space.count, np.int32)

    def keep(first: int, here: NDArray[Any], counts: Counts) -> None:
        outcomes[first : first + len(here)], populations[first : first + len(here)] = here, counts

    for _ in run(keep):
        pass
    return outcomes, populations


def require_kept(space: Space) -> None:
    """Refuse more contexts than can be kept."""
    if space.count > KEPT_CONTEXTS:
        raise ParameterError(
            f"domain_sizes: {space.count} contexts are more than the {KEPT_CONTEXTS} that can be kept; "
            "name fewer values, or reduce them block by block."
        )
