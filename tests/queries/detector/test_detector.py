"""The detector: its tables and threshold, what it says of any record, and what is refused."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from fractions import Fraction
from math import comb

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallflower as wf
from wallflower.cli.scores import read_model, write_arrow
from wallflower.data.scans import load_into
from wallflower.errors import DataError, LossMismatch, NotUseful, ParameterError, SourceError
from wallflower.mechanisms import calibrate_counts
from wallflower.neighbours.spreads import DIVISORS, gap_counts, pair_up
from wallflower.noise import system_noise
from wallflower.privacy import Kind
from wallflower.queries.detector import grids
from wallflower.queries.detector.detector import Detector, blur
from wallflower.queries.detector.drift import drift_of, exact_interval
from wallflower.queries.detector.exact import exact_scores
from wallflower.queries.detector.grids import CELLS, Coins, Grid, add_surprises, count_cells, lay_grids
from wallflower.queries.detector.model import ARROW_KEY, Model, count_above, misses
from wallflower.queries.detector.tasks import cells_of, numbers_above
from wallflower.schema import Column

DRAW = np.random.default_rng(5)
RECORDS = DRAW.normal(size=(3000, 3)) * (1.0, 10.0, 0.1)
RECORDS[:30] += DRAW.choice((-1, 1), size=(30, 3)) * (15.0, 150.0, 1.5)
NAMES = ("a", "b", "c")
PEOPLE = wf.Points.from_array(RECORDS, columns=NAMES, name="people")
MUCH = wf.Loss("100000")
cells = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1e300, -1e300])


def fitted(**more) -> Model:
    return Model.of(Detector(**{"loss": MUCH, "contamination": Fraction(1, 50)} | more).answer(PEOPLE, system_noise()))


def test_with_much_loss_scores_are_those_of_the_definition_and_planted_records_have_the_highest():
    found = fitted()
    exact = exact_scores(RECORDS.tolist(), found.grids, found.floor)
    assert found.decision_function(RECORDS) == pytest.approx(exact, abs=0.02)
    assert np.sort(np.argsort(exact)[-30:]).tolist() == list(range(30))
    assert found.predict(RECORDS).sum() == pytest.approx(60, abs=25)  # scores tie


def test_spreads_follow_the_columns():
    value = Detector(loss=MUCH).answer(PEOPLE, system_noise())
    assert value["spreads"] == pytest.approx({"a": 1.0, "b": 10.0, "c": 0.1}, rel=0.2)
    assert value["threshold"] is None
    assert set(DIVISORS) >= {Fraction(1, 2), Fraction(3, 4)}


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=12), st.integers(0, 2**128 - 1))
def test_contributions_add_up_to_scores_whatever_the_records(rows, key):
    grids = tuple(lay_grids({0: 1.0, 1: 3.0}, 20, Coins(key)))
    values = np.array(rows)
    facts = wf.Schema.of(["a", "b"])
    model = Model(columns=("a", "b"), grids=grids, counts=count_cells(values, grids), floor=1.5, schema=facts)
    assert model.split_score(values).sum(axis=1) == pytest.approx(model.score(values))
    low, high = model.ends
    assert ((low - 1e-9 <= model.score(values)) & (model.score(values) <= high + 1e-9)).all()


@given(st.lists(st.tuples(cells, cells), min_size=2, max_size=12), st.integers(0, 11), st.tuples(cells, cells))
def test_one_record_moves_one_cell_out_and_one_in_of_each_table(rows, place, other):
    grids = lay_grids({0: 1.0, 1: 3.0}, 5, Coins(1))
    one = np.array(rows)
    two = one.copy()
    two[place % len(rows)] = other
    moved = count_cells(one, grids) - count_cells(two, grids)
    assert np.abs(moved).sum() <= 2 * len(grids)
    assert (moved.sum(axis=1) == 0).all()


def test_every_column_comes_equally_often():
    grids = lay_grids(dict.fromkeys(range(6), 1.0), 30, Coins(9))
    times = np.bincount([column for grid in grids for column in grid.columns])
    assert times.tolist() == [10] * 6
    assert all(len(set(grid.columns)) == 2 for grid in grids)
    assert all(2 <= width <= 4 for grid in grids for width in grid.widths)


def test_noise_is_drawn_for_every_cell_and_all_tables():
    """A Laplace draw of scale b is b long on average: here 80, and 20,480 draws miss that by 5 once in 10^17."""
    drawn = blur(np.zeros((40, 512), dtype=np.int64), calibrate_counts(80, wf.Loss("1")), system_noise())
    assert np.abs(drawn).mean() == pytest.approx(80, abs=5)


def test_the_threshold_misses_by_what_it_says():
    query = Detector(loss=wf.Loss("1"), contamination=Fraction(1, 50))
    scores, marks = np.arange(3000) / 3000, np.linspace(0, 1, 2001)
    errors = misses(count_above(scores, marks), 60)
    assert errors.min() <= 1
    assert query.off(3000, 3) == 212
    assert misses(count_above(np.array([1.0, 2.0, 2.0]), np.array([0.5, 1.0, 2.0])), 2).tolist() == [1, 0, 2]


def test_a_model_is_kept_and_read_again(tmp_path):
    people = wf.open(PEOPLE, ledger=tmp_path / "ledger.db")
    made = people.detector(epsilon="0.9", contamination="2%")
    again = Model.of(json.loads(made.to_json()))
    assert made.predict(RECORDS[:50]).tolist() == again.predict(RECORDS[:50]).tolist()
    assert made.decision_function(RECORDS[0:1]) == pytest.approx(again.contributions(RECORDS[0:1]).sum(axis=1))
    assert made.model.columns == NAMES
    assert str(made).count("grids") <= 3
    with pytest.raises(AttributeError, match="no 'predictions'"):
        people.count(neighbours=3, radius=0.5, epsilon="0.1", force=True).predictions  # noqa: B018
    for broken in ({}, {"value": {}}, 7, {**again.to_json(), "counts": [[1]]}, {**again.to_json(), "floor": 0}):
        with pytest.raises(ParameterError, match="it is not one"):
            Model.of(broken)


def test_records_are_read_by_the_schema_of_the_fitted_ones(tmp_path):
    facts = wf.Schema.of(NAMES, bounds={"a": (-3.0, 3.0)}, clip=True)
    people = wf.Points.from_array(RECORDS, columns=NAMES, name="people", schema=facts)
    model = Model.of(Detector(loss=MUCH).answer(people, system_noise()))
    np.savetxt(tmp_path / "new.csv", RECORDS[:40, ::-1], delimiter=",", header="c,b,a", comments="", fmt="%.17g")
    assert model.decision_function(tmp_path / "new.csv").tolist() == model.decision_function(RECORDS[:40]).tolist()
    assert model.decision_function([[99.0, 0.0, 0.0]]) == model.decision_function([[3.0, 0.0, 0.0]])


def test_points_of_another_scale_are_brought_to_that_of_the_fitted_ones():
    scaled = PEOPLE.rescale({"a": 2.0, "b": 20.0, "c": 0.2})
    model = Model.of(Detector(loss=MUCH, spreads="schema").answer(scaled, system_noise()))
    expected = model.score(scaled.values)
    assert model.decision_function(PEOPLE) == pytest.approx(expected)
    table = wf.load(RECORDS, schema=wf.Schema.of(NAMES))
    assert model.decision_function(table) == pytest.approx(expected)
    assert model.decision_function(RECORDS) == pytest.approx(expected)


def test_one_column_will_do():
    alone = wf.Points.from_array(RECORDS[:, :1], columns=["a"], name="people")
    model = Model.of(Detector(loss=MUCH).answer(alone, system_noise()))
    far, near = model.decision_function([[15.0], [0.0]])
    assert far > near


def test_public_scales_cost_nothing():
    query = Detector(loss=wf.Loss("1"), spreads="schema")
    split = query.split(3000, 3)
    assert (split.spreads, split.counts, split.threshold) == (0, wf.Loss("1"), 0)
    value = query.answer(PEOPLE, system_noise())
    assert set(value["spreads"].values()) == {1.0}


LOSSES = (wf.Loss, lambda amount: wf.Loss(amount, delta="1e-6"), wf.Loss.zcdp)


@given(
    st.fractions(Fraction(1, 100), 10),
    st.sampled_from(LOSSES),
    st.integers(2, 10**6),
    st.integers(1, 60),
    st.booleans(),
)
def test_what_is_spent_adds_up(amount, loss, n, dimension, wants_flags):
    query = Detector(loss=loss(amount), contamination=Fraction(1, 50) if wants_flags else None)
    split = query.split(n, dimension)
    choices = (split.spreads, split.threshold)
    parts = [part**2 / 8 for part in choices] if query.loss.kind is Kind.ZCDP else choices
    assert sum(parts) + split.counts.amount == pytest.approx(amount, rel=1e-15)
    assert sum(parts) + split.counts.amount <= amount
    assert split.counts.delta == query.loss.delta
    assert min(2, dimension) <= split.columns <= dimension
    assert 20 <= split.grids <= 50


def test_what_is_refused(tmp_path):
    with pytest.raises(LossMismatch):
        Detector(loss=wf.Loss("1", kind=Kind.METRIC))
    with pytest.raises(ParameterError, match="contamination"):
        Detector(loss=wf.Loss("1"), contamination="120%")
    with pytest.raises(ParameterError, match="no flags"):
        replace(fitted(), threshold=None).predict(RECORDS)
    with pytest.raises(NotUseful, match="2 are needed"):
        wf.open(PEOPLE, ledger=tmp_path / "ledger.db").detector(epsilon="0.01")


def test_a_grid_wraps_round_and_takes_in_what_is_not_finite():
    grid = Grid(columns=(0, 1), widths=(1.0, 1.0), offsets=(0.5, 0.0))
    told = grid.cells(np.array([[0.0, 0.0], [16.0, 32.0], [np.nan, np.inf], [1e308, -1e308]]))
    assert told[0] == told[1]
    assert told[2] == 0
    assert ((told >= 0) & (told < CELLS)).all()


# Many records


@pytest.mark.slow
def test_compiled_loops_on_all_cores_find_the_same_to_the_bit(monkeypatch):
    """On records of every size, and on what is no number: an exponent from -300 to 300, and both signs."""
    draw = np.random.default_rng(1)
    values = draw.normal(size=(3001, 4)) * 10.0 ** draw.integers(-300, 300, (3001, 4))
    values[:4] = np.array([np.nan, np.inf, -np.inf, -0.0])[:, None]
    laid = lay_grids({0: 1.0, 1: 1e-9, 2: 3e7, 3: 0.7}, 25, Coins(5))
    surprises = draw.normal(size=(25, CELLS))
    plain = count_cells(values, laid), add_surprises(values, laid, surprises)
    monkeypatch.setattr(grids, "MIN_COMPILED_RECORDS", 1000)
    assert (count_cells(values, laid) == plain[0]).all()
    assert add_surprises(values, laid, surprises).tobytes() == plain[1].tobytes()


def test_a_table_in_tiles_is_counted_as_in_memory(monkeypatch, tmp_path):
    monkeypatch.setattr("wallflower.data.scans.CHUNK", 700)
    facts = wf.Schema.of(NAMES, scale={"b": 10.0, "c": 0.1}, bounds={"a": (-3.0, 3.0)}, clip=True)
    memory = wf.load(RECORDS, schema=facts)
    tiled = load_into(memory.arrow, "tiles", schema=facts)
    query = Detector(loss=MUCH, contamination=Fraction(1, 50))
    one, two = query.view(memory), query.view(tiled)
    model = Model.of(query.answer(one, system_noise()))
    assert (cells_of(one, model.grids) == cells_of(two, model.grids)).all()
    assert (numbers_above(one, model) == numbers_above(two, model)).all()
    pairs, columns = pair_up(3000, system_noise()), [[0], [1], [2]]
    assert np.array_equal(gap_counts(one, columns, pairs), gap_counts(two, columns, pairs))
    spreads = [query.answer(points, system_noise())["spreads"] for points in (one, two)]
    assert spreads[0] == pytest.approx(spreads[1], rel=0.2)
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.grant("people", MUCH, by="steward", reason="tests")
        made = wf.release(query, load_into(memory.arrow, "tiles", schema=facts, name="people"), book)
    assert made.predict(RECORDS).sum() == pytest.approx(60, abs=25)


# Drift


@pytest.mark.slow
def test_drift_is_told_where_the_intervals_do_not_meet():
    model = replace(fitted(), contamination=Fraction(1, 50), miss=0.005)
    usual, wild = DRAW.normal(size=(2, 2000, 3)) * (1.0, 10.0, 0.1)
    wild[:500] *= 8
    same, moved = model.drift(usual), model.drift(wild)
    assert moved.has_drifted
    assert "more than" in moved.text
    assert moved.expected == pytest.approx((0.015, 0.025))
    assert same.records == 2000
    assert same.to_json()["share"] == same.flagged / 2000
    assert "fewer than" in replace(model, contamination=Fraction(1, 2)).drift(usual).text
    unknown = replace(model, contamination=None).drift(usual)
    assert not unknown.has_drifted
    assert unknown.text.endswith("%).")
    again = Model.of(json.loads(json.dumps(model.to_json())))
    assert again.drift(wild) == moved
    with pytest.raises(DataError, match="no records"):
        drift_of(0, 0, wanted=None, miss=1.0)


@given(st.integers(1, 60), st.floats(0, 1))
def test_the_interval_of_a_share_holds_it_in_95_of_100_batches(of, share):
    """Added up over every number of hits."""
    hits = np.arange(of + 1)
    chances = np.array([comb(of, hit) * share**hit * (1 - share) ** (of - hit) for hit in hits.tolist()])
    holds = np.array([low <= share <= high for low, high in (exact_interval(hit, of) for hit in hits.tolist())])
    assert chances[holds].sum() >= 0.95 - 1e-9


# Files that are read in parts


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "jsonl", "parquet"])
def test_a_file_is_scored_part_by_part_as_it_is_whole(ending, tmp_path, monkeypatch):
    monkeypatch.setattr("wallflower.data.sources.texts._BLOCK", 1 << 12)
    monkeypatch.setattr("wallflower.data.scans.CHUNK", 300)
    path, model = tmp_path / f"new.{ending}", fitted()
    rows = [dict(zip(NAMES, row, strict=True)) for row in RECORDS[:1000].tolist()]
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        mark = "\t" if ending == "tsv" else ","
        lines = (
            [json.dumps(row) for row in rows]
            if ending == "jsonl"
            else [mark.join(NAMES), *(mark.join(map(repr, row.values())) for row in rows)]
        )
        with (gzip.open if ending.endswith("gz") else open)(path, "wb") as file:
            file.write("\n".join(lines).encode())
    parts = list(model.parts(path))
    assert len(parts) > 3
    assert model.decision_function(path).tolist() == model.decision_function(RECORDS[:1000]).tolist()


@pytest.fixture(params=[1, 2])
def threads(request):
    """Arrow reads with so many threads, and words its errors accordingly."""
    before = pa.cpu_count()
    pa.set_cpu_count(request.param)
    yield request.param
    pa.set_cpu_count(before)


def test_what_is_wrong_far_down_is_refused_without_quoting_it(tmp_path, monkeypatch, threads):
    monkeypatch.setattr("wallflower.data.sources.texts._BLOCK", 1 << 12)
    model, head = fitted(), ["a,b,c"] + ["1,2,3"] * 2000
    for last, said in (
        ("4711,x,1", "holds text"),
        ("4711,1", "not every line"),
        ('"4711', "not every line|never closed"),
        ("4711,,1", "missing"),
    ):
        path = tmp_path / "new.csv"
        path.write_text("\n".join([*head, last]))
        with pytest.raises((DataError, SourceError), match=said) as told:
            model.decision_function(path)
        assert "4711" not in str(told.value)
    (tmp_path / "new.jsonl").write_text('{"a": 1, "b": 2, "c": 3}\n' * 500 + "[4711]\n")
    with pytest.raises(SourceError, match="no JSON object") as told:
        model.decision_function(tmp_path / "new.jsonl")
    assert "4711" not in str(told.value)


# Kept, and drawn


def test_an_arrow_file_holds_the_same_detector(tmp_path):
    model = fitted()
    path = tmp_path / "people.arrow"
    write_arrow(model, path)
    again = read_model(path)
    assert again.to_json() == model.to_json()
    assert path.stat().st_size < 100_000
    assert set(model.to_arrow().column_names) == {"columns", "widths", "offsets", "counts"}
    for table in (pa.table({"a": [1]}), pa.table({"a": [1]}).replace_schema_metadata({ARROW_KEY: b"[]"})):
        with pytest.raises(ParameterError, match="it is not one"):
            Model.from_arrow(table)
    path.write_bytes(b"ARROW1 no")
    with pytest.raises(ParameterError, match="it is not one"):
        read_model(path)
    with pytest.raises(SourceError, match="No such file"):
        read_model(tmp_path / "gone.arrow")


def test_a_map_of_all_columns_there_are_is_the_score():
    two = wf.Points.from_array(RECORDS[:, :2], columns=["a", "b"], name="people")
    model = Model.of(Detector(loss=MUCH).answer(two, system_noise()))
    across, up = np.linspace(-5, 5, 7), np.linspace(-50, 50, 5)
    pairs = np.array([(x, y) for x in across for y in up])
    expected = model.decision_function(pairs).reshape(7, 5)
    assert model.map_scores(("a", "b"), across, up) == pytest.approx(expected)
    assert model.map_scores(("b", "a"), up, across) == pytest.approx(expected.T)


def test_in_a_map_the_other_columns_add_nothing_on_average():
    """Of one grid over the first and the third column, a map of the first two says what the first does by itself."""
    model = fitted()
    alone = replace(model, grids=model.grids[:1], counts=model.counts[:1])
    names = [NAMES[at] for at in alone.grids[0].columns]
    other = next(name for name in NAMES if name not in names)
    found = alone.map_scores((names[0], other), np.linspace(-1, 1, 6), np.linspace(-1, 1, 4))
    assert (found == found[:, :1]).all()
    rows = alone.grids[0].side(0, np.linspace(-1, 1, 6))
    held = alone.counts[0].reshape(16, 16).sum(axis=1)
    assert np.argmin(found[:, 0]) == np.argmax(held[rows])


@pytest.mark.slow
def test_pictures_are_drawn_of_a_release(tmp_path):
    facts = wf.Schema.of(NAMES, bounds={"a": (-9.0, 9.0), "b": (-90.0, 90.0)}, clip=True)
    people = wf.open(
        wf.Points.from_array(RECORDS, columns=NAMES, name="people", schema=facts), ledger=tmp_path / "l.db"
    )
    made = people.detector(epsilon="0.9", contamination="2%", force=True)
    bars = made.plot(record=RECORDS[:1]).axes[0]
    assert sorted(label.get_text() for label in bars.get_yticklabels()) == list(NAMES)
    total = sum(patch.get_width() for patch in bars.patches)
    assert total == pytest.approx(made.decision_function(RECORDS[:1])[0])
    drawn = made.plot(columns=("a", "b"))
    assert drawn.axes[0].get_xlim()[0] == pytest.approx(-9, abs=0.1)
    assert drawn.axes[0].get_ylabel() == "b"
    assert made.plot(records=RECORDS).axes[0].get_ylabel() == "records"
    for asked, said in (
        ({"columns": ("a", "c")}, "no public bounds"),
        ({"columns": ("a",)}, "a map has two"),
        ({"rows": 3}, "cannot be drawn"),
        ({"record": RECORDS[:1], "columns": ("a", "b")}, "do not go together"),
    ):
        with pytest.raises(ParameterError, match=said):
            made.plot(**asked)
    assert made.plot(columns=("a", "c"), between=((-1, 1), (-0.1, 0.1))) is not None


def test_a_detector_read_from_a_ledger_keeps_its_columns_apart():
    """A ledger sorts names: facts of a column go by its name, not by its place."""
    columns = (Column("z", center=5, scale=2), Column("a", center=-1, scale=7))
    points = wf.Points.from_array(RECORDS[:, :2], columns=("z", "a"), schema=wf.Schema(columns=columns))
    value = wf.Detector(contamination="0.1", loss=wf.Loss("5")).answer(points, system_noise())
    stored = json.loads(json.dumps(value, sort_keys=True))
    fresh, kept = Model.from_json(value), Model.from_json(stored)
    assert np.array_equal(fresh.decision_function(RECORDS[:, :2]), kept.decision_function(RECORDS[:, :2]))
    assert [row.split(" (")[0] for row in wf.Detector(loss=wf.Loss("5")).picture(stored, points).down] == ["z", "a"]


def test_a_record_that_is_extreme_in_one_column_shows_in_its_largest_contribution():
    """Eight ordinary columns take away what the ninth adds: the score hides it, the largest contribution does not."""
    draw = np.random.default_rng(8)
    records = draw.normal(size=(3000, 9))
    model = Model.from_json(Detector(loss=wf.Loss("50")).answer(wf.Points.from_array(records), system_noise()))
    odd = np.zeros((1, 9))
    odd[0, 4] = 9.0
    usual = model.largest_contributions(records)
    assert model.contributions(odd)[0].argmax() == 4
    assert model.largest_contributions(odd)[0] > np.quantile(usual, 0.99)


WARDS = ("north", "south", "day")
MANY = tuple(f"d{at}" for at in range(40))


def labelled(size: int = 3000, odd: int = 30) -> pa.Table:
    """Records whose numbers and labels go together, but for the first few, whose labels were exchanged."""
    draw = np.random.default_rng(11)
    ward, code = draw.integers(0, 2, size), draw.integers(0, 40, size)
    pulse = draw.normal(size=size) + 8 * ward
    ward[:odd] = 1 - ward[:odd]
    return pa.table({"pulse": pulse, "ward": [WARDS[at] for at in ward], "code": [MANY[at] for at in code]})


LABELLED = wf.Schema.of(["pulse", "ward", "code"], categories={"ward": WARDS, "code": MANY})


def test_a_label_that_does_not_go_with_the_numbers_is_unusual(tmp_path):
    table = labelled()
    people = wf.open(table, schema=LABELLED, name="people", ledger=tmp_path / "ledger.db")
    release = people.detector(epsilon="0.9")
    scores = release.decision_function(wf.load(table, schema=LABELLED))
    assert np.median(scores[:30]) > np.quantile(scores[30:], 0.95)
    assert release.value["labels"] == ["ward", "code"]
    assert list(release.value["spreads"]) == ["pulse"]
    assert "3 of 3 columns" in release.text
    table.to_pandas().to_csv(tmp_path / "people.csv", index=False)
    rows = [list(row.values()) for row in table.slice(0, 50).to_pylist()]
    assert release.decision_function(tmp_path / "people.csv") == pytest.approx(scores)
    assert release.decision_function(rows).tolist() == scores[:50].tolist()
    assert release.contributions(rows).sum(axis=1) == pytest.approx(scores[:50])


def test_labels_are_scored_by_the_categories_that_the_detector_was_fitted_to(tmp_path):
    table = labelled(200)
    view = Detector(loss=wf.Loss("5")).view(wf.load(table, schema=LABELLED))
    model = Model.of(Detector(loss=wf.Loss("5")).answer(view, system_noise()))
    again = Model.from_json(json.loads(json.dumps(model.to_json())))
    assert again.labels == ("ward", "code")
    other = wf.Schema.of(["pulse", "ward", "code"], categories={"ward": WARDS[::-1], "code": MANY})
    with pytest.raises(DataError, match="other categories"):
        again.decision_function(wf.load(table, schema=other))
    with pytest.raises(DataError, match="3 cells"):
        again.decision_function([[1.0, "north"]])
    with pytest.raises(DataError, match="categories") as told:
        again.decision_function([[1.0, "4711", "d1"]])
    assert "4711" not in str(told.value)


def test_labels_need_no_spread_and_nothing_but_labels_needs_the_schema_alone():
    alone = wf.load(labelled().select(["ward", "code"]), schema=LABELLED.only(["ward", "code"]))
    with pytest.raises(DataError, match="spreads='schema'"):
        Detector(loss=wf.Loss("1")).view(alone)
    query = Detector(loss=wf.Loss("1"), spreads="schema")
    view = query.view(alone)
    value = query.answer(view, system_noise())
    assert value["spreads"] == {}
    assert query.plan_on(view).useful
    few = Detector(loss=wf.Loss("0.04")).split(3000, 12, 9)
    assert few.columns == 2  # of three columns of numbers, beside nine of labels


@pytest.mark.parametrize("size", [2, 16])
def test_a_label_has_a_row_of_its_own_up_to_sixteen(size):
    for grid in lay_grids({}, 8, Coins(size), {0: size, 1: size}):
        for at in (0, 1):
            assert len(set(grid.side(at, np.arange(float(size))).tolist())) == size


def test_more_labels_share_rows_and_others_in_every_grid():
    """Of 300 labels, 44,850 pairs: none is together in most of 40 grids, and neighbours never are."""
    together = np.zeros((300, 300), dtype=np.int64)
    for grid in lay_grids({}, 20, Coins(3), {0: 300, 1: 300}):
        for at in (0, 1):
            rows = grid.side(at, np.arange(300.0))
            together += rows[:, None] == rows[None, :]
    np.fill_diagonal(together, 0)
    assert together.max() < 20
    assert not np.diagonal(together, 1).any()


def test_flags_are_a_range_where_the_threshold_may_miss_by_as_many():
    """The statement that was false: about 134 of these, where none to 346 are flagged."""
    query = Detector(loss=wf.Loss("1"), contamination=Fraction(3, 100))
    facts = wf.Points.from_array(np.zeros((4454, 9)))
    off = query.off(4454, 9)
    plan = query.plan(n=4454, dimension=9)
    assert f"0 to {134 + off:,} records would be flagged" in plan.reason
    assert plan.grade == "check first"
    value = {"spreads": {f"x{at}": 1.0 for at in range(9)}, "labels": []}
    reading = query.reading(value, facts)
    assert f"It flags 0 to {134 + off:,} of these" in reading.text
    assert "drawn at random" not in plan.reason  # nothing is drawn where all columns are used


@pytest.mark.parametrize("cores", [1, 2, 3, 7])
def test_each_record_is_in_the_part_of_one_core(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr(grids, "count_cores", lambda: cores)
    parts = grids._spread_work(20, lambda rows: list(range(20))[rows])
    assert [place for part in parts for place in part] == list(range(20))
