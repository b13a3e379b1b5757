"""The two servers that judge a window together: analyst and correction server.

The analyst keeps perturbed readings and leads through the steps of a window. The correction server holds what corrects
them, answers, and forgets after delivery. Every request is stored before it is sent and every response before it is
returned, so that a restart repeats the same bytes.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.vault import OpenVault, Vault
from wallflower.sensors.detectors import DBSCAN, load_detector
from wallflower.sensors.parameters import Paper
from wallflower.sensors.parties.client import Link, Unreachable
from wallflower.sensors.parties.keys import Identity, Peer, SignedParameters
from wallflower.sensors.parties.party import BadCall, Party, digest_body, log
from wallflower.sensors.protocol.findings import Report
from wallflower.sensors.protocol.frames import (
    Array,
    Forgery,
    Frame,
    FrameError,
    Kind,
    decode,
    encode,
    report_context,
    seal,
    verify_signature,
)
from wallflower.sensors.protocol.rounds import (
    Holdings,
    ReadingList,
    Role,
    Step,
    allowed_rows,
    hold_common,
    list_readings,
    rounds_of,
)

_MANIFEST, _RESULT = "manifest", "result"  # messages besides those of the steps: which readings are there, the report


class Server(Party):
    """One of the two that judge together."""

    role: ClassVar[Role]

    def __init__(
        self,
        identity: Identity,
        signed: SignedParameters,
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
        """Take the next step of a sealed window; return whether it advanced."""

    def seal(self, window: int) -> bool:
        """Close a window for readings, if it is complete."""
        with self.lock:
            if not self.collector.is_complete(window):
                return False
            self.store.advance(window, "sealed")
        log.info("window %d: sealed", window)
        return True

    def list_readings(self, window: int) -> ReadingList:
        """Return all readings of a window."""
        return list_readings(self.parameters, self.role, self.collector.frames(window))

    def hold_common(self, window: int, readings: ReadingList, present: Array) -> Holdings:
        """Return what this server holds of the readings that both have."""
        frames = lambda: self.collector.frames(window)  # noqa: E731 - read again for every threshold
        return hold_common(self.parameters, self.role, window, readings, present, frames)

    def write_report(
        self, window: int, readings: ReadingList, present: Array, finding: Frame | None, failed: str = ""
    ) -> bytes:
        """Return the sealed report as a frame; it is stored before it is sent."""
        is_left = ~present if finding is not None else np.ones(len(readings.ids), dtype=np.bool_)
        unjudged = Frame(
            kind=Kind.UNJUDGED,
            parameters=self.parameters.hash,
            window=window,
            count=int(is_left.sum()),
            arrays={"ids": readings.ids[is_left], "sensors": readings.sensors[is_left]},
        )
        report = Report(finding=finding, unjudged=unjudged, failed=failed, commits=self.store.commits(window))
        context = report_context(self.parameters.hash, window, self.role)
        message = seal(bytes.fromhex(self.parameters.seal), report.to_bytes(), context)
        return encode(Frame(kind=Kind.RESULT, parameters=self.parameters.hash, window=window, rest=message))

    def give_up(self, window: int) -> bool:
        """Report every reading as unjudged, if the other server was not there in time."""
        if time.time() < self.parameters.gives_up_at(window):
            return False
        with self.lock:
            if self.store.state(window) != "sealed":
                return True
            readings = self.list_readings(window)
            nothing = np.zeros(len(readings.ids), dtype=np.bool_)
            body = self.write_report(window, readings, nothing, None, "exchange")
            self.store.advance(window, "exchanged", **{_RESULT: (body, None)})
        log.info("window %d: given up, %d readings unjudged", window, len(readings.ids))
        return True

    def deliver(self, window: int) -> bool:
        """Send the report until the stream owner has it, or no longer accepts it."""
        message = self.store.message(window, _RESULT)
        if message is None or message.request is None:
            raise Unreachable("the report is not written yet.")
        status, _ = self._owner.call("POST", "/v1/results", message.request)
        if status not in (200, 201, 409, 410):
            raise Unreachable(f"owner: responds with {status}.")
        self.store.advance(window, "delivered")
        log.info("window %d: delivered (%d)", window, status)
        return True

    def purge(self, window: int) -> bool:
        """Erase keys and d_diff; the analyst keeps its perturbed readings."""
        self.store.purge(window, {digest_body(body): kept for body, kept in self._batches_to_keep(window)})
        log.info("window %d: purged", window)
        return True

    def _batches_to_keep(self, window: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield batches with what is kept of each."""
        return iter(())

    def _encode(self, window: int, kind: Kind, arrays: dict[str, Any]) -> bytes:
        count = len(next(iter(arrays.values()), ()))
        return encode(Frame(kind=kind, parameters=self.parameters.hash, window=window, count=count, arrays=arrays))

    def _conclude(
        self,
        window: int,
        readings: ReadingList,
        present: Array,
        requests: dict[str, Frame],
        responses: dict[str, Frame],
        **messages: tuple[bytes, bytes],
    ) -> None:
        """Store the report, together with the last messages, and move the window on."""
        held = self.hold_common(window, readings, present)
        finding = rounds_of(self.parameters).conclude(held, requests, responses)
        report = self.write_report(window, readings, present, finding, "" if finding is not None else "threshold")
        self.store.advance(window, "exchanged", **messages, **{_RESULT: (report, None)})
        log.info("window %d: exchanged, %d readings at both", window, int(present.sum()))


