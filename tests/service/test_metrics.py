"""Metrics over all workers, their own credential, and lines of the log that belong to a request."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from page_client import COUNT, Browser
from prometheus_client.parser import text_string_to_metric_families
from served import SCRIPT, Caller, Service, make_token, process, run_service, settings, workers

from postgres import Server
from wallflower.errors import SourceError
from wallflower.service.api.routes.operation import read_token
from wallflower.service.settings import Settings

TOKEN = "0123456789abcdef" * 2
ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "0.001", "force": True}


def scrapable(folder: Path, **more: object) -> Settings:
    file = folder / "metrics.token"
    file.write_text(f"{TOKEN}\n")
    return settings(folder, metrics_token_file=str(file), **more)


def samples(url: str, token: str = TOKEN) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    answer = Caller(url, token).get("/metrics")
    assert answer.status == 200, answer
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.content.decode())
        for sample in family.samples
    }


def total(found: dict[tuple[str, tuple[tuple[str, str], ...]], float], name: str, **labels: str) -> float:
    return sum(value for (key, own), value in found.items() if key == name and set(labels.items()) <= set(own))


def test_every_scrape_is_of_all_workers_and_no_sum_falls(tmp_path: Path) -> None:
    stated = scrapable(tmp_path, workers=2)
    ana = make_token(stated)
    with process(stated) as (running, url):
        caller = Caller(url, ana)
        for at in range(12):
            assert caller.post("/v1/datasets/ward/ask/count", ASK, idempotency_key=f"k{at}").status == 200
        route = {"route": "/v1/datasets/{dataset}/ask/count"}
        for _ in range(8):
            found = samples(url)
            assert total(found, "wallflower_asks_total", outcome="answered") == 12
            assert total(found, "wallflower_requests_total", status="200", **route) == 12
            assert total(found, "wallflower_request_duration_seconds_count", **route) == 12
            assert total(found, "wallflower_queue_wait_seconds_count", queue="questions") == 12
        while len(memories(samples(url))) < 2:
            assert running.poll() is None
        victim = workers(running.pid)[0]
        os.kill(victim, signal.SIGKILL)
        while str(victim) in memories(samples(url)) or len(memories(samples(url))) < 2:
            assert running.poll() is None
        found = samples(url)
        assert total(found, "wallflower_asks_total", outcome="answered") == 12
        assert all(value > 10e6 for value in memories(found).values())


def memories(found: dict[tuple[str, tuple[tuple[str, str], ...]], float]) -> dict[str, float]:
    return {dict(own)["process"]: value for (name, own), value in found.items() if "resident_memory" in name}


def test_metrics_are_to_be_had_while_the_ledger_is_down(tmp_path: Path, postgres: Server) -> None:
    stated = scrapable(tmp_path, ledger=postgres.fresh(), metrics_datasets=True)
    with run_service(stated) as service:
        service.token("sue", "steward", days=30)
        monitor = service.token("eye", "monitor")
        found = samples(service.url)
        assert total(found, "wallflower_ledger_up") == 1
        assert total(found, "wallflower_tokens_valid", scope="steward") == 1
        assert total(found, "wallflower_token_next_expiry_timestamp_seconds", scope="steward") > 1.7e9
        assert total(found, "wallflower_budget_left", dataset="ward") == 1
        errors = total(found, "wallflower_ledger_errors_total")
        postgres.stop()
        try:
            assert service["none"].get("/readyz").status == 503
            found = samples(service.url)
            assert total(found, "wallflower_ledger_up") == 0
            assert total(found, "wallflower_ledger_errors_total") > errors
            assert total(found, "wallflower_build_info") == 1
            assert not total(found, "wallflower_tokens_valid")
        finally:
            postgres.start()
        assert total(samples(service.url), "wallflower_ledger_up") == 1
        assert monitor.get("/metrics").status == 200


def test_metrics_are_for_a_token_alone(tmp_path: Path) -> None:
    with run_service(scrapable(tmp_path)) as service:
        assert service[None].get("/metrics").problem == "unauthenticated"
        assert service["x" * 32].get("/metrics").problem == "unauthenticated"
        assert service[TOKEN].get("/metrics").status == 200
        for path in ("/v1/datasets", "/v1/ledger/export", "/metrics/", "/v1/whoami"):
            assert service[TOKEN].get(path).status == 401, path
    with run_service(settings(tmp_path)) as service:
        assert service[TOKEN].get("/metrics").problem == "unauthenticated"
        assert service[""].get("/metrics").problem == "unauthenticated"


@pytest.mark.parametrize("content", [b"", b"short", b"a b" * 20, b"\xff" * 40, None])
def test_a_token_that_can_be_guessed_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "metrics.token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SourceError, match="openssl rand"):
        read_token(str(file))


def test_pages_are_counted_under_their_whole_route(tmp_path: Path) -> None:
    with run_service(scrapable(tmp_path)) as service:
        Browser(service).sign_in(service.token("ana").token).get("/ui/datasets/ward")
        found = samples(service.url)
        assert total(found, "wallflower_requests_total", route="/ui/datasets/{dataset}", status="200") == 1
        assert not [labels for _, labels in found if "ward" in str(labels)]


@contextmanager
def logged(stated: Settings, log: Path) -> Iterator[Service]:
    """A service as a process of its own, whose log goes to a file."""
    with log.open("wb") as kept:
        running = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, stated.to_json()], stdout=subprocess.PIPE, stderr=kept, text=True
        )
        assert running.stdout is not None
        try:
            yield Service(None, running.stdout.readline().strip())  # type: ignore[arg-type]
        finally:
            running.terminate()
            running.wait()
            running.stdout.close()


def test_every_line_is_json_and_names_request_and_caller(tmp_path: Path) -> None:
    stated = settings(tmp_path, workers=2)
    ana, log = make_token(stated), tmp_path / "log"
    with logged(stated, log) as service:
        caller = Caller(service.url, ana)
        while True:
            try:
                caller.get("/readyz")
                break
            except OSError:
                continue
        answer = caller.post("/v1/datasets/ward/ask/count", ASK, x_request_id="office-17", idempotency_key="monday")
        assert answer.headers["x-request-id"] == "office-17"
        odd = caller.get("/v1/datasets", x_request_id='a"b{}')
        assert re.fullmatch("[0-9a-f]{24}", odd.headers["x-request-id"])
        browser = Browser(service).sign_in(ana)
        place = browser.post("/ui/datasets/ward/ask/count", COUNT | {"nonce": "secret-nonce"}).headers["location"]
        assert browser.get(place).status == 200
        assert caller.get("/v1/none", upgrade="websocket", connection="upgrade").status == 404
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert any("Started parent process" in line["event"] for line in lines), "uvicorn's own lines"
    requests = [line for line in lines if line["event"] == "request"]
    asked = next(line for line in requests if line.get("request") == "office-17")
    assert (asked["by"], asked["status"], asked["route"]) == ("ana", 200, "/v1/datasets/{dataset}/ask/count")
    assert asked["token"] == ana.split("_")[1]
    assert all(line["request"] for line in requests)
    page = next(line for line in requests if line["route"] == "/ui/datasets/{dataset}/ask/{kind}")
    assert (page["by"], page["method"]) == ("ana", "POST")
    for secret in (ana.split("_")[2], "ward", "secret-nonce", "monday", 'a"b', browser.cookie):
        assert secret not in log.read_text(), secret


def test_a_library_cannot_put_data_into_the_log() -> None:
    program = """
import logging, threading, warnings
from wallflower.service.core import logs
logs.start()
logging.getLogger("some.library").warning("record %s", "SECRET")
try:
    raise ValueError("SECRET")
except ValueError:
    logging.getLogger("asyncio").exception("SECRET")
warnings.warn("SECRET")
def fail(): raise ValueError("SECRET")
thread = threading.Thread(target=fail); thread.start(); thread.join()
fail()
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr
    lines = [json.loads(line) for line in told.splitlines()]
    assert "SECRET" not in told
    assert [line.get("error") for line in lines] == [None, "ValueError", None, "ValueError", "ValueError"]
    assert all(line.get("logger") or line["at"] for line in lines)
