"""What is usual drifts: learnt anew of every block of observations, and the next block is judged by it.

An observation is in one block, and its block is learnt of once. So learning costs its part of the loss once for the
whole stream, however many blocks there are; and each observation is judged once, for the rest.  (P5)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from wallflower.data import Points
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.watch.seasons import Seasons
from wallflower.queries.watch.seasons.learner import FEWEST, Learner


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A season that is learnt anew every so many observations, for `epsilon` in all."""

    season: Seasons
    every: int
    epsilon: Fraction
    change: float | None

    @property
    def learner(self) -> Learner:
        """Who learns: bounds are those of the schema, since those of the watch are in spreads."""
        return Learner(
            kind=self.season.phases.kind,
            time=self.season.time,
            low=None,
            high=None,
            change=self.change,
            variance=None,
            loss=Loss(self.epsilon),
        )

    @property
    def each(self) -> float:
        """Observations of a phase in a block, about."""
        return self.every / self.season.phases.size

    @property
    def is_useful(self) -> bool:
        """Whether a block tells anything of its phases."""
        return self.each >= FEWEST

    def words(self, n: int) -> str:
        """What is learnt, and of how much, for a plan."""
        times = max(0, -(-n // self.every) - 1)
        short = "" if self.is_useful else f", fewer than the {FEWEST} that tell anything"
        return (
            f"; of its loss ε={self.epsilon} learns the baseline anew {times:,} times, of about {self.each:,.1f} "
            f"observations of a phase{short}"
        )

    def blocks(self, data: Points, noise: Noise) -> Iterator[tuple[slice, Seasons]]:
        """Blocks of observations, in order, and what each is judged by.  (P5)"""
        season = self.season
        for start in range(0, data.n, self.every):
            block = slice(start, min(start + self.every, data.n))
            yield block, season
            if block.stop < data.n:
                season = self.learner.learn(data, noise, block, known=self.season.phases)