class Analyst(Server):
    """Asks the correction server, step by step."""

    role: ClassVar[Role] = "analyst"

    def __init__(
        self,
        identity: Identity,
        signed: SignedParameters,
        store: Path,
        *,
        owner: str,
        correction: str,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        settings = signed.parameters.settings
        if isinstance(settings, Paper) and settings.detector != DBSCAN:
            load_detector(settings.detector)  # a missing package is an error now, not in the first window
        super().__init__(identity, signed, store, owner=owner, vault=vault)
        self._correction = Link(correction, to="correction", identity=identity, signed=signed)

    def exchange(self, window: int) -> bool:
        try:
            self._judge(window)
        except Unreachable:
            if not self.give_up(window):
                raise
        except BadCall as refusal:
            log.info("window %d: the correction server refuses (%d)", window, refusal.status)
            if not self.give_up(window):
                raise Unreachable(f"correction: responds with {refusal.status}.") from None
        return True

    def _judge(self, window: int) -> None:
        readings = self.list_readings(window)
        present = self._fetch_present(window, readings)
        held = self.hold_common(window, readings, present)
        requests: dict[str, Frame] = {}
        responses: dict[str, Frame] = {}
        for step in rounds_of(self.parameters).steps:
            if self.store.message(window, step.name) is None:
                arrays = step.ask(held, requests, responses, self.noise)
                self.store.add_message(window, step.name, self._encode(window, step.asks, arrays))
            response = self._fetch_response(window, step.name, step.answers)
            if response.count not in allowed_rows(step.answers, held):
                raise BadCall(422, f"{step.name}: the response has the wrong number of rows.")
            message = self.store.message(window, step.name)
            requests[step.name] = self._decode(b"" if message is None else message.request or b"", step.asks)
            responses[step.name] = response
        self._conclude(window, readings, present, requests, responses)

    def _fetch_present(self, window: int, readings: ReadingList) -> NDArray[np.bool_]:
        """Return which readings the correction server has too."""
        if self.store.message(window, _MANIFEST) is None:
            body = self._encode(window, Kind.MANIFEST, {"ids": readings.ids})
            self.store.add_message(window, _MANIFEST, body)
        response = self._fetch_response(window, _MANIFEST, Kind.PRESENT)
        if response.count != len(readings.ids):
            raise BadCall(422, "manifest: the response has the wrong number of rows.")
        return response["present"]

    def _fetch_response(self, window: int, name: str, kind: Kind) -> Frame:
        """Return the response to a stored request: the stored one, or the correction server's, which is then stored."""
        message = self.store.message(window, name)
        if message is None or message.request is None:
            raise Unreachable(f"{name}: not written yet.")
        if message.response is not None:
            return self._decode(message.response, kind)
        path = f"/v1/{self.parameters.stream}/w/{window}/{name}"
        status, body = self._correction.call("POST", path, message.request)
        if status == 425 or status >= 500:
            raise Unreachable(f"correction: responds with {status}.")
        if status != 200:
            raise BadCall(status, f"{name}: the correction server refuses.")
        frame = self._decode(body, kind)
        self.store.add_response(window, name, body)
        self.note_progress(window)
        return frame

    def _decode(self, body: bytes, kind: Kind) -> Frame:
        try:
            return decode(body, parameters=self.parameters.hash, kinds=(kind,))
        except FrameError as error:
            raise BadCall(422, str(error)) from None

    def _batches_to_keep(self, window: int) -> Iterator[tuple[bytes, bytes]]:
        for body in self.store.batches(window):
            frame = decode(body, parameters=self.parameters.hash)
            arrays = {name: frame[name] for name in ("ids", "perturbed")}
            yield body, encode(replace(frame, kind=Kind.READINGS, arrays=arrays, rest=b""))


class CorrectionServer(Server):
    """Answers step by step; the last response and its own report are stored together."""

    role: ClassVar[Role] = "correction"

    def exchange(self, window: int) -> bool:
        return self.give_up(window)

    def respond(self, peer: Peer, signature: bytes, body: bytes, window: int, name: str) -> bytes:
        """Return the response to one step of the analyst: the same bytes for the same request, however often."""
        if peer.name != "analyst":
            raise Forgery(f"{peer.name}: only the analyst may take this step.")
        verify_signature(peer.key, signature, body)
        with self.lock:
            known = self.store.message(window, name)
            if known is not None:
                if known.digest != digest_body(body) or known.response is None:
                    raise BadCall(409, f"{name}: another request was sent before. A step is taken once.")
                return known.response
            state = self.store.state(window)
            if state in ("open", "collecting") and not self.seal(window):
                raise BadCall(425, "the window is still open here. Send the same again a little later.")
            if state in ("exchanged", "delivered", "purged"):
                raise BadCall(410, "the window is over here. What was not exchanged in time stays unjudged.")
            return self._take_step(window, name, body)

    def _take_step(self, window: int, name: str, body: bytes) -> bytes:
        readings, steps = self.list_readings(window), rounds_of(self.parameters).steps
        if name == _MANIFEST:
            manifest = self._decode(body, window, Kind.MANIFEST)
            is_here = np.isin(manifest["ids"], readings.ids, assume_unique=True)
            response = self._encode(window, Kind.PRESENT, {"present": is_here})
            if steps:
                self.store.add_message(window, name, body, response)
            else:
                present = _find_present(readings, manifest)
                self._conclude(window, readings, present, {}, {}, **{name: (body, response)})
                self.wake()
            return response
        step = next((step for step in steps if step.name == name), None)
        if step is None:
            raise BadCall(404, f"{name}: not a step of this stream.")
        earlier = (_MANIFEST, *(before.name for before in steps[: steps.index(step)]))
        if any(self.store.message(window, before) is None for before in earlier):
            raise BadCall(409, f"{name}: an earlier step is missing. Take the steps in their order.")
        return self._compute(window, step, body, readings, is_last=step is steps[-1])

    def _compute(self, window: int, step: Step, body: bytes, readings: ReadingList, *, is_last: bool) -> bytes:
        """Compute and store the response of a step; with the last one also the report."""
        message = self.store.message(window, _MANIFEST)
        manifest = self._decode(b"" if message is None else message.request or b"", window, Kind.MANIFEST)
        present = _find_present(readings, manifest)
        held = self.hold_common(window, readings, present)
        request = self._decode(body, window, step.asks)
        if request.count not in allowed_rows(step.asks, held):
            raise FrameError(f"{step.name}: not as many rows as readings that both have. Send one for each.")
        requests, responses = self._read_messages(window)
        requests[step.name] = request
        response = self._encode(window, step.answers, step.answer(held, requests, responses, self.noise))
        if not is_last:
            self.store.add_message(window, step.name, body, response)
            return response
        responses[step.name] = decode(response, parameters=self.parameters.hash)
        self._conclude(window, readings, present, requests, responses, **{step.name: (body, response)})
        self.wake()
        return response

    def _read_messages(self, window: int) -> tuple[dict[str, Frame], dict[str, Frame]]:
        """Return the requests and responses of the steps so far."""
        requests, responses = {}, {}
        for step in rounds_of(self.parameters).steps:
            message = self.store.message(window, step.name)
            if message is not None and message.request is not None and message.response is not None:
                requests[step.name] = decode(message.request, parameters=self.parameters.hash)
                responses[step.name] = decode(message.response, parameters=self.parameters.hash)
        return requests, responses

    def _decode(self, body: bytes, window: int, kind: Kind) -> Frame:
        frame = decode(body, parameters=self.parameters.hash, kinds=(kind,))
        if frame.window != window:
            raise FrameError("header: the frame is not for the window that the path names. Send it where it belongs.")
        return frame


def _find_present(readings: ReadingList, manifest: Frame) -> NDArray[np.bool_]:
    return np.isin(readings.ids, manifest["ids"], assume_unique=True)
