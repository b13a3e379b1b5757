"""Who spent how much of which data set's privacy.

Stored      one append-only table of declarations, limits, quotas, charges and releases, chained by hashes (chain.py)
Account     one for each data set, or for several about the same people; one unit, one limit (budget.py, limits.py)
Price       what a question states is translated into the account's unit, or refused (units.py), and both are booked
Left        computed from the rows with exact fractions whenever it is asked for, never stored
Durable     a charge is on disk before `charge` returns; a refusal changes nothing and locks nothing (store/)
Theorem     what an account bounds, for whom, and why: proof.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

from wallflower.errors import ParameterError
from wallflower.ledger.account import Account, Declaration, append_declaration, declarations, named_records
from wallflower.ledger.blocks import Block, append_block, find_latest
from wallflower.ledger.chain import Entry, Event, Verification, canonical, require_head, walk
from wallflower.ledger.decision import Quote, Receipt, loss_of, make_receipt
from wallflower.ledger.fingerprints import Tags, forget, is_remembered, remember
from wallflower.ledger.limits import Accounting, limit_of
from wallflower.ledger.register import Register
from wallflower.ledger.rows import (
    all_rows,
    append,
    append_release,
    columns_of,
    entries,
    find_charge,
    find_first,
    is_known,
    is_limited,
    require_bookable,
    stored_answer,
)
from wallflower.ledger.store import Store
from wallflower.machine.heavy import sqlalchemy as sa
from wallflower.names import require_account_name, require_names
from wallflower.privacy import Chargeable, Exact, Kind, Loss, Neighbours, exact
from wallflower.units import MAX_COUNT, Claim, Price, Protection


class Ledger:
    """The book of one or more data sets.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder, Ledger.open(f"{folder}/ledger.db") as ledger:
    ...     ledger.remaining("icu")
    Loss(ε=1)
    """

    STARTER: ClassVar[Loss] = Loss(1)

    def __init__(self, where: str | Path | None = None) -> None:
        """A path, `sqlite:///FILE`, `postgresql://…`, or nothing for `$WALLFLOWER_LEDGER` and then your data home."""
        self._store = Store(where)
        self._register = Register()

    @classmethod
    def open(cls, where: str | Path | None = None) -> Self:
        """Open a ledger; create one that does not exist yet."""
        return cls(where)

    def close(self) -> None:
        """Let go of the database; `with` does it by itself."""
        self._store.close()

    def require_version(self) -> None:
        """Refuse if another wallflower has migrated the ledger's tables since it was opened."""
        self._store.require_version()

    def observe_errors(self, observer: Callable[[], None]) -> None:
        """Call `observer` whenever the database refuses a transaction or does not answer."""
        self._store.on_error = observer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self._store.place!r})"

    # What a steward decides

    def declare(
        self,
        dataset: str,
        protection: Protection | None = None,
        *,
        by: str,
        account: str | None = None,
        apart: Sequence[str] = (),
        reason: str = "",
    ) -> Entry:
        """Say whose loss a data set counts, and which account it spends from: its own unless given.

        The unit is declared once, before the first charge.

        dataset     data set name; the budget is tracked under it
        protection  what a row is and whose loss is counted; default: one record replaced by another
        by          who decides, in the ledger for good
        account     the account it spends from: data sets about the same people share one
        apart       data sets with the same content that are nevertheless about other people
        reason      why, in the ledger for good
        """
        require_names(by=by)
        with self._store.write() as db:
            name = require_account_name("dataset", dataset)
            others = {require_account_name("apart", other) for other in apart}
            known, before = declarations(db).get(name), self._register.find(db, name, asking=True)
            made = Declaration(
                dataset=name,
                account=before.name if account is None else self._register.target(db, account, own=name),
                protection=protection or before.members[name],
                apart=tuple(sorted({*(known.apart if known else ()), *others})),
                stated=True,
            )
            self._register.require_movable(db, made, before)
            return append_declaration(db, made, by=by, reason=reason)

    def grant(
        self,
        dataset: str,
        loss: Loss,
        *,
        by: str,
        reason: str = "",
        accounting: Accounting | None = None,
        convert: Exact | None = None,
        pace: Exact | None = None,
        expires: date | None = None,
    ) -> Entry:
        """Set the limit of a data set's account, in all and for good: it replaces the starter cap or an earlier limit.

        It may be less than what is spent: then nothing more is answered. An output-constrained loss is no part of any
        limit: it opens the allowance of its own.

        dataset     data set name; the budget is tracked under it
        loss        the limit: `wf.Loss("4")`, with a delta, or `wf.Loss.zcdp("0.5")`
        by          who decides, in the ledger for good
        reason      why, in the ledger for good
        accounting  add up losses (sum), their squares (concentrated), or whichever is less (either); default: by the
                    loss
        convert     the part of delta that is kept for the sum of squares
        pace        an epsilon that may be spent a year within the limit
        expires     its last day, a date
        """
        if loss.kind is Kind.OUTPUT_CONSTRAINED:
            return self.allow_constrained(dataset, loss.amount, by=by, reason=reason)
        require_names(by=by)
        if expires is not None and type(expires) is not date:
            raise ParameterError(f"expires: {str(expires)[:40]!r} is not a day. A limit ends with one. Pass a date.")
        limit = limit_of(require_bookable(loss), convert=convert, accounting=accounting)
        yearly = None if pace is None else exact(pace, "pace")
        with self._store.write() as db:
            name = require_account_name("dataset", dataset)
            declared = self._register.settle_unit(db, name, loss, by)
            account = self._register.find(db, name)
            if account.quotas and limit.accounting != account.limit.accounting:
                raise ParameterError(
                    f"{name}: quotas are kept by {account.limit.accounting} accounting. Take them back before another."
                )
            if limit.accounting == "concentrated" and account.spent.unsquared:
                raise ParameterError(
                    f"{name}: answers have named records, and these have no loss in squares. Such a budget could "
                    "accept nothing more. Choose accounting sum or either."
                )
            terms = {"limit": limit.to_json(), "by": by, "reason": reason}
            terms |= {} if yearly is None else {"pace": str(yearly)}
            terms |= {} if expires is None else {"expires": expires.isoformat()}
            stated = loss if loss.kind is Kind.ZCDP else limit.loss
            booked = columns_of(stated.under(declared.neighbours))
            return append(db, "limit", account.name, body=canonical(terms), **booked)

    def set_quota(self, dataset: str, analyst: str, loss: Loss, *, by: str, reason: str = "") -> Entry:
        """Keep part of the limit for one analyst, out of what is neither spent nor kept; a loss of 0 takes it back.

        Where the limit is concentrated, a part of its ε is the same part of its ρ.
        """
        require_names(analyst=analyst, by=by)
        with self._store.write() as db:
            account, kept = self._register.settle_quota(db, require_account_name("dataset", dataset), loss, analyst)
            body = canonical({"by": by, "reason": reason})
            return append(db, "quota", account.name, analyst=analyst, body=body, **columns_of(kept))

    def allow_constrained(self, dataset: str, epsilon: Exact, *, by: str, reason: str = "") -> Entry:
        """Open output-constrained answers up to an epsilon in all, outside the sum; 0 closes them again."""
        require_names(by=by)
        loss = Loss(epsilon, kind=Kind.OUTPUT_CONSTRAINED, neighbours=Neighbours.ADD_REMOVE)
        with self._store.write() as db:
            account = self._register.find(db, require_account_name("dataset", dataset))
            body = canonical({"by": by, "reason": reason})
            return append(db, "allowance", account.name, body=body, **columns_of(require_bookable(loss)))

    def allow_naming(
        self, dataset: str, detector: int, most: int, *, by: str, reason: str, by_row: bool = False
    ) -> Entry:
        """Let answers name records of a data set, ordered by one detector, up to a number in all; 0 closes it again.

        No guarantee covers anybody whom an answer names. The steward binds the detector because its columns decide who
        can be named.

        dataset   data set name; the budget is tracked under it
        detector  the ledger entry of a released detector
        most      names that all lists together may request, however many come out
        by        who decides, in the ledger for good
        reason    why, in the ledger for good
        by_row    lists may name row numbers: the file is in order of arrival, so that no replaced record moves another
        """
        require_names(by=by)
        if not reason.strip():
            raise ParameterError("reason: the ledger keeps one for every allowance of names. Add it.")
        if type(most) is not int or not 0 <= most <= MAX_COUNT:
            raise ParameterError(f"most: {str(most)[:40]!r} is not a whole number from 0 to {MAX_COUNT:,}. Pass one.")
        with self._store.write() as db:
            name = require_account_name("dataset", dataset)
            fitted = find_first(db, entries().c.charge == detector) if type(detector) is int else None
            if fitted is None or fitted.details.get("kind") != "detector":
                raise ParameterError(
                    f"detector: entry {str(detector)[:40]} of the ledger is not a release of detector. Fit one first, "
                    "and pass its entry."
                )
            account = self._register.find(db, name, asking=True)
            protection = account.members[name]
            if (protection.rows, protection.unit) != ("people", "record"):
                raise ParameterError(
                    f"{name}: its account bounds the loss of {protection.text}. Names are allowed only where a record "
                    "is a person's, replaced by another. Use letters, or review the records yourself."
                )
            if most and account.limit.accounting == "concentrated":
                raise ParameterError(
                    f"{name}: its budget adds up squares alone, and answers that name records have no loss in squares. "
                    "Set a budget with accounting sum or either first."
                )
            terms = {"detector": detector, "most": most, "by_row": bool(by_row), "by": by, "reason": reason}
            return append(db, "naming", name, body=canonical(terms))

    # What a question costs

    def charge(
        self,
        dataset: str,
        query: Chargeable,
        *,
        analyst: str,
        idempotency_key: str | None = None,
        claim: Claim | None = None,
        declared: Declaration | None = None,
    ) -> Receipt:
        """Pay for a question, durably, or refuse and change nothing.

        `claim` is what the question states of itself; without one only its loss is known. `declared` is what the data
        set's schema says, which counts where nothing was declared before. Under an `idempotency_key` used
        before, the same query of the same analyst is not charged again: the receipt holds its stored release.
        """
        require_names(analyst=analyst, **({} if idempotency_key is None else {"idempotency_key": idempotency_key}))
        cost, body = require_bookable(query.cost()), canonical(query.to_json())
        with self._store.write() as db:
            name, stored = require_account_name("dataset", dataset), None
            adopted = None if declared is None else self._register.adopt(db, replace(declared, dataset=name))
            if adopted is not None:
                append_declaration(db, adopted, by=analyst, reason="the schema says so")
            quoted = self._register.quote(db, name, cost, claim or Claim(loss=cost), analyst)
            asked = {"analyst": analyst, "label": query.label, "body": body, **columns_of(cost)}
            paid = None if idempotency_key is None else find_charge(db, name, idempotency_key)
            left: Loss | None = quoted.left
            if paid is not None:
                stored = stored_answer(db, paid, asked)
            elif quoted.obstacle is not None:
                raise quoted.refusal()
            else:
                paid, left = (
                    append(db, "charge", name, idempotency_key=idempotency_key, **asked, **quoted.columns),
                    quoted.left_after,
                )
        return make_receipt(
            quoted, paid, left=left or quoted.left, label=query.label, idempotency_key=idempotency_key, stored=stored
        )

    def quote(
        self,
        dataset: str,
        query: Chargeable,
        *,
        analyst: str,
        claim: Claim | None = None,
        declared: Declaration | None = None,
    ) -> Quote:
        """What a question would cost now, and how many more such questions the budget affords; nothing is charged."""
        require_names(analyst=analyst)
        cost = require_bookable(query.cost())
        with self._store.read() as db:
            name = require_account_name("dataset", dataset)
            return self._register.quote(db, name, cost, claim or Claim(loss=cost), analyst, declared)

    def can_charge(self, dataset: str, query: Chargeable, *, analyst: str, claim: Claim | None = None) -> bool:
        """Whether `charge` would accept the question now."""
        return self.quote(dataset, query, analyst=analyst, claim=claim).obstacle is None

    def notice(self, dataset: str, tags: Tags, *, account: str | None = None) -> None:
        """Remember what a data set holds, or refuse what is on another account already: told to the steward alone.

        `account` is where the data set is about to spend from, if a schema says so and nothing was declared yet.
        """
        with self._store.read() as db:
            name = require_account_name("dataset", dataset)
            self._register.require_one(db, name, tags, account)
            if is_remembered(db, name, tags):
                return
        with self._store.write() as db:
            self._register.require_one(db, name, tags, account)
            remember(db, name, tags)

    def forget(self, dataset: str) -> None:
        """Erase what was remembered of a data set's content; its entries stay."""
        with self._store.write() as db:
            forget(db, require_account_name("dataset", dataset))

    def record(self, receipt: Receipt, body: Mapping[str, Any]) -> None:
        """Keep the public release a charge has paid for; each charge has one.

        To keep the same again changes nothing: a caller who was not told how it ended may try again.
        """
        kept = canonical(body)
        with self._store.write() as db:
            append_release(db, receipt.id, receipt.dataset, receipt.label, kept)

    def reserve(self, asked: Block, *, after: Block) -> Block:
        """Note which observations a watch is about to look at, durably; gives the note of the first caller.  (B)"""
        with self._store.write() as db:
            return append_block(db, asked, after=after)

    def latest_block(self, charge: int, session: str) -> Block | None:
        """The last that was noted of a session; None where this ledger has no charge of this number and hash."""
        with self._store.read() as db:
            return find_latest(db, charge, session)

    def release(self, charge: int) -> dict[str, Any] | None:
        """The public release a charge has paid for, if it was recorded."""
        with self._store.read() as db:
            found = find_first(db, entries().c.charge == charge)
        return None if found is None else found.details

    # Where things stand

    def account(self, dataset: str) -> Account:
        """Limit, spending and quotas of the account that a data set spends from."""
        with self._store.read() as db:
            account = self._register.find(db, require_account_name("dataset", dataset))
            return replace(account, names=tuple(sorted({*account.names, *named_records(db, list(account.members))})))

    def budget(self, dataset: str) -> list[Account]:
        """The account of a data set, as a list of one."""
        return [self.account(dataset)]

    def limit(self, dataset: str) -> Loss:
        """What is promised: (ε, δ) in the unit that the account bounds."""
        account = self.account(dataset)
        return account.limit.loss.under(account.protection.neighbours)

    def spent(self, dataset: str) -> Loss:
        """The plain sum of all that was booked; ρ where the limit is on squares."""
        account = self.account(dataset)
        squares = account.limit.accounting == "concentrated"
        spent = account.spent
        summed = Price(factor=Fraction(1), epsilon=None if squares else spent.epsilon, delta=spent.delta, rho=spent.rho)
        return loss_of(summed, account.protection)

    def remaining(self, dataset: str, *, analyst: str | None = None) -> Loss:
        """The largest loss that still fits; for an analyst, that they may spend."""
        require_names(**({} if analyst is None else {"analyst": analyst}))
        account = self.account(dataset)
        return account.left if analyst is None else account.left_for(analyst)

    def datasets(self) -> list[str]:
        """Every data set the ledger has heard of, by its one spelling."""
        with self._store.read() as db:
            return sorted(db.scalars(sa.select(entries().c.dataset).distinct()))

    def knows(self, dataset: str) -> bool:
        """Whether a data set or account of this name was ever declared, granted or asked."""
        with self._store.read() as db:
            name = require_account_name("dataset", dataset)
            return is_known(db, name) or is_limited(db, name)

    def history(
        self,
        dataset: str | None = None,
        *,
        analyst: str | None = None,
        event: Event | None = None,
        label: str | None = None,
        before: int | None = None,
        last: int | None = None,
    ) -> list[Entry]:
        """Entries, oldest first.

        dataset  of this data set; default: of all
        analyst  of what this analyst asked
        event    of this kind: charge, release, account, limit, quota, allowance or naming
        label    of this question, by its label, such as outlier-count/1
        before   with a lesser id
        last     only the newest N
        """
        wanted = {"analyst": analyst, "event": event, "label": label}
        found = sa.select(entries()).where(
            *(entries().c[name] == value for name, value in wanted.items() if value is not None)
        )
        if before is not None:
            found = found.where(entries().c.id < before)
        with self._store.read() as db:
            if dataset is not None:
                found = found.where(entries().c.dataset == require_account_name("dataset", dataset))
            rows = db.execute(found.order_by(entries().c.id.desc()).limit(last)).mappings().all()
        return [Entry(**row) for row in reversed(rows)]

    def export(self) -> Iterator[dict[str, Any]]:
        """Every entry with its hashes, ready for one JSON line each; anybody can check the chain from them."""
        with self._store.read() as db, db.execute(all_rows()) as rows:
            yield from map(dict, rows.mappings())

    def verify(self, *, head: str | None = None) -> Verification:
        """Walk the chain. With a `head` noted earlier, also find out whether later entries were cut off since."""
        noted = None if head is None else require_head(head)
        with self._store.read() as db, db.execute(all_rows()) as rows:
            return walk(map(dict, rows.mappings()), head=noted)
