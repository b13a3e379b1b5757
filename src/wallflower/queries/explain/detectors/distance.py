"""Distance: few other records are near."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from wallflower.queries.explain.detectors.base import CellMarginDetector, Rule, check_setting
from wallflower.queries.explain.space.cubes import no_sums
from wallflower.queries.explain.space.tables import MAX_METRIC, Bools, CellTable, Division, Floats
from wallflower.text import Message, t


@dataclass(frozen=True, slots=True)
class Distance(CellMarginDetector):
    """Fewer than `k` other records lie within `radius` of the record [KN98].

    Use it where a distance in units of the metric means something. The margin is k - N, where N is the number of other
    records within the radius, so it never exceeds `k`: a small `k` says little under a small ε.

    >>> Distance(k=1, radius=0.5).outlier(np.array([1.0, 2.0, 2.2]), 0)
    True
    """

    kind: ClassVar[str] = "distance"
    nanoseconds_per_context: ClassVar[float] = 10.0

    k: int = field(metadata={"help": "with fewer than this many, a record is an outlier"})
    radius: float = field(metadata={"help": "records closer than this are nearby"})

    def __post_init__(self) -> None:
        check_setting("k", self.k, 1 <= self.k <= 2**31, "1 to 2^31", "pass a whole number")
        fits = 0 <= self.radius <= MAX_METRIC
        check_setting("radius", self.radius, fits, "0 to 1e100", "pass a distance in units of the metric")

    def outlier(self, values: Floats, index: int, /) -> bool:
        return int(np.count_nonzero(self.is_near(values, float(values[index])))) - 1 < self.k

    @classmethod
    def examples(cls) -> tuple[Distance, ...]:
        return (cls(2, 1.0),)

    def is_near(self, values: Floats, own: float) -> Bools:
        """Return which values are within the radius, the record's own among them."""
        return np.asarray(np.abs(values - own) <= self.radius)

    def divide(self) -> Division:
        return Division(parts=2, place=self.is_near)

    def rule(self, table: CellTable) -> Rule:
        counts = np.stack([table.weights, table.parts[1]])
        return Rule(counts, no_sums(len(table.slots)), lambda counts, _: self.k + 1.0 - counts[1])

    def greatest_margins(self, populations: Floats) -> Floats:
        return np.full(len(populations), float(self.k))

    def rounding(self, own: float) -> float:
        return 0.0  # counts

    def replacement(self) -> Fraction:
        return Fraction(1)

    def flags_everyone(self, size: int) -> bool:
        return self.k >= size

    def expected_margins(self, populations: Floats, clear: float) -> Floats:
        return self.greatest_margins(populations)

    def assumption(self, clear: float) -> Message:
        return t("the record has nobody near")
