"""Choices on many coordinates at once: one level of error for all of them, and the price of one choice."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import prod

import numpy as np
from numpy.typing import ArrayLike

from wallflower.errors import ParameterError
from wallflower.mechanisms.additive import require_positive
from wallflower.mechanisms.choice import exponential_level
from wallflower.noise import Noise


def choose_together(
    errors: Sequence[ArrayLike], *, sensitivity: int, epsilon: Fraction, noise: Noise
) -> tuple[int, ...]:
    """One candidate for each coordinate, with probability proportional to exp(-ε·max error/(2·sensitivity)), exactly.

    `errors[j]` has a whole number, 0 or more, for every candidate of coordinate j; one record moves each by at most
    `sensitivity`.

    Released    the place of one candidate for each coordinate       Neighbours  those of the sensitivity
    Guarantee   pure ε-DP, however many coordinates                  Proof       (J1) (J2)
    """
    found = [np.asarray(each, dtype=np.int64) for each in errors]
    if not found or any(each.ndim != 1 or not len(each) for each in found):
        raise ParameterError("errors: a coordinate has no candidate, or there is no coordinate; pass one at least.")
    require_positive(Fraction(epsilon))
    orders = [np.argsort(each, kind="stable") for each in found]
    levels = np.unique(np.concatenate(found))
    reached = np.stack(
        [np.searchsorted(each[order], levels, side="right") for each, order in zip(found, orders, strict=True)]
    )
    within = [0, *(prod(column) for column in reached.T.tolist())]
    shells = np.array([inner_to - inner for inner, inner_to in pairwise(within)], dtype=object)
    rate = Fraction(epsilon) / (2 * max(1, sensitivity))
    level, rank = exponential_level(levels - levels[0], shells, rate=rate, noise=noise)  # (J1)
    below = reached[:, level - 1].tolist() if level else [0] * len(found)
    places = decode(rank, below, reached[:, level].tolist())
    return tuple(int(order[place]) for order, place in zip(orders, places, strict=True))


def decode(rank: int, below: Sequence[int], upto: Sequence[int]) -> list[int]:
    """The places of one member of a shell: all below `upto`, not all below `below`; one for each rank.  (J2)

    >>> [decode(rank, [1, 1], [2, 2]) for rank in range(3)]
    [[1, 0], [1, 1], [0, 1]]
    """
    for first in range(len(upto)):
        sizes = [*below[:first], upto[first] - below[first], *upto[first + 1 :]]
        block = prod(sizes)
        if rank < block:
            return _digits(rank, sizes, first, below[first])
        rank -= block
    raise ParameterError("rank: it is beyond the shell; pass one below the number of its members.")


def _digits(rank: int, sizes: Sequence[int], first: int, start: int) -> list[int]:
    places = []
    for size in reversed(sizes):
        rank, place = divmod(rank, size)
        places.append(place)
    places.reverse()
    places[first] += start
    return places
