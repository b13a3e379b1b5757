"""Watches over HTTP: paid once, decided once, the same after a restart."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from asks import OPEN, WATCH, post
from served import Caller, make_token, process, run_service, settings

from wallflower.ledger import Ledger

ROWS = [[0.5], [4.9], [None], [-4.9], 0.1]


def test_a_watch_is_paid_once_and_decides_each_observation_once(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        ana, ledger = running.token("ana"), running.app.state.core.ledger
        watch = ana.post(OPEN, WATCH).json
        assert (watch["columns"], watch["position"], watch["exhausted"], watch["cost"]) == (["t"], 0, False, "ε=1/4")
        told = post(ana, watch["id"], ROWS).json
        assert (told["first"], len(told["outlier"])) == (1, 5)
        again = post(ana, watch["id"], [[5.0]] * 5, first=1).json
        assert again["outlier"] == told["outlier"]
        overlap = post(ana, watch["id"], [[0.0]] * 3, first=5).json
        assert (overlap["first"], overlap["outlier"][0]) == (5, told["outlier"][4])
        assert ana.get(f"/v1/watches/{watch['id']}").json["position"] == 7
        paid = [entry for entry in ledger.history("beds", event="charge") if entry.loss and entry.loss.amount]
        assert len(paid) == 1
        assert [each["id"] for each in ana.get("/v1/watches").json["watches"]] == [watch["id"]]


def test_a_gap_and_a_wrong_width_are_refused_before_the_look(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        ana = running.token("ana")
        watch = ana.post(OPEN, WATCH).json["id"]
        assert post(ana, watch, [[0.0]], first=3).problem == "state"
        assert post(ana, watch, [[0.0, 1.0]]).problem == "data"
        for rows in ([["x"]], [[True]], [[[1.0]]], "x", [[1e999]]):
            assert post(ana, watch, rows).status == 422, rows
        assert ana.get(f"/v1/watches/{watch}").json["position"] == 0


def test_a_key_opens_one_watch(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        ana, bo = running.token("ana"), running.token("bo")
        first = ana.post(OPEN, WATCH, idempotency_key="k").json
        assert ana.post(OPEN, WATCH, idempotency_key="k").json["id"] == first["id"]
        other = ana.post(OPEN, {**WATCH, "threshold": 3.0}, idempotency_key="k")
        assert (other.status, other.problem) == (409, "key-conflict")
        assert bo.post(OPEN, WATCH, idempotency_key="k").json["id"] != first["id"]
        charges = running.app.state.core.ledger.history("beds", event="charge")
        assert len([entry for entry in charges if entry.loss and entry.loss.amount]) == 2


def test_a_watch_that_was_refused_is_not_there(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        ana = running.token("ana")
        for key in (None, "k"):
            more = {} if key is None else {"idempotency_key": key}
            assert ana.post(OPEN, {**WATCH, "epsilon": "2"}, **more).problem == "budget-exhausted"
        assert ana.get("/v1/watches").json["watches"] == []


def test_a_watch_goes_on_after_a_restart_and_a_lost_state_pays_nothing(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        text = running.token("ana").token
        ana = running[text]
        watch = ana.post(OPEN, WATCH).json["id"]
        told = post(ana, watch, ROWS).json
    with run_service(settings(tmp_path)) as running:
        ana = running[text]
        assert ana.get(f"/v1/watches/{watch}").json["position"] == 5
        assert post(ana, watch, ROWS, first=1).json["outlier"] == told["outlier"]
        assert post(ana, watch, [[0.0]], first=6).json["first"] == 6
    for path in (tmp_path / "watches").iterdir():
        path.unlink()
    with run_service(settings(tmp_path)) as running:
        ana = running[text]
        assert ana.get(f"/v1/watches/{watch}").problem == "session-closed"
        assert post(ana, watch, [[0.0]]).problem == "session-closed"
        charges = running.app.state.core.ledger.history("beds", event="charge")
        assert len([entry for entry in charges if entry.loss and entry.loss.amount]) == 1


def test_a_service_without_a_folder_keeps_no_watches(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, watches=None)) as running:
        ana = running.token("ana")
        assert ana.post(OPEN, WATCH).problem == "forbidden"
        assert running.app.state.core.ledger.history(event="charge") == []


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_service_decides_nothing_anew(place: str, tmp_path: Path, workers: int) -> None:
    stated = settings(tmp_path, ledger=place, workers=workers)
    text, folder = make_token(stated), tmp_path / "watches"
    with process(stated) as (running, url):
        ana = Caller(url, text)
        watch = ana.post(OPEN, WATCH).json["id"]
        told = post(ana, watch, ROWS).json["outlier"]
        shutil.copytree(folder, tmp_path / "old")
        more = post(ana, watch, ROWS, first=6).json["outlier"]
        os.killpg(running.pid, signal.SIGKILL)
    with process(stated) as (running, url):
        ana = Caller(url, text)
        assert post(ana, watch, ROWS * 2, first=1).json["outlier"] == told + more
        later = post(ana, watch, ROWS, first=11).json["outlier"]
        assert None not in later
        os.killpg(running.pid, signal.SIGKILL)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "old", folder)
    with process(stated) as (running, url):
        assert post(Caller(url, text), watch, ROWS, first=6).problem == "session-closed"
    with Ledger.open(place) as ledger:
        ledger.verify()
        assert sum(entry.label == "outlier-watch/1" for entry in ledger.history("beds", event="charge")) == 1


@pytest.mark.slow
def test_a_folder_of_watches_from_before_the_last_batch_passes_it_over(tmp_path: Path) -> None:
    stated = settings(tmp_path)
    text, folder = make_token(stated), tmp_path / "watches"
    with process(stated) as (running, url):
        ana = Caller(url, text)
        watch = ana.post(OPEN, WATCH).json["id"]
        told = post(ana, watch, ROWS).json["outlier"]
        shutil.copytree(folder, tmp_path / "old")
        post(ana, watch, ROWS, first=6)
        os.killpg(running.pid, signal.SIGKILL)
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "old", folder)
    with process(stated) as (running, url):
        ana = Caller(url, text)
        found = post(ana, watch, [*ROWS, *ROWS, [0.0]], first=1).json["outlier"]
        assert found[:10] == told + [None] * 5
        assert found[10] in (True, False)


@pytest.mark.slow
def test_several_workers_share_a_watch(tmp_path: Path) -> None:
    stated = settings(tmp_path, workers=2)
    text = make_token(stated)
    with process(stated) as (_, url):
        ana = Caller(url, text)
        watch = ana.post(OPEN, WATCH).json["id"]
        for place in range(1, 9):
            answer = post(ana, watch, [[0.1]], first=place)
            assert answer.json["first"] == place, answer
        assert ana.get(f"/v1/watches/{watch}").json["position"] == 8
