"""A watch over observations as they come: paid for once, decided one by one.

with wf.watching(query, columns=["temperature"], dataset="ward", ledger=None) as watch:
    for x in arriving:
        if watch.decide(x):
            call_somebody()

Opening a watch charges its whole cost, durably, before anything is looked at. With a `checkpoint` every decision is on
disk before it is released, and an intent is written to the ledger before an observation is looked at. So a watch that
died is resumed where it stopped, and an observation that may have been decided is never decided again: what the
checkpoint does not know is skipped. When the secret is lost, or the checkpoint turns out to be an older copy, the
session is closed, and a new one is charged.
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
from wallflower.queries.watch import LiveStream, Watch
from wallflower.queries.watch.detectors import Output
from wallflower.release import declaration_of, default_analyst, require_useful
from wallflower.streams.rule import Observation, Rule, StreamQuery, names_of, rows_of
from wallflower.streams.session import Checkpoint, IntentLog, Memory, OpenSession, Payer, Session

DEFAULT_PLAN_ROWS: Final = 1000  # observations that a plan assumes if the schema states no number of rows
WORDS_DRAWN_AHEAD: Final = 4096  # for single decisions


def watching(
    query: StreamQuery,
    *,
    ledger: Ledger | str | Path | None,
    dataset: str,
    columns: Sequence[str] | None = None,
    schema: Schema | str | Path | None = None,
    analyst: str | None = None,
    idempotency_key: str | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_key: str | Path | None = None,
    renew: bool = False,
    force: bool | None = None,
) -> OpenWatch:
    """Open a watch, and charge it unless `checkpoint` holds a session that was charged and can be resumed.

    The whole cost of the query is charged here, once; decisions cost nothing more. Close the watch when done, or use
    `with`.

    query            a `wf.Watch` or a `wf.Shift`: what is detected, bounds, whom it protects, and its loss
    ledger           a Ledger, a path or a URL; None for the default one
    dataset          data set name; the budget is tracked under it
    columns          names the entries of an observation, unless the query or the schema does
    schema           public facts of the columns, or the file that states them: bounds, centers, scales
    analyst          who asks; default: $WALLFLOWER_ANALYST, the project's, or you
    idempotency_key  identifies the charge; a key that was charged before is refused (a checkpoint resumes a watch)
    checkpoint       a file that keeps every decision, created if needed; a watch that died is resumed from it
    checkpoint_key   the file of a key that seals its secret
    renew            follow a session that is closed or exhausted by a new one, which is charged and begins with 1
    force            decisions that are mostly noise are refused where False, and warned about where None
    """
    watched = WatchTarget.of(query, dataset, columns, schema)
    if isinstance(query, Watch) and query.relearn is not None:
        raise ParameterError(
            "relearn: a watch over observations as they come keeps its baseline. Leave it out, and open a new watch by "
            "a new baseline when the usual has drifted."
        )
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    kept = _open_checkpoint(checkpoint, checkpoint_key)
    rule, noise = watched.rule, system_noise()
    own = new_holder("watch", noise)
    try:
        payer = watched.payer(book, kept, analyst=analyst, force=force)
        found = payer.open_session(
            {"facts": watched.facts.to_json()},
            lambda: rule.detector.secret(noise),
            rule.detector.is_over,
            idempotency_key=own if idempotency_key is None else idempotency_key,
            renew=renew,
        )
    except BaseException:
        if kept is not None:
            kept.close()
        raise
    return OpenWatch(rule, payer, kept, found, noise, holder=own)


def _open_checkpoint(checkpoint: str | Path | None, key: str | Path | None) -> Checkpoint | None:
    if checkpoint is None and key is not None:
        raise ParameterError(
            "checkpoint_key: it seals a checkpoint, and none is given. Name a checkpoint too, or leave it out."
        )
    return None if checkpoint is None else Checkpoint(checkpoint, read_vault(None if key is None else Path(key)))


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """What a batch came to.

    first      the number of its first observation
    flags      whether each is flagged
    scores     noisy scores, if the query has them; of a shift the onset of each alarm, negative where the mean fell
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
    def of(
        cls, query: StreamQuery, dataset: str, columns: Sequence[str] | None, schema: Schema | str | Path | None
    ) -> Self:
        """IntentLog a query to what is public of the stream."""
        public = Schema.read(schema) if isinstance(schema, str | Path) else schema
        names = names_of(query, columns, public)
        facts = Schema.of(names) if public is None or public.columns is None else public.only(names)
        rule = Rule(query, facts)
        if query.seasonal_baseline is not None:
            query.seasonal_baseline.require_same(dataset, names)
        return cls(dataset=dataset, facts=facts, rule=rule, declared=declaration_of(dataset, public or Schema()))

    def payer(self, ledger: Ledger, checkpoint: Memory | None, *, analyst: str | None, force: bool | None) -> Payer:
        """Who pays for it, and remembers in `checkpoint`, if there is one."""
        query, facts, names = self.rule.query, self.facts, tuple(self.rule.columns)
        return Payer(
            query=query,
            claim=query.claim(LiveStream(columns=names, schema=facts)),
            declared=self.declared,
            dataset=self.dataset,
            analyst=analyst or default_analyst(),
            ledger=ledger,
            checkpoint=checkpoint,
            check_useful=lambda: require_useful(
                query.plan(n=facts.rows or DEFAULT_PLAN_ROWS, dimension=len(names)), force=force
            ),
        )


