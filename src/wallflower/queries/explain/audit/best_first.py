"""The law of best-first search among two contexts, between bounds: two words decide, one of them after the other.

The search reads the noise of its first context from one word and of the other from a second. For a fixed first word the
second has one place where the choice turns, which is found by halving; the chance of either side rises or falls with
the first word, so its values at the ends of small cells bound it in between.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit.laws import Law, PartialLaw
from wallflower.queries.explain import Explain

CELLS: Final = 96
BITS: Final = 63  # of a word, above the coin
FINE: Final = 30  # halvings


class _TwoWords:
    """Says one word where one is asked for, and another first where many are; what follows is never read."""

    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second

    def words(self, size: int) -> NDArray[np.uint64]:
        found = np.zeros(size, np.uint64)
        found[0] = self.first if size == 1 else self.second
        return found


def bracket(query: Explain, case: Any) -> Law:
    """The chances of two contexts, the smaller one's from below; what is not known of them is the rest."""
    at = np.concatenate([[0.0], -np.expm1(-np.geomspace(1e-6, 40.0, CELLS)), [1.0]])
    chances = np.array([_chance(query, case, min(int(u * 2.0**BITS), 2**BITS - 1) << 1) for u in at])
    widths = np.diff(at)
    low = float(widths @ np.minimum(chances[1:], chances[:-1]))
    high = float(widths @ np.maximum(chances[1:], chances[:-1]))
    return PartialLaw({"small": low, "large": 1 - high}, high - low)


def _chance(query: Explain, case: Any, first: int) -> float:
    """The chance that the smaller context is chosen, given the first word: over both sides of the coin."""
    return sum(_share(query, case, first, coin) for coin in (0, 1)) / 2


def _share(query: Explain, case: Any, first: int, coin: int) -> float:
    """The share of second words with this coin that choose the smaller context: all from some word on, or none."""

    def is_small(word: int) -> bool:
        (found,) = query.answer(case, _TwoWords(first, word << 1 | coin))  # type: ignore[arg-type]
        return str(found["bits"]).count("1") == 1

    low: int = 0
    high: int = 2**BITS - 1
    if is_small(low):
        return 1.0
    if not is_small(high):
        return 0.0
    for _ in range(FINE):
        middle = (low + high) // 2
        low, high = (low, middle) if is_small(middle) else (middle, high)
    return 1.0 - high / 2.0**BITS
