"""A stream on one machine for tests: keys, a signed set, parties as real processes, readings with known outliers."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from forks import Script
from wallflower.machine.vault import make_key, read_vault
from wallflower.sensors.parameters import Column, Exact, Mode, Parameters
from wallflower.sensors.parties.client import Link, Unreachable
from wallflower.sensors.parties.device import Device
from wallflower.sensors.parties.keys import Identity, SignedParameters, make_keys, sign_parameters

HERE = Path(__file__).parent
EXACT = Exact(bits=12, unit=Fraction(1, 10), thresholds=(Fraction(20),))
ROLES = ("owner", "correction", "analyst")
CALL = "import sys; from wallflower.cli import main; sys.exit(main())"


def parameters(keys: Path, settings: Mode = EXACT, **changes: Any) -> Parameters:
    column = {"centre": Fraction(0), "scale": Fraction(3), "range": Fraction(12)}
    box = {"low": Fraction(-600), "high": Fraction(600)}
    owner = Identity.read(keys / "owner")
    stated = Parameters(
        stream="hall",
        columns=tuple(Column(name=name, **column, **box) for name in ("x", "y")),
        centre=(Fraction(0), Fraction(0)),
        grid=Fraction(1, 100),
        epsilon=Fraction(1, 5),
        settings=settings,
        starts=int(time.time()) - 100,
        length=Fraction(1),
        grace=Fraction(3600),
        patience=Fraction(60),
        sensors=1,
        analyst=Identity.read(keys / "analyst").public,
        correction=Identity.read(keys / "correction").public,
        owner=owner.public,
        seal=owner.seal_public,
    )
    return replace(stated, **changes)


def readings(seed: int, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Readings around the centre, every tenth pushed out to 40 scaled units and more."""
    rows = np.random.default_rng(seed).normal(0.0, 3.0, (count, 2))
    outliers = np.arange(count) % 10 == 3
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows[outliers] *= 1 + 120 / lengths[outliers]
    return rows, outliers


