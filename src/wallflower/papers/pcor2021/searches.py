"""The paper's searches, the mistakes in their pseudo-code mended, and ours: run and timed, with a release's choices.

All are output-constrained: what they protect, they protect only between tables with the same valid contexts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from statistics import mean, median, stdev
from typing import Final

import numpy as np

from wallflower.noise import system_noise
from wallflower.papers.methods import CurveLabel
from wallflower.papers.pcor2021.exact import Outlier
from wallflower.queries.explain.draws import walks
from wallflower.queries.explain.draws.best_first import best_first
from wallflower.queries.explain.draws.direct import choose
from wallflower.queries.explain.draws.guided_search import guided_search
from wallflower.queries.explain.draws.walks import ASKED, ContextScores, rate_of
from wallflower.queries.explain.exact import examiner, parts
from wallflower.queries.explain.space.blocks import in_blocks
from wallflower.queries.explain.space.cube import Bools, Counts

NOT_DP: Final = "NOT DP"
WHY: Final = (
    "output-constrained: between tables in which other contexts are valid it protects nothing, and many neighbours are "
    "such; a context that is released proves that the record is an outlier in it"
)
FEW: Final = 100  # contexts that are tried before all valid ones are listed
HALF: Final = Fraction(1, 2)  # the paper books twice what its choices spend, so at a loss they may spend half of it
WHOLE: Final = Fraction(1)
NORMAL: Final = 1.96  # standard errors to either side: 19 in 20


class Ground:
    """An outlier's contexts, ready to be searched: all examined beforehand, or where that is slow one by one."""

    def __init__(self, outlier: Outlier) -> None:
        self.outlier, self.noise = outlier, system_noise()
        begun = time.perf_counter()
        self._known = None if outlier.is_slow else _examined(outlier)
        self._ask = outlier.utility.asked(outlier.table, examiner(outlier.table, outlier.detector))
        self.seconds = time.perf_counter() - begun

    def examine(self, index: int) -> tuple[bool, int]:
        if self._known is None:
            return self._ask(index)
        valid, scores = self._known
        return bool(valid[index]), int(scores[index])

    def ask(self) -> ContextScores:
        """Contexts that nobody has asked about yet."""
        return ContextScores(self.outlier.table.space, self.examine)

    def even_start(self) -> int | None:
        """A valid context, all of them equally likely: what the paper is told, as we read it."""
        count = self.outlier.table.space.count
        tried = (self.noise.below(count) for _ in range(ASKED if self._known is None else FEW))
        found = next((index for index in tried if self.examine(index)[0]), None)
        if found is None and self._known is not None:
            valid = np.flatnonzero(self._known[0])
            return int(valid[self.noise.below(len(valid))])
        return found

    def public_start(self) -> int | None:
        """The first valid one in an order that is public."""
        return walks.first_valid(self.ask())


def _examined(outlier: Outlier) -> tuple[Bools, Counts]:
    """Validity and score of every context, by index."""

    def keep(_: int, valid: Bools, scores: Counts) -> tuple[Bools, Counts]:
        return valid.copy(), scores.copy()

    table = outlier.table
    found = in_blocks(table.space, outlier.utility.scored(table, parts(table, outlier.detector)), np.bool_, keep)
    valid, scores = zip(*found, strict=True)
    return np.concatenate(valid), np.concatenate(scores)


