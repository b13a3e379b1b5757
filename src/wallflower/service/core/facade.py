"""The facade of the service: everything that routes and pages can do, without HTTP.

Every method takes the `Caller`. An analyst sees data sets, what is left of their budgets, and their own releases; a
steward sees everything. A query is charged durably before its data are read, and a failure after that is reported in
one constant sentence.
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

from wallflower.data import Table, TiledTable
from wallflower.data.people import repeat_notice
from wallflower.errors import LedgerUnreachable, ParameterError, PrivacyError, SourceError
from wallflower.ledger import Ledger, Quote
from wallflower.ledger.account import Account
from wallflower.ledger.chain import Entry, Event, Verification
from wallflower.ledger.limits import Accounting, Limit, limit_of
from wallflower.names import account_name
from wallflower.privacy import Exact, Loss
from wallflower.queries import QUERIES
from wallflower.query import Plan, Query
from wallflower.query.parameter import Question, find
from wallflower.release import Release, check_shared_records, pay
from wallflower.release.steward_key import steward_key
from wallflower.schema import Schema
from wallflower.schema.schema import bounds_rows, require_secret_rows
from wallflower.service.core.access.acts import Acts
from wallflower.service.core.access.factors import Factors
from wallflower.service.core.access.grants import Access
from wallflower.service.core.access.people import TOKEN_SCOPES, People, Person
from wallflower.service.core.access.tokens import Caller, Token, Tokens
from wallflower.service.core.catalog import Catalog, DatasetView, find_repeats
from wallflower.service.core.jobs import FairQueue
from wallflower.service.core.letters import Letters
from wallflower.service.core.logs import log_event, log_failure
from wallflower.service.core.metrics import LedgerState, Metrics
from wallflower.service.core.previews import Previews, hides_size
from wallflower.service.core.problems import Refusal, unanswered_refusal, unrecorded_refusal
from wallflower.service.core.proposals import Proposal, Proposals
from wallflower.service.core.publications import Publications
from wallflower.service.core.records import Records
from wallflower.service.core.spending import redact_account
from wallflower.service.settings import EVERYBODY, Registration, Settings
from wallflower.text import Message
from wallflower.units import Protection

MAX_UNCONFIRMED_EPSILON: Final = 10  # a larger limit is almost no protection, and has to be confirmed

ANONYMOUS_THREADS: Final = 4  # threads for callers that are not authenticated

FORM_KEY_PREFIX: Final = "page-"  # of the idempotency keys of forms in the pages
AGENT_KEY_PREFIX: Final = "agent-"  # of the idempotency keys of agents: in the ledger, `agent-NAME-ID` says who asked
MAX_OWN_TOKEN_DAYS: Final = 365
_MAX_KEY_LETTERS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A query that was admitted to the queue.

    `force` runs it even if the plan predicts mostly noise; `is_long` says that public facts predict a long computation.
    """

    caller: Caller
    dataset: str
    query: Query[Any, Any]
    key: str | None
    force: bool = False
    is_long: bool = False


