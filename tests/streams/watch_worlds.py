"""A world of memory in which watches are killed, copied and restored: ledger and state as quick as a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from wallflower.errors import SessionClosed
from wallflower.ledger import Block, Ledger
from wallflower.queries.watch.detectors import Output as Found
from wallflower.streams import Decisions, OpenWatch, watching
from wallflower.streams.session import Session

A, B = "a", "b"  # two machines, each with a state file of its own


class Kill(BaseException):
    """The process dies here."""


class BookInMemory(Ledger):
    """Charges and blocks; whoever writes one may die when it is written."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Block]] = {}
        self.dies_after_a_note = False
        self.meanwhile: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"BookInMemory({self.rows})"

    def charge(self, dataset: str, query: Any, **_: Any) -> Any:  # type: ignore[override]
        self.rows[len(self.rows) + 1] = []
        return SimpleNamespace(id=len(self.rows), stored=None)

    def history(self, *_: Any, before: int | None = None, **__: Any) -> Any:
        return [SimpleNamespace(id=(before or 1) - 1, hash=f"session {(before or 1) - 1}")]

    def latest_block(self, charge: int, session: str) -> Block | None:
        return self.rows[charge][-1] if self.rows[charge] else Block(charge=charge, session=session, hash=session)

    def reserve(self, asked: Block, *, after: Block) -> Block:
        rows = self.rows[asked.charge]
        if len(rows) < asked.number:
            assert len(rows) == asked.number - 1
            rows.append(replace(asked, hash=f"row {asked.number}"))
        if self.dies_after_a_note:
            raise Kill
        while self.meanwhile:
            self.meanwhile.pop()()
        return rows[asked.number - 1]


@dataclass
class Kept:
    """What is on one disk."""

    session: Session | None = None
    rows: list[Any] = field(default_factory=list)
    is_closed: bool = False


class StateInMemory:
    """A state whose file is in `disks`."""

    disks: dict[str, Kept]
    dies_after_keeping = False

    def __init__(self, path: str, vault: object = None) -> None:
        self.path = path

    @property
    def kept(self) -> Kept:
        return self.disks.setdefault(self.path, Kept())

    def newest(self) -> Session | None:
        if self.kept.is_closed:
            raise SessionClosed("it was closed")
        return self.kept.session

    def begin(self, about: dict[str, Any], secret: tuple[int, ...]) -> Session:
        self.disks[self.path] = Kept(Session(number=1, about=about, secret=secret))
        assert self.kept.session is not None
        return self.kept.session

    def keep(self, session: Session, decisions: Sequence[Any]) -> None:
        self.kept.session = session
        self.kept.rows += decisions
        assert len(self.kept.rows) == session.position
        if self.dies_after_keeping:
            raise Kill

    def position_of(self, session: Session) -> int:
        return len(self.kept.rows)

    def recall(self, session: Session, first: int, count: int) -> list[Any]:
        return self.kept.rows[first - 1 : first - 1 + count]

    def close_session(self, why: str) -> SessionClosed:
        self.kept.is_closed = True
        return SessionClosed(why)

    def close(self) -> None:
        """Nothing is open."""


@dataclass
class World:
    """Two machines, one ledger, one paid session, in which `most` flags are told, if that is bounded.

    `seen` is what anybody was ever told of an observation.
    """

    query: Any
    most: int | None = None
    book: BookInMemory = field(default_factory=BookInMemory)
    seen: dict[int, set[Any]] = field(default_factory=dict)
    running: dict[str, OpenWatch] = field(default_factory=dict)
    backup: Kept | None = None

    def __post_init__(self) -> None:
        StateInMemory.disks = {}
        self.decide(A, 0)
        self.copy()

    def step(self, action: str) -> None:
        verb, *rest = action.split()
        getattr(self, verb)(*(int(word) if word.isdigit() else word for word in rest))

    def decide(self, machine: str, count: int) -> None:
        try:
            watch = self._opened(machine)
            start = watch.position + 1
            self._tell(watch.decide_many([5.0] * count))
            if start > 1:
                self._tell(watch.decide_many([5.0] * (start - 1), first=1))
        except (SessionClosed, Kill):
            self.kill(machine)

    def noted(self, machine: str) -> None:
        """Decide, and die when it is noted."""
        self.book.dies_after_a_note = True
        self.decide(machine, 2)
        self.book.dies_after_a_note = False
        self.kill(machine)

    def kept(self, machine: str) -> None:
        """Decide, and die when it is kept."""
        StateInMemory.dies_after_keeping = True
        self.decide(machine, 1)
        StateInMemory.dies_after_keeping = False
        self.kill(machine)

    def amid(self, machine: str) -> None:
        """Decide on the first machine, and on the other as soon as the first has noted something."""
        self.book.meanwhile.append(lambda: self.decide(machine, 3))
        self.decide(A, 3)
        self.book.meanwhile.clear()

    def close(self, machine: str) -> None:
        if machine in self.running:
            self.running.pop(machine).close()

    def kill(self, machine: str) -> None:
        self.running.pop(machine, None)

    def save(self) -> None:
        self.backup = deepcopy(StateInMemory.disks[A])

    def restore(self) -> None:
        self.kill(A)
        StateInMemory.disks[A] = deepcopy(self.backup or StateInMemory.disks[A])

    def copy(self) -> None:
        """Take a copy of the first machine's state to the second."""
        self.kill(B)
        StateInMemory.disks[B] = deepcopy(StateInMemory.disks[A])

    @property
    def is_private(self) -> bool:
        """Nobody was told two things of one observation, or more flags than were paid for."""
        flags = sum(any(flag for flag, _ in told) for told in self.seen.values())
        is_within = self.most is None or flags <= self.most
        return len(self.book.rows) == 1 and is_within and all(len(told) == 1 for told in self.seen.values())

    def _opened(self, machine: str) -> OpenWatch:
        if machine not in self.running:
            self.running[machine] = watching(
                self.query, columns=["x"], dataset="ward", ledger=self.book, checkpoint=machine
            )
        return self.running[machine]

    def _tell(self, told: Decisions) -> None:
        scores = told.noisy_scores or [0] * len(told)
        for place, (flag, score) in enumerate(zip(told.outliers, scores, strict=True), told.first):
            if flag is not None:
                self.seen.setdefault(place, set()).add((flag, score))


def unlike_any(looks: Iterator[int]) -> Any:
    """A detector whose every look has a score of its own, so that a second look shows."""

    def decide(_: Any, distances: Any, *__: Any, **___: Any) -> Found:
        found = np.array([next(looks) for _ in distances], dtype=np.int64)
        return Found(found > 0, 0, found)

    return decide
