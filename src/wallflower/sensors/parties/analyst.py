"""The analyst: keeps perturbed readings, and leads the two servers through the steps of a window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.vault import OpenVault, Vault
from wallflower.sensors.detectors import DBSCAN, detector_by_name
from wallflower.sensors.parameters import Paper
from wallflower.sensors.parties.client import Link, Unreachable
from wallflower.sensors.parties.intake import BadCall
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.parties.parameter_file import ParameterFile
from wallflower.sensors.parties.party import log
from wallflower.sensors.parties.server import Server
from wallflower.sensors.protocol.frames import Frame, FrameError, Kind, decode, encode
from wallflower.sensors.protocol.holdings import ReadingList
from wallflower.sensors.protocol.rounds import conclude, rows, steps


class Analyst(Server):
    """Asks the correction server, step by step."""

    role: ClassVar[Literal["analyst"]] = "analyst"  # type: ignore[misc]

    def __init__(
        self,
        identity: Identity,
        signed: ParameterFile,
        store: Path,
        *,
        owner: str,
        correction: str,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        settings = signed.parameters.settings
        if isinstance(settings, Paper) and settings.detector != DBSCAN:
            detector_by_name(settings.detector)  # a package that is missing is an error now, not in the first window
        super().__init__(identity, signed, store, owner=owner, vault=vault)
        self._partner = Link(correction, to="correction", identity=identity, signed=signed)

    def exchange(self, window: int) -> bool:
        try:
            self._judge(window)
        except Unreachable:
            if not self.give_up(window):
                raise
        except BadCall as refusal:
            log.info("window %d: the correction server refuses (%d)", window, refusal.status)
            if not self.give_up(window):
                raise Unreachable(f"correction: answers {refusal.status}.") from None
        return True

    def _judge(self, window: int) -> None:
        every = self.list_readings(window)
        present = self._manifest(window, every)
        held = self.hold_common(window, every, present)
        asked: dict[str, Frame] = {}
        answered: dict[str, Frame] = {}
        for step in steps(self.parameters):
            if self.store.letter(window, step.name) is None:
                arrays = step.ask(held, asked, answered, self.noise)
                count = len(next(iter(arrays.values())))
                self.store.write(window, step.name, self._encode(window, step.asks, count, arrays))
            reply = self._fetch_answer(window, step.name, step.answers)
            if reply.count not in rows(step, held, answer=True):
                raise BadCall(422, f"{step.name}: the answer has not as many rows as it must have.")
            letter = self.store.letter(window, step.name)
            asked[step.name] = self._decode(b"" if letter is None else letter.asked or b"", step.asks)
            answered[step.name] = reply
        found = conclude(held, asked, answered)
        body = self.write_report(window, every, present, found, "" if found is not None else "threshold")
        self.store.move(window, "exchanged", result=(body, None))
        log.info("window %d: exchanged, %d readings at both", window, len(held))

    def _manifest(self, window: int, every: ReadingList) -> NDArray[np.bool_]:
        if self.store.letter(window, "manifest") is None:
            body = self._encode(window, Kind.MANIFEST, len(every.ids), {"ids": every.ids})
            self.store.write(window, "manifest", body)
        reply = self._fetch_answer(window, "manifest", Kind.PRESENT)
        if reply.count != len(every.ids):
            raise BadCall(422, "manifest: the answer has not as many rows as were asked for.")
        return reply["present"]

    def _fetch_answer(self, window: int, name: str, kind: Kind) -> Frame:
        """The answer to a letter that is stored: the stored one, or the one the partner gives now, then stored."""
        letter = self.store.letter(window, name)
        if letter is None or letter.asked is None:
            raise Unreachable(f"{name}: not written yet.")
        if letter.answered is not None:
            return self._decode(letter.answered, kind)
        path = f"/v1/{self.parameters.stream}/w/{window}/{name}"
        status, body = self._partner.call("POST", path, letter.asked)
        if status == 425 or status >= 500:
            raise Unreachable(f"correction: answers {status}.")
        if status != 200:
            raise BadCall(status, f"{name}: the correction server refuses.")
        frame = self._decode(body, kind)
        self.store.answer(window, name, body)
        self.note_progress(window)
        return frame

    def _decode(self, body: bytes, kind: Kind) -> Frame:
        try:
            return decode(body, parameters=self.parameters.hash, kinds=(kind,))
        except FrameError as error:
            raise BadCall(422, str(error)) from None

    def _encode(self, window: int, kind: Kind, count: int, arrays: dict[str, Any]) -> bytes:
        return encode(Frame(kind=kind, parameters=self.parameters.hash, window=window, count=count, arrays=arrays))

    def _lasting_batches(self, window: int) -> Iterator[tuple[bytes, bytes]]:
        """Batches without their keys."""
        for body in self.store.batches(window):
            frame = decode(body, parameters=self.parameters.hash)
            bare = Frame(
                kind=Kind.READINGS,
                parameters=frame.parameters,
                window=window,
                columns=frame.columns,
                sensor=frame.sensor,
                seq=frame.seq,
                count=frame.count,
                arrays={name: frame[name] for name in ("ids", "perturbed")},
            )
            yield body, encode(bare)
