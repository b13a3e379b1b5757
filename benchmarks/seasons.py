"""Watches with a seasonal baseline on real streams, beside the same rule without privacy, at equal alarms.

`python seasons.py NAB` prints one JSON object; `python seasons.py available` the groups whose files are there. Every
private figure is the mean of `--runs` runs, each with a baseline and a watch of its own, which together cost ε = 1.
The same rule without privacy is the same code at a loss so large that its noise is nothing. Thresholds are set so that
either flags `ALARMS` of what is judged: that looks at the data, and serves the comparison alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import wallflower as wf
from wallflower.data import Column, Table, load
from wallflower.errors import SourceError
from wallflower.noise import system_noise
from wallflower.papers.data.streams import DAYS, NAB, PROBATION, RIDE, ROWS, SENSORS, TAXI, round_constant
from wallflower.papers.data.tables import find_file
from wallflower.papers.degue2020.detection import chance
from wallflower.queries.watch.seasons import LIMIT_SPREADS

ALARMS = 0.05
LEARN, WATCH = "0.2", "0.8"  # of ε = 1
NOTHING = "1000000"  # a loss at which noise is nothing
WEEKS = 6  # of a stream that a bucket for each hour of the week needs


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A stream as it is watched: its table, what is right, and from where on it is judged."""

    name: str
    table: Table
    labels: np.ndarray | None
    first: int
    season: str
    low: float
    high: float
    change: float | None
    protects: str
    statistic: str = "sum"
    limit: float = LIMIT_SPREADS

    @property
    def time(self) -> str | None:
        return None if self.season == "always" else "time"


def nab() -> Iterator[Case]:
    """Fourteen streams of one number each; a change of it is protected, one ride or a tenth of its spread."""
    windows = json.loads(find_file("nab/combined_windows.json").read_text(encoding="utf-8"))
    for name, (low, high) in NAB.items():
        frame = pd.read_csv(find_file(f"nab/{name}"))
        times = pd.to_datetime(frame["timestamp"])
        labels = np.any([times.between(*window) for window in windows[name]] or [times != times], axis=0)
        first = int(PROBATION * len(frame))
        is_long = times.iloc[-1] - times.iloc[0] >= pd.Timedelta(weeks=WEEKS)
        change = RIDE if name == TAXI else round_constant(float(frame["value"][:first].std()) / 10)
        yield Case(
            name=name.split("/")[1].removesuffix(".csv"),
            table=timed(frame["timestamp"], frame[["value"]]),
            labels=labels,
            first=first,
            season="hour-of-week" if is_long else "hour-of-day",
            low=low,
            high=high,
            change=change,
            protects="one ride" if name == TAXI else "a tenth of its spread",
        )


def days() -> Iterator[Case]:
    """Taxi rides again, a day an observation of 48 entries: any half-hour is protected, whatever it was."""
    windows = json.loads(find_file("nab/combined_windows.json").read_text(encoding="utf-8"))[TAXI]
    frame = pd.read_csv(find_file(f"nab/{TAXI}"))
    times = pd.to_datetime(frame["timestamp"])
    inside = pd.Series(np.any([times.between(*window) for window in windows], axis=0))
    wide = frame.assign(day=times.dt.date, slot=times.dt.strftime("%H:%M")).pivot_table("value", "day", "slot")
    labels = inside.groupby(times.dt.date.to_numpy()).mean().to_numpy() > 0.5
    yield Case(
        name="nyc_taxi, by day",
        table=timed(pd.Series(wide.index.astype(str)), wide.reset_index(drop=True)),
        labels=labels,
        first=int(PROBATION * len(wide)),
        season="always",
        low=0.0,
        high=40_000.0,
        change=None,
        protects="any half-hour",
        limit=2.0,
    )


def skab() -> Iterator[Case]:
    """Eight sensors of a pump: no season, so one bucket; each column scaled by its first rows, as the papers' table."""
    frame = pd.read_csv(find_file("skab/skab.csv.gz"))
    sensors = list(frame.columns[3 : 3 + SENSORS])
    for (group, file), part in frame.groupby(["group", "file"], sort=True):
        if group == "anomaly-free":
            continue
        values, past = part[sensors], part[sensors][:ROWS]
        scaled = (values - past.mean().map(round_constant)) / past.std(ddof=0).map(round_constant)
        yield Case(
            name=f"{group}/{file}",
            table=timed(part["datetime"], scaled.reset_index(drop=True)),
            labels=part["anomaly"].to_numpy() > 0,
            first=ROWS,
            season="always",
            low=-10.0,
            high=10.0,
            change=0.5,
            protects="half a spread",
            statistic="max",
            limit=60.0,  # the pump leaves its usual by far
        )


def flights() -> Iterator[Case]:
    """Mean delays of fifty airports by day; nobody labelled them, so right is what the rule without privacy flags."""
    frame = pd.read_csv(find_file("flight_delays/daily_arr_delay_wide_origin_top50.csv"))
    names = [name for name in frame.columns if name != "date"]
    for season in ("always", "day-of-week"):
        yield Case(
            name="50 airports, by day",
            table=timed(frame["date"], frame[names]),
            labels=None,
            first=DAYS,
            season=season,
            limit=2.0,
            low=-30.0,
            high=120.0,
            change=None,
            protects="any airport's day",
        )


