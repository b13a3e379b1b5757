"""The part of a table that a question looks at, wherever the table lies: refused by public facts only."""

from __future__ import annotations

from typing import Any

from wallflower.data import Points, Table, TiledTable
from wallflower.errors import EngineMismatch
from wallflower.ledger import Ledger
from wallflower.query import Query

Records = Table | Points | TiledTable


def view_of(query: Query[Any, Any], table: Records, ledger: Ledger | None = None) -> Any:
    """What the question sees, with the releases that it names where there is a ledger to find them in; one that knows
    nothing of tiles is refused where an engine keeps the table."""
    if isinstance(table, TiledTable) and not query.by_tiles:
        raise EngineMismatch(table.engine, query.kind)
    view = query.view(table)
    return view if ledger is None else query.take_releases(view, ledger.release)
