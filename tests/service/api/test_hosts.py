"""The service's own address: links are made from it, and requests to other hosts are refused."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from page_client import COUNT, Browser, text
from served import Caller, Service, run_service, settings

from wallflower.errors import ParameterError
from wallflower.service.settings import Office, Settings, parse_address

ADDRESS = "https://stats.example"
EVIL_HOST = "evil.example"


def send_raw(service: Service, head: bytes) -> bytes:
    place = urlsplit(service.url)
    with socket.create_connection((place.hostname, place.port)) as connection:
        connection.sendall(head)
        return connection.recv(65536)


def test_links_citation_and_snippets_are_made_from_the_address(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, office=Office(address=ADDRESS))) as service:
        browser = Browser(service, always={"host": "stats.example"})
        browser.sign_in(service.token("ana").token)
        browser.get("/ui/datasets/ward/plan/count")
        place = browser.post("/ui/datasets/ward/ask/count", COUNT).headers["location"]
        page = text(browser.get(place))
        assert f"{ADDRESS}{place}" in page
        assert f'wf.connect("{ADDRESS}")' in page.replace("&#34;", '"')
        assert f"--server {ADDRESS}" in page
        assert "127.0.0.1" not in page
        assert browser.name == "__Host-wallflower"


@pytest.mark.parametrize("host", [EVIL_HOST, "stats.example:8443", "stats.example.evil.example", "a@stats.example", ""])
def test_another_host_is_refused_where_there_is_an_address(tmp_path: Path, host: str) -> None:
    with run_service(settings(tmp_path, office=Office(address=ADDRESS))) as service:
        for path in ("/ui/sign-in", "/v1/datasets", "/openapi.json", "/"):
            answer = service["x"].get(path, host=host)
            assert (answer.status, answer.problem) == (421, "misdirected"), path
            assert EVIL_HOST.encode() not in answer.content
        assert Caller(service.url).get("/ui/sign-in", host="STATS.example:443").status == 200


def test_probes_and_scrapers_reach_a_process_by_any_host(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, office=Office(address=ADDRESS))) as service:
        for path, status in (("/healthz", 200), ("/readyz", 200), ("/metrics", 401)):
            assert Caller(service.url).get(path, host="10.0.0.5:8080").status == status
        assert send_raw(service, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_without_an_address_it_answers_to_localhost_and_its_own_ip(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as service:
        port = urlsplit(service.url).port
        for host in ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
            assert Caller(service.url).get("/ui/sign-in", host=host).status == 200, host
        for host in (EVIL_HOST, "localhost.evil.example", "127.0.0.2", "[::2]:80"):
            assert Caller(service.url).get("/ui/sign-in", host=host).problem == "misdirected", host


@pytest.mark.parametrize(
    "head",
    [
        b"GET /ui/sign-in HTTP/1.0\r\n\r\n",
        b"GET /ui/sign-in HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n",
        b"GET /ui/sign-in HTTP/1.1\r\nhost: localhost\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ],
)
def test_a_request_without_exactly_one_host_is_refused(tmp_path: Path, head: bytes) -> None:
    with run_service(settings(tmp_path)) as service:
        assert send_raw(service, head).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "address",
    ["stats.example", "ftp://stats.example", "https://", "https://a/b", "https://a?b", "https://u@a", "https://a:x"],
)
def test_an_address_that_is_not_the_url_of_a_service_is_refused(tmp_path: Path, address: str) -> None:
    (tmp_path / "service.toml").write_text(f'[office]\naddress = "{address}"\n')
    with pytest.raises(ParameterError, match="public URL"):
        Settings.read(tmp_path / "service.toml")


def test_an_address_is_kept_without_its_default_port(tmp_path: Path) -> None:
    (tmp_path / "service.toml").write_text('[office]\naddress = "https://Stats.example:443/"\n')
    made = Settings.read(tmp_path / "service.toml")
    assert made.office.address == ADDRESS == parse_address(ADDRESS)
    assert made.is_behind_tls
    assert Settings.from_json(made.to_json()) == made
