"""The stream owner: unseals the servers' reports, or in mode direct the sensors' bits, and publishes the result.

At the end of a window a sensor signs one commitment: how many batches and readings, the digest of their ids, what it
has spent, and the key of its tags, sealed to the stream owner. Both servers get it and forward the bytes. Only the
sensor's signature counts: a server cannot forge one, and what the servers disagree about is reported, not decided.  (V)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from wallflower.errors import PrivacyError
from wallflower.machine.files import write_text
from wallflower.machine.vault import OpenVault, Vault
from wallflower.sensors.comparison import TAG_KEY_BYTES
from wallflower.sensors.parameters import Direct, Parameters
from wallflower.sensors.parties.keys import Identity, Peer, SignedParameters
from wallflower.sensors.parties.owner_page import render_page
from wallflower.sensors.parties.party import BadCall, Party, digest_body, log
from wallflower.sensors.protocol.findings import (
    FORGED,
    NOT_FORWARDED,
    TWO_COMMITMENTS,
    UNSOUND,
    Doubt,
    Report,
    SignedCommit,
    Tally,
    doubt_listings,
    tally_reports,
    window_result,
)
from wallflower.sensors.protocol.frames import (
    BatchId,
    Commit,
    Forgery,
    Frame,
    FrameError,
    Kind,
    batch_context,
    commit_context,
    decode,
    report_context,
    unseal,
    verify_signature,
)

Commits = Mapping[int, tuple[Frame, Commit]]  # by sensor: its valid commitment

SERVERS: Final = ("analyst", "correction")
_PUBLISHED: Final = "published"  # the message that holds the result of a window


class Owner(Party):
    """The stream owner's process; a published result does not change."""

    role: ClassVar[str] = "owner"

    def __init__(
        self,
        identity: Identity,
        signed: SignedParameters,
        store: Path,
        *,
        out: Path | None = None,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        if identity.seal is None or identity.seal_public != signed.parameters.seal:
            raise Forgery("the parameter set is sealed to another key. Use the stream owner's keys that it names.")
        super().__init__(identity, signed, store, vault=vault)
        self._seal: X25519PrivateKey = identity.seal
        self._out = out
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)

    def add_report(self, peer: Peer, signature: bytes, body: bytes) -> int:
        """Store a server's report; return 201 for a new one, 200 for the same bytes.

        Raises BadCall 409 for another report, 410 if the result was published without it. Refused in mode direct: a
        report ends the collecting of a window, which only sensors may do there.
        """
        if isinstance(self.parameters.settings, Direct):
            raise Forgery(f"{peer.name}: in mode direct sensors report, and servers take no part.")
        if peer.name not in SERVERS:
            raise Forgery(f"{peer.name}: only the two servers report.")
        verify_signature(peer.key, signature, body)
        frame = decode(body, parameters=self.parameters.hash, kinds=(Kind.RESULT,))
        if self.parameters.accepts_from(frame.window) > time.time():
            raise BadCall(425, "the window has not begun. Report it when it is over.")
        self._open_report(peer.name, frame)
        with self.lock:
            known = self.store.message(frame.window, peer.name)
            if known is not None:
                if known.digest == digest_body(body):
                    return 200
                raise BadCall(409, "another report was sent before. A window is reported once.")
            if self.store.message(frame.window, _PUBLISHED) is not None:
                raise BadCall(410, "the result was published. What was not reported in time stays unjudged.")
            self.store.advance(frame.window, "sealed")
            self.store.add_message(frame.window, peer.name, body)
        log.info("window %d: report of the %s", frame.window, peer.name)
        return 201

    def result(self, window: int) -> dict[str, Any] | None:
        """Return the published result of a window; None if it is not finished."""
        message = self.store.message(window, _PUBLISHED)
        if message is None or message.response is None:
            return None
        result: dict[str, Any] = json.loads(message.response)
        return result

    def results(self) -> list[dict[str, Any]]:
        """Return all published results."""
        return [result for window, _ in self.store.list_states() if (result := self.result(window)) is not None]

    def page(self) -> str:
        """Return the page about all windows, as HTML."""
        return render_page(self.parameters, self.results(), self.store.list_states())

    def advance(self, window: int) -> bool:
        match self.store.state(window):
            case "collecting":
                if not self.collector.is_complete(window):
                    return False
                self.store.advance(window, "sealed")
            case "sealed":
                return self._publish(window)
            case "exchanged":
                self._write_files(window)
                self.store.advance(window, "delivered")
            case "delivered":
                self.store.purge(window, {})
            case _:
                return False
        return True

    def _publish(self, window: int) -> bool:
        """Store the result of a window, if all reports are there or their time is over."""
        with self.lock:
            if isinstance(self.parameters.settings, Direct):
                tally, commits, reporters = self._open_bits(window), self.collector.read_commits(window), ["sensors"]
            else:
                reports = self._read_reports(window)
                is_late = time.time() >= self.parameters.gives_up_at(window) + float(self.parameters.patience)
                if len(reports) < len(SERVERS) and not is_late:
                    return False
                verified, doubts = verify_commits(self.parameters, window, reports, self.identify)
                tally = tally_reports(self.parameters, reports, lambda sensor: self._tag_key(window, sensor, verified))
                tally.doubts = doubts
                commits, reporters = dict(verified), sorted(reports)
            result = window_result(self.parameters, window, tally, _summarise_sensors(commits))
            result["reported"] = reporters
            body = json.dumps(result, sort_keys=True).encode("ascii")
            self.store.advance(window, "exchanged", **{_PUBLISHED: (b"", body)})
        log.info("window %d: %d judged, %d unjudged", window, tally.judged, len(tally.unjudged))
        return True

    def _write_files(self, window: int) -> None:
        if self._out is not None:
            write_text(self._out / f"window-{window}.json", json.dumps(self.result(window), indent=1) + "\n")
            write_text(self._out / "index.html", self.page())

    def _read_reports(self, window: int) -> dict[str, Report]:
        reports = {}
        for name in SERVERS:
            message = self.store.message(window, name)
            if message is not None and message.request is not None:
                frame = decode(message.request, parameters=self.parameters.hash)
                reports[name] = self._open_report(name, frame)
        return reports

    def _open_report(self, name: str, frame: Frame) -> Report:
        context = report_context(self.parameters.hash, frame.window, name)
        report = Report.from_bytes(unseal(self._seal, frame.rest, context), self.parameters)
        if report.unjudged.window != frame.window or (report.finding and report.finding.window != frame.window):
            raise FrameError("report: it is about another window than its envelope. Send it as it was made.")
        return report

    def _tag_key(self, window: int, sensor: int, commits: Commits) -> bytes | None:
        sealed_key = commits[sensor][1].sealed_key if sensor in commits else b""
        context = commit_context(self.parameters.hash, sensor, window)
        try:
            key = unseal(self._seal, sealed_key, context) if sealed_key else b""
        except Forgery:
            return None
        return key if len(key) == TAG_KEY_BYTES else None

    def _open_bits(self, window: int) -> Tally:
        """Unseal the bits of mode direct."""
        tally = Tally()
        for frame in self.collector.frames(window):
            ids, sensors = frame["ids"], np.full(frame.count, frame.sensor, dtype=np.uint64)
            batch = BatchId(sensor=frame.sensor, window=window, seq=frame.seq)
            try:
                body = unseal(self._seal, frame.rest, batch_context(self.parameters.hash, batch, ids))
            except PrivacyError:
                tally.give_up(ids, sensors, UNSOUND)
                continue
            bits = np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")
            outliers = np.flatnonzero(bits[: frame.count])
            tally.judged += frame.count
            tally.flag(ids[outliers], sensors[outliers], ({"level": 1} for _ in outliers))
        return tally


