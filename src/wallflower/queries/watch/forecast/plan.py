"""Forecasts of a watch from public numbers: how often its flags would be right, and at what cost.

A watch is useful when it is better than a coin twice over: it flags outliers more often than others by half, and at
least half of its flags are right. Where the query does not state how observations spread, the plan gives bounds that
hold for all observations, and a watch is called useless only if the best case is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from wallflower.errors import ParameterError
from wallflower.privacy import Kind, Loss, Neighbours, epsilon_of_zcdp
from wallflower.queries.watch.detectors import Chances, Detector
from wallflower.queries.watch.forecast.population import Floats, Gaussian, Population, factor_covariance
from wallflower.queries.watch.levels import Level, PersonLevel
from wallflower.queries.watch.statistics import (
    STEPS_PER_ENTRY,
    Bounds,
    Matrix,
    Statistic,
    Vector,
    make_statistic,
    statistic_named,
)
from wallflower.query import Option, Plan, Quality, Tradeoff, least_amount
from wallflower.query.accuracy import MODERATE, rate_errors, show_chance
from wallflower.text import join, t

ROC_EPSILONS: Final = ("0.05", "0.1", "0.2", "0.35", "0.5", "0.75", "1", "1.5", "2", "4")
CURVE_EPSILONS: Final = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10")
ROC_POINTS: Final = 120
STAY_OBSERVATIONS: Final = 10  # for which a plan says what a person pays
MIN_EXAMINED_SHARE: Final = 0.5  # of the observations: below it, the quality of an answer is conditional
CACHED_PLANS: Final = 64  # a query is planned when it is previewed, admitted, charged and read
MAX_RATIO_OF_RANGES: Final = 10.0  # columns whose ranges differ by more hardly share a unit
ALARM_RATE: Final = 0.1  # for a person-level watch that flags more, the plan says what it would find at this rate
MIN_LIFT: Final = 0.5  # true less false positives, of a useful watch
MIN_PRECISION: Final = 0.5  # the share of its flags that are right
RUN_QUANTILES: Final = (0.95, 0.05)  # of the thresholds, in a run that flags few and in one that flags many
SEARCH_SIZE: Final = 2**12  # members of a group where thresholds are searched
STAY_DELTA: Final = 1e-6
_ROC_END: Final = 1e-4  # false positive rate where a curve begins, and one minus it where it ends
_LARGEST_THRESHOLD: Final = 2**52

ALIKE: Final = "entries are Gaussian, independent and spread alike"
LEVEL: Final = "their means are alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamModel:
    """The public statements about a stream, and how it is measured; None where the query states nothing.

    outlier_from  an observation is an outlier from this distance on
    """

    statistic: str
    weights: Vector
    centre: float
    mean: Vector | None
    variance: float | None
    covariance: Matrix | None
    outlier_from: float
    bounds: Bounds | None
    change: float | None

    @property
    def is_sum(self) -> bool:
        return statistic_named(self.statistic).is_sum

    @property
    def is_sufficient(self) -> bool:
        """Whether rates can be forecast."""
        is_stated = self.covariance is not None or (self.is_sum and self.variance is not None)
        return self.bounds is not None and is_stated

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a forecast assumes beyond what is stated; a single column leaves nothing to assume."""
        taken = {ALIKE: self.covariance is None, LEVEL: self.mean is None}
        return tuple(rule for rule, is_taken in taken.items() if is_taken and len(self.weights) > 1)

    @property
    def deviations(self) -> tuple[float, ...]:
        """What each column adds to the spread of a sum by itself, where its variance is stated."""
        if self.covariance is None or not self.is_sum:
            return ()
        variances = (max(row[column], 0.0) for column, row in enumerate(self.covariance))
        return tuple(
            abs(weight) * math.sqrt(variance) for weight, variance in zip(self.weights, variances, strict=True)
        )

    def measured(self) -> Statistic | None:
        """Return the statistic that measures the stream; None where bounds are not stated."""
        if self.bounds is None:
            return None
        weights = self.weights if self.statistic == "weighted" else None
        return make_statistic(
            self.statistic,
            self.bounds,
            centre=self.centre,
            weights=weights,
            mean=self.mean,
            covariance=self.covariance,
            change=self.change,
        )

    def gaussian(self) -> Gaussian:
        """Return the law of the entries."""
        return Gaussian(mean=self._means(), factor=self._factor())

    def _factor(self) -> Floats:
        weights = np.array(self.weights)
        if self.covariance is None:
            return np.full(len(weights), math.sqrt((self.variance or 0.0) / float(weights @ weights)))
        covariance = np.array(self.covariance, dtype=np.float64)
        if covariance.shape != (len(weights), len(weights)) or not np.isfinite(covariance).all():
            raise ParameterError(f"covariance: {len(weights)} rows of as many numbers are needed, one for each column.")
        variance = float(weights @ covariance @ weights)
        if self.is_sum and self.variance is not None and not math.isclose(variance, self.variance, rel_tol=0.01):
            raise ParameterError(
                f"variance, covariance: they give the sum two variances, {self.variance:.4g} and {variance:.4g}. Omit "
                "one of them."
            )
        return factor_covariance((covariance + covariance.T) / 2)

    def _means(self) -> Floats:
        if self.mean is not None:
            return np.array(self.mean)
        total, size = math.fsum(self.weights), math.fsum(map(abs, self.weights))
        if self.centre and abs(total) < 1e-9 * size:
            raise ParameterError(
                "mean: weights that add up to 0 allow no such centre of entries with one mean. Pass the mean of each."
            )
        return np.full(len(self.weights), self.centre / total if self.centre else 0.0)


