"""What analyst and correction server share: the readings that both have, the report to the owner, and forgetting."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.vault import OpenVault, Vault
from wallflower.sensors.parties.client import Link, Unreachable
from wallflower.sensors.parties.intake import body_digest
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.parties.parameter_file import ParameterFile
from wallflower.sensors.parties.party import Party, log
from wallflower.sensors.protocol.findings import Report
from wallflower.sensors.protocol.frames import Frame, Kind, encode
from wallflower.sensors.protocol.holdings import ReadingList, hold, list_readings
from wallflower.sensors.protocol.rounds import Holdings
from wallflower.sensors.protocol.seals import seal

Array = NDArray[Any]


class Server(Party):
    """One of the two that judge together."""

    role: Literal["analyst", "correction"]  # type: ignore[misc]

    def __init__(
        self,
        identity: Identity,
        signed: ParameterFile,
        store: Path,
        *,
        owner: str,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        super().__init__(identity, signed, store, vault=vault)
        self._owner = Link(owner, to="owner", identity=identity, signed=signed)

    def advance(self, window: int) -> bool:
        match self.store.state(window):
            case "collecting":
                return self.seal(window)
            case "sealed":
                return self.exchange(window)
            case "exchanged":
                return self.deliver(window)
            case "delivered":
                return self.purge(window)
            case _:
                return False

    @abstractmethod
    def exchange(self, window: int) -> bool:
        """What this server does about a sealed window; whether it came further."""

    def seal(self, window: int) -> bool:
        """Take no more readings, if it is time."""
        with self.turn:
            if not self.collector.is_over(window):
                return False
            self.store.move(window, "sealed")
        log.info("window %d: sealed", window)
        return True

    def list_readings(self, window: int) -> ReadingList:
        """All that came."""
        return list_readings(self.parameters, self.role, self.collector.frames(window))

    def hold_common(self, window: int, every: ReadingList, present: Array) -> Holdings:
        """What both servers have."""
        return hold(self.parameters, self.role, window, every, present, lambda: self.collector.frames(window))

    def write_report(
        self, window: int, every: ReadingList, present: Array, found: Frame | None, failed: str = ""
    ) -> bytes:
        """The sealed report as a frame, finished: it is stored before it is sent."""
        missing = every.ids[~present] if found is not None else every.ids
        whose = every.sensors[~present] if found is not None else every.sensors
        left = Frame(
            kind=Kind.UNJUDGED,
            parameters=self.parameters.hash,
            window=window,
            count=len(missing),
            arrays={"ids": missing, "sensors": whose},
        )
        report = Report(found=found, unjudged=left, failed=failed, commits=self.store.commits(window))
        about = self.parameters.hash + window.to_bytes(8, "little") + self.role.encode("ascii")
        letter = seal(bytes.fromhex(self.parameters.seal), report.to_bytes(), about)
        return encode(Frame(kind=Kind.RESULT, parameters=self.parameters.hash, window=window, rest=letter))

    def give_up(self, window: int) -> bool:
        """Report every reading as unjudged when the other server was not there in time."""
        if time.time() < self.parameters.gives_up(window):
            return False
        with self.turn:
            if self.store.state(window) != "sealed":
                return True
            every = self.list_readings(window)
            none = np.zeros(len(every.ids), dtype=np.bool_)
            body = self.write_report(window, every, none, None, "exchange")
            self.store.move(window, "exchanged", result=(body, None))
        log.info("window %d: given up, %d readings unjudged", window, len(every.ids))
        return True

    def deliver(self, window: int) -> bool:
        """Send the report until the owner has it, or wants it no more."""
        letter = self.store.letter(window, "result")
        if letter is None or letter.asked is None:
            raise Unreachable("the report is not written yet.")
        status, _ = self._owner.call("POST", "/v1/results", letter.asked)
        if status not in (200, 201, 409, 410):
            raise Unreachable(f"owner: answers {status}.")
        self.store.move(window, "delivered")
        log.info("window %d: delivered (%d)", window, status)
        return True

    def purge(self, window: int) -> bool:
        """Forget keys and d_diff; the analyst keeps its perturbed readings, which are what it was sent to keep."""
        self.store.forget(window, {body_digest(body): kept for body, kept in self._lasting_batches(window)})
        log.info("window %d: purged", window)
        return True

    def _lasting_batches(self, window: int) -> Iterator[tuple[bytes, bytes]]:
        return iter(())
