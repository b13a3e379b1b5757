"""Counts of outliers at one radius, by three mechanisms.

`OneSidedCount` is ours: noise on a Lipschitz extension of the count, whose sensitivity is `slack` + 1 in any dimension.
The extension never counts too few, so the upper end of its interval is proved. `GlobalCount` and `SmoothCount` are
those of the paper, done right [Oka15]: noise for the global and for the smooth sensitivity of the plain count, which
grow with the dimension; both ends of their intervals are proved. `two_sided.py` adds the second end to the extension.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

import numpy as np

from wallflower.data import Points, TiledPoints, TiledTable
from wallflower.drawing.picture import Dot, Picture
from wallflower.errors import EngineMismatch, ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.mechanisms import Additive, calibrate, smooth_additive, smooth_beta
from wallflower.neighbours.certificate import check_size
from wallflower.neighbours.limits import (
    check_radius,
    per_column,
    require_single_coordinates,
    rounding_bound,
    view_points,
)
from wallflower.neighbours.noisy_count import (
    CROWDED_SHARE,
    STEP,
    CapRule,
    ChosenCap,
    cap_rule,
    count_noise,
    crowded_neighbours,
    crowding_steps,
    exact_count,
    gap_steps,
    interval,
    join_widths,
    noisy_steps,
    round_to_records,
    size_cap,
)
from wallflower.neighbours.relations import (
    EUCLIDEAN,
    HAVERSINE,
    Metric,
    RelatedPoints,
    check_metric,
    check_relatable,
    metric_name,
    relate_points,
    relation_effort,
    require_degrees,
)
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.progress import Effort
from wallflower.queries.near import EPSILONS, A, CappedQuery, NearQuery, Records, V
from wallflower.query import COVERS, Option, Plan, PublicFacts, Reading, Status
from wallflower.query.accuracy import CONFIDENCE, MODERATE, NoiseLaw, rate_number
from wallflower.text import t
from wallflower.theorems import name_labels

if TYPE_CHECKING:
    import wallflower.queries.count.exact as _exact
    import wallflower.queries.count.sensitivity as _sensitivity
else:
    _exact = Lazy("wallflower.queries.count.exact")  # compiled kernels, which a plan does without
    _sensitivity = Lazy("wallflower.queries.count.sensitivity")

# Bias of the extension, as a share of the records, by cap over neighbours: the study's mean of tables that are not
# crowded, and that of uniform data
CALM_BIAS: Final = ((0.0, 0.0002), (0.5, 0.0002), (1.0, 0.0))
CROWDED_BIAS: Final = ((0.0, 0.7), (0.25, 0.053), (0.3, 0.026), (0.4, 0.003), (0.5, 0.0003), (0.6, 0.0))
MIN_CHANCE: Final = 1e-6  # a cap that is chosen less often adds nothing to an expected error
USEFUL_SHARE: Final = MODERATE[1]  # of the records: more than moderate noise makes a plan not useful
NOISE_LABELS: Final = {Kind.PURE: "L", Kind.APPROXIMATE: "L G1 G2", Kind.ZCDP: "Z"}
TOTALS: Final[Mapping[str, str]] = {"total": t("expected error, calm ±"), "crowded": t("crowded ±")}
HEADINGS: Final[Mapping[str, str]] = {
    **TOTALS,
    "error": t("typical noise ±"),
    "half_width": t("95 % within ±"),
    "deviation": t("deviation"),
}


@dataclass(frozen=True, slots=True)
class Counted:
    """A released count, and the degree cap that a released test chose for it; None where public facts fix the cap."""

    value: int
    cap: ChosenCap | None = None


C = TypeVar("C", bound=Counted)


@dataclass(frozen=True, kw_only=True)
class CountQuery(NearQuery[V, A]):
    """Count outliers: what all classes of the verb `count` have in common."""

    kind: ClassVar[str] = "count"
    label: ClassVar[str] = "outlier-count/1"
    question: ClassVar[str] = "How many outliers are there?"
    proof: ClassVar[str] = "queries/count/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    supports_tiles: ClassVar[bool] = True
    title: ClassVar[str] = "a count"
    min_slack: ClassVar[int] = 2  # with less, even dense data are overcounted


@dataclass(frozen=True, kw_only=True)
class RadiusCount(CountQuery[Records, A]):
    """Count the outliers at one radius."""

    mechanism: ClassVar[str] = "extension"

    radius: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_radius(self.radius)

    @abstractmethod
    def noise(self, n: int, dimension: int) -> Additive:
        """Return the noise of the count from public facts, or a bound on it where it follows the data."""

    @abstractmethod
    def total_errors(self, n: int, dimension: int) -> tuple[float, float]:
        """Return the expected error on a table that is not crowded and on a crowded one: noise and bias."""

    @abstractmethod
    def describe_interval(self, n: int, dimension: int) -> str:
        """Return how far the interval reaches, and what of it is proved."""

    @property
    @abstractmethod
    def mechanism_note(self) -> str:
        """When the mechanism is weak, for a plan that compares it with others."""

    def effort(self, *, n: int, dimension: int) -> Effort:
        return self.estimate_searches(n, dimension, 1)

    def picture(self, value: int, facts: PublicFacts) -> Picture:
        return Dot(value=value, across="outliers")

    def half_width(self, n: int, dimension: int) -> float:
        """Return within how many records the noise is, with 95 %."""
        return self.noise(n, dimension).half_width(CONFIDENCE)

    def read_count(
        self,
        value: int,
        facts: PublicFacts,
        law: Additive,
        ends: tuple[int, int],
        *,
        any_outlier: Mapping[str, Any],
        both_ends_proved: bool,
        extras: Mapping[str, Any],
        notes: tuple[str, ...] = (),
    ) -> Reading:
        """Return the reading of a count with this noise and these ends of its interval, what is proved first."""
        (low, high), n = ends, facts.n
        if both_ends_proved:
            sentence = t(
                "{low:,} to {high:,} of {n:,} records are outliers (95 % confidence); estimate {value:,}.",
                low=low,
                high=high,
                n=n,
                value=value,
            )
        else:
            sentence = t(
                "At most {high:,} of {n:,} records are outliers (97.5 % confidence); estimate {value:,}.",
                high=high,
                n=n,
                value=value,
            )
        brief = t("at most {high:,} (97.5 % confidence); estimate {value:,}", high=high, value=value)
        powerless = t("At this ε the test whether there is any outlier has no power: it could never say yes.")
        return Reading(
            mechanism=self.mechanism,
            interval=(float(low), float(high)),
            covers=COVERS if both_ends_proved else t("noise only, 95 %:"),
            text=sentence,
            brief="" if both_ends_proved else brief,
            extras={"at_most": high, "at_least": low if both_ends_proved else None, "any": any_outlier, **extras},
            notes=(*notes, *((powerless,) if any_outlier["threshold"] > n else ())),
            quality=rate_number(
                law.half_width(CONFIDENCE),
                number=value,
                records=n,
                interval="two-sided" if both_ends_proved else "upper end only",
            ),
        )

    def option(self, n: int, dimension: int) -> Option:
        """Return the figures of this mechanism, for a plan."""
        noise = self.noise(n, dimension)
        errors = (noise.mean_error(), noise.half_width(CONFIDENCE), noise.deviation())
        figures = dict(zip(HEADINGS, (*self.total_errors(n, dimension), *errors), strict=True))
        return Option(mechanism=self.mechanism, figures=figures, note=self.mechanism_note)

    def plan(self, *, n: int, dimension: int) -> Plan:
        width = self.half_width(n, dimension)
        useful = width <= USEFUL_SHARE * n
        smallest = self.find_least_amount(lambda query: query.half_width(n, dimension) <= USEFUL_SHARE * n)
        limit = t("{interval} among {n:,} records", interval=self.describe_interval(n, dimension), n=n)
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen=self.mechanism,
            headings=HEADINGS,
            options=self._compare_mechanisms(n, dimension),
            useful=useful,
            reason=self.explain_use(limit, useful, smallest),
            smallest_useful_epsilon=smallest,
            curve=self.trace(lambda query: query.half_width(n, dimension), EPSILONS),
            measure=t("half-width of the 95 % interval"),
            notes=self.plan_notes(n, dimension),
        )

    def plan_notes(self, n: int, dimension: int) -> tuple[str, ...]:
        """Return what a plan states besides its figures."""
        return ()

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=1.3, loss=Loss("0.5"))

    def _compare_mechanisms(self, n: int, dimension: int) -> tuple[Option, ...]:
        """Return the figures of every mechanism that the parameters allow."""
        options = []
        for mechanism in (OneSidedCount, GlobalCount, SmoothCount):
            if mechanism.mechanism == self.mechanism:
                options.append(self.option(n, dimension))
                continue
            try:
                options.append(mechanism.like(self).option(n, dimension))
            except ParameterError:  # such as smooth noise without δ
                continue
        return tuple(options)


# The extension


@dataclass(frozen=True, kw_only=True)
class ExtensionCount(RadiusCount[C], CappedQuery[Records, C]):
    """Count with noise on the Lipschitz extension; a released test of crowding may choose its degree cap.  (X)"""

    @property
    def loss_per_number(self) -> Loss:
        """The loss of each released number."""
        return self.loss

    @property
    def has_certificates(self) -> bool:
        """Whether what is counted comes from accepted certificates alone.  (C5)"""
        return False

    @property
    def mechanism_note(self) -> str:
        return t("may overcount where many records have barely enough neighbours")

    def rule(self, n: int, dimension: int | None) -> CapRule:
        """Return how the degree cap is chosen.  (X)"""
        usual = size_cap(n, self.neighbours, self.loss_per_number, dimension=dimension)
        return cap_rule(n, self.neighbours, self.loss, slack=self.slack, usual=usual)

    def with_cap(self, n: int, dimension: int | None, chosen: ChosenCap | None = None) -> Self:
        """Return the count with its degree cap fixed and the loss that the choice leaves; by default the cap of a table
        that is not crowded.  (X)"""
        rule = self.rule(n, dimension)
        return replace(self, slack=rule.narrow if chosen is None else chosen.cap, loss=rule.numbers)

    def capped_noise(self, n: int, dimension: int, chosen: ChosenCap | None = None) -> Additive:
        """Return the noise of the count with this degree cap.  (N)"""
        capped = self.with_cap(n, dimension, chosen)
        gap = 0 if self.has_certificates else gap_steps(n, self.neighbours, capped.fixed_slack)
        return count_noise(capped.fixed_slack, capped.loss_per_number, gap=gap)

    def noise(self, n: int, dimension: int) -> Additive:
        return self.capped_noise(n, dimension)

    @property
    def fixed_slack(self) -> int:
        """The degree cap, once it is fixed."""
        assert self.slack is not None
        return self.slack

    def total_errors(self, n: int, dimension: int) -> tuple[float, float]:
        return expect_errors(
            self.rule(n, dimension),
            self.neighbours,
            lambda chosen: self.capped_noise(n, dimension, chosen).mean_error(),
        )

    def plan_notes(self, n: int, dimension: int) -> tuple[str, ...]:
        return (describe_rule(self.rule(n, dimension), self.neighbours),)

    def view(self, data: Any) -> Records:
        points = self.view_records(data)
        self.noise(points.n, points.dimension)  # noise too wide to be drawn is refused here, before the charge
        return points

    def conditions(self, data: Records) -> tuple[str, ...]:
        n, dimension = data.n, data.dimension
        cap = self.check_cap(self.rule(n, dimension), lambda wide: wide.half_width(n, dimension))
        return (*self.check_columns(data), *cap)

    def rests_on(self, data: Records) -> tuple[str, ...]:
        labels = f"P E C1 C2 N F{' X' if self.slack is None else ''}{' T C4' if isinstance(data, TiledPoints) else ''}"
        return name_labels("count", labels) + name_labels("mechanisms", NOISE_LABELS[self.loss.kind])

    def choose_cap(self, data: Records | RelatedPoints, noise: Noise) -> ChosenCap | None:
        """Draw the degree cap by the test of crowding, where one is made: a part of the loss pays for it.  (X)"""
        rule = self.rule(data.n, data.dimension)
        if rule.test is None:
            return None
        radius, normalise = self.search_in(data)
        points = data if isinstance(data, TiledPoints) else data.values
        steps = crowding_steps([points], radius, self.neighbours, normalise=normalise, certify=self.has_certificates)
        return rule.choose(steps, noise)

    def count_records(self, data: Records | RelatedPoints, noise: Noise) -> int:
        """Return the noisy count with a degree cap that is fixed.  (P) (E) (C1) (C2) (N)"""
        radius, normalise = self.search_in(data)
        points = data if isinstance(data, TiledPoints) else data.values
        steps = noisy_steps(
            points,
            radius,
            self.neighbours,
            self.fixed_slack,
            self.loss_per_number,
            noise,
            normalise=normalise,
            certify=self.has_certificates,
        )
        return round_to_records(Fraction(steps), data.n)

    def search_in(self, data: Records | RelatedPoints) -> tuple[float, bool]:
        """Return radius and `normalise` for the coordinates, where labels make columns that are several.  (W)"""
        return per_column(self.radius, data.dimension, sum(map(len, data.places)), normalise=self.normalise)

    def as_released(self, extras: Mapping[str, Any], facts: PublicFacts) -> Self:
        if "crowding" not in extras:
            return self
        chosen = ChosenCap(extras["slack"], extras["crowding"], extras["slack_reason"])
        return self.with_cap(facts.n, facts.dimension, chosen)


@dataclass(frozen=True, kw_only=True)
class OneSidedCount(ExtensionCount[Counted]):
    """Count by the extension; only the upper end of the interval is proved. Another metric than Euclid's may say who is
    near, since the proof needs nothing of a distance but its symmetry.  (R)

    >>> OneSidedCount(radius=0.5, neighbours=3, loss=Loss("0.5")).noise(1000, 2).half_width(0.95) < 50
    True
    """

    metric: Metric = field(default=EUCLIDEAN)
    certify: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_metric(self.metric)
        if self.certify and not self.is_euclidean:
            raise ParameterError("certify: certificates need euclidean distances. Omit certify, or metric.")

    @property
    def has_certificates(self) -> bool:
        return self.certify

    @property
    def is_euclidean(self) -> bool:
        """Whether distances are Euclid's, normalised or not."""
        return isinstance(self.metric, str) and self.metric == EUCLIDEAN

    @classmethod
    def like(cls, query: RadiusCount[Any]) -> Self:
        """Return the count by this mechanism with the terms of another one."""
        return cls(**_shared_terms(query))

    def rule(self, n: int, dimension: int | None) -> CapRule:
        return super().rule(n, dimension if self.is_euclidean else None)  # (K) is a fact of Euclid's geometry

    def effort(self, *, n: int, dimension: int) -> Effort:
        search = super().effort(n=n, dimension=dimension)
        return search if self.is_euclidean else relation_effort(self.metric, search, n, dimension)

    def view(self, data: Any) -> Records:
        if self.certify:
            if isinstance(data, TiledTable):
                raise EngineMismatch(data.engine, "count with certify", "Omit certify")
            check_size(data.n)
        if self.is_euclidean:
            return super().view(data)
        if isinstance(data, TiledTable):
            raise EngineMismatch(data.engine, f"count with metric {metric_name(self.metric)}", "Choose euclidean")
        points = view_points(data, self.columns, self.neighbours)
        check_relatable(self.metric, points.n, points.dimension)
        if self.metric == HAVERSINE:
            require_degrees(points.schema, points.columns)
        self.noise(points.n, points.dimension)
        return points

    def check_columns(self, data: Records) -> tuple[str, ...]:
        return () if self.metric == HAVERSINE else super().check_columns(data)  # degrees have one scale

    def rests_on(self, data: Records) -> tuple[str, ...]:
        labels = super().rests_on(data)
        if not self.certify:
            return labels
        rounded = " N" if self.loss.kind is Kind.PURE else ""  # which (C5) has for a pure loss
        solver = name_labels("count", f"C1 C2 F{rounded}")  # with accepted certificates, nothing rests on the solver
        return tuple(dict.fromkeys("(C5) of count" if label in solver else label for label in labels))

    def answer(self, data: Records, noise: Noise) -> Counted:
        records: Records | RelatedPoints = data
        if not self.is_euclidean:
            assert isinstance(data, Points)
            records = relate_points(data, self.metric, self.radius)  # (R)
        chosen = self.choose_cap(records, noise)
        capped = self.with_cap(data.n, data.dimension, chosen)
        return Counted(capped.count_records(records, noise), chosen)

    def reading(self, value: Counted, facts: PublicFacts) -> Reading:
        chosen = value.cap or self.rule(facts.n, facts.dimension).take_narrow()
        law = self.capped_noise(facts.n, facts.dimension, value.cap)
        unproved = t(
            "Only the upper end is proved: the mechanism overcounts where many records have barely enough neighbours. "
            "interval='two-sided' proves both ends."
        )
        return self.read_count(
            value.value,
            facts,
            law,
            interval(value.value, facts.n, law),
            any_outlier=check_any_outlier(value.value, law) | {"false_alarm": None, "p_value": None},  # (A)
            both_ends_proved=False,
            extras={**chosen.facts, "noise_law": NoiseLaw.of(law).to_json()},
            notes=(unproved, *describe_cap(chosen, self.neighbours), *self._describe_certificate()),
        )

    def _describe_certificate(self) -> tuple[str, ...]:
        if not self.certify:
            return ()
        return (t("What noise was added to comes from a certificate checked in whole numbers, not from the solver."),)

    def describe_interval(self, n: int, dimension: int) -> str:
        crowded = self.capped_noise(n, dimension, self.rule(n, dimension).likely_cap()).half_width(CONFIDENCE)
        return t("noise within {widths}", widths=join_widths(self.half_width(n, dimension), crowded))


