"""A private chart of shifts: what it detects, what its plan promises, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wallflower as wf
from wallflower.errors import LossMismatch, ParameterError
from wallflower.noise import system_noise
from wallflower.queries.shift import Shift
from wallflower.queries.shift.charts import Limits, NoisySums
from wallflower.queries.shift.exact import exact_alarm, exact_cusum
from wallflower.queries.shift.forecast import BlockForecast, exact_outlook


class NoNoise:
    """Noise of 0."""

    def laplace(self, scale: Fraction) -> int:
        return 0

    def below(self, bound: int) -> int:
        return bound - 1


def asked(epsilon: str = "1", **details: Any) -> Shift:
    return Shift(**{"low": -3.0, "high": 3.0, "variance": 1.0, "loss": wf.Loss(epsilon)} | details)


def stream(*rows: float) -> wf.Points:
    return wf.Points.from_array(np.array(rows, dtype=float)[:, None], columns=["x"], name="ward")


def shifted(n: int, at: int, size: float, columns: int = 1, seed: int = 1) -> np.ndarray[Any, Any]:
    rows = np.random.default_rng(seed).normal(0.0, 1.0, (n, columns))
    rows[at:] += size / np.sqrt(columns)
    return rows


def test_one_observation_moves_every_later_value_by_the_width_at_most_and_in_one_direction() -> None:
    width, streams = 3, list(product(range(4), repeat=4))
    moves = set()
    for values in streams:
        for place in range(4):
            for other in range(values[place] + 1, 4):
                changed = (*values[:place], other, *values[place + 1 :])
                pairs = zip(exact_cusum(changed, drift=1), exact_cusum(values, drift=1), strict=True)
                moves |= {after - before for after, before in pairs}
    assert moves == set(range(width + 1))  # never down, and the width is attained


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("cuts", [(), (1,), (2, 3, 7), (4, 5)])
def test_a_chart_without_noise_is_the_exact_one_of_sums_however_it_is_cut(block: int, cuts: tuple[int, ...]) -> None:
    values = np.array([0, 5, 9, 5, 0, 5, 5, 9, 9, 9], dtype=np.int64)
    noise = wf.Shift.example().chart(wf.Shift.example().statistic_on(1)).noise  # type: ignore[attr-defined]
    chart = NoisySums(limits=Limits(low=0, high=9), drift=3 * block, threshold=12, signs=(1,), block=block, noise=noise)
    memory, alarms, path = chart.start(), [], []
    for part in np.split(np.arange(len(values)), cuts):
        if len(part):
            progress = chart.decide(values[part], int(part[0]) + 1, memory, NoNoise())  # type: ignore[arg-type]
            memory, alarms, path = progress.memory, alarms + progress.alarms, path + (progress.path or [])
    sums = values[: len(values) // block * block].reshape(-1, block).sum(axis=1).tolist()
    first = exact_alarm(exact_cusum(sums, drift=3 * block), 12)
    assert first is not None
    assert alarms.index(True) == first * block - 1
    assert path[:first] == [min(value, 12) for value in exact_cusum(sums[:first], drift=3 * block)]


def test_the_sum_of_a_block_whose_end_was_skipped_is_dropped() -> None:
    noise = wf.Shift.example().chart(wf.Shift.example().statistic_on(1)).noise  # type: ignore[attr-defined]
    chart = NoisySums(limits=Limits(low=0, high=9), drift=0, threshold=99, signs=(1,), block=2, noise=noise)
    started = chart.decide(np.array([9]), 1, chart.start(), NoNoise())  # type: ignore[arg-type]
    for first in (3, 4):  # observation 2 was skipped, then 3 too
        later = chart.decide(np.array([1] * (5 - first)), first, started.memory, NoNoise())  # type: ignore[arg-type]
        assert later.path == [5 - first]


def test_a_shift_is_detected_with_its_direction_and_its_onset() -> None:
    rows = -shifted(2000, 1500, 1.5, columns=100)
    value = asked(variance=100.0, run_length=10**6, epsilon="4").answer(
        wf.Points.from_array(rows, name="ward"), system_noise()
    )
    (first, *_) = value["alarms"]
    assert first["direction"] == "down"
    assert 1500 < first["at"] < 1540
    assert abs(first["since"] - 1500) < 40


@pytest.mark.parametrize(
    ("columns", "direction", "block"), [(1, "up", None), (1, "both", None), (100, "down", None), (25, "up", 3)]
)
def test_plan_and_answer_agree(columns: int, direction: str, block: int | None) -> None:
    """Within 5 standard errors: a forecast that is off by a fifth would fail."""
    query = asked(variance=float(columns), direction=direction, block=block, run_length=200)
    statistic = query.statistic_on(columns)
    chart, outlook = query.chart(statistic), query.tuning(statistic).outlook
    rng, n = np.random.default_rng(7), 160_000 if columns == 1 else 60_000
    sums = statistic.steps(1.0) * rng.normal(0.0, np.sqrt(columns), n)
    usual = chart.decide(sums.astype(np.int64), 1, chart.start(), system_noise())
    expected = n / outlook.run_length
    assert abs(sum(usual.alarms) - expected) < 5 * np.sqrt(expected)
    sign, delays = -1 if direction == "down" else 1, []
    for _ in range(600):
        start = int(rng.integers(60, 120))
        sums = rng.normal(0.0, 1.0, start + 500)
        sums[start:] += sign
        steps = (statistic.steps(1.0) * np.sqrt(columns) * sums).astype(np.int64)
        alarms = chart.decide(steps, 1, chart.start(), system_noise()).alarms
        if not any(alarms[:start]):
            delays.append(alarms[start:].index(True) + 1 if any(alarms[start:]) else 500)
    error = float(np.std(delays) / np.sqrt(len(delays)))
    assert abs(np.mean(delays) - outlook.delay) < 5 * error < outlook.delay / 4


def test_plan_and_answer_of_a_bounded_chart_agree() -> None:
    query = asked(variance=400.0, low=-0.05, high=0.05, level="person", direction="up", run_length=200)
    statistic = query.statistic_on(1)
    chart, outlook = query.chart(statistic), query.tuning(statistic).outlook
    rng, delays, false = np.random.default_rng(3), [], 0
    for _ in range(300):
        x = rng.normal(0.0, 20.0, 500)
        x[200:] += 20.0
        steps = (x / statistic.step).astype(np.int64)
        alarms = chart.decide(steps, 1, chart.start(), system_noise(), secret=chart.secret(system_noise())).alarms
        at = alarms.index(True) + 1 if any(alarms) else 500
        false += at <= 200
        if at > 200:
            delays.append(at - 200)
    expected = 1 - np.exp(-1)
    assert abs(false / 300 - expected) < 5 * np.sqrt(expected * (1 - expected) / 300)
    assert abs(np.mean(delays) - outlook.delay) < 5 * np.std(delays) / np.sqrt(len(delays)) + 2.0


def test_the_exact_chart_has_the_run_length_of_the_textbooks() -> None:
    """For a shift of one deviation, h = 5: a run length of 930, a delay of 10.4 from a chart at 0 [Page, Siegmund]."""
    chart = BlockForecast(size=1.0, limits=(-8.0, 9.0), block=1, drift=0.5, scale=0.0)
    assert chart.run_length(5.0) == pytest.approx(930, rel=0.01)
    assert exact_outlook(1.0, 930.0).threshold == pytest.approx(5.0, abs=0.01)


def test_a_hundred_entries_cost_less_than_half_as_much_again_in_delay() -> None:
    """One deviation of the sum of a hundred entries at ε = 1."""
    query = asked(variance=100.0, direction="up")
    tuning = query.tuning(query.statistic_on(100))
    assert tuning.outlook.delay < 1.5 * tuning.exact.delay


def test_a_single_column_is_detected_by_noisy_sums_in_less_than_three_times_the_delay() -> None:
    query = asked(direction="up")
    tuning = query.tuning(query.statistic_on(1))
    assert tuning.outlook.delay < 3 * tuning.exact.delay


def test_a_window_costs_as_much_noise_as_its_entries() -> None:
    entry, window = asked("0.25"), asked("1", level="window", window=4)
    charts = [query.chart(query.statistic_on(1)) for query in (entry, window)]
    assert charts[0] == charts[1]
    assert entry.claim(stream(1.0)) == window.claim(stream(1.0))


def test_a_baseline_puts_entries_in_spreads() -> None:
    time = wf.Schema(name="ward", columns=(wf.data.Column("at", time=True), wf.data.Column("x", low=0, high=10)))
    value = {
        "season": "as-written",
        "labels": ["day", "night"],
        "dataset": "ward",
        "time": "at",
        "columns": ["x"],
        "centre": [[5.0, 2.0]],
        "spread": [[1.0, 0.5]],
        "width": [1.0],
    }
    rows = pd.DataFrame({"at": ["day", "night"] * 200, "x": [5.0, 2.0] * 100 + [6.0, 2.5] * 100})
    table = wf.load(rows, schema=replace(time, clip=True))
    query = Shift(baseline=value, loss=wf.Loss("8"), time="at", run_length=10**6)  # type: ignore[arg-type]
    answer = query.answer(query.view(table), system_noise())
    assert answer["alarms"]
    assert all(alarm["at"] > 200 and alarm["direction"] == "up" for alarm in answer["alarms"])
    assert len(answer["times"]) == len(answer["alarms"])


@pytest.mark.parametrize(
    ("details", "name"),
    [
        ({"variance": None}, "variance"),
        ({"size": 0.0}, "size"),
        ({"run_length": 1}, "run_length"),
        ({"level": "window"}, "window"),
        ({"level": "person", "path": True}, "path"),
        ({"memory": 3}, "memory"),
        ({"direction": "left"}, "direction"),
        ({"level": "paper"}, "level"),
        ({"low": 3.0, "high": 3.0}, "low"),
    ],
)
def test_what_makes_no_chart_is_refused(details: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"^{name}"):
        asked(**details)


def test_only_a_pure_loss_of_its_level_is_taken() -> None:
    with pytest.raises(LossMismatch):
        asked().__class__(low=-1.0, high=1.0, variance=1.0, loss=wf.Loss("1", delta="1e-6"))
