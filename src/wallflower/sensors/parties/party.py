"""What servers and stream owner share: intake of sensors' frames, a store, and a worker that advances every window.

A batch is accepted if the caller's certificate names the sensor of the path, the sensor's key has signed exactly these
bytes, and the frame inside says the same as the path. A call is answered by its status:

201 new · 200 the same bytes again · 403 not the caller's · 409 other bytes · 410 window closed · 413 too large
422 outside the domain · 425 too early

The worker looks at each unfinished window and takes its next step, if it can be taken. A step that fails because
another party is missing is retried after a delay that grows until a step succeeds; a step that was taken is never
undone.
"""

from __future__ import annotations

import hashlib
import logging
import ssl
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Event, RLock, Thread
from typing import ClassVar, Final

import numpy as np

from wallflower.errors import PrivacyError, error_place
from wallflower.machine.vault import OpenVault, Vault
from wallflower.noise import Noise, system_noise
from wallflower.sensors.parameters import MAX_BATCH_READINGS, Exact, Parameters
from wallflower.sensors.parties.client import Unreachable, retry_delays
from wallflower.sensors.parties.keys import Identity, Peer, Revocations, SignedParameters, identify
from wallflower.sensors.parties.store import WindowStore
from wallflower.sensors.protocol.findings import SignedCommit
from wallflower.sensors.protocol.frames import (
    MAX_ROWS,
    BatchId,
    Commit,
    Forgery,
    Frame,
    FrameError,
    Kind,
    decode,
    digest_ids,
    verify_signature,
)
from wallflower.sensors.protocol.rounds import read_keys

log: Final = logging.getLogger("wallflower.sensors")
_TICK_SECONDS: Final = 0.2  # between two looks at the clock
_STOP_SECONDS: Final = 10
# The frames that a party gets from sensors, by role and mode.
_KINDS: Final[Mapping[tuple[str, str], Kind]] = {
    ("analyst", "exact"): Kind.READINGS_AND_KEYS,
    ("correction", "exact"): Kind.KEYS,
    ("analyst", "grid"): Kind.READINGS,
    ("correction", "grid"): Kind.MOVES,
    ("analyst", "paper"): Kind.READINGS,
    ("correction", "paper"): Kind.MOVES,
    ("owner", "direct"): Kind.BITS,
}
_REFUSALS: Final = {
    409: "other bytes were sent for this before. A frame is made once; send the one in the outbox.",
    410: "the window is closed. Readings that were not sent in time stay unjudged.",
}


class BadCall(PrivacyError):
    """A call that is answered with a status other than success."""

    exit_code: ClassVar[int] = 4

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Collector:
    """The intake of a party: checks what sensors send, and stores it."""

    def __init__(self, role: str, parameters: Parameters, store: WindowStore) -> None:
        self.store, self.parameters = store, parameters
        self.kind = _KINDS.get((role, parameters.settings.mode))

    def add_batch(self, peer: Peer, signature: bytes, body: bytes, batch: BatchId) -> int:
        """Store one batch and return its status."""
        frame = self._check_frame(peer, signature, body, batch, self.kind, MAX_BATCH_READINGS)
        if frame.seq != batch.seq or frame.columns != len(self.parameters.columns) or not frame.count:
            raise FrameError("header: the frame is not the batch that the path names. Send it where it belongs.")
        if isinstance(self.parameters.settings, Exact):
            read_keys(frame, self.parameters.settings)
        closed = self.is_closed(batch.window)
        return _check_status(
            self.store.add_batch(batch.window, batch.sensor, batch.seq, body, frame.count, closed=closed)
        )

    def add_commit(self, peer: Peer, signature: bytes, body: bytes, batch: BatchId) -> int:
        """Store the end of a sensor's window, if all batches that it announces are here."""
        window, sensor = batch.window, batch.sensor
        frame = self._check_frame(peer, signature, body, batch, Kind.COMMIT, MAX_ROWS)
        commit = Commit.from_bytes(frame.rest)
        batches = list(self.frames(window, sensor))
        if not self.is_closed(window) and self.store.state(window) in ("open", "collecting"):
            if len(batches) < frame.seq:
                raise BadCall(425, "commit: not all batches are here yet. Send them, then the commit again.")
            ids = np.concatenate([np.empty(0, np.uint64), *(batch["ids"] for batch in batches)])
            if len(batches) != frame.seq or len(ids) != frame.count or digest_ids(ids) != commit.digest:
                raise FrameError("commit: it does not fit the batches that came. Send both as they were made.")
        signed = SignedCommit(body, signature, peer.certificate)
        return _check_status(self.store.add_commit(window, sensor, signed, closed=self.is_closed(window)))

    def is_closed(self, window: int) -> bool:
        """Whether the clock has closed a window."""
        return time.time() >= self.parameters.closes_at(window)

    def is_complete(self, window: int) -> bool:
        """Whether a window takes no more readings: by the clock, or because every sensor has finished."""
        sensors = self.parameters.sensors
        return self.is_closed(window) or (0 < sensors <= len(self.store.commits(window)))

    def frames(self, window: int, sensor: int | None = None) -> Iterator[Frame]:
        """Yield the batches of a window, decoded."""
        for body in self.store.batches(window, sensor):
            yield decode(body, parameters=self.parameters.hash)

    def read_commits(self, window: int) -> dict[int, tuple[Frame, Commit]]:
        """Return the commit of each sensor that finished."""
        commits = {}
        for sensor, signed in self.store.commits(window).items():
            frame = decode(signed.body, parameters=self.parameters.hash)
            commits[sensor] = (frame, Commit.from_bytes(frame.rest))
        return commits

    def _check_frame(
        self, peer: Peer, signature: bytes, body: bytes, batch: BatchId, kind: Kind | None, max_rows: int
    ) -> Frame:
        if peer.name != f"sensor-{batch.sensor}":
            raise Forgery(f"{peer.name}: its certificate is not that of sensor {batch.sensor}. Use your own number.")
        verify_signature(peer.key, signature, body)
        kinds = () if kind is None else (kind,)
        frame = decode(body, parameters=self.parameters.hash, kinds=kinds, max_rows=max_rows)
        if (frame.window, frame.sensor) != (batch.window, batch.sensor):
            raise FrameError("header: the frame is not the batch that the path names. Send it where it belongs.")
        if self.parameters.accepts_from(batch.window) > time.time():
            raise BadCall(425, "window: it has not begun here. Send the same again later, or check the clocks.")
        return frame


