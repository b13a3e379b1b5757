"""Decisions on a stream of observations by one contestant, in a process of its own.

`python watch.py event_batch 30` prints one JSON object; `python watch.py available` the contestants that are installed,
each with the columns it is measured on. What is run is run once to warm up, then at least `LEAST` times and for as
long as `--seconds` allows; time is the median.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import wallflower as wf
from wallflower.machine.lazy import Lazy
from wallflower.streams import watching
from wallflower.synthetic import Floats, mixture

_anomaly = Lazy("river.anomaly")
_ecod = Lazy("pyod.models.ecod")

LEAST = 5  # runs that the median is of
BATCH = {1: 1_000_000, 30: 100_000}
ONE_BY_ONE = 1_000
DURABLE = 100
HISTORY = 10_000
LIMIT = 10.0  # public bounds of an entry, on both sides
BOUNDS = {"low": -LIMIT, "high": LIMIT}
QUANTILE = 0.99

Decisions = Callable[[], Sequence[Any]]


def stream(n: int, columns: int) -> Floats:
    """99 % of N(0, I), 1 % of N(0, 100 I), in random order."""
    return np.random.default_rng(1).permutation(mixture(n, columns, seed=0, spread=10.0))


class Place:
    """Where watches live that are open: a ledger and a folder for their state, gone when the measurement is over."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="watch-")))

    def watching(self, columns: int, *, state: bool = False, **parameters: Any) -> Any:
        query = wf.Watch(**{"threshold": 4 * math.sqrt(columns), "loss": wf.Loss("1")} | BOUNDS | parameters)
        names = [f"x{place}" for place in range(columns)]
        kept = self.folder / "state.db" if state else None
        with wf.Ledger.open(self.folder / "ledger.db") as ledger:
            ledger.declare("stream", wf.Protection(rows="time", unit="entry"), by="owner")
            ledger.grant("stream", wf.Loss("100000"), by="owner")
        opened = watching(query, columns=names, dataset="stream", ledger=self.folder / "ledger.db", checkpoint=kept)
        return self.stack.enter_context(opened)


def event_batch(rows: Floats, place: Place) -> Decisions:
    """The staircase, all rows in one call."""
    live = place.watching(rows.shape[1])
    return lambda: live.decide_many(rows).flags


def event_single(rows: Floats, place: Place) -> Decisions:
    """The staircase, a call for each observation: a number, or a list of them."""
    return one_by_one(place.watching(rows.shape[1]).decide, plain(rows[:ONE_BY_ONE]))


def event_durable(rows: Floats, place: Place) -> Decisions:
    """The same, each decision on the disk before it is told."""
    return one_by_one(place.watching(rows.shape[1], checkpoint=True).decide, plain(rows[:DURABLE]))


def person_batch(rows: Floats, place: Place) -> Decisions:
    """The sparse vector, its threshold so far away that the ten flags are never used up."""
    far = 1e3 * rows.shape[1]
    wide = {"threshold": far, "low": -far, "high": far, "loss": wf.Loss("100000")}
    live = place.watching(rows.shape[1], **wide, level="person", cutoff=10)
    return lambda: live.decide_many(rows).flags


def window_batch(rows: Floats, place: Place) -> Decisions:
    """The staircase, for a person in any 24 consecutive observations."""
    live = place.watching(rows.shape[1], level="window", window=24)
    return lambda: live.decide_many(rows).flags


def fleet_batch(rows: Floats, place: Place) -> Decisions:
    """A fleet of a thousand streams, one observation of each in a batch, kept before it is told."""
    query = wf.Watch(threshold=4 * math.sqrt(rows.shape[1]), loss=wf.Loss("1"), **BOUNDS)
    names = [f"x{column}" for column in range(rows.shape[1])]
    with wf.Ledger.open(place.folder / "ledger.db") as ledger:
        ledger.declare("fleet", wf.Protection(rows="time", unit="entry"), by="owner")
    made = wf.fleet(
        query, columns=names, dataset="fleet", ledger=place.folder / "ledger.db", store=place.folder / "fleet.db"
    )
    live = place.stack.enter_context(made)
    streams, clock = [f"m{stream}" for stream in range(ONE_BY_ONE)], count()
    return lambda: live.decide_many(streams, [next(clock)] * ONE_BY_ONE, rows[:ONE_BY_ONE]).flags


def river_gaussian(rows: Floats, place: Place) -> Decisions:
    """GaussianScorer: scored, then learnt from."""
    scorer = _anomaly.GaussianScorer()

    def decide(entry: float) -> bool:
        score = scorer.score_one(None, entry)
        scorer.learn_one(None, entry)
        return score >= QUANTILE

    return one_by_one(decide, plain(rows[:ONE_BY_ONE]))


def river_frozen(rows: Floats, place: Place) -> Decisions:
    """GaussianScorer, which has learnt from a history and is only asked: all that a watch does, too."""
    scorer = _anomaly.GaussianScorer()
    for entry in plain(rows[:HISTORY]):
        scorer.learn_one(None, entry)
    return one_by_one(lambda entry: scorer.score_one(None, entry) >= QUANTILE, plain(rows[:ONE_BY_ONE]))


