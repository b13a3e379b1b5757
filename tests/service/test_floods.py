"""Floods of work and of strangers: whoever is not part of them is answered meanwhile, and health needs no thread."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

import pytest
from page_client import Browser
from served import Caller, Service, run_service, settings

from above import Above
from wallflower.query import Plan
from wallflower.service.core.facade import ANONYMOUS_THREADS
from wallflower.service.core.jobs import FairQueue
from wallflower.service.core.metrics import Metrics
from wallflower.service.core.problems import Refusal
from wallflower.service.pages.sessions import Sessions

PLANNED = threading.Event()
RELEASED = threading.Event()
BODY = {"bar": 7.0, "columns": ["a"], "epsilon": "0.1"}
THREADS = 40  # that calls share


@dataclass(frozen=True, slots=True, kw_only=True)
class Heavy(Above):
    """Its plan takes as long as a test lets it."""

    kind: ClassVar[str] = "heavy"
    label: ClassVar[str] = "heavy/1"

    def plan(self, *, n: int, dimension: int) -> Plan:
        PLANNED.set()
        RELEASED.wait()
        return Above.plan(self, n=n, dimension=dimension)


@contextmanager
def hold_plans() -> Iterator[None]:
    PLANNED.clear()
    RELEASED.clear()
    try:
        yield
    finally:
        RELEASED.set()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("floods")), questions=(Heavy, Above)) as running:
        yield running


def test_a_flood_of_plans_holds_up_nobody_else_and_is_refused_beyond_its_limit(service: Service) -> None:
    ana, bo = service.token("ana"), service.token("bo")
    page = Browser(service).sign_in(service.token("cy").token)
    most = service.app.state.core.settings.computing_waiting_each
    with ThreadPoolExecutor(THREADS + 20) as pool:
        with hold_plans():
            bodies = [BODY | {"bar": float(number)} for number in range(THREADS + 20)]
            sent = [pool.submit(ana.post, "/v1/datasets/ward/plan/heavy", body) for body in bodies]
            for done in islice(as_completed(sent), len(sent) - most):
                assert done.result().problem == "too-many-calls"
                assert done.result().headers["retry-after"] == "1"
            assert PLANNED.wait()
            assert Caller(service.url).get("/healthz").content == b"ok\n"
            assert bo.get("/v1/datasets/ward/budget").status == 200
            assert bo.post("/v1/datasets/ward/plan/above", BODY).status == 200
            assert page.get("/ui/datasets/ward").status == 200
            assert Browser(service).get("/ui/sign-in").status == 200
        assert Counter(done.result().status for done in sent) == {429: len(sent) - most, 200: most}


def test_health_needs_no_thread(service: Service) -> None:
    """Every thread that calls share is taken, by pages that wait recorded in the ledger's lock."""
    ana = service.token("ana")
    taken, waiting = threading.Barrier(THREADS + 1), threading.Event()

    def occupy() -> None:
        taken.wait()
        waiting.wait()

    page = Browser(service).sign_in(ana.token)
    core = service.app.state.core
    datasets, core.datasets = core.datasets, lambda caller: (occupy(), [])[1]
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            sent = [pool.submit(ana.get, "/v1/datasets") for _ in range(THREADS)]
            taken.wait()
            try:
                assert Caller(service.url).get("/healthz").status == 200
                assert Browser(service).get("/ui/sign-in").status == 200  # strangers have threads of their own
            finally:
                waiting.set()
            assert {one.result().status for one in sent} == {200}
    finally:
        core.datasets = datasets
    assert page.get("/ui/").status == 200


