"""Who spent how much of which data set's privacy.

Stored      one append-only table of grants, allocations, charges and releases, chained by hashes (chain.py)
Budget      per data set and account (`Loss.account`): the sum of its grants, or `Ledger.STARTER` before the first
Remaining   computed from the rows with exact fractions whenever it is asked for, never stored (budget.py)
Durable     a charge is on disk before `charge` returns; a refusal changes nothing and locks nothing (store.py)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from wallflower.errors import BudgetExhausted, KeyConflict, LedgerError, ParameterError
from wallflower.lazy import Lazy
from wallflower.ledger.budget import STARTER, Line, accounts_of, entries, line_of
from wallflower.ledger.chain import GENESIS, Entry, Event, Verification, canonical, seal, walk
from wallflower.ledger.store import Store
from wallflower.privacy import Chargeable, Loss

if TYPE_CHECKING:
    import sqlalchemy as sa
else:
    sa = Lazy("sqlalchemy")

__all__ = ["Entry", "Ledger", "Line", "Receipt", "Verification"]

# A sum of fractions with ever new denominators grows without bound, and an append-only ledger could never be rid of it.
_GRID: Final = math.lcm(*range(1, 1001), 10**140)
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that a question is paid for. `stored` is its public release when it was answered before."""

    id: int
    dataset: str
    analyst: str
    cost: Loss
    label: str
    key: str | None
    left: Loss
    starter: bool
    stored: dict[str, Any] | None = None


class Ledger:
    """The book of one or more data sets.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Ledger.open(f"{folder}/ledger.db") as ledger:
    ...     ledger.remaining("icu")
    Loss(ε=1)
    """

    STARTER: ClassVar[Loss] = STARTER

    def __init__(self, where: str | Path | None = None) -> None:
        """A path, `sqlite:///FILE`, `postgresql://…`, or nothing for `$WALLFLOWER_LEDGER` and then your data home."""
        self._store = Store(where)

    @classmethod
    def open(cls, where: str | Path | None = None) -> Self:
        """The same, said aloud: a ledger that is not there yet is made, an older one is brought up to date."""
        return cls(where)

    def close(self) -> None:
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.place!r})"

    def grant(self, dataset: str, loss: Loss, *, by: str, reason: str = "") -> Entry:
        """Add to a data set's limit. The first grant replaces the starter cap; what was spent still counts."""
        _require_names(dataset=dataset, by=by)
        with self._store.write() as db:
            line = line_of(db, dataset, _bookable(loss).account)
            if not line.starter:
                _bookable(line.limit + loss)
            return _append(db, "grant", dataset, body=canonical({"by": by, "reason": reason}), **_booked(loss))

    def allocate(self, dataset: str, analyst: str, loss: Loss, *, by: str) -> Entry:
        """Reserve part of the limit for one analyst, out of what is neither spent nor reserved."""
        _require_names(dataset=dataset, analyst=analyst, by=by)
        with self._store.write() as db:
            free = line_of(db, dataset, _bookable(loss).account).free
            if not loss <= free:
                raise BudgetExhausted(
                    dataset,
                    asked=loss,
                    left=free,
                    remedy="Allocate less, or grant more first (wallflower budget grant).",
                )
            return _append(db, "allocate", dataset, analyst=analyst, body=canonical({"by": by}), **_booked(loss))

    def charge(self, dataset: str, query: Chargeable, *, analyst: str, key: str | None = None) -> Receipt:
        """Pay for a question, durably, or refuse and change nothing.

        Under a `key` used before, the same question of the same analyst is not paid again: the receipt holds its
        stored release.
        """
        _require_names(dataset=dataset, analyst=analyst, **({} if key is None else {"key": key}))
        cost, body = _bookable(query.cost()), canonical(query.to_json())
        with self._store.write() as db:
            line = line_of(db, dataset, cost.account)
            left, stored = line.left_for(analyst), None
            asked = {"analyst": analyst, "label": query.label, "body": body, **_booked(cost)}
            paid = None if key is None else _first(db, entries().c.dataset == dataset, entries().c.key == key)
            if paid is not None:
                stored = _answer(db, paid, asked)
            elif not cost <= left:
                raise BudgetExhausted(dataset, asked=cost, left=left)
            else:
                paid, left = _append(db, "charge", dataset, key=key, **asked), left.less(cost)
        return Receipt(
            id=paid.id,
            dataset=dataset,
            analyst=analyst,
            cost=cost,
            label=query.label,
            key=key,
            left=left,
            starter=line.starter,
            stored=stored,
        )

    def can_charge(self, dataset: str, query: Chargeable, *, analyst: str) -> bool:
        """Whether `charge` would accept the question now."""
        cost = _bookable(query.cost())
        return cost <= self.remaining(dataset, account=cost.account, analyst=analyst)

    def record(self, receipt: Receipt, body: Mapping[str, Any]) -> None:
        """Keep the public release a charge has paid for; each charge has one."""
        kept = canonical(body)
        with self._store.write() as db:
            paid = _first(db, entries().c.id == receipt.id, entries().c.event == "charge")
            if paid is None or (paid.dataset, paid.label) != (receipt.dataset, receipt.label):
                raise LedgerError(
                    f"{receipt.dataset}: this ledger has no charge {receipt.id} for {receipt.label}. A release is "
                    "recorded in the ledger that was charged. Open that one."
                )
            if _first(db, entries().c.charge == paid.id) is not None:
                raise LedgerError(
                    f"{receipt.dataset}: charge {receipt.id} already has its release. A charge pays for one. "
                    "Charge again for another."
                )
            whose = {"analyst": paid.analyst, "label": paid.label, "charge": paid.id}
            # The charge's time, not now: the difference would tell how long the look took.
            _append(db, "release", paid.dataset, time=paid.time, body=kept, **whose)

    def release(self, charge: int) -> dict[str, Any] | None:
        """The public release a charge has paid for, if it was recorded."""
        with self._store.read() as db:
            found = _first(db, entries().c.charge == charge)
        return None if found is None else found.details

    def remaining(self, dataset: str, *, account: str = STARTER.account, analyst: str | None = None) -> Loss:
        """What is not spent; for an analyst, what they may spend."""
        _require_names(dataset=dataset, **({} if analyst is None else {"analyst": analyst}))
        with self._store.read() as db:
            line = line_of(db, dataset, account)
        return line.left if analyst is None else line.left_for(analyst)

    def budget(self, dataset: str) -> list[Line]:
        """Limit, spending and shares of every account of a data set."""
        _require_names(dataset=dataset)
        with self._store.read() as db:
            return [line_of(db, dataset, account) for account in accounts_of(db, dataset)]

    def datasets(self) -> list[str]:
        """Every data set the ledger has heard of."""
        with self._store.read() as db:
            return sorted(db.scalars(sa.select(entries().c.dataset).distinct()))

    def history(
        self,
        dataset: str | None = None,
        *,
        analyst: str | None = None,
        event: Event | None = None,
        before: int | None = None,
        last: int | None = None,
    ) -> list[Entry]:
        """Entries, oldest first: of one data set, analyst or event; the `last` few `before` an id."""
        wanted = {"dataset": dataset, "analyst": analyst, "event": event}
        found = sa.select(entries()).where(
            *(entries().c[name] == value for name, value in wanted.items() if value is not None)
        )
        if before is not None:
            found = found.where(entries().c.id < before)
        with self._store.read() as db:
            rows = db.execute(found.order_by(entries().c.id.desc()).limit(last)).mappings().all()
        return [Entry(**row) for row in reversed(rows)]

    def export(self) -> Iterator[dict[str, Any]]:
        """Every entry with its hashes, ready for one JSON line each; anybody can check the chain from them."""
        with self._store.read() as db, db.execute(_all()) as rows:
            yield from map(dict, rows.mappings())

    def verify(self, *, head: str | None = None) -> Verification:
        """Walk the chain. With a `head` noted earlier, also find out whether later entries were cut off since."""
        with self._store.read() as db, db.execute(_all()) as rows:
            return walk(map(dict, rows.mappings()), head=head)


