"""The pages: strict policy everywhere, forms that are ours, each role in its place, nothing unescaped."""

from __future__ import annotations

import io
import re
import runpy
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow.ipc as ipc
import pytest
import sqlalchemy as sa
from page_client import COUNT, EVIL, Browser, assert_nothing_inline, text, words
from page_roles import GRANT, ROLES, TABLE, WATCH
from served import Caller, Service, run_service, settings
from slow import Slow, hold_answers

from wallflower.queries import COMPANIONS, QUERIES
from wallflower.queries.watch import Watch
from wallflower.query import Tradeoff
from wallflower.query.parameter import entries_of, list_parameters
from wallflower.schema import Schema
from wallflower.service.pages import app as pages
from wallflower.service.pages import fields
from wallflower.service.pages.sessions import _digest as sessions_digest
from wallflower.service.pages.visit import CONTENT_POLICY
from wallflower.service.settings import Registration

FORM = ("epsilon", "delta", "analyst", "reason", "pace", "expires", "accounting", "protects", "account", "window")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    stated_ = settings(tmp_path_factory.mktemp("pages"), failures=10_000)
    with run_service(stated_) as running:
        yield running


@pytest.fixture(scope="module")
def people(service: Service) -> dict[str, Browser]:
    tokens = {"analyst": service.token("ana"), "other": service.token("bo"), "steward": service.token("sue", "steward")}
    tokens["auditor"] = service.token("aude", "auditor")
    signed = {role: Browser(service).sign_in(caller.token) for role, caller in tokens.items()}
    return {"anonymous": Browser(service), **signed}


@pytest.fixture(scope="module")
def things(service: Service, people: dict[str, Browser]) -> dict[str, str]:
    """A release, a job and a request of the analyst's, and a token to revoke."""
    asked = people["analyst"].post("/ui/datasets/ward/ask/count", COUNT)
    assert asked.status == 303, text(asked)
    token, _ = service.app.state.core.tokens.create("gone", "analyst")
    core = service.app.state.core
    caller = core.tokens.caller(service.token("ana").token)
    job = service.app.state.jobs._add_job(caller, "ward", "count", "queued").id
    request = service.app.state.requests.make(caller, "beds", "study 12").id
    watch = service.app.state.watches.open(caller, "beds", WATCH, key="one", force=True).id
    own = {"watch": watch, "number": asked.headers["location"].rpartition("/")[2], "job": job, "request": request}
    return own | {"token": token.id, "form": "grants", "person": "none", "proposal": "none"}


def fill_path(path: str, things: dict[str, str]) -> str:
    return "/ui" + path.format(dataset="ward", kind="count", **things)


def test_every_page_has_a_row() -> None:
    found = {(method, route.path) for route in pages.routes() for method in route.methods or () if method != "HEAD"}
    assert found == {*TABLE, ("POST", "/sign-out"), ("POST", "/sign-in/logout")}  # the last is for the directory


@pytest.mark.slow
@pytest.mark.parametrize("row", TABLE, ids=" ".join)
def test_each_role_gets_what_the_table_says(
    row: tuple[str, str], people: dict[str, Browser], things: dict[str, str]
) -> None:
    form, expected = TABLE[row]
    for role in ROLES:
        browser = people[role]
        if role == "anonymous":
            browser.get("/ui/sign-in")
        path = fill_path(row[1], things)
        answer = browser.get(path) if form is None else browser.post(path, form)
        assert answer.status == expected[role], (role, text(answer)[:2000])
        assert answer.headers["content-security-policy"] == CONTENT_POLICY
        assert answer.headers["cache-control"] == "no-store"
        if answer.status == 303 and role == "anonymous" and row[1] != "/language":
            place = answer.headers["location"].partition("?")[0]
            assert place == "/ui/sign-in"
        if answer.headers.get("content-type", "").startswith("text/html"):
            assert_nothing_inline(answer)


@pytest.mark.parametrize("row", [*(row for row in TABLE if row[0] == "POST"), ("POST", "/sign-out")], ids=" ".join)
def test_a_form_that_is_not_ours_changes_nothing(
    row: tuple[str, str], service: Service, people: dict[str, Browser], things: dict[str, str]
) -> None:
    core, steward = service.app.state.core, people["steward"]
    form = TABLE[row][0] if row in TABLE else {}
    before = (core.verify(), len(core.tokens.all()))
    for proof in ("", "0" * 64, people["analyst"].proof, "é"):
        answer = steward.post(fill_path(row[1], things), form, proof=proof)
        assert answer.status == 403
        assert "does not come from a page you were given" in words(answer)
    assert Caller(service.url).post("/ui/sign-in", raw=b"token=x").status == 400
    assert (core.verify(), len(core.tokens.all())) == before
    assert steward.get("/ui/").status == 200