GROUPS: dict[str, Callable[[], Iterator[Case]]] = {"NAB": nab, "days": days, "SKAB": skab, "flights": flights}


def timed(times: pd.Series, values: pd.DataFrame) -> Table:
    """A table with a public column of times."""
    frame = values.reset_index(drop=True).assign(time=times.astype(str).to_numpy())
    columns = tuple(Column(str(name), time=name == "time") for name in frame.columns)
    return load(frame.rename(columns=str), schema=wf.Schema(name="stream", columns=columns))


def learn(case: Case, epsilon: str) -> dict[str, Any]:
    """What is usual in each bucket, learnt from the whole stream."""
    query = wf.Baseline(
        low=case.low, high=case.high, season=case.season, time=case.time, change=case.change, loss=wf.Loss(epsilon)
    )
    return query.answer(query.view(case.table), system_noise())


def distances(case: Case, season: dict[str, Any] | None) -> tuple[np.ndarray, float]:
    """How far each judged observation is from what is usual, and how far one change moves it."""
    if season is None:
        season = learn(Case(**{name: getattr(case, name) for name in Case.__slots__} | {"season": "always"}), NOTHING)
    query = watch(case, season, 1.0, WATCH)
    points = query.view(case.table)
    made = query.statistic_on(points.dimension)
    return np.abs(query.measure(points, made))[case.first :] * made.step, made.sensitivity * made.step


def watch(case: Case, season: dict[str, Any], threshold: float, epsilon: str) -> wf.Watch:
    own = {
        "statistic": case.statistic,
        "change": case.change,
        "baseline": season,
        "low": -case.limit,
        "high": case.limit,
    }
    return wf.Watch(threshold=threshold, loss=wf.Loss(epsilon), **own)


def exact_flags(far: np.ndarray) -> np.ndarray:
    """The farthest `ALARMS` of them."""
    raised = np.zeros(len(far), dtype=bool)
    raised[np.argsort(-far, kind="stable")[: round(ALARMS * len(far))]] = True
    return raised


def level(far: np.ndarray, move: float, epsilon: float) -> float:
    """The threshold from which on the staircase flags `ALARMS` of them on average."""
    low, high = 0.0, float(far.max()) + 20 * move
    for _ in range(50):
        middle = (low + high) / 2
        alarms = float(chance(np.floor((far - middle) / move) + 1, epsilon).mean())
        low, high = (middle, high) if alarms > ALARMS else (low, middle)
    return high


def at_best(case: Case, truth: np.ndarray) -> float:
    """What the best ε-DP bit finds on average if the baseline is known for nothing and all of ε = 1 decides: (S)."""
    far, move = distances(case, learn(case, NOTHING))
    return float(chance(np.floor((far - level(far, move, 1.0)) / move) + 1, 1.0)[truth].sum())


def private_flags(case: Case) -> tuple[np.ndarray, float]:
    """One run: a baseline, then a watch by it, its threshold set to flag as many on average."""
    season = learn(case, LEARN)
    far, move = distances(case, season)
    high = level(far, move, float(WATCH))
    query = watch(case, season, min(high, 0.999 * float(query_reach(case, season))), WATCH)
    found = query.answer(query.view(case.table), system_noise())["flagged"]
    raised = np.zeros(case.table.n, dtype=bool)
    raised[np.array(found, dtype=int) - 1] = True
    return raised[case.first :], move


def query_reach(case: Case, season: dict[str, Any]) -> float:
    made = watch(case, season, 1.0, WATCH).statistic_on(len(season["columns"]))
    return made.max_distance * made.step


def judged(case: Case, runs: int) -> dict[str, Any]:
    """What is found: without a season and without privacy, by the rule without privacy, and by the private one."""
    plain = exact_flags(distances(case, learn(case, NOTHING))[0])
    truth = plain if case.labels is None else case.labels[case.first :]
    found = [private_flags(case) for _ in range(runs)]
    flat = exact_flags(distances(case, None)[0])
    return {
        "name": case.name,
        "protects": case.protects,
        "season": case.season,
        "observations": len(truth),
        "labelled": int(truth.sum()),
        "move": found[0][1],
        "flat": int(flat[truth].sum()),
        "plain": int(plain[truth].sum()),
        "plain_alarms": int(plain.sum()),
        "best": at_best(case, truth),
        "private": float(np.mean([raised[truth].sum() for raised, _ in found])),
        "private_alarms": float(np.mean([raised.sum() for raised, _ in found])),
    }


def available() -> list[str]:
    """The groups whose files are there; says which are not."""
    here = []
    for name, cases in GROUPS.items():
        try:
            next(cases())
            here.append(name)
        except SourceError as reason:
            print(f"skipped: {reason}", file=sys.stderr)
    return here


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("group", choices=[*GROUPS, "available"])
    parser.add_argument("--runs", type=int, default=20, help="private runs of each stream")
    parser.add_argument("--most", type=int, help="so many streams at most")
    ask = parser.parse_args()
    if ask.group == "available":
        json.dump(available(), sys.stdout)
        return
    rows = []
    for place, case in enumerate(GROUPS[ask.group]()):
        if ask.most is None or place < ask.most:
            rows.append(judged(case, ask.runs))
            print(rows[-1], file=sys.stderr)
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
