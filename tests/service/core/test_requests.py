"""Budget requests: one at a time, everybody's own, answered once, and in the ledger only when granted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from page_client import EVIL, Browser, text, words
from served import Answer, Caller, Service, run_service, settings

from wallflower.service.core import requests as room


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("requests"), failures=10_000)) as running:
        yield running


@pytest.fixture(scope="module")
def sue(service: Service) -> Caller:
    return service.token("sue", "steward")


def test_one_waits_at_a_time_and_another_after_an_answer(service: Service, sue: Caller) -> None:
    ana = service.token("ana-one")
    made = ana.post("/v1/datasets/ward/requests", {"reason": "study 12", "epsilon": "1/2", "question": "count"})
    assert made.status == 201
    assert (made.json["state"], made.json["epsilon"], made.json["question"]) == ("open", "1/2", "count")
    again = ana.post("/v1/datasets/ward/requests", {"reason": "study 12"})
    assert (again.status, again.problem) == (429, "too-many-requests")
    assert ana.post("/v1/datasets/beds/requests", {"reason": "study 13"}).status == 201
    declined = sue.post(f"/v1/requests/{made.json['id']}/decline", {"word": "the survey ends this year"})
    assert (declined.status, declined.json["state"], declined.json["by"]) == (201, "declined", "sue")
    assert ana.get(f"/v1/requests/{made.json['id']}").json["word"] == "the survey ends this year"
    assert ana.post("/v1/datasets/ward/requests", {"reason": "study 14"}).status == 201


def test_a_day_has_so_many(service: Service, sue: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_REQUESTS_PER_DAY", 2)
    ana = service.token("ana-busy")
    for _ in range(2):
        made = ana.post("/v1/datasets/ward/requests", {"reason": "more"})
        assert sue.post(f"/v1/requests/{made.json['id']}/decline", {"word": "no"}).status == 201
    refused = ana.post("/v1/datasets/ward/requests", {"reason": "more"})
    assert (refused.status, refused.problem) == (429, "too-many-requests")
    assert refused.headers["retry-after"]


def test_nobody_sees_the_requests_of_others(service: Service) -> None:
    ana, bo = service.token("ana-own"), service.token("bo-own")
    made = ana.post("/v1/datasets/ward/requests", {"reason": "secret study"}).json
    assert bo.get("/v1/requests").json == {"requests": []}
    hidden, none = bo.get(f"/v1/requests/{made['id']}"), bo.get("/v1/requests/none")
    assert hidden.status == 404
    assert hidden.content == none.content
    page = Browser(service).sign_in(bo.token)
    assert page.get(f"/ui/requests/{made['id']}").content != b""
    assert page.last.status == 404
    assert "secret study" not in text(page.get("/ui/requests"))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reason": ""},
        {"reason": " "},
        {"reason": "x" * 1001},
        {"reason": "x", "epsilon": "0"},
        {"reason": "x", "epsilon": "-1"},
        {"reason": "x", "epsilon": "much"},
        {"reason": "x", "question": "none"},
    ],
)
def test_what_cannot_be_asked_is_refused(service: Service, body: dict[str, str]) -> None:
    refused = service.token("ana-wrong").post("/v1/datasets/ward/requests", body)
    assert (refused.status, refused.problem) == (422, "parameter")


def test_a_grant_answers_it_once_and_stands_in_the_ledger(service: Service, sue: Caller) -> None:
    ana, core = service.token("ana-grant"), service.app.state.core
    before = core.verify().entries
    made = ana.post("/v1/datasets/ward/requests", {"reason": "study 12"}).json
    assert core.verify().entries == before
    at = f"/v1/requests/{made['id']}"
    assert sue.post(f"{at}/grant", {"epsilon": "11", "reason": "too much"}).status == 422
    assert ana.get(at).json["state"] == "open"
    granted = sue.post(f"{at}/grant", {"epsilon": "4", "reason": "study 12", "word": "use it well"})
    assert (granted.status, granted.json["state"], granted.json["word"]) == (201, "granted", "use it well")
    entry = core.entries(last=1)[0]
    assert (entry.id, entry.event) == (granted.json["entry"], "limit")
    for act, body in (("grant", {"epsilon": "5", "reason": "again"}), ("decline", {"word": "no"})):
        refused = sue.post(f"{at}/{act}", body)
        assert (refused.status, refused.problem) == (409, "conflict")
    assert core.entries(last=1)[0].id == entry.id
    assert core.acts.last(1)[0]["act"] == "request granted"


def test_of_two_stewards_at_once_one_changes_the_budget(
    service: Service, sue: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, tom, core = service.token("ana-twice"), service.token("tom", "steward"), service.app.state.core
    at = f"/v1/requests/{ana.post('/v1/datasets/ward/requests', {'reason': 'study 12'}).json['id']}"
    grant, meanwhile = core.ledger.grant, list[Answer]()

    def grant_slowly(*given: Any, **terms: Any) -> Any:
        monkeypatch.setattr(core.ledger, "grant", grant)
        for act, body in (("grant", {"epsilon": "9", "reason": "study 12"}), ("decline", {"word": "no"})):
            meanwhile.append(tom.post(f"{at}/{act}", body))
        return grant(*given, **terms)

    monkeypatch.setattr(core.ledger, "grant", grant_slowly)
    granted = sue.post(f"{at}/grant", {"epsilon": "4", "reason": "study 12"})
    assert (granted.status, granted.json["by"]) == (201, "sue")
    assert [(one.status, one.problem) for one in meanwhile] == [(409, "conflict")] * 2
    assert core.ledger.account("ward").limit.epsilon == 4
    assert [entry.id for entry in core.entries(name="ward", event="limit", last=1)] == [granted.json["entry"]]


def test_a_request_whose_steward_was_cut_off_is_answered_by_another(service: Service, sue: Caller) -> None:
    ana, core = service.token("ana-cut"), service.app.state.core
    key = ana.post("/v1/datasets/ward/requests", {"reason": "study 12"}).json["id"]
    core.records.change(room.REQUESTS, key, by="gone", decided="2001-01-01T00:00:00.000+00:00")
    declined = sue.post(f"/v1/requests/{key}/decline", {"word": "no"})
    assert (declined.status, declined.json["by"]) == (201, "sue")


def test_a_request_is_granted_by_its_own_data_set_alone(service: Service, sue: Caller) -> None:
    ana, steward, core = service.token("ana-astray"), Browser(service).sign_in(sue.token), service.app.state.core
    key = ana.post("/v1/datasets/beds/requests", {"reason": "study 12"}).json["id"]
    before = core.verify().entries
    form = {"epsilon": "5", "reason": "study 12", "request": key}
    answer = steward.post("/ui/datasets/ward/budget/grants", form)
    assert answer.status == 409
    assert "The request is about beds" in words(answer)
    assert core.verify().entries == before
    assert ana.get(f"/v1/requests/{key}").json["state"] == "open"


def test_from_the_form_to_the_grant_in_two_steps(service: Service, sue: Caller) -> None:
    ana, steward = (Browser(service).sign_in(one.token) for one in (service.token("ana-page"), sue))
    ana.get("/ui/datasets/beds/request?epsilon=0.5&question=watch")
    assert 'value="0.5"' in text(ana.last)
    wrong = ana.post("/ui/datasets/beds/request", {"reason": " ", "epsilon": "0.5"})
    assert wrong.status == 422
    assert 'value="0.5"' in text(wrong)
    made = ana.post("/ui/datasets/beds/request", {"reason": EVIL, "epsilon": "0.5", "question": "watch"})
    at = made.headers["location"]
    inbox = steward.get("/ui/requests")
    assert EVIL in words(inbox)
    assert "<img src=x" not in text(inbox)
    assert "<img src=x" not in text(steward.get(at))
    form = {"epsilon": "6", "reason": EVIL, "word": EVIL, "request": at.rpartition("/")[2]}
    count = service.app.state.core.verify().entries
    review = steward.post("/ui/datasets/beds/budget/review/grants", form)
    assert review.status == 200
    assert "<img src=x" not in text(review)
    assert "Budget, in all" in words(review)
    assert "<strong>ε = 6</strong>" in text(review)
    assert service.app.state.core.verify().entries == count
    assert steward.post("/ui/datasets/beds/budget/grants", form).headers["location"] == at
    told = ana.get(at)
    assert "Granted by sue" in words(told)
    assert EVIL in words(told)
    assert "<img src=x" not in text(told)


@pytest.mark.parametrize(
    ("form", "given", "told"),
    [
        ("grants", {"epsilon": "3"}, "reason: required"),
        ("grants", {"epsilon": "12", "reason": "x"}, "protects nobody"),
        ("grants", {"epsilon": "x", "reason": "x"}, "epsilon"),
        ("quotas", {"epsilon": "1"}, "analyst: must be the name of a token"),
    ],
)
def test_a_review_refuses_what_the_act_would(
    service: Service, sue: Caller, form: str, given: dict[str, str], told: str
) -> None:
    steward = Browser(service).sign_in(sue.token)
    answer = steward.post(f"/ui/datasets/ward/budget/review/{form}", given)
    assert answer.status == 422
    assert told in words(answer)


def test_a_review_of_a_share_names_a_stranger(service: Service, sue: Caller) -> None:
    steward = Browser(service).sign_in(sue.token)
    answer = steward.post("/ui/datasets/ward/budget/review/quotas", {"epsilon": "0.1", "analyst": "nobody"})
    assert "Nobody holds a valid token under the name nobody" in words(answer)
    assert steward.post("/ui/datasets/ward/budget/review/none", {}).status == 404
