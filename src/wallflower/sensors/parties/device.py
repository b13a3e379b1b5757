"""A sensor as a program: readings go into its outbox, and from there to their readers until they have arrived."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError
from wallflower.machine.vault import OpenVault, Vault
from wallflower.noise import Noise, system_noise
from wallflower.privacy import Exact
from wallflower.sensors.parties.client import Link, Unreachable, pauses
from wallflower.sensors.parties.database import DiskFull
from wallflower.sensors.parties.intake import BadCall
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.parties.outbox import Outbox, PendingFrame, WindowError
from wallflower.sensors.parties.parameter_file import ParameterFile, verify_parameters
from wallflower.sensors.protocol.batches import targets

Floats = NDArray[np.float64]
Told = Callable[[str, int, int], None]  # reader, readings of the batch, status

WINDOW: Final = "window"  # the column that says to which window a reading belongs
# Answers that settle a frame. All others, such as 425 (too early) and 403 (not known there), may change: it is kept.
_FATES: Final[Mapping[int, str]] = {
    200: "sent",
    201: "sent",
    410: "late",
    409: "refused",
    413: "refused",
    422: "refused",
}
_LOOK: Final = 0.05  # seconds between two looks into the outbox


class Device:
    """One sensor. `add` and `finish` need no network; `send` ends when every frame has arrived or its time is over."""

    def __init__(
        self,
        identity: Identity,
        signed: ParameterFile,
        store: Path,
        urls: Mapping[str, str],
        *,
        budget: Exact | None = None,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        self._signed, self._parameters = signed, signed.parameters
        self._noise: Noise = system_noise()
        self._over = Event()
        self._links = {
            name: Link(urls[name], to=name, identity=identity, signed=signed) for name in targets(signed.parameters)
        }
        self.outbox = Outbox(store, identity=identity, parameters=signed.parameters, noise=self._noise, vault=vault)
        if budget is not None:
            self.outbox.limit(budget)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for link in self._links.values():
            link.close()
        self.outbox.close()

    def check(self) -> None:
        """Refuse to start under a parameter set that a server does not have in force; one that is down says nothing."""
        path = f"/v1/{self._parameters.stream}/parameters?hash={self._parameters.hash.hex()}"
        for name, link in self._links.items():
            try:
                status, _ = link.call("GET", path)
            except Unreachable:
                continue
            if status == 409:
                raise BadCall(409, f"{name}: another parameter set is in force there. Take that one and start again.")

    def send(self, told: Told = lambda *_: None) -> dict[str, dict[str, int]]:
        """Send what is pending to all readers at once; how many frames were sent, late or refused."""
        self.outbox.resume()
        with ThreadPoolExecutor(len(self._links)) as pool:
            for done in [pool.submit(self._send_to, name, told) for name in self._links]:
                done.result()
        return self.outbox.fates()

    def keep_sending(self, ready: Event) -> None:
        """Send until nothing is pending and nothing more will come."""
        while not self._over.is_set():
            last = ready.is_set()
            self.send()
            if last:
                return
            ready.wait(_LOOK)

    def stop(self) -> None:
        """Send no further frame; what is pending stays in the outbox."""
        self._over.set()

    def _send_to(self, name: str, told: Told) -> None:
        waits = pauses(self._noise)
        while not self._over.is_set() and (frame := self.outbox.next_frame(name)) is not None:
            status = self._try(name, frame)
            try:
                if status is not None and status in _FATES:
                    self.outbox.settle(frame.id, _FATES[status], status)
                    told(name, frame.window, status)
                    waits = pauses(self._noise)
                    continue
                if time.time() >= self._parameters.closes(frame.window):
                    self.outbox.postpone(frame.id, status)
                    continue
            except DiskFull:
                pass  # it stays pending: the same bytes go out again, and are known there
            self._over.wait(next(waits))

    def _try(self, name: str, frame: PendingFrame) -> int | None:
        what = "commit" if frame.seq is None else f"b/{frame.seq}"
        path = f"/v1/{self._parameters.stream}/w/{frame.window}/s/{self.outbox.sensor}/{what}"
        try:
            status, _ = self._links[name].call("PUT", path, frame.body, signed=frame.signature)
        except Unreachable:
            return None
        return status


def fetch_parameters(url: str, stream: str, identity: Identity, *, to: str) -> ParameterFile:
    """The parameter set in force, for a sensor that joins: a server gives it, the owner's signature vouches for it."""
    link = Link(url, to=to, identity=identity)
    try:
        status, body = link.call("GET", f"/v1/{stream}/parameters")
    finally:
        link.close()
    if status != 200:
        raise BadCall(status, f"{to}: it knows no stream {stream!r}. Check the name and the address.")
    return verify_parameters(body, identity.authority)


def send_stream(sensor: Device, batches: Iterable[tuple[int, int, Floats]]) -> dict[str, dict[str, int]]:
    """Put batches into the outbox while what is there is sent; a window is committed when the next one begins."""
    ready = Event()
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(sensor.keep_sending, ready)
        try:
            at: int | None = None
            for window, seq, rows in batches:
                if at is not None and window != at:
                    sensor.outbox.finish(at)
                at = window
                sensor.outbox.add(window, seq, rows)
            if at is not None:
                sensor.outbox.finish(at)
        except WindowError:
            raise  # what was paid for is sent all the same, before this leaves the pool
        except BaseException:
            sensor.stop()
            raise
        finally:
            ready.set()
        sending.result()
    return sensor.outbox.fates()


def cut_batches(rows: Iterable[Floats], size: int, window: int | None) -> Iterator[tuple[int, int, Floats]]:
    """Window, number and readings of each batch, the same for the same source however it arrives.

    Without a `window` the first column says it; a window that is over does not come back.
    """
    at, seq, waiting, seen = window, 0, np.empty((0, 0)), set[int]()
    for piece in rows:
        for own, part in _parts(piece, window):
            if own != at and at is not None and len(waiting):
                yield at, seq, waiting
                seq, waiting = 0, np.empty((0, 0))
            if own != at:
                if own in seen:
                    raise DataError(f"window {own}: its readings are not all together. Sort the source by window.")
                at, seq = own, 0
            seen.add(own)
            waiting = np.concatenate([waiting, part]) if len(waiting) else part
            while len(waiting) >= size:
                yield own, seq, waiting[:size]
                seq, waiting = seq + 1, waiting[size:]
    if at is not None and len(waiting):
        yield at, seq, waiting


def _parts(piece: Floats, window: int | None) -> Iterator[tuple[int, Floats]]:
    if window is not None:
        yield window, piece
        return
    column = piece[:, 0]
    if not (np.isfinite(column).all() and (column >= 0).all() and (column == np.floor(column)).all()):
        raise DataError(f"{WINDOW}: a window is a whole number from 0 on. Write one in every row.")
    for part in np.split(piece, np.flatnonzero(np.diff(column)) + 1):
        if len(part):
            yield int(part[0, 0]), part[:, 1:]
