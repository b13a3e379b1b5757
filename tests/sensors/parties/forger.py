"""Run a server's command line and forge its reports: `forger.py sensors analyst ...`.

It is the server that runs, over its real sockets; only what it reports departs from the protocol. It wants ordinary
readings to be flagged, so it adds (1, tag) to its own shares, with tags of a key that it made up, and passes that key
off as the sensor's. Every window sees another trick, of one of the two servers.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from wallflower.cli import main
from wallflower.sensors.comparison import derive_tags
from wallflower.sensors.parties import servers
from wallflower.sensors.parties.servers import Server
from wallflower.sensors.protocol.findings import Report, SignedCommit
from wallflower.sensors.protocol.frames import Commit, Frame, commit_context, decode, encode, seal

KEY = b"made up by us..."
HEAD = ("kind", "parameters", "window", "columns", "sensor", "seq", "count")


def changed(frame: Frame, **changes: Any) -> Frame:
    stated = {name: getattr(frame, name) for name in (*HEAD, "arrays", "rest")}
    return Frame(**stated | changes)


def shifted(found: Frame) -> Frame:
    """Shares that open to an outlier wherever an ordinary reading is, for whoever believes in the key."""
    shares = found["shares"].copy()
    shares[:, 0] += 1
    shares[:, 1] += derive_tags(KEY, found["ids"])
    return changed(found, arrays=dict(found.arrays) | {"shares": np.asarray(shares, np.uint32)})


def commitment(party: Server, window: int, sensor: int, honest: SignedCommit) -> SignedCommit:
    """Another commitment with the same readings, a key of our own and next to nothing spent."""
    frame = decode(honest.body, parameters=party.parameters.hash)
    said = Commit.from_bytes(frame.rest)
    letter = seal(bytes.fromhex(party.parameters.seal), KEY, commit_context(party.parameters.hash, sensor, window))
    body = encode(changed(frame, rest=Commit(digest=said.digest, spent=Fraction(1, 7), sealed_key=letter).to_bytes()))
    return SignedCommit(body, party.identity.key.sign(body), honest.certificate)


def own_certificate(party: Server, window: int, sensor: int, honest: SignedCommit) -> SignedCommit:
    return replace(commitment(party, window, sensor, honest), certificate=party.identity.certificate)


def old_signature(party: Server, window: int, sensor: int, honest: SignedCommit) -> SignedCommit:
    return replace(commitment(party, window, sensor, honest), signature=honest.signature)


def earlier_window(party: Server, window: int, sensor: int, honest: SignedCommit) -> SignedCommit:
    return party.store.commits(window - 1).get(sensor, honest)


def nothing(_: Server, __: int, ___: int, honest: SignedCommit) -> SignedCommit:
    return replace(honest, body=b"", signature=b"")


COMMITS = {
    "own signature": commitment,
    "own certificate": own_certificate,
    "old signature": old_signature,
    "earlier window": earlier_window,
    "nothing": nothing,
}

LISTING = "listing"
TRICKS = (*COMMITS, LISTING)
WINDOWS = {
    server: range(at * len(TRICKS), (at + 1) * len(TRICKS)) for at, server in enumerate(("analyst", "correction"))
}


def listing(report: Report) -> Report:
    """Readings that nobody sent, of a sensor that has nothing to do with them."""
    more = {"ids": np.arange(5, dtype=np.uint64), "sensors": np.full(5, 1, np.uint64)}
    left = changed(report.unjudged, count=report.unjudged.count + 5)
    arrays = {name: np.concatenate([report.unjudged[name], more[name]]) for name in more}
    return replace(report, unjudged=changed(left, arrays=arrays))


def forge() -> None:
    party: list[Server] = []
    honest = Server.write_report

    def write_report(self: Server, *given: Any) -> bytes:
        party[:] = [self]
        return honest(self, *given)

    def made(**given: Any) -> Report:
        report, self = Report(**given), party[0]
        window = report.unjudged.window
        trick = TRICKS[window % len(TRICKS)]
        if window not in WINDOWS[self.role]:
            return report
        if trick == LISTING:
            return listing(report)
        told = {number: COMMITS[trick](self, window, number, one) for number, one in report.commits.items()}
        return replace(report, finding=None if report.finding is None else shifted(report.finding), commits=told)

    Server.write_report, servers.Report = write_report, made  # type: ignore[method-assign,assignment,misc]


if __name__ == "__main__":
    forge()
    sys.exit(main(sys.argv[1:]))
