"""Random ledgers of the version before, random questions after: what was refused then is refused now.

The old rule is written down again here: an account for each family and unit of each spelling, a starter cap of 1 on
each where nothing was granted on the data set, grants that add up, shares that add up and are kept free for others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from ledgers import Question
from old_ledgers import old_row, sealed, write_old

from wallflower.errors import BudgetExhausted, Untranslatable
from wallflower.ledger import Ledger, register
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.units import Claim, Protection

pytestmark = pytest.mark.slow  # together more than `make check` has room for

NIL = (Fraction(), Fraction())
Pair = tuple[Fraction, Fraction]

SPELLINGS = (["{}-icu"], ["{}-icu", "{}-ICU"], ["{}-data", "{} data", "{}-Data"])
FAMILIES = ("epsilon-delta", "zcdp", "output-constrained")
ANALYSTS = ("ana", "bo", "cy")
UNITS = tuple(unit for unit in Neighbours if unit is not Neighbours.READING)
DECLARED = (
    Protection(),
    Protection(unit="membership"),
    Protection(rows="time", unit="entry"),
    Protection(rows="time", unit="window", window=3),
    Protection(rows="time", unit="person", times=5),
)


def minus(one: Pair, other: Pair) -> Pair:
    return max(one[0] - other[0], Fraction()), max(one[1] - other[1], Fraction())


def total(rows: Iterable[dict[str, Any]]) -> Pair:
    found = [(Fraction(row["amount"]), Fraction(row["delta"])) for row in rows]
    return sum((pair[0] for pair in found), Fraction()), sum((pair[1] for pair in found), Fraction())


@dataclass
class OldRule:
    """What the version before would have decided."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def left_for(self, dataset: str, loss: Loss, analyst: str | None) -> Pair:
        """What an analyst may spend; for nobody in particular, what is neither spent nor kept."""
        mine = [row for row in self.rows if (row["dataset"], row["account"]) == (dataset, loss.account)]
        grants = [row for row in self.rows if (row["dataset"], row["event"]) == (dataset, "grant")]
        starter = not grants and loss.kind in (Kind.PURE, Kind.APPROXIMATE)
        limit = (Fraction(1), Fraction()) if starter else total(row for row in mine if row["event"] == "grant")
        left = free = minus(limit, total(row for row in mine if row["event"] == "charge"))
        for who in {row["analyst"] for row in mine if row["event"] == "allocate"}:
            kept = [place for place, row in enumerate(mine) if (row["event"], row["analyst"]) == ("allocate", who)]
            since = [row for row in mine[kept[0] :] if (row["event"], row["analyst"]) == ("charge", who)]
            share = minus(total(mine[place] for place in kept), total(since))
            if who == analyst:
                return min(share[0], left[0]), min(share[1], left[1])
            free = minus(free, share)
        return free

    def accepts(self, dataset: str, loss: Loss, analyst: str | None) -> bool:
        left = self.left_for(dataset, loss, analyst)
        return loss.amount <= left[0] and loss.delta <= left[1]

    def book(self, row: dict[str, Any]) -> None:
        self.rows.append(row)


def some_loss(draw: Random, units: Sequence[Neighbours], largest: int) -> Loss:
    """Mostly pure, for one of these units: squares close an account, and a few will do."""
    unit, kind = draw.choice(units), draw.choice(["pure"] * 30 + ["approximate"] * 4 + ["constrained"] * 3 + ["zcdp"])
    amount = Fraction(draw.randint(1, largest), 8)
    if kind == "zcdp":
        return Loss.zcdp(amount / 8, neighbours=unit)
    if kind == "constrained":
        return Loss(amount, kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE)
    return Loss(amount, delta=Fraction(1, 10**6) if kind == "approximate" else 0, neighbours=unit)


def some_body(draw: Random, loss: Loss) -> dict[str, Any]:
    body: dict[str, Any] = {"columns": ["a", "b"]} if draw.random() < 0.8 else {}
    body |= {"window": draw.randint(1, 6)} if loss.neighbours is Neighbours.WINDOW else {}
    body |= {"steps": draw.randint(1, 9)} if draw.random() < 0.5 else {}
    body |= {"low": 0, "high": 4, "change": draw.choice([1, 4])} if draw.random() < 0.2 else {}
    body |= {"monotone": True} if loss.neighbours is Neighbours.PERSON and draw.random() < 0.3 else {}
    return body


