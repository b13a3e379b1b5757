"""Forms made from the schema: own units, listed records, ticked groups, faults beside their fields, one payment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from page_client import Browser, Tags, text, words
from served import Service, run_service, settings

from wallflower.errors import ParameterError
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.explain import Explain
from wallflower.queries.watch import Watch
from wallflower.schema import Column, Schema
from wallflower.service.pages import fields
from wallflower.service.pages.fields import EmptyFields, FieldFaults
from wallflower.service.pages.planner import Samples
from wallflower.service.pages.titles import title_of
from wallflower.service.settings import Registration

WARM = Column("t", low=34.5, high=39.5, center=37, scale=0.5, measure="°C")
STAFF = Schema(
    columns=(
        Column("id", identifier=True),
        Column("pay", low=0, high=100),
        Column("age", low=0, high=120),
        Column("sex", categories=("F", "M, other")),
        Column("years", low=0, high=50, edges=(5, 20)),
    ),
    rows=40,
)
EXPLAIN = {"record": "id=n3", "metric": "pay", "context": "sex, years", "epsilon": "1"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("planner")
    rows = [f"n{at},{at},{20 + at},{('F', chr(34) + 'M, other' + chr(34))[at % 2]},{at % 30}" for at in range(40)]
    (folder / "staff.csv").write_text("\n".join(["id,pay,age,sex,years", *rows]) + "\n")
    staff = Registration(
        analysts=("*",), name="staff", source=str(folder / "staff.csv"), schema=STAFF, records=("id=n3", "id=n7")
    )
    beds = Registration(analysts=("*",), name="beds", source=None, schema=Schema(columns=(WARM,)))
    with run_service(settings(folder, datasets=(staff, beds))) as running:
        yield running


@pytest.fixture(scope="module")
def ana(service: Service) -> Browser:
    return Browser(service).sign_in(service.token("ana").token)


def test_numbers_are_typed_in_the_units_of_the_column() -> None:
    schema = Schema(columns=(WARM,))
    form = {"threshold-own": "2", "low-own": "35", "high-own": "39.5", "variance-own": "0.25", "centre-own": "37.5"}
    asked = fields.read_form(Watch, form | {"epsilon": "1"}, schema=schema)
    assert (asked.threshold, asked.low, asked.high, asked.variance, asked.centre) == (4, -4, 5, 1, 1)  # type: ignore[attr-defined]
    shown = {entry.name: entry for entry in fields.entries(Watch, {"threshold": "4", "low": "-4"}, schema)}
    assert (shown["threshold-own"].value, shown["low-own"].value) == ("2", "35")
    assert (shown["low-own"].unit, shown["low-own"].aside) == ("°C", "-4 on the scale of the query")
    assert shown["variance-own"].unit == "(°C)²"
    two = Schema(columns=(WARM, Column("pulse", low=40, high=200, center=120, scale=16)))
    with pytest.raises(FieldFaults) as refused:
        fields.read_form(Watch, form | {"epsilon": "1"}, schema=two)
    assert "do not share one scale" in refused.value.fields["low"]
    assert fields.read_form(Watch, form | {"epsilon": "1", "columns": "t"}, schema=two).low == -4  # type: ignore[attr-defined]


def test_a_record_is_chosen_and_groups_are_ticked() -> None:
    asked = fields.read_form(Explain, EXPLAIN, schema=STAFF)
    assert isinstance(asked, Explain)
    assert (asked.record, asked.identifier, asked.context) == ("n3", "id", ("sex", "years"))
    assert asked.domain == Schema(columns=(STAFF.columns or ())[3:5] + (STAFF.columns or ())[1:2], rows=40, clip=True)
    cut = fields.read_form(Explain, EXPLAIN | {"context": "", "domain": "age: 30, 60"}, schema=STAFF)
    assert (cut.context, cut.sizes) == (("age",), (3,))  # type: ignore[attr-defined]
    ticked = {"mode": "ocdp", "utility": "overlap", "near": 'sex=F, "sex=M, other", years=from 20'}
    assert fields.read_form(Explain, EXPLAIN | ticked, schema=STAFF).near == "11001"  # type: ignore[attr-defined]
    shown = {
        entry.name: entry for entry in fields.entries(Explain, EXPLAIN, fields.Table(schema=STAFF, records=("id=n3",)))
    }
    assert [choice.value for choice in shown["record"].choices if choice.chosen] == ["id=n3"]
    assert shown["near"].control == "ticks"
    assert [choice.text for choice in shown["context"].choices] == [
        "sex: F, M, other",
        "years: below 5, 5 to 20, from 20",
    ]
    for wrong in ("salary: 3", "age 3", "age: 9, 3", "age: x"):
        with pytest.raises(FieldFaults):
            fields.read_form(Explain, EXPLAIN | {"domain": wrong}, schema=STAFF)
    with pytest.raises(FieldFaults, match="not in a column of the context"):
        fields.read_form(Explain, EXPLAIN | ticked | {"context": "years"}, schema=STAFF)


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"neighbours": "x"}, "neighbours", "'x' is not a whole number. Write one, such as 5."),
        ({"radius": "wide"}, "radius", "'wide' is not a number. Write one, such as 1.5."),
        ({"radius": "-1"}, "radius", ""),
        ({"mechanism": "magic"}, "mechanism", "is not valid; choose one of extension, global, smooth."),
        ({"columns": "salary"}, "columns", "salary"),
        ({"epsilon": "a lot"}, "epsilon", ""),
        ({"epsilon": ""}, "epsilon", "no privacy loss is stated"),
        ({"share": "2%"}, "radius", ""),
    ],
)
def test_a_fault_stands_beside_its_field_and_nothing_is_lost(
    ana: Browser, wrong: dict[str, str], field: str, said: str
) -> None:
    given = {"neighbours": "3", "radius": "0.5", "epsilon": "0.01", "mechanism": "extension"} | wrong
    answer = ana.post("/ui/datasets/staff/confirm/count", given)
    assert answer.status == 422, text(answer)
    tags = Tags(text(answer)).found
    invalid = [tag for _, tag in tags if tag.get("aria-invalid") == "true"]
    assert [one["id"] for one in invalid] == [f"f-{field}"]
    assert f"e-{field}" in str(invalid[0]["aria-describedby"]).split()
    beside = re.search(rf'id="e-{field}" data-fault>([^<]+)<', text(answer))
    assert beside
    assert said in words(answer)
    assert "pydantic" not in words(answer)
    kept = {str(tag["name"]): tag.get("value") for name, tag in tags if name == "input" and tag.get("type") is None}
    assert all(kept[name] == value for name, value in given.items() if name in kept and name != "proof")
    fragment = ana.post("/ui/datasets/staff/plan/count", given, x_fragment="1")
    assert f'data-wrong="{field}"' in text(fragment)


def test_what_is_empty_is_no_fault_before_the_form_is_sent(ana: Browser) -> None:
    with pytest.raises(EmptyFields):
        fields.read_form(Count, {})
    page = ana.get("/ui/datasets/staff/plan/explain")
    assert "required:" in words(page)
    assert "aria-invalid" not in text(page)
    assert "aria-invalid" in text(ana.post("/ui/datasets/staff/confirm/explain", {"epsilon": "1"}))


def test_a_link_brings_the_form_and_its_plan(ana: Browser) -> None:
    given = {
        "neighbours": "3",
        "radius": "0.25",
        "columns": "pay, age",
        "epsilon": "0.7",
        "nonce": "n",
        "force": "yes",
    }
    place = ana.post("/ui/datasets/staff/plan/count", given).headers["location"]
    sent = {name: value[0] for name, value in parse_qs(urlsplit(place).query).items()}
    assert sent == {name: value for name, value in given.items() if name != "nonce"}
    page = ana.get(place)
    tags = Tags(text(page)).found
    ticked = [tag["value"] for _, tag in tags if tag.get("name") == "columns" and "checked" in tag]
    assert ticked == ["pay", "age"]
    assert 'name="radius" value="0.25"' in text(page)
    assert "ε = 0.7" in words(page)
    again = ana.get(place.replace("columns=pay%2C+age", "columns=pay&columns=age"))  # as a browser sends boxes
    assert [
        tag["value"] for _, tag in Tags(text(again)).found if tag.get("name") == "columns" and "checked" in tag
    ] == ticked


def test_an_analyst_chooses_among_open_records_and_a_steward_names_any(service: Service, ana: Browser) -> None:
    page = text(ana.get("/ui/datasets/staff/plan/explain"))
    assert re.findall(r'<option value="(id=[^"]+)"', page) == ["id=n3", "id=n7"]
    sue = Browser(service).sign_in(service.token("sue", "steward").token)
    assert '<input id="f-record"' in text(sue.get("/ui/datasets/staff/plan/explain"))


def test_before_paying_the_account_and_the_rest_are_shown(service: Service, ana: Browser) -> None:
    core = service.app.state.core
    form = {"neighbours": "3", "radius": "9", "epsilon": "0.25", "force": "yes", "nonce": "abc"}
    before = len(core.entries(event="charge"))
    place = ana.post("/ui/datasets/staff/confirm/count", form).headers["location"]
    page = ana.get(place)
    assert page.status == 200
    for said in (
        "staff",
        "ε = 0.25",
        "left for you afterwards",
        "ε = 0.75",
        "is undecided (50 %) about yours, becomes at most 56.3 %",
    ):
        assert said in words(page), said
    assert len(core.entries(event="charge")) == before  # looking costs nothing
    paid = dict(re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', text(page)))
    assert paid["nonce"] == "abc"
    answers = [ana.post("/ui/datasets/staff/ask/count", paid | {"force": "yes"}, proof=paid["proof"]) for _ in range(2)]
    ana.get(place)  # Back, and once more
    answers.append(ana.post("/ui/datasets/staff/ask/count", paid | {"force": "yes"}, proof=paid["proof"]))
    assert len({answer.headers["location"] for answer in answers}) == 1
    assert len(core.entries(event="charge")) == before + 1


def test_slider_and_chart_have_one_range_and_one_set_of_marks(ana: Browser) -> None:
    plan = text(ana.get("/ui/datasets/staff/plan/count?neighbours=3&radius=9&epsilon=0.5"))
    state = next(tag for _, tag in Tags(plan).found if "data-state" in tag)
    slider = next(tag for _, tag in Tags(plan).found if tag.get("id") == "slider")
    assert (slider["min"], slider["max"]) == (state["data-low"], state["data-high"])
    ticks = [float(found) for found in re.findall(r'y="264.0" text-anchor="middle">([^<]+)<', plan)]
    assert (min(ticks), max(ticks)) == (float(str(slider["min"])), float(str(slider["max"])))
    marks = re.findall(r'data-mark="([^"]+)">([^<]+)<', plan)
    assert "all that is left" in [said for _, said in marks]
    for amount, said in marks:
        assert f"{said}, ε = {float(amount):.3g}" in plan
        if float(str(slider["min"])) <= float(amount) <= float(str(slider["max"])):
            assert f">{said}</text>" in plan


def test_a_quote_that_is_never_closed_is_a_fault_of_its_field() -> None:
    with pytest.raises(ParameterError):
        fields.read_form(Count, {"neighbours": "3", "radius": "1", "columns": '"a', "epsilon": "1"}, schema=STAFF)


def test_an_answer_is_made_up_from_public_facts_and_says_so(service: Service, ana: Browser) -> None:
    core, form = service.app.state.core, {"neighbours": "3", "radius": "9", "epsilon": "5", "example": "yes"}
    before = len(core.entries(event="charge"))
    plan = words(ana.post("/ui/datasets/staff/plan/count", form, x_fragment="1"))
    assert "Example answer (synthetic data):" in plan
    assert re.search(r"of 40 records are outliers", plan)
    assert "The example says nothing about staff." in plan
    assert len(core.entries(event="charge")) == before
    first = ana.post("/ui/datasets/staff/plan/count", {**form, "example": ""}, x_fragment="1")
    assert 'data-more="example"' not in text(first)
    offered = {name: value for name, value in form.items() if name != "example"}
    assert 'data-more="example"' in text(ana.post("/ui/datasets/staff/plan/count", offered, x_fragment="1"))
    named = {**EXPLAIN, "example": "yes"}  # a record that is named is in no made-up table
    assert "synthetic" not in words(ana.post("/ui/datasets/staff/plan/explain", named, x_fragment="1"))


def test_a_made_up_answer_sees_no_table() -> None:
    asked = Count(neighbours=3, radius=9.0, loss=Loss("1"))
    samples, plan = Samples(), asked.plan(n=40, dimension=3)
    assert "of 40 records" in (samples.words("staff", STAFF, asked, plan) or "")
    assert samples.is_offered(asked, plan)
    assert not samples.is_offered(asked, asked.plan(n=10**6, dimension=3))


def test_a_field_has_a_title_and_an_unknown_query_needs_none() -> None:
    titled = [entry for entry in fields.entries(Count, {}, STAFF) if entry.code]
    assert {"neighbours", "radius", "epsilon"} <= {entry.code for entry in titled}
    for entry in titled:
        assert entry.label not in (entry.code, entry.code.replace("_", " "))
        assert entry.code_help
    assert title_of("no such query", "neighbours") is None  # the same word may mean something else there
    plain = next(entry for entry in fields.entries(Count, {}, STAFF) if not entry.code)
    assert plain.label == plain.field.replace("_", " ")


def test_what_is_wrong_is_said_once(ana: Browser) -> None:
    given = {"neighbours": "x", "radius": "0.5", "epsilon": "0.01"}
    answer = ana.post("/ui/datasets/staff/confirm/count", given)
    shown = re.sub(r"<div hidden data-state.*?</div>", "", text(answer), flags=re.S)
    assert unescape(shown).count("is not a whole number") == 1
