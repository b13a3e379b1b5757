"""The analyst's way in a real browser: plan, confirm, pay, read; Back, reload, two tabs, a session that ends, a link
from elsewhere; by keyboard; and every page held to axe on a phone and a desktop, in the light and in the dark."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

import pytest
from chromium_visitor import LOSS, PATIENCE, Visitor, chromium, visitor
from playwright.sync_api import Browser, Page, Route, expect
from served import Service, run_service

from browser import AXE, needs_axe, needs_chromium
from wallflower.privacy import Loss
from wallflower.service.demo import Trial, trial
from wallflower.service.settings import Settings

__all__ = ["chromium"]  # a fixture

pytestmark = [pytest.mark.slow, needs_chromium]

COUNT = "/ui/datasets/tumours/plan/count"
SETTINGS = "neighbours=4&radius=1.1&epsilon=0.7"
PAGES = {
    "sign-in": "/ui/sign-in?next=%2Fui%2Freleases",
    "home": "/ui/",
    "data set": "/ui/datasets/tumours",
    "stream": "/ui/datasets/beds",
    "planner": COUNT,
    "faults": f"{COUNT}?neighbours=x&radius=-1&epsilon=1",
    "own units": "/ui/datasets/beds/plan/watch",
    "choices": "/ui/datasets/tumours/plan/explain",
    "payment": f"/ui/datasets/tumours/confirm/count?{SETTINGS}&nonce=n",
}
VIEWS = [(320, "dark"), (1280, "light")]


@pytest.fixture(scope="module")
def trial_service() -> Iterator[tuple[Trial, Service]]:
    with (
        trial(Settings(port=0, quantum_seconds=0.02, reauth_seconds=3600)) as offered,
        run_service(offered.settings) as running,
    ):
        running.app.state.core.ledger.grant("tumours", Loss("100"), by="sue", reason="a test")
        yield offered, running


@pytest.fixture
def ana(chromium: Browser, trial_service: tuple[Trial, Service]) -> Iterator[Visitor]:
    offered, service = trial_service
    somebody = visitor(chromium, service)
    somebody.sign_in(offered.analyst)
    yield somebody
    assert somebody.complaints == []
    somebody.page.context.close()


def charges(service: Service) -> int:
    return len(service.app.state.core.entries(event="charge", last=1000))


def end_session(ana: Visitor) -> None:
    """What being idle for too long does, without the wait."""
    pages = next(route for route in ana.service.app.routes if getattr(route, "path", "") == "/ui")
    (cookie,) = (one for one in ana.page.context.cookies() if one["name"] == "wallflower")
    pages.app.state.sessions.end(cookie["value"])


def sign_in_again(page: Page, token: str) -> None:
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    page.get_by_label("Your token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def expect_plan(page: Page, epsilon: str) -> None:
    expect(page.get_by_label(LOSS)).to_have_value(epsilon)
    expect(page.locator("#plan")).to_contain_text(f"ε = {epsilon}")
    expect(page.get_by_role("button", name="Continue to run")).to_be_enabled()


def test_settings_outlive_reload_and_back_and_are_paid_once(ana: Visitor) -> None:
    page, before = ana.page, charges(ana.service)
    page.goto(f"{ana.service.url}{COUNT}")
    page.locator("#f-radius").fill("1.1")
    page.locator("#f-columns").get_by_label("mean area").check()
    ana.spend("0.7")
    page.reload()
    expect_plan(page, "0.7")
    expect(page.locator("#f-radius")).to_have_value("1.1")
    expect(page.locator("#f-columns").get_by_label("mean area")).to_be_checked()
    page.get_by_role("button", name="Continue to run").click()
    expect(page.get_by_role("heading", name="Run this query?")).to_be_visible()
    expect(page.locator("main")).to_contain_text("ε = 99.3")
    page.go_back()
    expect_plan(page, "0.7")
    expect(page.locator("#f-columns").get_by_label("mean area")).to_be_checked()
    page.go_forward()
    page.reload()
    page.get_by_role("button", name="and run").click()
    page.wait_for_url("**/ui/releases/*")
    made = page.url
    page.go_back()
    page.get_by_role("button", name="and run").click()  # the same form: it is paid, and read again
    page.wait_for_url("**/ui/releases/*")
    assert page.url == made
    assert charges(ana.service) == before + 1


def test_two_tabs_are_two_questions(ana: Visitor) -> None:
    before, tabs = charges(ana.service), [ana.page, ana.page.context.new_page()]
    for tab, epsilon in zip(tabs, ("0.6", "0.8"), strict=True):
        tab.set_default_timeout(PATIENCE)
        tab.goto(f"{ana.service.url}{COUNT}?neighbours=4&radius=1.1&epsilon={epsilon}")
    places = []
    for tab, epsilon in zip(tabs, ("0.6", "0.8"), strict=True):
        expect_plan(tab, epsilon)
        tab.get_by_role("button", name="Continue to run").click()
        expect(tab.locator("main")).to_contain_text(f"ε = {epsilon}")
        tab.get_by_role("button", name="and run").click()
        tab.wait_for_url("**/ui/releases/*")
        places.append(tab.url)
    assert len(set(places)) == 2
    assert charges(ana.service) == before + 2


def test_a_session_that_ends_while_planning_or_paying_loses_nothing(
    ana: Visitor, trial_service: tuple[Trial, Service]
) -> None:
    page, before = ana.page, charges(ana.service)
    page.goto(f"{ana.service.url}{COUNT}")
    expect_plan(page, "0.5")
    end_session(ana)
    page.locator("#f-radius").fill("1.15")
    sign_in_again(page, trial_service[0].analyst)
    expect(page.locator("#f-radius")).to_have_value("1.15")
    ana.spend("0.9")
    page.get_by_role("button", name="Continue to run").click()
    expect(page.get_by_role("heading", name="Run this query?")).to_be_visible()
    end_session(ana)
    page.get_by_role("button", name="and run").click()
    sign_in_again(page, trial_service[0].analyst)
    expect(page.get_by_role("heading", name="Run this query?")).to_be_visible()
    assert charges(ana.service) == before
    page.get_by_role("button", name="and run").click()
    page.wait_for_url("**/ui/releases/*")
    assert charges(ana.service) == before + 1


def test_what_a_steward_typed_is_there_after_signing_in_again(
    chromium: Browser, trial_service: tuple[Trial, Service]
) -> None:
    offered, service = trial_service
    sue = visitor(chromium, service)
    sue.sign_in(offered.steward)
    sue.page.goto(f"{service.url}/ui/tokens")
    sue.page.get_by_label("Name").fill("kim")
    end_session(sue)
    sue.page.get_by_role("button", name="Issue").click()
    sign_in_again(sue.page, offered.steward)
    expect(sue.page.get_by_label("Name")).to_have_value("kim")
    assert "kim" not in [token.name for token in service.app.state.core.tokens.all()]
    assert sue.complaints == []


def test_a_link_from_another_site_finds_the_session(ana: Visitor) -> None:
    elsewhere = ana.service.url.replace("127.0.0.1", "localhost")
    ana.page.goto(f"{elsewhere}/healthz")
    ana.page.evaluate("place => { location.href = place }", f"{ana.service.url}{COUNT}?{SETTINGS}")
    expect_plan(ana.page, "0.7")


def test_a_plan_that_is_not_of_this_form_cannot_be_paid(ana: Visitor) -> None:
    page, held = ana.page, list[Route]()
    page.goto(f"{ana.service.url}{COUNT}")
    expect(page.locator("#plan")).to_contain_text("Example answer (synthetic data):")
    page.route("**/plan/count", lambda route: held.append(route))
    with page.expect_request("**/plan/count"):
        page.get_by_label(LOSS).fill("0.37")
    expect(page.get_by_role("button", name="Continue to run")).to_be_disabled()
    expect(page.locator("#plan")).to_have_attribute("aria-busy", "true")
    held[0].continue_()
    expect_plan(page, "0.37")
    page.unroute("**/plan/count")
    page.locator("#f-neighbours").fill("too many")
    fault = page.locator("#e-neighbours")
    expect(fault).to_have_text("'too many' is not a whole number. Write one, such as 5.")
    expect(page.locator("#f-neighbours")).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("button", name="Continue to run")).to_be_disabled()
    page.locator("#f-neighbours").fill("6")
    expect(fault).to_be_empty()
    expect(page.get_by_role("button", name="Continue to run")).to_be_enabled()


def test_the_question_is_asked_by_keyboard_alone(ana: Visitor) -> None:
    page = ana.page
    page.goto(f"{ana.service.url}{COUNT}?{SETTINGS}")
    page.locator("#f-neighbours").focus()
    page.keyboard.press("Tab")
    expect(page.locator("#f-radius")).to_be_focused()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.value") == "mean area":
            page.keyboard.press("Space")
        if page.evaluate("document.activeElement.id") == "slider":
            break
    expect(page.locator("#f-columns").get_by_label("mean area")).to_be_checked()
    page.keyboard.press("End")
    expect_plan(page, "5")
    page.get_by_role("button", name="Continue to run").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Run this query?")).to_be_visible()


def test_on_a_phone_the_effect_is_seen_beside_the_slider(
    chromium: Browser, trial_service: tuple[Trial, Service]
) -> None:
    offered, service = trial_service
    ana = visitor(chromium, service, viewport={"width": 390, "height": 844})
    ana.sign_in(offered.analyst)
    ana.page.goto(f"{service.url}{COUNT}?{SETTINGS}")
    ana.page.locator("#slider").scroll_into_view_if_needed()
    expect(ana.page.locator("#slider")).to_be_in_viewport()
    expect(ana.page.locator("#effect")).to_be_in_viewport()
    before = ana.page.locator("#effect").inner_text()
    ana.page.locator("#slider").focus()
    ana.page.keyboard.press("End")
    expect(ana.page.locator("#effect")).not_to_have_text(before)
    expect(ana.page.locator("#effect")).to_be_in_viewport()


@needs_axe
@pytest.mark.parametrize(("width", "scheme"), VIEWS)
def test_no_page_has_a_fault_that_axe_finds_or_is_wider_than_the_screen(
    chromium: Browser, trial_service: tuple[Trial, Service], width: int, scheme: str
) -> None:
    offered, service = trial_service
    axe = import_module(f"{AXE}.sync_playwright").Axe()
    ana = visitor(chromium, service, viewport={"width": width, "height": 800}, color_scheme=scheme)
    found: dict[str, list[str]] = {}
    for name, place in PAGES.items():
        if name == "home":
            ana.sign_in(offered.analyst)
        ana.page.goto(f"{service.url}{place}", wait_until="networkidle")
        ana.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        told = axe.run(ana.page).response["violations"]
        found[name] = [f"{one['id']}: {one['nodes'][0]['html'][:160]}" for one in told]
        assert ana.page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert found == {name: [] for name in PAGES}
