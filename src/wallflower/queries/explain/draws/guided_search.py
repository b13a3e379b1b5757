"""A search for slow detectors: ask about contexts in falling order of their noisy population.

Every record lies in one cell, a combination of values, so noise that is added once to every cell's count hides one
record in all populations together. What follows looks at the noisy counts and at validity only: any number of contexts
may be compared, asked about and released for the same price.
"""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.errors import ParameterError
from wallflower.noise import Noise, draws
from wallflower.queries.explain.detectors import Detector
from wallflower.queries.explain.draws.utilities import Utility
from wallflower.queries.explain.engines.sums import nothing
from wallflower.queries.explain.exact import examiner
from wallflower.queries.explain.space.blocks import Walk, in_blocks, walk_parts
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.cube import Counts, Ints, sums_of
from wallflower.queries.explain.space.ranked_table import RankedTable

CELLS: Final = 1 << 20


def guided_search(
    table: RankedTable | CellTable,
    detector: Detector,
    utility: Utility,
    *,
    epsilon: Fraction,
    evaluations: int,
    top: int,
    noise: Noise,
) -> list[int]:
    """The `top` valid contexts with the highest noisy scores among the `evaluations` highest; fewer if fewer are valid.

    Costs `epsilon` between tables with the same valid contexts, whatever `evaluations` and `top` are.
    """
    found: list[int] = []
    order = _highest(_noisy(table, utility, epsilon, noise), evaluations)
    examine = examiner(table, detector)
    with progress.steps("asking the detector", evaluations) as step:
        for index in order.tolist():
            found += [index] if examine(index)[0] else []
            step()
            if len(found) == top:
                break
    return found


def _noisy(
    table: RankedTable | CellTable, utility: Utility, epsilon: Fraction, noise: Noise
) -> tuple[RankedTable, Counts]:
    """Cells as if they were records, and their noisy counts: what is used of the data beside validity."""
    shape = tuple(others + 1 for others in table.space.free)
    if prod(shape) > CELLS:
        raise ParameterError(
            f"domain_sizes: {prod(shape)} combinations of values are more than the {CELLS} that noise is added to; "
            "name fewer values, or choose another search."
        )
    slots = np.stack(np.unravel_index(np.arange(prod(shape)), shape), axis=1).astype(np.int64)
    cells = RankedTable(table.space, slots, np.zeros(len(slots)), 0)
    wanted = utility.measure(cells)
    if wanted is None:
        raise ParameterError("utility: guided search needs one that counts records; choose direct or another.")
    place = np.ravel_multi_index(tuple(table.slots.T), shape)
    counts = np.bincount(place, weights=table.weights, minlength=len(slots)).astype(np.int64)
    most = (2**31 - 1) // len(slots)
    noisy = np.clip(counts + draws(noise, "laplace", 1 / epsilon, len(slots)), -most, most)
    return cells, (noisy * wanted).astype(np.int32)


def _highest(noisy: tuple[RankedTable, Counts], most: int) -> Ints:
    """The contexts with the highest noisy scores, falling; the lower index first where scores are equal."""
    cells, counts = noisy

    def work(_: int, walk: Walk, outcomes: NDArray[Any], scores: Counts) -> None:
        sums_of(*walk, scores[None], nothing(len(scores)))

    def best(first: int, outcomes: NDArray[Any], scores: Counts) -> tuple[Ints, Counts]:
        kept = _highest_places(scores, np.arange(len(scores)), most)
        return first + kept, scores[kept]

    indices, scores = np.empty(0, np.int64), np.empty(0, np.int32)
    for more, found in in_blocks(cells.space, walk_parts(cells, counts[None], nothing(cells.n), work), np.bool_, best):
        indices, scores = np.append(indices, more), np.append(scores, found)
        kept = _highest_places(scores, indices, most)
        indices, scores = indices[kept], scores[kept]
    return indices


def _highest_places(scores: Counts, indices: Ints, most: int) -> Ints:
    """The places of the highest scores in falling order."""
    if len(scores) > most:
        least = np.partition(scores, len(scores) - most)[len(scores) - most]
        kept = np.flatnonzero(scores >= least)
    else:
        kept = np.arange(len(scores))
    return kept[np.lexsort((indices[kept], -scores[kept].astype(np.int64)))][:most]
