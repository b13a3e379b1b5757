"""Spreads of columns: what they are, how far off, and that every question about distances takes them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import wallflower as wf
from scripted_noise import Scripted
from wallflower.audit.answers import Recorder
from wallflower.errors import DataError, LossMismatch, NotUseful, ParameterError, ScaleMismatch
from wallflower.neighbours import spreads
from wallflower.neighbours.spreads import (
    BINS,
    DIVISORS,
    EDGES,
    bins_of,
    bins_within,
    draw_places,
    middle_of_bin,
    pair_up,
)
from wallflower.noise import system_noise
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.scale import Scale
from wallflower.queries.scale.audit import spreads_of
from wallflower.schema import Column, Schema
from wallflower.testing import setup_vectors

DRAW = np.random.default_rng(7)
RECORDS = DRAW.normal(size=(4000, 3)) * np.array([1.0, 30.0, 0.002])
NAMES = ("a", "b", "c")


@pytest.fixture
def people(tmp_path):
    book = wf.Ledger.open(tmp_path / "ledger.db")
    book.grant("people", wf.Loss("100"), by="owner")
    with book:
        yield wf.open(wf.Points.from_array(RECORDS, columns=NAMES, name="people"), ledger=book)


def vectors():
    return setup_vectors


def test_vectors_of_the_definitions_hold_and_wrong_ones_do_not():
    stated = {
        "index": [
            [0.0, 0],
            [2**-21, 0],
            [2**-20, 1],
            [1.0, 321],
            [1.05, 322],
            [1000.0, 480],
            [2.0**40, 960],
            [1e300, 960],
        ],
        "value": [[1, 9.745570646802107e-07], [321, 1.0218971486541166], [960, 1075951360882.1641]],
        "reach": {
            "differences": [0, 0, 3, 5, 5, 7, 20, 20, 21, 90],
            "share": 0.5,
            "sorted_index": [346, 358, 358, 365, 390, 390, 391, 424],
            "lo": [365, 358, 358, 346, 1, 1],
            "hi": [390, 390, 391, 424, 960, 960],
        },
        "joint_law": {"errors": [[0, 1], [0]], "epsilon": 2, "law": [0.7310585786300049, 0.2689414213699951]},
        "cube": {"m": 1, "a": 0.5, "level_law_first2": [0.1027, 0.1869], "mean_abs": 1.0},
        "radius_error": {"curve": [50, 44, 30, 0], "N": 50, "errors": {"10": [34, 20, 0, 10]}},
    }
    found = vectors().differences(stated)
    assert [words.partition(":")[0] for words in found] == ["cube, law of the level", "cube, mean"]
    assert vectors().differences({"value": [[321, 1.0]], "other": []}) != []


def test_bins_are_sixteen_in_an_octave():
    assert np.allclose(np.log2(EDGES), -20 + np.arange(BINS) / 16, atol=1e-14)
    assert bins_of(EDGES).tolist() == list(range(1, BINS + 1))
    assert bins_of(np.nextafter(EDGES, 0)).tolist() == list(range(BINS))
    assert bins_of([middle_of_bin(place) for place in range(1, BINS + 1)]).tolist() == list(range(1, BINS + 1))


@pytest.mark.parametrize("n", [2, 3, 10, 101])
@pytest.mark.parametrize("noise", [system_noise(), Scripted()], ids=["system", "scripted"])
def test_every_record_is_in_one_pair_whatever_the_coins(n, noise):
    pairings = set()
    for _ in range(40):
        first, second = pair_up(n, noise)
        met = [*first.tolist(), *second.tolist()]
        assert len(met) == len(set(met)) == n - n % 2
        pairings.add(tuple(met))
    assert len(pairings) > 1  # two records stay in one order 40 times with a chance of 2^-39


@pytest.mark.parametrize("n", [255, 256, 257, 512, 513, 3000, 10**9])
def test_of_a_long_table_a_part_is_paired_and_no_record_twice(n, monkeypatch):
    monkeypatch.setattr(spreads, "MAX_PAIRED_RECORDS", 256)
    for _ in range(40):
        met = np.concatenate(pair_up(n, system_noise()))
        assert len(set(met.tolist())) == len(met) == spreads.pairing_size(n) // 2 * 2
        assert met.min() >= 0
        assert met.max() < n


def test_the_part_that_is_paired_is_drawn_from_all_of_the_table(monkeypatch):
    monkeypatch.setattr(spreads, "MAX_PAIRED_RECORDS", 1 << 12)
    for n in (6000, 10**6):
        first, second = pair_up(n, system_noise())
        for rows in (first, second, np.abs(first - second)):  # pairs at one distance would show a season, not a spread
            assert 0 <= rows.min() < 0.02 * n  # 2,048 rows miss an end of 2 % with a chance of e^-41
            assert rows.max() > 0.8 * n
            assert len(np.unique(rows)) > 0.5 * len(rows)


@pytest.mark.parametrize("share", list(DIVISORS), ids=str)
def test_the_spread_of_a_bell_is_its_deviation(share):
    spreads = spreads_of(RECORDS, pair_up(len(RECORDS), Scripted()), share, [[0], [1], [2]])
    assert spreads == pytest.approx([1.0, 30.0, 0.002], rel=0.09)


def test_columns_of_one_unit_share_a_spread_and_public_facts_leave_fewer_candidates(people):
    made = people.scale(epsilon="2", units=(("a", "b"),)).value["scale"]
    assert made["a"] == made["b"] != made["c"]
    facts = Schema(columns=(Column("a", low=0, high=1000, integer=True), Column("b", low=0, high=1000), Column("c")))
    table = wf.Points.from_array(np.abs(RECORDS).round(), columns=NAMES, schema=facts)
    assert [len(bins_within(table, [at])) for at in range(3)] == [161, 480, 960]
    assert len(bins_within(table, [0, 2])) == 960


def test_a_scale_in_the_schema_is_the_unit_that_spreads_are_told_in(tmp_path):
    facts = Schema(columns=(Column("a", scale=10), Column("b", center=5), Column("c")))
    table = wf.Points.from_array(RECORDS, columns=NAMES, schema=facts, name="people")
    made = wf.release(Scale(loss=wf.Loss("1")), table, tmp_path / "ledger.db")
    assert made.value["scale"]["a"] == pytest.approx(1.0, rel=0.3)
    assert made.value["scale"]["b"] == pytest.approx(30.0, rel=0.3)


def test_the_plan_says_how_far_off_spreads_are():
    """With 95 % at most `off`: of 200 answers more than 40 would be beyond with a chance below 1e-11."""
    asked, points = Scale(loss=wf.Loss("1/4")), wf.Points.from_array(RECORDS[:2000], columns=NAMES)
    most, share = asked.off(points.n, 3), asked.share_for(points.n, 3)
    beyond, groups = 0, asked.groups(points.columns)
    for _ in range(200):
        errors = asked.errors(points, groups, pair_up(points.n, system_noise()))
        spreads = asked.choose(errors, points, groups, system_noise()).values()
        places = [int(bins_of(spread * DIVISORS[share])) - 1 for spread in spreads]
        beyond += max(int(row[place]) for row, place in zip(errors, places, strict=True)) > most
    assert beyond <= 40


def test_the_higher_quantile_is_taken_where_there_are_records_enough():
    asked = Scale(loss=wf.Loss("1"))
    assert asked.share_for(600, 6) == Fraction(3, 4)
    assert asked.share_for(599, 6) == Fraction(1, 2)


def test_fifty_records_for_each_spread_are_needed(people):
    assert people.plan.scale(epsilon="0.0375").useful
    assert not people.plan.scale(epsilon="0.037").useful
    with pytest.raises(NotUseful, match="name 2 columns"):
        people.scale(epsilon="0.03")
    assert people.scale(epsilon="0.03", force=True).quality.noise == "mostly noise"
    assert people.plan.scale(epsilon="0.03", units=(NAMES,)).useful


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": wf.Loss.zcdp("1")},
        {"loss": wf.Loss("1", delta="1e-6")},
        {"loss": wf.Loss("1"), "units": (("a", "b"), ("a",))},
        {"loss": wf.Loss("1"), "units": ((),)},
        {"loss": wf.Loss("1"), "columns": ("a",), "units": (("a", "b"),)},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises((LossMismatch, ParameterError)):
        Scale(**wrong)


def test_columns_of_one_unit_have_one_public_scale():
    facts = Schema(columns=(Column("a", scale=2), Column("b"), Column("c")))
    table = wf.Points.from_array(RECORDS, columns=NAMES, schema=facts)
    with pytest.raises(DataError):
        Scale(loss=wf.Loss("1"), units=(("a", "b"),)).view(table)


def test_what_is_released_is_a_piece_of_a_schema(people):
    made = people.scale(epsilon="1")
    assert Schema.from_json(made.extras["schema"]).columns[1].scale == made.value["scale"]["b"]
    assert set(made.value) == {"scale", "equal_pairs"}


# Other questions


def test_a_released_scale_takes_the_place_of_the_public_one(people):
    made = people.scale(epsilon="3")
    asked = {"neighbours": 5, "radius": 0.3, "epsilon": "20"}
    answer = people.count(**asked, scale=made)
    by_number = people.count(**asked, scale=made.ledger_id)
    scaled = RECORDS / np.array([made.value["scale"][name] for name in NAMES])
    truth = count_outliers(scaled, 0.3, 5)
    assert abs(answer.value - truth) < 30
    assert abs(by_number.value - truth) < 30
    assert abs(people.count(**asked).value - truth) > 300
    assert answer.parameters["scale"] == made.ledger_id
    assert f"scale {made.ledger_id}" in answer.terms
    assert any(f"ledger entry {made.ledger_id}" in note for note in answer.notes)


def test_the_same_holds_for_a_table_of_a_file(tmp_path):
    np.savetxt(tmp_path / "t.csv", RECORDS, delimiter=",", comments="", header="a,b,c")
    people = wf.open(tmp_path / "t.csv", ledger=tmp_path / "ledger.db")
    made = people.scale(epsilon="0.5")
    answer = people.subspaces(neighbours=5, radius=0.3, size=1, epsilon="0.2", scale=made, force=True)
    assert answer.parameters["scale"] == made.ledger_id


def test_other_scales_are_refused_before_anything_is_charged(people):
    one = people.scale(epsilon="1", columns=("a", "b"))
    other = people.count(neighbours=5, radius=1.0, epsilon="1")
    book = people._ledger
    book.grant("else", wf.Loss("9"), by="owner")
    apart = wf.open(wf.Points.from_array(RECORDS + 1, columns=NAMES, name="else"), ledger=book)
    before = len(book.history())
    cases = ((people, one, None), (people, other, None), (people, 999, None), (apart, one, ("a",)))
    for asker, scale, columns in cases:
        with pytest.raises(ScaleMismatch):
            asker.count(neighbours=5, radius=1.0, epsilon="1", scale=scale, columns=columns)
    assert len(book.history()) == before
    for scale in ("1", 0, True, 2**40):
        with pytest.raises(ParameterError):
            wf.Count(neighbours=5, radius=1.0, loss=wf.Loss("1"), scale=scale)


def test_a_scale_that_is_far_too_small_is_no_error():
    table = wf.Points.from_array([[1e300], [-1e300], [0.0]], columns=["a"])
    assert np.isfinite(table.rescale({"a": 1e-20}).values).all()


LOCATED = RECORDS[:, :2] * np.array([1.0, 0.1]) + np.array([250.0, -40.0])


@pytest.fixture
def located(tmp_path):
    book = wf.Ledger.open(tmp_path / "ledger.db")
    book.grant("people", wf.Loss("100"), by="owner")
    facts = Schema(columns=(Column("a", scale=2, center=100), Column("b", low=-100, high=100)))
    with book:
        yield wf.open(wf.Points.from_array(LOCATED, columns=("a", "b"), schema=facts, name="people"), ledger=book)


def test_locations_are_medians_in_the_units_of_the_table(located):
    """At ε = 10 for each part a median is off by a spread or more with a chance below e^-1000."""
    made = located.scale(epsilon="20", location=True)
    assert made.value["scale"]["a"] == pytest.approx(1.0, rel=0.2)
    assert made.value["location"]["a"] == pytest.approx(250, abs=0.5)
    assert made.value["location"]["b"] == pytest.approx(-40, abs=1.5)
    assert made.value["beyond"] == []
    (low, high), (lowest, highest) = made.extras["bounds"]["a"], made.extras["bounds"]["b"]
    assert 238 < low < 242
    assert 258 < high < 262
    assert -76 < lowest < -64
    assert -16 < highest < -4
    assert "center = " in made.extras["toml"]
    assert str(made.booked) == "ε = 20"


def test_a_location_costs_half_of_the_loss_and_needs_more_records(located):
    asked = Scale(loss=wf.Loss("1"), location=True)
    assert asked.spread_epsilon(4000, 2) == Fraction(7, 16)
    assert replace(asked, verify=False).spread_epsilon(4000, 2) == Fraction(1, 2)
    assert asked.claim(wf.Points.from_array(LOCATED)).rho == Fraction(57, 1024)
    assert replace(asked, verify=False).claim(wf.Points.from_array(LOCATED)).rho == Fraction(1, 16)
    assert asked.plan(n=400, dimension=2).useful
    assert not asked.plan(n=399, dimension=2).useful
    assert Scale(loss=wf.Loss("1")).plan(n=100, dimension=2).useful
    with pytest.raises(NotUseful, match="locations, and 100"):
        located.scale(epsilon="0.04", location=True)


def test_a_median_that_is_too_far_away_is_told_to_be(tmp_path):
    far = wf.Points.from_array(RECORDS[:, :1] + 1e6, columns=("a",), name="far")
    made = wf.release(Scale(loss=wf.Loss("20"), location=True), far, _granted(tmp_path, "far"))
    assert made.value["beyond"] == ["a"]
    assert any("State a public center" in note for note in made.notes)


def _granted(folder, name):
    book = wf.Ledger.open(folder / "ledger.db")
    book.grant(name, wf.Loss("100"), by="owner")
    return book


def test_a_watch_judges_by_locations_and_spreads(located):
    usual = located.scale(epsilon="20", location=True)
    watch = wf.Watch(threshold=5.0, statistic="max", baseline=usual, loss=wf.Loss("100"))
    assert watch.seasonal_baseline.season.kind == "always"
    places = np.zeros(3, dtype=np.int64)
    rows = (np.array([[250.0, -40.0], [258.0, -40.0], [250.0, -70.0]]) - [100, 0]) / [2, 1]
    found = np.abs(watch.seasonal_baseline.standardise(rows, places))
    assert (found.max(axis=1) > 5).tolist() == [False, True, True]
    flagged = located.watch(threshold=5.5, statistic="max", baseline=usual, epsilon="40").value
    assert len(flagged["flagged"]) <= 40
    with pytest.raises(ParameterError, match="locations"):
        wf.Watch(threshold=5.0, baseline=located.scale(epsilon="1"), loss=wf.Loss("1"))


def test_explain_takes_bounds_by_locations(located):
    bounds = located.scale(epsilon="20", location=True).extras["bounds"]
    domain = Schema.of(["a", "b"], edges={"a": (249.0, 251.0)}, bounds={"b": bounds["b"]}, clip=True)
    asked = wf.Explain(
        record="3", metric="b", context=("a",), domain=domain, size=4000, detector="clamped-grubbs", loss=wf.Loss("1")
    )
    assert asked.plan(n=4000, dimension=2).facts["contexts"] == 4


def test_of_too_many_columns_a_public_part_is_measured(tmp_path):
    names = [f"c{at}" for at in range(40)]
    wide = wf.Points.from_array(DRAW.normal(size=(1000, 40)), columns=names, name="wide")
    data = wf.open(wide, ledger=_granted(tmp_path, "wide"))
    with pytest.raises(NotUseful, match=r"name 10 columns at most, pool those of one unit, or .* \(subset\)"):
        data.scale(epsilon="0.5")
    asked = Scale(loss=wf.Loss("0.5"), subset=True)
    assert asked.plan(n=1000, dimension=40).useful
    made = data.scale(epsilon="0.5", subset=True)
    assert len(made.value["scale"]) == 10
    assert len(bytes.fromhex(made.value["key"])) == 16
    key = int(made.value["key"], 16)
    assert list(made.value["scale"]) == [names[at] for at in draw_places(40, 10, key)]
    assert {tuple(draw_places(40, 10, key)) for key in range(9)} != {tuple(draw_places(40, 10, 0))}
    answer = data.count(
        neighbours=3, radius=0.5, epsilon="1", columns=tuple(made.value["scale"]), scale=made, force=True
    )
    assert f"scale {made.ledger_id}" in answer.terms
    with pytest.raises(ScaleMismatch, match="Name only these"):
        data.count(neighbours=3, radius=0.5, epsilon="1", scale=made, force=True)
    with pytest.raises(ParameterError, match="subset first"):
        Scale(loss=wf.Loss("1"), subset=True, location=True)
    whole = replace(asked, loss=wf.Loss("10"))
    assert set(whole.answer(wide, Scripted())) == {"scale", "equal_pairs"}  # no part is drawn, so no key


# Equal pairs


def repeats(n=4000):
    """One value in 94 of 100 rows, and a bell beside it."""
    draw = np.random.default_rng(94)
    values = np.column_stack([np.where(draw.random(n) < 0.94, 45.0, draw.normal(25, 8, n)), draw.normal(size=n)])
    return wf.Points.from_array(values, columns=("ct", "age"), name="tests")


def test_a_column_that_mostly_repeats_is_said_to_with_its_share_of_equal_pairs(tmp_path):
    """At ε = 40 cube noise of two columns exceeds 30 of 2,000 pairs with a chance below e^-100."""
    asked = Scale(loss=wf.Loss("40"))
    made = wf.release(asked, repeats(), _granted(tmp_path, "tests"))
    assert made.value["equal_pairs"]["ct"] == pytest.approx(0.94**2, abs=0.06)  # of a random pairing, 8 deviations
    assert made.value["equal_pairs"]["age"] < 0.02
    assert made.extras["equal_pairs_within"] < 0.01
    assert made.quality.verdict == "check first"
    assert any("ct (" in words and "age" not in words for words in made.quality.conditions)
    assert "are ignored: about 8" in made.text


def test_columns_without_equal_pairs_have_no_condition():
    """Scripted noise of 0, and the script's pairing, so nothing is left to chance."""
    points = wf.Points.from_array(RECORDS[:, :2], columns=NAMES[:2])
    asked = Scale(loss=wf.Loss("40"))
    reading = asked.reading(asked.answer(points, Recorder()), points)
    assert reading.quality.conditions == ()
    assert "are ignored: at most" in reading.text
    assert asked.conditions(points) == ()


def test_small_tables_keep_the_whole_loss_and_say_that_repeats_are_not_known():
    few = wf.Points.from_array(RECORDS[:100], columns=NAMES)
    asked = Scale(loss=wf.Loss("1"))
    assert asked.spread_epsilon(few.n, 3) == 1
    assert set(asked.answer(few, system_noise())) == {"scale"}
    assert any("not known" in words for words in asked.conditions(few))
    assert Scale(loss=wf.Loss("1"), verify=False).conditions(repeats())


def test_shares_of_equal_pairs_are_those_of_the_pairing():
    """Scripted noise of 0, and the script's pairing of neighbours."""
    points = repeats()
    value = Scale(loss=wf.Loss("1")).answer(points, Recorder())
    pairs = points.values.reshape(-1, 2, 2)
    expected = (pairs[:, 0] == pairs[:, 1]).mean(axis=0)
    assert list(value["equal_pairs"].values()) == pytest.approx(expected.tolist(), abs=5e-5)
