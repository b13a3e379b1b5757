"""The state of a budget and the entries of a ledger as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from wallflower.errors import PrivacyError
from wallflower.ledger import Account, Entry, Quote
from wallflower.ledger.limits import Limit, Spending
from wallflower.names import account_name
from wallflower.privacy import Kind, Loss
from wallflower.release.guarantee import certainty
from wallflower.service.core.catalog import DatasetView
from wallflower.service.core.spending import OTHERS
from wallflower.text import Message, decimal, join, t
from wallflower.units import Protection

# What to do about each part of a budget that may be exceeded.
ADVICE: Final[Mapping[str, Message]] = {
    "epsilon": t("Use a smaller ε, or ask the data steward for a larger budget."),
    "delta": t("Ask without δ or with a smaller one, or ask the data steward for a budget with a larger δ."),
    "rho": t("Use a smaller ρ, or ask the data steward for a larger budget."),
    "quota": t("Use a smaller ε, or ask the data steward for a quota, or for a larger one."),
    "pace": t("Wait for the next year, use a smaller ε, or ask the data steward for another yearly limit."),
    "expiry": t("Ask the data steward to set a new budget."),
    "unit": t("Ask another question, or in another mode: one that protects the unit of this data set."),
    "constrained": t("Ask in mode dp, or ask the data steward to allow output-constrained answers."),
    "old limit": t("Ask the data steward to set one budget for all."),
}
RULES: Final[Mapping[str, Message]] = {
    "sum": t("basic composition: costs add up"),
    "either": t("basic or zCDP composition, whichever allows more"),
    "concentrated": t("zCDP composition: ρ adds up"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spender:
    """An analyst, what they have spent, and their quota."""

    analyst: str
    spent: Message
    quota: Loss | None
    left: Loss | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The state of a budget: `left` is for the visitor, `part` is the share of the limit that is left, from 0 to 1."""

    left: Loss
    limit: Message
    spent: Message
    part: float
    protects: Message
    sure: Message | None
    starter: bool
    rule: Message
    notes: tuple[Message, ...]
    spenders: tuple[Spender, ...]


def standing_of(shown: DatasetView) -> Standing:
    """Return the state of a data set's budget."""
    account, name = shown.budget, account_name(shown.name) or shown.name
    used = min(account.used.get("epsilon", 1.0), account.used.get("rho", 1.0))
    meaning = certainty(account.limit.loss)
    return Standing(
        left=shown.left,
        limit=limit_text(account.limit),
        spent=_total_text(account),
        part=min(1.0, max(0.0, 1 - used)),
        protects=shown.protection.text,
        sure=None if meaning is None else t("If all of it is spent: {meaning}", meaning=meaning),
        starter=account.starter,
        rule=RULES[account.limit.accounting],
        notes=tuple(_notes(account, name)),
        spenders=tuple(_spenders(account)),
    )


