"""`wf.sensors`: from readings to judged outliers in one process, by the functions that the parties run."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pyod.models.ecod import ECOD as ECOD_MODEL
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

import wallflower as wf
from scripted_noise import Scripted
from wallflower.errors import DataError, ParameterError
from wallflower.privacy import Kind, Neighbours
from wallflower.sensors import PerturbedReadings, judge, perturb, simulate
from wallflower.sensors.correction import correct
from wallflower.sensors.device import clip_readings
from wallflower.sensors.perturbation import distances
from wallflower.sensors.protocol.frames import Kind as FrameKind
from wallflower.sensors.protocol.frames import decode

TEMPERATURE = {"centre": "20", "scale": "3", "range": "12", "low": "-40", "high": "85"}
HUMIDITY = {"centre": "45", "scale": "10", "range": "40", "low": "0", "high": "100"}
HALL = {"temperature": TEMPERATURE, "humidity": HUMIDITY}
GRID = {"mode": "grid", "bound": "4", "step": "2"}
PAPER = {"mode": "paper", "radius": "2", "neighbours": 5, "width": "3"}
CHOICE = {"mode": "exact", "unit": "0.01", "bits": 12, "choice_epsilon": "5"}


@pytest.fixture(scope="module")
def made() -> Any:
    return simulate(400, seed=7)


@pytest.fixture(scope="module")
def sent(made: Any) -> PerturbedReadings:
    return perturb(made.readings, columns=made.columns, threshold="5", epsilon="0.2")


def far(sent: PerturbedReadings, readings: Any, threshold: str) -> np.ndarray:
    """The exact rule, on the grid that the sensor rounds to."""
    points = clip_readings(sent.parameters, readings)
    return distances(points, sent.parameters.centre_steps) >= sent.parameters.to_steps(Fraction(threshold))


def test_made_up_readings_are_the_same_for_a_seed(made: Any) -> None:
    assert np.array_equal(simulate(400, seed=7).readings, made.readings)
    assert not np.array_equal(simulate(400, seed=8).readings, made.readings)
    assert (made.readings.shape, int(made.outliers.sum()), set(made.columns)) == ((400, 2), 20, {"x", "y"})


def test_flagged_are_exactly_those_beyond_the_threshold(made: Any, sent: PerturbedReadings) -> None:
    found = judge(sent)
    assert np.array_equal(found.flags, made.outliers)
    assert found.positions == tuple(np.flatnonzero(made.outliers).tolist())
    assert found.ids == tuple(f"{sent.ids[place]:016x}" for place in found.positions)
    assert (found.count, found.judged, found.unjudged, found.mode) == (20, 400, (), "exact")


@pytest.mark.parametrize("threshold", ["0.5", "1", "2.345", "20"])
def test_the_rule_is_exact_at_every_distance_and_every_loss(threshold: str) -> None:
    readings = np.random.default_rng(3).normal([20.0, 45.0], [9.0, 30.0], (300, 2))
    grid = "0.005" if threshold == "2.345" else "0.001"
    for epsilon in ("0.01", Fraction(3), Decimal("100")):
        given = perturb(readings, columns=HALL, threshold=threshold, epsilon=epsilon, grid=grid)
        assert np.array_equal(judge(given).flags, far(given, readings, threshold))


def test_a_reading_on_the_threshold_is_an_outlier() -> None:
    given = perturb([[35.0], [34.996], [5.0]], columns={"t": TEMPERATURE}, threshold=5, epsilon=1)
    assert judge(given).positions == (0, 2)


def test_one_column_may_be_a_plain_list_and_nan_is_the_middle_of_the_box() -> None:
    given = perturb([20.0, 80.0, float("nan")], columns={"t": TEMPERATURE}, threshold="5", epsilon="1")
    assert judge(given).positions == (1,)


def test_distances_may_be_taken_from_another_centre() -> None:
    given = perturb([[20.0], [50.0]], columns={"t": TEMPERATURE}, threshold="5", epsilon="1", centre=["10"])
    assert judge(given).positions == (0,)


def test_noise_is_applied_and_fresh_each_time(made: Any, sent: PerturbedReadings) -> None:
    again = perturb(made.readings, columns=made.columns, threshold="5", epsilon="0.2")
    for one, other in ((sent.readings, made.readings), (sent.readings, again.readings)):
        assert not (np.abs(one - other) < 1e-9).all(axis=1).any()  # a row by chance: 5 in 10^8; one entry: 1 in 75
    assert not set(sent.ids.tolist()) & set(again.ids.tolist())


@pytest.mark.parametrize("stretch", [Fraction(2, 3), Fraction(1), Fraction(3, 2)])
def test_noise_has_the_scale_that_the_loss_says(stretch: Fraction) -> None:
    """In one column |z| is Laplace with mean range / ε; in the units of the column that is 12 / ε."""
    quiet = np.full(4000, 20.0)
    given = perturb(quiet, columns={"t": TEMPERATURE}, threshold="5", epsilon=2)
    fits = abs(float(np.abs(given.readings - 20.0).mean()) / (12 / 2) - float(stretch)) < 0.12
    assert fits is (stretch == 1)


def test_readings_as_they_were_measured_are_nowhere_in_what_was_sent(made: Any, sent: PerturbedReadings) -> None:
    held = [getattr(sent, name) for name in ("parameters", "ids", "frames", "_commit")]
    text = pickle.dumps(held) + b"".join(sent.frames["analyst"]) + repr(sent).encode()
    for reading in made.readings[:20]:
        assert reading.tobytes() not in text
    kinds = {
        role: {decode(body, parameters=sent.parameters.hash).kind for body in bodies}
        for role, bodies in sent.frames.items()
    }
    assert kinds == {"analyst": {FrameKind.READINGS_AND_KEYS}, "correction": {FrameKind.KEYS}}


def test_the_cost_is_stated_exactly(sent: PerturbedReadings) -> None:
    found = judge(sent)
    assert found.loss == sent.loss == wf.Loss("0.2", kind=Kind.METRIC, neighbours=Neighbours.READING)
    assert str(found.loss) == "ε = 0.2"
    assert 1.999 < sent.furthest.amount <= 2
    assert "ε = 0.2 a reading" in found.guarantee
    assert "ε = 2 in all" in found.guarantee
    assert "0.21" not in found.guarantee
    assert "keys that reveal nothing alone" in found.guarantee
    assert "no finite ε" not in found.guarantee


def test_it_says_that_it_is_not_the_real_thing(sent: PerturbedReadings) -> None:
    found = judge(sent)
    for told in (str(found), found._repr_html_(), json.dumps(found.to_dict(), ensure_ascii=False)):
        for words in ("one process", "nothing was charged", "wallflower sensors", "ε = 0.2", "20 of 400"):
            assert words in told
    assert repr(found) == "Judgement(20 outliers of 400 readings, ε = 0.2 a reading)"
    assert repr(sent) == "PerturbedReadings(400 readings of x, y; mode exact, ε = 0.2 a reading)"
    assert set(sent.sizes) == {"analyst", "correction"}
    assert "and 8 more" in str(found)


@pytest.mark.parametrize("settings", [GRID, CHOICE, CHOICE | {"tags": False}])
def test_other_ways_find_them_too(made: Any, settings: dict[str, Any]) -> None:
    given = perturb(made.readings, columns=made.columns, settings=settings, epsilon="1")
    assert np.array_equal(judge(given).flags, made.outliers)


@pytest.mark.slow
def test_the_way_of_the_paper_runs_and_says_what_it_leaks(made: Any) -> None:
    found = judge(perturb(made.readings, columns=made.columns, settings=PAPER, epsilon="50"))
    assert (found.judged, found.mode, found.threshold) == (400, "paper", None)
    assert "no finite ε" in found.guarantee
    assert "d_TP" in found.guarantee


def test_the_choice_of_a_threshold_is_paid_for(made: Any) -> None:
    given = perturb(made.readings, columns=made.columns, settings=CHOICE, epsilon="1")
    assert given.loss.amount == 6
    assert 14.999 < given.furthest.amount <= 15
    assert "of which ε = 5" in given.guarantee


def test_where_no_threshold_can_be_chosen_nothing_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    given = perturb([20.0, 80.0], columns={"t": TEMPERATURE}, settings=CHOICE | {"choice_epsilon": "1"}, epsilon="1")
    monkeypatch.setattr(
        "wallflower.sensors.simulation.system_noise", Scripted
    )  # once in 10^6 runs real noise shows one, as `FALSE_OCCUPANCY` says
    found = judge(given)
    assert (found.judged, found.unjudged, found.count) == (0, (0, 1), 0)
    assert "2 could not be judged" in found.text


def test_more_than_a_batch_is_sent_in_several(monkeypatch: pytest.MonkeyPatch, made: Any) -> None:
    monkeypatch.setattr("wallflower.sensors.simulation.MAX_BATCH_READINGS", 150)
    given = perturb(made.readings, columns=made.columns, threshold="5", epsilon="0.2")
    assert len(given.frames["analyst"]) == len(given.frames["correction"]) == 3
    assert np.array_equal(judge(given).flags, made.outliers)
    assert given.readings.shape == (400, 2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 0.2}, "epsilon: must be exact"),
        ({"epsilon": "0"}, "epsilon: must be above 0"),
        ({"epsilon": "much"}, "epsilon: must be an exact number"),
        ({"threshold": 5.0}, "settings.thresholds[0]: must be exact"),
        ({"threshold": "-1"}, "thresholds: must be above 0"),
        ({"threshold": "100"}, "threshold: further from the centre than any corner of the box"),
        ({"threshold": None}, "threshold, settings: state one of them"),
        ({"settings": GRID}, "threshold, settings: state one of them"),
        ({"threshold": None, "settings": {"mode": "direct", "threshold": "5"}}, "mode direct has no servers"),
        ({"threshold": None, "settings": {"mode": "fast"}}, "settings.mode: must be one of exact, grid, paper, direct"),
        ({"columns": [TEMPERATURE, HUMIDITY]}, "columns: must be a mapping"),
        ({"columns": {"t": TEMPERATURE, "h": {"centre": "1"}}}, "columns[1].scale: is missing"),
        ({"columns": {"t": TEMPERATURE, "h": HUMIDITY | {"scale": 10.0}}}, "columns[1].scale: must be exact"),
        ({"centre": ["0"]}, "centre: must have a number for each column"),
        ({"grid": "0.7", "threshold": None, "settings": GRID}, "must be a whole number of grid steps"),
        ({"noise": "white"}, "noise: must be one of planar, columns"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_drawn(changes: dict[str, Any], words: str) -> None:
    stated: dict[str, Any] = {"columns": HALL, "threshold": "5", "epsilon": "0.2"}
    with pytest.raises(ParameterError) as refused:
        perturb([[1.0, 2.0]], **{**stated, **changes})
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "readings", [[[1.0, 2.0, 3.0]], [1.0, 2.0], [], [["warm", 2.0]], [[1.0], [2.0, 3.0]], "readings", None]
)
def test_readings_that_do_not_fit_are_refused_and_not_quoted(readings: Any) -> None:
    with pytest.raises(DataError, match=r"Pass (one row|rows)") as refused:
        perturb(readings, columns=HALL, threshold="5", epsilon="0.2")
    assert "warm" not in str(refused.value)


@pytest.mark.parametrize("changes", [{"n": 0}, {"n": 2.5}, {"share": 2.0}, {"separation": -1.0}])
def test_what_cannot_be_made_up_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="out of range"):
        simulate(**{"n": 10, "seed": 1, **changes})


# Any detector may judge perturbed readings in mode paper

LOF = "sklearn:neighbors.LocalOutlierFactor:n_neighbors=30,contamination=0.1"
ECOD = "pyod:ecod.ECOD:contamination=0.1"


def corrected(sent: PerturbedReadings, presume: Any) -> set[int]:
    """What one who knows both sides computes, for outliers presumed by this detector, in the order of ids."""
    stated = sent.parameters
    frames = {role: decode(sent.frames[role][0], parameters=stated.hash) for role in ("analyst", "correction")}
    orders = {role: np.argsort(frame["ids"]) for role, frame in frames.items()}
    perturbed = frames["analyst"]["perturbed"].astype(np.int64)[orders["analyst"]]
    moved = frames["correction"]["moved"][orders["correction"]]
    presumed = np.flatnonzero(presume(perturbed * float(stated.grid)))
    found = correct(distances(perturbed, stated.centre_steps), moved, presumed, float(stated.to_steps(Fraction(3))))
    return set(np.argsort(sent.ids)[found.output].tolist())


@pytest.mark.parametrize(
    ("name", "presume"),
    [
        (LOF, lambda x: LocalOutlierFactor(n_neighbors=30, contamination=0.1).fit_predict(x) == -1),
        (ECOD, lambda x: ECOD_MODEL(contamination=0.1).fit(x).labels_ == 1),
        (
            "sklearn:ensemble.IsolationForest:random_state=1",
            lambda x: IsolationForest(random_state=1).fit_predict(x) < 0,
        ),
    ],
)
def test_a_named_detector_judges_the_perturbed_readings(made: Any, name: str, presume: Any) -> None:
    sent = perturb(made.readings, columns=made.columns, settings={**PAPER, "detector": name}, epsilon="2")
    assert set(judge(sent).positions) == corrected(sent, presume) == set(judge(sent, detector=presume).positions)


def test_a_detector_is_a_function_or_an_estimator(made: Any) -> None:
    sent = perturb(made.readings, columns=made.columns, settings=PAPER, epsilon="2")
    by_estimator = judge(sent, detector=LocalOutlierFactor(n_neighbors=30, contamination=0.1))
    by_function = judge(
        sent, detector=lambda x: LocalOutlierFactor(n_neighbors=30, contamination=0.1).fit_predict(x) < 0
    )
    assert by_estimator.positions == by_function.positions
    for wrong, words in (
        (lambda values: 1 / 0, "with ZeroDivisionError"),
        (lambda values: [True], "one truth value for each"),
        (lambda values: np.zeros(len(values)), "one truth value for each"),
    ):
        with pytest.raises(DataError, match=words):
            judge(sent, detector=wrong)


def test_only_mode_paper_asks_a_detector(sent: PerturbedReadings) -> None:
    with pytest.raises(ParameterError, match="mode exact compares distances"):
        judge(sent, detector=lambda values: values[:, 0] > 9)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("os:system", "is not a detector"),
        ("sklearn:neighbors.LocalOutlierFactor:n_neighbors=__import__('os')", "is not a detector"),
        ("sklearn:a.b.C", "is not a detector"),
        ("lof", "is not a detector"),
    ],
)
def test_a_name_is_one_of_two_packages(made: Any, name: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        perturb(made.readings, columns=made.columns, settings={**PAPER, "detector": name}, epsilon="2")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sklearn:neighbors.Nobody", "has no neighbors.Nobody"),
        ("pyod:nobody.Nobody", "pip install pyod"),
        ("sklearn:neighbors.LocalOutlierFactor:speed=1", "does not take these settings"),
    ],
)
def test_a_detector_that_is_not_there_is_an_error_of_the_name(made: Any, name: str, words: str) -> None:
    sent = perturb(made.readings, columns=made.columns, settings={**PAPER, "detector": name}, epsilon="2")
    with pytest.raises(ParameterError, match=words):
        judge(sent)
