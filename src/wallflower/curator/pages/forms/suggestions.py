"""What a form is filled with before anybody types: of a question's example only what means something in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from wallflower.curator.pages.forms.pickers import Choice
from wallflower.curator.pages.forms.scales import brief, exact, numbers_of, ruler_of
from wallflower.curator.pages.forms.translation import chosen_columns
from wallflower.query.forms import LOSS_HELP, Blank, Question, blanks
from wallflower.schema import Schema
from wallflower.schema.columns import join_list

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
        asked = blanks(self.question)
        found = {blank.name: self._suggest_choice(blank) for blank in asked if blank.span is None}
        chosen = chosen_columns(self.question, found)
        found |= {blank.name: self._suggest_measure(blank, chosen) for blank in asked if blank.span is not None}
        found |= {name: self.example[name] for name in LOSS_HELP if name in self.example}
        return found | self._instead_of_a_radius(found, offers)

    @property
    def is_in_spreads(self) -> bool:
        """Whether a distance means the same in every column: each has a scale, or nothing is known of them."""
        return all(column.scale != 1 for column in numbers_of(self.schema))

    def _suggest_choice(self, blank: Blank) -> str:
        """What a table itself gives, or else the example, or else the default."""
        schema, default = self.schema, self.defaults.get(blank.name, "")
        if not schema.columns:
            return self.example.get(blank.name, default)
        is_timed = schema.protects is not None and schema.protects.rows == "time"
        is_narrow = (self.question.streams or self.question.prepares) and not is_timed
        if blank.names == "numbers" and blank.hint is not str and is_narrow:
            return join_list(schema.numbers[:1])  # each column more costs as much again
        if blank.names == "rows":
            return str(schema.rows or "")
        if blank.names == "record":
            return self.records[0] if len(self.records) == 1 else ""
        if blank.hint is Schema or (blank.hint in _TEXTS and not blank.choices):
            return default
        return self.example.get(blank.name, default)

    def _suggest_measure(self, blank: Blank, chosen: Sequence[str]) -> str:
        """A number on the scale of the columns: their own bounds, and distances only where these are in spreads."""
        default = self.defaults.get(blank.name, "")
        if not self.schema.columns:
            return self.example.get(blank.name, default)
        if blank.span in ("low", "high"):
            ends = {column.low if blank.span == "low" else column.high for column in numbers_of(self.schema, chosen)}
            ruler, end = ruler_of(self.schema, chosen), ends.pop() if len(ends) == 1 else None
            return "" if ruler is None or end is None else brief(ruler.to_scale(exact(end), blank.span))
        if blank.name not in self.example or blank.span == "sum":
            return default
        if blank.span == "square":
            return str(len(numbers_of(self.schema, chosen))) if self.is_in_spreads else ""
        return self.example[blank.name] if self.is_in_spreads else ""

    def _instead_of_a_radius(self, found: Mapping[str, str], offers: Mapping[str, Sequence[Choice]]) -> dict[str, str]:
        """Where no radius can be suggested: a share of the records, and the latest released scales."""
        asked = {blank.name: blank for blank in blanks(self.question)}
        if not any(
            blank.span == "radius" and name in self.example and not found[name] for name, blank in asked.items()
        ):
            return {}
        share = asked.get("share")
        drawn = {"share": _SHARE} if share is not None and share.optional and share.hint is Fraction else {}
        return drawn | ({"scale": offers["scale"][0].value} if offers.get("scale") else {})
