"""What is usual, learnt privately: over a history as a whole, or at each phase of a season.

Released    the mean and the variance of the statistic; by `phase` the centre and the spread of every column
Guarantee   pure ε-DP, for all that is released together        Neighbours  as for `Watch`, by `level`
Arithmetic  whole-number sums, discrete Laplace                 Proof       proof.md, labels (B) (P1) (P2) (P3)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Points, points_of
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import Additive, calibrate
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.watch import Watch
from wallflower.queries.watch.seasons import Seasons
from wallflower.queries.watch.seasons.learner import Learner
from wallflower.queries.watch.seasons.phases import KINDS
from wallflower.queries.watch.words import baseline_unit_note, change_words
from wallflower.query import Option, Plan, PublicFacts, Quality, Query, Reading, Status, least_amount, settle
from wallflower.query.accuracy import percent, rate_errors
from wallflower.query.picture import Band, Dot
from wallflower.units import Claim

COARSE: Final = 64  # steps of the grid that one entry can move a distance by
SURE: Final = 0.95
SURER: Final = 0.975  # of each of two at once
NEAR: Final = 0.25  # of a spread: a mean that is further off moves the threshold
ROUGH: Final = 0.5  # of the variance: then the spread is known to about a quarter


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nearness:
    """How near the released numbers are to those of the history, as a watch would measure it: 95 times of 100 the mean
    is within `centre`. `first` and `second` are what noise adds to the mean and to the mean square, 95 times of 100
    both at once; `rounding` is the most that the grid moves a distance by."""

    rounding: float
    centre: float
    first: float
    second: float

    def variance(self, spread: float, off: float = 0.0) -> float:
        """How near the variance is, where the mean is so far off the guess."""
        return self._noise(off) + 2 * self.rounding * spread + self.rounding**2

    def spread(self, variance: float, off: float) -> tuple[float, float]:
        """Between what the spread lies, after what was released."""
        low, high = variance - self._noise(off), variance + self._noise(off)
        return max(math.sqrt(max(low, 0.0)) - self.rounding, 0.0), math.sqrt(high) + self.rounding

    def _noise(self, off: float) -> float:
        """The variance is the mean square less the square of the mean: noise on both."""
        return self.second + 2 * abs(off) * self.first + self.first**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Query[Points, dict[str, Any]]):
    """Learn the mean and the variance of the sum from a history of its own, or what is usual at each phase.

    >>> Baseline(low=0.0, high=1.0, loss=Loss("0.5")).cost()
    Loss(ε=1/2)
    """

    kind: ClassVar[str] = "baseline"
    label: ClassVar[str] = "outlier-watch-baseline/1"
    question: ClassVar[str] = "What is usual, as a whole or at each phase of a season?"
    proof: ClassVar[str] = "queries/watch/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    prepares: ClassVar[str] = "watch"

    low: float | None = field(
        default=None,
        metadata={"help": "public lower bound of every entry; by phase, default: the schema's", "span": "low"},
    )
    high: float | None = field(
        default=None,
        metadata={"help": "public upper bound of every entry; by phase, default: the schema's", "span": "high"},
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    level: str = field(
        default="event",
        metadata={"help": "who is protected, as for the watch", "choices": ("event", "person")},
    )
    guess: float = field(
        default=0.0, metadata={"help": "public guess of the mean of the sum: the nearer, the better", "span": "sum"}
    )
    furthest: float | None = field(
        default=None,
        metadata={
            "help": "distances from the guess count as no more than this; default: as far as can be",
            "span": "distance",
        },
    )
    variance: float | None = field(
        default=None,
        metadata={
            "help": "public guess of the variance, for the plan; default: of entries anywhere in their bounds",
            "span": "square",
        },
    )
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns of an observation; all number columns unless given", "names": "numbers"},
    )
    phase: str | None = field(
        default=None,
        metadata={
            "help": "learn centre and spread of every column at each phase; always: one phase; as-written: each time",
            "choices": KINDS,
            "names": "times",
        },
    )
    time: str | None = field(
        default=None,
        metadata={"help": "the column of times that phases are read off, public by the schema", "names": "times"},
    )
    change: float | None = field(
        default=None,
        metadata={
            "help": "by phase: assume that an entry changes by no more; default: the bounds enforce it",
            "span": "distance",
        },
    )

    def __post_init__(self) -> None:
        settle(self)
        object.__setattr__(self, "loss", self._watch.loss)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"baseline is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        if self.furthest is not None and not 0 < self.furthest <= 1e100:
            raise ParameterError(f"furthest: {self.furthest!r} is not a positive distance; pass one, or leave it out.")
        if self.variance is not None and not 0 < self.variance <= 1e200:
            raise ParameterError(f"variance: {self.variance!r} is not a positive number; pass one, or leave it out.")
        self._require_fitting_settings()

    def _require_fitting_settings(self) -> None:
        """Refuse what belongs to the other way of learning."""
        learner, apart = self._learner, ("guess", "furthest") if self.phase else ("time", "change")
        given = [name for name in apart if getattr(self, name) not in (None, 0.0)]
        if given:
            raise ParameterError(
                f"{given[0]}: it does not go {'with' if self.phase else 'without'} a phase. Leave it out, or "
                f"{'leave out' if self.phase else 'add'} the phase."
            )
        if learner is not None and self.level != "event":
            raise ParameterError(
                f"level: {self.level!r} does not go with a phase. By phase one entry of one observation is protected, "
                "and an account for a person counts each of them. Leave the level out, or the phase."
            )
        if learner is None and (self.low is None or self.high is None):
            raise ParameterError("low, high: the entries of an observation need public bounds. Pass both.")

    @property
    def _learner(self) -> Learner | None:
        """Who learns phase by phase; None where there are no phases."""
        if self.phase is None:
            return None
        names = ("time", "low", "high", "change", "variance", "loss")
        return Learner(kind=self.phase, **{name: getattr(self, name) for name in names})

    @property
    def _ends(self) -> tuple[float, float]:
        """The bounds of every entry, which are there where there are no phases."""
        return float(self.low or 0.0), float(self.high or 0.0)

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
        if (learner := self._learner) is not None:
            return learner.claim(facts, getattr(facts, "schema", None))
        return replace(super(Baseline, self).claim(facts), rho=self.loss.epsilon**2 / 4)  # (B)

    def assumed_change(self, data: Points) -> str:
        return change_words(self.change, self.loss.neighbours, data.schema, by_phase=False)

    def cautions(self, data: Points) -> tuple[str, ...]:
        """What entries are divided by, so that nobody takes what was learnt for the unit of the columns."""
        note = baseline_unit_note(data, by_phase=self.phase is not None)
        return (note,) if note else ()

    def view(self, data: Any) -> Points:
        if (learner := self._learner) is None:
            return self._watch.view(data)
        points = points_of(data, self.columns)
        learner.require_fitting(points)
        return points

    def answer(self, data: Points, noise: Noise) -> dict[str, Any]:
        if (learner := self._learner) is not None:
            return learner.answer(data, noise)
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

    def picture(self, value: dict[str, Any], facts: PublicFacts) -> Band | Dot:
        if self.phase is not None:
            return Seasons.from_json(value).picture()
        centre, spread = value["centre"], math.sqrt(value["variance"])
        usual = (centre - spread, centre + spread)
        return Dot(
            value=centre, interval=usual, across="sum of an observation", covers="usual, a spread to either side"
        )

    def reading(self, value: dict[str, Any], facts: PublicFacts) -> Reading:
        if (learner := self._learner) is not None:
            return learner.reading(value, facts)
        near = self._nearness(facts.n, facts.dimension)
        low, high = near.spread(value["variance"], off=value["centre"] - self.guess)
        return Reading(
            mechanism="noisy sums",
            interval=None,
            words=f"The sum is usually {_brief(value['centre'], near.centre)} (95 % interval ±{near.centre:.3g}), "
            f"give or take {math.sqrt(value['variance']):.4g} (95 % interval {low:.4g} to {high:.4g}).",
            quality=_quality(near, value["variance"], value["centre"] - self.guess),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        if (learner := self._learner) is not None:
            return learner.plan(self.kind, n=n, dimension=dimension)
        near, spread = self._nearness(n, dimension), self._planned_spread(dimension)
        centre, variance = near.centre / spread, near.variance(spread) / spread**2
        smallest = least_amount(lambda amount: replace(self, loss=Loss(amount))._is_near(n, dimension))
        useful = self._is_near(n, dimension)
        said = (
            f"the mean within ±{near.centre:.3g}, {centre:.1%} of a spread of {spread:.4g}, and the variance within "
            f"±{variance:.1%} (95 %)"
        )
        rule = f"; useful is {NEAR:.0%} and {ROUGH:.0%} or less"
        guess = "" if self.variance is not None else "; assumed: entries anywhere in their bounds, independently"
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen="noisy sums",
            headings={"centre": "mean, 95 % within ±", "variance": "variance, 95 % within ±"},
            options=(
                Option(mechanism="noisy sums", figures={"centre": near.centre, "variance": near.variance(spread)}),
            ),
            useful=useful,
            reason=f"{said}{'' if useful else rule}{guess}",
            smallest_useful_epsilon=smallest,
        )

    @classmethod
    def example(cls) -> Self:
        return cls(low=-5.0, high=5.0, loss=Loss("1"))

    def _is_near(self, n: int, dimension: int) -> bool:
        """Whether a watch would know the usual well enough: by its spread, whatever the bounds are."""
        near, spread = self._nearness(n, dimension), self._planned_spread(dimension)
        return near.centre <= NEAR * spread and near.variance(spread) <= ROUGH * spread**2

    def _planned_spread(self, dimension: int) -> float:
        """The spread of the sum that the plan goes by."""
        low, high = self._ends
        anywhere = (high - low) * math.sqrt(dimension / 12)
        return math.sqrt(self.variance) if self.variance is not None else min(anywhere, self.furthest or anywhere)

    def _nearness(self, n: int, dimension: int) -> _Nearness:
        first, second = self._noises(n, dimension)
        unit, made = self._unit(dimension), self._watch.gauge(dimension)
        return _Nearness(
            rounding=unit / 2 + dimension * made.step,
            centre=first.half_width(SURE) / n * unit + unit / 2 + dimension * made.step,
            first=first.half_width(SURER) / n * unit,
            second=second.half_width(SURER) / n * unit**2,
        )

    def _unit(self, dimension: int) -> float:
        made = self._watch.gauge(dimension)
        return made.move * made.step / COARSE

    def _far(self, dimension: int) -> int:
        """The furthest distance, in steps."""
        widest = max(abs(end * dimension - self.guess) for end in self._ends)
        return max(1, math.ceil(min(widest, self.furthest or widest) / self._unit(dimension)))

    def _noises(self, n: int, dimension: int) -> tuple[Additive, Additive]:
        """The noise of the sum and of the sum of squares.  (B)"""
        half = Loss(self.loss.epsilon / 2)
        touched = 1 if self.level == "event" else n
        moves: Mapping[str, int] = {"sum": COARSE, "squares": 2 * self._far(dimension) * COARSE}
        return tuple(calibrate(move * touched, half, step=Fraction(1)) for move in moves.values())  # type: ignore[return-value]


def _brief(value: float, within: float) -> str:
    """A number with as many digits as an interval of this width leaves a meaning.

    >>> _brief(-0.0174666, 0.309), _brief(36.81234, 0.002)
    ('-0.017', '36.8123')
    """
    places = 2 - math.floor(math.log10(within)) if 0 < within < math.inf else 6
    return f"{round(value, places):.6g}"


def _quality(near: _Nearness, variance: float, off: float) -> Quality:
    """By the spread that was released, whatever was planned."""
    spread = math.sqrt(variance)
    centre, wide = near.centre / spread, near.variance(spread, off) / variance
    shown = percent(wide) if wide <= 1 else "more than all"
    rule = f"the mean is within {percent(centre)} of the spread and the variance within {shown} of itself (95 %)"
    return rate_errors(max(centre, wide), rule, interval="two-sided")
