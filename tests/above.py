"""A question of our own, to show that nothing above the rooms knows which questions there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from wallflower.audit import Finding, Floats, ScriptedNoise, World, audit_bound, audit_exact
from wallflower.audit.answers import Accounts, Case, LawCheck, audit_cases, laplace
from wallflower.audit.laws import audit_law, law_of
from wallflower.data import Points, Table
from wallflower.errors import LossMismatch, ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.query import Option, Plan, PublicFacts, Query, Reading, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Above(Query[Points, int]):
    """Count the records whose first column is above a public bar."""

    kind: ClassVar[str] = "above"
    label: ClassVar[str] = "above-the-bar/1"
    question: ClassVar[str] = "How many records are above the bar?"
    proof: ClassVar[str] = "[DMNS06, Prop 1]"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    no_picture_because: ClassVar[str] = "a number, which the report draws with its interval"

    bar: float = field(metadata={"help": "records above this are counted"})
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    columns: tuple[str, ...] | None = field(default=None, metadata={"help": "columns to look at; all when left out"})
    side: str = field(default="above", metadata={"help": "which side of the bar", "choices": ("above", "below")})
    clamp: bool = field(default=True, metadata={"help": "keep the answer between 0 and the number of records"})
    most: int | None = field(default=None, metadata={"help": "never answer more than this"})

    def __post_init__(self) -> None:
        if not self.bar < 1e9:
            raise ParameterError("above: bar must be a finite number below 1e9. Choose another.")
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch("above: it has a theorem for a pure loss only. Pass ε alone.")

    def cost(self) -> Loss:
        return self.loss

    def plan(self, *, n: int, dimension: int) -> Plan:
        width = 3.0 / float(self.loss.amount)
        option = Option(mechanism="laplace", figures={"error": width / 3, "half_width": width}, note="plain")
        return Plan(
            query=self.label,
            cost=self.loss,
            facts={"n": n, "dimension": dimension},
            chosen="laplace",
            headings={"error": "typical error ±", "half_width": "95 % within ±"},
            options=(option,),
            useful=width < 20 * n,
            reason="the noise is small" if width < 20 * n else "the noise drowns the answer",
            smallest_useful_epsilon=str(Fraction(3, 20 * n)),
            curve=tuple((epsilon, 3.0 / epsilon) for epsilon in (0.1, 0.2, 0.5, 1.0, 2.0)),
            measure="half-width of the 95 % interval",
        )

    def view(self, data: Any) -> Points:
        points = data.points(self.columns) if isinstance(data, Table) else data
        return points if self.columns is None or points.columns == self.columns else points.subspace(self.columns)

    def answer(self, data: Points, noise: Noise) -> int:
        above = count_above(data.values, self.bar)
        count = above if self.side == "above" else data.n - above
        noisy = count + noise.laplace(1 / self.loss.amount)
        kept = max(0, min(data.n, noisy)) if self.clamp else noisy
        return kept if self.most is None else min(kept, self.most)

    def reading(self, value: int, facts: PublicFacts) -> Reading:
        width = 3.0 / float(self.loss.amount)
        interval = (max(0.0, value - width), min(float(facts.n), value + width))
        words = f"About {value} of {facts.n} records are {self.side} the bar."
        return Reading(mechanism="laplace", interval=interval, text=words, extras={"share": value / facts.n})

    @classmethod
    def example(cls) -> Self:
        return cls(bar=1.5, loss=Loss("0.5"))

    @classmethod
    def audits(cls, *, quick: bool) -> Iterator[Finding]:
        yield from attack(cls(bar=1.5, loss=Loss("1")))
        yield from audit_cases(cls.accounts().cases)

    @classmethod
    def accounts(cls) -> Accounts:
        def case(name: str, **details: Any) -> Case:
            return Case(
                name=name,
                query=cls(bar=1.5, loss=Loss("1"), **details),
                tables=ADJACENT,
                parts=(laplace("count", moves=1, epsilon=1),),
                released=None if details.get("most") else lambda value: [int(value)],
                laws=(LawCheck(parts=("count",), least=0.99, seen=lambda value: value >= 2),),
            )

        return Accounts(
            cases=(case("above"), case("below, unclamped", side="below", clamp=False), case("at most 2", most=2)),
            without_draws=frozenset({"columns"}),
        )


def count_above(values: Floats, bar: float) -> int:
    return int((values[:, 0] > bar).sum())


# Attacks

ADJACENT = tuple(Points.from_array([[0.0], [9.0], [high]], name="made-up") for high in (0.0, 9.0))
WORLD = World(((0.0,), (1.5,), (2.0,)), 3)


def attack(query: Above) -> Iterator[Finding]:
    exact = partial(count_above, bar=1.5)
    yield audit_exact(exact, _brute, WORLD.arrays(), name="exact count")
    broken = partial(count_above, bar=1.0)
    yield audit_exact(broken, _brute, WORLD.arrays(), name="broken: the bar itself is above", expected=True)
    yield audit_bound(partial(_hidden, query), exact, WORLD, name="what the noise hides")
    laws = [law_of(partial(query.answer, points)) for points in ADJACENT]
    yield audit_law(*laws, claimed=query.loss, name="answer")
    short = replace(query, loss=Loss(query.loss.epsilon * Fraction(10, 9)))
    laws = [law_of(partial(short.answer, points)) for points in ADJACENT]
    yield audit_law(*laws, claimed=query.loss, name="broken: a tenth short", expected=True)


def _brute(values: Floats) -> int:
    return len([place for (place,) in values.tolist() if place > 1.5])


def _hidden(query: Above, values: Floats) -> float:
    """By how much the noise lets one record move the count, by its own word."""
    script = ScriptedNoise()
    query.answer(Points.from_array(np.array(values), name="made-up"), script)
    return float(script.asked[0][1] * query.loss.epsilon)
