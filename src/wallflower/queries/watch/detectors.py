"""Who decides: from distances on a grid to flags, and when to stop.

A detector draws its `secret` once (the noise on its thresholds), then decides batch by batch. All it remembers is the
secret and how much of its `limit` is spent, so a watch can be put down and taken up again. Proof: proof.md, labels
(S) (V) (T) (A) (G) (W) (O).
"""

from __future__ import annotations

import math
from dataclasses import Field, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError
from wallflower.mechanisms import calibrate
from wallflower.noise import Noise, draws, round_up, words
from wallflower.privacy import Loss
from wallflower.queries.watch.staircase import Table, check_epsilon
from wallflower.queries.watch.tails import LONGEST, SHARPEST, PassTable, geometric

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Secret = tuple[int, ...]

FINEST: Final = 64  # coarse steps that one entry can move a distance by, where noise is tabulated


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What a batch came to: a flag for each of the first `count` observations, the rest is not looked at any more."""

    flags: Flags
    spent: int
    scores: Ints | None = None

    @property
    def count(self) -> int:
        return len(self.flags)


class Detector(Protocol):
    """Decides whether distances (in steps of the gauge, signed where it has signs) are far."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def threshold(self) -> int:
        """From how many steps on a distance is far."""

    @property
    def move(self) -> int:
        """By how many steps one entry moves a distance at most."""

    @property
    def limit(self) -> int | None:
        """How much may be spent before the watch is exhausted; None: it never is."""

    def is_over(self, spent: int) -> bool:
        """Whether so much was spent that nothing more may be decided."""

    def secret(self, noise: Noise) -> Secret:
        """What is drawn once, and must be kept before the first decision is told."""

    def ahead(self, looks: int) -> int:
        """How much to set aside before so many looks. Where it is used up, they end."""

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, most: int | None = None
    ) -> Decisions:
        """Decide in order, as many as the limit allows, or `most` where that is less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staircase:
    """One coin for each observation, its odds by how many moves the distance is beyond the threshold.  (S)

    Released    one bit, or with `scores` one whole number, an observation    Unit  one entry of one observation
    """

    threshold: int
    move: int
    epsilon: Fraction
    scores: bool = False

    def __post_init__(self) -> None:
        if not self.scores:
            check_epsilon(self.epsilon)  # refuses here, before anything is spent
        else:
            round_up(1 / self.epsilon)

    @property
    def limit(self) -> None:
        return None

    def is_over(self, spent: int) -> bool:
        return False

    def secret(self, noise: Noise) -> Secret:
        return ()

    def ahead(self, looks: int) -> int:
        return 0

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, most: int | None = None
    ) -> Decisions:
        stairs = (np.abs(distances) - self.threshold) // self.move + 1
        if self.scores:
            noisy = stairs + draws(noise, "laplace", 1 / self.epsilon, len(stairs))
            return Decisions(noisy >= 1, 0, noisy)
        return Decisions(Table.of(self.epsilon).flags(stairs, words(noise, len(stairs))), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparse:
    """The sparse vector with exponential noise: a noisy threshold, once, and `cutoff` flags at most.  (V)

    `two_sided` (contributions of one sign) asks above and below, each with a threshold of its own, at half the
    noise.  (T) `adaptive` asks first whether the distance is far beyond, which costs half.  (A)
    """

    threshold: int
    move: int
    epsilon: Fraction
    cutoff: int
    two_sided: bool = False
    adaptive: bool = False

    def __post_init__(self) -> None:
        if self.fineness < 1:
            raise ParameterError(
                f"cutoff: {self.cutoff} flags at ε={self.epsilon} need more noise than can be tabulated. Lower the "
                "cutoff, or spend more."
            )

    @property
    def limit(self) -> int:
        return 2 * self.cutoff

    def is_over(self, spent: int) -> bool:
        return spent >= self.limit - 1  # one more flag must always be affordable

    @property
    def parts(self) -> tuple[Fraction, Fraction]:
        """What the threshold and what the flags spend: 1 to (moves)^(2/3), which is the best split."""
        return _parts(self.epsilon, self._moves)

    @property
    def fineness(self) -> int:
        """Coarse steps to a move: as fine as the table allows."""
        return _fineness(self.epsilon, self._moves, self.adaptive)

    @property
    def scale(self) -> Fraction:
        """The scale of the noise on a query, in coarse steps; never below what a table can hold."""
        return _scale(self.epsilon, self._moves, self.adaptive)

    @property
    def _moves(self) -> int:
        return self.cutoff * (1 if self.two_sided else 2)

    def secret(self, noise: Noise) -> Secret:
        return tuple(geometric(self.fineness / self.parts[0], noise) for _ in range(2 if self.two_sided else 1))

    def ahead(self, looks: int) -> int:
        return 2 * min(looks, max(1, self.cutoff // 64))

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, most: int | None = None
    ) -> Decisions:
        sides = (distances, -distances) if self.two_sided else (np.abs(distances),)
        costs = np.zeros(len(distances), dtype=np.int64)
        for side, above in zip(sides, secret, strict=True):
            gaps = self._coarse(self.threshold) + above - self._coarse(side)
            costs = np.where(costs == 0, self._costs(gaps, noise), costs)  # a side is asked only if none said yes
        total = spent + np.cumsum(costs)
        end = (self.limit if most is None else min(most, self.limit)) - 1  # one more flag must be affordable
        costs = costs[: 0 if spent >= end else int(np.searchsorted(total, end)) + 1]
        return Decisions(costs > 0, spent + int(costs.sum()))

    def _costs(self, gaps: Ints, noise: Noise) -> Ints:
        near = 2 * PassTable.of(self.scale).passes(gaps, words(noise, len(gaps))).astype(np.int64)
        if not self.adaptive:
            return near
        beyond = gaps + math.ceil(4 * self.scale)
        far = PassTable.of(2 * self.scale).passes(beyond, words(noise, len(gaps)))
        return np.where(far, 1, near)

    def _coarse(self, distance: Ints | int) -> Ints:
        return np.asarray(distance * np.int64(self.fineness) // self.move)


@lru_cache(maxsize=64)
def _parts(epsilon: Fraction, moves: int) -> tuple[Fraction, Fraction]:
    threshold = epsilon / (1 + Fraction(moves ** (2 / 3)))
    return threshold, epsilon - threshold


@lru_cache(maxsize=64)
def _fineness(epsilon: Fraction, moves: int, adaptive: bool) -> int:
    return min(FINEST, math.floor(LONGEST // 46 * _parts(epsilon, moves)[1] / (moves * (2 if adaptive else 1))))


@lru_cache(maxsize=64)
def _scale(epsilon: Fraction, moves: int, adaptive: bool) -> Fraction:
    return max(SHARPEST, moves * _fineness(epsilon, moves, adaptive) / _parts(epsilon, moves)[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Every:
    """Gaussian noise on every distance, for `steps` observations, or for ever when the loss is a window's.  (G)"""

    threshold: int
    move: int
    loss: Loss  # of one observation, zero-concentrated
    steps: int | None = None

    def __post_init__(self) -> None:
        round_up(calibrate(FINEST, self.loss, step=Fraction(1)).scale)  # refuses here, before anything is spent

    @property
    def limit(self) -> int | None:
        return self.steps

    def is_over(self, spent: int) -> bool:
        return self.steps is not None and spent >= self.steps

    def secret(self, noise: Noise) -> Secret:
        return ()

    def ahead(self, looks: int) -> int:
        return 0 if self.steps is None else looks

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, most: int | None = None
    ) -> Decisions:
        end = self.steps if self.steps is None or most is None else min(most, self.steps)
        asked = len(distances) if end is None else max(0, min(len(distances), end - spent))
        coarse = np.abs(distances[:asked]) * FINEST // self.move
        law = calibrate(FINEST, self.loss, step=Fraction(1))
        noisy = coarse + draws(noise, "gaussian", law.scale, asked)
        flags = noisy >= self.threshold * FINEST // self.move
        return Decisions(flags, spent + asked if self.steps is not None else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperDetector:
    """OUTLIERDETECT of [Deg20]: Laplace noise on the threshold, once, and twice as much on every distance.  (O)"""

    threshold: int
    move: int
    epsilon: Fraction  # of one entry of one observation; the paper's own ε is four times this

    def __post_init__(self) -> None:
        round_up(FINEST / self.epsilon)  # refuses here, before anything is spent

    @property
    def limit(self) -> None:
        return None

    def is_over(self, spent: int) -> bool:
        return False

    def secret(self, noise: Noise) -> Secret:
        return (noise.laplace(FINEST / (2 * self.epsilon)),)

    def ahead(self, looks: int) -> int:
        return 0

    def decide(
        self, distances: Ints, secret: Secret, spent: int, noise: Noise, *, most: int | None = None
    ) -> Decisions:
        coarse = np.abs(distances) * FINEST // self.move
        noisy = coarse + draws(noise, "laplace", FINEST / self.epsilon, len(coarse))
        return Decisions(noisy >= self.threshold * FINEST // self.move + secret[0], 0)
