"""Has the mean of a stream shifted?

A watch judges observations one by one, so a lasting change of half a deviation is never flagged. A CUSUM chart adds up
how far observations are beyond the middle between the usual mean and a shifted one, and raises an alarm when the sum
reaches a threshold [Pag54]. Here the chart is private. Its threshold follows from how often false alarms may come.

Released    alarms: when, in which direction, and since when by the chart; with `path` the noisy chart itself
Guarantee   pure ε-DP       Adjacency  see `level`
Arithmetic  whole numbers on a grid, exact noise       Proof  proof.md, labels (K) (B) (W) (M) (V) (O) (U)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, NotRequired, Self, TypedDict

from wallflower.data import Points, points_of
from wallflower.data.table import require_row_order
from wallflower.drawing.picture import Ticks
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import Additive
from wallflower.noise import Noise, round_up
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.progress import Effort
from wallflower.queries.shift.charts import BOTH, SIGNS, UP, BoundedChart, Chart, Ints, Limits, NoisySums
from wallflower.queries.shift.forecast import (
    BlockForecast,
    BoundedForecast,
    BoundedValues,
    Outlook,
    drift_of,
    exact_outlook,
)
from wallflower.queries.watch.detectors import Sparse
from wallflower.queries.watch.seasons import LIMIT_SPREADS, ReleasedBaseline, SeasonalBaseline
from wallflower.queries.watch.statistics import Bounds, Statistic, check_bounds, make_statistic
from wallflower.queries.watch.watch import describe_change
from wallflower.query import (
    Condition,
    Option,
    Plan,
    PublicFacts,
    Quality,
    Query,
    Reading,
    ReleaseInput,
    Status,
    least_amount,
    normalise_fields,
    require_settings_of_mode,
)
from wallflower.schema import Schema
from wallflower.text import join, t
from wallflower.units import Claim

ENTRY, WINDOW, PERSON = "entry", "window", "person"
UNITS: Final = {ENTRY: Neighbours.ENTRY, WINDOW: Neighbours.WINDOW, PERSON: Neighbours.PERSON}
NARROW_CLIP: Final = 0.5  # standard deviations to both sides, where noise is what limits
WIDE_CLIP: Final = 2.0
NARROW_FROM: Final = 2.0  # narrow limits are chosen if one entry could move the statistic by this many of them
BLOCK_PER_SCALE: Final = 7  # observations of a block for each standard deviation of the noise scale, for a size of 1
NARROW_BLOCK_PER_SCALE: Final = 11  # the same with narrow limits
MEMORY_OF_SIZE: Final = 16  # observations that a chart with a bounded memory looks back, for a size of 1
MAX_BLOCK: Final = 100_000
MIN_BLOCKS: Final = 16  # to a run length
MAX_SIZE: Final = 5.0
MAX_RUN_LENGTH: Final = 10**9
MAX_DELAY_SHARE: Final = Fraction(1, 10)  # of the run length, up to which a delay is useful
LOW_NOISE_RATIO: Final = 1.5  # of the delay without privacy
ALARMS_IN_TEXT: Final = 5
FLOAT_MARGIN: Final = 1 - 1e-9


class Alarm(TypedDict):
    """An alarm: after which observation, from 1; and at levels entry and window, in which direction, since when."""

    at: int
    direction: NotRequired[str]
    since: NotRequired[int]


class ShiftAnswer(TypedDict):
    """A released answer.

    alarms   in order
    decided  the last observation that the chart includes
    times    the public times of alarms, if the query names a column of times
    path     the chart after every block as a share of its threshold, if asked for
    """

    alarms: list[Alarm]
    decided: int
    times: NotRequired[list[str]]
    path: NotRequired[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift(Query[Points, ShiftAnswer]):
    """Detect a lasting change of the mean of a stream.

    >>> Shift(low=-5.0, high=5.0, variance=1.0, loss=Loss("1")).cost()
    Loss(ε=1)
    """

    kind: ClassVar[str] = "shift"
    label: ClassVar[str] = "mean-shift/1"
    question: ClassVar[str] = "Has the mean of the stream shifted?"
    proof: ClassVar[str] = "queries/shift/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    accepts_stream: ClassVar[bool] = True

    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    size: float = field(
        default=1.0, metadata={"help": "shift of the mean to detect, in standard deviations of the statistic"}
    )
    direction: str = field(
        default=BOTH,
        metadata={"help": "direction of the shift of the mean", "choices": (BOTH, *sorted(set(SIGNS) - {BOTH}))},
    )
    run_length: int = field(
        default=1000, metadata={"help": "mean number of observations from one false alarm to the next"}
    )
    level: str = field(
        default=ENTRY,
        metadata={
            "help": "who is protected: one entry of one observation, one person over any window of observations "
            "(w-event privacy), one person throughout (user-level privacy)",
            "choices": tuple(UNITS),
        },
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
        default=None, metadata={"help": "public usual mean of the sum of the entries; default: 0", "span": "sum"}
    )
    variance: float | None = field(
        default=None, metadata={"help": "public variance of the sum of the entries", "span": "square"}
    )
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "columns of an observation; default: all number columns", "names": "numbers"},
    )
    time: str | None = field(
        default=None,
        metadata={"help": "column of times, public in the schema; alarms are listed by it too", "names": "times"},
    )
    baseline: SeasonalBaseline | ReleasedBaseline | int | None = field(
        default=None,
        metadata={
            "help": "seasonal baseline (release or ledger entry); values are compared in units of its spread",
            "release": ReleaseInput(kind="baseline", as_value=True, part="season"),
        },
    )
    clip: float | None = field(
        default=None,
        metadata={
            "help": "clip observations this many standard deviations beyond the middle of the shift; default: by a rule"
        },
    )
    block: int | None = field(default=None, metadata={"help": "observations to a noisy sum; default: by a rule"})
    path: bool = field(default=False, metadata={"help": "release the noisy chart too, at no further cost"})
    window: int | None = field(
        default=None,
        metadata={
            "help": "protect one person over any window of N consecutive observations",
            "when": Condition("level", WINDOW),
        },
    )
    memory: int | None = field(
        default=None,
        metadata={"help": "observations that the chart looks back", "when": Condition("level", PERSON)},
    )
    cutoff: int = field(
        default=1,
        metadata={"help": "number of alarms after which the chart stops", "when": Condition("level", PERSON)},
    )

    def __post_init__(self) -> None:
        self._apply_baseline()  # first: `normalise_fields` would replace a release by its ledger entry
        normalise_fields(self)
        _check_numbers(self)
        require_settings_of_mode(self)
        _check_loss(self)
        object.__setattr__(self, "loss", self.loss.under(UNITS[self.level]))
        if self.variance is None:
            raise ParameterError(
                "variance: the standard deviation of the statistic is not known. Pass the public variance of the sum, "
                "or a seasonal baseline."
            )

    def _apply_baseline(self) -> None:
        """With a seasonal baseline everything is in spreads: limits on both sides, centres at 0, and spreads of 1."""
        if self.baseline is None:
            return
        baseline = SeasonalBaseline.of(self.baseline)
        defaults: dict[str, Any] = {
            "low": -LIMIT_SPREADS,
            "high": LIMIT_SPREADS,
            "columns": baseline.columns,
            "variance": float(len(baseline.columns)),
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        object.__setattr__(self, "baseline", baseline)

    @property
    def seasonal_baseline(self) -> SeasonalBaseline | None:
        """The baseline that observations are compared with."""
        return None if self.baseline is None else SeasonalBaseline.of(self.baseline)

    @property
    def deviation(self) -> float:
        """The public standard deviation of the statistic."""
        assert self.variance is not None
        return math.sqrt(self.variance)

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        """Everything follows from public facts.  (U)"""
        statistic = self.statistic_on(facts.dimension, getattr(facts, "schema", None))
        limits = self.tuning(statistic).limits_on(self, statistic)
        width = limits.width(statistic.sensitivity)
        is_person = self.level == PERSON
        return Claim(
            loss=self.loss if is_person else Loss(self.loss.epsilon / (self.window or 1), neighbours=Neighbours.ENTRY),
            columns=facts.dimension,
            steps=None if is_person else facts.n or None,
            moves=-(-limits.width(statistic.range_sensitivity) // width),
            own=(("record", Fraction(-(-limits.width(statistic.record_sensitivity) // width))),),
        )

    def effort(self, *, n: int, dimension: int) -> Effort:
        return Effort(steps=20_000.0 * n + 1_000.0 * n * dimension, memory=100.0 * n * (1 + dimension))

    def view(self, data: Any) -> Points:
        require_row_order(data)
        points = points_of(data, self.columns)
        self.chart(self.statistic_on(points.dimension, points.schema))
        if self.time is not None:
            points.times(self.time)
        if self.seasonal_baseline is not None:
            self.seasonal_baseline.require_same(points.name, points.columns)
            self._standardise(points)
        return points

    def statistic_on(self, dimension: int, schema: Schema | None = None) -> Statistic:
        """Return the sum of observations of this many columns, less its centre, on a grid."""
        if self.baseline is None:  # else bounds are in spreads of the baseline, not on the scale of the schema
            check_bounds(self.low, self.high, dimension, schema)
        bounds = Bounds.of(self.low, self.high, dimension, schema)
        return make_statistic("sum", bounds, centre=self.centre or 0.0, change=self._measured_change())

    def tuning(self, statistic: Statistic | None) -> Tuning:
        """Return the public constants of the chart; without a statistic one entry may be as large as the limits."""
        movement = math.inf if statistic is None else statistic.sensitivity * statistic.step / self.deviation
        return _tune(
            _Settings(
                size=self.size,
                direction=self.direction,
                run_length=self.run_length,
                level=self.level,
                epsilon=self.loss.epsilon,
                movement=movement,
                clip=self.clip,
                block=self.block,
                window=self.window or 1,
                memory=self.memory,
                cutoff=self.cutoff,
            )
        )

    def chart(self, statistic: Statistic) -> Chart:
        """Return the chart for distances of this statistic."""
        tuning = self.tuning(statistic)
        limits = tuning.limits_on(self, statistic)
        width, unit = limits.width(statistic.sensitivity), self.deviation / statistic.step
        drift, threshold = round(tuning.drift * unit), math.ceil(tuning.outlook.threshold * unit)
        signs = SIGNS[self.direction]
        if self.level == PERSON:
            sparse = Sparse(
                threshold=threshold,
                sensitivity=tuning.memory * width,  # (M)
                epsilon=self.loss.epsilon,
                cutoff=self.cutoff,
            )
            return BoundedChart(
                limits=limits,
                drift=drift,
                threshold=threshold,
                signs=signs,
                memory=tuning.memory,
                every=tuning.block,
                sparse=sparse,
            )
        scale = Fraction(round_up((self.window or 1) * width / self.loss.epsilon))  # (B) (W)
        noise = Additive("laplace", scale, Fraction(1))
        return NoisySums(
            limits=limits, drift=drift, threshold=max(1, threshold), signs=signs, block=tuning.block, noise=noise
        )

    def measure(self, data: Points, statistic: Statistic) -> Ints:
        """Return the distance of each observation from its centre, in steps."""
        return statistic.measure(self._standardise(data))

    def answer(self, data: Points, noise: Noise) -> ShiftAnswer:
        statistic = self.statistic_on(data.dimension, data.schema)
        chart = self.chart(statistic)
        secret = chart.secret(noise)
        progress = chart.decide(self.measure(data, statistic), 1, chart.start(), noise, secret=secret)
        alarms = [
            read_alarm(place, onset)
            for place, (is_alarm, onset) in enumerate(zip(progress.alarms, progress.onsets, strict=True), start=1)
            if is_alarm
        ]
        block = self.tuning(statistic).block
        answer: ShiftAnswer = {"alarms": alarms, "decided": progress.count // block * block}
        if self.path and progress.path is not None:
            answer["path"] = progress.path
        if self.time is not None:
            times = data.times(self.time)
            answer["times"] = [times[alarm["at"] - 1] for alarm in alarms]
        return answer

    def reading(self, value: ShiftAnswer, facts: PublicFacts) -> Reading:
        tuning = self.tuning(self._statistic_if_known(facts.dimension))
        alarms, decided = value["alarms"], value["decided"]
        text = t("No shift was detected in {decided:,} observations.", decided=decided)
        if alarms:
            shown = alarms[:ALARMS_IN_TEXT]
            texts = [_describe_alarm(alarm, time) for alarm, time in zip(shown, _times_of(value), strict=False)]
            if len(alarms) > len(shown):
                texts.append(t("and {more:,} more", more=len(alarms) - len(shown)))
            text = t("A shift was detected {alarms}.", alarms=join("; ", texts))
        rest = t(
            "False alarms come every {run_length:,} observations on average; a shift of {size:g} standard deviations "
            "is detected {delay:.1f} observations after it began, on average.",
            run_length=self.run_length,
            size=self.size,
            delay=tuning.outlook.delay,
        )
        return Reading(
            mechanism=tuning.mechanism,
            interval=None,
            text=join(" ", (text, rest)),
            extras=self._figures(tuning),
            quality=self._quality(tuning),
        )

    def assumed_change(self, data: Points) -> str:
        return describe_change(self.change, self.loss.neighbours, data.schema, is_scaled=self.seasonal_baseline is None)

    def picture(self, value: ShiftAnswer, facts: PublicFacts) -> Ticks:
        places = tuple(alarm["at"] for alarm in value["alarms"])
        return Ticks(
            places=places, known=max(1, value["decided"]), until=max(1, facts.n), across="observations, alarms marked"
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        tuning = self.tuning(self._statistic_if_known(dimension))
        useful = tuning.is_useful
        smallest = least_amount(lambda amount: self._is_useful_at(amount, dimension))
        figures = {
            "delay": tuning.outlook.delay,
            "ratio": tuning.outlook.delay / tuning.exact.delay,
            "block": tuning.block,
        }
        options = (
            Option(mechanism=tuning.mechanism, figures=figures, note=tuning.note),
            Option(
                mechanism="no-privacy",
                figures={"delay": tuning.exact.delay, "ratio": 1.0, "block": 1},
                note=t("the CUSUM at as many false alarms, for comparison"),
            ),
        )
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen=tuning.mechanism,
            headings={
                "delay": t("observations until a shift is detected"),
                "ratio": t("times the delay without privacy"),
                "block": t("observations to a decision"),
            },
            options=options,
            useful=useful,
            reason=t(
                "a shift of {size:g} standard deviations is detected after {delay:.1f} observations on average "
                "({ratio:.2f} times the delay without privacy), with a false alarm every {run_length:,}; useful means "
                "after at most {most:,.0f}",
                size=self.size,
                delay=tuning.outlook.delay,
                ratio=figures["ratio"],
                run_length=self.run_length,
                most=float(self.run_length * MAX_DELAY_SHARE),
            ),
            smallest_useful_epsilon=smallest,
        )

    def plan_on(self, data: Points) -> Plan:
        """Plan with the bounds of the schema where the query states none and all columns have the same."""
        if self.low is None and self.high is None:
            bounds = Bounds.of(None, None, data.dimension, data.schema)
            if len(set(bounds.low)) == len(set(bounds.high)) == 1:
                query = replace(self, low=bounds.low[0], high=bounds.high[0])
                return query.plan(n=data.n, dimension=data.dimension)
        return self.plan(n=data.n, dimension=data.dimension)

    @classmethod
    def example(cls) -> Self:
        return cls(low=-5.0, high=5.0, variance=2.0, loss=Loss("1"), path=True)

    def _statistic_if_known(self, dimension: int) -> Statistic | None:
        return None if self.low is None or self.high is None else self.statistic_on(dimension)

    def _is_useful_at(self, amount: str, dimension: int) -> bool:
        query = replace(self, loss=Loss(amount, neighbours=self.loss.neighbours))
        try:
            return query.tuning(query._statistic_if_known(dimension)).is_useful
        except ParameterError:  # more noise than can be tabulated
            return False

    def _measured_change(self) -> float | None:
        """The most that an entry is assumed to change by, as it is measured."""
        if self.seasonal_baseline is None or self.change is None or self.low is None or self.high is None:
            return self.change
        return self.seasonal_baseline.change_in_spreads(self.change, self.high - self.low)

    def _standardise(self, data: Points) -> Any:
        """The entries; with a baseline in spreads of their bucket."""
        baseline = self.seasonal_baseline
        if baseline is None:
            return data.values
        buckets = baseline.buckets(None if baseline.time is None else data.times(baseline.time), data.n)
        return baseline.standardise(data.values, buckets)

    def _figures(self, tuning: Tuning) -> dict[str, Any]:
        return {
            "delay": tuning.outlook.delay,
            "delay_without_privacy": tuning.exact.delay,
            "run_length": self.run_length,
            "block": tuning.block,
        }

    def _quality(self, tuning: Tuning) -> Quality:
        ratio = tuning.outlook.delay / tuning.exact.delay
        noise = "low noise" if ratio <= LOW_NOISE_RATIO else "moderate noise" if tuning.is_useful else "mostly noise"
        return Quality(
            noise,  # type: ignore[arg-type]
            t(
                "a shift is detected after {delay:.1f} observations on average, {ratio:.2f} times the delay without "
                "privacy",
                delay=tuning.outlook.delay,
                ratio=ratio,
            ),
        )


def read_alarm(number: int, onset: int) -> Alarm:
    """Return the alarm after an observation, with its onset where the chart tells one.

    >>> read_alarm(32, -17)
    {'at': 32, 'direction': 'down', 'since': 17}
    """
    if onset == 0:
        return {"at": number}
    return {"at": number, "direction": "up" if onset > 0 else "down", "since": abs(onset)}


# Tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What the constants of a chart depend on."""

    size: float
    direction: str
    run_length: int
    level: str
    epsilon: Fraction
    movement: float  # of the statistic by one entry, in standard deviations
    clip: float | None
    block: int | None
    window: int
    memory: int | None
    cutoff: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The public constants of a chart, in standard deviations of the statistic.

    limits  of a distance, for a mean that rises
    drift   per block, or per observation where the memory is bounded
    block   observations from one decision to the next
    memory  observations that the chart looks back; 0: all
    """

    run_length: int
    limits: tuple[float, float]
    drift: float
    block: int
    memory: int
    outlook: Outlook
    exact: Outlook

    @property
    def mechanism(self) -> str:
        return BoundedChart.name if self.memory else NoisySums.name

    @property
    def note(self) -> str:
        if self.memory:
            return t("a noisy threshold; stops after the cutoff")
        return t("noise on the sum of every block; goes on after an alarm")

    @property
    def is_useful(self) -> bool:
        return self.outlook.delay <= self.run_length * float(MAX_DELAY_SHARE)

    def limits_on(self, query: Shift, statistic: Statistic) -> Limits:
        """Return the limits in steps of a statistic."""
        unit = query.deviation
        low, high = self.limits
        if query.direction not in (UP, BOTH):
            low, high = -high, -low
        return Limits(
            low=statistic.steps(low * unit), high=max(statistic.steps(high * unit), statistic.steps(low * unit) + 1)
        )


@lru_cache(maxsize=512)
def _tune(settings: _Settings) -> Tuning:
    size, signs = settings.size, SIGNS[settings.direction]
    reach = -size / 2 if len(signs) == 2 else size / 2  # the middle of a shift in the other direction
    is_narrow = settings.movement > NARROW_FROM * (size / 2 - reach + 2 * NARROW_CLIP)
    clip = settings.clip or (NARROW_CLIP if is_narrow else WIDE_CLIP)
    limits = (reach - clip, size / 2 + clip)
    width = min(settings.movement, limits[1] - limits[0])
    drift, run_length = drift_of(size, limits), float(settings.run_length)
    exact = exact_outlook(size, run_length * len(signs))
    if settings.level == PERSON:
        return _tune_person(settings, limits, width, drift, exact)
    scale = width * settings.window / float(settings.epsilon)
    per_scale = NARROW_BLOCK_PER_SCALE if is_narrow else BLOCK_PER_SCALE
    most = max(1, settings.run_length // MIN_BLOCKS)
    block = settings.block or min(most, max(1, round(per_scale * scale / size)))
    chart = BlockForecast(size=size, limits=limits, block=block, drift=block * drift, scale=scale)
    outlook = chart.at_run_length(run_length * len(signs))
    outlook = replace(outlook, run_length=outlook.run_length / len(signs))
    return Tuning(
        run_length=settings.run_length,
        limits=limits,
        drift=block * drift,
        block=block,
        memory=0,
        outlook=outlook,
        exact=exact,
    )


def _tune_person(
    settings: _Settings, limits: tuple[float, float], width: float, drift: float, exact: Outlook
) -> Tuning:
    memory = settings.memory or max(2, math.ceil(MEMORY_OF_SIZE / settings.size**2))
    block = min(memory, settings.block or max(1, memory // 4))
    sparse = Sparse(threshold=0, sensitivity=1, epsilon=settings.epsilon, cutoff=settings.cutoff)
    unit = memory * width / sparse.fineness  # of a coarse step
    values = BoundedValues(
        size=settings.size,
        limits=limits,
        drift=drift,
        signs=SIGNS[settings.direction],
        memory=memory,
        every=block,
    )
    chart = BoundedForecast(
        values=values,
        query_scale=float(sparse.scale) * unit,
        threshold_scale=float(sparse.fineness / sparse.parts[0]) * unit,
    )
    outlook = chart.at_run_length(float(settings.run_length))
    return Tuning(
        run_length=settings.run_length,
        limits=limits,
        drift=drift,
        block=block,
        memory=memory,
        outlook=outlook,
        exact=exact,
    )


# Checks


def _check_numbers(query: Shift) -> None:
    if query.level not in UNITS:
        raise ParameterError(f"level: {query.level!r} is not known; it is one of {', '.join(UNITS)}.")
    if query.direction not in SIGNS:
        raise ParameterError(f"direction: {query.direction!r} is not known; it is one of {', '.join(SIGNS)}.")
    if not 0.05 <= query.size <= MAX_SIZE:
        raise ParameterError(f"size: {query.size!r} is not from 0.05 to 5 standard deviations. Pass one, such as 1.")
    if query.clip is not None and not 0.1 <= query.clip <= 10:
        raise ParameterError(f"clip: {query.clip!r} is not from 0.1 to 10 standard deviations. Pass one, or omit it.")
    for name, most in (("variance", 1e200), ("change", 1e200)):
        value = getattr(query, name)
        if value is not None and not 1e-200 < value <= most:
            raise ParameterError(f"{name}: {value!r} is not a positive number; pass one, or omit it.")
    if query.centre is not None and not -1e100 <= query.centre <= 1e100:
        raise ParameterError(f"centre: {query.centre!r} is not a finite number; pass one from -1e100 to 1e100.")
    if query.low is not None and query.high is not None and not query.low < query.high:
        raise ParameterError(
            f"low, high: {query.low!r} is not below {query.high!r}; pass the public range of an entry."
        )
    for name, least, most in (
        ("run_length", 10, MAX_RUN_LENGTH),
        ("block", 1, MAX_BLOCK),
        ("window", 1, MAX_BLOCK),
        ("memory", 1, 4096),
        ("cutoff", 1, 1000),
    ):
        value = getattr(query, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most):
            raise ParameterError(f"{name}: {value!r} is not a whole number from {least:,} to {most:,}; pass one.")
    if (query.level == WINDOW) != (query.window is not None):
        raise ParameterError("window: level window needs its length. Pass window, such as 24.")
    if query.level == PERSON and query.path:
        raise ParameterError("path: at level person the chart is secret. Omit path, or choose another level.")


def _check_loss(query: Shift) -> None:
    if not isinstance(query.loss, Loss):
        raise ParameterError("loss: pass a Loss, such as Loss('0.5').")
    if query.loss.kind is not Kind.PURE:
        raise LossMismatch(f"shift is pure; a {query.loss.kind} loss has no theorem here. Pass ε alone.")
    if query.loss.amount == 0:
        raise ParameterError("epsilon: a loss of 0 allows no answer at all; pass more than 0, such as '0.1'.")
    if query.loss.neighbours not in (Neighbours.REPLACE_ONE, UNITS[query.level]):
        raise LossMismatch(
            f"shift at level {query.level} protects {UNITS[query.level]}, not {query.loss.neighbours}; omit the unit."
        )


# Texts


def _times_of(value: ShiftAnswer) -> list[str]:
    return value.get("times") or [""] * len(value["alarms"])


def _describe_alarm(alarm: Alarm, time: str) -> str:
    at = (
        t("at observation {at:,} ({time})", at=alarm["at"], time=time)
        if time
        else t("at observation {at:,}", at=alarm["at"])
    )
    if "since" not in alarm:
        return at
    if alarm["direction"] == UP:
        return t("{at}: the mean rose, since about observation {since:,}", at=at, since=alarm["since"])
    return t("{at}: the mean fell, since about observation {since:,}", at=at, since=alarm["since"])
