"""Contexts drawn from the exponential mechanism over all of them, exactly.

Scores are whole numbers, so it is enough to count contexts by score: a score is drawn by its count and weight, then a
rank among the contexts that have it, and a second pass finds that context. Where all contexts can be kept, the second
pass goes through what the first one kept, and a slow detector is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np

from wallflower.machine.jit import kernel
from wallflower.mechanisms import exponential_level
from wallflower.noise import Noise
from wallflower.queries.explain.detectors.base import KEPT_CONTEXTS
from wallflower.queries.explain.exact import keep_blocks
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.cubes import MIN_BLOCK_CONTEXTS
from wallflower.queries.explain.space.tables import Bools, Counts, Ints

T = TypeVar("T")
Reduce = Callable[[int, Bools, Counts], T]
Blocks = Callable[[Reduce[Any]], Iterator[Any]]  # goes through all contexts: first index, candidates, scores
ScoreCounts = tuple[Ints, Ints]  # scores, and how many contexts have each

MAX_DENSE_SCORES: Final = 1 << 24  # with more possible scores, only those that some context has are counted


def draw_exponential(
    space: Space, blocks: Blocks, score_range: tuple[int, int] | None, *, rate: Fraction, top: int, noise: Noise
) -> list[int]:
    """Draw up to `top` candidates, each with probability proportional to exp(rate·score) among those left.

    space        all contexts
    blocks       goes through them, as often as it is called
    score_range  the least and the greatest score; None: unknown, and then all contexts must fit into memory
    rate         weight of a score
    """
    source = _keep_in_one_block(space, blocks) if space.count <= KEPT_CONTEXTS else blocks
    # few contexts are sorted faster than counted in an array of all scores
    scores, counts = _count_scores(source, None if space.count <= MIN_BLOCK_CONTEXTS else score_range)
    drawn = _draw_ranks(scores, counts, rate=rate, top=top, noise=noise)
    return _find_indices(source, [(int(scores[place]), rank) for place, rank in drawn])


def choose(scores: Sequence[int], *, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Return the places of up to `top` scores, drawn by exp(rate·score) without replacement."""
    levels = np.array(scores, np.int64)
    return [place for place, _ in _draw_ranks(levels, np.ones(len(levels), np.int64), rate=rate, top=top, noise=noise)]


def _keep_in_one_block(space: Space, blocks: Blocks) -> Blocks:
    candidates, scores = keep_blocks(space, np.bool_, blocks)
    return lambda reduce: iter([reduce(0, candidates, scores)])


def _count_scores(blocks: Blocks, score_range: tuple[int, int] | None) -> ScoreCounts:
    if score_range is None:  # all contexts are in one block
        (counted,) = blocks(lambda _, candidates, scores: _count_unique(scores[candidates]))
        return counted[0], counted[1]
    low, high = score_range
    if high - low > MAX_DENSE_SCORES:
        return _count_sparse_scores(blocks)
    total = np.zeros(high - low + 1, np.int64)

    def count(_: int, candidates: Bools, scores: Counts) -> ScoreCounts:
        counts = np.zeros(high - low + 1, np.int64)
        _add_counts(candidates, scores, low, counts)
        some = np.flatnonzero(counts)
        return some, counts[some]

    for some, counts in blocks(count):
        total[some] += counts
    some = np.flatnonzero(total)
    return some + low, total[some]


def _count_unique(scores: Counts) -> ScoreCounts:
    return np.unique(scores.astype(np.int64), return_counts=True)


def _count_sparse_scores(blocks: Blocks) -> ScoreCounts:
    """Count contexts by score, where most of the possible scores are the score of none."""
    total = np.empty(0, np.int64), np.empty(0, np.int64)
    for some, counts in blocks(lambda _, candidates, scores: _count_unique(scores[candidates])):
        scores, place = np.unique(np.append(total[0], some), return_inverse=True)
        total = scores, np.bincount(place, weights=np.append(total[1], counts), minlength=len(scores)).astype(np.int64)
    return total


def _draw_ranks(scores: Ints, counts: Ints, *, rate: Fraction, top: int, noise: Noise) -> list[tuple[int, int]]:
    """Draw places and ranks one after another; the ranks of a place are a shuffle as far as it is drawn."""
    drawn: list[tuple[int, int]] = []
    moved: dict[tuple[int, int], int] = {}
    gaps, left = scores.max(initial=0) - scores, counts.copy()
    for _ in range(min(top, int(counts.sum()))):
        place, rank = exponential_level(gaps, left, rate=rate, noise=noise)
        left[place] -= 1
        last = int(left[place])
        drawn.append((place, moved.get((place, rank), rank)))
        moved[place, rank] = moved.get((place, last), last)
    return drawn


def _find_indices(blocks: Blocks, drawn: list[tuple[int, int]]) -> list[int]:
    """Return the indices of contexts named by their score and their rank among those with that score."""
    wanted = sorted({score for score, _ in drawn})
    passed, indices = dict.fromkeys(wanted, 0), {}

    def match(first: int, candidates: Bools, scores: Counts) -> list[Ints]:
        return [first + np.flatnonzero(candidates & (scores == score)) for score in wanted]

    for matches in blocks(match):
        for score, here in zip(wanted, matches, strict=True):
            for rank in (rank for drawn_score, rank in drawn if drawn_score == score):
                if passed[score] <= rank < passed[score] + len(here):
                    indices[score, rank] = int(here[rank - passed[score]])
            passed[score] += len(here)
    return [indices[key] for key in drawn]


@kernel
def _add_counts(candidates: Bools, scores: Counts, low: int, counts: Ints) -> None:
    for x in range(len(candidates)):
        if candidates[x]:
            counts[scores[x] - low] += 1
