"""How likely a detector flags a distance: the exact law of its whole numbers, over coins and over what is drawn once.

`law_of` is the law over many watches. `run_law` is that of one watch, whose noise on the threshold stands at a quantile
of its own law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.machine.lazy import Lazy
from wallflower.mechanisms import calibrate
from wallflower.noise import round_up
from wallflower.queries.watch.detectors import FINEST, Detector, Every, PaperDetector, Sparse, Staircase

if TYPE_CHECKING:
    import scipy.special as _special
else:
    _special = Lazy("scipy.special")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Law = Callable[[Ints], Floats]  # P(flag) of each distance, in steps of the gauge

_SMOOTH: Final = 64.0  # from this scale on, sums over whole numbers are integrals but for 1e-5


def law_of(detector: Detector) -> Law:
    """P(flag) of a distance, over many watches."""
    return _MARGINAL[type(detector)](detector)


def run_law(detector: Detector, quantile: float) -> Law | None:
    """P(flag) of a distance in a watch whose thresholds are that high; None where nothing is drawn once."""
    made = _OF_ONE_RUN.get(type(detector))
    return None if made is None else made(detector, quantile)


def _staircase(detector: Staircase) -> Law:
    epsilon = float(detector.epsilon)
    toll = float(np.logaddexp(0.0, epsilon))

    def law(distances: Ints) -> Floats:
        stairs = (np.abs(distances) - detector.threshold) // detector.move + 1
        rare = np.exp(epsilon * np.minimum(stairs, 1 - stairs) - toll)
        return np.asarray(np.where(stairs <= 0, rare, 1 - rare))

    return law


def _gaps(detector: Any, distances: Ints, fineness: int) -> Ints:
    """How far a distance is short of the threshold, in coarse steps, rounded as the detectors do."""
    fine = np.int64(fineness)
    return np.asarray(detector.threshold * fine // detector.move - distances * fine // detector.move)


# The sparse vector


@dataclass(frozen=True, slots=True)
class _Side:
    """One comparison: `decay` is e^(-1/b) of the noise on a query, `high` the law of the noise on the threshold."""

    decay: float
    high: float  # P(threshold noise >= z + 1 | >= z); 0: there is none

    def near(self, gaps: Ints) -> Floats:
        sure = np.where(gaps > 0, 0.0, 1 - self.high ** np.maximum(1 - gaps, 0).astype(np.float64))
        return np.asarray(sure + self._short(gaps, self.decay))

    def near_or_far(self, gaps: Ints, beyond: int) -> Floats:
        """The chance to pass a test of an adaptive detector: the far one, e^(-(g + beyond)/2b), else the near one."""
        half = math.sqrt(self.decay)
        far = self._short(gaps, half) - self._short(gaps, half**3)
        return np.asarray(self.near(gaps) + half**beyond * far)

    def _short(self, gaps: Ints, rate: float) -> Floats:
        """The mean of rate^g over the noise on the threshold, where the gap g is above 0."""
        waited = self.high ** np.maximum(1 - gaps, 0).astype(np.float64)
        return np.asarray(
            waited * (1 - self.high) / (1 - self.high * rate) * rate ** np.maximum(gaps, 1).astype(np.float64)
        )


def _sparse_law(detector: Sparse, side: _Side, risen: int) -> Law:
    beyond = math.ceil(4 * detector.scale)

    def passes(distances: Ints) -> Floats:
        gaps = _gaps(detector, distances, detector.fineness) + risen
        return side.near_or_far(gaps, beyond) if detector.adaptive else side.near(gaps)

    def law(distances: Ints) -> Floats:
        if not detector.two_sided:
            return passes(np.abs(distances))
        above, below = passes(distances), passes(-distances)
        return np.asarray(above + below - above * below)

    return law


def _sparse(detector: Sparse) -> Law:
    side = _Side(math.exp(-1 / detector.scale), math.exp(-detector.parts[0] / detector.fineness))
    return _sparse_law(detector, side, 0)


def _sparse_run(detector: Sparse, quantile: float) -> Law:
    """With two thresholds both stand at the quantile, which is a little far out."""
    risen = math.floor(-math.log1p(-quantile) * detector.fineness / detector.parts[0])
    return _sparse_law(detector, _Side(math.exp(-1 / detector.scale), 0.0), risen)


# Noise on every distance


def _every(detector: Every) -> Law:
    scale = float(round_up(calibrate(FINEST, detector.loss, step=Fraction(1)).scale))
    tail = _smooth_gaussian(scale) if scale >= _SMOOTH else _counted_gaussian(scale)
    return lambda distances: tail(_gaps(detector, np.abs(distances), FINEST))


def _smooth_gaussian(scale: float) -> Law:
    return lambda least: np.asarray(_special.ndtr((0.5 - least) / scale))


def _counted_gaussian(scale: float) -> Law:
    """P(noise >= least), by counting."""
    reach = math.ceil(40 * scale) + 1
    masses = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * scale**2))
    tails = np.append(np.cumsum(masses[::-1])[::-1], 0.0) / np.sum(masses)
    return lambda least: tails[np.clip(least + reach, 0, 2 * reach + 1)]


def _paper(detector: PaperDetector) -> Law:
    query, shared = (math.exp(-1 / float(round_up(scale))) for scale in _paper_scales(detector))
    return lambda distances: _two_laplaces(_gaps(detector, np.abs(distances), FINEST), query, shared)


def _paper_run(detector: PaperDetector, quantile: float) -> Law:
    query, shared = map(float, _paper_scales(detector))
    risen = math.copysign(1, quantile - 0.5) * -shared * math.log(2 * min(quantile, 1 - quantile))

    def law(distances: Ints) -> Floats:
        return _laplace_tail(_gaps(detector, np.abs(distances), FINEST) + round(risen), math.exp(-1 / query))

    return law


def _paper_scales(detector: PaperDetector) -> tuple[Any, Any]:
    return FINEST / detector.epsilon, FINEST / (2 * detector.epsilon)


def _two_laplaces(least: Ints, first: float, second: float) -> Floats:
    """P(X - Y >= least) for discrete Laplace X and Y of these decays, by partial fractions; they must differ."""

    def part(own: float, other: float) -> tuple[float, float]:
        return (1 - own) / (1 + own) * (1 - other) ** 2 / ((1 - other / own) * (1 - other * own)), own

    away = np.where(least > 0, least, 1 - least)
    tail = sum(mass * own**away / (1 - own) for mass, own in (part(first, second), part(second, first)))
    return np.asarray(np.where(least > 0, tail, 1 - tail))


def _laplace_tail(least: Ints, decay: float) -> Floats:
    tail = decay ** np.where(least > 0, least, 1 - least).astype(np.float64) / (1 + decay)
    return np.asarray(np.where(least > 0, tail, 1 - tail))


_MARGINAL: Final[dict[type, Callable[[Any], Law]]] = {
    Staircase: _staircase,
    Sparse: _sparse,
    Every: _every,
    PaperDetector: _paper,
}
_OF_ONE_RUN: Final[dict[type, Callable[[Any, float], Law]]] = {Sparse: _sparse_run, PaperDetector: _paper_run}
