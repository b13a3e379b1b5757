"""What sensors committed to at the end of a window, as the servers forward it to the owner.

A sensor signs one commitment: how many batches and readings, the digest of their ids, what it has spent, and the key of
its tags, sealed to the owner. Both servers get it and pass on the bytes. The owner believes the sensor's signature and
nothing else: a server cannot make one up, and what the servers disagree about is told, not settled.  (V)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wallflower.errors import PrivacyError
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.parties.keys import Peer
from wallflower.sensors.protocol.batches import Commit
from wallflower.sensors.protocol.findings import (
    FORGED,
    NOT_FORWARDED,
    TWO_WORDS,
    Doubt,
    Report,
    SignedCommit,
    doubt_listings,
)
from wallflower.sensors.protocol.frames import Frame, FrameError, Kind, decode
from wallflower.sensors.protocol.seals import Forgery, require_signature

Words = Mapping[int, tuple[Frame, Commit]]  # by sensor: what it said at the end, believed
Known = Callable[[bytes], Peer]  # whose certificate it is, or a refusal


def weigh_commits(
    parameters: Parameters, window: int, reports: Mapping[str, Report], known: Known
) -> tuple[Words, list[Doubt]]:
    """The commitments that the sensors signed, and all that does not fit."""
    words: dict[int, tuple[Frame, Commit]] = {}
    doubts: list[Doubt] = []
    for sensor in sorted({number for report in reports.values() for number in report.commits}):
        copies: dict[bytes, tuple[Frame, Commit]] = {}
        for server, report in reports.items():
            try:
                given = report.commits[sensor]
                copies[given.body] = open_commit(parameters, (window, sensor), given, known)
            except KeyError:
                doubts.append(Doubt(sensor, NOT_FORWARDED, server))
            except PrivacyError:
                doubts.append(Doubt(sensor, FORGED, server))
        if len(copies) > 1:
            doubts.append(Doubt(sensor, TWO_WORDS))
        elif copies:
            (words[sensor],) = copies.values()
    said = {sensor: commit for sensor, (_, commit) in words.items()}
    return words, [*doubts, *doubt_listings(reports, said)]


def open_commit(
    parameters: Parameters, place: tuple[int, int], given: SignedCommit, known: Known
) -> tuple[Frame, Commit]:
    """A commitment for (window, sensor), or a refusal if that sensor did not sign exactly this for this window."""
    window, sensor = place
    peer = known(given.certificate)
    if peer.name != f"sensor-{sensor}":
        raise Forgery(f"{peer.name}: its certificate is not that of sensor {sensor}. Forward what the sensor sent.")
    require_signature(peer.key, given.signature, given.body)
    frame = decode(given.body, parameters=parameters.hash, kinds=(Kind.COMMIT,))
    if (frame.window, frame.sensor) != (window, sensor):
        raise FrameError("commit: it is for another window or sensor. Forward what the sensor sent for this one.")
    return frame, Commit.from_bytes(frame.rest)
