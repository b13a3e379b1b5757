"""What comes in is held to limits, and every refusal is a problem with public words."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from served import Caller, Service, process, run_service, settings, ward

from above import Above
from wallflower.errors import ParameterError
from wallflower.service.api.middleware import depth, pieces
from wallflower.service.app import application

ASK = {"bar": 7.0, "columns": ["a"], "epsilon": "0.1"}
PLAN = "/v1/datasets/ward/plan/above"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    return tmp_path_factory.mktemp("limits")


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    stated = settings(folder, body_bytes=20_000, failures=5)
    with run_service(stated, questions=(Above,)) as running:
        yield running


@pytest.fixture(scope="module")
def ana(service: Service) -> Caller:
    return service.token("ana")


@pytest.fixture(scope="module")
def sue(service: Service) -> Caller:
    return service.token("sue", "steward")


@pytest.mark.parametrize(
    "raw",
    [
        *(b"{", b"nonsense", b'{"bar": 1,}', b"\xff\xfe", b"{'bar': 1}", b"[" * 100 + b"]" * 100),
        *(b"[" * 9000, b'{"bar": ' + b"9" * 5000 + b"}"),
    ],
)
def test_what_is_no_json_is_malformed(ana: Caller, raw: bytes) -> None:
    answer = ana.post(PLAN, raw=raw)
    assert answer.status in (400, 422)
    assert answer.problem in ("malformed", "parameter")


@pytest.mark.parametrize("raw", [b"[]", b"null", b"3", b'"x"', b"", b"{}"])
def test_what_is_no_object_with_the_right_fields_is_refused(ana: Caller, raw: bytes) -> None:
    assert ana.post(PLAN, raw=raw).problem == "parameter"


@pytest.mark.parametrize(
    "raw",
    [
        b'{"bar": 1.0, "columns": ["a"], "epsilon": "0.1", "epsilon": "5"}',
        b'{"bar": 1.0, "columns": ["a"], "epsilon": "0.1", "more": {"x": 1, "x": 1}}',
    ],
)
def test_what_is_named_twice_is_refused(ana: Caller, raw: bytes) -> None:
    answer = ana.post(PLAN, raw=raw)
    assert (answer.status, answer.problem) == (400, "malformed")
    assert "names something twice" in answer.json["detail"]


def test_another_content_type_is_refused(ana: Caller) -> None:
    assert ana.post(PLAN, raw=json.dumps(ASK).encode(), content_type="text/plain").status == 422


def test_lone_surrogates_and_nuls_are_refused(ana: Caller, sue: Caller) -> None:
    assert ana.post(PLAN, raw=b'{"bar": 1, "epsilon": "1", "columns": ["\\ud800"]}').status == 422
    for name in ("\x00", "a\x00b", "a/b", " a", "", "x" * 201, "a\u2028"):
        answer = sue.post("/v1/datasets", {"name": name, "schema": {"columns": ["x"]}})
        assert (answer.status, answer.problem) == (422, "parameter"), name
        assert sue.post("/v1/tokens", {"name": name, "scope": "analyst"}).status == 422


def test_names_of_people_and_columns_may_be_in_any_script(service: Service, sue: Caller) -> None:
    assert sue.post("/v1/datasets", {"name": "病棟", "schema": {"columns": ["体温"]}}).problem == "parameter"
    alike = {"name": "w\u0430rd", "schema": {"columns": ["a"]}}  # a Cyrillic letter: no look-alike has a fresh budget
    assert sue.post("/v1/datasets", alike).problem == "parameter"
    assert sue.post("/v1/datasets", {**alike, "name": "WARD"}).problem == "conflict"
    made = sue.post("/v1/datasets", {"name": "WARD-7", "schema": {"columns": ["体温"]}})
    assert (made.status, made.json["name"]) == (201, "ward-7")
    made = sue.post("/v1/tokens", {"name": "Zoë Ångström", "scope": "analyst"})
    zoe = Caller(service.url, made.json["text"])
    assert sue.post("/v1/datasets/ward-7/access", {"analyst": "Zoë Ångström"}).status == 201
    for name in ("ward-7", "Ward-7"):
        assert zoe.get(f"/v1/datasets/{name}").json["columns"][0]["name"] == "体温"
    assert zoe.post("/v1/datasets/ward/ask/above", ASK, idempotency_key="1").json["analyst"] == "Zoë Ångström"


def test_a_body_that_is_too_large_is_refused_before_it_is_read(service: Service, ana: Caller) -> None:
    assert ana.post(PLAN, raw=b"x" * 20_001).problem == "too-large"
    with open_line(service) as line:
        line.sendall(head(ana, f"POST {PLAN}", "content-length: 99999999999999999999999"))
        assert b" 400 " in line.recv(4096) or b" 413 " in line.recv(4096)


def test_a_body_in_pieces_is_counted(service: Service, ana: Caller) -> None:
    with open_line(service) as line:
        line.sendall(head(ana, f"POST {PLAN}", "transfer-encoding: chunked"))
        for _ in range(5):
            line.sendall(b"1388\r\n" + b" " * 5000 + b"\r\n")
        assert b" 413 " in line.recv(4096)


@pytest.mark.parametrize(
    "body",
    [
        b'"' + b'\\"' * 12_000,
        b'"' + b"\\" * 24_001,
        b'"' * 24_001,
        b"[" * 12_000 + b'"' + b"]" * 12_000,
        b'{"a": "b\\"]", "c": [[1, "}"], 2]}',
        b"\\",
    ],
)
def test_every_byte_of_a_body_is_looked_at_once(body: bytes) -> None:
    assert b"".join(pieces(body)) == body
    looks = sum(len(piece) for piece in pieces(body)) + sum(1 for _ in pieces(body))
    assert looks <= 2 * len(body)


def test_brackets_in_strings_do_not_count_and_one_without_an_end_goes_on() -> None:
    assert depth(b'{"a": "[[[", "b\\"{{": [1]}') == 2
    assert depth(b'[[[ "]]] [[[[[') == 3


@pytest.mark.parametrize("path", [PLAN, "/v1/none", "/none", "/v1", "/uid"])
def test_without_a_token_the_body_is_not_waited_for(service: Service, path: str) -> None:
    nobody = Caller(service.url, f"wf_{'0' * 12}_{'0' * 43}")
    with open_line(service) as line:
        line.sendall(head(nobody, f"POST {path}", "content-length: 20000") + b'"')  # and nothing more
        assert line.recv(4096).split(b" ")[1] in (b"401", b"429")


def test_a_slow_body_is_given_up(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, body_seconds=0.5), questions=(Above,)) as running, open_line(running) as line:
        line.sendall(head(running.token("ana"), f"POST {PLAN}", "content-length: 100") + b'{"bar"')
        assert b" 408 " in line.recv(4096)


def test_a_slow_head_is_given_up(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, header_seconds=0.5), questions=(Above,)) as running:
        with open_line(running) as line:
            line.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
            assert line.recv(4096) == b""
        with open_line(running) as line:
            assert line.recv(4096) == b""


BEGINNINGS = {
    "headers": (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n", b"x: " + b"a" * 60_000 + b"\r\n"),
    "one header": (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ", b"a" * 60_000),
    "small headers": (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n", b"x: a\r\n" * 10_000),
    "URL": (b"GET /", b"a" * 60_000),
    "trailer": (b"POST /v1/x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: ", b"a" * 60_000),
    "extension of a chunk": (
        b"POST /v1/x HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1;",
        b"a" * 60_000,
    ),
}


def peak_memory(process: int) -> int:
    """Megabytes."""
    told = Path(f"/proc/{process}/status").read_text()
    return int(told.partition("VmHWM:")[2].split()[0]) // 1024


def test_300_megabytes_of_headers_on_four_connections_take_no_memory(tmp_path: Path) -> None:
    with process(settings(tmp_path)) as (running, url):
        assert Caller(url).get("/healthz").status == 200
        before = peak_memory(running.pid)
        for beginning, more in BEGINNINGS.values():
            with ExitStack() as stack:
                lines = [stack.enter_context(open_line(Service(None, url))) for _ in range(4)]
                sent = [send_until_refused(line, beginning, more, 300_000_000) for line in lines]
            assert max(sent) < 300_000_000
        assert Caller(url).get("/healthz").status == 200
        assert peak_memory(running.pid) - before <= 10


def send_until_refused(line: socket.socket, beginning: bytes, more: bytes, most: int) -> int:
    line.sendall(beginning)
    sent = 0
    try:
        while sent < most:
            line.sendall(more)
            sent += len(more)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return sent


@pytest.mark.parametrize(
    ("raw", "status", "kind"),
    [
        (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 65_400 + b"\r\n\r\n", b"200", b"ok"),
        (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 65_600 + b"\r\n\r\n", b"431", b"head-too-large"),
        (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"x: a\r\n" * 99 + b"\r\n", b"200", b"ok"),
        (b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n" + b"x: a\r\n" * 100 + b"\r\n", b"431", b"head-too-large"),
        (b"GET /healthz?" + b"a" * 16_000 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", b"200", b"ok"),
        (b"GET /healthz?" + b"a" * 16_400 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", b"414", b"url-too-long"),
    ],
)
def test_the_head_of_a_request_is_bounded(service: Service, raw: bytes, status: bytes, kind: bytes) -> None:
    with open_line(service) as line:
        line.sendall(raw)
        answer = line.recv(65_536)
        while kind not in answer:
            answer += line.recv(65_536)
        assert answer.split(b" ")[1] == status


def test_a_trailer_is_no_header(service: Service, ana: Caller) -> None:
    with open_line(service) as line:
        chunked = "host: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        line.sendall(f"POST {PLAN} HTTP/1.1\r\n{chunked}0\r\nauthorization: Bearer {ana.token}\r\n\r\n".encode())
        assert line.recv(4096).split(b" ")[1] in (b"401", b"429")


def open_line(service: Service) -> socket.socket:
    place = urlsplit(service.url)
    return socket.create_connection((place.hostname, place.port))


def head(caller: Caller, line: str, *headers: str) -> bytes:
    token = f"authorization: Bearer {caller.token}"
    common = (f"{line} HTTP/1.1", "host: localhost", token, "content-type: application/json")
    return "\r\n".join([*common, *headers, "", ""]).encode()


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/nothing",
            "/v1",
            "/v1/datasets/none",
            "/v1/datasets/..%2f..%2fetc",
            "/v1/datasets/%00",
            "/v1/releases/9999",
        ),
        *("/v1/jobs/none", "/v1/jobs/%00", "/v1/watches/none", "/v1/watches/%00", "/redoc", "/v1/datasets/%ff/budget"),
    ],
)
def test_what_is_not_there_is_a_problem(ana: Caller, path: str) -> None:
    answer = ana.get(path)
    assert (answer.status, answer.problem) == (404, "not-found")


def test_another_method_is_a_problem_and_says_which_are_right(ana: Caller) -> None:
    answer = ana("PUT", "/v1/datasets")
    assert (answer.status, answer.problem) == (405, "method")
    assert {"GET", "POST"} <= set(answer.headers["allow"].split(", "))


def test_a_page_says_which_methods_it_has(service: Service) -> None:
    for path, methods in (("/ui/sign-in", {"GET", "HEAD", "POST"}), ("/ui/sign-out", {"POST"})):
        answer = service[None]("PUT", path)
        assert (answer.status, set(answer.headers["allow"].split(", "))) == (405, methods)


def test_a_request_without_a_host_is_refused(service: Service) -> None:
    with open_line(service) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert line.recv(4096).split(b" ")[1] == b"400"


@pytest.mark.parametrize("path", ["/v1/releases/0", "/v1/releases/x", "/v1/releases/99999999999", "/v1/releases/-1"])
def test_numbers_in_paths_are_numbers(ana: Caller, path: str) -> None:
    assert ana.get(path).status == 422


@pytest.mark.parametrize("query", ["last=0", "last=1001", "last=x", "before=0", "event=none", "dataset=%00"])
def test_numbers_in_queries_are_bounded(sue: Caller, query: str) -> None:
    assert sue.get(f"/v1/ledger/entries?{query}").problem == "parameter"


# Sources


def test_sources_lie_under_a_root(folder: Path, sue: Caller, tmp_path: Path) -> None:
    outside = ward(tmp_path).source
    (folder / "link.csv").symlink_to(str(outside))
    (folder / "linked").mkdir()
    (folder / "linked" / "part.parquet").symlink_to(str(outside))
    climbing = os.path.relpath(str(outside), folder)
    for source in (outside, climbing, "link.csv", "linked", "/etc/passwd", "none.csv", "../../etc/passwd", "~", "\x00"):
        body = {"name": "stolen", "source": source, "schema": {"columns": ["a"]}}
        answer = sue.post("/v1/datasets", body)
        assert (answer.status, answer.problem) == (422, "parameter"), source
        assert b"under one of the service's roots" in answer.content
    for url in ("sqlite:///ledger.db?table=entries", "postgresql://h/d?table=t", "duckdb:////etc/passwd?table=t"):
        assert sue.post("/v1/datasets", {"name": "s", "source": url, "schema": {}}).problem == "parameter"
    assert sue.get("/v1/datasets/stolen").status == 404


def test_a_steward_registers_a_file_and_it_stays_registered(folder: Path, service: Service, sue: Caller) -> None:
    (folder / "more.csv").write_text("x\n1\n2\n3\n")
    body = {"name": "more", "source": "more.csv", "schema": {"columns": {"x": {"low": 0, "high": 9}}}}
    assert sue.post("/v1/datasets", body).json["rows"] == 3
    assert sue.post("/v1/datasets", body).problem == "conflict"
    assert sue.post("/v1/datasets", {**body, "name": "ward"}).problem == "conflict"
    (folder / "more.csv").unlink()
    assert sue.post("/v1/datasets/more/ask/above", {"bar": 1.0, "epsilon": "0.5"}).status == 200
    again = application(service.app.state.core.settings, (Above,)).state.core
    assert "more" in again.catalog.names()
    again.close()


def test_a_file_that_does_not_fit_is_refused_without_its_values(folder: Path, sue: Caller) -> None:
    (folder / "odd.csv").write_text("x\n1\n77777\n")
    answer = sue.post("/v1/datasets", {"name": "odd", "source": "odd.csv", "schema": {"columns": {"x": {"high": 9}}}})
    assert (answer.status, answer.problem) == (422, "data")
    assert b"77777" not in answer.content


def test_a_stream_has_columns_and_no_table(sue: Caller, ana: Caller) -> None:
    assert sue.post("/v1/datasets", {"name": "empty", "schema": {}}).problem == "parameter"
    assert ana.get("/v1/datasets/beds").json["stream"] is True
    assert ana.post("/v1/datasets/beds/ask/above", ASK).problem == "data"


# Attempts


def test_too_many_failures_are_slowed_and_lock_out_nobody_who_is_right(service: Service) -> None:
    service.app.state.attempts._failures.clear()
    bad = service["wf_000000000000_" + "A" * 43]
    found = [bad.get("/v1/whoami") for _ in range(8)]
    assert [answer.status for answer in found] == [401] * 5 + [429] * 3
    assert (found[-1].problem, found[-1].headers["retry-after"]) == ("too-many-attempts", "60")
    assert service.token("new").get("/v1/whoami").status == 200  # checked for the first time
    assert Caller(service.url, "nonsense").get("/v1/whoami").status == 429


@pytest.mark.parametrize("proxies", [(), ("127.0.0.0/8",)])
def test_an_address_is_believed_from_a_proxy_that_is_named_alone(tmp_path: Path, proxies: tuple[str, ...]) -> None:
    with run_service(settings(tmp_path, failures=2, proxies=proxies), questions=(Above,)) as running:
        bad = Caller(running.url, "nonsense")
        found = [bad.get("/v1/whoami", x_forwarded_for=f"192.0.2.{number}").status for number in range(4)]
        assert found == ([401] * 4 if proxies else [401, 401, 429, 429])
        wrong = [f"wf_{'0' * 12}_{letter * 43}" for letter in "ABCD"]
        found = [Caller(running.url, one).get("/v1/whoami", x_forwarded_for=f"2001:db8::{one[-1]}") for one in wrong]
        assert {answer.status for answer in found[2:]} == {429}  # one token, tried from everywhere


@pytest.mark.parametrize("proxy", ["*", "", "proxy.example", 7, "10.0.0.5/8"])
def test_a_proxy_is_an_address(tmp_path: Path, proxy: Any) -> None:
    with pytest.raises(ParameterError, match="an address or a network"):
        settings(tmp_path, proxies=(proxy,))


def test_bounds_outside_the_public_range_are_refused_before_the_charge(tmp_path: Path) -> None:
    body = {"threshold": 2.0, "low": 34.5, "high": 39.5, "epsilon": "1", "force": True}
    with run_service(settings(tmp_path)) as running:
        ana = running.token("ana")
        for path in ("/v1/datasets/beds/plan/watch", "/v1/datasets/beds/watches/watch"):
            answer = ana.post(path, body)
            assert (answer.status, answer.problem) == (422, "parameter"), path
            assert "outside the public range" in answer.json["detail"]
        assert running.app.state.core.entries(event="charge") == []
