"""A service of several workers that is killed again and again, and the people who have tokens for it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soak_check import Kill
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.schema import Column, Schema
from wallflower.service.core.access.tokens import Tokens
from wallflower.service.core.records import Records
from wallflower.service.settings import Registration, Settings
from wallflower.units import Protection

SERVE = """
import sys
from wallflower.service.server import serve
from wallflower.service.settings import Settings
serve(Settings.from_json(sys.argv[1]), lambda url: print(url, flush=True))
"""
ANALYSTS = tuple(f"analyst {number}" for number in range(1, 7))
VISITORS = ("visitor 1", "visitor 2")
STEWARDS = ("sue", "stan")
REGISTRAR = "rita"
WIDE, TIGHT, STREAM = "wide", "tight", "beds"  # two tables, one of which is soon spent, and a stream
SLOWEST = 2.0  # seconds that a head or a body may take to arrive
TIMEOUT = 120.0  # of a call: longer than the service may take, so that one that hangs is found


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def said(self) -> str:
        """The status, and the type of the problem if it is one."""
        if self.headers.get("content-type") != "application/problem+json":
            return str(self.status)
        return f"{self.status} {str(self.json['type']).rpartition(':')[2]}"


def call(url: str, method: str, path: str, *, token: str | None, body: Any = None, **headers: str) -> Answer:
    """One request on a connection of its own."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        given["authorization"] = f"Bearer {token}"
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    if content is not None:
        given.setdefault("content-type", "application/json")
    line = http.client.HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT)
    try:
        line.request(method, path, body=content, headers=given)
        found = line.getresponse()
        return Answer(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())
    finally:
        line.close()


class Victim:
    """The service, which starts again whenever it was killed."""

    def __init__(self, settings: Settings, log: Path) -> None:
        self._settings, self._log = settings, log
        self.url = f"http://127.0.0.1:{settings.port}"
        self._running = self._start()

    def kill_worker(self, turn: int) -> Kill:
        """Kill one worker of those that are there; whoever watches over them starts another."""
        while not (found := self.workers()):
            self._require_alive()
            time.sleep(0.1)
        began = time.monotonic()
        with suppress(ProcessLookupError):
            os.kill(found[turn % len(found)], signal.SIGKILL)
        return self._ended("worker", began, 1)

    def kill_supervisor(self) -> Kill:
        """Kill whoever watches over the workers, and nobody else: they end by themselves, and it starts again."""
        began = time.monotonic()
        self._running.kill()
        self._running.wait()
        self._running = self._start()
        return self._ended("supervisor", began, self._settings.workers)

    def kill_all(self) -> Kill:
        """Kill the whole service, and start it again."""
        began = time.monotonic()
        os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()
        self._running = self._start()
        return self._ended("service", began, self._settings.workers)

    def terminate(self) -> Kill:
        """Stop the service well and start it again: what is under way comes to its end, so nothing may be lost."""
        began = time.monotonic()
        self._running.terminate()
        code = self._running.wait(120)
        if code:
            raise SystemExit(f"the service, told to stop, ended with {code}: see {self._log}")
        self._running = self._start()
        return self._ended("service by SIGTERM", began, 0)

    def wait(self) -> None:
        """Until it answers."""
        self._wait()

    @property
    def answers_at_once(self) -> int:
        """How many queries can be under way in it."""
        return self._settings.workers * self._settings.answering

    def kill(self) -> None:
        """End it, however it is."""
        with suppress(ProcessLookupError):
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()

    def stop(self) -> int:
        """Let it end well; gives its exit code."""
        self._running.terminate()
        return self._running.wait(60)

    def workers(self) -> list[int]:
        """The processes that answer."""
        found, parent = [], self._running.pid
        with suppress(OSError):
            for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
                with suppress(OSError):
                    if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                        found.append(int(child))
        return found

    def processes(self) -> list[int]:
        """The processes that answer, also where there is only one."""
        return [self._running.pid] if self._settings.workers == 1 else self.workers()

    def _ended(self, who: str, began: float, workers: int) -> Kill:
        self._wait()
        cost = workers * self._settings.answering
        return Kill(who=who, began=began, ended=time.monotonic(), cost=cost, at=self.url)

    def _start(self) -> subprocess.Popen[str]:
        """A new service on the same port, which those that were killed may hold for a moment."""
        for _ in range(600):
            with self._log.open("a") as log:
                made = subprocess.Popen(
                    [sys.executable, "-c", SERVE, self._settings.to_json()],
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    start_new_session=True,
                )
            assert made.stdout is not None
            if made.stdout.readline():
                self._running = made
                self._wait()
                return made
            made.wait()
            time.sleep(0.1)
        raise SystemExit(f"the service does not come back: see {self._log}")

    def _wait(self) -> None:
        """Until it answers, with all of its workers."""
        while True:
            with suppress(OSError, http.client.HTTPException):
                if call(self.url, "GET", "/readyz", token=None).status == 200:
                    return
            self._require_alive()
            time.sleep(0.05)

    def _require_alive(self) -> None:
        if self._running.poll() is not None:
            raise SystemExit(f"the service has ended by itself with {self._running.returncode}: see {self._log}")


