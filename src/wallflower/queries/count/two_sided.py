"""A count whose interval is proved at both ends.

The extension never counts too few. A second number, released with it at half of the loss, never counts too many before
noise: `lower.py` computes it. Between the two lies the number of outliers (proof.md, labels (Q1) (Q2) (Q3) (H)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from wallflower.data import Points, TiledTable
from wallflower.errors import EngineMismatch
from wallflower.machine.lazy import Lazy
from wallflower.mechanisms import Additive
from wallflower.neighbours.noisy_count import GAP, STEP, ChosenCap, count_noise, interval, round_to_records
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.count.at_radius import Counted, ExtensionCount, check_any_outlier, describe_cap
from wallflower.queries.near import Records
from wallflower.query import PublicFacts, Reading
from wallflower.query.accuracy import CONFIDENCE, NoiseLaw
from wallflower.text import t
from wallflower.theorems import name_labels

if TYPE_CHECKING:
    import wallflower.neighbours.pairs as _pairs
    import wallflower.queries.count.lower as _lower
else:
    _pairs = Lazy("wallflower.neighbours.pairs")  # compiled kernels, which a plan does without
    _lower = Lazy("wallflower.queries.count.lower")


@dataclass(frozen=True, slots=True)
class TwoSidedCounted(Counted):
    """A released count with `floor`, released beside it: before noise, it counts no record too many."""

    floor: int = 0


@dataclass(frozen=True, kw_only=True)
class TwoSidedCount(ExtensionCount[TwoSidedCounted]):
    """Count with two numbers, each at half of the loss, so that both ends of the interval are proved.

    >>> TwoSidedCount(neighbours=3, radius=0.5, loss=Loss("1", delta="1e-6")).loss_per_number
    Loss(ε=1/2, δ=1/2000000)
    """

    title: ClassVar[str] = "a count with a two-sided interval"

    @property
    def loss_per_number(self) -> Loss:
        loss = self.loss
        return Loss(loss.amount / 2, delta=loss.delta / 2, kind=loss.kind, neighbours=loss.neighbours)  # (H)

    def floor_noise(self, n: int, dimension: int, chosen: ChosenCap | None = None) -> Additive:
        """Return the noise of the second number, which one record moves by one less than the count.  (H)"""
        capped = self.with_cap(n, dimension, chosen)
        return count_noise(capped.fixed_slack - 1, capped.loss_per_number)

    def view(self, data: Any) -> Records:
        if isinstance(data, TiledTable):
            raise EngineMismatch(data.engine, "count with a two-sided interval", "Ask for interval='noise'")
        return super().view(data)

    def rests_on(self, data: Records) -> tuple[str, ...]:
        return (*super().rests_on(data), *name_labels("count", "Q1 Q2 Q3 H"))

    def answer(self, data: Records, noise: Noise) -> TwoSidedCounted:
        chosen = self.choose_cap(data, noise)
        capped = self.with_cap(data.n, data.dimension, chosen)
        value = capped.count_records(data, noise)
        return TwoSidedCounted(value, chosen, capped._count_floor(data, noise))

    def _count_floor(self, data: Records, noise: Noise) -> int:
        """Return the noisy number at which the interval begins, with a degree cap that is fixed.  (P) (Q1) (Q2) (Q3)"""
        assert isinstance(data, Points)
        radius, normalise = self.search_in(data)
        tree = _pairs.index_points(data.values, radius, normalise=normalise)
        bounds = _lower.certify_lower(tree, self.neighbours, float(self.fixed_slack), GAP)
        steps = math.floor(bounds.lower * STEP.denominator + 0.5)
        return round_to_records(Fraction(steps + self.floor_noise(data.n, data.dimension).draw(noise)), data.n)

    def reading(self, value: TwoSidedCounted, facts: PublicFacts) -> Reading:
        n, dimension = facts.n, facts.dimension
        chosen = value.cap or self.rule(n, dimension).take_narrow()
        law, floor_law = self.capped_noise(n, dimension, value.cap), self.floor_noise(n, dimension, value.cap)
        low = min(value.value, interval(value.floor, n, floor_law)[0])  # (H)
        return self.read_count(
            value.value,
            facts,
            law,
            (low, interval(value.value, n, law)[1]),
            any_outlier=check_any_outlier(value.floor, floor_law) | {"found_from": None},  # (A): it may count too few
            both_ends_proved=True,
            extras={**chosen.facts, "floor": value.floor, "noise_law": NoiseLaw.of(law).to_json()},
            notes=describe_cap(chosen, self.neighbours),
        )

    def describe_interval(self, n: int, dimension: int) -> str:
        below = self.floor_noise(n, dimension).half_width(CONFIDENCE)
        return t(
            "-{below:.3g} and +{above:.3g} (95 %, both ends proved)",
            below=below,
            above=self.half_width(n, dimension),
        )
