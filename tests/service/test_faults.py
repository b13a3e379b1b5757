"""No room on the disk, and a database that is started anew: what is told is paid once, and the service goes on."""

from __future__ import annotations

import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from asks import OPEN, WATCH, post, wait_for_job
from served import Caller, Service, run_service, settings
from slow import Slow, hold_answers

from above import Above
from postgres import SEGMENT, Server
from wallflower.errors import LedgerUnreachable
from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.service.core.jobs import Jobs

ASK = {"bar": 7.0, "columns": ["a"], "epsilon": "0.1"}
PATH, SLOW = "/v1/datasets/ward/ask/above", "/v1/datasets/ward/ask/slow"
QUESTIONS = (Above, Slow, *QUERIES)
release = sys.modules["wallflower.release.release"]

Full = Callable[[], AbstractContextManager[None]]


@contextmanager
def no_room() -> Iterator[None]:
    """No file of this process grows: what is written fails, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def bloat(place: str, table: str) -> None:
    """Make the file of a table as large as one may be on a full server; what made it so is deleted and stays there."""
    kept = {"entries": "id, time, event, dataset, previous, hash, body", "service_jobs": "id, analyst, state, dataset"}
    made = {
        "entries": "1000000 + n, '', 'charge', '', '', 'h' || n, repeat('x', 900)",
        "service_jobs": "'bloat' || n, '', 'done', repeat('x', 900)",
    }
    with psycopg.connect(place, autocommit=True) as db:
        db.execute(f"ALTER TABLE {table} SET (fillfactor = 10, autovacuum_enabled = false)")
        db.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL")
        rows = SEGMENT // 8192 + 8
        db.execute(f"INSERT INTO {table} ({kept[table]}) SELECT {made[table]} FROM generate_series(1, {rows}) AS n")
        first = "id >= 1000000" if table == "entries" else "id LIKE 'bloat%'"
        db.execute(f"DELETE FROM {table} WHERE {first}")
        db.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL")


def fill(ledger: Ledger) -> None:
    """The last page may have room for a few more."""
    while True:
        try:
            ledger.charge("filler", Above(bar=1.0, loss=Loss("1/1000")), analyst="filler")
        except LedgerUnreachable:
            return


@pytest.fixture
def full(place: str, request: pytest.FixtureRequest) -> Full:
    """In it there is no room for a ledger or for jobs."""
    if "://" not in place:
        return no_room
    server: Server = request.getfixturevalue("postgres")

    @contextmanager
    def fill_disk() -> Iterator[None]:
        for table in ("entries", "service_jobs"):
            bloat(place, table)
        with server.full(), Ledger.open(place) as ledger:
            fill(ledger)
            yield

    return fill_disk


@pytest.fixture
def service(place: str, tmp_path: Path) -> Iterator[Service]:
    with run_service(settings(tmp_path, ledger=place), questions=QUESTIONS) as running:
        running.app.state.core.ledger.grant("ward", Loss("9"), by="sue")
        yield running


@pytest.fixture
def ana(service: Service) -> Caller:
    caller = service.token("ana")
    assert caller.post(PATH, ASK).status == 200
    return caller


def charges(service: Service, *, since: int = 1) -> list[str | None]:
    """Under which keys was paid, but for the first questions."""
    return [entry.idempotency_key for entry in service.app.state.core.ledger.history("ward", event="charge")[since:]]


def require_refusal(answer: Any, kind: str) -> None:
    assert (answer.status, answer.problem) == (503, kind)
    assert answer.headers["retry-after"]


# A full disk


def test_a_full_ledger_charges_nothing_and_tells_nothing_until_there_is_room(
    service: Service, ana: Caller, full: Full
) -> None:
    with full():
        refused = ana.post(PATH, ASK, idempotency_key="k")
        require_refusal(refused, "ledger")
        assert "value" not in refused.json
    assert charges(service) == []
    made = ana.post(PATH, ASK, idempotency_key="k").json
    assert ana.post(PATH, ASK, idempotency_key="k").json["value"] == made["value"]
    assert charges(service) == ["ana/k"]
    service.app.state.core.ledger.verify()


def ask_slowly(ana: Caller, service: Service, **more: str) -> tuple[threading.Thread, list[Any]]:
    """A question that is charged and held, and where its answer will be."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(ana.post(SLOW, ASK, idempotency_key="slow", **more)))
    thread.start()
    while charges(service) != ["ana/slow"]:
        assert thread.is_alive()
    return thread, found