class Party(ABC):
    """One process of the stream. `advance` takes one window one step further and says whether it did."""

    role: ClassVar[str]

    def __init__(
        self, identity: Identity, signed: SignedParameters, store: Path, *, vault: Vault | OpenVault | None = None
    ) -> None:
        self.identity, self.signed = identity, signed
        self.parameters: Parameters = signed.parameters
        self._revocations = Revocations(identity.folder, identity.authority)
        self._contexts: list[ssl.SSLContext] = []  # TLS settings, to which new revocations are applied
        self.store = WindowStore(store, parameters=self.parameters.hash, party=self.role, vault=vault)
        self.collector = Collector(self.role, self.parameters, self.store)
        self.noise: Noise = system_noise()
        self.lock = RLock()
        self._woken, self._stopping = Event(), Event()
        self._worker = Thread(target=self._work, name=f"{self.role} worker", daemon=True)
        self._retries: dict[int, tuple[float, Iterator[float]]] = {}  # by window: when it is due, and the next delays

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """Stop after the current step."""
        self._stopping.set()
        self.wake()
        if self._worker.is_alive():
            self._worker.join(timeout=_STOP_SECONDS)
        self.store.close()

    def identify(self, certificate: bytes) -> Peer:
        """Return the party of a certificate; raise Forgery if it is not valid or was revoked."""
        peer = identify(certificate, self.identity.authority)
        return self.signed.check_peer(self._revocations.check_peer(peer))

    def refresh_revocations(self) -> None:
        """Read the revocation list again, if it has changed; an invalid list changes nothing."""
        try:
            if self._revocations.refresh():
                for context in self._contexts:
                    self._revocations.apply(context)
                log.info("a new list of revoked certificates is in force")
        except (PrivacyError, OSError) as error:
            log.error("the list of revoked certificates is not valid: %s", type(error).__name__)

    def server_context(self) -> ssl.SSLContext:
        """Return TLS settings that require a certificate of the authority that was not revoked."""
        context = self.identity.server_context()
        self._revocations.apply(context)
        self._contexts.append(context)
        return context

    def wake(self) -> None:
        """Have the worker look at once."""
        self._woken.set()

    @abstractmethod
    def advance(self, window: int) -> bool:
        """Take one step of a window, if it can be taken; return whether it was."""

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._woken.wait(_TICK_SECONDS)
            self._woken.clear()
            self.refresh_revocations()
            try:
                windows = self.store.list_unfinished()
            except PrivacyError as error:
                log.error("the store fails: %s", type(error).__name__)
                continue
            for window in windows:
                if not self._stopping.is_set():
                    self._advance_window(window)

    def note_progress(self, window: int) -> None:
        """Reset the retry delay of a window that advanced. Only the worker calls this."""
        self._retries.pop(window, None)

    def _advance_window(self, window: int) -> None:
        if window in self._retries and time.monotonic() < self._retries[window][0]:
            return
        try:
            while self.advance(window) and not self._stopping.is_set():
                self.note_progress(window)
        except Unreachable as reason:
            log.info("window %d: waiting: %s", window, reason)
            self._schedule_retry(window)
        except Exception as error:  # noqa: BLE001 - the worker must live on, and a message may hold a reading
            log.error("window %d: %s at %s", window, type(error).__name__, error_place(error.__traceback__))
            self._schedule_retry(window)

    def _schedule_retry(self, window: int) -> None:
        _, delays = self._retries.get(window, (0.0, retry_delays(self.noise)))
        self._retries[window] = (time.monotonic() + next(delays), delays)


def digest_body(body: bytes) -> bytes:
    """Return the SHA-256 by which a request is recognised."""
    return hashlib.sha256(body).digest()


def _check_status(status: int) -> int:
    if status in _REFUSALS:
        raise BadCall(status, _REFUSALS[status])
    return status
