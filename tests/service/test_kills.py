"""`kill -9` of a worker at every step of a question: what is told is paid, nothing is paid twice, and it goes on."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from deadly import VARIABLE
from served import HERE, Answer, Caller, make_token, process, settings, workers

from wallflower.ledger import Ledger
from wallflower.privacy import Loss

ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "1/40", "force": True}
PATH = "/v1/datasets/ward/ask/count"

# What is in the ledger when a worker dies there, and what whoever asks again under the same key is told.
STEPS = {
    "before it is admitted": ([], "answered"),
    "before the charge": ([], "answered"),
    "after the charge": (["charge"], "lost"),
    "after the look": (["charge"], "lost"),
    "before the record": (["charge"], "lost"),
    "after the record": (["charge", "release"], "replayed"),
    "before it is told": (["charge", "release"], "replayed"),
}


@pytest.mark.slow
def test_a_worker_killed_at_any_step_tells_nothing_unpaid_and_pays_nothing_twice(
    place: str, tmp_path: Path, monkeypatch: Any
) -> None:
    stated, armed = settings(tmp_path, ledger=place), tmp_path / "armed"
    text = make_token(stated)
    monkeypatch.setenv(VARIABLE, str(armed))
    with Ledger.open(place) as ledger, process(stated, HERE / "deadly.py") as (running, url):
        ana = Caller(url, text)
        for step, (written, outcome) in STEPS.items():
            before = len(ledger.history("ward"))
            armed.write_text(step)
            with pytest.raises((OSError, HTTPException)):
                ana.post(PATH, ASK, idempotency_key=step)
            assert [entry.event for entry in ledger.history("ward")[before:]] == written, step
            again = patiently(lambda key=step: ana.post(PATH, ASK, idempotency_key=key), running)  # type: ignore[misc]
            assert outcome_of(again) == outcome, step
            paid = [entry for entry in ledger.history("ward", event="charge") if entry.idempotency_key == f"ana/{step}"]
            assert len(paid) == 1, step
            assert outcome == "lost" or again.json["ledger_id"] == paid[0].id
        assert ledger.remaining("ward") == Loss("1").less(Loss("1/40").times(len(STEPS)))
        ledger.verify()
        os.killpg(running.pid, signal.SIGKILL)


def outcome_of(answer: Answer) -> str:
    if answer.status == 409:
        assert answer.problem == "key-conflict"
        assert "charged but its answer is not recorded" in answer.json["detail"]
        return "lost"
    assert answer.status == 200
    return "replayed" if answer.json["replayed"] else "answered"


def patiently(ask: Callable[[], Answer], running: Any) -> Answer:
    """Until somebody answers, as long as the service lives."""
    while True:
        try:
            return ask()
        except (OSError, HTTPException):
            assert running.poll() is None, "the service has ended"
        time.sleep(0.05)


def wait_until(is_so: Callable[[], bool], running: Any) -> None:
    while not is_so():
        assert running.poll() is None, "the service has ended"
        time.sleep(0.05)


@pytest.mark.slow
def test_workers_end_with_whoever_watches_over_them_and_leave_the_port(tmp_path: Path) -> None:
    stated = settings(tmp_path, workers=2)
    text = make_token(stated)
    with process(stated) as (running, url):
        wait_until(lambda: len(workers(running.pid)) == 2, running)
        left = workers(running.pid)
        assert Caller(url, text).post(PATH, ASK).status == 200
        running.send_signal(signal.SIGKILL)
        running.wait()
        while any(is_alive(worker) for worker in left):
            time.sleep(0.05)
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(url.rpartition(":")[2])))


def is_alive(process: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