class Stage:
    """Keys and a signed set in a folder; parties that can be started, killed and started again at the same address."""

    def __init__(
        self, folder: Path, *, tls: bool = False, known: int = 2, sealed: bool = False, **changes: Any
    ) -> None:
        self.folder, self.tls, self.sealed = folder, tls, sealed
        self.keys = folder / "keys"
        make_keys(self.keys, sensors=known)
        self.signed: SignedParameters = sign_parameters(
            parameters(self.keys, **changes), Identity.read(self.keys / "owner")
        )
        self.set = folder / "stream.json"
        self.set.write_bytes(self.signed.body)
        if sealed:
            make_key(folder / "store.key")
        self.ports = dict(zip(ROLES, free_ports(len(ROLES)), strict=True))
        self.reroute: dict[str, int] = {}  # by role: the port at which others reach it
        self.running: dict[str, Script] = {}

    def url(self, role: str) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.reroute.get(role, self.ports[role])}"

    def identity(self, name: str) -> Identity:
        return Identity.read(self.keys / name)

    def link(self, name: str, to: str) -> Link:
        return Link(self.url(to), to=to, identity=self.identity(name), signed=self.signed)

    def call(self, name: str, to: str, method: str, path: str, body: bytes = b"", **more: Any) -> tuple[int, bytes]:
        """One call of one party to another."""
        with closing(self.link(name, to)) as link:
            return link.call(method, path, body, **more)

    def start(
        self,
        *roles: str,
        die: Mapping[str, str] | None = None,
        forge: bool = False,
        clock: Path | None = None,
        room: int | None = None,
    ) -> None:
        """Start parties and wait until they answer.

        `die` is a step at which a process kills itself (step_killer.py); with `forge` it forges its reports
        (forger.py); `clock` says by how much its clock is wrong (wrong_clock.py); `room` is the size that none of its
        files may exceed.
        """
        for role in roles or ROLES:
            step = (die or {}).get(role)
            program = (HERE / "step_killer.py", step) if step else (None,)
            program = (HERE / "forger.py",) if forge else program
            program = (HERE / "wrong_clock.py", str(clock)) if clock else program
            command = ["sensors", role, "--keys", str(self.keys / role)]
            command += ["--parameters", str(self.set), "--store", str(self.folder / f"{role}.db")]
            command += ["--port", str(self.ports[role]), "--tls" if self.tls else "--no-tls"]
            command += ["--store-key", str(self.folder / "store.key")] if self.sealed else []
            if role == "analyst":
                command += ["--correction", self.url("correction")]
            command += ["--out", str(self.folder / "out")] if role == "owner" else ["--owner", self.url("owner")]
            self.running[role] = Script(*program, *command, log=self.log(role), largest=room)
        for role in roles or ROLES:
            self._wait_for(role, may_die=role in (die or {}))

    def make_room(self) -> None:
        """Let files of running parties grow as they like again."""
        for process in self.running.values():
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    def log(self, role: str) -> Path:
        return self.folder / f"{role}.log"

    def kill(self, role: str) -> None:
        process = self.running.pop(role)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        for process in self.running.values():
            process.send_signal(signal.SIGTERM)
        try:
            for process in self.running.values():
                process.wait()
        finally:
            for role in list(self.running):
                self.kill(role)

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def device(self, number: int = 1, budget: str = "100000") -> Device:
        urls = {role: self.url(role) for role in ROLES}
        store = self.folder / f"sensor-{number}.db"
        vault = read_vault(self.folder / "store.key" if self.sealed else None)
        return Device(self.identity(f"sensor-{number}"), self.signed, store, urls, budget=budget, vault=vault)

    def send(self, window: int, number: int = 1, count: int = 60, batch: int = 25) -> tuple[set[str], dict[str, Any]]:
        """Send one window of one sensor; the ids of its outliers, and what became of its frames."""
        rows, outliers = readings(100 * number + window, count)
        with self.device(number) as device:
            before = device.outbox.count_frames()
            for seq, start in enumerate(range(0, count, batch)):
                device.outbox.add(window, seq, rows[start : start + batch])
            device.outbox.finish(window)
            fates = {role: dict(Counter(own) - Counter(before.get(role))) for role, own in device.send().items()}
            return {f"{name:016x}" for name in device.outbox.ids(window)[outliers].tolist()}, fates

    def result(self, window: int) -> dict[str, Any]:
        """The owner's result, as soon as there is one; waits as long as every party lives."""
        url = self.url("owner").replace(str(self.reroute.get("owner")), str(self.ports["owner"]))
        link = Link(url, to="owner", identity=self.identity("owner"), signed=self.signed)
        with closing(link):
            while True:
                try:
                    status, body = link.call("GET", f"/v1/hall/w/{window}/result")
                    if status == 200:
                        return json.loads(body)
                except Unreachable:
                    pass
                for role in self.running:
                    self._require_alive(role, f"window {window} has no result")
                time.sleep(0.05)

    def coming(self) -> int:
        """The window that opens next."""
        stated = self.signed.parameters
        return int((time.time() - stated.starts) / stated.length) + 1

    def wait_until_sealed(self, role: str, window: int) -> None:
        """A window is sealed by a thread of its own, soon after the last commit."""
        while f"window {window}: sealed" not in self.log(role).read_text():
            self._require_alive(role, "it never sealed the window")
            time.sleep(0.02)

    def logs(self) -> str:
        return "".join(f"--- {role}\n{self.log(role).read_text()}" for role in ROLES if self.log(role).exists())

    def _wait_for(self, role: str, *, may_die: bool = False) -> None:
        """Wait until a party listens. One that kills itself may have answered and died between two probes."""
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.ports[role])) == 0:
                    return
            if may_die and self.running[role].poll() == -signal.SIGKILL:
                return
            self._require_alive(role, "it never listened")
            time.sleep(0.05)

    def _require_alive(self, role: str, words: str) -> None:
        if (code := self.running[role].poll()) is not None:
            raise AssertionError(f"{role} ended with {code}: {words}\n{self.logs()}")


def fill(device: Device, window: int) -> set[str]:
    rows, outliers = readings(window)
    for seq in range(3):
        device.outbox.add(window, seq, rows[20 * seq : 20 * seq + 20])
    device.outbox.finish(window)
    return {f"{name:016x}" for name in device.outbox.ids(window)[outliers].tolist()}


@contextmanager
def sending(device: Device) -> Iterator[None]:
    over = Event()
    thread = Thread(target=device.keep_sending, args=(over,), daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


def flagged(result: Mapping[str, Any]) -> set[str]:
    return {one["id"] for one in result["outliers"]}


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def died(process: Script) -> bool:
    """Whether the process has killed itself, as soon as it is over."""
    return process.wait() == -signal.SIGKILL


def first_to_end(processes: Mapping[str, Script]) -> str:
    """The name of a process that is over, as soon as one is: which comes first may depend on the machine."""
    watched = {os.pidfd_open(process.pid): name for name, process in processes.items()}
    try:
        ready, _, _ = select.select(list(watched), [], [])
    finally:
        for handle in watched:
            os.close(handle)
    return watched[ready[0]]


def small_files(limit: int) -> Any:
    """In a child: no file may grow beyond so many bytes, as on a full disk, until there is room again."""

    def apply() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    return apply


ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join((str(HERE), str(HERE.parents[1])))}
