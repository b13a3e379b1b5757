"""The one door: charge, then look, then record.

A question is paid for durably before anybody looks, so a crash costs budget and never privacy. What comes out is a
`Release`: the private value, its reading, and its guarantee. Nothing in it but the value depends on
the records, and nothing is raised because of what was seen.
"""

from __future__ import annotations

import getpass
import os
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic

from wallflower.config import ANALYST, find_analyst
from wallflower.data import Points, Schema, Table, TiledPoints, TiledTable, load
from wallflower.data.fingerprints import fingerprint
from wallflower.errors import LedgerUnreachable, NotUseful, Untranslatable
from wallflower.ledger import Declaration, Ledger, Quote, Receipt
from wallflower.ledger.account import protection_of
from wallflower.ledger.decision import booking_note, loss_of
from wallflower.machine.version import VERSION
from wallflower.noise import system_noise
from wallflower.privacy import Kind
from wallflower.query import A, D, Plan, Quality, Query, Reading
from wallflower.release.answer import Release
from wallflower.release.guarantee import Facts, Guarantee
from wallflower.release.inputs import Records, project
from wallflower.release.steward_key import steward_key
from wallflower.schema.schema import require_secret_rows
from wallflower.theorems import name_labels, sort_by_evidence
from wallflower.units import Claim, Protection, cost_text, price

_PATIENCE: Final = 10.0  # seconds for a ledger to take what was paid for
_PAUSE: Final = 0.25


def release(
    query: Query[D, A],
    data: object,
    ledger: Ledger | str | Path | None,
    *,
    analyst: str | None = None,
    idempotency_key: str | None = None,
    force: bool | None = None,
) -> Release[A]:
    """Answer once and pay for it: the only function that sees both data and ledger.

    This is the entry point for programs, which plan by themselves: an answer that is mostly noise is
    only warned about, where the methods of `wf.open`, the command line and the service refuse it.

    query            the query with its parameters, such as `wf.Count(...)`; its loss is what is charged
    data             a Table, Points, or anything `load` reads
    ledger           a Ledger, a path or a URL; None for the default one
    analyst          who asks; default: $WALLFLOWER_ANALYST, the project's, or you
    idempotency_key  repeat the query with it and get the stored release, free
    force            True: release even if the plan predicts mostly noise; False: refuse; None: warn
    """
    with _open_ledger(ledger) as book:
        table = data if isinstance(data, Table | Points | TiledTable) else _load(query, data, book)
        return pay(
            query, table, book, analyst=analyst or default_analyst(), idempotency_key=idempotency_key, force=force
        ).answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment(Generic[D, A]):
    """A question that is paid for and not answered yet. Whatever goes wrong from here on is no refusal."""

    query: Query[D, A]
    view: D
    plan: Plan
    receipt: Receipt
    ledger: Ledger

    def answer(self, before_publish: Callable[[], None] = lambda: None) -> Release[A]:
        """Look and record; what was paid for earlier, under the same key, comes back as it was.

        `before_publish` is called after computing and before recording, to hide how long the look took.
        """
        if self.receipt.stored is not None:
            return replace(Release.from_dict(self.receipt.stored), replayed=True)
        try:
            value = self.query.answer(self.view, system_noise())
            facts = Facts.of(self.view, self.query.cost())
            if self.query.is_delivered_once:  # what is kept is made without the value, so nothing of it can stay
                made = self._make_release(None, facts).deliver(self.query.released(value))
            else:
                made = self._make_release(value, facts)
        finally:
            before_publish()
        _record(self.ledger, self.receipt, made.kept().to_dict())
        return made

    def _sort_theorems(self) -> Mapping[str, tuple[str, ...]]:
        labels = self.query.rests_on(self.view) or (f"the theorem of {self.query.proof}",)
        return sort_by_evidence((*labels, *name_person_labels(self.receipt.protection)), self.receipt.cost.kind)

    def _make_release(self, value: Any, facts: Facts) -> Release[Any]:
        query, receipt, reading = self.query, self.receipt, self.query.reading(value, facts)
        starter = (starter_note(receipt.dataset),) if receipt.starter else ()
        change = query.assumed_change(self.view)
        return Release(
            value=None if query.is_delivered_once else query.released(value),
            interval=reading.interval,
            covers=reading.covers,
            text=reading.text,
            guarantee=guarantee_of(receipt, change, self._sort_theorems()),
            mechanism=reading.mechanism,
            proof=query.proof,
            status=str(reading.status or query.status),
            kind=query.kind,
            label=query.label,
            question=query.question,
            parameters=query.to_json(),
            dataset=receipt.dataset,
            facts=facts,
            analyst=receipt.analyst,
            ledger_id=receipt.id,
            left=receipt.left,
            booked=receipt.booked,
            limit=receipt.limit,
            protects=receipt.protects,
            terms=query.terms(facts),
            charged_at=receipt.time,
            quality=self._quality(reading),
            notes=(*reading.notes, *query.cautions(self.view), *_reading_notes(self.view), *starter),
            extras=dict(reading.extras),
            brief=reading.brief,
            version=VERSION,
        )

    def _quality(self, reading: Reading) -> Quality:
        """The accuracy of the answer, with the conditions on the table and on the settings that the answer chose."""
        quality = reading.quality or self.plan.quality
        found = self.query.conditions_of_release(reading.extras, self.view)
        known = [words for words in found if words not in quality.conditions]
        return replace(quality, conditions=(*quality.conditions, *known))


