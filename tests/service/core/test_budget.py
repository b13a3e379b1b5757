"""One account for each data set, over HTTP and on the pages: limits, shares, units, and what stands in the way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from asks import EXPLAIN
from page_client import Browser, text, words
from served import TIMED, Caller, Service, run_service, settings

from wallflower.errors import BudgetExhausted, ParameterError, Untranslatable
from wallflower.ledger import Account
from wallflower.privacy import Loss, Neighbours
from wallflower.remote import connect, error_of
from wallflower.schema import Column, Schema
from wallflower.service.core.facade import Core
from wallflower.service.core.problems import problem_document
from wallflower.service.core.records import DATASETS
from wallflower.service.pages.budget_text import ADVICE, event_text
from wallflower.service.pages.budgets import PROTECTIONS
from wallflower.service.settings import Registration, Settings
from wallflower.units import UNITS_OF_ROWS, Protection

pytestmark = pytest.mark.slow  # together more than `make check` has room for

COUNT = {"neighbours": 3, "radius": 0.5, "epsilon": "0.25", "force": True}
WATCH = {"threshold": 2.0, "low": -5.0, "high": 5.0, "variance": 1.0, "epsilon": "0.25", "force": True}
GRANT = {"epsilon": "2", "reason": "study 12"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with run_service(settings(tmp_path)) as running:
        yield running


@pytest.fixture
def ana(service: Service) -> Caller:
    return service.token("ana")


@pytest.fixture
def sue(service: Service) -> Caller:
    return service.token("sue", "steward")


def grant(sue: Caller, name: str = "ward", **terms: Any) -> Any:
    return sue.post(f"/v1/datasets/{name}/budget/grants", {**GRANT, **terms})


def ask(caller: Caller, name: str = "ward", **more: Any) -> Any:
    return caller.post(f"/v1/datasets/{name}/ask/count", {**COUNT, **more})


# The account


def test_a_data_set_has_one_account_and_one_number_left(service: Service, ana: Caller) -> None:
    told = ana.get("/v1/datasets/ward").json
    assert (told["budget"]["account"], told["budget"]["starter"], told["left"]["exact"]) == ("ward", True, "ε=1")
    assert ask(ana).status == 200
    told = ana.get("/v1/datasets/ward/budget").json
    assert (told["dataset"], told["spent"]["epsilon"], told["left"]) == (
        "ward",
        "1/4",
        {"epsilon": "3/4", "delta": "0"},
    )
    assert Account.from_json(told) == service.app.state.core.ledger.account("ward")


def test_a_limit_is_set_in_all_and_may_be_lowered_below_what_is_spent(ana: Caller, sue: Caller) -> None:
    made = grant(sue, epsilon="0.5")
    assert (made.status, made.json["dataset"], made.json["budget"]["limit"]["epsilon"]) == (201, "ward", "1/2")
    assert [ask(ana).status for _ in range(3)] == [200, 200, 403]
    assert grant(sue, epsilon="1").json["budget"]["left"]["epsilon"] == "1/2"
    assert grant(sue, epsilon="0.25").json["budget"]["left"]["epsilon"] == "0"
    assert ask(ana, epsilon="0.01").json["part"] == "epsilon"


@pytest.mark.parametrize(
    "body",
    [
        {"epsilon": "2"},
        {"epsilon": "2", "reason": ""},
        {"epsilon": "2", "reason": " "},
        {"reason": "x"},
        {**GRANT, "epsilon": "10.5"},
        {**GRANT, "epsilon": None, "rho": "50"},
        {**GRANT, "accounting": "squares"},
        {**GRANT, "accounting": "either"},
        {**GRANT, "delta": "1e-6", "convert": "1e-5"},
        {**GRANT, "expires": "tomorrow"},
        {**GRANT, "expires": "2030-02-31"},
        {**GRANT, "pace": "-1"},
        {**GRANT, "protects": "record"},
    ],
)
def test_a_grant_that_is_not_careful_is_refused(service: Service, sue: Caller, body: dict[str, Any]) -> None:
    answer = sue.post("/v1/datasets/ward/budget/grants", body)
    assert (answer.status, answer.problem) == (422, "parameter")
    assert service.app.state.core.ledger.account("ward").starter


def test_a_large_limit_is_confirmed(sue: Caller) -> None:
    refused = grant(sue, epsilon="11")
    assert refused.json["detail"].startswith("confirm:")
    assert grant(sue, epsilon="11", confirm=True).status == 201
    assert grant(sue, epsilon="10").status == 201


def test_a_limit_with_delta_counts_what_is_kinder(ana: Caller, sue: Caller) -> None:
    made = grant(sue, epsilon="3", delta="1e-6").json["budget"]
    assert (made["accounting"], made["limit"]["delta"], made["limit"]["convert"]) == (
        "either",
        "1/2000000",
        "1/2000000",
    )
    price = ana.post("/v1/datasets/ward/plan/count", {**COUNT, "epsilon": "0.05"}).json["price"]
    assert (price["affords"], price["factor"], price["obstacle"]) == (140, "1", None)
    share = sue.post("/v1/datasets/ward/budget/quotas", {"analyst": "ana", "epsilon": "1"})
    assert (share.status, share.problem) == (422, "parameter")


def test_squares_may_be_counted(ana: Caller, sue: Caller) -> None:
    made = grant(sue, epsilon=None, rho="0.1").json["budget"]
    assert (made["accounting"], made["left"]) == ("concentrated", {"rho": "1/10"})
    assert ask(ana, epsilon=None, rho="0.04").status == 200
    left = ana.get("/v1/datasets/ward").json["left"]
    assert (left["kind"], left["exact"]) == ("zcdp", "ρ=3/50")
    assert ask(ana, epsilon=None, rho="0.07").json["part"] == "rho"


def test_a_pace_and_an_expiry_hold(ana: Caller, sue: Caller) -> None:
    grant(sue, pace="0.3")
    assert ask(ana).status == 200
    slow = ask(ana).json
    assert (slow["part"], "a year" in slow["why"]) == ("pace", True)
    today = datetime.now(UTC).date()
    grant(sue, expires=today.isoformat())
    assert ask(ana).status == 200
    grant(sue, expires=date(today.year - 1, 1, 1).isoformat())
    assert ask(ana).json["part"] == "expiry"


def test_shares_are_set_taken_back_and_named_in_refusals(service: Service, ana: Caller, sue: Caller) -> None:
    bo = service.token("bo")
    share = "/v1/datasets/ward/budget/quotas"
    assert sue.post(share, {"analyst": "bo", "epsilon": "0.8"}).json["budget"]["free"]["epsilon"] == "1/5"
    refused = ask(ana)
    assert (refused.json["part"], refused.json["why"]) == ("quota", "the rest is kept for other analysts")
    assert refused.json["left"]["exact"] == "ε=1/5"
    assert ask(bo, epsilon="0.5").status == 200
    assert ask(bo, epsilon="0.6").json["why"] == "epsilon is short"
    assert ask(bo, epsilon="0.4").json["why"] == "your own quota is short"
    assert sue.post(share, {"analyst": "bo", "epsilon": "0", "reason": "done"}).status == 201
    assert ask(ana).status == 200
    service.token("cy")
    assert sue.post(share, {"analyst": "cy", "epsilon": "5"}).problem == "budget-exhausted"


# Units


def test_a_unit_is_declared_before_the_first_question(service: Service, ana: Caller, sue: Caller) -> None:
    at = "/v1/datasets/ward/budget/declaration"
    made = sue.post(at, {"units_per_person": 2, "reason": "two visits each"}).json["budget"]
    assert (made["unit"], made["units_per_person"]) == ("record", 2)
    price = ana.post("/v1/datasets/ward/plan/count", COUNT).json["price"]
    assert (price["stated"]["amount"], price["booked"]["amount"], price["factor"], price["affords"]) == (
        "1/4",
        "1/2",
        "2",
        2,
    )
    told = ask(ana).json
    assert (told["booked"]["exact"], told["left"]["exact"], told["limit"]["exact"]) == ("ε=1/2", "ε=1/2", "ε=1")
    assert "up to 2 of these per person" in told["protects"]
    assert sue.post(at, {"units_per_person": 1}).problem == "parameter"


@pytest.mark.parametrize(
    "body", [{"unit": "entry"}, {"rows": "time", "unit": "window"}, {"window": 3}, {"rows": "x"}, {"times": 0}]
)
def test_a_unit_that_is_none_is_refused(sue: Caller, body: dict[str, Any]) -> None:
    assert sue.post("/v1/datasets/ward/budget/declaration", body).problem == "parameter"


def test_how_many_there_are_is_told_to_nobody_where_membership_is_protected(
    service: Service, ana: Caller, sue: Caller
) -> None:
    count = f"{service.app.state.core.catalog.table('ward').n:,}"
    page, at = (
        Browser(service).sign_in(ana.token),
        "/ui/datasets/ward/plan/count?neighbours=3&radius=0.5&epsilon=0.25",
    )
    told = re.compile(rf"(?<![\d.,-]){count} records".encode())
    assert told.search(page.get(at).content)  # a plan that is kept from before
    assert ana.get("/v1/datasets/ward").json["rows"] == int(count.replace(",", ""))
    sue.post("/v1/datasets/ward/budget/declaration", {"unit": "membership"})
    for path in ("/ui/", "/ui/datasets/ward", at, at.replace("plan", "confirm")):
        assert page.get(path).status == 200
        assert not told.search(page.last.content), path
    sample = page.post(at.partition("?")[0], {"neighbours": "3", "radius": "0.5", "epsilon": "0.25", "example": "yes"})
    assert not told.search(sample.content)
    assert ana.get("/v1/datasets/ward").json["rows"] is None
    assert [one["rows"] for one in ana.get("/v1/datasets").json["datasets"] if one["name"] == "ward"] == [None]
    planned = ana.post("/v1/datasets/ward/plan/count", COUNT).json
    assert planned["facts"]["n"] != int(count.replace(",", ""))
    assert repr(connect(service.url, ana.token).open("ward")).startswith("<ward: records, ")


def test_what_no_theorem_translates_is_refused_with_what_to_do(service: Service, ana: Caller, sue: Caller) -> None:
    sue.post("/v1/datasets/ward/budget/declaration", {"unit": "membership"})
    answer = ask(ana)
    assert (answer.status, answer.problem, answer.json["part"]) == (403, "unit-refused", "unit")
    assert "number of records is secret" in answer.json["why"]
    planned = ana.post("/v1/datasets/ward/plan/count", COUNT).json["price"]
    assert (planned["booked"], planned["affords"], planned["obstacle"]["type"]) == (
        None,
        0,
        "urn:wallflower:problem:unit-refused",
    )
    page = Browser(service).sign_in(ana.token).get("/ui/datasets/ward/plan/count?neighbours=3&radius=0.5&epsilon=0.25")
    assert b"This query has no proven cost under this data set's unit of protection" in page.content
    assert b"certainty" not in page.content  # of somebody whom nothing was said of
    with pytest.raises(Untranslatable) as refusal:
        connect(service.url, ana.token).open("ward").count(neighbours=3, radius=0.5, epsilon="0.25")
    assert str(refusal.value) == answer.json["detail"]


def test_columns_count_where_a_record_is_protected(service: Service, ana: Caller) -> None:
    price = ana.post("/v1/datasets/ward/plan/watch", WATCH).json["price"]
    assert (price["factor"], price["booked"]["exact"], price["affords"]) == ("2", "ε=1/2", 2)
    one = ana.post("/v1/datasets/ward/plan/watch", {**WATCH, "columns": ["a"]}).json["price"]
    assert (one["factor"], one["affords"]) == ("1", 4)
    beds = ana.post("/v1/datasets/beds/plan/watch", WATCH).json["price"]
    assert (beds["factor"], beds["protects"]) == ("1", TIMED.text)


def test_settings_say_it_once_and_the_ledger_keeps_it(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        declared = running.app.state.core.ledger.history("beds", event="account")
        assert [entry.details["by"] for entry in declared] == ["settings"]
        sue = running.token("sue", "steward")
        answer = sue.post("/v1/datasets/beds/budget/declaration", {"rows": "time", "unit": "person"})
        assert (answer.status, answer.problem) == (422, "parameter")
        assert sue.post("/v1/datasets/beds/budget/declaration", {"apart": ["ward"]}).status == 201
    with run_service(settings(tmp_path)) as running:
        assert len(running.app.state.core.ledger.history("beds", event="account")) == 2


def test_data_sets_about_the_same_people_share_an_account(tmp_path: Path) -> None:
    base = settings(tmp_path)
    ward = base.datasets[0]
    shared = tuple(
        replace(ward, name=name, schema=replace(ward.schema, account="patients")) for name in ("ward", "again")
    )
    with run_service(replace(base, datasets=shared)) as running:
        ana, sue = running.token("ana"), running.token("sue", "steward")
        assert (ask(ana).status, ask(ana, "again", epsilon="0.5").status) == (200, 200)
        assert ask(ana, epsilon="0.5").json["left"]["exact"] == "ε=1/4"
        assert set(ana.get("/v1/datasets/again/budget").json["members"]) >= {"again", "ward"}
        assert grant(sue, "again").json["budget"]["account"] == "patients"
        assert ana.get("/v1/datasets/ward").json["left"]["exact"] == "ε=5/4"
        page = Browser(running).sign_in(ana.token).get("/ui/datasets/ward")
        assert "It spends from the account patients, shared with again." in words(page)


def test_a_data_set_is_registered_with_its_account(service: Service, sue: Caller) -> None:
    body = {"name": "pulse", "schema": {"columns": ["x"]}, "protects": {"rows": "time", "unit": "window", "window": 24}}
    made = sue.post("/v1/datasets", {**body, "account": "ward"}).json
    assert (made["budget"]["account"], made["budget"]["unit"], made["budget"]["window"]) == ("ward", "window", 24)
    for wrong in ({"protects": {"unit": "entry"}}, {"account": "no account"}, {"protects": {"rows": "time", "huh": 1}}):
        assert sue.post("/v1/datasets", {**body, "name": "other", **wrong}).problem == "parameter"
    twice = {"columns": ["x"], "protects": {"rows": "time", "unit": "entry"}}
    assert sue.post("/v1/datasets", {**body, "name": "other", "schema": twice}).problem == "parameter"
    assert sue.get("/v1/datasets/other").status == 404


def test_settings_and_schema_must_agree(tmp_path: Path) -> None:
    (tmp_path / "beds.toml").write_text('account = "ward"\n[protects]\nrows = "time"\nunit = "entry"\n[columns.t]\n')
    head = '[[datasets]]\nname = "beds"\nschema = "beds.toml"\n'

    def read(more: str) -> Protection | None:
        (tmp_path / "service.toml").write_text(head + more)
        return Settings.read(tmp_path / "service.toml").datasets[0].schema.protects

    assert read("") == read('account = "ward"\nprotects = { rows = "time", unit = "entry" }\n') == TIMED
    for wrong in ('account = "x"', 'protects = { rows = "time", unit = "person" }', "protects = 3", "account = 3"):
        with pytest.raises(ParameterError):
            read(wrong)
    both = '[[datasets]]\nname = "BEDS"\nschema = "beds.toml"\n'
    with pytest.raises(ParameterError, match="twice"):
        read(both)


def test_a_name_that_no_budget_can_hang_on_is_left_out(service: Service, ana: Caller, tmp_path: Path) -> None:
    odd = replace(service.app.state.core.settings.datasets[1], name="病棟")
    records = service.app.state.core.records
    records.add(DATASETS, {"id": odd.name, "body": json.dumps(odd.to_json()), "by": "sue"})
    assert [one["name"] for one in ana.get("/v1/datasets").json["datasets"]] == ["beds", "ward"]
    with pytest.raises(ParameterError, match="cannot be the name"):
        Core(settings(tmp_path, datasets=(odd,))).load()


# Output-constrained answers, and records that are named


def test_output_constrained_answers_are_allowed_apart_and_end_the_bound(service: Service, sue: Caller) -> None:
    asked = {**EXPLAIN, "mode": "ocdp"}
    body = {"epsilon": "1", "reason": "agreed"}
    refused = sue.post("/v1/datasets/ward/ask/explain", asked)
    assert (refused.status, refused.json["part"]) == (403, "constrained")
    assert sue.post("/v1/datasets/ward/budget/constrained", {"epsilon": "1"}).problem == "parameter"
    assert sue.post("/v1/datasets/ward/budget/constrained", body).json["budget"]["constrained"]["allowed"] == "1"
    steward = Browser(service).sign_in(sue.token)
    assert "the first of them ends the guarantee" in words(steward.get("/ui/datasets/ward"))
    made = sue.post("/v1/datasets/ward/ask/explain", asked)
    assert made.status == 200, made.content
    told = sue.get("/v1/datasets/ward/budget").json
    assert (told["constrained"]["since"], told["spent"]["epsilon"]) == (made.json["ledger_id"], "0")
    assert f"guarantee ended with entry {made.json['ledger_id']} of" in words(steward.get("/ui/datasets/ward"))
    assert "outside the sum" in words(steward.get("/ui/ledger"))


def test_only_open_records_are_named_to_an_analyst(tmp_path: Path) -> None:
    base = settings(tmp_path)
    opened = replace(base.datasets[0], records=("3",))
    with run_service(replace(base, datasets=(opened,))) as running:
        ana, sue = running.token("ana"), running.token("sue", "steward")
        grant(sue, epsilon="9")
        for record in ("3", "4"):
            assert sue.post("/v1/datasets/ward/ask/explain", {**EXPLAIN, "record": record}).status == 200
        assert sue.get("/v1/datasets/ward/budget").json["names"] == ["3", "4"]
        assert ana.get("/v1/datasets/ward/budget").json["names"] == ["3", "(others)"]
        page = Browser(running).sign_in(ana.token).get("/ui/datasets/ward")
        assert "does not protect the records that queries have named: 3, others." in words(page)


def test_columns_that_were_taken_for_public_are_named_to_everybody(tmp_path: Path) -> None:
    lines = [f"{ward},{place / 60}" for place, ward in enumerate("AB" * 30)]
    (tmp_path / "people.csv").write_text("\n".join(["ward,x", *lines]) + "\n")
    columns = (Column("ward", categories=("A", "B"), public=True), Column("x", low=0, high=1))
    people = Registration(
        analysts=("*",), name="people", source=str(tmp_path / "people.csv"), schema=Schema(columns=columns)
    )
    with run_service(replace(settings(tmp_path), datasets=(people,))) as running:
        ana = running.token("ana")
        assert ana.get("/v1/datasets/people/budget").json["public"] == {}
        asked = {**COUNT, "by": ["ward"], "public_groups": True}
        price = ana.post("/v1/datasets/people/plan/count", asked).json["price"]
        assert "a change of its ward" in price["protects"]
        made = ask(ana, "people", by=["ward"], public_groups=True).json
        assert made["guarantee"]["public"] == ["ward"]
        assert "a change of its ward" in made["protects"]
        budget = ana.get("/v1/datasets/people/budget").json
        assert budget["public"] == {"people": ["ward"]}
        assert "a change of its ward" in budget["protects"]
        page = Browser(running).sign_in(ana.token).get("/ui/datasets/people")
        assert "does not hide changes of columns that the schema calls public: ward." in words(page)


# Problems on their way


def test_refusals_come_back_whole() -> None:
    loss = Loss("0.5", neighbours=Neighbours.ENTRY)
    told = BudgetExhausted(
        "ward", asked=loss, left=Loss("0.1"), part="quota", why="kept", booked=Loss("1"), remedy="Wait."
    )
    back = error_of(problem_document(told))
    assert isinstance(back, BudgetExhausted)
    assert (str(back), back.part, back.why, back.booked) == (str(told), "quota", "kept", Loss("1"))
    unit = Untranslatable("no factor", dataset="ward", remedy="Ask otherwise.")
    assert str(error_of(problem_document(unit))) == str(unit)


# Races


def test_limits_shares_and_questions_at_once_never_overspend(service: Service, sue: Caller) -> None:
    callers = [service.token(name) for name in ("ana", "bo", "cy", "dee")]

    def work(turn: int) -> set[int]:
        if turn % 4 == 3:
            limit = ("1", "0.5", "2")[turn // 4 % 3]
            sue.post("/v1/datasets/ward/budget/quotas", {"analyst": "ana", "epsilon": "0.125"})
            return {grant(sue, epsilon=limit).status}
        return {ask(callers[turn % 4], epsilon="0.125").status}

    with ThreadPoolExecutor(8) as pool:
        found = set().union(*pool.map(work, range(48)))
    assert found <= {200, 201, 403}
    account = service.app.state.core.ledger.account("ward")
    assert account.spent.epsilon <= 2
    assert sum(spent.epsilon for spent in account.spenders.values()) == account.spent.epsilon


# Pages


@pytest.fixture
def steward(service: Service, sue: Caller) -> Browser:
    return Browser(service).sign_in(sue.token)


@pytest.fixture
def analyst(service: Service, ana: Caller) -> Browser:
    return Browser(service).sign_in(ana.token)


BUDGET = "/ui/datasets/ward/budget"


def test_the_pages_say_where_the_budget_stands(service: Service, ana: Caller, sue: Caller, analyst: Browser) -> None:
    for path in ("/ui/", "/ui/datasets/ward"):
        assert "ε = 1 is left for you." in words(analyst.get(path)).replace("</strong>", "")
        assert "default budget" in words(analyst.last)
        assert "It protects one record, whatever is in it" in words(analyst.last)
    ask(ana)
    grant(sue, pace="1", expires="2999-12-31")
    page = words(analyst.get("/ui/datasets/ward"))
    assert "Spent in all: ε = 0.25 of ε = 2" in page
    assert "At most ε = 1 may be spent a year; ε = 0.25 is spent this year." in page
    assert "It ends on 2999-12-31." in page
    grant(sue, expires="2001-01-01")
    assert "It expired on 2001-01-01: no query is answered." in words(analyst.get("/ui/datasets/ward"))
    grant(sue, epsilon="3", delta="1e-6")
    assert "basic or zCDP composition, whichever allows more" in words(analyst.get("/ui/datasets/ward"))
    grant(sue, epsilon=None, rho="0.1")
    assert "ρ = 0.1 (" in words(analyst.get("/ui/datasets/ward"))


def test_a_steward_sets_a_limit_and_is_asked_twice_above_ten(service: Service, steward: Browser) -> None:
    for wrong in ({}, {"reason": ""}, {"epsilon": "11"}, {"accounting": "x"}, {"expires": "x"}, {"pace": "x"}):
        form = {} if not wrong else {**GRANT, **wrong}
        answer = steward.post(f"{BUDGET}/grants", form)
        assert answer.status == 422, wrong
        assert f'value="{form.get("reason", "")}"' in text(answer)
    assert service.app.state.core.ledger.account("ward").starter
    done = steward.post(f"{BUDGET}/grants", {**GRANT, "epsilon": "11", "confirm": "yes"})
    assert (done.status, done.headers["location"]) == (303, f"{BUDGET}?done=grants")
    assert "The budget is set." in words(steward.get(done.headers["location"]))
    more = {"accounting": "concentrated", "delta": "1e-6", "pace": "1", "expires": "2999-12-31"}
    assert steward.post(f"{BUDGET}/grants", {**GRANT, **more}).status == 303
    account = service.app.state.core.ledger.account("ward")
    assert (account.limit.accounting, str(account.pace), account.expires) == ("concentrated", "1", "2999-12-31")


def test_a_steward_sees_who_spent_what_and_takes_a_share_back(service: Service, ana: Caller, steward: Browser) -> None:
    ask(ana)
    service.token("bo")
    assert steward.post(f"{BUDGET}/quotas", {"analyst": "bo", "epsilon": "0.5"}).status == 303
    page = words(steward.get(BUDGET))
    assert '<th scope="row">ana</th><td>ε = 0.25</td><td>none</td>' in page
    assert '<th scope="row">bo</th><td>ε = 0</td><td>ε = 0.5</td><td>ε = 0.5</td>' in page
    assert steward.post(f"{BUDGET}/quotas", {"analyst": "bo", "epsilon": "0"}).status == 303
    assert "bo</th>" not in words(steward.get(BUDGET))
    for wrong in ({"analyst": "", "epsilon": "1"}, {"analyst": "bo"}, {"analyst": "bo", "rho": "1"}):
        assert steward.post(f"{BUDGET}/quotas", wrong).status == 422
    assert steward.post(f"{BUDGET}/quotas", {"analyst": "bo", "epsilon": "9"}).status == 403


def test_a_steward_declares_the_unit_while_nothing_was_asked(service: Service, ana: Caller, steward: Browser) -> None:
    assert {tuple(value.split()) for value, _ in PROTECTIONS} == {
        (rows, unit) for rows, units in UNITS_OF_ROWS.items() for unit in units
    }
    for wrong in ({"protects": "x"}, {"protects": "time window"}, {"protects": "people record", "window": "x"}):
        assert steward.post(f"{BUDGET}/declaration", wrong).status == 422
    form = {"protects": "time window", "window": "24", "units_per_person": "2", "times": "", "account": "patients"}
    assert steward.post(f"{BUDGET}/declaration", form).status == 303
    account = service.app.state.core.ledger.account("ward")
    expected = Protection(rows="time", unit="window", window=24, units_per_person=2)
    assert (account.name, account.members["ward"]) == ("patients", expected)
    assert "budget/declaration" in text(steward.get(BUDGET))
    service.app.state.core.ledger.grant("ward", Loss("9"), by="sue", reason="much")
    ask(ana, epsilon="0.01")
    assert "budget/declaration" not in text(steward.get(BUDGET))
    assert "This cannot be changed: queries were charged in this unit." in words(steward.last)
    assert "the settings of the service or the schema declare it" in words(steward.get("/ui/datasets/beds/budget"))


def test_a_steward_allows_output_constrained_answers(service: Service, steward: Browser) -> None:
    for wrong in ({"epsilon": "1"}, {"reason": "x"}, {"epsilon": "x", "reason": "x"}):
        assert steward.post(f"{BUDGET}/constrained", wrong).status == 422
    assert steward.post(f"{BUDGET}/constrained", {"epsilon": "1", "reason": "agreed"}).status == 303
    assert service.app.state.core.ledger.account("ward").fence.allowed == 1


def test_the_planner_tells_the_price_and_why(analyst: Browser) -> None:
    form = {name: str(value) for name, value in WATCH.items()}
    at = "/ui/datasets/ward/plan/watch"
    plan = words(analyst.post(at, {**form, "columns": "a, b"}, x_fragment="1"))
    assert "cost of one answer here</dt><dd>ε = 0.5</dd>" in plan
    assert "for which the cost counts 2 times" in plan
    assert "more queries like this within your budget</dt><dd>2</dd>" in plan
    plain = words(analyst.post(at, {**form, "columns": "a"}, x_fragment="1"))
    assert "cost of one answer</dt><dd>ε = 0.25</dd>" in plain
    assert "the cost counts" not in plain
    assert 'name="columns" value="a"' in text(analyst.get(at))


@pytest.mark.parametrize(
    ("change", "form", "why"),
    [
        (None, {"epsilon": "2"}, "epsilon is short"),
        (("grants", GRANT), {"epsilon": "0.1", "delta": "1e-9"}, "delta is short"),
        (("quotas", {"analyst": "bo", "epsilon": "0.9"}), {"epsilon": "0.5"}, "the rest is kept for other analysts"),
        (("grants", {**GRANT, "pace": "0.1"}), {"epsilon": "0.5"}, "a year"),
        (("grants", {**GRANT, "expires": "2001-01-01"}), {"epsilon": "0.1"}, "expired on 2001-01-01"),
        (("declaration", {"protects": "people membership"}), {"epsilon": "0.1"}, "number of records is secret"),
    ],
)
def test_a_refusal_names_the_obstacle_and_what_to_do(
    service: Service, steward: Browser, analyst: Browser, change: Any, form: dict[str, str], why: str
) -> None:
    service.token("bo")  # a share is only for a name that somebody has
    if change is not None:
        assert steward.post(f"{BUDGET}/{change[0]}", change[1]).status == 303
    asked = {"neighbours": "3", "radius": "0.5", **form}
    planned = words(analyst.post("/ui/datasets/ward/plan/count", asked, x_fragment="1"))
    assert why in planned
    refused = analyst.post("/ui/datasets/ward/ask/count", asked)
    assert refused.status == 403
    assert "Reason for ana:" in words(refused)
    assert why in words(refused)
    assert any(advice in words(refused) for advice in ADVICE.values())
    assert "Nothing was charged" in words(refused)
    assert "budget of ward" in words(steward.post("/ui/datasets/ward/ask/count", asked))


def test_the_ledger_page_says_what_happened(service: Service, ana: Caller, sue: Caller, steward: Browser) -> None:
    sue.post("/v1/datasets/ward/budget/declaration", {"units_per_person": 2, "apart": ["beds"], "reason": "visits"})
    grant(sue, pace="1", expires="2999-12-31")
    service.token("bo")
    for epsilon in ("0.5", "0"):
        sue.post("/v1/datasets/ward/budget/quotas", {"analyst": "bo", "epsilon": epsilon})
    for epsilon in ("1", "0"):
        sue.post("/v1/datasets/ward/budget/constrained", {"epsilon": epsilon, "reason": "tried"})
    ask(ana)
    page = words(steward.get("/ui/ledger"))
    for said in (
        "with up to 2 of these per person, on the account ward; beds are about other people (visits)",
        "Budget set: ε = 2 in all, basic composition: costs add up, at most ε = 1 a year, until 2999-12-31 (study 12)",
        "Quota set for bo",
        "Quota of bo removed",
        "Output-constrained answers allowed, up to ε = 1 in all (tried)",
        "Output-constrained answers disallowed (tried)",
        "Charge: outlier-count/1",
        '<td class="number">ε = 0.25</td><td class="number">ε = 0.5</td>',
    ):
        assert said in page, said


def test_an_entry_that_cannot_be_read_is_said_to_be_so(service: Service) -> None:
    entry = service.app.state.core.entries(event="account")[0]
    assert event_text(replace(entry, body="{}")) == "account, which cannot be read"


def test_the_release_page_has_the_price_in_words(ana: Caller, analyst: Browser) -> None:
    made = ask(ana).json
    page = words(analyst.get(f"/ui/releases/{made['ledger_id']}"))
    assert "It cost ε = 0.25. ε = 0.75 is left for ana. The budget of all analysts together is ε = 1." in page
    assert "is undecided (50 %) about yours, becomes at most 56.3 % sure" in page
    assert "<td>one record, whatever is in it" in page
