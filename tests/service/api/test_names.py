"""Lists of names and letters over HTTP: for the person who asked, once, and for the person whose record it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_client import Browser, text, words
from served import Caller, Service, run_service, settings

import wallflower as wf
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.release import Release
from wallflower.schema import Column, Schema
from wallflower.service.settings import Registration

ROWS = 400
FACTS = Schema(columns=(Column("id", identifier=True), Column("x", low=-50, high=50), Column("y", low=-50, high=50)))
ASK = {"most": 5, "epsilon": "3", "identifier": "id", "above": -1e9, "force": True}


def icu(folder: Path) -> Registration:
    values = np.random.default_rng(3).normal(size=(ROWS, 2))
    lines = [f"person-{at:03},{x:.4f},{y:.4f}" for at, (x, y) in enumerate(values.tolist())]
    (folder / "icu.csv").write_text("\n".join(["id,x,y", *lines, ""]))
    return Registration(analysts=("*",), name="icu", source=str(folder / "icu.csv"), schema=FACTS)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    stated = replace(settings(tmp_path), datasets=(icu(tmp_path),))
    with run_service(stated, questions=(*QUERIES, *COMPANIONS)) as running:
        running.app.state.core.ledger.grant("icu", Loss("1000"), by="sue")
        yield running


@pytest.fixture
def ana(service: Service) -> Caller:
    return service.token("ana")


@pytest.fixture
def sue(service: Service) -> Caller:
    return service.token("sue", "steward")


@pytest.fixture
def detector(ana: Caller) -> int:
    body = {"epsilon": "2", "contamination": "5%", "columns": ["x", "y"], "force": True}
    return int(ana.post("/v1/datasets/icu/ask/detector", body).json["ledger_id"])


def allow(sue: Caller, detector: int, most: int = 100, **more: Any) -> Any:
    body = {"detector": detector, "most": most, "reason": "a review", **more}
    return sue.post("/v1/datasets/icu/budget/naming", body)


def names_in(answer: Any) -> set[str]:
    return set(re.findall(r"person-\d{3}", text(answer)))


def test_a_list_is_sent_once_to_the_analyst_who_asked(
    service: Service, ana: Caller, sue: Caller, detector: int
) -> None:
    assert allow(sue, detector).status == 201
    body = {"detector": detector, **ASK}
    first = ana.post("/v1/datasets/icu/ask/who", body, idempotency_key="k", prefer="respond-async")
    assert first.status == 200
    assert len(names_in(first)) == 5
    number = first.json["ledger_id"]
    bo = service.token("bo")
    paths = [f"/v1/releases/{number}", "/v1/datasets/icu/releases", f"/v1/releases/{number}/arrow", "/v1/datasets/icu"]
    for caller in (ana, bo, sue, service.token("aude", "auditor")):
        assert not any(names_in(caller.get(path)) for path in paths)
    assert not names_in(ana.get(paths[0], accept="text/csv"))
    assert not names_in(sue.get("/v1/ledger/export"))
    again = ana.post("/v1/datasets/icu/ask/who", body, idempotency_key="k")
    assert (again.status, again.json["value"], again.json["replayed"]) == (200, None, True)
    assert "salt" not in again.json["extras"]
    assert bo.post("/v1/datasets/icu/ask/who", body).problem == "not-found"  # the detector is somebody else's


def test_a_remote_client_gets_the_list_and_can_keep_it(
    service: Service, ana: Caller, sue: Caller, detector: int, tmp_path: Path
) -> None:
    assert allow(sue, detector).status == 201
    icu = wf.connect(service.url, token=ana.token).open("icu")
    made = icu.ask(wf.Who(detector=detector, most=5, loss=Loss("3"), identifier="id", above=-1e9), force=True)
    place = made.write_list(tmp_path / "list.json")
    kept = Release.from_dict(ana.get(f"/v1/releases/{made.ledger_id}").json)
    assert kept.read_list(place).value == made.value


def test_nothing_but_a_stewards_word_opens_lists(service: Service, ana: Caller, sue: Caller, detector: int) -> None:
    body = {"detector": detector, **ASK}
    head = service.app.state.core.ledger.verify().head
    refused = ana.post("/v1/datasets/icu/ask/who", body)
    assert refused.status in (402, 403, 409)
    assert allow(ana, detector).problem == "forbidden"
    assert service.app.state.core.ledger.verify().head == head
    assert allow(sue, detector, 7).json["budget"]["naming"]["allowances"] == [
        {"dataset": "icu", "detector": detector, "most": 7, "requested": 0, "by_row": False}
    ]
    plan = ana.post("/v1/datasets/icu/plan/who", body).json
    assert plan["price"]["names_left"] == 7
    made = ana.post("/v1/datasets/icu/ask/who", body)
    assert made.json["guarantee"]["names_records"] is True
    budget = ana.get("/v1/datasets/icu/budget").json
    assert budget["naming"]["since"] == made.json["ledger_id"]
    assert f"entry {made.json['ledger_id']} " in budget["protects"]
    assert ana.post("/v1/datasets/icu/ask/who", body).status == refused.status


def test_with_four_eyes_lists_wait_for_a_second_steward(tmp_path: Path) -> None:
    stated = replace(settings(tmp_path), datasets=(icu(tmp_path),), four_eyes_above="100")
    with run_service(stated, questions=(*QUERIES, *COMPANIONS)) as running:
        core = running.app.state.core
        core.ledger.grant("icu", Loss("10"), by="sue")
        ana, sue, max_ = running.token("ana"), running.token("sue", "steward"), running.token("max", "steward")
        fit = {"epsilon": "2", "columns": ["x", "y"], "force": True}
        detector = int(ana.post("/v1/datasets/icu/ask/detector", fit).json["ledger_id"])
        waiting = allow(sue, detector)
        assert waiting.status == 202
        assert not core.ledger.account("icu").naming.allowances
        key = waiting.json["id"]
        assert sue.post(f"/v1/proposals/{key}/confirm").status == 403
        assert max_.post(f"/v1/proposals/{key}/confirm").status == 200
        assert core.ledger.account("icu").naming.find("icu", detector).most == 100


def test_with_four_eyes_row_numbers_wait_for_a_second_steward_too(tmp_path: Path) -> None:
    stated = replace(settings(tmp_path), datasets=(icu(tmp_path),), four_eyes_above="100")
    with run_service(stated, questions=(*QUERIES, *COMPANIONS)) as running:
        core = running.app.state.core
        core.ledger.grant("icu", Loss("10"), by="sue")
        ana, sue, max_ = running.token("ana"), running.token("sue", "steward"), running.token("max", "steward")
        fit = {"epsilon": "2", "columns": ["x", "y"], "force": True}
        detector = int(ana.post("/v1/datasets/icu/ask/detector", fit).json["ledger_id"])
        max_.post(f"/v1/proposals/{allow(sue, detector).json['id']}/confirm")
        waiting = allow(sue, detector, by_row=True)  # no more names, and under another assumption
        assert waiting.status == 202
        assert "row numbers" in waiting.json["reason"]
        assert not core.ledger.account("icu").naming.find("icu", detector).by_row
        assert max_.post(f"/v1/proposals/{waiting.json['id']}/confirm").status == 200
        assert core.ledger.account("icu").naming.find("icu", detector).by_row
        assert allow(sue, detector, 50, by_row=True).status == 201
        assert allow(sue, detector, 0).status == 201


def test_a_person_reads_her_own_letter_and_no_other(service: Service, ana: Caller, sue: Caller, detector: int) -> None:
    body = {"detector": detector, "column": "id", "identifiers": ["person-003", "person-007", "nobody"]}
    assert ana.post("/v1/datasets/icu/letters", body).problem == "forbidden"
    made = sue.post("/v1/datasets/icu/letters", body)
    tokens = {one["identifier"]: one["token"] for one in made.json["tokens"]}
    model = Release.from_dict(ana.get(f"/v1/releases/{detector}").json).model
    scores = model.decision_function(service.app.state.core.catalog.table("icu"))
    for name in ("person-003", "person-007"):
        letter = service[tokens[name]].get("/v1/letter")
        assert names_in(letter) == {name}
        assert letter.json["score"] == scores[int(name[-3:])]
        assert letter.headers["cache-control"] == "no-store"
    assert service[tokens["nobody"]].get("/v1/letter").problem == "not-found"
    forged = tokens["person-003"].replace(tokens["person-003"].split(".")[0], tokens["person-007"].split(".")[0])
    for token in (forged, "wfl_", "wfl_e30.0", str(ana.token), None):
        assert service[token].get("/v1/letter").problem == "unauthenticated"
    for path in ("/v1/datasets", "/v1/datasets/icu", f"/v1/releases/{detector}"):
        assert service[tokens["person-003"]].get(path).problem == "unauthenticated"
    head = service.app.state.core.ledger.verify().head
    service[tokens["person-003"]].get("/v1/letter")
    assert service.app.state.core.ledger.verify().head == head


def test_a_letter_expires(service: Service, sue: Caller, detector: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"detector": detector, "column": "id", "identifiers": ["person-003"], "days": 1}
    token = sue.post("/v1/datasets/icu/letters", body).json["tokens"][0]["token"]
    assert service[token].get("/v1/letter").status == 200
    monkeypatch.setattr("wallflower.service.core.letters.now", lambda: "2999-01-01T00:00:00+00:00")
    assert service[token].get("/v1/letter").problem == "unauthenticated"


def test_the_dashboard_allows_lists_and_shows_one_once(
    service: Service, ana: Caller, sue: Caller, detector: int
) -> None:
    steward = Browser(service).sign_in(sue.token)
    page = steward.get("/ui/datasets/icu/budget")
    assert 'action="/ui/datasets/icu/budget/naming"' in text(page)
    form = {"detector": str(detector), "most": "50", "reason": "a review"}
    assert steward.post("/ui/datasets/icu/budget/naming", form).status == 303
    analyst = Browser(service).sign_in(ana.token)
    asked = {"detector": str(detector), "most": "5", "epsilon": "3", "identifier": "id", "above": "-1e9"}
    asked |= {"force": "yes", "nonce": "abc123"}
    analyst.get("/ui/datasets/icu/plan/who")
    shown = analyst.post("/ui/datasets/icu/ask/who", asked)
    assert shown.status == 200, words(shown)
    assert len(names_in(shown)) == 5
    assert "no-store" in shown.headers["cache-control"]
    again = analyst.post("/ui/datasets/icu/ask/who", asked)
    assert again.status == 303
    released = analyst.get(again.headers["location"])
    assert released.status == 200
    number = again.headers["location"].rpartition("/")[2]
    for end in ("", "/csv", "/json", "/arrow", "/picture/svg"):
        answer = analyst.get(f"/ui/releases/{number}{end}")
        assert answer.status == 200
        assert not names_in(answer)
    assert "None" not in words(released)
    assert not names_in(steward.get("/ui/ledger"))
    assert json.dumps(service.app.state.core.ledger.release(int(number))).count("person-") == 0
