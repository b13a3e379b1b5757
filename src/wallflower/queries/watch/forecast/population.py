"""The stated Gaussian, as a watch would measure it: distances of observations that are outliers, and of the others.

Whether an observation is an outlier goes by what it is; what is measured of it is clipped to the bounds and rounded. So
each of the two crowds is made as it is, from the Gaussian given which one it is, and goes through the gauge. Nothing is
drawn by chance: how far out an observation is, is spread evenly over its law, and everything else follows a lattice,
which is the same for everybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.queries.watch.gauge import Gauge

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LATTICES: Final = ((65521, 17364), (16381, 4026), (4093, 1516), (1021, 76), (127, 29))  # sizes, Korobov's generators
ENTRIES: Final = 2**21  # of all observations of a crowd; only the smallest lattice may have more
_TURN: Final = (math.sqrt(5) - 1) / 2  # lattices are shifted, each coordinate by another part of a turn
_RIM: Final = 1e-12
_HARDLY: Final = 1e-3  # the share of others below which there is nothing to be told apart


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
class Crowd:
    """Distances in steps of the gauge, and what part of the crowd each stands for."""

    distances: Ints
    weights: Floats

    def mean(self, chances: Callable[[Ints], Floats]) -> float:
        """The share of the crowd that is flagged."""
        return float(self.weights @ chances(self.distances))

    def thin(self, most: int) -> Crowd:
        """Every so many-th, evenly, so that about so many are left."""
        every = slice(None, None, len(self.distances) // most | 1)  # an odd stride meets every column alike
        weights = self.weights[every]
        return Crowd(distances=self.distances[every], weights=weights / weights.sum())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Population:
    """Both crowds, and the share of all observations that are outliers under the Gaussian."""

    outliers: Crowd
    others: Crowd
    share: float

    def thin(self, most: int) -> Population:
        return Population(outliers=self.outliers.thin(most), others=self.others.thin(most), share=self.share)


def factor_of(covariance: Floats) -> Floats:
    """A matrix whose square it is, the widest direction first; entries may depend on each other wholly."""
    values, vectors = (part[..., ::-1] for part in np.linalg.eigh(covariance))
    if not values.min() >= -1e-9 * max(values.max(), 0.0) or not values.max() > 0:
        raise ParameterError("covariance: it has a direction of negative variance. Check it row by row.")
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def population_of_sum(gauge: Gauge, law: Gaussian, weights: Floats, centre: float, truth: float) -> Population:
    """Outliers are those whose weighted sum is `truth` or more from the centre."""
    pull = law.pull(weights)
    deviation = math.sqrt(max(float(weights @ pull), 0.0))
    if not deviation > 0:
        raise ParameterError("covariance: the sum does not vary at all under it. Check the weights, or state another.")
    off, far = (float(weights @ law.mean) - centre) / deviation, truth / deviation
    _check_truth(far)
    low, high = float(_special.log_ndtr(-far - off)), float(_special.log_ndtr(off - far))
    evenly, standard = _lattice(len(weights))
    rest = law.spread(standard)
    across = rest - np.outer(rest @ weights, pull / deviation**2)

    def crowd(along: Floats) -> Crowd:
        return _alike(gauge.measure(law.mean + across + np.outer(along, pull / deviation)))

    return Population(
        outliers=crowd(_tails(low, high, evenly)),
        others=crowd(_between(-far - off, far - off, evenly)),
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
    half = columns / 2
    _check_truth(truth)
    share = float(_special.gammaincc(half, truth**2 / 2))
    if not share > 1e-290:
        raise _none_so_far()
    evenly, standard = _lattice(columns)
    across = law.spread(standard / np.linalg.norm(standard, axis=1, keepdims=True))

    def crowd(squares: Floats) -> Crowd:
        return _alike(gauge.measure(law.mean + across * np.sqrt(2 * squares)[:, None]))

    return Population(
        outliers=crowd(_special.gammainccinv(half, share * evenly)),
        others=crowd(_special.gammaincinv(half, (1 - share) * evenly)),
        share=share,
    )


def population_of_largest(gauge: Gauge, law: Gaussian, truth: float) -> Population:
    """Outliers are those one of whose entries is `truth` deviations or more from its mean.

    One entry, chosen evenly, is drawn beyond and the others given it; an observation with several such entries would be
    drawn so many times as often, and counts for so much less.
    """
    _check_truth(truth)
    columns, covariance = len(law.mean), law.covariance
    deviations = np.sqrt(np.diag(covariance))
    evenly, standard = _lattice(columns)
    rows = np.arange(len(evenly))
    rest, chosen, side = law.spread(standard), rows % columns, np.where(rows // columns % 2, 1, -1)
    beyond = float(_special.log_ndtr(-truth))
    along = side * -_special.ndtri_exp(beyond + np.log(evenly)) - rest[rows, chosen] / deviations[chosen]
    far = rest + along[:, None] * covariance[chosen] / deviations[chosen, None]
    parts = 1 / np.maximum(np.sum(np.abs(far) >= truth * deviations, axis=1), 1)
    usual = rest[np.max(np.abs(rest) / deviations, axis=1) < truth]
    if len(usual) < _HARDLY * len(rows):
        raise _none_so_near()
    return Population(
        outliers=Crowd(distances=gauge.measure(law.mean + far), weights=parts / np.sum(parts)),
        others=_alike(gauge.measure(law.mean + usual)),
        share=min(2 * columns * math.exp(beyond) * float(np.mean(parts)), 1.0),
    )


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


def _alike(distances: Ints) -> Crowd:
    return Crowd(distances=distances, weights=np.full(len(distances), 1 / len(distances)))


def _lattice(columns: int) -> tuple[Floats, Floats]:
    """Points from 0 to 1, evenly and in order, and beside each a standard normal for every column."""
    size, generator = next((known for known in LATTICES if known[0] * columns <= ENTRIES), LATTICES[-1])
    place, steps = np.arange(size), [pow(generator, power, size) for power in range(1, columns + 1)]
    turns = np.outer(place, steps) % size / size + _TURN * np.arange(1, columns + 1)
    folded = np.abs(2 * (turns % 1) - 1)
    return (place + 0.5) / size, np.asarray(_special.ndtri(np.clip(folded, _RIM, 1 - _RIM)))
