"""The contract every question keeps.

A query is a frozen value: its parameters, what it costs (`cost`, from parameters alone), what to expect of it
(`plan`, from public facts alone), the private answer (`answer`, the only method that sees data), and what may be
said about a released answer (`reading`, post-processing).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from wallflower.errors import ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Loss


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


D = TypeVar("D", bound=PublicFacts)
A = TypeVar("A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What one way of answering would give."""

    mechanism: str
    error: float
    half_width: float
    deviation: float
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to expect before anything is spent, from public facts only."""

    query: str
    cost: Loss
    facts: Mapping[str, int]
    chosen: str
    options: tuple[Option, ...]
    useful: bool
    verdict: str
    smallest_useful_epsilon: str | None
    curve: tuple[tuple[float, float], ...] = ()

    def to_json(self) -> dict[str, Any]:
        public = {item.name: getattr(self, item.name) for item in fields(self)}
        return public | {
            "cost": self.cost.to_json(),
            "facts": dict(self.facts),
            "options": [{item.name: getattr(option, item.name) for item in fields(Option)} for option in self.options],
            "curve": [list(point) for point in self.curve],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What may be said about a released value: computed from it and public facts alone."""

    mechanism: str
    interval: tuple[float, float] | None
    words: str
    extras: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Query(ABC, Generic[D, A]):
    """One question about outliers."""

    kind: ClassVar[str]
    label: ClassVar[str]
    question: ClassVar[str]
    proof: ClassVar[str]
    status: ClassVar[Status]

    @abstractmethod
    def cost(self) -> Loss:
        """What one answer spends; depends on the parameters only."""

    @abstractmethod
    def plan(self, *, n: int, dimension: int) -> Plan:
        """What to expect on a table of `n` records and `dimension` columns."""

    @abstractmethod
    def view(self, data: Any) -> D:
        """The part of the data this question looks at, or a typed refusal that depends on public facts only."""

    @abstractmethod
    def answer(self, data: D, noise: Noise) -> A:
        """The private answer."""

    @abstractmethod
    def reading(self, value: A, facts: PublicFacts) -> Reading:
        """What the released value says, and how surely."""

    @classmethod
    @abstractmethod
    def example(cls) -> Self:
        """A query with sensible parameters, for the contract suite and the docs."""

    @classmethod
    def audits(cls, *, quick: bool) -> Iterable[Any]:
        """Attacks on the mechanisms, as findings of `audit.py`; a room without any has none."""
        return ()

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
        return cls(**{name: _rich(name, value) for name, value in stored.items()})


def _plain(value: Any) -> Any:
    match value:
        case Loss():
            return value.to_json()
        case Fraction():
            return str(value)
        case tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def _rich(name: str, value: Any) -> Any:
    if name == "loss":
        return Loss.from_json(value)
    return tuple(value) if isinstance(value, list) else value
