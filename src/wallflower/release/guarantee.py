"""What a release promises, to whom, and which public facts it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Self

from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.query import PublicFacts

_SHOWN_AT: Final = "1e-6"


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release promises, and to whom.

    loss    the loss that was stated
    public  columns whose cells were taken for public: adjacent tables agree in these
    change  the change that is hidden at this loss, in words, where a query assumes one that is smaller than the public
            range; empty: the change of the loss's adjacency
    booked  with a change: what the budget was charged, which covers changes within the whole public range
    theorems  what the promise rests on, by how it was checked (`wallflower.theorems`)

    >>> Guarantee(Loss("0.5")).words.split(":")[0]
    'Pure differential privacy at ε=1/2'
    """

    loss: Loss
    public: tuple[str, ...] = ()
    change: str = ""
    booked: Loss | None = None
    theorems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        """Which guarantee it is."""
        return self.loss.kind

    @property
    def epsilon(self) -> float | None:
        """ε, where it has one."""
        return None if self.kind is Kind.ZCDP else _number(self.loss.amount)

    @property
    def delta(self) -> float:
        """δ, 0 where it has none."""
        return _number(self.loss.delta)

    @property
    def rho(self) -> float | None:
        """ρ, where it is zero-concentrated."""
        return _number(self.loss.amount) if self.kind is Kind.ZCDP else None

    @property
    def adjacency(self) -> Neighbours:
        """Whose change is hidden."""
        return self.loss.neighbours

    @property
    def unit(self) -> str:
        """The change that is hidden, in words."""
        return self.change or self.adjacency.words

    @property
    def words(self) -> str:
        """What it promises, in a sentence or two."""
        cells = " and ".join(self.public)
        kept = f" The record keeps its {cells}, which the schema calls public: that is not hidden." if cells else ""
        words = f"{_WORDS[self.kind](self.loss, self.unit)}{kept}"
        if not self.change or self.booked is None:
            return words
        return (
            f"{words} Larger changes, up to the whole public range, are covered by the {self.booked} that was charged."
        )

    @property
    def evidence(self) -> str:
        """How what it rests on was checked, in words."""
        return "; ".join(f"{name}: {', '.join(labels)}" for name, labels in self.theorems.items())

    def to_json(self) -> dict[str, Any]:
        said = {"kind": str(self.kind), "epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        exact = {name: str(value) for name, value in self.loss.to_json().items()}
        return said | {
            "adjacency": str(self.adjacency),
            "words": self.words,
            "exact": str(self.loss),
            "loss": exact,
            **({"theorems": {name: list(labels) for name, labels in self.theorems.items()}} if self.theorems else {}),
            **({"public": list(self.public)} if self.public else {}),
            **({"change": self.change} if self.change else {}),
            **({"booked": {name: str(value) for name, value in self.booked.to_json().items()}} if self.booked else {}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        booked = stored.get("booked")
        return cls(
            Loss.from_json(stored["loss"]),
            public=tuple(stored.get("public", ())),
            change=stored.get("change", ""),
            booked=None if booked is None else Loss.from_json(booked),
            theorems={name: tuple(labels) for name, labels in stored.get("theorems", {}).items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The public facts a reading may use: it never sees the records.

    n          the number of records, or a bound of it
    dimension  the number of columns that were looked at
    columns    their names
    bound      n is only a public bound: the number of records is protected itself
    """

    n: int
    dimension: int
    columns: tuple[str, ...]
    bound: bool = False

    @property
    def records(self) -> str:
        """How many records there are, in words."""
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


def certainty(loss: Loss) -> str | None:
    """What a loss means: how sure somebody who was undecided can become. None where it has no plain ε.

    It holds for somebody who knows all the rest. Where records depend on each other, as those of twins, and neither is
    known, an answer tells of both. With a δ single answers may tell more, and more often than δ; what holds is the
    share of guesses that are right: how sure somebody becomes on average, (e^ε + δ) / (1 + e^ε) at most.

    >>> certainty(Loss("0.5"))
    'Even someone who knows all the other data, and is undecided (50 %) about yours, becomes at most 62.3 % sure.'
    >>> certainty(Loss(36))
    'Someone who knows all the other data, and is undecided (50 %) about yours, can become over 99.9 % sure.'
    """
    if loss.kind not in (Kind.PURE, Kind.APPROXIMATE):
        return None
    fade = math.exp(-min(float(loss.amount), 100.0))
    sure = 100 * (1 + float(loss.delta) * fade) / (1 + fade)
    shown = math.ceil(sure * 10 + 1e-9) / 10
    who = "omeone who knows all the other data, and is undecided (50 %) about yours,"
    mean = " on average" if loss.delta else ""
    if shown > _HIGHEST_SHOWN:
        return f"S{who} can become over {_HIGHEST_SHOWN} % sure{mean}."
    return f"Even s{who} becomes at most {shown:g} % sure{mean}."


_HIGHEST_SHOWN: Final = 99.9  # per cent


def _number(exact: Fraction) -> float:
    return int(exact) if exact.denominator == 1 else float(exact)


def _times(epsilon: Fraction) -> str:
    if epsilon > 10:
        return f"e^{float(epsilon):g} times"
    return f"{math.ceil(math.exp(epsilon) * 100) / 100:g} times"


def _say_pure(loss: Loss, change: str) -> str:
    return (
        f"Pure differential privacy at {loss}: with {change}, every answer stays at most "
        f"{_times(loss.amount)} as likely."
    )


def _say_approximate(loss: Loss, change: str) -> str:
    return (
        f"(ε, δ)-differential privacy with ε={loss.amount}, δ={float(loss.delta):g}: with {change}, the probability of "
        f"any set of answers is at most {_times(loss.amount)} what it was, plus δ."
    )


def _say_concentrated(loss: Loss, change: str) -> str:
    return (
        f"Zero-concentrated differential privacy at {loss}, which implies ε={float(loss.at(_SHOWN_AT).amount):.4g} "
        f"with δ={_SHOWN_AT}. Neighbours: {change}."
    )


def _say_output_constrained(loss: Loss, change: str) -> str:
    return (
        f"Output-constrained privacy at {loss}, which is weaker than differential privacy: with "
        f"{change}, every answer stays at most {_times(loss.amount)} as likely, but only where that "
        "change leaves the record an outlier in exactly the same contexts. A change that does not is not hidden at "
        "all; the answer itself proves that the record is an outlier there; and several people together are not "
        "protected as a group."
    )


def _say_other(loss: Loss, change: str) -> str:
    return f"{loss.kind.capitalize()} privacy at {loss}. Neighbours: {change}."


_WORDS: Final[Mapping[Kind, Callable[[Loss, str], str]]] = {
    Kind.PURE: _say_pure,
    Kind.APPROXIMATE: _say_approximate,
    Kind.ZCDP: _say_concentrated,
    Kind.OUTPUT_CONSTRAINED: _say_output_constrained,
    Kind.METRIC: _say_other,
}
