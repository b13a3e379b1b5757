"""Searches: their law on small graphs, that they end, and what their choices cost."""

from collections import defaultdict
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from laws import exponential_law, fits, table_of, world
from salaries import salaries

from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.queries.explain.detectors import CustomDetector, Distance, Lof
from wallflower.queries.explain.draws import ocdp
from wallflower.queries.explain.draws.ocdp import (
    SEARCHES,
    ContextScores,
    bfs,
    dfs,
    first_valid,
    score_contexts,
    uniform,
    uniform_valid,
    walk,
)
from wallflower.queries.explain.draws.utilities import CustomUtility, Overlap, Population
from wallflower.queries.explain.exact import evaluate
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.tables import rank_table

RATE = Fraction(1, 4)
SPACE = Space((3, 3), (0, 0))
SCORES = {0: 3, 1: 5, 3: 9, 2: 4, 6: 1, 7: 8, 15: 12, 13: 6, 12: 2}  # the valid contexts among 16
STRETCHES = [(0.1, False), (1.0, True), (3.0, False)]


def graph(scores=SCORES):
    return ContextScores(SPACE, lambda index: (index in scores, scores.get(index, 99)))


def beside(index):
    return [index ^ (1 << bit) for bit in range(4)]


def added(law, more, chance):
    for outcome, part in more.items():
        law[outcome] += chance * part


def single(scores, rate):
    return {key: chance for (key,), chance in exponential_law(scores, rate).items()}


def bfs_law(start, samples, rate):
    """By walking through every sequence of choices."""

    def after(visited):
        edge = {to for at in visited for to in beside(at)} & SCORES.keys() - set(visited)
        if not edge or len(visited) > samples:
            return single({at: SCORES[at] for at in visited if at in SCORES}, rate)
        law = defaultdict(float)
        for to, chance in single({to: SCORES[to] for to in edge}, rate).items():
            added(law, after((*visited, to)), chance)
        return law

    return after((start,))


def dfs_law(start, samples, rate):
    def after(visited, way):
        if not way or len(visited) > samples:
            return single({at: SCORES[at] for at in visited if at in SCORES}, rate)
        found = {to: SCORES[to] for to in beside(way[-1]) if to in SCORES and to not in visited}
        if not found:
            return after(visited, way[:-1])
        law = defaultdict(float)
        for to, chance in single(found, rate).items():
            added(law, after((*visited, to), (*way, to)), chance)
        return law

    return after((start,), (start,))


def walk_law(start, samples, rate):
    def after(visited, here, moves):
        found = [to for to in beside(here) if to in SCORES]
        if not found or moves == 0 or len(visited) >= samples:
            return single({at: SCORES[at] for at in visited if at in SCORES}, rate)
        law = defaultdict(float)
        for to in found:
            added(law, after(visited | {to}, to, moves - 1), 1 / len(found))
        return law

    return after(frozenset({start} & SCORES.keys()), start, 2 * samples)


LAWS = [
    (bfs, bfs_law, 2, 3), (bfs, bfs_law, 0, 2), (bfs, bfs_law, 5, 2), (dfs, dfs_law, 2, 4), (dfs, dfs_law, 15, 3),
    (dfs, dfs_law, 6, 6), (walk, walk_law, 2, 3), (walk, walk_law, 5, 3),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("search", "law", "start", "samples"), LAWS)
def test_searches_release_by_the_law_of_their_choices(monkeypatch, search, law, start, samples):
    monkeypatch.setattr(ocdp, "MOVES_PER_SAMPLE", 2)
    given = {"start": start, "samples": samples, "rate": RATE, "top": 1, "noise": system_noise()}
    sample = [search(graph(), **given)[0] for _ in range(2000)]
    assert sum(law(start, samples, float(RATE)).values()) == pytest.approx(1)
    for stretch, same in STRETCHES:
        assert fits(sample, law(start, samples, stretch * float(RATE))) is same


STEPPING = [bfs, dfs, walk]


@pytest.mark.parametrize("search", [bfs, dfs])
def test_several_contexts_are_peeled_from_those_visited(search):
    given = {"start": 2, "samples": 99, "rate": RATE, "noise": system_noise()}
    sample = [tuple(search(graph(), top=2, **given)) for _ in range(300)]
    assert fits([pair[:1] for pair in sample], exponential_law(SCORES, float(RATE)))
    assert all(first != second for first, second in sample)
    assert sorted(search(graph(), top=99, **given)) == sorted(SCORES)


