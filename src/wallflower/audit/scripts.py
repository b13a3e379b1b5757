"""Scripted draws: real code is led through one branch after another, and each branch has its exact chance.

`Script` returns the words of one path, and stops the caller that asks for more. Words of 64 bits are not decided before
they are compared, so a coin that is thrown by a table of thresholds has two branches and not 2^64; a number that is
drawn again because it came out below 0 has one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.noise import Noise

WHOLE: Final = 2**64
MAX_BRANCHES: Final = 64  # up to this number of words, each word is a branch
FINE: Final = 2**40  # longer words are told apart by their first 40 bits, in the middle: off by 1e-12 at most
_REACH: Final = {"laplace": 64, "gaussian": 24}  # in scales: what is beyond has a chance below 1e-27


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """A draw: the whole numbers it may give, and how likely those from one to another are.

    `outward` is how likely a draw is that is no nearer to the middle, `beyond` one that is none of these numbers.
    """

    first: int
    last: int
    chance: Callable[[int, int], float]
    word: Callable[[int], int] = int
    apart: bool = False
    outward: Callable[[int], float] = lambda at: 1.0
    beyond: float = 0.0


class DrawRequest(Exception):
    """Not an error: how an answer is stopped at its next draw."""

    def __init__(self, draw: Draw, weight: float) -> None:
        self.draw = draw
        self.weight = weight


class Redraw(Exception):
    """Not an error: a number was found below 0 and is drawn again, so that nothing has happened."""


class Script:
    """Return the words of a path, then stop the caller. Words less likely than `least` are not asked for."""

    def __init__(self, path: Sequence[tuple[int, float]], least: float) -> None:
        self.path: Iterator[tuple[int, float]] = iter(path)
        self.least = least
        self.weight = 1.0
        self.lost = 0.0
        self.words_known: list[list[int]] = []  # the least and the first too large value of every word
        self.is_compared: list[bool] = []
        self.below_zero: tuple[str, Fraction] | None = None

    def next(self, draw: Draw) -> int:
        self.below_zero = None
        for word, weight in self.path:
            self.weight *= weight
            return word
        raise DrawRequest(draw, self.weight)

    def laplace(self, scale: Fraction) -> Any:
        return self._number("laplace", scale)

    def gaussian(self, scale: Fraction) -> Any:
        return self._number("gaussian", scale)

    def _number(self, law: str, scale: Fraction) -> Any:
        if self.below_zero == (law, scale):
            raise Redraw
        return Number(self, law, scale)

    def below(self, bound: int) -> int:
        if bound <= MAX_BRANCHES:
            return self.next(Draw(first=0, last=bound - 1, chance=lambda a, b: (b - a + 1) / bound, apart=True))
        parts = min(bound, FINE)
        return self.next(
            Draw(
                first=0,
                last=parts - 1,
                chance=lambda a, b: (b - a + 1) / parts,
                word=lambda part: (2 * part + 1) * bound // (2 * parts),
            )
        )

    def flip(self, exponent: Fraction) -> bool:
        return self.coin(math.exp(-exponent), -math.expm1(-exponent))

    def coin(self, heads: float, tails: float) -> bool:
        """A branch for each side; one that is too unlikely is left out, and what it would have been is `lost`."""
        if self.weight * min(heads, tails) <= self.least:
            self.lost += min(heads, tails)
            return heads >= tails
        return bool(self.next(_toss(heads, tails)))

    def words(self, size: int) -> Words:
        """Return `size` words of 64 bits, not decided yet."""
        start = len(self.words_known)
        self.words_known += [[0, WHOLE] for _ in range(size)]
        self.is_compared += [False] * size
        words = np.arange(start, start + size, dtype=np.uint64).view(Words)
        words.script = self
        return words

    def is_less(self, word: int, bound: int) -> bool:
        """Whether a word is below a bound: a coin, unless it is known."""
        low, high = self.words_known[word]
        self.is_compared[word] = True
        if bound <= low or bound >= high:
            return bound >= high
        less = self.coin((bound - low) / (high - low), (high - bound) / (high - low))
        self.words_known[word] = [low, bound] if less else [bound, high]
        return less

    def finish(self) -> None:
        """Refuse words that were used in a way that is not followed here."""
        if not all(self.is_compared):
            raise ParameterError("words: some were drawn and not compared. Draw outputs, and pass them to `audit`.")


def _toss(heads: float, tails: float) -> Draw:
    chances = (tails, heads)
    return Draw(
        first=0, last=1, chance=lambda a, b: sum(chances[a : b + 1]), apart=True, outward=lambda at: chances[at]
    )


class Words(np.ndarray[Any, np.dtype[np.uint64]]):
    """Words by their number. They can be picked, repeated and compared, and nothing else."""

    script: Script

    def __array_finalize__(self, source: Any) -> None:
        if source is not None:
            self.script = getattr(source, "script", None)  # type: ignore[assignment]

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **more: Any) -> Any:
        if method != "__call__" or more or ufunc not in _COMPARISONS or isinstance(operands[1], Words):
            raise ParameterError("words: they are compared with numbers only here. Draw outputs, for `audit`.")
        above, is_less = _COMPARISONS[ufunc]
        numbers, bounds = np.broadcast_arrays(np.asarray(self), np.asarray(operands[1]))
        pairs = zip(numbers.ravel().tolist(), bounds.ravel().tolist(), strict=True)
        answers = [self.script.is_less(number, bound + above) == is_less for number, bound in pairs]
        return np.array(answers, dtype=np.bool_).reshape(numbers.shape)


_COMPARISONS: Final[dict[Any, tuple[int, bool]]] = {
    np.less: (0, True),
    np.less_equal: (1, True),
    np.greater: (1, False),
    np.greater_equal: (0, False),
}


class Number:
    """A drawn whole number that is decided when it is used; only whether it is below 0 is asked before."""

    def __init__(self, script: Script, law: str, scale: Fraction) -> None:
        self._script, self._law, self._scale = script, law, scale
        self._value: int | None = None
        self._first: int | None = None

    def _is_below_zero(self) -> bool:
        draw = additive(self._law, self._scale)
        heads, tails = draw.chance(draw.first, -1), draw.chance(0, draw.last)
        if self._script.next(_toss(heads, tails)):
            self._script.below_zero = self._law, self._scale
            return True
        self._first = 0
        return False

    def __int__(self) -> int:
        if self._value is None:
            self._value = self._script.next(_from(additive(self._law, self._scale), self._first))
        return self._value

    __index__ = __int__

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.array(int(self), dtype=dtype or np.int64)

    def __lt__(self, other: Any) -> bool:
        if isinstance(other, int) and other == 0 and self._value is None and self._first is None:
            return self._is_below_zero()
        return bool(int(self) < other)

    def __ge__(self, other: Any) -> bool:
        return bool(int(self) >= other)

    def __le__(self, other: Any) -> bool:
        return bool(int(self) <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(int(self) > other)

    def __eq__(self, other: object) -> bool:
        return int(self) == other

    def __hash__(self) -> int:
        return hash(int(self))

    def __add__(self, other: Any) -> Any:
        return int(self) + other

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return int(self) - other

    def __rsub__(self, other: Any) -> Any:
        return other - int(self)

    def __mul__(self, other: Any) -> Any:
        return int(self) * other

    __rmul__ = __mul__

    def __pow__(self, other: int) -> Any:
        return int(self) ** other

    def __neg__(self) -> int:
        return -int(self)

    def __abs__(self) -> int:
        return abs(int(self))


@lru_cache(maxsize=256)
def _from(draw: Draw, first: int | None) -> Draw:
    """The draw, given that it is no less than `first`."""
    if first is None:
        return draw
    whole = draw.chance(first, draw.last)
    return Draw(
        first=first,
        last=draw.last,
        chance=lambda a, b: draw.chance(a, b) / whole,
        outward=lambda at: draw.chance(at, draw.last) / whole,
        beyond=draw.beyond / whole,
    )


@lru_cache(maxsize=256)
def additive(law: str, scale: Fraction) -> Draw:
    reach = math.ceil(_REACH[law] * scale)
    chance = _laplace(scale) if law == "laplace" else _gaussian(float(scale), reach)
    return Draw(
        first=-reach,
        last=reach,
        chance=chance,
        outward=lambda at: min(1.0, 2 * chance(min(abs(at), reach), reach)),
        beyond=math.exp(-_REACH[law] if law == "laplace" else -(_REACH[law] ** 2) / 2),
    )


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


class InOrder:
    """The noise of an audit, but a random sample is 0, 1, 2 …: an answer that samples is audited sample by sample."""

    def __init__(self, noise: Noise) -> None:
        self.noise = noise

    def sample(self, bound: int, size: int) -> Any:
        return np.arange(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.noise, name)


class ShortNoise:
    """BROKEN, for audits: a share of the noise that was asked for."""

    def __init__(self, noise: Noise, share: Fraction = Fraction(9, 10)) -> None:
        self.noise, self.share = noise, share

    def laplace(self, scale: Fraction) -> int:
        return self.noise.laplace(scale * self.share)

    def gaussian(self, scale: Fraction) -> int:
        return self.noise.gaussian(scale * self.share)

    def below(self, bound: int) -> int:
        return self.noise.below(bound)

    def flip(self, exponent: Fraction) -> bool:
        return self.noise.flip(exponent)
