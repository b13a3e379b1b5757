"""All contexts at once, against plain definitions context by context."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from salaries import salaries

from vectors import vectors
from wallflower import progress
from wallflower.errors import DataError, ParameterError
from wallflower.queries.explain.detectors import (
    ClampedGrubbs,
    CustomDetector,
    Distance,
    FixedBins,
    Grubbs,
    Histogram,
    Lof,
    Tukey,
)
from wallflower.queries.explain.exact import count_by_population, evaluate, valid_contexts
from wallflower.queries.explain.space import bitsets, cubes
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.tables import CellTable, rank_table


def table_of(case):
    return case["codes"], case["domain_sizes"], case["metric"], case["v"]


def detectors_of(params):
    return {
        "grubbs": Grubbs(params["alpha"]),
        "hist": Histogram(params["hist_frac"]),
        "lof": Lof(params["lof_k"], params["lof_theta"]),
        "distance": Distance(params["dist_k"], params["dist_r"]),
        "hist_fixed": FixedBins.equal(*params["bounds"], params["fixed_bins"], params["hist_frac"]),
    }


def plainly(codes, sizes, metric, record, detector):
    """Every context by its definition: a mask, a subset, a question to the reference."""
    codes, metric = np.asarray(codes), np.asarray(metric, dtype=float)
    space, found = Space(tuple(sizes), tuple(codes[record].tolist())), {}
    for index in range(space.count):
        bits, members = space.bits(index), np.ones(len(metric), bool)
        for attribute, size in enumerate(sizes):
            start = sum(sizes[:attribute])
            allowed = [place for place in range(size) if bits[start + place] == "1"]
            members &= np.isin(codes[:, attribute], allowed)
        if detector.outlier(metric[members], int(members[:record].sum())):
            found[bits] = int(members.sum())
    return found


@pytest.mark.parametrize("case", vectors("explain.json"))
@pytest.mark.parametrize("name", ["grubbs", "hist", "lof", "distance", "hist_fixed"])
def test_valid_contexts_are_those_of_the_vectors(case, name):
    detector, expected = detectors_of(case["params"])[name], case["detectors"][name]["valid"]
    assert valid_contexts(*table_of(case), detector) == expected
    assert valid_contexts(*table_of(case), CustomDetector(detector.outlier)) == expected
    assert evaluate(*table_of(case), detector).space.count == case["n_contexts"]


ALL = [
    Grubbs(0.05), Grubbs(0.5), ClampedGrubbs(1.0, 4.0, 20, 0.3), Histogram(0.3), Histogram(0.55), Lof(1, 1.1),
    Lof(2, 0.9), Lof(3, 1.0), Distance(1, 1.0), Distance(3, 0.0), FixedBins((0.0, 1.5, 3.0, 6.0), 0.3),
    Tukey((0, 1, 2, 3, 5), 1.0), Tukey((0.5, 2.5, 4.5), 0.1),
]  # fmt: skip


@st.composite
def tables(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) - len(sizes) <= 7))
    n = draw(st.integers(1, 16))
    rows = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    codes = draw(st.lists(rows, min_size=n, max_size=n))
    number = draw(st.sampled_from([st.integers(0, 6), st.just(3), st.floats(-9, 9, width=16), st.floats(-1e6, 1e6)]))
    metric = draw(st.lists(number, min_size=n, max_size=n))
    return codes, sizes, [float(x) for x in metric], draw(st.integers(0, n - 1))


@pytest.mark.slow
@pytest.mark.parametrize("detector", ALL, ids=repr)
@settings(max_examples=40, deadline=None)
@given(table=tables())
@example(table=([[0]], [1], [2.0], 0))
@example(table=([[0, 0]] * 5, [3, 3], [1.0, 1.0, 1.0, 1.0, 9.0], 4))
@example(table=([[0], [1], [1], [2], [0]], [4], [5e-324, 0.0, 0.0, 5e-324, 1.0], 0))
def test_engines_obey_the_references_on_tiny_tables(detector, table):
    assert valid_contexts(*table, detector) == plainly(*table, detector)


@pytest.mark.slow
@pytest.mark.parametrize("detector", ALL, ids=repr)
@pytest.mark.parametrize(("leaf", "cells", "inner", "chunk"), [(2, 1 << 20, 2, 2), (3, 30, 3, 1), (1, 8, 1, 1)])
def test_no_border_between_leaves_blocks_and_cubes_shows(monkeypatch, detector, leaf, cells, inner, chunk):
    draw = np.random.default_rng(leaf)
    sizes = [4, 3, 2, 5]
    codes = np.stack([draw.integers(0, size, 70) for size in sizes], axis=1)
    table = codes, sizes, draw.integers(0, 8, 70) + draw.choice([0, 0.25], 70), 11
    expected = evaluate(*table, CustomDetector(detector.outlier))
    monkeypatch.setattr(cubes, "LEAF_BITS", leaf)
    monkeypatch.setattr(cubes, "MAX_CELLS", cells)
    monkeypatch.setattr(bitsets, "INNER_BITS", inner)
    monkeypatch.setattr(bitsets, "CHUNK_VALUES", chunk)
    monkeypatch.setattr(cubes, "MIN_BLOCK_CONTEXTS", 8)
    monkeypatch.setattr(cubes, "BLOCK_CONTEXTS", 16)
    found = evaluate(*table, detector)
    assert found.valid.tolist() == expected.valid.tolist()
    assert found.populations.tolist() == expected.populations.tolist()


@pytest.mark.parametrize("detector", [Grubbs(), Histogram(0.01), Lof(5, 1.2), Distance(6, 500.0)], ids=repr)
@pytest.mark.parametrize("sizes", [(14,), (3, 13), (6, 5, 5)])
def test_engines_obey_the_references_on_samples_of_larger_tables(detector, sizes):
    codes, metric, record = salaries(n=2000, sizes=sizes)
    found, table = evaluate(codes, sizes, metric, record, detector), rank_table(codes, sizes, metric, record)
    examine = detector.examine(table)
    for index in np.random.default_rng(3).integers(0, found.space.count, 60).tolist():
        members = found.space.members(codes, index)
        assert found.populations[index] == members.sum()
        assert found.valid[index] == detector.outlier(metric[members], int(members[:record].sum()))
        assert table.members(index).sum() == members.sum()
        assert examine(index) == (found.valid[index], found.populations[index])


def test_local_factors_look_further_where_ties_reach_the_end():
    metric = np.array([0.0] * 40 + [1.0] * 40 + [2.0] * 40 + [2.5] + [7.0] * 3)
    codes = np.arange(len(metric))[:, None] % 3
    for record in (0, 50, 119, 120, 123):
        table = codes, [3], metric, record
        for detector in (Lof(1, 1.0), Lof(2, 1.0), Lof(4, 1.2)):
            assert valid_contexts(*table, detector) == plainly(*table, detector)


@pytest.mark.parametrize("tied", [3, 9, 40])
def test_local_factors_look_further_where_ties_of_a_neighbour_reach_the_end(tied):
    metric = np.array([8.0] * tied + [9.0, 9.125, 10.25])
    codes, record = np.zeros((len(metric), 1), int), len(metric) - 1
    for mirrored in (metric, -metric):
        low, high = 0.1, 10.0
        while high - low > 1e-9:  # bisect the threshold onto the factor
            middle = (low + high) / 2
            low, high = (middle, high) if Lof(2, middle).outlier(mirrored, record) else (low, middle)
        assert valid_contexts(codes, [1], mirrored, record, Lof(2, low))
        assert not valid_contexts(codes, [1], mirrored, record, Lof(2, high))


def test_a_detector_that_fails_has_found_no_outlier_and_tells_nothing():
    fragile = CustomDetector(lambda values, index: 1 / (len(values) - 2) < 0)  # fails with two records
    assert valid_contexts([[0], [1], [1]], [2], [1.0] * 3, 0, fragile) == {"10": 1}
    assert valid_contexts([[0], [0], [1]], [2], [1.0] * 3, 0, fragile) == {}


def test_a_near_tie_is_decided_as_the_reference_does(monkeypatch):
    calls = []
    exactly = CellTable.exact_sums
    monkeypatch.setattr(CellTable, "exact_sums", lambda *given: (calls.append(1), exactly(*given))[1])
    draw = np.random.default_rng(5)
    codes, sizes = draw.integers(0, 3, (30, 2)), [3, 3]
    metric = draw.normal(size=30)
    low, high = 0.0, 50.0
    for _ in range(60):  # bisect the record's metric onto the threshold of one context
        metric[4] = (low + high) / 2
        table = codes, sizes, metric, 4
        assert valid_contexts(*table, Grubbs()) == plainly(*table, Grubbs())
        low, high = (low, metric[4]) if "111111" in plainly(*table, Grubbs()) else (metric[4], high)
    assert len(calls) > 10


def test_populations_of_valid_contexts_are_counted_in_blocks():
    codes, metric, record = salaries(n=3000, sizes=(6, 6, 6))
    whole = evaluate(codes, (6, 6, 6), metric, record, Grubbs())
    counted = count_by_population(codes, (6, 6, 6), metric, record, Grubbs())
    assert counted.tolist() == np.bincount(whole.populations[whole.valid], minlength=3001).tolist()


def test_every_context_is_told_of_once():
    told = []

    class Listener:
        def begin(self, words, total):
            told.append(total)

        def advance(self, handle, steps):
            told.append(-steps)

        def end(self, handle):
            pass

    codes, metric, record = salaries(n=300, sizes=(8, 8))
    with progress.report_to(Listener()):
        evaluate(codes, (8, 8), metric, record, Grubbs())
    assert told[0] == 1 << 14
    assert sum(told) == 0


def test_tables_outside_their_public_domains_are_refused():
    with pytest.raises(DataError, match="within the public domains"):
        evaluate([[0], [2]], [2], [1.0, 2.0], 0, Grubbs())
    with pytest.raises(DataError, match="missing or immense"):
        evaluate([[0], [1]], [2], [1.0, np.nan], 0, Grubbs())
    with pytest.raises(DataError, match="one row per record"):
        evaluate([[0], [1]], [2, 2], [1.0, 2.0], 0, Grubbs())
    with pytest.raises(ParameterError, match="not a row of the table"):
        evaluate([[0], [1]], [2], [1.0, 2.0], 2, Grubbs())


def test_too_many_contexts_are_refused_before_any_is_examined():
    with pytest.raises(ParameterError, match="can be kept"):
        evaluate([[0]], [26], [1.0], 0, Grubbs())
    with pytest.raises(ParameterError, match="without an engine"):
        evaluate([[0]], [23], [1.0], 0, CustomDetector(lambda values, index: True))
    with pytest.raises(ParameterError, match="can all be examined"):
        count_by_population([[0]], [50], [1.0], 0, Grubbs())
