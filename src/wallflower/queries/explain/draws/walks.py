"""Searches that ask about few contexts, and what each of their choices may spend [Sha21, Algorithms 2 to 5].

Contexts are neighbours if they differ in one value. A search depends on the data through the set of valid contexts and
through scores; scores are used in exponential choices only. All of them end: a start without valid neighbours, fewer
valid contexts than asked for and a place that was seen before are answered with what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import Final

from wallflower import progress
from wallflower.errors import ParameterError
from wallflower.noise import Noise
from wallflower.queries.explain.detectors import Detector
from wallflower.queries.explain.draws.best_first import LENGTH
from wallflower.queries.explain.draws.direct import choose, direct
from wallflower.queries.explain.draws.utilities import Even, Examine, Utility
from wallflower.queries.explain.exact import ENGINES, HELD, examiner
from wallflower.queries.explain.space.cells import CellTable
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.ranked_table import RankedTable

CHARGED: Final = {"direct": 0, "best-first": 0, "uniform": 0, "walk": 0, "dfs": 1, "bfs": 1}  # choices per sample
ASKED: Final = 1 << 14  # contexts that a search without an engine asks about at most
PATIENCE: Final = 20  # moves of a walk per context asked for, at most


def rate_of(search: str, epsilon: Fraction, *, utility: Utility, samples: int, top: int) -> Fraction:
    """The rate at which every choice may weigh scores, exp(rate·score), so that a search costs `epsilon` in all.

    >>> from wallflower.queries.explain.draws.utilities import Population, CustomUtility
    >>> rate_of("direct", Fraction(1), utility=Population(), samples=50, top=2)
    Fraction(1, 2)
    >>> rate_of("bfs", Fraction(1), utility=CustomUtility(lambda bits, values: 0, 3), samples=8, top=2)
    Fraction(1, 60)
    """
    if search not in CHARGED:
        raise ParameterError(f"search: {search!r} makes no choices that are paid; there are {', '.join(CHARGED)}.")
    each = epsilon / (CHARGED[search] * samples + top)
    return each / (utility.sensitivity * (1 if utility.monotone else 2))


class ContextScores:
    """Contexts, asked about once each: the score of a valid one, or None."""

    def __init__(self, space: Space, examine: Examine) -> None:
        self.space = space
        self._examine = examine
        self._known: dict[int, int | None] = {}

    def score(self, index: int) -> int | None:
        if index not in self._known:
            valid, score = self._examine(index)
            self._known[index] = score if valid else None
        return self._known[index]

    def beside(self, index: int) -> Iterable[int]:
        """The neighbours of a context."""
        return (index ^ (1 << bit) for bit in range(self.space.length))


def score_contexts(table: RankedTable | CellTable, detector: Detector, utility: Utility) -> ContextScores:
    if table.space.length > LENGTH:
        raise ParameterError(f"domain_sizes: a search takes up to 2^{LENGTH} contexts; name fewer values.")
    return ContextScores(table.space, utility.score_single(table, examiner(table, detector)))


def first_valid(ask: ContextScores, *, limit: int = ASKED) -> int | None:
    """The first valid context in a public order, the largest contexts first; None if none of `limit` is valid."""
    with progress.steps("looking for a start", limit) as step:
        for index in islice(_from_largest(ask.space.length), limit):
            step()
            if ask.score(index) is not None:
                return index
    return None


def uniform_valid(table: RankedTable | CellTable, detector: Detector, noise: Noise) -> int | None:
    """A valid context, all of them equally likely; None if there is none. Examines all contexts."""
    return next(iter(_even(table, detector, 1, noise)), None)


def uniform(
    table: RankedTable | CellTable,
    detector: Detector,
    utility: Utility,
    *,
    samples: int,
    rate: Fraction,
    top: int,
    noise: Noise,
) -> list[int]:
    """Choose among `samples` valid contexts that were drawn evenly, without replacement.

    Where all contexts can be examined they are; else evenly drawn contexts are asked about, `ASKED` at most.
    """
    ask = score_contexts(table, detector, utility)
    if type(detector) in ENGINES and table.space.count <= HELD:
        return _last(ask, _even(table, detector, samples, noise), rate, top, noise)
    visited: list[int] = []
    with progress.steps("drawing contexts", ASKED) as step:
        for index in _draw_evenly(table.space.count, noise):
            visited += [index] if ask.score(index) is not None else []
            step()
            if len(visited) == samples:
                break
    return _last(ask, visited, rate, top, noise)


def walk(ask: ContextScores, *, start: int, samples: int, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Choose among up to `samples` contexts of a random walk over valid ones: every next one is an even choice."""
    here, visited = start, dict.fromkeys([start] if ask.score(start) is not None else [])
    with progress.steps("walking", PATIENCE * samples) as step:
        for _ in range(PATIENCE * samples):
            if len(visited) >= samples:
                break
            moved = next((to for to in _shuffle(list(ask.beside(here)), noise) if ask.score(to) is not None), None)
            if moved is None:
                break
            here = moved
            visited[here] = None
            step()
    return _last(ask, list(visited), rate, top, noise)


