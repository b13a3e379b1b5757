"""What is public about a table: its columns, their bounds, scales and categories, and how many records there are.

A schema is written before anybody looks at the data, so a refusal here may repeat whatever the schema says. Labels (Y4)
in here are those of proof.md of `ledger`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final, Self, TypedDict

from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.schema.column import DEFAULTS, TEXTS, Column, TableWords, is_identifier_like, names_of
from wallflower.schema.columns import FORMAT, Format, call_or_refuse, list_names
from wallflower.schema.join import Join
from wallflower.schema.person import Person
from wallflower.units import Protection

__all__ = ["Column", "Join", "Person", "Schema", "WayToRead"]


class WayToRead(TypedDict, total=False):
    """Options for reading a source, besides its schema."""

    separator: str | None
    encoding: str | None
    decimal: str | None
    thousands: str | None
    sheet: str | None
    without: Sequence[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema(TableWords):
    """What is public about a table. Its `title` and the like are words for readers, and part of no question.

    name      the name that the budget is tracked under
    columns   the public facts of each column; default: all there are, as numbers
    rows      the public number of records; where `protects` says membership, which hides the number, a bound on it
    clip      move values into their bounds, rather than refuse them
    account   the budget it spends from, if not its own: tables about the same people share one
    protects  what a row is and whose loss that budget bounds
    person    who the rows belong to, where a person has several: one record is made of them, or a few are kept
    join      a second table with one row per person, whose columns join the records
    file      how the source is written
    without   which of its columns are left out, whatever is asked
    """

    name: str | None = None
    columns: tuple[Column, ...] | None = None
    rows: int | None = None
    clip: bool = False
    account: str | None = None
    protects: Protection | None = None
    person: Person | None = None
    join: Join | None = None
    file: Format | None = None
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "without", _leave_out(self.without))
        names = self.names or ()
        if self.columns == () or len(set(names)) < len(names):
            raise ParameterError(
                "the schema's columns must differ, and there must be at least one. Correct the schema."
            )
        if self.name is not None and (not isinstance(self.name, str) or not self.name.strip()):
            raise ParameterError("schema: `name` must be a non-empty string; the budget is tracked under it.")
        if self.rows is not None and (type(self.rows) is not int or self.rows < 1):
            raise ParameterError("the schema's rows is a whole number above zero. Give the public number of records.")
        if self.account is not None and (not isinstance(self.account, str) or not self.account.strip()):
            raise ParameterError("schema: `account` must be a non-empty string; budgets are tracked under it.")
        self.require_words("the schema's ")
        if not isinstance(self.clip, bool):
            raise ParameterError("the schema's clip is true or false. Correct the schema.")
        if self.person is not None:
            object.__setattr__(self, "protects", _protect_person(self.person, self.protects))
        if self.join is not None:
            _check_join(self.join, self)

    @classmethod
    def of(
        cls,
        columns: Iterable[str],
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        center: Mapping[str, float] | None = None,
        scale: Mapping[str, float] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        edges: Mapping[str, Sequence[float]] | None = None,
        clip: bool = False,
        rows: int | None = None,
        name: str | None = None,
    ) -> Self:
        """A schema from names and what is known of them. None of it may be read off the records.

        columns     the names of all columns that are used, labels and times included
        bounds      for a number column, the least and the greatest value there can be
        center      for a number column, what is subtracted from it before anything else
        scale       for a number column, what it is divided by then
        categories  for a label column, all labels there can be
        edges       for a number column, where to cut it into public bins
        clip        move values into their bounds, rather than refuse a table that has others
        rows        the public number of records, or a bound of it
        name        the name that the budget is tracked under

        >>> Schema.of(["age", "bmi"], bounds={"age": (0, 120)}, scale={"age": 20}).columns[0].facts()
        {'low': 0, 'high': 120, 'scale': 20}
        """
        lows, highs = ({key: pair[end] for key, pair in (bounds or {}).items()} for end in (0, 1))
        by_fact: dict[str, Any] = {"low": lows, "high": highs, "center": center, "scale": scale}
        by_fact |= {"edges": edges, "categories": categories}
        stated: dict[str, Any] = {fact: values for fact, values in by_fact.items() if values}
        names = tuple(columns)
        for values in stated.values():
            _require_known(values, names, "the schema's columns")
        described = [
            Column(key, **{fact: values[key] for fact, values in stated.items() if key in values}) for key in names
        ]
        return cls(name=name, columns=tuple(described), rows=rows, clip=clip)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """A schema from a .toml or .json file."""
        parse = _PARSERS.get(Path(path).suffix.lower())
        if parse is None:
            raise SourceError(
                f"{path}: a schema is a file that ends in {list_names(_PARSERS)}. Write it as one of these."
            )
        refusal = SourceError(
            f"{path}: the schema cannot be opened, or is not the format its name says. Check the file."
        )
        stored = call_or_refuse(lambda: parse(Path(path).read_text(encoding="utf-8")), lambda _: refusal)
        schema = cls.from_json(stored)
        return schema if schema.join is None else replace(schema, join=schema.join.below(Path(path).parent))

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """The schema that `to_json` described."""
        names = (item.name for item in sorted(fields(cls), key=lambda item: not item.compare))
        _require_known(_table(stored, "the schema"), names, "a schema")
        if "protects" in stored:
            stored = {**stored, "protects": Protection.from_json(_table(stored["protects"], "protects"))}
        if "person" in stored:
            stored = {**stored, "person": Person.from_json(_table(stored["person"], "person"))}
        if "join" in stored:
            stored = {**stored, "join": Join.from_json(_table(stored["join"], "join"))}
        if "file" in stored:
            _require_known(_table(stored["file"], "file"), FORMAT, "file")
            stored = {**stored, "file": Format(**stored["file"])}
        columns = stored.get("columns")
        if columns is None:
            return cls(**stored)
        pairs = [(name, {}) for name in columns] if isinstance(columns, list) else _table(columns, "columns").items()
        for name, facts in pairs:
            _require_known(_table(facts, f"column {name!r}"), (*DEFAULTS, *names_of(Column)), f"column {name!r}")
        return cls(**{**stored, "columns": tuple(Column(name, **facts) for name, facts in pairs)})

    def to_json(self) -> dict[str, Any]:
        """What was stated, as plain JSON."""
        columns = {column.name: column.facts() | column.words() for column in self.columns or ()}
        protects = None if self.protects is None else self.protects.to_json()
        stated: dict[str, Any] = {"name": self.name, "rows": self.rows, "clip": self.clip, "account": self.account}
        stated |= self.words()
        person = None if self.person is None else self.person.to_json()
        join = None if self.join is None else self.join.to_json()
        stated |= {"without": list(self.without), "protects": protects, "person": person, "join": join}
        stated |= {"file": None if self.file is None else self.file.stated_parts, "columns": columns}
        return {key: value for key, value in stated.items() if value}

    def bare(self) -> Schema:
        """The same without words for readers and without the place of a second table: what a question may keep."""
        none: dict[str, Any] = dict.fromkeys(names_of(Column))
        columns = self.columns and tuple(replace(column, **none) for column in self.columns)
        return replace(self, columns=columns, join=None, **dict.fromkeys(names_of(Schema)))  # type: ignore[arg-type]

    def to_toml(self) -> str:
        """What was stated, as the text of a schema file."""
        stated = self.to_json()
        lines = [f"{key} = {_toml(value)}" for key, value in stated.items() if not isinstance(value, dict)]
        for part in ("protects", "person", "join", "file"):
            if part in stated:
                lines += ["", f"[{part}]", *(f"{key} = {_toml(value)}" for key, value in stated[part].items())]
        for name, facts in stated.get("columns", {}).items():
            lines += ["", f"[columns.{_toml(name)}]", *(f"{key} = {_toml(value)}" for key, value in facts.items())]
        return "\n".join(lines).lstrip("\n") + "\n"

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of all columns; None where the schema states none."""
        return None if self.columns is None else tuple(column.name for column in self.columns)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that points are made of."""
        return tuple(column.name for column in self.columns or () if column.kind not in TEXTS)

    @property
    def distance_columns(self) -> tuple[str, ...]:
        """The columns that distances are taken over: numbers, and labels with a weight."""
        return tuple(c.name for c in self.columns or () if c.kind not in TEXTS or c.weight is not None)

    @property
    def columns_set_aside(self) -> tuple[str, ...]:
        """Number columns that no distance is taken over unless somebody names them.

        They are called as identifiers are, and the schema states nothing about them. Names are public.

        >>> Schema(columns=(Column("patient_no"), Column("age"), Column("file no", low=0, high=9))).columns_set_aside
        ('patient_no',)
        """
        likely = [c for c in self.columns or () if c.kind not in TEXTS and is_identifier_like(c.name)]
        return tuple(column.name for column in likely if not column.facts())

    @property
    def default_numbers(self) -> tuple[str, ...]:
        """The columns of numbers that are measured unless some are named."""
        return tuple(name for name in self.numbers if name not in self.columns_set_aside)

    @property
    def default_distance_columns(self) -> tuple[str, ...]:
        """The columns that distances are taken over unless some are named."""
        return tuple(name for name in self.distance_columns if name not in self.columns_set_aside)

    def notes(self, columns: Iterable[str]) -> tuple[str, ...]:
        """What is done to these columns of every record before a question, as the schema says; never how often."""
        known = [column for column in self.columns or () if column.name in set(columns)]
        filled = [f"{c.name} as {c.missing}" for c in known if c.missing is not None]
        pooled = [f"{c.name} as {c.other}" for c in known if c.other is not None]
        weighed = [f"{c.name} {c.weight:g}" for c in known if c.weight is not None]
        words = {
            "Missing values are read by a public rule: ": filled,
            "Labels that are not listed are read as one: ": pooled,
            "Labels that differ count as a distance: ": weighed,
            "Left out of what is read: ": list(self.without),
        }
        return tuple(f"{start}{list_names(names)}." for start, names in words.items() if names)

    def but_read(self, written: WayToRead) -> Schema:
        """The same, with what is said besides of how the source is written and what is left out of it."""
        options = {name: value for name, value in written.items() if value}
        _require_known(options, (*FORMAT, "without"), "how a source is read")
        left = (*self.without, *_leave_out(options.pop("without", ())))
        stated = {**({} if self.file is None else self.file.stated_parts), **options}
        return replace(self, file=Format(**stated) if stated else None, without=tuple(dict.fromkeys(left)))  # type: ignore[arg-type]

    def rescale(self, scales: Mapping[str, float]) -> Schema:
        """The same facts with other scales."""
        known = self.columns or ()
        return replace(self, columns=tuple(replace(c, scale=scales.get(c.name, c.scale)) for c in known) or None)

    def coded(self) -> Schema:
        """The same facts without weights: labels are then coordinates by their codes, and no distance is meant."""
        known = self.columns and tuple(replace(column, weight=None) for column in self.columns)
        return replace(self, columns=known)

    def only(self, names: Sequence[str]) -> Schema:
        """Return the schema of these columns; a roll-up and a join keep those of their columns that are among them.

        A join without columns is none, since it neither adds nor removes a record. A roll-up without columns stays:
        people are counted by it.
        """
        person, join = self.person, self.join
        if join is not None and join.columns is not None:
            joined = tuple(name for name in join.columns if name in names)
            join = replace(join, columns=joined) if joined else None
        if person is not None and person.rollup is not None:
            kept = {name: aggregate for name, aggregate in person.rollup.items() if name in names}
            names = names if kept or join is None else (*names, *person.rollup)
            person = replace(person, rollup=kept) if kept else person
        known = {column.name: column for column in self.columns or ()}
        columns = tuple(known.get(name) or Column(name) for name in names)
        return replace(self, columns=columns, person=person, join=join)


def take_schema(schema: Schema | str | Path | Mapping[str, Any]) -> Schema:
    """A schema from a Schema, the path of a schema file, or what such a file holds as a mapping."""
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, Mapping):
        return Schema.from_json(schema)
    if isinstance(schema, str | Path):
        return Schema.read(schema)
    raise ParameterError(
        f"schema: a {type(schema).__name__} is not one. Pass wf.Schema.of(...), the path of a .toml or .json file, "
        "or a mapping of what such a file holds."
    )


def _leave_out(names: object) -> tuple[str, ...]:
    kept = None if isinstance(names, str) or not isinstance(names, Iterable) else tuple(names)
    if kept is None or not all(isinstance(name, str) for name in kept):
        raise ParameterError("without is a list of names of columns, such as ['notes']. Correct the schema.")
    return kept


def _require_known(given: Iterable[str], allowed: Iterable[str], where: str) -> None:
    allowed = tuple(allowed)
    unknown = sorted(set(map(str, given)) - set(allowed))
    if unknown:
        raise ParameterError(
            f"{where}: {list_names(unknown)} is not known; there are {list_names(allowed)}. Correct the schema."
        )


def _table(stored: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(stored, Mapping):
        raise ParameterError(f"{what} is not a table of names and values. Correct the schema.")
    return stored


def _protect_person(person: Person, stated: Protection | None) -> Protection:
    """The unit of protection that a declaration of people implies; one that is stated too must agree with it."""
    if person.time is not None:
        return _protect_stream(stated)
    implied = Protection(units_per_person=person.units_per_person, person=person.id)
    if stated is None:
        return implied
    if stated.rows != "people" or stated.units_per_person not in (1, person.units_per_person):
        raise ParameterError(
            "protects: [person] brings rows of people together, and `protects` states something else of them. Remove "
            "rows and units_per_person from `protects`."
        )
    return replace(implied, unit=stated.unit)


def _protect_stream(stated: Protection | None) -> Protection:
    """The unit of protection of readings: a person over the stream, unless another unit of time is stated.  (Y4)"""
    if stated is None:
        return Protection(rows="time", unit="person")
    if stated.rows != "time":
        raise ParameterError(
            'protects: [person] with `time` makes a record of each time. State rows = "time" in `protects`, or remove '
            "it: one person over the whole stream is protected then."
        )
    return stated


def _check_join(join: Join, schema: Schema) -> None:
    """Refuse a join that is not on the identifier of a person, or whose columns are those of the first table too."""
    person = schema.person
    if person is not None and person.time is not None:
        raise ParameterError("join: a record of a stream is a time and belongs to nobody. Remove [join], or `time`.")
    if person is not None and join.on != person.id:
        raise ParameterError(
            f"join.on must be {person.id!r}, the identifier of [person]: a join on another column could bring the rows "
            "of several people together. Correct the schema."
        )
    twice = sorted(set(join.columns or ()) & set((person and person.rollup) or ()))
    if twice:
        raise ParameterError(
            f"join.columns: {list_names(twice)} is a column of `rollup` too, and names must differ. Rename one, or "
            "state the other `columns` in [join]."
        )
    stated = next((column for column in schema.columns or () if column.name == join.on), None)
    if stated is not None and not stated.identifier:
        raise ParameterError(
            f"join.on: column {join.on!r} identifies people and cannot be a measurement. State identifier = true."
        )


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(key)} = {_toml(part)}" for key, part in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {".toml": tomllib.loads, ".json": json.loads}


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
    stated, actual = ("at most ", "more") if is_bound else ("", "another number")
    raise DataError(f"{called}: the schema says {stated}{schema.rows} records, the source has {actual}. Correct one.")
