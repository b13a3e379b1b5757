"""The stated Gaussian, as a watch would measure it: distances of outliers, and of the other observations.

Whether an observation is an outlier depends on its true entries; its distance is measured after clipping and rounding.
So both groups are sampled from the Gaussian conditioned on being an outlier or not, and then measured. The samples are
not random: how far out an observation lies is spread evenly over its law, and everything else follows a fixed lattice,
so that a plan is the same every time.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.heavy import scipy_special as _special

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Measure = Callable[[Floats], Ints]  # distances of observations, in grid steps

LATTICES: Final = ((65521, 17364), (16381, 4026), (4093, 1516), (1021, 76), (127, 29))  # sizes, Korobov's generators
MAX_ENTRIES: Final = 2**21  # per group; only the smallest lattice may have more
_GOLDEN_SHIFT: Final = (math.sqrt(5) - 1) / 2  # lattices are shifted, each coordinate by another part of a turn
_EDGE: Final = 1e-12
_MIN_SHARE_OF_OTHERS: Final = 1e-3  # below it nearly every observation is an outlier


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gaussian:
    """Entries of an observation: their mean, and a matrix whose square is their covariance."""

    mean: Floats
    factor: Floats  # columns by columns; of one dimension: entries are independent

    def spread(self, drawn: Floats) -> Floats:
        """Standard draws, one row an observation, as deviations from the mean."""
        return drawn * self.factor if self.factor.ndim == 1 else drawn @ self.factor.T

    def pull(self, weights: Floats) -> Floats:
        """How each entry varies with a weighted sum of all."""
        if self.factor.ndim == 1:
            return np.asarray(self.factor**2 * weights)
        return np.asarray(self.factor @ (weights @ self.factor))

    @property
    def covariance(self) -> Floats:
        return np.diag(self.factor**2) if self.factor.ndim == 1 else self.factor @ self.factor.T


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Distances in grid steps, and the share of the group that each represents."""

    distances: Ints
    weights: Floats

    def mean(self, chances: Callable[[Ints], Floats]) -> float:
        """Return the share of the group that is flagged."""
        return float(self.weights @ chances(self.distances))

    def thin(self, size: int) -> Group:
        """Keep about `size` members, evenly spaced."""
        every = slice(None, None, len(self.distances) // size | 1)  # an odd stride meets every column alike
        weights = self.weights[every]
        return Group(distances=self.distances[every], weights=weights / weights.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Both groups, and the share of observations that are outliers under the Gaussian."""

    outliers: Group
    others: Group
    share: float

    def thin(self, size: int) -> Population:
        return Population(outliers=self.outliers.thin(size), others=self.others.thin(size), share=self.share)


def factor_covariance(covariance: Floats) -> Floats:
    """Return a matrix whose square is the covariance, the widest direction first; it may be singular."""
    values, vectors = (part[..., ::-1] for part in np.linalg.eigh(covariance))
    if not values.min() >= -1e-9 * max(values.max(), 0.0) or not values.max() > 0:
        raise ParameterError("covariance: it has a direction of negative variance. Check it row by row.")
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def population_of_sum(
    measure: Measure, law: Gaussian, weights: Floats, centre: float, outlier_from: float
) -> Population:
    """Outliers are those whose weighted sum is `outlier_from` or more from the centre."""
    pull = law.pull(weights)
    deviation = math.sqrt(max(float(weights @ pull), 0.0))
    if not deviation > 0:
        raise ParameterError("covariance: the sum does not vary at all under it. Check the weights, or state another.")
    off, far = (float(weights @ law.mean) - centre) / deviation, outlier_from / deviation
    _check_outlier_from(far)
    low, high = float(_special.log_ndtr(-far - off)), float(_special.log_ndtr(off - far))
    evenly, standard = _lattice(len(weights))
    rest = law.spread(standard)
    across = rest - np.outer(rest @ weights, pull / deviation**2)

    def group(along: Floats) -> Group:
        return _even_group(measure(law.mean + across + np.outer(along, pull / deviation)))

    return Population(
        outliers=group(_tails(low, high, evenly)),
        others=group(_between(-far - off, far - off, evenly)),
        share=math.exp(low) + math.exp(high),
    )


def _tails(low: float, high: float, evenly: Floats) -> Floats:
    """Standard scores below a low point and above a high one, by the logarithms of what lies there."""
    part = math.exp(low - float(np.logaddexp(low, high)))
    with np.errstate(divide="ignore"):
        below = _special.ndtri_exp(low + np.log(np.minimum(evenly / part, 1.0))) if part > 0 else evenly
        above = -_special.ndtri_exp(high + np.log(np.minimum((1 - evenly) / (1 - part), 1.0))) if part < 1 else evenly
    return np.asarray(np.where(evenly < part, below, above))


def _between(low: float, high: float, evenly: Floats) -> Floats:
    """Standard scores between two points; on the side where floats can separate them."""
    if low > 0:
        return -_between(-high, -low, evenly)
    start, end = _special.ndtr(low), _special.ndtr(high)
    return np.asarray(np.clip(_special.ndtri(start + (end - start) * evenly), low, high))


def population_of_length(measure: Measure, law: Gaussian, outlier_from: float) -> Population:
    """Outliers are those whose Mahalanobis distance from the mean is `outlier_from` or more: a chi variable."""
    columns = len(law.mean)
    half = columns / 2
    _check_outlier_from(outlier_from)
    share = float(_special.gammaincc(half, outlier_from**2 / 2))
    if not share > 1e-290:
        raise _outliers_too_far()
    evenly, standard = _lattice(columns)
    across = law.spread(standard / np.linalg.norm(standard, axis=1, keepdims=True))

    def group(squares: Floats) -> Group:
        return _even_group(measure(law.mean + across * np.sqrt(2 * squares)[:, None]))

    return Population(
        outliers=group(_special.gammainccinv(half, share * evenly)),
        others=group(_special.gammaincinv(half, (1 - share) * evenly)),
        share=share,
    )


def population_of_largest(measure: Measure, law: Gaussian, outlier_from: float) -> Population:
    """Outliers are those one of whose entries is `outlier_from` deviations or more from its mean.

    One entry, chosen evenly, is sampled beyond its limit and the others given it. An observation with k such entries
    would be sampled k times as often, so it gets weight 1/k.
    """
    _check_outlier_from(outlier_from)
    columns, covariance = len(law.mean), law.covariance
    deviations = np.sqrt(np.diag(covariance))
    evenly, standard = _lattice(columns)
    rows = np.arange(len(evenly))
    rest, chosen, side = law.spread(standard), rows % columns, np.where(rows // columns % 2, 1, -1)
    beyond = float(_special.log_ndtr(-outlier_from))
    along = side * -_special.ndtri_exp(beyond + np.log(evenly)) - rest[rows, chosen] / deviations[chosen]
    far = rest + along[:, None] * covariance[chosen] / deviations[chosen, None]
    parts = 1 / np.maximum(np.sum(np.abs(far) >= outlier_from * deviations, axis=1), 1)
    normal = rest[np.max(np.abs(rest) / deviations, axis=1) < outlier_from]
    if len(normal) < _MIN_SHARE_OF_OTHERS * len(rows):
        raise _outliers_too_near()
    return Population(
        outliers=Group(distances=measure(law.mean + far), weights=parts / np.sum(parts)),
        others=_even_group(measure(law.mean + normal)),
        share=min(2 * columns * math.exp(beyond) * float(np.mean(parts)), 1.0),
    )


def _check_outlier_from(deviations: float) -> None:
    if not deviations > 1e-9:
        raise _outliers_too_near()
    if not deviations < 1e3:
        raise _outliers_too_far()


def _outliers_too_near() -> ParameterError:
    return ParameterError(
        "outlier_from: nearly every observation of the stated Gaussian is as far from its centre as this. "
        "Choose it, or the threshold, further out."
    )


def _outliers_too_far() -> ParameterError:
    return ParameterError(
        "outlier_from: no observation of the stated Gaussian is as far from its centre as this. "
        "Choose it, or the threshold, nearer, or check the variance."
    )


def _even_group(distances: Ints) -> Group:
    return Group(distances=distances, weights=np.full(len(distances), 1 / len(distances)))


def _lattice(columns: int) -> tuple[Floats, Floats]:
    """Points from 0 to 1, evenly and in order, and beside each a standard normal for every column."""
    size, generator = next((known for known in LATTICES if known[0] * columns <= MAX_ENTRIES), LATTICES[-1])
    index, steps = np.arange(size), [pow(generator, power, size) for power in range(1, columns + 1)]
    turns = np.outer(index, steps) % size / size + _GOLDEN_SHIFT * np.arange(1, columns + 1)
    folded = np.abs(2 * (turns % 1) - 1)
    return (index + 0.5) / size, np.asarray(_special.ndtri(np.clip(folded, _EDGE, 1 - _EDGE)))
