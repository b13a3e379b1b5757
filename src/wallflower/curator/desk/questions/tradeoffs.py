"""Curves to choose a setting by, kept: they take seconds to work out, and only then is moving the loss a matter of
looking at the next one."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any, Final

from wallflower.errors import ParameterError
from wallflower.ledger.chain import canonical
from wallflower.privacy import Loss
from wallflower.query import Query, Tradeoff

_MOST: Final = 256


class Tradeoffs:
    """The curves of questions, by their parameters but the amount of their loss. One is worked out at a time."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Tradeoff, ...]] = OrderedDict()
        self._lock = Lock()

    def find(self, query: Query[Any, Any], dimension: int) -> tuple[Tradeoff, ...] | None:
        """The curves, if they were worked out before; none at all for a question that has none."""
        return () if not has_tradeoffs(query) else self._known.get(_key(query, dimension))

    def make(self, query: Query[Any, Any], dimension: int) -> tuple[Tradeoff, ...]:
        """The curves, however long that takes."""
        with self._lock:
            found = self.find(query, dimension)
            if found is None:
                try:
                    found = _at_one(query).tradeoffs(dimension=dimension)
                except ParameterError:  # too little is public for such a curve
                    found = ()
                self._known[_key(query, dimension)] = found
                while len(self._known) > _MOST:
                    self._known.popitem(last=False)
            return found


def has_tradeoffs(query: Query[Any, Any]) -> bool:
    """Whether there are such curves for this kind of question."""
    return type(query).tradeoffs is not Query.tradeoffs


def _key(query: Query[Any, Any], dimension: int) -> str:
    return f"{query.label} {dimension} {canonical(_at_one(query).to_json())}"


def _at_one(query: Query[Any, Any]) -> Query[Any, Any]:
    """The same question at a loss of one: its curves are drawn for many losses anyway."""
    cost = query.cost()
    one = Loss(1, delta=cost.delta, kind=cost.kind, neighbours=cost.neighbours)
    return query.from_json({**query.to_json(), "loss": one.to_json()})
