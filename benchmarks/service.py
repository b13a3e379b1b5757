"""The HTTP service under load: requests a second and the slowest of a hundred, as one JSON object.

`python service.py` starts a server on a table of 10,000 records with five columns, and calls it from `--clients`
connections that are kept open, each in a thread of this process, so server and clients share the machine.

`plan`     a plan that was made before              `refused`  a question that the budget does not cover
`count`    a count that is charged, answered and recorded, without a tick and with the usual one of 0.25 s
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.schema import Schema
from wallflower.service.core.access.tokens import Tokens
from wallflower.service.core.records import Records
from wallflower.service.settings import Registration, Settings

SERVE = """
import sys
from wallflower.service.server import serve
from wallflower.service.settings import Settings
serve(Settings.from_json(sys.argv[1]), lambda url: print(url, flush=True))
"""
ASK = {"neighbours": 5, "radius": 0.5}
WAYS = {
    "plan": ("/v1/datasets/table/plan/count", {**ASK, "epsilon": "0.5"}, 200),
    "refused": ("/v1/datasets/table/ask/count", {**ASK, "epsilon": "900000"}, 403),
    "count": ("/v1/datasets/table/ask/count", {**ASK, "epsilon": "0.001"}, 200),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--ledger", help="a PostgreSQL URL; default: SQLite")
    given = parser.parse_args()
    found = {}
    for tick in (0.0, 0.25):
        with tempfile.TemporaryDirectory() as folder, served(Path(folder), tick, given) as (url, token):
            for name in WAYS if not tick else ("count",):
                found[f"{name}, tick {tick:g} s"] = measured(url, token, name, given)
    asked = {**vars(given), "ledger": "postgresql" if given.ledger else "sqlite"}  # a URL may hold a password
    print(json.dumps({"cores": os.cpu_count(), **asked, "found": found}, indent=1))


@contextmanager
def served(folder: Path, tick: float, given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    values = np.random.default_rng(7).normal(size=(10_000, 5))
    np.savetxt(folder / "table.csv", values, delimiter=",", header="a,b,c,d,e", comments="", fmt="%.6f")
    place = given.ledger or str(folder / "ledger.db")
    with Ledger.open(place) as ledger:
        ledger.grant("table", Loss("100"), by="steward")
    records = Records(place)
    _, token = Tokens(records).create("analyst", "analyst")
    records.close()
    table = Registration(analysts=("*",), name="table", source=str(folder / "table.csv"), schema=Schema.of("abcde"))
    settings = Settings(
        port=0, ledger=place, quantum_seconds=tick, workers=given.workers, roots=(str(folder),), datasets=(table,)
    )
    command = [sys.executable, "-c", SERVE, settings.to_json()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            yield url, token
        finally:
            server.terminate()
            server.wait(60)


def measured(url: str, token: str, name: str, given: argparse.Namespace) -> dict[str, float]:
    call(connected(url), token, name)
    times: list[float] = []
    until = time.monotonic() + given.seconds
    threads = [
        threading.Thread(target=lambda: times.extend(hammer(url, token, name, until))) for _ in range(given.clients)
    ]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    middle, slow = np.percentile(times, [50, 99]) * 1000
    figures = {"requests_per_second": len(times) / took, "median_ms": float(middle), "p99_ms": float(slow)}
    return {key: round(value, 1) for key, value in figures.items()} | {"requests": len(times)}


def hammer(url: str, token: str, name: str, until: float) -> list[float]:
    line, times = connected(url), []
    while time.monotonic() < until:
        began = time.monotonic()
        call(line, token, name)
        times.append(time.monotonic() - began)
    return times


def call(line: http.client.HTTPConnection, token: str, name: str) -> None:
    path, body, expected = WAYS[name]
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    line.request("POST", path, body=json.dumps(body), headers=headers)
    answer = line.getresponse()
    told = answer.read()
    if answer.status != expected:
        raise SystemExit(f"{name}: {answer.status} {told.decode()[:300]}")


def connected(url: str) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)


if __name__ == "__main__":
    main()