def _all() -> sa.Select[Any]:
    return sa.select(entries()).order_by(entries().c.id).execution_options(yield_per=1000)


def _append(db: sa.Connection, event: Event, dataset: str, *, time: str | None = None, **columns: Any) -> Entry:
    end = db.execute(sa.select(entries().c.id, entries().c.hash).order_by(entries().c.id.desc()).limit(1)).one_or_none()
    entry = seal(
        id=1 if end is None else end.id + 1,
        previous=GENESIS if end is None else end.hash,
        time=time or datetime.now(UTC).isoformat(timespec="seconds"),
        event=event,
        dataset=dataset,
        **columns,
    )
    db.execute(sa.insert(entries()).values(entry.to_json()))
    return entry


def _first(db: sa.Connection, *conditions: sa.ColumnElement[bool]) -> Entry | None:
    row = db.execute(sa.select(entries()).where(*conditions).limit(1)).mappings().one_or_none()
    return None if row is None else Entry(**row)


def _answer(db: sa.Connection, paid: Entry, asked: Mapping[str, str]) -> dict[str, Any]:
    if any(getattr(paid, name) != value for name, value in asked.items()):
        raise KeyConflict(
            f"{paid.dataset}: key {paid.key!r} was used before, for another question or by another analyst. A key "
            "stands for one question. Ask under a new key."
        )
    release = _first(db, entries().c.charge == paid.id)
    if release is None:
        raise KeyConflict(
            f"{paid.dataset}: key {paid.key!r} was charged but its answer is not recorded: it is still being computed "
            "or was lost in a crash. Wait, or ask again under a new key."
        )
    return release.details


def _booked(loss: Loss) -> dict[str, str]:
    return {"account": loss.account} | {name: str(value) for name, value in loss.to_json().items()}


def _bookable(loss: Loss) -> Loss:
    if any((part * _GRID).denominator != 1 for part in (loss.amount, loss.delta)):
        raise ParameterError(
            f"loss: {str(loss)[:80]} has a denominator the ledger cannot add up for ever. Decimals of up to 140 digits "
            "and fractions over 1 to 1000 are booked exactly. Write it as a decimal, rounded up."
        )
    return loss


def _require_names(**names: str) -> None:
    for what, name in names.items():
        fits = isinstance(name, str) and 1 <= len(name) <= _LONGEST and name.isprintable() and name == name.strip()
        if not fits:
            raise ParameterError(
                f"{what}: {str(name)[:40]!r} cannot be a name here. It takes 1 to {_LONGEST} printable characters "
                "without a space at either end. Choose another."
            )
