"""Spending over time, from the charges of the ledger, and what an analyst sees of the spending of others.

Amounts are those that were charged, in the unit of the account, and add up exactly. Output-constrained answers are
accounted separately and do not appear here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from fractions import Fraction
from typing import Final, Literal

from wallflower.ledger import Account, Ledger
from wallflower.ledger.account import Quota
from wallflower.ledger.chain import Entry
from wallflower.ledger.limits import Spending
from wallflower.names import account_name
from wallflower.service.core.access.tokens import Caller
from wallflower.service.settings import Registration
from wallflower.text import t

By = Literal["analyst", "question", "dataset"]
OTHERS: Final = "(others)"  # no token can have this name
PACE_DAYS: Final = 30  # the projection continues the pace of these days
_MIN_CHARGES: Final = 3  # within those days, on two days at least, for a projection
_HORIZON_DAYS: Final = 3650  # a later day of exhaustion is not reported
_MAX_DAYS_BY_DAY, _MAX_DAYS_BY_WEEK = 31, 217  # longer histories are split into months
_SYMBOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "sum": ("ε",),
    "concentrated": ("ρ",),
    "either": ("ε", "ρ"),  # the composition that allows more counts, so the later day does
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expense:
    """One charge."""

    day: date
    analyst: str
    question: str
    dataset: str
    epsilon: Fraction
    rho: Fraction

    def amount(self, letter: str) -> Fraction:
        """Return the amount in ε or ρ."""
        return self.rho if letter == "ρ" else self.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Amounts by period and by analyst, query or data set; `series` are ordered by their sums, largest first."""

    letter: str
    periods: tuple[date, ...]
    step: str
    series: Mapping[str, tuple[Fraction, ...]]

    @property
    def totals(self) -> dict[str, Fraction]:
        return {name: sum(amounts, Fraction()) for name, amounts in self.series.items()}

    @property
    def total(self) -> Fraction:
        return sum(self.totals.values(), Fraction())


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """The day on which the budget is exhausted at the present pace, or the reason why there is none."""

    day: date | None
    text: str
    spent: Fraction


def budget_symbol(account: Account) -> str:
    """Return the symbol of the amounts of an account: ε or ρ."""
    return "ρ" if account.limit.accounting == "concentrated" else "ε"


def list_expenses(ledger: Ledger, account: Account, kinds: Mapping[str, str]) -> list[Expense]:
    """Return the charges of an account, oldest first; `kinds` maps mechanism labels to kinds of queries."""
    entries = [entry for name in account.members for entry in ledger.history(name, event="charge")]
    charges = sorted((entry for entry in entries if entry.unit != "constrained"), key=lambda entry: entry.id)
    expenses = [_expense(entry, kinds) for entry in charges]
    return [expense for expense in expenses if expense.epsilon or expense.rho]


def summarise_expenses(
    expenses: Sequence[Expense], by: By, letter: str, *, first: date, last: date, most: int = 6
) -> History:
    """Sum amounts from a first to a last day by day, week or month; series beyond `most` are merged into one."""
    step, start = _step(first, last)
    periods = _periods(first, last, start)
    sums: dict[str, dict[date, Fraction]] = {}
    for expense in expenses:
        if first <= expense.day <= last:
            row, period = sums.setdefault(getattr(expense, by), {}), start(expense.day)
            row[period] = row.get(period, Fraction()) + expense.amount(letter)
    ordered = sorted(sums, key=lambda name: (-sum(sums[name].values()), name))
    series = {name: _row(periods, [sums[name]]) for name in ordered[:most]}
    if len(ordered) > most:
        series[OTHERS] = _row(periods, [sums[name] for name in ordered[most:]])
    return History(letter=letter, periods=tuple(periods), step=step, series=series)


