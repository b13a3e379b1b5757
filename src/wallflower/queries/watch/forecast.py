"""What a watch will be worth, from public numbers: rates of each mechanism, and what a person who stays pays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.privacy import Kind, Loss, epsilon_of_zcdp
from wallflower.queries.watch.adaptive_rates import IntegralRates, Normal, detector_law
from wallflower.queries.watch.detectors import Detector, Every, PaperDetector, Sparse, Staircase
from wallflower.queries.watch.rates import (
    Mechanism,
    Rates,
    rates,
    rates_of_tail,
    roc,
    run_interval,
    true_positive_at,
)

POINTS: Final = 120
MOST_ALARMS: Final = 0.1  # who flags more of what is usual is judged by what it would find at this rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How often a mechanism is right; `run` is where the false positive rate of one run lies, nine times of ten."""

    mechanism: str
    rates: Rates
    run: tuple[float, float]
    bounded: float | None = None

    @property
    def lift(self) -> float:
        """True less false positives; for a person, where more than `MOST_ALARMS` are flagged, at that rate instead."""
        if self.bounded is not None:
            return self.bounded - MOST_ALARMS
        return self.rates.true_positive - self.rates.false_positive


def outlook(detector: Detector, move: float, *, variance: float, truth: float, threshold: float) -> Outlook:
    """The rates of a detector whose distance one entry moves by `move`, in units of the statistic."""
    if isinstance(detector, Every):
        found = rates_of_tail(_normal(detector, move), variance=variance, truth=truth, threshold=threshold)
        bounded = None
        if found.false_positive > MOST_ALARMS:
            bounded = _normal(detector, move).true_positive_at(MOST_ALARMS, variance, truth)
        run = found.false_positive, found.false_positive
        return Outlook(mechanism="gaussian", rates=found, run=run, bounded=bounded)
    if isinstance(detector, Sparse) and (detector.two_sided or detector.adaptive):
        return _twice(detector, move, variance=variance, truth=truth, threshold=threshold)
    mechanism, own = _law(detector)
    return _known(mechanism, {"variance": variance, "truth": truth, "threshold": threshold, "rho": move} | own)


def others(detector: Detector, move: float, *, variance: float, truth: float, threshold: float) -> list[Outlook]:
    """What else could be done at the same loss, worse or for comparison."""
    world = {"variance": variance, "truth": truth, "threshold": threshold, "rho": move}
    match detector:
        case Staircase(epsilon=epsilon):
            plain, printed = {"epsilon": float(epsilon)}, {"epsilon": float(4 * epsilon)}
            return [_known("laplace", world | plain), _known("paper", world | printed)]
        case Sparse():
            return [_known("svt-laplace", world | _law(detector)[1])]
        case _:
            return []


def _law(detector: Detector) -> tuple[Mechanism, dict[str, Any]]:
    """The mechanism by the name its rates have, and what they need to know of it."""
    match detector:
        case Staircase(epsilon=epsilon):
            return "staircase", {"epsilon": float(epsilon)}
        case PaperDetector(epsilon=epsilon):
            return "paper", {"epsilon": float(4 * epsilon)}
        case Sparse(epsilon=epsilon, cutoff=cutoff, two_sided=two_sided):
            return "svt-exponential", {"epsilon": float(epsilon), "cutoff": cutoff, "monotone": two_sided}
        case _:
            raise TypeError(f"{type(detector).__name__} has no rates")


def _normal(detector: Every, move: float) -> Normal:
    return Normal(move / math.sqrt(2 * float(detector.loss.rho)))


@dataclass(frozen=True, slots=True)
class RocCurve:
    """Points of a ROC curve, by rising false positives."""

    thresholds: tuple[float, ...]
    false_positive: tuple[float, ...]
    true_positive: tuple[float, ...]


def curve(detector: Detector, move: float, *, variance: float, truth: float, threshold: float) -> RocCurve:
    """The ROC of a detector over all thresholds."""
    if isinstance(detector, Every):
        return _drawn(_normal(detector, move), variance, truth)
    if isinstance(detector, Sparse) and (detector.two_sided or detector.adaptive):
        return _drawn(detector_law(detector, move), variance, truth)
    mechanism, own = _law(detector)
    world: dict[str, Any] = {"variance": variance, "truth": truth, "rho": move}
    drawn = roc(mechanism, points=POINTS, **world | own)
    order = np.argsort(drawn.false_positive)
    parts = (drawn.thresholds, drawn.false_positive, drawn.true_positive)
    return RocCurve(*(tuple(part[order].tolist()) for part in parts))


def _drawn(law: IntegralRates, variance: float, truth: float) -> RocCurve:
    spread = math.sqrt(variance) + law.wide
    at = np.linspace(truth + 5 * spread, -5 * spread, POINTS).tolist()
    found = [law.rates(variance, truth, threshold) for threshold in at]
    return RocCurve(tuple(at), *zip(*((r.false_positive, r.true_positive) for r in found), strict=True))


def _known(mechanism: Mechanism, setting: dict[str, Any]) -> Outlook:
    found, bounded = rates(mechanism, **setting), None
    if found.false_positive > MOST_ALARMS and mechanism.startswith("svt"):  # the others have no flags to run out of
        world = {name: value for name, value in setting.items() if name != "threshold"}
        bounded = true_positive_at(mechanism, MOST_ALARMS, **world)[1]
    return Outlook(mechanism=mechanism, rates=found, run=run_interval(mechanism, **setting), bounded=bounded)


def _twice(detector: Sparse, move: float, *, variance: float, truth: float, threshold: float) -> Outlook:
    law = detector_law(detector, move)
    found, bounded = law.rates(variance, truth, threshold), None
    if found.false_positive > MOST_ALARMS:
        bounded = law.true_positive_at(MOST_ALARMS, variance, truth)
    run = law.run_interval(variance, truth, threshold)
    return Outlook(mechanism="svt-exponential", rates=found, run=run, bounded=bounded)


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
