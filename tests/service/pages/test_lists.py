"""The lists of a steward: filtered, downloaded, and a noted head looked at as a text before it accuses anybody."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from page_client import COUNT, Browser, text, words
from served import Service, run_service, settings

from wallflower.privacy import Loss
from wallflower.schema import Column, Schema
from wallflower.service.settings import Registration


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with run_service(settings(tmp_path_factory.mktemp("lists"), failures=10_000)) as running:
        core = running.app.state.core
        core.ledger.grant("ward", Loss("5"), by="sue", reason="=1+1")
        core.ledger.grant("beds", Loss("5"), by="sue", reason="streams")
        yield running


@pytest.fixture(scope="module")
def people(service: Service) -> dict[str, Browser]:
    found = {name: Browser(service).sign_in(service.token(name).token) for name in ("ana", "bo")}
    for browser in found.values():
        assert browser.post("/ui/datasets/ward/ask/count", COUNT).status == 303
    return {**found, "sue": Browser(service).sign_in(service.token("sue", "steward").token)}


def rows(browser: Browser, path: str) -> list[dict[str, str]]:
    answer = browser.get(path)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert "attachment" in answer.headers["content-disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"))))


def test_the_ledger_is_filtered_on_the_page_and_in_files(people: dict[str, Browser]) -> None:
    sue = people["sue"]
    every = rows(sue, "/ui/ledger/csv")
    assert [row["number"] for row in every] == [str(number + 1) for number in range(len(every))]
    charged = rows(sue, "/ui/ledger/csv?event=charge&analyst=bo&dataset=ward&question=count")
    assert [(row["event"], row["by"], row["data set"]) for row in charged] == [("charge", "bo", "ward")]
    assert charged[0]["booked"] == "ε=1/100"
    stored = json.loads(sue.get("/ui/ledger/json?event=charge&analyst=bo").content)["entries"]
    assert [str(entry["id"]) for entry in stored] == [charged[0]["number"]]
    page = words(sue.get("/ui/ledger?event=limit"))
    assert "Budget set: ε = 5 in all" in page
    assert "Charge: outlier-count" not in page
    assert "No matching entries" in words(sue.get("/ui/ledger?event=limit&dataset=none"))


def test_no_cell_is_a_formula(people: dict[str, Browser]) -> None:
    for row in rows(people["sue"], "/ui/ledger/csv") + rows(people["sue"], "/ui/releases.csv"):
        assert not [value for value in row.values() if value.startswith(("=", "+", "-", "@"))]


def test_an_analyst_has_their_own_releases_whatever_they_ask_for(people: dict[str, Browser]) -> None:
    for path in ("/ui/releases.csv", "/ui/releases.csv?analyst=bo"):
        assert {row["analyst"] for row in rows(people["ana"], path)} == {"ana"}
    found = json.loads(people["ana"].get("/ui/releases.json?analyst=bo").content)["releases"]
    assert {one["analyst"] for one in found} == {"ana"}
    assert "bo" not in people["ana"].get("/ui/releases").content.decode().split("Analyst")[0].split()
    assert {row["analyst"] for row in rows(people["sue"], "/ui/releases.csv?analyst=bo&question=count")} == {"bo"}
    assert "No matching releases" in words(people["sue"].get("/ui/releases?question=watch"))


@pytest.mark.parametrize("head", ["abc", "0" * 63, "g" * 64, "<b>"])
def test_what_is_no_head_accuses_nobody(people: dict[str, Browser], head: str) -> None:
    said = words(people["sue"].get(f"/ui/ledger?head={head}"))
    assert "The chain is valid" in said
    assert "A head has 64 hexadecimal digits" in said
    assert "cut off" not in said
    assert 'role="alert"' not in text(people["sue"].last)


def test_both_results_are_shown(service: Service, people: dict[str, Browser]) -> None:
    noted = service.app.state.core.verify().head
    said = words(people["sue"].get(f"/ui/ledger?head={noted.upper()}"))
    assert "The chain is valid" in said
    assert "The head that you noted is in the chain" in said
    said = words(people["sue"].get(f"/ui/ledger?head={'a' * 64}"))
    assert "The chain is valid" in said
    assert "none with the head you noted" in said


def test_a_head_over_http_is_checked_for_its_form(service: Service) -> None:
    sue = service.token("sue", "steward")
    refused = sue.get("/v1/ledger/verify?head=abc")
    assert (refused.status, refused.problem) == (422, "parameter")
    refused = sue.get(f"/v1/ledger/verify?head={'a' * 64}")
    assert (refused.status, refused.problem) == (409, "chain-broken")


def test_a_broken_chain_comes_before_any_head(tmp_path: Path) -> None:
    with run_service(settings(tmp_path)) as running:
        core = running.app.state.core
        core.ledger.grant("ward", Loss("5"), by="sue", reason="study 12")
        sue = Browser(running).sign_in(running.token("sue", "steward").token)
        with sa.create_engine(f"sqlite:///{core.settings.ledger}").begin() as db:
            for (name,) in db.execute(sa.text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).all():
                db.execute(sa.text(f"DROP TRIGGER {name}"))
            db.execute(sa.text("UPDATE entries SET dataset = 'other' WHERE id = 1"))
        said = words(sue.get(f"/ui/ledger?head={'a' * 64}"))
        assert "entry 1 was changed" in said
        assert "was not checked" in said


def test_the_ledger_names_who_paid_and_no_parameter(tmp_path: Path) -> None:
    """`count` and `flags` have a parameter `by`, which an analyst chooses."""
    lines = "".join(f"{row},{'north' if row % 2 else 'south'}\n" for row in range(40))
    (tmp_path / "regions.csv").write_text(f"a,region\n{lines}")
    columns = (Column("a", low=0, high=40), Column("region", categories=("north", "south"), public=True))
    regions = Registration(
        analysts=("*",), name="regions", source=str(tmp_path / "regions.csv"), schema=Schema(columns=columns)
    )
    with run_service(settings(tmp_path, datasets=(regions,))) as running:
        ana, sue = running.token("ana"), running.token("sue", "steward")
        body = {"neighbours": 3, "radius": 0.5, "epsilon": "0.1", "force": True, "columns": ["a"], "by": ["region"]}
        assert ana.post("/v1/datasets/regions/ask/count", body).status == 200
        share = {"analyst": "ana", "epsilon": "0.1"}
        assert sue.post("/v1/datasets/regions/budget/quotas", share).status == 201
        browser = Browser(running).sign_in(sue.token)
        found = {row["event"]: row["by"] for row in rows(browser, "/ui/ledger/csv")}
        assert (found["charge"], found["release"], found["quota"]) == ("ana", "ana", "sue")
        page = text(browser.get("/ui/ledger?event=charge"))
        assert "<td>regions</td><td>ana</td>" in page
