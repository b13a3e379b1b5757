"""Mode dp: all contexts are candidates, drawn by margin and population; or none is named.

A part of ε decides whether the record stands out anywhere at all; each context spends a part of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Final, TypeVar

import numpy as np

from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.mechanisms import Additive
from wallflower.noise import Noise
from wallflower.queries.explain.detectors.base import MarginDetector
from wallflower.queries.explain.draws.exponential import Blocks, Reduce, draw_exponential
from wallflower.queries.explain.exact import margins_in_blocks
from wallflower.queries.explain.space.tables import AnyTable, Counts, Floats, Ints

T = TypeVar("T")

GRID: Final = 256  # steps of a score in one record
STEPS: Final = GRID + 1  # what one record moves a score by, in steps; one more than GRID for rounding
MAX_MARGIN: Final = 1e15  # records; no table has as many, and a margin of the user's code may be infinite
MAX_SCORE_STEPS: Final = 1 << 23  # scores beyond it count as this
INVALID_ODDS: Final = 100  # one draw in this many may be invalid where the record stands out enough
FULL_SCORE: Final = 3  # a context of all records scores this many times what is sufficient
BASELESS_ODDS: Final = 50  # about one answer in twice this many names a context where nothing stands out
LOG_BASELESS_ODDS: Final = Fraction(math.log(BASELESS_ODDS))


def draw_contexts(
    table: AnyTable, detector: MarginDetector, *, size: int, deciding: Fraction, each: Fraction, top: int, noise: Noise
) -> list[int]:
    """Draw `top` contexts, by index; or none.

    size      public bound on the number of records
    deciding  ε that decides whether to answer none; 0: never
    each      ε of each context
    """
    table = detector.prepare(table)
    if deciding and not stands_out(table, detector, deciding, noise):
        return []
    scale = population_scale(table.space.count, size, each)
    cap = FULL_SCORE * sufficient_score(table.space.count, each)
    return draw_by_margin(table, detector, scale=scale, cap=cap, epsilon=each, top=top, noise=noise)


def draw_by_margin(
    table: AnyTable,
    detector: MarginDetector,
    *,
    scale: Fraction,
    cap: Fraction,
    epsilon: Fraction,
    top: int,
    noise: Noise,
) -> list[int]:
    """Draw up to `top` of all contexts, by pure `epsilon`-DP each: large ones where the record is an outlier.

    The score is the lesser of population/scale and margin, within ±cap, on a grid of 1/256 records. `scale` (1 or
    more) and `cap` are public; caps above 32,768 count as that. Contexts are drawn with probability proportional to
    exp(epsilon·score/2), but for the grid.
    """
    most = min(MAX_SCORE_STEPS, int(GRID * cap))
    blocks = step_scores(table, detector, scale, most)
    rate = epsilon / (2 * STEPS)
    return draw_exponential(table.space, blocks, (-most, most), rate=rate, top=top, noise=noise)


def step_scores(table: AnyTable, detector: MarginDetector, scale: Fraction, most: int) -> Blocks:
    """Return all contexts with their scores in steps, at most `most` either way."""
    if scale < 1:
        raise ParameterError(f"scale: {scale} would let one record count for more than one; pass 1 or more.")
    require_rounding(detector, detector.rounding(table.own))
    step = Fraction(GRID) / scale
    # whole numbers of any size where 64 bits could overflow
    dtype = np.int64 if step.numerator * table.n < 2**62 and step.denominator < 2**62 else object

    def blocks(reduce: Reduce[T]) -> Iterator[T]:
        def reduce_steps(first: int, margins: Floats, populations: Counts) -> T:
            heights = populations.astype(dtype) * step.numerator // step.denominator
            _fill_scores(margins, np.minimum(heights, most).astype(np.int64), most, populations)
            return reduce(first, np.ones(len(margins), np.bool_), populations)

        return margins_in_blocks(table, detector, reduce_steps)

    return blocks


def stands_out(table: AnyTable, detector: MarginDetector, epsilon: Fraction, noise: Noise) -> bool:
    """Return whether the greatest margin, with noise, is above what noise alone would make of none.  (N)"""
    spread = STEPS / epsilon
    return greatest_margin(table, detector) + noise.laplace(spread) >= spread * LOG_BASELESS_ODDS


def greatest_margin(table: AnyTable, detector: MarginDetector) -> int:
    """Return the greatest margin of all contexts in steps of 1/256, rounded down; one other record moves it by 257 at
    most."""
    require_rounding(detector, detector.rounding(table.own))

    def find_greatest(_: int, margins: Floats, populations: Counts) -> float:
        return float(np.clip(np.nan_to_num(margins), -MAX_MARGIN, MAX_MARGIN).max())

    return int(np.floor(GRID * max(margins_in_blocks(table, detector, find_greatest))))


def require_rounding(detector: MarginDetector, rounding: float) -> None:
    """Refuse margins that are rounded by more than the grid of scores allows."""
    if not rounding < 1 / (2 * GRID):
        raise ParameterError(
            f"size: the margins of {str(detector).partition(':')[0]} for a table of this size are rounded by more than "
            "the grid of scores allows. Pass a smaller bound on the records, or choose another detector."
        )


# What is known without a look at the records


def population_scale(contexts: int, size: int, each: Fraction) -> Fraction:
    """Return the divisor of populations before they are compared with margins: 1 or more, and public.  (D)"""
    return max(Fraction(1), size / (FULL_SCORE * sufficient_score(contexts, each)))


def sufficient_score(contexts: int, each: Fraction) -> Fraction:
    """Return the score from which on a draw is invalid once in `INVALID_ODDS` times at most.  (I)"""
    return Fraction(math.ceil(1000 * 2 / float(each) * math.log(contexts * INVALID_ODDS)), 1000)


def exponents(margins: Floats, populations: Floats, *, contexts: int, size: int, each: Fraction) -> Floats:
    """Return the logarithms of the weights of contexts with these margins and populations.  (D)"""
    step = GRID / float(population_scale(contexts, size, each))
    most = min(MAX_SCORE_STEPS, int(GRID * FULL_SCORE * sufficient_score(contexts, each)))
    scores = np.minimum(np.floor(step * populations), np.floor(GRID * margins))
    return np.clip(scores, -most, most) * float(each) / (2 * STEPS)


def chance_of_none(margin: float, deciding: Fraction) -> float:
    """Return the chance of none where the greatest margin of all contexts is `margin`.  (N)"""
    if not deciding:
        return 0.0
    spread = STEPS / deciding
    lacking = math.ceil(spread * LOG_BASELESS_ODDS) - math.floor(GRID * margin)
    return Additive("laplace", spread, Fraction(1)).upper_tail(1 - lacking)  # noise is as likely as its negative


def record_factor(detector: MarginDetector) -> Fraction | None:
    """Return how many times as far one record moves scores when it is replaced as when it joins or leaves; None where
    nothing better is known than that it leaves and another one joins.  (X)

    >>> from wallflower.queries.explain.detectors import FixedBins, Tukey
    >>> record_factor(Tukey((0.0, 1.0))), record_factor(FixedBins((0.0, 1.0), 0.0025))
    (Fraction(342, 257), Fraction(1, 1))
    """
    replacement = detector.replacement()
    if replacement is None:
        return None
    moved = GRID * (replacement + 2 * Fraction(detector.rounding(0.0)))
    return max(Fraction(1), Fraction(math.ceil(moved), STEPS))


@kernel
def _fill_scores(margins: Floats, heights: Ints, most: int, scores: Counts) -> None:
    """Write the lesser of what a population reaches and what a margin does, as scores."""
    for x in range(len(margins)):
        margin = margins[x] * GRID if margins[x] == margins[x] else 0.0  # not a number: 0
        scores[x] = min(heights[x], int(np.floor(min(max(margin, -most), most))))
