"""What a form offers for the parameters of a query: columns, records, categories, units and suggested values.

A query sees `(value - center) / scale` of every column. People think in beats or degrees, so bounds and distances are
typed in these units, and the value on the scale of the query is shown beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

from wallflower.errors import ParameterError
from wallflower.query.parameter import LOSS_HELP, Parameter, Question, Span, list_parameters
from wallflower.schema import Column, Schema
from wallflower.schema.columns import join_list, list_names, split_list
from wallflower.text import t


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be chosen in a field, as it is sent and as it is shown."""

    value: str
    text: str
    chosen: bool = False
    group: str = ""


def columns_for(parameter: Parameter, schema: Schema) -> tuple[Column, ...]:
    """The columns that a field may name."""
    known = schema.columns or ()
    match parameter.names:
        case "numbers":
            return tuple(column for column in known if column.name in schema.numbers)
        case "measured":
            return tuple(column for column in known if column.name in schema.distance_columns)
        case "coded":
            return tuple(column for column in known if column.kind == "category" or column.name in schema.numbers)
        case "groups":
            return tuple(column for column in known if column.labels or column.name in schema.numbers)
        case "labels" | "times" | "identifiers":
            kind = {"labels": "category", "times": "time", "identifiers": "identifier"}[parameter.names]
            return tuple(column for column in known if column.kind == kind)
        case _:
            return ()


def offers_for(parameter: Parameter, schema: Schema, records: Sequence[str]) -> tuple[Choice, ...]:
    """What of a table can be chosen in a field."""
    if parameter.names == "record":
        return tuple(Choice(record, record) for record in records)
    if parameter.names == "context":
        return tuple(
            Choice(join_list([f"{column.name}={bin_}"]), bin_, group=column.name)
            for column in schema.columns or ()
            for bin_ in bins_of(column)
        )
    found = columns_for(parameter, schema)
    if parameter.names == "groups":
        found = tuple(column for column in found if bins_of(column))
        return tuple(Choice(join_list([c.name]), f"{c.name}: {list_names(bins_of(c))}") for c in found)
    return tuple(Choice(join_list([column.name]), _title(column)) for column in found)


def bins_of(column: Column) -> tuple[str, ...]:
    """The public groups of a column: its labels, or the bins between its edges.

    >>> bins_of(Column("age", edges=(18, 65)))
    ('below 18', '18 to 65', 'from 65')
    """
    edges = [f"{edge:g}" for edge in column.edges or ()]
    if not edges:
        return column.labels
    return (f"below {edges[0]}", *(f"{low} to {high}" for low, high in pairwise(edges)), f"from {edges[-1]}")


def bits_of(ticked: str, domain: Schema, context: Sequence[str]) -> str:
    """The context that was ticked, as the question takes it: a bit for every group of every column in order."""
    if not set(ticked) - {"0", "1"}:
        return ticked
    chosen = set(split_list(ticked))
    columns = {column.name: column for column in domain.columns or ()}
    known = [f"{name}={bin_}" for name in context if name in columns for bin_ in bins_of(columns[name])]
    strange = sorted(chosen - set(known))
    if strange:
        raise ParameterError(
            t("{names}: not in a column of the context. Tick that column too.", names=list_names(strange))
        )
    return "".join("1" if one in chosen else "0" for one in known)


def cut(schema: Schema, text: str) -> Schema:
    """The schema with columns of numbers cut as `age: 18, 65; weight: 80` says; text of no such form is refused."""
    numbers = {column.name for column in schema.columns or () if column.name in schema.numbers}
    edges: dict[str, tuple[float, ...]] = {}
    for part in split_list(text, ";"):
        name, mark, cuts = part.rpartition(":")
        if not mark or name.strip() not in numbers:
            raise ParameterError(
                t(
                    "{text!r} does not name a number column. Write its name and the cut points, as in age: 18, 65.",
                    text=part[:60],
                )
            )
        edges[name.strip()] = _edges(cuts)
    columns = (replace(c, edges=edges[c.name]) if c.name in edges else c for c in schema.columns or ())
    return replace(schema, columns=tuple(columns))


def cut_names(text: str) -> list[str]:
    """The columns that a text cuts."""
    return [part.rpartition(":")[0].strip() for part in split_list(text, ";")]


