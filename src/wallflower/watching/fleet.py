"""A fleet: one watch over many streams, each observation known by its stream and its time.

with wf.fleet(query, columns=["load"], dataset="meters", ledger=None, store="meters.db") as fleet:
    told = fleet.decide_many(["m1", "m2"], ["2026-01-01T00:15Z", "2026-01-01T00:15Z"], [3.1, 40.0])

The observations of all streams are one data set: an entry of one observation is in one stream, so one charge covers
them all. Which streams there are, and when they report, is public. Every decision is kept before it is told. What is
sent again gets the decision that was told; it is not looked at, and no noise is drawn for it. Before a fleet looks, it
notes in the ledger up to which time it does: after a crash what is not newer, and not in the store, is passed over.
Proof: proof.md of `ledger`, (B2).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Schema
from wallflower.errors import DataError, LedgerError, ParameterError, StateError
from wallflower.ledger import Ledger
from wallflower.noise import Noise, system_noise
from wallflower.queries.watch import Watch
from wallflower.queries.watch.modes import mode_of
from wallflower.watching.fleet_store import FleetStore, Key, Mark
from wallflower.watching.frames import rows_of
from wallflower.watching.hold import Hold
from wallflower.watching.payer import OpenEpoch, Payer
from wallflower.watching.rule import Observation, Rule
from wallflower.watching.state import Row
from wallflower.watching.subject import Subject, new_holder

__all__ = ["Fleet", "FleetDecisions", "fleet"]

LATEST: Final = 2**62

Time = str | int
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class FleetDecisions:
    """What a batch came to, in its order.

    flags    whether each observation is flagged
    scores   noisy scores, if the query has them
    skipped  where nobody looked: flag and score mean nothing there
    again    where it is what was told before
    """

    flags: NDArray[np.bool_]
    scores: NDArray[np.int64] | None
    skipped: NDArray[np.bool_]
    again: NDArray[np.bool_]

    @property
    def outliers(self) -> list[bool | None]:
        """The flags, None where an observation was passed over."""
        return [None if gone else flag for flag, gone in zip(self.flags.tolist(), self.skipped.tolist(), strict=True)]

    def __len__(self) -> int:
        return len(self.flags)


def fleet(
    query: Watch,
    *,
    ledger: Ledger | str | Path | None,
    dataset: str,
    store: str | Path,
    columns: Sequence[str] | None = None,
    schema: Schema | str | Path | None = None,
    analyst: str | None = None,
    key: str | None = None,
    renew: bool = False,
    anyway: bool | None = None,
) -> Fleet:
    """Open a fleet, and pay for it unless `store` holds an epoch of it that was paid for and can go on.

    The whole cost of the query is charged here, once, for all streams together. The rest is as for `watching`.

    query    a `wf.Watch` that protects one entry of one observation
    ledger   a Ledger, a path or a URL; None for the default one
    dataset  the name that the budget hangs on
    store    a file, made if it is not there, or the URL of a PostgreSQL database: it keeps every decision
    columns  names the entries of an observation, unless the query or the schema does
    schema   public facts of the columns, or the file that states them
    analyst  who asks; left out: $WALLFLOWER_ANALYST, the project's, or you
    key      opened again under the same key, the fleet is not paid again
    renew    an epoch that is closed is followed by a new one, which is paid for
    anyway   decisions of no use are refused where False, and warned about where None
    """
    _require_events(query)
    watched = Subject.of(query, dataset, columns, schema)
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    kept = FleetStore(store, dataset)
    rule, noise = watched.rule, system_noise()
    own = new_holder("fleet", noise)
    try:
        payer = watched.payer(book, kept, analyst=analyst, anyway=anyway)
        found = payer.open_epoch(
            {"facts": watched.facts.to_json(), "fleet": True},
            lambda: (),
            rule.detector.is_over,
            key=own if key is None else key,
            renew=renew,
        )
        return Fleet(rule, payer, kept, found, noise, holder=own)
    except BaseException:
        kept.close()
        raise


def _require_events(query: Watch) -> None:
    if mode_of(query) != "staircase" or query.relearn is not None:
        raise ParameterError(
            "level, relearn: a fleet protects one entry of one observation, wherever it is; a person may be in several "
            "streams, and a baseline learnt anew belongs to one. Use level=event without relearn, or open one watch "
            "for each stream."
        )


class Fleet:
    """An open fleet. One process has it: a forked child does not."""

    def __init__(
        self, rule: Rule, payer: Payer, store: FleetStore, found: OpenEpoch, noise: Noise, *, holder: str
    ) -> None:
        self.resumed = found.resumed
        self._rule, self._payer, self._store, self._noise = rule, payer, store, noise
        self._epoch, self._latest_block, self._holder = found.epoch, found.block, holder
        mark = store.mark_of(found.epoch)
        is_whole = mark.hash == found.block.hash  # (B2) nobody went on since, so the store knows all that was told
        self._barred = mark.barred if is_whole else found.block.last
        self._hold: Hold | None = None  # from the first look on
        self._newest = store.latest_times(found.epoch)
        self._process: int | None = os.getpid()

    @property
    def columns(self) -> tuple[str, ...]:
        """What the entries of an observation are called."""
        return self._rule.columns

    @property
    def charge(self) -> int:
        """The entry of the ledger that paid for this epoch."""
        return int(self._epoch.about["charge"])

    @property
    def streams(self) -> int:
        """How many streams have a decision."""
        return len(self._newest)

    @property
    def may_pass_over(self) -> bool:
        """Whether a process that did not end well leaves observations that are not looked at."""
        return self._barred > 0

    def decide(self, stream: str, time: Time, x: Observation) -> bool | None:
        """Whether one observation is flagged; None if it is passed over."""
        return self.decide_many([stream], [time], [x]).outliers[0]

    def decide_many(self, streams: Sequence[str], times: Sequence[Time], rows: Any) -> FleetDecisions:
        """Decide a batch, of any streams in any order; all of it is kept before any of it is told.

        A time is a date and time as ISO 8601 has it (without a zone it is UTC), or a whole number from 0: an offset, or
        a clock. The phase of a baseline is read off it.
        """
        self._require_open()
        asked = rows_of(rows, self.columns)
        keys = keys_of(streams, times)
        if len(asked) != len(keys):
            raise DataError("a batch has one stream, one time and one row for each observation. Pass as many of each.")
        measured = self._rule.in_spreads(asked, rows, [str(time) for time in times])
        known = self._recall(keys)
        fresh: dict[Key, int] = {}
        for place, key in enumerate(keys):
            if key not in known and key[1] > self._barred:
                fresh.setdefault(key, place)
        again = np.array(
            [key in known or fresh.get(key, place) != place for place, key in enumerate(keys)], dtype=np.bool_
        )
        decided = known | self._decide_fresh(fresh, measured)
        found = [decided.get(key, (None, None)) for key in keys]
        return FleetDecisions(
            np.array([bool(flag) for flag, _ in found], dtype=np.bool_),
            np.array([score or 0 for _, score in found], dtype=np.int64) if self._rule.query.scores else None,
            np.array([flag is None for flag, _ in found], dtype=np.bool_),
            again,
        )

    def close(self) -> None:
        """Put the fleet down: what was decided stays in the store, and the next to open it goes on."""
        if self._process != os.getpid():
            return
        self._process = None
        if self._hold is not None:
            with suppress(LedgerError, StateError):  # what is held and not given back is passed over
                self._hold.put_down(self._epoch.position, 0)
                self._store.mark(self._epoch, Mark(hash=self._hold.block.hash, barred=self._barred))
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        words = "closed" if self._process is None else "open"
        return f"Fleet({self._payer.dataset!r}, charge {self.charge}, {self.streams:,} streams, {words})"

    def _recall(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """What was told about these before; a time that is newer than all of its stream was not."""
        older = list({key for key in keys if key[1] <= self._newest.get(key[0], -1)})
        return self._store.recall(self._epoch, older) if older else {}

    def _decide_fresh(self, fresh: dict[Key, int], rows: Any) -> dict[Key, Row]:
        """Decide about these, at these places of the batch: noted before the look, kept before it is told."""
        if not fresh:
            return {}
        block = self._note_times(min(time for _, time in fresh), max(time for _, time in fresh))
        kept: dict[Key, Row] = {}
        after = replace(self._epoch, block=block, position=max(self._epoch.position, *(time for _, time in fresh)))
        with self._store.keep(after, kept):
            distances = self._rule.measure(np.asarray(rows)[list(fresh.values())])
            found = self._rule.detector.decide(distances, (), 0, self._noise)
            scores = [None] * len(fresh) if found.scores is None else found.scores.tolist()
            kept.update(zip(fresh, zip(map(int, found.flags.tolist()), scores, strict=True), strict=True))
        self._epoch = after
        for stream, time in fresh:
            self._newest[stream] = max(time, self._newest.get(stream, -1))
        return kept

    def _note_times(self, first: int, last: int) -> int:
        """Note in the ledger all up to a time; gives the number of the row that does."""
        if self._hold is None:
            begun = max(self._epoch.position, first - 1)
            self._hold = Hold(self._payer.ledger, self._latest_block, position=begun, holder=self._holder)
        if not self._hold.cover(self._epoch.position, last, 0, self._rule.detector.ahead):
            raise self._store.close_epoch("a copy of it is taken up elsewhere: the ledger knows of later decisions")
        return self._hold.block.number

    def _require_open(self) -> None:
        if self._process != os.getpid():
            raise StateError(
                "the fleet is closed, or was opened before this process was forked; one process has it until it is "
                "closed. Open it again, or in the child."
            )


def keys_of(streams: Sequence[str], times: Sequence[Time]) -> list[Key]:
    """By what each observation is known."""
    if len(streams) != len(times):
        raise DataError("a batch has one stream and one time for each observation. Pass as many of each.")
    return [(str(stream), place_of(time)) for stream, time in zip(streams, times, strict=True)]


def place_of(time: Time) -> int:
    """A time as a whole number from 1: of microseconds since the year 1, or one more than the number it is.

    >>> place_of(0), place_of("0001-01-01T00:00:00Z"), place_of("2026-01-01T00:15+01:00") - place_of("2026-01-01")
    (1, 1, -2700000000)
    """
    if isinstance(time, int) and not isinstance(time, bool) and 0 <= time < LATEST:
        return time + 1
    try:
        found = datetime.fromisoformat(str(time)) if isinstance(time, str) else None
        if found is not None:
            since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - _FIRST
            return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds + 1
    except (ValueError, OverflowError):
        pass
    raise DataError(
        "an observation of a fleet has a time: a date and time such as 2026-01-01T00:15:00Z, or a whole number from 0. "
        "Correct the time; it is public, and the phase and the order are read off it."
    )
