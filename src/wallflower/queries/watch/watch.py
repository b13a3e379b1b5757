"""When does an outlier occur in a stream of Gaussian signals?

Observations come one after another [Deg20]. Each is reduced to its distance from what is typical, and flagged, by a
coin, when that is beyond a public threshold. Which coin depends on who is protected (`level`).

Released    one bit per observation, in order; with `scores` a whole number; "exhausted" when the cutoff is reached
Guarantee   pure ε-DP; (ε, δ)-DP or ρ-zCDP with Gaussian noise       Adjacency  see `level`
Arithmetic  whole numbers on a grid, coins from proved tables        Proof      proof.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NotRequired, Self, TypedDict

from wallflower.data import Points, points_of
from wallflower.data.table import require_row_order
from wallflower.drawing.picture import Band, Ticks
from wallflower.errors import ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Loss, Neighbours, exact
from wallflower.progress import Effort
from wallflower.queries.watch.detectors import Detector
from wallflower.queries.watch.forecast.plan import Forecast, StreamModel, warn_uneven
from wallflower.queries.watch.levels import LEVELS, EntryLevel, Level, PaperLevel, PersonLevel, WindowLevel
from wallflower.queries.watch.seasons import LIMIT_SPREADS, ReleasedBaseline, SeasonalBaseline
from wallflower.queries.watch.seasons.learner import Relearning
from wallflower.queries.watch.statistics import (
    STATISTICS,
    Bounds,
    Ints,
    Statistic,
    check_bounds,
    make_statistic,
    statistic_named,
)
from wallflower.query import (
    Condition,
    Plan,
    PublicFacts,
    Query,
    Reading,
    ReleaseInput,
    Status,
    Tradeoff,
    normalise_fields,
    require_settings_of_mode,
)
from wallflower.schema import Schema
from wallflower.text import join, t
from wallflower.units import Claim

MAX_KAPPA: Final = 1e6  # standard deviations
MAX_VARIANCE: Final = 1e200
TIMES_IN_PICTURE: Final = 3  # of flagged observations
TIMES_IN_TEXT: Final = 12
STAYS: Final = (1, 10, 100)  # numbers of observations for which the cost of a person's stay is stated

ENTRY, WINDOW, PERSON = (Condition("level", name) for name in ("entry", "window", "person"))
WEIGHTED: Final = Condition("statistic", "weighted")


class WatchAnswer(TypedDict):
    """A released answer.

    flagged   the numbers of flagged observations, from 1
    decided   how many observations were examined
    times     the public times of flagged observations, if the query names a column of times
    buckets   the season buckets of flagged observations, from 1, with a seasonal baseline
    scores    the noisy score of every observation, if asked for
    baseline  the baseline that the last block was judged by, where it is re-estimated
    """

    flagged: list[int]
    decided: int
    times: NotRequired[list[str]]
    buckets: NotRequired[list[int]]
    scores: NotRequired[list[int]]
    baseline: NotRequired[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStream:
    """Public facts of observations that are still to come: their columns, and not how many there will be.

    >>> LiveStream(columns=("temperature",)).n
    0
    """

    columns: tuple[str, ...]
    schema: Schema | None = None

    @property
    def n(self) -> int:
        """0: the number of observations is not known."""
        return 0

    @property
    def dimension(self) -> int:
        return len(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(Query[Points, WatchAnswer]):
    """Watch a stream for outliers.

    >>> Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("1")).cost()
    Loss(ε=1)
    """

    kind: ClassVar[str] = "watch"
    label: ClassVar[str] = "outlier-watch/1"
    question: ClassVar[str] = "When does an outlier occur?"
    proof: ClassVar[str] = "queries/watch/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    accepts_stream: ClassVar[bool] = True

    threshold: float | None = field(
        default=None,
        metadata={"help": "flag observations whose statistic is at least this far from its centre", "span": "distance"},
    )
    kappa: float | None = field(
        default=None,
        metadata={
            "help": "threshold in standard deviations of the statistic; needs its public variance, a covariance or a "
            "baseline"
        },
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    level: str = field(
        default="entry",
        metadata={
            "help": "who is protected: one entry of one observation, one person over any window of observations "
            "(w-event privacy), one person throughout (user-level privacy); paper: one entry, as printed",
            "choices": LEVELS,
        },
    )
    statistic: str = field(
        default="sum", metadata={"help": "statistic of an observation that is compared", "choices": tuple(STATISTICS)}
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
            "help": "for the plan: distance from which an observation is an outlier; default: the threshold",
            "span": "distance",
        },
    )
    outlier_share: float | None = field(
        default=None,
        metadata={"help": "for the plan: share of observations that are outliers; default: from the variance"},
    )
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "columns of an observation; default: all number columns", "names": "numbers"},
    )
    time: str | None = field(
        default=None,
        metadata={
            "help": "column of times, public in the schema; flagged observations are listed by it too",
            "names": "times",
        },
    )
    baseline: SeasonalBaseline | ReleasedBaseline | int | None = field(
        default=None,
        metadata={
            "help": "seasonal baseline (release or ledger entry); values are compared in units of its spread",
            "release": ReleaseInput(kind="baseline", as_value=True, part="season"),
        },
    )
    relearn: int | None = field(
        default=None, metadata={"help": "re-estimate the seasonal baseline every N observations"}
    )
    relearn_share: Fraction = field(
        default=Fraction(1, 5), metadata={"help": "share of ε spent on re-estimating, with relearn"}
    )
    weights: tuple[float, ...] | None = field(
        default=None, metadata={"help": "weight of each column", "when": WEIGHTED}
    )
    mean: tuple[float, ...] | None = field(default=None, metadata={"help": "public mean of each column"})
    covariance: tuple[tuple[float, ...], ...] | None = field(
        default=None, metadata={"help": "public covariance of the columns, row by row"}
    )
    cutoff: int = field(
        default=10, metadata={"help": "number of flags after which the watch is exhausted", "when": PERSON}
    )
    monotone: bool = field(
        default=False,
        metadata={
            "help": "assume all contributions have the same sign: halves the noise, allows two-sided tests",
            "when": PERSON,
        },
    )
    adaptive: bool = field(default=False, metadata={"help": "flags far beyond the threshold cost half", "when": PERSON})
    window: int | None = field(
        default=None,
        metadata={"help": "protect one person over any window of N consecutive observations", "when": WINDOW},
    )
    steps: int | None = field(
        default=None, metadata={"help": "with δ or ρ: watch N observations with Gaussian noise", "when": PERSON}
    )
    scores: bool = field(
        default=False, metadata={"help": "release a noisy score too, at no further cost", "when": ENTRY}
    )

    def __post_init__(self) -> None:
        self._apply_baseline()  # first: `normalise_fields` would replace a release by its ledger entry
        normalise_fields(self)
        object.__setattr__(self, "relearn_share", exact(self.relearn_share, "relearn_share"))
        _check_numbers(self)
        _check_threshold(self)
        if not isinstance(self.loss, Loss):
            raise ParameterError("loss: pass a Loss, such as Loss('0.5').")
        require_settings_of_mode(self)
        _check_relearning(self)
        object.__setattr__(self, "loss", self.protection.loss)
        _check_monotone(self)

    def _apply_baseline(self) -> None:
        """With a seasonal baseline everything is in spreads: limits on both sides, centres at 0, and spreads of 1."""
        if self.baseline is None:
            return
        baseline = SeasonalBaseline.of(self.baseline)
        columns = len(baseline.columns)
        defaults: dict[str, Any] = {"low": -LIMIT_SPREADS, "high": LIMIT_SPREADS, "columns": baseline.columns}
        if self.statistic in ("mahalanobis", "max"):
            identity = tuple(tuple(float(row == column) for column in range(columns)) for row in range(columns))
            defaults |= {"mean": (0.0,) * columns, "covariance": identity}
        elif self.statistic == "sum" and self.covariance is None:
            defaults |= {"variance": float(columns)}
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "baseline", baseline)

    @property
    def seasonal_baseline(self) -> SeasonalBaseline | None:
        """The baseline that observations are compared with."""
        return None if self.baseline is None else SeasonalBaseline.of(self.baseline)

    @property
    def protection(self) -> Level:
        """Who is protected at which loss, with the settings of that level."""
        match self.level:
            case "window":
                if self.window is None:
                    raise ParameterError("window: level window needs its length. Pass window, such as 24.")
                return WindowLevel(loss=self.loss, window=self.window)
            case "person":
                return PersonLevel(
                    loss=self.loss,
                    cutoff=self.cutoff,
                    monotone=self.monotone,
                    adaptive=self.adaptive,
                    steps=self.steps,
                )
            case "paper":
                return PaperLevel(loss=self.loss)
            case _:
                share = Fraction(0) if self.relearn is None else self.relearn_share
                return EntryLevel(loss=self.loss, scores=self.scores, relearn_share=share)

    @property
    def flag_distance(self) -> float:
        """The distance from which an observation is flagged: `threshold`, or `kappa` deviations.  [Deg20, Def 1]"""
        if self.threshold is not None:
            return self.threshold
        assert self.kappa is not None
        return self.kappa * math.sqrt(_variance_of_sum(self))

    @property
    def relearning(self) -> Relearning | None:
        """How the baseline is re-estimated; None where it stays."""
        if self.seasonal_baseline is None or self.relearn is None:
            return None
        epsilon = self.loss.epsilon * self.relearn_share
        return Relearning(baseline=self.seasonal_baseline, block_size=self.relearn, epsilon=epsilon, change=self.change)

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        """Everything follows from public facts. Proved in proof.md, labels (W) (I) (C) (R) (P5)."""
        schema: Schema | None = getattr(facts, "schema", None)
        if self.relearning is not None:
            return replace(self.relearning.learner.claim(facts, schema), loss=self.loss, rho=None)  # (P5)
        statistic, loss = self.statistic_on(facts.dimension, schema), self.protection.claimed_loss()
        return Claim(
            loss=loss,
            window=self.window if loss.neighbours is Neighbours.WINDOW else None,
            columns=facts.dimension,
            steps=self.steps if loss.neighbours is Neighbours.PERSON else facts.n or None,
            moves=-(-statistic.range_sensitivity // statistic.sensitivity),  # (C)
            one_sign=self.monotone,
            separable=loss.neighbours is Neighbours.ENTRY,  # (I)
            own=(("record", Fraction(-(-statistic.record_sensitivity // statistic.sensitivity))),),  # (R)
        )

    def effort(self, *, n: int, dimension: int) -> Effort:
        return Effort(steps=15_000.0 * n + 1_000.0 * n * dimension, memory=100.0 * n * (1 + dimension))

    def view(self, data: Any) -> Points:
        require_row_order(data)
        points = points_of(data, self.columns)
        statistic = self.statistic_on(points.dimension, points.schema)
        self.detector(statistic)
        self.require_reachable(statistic)
        if self.time is not None:
            points.times(self.time)
        if self.seasonal_baseline is not None:
            self.seasonal_baseline.require_same(points.name, points.columns)
            self._buckets(points)
        if self.relearning is not None:
            self.relearning.learner.check(points)
        return points

    def statistic_on(self, dimension: int, schema: Schema | None = None) -> Statistic:
        """Return the statistic that measures observations of this many columns."""
        if self.baseline is None:  # else bounds are in spreads of the baseline, not on the scale of the schema
            check_bounds(self.low, self.high, dimension, schema)
        return make_statistic(
            self.statistic,
            Bounds.of(self.low, self.high, dimension, schema),
            centre=self._centre(dimension),
            weights=self.weights,
            mean=self.mean,
            covariance=self.covariance,
            change=self._measured_change(),
        )

    def detector(self, statistic: Statistic) -> Detector:
        """Return the detector for distances of this statistic."""
        return self.protection.detector(statistic.steps(self.flag_distance), statistic.sensitivity)

    def require_reachable(self, statistic: Statistic) -> None:
        """Refuse a threshold that no observation within the bounds can reach: every flag would be false."""
        if statistic.steps(self.flag_distance) > statistic.max_distance:
            raise ParameterError(
                f"threshold: {self.flag_distance:g} cannot be reached: entries are clipped to their bounds, and no "
                f"observation is more than {statistic.max_distance * statistic.step:.6g} from the centre. Lower it, or "
                "widen the bounds."
            )

    def measure(self, data: Points, statistic: Statistic) -> Ints:
        """Return the distance of each observation, in steps; with a baseline, of its entries in spreads.  (P4)"""
        if self.seasonal_baseline is None:
            return statistic.measure(data.values)
        return statistic.measure(self.seasonal_baseline.standardise(data.values, self._buckets(data)))

    def answer(self, data: Points, noise: Noise) -> WatchAnswer:
        if self.relearning is not None:
            return self._answer_in_blocks(self.relearning, data, noise)
        statistic = self.statistic_on(data.dimension, data.schema)
        detector = self.detector(statistic)
        output = detector.decide(self.measure(data, statistic), detector.secret(noise), 0, noise)
        answer: WatchAnswer = {"flagged": (output.flags.nonzero()[0] + 1).tolist(), "decided": output.count}
        if output.scores is not None:
            answer["scores"] = output.scores.tolist()
        return self._add_times(answer, data)

    def _answer_in_blocks(self, relearning: Relearning, data: Points, noise: Noise) -> WatchAnswer:
        """Judge each block by the baseline of the one before, and report the last baseline.  (P5)"""
        level = self.protection
        assert isinstance(level, EntryLevel)
        answer: WatchAnswer = {"flagged": [], "decided": data.n}
        loss = Loss(level.deciding_epsilon)
        for block, baseline in relearning.blocks(data, noise):
            query = replace(self, baseline=baseline, relearn=None, loss=loss)
            statistic = query.statistic_on(data.dimension, data.schema)
            distances = query.measure(data, statistic)[block]
            flags = query.detector(statistic).decide(distances, (), 0, noise).flags
            answer["flagged"] += (flags.nonzero()[0] + block.start + 1).tolist()
            answer["baseline"] = baseline.to_json()
        return self._add_times(answer, data)

    def _add_times(self, answer: WatchAnswer, data: Points) -> WatchAnswer:
        """Add public facts about flagged observations, which a reader could look up: post-processing."""
        if self.time is not None:
            times = data.times(self.time)
            answer["times"] = [times[number - 1] for number in answer["flagged"]]
        if self.seasonal_baseline is not None:
            buckets = self._buckets(data)
            answer["buckets"] = [int(buckets[number - 1]) + 1 for number in answer["flagged"]]
        return answer

    def reading(self, value: WatchAnswer, facts: PublicFacts) -> Reading:
        flags, decided = len(value["flagged"]), value["decided"]
        forecast = self.forecast(facts.dimension)
        outlook, stays = forecast.outlook(), {}
        for steps in STAYS:
            if (loss := forecast.loss_of_staying(steps)) is not None:
                stays[f"{steps}"] = str(loss)
        times = _list_times(value, TIMES_IN_TEXT)
        text = t(
            "{flags:,} of {decided:,} observations were flagged{times}.", flags=flags, decided=decided, times=times
        )
        if decided < facts.n:
            rest = facts.n - decided
            text = join(" ", (text, t("Then the watch was exhausted; {rest:,} were not examined.", rest=rest)))
        return Reading(
            mechanism=f"{forecast.detector().name} on the {self.statistic}",
            interval=None,
            text=text,
            extras=({} if outlook is None else outlook.figures())
            | ({} if self.kappa is None else {"threshold": self.flag_distance})
            | ({"cost_by_observations": stays} if stays else {})
            | ({"assumed": assumed} if (assumed := self._assumptions()) else {}),
            notes=forecast.notes(),
            quality=forecast.quality(decided=decided, n=facts.n),
        )

    def assumed_change(self, data: Points) -> str:
        return describe_change(self.change, self.loss.neighbours, data.schema, is_scaled=self.seasonal_baseline is None)

    def cautions(self, data: Points) -> tuple[str, ...]:
        """Return warnings from public facts of the columns."""
        statistic = self.statistic_on(data.dimension, data.schema)
        model = self._model(data.dimension)
        warnings: tuple[str, ...] = ()
        if model.is_sum:
            ranges = (abs(weight) * width for weight, width in zip(model.weights, statistic.bounds.widths, strict=True))
            warnings = warn_uneven(model.deviations, "their stated spreads") or warn_uneven(
                [float(width) for width in ranges], "their public ranges"
            )
        return warnings if self.seasonal_baseline is not None else (*warnings, self._describe_units(data))

    def picture(self, value: WatchAnswer, facts: PublicFacts) -> Band | Ticks:
        if self.seasonal_baseline is not None and value["decided"] == facts.n:
            return self.seasonal_baseline.picture(marks=value["buckets"])
        across = f"observations, flagged ones marked{_list_times(value, TIMES_IN_PICTURE)}"
        return Ticks(places=tuple(value["flagged"]), known=value["decided"], until=facts.n, across=across)

    def loss_of_staying(self, steps: int) -> Loss | None:
        """Return the cost of a person present in `steps` observations; None at levels that protect persons."""
        return Forecast.loss_of_staying(self.forecast(1), steps) if self.level in ("entry", "paper") else None

    def forecast(self, dimension: int) -> Forecast:
        """Return what to expect of the watch, from what the query states."""
        return Forecast(
            level=self.protection,
            threshold=self.flag_distance,
            model=self._model(dimension),
            outlier_share=self.outlier_share,
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        if self.low is not None and self.high is not None:
            self.require_reachable(self.statistic_on(dimension))
        plan = self.forecast(dimension).plan(self.kind, self.cost(), n=n, dimension=dimension)
        if self.kappa is not None:
            clause = t(
                "kappa {kappa:g} is a threshold of {threshold:.6g}", kappa=self.kappa, threshold=self.flag_distance
            )
            plan = replace(plan, reason=join("; ", (plan.reason, clause)))
        if self.relearning is None:
            return plan
        reason = join("; ", (plan.reason, self.relearning.describe(n)))
        return replace(plan, useful=plan.useful and self.relearning.is_useful, reason=reason)

    def plan_on(self, data: Points) -> Plan:
        """Plan with the bounds of the schema where the query states none and all columns have the same."""
        if self.low is None and self.high is None:
            bounds = Bounds.of(None, None, data.dimension, data.schema)
            if len(set(bounds.low)) == len(set(bounds.high)) == 1:
                query = replace(self, low=bounds.low[0], high=bounds.high[0])
                return query.plan(n=data.n, dimension=data.dimension)
        return self.plan(n=data.n, dimension=data.dimension)

    def tradeoffs(self, *, dimension: int) -> tuple[Tradeoff, ...]:
        """Return ROC curves over thresholds, at ten losses and at this one."""
        return self.forecast(dimension).tradeoffs()

    @classmethod
    def example(cls) -> Self:
        return cls(threshold=4.0, low=-5.0, high=5.0, variance=4.0, loss=Loss("4"))

    def _model(self, dimension: int) -> StreamModel:
        is_bounded = self.low is not None and self.high is not None
        return StreamModel(
            statistic=self.statistic,
            weights=self.weights or (1.0,) * dimension,
            centre=self._centre(dimension),
            mean=self.mean,
            variance=self.variance,
            covariance=self.covariance,
            outlier_from=self.flag_distance if self.outlier_from is None else self.outlier_from,
            bounds=Bounds.of(self.low, self.high, dimension, None) if is_bounded else None,
            change=self._measured_change(),
        )

    def _measured_change(self) -> float | None:
        """The most that an entry is assumed to change by, as it is measured."""
        if self.seasonal_baseline is None or self.change is None or self.low is None or self.high is None:
            return self.change
        return self.seasonal_baseline.change_in_spreads(self.change, self.high - self.low)

    def _centre(self, dimension: int) -> float:
        """The public mean of the statistic."""
        if self.centre is not None or not self.mean:
            return self.centre or 0.0
        weights = self.weights or (1.0,) * dimension
        if len(weights) != len(self.mean):
            raise ParameterError(
                f"mean, weights, covariance: {len(self.mean)} numbers where {len(weights)} are needed. Pass one for "
                "each column."
            )
        return math.fsum(weight * mean for weight, mean in zip(weights, self.mean, strict=True))

    def _buckets(self, data: Points) -> Ints:
        baseline = self.seasonal_baseline
        assert baseline is not None
        return baseline.buckets(None if baseline.time is None else data.times(baseline.time), data.n)

    def _assumptions(self) -> list[str]:
        """What the guarantee assumes and nothing enforces."""
        change = t("one entry changes by at most {change:g}", change=self.change) if self.change else None
        sign = t("a person changes all observations in one direction") if self.monotone else None
        return [rule for rule in (change, sign) if rule is not None]

    def _describe_units(self, data: Points) -> str:
        """How centre and threshold relate to the units of the columns."""
        scaling = Scaling.of(data.schema, data.columns)
        if scaling.is_identity:
            return t("Entries are divided by 1: centre and threshold are in the units of the columns.")
        if not statistic_named(self.statistic).is_sum or scaling.common_scale is None:
            note = t("Centre and threshold refer to the scaled numbers, not to the columns as they are written.")
            return join(" ", (scaling.describe(), note))
        scale, weights, centre = (
            scaling.common_scale,
            self.weights or (1.0,) * data.dimension,
            self._centre(data.dimension),
        )
        middle = centre * scale + math.fsum(w * shift for w, shift in zip(weights, scaling.shifts, strict=True))
        note = t(
            "So the centre {centre:g} is {middle:.6g} and the threshold {threshold:g} is {distance:.6g} in the units "
            "of the columns.",
            centre=centre,
            middle=middle,
            threshold=self.flag_distance,
            distance=self.flag_distance * scale,
        )
        return join(" ", (scaling.describe(), note))


# Checks


def _check_numbers(query: Watch) -> None:
    if query.level not in LEVELS:
        raise ParameterError(f"level: {query.level!r} is not known; it is one of {', '.join(LEVELS)}.")
    statistic_named(query.statistic)
    if query.statistic == "weighted" and query.weights is None:
        raise ParameterError("weights: the weighted statistic needs one for each column. Pass them.")
    for name in ("threshold", "centre"):
        value = getattr(query, name)
        if value is not None and not -1e100 <= value <= 1e100:
            raise ParameterError(f"{name}: {value!r} is not a finite number; pass one from -1e100 to 1e100.")
    for name in ("variance", "outlier_from", "change"):
        value = getattr(query, name)
        if value is not None and not 0 < value <= MAX_VARIANCE:
            raise ParameterError(f"{name}: {value!r} is not a positive number; pass one, or omit it.")
    if query.outlier_share is not None and not 0 < query.outlier_share < 1:
        raise ParameterError(f"outlier_share: {query.outlier_share!r} is not a share; pass one between 0 and 1.")
    if query.low is not None and query.high is not None and not query.low < query.high:
        raise ParameterError(
            f"low, high: {query.low!r} is not below {query.high!r}; pass the public range of an entry."
        )
    for name in ("cutoff", "window", "steps", "relearn"):
        value = getattr(query, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 10**9):
            raise ParameterError(f"{name}: {value!r} is not a whole number from 1 to 1,000,000,000; pass one.")


def _check_threshold(query: Watch) -> None:
    """Refuse a watch without a threshold, with two, or with `kappa` where the deviation is not known."""
    if query.threshold is not None and query.kappa is not None:
        raise ParameterError(
            "threshold, kappa: both are given. A watch has one threshold: a distance from the centre, or kappa "
            "standard deviations. Omit one of them."
        )
    if query.kappa is None:
        if query.threshold is None:
            raise ParameterError(
                "threshold: none is given. Pass threshold, a distance from the centre; or kappa, in standard "
                "deviations, with the variance, the covariance or a baseline."
            )
        return
    if not 0 < query.kappa <= MAX_KAPPA:
        raise ParameterError(
            f"kappa: {query.kappa!r} is not a level. It is a positive number of standard deviations. Pass one, such "
            "as 3."
        )
    if not statistic_named(query.statistic).is_sum:
        raise ParameterError(
            f"kappa: the statistic {query.statistic} is measured in standard deviations already. Only sum and "
            "weighted have a variance to take kappa of. Pass the same number as threshold."
        )
    if query.variance is None and query.covariance is None and query.baseline is None:
        raise ParameterError(
            "kappa: the standard deviation of the statistic is not known. It follows from variance, covariance or a "
            "baseline, which must be public. Pass one of them, or pass threshold."
        )
    _variance_of_sum(query)


def _variance_of_sum(query: Watch) -> float:
    """The stated variance, or w'Σw; with a seasonal baseline entries are independent and their spreads 1."""
    if query.variance is not None:
        return query.variance
    if query.covariance is None:
        return math.fsum(weight * weight for weight in query.weights or ())
    rows, weights = query.covariance, query.weights or (1.0,) * len(query.covariance)
    if {len(row) for row in rows} != {len(weights)} or len(rows) != len(weights):
        raise ParameterError(f"covariance: {len(weights)} rows of as many numbers are needed, one for each column.")
    variance = math.fsum(
        left * entry * right
        for left, row in zip(weights, rows, strict=True)
        for right, entry in zip(weights, row, strict=True)
    )
    if not 0 < variance <= MAX_VARIANCE:
        raise ParameterError(
            "covariance: the variance that follows for the statistic is not a positive number. kappa needs one that "
            "is. Correct the covariance, or pass threshold."
        )
    return variance