def _edges(cuts: str) -> tuple[float, ...]:
    try:
        found = tuple(map(float, split_list(cuts)))
    except ValueError:
        raise ParameterError(
            t("{text!r} are not numbers. Write the cut points as in age: 18, 65.", text=cuts.strip()[:40])
        ) from None
    if not found or list(found) != sorted(set(found)):
        raise ParameterError(t("Cut points must increase. Write at least one, the smallest first."))
    return found


def _title(column: Column) -> str:
    return f"{column.name} ({column.measure})" if column.measure else column.name


def tick(choices: Iterable[Choice], chosen: set[str]) -> tuple[Choice, ...]:
    """The choices, with those of these values ticked."""
    return tuple(replace(choice, chosen=choice.value in chosen) for choice in choices)


OWN: Final = "-own"  # ends the name of a field that is typed in the units of the columns
_TYPED: Final = ("low", "high", "sum", "distance", "square")


@dataclass(frozen=True, slots=True)
class Ruler:
    """The scale that the chosen columns have in common, their unit and how many they are."""

    center: Fraction
    scale: Fraction
    unit: str
    columns: int

    def to_scale(self, value: Fraction, span: Span) -> Fraction:
        """What a question sees of a number in the units of the columns."""
        match span:
            case "low" | "high" | "sum":
                return (value - self.center) / self.scale
            case "square":
                return value / self.scale**2
            case "distance" | "radius":
                return value / self.scale

    def to_own(self, value: Fraction, span: Span) -> Fraction:
        """The number in the units of the columns that a question sees as this."""
        match span:
            case "low" | "high" | "sum":
                return value * self.scale + self.center
            case "square":
                return value * self.scale**2
            case "distance" | "radius":
                return value * self.scale


def is_typed_own(parameter: Parameter, schema: Schema) -> bool:
    """Whether a field is typed in the units of the columns: it has some, and a column is scaled."""
    scaled = any((column.center, column.scale) != (0, 1) for column in numbers_of(schema))
    return parameter.span in _TYPED and scaled


def numbers_of(schema: Schema, chosen: Iterable[str] = ()) -> list[Column]:
    """The chosen columns of numbers; none chosen: all."""
    names = set(chosen)
    return [c for c in schema.columns or () if c.name in schema.numbers and (not names or c.name in names)]


def ruler_of(schema: Schema, chosen: Iterable[str]) -> Ruler | None:
    """The scale of the chosen columns, if it is one."""
    columns = numbers_of(schema, chosen)
    found = {(exact(c.center), exact(c.scale)) for c in columns}
    if len(found) != 1:
        return None
    units = {c.measure or c.unit or "" for c in columns}
    ((center, scale),) = found
    return Ruler(center, scale, units.pop() if len(units) == 1 else "", len(columns))


def exact(value: float) -> Fraction:
    """A number as it was written."""
    return Fraction(str(value))


def number_of(text: str) -> Fraction:
    """A number as it is typed."""
    try:
        found = Fraction(text.strip())
        float(found)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ParameterError(t("{text!r} is not a number. Write one, such as 1.5.", text=text[:40])) from None
    return found


def brief(value: Fraction) -> str:
    """A number as it stands in a field, as short as it is exact."""
    short = f"{float(value):.12g}"
    return short if Fraction(short) == value or "e" not in short else repr(float(value))


def scaled_text(text: str, parameter: Parameter, ruler: Ruler | None) -> str:
    """What was typed in the units of the columns, as the question takes it."""
    if ruler is None or (parameter.span == "sum" and ruler.columns > 1):
        raise ParameterError(
            t("the chosen columns do not share one scale, so this has no unit. Choose one column, or leave this empty.")
        )
    assert parameter.span is not None
    return repr(float(ruler.to_scale(number_of(text), parameter.span)))


def own_text(text: str, parameter: Parameter, ruler: Ruler | None) -> str:
    """What a question takes, in the units of the columns; empty where these have none in common."""
    if not text.strip() or ruler is None or parameter.span is None or (parameter.span == "sum" and ruler.columns > 1):
        return ""
    try:
        return brief(ruler.to_own(number_of(text), parameter.span))
    except ParameterError:
        return text


def asides(
    blanks: Iterable[Parameter], form: Mapping[str, str], schema: Schema, chosen: Iterable[str]
) -> dict[str, str]:
    """For each field that is typed in the units of the columns: what it is on the scale of the question."""
    ruler, found = ruler_of(schema, chosen), dict[str, str]()
    for parameter in blanks:
        text = form.get(f"{parameter.name}{OWN}", "").strip()
        if text and is_typed_own(parameter, schema):
            try:
                found[parameter.name] = t(
                    "{value:.4g} on the scale of the query", value=float(scaled_text(text, parameter, ruler))
                )
            except ParameterError:
                continue
    return found