Found = tuple[list[int], float]  # what is released, and the seconds it took beside those of the ground
Find = Callable[[Ground, Fraction, int], Found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(CurveLabel):
    """A way to find a context at a loss, by visiting so many."""

    find: Find


def _timed(work: Callable[[], list[int]]) -> Found:
    begun = time.perf_counter()
    found = work()
    return found, time.perf_counter() - begun


def _uniform(ground: Ground, epsilon: Fraction, samples: int) -> Found:
    """Contexts are drawn evenly until enough are valid, `ASKED` at most."""
    rate = rate_of("uniform", epsilon * HALF, utility=ground.outlier.utility, samples=samples, top=1)

    def work() -> list[int]:
        ask, visited = ground.ask(), dict[int, int]()
        for _ in range(ASKED):
            index = ground.noise.below(ask.space.count)
            score = ask.score(index)
            visited |= {} if score is None else {index: score}
            if len(visited) == samples:
                break
        return [list(visited)[at] for at in choose(list(visited.values()), rate=rate, top=1, noise=ground.noise)]

    return _timed(work)


def _stepping(
    name: str,
    step: Callable[..., list[int]],
    *,
    spends: Fraction,
    start: Callable[[Ground], int | None] = Ground.even_start,
) -> Find:
    def find(ground: Ground, epsilon: Fraction, samples: int) -> Found:
        rate = rate_of(name, epsilon * spends, utility=ground.outlier.utility, samples=samples, top=1)
        first = start(ground)
        if first is None:
            return [], 0.0
        return _timed(lambda: step(ground.ask(), start=first, samples=samples, rate=rate, top=1, noise=ground.noise))

    return find


def _best_first(ground: Ground, epsilon: Fraction, samples: int) -> Found:
    asked = ground.outlier
    return _timed(
        lambda: best_first(asked.table, asked.detector, asked.utility, rate=epsilon, top=1, noise=ground.noise)[0]
    )


def _guided(ground: Ground, epsilon: Fraction, samples: int) -> Found:
    asked, search = (
        ground.outlier,
        partial(guided_search, epsilon=epsilon, evaluations=samples, top=1, noise=ground.noise),
    )
    return _timed(lambda: search(asked.table, asked.detector, asked.utility))


def _search(key: str, label: str, find: Find) -> Search:
    return Search(key=key, label=label, guarantee=NOT_DP, why=WHY, find=find)


UNIFORM: Final = _search("uniform", "uniform, paper's accounting", _uniform)
WALK: Final = _search("walk", "random walk, paper's accounting", _stepping("walk", walks.walk, spends=HALF))
DFS: Final = _search("dfs", "depth first, paper's accounting", _stepping("dfs", walks.dfs, spends=HALF))
BFS: Final = _search("bfs", "breadth first, paper's accounting", _stepping("bfs", walks.bfs, spends=HALF))
TIGHT: Final = _search("bfs_tight", "breadth first at its true cost", _stepping("bfs", walks.bfs, spends=WHOLE))
LARGEST: Final = _search(
    "bfs_public",
    "the same, started in a public order",
    _stepping("bfs", walks.bfs, spends=WHOLE, start=Ground.public_start),
)
LAZY: Final = _search("best_first", "best-first draw", _best_first)
GUIDED: Final = _search("guided", "guided search", _guided)
PRINTED: Final = (UNIFORM, WALK, DFS, BFS)
OURS: Final = (TIGHT, LARGEST, LAZY, GUIDED)


@dataclass(frozen=True, slots=True)
class Run:
    """One release: its utility as a share of the highest, 0 if there is none, and its seconds."""

    utility: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Runs:
    """Releases by one search, several for each of several outliers."""

    each: tuple[tuple[Run, ...], ...]

    @property
    def utility(self) -> float:
        return mean(self._means)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the mean over all such outliers lies, 19 times of 20."""
        if len(self._means) < 2:
            return math.nan, math.nan
        off = NORMAL * stdev(self._means) / math.sqrt(len(self._means))
        return self.utility - off, self.utility + off

    @property
    def seconds(self) -> tuple[float, float, float, float]:
        """The least, the median, the mean and the most."""
        found = [run.seconds for runs in self.each for run in runs]
        return min(found), median(found), mean(found), max(found)

    @property
    def _means(self) -> list[float]:
        return [mean(run.utility for run in runs) for runs in self.each]


def runs(search: Search, grounds: Iterable[Ground], *, epsilon: str, samples: int, repetitions: int) -> Runs:
    """So many releases about each outlier."""
    return Runs(
        tuple(tuple(_run(search, ground, Fraction(epsilon), samples) for _ in range(repetitions)) for ground in grounds)
    )


def _run(search: Search, ground: Ground, epsilon: Fraction, samples: int) -> Run:
    found, seconds = search.find(ground, epsilon, samples)
    score = sum(ground.ask().score(index) or 0 for index in found)
    return Run(score / max(1, ground.outlier.highest), ground.seconds + seconds)
