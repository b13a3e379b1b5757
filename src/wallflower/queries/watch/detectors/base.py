"""The contract of a detector.

A detector draws its `secret` once (the noise on its thresholds), then decides batch by batch. It remembers nothing but
the secret and how much of its `limit` is spent, so a watch can be closed and resumed. Proof: proof.md, labels (S) (V)
(T) (A) (G) (W) (O).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.noise import Noise

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Secret = tuple[int, ...]
Law = Callable[[Ints], Floats]  # P(flag) of each distance, in steps of the statistic's grid

COARSE_STEPS: Final = 64  # steps that one entry can move a distance by, where noise is added or tabulated


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """The decisions about a batch: a flag for each of its first `count` observations; the rest were not examined."""

    flags: Flags
    spent: int
    scores: Ints | None = None

    @property
    def count(self) -> int:
        return len(self.flags)


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """The law of a mechanism, as a plan shows it.

    law         P(flag) of a distance over many watches
    law_in_run  the same in a watch whose thresholds stand at a quantile of their law; gives None without a secret
    """

    mechanism: str
    note: str
    law: Law
    law_in_run: Callable[[float], Law | None] = lambda quantile: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector(ABC):
    """Decides whether distances are beyond a threshold.

    Distances are whole steps of a statistic's grid, with a sign where the statistic has one.

    threshold    flag from this many steps on
    sensitivity  the number of steps that one entry can move a distance by
    """

    name: ClassVar[str]  # of the mechanism, in plans and readings
    note: ClassVar[str]  # what a plan says about it, in a few words

    threshold: int
    sensitivity: int

    @property
    def limit(self) -> int | None:
        """How much may be spent before the watch is exhausted; None: it never is."""
        return None

    def is_over(self, spent: int) -> bool:
        """Whether nothing more may be decided after spending this much."""
        return False

    def secret(self, noise: Noise) -> Secret:
        """Draw what is drawn once. It must be durable before the first decision is released."""
        return ()

    def reserve(self, looks: int) -> int:
        """Return how much to set aside before this many looks. Where it is used up, the looks end."""
        return 0

    @abstractmethod
    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, max_spent: int | None = None
    ) -> Output:
        """Decide in order, as many as the limit allows, or `max_spent` where that is less."""

    @abstractmethod
    def law(self) -> Law:
        """Return P(flag) of a distance over many watches: the exact law of the whole numbers in use."""

    def law_in_run(self, quantile: float) -> Law | None:
        """Return P(flag) in a watch whose thresholds stand at this quantile of their law; None if it has no secret."""
        return None

    def chances(self) -> Chances:
        """Return the law of the detector, for a plan."""
        return Chances(self.name, self.note, self.law(), self.law_in_run)

    def alternatives(self, step: float) -> tuple[Chances, ...]:
        """Return the laws of worse mechanisms at the same cost, for comparison. A grid step is `step` wide."""
        return ()

    def flags_until_end(self) -> tuple[int, ...] | None:
        """Return after how many flags the watch ends (a range has two ends); None if flags do not end it."""
        return None


def count_gaps(detector: Detector, distances: Ints, fineness: int) -> Ints:
    """Return how far distances are short of the threshold, in coarse steps, rounded as the detectors round."""
    fine = np.int64(fineness)
    return np.asarray(detector.threshold * fine // detector.sensitivity - distances * fine // detector.sensitivity)
