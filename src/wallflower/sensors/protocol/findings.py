"""Reports of the two servers to the stream owner, and the owner's result: which readings are outliers.

A report is two frames and the sensors' commitments, sealed. A reading is *judged* if both servers had it and their
reports agree, even if one of them lists it as unjudged too; all others are *unjudged*, each with the reason. A server's
statement about a sensor without the sensor's signature is ignored, and a disagreement between servers about a sensor is
a *doubt* in the result. Nothing is guessed.
"""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from wallflower.sensors.comparison import derive_tags, judge, judge_tagged
from wallflower.sensors.parameters import Exact, Parameters
from wallflower.sensors.protocol.frames import (
    MAX_NUMBER,
    Array,
    Commit,
    Frame,
    FrameError,
    Kind,
    decode,
    digest_ids,
    encode,
)

TagKeys = Callable[[int], bytes | None]  # from a sensor: the key of its tags, if it sent one

LAYER_NAMES: Final = {1: "presumed", 2: "layer 1", 3: "layer 2", 4: "layer 3"}
ONE_SERVER: Final = "only one server had it"
NO_EXCHANGE: Final = "the servers could not reach each other in time"
NO_THRESHOLD: Final = "no threshold could be chosen"
NO_REPORT: Final = "a server did not report in time"
UNSOUND: Final = "the servers' shares do not belong together"
UNCOMMITTED: Final = "no valid commitment of its sensor"
FORGED: Final = "its copy of the commitment is not what the sensor signed"
NOT_FORWARDED: Final = "it forwards no commitment of the sensor"
TWO_COMMITMENTS: Final = "the sensor signed two commitments that differ"
NO_COMMITMENT: Final = "readings are listed without a valid commitment"
OTHER_READINGS: Final = "the listed readings are not those of the commitment"
_FAILURES: Final = {"": ONE_SERVER, "exchange": NO_EXCHANGE, "threshold": NO_THRESHOLD}
# What the analyst, the correction server and the stream owner learn, by mode.
LEARNS: Final[Mapping[str, tuple[str, str, str]]] = {
    "exact": (
        "perturbed readings, under metric differential privacy; keys that reveal nothing alone",
        "keys that reveal nothing alone",
        "for each reading and threshold, whether it is reached",
    ),
    "grid": (
        "perturbed readings, under metric differential privacy",
        "by how far noise moved each distance, and the ring of each reading: no finite ε",
        "which readings are outliers",
    ),
    "paper": (
        "perturbed readings, under metric differential privacy, and d_TP",
        "by how far noise moved each distance, and which readings are presumed outliers: no finite ε",
        "which readings are outliers, and in which layer",
    ),
    "direct": ("nothing", "nothing", "for each reading, whether the threshold is reached"),
}
_SIZES: Final = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class SignedCommit:
    """A sensor's commitment as a server forwards it: the bytes, the signature and the sensor's certificate."""

    body: bytes
    signature: bytes
    certificate: bytes

    def to_json(self) -> list[str]:
        return [b64encode(part).decode("ascii") for part in (self.body, self.signature, self.certificate)]

    @staticmethod
    def from_json(stored: Any) -> SignedCommit:
        """Read what was written, or raise FrameError."""
        try:
            body, signature, certificate = (b64decode(part, validate=True) for part in stored)
        except (ValueError, TypeError):
            raise FrameError("report: a commitment cannot be read. Send what `Report.to_bytes` makes.") from None
        return SignedCommit(body, signature, certificate)


@dataclass(frozen=True, slots=True)
class Doubt:
    """An inconsistency about a sensor, and the server that caused it, if one did."""

    sensor: int
    reason: str
    server: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"sensor": self.sensor, "server": self.server, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """The report of one server: its finding about the readings that both had, and the readings it could not judge.

    `failed` is "", "exchange" or "threshold": why there is no finding.
    """

    finding: Frame | None
    unjudged: Frame
    failed: str = ""
    commits: Mapping[int, SignedCommit] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        pieces = [b"" if self.finding is None else encode(self.finding), encode(self.unjudged)]
        commits = {str(sensor): commit.to_json() for sensor, commit in self.commits.items()}
        facts = json.dumps({"failed": self.failed, "commits": commits}, sort_keys=True).encode("ascii")
        return _SIZES.pack(*map(len, pieces)) + b"".join(pieces) + facts

    @staticmethod
    def from_bytes(raw: bytes, parameters: Parameters) -> Report:
        """Read what was written, or raise FrameError."""
        if len(raw) < _SIZES.size:
            raise FrameError("report: too short. Send all of it.")
        first, second = _SIZES.unpack_from(raw)
        start = _SIZES.size
        one, other = raw[start : start + first], raw[start + first : start + first + second]
        kind = Kind.SHARES if isinstance(parameters.settings, Exact) else Kind.VERDICT
        failed, commits = _read_facts(raw[start + first + second :])
        finding = decode(one, parameters=parameters.hash, kinds=(kind,)) if one else None
        unjudged = decode(other, parameters=parameters.hash, kinds=(Kind.UNJUDGED,))
        return Report(finding=finding, unjudged=unjudged, failed=failed, commits=commits)


