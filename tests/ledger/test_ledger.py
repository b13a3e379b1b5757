"""Budgets, shares, charges and releases, on SQLite and on PostgreSQL."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledgers import Question, ask

from wallflower.errors import BudgetExhausted, KeyConflict, LedgerError, ParameterError
from wallflower.ledger import Ledger
from wallflower.privacy import Loss, Neighbours

# Budgets


def test_a_new_data_set_has_the_starter_cap_and_says_so(ledger: Ledger) -> None:
    receipt = ask(ledger, "0.6")
    assert (receipt.starter, receipt.left, receipt.cost) == (True, Loss("0.4"), Loss("0.6"))
    with pytest.raises(BudgetExhausted) as caught:
        ask(ledger, "0.5")
    assert (caught.value.asked, caught.value.left) == (Loss("0.5"), Loss("0.4"))
    assert str(caught.value).startswith("icu: asked for ε=1/2, ε=2/5 is left.")


def test_the_starter_cap_has_no_delta_and_no_other_kind(ledger: Ledger) -> None:
    for loss in (Loss("0.1", delta="1e-9"), Loss.zcdp("0.01")):
        with pytest.raises(BudgetExhausted):
            ledger.charge("icu", Question(loss), analyst="ana")
    person = Loss("1", neighbours=Neighbours.PERSON)
    assert ledger.charge("icu", Question(person), analyst="ana").left == Loss("0", neighbours=Neighbours.PERSON)


def test_the_first_grant_replaces_the_starter_cap_and_later_ones_add(ledger: Ledger) -> None:
    ask(ledger, "0.75")
    ledger.grant("icu", Loss("2"), by="steward")
    assert ledger.remaining("icu") == Loss("1.25")
    ledger.grant("icu", Loss("0.5", delta="1e-6"), by="steward")
    assert ledger.remaining("icu") == Loss("1.75", delta="1e-6")
    assert not ask(ledger, "0.25").starter


def test_a_first_grant_below_what_was_spent_leaves_nothing(ledger: Ledger) -> None:
    ask(ledger, "0.75")
    ledger.grant("icu", Loss("0.5"), by="steward")
    assert ledger.remaining("icu") == Loss("0")


def test_a_grant_on_one_account_ends_the_starter_cap_of_all(ledger: Ledger) -> None:
    ledger.grant("icu", Loss.zcdp("0.5"), by="steward")
    assert ledger.remaining("icu") == Loss("0")
    assert ledger.remaining("icu", account=Loss.zcdp("1").account) == Loss.zcdp("0.5")
    assert ledger.remaining("ward") == Ledger.STARTER


def test_accounts_and_data_sets_do_not_mix(ledger: Ledger) -> None:
    added = Loss("1", neighbours=Neighbours.ADD_REMOVE)
    for loss in (Loss("2"), added, Loss.zcdp("0.5")):
        ledger.grant("icu", loss, by="steward")
    ledger.charge("icu", Question(Loss.zcdp("0.125")), analyst="ana")
    ask(ledger, "0.5")
    ask(ledger, "0.9", dataset="ward")
    assert {line.account: (line.limit, line.spent, line.left) for line in ledger.budget("icu")} == {
        "epsilon-delta/replace-one-record": (Loss("2"), Loss("0.5"), Loss("1.5")),
        "epsilon-delta/add-or-remove-one-record": (added, added.times(0), added),
        "zcdp/replace-one-record": (Loss.zcdp("0.5"), Loss.zcdp("0.125"), Loss.zcdp("0.375")),
    }
    assert ledger.datasets() == ["icu", "ward"]


def test_the_budget_of_an_unknown_data_set_is_its_starter_cap(ledger: Ledger) -> None:
    [line] = ledger.budget("icu")
    assert (line.limit, line.left, line.starter, line.shares) == (Loss("1"), Loss("1"), True, ())
    assert ledger.datasets() == []


def test_epsilon_and_delta_must_both_fit(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("1", delta="1e-6"), by="steward")
    with pytest.raises(BudgetExhausted):
        ledger.charge("icu", Question(Loss("0.1", delta="2e-6")), analyst="ana")
    ledger.charge("icu", Question(Loss("0.1", delta="1e-6")), analyst="ana")
    assert ledger.remaining("icu") == Loss("0.9")


def test_grants_that_add_up_to_no_loss_are_refused(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("1", delta="0.6"), by="steward")
    with pytest.raises(ParameterError, match="delta"):
        ledger.grant("icu", Loss("1", delta="0.6"), by="steward")
    assert ledger.remaining("icu") == Loss("1", delta="0.6")


def test_losses_that_would_never_add_up_are_refused(ledger: Ledger) -> None:
    for loss in (Loss("1/10007"), Loss("0.1", delta="1/10007")):
        with pytest.raises(ParameterError, match=r"denominator.*Write it as a decimal"):
            ledger.charge("icu", Question(loss), analyst="ana")
    for loss in ("1/997", "1/3", "1e-99", "0.1234567890123456789"):
        ask(ledger, loss)
    assert ledger.remaining("icu").amount == 1 - Fraction(1, 997) - Fraction(1, 3) - Fraction("1e-99") - Fraction(
        "0.1234567890123456789"
    )


def test_an_unknown_account_is_refused(ledger: Ledger) -> None:
    with pytest.raises(ParameterError, match="account"):
        ledger.remaining("icu", account="pure/replace-one-record")


# Allocations


def test_a_share_is_kept_for_its_analyst(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("2"), by="steward")
    ledger.allocate("icu", "ana", Loss("1.5"), by="steward")
    assert [ledger.remaining("icu", analyst=name) for name in ("ana", "bo")] == [Loss("1.5"), Loss("0.5")]
    with pytest.raises(BudgetExhausted) as caught:
        ask(ledger, "0.6", analyst="bo")
    assert caught.value.left == Loss("0.5")
    assert ask(ledger, "0.5", analyst="bo").left == Loss("0")
    assert ask(ledger, "1.5").left == Loss("0")
    assert ledger.remaining("icu") == Loss("0")


def test_an_analyst_with_a_share_stays_within_it(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("2"), by="steward")
    ledger.allocate("icu", "ana", Loss("0.5"), by="steward")
    with pytest.raises(BudgetExhausted):
        ask(ledger, "0.6")
    ledger.allocate("icu", "ana", Loss("0.25"), by="steward")
    assert ask(ledger, "0.6").left == Loss("0.15")
    [line] = ledger.budget("icu")
    [share] = line.shares
    assert (share.analyst, share.allocated, share.spent, share.left) == ("ana", Loss("0.75"), Loss("0.6"), Loss("0.15"))
    assert (line.left, line.free) == (Loss("1.4"), Loss("1.25"))


def test_a_share_is_new_budget_and_earlier_spending_does_not_count_against_it(ledger: Ledger) -> None:
    ask(ledger, "0.5")
    ledger.allocate("icu", "ana", Loss("0.25"), by="steward")
    assert ledger.remaining("icu", analyst="ana") == Loss("0.25")
    assert ledger.remaining("icu", analyst="bo") == Loss("0.25")


def test_more_than_is_free_cannot_be_allocated(ledger: Ledger) -> None:
    ask(ledger, "0.25", analyst="bo")
    ledger.allocate("icu", "ana", Loss("0.5"), by="steward")
    with pytest.raises(BudgetExhausted) as caught:
        ledger.allocate("icu", "cy", Loss("0.3"), by="steward")
    assert caught.value.left == Loss("0.25")
    assert len(ledger.history()) == 2


def test_the_limit_holds_even_when_shares_promise_more(ledger: Ledger) -> None:
    ledger.allocate("icu", "ana", Loss("0.8"), by="steward")
    ledger.grant("icu", Loss("0.5"), by="steward")
    assert ledger.remaining("icu", analyst="ana") == Loss("0.5")
    assert ledger.remaining("icu", analyst="bo") == Loss("0")
    with pytest.raises(BudgetExhausted):
        ask(ledger, "0.6")


# Charging


def test_a_refusal_changes_nothing_and_locks_nothing(ledger: Ledger) -> None:
    ask(ledger, "0.75")
    before = list(ledger.export())
    for _ in range(3):
        with pytest.raises(BudgetExhausted):
            ask(ledger, "0.5", key="again")
    assert list(ledger.export()) == before
    assert ask(ledger, "0.25", key="again").left == Loss("0")


def test_can_charge_says_what_charge_would_do(ledger: Ledger) -> None:
    ledger.allocate("icu", "ana", Loss("0.5"), by="steward")
    for epsilon, analyst in itertools.product(("0.5", "0.6"), ("ana", "bo")):
        assert ledger.can_charge("icu", Question(Loss(epsilon)), analyst=analyst) is (epsilon == "0.5")
    assert len(ledger.history()) == 1


amounts = st.fractions(min_value=0, max_value=Fraction(1, 8), max_denominator=1000)
fresh_names = (f"set-{number}" for number in itertools.count())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(amount=amounts, delta=st.sampled_from(["0", "1e-6", "1/1000"]), times=st.integers(1, 10))
def test_ten_charges_are_one_charge_of_ten_and_a_replay_of_the_rows(ledger: Ledger, amount, delta, times) -> None:
    one = Loss(amount, delta=delta)
    apart, together = next(fresh_names), next(fresh_names)
    for name in (apart, together):
        ledger.grant(name, Loss("2", delta="1/10"), by="steward")
    for _ in range(times):
        ledger.charge(apart, Question(one), analyst="ana")
    ledger.charge(together, Question(one.times(times)), analyst="ana")
    replayed = Loss("2", delta="1/10")
    for entry in ledger.history(apart, event="charge"):
        replayed = replayed.less(entry.loss)
    assert ledger.remaining(apart) == ledger.remaining(together) == replayed


@pytest.mark.parametrize("part", ["dataset", "analyst", "key", "by"])
def test_names_are_short_printable_text(tmp_path: Path, part: str) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        for name in ("", " ", "a\nb", "a\x00b", "x" * 201, " icu", "\ud800", 7):
            with pytest.raises(ParameterError, match=rf"^{part}: .*printable"):
                ledger.grant("icu", Loss("1"), by=name) if part == "by" else ask(ledger, "0.1", **{part: name})
        assert ledger.history() == []


def test_any_script_can_name_a_data_set(ledger: Ledger) -> None:
    ledger.record(ask(ledger, "0.5", dataset="Intensivstation Ü 病房 🌼", key="k%':1"), {"value": "naïve"})
    assert ledger.datasets() == ["Intensivstation Ü 病房 🌼"]
    assert ledger.verify().entries == 2


# Keys and releases


def test_a_replay_returns_the_stored_release_and_charges_nothing(ledger: Ledger) -> None:
    paid = ask(ledger, "0.75", key="k1")
    assert paid.stored is None
    ledger.record(paid, {"value": 12, "interval": [3.5, 20.0]})
    again = ask(ledger, "0.75", key="k1")
    assert (again.id, again.stored, again.left) == (paid.id, {"value": 12, "interval": [3.5, 20.0]}, Loss("0.25"))
    assert len(ledger.history()) == 2
    assert ledger.release(paid.id) == again.stored


def test_a_key_whose_answer_is_not_recorded_conflicts(ledger: Ledger) -> None:
    ask(ledger, "0.5", key="k1")
    with pytest.raises(KeyConflict, match=r"answer is not recorded.*Wait, or ask again under a new key"):
        ask(ledger, "0.5", key="k1")
    assert ledger.remaining("icu") == Loss("0.5")


def test_a_key_stands_for_one_question_of_one_analyst_on_one_data_set(ledger: Ledger) -> None:
    ledger.record(ask(ledger, "0.25", key="k1"), {"value": 1})
    others = [
        Question(Loss("0.5")),
        Question(Loss("0.25"), radius="2"),
        Question(Loss("0.25"), label="outlier-count/2"),
    ]
    for other in others:
        with pytest.raises(KeyConflict, match="another question"):
            ledger.charge("icu", other, analyst="ana", key="k1")
    with pytest.raises(KeyConflict, match="another analyst"):
        ask(ledger, "0.25", analyst="bo", key="k1")
    assert ask(ledger, "0.25", dataset="ward", key="k1").stored is None


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
