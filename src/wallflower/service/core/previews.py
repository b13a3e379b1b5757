"""Previews of queries from public facts, before anything is charged: plan, cost, effort and trade-off curves."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

from wallflower.data import TiledTable
from wallflower.errors import ParameterError
from wallflower.ledger import Account, Ledger
from wallflower.ledger.account import protection_of
from wallflower.ledger.chain import canonical
from wallflower.privacy import Loss, Neighbours
from wallflower.progress import Effort
from wallflower.query import Plan, Query, Tradeoff
from wallflower.release import add_booking, declaration_of, plan_for, require_budget
from wallflower.release.inputs import project
from wallflower.schema.schema import bounds_rows, require_secret_rows
from wallflower.service.core.catalog import Catalog
from wallflower.service.core.problems import Refusal
from wallflower.service.settings import Registration, Settings
from wallflower.streams import DEFAULT_PLAN_ROWS
from wallflower.units import Claim, Protection

RECORDS_IN_MEMORY: Final = 1 << 20  # of a tiled table at a time, about one tile
_MAX_CACHED_PREVIEWS: Final = 1024
_MAX_CACHED_CURVES: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The plan of a query, and its claim about privacy."""

    plan: Plan
    claim: Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicView:
    """What a query would see, of which only public facts are used, and the number of records to assume.

    It is not a table for a stream, nor if the query may not see the table (`is_blind`).
    """

    view: Any
    n: int
    is_table: bool = False
    is_blind: bool = False


class Previews:
    """Plans and costs of queries from public facts, cached."""

    def __init__(self, settings: Settings, catalog: Catalog, ledger: Ledger) -> None:
        self._settings, self._catalog, self._ledger = settings, catalog, ledger
        self._cache: OrderedDict[tuple[str, str, str], Preview] = OrderedDict()
        self._lock = Lock()

    def find(self, name: str, query: Query[Any, Any]) -> Preview:
        """Return the preview of a query on this data set."""
        dataset = self._catalog.find(name)
        account = self._ledger.account(name)
        is_hidden, declared = hides_size(dataset, account), protection_of(account, name)
        unit = canonical(declared.to_json())
        key = (f"{name} {dataset.registered} {unit}", f"{query.label} {is_hidden}", canonical(query.to_json()))
        with self._lock:
            preview = self._cache.get(key)
        if preview is None:
            preview = self._make(query, self._public_view(dataset, query, is_hidden=is_hidden), declared)
            with self._lock:
                self._cache[key] = preview
                while len(self._cache) > _MAX_CACHED_PREVIEWS:
                    self._cache.popitem(last=False)
        return preview

    def admit(self, name: str, query: Query[Any, Any], analyst: str) -> Effort:
        """Return the estimated effort of a query.

        Refuses, before anything is charged, a query that needs too much memory, and one that has no proven cost on
        this table.
        """
        dataset = self._catalog.find(name)
        public = self._public_view(dataset, query, is_hidden=hides_size(dataset, self._ledger.account(name)))
        if public.is_blind:
            claim, declared = query.claim(public.view), declaration_of(name, dataset.schema)
            require_budget(self._ledger.quote(name, query, analyst=analyst, claim=claim, declared=declared))
        effort = query.effort(n=public.n, dimension=public.view.dimension)
        n = min(public.n, RECORDS_IN_MEMORY) if self._is_tiled(dataset) else public.n
        self._require_memory(query, query.effort(n=n, dimension=public.view.dimension))
        return effort

    def _make(self, query: Query[Any, Any], public: PublicView, declared: Protection) -> Preview:
        claim = query.claim(public.view)
        if public.is_table:
            plan = plan_for(query, public.view, declared)
        else:
            plan = add_booking(query.plan(n=public.n, dimension=public.view.dimension), claim, declared)
        return Preview(plan=plan, claim=claim)

    def _public_view(self, dataset: Registration, query: Query[Any, Any], *, is_hidden: bool) -> PublicView:
        """Return what a query sees before anything is charged.

        If the number of records is secret, a query without a bound on it never meets the table, since a refusal that
        depends on the table could reveal the number.
        """
        name, columns = dataset.name, getattr(query, "columns", None)
        if dataset.source is None:
            return PublicView(view=self._catalog.stream(name, columns), n=dataset.schema.rows or DEFAULT_PLAN_ROWS)
        if is_hidden:
            require_secret_rows(dataset.schema, Protection(unit="membership"), name)
        if is_hidden and query.cost().neighbours is not Neighbours.ADD_REMOVE:
            return PublicView(view=self._catalog.stream(name, columns), n=DEFAULT_PLAN_ROWS, is_blind=True)
        if is_hidden:
            query.require_bound(dataset.schema.rows)
        view = project(query, query.prepare(self._catalog.table(name), self._ledger.release), self._ledger)
        return PublicView(view=view, n=view.n, is_table=True)

    def _is_tiled(self, dataset: Registration) -> bool:
        """Return whether an engine keeps the table, so that only a part of it is in memory at a time."""
        return dataset.source is not None and isinstance(self._catalog.table(dataset.name), TiledTable)

    def _require_memory(self, query: Query[Any, Any], effort: Effort) -> None:
        limit = self._settings.question_bytes
        if effort.memory > limit:
            raise Refusal(
                "too-much-memory",
                f"{query.kind}: it needs about {effort.memory / 2**20:,.0f} MiB on a table of this size; a query may "
                f"use {limit / 2**20:,.0f} MiB here. Nothing was charged. Ask about fewer columns, neighbours or "
                "contexts, or ask the steward for more (`question_bytes`).",
            )


def hides_size(dataset: Registration, account: Account) -> bool:
    """Return whether membership is protected, and so the number of records: by the schema, even before the ledger has
    a declaration, or by the ledger."""
    return bounds_rows(dataset.schema) or protection_of(account, dataset.name).unit == "membership"


class Tradeoffs:
    """Trade-off curves of queries, cached by their parameters without ε; one is computed at a time.

    A curve takes seconds, and covers many values of ε: moving ε afterwards costs nothing.
    """

    def __init__(self) -> None:
        self._cache: OrderedDict[str, tuple[Tradeoff, ...]] = OrderedDict()
        self._lock = Lock()

    def find(self, query: Query[Any, Any], dimension: int) -> tuple[Tradeoff, ...] | None:
        """Return the curves if they are cached; an empty tuple for a query without curves."""
        return () if not has_tradeoffs(query) else self._cache.get(_curve_key(query, dimension))

    def make(self, query: Query[Any, Any], dimension: int) -> tuple[Tradeoff, ...]:
        """Return the curves, and compute them if necessary."""
        with self._lock:
            curves = self.find(query, dimension)
            if curves is None:
                try:
                    curves = _at_unit_loss(query).tradeoffs(dimension=dimension)
                except ParameterError:  # too little is public for such a curve
                    curves = ()
                self._cache[_curve_key(query, dimension)] = curves
                while len(self._cache) > _MAX_CACHED_CURVES:
                    self._cache.popitem(last=False)
            return curves


def has_tradeoffs(query: Query[Any, Any]) -> bool:
    """Return whether this kind of query has trade-off curves."""
    return type(query).tradeoffs is not Query.tradeoffs


def _curve_key(query: Query[Any, Any], dimension: int) -> str:
    return f"{query.label} {dimension} {canonical(_at_unit_loss(query).to_json())}"


def _at_unit_loss(query: Query[Any, Any]) -> Query[Any, Any]:
    cost = query.cost()
    loss = Loss(1, delta=cost.delta, kind=cost.kind, neighbours=cost.neighbours)
    return query.from_json({**query.to_json(), "loss": loss.to_json()})