def name_person_labels(protection: Protection) -> tuple[str, ...]:
    """Name the theorems by which a guarantee for records is one for people with several rows; none without them.

    >>> name_person_labels(Protection(person="patient_no")), name_person_labels(Protection())
    (('(Y1) of ledger',), ())
    """
    if protection.person is None:
        return ()
    return name_labels("ledger", "Y1" if protection.units_per_person == 1 else "Y2 U1 U8")


def guarantee_of(
    charge: Receipt | Quote, change: str = "", theorems: Mapping[str, tuple[str, ...]] | None = None
) -> Guarantee:
    """Return what an answer promises for a charge, or for one that is quoted: to a person, if the account does."""
    protection = charge.protection if charge.protection.person is not None else None
    booked = charge.booked if change or protection is not None else None
    return Guarantee(charge.cost, charge.public, change, booked, theorems or {}, protection, charge.names_records)


def _record(ledger: Ledger, receipt: Receipt, body: Mapping[str, Any]) -> None:
    """Keep what was paid for. A ledger that restarts or is full for a moment does not cost the answer."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            ledger.record(receipt, body)
        except LedgerUnreachable:
            if time.monotonic() >= until:
                raise
        else:
            return
        time.sleep(_PAUSE)


def pay(
    query: Query[D, A],
    table: Records,
    ledger: Ledger,
    *,
    analyst: str,
    idempotency_key: str | None = None,
    force: bool | None = False,
) -> Payment[D, A]:
    """Charge a question, durably, or refuse it from public facts; nobody has looked yet."""
    if table.schema.rows is not None:
        require_secret_rows(table.schema, protection_of(ledger.account(table.name), table.name), table.name)
    table = query.prepare(table, ledger.release)
    view = project(query, table, ledger)
    plan = plan_for(query, view)
    if not (plan.useful or force or _is_paid(ledger, table.name, analyst, idempotency_key)):
        require_budget(quote(query, table, ledger, analyst=analyst))
        require_useful(plan, force=force)
    claim, declared = query.claim(view), declaration_of(table.name, table.schema)
    receipt = ledger.charge(
        table.name, query, analyst=analyst, idempotency_key=idempotency_key, claim=claim, declared=declared
    )
    return Payment(query=query, view=view, plan=plan, receipt=receipt, ledger=ledger)


def plan_for(query: Query[D, A], view: D, declared: Protection | None = None) -> Plan:
    """What to expect of a question here, with what the table's public facts warn of and what the budget would be
    charged in the unit that it protects: as `declared` in the ledger, or by the schema."""
    plan = query.plan_on(view)
    notes = (*query.cautions(view), *_reading_notes(view))
    conditions = (*plan.conditions, *query.conditions(view))
    schema = getattr(view, "schema", None)
    known = declared or (schema.protects if isinstance(schema, Schema) else None)
    return add_booking(replace(plan, conditions=conditions, notes=(*plan.notes, *notes)), query.claim(view), known)


def add_booking(plan: Plan, claim: Claim, declared: Protection | None) -> Plan:
    """Add what the account would be charged, and why where that is not the stated loss.

    Nothing is added where neither ledger nor schema has declared a unit, unless an assumed change alone multiplies the
    loss, nor where no theorem translates it.
    """
    if plan.cost.kind is Kind.OUTPUT_CONSTRAINED or (declared is None and claim.moves == 1):
        return plan
    known = declared or Protection()
    try:
        booked = loss_of(price(claim, known), known)
    except Untranslatable:
        return plan
    note = booking_note(claim, known)
    notes = plan.notes if note is None else (*plan.notes, note)
    return replace(plan, booked=booked, cost_text=cost_text(plan.cost, booked, known), notes=notes)


def _reading_notes(view: Any) -> tuple[str, ...]:
    """What the schema says is done to every record: public, and told with what comes of it."""
    return view.schema.notes(view.columns) if isinstance(view, Table | Points | TiledPoints) else ()


def require_budget(quoted: Quote) -> None:
    """Refuse what the budget does not cover."""
    if quoted.obstacle is not None:
        raise quoted.refusal()


def require_useful(plan: Plan, *, force: bool | None = False) -> None:
    """Refuse an answer that the plan predicts to be mostly noise; where `force` is None, warn."""
    if plan.useful or force:
        return
    if force is not None:
        raise NotUseful(plan.query, verdict=plan.verdict, smallest=plan.smallest_useful_epsilon)
    warnings.warn(f"{plan.query}: {plan.verdict}. It is paid for anyway.", stacklevel=4)


def quote(query: Query[D, A], table: Records, ledger: Ledger, *, analyst: str) -> Quote:
    """What a question would cost now, from public facts; nothing is charged."""
    view = project(query, query.prepare(table, ledger.release))
    claim, declared = query.claim(view), declaration_of(table.name, table.schema)
    return ledger.quote(table.name, query, analyst=analyst, claim=claim, declared=declared)


def declaration_of(dataset: str, schema: Schema) -> Declaration | None:
    """What the schema says of a data set's account; None where it says nothing."""
    if schema.account is None and schema.protects is None:
        return None
    return Declaration(
        dataset=dataset,
        account=schema.account or dataset,
        protection=schema.protects or Protection(),
        stated=schema.protects is not None,
    )


