"""deploy/ as an office would run it: nginx with TLS before two services on one PostgreSQL, scraped by Prometheus."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "force": True}
_METRIC = re.compile(r"\b(?:wallflower_[a-z_]+|up)\b")


@dataclass(frozen=True)
class Office:
    """The running set-up: where it listens, its folder, and a token for each role."""

    folder: Path
    https: int
    services: tuple[int, int]
    prometheus: int
    analyst: str

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """One request through nginx."""
        trust = ssl.create_default_context(cafile=str(self.folder / "tls" / "cert.pem"))
        return _exchange(
            http.client.HTTPSConnection("localhost", self.https, context=trust), method, path, body, headers
        )

    def query(self, expression: str) -> list[Any]:
        """What Prometheus answers to an expression."""
        path = f"/api/v1/query?query={quote(expression)}"
        line = http.client.HTTPConnection("127.0.0.1", self.prometheus)
        status, _, content = _exchange(line, "GET", path, None, {})
        assert status == 200, (expression, content)
        found: list[Any] = json.loads(content)["data"]["result"]
        return found

    def log(self, port: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log_text(port).splitlines() if line.startswith("{")]

    def _log_text(self, port: int) -> str:
        return (self.folder / f"service-{port}.log").read_text()


def _exchange(
    line: http.client.HTTPConnection, method: str, path: str, body: Any, headers: dict[str, str]
) -> tuple[int, dict[str, str], bytes]:
    stated = {name.replace("_", "-"): value for name, value in headers.items()}
    content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    if content is not None:
        stated.setdefault("content-type", "application/json")
    try:
        line.request(method, path, body=content, headers=stated)
        answer = line.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        line.close()


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for probe in sockets:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in sockets]
    for probe in sockets:
        probe.close()
    return ports


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    folder = tmp_path / "office"
    https, first, second, prometheus, database = _free_ports(5)
    variables = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HTTPS_PORT": str(https),
        "SERVICE_PORTS": f"{first} {second}",
        "PROMETHEUS_PORT": str(prometheus),
        "POSTGRES_PORT": str(database),
        "SCRAPE_INTERVAL": "1s",
    }
    with (folder.parent / "log").open("wb") as log:
        script = subprocess.Popen(
            [DEPLOY / "try-office", folder], env=os.environ | variables, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert script.stdout is not None
        lines: list[str] = []
        for line in script.stdout:
            lines.append(line)
            if line.startswith("  analyst's token"):
                break
        else:
            raise AssertionError(f"{''.join(lines)}\n{(folder.parent / 'log').read_text()}")
        yield Office(folder, https, (first, second), prometheus, lines[-1].split()[-1])
    finally:
        script.terminate()
        script.wait()
        assert script.stdout is not None
        script.stdout.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait as long as the limit of a test allows."""
    while not is_so():
        time.sleep(0.2)


@pytest.mark.slow
def test_two_services_behind_nginx_are_one_and_prometheus_scrapes_both(office: Office) -> None:
    check_tls_and_host(office)
    check_limits(office)
    check_forwarded_address(office)
    check_one_budget(office)
    check_metrics(office)
    check_failover(office)  # the last: the service stays ended


def check_tls_and_host(office: Office) -> None:
    status, headers, _ = office.call("GET", "/ui/sign-in")
    assert status == 200
    assert headers["set-cookie"].startswith("__Host-wallflower=")
    assert "strict-transport-security" in headers
    assert re.fullmatch("[0-9a-f]{32}", headers["x-request-id"]), "nginx's own"
    assert office.call("GET", "/ui/sign-in", host="evil.example")[0] == 421
    for port in office.services:
        line = http.client.HTTPConnection("127.0.0.1", port)
        assert _exchange(line, "GET", "/ui/sign-in", None, {})[0] == 421, "its address is that of the proxy"
    assert office.call("GET", "/metrics")[0] == 404


