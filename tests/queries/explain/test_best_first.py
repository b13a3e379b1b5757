"""Best-first search with lazy noise: the law of the exponential mechanism, and an end in every case."""

from fractions import Fraction

import numpy as np
import pytest
from laws import exponential_law, fits, table_of, world
from salaries import salaries
from scipy.stats import kstest

from wallflower.errors import ParameterError
from wallflower.noise import system_noise
from wallflower.queries.explain.detectors import CustomDetector, Distance, Grubbs, Histogram, Lof
from wallflower.queries.explain.draws import best_first as module
from wallflower.queries.explain.draws.best_first import draw_best_first
from wallflower.queries.explain.draws.utilities import CustomUtility, Overlap, Population
from wallflower.queries.explain.exact import evaluate
from wallflower.queries.explain.space.tables import rank_table

pytestmark = pytest.mark.slow  # together more than `make check` has room for

RATE = Fraction(1, 6)
RATES = {Population(): Fraction(1, 12), Overlap("10110110"): RATE}
STRETCHES = [(0.5, False), (1.0, True), (1.8, False)]
EVER, NEVER = CustomDetector(lambda values, index: True), CustomDetector(lambda values, index: False)


@pytest.fixture(scope="module", params=RATES, ids=repr)
def drawn(request):
    """Pairs of contexts in the order they were found, and the scores of all valid ones."""
    table, utility = table_of(), request.param
    pairs = [
        tuple(draw_best_first(table, Lof(3, 1.3), utility, rate=RATES[utility], top=2, noise=system_noise())[0])
        for _ in range(800)
    ]
    ask = utility.score_single(table, Lof(3, 1.3).examine(table))
    found = ((index, *ask(index)) for index in range(table.space.count))
    return pairs, {index: score for index, valid, score in found if valid}, RATES[utility]


@pytest.mark.parametrize(("stretch", "same"), STRETCHES)
def test_contexts_have_the_law_of_the_exponential_mechanism(drawn, stretch, same):
    pairs, scores, rate = drawn
    law = exponential_law(scores, stretch * float(rate), top=2)
    assert fits([pair[:1] for pair in pairs], exponential_law(scores, stretch * float(rate))) is same
    seconds = {index: sum(law[pair] for pair in law if pair[1] == index) for index in scores}
    assert fits([second for _, second in pairs], seconds) or not same
    assert all(first != second for first, second in pairs)


def test_all_contexts_come_in_falling_order_of_their_perturbed_scores():
    """With no weight on scores every order of contexts is equally likely."""
    table = rank_table([[0, 0], [1, 0], [2, 1]], [3, 2], [1.0, 2.0, 3.0], 0)
    sample = [
        tuple(draw_best_first(table, EVER, Population(), rate=Fraction(1, 10**9), top=8, noise=system_noise())[0])
        for _ in range(800)
    ]
    assert all(sorted(order) == list(range(8)) for order in sample)
    for place in (0, 3, 7):
        assert fits([order[place] for order in sample], dict.fromkeys(range(8), 1 / 8))
    assert not fits([order[0] for order in sample], dict.fromkeys(range(7), 1 / 7))


def test_the_exponential_variables_are_never_none_and_never_infinite():
    extreme = [module._exponential(np.uint64(word)) for word in (0, 1, 2**63, 2**64 - 2, 2**64 - 1)]
    assert all(0 < each < 40 for each in extreme)
    assert extreme == sorted(extreme)
    assert extreme[0] == pytest.approx(2.0**-64)
    sample = [module._exponential(word) for word in system_noise().words(40_000)]
    assert kstest(sample, "expon").pvalue > 1e-9
    assert kstest(np.array(sample) * 1.2, "expon").pvalue < 1e-9


@pytest.mark.parametrize(
    "detector", [NEVER, EVER, CustomDetector(lambda values, index: len(values) == 60), Distance(3, 1.0)]
)
def test_the_search_ends_with_all_that_are_valid(detector):
    table, whole = table_of(), evaluate(*world(), detector)
    found, finished = draw_best_first(table, detector, Population(), rate=RATE, top=99, noise=system_noise())
    assert finished
    assert sorted(found) == np.flatnonzero(whole.valid).tolist()


def test_a_table_with_a_single_context_is_searched_too():
    table = rank_table([[0], [0]], [1], [1.0, 5.0], 0)
    assert draw_best_first(table, EVER, Population(), rate=RATE, top=2, noise=system_noise()) == ([0], True)
    assert draw_best_first(table, NEVER, Population(), rate=RATE, top=2, noise=system_noise()) == ([], True)
    assert draw_best_first(table, EVER, Overlap("0"), rate=RATE, top=2, noise=system_noise()) == ([0], True)


