"""Scales that were released, put in the place of the schema's: post-processing, and paid for already."""

from __future__ import annotations

from typing import Any, Final

from wallflower.data import Points
from wallflower.errors import ScaleMismatch
from wallflower.ledger import Ledger
from wallflower.names import account_name
from wallflower.query import Query
from wallflower.release.views import Records
from wallflower.schema.columns import list_names

KIND: Final = "scale"


def rescale(query: Query[Any, Any], table: Records, ledger: Ledger) -> Records:
    """The table as the question wants it: scaled by the release that it names, if it names one."""
    number = getattr(query, "scale", None)
    if number is None:
        return table
    stored = ledger.release(number)
    if stored is None or stored["kind"] != KIND:
        raise ScaleMismatch(
            f"scale: entry {number} of the ledger is no release of {KIND}. Ask {KIND} first, and pass what it gives."
        )
    if _name(stored["dataset"]) != _name(table.name):
        raise ScaleMismatch(
            f"scale: release {number} is of another data set than {table.name}. Scales hold for the records they were "
            "measured on; pass one of the same data set."
        )
    scales: dict[str, float] = stored["value"]["scale"]
    numbers = table.columns if isinstance(table, Points) else table.numbers
    wanted = getattr(query, "columns", None) or numbers
    missing = [name for name in wanted if name in numbers and name not in scales]
    if missing:
        raise ScaleMismatch(
            f"scale: release {number} does not say how wide {list_names(missing)} is; it says it of "
            f"{list_names(scales)}. Name only these columns, or measure the others too."
        )
    return table.rescale(scales)


def _name(dataset: str) -> str:
    return account_name(dataset) or dataset
