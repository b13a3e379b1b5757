"""Differences within pairs of records, sorted into public bins: what spreads are chosen by.

Bin i, from 1 to 960, holds differences from 2^(-20 + (i-1)/16) up to below 2^(-20 + i/16); the last one holds all
that are larger. Bin 0 holds what counts as no difference. Proof: proof.md of `scale`, (S).
"""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.data import Points, TiledPoints
from wallflower.noise import Noise, sample
from wallflower.schema import Column

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BINS_PER_OCTAVE: Final = 16  # bins in an octave
LOWEST_OCTAVE, HIGHEST_OCTAVE = -20, 40  # the octaves that bins cover
BINS: Final = (HIGHEST_OCTAVE - LOWEST_OCTAVE) * BINS_PER_OCTAVE
MAX_PAIRED_RECORDS: Final = (
    2**22
)  # records: of a longer table a part of this size is paired, which says as much of its spreads
DIVISORS: Final = {Fraction(1, 2): 0.9538725524, Fraction(3, 4): 1.6268277866}  # of a normal column of spread 1


def _root(power: int) -> float:
    """2^(power/16) from whole numbers alone, so that every machine has the same bins."""
    found = 2**power << BINS_PER_OCTAVE * 60
    for _ in range(4):
        found = math.isqrt(found)
    return math.ldexp(found, -60)


_ROOTS: Final = [_root(power) for power in range(BINS_PER_OCTAVE)]
EDGES: Final = np.array(
    [math.ldexp(_ROOTS[i % BINS_PER_OCTAVE], LOWEST_OCTAVE + i // BINS_PER_OCTAVE) for i in range(BINS)]
)


def bins_of(differences: ArrayLike) -> Ints:
    """The bin of each difference.

    >>> bins_of([0.0, 2**-21, 2**-20, 1.0, 1e300]).tolist()
    [0, 0, 1, 321, 960]
    """
    return np.searchsorted(EDGES, np.asarray(differences, dtype=np.float64), side="right").astype(np.int64)


def middle_of_bin(place: int) -> float:
    """The middle of a bin, as ratios go.

    >>> round(middle_of_bin(321), 7)
    1.0218971
    """
    return float(2.0 ** (LOWEST_OCTAVE + (place - 0.5) / BINS_PER_OCTAVE))


def pairing_size(n: int) -> int:
    """Return the number of records that are paired: all, but for one of an odd number."""
    return min(n, MAX_PAIRED_RECORDS)


def pair_up(n: int, noise: Noise) -> tuple[Ints, Ints]:
    """Pair each record with one other, at random; one of an odd number stays alone. Of a long table a random part is
    paired. No record is in two pairs.

    The pairing is secret: it is drawn for one answer, used once, and never released or stored. All pairings are equally
    likely, so the law of the answer does not depend on the order of the records.  (P)
    """
    order = sample(noise, n, pairing_size(n))
    half = len(order) // 2
    return order[:half], order[half : 2 * half]


def _words(seed: bytes, count: int) -> NDArray[np.uint64]:
    return np.frombuffer(hashlib.shake_256(seed).digest(8 * count), dtype="<u8")


def draw_places(n: int, size: int, key: int) -> list[int]:
    """Choose `size` of n places by a public key, which the pairing does not use.

    >>> draw_places(5, 5, 1), len(draw_places(9, 4, 1))
    ([0, 1, 2, 3, 4], 4)
    """
    words = _words(b"columns" + key.to_bytes(16, "big"), n)
    return sorted(np.argsort(words, kind="stable")[:size].tolist())


def histogram(values: Floats, first: Ints, second: Ints) -> Ints:
    """How many differences of all these columns are in each bin, 0 … 960."""
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.abs(values[first] - values[second])
    return np.bincount(bins_of(gaps.ravel()), minlength=BINS + 1)


def gap_counts(points: Points | TiledPoints, groups: list[list[int]], pairs: tuple[Ints, Ints]) -> list[Ints]:
    """Count the differences within pairs by bin, for each group of columns, wherever the records are.

    An engine is asked for the paired records in one pass, so the same records meet in all columns even if a second pass
    would return the records in another order.  (P)
    """
    if isinstance(points, Points):
        return [histogram(points.values[:, members], *pairs) for members in groups]
    rows, places = np.unique(np.concatenate(pairs), return_inverse=True)
    paired, half = points.select(rows), len(pairs[0])
    counts = []
    for members in groups:
        values = paired.subspace([points.columns[at] for at in members]).gather()
        counts.append(histogram(values, places[:half], places[half:]))
    return counts


def quantile_errors(found: Ints, share: Fraction, columns: int) -> Ints:
    """By how many pairs each bin 1 … 960 misses a quantile of what is not 0, of that many pooled columns.  (S)"""
    top, bottom = share.numerator, share.denominator
    upto = np.cumsum(found[1:])
    below, wanted = upto - found[1:], top * int(upto[-1])
    missed = np.maximum(np.maximum(bottom * below - wanted, wanted - bottom * upto), 0)
    rounded: Ints = -(-missed // (bottom * columns))
    return rounded


def candidate_bins(widest: float | None, step: float | None) -> range:
    """The bins that a difference can be in: all, or those between a public step and a public range.

    >>> len(candidate_bins(None, None)), len(candidate_bins(1000.0, 1.0))
    (960, 161)
    """
    margin = 1e-9  # covers the rounding of scaled differences
    low = 1 if step is None else max(1, int(bins_of(step * (1 - margin))))
    high = BINS if widest is None else max(low, int(bins_of(widest * (1 + margin))))
    return range(low, high + 1)


def bins_within(points: Points | TiledPoints, members: list[int]) -> range:
    """The bins that a difference of these columns can be in, by what is public of them."""
    known = [column_facts(points, at) for at in members]
    bounds = [(c.high - c.low) / c.scale if c.low is not None and c.high is not None else None for c in known]
    steps = [1 / c.scale if c.integer else None for c in known]
    widest = max((width for width in bounds if width is not None), default=None) if all(bounds) else None
    return candidate_bins(widest, min((step for step in steps if step), default=None) if all(steps) else None)


def column_facts(points: Points | TiledPoints, at: int) -> Column:
    """What is public of a column."""
    (found,) = points.schema.only([points.columns[at]]).columns or ()
    return found


def interval(errors: ArrayLike, level: int) -> tuple[int, int]:
    """The first and the last bin that misses by no more than this; all bins in between do too."""
    within = np.flatnonzero(np.asarray(errors) <= level) + 1
    return (int(within[0]), int(within[-1])) if len(within) else (0, 0)
