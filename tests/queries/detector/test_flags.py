"""Flags by group: exact without noise, told for every public group, and refused by public facts alone."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallflower as wf
from wallflower.data.scans import load_into
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.noise import system_noise
from wallflower.queries.detector.flags import Flags

DRAW = np.random.default_rng(8)
N = 4000
WARDS = ("north", "south", "empty")
PLACES = DRAW.integers(0, 2, N)
VALUES = DRAW.normal(size=(N, 2))
VALUES[(PLACES == 1) & (np.arange(N) < 400)] += 40.0
FACTS = wf.Schema.of(["x", "y", "ward", "age"], categories={"ward": WARDS}, edges={"age": (18.0,)})
TABLE = wf.load(
    pa.table({
        "x": VALUES[:, 0],
        "y": VALUES[:, 1],
        "ward": np.array(WARDS)[PLACES],
        "age": DRAW.uniform(0, 40, N),
    }),
    schema=FACTS,
    name="people",
)  # fmt: skip


@pytest.fixture
def people(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.grant("people", wf.Loss("100000"), by="steward", reason="tests")
        yield wf.open(TABLE, ledger=book)


def test_with_much_loss_they_are_the_flags_of_each_group(people):
    model = people.detector(epsilon="1000", contamination="4%", columns=("x", "y"))
    flags = model.predict(TABLE)
    made = people.flags(detector=model, by="ward", epsilon="1000")
    told = {row["ward"]: (row["flagged"], row["others"]) for row in made.value}
    exact = {ward: (flags[at == PLACES].sum(), (1 - flags)[at == PLACES].sum()) for at, ward in enumerate(WARDS)}
    assert told == exact
    assert told["empty"] == (0, 0)
    assert told["south"][0] > told["north"][0]
    assert "south has the most flags, by more than noise explains" in made.text
    assert [label.get_text() for label in made.plot().axes[0].get_yticklabels()] == list(WARDS)
    both = people.flags(detector=model.ledger_id, by=("ward", "age"), epsilon="1000")
    assert len(both.value) == 6
    assert sum(row["flagged"] for row in both.value) == flags.sum()
    assert made.to_csv().splitlines()[0] == "ward,flagged,others,low,high"
    assert people.flags(detector=model, by="ward", epsilon="1").guarantee.loss == wf.Loss("1")


def test_the_group_with_the_most_flags_has_an_interval_that_holds_for_all_groups():
    """It is picked by its number, so among 100 groups without a flag an interval of its own would miss 0 nearly
    always."""
    query = Flags(detector=1, by=("ward",), loss=wf.Loss("1"))
    rows = [{"ward": str(at), "flagged": at // 99 * 9, "others": 50} for at in range(100)]
    found = query.reading(rows, TABLE).extras
    width = query.law.half_width(1 - 0.05 / 100)
    assert found["highest_interval"] == [max(0, 9 - width), 9 + width]
    assert found["intervals"][99][1] < found["highest_interval"][1]


def test_no_group_is_ranked_first_where_every_interval_contains_none():
    """The statement that was false: "south has the most flags: about 8 of 617", reliable, between 0 and 20."""
    query = Flags(detector=1, by=("ward",), loss=wf.Loss("1/2"))
    flagged = {"north": 0, "south": 8, "west": 0}
    reading = query.reading([{"ward": ward, "flagged": n, "others": 609} for ward, n in flagged.items()], TABLE)
    assert all(low == 0 for low, _ in reading.extras["intervals"])
    assert "has the most" not in reading.text
    assert "by no more than noise explains" in reading.text
    assert reading.quality.noise == "mostly noise"


def test_what_is_refused_is_refused_before_anything_is_charged(people):
    model = people.detector(epsilon="10", contamination="4%", columns=("x", "y"))
    bare = people.detector(epsilon="10", columns=("x", "y"))
    spent = str(people.budget().left)
    for asked, said in (
        ({"detector": 10**6, "by": "ward"}, "not a release of detector"),
        ({"detector": bare, "by": "ward"}, "no flags"),
        ({"detector": model, "by": "x"}, "neither categories nor edges"),
        ({"detector": model, "by": ("ward", "ward")}, "two different ones"),
        ({"detector": "seven", "by": "ward"}, "nor its number"),
    ):
        with pytest.raises((ParameterError, DataError), match=said):
            people.flags(**asked, epsilon="1")
    assert str(people.budget().left) == spent
    with pytest.raises(LossMismatch, match="flags is pure"):
        Flags(detector=1, by=("ward",), loss=wf.Loss.zcdp("1"))
    other = wf.load(TABLE.arrow, schema=FACTS, name="others")
    find = {1: {"kind": "detector", "dataset": "people", "value": model.value}}.get
    query = Flags(detector=1, by=("ward",), loss=wf.Loss("1"))
    with pytest.raises(ParameterError, match="another data set"):
        query.take_releases(query.view(other), find)
    narrow = wf.load(TABLE.arrow.select(["x", "ward"]), schema=FACTS.only(["x", "ward"]), name="people")
    with pytest.raises(DataError, match="'y', which it was fitted to"):
        query.take_releases(query.view(narrow), find)


def test_a_plan_alone_needs_no_detector_and_one_of_a_table_looks_it_up(people):
    with pytest.raises(wf.PrivacyError, match="not a release of detector"):
        people.plan.flags(detector=1, by="ward", epsilon="1")
    alone = Flags(detector=1, by=("ward",), loss=wf.Loss("1")).plan(n=100, dimension=2)
    assert alone.smallest_useful_epsilon is not None


def test_noise_is_drawn_for_every_cell():
    class Counter:
        drawn = 0

        def laplace(self, scale):
            assert scale == 2
            self.drawn += 1
            return 0

    query, noise = Flags(detector=1, by=("ward",), loss=wf.Loss("1")), Counter()
    model = wf.Detector(loss=wf.Loss("1000"), contamination="4%", columns=("x", "y")).answer(
        TABLE.points(("x", "y")), system_noise()
    )
    find = {1: {"kind": "detector", "dataset": "people", "value": model}}.get
    query.answer(query.take_releases(query.view(TABLE), find), noise)
    assert noise.drawn == 6


@cache
def found(by):
    """What finds a detector whose scales are not the schema's, and the question."""
    facts = wf.Schema.of(["x", "y"], scale={"x": 0.7, "y": 3.0})
    model = wf.Detector(loss=wf.Loss("1000"), contamination="4%", columns=("x", "y")).answer(
        wf.load(TABLE.arrow.select(["x", "y"]), schema=facts, name="people").points(("x", "y")), system_noise()
    )
    return {1: {"kind": "detector", "dataset": "people", "value": model}}.get, Flags(
        detector=1, by=by, loss=wf.Loss("1000")
    )


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 300), chunk=st.integers(1, 301))
@settings(max_examples=40, deadline=None)
def test_whatever_the_parts_and_their_order_flags_are_those_of_the_table_in_memory(seed, size, chunk):
    draw = np.random.default_rng(seed)
    rows = draw.choice(N, size, replace=False)
    memory = wf.load(TABLE.arrow.take(rows), schema=FACTS, name="people")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wallflower.data.scans.CHUNK", chunk)
        kept = load_into(TABLE.arrow.take(draw.permutation(rows)), "tiles", schema=FACTS, name="people")
        for by in (("ward",), ("age", "ward")):
            find, query = found(by)
            one, two = (query.take_releases(query.view(table), find) for table in (memory, kept))
            assert one.counts().tolist() == two.counts().tolist()
            flags = one.model.predict(memory)
            assert one.counts().sum(axis=0).tolist() == [size - flags.sum(), flags.sum()]


def test_flags_are_told_of_a_table_in_tiles(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.grant("people", wf.Loss("100000"), by="steward", reason="tests")
        people = wf.open(load_into(TABLE.arrow, "tiles", schema=FACTS, name="people"), ledger=book)
        model = people.detector(epsilon="1000", contamination="4%", columns=("x", "y"))
        made = people.flags(detector=model, by="ward", epsilon="1000")
        with pytest.raises(DataError, match="neither categories nor edges"):
            people.flags(detector=model, by="x", epsilon="1")
    assert sum(row["flagged"] for row in made.value) == model.predict(TABLE).sum()
    assert [row["flagged"] + row["others"] for row in made.value] == [*np.bincount(PLACES), 0]
