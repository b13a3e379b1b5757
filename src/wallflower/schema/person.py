"""Several rows of one person: who a row belongs to, and how the rows of a person are brought together.

A table of visits has several rows of one patient, and the guarantee is to hold for the patient. `rollup` makes one
record of all rows of a person, so that every query works at its usual cost (Y1). `max_rows` keeps at most that many
rows of each person, and every query costs that many times as much (Y2). With `time`, rows are readings of a stream:
they become one entry for each person and time, and a record holds the entries of one time (Y4). Proofs: proof.md of
`ledger`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Self

from wallflower.errors import ParameterError

AGGREGATES: Final = ("min", "max", "mean", "sum", "count", "first", "last", "median", "mode", "any", "all")
LABEL_AGGREGATES: Final = ("first", "last", "mode")
UNBOUNDED_AGGREGATES: Final = ("sum", "count")  # grow with the number of rows, so their bounds must be declared
MAX_ROWS_PER_PERSON: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who the rows of a table belong to.

    Use `rollup` where one record per person answers the query (the highest pulse of all visits): nothing costs more.
    Use `max_rows` where the rows themselves are to be looked at.

    id          the column that identifies a person; never part of a distance, a score, a release or a log
    rollup      one record per person: an aggregate for each column that is kept; `count` makes a column of its own
    max_rows    keep at most this many rows of each person, chosen at random without looking at them
    order       the column that orders a person's rows for `first` and `last`; default: the order of the file
    missing_id  own: a row without an identifier is a person of its own; refuse: such a table is refused
    time        rows are readings of a stream: one record for each time in this column, with a column for each person
                and, as its entry, the aggregate of the one column in `rollup`; identifiers and times are public then

    >>> Person(id="patient", rollup={"pulse": "max", "visits": "count"}).source_columns
    ('patient', 'pulse')
    """

    id: str
    rollup: Mapping[str, str] | None = None
    max_rows: int | None = None
    order: str | None = None
    missing_id: Literal["own", "refuse"] = "own"
    time: str | None = None

    def __post_init__(self) -> None:
        for name in ("id", "order", "time"):
            value = getattr(self, name)
            if not isinstance(value, str | None) or value == "" or (name == "id" and value is None):
                raise ParameterError(f"person.{name} must be the name of a column. Correct the schema.")
        if (self.rollup is None) == (self.max_rows is None):
            raise ParameterError(
                "person: state either `rollup` (one record per person) or `max_rows` (at most that many rows of each "
                "person). Correct the schema."
            )
        if self.rollup is not None:
            object.__setattr__(self, "rollup", _check_rollup(self.rollup, self.id))
        elif type(self.max_rows) is not int or not 1 <= self.max_rows <= MAX_ROWS_PER_PERSON:
            raise ParameterError(
                f"person.max_rows must be an integer from 1 to {MAX_ROWS_PER_PERSON:,}. Correct the schema."
            )
        if self.max_rows is not None and self.order is not None:
            raise ParameterError("person.order belongs to `rollup`; with `max_rows` rows are drawn at random. Omit it.")
        if self.missing_id not in ("own", "refuse"):
            raise ParameterError("person.missing_id must be 'own' or 'refuse'. Correct the schema.")
        if self.time is not None:
            self._check_time()

    def _check_time(self) -> None:
        if self.rollup is None or len(self.rollup) != 1:
            raise ParameterError(
                "person.time: a stream has one entry for each person and time. State one column in `rollup`, such as "
                '{ load = "mean" }.'
            )
        if self.time == self.id or self.time in self.rollup:
            raise ParameterError(
                "person.time must be another column than `id` and that of `rollup`. Correct the schema."
            )

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The columns of the source that the roll-up reads."""
        read = [name for name, aggregate in (self.rollup or {}).items() if aggregate != "count"]
        return tuple(dict.fromkeys([self.id, *(name for name in (self.time, self.order) if name is not None), *read]))

    @property
    def units_per_person(self) -> int:
        """The number of records that one person can change."""
        return self.max_rows or 1

    def to_json(self) -> dict[str, Any]:
        """Return the stated fields, as plain JSON."""
        stated = {item.name: getattr(self, item.name) for item in fields(self)}
        defaults = {item.name: item.default for item in fields(self)}
        plain = {name: value for name, value in stated.items() if value != defaults[name]}
        return plain | ({"rollup": dict(self.rollup)} if self.rollup is not None else {})

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """Make the declaration that `to_json` described."""
        known = [item.name for item in fields(cls)]
        if not isinstance(stored, Mapping) or "id" not in stored or set(stored) - set(known):
            raise ParameterError(
                f"person must be a table with `id` and any of {', '.join(known[1:])}. Correct the schema."
            )
        return cls(**stored)


def _check_rollup(rollup: object, identifier: str) -> dict[str, str]:
    if not isinstance(rollup, Mapping) or not rollup:
        raise ParameterError(
            'person.rollup must be a table of columns and aggregates, such as { pulse = "max" }. Correct the schema.'
        )
    for name, aggregate in rollup.items():
        if not isinstance(name, str) or aggregate not in AGGREGATES:
            raise ParameterError(
                f"person.rollup: column {name!r} has an unknown aggregate; use one of {', '.join(AGGREGATES)}. "
                "Correct the schema."
            )
    if identifier in rollup:
        raise ParameterError("person.rollup: the identifier itself has no aggregate. Remove it from `rollup`.")
    return dict(rollup)


def read_rollup(text: str) -> dict[str, str]:
    """Read aggregates as typed on a command line.

    >>> read_rollup("pulse=max, visits=count")
    {'pulse': 'max', 'visits': 'count'}
    """
    pairs = [part.rpartition("=") for part in text.split(",") if part.strip()]
    if not all(name.strip() and sign for name, sign, _ in pairs):
        raise ParameterError("rollup must be written as NAME=AGGREGATE,... such as pulse=max,visits=count. Correct it.")
    return {name.strip(): aggregate.strip() for name, _, aggregate in pairs}