def test_a_search_that_goes_on_for_too_long_says_so():
    codes, metric, record = salaries(n=500, sizes=(8, 8))
    table = rank_table(codes, (8, 8), metric, record)
    given = {"rate": RATE, "top": 1, "noise": system_noise()}
    assert draw_best_first(table, NEVER, Population(), **given, limit=2000) == ([], False)
    assert draw_best_first(table, NEVER, Population(), **given, limit=1 << 14) == ([], True)
    found, finished = draw_best_first(table, EVER, Population(), **{**given, "top": 10**6}, limit=2000)
    assert not finished
    assert len(found) == len(set(found)) > 100


@pytest.mark.parametrize("detector", [Lof(5, 1.2), Histogram(0.01), Grubbs(), Distance(60, 3000.0)], ids=repr)
def test_it_matters_not_whether_contexts_are_examined_one_by_one(monkeypatch, detector):
    codes, metric, record = salaries(n=2000, sizes=(5, 5, 4))
    table, whole = rank_table(codes, (5, 5, 4), metric, record), evaluate(codes, (5, 5, 4), metric, record, detector)
    valid = np.flatnonzero(whole.valid).tolist()
    for singles in (16, 1 << 20, 0):
        monkeypatch.setattr(type(detector), "max_singles", lambda self, contexts, singles=singles: singles)
        found, finished = draw_best_first(
            table, detector, Population(), rate=Fraction(1), top=9999, noise=system_noise()
        )
        assert (sorted(found), finished) == (valid, True)
        scores = whole.populations[found]
        assert (np.diff(scores) < 40).all()  # falling, but for noise


@pytest.mark.parametrize("sizes", [(3, 4, 2), (1, 6), (2, 2, 2, 2, 2)])
@pytest.mark.parametrize("utility", [Population(), Overlap("1010110110")], ids=repr)
def test_scores_of_nodes_are_those_of_their_largest_contexts(monkeypatch, sizes, utility):
    draw = np.random.default_rng(4)
    codes = np.stack([draw.integers(0, size, 50) for size in sizes], axis=1)
    table = rank_table(codes, sizes, draw.normal(size=50), 3)
    utility = Overlap(utility.context[: sum(sizes)]) if isinstance(utility, Overlap) else utility
    measure = utility.measure(table)
    length, free = table.space.length, ~np.int64(0)
    for many in (1 << 22, 0):
        monkeypatch.setattr(module, "MAX_DENSE_CELLS", many)
        masks, counts, starts = module._cells(table, measure)
        for index in range(table.space.count):
            for bit in range(length):
                if index >> bit & 1:
                    here = slice(starts[bit], starts[bit + 1])
                    lost = counts[here][(masks[here] & (free ^ index)) == 0].sum()
                    kept = measure[table.members(index)].sum() - measure[table.members(index ^ (1 << bit))].sum()
                    assert lost == kept


def test_a_draw_from_millions_of_contexts_is_a_matter_of_milliseconds():
    codes, metric, record = salaries()
    record = int(np.argsort(metric)[-51])
    table = rank_table(codes, (9, 8, 8), metric, record)
    (found,), finished = draw_best_first(table, Lof(), Population(), rate=Fraction(1, 5), top=1, noise=system_noise())
    assert finished
    assert Lof().outlier(table.values[table.members(found)], int(table.members(found)[: table.record].sum()))
    assert table.members(found).sum() > 0.7 * table.n


@pytest.mark.heavy  # all 33 million contexts are examined; the law is held on small tables, above
def test_a_draw_agrees_with_the_exact_one_where_small_contexts_are_valid():
    codes, metric, record = salaries()
    table, whole = rank_table(codes, (9, 8, 8), metric, record), evaluate(codes, (9, 8, 8), metric, record, Lof())
    found, finished = draw_best_first(table, Lof(), Population(), rate=Fraction(1, 5), top=5, noise=system_noise())
    assert finished
    assert whole.valid[found].all()
    assert whole.populations[found[0]] > whole.populations[whole.valid].max() - 200


def test_what_has_no_bound_is_refused():
    table, given = table_of(), {"rate": RATE, "top": 1, "noise": system_noise()}
    with pytest.raises(ParameterError, match=r"^utility: .+; .+\.$"):
        draw_best_first(table, EVER, CustomUtility(lambda bits, values: 1, 1), **given)
    with pytest.raises(ParameterError, match=r"^domain_sizes: .+; .+\.$"):
        draw_best_first(rank_table([[0]], [80], [1.0], 0), EVER, Population(), **given)
