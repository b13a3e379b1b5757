"""What speaks for a question: its attacks, and that it pays before it looks.

`audits(kind)` runs every attack that a room lists in its `audit`, and asks the question of records that report when
they are read. What a room must show is in `DEMANDED`; a question without it has no evidence, and that is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit import Finding, Way
from wallflower.data import Points
from wallflower.errors import EvidenceMissing
from wallflower.ledger import Ledger
from wallflower.machine.lazy import load
from wallflower.noise import system_noise
from wallflower.queries import QUERIES, STREAM_ONLY
from wallflower.query import Query
from wallflower.query.parameter import Question, find
from wallflower.release import release

Ask = Callable[[Query[Any, Any], Points, Ledger], object]

_ROWS = 64


# What a room must show: a way of attack, and whether what is attacked is broken on purpose.
DEMANDED: Final[dict[tuple[Way, bool], str]] = {
    (Way.ORACLE, False): "an exact answer that brute force confirms on every table of a tiny world (audit_exact)",
    (Way.ORACLE, True): "a wrong exact answer that brute force refutes (audit_exact, expected=True)",
    (Way.WORLD, False): "a bound or a law that holds on every table of a tiny world (audit_bound)",
    (Way.OUTPUTS, False): "answers to two neighbouring tables that keep the claimed loss (audit_law or audit)",
    (Way.OUTPUTS, True): "answers with a little too little noise that are caught (the same, expected=True)",
}


DEMANDED_OF_ANSWERS: Final[dict[tuple[Way, bool], str]] = {
    (Way.ANSWER, False): "an account of every draw of `answer` (audit_cases)",
    (Way.ANSWER, True): "an answer with a little too little noise that its account catches (the same)",
}


def audits(kind: str, *, quick: bool = False, questions: Iterable[Question] = QUERIES) -> Iterator[Finding]:
    """Run every attack on a question; `quick` takes fewer trials."""
    question = None if kind in STREAM_ONLY else find(kind, questions)
    room = load(f"wallflower.{kind}.audit").findings if question is None else question.audits
    yield from _demand(kind, room(quick=quick), DEMANDED if question is None else DEMANDED | DEMANDED_OF_ANSWERS)
    if question is not None:
        yield from order_findings(question.example())


def evidence(question: Question) -> Iterator[Finding]:
    """The quick attacks on a question that need not be listed anywhere."""
    return audits(question.kind, quick=True, questions=(question,))


def _demand(kind: str, room: Iterable[Finding], demanded: dict[tuple[Way, bool], str]) -> Iterator[Finding]:
    shown = set()
    for finding in room:
        shown.add((finding.way, finding.expected))
        yield finding
    missing = [words for need, words in demanded.items() if need not in shown]
    if missing:
        raise EvidenceMissing(
            f"{kind}: of {len(demanded)} kinds of evidence {len(missing)} are missing: {'; '.join(missing)}. An audit "
            "needs one of each at least. Let `findings` in audit.py beside the question yield them, or its `audits`."
        )


# Order


def order_findings(query: Query[Any, Any]) -> Iterator[Finding]:
    """A release pays, then looks; one that looks first must be caught."""
    yield audit_order(query, next(samples(query)))
    broken = "broken: looks, then pays"
    yield audit_order(query, next(samples(query)), ask=_broken_look_first, name=broken, expected=True)


def _broken_look_first(query: Query[Any, Any], points: Points, ledger: Ledger) -> None:
    value = query.answer(query.view(points), system_noise())
    ledger.record(ledger.charge(points.name, query, analyst="auditor"), {"value": query.released(value)})


def samples(query: Query[Any, Any]) -> Iterator[Points]:
    """Tables of 64 records, ordinary and not, in the columns the question names."""
    columns = getattr(query, "columns", None) or ("x1", "x2")
    line = np.linspace(0.0, 8.0, _ROWS)
    shapes: tuple[NDArray[np.float64], ...] = (
        np.sin(line),
        np.zeros(_ROWS),
        line * 1e6,
        np.where(line < 7, 0.0, 1e3),
        np.where(line < 4, -1.0, 1.0),
    )
    for shape in shapes:
        spread = np.column_stack([shape * (1 + at) for at in range(len(columns))])
        yield Points.from_array(spread, columns=columns, name="sample")


class WatchedPoints(Points):
    """Points that report the first time their values are read. Taking columns is not a look: nothing comes out."""

    __slots__ = ("_note", "_points")
    _note: Callable[[], None]
    _points: Points

    def __init__(self, points: Points, note: Callable[[], None]) -> None:
        for slot, value in {"_points": points, "_note": note}.items():
            object.__setattr__(self, slot, value)
        for slot in ("columns", "name", "schema"):
            object.__setattr__(self, slot, getattr(points, slot))

    @property
    def values(self) -> NDArray[np.float64]:
        self._note()
        return self._points.values

    @property
    def n(self) -> int:
        return self._points.n

    def subspace(self, names: Any) -> Points:
        return WatchedPoints(self._points.subspace(names), self._note)


def audit_order(
    query: Query[Any, Any],
    points: Points,
    *,
    ask: Ask | None = None,
    name: str = "release: pays, then looks",
    expected: bool = False,
) -> Finding:
    """Refute "charged before looked at", or fail to: when the values are read for the first time, does a second
    connection see the charge? `ask(query, points, ledger)` is `release` unless given."""
    paid: list[bool] = []
    first = Lock()  # a question may read in several threads
    with TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"

        def note() -> None:
            with first:
                if not paid:
                    with Ledger.open(path) as other:
                        paid.append(bool(other.history(points.name, event="charge")))

        with Ledger.open(path) as book:
            book.grant(points.name, query.cost(), by="auditor")
            (ask or partial(release, force=True))(query, WatchedPoints(points, note), book)
    words = {(): "nobody looked", (True,): "the charge was durable before the first look"}
    return Finding(
        name=name,
        way=Way.ORDER,
        claimed=None,
        lower=None,
        caught=paid == [False],
        text=words.get(tuple(paid), "the records were read while no charge was on disk"),
        expected=expected,
    )