def test_an_answer_that_cannot_be_written_down_is_not_told(
    service: Service, ana: Caller, full: Full, monkeypatch: Any
) -> None:
    monkeypatch.setattr(release, "_PATIENCE", 0.5)
    with hold_answers():
        thread, found = ask_slowly(ana, service)
        room = full()
        room.__enter__()
    thread.join()
    room.__exit__(None, None, None)
    require_refusal(found[0], "unrecorded")
    assert "value" not in found[0].json
    again = ana.post(SLOW, ASK, idempotency_key="slow")
    assert (again.status, again.problem) == (409, "key-conflict")
    assert charges(service) == ["ana/slow"]
    assert ana.post(SLOW, ASK, idempotency_key="new").status == 200


def test_an_answer_waits_for_room(service: Service, ana: Caller, full: Full, monkeypatch: Any) -> None:
    monkeypatch.setattr(release, "_PATIENCE", 300.0)
    tried = spy_on(monkeypatch, Ledger, "record")
    with hold_answers():
        thread, found = ask_slowly(ana, service)
        room = full()
        room.__enter__()
    tried.wait()
    room.__exit__(None, None, None)
    thread.join()
    assert found[0].status == 200
    assert ana.post(SLOW, ASK, idempotency_key="slow").json["value"] == found[0].json["value"]
    assert charges(service) == ["ana/slow"]


def spy_on(monkeypatch: Any, owner: Any, name: str) -> threading.Event:
    """Set when a call of a method has failed for want of a ledger."""
    failed, real = threading.Event(), getattr(owner, name)

    def note_failure(*given: Any, **more: Any) -> Any:
        try:
            done = real(*given, **more)
        except LedgerUnreachable:
            failed.set()
            raise
        if done is False:
            failed.set()
        return done

    monkeypatch.setattr(owner, name, note_failure)
    return failed


def test_a_job_that_cannot_be_noted_is_refused_and_not_charged(service: Service, ana: Caller, full: Full) -> None:
    with full():
        for _ in range(3):
            refused = ana.post(PATH, ASK, prefer="respond-async")
        require_refusal(refused, "ledger")
    before = len(charges(service))
    job = ana.post(PATH, ASK, prefer="respond-async").json["id"]
    assert wait_for_job(ana, job)[0]["state"] == "done"
    assert len(charges(service)) == before + 1


def test_a_job_whose_end_cannot_be_noted_ends_when_it_can(
    service: Service, ana: Caller, full: Full, monkeypatch: Any
) -> None:
    monkeypatch.setattr(release, "_PATIENCE", 0.0)
    tried, noted = spy_on(monkeypatch, Ledger, "record"), spy_on(monkeypatch, Jobs, "_try_to_record")
    with hold_answers():
        job = ana.post(SLOW, ASK, prefer="respond-async", idempotency_key="slow").json["id"]
        while charges(service) != ["ana/slow"]:
            time.sleep(0.01)
        room = full()
        room.__enter__()
    tried.wait()
    if "://" not in str(service.app.state.core.settings.ledger):  # a row that is changed fits where another was
        noted.wait()
    room.__exit__(None, None, None)
    ended = wait_for_job(ana, job)[0]
    assert ended["state"] == "failed"
    assert ended["problem"]["type"].endswith("unrecorded")
    assert charges(service) == ["ana/slow"]


