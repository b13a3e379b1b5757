"""What is usual, learnt privately from a history that the watch will not see.

Released    the mean and the variance of the statistic          Neighbours  as for `Watch`, by `level`
Guarantee   pure ε-DP, half of it for each                      Arithmetic  whole-number sums, discrete Laplace
Proof       proof.md, label (B)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Points
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import Additive, calibrate
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.watch import Watch
from wallflower.query import Option, Plan, PublicFacts, Query, Reading, Status
from wallflower.units import Claim

COARSE: Final = 64  # steps of the grid that one entry can move a distance by
SURE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Query[Points, dict[str, float]]):
    """Learn the mean and the variance of the sum from a history of its own.

    >>> Baseline(low=0.0, high=1.0, loss=Loss("0.5")).cost()
    Loss(ε=1/2)
    """

    kind: ClassVar[str] = "baseline"
    label: ClassVar[str] = "outlier-watch-baseline/1"
    question: ClassVar[str] = "What is usual, in a history that is not watched?"
    proof: ClassVar[str] = "queries/watch/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    prepares: ClassVar[str] = "watch"
    unpictured: ClassVar[str] = "two numbers that go into the options of a watch"

    low: float = field(metadata={"help": "public lower bound of every entry"})
    high: float = field(metadata={"help": "public upper bound of every entry"})
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    level: str = field(
        default="event",
        metadata={"help": "who is protected, as for the watch", "choices": ("event", "person")},
    )
    guess: float = field(default=0.0, metadata={"help": "public guess of the mean of the sum: the nearer, the better"})
    furthest: float | None = field(
        default=None,
        metadata={"help": "distances from the guess count as no more than this; left out: as far as can be"},
    )
    columns: tuple[str, ...] | None = field(
        default=None, metadata={"help": "the columns of an observation; all number columns unless given"}
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", self._watch.loss)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"baseline is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        if self.furthest is not None and not 0 < self.furthest <= 1e100:
            raise ParameterError(f"furthest: {self.furthest!r} is not a positive distance; pass one, or leave it out.")

    @property
    def _watch(self) -> Watch:
        """A watch that measures the same and protects the same."""
        return Watch(
            threshold=0.0,
            low=self.low,
            high=self.high,
            centre=self.guess,
            level=self.level,
            columns=self.columns,
            loss=self.loss,
        )

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        return replace(super(Baseline, self).claim(facts), rho=self.loss.epsilon**2 / 4)  # (B)

    def view(self, data: Any) -> Points:
        return self._watch.view(data)

    def answer(self, data: Points, noise: Noise) -> dict[str, float]:
        made = self._watch.gauge(data.dimension)
        distances = (2 * COARSE * made.measure(data.values).astype(object) + made.move) // (2 * made.move)
        unit = float(Fraction(made.step) * made.move / COARSE)
        far = self._far(data.dimension)
        near = np.clip(distances, -far, far)
        first, second = self._noises(data.n, data.dimension)
        total = int(near.sum()) + first.draw(noise)  # (B)
        squares = int((near * near).sum()) + second.draw(noise)  # (B)
        mean = total / data.n
        variance = max(squares / data.n - mean * mean, 1.0)  # of one step, so that there is always some
        return {"centre": self.guess + mean * unit, "variance": variance * unit * unit}

    def reading(self, value: dict[str, float], facts: PublicFacts) -> Reading:
        first, _ = self._noises(facts.n, facts.dimension)
        width = first.half_width(SURE) / facts.n * self._unit(facts.dimension)
        return Reading(
            mechanism="noisy sums",
            interval=None,
            words=f"The sum is usually {value['centre']:.6g} (95 % interval ±{width:.3g}), give or take "
            f"{math.sqrt(value['variance']):.4g}.",
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        first, second = self._noises(n, dimension)
        unit = self._unit(dimension)
        figures = {
            "centre": first.half_width(SURE) / n * unit,
            "variance": second.half_width(SURE) / n * unit * unit,
        }
        useful = figures["centre"] <= (self.high - self.low)
        width = f"the mean within ±{figures['centre']:.3g} (95 %)"
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen="noisy sums",
            headings={"centre": "mean, 95 % within ±", "variance": "variance, 95 % within ±"},
            options=(Option(mechanism="noisy sums", figures=figures),),
            useful=useful,
            verdict=f"useful: {width}" if useful else f"not useful: {width}, more than one entry can make up for",
            smallest_useful_epsilon=None,
        )

    @classmethod
    def example(cls) -> Self:
        return cls(low=-5.0, high=5.0, loss=Loss("1"))

    def _unit(self, dimension: int) -> float:
        made = self._watch.gauge(dimension)
        return made.move * made.step / COARSE

    def _far(self, dimension: int) -> int:
        """The furthest distance, in steps."""
        widest = max(abs(self.low * dimension - self.guess), abs(self.high * dimension - self.guess))
        return max(1, math.ceil(min(widest, self.furthest or widest) / self._unit(dimension)))

    def _noises(self, n: int, dimension: int) -> tuple[Additive, Additive]:
        """The noise of the sum and of the sum of squares.  (B)"""
        half = Loss(self.loss.epsilon / 2)
        touched = 1 if self.level == "event" else n
        moves: Mapping[str, int] = {"sum": COARSE, "squares": 2 * self._far(dimension) * COARSE}
        return tuple(calibrate(move * touched, half, step=Fraction(1)) for move in moves.values())  # type: ignore[return-value]
