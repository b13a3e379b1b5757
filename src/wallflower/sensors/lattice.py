"""Noise on whole-number points, exact and in bulk: P(z) proportional to exp(-|z|/scale), |z| the length of z.

One column: the discrete Laplace law, by inversion. Several: candidates with independent Laplace columns whose scale is
`scale` times the root of the number of columns, rounded up; one is kept with the probability by which it was proposed
too often. Decisions are made in floating point wherever its error cannot matter, by a margin of 2^-40, and in exact
arithmetic with as many more random bits as it takes elsewhere: the law holds exactly, not nearly (proof.md, label (E)).
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.machine.jit import kernel
from wallflower.noise import Noise, words

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Verdicts = NDArray[np.int8]

MOST_COLUMNS: Final = 8  # of 8 columns one candidate in six is kept, of 16 one in sixty
SMALLEST, LARGEST = Fraction(1, 64), Fraction(2**24)  # of a scale
MARGIN: Final = 2.0**-40  # far more than exp, log and a few products can be off
PART: Final = 2**12  # candidates at a time: their words stay in the cache
NO, YES, UNSURE = 0, 1, 2
_FEW: Final = 2.0**42  # below, a word has too few digits to decide by itself


def laplace(scale: Fraction, count: int, noise: Noise) -> Ints:
    """`count` whole numbers, P(z) proportional to exp(-|z|/scale)."""
    return planar(scale, 1, count, noise)[:, 0]


def planar(scale: Fraction, columns: int, count: int, noise: Noise) -> Ints:
    """`count` points of so many whole numbers, P(z) proportional to exp(-|z|/scale)."""
    if not SMALLEST <= scale <= LARGEST:
        raise ParameterError(
            f"scale: noise of {float(scale):g} steps is outside {SMALLEST} to 2**24. Use another step of the grid."
        )
    if not 1 <= columns <= MOST_COLUMNS:
        raise ParameterError(f"columns: {columns} is outside 1 to {MOST_COLUMNS}; perturb each column by itself.")
    volume = 2 * math.pi ** (columns / 2) / math.gamma(columns / 2) * math.gamma(columns)
    rate = volume / (2 * math.sqrt(columns)) ** columns  # of candidates that are kept, about
    found, have = np.empty((count, columns), dtype=np.int64), 0
    while have < count:
        size = min(PART, math.ceil(1.1 * (count - have) / rate) + 8)
        drawn = words(noise, size * _row(columns)).reshape(size, _row(columns))
        fresh = keep_candidates(drawn, scale, columns, noise)[: count - have]
        found[have : have + len(fresh)] = fresh
        have += len(fresh)
    return found


def keep_candidates(drawn: Words, scale: Fraction, columns: int, noise: Noise, margin: float = MARGIN) -> Ints:
    """The candidates that are kept, of those that each row of words proposes."""
    wide = wider(scale, columns)
    points, verdicts = _candidates(drawn, columns, float(scale), float(wide), margin)
    for at in np.flatnonzero(verdicts == UNSURE).tolist():
        point = _exactly(drawn[at].tolist(), scale, wide, columns, noise)
        verdicts[at] = NO if point is None else YES
        points[at] = point or 0
    return np.asarray(points[verdicts == YES])


def wider(scale: Fraction, columns: int) -> Fraction:
    """The scale of candidates, a little more than scale·√columns: with less, some would be proposed too seldom."""
    return scale if columns == 1 else Fraction(math.isqrt(math.ceil(columns * scale**2 * 4**60)) + 1, 2**60)


def _row(columns: int) -> int:
    """Words for one candidate: one a column, and one for the coin, which a single column does without."""
    return 1 if columns == 1 else columns + 1


def _exactly(drawn: list[int], scale: Fraction, wide: Fraction, columns: int, noise: Noise) -> list[int] | None:
    """The candidate that these words propose, or None where it is not kept: there is one zero, so minus zero is not."""
    lengths = [invert_exactly(word >> 1, wide, noise) for word in drawn[:columns]]
    if any(word % 2 and length == 0 for word, length in zip(drawn, lengths, strict=False)):
        return None
    point = [-length if word % 2 else length for word, length in zip(drawn, lengths, strict=False)]
    return point if columns == 1 or flip_exactly(point, drawn[columns], scale, wide, noise) else None


def invert_exactly(word: int, scale: Fraction, noise: Noise) -> int:
    """floor(-scale·ln u) for the u in [0, 1) whose first 63 binary digits are `word`; further ones are drawn."""
    digits = 63
    while True:
        if word > 0:
            context = Context(prec=digits // 3 + 40)
            slack = Fraction(1, 10 ** (context.prec - 20))  # of numbers below 10^15, each rounded in its last digit
            most = -scale * Fraction(context.ln(_ratio(word, digits, context)))
            least = -scale * Fraction(context.ln(_ratio(word + 1, digits, context)))
            if math.floor(most + slack) == max(0, math.floor(least - slack)):
                return math.floor(most + slack)
        word, digits = word << 64 | noise.below(2**64), digits + 64


def flip_exactly(point: list[int], word: int, scale: Fraction, wide: Fraction, noise: Noise) -> bool:
    """u < exp(|z|₁/wide - |z|/scale), for the u in [0, 1) whose first 64 binary digits are `word`."""
    digits, square, sum_ = 64, sum(z * z for z in point), sum(abs(z) for z in point)
    while True:
        context = Context(prec=digits // 3 + 40)
        slack = Fraction(1, 10 ** (context.prec - 20))
        exponent = Fraction(sum_) / wide - Fraction(context.sqrt(Decimal(square))) / scale
        chance = Fraction(context.exp(context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))))
        if Fraction(word + 1, 2**digits) <= chance - slack:
            return True
        if Fraction(word, 2**digits) >= chance + slack:
            return False
        word, digits = word << 64 | noise.below(2**64), digits + 64


def _ratio(word: int, digits: int, context: Context) -> Decimal:
    return context.divide(Decimal(word), Decimal(2**digits))


@kernel
def _candidates(drawn: Words, columns: int, scale: float, wide: float, margin: float) -> tuple[Ints, Verdicts]:
    points, verdicts = np.empty((len(drawn), columns), np.int64), np.empty(len(drawn), np.int8)
    for i in range(len(drawn)):
        verdict = YES
        square, total = 0.0, 0.0
        for c in range(columns):
            word = np.float64(drawn[i, c] >> np.uint64(1))
            length = -wide * math.log(word * 2.0**-63) if word > _FEW else 0.0
            whole = math.floor(length)
            if min(length - whole, whole + 1 - length) <= margin * wide:
                verdict = UNSURE
                break
            minus = drawn[i, c] & np.uint64(1)
            if minus and whole == 0:
                verdict = NO
            points[i, c] = -whole if minus else whole
            square += whole * whole
            total += whole
        if verdict == YES and drawn.shape[1] > columns:
            verdict = _coin(drawn[i, columns], math.sqrt(square) / scale, total / wide, margin)
        verdicts[i] = verdict
    return points, verdicts


@kernel
def _coin(word: np.uint64, far: float, less: float, margin: float) -> int:
    gap = np.float64(word) * 2.0**-64 - math.exp(less - far)
    if far > 256.0 or abs(gap) <= margin:
        return UNSURE
    return YES if gap < 0 else NO
