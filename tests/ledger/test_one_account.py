"""One budget that bounds what a person can lose: attacks on it, in every order, unit, kind and spelling."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from ledgers import CONSTRAINED, Question, ask
from true_losses import PROTECTIONS, every_claim, factor, loss_in

import wallflower as wf
from wallflower.errors import BudgetExhausted, KeyConflict, ParameterError, SameRecords, Untranslatable
from wallflower.ledger import Declaration, Ledger
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.release import pay
from wallflower.units import Claim, Protection, price

pytestmark = pytest.mark.slow  # together more than `make check` has room for

ENTRY = Protection(rows="time", unit="entry")


def charged(ledger: Ledger, dataset: str, claim: Claim, **who: Any) -> bool:
    """Whether a claim is accepted; what a quote says is what a charge does."""
    question = Question(claim.loss)
    who = {"analyst": "ana", **who}
    quoted = ledger.quote(dataset, question, claim=claim, analyst=who["analyst"])
    if quoted.obstacle is not None:
        refusal = quoted.refusal()
        with pytest.raises(type(refusal)) as caught:
            ledger.charge(dataset, question, claim=claim, **who)
        assert (str(caught.value), quoted.affords) == (str(refusal), 0)
        return False
    receipt = ledger.charge(dataset, question, claim=claim, **who)
    assert quoted.affords >= 1
    assert (receipt.left, receipt.booked) == (quoted.left_after, quoted.booked)
    return True


# The attack that began it


def five_questions() -> list[Any]:
    domain = {"columns": {"x1": {"edges": [-10, 0, 10]}, "x2": {"low": -50, "high": 50}}}
    explained: dict[str, Any] = {"record": "3", "metric": "x2", "context": ("x1",), "domain": domain, "size": 100}
    watched: dict[str, Any] = {"threshold": 2.0, "low": -4.0, "high": 4.0, "columns": ("x1",), "loss": Loss("1")}
    return [
        wf.Count(neighbours=3, radius=0.5, loss=Loss("1")),
        wf.Explain(**explained, loss=Loss("1"), mode="dp", detector="distance:k=3,radius=1"),
        wf.Watch(**watched),
        wf.Watch(**watched, level="person", cutoff=2),
        wf.Watch(**watched, level="window", window=1),
    ]


def test_the_attack_is_refused_at_its_second_question_in_every_order(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(50, 2))
    questions = five_questions()
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        for number, order in enumerate(itertools.permutations(questions)):
            table = wf.Points.from_array(values, name=f"set-{number}")
            pay(order[0], table, ledger, analyst="ana", force=True)
            for question in order[1 : 2 if number % 6 else 5]:
                with pytest.raises(BudgetExhausted):
                    pay(question, table, ledger, analyst="bo", force=True)
            assert ledger.remaining(table.name) == Loss("0")


def test_the_attack_is_refused_on_both_databases(ledger: Ledger) -> None:
    table = wf.Points.from_array(np.random.default_rng(0).normal(size=(50, 2)), name="icu")
    first, *others = five_questions()
    pay(first, table, ledger, analyst="ana", force=True)
    for question in others:
        with pytest.raises(BudgetExhausted):
            pay(question, table, ledger, analyst="ana", force=True)
    assert len(ledger.history()) == 1


# Every question and every unit


@pytest.mark.parametrize("declared", PROTECTIONS, ids=lambda declared: declared.text[:60])
def test_no_price_is_below_the_true_loss(declared: Protection) -> None:
    for claim in every_claim(Fraction(1, 7)):
        true = loss_in(claim, declared)
        try:
            found = price(claim, declared)
        except Untranslatable:
            continue
        assert true is not None
        assert found.epsilon is not None
        assert found.epsilon >= true[0]
        assert found.rho >= true[1]
        assert found.factor in (factor(claim, declared), 2 * factor(claim, declared))


@pytest.mark.parametrize("declared", PROTECTIONS, ids=lambda declared: declared.text[:60])
def test_no_sequence_of_questions_loses_more_than_one(tmp_path: Path, declared: Protection) -> None:
    draw = Random(1)
    claims = [claim for size in (32, 128) for claim in every_claim(Fraction(1, size))]
    lost, accepted = Fraction(), 0
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.declare("icu", declared, by="steward")
        ledger.grant("icu", Loss("1"), by="steward")
        for claim in draw.sample(claims, 60):
            if charged(ledger, "icu", claim, analyst=draw.choice(["ana", "bo"])):
                true = loss_in(claim, declared)
                assert true is not None
                lost, accepted = lost + true[0], accepted + 1
                assert lost <= ledger.spent("icu").epsilon <= 1
        assert accepted >= 2
        assert ledger.verify().entries == accepted + 2


@pytest.mark.parametrize(
    "loss",
    [
        Loss("1/100", kind=Kind.METRIC, neighbours=Neighbours.READING),
        Loss("1/100", neighbours=Neighbours.READING),
        CONSTRAINED,
        Loss("0", kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE),
        Loss.zcdp("1/100"),
        Loss("1/100", delta="1e-12"),
    ],
    ids=str,
)
def test_other_kinds_have_no_place_in_a_sum(ledger: Ledger, loss: Loss) -> None:
    assert not charged(ledger, "icu", Claim(loss=loss))
    assert ledger.history() == []


def test_where_the_size_is_secret_nothing_else_is_answered_at_any_loss(ledger: Ledger) -> None:
    ledger.declare("icu", Protection(unit="membership"), by="steward")
    for unit in (Neighbours.REPLACE_ONE, Neighbours.ENTRY, Neighbours.PERSON):
        for epsilon in ("0", "1/1000"):
            with pytest.raises(Untranslatable, match="the number of records is secret"):
                ledger.charge("icu", Question(Loss(epsilon, neighbours=unit)), analyst="ana")
    assert charged(ledger, "icu", Claim(loss=Loss("1", neighbours=Neighbours.ADD_REMOVE)))


@pytest.mark.parametrize("most", [10**9])
def test_absurd_factors_are_refused_and_break_nothing(ledger: Ledger, most: int) -> None:
    ledger.declare("icu", Protection(rows="time", unit="person", units_per_person=most), by="steward")
    ledger.grant("icu", Loss("1000000", delta="0.5"), by="steward")
    for delta in ("0", "1e-99"):
        loss = Loss("1", delta=delta, neighbours=Neighbours.ENTRY)
        claim = Claim(loss=loss, columns=most, steps=most, moves=most)
        assert not charged(ledger, "icu", claim)
    tiny = Claim(loss=Loss("1e-50", neighbours=Neighbours.ENTRY), columns=most, steps=most, moves=most)
    assert charged(ledger, "icu", tiny)
    assert ledger.spent("icu").epsilon == Fraction(10**27, 10**50)


# The unit is declared once


def test_a_unit_stays_once_something_was_booked_in_it(ledger: Ledger) -> None:
    ledger.declare("icu", ENTRY, by="steward")
    ledger.declare("icu", Protection(), by="steward")
    ask(ledger, "0.5")
    for other in (ENTRY, Protection(units_per_person=2), Protection(unit="membership")):
        with pytest.raises(ParameterError, match="A unit is declared once"):
            ledger.declare("icu", other, by="steward")
    ledger.declare("icu", Protection(), by="steward", reason="again")
    assert ledger.remaining("icu") == Loss("0.5")


def test_a_schema_counts_until_something_is_known_and_must_agree_from_then_on(ledger: Ledger) -> None:
    said = Declaration(dataset="icu", account="icu", protection=ENTRY)
    question = Question(Loss("0.25", neighbours=Neighbours.ENTRY))
    assert ledger.quote("icu", question, analyst="ana", declared=said).protection == ENTRY
    assert ledger.history() == []
    ledger.charge("icu", question, analyst="ana", declared=said)
    assert [entry.event for entry in ledger.history()] == ["account", "charge"]
    ledger.charge("icu", question, analyst="ana", declared=said)
    assert len(ledger.history()) == 3
    plain = Declaration(dataset="icu", account="icu", stated=True)
    for other in (plain, Declaration(dataset="icu", account="x", protection=ENTRY)):
        for verb in (ledger.charge, ledger.quote):
            with pytest.raises(ParameterError, match="What was declared once holds"):
                verb("icu", question, analyst="ana", declared=other)
    assert ledger.remaining("icu").epsilon == Fraction(1, 2)


def test_a_refused_question_declares_nothing(ledger: Ledger) -> None:
    with pytest.raises(BudgetExhausted):
        ask(ledger, "2", declared=Declaration(dataset="icu", account="patients", protection=ENTRY))
    assert ledger.history() == []
    assert not ledger.knows("icu")


def limited(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("1/8"), by="steward")


def shared_out(ledger: Ledger) -> None:
    ledger.set_quota("icu", "bo", Loss("7/8"), by="steward")


def joined(ledger: Ledger) -> None:
    ledger.declare("ward", by="steward", account="icu")
    ask(ledger, "7/8", dataset="ward")


@pytest.mark.parametrize("setting", [limited, shared_out, joined])
def test_a_schema_takes_no_data_set_away_from_its_terms(ledger: Ledger, setting: Callable[[Ledger], None]) -> None:
    setting(ledger)
    for verb in (ledger.charge, ledger.quote):
        with pytest.raises(ParameterError, match="What was declared once holds"):
            verb("icu", Question(Loss("1/2")), analyst="ana", declared=Declaration(dataset="icu", account="fresh"))
    with pytest.raises(BudgetExhausted):
        ask(ledger, "1/2")


# Groups


def test_data_sets_of_one_group_spend_from_one_limit(ledger: Ledger) -> None:
    for name in ("icu", "ward"):
        ledger.declare(name, by="steward", account="patients")
    ledger.declare("visits", Protection(units_per_person=2), by="steward", account="Patients")
    ask(ledger, "0.25")
    ask(ledger, "0.25", dataset="ward")
    assert ask(ledger, "0.125", dataset="visits").booked == Loss("0.25")
    for name in ("icu", "ward", "visits", "patients"):
        assert (ledger.remaining(name), ledger.account(name).name) == (Loss("0.25"), "patients")
        with pytest.raises(BudgetExhausted):
            ask(ledger, "0.3", dataset=name)
    assert list(ledger.account("icu").members) == ["icu", "visits", "ward"]


@pytest.mark.parametrize("name", ["patients", "icu", "ward"])
def test_a_limit_by_any_members_name_is_the_groups(ledger: Ledger, name: str) -> None:
    for member in ("icu", "ward"):
        ledger.declare(member, by="steward", account="patients")
    ledger.grant(name, Loss("3"), by="steward")
    ledger.set_quota(name, "ana", Loss("1"), by="steward")
    ledger.allow_constrained(name, "1", by="steward")
    for member in ("icu", "ward", "patients"):
        account = ledger.account(member)
        assert (account.limit.epsilon, account.free, account.fence.allowed) == (3, Loss("2"), 1)


def test_joining_a_group_brings_along_what_was_spent(ledger: Ledger) -> None:
    ask(ledger, "0.75")
    ask(ledger, "0.5", dataset="ward")
    ledger.declare("ward", by="steward", account="icu")
    assert (ledger.spent("icu"), ledger.remaining("ward")) == (Loss("1.25"), Loss("0"))
    for name in ("icu", "ward"):
        with pytest.raises(BudgetExhausted):
            ask(ledger, "1e-9", dataset=name)


def test_whoever_has_spent_cannot_leave(ledger: Ledger) -> None:
    for name in ("icu", "ward"):
        ledger.declare(name, by="steward", account="patients")
        ask(ledger, "0.25", dataset=name)
    for name, target in (("icu", "icu"), ("icu", "elsewhere"), ("ward", "WARD"), ("ward", "elsewhere")):
        with pytest.raises(ParameterError, match="What was spent stays there"):
            ledger.declare(name, by="steward", account=target)
    assert ledger.spent("patients") == Loss("0.5")


def test_an_account_with_members_cannot_be_moved_away_from_them(ledger: Ledger) -> None:
    ask(ledger, "0.25")
    ledger.declare("ward", by="steward", account="icu")
    with pytest.raises(ParameterError, match="which others share"):
        ledger.declare("icu", by="steward", account="elsewhere")
    ledger.declare("ward", by="steward", account="ward")
    ledger.declare("icu", by="steward", account="elsewhere")
    assert (ledger.spent("elsewhere"), ledger.spent("ward")) == (Loss("0.25"), Loss("0"))


def test_an_account_is_meant_by_any_data_set_on_it(ledger: Ledger) -> None:
    ledger.declare("ward", by="steward", account="patients")
    ledger.declare("icu", by="steward", account="ward")
    assert ledger.account("icu").name == "patients"
    ledger.declare("patients", by="steward", account="icu")
    assert ledger.account("patients").name == "patients"
    ledger.declare("icu", by="steward", account="ICU")
    assert ledger.account("icu").name == "icu"


def test_a_member_by_schema_is_quoted_as_it_is_charged(ledger: Ledger) -> None:
    ledger.grant("patients", Loss("1/8"), by="steward")
    said = Declaration(dataset="icu", account="patients")
    question = Question(Loss("1/2"))
    assert ledger.quote("icu", question, analyst="ana", declared=said).obstacle is not None
    with pytest.raises(BudgetExhausted):
        ledger.charge("icu", question, analyst="ana", declared=said)
    ledger.charge("icu", Question(Loss("1/8")), analyst="ana", declared=said)
    assert ledger.remaining("patients") == Loss("0")


# The same records


class Content:
    """Tags of a table, equal or not."""

    source = None
    least: tuple[str, ...] = ()

    def __init__(self, rows: str) -> None:
        self.rows = rows

    def share(self, least: object) -> float:
        return 0.0


def test_the_same_records_have_one_budget_under_every_name(ledger: Ledger) -> None:
    ledger.notice("icu", Content("a"))
    ledger.notice("ICU", Content("a"))
    for account in (None, "copy", "fresh"):
        with pytest.raises(SameRecords) as caught:
            ledger.notice("copy", Content("a"), account=account)
        assert caught.value.other == "icu"
    ledger.notice("copy", Content("a"), account="icu")
    with pytest.raises(SameRecords):
        ledger.notice("copy", Content("a"))
    ledger.declare("copy", by="steward", account="icu")
    ledger.notice("copy", Content("a"))


def test_leaving_a_group_does_not_hide_the_same_records(ledger: Ledger) -> None:
    ledger.notice("icu", Content("a"))
    ledger.declare("copy", by="steward", account="icu")
    ledger.notice("copy", Content("a"))
    ledger.declare("copy", by="steward", account="copy")
    for name in ("copy", "icu"):
        with pytest.raises(SameRecords):
            ledger.notice(name, Content("a"))
    ledger.declare("copy", by="steward", apart=["ICU"])
    for name in ("copy", "icu"):
        ledger.notice(name, Content("a"))
    ledger.declare("copy", by="steward", reason="the word stays")
    ledger.notice("copy", Content("a"))


# Kinds of accounting


@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 35), ("0.05", 140), ("0.3", 10), ("1", 3)])
def test_what_three_affords(ledger: Ledger, epsilon: str, count: int) -> None:
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward")
    assert ledger.quote("icu", Question(Loss(epsilon)), analyst="ana").affords == count


def test_thirty_five_questions_fit_into_three_and_no_more(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward")
    for asked in range(35):
        assert ledger.quote("icu", Question(Loss("0.1")), analyst="ana").affords == 35 - asked
        ask(ledger, "0.1", analyst=f"analyst {asked % 3}")
    with pytest.raises(BudgetExhausted) as caught:
        ask(ledger, "0.1")
    assert caught.value.part == "epsilon"
    assert ledger.account("icu").spent.epsilon == Fraction("3.5")


def test_a_loss_of_squares_needs_concentrated_and_ends_the_others(ledger: Ledger) -> None:
    rho = Claim(loss=Loss.zcdp("0.01"))
    for accounting in ("sum", "either"):
        ledger.grant("icu", Loss("3", delta="1e-6"), by="steward", accounting=accounting)
        assert not charged(ledger, "icu", rho)
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward", accounting="concentrated")
    assert charged(ledger, "icu", rho)
    for accounting in ("sum", "either"):
        ledger.grant("icu", Loss("100", delta="1e-6"), by="steward", accounting=accounting)
        assert not charged(ledger, "icu", Claim(loss=Loss("0.01")))


def test_a_limit_in_rho_holds_questions_of_every_kind(ledger: Ledger) -> None:
    ledger.grant("icu", Loss.zcdp("0.1"), by="steward")
    assert charged(ledger, "icu", Claim(loss=Loss.zcdp("0.05")))
    assert charged(ledger, "icu", Claim(loss=Loss("0.3")))
    assert not charged(ledger, "icu", Claim(loss=Loss("0.1", delta="1e-12")))
    assert not charged(ledger, "icu", Claim(loss=Loss("0.2")))
    assert ledger.remaining("icu") == Loss.zcdp("0.005")
    assert ledger.account("icu").limit.holds


def test_a_delta_beside_squares_is_booked_and_the_rest_told(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("3", delta="1e-6"), by="steward", accounting="concentrated")
    assert charged(ledger, "icu", Claim(loss=Loss("0.1", delta="4e-7")))
    assert not charged(ledger, "icu", Claim(loss=Loss("0.1", delta="2e-7")))
    account = ledger.account("icu")
    assert ledger.remaining("icu") == Loss.zcdp(account.limit.rho - Fraction("0.005"))
    assert account.spent.delta == Fraction(4, 10**7)


# Output-constrained answers


def test_constrained_answers_are_off_apart_and_told(ledger: Ledger) -> None:
    nothing = Question(Loss("0", kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE))
    for question in (Question(CONSTRAINED), nothing):
        with pytest.raises(BudgetExhausted, match="no differential privacy") as caught:
            ledger.charge("icu", question, analyst="ana")
        assert caught.value.part == "constrained"
    ledger.allow_constrained("icu", "0.75", by="steward")
    with pytest.raises(BudgetExhausted):  # it would use up no allowance, and could be asked for ever
        ledger.charge("icu", nothing, analyst="ana")
    receipt = ledger.charge("icu", Question(CONSTRAINED), analyst="ana")
    assert (receipt.booked, receipt.left.epsilon) == (None, Fraction(1, 4))
    with pytest.raises(BudgetExhausted):
        ledger.charge("icu", Question(CONSTRAINED), analyst="bo")
    account = ledger.account("icu")
    assert (account.fence.spent, account.fence.since, ledger.remaining("icu")) == (Fraction(1, 2), 2, Loss("1"))
    ledger.allow_constrained("icu", "0", by="steward")
    with pytest.raises(BudgetExhausted):
        ledger.charge("icu", nothing, analyst="ana")
    assert ledger.account("icu").fence.since == 2


def test_an_allowance_ends_with_the_limit(ledger: Ledger) -> None:
    ledger.allow_constrained("icu", "1", by="steward")
    ledger.grant("icu", Loss("1"), by="steward", expires=date(2020, 1, 1))
    with pytest.raises(BudgetExhausted, match="expired on 2020-01-01"):
        ledger.charge("icu", Question(CONSTRAINED), analyst="ana")


# Time


def at(moment: datetime) -> type[datetime]:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return moment.astimezone(tz)

    return Stopped


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    for module in ("account", "rows"):
        monkeypatch.setattr(f"wallflower.ledger.{module}.datetime", at(moment))


NOON = datetime(2027, 6, 1, 12, tzinfo=UTC)


def test_a_limit_lasts_to_the_end_of_its_last_day(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, NOON)
    ledger.grant("icu", Loss("1"), by="steward", expires=NOON.date())
    ask(ledger, "0.25")
    set_clock(monkeypatch, datetime(2027, 6, 1, 23, 59, 59, tzinfo=UTC))
    ask(ledger, "0.25")
    set_clock(monkeypatch, NOON + timedelta(days=1))
    with pytest.raises(BudgetExhausted, match=r"expired on 2027-06-01.*set a new limit") as caught:
        ask(ledger, "0.25")
    assert caught.value.part == "expiry"
    ledger.grant("icu", Loss("1"), by="steward")
    ask(ledger, "0.25")


@pytest.mark.parametrize("more", [{}, {"delta": "1e-6"}], ids=["sum", "either"])
def test_a_pace_holds_within_a_year_and_the_limit_for_ever(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    ledger.grant("icu", Loss("2.5", **more), by="steward", pace="1")
    for year, fits in ((2027, 2), (2028, 2), (2029, 1), (2030, 0)):
        set_clock(monkeypatch, NOON.replace(year=year))
        assert ledger.quote("icu", Question(Loss("0.5")), analyst="ana").affords == fits
        for _ in range(fits):
            ask(ledger, "0.5")
        with pytest.raises(BudgetExhausted) as caught:
            ask(ledger, "0.5")
        assert caught.value.part == ("pace" if year < 2029 else "epsilon")
        assert ledger.account("icu").this_year.epsilon == Fraction(fits, 2)


def test_a_pace_holds_where_squares_are_counted(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("2", delta="1e-6"), by="steward", accounting="concentrated", pace="1")
    part = Loss.zcdp(ledger.account("icu").limit.rho * Fraction(2, 5))
    assert charged(ledger, "icu", Claim(loss=part))
    quoted = ledger.quote("icu", Question(part), analyst="ana")
    assert quoted.obstacle is not None
    assert quoted.obstacle.part == "pace"


def test_a_pace_of_nothing_and_one_beyond_the_limit(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("1"), by="steward", pace="0")
    assert not charged(ledger, "icu", Claim(loss=Loss("1e-9")))
    ledger.grant("icu", Loss("1"), by="steward", pace="50")
    assert charged(ledger, "icu", Claim(loss=Loss("1")))
    assert not charged(ledger, "icu", Claim(loss=Loss("1e-9")))


# Keys


def test_a_replay_is_answered_whatever_became_of_the_budget(ledger: Ledger) -> None:
    ledger.record(ask(ledger, "0.5", idempotency_key="k"), {"value": 1})
    ledger.grant("icu", Loss("0"), by="steward", expires=date(2020, 1, 1))
    assert ask(ledger, "0.5", idempotency_key="k", dataset="ICU").stored == {"value": 1}
    with pytest.raises(KeyConflict):
        ask(ledger, "0.25", idempotency_key="k", dataset="Icu")
    assert ledger.spent("icu") == Loss("0.5")


def test_a_limit_is_not_left_behind_for_the_starter_cap(ledger: Ledger) -> None:
    ledger.grant("icu", Loss("0.5"), by="steward")
    ask(ledger, "0.5")
    with pytest.raises(ParameterError, match="Set the limit of patients first"):
        ledger.declare("icu", by="steward", account="patients")
    ledger.grant("patients", Loss("2"), by="steward")
    ledger.declare("icu", by="steward", account="patients")
    assert ledger.remaining("icu") == Loss("1.5")


def test_a_schema_says_nothing_of_what_it_leaves_out(ledger: Ledger) -> None:
    timed = Protection(rows="time", unit="entry")
    ledger.declare("icu", timed, by="steward", account="patients")
    silent = Declaration(dataset="icu", account="patients")
    own = Declaration(dataset="icu", account="icu", protection=timed, stated=True)
    for declared in (silent, own):
        ask(ledger, "0.1", declared=declared)
    with pytest.raises(ParameterError, match="the schema says"):
        ask(ledger, "0.1", declared=Declaration(dataset="icu", account="patients", stated=True))
    assert ledger.account("icu").spent.epsilon == Fraction(1, 5)


def test_what_was_added_up_is_not_taken_for_what_came_of_it(ledger: Ledger, place: str) -> None:
    with pytest.raises(BudgetExhausted):
        ask(ledger, "2", declared=Declaration(dataset="icu", account="icu", protection=ENTRY))
    ledger.declare("icu", Protection(units_per_person=2), by="steward")
    assert ledger.account("icu").protection == Protection(units_per_person=2)
    with Ledger.open(place) as other:
        ask(other, "0.25")
        assert ledger.remaining("icu") == Loss("0.5")
        ledger.grant("icu", Loss("3"), by="steward")
        assert other.remaining("icu") == Loss("2.5")


def test_an_output_constrained_answer_is_not_forgotten_when_its_data_set_joins_a_group(ledger: Ledger) -> None:
    ledger.allow_constrained("icu", CONSTRAINED.amount, by="steward")
    answered = ledger.charge("icu", Question(CONSTRAINED), analyst="ana")
    ledger.declare("icu", by="steward", account="patients")
    fence = ledger.account("patients").fence
    assert (fence.since, fence.spent, fence.allowed) == (answered.id, CONSTRAINED.amount, 0)
    with pytest.raises(BudgetExhausted):
        ledger.charge("icu", Question(CONSTRAINED), analyst="ana")


def test_nothing_is_left_of_a_sum_after_a_loss_that_no_sum_counts(ledger: Ledger) -> None:
    """A limit on ρ that becomes a limit on ε: losses in ρ alone have no place in the sum, so nothing fits."""
    ledger.grant("icu", Loss.zcdp("0.5"), by="steward")
    ledger.charge("icu", Question(Loss.zcdp("0.02")), analyst="ana")
    ledger.grant("icu", Loss("3"), by="steward")
    assert ledger.remaining("icu") == Loss(0)
    assert not ledger.can_charge("icu", Question(Loss("0.1")), analyst="ana")
