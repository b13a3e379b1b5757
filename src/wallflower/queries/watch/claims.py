"""What a watch states of its own loss: whom it protects, and by how much more whoever else.

Everything here follows from public facts. Proved in proof.md, labels (W) (I) (C) (R).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.queries.watch.gauge import Gauge
from wallflower.queries.watch.parameters import WatchSettings
from wallflower.query import PublicFacts
from wallflower.schema import Schema
from wallflower.units import Claim


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveStream:
    """What is public of observations that are still to come: their columns, and not how many there will be.

    >>> LiveStream(columns=("temperature",)).n
    0
    """

    columns: tuple[str, ...]
    schema: Schema | None = None

    @property
    def n(self) -> int:
        """Nobody knows."""
        return 0

    @property
    def dimension(self) -> int:
        return len(self.columns)


def claim_of(query: WatchSettings, facts: PublicFacts, gauge: Gauge) -> Claim:
    """What the watch states, for observations measured by this gauge."""
    loss = _loss(query)
    whole_stream = loss.neighbours is Neighbours.PERSON
    return Claim(
        loss=loss,
        window=query.window if loss.neighbours is Neighbours.WINDOW else None,
        columns=facts.dimension,
        steps=query.steps if whole_stream else facts.n or None,
        moves=-(-gauge.widest // gauge.move),  # (C)
        one_sign=query.monotone,
        separable=loss.neighbours is Neighbours.ENTRY,  # (I)
        own=(("record", Fraction(-(-gauge.span // gauge.move))),),  # (R)
    )


def _loss(query: WatchSettings) -> Loss:
    """The loss in the unit that says most of it: a window with pure or concentrated loss is so much an entry.  (W)"""
    loss: Loss = query.cost()
    if query.window is None or loss.kind is Kind.APPROXIMATE:
        return loss
    return Loss(loss.amount / query.window, kind=loss.kind, neighbours=Neighbours.ENTRY)
