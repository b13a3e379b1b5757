"""The part of a table that a question looks at, wherever the table lies: refused by public facts only."""

from __future__ import annotations

from functools import partial
from typing import Any

from wallflower.data import Points, Table, TiledTable
from wallflower.errors import EngineMismatch
from wallflower.ledger import Ledger
from wallflower.noise import sample, system_noise
from wallflower.query import Query

Records = Table | Points | TiledTable


def project(query: Query[Any, Any], table: Records, ledger: Ledger | None = None) -> Any:
    """What the question sees, with the releases that it names where there is a ledger to find them in; one that knows
    nothing of tiles is refused where an engine keeps the table."""
    if isinstance(table, TiledTable) and not query.supports_tiles:
        raise EngineMismatch(table.engine, query.kind)
    if not isinstance(table, Points):
        table = table.draw(partial(sample, system_noise()))  # (Y2) other rows of a person for every query
    view = query.view(table)
    return view if ledger is None else query.take_releases(view, ledger.release)
