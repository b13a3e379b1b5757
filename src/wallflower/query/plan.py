"""Plans: what to expect of a question before anything is spent, and how good an answer was in the end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from wallflower.machine.lazy import load
from wallflower.privacy import Loss
from wallflower.query.accuracy import Quality
from wallflower.text import Message, t

Scale = Literal["log", "linear"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What one way of answering would give.

    mechanism  its name
    figures    what it would give, by the names that the plan has headings for
    note       what is to be known of it
    """

    mechanism: str
    figures: Mapping[str, float]
    note: str = ""


class PlanRenderer(Protocol):
    """Who shows plans: `report.plans`, as `wallflower/__init__.py` says."""

    def text(self, plan: Plan, /) -> str: ...

    def card(self, plan: Plan, /) -> str: ...

    def figure(self, plan: Plan, /) -> Any: ...

    def frame(self, plan: Plan, /) -> Any: ...

    def write(self, path: Path, plan: Plan, /) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan:
    """What to expect before anything is spent, from public facts only.

    A plan costs nothing and looks at no record. In a notebook it shows itself as a card; `print(plan)` says the same.

    query                    the word of the question, such as count
    cost                     what an answer would cost, as the query states it
    facts                    the public facts that it rests on, such as the number of records
    chosen                   the way to answer that would be used
    headings                 what each figure of an option is called, in the order to show them
    options                  the ways to answer, with what each would give
    useful                   whether the noise leaves something of the answer
    reason                   the figures that say so
    conditions               public facts to check first, each with a remedy
    smallest_useful_epsilon  from which loss on it would be
    curve                    the measure at each amount of the loss
    measure                  what the curve shows
    scale                    how the measure is drawn
    notes                    what public facts warn of
    booked                   what the account would be charged, in its unit of protection, where that is known
    cost_text                the cost and, where it differs, what would be booked, in words
    affords                  how many such questions the budget would answer now, where a ledger was at hand
    """

    query: str
    cost: Loss
    facts: Mapping[str, int]
    chosen: str
    headings: Mapping[str, str]
    options: tuple[Option, ...]
    useful: bool
    reason: str
    smallest_useful_epsilon: str | None
    curve: tuple[tuple[float, float], ...] = ()
    measure: str = ""
    scale: Scale = "log"
    conditions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    booked: Loss | None = None
    cost_text: str = ""
    affords: int | None = None

    @property
    def grade(self) -> Message:
        """useful, check first or not useful: a condition never lets a plan be called useful."""
        return t("not useful") if not self.useful else t("check first") if self.conditions else t("useful")

    @property
    def verdict(self) -> str:
        """The grade with its reason."""
        return t("{grade}: {reason}", grade=self.grade, reason=self.reason)

    @property
    def quality(self) -> Quality:
        """The accuracy of an answer whose query states no more of it."""
        return Quality(
            "moderate noise" if self.useful else "mostly noise", t("by the plan: {reason}", reason=self.reason)
        )

    def plot(self) -> Any:
        """A matplotlib Figure of what each amount of the loss would give; the planned one is marked."""
        return _renderer().figure(self)

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each option: its mechanism, its figures, whether it is the chosen one."""
        return _renderer().frame(self)

    def report(self, path: str | Path) -> Path:
        """Write the plan as one HTML page, complete in itself, and return where it is."""
        place = Path(path)
        _renderer().write(place, self)
        return place

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, exact where it matters."""
        public = {item.name: getattr(self, item.name) for item in fields(self)}
        return public | {
            "cost": self.cost.to_json(),
            "booked": None if self.booked is None else self.booked.to_json(),
            "facts": dict(self.facts),
            "headings": dict(self.headings),
            "options": [{"mechanism": each.mechanism, **each.figures, "note": each.note} for each in self.options],
            "curve": [list(point) for point in self.curve],
            "verdict": self.verdict,
            "conditions": list(self.conditions),
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The plan that `to_json` described; unknown entries of a newer version are left out."""
        known = {item.name: stored[item.name] for item in fields(cls) if item.name in stored}
        options = tuple(
            Option(
                mechanism=each["mechanism"],
                figures={name: value for name, value in each.items() if name not in ("mechanism", "note")},
                note=each["note"],
            )
            for each in stored["options"]
        )
        curve = tuple((point[0], point[1]) for point in stored["curve"])
        booked = stored.get("booked")
        told = {"cost": Loss.from_json(stored["cost"]), "options": options, "curve": curve}
        told |= {"booked": None if booked is None else Loss.from_json(booked)}
        more = {name: tuple(stored.get(name, ())) for name in ("conditions", "notes")}
        return cls(**known | told | more)

    def _repr_html_(self) -> str:
        return _renderer().card(self)

    def __repr__(self) -> str:
        return f"Plan({self.query} at {self.cost}: {self.verdict})"

    def __str__(self) -> str:
        return _renderer().text(self)


def _renderer() -> PlanRenderer:
    """Return `wallflower.report.plans`, which imports this module and so is imported when first used."""
    renderer: PlanRenderer = load("wallflower.report.plans")
    return renderer


def least_amount(enough: Callable[[str], bool]) -> str | None:
    """The least amount of a loss, to two digits, that is `enough`; None when a thousand is not.

    >>> least_amount(lambda amount: float(amount) >= 0.3141)
    '0.32'
    """
    low, high = -6.0, 3.0
    if not enough("1000"):
        return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(f"{10**middle:.9f}") else (middle, high)
    return two_digits_up(10**high)


def two_digits_up(amount: float) -> str:
    """Round up to two significant digits, as text.

    >>> two_digits_up(0.08173), two_digits_up(2.0), two_digits_up(0.99991)
    ('0.082', '2', '1')
    """
    unit = Fraction(10) ** (math.floor(math.log10(amount)) - 1)
    return f"{float(math.ceil(Fraction(amount) / unit * (1 - Fraction(1, 10**9))) * unit):.10f}".rstrip("0").rstrip(".")