def test_a_session_begins_with_a_new_cookie_and_ends_on_both_sides(service: Service) -> None:
    browser = Browser(service)
    answer = browser.get("/ui/sign-in")
    flags = answer.headers["set-cookie"].lower()
    assert all(flag in flags for flag in ("httponly", "samesite=strict", "path=/ui"))
    assert "secure" not in flags
    assert "secure" not in Browser(service).get("/ui/sign-in", x_forwarded_proto="https").headers["set-cookie"].lower()
    first = browser.cookie
    browser.sign_in(service.token("eve").token)
    second = browser.cookie
    assert len(second) == 89  # random, and signed
    assert second != first
    assert Browser(service, cookie=first).get("/ui/").status == 303
    assert Browser(service, cookie=second).get("/ui/").status == 200
    assert browser.post("/ui/sign-out").status == 303
    assert Browser(service, cookie=second).get("/ui/").status == 303


def test_a_revoked_token_signs_out(service: Service) -> None:
    token, secret = service.app.state.core.tokens.create("fay", "analyst")
    browser = Browser(service).sign_in(secret)
    service.app.state.core.tokens.revoke(token.id)
    assert browser.get("/ui/").headers["location"] == "/ui/sign-in"


@pytest.mark.parametrize("given", [{"https": True}, {"proxies": ("127.0.0.1",)}])
def test_over_tls_the_cookie_is_for_this_host_alone(tmp_path: Path, given: dict[str, Any]) -> None:
    with run_service(settings(tmp_path, **given)) as running:
        browser = Browser(running, always={"x_forwarded_proto": "https"})
        answer = browser.get("/ui/sign-in")
        name, *flags = answer.headers["set-cookie"].lower().split("; ")
        assert name.startswith("__host-wallflower=")
        assert set(flags) == {"httponly", "path=/", "samesite=strict", "secure"}
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        _, token = running.app.state.core.tokens.create("ana", "analyst")
        assert browser.sign_in(token).get("/ui/").status == 200
        assert "max-age=0" in browser.post("/ui/sign-out").headers["set-cookie"].lower()
    with run_service(settings(tmp_path)) as running:
        assert "strict-transport-security" not in Browser(running).get("/ui/sign-in").headers


def test_whoever_is_idle_for_too_long_is_signed_out(service: Service) -> None:
    browser = Browser(service).sign_in(service.token("gus").token)
    pages = next(route for route in service.app.routes if getattr(route, "path", "") == "/ui")
    sessions = pages.app.state.sessions
    late, later = (datetime.now(UTC) - timedelta(minutes=minutes) for minutes in (29, 31))
    for seen, status in ((late, 200), (late, 200), (later, 303)):
        with sessions._store.write() as db:
            key = sessions_digest("session", browser.cookie)
            stated = sa.text("UPDATE service_stays SET seen = :seen WHERE id = :id")
            db.execute(stated, {"seen": seen.isoformat(timespec="milliseconds"), "id": key})
        assert browser.get("/ui/").status == status  # a visit counts: it is noted
    assert browser.last.headers["location"] == "/ui/sign-in"


def test_a_token_is_shown_once_and_a_reload_issues_none(service: Service, people: dict[str, Browser]) -> None:
    steward, tokens = people["steward"], service.app.state.core.tokens
    for count in (0, 1):
        answer = steward.post("/ui/tokens", {"name": "Kim", "scope": "analyst", "days": "7"})
        assert (answer.status, answer.headers["location"]) == (303, "/ui/tokens")
        handed = re.match(r"wallflower-issued=(wf_[^;]*); (.*)", answer.headers["set-cookie"])
        assert handed
        assert {"httponly", "samesite=strict", "path=/ui/tokens", "max-age=60"} <= set(handed[2].lower().split("; "))
        session = f"{steward.name}={steward.cookie}"
        shown = Caller(service.url).get("/ui/tokens", cookie=f"{session}; wallflower-issued={handed[1]}")
        assert handed[1] in text(shown)
        assert ("Other valid tokens of this name" in text(shown)) is bool(count)
        assert shown.headers["set-cookie"].startswith('wallflower-issued=""; ')
        assert "max-age=0" in shown.headers["set-cookie"].lower()
        assert handed[1] not in text(steward.get("/ui/tokens"))
        assert sum(token.name == "Kim" for token in tokens.all()) == count + 1
    for wrong in ("wf_1", "wf_" + "0" * 12 + "_" + "A" * 43, "<b>"):
        assert 'id="token-text"' not in text(
            Caller(service.url).get("/ui/tokens", cookie=f"{session}; wallflower-issued={wrong}")
        )
    assert steward.post("/ui/tokens", {"name": "Kim", "scope": "analyst", "days": "0"}).status == 422


