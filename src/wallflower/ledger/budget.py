"""Where an account stands, added up from the rows: its members, its limit, what was spent and what is kept for whom.

Everything is computed from the rows, exactly, and never stored. An account belongs to one data set, or to several
that are about the same people; each of them declares whose loss it counts, and all spend from the one limit: proof.md,
label (G).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from wallflower.errors import LedgerError
from wallflower.ledger.account import Account, Declaration, Fence, Share
from wallflower.ledger.chain import Entry
from wallflower.ledger.limits import STARTER, Limit, Spending
from wallflower.ledger.store.statements import (
    entries,
    find_bookings,
    find_bookings_since,
    find_constrained,
    find_decisions,
    find_declarations,
    find_public,
    find_time,
)
from wallflower.machine.lazy import Lazy
from wallflower.privacy import Loss
from wallflower.units import Price

if TYPE_CHECKING:
    import sqlalchemy as sa
else:
    sa = Lazy("sqlalchemy")


def latest_time(db: sa.Connection) -> str:
    """When the latest row was added, or nothing; a release has the time of its charge."""
    return db.scalar(find_time()) or ""


def declarations(db: sa.Connection) -> dict[str, Declaration]:
    """What stewards and schemas have said of data sets, the latest word on each."""
    rows = db.execute(find_declarations()).mappings()
    return {made.dataset: made for made in (Declaration.of(Entry(**row)) for row in rows)}


def members_of(account: str, stated: Mapping[str, Declaration]) -> dict[str, Declaration]:
    """The data sets that spend from an account; where none says so, the one of its name."""
    found = {name: made for name, made in sorted(stated.items()) if made.account == account}
    return found or {account: Declaration(dataset=account, account=account)}


def account_of(db: sa.Connection, name: str, members: Mapping[str, Declaration]) -> Account:
    """Where an account stands, by the rows that were booked on it."""
    names, decided = list(members), _decisions(db, name)
    limited = next((entry for entry in reversed(decided) if entry.event == "limit"), None)
    terms = {} if limited is None else limited.details
    spenders = _by_analyst(db.execute(find_bookings(), {"members": names}).all())
    pace = None if terms.get("pace") is None else Fraction(terms["pace"])
    account = Account(
        name=name,
        members={dataset: made.protection for dataset, made in members.items()},
        limit=STARTER if limited is None else Limit.from_json(terms["limit"]),
        spent=_total(spenders.values()),
        starter=limited is None,
        fence=_fence(db, names, [entry for entry in decided if entry.event == "allowance"]),
        spenders=spenders,
        expires=terms.get("expires"),
        as_of=latest_time(db)[:10],
        public=_public_columns(db, names),
        pace=pace,
        this_year=Spending() if pace is None else _sum_bookings(db, find_bookings_since(start_of_year()), names),
    )
    shares = [entry for entry in decided if entry.event == "share"]
    return replace(account, shares=tuple(_shares(db, account, names, shares))) if shares else account


def _decisions(db: sa.Connection, account: str) -> list[Entry]:
    """What stewards decided of an account: limits, shares, allowances, the oldest first."""
    return [Entry(**row) for row in db.execute(find_decisions(), {"account": account}).mappings()]


def start_of_year() -> str:
    """What every time of this year comes after, as text."""
    return f"{datetime.now(UTC).year}"


def _by_analyst(rows: Iterable[Any]) -> dict[str, Spending]:
    found: dict[str, Spending] = {}
    for row in rows:
        found[row.analyst] = found.get(row.analyst, Spending()).plus(_price(row), row.times)
    return dict(sorted(found.items()))


def _price(row: Any) -> Price:
    try:
        return Price(
            factor=Fraction(1),
            epsilon=None if row.epsilon is None else Fraction(row.epsilon),
            delta=Fraction(row.booked_delta),
            rho=Fraction(row.rho),
        )
    except (TypeError, ValueError, ZeroDivisionError):
        raise LedgerError(
            "a charge holds an amount that is not a number. Entries are written once and exactly. Find it with "
            "`wallflower ledger verify`, then restore a backup."
        ) from None


def _sum_bookings(db: sa.Connection, booked: sa.Select[Any], names: Sequence[str]) -> Spending:
    return _total(_by_analyst(db.execute(booked, {"members": names}).all()).values())


def _total(parts: Iterable[Spending]) -> Spending:
    return sum(parts, start=Spending())


def _fence(db: sa.Connection, names: Sequence[str], allowed: Sequence[Entry]) -> Fence:
    """What a member was answered on an account of its own ends the bound of the one it joined, too."""
    charged = db.execute(find_constrained(), {"members": names}).all()
    return Fence(
        allowed=Fraction((allowed[-1].amount if allowed else None) or "0"),
        spent=sum((row.times * Fraction(row.amount) for row in charged), start=Fraction()),
        since=min((row.first for row in charged), default=None),
    )


def named_records(db: sa.Connection, names: Sequence[str]) -> tuple[str, ...]:
    """The records that questions named, which no limit covers."""
    entry = entries().c
    found = sa.select(entry.names).where(entry.dataset.in_(names), entry.names.is_not(None))
    return tuple(sorted(db.scalars(found.distinct())))


def _public_columns(db: sa.Connection, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """By data set, columns whose cells an answer took for public: since then no limit covers a change of these.  (P)"""
    found: dict[str, set[str]] = {}
    for row in db.execute(find_public(), {"members": names}):
        found.setdefault(row.dataset, set()).update(json.loads(row.unit)["public"])
    return {dataset: tuple(sorted(columns)) for dataset, columns in sorted(found.items())}


def _shares(db: sa.Connection, account: Account, names: Sequence[str], decided: Sequence[Entry]) -> Iterator[Share]:
    first: dict[str, int] = {}
    kept: dict[str, Loss] = {}
    for entry in decided:
        if entry.analyst is not None and entry.loss is not None:
            first.setdefault(entry.analyst, entry.id)
            kept[entry.analyst] = entry.loss
    for analyst in sorted(kept):
        if not (kept[analyst].amount or kept[analyst].delta):
            continue
        since = find_bookings().where(entries().c.analyst == analyst, entries().c.id > first[analyst])
        spent = _sum_bookings(db, since, names)
        yield Share(analyst=analyst, allocated=kept[analyst], spent=_as_loss(spent, kept[analyst], account))


def _as_loss(spent: Spending, like: Loss, account: Account) -> Loss:
    neighbours = account.protection.neighbours
    if account.limit.accounting == "concentrated":
        return Loss.zcdp(spent.rho, neighbours=neighbours)
    return Loss(spent.epsilon, delta=spent.delta, neighbours=like.neighbours)
