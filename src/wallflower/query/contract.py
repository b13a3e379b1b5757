"""The contract every question keeps.

A query is a frozen value: its parameters, what it costs (`cost`, from parameters alone), whom that protects (`claim`)
and what to expect of it (`plan`, both from public facts alone), the private answer (`answer`, the only method that sees
data), and the reading of a released answer (`reading`, post-processing).
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, Self, TypeVar, runtime_checkable

from wallflower.drawing.picture import Picture
from wallflower.errors import ParameterError
from wallflower.machine.lazy import is_there, load
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.progress import Effort
from wallflower.query.accuracy import Quality
from wallflower.query.plan import Plan
from wallflower.schema import Schema
from wallflower.units import Claim

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Status(StrEnum):
    """How far the proof reaches; it travels with every release."""

    WHOLE_NUMBERS = "proved for the whole numbers the program uses"
    REAL_ARITHMETIC = "proved for real numbers; floating point is not covered"


class PublicFacts(Protocol):
    """What may be known of a table before anything is paid: its size and its columns."""

    @property
    def n(self) -> int: ...

    @property
    def dimension(self) -> int: ...

    @property
    def columns(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Condition:
    """Where a setting means something: the field that chooses a mode, and the mode that has it; None: if it is given.

    >>> Condition("mode", "ocdp").text, Condition("by").text
    ('with mode ocdp', 'with by')
    """

    chooser: str
    choice: str | None = None

    @property
    def text(self) -> str:
        return f"with {self.chooser}" if self.choice is None else f"with {self.chooser} {self.choice}"

    def holds(self, query: Any) -> bool:
        """Whether the mode is chosen."""
        chosen = getattr(query, self.chooser)
        return chosen is not None if self.choice is None else chosen == self.choice


FindRelease = Callable[[int], Mapping[str, Any] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseInput:
    """An earlier release that a parameter takes. A query declares it in the metadata of the field, under `release`.

    kind      the query that makes such a release
    as_value  whether the parameter holds the released value; else the number of its ledger entry
    part      what the released value must have, if not every release of the kind will do
    also      other queries whose releases will do
    """

    kind: str
    as_value: bool = False
    part: str | None = None
    also: tuple[str, ...] = ()

    def accepts(self, kind: str, value: Any) -> bool:
        """Return whether a release of this kind with this value will do.

        >>> ReleaseInput(kind="baseline", part="season").accepts("baseline", {"centre": 1})
        False
        """
        return kind in (self.kind, *self.also) and (self.part is None or self.part in value)


@runtime_checkable
class Jsonable(Protocol):
    """A setting that says itself how it is written down."""

    def to_json(self) -> Any: ...


D = TypeVar("D", bound=PublicFacts)
A = TypeVar("A")
COVERS: Final = "95 % interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The reading of a released value: computed from it and public facts alone.

    `covers` names what the interval is, `brief` the value where it is too long to be read. `notes` are caveats in
    words; without a `quality` of its own an answer is as good as its plan.
    """

    mechanism: str
    interval: tuple[float, float] | None
    text: str
    covers: str = COVERS
    extras: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    quality: Quality | None = None
    brief: str = ""
    status: Status | None = None  # where the way it was made is proved less far than its question


@dataclass(frozen=True, slots=True, kw_only=True)
class Tradeoff:
    """What can be had at one amount of the loss: `found` of what is sought against `alarms` of the rest, as a public
    `setting` is moved. Shares, from 0 to 1, rising."""

    amount: str
    setting: tuple[float, ...]
    alarms: tuple[float, ...]
    found: tuple[float, ...]


