"""The paper's Algorithms 2 to 5, the mistakes in their pseudo-code mended, and ours: run and timed.

All are output-constrained: what they protect, they protect only between tables with the same valid contexts.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from statistics import mean, stdev
from typing import Final

import numpy as np

from wallflower.machine.heavy import scipy_special as _special
from wallflower.noise import Noise, system_noise, words
from wallflower.papers.methods import CurveLabel
from wallflower.papers.pcor2021.exact import Outlier
from wallflower.queries.explain.draws import ocdp
from wallflower.queries.explain.draws.best_first import draw_best_first
from wallflower.queries.explain.draws.exponential import choose
from wallflower.queries.explain.draws.ocdp import SEARCHES, ContextScores, guided_search
from wallflower.queries.explain.draws.utilities import Overlap, Population, Utility
from wallflower.queries.explain.space.cubes import run_in_blocks
from wallflower.queries.explain.space.tables import Bools, Counts
from wallflower.synthetic import Floats, Ints

NOT_DP: Final = "NOT DP"
WHY: Final = (
    "output-constrained: between tables in which other contexts are valid it protects nothing, and many neighbours are "
    "such; a context that is released proves that the record is an outlier in it"
)
HALF: Final = Fraction(1, 2)  # the paper books twice what its choices spend, so at a loss they may spend half of it
WHOLE: Final = Fraction(1)
TRIED: Final = 200  # contexts, to see what one takes


class Ground:
    """An outlier's contexts, ready to be searched: all examined beforehand, or where that is slow one by one."""

    def __init__(self, outlier: Outlier, start: int | None = None) -> None:
        """With a `start`, searches start there and the utility is the overlap with it; else it is the population."""
        self.outlier, self.noise, self._start = outlier, system_noise(), start
        begun = time.perf_counter()
        self.utility: Utility = Population() if start is None else Overlap(outlier.table.space.bits(start))
        self._known = None if outlier.is_slow else _examine(outlier, self.utility)
        self._ask = self.utility.score_single(outlier.table, outlier.detector.examine(outlier.table))
        self.seconds = time.perf_counter() - begun
        self.highest = outlier.highest if start is None else self.examine(start)[1]  # nothing shares more than all

    def examine(self, index: int) -> tuple[bool, int]:
        if self._known is None:
            return self._ask(index)
        valid, scores = self._known
        return bool(valid[index]), int(scores[index])

    def ask(self) -> ContextScores:
        """Contexts that nobody has asked about yet."""
        return ContextScores(self.outlier.table.space, self.examine)

    def even_start(self) -> int:
        """A valid context, all of them equally likely: the paper's data owner knows one (5.2), which is not printed."""
        return even_start(self.outlier, self.noise) if self._start is None else self._start

    def public_start(self) -> int:
        """The first valid one in an order that is public, or where that is given up an even one: as a release does."""
        found = ocdp.first_valid(self.ask())
        return self.even_start() if found is None else found


def even_start(outlier: Outlier, noise: Noise) -> int:
    return int(outlier.valid[noise.below(len(outlier.valid))])


def _examine(outlier: Outlier, utility: Utility) -> tuple[Bools, Counts]:
    """Validity and score of every context, by index."""

    def keep(_: int, valid: Bools, scores: Counts) -> tuple[Bools, Counts]:
        return valid.copy(), scores.copy()

    table = outlier.table
    found = run_in_blocks(table.space, utility.score_parts(table, outlier.detector.sweep(table)), np.bool_, keep)
    valid, scores = zip(*found, strict=True)
    return np.concatenate(valid), np.concatenate(scores)


