"""At which radius is a wanted share of the records outliers?

A count depends on its radius more than on anything else, and nobody knows the radius beforehand. Of a fine public grid
the radius is released at which about that share of the records are outliers; one choice is paid for, however many
radii are looked at. A quarter of ε verifies the share: the number of outliers at the drawn radius is released with it.

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

from wallflower.data import Points, TiledPoints, TiledTable
from wallflower.errors import EngineMismatch, LossMismatch, ParameterError
from wallflower.mechanisms import Additive, calibrate
from wallflower.neighbours.limits import (
    SCALE_HELP,
    SLACK_HELP,
    check_loss,
    check_neighbours,
    check_scale,
    records_of,
    scale_notes,
    search_effort,
    view_all,
)
from wallflower.neighbours.noisy_count import public_cap
from wallflower.neighbours.radii import (
    LARGEST,
    SMALLEST,
    USUAL,
    Tally,
    choose_radii,
    radius_grid,
    read_share,
    steps_at,
)
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.progress import Effort
from wallflower.query import (
    Option,
    Plan,
    PublicFacts,
    Query,
    Reading,
    ReleaseLike,
    Status,
    least_amount,
    settle,
)
from wallflower.query.accuracy import (
    CONFIDENCE,
    NoiseLaw,
    check_distances,
    check_share,
    check_slack_size,
    percent,
    rate_number,
    unverified_share,
)
from wallflower.query.picture import Dot
from wallflower.theorems import name_labels
from wallflower.units import Claim

ENOUGH: Final = 11  # times what one record moves: so many records times ε must the share be
VERIFIED: Final = Fraction(1, 4)  # of ε, for the number of outliers at the drawn radius
EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5")
VERIFIED_NOTE: Final = (
    "The figures hold if a radius of the grid has the share. A quarter of ε is spent on the number of outliers at the "
    "drawn radius, which shows whether it has."
)
Value = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Radius(Query[Points | TiledPoints, Value]):
    """Find the radius at which a share of the records are outliers.

    >>> Radius(neighbours=5, share=Fraction(1, 100), loss=Loss("0.5")).cost()
    Loss(ε=1/2)
    """

    kind: ClassVar[str] = "radius"
    label: ClassVar[str] = "outlier-radius/1"
    question: ClassVar[str] = "At which radius is that share of the records outliers?"
    proof: ClassVar[str] = "queries/radius/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    by_tiles: ClassVar[bool] = True

    neighbours: int = field(metadata={"help": "with fewer than this many others near, a record is an outlier"})
    share: Fraction = field(metadata={"help": "the wanted share of outliers among the records: 1%, 0.01 or 1/100"})
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns distances are taken over; all number columns unless given", "names": "measured"},
    )
    smallest: float | None = field(
        default=None, metadata={"help": "the smallest radius that is looked at; default: 1/16", "span": "radius"}
    )
    largest: float | None = field(
        default=None,
        metadata={
            "help": "the largest radius that is looked at; default of both: 16, with wider steps from 4 on",
            "span": "radius",
        },
    )
    slack: int | None = field(default=None, metadata={"help": SLACK_HELP})
    graded: bool = field(
        default=False, metadata={"help": "the share of the outlier mass, which needs less loss, instead of outliers"}
    )
    normalise: bool = field(
        default=True, metadata={"help": "distances per column (as in Okada et al. 2015) rather than plain Euclid"}
    )
    verify: bool = field(
        default=True,
        metadata={"help": "spend a quarter of ε on the number of outliers at the drawn radius, which shows the share"},
    )
    scale: int | ReleaseLike | None = field(default=None, metadata={"help": SCALE_HELP})

    def __post_init__(self) -> None:
        settle(self)
        check_neighbours(self.neighbours)
        object.__setattr__(self, "share", read_share(self.share))
        check_loss(self.kind, self.loss)
        check_scale(self.scale)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"radius is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        if self.slack is not None and (self.graded or not 1 <= self.slack <= 10**6):
            raise ParameterError("slack: it is from 1 to 1,000,000, and the outlier mass has none. Leave it out.")
        self.grid  # noqa: B018 - refuses what makes no grid

    @property
    def grid(self) -> tuple[float, ...]:
        """The public radii."""
        if self.smallest is None and self.largest is None:
            return USUAL
        return radius_grid(
            SMALLEST if self.smallest is None else self.smallest, LARGEST if self.largest is None else self.largest
        )

    def cost(self) -> Loss:
        return self.loss

    def rests_on(self, data: Points | TiledPoints) -> tuple[str, ...]:
        curve = name_labels("count", "P E C1 C2 N F T C4" if isinstance(data, TiledPoints) else "P E C1 C2 N F")
        choice = name_labels("radius", "C E T V" if self.verify else "C E T")
        return (*curve, *choice, *name_labels("mechanisms", "J1 J2 E2 E3 L" if self.verify else "J1 J2 E2 E3"))

    def effort(self, *, n: int, dimension: int) -> Effort:
        each = search_effort(n, dimension, self.neighbours)
        return replace(each, steps=(len(self.grid) + self.verify) * each.steps)

    def claim(self, facts: PublicFacts) -> Claim:
        rho = self.choice_epsilon**2 / 8 + self.count_epsilon**2 / 2  # (T) (V)
        return replace(super(Radius, self).claim(facts), rho=rho)

    @property
    def choice_epsilon(self) -> Fraction:
        """The ε of the choice.  (V)"""
        return self.loss.epsilon - self.count_epsilon

    @property
    def count_epsilon(self) -> Fraction:
        """The ε of the number of outliers at the drawn radius; 0 where nothing verifies the share.  (V)"""
        return self.loss.epsilon * VERIFIED if self.verify else Fraction(0)

    def view(self, data: Any) -> Points | TiledPoints:
        if isinstance(data, TiledTable) and self.graded:
            raise EngineMismatch(data.engine, f"{self.kind} with graded", "Leave graded out")
        return view_all(data, self.columns, self.neighbours)

    def conditions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        slack = check_slack_size(self.tally(data.n, data.dimension).slack, self.neighbours)
        unverified = () if self.verify else (unverified_share(self.grid),)
        return (*unverified, *check_distances(data, self.scale), *slack)

    def cautions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        return scale_notes(self.scale)

    def answer(self, data: Points | TiledPoints, noise: Noise) -> Value:
        records, tally = records_of(data), self.tally(data.n, data.dimension)
        (radius,) = choose_radii(
            records, self.grid, [self.share], tally, epsilon=self.choice_epsilon, noise=noise
        )  # (T)
        if not self.verify:
            return {"radius": radius}
        noisy = steps_at(records, radius, tally) + self.count_noise(data.n, data.dimension).draw(noise)  # (V)
        count = math.floor(Fraction(noisy, tally.unit) + Fraction(1, 2))
        return {"radius": radius, self._counted: min(max(count, 0), data.n)}

    @property
    def _counted(self) -> str:
        return "mass" if self.graded else "outliers"

    def count_noise(self, n: int, dimension: int) -> Additive:
        """The noise of the number of outliers at the drawn radius.  (V)"""
        tally = self.tally(n, dimension)
        return calibrate(tally.sensitivity, Loss(self.count_epsilon), step=Fraction(1, tally.unit))

    def picture(self, value: Value, facts: PublicFacts) -> Dot:
        return Dot(value=value["radius"], across="radius")

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        known = {"target": float(self.share * facts.n), "off": self.off(facts.n, facts.dimension)}
        known |= {} if self.graded else {"slack": self._slack(facts)}
        return self._read_verified(value, facts, known) if self.verify else self._read_bare(value, facts, known)

    def _read_verified(self, value: Value, facts: PublicFacts, known: dict[str, float]) -> Reading:
        """The number of outliers at the radius, what is proved of it first, beside the number asked for."""
        count, law = value[self._counted], self.count_noise(facts.n, facts.dimension)
        width = law.half_width(CONFIDENCE)
        low, high = max(0, math.ceil(count - width - 0.5)), min(facts.n, math.floor(count + width + 0.5))
        wanted = f"estimate {count:,}; asked for: {known['target']:,.0f} ({percent(float(self.share))})"
        if self.graded:
            words = f"the outlier mass of {facts.n:,} records is {low:,} to {high:,} (95 % confidence); {wanted}."
        else:
            words = f"at most {high:,} of {facts.n:,} records are outliers (97.5 % confidence); {wanted}."
        reach = self.off(facts.n, facts.dimension) + width + 0.5
        return Reading(
            mechanism="exponential",
            interval=None,
            words=f"At a radius of {value['radius']:.4g} {words}",
            brief=f"{value['radius']:.4g}",
            extras={**known, "at_most": high, "noise_law": NoiseLaw.of(law).to_json()},
            quality=rate_number(
                width,
                number=count,
                records=facts.n,
                interval="two-sided" if self.graded else "upper end only",
                name="the outlier mass" if self.graded else "the count at this radius",
                conditions=check_share(self.share, count, facts.n, reach),
            ),
        )

    def _read_bare(self, value: Value, facts: PublicFacts, known: dict[str, float]) -> Reading:
        """Without a number of outliers all that is known rests on a condition, which is stated first."""
        what, wanted, off = "outlier mass" if self.graded else "outliers", known["target"], known["off"]
        return Reading(
            mechanism="exponential",
            interval=None,
            words=f"If a radius of the grid has the share, which is not verified: near a radius of "
            f"{value['radius']:.4g} about {wanted:,.0f} of {facts.n:,} records ({percent(float(self.share))}) are "
            f"{what}, within {off:,.0f} of it (95 %).",
            brief=f"{value['radius']:.4g}",
            extras=known,
            quality=rate_number(
                off, number=wanted, records=facts.n, interval="not proved", name="the number that is asked for"
            ),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        useful, tally = self._is_useful(n, dimension), self.tally(n, dimension)
        off, each = self.off(n, dimension), float(self.share * n * self.choice_epsilon)
        smallest = least_amount(lambda amount: self._at(amount)._is_useful(n, dimension))
        needed = f"{ENOUGH * tally.share:,.1f} are needed"
        words = f"{each:,.1f} records times the ε of the choice are wanted as outliers, and {needed}"
        advice = f"; from ε = {smallest} on it would be" if smallest else "; no reasonable loss makes it so"
        figures = {"off": off, "share": off / n}
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "radii": len(self.grid)},
            chosen="exponential",
            headings={"off": "records off, 95 % within ±", "share": "of all records ±"},
            options=(Option(mechanism="exponential", figures=figures, note="one choice among all radii"),),
            useful=useful,
            reason=words if useful else f"{words}{advice}",
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), self._at(e).off(n, dimension)) for e in EPSILONS),
            measure="records by which the radius misses, 95 %",
            notes=(VERIFIED_NOTE,) if self.verify else (),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, share=Fraction(1, 20), loss=Loss("1"))

    def tally(self, n: int, dimension: int) -> Tally:
        """How outliers are counted.  (C)"""
        slack = self.slack or public_cap(n, self.neighbours, self.loss, dimension=dimension)
        return Tally(
            neighbours=self.neighbours,
            slack=None if self.graded else slack,
            normalise=self.normalise,
            columns=dimension,
        )

    def off(self, n: int, dimension: int) -> float:
        """By how many records the curve misses the wanted share, 95 times of 100 at most.  (R)"""
        nats = math.log(len(self.grid)) - math.log1p(-CONFIDENCE)
        return min(float(n), 2 * self.tally(n, dimension).share * nats / float(self.choice_epsilon))

    def _slack(self, facts: PublicFacts) -> int:
        return self.tally(facts.n, facts.dimension).slack or 0

    def _is_useful(self, n: int, dimension: int) -> bool:
        return float(self.share * n * self.choice_epsilon) >= ENOUGH * self.tally(n, dimension).share

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount))
