"""Forms in a real browser that offer what is there: own scales and baselines, label columns, columns of times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium_visitor import FLAGS, LOSS, PATIENCE, Visitor
from playwright.sync_api import Page, expect, sync_playwright
from served import TIMED, Service, run_service, settings

from browser import CHROMIUM, needs_chromium
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.watch import Watch
from wallflower.queries.watch.baseline import Baseline
from wallflower.schema import Column, Schema
from wallflower.service.pages import fields
from wallflower.service.settings import Registration

pytestmark = [pytest.mark.slow, needs_chromium]

WARDS, SEXES = ("North", "South, old"), ("F", "M")
PEOPLE = Schema(columns=(Column("age"), Column("ward", categories=WARDS), Column("sex", categories=SEXES)))
RIDES = Schema(columns=(Column("at", time=True), Column("rides", low=0, high=100)), protects=TIMED)


def registrations_in(folder: Path) -> tuple[Registration, Registration]:
    people = [f'{20 + at % 50},"{WARDS[at % 2]}",{SEXES[at // 2 % 2]}' for at in range(400)]
    rides = [f"2024-01-{1 + at // 24:02} {at % 24:02}:00,{20 if at % 24 < 6 else 80}" for at in range(240)]
    (folder / "people.csv").write_text("\n".join(["age,ward,sex", *people]) + "\n")
    (folder / "rides.csv").write_text("\n".join(["at,rides", *rides]) + "\n")
    return (
        Registration(analysts=("*",), name="people", source=str(folder / "people.csv"), schema=PEOPLE),
        Registration(analysts=("*",), name="rides", source=str(folder / "rides.csv"), schema=RIDES),
    )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("forms")
    with run_service(settings(folder, datasets=registrations_in(folder))) as running:
        for name in ("people", "rides"):
            running.app.state.core.ledger.grant(name, Loss("1000"), by="sue", reason="a test")
        yield running


@pytest.fixture(scope="module")
def ana(service: Service) -> Iterator[Visitor]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_context(viewport={"width": 390, "height": 844}).new_page()
        page.set_default_timeout(PATIENCE)
        visitor = Visitor(page, service)
        visitor.sign_in(service.token("ana").token or "")
        yield visitor
        assert visitor.complaints == []
        browser.close()


def form(ana: Visitor, dataset: str, kind: str) -> Page:
    ana.page.goto(f"{ana.service.url}/ui/datasets/{dataset}/plan/{kind}")
    return ana.page


def release(ana: Visitor) -> int:
    ana.ask()
    ana.page.wait_for_url("**/ui/releases/*")
    return int(ana.page.url.rpartition("/")[2])


def test_groups_are_ticked_and_a_scale_is_chosen_among_ones_own(ana: Visitor) -> None:
    page = form(ana, "people", "scale")
    ana.spend("20")
    number = release(ana)
    expect(page.get_by_role("region", name="Numbers")).to_contain_text("age")
    page = form(ana, "people", "count")
    expect(page.locator("#f-radius")).to_have_value("")
    expect(page.locator("#f-scale")).to_have_value(str(number))
    page.locator("#f-radius").fill("1")
    page.get_by_text("More settings").click()
    page.locator("#f-share").fill("")
    page.locator("#f-by").get_by_label("ward").check()
    page.locator("#f-by").get_by_label("sex").check()
    ana.spend("20")
    expect(page.locator("#plan")).to_contain_text("4 groups")
    release(ana)
    expect(page.get_by_role("region", name="Numbers")).to_contain_text("South, old")
    expect(page.locator("pre[aria-labelledby=python]")).to_contain_text(f"scale={number}")


def test_a_baseline_by_phase_is_chosen_among_ones_own(ana: Visitor) -> None:
    page = form(ana, "rides", "baseline")
    expect(page.locator("#f-low")).to_have_value("0")
    page.locator("#f-season").select_option("hour-of-day")
    page.locator("#f-time").select_option("at")
    page.get_by_label(LOSS).fill("100")
    expect(page.locator("#plan")).to_contain_text("24 buckets")
    number = release(ana)
    page = form(ana, "rides", "watch")
    expect(page.locator("#f-threshold")).to_have_value("")
    page.locator("#f-threshold").fill("4")
    page.locator("#f-baseline").select_option(str(number))
    ana.spend("64")
    release(ana)
    expect(page.locator("pre[aria-labelledby=python]")).to_contain_text(f"baseline={number}")
    expect(page.locator("svg.picture:visible")).to_have_count(1)


def test_what_is_suggested_means_something_in_the_table() -> None:
    def values(question: fields.Question, schema: Schema) -> dict[str, str]:
        return {entry.name: entry.value for entry in fields.entries(question, {}, schema)}

    scaled = Schema(columns=(Column("age", scale=13), Column("pay", scale=9)))
    assert values(Count, scaled)["radius"] == "1.3"
    assert values(Count, Schema.of(["age"])) | {"radius": "", "share": "2%"} == values(Count, Schema.of(["age"]))
    warm = Schema(columns=(Column("t", low=34.5, high=39.5, center=37, scale=0.5),))
    own = {"threshold-own": "2", "low-own": "34.5", "high-own": "39.5", "variance-own": "0.25"}
    assert values(Watch, warm) | own == values(Watch, warm)
    for question in (Baseline, Watch):
        assert values(question, RIDES) | {"low": "0", "high": "100"} == values(question, RIDES)
    assert values(Watch, RIDES)["threshold"] == ""
    assert values(Watch, RIDES)["variance"] == ""
    pulse = Schema(columns=(Column("pulse", low=40, high=200), Column("age", low=0, high=120)))
    assert values(Watch, pulse) | {"columns": "pulse", "low": "40", "high": "200"} == values(Watch, pulse)
    apart = Schema(columns=pulse.columns, protects=TIMED)
    assert values(Watch, apart) | {"low": "", "high": ""} == values(Watch, apart)
