"""The parts of a sensor stream, each measured in a process of its own.

`python sensors.py wire_grid` prints one JSON object; `python sensors.py available` what can be measured here. What is
run is run once to warm up, then at least `LEAST` times and for as long as `--seconds` allows; time is the median.

`wire_*` sends signed batches that are finished to an analyst and a correction server at once, both processes of their
own that check and store them durably. `device_*` starts earlier: with readings, which go through the outbox.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import DBSCAN

from wallflower.noise import system_noise
from wallflower.sensors import comparison, perturbation
from wallflower.sensors.correction import correct
from wallflower.sensors.detectors import dbscan
from wallflower.sensors.device import clip_readings, perturb_points, prepare_batch
from wallflower.sensors.parameters import Direct, Exact, Grid, Parameters
from wallflower.sensors.parties.client import Link
from wallflower.sensors.parties.demo import Plan, demo_parameters
from wallflower.sensors.parties.device import Device
from wallflower.sensors.parties.keys import Identity, make_keys, sign_parameters
from wallflower.sensors.protocol.frames import BatchId
from wallflower.synthetic import Floats, mixture

LEAST = 3
READINGS = 100_000
BATCH = 10_000
BITS = 16
RADIUS, NEIGHBOURS = 0.5, 15  # of DBSCAN, in scaled units
SEPARATION = 220.0
CALL = "import sys; from wallflower.cli import main; sys.exit(main())"

Work = Callable[[], Any]


class Setting:
    """What a measurement needs and leaves behind: a folder, keys, a parameter set, and servers that run."""

    def __init__(self, stack: ExitStack, readings: int) -> None:
        self.stack, self.readings = stack, readings
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sensors-")))
        self.keys = self.folder / "keys"
        make_keys(self.keys, sensors=1)
        self.window = 0

    def parameters(self, settings: Any, epsilon: str = "1/5") -> Parameters:
        plan = Plan(mode="exact", readings=1, sensors=1, windows=1, tls=False)
        stated = demo_parameters(self.keys, plan)
        return replace(
            stated, settings=settings, epsilon=Fraction(epsilon), sensors=0, length=Fraction(10**6), grace=Fraction(0)
        )

    def rows(self) -> Floats:
        """[Boe17, Figure 3]: N(0, 3²) in two columns, one reading in ten pushed outwards."""
        rows = 3.0 * mixture(self.readings, 2, seed=0, share=0.0)
        lengths = np.linalg.norm(rows[::10], axis=1, keepdims=True)
        rows[::10] *= 1 + SEPARATION / lengths
        return rows

    def started(self, stated: Parameters, *, tls: bool) -> dict[str, str]:
        """Where an analyst and a correction server listen, started for this set; nobody is the owner."""
        made = sign_parameters(stated, Identity.read(self.keys / "owner"))
        (self.folder / "stream.json").write_bytes(made.body)
        urls = {"owner": "http://127.0.0.1:9", "correction": "http://127.0.0.1:9"}
        return {role: self._started(role, tls, urls) for role in ("correction", "analyst")}

    def _started(self, role: str, tls: bool, urls: dict[str, str]) -> str:
        command = [sys.executable, "-c", CALL, "sensors", role, "--port", "0", "--tls" if tls else "--no-tls"]
        command += ["--keys", str(self.keys / role), "--parameters", str(self.folder / "stream.json")]
        command += ["--store", str(self.folder / f"{role}.db"), "--owner", urls["owner"]]
        command += ["--correction", urls["correction"]] if role == "analyst" else []
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.stack.callback(ended, process)
        assert process.stdout is not None
        found = re.search(r"listens at (\S+)", process.stdout.readline())
        assert found is not None
        return found[1]


def ended(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)


EXACT = Exact(bits=BITS, unit=Fraction(1, 100), thresholds=(Fraction(20),))
BARE = replace(EXACT, tags=False)
GRID = Grid(bound=Fraction(10), step=Fraction(20))


def perturb_planar(place: Setting) -> Work:
    """Clipped readings, noise alike in all directions."""
    stated = place.parameters(GRID)
    points = clipped_all(stated, place.rows())
    return lambda: perturb_points(stated, points, system_noise())


def perturb_columns(place: Setting) -> Work:
    """The same, a Laplace draw for each column."""
    stated = replace(place.parameters(GRID), noise="columns")
    points = clipped_all(stated, place.rows())
    return lambda: perturb_points(stated, points, system_noise())


def deal(place: Setting) -> Work:
    """Keys of mode exact for both servers, as `prepared` deals them, without tags."""
    values = scores(place)
    return lambda: comparison.deal(values, BITS)


def deal_tagged(place: Setting) -> Work:
    """The same with tags."""
    values, marks = scores(place), np.arange(1, place.readings + 1)
    return lambda: comparison.deal(values, BITS, tags=marks)


def evaluate(place: Setting) -> Work:
    """One threshold at one server."""
    ours, _ = comparison.deal(scores(place), BITS)
    return lambda: comparison.evaluate(0, ours, 2000)


def correction(place: Setting) -> Work:
    """All steps of mode paper after DBSCAN."""
    stated = place.parameters(GRID)
    points = clipped_all(stated, place.rows())
    noisy = perturb_points(stated, points, system_noise())
    far, moved = perturbation.distances(noisy, [0, 0]), perturbation.d_diff(points, noisy, [0, 0])
    presumed = np.flatnonzero(far > np.quantile(far, 0.9))
    return lambda: correct(far, moved, presumed, 5000.0)


def dbscan_ours(place: Setting) -> Work:
    """DBSCAN of a perturbed window."""
    points = scattered(place)
    return lambda: dbscan(points, RADIUS, NEIGHBOURS)


def dbscan_sklearn(place: Setting) -> Work:
    """The same by scikit-learn."""
    points = scattered(place)
    return lambda: DBSCAN(eps=RADIUS, min_samples=NEIGHBOURS, n_jobs=1).fit_predict(points)


def wire_grid(place: Setting) -> Work:
    return wire(place, GRID, tls=False)


def wire_grid_tls(place: Setting) -> Work:
    return wire(place, GRID, tls=True)


def wire_exact(place: Setting) -> Work:
    return wire(place, BARE, tls=False)


def wire_exact_tls(place: Setting) -> Work:
    return wire(place, BARE, tls=True)


def device_grid(place: Setting) -> Work:
    return device(place, GRID)


def device_exact(place: Setting) -> Work:
    return device(place, BARE)


def wire(place: Setting, settings: Any, *, tls: bool) -> Work:
    """Finished batches to both servers at once; every run is a window of its own, all of it new to them."""
    stated = place.parameters(settings)
    urls = place.started(stated, tls=tls)
    identity = Identity.read(place.keys / "sensor-1")
    links = {role: Link(url, to=role, identity=identity) for role, url in urls.items()}
    for link in links.values():
        place.stack.enter_context(closing(link))
    pool = place.stack.enter_context(ThreadPoolExecutor(len(links)))
    rows = place.rows()
    counter = iter(range(10**6))

    def send(role: str, window: int, bodies: list[tuple[bytes, bytes]]) -> None:
        for seq, (body, proof) in enumerate(bodies):
            status, _ = links[role].call(
                "PUT", f"/v1/{stated.stream}/w/0/s/1/b/{window * 10**4 + seq}", body, signed=proof
            )
            if status != 201:
                raise SystemExit(f"{role} answers {status}")

    def ready() -> Work:
        window = next(counter)
        finished: dict[str, list[tuple[bytes, bytes]]] = {role: [] for role in links}
        for seq, start in enumerate(range(0, len(rows), BATCH)):
            at = BatchId(sensor=1, window=0, seq=window * 10**4 + seq)
            batch = prepare_batch(stated, rows[start : start + BATCH], at, bytes(16), system_noise())
            for role, body in batch.frames.items():
                finished[role].append((body, identity.key.sign(body)))
        return lambda: list(pool.map(lambda role: send(role, window, finished[role]), links))

    return Fresh(ready)


def device(place: Setting, settings: Any) -> Work:
    """Readings through the outbox to both servers: perturbed, paid for, durable on both sides."""
    stated = place.parameters(settings)
    urls = place.started(stated, tls=False)
    made = sign_parameters(stated, Identity.read(place.keys / "owner"))
    identity, store = Identity.read(place.keys / "sensor-1"), place.folder / "sensor.db"
    sensor = place.stack.enter_context(Device(identity, made, store, urls, budget=10**6))
    rows, counter = place.rows(), iter(range(10**6))

    def work() -> None:
        first = next(counter) * 10**4
        for seq, start in enumerate(range(0, len(rows), BATCH)):
            sensor.outbox.add(0, first + seq, rows[start : start + BATCH])
        fates = sensor.send()
        if any(set(states) != {"sent"} for states in fates.values()):
            raise SystemExit(f"not everything arrived: {fates}")

    return work


class Fresh:
    """Work that needs new material for each run, made beforehand and not timed."""

    def __init__(self, ready: Callable[[], Work]) -> None:
        self.ready = ready

    def __call__(self) -> Any:
        return self.ready()()


def clipped_all(stated: Parameters, rows: Floats) -> np.ndarray:
    return np.vstack([clip_readings(stated, rows[start : start + READINGS]) for start in range(0, len(rows), READINGS)])


def scores(place: Setting) -> np.ndarray:
    stated = place.parameters(EXACT)
    return perturbation.scores(clipped_all(stated, place.rows()), [0, 0], stated.to_steps(EXACT.unit), BITS)


def scattered(place: Setting) -> Floats:
    stated = place.parameters(Direct(threshold=Fraction(20)), epsilon="1/2")
    return perturb_points(stated, clipped_all(stated, place.rows()), system_noise()) / 1000.0


WORKS = {
    work.__name__: work
    for work in (
        perturb_planar,
        perturb_columns,
        deal,
        deal_tagged,
        evaluate,
        correction,
        dbscan_ours,
        dbscan_sklearn,
        wire_grid,
        wire_grid_tls,
        wire_exact,
        wire_exact_tls,
        device_grid,
        device_exact,
    )
}


def repeated(work: Work, seconds: float) -> list[float]:
    """Seconds of each run; what a run needs is made before its time starts."""
    runs: list[float] = []
    start = time.perf_counter()
    while len(runs) <= LEAST or time.perf_counter() - start < seconds:
        once = work.ready() if isinstance(work, Fresh) else work
        before = time.perf_counter()
        once()
        runs.append(time.perf_counter() - before)
    return runs[1:]  # the first one warms up


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=[*WORKS, "available"])
    parser.add_argument("--seconds", type=float, default=2.0, help="repeat for so long")
    parser.add_argument("--readings", type=int, default=READINGS, help="so many")
    ask = parser.parse_args()
    if ask.work == "available":
        json.dump(list(WORKS), sys.stdout)
        return
    with ExitStack() as stack:
        work = WORKS[ask.work](Setting(stack, ask.readings))
        before = peak()
        runs = repeated(work, ask.seconds)
    facts = {
        "work": ask.work,
        "readings": ask.readings,
        "seconds": median(runs),
        "range": [min(runs), max(runs)],
        "runs": len(runs),
        "before_bytes": before,
        "peak_bytes": peak(),
        "load": round(os.getloadavg()[0], 1),
    }
    json.dump(facts, sys.stdout)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
