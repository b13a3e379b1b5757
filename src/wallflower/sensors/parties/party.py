"""What the two servers and the owner have in common: a store, a clock, and a worker that takes every window further.

The worker looks at each unfinished window and takes its next step, if it can be taken. A step that fails for want of
another party is tried again after a pause that grows until a step succeeds; a step that was taken is never taken back.
"""

from __future__ import annotations

import logging
import ssl
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from threading import Event, RLock, Thread
from typing import ClassVar, Final

from wallflower.errors import PrivacyError
from wallflower.machine.vault import OpenVault, Vault
from wallflower.noise import Noise, system_noise
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.parties.client import Unreachable, pauses
from wallflower.sensors.parties.intake import Collector
from wallflower.sensors.parties.keys import Identity, Peer, who
from wallflower.sensors.parties.parameter_file import ParameterFile
from wallflower.sensors.parties.revocations import Revocations
from wallflower.sensors.parties.windows import Windows

log: Final = logging.getLogger("wallflower.sensors")
_TICK: Final = 0.2  # seconds between two looks at the clock


class Party:
    """One process of the stream. `advance` takes one window one step further and says whether it did."""

    role: ClassVar[str]

    def __init__(
        self, identity: Identity, signed: ParameterFile, store: Path, *, vault: Vault | OpenVault | None = None
    ) -> None:
        self.identity, self.signed = identity, signed
        self.revoked = Revocations(identity.folder, identity.authority)
        self.contexts: list[ssl.SSLContext] = []  # of TLS, for which the list counts too
        self.parameters: Parameters = signed.parameters
        self.store = Windows(store, parameters=self.parameters.hash, party=self.role, vault=vault)
        self.collector = Collector(self.role, signed, self.store)
        self.noise: Noise = system_noise()
        self.turn = RLock()
        self._woken, self._over = Event(), Event()
        self._worker = Thread(target=self._work, name=f"{self.role} worker", daemon=True)
        self._waits: dict[int, tuple[float, Iterator[float]]] = {}  # by window: when it is due, and the pauses to come

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        """End after the step that is being taken."""
        self._over.set()
        self.wake()
        if self._worker.is_alive():
            self._worker.join(timeout=10)
        self.store.close()

    def identify(self, certificate: bytes) -> Peer:
        """Whose certificate this is, or a refusal."""
        return self.signed.require(self.revoked.require(who(certificate, self.identity.authority)))

    def heed_revocations(self) -> None:
        """Read the list of revoked certificates again, if it has changed; what cannot be believed changes nothing."""
        try:
            if self.revoked.refresh():
                for context in self.contexts:
                    self.revoked.apply(context)
                log.info("a new list of revoked certificates is in force")
        except (PrivacyError, OSError) as error:
            log.error("the list of revoked certificates is not believed: %s", type(error).__name__)

    def server_context(self) -> ssl.SSLContext:
        """TLS that asks every caller for a certificate of the authority that was not taken back."""
        context = self.identity.server_context()
        self.revoked.apply(context)
        self.contexts.append(context)
        return context

    def wake(self) -> None:
        """Something came in: look at once."""
        self._woken.set()

    def advance(self, window: int) -> bool:
        raise NotImplementedError

    def windows(self) -> list[int]:
        """Windows that the worker looks at."""
        return self.store.list_unfinished()

    def _work(self) -> None:
        while not self._over.is_set():
            self._woken.wait(_TICK)
            self._woken.clear()
            self.heed_revocations()
            try:
                windows = self.windows()
            except PrivacyError as error:
                log.error("the store fails: %s", type(error).__name__)
                continue
            for window in windows:
                if not self._over.is_set():
                    self._further(window)

    def note_progress(self, window: int) -> None:
        """A window came a step further: the next pause is a short one again. Only the worker calls this."""
        self._waits.pop(window, None)

    def _further(self, window: int) -> None:
        if window in self._waits and time.monotonic() < self._waits[window][0]:
            return
        try:
            while self.advance(window) and not self._over.is_set():
                self.note_progress(window)
        except Unreachable as reason:
            log.info("window %d: waiting: %s", window, reason)
            self._pause(window)
        except Exception as error:  # noqa: BLE001 - the worker must live on, and a message may hold what nobody may see
            log.error("window %d: %s at %s", window, type(error).__name__, place(error))
            self._pause(window)

    def _pause(self, window: int) -> None:
        _, waits = self._waits.get(window, (0.0, pauses(self.noise)))
        self._waits[window] = (time.monotonic() + next(waits), waits)


def place(error: BaseException) -> str:
    """Where an unforeseen error came from. Its message and variables may hold readings, so they are not told."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
