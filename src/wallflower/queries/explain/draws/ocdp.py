"""Mode ocdp: searches among the contexts in which the record is an outlier, and what each of their choices may spend.

After [Sha21, Algorithms 2 to 5]. Contexts are adjacent if they differ in one value. A search depends on the data by the
set of valid contexts and by scores; scores are used in exponential choices only, or noise hides them. All searches end:
with a start beside which no context is valid, and with fewer valid contexts than asked for, they return what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from math import prod
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.errors import ParameterError
from wallflower.noise import Noise, draws
from wallflower.queries.explain.detectors.base import Detector, Examine
from wallflower.queries.explain.draws.best_first import MAX_INDEX_BITS, draw_best_first
from wallflower.queries.explain.draws.exponential import Reduce, choose, draw_exponential
from wallflower.queries.explain.draws.utilities import Even, Utility
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.cubes import MAX_BITS, count_parts, run_in_blocks
from wallflower.queries.explain.space.tables import AnyTable, Counts, Ints, RankedTable
from wallflower.text import Message, t

T = TypeVar("T")

MAX_EXAMINED: Final = 1 << 14  # contexts that a search examines one by one, at most
MOVES_PER_SAMPLE: Final = 20  # of a walk, at most
MAX_NOISY_CELLS: Final = 1 << 20  # cells that guided search adds noise to


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a search is asked: the table and the detector, how contexts are rated, and how many to visit and to draw.

    start  bits of the context to start at; None: the first valid one in a public order
    """

    table: AnyTable
    detector: Detector
    utility: Utility
    epsilon: Fraction
    samples: int
    top: int
    start: str | None
    noise: Noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A way to find contexts.

    name                its name as a setting
    note                what it does, for a plan
    draw                draws contexts at a rate, see `rate`
    choices_per_sample  exponential choices per visited context, beside those of the contexts that are released
    max_bits            of an index; None: no limit
    needs_counts        whether a score must be a sum over records
    is_real             whether it draws real numbers, which are not covered by the proof
    """

    name: str
    note: Message
    draw: Callable[[Question, Fraction], list[int]]
    choices_per_sample: int = 0
    max_bits: int | None = None
    needs_counts: bool = False
    is_real: bool = False

    def rate(self, epsilon: Fraction, *, utility: Utility, samples: int, top: int) -> Fraction:
        """Return the rate at which every choice may weigh scores, exp(rate·score), so that the search costs `epsilon`
        in all.  (O)

        >>> from wallflower.queries.explain.draws.utilities import Population, CustomUtility
        >>> SEARCHES["direct"].rate(Fraction(1), utility=Population(), samples=50, top=2)
        Fraction(1, 2)
        >>> SEARCHES["bfs"].rate(Fraction(1), utility=CustomUtility(lambda bits, values: 0, 3), samples=8, top=2)
        Fraction(1, 60)
        """
        each = epsilon / (self.choices_per_sample * samples + top)
        return each / (utility.sensitivity * (1 if utility.monotone else 2))

    def find(self, ask: Question) -> list[int]:
        """Return up to `top` valid contexts, by index."""
        return self.draw(ask, self.rate(ask.epsilon, utility=ask.utility, samples=ask.samples, top=ask.top))


class ContextScores:
    """Contexts, each examined once: the score of a valid one, or None."""

    def __init__(self, space: Space, examine: Examine) -> None:
        self.space = space
        self._examine = examine
        self._known: dict[int, int | None] = {}

    def score(self, index: int) -> int | None:
        """Return the score of a valid context, or None."""
        if index not in self._known:
            valid, score = self._examine(index)
            self._known[index] = score if valid else None
        return self._known[index]

    def scores(self, indices: Iterable[int]) -> list[int]:
        """Return the scores of valid contexts."""
        return [self.score(index) or 0 for index in indices]

    def adjacent(self, index: int) -> Iterable[int]:
        """Return the contexts that differ in one value."""
        return (index ^ (1 << bit) for bit in range(self.space.length))

    def valid_adjacent(self, index: int, excluded: Iterable[int] = ()) -> list[int]:
        """Return the valid adjacent contexts that are not excluded."""
        return [to for to in self.adjacent(index) if to not in excluded and self.score(to) is not None]


def score_contexts(table: AnyTable, detector: Detector, utility: Utility) -> ContextScores:
    """Return the scores of a table's contexts, none of them examined yet."""
    if table.space.length > MAX_INDEX_BITS:
        raise ParameterError(f"domain_sizes: a search takes up to 2^{MAX_INDEX_BITS} contexts; name fewer values.")
    return ContextScores(table.space, utility.score_single(table, detector.examine(table)))


