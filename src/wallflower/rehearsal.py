"""Before the first question: a draft of a schema from what is said, and a rehearsal on records made up from it.

Of a source only the names and types of columns are known here, and cells may have decided the types
(`Draft.declared`); bounds and categories are what somebody has said, from a codebook, a form or a law.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from wallflower.data import Column, Schema, Table
from wallflower.errors import DataError, ParameterError, PrivacyError
from wallflower.ledger import Ledger
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.noise import system_noise
from wallflower.privacy import Exact, Kind, Loss
from wallflower.query import Query
from wallflower.query.parameter import Question, list_parameters, spends
from wallflower.release import Release, pay
from wallflower.release.guarantee import Facts
from wallflower.schema import Person
from wallflower.schema.columns import float_array, split_list, text_array
from wallflower.synthetic import pick_labels, spread_numbers
from wallflower.units import Protection

TYPES: Final = ("number", "integer", "text", "date", "identifier", "leave")
SPREADS: Final = 6  # in a public range, where no scale is stated
MADE_UP: Final = (
    "Made up: these records were drawn from the public schema, not from anybody's data. The answer shows its form and "
    "its noise, and says nothing about the real table."
)
USUAL: Final = 10_000  # records, unless more are asked for: a rehearsal should not take long
PLENTY: Final = Loss("1000000")
_MOST_LABELS: Final = 10_000  # that a range may stand for
_DIGITS: Final = 18


@dataclass(slots=True)
class Draft:
    """What is known of a source, and what has been said of its columns so far."""

    name: str
    rows: int | None
    declared: bool
    types: dict[str, str]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # where the scale of a column came from
    left: Loss | None = None  # of the budget, once spreads are paid for
    person: Person | None = None  # who the rows belong to, where a person has several

    @property
    def columns(self) -> dict[str, Column]:
        """The columns that can be read with what was said: numbers as they are, the rest if they have facts."""
        found = {}
        for name, kind in self.types.items():
            facts = self.facts.get(name, {})
            if kind != "leave" and (facts or kind in ("number", "integer")):
                whole: dict[str, Any] = {"integer": True} if kind == "integer" else {}
                found[name] = Column(name, **whole, **facts)
        return found

    def scale_by_bounds(self) -> None:
        """A first scale for columns with public bounds: nothing but these goes into it."""
        for name, facts in self.facts.items():
            if {"low", "high"} <= set(facts) and "scale" not in facts:
                facts["scale"] = (facts["high"] - facts["low"]) / SPREADS
                self.notes[name] = "scale: a sixth of the public range, until something better is known"

    def schema(self, *, account: str | None, protection: Protection | None) -> Schema:
        """The schema as it stands."""
        columns = self.columns
        if not columns:
            raise DataError(
                "no column can be read as it is: none is numbers, and none has categories or a unit. State some "
                "(--values, --date), or types (--types)."
            )
        hides_size = protection is not None and protection.unit == "membership"
        return Schema(
            name=self.name,
            columns=tuple(columns.values()),
            rows=None if hides_size else self.rows,
            clip=True,
            account=account,
            protects=protection,
            person=self.person,
        )


def labels_fact(name: str, text: str) -> dict[str, Any]:
    """The public categories in A,B,... or 2008..2013."""
    first, dots, last = (part.strip() for part in text.partition(".."))
    if dots and first.isdecimal() and last.isdecimal():
        if max(len(first), len(last)) > _DIGITS or int(last) - int(first) >= _MOST_LABELS:
            raise ParameterError(
                f"column {name!r}: from the first label to the last there are more than {_MOST_LABELS:,}. State fewer, "
                "or bounds."
            )
        return {"categories": tuple(range(int(first), int(last) + 1))}
    return {"categories": type_labels(split_list(text))}


def type_labels(labels: Iterable[str]) -> tuple[str | int, ...]:
    """Whole numbers as numbers, so that filters fit the data; codes such as 007 stay text."""
    found = tuple(labels)
    return tuple(map(int, found)) if all(label.isascii() and label == str(_whole(label)) for label in found) else found


def _whole(label: str) -> int | None:
    return int(label) if label.isdecimal() else None


@dataclass(frozen=True, slots=True)
class Trial:
    """A question as it was tried: what came of it, or why it cannot be asked so."""

    kind: str
    made: Release[Any] | None
    refusal: str | None = None


def make_up(schema: Schema, n: int, name: str | None = None) -> Table:
    """A table of made-up records that fits a schema, and is called so."""
    known = [column for column in schema.columns or () if column.kind not in ("identifier", "time")]
    if not known:
        raise ParameterError("the schema names no column of numbers or labels: nothing can be made up. Add one.")
    cells = {column.name: _cells(column, n, seed) for seed, column in enumerate(known, start=1)}
    plain = tuple(replace(column, unit=None, since=None, layout=None, missing=None) for column in known)
    facts = replace(schema, columns=plain, rows=None, clip=True, account=None, file=None, without=(), person=None)
    return Table(arrow=_pa.table(cells), schema=facts, name=f"made-up-{name or schema.name or 'table'}")


def try_question(
    question: Question, table: Table, ledger: Ledger, given: Mapping[str, Any], epsilon: Exact | None = None
) -> Trial:
    """The question's own example, with whatever is given that it takes, asked of made-up records."""
    try:
        made = pay(_query_of(question, given, epsilon), table, ledger, analyst="rehearsal", force=True).answer()
    except PrivacyError as refusal:
        return Trial(question.kind, None, str(refusal))
    return Trial(question.kind, replace(made, notes=(MADE_UP, *made.notes), limit=None))


def sample_words(query: Query[Any, Any], table: Table) -> str:
    """Return how an answer would read on synthetic records; each call draws again."""
    view = query.view(table)
    value = query.answer(view, system_noise())
    return query.reading(value, Facts.of(view, query.cost())).text


def _cells(column: Column, n: int, seed: int) -> Any:
    if column.categories is not None:
        return text_array(pick_labels(n, column.labels, seed=seed))
    low, high, spread = column.low, column.high, float(column.scale)
    center = float(column.center)
    if low is not None and high is not None:
        center = (low + high) / 2
        spread = spread if column.scale != 1 else (high - low) / SPREADS
    values = spread_numbers(n, center=center, spread=spread, seed=seed)
    if low is not None or high is not None:
        values = np.clip(values, low, high)
    return float_array(np.round(values) if column.integer else values)


def _query_of(question: Question, given: Mapping[str, Any], epsilon: Exact | None) -> Query[Any, Any]:
    example, own = question.example(), {parameter.name for parameter in list_parameters(question)}
    changes: dict[str, Any] = {name: value for name, value in given.items() if name in own and value}
    if epsilon is not None and spends(question) and example.cost().kind is Kind.PURE:
        changes["loss"] = Loss(epsilon)
    return replace(example, **changes)
