"""Real parties over real sockets: what each call answers, and who may make it."""

from __future__ import annotations

import json
import re
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stage import EXACT, Stage, flagged, readings

from wallflower.noise import system_noise
from wallflower.sensors.device import prepare_batch, prepare_commit
from wallflower.sensors.parties.client import CERTIFICATE_HEADER, SIGNATURE_HEADER, Link, Unreachable
from wallflower.sensors.parties.device import Device, fetch_parameters
from wallflower.sensors.parties.keys import Identity, make_keys
from wallflower.sensors.parties.party import BadCall
from wallflower.sensors.protocol.frames import BatchId, Forgery, Frame, Kind, encode

ALLOWED = re.compile(
    r"[\d\-]+ [\d:,]+ (window \d+: [a-z ,()\d]+|window \d+: waiting: [a-z ]+: [\w. ]+"
    r"|(PUT|POST|GET) /[\w/\-]*: refused \(\d+\))"
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("wire"), tls=True) as made:
        made.start()
        yield made


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A correction server alone: nothing here needs the others."""
    with Stage(tmp_path_factory.mktemp("plain")) as made:
        made.start("correction")
        yield made


def made_batch(stage: Stage, window: int, seq: int = 0, sensor: int = 1, count: int = 12) -> bytes:
    rows, _ = readings(window, count)
    place = BatchId(sensor=sensor, window=window, seq=seq)
    return prepare_batch(stage.signed.parameters, rows, place, bytes(16), system_noise()).frames["correction"]


def put(
    stage: Stage, body: bytes, window: int, seq: int | str = 0, *, sensor: int = 1, by: str = "", **more: Any
) -> int:
    what = seq if isinstance(seq, str) else f"b/{seq}"
    path = f"/v1/hall/w/{window}/s/{sensor}/{what}"
    return stage.call(by or f"sensor-{sensor}", "correction", "PUT", path, body, **more)[0]


def test_everything_arrives_with_tls(stage: Stage) -> None:
    outliers, fates = stage.send(0)
    assert fates == {"analyst": {"sent": 4}, "correction": {"sent": 4}}
    result = stage.result(0)
    assert flagged(result) == outliers
    assert (result["judged"], result["unjudged"]) == (60, [])
    assert result["sensors"] == {"1": {"readings": 60, "spent": "12"}}
    assert result["threshold"] == "20"


def test_the_owner_leaves_json_and_a_page(stage: Stage) -> None:
    stage.send(1)
    result = stage.result(1)
    stored = json.loads((stage.folder / "out" / "window-1.json").read_text())
    assert stored == result
    page = (stage.folder / "out" / "index.html").read_text()
    assert "Window 1" in page
    assert all(name in page for name in flagged(result))


def greeted(port: int, context: ssl.SSLContext) -> bytes:
    """What a server says to a caller of any kind; with TLS 1.3 a refusal comes with the first byte read."""
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(("127.0.0.1", port)) as bare, context.wrap_socket(bare) as tls:
            tls.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            return tls.recv(100)
    except OSError:
        return b""


def test_nobody_gets_through_the_handshake_without_a_certificate_of_the_authority(stage: Stage, tmp_path: Path) -> None:
    make_keys(tmp_path, sensors=1)
    stranger, port = Identity.read(tmp_path / "sensor-1"), stage.ports["analyst"]
    assert greeted(port, stranger.client_context()) == b""
    assert greeted(port, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) == b""
    assert greeted(port, stage.identity("sensor-1").client_context()).startswith(b"HTTP/1.1 200")
    with closing(Link(stage.url("analyst"), to="analyst", identity=stranger)) as link, pytest.raises(Unreachable):
        link.call("GET", "/v1/hall/parameters")


def test_a_party_at_the_wrong_address_is_found_out(stage: Stage) -> None:
    sensor = stage.identity("sensor-1")
    link = Link(stage.url("analyst"), to="correction", identity=sensor)
    with closing(link), pytest.raises(Forgery, match="analyst responds at this address"):
        link.call("GET", "/healthz")


def test_a_sensor_that_joins_takes_the_signed_set(stage: Stage) -> None:
    sensor = stage.identity("sensor-2")
    found = fetch_parameters(stage.url("analyst"), "hall", sensor, to="analyst")
    assert found.parameters == stage.signed.parameters
    with pytest.raises(BadCall):
        fetch_parameters(stage.url("analyst"), "attic", sensor, to="analyst")


def test_a_sensor_with_another_set_is_turned_away(stage: Stage, tmp_path: Path) -> None:
    other = Stage(tmp_path, tls=True)
    urls = {role: stage.url(role) for role in ("analyst", "correction")}
    device = Device(stage.identity("sensor-2"), other.signed, tmp_path / "s.db", urls)
    with device, pytest.raises((BadCall, Forgery)):
        device.check()
    asked = "/v1/hall/parameters?hash="
    assert stage.call("sensor-2", "analyst", "GET", asked + "0" * 64)[0] == 409
    assert stage.call("sensor-2", "analyst", "GET", asked + stage.signed.parameters.hash.hex())[0] == 200


def test_results_are_for_the_owner(stage: Stage) -> None:
    stage.send(2)
    stage.result(2)
    for name in ("analyst", "sensor-1"):
        assert stage.call(name, "owner", "GET", "/v1/hall/w/2/result")[0] == 403
        assert stage.call(name, "owner", "GET", "/")[0] == 403
    status, body = stage.call("owner", "owner", "GET", "/")
    assert status == 200
    assert b"Window 2" in body


def test_only_servers_report_and_only_the_analyst_asks(stage: Stage) -> None:
    frame = Frame(kind=Kind.RESULT, parameters=stage.signed.parameters.hash, window=9, rest=b"x" * 99)
    assert stage.call("sensor-1", "owner", "POST", "/v1/results", encode(frame))[0] == 403
    assert stage.call("analyst", "owner", "POST", "/v1/results", encode(frame))[0] == 403  # not sealed
    asked = Frame(kind=Kind.MANIFEST, parameters=frame.parameters, window=9, arrays={"ids": []})
    assert stage.call("sensor-1", "correction", "POST", "/v1/hall/w/9/manifest", encode(asked))[0] == 403
    assert stage.call("analyst", "correction", "POST", "/v1/hall/w/9/manifest", encode(asked))[0] == 425


def test_new_again_other_and_closed(plain: Stage) -> None:
    first, other = made_batch(plain, 0), made_batch(plain, 0)
    assert put(plain, first, 0) == 201
    assert put(plain, first, 0) == 200
    assert put(plain, other, 0) == 409
    assert put(plain, first, 0) == 200


def test_a_frame_where_it_does_not_belong_is_refused(plain: Stage) -> None:
    body = made_batch(plain, 1)
    assert put(plain, body, 2) == 422
    assert put(plain, body, 1, 5) == 422
    assert put(plain, body, 1, sensor=2) == 422  # signed by sensor 2, but made by sensor 1
    assert put(plain, body, 1, "commit") == 422
    assert put(plain, body, 1, by="sensor-2") == 403
    assert put(plain, body, 1, by="analyst") == 403
    assert put(plain, made_batch(plain, 10**6), 10**6) == 425  # a window that has not begun: send it again later


@pytest.mark.parametrize("place", [0, 4, 6, 8, 16, 24, 28, 32, 60, 70, 200, -1])
def test_a_damaged_frame_is_refused(plain: Stage, place: int) -> None:
    body = bytearray(made_batch(plain, 3))
    proof = plain.identity("sensor-1").key.sign(bytes(body))
    body[place] ^= 0x40
    assert put(plain, bytes(body), 3, signature=proof) == 403
    assert put(plain, bytes(body), 3) in (201, 409, 422)  # signed as it is: at worst it is another batch


def test_a_wrong_signature_is_refused(plain: Stage) -> None:
    body = made_batch(plain, 4)
    for proof in (b"", bytes(64), plain.identity("sensor-2").key.sign(body), b"x" * 63):
        assert put(plain, body, 4, signature=proof) == 403
    assert put(plain, body, 4) == 201


def test_without_a_certificate_or_with_nonsense_nobody_is_known(plain: Stage) -> None:
    body = made_batch(plain, 5)
    proof = b64encode(plain.identity("sensor-1").key.sign(body)).decode()
    for headers in (
        {SIGNATURE_HEADER: proof},
        {SIGNATURE_HEADER: proof, CERTIFICATE_HEADER: "!!"},
        {SIGNATURE_HEADER: "*", CERTIFICATE_HEADER: "AAAA"},
    ):
        connection = HTTPConnection("127.0.0.1", plain.ports["correction"])
        connection.request("PUT", "/v1/hall/w/5/s/1/b/0", body, headers)
        answer = connection.getresponse()
        assert answer.status == 403
        assert json.loads(answer.read())["status"] == 403
        connection.close()


def test_a_commit_waits_for_its_batches_and_must_fit_them(plain: Stage) -> None:
    stated = plain.signed.parameters
    body = made_batch(plain, 6)
    ids = np.frombuffer(body[64 : 64 + 8 * 12], "<u8")
    commit = prepare_commit(stated, BatchId(sensor=1, window=6, seq=1), ids, Fraction(1), bytes(16))
    wrong = prepare_commit(stated, BatchId(sensor=1, window=6, seq=1), ids[1:], Fraction(1), bytes(16))
    assert put(plain, commit, 6, "commit") == 425
    assert put(plain, body, 6) == 201
    assert put(plain, wrong, 6, "commit") == 422
    assert put(plain, commit, 6, "commit") == 201
    assert put(plain, commit, 6, "commit") == 200
    plain.wait_until_sealed("correction", 6)
    assert put(plain, body, 6) == 200  # the window is closed, yet the same bytes are known
    assert put(plain, made_batch(plain, 6, seq=1), 6, 1) == 410


@pytest.mark.slow
def test_nonsense_over_http_is_answered(plain: Stage) -> None:
    for method, path, body, statuses in (
        ("GET", "/nothing", b"", (404,)),
        ("POST", "/v1/hall/w/0/s/1/b/0", b"x", (404, 405)),
        ("PUT", f"/v1/hall/w/{2**70}/s/1/b/0", b"x", (422,)),
        ("PUT", "/v1/hall/w/0/s/1/b/0", b"", (403,)),
        ("PUT", "/v1/hall/w/0/s/1/b/0", b"x", (422,)),
        ("GET", "/healthz", b"", (200,)),
    ):
        assert plain.call("sensor-1", "correction", method, path, body)[0] in statuses


def test_without_tls_only_loopback(plain: Stage) -> None:
    with pytest.raises(Exception, match="only loopback"):
        Link("http://example.org:80", to="analyst", identity=plain.identity("sensor-1"))


def test_logs_hold_numbers_of_windows_and_sensors_only(stage: Stage, plain: Stage) -> None:
    stage.send(8)
    stage.result(8)
    lines = (stage.logs() + plain.logs()).splitlines()
    lines = [line for line in lines if line and not line.startswith("---")]
    events = ("sealed", "exchanged", "report of the analyst", "report of the correction")
    assert all(f"window 8: {event}" in "\n".join(lines) for event in events)
    assert [line for line in lines if not ALLOWED.fullmatch(line)] == []


@pytest.mark.slow
def test_keys_and_moves_are_gone_after_delivery(stage: Stage) -> None:
    rows, _ = readings(9, 12)
    with stage.device() as device:
        device.outbox.add(9, 0, rows)
        secret = device.outbox.next_frame("correction").body  # type: ignore[union-attr]
        kept = device.outbox.next_frame("analyst").body  # type: ignore[union-attr]
        device.outbox.finish(9)
        device.send()
    stage.result(9)
    key, perturbed = secret[-40:], kept[64 : 64 + 12 * 16]
    for role, is_there in (("correction", False), ("analyst", True)):
        while key in (found := b"".join(path.read_bytes() for path in stage.folder.glob(f"{role}.db*"))):
            time.sleep(0.05)
        assert (perturbed[12 * 8 : 12 * 16] in found) is is_there
    assert EXACT.tags