# The mechanisms of the paper


@dataclass(frozen=True, kw_only=True)
class PlainCount(RadiusCount[Counted]):
    """Count plainly, with noise for a bound on how far one record moves the count; it has no degree cap."""

    @classmethod
    def like(cls, query: RadiusCount[Any]) -> Self:
        """Return the count by this mechanism with the terms of another one, or refuse its metric."""
        if isinstance(query, OneSidedCount) and not query.is_euclidean:
            raise ParameterError(f"metric: mechanism {cls.mechanism} needs euclidean. Omit metric.")
        return cls(**_shared_terms(query))

    def total_errors(self, n: int, dimension: int) -> tuple[float, float]:
        error = self.noise(n, dimension).mean_error()  # without bias, on every table
        return error, error

    def describe_interval(self, n: int, dimension: int) -> str:
        width = self.half_width(n, dimension)
        return join_widths(width, width)

    def view(self, data: Any) -> Records:
        points = self.view_records(data)
        require_single_coordinates(points, f"mechanism: {self.mechanism}", "extension")
        self.noise(points.n, points.dimension)  # noise too wide to be drawn is refused here, before the charge
        return points

    def conditions(self, data: Records) -> tuple[str, ...]:
        return self.check_columns(data)

    def count_exactly(self, data: Records) -> int:
        """Return the number of outliers, without privacy."""
        if isinstance(data, TiledPoints):
            return exact_count(data, self.radius, self.neighbours, normalise=self.normalise)
        return int(_exact.count_outliers(data.values, self.radius, self.neighbours, normalise=self.normalise))

    def reading(self, value: Counted, facts: PublicFacts) -> Reading:
        law = self.noise(facts.n, facts.dimension)
        return self.read_count(
            value.value,
            facts,
            law,
            interval(value.value, facts.n, law),
            any_outlier=check_any_outlier(value.value, law),
            both_ends_proved=True,
            extras=self.noise_facts(law),
        )

    def noise_facts(self, law: Additive) -> Mapping[str, Any]:
        """Return the law of the noise, where it is public."""
        return {"noise_law": NoiseLaw.of(law).to_json()}


