"""Columns of few observations, learnt of together: what they share comes from all of them, and costs no more.

An entry is in one cell, of one column and one phase, and besides in one sum over all of them; both share the loss of
their part.  (P6) How far columns, phases and cells differ from the whole is kept as far as it exceeds what noise would
give: that is post-processing. Steps are shares of each column's own bounds, or changes, and so can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from wallflower.mechanisms import calibrate, exponential
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.seasons.estimates import (
    FAR,
    LEAST,
    MEAN,
    MOVE,
    QUARTERS,
    QUARTILE,
    SHARES,
    Cells,
    Estimate,
    Ints,
    score_widths,
)
from wallflower.queries.watch.seasons.smoother import Floats

WHOLE: Final = Fraction(1, 4)  # of each part: for the sum over all columns
ENOUGH: Final = 50  # observations times the loss of the width: with fewer, a column by itself gets one at random


def is_needed(columns: int, n: int, epsilon: Fraction) -> bool:
    """Whether columns have too few observations to be learnt of one by one: by public facts."""
    return columns > 1 and n * SHARES["width"] * epsilon < ENOUGH


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The entries of several columns of the same observations."""

    columns: tuple[Cells, ...]

    @property
    def counts(self) -> Ints:
        """How many observations each phase has: public, as times are."""
        return self.columns[0].counts

    def estimate(self, epsilon: Fraction, noise: Noise) -> list[Estimate]:
        """The four parts, one after another, as of a single column.  (P2) (P6)"""
        part = {name: share * epsilon for name, share in SHARES.items()}
        at = self.steps(self.rough_centres(part["rough"], noise))
        width = self.width(at, part["width"], noise)
        far = math.ceil(FAR * width)
        centre = self.centres(at, width, far, part["centre"], noise)
        spread = self.spreads(self.steps(centre), width, far, part["spread"], noise)
        rows = zip(centre, spread, strict=True)
        return [Estimate(centre=middle, spread=wide, width=width) for middle, wide in rows]

    def rough_centres(self, epsilon: Fraction, noise: Noise) -> Floats:
        return self.means([cells.entries for cells in self.columns], MOVE, epsilon, noise)

    def width(self, at: Ints, epsilon: Fraction, noise: Noise) -> float:
        """One width for all columns and phases.  (P3)"""
        widths, scores = self.scores(at)
        return float(widths[exponential(scores, sensitivity=QUARTERS, epsilon=epsilon, noise=noise)]) / QUARTILE

    def scores(self, at: Ints) -> tuple[Ints, list[int]]:
        """Public widths, and by how many quarters each is off three quarters of all distances.  (P3)"""
        return score_widths(np.abs(self._away(at)).ravel(), max(cells.top for cells in self.columns))

    def centres(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        near = np.clip(self._away(at), -far, far)
        return at + self.means(near, min(2 * far, MOVE), epsilon, noise, width)

    def spreads(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        away = np.minimum(np.abs(self._away(at)), far)
        means = self.means(away, min(far, MOVE), epsilon, noise, width * MEAN)
        return np.maximum(means / MEAN, LEAST * width)

    def steps(self, centres: Floats) -> Ints:
        """Centres as whole numbers within the bounds."""
        return np.array([cells.steps(row) for cells, row in zip(self.columns, centres, strict=True)])

    def means(
        self, amounts: Sequence[Ints] | Ints, reach: int, epsilon: Fraction, noise: Noise, deviation: float = 0.0
    ) -> Floats:
        """The mean of every cell: that of all of them, and how far columns and phases are off it.  (P6)

        Amounts move by `reach` at most; `deviation` is theirs within a cell, for what chance makes of a mean.
        """
        whole = WHOLE * epsilon
        total = sum(int(each.sum()) for each in amounts) + calibrate(reach, Loss(whole), step=Fraction(1)).draw(noise)
        middle = total / max(1, sum(map(len, amounts)))
        pairs = zip(self.columns, amounts, strict=True)
        own = [cells.sum_up(each, reach, epsilon - whole, noise) for cells, each in pairs]
        with np.errstate(divide="ignore", invalid="ignore"):
            means, errors = (np.array(each) for each in zip(*own, strict=True))
            errors = errors + deviation**2 / self.counts
        return middle + effects(means - middle, errors, self.counts)

    def _away(self, at: Ints) -> Ints:
        rows = zip(self.columns, at, strict=True)
        return np.array([cells.entries - row[cells.places] for cells, row in rows])


def effects(away: Floats, errors: Floats, counts: Ints) -> Floats:
    """What is kept of how far cells are off: by column, by phase, and of the rest, each as far as it exceeds noise."""
    seen = counts > 0
    away, errors = np.where(seen, away, 0.0), np.where(seen, errors, 0.0)
    weights = counts / max(1, int(counts.sum()))
    column = away @ weights
    phase = (away - column[:, None]).mean(axis=0) * seen
    rest = np.where(seen, away - column[:, None] - phase, 0.0)
    kept = keep(column, errors @ weights**2)[:, None] + keep(phase, errors.mean(axis=0) / len(away))
    return np.asarray(kept + keep(rest, errors))


def keep(values: Floats, errors: Floats) -> Floats:
    """Values around 0 whose errors have these variances, as far as they are larger than that.

    >>> keep(np.array([3.0, -3.0]), np.array([0.0, 0.0])), keep(np.array([1.0, -1.0]), np.array([2.0, 2.0]))
    (array([ 3., -3.]), array([ 0., -0.]))
    """
    energy = float(np.mean(values**2))
    return values * max(0.0, 1 - float(np.mean(errors)) / energy) if energy > 0 else values