class Core:
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
        self.catalog = Catalog(settings.datasets, settings.roots, self.records)
        self.metrics = Metrics()
        for store in (self.ledger, self.records):
            store.observe_errors(partial(self.metrics.count, "ledger_errors"))
        self.proposals = Proposals(settings, self.records, self.ledger, self.tokens)
        self.letters = Letters(self.records, self.catalog, self.ledger)
        self.publications = Publications(self.records, self.ledger, questions, self.acts.note)
        self.previews = Previews(settings, self.catalog, self.ledger)
        room = {"waiting": settings.waiting, "waiting_each": settings.computing_waiting_each}
        meters = {name: self.metrics.queue(name) for name in ("computations", "large_bodies")}
        self.computations = FairQueue(places=settings.computing, each=1, **room, meter=meters["computations"])
        self.large_bodies = FairQueue(places=settings.computing, each=1, **room, meter=meters["large_bodies"])
        self.strangers = CapacityLimiter(ANONYMOUS_THREADS)

    def load(self, *, tolerant: bool = False) -> None:
        """Read every table, compare those of the settings with others, and declare stated units of protection.

        A table of the settings that cannot be read is an error, unless `tolerant`: then it cannot be queried.
        """
        self.catalog.load(tolerant=tolerant)
        for dataset in self.settings.datasets:
            self.ledger.account(dataset.name)  # refuses a name that the ledger cannot use
            if dataset.source is not None and self.catalog.standing(dataset).state == "ready":
                self._compare(self.catalog.table(dataset.name), dataset.source)
            self._adopt(dataset.name, by="settings", reason="the settings say so")
        unbounded = sum(map(self._tells_size, self.settings.datasets))
        if unbounded:
            log_event(
                "the number of records is secret, and refusals of explain can tell it",
                datasets=unbounded,
                remedy="state a bound on it, as rows beside protects in the schema",
            )

    def ledger_state(self) -> LedgerState:
        """Return the metrics that are read from the ledger; data sets are named only if the settings allow it."""
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

    # Data sets

    def question(self, kind: str) -> Question:
        return find(kind, self.questions)

    def names(self) -> list[str]:
        """Return the names of data sets that can be queried."""
        return [dataset.name for dataset in self._registrations()]

    def _registrations(self) -> list[Registration]:
        registrations = self.catalog.registrations()
        odd = {dataset.name for dataset in registrations if account_name(dataset.name) is None}
        unusable = odd - set(self.ledger.datasets()) if odd else set()
        return [dataset for dataset in registrations if dataset.name not in unusable]

    def datasets(self, caller: Caller) -> list[DatasetView]:
        """Return every data set that the caller may see, without waiting for those that are not read yet."""
        return [self._view(caller, dataset) for dataset in self._visible(caller)]

    def visible_names(self, caller: Caller) -> list[str]:
        """Return the names of the data sets that the caller may see."""
        return [dataset.name for dataset in self._visible(caller)]

    def find(self, caller: Caller, name: str) -> Registration:
        """Return the data set of this name; for a caller who may not see it, it does not exist."""
        return self.access.require(caller, self.catalog.find(name))

    def _visible(self, caller: Caller) -> list[Registration]:
        return self.access.visible(caller, self._registrations())

    def dataset(self, caller: Caller, name: str) -> DatasetView:
        """Return one data set, and read it first if it is not read yet."""
        dataset = self.find(caller, name)
        if self.catalog.standing(dataset).state == "loading":
            with suppress(Refusal):
                self.catalog.table(dataset.name)
        return self._view(caller, dataset)

    def _view(self, caller: Caller, dataset: Registration) -> DatasetView:
        facts, account = self.catalog.facts(dataset), self.ledger.account(dataset.name)
        is_hidden = dataset.source is not None and hides_size(dataset, account)
        facts |= {"rows": None} if is_hidden else {}
        shown = (
            account
            if caller.reads_all
            else redact_account(account, caller, self._visible_members(caller, dataset, account))
        )
        standing = self.catalog.standing(dataset)
        return DatasetView(
            name=dataset.name,
            facts=facts,
            budget=shown,
            left=account.left_for(caller.name),
            state=standing.state,
            reason=standing.reason if caller.reads_all else None,
            is_registered=dataset.registered is not None,
        )

    def public_schema(self, name: str) -> Schema:
        """Return the schema, without the number of records if that is secret."""
        dataset, schema = self.catalog.find(name), self.catalog.schema(name)
        is_public = bounds_rows(dataset.schema) or not hides_size(dataset, self.ledger.account(dataset.name))
        return schema if is_public or dataset.source is None else replace(schema, rows=None)

    def _visible_members(self, caller: Caller, dataset: Registration, account: Account) -> list[Registration]:
        """Return the data sets of an account that the caller may see.

        Most accounts have one member, the data set itself: then nothing is looked up, since on PostgreSQL every query
        opens a connection.
        """
        is_alone = set(account.members) <= {account_name(dataset.name) or dataset.name}
        candidates = [dataset] if is_alone else self._visible(caller)
        return [member for member in candidates if (account_name(member.name) or member.name) in account.members]

    def is_charged(self, name: str) -> bool:
        """Return whether a data set was ever charged; its unit of protection cannot change then."""
        return bool(self.ledger.history(name, event="charge", last=1))

    # Queries

    def plan(self, caller: Caller, name: str, query: Query[Any, Any]) -> Plan:
        """Return the plan of a query, from public facts alone."""
        self._require_nameable(caller, name, query)
        return self.previews.find(name, query).plan

    def quote(self, caller: Caller, name: str, query: Query[Any, Any]) -> Quote:
        """Return the cost of a query, from public facts alone; nothing is charged."""
        self._require_nameable(caller, name, query)
        claim = self.previews.find(name, query).claim
        return self.ledger.quote(name, query, analyst=caller.name, claim=claim)

    def admit(
        self,
        caller: Caller,
        name: str,
        query: Query[Any, Any],
        key: str | None,
        *,
        force: bool = False,
        agent: str | None = None,
    ) -> Admission:
        """Refuse what can be refused before a query is queued; the budget is checked when it is charged.

        `agent` is the name of the agent that asks for the caller; it is kept in the ledger, in the key.
        """
        require_spender(caller)
        self._require_nameable(caller, name, query)
        if agent is not None:
            key = f"{AGENT_KEY_PREFIX}{agent}-{key}"
        elif key is not None and key.startswith(AGENT_KEY_PREFIX):
            raise ParameterError(f"Idempotency-Key: {AGENT_KEY_PREFIX} begins the keys of agents. Send another.")
        if key is not None:
            _require_key(key)
        is_long = self.previews.admit(name, query, caller.name).seconds > self.settings.job_seconds
        return Admission(caller=caller, dataset=name, query=query, key=key, force=force, is_long=is_long)

    def ask(self, admitted: Admission, hold: Callable[[], None]) -> Release[Any]:
        """Charge, compute, hold and record. Every failure after the charge is reported in the same words."""
        query, caller = admitted.query, admitted.caller
        try:
            table, key = self.catalog.table(admitted.dataset), own_key(caller, admitted.key)
            paid = pay(query, table, self.ledger, analyst=caller.name, idempotency_key=key, force=admitted.force)
        except PrivacyError:
            self.metrics.count("asks", kind=query.kind, outcome="refused")
            raise
        try:
            release = paid.answer(hold)
        except LedgerUnreachable:
            self.metrics.count("asks", kind=query.kind, outcome="failed")
            raise unrecorded_refusal() from None
        except Exception as error:  # noqa: BLE001 - whatever happens after the look, nothing of it may leave
            log_failure("ask", error)
            self.metrics.count("asks", kind=query.kind, outcome="failed")
            raise unanswered_refusal() from None
        self.metrics.count("asks", kind=query.kind, outcome="replayed" if release.replayed else "answered")
        return release

    def releases(
        self, caller: Caller, name: str | None = None, *, before: int | None = None, last: int = 100
    ) -> list[Release[Any]]:
        """Return releases, oldest first: all of them for a steward, their own for an analyst."""
        if name is not None:
            self.find(caller, name)
        whose = None if caller.reads_all else caller.name
        entries = self.ledger.history(name, analyst=whose, event="release", before=before, last=last)
        return [Release.from_dict(entry.details) for entry in entries]

    def release(self, caller: Caller, number: int) -> Release[Any]:
        """Return the release of a charge."""
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
        is_from_form = (charge.idempotency_key or "").startswith(f"{charge.analyst}/{FORM_KEY_PREFIX}")
        is_watch = any(question.accepts_stream for question in self.questions if question.label == charge.label)
        return charge if is_visible and is_from_form and not is_watch else None

    # Acts of stewards

    def register(self, caller: Caller, title: str, **stated: Any) -> str:
        """Register a data set, declare its unit of protection if it states one, and return its name."""
        name = self.catalog.add(title, **stated, by=caller.name, compare=self._compare, key=self._fingerprint_key())
        self._adopt(name, by=caller.name, reason="it was registered so")
        self.acts.note("data set", caller, name)
        return name

    def repeat_notices(self, name: str) -> list[Message]:
        """Return what the steward who registers a data set is told of identifiers that repeat; never an analyst."""
        dataset = self.catalog.find(name)
        repeats = {} if dataset.source is None else find_repeats(self.catalog, dataset.source, dataset.schema)
        return [repeat_notice(column, rows) for column, rows in repeats.items()]

    def retire(self, caller: Caller, name: str) -> str:
        """Retire a registered data set. The ledger keeps its entries, and releases can still be read."""
        retired = self.catalog.retire(name)
        self.access.forget(retired)
        self.acts.note("data set retired", caller, retired)
        return retired

    def give_access(self, caller: Caller, name: str, analyst: str) -> list[str]:
        """Open a data set to an analyst with a valid token, or to every analyst; return who may see it now."""
        dataset = self.catalog.find(name)
        if analyst != EVERYBODY:
            self.tokens.require_person(analyst)
        self.access.give(dataset, analyst, by=caller.name)
        self.acts.note("access given", caller, f"{dataset.name} to {analyst}")
        return self.access.analysts(dataset)

    def take_access(self, caller: Caller, name: str, analyst: str) -> list[str]:
        """Close a data set to an analyst again; return who may see it now."""
        dataset = self.catalog.find(name)
        self.access.take(dataset, analyst)
        self.acts.note("access taken", caller, f"{dataset.name} from {analyst}")
        return self.access.analysts(dataset)

    def issue_token(
        self, caller: Caller, name: str, scope: str, *, days: int | None, groups: Sequence[str] = ()
    ) -> tuple[Token, str]:
        """Issue a token that may see the data sets of these groups, and return it with its text."""
        require_groups(groups, self.settings)
        token, text = self.tokens.create(name, scope, days=days, by=caller.name, groups=groups)
        self.acts.note("token issued", caller, f"{token.id} for {token.name}, {token.scope}")
        return token, text

    def issue_own_token(self, caller: Caller, scope: str, *, days: int) -> tuple[Token, str]:
        """Issue a personal token to a person who signed in: with her rights or fewer, and with an expiry."""
        if not caller.is_person:
            raise Refusal("forbidden", "A token makes no token. Sign in with the account of your office.")
        allowed = TOKEN_SCOPES[self.people.find(caller.name).role]
        if scope not in allowed:
            raise ParameterError(f"scope: your token may be for {', '.join(allowed)}. Choose one of them.")
        if not 1 <= days <= MAX_OWN_TOKEN_DAYS:
            raise ParameterError(f"days: your token is valid for 1 to {MAX_OWN_TOKEN_DAYS} days. Choose a number.")
        token, text = self.tokens.create(caller.name, scope, days=days, by=caller.name, is_personal=True)
        self.acts.note("own token issued", caller, f"{token.id}, {token.scope}")
        return token, text

    def own_tokens(self, caller: Caller) -> list[Token]:
        """Return the valid personal tokens of the caller."""
        personal = {key for key, right in self.tokens.rights().items() if right.person == caller.name}
        return [token for token in self.tokens.all() if token.id in personal and token.is_valid]

    def revoke_own_token(self, caller: Caller, key: str) -> Token:
        """Revoke a personal token of the caller."""
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
        """Revoke a token, unless it is the last one of a steward: nobody could change anything afterwards."""
        self.tokens.require_other_steward(key)
        ended = self.tokens.revoke(key)
        self.acts.note("token revoked", caller, f"{ended.id} of {ended.name}")
        return ended

    def remove_factor(self, caller: Caller, key: str) -> None:
        """Remove the second factor of a token, for a holder who has lost it."""
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
        """Set the total budget of a data set; above `four_eyes_above` it waits for a second steward."""
        dataset = self.catalog.find(name)
        _require_reason(reason)
        limit = limit_of(loss, convert=convert, accounting=accounting)
        require_confirmation(limit, confirm=confirm)
        terms: dict[str, Any] = {"accounting": accounting, "convert": convert, "pace": pace, "expires": expires}
        if self.proposals.needs_second_steward(name, limit, pace=pace, expires=expires):
            stated = {**terms, "reason": reason}
            return self._note_proposal(caller, self.proposals.propose_limit(caller, dataset.name, loss, limit, stated))
        return self._note_entry("limit", caller, self.ledger.grant(name, loss, by=caller.name, reason=reason, **terms))

    def set_quota(self, caller: Caller, name: str, analyst: str, loss: Loss, *, reason: str = "") -> Entry:
        """Set the quota of one analyst, who has a valid token; 0 removes the quota of anybody."""
        self.catalog.find(name)
        if loss.amount or loss.delta:
            self.tokens.require_person(analyst)
        entry = self.ledger.set_quota(name, analyst, loss, by=caller.name, reason=reason)
        return self._note_entry("quota", caller, entry)

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
        """Declare the unit of protection of a data set, before its first query, and the account it spends from."""
        stated = self.catalog.find(name).schema
        if (stated.account or stated.protects) and (protection is not None or account is not None):
            raise ParameterError(
                f"{name}: its settings or its schema state the unit of protection. Change it there, or remove it there."
            )
        if protection is not None and self.catalog.find(name).source is not None:
            require_secret_rows(stated, protection, name)
        entry = self.ledger.declare(name, protection, by=caller.name, account=account, apart=apart, reason=reason)
        return self._note_entry("declaration", caller, entry)

    def allow_constrained(self, caller: Caller, name: str, epsilon: Exact, *, reason: str) -> Entry | Proposal:
        """Allow output-constrained answers up to a total ε; 0 forbids them.

        Above `four_eyes_above` the change waits for a second steward.
        """
        dataset = self.catalog.find(name)
        _require_reason(reason)
        if self.proposals.needs_second_steward_for(epsilon):
            proposal = self.proposals.propose_allowance(caller, dataset.name, epsilon, reason)
            return self._note_proposal(caller, proposal)
        entry = self.ledger.allow_constrained(name, epsilon, by=caller.name, reason=reason)
        return self._note_entry("allowance", caller, entry)

    def allow_naming(
        self, caller: Caller, name: str, detector: int, most: int, *, reason: str, by_row: bool = False
    ) -> Entry | Proposal:
        """Allow lists of names of a data set by one detector; 0 forbids them.

        Where the settings want a second steward for anything, more names wait for one, and so do row numbers.
        """
        dataset = self.catalog.find(name)
        _require_reason(reason)
        known = account_name(dataset.name) or dataset.name
        allowance = self.ledger.account(name).naming.find(known, detector)
        allows_more = allowance is None or most > allowance.most or (by_row and not allowance.by_row)
        if self.settings.four_eyes_above is not None and most and allows_more:
            terms = {"detector": detector, "most": most, "by_row": by_row}
            return self._note_proposal(caller, self.proposals.propose_naming(caller, dataset.name, terms, reason))
        entry = self.ledger.allow_naming(name, detector, most, by=caller.name, reason=reason, by_row=by_row)
        return self._note_entry("naming", caller, entry)

    def issue_letters(
        self, caller: Caller, name: str, detector: int, column: str, identifiers: Sequence[str], *, days: int
    ) -> list[tuple[str, str]]:
        """Make a token for each identifier, by which that person reads her own letter."""
        dataset = self.catalog.find(name)
        tokens = self.letters.issue(dataset.name, detector, column, identifiers, days=days)
        self.acts.note("letter tokens issued", caller, f"{len(tokens):,} of {dataset.name}, detector {detector}")
        return tokens

    def confirm_proposal(self, caller: Caller, key: str) -> tuple[Proposal, Entry]:
        """Confirm what another steward proposed, and write it into the ledger."""
        proposal, entry = self.proposals.confirm(caller, key)
        about = f"{proposal.dataset}, proposed by {proposal.by}, entry {entry.id} of the ledger"
        self.acts.note(f"{proposal.kind} confirmed", caller, about)
        return proposal, entry

    def decline_proposal(self, caller: Caller, key: str) -> Proposal:
        """Decline what another steward proposed, or withdraw one's own proposal."""
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
        """Return entries of the ledger, oldest first."""
        return self.ledger.history(name, event=event, before=before, last=last)

    def verify(self, *, head: str | None = None) -> Verification:
        return self.ledger.verify(head=head)

    def export(self) -> Iterator[dict[str, Any]]:
        return self.ledger.export()

    def _compare(self, table: Table | TiledTable, source: str) -> None:
        """Refuse records that another data set holds. Without the key of fingerprints, log that and go on."""
        key = self._fingerprint_key()
        if key is not None:
            check_shared_records(table, self.ledger, source=source, key=key)

    def _fingerprint_key(self) -> bytes | None:
        try:
            return steward_key()
        except SourceError as error:
            log_event("records are not compared with other data sets", reason=str(error))
            return None

    def _adopt(self, name: str, *, by: str, reason: str) -> None:
        """Declare the unit of protection that a schema states, unless the ledger has another already."""
        schema = self.catalog.find(name).schema
        if schema.account is None and schema.protects is None:
            return
        if not self.is_charged(name) and not self.ledger.history(name, event="account", last=1):
            protection = schema.protects or Protection()
            self.ledger.declare(name, protection, by=by, account=schema.account, reason=reason)

    def _tells_size(self, dataset: Registration) -> bool:
        """Return whether refusals could reveal the number of records, though it is secret."""
        is_hidden = dataset.source is not None and hides_size(dataset, self.ledger.account(dataset.name))
        return is_hidden and (dataset.schema.rows is None or not bounds_rows(dataset.schema))

    def _require_nameable(self, caller: Caller, name: str, query: Query[Any, Any]) -> None:
        """Refuse a record that the steward has not opened: naming any record would reveal who is in the table."""
        dataset, record = self.find(caller, name), query.record_name()
        if record is not None and not caller.is_steward and record not in dataset.records:
            raise Refusal(
                "forbidden",
                f"{query.kind}: this record is not open to queries. Only records that the steward lists may be "
                "named. Ask the steward.",
            )
        for number in query.releases():
            self.release(caller, number)  # refuses a release of somebody else


def require_confirmation(limit: Limit, *, confirm: bool) -> None:
    """Refuse a limit that is almost no protection, unless it is confirmed."""
    if not confirm and limit.epsilon > MAX_UNCONFIRMED_EPSILON:
        raise ParameterError(
            f"confirm: a limit above ε = {MAX_UNCONFIRMED_EPSILON} protects nobody in the data. Set a lower limit, or "
            "confirm this one."
        )


def require_spender(caller: Caller) -> None:
    """Refuse an auditor, who reads everything and spends nothing."""
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
    """Return an idempotency key as the ledger stores it: callers have separate keys."""
    return None if key is None else f"{caller.name}/{key}"


def _require_key(key: str) -> None:
    if not (1 <= len(key) <= _MAX_KEY_LETTERS and key.isascii() and key.isprintable() and key == key.strip()):
        raise ParameterError(
            f"Idempotency-Key: it has 1 to {_MAX_KEY_LETTERS} printable ASCII characters. Send another, such as a UUID."
        )


def _require_reason(reason: str) -> None:
    if not reason.strip():
        raise ParameterError("reason: none is given. The ledger records one for every limit. Add it.")
