"""A session alone sets no limit and issues no token: the token is entered again, and nothing typed is lost."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from page_client import Browser, assert_nothing_inline, text, words
from page_roles import TABLE
from served import Answer, Service, run_service, settings

from wallflower.service.core.access.tokens import token_id
from wallflower.service.settings import Group

ACTS = {
    "/people/{person}/disable": {},
    "/proposals/{proposal}/confirm": {},
    "/proposals/{proposal}/decline": {},
    "/people/{person}/enable": {},
    "/datasets/ward/budget/grants": {"epsilon": "3", "reason": 'study "12" <b>', "confirm": "yes", "pace": "1"},
    "/datasets/ward/budget/quotas": {"epsilon": "0.1", "analyst": "tom"},
    "/datasets/ward/budget/declaration": {"reason": "unchanged"},
    "/datasets/ward/budget/constrained": {"epsilon": "0", "reason": "closed"},
    "/datasets/ward/budget/naming": {"detector": "{detector}", "most": "1", "reason": "a review"},
    "/datasets/spare/retire": {},
    "/datasets/ward/access": {"analyst": "*"},
    "/tokens": {"name": "new", "scope": "analyst", "days": "1"},
    "/tokens/{token}/revoke": {},
    "/tokens/{token}/factor": {},
    "/register": {"name": "new", "c0-name": "t", "c0-kind": "number", "c0-low": "0", "c0-high": "9"},
    "/requests/{request}/decline": {"word": "not this year"},
    "/releases/{number}/publish": {},
    "/releases/{number}/withdraw": {"reason": "wrong year"},
}
HARMLESS = {"/second-factor", "/datasets/{dataset}/budget/review/{form}", "/register/draft", "/register/rehearsal"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("confirm"), reauth_seconds=0, failures=10_000)) as running:
        yield running


def hidden_fields(answer: Answer) -> dict[str, str]:
    """What the page that asks for the token brings along."""
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', text(answer))
    return {name: unescape(value) for name, value in found if name != "proof"}


def state(service: Service) -> tuple[Any, ...]:
    core = service.app.state.core
    return core.verify(), [(one.id, one.revoked) for one in core.tokens.all()], core.acts.last(999)


def test_every_change_that_a_steward_makes_is_an_act() -> None:
    changes = {path for (method, path), (_, roles) in TABLE.items() if method == "POST" and roles["analyst"] == 403}
    assert {re.sub("/(ward|spare)/", "/{dataset}/", path) for path in ACTS} == changes - HARMLESS


@pytest.mark.parametrize("place", ACTS)
def test_a_session_alone_changes_nothing(service: Service, place: str) -> None:
    sue, other = service.token("sue", "steward"), service.token("tom", "steward")
    core, requests = service.app.state.core, service.app.state.requests
    spare, text_of = core.tokens.create("gone", "steward")
    things: dict[str, Any] = {"token": spare.id, "person": "pia"}
    if not core.people.all():
        groups = [Group(name="health")]
        core.people.sign_in(issuer="directory", subject="1", name="pia", groups=groups, token_days=1)
    if "proposals" in place:
        proposer = core.tokens.caller(text_of)
        things["proposal"] = core.proposals.propose_allowance(proposer, "ward", "1", "study 12").id
    if place.endswith("factor"):
        core.factors.enrol(spare, text_of)
    if place.endswith("retire"):
        core.register(core.tokens.caller(text_of), "spare", source=None, schema={"columns": ["x"]}, records=[])
    if "requests" in place:
        things["request"] = requests.make(core.tokens.caller(text_of), "ward", "study 12").id
    if "releases" in place:
        query = {"neighbours": 3, "radius": 0.5, "epsilon": "0.01", "force": True}
        things["number"] = sue.post("/v1/datasets/ward/ask/count", query).json["ledger_id"]
    if place.endswith("naming"):
        query = {"contamination": "0.1", "epsilon": "0.01", "force": True}
        things["detector"] = sue.post("/v1/datasets/ward/ask/detector", query).json["ledger_id"]
    if place.endswith("withdraw"):
        core.publications.publish(core.tokens.caller(text_of), things["number"])
    form = {name: value.format(**things) for name, value in ACTS[place].items()}
    steward, at = Browser(service).sign_in(sue.token), "/ui" + place.format(**things)
    before = state(service)
    asked = steward.post(at, form)
    assert (asked.status, hidden_fields(asked)) == (401, form)
    for wrong, status in (("wf_wrong", 401), ("", 401), (str(other.token), 403)):
        refused = steward.post(at, {**hidden_fields(steward.last), "again": wrong})
        assert (refused.status, hidden_fields(refused)) == (status, form)
        assert 'role="alert"' in text(refused)
        assert not wrong or wrong not in text(refused)
        assert_nothing_inline(refused)
    assert state(service) == before
    done = steward.post(at, {**hidden_fields(steward.last), "again": str(sue.token)})
    assert done.status == 303, words(done)
    assert state(service) != before
    assert steward.post(at, form).status == 401  # with a window of 0, each time


def test_whoever_entered_it_a_short_while_ago_is_not_asked(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, reauth_seconds=3000)) as running:
        sue = running.token("sue", "steward")
        steward = Browser(running).sign_in(sue.token)
        at, form = "/ui/datasets/ward/budget/grants", {"epsilon": "3", "reason": "study 12"}
        assert steward.post(at, form).status == 303
        pages = next(route for route in running.app.routes if getattr(route, "path", "") == "/ui")
        late = datetime.now(UTC) - timedelta(seconds=3001)
        with pages.app.state.sessions._store.write() as db:
            stated = {"confirmed": late.isoformat(timespec="milliseconds")}
            db.execute(sa.text("UPDATE service_stays SET confirmed = :confirmed"), stated)
        assert steward.get("/ui/tokens").status == 200  # looking takes no more than a session
        assert steward.post(at, form).status == 401
        assert steward.post(at, {**form, "again": str(sue.token)}).status == 303
        assert steward.post(at, form).status == 303


def test_wrong_tokens_are_counted_and_logged_as_at_the_sign_in(tmp_path: Path, caplog: Any) -> None:
    with run_service(settings(tmp_path, reauth_seconds=0, failures=2)) as running, caplog.at_level(logging.INFO):
        logging.getLogger("wallflower.service").propagate = True
        sue = running.token("sue", "steward")
        steward = Browser(running).sign_in(sue.token)
        at, form = "/ui/datasets/ward/budget/grants", {"epsilon": "3", "reason": "study 12"}
        found = [steward.post(at, {**form, "again": "wf_wrong"}) for _ in range(3)]
        assert [answer.status for answer in found] == [401, 401, 429]
        assert (found[2].headers["retry-after"], hidden_fields(found[2])) == ("60", form)
        assert steward.post(at, {**form, "again": str(sue.token)}).status == 303  # nobody who is right is locked out
    told = [(record.getMessage(), getattr(record, "facts", {})) for record in caplog.records]
    assert [event for event, _ in told if "auth" in event or "token" in event] == [
        *["authentication failed"] * 3,
        "token entered again",
    ]
    assert ("token entered again", {"by": "sue", "token": token_id(str(sue.token)), "address": "127.0.0.1"}) in told
    assert str(sue.token) not in str(told)
