"""The part of a table that a question looks at, wherever the table lies: refused by public facts only."""

from __future__ import annotations

from typing import Any

from wallflower.data import Points, Table, TiledTable
from wallflower.errors import EngineMismatch
from wallflower.query import Query

Records = Table | Points | TiledTable


def view_of(query: Query[Any, Any], table: Records) -> Any:
    """What the question sees; one that knows nothing of tiles is refused where an engine keeps the table."""
    if isinstance(table, TiledTable) and not query.by_tiles:
        raise EngineMismatch(table.engine, query.kind)
    return query.view(table)
