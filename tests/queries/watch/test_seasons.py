"""What is usual at each phase: learnt for one price, judged by, and refused where it does not belong."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import wallflower as wf
from wallflower.data import Column, Table, load
from wallflower.errors import DataError, ParameterError
from wallflower.noise import system_noise
from wallflower.queries.watch.seasons import Season, SeasonalBaseline
from wallflower.queries.watch.seasons.estimates import needs_pool, shrink_effects, smooth
from wallflower.service.api.bodies import body_model
from wallflower.service.api.bodies import parse_query as query_of_body
from wallflower.units import Protection, price

SURE = "10000"  # a loss at which noise is nothing


def hours(weeks: int = 8, *, columns: int = 1, name: str = "rides", seed: int = 1) -> Table:
    """Hourly counts with a day's rhythm: low at night, high at noon, spread 2; of the sixth week one night is busy."""
    n = weeks * 168
    times = [datetime(2024, 1, 1) + timedelta(hours=place) for place in range(n)]
    rhythm = np.array([50 + 30 * np.sin((time.hour - 6) / 24 * 2 * np.pi) for time in times])
    values = rhythm[:, None] + np.random.default_rng(seed).normal(0, 2, (n, columns))
    values[NIGHT] = 50.0
    names = [f"c{place}" for place in range(columns)]
    columns_of = {name: values[:, place] for place, name in enumerate(names)}
    schema = wf.Schema(name=name, columns=(Column("time", time=True), *map(Column, names)))
    return load(_frame({"time": [str(time) for time in times], **columns_of}), schema=schema)


def _frame(cells: dict[str, Any]) -> Any:
    return pa.table(cells)


NIGHT = 5 * 168 + 24  # midnight of a Tuesday, as busy as a morning


def baseline(**more: Any) -> wf.Baseline:
    given = {"low": 0.0, "high": 100.0, "season": "hour-of-day", "time": "time", "loss": wf.Loss(SURE)}
    return wf.Baseline(**given | more)


def learn(table: Table, **more: Any) -> dict[str, Any]:
    query = baseline(**more)
    return query.answer(query.view(table), system_noise())


@pytest.mark.parametrize(("spread", "width"), [(1.0, 0.1), (0.1, 1.0), (0.5, 0.5)])
@pytest.mark.parametrize("bucket", ["day", "night", "dusk"])
def test_an_assumed_change_moves_no_phase_by_more_than_a_move_known_or_not(
    spread: float, width: float, bucket: str
) -> None:
    """An unknown phase is judged in spreads of `width`, which the move has to cover too."""
    stored = {"season": "as-written", "labels": ["day", "night"], "dataset": "w", "time": "t", "columns": ["x"]}
    usual: Any = stored | {"centre": [[0.0, 0.0]], "spread": [[spread, spread]], "width": [width]}
    change = 0.2
    query = wf.Watch(threshold=3.0, baseline=usual, change=change, loss=wf.Loss("1"))
    schema = wf.Schema(columns=(Column("t", time=True), Column("x", low=-10.0, high=10.0)))
    statistic = query.statistic_on(1, schema.only(["x"]))
    usual_of = query.seasonal_baseline
    assert usual_of is not None
    rows = np.array([[-change], [0.0], [change]])
    found = statistic.measure(usual_of.standardise(rows, usual_of.buckets([bucket] * 3, 3)))
    assert found[1] != found[2]
    assert np.abs(np.diff(found)).max() <= statistic.sensitivity


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("hour-of-day", 14),
        ("half-hour-of-day", 29),
        ("day-of-week", 4),
        ("hour-of-week", 110),
        ("half-hour-of-week", 221),
        ("month-of-year", 2),
        ("day-of-year", 60),
    ],
)
def test_a_phase_is_read_off_the_time(kind: str, place: int) -> None:
    phases = Season(kind=kind)
    assert phases.buckets(["2024-03-01 14:45:00", "2023-03-01T14:45"])[0] == place < phases.size
    assert kind != "day-of-year" or phases.buckets(["2023-03-01", "2024-12-31"]).tolist() == [60, 365]


def test_written_phases_are_those_that_are_there_and_times_are_not_quoted() -> None:
    phases = Season.among("as-written", ["early", "late", "early"])
    assert phases.buckets(["late", "never", "early"]).tolist() == [1, -1, 0]
    with pytest.raises(DataError) as refusal:
        Season(kind="hour-of-day").buckets(["early"])
    assert "early" not in str(refusal.value)


