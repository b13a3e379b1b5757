"""Rows of the ledger: the statements that read its one table, and how rows are appended to it.

Building a statement takes longer than running it, so each is built once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache
from typing import Any, Final

from wallflower.errors import AnswerPending, KeyConflict, LedgerError, ParameterError
from wallflower.ledger.chain import COLUMNS, GENESIS, Entry, Event, seal
from wallflower.machine.heavy import sqlalchemy as sa
from wallflower.privacy import Loss

CONSTRAINED: Final = "constrained"  # the unit of a charge that is no part of the sum
NAMING: Final = "naming"  # the part of an account that answers with names of records take from
# A sum of fractions with ever new denominators grows without bound, and an append-only ledger could never be rid of it.
_GRID: Final = math.lcm(*range(1, 1001), 10**140)


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
    found = sa.select(entries()).where(entry.event.in_(("limit", "quota", "allowance")))
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
        .where(_among(), entry.event == "charge", entry.unit != CONSTRAINED)
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
def find_naming_decisions() -> sa.Select[Any]:
    """What stewards allowed of answers that name records, the oldest first."""
    return sa.select(entries()).where(_among(), entries().c.event == "naming").order_by(entries().c.id)


@cache
def find_namings() -> sa.Select[Any]:
    """The charges of answers that name records."""
    entry = entries().c
    found = sa.select(entry.id, entry.dataset, entry.claim).where(_among(), entry.event == "charge")
    return found.where(entry.claim.like('%"naming":{%'))


@cache
def find_end() -> sa.Select[Any]:
    return sa.select(entries().c.id, entries().c.hash).order_by(entries().c.id.desc()).limit(1)


@cache
def insertion() -> sa.Insert:
    return sa.insert(entries())


def latest_time(db: sa.Connection) -> str:
    """Return the time of the latest row, or an empty text; a release has the time of its charge."""
    return db.scalar(find_time()) or ""


def all_rows() -> sa.Select[Any]:
    return sa.select(entries()).order_by(entries().c.id).execution_options(yield_per=1000)


def append(db: sa.Connection, event: Event, dataset: str, *, time: str | None = None, **columns: Any) -> Entry:
    """Add a row. Its time is not before that of an earlier one, whatever the clock says: a year begun has begun."""
    end = db.execute(find_end()).one_or_none()
    entry = seal(
        id=1 if end is None else end.id + 1,
        previous=GENESIS if end is None else end.hash,
        time=time or max(datetime.now(UTC).isoformat(timespec="seconds"), latest_time(db)),
        event=event,
        dataset=dataset,
        **columns,
    )
    db.execute(insertion(), entry.to_json())
    return entry


def append_release(db: sa.Connection, charge: int, dataset: str, label: str, body: str) -> None:
    """Add the public release that a charge has paid for; the same again changes nothing, another is refused."""
    paid = find_first(db, entries().c.id == charge, entries().c.event == "charge")
    if paid is None or (paid.dataset, paid.label) != (dataset, label):
        raise LedgerError(
            f"{dataset}: this ledger has no charge {charge} for {label}. A release is recorded in the ledger that was "
            "charged. Open that one."
        )
    known = find_first(db, entries().c.charge == paid.id)
    if known is not None and known.body == body:
        return
    if known is not None:
        raise LedgerError(
            f"{dataset}: charge {charge} already has its release. A charge pays for one. Charge again for another."
        )
    whose = {"analyst": paid.analyst, "label": paid.label, "charge": paid.id}
    # The charge's time, not now: the difference would tell how long the look took.
    append(db, "release", paid.dataset, time=paid.time, body=body, **whose)


def last_hash(db: sa.Connection) -> str:
    """The hash of the last row, which no other history has; that of an empty ledger where there is none."""
    end = db.execute(find_end()).one_or_none()
    return GENESIS if end is None else str(end.hash)


def find_first(db: sa.Connection, *conditions: sa.ColumnElement[bool]) -> Entry | None:
    row = db.execute(sa.select(entries()).where(*conditions).limit(1)).mappings().one_or_none()
    return None if row is None else Entry(**row)


def find_charge(db: sa.Connection, dataset: str, idempotency_key: str) -> Entry | None:
    """Return the charge of a data set under an idempotency key, if there is one."""
    return find_first(db, entries().c.dataset == dataset, entries().c.idempotency_key == idempotency_key)


def _is_for(paid: Entry, asked: Mapping[str, str]) -> bool:
    return all(getattr(paid, name) == value for name, value in asked.items())


def stored_answer(db: sa.Connection, paid: Entry, asked: Mapping[str, str]) -> dict[str, Any]:
    if not _is_for(paid, asked):
        raise KeyConflict(
            f"{paid.dataset}: key {paid.idempotency_key!r} was used before, for another query or by another "
            "analyst. An idempotency key stands for one query. Use a new one."
        )
    release = find_first(db, entries().c.charge == paid.id)
    if release is None:
        raise AnswerPending(
            f"{paid.dataset}: key {paid.idempotency_key!r} was charged but its answer is not recorded: it is "
            "still being computed or was lost in a crash. Wait, or ask again under a new key.",
            charge=paid.id,
        )
    return release.details


def columns_of(loss: Loss) -> dict[str, str]:
    return {name: str(value) for name, value in loss.to_json().items()}


def require_bookable(loss: Loss) -> Loss:
    if not all(map(is_addable, (loss.amount, loss.delta))):
        raise ParameterError(
            f"loss: {str(loss)[:80]} has a denominator the ledger cannot add up for ever. Decimals of up to 140 digits "
            "and fractions over 1 to 1000 are booked exactly. Write it as a decimal, rounded up."
        )
    return loss


def is_addable(part: Fraction) -> bool:
    return (part * _GRID).denominator == 1


def is_limited(db: sa.Connection, account: str) -> bool:
    return find_first(db, entries().c.event == "limit", entries().c.dataset == account) is not None


def has_terms(db: sa.Connection, account: str) -> bool:
    """Whether a steward has set a limit, a quota or an allowance on an account."""
    entry = entries().c
    return (
        find_first(db, entry.dataset == account, entry.event.in_(("limit", "quota", "allowance", "naming"))) is not None
    )


def is_known(db: sa.Connection, name: str) -> bool:
    """Whether something was declared of a data set, or booked on it by today's rules."""
    return find_first(db, entries().c.event == "account", entries().c.dataset == name) is not None or is_charged(
        db, name
    )


def is_charged(db: sa.Connection, name: str) -> bool:
    entry = entries().c
    return find_first(db, entry.dataset == name, entry.event == "charge") is not None
