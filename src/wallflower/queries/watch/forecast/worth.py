"""What a watch will be worth, from public numbers: how often it is right, and what a person who stays pays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from wallflower.privacy import Kind, Loss, epsilon_of_zcdp
from wallflower.queries.watch.detectors import Detector, Every, PaperDetector, Sparse, Staircase
from wallflower.queries.watch.forecast.chances import Law, law_of, run_law
from wallflower.queries.watch.forecast.integrals import Tail
from wallflower.queries.watch.forecast.population import Population
from wallflower.queries.watch.forecast.statement import population
from wallflower.queries.watch.rates import laplace_noise, sum_of_laplaces

if TYPE_CHECKING:
    from wallflower.queries.watch.parameters import WatchSettings

POINTS: Final = 120
MOST_ALARMS: Final = 0.1  # of a watch for a person that flags more, it is said what it would find at this rate
LIFT: Final = 0.5  # true less false positives, of a watch that is worth its loss
RIGHT: Final = 0.5  # the share of its flags that are right
RUNS: Final = (0.95, 0.05)  # how high the thresholds of a run are that flags few, and many
FEW: Final = 2**12  # observations of a crowd where thresholds are searched
_ENDS: Final = 1e-4  # false positives where a curve begins, and one less where it ends
_NAMES: Final[Mapping[type, str]] = {
    Staircase: "staircase",
    PaperDetector: "paper",
    Sparse: "svt-exponential",
    Every: "gaussian",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How often a mechanism is right, where `share` of the observations are outliers.

    `run` is where the false positive rate of one watch lies, nine times of ten, if something is drawn once a watch.
    """

    mechanism: str
    true_positive: float
    false_positive: float
    share: float
    run: tuple[float, float] | None = None

    @property
    def lift(self) -> float:
        """True less false positives."""
        return self.true_positive - self.false_positive

    @property
    def flags(self) -> float:
        """How many flags an observation makes."""
        return self.share * self.true_positive + (1 - self.share) * self.false_positive

    @property
    def right(self) -> float:
        """How likely it is that an observation which is flagged is an outlier."""
        hits = self.share * self.true_positive
        return hits / self.flags if hits else 0.0

    @property
    def is_useful(self) -> bool:
        return self.lift >= LIFT and self.right >= RIGHT


@lru_cache(maxsize=8)
def scene(bare: WatchSettings, dimension: int) -> Population:
    """The observations that a watch will see, as it measures them; `bare` says nothing of how it decides."""
    return population(bare.statement(dimension), bare.gauge(dimension))


def name_of(detector: Detector) -> str:
    """What the mechanism is called."""
    return _NAMES[type(detector)]


def outlook(detector: Detector, seen: Population, share: float) -> Outlook:
    """How often a detector is right."""
    return _outlook_of(name_of(detector), law_of(detector), seen, share, _run_range(detector, seen))


def others(detector: Detector, step: float, seen: Population, share: float) -> Iterator[Outlook]:
    """What else could be done at the same loss, worse or for comparison; distances count `step` each."""
    match detector:
        case Staircase(threshold=threshold, move=move, epsilon=epsilon):
            plain = laplace_noise(move * step / float(epsilon))
            yield _outlook_of("laplace", _noisy(plain, threshold, step), seen, share)
            yield outlook(PaperDetector(threshold=threshold, move=move, epsilon=epsilon), seen, share)
        case Sparse(threshold=threshold, move=move, epsilon=epsilon, cutoff=cutoff):
            unit, ratio = move * step / float(epsilon), (2 * cutoff) ** (2 / 3)
            usual = sum_of_laplaces(2 * cutoff * unit * (1 + 1 / ratio), unit * (1 + ratio))
            yield _outlook_of("svt-laplace", _noisy(usual, threshold, step), seen, share)


def _outlook_of(
    mechanism: str, law: Law, seen: Population, share: float, run: tuple[float, float] | None = None
) -> Outlook:
    return Outlook(
        mechanism=mechanism,
        true_positive=seen.outliers.mean(law),
        false_positive=seen.others.mean(law),
        share=share,
        run=run,
    )