def test_without_noise_it_is_what_is_usual_at_each_hour() -> None:
    found = SeasonalBaseline.from_json(learn(hours()))
    rhythm = [50 + 30 * np.sin((hour - 6) / 24 * 2 * np.pi) for hour in range(24)]
    assert np.abs(np.array(found.centre[0]) - rhythm).max() < 1.5
    assert np.abs(np.array(found.spread[0]) - 2).max() < 0.9
    assert SeasonalBaseline.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_smoothing_keeps_what_is_there_and_takes_off_noise() -> None:
    rhythm = 30 * np.sin(np.arange(168) / 24 * 2 * np.pi)
    noisy = rhythm + np.random.default_rng(5).normal(0, 6, 168)
    assert np.abs(smooth(rhythm, np.full(168, 1e-9)) - rhythm).max() < 0.01
    better = smooth(noisy, np.full(168, 36.0)) - rhythm
    assert np.mean(better**2) < 0.6 * np.mean((noisy - rhythm) ** 2)
    unknown = np.where(np.arange(168) == 3, np.inf, 1e-9)
    assert smooth(np.where(np.arange(168) == 3, 1e9, rhythm), unknown)[3] == pytest.approx(rhythm[3], abs=3)


def test_columns_of_few_observations_are_learnt_of_together() -> None:
    assert needs_pool(2, 1249, Fraction(1, 5))
    assert not needs_pool(2, 1250, Fraction(1, 5)), "each has enough by itself"
    assert not needs_pool(1, 10, Fraction(1, 5)), "there is nothing to pool"
    counts = np.array([10, 0])
    away = np.array([[4.0, np.nan], [-4.0, np.nan]])
    sure = shrink_effects(away, np.array([[0.0, np.inf], [0.0, np.inf]]), counts)
    assert sure.tolist() == [[4.0, 4.0], [-4.0, -4.0]], "what is no noise is kept; an unseen phase is like its column"
    assert shrink_effects(away, np.full((2, 2), 16.0), counts).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    phases = np.array([[3.0, -3.0], [3.0, -3.0]])
    assert shrink_effects(phases, np.zeros((2, 2)), np.array([5, 5])).tolist() == phases.tolist()


def test_what_columns_share_is_known_where_none_by_itself_would_tell() -> None:
    """A hundred columns of twenty observations at ε = 1: the noise of the last mean of all is Laplace of a scale of at
    most 100 / (0.1 · 2,000) = 1/2, and of the 100 deviations at most 100 · √2 / (0.3 · 20) / 10 = 2.4 on average."""
    rows = np.full((20, 100), 60.0)
    names = [f"c{place}" for place in range(100)]
    table = load(_frame(dict(zip(names, rows.T, strict=True))), schema=wf.Schema.of(names))
    found = learn(table, season="always", time=None, loss=wf.Loss("1"))
    assert abs(np.mean(found["centre"]) - 60) < 20


@pytest.mark.parametrize("season", ["hour-of-day", "hour-of-week", "always"])
def test_all_phases_cost_what_one_costs_and_an_entry_more_costs_as_much_again(season: str) -> None:
    query = baseline(season=season, time=None if season == "always" else "time", loss=wf.Loss("1/2"))
    claim = query.claim(query.view(hours(columns=3)))
    units = {
        "entry": Fraction(1, 2),
        "record": Fraction(3, 2),
        "window": Fraction(5, 2),
        "person": Fraction(8 * 168, 2),
    }
    for unit, cost in units.items():
        window = {"window": 5} if unit == "window" else {}
        assert price(claim, Protection(rows="time", unit=unit, **window)).epsilon == cost  # type: ignore[arg-type]
    assert price(claim, Protection(rows="time", unit="entry")).rho == Fraction(7, 200)
    assumed = baseline(change=1.0, loss=wf.Loss("1/2"))
    assert assumed.claim(assumed.view(hours())).moves == 100


def test_the_plan_says_when_phases_are_too_many() -> None:
    many = baseline(season="hour-of-week", variance=4.0, loss=wf.Loss("1")).plan(n=8 * 168, dimension=1)
    few = baseline(season="day-of-week", variance=300.0, loss=wf.Loss("10")).plan(n=8 * 168, dimension=1)
    assert not many.useful
    assert "buckets here" in many.verdict
    assert few.useful
    assert few.options[0].figures["most"] >= 7
    assert many.options[0].figures["most"] < 168