@dataclass(frozen=True)
class Query(ABC, Generic[D, A]):
    """One question about outliers."""

    kind: ClassVar[str]
    label: ClassVar[str]
    question: ClassVar[str]
    proof: ClassVar[str]
    status: ClassVar[Status]
    companion_of: ClassVar[str | None] = None  # the question that this one only serves
    no_picture_because: ClassVar[str | None] = None  # why it has no picture of its own, where it has none
    is_model: ClassVar[bool] = False  # whether its answer is used again and again: `KIND fit` on the command line
    accepts_stream: ClassVar[bool] = False  # whether records may come one by one, without an end
    is_delivered_once: ClassVar[bool] = False  # whether only the person who asked gets the value, and the ledger none
    supports_tiles: ClassVar[bool] = False  # whether it can be answered where an engine keeps the table, tile by tile

    @abstractmethod
    def cost(self) -> Loss:
        """What one answer spends; depends on the parameters only."""

    def rests_on(self, data: D) -> tuple[str, ...]:
        """Name the labels that the guarantee of an answer rests on, as `wallflower.theorems` writes them; from public
        facts only. Without any, the theorem of its `proof`."""
        return ()

    def claim(self, facts: PublicFacts) -> Claim:
        """What one answer states of its loss in any unit; from parameters and public facts only.

        An `n` of 0 says that nobody knows how many observations there will be.
        """
        return Claim(
            loss=self.cost(),
            columns=facts.dimension,
            steps=facts.n or None,
            names=self.record_name(),
            public=self.public_columns(),
        )

    @abstractmethod
    def plan(self, *, n: int, dimension: int) -> Plan:
        """What to expect on a table of `n` records and `dimension` columns."""

    def plan_on(self, data: D) -> Plan:
        """What to expect on this table, from its public facts alone."""
        return self.plan(n=data.n, dimension=data.dimension)

    @abstractmethod
    def view(self, data: Any) -> D:
        """The part of the data this question looks at, or a typed refusal that depends on public facts only."""

    def releases(self) -> tuple[int, ...]:
        """Return the ledger entries of earlier releases that its parameters name."""
        inputs = {item.name: item.metadata.get("release") for item in fields(self)}
        named = [getattr(self, name) for name, made in inputs.items() if made is not None and not made.as_value]
        return tuple(int(number) for number in named if number is not None)

    def prepare(self, table: Any, find: FindRelease) -> Any:
        """Return the table with the releases that the query names applied to it, or refuse; default: unchanged.

        `find` returns the release of a ledger entry as plain JSON, or None.
        """
        return table

    def take_releases(self, view: D, find: FindRelease) -> D:
        """The view with what was released before and the question names by its entry of the ledger, or a refusal."""
        return view

    @abstractmethod
    def answer(self, data: D, noise: Noise) -> A:
        """The private answer."""

    @abstractmethod
    def reading(self, value: A, facts: PublicFacts) -> Reading:
        """What the released value says, and how surely."""

    def wants(self) -> Schema | None:
        """The public facts a source is read with when it comes without a schema; None: all columns, as numbers."""
        columns = getattr(self, "columns", None)
        return Schema.of(columns) if columns else None

    def needed_columns(self) -> tuple[str, ...] | None:
        """The columns that an answer reads, where the query names them; None: any of the table's."""
        columns = getattr(self, "columns", None) if any(item.name == "columns" for item in fields(self)) else None
        if not columns or self.accepts_stream:
            return None
        time = getattr(self, "time", None)
        return (*columns, *(getattr(self, "by", None) or ()), *(() if time is None else (time,)))

    def released(self, answer: A) -> Any:
        """Return the value that a release of this answer shows; what else an answer holds goes into its reading."""
        return answer

    def picture(self, value: Any, facts: PublicFacts) -> Picture | None:
        """Say how the released value is drawn; None leaves it to the report: say why in `no_picture_because`."""
        return None

    def as_released(self, extras: Mapping[str, Any], facts: PublicFacts) -> Self:
        """The query with the settings that its release chose, as the release states them."""
        return self

    def terms(self, facts: PublicFacts) -> str:
        """What was asked for, in words: every setting that means something, but the loss."""
        given = {item.name: getattr(self, item.name) for item in ordered_fields(type(self)) if _is_meant(self, item)}
        return ", ".join(f"{name.replace('_', ' ')} {_in_words(value)}" for name, value in given.items())

    def assumed_change(self, data: D) -> str:
        """The change that its loss is stated for, in words, where it assumes one smaller than the public range."""
        return ""

    def conditions(self, data: D) -> tuple[str, ...]:
        """Public facts that speak against reading an answer at face value: before the charge, and with the answer."""
        return ()

    def conditions_of_release(self, extras: Mapping[str, Any], data: D) -> tuple[str, ...]:
        """The conditions with the settings that its release chose, as the release states them."""
        return self.conditions(data)

    def cautions(self, data: D) -> tuple[str, ...]:
        """Notes on the table's public facts, with the plan and with the answer."""
        return ()

    def tradeoffs(self, *, dimension: int) -> tuple[Tradeoff, ...]:
        """Curves to choose a setting and a loss by, from public facts; a question without any has none."""
        return ()

    def effort(self, *, n: int, dimension: int) -> Effort:
        """What an answer takes; this default is for a question that goes through the records once."""
        return Effort(steps=10_000.0 * n * dimension, memory=200.0 * n * dimension)

    def record_name(self) -> str | None:
        """The record that the question names, if it names one: a refusal tells that it is not there."""
        return None

    def public_columns(self) -> tuple[str, ...]:
        """The columns whose cells the query takes for public: it hides changes that leave these cells as they are."""
        return ()

    def require_bound(self, rows: int | None) -> None:
        """Where the number of records is secret: refuse a question that relies on fewer than the public bound `rows`,
        if there is one, so that no table is ever compared with less. Only a question that states a bound has one."""

    @classmethod
    def make_model(cls, value: A) -> Any:
        """Return what can be used again and again; only a query with `is_model` has one."""
        raise NotImplementedError(f"an answer to {cls.kind} is not a model")

    @classmethod
    @abstractmethod
    def example(cls) -> Self:
        """A query with sensible parameters, for the contract suite and the docs."""

    @classmethod
    def audits(cls, *, quick: bool) -> Iterable[Any]:
        """Attacks on the mechanisms: the findings of `audit` in the question's own folder, if it has one."""
        package = sys.modules[cls.__module__].__package__
        if not package or not is_there(f"{package}.audit"):
            return ()
        findings: Iterable[Any] = load(f"{package}.audit").findings(quick=quick)
        return findings

    @classmethod
    def accounts(cls) -> Any:
        """Accounts by hand of every draw of `answer`, mode by mode: `ACCOUNTS` of `audit` in the query's own package.

        A query without a package overrides this. The contract suite refuses a query that has none.
        """
        package = sys.modules[cls.__module__].__package__
        return getattr(load(f"{package}.audit"), "ACCOUNTS", None) if package and is_there(f"{package}.audit") else None

    def to_json(self) -> dict[str, Any]:
        """The parameters, exactly, as plain JSON."""
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The query that `to_json` described."""
        known = {item.name for item in fields(cls)}
        unknown = sorted(set(stored) - known)
        if unknown:
            raise ParameterError(f"{cls.kind}: unknown {', '.join(unknown)}; it takes {', '.join(sorted(known))}.")
        return cls(
            **{name: Loss.from_json(value) if name == "loss" else _rich(value) for name, value in stored.items()}
        )


class ReleaseLike(Protocol):
    """What the ledger has a number for, such as a release."""

    @property
    def ledger_id(self) -> int: ...


def normalise_fields(query: Query[Any, Any]) -> None:
    """Take settings of numpy, lists and releases for what they are: plain numbers, tuples, and the number of a ledger
    entry, which fit into JSON and can be compared; one name is a list of one. Refuse what is no number where one is
    needed."""
    for item in fields(query):
        value = _make_plain(getattr(query, item.name))
        if isinstance(value, str) and str(item.type).startswith("tuple[str, ...]"):
            value = (value,)
        if not isinstance(value, _NUMBERS.get(str(item.type), object)):
            raise ParameterError(f"{item.name}: {value!r} is not a number; pass one, such as 1.5.")
        object.__setattr__(query, item.name, value)


def require_settings_of_mode(query: DataclassInstance) -> None:
    """Refuse a setting of a mode that was not chosen: it would be read, and change nothing."""
    for item in fields(query):
        when: Condition | None = item.metadata.get("when")
        if when is not None and not when.holds(query):
            given = getattr(query, item.name)
            if given is not item.default and given != item.default:
                mode = when.text.removeprefix("with ")
                raise ParameterError(
                    f"{item.name}: it is a setting of {mode}, and {when.chooser} is "
                    f"{getattr(query, when.chooser)}. Leave it out, or choose {mode}."
                )


def ordered_fields(query: type[Query[Any, Any]]) -> list[Field[Any]]:
    """Return the fields of a query as people read them: required ones first, and inherited ones last."""
    inherited = {name for base in query.__mro__[1:] for name in getattr(base, "__dataclass_fields__", ())}
    return sorted(fields(query), key=lambda item: (item.default is not MISSING, item.name in inherited))


def _is_meant(query: Query[Any, Any], item: Field[Any]) -> bool:
    """Whether a setting was given, or holds by itself, and means something in the chosen mode."""
    when: Condition | None = item.metadata.get("when")
    away = when is not None and not when.holds(query)
    return not (away or item.name == "loss" or getattr(query, item.name) is None)


def _in_words(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case tuple():
            return " and ".join(map(_in_words, value)) or "none"
        case Schema():
            return f"of {len(value.names or ())} columns"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _plain(value: Any) -> Any:
    match value:
        case str() | int() | float() | None:  # most settings, and told sooner than whether one is a Jsonable
            return value
        case Jsonable():
            return value.to_json()
        case Fraction():
            return str(value)
        case tuple():
            return [_plain(item) for item in value]
        case _:
            return value


_NUMBERS: Final[Mapping[str, Any]] = {"float": int | float, "float | None": int | float | None}


def _make_plain(value: Any) -> Any:
    value = getattr(value, "ledger_id", value)
    plain = value.tolist() if type(value).__module__ == "numpy" else value
    return tuple(map(_make_plain, plain)) if isinstance(plain, list | tuple) else plain


def _rich(value: Any) -> Any:
    return tuple(map(_rich, value)) if isinstance(value, list) else value
