"""People whom a trusted proxy names: from listed proxies only, and as long as it names them."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from page_client import Browser, text, words
from served import Caller, Service, run_service, settings

from wallflower.service.settings import Group, Settings, TrustedHeader

GROUPS = (Group(name="health", datasets=("ward",)), Group(name="stewards", role="steward"))


def stated(folder: Any, **more: Any) -> Settings:
    base = settings(folder, failures=10_000)
    closed = tuple(_close(dataset) for dataset in base.datasets)
    return settings(folder, failures=10_000, groups=GROUPS, datasets=closed, trusted_header=TrustedHeader(), **more)


def _close(dataset: Any) -> Any:
    return type(dataset)(name=dataset.name, source=dataset.source, schema=dataset.schema)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(stated(tmp_path_factory.mktemp("header"), proxies=("127.0.0.1",))) as running:
        yield running


def person(service: Service, name: str, groups: str) -> Browser:
    return Browser(service, always={"x_remote_user": name, "x_remote_groups": groups})


def test_a_person_is_signed_in_by_the_proxy(service: Service) -> None:
    ana = person(service, "ana", "health, canteen")
    assert ana.get("/ui/datasets/ward").status == 303
    assert ana.get("/ui/datasets/ward").status == 200
    assert ana.get("/ui/datasets/beds").status == 404
    assert ana.get("/ui/tokens").status == 403
    assert "ana" in words(ana.get("/ui/account"))


def test_a_proxy_that_is_not_listed_signs_in_nobody(tmp_path: Any) -> None:
    with run_service(stated(tmp_path, proxies=("10.9.8.7",))) as elsewhere:
        answer = person(elsewhere, "ana", "stewards").get("/ui/")
        assert answer.status == 303
        assert answer.headers["location"] == "/ui/sign-in"
        assert elsewhere.app.state.core.people.all() == []


def test_the_client_behind_the_proxy_is_not_the_proxy(tmp_path: Any) -> None:
    """An address that the client writes itself makes no proxy of it."""
    with run_service(stated(tmp_path, proxies=("10.9.8.7",))) as elsewhere:
        answer = Caller(elsewhere.url).get("/ui/", x_forwarded_for="10.9.8.7", x_remote_user="ana")
        assert answer.headers["location"] == "/ui/sign-in"


def test_a_header_that_is_there_twice_names_nobody(service: Service) -> None:
    connection = http.client.HTTPConnection(urlsplit(service.url).netloc)
    connection.putrequest("GET", "/ui/")
    for name in ("ana", "root"):
        connection.putheader("X-Remote-User", name)
    connection.putheader("X-Remote-Groups", "stewards")
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, answer.getheader("location")) == (303, "/ui/sign-in")
    connection.close()


def test_a_session_ends_when_the_proxy_names_another_or_nobody(service: Service) -> None:
    ana = person(service, "ana", "health")
    ana.get("/ui/")
    assert ana.get("/ui/").status == 200
    cookie = ana.cookie
    ana.always = {"x_remote_user": "bo", "x_remote_groups": "health"}
    assert ana.get("/ui/").status == 303
    ana.get("/ui/")
    assert "bo" in words(ana.get("/ui/account"))
    ana.always, ana.cookie = {}, cookie
    assert ana.get("/ui/").headers["location"] == "/ui/sign-in"


def test_groups_follow_the_header(service: Service) -> None:
    cy = person(service, "cy", "health")
    cy.get("/ui/")
    assert cy.get("/ui/tokens").status == 403
    cy.always["x_remote_groups"] = "stewards"
    cy.get("/ui/")
    assert cy.get("/ui/tokens").status == 200


def test_no_known_group_is_no_access(service: Service) -> None:
    refused = person(service, "dee", "canteen").get("/ui/")
    assert refused.status == 403
    assert "no group" in words(refused)


def test_a_name_is_data(service: Service) -> None:
    for name in ("a" * 81, "(others)", "x/y", "<b>x</b>"):
        refused = person(service, name, "health").get("/ui/")
        assert refused.status == 403
        assert name not in text(refused)
        assert name not in [known.name for known in service.app.state.core.people.all()]
    image = person(service, "<img src=x>", "health")  # a name that a ledger can have
    assert image.get("/ui/").status == 303
    for place in ("/ui/", "/ui/account"):
        shown = text(image.get(place))
        assert "&lt;img src=x&gt;" in shown
        assert "<img src=x" not in shown


def test_the_header_counts_for_pages_alone(service: Service) -> None:
    answer = Caller(service.url).get("/v1/whoami", x_remote_user="ana", x_remote_groups="stewards")
    assert answer.status == 401


def test_a_person_makes_a_token_for_programs(service: Service) -> None:
    ana = person(service, "ana", "health")
    ana.get("/ui/")
    ana.get("/ui/account")
    made = ana.post("/ui/account", {"scope": "analyst", "days": "3"})
    assert made.status == 303, words(made)
    handed = made.headers["set-cookie"].partition("wallflower-issued=")[2].partition(";")[0]
    api = Caller(service.url, handed)
    assert api.get("/v1/whoami").json["name"] == "ana"
    assert api.get("/v1/datasets/ward").status == 200
    assert api.get("/v1/datasets/beds").status == 404


def test_tokens_still_sign_in(service: Service) -> None:
    browser = Browser(service).sign_in(service.token("tom").token)
    assert browser.get("/ui/").status == 200