def project_exhaustion(expenses: Sequence[Expense], account: Account, today: date) -> Projection:
    """Return the day on which the budget is exhausted at the pace of the last days.

    It is arithmetic, not a forecast of what anybody will ask.
    """
    letter, since = budget_symbol(account), today - timedelta(days=PACE_DAYS)
    recent = [expense for expense in expenses if since < expense.day <= today]
    spent = sum((expense.amount(letter) for expense in recent), Fraction())
    if not (account.left.amount or account.left.delta):
        return Projection(day=today, text=t("nothing is left"), spent=spent)
    if len(recent) < _MIN_CHARGES or len({expense.day for expense in recent}) < 2:
        text = t(
            "no projection: fewer than {charges} charges on two days within the last {days} days",
            charges=_MIN_CHARGES,
            days=PACE_DAYS,
        )
        return Projection(day=None, text=text, spent=spent)
    began = max(since + timedelta(days=1), expenses[0].day)
    days = (today - began).days + 1
    distance = max(_days_left(account, recent, symbol, days) for symbol in _SYMBOLS[account.limit.accounting])
    if distance > _HORIZON_DAYS:
        return Projection(day=None, text=t("not within ten years at the pace of the last days"), spent=spent)
    day = today + timedelta(days=int(distance))
    if account.expires is not None and day.isoformat() > account.expires:
        return Projection(day=None, text=t("not before its last day, {day}", day=account.expires), spent=spent)
    return Projection(day=day, text="", spent=spent)


def redact_account(account: Account, caller: Caller, datasets: Sequence[Registration]) -> Account:
    """Return an account as an analyst may see it.

    Other analysts are one total, members are only `datasets`, and records only those that may be named.
    """
    visible = {account_name(dataset.name) or dataset.name for dataset in datasets}
    members = {name: unit for name, unit in account.members.items() if name in visible}
    nameable = {record for dataset in datasets for record in dataset.records}
    hidden = (OTHERS,) if set(account.names) - nameable else ()
    names = (*(name for name in account.names if name in nameable), *hidden)
    spenders, quotas = _merge_spenders(account, caller.name), _merge_quotas(account, caller.name)
    return replace(account, members=members, quotas=quotas, spenders=spenders, names=names)


def _merge_quotas(account: Account, analyst: str) -> tuple[Quota, ...]:
    """Return the analyst's quota, and the sum of all others."""
    kept = tuple(quota for quota in account.quotas if quota.analyst == analyst)
    rest = [quota for quota in account.quotas if quota.analyst != analyst]
    if not rest:
        return kept
    spent = left = account.left.less(account.left)
    for quota in rest:
        spent, left = spent + quota.spent, left + quota.left
    return (*kept, Quota(analyst=OTHERS, limit=spent + left, spent=spent))


def _merge_spenders(account: Account, analyst: str) -> dict[str, Spending]:
    """Return the analyst's spending, and the sum of all others."""
    kept = {name: spent for name, spent in account.spenders.items() if name == analyst}
    rest = [spent for name, spent in account.spenders.items() if name != analyst]
    return kept | ({OTHERS: sum(rest, start=Spending())} if rest else {})


def _days_left(account: Account, recent: Iterable[Expense], letter: str, days: int) -> Fraction:
    limit, spent = account.limit, account.spent
    plain = Fraction() if spent.unsummed else limit.epsilon - spent.epsilon  # such a charge has no bound in plain ε
    squares = Fraction() if spent.unsquared else limit.rho - spent.rho  # names were released: only the sum accepts
    left = max(squares if letter == "ρ" else plain, Fraction())
    pace = sum((expense.amount(letter) for expense in recent), Fraction()) / days
    return left and (left / pace if pace else Fraction(_HORIZON_DAYS + 1))


def _expense(entry: Entry, kinds: Mapping[str, str]) -> Expense:
    return Expense(
        day=date.fromisoformat(entry.time[:10]),
        analyst=entry.analyst or "",
        question=kinds.get(entry.label or "", entry.label or ""),
        dataset=entry.dataset,
        epsilon=Fraction(entry.epsilon or "0"),
        rho=Fraction(entry.rho or "0"),
    )


def _step(first: date, last: date) -> tuple[str, Callable[[date], date]]:
    days = (last - first).days + 1
    if days <= _MAX_DAYS_BY_DAY:
        return "day", lambda day: day
    if days <= _MAX_DAYS_BY_WEEK:
        return "week", lambda day: day - timedelta(days=day.weekday())
    return "month", lambda day: day.replace(day=1)


def _periods(first: date, last: date, start: Callable[[date], date]) -> list[date]:
    days = (first + timedelta(days=count) for count in range((last - first).days + 1))
    return list(dict.fromkeys(map(start, days)))


def _row(periods: Sequence[date], sums: Sequence[Mapping[date, Fraction]]) -> tuple[Fraction, ...]:
    return tuple(sum((row.get(period, Fraction()) for row in sums), Fraction()) for period in periods)