@dataclass(frozen=True, kw_only=True)
class GlobalCount(PlainCount):
    """Count with noise for the global sensitivity: how far one record moves the count of any table.  (G)"""

    mechanism: ClassVar[str] = "global"
    title: ClassVar[str] = "a count by mechanism global"

    @property
    def mechanism_note(self) -> str:
        return t("noise grows with the dimension and the number of neighbours")

    def noise(self, n: int, dimension: int) -> Additive:
        return calibrate(rounding_bound(n, dimension, self.neighbours), self.loss, step=Fraction(1))

    def answer(self, data: Records, noise: Noise) -> Counted:
        noisy = self.count_exactly(data) + self.noise(data.n, data.dimension).draw(noise)  # (G)
        return Counted(round_to_records(noisy / STEP, data.n))

    def rests_on(self, data: Records) -> tuple[str, ...]:
        return name_labels("count", "P G") + name_labels("mechanisms", NOISE_LABELS[self.loss.kind])


@dataclass(frozen=True, kw_only=True)
class SmoothCount(PlainCount):
    """Count with noise for the smooth sensitivity, which follows the table and needs δ [NRS07].  (U) (L) (S)"""

    mechanism: ClassVar[str] = "smooth"
    title: ClassVar[str] = "a count by mechanism smooth"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss.kind is not Kind.APPROXIMATE:
            raise ParameterError("delta: smooth noise needs one above 0; pass one such as '1e-6', or use extension.")
        self.beta  # noqa: B018 - refuses a loss that leaves nothing to smooth by

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=1.3, loss=Loss("0.5", delta="1e-6"))

    @property
    def beta(self) -> float:
        """By how much the smooth bound may differ between adjacent tables, as an exponent.  (S)"""
        return smooth_beta(self.loss.epsilon, self.loss.delta, least=1, step=STEP)

    @property
    def mechanism_note(self) -> str:
        return t("worst case; most tables get less noise")

    def noise(self, n: int, dimension: int) -> Additive:
        most = max(1, rounding_bound(n, dimension, self.neighbours))
        return smooth_additive(float(most), self.loss.epsilon, step=STEP)

    def noise_facts(self, law: Additive) -> Mapping[str, Any]:
        return {}  # the noise follows the data

    def view(self, data: Any) -> Records:
        if isinstance(data, TiledTable):
            raise EngineMismatch(data.engine, "count with mechanism smooth", "Choose the mechanism extension or global")
        return super().view(data)

    def answer(self, data: Records, noise: Noise) -> Counted:
        assert isinstance(data, Points)
        bound = _sensitivity.rounded_smooth_bound(
            data.values, self.radius, self.neighbours, beta=self.beta, normalise=self.normalise
        )  # (U) (L) (S)
        law = smooth_additive(max(1.0, bound), self.loss.epsilon, step=STEP)
        return Counted(round_to_records(self.count_exactly(data) / STEP + law.draw(noise), data.n))

    def rests_on(self, data: Records) -> tuple[str, ...]:
        return name_labels("count", "P U L S") + name_labels("mechanisms", "S")


