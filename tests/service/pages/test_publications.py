"""Public releases: one link without a token, nothing but the release behind it, a notice when it is withdrawn."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from chromium_visitor import PATIENCE, chromium
from page_client import COUNT, Browser, assert_nothing_inline, text, words
from playwright.sync_api import Browser as Chromium
from served import Answer, Caller, Service, run_service, settings

from browser import AXE, needs_axe, needs_chromium
from wallflower.privacy import Loss
from wallflower.schema import Column, Schema
from wallflower.service.core.publications import PRIVATE_FIELDS, public_document
from wallflower.service.core.records import PUBLICATIONS
from wallflower.service.pages import app as pages
from wallflower.service.pages.visit import CONTENT_POLICY, EMBED_POLICY, FILE_POLICY
from wallflower.service.settings import Registration

__all__ = ["chromium"]  # a fixture

ANALYST, STEWARD = "ana-7c1", "sue-9d4"
FILES = ("", ".json", ".csv", ".svg", "/embed")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("public")
    source: Path = folder / "patients.csv"
    rows = (f"{row % 37},{900 if row == 3 else row * row % 97}" for row in range(200))
    source.write_text("a,b\n" + "\n".join(rows) + "\n", encoding="utf-8")
    columns = (Column("a", low=0, high=37), Column("b", low=0, high=1000))
    schema = Schema(columns=columns, rows=200, clip=True)
    patients = Registration(analysts=("*",), name="patients", source=str(source), schema=schema, records=("3",))
    given = settings(folder)
    with run_service(settings(folder, datasets=(*given.datasets, patients), reauth_seconds=3600)) as running:
        running.app.state.core.ledger.grant("patients", Loss("1000"), by=STEWARD)
        yield running


@pytest.fixture(scope="module")
def ana(service: Service) -> Browser:
    return Browser(service).sign_in(service.token(ANALYST).token)


@pytest.fixture(scope="module")
def sue(service: Service) -> Browser:
    return Browser(service).sign_in(service.token(STEWARD, "steward").token)


def ask_count(ana: Browser) -> str:
    """Ask a count by the pages, and return the number of its release."""
    asked = ana.post("/ui/datasets/ward/ask/count", COUNT)
    assert asked.status == 303, text(asked)
    return asked.headers["location"].rpartition("/")[2]


def publish(sue: Browser, number: str) -> None:
    assert sue.get(f"/ui/releases/{number}/publish").status == 200
    made = sue.post(f"/ui/releases/{number}/publish")
    assert (made.status, made.headers["location"]) == (303, f"/ui/public/{number}"), text(made)


def stranger(service: Service, path: str, **headers: str) -> Answer:
    """Somebody without a token and without a cookie."""
    return Caller(service.url).get(path, **headers)


def public_texts(service: Service, number: str) -> Iterator[tuple[str, str]]:
    for path in (*(f"/ui/public/{number}{suffix}" for suffix in FILES), "/ui/public", "/ui/public.json"):
        yield path, text(stranger(service, path))


def test_a_release_is_closed_until_a_steward_publishes_it(service: Service, ana: Browser, sue: Browser) -> None:
    number = ask_count(ana)
    for suffix in FILES:
        assert stranger(service, f"/ui/public/{number}{suffix}").status == 404
    for path in ("publish", "withdraw"):
        assert ana.get(f"/ui/releases/{number}/{path}").status == 403
        assert ana.post(f"/ui/releases/{number}/{path}", {"reason": "x"}).status == 403
    publish(sue, number)
    for suffix in FILES:
        found = stranger(service, f"/ui/public/{number}{suffix}")
        assert found.status == 200, (suffix, text(found))
    assert f"/ui/public/{number}" in text(ana.get(f"/ui/releases/{number}"))
    assert stranger(service, f"/ui/releases/{number}").status == 303  # the page of its owner stays closed
    assert sue.post(f"/ui/releases/{number}/publish").status == 409


def test_nothing_but_the_release_leaves(service: Service, ana: Browser, sue: Browser) -> None:
    number, closed = ask_count(ana), ask_count(ana)
    publish(sue, number)
    release = service.app.state.core.release(service.app.state.core.tokens.caller(sue_token(service)), int(number))
    assert release.analyst == ANALYST  # so the check below can fail
    assert any("starter cap" in note for note in release.notes)
    clock = release.charged_at[11:19]
    shown = dict(public_texts(service, number))
    for path, found in shown.items():
        for secret in (ANALYST, STEWARD, clock, f"/{closed}", "left for", "starter cap"):
            assert secret not in found, (path, secret)
    body = json.loads(shown[f"/ui/public/{number}.json"])
    assert not PRIVATE_FIELDS & set(body)
    assert body == public_document(release) | {name: body[name] for name in ("published", "link")}
    assert {"value", "interval", "guarantee", "parameters", "mechanism"} <= set(body)
    assert body["value"] == release.value


def sue_token(service: Service) -> str:
    return str(service.token(STEWARD, "steward").token)


def test_only_the_page_for_frames_may_be_framed(service: Service, ana: Browser, sue: Browser) -> None:
    number = ask_count(ana)
    publish(sue, number)
    framed = stranger(service, f"/ui/public/{number}/embed", cookie=f"{sue.name}={sue.cookie}")
    assert framed.headers["content-security-policy"] == EMBED_POLICY
    assert "x-frame-options" not in framed.headers
    assert "set-cookie" not in framed.headers
    assert "<form" not in text(framed)
    assert_nothing_inline(framed)
    assert "<script" not in text(framed)
    place = {"number": number, "form": "svg", "dataset": "ward", "kind": "count"}
    for route in pages.routes():
        if "GET" not in (route.methods or ()) or route.path.endswith("/embed"):
            continue
        path = re.sub(r"{(\w+)}", lambda name: place.get(name[1], "none"), route.path)
        found = sue.get(f"/ui{path}")
        assert "frame-ancestors 'none'" in found.headers["content-security-policy"], path
        assert found.headers["x-frame-options"] == "DENY", path
        if not path.endswith(".svg"):
            assert found.headers["content-security-policy"] == CONTENT_POLICY
    drawn = stranger(service, f"/ui/public/{number}.svg")
    assert drawn.headers["content-security-policy"] == FILE_POLICY
    assert "script" not in FILE_POLICY


def test_files_need_no_session_and_set_no_cookie(service: Service, ana: Browser, sue: Browser) -> None:
    number = ask_count(ana)
    publish(sue, number)
    for suffix in FILES[1:]:
        assert "set-cookie" not in stranger(service, f"/ui/public/{number}{suffix}").headers
    assert stranger(service, f"/ui/public/{number}.csv").content.count(b"\n") >= 2
    assert b"<svg" in stranger(service, f"/ui/public/{number}.svg").content


def test_a_withdrawal_leaves_a_notice_everywhere(service: Service, ana: Browser, sue: Browser) -> None:
    number = ask_count(ana)
    publish(sue, number)
    value = json.loads(stranger(service, f"/ui/public/{number}.json").content)["text"]
    assert sue.post(f"/ui/releases/{number}/withdraw", {"reason": "  "}).status == 422
    assert stranger(service, f"/ui/public/{number}").status == 200
    assert sue.post(f"/ui/releases/{number}/withdraw", {"reason": "wrong <year>"}).status == 303
    for suffix in FILES:
        found = stranger(service, f"/ui/public/{number}{suffix}")
        assert found.status == 410, suffix
        assert value not in text(found)
    page = words(stranger(service, f"/ui/public/{number}"))
    assert "wrong <year>" in page
    assert stranger(service, f"/ui/public/{number}.json").json["reason"] == "wrong <year>"
    rows = {row["number"]: row for row in stranger(service, "/ui/public.json").json["releases"]}
    assert rows[int(number)]["reason"] == "wrong <year>"
    assert "wrong <year>" in words(stranger(service, "/ui/public"))
    assert sue.post(f"/ui/releases/{number}/withdraw", {"reason": "again"}).status == 409
    assert sue.post(f"/ui/releases/{number}/publish").status == 409  # a notice is never taken back
    assert stranger(service, f"/ui/public/{number}").status == 410


def test_both_acts_are_recorded(service: Service, ana: Browser, sue: Browser) -> None:
    number = ask_count(ana)
    publish(sue, number)
    sue.post(f"/ui/releases/{number}/withdraw", {"reason": "wrong year"})
    acts = json.loads(sue.get(f"/ui/acts/json?by={STEWARD}").content)["acts"]
    about = [(act["act"], act["by"]) for act in acts if act["about"] == f"release {number} of ward"]
    assert about == [("release published", STEWARD), ("release withdrawn", STEWARD)]


def test_the_list_is_searched(service: Service, ana: Browser, sue: Browser) -> None:
    number = ask_count(ana)
    publish(sue, number)
    link = f'href="/ui/public/{number}"'
    assert link in text(stranger(service, "/ui/public?search=WARD+outliers"))
    assert link not in text(stranger(service, "/ui/public?search=nowhere"))


@pytest.fixture(scope="module")
def naming(service: Service) -> dict[str, int]:
    """Releases that name records: a list for review, and a context of a named record."""
    steward = service.token(STEWARD, "steward")
    fit = {"columns": ["a", "b"], "contamination": "0.1", "epsilon": "2", "force": True}
    detector = steward.post("/v1/datasets/patients/ask/detector", fit)
    assert detector.status == 200, detector.content
    core, number = service.app.state.core, detector.json["ledger_id"]
    core.ledger.allow_naming("patients", number, 5, by=STEWARD, reason="review", by_row=True)
    listed = steward.post(
        "/v1/datasets/patients/ask/who",
        {"detector": number, "most": 2, "epsilon": "2", "force": True},
    )
    assert listed.status == 200, listed.content
    domain: dict[str, Any] = {"columns": {"a": {"edges": [10, 20]}, "b": {"low": 0, "high": 1000}}, "clip": True}
    explained = steward.post(
        "/v1/datasets/patients/ask/explain",
        {"record": "3", "metric": "b", "context": ["a"], "domain": domain, "size": 200, "epsilon": "9", "force": True},
    )
    assert explained.status == 200, explained.content
    return {"who": listed.json["ledger_id"], "explain": explained.json["ledger_id"], "detector": number}


@pytest.mark.parametrize("kind", ["who", "explain"])
def test_a_release_that_names_a_record_can_never_be_published(
    kind: str, naming: dict[str, int], service: Service, sue: Browser
) -> None:
    number = naming[kind]
    assert sue.get(f"/ui/releases/{number}/publish").status == 409
    assert sue.post(f"/ui/releases/{number}/publish").status == 409
    assert f"/releases/{number}/publish" not in text(sue.get(f"/ui/releases/{number}"))
    core = service.app.state.core
    assert core.publications.find(number) is None
    core.records.add(PUBLICATIONS, {"id": str(number), "dataset": "patients", "by": STEWARD})  # past every check
    for suffix in FILES:
        assert stranger(service, f"/ui/public/{number}{suffix}").status == 404
    row = next(row for row in stranger(service, "/ui/public.json").json["releases"] if row["number"] == number)
    assert "question" not in row


def test_a_release_of_an_unknown_query_is_not_published(naming: dict[str, int], service: Service) -> None:
    core = service.app.state.core
    known = core.release(core.tokens.caller(sue_token(service)), naming["detector"])
    assert core.publications.obstacle(known) is None
    publications = type(core.publications)(core.records, core.ledger, (), core.acts.note)
    assert publications.obstacle(known) is not None


@needs_chromium
@needs_axe
@pytest.mark.parametrize(("width", "language"), [(1280, "en"), (360, "de")])
def test_axe_finds_no_fault_on_public_pages(
    chromium: Chromium, service: Service, ana: Browser, sue: Browser, width: int, language: str
) -> None:
    axe = import_module(f"{AXE}.sync_playwright").Axe()
    shown, gone, closed = (ask_count(ana) for _ in range(3))
    for number in (shown, gone):
        publish(sue, number)
    sue.post(f"/ui/releases/{gone}/withdraw", {"reason": "wrong year"})
    places = [f"/ui/public/{shown}", f"/ui/public/{shown}/embed", f"/ui/public/{gone}", "/ui/public"]
    context = chromium.new_context(viewport={"width": width, "height": 800}, locale=language)
    context.add_cookies([{"name": sue.name, "value": sue.cookie, "url": f"{service.url}/ui/"}])
    page = context.new_page()
    found = {}
    for place in (*places, f"/ui/releases/{closed}/publish", f"/ui/releases/{shown}/withdraw"):
        page.goto(f"{service.url}{place}", wait_until="networkidle", timeout=PATIENCE)
        found[place] = [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in axe.run(page).response["violations"]]
        assert page.evaluate("document.documentElement.scrollWidth") <= width, place
        if folder := os.environ.get("WALLFLOWER_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"{language}{place.replace('/', '-')}.png", full_page=True)
    context.close()
    assert found == {place: [] for place in found}
