"""A form that is sent twice to different processes: charged once, and both visitors end at the same release."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from page_client import Browser, text, words
from served import Service, run_service, settings
from slow import Slow, hold_answers

from wallflower.privacy import Loss

FORM = {"bar": "3", "epsilon": "0.1", "force": "yes", "nonce": "abc"}
ASK = "/ui/datasets/ward/ask/slow"


def charge_numbers(service: Service) -> list[int]:
    return [entry.id for entry in service.app.state.core.entries(event="charge")]


def test_a_form_sent_to_two_processes_waits_for_its_one_release(tmp_path: Path) -> None:
    stated = settings(tmp_path)
    with run_service(stated, questions=(Slow,)) as first, run_service(stated, questions=(Slow,)) as second:
        ana = Browser(first).sign_in(first.token("ana").token)
        elsewhere = replace(ana, service=second)
        places: list[str] = []
        with hold_answers():
            asking = threading.Thread(target=lambda: places.append(ana.post(ASK, FORM).headers["location"]))
            asking.start()
            while not charge_numbers(second):
                assert asking.is_alive()
            answer = elsewhere.post(ASK, FORM)
            assert answer.status == 303
            place = answer.headers["location"]
            assert place == f"/ui/releases/{charge_numbers(second)[0]}"
            page = elsewhere.get(place)
            assert page.status == 202
            assert 'http-equiv="refresh"' in text(page)
            assert "charged once" in words(page)
            assert "longer than usual" not in words(page)
            bo = Browser(second).sign_in(second.token("bo").token)
            assert bo.get(place).status == 404
            conflict = second.token("ana").get(place.replace("/ui/", "/v1/"))
            assert conflict.status == 404
        asking.join()
        assert places == [place]
        assert elsewhere.get(place).status == 200
        assert len(charge_numbers(first)) == 1


def test_a_charge_without_an_answer_is_said_to_be_overdue(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, async_after_seconds=0, shutdown_seconds=1), questions=(Slow,)) as service:
        ana = Browser(service).sign_in(service.token("ana").token)
        ledger = service.app.state.core.ledger
        query = Slow(bar=3.0, loss=Loss("0.1"))
        lost = ledger.charge("ward", query, analyst="ana", idempotency_key="ana/page-abc-0").id
        while "longer than usual" not in words(ana.get(f"/ui/releases/{lost}")):
            assert ana.last.status == 202
        program = ledger.charge("ward", query, analyst="ana", idempotency_key="ana/monday").id
        assert ana.get(f"/ui/releases/{program}").status == 404, "no form was sent for it"


def test_a_program_is_told_which_charge_its_key_has_paid(tmp_path: Path) -> None:
    with run_service(settings(tmp_path), questions=(Slow,)) as service:
        query = Slow(bar=3.0, loss=Loss("0.1"))
        charge = service.app.state.core.ledger.charge("ward", query, analyst="ana", idempotency_key="ana/monday").id
        body = {"bar": 3, "epsilon": "0.1", "force": True}
        answer = service.token("ana").post("/v1/datasets/ward/ask/slow", body, idempotency_key="monday")
        assert (answer.problem, answer.json["charge"]) == ("key-conflict", charge)
