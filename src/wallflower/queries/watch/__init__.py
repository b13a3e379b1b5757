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
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from wallflower.data import Points, Schema, points_of
from wallflower.errors import ParameterError
from wallflower.lazy import Lazy
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.watch.claims import claim_of
from wallflower.queries.watch.gauge import STATISTICS, Gauge, gauge
from wallflower.queries.watch.modes import LEVELS, MODES, bounds_of, check_mode, check_numbers, loss_at_level, mode_of
from wallflower.query import Condition, Option, Plan, PublicFacts, Query, Reading, Status, Ticks, Tradeoff, least_amount
from wallflower.units import Claim

if TYPE_CHECKING:
    import wallflower.queries.watch.forecast as _forecast
else:
    _forecast = Lazy("wallflower.queries.watch.forecast")

USEFUL: Final = 0.1  # true positives less false positives: below this a watch tells next to nothing
STAYS: Final = (1, 10, 100)  # for how many observations a person's loss is stated
ROC_EPSILONS: Final = ("0.05", "0.1", "0.2", "0.35", "0.5", "0.75", "1", "1.5", "2", "4")
EPSILONS: Final = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10")

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

    threshold: float = field(
        metadata={"help": "flag observations whose statistic is at least this far from its centre"}
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
        default=None, metadata={"help": "public lower bound of every entry; left out: the schema's, of each column"}
    )
    high: float | None = field(
        default=None, metadata={"help": "public upper bound of every entry; left out: the schema's, of each column"}
    )
    change: float | None = field(
        default=None, metadata={"help": "assume that an entry changes by no more; left out: the bounds enforce it"}
    )
    centre: float | None = field(
        default=None, metadata={"help": "public mean of the sum; left out: that of `mean`, or 0"}
    )
    variance: float | None = field(default=None, metadata={"help": "public variance of the sum, for the plan"})
    outlier_from: float | None = field(
        default=None, metadata={"help": "for the plan: from this distance on it is an outlier; left out: the threshold"}
    )
    columns: tuple[str, ...] | None = field(
        default=None, metadata={"help": "the columns of an observation; all number columns unless given"}
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
        check_numbers(self)
        object.__setattr__(self, "loss", loss_at_level(self))
        check_mode(self)

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        schema: Schema | None = getattr(facts, "schema", None)
        return claim_of(self, facts, self.gauge(facts.dimension, schema))

    def view(self, data: Any) -> Points:
        points = points_of(data, self.columns)
        self.detector(self.gauge(points.dimension, points.schema))
        return points

    def gauge(self, dimension: int, schema: Schema | None = None) -> Gauge:
        """How observations are measured: the statistic on its grid."""
        usual = self.centre
        if usual is None:
            usual = _dot(self.weights or (1.0,) * dimension, self.mean) if self.mean else 0.0
        return gauge(
            self.statistic,
            bounds_of(self, dimension, schema),
            centre=usual,
            weights=self.weights,
            mean=self.mean,
            covariance=self.covariance,
            rho=self.change,
        )

    def detector(self, made: Gauge) -> Any:
        """Who decides, for distances of this gauge."""
        public = {"threshold": made.steps(self.threshold), "move": made.move}
        return MODES[mode_of(self)](self, public)

    def answer(self, data: Points, noise: Noise) -> dict[str, Any]:
        made = self.gauge(data.dimension, data.schema)
        detector = self.detector(made)
        found = detector.decide(made.measure(data.values), detector.secret(noise), 0, noise)
        flagged = [place + 1 for place in found.flags.nonzero()[0].tolist()]
        value: dict[str, Any] = {"flagged": flagged, "decided": found.decided}
        return value | ({"scores": found.scores.tolist()} if found.scores is not None else {})

    def reading(self, value: dict[str, Any], facts: PublicFacts) -> Reading:
        flags, decided = len(value["flagged"]), value["decided"]
        over = "" if decided == facts.n else f" Then the watch was exhausted; {facts.n - decided:,} were not looked at."
        stays = {f"{steps}": str(found) for steps in STAYS if (found := self.staying(steps)) is not None}
        expected = (
            {}
            if (ahead := self._outlook(facts.dimension)) is None
            else {
                "true_positive_rate": ahead.rates.true_positive,
                "false_positive_rate": ahead.rates.false_positive,
            }
        )
        return Reading(
            mechanism=f"{mode_of(self)} on the {self.statistic}",
            interval=None,
            words=f"{flags:,} of {decided:,} observations were flagged.{over}",
            extras=expected
            | ({"present_in_so_many": stays} if stays else {})
            | ({"assumed": assumed} if (assumed := self._assumed()) else {}),
        )

    def _assumed(self) -> list[str]:
        """What the guarantee takes for granted and nothing enforces."""
        rules = {
            f"one entry changes by at most {self.change:g}" if self.change else "": self.change is not None,
            "a person changes all observations in one direction": self.monotone,
        }
        return [rule for rule, taken in rules.items() if taken]

    def picture(self, value: dict[str, Any], facts: PublicFacts) -> Ticks:
        flagged = tuple(value["flagged"])
        return Ticks(places=flagged, known=value["decided"], until=facts.n, across="observations, flagged ones marked")

    def staying(self, steps: int) -> Loss | None:
        """At event level: what a person present in so many observations pays."""
        found: Loss | None = None if self.level == "person" else _forecast.loss_of_staying(self.loss, steps)
        return found

    def plan(self, *, n: int, dimension: int) -> Plan:
        ahead = self._outlook(dimension)
        if ahead is None:
            raise ParameterError(
                "variance: how often a watch is right depends on how the statistic usually spreads. Pass its public "
                "variance, or mean and covariance; and low and high, which a plan does not take from a schema."
            )
        options = (ahead, *self._others(dimension))
        smallest = least_amount(lambda amount: self._at(amount)._lift(dimension) >= USEFUL)
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen=ahead.mechanism,
            headings=_HEADINGS,
            options=tuple(_option(each) for each in options),
            useful=ahead.lift >= USEFUL,
            verdict=self._verdict(ahead, smallest),
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), max(0.0, self._at(e)._lift(dimension))) for e in EPSILONS),
            measure="true less false positives",
            scale="linear",
        )

    def tradeoffs(self, *, dimension: int) -> tuple[Tradeoff, ...]:
        """ROC curves over thresholds, at ten losses and at this one."""
        amounts = sorted({*ROC_EPSILONS, f"{float(self.loss.amount):g}"}, key=float)
        return tuple(curve for amount in amounts if (curve := self._at(amount)._tradeoff(amount, dimension)))

    @classmethod
    def example(cls) -> Self:
        return cls(threshold=2.0, low=-5.0, high=5.0, variance=2.0, loss=Loss("1"))

    def _outlook(self, dimension: int) -> Any:
        """What to expect, or None when too little is public."""
        setting = self._setting(dimension)
        if setting is None:
            return None
        made = self.gauge(dimension)
        return _forecast.outlook(self.detector(made), made.move * made.step, **setting)

    def _others(self, dimension: int) -> list[Any]:
        made = self.gauge(dimension)
        found: list[Any] = _forecast.others(
            self.detector(made), made.move * made.step, **self._setting(dimension) or {}
        )
        return found

    def _setting(self, dimension: int) -> dict[str, float] | None:
        spread = self.variance
        if spread is None and self.covariance is not None and self.statistic in ("sum", "weighted"):
            factors = self.weights or (1.0,) * dimension
            spread = _dot(factors, [_dot(factors, row) for row in self.covariance])
        if spread is None or self.low is None or self.high is None or self.statistic not in ("sum", "weighted"):
            return None
        truth = self.outlier_from if self.outlier_from is not None else self.threshold
        return {"variance": spread, "truth": truth, "threshold": self.threshold}

    def _tradeoff(self, amount: str, dimension: int) -> Tradeoff | None:
        setting = self._setting(dimension)
        if setting is None:
            raise ParameterError("variance: trade-offs need the public variance of the statistic, and low and high.")
        made = self.gauge(dimension)
        try:
            drawn = _forecast.curve(self.detector(made), made.move * made.step, **setting)
        except ParameterError:  # too little for the tables of this mechanism
            return None
        return Tradeoff(amount=amount, setting=drawn.thresholds, alarms=drawn.false_positive, found=drawn.true_positive)

    def _lift(self, dimension: int) -> float:
        try:
            return float(self._outlook(dimension).lift)
        except ParameterError:  # too little for the tables of this mechanism
            return 0.0

    def _verdict(self, ahead: Any, smallest: str | None) -> str:
        found = ahead.rates
        said = f"{found.true_positive:.1%} of outliers and {found.false_positive:.1%} of the others would be flagged"
        low, high = ahead.run
        run = f"; in one run, of the others, {low:.1%} to {high:.1%}" if high > low else ""
        if ahead.bounded is not None:
            run += f"; with a threshold that flags 10% of the others, {ahead.bounded:.1%} of outliers"
        if (stays := self.staying(STAYS[1])) is not None:
            run += f"; someone present in {STAYS[1]} observations pays {stays}"
        if ahead.lift >= USEFUL:
            return f"useful: {said}{run}"
        symbol = "ρ" if self.loss.kind is Kind.ZCDP else "ε"
        advice = f"; from {symbol} = {smallest} on it would be" if smallest else "; no reasonable loss makes it so"
        return f"not useful: {said}{run}{advice}"

    def _at(self, amount: str) -> Self:
        loss = self.loss
        return replace(self, loss=Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours))


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    if len(one) != len(other):
        raise ParameterError(
            f"mean, weights, covariance: {len(other)} numbers where {len(one)} are needed. Pass one for each column."
        )
    return math.fsum(a * b for a, b in zip(one, other, strict=True))


def _option(ahead: Any) -> Option:
    found, (low, high) = ahead.rates, ahead.run
    figures = {"true_positive": found.true_positive, "false_positive": found.false_positive}
    if high > low:
        figures |= {"run_low": low, "run_high": high}
    return Option(mechanism=ahead.mechanism, figures=figures, note=_NOTES.get(ahead.mechanism, ""))


_HEADINGS: Final = {
    "true_positive": "outliers flagged",
    "false_positive": "others flagged",
    "run_low": "in one run, from",
    "run_high": "to",
}
_NOTES: Final = {
    "staircase": "the best single threshold there is for one entry",
    "laplace": "plain noise on the distance",
    "paper": "as printed, at its true cost for one entry",
    "svt-exponential": "one-sided noise; stops after the cutoff",
    "svt-laplace": "the usual sparse vector; stops after the cutoff",
    "gaussian": "noise on every observation",
}
