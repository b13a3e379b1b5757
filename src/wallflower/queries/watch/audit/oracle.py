"""The exact probability of every outcome of a short stream: the oracle of the detectors that decide by tables.

`law` follows a detector's own tables, scales and limit, and asks it what its secret is drawn from; the tests force the
detector through every branch and see that it is the same. The loss between neighbouring streams is then found, not
estimated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit import ScriptedNoise
from wallflower.queries.watch.detectors import COARSE_STEPS, Detector, PaperDetector, Sparse, Staircase
from wallflower.queries.watch.detectors.base import Ints
from wallflower.queries.watch.detectors.sparse import PassTable
from wallflower.queries.watch.detectors.staircase import WHOLE, Table

Floats = NDArray[np.float64]
Flags = tuple[bool, ...]
Chances = tuple[Floats, Floats]  # of a yes, and of a no, so that neither is one less the other
Odds = list[Floats]  # P(none), P(far), P(near), one for each value of the secret
Side = tuple[Floats, list[Odds]]  # the law of a secret, and the odds of each observation under it

NEVER: Final[Chances] = (np.zeros(1), np.ones(1))
REACH: Final = 45  # scales beyond which a secret is omitted: less than 1e-19


def law(detector: Any, stream: Sequence[int], *, only: Flags | None = None) -> dict[Flags, float]:
    """P(flags) for all outcomes of a stream, or for one; those that stop early are shorter.

    >>> found = law(Staircase(threshold=0, sensitivity=1, epsilon=Fraction(1)), [0])
    >>> {flags: round(chance, 6) for flags, chance in found.items()}
    {(True,): 0.731059, (False,): 0.268941}
    """
    sides = _sides(detector, np.array(stream, dtype=np.int64))
    limit = math.inf if detector.limit is None else detector.limit
    found: dict[Flags, float] = {}

    def walk(flags: Flags, spent: int, weights: list[Floats]) -> None:
        at = len(flags)
        if at == len(stream) or spent >= limit - 1:
            found[flags] = found.get(flags, 0.0) + math.prod(float(weight.sum()) for weight in weights)
            return
        left = list(weights)
        for side, (_, odds) in enumerate(sides):
            for cost in (1, 2):
                if only is None or only[at]:
                    walk((*flags, True), spent + cost, [*left[:side], left[side] * odds[at][cost], *left[side + 1 :]])
            left[side] = left[side] * odds[at][0]
        if only is None or not only[at]:
            walk((*flags, False), spent, left)

    walk((), 0, [weights for weights, _ in sides])
    return found


def _sides(detector: Any, distances: Ints) -> list[Side]:
    match detector:
        case Staircase():
            stairs = (np.abs(distances) - detector.threshold) // detector.sensitivity + 1
            chances = [Table.of(detector.epsilon).probability(int(k)) for k in stairs]
            return [(np.ones(1), [_odds(_both(chance)) for chance in chances])]
        case PaperDetector():
            ((_, scale),), wide = _secret_requests(detector), COARSE_STEPS / detector.epsilon
            secrets = np.arange(-math.ceil(REACH * scale), math.ceil(REACH * scale) + 1)
            gaps = _coarse(detector, detector.threshold) + secrets - _coarse(detector, np.abs(distances))[:, None]
            return [(_two_sided_law(secrets, scale), [_odds(_beyond(each, wide)) for each in gaps])]
        case Sparse():
            scales = _secret_requests(detector) or [("none", Fraction(0))] * (2 if detector.two_sided else 1)
            sides = (distances, -distances) if detector.two_sided else (np.abs(distances),)
            return [_side(detector, side, scale) for side, (_, scale) in zip(sides, scales, strict=True)]
    raise TypeError(f"{type(detector).__name__} has no law that can be added up")


def _secret_requests(detector: Detector) -> list[tuple[str, Fraction]]:
    """What the secret is drawn from, by the detector's own word."""
    script = ScriptedNoise()
    detector.secret(script)
    return script.asked


def _side(detector: Sparse, distances: Ints, scale: Fraction) -> Side:
    secrets = np.arange(math.ceil(REACH * scale) + 1)
    weights = np.exp(-secrets / float(scale)) * -math.expm1(-1 / scale) if scale else np.ones(1)
    gaps = _coarse(detector, detector.threshold) + secrets - _coarse(detector, distances)[:, None]
    near = [_chances_to_pass(detector.scale, each) for each in gaps]  # and not, each to its own last digit
    if not detector.adaptive:
        return weights, [_odds(each) for each in near]
    beyond = math.ceil(4 * detector.scale)
    far = [_chances_to_pass(2 * detector.scale, each + beyond) for each in gaps]
    return weights, [_odds(one, other) for one, other in zip(near, far, strict=True)]


def _odds(near: Chances, far: Chances = NEVER) -> Odds:
    return [far[1] * near[1], far[0] * np.ones_like(near[0]), far[1] * near[0]]


def _both(chance: Fraction) -> Chances:
    return np.array([float(chance)]), np.array([float(1 - chance)])


def _coarse(detector: Any, distance: Ints | int) -> Ints:
    return np.asarray(distance * np.int64(getattr(detector, "fineness", COARSE_STEPS)) // detector.sensitivity)


def _chances_to_pass(scale: Fraction, gaps: Ints) -> Chances:
    table = PassTable.of(scale).thresholds
    entries = table[np.clip(gaps, 1, len(table)) - 1]
    return np.where(gaps <= 0, 1.0, entries / WHOLE), np.where(gaps <= 0, 0.0, (~entries + np.uint64(1)) / WHOLE)


def _two_sided_law(draws: Ints, scale: Fraction) -> Floats:
    return np.asarray(np.exp(-np.abs(draws) / float(scale)) * math.tanh(1 / scale / 2))


def _beyond(gaps: Ints, scale: Fraction) -> Chances:
    """P(draw >= gap) of the two-sided law, and P(draw < gap)."""
    rare = np.exp(-np.where(gaps > 0, gaps, 1 - gaps) / float(scale)) / (1 + math.exp(-1 / scale))
    return np.where(gaps > 0, rare, 1 - rare), np.where(gaps > 0, 1 - rare, rare)


def loss_between(one: Mapping[Flags, float], other: Mapping[Flags, float]) -> tuple[float, Flags]:
    """The largest |log ratio| of two laws, and the outcome it is found at."""
    found = {flags: log_ratio(one.get(flags, 0.0), other.get(flags, 0.0)) for flags in {**one, **other}}
    worst = max(found, key=lambda flags: found[flags])
    return found[worst], worst


def log_ratio(p: float, q: float) -> float:
    if p == q:
        return 0.0
    return abs(math.log(p / q)) if p and q else math.inf
