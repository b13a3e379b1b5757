"""Numbers of a form in the units of the columns, and what they are on the scale that a question is asked on.

A question sees `(value - center) / scale` of every column. Whoever fills in a form thinks in beats or degrees, so
bounds and distances are typed in these, and what becomes of them stands beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from wallflower.errors import ParameterError
from wallflower.query.forms import Blank, Span
from wallflower.schema import Column, Schema

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


def is_typed_own(blank: Blank, schema: Schema) -> bool:
    """Whether a field is typed in the units of the columns: it has some, and a column is scaled."""
    scaled = any((column.center, column.scale) != (0, 1) for column in numbers_of(schema))
    return blank.span in _TYPED and scaled


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
        raise ParameterError(f"{text[:40]!r} is not a number. Write one, such as 1.5.") from None
    return found


def brief(value: Fraction) -> str:
    """A number as it stands in a field, as short as it is exact."""
    short = f"{float(value):.12g}"
    return short if Fraction(short) == value or "e" not in short else repr(float(value))


def scaled_text(text: str, blank: Blank, ruler: Ruler | None) -> str:
    """What was typed in the units of the columns, as the question takes it."""
    if ruler is None or (blank.span == "sum" and ruler.columns > 1):
        raise ParameterError(
            "the chosen columns are not on one scale, so this has no unit. Choose one column, or leave it out."
        )
    assert blank.span is not None
    return repr(float(ruler.to_scale(number_of(text), blank.span)))


def own_text(text: str, blank: Blank, ruler: Ruler | None) -> str:
    """What a question takes, in the units of the columns; empty where these have none in common."""
    if not text.strip() or ruler is None or blank.span is None or (blank.span == "sum" and ruler.columns > 1):
        return ""
    try:
        return brief(ruler.to_own(number_of(text), blank.span))
    except ParameterError:
        return text


def asides(blanks: Iterable[Blank], form: Mapping[str, str], schema: Schema, chosen: Iterable[str]) -> dict[str, str]:
    """For each field that is typed in the units of the columns: what it is on the scale of the question."""
    ruler, found = ruler_of(schema, chosen), dict[str, str]()
    for blank in blanks:
        text = form.get(f"{blank.name}{OWN}", "").strip()
        if text and is_typed_own(blank, schema):
            try:
                found[blank.name] = f"{float(scaled_text(text, blank, ruler)):.4g} on the scale of the question"
            except ParameterError:
                continue
    return found
