"""Whose question is next: one of each analyst's in turn, and nobody has all the places.

A place is free again when whoever has it says so, and nothing else changes an order: see `jobs.py` for when that is.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Generic, TypeVar

Q = TypeVar("Q")


class Turns(Generic[Q]):
    """Questions that wait, by analyst, and the places of those that are answered.

    >>> turns: Turns[str] = Turns(places=2, each=1)
    >>> for who, question in (("ana", "a1"), ("ana", "a2"), ("bo", "b1")):
    ...     turns.add(who, question)
    >>> turns.take(), turns.take(), turns.take()
    ('a1', 'b1', None)
    >>> turns.free("bo"); turns.take()
    >>> turns.free("ana"); turns.take()
    'a2'
    """

    def __init__(self, *, places: int, each: int) -> None:
        self._free, self._each = places, each
        self._lines: OrderedDict[str, deque[Q]] = OrderedDict()
        self._taken: Counter[str] = Counter()

    def add(self, who: str, question: Q) -> None:
        """A question waits behind the others of the same analyst."""
        self._lines.setdefault(who, deque()).append(question)

    def take(self) -> Q | None:
        """The question that is next, if there is a place for it; its analyst goes behind all others."""
        found = self.next_turn()
        return None if found is None else found[1]

    def next_turn(self) -> tuple[str, Q] | None:
        """The question that is next and its analyst, if there is a place for it."""
        who = next((who for who in self._lines if self._taken[who] < self._each), None)
        if not self._free or who is None:
            return None
        self._free -= 1
        self._taken[who] += 1
        question = self._lines[who].popleft()
        self._lines.move_to_end(who)
        if not self._lines[who]:
            del self._lines[who]
        return who, question

    def free(self, who: str) -> None:
        """The place of a question of this analyst is free again."""
        self._free += 1
        self._taken[who] -= 1
        if not self._taken[who]:
            del self._taken[who]

    def under_way(self, who: str) -> int:
        """How many questions of this analyst wait or are answered."""
        return self._taken[who] + len(self._lines.get(who, ()))
