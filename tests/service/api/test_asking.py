"""Questions over HTTP: charged once, answered on the tick, and nothing said of what was seen."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from asks import ASK, charges, wait_for_job
from pyarrow import ipc
from served import Caller, Service, run_service, settings
from slow import Slow, hold_answers

from above import Above
from wallflower.data import Points
from wallflower.errors import ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries import COMPANIONS, QUERIES
from wallflower.release import Release
from wallflower.schema import Schema
from wallflower.service.api.routes.analyst import ARROW
from wallflower.service.core.jobs import Jobs, _start_time
from wallflower.service.core.records import JOBS
from wallflower.service.settings import Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken(Above):
    """Fails after the look, and tells a record."""

    kind: ClassVar[str] = "broken"
    label: ClassVar[str] = "broken/1"

    def answer(self, data: Points, noise: Noise) -> int:
        raise ValueError(f"the record {data.values[3].tolist()} is odd")


@pytest.fixture(scope="module")
def service(tmp_path_factory: Any) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("asking")), questions=(Above, Broken)) as running:
        running.app.state.core.ledger.grant("ward", Loss("1000"), by="sue")
        yield running


@pytest.fixture
def ana(service: Service) -> Caller:
    return service.token("ana")


def test_a_new_question_appears_by_itself(service: Service, ana: Caller) -> None:
    forms = {form["kind"]: form for form in ana.get("/v1/questions").json["questions"]}
    assert set(forms) == {"above", "broken"}
    asked = {one["name"]: one for one in forms["above"]["parameters"]}
    assert asked["side"]["choices"] == ["above", "below"]
    assert asked["bar"]["required"]
    assert ana.post("/v1/datasets/ward/ask/above", forms["above"]["example"]).status == 200


def test_an_answer_is_a_release_with_one_charge(service: Service, ana: Caller) -> None:
    before = charges(service)
    answer = ana.post("/v1/datasets/ward/ask/above", ASK)
    made = Release.from_dict(answer.json)
    assert (made.dataset, made.analyst, made.guarantee.loss) == ("ward", "ana", Loss("0.1"))
    assert charges(service) == before + 1
    assert ana.get(f"/v1/releases/{made.ledger_id}").json == answer.json
    with pa.ipc.open_stream(ana.get(f"/v1/releases/{made.ledger_id}/arrow").content) as stream:
        assert stream.read_all()["value"].to_pylist() == [made.value]


def test_an_analyst_sees_their_own_releases_and_a_steward_all(service: Service, ana: Caller) -> None:
    eve, sue = service.token("eve"), service.token("sue", "steward")
    ana.post("/v1/datasets/ward/ask/above", ASK)
    mine = eve.post("/v1/datasets/ward/ask/above", ASK).json["ledger_id"]
    assert [made["ledger_id"] for made in eve.get("/v1/datasets/ward/releases").json["releases"]] == [mine]
    page = sue.get("/v1/datasets/ward/releases?last=1").json
    assert ([made["ledger_id"] for made in page["releases"]], page["before"]) == ([mine], mine)
    earlier = sue.get(f"/v1/datasets/ward/releases?last=1&before={page['before']}").json["releases"]
    assert earlier[0]["analyst"] == "ana"


# Use


def test_an_answer_of_no_use_is_sold_to_whoever_wants_it_anyway(service: Service, ana: Caller) -> None:
    before, useless = charges(service), {**ASK, "epsilon": "0.001"}
    refused = ana.post("/v1/datasets/ward/ask/above", useless)
    assert (refused.status, refused.problem) == (422, "not-useful")
    assert "drowns the answer" in refused.json["verdict"]
    assert charges(service) == before
    made = ana.post("/v1/datasets/ward/ask/above", {**useless, "force": True})
    assert made.json["quality"]["noise"] == "mostly noise"
    assert ana.post("/v1/datasets/ward/plan/above", {**useless, "force": True}).json["useful"] is False


@pytest.mark.parametrize("given", ["0,5", "abc", True, "1/0", "-1"])
def test_a_loss_is_refused_in_the_words_that_python_has(service: Service, ana: Caller, given: Any) -> None:
    with pytest.raises(ParameterError) as refusal:
        Loss(given)
    answer = ana.post("/v1/datasets/ward/ask/above", {**ASK, "epsilon": given})
    assert (answer.status, answer.problem) == (422, "parameter")
    assert answer.json["detail"] == str(refusal.value)


@pytest.mark.parametrize(("written", "exact"), [("1", "1"), ("0.1", "1/10"), ("5e-1", "1/2"), ("0.50", "1/2")])
def test_a_json_number_is_taken_by_its_digits(ana: Caller, written: str, exact: str) -> None:
    """A float would be 3602879701896397/2**55, and nobody wrote that."""
    body = json.dumps({**ASK, "force": True, "epsilon": "E"}).replace('"E"', written)
    answer = ana.post("/v1/datasets/ward/ask/above", raw=body.encode())
    assert answer.status == 200, answer.content
    assert answer.json["booked"]["amount"] == exact


@pytest.mark.parametrize("written", ["-1", "1e400", "NaN", "1000001"])
def test_a_json_number_that_is_no_loss_is_refused(ana: Caller, service: Service, written: str) -> None:
    before = charges(service)
    answer = ana.post(
        "/v1/datasets/ward/ask/above", raw=json.dumps({**ASK, "epsilon": "E"}).replace('"E"', written).encode()
    )
    assert (answer.status, answer.problem) in ((422, "parameter"), (400, "malformed"))
    assert charges(service) == before


# Releases, as they are wanted


def test_a_release_comes_in_the_form_that_is_accepted_and_once(ana: Caller) -> None:
    made = ana.post("/v1/datasets/ward/ask/above", ASK).json
    at = f"/v1/releases/{made['ledger_id']}"
    plain, table, stream = (ana.get(at, accept=form) for form in ("*/*", "text/csv", ARROW))
    assert plain.json == made
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert next(csv.DictReader(io.StringIO(table.content.decode())))["value"] == str(made["value"])
    assert ipc.open_stream(io.BytesIO(stream.content)).read_all()["value"].to_pylist() == [made["value"]]
    assert len({answer.headers["etag"] for answer in (plain, table, stream)}) == 3
    known = ana.get(at, if_none_match=f'"other", {plain.headers["etag"]}')
    assert (known.status, known.content, known.headers["etag"]) == (304, b"", plain.headers["etag"])
    assert ana.get(at, accept="text/csv", if_none_match=plain.headers["etag"]).status == 200


def test_a_list_says_where_it_goes_on(ana: Caller) -> None:
    for _ in range(3):
        ana.post("/v1/datasets/ward/ask/above", ASK)
    place, seen = "/v1/datasets/ward/releases?last=2", []
    while place:
        answer = ana.get(place)
        seen[:0] = [made["ledger_id"] for made in answer.json["releases"]]
        place = answer.json["next"]
        assert answer.headers.get("link") == (f'<{place}>; rel="next"' if place else None)
    assert seen == [made["ledger_id"] for made in ana.get("/v1/datasets/ward/releases?last=1000").json["releases"]]


# Keys


def test_a_key_is_paid_once(service: Service, ana: Caller) -> None:
    first = ana.post("/v1/datasets/ward/ask/above", ASK, idempotency_key="k1").json
    before = charges(service)
    again = ana.post("/v1/datasets/ward/ask/above", ASK, idempotency_key="k1").json
    assert charges(service) == before
    assert (again["replayed"], again["ledger_id"], again["value"]) == (True, first["ledger_id"], first["value"])


def test_a_key_stands_for_one_question_of_one_analyst(service: Service, ana: Caller) -> None:
    ana.post("/v1/datasets/ward/ask/above", ASK, idempotency_key="k2")
    other = ana.post("/v1/datasets/ward/ask/above", {**ASK, "bar": 8.0}, idempotency_key="k2")
    assert (other.status, other.problem) == (409, "key-conflict")
    assert service.token("bo").post("/v1/datasets/ward/ask/above", ASK, idempotency_key="k2").status == 200


@pytest.mark.parametrize("key", ["é", " ", "x" * 101])
def test_a_key_is_short_and_plain(ana: Caller, key: str) -> None:
    answer = ana.post("/v1/datasets/ward/ask/above", ASK, idempotency_key=key)
    assert (answer.status, answer.problem) == (422, "parameter")


def test_identical_requests_at_once_are_charged_once(service: Service) -> None:
    gil = service.token("gil")
    stated = {"idempotency_key": "at once"}
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: gil.post("/v1/datasets/ward/ask/above", ASK, **stated), range(3)))
    assert {answer.status for answer in found} <= {200, 409}
    assert charges(service, "gil") == 1
    assert gil.post("/v1/datasets/ward/ask/above", ASK, **stated).json["replayed"]


# Budgets


def test_a_budget_that_is_spent_is_a_refusal_with_numbers(service: Service, ana: Caller) -> None:
    before = charges(service)
    answer = ana.post("/v1/datasets/ward/ask/above", {**ASK, "epsilon": "5000"})
    assert (answer.status, answer.problem) == (403, "budget-exhausted")
    assert answer.json["asked"]["amount"] == "5000"
    assert Loss.from_json(answer.json["left"]) <= Loss("1000")
    assert charges(service) == before


def test_shares_hold_and_others_see_only_their_sum(service: Service) -> None:
    sue, hal, ida = service.token("sue", "steward"), service.token("hal"), service.token("ida")
    for name in ("hal", "ida"):
        sue.post("/v1/datasets/ward/budget/quotas", {"analyst": name, "epsilon": "0.2"})
    assert hal.post("/v1/datasets/ward/ask/above", {**ASK, "epsilon": "0.15"}).status == 200
    assert hal.post("/v1/datasets/ward/ask/above", ASK).problem == "budget-exhausted"
    told = ida.get("/v1/datasets/ward/budget").json
    assert [share["analyst"] for share in told["quotas"]] == ["ida", "(others)"]
    assert (told["quotas"][0]["left"]["amount"], told["quotas"][1]["spent"]["amount"]) == ("1/5", "3/20")
    assert set(told["spenders"]) == {"(others)"}
    assert told["free"] == sue.get("/v1/datasets/ward/budget").json["free"]
    assert ida.get("/v1/datasets/ward").json["left"]["exact"] == "ε=1/5"


@pytest.mark.parametrize(
    "epsilon", ["NaN", "-1", "0.5.5", "inf", "1e400", "1000001", "", "1/0", "٣", "0x1", None, [], "9" * 70]
)
def test_a_loss_that_is_none_is_refused(ana: Caller, service: Service, epsilon: Any) -> None:
    before = charges(service)
    answer = ana.post("/v1/datasets/ward/ask/above", {**ASK, "epsilon": epsilon})
    assert (answer.status, answer.problem) == (422, "parameter")
    assert charges(service) == before


@pytest.mark.parametrize(
    "more",
    [{"bar": math.nan}, {"bar": 1e999}, {"bar": "7"}, {"most": 1.5}, {"most": 10**40}, {"huh": 1}, {"side": "x"}],
)
def test_a_parameter_of_another_type_is_refused_and_not_repeated(ana: Caller, more: dict[str, Any]) -> None:
    answer = ana.post("/v1/datasets/ward/plan/above", {**ASK, **more})
    assert (answer.status, answer.problem) == (422, "parameter")
    assert b"1000000000000000000000000000000" not in answer.content


def test_columns_that_are_not_there_are_refused_from_public_facts(ana: Caller) -> None:
    answer = ana.post("/v1/datasets/ward/ask/above", {**ASK, "columns": ["zz"]})
    assert answer.status == 422
    assert answer.problem in ("parameter", "data")


def test_a_record_may_be_named_only_if_the_steward_has_named_it(tmp_path: Path) -> None:
    base = settings(tmp_path)
    named = replace(base.datasets[0], records=("3",))
    domain = {"columns": {"a": {"edges": [5, 10]}, "b": {"low": 0, "high": 100}}, "clip": True}
    body = {"metric": "b", "context": ["a"], "domain": domain, "size": 1000, "epsilon": "0.5"}
    with run_service(replace(base, datasets=(named,)), questions=QUERIES) as running:
        ana, sue = running.token("ana"), running.token("sue", "steward")
        assert ana.post("/v1/datasets/ward/ask/explain", {**body, "record": "3"}).status == 200
        for kind in ("ask", "plan"):
            refused = [ana.post(f"/v1/datasets/ward/{kind}/explain", {**body, "record": each}) for each in ("4", "99")]
            assert [answer.problem for answer in refused] == ["forbidden", "forbidden"]
            assert refused[0].content == refused[1].content
        assert sue.post("/v1/datasets/ward/plan/explain", {**body, "record": "4"}).status == 200


def test_flags_of_groups_are_told_of_ones_own_detector(tmp_path: Path) -> None:
    source = tmp_path / "patients.csv"
    source.write_text("pulse,ward\n" + "".join(f"{row % 50},{'ns'[row % 2]}\n" for row in range(400)))
    schema = Schema.of(["pulse", "ward"], categories={"ward": ["n", "s", "day"]})
    patients = Registration(analysts=("*",), name="patients", source=str(source), schema=schema)
    with run_service(replace(settings(tmp_path), datasets=(patients,)), questions=(*QUERIES, *COMPANIONS)) as running:
        ana, bo, sue = running.token("ana"), running.token("bo"), running.token("sue", "steward")
        fit = {"contamination": "10%", "columns": ["pulse"], "epsilon": "0.4", "force": True}
        made = ana.post("/v1/datasets/patients/ask/detector", fit)
        asked = {"detector": made.json["ledger_id"], "by": ["ward"], "epsilon": "0.1", "force": True}
        told = ana.post("/v1/datasets/patients/ask/flags", asked)
        assert told.status == 200, told.content
        assert [row["ward"] for row in told.json["value"]] == ["n", "s", "day"]
        assert all(isinstance(row[name], int) for row in told.json["value"] for name in ("flagged", "others"))
        for kind in ("ask", "plan"):
            assert bo.post(f"/v1/datasets/patients/{kind}/flags", asked).status == 404
            assert (
                ana.post(f"/v1/datasets/patients/{kind}/flags", asked | {"detector": told.json["ledger_id"]}).status
                == 422
            )
        assert sue.post("/v1/datasets/patients/plan/flags", asked).status == 200


# After the look


def test_after_the_look_the_error_is_constant(service: Service, ana: Caller, caplog: Any) -> None:
    before = charges(service)
    with caplog.at_level(logging.INFO):
        logging.getLogger("wallflower.service").propagate = True
        found = [ana.post("/v1/datasets/ward/ask/broken", {**ASK, "bar": bar}) for bar in (1.0, 2.0)]
    assert found[0].content == found[1].content
    assert (found[0].status, found[0].problem) == (500, "unanswered")
    assert charges(service) == before + 2
    told = "".join(str(vars(record)) for record in caplog.records)
    assert "ValueError" in told
    assert "is odd" not in told
    assert "is odd" not in found[0].content.decode()


def test_answers_leave_on_the_tick(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, quantum_seconds=1.0), questions=(Above,)) as running:
        ana = running.token("ana")
        ana.get("/v1/whoami")
        began = time.monotonic()
        assert ana.post("/v1/datasets/ward/ask/above", ASK).status == 200
        assert time.monotonic() - began >= 1


def test_until_the_tick_nobody_can_tell_that_a_look_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, ticked = threading.Event(), threading.Event()

    def hold(self: Jobs, came: float) -> None:
        looked.set()
        ticked.wait()

    monkeypatch.setattr(Jobs, "_hold", hold)
    with run_service(settings(tmp_path, answering=1), questions=(Above,)) as running:
        ana, eye = running.token("ana"), running.token("eye", "monitor")
        first, second = (ana.post("/v1/datasets/ward/ask/above", ASK, prefer="respond-async").json for _ in "ab")
        looked.wait()
        seen = [ana.get(f"/v1/jobs/{job['id']}").json["state"] for job in (first, second)]
        assert seen == ["running", "queued"]  # though the first look is over
        assert ana.get("/v1/datasets/ward/releases").json["releases"] == []
        assert running.app.state.core.ledger.history("ward", event="release") == []
        assert 'outcome="answered"' not in eye.get("/metrics").content.decode()
        ticked.set()
        for job in (first, second):
            assert wait_for_job(ana, job["id"])[0]["state"] == "done"
        assert len(ana.get("/v1/datasets/ward/releases").json["releases"]) == 2
        assert 'outcome="answered"} 2' in eye.get("/metrics").content.decode()


def test_a_look_that_fails_is_held_too(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, quantum_seconds=1.0), questions=(Broken,)) as running:
        ana = running.token("ana")
        ana.get("/v1/whoami")
        began = time.monotonic()
        assert ana.post("/v1/datasets/ward/ask/broken", ASK).status == 500
        assert time.monotonic() - began >= 1


def test_a_refusal_waits_for_no_tick(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, quantum_seconds=60.0), questions=(Above,)) as running:
        began = time.monotonic()
        assert running.token("ana").post("/v1/datasets/ward/ask/above", {**ASK, "epsilon": "5"}).status == 403
        assert time.monotonic() - began < 60


# Jobs


def test_a_question_may_be_answered_later(ana: Caller) -> None:
    answer = ana.post("/v1/datasets/ward/ask/above", ASK, prefer="respond-async")
    assert (answer.status, answer.headers["location"]) == (202, f"/v1/jobs/{answer.json['id']}")
    found, states = wait_for_job(ana, answer.json["id"])
    assert states <= {"queued", "running", "done"}
    assert ana.get(f"/v1/releases/{found['release']}").json["kind"] == "above"


def test_a_question_that_takes_long_becomes_a_job_and_too_many_are_refused(tmp_path: Path) -> None:
    with run_service(
        settings(tmp_path, async_after_seconds=0.1, waiting=3, answering=2, answering_each=2), questions=(Slow,)
    ) as running:
        ana = running.token("ana")
        with hold_answers():
            slow = [ana.post("/v1/datasets/ward/ask/slow", ASK) for _ in range(3)]
            assert [answer.status for answer in slow] == [202] * 3
            while charges(running) < 2:
                time.sleep(0.02)
            busy = ana.post("/v1/datasets/ward/ask/slow", ASK)
            assert (busy.status, busy.problem, busy.headers["retry-after"]) == (503, "busy", "1")
            assert charges(running) == 2  # two are being answered, one waits unpaid
        for answer in slow:
            assert wait_for_job(ana, answer.json["id"])[0]["state"] == "done"
        assert charges(running) == 3


def test_a_job_that_fails_tells_the_constant_problem(ana: Caller) -> None:
    job = ana.post("/v1/datasets/ward/ask/broken", ASK, prefer="respond-async").json["id"]
    found = wait_for_job(ana, job)[0]
    assert found["problem"]["type"].endswith("unanswered")
    assert "odd" not in json.dumps(found)


def test_a_job_whose_worker_has_died_has_failed(service: Service, ana: Caller) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    row = {"analyst": "ana", "dataset": "ward", "kind": "above", "state": "running"}
    own = f"{platform.node()}/{os.getpid()}/"
    nodes = {"dead": f"{platform.node()}/{gone.pid}/7", "own": own + _start_time(os.getpid()), "far": "far/1/7"}
    nodes |= {"again": f"{own}7", "earlier": f"{platform.node()}/{os.getpid()}"}
    for name, worker in nodes.items():
        service.app.state.core.records.add(JOBS, {"id": name, "worker": worker, **row})
    found = {name: ana.get(f"/v1/jobs/{name}").json for name in nodes}
    assert [found[name]["state"] for name in nodes] == ["failed", "running", "running", "failed", "failed"]
    assert found["dead"]["problem"]["type"].endswith("unanswered")


# What is counted


def test_metrics_name_no_data_set_unless_they_may(service: Service, ana: Caller, tmp_path: Path) -> None:
    ana.post("/v1/datasets/ward/ask/above", ASK)
    text = service.token("eye", "monitor").get("/metrics").content.decode()
    assert 'wallflower_asks_total{kind="above",outcome="answered"}' in text
    assert '"ward"' not in text
    with run_service(settings(tmp_path, metrics_datasets=True), questions=(Above,)) as running:
        assert (
            'wallflower_budget_left{dataset="ward"} 1'
            in running.token("sue", "steward").get("/metrics").content.decode()
        )


def test_a_plan_is_made_once(service: Service, ana: Caller) -> None:
    core = service.app.state.core
    first = ana.post("/v1/datasets/ward/plan/above", {**ASK, "epsilon": "0.125"}).json
    (cached,) = [outline for outline in core.previews._cache.values() if outline.plan.cost == Loss("0.125")]
    assert first == ana.post("/v1/datasets/ward/plan/above", {**ASK, "epsilon": "0.125"}).json
    assert {name: value for name, value in first.items() if name != "price"} == cached.plan.to_json()