def test_revoking_asks_first(service: Service, people: dict[str, Browser]) -> None:
    steward, tokens = people["steward"], service.app.state.core.tokens
    made, _ = tokens.create("Lou", "analyst")
    assert f'href="/ui/tokens/{made.id}/revoke"' in text(steward.get("/ui/tokens"))
    assert "Lou?" in words(steward.get(f"/ui/tokens/{made.id}/revoke"))
    assert tokens.find(made.id).is_valid
    assert steward.post(f"/ui/tokens/{made.id}/revoke").status == 303
    assert not tokens.find(made.id).is_valid
    assert "no longer valid" in words(steward.get(f"/ui/tokens/{made.id}/revoke"))
    assert steward.get("/ui/tokens/none/revoke").status == 404


def test_sign_ins_are_limited_as_calls_are(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, failures=3)) as running:
        browser = Browser(running)
        browser.get("/ui/sign-in")
        found = [browser.post("/ui/sign-in", {"token": "wf_wrong"}) for _ in range(4)]
        assert [answer.status for answer in found] == [401, 401, 401, 429]
        assert "unknown, expired or revoked" in words(found[0])
        assert "wf_wrong" not in text(found[0])
        assert Caller(running.url, "wf_wrong").get("/v1/whoami").status == 429


@pytest.mark.parametrize(
    "path",
    [
        *("/datasets/ward/plan/nothing", "/datasets/none/plan/count", "/datasets/none", "/none"),
        *("/releases/0", "/releases/9999999", f"/releases/{'9' * 5000}", "/releases/x", "/jobs/x"),
        *("/static/none", "/static/../app.py"),
    ],
)
def test_what_is_not_there_is_a_page_that_says_so(path: str, people: dict[str, Browser]) -> None:
    answer = people["analyst"].get(f"/ui{path}")
    assert answer.status == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.headers["content-security-policy"] == CONTENT_POLICY
    assert "Not found" in words(answer)


def test_what_cannot_be_read_is_refused(people: dict[str, Browser]) -> None:
    analyst = people["analyst"]
    at = "/ui/datasets/ward/ask/count"
    assert analyst.post(at, COUNT, content_type="application/json").status == 400
    assert analyst.post(at, {f"x{number}": "1" for number in range(300)}).status == 400
    assert analyst.get("/ui/datasets/ward/ask/count").status == 405
    for wrong in (
        {"radius": "wide"},
        {"radius": "nan"},
        {"neighbours": "9" * 5000},
        {"epsilon": "-1"},
        {"epsilon": ""},
    ):
        answer = analyst.post(at, {**COUNT, **wrong})
        assert answer.status == 422, (wrong, text(answer)[:500])
        again = analyst.post("/ui/datasets/ward/plan/count", {**COUNT, **wrong}, x_fragment="1")
        assert again.status == 200
        assert "Nothing is spent" in words(again)


def test_the_front_door_leads_to_the_pages(service: Service) -> None:
    assert Caller(service.url).get("/").headers["location"] == "/ui/"
    assert Caller(service.url).get("/v1/none").problem == "unauthenticated"
    for name in ("style.css", "planner.js", "icon.svg"):
        answer = Caller(service.url).get(f"/ui/static/{name}")
        assert answer.status == 200
        assert answer.headers["content-security-policy"] == CONTENT_POLICY


def test_a_form_sent_twice_is_paid_once(service: Service, people: dict[str, Browser]) -> None:
    analyst, core = people["analyst"], service.app.state.core
    form = {**COUNT, "nonce": "abc"}
    places = [analyst.post("/ui/datasets/ward/ask/count", form).headers["location"] for _ in range(3)]
    assert len(set(places)) == 1
    changed = analyst.post("/ui/datasets/ward/ask/count", {**form, "radius": "0.7"}).headers["location"]
    assert changed not in places
    assert len(core.entries(event="charge", last=2)) == 2


