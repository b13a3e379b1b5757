"""How many records a table may have by its schema: as many as are stated, or, where the number is secret, no more."""

from __future__ import annotations

from wallflower.errors import DataError, ParameterError
from wallflower.schema import Schema
from wallflower.units import Protection


def bounds_rows(schema: Schema) -> bool:
    """Whether `rows` is a bound, as the number itself is protected."""
    return schema.protects is not None and schema.protects.unit == "membership"


def reveals_rows(schema: Schema, protection: Protection) -> bool:
    """Whether a schema states exactly how many records there are, and their number is to be secret."""
    return protection.unit == "membership" and schema.rows is not None and not bounds_rows(schema)


def require_secret_rows(schema: Schema, protection: Protection, called: str) -> None:
    """Refuse to protect membership beside an exact number of records; does not quote it."""
    if reveals_rows(schema, protection):
        raise ParameterError(
            f"{called}: membership keeps the number of records secret, and the schema states it exactly (`rows`). "
            "Declare membership in the schema itself (`protects`), where `rows` is an upper bound that you choose, or "
            "remove `rows`."
        )


def require_rows(schema: Schema, n: int, called: str) -> None:
    """Refuse a table of another number of records than is stated, or, where that is a bound, of more."""
    is_bound = bounds_rows(schema)
    if schema.rows is None or n == schema.rows or (is_bound and n < schema.rows):
        return
    stated, found = ("at most ", "more") if is_bound else ("", "another number")
    raise DataError(f"{called}: the schema says {stated}{schema.rows} records, the source has {found}. Correct one.")