def left_text(loss: Loss) -> Message:
    """Return what is left of a budget in decimals: rounded down where no short decimal is exact.

    >>> left_text(Loss("1/2")), left_text(Loss("2916/1285"))
    ('ε = 0.5', 'ε ≈ 2.269')
    """
    if Fraction(decimal(loss.amount)) == loss.amount:
        return loss.text
    step = Fraction(10) ** (math.floor(math.log10(loss.amount)) - 3)
    symbol = "ρ" if loss.kind is Kind.ZCDP else "ε"
    amount = t("{symbol} ≈ {amount}", symbol=symbol, amount=loss.amount // step * step)
    return join(", ", [amount, t("δ = {delta}", delta=loss.delta)]) if loss.delta else amount


def limit_text(limit: Limit) -> Message:
    """Return a limit in decimals."""
    if limit.accounting == "concentrated":
        return t("ρ = {rho} ({loss})", rho=limit.rho, loss=limit.loss)
    return limit.loss.text


def conversion_text(quote: Quote) -> Message | None:
    """Return why a query costs something else here than it states; None where it does not."""
    if quote.price is None or quote.price.factor == 1:
        return None
    return t(
        "The query states {cost} for {change}. The budget of this data set protects {unit}, for which the cost counts "
        "{factor} times.",
        cost=quote.cost,
        change=quote.cost.neighbours.text,
        unit=quote.protection.text,
        factor=quote.price.factor,
    )


def author_of(entry: Entry) -> str:
    """Return who made an entry: the analyst of a charge or a release, else the steward."""
    if entry.event in ("charge", "release"):  # a charge can have a parameter `by`, which names no author
        return entry.analyst or ""
    return str(entry.details.get("by") or "")


def event_text(entry: Entry) -> Message:
    """Return what an entry of the ledger says happened."""
    try:
        text = _event_text(entry, entry.details)
    except (PrivacyError, KeyError, TypeError, ValueError):
        return t("{event}, which cannot be read", event=entry.event)
    reason = entry.details.get("reason")
    if entry.event in ("charge", "release") or not reason:
        return text
    return t("{event} ({reason})", event=text, reason=str(reason))


def _event_text(entry: Entry, details: Mapping[str, Any]) -> Message:
    match entry.event:
        case "account":
            unit, apart = Protection.from_json(details["protects"]).text, ", ".join(details.get("apart", ()))
            declared = t("Declared: protects {unit}, on the account {account}", unit=unit, account=details["account"])
            return join("; ", [declared, t("{names} are about other people", names=apart)]) if apart else declared
        case "limit":
            limit = Limit.from_json(details["limit"])
            parts = [t("Budget set: {limit} in all", limit=limit_text(limit)), RULES[limit.accounting]]
            if "pace" in details:
                parts.append(t("at most ε = {pace} a year", pace=Fraction(details["pace"])))
            if "expires" in details:
                parts.append(t("until {day}", day=details["expires"]))
            return join(", ", parts)
        case "quota":
            has_quota = entry.loss is not None and (entry.loss.amount or entry.loss.delta)
            if has_quota:
                return t("Quota set for {analyst}", analyst=entry.analyst)
            return t("Quota of {analyst} removed", analyst=entry.analyst)
        case "allowance":
            amount = Fraction(entry.amount or "0")
            if not amount:
                return t("Output-constrained answers disallowed")
            return t("Output-constrained answers allowed, up to ε = {epsilon} in all", epsilon=amount)
        case "naming":
            if not details["most"]:
                return t("Lists of names forbidden, by the detector of entry {detector}", detector=details["detector"])
            return t(
                "Lists of names allowed: {most:,} names in all, by the detector of entry {detector}",
                most=details["most"],
                detector=details["detector"],
            )
        case "charge":
            parts = [t("Charge: {query}", query=entry.label)]
            if entry.names:
                parts.append(t("about the record {record}", record=entry.names))
            if entry.unit == "constrained":
                parts.append(t("outside the sum"))
            return join(", ", parts)
        case _:
            return t("Release: {query}", query=entry.label)


def _total_text(account: Account) -> Message:
    spent = spent_text(account, account.spent)
    if account.limit.accounting != "either":
        return spent
    return t("{spent} (by zCDP composition: {share:.0%})", spent=spent, share=account.used["rho"])


def spent_text(account: Account, spent: Spending) -> Message:
    """Return what was spent of an account, in decimals."""
    if account.limit.accounting == "concentrated":
        return t("ρ = {rho}", rho=spent.rho)
    epsilon = t("ε = {epsilon}", epsilon=spent.epsilon)
    return join(", ", [epsilon, t("δ = {delta}", delta=spent.delta)]) if spent.delta else epsilon


def _notes(account: Account, name: str) -> Iterator[Message]:
    """Return what else there is to know about an account, the most urgent first."""
    if account.naming.since is not None:
        yield t(
            "Since entry {entry} of the ledger answers name records. No guarantee covers anybody who is named.",
            entry=account.naming.since,
        )
    for allowance in account.naming.allowances:
        if allowance.dataset == name and allowance.most:
            yield t(
                "Lists of names are allowed: {left:,} of {most:,} names are left, by the detector of entry {detector}.",
                left=allowance.left,
                most=allowance.most,
                detector=allowance.detector,
            )
    if account.fence.since is not None:
        yield t(
            "The differential privacy guarantee ended with entry {entry} of the ledger: an output-constrained answer "
            "was given there.",
            entry=account.fence.since,
        )
    elif account.fence.allowed:
        yield t(
            "Output-constrained answers are allowed up to ε = {epsilon}. They are not differentially private, and the "
            "first of them ends the guarantee.",
            epsilon=account.fence.allowed,
        )
    if account.expires is not None:
        if account.is_expired:
            yield t("It expired on {day}: no query is answered.", day=account.expires)
        else:
            yield t("It ends on {day}.", day=account.expires)
    if account.pace is not None:
        yield t(
            "At most ε = {pace} may be spent a year; {spent} is spent this year.",
            pace=account.pace,
            spent=spent_text(account, account.this_year),
        )
    booking = account.members.get(name, account.protection).booking_text
    if booking is not None:
        yield t("What you pay: {booking}.", booking=booking)
    yield from _sharing_notes(account, name)
    if account.names:
        names = join(", ", (t("others") if record == OTHERS else record for record in account.names))
        yield t("It does not protect the records that queries have named: {names}.", names=names)
    if account.public.get(name):
        columns = ", ".join(account.public[name])
        yield t("It does not hide changes of columns that the schema calls public: {columns}.", columns=columns)


def _sharing_notes(account: Account, name: str) -> Iterator[Message]:
    """Return with which data sets and analysts a budget is shared."""
    others = ", ".join(other for other in account.members if other not in (name, account.name))
    if account.name != name and others:
        yield t("It spends from the account {account}, shared with {others}.", account=account.name, others=others)
    elif account.name != name:
        yield t("It spends from the account {account}.", account=account.name)
    elif others:
        yield t("The budget is shared with data about the same people: {others}.", others=others)
    quotas = [
        t(
            "{loss} for {analyst}",
            loss=quota.left,
            analyst=t("other analysts") if quota.analyst == OTHERS else quota.analyst,
        )
        for quota in account.quotas
        if quota.left.amount or quota.left.delta
    ]
    if quotas:
        yield t("Reserved by quotas: {quotas}.", quotas=join("; ", quotas))


def _spenders(account: Account) -> Iterator[Spender]:
    quotas = {quota.analyst: quota for quota in account.quotas}
    for analyst in sorted({*account.spenders, *quotas}):
        quota, spent = quotas.get(analyst), account.spenders.get(analyst, Spending())
        yield Spender(
            analyst=analyst,
            spent=spent_text(account, spent),
            quota=None if quota is None else quota.limit,
            left=None if quota is None else quota.left,
        )
