"""How many outliers are there at every radius?

One charge buys a whole curve: the number of outliers at each of some public radii, with noise drawn from a cube, since
one record moves every point of the curve by as much. With `shares` it answers the inverse: for each share of the
records the radius at which that many are outliers, all chosen at once.

Released    a whole number for each radius, or a radius for each share
Guarantee   pure ε-DP                                Neighbours  replace one record, N public
Arithmetic  whole-number noise on a grid of 1/128    Proof       proof.md, labels (C) (P) (H) (T)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.data import TiledPoints
from wallflower.drawing.picture import Curve
from wallflower.errors import ParameterError
from wallflower.mechanisms import Cube, calibrate, calibrate_cube
from wallflower.neighbours.limits import check_radius, per_column, records_of
from wallflower.neighbours.noisy_count import CapRule, ChosenCap, cap_rule, crowding_steps, join_widths, public_cap
from wallflower.neighbours.radii import DEFAULT_RADII, Tally, choose_radii, outlier_curve, read_share
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
from wallflower.query.accuracy import CONFIDENCE, MODERATE, check_slack_size, rate_number, unverified_share
from wallflower.text import t
from wallflower.theorems import name_labels
from wallflower.units import Claim

RADII: Final = tuple(0.18 * math.sqrt(2) ** step for step in range(12))
MAX_POINTS: Final = 100  # radii or shares
USEFUL_SHARE: Final = MODERATE[1]  # of the records: more than moderate noise makes a plan not useful
Value = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Profile(CurveQuery):
    """Count the outliers at every radius.

    >>> Profile(neighbours=5, loss=Loss("1")).cost()
    Loss(ε=1)
    """

    kind: ClassVar[str] = "profile"
    label: ClassVar[str] = "outlier-profile/1"
    question: ClassVar[str] = "How many outliers are there at every radius?"
    proof: ClassVar[str] = "queries/profile/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    supports_tiles: ClassVar[bool] = True

    radii: tuple[float, ...] | None = field(
        default=None,
        metadata={"help": "the radii, increasing; default without shares: 12 from 0.18 to 8", "span": "radius"},
    )
    shares: tuple[str, ...] | None = field(
        default=None, metadata={"help": "find a radius for each of these shares of outliers instead: 1%, 0.01 or 1/100"}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.radii is not None and self.shares is not None:
            raise ParameterError("radii, shares: a profile takes one of them. Omit the other.")
        if self.shares is not None:
            object.__setattr__(self, "shares", tuple(str(read_share(share, "shares")) for share in self.shares))
        if not all(1 <= len(points) <= MAX_POINTS for points in (self.radii, self.shares) if points is not None):
            raise ParameterError(f"radii, shares: a profile has from 1 to {MAX_POINTS} of them. Pass fewer, or none.")
        for radius in self.grid:
            check_radius(radius)
        if list(self.grid) != sorted(set(self.grid)):
            raise ParameterError("radii: they do not increase. Write each once, the smallest first.")

    @property
    def grid(self) -> tuple[float, ...]:
        """The public radii at which the curve is computed."""
        return DEFAULT_RADII if self.shares is not None else self.radii or RADII

    @property
    def sorted_shares(self) -> list[Fraction]:
        """The shares, smallest first."""
        return sorted(map(Fraction, self.shares or ()))

    def rule(self, n: int, dimension: int) -> CapRule:
        """Return how the degree cap is chosen; shares and the outlier mass go without a test.  (X)"""
        untested = self.shares is not None or self.graded
        slack = self.slack or (public_cap(n, self.neighbours, self.loss, dimension=dimension) if untested else None)
        return cap_rule(n, self.neighbours, self.loss, dimension=dimension, slack=slack)

    def with_cap(self, n: int, dimension: int, chosen: ChosenCap | None = None) -> Self:
        """Return the profile with its degree cap fixed and the loss that its choice leaves; by default the cap of a
        table that is not crowded.  (X)"""
        if self.graded:
            return self
        rule = self.rule(n, dimension)
        return replace(self, slack=rule.narrow if chosen is None else chosen.cap, loss=rule.numbers)

    def tally(self, n: int, dimension: int) -> Tally:
        """Return how outliers are counted.  (C)"""
        return self.count_by(self.rule(n, dimension).narrow, dimension)

    def noise(self, n: int, dimension: int) -> Cube:
        """Return the noise of the whole curve.  (P)"""
        tally, loss = self.tally(n, dimension), self.with_cap(n, dimension).loss
        return calibrate_cube(len(self.grid), tally.sensitivity, loss, step=Fraction(1, tally.unit))

    def reach(self, n: int, dimension: int) -> float:
        """Return within how many records of their values without noise all released numbers are, with 95 %.  (H) (T)"""
        if self.shares is None:
            return self.noise(n, dimension).reach(CONFIDENCE) + 1
        sensitivity = self.tally(n, dimension).share
        return bound_draw_error(n, sensitivity, self.loss.epsilon, radii=len(self.grid), shares=len(self.sorted_shares))

    def rests_on(self, data: Records) -> tuple[str, ...]:
        curve = name_curve_theorems(data)
        if self.shares:
            return (*curve, *name_labels("radius", "C E T"), *name_labels("mechanisms", "J1 J2 E2 E3"))
        tested = name_labels("profile", "C P X" if self.slack is None else "C P") + name_labels("radius", "C")
        crowding = name_labels("count", "X") + name_labels("mechanisms", "L") if self.slack is None else ()
        return (*curve, *tested, *crowding, *name_labels("mechanisms", "K1 K2"))

    def claim(self, facts: PublicFacts) -> Claim:
        divisor = 8 if self.shares is not None else 2  # (T) (P)
        return replace(super().claim(facts), rho=self.loss.epsilon**2 / divisor)

    def effort(self, *, n: int, dimension: int) -> Effort:
        return self.estimate_searches(n, dimension, len(self.grid))

    def view(self, data: Any) -> Records:
        points = super().view(data)
        self.noise(points.n, points.dimension)  # noise too wide to be drawn is refused here, before the charge
        return points

    def conditions(self, data: Records) -> tuple[str, ...]:
        tally, rule = self.tally(data.n, data.dimension), self.rule(data.n, data.dimension)
        slack = check_slack_size(tally.slack, self.neighbours, is_least=rule.test is not None)
        crossed = () if self.shares is None else (unverified_share(self.grid),)
        return (*crossed, *self.check_columns(data), *slack)

    def answer(self, data: Records, noise: Noise) -> Value:
        tally, epsilon = self.tally(data.n, data.dimension), self.loss.epsilon
        if self.shares is not None:
            radii = choose_radii(
                records_of(data), self.grid, self.sorted_shares, tally, epsilon=epsilon, noise=noise
            )  # (T)
            return {"shares": [str(share) for share in self.sorted_shares], "radii": sorted(radii, reverse=True)}
        rule = self.rule(data.n, data.dimension)
        if rule.test is not None:
            chosen = rule.choose(self._crowding_steps(data), noise)  # (X)
            capped = self.with_cap(data.n, data.dimension, chosen)
            return capped.answer(data, noise) | chosen.facts
        if self.slack is None and not self.graded:
            return self.with_cap(data.n, data.dimension).answer(data, noise)
        steps = outlier_curve(records_of(data), self.grid, tally).tolist()  # (C)
        draws = self.noise(data.n, data.dimension).draw(noise)  # (P)
        return self.finish([step + draw for step, draw in zip(steps, draws, strict=True)], data.n, tally)

    def _crowding_steps(self, data: Records) -> int:
        """Return the crowding at the radius where it is largest: one record moves it as it moves each.  (X)"""
        points = records_of(data)
        width = points.width if isinstance(points, TiledPoints) else points.shape[1]
        searches = [per_column(radius, data.dimension, width, normalise=self.normalise) for radius in self.grid]
        return max(
            crowding_steps([points], radius, self.neighbours, normalise=normalise) for radius, normalise in searches
        )

    def finish(self, noisy: list[int], n: int, tally: Tally) -> Value:
        """Return the released curve of these noisy steps: post-processing."""
        counts = [math.floor(Fraction(step, tally.unit) + Fraction(1, 2)) for step in noisy]
        return {"radii": list(self.grid), "outliers": smooth(counts, n)}

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        return self._read_curve(value, facts) if self.shares is None else self._read_radii(value, facts)

    def _read_radii(self, value: Value, facts: PublicFacts) -> Reading:
        pairs = zip(value["shares"], value["radii"], strict=True)
        return Reading(
            mechanism="joint exponential",
            interval=None,
            text=t(
                "If every share is crossed inside the grid of radii, which is not verified, outliers reach these "
                "shares of the records: {radii}.",
                radii=", ".join(f"{share} at {radius:.3g}" for share, radius in pairs),
            ),
            quality=rate_number(
                self.reach(facts.n, facts.dimension),
                number=float(self.sorted_shares[0] * facts.n),
                records=facts.n,
                interval="not proved",
                name="the smallest number that is asked for",
            ),
        )

    def _read_curve(self, value: Value, facts: PublicFacts) -> Reading:
        reach, bend = self._released_reach(value, facts), self._find_bend(value, facts)
        radii, counts = value["radii"], value["outliers"]
        chosen = read_cap(value) or (None if self.graded else self.rule(facts.n, facts.dimension).take_narrow())
        sentence = t(
            "From about {first:,} of {n:,} records at a radius of {smallest:.3g} to {last:,} at {largest:.3g}; with 95 "
            "% all are within {reach:,.0f} of what they are without noise.{bend}",
            first=counts[0],
            n=facts.n,
            smallest=radii[0],
            last=counts[-1],
            largest=radii[-1],
            reach=reach,
            bend="" if bend is None else t(" The released curve bends near a radius of {radius:.3g}.", radius=bend),
        )
        note = t(
            "The band covers the noise alone, at all radii at once. Only its upper edge is proved for the true "
            "numbers: the curve is too high where many records have barely enough neighbours."
        )
        return Reading(
            mechanism="cube",
            interval=None,
            text=sentence,
            extras={"reach": reach} | ({} if bend is None else {"bend": bend}) | (chosen.facts if chosen else {}),
            notes=(note,),
            quality=rate_number(
                reach,
                number=max(counts),
                records=facts.n,
                interval="upper end only",
                name="the largest number of the curve",
            ),
        )

    def _find_bend(self, value: Value, facts: PublicFacts) -> float | None:
        """Return the radius at which the released curve bends, if it falls by more than its noise."""
        bend, counts = bend_of(value["radii"], value["outliers"]), value["outliers"]
        falls = counts[0] - counts[-1] > 2 * self._released_reach(value, facts)
        return float(value["radii"][bend]) if bend is not None and falls else None

    def _released_reach(self, value: Value, facts: PublicFacts) -> float:
        """Return how far the noise of this release reaches, by the degree cap that it was made with."""
        return self.with_cap(facts.n, facts.dimension, read_cap(value)).reach(facts.n, facts.dimension)

    def picture(self, value: Value, facts: PublicFacts) -> Curve:
        if self.shares is not None:
            heights = tuple(float(Fraction(share) * facts.n) for share in value["shares"])
            return Curve(places=tuple(value["radii"]), heights=heights, across="radius", up="outliers")
        reach, counts = self._released_reach(value, facts), value["outliers"]
        return Curve(
            places=tuple(value["radii"]),
            heights=tuple(map(float, counts)),
            lows=tuple(max(0.0, count - reach) for count in counts),
            highs=tuple(min(float(facts.n), count + reach) for count in counts),
            across="radius",
            up="outlier mass" if self.graded else "outliers",
            covers="noise alone, all radii at once, 95 %",
            bend=self._find_bend(value, facts),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        useful = self._is_useful(n, dimension)
        smallest = self.find_least_amount(lambda query: query._is_useful(n, dimension))
        options = self._options(n, dimension)
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "radii": len(self.grid)},
            chosen=options[0].mechanism,
            headings={"error": t("typical error ±"), "reach": t("all at once, 95 % within ±")},
            options=options,
            useful=useful,
            reason=self.explain_use(self._limit(n, dimension), useful, smallest),
            smallest_useful_epsilon=smallest,
            curve=self.trace(lambda query: query.reach(n, dimension)),
            measure=t("records within which all are, 95 %"),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radii=(0.25, 0.5, 1.0, 2.0), loss=Loss("1"))

    def _is_useful(self, n: int, dimension: int) -> bool:
        if self.shares is None:
            return self.reach(n, dimension) <= USEFUL_SHARE * n
        return is_share_findable(self.sorted_shares[0], n, self.tally(n, dimension).share, self.loss.epsilon)

    def _limit(self, n: int, dimension: int) -> str:
        """Return how accurate the answer will be, in words."""
        if self.shares is None:
            crowded = self.with_cap(n, dimension, self.rule(n, dimension).likely_cap()).reach(n, dimension)
            widths = join_widths(self.reach(n, dimension), crowded)
            return t("all radii at once {widths} among {n:,} records", widths=widths, n=n)
        return t(
            "{ratio:,.1f} records times ε are the smallest share, and {needed:,.1f} are needed",
            ratio=float(self.sorted_shares[0] * n * self.loss.epsilon),
            needed=MIN_TARGET_RATIO * self.tally(n, dimension).share,
        )

    def _options(self, n: int, dimension: int) -> tuple[Option, ...]:
        reach = self.reach(n, dimension)
        if self.shares is not None:
            return (Option(mechanism="joint exponential", figures={"reach": reach}, note=t("all shares at once")),)
        tally, points = self.tally(n, dimension), len(self.grid)
        laplace = calibrate(tally.sensitivity, Loss(self.loss.epsilon / points), step=Fraction(1, tally.unit))
        apart = laplace.half_width(1 - (1 - CONFIDENCE) / points)
        return (
            Option(mechanism="cube", figures={"error": self.noise(n, dimension).mean_error(), "reach": reach}),
            Option(
                mechanism="laplace",
                figures={"error": laplace.mean_error(), "reach": apart},
                note=t("for comparison: independent noise for each radius"),
            ),
        )


def read_cap(value: Value) -> ChosenCap | None:
    """Return the degree cap that a test chose for this release; None if there was no test."""
    if "crowding" not in value:
        return None
    return ChosenCap(value["slack"], value["crowding"], value["slack_reason"])


def smooth(noisy: ArrayLike, n: int) -> list[int]:
    """Return the decreasing curve of whole records from n to 0 that is nearest to noisy numbers, in squares.

    Adjacent numbers that increase are pooled. The result is nowhere further from any decreasing curve than the noisy
    numbers are somewhere.

    >>> smooth([9.2, 3.0, 5.0, -4.0], 8)
    [8, 4, 4, 0]
    """
    pools: list[tuple[float, int]] = []
    for value in np.asarray(noisy, dtype=np.float64).tolist():
        mean, size = value, 1
        while pools and pools[-1][0] < mean:
            before, count = pools.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        pools.append((mean, size))
    return [min(max(math.floor(mean + 0.5), 0), n) for mean, size in pools for _ in range(size)]


def bend_of(radii: Sequence[float], heights: Sequence[float]) -> int | None:
    """Return where a decreasing curve bends: the index furthest below the straight line between its ends.

    >>> bend_of((0.25, 0.5, 1.0, 2.0), (90, 20, 10, 0)), bend_of((1.0, 2.0), (9, 0))
    (1, None)
    """
    x, y = np.log(np.asarray(radii, dtype=np.float64)), np.asarray(heights, dtype=np.float64)
    if len(x) < 3 or y[0] <= y[-1]:
        return None
    line: NDArray[np.float64] = y[0] + (y[-1] - y[0]) * (x - x[0]) / (x[-1] - x[0])
    below = line - y
    return int(np.argmax(below)) if below.max() > 0 else None
