"""Taking in what sensors send: who it is, whether it is whole, and whether it is new.

A batch is believed when the caller's certificate names the sensor of the path, the sensor's key has signed exactly
these bytes, and the frame inside says the same as the path. What is wrong is refused by its status:

201 new · 200 the same bytes again · 403 not theirs · 409 other bytes · 410 window closed · 413 too large
422 outside the domain · 425 too early
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

import numpy as np

from wallflower.errors import PrivacyError
from wallflower.sensors.parameters import MOST_BATCH, Exact, Parameters
from wallflower.sensors.parties.keys import Peer
from wallflower.sensors.parties.parameter_file import ParameterFile
from wallflower.sensors.parties.windows import Windows
from wallflower.sensors.protocol.batches import Commit, digest
from wallflower.sensors.protocol.findings import SignedCommit
from wallflower.sensors.protocol.frames import Frame, FrameError, Kind, decode
from wallflower.sensors.protocol.rounds import keys_of
from wallflower.sensors.protocol.seals import Forgery, require_signature

KINDS: Final[Mapping[tuple[str, str], Kind]] = {
    ("analyst", "exact"): Kind.READINGS_AND_KEYS,
    ("correction", "exact"): Kind.KEYS,
    ("analyst", "grid"): Kind.READINGS,
    ("correction", "grid"): Kind.MOVES,
    ("analyst", "paper"): Kind.READINGS,
    ("correction", "paper"): Kind.MOVES,
    ("owner", "direct"): Kind.BITS,
}


class BadCall(PrivacyError):
    """A call that is answered with a status other than success."""

    exit_code: ClassVar[int] = 4

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Collector:
    """The part of a party that sensors talk to."""

    def __init__(self, role: str, signed: ParameterFile, store: Windows) -> None:
        self.role, self.signed, self.store = role, signed, store
        self.parameters: Parameters = signed.parameters
        self.kind = KINDS.get((role, self.parameters.settings.mode))

    def batch(self, peer: Peer, signature: bytes, body: bytes, place: tuple[int, int, int]) -> int:
        """Take one batch for (window, sensor, seq)."""
        frame = self._frame(peer, signature, body, place[:2], self.kind)
        if frame.seq != place[2] or frame.columns != len(self.parameters.columns) or not frame.count:
            raise FrameError("header: the frame is not the batch that the path names. Send it where it belongs.")
        if isinstance(self.parameters.settings, Exact):
            keys_of(frame, self.parameters.settings)
        status = self.store.take(*place, body, frame.count, closed=self.is_closed(place[0]))
        if status in (409, 410):
            raise BadCall(status, _WORDS[status])
        return status

    def commit(self, peer: Peer, signature: bytes, body: bytes, place: tuple[int, int]) -> int:
        """Take the end of a sensor's window, when all that it announces is here."""
        window, sensor = place
        frame = self._frame(peer, signature, body, place, Kind.COMMIT)
        said = Commit.from_bytes(frame.rest)
        held = list(self.frames(window, sensor))
        if not self.is_closed(window) and self.store.state(window) in ("open", "collecting"):
            if len(held) < frame.seq:
                raise BadCall(425, "commit: not all batches are here yet. Send them, then the commit again.")
            ids = np.concatenate([np.empty(0, np.uint64), *(one["ids"] for one in held)])
            if len(held) != frame.seq or len(ids) != frame.count or digest(ids) != said.digest:
                raise FrameError("commit: it does not fit the batches that came. Send both as they were made.")
        status = self.store.commit(
            window, sensor, SignedCommit(body, signature, peer.certificate), closed=self.is_closed(window)
        )
        if status in (409, 410):
            raise BadCall(status, _WORDS[status])
        return status

    def is_closed(self, window: int) -> bool:
        return time.time() >= self.parameters.closes(window)

    def is_over(self, window: int) -> bool:
        """Whether a window takes no more: by the clock, or because every sensor has finished."""
        wanted = self.parameters.sensors
        return self.is_closed(window) or (0 < wanted <= len(self.store.commits(window)))

    def frames(self, window: int, sensor: int | None = None) -> Iterator[Frame]:
        """The batches of a window, decoded."""
        for body in self.store.batches(window, sensor):
            yield decode(body, parameters=self.parameters.hash)

    def read_commits(self, window: int) -> dict[int, tuple[Frame, Commit]]:
        """What each sensor that finished said at the end."""
        found = {}
        for sensor, kept in self.store.commits(window).items():
            frame = decode(kept.body, parameters=self.parameters.hash)
            found[sensor] = (frame, Commit.from_bytes(frame.rest))
        return found

    def _frame(self, peer: Peer, signature: bytes, body: bytes, place: tuple[int, int], kind: Kind | None) -> Frame:
        window, sensor = place
        if peer.name != f"sensor-{sensor}":
            raise Forgery(f"{peer.name}: its certificate is not that of sensor {sensor}. Send under your own number.")
        require_signature(peer.key, signature, body)
        kinds = () if kind is None else (kind,)
        frame = decode(body, parameters=self.parameters.hash, kinds=kinds, most=_MOST.get(kind, MOST_BATCH))
        if (frame.window, frame.sensor) != place:
            raise FrameError("header: the frame is not the batch that the path names. Send it where it belongs.")
        if self.parameters.earliest(window) > time.time():
            raise BadCall(425, "window: it has not begun here. Send the same again later, or check the clocks.")
        return frame


_MOST: Final[Mapping[Kind | None, int]] = {Kind.COMMIT: 2**24}
_WORDS: Final = {
    409: "other bytes were sent for this before. A frame is made once; send the one in the outbox.",
    410: "the window is closed. What was not sent in time stays unjudged.",
}


def body_digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
