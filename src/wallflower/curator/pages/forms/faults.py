"""What is wrong with a form, field by field and in our own words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final

from pydantic import ValidationError

from wallflower.errors import DataError, ParameterError, PrivacyError
from wallflower.query.forms import LOSS_HELP, Blank, Question, blanks

_NAMED: Final = re.compile(r"^(?:[\w-]+: )?(\w+)(?:, \w+)*: +")
_SHOWN: Final = 40  # characters of what was typed


class FieldFaults(ParameterError):
    """Fields that cannot be read: what to do about each, by name."""

    def __init__(self, fields: Mapping[str, str], words: str | None = None) -> None:
        super().__init__(words or " ".join(f"{name}: {told}" for name, told in fields.items()))
        self.fields = dict(fields)


class EmptyFields(FieldFaults):
    """A form with empty fields that are needed."""


def faults_of(refusal: PrivacyError, question: Question, words: str) -> dict[str, str]:
    """The fields that a refusal is about; `words` are the refusal as it may be told."""
    if isinstance(refusal, FieldFaults):
        return refusal.fields
    known = {blank.name: blank for blank in blanks(question)}
    if isinstance(refusal, DataError) and refusal.column is not None:
        naming = (name for name, blank in known.items() if blank.names in ("numbers", "measured", "groups", "labels"))
        return dict.fromkeys(list(naming)[:1], words)
    found = _NAMED.match(words)
    if found and (found[1] in known or found[1] in LOSS_HELP):
        told = words[found.end() :]
        return {found[1]: told[:1].upper() + told[1:]}
    return {"epsilon": words} if "privacy loss is stated" in words or "loss is stated once" in words else {}


def faults_in(error: ValidationError, question: Question, form: Mapping[str, str]) -> FieldFaults:
    """What a body refuses, as a person would be told."""
    known = {blank.name: blank for blank in blanks(question)}
    told: dict[str, str] = {}
    for one in error.errors(include_url=False, include_context=True)[:20]:
        name = str(one["loc"][0]) if one["loc"] else ""
        text = form.get(name, "").strip()[:_SHOWN]
        told.setdefault(name, _words(one, known.get(name), text))
    return FieldFaults(told)


def _words(one: Mapping[str, Any], blank: Blank | None, text: str) -> str:
    limits = one.get("ctx", {})
    kind = str(one["type"])
    if kind in _LIMITS:
        return _LIMITS[kind](limits)
    if blank is not None and blank.choices:
        return f"{text!r} is none of its choices: {', '.join(blank.choices)}. Choose one."
    hint = None if blank is None else blank.hint
    return f"{text!r} {_KINDS.get(hint, 'cannot be read. Correct it.')}"


_KINDS: Final[Mapping[Any, str]] = {
    int: "is not a whole number. Write one, such as 5.",
    float: "is not a number. Write one, such as 1.5.",
    Fraction: "is not a number. Write one, such as 0.05 or 5%.",
    bool: "is neither yes nor no. Choose one.",
    tuple[float, ...]: "is not a list of numbers. Write them as 1, 2.5.",
    tuple[tuple[float, ...], ...]: "is not rows of numbers. Write them as 1, 0; 0, 1.",
}
_LIMITS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "less_than_equal": lambda limits: f"It is {limits['le']:,g} at most. Write a smaller number.",
    "greater_than_equal": lambda limits: f"It is {limits['ge']:,g} at least. Write a larger number.",
    "finite_number": lambda _: "It has no end. Write a number, such as 1.5.",
    "string_too_long": lambda limits: f"It has {limits['max_length']:,} characters at most. Shorten it.",
    "too_long": lambda limits: f"There are {limits['max_length']:,} of them at most. Leave some out.",
}
