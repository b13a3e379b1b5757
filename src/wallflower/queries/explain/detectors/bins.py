"""Fixed bins: the record's bin, of public ones, holds few."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from wallflower.queries.explain.detectors.base import (
    GRID_PARAMETERS,
    CellMarginDetector,
    Rule,
    check_bounds,
    check_fraction,
    check_rising,
    check_setting,
    fill_grid,
)
from wallflower.queries.explain.space.cubes import no_sums
from wallflower.queries.explain.space.tables import Bools, CellTable, Division, Floats
from wallflower.schema import Column


@dataclass(frozen=True, slots=True)
class FixedBins(CellMarginDetector):
    """The record's bin holds less than a `fraction` of the context.

    Values beyond the outer edges are in the outer bins. Use it for a metric with several modes. The margin is
    (τn - c) / max(τ, 1 - τ), where c counts the record's bin: a record in the bin takes 1 - τ off, any other adds τ.

    >>> FixedBins.equal(0, 10, bins=2, fraction=0.3).outlier(np.array([9.0, 1.0, 2.0, 3.0]), 0)
    True
    >>> FixedBins((0.0, 1.0, 2.0)).greatest_margins(np.array([400.0, 4000.0])).round(2).tolist()
    [0.0, 9.02]
    """

    kind: ClassVar[str] = "bins"
    nanoseconds_per_context: ClassVar[float] = 10.0

    edges: tuple[float, ...] = field(metadata={"help": "edges of the bins, rising"})
    fraction: float = field(default=0.0025, metadata={"help": "a bin with a smaller share of the records is sparse"})

    def __post_init__(self) -> None:
        check_rising("edges", self.edges)
        check_fraction(self.fraction)

    @classmethod
    def equal(cls, low: float, high: float, bins: int, fraction: float = 0.0025) -> FixedBins:
        """Make bins of equal width between public bounds."""
        check_bounds(low, high)
        check_setting("bins", bins, 1 <= bins <= 1_000_000, "1 to 1000000", "pass a whole number")
        return cls(tuple(np.linspace(low, high, bins + 1).tolist()), fraction)

    def outlier(self, values: Floats, index: int, /) -> bool:
        return int(np.count_nonzero(self.shares_bin(values, float(values[index])))) < self.fraction * len(values)

    @classmethod
    def examples(cls) -> tuple[FixedBins, ...]:
        return cls((0.0, 2.0, 4.0, 6.0), 0.4), cls((0.0, 3.0, 6.0), 0.8)

    @classmethod
    def parameters(cls) -> Mapping[str, Any]:
        return {"edges": tuple[float, ...], "fraction": float, **GRID_PARAMETERS}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], metric: Column, size: int) -> FixedBins:
        return cls(**fill_grid(cls.kind, "edges", settings, metric))

    def shares_bin(self, values: Floats, own: float) -> Bools:
        """Return which values are in the record's bin, its own among them."""
        inner = np.asarray(self.edges[1:-1])
        return np.asarray(np.searchsorted(inner, values, side="right") == np.searchsorted(inner, own, side="right"))

    def divide(self) -> Division:
        return Division(parts=2, place=self.shares_bin)

    def rule(self, table: CellTable) -> Rule:
        tau, divisor = self.fraction, self._divisor
        counts = np.stack([table.weights, table.parts[1]])
        return Rule(counts, no_sums(len(table.slots)), lambda counts, _: (tau * counts[0] - counts[1]) / divisor)

    def greatest_margins(self, populations: Floats) -> Floats:
        return (self.fraction * populations - 1) / self._divisor

    def rounding(self, own: float) -> float:
        return 2.0**-18  # a product, a difference and a division of numbers below 2³¹

    def replacement(self) -> Fraction:
        return 1 / Fraction(self._divisor)

    @property
    def _divisor(self) -> float:
        return max(self.fraction, 1 - self.fraction)
