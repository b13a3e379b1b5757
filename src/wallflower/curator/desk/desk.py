"""What can be done at the curator's desk, as plain functions: the routes and the pages only call them.

Whoever calls is a `Caller`. An analyst sees data sets, what is left for them, and their own releases; a steward sees
everything. A question is charged durably before anybody looks, and what goes wrong after that is told in one constant
sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Final

from anyio import CapacityLimiter

from wallflower.curator.desk.access.acts import Acts
from wallflower.curator.desk.access.factors import Factors
from wallflower.curator.desk.access.grants import Access
from wallflower.curator.desk.access.people import TOKEN_SCOPES, People, Person
from wallflower.curator.desk.access.tokens import Caller, Token, Tokens
from wallflower.curator.desk.budgets.others import visible_account
from wallflower.curator.desk.budgets.proposals import Proposal, Proposals
from wallflower.curator.desk.datasets.shelf import Shelf
from wallflower.curator.desk.datasets.views import DatasetView
from wallflower.curator.desk.logs import log_failure, tell
from wallflower.curator.desk.metrics import LedgerState, Metrics
from wallflower.curator.desk.problems import Refusal, unanswered_refusal, unrecorded_refusal
from wallflower.curator.desk.questions.fair_queue import FairQueue
from wallflower.curator.desk.questions.outlines import Outlines, hides_size
from wallflower.curator.desk.records import Records
from wallflower.curator.settings import EVERYBODY, Registration, Settings
from wallflower.data import Table, TiledTable
from wallflower.errors import LedgerUnreachable, ParameterError, PrivacyError, SourceError
from wallflower.ledger import Ledger, Quote
from wallflower.ledger.account import Account
from wallflower.ledger.chain import Entry, Event, Verification
from wallflower.ledger.limits import Accounting, Limit, limit_of
from wallflower.names import account_name
from wallflower.privacy import Exact, Loss
from wallflower.queries import QUERIES
from wallflower.query import Plan, Query
from wallflower.query.forms import Question, find
from wallflower.release import Release, notice, pay
from wallflower.release.steward_key import steward_key
from wallflower.schema import Schema
from wallflower.schema.rows import bounds_rows, require_secret_rows
from wallflower.units import Protection

LARGE: Final = 10  # a limit above this epsilon promises next to nothing, and is confirmed

STRANGERS: Final = 4  # threads for callers that are not authenticated

FORM_KEY: Final = "page-"  # how the idempotency key of a form begins
MAX_OWN_TOKEN_DAYS: Final = 365
_LONGEST_KEY: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A question that may wait for its answer: who asks what of which data set, under which key, whether it is wanted
    even if it is of no use, and whether public facts say that it takes long."""

    caller: Caller
    dataset: str
    query: Query[Any, Any]
    key: str | None
    anyway: bool = False
    is_long: bool = False