@lru_cache(maxsize=8)
def sample_population(model: StreamModel) -> Population:
    """Return the outliers and the others of a stream, as a watch would measure them."""
    if not model.outlier_from > 0:
        raise ParameterError(
            f"outlier_from: every observation is {model.outlier_from:g} or more from the centre. Pass from where on "
            "one is an outlier, or a threshold above 0."
        )
    statistic = model.measured()
    assert statistic is not None
    return statistic.population(
        model.gaussian(), weights=np.array(model.weights), centre=model.centre, outlier_from=model.outlier_from
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How often a mechanism is right, where `share` of the observations are outliers.

    run  where the false positive rate of a single watch lies with 90 %, if the mechanism draws a secret
    """

    mechanism: str
    true_positive: float
    false_positive: float
    share: float
    run: tuple[float, float] | None = None

    @property
    def lift(self) -> float:
        """True less false positives."""
        return self.true_positive - self.false_positive

    @property
    def flag_rate(self) -> float:
        return self.share * self.true_positive + (1 - self.share) * self.false_positive

    @property
    def precision(self) -> float:
        """The probability that a flagged observation is an outlier."""
        hits = self.share * self.true_positive
        return hits / self.flag_rate if hits else 0.0

    @property
    def is_useful(self) -> bool:
        return self.lift >= MIN_LIFT and self.precision >= MIN_PRECISION

    def figures(self) -> dict[str, float]:
        """Return the expected rates, as they stand in a release."""
        return {
            "true_positive_rate": self.true_positive,
            "false_positive_rate": self.false_positive,
            "share_of_outliers": self.share,
            "share_of_flags_that_are_false": 1 - self.precision,
        }

    def option(self, note: str) -> Option:
        figures = {"true_positive": self.true_positive, "false_positive": self.false_positive, "right": self.precision}
        if self.run is not None:
            figures |= {"run_low": self.run[0], "run_high": self.run[1]}
        return Option(mechanism=self.mechanism, figures=figures, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What to expect of a watch at a level, with a threshold, over a stream as stated."""

    level: Level
    threshold: float
    model: StreamModel
    outlier_share: float | None

    def detector(self, level: Level | None = None) -> Detector:
        """Return the detector, of this level or of another; on any grid where bounds are not stated."""
        statistic = self.model.measured()
        if statistic is None:
            return (level or self.level).detector(STEPS_PER_ENTRY * STEPS_PER_ENTRY, STEPS_PER_ENTRY)
        return (level or self.level).detector(statistic.steps(self.threshold), statistic.sensitivity)

    def outlook(self) -> Outlook | None:
        """Return how often the watch would be right; None where too little is stated."""
        return _outlook(self) if self.model.is_sufficient else None

    def plan(self, kind: str, cost: Loss, *, n: int, dimension: int) -> Plan:
        """Return the plan of a watch over `n` observations."""
        outlook = self.outlook()
        plan = _bounds_plan(self, kind, cost) if outlook is None else _rates_plan(self, kind, cost)
        reason = join("; ", (plan.reason, *self._end_clause(n, outlook)))
        return replace(plan, facts={"n": n, "dimension": dimension}, reason=reason)

    def tradeoffs(self) -> tuple[Tradeoff, ...]:
        """Return ROC curves over thresholds, at ten losses and at that of the watch."""
        if not self.model.is_sufficient:
            raise ParameterError("variance: trade-offs need the public variance of the statistic, and low and high.")
        amounts = sorted({*ROC_EPSILONS, f"{float(self.level.loss.amount):g}"}, key=float)
        return tuple(curve for amount in amounts if (curve := self._tradeoff(amount)))

    def quality(self, *, decided: int, n: int) -> Quality:
        """Rate the flags by public facts and by how many observations were examined."""
        quality = self._quality()
        if decided >= n:
            return quality
        exhausted = t(
            "The watch was exhausted after {decided:,} of {n:,} observations; the rest were not examined.",
            decided=decided,
            n=n,
        )
        rule = t(
            "{rule}; this covers the {decided:,} of {n:,} observations that were examined",
            rule=quality.rule,
            decided=decided,
            n=n,
        )
        conditions = (*quality.conditions, *((exhausted,) if decided < MIN_EXAMINED_SHARE * n else ()))
        return replace(quality, rule=rule, conditions=conditions)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the flags must know."""
        outlook = self.outlook()
        if outlook is None:
            return ()
        note = t(
            "{share} of flags like these are false alarms, for observations as stated.",
            share=show_chance(1 - outlook.precision),
        )
        if not (assumed := self.model.assumptions):
            return (note,)
        return (join(" ", (note, t("Assumed: {rules}.", rules=" and ".join(assumed)))),)

    def loss_of_staying(self, steps: int) -> Loss | None:
        """Return the cost of a person present in `steps` observations; None at levels that protect persons."""
        return compose_steps(self.level.loss, steps) if self.level.unit is Neighbours.ENTRY else None

    def _quality(self) -> Quality:
        outlook = self.outlook()
        if outlook is None:
            plan = _bounds_plan(self, "watch", self.level.loss)
            return rate_errors(MODERATE[0] if plan.useful else 1.0, plan.reason, conditions=plan.conditions)
        rule = t(
            "for observations as stated, {found} of outliers and {alarms} of the others are flagged, and {right} of "
            "flags are right",
            found=show_chance(outlook.true_positive),
            alarms=show_chance(outlook.false_positive),
            right=show_chance(outlook.precision),
        )
        return rate_errors(1 - min(outlook.lift, outlook.precision), rule)

    def _end_clause(self, n: int, outlook: Outlook | None) -> tuple[str, ...]:
        """When the watch is exhausted, if that is before the last of `n` observations."""
        detector = self.detector()
        flags = detector.flags_until_end()
        if flags is None and detector.limit is not None and detector.limit < n:
            after = t("after {steps:,}", steps=detector.limit)
        elif flags is not None and outlook is not None and flags[0] < n * outlook.flag_rate:
            counts = " to ".join(f"{count:,.0f}" for count in flags)
            places = " to ".join(f"{count / outlook.flag_rate:,.0f}" for count in flags)
            after = t("at {flags} flags, after about {places}", flags=counts, places=places)
        else:
            return ()
        return (t("{after} of {n:,} observations it is exhausted, and later ones are not examined", after=after, n=n),)

    def _tradeoff(self, amount: str) -> Tradeoff | None:
        statistic = self.model.measured()
        assert statistic is not None
        try:
            curve = trace_roc(self.detector(self.level.at_amount(amount)), sample_population(self.model))
        except ParameterError:  # too little for the tables of this mechanism
            return None
        setting = tuple(threshold * statistic.step for threshold in curve.thresholds)
        return Tradeoff(amount=amount, setting=setting, alarms=curve.false_positive, found=curve.true_positive)


@lru_cache(maxsize=CACHED_PLANS)
def _outlook(forecast: Forecast) -> Outlook:
    return predict(forecast.detector().chances(), sample_population(forecast.model), forecast.outlier_share)


def predict(chances: Chances, population: Population, share: float | None = None) -> Outlook:
    """Return how often a mechanism is right; `share` of outliers, default: that of the population."""
    low, high = (law and population.others.mean(law) for law in map(chances.law_in_run, RUN_QUANTILES))
    return Outlook(
        mechanism=chances.mechanism,
        true_positive=population.outliers.mean(chances.law),
        false_positive=population.others.mean(chances.law),
        share=population.share if share is None else share,
        run=None if low is None or high is None else (low, high),
    )


# Plans


@lru_cache(maxsize=CACHED_PLANS)
def _rates_plan(forecast: Forecast, kind: str, cost: Loss) -> Plan:
    """The plan where observations are stated."""
    outlook, statistic, detector = _outlook(forecast), forecast.model.measured(), forecast.detector()
    assert statistic is not None
    population, share = sample_population(forecast.model), forecast.outlier_share
    few = population.thin(SEARCH_SIZE)

    def at_amount(amount: str) -> Outlook:
        """The same watch at another loss; one that is too small for the tables of its mechanism is a coin."""
        try:
            return predict(forecast.detector(forecast.level.at_amount(amount)).chances(), few, share)
        except ParameterError:
            return Outlook(mechanism="none", true_positive=0.5, false_positive=0.5, share=0.0)

    smallest = least_amount(lambda amount: at_amount(amount).is_useful)
    others = detector.alternatives(statistic.step)
    return Plan(
        query=kind,
        cost=cost,
        facts={},
        chosen=outlook.mechanism,
        headings={
            "true_positive": "outliers flagged",
            "false_positive": "others flagged",
            "right": "flags that are right",
            "run_low": "others in one run, from",
            "run_high": "to",
        },
        options=(
            outlook.option(detector.note),
            *(predict(chances, population, share).option(chances.note) for chances in others),
        ),
        useful=outlook.is_useful,
        reason=_reason(forecast, outlook, smallest),
        smallest_useful_epsilon=smallest,
        curve=tuple((float(amount), max(0.0, at_amount(amount).lift)) for amount in CURVE_EPSILONS),
        measure="true less false positives",
        scale="linear",
    )


def _reason(forecast: Forecast, outlook: Outlook, smallest: str | None) -> str:
    clauses = [
        t(
            "{found} of outliers and {alarms} of the others would be flagged, and {right} of flags would be right",
            found=show_chance(outlook.true_positive),
            alarms=show_chance(outlook.false_positive),
            right=show_chance(outlook.precision),
        )
    ]
    if outlook.run is not None:
        low, high = map(show_chance, outlook.run)
        clauses.append(t("in one run, of the others, {low} to {high}", low=low, high=high))
    if isinstance(forecast.level, PersonLevel) and outlook.false_positive > ALARM_RATE:
        rate = true_positive_at_alarm_rate(forecast.detector(), sample_population(forecast.model))
        clauses.append(
            t(
                "with a threshold that flags {alarms:.0%} of the others, {found} of outliers",
                alarms=ALARM_RATE,
                found=show_chance(rate),
            )
        )
    if (staying := forecast.loss_of_staying(STAY_OBSERVATIONS)) is not None:
        clauses.append(
            t("someone present in {steps} observations pays {loss}", steps=STAY_OBSERVATIONS, loss=str(staying))
        )
    if assumed := forecast.model.assumptions:
        clauses.append(t("assumed: {rules}", rules=", ".join(assumed)))
    if not outlook.is_useful:
        symbol = "ρ" if forecast.level.loss.kind is Kind.ZCDP else "ε"
        clauses.append(
            t("from {symbol} = {amount} on it would be useful", symbol=symbol, amount=smallest)
            if smallest
            else t("no reasonable loss makes it useful")
        )
    return join("; ", tuple(clauses))


def _bounds_plan(forecast: Forecast, kind: str, cost: Loss) -> Plan:
    """The plan where nothing is stated: the chance of an observation at the threshold, and of one just short of it."""
    statistic, detector = forecast.model.measured(), forecast.detector()
    furthest = _LARGEST_THRESHOLD if statistic is None else statistic.max_distance
    ends = np.array([detector.threshold, detector.threshold - 1, furthest, 0])
    found, alarms, most, least = detector.law()(ends).tolist()
    need = "its variance, or mean and covariance" + ("" if statistic is not None else ", and low and high")
    return Plan(
        query=kind,
        cost=cost,
        facts={},
        chosen=detector.name,
        headings={"found": "beyond, at least", "alarms": "others, at most"},
        options=(Option(mechanism=detector.name, figures={"found": found, "alarms": alarms}, note=detector.note),),
        useful=most - least >= MIN_LIFT,
        reason=t(
            "at least {found} of the observations beyond the threshold and at most {alarms} of the others would be "
            "flagged, for any data",
            found=show_chance(found),
            alarms=show_chance(alarms),
        ),
        conditions=(
            t(
                "How many flags would be right depends on how the statistic spreads, which is not stated: state "
                "{need}.",
                need=need,
            ),
        ),
        smallest_useful_epsilon=None,
    )


# Thresholds


@dataclass(frozen=True, slots=True)
class RocCurve:
    """Points of a ROC curve, by rising false positives; thresholds in grid steps."""

    thresholds: tuple[int, ...]
    false_positive: tuple[float, ...]
    true_positive: tuple[float, ...]


def trace_roc(detector: Detector, population: Population) -> RocCurve:
    """Return the ROC of a detector over all thresholds."""
    few = population.thin(SEARCH_SIZE)
    high, low = (_threshold_at(detector, few, rate) for rate in (_ROC_END, 1 - _ROC_END))
    thresholds = sorted({round(at) for at in np.linspace(low, high, ROC_POINTS).tolist()}, reverse=True)
    laws = [replace(detector, threshold=threshold).law() for threshold in thresholds]
    rates = ([group.mean(law) for law in laws] for group in (few.others, few.outliers))
    return RocCurve(tuple(thresholds), *(tuple(np.clip(shares, 0, 1).tolist()) for shares in rates))


def true_positive_at_alarm_rate(detector: Detector, population: Population) -> float:
    """Return the true positive rate at the threshold where `ALARM_RATE` of the others are flagged."""
    few = population.thin(SEARCH_SIZE)
    threshold = _threshold_at(detector, few, ALARM_RATE)
    return few.outliers.mean(replace(detector, threshold=threshold).law())


def _threshold_at(detector: Detector, population: Population, alarm_rate: float) -> int:
    """The lowest threshold, in steps, at which no more than this share of the others is flagged."""
    low, high = -1, int(np.max(np.abs(population.others.distances))) + 1

    def is_high_enough(threshold: int) -> bool:
        return population.others.mean(replace(detector, threshold=threshold).law()) <= alarm_rate

    while is_high_enough(low) and low > -_LARGEST_THRESHOLD:
        low *= 2
    while not is_high_enough(high) and high < _LARGEST_THRESHOLD:
        high *= 2
    while high - low > 1 + abs(high) // 2**12:
        middle = (low + high) // 2
        low, high = (low, middle) if is_high_enough(middle) else (middle, high)
    return high


# Costs and cautions


def compose_steps(loss: Loss, steps: int, delta: float = STAY_DELTA) -> Loss | None:
    """Return the cost of a person present in `steps` observations, when `loss` is that of one.

    It is the smaller of basic and zCDP composition at `delta`; None for a loss that is not pure.

    >>> compose_steps(Loss("0.1"), 4)
    Loss(ε=2/5)
    """
    if loss.kind is not Kind.PURE:
        return None
    plain = loss.times(steps)
    bound = epsilon_of_zcdp(steps * float(loss.epsilon) ** 2 / 2, delta)
    if bound >= float(plain.epsilon):
        return plain
    return Loss(Fraction(math.ceil(bound * 1e6), 10**6), delta=Fraction(str(delta)), neighbours=loss.neighbours)


def warn_uneven(amounts: Sequence[float], what: str) -> tuple[str, ...]:
    """Return a warning where columns that are added up hardly share a unit, else nothing."""
    known = [amount for amount in amounts if amount > 0]
    if not known or max(known) <= MAX_RATIO_OF_RANGES * min(known):
        return ()
    return (
        t(
            "The sum adds columns that hardly share a unit: {what} differ by a factor of {ratio:.3g}, and the widest "
            "dominates the sum. Scale them in the schema, or weight them.",
            what=what,
            ratio=max(known) / min(known),
        ),
    )
