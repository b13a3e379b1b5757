"""A question that takes as long as a test lets it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from above import Above
from wallflower.data import Points
from wallflower.noise import Noise

_GATE = threading.Event()
_GATE.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(Above):
    """Takes as long unchanged let."""

    kind: ClassVar[str] = "slow"
    label: ClassVar[str] = "slow/1"

    def answer(self, data: Points, noise: Noise) -> int:
        _GATE.wait()
        return Above.answer(self, data, noise)


@contextmanager
def hold_answers() -> Iterator[None]:
    """Nobody gets an answer in here."""
    _GATE.clear()
    try:
        yield
    finally:
        _GATE.set()