class Desk:
    """The service without HTTP."""

    def __init__(self, settings: Settings, questions: tuple[Question, ...] = QUERIES) -> None:
        self.settings, self.questions = settings, questions
        self.ledger = Ledger.open(settings.ledger)
        self.records = Records(settings.ledger)
        self.tokens = Tokens(self.records)
        self.factors = Factors(self.records)
        self.acts = Acts(self.records)
        self.access = Access(self.records, settings.groups)
        self.people = People(self.records)
        self.end_sessions: Callable[[Person], object] = lambda _: None  # the pages have sessions
        self.shelf = Shelf(settings.datasets, settings.roots, self.records)
        self.metrics = Metrics()
        for store in (self.ledger, self.records):
            store.observe_errors(partial(self.metrics.count, "ledger_errors"))
        self.proposals = Proposals(settings, self.records, self.ledger, self.tokens)
        self.outlines = Outlines(settings, self.shelf, self.ledger)
        room = {"waiting": settings.waiting, "waiting_each": settings.computing_waiting_each}
        meters = {name: self.metrics.queue(name) for name in ("computations", "large_bodies")}
        self.computations = FairQueue(places=settings.computing, each=1, **room, meter=meters["computations"])
        self.large_bodies = FairQueue(places=settings.computing, each=1, **room, meter=meters["large_bodies"])
        self.strangers = CapacityLimiter(STRANGERS)

    def load(self, *, tolerant: bool = False) -> None:
        """Read every table, compare those of the settings with others, and write down what is said of budgets.

        A table of the settings that cannot be read is an error, unless `tolerant`: then it cannot be asked.
        """
        self.shelf.load(tolerant=tolerant)
        for dataset in self.settings.datasets:
            self.ledger.account(dataset.name)  # a name that no budget can hang on is refused here
            if dataset.source is not None and self.shelf.standing(dataset).state == "ready":
                self._compare(self.shelf.table(dataset.name), dataset.source)
            self._adopt(dataset.name, by="settings", reason="the settings say so")
        unbounded = sum(map(self._tells_size, self.settings.datasets))
        if unbounded:
            tell(
                "the number of records is secret, and refusals of explain can tell it",
                datasets=unbounded,
                remedy="state a bound on it, as rows beside protects in the schema",
            )

    def ledger_state(self) -> LedgerState:
        """Read what metrics say of the ledger; data sets are named only if the settings allow it."""
        try:
            valid = [token for token in self.tokens.all() if token.is_valid]
            names = self.names() if self.settings.metrics_datasets else []
            left = {name: float(self.ledger.account(name).left.amount) for name in names}
        except PrivacyError:
            return LedgerState()
        expiries: dict[str, str] = {}
        for token in valid:
            if token.expires is not None:
                expiries[token.scope] = min(token.expires, expiries.get(token.scope, token.expires))
        numbers = Counter[str](token.scope for token in valid)
        return LedgerState(is_up=True, valid_tokens=numbers, next_expiry=expiries, budget_left=left)

    def close(self) -> None:
        self.records.close()
        self.ledger.close()

    # What there is

    def question(self, kind: str) -> Question:
        return find(kind, self.questions)

    def names(self) -> list[str]:
        """What may be asked about: registered, with a name that a budget can hang on."""
        return [found.name for found in self._registrations()]

    def _registrations(self) -> list[Registration]:
        registrations = self.shelf.registrations()
        odd = {found.name for found in registrations if account_name(found.name) is None}
        unfit = odd - set(self.ledger.datasets()) if odd else set()
        return [found for found in registrations if found.name not in unfit]

    def datasets(self, caller: Caller) -> list[DatasetView]:
        """Every data set; one that is not read yet is not waited for, and one that cannot be read is listed so."""
        return [self._view(caller, found) for found in self._visible(caller)]

    def visible_names(self, caller: Caller) -> list[str]:
        """The names of the data sets that the caller may see."""
        return [found.name for found in self._visible(caller)]

    def find(self, caller: Caller, name: str) -> Registration:
        """The data set of this name, for a caller who may see it; for others there is none."""
        return self.access.require(caller, self.shelf.find(name))

    def _visible(self, caller: Caller) -> list[Registration]:
        return self.access.visible(caller, self._registrations())

    def dataset(self, caller: Caller, name: str) -> DatasetView:
        """One data set."""
        found = self.find(caller, name)
        if self.shelf.standing(found).state == "loading":
            with suppress(Refusal):
                self.shelf.table(found.name)
        return self._view(caller, found)

    def _view(self, caller: Caller, found: Registration) -> DatasetView:
        facts, account = self.shelf.facts(found), self.ledger.account(found.name)
        is_hidden = found.source is not None and hides_size(found, account)
        facts |= {"rows": None} if is_hidden else {}
        shown = (
            account
            if caller.reads_all
            else visible_account(account, caller, self._visible_members(caller, found, account))
        )
        standing = self.shelf.standing(found)
        return DatasetView(
            name=found.name,
            facts=facts,
            budget=shown,
            left=account.left_for(caller.name),
            state=standing.state,
            reason=standing.reason if caller.reads_all else None,
            is_registered=found.registered is not None,
        )

    def public_schema(self, name: str) -> Schema:
        """The schema without an exact number of records where that is secret."""
        found, schema = self.shelf.find(name), self.shelf.schema(name)
        is_told = bounds_rows(found.schema) or not hides_size(found, self.ledger.account(found.name))
        return schema if is_told or found.source is None else replace(schema, rows=None)

    def _visible_members(self, caller: Caller, found: Registration, account: Account) -> list[Registration]:
        """The data sets of an account that the caller may see. Most accounts have one member, the data set itself:
        then nothing is looked up, since on PostgreSQL every look opens a connection."""
        is_alone = set(account.members) <= {account_name(found.name) or found.name}
        candidates = [found] if is_alone else self._visible(caller)
        return [one for one in candidates if (account_name(one.name) or one.name) in account.members]

    def is_charged(self, name: str) -> bool:
        """Whether anything was ever asked of a data set: its unit stays then."""
        return bool(self.ledger.history(name, event="charge", last=1))

    # Questions

    def plan(self, caller: Caller, name: str, query: Query[Any, Any]) -> Plan:
        """What to expect, from public facts alone."""
        self._require_nameable(caller, name, query)
        return self.outlines.find(name, query).plan

    def quote(self, caller: Caller, name: str, query: Query[Any, Any]) -> Quote:
        """What a question would cost here now, from public facts alone; nothing is charged."""
        self._require_nameable(caller, name, query)
        claim = self.outlines.find(name, query).claim
        return self.ledger.quote(name, query, analyst=caller.name, claim=claim)

    def admit(
        self, caller: Caller, name: str, query: Query[Any, Any], key: str | None, *, anyway: bool = False
    ) -> Admission:
        """Refuse what can be refused before the question waits in line; the budget is decided when it is charged."""
        require_spender(caller)
        self._require_nameable(caller, name, query)
        if key is not None:
            _require_key(key)
        is_long = self.outlines.admit(name, query, caller.name).seconds > self.settings.job_seconds
        return Admission(caller=caller, dataset=name, query=query, key=key, anyway=anyway, is_long=is_long)

    def ask(self, admitted: Admission, hold: Callable[[], None]) -> Release[Any]:
        """Pay, look, hold and record. After the charge only one thing can be said to have gone wrong."""
        query, caller = admitted.query, admitted.caller
        try:
            table, key = self.shelf.table(admitted.dataset), own_key(caller, admitted.key)
            paid = pay(query, table, self.ledger, analyst=caller.name, key=key, anyway=admitted.anyway)
        except PrivacyError:
            self.metrics.count("asks", kind=query.kind, outcome="refused")
            raise
        try:
            made = paid.answer(hold)
        except LedgerUnreachable:
            self.metrics.count("asks", kind=query.kind, outcome="failed")
            raise unrecorded_refusal() from None
        except Exception as error:  # noqa: BLE001 - whatever happens after the look, nothing of it may leave
            log_failure("ask", error)
            self.metrics.count("asks", kind=query.kind, outcome="failed")
            raise unanswered_refusal() from None
        self.metrics.count("asks", kind=query.kind, outcome="replayed" if made.replayed else "answered")
        return made

    def releases(
        self, caller: Caller, name: str | None = None, *, before: int | None = None, last: int = 100
    ) -> list[Release[Any]]:
        """What was released, oldest first: to a steward everything, to an analyst their own."""
        if name is not None:
            self.find(caller, name)
        whose = None if caller.reads_all else caller.name
        entries = self.ledger.history(name, analyst=whose, event="release", before=before, last=last)
        return [Release.from_dict(entry.details) for entry in entries]

    def release(self, caller: Caller, number: int) -> Release[Any]:
        """The release that a charge has paid for."""
        stored = self.ledger.release(number) if 0 < number < 2**31 else None
        if stored is None or not (caller.reads_all or stored.get("analyst") == caller.name):
            raise Refusal("not-found", "There is no release with this number, or it is not yours.")
        return Release.from_dict(stored)

    def pending_charge(self, caller: Caller, number: int) -> Entry | None:
        """Return the caller's charge of this number if a form of the pages paid it and no answer is recorded yet."""
        entries = self.ledger.history(event="charge", before=number + 1, last=1) if 0 < number < 2**31 else []
        if not entries or entries[0].id != number or self.ledger.release(number) is not None:
            return None
        charge = entries[0]
        is_visible = caller.is_steward or charge.analyst == caller.name
        is_from_form = (charge.key or "").startswith(f"{charge.analyst}/{FORM_KEY}")
        is_watch = any(question.streams for question in self.questions if question.label == charge.label)
        return charge if is_visible and is_from_form and not is_watch else None

    # What a steward does

    def register(self, caller: Caller, title: str, **stated: Any) -> str:
        """Register a data set, and write down what is said of its budget; tells the name it has here."""
        name = self.shelf.add(title, **stated, by=caller.name, compare=self._compare, key=self._fingerprint_key())
        self._adopt(name, by=caller.name, reason="it was registered so")
        self.acts.note("data set", caller, name)
        return name

    def retire(self, caller: Caller, name: str) -> str:
        """Take a registered data set away. The ledger keeps its rows, and answers that were given can still be read."""
        retired = self.shelf.retire(name)
        self.access.forget(retired)
        self.acts.note("data set retired", caller, retired)
        return retired

    def give_access(self, caller: Caller, name: str, analyst: str) -> list[str]:
        """Open a data set to an analyst who has a valid token, or to every analyst; tells who may see it now."""
        found = self.shelf.find(name)
        if analyst != EVERYBODY:
            self.tokens.require_person(analyst)
        self.access.give(found, analyst, by=caller.name)
        self.acts.note("access given", caller, f"{found.name} to {analyst}")
        return self.access.analysts(found)

    def take_access(self, caller: Caller, name: str, analyst: str) -> list[str]:
        """Close a data set to an analyst again; tells who may see it now."""
        found = self.shelf.find(name)
        self.access.take(found, analyst)
        self.acts.note("access taken", caller, f"{found.name} from {analyst}")
        return self.access.analysts(found)

    def issue_token(
        self, caller: Caller, name: str, scope: str, *, days: int | None, groups: Sequence[str] = ()
    ) -> tuple[Token, str]:
        """A new token, and its text; it may see the data sets of these groups of the settings."""
        require_groups(groups, self.settings)
        made, text = self.tokens.create(name, scope, days=days, by=caller.name, groups=groups)
        self.acts.note("token issued", caller, f"{made.id} for {made.name}, {made.scope}")
        return made, text

    def issue_own_token(self, caller: Caller, scope: str, *, days: int) -> tuple[Token, str]:
        """A token of a person who signed in, for her programs: with her rights or fewer, and with an expiry."""
        if not caller.is_person:
            raise Refusal("forbidden", "A token makes no token. Sign in with the account of your office.")
        allowed = TOKEN_SCOPES[self.people.find(caller.name).role]
        if scope not in allowed:
            raise ParameterError(f"scope: your token may be for {', '.join(allowed)}. Choose one of them.")
        if not 1 <= days <= MAX_OWN_TOKEN_DAYS:
            raise ParameterError(f"days: your token is valid for 1 to {MAX_OWN_TOKEN_DAYS} days. Choose a number.")
        made, text = self.tokens.create(caller.name, scope, days=days, by=caller.name, is_personal=True)
        self.acts.note("own token issued", caller, f"{made.id}, {made.scope}")
        return made, text

    def own_tokens(self, caller: Caller) -> list[Token]:
        """The personal tokens of the caller that are valid."""
        rights = self.tokens.rights()
        own = {key for key, right in rights.items() if right.person == caller.name}
        return [token for token in self.tokens.all() if token.id in own and token.is_valid]

    def revoke_own_token(self, caller: Caller, key: str) -> Token:
        """End a personal token of the caller."""
        if key not in {token.id for token in self.own_tokens(caller)}:
            raise Refusal("not-found", "You have no valid token with this id. The list has them all.")
        ended = self.tokens.revoke(key)
        self.acts.note("own token revoked", caller, ended.id)
        return ended

    def disable_person(self, caller: Caller, name: str) -> Person:
        """End the sessions and tokens of a person, and refuse her from now on."""
        if caller.is_person and caller.name == name:
            raise Refusal("conflict", "You cannot disable yourself. Ask another steward.")
        person = self.people.disable(name)
        rights = self.tokens.rights()
        for token in self.tokens.all():
            if token.id in rights and rights[token.id].person == name:
                self.tokens.revoke(token.id)
        self.end_sessions(person)
        self.acts.note("person disabled", caller, name)
        return person

    def enable_person(self, caller: Caller, name: str, *, another_account: bool = False) -> Person:
        """Let a disabled person sign in again, or another account of the directory have her name."""
        person = self.people.enable(name, another_account=another_account)
        self.acts.note("name given to another account" if another_account else "person enabled", caller, name)
        return person

    def revoke_token(self, caller: Caller, key: str) -> Token:
        """End a token, unless it is the last one of a steward: nobody could change anything afterwards."""
        self.tokens.require_other_steward(key)
        ended = self.tokens.revoke(key)
        self.acts.note("token revoked", caller, f"{ended.id} of {ended.name}")
        return ended

    def remove_factor(self, caller: Caller, key: str) -> None:
        """Take the second factor of a token away, for whoever has lost it."""
        self.factors.remove(key)
        self.tokens.forget_checks()
        self.acts.note("second factor removed", caller, f"{key} of {self.tokens.find(key).name}")

    def enrol_factor(self, caller: Caller, text: str, secret: bytes, code: str) -> None:
        """Give the caller's own token a second factor."""
        self.factors.enrol_with_code(self.tokens.find(caller.token), text, secret, code)
        self.tokens.forget_checks()
        self.acts.note("second factor enrolled", caller, f"{caller.token} of {caller.name}")

    def grant(
        self,
        caller: Caller,
        name: str,
        loss: Loss,
        *,
        reason: str,
        confirm: bool = False,
        accounting: Accounting | None = None,
        convert: Exact | None = None,
        pace: Exact | None = None,
        expires: date | None = None,
    ) -> Entry | Proposal:
        """Set the limit of a data set's account, in all; above the ε of the settings it waits for a second steward."""
        found = self.shelf.find(name)
        _require_reason(reason)
        limit = limit_of(loss, convert=convert, accounting=accounting)
        require_confirmation(limit, confirm=confirm)
        terms: dict[str, Any] = {"accounting": accounting, "convert": convert, "pace": pace, "expires": expires}
        if self.proposals.needs_second_steward(name, limit, pace=pace, expires=expires):
            stated = {**terms, "reason": reason}
            return self._note_proposal(caller, self.proposals.propose_limit(caller, found.name, loss, limit, stated))
        return self._note_entry("limit", caller, self.ledger.grant(name, loss, by=caller.name, reason=reason, **terms))

    def allocate(self, caller: Caller, name: str, analyst: str, loss: Loss, *, reason: str = "") -> Entry:
        """Set the share of one analyst, who has a valid token; 0 takes it back from anybody."""
        self.shelf.find(name)
        if loss.amount or loss.delta:
            self.tokens.require_person(analyst)
        entry = self.ledger.allocate(name, analyst, loss, by=caller.name, reason=reason)
        return self._note_entry("share", caller, entry)

    def declare(
        self,
        caller: Caller,
        name: str,
        protection: Protection | None,
        *,
        account: str | None = None,
        apart: Sequence[str] = (),
        reason: str = "",
    ) -> Entry:
        """Say whose loss a data set counts, before its first question, and which account it spends from."""
        stated = self.shelf.find(name).schema
        if (stated.account or stated.protects) and (protection is not None or account is not None):
            raise ParameterError(
                f"{name}: its settings or its schema say what its budget counts, and every question is held to that. "
                "Say it there, or leave it out there."
            )
        if protection is not None and self.shelf.find(name).source is not None:
            require_secret_rows(stated, protection, name)
        stated_too: dict[str, Any] = {"account": account, "apart": apart, "reason": reason}
        return self._note_entry(
            "declaration", caller, self.ledger.declare(name, protection, by=caller.name, **stated_too)
        )

    def allow_constrained(self, caller: Caller, name: str, epsilon: Exact, *, reason: str) -> Entry | Proposal:
        """Open output-constrained answers up to an epsilon in all; 0 closes them. Above the ε of the settings it waits
        for a second steward."""
        found = self.shelf.find(name)
        _require_reason(reason)
        if self.proposals.needs_second_steward_for(epsilon):
            proposal = self.proposals.propose_allowance(caller, found.name, epsilon, reason)
            return self._note_proposal(caller, proposal)
        entry = self.ledger.allow_constrained(name, epsilon, by=caller.name, reason=reason)
        return self._note_entry("allowance", caller, entry)

    def confirm_proposal(self, caller: Caller, key: str) -> tuple[Proposal, Entry]:
        """Confirm what another steward proposed: it is written into the ledger now."""
        proposal, entry = self.proposals.confirm(caller, key)
        about = f"{proposal.dataset}, proposed by {proposal.by}, entry {entry.id} of the ledger"
        self.acts.note(f"{proposal.kind} confirmed", caller, about)
        return proposal, entry

    def decline_proposal(self, caller: Caller, key: str) -> Proposal:
        """Refuse what another steward proposed, or take one's own proposal back."""
        proposal = self.proposals.decline(caller, key)
        self.acts.note(f"{proposal.kind} declined", caller, f"{proposal.dataset}, proposed by {proposal.by}")
        return proposal

    def _note_proposal(self, caller: Caller, proposal: Proposal) -> Proposal:
        about = f"{proposal.dataset}, ε = {proposal.epsilon}, {proposal.id}"
        self.acts.note(f"{proposal.kind} proposed", caller, about)
        return proposal

    def _note_entry(self, act: str, caller: Caller, entry: Entry) -> Entry:
        self.acts.note(act, caller, f"{entry.dataset}, entry {entry.id} of the ledger")
        return entry

    def entries(
        self, *, name: str | None = None, event: Event | None = None, before: int | None = None, last: int = 100
    ) -> list[Entry]:
        """Entries of the ledger, oldest first."""
        return self.ledger.history(name, event=event, before=before, last=last)

    def verify(self, *, head: str | None = None) -> Verification:
        return self.ledger.verify(head=head)

    def export(self) -> Iterator[dict[str, Any]]:
        return self.ledger.export()

    def _compare(self, table: Table | TiledTable, source: str) -> None:
        """Refuse records that another data set holds. If the key for that cannot be kept, say so and go on."""
        key = self._fingerprint_key()
        if key is not None:
            notice(table, self.ledger, source=source, key=key)

    def _fingerprint_key(self) -> bytes | None:
        try:
            return steward_key()
        except SourceError as error:
            tell("records are not compared with other data sets", reason=str(error))
            return None

    def _adopt(self, name: str, *, by: str, reason: str) -> None:
        """What is said of a budget beside the data counts where the ledger has heard nothing else yet."""
        schema = self.shelf.find(name).schema
        if schema.account is None and schema.protects is None:
            return
        if not self.is_charged(name) and not self.ledger.history(name, event="account", last=1):
            protection = schema.protects or Protection()
            self.ledger.declare(name, protection, by=by, account=schema.account, reason=reason)

    def _tells_size(self, found: Registration) -> bool:
        """Whether analysts could find out by trying how many records there are, though that is secret."""
        is_hidden = found.source is not None and hides_size(found, self.ledger.account(found.name))
        return is_hidden and (found.schema.rows is None or not bounds_rows(found.schema))

    def _require_nameable(self, caller: Caller, name: str, query: Query[Any, Any]) -> None:
        """Whoever may name any record can find out who is in the table, so the steward says which may be named."""
        found, record = self.find(caller, name), query.record_name()
        if record is not None and not caller.is_steward and record not in found.records:
            raise Refusal(
                "forbidden",
                f"{query.kind}: the steward has not opened this record to questions. Only records that the steward "
                "names may be asked about. Ask the steward.",
            )
        for number in query.releases():
            self.release(caller, number)  # whose it is, or a refusal


