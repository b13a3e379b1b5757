"""All parties of a stream on one machine, as processes of their own that talk over loopback."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import IO, Any, Final

import numpy as np

from wallflower.errors import StateError
from wallflower.noise import system_noise
from wallflower.sensors.parameters import Column, Direct, Exact, Grid, Mode, Paper, Parameters
from wallflower.sensors.parties.client import Link, Unreachable
from wallflower.sensors.parties.keys import Identity, make
from wallflower.sensors.parties.outbox import Outbox
from wallflower.sensors.parties.parameter_file import ParameterFile, sign_parameters
from wallflower.synthetic import Floats, mixture

Told = Callable[[str, int | None, str], None]

OUTLIERS: Final = 20  # one reading in so many
FAR: Final = 40.0  # how far outliers are pushed outwards, in scaled units
LENGTH: Final = 60  # seconds of a window; all sensors commit at once, so nobody waits for its end
PATIENCE: Final = 120.0  # seconds until a demo that hangs gives up
SETTINGS: Final[Mapping[str, Mode]] = {
    "exact": Exact(unit=Fraction(1, 100), thresholds=(Fraction(20),)),
    "grid": Grid(bound=Fraction(10), step=Fraction(20)),
    "paper": Paper(radius=Fraction(3), width=Fraction(5)),
    "direct": Direct(threshold=Fraction(20)),
}
_CALL: Final = (sys.executable, "-c", "import sys; from wallflower.cli import main; sys.exit(main())", "sensors")
_LISTENS: Final = re.compile(r"listens at (\S+)")
_LOGGED: Final = re.compile(r"window (\d+): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is shown."""

    mode: str
    readings: int
    sensors: int
    windows: int
    tls: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of it."""

    found: int
    true: int
    outliers: int
    unjudged: int
    seconds: float
    page: Path
    results: tuple[Path, ...]

    @property
    def words(self) -> str:
        return (
            f"{self.true} of {self.outliers} outliers were found, {self.found - self.true} other readings flagged, "
            f"{self.unjudged} are unjudged; {self.seconds:.1f} s from the first reading to the last result."
        )

    @property
    def files(self) -> list[Path]:
        return [self.page, *self.results]

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("found", "true", "outliers", "unjudged")}
        return counts | {"page": str(self.page), "results": [str(path) for path in self.results]}


def run(folder: Path, plan: Plan, told: Told) -> Outcome:
    """Make keys and readings, start every party, and wait for the owner's results."""
    if (folder / "keys").exists():
        raise StateError(f"{folder}: a demo was run there before. Name another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    make(folder / "keys", sensors=plan.sensors)
    owner = Identity.read(folder / "keys" / "owner")
    made = sign_parameters(parameters(folder / "keys", plan), owner)
    (folder / "stream.json").write_bytes(made.body)
    sources = [_write_readings(folder, plan, number) for number in range(1, plan.sensors + 1)]
    with ExitStack() as running:
        urls = _parties(folder, plan, running, told)
        start = time.monotonic()
        devices = [_device(folder, number, urls, running, told) for number in range(1, plan.sensors + 1)]
        _wait(devices)
        results = _results(Link(urls["owner"], to="owner", identity=owner, signed=made), made, plan)
        seconds = time.monotonic() - start
    return _make_outcome(folder, made, sources, results, seconds)


def parameters(keys: Path, plan: Plan) -> Parameters:
    """Two columns of deviation 3 around 0, where usual readings are within 12 of each other."""
    column = {"center": Fraction(0), "scale": Fraction(3), "range": Fraction(12)}
    box = {"low": Fraction(-600), "high": Fraction(600)}
    owner = Identity.read(keys / "owner")
    return Parameters(
        stream="demo",
        columns=tuple(Column(name=name, **column, **box) for name in ("x", "y")),
        centre=(Fraction(0), Fraction(0)),
        grid=Fraction(1, 1000),
        epsilon=Fraction(1, 5) if plan.mode != "paper" else Fraction(1),
        settings=SETTINGS[plan.mode],
        starts=int(time.time()),
        length=Fraction(LENGTH),
        grace=Fraction(LENGTH * plan.windows),
        patience=Fraction(10),
        sensors=plan.sensors,
        analyst=Identity.read(keys / "analyst").public,
        correction=Identity.read(keys / "correction").public,
        owner=owner.public,
        seal=owner.seal_public,
    )


def readings(plan: Plan, number: int, window: int) -> tuple[Floats, Floats]:
    """Made-up readings of one sensor in one window, and which of them are outliers."""
    rows = mixture(plan.readings, 2, seed=1000 * number + window, share=0.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    outliers = np.arange(plan.readings) % OUTLIERS == 0
    rows[outliers] *= 1 + FAR / lengths[outliers]
    return 3.0 * rows, outliers


def _write_readings(folder: Path, plan: Plan, number: int) -> list[Floats]:
    truth = []
    with (folder / f"sensor-{number}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("window", "x", "y"))
        for window in range(plan.windows):
            rows, outliers = readings(plan, number, window)
            writer.writerows((window, *row) for row in rows.tolist())
            truth.append(outliers)
    return truth


def _parties(folder: Path, plan: Plan, running: ExitStack, told: Told) -> dict[str, str]:
    """Start owner, correction server and analyst in that order, each told where the earlier ones are."""
    urls: dict[str, str] = {}
    for role, needs in (("owner", ()), ("correction", ("owner",)), ("analyst", ("correction", "owner"))):
        command = [*_CALL, role, "--port", "0", "--tls" if plan.tls else "--no-tls", *_own(folder, role)]
        command += ["--parameters", str(folder / "stream.json")]
        for name in needs:
            command += [f"--{name}", urls[name]]
        if role == "owner":
            command += ["--out", str(folder / "owner")]
        process = running.enter_context(_process(command, role, told))
        urls[role] = _address(process, role)
        told(role, None, f"listens at {urls[role]}")
    return urls


def _device(
    folder: Path, number: int, urls: Mapping[str, str], running: ExitStack, told: Told
) -> subprocess.Popen[str]:
    name = f"sensor-{number}"
    command = [*_CALL, "device", str(folder / f"{name}.csv"), *_own(folder, name), "--budget", "1000000"]
    command += ["--parameters", str(folder / "stream.json"), "--analyst", urls["analyst"]]
    command += ["--correction", urls["correction"], "--owner", urls["owner"]]
    return running.enter_context(_process(command, name, told))


def _own(folder: Path, name: str) -> list[str]:
    return ["--keys", str(folder / "keys" / name), "--store", str(folder / f"{name}.db")]


@contextmanager
def _process(command: list[str], name: str, told: Told) -> Iterator[subprocess.Popen[str]]:
    """A party in a session of its own, so that Ctrl-C reaches only the demo, which ends it in order."""
    process = subprocess.Popen(  # noqa: S603 - commands of this module, no shell
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    hearing = Thread(target=_hear, args=(process.stderr, name, told), daemon=True)
    hearing.start()
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        hearing.join(timeout=5)


def _hear(log: IO[str], name: str, told: Told) -> None:
    for line in log:
        found = _LOGGED.search(line)
        told(name, int(found[1]) if found else None, found[2] if found else line.strip())


def _address(process: subprocess.Popen[str], role: str) -> str:
    assert process.stdout is not None
    found = _LISTENS.search(process.stdout.readline())
    if found is None:
        raise StateError(f"{role}: it did not start. See what it said above.")
    return found[1]


def _wait(devices: list[subprocess.Popen[str]]) -> None:
    for device in devices:
        if device.wait(timeout=PATIENCE) != 0:
            raise StateError("a sensor ended early. See what it said above.")


def _results(owner: Link, made: ParameterFile, plan: Plan) -> list[dict[str, Any]]:
    found, deadline = [], time.monotonic() + PATIENCE
    for window in range(plan.windows):
        while True:
            try:
                status, body = owner.call("GET", f"/v1/{made.parameters.stream}/w/{window}/result")
            except Unreachable:
                status, body = 0, b""
            if status == 200:
                found.append(json.loads(body))
                break
            if time.monotonic() > deadline:
                raise StateError(f"window {window}: no result in time. See what the parties said above.")
            time.sleep(0.1)
    owner.close()
    return found


def _make_outcome(
    folder: Path, made: ParameterFile, truth: list[list[Floats]], results: list[dict[str, Any]], seconds: float
) -> Outcome:
    """Compare with what was made up: only here, and only because these readings are nobody's."""
    flagged = {one["id"] for result in results for one in result["outliers"]}
    outliers: set[str] = set()
    for number, windows in enumerate(truth, start=1):
        identity = Identity.read(folder / "keys" / f"sensor-{number}")
        box = Outbox(
            folder / f"sensor-{number}.db", identity=identity, parameters=made.parameters, noise=system_noise()
        )
        for window, is_outlier in enumerate(windows):
            outliers |= {f"{name:016x}" for name in box.ids(window)[is_outlier].tolist()}
        box.close()
    return Outcome(
        found=len(flagged),
        true=len(flagged & outliers),
        outliers=len(outliers),
        unjudged=sum(len(result["unjudged"]) for result in results),
        seconds=seconds,
        page=folder / "owner" / "index.html",
        results=tuple(folder / "owner" / f"window-{result['window']}.json" for result in results),
    )
