"""The centre and the spread of every phase, for one price: a private estimate in four parts.

Entries are whole numbers on a grid of which one change is `MOVE` steps at most. An entry belongs to one column and one
phase, so it is in one sum of each part.  (P1) The parts see what the earlier ones released, and their losses add up.
(P2) Far entries are cut off at three spreads, so that a few outliers do not move what is usual.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from wallflower.mechanisms import calibrate, exponential
from wallflower.noise import Noise, draws
from wallflower.privacy import Loss
from wallflower.queries.watch.seasons.smoother import Floats, smooth

Ints = NDArray[np.int64]

MOVE: Final = 2**12  # steps of the grid that one change of an entry comes to
SHARES: Final[Mapping[str, Fraction]] = {
    "rough": Fraction(1, 5),
    "width": Fraction(1, 5),
    "centre": Fraction(2, 5),
    "spread": Fraction(1, 5),
}
QUARTERS: Final = 4  # of an observation that a score counts in: one entry moves it by so many
QUARTILE: Final = 1.1503  # spreads within which three quarters of a Gaussian lie
MEAN: Final = 0.7979  # the mean distance of a Gaussian, in spreads
FAR: Final = 3.0  # spreads from which on all distances are alike
LEAST: Final = 0.5  # of the width that all phases share: no phase is narrower


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is usual in each phase, in steps, and the width that all phases share."""

    centre: Floats
    spread: Floats
    width: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """The entries of one column, from 0 to `top` steps, each in one of the `phases`."""

    entries: Ints
    places: Ints
    phases: int
    top: int
    is_cycle: bool

    @property
    def counts(self) -> Ints:
        """How many observations each phase has: public, as times are."""
        return np.bincount(self.places, minlength=self.phases)

    def estimate(self, epsilon: Fraction, noise: Noise) -> Estimate:
        """The four parts, one after another.  (P2)"""
        part = {name: share * epsilon for name, share in SHARES.items()}
        at = self.steps(self.rough_centres(part["rough"], noise))
        width = self.width(at, part["width"], noise)
        far = math.ceil(FAR * width)
        centre = self.centres(at, width, far, part["centre"], noise)
        spread = self.spreads(self.steps(centre), width, far, part["spread"], noise)
        return Estimate(centre=centre, spread=spread, width=width)

    def rough_centres(self, epsilon: Fraction, noise: Noise) -> Floats:
        """The mean of each phase, wherever entries lie within their bounds."""
        means, variances = self.sum_up(self.entries, MOVE, epsilon, noise)
        return self._smooth(means, variances, fallback=self.top / 2)

    def width(self, at: Ints, epsilon: Fraction, noise: Noise) -> float:
        """A spread from three quarters of all distances, whatever their phase: chosen among public widths.  (P3)"""
        widths, scores = self.scores(at)
        return float(widths[exponential(scores, sensitivity=QUARTERS, epsilon=epsilon, noise=noise)]) / QUARTILE

    def scores(self, at: Ints) -> tuple[Ints, list[int]]:
        """Public widths, and by how many quarters each is off three quarters of all distances.  (P3)"""
        return score_widths(np.abs(self.entries - at[self.places]), self.top)

    def centres(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        """The same means, corrected by what is nearer than `far` to them."""
        near = np.clip(self.entries - at[self.places], -far, far)
        means, variances = self.sum_up(near, min(2 * far, MOVE), epsilon, noise)
        with np.errstate(divide="ignore"):
            return self._smooth(at + means, variances + width**2 / self.counts, fallback=self.top / 2)

    def spreads(self, at: Ints, width: float, far: int, epsilon: Fraction, noise: Noise) -> Floats:
        """The spread of each phase, from its mean distance; none is much narrower than what all phases share."""
        away = np.minimum(np.abs(self.entries - at[self.places]), far)
        means, variances = self.sum_up(away, min(far, MOVE), epsilon, noise)
        with np.errstate(divide="ignore"):
            found = self._smooth(means, variances + (width * MEAN) ** 2 / self.counts, fallback=width * MEAN)
        return np.maximum(found / MEAN, LEAST * width)

    def steps(self, centres: Floats) -> Ints:
        """Centres as whole numbers within the bounds."""
        return np.clip(np.floor(centres + 0.5), 0, self.top).astype(np.int64)

    def sum_up(self, amounts: Ints, reach: int, epsilon: Fraction, noise: Noise) -> tuple[Floats, Floats]:
        """The noisy mean of each phase, of amounts that one change moves by `reach` at most, and its variance. (P1)"""
        totals = np.zeros(self.phases, dtype=np.int64)
        np.add.at(totals, self.places, amounts)
        law = calibrate(reach, Loss(epsilon), step=Fraction(1))
        noisy = totals + draws(noise, "laplace", law.scale, self.phases)
        with np.errstate(divide="ignore", invalid="ignore"):
            return noisy / self.counts, (law.deviation() / self.counts) ** 2

    def _smooth(self, means: Floats, variances: Floats, *, fallback: float) -> Floats:
        """Numbers for every phase: smooth where phases have neighbours, and a public one where nothing is known."""
        found = np.where(np.isfinite(means), means, fallback)
        return smooth(found, np.where(np.isfinite(means), variances, np.inf)) if self.is_cycle else found


def score_widths(away: Ints, top: int) -> tuple[Ints, list[int]]:
    """Public widths, and by how many quarters each is off three quarters of these distances.  (P3)"""
    widths = candidates(top)
    within = np.searchsorted(np.sort(away), widths, side="right")
    return widths, [-abs(QUARTERS * int(count) - (QUARTERS - 1) * len(away)) for count in within]


def candidates(top: int) -> Ints:
    """Public widths from one step to all of them, eight to a doubling."""
    powers = np.arange(8 * max(1, top).bit_length() + 1)
    return np.unique(np.floor(2.0 ** (powers / 8))).astype(np.int64)
