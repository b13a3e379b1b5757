"""The stated Gaussian, as a watch would measure it: distances of observations that are outliers, and of the others.

Whether an observation is an outlier goes by what it is; what is measured of it is clipped to the bounds and rounded. So
each of the two crowds is drawn as it is, from the Gaussian given which one it is, and goes through the gauge. The
draws are the same for everybody and see no data. How far out an observation is, is spread evenly over its law, and
only the rest is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.lazy import Lazy
from wallflower.queries.watch.gauge import Gauge
from wallflower.synthetic import normals

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEED: Final = 2020
LARGE: Final = 2**16  # observations of a crowd, where they have few entries
_ENTRIES: Final = 2**21  # of all observations of a crowd
_FEWEST: Final = 2**9
_HARDLY: Final = 1e-3  # the share of others below which there is nothing to be told apart


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gaussian:
    """Entries of an observation: their mean, and a matrix whose square is their covariance."""

    mean: Floats
    factor: Floats  # columns by columns; of one dimension: entries are independent

    def spread(self, drawn: Floats) -> Floats:
        """Standard draws, one row an observation, as deviations from the mean."""
        return drawn * self.factor if self.factor.ndim == 1 else drawn @ self.factor.T

    @property
    def covariance(self) -> Floats:
        return np.diag(self.factor**2) if self.factor.ndim == 1 else self.factor @ self.factor.T


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crowd:
    """Distances in steps of the gauge, and what part of the crowd each stands for."""

    distances: Ints
    weights: Floats

    def mean(self, chances: Callable[[Ints], Floats]) -> float:
        """The share of the crowd that is flagged."""
        return float(self.weights @ chances(self.distances))

    def thinned(self, most: int) -> Crowd:
        """Every so many-th, evenly, so that no more are left."""
        every = slice(None, None, len(self.distances) // most | 1)  # an odd stride meets every column alike
        weights = self.weights[every]
        return Crowd(distances=self.distances[every], weights=weights / weights.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Both crowds, and the share of all observations that are outliers under the Gaussian."""

    outliers: Crowd
    others: Crowd
    share: float

    def thinned(self, most: int) -> Population:
        return Population(outliers=self.outliers.thinned(most), others=self.others.thinned(most), share=self.share)


def factor_of(covariance: Floats) -> Floats:
    """A matrix whose square it is; entries may depend on each other wholly."""
    values, vectors = np.linalg.eigh(covariance)
    if not values.min() >= -1e-9 * max(values.max(), 0.0) or not values.max() > 0:
        raise ParameterError("covariance: it has a direction of negative variance. Check it row by row.")
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def population_of_sum(gauge: Gauge, law: Gaussian, weights: Floats, centre: float, truth: float) -> Population:
    """Outliers are those whose weighted sum is `truth` or more from the centre."""
    pull = law.covariance @ weights
    deviation = math.sqrt(max(float(weights @ pull), 0.0))
    if not deviation > 0:
        raise ParameterError("covariance: the sum does not vary at all under it. Check the weights, or state another.")
    off, far = (float(weights @ law.mean) - centre) / deviation, truth / deviation
    _check_truth(far)
    low, high = float(_special.log_ndtr(-far - off)), float(_special.log_ndtr(off - far))
    size = _size(len(weights))
    evenly = (np.arange(size) + 0.5) / size

    def crowd(standard: Floats, seed: int) -> Crowd:
        rest = law.spread(normals((size, len(weights)), seed))
        along = deviation * standard - rest @ weights
        rows = law.mean + rest + np.outer(along, pull / deviation**2)
        return Crowd(distances=gauge.measure(rows), weights=np.full(size, 1 / size))

    return Population(
        outliers=crowd(_tails(low, high, evenly), SEED),
        others=crowd(_between(-far - off, far - off, evenly), SEED + 1),
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
    """Standard scores between two points; on the side where floats tell them apart."""
    if low > 0:
        return -_between(-high, -low, evenly)
    start, end = _special.ndtr(low), _special.ndtr(high)
    return np.asarray(np.clip(_special.ndtri(start + (end - start) * evenly), low, high))


def population_of_length(gauge: Gauge, law: Gaussian, truth: float) -> Population:
    """Outliers are those whose Mahalanobis distance from the mean is `truth` or more: a chi variable."""
    columns = len(law.mean)
    size, half = _size(columns), columns / 2
    _check_truth(truth)
    share = float(_special.gammaincc(half, truth**2 / 2))
    if not share > 1e-290:
        raise _none_so_far()
    evenly = (np.arange(size) + 0.5) / size

    def crowd(squares: Floats, seed: int) -> Crowd:
        drawn = normals((size, columns), seed)
        lengths = np.sqrt(2 * squares) / np.linalg.norm(drawn, axis=1)
        rows = law.mean + law.spread(drawn * lengths[:, None])
        return Crowd(distances=gauge.measure(rows), weights=np.full(size, 1 / size))

    outliers = _special.gammainccinv(half, share * evenly)
    others = _special.gammaincinv(half, (1 - share) * evenly)
    return Population(outliers=crowd(outliers, SEED), others=crowd(others, SEED + 1), share=share)


def population_of_largest(gauge: Gauge, law: Gaussian, truth: float) -> Population:
    """Outliers are those one of whose entries is `truth` deviations or more from its mean.

    One entry, chosen evenly, is drawn beyond and the others given it; an observation with several such entries would be
    drawn so many times as often, and counts for so much less.
    """
    _check_truth(truth)
    columns, covariance = len(law.mean), law.covariance
    deviations = np.sqrt(np.diag(covariance))
    size = _size(columns)
    evenly = (np.arange(size) + 0.5) / size
    beyond = math.log(2) + float(_special.log_ndtr(-truth))
    chosen = np.arange(size) % columns
    rows = np.arange(size)

    far = -_special.ndtri_exp(beyond - math.log(2) + np.log(evenly)) * np.where(rows // columns % 2, 1, -1)
    rest = law.spread(normals((size, columns), SEED))
    along = far - rest[rows, chosen] / deviations[chosen]
    drawn = rest + along[:, None] * covariance[chosen] / deviations[chosen, None]
    counts = np.maximum(np.sum(np.abs(drawn) >= truth * deviations, axis=1), 1)
    share = min(columns * math.exp(beyond) * float(np.mean(1 / counts)), 1.0)
    outliers = Crowd(distances=gauge.measure(law.mean + drawn), weights=1 / counts / np.sum(1 / counts))

    usual = law.spread(normals((size, columns), SEED + 1))
    usual = usual[np.max(np.abs(usual) / deviations, axis=1) < truth]
    if len(usual) < _HARDLY * size:
        raise _none_so_near()
    others = Crowd(distances=gauge.measure(law.mean + usual), weights=np.full(len(usual), 1 / len(usual)))
    return Population(outliers=outliers, others=others, share=share)


def _check_truth(deviations: float) -> None:
    if not deviations > 1e-9:
        raise _none_so_near()
    if not deviations < 1e3:
        raise _none_so_far()


def _none_so_near() -> ParameterError:
    return ParameterError(
        "outlier_from: nearly every observation of the stated Gaussian is as far from its centre as this. "
        "Choose it, or the threshold, further out."
    )


def _none_so_far() -> ParameterError:
    return ParameterError(
        "outlier_from: no observation of the stated Gaussian is as far from its centre as this. "
        "Choose it, or the threshold, nearer, or check the variance."
    )


def _size(columns: int) -> int:
    return max(_FEWEST, min(LARGE, _ENTRIES // columns))
