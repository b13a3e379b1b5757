"""At which radius is a wanted share of the records outliers?

A count depends on its radius more than on anything else, and nobody knows the radius beforehand. This query chooses one
from a fine public grid; the cost is that of one choice, whatever the size of the grid. A quarter of ε then verifies the
share: the number of outliers at the chosen radius is released with it. Use `count` with `share` to spend half of ε on
that number, and `profile` with `shares` for several shares at once.

Released    one radius, from a public grid, and the noisy number of outliers there
Guarantee   pure ε-DP, and 13ε²/128-zCDP             Neighbours  replace one record, N public
Arithmetic  whole-number errors, an exact draw, whole-number noise on a grid
Proof       proof.md, labels (C) (E) (T) (R) (V)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from wallflower.drawing.picture import Dot
from wallflower.mechanisms import Additive, calibrate
from wallflower.neighbours.limits import records_of
from wallflower.neighbours.noisy_count import public_cap
from wallflower.neighbours.radii import (
    DEFAULT_RADII,
    LARGEST_RADIUS,
    SMALLEST_RADIUS,
    Tally,
    choose_radii,
    radius_grid,
    read_share,
    steps_at,
)
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.progress import Effort
from wallflower.queries.near import (
    MIN_TARGET_RATIO,
    CurveQuery,
    Records,
    bound_draw_error,
    is_share_findable,
    name_curve_theorems,
)
from wallflower.query import Option, Plan, PublicFacts, Reading, Status
from wallflower.query.accuracy import (
    CONFIDENCE,
    NoiseLaw,
    check_share,
    check_slack_size,
    percent,
    rate_number,
    unverified_share,
)
from wallflower.text import t
from wallflower.theorems import name_labels
from wallflower.units import Claim

VERIFIED_PART: Final = Fraction(1, 4)  # of ε, for the number of outliers at the drawn radius
Value = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Radius(CurveQuery):
    """Find the radius at which a share of the records are outliers.

    >>> query = Radius(neighbours=5, share=Fraction(1, 100), loss=Loss("0.5"))
    >>> query.cost(), query.count_epsilon
    (Loss(ε=1/2), Fraction(1, 8))
    """

    kind: ClassVar[str] = "radius"
    label: ClassVar[str] = "outlier-radius/1"
    question: ClassVar[str] = "At which radius is that share of the records outliers?"
    proof: ClassVar[str] = "queries/radius/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    supports_tiles: ClassVar[bool] = True

    share: Fraction = field(metadata={"help": "the wanted share of outliers among the records: 1%, 0.01 or 1/100"})
    smallest: float | None = field(
        default=None, metadata={"help": "the smallest radius of the grid; default: 1/16", "span": "radius"}
    )
    largest: float | None = field(
        default=None,
        metadata={
            "help": "the largest radius of the grid; default of both: 16, with wider steps from 4 on",
            "span": "radius",
        },
    )
    verify: bool = field(
        default=True,
        metadata={"help": "spend a quarter of ε on the number of outliers at the drawn radius, which shows the share"},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "share", read_share(self.share))
        self.grid  # noqa: B018 - refuses ends that make no grid

    @property
    def grid(self) -> tuple[float, ...]:
        """The public radii."""
        if self.smallest is None and self.largest is None:
            return DEFAULT_RADII
        return radius_grid(
            SMALLEST_RADIUS if self.smallest is None else self.smallest,
            LARGEST_RADIUS if self.largest is None else self.largest,
        )

    @property
    def choice_epsilon(self) -> Fraction:
        """The ε of the choice.  (V)"""
        return self.loss.epsilon - self.count_epsilon

    @property
    def count_epsilon(self) -> Fraction:
        """The ε of the number of outliers at the drawn radius; 0 where nothing verifies the share.  (V)"""
        return self.loss.epsilon * VERIFIED_PART if self.verify else Fraction(0)

    @property
    def counted(self) -> str:
        """The name of the number that verifies the share."""
        return "mass" if self.graded else "outliers"

    def tally(self, n: int, dimension: int) -> Tally:
        """Return how outliers are counted.  (C)"""
        return self.count_by(self.slack or public_cap(n, self.neighbours, self.loss, dimension=dimension), dimension)

    def count_noise(self, n: int, dimension: int) -> Additive:
        """Return the noise of the number of outliers at the drawn radius.  (V)"""
        tally = self.tally(n, dimension)
        return calibrate(tally.sensitivity, Loss(self.count_epsilon), step=Fraction(1, tally.unit))

    def off(self, n: int, dimension: int) -> float:
        """Return by how many records the curve misses the wanted share at most, with 95 %.  (R)"""
        return bound_draw_error(n, self.tally(n, dimension).share, self.choice_epsilon, radii=len(self.grid))

    def rests_on(self, data: Records) -> tuple[str, ...]:
        choice = name_labels("radius", "C E T V" if self.verify else "C E T")
        mechanisms = name_labels("mechanisms", "J1 J2 E2 E3 L" if self.verify else "J1 J2 E2 E3")
        return (*name_curve_theorems(data), *choice, *mechanisms)

    def claim(self, facts: PublicFacts) -> Claim:
        rho = self.choice_epsilon**2 / 8 + self.count_epsilon**2 / 2  # (T) (V)
        return replace(super().claim(facts), rho=rho)

    def effort(self, *, n: int, dimension: int) -> Effort:
        return self.estimate_searches(n, dimension, len(self.grid) + self.verify)

    def conditions(self, data: Records) -> tuple[str, ...]:
        slack = check_slack_size(self.tally(data.n, data.dimension).slack, self.neighbours)
        unverified = () if self.verify else (unverified_share(self.grid),)
        return (*unverified, *self.check_columns(data), *slack)

    def answer(self, data: Records, noise: Noise) -> Value:
        records, tally = records_of(data), self.tally(data.n, data.dimension)
        (radius,) = choose_radii(
            records, self.grid, [self.share], tally, epsilon=self.choice_epsilon, noise=noise
        )  # (T)
        if not self.verify:
            return {"radius": radius}
        noisy = steps_at(records, radius, tally) + self.count_noise(data.n, data.dimension).draw(noise)  # (V)
        count = math.floor(Fraction(noisy, tally.unit) + Fraction(1, 2))
        return {"radius": radius, self.counted: min(max(count, 0), data.n)}

    def picture(self, value: Value, facts: PublicFacts) -> Dot:
        return Dot(value=value["radius"], across="radius")

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        extras = {"target": float(self.share * facts.n), "off": self.off(facts.n, facts.dimension)}
        if not self.graded:
            extras["slack"] = self.tally(facts.n, facts.dimension).slack or 0
        return self._read_verified(value, facts, extras) if self.verify else self._read_bare(value, facts, extras)

    def _read_verified(self, value: Value, facts: PublicFacts, extras: dict[str, float]) -> Reading:
        """State the number of outliers at the radius, what is proved of it first, beside the number wanted."""
        count, law = value[self.counted], self.count_noise(facts.n, facts.dimension)
        width = law.half_width(CONFIDENCE)
        low, high = max(0, math.ceil(count - width - 0.5)), min(facts.n, math.floor(count + width + 0.5))
        numbers = {"radius": value["radius"], "low": low, "high": high, "n": facts.n, "count": count}
        wanted = {"target": extras["target"], "share": percent(float(self.share))}
        if self.graded:
            sentence = t(
                "At a radius of {radius:.4g} the outlier mass of {n:,} records is {low:,} to {high:,} (95 % "
                "confidence); estimate {count:,}; asked for: {target:,.0f} ({share}).",
                **numbers,
                **wanted,
            )
        else:
            sentence = t(
                "At a radius of {radius:.4g} at most {high:,} of {n:,} records are outliers (97.5 % confidence); "
                "estimate {count:,}; asked for: {target:,.0f} ({share}).",
                **numbers,
                **wanted,
            )
        reach = self.off(facts.n, facts.dimension) + width + 0.5
        return Reading(
            mechanism="exponential",
            interval=None,
            text=sentence,
            brief=f"{value['radius']:.4g}",
            extras={**extras, "at_most": high, "noise_law": NoiseLaw.of(law).to_json()},
            quality=rate_number(
                width,
                number=count,
                records=facts.n,
                interval="two-sided" if self.graded else "upper end only",
                name="the outlier mass" if self.graded else "the count at this radius",
                conditions=check_share(self.share, count, facts.n, reach),
            ),
        )

    def _read_bare(self, value: Value, facts: PublicFacts, extras: dict[str, float]) -> Reading:
        """State the condition first: without a number of outliers, everything rests on it."""
        sentence = t(
            "If a radius of the grid has the share, which is not verified: near a radius of {radius:.4g} about "
            "{target:,.0f} of {n:,} records ({share}) are {what}, within {off:,.0f} of it (95 %).",
            radius=value["radius"],
            target=extras["target"],
            n=facts.n,
            share=percent(float(self.share)),
            what=t("outlier mass") if self.graded else t("outliers"),
            off=extras["off"],
        )
        return Reading(
            mechanism="exponential",
            interval=None,
            text=sentence,
            brief=f"{value['radius']:.4g}",
            extras=extras,
            quality=rate_number(
                extras["off"],
                number=extras["target"],
                records=facts.n,
                interval="not proved",
                name="the number that is asked for",
            ),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        useful, off = self._is_useful(n, dimension), self.off(n, dimension)
        smallest = self.find_least_amount(lambda query: query._is_useful(n, dimension))
        limit = t(
            "{ratio:,.1f} records times the ε of the choice are wanted as outliers, and {needed:,.1f} are needed",
            ratio=float(self.share * n * self.choice_epsilon),
            needed=MIN_TARGET_RATIO * self.tally(n, dimension).share,
        )
        note = t(
            "The figures hold if a radius of the grid has the share. A quarter of ε is spent on the number of outliers "
            "at the drawn radius, which shows whether it has."
        )
        figures = {"off": off, "share": off / n}
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "radii": len(self.grid)},
            chosen="exponential",
            headings={"off": t("records off, 95 % within ±"), "share": t("of all records ±")},
            options=(Option(mechanism="exponential", figures=figures, note=t("one choice among all radii")),),
            useful=useful,
            reason=self.explain_use(limit, useful, smallest),
            smallest_useful_epsilon=smallest,
            curve=self.trace(lambda query: query.off(n, dimension)),
            measure=t("records by which the radius misses, 95 %"),
            notes=(note,) if self.verify else (),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, share=Fraction(1, 20), loss=Loss("1"))

    def _is_useful(self, n: int, dimension: int) -> bool:
        return is_share_findable(self.share, n, self.tally(n, dimension).share, self.choice_epsilon)
