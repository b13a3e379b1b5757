"""Blocks of a stream: which observations a watch is about to look at, noted before it does.

One numbered row after another for each session, each free of charge and part of the chain. A number that is taken was
taken by somebody: so of two processes that go on from copies of one state, the second is told. What follows from that:
proof.md, label (B).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from wallflower.errors import KeyConflict, SessionClosed
from wallflower.ledger.chain import Entry, canonical
from wallflower.ledger.rows import append, columns_of, entries, find_first
from wallflower.machine.heavy import sqlalchemy as sa

LABEL: Final = "outlier-watch-block/1"
_SAID: Final = ("number", "settled", "last", "spent", "holder")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Where a session stands in the ledger; number 0 is the charge itself, before anything was noted.

    Observations up to `last` are somebody's already. A state that has not got as far as `settled` is an older copy.
    `spent` is the most that can have been spent before the next row. `holder` is the process that wrote this one.
    """

    charge: int
    session: str  # the hash of the charge
    number: int = 0
    settled: int = 0
    last: int = 0
    spent: int = 0
    holder: str = ""
    hash: str = ""  # of the row, once there is one

    def is_as(self, other: Block) -> bool:
        """Whether both say the same of the stream."""
        return (self.settled, self.last, self.spent) == (other.settled, other.last, other.spent)


def find_latest(db: sa.Connection, charge: int, session: str) -> Block | None:
    """The last block of a session; None where this ledger has no such charge."""
    paid = _find_charge(db, charge, session)
    if paid is None:
        return None
    entry = entries().c
    own = (entry.event == "charge", entry.dataset == paid.dataset, entry.id > charge, entry.label == LABEL)
    found = (
        sa.select(entries())
        .where(*own, entry.idempotency_key.startswith(f"{session}#"))
        .order_by(entry.id.desc())
        .limit(1)
    )
    row = db.execute(found).mappings().one_or_none()
    return _block(paid, None if row is None else Entry(**row))


def append_block(db: sa.Connection, asked: Block, *, after: Block) -> Block:
    """Write the block that follows another; gives what stands there: this one, or that of the first caller."""
    paid = _find_charge(db, asked.charge, asked.session)
    if paid is None or _hash_of(db, paid, after) != after.hash:
        raise SessionClosed(
            "the ledger no longer has what the watch noted there: an older copy was put in its place. A session goes "
            "on where all of it is known. Start a new one, which is paid for (renew=True, --renew)."
        )
    return _block(paid, _row(db, paid, asked) or _append(db, paid, asked))


def _find_charge(db: sa.Connection, charge: int, session: str) -> Entry | None:
    entry = entries().c
    return find_first(db, entry.id == charge, entry.event == "charge", entry.hash == session)


def _hash_of(db: sa.Connection, paid: Entry, block: Block) -> str | None:
    row = _row(db, paid, block) if block.number else paid
    return None if row is None else row.hash


def _row(db: sa.Connection, paid: Entry, block: Block) -> Entry | None:
    return find_first(db, entries().c.dataset == paid.dataset, entries().c.idempotency_key == _key(block))


def _append(db: sa.Connection, paid: Entry, block: Block) -> Entry:
    """A charge of nothing, in the units of what was paid."""
    assert paid.loss is not None
    free = columns_of(paid.loss.less(paid.loss))
    free |= {part: "0" for part in ("epsilon", "booked_delta", "rho") if getattr(paid, part) is not None}
    whose = {
        "analyst": paid.analyst,
        "unit": paid.unit,
        "factor": paid.factor,
        "label": LABEL,
        "idempotency_key": _key(block),
    }
    body = canonical({name: getattr(block, name) for name in _SAID})
    return append(db, "charge", paid.dataset, body=body, **whose, **free)


def _block(paid: Entry, row: Entry | None) -> Block:
    if row is None:
        return Block(charge=paid.id, session=paid.hash, hash=paid.hash)
    if row.label != LABEL:
        raise KeyConflict(
            f"{row.dataset}: key {row.idempotency_key!r} was used for a query, but belongs to a watch. "
            "Start a new session of the watch, which is paid for (renew=True, --renew)."
        )
    return Block(charge=paid.id, session=paid.hash, hash=row.hash, **row.details)


def _key(block: Block) -> str:
    return f"{block.session}#{block.number}"
