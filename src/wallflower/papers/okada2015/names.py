"""The third query that [Oka15] announces and never defines: the outliers themselves, as far as a promise allows.

Nothing useful is possible under the definition of its other queries: (I) of `who`. Here a list of `who` is measured on
the paper's tables, beside the largest share of right names that any mechanism with differential privacy can reach.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from statistics import mean, stdev
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points
from wallflower.noise import system_noise
from wallflower.papers.data.tables import Sample
from wallflower.papers.page import Section, Sheet
from wallflower.privacy import Loss
from wallflower.queries.count.exact import degrees
from wallflower.queries.detector import Detector, Model
from wallflower.queries.who import Who
from wallflower.queries.who.who import WhoView

EPSILONS: Final = ("0.5", "1", "2")
FIT_SHARE: Final = Fraction(1, 4)
LISTS_PER_FIT: Final = 25
NAMES_PER_LIST: Final = 5
FITS, FEW_FITS = 10, 2

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The share of the wanted names that are right, over fits, and its standard error."""

    value: float
    error: float


def top_outliers(samples: Iterable[Sample], quick: bool) -> Section:
    """The share of right names on the paper's tables."""
    rows: list[tuple[str | float, ...]] = []
    for sample in samples:
        near = degrees(sample.values, sample.radius, cap=sample.neighbours)
        mask: Mask = near < sample.neighbours
        shares = [
            measure_names(sample.values, mask, NAMES_PER_LIST, Fraction(epsilon), FEW_FITS if quick else FITS).value
            for epsilon in EPSILONS
        ]
        rows.append((sample.name, sample.n, int(mask.sum()), *shares, bound_names(float(mask.mean()))))
    heading = ("data", "records", "outliers", *(f"ε = {epsilon}" for epsilon in EPSILONS))
    return Section(
        name="third-query",
        title=f"The third query: share of {NAMES_PER_LIST} names that are right",
        caption="Announced in 1 and 6, and never defined. A detector is fitted with a quarter of ε and `who` names "
        "records with the rest: it promises ε to everybody who is not named, and nothing to those who are. The last "
        "column is the most that any mechanism reaches with differential privacy for everybody at ε = 1. Right is a "
        "record with too few neighbours, by the definition of the paper.",
        sheet=Sheet(heading=(*heading, "plain DP at ε = 1, at most"), rows=tuple(rows)),
    )


def measure_names(values: NDArray[np.float64], outliers: Mask, most: int, epsilon: Fraction, fits: int) -> Precision:
    """The share of the wanted names that are right, everything inside of ε; a missing name counts as wrong."""
    query = Who(detector=1, most=most, loss=Loss(epsilon * (1 - FIT_SHARE)))
    points, shares = Points.from_array(values), []
    for _ in range(fits):
        view = WhoView(table=points, identifier=None, model=fit_model(points, Loss(epsilon * FIT_SHARE)))
        lists = [query.answer(view, system_noise()) for _ in range(LISTS_PER_FIT)]
        shares.append(float(mean(_right(rows, outliers) / most for rows in lists)))
    return Precision(value=mean(shares), error=stdev(shares) / math.sqrt(fits))


def fit_model(points: Points, loss: Loss) -> Model:
    """A detector of these records, without a threshold."""
    return Model.from_json(Detector(loss=loss).answer(points, system_noise()))


def bound_names(share: float, epsilon: float = 1.0) -> float:
    """The largest share of right names under differential privacy for everybody, where so large a share are outliers.

    >>> round(bound_names(0.01), 3)
    0.027
    """
    return math.exp(epsilon) * share / (1 - share + math.exp(epsilon) * share)


def _right(rows: list[dict[str, Any]], outliers: Mask) -> int:
    return int(sum(outliers[row["record"]] for row in rows))
