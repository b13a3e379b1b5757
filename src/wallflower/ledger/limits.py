"""What an account may spend: a limit with its certificate, the sums of what was spent, and the one rule between them.

accept, when   Σδ stays within the part of δ for questions, and
  sum            Σε stays within ε
  concentrated   Σρ stays within ρ, which with the other part of δ implies ε
  either         one of the two holds; once an answer has named records, only the first of them may

Theorems and proofs: proof.md, labels (F1) (F2) (F3) (F4), (N) for answers that name records, and (L) for limits that
change. All is decided in exact rationals.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final, Literal, Self, get_args

from wallflower.errors import ParameterError
from wallflower.privacy import Exact, Kind, Loss, exact
from wallflower.units import Price, log

Accounting = Literal["sum", "either", "concentrated"]
Part = Literal["epsilon", "delta", "rho", "squares", "pace"]

LIMIT_GRID: Final = 10**12
SHOWN_AT: Final = Fraction(1, 10**6)  # the delta at which a limit that was given as ρ is shown as ε
_ORDERS: Final = 1000
_CLOSE: Final = Context(prec=60)
_SLACK: Final = Decimal("1e-40")  # more than sixty digits can lose on the way


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """Sums of prices. `epsilon` leaves out losses that are ρ alone, of which `unsummed` counts the number; `rho` leaves
    out answers that name records, which have no ρ, and `unsquared` counts these.  (N)"""

    epsilon: Fraction = Fraction()
    delta: Fraction = Fraction()
    rho: Fraction = Fraction()
    unsummed: int = 0
    unsquared: int = 0

    def plus(self, price: Price, times: int = 1) -> Spending:
        """Return the sum with N more of these."""
        return Spending(
            epsilon=self.epsilon + times * (price.epsilon or 0),
            delta=self.delta + times * price.delta,
            rho=self.rho + times * (price.rho or 0),
            unsummed=self.unsummed + (times if price.epsilon is None else 0),
            unsquared=self.unsquared + (times if price.rho is None else 0),
        )

    def to_json(self) -> dict[str, str]:
        return {item.name: str(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        amounts = {name: Fraction(stored[name]) for name in ("epsilon", "delta", "rho")}
        return cls(**amounts, unsummed=int(stored["unsummed"]), unsquared=int(stored["unsquared"]))

    def __add__(self, other: Spending) -> Spending:
        return Spending(**{item.name: getattr(self, item.name) + getattr(other, item.name) for item in fields(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A promise (ε, δ + convert), and how losses are held to it.

    `delta` is what questions may spend, `convert` what the sum of squares needs; `rho` is the most that sum may reach,
    and `order` proves it: order·rho + ln(1 - 1/order) - (ln convert + ln order)/(order - 1) <= ε.

    >>> Limit.of("3", delta="1e-6")
    Limit(ε = 3, δ = 1e-06, either)
    """

    epsilon: Fraction
    delta: Fraction = Fraction()
    convert: Fraction = Fraction()
    rho: Fraction = Fraction()
    order: Fraction = Fraction()
    accounting: Accounting = "sum"

    @classmethod
    def of(
        cls,
        epsilon: Exact,
        *,
        delta: Exact = 0,
        convert: Exact | None = None,
        accounting: Accounting | None = None,
    ) -> Self:
        """A limit of ε and δ in all; `convert`, the part of δ that the squares need, is half of it unless given."""
        whole, most = exact(delta, "delta"), exact(epsilon)
        chosen: Accounting = accounting or ("either" if whole else "sum")
        if chosen not in get_args(Accounting):
            raise ParameterError(
                f"accounting: {str(chosen)[:40]!r} is not known. It is one of {', '.join(get_args(Accounting))}. "
                "Choose one."
            )
        squares = exact(convert, "convert") if convert is not None else Fraction() if chosen == "sum" else whole / 2
        if whole >= 1 or squares > whole:
            raise ParameterError("delta, convert: delta is below 1, and convert a part of it. Pass less.")
        if chosen != "sum" and not squares:
            raise ParameterError(
                f"delta: {chosen} adds squares up, and that needs a part of delta. Pass a delta such as 1e-6, or "
                "choose sum, where losses add up as they are."
            )
        rho, order = certificate(most, squares)
        return cls(epsilon=most, delta=whole - squares, convert=squares, rho=rho, order=order, accounting=chosen)

    @classmethod
    def from_rho(cls, rho: Exact, *, delta: Exact = 0) -> Self:
        """A limit in ρ itself; the ε it is shown with holds at a δ of one in a million."""
        wanted, questions = exact(rho, "rho"), exact(delta, "delta")
        low, high = Fraction(), Fraction(1)
        while certificate(high, SHOWN_AT)[0] < wanted:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if certificate(middle, SHOWN_AT)[0] >= wanted else (middle, high)
        epsilon = Fraction(math.ceil(high * 10**6), 10**6)
        exact(epsilon, "rho: the epsilon that it is shown as")
        order = certificate(epsilon, SHOWN_AT)[1]
        return cls(
            epsilon=epsilon, delta=questions, convert=SHOWN_AT, rho=wanted, order=order, accounting="concentrated"
        )

    @property
    def holds(self) -> bool:
        """Whether the order proves the limit on squares."""
        if not self.rho:
            return True
        return (
            self.order > 1 and self.convert > 0 and _implied_epsilon(self.rho, self.order, self.convert) <= self.epsilon
        )

    @property
    def loss(self) -> Loss:
        """What is promised."""
        return Loss(self.epsilon, delta=self.delta + self.convert)

    def shortage(self, spent: Spending, price: Price) -> Part | None:
        """Which part does not suffice for one more such price; None: it fits."""
        after = spent.plus(price)
        if after.delta > self.delta:
            return "delta"
        adds = after.unsummed == 0 and after.epsilon <= self.epsilon
        if self.accounting == "concentrated" and after.unsquared:
            return "squares"
        squares = after.rho <= self.rho and not after.unsquared  # (N) once names were released, only the sum accepts
        fits = {"sum": adds, "concentrated": squares, "either": adds or (squares and not after.unsummed)}
        return None if fits[self.accounting] else "rho" if self.accounting == "concentrated" else "epsilon"

    def affords(self, spent: Spending, price: Price) -> int:
        """How many more such prices fit, one after another; a price of nothing fits a billion times."""
        low, high = 0, 10**9
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.shortage(spent.plus(price, middle - 1), price) is None
            low, high = (middle, high) if fits else (low, middle - 1)
        return low

    def scale(self, share: Fraction) -> Limit:
        """The same rule with a share of the limit: for a pace or for one analyst, of which nothing is promised."""
        return replace(self, epsilon=self.epsilon * share, rho=self.rho * share)

    def share_of_rho(self, epsilon: Fraction) -> Fraction:
        """The part of `rho` that a part of `epsilon` stands for: a third of ε is a third of ρ.

        >>> limit = Limit.of("3", delta="1e-6", accounting="concentrated")
        >>> limit.share_of_rho(Fraction(1)) == limit.rho / 3
        True
        """
        return self.rho * epsilon / self.epsilon if self.epsilon else Fraction()

    def to_json(self) -> dict[str, str]:
        return {item.name: str(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        numbers = {item.name: Fraction(stored[item.name]) for item in fields(cls) if item.name != "accounting"}
        return cls(**numbers, accounting=stored["accounting"])

    def __str__(self) -> str:
        return f"{self.loss}, {self.accounting}"

    def __repr__(self) -> str:
        return f"Limit({self})"


def limit_of(loss: Loss, *, convert: Exact | None = None, accounting: Accounting | None = None) -> Limit:
    """The limit that a steward states as a loss: (ε, δ), or ρ."""
    if loss.kind not in (Kind.PURE, Kind.APPROXIMATE, Kind.ZCDP):
        raise ParameterError(
            f"limit: what is {loss.kind} is no part of the sum that an account bounds. A limit is in epsilon and "
            "delta, or in rho. Output-constrained answers have an allowance (wallflower budget allow-constrained)."
        )
    if loss.kind is Kind.ZCDP:
        if convert is not None or accounting not in (None, "concentrated"):
            raise ParameterError("rho: a limit in rho is concentrated, with no delta to share. Leave the rest out.")
        return Limit.from_rho(loss.rho)
    return Limit.of(loss.epsilon, delta=loss.delta, convert=convert, accounting=accounting)


def certificate(epsilon: Fraction, convert: Fraction) -> tuple[Fraction, Fraction]:
    """The largest ρ, rounded down, that implies (ε, convert), and the order of the divergence that proves it."""
    if not convert or not epsilon:
        return Fraction(), Fraction()
    best = max((_order_near(epsilon, convert, step) for step in (-1, 0, 1)), key=lambda pair: pair[0])
    return best if best[0] > 0 else (Fraction(), Fraction())


def _order_near(epsilon: Fraction, convert: Fraction, step: int) -> tuple[Fraction, Fraction]:
    order = Fraction(max(round(_best_order(float(epsilon), log(convert)) * _ORDERS) + step, _ORDERS + 1), _ORDERS)
    margin = _CLOSE.subtract(_decimal(epsilon), _overhead(order, convert))
    found = _CLOSE.divide(_CLOSE.subtract(margin, _SLACK), _decimal(order))
    return Fraction(math.floor(Fraction(found) * LIMIT_GRID), LIMIT_GRID), order


def _best_order(epsilon: float, log_convert: float) -> float:
    def value(beyond: float) -> float:
        order = 1 + math.exp(beyond)
        overhead = math.log1p(-1 / order) - (log_convert + math.log(order)) / (order - 1)
        return (epsilon - overhead) / order

    low, high = math.log(1e-3), math.log(1e5)
    for _ in range(200):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if value(left) < value(right) else (low, right)
    return 1 + math.exp((low + high) / 2)


def _implied_epsilon(rho: Fraction, order: Fraction, convert: Fraction) -> Fraction:
    """An upper bound on the ε that ρ implies at this order."""
    product = _CLOSE.multiply(_decimal(order), _decimal(rho))
    return Fraction(_CLOSE.add(_CLOSE.add(product, _overhead(order, convert)), _SLACK))


def _overhead(order: Fraction, convert: Fraction) -> Decimal:
    logarithms = _CLOSE.add(_CLOSE.ln(_decimal(convert)), _CLOSE.ln(_decimal(order)))
    return _CLOSE.subtract(_CLOSE.ln(_decimal(1 - 1 / order)), _CLOSE.divide(logarithms, _decimal(order - 1)))


def _decimal(number: Fraction) -> Decimal:
    return _CLOSE.divide(Decimal(number.numerator), Decimal(number.denominator))


STARTER: Final = Limit.of(1)