@dataclass(slots=True)
class Tally:
    """The readings of a window: outliers with what is known of each, and unjudged ones with the reason."""

    judged: int = 0
    outliers: dict[int, dict[str, Any]] = field(default_factory=dict)
    unjudged: dict[int, dict[str, Any]] = field(default_factory=dict)
    threshold: int | None = None
    doubts: list[Doubt] = field(default_factory=list)

    def flag(self, ids: Array, sensors: Array, details: Iterable[Mapping[str, Any]]) -> None:
        for name, sensor, more in zip(ids.tolist(), sensors.tolist(), details, strict=True):
            self.outliers[name] = {"id": f"{name:016x}", "sensor": sensor, **more}

    def give_up(self, ids: Array, sensors: Array, reason: str) -> None:
        for name, sensor in zip(ids.tolist(), sensors.tolist(), strict=True):
            self.unjudged.setdefault(name, {"id": f"{name:016x}", "sensor": sensor, "reason": reason})


def tally_reports(parameters: Parameters, reports: Mapping[str, Report], tag_keys: TagKeys) -> Tally:
    """Combine the reports of a window; the report of a server may be missing."""
    tally, judged = Tally(), np.empty(0, dtype=np.uint64)
    ours, theirs = (reports.get(role) for role in ("analyst", "correction"))
    if ours is None or theirs is None or ours.finding is None or theirs.finding is None:
        _give_up(tally, reports, NO_THRESHOLD if ours and theirs and _is_threshold_missing(ours, theirs) else NO_REPORT)
    elif isinstance(parameters.settings, Exact):
        judged = _open_shares(tally, parameters.settings, ours.finding, theirs.finding, tag_keys)
    else:
        judged = _take_reports(tally, ours.finding, theirs.finding)
    for report in reports.values():
        tally.give_up(report.unjudged["ids"], report.unjudged["sensors"], _FAILURES[report.failed])
    for name in (*tally.outliers, *judged.tolist()):  # a reading counts once, even if a server lists it as unjudged
        tally.unjudged.pop(name, None)
    return tally


def doubt_listings(reports: Mapping[str, Report], commits: Mapping[int, Commit]) -> list[Doubt]:
    """Return doubts about sensors whose readings, as the servers list them, are not those they committed to."""
    frames = [frame for report in reports.values() for frame in (report.finding, report.unjudged) if frame is not None]
    ids, sensors = (
        np.concatenate([np.empty(0, np.uint64), *(frame[name] for frame in frames)]) for name in ("ids", "sensors")
    )
    uncommitted = set(np.unique(sensors).tolist()) - set(commits)
    wrong = [
        sensor for sensor, commit in commits.items() if digest_ids(np.unique(ids[sensors == sensor])) != commit.digest
    ]
    doubts = [Doubt(sensor, NO_COMMITMENT) for sensor in sorted(uncommitted)]
    return [*doubts, *(Doubt(sensor, OTHER_READINGS) for sensor in sorted(wrong))]


