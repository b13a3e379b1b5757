"""What a watch claims in each mode: for whom, how much, and by which factor for a whole observation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from wallflower.data import Points, Schema
from wallflower.errors import ParameterError
from wallflower.privacy import Loss, Neighbours
from wallflower.queries.watch import Watch
from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.watch.detectors import COARSE_STEPS
from wallflower.queries.watch.detectors.staircase import Table
from wallflower.queries.watch.statistics import Bounds, make_statistic
from wallflower.queries.watch.watch import LiveStream
from wallflower.units import Claim, Protection, price

MEAN, COVARIANCE = (0.5, -0.25, 1.0), ((2.0, 0.7, -0.3), (0.7, 1.0, 0.2), (-0.3, 0.2, 0.5))
BOX = Bounds(low=(-1.0, -2.0, 0.0), high=(2.0, 0.5, 1.5))  # ranges 3, 5/2 and 3/2
ENTRY, PERSON, WINDOW = Neighbours.ENTRY, Neighbours.PERSON, Neighbours.WINDOW
BOTH = (("record", Fraction(2)),)


@dataclass(frozen=True)
class Shape:
    """Public facts without any record."""

    n: int = 7
    dimension: int = 2
    columns: tuple[str, ...] = ("a", "b")


def watch(loss="1", **more):
    given = {"threshold": 2.0, "low": -5.0, "high": 5.0, "loss": Loss(loss) if isinstance(loss, str) else loss}
    return Watch(**given | more)


MODES = {
    "event": (watch(), Claim(loss=Loss("1", neighbours=ENTRY), steps=7, separable=True)),
    "scores": (watch(scores=True), Claim(loss=Loss("1", neighbours=ENTRY), steps=7, separable=True)),
    "paper": (watch(level="paper"), Claim(loss=Loss("1", neighbours=ENTRY), steps=7, separable=True)),
    "sparse": (watch(level="person"), Claim(loss=Loss("1", neighbours=PERSON))),
    "adaptive": (watch(level="person", adaptive=True), Claim(loss=Loss("1", neighbours=PERSON))),
    "monotone": (watch(level="person", monotone=True), Claim(loss=Loss("1", neighbours=PERSON), one_sign=True)),
    "gaussian": (
        watch(Loss.zcdp("0.1"), level="person", steps=5),
        Claim(loss=Loss.zcdp("0.1", neighbours=PERSON), steps=5),
    ),
    "gaussian with delta": (
        watch(Loss("1", delta="1e-6"), level="person", steps=5),
        Claim(loss=Loss("1", delta="1e-6", neighbours=PERSON), steps=5),
    ),
    "window": (
        watch(level="window", window=4),
        Claim(loss=Loss("1/4", neighbours=ENTRY), steps=7, separable=True),
    ),
    "gaussian window": (
        watch(Loss.zcdp("0.1"), level="window", window=4),
        Claim(loss=Loss.zcdp("1/40", neighbours=ENTRY), steps=7, separable=True),
    ),
    "gaussian window with delta": (
        watch(Loss("1", delta="1e-6"), level="window", window=4),
        Claim(loss=Loss("1", delta="1e-6", neighbours=WINDOW), window=4, steps=7),
    ),
}


def with_columns(claim, **more):
    stated = {name: getattr(claim, name) for name in claim.__slots__}
    return Claim(**stated | {"columns": 2, "own": BOTH} | more)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_states_whom_it_protects(mode):
    query, stated = MODES[mode]
    assert query.claim(Shape()) == with_columns(stated)


@pytest.mark.parametrize("mode", MODES)
def test_a_live_stream_has_no_length_but_the_one_that_is_asked_for(mode):
    query, stated = MODES[mode]
    stream = LiveStream(columns=("a", "b"))
    assert query.claim(stream) == with_columns(stated, steps=query.steps)


@pytest.mark.parametrize("mode", MODES)
def test_in_its_own_unit_a_watch_costs_what_it_says(mode):
    query, _ = MODES[mode]
    units = {ENTRY: Protection(rows="time", unit="entry"), PERSON: Protection(rows="time", unit="person")}
    units[WINDOW] = Protection(rows="time", unit="window", window=4)
    found = price(query.claim(LiveStream(columns=("a", "b"))), units[query.cost().neighbours])
    cost, doubled = query.cost(), 2 if query.monotone else 1
    if cost.kind == "zcdp":
        assert found.rho == cost.rho
    else:
        assert (found.epsilon, found.delta) == (doubled * cost.epsilon, cost.delta)


def test_a_window_of_another_length_costs_by_the_observation():
    pure, gaussian = MODES["window"][0].claim(Shape(n=100)), MODES["gaussian window"][0].claim(Shape(n=100))
    longer = Protection(rows="time", unit="window", window=10)
    assert price(pure, longer).epsilon == Fraction(10, 4)
    assert price(gaussian, longer).rho == Fraction(10, 40)


def test_a_window_spends_on_each_observation_what_is_stated_of_an_entry():
    for mode in ("window", "gaussian window"):
        query = MODES[mode][0]
        detector, stated = query.detector(query.statistic_on(2)), query.claim(Shape()).loss
        assert stated.amount == (detector.epsilon if mode == "window" else detector.loss.rho)


def test_claims_see_no_records():
    tables = (np.zeros((7, 2)), np.full((7, 2), 99.0), np.arange(14.0).reshape(7, 2))
    for query, _ in MODES.values():
        views = [query.view(Points.from_array(table, columns=("a", "b"))) for table in tables]
        assert {query.claim(view) for view in views} == {query.claim(Shape())}


def test_without_public_bounds_there_is_no_claim():
    with pytest.raises(ParameterError, match="public bounds"):
        watch(low=None, high=None).claim(Shape())


# Several observations: squares add up where each has a coin of its own


def test_two_observations_of_a_staircase_cost_twice_the_squares_and_not_once():
    table, rho = Table.of(Fraction(1, 4)), Fraction(1, 32)
    before, after = (float(table.probability(k)) for k in (0, 1))
    one, other = (np.outer(*[[p, 1 - p]] * 2).ravel() for p in (before, after))
    worst = [math.log((one**a * other ** (1 - a)).sum()) / (a - 1) / a for a in (1.001, 2.0, 8.0)]
    assert rho < max(worst) <= 2 * rho
    claim = watch("1/4").claim(Shape())
    assert price(claim, Protection(rows="time", unit="window", window=2)).rho == 2 * rho


# A change that is assumed


def test_an_assumed_change_counts_as_often_as_it_fits_into_the_widest_range():
    schema = Schema.of(["a", "b"], bounds={"a": (0.0, 1.0), "b": (-3.0, 4.5)}, clip=True)
    stream = LiveStream(columns=("a", "b"), schema=schema)
    assert watch(low=None, high=None, change=0.5).claim(stream).moves == 15
    assert watch(low=None, high=None, change=8.0).claim(stream).moves == 1
    assert watch(change=0.5).claim(stream).moves == 20  # its own bounds come first
    assert watch().claim(stream).moves == 1


def test_changes_are_counted_on_the_grid_and_not_in_floats():
    assert Fraction(3.0) / Fraction(0.3) > 10
    assert watch(low=-1.0, high=2.0, change=0.3).claim(Shape()).moves == 10
    assert watch(low=0.0, high=1.00001, change=0.5).claim(Shape()).moves == 3
    for many in (2, 3, 7, 10, 100, 9999):
        assert watch(low=0.0, high=1.0, change=1 / many).claim(Shape()).moves == many


def test_an_assumed_change_multiplies_what_everybody_pays():
    claim = watch(change=2.5).claim(Shape())
    assert price(claim, Protection(rows="time", unit="entry")).epsilon == 4
    found = price(claim, Protection(rows="time", unit="window", window=3))
    assert (found.epsilon, found.rho) == (12, 3 * 16 * Fraction(1, 2))


SETTINGS = {
    "sum": {},
    "weighted": {"weights": (1.0, -2.0, 0.3)},
    "max": {"mean": MEAN, "covariance": COVARIANCE},
    "mahalanobis": {"mean": MEAN, "covariance": COVARIANCE},
}


def corners():
    ends = list(zip(BOX.low, BOX.high, strict=True))
    near = [(low, math.nextafter(low, high), low / 2 + high / 2, high) for low, high in ends]
    return np.array(list(product(*near)))


@pytest.mark.parametrize("change", [None, 2.9, 1.0, 0.3, 1e-3])
@pytest.mark.parametrize("statistic", SETTINGS)
def test_a_whole_observation_moves_a_distance_by_its_factor_at_most(statistic, change):
    made = make_statistic(statistic, BOX, change=change, **SETTINGS[statistic])
    found = made.measure(np.vstack([corners(), np.random.default_rng(3).uniform(-3, 3, (3000, 3))]))
    moved = int(found.max() - found.min())
    factor = -(-made.record_sensitivity // made.sensitivity)
    assert moved <= made.record_sensitivity <= factor * made.sensitivity
    if statistic in ("sum", "weighted"):
        assert moved == made.record_sensitivity > (factor - 1) * made.sensitivity  # so one less is too small


@pytest.mark.parametrize("change", [2.9, 1.0, 0.3, 1e-3])
@pytest.mark.parametrize("statistic", SETTINGS)
def test_one_entry_moves_a_distance_by_as_many_changes_as_fit_into_its_range(statistic, change):
    made = make_statistic(statistic, BOX, change=change, **SETTINGS[statistic])
    schema = Schema.of(["a", "b", "c"], bounds=dict(zip("abc", zip(BOX.low, BOX.high, strict=True), strict=True)))
    stream = LiveStream(columns=("a", "b", "c"), schema=schema)
    moves = watch(change=change, low=None, high=None, statistic=statistic, **SETTINGS[statistic]).claim(stream).moves
    assert moves == -(-made.range_sensitivity // made.sensitivity)
    farthest = 0
    rows = corners()
    for at in range(3):
        found = [made.measure(np.insert(np.delete(rows, at, 1), at, end[at], 1)) for end in (BOX.low, BOX.high)]
        farthest = max(farthest, int(np.abs(found[0] - found[1]).max()))
    assert farthest <= made.range_sensitivity <= moves * made.sensitivity
    if statistic in ("sum", "weighted"):
        assert farthest > (moves - 1) * made.sensitivity


# A whole observation


def record(query, **more):
    (found,) = query.claim(Shape(**{"dimension": 3, "columns": ("a", "b", "c")} | more)).own
    return found


def test_the_maximum_costs_a_record_what_it_costs_an_entry():
    query = watch(statistic="max", mean=MEAN, covariance=COVARIANCE)
    assert record(query) == ("record", 1)
    assert record(watch(statistic="max", mean=MEAN, covariance=COVARIANCE, change=2.5)) == ("record", 4)


def test_a_sum_costs_a_record_as_often_as_the_widest_entry_fits_into_all():
    assert record(watch()) == ("record", 3)
    assert record(watch(statistic="weighted", weights=(1.0, -1.0, 4.0))) == ("record", 2)
    assert record(watch(statistic="weighted", weights=(0.0, 0.0, 4.0))) == ("record", 1)
    schema = Schema.of(["a", "b"], bounds={"a": (0.0, 1.0), "b": (0.0, 0.125)}, clip=True)
    claim = watch(low=None, high=None).claim(LiveStream(columns=("a", "b"), schema=schema))
    assert claim.own == BOTH


def test_no_record_costs_more_than_column_by_column():
    for statistic, settings in SETTINGS.items():
        for change in (None, 2.9, 0.3):
            claim = watch(statistic=statistic, change=change, **settings).claim(Shape(dimension=3))
            assert dict(claim.own)["record"] <= 3 * claim.moves
            assert change is not None or claim.moves == 1


def test_a_staircase_reaches_the_factor_of_a_record():
    query = watch("1/2", threshold=0.0, centre=-10.0)
    made = query.statistic_on(2)
    far, near = made.measure(np.array([[5.0, 5.0], [-5.0, -5.0]])).tolist()
    assert far - near == 2 * made.sensitivity
    table = Table.of(Fraction(1, 2))
    chances = [1 - float(table.probability((at - made.steps(0.0)) // made.sensitivity + 1)) for at in (near, far)]
    assert 1.9 / 2 < math.log(chances[0] / chances[1]) <= 2 / 2


# What is usual


def test_a_baseline_states_half_of_the_squares():
    claim = Baseline(low=0.0, high=1.0, loss=Loss("0.5")).claim(Shape())
    assert claim == Claim(loss=Loss("0.5", neighbours=ENTRY), columns=2, steps=7, rho=Fraction(1, 16))
    whole = Baseline(low=0.0, high=1.0, loss=Loss("0.5"), level="person").claim(Shape())
    assert whole == Claim(loss=Loss("0.5", neighbours=PERSON), columns=2, steps=7, rho=Fraction(1, 16))


def test_the_noise_of_a_baseline_has_the_squares_that_are_stated_and_not_half_of_them():
    query = Baseline(low=0.0, high=1.0, clip_distance=0.01, loss=Loss("0.5"))
    rho = float(query.claim(Shape()).rho)
    first, second = query._learner()._noises(7, 2)
    moved = [
        (COARSE_STEPS, float(first.scale)),
        (2 * query._learner()._clip_steps(2) * COARSE_STEPS, float(second.scale)),
    ]
    worst = [sum(divergence(move, scale, order) for move, scale in moved) / order for order in (1.001, 2.0, 16.0)]
    assert 0.8 * rho < max(worst) <= rho


def divergence(move, scale, order):
    """Between discrete Laplace noise and the same noise moved."""
    at = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale))
    one, other = (-np.abs(at - shift) / scale for shift in (0, move))
    whole = np.logaddexp.reduce(one)
    return (np.logaddexp.reduce(order * one + (1 - order) * other) - whole) / (order - 1)
