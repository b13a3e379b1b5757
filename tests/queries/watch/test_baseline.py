"""What is usual, learnt privately: honest noise, right on large histories, useless ones said so."""

import re

import numpy as np
import pytest

from wallflower import Loss, Points
from wallflower.errors import LossMismatch, ParameterError
from wallflower.noise import system_noise
from wallflower.privacy import Neighbours
from wallflower.queries.watch import Watch
from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.watch.detectors import COARSE_STEPS
from wallflower.schema import Column, Schema


class Still:
    """No noise; remembers the scales asked for."""

    def __init__(self):
        self.scales = []

    def laplace(self, scale):
        self.scales.append(scale)
        return 0


def history(n=2000, columns=3):
    return Points.from_array(np.random.default_rng(7).normal(1, 2, (n, columns)), name="history")


def test_without_noise_it_is_the_mean_and_the_variance():
    points = history()
    found = Baseline(low=-20.0, high=20.0, loss=Loss("1")).answer(points, Still())
    sums = points.values.sum(axis=1)
    assert found["centre"] == pytest.approx(sums.mean(), abs=0.05)
    assert found["variance"] == pytest.approx(sums.var(), rel=0.03)


def test_the_noise_hides_one_entry_or_one_person_throughout():
    points = history(n=100)
    scales = {}
    for level in ("entry", "person"):
        noise = Still()
        Baseline(low=-5.0, high=5.0, clip_distance=10.0, loss=Loss("1"), level=level).answer(points, noise)
        scales[level] = noise.scales
    far = 10 * COARSE_STEPS // 10
    assert scales["entry"] == pytest.approx([2 * COARSE_STEPS, 2 * 2 * far * COARSE_STEPS], rel=1e-4)
    assert scales["person"] == pytest.approx([100 * scale for scale in scales["entry"]], rel=1e-9)


@pytest.mark.parametrize("columns", [1, 2])
def test_one_entry_moves_both_sums_by_no_more_than_their_noise_hides(columns):
    draw = np.random.default_rng(3)
    query = Baseline(low=-1.0, high=1.0, clip_distance=1.5, loss=Loss("1"))
    rows = draw.uniform(-1, 1, (4, columns))

    def sums(values):
        class Recorded(Still):
            pass

        found = query.answer(Points.from_array(values), Recorded())
        unit = 2.0 / COARSE_STEPS
        mean = found["centre"] / unit
        return 4 * mean, 4 * (found["variance"] / unit**2 + mean * mean)

    first, second = sums(rows)
    for value in np.linspace(-1, 1, 41):
        changed = rows.copy()
        changed[2, 0] = value
        moved = sums(changed)
        assert abs(moved[0] - first) <= COARSE_STEPS + 1e-6
        assert abs(moved[1] - second) <= 2 * np.ceil(1.5 / 2 * COARSE_STEPS) * COARSE_STEPS + 4 + 1e-6


def test_large_histories_are_learnt_and_small_ones_said_to_be_useless():
    query = Baseline(low=-10.0, high=10.0, clip_distance=20.0, loss=Loss("1"))
    found = query.answer(history(20_000), system_noise())
    assert found["centre"] == pytest.approx(3, abs=0.3)
    assert found["variance"] == pytest.approx(12, rel=0.3)
    assert query.plan(n=20_000, dimension=3).useful
    assert not Baseline(low=-10.0, high=10.0, loss=Loss("1"), level="person").plan(n=20_000, dimension=3).useful


def test_it_protects_whom_the_watch_protects():
    assert Baseline(low=0.0, high=1.0, loss=Loss("1")).cost().neighbours is Neighbours.ENTRY
    assert Baseline(low=0.0, high=1.0, loss=Loss("1"), level="person").cost().neighbours is Neighbours.PERSON
    query = Baseline(low=0.0, high=1.0, loss=Loss("1"))
    assert Baseline.from_json(query.to_json()) == query


def test_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match="clip_distance"):
        Baseline(low=0.0, high=1.0, clip_distance=-1.0, loss=Loss("1"))
    with pytest.raises(LossMismatch, match="pure"):
        Baseline(low=0.0, high=1.0, loss=Loss.zcdp("1"))
    with pytest.raises(ParameterError, match="low"):
        Baseline(low=1.0, high=0.0, loss=Loss("1"))
    with pytest.raises(ParameterError, match="variance"):
        Baseline(low=0.0, high=1.0, variance=0.0, loss=Loss("1"))


def test_it_is_judged_by_the_spread_and_not_by_the_range():
    """The same noise on the same bounds: enough for a wide sum, of no use for a narrow one."""
    given = {"low": 0.0, "high": 20.0, "guess": 300.0, "clip_distance": 100.0, "loss": Loss("1")}
    wide, narrow = (Baseline(**given, variance=v).plan(n=1000, dimension=30) for v in (400.0, 1.0))
    assert wide.options[0].figures["centre"] == narrow.options[0].figures["centre"] < 20.0
    assert wide.useful
    assert not narrow.useful
    assert "of a spread of 1," in narrow.verdict
    assert float(narrow.smallest_useful_epsilon) > 1 >= float(wide.smallest_useful_epsilon)
    assert "assumed" in Baseline(**given).plan(n=1000, dimension=30).verdict


