"""Integrals and sums of positive functions with one peak, on either side of a threshold, in logarithms.

A function is given by its logarithm, which is concave up to one bend at the threshold. The search closes in on the peak
until the interval holds all that counts; Gauss' rule on panels that shrink towards the bend does the rest. All terms
are positive, so the relative error of the whole is that of one term, about 1e-13.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.lazy import Lazy

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

Floats = NDArray[np.float64]
Logarithm = Callable[[Floats], Floats]

_DROP: Final = 45.0  # what lies e^45 below the peak is left out
_ZOOMS: Final = 6
_GRID: Final = np.unique(
    np.concatenate([np.linspace(0, 1, 17), 2.0 ** -np.arange(0, 61, 4), 1 - 0.125 ** np.arange(9)])
)
_SPLITS: Final = np.linspace(0, 1, 7)
_LEVELS: Final = 0.25 ** np.arange(1, 25)  # panels shrink towards the bend
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)


class Tail(Protocol):
    """A law of noise Z with a logarithmically concave tail, by the logarithms of P(Z >= t) and P(Z < t)."""

    def log_above(self, t: Floats) -> Floats: ...

    def log_below(self, t: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Side:
    """The scores of one kind on one side of the threshold, by their distance from it: one row for each threshold."""

    spread: float
    away: int  # -1 short of the threshold, +1 beyond it
    start: Floats  # the score nearest to the threshold
    near: Floats  # its distance
    length: Floats  # how much further the side reaches

    def standard(self, offset: Floats) -> Floats:
        """The score so far beyond the nearest one, in spreads."""
        return np.maximum(self.start + self.away * offset, 0) / self.spread


def log_integral(tail: Tail, side: Side, flagged: bool) -> Floats:
    """log P(q is on that side, and flagged or not), under noise with this tail."""
    chance = tail.log_above if flagged else tail.log_below

    def log_f(offset: Floats) -> Floats:
        x = side.standard(offset)
        return np.asarray(chance(-side.away * (side.near + offset)) - x * x / 2 + math.log(2 / math.pi) / 2)

    edges = _panels(*_support(log_f, side.length), side.near)
    widths = np.diff(edges)[..., None] / 2
    return _log_sum(log_f, edges[:, :-1, None] + widths * (1 + _NODES), widths * _WEIGHTS / side.spread)


def log_stairs(rho: float, epsilon: float, side: Side, flagged: bool) -> Floats:
    """log P(q is on that side, and flagged or not), under the staircase: steps of width rho are counted from the
    threshold; the first and the last may be cut, those between are summed."""
    toll = float(np.logaddexp(0.0, epsilon))
    rare = flagged == (side.away < 0)

    def log_cell(step: Floats, begin: Floats, width: Floats) -> Floats:
        chance = -epsilon * step - toll
        mass = log_slice(side.standard(begin if side.away > 0 else begin + width), width / side.spread)
        return np.asarray(mass + (chance if rare else np.log1p(-np.exp(chance))))

    def log_f(offset: Floats) -> Floats:
        return log_cell(first + 1 + offset, rest + offset * rho, np.full_like(offset, rho))

    begun = np.fmod(side.near, rho)
    first, rest = np.rint((side.near - begun) / rho), rho - begun  # exact however far away the threshold is
    inner = np.maximum(np.floor((side.length - rest) / rho), 0)
    start = np.minimum(rest + inner * rho, side.length)
    last = log_cell(first + 1 + inner, start, side.length - start)
    cut = log_cell(first, np.zeros_like(rest), np.minimum(rest, side.length))
    cut = np.logaddexp(cut, np.where(side.length > rest, last, -np.inf))[:, 0]
    low, high = _support(log_f, inner)
    edges = np.ceil(_panels(np.floor(low), np.minimum(np.ceil(high + 1), inner), first + 1))
    nodes, weights = _sum_rule(np.diff(edges))
    return np.logaddexp(cut, _log_sum(log_f, edges[:, :-1, None] + nodes, weights))


def _support(log_f: Logarithm, length: Floats) -> tuple[Floats, Floats]:
    """An interval of [0, length] that holds all but e^-45 of the total, and little more: it closes in on the peak."""
    low, high = np.zeros_like(length), length
    for _ in range(_ZOOMS):
        grid = low + (high - low) * _GRID
        values = log_f(grid)
        kept = values >= np.max(values, axis=1, keepdims=True) - _DROP
        first = np.maximum(np.argmax(kept, axis=1) - 1, 0)
        last = np.minimum(len(_GRID) - np.argmax(kept[:, ::-1], axis=1), len(_GRID) - 1)
        low, high = np.take_along_axis(grid, first[:, None], 1), np.take_along_axis(grid, last[:, None], 1)
    return low, high


def _panels(low: Floats, high: Floats, near: Floats) -> Floats:
    """Edges of panels in [low, high]: even ones, and ones that shrink fourfold towards the bend, `near` before 0."""
    shrinking = np.clip((near + high) * _LEVELS - near, low, high)
    return np.sort(np.concatenate([low + (high - low) * _SPLITS, shrinking], axis=1), axis=1)


def _log_sum(log_f: Logarithm, nodes: Floats, weights: Floats) -> Floats:
    values = log_f(nodes.reshape(len(nodes), -1))
    peak = np.maximum(np.max(values, axis=1, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):
        total = np.log(np.sum(weights.reshape(len(nodes), -1) * np.exp(values - peak), axis=1))
    return np.asarray(total + peak[:, 0])


def _sum_rule(numbers: Floats) -> tuple[Floats, Floats]:
    """Gauss' rule for the sum over 0 … n-1, for each n: nodes and weights from the recurrence of Chebyshev's discrete
    polynomials. Up to sixteen terms it is the sum itself; a longer smooth sum costs no more."""
    distinct, which = np.unique(numbers, return_inverse=True)
    i = np.arange(1, len(_NODES))
    squared = i**2 * np.maximum(distinct[:, None] ** 2 - i**2, 0) / (4 * (4 * i**2 - 1))
    matrix = np.zeros((len(distinct), len(_NODES), len(_NODES)))
    matrix[:, i, i - 1] = np.sqrt(squared)
    nodes, vectors = np.linalg.eigh(matrix)  # reads the lower triangle
    nodes += (distinct[:, None] - 1) / 2
    weights = distinct[:, None] * vectors[:, 0, :] ** 2
    shape = (*numbers.shape, len(_NODES))
    return nodes[which].reshape(shape), weights[which].reshape(shape)


def log_slice(low: Floats | float, width: Floats | float) -> Floats:
    """log P(low <= q/σ <= low + width); a thin slice by its series, since the difference would cancel."""
    middle, high = np.add(low, np.divide(width, 2)), np.add(low, width)
    with np.errstate(all="ignore"):
        w, m = np.square(width), middle**2
        series = w * (m - 1) / 24 + w**2 * (m**2 - 6 * m + 3) / 1920
        thin = np.log(width) - m / 2 + np.log1p(series) + math.log(2 / math.pi) / 2
        left, right = (_special.erfcx(np.divide(end, math.sqrt(2))) for end in (low, high))
        thick = np.log(left - np.exp(-width * middle) * right) - np.square(low) / 2
    return np.asarray(np.where(width * (1 + middle) < 0.02, thin, thick))
