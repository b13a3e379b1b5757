"""When does an outlier occur in a stream of Gaussian signals?

Observations come one after another [Deg20]. Each is reduced to its distance from what is usual, and flagged, by a coin,
when that is beyond a public threshold. Which coin depends on who is protected: one entry of one observation, or one
person over the whole stream or a window of it.

Released    one bit an observation, in order; with `scores` a whole number; "exhausted" when the cutoff is reached
Guarantee   pure ε-DP; (ε, δ)-DP or ρ-zCDP with Gaussian noise       Neighbours  see `level`
Arithmetic  whole numbers on a grid, coins from proved tables        Proof       proof.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from wallflower.data import Points, Schema, points_of
from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.noise import Noise
from wallflower.privacy import Loss, exact
from wallflower.progress import Effort
from wallflower.queries.watch import words
from wallflower.queries.watch.claims import claim_of
from wallflower.queries.watch.forecast.statement import Statement
from wallflower.queries.watch.gauge import STATISTICS, Gauge, Ints, gauge
from wallflower.queries.watch.modes import (
    LEVELS,
    MODES,
    bounds_of,
    check_drift,
    check_mode,
    check_numbers,
    check_threshold,
    distance_to_flag,
    loss_at_level,
    mode_of,
    require_bounds_in_schema,
)
from wallflower.queries.watch.seasons import LIMIT, ReleasedBaseline, Seasons
from wallflower.query import Condition, Plan, PublicFacts, Query, Reading, Status, Tradeoff, settle
from wallflower.query.picture import Band, Ticks
from wallflower.units import Claim

if TYPE_CHECKING:
    import wallflower.queries.watch.forecast.plans as _plans
    import wallflower.queries.watch.forecast.worth as _worth
    import wallflower.queries.watch.seasons.drift as _drift
    from wallflower.queries.watch.detectors import Detector
    from wallflower.queries.watch.seasons.drift import Drift
else:
    _worth = Lazy("wallflower.queries.watch.forecast.worth")
    _drift = Lazy("wallflower.queries.watch.seasons.drift")
    _plans = Lazy("wallflower.queries.watch.forecast.plans")

SHOWN: Final = 3  # times of flagged observations under a picture

EVENT, PERSON = Condition("level", "event"), Condition("level", "person")
WEIGHTED: Final = Condition("statistic", "weighted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(Query[Points, dict[str, Any]]):
    """Watch a stream for outliers.

    >>> Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("1")).cost()
    Loss(ε=1)
    """

    kind: ClassVar[str] = "watch"
    label: ClassVar[str] = "outlier-watch/1"
    question: ClassVar[str] = "When does an outlier occur?"
    proof: ClassVar[str] = "queries/watch/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    streams: ClassVar[bool] = True

    threshold: float | None = field(
        default=None,
        metadata={"help": "flag observations whose statistic is at least this far from its centre", "span": "distance"},
    )
    kappa: float | None = field(
        default=None,
        metadata={
            "help": "instead of a threshold: flag from this many standard deviations of the statistic on; needs its "
            "public variance, a covariance or a baseline"
        },
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    level: str = field(
        default="event",
        metadata={
            "help": "who is protected: one entry of one observation, or one person throughout; paper: as printed",
            "choices": LEVELS,
        },
    )
    statistic: str = field(
        default="sum", metadata={"help": "what is measured of an observation", "choices": tuple(STATISTICS)}
    )
    low: float | None = field(
        default=None,
        metadata={"help": "public lower bound of every entry; default: the schema's, of each column", "span": "low"},
    )
    high: float | None = field(
        default=None,
        metadata={"help": "public upper bound of every entry; default: the schema's, of each column", "span": "high"},
    )
    change: float | None = field(
        default=None,
        metadata={
            "help": "assume that an entry changes by no more; default: the bounds enforce it",
            "span": "distance",
        },
    )
    centre: float | None = field(
        default=None, metadata={"help": "public mean of the sum; default: that of `mean`, or 0", "span": "sum"}
    )
    variance: float | None = field(
        default=None, metadata={"help": "public variance of the sum, for the plan", "span": "square"}
    )
    outlier_from: float | None = field(
        default=None,
        metadata={
            "help": "for the plan: from this distance on it is an outlier; default: the threshold",
            "span": "distance",
        },
    )
    outlier_share: float | None = field(
        default=None,
        metadata={"help": "for the plan: the share of observations that are outliers; default: as the variance has it"},
    )
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns of an observation; all number columns unless given", "names": "numbers"},
    )
    time: str | None = field(
        default=None,
        metadata={
            "help": "the column of times, public by the schema: flagged ones are told by it too",
            "names": "times",
        },
    )
    baseline: Seasons | ReleasedBaseline | int | None = field(
        default=None,
        metadata={
            "help": "what `baseline` released by phase, or its ledger entry: entries are judged in spreads of theirs"
        },
    )
    relearn: int | None = field(
        default=None,
        metadata={"help": "with a baseline by phase: learn it anew of every so many observations, for the next ones"},
    )
    relearn_share: Fraction = field(
        default=Fraction(1, 5), metadata={"help": "with relearn: the part of the loss that learns, once for all"}
    )
    weights: tuple[float, ...] | None = field(default=None, metadata={"help": "one for each column", "when": WEIGHTED})
    mean: tuple[float, ...] | None = field(default=None, metadata={"help": "public mean of each column"})
    covariance: tuple[tuple[float, ...], ...] | None = field(
        default=None, metadata={"help": "public covariance of the columns, row by row"}
    )
    cutoff: int = field(default=10, metadata={"help": "after so many flags the watch is exhausted", "when": PERSON})
    monotone: bool = field(
        default=False,
        metadata={"help": "contributions are all of one sign; half the noise, both sides", "when": PERSON},
    )
    adaptive: bool = field(default=False, metadata={"help": "flags far beyond the threshold cost half", "when": PERSON})
    window: int | None = field(
        default=None, metadata={"help": "protect any so many consecutive observations, endlessly", "when": PERSON}
    )
    steps: int | None = field(
        default=None, metadata={"help": "with δ or ρ: watch so many observations with Gaussian noise", "when": PERSON}
    )
    scores: bool = field(
        default=False, metadata={"help": "release a noisy score too, at no further cost", "when": EVENT}
    )

    def __post_init__(self) -> None:
        self._settle_season()  # first: of a release its numbers are wanted, not its entry in the ledger
        settle(self)
        check_numbers(self)
        check_threshold(self)
        object.__setattr__(self, "loss", loss_at_level(self))
        object.__setattr__(self, "relearn_share", exact(self.relearn_share, "relearn_share"))
        check_mode(self)
        check_drift(self)

    def _settle_season(self) -> None:
        """By phase everything is in spreads: limits on both sides, centres at 0, and spreads of 1."""
        if self.baseline is None:
            return
        season = Seasons.of(self.baseline)
        columns = len(season.columns)
        unit = tuple(tuple(float(row == column) for column in range(columns)) for row in range(columns))
        own: dict[str, Any] = {"low": -LIMIT, "high": LIMIT}
        if self.statistic in ("mahalanobis", "max"):
            own |= {"mean": (0.0,) * columns, "covariance": unit}
        elif self.statistic == "sum" and self.covariance is None:
            own |= {"variance": float(columns)}
        for name, value in own.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "baseline", season)
        object.__setattr__(self, "columns", self.columns or season.columns)

    @property
    def season(self) -> Seasons | None:
        """What observations are judged by, phase by phase."""
        return None if self.baseline is None else Seasons.of(self.baseline)

    @property
    def flag_distance(self) -> float:
        """The distance from the centre from which on an observation is flagged: `threshold`, or `kappa` deviations."""
        return distance_to_flag(self)

    @property
    def drift(self) -> Drift | None:
        """Who learns the season anew; None where it stays."""
        if self.season is None or self.relearn is None:
            return None
        epsilon = self.loss.epsilon * self.relearn_share
        return _drift.Drift(season=self.season, every=self.relearn, epsilon=epsilon, change=self.change)

    @property
    def deciding_epsilon(self) -> Fraction:
        """The part of ε that decides; the rest learns.  (P5)"""
        return self.loss.epsilon * (1 if self.relearn is None else 1 - self.relearn_share)

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        schema: Schema | None = getattr(facts, "schema", None)
        if self.drift is not None:
            return replace(self.drift.learner.claim(facts, schema), loss=self.loss, rho=None)  # (P5)
        return claim_of(self, facts, self.gauge(facts.dimension, schema))

    def effort(self, *, n: int, dimension: int) -> Effort:
        return Effort(steps=15_000.0 * n + 1_000.0 * n * dimension, memory=100.0 * n * (1 + dimension))

    def view(self, data: Any) -> Points:
        points = points_of(data, self.columns)
        made = self.gauge(points.dimension, points.schema)
        self.detector(made)
        self.require_reach(made)
        if self.time is not None:
            points.times(self.time)
        if self.season is not None:
            self.season.require_same(points.name, points.columns)
            self.season.places(self._season_times(points), points.n)
        if self.drift is not None:
            self.drift.learner.require_fitting(points)
        return points

    def _season_times(self, data: Points) -> list[str] | None:
        return None if self.season is None or self.season.time is None else data.times(self.season.time)

    def measure(self, data: Points, made: Gauge) -> Ints:
        """The distance of each observation, in steps; by phase of what it is in spreads of its phase.  (P4)"""
        if self.season is None:
            return made.measure(data.values)
        return made.measure(self.season.standardise(data.values, self.season.places(self._season_times(data), data.n)))

    def gauge(self, dimension: int, schema: Schema | None = None) -> Gauge:
        """How observations are measured: the statistic on its grid."""
        if self.baseline is None:  # by phase, bounds are in spreads of the season, not on the scale of the schema
            require_bounds_in_schema(self, dimension, schema)
        return gauge(
            self.statistic,
            bounds_of(self, dimension, schema),
            centre=self._usual(dimension),
            weights=self.weights,
            mean=self.mean,
            covariance=self.covariance,
            rho=self._change_of_entry(),
        )

    def _change_of_entry(self) -> float | None:
        """The most that an entry is assumed to change by, as it is measured."""
        if self.season is None or self.change is None or self.low is None or self.high is None:
            return self.change
        return self.season.change_in_spreads(self.change, self.high - self.low)

    def statement(self, dimension: int) -> Statement:
        """What is said of the observations."""
        return Statement(
            statistic=self.statistic,
            weights=self.weights or (1.0,) * dimension,
            centre=self._usual(dimension),
            mean=self.mean,
            variance=self.variance,
            covariance=self.covariance,
            truth=self.flag_distance if self.outlier_from is None else self.outlier_from,
        )

    def detector(self, made: Gauge) -> Detector:
        """Who decides, for distances of this gauge."""
        return self.detector_of(made.steps(self.flag_distance), made.move)

    def detector_of(self, threshold: int, move: int) -> Detector:
        """Who decides, for distances in steps of which one entry moves them by no more than so many."""
        return MODES[mode_of(self)](self, threshold, move)

    def require_reach(self, made: Gauge) -> None:
        """Refuse a threshold that no observation within the bounds can reach: every flag would be false."""
        if made.steps(self.flag_distance) > made.farthest:
            raise ParameterError(
                f"threshold: {self.flag_distance:g} is out of reach, since entries are clipped to their bounds and no "
                f"observation is more than {made.farthest * made.step:.6g} from the centre. Lower it, or widen the "
                "bounds."
            )

    def answer(self, data: Points, noise: Noise) -> dict[str, Any]:
        if self.drift is not None:
            return self._answer_in_blocks(self.drift, data, noise)
        made = self.gauge(data.dimension, data.schema)
        detector = self.detector(made)
        found = detector.decide(self.measure(data, made), detector.secret(noise), 0, noise)
        flagged = [place + 1 for place in found.flags.nonzero()[0].tolist()]
        value: dict[str, Any] = {"flagged": flagged, "decided": found.count}
        if self.time is not None:
            times = data.times(self.time)  # public, cell by cell: whoever has the flags could look them up
            value["times"] = [times[place - 1] for place in flagged]
        if self.season is not None:  # public by their times, too
            places = self.season.places(self._season_times(data), data.n)
            value["phases"] = [int(places[place - 1]) + 1 for place in flagged]
        return value | ({"scores": found.scores.tolist()} if found.scores is not None else {})

    def _answer_in_blocks(self, drift: Drift, data: Points, noise: Noise) -> dict[str, Any]:
        """Each block by what was learnt of the one before, and last what the next would be judged by.  (P5)"""
        value: dict[str, Any] = {"flagged": [], "decided": data.n, "phases": []}
        for block, season in drift.blocks(data, noise):
            asked = replace(self, baseline=season, relearn=None, loss=Loss(self.deciding_epsilon))
            made = asked.gauge(data.dimension, data.schema)
            far = asked.measure(data, made)[block]
            found = asked.detector(made).decide(far, (), 0, noise).flags.nonzero()[0] + block.start
            value["flagged"] += [int(place) + 1 for place in found]
            value["baseline"] = season.to_json()
        places = drift.season.places(self._season_times(data), data.n)
        value["phases"] = [int(places[place - 1]) + 1 for place in value["flagged"]]
        if self.time is not None:
            times = data.times(self.time)
            value["times"] = [times[place - 1] for place in value["flagged"]]
        return value

    def reading(self, value: dict[str, Any], facts: PublicFacts) -> Reading:
        return words.reading(self, value, facts)

    def assumed_change(self, data: Points) -> str:
        return words.change_words(self.change, self.loss.neighbours, data.schema, by_phase=self.season is not None)

    def cautions(self, data: Points) -> tuple[str, ...]:
        """What public facts of the columns warn of."""
        made = _plans.cautions_of(self, self.gauge(data.dimension, data.schema))
        return made if self.season is not None else (*made, words.unit_note(self, data))

    def picture(self, value: dict[str, Any], facts: PublicFacts) -> Band | Ticks:
        if self.season is not None and value["decided"] == facts.n:
            return self.season.picture(marks=value["phases"])
        across = f"observations, flagged ones marked{words.at_times(value, SHOWN)}"
        return Ticks(places=tuple(value["flagged"]), known=value["decided"], until=facts.n, across=across)

    def loss_of_staying(self, steps: int) -> Loss | None:
        """At event level: what a person present in so many observations pays."""
        found: Loss | None = None if self.level == "person" else _worth.loss_of_staying(self.loss, steps)
        return found

    def plan(self, *, n: int, dimension: int) -> Plan:
        if self.low is not None and self.high is not None:
            self.require_reach(self.gauge(dimension))
        made = _plans.plan_of(self, n=n, dimension=dimension)
        if self.drift is None:
            return made
        useful = made.useful and self.drift.is_useful
        return replace(made, useful=useful, reason=made.reason + self.drift.words(n))

    def plan_on(self, data: Points) -> Plan:
        """The plan, with the bounds of the schema where the query states none and all columns have the same."""
        if self.low is None and self.high is None:
            bounds = bounds_of(self, data.dimension, data.schema)
            (low, *lows), (high, *highs) = bounds.low, bounds.high
            if {low, *lows} == {low} and {high, *highs} == {high}:
                return replace(self, low=low, high=high).plan(n=data.n, dimension=data.dimension)
        return self.plan(n=data.n, dimension=data.dimension)

    def tradeoffs(self, *, dimension: int) -> tuple[Tradeoff, ...]:
        """ROC curves over thresholds, at ten losses and at this one."""
        return _plans.tradeoffs_of(self, dimension)

    @classmethod
    def example(cls) -> Self:
        return cls(threshold=4.0, low=-5.0, high=5.0, variance=4.0, loss=Loss("4"))

    def _usual(self, dimension: int) -> float:
        """The public mean of the statistic."""
        if self.centre is not None or not self.mean:
            return self.centre or 0.0
        return _dot(self.weights or (1.0,) * dimension, self.mean)


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        raise ParameterError(
            f"mean, weights, covariance: {len(other)} numbers where {len(one)} are needed. Pass one for each column."
        )
    return math.fsum(a * b for a, b in zip(one, other, strict=True))
