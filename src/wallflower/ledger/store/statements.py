"""What a ledger asks of its one table. A statement takes longer to put together than to run, so each is made once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from wallflower.ledger.chain import COLUMNS
from wallflower.machine.lazy import Lazy

if TYPE_CHECKING:
    import sqlalchemy as sa
else:
    sa = Lazy("sqlalchemy")

CONSTRAINED: Final = "constrained"  # the unit of a charge that is no part of the sum


@cache
def entries() -> sa.TableClause:
    """The one table of a ledger."""
    return sa.table("entries", *(sa.column(name) for name in COLUMNS))


@cache
def find_time() -> sa.Select[Any]:
    entry = entries().c
    return sa.select(entry.time).where(entry.event != "release").order_by(entry.id.desc()).limit(1)


@cache
def find_declarations() -> sa.Select[Any]:
    return sa.select(entries()).where(entries().c.event == "account").order_by(entries().c.id)


@cache
def find_decisions() -> sa.Select[Any]:
    entry = entries().c
    found = sa.select(entries()).where(entry.event.in_(("limit", "share", "allowance")))
    return found.where(entry.dataset == sa.bindparam("account")).order_by(entry.id)


def _among() -> sa.ColumnElement[bool]:
    """That a row is about one of the data sets that are passed as `members`."""
    return entries().c.dataset.in_(sa.bindparam("members", expanding=True))


@cache
def find_bookings() -> sa.Select[Any]:
    entry = entries().c
    parts = (entry.analyst, entry.epsilon, entry.booked_delta, entry.rho)
    return (
        sa.select(*parts, sa.func.count().label("times"))
        .where(_among(), entry.event == "charge", entry.unit.is_not(None), entry.unit != CONSTRAINED)
        .group_by(*parts)
    )


def find_bookings_since(year: str) -> sa.Select[Any]:
    return find_bookings().where(entries().c.time >= year)


@cache
def find_constrained() -> sa.Select[Any]:
    entry = entries().c
    return (
        sa.select(entry.amount, sa.func.count().label("times"), sa.func.min(entry.id).label("first"))
        .where(_among(), entry.event == "charge", entry.unit == CONSTRAINED)
        .group_by(entry.amount)
    )


@cache
def find_public() -> sa.Select[Any]:
    """The units of charges that took cells for public: `unit` names their columns."""
    entry = entries().c
    found = sa.select(entry.dataset, entry.unit).where(_among(), entry.event == "charge")
    return found.where(entry.unit.like('%"public":%')).distinct()


@cache
def find_end() -> sa.Select[Any]:
    return sa.select(entries().c.id, entries().c.hash).order_by(entries().c.id.desc()).limit(1)


@cache
def insertion() -> sa.Insert:
    return sa.insert(entries())
