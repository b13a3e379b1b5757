"""Spending over time: the most that any run of consecutive observations meets, by charges with public spans.

A person whose entries all lie within `window` consecutive observations loses nothing by answers that read others. What
is spent is the worst run of that length. Proof: proof.md, label (S).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Literal

from wallflower.errors import ParameterError


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanCharge:
    """A charge for observations first to last, both included; ε is for one entry, or for all a person has in a window.

    `window` means the window that the account declares: a loss stated for a shorter one is translated before.
    """

    first: int
    last: int
    epsilon: Fraction
    protects: Literal["entry", "window", "person"]

    def __post_init__(self) -> None:
        if self.protects not in ("entry", "window", "person"):
            raise ParameterError(
                f"protects: {str(self.protects)[:40]!r} has no span. It is one of entry, window, person. "
                "Book others as a sum."
            )
        if self.first > self.last:
            raise ParameterError(
                f"first, last: {self.first} to {self.last} holds no observation. A span ends where it begins, or "
                "later. Pass them in order."
            )
        if self.epsilon < 0:
            raise ParameterError(f"epsilon: {self.epsilon} is below 0. A loss is 0 or more. Pass what was charged.")


def largest_window_loss(window: int, charges: Iterable[SpanCharge]) -> Fraction:
    """The largest loss over all runs of `window` observations: an entry counts once for each, a person once in all.

    >>> watch = SpanCharge(first=1, last=100, epsilon=Fraction(1, 10), protects="entry")
    >>> largest_window_loss(25, [watch])
    Fraction(5, 2)
    """
    if type(window) is not int or window < 1:
        raise ParameterError(f"window: {str(window)[:40]!r} is not a whole number from 1. Pass the declared length.")
    booked = list(charges)
    entries = [charge for charge in booked if charge.protects == "entry"]
    whole = [charge for charge in booked if charge.protects != "entry"]
    begun, ended = _Ramps([c.first - 1 for c in entries], entries), _Ramps([c.last for c in entries], entries)
    met, over = _Ramps([c.first - 1 for c in whole], whole), _Ramps([c.last for c in whole], whole)

    def loss_from(start: int) -> Fraction:
        before, end = start - 1, start + window - 1
        inside = begun.area(end) - ended.area(end) - begun.area(before) + ended.area(before)
        return inside + met.height(end) - over.height(start)

    edges = {edge for charge in booked for edge in (charge.first, charge.last)}
    starts = edges | {edge - window + 1 for edge in edges}  # (S) between two of these no run is worse than both
    return max(map(loss_from, starts), default=Fraction())


class _Ramps:
    """Losses by the observation after which they count: how much has begun before one, and summed up to one."""

    def __init__(self, after: Sequence[int], charges: Sequence[SpanCharge]) -> None:
        pairs = sorted(zip(after, (charge.epsilon for charge in charges), strict=True))
        self._after = [place for place, _ in pairs]
        self._losses = [Fraction(), *accumulate(loss for _, loss in pairs)]
        self._moments = [Fraction(), *accumulate(place * loss for place, loss in pairs)]

    def height(self, at: int) -> Fraction:
        """Losses that begin before this place."""
        return self._losses[bisect_left(self._after, at)]

    def area(self, at: int) -> Fraction:
        """Losses that begin before this place, once for each place since."""
        known = bisect_left(self._after, at)
        return at * self._losses[known] - self._moments[known]