Found = tuple[list[int], float]  # what is released, and the seconds it took beside those of the ground
Find = Callable[[Ground, Fraction, int], Found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(CurveLabel):
    """A way to find a context at a loss, by visiting a number of them."""

    find: Find


def _time(work: Callable[[], list[int]]) -> Found:
    begun = time.perf_counter()
    found = work()
    return found, time.perf_counter() - begun


def _uniform(p: Fraction) -> Find:
    """Algorithm 2: contexts whose bits are 1 with probability p, until `samples` of them are valid; then a choice.

    Which those are is drawn from the list of valid contexts, by the same law. What it takes is what one try takes
    times the tries that are expected, as Theorem 5.2 reckons.
    """

    def find(ground: Ground, epsilon: Fraction, samples: int) -> Found:
        rate = SEARCHES["uniform"].rate(epsilon * HALF, utility=ground.utility, samples=samples, top=1)
        weights = bit_weights(ground.outlier.valid, ground.outlier.table.space.length, p)
        begun = time.perf_counter()
        for _ in range(TRIED):
            ground.examine(_draw_bits(ground, p))
        seconds = (time.perf_counter() - begun) / TRIED * samples / float(weights.sum())
        visited = ground.outlier.valid[draw_distinct(weights, samples, ground.noise)].tolist()
        scores = [ground.examine(index)[1] for index in visited]
        return [visited[at] for at in choose(scores, rate=rate, top=1, noise=ground.noise)], seconds

    return find


def bit_weights(indices: Ints, length: int, p: Fraction) -> Floats:
    """How likely each context is if bits are 1 with probability p.

    >>> bit_weights(np.array([0, 1, 3]), 2, Fraction(3, 4)).tolist()
    [0.0625, 0.1875, 0.5625]
    """
    ones = np.bitwise_count(indices).astype(np.float64)
    weights: Floats = float(p) ** ones * float(1 - p) ** (length - ones)
    return weights


def draw_distinct(weights: Floats, count: int, noise: Noise) -> list[int]:
    """The first `count` places that differ, of draws proportional to the weights; all of them if there are no more."""
    if len(weights) <= count:
        return list(range(len(weights)))
    # exponential waiting times: the order in which draws without end would first meet the places
    even = (words(noise, len(weights)) >> np.uint64(11)) * 2.0**-53
    waits = -np.log1p(-even) / weights
    first: list[int] = np.argsort(waits)[:count].tolist()
    return first


def _draw_bits(ground: Ground, p: Fraction) -> int:
    bits = (ground.noise.below(p.denominator) < p.numerator for _ in range(ground.outlier.table.space.length))
    return sum(bit << place for place, bit in enumerate(bits))


def walk_as_printed(
    ask: ContextScores, *, start: int, samples: int, rate: Fraction, top: int, noise: Noise
) -> list[int]:
    """Algorithm 3: what a random walk over valid contexts meets is a multiset, so a context met twice counts twice."""
    met = [start]
    while len(met) < samples:
        beside = list(ask.adjacent(met[-1]))
        while beside:
            to = beside.pop(noise.below(len(beside)))
            if ask.score(to) is not None:
                met.append(to)
                break
        else:
            break
    return [met[at] for at in choose([ask.score(index) or 0 for index in met], rate=rate, top=top, noise=noise)]


def _walk_search(
    name: str,
    step: Callable[..., list[int]],
    *,
    spends: Fraction,
    start: Callable[[Ground], int] = Ground.even_start,
) -> Find:
    def find(ground: Ground, epsilon: Fraction, samples: int) -> Found:
        rate = SEARCHES[name].rate(epsilon * spends, utility=ground.utility, samples=samples, top=1)
        first = start(ground)
        return _time(lambda: step(ground.ask(), start=first, samples=samples, rate=rate, top=1, noise=ground.noise))

    return find


def _best_first(ground: Ground, epsilon: Fraction, samples: int) -> Found:
    asked = ground.outlier
    return _time(
        lambda: draw_best_first(asked.table, asked.detector, ground.utility, rate=epsilon, top=1, noise=ground.noise)[0]
    )


def _guided_search(ground: Ground, epsilon: Fraction, samples: int) -> Found:
    asked, search = (
        ground.outlier,
        partial(guided_search, epsilon=epsilon, evaluations=samples, top=1, noise=ground.noise),
    )
    return _time(lambda: search(asked.table, asked.detector, ground.utility))


def _search(key: str, label: str, find: Find) -> Search:
    return Search(key=key, label=label, guarantee=NOT_DP, why=WHY, find=find)


UNIFORM: Final = _search("uniform", "Uniform", _uniform(HALF))
WALK: Final = _search("walk", "Random Walk", _walk_search("walk", walk_as_printed, spends=HALF))
DFS: Final = _search("dfs", "DFS", _walk_search("dfs", ocdp.dfs, spends=HALF))
BFS: Final = _search("bfs", "BFS", _walk_search("bfs", ocdp.bfs, spends=HALF))
OFTEN: Final = _search("uniform_often", "Algorithm 2 with p = 3/4", _uniform(Fraction(3, 4)))
DISTINCT: Final = _search(
    "walk_distinct", "random walk, every context once", _walk_search("walk", ocdp.walk, spends=HALF)
)
TIGHT: Final = _search("bfs_tight", "breadth first at its true cost", _walk_search("bfs", ocdp.bfs, spends=WHOLE))
LARGEST: Final = _search(
    "bfs_public",
    "the same, started in a public order",
    _walk_search("bfs", ocdp.bfs, spends=WHOLE, start=Ground.public_start),
)
LAZY: Final = _search("best_first", "best-first draw", _best_first)
GUIDED: Final = _search("guided", "guided search", _guided_search)
PRINTED: Final = (UNIFORM, WALK, DFS, BFS)
OURS: Final = (OFTEN, DISTINCT, TIGHT, LARGEST, LAZY, GUIDED)


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
        """Where the mean over all such outliers lies, 9 times of 10, by Student's law."""
        many = len(self._means)
        if many < 2:
            return math.nan, math.nan
        off = float(_special.stdtrit(many - 1, 0.95)) * stdev(self._means) / math.sqrt(many)
        return max(0.0, self.utility - off), min(1.0, self.utility + off)

    @property
    def all(self) -> tuple[Run, ...]:
        return tuple(run for runs in self.each for run in runs)

    @property
    def seconds(self) -> tuple[float, float, float]:
        """The least, the most and the mean."""
        found = [run.seconds for run in self.all]
        return min(found), max(found), mean(found)

    @property
    def _means(self) -> list[float]:
        return [mean(run.utility for run in runs) for runs in self.each]


def runs(search: Search, grounds: Iterable[Ground], *, epsilon: str, samples: int, repetitions: int) -> Runs:
    """Make a number of releases about each outlier."""
    return Runs(
        tuple(tuple(_run(search, ground, Fraction(epsilon), samples) for _ in range(repetitions)) for ground in grounds)
    )


def overlap_runs(search: Search, asked: Iterable[Outlier], *, epsilon: str, samples: int, repetitions: int) -> Runs:
    """The same, each release from a start of its own, and the utility its overlap with the start."""
    noise = system_noise()
    return Runs(
        tuple(
            tuple(
                _run(search, Ground(outlier, even_start(outlier, noise)), Fraction(epsilon), samples)
                for _ in range(repetitions)
            )
            for outlier in asked
        )
    )


def _run(search: Search, ground: Ground, epsilon: Fraction, samples: int) -> Run:
    found, seconds = search.find(ground, epsilon, samples)
    score = sum(score for valid, score in map(ground.examine, found) if valid)
    return Run(score / ground.highest, ground.seconds + seconds)