@dataclass(frozen=True, slots=True)
class Site:
    """The machines that are killed, the folder of sources of each, and a token for each of the people."""

    machines: list[Victim]
    roots: tuple[str, ...]
    tokens: dict[str, str]


@contextmanager
def site(folder: Path, place: str, *, workers: int, machines: int, slowest: float = SLOWEST) -> Iterator[Site]:
    """Machines with one ledger and folders of their own, two tables, a stream and budgets."""
    os.environ["XDG_DATA_HOME"] = str(folder)
    tokens = _prepare(place)
    roots = tuple(str(folder / f"machine-{number}") for number in range(machines))
    running: list[Victim] = []
    try:
        for root in roots:
            Path(root).mkdir()
            stated = _settings(Path(root), place, watches=folder / "watches", workers=workers, slowest=slowest)
            running.append(Victim(stated, Path(root) / "service.log"))
        yield Site(running, roots, tokens)
    finally:
        for machine in running:
            machine.kill()


def _settings(folder: Path, place: str, *, watches: Path, workers: int, slowest: float) -> Settings:
    datasets = (_table(folder, WIDE), _table(folder, TIGHT), _stream())
    return Settings(
        port=_free_port(),
        workers=workers,
        ledger=place,
        roots=(str(folder),),
        watches=str(watches),
        quantum_seconds=0.02,
        async_after_seconds=5.0,
        shutdown_seconds=30,
        header_seconds=slowest,
        body_seconds=slowest,
        datasets=datasets,
    )


def _prepare(place: str) -> dict[str, str]:
    with Ledger.open(place) as ledger:
        ledger.grant(WIDE, Loss("9"), by="sue", reason="soak")
        ledger.grant(STREAM, Loss("5"), by="sue", reason="soak")
    records = Records(place)
    tokens = Tokens(records)
    made = {name: tokens.create(name, "analyst")[1] for name in (*ANALYSTS, *VISITORS)}
    made |= {name: tokens.create(name, "steward")[1] for name in (*STEWARDS, REGISTRAR)}
    records.close()
    return made


def _table(folder: Path, name: str) -> Registration:
    lines = "".join(f"{(row * (7 if name == WIDE else 11)) % 101},{row * row % 97}\n" for row in range(60))
    (folder / f"{name}.csv").write_text(f"a,b\n{lines}")
    return Registration(analysts=("*",), name=name, source=str(folder / f"{name}.csv"), schema=Schema.of(["a", "b"]))


def _stream() -> Registration:
    schema = Schema(columns=(Column("t", low=-5, high=5),), protects=Protection(rows="time", unit="entry"))
    return Registration(analysts=("*",), name=STREAM, source=None, schema=schema)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
