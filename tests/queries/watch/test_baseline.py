"""What is usual, learnt privately: honest noise, right on large histories, useless ones said so."""

import numpy as np
import pytest

from wallflower import Loss, Points
from wallflower.errors import LossMismatch, ParameterError
from wallflower.noise import system_noise
from wallflower.privacy import Neighbours
from wallflower.queries.watch.baseline import COARSE, Baseline


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
    for level in ("event", "person"):
        noise = Still()
        Baseline(low=-5.0, high=5.0, furthest=10.0, loss=Loss("1"), level=level).answer(points, noise)
        scales[level] = noise.scales
    far = 10 * COARSE // 10
    assert scales["event"] == pytest.approx([2 * COARSE, 2 * 2 * far * COARSE], rel=1e-4)
    assert scales["person"] == pytest.approx([100 * scale for scale in scales["event"]], rel=1e-9)


@pytest.mark.parametrize("columns", [1, 2])
def test_one_entry_moves_both_sums_by_no_more_than_their_noise_hides(columns):
    draw = np.random.default_rng(3)
    query = Baseline(low=-1.0, high=1.0, furthest=1.5, loss=Loss("1"))
    rows = draw.uniform(-1, 1, (4, columns))

    def sums(values):
        class Recorded(Still):
            pass

        found = query.answer(Points.from_array(values), Recorded())
        unit = 2.0 / COARSE
        mean = found["centre"] / unit
        return 4 * mean, 4 * (found["variance"] / unit**2 + mean * mean)

    first, second = sums(rows)
    for value in np.linspace(-1, 1, 41):
        changed = rows.copy()
        changed[2, 0] = value
        moved = sums(changed)
        assert abs(moved[0] - first) <= COARSE + 1e-6
        assert abs(moved[1] - second) <= 2 * np.ceil(1.5 / 2 * COARSE) * COARSE + 4 + 1e-6


def test_large_histories_are_learnt_and_small_ones_said_to_be_useless():
    query = Baseline(low=-10.0, high=10.0, furthest=20.0, loss=Loss("1"))
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
    with pytest.raises(ParameterError, match="furthest"):
        Baseline(low=0.0, high=1.0, furthest=-1.0, loss=Loss("1"))
    with pytest.raises(LossMismatch, match="pure"):
        Baseline(low=0.0, high=1.0, loss=Loss.zcdp("1"))
    with pytest.raises(ParameterError, match="low"):
        Baseline(low=1.0, high=0.0, loss=Loss("1"))
