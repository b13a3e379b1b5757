"""The owner: gets the servers' sealed reports, or in mode direct the sensors' sealed bits, and says what was found."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from wallflower.errors import PrivacyError
from wallflower.machine.files import write_text
from wallflower.machine.vault import OpenVault, Vault
from wallflower.sensors.parameters import Direct
from wallflower.sensors.parties.commitments import Words, weigh_commits
from wallflower.sensors.parties.intake import BadCall, body_digest
from wallflower.sensors.parties.keys import Identity, Peer
from wallflower.sensors.parties.owner_page import page
from wallflower.sensors.parties.parameter_file import ParameterFile
from wallflower.sensors.parties.party import Party, log
from wallflower.sensors.protocol.batches import TAG_KEY, Place, about, about_commit
from wallflower.sensors.protocol.findings import UNSOUND, Report, Tally, tally_reports, window_result
from wallflower.sensors.protocol.frames import Frame, FrameError, Kind, decode
from wallflower.sensors.protocol.seals import Forgery, require_signature, unseal

SERVERS: Final = ("analyst", "correction")
_RESULT: Final = "told"


class Owner(Party):
    """Reads what is sealed to it; a result, once told, does not change."""

    role: ClassVar[str] = "owner"

    def __init__(
        self,
        identity: Identity,
        signed: ParameterFile,
        store: Path,
        *,
        out: Path | None = None,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        if identity.seal is None or identity.seal_public != signed.parameters.seal:
            raise Forgery("the parameter set is sealed to another key. Use the owner's keys that it names.")
        super().__init__(identity, signed, store, vault=vault)
        self._seal: X25519PrivateKey = identity.seal
        self._out = out
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)

    def report(self, peer: Peer, signature: bytes, body: bytes) -> int:
        """Take a server's report: 201 new, 200 the same again, 409 another one, 410 the result was told without it.

        Refused in mode direct: a report ends the collecting of a window, which there is up to the sensors alone.
        """
        if isinstance(self.parameters.settings, Direct):
            raise Forgery(f"{peer.name}: in mode direct the sensors report, and no server takes part.")
        if peer.name not in SERVERS:
            raise Forgery(f"{peer.name}: only the two servers report.")
        require_signature(peer.key, signature, body)
        frame = decode(body, parameters=self.parameters.hash, kinds=(Kind.RESULT,))
        if self.parameters.earliest(frame.window) > time.time():
            raise BadCall(425, "the window has not begun. Report it when it is over.")
        self._open_report(peer.name, frame)
        with self.turn:
            known = self.store.letter(frame.window, peer.name)
            if known is not None:
                if known.digest == body_digest(body):
                    return 200
                raise BadCall(409, "another report was sent before. A window is reported once.")
            if self.store.letter(frame.window, _RESULT) is not None:
                raise BadCall(410, "the result was told already. What was not reported in time stays unjudged.")
            self.store.move(frame.window, "sealed")
            self.store.write(frame.window, peer.name, body)
        log.info("window %d: report of the %s", frame.window, peer.name)
        return 201

    def result(self, window: int) -> dict[str, Any] | None:
        """What was told of a window, if it is finished."""
        letter = self.store.letter(window, _RESULT)
        if letter is None or letter.answered is None:
            return None
        found: dict[str, Any] = json.loads(letter.answered)
        return found

    def results(self) -> list[dict[str, Any]]:
        """All that was told so far."""
        return [one for window, _ in self.store.list_states() if (one := self.result(window)) is not None]

    def page(self) -> str:
        return page(self.parameters, self.results(), self.store.list_states())

    def advance(self, window: int) -> bool:
        match self.store.state(window):
            case "collecting":
                if self.collector.is_over(window):
                    self.store.move(window, "sealed")
                    return True
                return False
            case "sealed":
                return self._tell(window)
            case "exchanged":
                self._publish(window)
                self.store.move(window, "delivered")
                return True
            case "delivered":
                self.store.forget(window, {})
                return True
            case _:
                return False

    def _tell(self, window: int) -> bool:
        with self.turn:
            direct = isinstance(self.parameters.settings, Direct)
            reports = {} if direct else self._reports(window)
            late = time.time() >= self.parameters.gives_up(window) + float(self.parameters.patience)
            if not direct and len(reports) < len(SERVERS) and not late:
                return False
            said: Words
            if direct:
                tally, said = self._bits(window), self.collector.read_commits(window)
            else:
                said, doubts = weigh_commits(self.parameters, window, reports, self.identify)
                tally = tally_reports(self.parameters, reports, lambda sensor: self._tag_key(window, sensor, said))
                tally.doubts = doubts
            found = window_result(self.parameters, window, tally, _sensors(said))
            found["reported"] = sorted(reports) or ["sensors"]
            self.store.move(window, "exchanged", **{_RESULT: (b"", json.dumps(found, sort_keys=True).encode("ascii"))})
        log.info("window %d: %d judged, %d unjudged", window, tally.judged, len(tally.unjudged))
        return True

    def _publish(self, window: int) -> None:
        if self._out is not None:
            found = self.result(window)
            write_text(self._out / f"window-{window}.json", json.dumps(found, indent=1) + "\n")
            write_text(self._out / "index.html", self.page())

    def _reports(self, window: int) -> dict[str, Report]:
        found = {}
        for name in SERVERS:
            letter = self.store.letter(window, name)
            if letter is not None and letter.asked is not None:
                frame = decode(letter.asked, parameters=self.parameters.hash)
                found[name] = self._open_report(name, frame)
        return found

    def _open_report(self, name: str, frame: Frame) -> Report:
        bound = self.parameters.hash + frame.window.to_bytes(8, "little") + name.encode("ascii")
        report = Report.from_bytes(unseal(self._seal, frame.rest, bound), self.parameters)
        if report.unjudged.window != frame.window or (report.found and report.found.window != frame.window):
            raise FrameError("report: it is about another window than its envelope. Send it as it was made.")
        return report

    def _tag_key(self, window: int, sensor: int, said: Words) -> bytes | None:
        letter = said[sensor][1].letter if sensor in said else b""
        try:
            key = unseal(self._seal, letter, about_commit(self.parameters, sensor, window)) if letter else b""
        except Forgery:
            return None
        return key if len(key) == TAG_KEY else None

    def _bits(self, window: int) -> Tally:
        tally = Tally()
        for frame in self.collector.frames(window):
            ids, sensors = frame["ids"], np.full(frame.count, frame.sensor, dtype=np.uint64)
            place = Place(sensor=frame.sensor, window=window, seq=frame.seq)
            try:
                packed = np.frombuffer(unseal(self._seal, frame.rest, about(self.parameters, place, ids)), np.uint8)
            except PrivacyError:
                tally.give_up(ids, sensors, UNSOUND)
                continue
            out = np.flatnonzero(np.unpackbits(packed, bitorder="little")[: frame.count])
            tally.judged += frame.count
            tally.flag(ids[out], sensors[out], ({"level": 1} for _ in out))
        return tally


def _sensors(said: Words) -> dict[str, dict[str, Any]]:
    """How many readings each sensor committed, and what it has spent, by its own signed word."""
    return {
        str(number): {"readings": frame.count, "spent": str(commit.spent)} for number, (frame, commit) in said.items()
    }
