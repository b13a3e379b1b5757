"""What a device does to a reading before it leaves: clip it to a public box, and add noise on a public grid.

A reading is scaled by public constants, clipped, and put on a grid of `step`; from there on everything is whole
numbers. Noise comes in two shapes. A perturbed reading is e^(ε·d)-indistinguishable for readings at distance d:

`planar`    d is the Euclidean distance over the diameter of what is normal     (proof.md, label (P))
`columns`   d is the sum over columns of ε_j times the distance over the range  (proof.md, label (M)), as in [Boe17]

So two normal readings are as alike as ε says; extremes, which the box bounds, less so. Noise is drawn once for a
reading: what a device sends again must be the same bytes, since a second draw costs as much again (label (R)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Exact, Kind, Loss, Neighbours, exact
from wallflower.sensors import lattice

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LIMIT: Final = 2**26  # perturbed readings stay within this many steps of 0: a cut, after the noise
MOST_COLUMNS: Final = 64  # so that squared distances stay below 2^60


def clip(
    readings: ArrayLike,
    *,
    mean: Sequence[float],
    deviation: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    step: Exact,
) -> Ints:
    """Readings in whole steps of the grid: scaled to (reading - mean)/deviation, rounded, and clipped to the box.

    What is no number counts as the middle of the box, so that nothing is raised because of what was measured. (B)

    >>> clip([[20.0], [99.0], [np.nan]], mean=[20.0], deviation=[2.0], low=[-3.0], high=[3.0], step="1/8").ravel()
    array([ 0, 24,  0])
    """
    size = float(_positive(step, "step"))
    count = len(mean)
    if not 1 <= count <= MOST_COLUMNS or not count == len(deviation) == len(low) == len(high):
        raise ParameterError(f"mean, deviation, low, high: pass one of each for every column, 1 to {MOST_COLUMNS}.")
    values = np.asarray(readings, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != count:
        raise DataError(f"readings have {count} columns here. Pass one row for each, with as many entries.")
    first, last = np.ceil(np.array(low) / size), np.floor(np.array(high) / size)
    if not (np.all(first <= last) and np.all(np.abs([first, last]) <= LIMIT) and np.all(np.array(deviation) > 0)):
        raise ParameterError(
            "low, high, deviation: low must be below high, within 2**26 steps, and deviations above 0."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.floor((values - mean) / deviation / size + 0.5)
    middle = np.floor((first + last) / 2)
    return np.asarray(np.clip(np.where(np.isnan(steps), middle, steps), first, last).astype(np.int64))


def planar(points: ArrayLike, *, diameter: Exact, epsilon: Exact, step: Exact, noise: Noise) -> Ints:
    """Points with noise that is alike in all directions, P(z) proportional to exp(-ε·|z|·step/diameter).  (P)

    `diameter` is how far apart, in scaled units, two normal readings may be: for ranges of all columns the root of the
    sum of their squares, less if what is normal is known to be round.
    """
    places = _points(points)
    scale = noise_scale(diameter, epsilon, step)
    return _cut(places + lattice.planar(scale, places.shape[1], len(places), noise))


def columns(
    points: ArrayLike, *, ranges: Sequence[Exact], epsilons: Sequence[Exact], step: Exact, noise: Noise
) -> Ints:
    """Points with independent noise in every column, P(z) proportional to exp(-Σ_j ε_j·|z_j|·step/range_j).  (M)"""
    places = _points(points)
    if not places.shape[1] == len(ranges) == len(epsilons):
        raise ParameterError("ranges, epsilons: pass one of each for every column of the points.")
    drawn = [
        lattice.laplace(noise_scale(width, share, step), len(places), noise)
        for width, share in zip(ranges, epsilons, strict=True)
    ]
    return _cut(places + np.stack(drawn, axis=1))


def noise_scale(distance: Exact, epsilon: Exact, step: Exact) -> Fraction:
    """The scale of noise, in steps, that makes points at this distance e^ε-alike.  (P) (M)

    >>> noise_scale("10", "1/2", "1/8")
    Fraction(160, 1)
    """
    return _positive(distance, "distance") / (_positive(epsilon, "epsilon") * _positive(step, "step"))


def distances(points: ArrayLike, centre: Sequence[int]) -> Ints:
    """How far each point is from the centre, in whole steps, rounded down: the same number wherever computed.  (D)

    >>> distances([[3, 4], [-1, 1]], [0, 0])
    array([5, 1])
    """
    places, middle = _points(points), np.asarray(centre)
    if middle.shape != (places.shape[1],) or not np.issubdtype(middle.dtype, np.integer):
        raise ParameterError("centre: not one whole number for each column; pass a point of the grid.")
    if (np.abs(middle) > LIMIT).any():
        raise ParameterError("centre: further than 2**26 steps from 0; use a coarser grid.")
    squares = ((places - middle) ** 2).sum(axis=1)
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squares
    return cast(Ints, roots + ((roots + 1) ** 2 <= squares))


def d_diff(points: ArrayLike, perturbed: ArrayLike, centre: Sequence[int]) -> Ints:
    """By how far noise moved each distance. It must not reach the analyst, and has no finite ε: label (L).

    >>> d_diff([[3, 4]], [[6, 8]], [0, 0])
    array([5])
    """
    return np.subtract(distances(perturbed, centre), distances(points, centre))


def scores(points: ArrayLike, centre: Sequence[int], resolution: int, bits: int) -> Ints:
    """Distances in units of `resolution` steps, cut to 0 … 2^(bits-1) - 1: what `comparison.deal` takes.

    >>> scores([[3, 4], [300, 400]], [0, 0], 2, 6)
    array([ 2, 31])
    """
    if isinstance(resolution, bool) or not isinstance(resolution, int) or resolution < 1:
        raise ParameterError(f"resolution: {resolution!r} is not a whole number of steps; pass 1 or more.")
    return np.asarray(np.minimum(distances(points, centre) // resolution, 2 ** (bits - 1) - 1))


def columns_losses(ranges: Sequence[Exact], epsilons: Sequence[Exact], widths: Sequence[Exact]) -> tuple[Loss, Loss]:
    """What one reading costs under `columns`: between two normal ones, and between any two in a box of these widths.

    >>> columns_losses(["10", "10"], ["0.1", "0.1"], ["80", "80"])
    (Loss(ε=1/5), Loss(ε=8/5))
    """
    shares = [_positive(share, "epsilons") for share in epsilons]
    times = [exact(width, "widths") / _positive(usual, "ranges") for usual, width in zip(ranges, widths, strict=True)]
    return _loss(sum(shares, Fraction())), _loss(sum((s * t for s, t in zip(shares, times, strict=True)), Fraction()))


def planar_losses(diameter: Exact, epsilon: Exact, widths: Sequence[Exact]) -> tuple[Loss, Loss]:
    """What one reading costs under `planar`: between two normal ones, and between any two in a box of these widths.

    >>> planar_losses("10", "0.2", ["60", "80"])
    (Loss(ε=1/5), Loss(ε=2))
    """
    square = sum((exact(width, "widths") ** 2 for width in widths), Fraction())
    across = Fraction(math.isqrt(math.ceil(square * 10**12) - 1) + 1, 10**6) if square else Fraction()  # rounded up
    share = _positive(epsilon, "epsilon")
    return _loss(share), _loss(share * across / _positive(diameter, "diameter"))


def _loss(epsilon: Fraction) -> Loss:
    return Loss(epsilon, kind=Kind.METRIC, neighbours=Neighbours.READING)


def _positive(value: Exact, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise ParameterError(f"{name}: 0 gives no noise or no grid; pass more than 0.")
    return number


def _points(points: ArrayLike) -> Ints:
    found: NDArray[Any] = np.asarray(points)
    if found.ndim != 2 or not 1 <= found.shape[1] <= MOST_COLUMNS:
        raise DataError(f"points: not rows of 1 to {MOST_COLUMNS} columns; pass one row for each reading.")
    if not np.issubdtype(found.dtype, np.integer) or (found.size and np.abs(found).max() > LIMIT):
        raise DataError("points: not whole numbers within 2**26 steps of 0; clip them to the stream's grid.")
    return cast(Ints, found.astype(np.int64))


def _cut(points: Ints) -> Ints:
    return np.clip(points, -LIMIT, LIMIT)