def check_limits(office: Office) -> None:
    assert office.call("GET", "/ui/sign-in", x_large="a" * 100_000)[0] == 400
    assert office.call("GET", "/ui/sign-in?" + "a" * 20_000)[0] == 414
    assert office.call("POST", "/v1/datasets", b"0" * (2**20 + 2))[0] == 413
    assert office.call("GET", "/ui/sign-in")[0] == 200


def check_forwarded_address(office: Office) -> None:
    status, headers, _ = office.call("GET", "/v1/whoami", x_forwarded_for="203.0.113.9", authorization="Bearer x")
    assert status == 401
    lines = [line for port in office.services for line in office.log(port)]
    failed = [line for line in lines if line["event"] == "authentication failed"]
    assert [line["address"] for line in failed] == ["127.0.0.1"]
    assert failed[0]["request"] == headers["x-request-id"]


def check_one_budget(office: Office) -> None:
    token = f"Bearer {office.analyst}"
    for number in range(12):
        status, _, content = office.call(
            "POST", "/v1/datasets/ward/ask/count", ASK, authorization=token, idempotency_key=f"k{number // 2}"
        )
        assert status == 200, content
    budget = json.loads(office.call("GET", "/v1/datasets/ward/budget", authorization=token)[2])
    assert budget["spent"]["epsilon"] == "3/50", budget
    wait_until(lambda: sum(float(row["value"][1]) for row in office.query("wallflower_asks_total")) == 12)
    by_service = {row["metric"]["instance"]: float(row["value"][1]) for row in office.query("wallflower_ledger_up")}
    assert by_service == {f"127.0.0.1:{port}": 1 for port in office.services}
    assert len(office.query("wallflower_resident_memory_bytes")) == 4, "two workers each"


def check_metrics(office: Office) -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    drawn = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"][0]["rules"]
    expressions = [expr.replace("$instance", ".*") for expr in (*drawn, *(rule["expr"] for rule in rules))]
    names = {name for expr in expressions for name in _METRIC.findall(expr)} - {"wallflower_budget_left"}
    assert len(names) > 15
    office.call("GET", "/v1/datasets", authorization=f"Bearer {office.analyst}")
    for name in sorted(names):
        wait_until(lambda: bool(office.query(name)))  # noqa: B023 - called at once
    for expression in expressions:
        office.query(expression)
    line = http.client.HTTPConnection("127.0.0.1", office.prometheus)
    loaded = json.loads(_exchange(line, "GET", "/api/v1/rules", None, {})[2])["data"]["groups"][0]["rules"]
    assert {rule["name"] for rule in loaded} == {rule["alert"] for rule in rules}
    assert not [rule for rule in loaded if rule["health"] == "err"]


def check_failover(office: Office) -> None:
    victim = next(pid for pid, command in _commands() if f"--port\0{office.services[0]}" in command)
    os.kill(victim, signal.SIGTERM)
    for _ in range(10):
        assert office.call("GET", "/v1/whoami", authorization=f"Bearer {office.analyst}")[0] == 200
    wait_until(lambda: len(office.query('up{job="wallflower"} == 0')) == 1)


def _commands() -> Iterator[tuple[int, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            yield int(folder.name), (folder / "cmdline").read_text()
        except OSError:
            continue


def test_the_alert_rules_are_sound(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "scripts/setup prometheus installs it"
    for file in (DEPLOY / "alerts.yml", Path(__file__).parent / "alerts_test.yml"):
        shutil.copy(file, tmp_path)
    for command in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run([promtool, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_leaves_little_exposed(tmp_path: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd-analyze is not here")
    place = tmp_path / "wallflower.service"
    text = (DEPLOY / "wallflower.service").read_text().replace("/opt/wallflower/bin/wallflower", sys.executable)
    place.write_text(text)
    checked = subprocess.run([analyse, "verify", place], capture_output=True, text=True, check=False)
    assert str(place) not in checked.stderr, checked.stderr
    judged = subprocess.run(
        [analyse, "security", "--offline=true", place], capture_output=True, text=True, check=False
    ).stdout
    exposure = re.search(r"exposure level for \S+: ([0-9.]+)", judged)
    assert exposure is not None, judged
    assert float(exposure[1]) < 2.0, judged