def test_noise_is_as_far_off_as_the_plan_says() -> None:
    """Of 3,200 centres 95 % are within what was planned; fewer than 2,900, or 2,900 within half of it, has a chance
    below 1e-9."""
    query = baseline(season="as-written", variance=100.0, change=4.0, loss=wf.Loss("2"))
    n, phases = 8000, 80
    values = np.random.default_rng(3).normal(50, 10, n)
    places = np.arange(n) % phases
    schema = wf.Schema(name="made-up", columns=(Column("time", time=True), Column("x")))
    table = load(_frame({"time": [f"{place:02}" for place in places], "x": values}), schema=schema)
    means = [float(np.clip(values[places == place], 20, 80).mean()) for place in range(phases)]
    off = query._learner()._centre_error(n / phases, width=10.0) * 10.0  # type: ignore[union-attr]
    view = query.view(table)
    errors = np.concatenate(
        [np.abs(np.array(query.answer(view, system_noise())["centre"][0]) - means) for _ in range(40)]
    )
    assert (errors <= off).sum() >= 2900 > (errors <= off / 2).sum()


def test_a_watch_judges_by_the_phase() -> None:
    """50 is usual over the day and never at midnight."""
    table = hours()
    watch = wf.Watch(threshold=5.0, baseline=learn(table), loss=wf.Loss("64"))
    assert watch.answer(watch.view(table), system_noise())["flagged"] == [NIGHT + 1]
    flat = wf.Watch(threshold=35.0, centre=50.0, low=0.0, high=100.0, columns=("c0",), loss=wf.Loss("64"))
    assert NIGHT + 1 not in flat.answer(flat.view(table), system_noise())["flagged"]


@pytest.mark.parametrize("statistic", ["sum", "max", "mahalanobis"])
def test_a_watch_by_phase_is_a_question_like_others(statistic: str) -> None:
    table = hours(columns=2)
    season = learn(table)
    watch = wf.Watch(threshold=5.0, statistic=statistic, baseline=season, change=0.5, loss=wf.Loss("1"))
    assert wf.Watch.from_json(json.loads(json.dumps(watch.to_json()))) == watch
    assert watch.seasonal_baseline == SeasonalBaseline.of({"value": season})
    made = watch.statistic_on(2)
    least = min(map(min, season["spread"]))
    if statistic != "mahalanobis":
        assert made.sensitivity * made.step == pytest.approx(min(0.5 / least, 12), rel=0.3)
    assert watch.plan(n=100, dimension=2).verdict
    body = body_model(wf.Watch)(threshold=5.0, baseline=season, epsilon="1", change=0.5, statistic=statistic)
    assert query_of_body(wf.Watch, body) == watch


def test_what_was_learnt_elsewhere_is_refused() -> None:
    season = learn(hours())
    watch = wf.Watch(threshold=5.0, baseline=season, loss=wf.Loss("1"))
    with pytest.raises(DataError, match="estimated from c0 in rides"):
        watch.view(hours(name="others"))
    with pytest.raises(ParameterError, match="no season"):
        wf.Watch(threshold=5.0, baseline={"centre": 1.0, "variance": 2.0}, loss=wf.Loss("1"))
    with pytest.raises(ParameterError, match="malformed"):
        wf.Watch(threshold=5.0, baseline={**season, "spread": [[0.0] * 24]}, loss=wf.Loss("1"))
    with pytest.raises(ParameterError, match="millionth"):
        wf.Watch(threshold=5.0, baseline=season, change=1e-9, loss=wf.Loss("1")).statistic_on(1)
    two = wf.Watch(threshold=5.0, baseline=learn(hours(columns=2)), columns=("c1", "c0"), loss=wf.Loss("1"))
    with pytest.raises(DataError, match="in their order"):
        two.view(hours(columns=2))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"time": None}, "column of times"),
        ({"season": None}, "only used with a season"),
        ({"season": "hour-of-moon"}, "is not known"),
        ({"level": "person"}, "not available with a season"),
        ({"clip_distance": 3.0}, "not used with a season"),
        ({"change": -1.0}, "not a positive number"),
        ({"season": "always"}, "needs no times"),
    ],
)
def test_settings_that_do_not_fit_are_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        baseline(**more)


def test_private_times_and_missing_bounds_are_refused() -> None:
    hidden = wf.Schema(name="rides", columns=(Column("time", identifier=True), Column("c0")))
    table = load(_frame({"time": ["2024-01-01", "2024-01-02"], "c0": [1.0, 2.0]}), schema=hidden)
    with pytest.raises(DataError, match="private"):
        baseline().view(table)
    with pytest.raises(ParameterError, match="low, high"):
        baseline(low=None, high=None).view(hours())


def test_a_release_serves_the_watch_and_both_are_paid_for(tmp_path: Path) -> None:
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.declare("rides", Protection(rows="time", unit="entry"), by="owner", reason="single counts")
        book.grant("rides", wf.Loss("100"), by="owner")
        data = wf.open(hours(), ledger=book)
        learnt = data.baseline(low=0.0, high=100.0, season="hour-of-day", time="time", variance=4.0, epsilon="36")
        told = data.watch(threshold=5.0, baseline=learnt, epsilon="64")
        assert told.value == {"flagged": [NIGHT + 1], "decided": 8 * 168, "buckets": [1]}
        assert data.budget().spent.epsilon == 100
        assert learnt.plot().axes
        assert told.plot().axes
        assert "by hour-of-day of rides" in told.terms
        assert wf.Release.from_dict(json.loads(told.to_json())).value == told.value


