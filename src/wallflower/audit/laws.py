"""What an answer comes to, and with which chance: added up from the draws it asks for, not estimated.

`law_of` answers again and again with scripted draws until every branch was taken, so a noise that is short by a hair
shows, every time. `audit_law` holds two such laws, of neighbouring tables, against a claimed loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Way
from wallflower.errors import LossMismatch, ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss

Law = Mapping[Hashable, float]

EXACT: Final = 1e-6  # the relative error of a loss that was added up
FEW: Final = 64  # up to so many words, each is a branch of its own
FINE: Final = 2**40  # longer words are told apart by their first 40 bits, in the middle: off by 1e-12 at most
MOST: Final = 12  # draws of one answer; two from long ranges are a matter of a second, three of a minute
_REACH: Final = {"laplace": 64, "gaussian": 24}  # in scales: what is beyond has a chance below 1e-27
_ORDERS: Final = np.geomspace(1e-4, 1e3, 200)


def law_of(answer: Callable[[Noise], Hashable]) -> Law:
    """The chance of every output of an answer that draws a few numbers.

    A draw from a long range must be one that outputs rise with: where two draws lead to the same, so does every draw
    between them.

    >>> found = law_of(lambda noise: min(1, max(0, noise.laplace(Fraction(1)))))
    >>> {output: round(chance, 6) for output, chance in found.items()}
    {0: 0.731059, 1: 0.268941}
    """
    return _continued(answer, ())


@dataclass(frozen=True, slots=True)
class _Draw:
    """A draw: the whole numbers it may give, and how likely those from one to another are."""

    first: int
    last: int
    chance: Callable[[int, int], float]
    word: Callable[[int], int] = int
    apart: bool = False


class _Asked(Exception):
    """Not an error: how an answer is stopped at its next draw."""

    def __init__(self, draw: _Draw) -> None:
        self.draw = draw


class _Script:
    """Says the words of a script, then stops whoever asks for more."""

    def __init__(self, words: tuple[int, ...]) -> None:
        self.words = iter(words)

    def _next(self, draw: _Draw) -> int:
        for word in self.words:
            return word
        raise _Asked(draw)

    def laplace(self, scale: Fraction) -> int:
        return self._next(_additive("laplace", scale))

    def gaussian(self, scale: Fraction) -> int:
        return self._next(_additive("gaussian", scale))

    def below(self, bound: int) -> int:
        if bound <= FEW:
            return self._next(_Draw(0, bound - 1, lambda a, b: (b - a + 1) / bound, apart=True))
        parts = min(bound, FINE)
        return self._next(
            _Draw(0, parts - 1, lambda a, b: (b - a + 1) / parts, lambda part: (2 * part + 1) * bound // (2 * parts))
        )

    def flip(self, exponent: Fraction) -> bool:
        heads = math.exp(-exponent)
        if heads == 1:
            return True
        chances = (-math.expm1(-exponent), heads)
        return bool(self._next(_Draw(0, 1, lambda a, b: sum(chances[a : b + 1]), apart=True)))


def _additive(law: str, scale: Fraction) -> _Draw:
    reach = math.ceil(_REACH[law] * scale)
    return _Draw(-reach, reach, _laplace(scale) if law == "laplace" else _gaussian(float(scale), reach))


def _laplace(scale: Fraction) -> Callable[[int, int], float]:
    pace = -1 / float(scale)

    def tail(least: int) -> float:
        return math.exp(pace * least) / (1 + math.exp(pace))

    def chance(a: int, b: int) -> float:
        if b < 0:
            a, b = -b, -a
        return 1 - tail(b + 1) - tail(1 - a) if a <= 0 else tail(a) * -math.expm1(pace * (b - a + 1))

    return chance


def _gaussian(scale: float, reach: int) -> Callable[[int, int], float]:
    weights = np.exp(-((np.arange(-reach, reach + 1) / scale) ** 2) / 2)
    weights /= weights.sum()
    return lambda a, b: float(weights[a + reach : b + reach + 1].sum())


def _continued(answer: Callable[[Noise], Hashable], words: tuple[int, ...]) -> Law:
    """The law of an answer whose first draws are these words."""
    if len(words) > MOST:
        raise ParameterError(f"the answer draws more than {MOST} numbers. Draw its outputs, and pass them to `audit`.")
    try:
        return {answer(_Script(words)): 1.0}
    except _Asked as asked:
        draw = asked.draw
    found: dict[Hashable, float] = {}
    for first, last, law in _runs(draw, lambda at: _continued(answer, (*words, draw.word(at)))):
        weight = draw.chance(first, last)
        for output, chance in law.items():
            found[output] = found.get(output, 0.0) + weight * chance
    return found


def _runs(draw: _Draw, law: Callable[[int], Law]) -> Iterator[tuple[int, int, Law]]:
    """What draws lead to, in runs that lead to the same."""
    if draw.apart:
        yield from ((at, at, law(at)) for at in range(draw.first, draw.last + 1))
        return
    start, here = draw.first, law(draw.first)
    last = law(draw.last)
    while here != last:
        low, high = start, draw.last  # the last that leads to the same is from `low` on and before `high`
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if law(middle) == here else (low, middle)
        yield start, low, here
        start, here = high, law(high)
    yield start, draw.last, here


# Losses


def audit_law(first: Law, second: Law, *, claimed: Loss, name: str = "law", expected: bool = False) -> Finding:
    """Refute a claimed loss by the laws of two neighbouring tables, or show that on these it holds."""
    shown, amount = loss_between(first, second, claimed), float(claimed.amount)
    letter = "ρ" if claimed.kind is Kind.ZCDP else "ε"
    return Finding(
        name=name,
        way=Way.OUTPUTS,
        claimed=amount,
        lower=min(shown, 1e300),  # JSON has no infinity
        caught=shown > amount * (1 + EXACT),
        words=f"claims {claimed}, is {letter} = {shown:.6g} over {len({*first, *second})} outputs",
        expected=expected,
    )


def loss_between(first: Law, second: Law, claimed: Loss) -> float:
    """What tells two laws apart, in the unit of the claimed loss: an ε, an ε at its δ, or a ρ."""
    if claimed.kind is Kind.METRIC:
        raise LossMismatch(f"laws are not compared by a {claimed.kind} loss: it depends on the pair. Claim a pure one.")
    outputs = list({**first, **second})
    p, q = (np.array([law.get(output, 0.0) for output in outputs]) for law in (first, second))
    measure = _rho if claimed.kind is Kind.ZCDP else _epsilon
    return max(measure(p, q, claimed), measure(q, p, claimed))


def _epsilon(p: Any, q: Any, claimed: Loss) -> float:
    """The least ε with P <= e^ε Q + δ for every event."""
    delta = float(claimed.delta)
    some = p > 0
    with np.errstate(divide="ignore"):
        ratios = np.log(p[some]) - np.log(q[some])
    if not delta:
        return float(max(0.0, ratios.max()))

    def leak(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())

    low, high = 0.0, 1.0
    if leak(low) <= delta:
        return 0.0
    while leak(high) > delta and high < 512:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if leak(middle) > delta else (low, middle)
    return high


def _rho(p: Any, q: Any, claimed: Loss) -> float:
    """The largest D_α / α over many orders [BS16, Def 1.1]."""
    some = p > 0
    with np.errstate(divide="ignore"):
        logs, ratios = np.log(p[some]), np.log(p[some]) - np.log(q[some])
    if not np.isfinite(ratios).all():
        return math.inf
    sums = np.logaddexp.reduce(logs + _ORDERS[:, None] * ratios, axis=1)
    return float(max(0.0, (sums / _ORDERS / (1 + _ORDERS)).max()))
