"""Somebody at a real browser, before a service to try."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from served import Service, run_service

from browser import CHROMIUM
from wallflower.service.demo import Trial, trial
from wallflower.service.settings import Settings

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE = 120_000  # milliseconds: as long as the browser lives, a busy machine may take its time
LOSS = "ε, the privacy loss"


@dataclass
class Visitor:
    """Somebody at a browser, and what its console complained about."""

    page: Page
    service: Service
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._note_complaint)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _note_complaint(self, message: ConsoleMessage) -> None:
        refusal = "the server responded with a status of 4" in message.text  # how a browser tells of any refusal
        if message.type in ("error", "warning") and not refusal:
            self.complaints.append(message.text)

    def sign_in(self, token: str) -> None:
        self.page.goto(f"{self.service.url}/")
        self.page.get_by_label("Your token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("heading", name="Data sets")).to_be_visible()

    def plan(self, question: str, dataset: str = "tumours") -> None:
        self.page.get_by_role("link", name="Data sets").click()
        self.page.get_by_role("link", name=dataset, exact=True).click()
        self.page.get_by_role("link", name=question).click()

    def spend(self, epsilon: str) -> None:
        """Type the loss, and wait until the plan has followed."""
        self.page.get_by_label(LOSS).fill(epsilon)
        expect(self.page.locator("#plan")).to_contain_text(f"ε = {epsilon}")

    def ask(self) -> None:
        """Continue to run, and tick the box where the plan says that it is of no use."""
        box = self.page.get_by_label("Run it anyway")
        if box.count():
            box.check()
        self.page.get_by_role("button", name="Continue to run").click()
        self.page.get_by_role("button", name="and run").click()
        self.page.wait_for_load_state()

    def sees_plot(self, count: int = 1) -> None:
        self.page.wait_for_url("**/ui/releases/*")
        expect(self.page.locator("svg.picture:visible")).to_have_count(count)
        expect(self.page.get_by_role("heading", name="Privacy guarantee")).to_be_visible()
        self.shot("release")

    def shot(self, name: str) -> None:
        """For whoever wants to look: the folder is named in the environment."""
        if folder := os.environ.get("WALLFLOWER_SCREENSHOTS"):
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture(scope="module")
def trial_service() -> Iterator[tuple[Trial, Service]]:
    with (
        trial(Settings(port=0, quantum_seconds=0.02, reauth_seconds=3600)) as offered,
        run_service(offered.settings) as running,
    ):
        yield offered, running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def visitor(chromium: Browser, service: Service, **more: object) -> Visitor:
    page = chromium.new_context(**more).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    return Visitor(page, service)
