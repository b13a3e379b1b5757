"""How many records are distance-based outliers.

A record is an outlier when fewer than `neighbours` others lie within `radius` [KN98]. One person can flip many
records, so noise goes on a Lipschitz extension of the count whose sensitivity is `slack` + 1 whatever the dimension.
The extension never counts too few; a two-sided interval has a second number that never counts too many.

Released    one whole number in [0, N], or two       Neighbours  replace one record, N public
Guarantee   pure ε-DP, (ε, δ)-DP or ρ-zCDP           Arithmetic  whole-number noise on a grid of 1/128
Proof       proof.md, labels (E) (C1) (C2) (N) (T), (Q1) (Q2) (H) (A); the paper's own: (G) (U) (S) (L)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from wallflower.data import Points, TiledPoints, TiledTable
from wallflower.errors import EngineMismatch, ParameterError
from wallflower.mechanisms import Additive
from wallflower.neighbours.limits import (
    SCALE_HELP,
    SLACK_HELP,
    check_loss,
    check_neighbours,
    check_scale,
    per_column,
    require_single_coordinates,
    scale_notes,
    search_effort,
    view_points,
)
from wallflower.neighbours.metrics import (
    EUCLIDEAN,
    HAVERSINE,
    METRICS,
    check_metric,
    check_relatable,
    metric_name,
    relation_effort,
    require_degrees,
)
from wallflower.neighbours.noisy_count import (
    SURE,
    CapRule,
    ChosenCap,
    cap_rule,
    count_noise,
    crowding_steps,
    join_widths,
    public_cap,
    usual_slack,
    whole,
)
from wallflower.neighbours.noisy_count import interval as noise_interval
from wallflower.neighbours.radii import read_share
from wallflower.neighbours.relation import RelatedPoints, relate_points
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.progress import Effort
from wallflower.queries.count import words
from wallflower.queries.count.by_tiles import view_of_tiles
from wallflower.queries.count.groups import GroupCount, GroupView
from wallflower.queries.count.mechanisms import ANSWERS, NOISE, noisy_floor
from wallflower.queries.count.parameters import BoundedCount as BoundedCount
from wallflower.queries.count.parameters import (
    CappedCount,
    check_reach,
    check_slack,
    check_smooth,
    check_terms_of_metric,
)
from wallflower.queries.count.shares import CountAtRadius, RadiusDraw, check_drawable, halves, plan_share
from wallflower.queries.count.theorems import name_theorems
from wallflower.query import (
    COVERS,
    Condition,
    Option,
    Plan,
    PublicFacts,
    Query,
    Reading,
    ReleaseLike,
    Status,
    least_amount,
    require_settings_of_mode,
    settle,
)
from wallflower.query.accuracy import NoiseLaw, check_distances, check_share, check_slack_size, rate_number
from wallflower.query.picture import Dot, Picture
from wallflower.units import Claim

INTERVALS: Final = ("noise", "two-sided")


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(Query[Points | TiledPoints | GroupView, Any]):
    """Count the outliers.

    >>> Count(radius=0.5, neighbours=3, loss=Loss("0.5")).cost()
    Loss(ε=1/2)
    """

    kind: ClassVar[str] = "count"
    label: ClassVar[str] = "outlier-count/1"
    question: ClassVar[str] = "How many outliers are there?"
    proof: ClassVar[str] = "queries/count/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    by_tiles: ClassVar[bool] = True

    neighbours: int = field(metadata={"help": "with fewer than this many others near, a record is an outlier"})
    radius: float | None = field(
        default=None,
        metadata={
            "help": "records at most this far apart (root of the mean squared difference) are near",
            "span": "radius",
        },
    )
    share: Fraction | None = field(
        default=None,
        metadata={
            "help": "instead of a radius: draw the one at which so many are outliers, such as 2%, for half the loss"
        },
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns distances are taken over; all number columns unless given", "names": "measured"},
    )
    mechanism: str = field(
        default="extension",
        metadata={
            "help": "extension: noise independent of the dimension; global, smooth: the paper's, done right",
            "choices": ("extension", "global", "smooth"),
        },
    )
    slack: int | None = field(default=None, metadata={"help": SLACK_HELP})
    normalise: bool = field(
        default=True, metadata={"help": "distances per column (as in Okada et al. 2015) rather than plain Euclid"}
    )
    metric: str | Any = field(
        default=EUCLIDEAN,
        metadata={
            "help": "distance of two records; haversine: km between latitudes and longitudes in degrees; in Python "
            "also a function of two records",
            "choices": METRICS,
            "when": Condition("mechanism", "extension"),
        },
    )
    scale: int | ReleaseLike | None = field(default=None, metadata={"help": SCALE_HELP})
    interval: str = field(
        default="noise",
        metadata={
            "help": "noise: only the upper end is proved; two-sided: both ends are, with half of the loss for each",
            "choices": INTERVALS,
            "when": Condition("mechanism", "extension"),
        },
    )
    by: tuple[str, ...] | None = field(
        default=None,
        metadata={
            "help": "count every group of these label columns, one or two, by itself: one price for all groups",
            "names": "labels",
            "when": Condition("mechanism", "extension"),
        },
    )

    public_groups: bool = field(
        default=False,
        metadata={
            "help": "the schema states that groups are public: exact sizes, and about half the noise",
            "when": Condition("by"),
        },
    )

    def __post_init__(self) -> None:
        settle(self)
        check_neighbours(self.neighbours)
        check_reach(self.radius, self.share)
        check_scale(self.scale)
        for name, choices in {"mechanism": tuple(NOISE), "interval": INTERVALS}.items():
            if getattr(self, name) not in choices:
                raise ParameterError(
                    f"{name}: {getattr(self, name)!r} is not known; it is one of {', '.join(choices)}."
                )
        check_slack(self.slack)
        check_metric(self.metric)
        check_loss(self.kind, self.loss)
        if self.mechanism == "smooth":
            check_smooth(self.loss)
        require_settings_of_mode(self)
        if self.share is not None:
            object.__setattr__(self, "share", read_share(self.share))
            check_drawable(self.loss, is_plain=self.by is None and self.mechanism == "extension")
        if self.group_count is not None and self.interval != "noise":
            raise ParameterError("interval: counts by group have intervals of noise only. Leave it out, or by.")

        if not self.is_euclidean:
            check_terms_of_metric(self.metric, share=self.share, by=self.by, interval=self.interval)

    @property
    def is_euclidean(self) -> bool:
        return isinstance(self.metric, str) and self.metric == EUCLIDEAN

    def to_json(self) -> dict[str, Any]:
        return super(Count, self).to_json() | {"metric": metric_name(self.metric)}

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        return replace(
            super(Count, self).claim(facts), rho=self.group_count.rho_at(facts.n) if self.group_count else None
        )  # (B5)

    def effort(self, *, n: int, dimension: int) -> Effort:
        looks = 1 if self.share is None else 1 + len(self.radius_draw(n, dimension).radii)
        each = search_effort(n, dimension, self.neighbours)
        if not self.is_euclidean:
            each = relation_effort(self.metric, each, n, dimension)
        return replace(each, steps=looks * each.steps)

    def at_radius(self, radius: float) -> Self:
        """The count that is asked once its radius is drawn, with its half of the loss.  (D)"""
        return replace(self, radius=radius, share=None, loss=halves(self.loss)[1])

    def radius_draw(self, n: int, dimension: int) -> RadiusDraw:
        """How the radius is drawn, where a share is given."""
        assert self.share is not None
        return RadiusDraw(
            share=self.share,
            neighbours=self.neighbours,
            slack=self.slack or public_cap(n, self.neighbours, halves(self.loss)[1], dimension=dimension),
            normalise=self.normalise,
            loss=halves(self.loss)[0],
        )

    @property
    def reach(self) -> float:
        """The radius that is given."""
        assert self.radius is not None
        return self.radius

    @property
    def group_count(self) -> GroupCount | None:
        """How groups are counted, if they are asked for."""
        if self.by is None:
            return None
        return GroupCount(
            neighbours=self.neighbours,
            radius=self.reach,
            by=self.by,
            columns=self.columns,
            slack=self.slack,
            loss=self.loss,
            normalise=self.normalise,
            public=self.public_groups,
        )

    def public_columns(self) -> tuple[str, ...]:
        return self.by or () if self.public_groups else ()  # (B4)

    def view(self, data: Any) -> Points | TiledPoints | GroupView:
        if self.group_count is not None:
            return self.group_count.view(data)
        if not self.is_euclidean:
            return self._view_by_metric(data)
        if isinstance(data, TiledTable):
            tiled = view_of_tiles(self, data)
            self._at_some_radius.noise(tiled.n, tiled.dimension)
            return tiled
        points = view_points(data, self.columns, self.neighbours, labels=True)
        if self.mechanism != "extension":
            require_single_coordinates(points, f"mechanism: {self.mechanism}", "extension")
        self._at_some_radius.noise(
            points.n, points.dimension
        )  # what cannot be drawn is refused here, before the charge
        return points

    def _view_by_metric(self, data: Any) -> Points:
        if isinstance(data, TiledTable):
            raise EngineMismatch(data.engine, f"count with metric {metric_name(self.metric)}", "Choose euclidean")
        points = view_points(data, self.columns, self.neighbours)
        check_relatable(self.metric, points.n, points.dimension)
        if self.metric == HAVERSINE:
            require_degrees(points.schema, points.columns)
        self.noise(points.n, points.dimension)  # what cannot be drawn is refused here, before the charge
        return points

    def conditions(self, data: Points | TiledPoints | GroupView) -> tuple[str, ...]:
        points = data.points if isinstance(data, GroupView) else data
        if self.metric == HAVERSINE:  # degrees have one scale, and no record's scale is in question
            return self._slack_conditions(data.n, data.dimension)
        return (*check_distances(points, self.scale), *self._slack_conditions(data.n, data.dimension))

    def _slack_conditions(self, n: int, dimension: int) -> tuple[str, ...]:
        if self.mechanism != "extension":
            return ()
        counted, single = self.group_count, self._at_some_radius
        rule = single.rule(n, dimension) if counted is None else counted.rule(n)
        if not check_slack_size(rule.narrow, self.neighbours):
            return ()
        wide = replace(counted or single, slack=self.neighbours)
        noise = wide.law if isinstance(wide, GroupCount) else wide.noise(n, dimension)
        width = noise.half_width(SURE)
        return check_slack_size(rule.narrow, self.neighbours, is_least=rule.test is not None, wide_noise=width)

    def cautions(self, data: Points | TiledPoints | GroupView) -> tuple[str, ...]:
        return scale_notes(self.scale)

    def answer(self, data: Points | TiledPoints | GroupView, noise: Noise) -> Any:
        if isinstance(data, GroupView):
            assert self.group_count is not None
            return self.group_count.answer(data, noise)
        if self.share is not None:
            radius = self.radius_draw(data.n, data.dimension).draw(data, noise)
            return CountAtRadius(self.at_radius(radius).answer(data, noise), radius)
        if not self.is_euclidean:
            assert isinstance(data, Points)
            return self._count_records(relate_points(data, self.metric, self.reach), noise)  # (R)
        return self._count_records(data, noise)

    def _count_records(self, data: Points | TiledPoints | RelatedPoints, noise: Noise) -> Any:
        chosen = self._over_columns(data).choose_cap(data, noise)
        capped = self.with_cap(data.n, data.dimension, chosen)._over_columns(data)
        value = whole(ANSWERS[self.mechanism](capped, data, noise), data.n)
        if self.interval == "noise":
            return value if chosen is None else CappedCount(value, chosen)
        assert not isinstance(data, RelatedPoints)
        return BoundedCount(value, noisy_floor(capped, data, noise), chosen)

    def rests_on(self, data: Points | TiledPoints | GroupView) -> tuple[str, ...]:
        return name_theorems(
            self.mechanism,
            self.loss.kind,
            is_tiled=isinstance(data, TiledPoints),
            may_test=self.slack is None,
            two_sided=self.interval != "noise",
            at_share=self.share is not None,
            groups="" if self.by is None else "B4" if self.public_groups else "B1 B2 B3",
        )

    def rule(self, n: int, dimension: int | None) -> CapRule:
        """How the degree cap is chosen.  (X)"""
        columns = dimension if self.is_euclidean else None  # (K) is a fact of Euclid's geometry
        usual = usual_slack(n, self.neighbours, self.each, dimension=columns)
        return cap_rule(n, self.neighbours, self.loss, slack=self.slack, usual=usual)

    def choose_cap(self, data: Points | TiledPoints | RelatedPoints, noise: Noise) -> ChosenCap | None:
        """The degree cap by the crowding test, where one is made: a part of the loss goes to it.  (X)"""
        rule = self.rule(data.n, data.dimension)
        if self.mechanism != "extension" or rule.test is None:
            return None
        points = data if isinstance(data, TiledPoints) else data.values
        steps = crowding_steps([points], self.reach, self.neighbours, normalise=self.normalise)
        return rule.choose(steps, noise)

    def with_cap(self, n: int, dimension: int | None, chosen: ChosenCap | None = None) -> Self:
        """The same count with its degree cap fixed, and with the loss that the choice leaves; a calm table's cap unless
        one is given.  (X)"""
        if self.mechanism != "extension":
            return self
        rule = self.rule(n, dimension)
        return replace(self, slack=rule.narrow if chosen is None else chosen.cap, loss=rule.numbers)

    def reading(self, value: Any, facts: PublicFacts) -> Reading:
        if isinstance(value, CountAtRadius):
            return self._check_share(value, self.at_radius(value.radius).reading(value.count, facts), facts)
        if self.group_count is not None:
            return self.group_count.reading(value, facts)
        chosen = value.chosen if isinstance(value, CappedCount) else None
        capped = self.with_cap(facts.n, facts.dimension, chosen)
        return capped._read(value, facts, chosen or self.rule(facts.n, facts.dimension).take_narrow())

    def _check_share(self, value: CountAtRadius, reading: Reading, facts: PublicFacts) -> Reading:
        """Compare the released count with the share that was asked for: both are released, so it costs nothing."""
        draw, chosen = self.radius_draw(facts.n, facts.dimension), getattr(value.count, "chosen", None)
        law = self.at_radius(value.radius).with_cap(facts.n, facts.dimension, chosen).noise
        reach = draw.off(facts.n) + law(facts.n, facts.dimension).half_width(SURE)
        return value.extend_reading(reading, check_share(draw.share, value.count, facts.n, reach))

    def _read(self, value: int, facts: PublicFacts, chosen: ChosenCap) -> Reading:
        law = self.noise(facts.n, facts.dimension)
        low, high = noise_interval(value, facts.n, law)
        low = min(value, self._floor_interval(value, facts)[0]) if self.interval == "two-sided" else low  # (H)
        said = self._any_outlier(value, facts)
        extras = {
            "at_most": high,
            "at_least": low if self._is_two_sided else None,
            "any": said,
            **self._extension_facts(value, chosen),
        }
        if self.mechanism != "smooth":  # its noise follows the data
            extras["noise_law"] = NoiseLaw.of(law).to_json()
        proved = f"at most {high:,} (97.5 % confidence); estimate {value:,}"
        return Reading(
            mechanism=self.mechanism,
            interval=(float(low), float(high)),
            covers=COVERS if self._is_two_sided else "noise only, 95 %:",
            words=self._sentence(value, facts.n, low, high),
            brief="" if self._is_two_sided else proved,
            extras=extras,
            notes=(*self._notes(said["threshold"] > facts.n), *words.cap_notes(chosen, self.neighbours)),
            quality=rate_number(
                law.half_width(SURE),
                number=value,
                records=facts.n,
                interval="two-sided" if self._is_two_sided else "upper end only",
            ),
        )

    def _notes(self, is_mute: bool) -> tuple[str, ...]:
        return (*(() if self._is_two_sided else (words.ONE_SIDED,)), *((words.MUTE,) if is_mute else ()))

    def picture(self, value: Any, facts: PublicFacts) -> Picture:
        return (
            Dot(value=value, across="outliers") if self.group_count is None else self.group_count.picture(value, facts)
        )

    def plan_on(self, data: Points | TiledPoints | GroupView) -> Plan:
        if isinstance(data, GroupView):
            assert self.group_count is not None
            return self.group_count.plan(self.kind, n=data.n, dimension=data.dimension, groups=data.groups)
        return self.plan(n=data.n, dimension=data.dimension)

    def plan(self, *, n: int, dimension: int) -> Plan:
        if self.group_count is not None:
            return self.group_count.plan(self.kind, n=n, dimension=dimension)
        if self.share is not None:
            halved = self.at_radius(1.0).plan(n=n, dimension=dimension)
            return plan_share(halved, lambda amount: self._at(amount).radius_draw(n, dimension), n, self.loss)
        options = tuple(option for option in (self._option(name, n, dimension) for name in NOISE) if option)
        width = self.noise(n, dimension).half_width(SURE)
        useful = width <= words.USEFUL * n
        smallest = self._smallest_useful(n, dimension)
        limit = f"{self._reach(n, dimension)} among {n:,} records"
        advice = (
            f"; from {self._symbol} = {smallest} on it would be" if smallest else "; no reasonable loss makes it so"
        )
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen=self.mechanism,
            headings=words.HEADINGS,
            options=options,
            useful=useful,
            reason=limit if useful else f"{limit}{advice}",
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), self._at(e).noise(n, dimension).half_width(SURE)) for e in words.EPSILONS),
            measure="half-width of the 95 % interval",
            notes=words.plan_notes(self.rule(n, dimension), self.neighbours) if self.mechanism == "extension" else (),
        )

    def noise(self, n: int, dimension: int) -> Additive:
        """The noise of the count from public facts; for `smooth`, the most it can be."""
        return NOISE[self.mechanism](self.with_cap(n, dimension), n, dimension)

    def floor_noise(self, n: int, dimension: int) -> Additive:
        """The noise of the number below the count that a two-sided interval begins at (H)."""
        capped = self.with_cap(n, dimension)
        return count_noise(capped.slack_for(n, dimension) - 1, capped.each)

    def slack_for(self, n: int, dimension: int | None = None) -> int:
        """The degree cap asked for, or that of a calm table of this size."""
        return self.rule(n, dimension).narrow

    @property
    def each(self) -> Loss:
        """The loss of each released number: a two-sided interval has two (H)."""
        loss, numbers = self.loss, 2 if self.interval == "two-sided" else 1
        return Loss(loss.amount / numbers, delta=loss.delta / numbers, kind=loss.kind, neighbours=loss.neighbours)

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=1.3, loss=Loss("0.5"))

    def _over_columns(self, data: Points | TiledPoints | RelatedPoints) -> Self:
        """The same question, where labels make columns that are several coordinates.  (W)"""
        width = sum(map(len, data.places))
        radius, normalise = per_column(self.reach, data.dimension, width, normalise=self.normalise)
        asked = copy(self)  # not `replace`, which checks radii, and it is paid for: a checked one times √width is sound
        object.__setattr__(asked, "radius", radius)
        object.__setattr__(asked, "normalise", normalise)
        return asked

    @property
    def _at_some_radius(self) -> Self:
        """The count at its radius, or at any where that is still to be drawn: the noise is the same."""
        return self if self.share is None else self.at_radius(1.0)

    @property
    def _is_two_sided(self) -> bool:
        """Whether both ends of the interval are proved (A)."""
        return self.mechanism != "extension" or self.interval == "two-sided"

    @property
    def _symbol(self) -> str:
        return "ρ" if self.loss.kind is Kind.ZCDP else "ε"

    def _at(self, amount: str) -> Self:
        loss = self.loss
        return replace(self, loss=Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours))

    def _reach(self, n: int, dimension: int) -> str:
        """How far the interval reaches, and what that covers."""
        if self.interval == "two-sided":
            width, below = (law(n, dimension).half_width(SURE) for law in (self.noise, self.floor_noise))
            return f"-{below:.3g} and +{width:.3g} (95 %, both ends proved)"
        return f"{'noise within ' if self.mechanism == 'extension' else ''}{join_widths(*self._widths(n, dimension))}"

    def _widths(self, n: int, dimension: int) -> tuple[float, float]:
        """How far the noise reaches on a calm table, and on a crowded one.  (X)"""
        calm = self.noise(n, dimension).half_width(SURE)
        if self.mechanism != "extension":
            return calm, calm
        capped = self.with_cap(n, dimension, self.rule(n, dimension).likely_cap())
        return calm, NOISE["extension"](capped, n, dimension).half_width(SURE)

    def _sentence(self, value: int, n: int, low: int, high: int) -> str:
        """The count in words, what is proved first."""
        if self._is_two_sided:
            return f"{low:,} to {high:,} of {n:,} records are outliers (95 % confidence); estimate {value:,}."
        return f"At most {high:,} of {n:,} records are outliers (97.5 % confidence); estimate {value:,}."

    def _floor_interval(self, value: int, facts: PublicFacts) -> tuple[int, int]:
        floor = value.floor if isinstance(value, BoundedCount) else 0
        return noise_interval(floor, facts.n, self.floor_noise(facts.n, facts.dimension))

    def _any_outlier(self, value: int, facts: PublicFacts) -> dict[str, Any]:
        """What is not proved is None: the extension may count too many, and the floor too few (A)."""
        if isinstance(value, BoundedCount):
            return words.any_outlier(value.floor, self.floor_noise(facts.n, facts.dimension)) | {"found_from": None}
        said = words.any_outlier(value, self.noise(facts.n, facts.dimension))
        return said if self.mechanism != "extension" else said | {"false_alarm": None, "p_value": None}

    def _extension_facts(self, value: int, chosen: ChosenCap) -> dict[str, Any]:
        if self.mechanism != "extension":
            return {}
        return chosen.facts | ({"floor": value.floor} if isinstance(value, BoundedCount) else {})

    def _option(self, name: str, n: int, dimension: int) -> Option | None:
        try:
            noise = (self if name == self.mechanism else self._by(name)).noise(n, dimension)
        except ParameterError:
            if name == self.mechanism:
                raise
            return None
        totals = self._by(name)._total_errors(n, dimension)
        figures = (*totals, noise.mean_error(), noise.half_width(SURE), noise.deviation())
        said = dict(zip(words.HEADINGS, figures, strict=True))
        return Option(mechanism=name, figures=said, note=words.MECHANISM_NOTES[name])

    def _total_errors(self, n: int, dimension: int) -> tuple[float, float]:
        """The expected error on a calm table and on a crowded one: noise, and the bias of the extension."""
        if self.mechanism != "extension":
            error = self.noise(n, dimension).mean_error()
            return error, error

        def noise_error(chosen: ChosenCap) -> float:
            return NOISE["extension"](self.with_cap(n, dimension, chosen), n, dimension).mean_error()

        return words.total_errors(self.rule(n, dimension), self.neighbours, noise_error)

    def conditions_of_release(
        self, extras: Mapping[str, Any], data: Points | TiledPoints | GroupView
    ) -> tuple[str, ...]:
        """With the slack that was chosen, and the whole loss: a slack that is asked for takes no part of it."""
        chosen = replace(self, slack=extras["slack"]) if "crowding" in extras else self
        return chosen.conditions(data)

    def as_released(self, extras: Mapping[str, Any], facts: PublicFacts) -> Self:
        if "crowding" not in extras:
            return self
        chosen = ChosenCap(extras["slack"], extras["crowding"], extras["slack_reason"])
        if self.group_count is None:
            return self.with_cap(facts.n, facts.dimension, chosen)
        capped = self.group_count.with_cap(facts.n, chosen)
        return replace(self, slack=capped.slack, loss=capped.loss)

    def _by(self, mechanism: str) -> Self:
        return replace(self, mechanism=mechanism, interval="noise")

    def _smallest_useful(self, n: int, dimension: int) -> str | None:
        """The least amount, to two digits, at which the interval stays within the useful share of the records."""
        return least_amount(lambda amount: self._at(amount).noise(n, dimension).half_width(SURE) <= words.USEFUL * n)