def test_a_question_that_cannot_become_a_job_is_waited_for(
    place: str, tmp_path: Path, full: Full, monkeypatch: Any
) -> None:
    tried, real = threading.Event(), Jobs._add_job

    def note_while_full(*given: Any) -> Any:
        while not charges(service, since=0):
            time.sleep(0.01)
        try:
            with full():
                return [real(*given) for _ in range(3)][-1]
        finally:
            tried.set()

    monkeypatch.setattr(Jobs, "_add_job", note_while_full)
    with run_service(settings(tmp_path, ledger=place, async_after_seconds=0.01), questions=QUESTIONS) as service:
        ana = service.token("ana")
        found: list[Any] = []
        with hold_answers():
            thread = threading.Thread(target=lambda: found.append(ana.post(SLOW, ASK)))
            thread.start()
            while not tried.wait(0.05):
                assert thread.is_alive()
        thread.join()
    assert found[0].status == 200, found


def test_decisions_that_cannot_be_written_down_are_not_told_and_the_watch_goes_on(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as service:
        ana = service.token("ana")
        watch = ana.post(OPEN, WATCH).json["id"]
        told = post(ana, watch, [[0.1], [4.9]], first=1).json["outlier"]
        with no_room():
            for _ in range(2):
                answer = post(ana, watch, [[0.1]] * 3, first=3)
                assert (answer.status, answer.problem) in {(503, "unrecorded"), (503, "ledger")}
        found = post(ana, watch, [[0.1], [4.9], [0.1], [0.2], [0.3], [0.4]], first=1).json["outlier"]
        assert found[:2] == told
        assert found[5] in (True, False)
        paid = [entry for entry in service.app.state.core.ledger.history("beds", event="charge") if entry.loss]
        assert sum(entry.loss.amount > 0 for entry in paid) == 1


# A database that is started anew


@pytest.fixture
def base(postgres: Server, tmp_path: Path) -> Iterator[Service]:
    with run_service(settings(tmp_path, ledger=postgres.fresh()), questions=QUESTIONS) as running:
        running.app.state.core.ledger.grant("ward", Loss("9"), by="sue")
        yield running


@pytest.mark.slow
def test_a_service_goes_on_when_its_database_was_started_anew(postgres: Server, base: Service) -> None:
    ana, eve = base.token("ana"), base.token("eve")
    watch = ana.post(OPEN, WATCH).json["id"]
    assert ana.post(PATH, ASK, idempotency_key="k").status == 200
    postgres.stop()
    try:
        require_refusal(ana.post(PATH, ASK, idempotency_key="down"), "ledger")
        require_refusal(ana.post(PATH, ASK, prefer="respond-async"), "ledger")
        require_refusal(eve.get("/v1/datasets"), "ledger")
        require_refusal(Caller(base.url).get("/readyz"), "ledger")
        assert post(ana, watch, [[0.1]], first=1).status == 503
        assert Caller(base.url).get("/healthz").status == 200
    finally:
        postgres.start()
    assert Caller(base.url).get("/readyz").status == 200
    assert ana.post(PATH, ASK, idempotency_key="k").json["replayed"]
    assert ana.post(PATH, ASK, idempotency_key="down").status == 200
    assert post(ana, watch, [[0.1]] * 2, first=1).status == 200
    assert charges(base, since=0) == ["ana/k", "ana/down"]
    base.app.state.core.ledger.verify()


def test_an_answer_survives_a_database_that_is_started_anew(postgres: Server, base: Service, monkeypatch: Any) -> None:
    monkeypatch.setattr(release, "_PATIENCE", 300.0)
    tried, ana = spy_on(monkeypatch, Ledger, "record"), base.token("ana")
    assert ana.post(PATH, ASK, idempotency_key="first").status == 200
    with hold_answers():
        thread, found = ask_slowly(ana, base)
        postgres.stop()
    try:
        tried.wait()
    finally:
        postgres.start()
    thread.join()
    assert found[0].status == 200
    assert ana.post(SLOW, ASK, idempotency_key="slow").json["value"] == found[0].json["value"]
    assert charges(base) == ["ana/slow"]
