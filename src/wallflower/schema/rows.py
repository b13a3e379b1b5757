"""How many records a table may have by its schema: as many as are stated, or, where the number is secret, no more."""

from __future__ import annotations

from wallflower.errors import DataError
from wallflower.schema import Schema


def bounds_rows(schema: Schema) -> bool:
    """Whether `rows` is a bound, as the number itself is protected."""
    return schema.protects is not None and schema.protects.unit == "membership"


def require_rows(schema: Schema, n: int, called: str) -> None:
    """Refuse a table of another number of records than is stated, or, where that is a bound, of more."""
    is_bound = bounds_rows(schema)
    if schema.rows is None or n == schema.rows or (is_bound and n < schema.rows):
        return
    stated, found = ("at most ", "more") if is_bound else ("", "another number")
    raise DataError(f"{called}: the schema says {stated}{schema.rows} records, the source has {found}. Correct one.")
