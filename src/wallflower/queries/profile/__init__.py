"""How many outliers are there at every radius?

A whole curve for one price: the number of outliers at each of some public radii, with noise drawn from a cube, since
one record moves every point of the curve by as much. Or the other way round: for each of some shares the radius at
which so many of the records are outliers, all chosen at once.

Released    a whole number for each radius, or a radius for each share
Guarantee   pure ε-DP                                Neighbours  replace one record, N public
Arithmetic  whole-number noise on a grid of 1/128    Proof       proof.md, labels (C) (P) (H) (T)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from wallflower.data import Points, TiledPoints, TiledTable
from wallflower.errors import EngineMismatch, LossMismatch, ParameterError
from wallflower.mechanisms import Cube, calibrate, calibrate_cube
from wallflower.neighbours.limits import (
    SCALE_HELP,
    SLACK_HELP,
    check_loss,
    check_neighbours,
    check_radius,
    check_scale,
    per_column,
    records_of,
    scale_notes,
    search_effort,
    view_all,
)
from wallflower.neighbours.noisy_count import CapRule, ChosenCap, cap_rule, crowding_steps, join_widths, public_cap
from wallflower.neighbours.radii import USUAL, Tally, choose_radii, outlier_curve, read_share
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.progress import Effort
from wallflower.queries.profile.exact import bend_of, smooth
from wallflower.query import Option, Plan, PublicFacts, Query, Reading, ReleaseLike, Status, least_amount, settle
from wallflower.query.accuracy import (
    MODERATE,
    check_distances,
    check_slack_size,
    rate_number,
    unverified_share,
)
from wallflower.query.picture import Curve
from wallflower.theorems import name_labels
from wallflower.units import Claim

RADII: Final = tuple(0.18 * math.sqrt(2) ** place for place in range(12))
ENOUGH: Final = 11  # times what one record moves: so many records times ε must the smallest share be
USEFUL: Final = MODERATE[1]  # of the records: more than moderate noise makes a plan not useful
SURE: Final = 0.95
MOST: Final = 100
EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5")
NOISE_ALONE: Final = (
    "The band covers the noise alone, at all radii at once. Its upper edge holds of the true numbers too; its lower "
    "edge is not proved, as the curve is too high where many records have barely enough neighbours."
)
Value = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile(Query[Points | TiledPoints, Value]):
    """Count the outliers at every radius.

    >>> Profile(neighbours=5, loss=Loss("1")).cost()
    Loss(ε=1)
    """

    kind: ClassVar[str] = "profile"
    label: ClassVar[str] = "outlier-profile/1"
    question: ClassVar[str] = "How many outliers are there at every radius?"
    proof: ClassVar[str] = "queries/profile/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    by_tiles: ClassVar[bool] = True

    neighbours: int = field(metadata={"help": "with fewer than this many others near, a record is an outlier"})
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    radii: tuple[float, ...] | None = field(
        default=None,
        metadata={"help": "the radii, rising; left out, and without shares: 12 from 0.18 to 8", "span": "radius"},
    )
    shares: tuple[str, ...] | None = field(
        default=None, metadata={"help": "find a radius for each of these shares of outliers instead: 1%, 0.01 or 1/100"}
    )
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns distances are taken over; all number columns unless given", "names": "measured"},
    )
    slack: int | None = field(default=None, metadata={"help": SLACK_HELP})
    graded: bool = field(
        default=False,
        metadata={"help": "the outlier mass, which counts how many neighbours are lacking: half the error"},
    )
    normalise: bool = field(
        default=True, metadata={"help": "distances per column (as in Okada et al. 2015) rather than plain Euclid"}
    )
    scale: int | ReleaseLike | None = field(default=None, metadata={"help": SCALE_HELP})

    def __post_init__(self) -> None:
        settle(self)
        check_neighbours(self.neighbours)
        check_loss(self.kind, self.loss)
        check_scale(self.scale)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"profile is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        if self.radii is not None and self.shares is not None:
            raise ParameterError("radii, shares: a profile goes by one of them. Leave the other out.")
        if self.shares is not None:
            object.__setattr__(self, "shares", tuple(str(read_share(share, "shares")) for share in self.shares))
        if not all(1 <= len(given) <= MOST for given in (self.radii, self.shares) if given is not None):
            raise ParameterError(
                f"radii, shares: a profile has from 1 to {MOST} of them. Pass fewer, or leave them out."
            )
        for radius in self.places:
            check_radius(radius)
        if list(self.places) != sorted(set(self.places)):
            raise ParameterError("radii: they do not rise. Write each once, the smallest first.")
        if self.slack is not None and (self.graded or not 1 <= self.slack <= 10**6):
            raise ParameterError("slack: it is from 1 to 1,000,000, and the outlier mass has none. Leave it out.")

    @property
    def places(self) -> tuple[float, ...]:
        """The public radii that the curve is looked at."""
        return USUAL if self.shares is not None else self.radii or RADII

    @property
    def sorted_shares(self) -> list[Fraction]:
        """The shares, smallest first."""
        return sorted(map(Fraction, self.shares or ()))

    def cost(self) -> Loss:
        return self.loss

    def rests_on(self, data: Points | TiledPoints) -> tuple[str, ...]:
        curve = name_labels("count", "P E C1 C2 N F T C4" if isinstance(data, TiledPoints) else "P E C1 C2 N F")
        if self.shares:
            return (*curve, *name_labels("radius", "C E T"), *name_labels("mechanisms", "J1 J2 E2 E3"))
        tested = name_labels("profile", "C P X" if self.slack is None else "C P") + name_labels("radius", "C")
        crowding = name_labels("count", "X") + name_labels("mechanisms", "L") if self.slack is None else ()
        return (*curve, *tested, *crowding, *name_labels("mechanisms", "K1 K2"))

    def effort(self, *, n: int, dimension: int) -> Effort:
        each = search_effort(n, dimension, self.neighbours)
        return replace(each, steps=len(self.places) * each.steps)

    def claim(self, facts: PublicFacts) -> Claim:
        part = 8 if self.shares is not None else 2  # (T) (P)
        return replace(super(Profile, self).claim(facts), rho=self.loss.epsilon**2 / part)

    def view(self, data: Any) -> Points | TiledPoints:
        if isinstance(data, TiledTable) and self.graded:
            raise EngineMismatch(data.engine, f"{self.kind} with graded", "Leave graded out")
        points = view_all(data, self.columns, self.neighbours)
        self.noise(points.n, points.dimension)  # refused here if it is beyond what can be drawn, before the charge
        return points

    def conditions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        tally, rule = self.tally(data.n, data.dimension), self.rule(data.n, data.dimension)
        slack = check_slack_size(tally.slack, self.neighbours, is_least=rule.test is not None)
        crossed = () if self.shares is None else (unverified_share(self.places),)
        return (*crossed, *check_distances(data, self.scale), *slack)

    def cautions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        return scale_notes(self.scale)

    def answer(self, data: Points | TiledPoints, noise: Noise) -> Value:
        tally, epsilon = self.tally(data.n, data.dimension), self.loss.epsilon
        if self.shares is not None:
            found = choose_radii(
                records_of(data), self.places, self.sorted_shares, tally, epsilon=epsilon, noise=noise
            )  # (T)
            return {"shares": [str(share) for share in self.sorted_shares], "radii": sorted(found, reverse=True)}
        rule = self.rule(data.n, data.dimension)
        if rule.test is not None:
            chosen = rule.choose(self._crowding_steps(data), noise)  # (X)
            capped = self.with_cap(data.n, data.dimension, chosen)
            return capped.answer(data, noise) | chosen.facts
        if self.slack is None and not self.graded:
            return self.with_cap(data.n, data.dimension).answer(data, noise)
        steps = outlier_curve(records_of(data), self.places, tally).tolist()  # (C)
        drawn = self.noise(data.n, data.dimension).draw(noise)  # (P)
        return self.finish([step + more for step, more in zip(steps, drawn, strict=True)], data.n, tally)

    def rule(self, n: int, dimension: int) -> CapRule:
        """How the degree cap is chosen; no test goes with a choice of radii or with the outlier mass.  (X)"""
        fixed = self.shares is not None or self.graded
        slack = self.slack or (public_cap(n, self.neighbours, self.loss, dimension=dimension) if fixed else None)
        return cap_rule(n, self.neighbours, self.loss, dimension=dimension, slack=slack)

    def with_cap(self, n: int, dimension: int, chosen: ChosenCap | None = None) -> Self:
        """The same profile with its degree cap fixed, and with the loss that its choice leaves; a calm table's cap
        unless one is given.  (X)"""
        if self.graded:
            return self
        rule = self.rule(n, dimension)
        return replace(self, slack=rule.narrow if chosen is None else chosen.cap, loss=rule.numbers)

    def _crowding_steps(self, data: Points | TiledPoints) -> int:
        """The crowding at the radius where it is largest: one record moves it as it moves each.  (X)"""
        points = records_of(data)
        width = points.width if isinstance(points, TiledPoints) else points.shape[1]
        reaches = [per_column(radius, data.dimension, width, normalise=self.normalise) for radius in self.places]
        return max(
            crowding_steps([points], radius, self.neighbours, normalise=normalise) for radius, normalise in reaches
        )

    def finish(self, noisy: list[int], n: int, tally: Tally) -> Value:
        """What is released of noisy steps: post-processing."""
        whole = [math.floor(Fraction(step, tally.unit) + Fraction(1, 2)) for step in noisy]
        return {"radii": list(self.places), "outliers": smooth(whole, n)}

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        if self.shares is not None:
            said = ", ".join(f"{s} at {r:.3g}" for s, r in zip(value["shares"], value["radii"], strict=True))
            crossed = "If every share is crossed inside the grid of radii, which is not verified, outliers reach these"
            return Reading(
                mechanism="joint exponential",
                interval=None,
                words=f"{crossed} shares of the records: {said}.",
                quality=rate_number(
                    self.reach(facts.n, facts.dimension),
                    number=float(self.sorted_shares[0] * facts.n),
                    records=facts.n,
                    interval="not proved",
                    name="the smallest number that is asked for",
                ),
            )
        reach, bend = self._released_reach(value, facts), bend_of(value["radii"], value["outliers"])
        chosen = _read_cap(value) or (None if self.graded else self.rule(facts.n, facts.dimension).take_narrow())
        bends = bend is not None and value["outliers"][0] - value["outliers"][-1] > 2 * reach
        place = value["radii"][bend] if bends and bend is not None else None
        more = f" The released curve bends near a radius of {place:.3g}." if place is not None else ""
        first, last = value["outliers"][0], value["outliers"][-1]
        return Reading(
            mechanism="cube",
            interval=None,
            words=f"From about {first:,} of {facts.n:,} records at a radius of {value['radii'][0]:.3g} to {last:,} at "
            f"{value['radii'][-1]:.3g}; with 95 % all are within {reach:,.0f} of what they are without noise.{more}",
            extras={"reach": reach} | ({} if place is None else {"bend": place}) | (chosen.facts if chosen else {}),
            notes=(NOISE_ALONE,),
            quality=rate_number(
                reach,
                number=max(value["outliers"]),
                records=facts.n,
                interval="upper end only",
                name="the largest number of the curve",
            ),
        )

    def _released_reach(self, value: Value, facts: PublicFacts) -> float:
        """How far the noise of this release reaches, by the degree cap it was made with."""
        return self.with_cap(facts.n, facts.dimension, _read_cap(value)).reach(facts.n, facts.dimension)

    def picture(self, value: Value, facts: PublicFacts) -> Curve:
        if self.shares is not None:
            heights = tuple(float(Fraction(share) * facts.n) for share in value["shares"])
            return Curve(places=tuple(value["radii"]), heights=heights, across="radius", up="outliers")
        reach, found = self._released_reach(value, facts), value["outliers"]
        return Curve(
            places=tuple(value["radii"]),
            heights=tuple(map(float, found)),
            lows=tuple(max(0.0, count - reach) for count in found),
            highs=tuple(min(float(facts.n), count + reach) for count in found),
            across="radius",
            up="outlier mass" if self.graded else "outliers",
            covers="noise alone, all radii at once, 95 %",
            bend=self.reading(value, facts).extras.get("bend"),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        useful = self._is_useful(n, dimension)
        smallest = least_amount(lambda amount: self._at(amount)._is_useful(n, dimension))
        advice = f"; from ε = {smallest} on it would be" if smallest else "; no reasonable loss makes it so"
        words, options = self._words(n, dimension), self._options(n, dimension)
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "radii": len(self.places)},
            chosen=options[0].mechanism,
            headings={"error": "typical error ±", "reach": "all at once, 95 % within ±"},
            options=options,
            useful=useful,
            reason=words if useful else f"{words}{advice}",
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), self._at(e).reach(n, dimension)) for e in EPSILONS),
            measure="records within which all are, 95 %",
        )

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radii=(0.25, 0.5, 1.0, 2.0), loss=Loss("1"))

    def tally(self, n: int, dimension: int) -> Tally:
        """How outliers are counted.  (C)"""
        return Tally(
            neighbours=self.neighbours,
            slack=None if self.graded else self.rule(n, dimension).narrow,
            normalise=self.normalise,
            columns=dimension,
        )

    def noise(self, n: int, dimension: int) -> Cube:
        """The noise of the whole curve.  (P)"""
        tally, loss = self.tally(n, dimension), self.with_cap(n, dimension).loss
        return calibrate_cube(len(self.places), tally.sensitivity, loss, step=Fraction(1, tally.unit))

    def reach(self, n: int, dimension: int) -> float:
        """Records within which all released numbers are of those without noise, 95 times of 100.  (H) (T)"""
        if self.shares is None:
            return self.noise(n, dimension).reach(SURE) + 1
        nats = len(self.sorted_shares) * math.log(len(self.places)) - math.log1p(-SURE)
        return min(float(n), 2 * self.tally(n, dimension).share * nats / float(self.loss.epsilon))

    def _is_useful(self, n: int, dimension: int) -> bool:
        if self.shares is None:
            return self.reach(n, dimension) <= USEFUL * n
        least = float(self.sorted_shares[0] * n * self.loss.epsilon)
        return least >= ENOUGH * self.tally(n, dimension).share

    def _words(self, n: int, dimension: int) -> str:
        if self.shares is None:
            crowded = self.with_cap(n, dimension, self.rule(n, dimension).likely_cap()).reach(n, dimension)
            return f"all radii at once {join_widths(self.reach(n, dimension), crowded)} among {n:,} records"
        each, needed = float(self.sorted_shares[0] * n * self.loss.epsilon), ENOUGH * self.tally(n, dimension).share
        return f"{each:,.1f} records times ε are the smallest share, and {needed:,.1f} are needed"

    def _options(self, n: int, dimension: int) -> tuple[Option, ...]:
        reach = self.reach(n, dimension)
        if self.shares is not None:
            return (Option(mechanism="joint exponential", figures={"reach": reach}, note="all shares at once"),)
        tally, many = self.tally(n, dimension), len(self.places)
        each = Loss(self.loss.epsilon / many)
        laplace = calibrate(tally.sensitivity, each, step=Fraction(1, tally.unit))
        apart = laplace.half_width(1 - (1 - SURE) / many)
        return (
            Option(mechanism="cube", figures={"error": self.noise(n, dimension).mean_error(), "reach": reach}),
            Option(
                mechanism="laplace",
                figures={"error": laplace.mean_error(), "reach": apart},
                note="for comparison: noise for each radius by itself",
            ),
        )

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount))


def _read_cap(value: Value) -> ChosenCap | None:
    """The degree cap that a test chose for this release, if one was made."""
    if "crowding" not in value:
        return None
    return ChosenCap(value["slack"], value["crowding"], value["slack_reason"])
