"""Questions and a watch that tests ask for over HTTP, and how they go on."""

from __future__ import annotations

import time
from typing import Any

from served import Caller, Service

ASK = {"bar": 7.0, "columns": ["a"], "epsilon": "0.1"}
WATCH = {"threshold": 2.0, "low": -5.0, "high": 5.0, "epsilon": "0.25", "force": True}
EXPLAIN = {
    "force": True,
    "record": "3",
    "metric": "b",
    "context": ["a"],
    "domain": {"columns": {"a": {"edges": [5, 10]}, "b": {"low": 0, "high": 100}}, "clip": True},
    "size": 1000,
    "epsilon": "0.25",
}
OPEN = "/v1/datasets/beds/watches/watch"


def charges(service: Service, analyst: str | None = None) -> int:
    return len(service.app.state.core.ledger.history("ward", event="charge", analyst=analyst))


def wait_for_job(caller: Caller, job: str) -> tuple[dict[str, Any], set[str]]:
    states = set()
    while True:
        found = caller.get(f"/v1/jobs/{job}").json
        states.add(found["state"])
        if found["state"] in ("done", "failed"):
            return found, states
        time.sleep(0.02)


def post(caller: Caller, watch: str, rows: Any, **more: Any) -> Any:
    return caller.post(f"/v1/watches/{watch}/observations", {"rows": rows, **more})
