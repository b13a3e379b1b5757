"""Sentences for people, marked for translation where they are made.

`t("About {value:,} of {n:,} records are outliers.", value=22, n=367)` is an ordinary English `str` that remembers its
template (the gettext message id) and its arguments. A page in another language looks the template up in a catalogue and
fills it in again, so that no finished sentence is ever parsed, edited or matched. Babel extracts the templates
(`make catalogues`), so the first argument of `t` is always a literal.

Rules for callers:

- Pass numbers as numbers and put the format into the template: German writes `{n:,}` as 1.200 and `{x:.2f}` as 0,25.
- Pass other messages as arguments, or `join` them; an f-string around a message makes it plain English again.
- A message survives `str()`, an exception, JSON (`collect_messages`, `restore_messages`), pickling and copying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from numbers import Integral, Real
from string import Formatter
from typing import Any, Final

Lookup = Callable[[str, str, int], str | None]


class Message(str):
    """An English text that can be translated: a template with its arguments, or a sequence of texts that are joined.

    >>> message = t("{n:,} records", n=1200)
    >>> message
    '1,200 records'
    >>> german = {"{n:,} records": "{n:,} Datensätze"}
    >>> message.translate_with(lambda one, many, n: german.get(one), decimal_comma=True)
    '1.200 Datensätze'
    """

    template: str
    plural: str
    arguments: Mapping[str, Any]
    parts: tuple[str, ...]

    def __new__(
        cls, template: str, arguments: Mapping[str, Any] | None = None, plural: str = "", parts: Iterable[str] = ()
    ) -> Message:
        values = {name: _argument(value) for name, value in (arguments or {}).items()}
        texts = tuple(parts)
        if texts:
            english = template.join(texts)
        else:
            english = _ENGLISH.vformat(plural if plural and values["n"] != 1 else template, (), values)
        message = super().__new__(cls, english)
        message.template, message.plural, message.arguments, message.parts = template, plural, values, texts
        return message

    def __str__(self) -> str:
        """Return the message itself, so that `str(error)` of an error made with a message can still be translated."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self.template, self.arguments, self.plural, self.parts)

    def translate_with(self, lookup: Lookup, *, decimal_comma: bool = False) -> str:
        """Return the text in another language.

        `lookup(template, plural, n)` returns the translated template, or None where there is none: the text is English
        then. A template without letters of its own, such as `{share:.1%}`, needs no translation.
        """

        def render(value: Any) -> Any:
            if isinstance(value, Message):
                return value.translate_with(lookup, decimal_comma=decimal_comma)
            return value

        if self.parts:
            return (lookup(self.template, "", 1) or self.template).join(render(part) for part in self.parts)
        number = self.arguments.get("n", 1)
        template = lookup(self.template, self.plural, number if isinstance(number, int) else 1)
        if template is None and has_words(self.template):
            return "".join(self)
        formatter = _COMMA if decimal_comma else _ENGLISH
        return formatter.vformat(
            template or self.template, (), {name: render(value) for name, value in self.arguments.items()}
        )

    def templates(self) -> Iterator[str]:
        """Return the templates that a catalogue needs to translate the message: its own and those of its parts."""
        if has_words(self.template):
            yield self.template
        for text in (*self.parts, *self.arguments.values()):
            if isinstance(text, Message):
                yield from text.templates()

    def to_json(self) -> dict[str, Any]:
        """Return the message as JSON, without what is empty: `from_json` makes it again."""
        stored = {
            "id": "".join(self.template),
            "plural": self.plural,
            "arguments": {name: _to_json(value) for name, value in self.arguments.items()},
            "parts": [_to_json(part) for part in self.parts],
        }
        return {name: value for name, value in stored.items() if value or name == "id"}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Message:
        """Make the message that `to_json` described.

        >>> Message.from_json(t("{n:,} records", n=1200).to_json())
        '1,200 records'
        """
        arguments = {name: _from_json(value) for name, value in stored.get("arguments", {}).items()}
        return cls(stored["id"], arguments, stored.get("plural", ""), map(_from_json, stored.get("parts", ())))


def t(template: str, /, **arguments: Any) -> Message:
    """Mark a sentence for translation and fill in its arguments, as `str.format` does.

    >>> t("ε = {epsilon:.3g}", epsilon=0.665)
    'ε = 0.665'
    """
    return Message(template, arguments)


