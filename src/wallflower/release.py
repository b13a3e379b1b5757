"""The one door: charge, then look, then record.

A question is paid for durably before anybody looks, so a crash costs budget and never privacy. What comes out is a
`Release`: the private value, what may be said about it, and what was promised. Nothing in it but the value depends on
the records, and nothing is raised because of what was seen.
"""

from __future__ import annotations

import getpass
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, Self

from wallflower.data import Points, Table, load
from wallflower.lazy import Lazy
from wallflower.ledger import Ledger, Receipt
from wallflower.noise import system_noise
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.query import A, D, Plan, PublicFacts, Query
from wallflower.version import VERSION

VARIABLE: Final = "WALLFLOWER_ANALYST"

if TYPE_CHECKING:
    import pyarrow as _pa

else:
    _pa = Lazy("pyarrow")

_SHOWN_AT: Final = "1e-6"
_MANY, _FIRST = 24, 12  # a longer list is read by its beginning


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release promises, and to whom.

    >>> Guarantee(Loss("0.5")).words.split(":")[0]
    'Pure differential privacy at ε=1/2'
    """

    loss: Loss

    @property
    def kind(self) -> Kind:
        return self.loss.kind

    @property
    def epsilon(self) -> float | None:
        return None if self.kind is Kind.ZCDP else _number(self.loss.amount)

    @property
    def delta(self) -> float:
        return _number(self.loss.delta)

    @property
    def rho(self) -> float | None:
        return _number(self.loss.amount) if self.kind is Kind.ZCDP else None

    @property
    def adjacency(self) -> Neighbours:
        return self.loss.neighbours

    @property
    def unit(self) -> str:
        """Whose change is hidden, in words."""
        return self.adjacency.words

    @property
    def words(self) -> str:
        return _WORDS[self.kind](self.loss)

    def to_json(self) -> dict[str, Any]:
        said = {"kind": str(self.kind), "epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        exact = {name: str(value) for name, value in self.loss.to_json().items()}
        return said | {
            "adjacency": str(self.adjacency),
            "words": self.words,
            "exact": str(self.loss),
            "loss": exact,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(Loss.from_json(stored["loss"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The public facts a reading may use: it never sees the records."""

    n: int
    dimension: int
    columns: tuple[str, ...]
    bound: bool = False  # n is only a public bound: the number of records is protected itself

    @property
    def records(self) -> str:
        return f"{'at most ' if self.bound else ''}{self.n:,} records"

    def __str__(self) -> str:
        return f"{self.records}, {self.dimension} column{'s' if self.dimension > 1 else ''}"

    @classmethod
    def of(cls, view: PublicFacts, cost: Loss) -> Facts:
        bound = cost.neighbours is Neighbours.ADD_REMOVE
        return cls(n=view.n, dimension=view.dimension, columns=tuple(view.columns), bound=bound)

    def to_json(self) -> dict[str, Any]:
        said = {"n": self.n, "dimension": self.dimension, "columns": list(self.columns)}
        return said | ({"bound": True} if self.bound else {})


