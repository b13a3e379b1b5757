"""A demo: all parties of a stream on one machine, as processes that talk over loopback."""

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
from wallflower.sensors.parties.keys import Identity, SignedParameters, make_keys, sign_parameters
from wallflower.sensors.parties.outbox import Outbox
from wallflower.synthetic import Floats, mixture
from wallflower.text import t

Report = Callable[[str, int | None, str], None]  # called with a party, a window and what the party did

OUTLIER_EVERY: Final = 20  # readings
OUTLIER_DISTANCE: Final = 40.0  # by which outliers are pushed outwards, in scaled units
WINDOW_SECONDS: Final = 60  # all sensors commit at once, so no party waits for its end
TIMEOUT_SECONDS: Final = 120.0  # until a demo that hangs gives up
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
    """The size and mode of a demo."""

    mode: str
    readings: int
    sensors: int
    windows: int
    tls: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a demo, compared with the synthetic truth."""

    found: int
    true: int
    outliers: int
    unjudged: int
    seconds: float
    page: Path
    results: tuple[Path, ...]

    @property
    def summary(self) -> str:
        """The result in a sentence."""
        return t(
            "{true:,} of {outliers:,} outliers were found, {others:,} other readings flagged, {unjudged:,} unjudged; "
            "{seconds:.1f} s from the first reading to the last result.",
            true=self.true,
            outliers=self.outliers,
            others=self.found - self.true,
            unjudged=self.unjudged,
            seconds=self.seconds,
        )

    @property
    def files(self) -> list[Path]:
        """The files that the stream owner wrote."""
        return [self.page, *self.results]

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("found", "true", "outliers", "unjudged")}
        return counts | {"page": str(self.page), "results": [str(path) for path in self.results]}


def run_demo(folder: Path, plan: Plan, report: Report) -> Outcome:
    """Make keys and readings, start every party, and wait for the stream owner's results."""
    if (folder / "keys").exists():
        raise StateError(f"{folder}: a demo was run there before. Name another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    make_keys(folder / "keys", sensors=plan.sensors)
    owner = Identity.read(folder / "keys" / "owner")
    signed = sign_parameters(demo_parameters(folder / "keys", plan), owner)
    (folder / "stream.json").write_bytes(signed.body)
    truth = [_write_readings(folder, plan, number) for number in range(1, plan.sensors + 1)]
    with ExitStack() as running:
        urls = _start_parties(folder, plan, running, report)
        start = time.monotonic()
        devices = [_start_device(folder, number, urls, running, report) for number in range(1, plan.sensors + 1)]
        _wait_for(devices)
        link = Link(urls["owner"], to="owner", identity=owner, signed=signed)
        results = _fetch_results(link, signed, plan)
        seconds = time.monotonic() - start
    return _compare(folder, signed, truth, results, seconds)


def demo_parameters(keys: Path, plan: Plan) -> Parameters:
    """Return a set of two columns of deviation 3 around 0, with usual readings within 12 of each other."""
    column = {"centre": Fraction(0), "scale": Fraction(3), "range": Fraction(12)}
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
        length=Fraction(WINDOW_SECONDS),
        grace=Fraction(WINDOW_SECONDS * plan.windows),
        patience=Fraction(10),
        sensors=plan.sensors,
        analyst=Identity.read(keys / "analyst").public,
        correction=Identity.read(keys / "correction").public,
        owner=owner.public,
        seal=owner.seal_public,
    )


