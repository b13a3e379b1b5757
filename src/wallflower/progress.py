"""How much a look takes, as far as public facts say, and how far a long one has come.

with progress.steps("scoring subspaces", total) as step:
    for subspace in subspaces:
        score(subspace)
        step()

Without a listener nothing happens. What is told must be public: words and totals come from parameters and public facts,
and every step is told when it is done, whatever was found in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final, Protocol

STEPS_A_SECOND: Final = 1e9  # of the simplest kind, such as a comparison in a compiled loop, on one core


@dataclass(frozen=True, slots=True)
class Effort:
    """About how many steps a look takes, and how many bytes beside the table: of public facts alone, so that neither
    a refusal nor a wait that follows from it tells of records.

    >>> Effort(steps=6e10, memory=1e6).seconds
    60.0
    """

    steps: float
    memory: float

    @property
    def seconds(self) -> float:
        """About how long it takes, on one core that has nothing else to do."""
        return self.steps / STEPS_A_SECOND


class Listener(Protocol):
    """Hears of work that is counted in steps; it is called by one thread at a time."""

    def begin(self, words: str, total: int, /) -> Any:
        """Begin work of N steps; return its handle."""

    def advance(self, handle: Any, steps: int, /) -> None:
        """Report N more steps as done."""

    def end(self, handle: Any, /) -> None:
        """The work is over, done or given up."""


class Step(Protocol):
    """Tells that `n` steps are done, from any thread."""

    def __call__(self, n: int = 1) -> None: ...


_listener: Final[ContextVar[tuple[Listener, Lock] | None]] = ContextVar("wallflower.progress", default=None)


@contextmanager
def report_to(listener: Listener) -> Iterator[None]:
    """Let `listener` hear of all steps counted in here."""
    before = _listener.set((listener, Lock()))
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def hush() -> Iterator[None]:
    """Let nobody hear of steps in here: how many there are depends on records."""
    before = _listener.set(None)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def steps(words: str, total: int) -> Iterator[Step]:
    """Count `total` steps of what `words` say, for the listener of the moment, if there is one."""
    heard = _listener.get()
    if heard is None:
        yield _unheard
        return
    listener, lock = heard
    with lock:
        handle = listener.begin(words, total)
    under_way = True

    def step(n: int = 1) -> None:
        with lock:
            if under_way:  # a worker may finish late, after the work was given up
                listener.advance(handle, n)

    try:
        yield step
    finally:
        with lock:
            under_way = False
            listener.end(handle)


def _unheard(n: int = 1) -> None:
    pass


_alone: Final[ContextVar[bool]] = ContextVar("wallflower.progress.alone", default=False)


def count_cores() -> int:
    """As many as the operating system allows, or one."""
    return 1 if _alone.get() else len(os.sched_getaffinity(0))


@contextmanager
def one_core() -> Iterator[None]:
    """Use one core in here: a cluster runs as many tasks beside each other as it has cores."""
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)
