"""Any interleaving of what stewards and analysts may do: nothing is booked below its true loss or beyond a limit.

The sums, the limits and the rule between them are kept here a second time, from the specification.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ledgers import CONSTRAINED, Question
from true_losses import PROTECTIONS, every_claim, loss_in

from wallflower.errors import BudgetExhausted, KeyConflict, ParameterError, PrivacyError, Untranslatable
from wallflower.ledger import Declaration, Ledger
from wallflower.privacy import Kind, Loss
from wallflower.units import Claim, Protection

SPELLINGS = {"icu": ("icu", "ICU", "Icu"), "ward": ("ward", "WARD"), "clinic": ("clinic",)}
ACCOUNTS = ("icu", "ward", "patients")
CLAIMS = list(every_claim(Fraction(1, 50)))
ANALYSTS = ("ana", "bo", "cy")
LIMITS = (
    (Loss("0"), "sum"),
    (Loss("0.5"), "sum"),
    (Loss("1"), "sum"),
    (Loss("2", delta="1e-6"), "sum"),
    (Loss("3", delta="1e-6"), "either"),
    (Loss("1", delta="1e-4"), "either"),
    (Loss("2", delta="1e-6"), "concentrated"),
)


@dataclass
class Spent:
    """True losses: ε (None for squares alone), δ, ρ."""

    dataset: str
    epsilon: Fraction | None
    delta: Fraction
    rho: Fraction


@dataclass
class Model:
    """What the ledger has to keep to."""

    place: str
    draw: Random
    accounts: dict[str, str] = field(default_factory=lambda: {name: name for name in SPELLINGS})
    units: dict[str, Protection] = field(default_factory=dict)
    spent: list[Spent] = field(default_factory=list)
    keys: dict[tuple[str, str], tuple[str, Claim, Any]] = field(default_factory=dict)
    fenced: Fraction = Fraction()
    accepted: int = 0
    refused: int = 0

    def run(self, count: int) -> None:
        with Ledger.open(self.place) as ledger:
            for _ in range(count):
                self.step(ledger)
                if self.draw.random() < 0.05:
                    ledger.verify()
            self.require_sums(ledger)

    def step(self, ledger: Ledger) -> None:
        verbs = {self.ask: 12, self.replay: 2, self.limit: 2, self.keep: 2, self.declare: 2, self.allow: 1}
        verb = self.draw.choices(list(verbs), weights=list(verbs.values()))[0]
        before = ledger.verify()
        try:
            verb(ledger)
        except PrivacyError:
            assert ledger.verify() == before  # a refusal changes nothing

    def name(self) -> tuple[str, str]:
        name = self.draw.choice(list(SPELLINGS))
        return name, self.draw.choice(SPELLINGS[name])

    # Stewards

    def limit(self, ledger: Ledger) -> None:
        loss, accounting = self.draw.choice(LIMITS)
        pace = self.draw.choice([None, None, None, "1"])
        ledger.grant(self.name()[1], loss, by="steward", accounting=accounting, pace=pace)  # type: ignore[arg-type]

    def keep(self, ledger: Ledger) -> None:
        amount = Fraction(self.draw.choice([0, 0, 1, 3]), 10)
        loss = Loss(amount) if self.draw.random() < 0.7 else Loss.zcdp(amount / 10)
        ledger.set_quota(self.name()[1], self.draw.choice(ANALYSTS), loss, by="steward")

    def allow(self, ledger: Ledger) -> None:
        ledger.allow_constrained(self.name()[1], self.draw.choice(["0", "0.5", "1"]), by="steward")

    def declare(self, ledger: Ledger) -> None:
        name, spelling = self.name()
        unit = self.draw.choice([None, *PROTECTIONS])
        account = self.draw.choice([None, None, *ACCOUNTS])
        ledger.declare(spelling, unit, by="steward", account=account)
        self.note(ledger, name, unit)
        if account is not None:
            assert self.accounts[name] in {name, account, *self.accounts.values()}

    def note(self, ledger: Ledger, name: str, unit: Protection | None) -> None:
        spent = [each for each in self.spent if each.dataset == name]
        assert not spent or unit in (None, self.units.get(name, Protection()))
        assert not spent or ledger.account(name).name == self.accounts[name] or self.members(name) == {name}
        self.accounts[name] = ledger.account(name).name
        self.units |= {} if unit is None else {name: unit}

    def members(self, name: str) -> set[str]:
        return {other for other, account in self.accounts.items() if account == self.accounts[name]}

    # Analysts

    def ask(self, ledger: Ledger) -> None:
        name, spelling = self.name()
        claim, analyst, key = self.claim(), self.draw.choice(ANALYSTS), self.draw.choice([None, "k1", "k2", "k3"])
        if key is not None and (name, key) in self.keys:
            key = None
        schema = self.schema(name)
        try:
            receipt = ledger.charge(
                spelling, Question(claim.loss), analyst=analyst, idempotency_key=key, claim=claim, declared=schema
            )
        except (BudgetExhausted, Untranslatable):
            self.refused += 1
            raise
        if schema is not None:
            self.note(ledger, name, schema.protection)
        self.accepted += 1
        answer = {"value": receipt.id}
        if key is not None:
            self.keys[name, key] = (analyst, claim, answer)
        ledger.record(receipt, answer)
        self.book(ledger, name, claim)

    def claim(self) -> Claim:
        if self.draw.random() < 0.1:
            return Claim(loss=CONSTRAINED)
        claim = self.draw.choice(CLAIMS)
        amount, unit = claim.loss.amount * self.draw.choice([1, 2, 5]), claim.loss.neighbours
        kind = self.draw.choice(["pure"] * 6 + ["approximate", "zcdp", "nothing"])
        losses = {
            "pure": Loss(amount, neighbours=unit),
            "approximate": Loss(amount, delta="1e-9", neighbours=unit),
            "zcdp": Loss.zcdp(amount**2 / 2, neighbours=unit),
            "nothing": Loss("0", neighbours=unit),
        }
        return Claim(**{**{name: getattr(claim, name) for name in FACTS}, "loss": losses[kind]})

    def schema(self, name: str) -> Declaration | None:
        if self.draw.random() < 0.8:
            return None
        unit, account = self.draw.choice(PROTECTIONS), self.draw.choice(ACCOUNTS)
        return Declaration(dataset=name, account=account, protection=unit)

    def replay(self, ledger: Ledger) -> None:
        if not self.keys:
            return
        (name, key), (analyst, claim, answer) = self.draw.choice(list(self.keys.items()))
        spelling, entries = self.draw.choice(SPELLINGS[name]), ledger.verify()
        receipt = ledger.charge(spelling, Question(claim.loss), analyst=analyst, idempotency_key=key, claim=claim)
        assert (receipt.stored, ledger.verify()) == (answer, entries)
        with pytest.raises(KeyConflict):
            ledger.charge(spelling, Question(claim.loss), analyst="somebody else", idempotency_key=key, claim=claim)

    # What has to hold

    def book(self, ledger: Ledger, name: str, claim: Claim) -> None:
        account = ledger.account(name)
        if claim.loss.kind is Kind.OUTPUT_CONSTRAINED:
            assert account.fence.spent <= account.fence.allowed
            assert account.fence.since is not None
            return
        if not claim.loss.amount and not claim.loss.delta:
            return
        true = loss_in(claim, self.units.get(name, Protection()))
        assert true is not None
        squares = claim.loss.kind is Kind.ZCDP
        ratio = true[0] / claim.loss.amount
        rho = true[1] / (claim.loss.amount**2 / 2) * claim.loss.amount if squares else true[1]
        self.spent.append(Spent(name, None if squares else true[0], claim.loss.delta * ratio, rho))
        self.require_within(account.limit, self.members(name))

    def sums(self, members: set[str]) -> tuple[Fraction, Fraction, Fraction, bool]:
        mine = [each for each in self.spent if each.dataset in members]
        epsilon, delta = sum(each.epsilon or Fraction() for each in mine), sum(each.delta for each in mine)
        rho = sum(each.rho for each in mine)
        return Fraction(epsilon), Fraction(delta), Fraction(rho), any(each.epsilon is None for each in mine)

    def require_within(self, limit: Any, members: set[str]) -> None:
        """The rule of the specification, for the limit in force when the question was accepted."""
        epsilon, delta, rho, unsummed = self.sums(members)
        adds, squares = epsilon <= limit.epsilon and not unsummed, rho <= limit.rho
        assert delta <= limit.delta
        rules = {"sum": adds, "concentrated": squares, "either": adds or (squares and not unsummed)}
        assert rules[limit.accounting]
        assert limit.holds

    def require_sums(self, ledger: Ledger) -> None:
        for name in SPELLINGS:
            account = ledger.account(name)
            epsilon, delta, rho, unsummed = self.sums(self.members(name))
            assert account.name == self.accounts[name]
            assert account.spent.epsilon >= epsilon
            assert account.spent.delta >= delta
            assert account.spent.rho >= rho
            assert bool(account.spent.unsummed) is unsummed
            assert sum((each.epsilon for each in account.spenders.values()), Fraction()) == account.spent.epsilon


FACTS = ("window", "columns", "steps", "moves", "one_sign", "separable")


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed > 1 else []) for seed in range(12)]
)
def test_any_interleaving_stays_within_its_limits(tmp_path: Path, seed: int) -> None:
    model = Model(place=str(tmp_path / "ledger.db"), draw=Random(seed))
    model.run(150)
    assert min(model.accepted, model.refused) >= 8


def test_any_interleaving_stays_within_its_limits_in_both_databases(place: str) -> None:
    Model(place=place, draw=Random(99)).run(40)


def test_two_ledgers_on_one_database_see_the_same(place: str) -> None:
    """What one process declares, grants and books is what the other decides by, from the next statement on."""
    with Ledger.open(place) as one, Ledger.open(place) as other:
        one.declare("icu", Protection(units_per_person=2), by="steward")
        assert other.charge("icu", Question(Loss("0.25")), analyst="ana").booked == Loss("0.5")
        with pytest.raises(ParameterError):
            one.declare("icu", Protection(), by="steward")
        other.grant("icu", Loss("0.5"), by="steward")
        with pytest.raises(BudgetExhausted):
            one.charge("icu", Question(Loss("0.01")), analyst="ana")
