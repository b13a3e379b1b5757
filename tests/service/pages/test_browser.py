"""Data set way in a real browser: sign in, plan, ask, see the plot, be refused, be granted more, ask again."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium_visitor import LOSS, chromium, trial_service, visitor
from playwright.sync_api import Browser, Request, Route, expect
from served import Service, run_service, settings

from browser import needs_chromium
from wallflower.service.demo import Trial, trial
from wallflower.service.settings import Settings

__all__ = ["chromium", "trial_service"]  # fixtures

pytestmark = [
    pytest.mark.slow,
    needs_chromium,
]


def planner(service: Service) -> str:
    return f"{service.url}/ui/datasets/tumours/plan/count"


def test_from_signing_in_to_a_grant_and_on(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    ana, sue = visitor(chromium, service), visitor(chromium, service)
    ana.sign_in(offered.analyst)
    ana.plan("How many outliers are there?")
    before = ana.page.locator("#plan .dot").get_attribute("cx")
    ana.page.locator("#slider").fill("0")
    expect(ana.page.get_by_label(LOSS)).to_have_value("1")
    expect(ana.page.locator("#plan .dot")).not_to_have_attribute("cx", before or "")
    expect(ana.page.locator("#plan")).to_contain_text("ε = 1")
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
    expect(ana.page.get_by_role("alert")).to_contain_text("asked for ε = 0.75, ε = 0.5 is left (epsilon is short)")
    ana.shot("refusal")

    sue.sign_in(offered.steward)
    sue.page.goto(f"{service.url}/ui/datasets/tumours/budget")
    limit = sue.page.get_by_role("region", name="Set the budget")
    limit.get_by_label("ε", exact=True).fill("12")
    limit.get_by_label("Reason").fill("study 12")
    limit.get_by_role("button", name="Review the budget").click()
    expect(sue.page.get_by_role("alert")).to_contain_text("above ε = 10")
    expect(limit.get_by_label("Reason")).to_have_value("study 12")
    limit.get_by_label("ε", exact=True).fill("8")
    limit.get_by_role("button", name="Review the budget").click()
    expect(sue.page.get_by_role("row", name="Budget, in all")).to_contain_text("ε = 3ε = 8")
    sue.page.get_by_role("button", name="Set the budget").click()
    expect(sue.page.get_by_role("status")).to_contain_text("The budget is set.")
    expect(sue.page.get_by_role("row", name="analyst ε")).to_contain_text("ε = 2.5")
    sue.shot("budget")

    ana.page.get_by_role("link", name="Back to the query").click()
    expect(ana.page.get_by_label(LOSS)).to_have_value("0.75")
    ana.ask()
    ana.sees_plot()
    sue.page.get_by_role("link", name="Ledger").click()
    expect(sue.page.get_by_role("status")).to_contain_text("The chain is valid")
    assert ana.complaints == sue.complaints == []


def test_the_other_questions_are_asked_and_drawn(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    sue = visitor(chromium, service, viewport={"width": 390, "height": 844}, color_scheme="dark")
    sue.sign_in(offered.steward)
    for question in ("When does an outlier occur?", "What is typical, as a whole or in each bucket of a season?"):
        sue.plan(question, "beds")
        sue.ask()
        sue.sees_plot()
    expect(sue.page.get_by_role("row", name="Cost")).to_contain_text("It cost ε = 1. ε = 1 is left for steward.")
    sue.plan("Why is this record an outlier?")
    expect(sue.page.locator("#plan")).to_contain_text("required")
    sue.page.locator("#f-record").fill("3")
    sue.page.locator("#f-metric").select_option("mean radius")
    sue.page.locator("#f-context").get_by_label("mean texture").check()
    expect(sue.page.locator("#plan")).to_contain_text("cost of one answer")
    expect(sue.page.locator("#plan")).to_contain_text("query states ε = 1")
    sue.ask()
    sue.page.wait_for_url("**/ui/releases/*")
    drawn = 0 if sue.page.get_by_text("None: no context").count() else 1  # as the noise has it
    sue.sees_plot(drawn)
    assert sue.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert sue.complaints == []


def test_what_is_typed_before_the_script_runs_is_planned(
    chromium: Browser, trial_service: tuple[Trial, Service]
) -> None:
    offered, service = trial_service
    ana, held = visitor(chromium, service), list[Route]()
    ana.sign_in(offered.analyst)
    ana.page.route("**/planner.js*", lambda route: held.append(route))
    with ana.page.expect_request("**/planner.js*"):
        ana.page.goto(planner(service), wait_until="commit")
    ana.page.get_by_label(LOSS).fill("0.37")
    assert "ε = 0.37" not in ana.page.locator("#plan").inner_text()
    held[0].continue_()
    expect(ana.page.locator("#plan")).to_contain_text("ε = 0.37")
    expect(ana.page.locator("#slider")).to_have_value("-0.43")
    assert ana.complaints == []


def test_an_untouched_form_is_not_planned_again(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    ana, calls = visitor(chromium, service), list[str]()
    ana.sign_in(offered.analyst)
    ana.page.goto(planner(service))
    plans = ana.page.locator("#plan")
    expect(plans).to_contain_text("Example answer (synthetic data):")
    ana.page.on("request", lambda request: calls.append(request.post_data or "") if request.method == "POST" else None)
    ana.spend("0.37")
    expect(plans).to_contain_text("Example answer (synthetic data):")  # it follows the plan
    assert [("epsilon=0.37" in call, "example=" in call) for call in calls] == [(True, False), (True, True)]


@pytest.mark.parametrize("status", [422, 500])
def test_a_plan_that_fails_says_so_and_the_old_one_goes(
    chromium: Browser, trial_service: tuple[Trial, Service], status: int
) -> None:
    offered, service = trial_service
    ana = visitor(chromium, service)
    ana.sign_in(offered.analyst)
    ana.page.goto(planner(service))
    said = {422: '<main><p role="alert">The form cannot be read.</p></main>', 500: "Internal Server Error"}[status]
    ana.page.route("**/plan/count", lambda route: route.fulfill(status=status, content_type="text/html", body=said))
    ana.page.get_by_label(LOSS).fill("0.37")
    why = {422: "The form cannot be read.", 500: "The service could not work it out."}[status]
    for place in ("#plan", "#said"):
        expect(ana.page.locator(place)).to_contain_text(f"There is no plan of what the form says now. {why}")
    expect(ana.page.locator("#plan .dot")).to_have_count(0)
    expect(ana.page.locator("#plan")).not_to_have_attribute("aria-busy", "true")
    expect(ana.page.get_by_role("button", name="Preview accuracy and cost")).to_be_visible()
    ana.page.unroute("**/plan/count")
    ana.spend("0.38")
    expect(ana.page.get_by_role("button", name="Preview accuracy and cost")).to_be_hidden()


def test_a_service_that_cannot_be_reached_is_said(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    ana = visitor(chromium, service)
    ana.sign_in(offered.analyst)
    ana.page.goto(planner(service))
    ana.page.route("**/plan/count", lambda route: route.abort())
    ana.page.get_by_label(LOSS).fill("0.37")
    expect(ana.page.locator("#plan")).to_have_text(
        "There is no plan of what the form says now. The service does not answer. Try again when it can be reached."
    )


def test_an_answer_that_comes_late_does_not_replace_a_later_one(
    chromium: Browser, trial_service: tuple[Trial, Service]
) -> None:
    offered, service = trial_service
    ana, held = visitor(chromium, service), list[Route]()
    ana.sign_in(offered.analyst)
    ana.page.goto(planner(service))
    ana.page.route("**/plan/count", lambda route: route.continue_() if held else held.append(route))
    with ana.page.expect_request("**/plan/count"):
        ana.page.get_by_label(LOSS).fill("0.37")
    expect(ana.page.locator("#plan")).to_have_attribute("aria-busy", "true")
    ana.spend("0.38")
    held[0].fulfill(status=200, content_type="text/html", body="<p>late</p>")
    ana.page.wait_for_timeout(300)
    expect(ana.page.locator("#plan")).to_contain_text("ε = 0.38")
    expect(ana.page.locator("#plan")).not_to_contain_text("late")


def test_what_comes_late_moves_no_button_that_is_pressed(
    chromium: Browser, trial_service: tuple[Trial, Service]
) -> None:
    offered, service = trial_service
    ana, held = visitor(chromium, service, viewport={"width": 390, "height": 844}), list[Route]()
    ana.sign_in(offered.analyst)

    def is_late(request: Request) -> bool:
        return "example=yes" in (request.post_data or "")

    ana.page.route("**/plan/count", lambda route: held.append(route) if is_late(route.request) else route.continue_())
    with ana.page.expect_request(is_late):
        ana.page.goto(planner(service))
    button = ana.page.get_by_role("button", name="Continue to run")
    button.hover()
    ana.page.mouse.down()
    with ana.page.expect_response(lambda answer: is_late(answer.request)) as answered:
        held[0].continue_()
    answered.value.finished()
    ana.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    ana.page.mouse.up()
    expect(ana.page.get_by_role("button", name="and run")).to_be_visible()
    assert ana.complaints == []


def test_what_waited_for_a_button_is_shown_when_it_is_let_go(
    chromium: Browser, trial_service: tuple[Trial, Service]
) -> None:
    offered, service = trial_service
    ana = visitor(chromium, service)
    ana.sign_in(offered.analyst)
    ana.page.goto(planner(service))
    expect(ana.page.locator("#plan")).to_contain_text("Example answer (synthetic data):")
    ana.page.get_by_text("More settings").hover()
    ana.page.mouse.down()
    with ana.page.expect_response("**/plan/count") as answered:
        ana.page.get_by_label(LOSS).fill("0.37")
    answered.value.finished()
    assert "ε = 0.37" not in ana.page.locator("#plan").inner_text()
    ana.page.mouse.up()
    expect(ana.page.locator("#plan")).to_contain_text("ε = 0.37")


def test_a_form_shows_the_settings_of_the_mode_that_is_chosen(
    chromium: Browser, trial_service: tuple[Trial, Service]
) -> None:
    offered, service = trial_service
    ana = visitor(chromium, service)
    ana.sign_in(offered.analyst)
    ana.plan("When does an outlier occur?")
    ana.page.get_by_text("More settings").click()
    scores, cutoff = (ana.page.locator(f"#f-{name}") for name in ("scores", "cutoff"))
    expect(scores).to_be_visible()
    expect(cutoff).to_be_hidden()
    ana.page.locator("#f-level").select_option("person")
    expect(cutoff).to_be_visible()
    expect(scores).to_be_hidden()
    cutoff.fill("3")
    ana.page.locator("#f-level").select_option("entry")
    for name, value in {"threshold": "8", "low": "5", "high": "30"}.items():
        ana.page.locator(f"#f-{name}-own").fill(value)
    ana.spend("0.37")  # what was typed for the other mode is not sent with this one, which would refuse it
    expect(cutoff).to_be_disabled()
    assert ana.complaints == []


def test_without_script_forms_do_it(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    ana = visitor(chromium, service, java_script_enabled=False)
    ana.sign_in(offered.analyst)
    ana.plan("How many outliers are there?")
    assert not ana.page.locator("#slider").is_visible()
    ana.page.get_by_label(LOSS).fill("0.05")
    ana.page.get_by_label(LOSS).press("Enter")  # plans, and never pays
    ana.page.wait_for_url("**/plan/count?*epsilon=0.05*")
    expect(ana.page.locator("#plan")).to_contain_text("ε = 0.05")
    ana.ask()
    ana.sees_plot()


def test_a_token_is_issued_shown_once_and_revoked(chromium: Browser, trial_service: tuple[Trial, Service]) -> None:
    offered, service = trial_service
    sue, bo = visitor(chromium, service), visitor(chromium, service)
    sue.sign_in(offered.steward)
    sue.page.get_by_role("link", name="Tokens").click()
    sue.page.get_by_label("Name").fill("bo")
    sue.page.get_by_role("button", name="Issue").click()
    text = sue.page.locator("#token-text").inner_text()
    bo.sign_in(text)
    sue.page.reload()  # issues nothing, and shows nothing again
    assert text not in sue.page.content()
    sue.page.get_by_role("navigation").get_by_role("link", name="Actions").click()
    expect(sue.page.get_by_role("row", name="bo")).to_contain_text("token issued")
    sue.page.get_by_role("link", name="Tokens").click()
    row = sue.page.get_by_role("region", name="Tokens").get_by_role("row", name="bo")
    expect(row).to_have_count(1)
    row.get_by_role("link").click()
    sue.page.get_by_role("button", name="Revoke").click()
    expect(sue.page.get_by_role("status")).to_contain_text("revoked")
    bo.page.reload()
    expect(bo.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert sue.complaints == bo.complaints == []


def test_before_a_sensitive_act_the_token_is_entered_again(chromium: Browser) -> None:
    with (
        trial(Settings(port=0, quantum_seconds=0.02, reauth_seconds=0)) as offered,
        run_service(offered.settings) as service,
    ):
        sue = visitor(chromium, service, java_script_enabled=False)
        sue.sign_in(offered.steward)
        sue.page.goto(f"{service.url}/ui/datasets/tumours/budget")
        limit = sue.page.get_by_role("region", name="Set the budget")
        limit.get_by_label("ε", exact=True).fill("7")
        limit.get_by_label("Reason").fill("study 12")
        limit.get_by_role("button", name="Review the budget").click()
        sue.page.get_by_role("button", name="Set the budget").click()
        for token in (offered.analyst, offered.steward):
            expect(sue.page.get_by_role("heading", name="Enter your token again")).to_be_visible()
            sue.page.get_by_label("Your token").fill(token)
            sue.page.get_by_role("button", name="Continue").click()
        expect(sue.page.get_by_role("status")).to_contain_text("The budget is set.")
        assert sue.complaints == []


def test_a_steward_registers_rows_of_people(chromium: Browser, tmp_path: Path) -> None:
    rows = [(who, visit) for who in range(30) for visit in range(who % 7 + 1)]
    lines = "".join(f"P{who},{visit},{60 + (7 * who + visit) % 90}\n" for who, visit in rows)
    (tmp_path / "visits.csv").write_text(f"patient_no,day,pulse\n{lines}")
    with run_service(settings(tmp_path)) as service:
        sue = visitor(chromium, service)
        sue.sign_in(str(service.token("sue", "steward").token))
        sue.page.goto(f"{service.url}/ui/register")
        sue.page.get_by_label("Name").fill("visits")
        sue.page.get_by_label("Source").select_option("visits.csv")
        sue.page.get_by_role("button", name="Draft the schema").click()
        expect(sue.page.get_by_role("status")).to_contain_text("patient_no repeats, up to 7 rows")
        sue.shot("people-notice")
        sue.page.get_by_label("Column that identifies a person").select_option("patient_no")
        sue.page.get_by_label("What is made of a person's rows").select_option("rollup")
        sue.page.get_by_role("button", name="Update the fields").click()
        expect(sue.page.get_by_role("status")).to_have_count(0)
        pulse = sue.page.get_by_role("group", name="pulse")
        pulse.get_by_label("Minimum").fill("0")
        pulse.get_by_label("Maximum").fill("220")
        pulse.get_by_label("Aggregate").select_option("max")
        sue.page.get_by_label("Name of a column with the number of rows").fill("visits")
        sue.page.get_by_label("Its public maximum").fill("20")
        sue.shot("people-rollup")
        sue.page.get_by_role("button", name="Register visits").click()
        sue.page.wait_for_url("**/ui/datasets/visits/budget?done=registered")
        expect(sue.page.locator("main")).to_contain_text("one person (all rows with the same patient_no)")
        sue.shot("people-budget")
        assert sue.complaints == []