def dfs(ask: ContextScores, *, start: int, samples: int, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Depth first: `samples` times one of the valid neighbours of where it stands is chosen, or it steps back."""
    way, seen = [start], {start}
    with progress.steps("searching in depth", samples) as step:
        while way and len(seen) <= samples:
            found = [to for to in ask.beside(way[-1]) if to not in seen and ask.score(to) is not None]
            if not found:
                way.pop()
                continue
            way.append(found[_choose(ask, found, rate, noise)])
            seen.add(way[-1])
            step()
    return _last(ask, seen, rate, top, noise)


def bfs(ask: ContextScores, *, start: int, samples: int, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Breadth first: `samples` times one of the valid neighbours of all that were visited is chosen."""
    visited, met, edge = [start], {start}, list[int]()
    with progress.steps("searching in breadth", samples) as step:
        for _ in range(samples):
            found = [to for to in ask.beside(visited[-1]) if to not in met and ask.score(to) is not None]
            met.update(found)
            edge += found
            if not edge:
                break
            place = _choose(ask, edge, rate, noise)
            edge[place], edge[-1] = edge[-1], edge[place]
            visited.append(edge.pop())
            step()
    return _last(ask, visited, rate, top, noise)


def _choose(ask: ContextScores, among: list[int], rate: Fraction, noise: Noise) -> int:
    (place,) = choose([ask.score(index) or 0 for index in among], rate=rate, top=1, noise=noise)
    return place


def _last(ask: ContextScores, visited: Iterable[int], rate: Fraction, top: int, noise: Noise) -> list[int]:
    """The choice that is released, among the valid contexts that were visited."""
    among = sorted(index for index in visited if ask.score(index) is not None)
    return [among[at] for at in choose([ask.score(index) or 0 for index in among], rate=rate, top=top, noise=noise)]


def _even(table: RankedTable | CellTable, detector: Detector, samples: int, noise: Noise) -> list[int]:
    return direct(table, detector, Even(), rate=Fraction(1), top=samples, noise=noise)


def _draw_evenly(count: int, noise: Noise) -> Iterator[int]:
    """Contexts in even order, each once, `ASKED` at most."""
    if count <= 2 * ASKED:
        yield from islice(_shuffle(list(range(count)), noise), ASKED)
        return
    seen: set[int] = set()
    while len(seen) < ASKED:
        index = noise.below(count)
        if index not in seen:
            seen.add(index)
            yield index


def _shuffle(items: list[int], noise: Noise) -> Iterator[int]:
    """The items in random order, drawn one by one as far as they are wanted."""
    for first in range(len(items)):
        other = first + noise.below(len(items) - first)
        items[first], items[other] = items[other], items[first]
        yield items[first]


def _from_largest(length: int) -> Iterator[int]:
    """All indices: those with more bits first, in rising order where there are as many."""
    for ones in range(length, -1, -1):
        index = (1 << ones) - 1
        while index < 1 << length:
            yield index
            if index == 0:
                break
            low = index & -index
            high = index + low
            index = high | (((index ^ high) // low) >> 2)
