"""What was spent when, by whom, on what: sums that agree with the account, and a projection only where there is one."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from page_client import COUNT, Browser, text, words
from served import Service, run_service, settings

from wallflower.drawing.charts import stacked_bars
from wallflower.ledger import Account, Ledger
from wallflower.privacy import Loss
from wallflower.service.core.spending import Expense, budget_symbol, project_exhaustion, summarise_expenses

TODAY = date(2030, 6, 30)


def expense(days_ago: int, epsilon: str = "1/10", analyst: str = "ana", question: str = "count") -> Expense:
    amount = Fraction(epsilon)
    day = TODAY - timedelta(days=days_ago)
    return Expense(day=day, analyst=analyst, question=question, dataset="ward", epsilon=amount, rho=amount * amount / 2)


@pytest.fixture
def account(tmp_path: Path) -> Account:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("ward", Loss("2"), by="sue", reason="study 12")
        return ledger.account("ward")


@pytest.mark.parametrize(("days", "step"), [(10, "day"), (90, "week"), (365, "month")])
def test_every_amount_is_in_one_period(days: int, step: str) -> None:
    found = [expense(ago, analyst=f"a{ago % 9}") for ago in range(0, days, 3)]
    past = summarise_expenses(found, "analyst", "ε", first=TODAY - timedelta(days=days - 1), last=TODAY)
    assert past.step == step
    assert past.total == sum(one.epsilon for one in found)
    assert len(past.series) <= 7
    assert {len(row) for row in past.series.values()} == {len(past.periods)}
    days_below = [period.isoformat() for period in past.periods]
    drawn = stacked_bars(days_below, past.series, symbol="ε", titles=days_below, said="spent")
    once = sum(bool(amount) for row in past.series.values() for amount in row)
    wide, narrow = drawn.split("</svg>")[:2]
    assert wide.count("<rect") == narrow.count("<rect") == once
    assert "on-narrow" in narrow
    assert narrow.count('text-anchor="middle"') <= 4  # days below do not run into one another


def test_what_is_before_the_first_day_is_left_out() -> None:
    past = summarise_expenses([expense(40), expense(1)], "question", "ε", first=TODAY - timedelta(days=29), last=TODAY)
    assert past.total == Fraction("1/10")
    assert not summarise_expenses([], "question", "ε", first=TODAY, last=TODAY).total


def test_a_straight_line_meets_the_limit(account: Account) -> None:
    found = [expense(ago) for ago in range(29, -1, -3)]  # ten charges: ε = 1 in 30 days, since 30 days
    spent = Account.from_json(
        {**account.to_json(), "spent": {"epsilon": "1", "delta": "0", "rho": "1/20", "unsummed": "0", "unsquared": "0"}}
    )
    seen = project_exhaustion(found, spent, TODAY)
    assert seen.spent == 1
    assert seen.day == TODAY + timedelta(days=30)
    assert seen.text == ""


def test_a_limit_that_ends_before_is_not_reached(account: Account) -> None:
    found = [expense(ago) for ago in range(29, -1, -3)]
    seen = project_exhaustion(found, replace(account, expires="2030-07-31"), TODAY)
    assert (seen.day, seen.text) == (None, "not before its last day, 2030-07-31")
    seen = project_exhaustion(found, replace(account, expires="2030-09-01"), TODAY)
    assert seen.day == TODAY + timedelta(days=60)


def test_a_rule_that_counts_no_more_carries_nothing_on(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.grant("ward", Loss("5", delta="1e-5"), by="sue", reason="study 12", accounting="either")
        account = ledger.account("ward")
    stated = account.to_json() | {
        "spent": {"epsilon": "0", "delta": "0", "rho": "1/100", "unsummed": "1", "unsquared": "0"}
    }
    seen = project_exhaustion([expense(ago, "1/2") for ago in (20, 10, 5)], Account.from_json(stated), TODAY)
    assert seen.day is not None
    left = account.limit.rho - Fraction("1/100")
    assert seen.day == TODAY + timedelta(days=int(left / (3 * Fraction("1/8") / 21)))


@pytest.mark.parametrize(
    "found", [[], [expense(1)], [expense(1), expense(1), expense(1)], [expense(50), expense(40), expense(1)]]
)
def test_too_little_gives_no_projection(account: Account, found: list[Expense]) -> None:
    seen = project_exhaustion(found, account, TODAY)
    assert seen.day is None
    assert seen.text.startswith("no projection")


def test_a_slow_pace_gives_no_day(account: Account) -> None:
    seen = project_exhaustion([expense(ago, "1/100000") for ago in (20, 10, 5)], account, TODAY)
    assert (seen.day, budget_symbol(account)) == (None, "ε")
    assert "not within ten years" in seen.text


def test_the_page_has_the_sums_of_the_account(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, failures=10_000)) as service:
        core = service.app.state.core
        core.ledger.grant("ward", Loss("2"), by="sue", reason="study 12")
        for name in ("ana", "<b>bo"):
            browser = Browser(service).sign_in(service.token(name).token)
            for epsilon in ("0.01", "0.02"):
                assert browser.post("/ui/datasets/ward/ask/count", {**COUNT, "epsilon": epsilon}).status == 303
        sue = sign_in_steward(service)
        page = sue.get("/ui/spending?dataset=ward&by=analyst&period=30")
        assert "ana: ε = 0.03" in words(page)
        assert "<b>" not in text(page)
        assert text(page).count("<rect") == 6  # a bar for a core, one for a phone and a key for each
        assert "no projection" in words(page)
        assert core.ledger.account("ward").spent.epsilon == Fraction("0.06")
        by_question = words(sue.get("/ui/spending?by=question&period=all&dataset=none"))
        assert "count: ε = 0.06" in by_question
        assert "Nothing was spent in this period" in words(sue.get("/ui/spending?dataset=beds"))


def test_a_token_tells_who_issued_it_and_when_it_was_used(tmp_path: Path) -> None:
    with run_service(settings(tmp_path, failures=10_000)) as service:
        sue = service.token("sue", "steward")
        made = sue.post("/v1/tokens", {"name": "cy", "scope": "analyst"}).json
        found = {one["id"]: one for one in sue.get("/v1/tokens").json["tokens"]}
        assert (found[made["id"]]["issued_by"], found[made["id"]]["last_used"]) == ("sue", None)
        assert service[made["text"]].get("/v1/whoami").status == 200
        found = {one["id"]: one for one in sue.get("/v1/tokens").json["tokens"]}
        used = found[made["id"]]["last_used"]
        assert used >= found[made["id"]]["created"]
        page = words(sign_in_steward(service).get("/ui/tokens"))
        assert used[:16].replace("T", " ") in page
        assert "operator of the service" in page


def sign_in_steward(service: Service) -> Browser:
    return Browser(service).sign_in(service.token("sue", "steward").token)