def verify_commits(
    parameters: Parameters, window: int, reports: Mapping[str, Report], identify: Callable[[bytes], Peer]
) -> tuple[Commits, list[Doubt]]:
    """Return the commitments that the sensors signed, and doubts about all that does not fit.

    `identify` returns the party of a certificate, or raises an error.
    """
    commits: dict[int, tuple[Frame, Commit]] = {}
    doubts: list[Doubt] = []
    for sensor in sorted({number for report in reports.values() for number in report.commits}):
        copies: dict[bytes, tuple[Frame, Commit]] = {}
        for server, report in reports.items():
            if sensor not in report.commits:
                doubts.append(Doubt(sensor, NOT_FORWARDED, server))
                continue
            signed = report.commits[sensor]
            try:
                copies[signed.body] = _verify_commit(parameters, window, sensor, signed, identify)
            except PrivacyError:
                doubts.append(Doubt(sensor, FORGED, server))
        if len(copies) > 1:
            doubts.append(Doubt(sensor, TWO_COMMITMENTS))
        elif copies:
            (commits[sensor],) = copies.values()
    statements = {sensor: commit for sensor, (_, commit) in commits.items()}
    return commits, [*doubts, *doubt_listings(reports, statements)]


def _verify_commit(
    parameters: Parameters, window: int, sensor: int, signed: SignedCommit, identify: Callable[[bytes], Peer]
) -> tuple[Frame, Commit]:
    """Return a commitment; raise an error if that sensor did not sign exactly this for this window."""
    peer = identify(signed.certificate)
    if peer.name != f"sensor-{sensor}":
        raise Forgery(f"{peer.name}: its certificate is not that of sensor {sensor}. Forward what the sensor sent.")
    verify_signature(peer.key, signed.signature, signed.body)
    frame = decode(signed.body, parameters=parameters.hash, kinds=(Kind.COMMIT,))
    if (frame.window, frame.sensor) != (window, sensor):
        raise FrameError("commit: it is for another window or sensor. Forward what the sensor sent for this one.")
    return frame, Commit.from_bytes(frame.rest)


def _summarise_sensors(commits: Commits) -> dict[str, dict[str, Any]]:
    """Return how many readings each sensor committed, and what it has spent, by its own signed statement."""
    return {
        str(number): {"readings": frame.count, "spent": str(commit.spent)}
        for number, (frame, commit) in commits.items()
    }
