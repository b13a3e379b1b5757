"""How much noise each method adds, as a standard deviation: the papers' own, the honest ones, ours.

Deviations of smooth noise depend on the records. They are computed here because these tables are public; of private
ones they must not be shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from wallflower.mechanisms import Additive, calibrate, gaussian_scale
from wallflower.neighbours.limits import global_bound
from wallflower.papers import printed
from wallflower.papers.data.tables import Sample
from wallflower.privacy import Loss
from wallflower.queries.count.at_radius import OneSidedCount
from wallflower.queries.count.sensitivity import smooth_bound

EPSILONS: Final = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9")
DELTA: Final = Fraction(1, 100)
NOT_PRIVATE: Final = "NOT PRIVATE"
INVALID: Final = "INVALID BOUND"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveLabel:
    """One curve. `guarantee` is what it gives or what it lacks, and `why` says what is wrong with it, if anything."""

    key: str
    label: str
    guarantee: str
    why: str = ""

    @property
    def column(self) -> str:
        """The name of the method as a column of a table."""
        return f"{self.key}_{self.guarantee.replace(' ', '_')}" if self.why else self.key


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(CurveLabel):
    """A way to add noise to a count."""

    deviation: Callable[[Sample, str], float]


def gaussian_pace(epsilon: float, delta: float) -> tuple[float, float]:
    """α and β of smooth Gaussian noise for one number [NRS07, Lemma 2.7]."""
    return epsilon / (5 * math.sqrt(2 * math.log(2 / delta))), epsilon / (4 * (1 + math.log(2 / delta)))


def laplace_pace(epsilon: float, delta: float) -> tuple[float, float]:
    """α and β of smooth Laplace noise for one number [NRS07, Lemma 2.9]."""
    return epsilon / 2, epsilon / (2 * math.log(2 / delta))


def true_bound(sample: Sample) -> int:
    """The most that one record can move the count, in exact arithmetic: 5k+1 in the plane.

    A release of wallflower by `global` takes 6k+1 there, since distances on a machine are rounded.
    """
    return global_bound(sample.n, sample.dimension, sample.neighbours)


def _lower(sample: Sample, epsilon: str) -> float:
    return printed.noise_for_global(printed.lower_bound(sample.dimension, sample.neighbours), float(epsilon))


def _japanese_lower(sample: Sample, epsilon: str) -> float:
    bound = printed.japanese_lower_bound(sample.n, sample.dimension, sample.neighbours)
    return printed.noise_for_global(bound, float(epsilon))


def _smooth_as_printed(sample: Sample, epsilon: str) -> float:
    alpha, beta = gaussian_pace(float(epsilon), float(DELTA))
    return printed.smooth_as_printed(sample.values, sample.radius, sample.neighbours, beta=beta) / alpha


def _smooth_as_defined(sample: Sample, epsilon: str) -> float:
    alpha, beta = gaussian_pace(float(epsilon), float(DELTA))
    return printed.smooth_as_defined(sample.values, sample.radius, sample.neighbours, beta=beta) / alpha


def _japanese(sample: Sample, epsilon: str) -> float:
    alpha, beta = gaussian_pace(float(epsilon), float(DELTA))
    return printed.japanese(sample.values, sample.radius, sample.neighbours, beta=beta) / alpha


def _smooth_gaussian(sample: Sample, epsilon: str) -> float:
    alpha, beta = gaussian_pace(float(epsilon), float(DELTA))
    return smooth_bound(sample.values, sample.radius, sample.neighbours, beta=beta) / alpha


def _smooth_laplace(sample: Sample, epsilon: str) -> float:
    alpha, beta = laplace_pace(float(epsilon), float(DELTA))
    return math.sqrt(2) * smooth_bound(sample.values, sample.radius, sample.neighbours, beta=beta) / alpha


def _global_gaussian(sample: Sample, epsilon: str) -> float:
    return Additive("gaussian", gaussian_scale(true_bound(sample), Fraction(epsilon), DELTA), Fraction(1)).deviation()


def _global_laplace(sample: Sample, epsilon: str) -> float:
    return calibrate(true_bound(sample), Loss(epsilon), step=Fraction(1)).deviation()


def _extension(sample: Sample, epsilon: str) -> float:
    query = OneSidedCount(neighbours=sample.neighbours, radius=sample.radius, loss=Loss(epsilon))
    return query.noise(sample.n, sample.dimension).deviation()


LOWER: Final = Method(
    key="global_lower",
    label="paper: Gaussian by the lower bound 2dk+1",
    guarantee=INVALID,
    deviation=_lower,
    why="its noise is scaled by a lower bound on how far one record moves the count, which can move further. In small "
    "tables the generous constant √(2 ln(2/δ)) still happens to leave enough noise; 1,201 records in 32 columns "
    "can all be flipped by one, where 2dk+1 is 193",
)
PRINTED: Final = Method(
    key="smooth_printed",
    label="paper: smooth Gaussian as printed",
    guarantee=NOT_PRIVATE,
    deviation=_smooth_as_printed,
    why="Algorithm 1 skips the last record, and Algorithm 2 keeps bounds without a cap but stops by bounds that are at "
    "most N: at ε=0.7 two neighbouring tables of 8 records need δ=0.127, where 0.01 is claimed",
)
JAPANESE: Final = Method(
    key="smooth_japanese",
    label="paper: smooth Gaussian by equations 17 to 25",
    guarantee=NOT_PRIVATE,
    deviation=_japanese,
    why="one record can raise the bound by more than e^β: at ε=0.7 two neighbouring tables of 42 records in the plane "
    "(k=20) need δ=0.152, where 0.01 is claimed. Nor is it a bound: the step from (21) to (22) looks for a new record "
    "around records only (2 on {0, 2, 4, 6} with k=1, r=1, where one record moves the count by 3, as Theorem 4 rightly "
    "says)",
)
JAPANESE_LOWER: Final = Method(
    key="global_japanese",
    label="paper: Gaussian by the lower bound min(N, 2d(k-1)+1)",
    guarantee=INVALID,
    deviation=_japanese_lower,
    why="its noise is scaled by a lower bound on how far one record moves the count, which is safe only where it "
    "reaches N",
)
DEFINED: Final = Method(
    key="smooth_defined",
    label="smooth Gaussian as defined",
    guarantee="(ε, δ)-DP",
    deviation=_smooth_as_defined,
)
SMOOTH_GAUSSIAN: Final = Method(
    key="smooth_gaussian", label="smooth Gaussian, capped", guarantee="(ε, δ)-DP", deviation=_smooth_gaussian
)
SMOOTH_LAPLACE: Final = Method(
    key="smooth_laplace", label="smooth Laplace, capped", guarantee="(ε, δ)-DP", deviation=_smooth_laplace
)
GLOBAL_GAUSSIAN: Final = Method(
    key="global_gaussian", label="Gaussian by the true bound", guarantee="(ε, δ)-DP", deviation=_global_gaussian
)
GLOBAL_LAPLACE: Final = Method(
    key="global_laplace", label="Laplace by the true bound", guarantee="ε-DP", deviation=_global_laplace
)
OURS: Final = Method(key="extension", label="wallflower's default", guarantee="ε-DP", deviation=_extension)
HONEST: Final = (SMOOTH_GAUSSIAN, SMOOTH_LAPLACE, GLOBAL_GAUSSIAN, GLOBAL_LAPLACE, OURS)
