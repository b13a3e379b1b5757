"""What was spent when, by whom and on which question, from the charges of the ledger; and when a limit would be
reached.

Amounts are those that were booked, in the unit of the account, and add up exactly. What is outside the sum, as
output-constrained answers are, is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Final, Literal

from wallflower.ledger import Account, Ledger
from wallflower.ledger.chain import Entry

By = Literal["analyst", "question", "dataset"]
WINDOW: Final = 30  # days whose pace is carried on
_FEWEST: Final = 3  # charges within the window, on two days at least, below which there is no pace
_HORIZON: Final = 3650  # days beyond which a day would be a pretence
_DAYS, _WEEKS = 31, 217  # so long a period is cut into days, into weeks; a longer one into months


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
        return self.rho if letter == "ρ" else self.epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Amounts by period and by whom or what: `series` are in the order of their sums, the largest first."""

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
    """When the limit would be reached if all went on as in the last days: a `day`, or why there is none."""

    day: date | None
    words: str
    spent: Fraction


def letter_of(account: Account) -> str:
    """What an account counts."""
    return "ρ" if account.limit.accounting == "concentrated" else "ε"


def expenses(ledger: Ledger, account: Account, kinds: Mapping[str, str]) -> list[Expense]:
    """What was charged to an account, oldest first; `kinds` names questions by their labels."""
    entries = [entry for name in account.members for entry in ledger.history(name, event="charge")]
    charged = sorted((entry for entry in entries if entry.unit != "constrained"), key=lambda entry: entry.id)
    return [found for entry in charged if (found := _expense(entry, kinds)).epsilon or found.rho]  # notes cost nothing


def history(found: Sequence[Expense], by: By, letter: str, *, first: date, last: date, most: int = 6) -> History:
    """Amounts from a first day to a last, in days, weeks or months; beyond `most` series the rest is one."""
    step, start = _step(first, last)
    periods = _periods(first, last, start)
    within = [one for one in found if first <= one.day <= last]
    sums: dict[str, dict[date, Fraction]] = {}
    for one in within:
        own = sums.setdefault(getattr(one, by), {})
        own[start(one.day)] = own.get(start(one.day), Fraction()) + one.amount(letter)
    ordered = sorted(sums, key=lambda name: (-sum(sums[name].values()), name))
    series = {name: _row(periods, [sums[name]]) for name in ordered[:most]}
    if len(ordered) > most:
        series["(others)"] = _row(periods, [sums[name] for name in ordered[most:]])
    return History(letter=letter, periods=tuple(periods), step=step, series=series)


def projection(found: Sequence[Expense], account: Account, today: date) -> Projection:
    """The day on which the limit is reached at the pace of the last days. It is arithmetic, and no forecast of what
    anybody will ask."""
    letter, since = letter_of(account), today - timedelta(days=WINDOW)
    lately = [one for one in found if since < one.day <= today]
    spent = sum((one.amount(letter) for one in lately), Fraction())
    if not (account.left.amount or account.left.delta):
        return Projection(day=today, words="nothing is left", spent=spent)
    if len(lately) < _FEWEST or len({one.day for one in lately}) < 2:
        words = f"no projection: fewer than {_FEWEST} charges on two days within the last {WINDOW} days"
        return Projection(day=None, words=words, spent=spent)
    began = max(since + timedelta(days=1), found[0].day)
    days = (today - began).days + 1
    far = max(_days_left(account, lately, rule, days) for rule in _RULES[account.limit.accounting])
    if far > _HORIZON:
        words = "not within ten years at the pace of the last days"
        return Projection(day=None, words=words, spent=spent)
    day = today + timedelta(days=int(far))
    if account.expires is not None and day.isoformat() > account.expires:
        return Projection(day=None, words=f"not before its last day, {account.expires}", spent=spent)
    return Projection(day=day, words="", spent=spent)


_RULES: Final[Mapping[str, tuple[str, ...]]] = {
    "sum": ("ε",),
    "concentrated": ("ρ",),
    "either": ("ε", "ρ"),  # the kinder one counts, so the later day does
}


def _days_left(account: Account, lately: Iterable[Expense], letter: str, days: int) -> Fraction:
    limit, spent = account.limit, account.spent
    plain = Fraction() if spent.unsummed else limit.epsilon - spent.epsilon  # what no plain sum bounds ends that rule
    left = max(limit.rho - spent.rho if letter == "ρ" else plain, Fraction())
    pace = sum((one.amount(letter) for one in lately), Fraction()) / days
    return left and (left / pace if pace else Fraction(_HORIZON + 1))


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
    if days <= _DAYS:
        return "day", lambda day: day
    if days <= _WEEKS:
        return "week", lambda day: day - timedelta(days=day.weekday())
    return "month", lambda day: day.replace(day=1)


def _periods(first: date, last: date, start: Callable[[date], date]) -> list[date]:
    days = (first + timedelta(days=count) for count in range((last - first).days + 1))
    return list(dict.fromkeys(map(start, days)))


def _row(periods: Sequence[date], sums: Sequence[Mapping[date, Fraction]]) -> tuple[Fraction, ...]:
    return tuple(sum((own.get(period, Fraction()) for own in sums), Fraction()) for period in periods)