def _shared_terms(query: RadiusCount[Any]) -> dict[str, Any]:
    """Return the parameters that every mechanism has."""
    names = ("neighbours", "radius", "loss", "columns", "normalise", "scale")
    return {name: getattr(query, name) for name in names}


# What is said of a count, from its value and public facts alone


def check_any_outlier(value: int, noise: Additive) -> dict[str, Any]:
    """Test whether there is any outlier at all: read off the released count, at no further cost.  (A)

    `says` is yes from `threshold` on. Without any outlier it says yes with probability `false_alarm` at most; with at
    least `found_from` of them it says no with probability 5 % at most. `p_value` is how often a count this high or
    higher is released when there is none.
    """
    threshold = max(1, math.ceil(noise.half_width(1 - 2 * (1 - CONFIDENCE)) + 0.5))
    return {
        "says": value >= threshold,
        "threshold": threshold,
        "false_alarm": noise.upper_tail(threshold - 0.5),
        "found_from": 2 * threshold,
        "p_value": noise.upper_tail(value - 0.5) if value > 0 else 1.0,
    }


def describe_cap(chosen: ChosenCap, neighbours: int) -> tuple[str, ...]:
    """Return what a release states about a degree cap that was chosen by the test of crowding.  (X)"""
    if chosen.crowding is None:
        return ()
    note = t(
        "The degree cap is {cap}: about {crowding:.1%} of the records have from {fewest} to {most} neighbours, by a "
        "noisy test that {part} of the loss paid for.",
        cap=chosen.cap,
        crowding=chosen.crowding,
        fewest=neighbours,
        most=crowded_neighbours(neighbours) - 1,
        part=name_part(chosen.test_share),
    )
    return (note,)