@pytest.mark.parametrize("search", STEPPING)
@pytest.mark.parametrize(
    ("scores", "start", "expected"),
    [
        ({}, 5, set()),  # none valid
        ({5: 7}, 5, {5}),  # an isolated start
        ({5: 7, 10: 3, 9: 4}, 5, {5}),  # others, out of reach
        ({4: 1}, 5, {4}),  # a start that is not valid beside one that is
        ({5: 7, 4: 2, 12: 1}, 5, {5, 4, 12}),  # fewer than are asked for
    ],
)
def test_searches_end_with_what_is_within_reach(search, scores, start, expected):
    found = search(graph(scores), start=start, samples=50, rate=RATE, top=9, noise=system_noise())
    assert len(found) == len(set(found))
    assert set(found) == expected


@pytest.mark.parametrize("search", STEPPING)
def test_no_more_is_visited_than_was_asked_for(search):
    ask = ContextScores(Space((13,), (0,)), lambda index: (True, index.bit_count()))
    for samples in (1, 2, 7):
        found = search(ask, start=0, samples=samples, rate=RATE, top=99, noise=system_noise())
        assert len(found) == samples + (search is not walk)


@pytest.mark.parametrize("search", STEPPING)
def test_a_context_is_asked_about_once(search):
    times = defaultdict(int)

    def examine(index):
        times[index] += 1
        return index % 3 > 0, index

    search(ContextScores(Space((9,), (0,)), examine), start=1, samples=12, rate=RATE, top=2, noise=system_noise())
    assert set(times.values()) == {1}


def test_the_first_valid_context_is_the_largest_in_a_public_order():
    assert list(ocdp._from_largest(3)) == [7, 3, 5, 6, 1, 2, 4, 0]
    assert list(ocdp._from_largest(0)) == [0]
    assert first_valid(graph()) == 15
    assert first_valid(graph({12: 1, 3: 9, 4: 20})) == 3
    assert first_valid(graph({0: 1})) == 0
    assert first_valid(graph({})) is None
    assert first_valid(graph({0: 1}), limit=15) is None
    endless = ContextScores(Space((80,), (0,)), lambda index: (index.bit_count() < 77, 1))
    assert first_valid(endless) == (1 << 76) - 1


def test_a_uniform_start_is_uniform_among_the_valid():
    table, detector = table_of(), Lof(3, 1.3)
    valid = np.flatnonzero(evaluate(*world(), detector).valid).tolist()
    sample = [uniform_valid(table, detector, system_noise()) for _ in range(1000)]
    assert fits(sample, dict.fromkeys(valid, 1 / len(valid)))
    assert not fits(sample, dict.fromkeys(range(32), 1 / 32))
    assert uniform_valid(table, CustomDetector(lambda values, index: False), system_noise()) is None


def uniform_law(scores, samples, rate):
    """The last choice among every sample, for samples so small that all can be listed."""
    law, ways = defaultdict(float), list(permutations(scores, samples))
    for way in ways:
        added(law, single({at: scores[at] for at in way}, rate), 1 / len(ways))
    return law


@pytest.mark.slow
@pytest.mark.parametrize(
    ("detector", "limit"),
    [(Lof(3, 1.3), 1 << 14), (CustomDetector(Lof(3, 1.3).outlier), 1 << 14), (CustomDetector(Lof(3, 1.3).outlier), 15)],
)
def test_the_best_of_a_uniform_sample_is_chosen(monkeypatch, detector, limit):
    table, whole = table_of(), evaluate(*world(), detector)
    scores = {index: int(whole.populations[index]) for index in np.flatnonzero(whole.valid).tolist()}
    monkeypatch.setattr(ocdp, "MAX_EXAMINED", limit)
    given = {"samples": 3, "rate": Fraction(1, 6), "top": 1, "noise": system_noise()}
    sample = [uniform(table, detector, Population(), **given)[0] for _ in range(500)]
    if limit > 15:  # else some samples are smaller
        assert fits(sample, uniform_law(scores, 3, 1 / 6))
    assert set(sample) <= scores.keys()
    assert not fits(sample, uniform_law(scores, 1, 1 / 6))