def river_quantile(rows: Floats, place: Place) -> Decisions:
    """QuantileFilter around a GaussianScorer, or for several columns around HalfSpaceTrees, scaled beforehand."""
    some = rows[:ONE_BY_ONE]
    if rows.shape[1] == 1:
        watch = _anomaly.QuantileFilter(_anomaly.GaussianScorer(), q=QUANTILE)
        asked = [(None, entry) for entry in plain(some)]
    else:
        watch = _anomaly.QuantileFilter(_anomaly.HalfSpaceTrees(seed=1), q=QUANTILE)
        scaled = np.clip(some / (2 * LIMIT) + 0.5, 0, 1)
        asked = [(dict(enumerate(row)),) for row in plain(scaled)]

    def decide(observation: tuple[Any, ...]) -> bool:
        flag = watch.classify(watch.score_one(*observation))
        watch.learn_one(*observation)
        return flag

    return one_by_one(decide, asked)


def pyod_ecod(rows: Floats, place: Place) -> Decisions:
    """ECOD, fitted on a history, all rows in one call."""
    fitted = _ecod.ECOD(contamination=1 - QUANTILE).fit(stream(HISTORY, rows.shape[1]))
    return lambda: fitted.predict(rows)


def disk(place: Place) -> Decisions:
    """What a durable decision cannot be faster than: 64 bytes appended and synced, in the same folder."""
    file = place.stack.enter_context((place.folder / "bare").open("ab", buffering=0))

    def synced(_: object) -> bool:
        file.write(b"." * 64)
        os.fsync(file.fileno())
        return False

    return one_by_one(synced, [None] * DURABLE)


def one_by_one(decide: Callable[[Any], bool], observations: list[Any]) -> Decisions:
    return lambda: [decide(observation) for observation in observations]


def plain(rows: Floats) -> list[Any]:
    """As Python's own numbers, which is how they come one by one."""
    return (rows[:, 0] if rows.shape[1] == 1 else rows).tolist()


OURS = (event_batch, event_single, event_durable, fleet_batch, person_batch, window_batch)
CONTESTANTS = {work.__name__: work for work in (*OURS, river_gaussian, river_frozen, river_quantile, pyod_ecod)}
BATCHED = ("event_batch", "person_batch", "window_batch", "pyod_ecod")
UNIVARIATE = ("river_gaussian", "river_frozen")


def available() -> list[tuple[str, int]]:
    """Who can be measured here, on how many columns; says which peers cannot."""
    here = {package: find_spec(package) is not None for package in ("river", "pyod")}
    for package, found in here.items():
        if not found:
            print(f"skipped: {package} is not installed; pip install 'wallflower[bench]' brings it", file=sys.stderr)
    return [
        (name, columns)
        for name in CONTESTANTS
        for columns in BATCH
        if here.get(name.split("_")[0], True) and (columns == 1 or name not in UNIVARIATE)
    ]


def repeated(works: dict[str, Decisions], seconds: float) -> dict[str, dict[str, Any]]:
    """Of each work, turn by turn: seconds and processor seconds of an observation, the median of its runs."""
    sizes = {name: len(work()) for name, work in works.items()}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in works}
    start = time.perf_counter()
    while min(map(len, runs.values())) < LEAST or time.perf_counter() - start < seconds:
        for name, work in works.items():
            runs[name].append(timed(work, sizes[name]))
    return {name: summary(found) | {"size": sizes[name]} for name, found in runs.items()}


def timed(work: Decisions, size: int) -> dict[str, Any]:
    wall, cpu = time.perf_counter(), time.process_time()
    flags = work()
    found = {"seconds": (time.perf_counter() - wall) / size, "cpu": (time.process_time() - cpu) / size}
    if len(flags) != size:
        raise SystemExit(f"only {len(flags):,} of {size:,} observations were decided")
    return found | {"flagged": float(np.mean(flags))}


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    walls = [run["seconds"] for run in runs]
    middle = {of: median(run[of] for run in runs) for of in ("seconds", "cpu", "flagged")}
    return middle | {"range": [min(walls), max(walls)], "runs": len(runs)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contestant", choices=[*CONTESTANTS, "available"])
    parser.add_argument("columns", type=int, nargs="?", choices=BATCH, default=1)
    parser.add_argument("--seconds", type=float, default=1.0, help="repeat for so long")
    parser.add_argument("--batch", type=int, help="observations decided in one call")
    ask = parser.parse_args()
    if ask.contestant == "available":
        json.dump(available(), sys.stdout)
        return
    rows = stream(ask.batch or BATCH[ask.columns], ask.columns)
    with ExitStack() as stack:
        place = Place(stack)
        works = {ask.contestant: CONTESTANTS[ask.contestant](rows, place)}
        if ask.contestant == "event_durable":  # in turns, since how fast a disk is depends on who else uses it
            works["disk"] = disk(place)
        before = peak()
        result = repeated(works, ask.seconds)
    facts = {
        "contestant": ask.contestant,
        "columns": ask.columns,
        "together": len(rows) if ask.contestant in BATCHED else 1,
        "before_bytes": before,
        "peak_bytes": peak(),
        "load": round(os.getloadavg()[0], 1),
    }
    json.dump(facts | result.pop(ask.contestant) | result, sys.stdout)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
