"""True and false positive rates of the detectors that have no closed form, by integration.

Three have none: an adaptive detector, which compares a distance with a far threshold first and with the near one only
if that said no; a two-sided one, which compares both sides of the centre; and Gaussian noise with a searched threshold.
Both comparisons add to the share that is flagged, so the closed form of one comparison in `rates` would be too good.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from wallflower.lazy import Lazy
from wallflower.queries.watch.detectors import Sparse
from wallflower.queries.watch.integrals import Floats
from wallflower.queries.watch.rates import Rates, difference_of_exponentials

if TYPE_CHECKING:
    import scipy.optimize as _optimize
    import scipy.special as _special
else:
    _optimize = Lazy("scipy.optimize")
    _special = Lazy("scipy.special")

REACH: Final = 40.0  # spreads, and scales of noise, beyond which nothing is left
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


class IntegralRates(ABC):
    """Rates from how often each score is flagged."""

    __slots__ = ()

    @property
    @abstractmethod
    def wide(self) -> float:
        """The scale of all noise."""

    @abstractmethod
    def flagged(self, score: Floats, threshold: float) -> Floats:
        """P(flag) of each score."""

    def rates(self, variance: float, truth: float, threshold: float) -> Rates:
        deviation = math.sqrt(variance)
        parts = (0.0, truth), (truth, truth + REACH * deviation)
        fp, tp = (self._share(deviation, low, high, threshold) for low, high in parts)
        return Rates(fp, tp, 1 - fp, 1 - tp)

    def true_positive_at(self, false_positive: float, variance: float, truth: float) -> float:
        """The true positive rate at the threshold with this false positive rate."""
        reach = truth + REACH * (math.sqrt(variance) + self.wide)

        def excess(at: float) -> float:
            return self.rates(variance, truth, at).false_positive - false_positive

        return self.rates(variance, truth, _optimize.brentq(excess, -reach, reach, rtol=1e-6)).true_positive

    def _share(self, deviation: float, low: float, high: float, threshold: float) -> float:
        """The share flagged of scores from low to high; panels shrink towards the bend at the threshold."""
        near = (high - low) * 0.5 ** np.arange(40)
        bends = np.concatenate([threshold - near, threshold + near, np.linspace(low, high, 33)])
        edges = np.sort(np.clip(bends, low, high))
        width = np.diff(edges)[:, None] / 2
        score = edges[:-1, None] + width * (1 + _NODES)
        mass = width * _WEIGHTS * np.exp((low * low - score * score) / (2 * deviation**2))
        return float(np.sum(mass * self.flagged(score, threshold)) / np.sum(mass))


@dataclass(frozen=True, slots=True)
class Normal(IntegralRates):
    """Gaussian noise; also as a tail."""

    deviation: float

    @property
    def wide(self) -> float:
        return self.deviation

    def flagged(self, score: Floats, threshold: float) -> Floats:
        return np.asarray(_special.ndtr((score - threshold) / self.deviation))

    def log_above(self, t: Floats) -> Floats:
        return np.asarray(_special.log_ndtr(-np.asarray(t) / self.deviation))

    def log_below(self, t: Floats) -> Floats:
        return np.asarray(_special.log_ndtr(np.asarray(t) / self.deviation))


def detector_law(detector: Sparse, move: float) -> DetectorLaw:
    """The law of a detector whose distance one entry moves by `move`, in units of the statistic."""
    return DetectorLaw(
        query=float(detector.scale) * move / detector.fineness,
        shared=move / float(detector.parts[0]),
        adaptive=detector.adaptive,
        two_sided=detector.two_sided,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorLaw(IntegralRates):
    """The scales of the noise on a query and on a threshold, and what is asked. A `shared` scale of 0 is no noise."""

    query: float
    shared: float
    adaptive: bool
    two_sided: bool

    @property
    def wide(self) -> float:
        return self.query + self.shared

    def run_interval(self, variance: float, truth: float, threshold: float) -> tuple[float, float]:
        """Where the false positive rate of one run lies, nine times of ten; with two thresholds both are taken to be
        high or low at once, which is a little wide."""
        still, shifts = replace(self, shared=0.0), (-self.shared * math.log(0.05), -self.shared * math.log(0.95))
        low, high = (still.rates(variance, truth, threshold + shift).false_positive for shift in shifts)
        return low, high

    def flagged(self, score: Floats, threshold: float) -> Floats:
        """P(flag) for scores on the upper side; the lower is the same."""
        above = self._passes(threshold - score)
        below = self._passes(threshold + score) if self.two_sided else np.zeros_like(score)
        return np.asarray(above + below - above * below)

    def _passes(self, gap: Floats) -> Floats:
        near = np.exp(difference_of_exponentials(self.query, self.shared).log_above(gap))
        if not self.adaptive:
            return np.asarray(near)
        short, slow, fast = np.maximum(gap, 0), 1 / (2 * self.query), 3 / (2 * self.query)
        far = np.exp(-slow * short) / (1 + slow * self.shared) - np.exp(-fast * short) / (1 + fast * self.shared)
        beyond = np.exp(np.minimum(gap, 0) / self.shared) if self.shared else gap >= 0
        return np.asarray(near + math.exp(-2) * far * beyond)  # far and not near: e^(-(x + 4b)/2b) (1 - e^(-x/b))