@pytest.mark.parametrize("limit", [1 << 14, 4])
def test_uniform_sampling_ends_where_fewer_are_valid(monkeypatch, limit):
    table, codes = table_of(), world()[0]
    monkeypatch.setattr(ocdp, "MAX_EXAMINED", limit)
    none, one = (
        CustomDetector(lambda values, index: False),
        CustomDetector(lambda values, index: len(values) == len(codes)),
    )
    given = {"samples": 7, "rate": RATE, "top": 9, "noise": system_noise()}
    assert uniform(table, none, Population(), **given) == []
    assert set(uniform(table, one, Population(), **given)) <= {31}
    assert limit == 4 or uniform(table, one, Population(), **given) == [31]
    some = Distance(3, 1.0)
    found = uniform(table, some, Population(), **{**given, "samples": 99, "top": 99})
    assert sorted(found) == np.flatnonzero(evaluate(*world(), some).valid).tolist()


UTILITIES = {
    "population": Population(),
    "overlap": Overlap("10110111"),
    "own": CustomUtility(lambda bits, x: len(x), 1),
}


@pytest.mark.parametrize("utility", UTILITIES.values(), ids=UTILITIES)
def test_a_search_goes_by_the_utility_it_is_given(utility):
    table = table_of()
    ask = score_contexts(table, Distance(3, 1.0), utility)
    start = first_valid(ask)
    found = bfs(ask, start=start, samples=99, rate=Fraction(50), top=99, noise=system_noise())
    scores = [ask.score(index) for index in found]
    assert len(found) == len(np.flatnonzero(evaluate(*world(), Distance(3, 1.0)).valid))
    assert scores == sorted(scores, reverse=True)


def test_breadth_first_finds_useful_contexts_in_a_large_table():
    codes, metric, record = salaries(n=20_000)
    record = int(np.argsort(metric)[-21])
    table, detector = rank_table(codes, (9, 8, 8), metric, record), Lof()
    whole = evaluate(codes, (9, 8, 8), metric, record, Distance(1, 1e9))
    ask = score_contexts(table, detector, Population())
    start = first_valid(ask)
    rate = SEARCHES["bfs"].rate(Fraction(1, 5), utility=Population(), samples=50, top=3)
    found = bfs(ask, start=start, samples=50, rate=rate, top=3, noise=system_noise())
    assert len(set(found)) == 3
    assert all(
        detector.outlier(table.values[table.members(at)], int(table.members(at)[: table.record].sum())) for at in found
    )
    assert whole.populations[found].max() > 0.5 * whole.populations[start]


@pytest.mark.parametrize("search", ["direct", "best-first", "uniform", "walk"])
def test_searches_that_choose_at_the_end_only_pay_for_that(search):
    given = {"samples": 50, "top": 4}
    assert SEARCHES[search].rate(Fraction(1), utility=Population(), **given) == Fraction(1, 4)
    assert SEARCHES[search].rate(Fraction(1), utility=CustomUtility(max, 3), **given) == Fraction(1, 24)
    assert SEARCHES[search].rate(Fraction(1), utility=CustomUtility(max, 3, monotone=True), **given) == Fraction(1, 12)


@pytest.mark.parametrize("search", ["bfs", "dfs"])
def test_searches_that_choose_every_step_pay_for_every_step(search):
    assert SEARCHES[search].rate(Fraction(1), utility=Overlap("1"), samples=50, top=4) == Fraction(1, 54)
    assert SEARCHES[search].rate(Fraction(1), utility=CustomUtility(max, 1), samples=50, top=4) == Fraction(1, 108)


def test_more_contexts_than_an_index_can_count_are_refused():
    with pytest.raises(ParameterError, match=r"^domain_sizes: .+; .+\.$"):
        score_contexts(rank_table([[0]], [64], [1.0], 0), Lof(), Population())
    assert score_contexts(rank_table([[0]], [63], [1.0], 0), Lof(), Population()).score((1 << 62) - 1) is None


@pytest.mark.parametrize("monotone", [True, False])
def test_the_rate_keeps_the_laws_of_neighbours_within_epsilon(monotone):
    """All tables of scores of three contexts, and all that one record could make of them."""
    epsilon, worst = Fraction(1), 0.0
    utility = CustomUtility(max, 1, monotone=monotone)
    rate = float(SEARCHES["direct"].rate(epsilon, utility=utility, samples=1, top=1))
    moves = [(0, 1)] * 3 if monotone else [(-1, 0, 1)] * 3
    for scores in np.ndindex(3, 3, 3):
        for change in np.array(np.meshgrid(*moves)).reshape(3, -1).T:
            one, other = (exponential_law(dict(enumerate(each)), rate) for each in (scores, np.add(scores, change)))
            worst = max(worst, *(abs(np.log(one[key] / other[key])) for key in one))
    assert 0.6 < worst <= epsilon + 1e-9
