"""Rows of people in the service: registered over HTTP and on the page, paid for and promised by person."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from page_client import Browser, text, words
from served import Caller, Service, run_service, settings

from wallflower.privacy import Loss

PEOPLE, MOST = 40, 20
NOTICE = f"patient_no repeats, up to {MOST} rows: a row is not a person. Declare [person] or accept the unit row."
COLUMNS = {"pulse": {"low": 30, "high": 220, "scale": 30}, "age": {"low": 0, "high": 120, "scale": 20}}
SCHEMA = {"columns": COLUMNS, "clip": True}
ROLLUP = {"id": "patient_no", "rollup": {"pulse": "max", "age": "first"}, "order": "day"}
KEEP = {"id": "patient_no", "max_rows": 3}
COUNT = {"neighbours": 3, "radius": 0.5, "epsilon": "0.5", "force": True}
PERSON = "one person (all rows with the same patient_no"
FORM = {
    "name": "page",
    "source": "visits.csv",
    "c0-name": "patient_no",
    "c0-kind": "identifier",
    "c1-name": "day",
    "c1-kind": "leave",
    "c2-name": "pulse",
    "c2-kind": "number",
    "c2-low": "30",
    "c2-high": "220",
    "c3-name": "age",
    "c3-kind": "number",
    "c3-low": "0",
    "c3-high": "120",
    "person": "patient_no",
}


def write_visits(path: Path) -> None:
    """Write visits of 40 people: the first has 20 of them, the others fewer."""
    rows = [(who, visit) for who in range(PEOPLE) for visit in range(max(1, MOST - who))]
    lines = (f"P{who},{visit},{60 + (7 * who + 3 * visit) % 90},{20 + who}\n" for who, visit in rows)
    path.write_text("patient_no,day,pulse,age\n" + "".join(lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    write_visits(folder / "visits.csv")
    return folder


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Service]:
    with run_service(settings(folder, failures=10_000)) as running:
        yield running


@pytest.fixture(scope="module")
def sue(service: Service) -> Caller:
    return service.token("sue", "steward")


@pytest.fixture(scope="module")
def ana(service: Service) -> Caller:
    return service.token("ana")


def register(sue: Caller, service: Service, name: str, **more: Any) -> dict[str, Any]:
    """Register the visits, and let analysts ask."""
    made = sue.post("/v1/datasets", {"name": name, "source": "visits.csv", "schema": SCHEMA, **more})
    assert made.status == 201, made.content
    assert sue.post(f"/v1/datasets/{name}/access", {"analyst": "*"}).status == 201
    answer: dict[str, Any] = made.json
    return answer


@pytest.fixture(scope="module")
def kept(sue: Caller, service: Service) -> dict[str, Any]:
    made = register(sue, service, "kept", person=KEEP)
    service.app.state.core.ledger.grant("kept", Loss("100"), by="sue")
    return made


@pytest.fixture(scope="module")
def rolled(sue: Caller, service: Service, kept: dict[str, Any]) -> dict[str, Any]:
    return register(sue, service, "rolled", person=ROLLUP, account="kept")


def test_rows_that_are_kept_cost_their_number_and_the_person_is_promised(
    kept: dict[str, Any], ana: Caller, sue: Caller
) -> None:
    assert PERSON in kept["budget"]["protects"]
    assert (kept["budget"]["person"], kept["budget"]["units_per_person"]) == ("patient_no", 3)
    plan = ana.post("/v1/datasets/kept/plan/count", COUNT).json
    assert plan["cost"]["amount"] == "1/2"
    assert plan["booked"]["amount"] == plan["price"]["booked"]["amount"] == "3/2"
    assert plan["cost_text"] == plan["price"]["text"] == "ε = 0.5 per record, booked as ε = 1.5 per person"
    before = ana.get("/v1/datasets/kept/budget").json

    release = ana.post("/v1/datasets/kept/ask/count", COUNT).json
    promise = release["guarantee"]
    assert release["booked"]["amount"] == promise["booked"]["amount"] == "3/2"
    assert promise["text"].startswith(f"Differential privacy with ε = 1.5: with any {PERSON}")
    assert f"a factor of at most {math.ceil(math.exp(1.5) * 100) / 100:g}." in promise["text"]
    assert "it is ε = 0.5." in promise["text"]
    assert PERSON in release["protects"]
    after = ana.get("/v1/datasets/kept/budget").json
    assert Fraction(after["spent"]["epsilon"]) - Fraction(before["spent"]["epsilon"]) == Fraction(3, 2)
    assert PERSON in after["protects"]
    assert PERSON in sue.get("/v1/datasets/kept/budget").json["protects"]


def test_one_record_per_person_costs_what_is_stated(rolled: dict[str, Any], ana: Caller) -> None:
    assert rolled["rows"] == PEOPLE
    assert rolled["notices"] == []
    assert ana.get("/v1/datasets/rolled").json["person"] == ROLLUP
    plan = ana.post("/v1/datasets/rolled/plan/count", COUNT).json
    assert plan["booked"]["amount"] == "1/2"
    assert plan["cost_text"] == "ε = 0.5 per person"
    release = ana.post("/v1/datasets/rolled/ask/count", COUNT).json
    promise = release["guarantee"]["text"]
    assert promise.startswith(f"Differential privacy with ε = 0.5: with any {PERSON})")
    assert "one record" not in promise + release["protects"]
    assert release["facts"]["n"] == PEOPLE


def test_delta_is_booked_by_the_rule_of_groups(kept: dict[str, Any], ana: Caller) -> None:
    plan = ana.post("/v1/datasets/kept/plan/count", COUNT | {"delta": "1e-6"}).json
    booked = plan["booked"]
    expected = 1e-6 * (1 + math.exp(0.5) + math.exp(1.0))
    assert booked["amount"] == "3/2"
    numerator, _, denominator = booked["delta"].partition("/")
    assert int(numerator) / int(denominator) == pytest.approx(expected, rel=1e-9)


def test_a_refusal_names_the_person(rolled: dict[str, Any], ana: Caller) -> None:
    refused = ana.post("/v1/datasets/rolled/ask/count", COUNT | {"epsilon": "1000"})
    assert refused.status == 403
    assert PERSON in refused.json["detail"]


@pytest.mark.parametrize(
    ("person", "field"),
    [
        ({"id": "patient_no"}, "either `rollup`"),
        ({"id": "patient_no", "max_rows": 0}, "person.max_rows"),
        ({"id": "patient_no", "max_rows": 2, "order": "day"}, "person.order"),
        ({"id": "patient_no", "rollup": {"pulse": "best"}}, "person.rollup"),
        ({"id": "patient_no", "rollup": {"pulse": "max", "patient_no": "max"}}, "person.rollup"),
        ({"id": "patient_no", "rollup": {"visits": "count"}}, "person.rollup"),
        ({"id": "patient_no", "max_rows": 2, "missing_id": "guess"}, "person.missing_id"),
        ({"id": "nobody", "max_rows": 2}, "nobody"),
        ({"max_rows": 2}, "id"),
        ({"id": "patient_no", "max_rows": 2, "shape": "odd"}, "shape"),
    ],
)
def test_a_wrong_person_is_refused_by_the_name_of_its_field(sue: Caller, person: dict[str, Any], field: str) -> None:
    body = {"name": "wrong", "source": "visits.csv", "schema": SCHEMA, "person": person}
    refused = sue.post("/v1/datasets", body)
    assert refused.status == 422
    assert field in json.dumps(refused.json)
    assert sue.get("/v1/datasets/wrong").status == 404


def test_a_stream_has_no_rows_of_people(sue: Caller) -> None:
    refused = sue.post("/v1/datasets", {"name": "wrong", "schema": SCHEMA, "person": KEEP})
    assert refused.status == 422
    assert "person" in refused.json["detail"]


def test_a_schema_may_carry_the_person_and_must_agree_with_the_body(sue: Caller, kept: dict[str, Any]) -> None:
    schema = SCHEMA | {"person": ROLLUP, "account": "kept"}
    other = sue.post("/v1/datasets", {"name": "stated", "source": "visits.csv", "schema": schema, "person": KEEP})
    assert other.status == 422
    assert "person" in other.json["detail"]
    agreeing = {"schema": schema, "person": ROLLUP, "protects": {"rows": "people"}}
    made = sue.post("/v1/datasets", {"name": "stated", "source": "visits.csv", **agreeing})
    assert made.status == 201, made.content
    assert PERSON in made.json["budget"]["protects"]


def test_the_membership_of_a_person_can_be_protected_too(sue: Caller, kept: dict[str, Any]) -> None:
    body = {"name": "secret", "source": "visits.csv", "schema": SCHEMA | {"account": "kept"}, "person": ROLLUP}
    wrong = sue.post("/v1/datasets", body | {"protects": {"units_per_person": 4}})
    assert wrong.status == 422
    assert "protects" in wrong.json["detail"]
    made = sue.post("/v1/datasets", body | {"protects": {"unit": "membership"}})
    assert made.status == 201, made.content
    assert made.json["rows"] is None
    protects = made.json["budget"]["protects"]
    assert protects == "one person (all rows with the same patient_no), and whether they are there at all"


def test_only_the_steward_hears_that_an_identifier_repeats(sue: Caller, ana: Caller, service: Service) -> None:
    body = {"name": "bare", "source": "visits.csv", "schema": SCHEMA | {"account": "kept"}}
    made = sue.post("/v1/datasets", body)
    assert made.status == 201, made.content
    assert made.json["notices"] == [NOTICE]
    assert sue.post("/v1/datasets/bare/access", {"analyst": "*"}).status == 201
    for path in ("/v1/datasets/bare", "/v1/datasets", "/v1/datasets/bare/budget"):
        assert "repeats" not in ana.get(path).content.decode()
    page = Browser(service).sign_in(ana.token).get("/ui/datasets/bare")
    assert page.status == 200
    assert "repeats" not in words(page)


@pytest.fixture(scope="module")
def browser(service: Service, sue: Caller) -> Browser:
    return Browser(service).sign_in(sue.token)


def test_the_page_offers_an_identifier_and_says_that_it_repeats(browser: Browser) -> None:
    page = browser.post("/ui/register/draft", {"name": "page", "source": "visits.csv"})
    assert NOTICE in words(page)
    assert re.search(r'<select id="person" name="person">.*<option value="patient_no">', text(page))
    repeats = re.search(r'name="repeats" value="([^"]*)"', text(page))
    assert repeats is not None
    again = browser.post("/ui/register/draft", FORM | {"person": "", "repeats": f'{{"patient_no": {MOST}}}'})
    assert NOTICE in words(again)
    chosen = browser.post("/ui/register/draft", FORM | {"person-way": "rollup"})
    assert NOTICE not in words(chosen)
    assert 'name="c2-aggregate"' in text(chosen)
    assert 'name="c0-aggregate"' not in text(chosen)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "either `rollup`"),
        ({"person-way": "rollup"}, "person.rollup"),
        ({"person-way": "max_rows"}, "person.max_rows"),
        ({"person-way": "max_rows", "person-max-rows": "many"}, "person.max_rows"),
        ({"person-way": "rollup", "person-count": "visits"}, "person.rollup"),
        ({"person-way": "rollup", "c2-aggregate": "best"}, "person.rollup"),
        ({"person-way": "max_rows", "person-max-rows": "2", "person-missing": "guess"}, "person.missing_id"),
        ({"person": "nobody"}, "person.id"),
    ],
)
def test_the_page_refuses_a_wrong_person(browser: Browser, more: dict[str, str], message: str) -> None:
    refused = browser.post("/ui/register", FORM | more)
    assert refused.status == 422
    assert message in words(refused)


def test_the_page_registers_people_and_shows_what_will_be_booked(
    browser: Browser, service: Service, ana: Caller, sue: Caller, kept: dict[str, Any]
) -> None:
    rollup = {"person-way": "rollup", "c2-aggregate": "max", "person-count": "visits", "person-count-high": "50"}
    rehearsed = browser.post("/ui/register/rehearsal", FORM | rollup)
    assert rehearsed.status == 200
    assert "Rehearsal on synthetic records" in words(rehearsed)
    made = browser.post("/ui/register", FORM | rollup | {"account": "kept"})
    assert made.status == 303, words(made)
    facts = sue.get("/v1/datasets/page").json
    assert facts["rows"] == PEOPLE
    assert [column["name"] for column in facts["columns"]] == ["patient_no", "pulse", "visits"]
    assert PERSON in words(browser.get("/ui/datasets/page/budget"))
    assert "pulse (max), visits (count)" in words(browser.get("/ui/datasets/page"))

    few = {"person-way": "max_rows", "person-max-rows": "3", "account": "kept", "name": "few"}
    assert browser.post("/ui/register", FORM | few).status == 303
    assert sue.post("/v1/datasets/few/access", {"analyst": "*"}).status == 201
    visitor = Browser(service).sign_in(ana.token)
    asked = {"neighbours": "3", "radius": "0.5", "epsilon": "0.5", "force": "yes"}
    plan = visitor.post("/ui/datasets/few/plan/count", asked, x_fragment="yes")
    assert "ε = 0.5 per record, booked as ε = 1.5 per person" in words(plan)
    assert "becomes at most 81.8 % sure" in words(plan)  # 1 / (1 + e^-1.5), not of ε = 0.5
    payment = visitor.get(visitor.post("/ui/datasets/few/confirm/count", asked).headers["location"])
    assert "ε = 0.5 per record, booked as ε = 1.5 per person" in words(payment)
    assert "Spend ε = 1.5 and run" in words(payment)
    budget = visitor.get("/ui/datasets/few")
    assert "a cost of ε = 0.5 per record is booked as ε = 1.5 per person" in words(budget)


def test_readings_in_long_format_are_registered_as_a_stream(sue: Caller, folder: Path) -> None:
    lines = [f"M{meter},{hour},{1 + (meter + hour) % 3}" for hour in range(40) for meter in range(2)]
    (folder / "readings.csv").write_text("\n".join(["meter,hour,load", *lines]), encoding="utf-8")
    schema = {"columns": {"load": {"low": 0, "high": 10, "missing": 2}}}
    person = {"id": "meter", "time": "hour", "rollup": {"load": "mean"}}
    made = sue.post("/v1/datasets", {"name": "readings", "source": "readings.csv", "schema": schema, "person": person})
    assert made.status == 201, made.content
    assert (made.json["budget"]["rows"], made.json["budget"]["unit"]) == ("time", "person")
    assert [column["name"] for column in made.json["columns"]] == ["hour", "m0", "m1"]