def draw_direct(
    table: AnyTable, detector: Detector, utility: Utility, *, rate: Fraction, top: int, noise: Noise
) -> list[int]:
    """Draw up to `top` valid contexts, each with probability proportional to exp(rate·score) of those left.

    The law is exact. There are fewer where fewer are valid, down to none.
    """

    def blocks(reduce: Reduce[T]) -> Iterator[T]:
        return run_in_blocks(table.space, utility.score_parts(table, detector.sweep(table)), np.bool_, reduce)

    score_range = (0, table.n) if utility.counts_records else None
    return draw_exponential(table.space, blocks, score_range, rate=rate, top=top, noise=noise)


def first_valid(contexts: ContextScores, *, limit: int = MAX_EXAMINED) -> int | None:
    """Return the first valid context in a public order, the largest contexts first; None if none of `limit` is."""
    with progress.steps("looking for a start", limit) as step:
        for index in islice(_from_largest(contexts.space.length), limit):
            step()
            if contexts.score(index) is not None:
                return index
    return None


def uniform_valid(table: AnyTable, detector: Detector, noise: Noise) -> int | None:
    """Return a valid context, all of them equally likely; None if there is none. Examines all contexts."""
    return next(iter(_draw_evenly(table, detector, 1, noise)), None)


def uniform(
    table: AnyTable, detector: Detector, utility: Utility, *, samples: int, rate: Fraction, top: int, noise: Noise
) -> list[int]:
    """Choose among `samples` valid contexts that were drawn evenly, without replacement.

    Where all contexts can be examined they are; else evenly drawn contexts are examined, `MAX_EXAMINED` at most.
    """
    contexts = score_contexts(table, detector, utility)
    if detector.can_examine_all(table.space.count):
        return _choose_last(contexts, _draw_evenly(table, detector, samples, noise), rate, top, noise)
    visited: list[int] = []
    with progress.steps("drawing contexts", MAX_EXAMINED) as step:
        for index in _even_order(table.space.count, noise):
            visited += [index] if contexts.score(index) is not None else []
            step()
            if len(visited) == samples:
                break
    return _choose_last(contexts, visited, rate, top, noise)