def require_confirmation(limit: Limit, *, confirm: bool) -> None:
    """Refuse a limit that promises next to nothing, unless it is meant."""
    if not confirm and limit.epsilon > LARGE:
        raise ParameterError(
            f"confirm: a limit above ε={LARGE} promises next to nothing to anybody in the data. Confirm it if it is "
            "meant, or set a lower one."
        )


def require_spender(caller: Caller) -> None:
    """Refuse an auditor: reading everything goes with spending nothing."""
    if caller.is_auditor:
        raise Refusal("forbidden", "An auditor reads and spends nothing. Ask with another token or account.")


def require_groups(groups: Sequence[str], settings: Settings) -> None:
    """Refuse a group that the settings do not have."""
    known = [group.name for group in settings.groups]
    for name in groups:
        if name not in known:
            listed = f"use {', '.join(known)}" if known else "the settings have none"
            raise ParameterError(f"groups: {name[:40]!r} is not a group of the settings; {listed}. Correct it.")


def own_key(caller: Caller, key: str | None) -> str | None:
    """A key as the ledger has it: nobody can use up the keys of somebody else."""
    return None if key is None else f"{caller.name}/{key}"


def _require_key(key: str) -> None:
    if not (1 <= len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable() and key == key.strip()):
        raise ParameterError(
            f"Idempotency-Key: it has 1 to {_LONGEST_KEY} printable ASCII characters. Send another, such as a UUID."
        )


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise ParameterError("reason: none is given, and whoever reads the ledger later will ask for it. Say why.")
