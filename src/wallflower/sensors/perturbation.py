"""Perturbation of a reading before it leaves its sensor: clip it to a public box, and add noise on a public grid.

A reading is scaled by public constants, clipped, and rounded to a grid of `step`; from there on everything is whole
numbers. Noise has one of two shapes. A perturbed reading is e^(ε·d)-indistinguishable for readings at distance d:

`planar`    d is the Euclidean distance over the diameter of usual readings       (proof.md, label (P))
`columns`   d is the sum over columns of ε_j times the distance over the range    (proof.md, label (M)), as in [Boe17]

So two usual readings are as hard to tell apart as ε says; extremes, which the box bounds, are easier. Noise is drawn
once for a reading: a device that sends it again must send the same bytes, since a second draw costs as much again (R).

The sampler draws whole-number points with P(z) proportional to exp(-|z|/scale), exactly and in bulk. One column is the
discrete Laplace law, by inversion. Several columns: candidates have independent Laplace columns of scale
`scale`·√columns, rounded up, and one is accepted with the probability that corrects for how often it is proposed.
Decisions are made in floating point where its error cannot matter, by a margin of 2^-40, and elsewhere in exact
arithmetic with as many more random bits as it takes: the law holds exactly, not approximately (proof.md, label (E)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.machine.jit import kernel
from wallflower.noise import Noise, words
from wallflower.privacy import Exact, Kind, Loss, Neighbours, exact

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Verdicts = NDArray[np.int8]

MAX_STEPS: Final = 2**26  # perturbed readings stay within this many steps of 0: a cut, after the noise
MAX_COLUMNS: Final = 64  # so that squared distances stay below 2^60
MAX_PLANAR_COLUMNS: Final = 8  # of 8 columns one candidate in six is accepted, of 16 one in sixty
MIN_SCALE, MAX_SCALE = Fraction(1, 64), Fraction(2**24)
DECISION_MARGIN: Final = 2.0**-40  # far more than the rounding of exp, log and a few products
CHUNK_CANDIDATES: Final = 2**12  # their words stay in the cache
REJECTED, ACCEPTED, UNDECIDED = 0, 1, 2
_MIN_WORD: Final = 2.0**42  # a smaller word has too few digits to decide by itself


def clip(
    readings: ArrayLike,
    *,
    mean: Sequence[float],
    deviation: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    step: Exact,
) -> Ints:
    """Return readings in whole steps: scaled to (reading - mean)/deviation, rounded, and clipped to the box.

    A value that is not a number becomes the middle of the box, so that no error depends on what was measured.  (B)

    >>> clip([[20.0], [99.0], [np.nan]], mean=[20.0], deviation=[2.0], low=[-3.0], high=[3.0], step="1/8").ravel()
    array([ 0, 24,  0])
    """
    size = float(_positive(step, "step"))
    count = len(mean)
    if not 1 <= count <= MAX_COLUMNS or not count == len(deviation) == len(low) == len(high):
        raise ParameterError(f"mean, deviation, low, high: pass one of each for every column, 1 to {MAX_COLUMNS}.")
    values = np.asarray(readings, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != count:
        raise DataError(f"readings: must have {count} columns. Pass one row for each, with as many entries.")
    first, last = np.ceil(np.array(low) / size), np.floor(np.array(high) / size)
    if not (np.all(first <= last) and np.all(np.abs([first, last]) <= MAX_STEPS) and np.all(np.array(deviation) > 0)):
        raise ParameterError(
            "low, high, deviation: low must be below high, within 2**26 steps, and deviations above 0."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.floor((values - mean) / deviation / size + 0.5)
    middle = np.floor((first + last) / 2)
    return np.asarray(np.clip(np.where(np.isnan(steps), middle, steps), first, last).astype(np.int64))


def add_planar_noise(points: ArrayLike, *, diameter: Exact, epsilon: Exact, step: Exact, noise: Noise) -> Ints:
    """Add noise that is alike in all directions, P(z) proportional to exp(-ε·|z|·step/diameter).  (P)

    `diameter` is how far apart, in scaled units, two usual readings may be: for ranges of all columns the root of the
    sum of their squares, less if usual readings are known to fill a ball.
    """
    rows = _check_points(points)
    scale = noise_scale(diameter, epsilon, step)
    return _cut(rows + draw_planar(scale, rows.shape[1], len(rows), noise))


def add_column_noise(
    points: ArrayLike, *, ranges: Sequence[Exact], epsilons: Sequence[Exact], step: Exact, noise: Noise
) -> Ints:
    """Add independent noise to every column, P(z) proportional to exp(-Σ_j ε_j·|z_j|·step/range_j).  (M)"""
    rows = _check_points(points)
    if not rows.shape[1] == len(ranges) == len(epsilons):
        raise ParameterError("ranges, epsilons: pass one of each for every column of the points.")
    drawn = [
        draw_laplace(noise_scale(width, epsilon, step), len(rows), noise)
        for width, epsilon in zip(ranges, epsilons, strict=True)
    ]
    return _cut(rows + np.stack(drawn, axis=1))


def noise_scale(distance: Exact, epsilon: Exact, step: Exact) -> Fraction:
    """Return the scale of noise, in steps, that makes points at this distance e^ε-indistinguishable.  (P) (M)

    >>> noise_scale("10", "1/2", "1/8")
    Fraction(160, 1)
    """
    return _positive(distance, "distance") / (_positive(epsilon, "epsilon") * _positive(step, "step"))


def distances(points: ArrayLike, centre: Sequence[int]) -> Ints:
    """Return how far each point is from the centre, in whole steps rounded down: the same on every machine.  (D)

    >>> distances([[3, 4], [-1, 1]], [0, 0])
    array([5, 1])
    """
    rows, origin = _check_points(points), np.asarray(centre)
    if origin.shape != (rows.shape[1],) or not np.issubdtype(origin.dtype, np.integer):
        raise ParameterError("centre: must be one whole number for each column. Pass a point of the grid.")
    if (np.abs(origin) > MAX_STEPS).any():
        raise ParameterError("centre: must be within 2**26 steps of 0. Use a coarser grid.")
    squares = ((rows - origin) ** 2).sum(axis=1)
    # The floating-point root may be off by one step; two integer comparisons correct it.
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squares
    return cast(Ints, roots + ((roots + 1) ** 2 <= squares))


def d_diff(points: ArrayLike, perturbed: ArrayLike, centre: Sequence[int]) -> Ints:
    """Return by how far noise moved each distance. It must not reach the analyst, and has no finite ε: label (L).

    >>> d_diff([[3, 4]], [[6, 8]], [0, 0])
    array([5])
    """
    return np.subtract(distances(perturbed, centre), distances(points, centre))


def scores(points: ArrayLike, centre: Sequence[int], resolution: int, bits: int) -> Ints:
    """Return distances in units of `resolution` steps, cut to 0 … 2^(bits-1) - 1: the input of `comparison.deal`.

    >>> scores([[3, 4], [300, 400]], [0, 0], 2, 6)
    array([ 2, 31])
    """
    if isinstance(resolution, bool) or not isinstance(resolution, int) or resolution < 1:
        raise ParameterError(f"resolution: {resolution!r} must be a whole number of steps. Pass 1 or more.")
    return np.asarray(np.minimum(distances(points, centre) // resolution, 2 ** (bits - 1) - 1))


def columns_losses(ranges: Sequence[Exact], epsilons: Sequence[Exact], widths: Sequence[Exact]) -> tuple[Loss, Loss]:
    """Return the cost of a reading with column noise: between two usual readings, and any two in a box of `widths`.

    >>> columns_losses(["10", "10"], ["0.1", "0.1"], ["80", "80"])
    (Loss(ε=1/5), Loss(ε=8/5))
    """
    parts = [_positive(epsilon, "epsilons") for epsilon in epsilons]
    ratios = [exact(width, "widths") / _positive(usual, "ranges") for usual, width in zip(ranges, widths, strict=True)]
    furthest = sum((part * ratio for part, ratio in zip(parts, ratios, strict=True)), Fraction())
    return _metric_loss(sum(parts, Fraction())), _metric_loss(furthest)


def planar_losses(diameter: Exact, epsilon: Exact, widths: Sequence[Exact]) -> tuple[Loss, Loss]:
    """Return the cost of a reading with planar noise: between two usual readings, and any two in a box of `widths`.

    >>> planar_losses("10", "0.2", ["60", "80"])
    (Loss(ε=1/5), Loss(ε=2))
    """
    part = _positive(epsilon, "epsilon")
    across = diagonal([exact(width, "widths") for width in widths])
    return _metric_loss(part), _metric_loss(part * across / _positive(diameter, "diameter"))


def diagonal(widths: Sequence[Fraction]) -> Fraction:
    """Return the diagonal of a box, rounded up to six digits after the point.

    >>> diagonal([Fraction(3), Fraction(4)])
    Fraction(5, 1)
    """
    square = math.ceil(sum((width**2 for width in widths), Fraction()) * 10**12)
    return Fraction(math.isqrt(square - 1) + 1, 10**6) if square else Fraction()


def draw_laplace(scale: Fraction, count: int, noise: Noise) -> Ints:
    """Draw `count` whole numbers, P(z) proportional to exp(-|z|/scale)."""
    return draw_planar(scale, 1, count, noise)[:, 0]


def draw_planar(scale: Fraction, columns: int, count: int, noise: Noise) -> Ints:
    """Draw `count` points of `columns` whole numbers, P(z) proportional to exp(-|z|/scale)."""
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise ParameterError(
            f"scale: noise of {float(scale):g} steps is outside {MIN_SCALE} to 2**24. Use another step of the grid."
        )
    if not 1 <= columns <= MAX_PLANAR_COLUMNS:
        raise ParameterError(f"columns: {columns} must be 1 to {MAX_PLANAR_COLUMNS}. Use column noise.")
    volume = 2 * math.pi ** (columns / 2) / math.gamma(columns / 2) * math.gamma(columns)
    rate = volume / (2 * math.sqrt(columns)) ** columns  # share of candidates that are accepted, about
    words_each = 1 if columns == 1 else columns + 1  # one a column, and one for the coin, which one column needs not
    points, filled = np.empty((count, columns), dtype=np.int64), 0
    while filled < count:
        size = min(CHUNK_CANDIDATES, math.ceil(1.1 * (count - filled) / rate) + 8)
        drawn = words(noise, size * words_each).reshape(size, words_each)
        fresh = accept_candidates(drawn, scale, columns, noise)[: count - filled]
        points[filled : filled + len(fresh)] = fresh
        filled += len(fresh)
    return points


def accept_candidates(
    drawn: Words, scale: Fraction, columns: int, noise: Noise, margin: float = DECISION_MARGIN
) -> Ints:
    """Return the accepted candidates of those that each row of words proposes."""
    wide = proposal_scale(scale, columns)
    points, verdicts = _propose(drawn, columns, float(scale), float(wide), margin)
    for at in np.flatnonzero(verdicts == UNDECIDED).tolist():
        point = _propose_exactly(drawn[at].tolist(), scale, wide, columns, noise)
        verdicts[at] = REJECTED if point is None else ACCEPTED
        points[at] = point or 0
    return np.asarray(points[verdicts == ACCEPTED])


def proposal_scale(scale: Fraction, columns: int) -> Fraction:
    """Return the scale of candidates, a little more than scale·√columns: with less, some would be too rare."""
    return scale if columns == 1 else Fraction(math.isqrt(math.ceil(columns * scale**2 * 4**60)) + 1, 2**60)


def _propose_exactly(drawn: list[int], scale: Fraction, wide: Fraction, columns: int, noise: Noise) -> list[int] | None:
    """Return the candidate of these words, or None if it is rejected; minus zero is, since there is one zero."""
    lengths = [invert_exactly(word >> 1, wide, noise) for word in drawn[:columns]]
    if any(word % 2 and length == 0 for word, length in zip(drawn, lengths, strict=False)):
        return None
    point = [-length if word % 2 else length for word, length in zip(drawn, lengths, strict=False)]
    return point if columns == 1 or flip_exactly(point, drawn[columns], scale, wide, noise) else None


def invert_exactly(word: int, scale: Fraction, noise: Noise) -> int:
    """Return floor(-scale·ln u) for the u in [0, 1) whose first 63 binary digits are `word`; more are drawn."""
    digits = 63
    while True:
        if word > 0:
            context = Context(prec=digits // 3 + 40)
            slack = Fraction(1, 10 ** (context.prec - 20))  # of numbers below 10^15, each rounded in its last digit
            upper = -scale * Fraction(context.ln(_divide(word, digits, context)))
            lower = -scale * Fraction(context.ln(_divide(word + 1, digits, context)))
            if math.floor(upper + slack) == max(0, math.floor(lower - slack)):
                return math.floor(upper + slack)
        word, digits = word << 64 | noise.below(2**64), digits + 64


def flip_exactly(point: list[int], word: int, scale: Fraction, wide: Fraction, noise: Noise) -> bool:
    """Return u < exp(|z|₁/wide - |z|/scale), for the u in [0, 1) whose first 64 binary digits are `word`."""
    digits, square, total = 64, sum(z * z for z in point), sum(abs(z) for z in point)
    while True:
        context = Context(prec=digits // 3 + 40)
        slack = Fraction(1, 10 ** (context.prec - 20))
        exponent = Fraction(total) / wide - Fraction(context.sqrt(Decimal(square))) / scale
        chance = Fraction(context.exp(context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))))
        if Fraction(word + 1, 2**digits) <= chance - slack:
            return True
        if Fraction(word, 2**digits) >= chance + slack:
            return False
        word, digits = word << 64 | noise.below(2**64), digits + 64


def _divide(word: int, digits: int, context: Context) -> Decimal:
    return context.divide(Decimal(word), Decimal(2**digits))


@kernel
def _propose(drawn: Words, columns: int, scale: float, wide: float, margin: float) -> tuple[Ints, Verdicts]:
    points, verdicts = np.empty((len(drawn), columns), np.int64), np.empty(len(drawn), np.int8)
    for i in range(len(drawn)):
        verdict = ACCEPTED
        square, total = 0.0, 0.0
        for c in range(columns):
            word = np.float64(drawn[i, c] >> np.uint64(1))
            length = -wide * math.log(word * 2.0**-63) if word > _MIN_WORD else 0.0
            whole = math.floor(length)
            if min(length - whole, whole + 1 - length) <= margin * wide:
                verdict = UNDECIDED
                break
            is_negative = drawn[i, c] & np.uint64(1)
            if is_negative and whole == 0:
                verdict = REJECTED
            points[i, c] = -whole if is_negative else whole
            square += whole * whole
            total += whole
        if verdict == ACCEPTED and drawn.shape[1] > columns:
            verdict = _flip(drawn[i, columns], math.sqrt(square) / scale, total / wide, margin)
        verdicts[i] = verdict
    return points, verdicts


@kernel
def _flip(word: np.uint64, length: float, proposed: float, margin: float) -> int:
    gap = np.float64(word) * 2.0**-64 - math.exp(proposed - length)
    if length > 256.0 or abs(gap) <= margin:  # beyond, exp is too small to compare with 64 digits
        return UNDECIDED
    return ACCEPTED if gap < 0 else REJECTED


def _metric_loss(epsilon: Fraction) -> Loss:
    return Loss(epsilon, kind=Kind.METRIC, neighbours=Neighbours.READING)


def _positive(value: Exact, name: str) -> Fraction:
    number = exact(value, name)
    if number <= 0:
        raise ParameterError(f"{name}: must be above 0; 0 would give no noise or no grid. Pass more.")
    return number


def _check_points(points: ArrayLike) -> Ints:
    rows: NDArray[Any] = np.asarray(points)
    if rows.ndim != 2 or not 1 <= rows.shape[1] <= MAX_COLUMNS:
        raise DataError(f"points: must be rows of 1 to {MAX_COLUMNS} columns. Pass one row for each reading.")
    if not np.issubdtype(rows.dtype, np.integer) or (rows.size and np.abs(rows).max() > MAX_STEPS):
        raise DataError("points: must be whole numbers within 2**26 steps of 0. Clip them to the grid of the stream.")
    return cast(Ints, rows.astype(np.int64))


def _cut(points: Ints) -> Ints:
    return np.clip(points, -MAX_STEPS, MAX_STEPS)
