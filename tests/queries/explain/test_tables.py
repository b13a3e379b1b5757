"""A table by cells is the same however its records are cut and shuffled, and tells of contexts what the records do."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallflower as wf
from scripted_noise import Scripted
from wallflower.data import Schema, load, scans
from wallflower.data.scans import load_into
from wallflower.errors import DataError, EngineMismatch
from wallflower.ledger import Ledger
from wallflower.queries.explain.detectors import ClampedGrubbs, CustomDetector, Distance, FixedBins, Grubbs, Tukey
from wallflower.queries.explain.detectors.base import MarginDetector
from wallflower.queries.explain.detectors.grubbs import kappas_of
from wallflower.queries.explain.exact import margins, sweep
from wallflower.queries.explain.space.tables import (
    CellTable,
    add_tallies,
    rank_table,
    round_sums,
    tally_cells,
    tally_records,
)

DETECTORS = (
    Grubbs(0.3),
    ClampedGrubbs(-2.0, 3.0, 60, alpha=0.3),
    Distance(2, 1.0),
    FixedBins((-3.0, -1.0, 0.0, 2.0), 0.2),
    Tukey((-3.0, -1.0, 0.0, 0.5, 2.0, 4.0)),
)
NUMBERS = st.one_of(st.integers(-4, 9).map(float), st.floats(-1e9, 1e9), st.floats(-1e-300, 1e-300))
AWKWARD = st.floats(allow_nan=False, allow_infinity=False, width=64)


@st.composite
def tables(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    row = st.tuples(*[st.integers(0, size - 1) for size in sizes], NUMBERS)
    rows = draw(st.lists(row, min_size=1, max_size=40))
    return np.array([r[:-1] for r in rows]), sizes, np.array([r[-1] for r in rows]), draw(st.integers(0, len(rows) - 1))


@st.composite
def cuts(draw, n):
    order = np.array(draw(st.permutations(range(n))))
    edges = sorted({0, n, *draw(st.lists(st.integers(0, n), max_size=4))})
    return [order[a:b] for a, b in pairwise(edges)]


@settings(max_examples=60, deadline=None)
@given(data=st.data(), table=tables(), detector=st.sampled_from(DETECTORS))
def test_cells_are_the_same_whatever_the_chunks(data, table, detector):
    ranked = rank_table(*table)
    parts = (
        tally_cells(ranked.slots[at], ranked.values[at], ranked.own, ranked.space.free, detector.divide())
        for at in data.draw(cuts(ranked.n))
    )
    whole = detector.prepare(ranked)
    made = CellTable.from_tally(ranked.space, ranked.own, add_tallies(parts), detector.divide())
    for name in ("n", "own", "slots", "parts", "sums"):
        assert np.array_equal(getattr(whole, name), getattr(made, name)), name
    every = np.ones(len(whole.slots), bool)
    assert whole.exact_sums(every) == made.exact_sums(every)
    assert list(sweep(made, detector, _told)) == list(sweep(ranked, detector, _told))
    if isinstance(detector, MarginDetector):
        assert [each.tolist() for each in margins(made, detector)] == [e.tolist() for e in margins(ranked, detector)]


def _told(first, valid, populations):
    return first, valid.tolist(), populations.tolist()


@settings(max_examples=60, deadline=None)
@given(table=tables(), detector=st.sampled_from(DETECTORS))
def test_single_contexts_are_judged_as_by_their_records(table, detector):
    codes, _, metric, record = table
    ranked = rank_table(*table)
    examine = detector.examine(detector.prepare(ranked))
    for index in range(ranked.space.count):
        chosen = ranked.space.members(codes, index)
        place = int(np.count_nonzero(chosen[:record]))
        assert examine(index) == (detector.outlier(metric[chosen], place), np.count_nonzero(chosen))


@settings(max_examples=80, deadline=None)
@given(data=st.data(), rows=st.lists(st.tuples(st.integers(0, 3), AWKWARD), min_size=1, max_size=40))
def test_sums_lose_nothing(data, rows):
    key, numbers = np.array([k for k, _ in rows]), np.array([x for _, x in rows]) / 64
    made = add_tallies(
        tally_records(key[at], np.stack([numbers, -numbers])[:, at]) for at in data.draw(cuts(len(rows)))
    )
    assert dict(zip(made["key"].tolist(), made["count"].tolist(), strict=True)) == {
        k: int((key == k).sum()) for k in sorted(set(key.tolist()))
    }
    for place in range(8):
        wanted = sum(map(Fraction, numbers[key == place // 2].tolist()), Fraction(0)) * (-1) ** place
        assert sum(map(Fraction, made["term"][made["place"] == place].tolist()), Fraction(0)) == wanted
        assert round_sums(made["place"], made["term"], 8)[place] == float(wanted)


def test_a_sum_that_adds_in_floats_would_be_noticed():
    """In the order they come, the small one is lost."""
    key, numbers = np.zeros(3, np.int64), np.array([1.0, 2.0**60, -(2.0**60)])
    assert float(np.cumsum(numbers)[-1]) == 0.0
    made = tally_records(key, numbers[None])
    assert round_sums(made["place"], made["term"], 1).tolist() == [1.0]


def test_critical_values_one_by_one_are_those_of_the_table(monkeypatch):
    many = np.array([5_000, 1, 2, 3, 64, 65, 128, 129, 5_000, 16_384, 16_385])
    table = kappas_of(0.05, many)
    monkeypatch.setattr("wallflower.queries.explain.detectors.grubbs.MAX_TABLE_RECORDS", 0)
    assert kappas_of(0.05, many).tolist() == table.tolist()
    assert kappas_of(0.05, np.array([10**9]))[0] == pytest.approx(10**9, rel=0.05)


# On tiles

N = 400
DOMAIN = Schema.from_json(
    {
        "rows": N,
        "clip": True,
        "columns": {
            "ward": {"categories": ["a", "b", "c"]},
            "age": {"edges": [18, 65]},
            "pay": {"low": 0, "high": 100},
            "id": {"identifier": True},
            "other": {},
        },
    }
)


@pytest.fixture
def people(monkeypatch):
    monkeypatch.setattr(scans, "CHUNK", 37)
    made = np.random.default_rng(2)
    pay = np.append(made.normal(40, 5, N - 1), 93.0)
    return pa.table(
        {
            "ward": pa.array(np.array(["a", "b", "c"])[made.integers(0, 3, N)]),
            "age": made.uniform(0, 120, N),
            "pay": pay,
            "id": [f"p{at}" for at in range(N)],
            "other": np.arange(float(N)),
        }
    )


def asked(**given):
    usual = {"record": str(N - 1), "metric": "pay", "context": ("ward", "age"), "domain": DOMAIN, "loss": wf.Loss("5")}
    return wf.Explain(**usual | given)


WAYS = {
    "tukey": {},
    "distance": {"detector": "distance:k=40,radius=20"},
    "bins": {"detector": "bins:points=9,fraction=0.05", "top": 3},
    "clamped Grubbs": {"detector": "clamped-grubbs"},
    "grubbs": {"detector": "grubbs", "mode": "ocdp", "top": 2},
    "overlap": {"mode": "ocdp", "utility": "overlap", "near": "110111"},
    **{way: {"mode": "ocdp", "search": way, "samples": 6} for way in ("uniform", "walk", "dfs", "bfs", "guided")},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_noise_names_the_same_contexts(people, way):
    """By row and by name; so the law of the answer is that of the table in memory."""
    memory, tiled = load(people, schema=DOMAIN), load_into(people, "tiles", schema=DOMAIN)
    for named in ({}, {"record": f"p{N - 1}", "identifier": "id"}):
        query = asked(**WAYS[way] | named)
        for seed in range(3):
            told = [query.answer(query.view(table), Scripted(seed)) for table in (memory, tiled)]
            assert told[0] == told[1] != []


def test_the_data_set_explains_on_tiles_and_pays_once(people, tmp_path):
    with Ledger.open(tmp_path / "book.db") as book:
        book.grant("people", wf.Loss("9"), by="steward")
        opened = wf.open(people, schema=DOMAIN, name="people", ledger=book, engine="tiles")
        made = opened.ask(asked(), force=True)
        assert made.value[0]["bits"]
        assert len(book.history("people", event="charge")) == 1


REFUSALS = {
    "lof": ({"detector": "lof", "mode": "ocdp"}, "the detector lof"),
    "histogram": ({"detector": "histogram", "mode": "ocdp"}, "the detector histogram"),
    "a function": ({"detector": CustomDetector(lambda values, index: True), "mode": "ocdp"}, "the detector custom"),
    "too many": ({"size": 10**9, "detector": "tukey"}, "a bound of 1,000,000,000 records"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_what_is_no_matter_of_counts_and_sums_is_refused_before_the_charge(people, why, tmp_path):
    given, words = REFUSALS[why]
    with Ledger.open(tmp_path / "book.db") as book:
        opened = wf.open(people, schema=DOMAIN, name="people", ledger=book, engine="tiles")
        with pytest.raises(EngineMismatch, match=rf"explain with {words}.*(Choose|State)"):
            opened.ask(asked(**given), force=True)
        assert book.history("people", event="charge") == []


def test_a_record_that_is_not_there_is_refused_in_the_words_of_memory(people):
    for wrong in (
        {"record": str(N)},
        {"record": "nobody", "identifier": "id"},
        {"record": "p1", "identifier": "other"},
    ):
        told = []
        for table in (load(people, schema=DOMAIN), load_into(people, "tiles", schema=DOMAIN)):
            with pytest.raises(DataError) as refused:
                asked(**wrong).view(table)
            told.append(str(refused.value))
        assert told[0] == told[1]


def test_long_names_are_refused_when_the_table_is_kept(people):
    long = people.set_column(3, "id", pa.array([*(f"p{at}" for at in range(N - 1)), "x" * 300]))
    with pytest.raises(DataError, match="'id' has texts of more than 256 bytes"):
        load_into(long, "tiles", schema=DOMAIN)
    assert load_into(long, "tiles", schema=DOMAIN.but_read({"without": ("id",)})).columns == (
        "ward",
        "age",
        "pay",
        "other",
    )


def test_a_broken_chunk_would_be_noticed(people, monkeypatch):
    """One that counts from its own first record, in the place of the one that is given."""
    tiled, memory = load_into(people, "tiles", schema=DOMAIN), load(people, schema=DOMAIN)
    query = asked(detector="distance:k=3,radius=20")
    detector = query.detector_for(N)
    whole = detector.prepare(query.view(memory).table)
    assert np.array_equal(query.view(tiled).table_for(detector).parts, whole.parts)
    right = tally_cells
    monkeypatch.setattr(
        "wallflower.queries.explain.case.tally_cells",
        lambda slots, values, own, free, division: right(slots, values, float(values[0]), free, division),
    )
    assert not np.array_equal(query.view(tiled).table_for(detector).parts, whole.parts)
