"""Budgets, shares, charges and releases, on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledgers import CONSTRAINED, Question, ask

from wallflower.errors import BudgetExhausted, KeyConflict, LedgerError, ParameterError, PrivacyError
from wallflower.ledger import Ledger
from wallflower.ledger.limits import STARTER
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.units import Claim, Protection

# Budgets


def test_a_new_data_set_has_the_starter_cap_and_says_so(ledger: Ledger) -> None:
    receipt = ask(ledger, "0.6")
    assert (receipt.starter, receipt.left, receipt.cost) == (True, Loss("0.4"), Loss("0.6"))
    assert (receipt.booked, receipt.limit) == (Loss("0.6"), Loss("1"))
    with pytest.raises(BudgetExhausted) as caught:
        ask(ledger, "0.5")
    assert (caught.value.asked, caught.value.left, caught.value.part) == (Loss("0.5"), Loss("0.4"), "epsilon")
    assert str(caught.value).startswith("icu: asked for ε = 0.5, ε = 0.4 is left (epsilon is short).")


def test_the_starter_cap_has_no_delta_and_no_other_kind(ledger: Ledger) -> None:
    for loss, part in ((Loss("0.1", delta="1e-9"), "delta"), (Loss.zcdp("0.01"), "epsilon")):
        with pytest.raises(BudgetExhausted) as caught:
            ledger.charge("icu", Question(loss), analyst="ana")
        assert caught.value.part == part
    with pytest.raises(BudgetExhausted, match="the steward has not allowed"):
        ledger.charge("icu", Question(CONSTRAINED), analyst="ana")


def test_every_limit_replaces_the_one_before(ledger: Ledger) -> None:
    ask(ledger, "0.75")
    ledger.grant("icu", Loss("2"), by="steward")
    assert ledger.remaining("icu") == Loss("1.25")
    ledger.grant("icu", Loss("2"), by="steward")
    assert ledger.remaining("icu") == Loss("1.25")
    ledger.grant("icu", Loss("1.5"), by="steward")
    assert (ledger.limit("icu"), ledger.spent("icu"), ledger.remaining("icu")) == (
        Loss("1.5"),
        Loss("0.75"),
        Loss("0.75"),
    )
    assert not ask(ledger, "0.25").starter


def test_a_limit_below_what_was_spent_leaves_nothing_and_undoes_nothing(ledger: Ledger) -> None:
    ask(ledger, "0.75")
    ledger.grant("icu", Loss("0.5"), by="steward")
    assert (ledger.remaining("icu"), ledger.spent("icu")) == (Loss("0"), Loss("0.75"))
    with pytest.raises(BudgetExhausted):
        ask(ledger, "1e-9")
    ledger.grant("icu", Loss("1"), by="steward")
    assert ask(ledger, "0.25").left == Loss("0")


def test_a_limit_of_nothing_closes_a_data_set(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("0"), by="steward")
    with pytest.raises(BudgetExhausted):
        ask(ledger, "1e-9")
    assert ledger.remaining("ward") == Ledger.STARTER


def test_kinds_and_units_are_one_account_and_data_sets_are_not(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward", accounting="concentrated")
    added = Loss("0.1", neighbours=Neighbours.ADD_REMOVE)
    for loss in (Loss("0.1"), added, Loss.zcdp("0.01"), Loss("0.1", delta="1e-9")):
        ledger.charge("icu", Question(loss), analyst="ana")
    ask(ledger, "0.9", dataset="ward")
    [account] = ledger.budget("icu")
    spent = Fraction("0.005") + Fraction("0.02") + Fraction("0.01") + Fraction("0.005")
    assert (account.spent.rho, account.spent.delta, account.spent.unsummed) == (spent, Fraction(1, 10**9), 1)
    assert ledger.spent("icu") == Loss.zcdp(spent)
    assert ledger.remaining("icu") == Loss.zcdp(account.limit.rho - spent)
    assert ledger.datasets() == ["icu", "ward"]
    assert ledger.remaining("ward") == Loss("0.1")


def test_the_budget_of_an_unknown_data_set_is_its_starter_cap(ledger: Ledger) -> None:
    [account] = ledger.budget("icu")
    assert (account.limit, account.left, account.starter, account.quotas) == (STARTER, Loss("1"), True, ())
    assert ledger.datasets() == []
    assert not ledger.knows("icu")


def test_epsilon_and_delta_must_both_fit(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("1", delta="1e-6"), by="steward", accounting="sum")
    with pytest.raises(BudgetExhausted, match="delta is short"):
        ledger.charge("icu", Question(Loss("0.1", delta="2e-6")), analyst="ana")
    ledger.charge("icu", Question(Loss("0.1", delta="1e-6")), analyst="ana")
    assert ledger.remaining("icu") == Loss("0.9")


def test_half_of_delta_is_for_questions_unless_said_otherwise(ledger: Ledger) -> None:
    for convert, questions in ((None, "5e-7"), ("1e-7", "9e-7"), ("1e-6", "0")):
        ledger.grant("icu", Loss("1", delta="1e-6"), by="steward", convert=convert)
        assert ledger.remaining("icu") == Loss("1", delta=questions)
        assert ledger.limit("icu") == Loss("1", delta="1e-6")


@pytest.mark.parametrize(
    ("loss", "more"),
    [
        (Loss("1", kind=Kind.METRIC, neighbours=Neighbours.READING), {}),
        (Loss("1"), {"accounting": "either"}),
        (Loss("1"), {"accounting": "concentrated"}),
        (Loss("1"), {"accounting": "pld"}),
        (Loss("1", delta="1e-6"), {"convert": "1e-5"}),
        (Loss("1"), {"convert": "1e-9"}),
        (Loss("1"), {"pace": "-1"}),
        (Loss("1"), {"pace": 0.5}),
        (Loss("1"), {"expires": "tomorrow"}),
        (Loss("1"), {"expires": datetime(2030, 1, 1, tzinfo=UTC)}),
        (Loss.zcdp("1"), {"accounting": "sum"}),
        (Loss.zcdp("1000000"), {}),
        (Loss("1/10007"), {}),
        (Loss("1", neighbours=Neighbours.WINDOW), {}),
    ],
    ids=str,
)
def test_what_is_no_limit_is_refused_and_changes_nothing(ledger: Ledger, loss: Loss, more: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        ledger.grant("icu", loss, by="steward", **more)
    assert ledger.history() == []


def test_a_grant_of_an_output_constrained_loss_is_an_allowance_and_no_limit(ledger: Ledger) -> None:
    assert ledger.grant("icu", CONSTRAINED, by="steward").event == "allowance"
    account = ledger.account("icu")
    assert (account.starter, account.fence.allowed, account.limit.epsilon) == (True, CONSTRAINED.amount, 1)


def test_losses_that_would_never_add_up_are_refused(ledger: Ledger) -> None:
    for loss in (Loss("1/10007"), Loss("0.1", delta="1/10007")):
        with pytest.raises(ParameterError, match=r"denominator.*Write it as a decimal"):
            ledger.charge("icu", Question(loss), analyst="ana")
    for loss in ("1/997", "1/3", "1e-99", "0.1234567890123456789"):
        ask(ledger, loss)
    assert ledger.remaining("icu").amount == 1 - Fraction(1, 997) - Fraction(1, 3) - Fraction("1e-99") - Fraction(
        "0.1234567890123456789"
    )


def test_a_delta_too_small_for_floats_is_a_delta(ledger: Ledger) -> None:
    tiny = Fraction(1, math.lcm(*range(1, 1001)))
    ledger.grant("icu", Loss("3", delta=2 * tiny), by="steward")
    assert ledger.account("icu").limit.holds
    with pytest.raises(BudgetExhausted, match="delta is short"):
        ledger.charge("icu", Question(Loss("0.1", delta=tiny, neighbours=Neighbours.ADD_REMOVE)), analyst="ana")
    ledger.charge("icu", Question(Loss("0.1", delta=tiny)), analyst="ana")


def test_a_price_that_would_never_add_up_is_rounded_up(ledger: Ledger) -> None:
    own = Claim(loss=Loss("0.1"), own=(("record", Fraction(10007, 9973)),))
    booked = ask(ledger, "0.1", claim=own).booked
    assert booked is not None
    assert 0 < booked.epsilon - Fraction(10007, 99730) < Fraction(1, 10**39)
    assert ledger.spent("icu") == booked


# Shares


def test_a_share_is_kept_for_its_analyst(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("2"), by="steward")
    ledger.set_quota("icu", "ana", Loss("1.5"), by="steward")
    assert [ledger.remaining("icu", analyst=name) for name in ("ana", "bo")] == [Loss("1.5"), Loss("0.5")]
    with pytest.raises(BudgetExhausted, match="the rest is kept for other analysts") as caught:
        ask(ledger, "0.6", analyst="bo")
    assert (caught.value.left, caught.value.part) == (Loss("0.5"), "quota")
    assert ask(ledger, "0.5", analyst="bo").left == Loss("0")
    assert ask(ledger, "1.5").left == Loss("0")
    assert ledger.remaining("icu") == Loss("0")


def test_an_analyst_with_a_share_stays_within_it_and_a_new_one_replaces_it(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("2"), by="steward")
    ledger.set_quota("icu", "ana", Loss("0.5"), by="steward")
    with pytest.raises(BudgetExhausted, match="your own quota is short"):
        ask(ledger, "0.6")
    ledger.set_quota("icu", "ana", Loss("0.75"), by="steward")
    assert ask(ledger, "0.6").left == Loss("0.15")
    account = ledger.account("icu")
    [share] = account.quotas
    assert (share.analyst, share.limit, share.spent, share.left) == ("ana", Loss("0.75"), Loss("0.6"), Loss("0.15"))
    assert (account.left, account.free) == (Loss("1.4"), Loss("1.25"))


def test_a_share_that_is_taken_back_is_free_again(ledger: Ledger) -> None:
    ledger.set_quota("icu", "ana", Loss("0.75"), by="steward")
    ask(ledger, "0.25")
    ledger.set_quota("icu", "ana", Loss("0"), by="steward", reason="left the project")
    assert ledger.account("icu").quotas == ()
    assert [ledger.remaining("icu", analyst=name) for name in ("ana", "bo")] == [Loss("0.75")] * 2
    ledger.set_quota("icu", "ana", Loss("0.5"), by="steward")
    assert ledger.remaining("icu", analyst="ana") == Loss("0.25")


def test_earlier_spending_does_not_count_against_a_first_share(ledger: Ledger) -> None:
    ask(ledger, "0.5")
    ledger.set_quota("icu", "ana", Loss("0.25"), by="steward")
    assert ledger.remaining("icu", analyst="ana") == Loss("0.25")
    assert ledger.remaining("icu", analyst="bo") == Loss("0.25")


def test_more_than_is_free_cannot_be_kept(ledger: Ledger) -> None:
    ask(ledger, "0.25", analyst="bo")
    ledger.set_quota("icu", "ana", Loss("0.5"), by="steward")
    with pytest.raises(BudgetExhausted) as caught:
        ledger.set_quota("icu", "cy", Loss("0.3"), by="steward")
    assert caught.value.left == Loss("0.25")
    assert len(ledger.history()) == 2


def test_the_limit_holds_even_when_shares_promise_more(ledger: Ledger) -> None:
    ledger.set_quota("icu", "ana", Loss("0.8"), by="steward")
    ledger.grant("icu", Loss("0.5"), by="steward")
    assert ledger.remaining("icu", analyst="ana") == Loss("0.5")
    assert ledger.remaining("icu", analyst="bo") == Loss("0")
    with pytest.raises(BudgetExhausted):
        ask(ledger, "0.6")


def test_a_share_is_stated_as_its_limit_is(ledger: Ledger) -> None:
    for loss in (Loss.zcdp("0.1"), CONSTRAINED):
        with pytest.raises(PrivacyError):
            ledger.set_quota("icu", "ana", loss, by="steward")
    ledger.grant("icu", Loss("1", delta="1e-6"), by="steward")
    with pytest.raises(ParameterError, match=r"no quota can be kept free.*sum or concentrated"):
        ledger.set_quota("icu", "ana", Loss("0.1"), by="steward")
    ledger.grant("icu", Loss("1", delta="1e-6"), by="steward", accounting="concentrated")
    ledger.set_quota("icu", "ana", Loss.zcdp("0.01"), by="steward")
    with pytest.raises(ParameterError, match="Take them back"):
        ledger.grant("icu", Loss("2"), by="steward")
    ledger.set_quota("icu", "ana", Loss.zcdp("0"), by="steward")
    ledger.grant("icu", Loss("2"), by="steward")


def test_a_share_in_epsilon_of_a_concentrated_limit_is_that_part_of_its_squares(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward", accounting="concentrated")
    limit = ledger.account("icu").limit
    ledger.set_quota("icu", "ana", Loss("1"), by="steward")
    ledger.set_quota("icu", "bo", Loss("2"), by="steward")
    assert ledger.remaining("icu", analyst="ana") == Loss.zcdp(limit.rho / 3)
    assert ledger.remaining("icu", analyst="bo") == Loss.zcdp(limit.rho * 2 / 3)
    assert ledger.remaining("icu", analyst="cy") == Loss.zcdp("0")
    quoted = [ledger.quote("icu", Question(Loss("0.1")), analyst=who).affords for who in ("ana", "bo", "cy")]
    assert quoted == [11, 23, 0]  # thirds of 35 questions
    with pytest.raises(BudgetExhausted, match="Keep less"):
        ledger.set_quota("icu", "cy", Loss("1e-9"), by="steward")
    with pytest.raises(ParameterError, match="in epsilon alone, or in rho"):
        ledger.set_quota("icu", "ana", Loss("1", delta="1e-7"), by="steward")
    ledger.set_quota("icu", "ana", Loss("0"), by="steward")
    assert ledger.remaining("icu", analyst="cy") == Loss.zcdp(limit.rho / 3)


def test_a_share_outlives_the_unit_it_was_given_in(ledger: Ledger) -> None:
    ledger.set_quota("icu", "ana", Loss("0.5"), by="steward")
    ledger.declare("icu", Protection(rows="time", unit="entry"), by="steward")
    assert [ledger.remaining("icu", analyst=name).epsilon for name in ("ana", "bo")] == [Fraction(1, 2)] * 2
    entry = Loss("0.5", neighbours=Neighbours.ENTRY)
    assert ledger.charge("icu", Question(entry), analyst="ana").left == Loss("0", neighbours=Neighbours.ENTRY)
    ledger.declare("a", Protection(unit="membership"), by="steward", account="icu")
    assert ledger.remaining("icu", analyst="bo").epsilon == Fraction(1, 2)


def test_a_share_in_squares_leaves_delta_to_the_limit(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward", accounting="concentrated")
    ledger.set_quota("icu", "ana", Loss.zcdp("0.01"), by="steward")
    question = Question(Loss("0.1", delta="1e-7"))
    assert ledger.quote("icu", question, analyst="ana").affords == 2
    assert ledger.charge("icu", question, analyst="ana").left == Loss.zcdp("0.005")
    with pytest.raises(BudgetExhausted, match="delta is short"):
        ledger.charge("icu", Question(Loss("0.01", delta="5e-7")), analyst="bo")


# Charging


def test_a_refusal_changes_nothing_and_locks_nothing(ledger: Ledger) -> None:
    ask(ledger, "0.75")
    before = list(ledger.export())
    for _ in range(3):
        with pytest.raises(BudgetExhausted):
            ask(ledger, "0.5", idempotency_key="again")
    assert list(ledger.export()) == before
    assert ask(ledger, "0.25", idempotency_key="again").left == Loss("0")


def test_can_charge_says_what_charge_would_do(ledger: Ledger) -> None:
    ledger.set_quota("icu", "ana", Loss("0.5"), by="steward")
    for epsilon, analyst in itertools.product(("0.5", "0.6"), ("ana", "bo")):
        assert ledger.can_charge("icu", Question(Loss(epsilon)), analyst=analyst) is (epsilon == "0.5")
    assert len(ledger.history()) == 1


def test_what_costs_nothing_is_afforded_a_billion_times(ledger: Ledger) -> None:
    ledger.set_quota("icu", "ana", Loss("1"), by="steward")
    for analyst in ("ana", "bo"):
        assert ledger.quote("icu", Question(Loss("0")), analyst=analyst).affords == 10**9
    ledger.grant("icu", Loss("0"), by="steward", expires=date(2020, 1, 1))
    assert ask(ledger, "0").left == Loss("0")


amounts = st.fractions(min_value=0, max_value=Fraction(1, 8), max_denominator=1000)
fresh_names = (f"set-{number}" for number in itertools.count())


@settings(max_examples=8, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(amount=amounts, delta=st.sampled_from(["0", "1e-6", "1/1000"]), times=st.integers(1, 10))
def test_ten_charges_are_one_charge_of_ten_and_a_replay_of_the_rows(ledger: Ledger, amount, delta, times) -> None:
    one = Loss(amount, delta=delta)
    apart, together = next(fresh_names), next(fresh_names)
    for name in (apart, together):
        ledger.grant(name, Loss("2", delta="1/10"), by="steward", accounting="sum")
    for _ in range(times):
        ledger.charge(apart, Question(one), analyst="ana")
    ledger.charge(together, Question(one.times(times)), analyst="ana")
    replayed = Loss("2", delta="1/10")
    for entry in ledger.history(apart, event="charge"):
        replayed = replayed.less(entry.loss)
    assert ledger.remaining(apart) == ledger.remaining(together) == replayed


@pytest.mark.parametrize("part", ["analyst", "idempotency_key", "by"])
def test_names_are_short_printable_text(tmp_path: Path, part: str) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        for name in ("", " ", "a\nb", "a\x00b", "x" * 201, " icu", "\ud800", 7):
            with pytest.raises(ParameterError, match=rf"^{part}: .*printable"):
                ledger.grant("icu", Loss("1"), by=name) if part == "by" else ask(ledger, "0.1", **{part: name})
        assert ledger.history() == []


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a\nb", "x" * 101, " icu", "\ud800", 7, None, "іcu", "患者", "-icu", "a/b"]
)
def test_what_a_budget_cannot_hang_on(ledger: Ledger, name: Any) -> None:
    verbs: list[Callable[[], object]] = [
        lambda: ask(ledger, "0.1", dataset=name),
        lambda: ledger.grant(name, Loss("1"), by="steward"),
        lambda: ledger.set_quota(name, "ana", Loss("0"), by="steward"),
        lambda: ledger.allow_constrained(name, "1", by="steward"),
        lambda: ledger.declare(name, by="steward"),
        lambda: ledger.account(name),
    ]
    for verb in verbs:
        with pytest.raises(ParameterError, match=r"^dataset: .*the name that a budget is tracked under"):
            verb()
    for verb in (
        lambda: ledger.declare("icu", by="s", apart=[name]),
        lambda: ledger.declare("icu", by="s", account=name),
    ):
        if name is not None:
            with pytest.raises(ParameterError, match=r"^(apart|account): "):
                verb()
    assert ledger.history() == []


def test_capitals_and_wide_letters_are_one_name(ledger: Ledger) -> None:
    for spelling in ("icu", "ICU", "Icu", "\uff29\uff23\uff35"):
        assert ask(ledger, "0.25", dataset=spelling).dataset == "icu"
    assert ledger.datasets() == ["icu"]
    with pytest.raises(BudgetExhausted):
        ask(ledger, "1e-9", dataset="iCU")


def test_any_script_can_name_an_analyst_and_a_key(ledger: Ledger) -> None:
    who = "Renée Ü 病房 🌼"
    ledger.set_quota("icu", who, Loss("0.75"), by="שרה", reason="naïve")
    ledger.record(ask(ledger, "0.5", analyst=who, idempotency_key="k%':1"), {"value": "naïve"})
    assert list(ledger.account("icu").spenders) == [who]
    assert ledger.remaining("icu", analyst=who) == Loss("0.25")
    assert ask(ledger, "0.5", analyst=who, idempotency_key="k%':1").stored == {"value": "naïve"}
    assert ledger.verify().entries == 3


# Keys and releases


def test_a_replay_returns_the_stored_release_and_charges_nothing(ledger: Ledger) -> None:
    paid = ask(ledger, "0.75", idempotency_key="k1")
    assert paid.stored is None
    ledger.record(paid, {"value": 12, "interval": [3.5, 20.0]})
    again = ask(ledger, "0.75", idempotency_key="k1")
    assert (again.id, again.stored, again.left) == (paid.id, {"value": 12, "interval": [3.5, 20.0]}, Loss("0.25"))
    assert len(ledger.history()) == 2
    assert ledger.release(paid.id) == again.stored


def test_a_key_whose_answer_is_not_recorded_conflicts(ledger: Ledger) -> None:
    ask(ledger, "0.5", idempotency_key="k1")
    with pytest.raises(KeyConflict, match=r"answer is not recorded.*Wait, or ask again under a new key"):
        ask(ledger, "0.5", idempotency_key="k1")
    assert ledger.remaining("icu") == Loss("0.5")


def test_a_key_stands_for_one_question_of_one_analyst_on_one_data_set(ledger: Ledger) -> None:
    ledger.record(ask(ledger, "0.25", idempotency_key="k1"), {"value": 1})
    others = [
        Question(Loss("0.5")),
        Question(Loss("0.25"), radius="2"),
        Question(Loss("0.25"), label="outlier-profile/1"),
    ]
    for other in others:
        with pytest.raises(KeyConflict, match="another query"):
            ledger.charge("icu", other, analyst="ana", idempotency_key="k1")
    with pytest.raises(KeyConflict, match="another analyst"):
        ask(ledger, "0.25", analyst="bo", idempotency_key="k1")
    assert ask(ledger, "0.25", dataset="ward", idempotency_key="k1").stored is None


def test_a_charge_has_one_release(ledger: Ledger) -> None:
    paid = ask(ledger, "0.5")
    assert ledger.release(paid.id) is None
    ledger.record(paid, {"value": 1})
    with pytest.raises(LedgerError, match="already has its release"):
        ledger.record(paid, {"value": 2})
    assert ledger.release(paid.id) == {"value": 1}


def test_a_release_needs_its_charge(ledger: Ledger, tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "other.db") as other:
        paid = ask(other, "0.5")
    with pytest.raises(LedgerError, match="no charge 1"):
        ledger.record(paid, {"value": 1})
    ledger.grant("icu", Loss("1"), by="steward")
    with pytest.raises(LedgerError, match="no charge 1"):
        ledger.record(paid, {"value": 1})


def test_a_release_does_not_tell_how_long_the_look_took(ledger: Ledger) -> None:
    ledger.record(ask(ledger, "0.5"), {"value": 1})
    charge, release = ledger.history()
    assert charge.time == release.time
    assert charge.time.endswith("+00:00")
