"""Four eyes: above the ε of the settings a limit is written when a second person confirms it, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_client import Browser, words
from served import Caller, Service, run_service, settings

from wallflower.errors import ParameterError
from wallflower.service.core.records import PROPOSALS
from wallflower.service.settings import Group, Settings

AT = "/v1/datasets/ward/budget"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with run_service(settings(tmp_path, four_eyes_above="5", failures=10_000)) as running:
        yield running


def grant(steward: Caller, epsilon: str, **more: Any) -> Any:
    return steward.post(f"{AT}/grants", {"epsilon": epsilon, "reason": "study 12", **more})


def limit(caller: Caller) -> str:
    return str(caller.get(AT).json["limit"]["epsilon"])


def test_a_limit_up_to_the_threshold_needs_one_steward(service: Service) -> None:
    sue = service.token("sue", "steward")
    assert grant(sue, "5").status == 201
    assert limit(sue) == "5"


def test_a_limit_above_it_waits_for_another_person(service: Service) -> None:
    sue, tom = service.token("sue", "steward"), service.token("tom", "steward")
    proposed = grant(sue, "6")
    assert (proposed.status, proposed.json["state"], limit(sue)) == (202, "waiting", "1")
    at = f"/v1/proposals/{proposed.json['id']}"
    assert sue.post(f"{at}/confirm").problem == "forbidden"
    assert service.token("sue", "steward").post(f"{at}/confirm").problem == "forbidden"  # another token of hers
    assert limit(sue) == "1"
    confirmed = tom.post(f"{at}/confirm")
    assert (confirmed.status, confirmed.json["state"], confirmed.json["decided_by"]) == (200, "confirmed", "tom")
    assert limit(sue) == "6"
    (entry,) = service.app.state.core.ledger.history("ward", event="limit")
    assert (entry.id, entry.details["by"]) == (confirmed.json["entry"], "sue")
    assert "confirmed by tom" in entry.details["reason"]
    acts = [(act["act"], act["by"]) for act in sue.get("/v1/acts").json["acts"]]
    assert acts == [("limit proposed", "sue"), ("limit confirmed", "tom")]
    assert tom.post(f"{at}/confirm").problem == "conflict"


def test_a_lower_limit_needs_one_steward(service: Service) -> None:
    sue, tom = service.token("sue", "steward"), service.token("tom", "steward")
    tom.post(f"/v1/proposals/{grant(sue, '8').json['id']}/confirm")
    assert grant(sue, "7").status == 201
    assert grant(sue, "7", delta="1e-6").status == 202  # a δ that there was not


def test_a_token_that_the_proposer_issued_confirms_nothing(service: Service) -> None:
    """Neither one of another name, nor one that such a token has issued."""
    sue = service.token("sue", "steward")
    key = grant(sue, "6").json["id"]
    puppet = service[sue.post("/v1/tokens", {"name": "puppet", "scope": "steward"}).json["text"]]
    second = service[puppet.post("/v1/tokens", {"name": "second", "scope": "steward"}).json["text"]]
    for caller in (puppet, second):
        assert caller.post(f"/v1/proposals/{key}/confirm").problem == "forbidden"
    assert limit(sue) == "1"


def test_the_issuer_of_a_token_does_not_confirm_what_it_proposes(service: Service) -> None:
    """Nor does another token that the same steward has issued."""
    sue = service.token("sue", "steward")
    puppets = [
        service[sue.post("/v1/tokens", {"name": name, "scope": "steward"}).json["text"]] for name in ("one", "two")
    ]
    second = service[puppets[0].post("/v1/tokens", {"name": "three", "scope": "steward"}).json["text"]]
    for proposer in (puppets[0], second):
        key = grant(proposer, "6").json["id"]
        for confirmer in (sue, puppets[1]):
            assert confirmer.post(f"/v1/proposals/{key}/confirm").problem == "forbidden"
    assert limit(sue) == "1"
    assert service.token("tom", "steward").post(f"/v1/proposals/{key}/confirm").status == 200


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        ({"pace": "2"}, {}, 202),
        ({"pace": "2"}, {"pace": "3"}, 202),
        ({"pace": "2"}, {"pace": "1"}, 201),
        ({"expires": "2999-01-01"}, {}, 202),
        ({"expires": "2999-01-01"}, {"expires": "2999-01-02"}, 202),
        ({"expires": "2999-01-01"}, {"expires": "2998-12-31"}, 201),
        ({}, {"pace": "2", "expires": "2999-01-01"}, 201),
    ],
    ids=str,
)
def test_a_pace_or_a_last_day_that_is_loosened_takes_two_stewards(
    service: Service, before: dict[str, str], after: dict[str, str], status: int
) -> None:
    sue, tom = service.token("sue", "steward"), service.token("tom", "steward")
    assert tom.post(f"/v1/proposals/{grant(sue, '8', **before).json['id']}/confirm").status == 200
    assert grant(sue, "8", **after).status == status
    assert grant(sue, "5").status == 201  # not above the ε of the settings


def test_a_person_of_the_directory_confirms_even_if_tokens_of_her_name_were_issued(service: Service) -> None:
    sue = service.token("sue", "steward")
    key = grant(sue, "6").json["id"]
    sue.post("/v1/tokens", {"name": "pia", "scope": "analyst"})
    core = service.app.state.core
    group = Group(name="stewards", role="steward")
    core.people.sign_in(issuer="directory", subject="1", name="pia", groups=[group], token_days=1)
    text = core.tokens.create("pia", "steward", days=1, by="pia", is_personal=True)[1]
    assert service[text].post(f"/v1/proposals/{key}/confirm").status == 200


def test_nobody_else_confirms(service: Service) -> None:
    key = grant(service.token("sue", "steward"), "6").json["id"]
    for scope in ("analyst", "auditor"):
        assert service.token("ana", scope).post(f"/v1/proposals/{key}/confirm").status == 403


def test_a_proposal_expires(service: Service) -> None:
    sue, tom = service.token("sue", "steward"), service.token("tom", "steward")
    key = grant(sue, "6").json["id"]
    service.app.state.core.records.change(PROPOSALS, key, created="2020-01-01T00:00:00.000+00:00")
    assert tom.post(f"/v1/proposals/{key}/confirm").problem == "conflict"
    assert [one["state"] for one in tom.get("/v1/proposals").json["proposals"]] == ["expired"]
    assert limit(sue) == "1"


def test_a_proposal_is_declined_or_taken_back(service: Service) -> None:
    sue, tom = service.token("sue", "steward"), service.token("tom", "steward")
    for decliner in (sue, tom):
        key = grant(sue, "6").json["id"]
        assert decliner.post(f"/v1/proposals/{key}/decline").json["state"] == "declined"
        assert tom.post(f"/v1/proposals/{key}/confirm").problem == "conflict"
    assert limit(sue) == "1"


def test_a_change_that_the_ledger_refuses_waits_on(service: Service) -> None:
    """A share is kept by basic composition, so a limit by another rule cannot be written."""
    sue, tom = service.token("sue", "steward"), service.token("tom", "steward")
    service.token("ana")
    key = grant(sue, "6", delta="1e-6", accounting="concentrated").json["id"]
    assert sue.post(f"{AT}/quotas", {"analyst": "ana", "epsilon": "0.5"}).status == 201
    assert tom.post(f"/v1/proposals/{key}/confirm").status == 422
    assert [one["state"] for one in tom.get("/v1/proposals").json["proposals"]] == ["waiting"]
    assert sue.post(f"{AT}/quotas", {"analyst": "ana", "epsilon": "0"}).status == 201
    assert tom.post(f"/v1/proposals/{key}/confirm").status == 200


def test_output_constrained_answers_need_it_too(service: Service) -> None:
    sue, tom = service.token("sue", "steward"), service.token("tom", "steward")
    proposed = sue.post(f"{AT}/constrained", {"epsilon": "50", "reason": "agreed"})
    assert (proposed.status, proposed.json["kind"]) == (202, "allowance")
    assert tom.post(f"/v1/proposals/{proposed.json['id']}/confirm").status == 200
    assert sue.post(f"{AT}/constrained", {"epsilon": "1", "reason": "less"}).status == 201


def test_a_request_is_granted_when_the_second_steward_confirms(service: Service) -> None:
    sue, tom, ana = service.token("sue", "steward"), service.token("tom", "steward"), service.token("ana")
    asked = ana.post("/v1/datasets/ward/requests", {"reason": "study 12"}).json["id"]
    answer = sue.post(f"/v1/requests/{asked}/grant", {"epsilon": "6", "reason": "study 12"})
    assert (answer.status, answer.json["state"]) == (201, "open")
    (proposal,) = sue.get("/v1/proposals").json["proposals"]
    tom.post(f"/v1/proposals/{proposal['id']}/confirm")
    granted = ana.get(f"/v1/requests/{asked}").json
    assert (granted["state"], granted["by"]) == ("granted", "tom")


def test_the_pages_do_the_same(service: Service) -> None:
    sue = Browser(service).sign_in(service.token("sue", "steward").token)
    tom = Browser(service).sign_in(service.token("tom", "steward").token)
    made = sue.post("/ui/datasets/ward/budget/grants", {"epsilon": "6", "reason": "<b>study</b>"})
    assert made.headers["location"] == "/ui/proposals?done=proposed"
    page = sue.get("/ui/proposals?done=proposed")
    assert "a second data steward must confirm it" in words(page)
    assert "<b>study" not in page.content.decode()
    (proposal,) = service.app.state.core.proposals.all()
    assert sue.post(f"/ui/proposals/{proposal.id}/confirm").status == 403
    tom.get("/ui/proposals")
    assert tom.post(f"/ui/proposals/{proposal.id}/confirm").status == 303
    assert "confirmed" in words(tom.get("/ui/proposals"))
    assert service.app.state.core.ledger.account("ward").limit.epsilon == 6


def test_without_the_setting_one_steward_is_enough(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        sue = running.token("sue", "steward")
        assert grant(sue, "9").status == 201
        assert sue.get("/v1/proposals").json == {"proposals": []}


def test_a_threshold_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ParameterError, match="four_eyes_above"):
        Settings(four_eyes_above="much")