def _run_range(detector: Detector, seen: Population) -> tuple[float, float] | None:
    low, high = (law and seen.others.mean(law) for law in (run_law(detector, quantile) for quantile in RUNS))
    return None if low is None or high is None else (low, high)


def _noisy(tail: Tail, threshold: int, step: float) -> Law:
    """Plain noise on the distance."""
    return lambda distances: np.exp(tail.log_above((threshold - np.abs(distances)) * step))


# Thresholds


@dataclass(frozen=True, slots=True)
class RocCurve:
    """Points of a ROC curve, by rising false positives; thresholds in steps of the gauge."""

    thresholds: tuple[int, ...]
    false_positive: tuple[float, ...]
    true_positive: tuple[float, ...]


def curve(detector: Detector, seen: Population) -> RocCurve:
    """The ROC of a detector over all thresholds."""
    few = seen.thin(FEW)
    high, low = (_threshold_at(detector, few, level) for level in (_ENDS, 1 - _ENDS))
    at = sorted({round(place) for place in np.linspace(low, high, POINTS).tolist()}, reverse=True)
    laws = [law_of(replace(detector, threshold=threshold)) for threshold in at]
    found = ([crowd.mean(law) for law in laws] for crowd in (few.others, few.outliers))
    return RocCurve(tuple(at), *(tuple(np.clip(shares, 0, 1).tolist()) for shares in found))


def true_positive_at_few_alarms(detector: Detector, seen: Population) -> float:
    """The true positive rate at the threshold where `MOST_ALARMS` of the others are flagged."""
    few = seen.thin(FEW)
    threshold = _threshold_at(detector, few, MOST_ALARMS)
    return few.outliers.mean(law_of(replace(detector, threshold=threshold)))


def _threshold_at(detector: Detector, seen: Population, wanted: float) -> int:
    """The lowest threshold, in steps, at which no more than a wanted share of the others is flagged."""
    low, high = -1, int(np.max(np.abs(seen.others.distances))) + 1

    def is_enough(threshold: int) -> bool:
        return seen.others.mean(law_of(replace(detector, threshold=threshold))) <= wanted

    while is_enough(low) and low > -(2**52):
        low *= 2
    while not is_enough(high) and high < 2**52:
        high *= 2
    while high - low > 1 + abs(high) // 2**12:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


# Prices


def printed_costs(epsilon: Fraction, *, flags: int, observations: int) -> dict[str, Fraction]:
    """What OUTLIERDETECT of [Deg20] costs at its own ε: `printed`, which depends on how many flags there were; `entry`,
    what one entry of one observation really pays; `person` after these flags, and before any is seen.

    >>> {name: str(cost) for name, cost in printed_costs(Fraction(3, 10), flags=7, observations=1000).items()}
    {'printed': '6/5', 'entry': '3/40', 'person': '6/5', 'person_at_most': '75'}
    """
    printed, at_most = (flags + 1) * epsilon / 2, observations * epsilon / 4
    return {
        "printed": printed,
        "entry": epsilon / 4,
        "person": min(printed, at_most),
        "person_at_most": at_most,
    }


def loss_of_staying(loss: Loss, steps: int, delta: float = 1e-6) -> Loss | None:
    """What someone present in `steps` observations pays, when `loss` is that of one: the smaller of plain and advanced
    composition at `delta`; None when there is nothing to translate.

    >>> loss_of_staying(Loss("0.1"), 4)
    Loss(ε=2/5)
    """
    if loss.kind is not Kind.PURE:
        return None
    plain = loss.times(steps)
    bound = epsilon_of_zcdp(steps * float(loss.epsilon) ** 2 / 2, delta)
    if bound >= float(plain.epsilon):
        return plain
    return Loss(Fraction(math.ceil(bound * 1e6), 10**6), delta=Fraction(str(delta)), neighbours=loss.neighbours)
