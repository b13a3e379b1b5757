"""What can be done at the curator's desk, as plain functions: the routes and the pages only call them.

Whoever calls is a `Caller`. An analyst sees data sets, what is left for them, and their own releases; a steward sees
everything. A question is charged durably before anybody looks, and what goes wrong after that is told in one constant
sentence.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Final

from wallflower.curator.desk.logs import log_failure
from wallflower.curator.desk.metrics import Metrics
from wallflower.curator.desk.problems import Refusal, unanswered_refusal
from wallflower.curator.desk.records import Records
from wallflower.curator.desk.shelf import Shelf
from wallflower.curator.desk.tokens import Caller, Tokens
from wallflower.curator.settings import Settings
from wallflower.errors import ParameterError, PrivacyError
from wallflower.forms import Question, find
from wallflower.ledger import Ledger
from wallflower.ledger.budget import Line, Share
from wallflower.ledger.chain import Entry, Event, Verification, canonical
from wallflower.privacy import Loss
from wallflower.queries import QUERIES
from wallflower.query import Plan, Query
from wallflower.release import Release, pay

OTHERS: Final = "(others)"

_MOST_PLANS: Final = 1024
_LONGEST_KEY: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetView:
    """A data set as a caller sees it: public facts, its budget, and what they may still spend on each account."""

    name: str
    facts: dict[str, Any]
    budget: list[Line]
    left: dict[str, Loss]


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A question that may wait for its answer: who asks what of which data set, under which key."""

    caller: Caller
    dataset: str
    query: Query[Any, Any]
    key: str | None