def test_decisions_one_by_one_are_those_of_the_table(tmp_path: Path) -> None:
    table = hours()
    watch = wf.Watch(threshold=5.0, baseline=learn(table), loss=wf.Loss("64"))
    values, times = np.array(table.points().values[:, 0]), table.times("time")
    with wf.Ledger.open(tmp_path / "ledger.db") as book:
        book.declare("rides", Protection(rows="time", unit="entry"), by="owner", reason="single counts")
        book.grant("rides", wf.Loss("1000"), by="owner")
        with wf.watching(watch, dataset="rides", ledger=book) as live:
            first = live.decide_many(values[: NIGHT - 1], times=times[: NIGHT - 1])
            assert not first.flags.any()
            assert live.decide(values[NIGHT - 1], time=times[NIGHT - 1]) is False
            assert live.decide({"time": times[NIGHT], "c0": 50.0}) is True
            frame = _frame({"c0": values[NIGHT + 1 :], "time": times[NIGHT + 1 :]})
            assert not live.decide_many(frame).flags.any()
            with pytest.raises(DataError, match="read off its time"):
                live.decide(50.0)
        with pytest.raises(DataError, match="estimated from"), wf.watching(watch, dataset="others", ledger=book):
            pass


def drifting(weeks: int = 12) -> Table:
    """As before, and every week busier by three spreads; one night stands out."""
    table = hours(weeks)
    values = np.array(table.points().values[:, 0]) * 0.5 + np.arange(weeks * 168) // 168 * 3.0
    schema = wf.Schema(name="rides", columns=(Column("time", time=True), Column("c0", low=0, high=100)))
    return load(_frame({"time": table.times("time"), "c0": np.clip(values, 0, 100)}), schema=schema)


def relearning(table: Table, **more: Any) -> wf.Watch:
    first = baseline(low=None, high=None)
    season = first._learner().learn(first.view(table), system_noise(), slice(0, 168)).to_json()  # type: ignore[union-attr]
    given = {"threshold": 8.0, "baseline": season, "relearn": 168, "loss": wf.Loss("5000"), "low": -20.0, "high": 20.0}
    return wf.Watch(**given | more)


def test_a_season_that_drifts_is_learnt_anew() -> None:
    table = drifting()
    kept, renewed = relearning(table, relearn=None, loss=wf.Loss("64")), relearning(table)
    assert len(kept.answer(kept.view(table), system_noise())["flagged"]) > 500
    told = renewed.answer(renewed.view(table), system_noise())
    assert NIGHT + 1 in told["flagged"]
    assert len(told["flagged"]) < 30
    assert SeasonalBaseline.of(told["baseline"]).dataset == "rides"


def test_learning_anew_costs_its_part_once_and_the_plan_says_so() -> None:
    table = drifting()
    watch = relearning(table, loss=wf.Loss("1"), relearn_share="0.3", change=2.0)
    assert wf.Watch.from_json(json.loads(json.dumps(watch.to_json()))) == watch
    assert (watch.cost().epsilon, watch.detector(watch.statistic_on(1)).epsilon, watch.relearning.epsilon) == (
        1,
        Fraction(7, 10),
        Fraction(3, 10),
    )  # type: ignore[union-attr]
    claim = watch.claim(watch.view(table))
    assert (claim.moves, claim.separable) == (50, False)
    assert price(claim, Protection(rows="time", unit="window", window=3)).epsilon == 150
    plan = watch.plan(n=table.n, dimension=1)
    assert (
        "ε = 0.3 of the loss re-estimates the baseline 11 times, from about 7.0 observations per bucket" in plan.verdict
    )
    assert not relearning(table, relearn=24).plan(n=table.n, dimension=1).useful


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"baseline": None, "columns": ("c0",)}, "none is given"),
        ({"level": "person"}, "needs level entry"),
        ({"scores": True}, "needs level entry"),
        ({"relearn_share": "1"}, "above 0 and below 1"),
        ({"relearn": 0}, "whole number"),
    ],
)
def test_what_does_not_go_with_learning_anew_is_refused(more: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        relearning(drifting(), **more)


def test_a_live_watch_keeps_its_baseline(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="keeps its baseline"):
        wf.watching(relearning(drifting()), dataset="rides", ledger=tmp_path / "ledger.db")
    with pytest.raises(ParameterError, match="low, high"):
        relearning(drifting()).view(hours(12))