def make_readings(plan: Plan, number: int, window: int) -> tuple[Floats, Floats]:
    """Make synthetic readings of one sensor in one window, and say which of them are outliers."""
    rows = mixture(plan.readings, 2, seed=1000 * number + window, share=0.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    outliers = np.arange(plan.readings) % OUTLIER_EVERY == 0
    rows[outliers] *= 1 + OUTLIER_DISTANCE / lengths[outliers]
    return 3.0 * rows, outliers


def _write_readings(folder: Path, plan: Plan, number: int) -> list[Floats]:
    truth = []
    with (folder / f"sensor-{number}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("window", "x", "y"))
        for window in range(plan.windows):
            rows, outliers = make_readings(plan, number, window)
            writer.writerows((window, *row) for row in rows.tolist())
            truth.append(outliers)
    return truth


def _start_parties(folder: Path, plan: Plan, running: ExitStack, report: Report) -> dict[str, str]:
    """Start stream owner, correction server and analyst in that order, each with the URLs of the earlier ones."""
    urls: dict[str, str] = {}
    for role, needs in (("owner", ()), ("correction", ("owner",)), ("analyst", ("correction", "owner"))):
        command = [*_CALL, role, "--port", "0", "--tls" if plan.tls else "--no-tls", *_files_of(folder, role)]
        command += ["--parameters", str(folder / "stream.json")]
        for name in needs:
            command += [f"--{name}", urls[name]]
        if role == "owner":
            command += ["--out", str(folder / "owner")]
        process = running.enter_context(_process(command, role, report))
        urls[role] = _read_url(process, role)
        report(role, None, f"listens at {urls[role]}")
    return urls


def _start_device(
    folder: Path, number: int, urls: Mapping[str, str], running: ExitStack, report: Report
) -> subprocess.Popen[str]:
    name = f"sensor-{number}"
    command = [*_CALL, "device", str(folder / f"{name}.csv"), *_files_of(folder, name), "--budget", "1000000"]
    command += ["--parameters", str(folder / "stream.json"), "--analyst", urls["analyst"]]
    command += ["--correction", urls["correction"], "--owner", urls["owner"]]
    return running.enter_context(_process(command, name, report))


def _files_of(folder: Path, name: str) -> list[str]:
    return ["--keys", str(folder / "keys" / name), "--store", str(folder / f"{name}.db")]


@contextmanager
def _process(command: list[str], name: str, report: Report) -> Iterator[subprocess.Popen[str]]:
    """Run a party in a session of its own, so that Ctrl-C reaches only the demo, which stops it."""
    process = subprocess.Popen(  # noqa: S603 - commands of this module, no shell
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stderr is not None
    reader = Thread(target=_read_log, args=(process.stderr, name, report), daemon=True)
    reader.start()
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
        reader.join(timeout=5)


def _read_log(log: IO[str], name: str, report: Report) -> None:
    for line in log:
        match = _LOGGED.search(line)
        report(name, int(match[1]) if match else None, match[2] if match else line.strip())


def _read_url(process: subprocess.Popen[str], role: str) -> str:
    assert process.stdout is not None
    match = _LISTENS.search(process.stdout.readline())
    if match is None:
        raise StateError(f"{role}: it did not start. See its log above.")
    return match[1]


def _wait_for(devices: list[subprocess.Popen[str]]) -> None:
    for device in devices:
        if device.wait(timeout=TIMEOUT_SECONDS) != 0:
            raise StateError("a sensor ended early. See its log above.")


def _fetch_results(owner: Link, signed: SignedParameters, plan: Plan) -> list[dict[str, Any]]:
    results, deadline = [], time.monotonic() + TIMEOUT_SECONDS
    for window in range(plan.windows):
        while True:
            try:
                status, body = owner.call("GET", f"/v1/{signed.parameters.stream}/w/{window}/result")
            except Unreachable:
                status, body = 0, b""
            if status == 200:
                results.append(json.loads(body))
                break
            if time.monotonic() > deadline:
                raise StateError(f"window {window}: no result in time. See the logs above.")
            time.sleep(0.1)
    owner.close()
    return results


def _compare(
    folder: Path, signed: SignedParameters, truth: list[list[Floats]], results: list[dict[str, Any]], seconds: float
) -> Outcome:
    """Compare results with the truth, which only a demo on synthetic readings can do."""
    flagged = {row["id"] for result in results for row in result["outliers"]}
    outliers: set[str] = set()
    for number, windows in enumerate(truth, start=1):
        identity = Identity.read(folder / "keys" / f"sensor-{number}")
        outbox = Outbox(
            folder / f"sensor-{number}.db", identity=identity, parameters=signed.parameters, noise=system_noise()
        )
        for window, is_outlier in enumerate(windows):
            outliers |= {f"{name:016x}" for name in outbox.ids(window)[is_outlier].tolist()}
        outbox.close()
    return Outcome(
        found=len(flagged),
        true=len(flagged & outliers),
        outliers=len(outliers),
        unjudged=sum(len(result["unjudged"]) for result in results),
        seconds=seconds,
        page=folder / "owner" / "index.html",
        results=tuple(folder / "owner" / f"window-{result['window']}.json" for result in results),
    )
