"""A question of our own whose answer is a list: which sets of columns have the most records above a bar?"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Self

from wallflower import progress
from wallflower.audit import Finding, Floats, ScriptedNoise, World, audit_bound, audit_exact
from wallflower.audit.answers import Accounts, Case, LawCheck, audit_cases, laplace
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.data import Points, Table
from wallflower.errors import LossMismatch, ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss, exact
from wallflower.query import Bars, Option, Plan, PublicFacts, Query, Reading, Status

Ranked = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Query[Points, Ranked]):
    """Rank sets of columns by how many records are above the bar in all of them."""

    kind: ClassVar[str] = "ranking"
    label: ClassVar[str] = "ranking-above-the-bar/1"
    question: ClassVar[str] = "In which columns are the most records above the bar?"
    proof: ClassVar[str] = "[DMNS06, Prop 1]"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS

    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    among: tuple[tuple[str, ...], ...] | None = field(
        default=None, metadata={"help": "sets of columns to rank; each column when left out"}
    )
    bar: Fraction = field(default=Fraction(1, 2), metadata={"help": "records above this are counted, as text"})
    sure: bool = field(default=True, metadata={"help": "draw intervals"})

    def __post_init__(self) -> None:
        object.__setattr__(self, "bar", exact(self.bar, "bar"))
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch("ranking: it has a theorem for a pure loss only. Pass ε alone.")
        if self.among == ():
            raise ParameterError("ranking: among has no set of columns. Name some, or leave it out.")

    @property
    def columns(self) -> tuple[str, ...] | None:
        return None if self.among is None else tuple(dict.fromkeys(chain.from_iterable(self.among)))

    def cost(self) -> Loss:
        return self.loss

    def plan(self, *, n: int, dimension: int) -> Plan:
        return Plan(
            query=self.kind,
            cost=self.loss,
            facts={"n": n, "dimension": dimension},
            chosen="laplace",
            headings={"found": "first is found", "width": "95 % within ±"},
            options=(
                Option(mechanism="laplace", figures={"found": 0.8, "width": 3 / float(self.loss.amount)}, note="plain"),
                Option(mechanism="guess", figures={"found": 1 / 3}),
            ),
            useful=True,
            reason="the first is found",
            smallest_useful_epsilon=None,
            curve=((0.1, 0.0), (1.0, 0.5), (10.0, 0.9)),
            measure="how often the first is found",
            scale="linear",
        )

    def view(self, data: Any) -> Points:
        points = data.points(self.columns) if isinstance(data, Table) else data
        return points if self.columns is None else points.subspace(self.columns)

    def answer(self, data: Points, noise: Noise) -> Ranked:
        among = self.among or tuple((name,) for name in data.columns)

        def above(names: tuple[str, ...]) -> int:
            found = int((data.subspace(names).values > float(self.bar)).all(axis=1).sum())
            step()
            return found

        with progress.steps("ranking sets of columns", len(among)) as step, ThreadPoolExecutor(2) as workers:
            counts = list(workers.map(above, among))
        noisy = [max(0, count + noise.laplace(len(among) / self.loss.amount)) for count in counts]
        ranked = sorted(zip(among, noisy, strict=True), key=lambda pair: -pair[1])
        return [{"columns": list(names), "above": count} for names, count in ranked]

    def reading(self, value: Ranked, facts: PublicFacts) -> Reading:
        return Reading(mechanism="laplace", interval=None, text="Ranked.", extras={"first": value[0]["columns"]})

    def picture(self, value: Ranked, facts: PublicFacts) -> Bars:
        counts = tuple(float(found["above"]) for found in value)
        width = 3.0 / float(self.loss.amount)
        return Bars(
            labels=tuple(" × ".join(found["columns"]) for found in value),
            lengths=counts,
            intervals=tuple((max(0.0, count - width), count + width) for count in counts) if self.sure else None,
            across="records above the bar",
            marks=tuple(f"{count:,.0f}" for count in counts),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(loss=Loss("0.5"), among=(("x1",), ("x1", "x2")), bar=Fraction(3, 2))

    @classmethod
    def audits(cls, *, quick: bool) -> Iterator[Finding]:
        yield from attack(cls(loss=Loss("1"), among=(("x1",), ("x2",)), bar=Fraction(1, 2)))
        yield from audit_cases(cls.accounts().cases)

    @classmethod
    def accounts(cls) -> Accounts:
        tables = tuple(_points([[5.0, 0.0], [6.0, high]]) for high in (0.0, 1.0))
        counts = laplace("counts", moves=2, epsilon=1, draws=2)
        return Accounts(
            cases=(
                Case(name="columns", query=cls(loss=Loss("1"), sure=False), tables=tables, parts=(counts,), laws=LAWS),
                Case(
                    name="sets",
                    query=cls(loss=Loss("1"), among=(("x1",), ("x2",))),
                    tables=tables,
                    parts=(counts,),
                    laws=LAWS,
                ),
            )
        )


def _count_of_second(value: Ranked) -> int:
    return next(row["above"] for row in value if row["columns"] == ["x2"])


# One record moves the second count alone, by 1 of the 2 that are paid for.
LAWS = (LawCheck(parts=("counts",), draws=(1,), least=0.49, most=0.5, seen=_count_of_second),)


# Attacks

WORLD = World(tuple((float(x), float(y)) for x in (0, 1) for y in (0, 1)), 2)


def attack(query: Ranking) -> Iterator[Finding]:
    yield audit_exact(partial(_quiet, query), partial(_brute, 0.5), WORLD.arrays(), name="exact ranking")
    name = "broken: exact ranking, the bar at 0"
    yield audit_exact(partial(_quiet, query), partial(_brute, -1.0), WORLD.arrays(), name=name, expected=True)
    yield audit_bound(partial(_hidden, query), _total, WORLD, name="what the noise hides")
    yield audit_law(*_laws(query), claimed=query.loss, name="answer")
    short = replace(query, loss=Loss(query.loss.epsilon * Fraction(10, 9)))
    yield audit_law(*_laws(short), claimed=query.loss, name="broken: a tenth short", expected=True)


def _points(values: Any) -> Points:
    return Points.from_array(values, columns=("x1", "x2"), name="made-up")


def _quiet(query: Ranking, values: Floats) -> list[int]:
    return sorted(found["above"] for found in query.answer(_points(values), ScriptedNoise()))


def _brute(bar: float, values: Floats) -> list[int]:
    return sorted(sum(row[at] > bar for row in values.tolist()) for at in (0, 1))


def _hidden(query: Ranking, values: Floats) -> float:
    """By how much the noise lets one record move all counts together."""
    script = ScriptedNoise()
    query.answer(_points(values), script)
    return float(min(scale for _, scale in script.asked) * query.loss.epsilon)


def _total(values: Floats) -> int:
    return int((values > 0.5).sum())


def _laws(query: Ranking) -> list[Law]:
    """Whether both counts are 1 or more, of tables that differ in both columns."""
    tables = [_points([[0.0, 0.0], [high, high]]) for high in (0.0, 1.0)]
    return [law_of(lambda noise, table=table: _both(query, table, noise)) for table in tables]


def _both(query: Ranking, table: Points, noise: Noise) -> bool:
    return min(found["above"] for found in query.answer(table, noise)) >= 1
