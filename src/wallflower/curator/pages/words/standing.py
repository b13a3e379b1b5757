"""Where a budget stands and what happened to it, in plain words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from wallflower.curator.desk.budgets.others import OTHERS
from wallflower.curator.desk.datasets.views import DatasetView
from wallflower.curator.pages.forms.fields import decimal
from wallflower.errors import PrivacyError
from wallflower.ledger import Account, Entry, Quote
from wallflower.ledger.limits import Limit, Spending
from wallflower.names import account_name
from wallflower.privacy import Kind, Loss
from wallflower.release.guarantee import certainty
from wallflower.units import Protection

# What to do about each part that may be short; the steward's own link to the budget stands beside it.
ADVICE: Final[Mapping[str, str]] = {
    "epsilon": "Spend less, or ask the steward of the data for a higher limit.",
    "delta": "Ask without δ, or with a smaller one, or ask the steward for a limit with more of it.",
    "rho": "Spend less, or ask the steward of the data for a higher limit.",
    "share": "Spend less, or ask the steward for a share of the limit, or for a larger one.",
    "pace": "Wait for the next year, spend less, or ask the steward for another pace.",
    "expiry": "Ask the steward to set a new limit.",
    "unit": "Ask another question, or in another mode: one that protects whom this data set protects.",
    "constrained": "Ask in the mode dp, or ask the steward to allow output-constrained answers.",
    "old limit": "Ask the steward to set one limit for all.",
}
RULES: Final[Mapping[str, str]] = {
    "sum": "losses add up",
    "either": "few large questions add up, many small ones by their squares: what is kinder counts",
    "concentrated": "squares of losses add up",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """Who has spent what, and the share that is kept for them."""

    analyst: str
    spent: str
    share: Loss | None
    left: Loss | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A budget as it is shown: `left` is for the visitor, `part` is how much of the limit is left, from 0 to 1."""

    left: Loss
    limit: str
    spent: str
    part: float
    protects: str
    sure: str | None
    starter: bool
    rule: str
    notes: tuple[str, ...]
    spenders: tuple[Spender, ...]


def standing_of(shown: DatasetView) -> Standing:
    """Where the budget of a data set stands."""
    account, name = shown.budget, account_name(shown.name) or shown.name
    used = min(account.used.get("epsilon", 1.0), account.used.get("rho", 1.0))
    return Standing(
        left=shown.left,
        limit=limit_words(account.limit),
        spent=_total_words(account),
        part=min(1.0, max(0.0, 1 - used)),
        protects=shown.protection.words,
        sure=_all_of(account.limit.loss),
        starter=account.starter,
        rule=RULES[account.limit.accounting],
        notes=tuple(_notes(account, name)),
        spenders=tuple(_spenders(account)),
    )


def _all_of(loss: Loss) -> str | None:
    """What the whole limit means, before anything of it is spent."""
    sure = certainty(loss)
    return None if sure is None else f"If all of it is spent: {sure[0].lower()}{sure[1:]}"


def loss_words(loss: Loss) -> str:
    """A loss as a reader wants it, still exact."""
    letter = "ρ" if loss.kind is Kind.ZCDP else "ε"
    return f"{letter} = {decimal(loss.amount)}" + (f", δ = {decimal(loss.delta)}" if loss.delta else "")


def room_words(loss: Loss) -> str:
    """What is left of a loss at a glance: rounded down, and marked so, where no short decimal is exact.

    >>> room_words(Loss("1/2")), room_words(Loss("2916/1285"))
    ('ε = 0.5', 'ε ≈ 2.269')
    """
    told, exact = loss_words(loss), decimal(loss.amount)
    if "/" not in exact:
        return told
    step = Fraction(10) ** (math.floor(math.log10(loss.amount)) - 3)
    return told.replace(f"= {exact}", f"≈ {decimal(loss.amount // step * step)}", 1)


def limit_words(limit: Limit) -> str:
    """A limit: what is promised, in all."""
    promised = loss_words(limit.loss)
    return f"ρ = {decimal(limit.rho)} ({promised})" if limit.accounting == "concentrated" else promised


def factor_words(quote: Quote) -> str | None:
    """Why a question costs something else here than it states; None where it does not."""
    if quote.price is None or quote.price.factor == 1:
        return None
    return (
        f"The question states {loss_words(quote.cost)} for {quote.cost.neighbours.words}. This data set bounds the "
        f"loss of {quote.protection.words}, for which it counts {decimal(quote.price.factor)} times."
    )


def author_of(entry: Entry) -> str:
    """Who made an entry: the analyst of a charge or a release, else the steward. A charge can have a parameter `by`."""
    if entry.event in ("charge", "release"):
        return entry.analyst or ""
    return str(entry.details.get("by") or "")


