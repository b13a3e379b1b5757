"""A server that departs from the protocol, over real sockets: what it forges is not believed, and the owner is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from forger import LISTING, TRICKS, WINDOWS
from stage import Stage, fill, flagged, parameters, sending

from wallflower.noise import system_noise
from wallflower.sensors.comparison import derive_tags, first_above_zero
from wallflower.sensors.parameters import Direct, Parameters
from wallflower.sensors.parties.keys import Identity, identify, sign_parameters
from wallflower.sensors.parties.outbox import Outbox
from wallflower.sensors.parties.owner import Owner, verify_commits
from wallflower.sensors.parties.web import make_application
from wallflower.sensors.protocol.findings import (
    FORGED,
    NO_COMMITMENT,
    NOT_FORWARDED,
    OTHER_READINGS,
    TWO_COMMITMENTS,
    UNSOUND,
    Doubt,
    Report,
    SignedCommit,
)
from wallflower.sensors.protocol.frames import BatchId, Forgery, Frame, FrameError, Kind, encode, seal


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("forgery")) as made:
        made.start("owner")
        made.start("correction", "analyst", forge=True)
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("server", ["analyst", "correction"])
def test_a_server_with_a_key_of_its_own_flags_no_ordinary_reading(stage: Stage, server: str) -> None:
    """It turned all ordinary readings into judged outliers, and the real ones into unjudged readings."""
    with stage.device() as device, sending(device):
        before = device.outbox.spent
        outliers = {window: fill(device, window) for window in WINDOWS[server]}
        told = {window: stage.result(window) for window in outliers}
    for window, result in told.items():
        doubt = {"sensor": 1, "server": server, "reason": FORGED}
        if TRICKS[window % len(TRICKS)] == LISTING:
            doubt = {"sensor": 1, "server": None, "reason": OTHER_READINGS}
            assert flagged(result) == outliers[window]
        else:
            assert (result["judged"], result["outliers"], len(result["unjudged"])) == (0, [], 60)
            assert {one["reason"] for one in result["unjudged"]} == {UNSOUND}  # every share was changed
        assert result["doubts"] == [doubt]
        assert result["sensors"] == {"1": {"readings": 60, "spent": str(before + 12 * (1 + window % len(TRICKS)))}}
    assert FORGED in (stage.folder / "out" / "index.html").read_text()


def test_a_report_of_another_mode_is_refused_at_the_door(keys: Path, tmp_path: Path) -> None:
    """It stopped the owner's worker for good: the window was never told, whatever the honest server said."""
    made = Witness(keys, tmp_path)
    report = made.report(made.signed)
    arrays = dict(report.unjudged.arrays) | {"layer": np.ones(5, np.uint8)}
    found = Frame(kind=Kind.VERDICT, parameters=made.stated.hash, window=0, columns=2, count=5, arrays=arrays)
    with pytest.raises(FrameError, match="does not belong here"):
        Report.from_bytes(replace(report, finding=found).to_bytes(), made.stated)


