"""Detectors that add noise to every distance: Gaussian for a person or a window, and Laplace as printed in [Deg20]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

import numpy as np

from wallflower.machine.heavy import scipy_special as _special
from wallflower.mechanisms import calibrate
from wallflower.noise import Noise, draws, round_up
from wallflower.privacy import Loss
from wallflower.queries.watch.detectors.base import (
    COARSE_STEPS,
    Detector,
    Floats,
    Ints,
    Law,
    Output,
    Secret,
    count_gaps,
)

_CONTINUOUS_FROM_SCALE: Final = 64.0  # from this scale on, sums over whole numbers are integrals but for 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianPerStep(Detector):
    """Gaussian noise on every distance, for `steps` observations, or without end when the loss is a window's.  (G)

    loss   of one observation, zero-concentrated
    steps  the number of observations after which the watch is exhausted; None: it never is
    """

    name: ClassVar[str] = "gaussian"
    note: ClassVar[str] = "noise on every observation"

    loss: Loss
    steps: int | None = None

    def __post_init__(self) -> None:
        round_up(self._scale)  # refuses here, before anything is spent

    @property
    def _scale(self) -> Fraction:
        return calibrate(COARSE_STEPS, self.loss, step=Fraction(1)).scale

    @property
    def limit(self) -> int | None:
        return self.steps

    def is_over(self, spent: int) -> bool:
        return self.steps is not None and spent >= self.steps

    def reserve(self, looks: int) -> int:
        return 0 if self.steps is None else looks

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, max_spent: int | None = None
    ) -> Output:
        end = self.steps if self.steps is None or max_spent is None else min(max_spent, self.steps)
        count = len(distances) if end is None else max(0, min(len(distances), end - spent))
        coarse = np.abs(distances[:count]) * COARSE_STEPS // self.sensitivity
        noisy = coarse + draws(noise, "gaussian", self._scale, count)
        flags = noisy >= self.threshold * COARSE_STEPS // self.sensitivity
        return Output(flags, spent + count if self.steps is not None else 0)

    def law(self) -> Law:
        scale = float(round_up(self._scale))
        tail = _integrate_gaussian(scale) if scale >= _CONTINUOUS_FROM_SCALE else _sum_gaussian(scale)
        return lambda distances: tail(count_gaps(self, np.abs(distances), COARSE_STEPS))


def _integrate_gaussian(scale: float) -> Law:
    return lambda gaps: np.asarray(_special.ndtr((0.5 - gaps) / scale))


def _sum_gaussian(scale: float) -> Law:
    """P(noise >= gap), as a sum over whole numbers."""
    reach = math.ceil(40 * scale) + 1
    masses = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0) / np.sum(masses)
    return lambda gaps: tails[np.clip(gaps + reach, 0, 2 * reach + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDetector(Detector):
    """OUTLIERDETECT of [Deg20]: Laplace noise on the threshold, once, and twice as much on every distance.  (O)

    epsilon  the loss of one entry of one observation; the paper's own ε is four times this
    """

    name: ClassVar[str] = "paper"
    note: ClassVar[str] = "as printed, at its true cost for one entry"

    epsilon: Fraction

    def __post_init__(self) -> None:
        round_up(self._query_scale)  # refuses here, before anything is spent

    @property
    def _query_scale(self) -> Fraction:
        return COARSE_STEPS / self.epsilon

    @property
    def _threshold_scale(self) -> Fraction:
        return COARSE_STEPS / (2 * self.epsilon)

    def secret(self, noise: Noise) -> Secret:
        return (noise.laplace(self._threshold_scale),)

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, max_spent: int | None = None
    ) -> Output:
        coarse = np.abs(distances) * COARSE_STEPS // self.sensitivity
        noisy = coarse + draws(noise, "laplace", self._query_scale, len(coarse))
        return Output(noisy >= self.threshold * COARSE_STEPS // self.sensitivity + secret[0], 0)

    def law(self) -> Law:
        query, shared = (math.exp(-1 / float(round_up(scale))) for scale in (self._query_scale, self._threshold_scale))
        return lambda distances: _laplace_difference_tail(
            count_gaps(self, np.abs(distances), COARSE_STEPS), query, shared
        )

    def law_in_run(self, quantile: float) -> Law:
        scale = float(self._threshold_scale)
        shift = round(math.copysign(1, quantile - 0.5) * -scale * math.log(2 * min(quantile, 1 - quantile)))
        decay = math.exp(-1 / float(self._query_scale))
        return lambda distances: _laplace_tail(count_gaps(self, np.abs(distances), COARSE_STEPS) + shift, decay)


def _laplace_difference_tail(gaps: Ints, first: float, second: float) -> Floats:
    """P(X - Y >= gap) for discrete Laplace X and Y of these decays, by partial fractions; they must differ."""

    def mass(decay: float, other: float) -> float:
        return (1 - decay) / (1 + decay) * (1 - other) ** 2 / ((1 - other / decay) * (1 - other * decay))

    away = np.where(gaps > 0, gaps, 1 - gaps)
    pairs = ((first, second), (second, first))
    tail = sum(mass(decay, other) * decay**away / (1 - decay) for decay, other in pairs)
    return np.asarray(np.where(gaps > 0, tail, 1 - tail))


def _laplace_tail(gaps: Ints, decay: float) -> Floats:
    tail = decay ** np.where(gaps > 0, gaps, 1 - gaps).astype(np.float64) / (1 + decay)
    return np.asarray(np.where(gaps > 0, tail, 1 - tail))
