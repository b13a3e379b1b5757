"""An answer that is made up, before one is paid for: the question, put to records that public facts alone gave."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any, Final

from wallflower.data import Table
from wallflower.errors import PrivacyError
from wallflower.query import Plan, Query
from wallflower.rehearsal import make_up, sample_words
from wallflower.schema import Schema

_MOST: Final = 8  # tables that are kept
_ROWS: Final = 20_000  # records of one
_SECONDS: Final = 2.0  # that an answer may take, by public facts
_SHOWN: Final = 300  # characters of it


class Samples:
    """Made-up tables, one for each data set and size, and what questions say of them."""

    def __init__(self) -> None:
        self._tables: OrderedDict[tuple[str, int], Table] = OrderedDict()
        self._lock = Lock()

    def is_offered(self, query: Query[Any, Any], plan: Plan) -> bool:
        """Whether an answer can be made up in no time; never where a question rests on a release, or names a record."""
        n, dimension = plan.facts.get("n", 0), plan.facts.get("dimension", 1)
        if not 1 < n <= _ROWS or query.releases() or getattr(query, "identifier", None) is not None:
            return False
        return query.effort(n=n, dimension=dimension).seconds <= _SECONDS

    def words(self, name: str, schema: Schema, query: Query[Any, Any], plan: Plan) -> str | None:
        """How an answer could read; None where even made-up records do not suit."""
        try:
            said = sample_words(query, self._table(name, schema, plan.facts["n"]))
        except PrivacyError:
            return None
        return said if len(said) <= _SHOWN else f"{said[:_SHOWN].rpartition(' ')[0]} …"

    def _table(self, name: str, schema: Schema, n: int) -> Table:
        key = (name, n)
        with self._lock:
            found = self._tables.get(key)
            if found is None:
                found = self._tables[key] = make_up(schema, n, name)
                while len(self._tables) > _MOST:
                    self._tables.popitem(last=False)
            return found