def tn(template: str, plural: str, /, *, n: int, **arguments: Any) -> Message:
    """Mark a sentence that has a plural: `template` is for one, `plural` for any other number `n`.

    >>> tn("{n} column", "{n} columns", n=1), tn("{n} column", "{n} columns", n=3)
    ('1 column', '3 columns')
    """
    return Message(template, {"n": n, **arguments}, plural)


def join(separator: str, parts: Iterable[str]) -> Message:
    """Join texts into one that can still be translated part by part.

    >>> join(" ", [t("One."), t("Two.")])
    'One. Two.'
    """
    return Message(separator, parts=tuple(parts) or ("",))


def label(text: str) -> Message:
    """Return a short text that the catalogue has as it is, such as the name of a field or of a choice.

    Use it for texts that are not literals where they are shown; `scripts/catalogues.py` lists where they come from.

    >>> label("mostly noise")
    'mostly noise'
    """
    return text if isinstance(text, Message) else Message(text.replace("{", "{{").replace("}", "}}"))


def has_words(template: str) -> bool:
    """Return whether a template has Latin letters beside its arguments.

    >>> has_words("ε = {epsilon:.3g}"), has_words("{share:.1%} of all")
    (False, True)
    """
    return any(letter.isascii() and letter.isalpha() for literal, *_ in _ENGLISH.parse(template) for letter in literal)


def decimal(number: Fraction) -> Message:
    """Return an exact number for people: as a short decimal where that is exact, else rounded to four digits.

    >>> decimal(Fraction(1, 2)), decimal(Fraction(2, 3))
    ('0.5', '0.6667')
    """
    value = float(number)
    return t("{value:g}", value=value) if Fraction(f"{value:g}") == number else t("{value:.4g}", value=value)


def collect_messages(value: Any) -> dict[str, dict[str, Any]]:
    """Return the messages within plain JSON values, by their English text, as JSON.

    >>> collect_messages({"notes": [t("{n:,} records", n=7)], "value": "7 records"})
    {'7 records': {'id': '{n:,} records', 'arguments': {'n': 7}}}
    """
    match value:
        case Message():
            return {"".join(value): value.to_json()}
        case Mapping():
            return {text: stored for item in value.values() for text, stored in collect_messages(item).items()}
        case list() | tuple():
            return {text: stored for item in value for text, stored in collect_messages(item).items()}
        case _:
            return {}


def restore_messages(value: Any, messages: Mapping[str, Mapping[str, Any]]) -> Any:
    """Return plain JSON values in which each text that is among `messages` is a message again.

    >>> stored = {"notes": ["7 records"]}
    >>> restore_messages(stored, {"7 records": {"id": "{n:,} records", "arguments": {"n": 7}}})["notes"][0].template
    '{n:,} records'
    """
    match value:
        case str():
            return Message.from_json(messages[value]) if value in messages else value
        case Mapping():
            return {name: restore_messages(item, messages) for name, item in value.items()}
        case list():
            return [restore_messages(item, messages) for item in value]
        case _:
            return value


class _CommaFormatter(Formatter):
    """`str.format` with a decimal comma, and points between thousands, for numbers."""

    _SWAP: Final = str.maketrans(",.", ".,")

    def format_field(self, value: Any, format_spec: str) -> str:
        text = str(super().format_field(value, format_spec))
        return text.translate(self._SWAP) if isinstance(value, int | float) else text


_ENGLISH, _COMMA = Formatter(), _CommaFormatter()


def _argument(value: Any) -> Any:
    """Return an argument as a message keeps it: a number, a text or another message."""
    match value:
        case str() | bool() | int() | float():
            return value
        case Fraction():
            return decimal(value)
        case Integral():
            return int(value)
        case Real():
            return float(value)
        case None:
            return ""
        case _:
            text = getattr(value, "text", None)  # a loss, for one, says itself in decimals
            return text if isinstance(text, Message) else str(value)


def _to_json(value: Any) -> Any:
    return {"message": value.to_json()} if isinstance(value, Message) else value


def _from_json(value: Any) -> Any:
    return Message.from_json(value["message"]) if isinstance(value, Mapping) else value
