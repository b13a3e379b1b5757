"""The correction server: holds what corrects the readings, answers the analyst, and forgets after delivery."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from wallflower.sensors.parties.intake import BadCall, body_digest
from wallflower.sensors.parties.keys import Peer
from wallflower.sensors.parties.party import log
from wallflower.sensors.parties.server import Server
from wallflower.sensors.protocol.frames import Frame, FrameError, Kind, decode, encode
from wallflower.sensors.protocol.holdings import ReadingList
from wallflower.sensors.protocol.rounds import Step, conclude, rows, steps
from wallflower.sensors.protocol.seals import Forgery, require_signature


class CorrectionServer(Server):
    """Answers step by step; the last answer and its own report are stored together."""

    role: ClassVar[Literal["correction"]] = "correction"  # type: ignore[misc]

    def exchange(self, window: int) -> bool:
        return self.give_up(window)

    def answer(self, peer: Peer, signature: bytes, body: bytes, window: int, name: str) -> bytes:
        """The answer to one step of the analyst: the same bytes for the same question, however often."""
        if peer.name != "analyst":
            raise Forgery(f"{peer.name}: only the analyst asks for this.")
        require_signature(peer.key, signature, body)
        with self.turn:
            known = self.store.letter(window, name)
            if known is not None:
                if known.digest != body_digest(body) or known.answered is None:
                    raise BadCall(409, f"{name}: something else was asked before. A step is taken once.")
                return known.answered
            state = self.store.state(window)
            if state in ("open", "collecting") and not self.seal(window):
                raise BadCall(425, "the window is still open here. Ask again a little later.")
            if state in ("exchanged", "delivered", "purged"):
                raise BadCall(410, "the window is over here. What was not exchanged in time stays unjudged.")
            return self._step(window, name, body)

    def _step(self, window: int, name: str, body: bytes) -> bytes:
        every, order = self.list_readings(window), steps(self.parameters)
        if name == "manifest":
            frame = self._decode(body, window, Kind.MANIFEST)
            there = np.isin(frame["ids"], every.ids, assume_unique=True)
            reply = self._encode(window, Kind.PRESENT, len(there), {"present": there})
            return self._store_reply(window, name, body, reply, last=not order, every=every)
        step = next((one for one in order if one.name == name), None)
        if step is None:
            raise BadCall(404, f"{name}: no step of this stream.")
        before = ("manifest", *(one.name for one in order[: order.index(step)]))
        if any(self.store.letter(window, earlier) is None for earlier in before):
            raise BadCall(409, f"{name}: an earlier step is missing. Take the steps in their order.")
        return self._store_reply(
            window, name, body, self._reply(window, step, body, every), last=step is order[-1], every=every
        )

    def _reply(self, window: int, step: Step, body: bytes, every: ReadingList) -> bytes:
        held = self.hold_common(window, every, self._present(window, every))
        frame = self._decode(body, window, step.asks)
        if frame.count not in rows(step, held, answer=False):
            raise FrameError(f"{step.name}: not as many rows as readings that both have. Send one for each.")
        asked, answered = self._read_letters(window)
        arrays = step.answer(held, asked | {step.name: frame}, answered, self.noise)
        return self._encode(window, step.answers, len(next(iter(arrays.values()), ())), arrays)

    def _store_reply(
        self, window: int, name: str, body: bytes, reply: bytes, *, last: bool, every: ReadingList
    ) -> bytes:
        """Store the answer; with the last one also the report, which is then due."""
        if not last:
            self.store.write(window, name, body, reply)
            return reply
        fresh = {name: (decode(body, parameters=self.parameters.hash), decode(reply, parameters=self.parameters.hash))}
        present = self._present(window, every, fresh.get("manifest", (None,))[0])
        asked, answered = self._read_letters(window)
        asked, answered = asked | {name: fresh[name][0]}, answered | {name: fresh[name][1]}
        found = conclude(self.hold_common(window, every, present), asked, answered)
        report = self.write_report(window, every, present, found, "" if found is not None else "threshold")
        self.store.move(window, "exchanged", **{name: (body, reply), "result": (report, None)})
        log.info("window %d: exchanged, %d readings at both", window, int(present.sum()))
        self.wake()
        return reply

    def _present(self, window: int, every: ReadingList, manifest: Frame | None = None) -> NDArray[np.bool_]:
        if manifest is None:
            letter = self.store.letter(window, "manifest")
            manifest = self._decode(b"" if letter is None else letter.asked or b"", window, Kind.MANIFEST)
        return np.isin(every.ids, manifest["ids"], assume_unique=True)

    def _read_letters(self, window: int) -> tuple[dict[str, Frame], dict[str, Frame]]:
        asked, answered = {}, {}
        for step in steps(self.parameters):
            letter = self.store.letter(window, step.name)
            if letter is not None and letter.asked is not None and letter.answered is not None:
                asked[step.name] = decode(letter.asked, parameters=self.parameters.hash)
                answered[step.name] = decode(letter.answered, parameters=self.parameters.hash)
        return asked, answered

    def _decode(self, body: bytes, window: int, kind: Kind) -> Frame:
        frame = decode(body, parameters=self.parameters.hash, kinds=(kind,))
        if frame.window != window:
            raise FrameError("header: the frame is not for the window that the path names. Send it where it belongs.")
        return frame

    def _encode(self, window: int, kind: Kind, count: int, arrays: dict[str, Any]) -> bytes:
        return encode(Frame(kind=kind, parameters=self.parameters.hash, window=window, count=count, arrays=arrays))
