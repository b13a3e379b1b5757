"""Contexts as indices, bits and text in four languages."""

import sqlite3
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallflower.errors import DataError, ParameterError
from wallflower.queries.explain.space.contexts import Domain, Space, pandas_filter, polars_filter, predicate, where

JOBS = Domain("job title", ("O'Neil", 'the "boss"', "a, b", "", "x\\"))
YEARS = Domain("year", (2001, 2002, 2003))
AGES = Domain.between("age", (0, 18, 65, 120))


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4), st.data())
def test_index_and_bits_lead_back_to_each_other(shape, data):
    space = Space(tuple(size for size, _ in shape), tuple(own % size for size, own in shape))
    index = data.draw(st.integers(0, space.count - 1))
    bits = space.bits(index)
    assert space.index(bits) == index
    starts = np.cumsum([0, *space.sizes])[:-1]
    assert all(bits[start + own] == "1" for start, own in zip(starts, space.own, strict=True))
    assert len(bits) == sum(space.sizes)


def test_every_context_has_one_index():
    space = Space((3, 2, 1, 3), (1, 1, 0, 2))
    assert len({space.bits(index) for index in range(space.count)}) == space.count == 2 ** (9 - 4)
    assert space.bits(space.count - 1) == "1" * 9


def rows():
    draw = np.random.default_rng(1)
    jobs, years = draw.integers(0, 5, 60), draw.integers(0, 3, 60)
    ages = np.append(draw.integers(0, 120, 57), [0, 18, 120])
    return jobs, years, ages


CONTEXTS = ["10010110010", "11101110101", "01000001110", "01111001101", "00001111111", "11111010011", "11111111111"]


def selected(bits):
    """Which rows a context selects, by their codes."""
    jobs, years, ages = rows()
    codes = np.stack([jobs, years, AGES.encode(ages)], axis=1)
    chosen = np.array([bit == "1" for bit in bits])
    return np.flatnonzero(chosen[codes + np.array([0, 5, 8])].all(axis=1)).tolist()


@pytest.mark.parametrize("bits", CONTEXTS)
def test_sql_selects_the_records_of_the_context(bits):
    jobs, years, ages = rows()
    base = sqlite3.connect(":memory:")
    base.execute('CREATE TABLE t (i INTEGER, "job title" TEXT, year INTEGER, age REAL)')
    for i, (job, year, age) in enumerate(zip(jobs, years, ages, strict=True)):
        base.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (i, JOBS.labels[job], YEARS.labels[year], float(age)))
    text = where([JOBS, YEARS, AGES], bits)
    assert [i for (i,) in base.execute(f"SELECT i FROM t WHERE {text} ORDER BY i")] == selected(bits)
    base.close()


@pytest.mark.parametrize("bits", CONTEXTS)
@pytest.mark.parametrize(("library", "write"), [("pandas", pandas_filter), ("polars", polars_filter)])
def test_frames_select_the_records_of_the_context(bits, library, write):
    frames = import_module(library)
    jobs, years, ages = rows()
    columns = {
        "i": list(range(60)),
        "job title": [JOBS.labels[job] for job in jobs],
        "year": [YEARS.labels[year] for year in years],
        "age": ages.astype(float).tolist(),
    }
    text = write([JOBS, YEARS, AGES], bits)
    found = eval(text, {"df": frames.DataFrame(columns), "pl": frames})  # noqa: S307
    assert list(found["i"]) == selected(bits)


def test_predicates_read_well_and_drop_what_allows_everything():
    assert predicate([JOBS, YEARS, AGES], "11111" + "100" + "110") == "year IN {2001} AND age IN {[0, 65)}"
    assert predicate([JOBS, YEARS], "10100" + "111") == 'job title IN {O\'Neil, "a, b"}'
    assert predicate([JOBS, YEARS], "11011" + "011") == 'job title is all but "a, b" AND year is all but 2001'
    assert predicate([AGES], "101") == "age IN {[0, 18), [65, 120]}"
    assert predicate([JOBS, YEARS], "11111111") == "all records"
    assert where([YEARS], "111") == "1 = 1"


def test_strangers_are_refused_and_not_shown():
    for domain, column in [(YEARS, [2001, 1999]), (AGES, [5, 121]), (AGES, [float("nan")]), (YEARS, ["2001"])]:
        with pytest.raises(DataError, match="outside its public domain") as refusal:
            domain.encode(column)
        assert "1999" not in str(refusal.value)
        assert refusal.value.column == domain.name
    assert YEARS.encode(np.array([2003, 2001])).tolist() == [2, 0]


def test_malformed_domains_and_contexts_are_refused():
    for labels in [(), ("a", "a"), (1, 1.0), (float("nan"),), ("a\0b",), (None,)]:
        with pytest.raises(ParameterError):
            Domain("x", labels)
    for edges in [(1,), (1, 1), (2, 1), (0, float("nan"))]:
        with pytest.raises(ParameterError, match="edges"):
            Domain.between("x", edges)
    space = Space((2, 2), (0, 1))
    for bits in ["101", "1021", "0101", "1010"]:
        with pytest.raises(ParameterError, match="context"):
            space.index(bits)
    for wrong in [-1, 4]:
        with pytest.raises(ParameterError, match="index"):
            space.bits(wrong)
    with pytest.raises(ParameterError, match="allows no year"):
        predicate([JOBS, YEARS], "11111000")
    with pytest.raises(ParameterError, match="domain_sizes"):
        Space((0,), (0,))
    with pytest.raises(ParameterError, match="record"):
        Space((2,), (2,))
