"""A watch over observations as they come: paid for once, decided one by one.

with wf.watching(query, columns=["temperature"], dataset="ward", ledger=None) as watch:
    for x in arriving:
        if watch.decide(x):
            call_somebody()

Opening a watch charges its whole cost, durably, before anything is looked at. With a `state` every decision is on disk
before it is told, and every observation is noted in the ledger before it is looked at. So a watch that died is taken up
where it stood, and an observation that may have been decided is never decided again, whatever became of the state: what
it does not know of is passed over. When the secret is lost, or the state is seen to be an older copy, the epoch is
closed, and a new one is paid for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import index
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Final, NoReturn, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Schema
from wallflower.errors import LedgerError, ParameterError, StateError
from wallflower.ledger import Declaration, Ledger
from wallflower.machine.vault import read_vault
from wallflower.noise import Noise, system_noise, words
from wallflower.queries.watch import Watch
from wallflower.queries.watch.claims import LiveStream
from wallflower.queries.watch.detectors import Decisions as DetectorDecisions
from wallflower.release import declaration_of, default_analyst, require_use
from wallflower.streams.payer import Hold, Memory, OpenEpoch, Payer
from wallflower.streams.rule import Observation, Rule, names_of, rows_of
from wallflower.streams.state import Epoch, State

DEFAULT_PLAN_ROWS: Final = 1000  # observations that a plan assumes if the schema states no number of rows
WORDS_DRAWN_AHEAD: Final = 4096  # for single decisions


def watching(
    query: Watch,
    *,
    ledger: Ledger | str | Path | None,
    dataset: str,
    columns: Sequence[str] | None = None,
    schema: Schema | str | Path | None = None,
    analyst: str | None = None,
    key: str | None = None,
    state: str | Path | None = None,
    state_key: str | Path | None = None,
    renew: bool = False,
    anyway: bool | None = None,
) -> Watching:
    """Open a watch, and pay for it unless `state` holds an epoch that was paid for and can go on.

    The whole cost of the query is charged here, once; decisions cost nothing more. Close the watch when done, or use
    `with`.

    query      a `wf.Watch`: threshold, bounds, whom it protects, and its loss
    ledger     a Ledger, a path or a URL; None for the default one
    dataset    the name that the budget hangs on
    columns    names the entries of an observation, unless the query or the schema does
    schema     public facts of the columns, or the file that states them: bounds, centers, scales
    analyst    who asks; default: $WALLFLOWER_ANALYST, the project's, or you
    key        identifies the charge; a key that was charged before is refused. A watch is resumed by its state
    state      a file that keeps every decision, made if it is not there; a watch that died goes on from it
    state_key  the file of a key that seals its secret
    renew      an epoch that is closed or exhausted is followed by a new one, which is paid for and begins with 1
    anyway     decisions of no use are refused where False, and warned about where None
    """
    watched = WatchTarget.of(query, dataset, columns, schema)
    if query.relearn is not None:
        raise ParameterError(
            "relearn: a watch over observations as they come keeps its baseline. Leave it out, and open a new watch by "
            "a new baseline when the usual has drifted."
        )
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    kept = _open_state(state, state_key)
    rule, noise = watched.rule, system_noise()
    own = new_holder("watch", noise)
    try:
        payer = watched.payer(book, kept, analyst=analyst, anyway=anyway)
        found = payer.open_epoch(
            {"facts": watched.facts.to_json()},
            lambda: rule.detector.secret(noise),
            rule.detector.is_over,
            key=own if key is None else key,
            renew=renew,
        )
    except BaseException:
        if kept is not None:
            kept.close()
        raise
    return Watching(rule, payer, kept, found, noise, holder=own)


def _open_state(state: str | Path | None, key: str | Path | None) -> State | None:
    if state is None and key is not None:
        raise ParameterError("state_key: it seals a state, and none is given. Name a state too, or leave it out.")
    return None if state is None else State(state, read_vault(None if key is None else Path(key)))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchTarget:
    """A query, and the stream that it is asked of."""

    dataset: str
    facts: Schema
    rule: Rule
    declared: Declaration | None

    @classmethod
    def of(cls, query: Watch, dataset: str, columns: Sequence[str] | None, schema: Schema | str | Path | None) -> Self:
        """Hold a query to what is public of the stream."""
        public = Schema.read(schema) if isinstance(schema, str | Path) else schema
        names = names_of(query, columns, public)
        facts = Schema.of(names) if public is None or public.columns is None else public.only(names)
        rule = Rule(query, facts)
        if query.season is not None:
            query.season.require_same(dataset, names)
        return cls(dataset=dataset, facts=facts, rule=rule, declared=declaration_of(dataset, public or Schema()))

    def payer(self, ledger: Ledger, state: Memory | None, *, analyst: str | None, anyway: bool | None) -> Payer:
        """Who pays for it, and remembers in `state`, if there is one."""
        query, facts, names = self.rule.query, self.facts, tuple(self.rule.columns)
        return Payer(
            query=query,
            claim=query.claim(LiveStream(columns=names, schema=facts)),
            declared=self.declared,
            dataset=self.dataset,
            analyst=analyst or default_analyst(),
            ledger=ledger,
            state=state,
            check_useful=lambda: require_use(
                query.plan(n=facts.rows or DEFAULT_PLAN_ROWS, dimension=len(names)), anyway=anyway
            ),
        )


def new_holder(kind: str, noise: Noise) -> str:
    """A name for whoever holds an epoch, and the key of its charge unless another is given: no other ledger has it."""
    return f"{kind}-" + "".join(f"{word:016x}" for word in words(noise, 2).tolist())


class Watching:
    """An open watch. One process has it: in a forked child it is closed."""

    def __init__(
        self, rule: Rule, payer: Payer, state: State | None, found: OpenEpoch, noise: Noise, *, holder: str
    ) -> None:
        self.resumed, self._state = found.resumed, state
        self._rule, self._payer, self._epoch, self._noise = rule, payer, found.epoch, noise
        self._hold = Hold(payer.ledger, found.block, position=found.epoch.position, holder=holder)
        self._is_open = True
        self._lock = RLock()
        self._quick = rule.quick() if state is None else None
        self._ahead: list[int] = []  # words for single decisions
        _OPEN.add(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the entries of an observation are called."""
        return self._rule.columns

    @property
    def charge(self) -> int:
        """The entry of the ledger that paid for this epoch."""
        return int(self._epoch.about["charge"])

    @property
    def position(self) -> int:
        """How many observations were decided in this epoch, or passed over."""
        return self._epoch.position - len(self._ahead)

    @property
    def passed_over(self) -> int:
        """How many of the next observations are not looked at: a process that did not end well had noted them."""
        return 0 if self.exhausted else self._hold.count_barred(self.position)

    @property
    def exhausted(self) -> bool:
        """Whether nothing more will be decided in this epoch."""
        return self._epoch.exhausted

    def decide(self, x: Observation, *, time: str | None = None) -> bool | None:
        """Whether the next observation is flagged: a number, a sequence of them, or a mapping by column. `time` says
        when it was made, where the watch has a baseline by phase.

        None when the watch is exhausted, or the observation is passed over. An entry that is missing or no number
        counts as the middle of its bounds.
        """
        if self._quick is None:
            return _single(self.decide_many([x], times=None if time is None else [time]))
        entry = x if self._rule.is_single and isinstance(x, float) else self._rule.entry(x)
        try:
            word = self._ahead.pop()
        except IndexError:
            word = self._draw_block()
        return self._quick(entry, word)

    def decide_at(self, k: int, x: Observation, *, time: str | None = None) -> bool | None:
        """The decision about observation number `k`, from 1: the one that was told, or a new one if it is next."""
        return _single(self.decide_many([x], first=k, times=None if time is None else [time]))

    def decide_many(
        self,
        rows: Iterable[Observation] | NDArray[Any],
        *,
        first: int | None = None,
        times: Sequence[str] | None = None,
    ) -> Decisions:
        """Decide a batch; with a state, all of it is on disk before any of it is told. A frame is read by the names of
        its columns, whatever their order; those that are not watched are left unread.

        `first` is the number of the first row, if it is not the next. Rows that were decided before are not looked at:
        what was told is told again. With a baseline by phase, `times` say when each was made, unless a frame has them.
        """
        with self._lock:
            self._require_open()
            asked = self._rule.in_spreads(rows_of(rows, self.columns), rows, times)
            start = self.position + 1 if first is None else first
            again = self._recall(start, len(asked))
            if len(again) == len(asked) or self.exhausted:
                return again
            fresh = self._decide_next(asked[len(again) :])
            return again.and_then(fresh) if len(again) else fresh

    def history(self, first: int, count: int) -> Decisions:
        """Decisions from number `first` on that were told before, `count` at most: nothing is looked at."""
        with self._lock:
            self._require_open()
            return self._recall(first, count)

    def close(self) -> None:
        """Put the watch down. Without a state nothing is left of it."""
        with self._lock:
            if self._is_open:
                self._stop()
                self._release_hold()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        words = "closed" if not self._is_open else "exhausted" if self.exhausted else "open"
        return f"Watching({self._payer.dataset!r}, charge {self.charge}, {self.position:,} decided, {words})"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise StateError("an open watch cannot be copied or pickled: one charge pays for one. Pass it by reference.")

    def _recall(self, start: int, count: int) -> Decisions:
        """Decisions from `start` on that were told before, `count` at most."""
        last = self.position
        if isinstance(start, bool) or not hasattr(start, "__index__") or not (1 <= start <= last + 1 or self.exhausted):
            raise StateError(
                f"observation {start!r} was asked for, and {last + 1} is next. Observations are numbered from 1 and "
                "decided in order, none left out. Pass the next, or one that was decided."
            )
        known = max(0, min(count, last + 1 - start))
        if known and self._state is None:
            raise StateError(
                f"observation {start} was decided before, and a watch without a state keeps no decisions. "
                "Open the watch with state=FILE to ask again."
            )
        start = index(start)  # SQLite would keep one of numpy as bytes
        rows = [] if self._state is None else self._state.recall(self._epoch, start, known)
        flags = [flag for flag, _ in rows]
        return self._decisions(start, flags, [score or 0 for _, score in rows], [flag is None for flag in flags])

    def _decide_next(self, rows: Any) -> Decisions:
        """Decide what comes next: nothing is told before it is kept."""
        start, skipped = self.position + 1, min(self.passed_over, len(rows))
        parts = list(self._looks(self._rule.measure(rows[skipped:]), self.position + len(rows)))
        unknown = np.zeros(skipped, dtype=np.int64)
        flags = np.concatenate([unknown, *(part.flags for part in parts)])
        scores = np.concatenate([unknown, *(part.scores for part in parts if part.scores is not None)])
        self._epoch = self._keep(flags[skipped:], scores[skipped:], skipped)
        return self._decisions(start, flags, scores, np.arange(len(flags)) < skipped)

    def _keep(self, flags: NDArray[Any], scores: NDArray[Any], skipped: int) -> Epoch:
        """The epoch after so many that were skipped and these decisions, on disk if it has a state."""
        after = replace(
            self._epoch,
            position=self._epoch.position + skipped + len(flags),
            block=self._hold.block.number,
            exhausted=self._rule.detector.is_over(self._epoch.spent),
        )
        if self._state is not None:
            kept = scores.tolist() if self._rule.query.scores else [None] * len(flags)
            self._state.keep(after, [(None, None)] * skipped + list(zip(flags.tolist(), kept, strict=True)))
        return after

    def _looks(self, distances: NDArray[np.int64], last: int) -> Iterator[DetectorDecisions]:
        """Decide about these, the last of which has this number: nothing is looked at before it is held.

        What was spent counts at once, since a note in the ledger may show it, even if nothing of it is kept.  (B)
        """
        detector = self._rule.detector
        while len(distances) and not detector.is_over(self._epoch.spent):
            found = detector.decide(
                distances, self._epoch.secret, self._epoch.spent, self._noise, most=self._hold_until(last)
            )
            self._epoch = replace(self._epoch, spent=found.spent)
            distances = distances[found.count :]
            yield found

    def _hold_until(self, last: int) -> int | None:
        """Hold all up to an observation; gives the most that may be spent on it. Without a state nothing goes on."""
        epoch, state = self._epoch, self._state
        if state is None:
            return None
        if not self._hold.cover(epoch.position, last, epoch.spent, self._rule.detector.ahead):
            raise state.close_epoch("a copy of it is taken up elsewhere: the ledger knows of later decisions")
        return self._hold.block.spent

    def _decisions(self, start: int, flags: Any, scores: Any, skipped: Any) -> Decisions:
        return Decisions(
            start,
            np.asarray(flags, dtype=np.bool_),
            np.asarray(scores, dtype=np.int64) if self._rule.query.scores else None,
            self.exhausted and start + len(flags) > self.position,
            np.asarray(skipped, dtype=np.bool_),
        )

    def _draw_block(self) -> int:
        """The first word of a new block; the rest is kept for later."""
        with self._lock:
            self._require_open()
            word, *rest = words(self._noise, WORDS_DRAWN_AHEAD).tolist()
            self._epoch = replace(self._epoch, position=self._epoch.position + WORDS_DRAWN_AHEAD)
            self._ahead.extend(reversed(rest))
            return int(word)

    def _require_open(self) -> None:
        if not self._is_open:
            raise StateError(
                "the watch is closed, or was opened before this process was forked; one process has it until it is "
                "closed. Open it again, or in the child."
            )

    def detach(self) -> None:
        """In a forked child: the watch stays with the parent."""
        if self._is_open:
            self._stop()
            if self._state is not None:
                self._state.abandon()

    def _release_hold(self) -> None:
        state = self._state
        if state is not None:
            with suppress(LedgerError, StateError):  # what is held and not given back is passed over
                self._hold.put_down(state.position_of(self._epoch), self._epoch.spent)
            state.close()

    def _stop(self) -> None:
        """Decide nothing any more, and forget what was drawn ahead: a child would use it a second time."""
        self._epoch, self._is_open = replace(self._epoch, position=self.position), False
        self._ahead.clear()


def _single(found: Decisions) -> bool | None:
    return found.outliers[0] if len(found) else None


_OPEN: Final[WeakSet[Watching]] = WeakSet()


def _forget() -> None:
    for watch in _OPEN:
        watch.detach()


os.register_at_fork(after_in_child=_forget)
