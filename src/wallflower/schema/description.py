"""What a table and its columns are, in words for whoever reads a page: public, and part of no question.

Such words change no answer, price or fingerprint, so two schemas that differ in nothing else are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from wallflower.errors import ParameterError


def _words_field(help_: str) -> Any:
    return field(default=None, compare=False, repr=False, metadata={"help": help_})


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Something that has words for readers beside its facts."""

    def words(self) -> dict[str, str]:
        """What was said for readers."""
        return {name: said for name in names_of(type(self)) if (said := getattr(self, name)) is not None}

    def require_words(self, where: str) -> None:
        """Refuse what is no text, or an empty one."""
        said = {item.name: item.metadata.get("help") for item in fields(self)}
        for name, text in self.words().items():
            if not isinstance(text, str) or not text.strip():
                raise ParameterError(f"{where}{name} is not a text; it is {said[name]}. Say it, or leave it out.")


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
