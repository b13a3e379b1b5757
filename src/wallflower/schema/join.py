"""Join a second table with one row per person: what is known of a person beside her rows.

A table of visits says nothing of a patient's income; a second table does, with one row per patient. The join adds its
columns to the records of the first. It neither adds nor removes a record, and a row of the second table enters the
record of its own person only (Y3). Proof: proof.md of `ledger`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from wallflower.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """A second table with one row per identifier, whose columns join the records of the first.

    A record without a row in the second table has empty cells there, for which `missing` of a column states a public
    constant; without one, such a table is refused while it is loaded.

    table    the second table: a path, relative to the schema file, or the URL of a database
    on       the column that identifies a person in both tables; with `person`, the column that this names
    columns  the columns of the second table that join; default: all others, or those of them that the schema states

    >>> Join(table="patients.csv", on="patient_no", columns=["income"]).to_json()
    {'table': 'patients.csv', 'on': 'patient_no', 'columns': ['income']}
    """

    table: str
    on: str
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.table, os.PathLike):
            object.__setattr__(self, "table", os.fspath(self.table))
        for name in ("table", "on"):
            value = getattr(self, name)
            if not isinstance(value, str) or not value.strip():
                raise ParameterError(f"join.{name} must be a non-empty string. Correct the schema.")
        if self.columns is not None:
            object.__setattr__(self, "columns", _check_columns(self.columns, self.on))

    def below(self, folder: Path) -> Self:
        """Return the join with a path that is relative to this folder; a URL or an absolute path stays."""
        return self if "://" in self.table else replace(self, table=str(folder / self.table))

    def to_json(self) -> dict[str, Any]:
        """Return the stated fields, as plain JSON."""
        stated: dict[str, Any] = {"table": self.table, "on": self.on}
        return stated if self.columns is None else stated | {"columns": list(self.columns)}

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Make the declaration that `to_json` described."""
        if not isinstance(stored, Mapping) or not {"table", "on"} <= set(stored) <= {"table", "on", "columns"}:
            raise ParameterError(
                "join must be a table with `table`, `on` and, if stated, `columns`. Correct the schema."
            )
        return cls(**stored)


def _check_columns(names: object, on: str) -> tuple[str, ...]:
    columns = () if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if not columns or not all(isinstance(name, str) and name for name in columns) or len(set(columns)) < len(columns):
        raise ParameterError("join.columns must be a list of different names of columns. Correct the schema.")
    if on in columns:
        raise ParameterError("join.columns: the identifier is in both tables already. Remove it from `columns`.")
    return columns