def window_result(parameters: Parameters, window: int, tally: Tally, sensors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a window as JSON: public parameters, ids, and what each sensor has spent."""
    settings = parameters.settings
    return {
        "stream": parameters.stream,
        "version": parameters.version,
        "hash": parameters.hash.hex(),
        "window": window,
        "mode": settings.mode,
        "threshold": _distance(parameters, tally.threshold),
        "judged": tally.judged,
        "outliers": [tally.outliers[name] for name in sorted(tally.outliers)],
        "unjudged": [tally.unjudged[name] for name in sorted(tally.unjudged)],
        "sensors": dict(sensors),
        "doubts": [doubt.to_json() for doubt in tally.doubts],
        "parameters": parameters.to_json(),
    }


def _distance(parameters: Parameters, score: int | None) -> str | None:
    settings = parameters.settings
    if isinstance(settings, Exact) and score is not None:
        return str(score * settings.unit)
    return None


def _read_facts(raw: bytes) -> tuple[str, dict[int, SignedCommit]]:
    """Read why nothing could be judged, and the commitments. A server may send anything, so all of it is checked."""
    try:
        facts = json.loads(raw)
        failed, commits = facts["failed"], facts["commits"]
        numbers = {int(name): stored for name, stored in commits.items() if name.isascii() and name.isdigit()}
        known = failed in _FAILURES and len(numbers) == len(commits) and max(numbers, default=0) <= MAX_NUMBER
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        known = False
    if not known:
        raise FrameError("report: its facts cannot be read. Send what `Report.to_bytes` makes.")
    return failed, {number: SignedCommit.from_json(stored) for number, stored in numbers.items()}


def _is_threshold_missing(ours: Report, theirs: Report) -> bool:
    return ours.failed == theirs.failed == "threshold"


def _give_up(tally: Tally, reports: Mapping[str, Report], reason: str) -> None:
    for report in reports.values():
        if report.finding is not None:
            tally.give_up(report.finding["ids"], report.finding["sensors"], reason)


def _open_shares(tally: Tally, settings: Exact, ours: Frame, theirs: Frame, tag_keys: TagKeys) -> Array:
    """Judge the readings of mode exact; return the ids of those that were."""
    lanes, ids, sensors = (2 if settings.tags else 1), ours["ids"], ours["sensors"]
    same = ours.columns == theirs.columns and ours.seq == theirs.seq and ours.columns % lanes == 0
    if not same or not np.array_equal(ids, theirs["ids"]) or not np.array_equal(sensors, theirs["sensors"]):
        for frame in (ours, theirs):
            tally.give_up(frame["ids"], frame["sensors"], UNSOUND)
        return ids[:0]
    sound, level = np.ones(len(ids), dtype=np.bool_), np.zeros(len(ids), dtype=np.int64)
    marks, known = _marks(ids, sensors, tag_keys) if settings.tags else (None, sound)
    for at in range(0, ours.columns, lanes):
        one, other = (np.ascontiguousarray(frame["shares"][:, at : at + lanes]) for frame in (ours, theirs))
        flags, fits = judge(one[:, 0], other[:, 0]) if marks is None else judge_tagged(one, other, marks)
        sound &= (
            fits & known & (flags <= (level == at // lanes))
        )  # a reading that reaches a threshold reaches those below
        level += flags
    tally.threshold = ours.seq or settings.scores[0]
    tally.judged = int(sound.sum())
    tally.give_up(ids[~known], sensors[~known], UNCOMMITTED)
    tally.give_up(ids[~sound], sensors[~sound], UNSOUND)
    out = np.flatnonzero(sound & (level > 0))
    tally.flag(ids[out], sensors[out], ({"level": one} for one in level[out].tolist()))
    return ids[sound]


def _marks(ids: Array, sensors: Array, tag_keys: TagKeys) -> tuple[Array, Array]:
    """Return the tag of each reading, and for which readings it is known."""
    marks, known = np.ones(len(ids), dtype=np.uint32), np.zeros(len(ids), dtype=np.bool_)
    for sensor in np.unique(sensors).tolist():
        key = tag_keys(sensor)
        if key is not None:
            own = sensors == sensor
            marks[own], known[own] = derive_tags(key, ids[own]), True
    return marks, known


def _take_reports(tally: Tally, ours: Frame, theirs: Frame) -> Array:
    """Judge modes grid and paper: the analyst lists who took part, the correction server the outliers."""
    ids: Array = ours["ids"]
    if not np.isin(theirs["ids"], ids).all():
        for frame in (ours, theirs):
            tally.give_up(frame["ids"], frame["sensors"], UNSOUND)
        return ids[:0]
    tally.judged = ours.count
    layers = (LAYER_NAMES.get(one, "flagged") for one in theirs["layer"].tolist())
    tally.flag(theirs["ids"], theirs["sensors"], ({"layer": layer} for layer in layers))
    return ids
