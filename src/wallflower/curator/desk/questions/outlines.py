"""What public facts say of a question before it is paid: what to expect of it, what it states of its loss, and what it
takes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from wallflower.curator.desk.datasets.shelf import Shelf
from wallflower.curator.desk.problems import Refusal
from wallflower.curator.settings import Settings
from wallflower.data import TiledTable
from wallflower.ledger import Ledger
from wallflower.ledger.chain import canonical
from wallflower.names import account_name
from wallflower.privacy import Neighbours
from wallflower.progress import Effort
from wallflower.query import Plan, Query
from wallflower.release import plan_for
from wallflower.release.scales import rescale
from wallflower.release.views import view_of
from wallflower.units import Claim
from wallflower.watching import USUAL

AT_A_TIME: Final = 1 << 20  # records of a table that an engine keeps, about as many as a tile has
_MOST_OUTLINES: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """What public facts say of a question: what to expect, and what it states of its loss."""

    plan: Plan
    claim: Claim


class Outlines:
    """The outlines of questions about the data sets on a shelf. The same one is worked out once."""

    def __init__(self, settings: Settings, shelf: Shelf, ledger: Ledger) -> None:
        self._settings, self._shelf, self._ledger = settings, shelf, ledger
        self._known: OrderedDict[tuple[str, str, str], Outline] = OrderedDict()
        self._lock = Lock()

    def find(self, name: str, query: Query[Any, Any]) -> Outline:
        """The outline of a question about this data set."""
        key = (name, f"{query.label} {self.hides_size(name)}", canonical(query.to_json()))
        with self._lock:
            found = self._known.get(key)
        if found is None:
            found = self._work_out(name, query)
            with self._lock:
                self._known[key] = found
                while len(self._known) > _MOST_OUTLINES:
                    self._known.popitem(last=False)
        return found

    def effort(self, name: str, query: Query[Any, Any]) -> Effort:
        """What a question takes; one that takes more memory than it may is refused, before anything is paid."""
        view, n = self._facts(name, query)
        effort = query.effort(n=n, dimension=view.dimension)
        most = min(n, AT_A_TIME) if self._is_kept(name) else n
        self._require_memory(query, query.effort(n=most, dimension=view.dimension))
        return effort

    def hides_size(self, name: str) -> bool:
        """Whether it is protected that somebody is there at all, and so how many there are."""
        account = self._ledger.account(name)
        return account.members.get(account_name(name) or name, account.protection).unit == "membership"

    def _work_out(self, name: str, query: Query[Any, Any]) -> Outline:
        view, n = self._facts(name, query)
        is_known = self._shelf.find(name).source is not None and n == view.n
        plan = plan_for(query, view) if is_known else query.plan(n=n, dimension=view.dimension)
        return Outline(plan=plan, claim=query.claim(view))

    def _facts(self, name: str, query: Query[Any, Any]) -> tuple[Any, int]:
        """What a question would look at, of which only public facts are used here, and how many records to reckon
        with: of a stream, or where that is secret and the question states no bound, as many as usual."""
        found = self._shelf.find(name)
        if found.source is not None:
            view = view_of(query, rescale(query, self._shelf.table(name), self._ledger), self._ledger)
            is_bounded = query.cost().neighbours is Neighbours.ADD_REMOVE
            return view, view.n if is_bounded or not self.hides_size(name) else USUAL
        return self._shelf.stream(name, getattr(query, "columns", None)), found.schema.rows or USUAL

    def _is_kept(self, name: str) -> bool:
        """Whether an engine keeps the table, so that some records of it are in memory at a time."""
        return self._shelf.find(name).source is not None and isinstance(self._shelf.table(name), TiledTable)

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
