"""The centre and the spread of every bucket, privately: an estimate in four parts.

Entries are whole numbers on a grid of which one change is at most `CHANGE_STEPS`. An entry belongs to one column and
one bucket, so it is in one sum of each part.  (P1) The parts see what the earlier ones released, and their losses add
up.  (P2) Entries further than three spreads away are clipped, so that a few outliers do not move what is typical.

Columns with few observations are pooled (`Pool`): an entry is in one cell, of one column and one bucket, and besides in
one sum over all of them; both share the loss of their part.  (P6)

Smoothing and shrinking are post-processing of noisy numbers and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.mechanisms import calibrate, exponential
from wallflower.noise import Noise, draws
from wallflower.privacy import Loss

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHANGE_STEPS: Final = 2**12  # steps of the grid that one change of an entry comes to
SHARES: Final[Mapping[str, Fraction]] = {
    "rough": Fraction(1, 5),
    "width": Fraction(1, 5),
    "centre": Fraction(2, 5),
    "spread": Fraction(1, 5),
}
QUARTERS: Final = 4  # of an observation that a score counts in: the sensitivity of a score
QUARTILE_SPREADS: Final = 1.1503  # within which three quarters of a Gaussian lie
MEAN_DISTANCE: Final = 0.7979  # of a Gaussian from its mean, in spreads
CLIP_SPREADS: Final = 3.0  # distances beyond are clipped
MIN_SPREAD: Final = 0.5  # of the width that all buckets share: no bucket is narrower
POOLED_SHARE: Final = Fraction(1, 4)  # of each part: for the sum over all columns
MIN_SIGNAL: Final = 50  # observations times the loss of the width: with fewer, a column by itself gets a random width


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is typical in each bucket, in steps, and the width that all buckets share."""

    centre: Floats
    spread: Floats
    width: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The entries of one column, from 0 to `top` steps, each in one of `n_buckets` buckets."""

    entries: Ints
    buckets: Ints
    n_buckets: int
    top: int
    is_cycle: bool

    @property
    def counts(self) -> Ints:
        """The number of observations in each bucket: public, as times are."""
        return np.bincount(self.buckets, minlength=self.n_buckets)

    def estimate(self, epsilon: Fraction, noise: Noise) -> Estimate:
        """Estimate the four parts, one after another.  (P2)"""
        part = {name: share * epsilon for name, share in SHARES.items()}
        at = self.steps(self.rough_centres(part["rough"], noise))
        width = self.width(at, part["width"], noise)
        far = math.ceil(CLIP_SPREADS * width)
        centre = self.centres(at, width, far, part["centre"], noise)
        spread = self.spreads(self.steps(centre), width, far, part["spread"], noise)
        return Estimate(centre=centre, spread=spread, width=width)

    def rough_centres(self, epsilon: Fraction, noise: Noise) -> Floats:
        """Return the mean of each bucket, wherever entries lie within their bounds."""
        means, variances = self.sum_up(self.entries, CHANGE_STEPS, epsilon, noise)
        return self._smooth(means, variances, fallback=self.top / 2)

    def width(self, at: Ints, epsilon: Fraction, noise: Noise) -> float:
        """Choose a width among public ones: three quarters of all distances, of any bucket, lie within it.  (P3)"""
        widths, scores = self.scores(at)
        return float(widths[exponential(scores, sensitivity=QUARTERS, epsilon=epsilon, noise=noise)]) / QUARTILE_SPREADS

    def scores(self, at: Ints) -> tuple[Ints, list[int]]:
        """Return public widths, and by how many quarters each misses three quarters of all distances.  (P3)"""
        return score_widths(np.abs(self.entries - at[self.buckets]), self.top)

    def centres(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        """Return the same means, corrected by the entries within `far` of them."""
        near = np.clip(self.entries - at[self.buckets], -far, far)
        means, variances = self.sum_up(near, min(2 * far, CHANGE_STEPS), epsilon, noise)
        with np.errstate(divide="ignore"):
            return self._smooth(at + means, variances + width**2 / self.counts, fallback=self.top / 2)

    def spreads(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        """Return the spread of each bucket, from its mean distance; none is much narrower than the common width."""
        away = np.minimum(np.abs(self.entries - at[self.buckets]), far)
        means, variances = self.sum_up(away, min(far, CHANGE_STEPS), epsilon, noise)
        with np.errstate(divide="ignore"):
            distances = self._smooth(
                means, variances + (width * MEAN_DISTANCE) ** 2 / self.counts, fallback=width * MEAN_DISTANCE
            )
        return np.maximum(distances / MEAN_DISTANCE, MIN_SPREAD * width)

    def steps(self, centres: Floats) -> Ints:
        """Return centres as whole numbers within the bounds."""
        return np.clip(np.floor(centres + 0.5), 0, self.top).astype(np.int64)

    def sum_up(self, amounts: Ints, reach: int, epsilon: Fraction, noise: Noise) -> tuple[Floats, Floats]:
        """Return the noisy mean of each bucket and its variance, of amounts with sensitivity `reach`.  (P1)"""
        totals = np.zeros(self.n_buckets, dtype=np.int64)
        np.add.at(totals, self.buckets, amounts)
        law = calibrate(reach, Loss(epsilon), step=Fraction(1))
        noisy = totals + draws(noise, "laplace", law.scale, self.n_buckets)
        with np.errstate(divide="ignore", invalid="ignore"):
            return noisy / self.counts, (law.deviation() / self.counts) ** 2

    def _smooth(self, means: Floats, variances: Floats, *, fallback: float) -> Floats:
        """Fill empty buckets with a public number, and smooth where buckets have neighbours."""
        filled = np.where(np.isfinite(means), means, fallback)
        return smooth(filled, np.where(np.isfinite(means), variances, np.inf)) if self.is_cycle else filled


def score_widths(away: Ints, top: int) -> tuple[Ints, list[int]]:
    """Return public widths, and by how many quarters each misses three quarters of these distances.  (P3)"""
    widths = candidate_widths(top)
    within = np.searchsorted(np.sort(away), widths, side="right")
    return widths, [-abs(QUARTERS * int(count) - (QUARTERS - 1) * len(away)) for count in within]


def candidate_widths(top: int) -> Ints:
    """Return public widths from one step to all of them, eight to a doubling."""
    powers = np.arange(8 * max(1, top).bit_length() + 1)
    return np.unique(np.floor(2.0 ** (powers / 8))).astype(np.int64)


# Columns with few observations


def needs_pool(columns: int, n: int, epsilon: Fraction) -> bool:
    """Whether columns have too few observations to be estimated one by one; from public facts."""
    return columns > 1 and n * SHARES["width"] * epsilon < MIN_SIGNAL


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The entries of several columns of the same observations."""

    columns: tuple[Cells, ...]

    @property
    def counts(self) -> Ints:
        """The number of observations in each bucket: public, as times are."""
        return self.columns[0].counts

    def estimate(self, epsilon: Fraction, noise: Noise) -> list[Estimate]:
        """Estimate the four parts, one after another, as for a single column.  (P2) (P6)"""
        part = {name: share * epsilon for name, share in SHARES.items()}
        at = self.steps(self.rough_centres(part["rough"], noise))
        width = self.width(at, part["width"], noise)
        far = math.ceil(CLIP_SPREADS * width)
        centre = self.centres(at, width, far, part["centre"], noise)
        spread = self.spreads(self.steps(centre), width, far, part["spread"], noise)
        rows = zip(centre, spread, strict=True)
        return [Estimate(centre=middle, spread=wide, width=width) for middle, wide in rows]

    def rough_centres(self, epsilon: Fraction, noise: Noise) -> Floats:
        return self.means([cells.entries for cells in self.columns], CHANGE_STEPS, epsilon, noise)

    def width(self, at: Ints, epsilon: Fraction, noise: Noise) -> float:
        """Choose one width for all columns and buckets.  (P3)"""
        widths, scores = self.scores(at)
        return float(widths[exponential(scores, sensitivity=QUARTERS, epsilon=epsilon, noise=noise)]) / QUARTILE_SPREADS

    def scores(self, at: Ints) -> tuple[Ints, list[int]]:
        """Return public widths, and by how many quarters each misses three quarters of all distances.  (P3)"""
        return score_widths(np.abs(self._away(at)).ravel(), max(cells.top for cells in self.columns))

    def centres(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        near = np.clip(self._away(at), -far, far)
        return at + self.means(near, min(2 * far, CHANGE_STEPS), epsilon, noise, width)

    def spreads(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        away = np.minimum(np.abs(self._away(at)), far)
        means = self.means(away, min(far, CHANGE_STEPS), epsilon, noise, width * MEAN_DISTANCE)
        return np.maximum(means / MEAN_DISTANCE, MIN_SPREAD * width)

    def steps(self, centres: Floats) -> Ints:
        """Return centres as whole numbers within the bounds."""
        return np.array([cells.steps(row) for cells, row in zip(self.columns, centres, strict=True)])

    def means(
        self, amounts: Sequence[Ints] | Ints, reach: int, epsilon: Fraction, noise: Noise, deviation: float = 0.0
    ) -> Floats:
        """Return the mean of every cell: that of all of them, plus shrunken effects of columns and buckets.  (P6)

        Amounts have sensitivity `reach`; `deviation` is their spread within a cell, which a sampled mean inherits.
        """
        whole = POOLED_SHARE * epsilon
        total = sum(int(column.sum()) for column in amounts)
        total += calibrate(reach, Loss(whole), step=Fraction(1)).draw(noise)
        middle = total / max(1, sum(map(len, amounts)))
        pairs = zip(self.columns, amounts, strict=True)
        sums = [cells.sum_up(column, reach, epsilon - whole, noise) for cells, column in pairs]
        with np.errstate(divide="ignore", invalid="ignore"):
            means, errors = (np.array(rows) for rows in zip(*sums, strict=True))
            errors = errors + deviation**2 / self.counts
        return middle + shrink_effects(means - middle, errors, self.counts)

    def _away(self, at: Ints) -> Ints:
        rows = zip(self.columns, at, strict=True)
        return np.array([cells.entries - row[cells.buckets] for cells, row in rows])


def shrink_effects(away: Floats, errors: Floats, counts: Ints) -> Floats:
    """Shrink how far cells are from the mean: by column, by bucket, and the rest, each as far as it exceeds noise."""
    seen = counts > 0
    away, errors = np.where(seen, away, 0.0), np.where(seen, errors, 0.0)
    weights = counts / max(1, int(counts.sum()))
    column = away @ weights
    bucket = (away - column[:, None]).mean(axis=0) * seen
    rest = np.where(seen, away - column[:, None] - bucket, 0.0)
    kept = shrink(column, errors @ weights**2)[:, None] + shrink(bucket, errors.mean(axis=0) / len(away))
    return np.asarray(kept + shrink(rest, errors))


def shrink(values: Floats, errors: Floats) -> Floats:
    """Shrink values around 0 by what their errors, with these variances, explain.

    >>> shrink(np.array([3.0, -3.0]), np.array([0.0, 0.0])), shrink(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    (array([ 3., -3.]), array([ 0., -0.]))
    """
    energy = float(np.mean(values**2))
    return values * max(0.0, 1 - float(np.mean(errors)) / energy) if energy > 0 else values


# Smoothing


def smooth(values: Floats, variances: Floats) -> Floats:
    """Smooth values around a cycle whose errors have these variances; an infinite one marks a missing value.

    Adjacent buckets are alike, so differences that noise explains are removed. Details are split off scale by scale,
    from one bucket to the next up to a quarter of the cycle; of each scale as much is kept as its energy exceeds what
    noise would give it.

    >>> smooth(np.array([1.0, 1.0, 9.0, 1.0]), np.zeros(4))
    array([1., 1., 9., 1.])
    """
    is_known = np.isfinite(variances)
    if not is_known.any():
        return values
    rest = np.interp(np.arange(len(values)), *_around(values, is_known))
    error = float(np.mean(variances[is_known]))
    kernel = np.zeros(len(values))
    kernel[0] = 1.0
    kept, reach = np.zeros(len(values)), 1
    while 4 * reach <= len(values):
        lower, wider = _mean_of_three(rest, reach), _mean_of_three(kernel, reach)
        detail, chance = rest - lower, error * float(np.sum((kernel - wider) ** 2))
        energy = float(np.mean(detail**2))
        kept += detail * max(0.0, 1 - chance / energy) if energy > 0 else 0.0
        rest, kernel, reach = lower, wider, 2 * reach
    return kept + rest


def _around(values: Floats, is_known: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Positions and values of what is known, repeated once before and once after the cycle."""
    positions, size = np.flatnonzero(is_known).astype(np.float64), len(values)
    known = values[is_known]
    return np.concatenate([positions - size, positions, positions + size]), np.tile(known, 3)


def _mean_of_three(values: Floats, reach: int) -> Floats:
    return (np.roll(values, reach) + values + np.roll(values, -reach)) / 3
