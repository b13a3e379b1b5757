"""What a watch states of the observations it will see, and what a forecast has to assume where it is silent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from wallflower.errors import ParameterError
from wallflower.queries.watch.forecast.population import (
    Floats,
    Gaussian,
    Population,
    factor_of,
    population_of_largest,
    population_of_length,
    population_of_sum,
)
from wallflower.queries.watch.gauge import Gauge

ALIKE: Final = "entries are Gaussian, independent and spread alike"
LEVEL: Final = "their means are alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is public of the observations; None: it was left out."""

    statistic: str
    weights: tuple[float, ...]
    centre: float
    mean: tuple[float, ...] | None
    variance: float | None
    covariance: tuple[tuple[float, ...], ...] | None
    truth: float

    @property
    def is_sum(self) -> bool:
        return self.statistic in ("sum", "weighted")

    @property
    def is_enough(self) -> bool:
        """Whether a forecast can be made."""
        return self.covariance is not None or (self.is_sum and self.variance is not None)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a forecast takes for granted and nobody stated; one entry leaves nothing to assume."""
        taken = {ALIKE: self.covariance is None, LEVEL: self.mean is None}
        return tuple(rule for rule, is_taken in taken.items() if is_taken and len(self.weights) > 1)

    @property
    def deviations(self) -> tuple[float, ...] | None:
        """What each entry adds to the statistic's spread by itself, where its own variance is stated."""
        if self.covariance is None or not self.is_sum:
            return None
        return tuple(
            abs(weight) * math.sqrt(max(row[place], 0.0))
            for place, (weight, row) in enumerate(zip(self.weights, self.covariance, strict=True))
        )

    def law(self) -> Gaussian:
        """The Gaussian of the entries."""
        return Gaussian(mean=self._means(), factor=self._factor())

    def _factor(self) -> Floats:
        weights = np.array(self.weights)
        if self.covariance is None:
            return np.full(len(weights), math.sqrt((self.variance or 0.0) / float(weights @ weights)))
        covariance = np.array(self.covariance, dtype=np.float64)
        if covariance.shape != (len(weights), len(weights)) or not np.isfinite(covariance).all():
            raise ParameterError(f"covariance: {len(weights)} rows of as many numbers are needed, one for each column.")
        spread = float(weights @ covariance @ weights)
        if self.is_sum and self.variance is not None and not math.isclose(spread, self.variance, rel_tol=0.01):
            raise ParameterError(
                f"variance, covariance: the sum has a variance of {spread:.4g} by the one and {self.variance:.4g} by "
                "the other. Leave one out."
            )
        return factor_of((covariance + covariance.T) / 2)

    def _means(self) -> Floats:
        if self.mean is not None:
            return np.array(self.mean)
        total, size = math.fsum(self.weights), math.fsum(map(abs, self.weights))
        if self.centre and abs(total) < 1e-9 * size:
            raise ParameterError(
                "mean: weights that add up to 0 make no such centre of entries with one mean. Pass the mean of each."
            )
        return np.full(len(self.weights), self.centre / total if self.centre else 0.0)


def population(statement: Statement, gauge: Gauge) -> Population:
    """The observations as this gauge measures them."""
    match statement.statistic:
        case "mahalanobis":
            return population_of_length(gauge, statement.law(), statement.truth)
        case "max":
            return population_of_largest(gauge, statement.law(), statement.truth)
        case _:
            return population_of_sum(
                gauge, statement.law(), np.array(statement.weights), statement.centre, statement.truth
            )
