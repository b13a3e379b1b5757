"""Levels of a watch: who is protected, and which detector decides then.

EntryLevel   one entry of one observation (finer than event-level privacy, which protects a whole observation)
WindowLevel  one person over any `window` consecutive observations (w-event privacy)
PersonLevel  one person over the whole stream (user-level privacy)
PaperLevel   one entry of one observation, by the algorithm as printed in [Deg20]

The names are those of units of protection in the ledger. Proof: proof.md, labels (S) (V) (T) (A) (G) (W) (O) (I).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, Self

from wallflower.errors import LossMismatch, ParameterError
from wallflower.privacy import Kind, Loss, Neighbours, zcdp_of_epsilon
from wallflower.queries.watch.detectors import Detector, GaussianPerStep, PaperDetector, Sparse, Staircase

_ROUNDING: Final = Fraction(10**9 - 1, 10**9)  # below 1: floats may be off in the last digits of a conversion


@dataclass(frozen=True, slots=True, kw_only=True)
class Level(ABC):
    """Who is protected at which loss."""

    name: ClassVar[str]
    unit: ClassVar[Neighbours]

    loss: Loss

    def __post_init__(self) -> None:
        if self.loss.amount == 0:
            raise ParameterError("epsilon: a loss of 0 allows no answer at all; pass more than 0, such as '0.1'.")
        if self.loss.neighbours not in (Neighbours.REPLACE_ONE, self.unit):
            raise LossMismatch(
                f"watch at level {self.name} protects {self.unit}, not {self.loss.neighbours}; omit the unit."
            )
        object.__setattr__(self, "loss", self.loss.under(self.unit))
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Refuse settings that do not go together."""

    @abstractmethod
    def detector(self, threshold: int, sensitivity: int) -> Detector:
        """Return the detector for distances that one entry moves by at most `sensitivity` steps."""

    def at_amount(self, amount: str) -> Self:
        """Return the same level at another amount of the loss."""
        loss = self.loss
        return replace(self, loss=Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours))

    def claimed_loss(self) -> Loss:
        """Return the loss in the unit that says most about it."""
        return self.loss

    def _require_pure(self) -> None:
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(
                f"watch at level {self.name} is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone, or "
                "level person or window."
            )

    def _require_known_kind(self) -> None:
        if self.loss.kind not in (Kind.PURE, Kind.APPROXIMATE, Kind.ZCDP):
            raise LossMismatch(
                f"watch at level {self.name}: a {self.loss.kind} loss has no theorem here. Pass ε, with δ if wanted, "
                "or ρ."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryLevel(Level):
    """Protect one entry of one observation, with the staircase.  (S)

    relearn_share  the part of ε that re-estimates a baseline and does not decide.  (P5)

    >>> EntryLevel(loss=Loss("1")).detector(threshold=3, sensitivity=1).name
    'staircase'
    """

    name: ClassVar[str] = "entry"
    unit: ClassVar[Neighbours] = Neighbours.ENTRY

    scores: bool = False
    relearn_share: Fraction = Fraction(0)

    def check(self) -> None:
        self._require_pure()

    @property
    def deciding_epsilon(self) -> Fraction:
        """The part of ε that decides."""
        return self.loss.epsilon * (1 - self.relearn_share)

    def detector(self, threshold: int, sensitivity: int) -> Detector:
        return Staircase(
            threshold=threshold, sensitivity=sensitivity, epsilon=self.deciding_epsilon, scores=self.scores
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperLevel(Level):
    """Protect one entry of one observation, by OUTLIERDETECT as printed.  (O)"""

    name: ClassVar[str] = "paper"
    unit: ClassVar[Neighbours] = Neighbours.ENTRY

    def check(self) -> None:
        self._require_pure()

    def detector(self, threshold: int, sensitivity: int) -> Detector:
        return PaperDetector(threshold=threshold, sensitivity=sensitivity, epsilon=self.loss.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLevel(Level):
    """Protect one person over any `window` consecutive observations, without end.  (W)"""

    name: ClassVar[str] = "window"
    unit: ClassVar[Neighbours] = Neighbours.WINDOW

    window: int

    def check(self) -> None:
        self._require_known_kind()

    def detector(self, threshold: int, sensitivity: int) -> Detector:
        if self.loss.kind is Kind.PURE:
            epsilon = self.loss.epsilon / self.window
            return Staircase(threshold=threshold, sensitivity=sensitivity, epsilon=epsilon)
        return GaussianPerStep(threshold=threshold, sensitivity=sensitivity, loss=loss_per_step(self.loss, self.window))

    def claimed_loss(self) -> Loss:
        """A window with pure or concentrated loss is a fraction of it per entry.  (W)"""
        if self.loss.kind is Kind.APPROXIMATE:
            return self.loss
        return Loss(self.loss.amount / self.window, kind=self.loss.kind, neighbours=Neighbours.ENTRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonLevel(Level):
    """Protect one person over the whole stream: by the sparse vector, or with δ or ρ by Gaussian noise for `steps`.

    >>> PersonLevel(loss=Loss("1"), cutoff=3).detector(threshold=3, sensitivity=1).limit
    6
    """

    name: ClassVar[str] = "person"
    unit: ClassVar[Neighbours] = Neighbours.PERSON

    cutoff: int = 10
    monotone: bool = False
    adaptive: bool = False
    steps: int | None = None

    def check(self) -> None:
        self._require_known_kind()
        if (self.loss.kind is Kind.PURE) != (self.steps is None):
            raise ParameterError("watch: steps needs δ or ρ, and they need steps or a window. Omit one, or add it.")
        if self.loss.kind is not Kind.PURE and (self.monotone or self.adaptive):
            raise ParameterError(
                "watch: Gaussian noise on every step has nothing to be monotone or adaptive about. Omit these, or pass "
                "ε alone."
            )

    def detector(self, threshold: int, sensitivity: int) -> Detector:
        if self.steps is not None:
            loss = loss_per_step(self.loss, self.steps)
            return GaussianPerStep(threshold=threshold, sensitivity=sensitivity, loss=loss, steps=self.steps)
        return Sparse(
            threshold=threshold,
            sensitivity=sensitivity,
            epsilon=self.loss.epsilon,
            cutoff=self.cutoff,
            two_sided=self.monotone,
            adaptive=self.adaptive,
        )


LEVELS: Final = (EntryLevel.name, WindowLevel.name, PersonLevel.name, PaperLevel.name)


def loss_per_step(loss: Loss, steps: int) -> Loss:
    """Return the zero-concentrated loss of one of `steps` observations.  (G) (W)"""
    rho = loss.rho if loss.kind is Kind.ZCDP else convert_to_zcdp(loss)
    return Loss.zcdp(rho / steps)


def convert_to_zcdp(loss: Loss) -> Fraction:
    """Return a ρ whose conversion gives this ε and δ, rounded down."""
    return Fraction(zcdp_of_epsilon(float(loss.epsilon), float(loss.delta))) * _ROUNDING
