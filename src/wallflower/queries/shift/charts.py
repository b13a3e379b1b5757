"""Private CUSUM charts: from distances on a grid to alarms.

Distances are first clipped to public limits, so that one entry moves one of them by at most `width` steps. Which chart
follows from who is protected:

NoisySums    one entry, or one person over a window: noise on the sum of every block of observations; the chart is
             computed from released numbers alone, so alarms cost nothing and the chart goes on after them
BoundedChart one person over the whole stream: the sparse vector on a chart that looks back a bounded number of
             observations; it stops after `cutoff` alarms

A chart remembers whole numbers between two observations (`Memory`), so a stream can be stopped and resumed. Proof:
proof.md, labels (K) (B) (W) (M) (V) (O).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.mechanisms import Additive
from wallflower.noise import Noise, draws
from wallflower.queries.watch.detectors import Secret, Sparse

Ints = NDArray[np.int64]
Memory = tuple[int, ...]

UP: Final = "up"
DOWN: Final = "down"
BOTH: Final = "both"
SIGNS: Final = {UP: (1,), DOWN: (-1,), BOTH: (1, -1)}


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """What a chart came to in a batch of observations.

    alarms  whether there was an alarm after each of the first `count` observations; the rest was not examined
    onsets  for each alarm the observation where the shift began, by the chart: negative where the mean fell; 0: unknown
    memory  what the chart remembers
    spent   of its limit
    path    the chart after every block: the larger of the two where there are two; None if it is secret
    """

    alarms: list[bool]
    onsets: list[int]
    memory: Memory
    spent: int = 0
    path: list[int] | None = None

    @property
    def count(self) -> int:
        return len(self.alarms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The public limits of a clipped distance, in steps.

    >>> Limits(low=-2, high=3).clip(np.array([-9, 1, 9])).tolist()
    [-2, 1, 3]
    """

    low: int
    high: int

    def clip(self, distances: Ints) -> Ints:
        """Return the distances within the limits; two of them are no further apart than before.  (K)"""
        return np.asarray(np.clip(distances, self.low, self.high), dtype=np.int64)

    def width(self, sensitivity: int) -> int:
        """Return how far one entry moves a clipped distance, if it moves the distance by `sensitivity`.  (K)"""
        return max(1, min(sensitivity, self.high - self.low))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(ABC):
    """A CUSUM chart for one direction or both.

    limits     of a distance
    drift      what is subtracted from the distance, or the block of distances, in the direction of the shift
    threshold  an alarm is raised from this many steps on
    signs      1 for a mean that rises, -1 for one that falls
    """

    name: ClassVar[str]

    limits: Limits
    drift: int
    threshold: int
    signs: tuple[int, ...]

    def start(self) -> Memory:
        """What the chart remembers before the first observation."""
        return ()

    def secret(self, noise: Noise) -> Secret:
        """Draw what is drawn once. It must be durable before the first decision is released."""
        return ()

    def is_over(self, spent: int) -> bool:
        """Whether nothing more may be decided after spending this much."""
        return False

    def reserve(self, looks: int) -> int:
        """Return how much to set aside before this many looks."""
        return 0

    @abstractmethod
    def decide(
        self,
        distances: Ints,
        first: int,
        memory: Memory,
        noise: Noise,
        *,
        secret: Secret = (),
        spent: int = 0,
        max_spent: int | None = None,
    ) -> Progress:
        """Decide in order about observations of which the first has the number `first`, from 1.

        Every observation is passed once at most, in order; one that is skipped is not passed at all.  (O)
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisySums(Chart):
    """A CUSUM of noisy sums of blocks: S = max(0, S + noisy sum - drift) after every `block` observations.  (B) (W)

    Blocks are cut by the numbers of observations. A block whose last observation was skipped has no sum, and the chart
    stays as it is.

    Memory: the sum of the latest block and its number, then for every direction S and the observation where S left 0.
    """

    name: ClassVar[str] = "noisy-sums"

    block: int
    noise: Additive

    def start(self) -> Memory:
        return (0, 0, *(0, 1) * len(self.signs))

    def decide(
        self,
        distances: Ints,
        first: int,
        memory: Memory,
        noise: Noise,
        *,
        secret: Secret = (),
        spent: int = 0,
        max_spent: int | None = None,
    ) -> Progress:
        clipped = self.limits.clip(distances)
        blocks = (first - 1 + np.arange(len(clipped))) // self.block
        alarms, onsets, path, state = [False] * len(clipped), [0] * len(clipped), [], list(memory[2:])
        partial, latest = memory[:2]
        numbers, starts = np.unique(blocks, return_index=True)
        sums = np.add.reduceat(clipped, starts).tolist() if len(starts) else []
        if sums and latest == numbers[0]:
            sums[0] += partial  # any other block is over: its last observation was looked at, or skipped  (O)
        ends = ((numbers + 1) * self.block - first).tolist()
        complete = sum(end < len(clipped) for end in ends)
        drawn = draws(noise, self.noise.law, self.noise.scale, complete).tolist()  # (B): one for every block
        for end, total, error in zip(ends, sums, drawn, strict=False):
            onset = self._advance(state, total + error, first + end)
            alarms[end], onsets[end] = onset != 0, onset
            path.append(self.threshold if onset else max(state[::2]))
        if sums:
            partial, latest = sums[-1] if complete < len(sums) else 0, int(numbers[-1])
        return Progress(alarms, onsets, (int(partial), latest, *state), path=path)

    def _advance(self, state: list[int], total: int, number: int) -> int:
        """Add the noisy sum of a block to the charts; return the onset if there is an alarm, which clears them."""
        alarm = 0
        for place, sign in enumerate(self.signs):
            value = max(0, state[2 * place] + sign * total - self.drift)
            if value >= self.threshold and not alarm:
                alarm = sign * state[2 * place + 1]
            state[2 * place] = value
            if value == 0:
                state[2 * place + 1] = number + 1
        if alarm:
            state[:] = (0, number + 1) * len(self.signs)
        return alarm


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedChart(Chart):
    """The sparse vector on a CUSUM that looks back at most `memory` observations, tested at every `every`-th.  (M) (V)

    Memory: the last clipped distances, since the latest alarm.
    """

    name: ClassVar[str] = "bounded-memory"

    memory: int
    every: int
    sparse: Sparse = field(repr=False)

    def secret(self, noise: Noise) -> Secret:
        return self.sparse.secret(noise)

    def is_over(self, spent: int) -> bool:
        return self.sparse.is_over(spent)

    def reserve(self, looks: int) -> int:
        return self.sparse.reserve(looks)

    def decide(
        self,
        distances: Ints,
        first: int,
        memory: Memory,
        noise: Noise,
        *,
        secret: Secret = (),
        spent: int = 0,
        max_spent: int | None = None,
    ) -> Progress:
        window = list(memory)
        alarms: list[bool] = []
        for number, distance in enumerate(self.limits.clip(distances).tolist(), start=first):
            if self.is_over(spent):
                break
            longer = [*window, distance][-self.memory :]
            is_alarm = False
            if number % self.every == 0:
                value = np.array([self.value(longer)], dtype=np.int64)
                output = self.sparse.decide(value, secret, spent, noise, max_spent=max_spent)
                if not output.count:
                    break  # the observation is passed again, when more may be spent
                spent, is_alarm = output.spent, bool(output.flags[0])
            window = [] if is_alarm else longer
            alarms.append(is_alarm)
        return Progress(alarms, [0] * len(alarms), tuple(window), spent)

    def value(self, window: Sequence[int]) -> int:
        """Return the larger of the charts of these last distances.  (M)"""
        backwards = np.array(window[::-1], dtype=np.int64)
        sums = (np.cumsum(sign * backwards - self.drift) for sign in self.signs)
        return max(0, *(int(total.max()) for total in sums))
