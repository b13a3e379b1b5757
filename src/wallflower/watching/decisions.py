"""Decisions about a batch of observations, in the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What a batch came to.

    first      the number of its first observation
    flags      whether each is flagged
    scores     noisy scores, if the query has them
    exhausted  these are the last there will be; if fewer than were asked for, the rest was not looked at
    skipped    where nobody looked, or nobody knows any more what was found: flag and score mean nothing there
    """

    first: int
    flags: NDArray[np.bool_]
    scores: NDArray[np.int64] | None
    exhausted: bool
    skipped: NDArray[np.bool_]

    @property
    def outliers(self) -> list[bool | None]:
        """The flags, None where an observation was skipped."""
        return self._blank_skipped(self.flags)

    @property
    def noisy_scores(self) -> list[int | None] | None:
        """The scores, if there are any, None where an observation was skipped."""
        return None if self.scores is None else self._blank_skipped(self.scores)

    def _blank_skipped(self, values: NDArray[Any]) -> list[Any]:
        return [
            None if skipped else value for value, skipped in zip(values.tolist(), self.skipped.tolist(), strict=True)
        ]

    def __len__(self) -> int:
        return len(self.flags)

    def and_then(self, later: Decisions) -> Decisions:
        """These decisions, followed by later ones."""
        scores = None
        if self.scores is not None and later.scores is not None:
            scores = np.concatenate([self.scores, later.scores])
        flags, skipped = ((self.flags, later.flags), (self.skipped, later.skipped))
        return Decisions(self.first, np.concatenate(flags), scores, later.exhausted, np.concatenate(skipped))