def describe_rule(rule: CapRule, neighbours: int) -> str:
    """Return what a plan states about the degree cap and what it does to crowded tables."""
    if rule.test is None:
        return t("The degree cap is {cap}, {reason}.", cap=rule.narrow, reason=rule.reason)
    return t(
        "The degree cap is from {narrow} on a calm table to {wide} on a crowded one, by a noisy test that {part} of "
        "the loss pays for: how many records have from {fewest} to {most} neighbours.",
        narrow=rule.narrow,
        wide=rule.wide,
        part=name_part(rule.test_share),
        fewest=neighbours,
        most=crowded_neighbours(neighbours) - 1,
    )


def name_part(share: Fraction) -> str:
    """Return a part of the loss in words.

    >>> name_part(Fraction(1, 7)), name_part(Fraction(2, 7)), name_part(Fraction(1, 3))
    ('a seventh', 'two sevenths', '1/3')
    """
    names = {Fraction(1, 10): t("a tenth"), Fraction(1, 7): t("a seventh"), Fraction(2, 7): t("two sevenths")}
    return names.get(share, str(share))


def expect_errors(rule: CapRule, neighbours: int, noise_error: Callable[[ChosenCap], float]) -> tuple[float, float]:
    """Return the expected total error, mean noise and the study's bias, on a table that is not crowded and on a crowded
    one: the mean over the caps that the test may choose there."""
    totals = []
    for crowding, studies in ((0.0, (CALM_BIAS,)), (CROWDED_SHARE, (CALM_BIAS, CROWDED_BIAS))):
        total = 0.0
        for cap, chance in rule.cap_chances(crowding).items():
            if chance > MIN_CHANCE:
                bias = max(expected_bias(study, cap / neighbours) for study in studies)
                chosen = ChosenCap(cap, crowding, rule.reason, rule.test_share)
                total += chance * (noise_error(chosen) + bias * rule.n)
        totals.append(total)
    return totals[0], totals[1]


def expected_bias(study: Sequence[tuple[float, float]], ratio: float) -> float:
    """Return the share of records by which the extension overcounts, by cap over neighbours, on tables of the study.

    >>> expected_bias(CROWDED_BIAS, 0.25), expected_bias(CROWDED_BIAS, 1.0)
    (0.053, 0.0)
    """
    ratios, shares = zip(*study, strict=True)
    return float(np.interp(ratio, ratios, shares))
