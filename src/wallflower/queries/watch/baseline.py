"""What is typical of a stream, estimated privately: over a history as a whole, or in each bucket of a season.

Released    the mean and the variance of the sum; with a `season` the centre and the spread of every column
Guarantee   pure ε-DP, for all that is released together        Adjacency  as for `Watch`, by `level`
Arithmetic  whole-number sums, discrete Laplace                 Proof      proof.md, labels (B) (P1) (P2) (P3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Points, points_of
from wallflower.data.table import require_row_order
from wallflower.drawing.picture import Band, Dot
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import Additive, calibrate
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.watch.detectors import COARSE_STEPS
from wallflower.queries.watch.levels import EntryLevel, PersonLevel
from wallflower.queries.watch.seasons.learner import SeasonLearner
from wallflower.queries.watch.seasons.seasons import KINDS
from wallflower.queries.watch.statistics import Bounds, Statistic, check_bounds, make_statistic
from wallflower.queries.watch.watch import Scaling, describe_change
from wallflower.query import Option, Plan, PublicFacts, Quality, Query, Reading, Status, least_amount, normalise_fields
from wallflower.query.accuracy import percent, rate_errors
from wallflower.text import join, t
from wallflower.units import Claim

CONFIDENCE: Final = 0.95
CONFIDENCE_OF_EACH: Final = 0.975  # of each of two intervals that hold together
MAX_MEAN_ERROR: Final = 0.25  # of a spread: a larger error of the mean moves the threshold
MAX_VARIANCE_ERROR: Final = 0.5  # of the variance: then the spread is known to about a quarter


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How near the released numbers are to those of the history, as a watch would measure it.

    rounding  the most that the grid moves a distance by
    centre    half-width of the 95 % interval of the mean
    first     noise of the mean, 97.5 %
    second    noise of the mean square, 97.5 %
    """

    rounding: float
    centre: float
    first: float
    second: float

    def variance(self, spread: float, offset: float = 0.0) -> float:
        """Return how near the variance is, where the mean is `offset` from the guess."""
        return self._noise(offset) + 2 * self.rounding * spread + self.rounding**2

    def spread(self, variance: float, offset: float) -> tuple[float, float]:
        """Return the interval of the spread, after a release."""
        low, high = variance - self._noise(offset), variance + self._noise(offset)
        return max(math.sqrt(max(low, 0.0)) - self.rounding, 0.0), math.sqrt(high) + self.rounding

    def _noise(self, offset: float) -> float:
        """The variance is the mean square minus the square of the mean: noise on both."""
        return self.second + 2 * abs(offset) * self.first + self.first**2


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLearner:
    """Estimates the mean and the variance of the sum over a whole history.  (B)

    The fields are those of `Baseline`.
    """

    low: float
    high: float
    loss: Loss
    level: str
    guess: float
    clip_distance: float | None
    variance: float | None

    def check(self, data: Points) -> None:
        """Refuse bounds outside the public range of a column."""
        check_bounds(self.low, self.high, data.dimension, data.schema)
        self.statistic(data.dimension)

    def statistic(self, dimension: int) -> Statistic:
        """Return the sum around the guess, on a grid."""
        return make_statistic("sum", Bounds.of(self.low, self.high, dimension, None), centre=self.guess)

    def answer(self, data: Points, noise: Noise) -> dict[str, Any]:
        """Release the noisy mean and variance."""
        statistic = self.statistic(data.dimension)
        sensitivity = statistic.sensitivity
        # as objects: squares of coarse distances may exceed 64 bits
        distances = (2 * COARSE_STEPS * statistic.measure(data.values).astype(object) + sensitivity) // (
            2 * sensitivity
        )
        unit = float(Fraction(statistic.step) * sensitivity / COARSE_STEPS)
        clip = self._clip_steps(data.dimension)
        clipped = np.clip(distances, -clip, clip)
        first, second = self._noises(data.n, data.dimension)
        total = int(clipped.sum()) + first.draw(noise)  # (B)
        squares = int((clipped * clipped).sum()) + second.draw(noise)  # (B)
        mean = total / data.n
        variance = max(squares / data.n - mean * mean, 1.0)  # at least that of one step, so that it is positive
        return {"centre": self.guess + mean * unit, "variance": variance * unit * unit}

    def picture(self, value: dict[str, Any]) -> Dot:
        centre, spread = value["centre"], math.sqrt(value["variance"])
        return Dot(
            value=centre,
            interval=(centre - spread, centre + spread),
            across="sum of an observation",
            covers="typical, a spread to either side",
        )

    def reading(self, value: dict[str, Any], facts: PublicFacts) -> Reading:
        errors = self._errors(facts.n, facts.dimension)
        offset = value["centre"] - self.guess
        low, high = errors.spread(value["variance"], offset)
        return Reading(
            mechanism="noisy sums",
            interval=None,
            text=t(
                "The sum is typically {centre} (95 % interval ±{error:.3g}), give or take {spread:.4g} (95 % interval "
                "{low:.4g} to {high:.4g}).",
                centre=_round_to(value["centre"], errors.centre),
                error=errors.centre,
                spread=math.sqrt(value["variance"]),
                low=low,
                high=high,
            ),
            quality=_quality(errors, value["variance"], offset),
        )

    def plan(self, query: str, *, n: int, dimension: int) -> Plan:
        errors, spread = self._errors(n, dimension), self._planned_spread(dimension)
        smallest = least_amount(lambda amount: replace(self, loss=Loss(amount))._is_useful(n, dimension))
        useful = self._is_useful(n, dimension)
        clauses = [
            t(
                "the mean within ±{error:.3g}, {share:.1%} of a spread of {spread:.4g}, and the variance within "
                "±{variance:.1%} (95 %)",
                error=errors.centre,
                share=errors.centre / spread,
                spread=spread,
                variance=errors.variance(spread) / spread**2,
            )
        ]
        if not useful:
            clauses.append(
                t(
                    "useful means at most {mean:.0%} and {variance:.0%}",
                    mean=MAX_MEAN_ERROR,
                    variance=MAX_VARIANCE_ERROR,
                )
            )
        if self.variance is None:
            clauses.append(t("assumed: entries anywhere in their bounds, independently"))
        return Plan(
            query=query,
            cost=self.loss,
            facts={"n": n, "dimension": dimension},
            chosen="noisy sums",
            headings={"centre": "mean, 95 % within ±", "variance": "variance, 95 % within ±"},
            options=(
                Option(mechanism="noisy sums", figures={"centre": errors.centre, "variance": errors.variance(spread)}),
            ),
            useful=useful,
            reason=join("; ", tuple(clauses)),
            smallest_useful_epsilon=smallest,
        )

    def _is_useful(self, n: int, dimension: int) -> bool:
        """Whether a watch would know what is typical well enough: by its spread, whatever the bounds are."""
        errors, spread = self._errors(n, dimension), self._planned_spread(dimension)
        return errors.centre <= MAX_MEAN_ERROR * spread and errors.variance(spread) <= MAX_VARIANCE_ERROR * spread**2

    def _planned_spread(self, dimension: int) -> float:
        """The spread of the sum that the plan assumes."""
        uniform = (self.high - self.low) * math.sqrt(dimension / 12)
        if self.variance is not None:
            return math.sqrt(self.variance)
        return min(uniform, self.clip_distance or uniform)

    def _errors(self, n: int, dimension: int) -> Errors:
        first, second = self._noises(n, dimension)
        unit = self._unit(dimension)
        rounding = unit / 2 + dimension * self.statistic(dimension).step
        return Errors(
            rounding=rounding,
            centre=first.half_width(CONFIDENCE) / n * unit + rounding,
            first=first.half_width(CONFIDENCE_OF_EACH) / n * unit,
            second=second.half_width(CONFIDENCE_OF_EACH) / n * unit**2,
        )

    def _unit(self, dimension: int) -> float:
        """The width of a coarse step."""
        statistic = self.statistic(dimension)
        return statistic.sensitivity * statistic.step / COARSE_STEPS

    def _clip_steps(self, dimension: int) -> int:
        """The distance at which distances are clipped, in coarse steps."""
        furthest = max(abs(end * dimension - self.guess) for end in (self.low, self.high))
        return max(1, math.ceil(min(furthest, self.clip_distance or furthest) / self._unit(dimension)))

    def _noises(self, n: int, dimension: int) -> tuple[Additive, Additive]:
        """The noise of the sum and of the sum of squares.  (B)"""
        half = Loss(self.loss.epsilon / 2)
        touched = 1 if self.level == "entry" else n
        sum_change, square_change = COARSE_STEPS, 2 * self._clip_steps(dimension) * COARSE_STEPS
        return (
            calibrate(sum_change * touched, half, step=Fraction(1)),
            calibrate(square_change * touched, half, step=Fraction(1)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline(Query[Points, dict[str, Any]]):
    """Estimate the mean and the variance of the sum from a history, or what is typical in each bucket of a season.

    >>> Baseline(low=0.0, high=1.0, loss=Loss("0.5")).cost()
    Loss(ε=1/2)
    """

    kind: ClassVar[str] = "baseline"
    label: ClassVar[str] = "outlier-watch-baseline/1"
    question: ClassVar[str] = "What is typical, as a whole or in each bucket of a season?"
    proof: ClassVar[str] = "queries/watch/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    companion_of: ClassVar[str] = "watch"

    low: float | None = field(
        default=None,
        metadata={"help": "public lower bound of every entry; with a season, default: the schema's", "span": "low"},
    )
    high: float | None = field(
        default=None,
        metadata={"help": "public upper bound of every entry; with a season, default: the schema's", "span": "high"},
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    level: str = field(
        default="entry",
        metadata={"help": "who is protected, as for the watch", "choices": (EntryLevel.name, PersonLevel.name)},
    )
    guess: float = field(
        default=0.0, metadata={"help": "public guess of the mean of the sum: the nearer, the better", "span": "sum"}
    )
    clip_distance: float | None = field(
        default=None,
        metadata={
            "help": "clip distances from the guess at this; default: the largest that the bounds allow",
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
        metadata={"help": "columns of an observation; default: all number columns", "names": "numbers"},
    )
    season: str | None = field(
        default=None,
        metadata={
            "help": "estimate centre and spread of every column in each bucket of this season; always: one bucket; "
            "as-written: one for each different time",
            "choices": KINDS,
            "names": "times",
        },
    )
    time: str | None = field(
        default=None,
        metadata={"help": "column of times that buckets are read from, public in the schema", "names": "times"},
    )
    change: float | None = field(
        default=None,
        metadata={
            "help": "with a season: assume that an entry changes by no more; default: the bounds enforce it",
            "span": "distance",
        },
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        if not isinstance(self.loss, Loss):
            raise ParameterError("loss: pass a Loss, such as Loss('0.5').")
        if self.level not in (EntryLevel.name, PersonLevel.name):
            raise ParameterError(f"level: {self.level!r} is not known; it is one of entry, person.")
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"baseline is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        protection = EntryLevel if self.level == EntryLevel.name else PersonLevel
        object.__setattr__(self, "loss", protection(loss=self.loss).loss)
        for name in ("clip_distance", "variance"):
            value = getattr(self, name)
            if value is not None and not 0 < value <= 1e200:
                raise ParameterError(f"{name}: {value!r} is not a positive number; pass one, or omit it.")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ParameterError(
                f"low, high: {self.low!r} is not below {self.high!r}; pass the public range of an entry."
            )
        if not -1e100 <= self.guess <= 1e100:
            raise ParameterError(f"guess: {self.guess!r} is not a finite number; pass one from -1e100 to 1e100.")
        self._check_season()
        self._learner()

    def _check_season(self) -> None:
        """Refuse settings of the other way of estimating."""
        unused = ("guess", "clip_distance") if self.season else ("time", "change")
        for name in unused:
            if getattr(self, name) not in (None, 0.0):
                raise ParameterError(
                    f"{name}: not used with a season. Omit one of them."
                    if self.season
                    else f"{name}: only used with a season. Omit it, or add the season."
                )
        if self.season is not None and self.level != EntryLevel.name:
            raise ParameterError(
                f"level: {self.level!r} is not available with a season, which protects one entry of one observation; a "
                "budget for a person counts each of them. Omit the level, or the season."
            )

    def _learner(self) -> HistoryLearner | SeasonLearner:
        if self.season is not None:
            return SeasonLearner(
                kind=self.season,
                time=self.time,
                low=self.low,
                high=self.high,
                change=self.change,
                variance=self.variance,
                loss=self.loss,
            )
        if self.low is None or self.high is None:
            raise ParameterError("low, high: the entries of an observation need public bounds. Pass both.")
        return HistoryLearner(
            low=self.low,
            high=self.high,
            loss=self.loss,
            level=self.level,
            guess=self.guess,
            clip_distance=self.clip_distance,
            variance=self.variance,
        )

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        learner = self._learner()
        if isinstance(learner, SeasonLearner):
            return learner.claim(facts, getattr(facts, "schema", None))
        return replace(super(Baseline, self).claim(facts), rho=self.loss.epsilon**2 / 4)  # (B)

    def assumed_change(self, data: Points) -> str:
        return describe_change(self.change, self.loss.neighbours, data.schema, is_scaled=True)

    def cautions(self, data: Points) -> tuple[str, ...]:
        """Say how the estimates relate to the units of the columns, where the schema scales any."""
        scaling = Scaling.of(data.schema, data.columns)
        if scaling.is_identity:
            return ()
        if self.season is not None or scaling.common_scale is None:
            note = t("The estimates refer to the scaled numbers, not to the columns as they are written.")
        else:
            note = t(
                "In the units of the columns, the sum is multiplied by {scale:g} and {shift:g} added to it; its spread "
                "is multiplied by {scale:g}.",
                scale=scaling.common_scale,
                shift=math.fsum(scaling.shifts),
            )
        return (join(" ", (scaling.describe(), note)),)

    def view(self, data: Any) -> Points:
        require_row_order(data)
        points = points_of(data, self.columns)
        self._learner().check(points)
        return points

    def answer(self, data: Points, noise: Noise) -> dict[str, Any]:
        return self._learner().answer(data, noise)

    def picture(self, value: dict[str, Any], facts: PublicFacts) -> Band | Dot:
        return self._learner().picture(value)

    def reading(self, value: dict[str, Any], facts: PublicFacts) -> Reading:
        return self._learner().reading(value, facts)

    def plan(self, *, n: int, dimension: int) -> Plan:
        return self._learner().plan(self.kind, n=n, dimension=dimension)

    @classmethod
    def example(cls) -> Self:
        return cls(low=-5.0, high=5.0, loss=Loss("1"))


def _round_to(value: float, error: float) -> str:
    """Show a number with as many digits as an interval of this half-width supports.

    >>> _round_to(-0.0174666, 0.309), _round_to(36.81234, 0.002)
    ('-0.017', '36.8123')
    """
    digits = 2 - math.floor(math.log10(error)) if 0 < error < math.inf else 6
    return f"{round(value, digits):.6g}"


def _quality(errors: Errors, variance: float, offset: float) -> Quality:
    """Rate by the released spread, whatever was planned."""
    spread = math.sqrt(variance)
    mean_error, variance_error = errors.centre / spread, errors.variance(spread, offset) / variance
    rule = t(
        "the mean is within {mean} of the spread and the variance within {variance} of itself (95 %)",
        mean=percent(mean_error),
        variance=percent(variance_error) if variance_error <= 1 else "more than all",
    )
    return rate_errors(max(mean_error, variance_error), rule, interval="two-sided")