def _check_monotone(query: Watch) -> None:
    if query.monotone and query.weights is not None and min(query.weights) < 0 < max(query.weights):
        raise ParameterError("monotone: it needs weights of one sign. Omit it, or pass such weights.")
    if query.monotone and not statistic_named(query.statistic).is_sum:
        raise ParameterError("monotone: it needs a statistic with a sign: sum or weighted. Omit it, or choose one.")


def _check_relearning(query: Watch) -> None:
    """Refuse to re-estimate without a baseline, or at another level than entry."""
    if query.relearn is None:
        return
    if query.baseline is None:
        raise ParameterError("relearn: it re-estimates a seasonal baseline, and none is given. Pass one as baseline.")
    if query.level != "entry" or query.scores:
        raise ParameterError("relearn: it needs level entry, without scores. Omit one of them.")
    if not 0 < query.relearn_share < 1:
        raise ParameterError("relearn_share: it must be above 0 and below 1. Pass one such as '0.2'.")


# Texts


def _list_times(value: WatchAnswer, most: int) -> str:
    """The first times of flagged observations, after a colon."""
    times = value.get("times") or ()
    more = f" and {len(times) - most:,} more" if len(times) > most else ""
    return f": {', '.join(times[:most])}{more}" if times else ""


def describe_change(change: float | None, neighbours: Neighbours, schema: Schema, *, is_scaled: bool) -> str:
    """Return the change that a stated loss hides where it is assumed to be at most `change`; else an empty text."""
    if change is None:
        return ""
    is_divided = is_scaled and any(scale != 1 for scale in Scaling.of(schema, schema.numbers).scales)
    size = (
        t("at most {change:g} (after division by the scale of its column)", change=change)
        if is_divided
        else t("at most {change:g}", change=change)
    )
    match neighbours:
        case Neighbours.PERSON:
            return t("any one person's contributions to the whole stream changed, each by {size}", size=size)
        case Neighbours.WINDOW:
            return t(
                "any one person's contributions to a window of consecutive observations changed, each by {size}",
                size=size,
            )
        case _:
            return t("any one entry of one observation changed by {size}", size=size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How the schema scales some columns: a shift is subtracted, then the number is divided by a scale."""

    names: tuple[str, ...]
    shifts: tuple[float, ...]
    scales: tuple[float, ...]

    @classmethod
    def of(cls, schema: Schema, names: Sequence[str]) -> Self:
        known = {column.name: column for column in schema.columns or ()}
        pairs = [
            (float(known[name].center), float(known[name].scale)) if name in known else (0.0, 1.0) for name in names
        ]
        return cls(
            names=tuple(names), shifts=tuple(shift for shift, _ in pairs), scales=tuple(scale for _, scale in pairs)
        )

    @property
    def is_identity(self) -> bool:
        return set(self.shifts) <= {0.0} and set(self.scales) <= {1.0}

    @property
    def common_scale(self) -> float | None:
        """The scale of all columns, if they share one."""
        return self.scales[0] if len(set(self.scales)) == 1 else None

    def describe(self) -> str:
        columns = ", ".join(
            f"{name} {scale:g}" + (f" after subtracting {shift:g}" if shift else "")
            for name, shift, scale in zip(self.names, self.shifts, self.scales, strict=True)
        )
        return t("By the schema, entries are divided by: {columns}.", columns=columns)
