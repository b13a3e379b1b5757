"""The detector: its tables and threshold, what it says of any record, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallflower as wf
from wallflower.errors import LossMismatch, NotUseful, ParameterError
from wallflower.neighbours.spreads import DIVISORS
from wallflower.noise import system_noise
from wallflower.queries.detector import Detector, blur
from wallflower.queries.detector.exact import exact_scores
from wallflower.queries.detector.grids import CELLS, Coins, Grid, count_cells, lay_grids
from wallflower.queries.detector.model import Model, misses

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
    drawn = blur(np.zeros((40, 512), dtype=np.int64), Fraction(1), system_noise())
    assert np.abs(drawn).mean() == pytest.approx(80, abs=5)


def test_the_threshold_misses_by_what_it_says():
    query = Detector(loss=wf.Loss("1"), contamination=Fraction(1, 50))
    scores, marks = np.arange(3000) / 3000, np.linspace(0, 1, 2001)
    errors = misses(scores, marks, 60)
    assert errors.min() <= 1
    assert query.off(3000, 3) == 212
    assert misses(np.array([1.0, 2.0, 2.0]), np.array([0.5, 1.0, 2.0]), 2).tolist() == [1, 0, 2]


def test_a_model_is_kept_and_read_again(tmp_path):
    people = wf.open(PEOPLE, ledger=tmp_path / "ledger.db")
    made = people.detector(epsilon="0.9", contamination="2%")
    again = Model.of(json.loads(made.to_json()))
    assert made.predict(RECORDS[:50]).tolist() == again.predict(RECORDS[:50]).tolist()
    assert made.decision_function(RECORDS[0:1]) == pytest.approx(again.contributions(RECORDS[0:1]).sum(axis=1))
    assert made.model.columns == NAMES
    assert str(made).count("grids") <= 3
    with pytest.raises(AttributeError, match="no 'predictions'"):
        people.count(neighbours=3, radius=0.5, epsilon="0.1", anyway=True).predictions  # noqa: B018
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
    assert (split.spreads, split.counts, split.threshold) == (0, 1, 0)
    value = query.answer(PEOPLE, system_noise())
    assert set(value["spreads"].values()) == {1.0}


@given(st.fractions(Fraction(1, 100), 10), st.integers(2, 10**6), st.integers(1, 60), st.booleans())
def test_what_is_spent_adds_up(epsilon, n, dimension, wants_flags):
    query = Detector(loss=wf.Loss(epsilon), contamination=Fraction(1, 50) if wants_flags else None)
    split = query.split(n, dimension)
    assert split.spreads + split.counts + split.threshold == epsilon
    assert min(2, dimension) <= split.columns <= dimension
    assert 20 <= split.grids <= 50


def test_what_is_refused(tmp_path):
    with pytest.raises(LossMismatch, match="detector is pure"):
        Detector(loss=wf.Loss.zcdp("1"))
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
