"""Margins: the vectors, the Lipschitz property by brute force, and that a positive margin means an outlier."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from salaries import salaries
from scipy import stats

from vectors import vectors
from wallflower.errors import DataError, ParameterError
from wallflower.queries.explain import exact as module
from wallflower.queries.explain.detectors import ClampedGrubbs, Distance, FixedBins, Grubbs, Histogram, Lof, Tukey
from wallflower.queries.explain.detectors.grubbs import kappas
from wallflower.queries.explain.exact import evaluate, margin, margins, margins_in_blocks, valid_contexts
from wallflower.queries.explain.space.tables import rank_table

pytestmark = pytest.mark.slow  # together more than `make check` has room for


@pytest.mark.parametrize("case", vectors("explain.json"))
def test_margins_are_those_of_the_vectors(case):
    table, params = (case["codes"], case["domain_sizes"], case["metric"], case["v"]), case["params"]
    detectors = {
        "distance": Distance(params["dist_k"], params["dist_r"]),
        "hist_fixed": FixedBins.equal(*params["bounds"], params["fixed_bins"], params["hist_frac"]),
        "grubbs_clamped": ClampedGrubbs(*params["bounds"], len(case["metric"]), params["alpha"]),
    }
    assert case["margins"].keys() == detectors.keys()
    for name, expected in case["margins"].items():
        assert margin(*table, detectors[name]) == pytest.approx(expected, abs=1e-6)


WITH_MARGIN = [
    Distance(2, 1.0), FixedBins((0.0, 1.5, 3.0, 6.0), 0.3), FixedBins((0.0, 3.0, 6.0), 0.8),
    Tukey((0, 1, 2, 3, 5), 1.0), Tukey((0.5, 2.5, 4.5), 0.1), ClampedGrubbs(0.0, 5.0, 14),
    ClampedGrubbs(0.0, 5.0, 14, 0.5), ClampedGrubbs(2.0, 9.0, 14, 0.4, 9),
]  # fmt: skip


@st.composite
def neighbours(draw):
    """A table, and the same with one record more."""
    sizes = draw(st.sampled_from([[3], [2, 2], [3, 2], [2, 2, 2]]))
    row = st.tuples(st.tuples(*(st.integers(0, size - 1) for size in sizes)), st.sampled_from([0, 0.5, 1, 2, 3, 5, 9]))
    rows = draw(st.lists(row, min_size=1, max_size=13))
    more = [*rows, draw(row)]
    record = draw(st.integers(0, len(rows) - 1))
    return [([code for code, _ in each], sizes, [float(x) for _, x in each], record) for each in (rows, more)]


@pytest.mark.parametrize("detector", WITH_MARGIN, ids=repr)
@settings(max_examples=60, deadline=None)
@given(pair=neighbours())
def test_one_record_moves_a_margin_by_at_most_one(detector, pair):
    before, after = (margin(*table, detector) for table in pair)
    assert before.keys() == after.keys()
    assert max(abs(before[bits] - after[bits]) for bits in before) <= 1 + 1e-9


@pytest.mark.parametrize("detector", WITH_MARGIN, ids=repr)
@settings(max_examples=60, deadline=None)
@given(pair=neighbours())
def test_a_positive_margin_means_an_outlier(detector, pair):
    for table in pair:
        positive = {bits for bits, value in margin(*table, detector).items() if value > 0}
        valid = valid_contexts(*table, detector).keys()
        assert positive <= valid
        if not isinstance(detector, ClampedGrubbs):
            assert positive == valid


@pytest.mark.parametrize("detector", WITH_MARGIN[:2] + WITH_MARGIN[3:6], ids=repr)
def test_a_whole_step_is_taken(detector):
    """A margin that never moved by more than a half would waste half of what is paid."""
    draw, most = np.random.default_rng(4), 0.0
    for _ in range(300):
        n = int(draw.integers(2, 14))
        metric, codes = draw.choice([0.0, 0.5, 1, 2, 3, 5, 9], n), draw.integers(0, 2, (n, 1))
        one = margin(codes, [2], metric, 0, detector)
        other = margin(codes[:-1], [2], metric[:-1], 0, detector)
        most = max(most, *(abs(one[bits] - other[bits]) for bits in one))
    assert most > 0.9


def test_the_margin_of_a_fence_is_its_definition():
    draw, detector = np.random.default_rng(8), Tukey(tuple(np.linspace(0, 9, 13).tolist()), 0.7)
    for _ in range(60):
        x = np.append(draw.choice([0.0, 9.5, 4.0, draw.uniform(0, 10)]), draw.normal(5, 1.5, draw.integers(0, 30)))
        n, best = len(x), -float(len(x))
        for low in detector.grid:
            for high in detector.grid:
                beyond = detector.is_above(x[0], low, high) or detector.is_below(x[0], low, high)
                if low <= high and beyond:
                    best = max(best, min(np.sum(x <= high) - 0.75 * n, n / 4 - np.sum(x < low)) / 0.75)
        assert margin(np.zeros((n, 1), int), [1], x, 0, detector)["1"] == pytest.approx(best, abs=1e-12)


def test_blocks_hold_what_the_whole_holds():
    codes, metric, record = salaries(n=2000, sizes=(6, 6, 6))
    table = rank_table(codes, (6, 6, 6), metric, record)
    detector = ClampedGrubbs(5e4, 4e5, 5000)
    found, populations = margins(table, detector)
    sums = list(margins_in_blocks(table, detector, lambda first, here, counts: (first, here.sum(), counts.sum())))
    assert [first for first, *_ in sums] == sorted(first for first, *_ in sums)
    assert sum(total for _, total, _ in sums) == pytest.approx(found.sum())
    whole = evaluate(codes, (6, 6, 6), metric, record, detector)
    assert whole.populations.tolist() == populations.tolist()
    assert not (found > 0)[~whole.valid].any()
    assert (found > 0).sum() > 0.9 * whole.valid.sum() > 0


def test_margins_are_refused_where_there_is_none_or_a_bound_is_broken(monkeypatch):
    for detector in (Lof(), Histogram(), Grubbs()):
        with pytest.raises(ParameterError, match="has no margin"):
            margin([[0]], [1], [1.0], 0, detector)
    with pytest.raises(DataError, match="public bound"):
        margin([[0]] * 5, [1], [1.0] * 5, 0, ClampedGrubbs(0, 1, 4))
    monkeypatch.setattr(module, "KEPT_CONTEXTS", 1)
    with pytest.raises(ParameterError, match="can be kept"):
        margin([[0]], [2], [1.0], 0, Distance(1, 1.0))


def test_kappa_is_that_of_the_printed_test():
    for alpha in (0.05, 1e-6, 0.5):
        found = kappas(alpha, 300_000)
        for n in (3, 4, 64, 65, 100, 128, 129, 5000, 65_536, 65_537, 299_999):
            t = stats.t.isf(alpha / (2 * n), n - 2)
            assert found[n] == pytest.approx(n * (n - 1) * t**2 / ((n - 2) + n * t**2), rel=1e-12)
        assert kappas(alpha, 70).tolist() == found[:71].tolist()
