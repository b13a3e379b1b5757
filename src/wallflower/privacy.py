"""What privacy costs: exact losses, what they protect, and how they add up.

A `Loss` is a pair of exact rationals together with its *kind* (which theorem it belongs to) and its *neighbours*
(whose change it hides). Only like adds to like: `COMPOSE` lists the sums that are theorems, everything else raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Literal, Protocol

from wallflower.errors import LossMismatch, ParameterError
from wallflower.text import Message, join, t

Exact = str | int | Fraction | Decimal

_NUMBER: Final = re.compile(r"\d{1,12}(\.\d{1,40})?([eE][-+]?\d{1,2})?|\d{1,12}/\d{1,40}", re.ASCII)
_LARGEST: Final = 10**6


class Kind(StrEnum):
    """The theorem a loss belongs to."""

    PURE = "pure"
    APPROXIMATE = "approximate"
    ZCDP = "zcdp"
    OUTPUT_CONSTRAINED = "output-constrained"
    METRIC = "metric-local"


class Neighbours(StrEnum):
    """Whose change a loss hides: the unit of protection."""

    REPLACE_ONE = "replace-one-record"
    ADD_REMOVE = "add-or-remove-one-record"
    ENTRY = "one-entry-of-one-observation"
    PERSON = "one-person-over-the-stream"
    WINDOW = "one-person-over-a-window"
    READING = "one-reading"

    @property
    def text(self) -> Message:
        return _NEIGHBOUR_WORDS[self]


_NEIGHBOUR_WORDS: Final[Mapping[Neighbours, Message]] = {
    Neighbours.REPLACE_ONE: t("any one record replaced by any other (the number of records is public)"),
    Neighbours.ADD_REMOVE: t("any one record added or removed"),
    Neighbours.ENTRY: t("any one entry of one observation changed within its public range"),
    Neighbours.PERSON: t("any one person's contributions to the whole stream changed"),
    Neighbours.WINDOW: t("any one person's contributions to a window of consecutive observations changed"),
    Neighbours.READING: t("any one reading moved, by an amount that scales with how far"),
}

Unit = Literal["record", "membership", "constrained", "entry", "person", "window"]
UNITS: Final[Mapping[str, Neighbours]] = {
    "record": Neighbours.REPLACE_ONE,
    "membership": Neighbours.ADD_REMOVE,
    "constrained": Neighbours.ADD_REMOVE,
    "entry": Neighbours.ENTRY,
    "person": Neighbours.PERSON,
    "window": Neighbours.WINDOW,
}


def protect(loss: Loss, unit: Unit) -> Loss:
    """A loss as it is stated, for this unit of protection."""
    kind = Kind.OUTPUT_CONSTRAINED if unit == "constrained" else loss.kind
    return Loss(loss.amount, delta=loss.delta, kind=kind, neighbours=UNITS[unit])


# Which losses may be added, and what the sum is. A pair that is missing is not a theorem we have.
COMPOSE: Final[Mapping[tuple[Kind, Kind], Kind]] = {
    (Kind.PURE, Kind.PURE): Kind.PURE,
    (Kind.PURE, Kind.APPROXIMATE): Kind.APPROXIMATE,
    (Kind.APPROXIMATE, Kind.PURE): Kind.APPROXIMATE,
    (Kind.APPROXIMATE, Kind.APPROXIMATE): Kind.APPROXIMATE,
    (Kind.ZCDP, Kind.ZCDP): Kind.ZCDP,
    (Kind.OUTPUT_CONSTRAINED, Kind.OUTPUT_CONSTRAINED): Kind.OUTPUT_CONSTRAINED,
    (Kind.METRIC, Kind.METRIC): Kind.METRIC,
}

_FAMILY: Final[Mapping[Kind, str]] = {
    Kind.PURE: "epsilon-delta",
    Kind.APPROXIMATE: "epsilon-delta",
    Kind.ZCDP: "zcdp",
    Kind.OUTPUT_CONSTRAINED: "output-constrained",
    Kind.METRIC: "metric-local",
}


def exact(value: Exact, name: str = "epsilon") -> Fraction:
    """Read a number exactly as it was written.

    >>> exact("0.1")
    Fraction(1, 10)
    """
    if isinstance(value, float):
        raise ParameterError(f"{name}: {value!r} is a float and only nearly what you wrote; pass '{value!r}' as text.")
    if isinstance(value, bool) or not isinstance(value, (str, int, Fraction, Decimal)):
        raise ParameterError(f"{name}: got a {type(value).__name__}; pass a number as text, such as '0.5' or '1/2'.")
    number = Fraction(value) if isinstance(value, int | Fraction) else _read(str(value).strip(), name)
    if not 0 <= number <= _LARGEST:
        raise ParameterError(f"{name}: the number is outside 0 to {_LARGEST:,}; a loss is a small positive number.")
    return number


def _read(text: str, name: str) -> Fraction:
    if not _NUMBER.fullmatch(text):
        raise ParameterError(
            f"{name}: {text[:40]!r} is not a number that is zero or more; write '0.5', '1/2' or '1e-6'."
        )
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ParameterError(f"{name}: {text[:40]!r} divides by zero; write '0.5', '1/2' or '1e-6'.") from None


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Loss:
    """A privacy loss: exact, of one kind, for one notion of neighbours.

    Losses that are alike add up and can be compared; others are refused.

    epsilon     ε, or ρ where the kind is zero-concentrated: as text, a whole number or a Fraction, never a float
    delta       δ of (ε, δ)-differential privacy; default: 0, which is pure
    kind        pure, approximate, zero-concentrated, output-constrained or metric; default: by `delta`
    neighbours  whose change is hidden; default: any one record replaced by any other

    >>> Loss("0.5") + Loss("0.25", delta="1e-6")
    Loss(ε=3/4, δ=1/1000000)
    >>> Loss(0.5)
    Traceback (most recent call last):
    ...
    wallflower.errors.ParameterError: epsilon: 0.5 is a float and only nearly what you wrote; pass '0.5' as text.
    """

    kind: Kind
    amount: Fraction
    delta: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        epsilon: Exact,
        *,
        delta: Exact = 0,
        kind: Kind | None = None,
        neighbours: Neighbours = Neighbours.REPLACE_ONE,
    ) -> None:
        small = exact(delta, "delta")
        if small >= 1:
            raise ParameterError(
                f"delta: {delta} is 1 or more and protects nobody; pass less than one over the records."
            )
        inferred = Kind.APPROXIMATE if small else Kind.PURE
        kind = inferred if kind is None or kind in (Kind.PURE, Kind.APPROXIMATE) else Kind(kind)
        if small and kind is not Kind.APPROXIMATE:
            raise ParameterError(f"delta: a {kind} loss has no delta; leave it out.")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "amount", exact(epsilon, "rho" if kind is Kind.ZCDP else "epsilon"))
        object.__setattr__(self, "delta", small)
        object.__setattr__(self, "neighbours", Neighbours(neighbours))

    @classmethod
    def zcdp(cls, rho: Exact, *, neighbours: Neighbours = Neighbours.REPLACE_ONE) -> Loss:
        """A zero-concentrated loss.

        >>> Loss.zcdp("0.02") + Loss.zcdp("0.03")
        Loss(ρ=1/20)
        """
        return cls(rho, kind=Kind.ZCDP, neighbours=neighbours)

    @property
    def epsilon(self) -> Fraction:
        """ε of a pure, approximate, output-constrained or metric loss."""
        if self.kind is Kind.ZCDP:
            raise LossMismatch(f"{self} has no epsilon of its own; `.at(delta='1e-6')` shows it as (ε, δ).")
        return self.amount

    @property
    def rho(self) -> Fraction:
        """ρ of a zero-concentrated loss."""
        if self.kind is not Kind.ZCDP:
            raise LossMismatch(f"{self} is a {self.kind} loss and has no rho; state one with Loss.zcdp('0.02').")
        return self.amount

    @property
    def account(self) -> str:
        """The line of the ledger this loss is booked on: losses with one account add up."""
        return f"{_FAMILY[self.kind]}/{self.neighbours}"

    def under(self, neighbours: Neighbours) -> Loss:
        """The same amounts, for another notion of neighbours (a statement, not a conversion)."""
        return Loss(self.amount, delta=self.delta, kind=self.kind, neighbours=neighbours)

    def __add__(self, other: Loss) -> Loss:
        kind = self._like(other, "added to")
        return Loss(self.amount + other.amount, delta=self.delta + other.delta, kind=kind, neighbours=self.neighbours)

    def __le__(self, other: Loss) -> bool:
        """Losses are partially ordered: every part must fit."""
        self._like(other, "compared with")
        return self.amount <= other.amount and self.delta <= other.delta

    def times(self, count: int) -> Loss:
        """`count` such losses in a row."""
        return Loss(self.amount * count, delta=self.delta * count, kind=self.kind, neighbours=self.neighbours)

    def less(self, other: Loss) -> Loss:
        """What is left of this budget after `other`, never below zero."""
        kind = self._like(other, "taken from")
        amount, delta = max(self.amount - other.amount, Fraction()), max(self.delta - other.delta, Fraction())
        return Loss(amount, delta=delta, kind=kind, neighbours=self.neighbours)

    def at(self, delta: Exact) -> Loss:
        """This zero-concentrated loss, shown as (ε, δ): ε rounded up to six digits [CKS20, Prop 12]."""
        small = exact(delta, "delta")
        epsilon = epsilon_of_zcdp(float(self.rho), float(small))
        return Loss(Fraction(math.ceil(epsilon * 10**6 + 1e-3), 10**6), delta=small, neighbours=self.neighbours)

    def to_json(self) -> dict[str, str]:
        """Exact, for the ledger."""
        return {"kind": self.kind, "amount": str(self.amount), "delta": str(self.delta), "neighbours": self.neighbours}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Loss:
        return cls(
            Fraction(stored["amount"]),
            delta=Fraction(stored["delta"]),
            kind=Kind(stored["kind"]),
            neighbours=Neighbours(stored["neighbours"]),
        )

    @property
    def text(self) -> Message:
        """The loss in decimals, for people.

        >>> Loss("1/2").text, Loss("2/3", delta="1e-6").text
        ('ε = 0.5', 'ε = 0.6667, δ = 1e-06')
        """
        amount = t("{symbol} = {amount}", symbol="ρ" if self.kind is Kind.ZCDP else "ε", amount=self.amount)
        return join(", ", [amount, t("δ = {delta}", delta=self.delta)]) if self.delta else amount

    @property
    def exact_text(self) -> str:
        """The loss as exact fractions, for programs.

        >>> Loss("0.5").exact_text
        'ε=1/2'
        """
        symbol = "ρ" if self.kind is Kind.ZCDP else "ε"
        return f"{symbol}={self.amount}" + (f", δ={self.delta}" if self.delta else "")

    def __str__(self) -> str:
        return "".join(self.text)

    def __repr__(self) -> str:
        return f"Loss({self.exact_text})"

    def _like(self, other: Loss, verb: str) -> Kind:
        kind = COMPOSE.get((self.kind, other.kind))
        if kind is None or self.neighbours is not other.neighbours:
            raise LossMismatch(
                f"a {self.kind} loss for {self.neighbours} cannot be {verb} a {other.kind} loss for "
                f"{other.neighbours}. Only like adds to like: keep a budget for each."
            )
        return kind


class Chargeable(Protocol):
    """What a ledger needs to know of a question: its lasting name, its price, its parameters."""

    @property
    def label(self) -> str: ...

    def cost(self) -> Loss: ...

    def to_json(self) -> dict[str, Any]: ...


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """The smallest ε we can prove for a ρ-zCDP mechanism at this δ [CKS20, Prop 12 and Cor 13].

    The simple bound is rho + 2*sqrt(rho*ln(1/delta)); optimising the order of the Rényi divergence beats it.

    >>> round(epsilon_of_zcdp(0.02, 1e-6), 3) < round(0.02 + 2 * math.sqrt(0.02 * math.log(1e6)), 3)
    True
    """
    if rho == 0:
        return 0.0
    if not 0 < delta < 1:
        raise ParameterError("delta: showing a zCDP loss as (ε, δ) needs a delta between 0 and 1, such as '1e-6'.")

    def bound(log_beyond: float) -> float:
        beyond = math.exp(log_beyond)  # the order of the divergence, less one
        return (1 + beyond) * rho - math.log1p(1 / beyond) - (math.log(delta) + math.log1p(beyond)) / beyond

    low, high = math.log(1e-9), math.log(1e9)  # every order is valid; the bound is unimodal here, so this is the best
    for _ in range(100):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, right) if bound(left) < bound(right) else (left, high)
    return max(0.0, bound((low + high) / 2))


@lru_cache(maxsize=1024)
def zcdp_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest ρ whose (ε, δ) display stays within these (found by halving, rounded down).

    >>> rho = zcdp_of_epsilon(1.0, 1e-6)
    >>> 0.999 < epsilon_of_zcdp(rho, 1e-6) <= 1.0
    True
    """
    low, high = 0.0, 1.0 + epsilon
    while epsilon_of_zcdp(high, delta) <= epsilon:
        high *= 2
    for _ in range(64):
        middle = (low + high) / 2
        low, high = (middle, high) if epsilon_of_zcdp(middle, delta) <= epsilon else (low, middle)
    return low
