"""How many records are distance-based outliers?

A record is an outlier when fewer than `neighbours` others lie within `radius` [KN98]. One person can flip many records,
so noise goes on a Lipschitz extension of the count whose sensitivity is `slack` + 1 whatever the dimension.

`Count` is the verb. Its parameters choose the class that answers:

parameters                  class           answer
radius                      OneSidedCount   a count; the upper end of its interval is proved
interval="two-sided"        TwoSidedCount   a count and a second number; both ends are proved
share                       CountAtShare    a radius that has this share of outliers, and the count there
by                          CountByGroup    a count for each group, at the cost of one
mechanism="global"/"smooth" GlobalCount, SmoothCount   the paper's mechanisms, whose noise grows with the dimension

Released    one whole number in [0, N], or two       Neighbours  replace one record, N public
Guarantee   pure ε-DP, (ε, δ)-DP or ρ-zCDP           Arithmetic  whole-number noise on a grid of 1/128
Proof       proof.md, labels (E) (C1) (C2) (N) (T), (Q1) (Q2) (H) (A); the paper's own: (G) (U) (S) (L)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Self, TypeAlias, cast

from wallflower.drawing.picture import Picture
from wallflower.errors import ParameterError
from wallflower.neighbours.radii import read_share
from wallflower.neighbours.relations import EUCLIDEAN, METRICS, metric_name
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.progress import Effort
from wallflower.queries.count.at_radius import Counted, CountQuery, GlobalCount, OneSidedCount, SmoothCount
from wallflower.queries.count.at_share import INTERVALS, CountAtShare, CountedAtShare
from wallflower.queries.count.by_group import CountByGroup, GroupCounts, GroupView, Row
from wallflower.queries.count.two_sided import TwoSidedCount
from wallflower.queries.near import CappedQuery, Records
from wallflower.query import Plan, PublicFacts, Reading
from wallflower.units import Claim

CountView: TypeAlias = Records | GroupView
CountAnswer: TypeAlias = Counted | CountedAtShare | GroupCounts
Variant: TypeAlias = OneSidedCount | TwoSidedCount | CountAtShare | CountByGroup | GlobalCount | SmoothCount

MECHANISMS: Final[Mapping[str, type[OneSidedCount | GlobalCount | SmoothCount]]] = {
    kind.mechanism: kind for kind in (OneSidedCount, GlobalCount, SmoothCount)
}


@dataclass(frozen=True, kw_only=True)
class Count(CountQuery[CountView, CountAnswer], CappedQuery[CountView, CountAnswer]):
    """Count the outliers.

    >>> query = Count(radius=0.5, neighbours=3, loss=Loss("0.5"))
    >>> query.cost(), type(query.variant).__name__
    (Loss(ε=1/2), 'OneSidedCount')
    >>> type(replace(query, by=("ward",)).variant).__name__
    'CountByGroup'
    """

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
            "help": "choose the radius privately so that about this share of records are outliers, such as 2%; uses "
            "half of ε"
        },
    )
    mechanism: str = field(
        default="extension",
        metadata={
            "help": "extension: noise independent of the dimension; global, smooth: the paper's, done right",
            "choices": tuple(MECHANISMS),
        },
    )
    metric: str | Any = field(
        default=EUCLIDEAN,
        metadata={
            "help": "distance of two records; haversine: km between latitudes and longitudes in degrees; in Python "
            "also a function of two records",
            "choices": METRICS,
        },
    )
    interval: str = field(
        default="noise",
        metadata={
            "help": "noise: only the upper end is proved; two-sided: both ends are, with half of the loss for each",
            "choices": INTERVALS,
        },
    )
    by: tuple[str, ...] | None = field(
        default=None,
        metadata={
            "help": "count each group of these label columns, one or two, separately; all groups cost as much as one",
            "names": "labels",
        },
    )
    public_groups: bool = field(
        default=False,
        metadata={"help": "with by, if the schema marks its columns as public: exact sizes, and about half the noise"},
    )
    certify: bool = field(
        default=False,
        metadata={
            "help": "count from a certificate that is checked in whole numbers, so that the floating-point solver "
            "need not be trusted; at a radius, in memory"
        },
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None:
            object.__setattr__(self, "share", read_share(self.share))
        for name, choices in {"mechanism": tuple(MECHANISMS), "interval": INTERVALS}.items():
            if getattr(self, name) not in choices:
                raise ParameterError(
                    f"{name}: {getattr(self, name)!r} is not known; it is one of {', '.join(choices)}."
                )
        if (self.radius is None) == (self.share is None):
            raise ParameterError(
                "radius, share: a count needs exactly one of them. Pass a radius, or the share of records to draw it "
                "for, such as '2%'."
            )
        self.variant  # noqa: B018 - refuses what its class has no theorem for

    @cached_property
    def variant(self) -> CountQuery[CountView, CountAnswer]:
        """The query that the parameters choose, of the class that answers it."""
        kind = self._choose_class()
        taken = {item.name for item in fields(kind)}
        implied = {"mechanism", *(["interval"] if kind is TwoSidedCount else [])}
        for item in fields(self):
            if item.name not in taken | implied and getattr(self, item.name) != item.default:
                reason = "needs euclidean distances" if item.name == "metric" else "does not take it"
                remedy = ", or pass by" if item.name == "public_groups" else ""
                raise ParameterError(f"{item.name}: {kind.title} {reason}. Omit {item.name}{remedy}.")
        variant = kind(**{name: getattr(self, name) for name in taken})
        # A variant is handed back the views and answers that it made itself, so its own types fit.
        return cast("CountQuery[CountView, CountAnswer]", variant)

    def _choose_class(self) -> type[Variant]:
        if self.mechanism != OneSidedCount.mechanism:
            return MECHANISMS[self.mechanism]
        if self.by is not None:
            return CountByGroup
        if self.share is not None:
            return CountAtShare
        return TwoSidedCount if self.interval == "two-sided" else OneSidedCount

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"metric": metric_name(self.metric)}

    def terms(self, facts: PublicFacts) -> str:
        return self.variant.terms(facts)

    def claim(self, facts: PublicFacts) -> Claim:
        return self.variant.claim(facts)

    def public_columns(self) -> tuple[str, ...]:
        return self.variant.public_columns()

    def effort(self, *, n: int, dimension: int) -> Effort:
        return self.variant.effort(n=n, dimension=dimension)

    def plan(self, *, n: int, dimension: int) -> Plan:
        return self.variant.plan(n=n, dimension=dimension)

    def plan_on(self, data: CountView) -> Plan:
        return self.variant.plan_on(data)

    def view(self, data: Any) -> CountView:
        return self.variant.view(data)

    def conditions(self, data: CountView) -> tuple[str, ...]:
        return self.variant.conditions(data)

    def conditions_of_release(self, extras: Mapping[str, Any], data: CountView) -> tuple[str, ...]:
        """State the conditions with the slack that was chosen and the whole loss: a fixed slack takes no part of it."""
        chosen = replace(self, slack=extras["slack"]) if "crowding" in extras else self
        return chosen.conditions(data)

    def rests_on(self, data: CountView) -> tuple[str, ...]:
        return self.variant.rests_on(data)

    def answer(self, data: CountView, noise: Noise) -> CountAnswer:
        return self.variant.answer(data, noise)

    def reading(self, value: CountAnswer, facts: PublicFacts) -> Reading:
        return self.variant.reading(value, facts)

    def released(self, answer: CountAnswer) -> int | list[Row]:
        return answer.value

    def as_released(self, extras: Mapping[str, Any], facts: PublicFacts) -> Self:
        capped = self.variant.as_released(extras, facts)
        slack = extras["slack"] if "crowding" in extras else self.slack
        return replace(self, slack=slack, loss=capped.loss)

    def picture(self, value: int | list[Row], facts: PublicFacts) -> Picture | None:
        return self.variant.picture(value, facts)

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=1.3, loss=Loss("0.5"))