class Artist(Protocol):
    """Who draws releases: `report`, which knows every question, as `wallflower/__init__.py` tells the door."""

    def figure(self, release: Release[Any], /) -> Any: ...

    def card(self, release: Release[Any], /) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Release(Generic[A]):
    """A private answer and everything that may be said about it.

    `interval` is a 95 % confidence interval where the mechanism has one; `left` is what the analyst could still spend
    on this data set afterwards; `replayed` marks an answer that was paid for earlier, under the same key.
    """

    value: A
    interval: tuple[float, float] | None
    words: str
    guarantee: Guarantee
    mechanism: str
    proof: str
    status: str
    kind: str
    label: str
    question: str
    parameters: Mapping[str, Any]
    dataset: str
    facts: Facts
    analyst: str
    ledger_id: int
    left: Loss
    notes: tuple[str, ...] = ()
    extras: Mapping[str, Any] = field(default_factory=dict)
    version: str
    replayed: bool = False

    artist: ClassVar[Artist]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values, exact where it matters."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        return plain | {
            "interval": None if self.interval is None else list(self.interval),
            "guarantee": self.guarantee.to_json(),
            "parameters": dict(self.parameters),
            "facts": self.facts.to_json(),
            "left": Guarantee(self.left).to_json()["loss"] | {"exact": str(self.left)},
            "notes": list(self.notes),
            "extras": dict(self.extras),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Release[Any]:
        """The release that `to_dict` described; unknown entries of a newer version are left out."""
        known = {item.name: stored[item.name] for item in fields(cls) if item.name in stored}
        facts, interval = stored["facts"], stored["interval"]
        return Release(
            **known
            | {
                "interval": None if interval is None else (interval[0], interval[1]),
                "guarantee": Guarantee.from_json(stored["guarantee"]),
                "facts": Facts(**{**facts, "columns": tuple(facts["columns"])}),
                "left": Loss.from_json(stored["left"]),
                "notes": tuple(stored["notes"]),
            }
        )

    def to_json(self) -> str:
        """One JSON object, as text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    def to_arrow(self) -> Any:
        """A pyarrow Table of one row, to be stacked with others of its kind; lists and mappings are JSON in it."""
        low, high = self.interval or (None, None)
        promise, double = self.guarantee, _pa.float64()
        numbers = {"low": low, "high": high, "epsilon": promise.epsilon, "delta": promise.delta, "rho": promise.rho}
        words = {name: getattr(self, name) for name in ("mechanism", "proof", "status", "label", "analyst", "version")}
        nested = isinstance(self.value, list | Mapping)
        value = json.dumps(self.value, ensure_ascii=False) if nested else self.value
        row = {"dataset": self.dataset, "kind": self.kind, "value": value, "ledger_id": self.ledger_id, **words}
        row |= {"guarantee": str(promise.kind), "adjacency": str(promise.adjacency), "n": self.facts.n}
        row |= {"parameters": json.dumps(dict(self.parameters), sort_keys=True)}
        columns = {name: _pa.array([value]) for name, value in row.items()}
        return _pa.table(columns | {name: _pa.array([value], type=double) for name, value in numbers.items()})

    def plot(self) -> Any:
        """A matplotlib Figure: the value with its interval, and what each ε would have given."""
        return self.artist.figure(self)

    def _repr_html_(self) -> str:
        return self.artist.card(self)

    def __repr__(self) -> str:
        return f"Release({self.kind} of {self.dataset}: {self.said}, {self.guarantee.loss}, ledger {self.ledger_id})"

    def __str__(self) -> str:
        lines = [self.question, f"  {self.said}", f"  {self.words}", f"  {self.guarantee.words}"]
        lines.append(f"  {self.dataset}, ledger entry {self.ledger_id}; {self.left} is left for {self.analyst}.")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    @property
    def said(self) -> str:
        """The value and its interval, rounded for reading."""
        if self.interval is None:
            return readable(self.value)
        low, high = map(readable, self.interval)
        return f"{readable(self.value)} (95 % interval {low} to {high})"


def release(
    query: Query[D, A],
    data: object,
    ledger: Ledger | str | Path | None,
    *,
    analyst: str | None = None,
    key: str | None = None,
) -> Release[A]:
    """Answer once and pay for it: the only function that sees both data and ledger.

    `data` is a Table, Points, or anything `load` reads. `ledger` is a Ledger, a path or URL, or None for the default
    one. A question asked again under the same `key` is not paid again: its stored release comes back.
    """
    with _opened(ledger) as book:
        table = data if isinstance(data, Table | Points) else load(data, schema=query.wants())
        return pay(query, table, book, analyst=analyst or default_analyst(), key=key).answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid(Generic[D, A]):
    """A question that is paid for and not answered yet. Whatever goes wrong from here on is no refusal."""

    query: Query[D, A]
    view: D
    receipt: Receipt
    ledger: Ledger

    def answer(self) -> Release[A]:
        """Look and record; what was paid for earlier, under the same key, comes back as it was."""
        if self.receipt.stored is not None:
            return replace(Release.from_dict(self.receipt.stored), replayed=True)
        value = self.query.answer(self.view, system_noise())
        made = _made(self.query, value, Facts.of(self.view, self.query.cost()), self.receipt)
        self.ledger.record(self.receipt, made.to_dict())
        return made


def pay(
    query: Query[D, A], table: Table | Points, ledger: Ledger, *, analyst: str, key: str | None = None
) -> Paid[D, A]:
    """Charge a question, durably, or refuse it from public facts; nobody has looked yet."""
    view = query.view(table)
    receipt = ledger.charge(table.name, query, analyst=analyst, key=key)
    return Paid(query=query, view=view, receipt=receipt, ledger=ledger)


def default_analyst() -> str:
    """Who is asking: $WALLFLOWER_ANALYST, or the user of the operating system."""
    try:
        return os.environ.get(VARIABLE) or getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"  # a container may run without a name for its user


def readable(value: object) -> str:
    """A value as a reader wants it: numbers rounded, names that belong together joined by ×.

    >>> readable(1234.5678), readable(0.01234), readable(14)
    ('1,234.6', '0.0123', '14')
    >>> readable([1, 2]), readable([["age"], ["age", "hours"]])
    ('1, 2', 'age; age × hours')
    >>> readable([{"columns": ["age", "hours"], "outliers": 14}])
    'columns age × hours, outliers 14'
    >>> readable(list(range(1000)))[-21:]
    ' 11, … (1,000 in all)'
    """
    match value:
        case bool() | None:
            return {True: "yes", False: "no", None: "none"}[value]
        case float():
            return _rounded(value)
        case int():
            return f"{value:,}"
        case Mapping():
            return ", ".join(f"{as_words(name)} {_part(item)}" for name, item in value.items()) or "none"
        case list() | tuple():
            between = "; " if any(isinstance(item, list | tuple | Mapping) for item in value) else ", "
            more = f"{between}… ({len(value):,} in all)" if len(value) > _MANY else ""
            return between.join(map(_part, value[: _FIRST if more else None])) + more or "none"
        case _:
            return str(value)


def as_words(name: str) -> str:
    """A name from a program, as words."""
    return name.replace("_", " ")


def rough(value: float) -> str:
    """A number to three digits.

    >>> rough(3.9512), rough(12.0), rough(1099.4)
    ('3.95', '12', '1,100')
    """
    return f"{float(f'{value:.3g}'):,g}"


def rows_of(plan: Plan) -> Iterator[tuple[str, ...]]:
    """The options of a plan in words: mechanism, a figure for each heading (empty if it has none), note."""
    for option in plan.options:
        name = f"{option.mechanism} (chosen)" if option.mechanism == plan.chosen else option.mechanism
        figures = (rough(option.figures[key]) if key in option.figures else "" for key in plan.headings)
        yield name, *figures, option.note


def symbol(loss: Loss) -> str:
    """The letter a loss is written with."""
    return "ρ" if loss.kind is Kind.ZCDP else "ε"


def _opened(ledger: Ledger | str | Path | None) -> AbstractContextManager[Ledger]:
    return nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger.open(ledger)


def _made(query: Query[D, A], value: A, facts: Facts, receipt: Receipt) -> Release[A]:
    reading = query.reading(value, facts)
    return Release(
        value=value,
        interval=reading.interval,
        words=reading.words,
        guarantee=Guarantee(receipt.cost),
        mechanism=reading.mechanism,
        proof=query.proof,
        status=str(reading.status or query.status),
        kind=query.kind,
        label=query.label,
        question=query.question,
        parameters=query.to_json(),
        dataset=receipt.dataset,
        facts=facts,
        analyst=receipt.analyst,
        ledger_id=receipt.id,
        left=receipt.left,
        notes=(starter_note(receipt.dataset),) if receipt.starter else (),
        extras=dict(reading.extras),
        version=VERSION,
    )


def starter_note(dataset: str) -> str:
    return (
        f"Nobody has granted {dataset} a budget, so the starter cap of {Ledger.STARTER} applies; "
        "the data owner changes it with `wallflower budget grant`."
    )


def _part(item: object) -> str:
    """An item of something larger, where names in a list are one thing, such as a set of columns."""
    if isinstance(item, list | tuple) and item and all(isinstance(name, str) for name in item):
        return " × ".join(item)
    return readable(item)


def _rounded(value: float) -> str:
    if value.is_integer() and abs(value) < 2**53:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.3g}"


def _number(exact: Fraction) -> float:
    return int(exact) if exact.denominator == 1 else float(exact)


def _times(epsilon: Fraction) -> str:
    if epsilon > 10:
        return f"e^{float(epsilon):g} times"
    return f"{math.ceil(math.exp(epsilon) * 100) / 100:g} times"


def _pure(loss: Loss) -> str:
    return (
        f"Pure differential privacy at {loss}: with {loss.neighbours.words}, every answer stays at most "
        f"{_times(loss.amount)} as likely."
    )


def _approximate(loss: Loss) -> str:
    return (
        f"Approximate differential privacy at {loss}: with {loss.neighbours.words}, every answer stays at most "
        f"{_times(loss.amount)} as likely, up to a probability of {float(loss.delta):g}."
    )


def _concentrated(loss: Loss) -> str:
    return (
        f"Zero-concentrated differential privacy at {loss}, which implies ε={float(loss.at(_SHOWN_AT).amount):.4g} "
        f"with δ={_SHOWN_AT}. Neighbours: {loss.neighbours.words}."
    )


def _output_constrained(loss: Loss) -> str:
    return (
        f"Output-constrained privacy at {loss}, which is weaker than differential privacy: with "
        f"{loss.neighbours.words}, every answer stays at most {_times(loss.amount)} as likely, but only where that "
        "change leaves the record an outlier in exactly the same contexts. A change that does not is not hidden at "
        "all; the answer itself proves that the record is an outlier there; and several people together are not "
        "protected as a group."
    )


def _other(loss: Loss) -> str:
    return f"{loss.kind.capitalize()} privacy at {loss}. Neighbours: {loss.neighbours.words}."


_WORDS: Final[Mapping[Kind, Callable[[Loss], str]]] = {
    Kind.PURE: _pure,
    Kind.APPROXIMATE: _approximate,
    Kind.ZCDP: _concentrated,
    Kind.OUTPUT_CONSTRAINED: _output_constrained,
    Kind.METRIC: _other,
}
