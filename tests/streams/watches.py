"""Watches to open, for the tests of what they decide and what they remember."""

from __future__ import annotations

from typing import Any

from wallflower.ledger import Ledger
from wallflower.privacy import Loss
from wallflower.queries.watch import Watch
from wallflower.streams import OpenWatch, watching

EVENT = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.25"))
COIN = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.001"), scores=True)  # about as often true as false
SCORES = Watch(threshold=2.0, low=-5.0, high=5.0, loss=Loss("0.25"), scores=True)
PERSON = Watch(threshold=2.0, low=-5.0, high=5.0, level="person", cutoff=3, loss=Loss("0.5"))
FAR = [5.0] * 2000
LONG = [5.0] * 200_000  # among 2000 a person's noise hides three flags once in some 10^5 runs


def opened(book: Ledger, query: Watch = EVENT, **more: Any) -> OpenWatch:
    return watching(query, **{"columns": ["x"], "dataset": "ward", "ledger": book} | more)


def labels(book: Ledger) -> list[str | None]:
    return [entry.label for entry in book.history(event="charge")]
