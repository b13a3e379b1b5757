"""Nobody has all the places: questions are answered in turn, and whoever has many in progress is told so."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asks import ASK, charges, wait_for_job
from served import Service, run_service, settings
from slow import Slow, hold_answers

from above import Above
from wallflower.service.core.jobs import Jobs, RoundRobin

STEPS = [("add", "ana"), ("add", "bo"), ("take", ""), ("free", "ana"), ("free", "bo")]


@pytest.mark.parametrize(("places", "each"), [(1, 1), (2, 1), (2, 2), (3, 2)])
def test_turns_on_every_tiny_day(places: int, each: int) -> None:
    for day in itertools.product(STEPS, repeat=6):
        turns: RoundRobin[tuple[str, int]] = RoundRobin(places=places, each=each)
        waiting: dict[str, list[int]] = {"ana": [], "bo": []}
        taken: Counter[str] = Counter()
        for number, (step, who) in enumerate(day):
            if step == "add":
                waiting[who].append(number)
                turns.add(who, (who, number))
            elif step == "free" and taken[who]:
                taken[who] -= 1
                turns.free(who)
            elif step == "take":
                may = [one for one in waiting if waiting[one] and taken[one] < each and taken.total() < places]
                found = turns.take()
                assert (found is not None) is bool(may)
                if found is not None:
                    chosen = found[0]
                    assert chosen in may
                    assert waiting[chosen].pop(0) == found[1]
                    taken[chosen] += 1
            assert all(turns.under_way(one) == taken[one] + len(waiting[one]) for one in waiting)


def test_whoever_floods_waits_behind_others() -> None:
    turns: RoundRobin[str] = RoundRobin(places=1, each=1)
    for number in range(100):
        turns.add("ana", f"a{number}")
    order = [str(turns.take())]
    for name in ("bo", "cy"):
        turns.add(name, name)
    for _ in range(4):
        turns.free("ana" if order[-1].startswith("a") else order[-1])
        order.append(str(turns.take()))
    assert order == ["a0", "a1", "bo", "cy", "a2"]


def test_one_analyst_cannot_occupy_all_threads(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, answering=2, async_after_seconds=0.05), questions=(Slow, Above)) as running:
        ana, bo = running.token("ana"), running.token("bo")
        with hold_answers():
            slow = [ana.post("/v1/datasets/ward/ask/slow", ASK, prefer="respond-async").json["id"] for _ in range(5)]
            asked = bo.post("/v1/datasets/ward/ask/above", ASK)
            while asked.status == 202 and bo.get(f"/v1/jobs/{asked.json['id']}").json["state"] != "done":
                time.sleep(0.02)
            assert charges(running, "bo") == 1
            assert charges(running, "ana") == 1  # the others wait, unpaid
        assert [wait_for_job(ana, job)[0]["state"] for job in slow] == ["done"] * 5


def test_questions_are_answered_in_turn(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, answering=1), questions=(Slow,)) as running:
        ana, bo = running.token("ana"), running.token("bo")
        with hold_answers():
            jobs = [(who, who.post("/v1/datasets/ward/ask/slow", ASK, prefer="respond-async")) for who in (ana,) * 4]
            jobs.append((bo, bo.post("/v1/datasets/ward/ask/slow", ASK, prefer="respond-async")))
        for who, job in jobs:
            assert wait_for_job(who, job.json["id"])[0]["state"] == "done"
        paid = running.app.state.core.ledger.history("ward", event="charge")
        assert [entry.analyst for entry in paid] == ["ana", "ana", "bo", "ana", "ana"]


def test_whoever_has_many_under_way_is_told_so_and_others_are_not(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, waiting_each=3), questions=(Slow,)) as running:
        ana, bo = running.token("ana"), running.token("bo")
        with hold_answers():
            found = at_once(running, ana, 8)
            assert sorted(answer.status for answer in found) == [202] * 3 + [429] * 5
            refused = ana.post("/v1/datasets/ward/ask/slow", ASK)
            assert (refused.status, refused.problem) == (429, "too-many-questions")
            assert refused.headers["retry-after"] == "1"
            assert "Nothing was charged" in refused.json["detail"]
            other = bo.post("/v1/datasets/ward/ask/slow", ASK, prefer="respond-async")
            assert other.status == 202
        for answer in found:
            if answer.status == 202:
                assert wait_for_job(ana, answer.json["id"])[0]["state"] == "done"
        assert wait_for_job(bo, other.json["id"])[0]["state"] == "done"
        assert charges(running, "ana") == 3
        assert ana.post("/v1/datasets/ward/ask/slow", ASK).status == 200  # there is room again


def at_once(running: Service, caller: Any, times: int) -> list[Any]:
    with ThreadPoolExecutor(times) as pool:
        ask = [
            pool.submit(caller.post, "/v1/datasets/ward/ask/slow", ASK, prefer="respond-async") for _ in range(times)
        ]
        return [one.result() for one in ask]


def test_turns_tell_nothing_of_a_look_before_its_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, ticked = threading.Semaphore(0), threading.Event()

    def hold(self: Jobs, came: float) -> None:
        looked.release()
        ticked.wait()

    monkeypatch.setattr(Jobs, "_hold", hold)
    with run_service(settings(tmp_path, answering=2), questions=(Above,)) as running:
        people = [running.token(name) for name in ("ana", "bo")]
        jobs = [
            (who, who.post("/v1/datasets/ward/ask/above", ASK, prefer="respond-async").json["id"])
            for who in (*people, *people)
        ]
        for _ in people:
            looked.acquire()
        seen = [who.get(f"/v1/jobs/{job}").json["state"] for who, job in jobs]
        assert seen == ["running", "running", "queued", "queued"]  # though both looks are over
        assert not looked.acquire(blocking=False)
        ticked.set()
        assert [wait_for_job(who, job)[0]["state"] for who, job in jobs] == ["done"] * 4
