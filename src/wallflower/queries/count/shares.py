"""A count at a radius that is drawn with it: the one at which a wanted share of the records are outliers.

Half of the loss goes to the radius, half to the count. The radius comes from a public grid, by a choice whose errors
one record moves by no more than it moves a count (proof.md, label (D)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Self

from wallflower.data import Points, TiledPoints
from wallflower.errors import LossMismatch, ParameterError
from wallflower.neighbours.limits import records_of
from wallflower.neighbours.radii import USUAL, Tally, choose_radii
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.query import Plan, Reading, least_amount, two_digits_up
from wallflower.query.accuracy import CONFIDENCE

ENOUGH: Final = 11  # sensitivities: so many wanted outliers, times ε, are told from none


class CountAtRadius(int):
    """A released `count`, and beside it the `radius` that was drawn for it."""

    count: int
    radius: float

    def __new__(cls, count: int, radius: float) -> Self:
        made = super().__new__(cls, count)
        made.count, made.radius = count, radius
        return made

    def extend_reading(self, reading: Reading, conditions: tuple[str, ...]) -> Reading:
        """The reading of the count, with the radius put before its words."""
        words = f"At a radius of {self.radius:.3g}: {reading.words[0].lower()}{reading.words[1:]}"
        assert reading.quality is not None
        quality = replace(reading.quality, conditions=(*conditions, *reading.quality.conditions))
        return replace(reading, words=words, extras={"radius": self.radius, **reading.extras}, quality=quality)


@dataclass(frozen=True, slots=True, kw_only=True)
class RadiusDraw:
    """How the radius is drawn."""

    share: Fraction
    neighbours: int
    slack: int
    normalise: bool
    loss: Loss
    radii: tuple[float, ...] = USUAL

    def draw(self, data: Points | TiledPoints, noise: Noise) -> float:
        """The radius, for the ε of the loss.  (D)"""
        tally = Tally(neighbours=self.neighbours, slack=self.slack, normalise=self.normalise, columns=data.dimension)
        (found,) = choose_radii(
            records_of(data), self.radii, [self.share], tally, epsilon=self.loss.epsilon, noise=noise
        )
        return found

    def off(self, n: int) -> float:
        """Records by which the curve misses the share at the drawn radius, if it is crossed there (95 %).  (D)"""
        nats = math.log(len(self.radii)) - math.log1p(-CONFIDENCE)
        return min(float(n), 2 * (self.slack + 1) * nats / float(self.loss.epsilon))

    def is_useful(self, n: int) -> bool:
        """Whether a radius drawn so is better than any other of the grid, from public facts."""
        return self.share * n * self.loss.epsilon >= ENOUGH * (self.slack + 1)


def halves(loss: Loss) -> tuple[Loss, Loss]:
    """The loss of the radius, which needs no δ, and that of the count."""
    if loss.kind not in (Kind.PURE, Kind.APPROXIMATE):
        raise LossMismatch(f"share: a radius has no theorem for a {loss.kind} loss; state epsilon, or pass a radius.")
    return Loss(loss.amount / 2), Loss(loss.amount / 2, delta=loss.delta)


def check_drawable(loss: Loss, *, is_plain: bool) -> None:
    """Refuse a radius that there is no theorem for."""
    halves(loss)
    if not is_plain:
        raise ParameterError(
            "share: a radius is drawn for a count of all records by the extension. Draw it by the question radius, and "
            "pass it as radius."
        )


def plan_share(plan: Plan, draw_at: Callable[[str], RadiusDraw], n: int, loss: Loss) -> Plan:
    """The plan of the count at its half of the loss, with what its radius needs; `draw_at` an amount of the whole."""
    draw, smallest = draw_at(str(loss.amount)), plan.smallest_useful_epsilon
    enough = least_amount(lambda amount: draw_at(amount).is_useful(n))
    both = None if smallest is None or enough is None else two_digits_up(max(2 * float(smallest), float(enough)))
    useful = plan.useful and draw.is_useful(n)
    few = f"{float(draw.share):.3g} of {n:,} records are too few to find the radius of"
    advice = f"; from ε = {both} on it would be" if both else "; no reasonable loss makes it so"
    reason = f"{plan.reason}, at a radius drawn for {float(draw.share):.3g} of them"
    return replace(
        plan,
        cost=loss,
        options=plan.options[:1],
        useful=useful,
        reason=reason if draw.is_useful(n) else f"{few}{advice}",
        smallest_useful_epsilon=both,
        curve=tuple((2 * amount, height) for amount, height in plan.curve),
        notes=(*plan.notes, "Half of the loss goes to the radius, which is told with the count."),
    )