class Desk:
    """The service without HTTP."""

    def __init__(self, settings: Settings, questions: tuple[Question, ...] = QUERIES) -> None:
        self.settings, self.questions = settings, questions
        self.ledger = Ledger.open(settings.ledger)
        self.records = Records(settings.ledger)
        self.tokens = Tokens(self.records)
        self.shelf = Shelf(settings.datasets, settings.roots, self.records)
        self.metrics = Metrics()
        self._accounts = {question.example().cost().account for question in questions}
        self._plans: OrderedDict[tuple[str, str, str], Plan] = OrderedDict()
        self._lock = Lock()

    def close(self) -> None:
        self.records.close()
        self.ledger.close()

    # What there is

    def question(self, kind: str) -> Question:
        return find(kind, self.questions)

    def datasets(self, caller: Caller) -> list[DatasetView]:
        """Every data set."""
        return [self.dataset(caller, name) for name in self.shelf.names()]

    def dataset(self, caller: Caller, name: str) -> DatasetView:
        """One data set."""
        facts, lines = self.shelf.facts(name), self.ledger.budget(name)
        left = {line.account: line.left_for(caller.name) for line in lines}
        left |= {account: self.left(caller, name, account) for account in self._accounts - set(left)}
        return DatasetView(name=name, facts=facts, budget=[_for(caller, line) for line in lines], left=left)

    def left(self, caller: Caller, name: str, account: str) -> Loss:
        """What the caller may still spend on an account of a data set."""
        self.shelf.find(name)
        return self.ledger.remaining(name, account=account, analyst=caller.name)

    # Questions

    def plan(self, caller: Caller, name: str, query: Query[Any, Any]) -> Plan:
        """What to expect, from public facts alone; the same plan is made once."""
        self._require_named(caller, name, query)
        key = (name, query.label, canonical(query.to_json()))
        with self._lock:
            found = self._plans.get(key)
        if found is None:
            found = self._planned(name, query)
            with self._lock:
                self._plans[key] = found
                while len(self._plans) > _MOST_PLANS:
                    self._plans.popitem(last=False)
        return found

    def admit(self, caller: Caller, name: str, query: Query[Any, Any], key: str | None) -> Admission:
        """Refuse what can be refused before the question waits in line; the budget is decided when it is charged."""
        self._require_named(caller, name, query)
        self.shelf.find(name)
        if key is not None:
            _require_key(key)
        return Admission(caller=caller, dataset=name, query=query, key=key)

    def ask(self, admitted: Admission) -> Release[Any]:
        """Pay, look and record. After the charge only one thing can be said to have gone wrong."""
        query, caller = admitted.query, admitted.caller
        try:
            table, key = self.shelf.table(admitted.dataset), own_key(caller, admitted.key)
            paid = pay(query, table, self.ledger, analyst=caller.name, key=key)
        except PrivacyError:
            self.metrics.count("asks", kind=query.kind, outcome="refused")
            raise
        try:
            made = paid.answer()
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
            self.shelf.find(name)
        whose = None if caller.is_steward else caller.name
        entries = self.ledger.history(name, analyst=whose, event="release", before=before, last=last)
        return [Release.from_dict(entry.details) for entry in entries]

    def release(self, caller: Caller, number: int) -> Release[Any]:
        """The release that a charge has paid for."""
        stored = self.ledger.release(number) if 0 < number < 2**31 else None
        if stored is None or not (caller.is_steward or stored.get("analyst") == caller.name):
            raise Refusal("not-found", "There is no release with this number, or it is not yours.")
        return Release.from_dict(stored)

    # What a steward does

    def grant(self, caller: Caller, name: str, loss: Loss, *, reason: str = "") -> Entry:
        self.shelf.find(name)
        return self.ledger.grant(name, loss, by=caller.name, reason=reason)

    def allocate(self, caller: Caller, name: str, analyst: str, loss: Loss) -> Entry:
        self.shelf.find(name)
        return self.ledger.allocate(name, analyst, loss, by=caller.name)

    def entries(
        self, *, name: str | None = None, event: Event | None = None, before: int | None = None, last: int = 100
    ) -> list[Entry]:
        """Entries of the ledger, oldest first."""
        return self.ledger.history(name, event=event, before=before, last=last)

    def verify(self, *, head: str | None = None) -> Verification:
        return self.ledger.verify(head=head)

    def export(self) -> Iterator[dict[str, Any]]:
        return self.ledger.export()

    def _planned(self, name: str, query: Query[Any, Any]) -> Plan:
        public = self.shelf.public(name)
        view = query.view(public) if self.shelf.find(name).source is not None else public
        return query.plan(n=view.n, dimension=view.dimension)

    def _require_named(self, caller: Caller, name: str, query: Query[Any, Any]) -> None:
        """Whoever may name any record can find out who is in the table, so the steward says which may be named."""
        record = query.named()
        if record is not None and not caller.is_steward and record not in self.shelf.find(name).records:
            raise Refusal(
                "forbidden",
                f"{query.kind}: the steward has not opened this record to questions. Only records that the steward "
                "names may be asked about. Ask the steward.",
            )


def own_key(caller: Caller, key: str | None) -> str | None:
    """A key as the ledger has it: nobody can use up the keys of somebody else."""
    return None if key is None else f"{caller.name}/{key}"


def _require_key(key: str) -> None:
    if not (1 <= len(key) <= _LONGEST_KEY and key.isascii() and key.isprintable() and key == key.strip()):
        raise ParameterError(
            f"Idempotency-Key: it has 1 to {_LONGEST_KEY} printable ASCII characters. Send another, such as a UUID."
        )


def _for(caller: Caller, line: Line) -> Line:
    """An account as the caller may see it: of the shares of others only their sum."""
    if caller.is_steward:
        return line
    own = tuple(share for share in line.shares if share.analyst == caller.name)
    rest = [share for share in line.shares if share.analyst != caller.name]
    if not rest:
        return line
    nothing = line.limit.less(line.limit)
    allocated = spent = nothing
    for share in rest:
        allocated, spent = allocated + share.allocated, spent + share.spent
    return replace(line, shares=(*own, Share(analyst=OTHERS, allocated=allocated, spent=spent)))