def test_strangers_have_a_few_threads_of_their_own(service: Service) -> None:
    ana = service.token("ana")
    page = Browser(service).sign_in(ana.token)
    taken, waiting = threading.Barrier(ANONYMOUS_THREADS + 1), threading.Event()
    core = service.app.state.core
    check = core.tokens.caller

    def check_slowly(text: str) -> object:
        if "_" * 43 in text:
            taken.wait()
            waiting.wait()
        return check(text)

    core.tokens.caller = check_slowly
    try:
        with ThreadPoolExecutor(60) as pool:
            strangers = [Caller(service.url, f"wf_{number:012x}_{'_' * 43}") for number in range(ANONYMOUS_THREADS)]
            sent = [pool.submit(one.get, "/v1/datasets") for one in strangers]
            taken.wait()
            try:
                assert ana.get("/v1/datasets/ward/budget").status == 200
                assert page.get("/ui/").status == 200
                assert Caller(service.url).get("/healthz").status == 200
            finally:
                waiting.set()
            assert {one.result().status for one in sent} <= {401, 429}
    finally:
        core.tokens.caller = check


def test_a_forged_cookie_costs_no_look_at_the_database(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Browser(service).sign_in(service.token("ana").token)
    looks = []
    look = Sessions.caller

    def count_looks(sessions: Sessions, cookie: str) -> object:
        looks.append(cookie)
        return look(sessions, cookie)

    monkeypatch.setattr(Sessions, "caller", count_looks)
    for forged in ("ab" * 24, page.cookie[:-1] + ("0" if page.cookie[-1] != "0" else "1"), "x", page.cookie + "0"):
        stranger = Browser(service, cookie=forged)
        assert stranger.get("/ui/").headers["location"] == "/ui/sign-in"
    assert not looks
    assert page.get("/ui/").status == 200
    assert looks == [page.cookie]


def test_a_large_body_is_answered_as_a_small_one_is(service: Service) -> None:
    ana = service.token("ana")
    many = {**BODY, "columns": ["a"] * 20_000}
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda _: ana.post("/v1/datasets/ward/plan/above", many), range(12)))
    assert {answer.problem for answer in found} == {"parameter"}
    deep = b'{"bar": ' + b"[" * 40_000
    assert ana.post("/v1/datasets/ward/plan/above", raw=deep).problem == "malformed"


def test_whoever_leaves_the_queue_gives_up_the_place() -> None:
    async def live() -> None:
        queue = FairQueue(places=1, each=1, waiting=3, waiting_each=2, meter=Metrics().queue("calls"))
        first = queue.turn("ana")
        await first.__aenter__()
        waiting = asyncio.ensure_future(queue.run("ana", lambda: 1))
        other = asyncio.ensure_future(queue.run("bo", lambda: 2))
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="which is the maximum"):
            await queue.run("ana", lambda: 3)
        with pytest.raises(Refusal, match="Too many calls wait already"):
            await queue.run("cy", lambda: 3)
        waiting.cancel()
        await asyncio.sleep(0)
        await first.__aexit__(None, None, None)
        assert await other == 2
        assert await queue.run("ana", lambda: 3) == 3
        assert queue.under_way == 0

    asyncio.run(live())


def test_a_form_from_another_site_is_refused(service: Service, tmp_path: Path) -> None:
    """Whoever plants a cookie and knows its proof cannot sign a visitor in as somebody else."""
    ana = service.token("ana")
    browser = Browser(service)
    browser.get("/ui/sign-in")
    for site in ("cross-site", "same-site"):
        answer = browser.post("/ui/sign-in", {"token": str(ana.token)}, sec_fetch_site=site)
        assert answer.status == 403
    assert browser.post("/ui/sign-in", {"token": str(ana.token)}, sec_fetch_site="same-origin").status == 303


def test_the_proof_of_a_form_is_made_with_a_secret_of_the_service(tmp_path: Path) -> None:
    """Two services give two proofs to one cookie; two workers of a service give the same."""
    with (
        run_service(settings(folder_in(tmp_path, "one")), questions=(Above,)) as one,
        run_service(settings(folder_in(tmp_path, "two")), questions=(Above,)) as two,
    ):
        browsers = [Browser(service, cookie="planted") for service in (one, two)]
        proofs = {browser.get("/ui/sign-in") and browser.proof for browser in browsers}
        assert len(proofs) == 2
        again = Sessions(tmp_path / "one" / "ledger.db", one.app.state.core.records, one.app.state.sessions._idle)
        assert again.proof("planted") in proofs


def folder_in(place: Path, name: str) -> Path:
    (place / name).mkdir()
    return place / name
