"""A steward and an analyst in a real browser: from a file to a data set, and from a refusal to more budget."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from chromium_visitor import Visitor, chromium, trial_service, visitor
from playwright.sync_api import Browser, expect
from served import Service

from browser import AXE, needs_axe, needs_chromium
from wallflower.service.demo import Trial

__all__ = ["chromium", "trial_service"]  # fixtures

pytestmark = [pytest.mark.slow, needs_chromium]

COUNT = "How many outliers are there?"
PAGES = (
    *(
        "requests",
        "spending",
        "ledger?head=abc",
        "tokens",
        "acts",
        "proposals",
        "second-factor",
        "releases",
        "register",
        "streams",
        "datasets/tumours/budget",
    ),
    *("about", "accessibility", "privacy", "api", "datasets/tumours/request"),
)


def register(sue: Visitor, folder: Path) -> None:
    lines = "".join(f"{20 + row % 60},{row * row % 97}\n" for row in range(400))
    (folder / "clinic.csv").write_text("age,dose\n" + lines)
    sue.page.get_by_role("link", name="Register a data set").click()
    sue.page.get_by_label("Name").fill("clinic")
    sue.page.get_by_label("Source").select_option("clinic.csv")
    sue.page.get_by_role("button", name="Draft the schema").click()
    for column, (least, largest) in {"age": ("0", "120"), "dose": ("0", "100")}.items():
        said = sue.page.get_by_role("group", name=column)
        said.get_by_label("Minimum").fill(least)
        said.get_by_label("Maximum").fill(largest)
    sue.page.get_by_role("button", name="Rehearse").click()
    expect(sue.page.get_by_role("row", name=COUNT)).to_contain_text("97.5 % confidence")
    expect(sue.page.get_by_role("group", name="age").get_by_label("Maximum")).to_have_value("120")
    sue.shot("rehearsal")
    sue.page.get_by_role("button", name="Register clinic").click()
    expect(sue.page.get_by_role("status")).to_contain_text("The data set is registered")


def test_from_a_file_to_a_grant_and_on(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    sue = visitor(chromium, service)
    sue.sign_in(offered.steward)
    register(sue, Path(offered.settings.roots[0]))
    sue.page.goto(f"{service.url}/ui/datasets/clinic/access")
    sue.page.get_by_role("button", name="Give access").click()
    expect(sue.page.get_by_text("all analysts Remove access")).to_be_visible()

    ana = visitor(chromium, service, viewport={"width": 390, "height": 844}, color_scheme="dark")
    ana.sign_in(offered.analyst)
    ana.plan(COUNT, "clinic")
    ana.spend("0.9")
    ana.ask()
    ana.sees_plot()
    ana.plan(COUNT, "clinic")
    ana.spend("0.75")
    ana.ask()
    expect(ana.page.get_by_role("heading", name="The privacy budget does not cover this")).to_be_visible()
    ana.page.get_by_role("link", name="request budget").click()
    expect(ana.page.get_by_label("ε you want to spend")).to_have_value("3/4")
    ana.page.get_by_label("What is it for?").fill("<script>alert(1)</script> the second wave")
    ana.page.get_by_role("button", name="Send the request").click()
    expect(ana.page.get_by_text("Waiting for a data steward.")).to_be_visible()
    at = ana.page.url
    ana.shot("request")

    sue.page.get_by_role("link", name="Data sets").first.click()
    sue.page.get_by_role("link", name="1 request for budget").click()
    sue.page.get_by_role("region", name="Waiting for a decision").get_by_role("link").click()
    sue.page.get_by_label("New budget ε, in all").fill("3")
    sue.page.locator("#grant-reason").fill("the second wave")
    sue.page.locator("#grant-word").fill("use it well")
    sue.page.get_by_role("button", name="Review the budget").click()
    expect(sue.page.get_by_role("row", name="Budget, in all")).to_contain_text("ε = 3")
    sue.shot("review")
    sue.page.get_by_role("button", name="Set the budget").click()
    expect(sue.page.get_by_text("Granted by steward")).to_be_visible()

    ana.page.goto(at)
    expect(ana.page.get_by_text("use it well")).to_be_visible()
    ana.page.get_by_role("link", name="Preview a query").click()
    ana.spend("0.75")
    ana.ask()
    ana.sees_plot()
    sue.page.goto(f"{service.url}/ui/spending?dataset=clinic&by=question")
    expect(sue.page.get_by_role("listitem").filter(has_text="count: ε = 1.65")).to_be_visible()
    assert ana.complaints == sue.complaints == []


def test_a_watch_is_opened_and_fed_from_a_file(
    chromium: Browser, trial_service: tuple[Trial, Service], tmp_path: Path
) -> None:
    offered, service = trial_service
    ana = visitor(chromium, service)
    ana.sign_in(offered.analyst)
    ana.page.get_by_role("link", name="Streams").click()
    ana.page.get_by_role("link", name="beds When does an outlier occur?").click()
    ana.spend("2")
    box = ana.page.get_by_label("Run it anyway")
    if box.count():
        box.check()
    ana.page.get_by_role("button", name="Open a watch").click()
    expect(ana.page.get_by_role("heading", name="Watch on beds")).to_be_visible()
    file = tmp_path / "readings.csv"
    file.write_text("temperature\n" + "".join(f"{36.5 + row % 5 / 10}\n" for row in range(200)))
    ana.page.get_by_label("File", exact=True).set_input_files(file)
    expect(ana.page.locator("#file-said")).to_contain_text("readings.csv is in the form")
    assert kept_form(ana, "form[action$=observations]") == {}
    ana.page.get_by_role("button", name="Decide").click()
    expect(ana.page.get_by_role("status")).to_contain_text("200 observations decided, starting with number 1")
    expect(ana.page.locator("svg.bars:visible")).to_be_visible()
    expect(ana.page.get_by_label("Observations, starting with number 201")).to_have_value("")
    assert ana.complaints == []


@needs_axe
@pytest.mark.parametrize(
    "look", [{"color_scheme": "light"}, {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}}], ids=str
)
def test_no_page_of_a_steward_has_a_fault_that_axe_finds(
    chromium: Browser, trial_service: tuple[Trial, Service], look: dict[str, object]
) -> None:
    offered, service = trial_service
    sue, axe = visitor(chromium, service, bypass_csp=True, **look), import_module(f"{AXE}.sync_playwright").Axe()
    sue.sign_in(offered.steward)
    for path in PAGES:
        sue.page.goto(f"{service.url}/ui/{path}")
        found = axe.run(sue.page).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], path
        assert sue.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, path


def kept_form(one: Visitor, form: str) -> Any:
    """What the tab keeps of a form when it is sent."""
    return one.page.evaluate(
        "form => { document.querySelector(form).dispatchEvent(new Event('submit'));"
        " return Object.fromEntries(Object.entries(sessionStorage).filter(([, text]) => text)); }",
        form,
    )


def test_what_was_typed_waits_for_whoever_typed_it(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    ana, at = visitor(chromium, service), f"{service.url}/ui/datasets/beds/request#typed"
    ana.sign_in(offered.analyst)
    ana.page.goto(at)
    ana.page.get_by_label("What is it for?").fill("a study of mine")
    assert "study" in str(kept_form(ana, "form[action$=request]"))
    ana.page.reload()
    expect(ana.page.get_by_label("What is it for?")).to_have_value("a study of mine")
    kept_form(ana, "form[action$=request]")
    ana.page.context.clear_cookies()  # the session is over, and somebody else signs in here
    ana.sign_in(offered.steward)
    assert "study" not in str(kept_form(ana, "form.who"))
    ana.page.goto(at)
    expect(ana.page.get_by_label("What is it for?")).to_have_value("")