@pytest.mark.parametrize("server", ["analyst", "correction"])
def test_in_mode_direct_no_server_can_end_a_window(keys: Path, tmp_path: Path, server: str) -> None:
    """One empty report moved a window on: every sensor was refused, and no doubt was told."""
    stated = parameters(keys, Direct(threshold=Fraction(20)), starts=0, grace=Fraction(10**10))
    signed = sign_parameters(stated, Identity.read(keys / "owner"))
    forger, sensor = Identity.read(keys / server), Identity.read(keys / "sensor-1")
    arrays = {"ids": np.empty(0, np.uint64), "sensors": np.empty(0, np.uint64)}
    empty = Frame(kind=Kind.UNJUDGED, parameters=stated.hash, window=0, count=0, arrays=arrays)
    about = stated.hash + (0).to_bytes(8, "little") + server.encode()
    sealed = seal(bytes.fromhex(stated.seal), Report(finding=None, unjudged=empty).to_bytes(), about)
    body = encode(Frame(kind=Kind.RESULT, parameters=stated.hash, window=0, rest=sealed))
    owner = Owner(Identity.read(keys / "owner"), signed, tmp_path / "owner.db")
    box = Outbox(tmp_path / "sensor.db", identity=sensor, parameters=stated, noise=system_noise())
    with pytest.raises(Forgery, match="mode direct"):
        owner.add_report(owner.identify(forger.certificate), forger.key.sign(body), body)
    assert "/v1/results" not in {getattr(route, "path", None) for route in make_application(owner, tls=True).routes}
    box.set_limit("100")
    box.add(0, 0, [[1.0, 0.0], [500.0, 0.0], [2.0, 0.0]])
    box.finish(0)
    peer = owner.identify(sensor.certificate)
    while (frame := box.next_frame("owner")) is not None:
        if frame.seq is not None:
            assert (
                owner.collector.add_batch(peer, frame.signature, frame.body, BatchId(window=0, sensor=1, seq=frame.seq))
                == 201
            )
        else:
            assert owner.collector.add_commit(peer, frame.signature, frame.body, BatchId(window=0, sensor=1)) == 201
        box.settle(frame.id, "sent", 201)
    assert owner.store.state(0) == "collecting"
    owner.store.close()
    box.close()


class Witness:
    """One sensor's commitment, as both servers forward it."""

    def __init__(self, keys: Path, folder: Path, number: int = 1) -> None:
        self.stated: Parameters = parameters(keys, starts=0, grace=Fraction(10**10))
        self.identity = Identity.read(keys / f"sensor-{number}")
        self.box = Outbox(folder / f"{number}.db", identity=self.identity, parameters=self.stated, noise=system_noise())
        self.box.set_limit("100")
        self.box.add(0, 0, np.zeros((5, 2)))
        self.box.finish(0)
        frames = []
        while (frame := self.box.next_frame("analyst")) is not None:
            frames.append(frame)
            self.box.settle(frame.id, "sent", 201)
        self.signed = SignedCommit(frames[-1].body, frames[-1].signature, self.identity.certificate)
        self.number, self.ids = number, np.sort(self.box.ids(0))
        self.box.close()

    def report(self, signed: SignedCommit | None, ids: np.ndarray | None = None) -> Report:
        listed = self.ids if ids is None else ids
        arrays = {"ids": listed, "sensors": np.full(len(listed), self.number, np.uint64)}
        left = Frame(kind=Kind.UNJUDGED, parameters=self.stated.hash, window=0, count=len(listed), arrays=arrays)
        made = Report(finding=None, unjudged=left, commits={} if signed is None else {self.number: signed})
        return Report.from_bytes(made.to_bytes(), self.stated)

    def weighed(self, ours: Report, theirs: Report) -> tuple[set[int], list[Doubt]]:
        reports = {"analyst": ours, "correction": theirs}
        words, doubts = verify_commits(self.stated, 0, reports, lambda shown: identify(shown, self.identity.authority))
        return set(words), doubts


def test_copies_are_compared_and_what_differs_is_told(keys: Path, tmp_path: Path) -> None:
    one, other = Witness(keys, tmp_path), Witness(keys, tmp_path, 2)
    honest = one.report(one.signed)
    assert one.weighed(honest, honest) == ({1}, [])
    assert one.weighed(one.report(None), honest) == ({1}, [Doubt(1, NOT_FORWARDED, "analyst")])
    assert one.weighed(one.report(None), one.report(None)) == (set(), [Doubt(1, NO_COMMITMENT)])
    assert one.weighed(honest, one.report(one.signed, one.ids[:4])) == ({1}, [])  # the other lists all of them
    assert one.weighed(*[one.report(one.signed, one.ids[:4])] * 2) == ({1}, [Doubt(1, OTHER_READINGS)])
    second = Witness(keys, make_folder(tmp_path / "again"))  # a device that signs two commitments for one window
    assert one.weighed(honest, one.report(second.signed)) == (
        set(),
        [Doubt(1, TWO_COMMITMENTS), Doubt(1, NO_COMMITMENT)],
    )
    swapped = replace(other.signed, certificate=one.signed.certificate)
    for forged in (other.signed, swapped, replace(one.signed, signature=bytes(64)), replace(one.signed, body=b"")):
        for reports in ((one.report(forged), honest), (honest, one.report(forged))):
            server = "analyst" if reports[1] is honest else "correction"
            assert one.weighed(*reports) == ({1}, [Doubt(1, FORGED, server)])


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_sensor_cannot_commit_for_another(keys: Path, tmp_path: Path) -> None:
    """Sensor 2 signs what sensor 1 should have said; its own certificate does not name sensor 1."""
    one, two = Witness(keys, tmp_path), Identity.read(keys / "sensor-2")
    body = one.signed.body
    forged = SignedCommit(body, two.key.sign(body), two.certificate)
    assert one.weighed(one.report(forged), one.report(one.signed)) == ({1}, [Doubt(1, FORGED, "analyst")])