@pytest.mark.slow
@pytest.mark.parametrize("guess", [3.0, 0.0])
@pytest.mark.parametrize("n", [300, 5000])
def test_what_is_stated_of_both_numbers_is_true(n, guess):
    """Of 1,000 releases 95 % are inside; fewer than 900 has a chance below 1e-10, if the statement is true."""
    points = history(n=n)
    query = Baseline(low=-20.0, high=20.0, guess=guess, clip_distance=40.0, variance=12.0, loss=Loss("1"))
    sums = points.values.sum(axis=1)
    mean, spread = sums.mean(), sums.std()
    planned = query.plan(n=n, dimension=3).options[0].figures
    near, between, by_plan = 0, 0, 0
    for _ in range(1000):
        value = query.answer(points, system_noise())
        words = query.reading(value, points).text
        numbers = [float(number) for number in re.findall(r"-?[0-9]+(?:\.[0-9]+)?(?:e-?[0-9]+)?", words)]
        centre, _, half, _, _, low, high = numbers
        near += abs(centre - mean) <= half * 1.005
        between += low * 0.9999 <= spread <= high * 1.0001
        by_plan += abs(value["variance"] - spread**2) <= planned["variance"]
    assert min(near, between) >= 900
    assert by_plan >= 900 or guess != 3.0  # the plan goes by a guess that is right


BEDS = Schema(columns=(Column("temperature", low=34.5, high=39.5, center=37, scale=0.5, measure="°C"),))  # -5 to 5


def beds(schema=BEDS, n=400):
    draw = np.random.default_rng(5)
    values = np.column_stack([draw.uniform(column.low, column.high or 50, n) for column in schema.columns])
    return Points.from_array(values, name="beds", columns=[column.name for column in schema.columns], schema=schema)


ASKING = {
    "baseline": lambda **bounds: Baseline(loss=Loss("1"), **bounds),
    "baseline by phase": lambda **bounds: Baseline(loss=Loss("1"), season="always", **bounds),
    "watch": lambda **bounds: Watch(threshold=2.0, loss=Loss("1"), **bounds),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
@pytest.mark.parametrize(("low", "high"), [(34.5, 39.5), (5.0, 9.0), (-9.0, -5.0), (0.0, 40.0), (-40.0, 1.0)])
def test_bounds_outside_the_public_range_are_refused_by_public_facts(ask, low, high):
    with pytest.raises(ParameterError, match=r"of temperature, which is -5 to 5 after subtracting 37 and"):
        ask(low=low, high=high).view(beds())


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
@pytest.mark.parametrize(("low", "high"), [(-5.0, 5.0), (-3.0, 3.0), (-5 - 1e-12, 5.0), (-9.0, 9.0)])
def test_bounds_within_the_public_range_or_around_it_are_taken(ask, low, high):
    assert ask(low=low, high=high).view(beds()).n == 400


def test_one_pair_of_bounds_must_meet_the_range_of_every_column():
    two = Schema(columns=(Column("a", low=0, high=10), Column("b", low=20, high=90, measure="kg")))
    assert Baseline(low=0.0, high=90.0, loss=Loss("1")).view(beds(two)).n == 400
    with pytest.raises(ParameterError, match="0 to 15 is outside the public range of b, which is 20 to 90 kg"):
        Baseline(low=0.0, high=15.0, loss=Loss("1")).view(beds(two))


def test_one_bound_of_the_query_is_held_to_the_schema_too():
    with pytest.raises(ParameterError, match=r"from 34\.5 is outside the public range"):
        Watch(threshold=2.0, low=34.5, loss=Loss("1")).view(beds())
    half = Schema(columns=(Column("t", low=0),))
    assert Baseline(low=1.0, high=1e6, loss=Loss("1")).view(beds(half)).n == 400
    with pytest.raises(ParameterError, match="-9 to -1 is outside the public range of t, which is from 0"):
        Baseline(low=-9.0, high=-1.0, loss=Loss("1")).view(beds(half))


def test_what_was_learnt_says_how_to_get_back_to_the_units_of_the_columns():
    (note,) = Baseline(low=-5.0, high=5.0, loss=Loss("1")).cautions(beds())
    assert "temperature 0.5 after subtracting 37" in note
    assert "multiplied by 0.5 and 37 added to it" in note
    assert "not to the columns" in Baseline(season="always", loss=Loss("1")).cautions(beds())[0]
    assert Baseline(low=-9.0, high=9.0, loss=Loss("1")).cautions(history()) == ()