def write_some(draw: Random, rule: OldRule, spellings: list[str]) -> Sequence[Neighbours]:
    """Rows that the version before could have written, for units that it returns."""
    units = draw.choice([UNITS[:2], UNITS[1:], *[(unit,) for unit in UNITS]])
    for number in range(draw.randint(1, 14)):
        event = "grant" if number < len(spellings) else draw.choice(["grant", "allocate", "allocate", "charge"])
        dataset, analyst = spellings[number % len(spellings)], draw.choice(ANALYSTS)
        loss = some_loss(draw, units, 32 if event == "grant" else 8)
        if event == "grant":
            rule.book(old_row("grant", dataset, loss, body="{}"))
        elif event == "allocate" and rule.accepts(dataset, loss, None):
            rule.book(old_row("allocate", dataset, loss, analyst=analyst, body="{}"))
        elif event == "charge" and rule.accepts(dataset, loss, analyst):
            label = "outlier-watch/1" if draw.random() < 0.5 else "outlier-count/1"
            body = json.dumps(some_body(draw, loss))
            key = f"key {number}" if draw.random() < 0.5 else None
            rule.book(old_row("charge", dataset, loss, analyst=analyst, label=label, body=body, key=key))
    return units


def some_claim(draw: Random, loss: Loss) -> Claim:
    window = draw.randint(1, 6) if loss.neighbours is Neighbours.WINDOW else None
    own = (("record", Fraction(1, 4)), ("entry", Fraction(1, 4))) if draw.random() < 0.3 else ()
    return Claim(loss=loss, window=window, columns=draw.choice([1, 2]), steps=draw.choice([None, 3]), own=own)


@dataclass
class Outcome:
    accepted: int = 0
    refused: int = 0
    wrongly: int = 0


def compare(place: str, seed: int, worlds: int) -> Outcome:
    """Ask both, on so many data sets with all their spellings, and count what only the new ledger accepts."""
    draw, found, rule = Random(seed), Outcome(), OldRule()
    spelt = [[spelling.format(world) for spelling in draw.choice(SPELLINGS)] for world in range(worlds)]
    asked = [(spellings, write_some(draw, rule, spellings)) for spellings in spelt]
    rows = sealed(rule.rows)
    write_old(place, rows)
    with Ledger.open(place) as ledger:
        for spellings in spelt:
            if ledger.account(spellings[0]).closed is not None or draw.random() < 0.1:
                ledger.declare(spellings[0], draw.choice(DECLARED), by="steward")
        for spellings, units in asked * 8:
            dataset, analyst, loss = draw.choice(spellings), draw.choice(ANALYSTS), some_loss(draw, units, 6)
            if dataset not in {row["dataset"] for row in rows}:
                continue  # to the old rule a data set of its own with a starter cap, today one more spelling
            allowed = rule.accepts(dataset, loss, analyst)
            answered = is_accepted(ledger, dataset, some_claim(draw, loss), analyst)
            found.accepted += answered
            found.refused += not answered
            if answered:
                found.wrongly += not allowed
                rule.book(old_row("charge", dataset, loss, analyst=analyst))
        assert ledger.verify(head=rows[-1]["hash"]).entries >= len(rows)
        for spellings in spelt:
            require_no_less(ledger, spellings, rows)
    return found


def is_accepted(ledger: Ledger, dataset: str, claim: Claim, analyst: str) -> bool:
    question = Question(claim.loss)
    quoted = ledger.quote(dataset, question, analyst=analyst, claim=claim)
    try:
        ledger.charge(dataset, question, analyst=analyst, claim=claim)
    except (BudgetExhausted, Untranslatable):
        assert quoted.obstacle is not None
        assert quoted.affords == 0
        return False
    assert quoted.obstacle is None
    return True


def require_no_less(ledger: Ledger, spellings: list[str], rows: list[dict[str, Any]]) -> None:
    """Σ booked ≥ Σ stated for what was charged before, unless nothing is answered at all."""
    account = ledger.account(spellings[0])
    old = [row for row in rows if row["dataset"] in spellings]
    charges = [row for row in old if row["event"] == "charge"]
    parts = {family: [row for row in charges if row["account"].startswith(family)] for family in FAMILIES}
    summed = total(parts["epsilon-delta"])
    assert account.closed is not None or (account.spent.epsilon >= summed[0] and account.spent.delta >= summed[1])
    assert account.closed is not None or not parts["zcdp"]
    assert account.fence.spent >= total(parts["output-constrained"])[0]
    assert account.starter is not any(row["event"] == "grant" for row in old)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed > 0 else []) for seed in range(6)]
)
def test_whatever_was_refused_is_refused(tmp_path: Path, seed: int) -> None:
    found = compare(str(tmp_path / "ledger.db"), seed, worlds=40)
    assert found.wrongly == 0
    assert min(found.accepted, found.refused) > 30


def test_whatever_was_refused_is_refused_in_both_databases(place: str) -> None:
    assert compare(place, 7, worlds=4).wrongly == 0


def test_without_the_old_limits_some_of_it_would_be_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison has power: rule 4 is needed."""
    monkeypatch.setattr(register, "old_obstacle", lambda *_: None)
    assert compare(str(tmp_path / "ledger.db"), 0, worlds=20).wrongly > 5