FACTS: list[Any] = [
    5,
    [],
    {"failed": ""},
    {"failed": "", "commits": []},
    {"failed": [], "commits": {}},
    {"failed": "so", "commits": {}},
    {"failed": "", "commits": {"1": 5}},
    {"failed": "", "commits": {"1": ["", ""]}},
    {"failed": "", "commits": {"1": ["*", "", ""]}},
    {"failed": "", "commits": {"1": [1, 2, 3]}},
    {"failed": "", "commits": {"-1": ["", "", ""]}},
    {"failed": "", "commits": {"x": ["", "", ""]}},
    {"failed": "", "commits": {"1": ["", "", ""], "01": ["", "", ""]}},
    {"failed": "", "commits": {str(2**64): ["", "", ""]}},
    {"failed": "", "commits": {"9" * 5000: ["", "", ""]}},
]


@pytest.mark.parametrize("facts", FACTS, ids=range(len(FACTS)))
def test_facts_that_no_server_sends_are_refused_at_the_door(keys: Path, tmp_path: Path, facts: Any) -> None:
    made = Witness(keys, tmp_path)
    raw = made.report(None).to_bytes()
    honest = json.dumps({"failed": "", "commits": {}}, sort_keys=True).encode()
    assert raw.endswith(honest)
    with pytest.raises(FrameError, match="report"):
        Report.from_bytes(raw[: -len(honest)] + json.dumps(facts).encode(), made.stated)


def outcomes(law: Callable[[tuple[int, ...]], int | None], turns: int) -> list[int]:
    """How many of all scripts of two-bit words lead to each tag; those that are not decided lead to none."""
    found = [law(script) for script in product(range(4), repeat=turns)]
    return [found.count(tag) for tag in range(4)]


def scripted(script: tuple[int, ...]) -> int | None:
    def drawn(rows: np.ndarray, turn: int) -> np.ndarray:
        if turn >= len(script):
            raise LookupError
        return np.full(len(rows), script[turn], np.uint32)

    try:
        return int(first_above_zero(drawn, 1)[0])
    except LookupError:
        return None


def test_tags_are_uniform_above_zero() -> None:
    """Counted through every script of draws, with words of two bits: each tag alike, and one script open."""
    assert outcomes(scripted, 4) == [0, 85, 85, 85]
    assert outcomes(lambda script: max(script[0], 1), 4) == [0, 128, 64, 64]  # as it was: 1 twice as often


def test_a_draw_of_zero_is_drawn_again() -> None:
    """The id whose first word under this key is 0, found by search: its tag was 1."""
    key, ids = bytes(range(16)), np.array([391319891, 7], np.uint64)
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305 - as `tags` does
    first, second = (block.update(int(ids[0]).to_bytes(8, "little") + bytes([turn] + [0] * 7))[:4] for turn in (0, 1))
    assert first == bytes(4)
    assert derive_tags(key, ids)[0] == int.from_bytes(second, "little") > 1
    assert derive_tags(key, ids)[1] == derive_tags(key, ids[1:])[0]
