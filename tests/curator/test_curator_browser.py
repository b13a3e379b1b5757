"""The whole way in a real browser: sign in, plan, ask, see the plot, be refused, be granted more, ask again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from served import Service, serving

from wallflower.curator.demo import Trial, trial
from wallflower.curator.settings import Settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="`make test` installs Chromium; it is not here yet"),
]

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DOMAIN = {"columns": {"mean texture": {"edges": [15, 20]}, "mean radius": {"low": 5, "high": 30}}, "clip": True}


@dataclass
class Visitor:
    """Somebody at a browser, and what its console complained about."""

    page: Page
    service: Service
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: ConsoleMessage) -> None:
        refusal = "the server responded with a status of 40" in message.text  # how a browser tells of any refusal
        if message.type in ("error", "warning") and not refusal:
            self.complaints.append(message.text)

    def sign_in(self, token: str) -> None:
        self.page.goto(f"{self.service.url}/")
        self.page.get_by_label("Your token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Data sets")).to_be_visible()

    def plan(self, question: str) -> None:
        self.page.get_by_role("link", name="Data sets").click()
        self.page.get_by_role("link", name="tumours", exact=True).click()
        self.page.get_by_role("link", name=question).click()

    def spend(self, epsilon: str) -> None:
        """Type the loss, and wait until the plan has followed."""
        self.page.get_by_label("ε, the privacy loss").fill(epsilon)
        expect(self.page.locator("#plan")).to_contain_text(f"ε = {epsilon}")

    def ask(self) -> None:
        self.page.get_by_role("button", name="Ask and pay").click()
        self.page.wait_for_load_state()

    def sees_plot(self) -> None:
        self.page.wait_for_url("**/ui/releases/*")
        expect(self.page.locator("svg.plot")).to_be_visible()
        expect(self.page.get_by_role("heading", name="What is promised")).to_be_visible()
        self.shot("release")

    def shot(self, name: str) -> None:
        """For whoever wants to look: the folder is named in the environment."""
        if folder := os.environ.get("WALLFLOWER_SCREENSHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Trial, Service]]:
    with trial(Settings(port=0, tick=0.02)) as offered, serving(offered.settings) as running:
        yield offered, running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


def visitor(chromium: Browser, service: Service, **more: object) -> Visitor:
    page = chromium.new_context(**more).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(15_000)
    return Visitor(page, service)


def test_from_signing_in_to_a_grant_and_on(chromium: Browser, served: tuple[Trial, Service]) -> None:
    offered, service = served
    ana, sue = visitor(chromium, service), visitor(chromium, service)
    ana.sign_in(offered.analyst)
    ana.plan("How many outliers are there?")
    before = ana.page.locator("#plan .dot").get_attribute("cx")
    ana.page.locator("#slider").fill("0")
    expect(ana.page.get_by_label("ε, the privacy loss")).to_have_value("1")
    expect(ana.page.locator("#plan")).to_contain_text("ε = 1")
    assert ana.page.locator("#plan .dot").get_attribute("cx") != before
    expect(ana.page.locator("#said")).to_contain_text("Useful")
    ana.ask()
    ana.sees_plot()
    ana.plan("In which attributes do the outliers show?")
    ana.spend("1.5")
    ana.ask()
    ana.sees_plot()

    ana.plan("How many outliers are there?")
    ana.spend("0.75")
    expect(ana.page.locator("#plan")).to_contain_text("The budget does not cover this")
    ana.ask()
    expect(ana.page.get_by_role("heading", name="The privacy budget does not cover this")).to_be_visible()
    expect(ana.page.get_by_role("alert")).to_contain_text("asked for ε=3/4, ε=1/2 is left")

    sue.sign_in(offered.steward)
    sue.page.goto(f"{service.url}/ui/datasets/tumours/budget")
    grant = sue.page.get_by_role("region", name="Grant more")
    grant.get_by_label("ε", exact=True).fill("1")
    grant.get_by_role("button", name="Grant").click()
    expect(sue.page.get_by_role("status")).to_contain_text("written into the ledger")

    ana.page.get_by_role("link", name="Back to the planner").click()
    expect(ana.page.get_by_label("ε, the privacy loss")).to_have_value("0.75")
    ana.ask()
    ana.sees_plot()
    sue.page.get_by_role("link", name="Ledger").click()
    expect(sue.page.get_by_role("status")).to_contain_text("The chain holds")
    assert ana.complaints == sue.complaints == []


def test_the_other_questions_are_asked_and_drawn(chromium: Browser, served: tuple[Trial, Service]) -> None:
    offered, service = served
    sue = visitor(chromium, service, viewport={"width": 390, "height": 844}, color_scheme="dark")
    sue.sign_in(offered.steward)
    for question in ("When does an outlier occur?", "What is usual, in a history that is not watched?"):
        sue.plan(question)
        sue.ask()
        sue.sees_plot()
    sue.plan("Why is this record an outlier?")
    expect(sue.page.locator("#plan")).to_contain_text("still to be given")
    sue.page.get_by_label("record needed").fill("3")
    sue.page.get_by_label("metric needed").fill("mean radius")
    sue.page.get_by_label("context needed").fill("mean texture")
    sue.page.get_by_label("domain needed").fill(json.dumps(DOMAIN))
    expect(sue.page.locator("#plan")).to_contain_text("cost of one answer")
    sue.ask()
    sue.sees_plot()
    assert sue.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert sue.complaints == []


def test_without_script_forms_do_it(chromium: Browser, served: tuple[Trial, Service]) -> None:
    offered, service = served
    ana = visitor(chromium, service, java_script_enabled=False)
    ana.sign_in(offered.analyst)
    ana.plan("How many outliers are there?")
    assert not ana.page.locator("#slider").is_visible()
    ana.page.get_by_label("ε, the privacy loss").fill("0.05")
    ana.page.get_by_label("ε, the privacy loss").press("Enter")  # plans, and never pays
    ana.page.wait_for_url("**/plan/count")
    expect(ana.page.locator("#plan")).to_contain_text("ε = 0.05")
    ana.ask()
    ana.sees_plot()


def test_a_token_is_issued_shown_once_and_revoked(chromium: Browser, served: tuple[Trial, Service]) -> None:
    offered, service = served
    sue, bo = visitor(chromium, service), visitor(chromium, service)
    sue.sign_in(offered.steward)
    sue.page.get_by_role("link", name="Tokens").click()
    sue.page.get_by_label("Name").fill("bo")
    sue.page.get_by_role("button", name="Issue").click()
    text = sue.page.locator("#token-text").inner_text()
    bo.sign_in(text)
    sue.page.get_by_role("link", name="Tokens").click()
    assert text not in sue.page.content()
    sue.page.get_by_role("row", name="bo").get_by_role("button").click()
    expect(sue.page.get_by_role("status")).to_contain_text("revoked")
    bo.page.reload()
    expect(bo.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert sue.complaints == bo.complaints == []
