"""What is public about a table: its columns, their bounds, scales and categories, and how many records there are.

A schema is written before anybody looks at the data, so a refusal here may repeat whatever the schema says.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, Self

from wallflower.columns import call_or_refuse, list_names
from wallflower.errors import ParameterError, SourceError
from wallflower.units import Protection


@dataclass(frozen=True, slots=True)
class Column:
    """The public facts of one column: a number is read as `(value - center) / scale`, a label against `categories`.

    `edges` cut a number column into `len(edges) + 1` public bins, from the left: a value on an edge is above it. An
    `identifier` is neither: it only serves to find a record. A `time` is public, cell by cell: when an observation was
    made, and nothing about what was observed.
    """

    name: str
    _: KW_ONLY
    low: float | None = None
    high: float | None = None
    center: float = 0
    scale: float = 1
    integer: bool = False
    edges: tuple[float, ...] | None = None
    categories: tuple[str | int, ...] | None = None
    identifier: bool = False
    time: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ParameterError("a column has no name; every column needs one. Give it the name it has in the data.")
        for fact in ("low", "high", "center", "scale"):
            if getattr(self, fact) is not None or fact in ("center", "scale"):
                object.__setattr__(self, fact, _finite(f"{self.name}.{fact}", getattr(self, fact)))
        if self.edges is not None:
            edges = tuple(_finite(f"{self.name}.edges", edge) for edge in _many(self.edges))
            object.__setattr__(self, "edges", edges)
        if self.categories is not None:
            labels = tuple(_label(self.name, label) for label in _many(self.categories))
            object.__setattr__(self, "categories", labels)
        for broken, rule in self._rules():
            if broken:
                raise ParameterError(f"column {self.name!r}: {rule}. Correct the schema.")

    @property
    def kind(self) -> str:
        if self.identifier or self.time:
            return "identifier" if self.identifier else "time"
        return "category" if self.categories is not None else "integer" if self.integer else "number"

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories as text, which is how cells are compared with them."""
        return tuple(map(str, self.categories or ()))

    def facts(self) -> dict[str, Any]:
        """What was stated, without what was left at its default, as plain JSON."""
        stated = {name: value for name in _DEFAULTS if (value := getattr(self, name)) != _DEFAULTS[name]}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in stated.items()}

    def _rules(self) -> Iterable[tuple[bool, str]]:
        edges, labels = self.edges or (), self.labels
        yield not isinstance(self.integer, bool), "integer is true or false"
        yield not isinstance(self.identifier, bool), "identifier is true or false"
        yield not isinstance(self.time, bool), "time is true or false"
        yield not self.scale > 0, "scale must be above zero"
        yield self.low is not None and self.high is not None and not self.low < self.high, "low must be below high"
        yield self.edges == () or list(edges) != sorted(set(edges)), "edges must increase, and there must be one"
        yield self.categories == () or len(set(labels)) < len(labels), "categories must differ, and there must be one"
        yield bool(labels) and set(self.facts()) != {"categories"}, "a column of labels has categories and no numbers"
        yield self.identifier and set(self.facts()) != {"identifier"}, "an identifier is neither numbers nor labels"
        yield self.time and set(self.facts()) != {"time"}, "a time is neither numbers, labels nor an identifier"