def check_shared_records(table: Records, ledger: Ledger, *, source: object = None, key: bytes | None = None) -> None:
    """Compare what is about to be asked with what other data sets hold: one content has one budget.

    It depends on records, so only their holder is told, when they are loaded and before anything is asked.
    """
    declared, place = declaration_of(table.name, table.schema), str(source) if isinstance(source, str | Path) else None
    tags = fingerprint(table, steward_key() if key is None else key, source=place)
    ledger.notice(table.name, tags, account=None if declared is None else declared.account)


def default_analyst() -> str:
    """Who is asking: $WALLFLOWER_ANALYST, the name in the file of the project, or the user of the operating system."""
    return os.environ.get(ANALYST) or find_analyst() or system_user()


def system_user() -> str:
    """The user of the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"  # a container may run without a name for its user


def _load(query: Query[D, A], source: object, ledger: Ledger) -> Table:
    table = load(source, schema=query.wants())
    check_shared_records(table, ledger, source=source)
    return table


def _open_ledger(ledger: Ledger | str | Path | None) -> AbstractContextManager[Ledger]:
    return nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger.open(ledger)


def _is_paid(ledger: Ledger, dataset: str, analyst: str, idempotency_key: str | None) -> bool:
    """Whether this key has paid before: what was sold once comes back without another word."""
    return idempotency_key is not None and any(
        entry.idempotency_key == idempotency_key for entry in ledger.history(dataset, analyst=analyst, event="charge")
    )


def starter_note(dataset: str) -> str:
    return (
        f"Nobody has granted {dataset} a budget, so the starter cap of {Ledger.STARTER} applies; "
        "the data owner changes it with `wallflower budget grant`."
    )
