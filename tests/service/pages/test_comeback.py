"""Signing in leads back: to a deep link, to a question with what was typed, and never to another site. Files of the
pages are kept and compressed, pages are neither."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from page_client import Browser, text, words
from served import Caller, Service, run_service, settings

from wallflower.service.pages.language import STATIC_FILES
from wallflower.service.pages.visit import safe_place

COUNT = {"neighbours": "3", "radius": "0.5", "epsilon": "0.01"}
OUTSIDE = [
    "",
    "https://evil.test/",
    "//evil.test/ui/",
    "/\\evil.test",
    "/ui/\\evil.test",
    "/ui/../v1/datasets",
    "/ui/%2e%2e/v1",
    "/ui//evil.test",
    "/uix/",
    "/v1/datasets",
    "javascript:alert(1)",
    "/ui/\r\nset-cookie: a=b",
    "/ui/\tx",
    "/ui/sign-in?next=/ui/",
    "/ui/sign-out",
    "/ui/static/style.css",
    "/ui/" + "a" * 9000,
    "http:/ui/",
    " /ui/",
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("comeback"), failures=10_000)) as running:
        yield running


def next_of(location: str) -> str:
    return parse_qs(urlsplit(location).query).get("next", [""])[0]


@pytest.mark.parametrize("place", OUTSIDE)
def test_nobody_is_led_outside(service: Service, place: str) -> None:
    assert safe_place(place) == "/ui/"
    browser = Browser(service)
    browser.get("/ui/sign-in")
    answer = browser.post("/ui/sign-in", {"token": str(service.token("ana").token), "next": place})
    assert (answer.status, answer.headers["location"]) == (303, "/ui/")


@pytest.mark.parametrize(
    "place",
    [
        "/ui/releases?before=3",
        "/ui/datasets/ward/plan/count?columns=a&columns=b&epsilon=0.7",
        "/ui/datasets/a%20b",
        "/ui/tokens#typed",
    ],
)
def test_a_deep_link_survives_the_sign_in(service: Service, place: str) -> None:
    browser = Browser(service)
    path, mark, _ = place.partition("#")
    asked = browser.get(path)
    assert asked.status == 303
    assert next_of(asked.headers["location"]) == path
    form = browser.get(f"{asked.headers['location']}{'%23typed' if mark else ''}")
    (given,) = re.findall(r'name="next" value="([^"]*)"', text(form))
    refused = browser.post("/ui/sign-in", {"token": "wf_no", "next": given.replace("&amp;", "&")})
    assert refused.status == 401
    assert given in text(refused)
    done = browser.post("/ui/sign-in", {"token": str(service.token("ana").token), "next": given.replace("&amp;", "&")})
    assert done.headers["location"] == place
    assert browser.get(asked.headers["location"]).headers["location"] == path  # who is signed in goes on at once


@pytest.mark.parametrize(("sent", "seen"), [("plan", "plan"), ("confirm", "confirm"), ("ask", "confirm")])
def test_a_session_that_ends_loses_nothing_that_was_typed(service: Service, sent: str, seen: str) -> None:
    core = service.app.state.core
    browser = Browser(service).sign_in(service.token("ana").token)
    before, proof = len(core.entries(event="charge")), browser.proof
    pages = next(route for route in service.app.routes if getattr(route, "path", "") == "/ui")
    pages.app.state.sessions.end(browser.cookie)
    form = {**COUNT, "nonce": "abc", "columns": "a"}
    answer = browser.post(f"/ui/datasets/ward/{sent}/count", form, proof=proof)
    back = urlsplit(next_of(answer.headers["location"]))
    assert back.path == f"/ui/datasets/ward/{seen}/count"
    assert {name: value[0] for name, value in parse_qs(back.query).items()} == form
    forged = browser.post(f"/ui/datasets/ward/{sent}/count", form, proof="0" * 64)
    assert next_of(forged.headers["location"]) == f"/ui/datasets/ward/{seen}/count"
    assert len(core.entries(event="charge")) == before


def test_another_form_leads_back_to_its_page(service: Service) -> None:
    browser = Browser(service)
    for path, page in (("/ui/datasets/ward/budget/grants", "/ui/datasets/ward/budget"), ("/ui/tokens", "/ui/tokens")):
        assert next_of(browser.post(path, {"epsilon": "3"}).headers["location"]) == f"{page}#typed"


def test_a_link_from_elsewhere_goes_on_with_the_cookie(service: Service) -> None:
    outside = Browser(service).get("/ui/releases", sec_fetch_site="cross-site")
    assert outside.status == 200
    assert 'http-equiv="refresh"' in text(outside)
    assert "set-cookie" not in outside.headers  # it would take the place of the one that was not sent
    assert Browser(service).get("/ui/releases", sec_fetch_site="same-origin").status == 303


def test_files_are_kept_and_compressed_and_pages_are_not(service: Service) -> None:
    caller = Caller(service.url)
    page = caller.get("/ui/sign-in", accept_encoding="gzip")
    assert "content-encoding" not in page.headers
    assert page.headers["cache-control"] == "no-store"
    named = re.findall(r'(?:src|href)="(/ui/static/([^"?]+)\?v=[0-9a-f]+)"', text(page))
    assert {"style.css", "planner.js", "icon.svg"} <= {name for _, name in named}
    for place, name in named:
        kept = caller.get(place, accept_encoding="gzip")
        assert kept.headers["cache-control"] == "public, max-age=31536000, immutable"
        whole = (STATIC_FILES / name).read_bytes()
        content = gzip.decompress(kept.content) if kept.headers.get("content-encoding") == "gzip" else kept.content
        assert content == whole
        assert ("content-encoding" in kept.headers) is (len(whole) >= 1000)
    other = caller.get("/ui/static/style.css?v=old")
    assert other.headers["cache-control"] == "no-cache"
    assert caller.get("/ui/static/style.css", if_none_match=other.headers["etag"]).status == 304
    assert caller.get("/openapi.json", accept_encoding="gzip").headers["content-encoding"] == "gzip"
    told = service.token("ana").get("/v1/datasets", accept_encoding="gzip")
    assert "content-encoding" not in told.headers


@pytest.mark.parametrize("place", ["/ui/static/none.css?proof=0", "/ui/static/%00", "/ui/static/", "/ui/none"])
def test_a_page_that_says_that_nothing_is_there_is_not_compressed(service: Service, place: str) -> None:
    browser = Browser(service).sign_in(service.token("ana").token)
    page = browser.get(place, accept_encoding="gzip")
    assert (page.status, page.headers.get("content-encoding")) == (404, None)
    assert browser.proof in text(page)  # which is why


def test_the_sign_in_says_that_one_goes_on(service: Service) -> None:
    assert "you continue where you were" in words(Browser(service).get("/ui/sign-in?next=/ui/releases"))
    assert "you continue where you were" not in words(Browser(service).get("/ui/sign-in"))
