"""A clock that is set back while the service runs: what has expired stays so, and nothing hangs."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asks import ASK, wait_for_job
from served import run_service, settings

from above import Above
from wallflower.service.core import clock
from wallflower.service.core.access.tokens import Tokens
from wallflower.service.core.records import JOBS, TOKENS, Records
from wallflower.service.pages.sessions import Sessions

YEAR = timedelta(days=365)


@pytest.fixture
def set_back(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Set the clock of the machine, as the service sees it, by so much."""
    monkeypatch.setattr(clock, "_latest", clock._latest)  # what a test has seen of the future is forgotten after it
    return lambda by: monkeypatch.setattr(clock, "machine_time", lambda: time.time() - by.total_seconds())


def test_time_goes_on_when_the_clock_is_set_back_and_follows_when_it_is_set_on(set_back: Any) -> None:
    before = clock.moment()
    set_back(YEAR)
    later = clock.moment()
    assert before <= later <= clock.moment() < before + YEAR
    set_back(-YEAR)
    assert clock.moment() > before + YEAR / 2


def test_what_has_expired_stays_so(tmp_path: Path, set_back: Any) -> None:
    records = Records(tmp_path / "ledger.db")
    tokens, sessions = Tokens(records), Sessions(tmp_path / "ledger.db", records, timedelta(minutes=30))
    gone, text = tokens.create("ana", "analyst", days=1)
    records.change(TOKENS, gone.id, expires=clock.now())
    _, other = tokens.create("sue", "steward", days=1)
    caller = tokens.caller(other)
    assert caller is not None
    cookie = sessions.open(caller)
    for by in (YEAR, timedelta()):
        set_back(by)
        assert tokens.caller(text) is None
        assert sessions.caller(cookie) == caller
        assert not tokens.find(gone.id).is_valid
    records.close()


def test_a_leap_that_is_taken_back_revives_no_token(tmp_path: Path, set_back: Any) -> None:
    with run_service(settings(tmp_path), questions=(Above,)) as running:
        ana, sue = running.token("ana", days=1), running.token("sue", "steward", days=3650)
        assert ana.get("/v1/whoami").status == 200
        running.app.state.core.tokens.forget_checks()
        set_back(-timedelta(days=3))
        assert ana.get("/v1/whoami").status == 401
        set_back(timedelta())
        assert ana.get("/v1/whoami").status == 401
        assert sue.get("/v1/whoami").status == 200


def test_questions_jobs_and_ticks_do_not_mind(tmp_path: Path, set_back: Any) -> None:
    with run_service(settings(tmp_path, quantum_seconds=0.05), questions=(Above,)) as running:
        ana = running.token("ana")
        set_back(YEAR)
        assert ana.post("/v1/datasets/ward/ask/above", ASK).status == 200
        job = ana.post("/v1/datasets/ward/ask/above", ASK, prefer="respond-async").json["id"]
        assert wait_for_job(ana, job)[0]["state"] == "done"
        row = {"analyst": "ana", "dataset": "ward", "kind": "above", "state": "running", "worker": "far/1/7"}
        core = running.app.state.core
        core.records.add(JOBS, {"id": "far", **row})
        old = (clock.moment() - timedelta(days=2)).isoformat(timespec="milliseconds")
        core.records.change(JOBS, "far", created=old)
        assert ana.get("/v1/jobs/far").json["state"] == "failed"
        core.ledger.verify()
