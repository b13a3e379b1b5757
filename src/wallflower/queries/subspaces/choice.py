"""How the best subspaces are chosen: by which mechanism, at what loss each, and how often that will be right.

Everything here follows from public facts. Proved in proof.md, labels (T) (B) (E) (C) (R).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.mechanisms import bounded_range_pays, epsilon_each, exponential, permute_and_flip
from wallflower.neighbours.noisy_count import count_noise
from wallflower.privacy import Kind, Loss, zcdp_of_epsilon

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHOOSERS: Final[Mapping[str, Callable[..., int]]] = {
    "permute-and-flip": permute_and_flip,
    "exponential": exponential,
}
FINE: Final = 1e-3  # a lead that is needed is found to a thousandth
_NEVER: Final = 1e-18
_DOWN: Final = Fraction(10**9 - 1, 10**9)  # roots and logarithms of floats are rounded down by more than their error


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """One choice after another, each at `each`."""

    mechanism: str
    each: Fraction


def draws(mechanism: str, loss: Loss, top: int) -> Draws:
    """What each of `top` choices may spend, so that all of them spend `loss`.  (T) (B)

    >>> draws("permute-and-flip", Loss("1.6"), 2)
    Draws(mechanism='permute-and-flip', each=Fraction(4, 5))
    """
    return Draws(mechanism=mechanism, each=_EACH[loss.kind](mechanism, loss, top))


def rho_of(made: Draws, top: int) -> Fraction:
    """What `top` such choices are together as a zero-concentrated loss.  (R)

    >>> rho_of(draws("exponential", Loss("1.6"), 2), 2)
    Fraction(4, 25)
    """
    return top * made.each**2 / _RANGES[made.mechanism]


_RANGES: Final[Mapping[str, int]] = {"permute-and-flip": 2, "exponential": 8}  # what a squared loss is divided by


def _each_pure(mechanism: str, loss: Loss, top: int) -> Fraction:
    return loss.epsilon / top


def _each_approximate(mechanism: str, loss: Loss, top: int) -> Fraction:
    if mechanism == "exponential" and bounded_range_pays(loss.epsilon, loss.delta, top):
        return epsilon_each(loss.epsilon, loss.delta, top)
    return loss.epsilon / top


def _each_concentrated(mechanism: str, loss: Loss, top: int) -> Fraction:
    return _root(_RANGES[mechanism] * loss.rho / top)


_EACH: Final[Mapping[Kind, Callable[[str, Loss, int], Fraction]]] = {
    Kind.PURE: _each_pure,
    Kind.APPROXIMATE: _each_approximate,
    Kind.ZCDP: _each_concentrated,
}


def parts(loss: Loss, share: Fraction) -> tuple[Loss, Loss]:
    """The loss of the choice and that of the counts: together they are `loss`.  (C)

    >>> parts(Loss("1", delta="1e-6"), Fraction(1, 4))
    (Loss(ε=1/4, δ=1/2000000), Loss(ε=3/4, δ=1/2000000))
    """
    return tuple(  # type: ignore[return-value]
        Loss(loss.amount * part, delta=loss.delta / 2, kind=loss.kind, neighbours=loss.neighbours)
        for part in (share, 1 - share)
    )


def count_loss(loss: Loss, top: int, slack: int) -> Loss:
    """What each of `top` counts may spend: of the ways that add up to `loss`, the one with the least noise.  (C)

    >>> count_loss(Loss("1"), 4, slack=3)
    Loss(ε=1/4)
    """
    if loss.kind is Kind.ZCDP:
        return Loss.zcdp(loss.rho / top, neighbours=loss.neighbours)
    plain = Loss(loss.epsilon / top, neighbours=loss.neighbours)
    if loss.kind is Kind.PURE:
        return plain
    rho = _down(zcdp_of_epsilon(float(loss.epsilon), float(loss.delta))) / top
    ways = plain, Loss.zcdp(rho, neighbours=loss.neighbours)
    return min(ways, key=lambda way: count_noise(slack, way).deviation())


@lru_cache(maxsize=256)
def precision(made: Draws, *, candidates: int, top: int, lead: float) -> float:
    """The least expected share of truly best ones among the released, when the `top` best all stand out from the
    others by `lead` (in sensitivities) or more; reached where the best are alike, and the others too.  (E)

    >>> made = draws("permute-and-flip", Loss("1000"), 2)
    >>> [round(precision(made, candidates=10, top=2, lead=lead), 3) for lead in (5.0, 0.0)]
    [1.0, 0.2]
    """
    tail = math.exp(-float(made.each) * lead / 2)
    right = _RIGHT[made.mechanism]
    left, chances = np.array([top]), np.ones(1)  # how many of the best are left, and how likely that is
    for drawn in range(top):
        good = np.where(left > 0, right(np.maximum(left, 1), candidates - drawn - left, tail), 0.0)
        after = np.append(chances * (1 - good), 0.0)
        after[1:] += chances * good
        likely = np.flatnonzero(after > _NEVER)
        kept = slice(likely[0], likely[-1] + 1)  # neighbours stay neighbours
        left, chances = np.append(left, left[-1] - 1)[kept], after[kept]
    return float((top - left) @ chances) / top


def least_lead(made: Draws, *, candidates: int, top: int, right: float) -> float:
    """The smallest lead (in sensitivities), but for a thousandth, from which on `precision` is at least `right`.  (E)

    >>> round(least_lead(draws("exponential", Loss("2"), 1), candidates=2, top=1, right=0.9), 1)
    2.2
    """
    low, high = 0.0, 1.0
    while precision(made, candidates=candidates, top=top, lead=high) < right:
        low, high = high, 2 * high
    while high - low > FINE * high:
        middle = (low + high) / 2
        enough = precision(made, candidates=candidates, top=top, lead=middle) >= right
        low, high = (low, middle) if enough else (middle, high)
    return high


def _right_exponential(best: Ints, others: Ints, tail: float) -> Floats:
    found: Floats = best / (best + others * tail)
    return found


def _right_permute_and_flip(best: Ints, others: Ints, tail: float) -> Floats:
    """No other one whose coin shows heads stands before the first of the best: an integral over where that stands."""
    where, weights = _nodes()
    logs = np.outer(best - 1, np.log1p(-where)) + np.outer(others, np.log1p(-tail * where))
    found: Floats = best * (np.exp(logs) @ weights)
    return found


_RIGHT: Final[Mapping[str, Callable[[Ints, Ints, float], Floats]]] = {
    "permute-and-flip": _right_permute_and_flip,
    "exponential": _right_exponential,
}


@lru_cache(maxsize=1)
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on [0, 1], finer and finer towards 0, where long lists decide."""
    edges = np.concatenate([[0.0], np.logspace(-7, 0, 22)])
    at, weight = np.polynomial.legendre.leggauss(16)
    widths = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + widths * (at + 1)).ravel(), (widths * weight).ravel()


def check_mechanism(mechanism: str | None) -> None:
    """Refuse a way of choosing that is not known."""
    if mechanism is not None and mechanism not in CHOOSERS:
        raise ParameterError(f"mechanism: {mechanism!r} is not known; it is one of {', '.join(CHOOSERS)}, or left out.")


def _root(square: Fraction) -> Fraction:
    return Fraction(math.sqrt(square)) * _DOWN


def _down(value: float) -> Fraction:
    return Fraction(value) * _DOWN
