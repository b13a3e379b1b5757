"""Contexts drawn from the exponential mechanism over all of them, exactly.

Scores are whole numbers, so it is enough to count contexts by score: a score is drawn by its count and weight, then a
rank among the contexts that have it, and a second pass finds that context. Where few enough contexts can be kept, the
second pass goes through what the first one found, and a slow detector is asked once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np

from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.mechanisms import exponential_level
from wallflower.noise import Noise
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector, Distance, FixedBins, Tukey, kappas
from wallflower.queries.explain.draws.utilities import Utility
from wallflower.queries.explain.exact import HELD, parts
from wallflower.queries.explain.margins import margins_in_blocks, scales
from wallflower.queries.explain.space.blocks import LEAST, in_blocks
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.cube import Bools, Counts, Ints
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable

T = TypeVar("T")
Reduce = Callable[[int, Bools, Counts], T]
Blocks = Callable[[Reduce[Any]], Iterator[Any]]  # goes through all contexts: first index, who takes part, scores
Tally = tuple[Ints, Ints]  # scores, and how many contexts have each

GRID: Final = 256  # steps of a score in one record
STEPS: Final = GRID + 1  # what one record moves a score by, in steps; one more than GRID for rounding
HIGHEST: Final = 1 << 23  # steps; scores beyond it count as this
SPARSE: Final = 1 << 24  # where there are more scores, only those that some context has are counted
ROUNDED: Final = 1 << 22  # sums over so many records are surely rounded too much: n²·2⁻⁵³ is 1/512 there  (F)


def direct(
    table: RankedTable | CellTable, detector: Detector, utility: Utility, *, rate: Fraction, top: int, noise: Noise
) -> list[int]:
    """Up to `top` valid contexts, first to last, each with probability proportional to exp(rate·score) of those left.

    The law is exact. There are fewer where fewer are valid, down to none.
    """

    def blocks(reduce: Reduce[T]) -> Iterator[T]:
        return in_blocks(table.space, utility.score_parts(table, parts(table, detector)), np.bool_, reduce)

    span = None if utility.measure(table) is None else (0, table.n)
    return _draw(table.space, blocks, span, rate=rate, top=top, noise=noise)


def by_margin(
    table: RankedTable | CellTable,
    detector: Detector,
    *,
    scale: Fraction,
    cap: Fraction,
    epsilon: Fraction,
    top: int,
    noise: Noise,
) -> list[int]:
    """Up to `top` of all contexts, by pure `epsilon`-DP each: large where the record is an outlier, invalid elsewhere.

    The score is the lesser of population/scale and margin, within ±cap, on a grid of 1/256 records. `scale` (1 or
    more) and `cap` are public; caps above 32,768 count as that. Contexts are drawn with probability proportional to
    exp(epsilon·score/2), but for the grid.
    """
    most = min(HIGHEST, int(GRID * cap))
    blocks = step_scores(table, detector, scale, most)
    return _draw(table.space, blocks, (-most, most), rate=epsilon / (2 * STEPS), top=top, noise=noise)


def step_scores(table: RankedTable | CellTable, detector: Detector, scale: Fraction, most: int) -> Blocks:
    """All contexts with their scores in steps, at most `most` either way."""
    if scale < 1:
        raise ParameterError(f"scale: {scale} would let one record count for more than one; pass 1 or more.")
    check_rounding(table, detector)
    step = Fraction(GRID) / scale
    kind = np.int64 if step.numerator * table.n < 2**62 and step.denominator < 2**62 else object

    def blocks(reduce: Reduce[T]) -> Iterator[T]:
        def reduce_steps(first: int, margins: Floats, populations: Counts) -> T:
            reached = populations.astype(kind) * step.numerator // step.denominator
            _lesser(margins, np.minimum(reached, most).astype(np.int64), most, populations)
            return reduce(first, np.ones(len(margins), np.bool_), populations)

        return margins_in_blocks(table, detector, reduce_steps)

    return blocks


def best_margin(table: RankedTable | CellTable, detector: Detector) -> int:
    """The largest margin of all contexts in steps of 1/256, rounded down; one other record moves it by 257 at most."""
    check_rounding(table, detector)
    found = margins_in_blocks(table, detector, lambda first, margins, _: float(margins.max()))
    return int(np.floor(GRID * max(found)))


def choose(scores: Sequence[int], *, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """The places of up to `top` scores, each with probability proportional to exp(rate·score) among those left."""
    found = np.array(scores, np.int64)
    return [place for place, _ in _peel(found, np.ones(len(found), np.int64), rate=rate, top=top, noise=noise)]


def _draw(
    space: Space, blocks: Blocks, span: tuple[int, int] | None, *, rate: Fraction, top: int, noise: Noise
) -> list[int]:
    source = _one_block(space, blocks) if space.count <= HELD else blocks
    scores, counts = _tally(source, None if space.count <= LEAST else span)  # few are sorted sooner than spread out
    chosen = _peel(scores, counts, rate=rate, top=top, noise=noise)
    return _find_indices(source, [(int(scores[place]), rank) for place, rank in chosen])


def _one_block(space: Space, blocks: Blocks) -> Blocks:
    """All blocks as one, kept in memory."""
    taking, scores = np.empty(space.count, np.bool_), np.empty(space.count, np.int32)

    def keep(first: int, here: Bools, found: Counts) -> None:
        taking[first : first + len(here)], scores[first : first + len(here)] = here, found

    for _ in blocks(keep):
        pass
    return lambda reduce: iter([reduce(0, taking, scores)])


def _tally(blocks: Blocks, span: tuple[int, int] | None) -> Tally:
    if span is None:  # only what is kept has no bounds
        (found,) = blocks(lambda first, taking, scores: np.unique(scores[taking].astype(np.int64), return_counts=True))
        return found[0], found[1]
    low, high = span
    if high - low > SPARSE:
        return _tally_sparsely(blocks)
    total = np.zeros(high - low + 1, np.int64)

    def tally(first: int, taking: Bools, scores: Counts) -> Tally:
        found = np.zeros(high - low + 1, np.int64)
        _count(taking, scores, low, found)
        some = np.flatnonzero(found)
        return some, found[some]

    for some, counts in blocks(tally):
        total[some] += counts
    some = np.flatnonzero(total)
    return some + low, total[some]


def _tally_sparsely(blocks: Blocks) -> Tally:
    """How many contexts have each score, where most of the possible scores are the score of none."""
    total = np.empty(0, np.int64), np.empty(0, np.int64)
    for some, counts in blocks(lambda first, taking, scores: np.unique(scores[taking], return_counts=True)):
        scores, place = np.unique(np.append(total[0], some), return_inverse=True)
        total = scores, np.bincount(place, weights=np.append(total[1], counts), minlength=len(scores)).astype(np.int64)
    return total


def _peel(scores: Ints, counts: Ints, *, rate: Fraction, top: int, noise: Noise) -> list[tuple[int, int]]:
    """Places and ranks of those drawn one after another; the ranks of a place are a shuffle as far as it is drawn."""
    chosen: list[tuple[int, int]] = []
    moved: dict[tuple[int, int], int] = {}
    gaps, left = scores.max(initial=0) - scores, counts.copy()
    for _ in range(min(top, int(counts.sum()))):
        place, rank = exponential_level(gaps, left, rate=rate, noise=noise)
        left[place] -= 1
        last = int(left[place])
        chosen.append((place, moved.get((place, rank), rank)))
        moved[place, rank] = moved.get((place, last), last)
    return chosen


def _find_indices(blocks: Blocks, chosen: list[tuple[int, int]]) -> list[int]:
    """The indices of contexts named by their score and their rank among those with that score."""
    wanted = sorted({score for score, _ in chosen})
    seen, found = dict.fromkeys(wanted, 0), {}

    def match(first: int, taking: Bools, scores: Counts) -> list[Ints]:
        return [first + np.flatnonzero(taking & (scores == score)) for score in wanted]

    for matches in blocks(match):
        for score, here in zip(wanted, matches, strict=True):
            for _, rank in (each for each in chosen if each[0] == score):
                if seen[score] <= rank < seen[score] + len(here):
                    found[score, rank] = int(here[rank - seen[score]])
            seen[score] += len(here)
    return [found[each] for each in chosen]


@kernel
def _count(taking: Bools, scores: Counts, low: int, found: Ints) -> None:
    for x in range(len(taking)):
        if taking[x]:
            found[scores[x] - low] += 1


@kernel
def _lesser(margins: Floats, heights: Ints, most: int, scores: Counts) -> None:
    """The lesser of what a population reaches and what a margin does, as scores."""
    for x in range(len(margins)):
        margin = np.floor(min(max(margins[x] * GRID, -most), most))
        scores[x] = min(heights[x], int(margin))


def rounding(detector: Detector, own: float) -> float:
    """An e such that one other record moves the computed margins of a record whose metric is `own` by 1 + 2e at most.

    Sums are taken to run in any order.  (F)
    """
    return ROUNDING[type(detector)](detector, own) if type(detector) in ROUNDING else 0.0


def record_factor(detector: Detector) -> Fraction | None:
    """How many times what it may by joining or leaving, one other record moves scores by when it is replaced; None
    where nothing better is known than that it leaves and another one joins.  (X)

    >>> record_factor(Tukey((0.0, 1.0))), record_factor(FixedBins((0.0, 1.0), 0.0025))
    (Fraction(342, 257), Fraction(1, 1))
    """
    if type(detector) not in REPLACEMENTS:
        return None
    moved = GRID * (REPLACEMENTS[type(detector)](detector) + 2 * Fraction(rounding(detector, 0.0)))
    return max(Fraction(1), Fraction(math.ceil(moved), STEPS))


def check_rounding(table: RankedTable | CellTable, detector: Detector) -> None:
    """Refuse a detector whose margins are rounded by more than the grid of scores allows, by public facts."""
    if rounding(detector, table.own) >= 1 / (2 * GRID):
        raise ParameterError(
            "largest: sums over so many records are rounded by more than the grid of scores allows; pass a smaller "
            "public bound on the records, or choose another detector."
        )


def _clamped_rounding(detector: ClampedGrubbs, own: float) -> float:
    """Sums, their combination, the tie that is cut off at 0, and weights, for every scale; in units of 2⁻⁵³."""
    n, width, unit = float(detector.largest), detector.high - detector.low, 2.0**-53
    weights = np.abs(scales(detector, min(max(own, detector.low), detector.high)))
    one, two, bound = weights.T
    step = float(np.abs(np.diff(kappas(detector.alpha, detector.largest)[1:])).max())
    sums = n * n * (one * width + two * width**2)
    combined = 8 * n * (one * width + two * width**2 + bound)
    tie = one * n * width * ((1e-12 + 1e-15 * n) / unit + 4 * n + 8)
    moved = 8 * (one * width + two * width**2 + bound * step)
    return float((sums + combined + tie + moved).max()) * unit * 1.01


ROUNDING: Final[dict[type, Callable[[Any, float], float]]] = {
    ClampedGrubbs: _clamped_rounding,
    Distance: lambda detector, own: 0.0,
    FixedBins: lambda detector, own: 2.0**-18,
    Tukey: lambda detector, own: 2.0**-22,
}
REPLACEMENTS: Final[dict[type, Callable[[Any], Fraction]]] = {  # what one moves a margin by, but for rounding
    Distance: lambda detector: Fraction(1),
    FixedBins: lambda detector: 1 / Fraction(max(detector.fraction, 1 - detector.fraction)),
    Tukey: lambda detector: Fraction(4, 3),
}
