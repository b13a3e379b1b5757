"""Many clients and one budget, over HTTP: nobody overspends, every answer has its charge, whoever dies loses none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
from served import Answer, Caller, process, settings, workers

from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.service.core.access.tokens import Tokens
from wallflower.service.core.records import Records
from wallflower.service.settings import Settings

CLIENTS, TIMES = 64, 40
ASK = {"neighbours": 3, "radius": 0.5, "epsilon": "1/40", "force": True}


def prepare(folder: Path, place: str, *, times: int = TIMES, **more: Any) -> tuple[Settings, list[str]]:
    """A service with a grant for so many questions, and a token for each client."""
    stated = settings(folder, ledger=place, **more)
    with Ledger.open(place) as ledger:
        ledger.grant("ward", Loss("1/40").times(times), by="sue")
    records = Records(place)
    texts = [Tokens(records).create(f"analyst {number}", "analyst")[1] for number in range(CLIENTS)]
    records.close()
    return stated, texts


def together(texts: list[str], url: str, work: Callable[[Caller, int], list[Answer]]) -> list[Answer]:
    """What all clients got, all let go at once."""
    gate = threading.Barrier(len(texts))

    def one(number: int) -> list[Answer]:
        gate.wait()
        return work(Caller(url, texts[number]), number)

    with ThreadPoolExecutor(len(texts)) as pool:
        return [answer for found in pool.map(one, range(len(texts))) for answer in found]


def ask_until_refused(caller: Caller, _: int) -> list[Answer]:
    found: list[Answer] = []
    while not found or found[-1].status == 200:
        found.append(caller.post("/v1/datasets/ward/ask/count", ASK))
    return found


def check_ledger(place: str, answered: list[int], *, times: int = TIMES) -> list[int]:
    """Every answer has one charge and one release of its own; gives the charges."""
    with Ledger.open(place) as ledger:
        charges = {entry.id: entry for entry in ledger.history("ward", event="charge")}
        releases = [entry.charge for entry in ledger.history("ward", event="release")]
        others = [entry for entry in ledger.history() if entry.event not in ("charge", "release")]
        assert {(entry.event, entry.dataset) for entry in others} == {("limit", "ward"), ("account", "beds")}
        assert ledger.verify().entries == len(others) + len(charges) + len(releases)
        assert ledger.remaining("ward") == Loss("1/40").times(times - len(charges))
    assert len(set(answered)) == len(answered)
    assert set(answered) <= set(releases)
    assert len(set(releases)) == len(releases)
    assert set(releases) <= set(charges)
    return sorted(charges)


@pytest.mark.slow
def test_64_clients_never_overspend_and_every_answer_is_charged_once(place: str, tmp_path: Path) -> None:
    stated, texts = prepare(tmp_path, place, workers=2, answering=2)
    with process(stated) as (_, url):
        found = together(texts, url, ask_until_refused)
    assert {answer.status for answer in found} == {200, 403}
    assert {answer.problem for answer in found if answer.status == 403} == {"budget-exhausted"}
    answered = [answer.json["ledger_id"] for answer in found if answer.status == 200]
    assert len(answered) == TIMES
    assert check_ledger(place, answered) == sorted(answered)


@contextmanager
def busy_cores() -> Iterator[None]:
    """Every core has something else to do in here."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


def ask_until_answered(caller: Caller, _: int) -> list[Answer]:
    found: list[Answer] = []
    while not found or found[-1].status == 503:
        found.append(caller.post("/v1/datasets/ward/ask/count", ASK))
        time.sleep(0.5 if found[-1].status == 503 else 0)
    return found


@pytest.mark.slow
def test_64_clients_on_busy_cores_are_answered_or_told_when_to_come_again(tmp_path: Path) -> None:
    place, done = str(tmp_path / "ledger.db"), threading.Event()
    stated, texts = prepare(tmp_path, place, times=CLIENTS + 1, waiting=16)

    def look_in(url: str) -> set[int]:
        seen = set()
        while not done.is_set():
            seen |= {Caller(url).get("/healthz").status, Caller(url, texts[0]).get("/v1/datasets").status}
            done.wait(0.2)
        return seen

    with process(stated) as (running, url), ThreadPoolExecutor(1) as pool:
        first = ask_until_answered(Caller(url, texts[0]), 0)  # whatever is compiled is compiled now
        visitor = pool.submit(look_in, url)
        try:
            with busy_cores():
                found = [*first, *together(texts, url, ask_until_answered)]
        finally:
            done.set()
        assert visitor.result() == {200}
        assert running.poll() is None
    refused = [answer for answer in found if answer.status != 200]
    assert len(found) - len(refused) == CLIENTS + 1
    assert {(answer.status, answer.problem, answer.headers["retry-after"]) for answer in refused} == {
        (503, "busy", "1")
    }
    answered = [answer.json["ledger_id"] for answer in found if answer.status == 200]
    assert check_ledger(place, answered, times=CLIENTS + 1) == sorted(answered)


@pytest.mark.slow
def test_a_service_killed_in_the_run_loses_no_charge(place: str, tmp_path: Path) -> None:
    stated, texts = prepare(tmp_path, place, times=10_000)
    answered: list[int] = []
    interrupted: dict[int, str] = {}

    def hammer(caller: Caller, number: int) -> list[Answer]:
        for turn in range(10_000):
            key = f"{number}-{turn}"
            try:
                answer = caller.post("/v1/datasets/ward/ask/count", ASK, idempotency_key=key)
            except (OSError, HTTPException):
                interrupted[number] = key
                return []
            assert answer.status == 200, answer
            answered.append(answer.json["ledger_id"])
            if len(answered) == 20:
                os.killpg(running.pid, signal.SIGKILL)
        return []

    with process(stated) as (running, url):
        together(texts[:16], url, hammer)
        assert running.wait() == -signal.SIGKILL
    assert len(interrupted) == 16
    charged = check_ledger(place, answered, times=10_000)
    with process(stated) as (_, url):
        for number, key in interrupted.items():
            again = Caller(url, texts[number]).post("/v1/datasets/ward/ask/count", ASK, idempotency_key=key)
            is_lost = again.status == 409 and again.problem == "key-conflict"
            assert is_lost or again.json["replayed"] is (again.json["ledger_id"] in charged)
    check_ledger(place, answered, times=10_000)


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    place = str(tmp_path / "ledger.db")
    stated, texts = prepare(tmp_path, place, workers=2)
    with process(stated) as (running, url):
        before = workers(running.pid)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        while not (len(workers(running.pid)) == 2 and before[0] not in workers(running.pid)):
            time.sleep(0.1)
        assert Caller(url, texts[0]).post("/v1/datasets/ward/ask/count", ASK).status == 200
    check_ledger(place, [])