def new_holder(kind: str, noise: Noise) -> str:
    """A name for the holder of a session, and the key of its charge unless another is given: no other ledger has it."""
    return f"{kind}-" + "".join(f"{word:016x}" for word in words(noise, 2).tolist())


class OpenWatch:
    """An open watch. One process has it: in a forked child it is closed."""

    def __init__(
        self, rule: Rule, payer: Payer, checkpoint: Checkpoint | None, found: OpenSession, noise: Noise, *, holder: str
    ) -> None:
        self.resumed, self._checkpoint = found.resumed, checkpoint
        self._rule, self._payer, self._session, self._noise = rule, payer, found.session, noise
        self._intents = IntentLog(payer.ledger, found.block, position=found.session.position, holder=holder)
        self._is_open = True
        self._memory = found.session.memory
        self._lock = RLock()
        self._quick = rule.quick() if checkpoint is None else None
        self._ahead: list[int] = []  # words for single decisions
        _OPEN.add(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the entries of an observation are called."""
        return self._rule.columns

    @property
    def kind(self) -> str:
        """What is decided: `watch` or `shift`."""
        return self._rule.query.kind

    @property
    def charge(self) -> int:
        """The entry of the ledger that paid for this session."""
        return int(self._session.about["charge"])

    @property
    def position(self) -> int:
        """How many observations were decided in this session, or skipped."""
        return self._session.position - len(self._ahead)

    @property
    def skipped_ahead(self) -> int:
        """How many of the next observations are not looked at: a process that did not end well had noted them."""
        return 0 if self.exhausted else self._intents.count_skipped(self.position)

    @property
    def exhausted(self) -> bool:
        """Whether nothing more will be decided in this session."""
        return self._session.exhausted

    def decide(self, x: Observation, *, time: str | None = None) -> bool | None:
        """Whether the next observation is flagged: a number, a sequence of them, or a mapping by column. `time` says
        when it was made, where the watch has a baseline by phase.

        None when the watch is exhausted, or the observation is skipped. An entry that is missing or no number
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
        """Decide a batch; with a checkpoint, all of it is on disk before any of it is released.

        A frame is read by the names of its columns, in any order; those that are not watched are ignored.

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
        """Put the watch down. Without a checkpoint nothing is left of it."""
        with self._lock:
            if self._is_open:
                self._stop()
                self._release_intents()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        words = "closed" if not self._is_open else "exhausted" if self.exhausted else "open"
        return f"OpenWatch({self._payer.dataset!r}, charge {self.charge}, {self.position:,} decided, {words})"

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
        if known and self._checkpoint is None:
            raise StateError(
                f"observation {start} was decided before, and a watch without a checkpoint keeps no decisions. "
                "Open the watch with checkpoint=FILE to ask again."
            )
        start = index(start)  # SQLite would keep one of numpy as bytes
        rows = [] if self._checkpoint is None else self._checkpoint.recall(self._session, start, known)
        flags = [flag for flag, _ in rows]
        return self._decisions(start, flags, [score or 0 for _, score in rows], [flag is None for flag in flags])

    def _decide_next(self, rows: Any) -> Decisions:
        """Decide what comes next: nothing is told before it is kept."""
        start, skipped = self.position + 1, min(self.skipped_ahead, len(rows))
        parts = list(self._looks(self._rule.measure(rows[skipped:]), start + skipped))
        unknown = np.zeros(skipped, dtype=np.int64)
        flags = np.concatenate([unknown, *(part.flags for part in parts)])
        scores = np.concatenate([unknown, *(part.scores for part in parts if part.scores is not None)])
        self._session = self._keep(flags[skipped:], scores[skipped:], skipped)
        return self._decisions(start, flags, scores, np.arange(len(flags)) < skipped)

    def _keep(self, flags: NDArray[Any], scores: NDArray[Any], skipped: int) -> Session:
        """The session after the skipped ones and these decisions, on disk if it has a checkpoint."""
        after = replace(
            self._session,
            position=self._session.position + skipped + len(flags),
            block=self._intents.block.number,
            memory=self._memory,
            exhausted=self._rule.detector.is_over(self._session.spent),
        )
        if self._checkpoint is not None:
            kept = scores.tolist() if self._rule.has_scores else [None] * len(flags)
            self._checkpoint.keep(after, [(None, None)] * skipped + list(zip(flags.tolist(), kept, strict=True)))
        return after

    def _looks(self, distances: NDArray[np.int64], first: int) -> Iterator[Output]:
        """Decide about these, the first of which has this number: nothing is looked at before it is held.

        What was spent counts at once, since a note in the ledger may show it, even if nothing of it is kept.  (B)
        """
        rule, last = self._rule, first - 1 + len(distances)
        self._memory = self._session.memory or rule.start()  # kept with the decisions, or not at all
        while len(distances) and not rule.detector.is_over(self._session.spent):
            max_spent, session = self._cover_until(last), self._session
            found, self._memory = rule.decide(
                distances,
                first,
                self._memory,
                self._noise,
                secret=session.secret,
                spent=session.spent,
                max_spent=max_spent,
            )
            self._session = replace(session, spent=found.spent)
            first += found.count
            distances = distances[found.count :]
            yield found

    def _cover_until(self, last: int) -> int | None:
        """Cover all up to an observation; return the most that may be spent on it."""
        session, checkpoint = self._session, self._checkpoint
        if checkpoint is None:
            return None
        if not self._intents.cover(session.position, last, session.spent, self._rule.detector.reserve):
            raise checkpoint.close_session("a copy of it is taken up elsewhere: the ledger knows of later decisions")
        return self._intents.block.spent

    def _decisions(self, start: int, flags: Any, scores: Any, skipped: Any) -> Decisions:
        return Decisions(
            start,
            np.asarray(flags, dtype=np.bool_),
            np.asarray(scores, dtype=np.int64) if self._rule.has_scores else None,
            self.exhausted and start + len(flags) > self.position,
            np.asarray(skipped, dtype=np.bool_),
        )

    def _draw_block(self) -> int:
        """The first word of a new block; the rest is kept for later."""
        with self._lock:
            self._require_open()
            word, *rest = words(self._noise, WORDS_DRAWN_AHEAD).tolist()
            self._session = replace(self._session, position=self._session.position + WORDS_DRAWN_AHEAD)
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
            if self._checkpoint is not None:
                self._checkpoint.abandon()

    def _release_intents(self) -> None:
        checkpoint = self._checkpoint
        if checkpoint is not None:
            with suppress(LedgerError, StateError):  # what is held and not given back is skipped
                self._intents.release(checkpoint.position_of(self._session), self._session.spent)
            checkpoint.close()

    def _stop(self) -> None:
        """Decide nothing any more, and forget what was drawn ahead: a child would use it a second time."""
        self._session, self._is_open = replace(self._session, position=self.position), False
        self._ahead.clear()


def _single(found: Decisions) -> bool | None:
    return found.outliers[0] if len(found) else None


_OPEN: Final[WeakSet[OpenWatch]] = WeakSet()


def _forget() -> None:
    for watch in _OPEN:
        watch.detach()


os.register_at_fork(after_in_child=_forget)