def walk(contexts: ContextScores, *, start: int, samples: int, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Choose among up to `samples` contexts of a random walk over valid ones: every next one is an even choice."""
    here, visited = start, dict.fromkeys([start] if contexts.score(start) is not None else [])
    with progress.steps("walking", MOVES_PER_SAMPLE * samples) as step:
        for _ in range(MOVES_PER_SAMPLE * samples):
            if len(visited) >= samples:
                break
            order = _shuffle(list(contexts.adjacent(here)), noise)
            moved = next((to for to in order if contexts.score(to) is not None), None)
            if moved is None:
                break
            here = moved
            visited[here] = None
            step()
    return _choose_last(contexts, list(visited), rate, top, noise)


def dfs(contexts: ContextScores, *, start: int, samples: int, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Search depth first: `samples` times choose a valid context beside the current one, or step back."""
    path, visited = [start], {start}
    with progress.steps("searching in depth", samples) as step:
        while path and len(visited) <= samples:
            candidates = contexts.valid_adjacent(path[-1], visited)
            if not candidates:
                path.pop()
                continue
            path.append(candidates[_choose(contexts, candidates, rate, noise)])
            visited.add(path[-1])
            step()
    return _choose_last(contexts, visited, rate, top, noise)


def bfs(contexts: ContextScores, *, start: int, samples: int, rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Search breadth first: `samples` times choose a valid context beside any of those visited."""
    visited, met, frontier = [start], {start}, list[int]()
    with progress.steps("searching in breadth", samples) as step:
        for _ in range(samples):
            candidates = contexts.valid_adjacent(visited[-1], met)
            met.update(candidates)
            frontier += candidates
            if not frontier:
                break
            place = _choose(contexts, frontier, rate, noise)
            frontier[place], frontier[-1] = frontier[-1], frontier[place]
            visited.append(frontier.pop())
            step()
    return _choose_last(contexts, visited, rate, top, noise)


def guided_search(
    table: AnyTable,
    detector: Detector,
    utility: Utility,
    *,
    epsilon: Fraction,
    evaluations: int,
    top: int,
    noise: Noise,
) -> list[int]:
    """Return the `top` valid contexts with the highest noisy scores among the `evaluations` highest.

    For slow detectors. Every record lies in one cell, so noise that is added once to every cell's count hides one
    record in all populations together. What follows uses the noisy counts and validity only: it costs `epsilon` between
    tables with the same valid contexts, whatever `evaluations` and `top` are.
    """
    indices: list[int] = []
    order = _highest_contexts(*_noisy_cells(table, utility, epsilon, noise), evaluations)
    examine = detector.examine(table)
    with progress.steps("asking the detector", evaluations) as step:
        for index in order.tolist():
            indices += [index] if examine(index)[0] else []
            step()
            if len(indices) == top:
                break
    return indices


def _noisy_cells(table: AnyTable, utility: Utility, epsilon: Fraction, noise: Noise) -> tuple[RankedTable, Counts]:
    """Return cells as if they were records, and their noisy counts: all that is used of the data beside validity."""
    shape = tuple(others + 1 for others in table.space.free)
    if prod(shape) > MAX_NOISY_CELLS:
        raise ParameterError(
            f"domain_sizes: {prod(shape)} combinations of values are more than the {MAX_NOISY_CELLS} that noise is "
            "added to; name fewer values, or choose another search."
        )
    slots = np.stack(np.unravel_index(np.arange(prod(shape)), shape), axis=1).astype(np.int64)
    cells = RankedTable(table.space, slots, np.zeros(len(slots)), 0)
    measure = utility.measure(cells)
    if measure is None:
        raise ParameterError("utility: guided search needs one that counts records; choose direct or another.")
    cell = np.ravel_multi_index(tuple(table.slots.T), shape)
    counts = np.bincount(cell, weights=table.weights, minlength=len(slots)).astype(np.int64)
    most = (2**31 - 1) // len(slots)
    noisy = np.clip(counts + draws(noise, "laplace", 1 / epsilon, len(slots)), -most, most)
    return cells, (noisy * measure).astype(np.int32)


def _highest_contexts(cells: RankedTable, counts: Counts, most: int) -> Ints:
    """Return the contexts with the highest noisy scores, falling; the lower index first where scores are equal."""

    def best(first: int, _: NDArray[Any], scores: Counts) -> tuple[Ints, Counts]:
        kept = _highest_places(scores, np.arange(len(scores)), most)
        return first + kept, scores[kept]

    indices, scores = np.empty(0, np.int64), np.empty(0, np.int32)
    for more, more_scores in run_in_blocks(cells.space, count_parts(cells, counts), np.bool_, best):
        indices, scores = np.append(indices, more), np.append(scores, more_scores)
        kept = _highest_places(scores, indices, most)
        indices, scores = indices[kept], scores[kept]
    return indices


def _highest_places(scores: Counts, indices: Ints, most: int) -> Ints:
    """Return the places of the highest scores in falling order."""
    kept = np.arange(len(scores))
    if len(scores) > most:
        kept = np.flatnonzero(scores >= np.partition(scores, len(scores) - most)[len(scores) - most])
    return kept[np.lexsort((indices[kept], -scores[kept].astype(np.int64)))][:most]


def _choose(contexts: ContextScores, among: list[int], rate: Fraction, noise: Noise) -> int:
    (place,) = choose(contexts.scores(among), rate=rate, top=1, noise=noise)
    return place


def _choose_last(contexts: ContextScores, visited: Iterable[int], rate: Fraction, top: int, noise: Noise) -> list[int]:
    """Make the choice that is released, among the valid contexts that were visited."""
    among = sorted(index for index in visited if contexts.score(index) is not None)
    return [among[place] for place in choose(contexts.scores(among), rate=rate, top=top, noise=noise)]


def _draw_evenly(table: AnyTable, detector: Detector, samples: int, noise: Noise) -> list[int]:
    return draw_direct(table, detector, Even(), rate=Fraction(1), top=samples, noise=noise)


def _even_order(count: int, noise: Noise) -> Iterator[int]:
    """Yield contexts in even order, each once, `MAX_EXAMINED` at most."""
    if count <= 2 * MAX_EXAMINED:
        yield from islice(_shuffle(list(range(count)), noise), MAX_EXAMINED)
        return
    seen: set[int] = set()
    while len(seen) < MAX_EXAMINED:
        index = noise.below(count)
        if index not in seen:
            seen.add(index)
            yield index


def _shuffle(items: list[int], noise: Noise) -> Iterator[int]:
    """Yield the items in random order, drawn one by one as far as they are wanted."""
    for first in range(len(items)):
        other = first + noise.below(len(items) - first)
        items[first], items[other] = items[other], items[first]
        yield items[first]


def _from_largest(length: int) -> Iterator[int]:
    """Yield all indices: those with more bits first, in rising order where there are as many."""
    for ones in range(length, -1, -1):
        index = (1 << ones) - 1
        while index < 1 << length:
            yield index
            if index == 0:
                break
            low = index & -index
            high = index + low
            index = high | (((index ^ high) // low) >> 2)  # the next number with as many bits


# The searches that a query can name


def _draw_finished(ask: Question, rate: Fraction) -> list[int]:
    drawn, is_finished = draw_best_first(ask.table, ask.detector, ask.utility, rate=rate, top=ask.top, noise=ask.noise)
    return drawn if is_finished else []


def _search_by(step: Callable[..., list[int]]) -> Callable[[Question, Fraction], list[int]]:
    """Return a search from valid context to valid context."""

    def draw(ask: Question, rate: Fraction) -> list[int]:
        contexts = score_contexts(ask.table, ask.detector, ask.utility)
        start = find_start(contexts, ask)
        if start is None or contexts.score(start) is None:
            return []
        return step(contexts, start=start, samples=ask.samples, rate=rate, top=ask.top, noise=ask.noise)

    return draw


def find_start(contexts: ContextScores, ask: Question) -> int | None:
    """Return where a search starts: as asked, with the record's own values; else it depends on which contexts are
    valid, and on nothing else of the data.  (O)"""
    space = ask.table.space
    if ask.start is not None:  # whether it has the record's own values is not known before the look
        return space.index(space.widen(ask.start))
    start = first_valid(contexts)
    if start is None and ask.detector.can_examine_all(space.count):
        return uniform_valid(ask.table, ask.detector, ask.noise)
    return start


_LIST: Final = (
    Search(
        name="direct",
        note=t("an exact draw among all valid contexts"),
        draw=lambda ask, rate: draw_direct(
            ask.table, ask.detector, ask.utility, rate=rate, top=ask.top, noise=ask.noise
        ),
        max_bits=MAX_BITS,
    ),
    Search(
        name="best-first",
        note=t("the same law, and only the promising contexts are examined; proved for real numbers"),
        draw=_draw_finished,
        max_bits=MAX_INDEX_BITS,
        needs_counts=True,
        is_real=True,
    ),
    Search(
        name="uniform",
        note=t("the best of a few valid contexts"),
        draw=lambda ask, rate: uniform(
            ask.table, ask.detector, ask.utility, samples=ask.samples, rate=rate, top=ask.top, noise=ask.noise
        ),
    ),
    Search(name="walk", note=t("the paper's random walk"), draw=_search_by(walk)),
    Search(
        name="dfs",
        note=t("the paper's private depth-first search; its choices share ε"),
        draw=_search_by(dfs),
        choices_per_sample=1,
    ),
    Search(
        name="bfs",
        note=t("the paper's private breadth-first search; its choices share ε"),
        draw=_search_by(bfs),
        choices_per_sample=1,
    ),
    Search(
        name="guided",
        note=t("noisy counts lead the way; for slow detectors"),
        draw=lambda ask, _: guided_search(
            ask.table,
            ask.detector,
            ask.utility,
            epsilon=ask.epsilon,
            evaluations=max(ask.samples, ask.top),
            top=ask.top,
            noise=ask.noise,
        ),
        max_bits=MAX_BITS,
        needs_counts=True,
    ),
)
SEARCHES: Final[Mapping[str, Search]] = {search.name: search for search in _LIST}
