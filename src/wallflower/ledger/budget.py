"""What is left of a data set's budget: computed from the rows, exactly, never stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from wallflower.errors import LedgerError, ParameterError
from wallflower.lazy import Lazy
from wallflower.ledger.chain import COLUMNS
from wallflower.privacy import Kind, Loss, Neighbours

if TYPE_CHECKING:
    import sqlalchemy as sa
else:
    sa = Lazy("sqlalchemy")

STARTER: Final = Loss("1")
_BOOKED: Final = ("grant", "allocate", "charge")
ACCOUNTS: Final[Mapping[str, Loss]] = {
    nothing.account: nothing
    for nothing in (Loss(0, kind=kind, neighbours=neighbours) for kind in Kind for neighbours in Neighbours)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of a limit that is reserved for one analyst; `spent` counts from the first allocation on."""

    analyst: str
    allocated: Loss
    spent: Loss

    @property
    def left(self) -> Loss:
        return self.allocated.less(self.spent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One account of one data set. `starter`: nobody has granted anything yet, the starter cap applies."""

    account: str
    limit: Loss
    spent: Loss
    starter: bool
    shares: tuple[Share, ...]

    @property
    def left(self) -> Loss:
        """What is not spent."""
        return self.limit.less(self.spent)

    @property
    def free(self) -> Loss:
        """What is neither spent nor reserved."""
        free = self.left
        for share in self.shares:
            free = free.less(share.left)
        return free

    def left_for(self, analyst: str) -> Loss:
        """What this analyst may spend: their share if they have one, else what is free."""
        own = next((share.left for share in self.shares if share.analyst == analyst), None)
        return self.free if own is None else _smaller(own, self.left)


@cache
def entries() -> sa.TableClause:
    """The one table of a ledger."""
    return sa.table("entries", *(sa.column(name) for name in COLUMNS))


def line_of(db: sa.Connection, dataset: str, account: str) -> Line:
    """Where one account of one data set stands."""
    if account not in ACCOUNTS:
        known = ", ".join(ACCOUNTS)
        raise ParameterError(f"account: {account[:80]!r} is not one. The accounts are {known}. Take `Loss.account`.")
    here = sa.and_(entries().c.dataset == dataset, entries().c.account == account)
    rows = db.execute(_sums(entries()).where(here)).all()
    granted, allocated, charged = ([row for row in rows if row.event == event] for event in _BOOKED)
    cap = STARTER.under(ACCOUNTS[account].neighbours)
    starter = cap.account == account and not (granted or _has_grant(db, dataset))
    return Line(
        account=account,
        limit=cap if starter else _total(account, granted),
        spent=_total(account, charged),
        starter=starter,
        shares=tuple(_shares(db, here, account, allocated)),
    )


def accounts_of(db: sa.Connection, dataset: str) -> list[str]:
    """The accounts a data set has rows on; the starter's when it has none."""
    entry = entries().c
    booked = sa.select(entry.account).where(entry.dataset == dataset, entry.account.is_not(None)).distinct()
    return sorted(db.scalars(booked)) or [STARTER.account]


def _sums(source: sa.FromClause) -> sa.Select[Any]:
    parts = (entries().c.event, entries().c.analyst, entries().c.amount, entries().c.delta)
    return sa.select(*parts, sa.func.count().label("times")).select_from(source).group_by(*parts)


def _has_grant(db: sa.Connection, dataset: str) -> bool:
    entry = entries().c
    grant = sa.select(entry.id).where(entry.dataset == dataset, entry.event == "grant").limit(1)
    return db.scalar(grant) is not None


def _shares(db: sa.Connection, here: sa.ColumnElement[bool], account: str, allocated: list[Any]) -> Iterator[Share]:
    if not allocated:
        return
    since = db.execute(_since_allocation(here)).all()
    for analyst in sorted({row.analyst for row in allocated}):
        reserved, spent = ([row for row in rows if row.analyst == analyst] for rows in (allocated, since))
        yield Share(analyst=analyst, allocated=_total(account, reserved), spent=_total(account, spent))


def _since_allocation(here: sa.ColumnElement[bool]) -> sa.Select[Any]:
    entry = entries().c
    first = (
        sa.select(entry.analyst, sa.func.min(entry.id).label("id"))
        .where(here, entry.event == "allocate")
        .group_by(entry.analyst)
        .subquery("first")
    )
    later = sa.and_(first.c.analyst == entry.analyst, first.c.id < entry.id)
    return _sums(entries().join(first, later)).where(here, entry.event == "charge")


def _total(account: str, rows: Iterable[Any]) -> Loss:
    amount = delta = Fraction()
    for row in rows:
        try:
            amount += row.times * Fraction(row.amount)
            delta += row.times * Fraction(row.delta)
        except (TypeError, ValueError, ZeroDivisionError):
            raise LedgerError(
                f"account {account}: an entry holds an amount that is not a number. Entries are written once and "
                "exactly. Find it with `wallflower ledger verify`, then restore a backup."
            ) from None
    zero = ACCOUNTS[account]
    return Loss(amount, delta=delta, kind=zero.kind, neighbours=zero.neighbours)


def _smaller(one: Loss, other: Loss) -> Loss:
    amount, delta = min(one.amount, other.amount), min(one.delta, other.delta)
    return Loss(amount, delta=delta, kind=one.kind, neighbours=one.neighbours)
