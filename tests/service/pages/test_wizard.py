"""Registering from the pages: sources under the roots alone, nothing of a record on any page, and it stays."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_client import EVIL, Browser, text, words
from served import Service, run_service, settings

from wallflower.service.settings import Settings

VALUE = "31.4159"
FORM = {
    "name": "clinic",
    "source": "sub/clinic.csv",
    "title": "Clinic",
    "units_per_person": "2",
    "c0-name": "age",
    "c0-kind": "integer",
    "c0-low": "0",
    "c0-high": "120",
    "c0-meaning": "age at admission",
    "c1-name": "dose",
    "c1-kind": "number",
    "c1-low": "0",
    "c1-high": "60",
    "c2-name": "sex",
    "c2-kind": "text",
    "c2-categories": "f,m",
    "c3-name": "note",
    "c3-kind": "leave",
}


@pytest.fixture(scope="module")
def wizard_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder, outside = tmp_path_factory.mktemp("wizard"), tmp_path_factory.mktemp("outside")
    (folder / "sub").mkdir()
    lines = "".join(f"{20 + row},{VALUE if row == 7 else row},{'fm'[row % 2]},word{row}\n" for row in range(40))
    (folder / "sub" / "clinic.csv").write_text("age,dose,sex,note\n" + lines)
    (folder / ".hidden.csv").write_text("a\n1\n")
    (outside / "secret.csv").write_text("a\n1\n")
    os.symlink(outside / "secret.csv", folder / "link.csv")
    os.symlink(outside, folder / "linked")
    return settings(folder, failures=10_000)


@pytest.fixture(scope="module")
def service(wizard_settings: Settings) -> Iterator[Service]:
    with run_service(wizard_settings) as running:
        yield running


@pytest.fixture(scope="module")
def sue(service: Service) -> Browser:
    return Browser(service).sign_in(service.token("sue", "steward").token)


def test_what_may_be_chosen_lies_under_the_roots(sue: Browser) -> None:
    offered = re.findall(r'<option value="([^"]+)">', text(sue.get("/ui/register")))
    assert offered == ["sub/clinic.csv", "ward.csv"]


@pytest.mark.parametrize(
    "source",
    [
        "../outside/secret.csv",
        "sub/../../outside/secret.csv",
        "/etc/passwd",
        "link.csv",
        "linked/secret.csv",
        "file:///etc/passwd",
        "postgresql://localhost/x",
        "none.csv",
        "sub/clinic.csv\x00.csv",
        "..",
    ],
)
@pytest.mark.parametrize("step", ["/draft", ""])
def test_no_other_place_is_opened(sue: Browser, source: str, step: str) -> None:
    form = FORM | {"source": source, "name": "elsewhere"}
    given = form if not step else {"name": "elsewhere", "source": source}
    refused = sue.post(f"/ui/register{step}", given)
    assert refused.status == 422
    assert "must be a file or folder under one of the service" in words(refused)
    assert "elsewhere" not in text(sue.get("/ui/"))


def test_a_form_that_is_not_the_stewards_is_refused(service: Service) -> None:
    ana = Browser(service).sign_in(service.token("ana").token)
    for path in ("/ui/register", "/ui/register/draft", "/ui/register/rehearsal"):
        assert ana.post(path, FORM).status == 403


def test_a_draft_shows_names_and_kinds_and_no_value(sue: Browser) -> None:
    page = sue.post("/ui/register/draft", {"name": "clinic", "source": "sub/clinic.csv"})
    assert page.status == 200
    assert re.findall(r"<legend>(\w+)</legend>", text(page)) == ["age", "dose", "sex", "note"]
    assert VALUE not in text(page)
    assert "word7" not in text(page)
    assert "40" not in re.findall(r">(\d+)<", text(page))  # nor how many records there are
    assert '<option value="integer" selected>' not in text(
        page
    )  # cells that happen to be whole say nothing of the rest
    again = sue.post("/ui/register/draft", FORM | {"c3-kind": "date"})
    assert 'name="c3-since"' in text(again)
    assert 'value="age at admission"' in text(again)


@pytest.mark.slow
def test_a_rehearsal_opens_no_source(sue: Browser) -> None:
    page = sue.post("/ui/register/rehearsal", FORM | {"source": "none.csv"})
    assert page.status == 200, words(page)
    assert "Synthetic: 1,000 records" in words(page)
    assert "How many outliers are there?" in words(page)
    assert 'value="120"' in text(page)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"c0-low": "young"}, "column 'age': low must be a number"),
        ({"c0-low": "200"}, "age"),
        ({"units_per_person": "many"}, "units_per_person: must be a whole number"),
        ({"protects": "nobody"}, "protects: must be one of"),
        ({"name": ""}, "name"),
        ({"c2-categories": "0..30000000"}, "column 'sex': from the first label to the last there are more than 10,000"),
        ({"c2-categories": f"0..1{'0' * 1000}"}, "column 'sex': from the first label"),
        ({"name": "ward"}, "registered already"),
        ({"c2-categories": "f"}, "sex"),  # the records have another label
    ],
)
def test_what_does_not_fit_is_told_and_nothing_is_lost(sue: Browser, wrong: dict[str, str], told: str) -> None:
    answer = sue.post("/ui/register", FORM | wrong)
    assert answer.status in (409, 422)
    assert told in words(answer)
    assert 'value="age at admission"' in text(answer)
    assert VALUE not in text(answer)


def test_what_is_registered_stays_and_is_asked(wizard_settings: Settings, sue: Browser, service: Service) -> None:
    made = sue.post("/ui/register", FORM | {"title": EVIL})
    assert made.headers["location"] == "/ui/datasets/clinic/budget?done=registered"
    page = sue.get(made.headers["location"])
    assert "The data set is registered" in words(page)
    assert "<img src=x" not in text(sue.get("/ui/datasets/clinic"))
    assert service.app.state.core.acts.last(1)[0]["act"] == "data set"
    facts = service.app.state.core.catalog.facts(service.app.state.core.catalog.find("clinic"))
    assert [column["name"] for column in facts["columns"]] == ["age", "dose", "sex"]
    assert service.app.state.core.ledger.account("clinic").protection.units_per_person == 2
    assert sue.post("/ui/datasets/clinic/access", {"analyst": "*"}).status == 303
    with run_service(wizard_settings) as again:
        ana = again.token("ana")
        asked = {"neighbours": 3, "radius": 0.5, "epsilon": "0.1", "force": True}
        assert ana.post("/v1/datasets/clinic/ask/count", asked).status == 200
        assert "age at admission" in words(Browser(again).sign_in(ana.token).get("/ui/datasets/clinic"))


def test_a_stream_is_registered_by_its_columns(sue: Browser, service: Service) -> None:
    assert sue.post("/ui/register/draft", {"name": "pulse"}).status == 422
    page = sue.post("/ui/register/draft", {"name": "pulse", "columns": "rate\nsteps"})
    assert re.findall(r"<legend>(\w+)</legend>", text(page)) == ["rate", "steps"]
    form = {"name": "pulse", "c0-name": "rate", "c0-kind": "number", "c0-low": "40", "c0-high": "200"}
    assert sue.post("/ui/register", form | {"protects": "time entry"}).status == 303
    assert service.app.state.core.catalog.find("pulse").source is None


def test_a_settings_folder_that_is_gone_offers_nothing(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, roots=(str(tmp_path / "gone"),), datasets=())) as running:
        sue = Browser(running).sign_in(running.token("sue", "steward").token)
        assert re.findall(r'<option value="([^"]+)">', text(sue.get("/ui/register"))) == []