def test_an_answer_of_no_use_needs_a_ticked_box(tmp_path: Path) -> None:
    unticked = {name: value for name, value in COUNT.items() if name != "force"}
    with run_service(settings(tmp_path)) as running:
        analyst = Browser(running).sign_in(running.token("ana").token)
        box = '<input type="checkbox" name="force" value="yes">'
        assert box in text(analyst.post("/ui/datasets/ward/plan/count", unticked, x_fragment="1"))
        assert "checkbox" not in text(analyst.post("/ui/datasets/ward/plan/count", {**COUNT, "epsilon": "30"}))
        refused = analyst.post("/ui/datasets/ward/ask/count", unticked)
        assert refused.status == 422
        assert "The answer would be mostly noise" in words(refused)
        assert "Nothing was charged" in words(refused)
        assert running.app.state.core.entries(event="charge") == []
        place = analyst.post("/ui/datasets/ward/ask/count", COUNT).headers["location"]
        assert "Mostly noise" in words(analyst.get(place))


def test_the_plan_says_how_many_such_questions_are_left(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        analyst = Browser(running).sign_in(running.token("ana").token)
        for epsilon, times in (("0.25", 4), ("1", 1), ("1.01", 0)):
            plan = analyst.post("/ui/datasets/ward/plan/count", {**COUNT, "epsilon": epsilon}, x_fragment="1")
            assert f"more queries like this within your budget</dt><dd>{times}</dd>" in text(plan)
            assert "<html" not in text(plan)
            assert text(plan).count('class="chart"') == 1
        refused = analyst.post("/ui/datasets/ward/ask/count", {**COUNT, "epsilon": "2"})
        assert refused.status == 403
        assert "ward: asked for ε = 2, ε = 1 is left" in words(refused)
        assert "Nothing was charged" in words(refused)
        assert "neighbours=3" in text(refused)
        assert running.app.state.core.entries(event="charge") == []


def test_a_trade_off_is_drawn_when_it_is_wanted_and_then_kept(
    people: dict[str, Browser], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def count_drawing(self: Watch, *, dimension: int) -> tuple[Tradeoff, ...]:
        calls.append(dimension)
        rows = {"setting": (3.0, 2.0, 1.0), "alarms": (0.0, 0.1, 1.0), "found": (0.0, 0.8, 1.0)}
        return tuple(Tradeoff(amount=amount, **rows) for amount in ("0.1", "1"))

    monkeypatch.setattr(Watch, "tradeoffs", count_drawing)
    at, form = (
        "/ui/datasets/beds/plan/watch",
        {"threshold": "2", "variance": "1", "low": "-5", "high": "5", "epsilon": "0.8"},
    )
    first = people["analyst"].get(people["analyst"].post(at, form).headers["location"])
    assert "Show the ROC curve" in words(first)
    assert "Continue to run" not in words(first)  # beds are a stream
    wanted = people["analyst"].post(at, {**form, "tradeoff": "yes"})
    assert 'class="chance"' in text(wanted)
    moved = people["analyst"].post(at, {**form, "epsilon": "0.2"}, x_fragment="1")
    assert "ROC curve at ε = 0.1" in words(moved)
    assert calls == [1]


def test_a_long_question_is_a_job_that_ends_in_its_release(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, async_after_seconds=0), questions=(Slow,)) as running:
        analyst = Browser(running).sign_in(running.token("ana").token)
        with hold_answers():
            form = {"bar": "7", "columns": "a", "epsilon": "0.1"}
            place = analyst.post("/ui/datasets/ward/ask/slow", form).headers["location"]
            assert place.startswith("/ui/jobs/")
            assert 'http-equiv="refresh"' in text(analyst.get(place))
        while analyst.get(place).status != 303:
            time.sleep(0.05)
        assert analyst.get(analyst.last.headers["location"]).status == 200


def test_downloads_are_what_a_program_gets(people: dict[str, Browser], things: dict[str, str]) -> None:
    at = f"/ui/releases/{things['number']}"
    told = people["analyst"].get(f"{at}/json").json
    arrow = people["analyst"].get(f"{at}/arrow")
    assert ipc.open_stream(io.BytesIO(arrow.content)).read_all()["value"].to_pylist() == [told["value"]]
    page = people["analyst"].get(at)
    assert told["guarantee"]["text"] in words(page)
    assert 'class="picture on-wide"' in text(page)


@pytest.mark.parametrize("file", ["", "/json", "/csv", "/arrow", "/picture/svg", "/picture/png"])
def test_what_was_drawn_for_one_is_not_shown_to_another(
    file: str, people: dict[str, Browser], things: dict[str, str]
) -> None:
    assert people["analyst"].get(f"/ui/releases/{things['number']}{file}").status == 200
    refused, none = (people["other"].get(f"/ui/releases/{number}{file}") for number in (things["number"], "999999"))
    assert (refused.status, none.status) == (404, 404)
    told = [re.findall("<main.*</main>", words(one)) for one in (refused, none)]
    assert told[0] == told[1] != []


def test_the_texts_to_copy_ask_the_same(
    service: Service,
    people: dict[str, Browser],
    things: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    page = people["analyst"].get(f"/ui/releases/{things['number']}")
    python, command = (unescape(found) for found in re.findall(r"<code>(.*?)</code>", text(page), re.DOTALL))
    monkeypatch.setenv("WALLFLOWER_TOKEN", str(service.token("ana").token))
    lines = python.splitlines()
    (tmp_path / "same.py").write_text("\n".join([*lines[:-1], f"made = {lines[-1]}"]))
    made = runpy.run_path(str(tmp_path / "same.py"))["made"]
    assert made.parameters == people["analyst"].get(f"/ui/releases/{things['number']}/json").json["parameters"]
    assert " ".join(command.replace("\\\n", "").split()) == (
        f"wallflower count ward --server {service.url} --neighbours 3 --radius 0.5 --epsilon 0.01 --force"
    )


def test_names_and_parameters_are_escaped(tmp_path: Path) -> None:
    source = tmp_path / "evil.csv"
    source.write_text("<b>a</b>,b\n" + "".join(f"{row},{row * 7 % 11}\n" for row in range(20)))
    evil = Registration(
        analysts=("*",), name="evil", source=str(source), schema=Schema.of(["<b>a</b>", "b"]), records=(EVIL,)
    )
    with run_service(settings(tmp_path, datasets=(evil,))) as running:
        steward = Browser(running).sign_in(running.token(EVIL, "steward").token)
        place = next(iter(re.findall(r'href="(/ui/datasets/[^"]*)"', text(steward.get("/ui/")))))
        asked = steward.post(f"{place}/ask/count", {**COUNT, "columns": "<b>a</b>"})
        assert asked.status == 303, text(asked)
        assert steward.post(f"{place}/budget/grants", {**GRANT, "reason": EVIL}).status == 303
        assert steward.post(f"{place}/budget/quotas", {"epsilon": "0.1", "analyst": EVIL}).status == 303
        for form in ("grants", "quotas", "declaration", "constrained"):
            refused = steward.post(f"{place}/budget/{form}", dict.fromkeys(FORM, EVIL))
            assert refused.status == 422
            assert "<img src=x" not in text(refused)
        assert steward.post("/ui/tokens", {"name": EVIL, "scope": "analyst", "days": "1"}).status == 303
        wrong = urlencode({"neighbours": EVIL, "radius": EVIL, "mechanism": EVIL, "epsilon": EVIL, "columns": EVIL})
        seen = [
            "/ui/",
            place,
            f"{place}/plan/count",
            f"{place}/plan/count?{wrong}",
            f"{place}/plan/explain",
            "/ui/tokens",
        ]
        seen += [f"{place}/budget", asked.headers["location"], "/ui/releases", "/ui/ledger", f"/ui/ledger?head={wrong}"]
        for path in [*seen, f"/ui/datasets/{wrong}", f"{place}/plan/{wrong}"]:
            answer = steward.get(path)
            assert answer.status in (200, 404), path
            assert "<img src=x" not in text(answer)
            assert "<b>" not in text(answer)
            assert_nothing_inline(answer)


@pytest.mark.parametrize("question", [*QUERIES, *COMPANIONS], ids=lambda question: question.kind)
def test_a_form_asks_what_was_written_into_it(question: Any) -> None:
    example = question.example()
    form = {name: fields.write_field(value) for name, value in entries_of(example).items()}
    assert fields.read_form(question, form) == example
    shown = {entry.name: entry.value for entry in fields.entries(question, form, Schema())}
    assert fields.read_form(question, shown) == example
    assert {parameter.name for parameter in list_parameters(question)} <= set(shown)
    assert question.kind in fields.command_text(question.kind, entries_of(example), "http://x", "d")
