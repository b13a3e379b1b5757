"""A sensor as a program: readings go into its outbox, and from there to their recipients until they have arrived."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, StateUnreachable
from wallflower.machine.vault import OpenVault, Vault
from wallflower.noise import Noise, system_noise
from wallflower.privacy import Exact
from wallflower.sensors.device import recipients
from wallflower.sensors.parties.client import Link, Unreachable, retry_delays
from wallflower.sensors.parties.keys import Identity, SignedParameters, verify_parameters
from wallflower.sensors.parties.outbox import Outbox, PendingFrame, WindowError
from wallflower.sensors.parties.party import BadCall

Floats = NDArray[np.float64]
OnSent = Callable[[str, int, int], None]  # called with recipient, window and status

WINDOW_COLUMN: Final = "window"  # the column with the window of a reading
# Responses that decide the fate of a frame. After others, such as 425 (too early) and 403 (unknown), it is kept.
_FATES: Final[Mapping[int, str]] = {
    200: "sent",
    201: "sent",
    410: "late",
    409: "refused",
    413: "refused",
    422: "refused",
}
_POLL_SECONDS: Final = 0.05  # between two looks into the outbox


class Device:
    """One sensor. Its outbox needs no network; `send` ends when every frame has arrived or is late."""

    def __init__(
        self,
        identity: Identity,
        signed: SignedParameters,
        store: Path,
        urls: Mapping[str, str],
        *,
        budget: Exact | None = None,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        self._signed, self._parameters = signed, signed.parameters
        self._noise: Noise = system_noise()
        self._stopping = Event()
        self._links = {
            name: Link(urls[name], to=name, identity=identity, signed=signed) for name in recipients(signed.parameters)
        }
        self.outbox = Outbox(store, identity=identity, parameters=signed.parameters, noise=self._noise, vault=vault)
        if budget is not None:
            self.outbox.set_limit(budget)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for link in self._links.values():
            link.close()
        self.outbox.close()

    def check(self) -> None:
        """Raise BadCall if a server has another parameter set in force; servers that are down are skipped."""
        path = f"/v1/{self._parameters.stream}/parameters?hash={self._parameters.hash.hex()}"
        for name, link in self._links.items():
            try:
                status, _ = link.call("GET", path)
            except Unreachable:
                continue
            if status == 409:
                raise BadCall(409, f"{name}: another parameter set is in force there. Use that one and start again.")

    def send(self, on_sent: OnSent = lambda *_: None) -> dict[str, dict[str, int]]:
        """Send pending frames to all recipients at once; return how many were sent, late or refused."""
        self.outbox.resume()
        with ThreadPoolExecutor(len(self._links)) as pool:
            for task in [pool.submit(self._send_to, name, on_sent) for name in self._links]:
                task.result()
        return self.outbox.count_frames()

    def keep_sending(self, ready: Event) -> None:
        """Send until nothing is pending and nothing more will come."""
        while not self._stopping.is_set():
            is_last = ready.is_set()
            self.send()
            if is_last:
                return
            ready.wait(_POLL_SECONDS)

    def stop(self) -> None:
        """Send no further frame; pending ones stay in the outbox."""
        self._stopping.set()

    def _send_to(self, name: str, on_sent: OnSent) -> None:
        delays = retry_delays(self._noise)
        while not self._stopping.is_set() and (frame := self.outbox.next_frame(name)) is not None:
            status = self._try(name, frame)
            try:
                if status is not None and status in _FATES:
                    self.outbox.settle(frame.id, _FATES[status], status)
                    on_sent(name, frame.window, status)
                    delays = retry_delays(self._noise)
                    continue
                if time.time() >= self._parameters.closes_at(frame.window):
                    self.outbox.postpone(frame.id, status)
                    continue
            except StateUnreachable:
                pass  # it stays pending: the same bytes are sent again, and recognised
            self._stopping.wait(next(delays))

    def _try(self, name: str, frame: PendingFrame) -> int | None:
        item = "commit" if frame.seq is None else f"b/{frame.seq}"
        path = f"/v1/{self._parameters.stream}/w/{frame.window}/s/{self.outbox.sensor}/{item}"
        try:
            status, _ = self._links[name].call("PUT", path, frame.body, signature=frame.signature)
        except Unreachable:
            return None
        return status


def fetch_parameters(url: str, stream: str, identity: Identity, *, to: str) -> SignedParameters:
    """Fetch the parameter set in force from a server; the stream owner's signature proves it."""
    link = Link(url, to=to, identity=identity)
    try:
        status, body = link.call("GET", f"/v1/{stream}/parameters")
    finally:
        link.close()
    if status != 200:
        raise BadCall(status, f"{to}: no stream {stream!r} there. Check the name and the address.")
    return verify_parameters(body, identity.authority)


def send_stream(sensor: Device, batches: Iterable[tuple[int, int, Floats]]) -> dict[str, dict[str, int]]:
    """Store batches in the outbox while stored ones are sent; a window is committed when the next one begins."""
    ready = Event()
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(sensor.keep_sending, ready)
        try:
            current: int | None = None
            for window, seq, rows in batches:
                if current is not None and window != current:
                    sensor.outbox.finish(current)
                current = window
                sensor.outbox.add(window, seq, rows)
            if current is not None:
                sensor.outbox.finish(current)
        except WindowError:
            raise  # charged frames are still sent, before this leaves the pool
        except BaseException:
            sensor.stop()
            raise
        finally:
            ready.set()
        sending.result()
    return sensor.outbox.count_frames()


def cut_batches(rows: Iterable[Floats], size: int, window: int | None) -> Iterator[tuple[int, int, Floats]]:
    """Yield window, number and readings of each batch, the same for the same source however it is cut into pieces.

    Without a `window` the first column is the window; the readings of a window must be together.
    """
    current, seq, waiting, seen = window, 0, np.empty((0, 0)), set[int]()
    for piece in rows:
        for number, part in _split_by_window(piece, window):
            if number != current and current is not None and len(waiting):
                yield current, seq, waiting
                seq, waiting = 0, np.empty((0, 0))
            if number != current:
                if number in seen:
                    raise DataError(f"window {number}: its readings are not all together. Sort the source by window.")
                current, seq = number, 0
            seen.add(number)
            waiting = np.concatenate([waiting, part]) if len(waiting) else part
            while len(waiting) >= size:
                yield number, seq, waiting[:size]
                seq, waiting = seq + 1, waiting[size:]
    if current is not None and len(waiting):
        yield current, seq, waiting


def _split_by_window(piece: Floats, window: int | None) -> Iterator[tuple[int, Floats]]:
    if window is not None:
        yield window, piece
        return
    column = piece[:, 0]
    if not (np.isfinite(column).all() and (column >= 0).all() and (column == np.floor(column)).all()):
        raise DataError(f"{WINDOW_COLUMN}: must be a whole number from 0 on. Write one in every row.")
    for part in np.split(piece, np.flatnonzero(np.diff(column)) + 1):
        if len(part):
            yield int(part[0, 0]), part[:, 1:]
