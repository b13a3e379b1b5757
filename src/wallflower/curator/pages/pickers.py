"""What a table offers for the fields of a question, by its schema: columns, records, categories."""

from __future__ import annotations

from wallflower.forms import Blank
from wallflower.schema import Column, Schema


def columns_for(blank: Blank, schema: Schema) -> tuple[Column, ...]:
    """The columns that a field may name."""
    known = schema.columns or ()
    match blank.names:
        case "numbers":
            return tuple(column for column in known if column.name in schema.numbers)
        case "measured":
            return tuple(column for column in known if column.name in schema.measured)
        case "groups":
            return tuple(column for column in known if column.labels or column.name in schema.numbers)
        case "labels" | "times" | "identifiers":
            kind = {"labels": "category", "times": "time", "identifiers": "identifier"}[blank.names]
            return tuple(column for column in known if column.kind == kind)
        case _:
            return ()