TEXTS: Final = ("category", "identifier", "time")  # kinds of columns that are read as they are written
_DEFAULTS: Final[Mapping[str, Any]] = {item.name: item.default for item in fields(Column)[1:]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What is public about a table. `rows` is its public number of records; `clip` moves values into their bounds.

    `account` is the budget it spends from, if not its own: tables about the same people share one. `protects` says what
    a row is and whose loss that budget bounds.
    """

    name: str | None = None
    columns: tuple[Column, ...] | None = None
    rows: int | None = None
    clip: bool = False
    account: str | None = None
    protects: Protection | None = None

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", tuple(self.columns))
        names = self.names or ()
        if self.columns == () or len(set(names)) < len(names):
            raise ParameterError(
                "the schema's columns must differ, and there must be at least one. Correct the schema."
            )
        if self.name is not None and (not isinstance(self.name, str) or not self.name.strip()):
            raise ParameterError("the schema's name is not a text; the budget hangs on it. Name the data set.")
        if self.rows is not None and (type(self.rows) is not int or self.rows < 1):
            raise ParameterError("the schema's rows is a whole number above zero. Give the public number of records.")
        if self.account is not None and (not isinstance(self.account, str) or not self.account.strip()):
            raise ParameterError("the schema's account is not a text; budgets hang on it. Name the account.")
        if not isinstance(self.clip, bool):
            raise ParameterError("the schema's clip is true or false. Correct the schema.")

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
        """A schema from names and what is known of them.

        >>> Schema.of(["age", "bmi"], bounds={"age": (0, 120)}, scale={"age": 20}).columns[0].facts()
        {'low': 0, 'high': 120, 'scale': 20}
        """
        lows, highs = ({key: pair[end] for key, pair in (bounds or {}).items()} for end in (0, 1))
        given = {"low": lows, "high": highs, "center": center, "scale": scale, "edges": edges, "categories": categories}
        stated: dict[str, Any] = {fact: values for fact, values in given.items() if values}
        names = tuple(columns)
        for values in stated.values():
            _known(values, names, "the schema's columns")
        made = [Column(key, **{fact: values[key] for fact, values in stated.items() if key in values}) for key in names]
        return cls(name=name, columns=tuple(made), rows=rows, clip=clip)

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
        return cls.from_json(call_or_refuse(lambda: parse(Path(path).read_text(encoding="utf-8")), lambda _: refusal))

    @classmethod
    def from_json(cls, stored: Any) -> Self:
        """The schema that `to_json` described."""
        _known(_table(stored, "the schema"), [item.name for item in fields(cls)], "a schema")
        if "protects" in stored:
            stored = {**stored, "protects": Protection.from_json(_table(stored["protects"], "protects"))}
        columns = stored.get("columns")
        if columns is None:
            return cls(**stored)
        pairs = [(name, {}) for name in columns] if isinstance(columns, list) else _table(columns, "columns").items()
        for name, facts in pairs:
            _known(_table(facts, f"column {name!r}"), _DEFAULTS, f"column {name!r}")
        return cls(**{**stored, "columns": tuple(Column(name, **facts) for name, facts in pairs)})

    def to_json(self) -> dict[str, Any]:
        """What was stated, as plain JSON."""
        columns = {column.name: column.facts() for column in self.columns or ()}
        protects = None if self.protects is None else self.protects.to_json()
        stated: dict[str, Any] = {"name": self.name, "rows": self.rows, "clip": self.clip, "account": self.account}
        stated |= {"protects": protects, "columns": columns}
        return {key: value for key, value in stated.items() if value}

    def to_toml(self) -> str:
        """What was stated, as the text of a schema file."""
        stated = self.to_json()
        lines = [f"{key} = {_toml(value)}" for key, value in stated.items() if key not in ("columns", "protects")]
        if "protects" in stated:
            lines += ["", "[protects]", *(f"{key} = {_toml(value)}" for key, value in stated["protects"].items())]
        for name, facts in stated.get("columns", {}).items():
            lines += ["", f"[columns.{_toml(name)}]", *(f"{key} = {_toml(value)}" for key, value in facts.items())]
        return "\n".join(lines).lstrip("\n") + "\n"

    @property
    def names(self) -> tuple[str, ...] | None:
        return None if self.columns is None else tuple(column.name for column in self.columns)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that points are made of."""
        return tuple(column.name for column in self.columns or () if column.kind not in TEXTS)

    def only(self, names: Sequence[str]) -> Schema:
        """The facts of these columns."""
        known = {column.name: column for column in self.columns or ()}
        return replace(self, columns=tuple(known.get(name) or Column(name) for name in names))


def _finite(what: str, value: object) -> int | float:
    try:
        number = int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    if isinstance(value, bool) or not -1e308 <= number <= 1e308:
        raise ParameterError(f"{what} is not a finite number. Correct the schema.")
    return number


def _many(values: object) -> Sequence[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError("edges and categories are lists, such as [1, 2] or ['F', 'M']. Correct the schema.")
    return tuple(values)


def _label(name: str, label: object) -> str | int:
    if not isinstance(label, str | int) or label == "":
        raise ParameterError(f"{name}.categories: a label is a text or a whole number, not empty. Correct the schema.")
    return str(label).lower() if isinstance(label, bool) else label  # as Arrow writes true and false


def _known(given: Iterable[str], allowed: Iterable[str], where: str) -> None:
    unknown = sorted(set(map(str, given)) - set(allowed))
    if unknown:
        raise ParameterError(
            f"{where}: {list_names(unknown)} is not known; there are {list_names(allowed)}. Correct the schema."
        )


def _table(stored: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(stored, Mapping):
        raise ParameterError(f"{what} is not a table of names and values. Correct the schema.")
    return stored


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


_PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {".toml": tomllib.loads, ".json": json.loads}
