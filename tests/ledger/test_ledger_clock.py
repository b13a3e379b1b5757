"""A clock that is set back: the chain holds, and no limit lets more through than before."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from ledgers import ask
from test_one_account import set_clock

from wallflower.errors import BudgetExhausted
from wallflower.ledger import Ledger
from wallflower.privacy import Loss

LATE, EARLY = datetime(2027, 1, 5, 12, tzinfo=UTC), datetime(2026, 12, 20, 12, tzinfo=UTC)


def test_no_row_is_older_than_the_one_before_and_the_chain_holds(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, LATE)
    paid = ask(ledger, "1/8")
    set_clock(monkeypatch, EARLY)
    ask(ledger, "1/8")
    ledger.record(paid, {"value": 1})
    ask(ledger, "1/8", dataset="other")
    times = [entry.time for entry in ledger.history()]
    assert times == [LATE.isoformat(timespec="seconds")] * 4
    set_clock(monkeypatch, LATE.replace(day=6))
    ask(ledger, "1/8")
    assert ledger.history()[-1].time > times[-1]
    assert ledger.verify().entries == 5


def test_a_limit_that_has_expired_stays_so(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, EARLY)
    ledger.grant("icu", Loss("1"), by="steward", expires=date(2026, 12, 31))
    ask(ledger, "1/8")
    set_clock(monkeypatch, LATE)
    ask(ledger, "1/8", dataset="other")
    for moment in (LATE, EARLY):
        set_clock(monkeypatch, moment)
        assert ledger.account("icu").is_expired
        with pytest.raises(BudgetExhausted, match="expired on 2026-12-31"):
            ask(ledger, "1/8")
    ledger.grant("icu", Loss("1"), by="steward", expires=date(2027, 12, 31))
    ask(ledger, "1/8")


def test_what_is_spent_under_a_clock_that_was_set_back_counts_in_the_year_that_had_begun(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, LATE)
    ledger.grant("icu", Loss("9"), by="steward", pace="1")
    ask(ledger, "1/2")
    set_clock(monkeypatch, EARLY)
    ask(ledger, "1/2")
    for moment in (EARLY, LATE, LATE.replace(month=12)):
        set_clock(monkeypatch, moment)
        with pytest.raises(BudgetExhausted, match="may be spent a year"):
            ask(ledger, "1/8")
    set_clock(monkeypatch, LATE.replace(year=2028))
    ask(ledger, "1")
