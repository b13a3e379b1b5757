"""What public facts say of a question before it is paid: what to expect of it, what it states of its loss, and what it
takes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from wallflower.curator.desk.datasets.shelf import Shelf
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.settings import Registration, Settings
from wallflower.data import TiledTable
from wallflower.ledger import Account, Ledger
from wallflower.ledger.account import protection_of
from wallflower.ledger.chain import canonical
from wallflower.privacy import Neighbours
from wallflower.progress import Effort
from wallflower.query import Plan, Query
from wallflower.release import declaration_of, plan_for, require_room
from wallflower.release.scales import rescale
from wallflower.release.views import view_of
from wallflower.schema.rows import bounds_rows, require_secret_rows
from wallflower.streams import DEFAULT_PLAN_ROWS
from wallflower.units import Claim, Protection

AT_A_TIME: Final = 1 << 20  # records of a table that an engine keeps, about as many as a tile has
_MOST_OUTLINES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What public facts say of a question: what to expect, and what it states of its loss."""

    plan: Plan
    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a question would look at, of which only public facts are used, and how many records to reckon with. It is
    no table where there is none, and where the question may not see it: then it `is_blind`."""

    view: Any
    n: int
    is_table: bool = False
    is_blind: bool = False


class Outlines:
    """The outlines of questions about the data sets on a shelf. The same one is worked out once."""

    def __init__(self, settings: Settings, shelf: Shelf, ledger: Ledger) -> None:
        self._settings, self._shelf, self._ledger = settings, shelf, ledger
        self._known: OrderedDict[tuple[str, str, str], Outline] = OrderedDict()
        self._lock = Lock()

    def find(self, name: str, query: Query[Any, Any]) -> Outline:
        """The outline of a question about this data set."""
        found = self._shelf.find(name)
        is_hidden = hides_size(found, self._ledger.account(name))
        key = (f"{name} {found.registered}", f"{query.label} {is_hidden}", canonical(query.to_json()))
        with self._lock:
            made = self._known.get(key)
        if made is None:
            made = self._work_out(query, self._sight(found, query, is_hidden=is_hidden))
            with self._lock:
                self._known[key] = made
                while len(self._known) > _MOST_OUTLINES:
                    self._known.popitem(last=False)
        return made

    def admit(self, name: str, query: Query[Any, Any], analyst: str) -> Effort:
        """What a question takes; refused, before anything is paid, are one that takes more memory than it may and one
        that no theorem lets look at this table."""
        found = self._shelf.find(name)
        seen = self._sight(found, query, is_hidden=hides_size(found, self._ledger.account(name)))
        if seen.is_blind:
            claim, declared = query.claim(seen.view), declaration_of(name, found.schema)
            require_room(self._ledger.quote(name, query, analyst=analyst, claim=claim, declared=declared))
        effort = query.effort(n=seen.n, dimension=seen.view.dimension)
        most = min(seen.n, AT_A_TIME) if self._is_kept(found) else seen.n
        self._require_memory(query, query.effort(n=most, dimension=seen.view.dimension))
        return effort

    def _work_out(self, query: Query[Any, Any], seen: Sight) -> Outline:
        plan = plan_for(query, seen.view) if seen.is_table else query.plan(n=seen.n, dimension=seen.view.dimension)
        return Outline(plan=plan, claim=query.claim(seen.view))

    def _sight(self, found: Registration, query: Query[Any, Any], *, is_hidden: bool) -> Sight:
        """What is looked at before anything is paid. Where the number of records is secret, a question that states no
        bound of it never meets the table, since a refusal by the table could tell it."""
        name, columns = found.name, getattr(query, "columns", None)
        if found.source is None:
            return Sight(view=self._shelf.stream(name, columns), n=found.schema.rows or DEFAULT_PLAN_ROWS)
        if is_hidden:
            require_secret_rows(found.schema, Protection(unit="membership"), name)
        if is_hidden and query.cost().neighbours is not Neighbours.ADD_REMOVE:
            return Sight(view=self._shelf.stream(name, columns), n=DEFAULT_PLAN_ROWS, is_blind=True)
        if is_hidden:
            query.require_bound(found.schema.rows)
        view = view_of(query, rescale(query, self._shelf.table(name), self._ledger), self._ledger)
        return Sight(view=view, n=view.n, is_table=True)

    def _is_kept(self, found: Registration) -> bool:
        """Whether an engine keeps the table, so that some records of it are in memory at a time."""
        return found.source is not None and isinstance(self._shelf.table(found.name), TiledTable)

    def _require_memory(self, query: Query[Any, Any], effort: Effort) -> None:
        """Refuse what public facts say is too much."""
        most = self._settings.question_bytes
        if effort.memory > most:
            raise Refusal(
                "too-much-memory",
                f"{query.kind}: it takes about {effort.memory / 2**20:,.0f} MiB on a table of this size; a question "
                f"may have {most / 2**20:,.0f} MiB here. Nothing was charged. Ask about fewer columns, neighbours or "
                "contexts, or ask the steward for more (`question_bytes`).",
            )


def hides_size(found: Registration, account: Account) -> bool:
    """Whether it is protected that somebody is in a data set at all, and so how many are: by its schema, even while the
    ledger has not heard of it, or by the ledger."""
    return bounds_rows(found.schema) or protection_of(account, found.name).unit == "membership"