def event_words(entry: Entry) -> str:
    """What an entry of the ledger says happened."""
    details = entry.details
    why = f" ({details['reason']})" if entry.event not in ("charge", "release") and details.get("reason") else ""
    try:
        return _EVENTS[entry.event](entry, details) + why
    except (PrivacyError, KeyError, TypeError, ValueError):
        return f"{entry.event}, which cannot be read"


def _total_words(account: Account) -> str:
    spent = _spent_words(account, account.spent)
    return f"{spent} (by squares {account.used['rho']:.0%})" if account.limit.accounting == "either" else spent


def _spent_words(account: Account, spent: Spending) -> str:
    if account.limit.accounting == "concentrated":
        return f"ρ = {decimal(spent.rho)}"
    return f"ε = {decimal(spent.epsilon)}" + (f", δ = {decimal(spent.delta)}" if spent.delta else "")


def _notes(account: Account, name: str) -> Iterator[str]:
    """What else is to be known of an account, the most urgent first."""
    if account.fence.since is not None:
        yield (
            f"There is no bound since entry {account.fence.since} of the ledger: an output-constrained answer was "
            "given there, which is no differential privacy."
        )
    elif account.fence.allowed:
        yield (
            f"Output-constrained answers are allowed up to ε = {decimal(account.fence.allowed)}. They are no "
            "differential privacy, and the first of them ends the bound."
        )
    if account.expires is not None:
        over = f"It expired on {account.expires}: nothing is answered."
        yield over if account.is_expired else f"It ends on {account.expires}."
    if account.pace is not None:
        spent = _spent_words(account, account.this_year)
        yield f"At most ε = {decimal(account.pace)} may be spent a year; {spent} is spent this year."
    yield from _sharing_notes(account, name)
    if account.names:
        named = ["others" if record == OTHERS else record for record in account.names]
        yield f"It does not cover the records that questions have named: {', '.join(named)}."
    if account.public.get(name):
        yield f"It does not cover a change of columns that the schema calls public: {', '.join(account.public[name])}."


def _sharing_notes(account: Account, name: str) -> Iterator[str]:
    """Whom a budget is shared with: other data sets, other analysts."""
    others = ", ".join(other for other in account.members if other not in (name, account.name))
    if account.name != name:
        yield f"It spends from the account {account.name}" + (f", shared with {others}." if others else ".")
    elif others:
        yield f"The budget is shared with data about the same people: {others}."
    kept = [share for share in account.shares if share.left.amount or share.left.delta]
    if kept:
        shares = (f"{loss_words(one.left)} for {_whose(one.analyst)}" for one in kept)
        yield f"Kept apart: {'; '.join(shares)}."


def _whose(analyst: str) -> str:
    return "other analysts" if analyst == OTHERS else analyst


def _spenders(account: Account) -> Iterator[Spender]:
    shares = {share.analyst: share for share in account.shares}
    for analyst in sorted({*account.spenders, *shares}):
        share, spent = shares.get(analyst), account.spenders.get(analyst, Spending())
        yield Spender(
            analyst=analyst,
            spent=_spent_words(account, spent),
            share=None if share is None else share.allocated,
            left=None if share is None else share.left,
        )


def _tell_declaration(entry: Entry, details: Mapping[str, Any]) -> str:
    protection = Protection.from_json(details["protects"])
    apart = f"; {', '.join(details['apart'])} said to be about others" if details.get("apart") else ""
    return f"Declared: it bounds the loss of {protection.words}, on the account {details['account']}{apart}"


def _tell_limit(entry: Entry, details: Mapping[str, Any]) -> str:
    limit = Limit.from_json(details["limit"])
    pace = f", at most ε = {decimal(details['pace'])} a year" if "pace" in details else ""
    ends = f", until {details['expires']}" if "expires" in details else ""
    return f"Limit set: {limit_words(limit)} in all, {RULES[limit.accounting]}{pace}{ends}"


def _tell_share(entry: Entry, details: Mapping[str, Any]) -> str:
    loss = entry.loss
    if loss is None or not (loss.amount or loss.delta):
        return f"Share of {entry.analyst} taken back"
    return f"Share kept for {entry.analyst}"


def _tell_allowance(entry: Entry, details: Mapping[str, Any]) -> str:
    amount = Fraction(entry.amount or "0")
    if not amount:
        return "Output-constrained answers closed"
    return f"Output-constrained answers allowed, up to ε = {decimal(amount)} in all"


def _tell_charge(entry: Entry, details: Mapping[str, Any]) -> str:
    named = f", about the record {entry.names}" if entry.names else ""
    outside = ", outside the sum" if entry.unit == "constrained" else ""
    return f"Charge: {entry.label}{named}{outside}"


_EVENTS: Final[Mapping[str, Callable[[Entry, Mapping[str, Any]], str]]] = {
    "account": _tell_declaration,
    "limit": _tell_limit,
    "share": _tell_share,
    "allowance": _tell_allowance,
    "charge": _tell_charge,
    "release": lambda entry, _: f"Release: {entry.label}",
}
