"""The public facts of one column: what its numbers lie between, which labels there are, how a date becomes a number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import datetime, timedelta
from numbers import Integral, Real
from typing import Any, Final

from wallflower.errors import ParameterError
from wallflower.schema.columns import list_names


def _words_field(help_: str) -> Any:
    return field(default=None, compare=False, repr=False, metadata={"help": help_})


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Something that has words for readers beside its facts."""

    def words(self) -> dict[str, str]:
        """What was said for readers."""
        return {name: text for name in names_of(type(self)) if (text := getattr(self, name)) is not None}

    def require_words(self, where: str) -> None:
        """Refuse what is no text, or an empty one."""
        help_texts = {item.name: item.metadata.get("help") for item in fields(self)}
        for name, text in self.words().items():
            if not isinstance(text, str) or not text.strip():
                raise ParameterError(f"{where}{name} is not a text; it is {help_texts[name]}. Say it, or leave it out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWords(Description):
    """What a column is."""

    meaning: str | None = _words_field("what the column says of a record")
    measure: str | None = _words_field("the unit that its numbers are in, such as kg")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWords(Description):
    """What a table is."""

    title: str | None = _words_field("what the table is called, in words")
    owner: str | None = _words_field("who is responsible for it")
    period: str | None = _words_field("the time that it covers")
    population: str | None = _words_field("whom or what its records are about")
    licence: str | None = _words_field("the terms under which its answers may be used")
    description: str | None = _words_field("what else a reader should know")


def names_of(kind: type[Description]) -> tuple[str, ...]:
    """The words that are asked for."""
    return tuple(item.name for item in fields(kind) if not item.compare)


@dataclass(frozen=True, slots=True)
class Column(ColumnWords):
    """The public facts of one column. A number is read as `(value - center) / scale`. Its `meaning` and `measure` are
    words for readers, and part of no question.

    name        how the source calls it
    low         no value of a number column is less
    high        no value of a number column is greater
    center      what is subtracted from a number
    scale       what it is divided by then
    integer     numbers are whole
    edges       cut a number column into one more public bins, from the left: a value on an edge is above it
    categories  all labels there can be, of a column of labels
    identifier  neither number nor label: it only serves to find a record, and no two records share one
    time        public, cell by cell: when an observation was made, and nothing about what was observed
    unit        makes a number of a date or a time: the number of units since `since`
    since       a date; default: since midnight
    layout      how a text states a date or a time; default: as 2001-12-31 or 2001-12-31 23:59:59
    missing     what stands for every cell that is empty
    weight      lets a column of labels into distances: two different labels are that far apart
    other       the category of all labels that are not listed, and is one of them
    public      everybody may know which label, or which bin, each record has: such a column is not protected
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
    unit: str | None = None
    since: str | None = None
    layout: str | None = None
    missing: float | str | None = None
    weight: float | None = None
    other: str | None = None
    public: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ParameterError("a column has no name; every column needs one. Give it the name it has in the data.")
        for fact in ("low", "high", "center", "scale", "weight"):
            if getattr(self, fact) is not None or fact in ("center", "scale"):
                object.__setattr__(self, fact, _finite(f"{self.name}.{fact}", getattr(self, fact)))
        if self.edges is not None:
            edges = tuple(_finite(f"{self.name}.edges", edge) for edge in _many(self.edges))
            object.__setattr__(self, "edges", edges)
        if self.categories is not None:
            labels = tuple(_label(self.name, label) for label in _many(self.categories))
            is_new = self.other is not None and str(self.other) not in map(str, labels)
            object.__setattr__(self, "categories", (*labels, _label(self.name, self.other)) if is_new else labels)
        if self.missing is not None and self.categories is None:
            object.__setattr__(self, "missing", _finite(f"{self.name}.missing", self.missing))
        self.require_words(f"{self.name}.")
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

    @property
    def width(self) -> int:
        """How many coordinates of a point it is: two labels with a weight need one, more of them one each; labels
        without a weight are one, their code."""
        return 1 if len(self.labels) < 3 or self.weight is None else len(self.labels)

    @property
    def origin(self) -> datetime | None:
        """The date that its numbers begin at."""
        return None if self.since is None else datetime.fromisoformat(self.since)

    def facts(self) -> dict[str, Any]:
        """What was stated but for words, without what was left at its default, as plain JSON."""
        stated = {name: value for name in DEFAULTS if (value := getattr(self, name)) != DEFAULTS[name]}
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
        stated = set(self.facts()) - {"missing", "weight", "other", "public"}
        yield bool(labels) and stated != {"categories"}, "a column of labels has categories and no numbers"
        yield self.weight is not None and not (labels and self.weight > 0), "weight is above zero, and that of labels"
        yield self.other is not None and not labels, "other belongs to categories"
        yield not isinstance(self.public, bool), "public is true or false"
        yield self.public and not labels and self.edges is None, "public belongs to categories or edges"
        yield bool(labels) and self.missing is not None and str(self.missing) not in labels, "missing is no category"
        yield from self._date_rules()
        yield from self._filling_rules()
        yield self.identifier and set(self.facts()) != {"identifier"}, "an identifier is neither numbers nor labels"
        yield self.time and set(self.facts()) != {"time"}, "a time is neither numbers, labels nor an identifier"

    def _date_rules(self) -> Iterable[tuple[bool, str]]:
        yield self.unit is not None and self.unit not in UNITS, f"unit is one of {list_names(UNITS)}"
        yield self.since is not None and not _is_date(self.since), "since is a date, such as 2000-01-01, in UTC"
        yield self.since is not None and self.unit is None, "since belongs to a unit, such as days"
        yield self.layout is not None and not _is_layout(self.layout), "layout is a text such as %d.%m.%Y"
        yield self.layout is not None and self.unit is None, "layout belongs to a unit, such as days"

    def _filling_rules(self) -> Iterable[tuple[bool, str]]:
        if isinstance(self.missing, str) or self.missing is None or self.categories is not None:
            return
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        yield not low <= self.missing <= high, "missing lies outside of its bounds"
        yield self.integer and self.missing != math.floor(self.missing), "missing is no whole number"


UNITS: Final[Mapping[str, timedelta]] = {
    "seconds": timedelta(seconds=1),
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
    "weeks": timedelta(weeks=1),
}
TEXTS: Final = ("category", "identifier", "time")  # kinds of columns that are read as they are written
DEFAULTS: Final[Mapping[str, Any]] = {
    item.name: item.default for item in fields(Column) if item.compare and item.name != "name"
}


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


def _is_date(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def _is_layout(text: object) -> bool:
    return isinstance(text, str) and "%" in text


_IDENTIFIERS: Final = re.compile(
    r"(?:^|[\s_.\-])(?:id|ids|nr|no|uid|uuid|guid|pk|key|rowid|rownames|rownumber|serial)[\s_.\-]*$"
    r"|^(?:index|number|row|rownames|unnamed:? ?\d*)$"
    r"|(?:patient|account|customer|client|case|record|person|subject|member|order|invoice|phone|card|file)"
    r"[\s_.\-]*(?:id|no|nr|number|num|key|code)[\s_.\-]*$",
    re.IGNORECASE,
)


def is_identifier_like(name: str) -> bool:
    """Whether a column is called as identifiers are. Names are public, so that may be said.

    >>> [is_identifier_like(name) for name in ("id", "Patient No.", "subject_id", "customerID", "rownames")]
    [True, True, True, True, True]
    >>> [is_identifier_like(name) for name in ("age", "no_visits", "body mass index", "paid", "width", "casino")]
    [False, False, False, False, False, False]
    """
    return bool(_IDENTIFIERS.search(name.strip()) or re.search(r"[a-z](?:ID|Id)$", name.strip()))
