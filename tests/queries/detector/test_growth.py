"""Detectors that add up: of several tables, and month after month."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wallflower as wf
from wallflower.data import Column
from wallflower.errors import DataError, ParameterError
from wallflower.noise import system_noise
from wallflower.queries.detector.detector import Detector, floor_of
from wallflower.queries.detector.model import Model

DRAW = np.random.default_rng(21)
RECORDS = DRAW.normal(size=(9000, 3)) * (1.0, 10.0, 0.1)
NAMES = ("a", "b", "c")
NORTH, SOUTH, EAST = (wf.Points.from_array(RECORDS[at::3], columns=NAMES, name=f"h{at}") for at in range(3))
FIRST = Detector(loss=wf.Loss("2")).answer(NORTH, system_noise())


def fit(points, **settings):
    query = Detector(**{"loss": wf.Loss("1"), "like": FIRST, **settings})
    return query, query.answer(query.view(points), system_noise())


def test_one_fitted_like_another_has_its_grids_and_spends_nothing_on_spreads():
    query, value = fit(SOUTH)
    split = query.split(3000, 3)
    assert (split.spreads, split.counts, split.grids) == (0, wf.Loss("1"), len(FIRST["grids"]))
    assert {name: value[name] for name in ("key", "spreads", "grids")} == {
        name: FIRST[name] for name in ("key", "spreads", "grids")
    }
    stored = json.loads(json.dumps(query.to_json()))
    assert Detector.from_json(stored) == query
    assert "counts" not in stored["like"]


def test_detectors_of_several_tables_add_up_to_one_of_all():
    """Without noise the sum is the detector of all records; noise adds up by its squares."""
    models = [Model.of(fit(points, loss=wf.Loss("800000"))[1]) for points in (NORTH, SOUTH, EAST)]
    whole = wf.Points.from_array(RECORDS, columns=NAMES, name="all")
    together, alone = sum(models), Model.of(fit(whole, loss=wf.Loss("800000"))[1])
    assert np.abs(together.counts - alone.counts).max() <= 2
    noisy = [Model.of(fit(points)[1]) for points in (NORTH, SOUTH)]
    assert (noisy[0] + noisy[1]).floor == pytest.approx(noisy[0].floor * 2**0.5)


def test_a_detector_that_grows_is_the_sum_and_has_a_threshold_for_the_last_table():
    query, value = fit(SOUTH, loss=wf.Loss("50"), grow=True, contamination="2%")
    model, first = Model.of(value), Model.of(FIRST)
    own = floor_of(query.split(3000, 3).law)
    assert model.floor == pytest.approx(np.hypot(first.floor, own))
    exact = Model.of(fit(SOUTH, loss=wf.Loss("800000"))[1]).counts
    assert np.abs(model.counts - first.counts - exact).max() < 40  # 5,120 draws of scale 8/9 exceed it once in 10^15
    assert model.predict(RECORDS[1::3]).sum() == pytest.approx(60, abs=25)
    assert (model + first).threshold is None


def test_what_does_not_fit_is_refused():
    other = Detector(loss=wf.Loss("2")).answer(NORTH, system_noise())
    with pytest.raises(ParameterError, match="other grids"):
        Model.of(FIRST) + Model.of(other)
    narrow = Detector(loss=wf.Loss("2"), columns=("a", "b"))
    with pytest.raises(ParameterError, match="other columns"):
        Model.of(FIRST) + Model.of(narrow.answer(narrow.view(NORTH), system_noise()))
    with pytest.raises(TypeError):
        Model.of(FIRST) + 3
    for settings, words in (
        ({"like": None, "grow": True}, "no detector to add"),
        ({"columns": ("a",)}, "Omit them"),
        ({"spreads": "schema"}, "Omit them"),
        ({"like": {"key": "1"}}, "not one"),
        ({"like": 7}, "not one"),
        ({"like": FIRST | {"spreads": ["a"]}}, "not one"),
        ({"like": FIRST | {"spreads": {"a": "wide"}}}, "not one"),
        ({"like": FIRST | {"labels": ["c"]}}, "not one"),
        ({"like": FIRST | {"key": None}}, "not one"),
        ({"like": FIRST | {"grids": FIRST["grids"] * 60}}, "not one"),
        ({"like": FIRST | {"counts": [[2**60] * 256] * 20}, "grow": True}, "not one"),
    ):
        with pytest.raises(ParameterError, match=words):
            Detector(**{"loss": wf.Loss("1"), "like": FIRST, **settings})
    query = Detector(loss=wf.Loss("1"), like=FIRST)
    with pytest.raises(DataError, match="no column 'c'"):
        query.view(NORTH.subspace(("a", "b")))
    moved = wf.Schema(columns=tuple(Column(name, center=1.0) for name in NAMES))
    with pytest.raises(ParameterError, match="centre or unit"):
        query.view(wf.load(RECORDS, schema=moved))


@pytest.mark.parametrize("number", [float("inf"), float("nan")])
def test_a_layout_that_nothing_can_be_counted_in_is_refused_before_a_charge(number):
    grid = FIRST["grids"][0]
    lost = {**FIRST, "grids": [{**grid, "offsets": [number, *grid["offsets"][1:]]}, *FIRST["grids"][1:]]}
    for broken in (lost, {**FIRST, "floor": number}, {**FIRST, "grids": number}):
        with pytest.raises(ParameterError):
            Detector(loss=wf.Loss("1"), like=broken, grow=True)


def test_every_table_pays_in_its_own_account(tmp_path):
    with wf.Ledger.open(tmp_path / "ledger.db") as ledger:
        for name in ("h0", "h1"):
            ledger.grant(name, wf.Loss("3"), by="steward", reason="tests")
    north, south = (wf.open(points, ledger=tmp_path / "ledger.db") for points in (NORTH, SOUTH))
    first = north.detector(epsilon="2")
    for like in (first, first.to_dict()):
        second = south.detector(epsilon="1", like=like)
        assert (first.model + second.model).decision_function(RECORDS[:5]).shape == (5,)
    assert (north.budget().spent.epsilon, south.budget().spent.epsilon) == (2, 2)
    month = north.detector(epsilon="1", like=first.ledger_id, grow=True)
    assert month.value["grids"] == first.value["grids"]