_SHARE: Final = "2%"  # of the records, where no radius can be suggested
_TEXTS: Final = (str, tuple[str, ...], tuple[float, ...], tuple[tuple[str, ...], ...], tuple[tuple[float, ...], ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """A question with the values of its example and its defaults, and the table it is to be asked of."""

    question: Question
    example: Mapping[str, str]
    defaults: Mapping[str, str]
    schema: Schema
    records: tuple[str, ...] = ()

    def values(self, offers: Mapping[str, Sequence[Choice]]) -> dict[str, str]:
        """A value for each field; empty where nothing can be suggested."""
        asked = list_parameters(self.question)
        found = {parameter.name: self._suggest_choice(parameter) for parameter in asked if parameter.span is None}
        chosen = chosen_columns(self.question, found)
        found |= {
            parameter.name: self._suggest_measure(parameter, chosen)
            for parameter in asked
            if parameter.span is not None
        }
        found |= {name: self.example[name] for name in LOSS_HELP if name in self.example}
        return found | self._instead_of_a_radius(found, offers)

    @property
    def is_in_spreads(self) -> bool:
        """Whether a distance means the same in every column: each has a scale, or nothing is known of them."""
        return all(column.scale != 1 for column in numbers_of(self.schema))

    def _suggest_choice(self, parameter: Parameter) -> str:
        """What a table itself gives, or else the example, or else the default."""
        schema, default = self.schema, self.defaults.get(parameter.name, "")
        if not schema.columns:
            return self.example.get(parameter.name, default)
        is_timed = schema.protects is not None and schema.protects.rows == "time"
        is_narrow = (self.question.accepts_stream or self.question.companion_of) and not is_timed
        if parameter.names == "numbers" and parameter.hint is not str and is_narrow:
            return join_list(schema.numbers[:1])  # each column more costs as much again
        if parameter.names == "rows":
            return str(schema.rows or "")
        if parameter.names == "record":
            return self.records[0] if len(self.records) == 1 else ""
        if parameter.hint is Schema or (parameter.hint in _TEXTS and not parameter.choices):
            return default
        return self.example.get(parameter.name, default)

    def _suggest_measure(self, parameter: Parameter, chosen: Sequence[str]) -> str:
        """A number on the scale of the columns: their own bounds, and distances only where these are in spreads."""
        default = self.defaults.get(parameter.name, "")
        if not self.schema.columns:
            return self.example.get(parameter.name, default)
        if parameter.span in ("low", "high"):
            ends = {
                column.low if parameter.span == "low" else column.high for column in numbers_of(self.schema, chosen)
            }
            ruler, end = ruler_of(self.schema, chosen), ends.pop() if len(ends) == 1 else None
            return "" if ruler is None or end is None else brief(ruler.to_scale(exact(end), parameter.span))
        if parameter.name not in self.example or parameter.span == "sum":
            return default
        if parameter.span == "square":
            return str(len(numbers_of(self.schema, chosen))) if self.is_in_spreads else ""
        return self.example[parameter.name] if self.is_in_spreads else ""

    def _instead_of_a_radius(self, found: Mapping[str, str], offers: Mapping[str, Sequence[Choice]]) -> dict[str, str]:
        """Where no radius can be suggested: a share of the records, and the latest released scales."""
        asked = {parameter.name: parameter for parameter in list_parameters(self.question)}
        if not any(
            parameter.span == "radius" and name in self.example and not found[name] for name, parameter in asked.items()
        ):
            return {}
        share = asked.get("share")
        drawn = {"share": _SHARE} if share is not None and share.optional and share.hint is Fraction else {}
        return drawn | ({"scale": offers["scale"][0].value} if offers.get("scale") else {})


def chosen_columns(question: Question, form: Mapping[str, str]) -> list[str]:
    """The columns that a form asks about; none: all of them."""
    listed = [parameter.name for parameter in list_parameters(question) if _is_listed(parameter)]
    try:
        return [name for field in listed for name in split_list(form.get(field, ""))]
    except ParameterError:
        return []


def _is_listed(parameter: Parameter) -> bool:
    return parameter.names in ("numbers", "measured", "coded") and parameter.hint == tuple[str, ...]
