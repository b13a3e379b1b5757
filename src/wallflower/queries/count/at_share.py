"""A count at a radius that is drawn with it: the one at which a wanted share of the records are outliers.

Half of the loss goes to the radius, half to the count. The radius comes from a public grid, by a choice whose errors
one record moves by no more than it moves a count (proof.md, label (D)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from wallflower.drawing.picture import Dot, Picture
from wallflower.errors import LossMismatch, ParameterError
from wallflower.neighbours.limits import records_of
from wallflower.neighbours.noisy_count import public_cap
from wallflower.neighbours.radii import DEFAULT_RADII, Tally, choose_radii, read_share
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.progress import Effort
from wallflower.queries.count.at_radius import Counted, CountQuery, OneSidedCount
from wallflower.queries.count.two_sided import TwoSidedCount, TwoSidedCounted
from wallflower.queries.near import CappedQuery, Records, bound_draw_error, is_share_findable
from wallflower.query import Plan, PublicFacts, Reading, two_digits_up
from wallflower.query.accuracy import CONFIDENCE, check_share
from wallflower.text import t
from wallflower.theorems import name_labels

INTERVALS: Final = ("noise", "two-sided")


@dataclass(frozen=True, slots=True)
class CountedAtShare:
    """A released radius, and the released count at it."""

    radius: float
    count: Counted | TwoSidedCounted

    @property
    def value(self) -> int:
        return self.count.value


@dataclass(frozen=True, kw_only=True)
class CountAtShare(CountQuery[Records, CountedAtShare], CappedQuery[Records, CountedAtShare]):
    """Draw the radius at which a share of the records are outliers, and count there.

    >>> CountAtShare(neighbours=3, share=Fraction(1, 50), loss=Loss("1", delta="1e-6")).halves
    (Loss(ε=1/2), Loss(ε=1/2, δ=1/1000000))
    """

    title: ClassVar[str] = "a count at a share"
    grid: ClassVar[tuple[float, ...]] = DEFAULT_RADII

    share: Fraction
    interval: str = "noise"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", read_share(self.share))
        if self.interval not in INTERVALS:
            raise ParameterError(f"interval: {self.interval!r} is not known; it is one of {', '.join(INTERVALS)}.")
        self.halves  # noqa: B018 - refuses a loss that has no theorem

    @property
    def halves(self) -> tuple[Loss, Loss]:
        """The loss of the radius, which needs no δ, and that of the count.  (D)"""
        loss = self.loss
        if loss.kind not in (Kind.PURE, Kind.APPROXIMATE):
            raise LossMismatch(
                f"share: a radius has no theorem for a {loss.kind} loss; state epsilon, or pass a radius."
            )
        return Loss(loss.amount / 2), Loss(loss.amount / 2, delta=loss.delta)

    def at_radius(self, radius: float) -> OneSidedCount | TwoSidedCount:
        """Return the count at the drawn radius, with its half of the loss.  (D)"""
        kind = TwoSidedCount if self.interval == "two-sided" else OneSidedCount
        return kind(
            neighbours=self.neighbours,
            radius=radius,
            loss=self.halves[1],
            columns=self.columns,
            normalise=self.normalise,
            scale=self.scale,
            slack=self.slack,
        )

    def tally(self, n: int, dimension: int) -> Tally:
        """Return how outliers are counted for the choice of the radius."""
        slack = self.slack or public_cap(n, self.neighbours, self.halves[1], dimension=dimension)
        return Tally(neighbours=self.neighbours, slack=slack, normalise=self.normalise, columns=dimension)

    def draw_radius(self, data: Records, noise: Noise) -> float:
        """Draw the radius.  (D)"""
        (radius,) = choose_radii(
            records_of(data),
            self.grid,
            [self.share],
            self.tally(data.n, data.dimension),
            epsilon=self.halves[0].epsilon,
            noise=noise,
        )
        return radius

    def off(self, n: int, dimension: int) -> float:
        """Return by how many records the curve misses the share at the drawn radius, with 95 %.  (D)"""
        sensitivity = self.tally(n, dimension).share
        return bound_draw_error(n, sensitivity, self.halves[0].epsilon, radii=len(self.grid))

    def view(self, data: Any) -> Records:
        return self.at_radius(1.0).view(data)  # whatever the radius: the noise is the same

    def conditions(self, data: Records) -> tuple[str, ...]:
        return self.at_radius(1.0).conditions(data)

    def rests_on(self, data: Records) -> tuple[str, ...]:
        choice = (*name_labels("count", "D"), *name_labels("mechanisms", "J1 J2 E2 E3"))
        return (*self.at_radius(1.0).rests_on(data), *choice)

    def effort(self, *, n: int, dimension: int) -> Effort:
        return self.estimate_searches(n, dimension, 1 + len(self.grid))

    def answer(self, data: Records, noise: Noise) -> CountedAtShare:
        radius = self.draw_radius(data, noise)
        return CountedAtShare(radius, self.at_radius(radius).answer(data, noise))

    def reading(self, value: CountedAtShare, facts: PublicFacts) -> Reading:
        """Read the count, and compare it with the wanted share: both are released, so that costs nothing."""
        count = self.at_radius(value.radius)
        if isinstance(count, TwoSidedCount):
            assert isinstance(value.count, TwoSidedCounted)
            reading = count.reading(value.count, facts)
        else:
            reading = count.reading(value.count, facts)
        law = count.capped_noise(facts.n, facts.dimension, value.count.cap)
        reach = self.off(facts.n, facts.dimension) + law.half_width(CONFIDENCE)
        assert reading.quality is not None
        missed = check_share(self.share, value.value, facts.n, reach)
        return replace(
            reading,
            text=t("At a radius of {radius:.3g}: {count}", radius=value.radius, count=reading.text),
            extras={"radius": value.radius, **reading.extras},
            quality=replace(reading.quality, conditions=(*missed, *reading.quality.conditions)),
        )

    def picture(self, value: int, facts: PublicFacts) -> Picture:
        return Dot(value=value, across="outliers")

    def plan(self, *, n: int, dimension: int) -> Plan:
        plan, findable = self.at_radius(1.0).plan(n=n, dimension=dimension), self._is_findable(n, dimension)
        least = self.find_least_amount(lambda query: query._is_findable(n, dimension))
        count_least, smallest = plan.smallest_useful_epsilon, None
        if count_least is not None and least is not None:
            smallest = two_digits_up(max(2 * float(count_least), float(least)))
        share = float(self.share)
        if findable:
            reason: str = t("{reason}, at a radius drawn for {share:.3g} of them", reason=plan.reason, share=share)
        else:
            few = t("{share:.3g} of {n:,} records are too few to find the radius of", share=share, n=n)
            reason = self.explain_use(few, False, smallest)
        return replace(
            plan,
            cost=self.loss,
            options=plan.options[:1],
            useful=plan.useful and findable,
            reason=reason,
            smallest_useful_epsilon=smallest,
            curve=tuple((2 * amount, height) for amount, height in plan.curve),
            notes=(*plan.notes, t("Half of the loss goes to the radius, which is released with the count.")),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, share=Fraction(1, 20), loss=Loss("1"))

    def _is_findable(self, n: int, dimension: int) -> bool:
        return is_share_findable(self.share, n, self.tally(n, dimension).share, self.halves[0].epsilon)
