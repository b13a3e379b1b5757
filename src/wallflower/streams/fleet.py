"""A fleet: one watch over many streams, each observation known by its stream and its time.

with wf.fleet(query, columns=["load"], dataset="meters", ledger=None, store="meters.db") as fleet:
    told = fleet.decide_many(["m1", "m2"], ["2026-01-01T00:15Z", "2026-01-01T00:15Z"], [3.1, 40.0])

The observations of all streams are one data set: an entry of one observation is in one stream, so one charge covers
them all. Stream names and times are public. Every decision is stored before it is released. An observation that is
sent again gets its stored decision: no second look, no new noise. Before a fleet looks, it notes in the ledger up to
which time it will: after a crash, observations up to that time without a stored decision are skipped.

One observation never stops a batch. A name or a time that cannot be used, or a time too far ahead, is reported as a
fault of that observation (names and times are public). An entry of any type counts as a number or as missing, row by
row, and is never reported. Proof: proof.md of `ledger`, (B2).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import index
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Final, Literal, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Schema
from wallflower.errors import DataError, LedgerError, ParameterError, StateError
from wallflower.ledger import Ledger
from wallflower.noise import Noise, system_noise
from wallflower.queries.watch import Watch
from wallflower.streams.fleet_store import FleetStore, Key, Mark
from wallflower.streams.rule import Observation, Rule, rows_of
from wallflower.streams.session import IntentLog, OpenSession, Payer, Row
from wallflower.streams.watch import WatchTarget, new_holder

LATEST: Final = 2**62
NAME_BYTES: Final = 1024  # of a stream's name; an index of PostgreSQL takes no more than 2,704 in all
CLOCK_SECONDS: Final = 86_400  # how far a date may be beyond this machine's clock
LEAST_STEPS: Final = 10**6  # how far a whole number may be beyond those of the other streams, at least

Time = str | int
Fault = Literal["stream", "time", "ahead"]
_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
_MICROSECONDS: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class FleetDecisions:
    """What a batch came to, in its order.

    flags    whether each observation is flagged
    scores   noisy scores, if the query has them
    skipped  where nobody looked: flag and score mean nothing there
    again    where it is what was told before
    faults   why an observation was not accepted, else None: its `stream` has no valid name, its `time` cannot be read,
             or is too far `ahead`; these are skipped too, and may be sent again
    """

    flags: NDArray[np.bool_]
    scores: NDArray[np.int64] | None
    skipped: NDArray[np.bool_]
    again: NDArray[np.bool_]
    faults: tuple[Fault | None, ...]

    @property
    def outliers(self) -> list[bool | None]:
        """The flags, None where an observation was skipped."""
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
    idempotency_key: str | None = None,
    renew: bool = False,
    force: bool | None = None,
    look_ahead: int | None = None,
) -> Fleet:
    """Open a fleet, and pay for it unless `store` holds a session of it that was paid for and can go on.

    The whole cost of the query is charged here, once, for all streams together. The rest is as for `watching`.

    query       a `wf.Watch` that protects one entry of one observation
    ledger      a Ledger, a path or a URL; None for the default one
    dataset     data set name; the budget is tracked under it
    store       a file, made if it is not there, or the URL of a PostgreSQL database: it keeps every decision
    columns     names the entries of an observation, unless the query or the schema does
    schema      public facts of the columns, or the file that states them
    analyst     who asks; default: $WALLFLOWER_ANALYST, the project's, or you
    idempotency_key
                identifies the charge; a key that was charged before is refused. A fleet is resumed by its store
    renew       a session that is closed is followed by a new one, which is paid for
    force       decisions that are mostly noise are refused where False, and warned about where None
    look_ahead  how far ahead a time may be: a date in seconds beyond this machine's clock (default: 86,400), a whole
                number beyond the newest of the other streams (default: as much again, at least 1,000,000)
    """
    _require_events(query)
    if look_ahead is not None and (type(look_ahead) is not int or not 0 <= look_ahead < LATEST):
        raise ParameterError("look_ahead must be a whole number from 0. Omit it for the default.")
    watched = WatchTarget.of(query, dataset, columns, schema)
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    kept = FleetStore(store, dataset)
    rule, noise = watched.rule, system_noise()
    own = new_holder("fleet", noise)
    try:
        payer = watched.payer(book, kept, analyst=analyst, force=force)
        found = payer.open_session(
            {"facts": watched.facts.to_json(), "fleet": True},
            lambda: (),
            rule.detector.is_over,
            idempotency_key=own if idempotency_key is None else idempotency_key,
            renew=renew,
        )
        return Fleet(rule, payer, kept, found, noise, holder=own, look_ahead=look_ahead)
    except BaseException:
        kept.close()
        raise


def _require_events(query: Watch) -> None:
    if not isinstance(query, Watch):
        raise ParameterError(
            f"query: a fleet decides single observations, and {query.kind} follows one stream. Pass a wf.Watch, or "
            "open each stream by wf.watching."
        )
    if query.level != "entry" or query.relearn is not None:
        raise ParameterError(
            "level, relearn: a fleet protects one entry of one observation, wherever it is; a person may be in several "
            "streams, and a re-estimated baseline belongs to one. Use level=entry without relearn, or open one watch "
            "for each stream."
        )


class Fleet:
    """An open fleet, for any number of threads. One process has it: a forked child does not."""

    def __init__(
        self,
        rule: Rule,
        payer: Payer,
        store: FleetStore,
        found: OpenSession,
        noise: Noise,
        *,
        holder: str,
        look_ahead: int | None = None,
    ) -> None:
        self.resumed = found.resumed
        self._rule, self._payer, self._store, self._noise = rule, payer, store, noise
        self._session, self._latest_block, self._holder = found.session, found.block, holder
        mark = store.mark_of(found.session)
        is_whole = mark.hash == found.block.hash  # (B2) nobody went on since, so the store knows all that was told
        self._barred = mark.barred if is_whole else found.block.last
        self._intents: IntentLog | None = None  # from the first look on
        self._newest = store.latest_times(found.session)
        self._is_stale = False  # whether the store may know of decisions that this process does not
        self._horizon = _Horizon(look_ahead, self._newest)
        self._lock = RLock()
        self._process: int | None = os.getpid()

    @property
    def columns(self) -> tuple[str, ...]:
        """What the entries of an observation are called."""
        return self._rule.columns

    @property
    def charge(self) -> int:
        """The entry of the ledger that paid for this session."""
        return int(self._session.about["charge"])

    @property
    def streams(self) -> int:
        """How many streams have a decision."""
        return len(self._newest)

    @property
    def may_skip(self) -> bool:
        """Whether a process that did not end well leaves observations that are not looked at."""
        return self._barred > 0

    def decide(self, stream: str, time: Time, x: Observation) -> bool | None:
        """Whether one observation is flagged; None if it is skipped."""
        return self.decide_many([stream], [time], [x]).outliers[0]

    def decide_many(self, streams: Sequence[str], times: Sequence[Time | None], rows: Any) -> FleetDecisions:
        """Decide a batch, of any streams in any order; all of it is stored before any of it is released.

        A time is a date and time in ISO 8601 (UTC unless it has a zone), or a whole number from 0: an offset, or a
        clock. The phase of a baseline is read from it. An observation whose stream or time cannot be used is reported
        in `faults`. A row without as many entries as there are columns counts as missing.
        """
        self._require_open()
        with self._lock:
            self._require_open()
            self._refresh()
            asked = self._rule.read_rows(rows_of(rows, self.columns), self._rule.row_or_missing)
            if not len(streams) == len(times) == len(asked):
                raise DataError("a batch needs one stream, one time and one row for each observation.")
            keys, faults = self._read_keys(streams, times)
            sound = [place for place, fault in enumerate(faults) if fault is None]
            measured = self._rule.in_spreads(asked[sound], None, [str(times[place]) for place in sound])
            return self._decide_keys(keys, faults, dict(zip(sound, measured, strict=True)))

    def close(self) -> None:
        """Put the fleet down: what was decided stays in the store, and the next to open it goes on."""
        if self._process != os.getpid():
            return
        with self._lock:
            if self._process != os.getpid():
                return
            self._process = None
            if self._intents is not None:
                with suppress(LedgerError, StateError):  # observations that were noted and not given back are skipped
                    self._intents.release(self._store.position_of(self._session), 0)
                    self._store.mark(self._session, Mark(hash=self._intents.block.hash, barred=self._barred))
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

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise StateError("an open fleet cannot be copied or pickled: one charge pays for one. Pass it by reference.")

    def _refresh(self) -> None:
        """After a transaction whose end is unknown: what the store says, not what this process remembers."""
        if self._is_stale:
            self._session = replace(self._session, position=self._store.position_of(self._session))
            self._newest = self._store.latest_times(self._session)
            self._is_stale = False

    def _read_keys(
        self, streams: Sequence[str], times: Sequence[Time | None]
    ) -> tuple[list[Key | None], list[Fault | None]]:
        """What identifies each observation, and its fault; a function of public names, times and clocks alone."""
        keys: list[Key | None] = []
        faults: list[Fault | None] = []
        dated = [isinstance(time, str | datetime) for time in times]
        for stream, time, is_date in zip(streams, times, dated, strict=True):
            found = key_of(stream, time) if is_date or not self._rule.needs_dates else "time"
            keys.append(found if isinstance(found, tuple) else None)
            faults.append(None if isinstance(found, tuple) else found)
        for place, is_far in enumerate(self._horizon.find_far(keys, dated, self._newest)):
            if is_far:
                keys[place], faults[place] = None, "ahead"
        return keys, faults

    def _decide_keys(
        self, keys: Sequence[Key | None], faults: Sequence[Fault | None], measured: dict[int, NDArray[np.float64]]
    ) -> FleetDecisions:
        known = self._recall([key for key in keys if key is not None])
        fresh: dict[Key, int] = {}
        for place, key in enumerate(keys):
            if key is not None and key not in known and key[1] > self._barred:
                fresh.setdefault(key, place)
        rows = np.array([measured[place] for place in fresh.values()]).reshape(len(fresh), len(self.columns))
        decided = known | self._decide_fresh(fresh, rows)
        found = [(None, None) if key is None else decided.get(key, (None, None)) for key in keys]
        return FleetDecisions(
            np.array([bool(flag) for flag, _ in found], dtype=np.bool_),
            np.array([score or 0 for _, score in found], dtype=np.int64) if self._rule.has_scores else None,
            np.array([flag is None for flag, _ in found], dtype=np.bool_),
            np.array(
                [key in known or (key in fresh and fresh[key] != place) for place, key in enumerate(keys)],
                dtype=np.bool_,
            ),
            tuple(faults),
        )

    def _recall(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """What was told about these before; a time that is newer than all of its stream was not."""
        older = list({key for key in keys if key[1] <= self._newest.get(key[0], -1)})
        return self._store.recall(self._session, older) if older else {}

    def _decide_fresh(self, fresh: dict[Key, int], rows: NDArray[np.float64]) -> dict[Key, Row]:
        """Decide these, one row each: noted before the look, stored before the release."""
        if not fresh:
            return {}
        block = self._note_times(min(time for _, time in fresh), max(time for _, time in fresh))
        kept: dict[Key, Row] = {}
        after = replace(self._session, block=block, position=max(self._session.position, *(time for _, time in fresh)))
        self._is_stale = True  # until the store has answered
        with self._store.keep(after, kept):
            measured = self._rule.measure(rows)
            found, _ = self._rule.decide(measured, 1, (), self._noise, secret=(), spent=0, max_spent=None)
            scores = [None] * len(fresh) if found.scores is None else found.scores.tolist()
            kept.update(zip(fresh, zip(map(int, found.flags.tolist()), scores, strict=True), strict=True))
        self._session = after
        for stream, time in fresh:
            self._newest[stream] = max(time, self._newest.get(stream, -1))
        self._is_stale = False
        return kept

    def _note_times(self, first: int, last: int) -> int:
        """Note in the ledger all up to a time; gives the number of the row that does."""
        if self._intents is None:
            begun = max(self._session.position, first - 1)
            self._intents = IntentLog(self._payer.ledger, self._latest_block, position=begun, holder=self._holder)
        reach = self._horizon.reach
        if not self._intents.cover(self._session.position, last, 0, self._rule.detector.reserve, reach=reach):
            raise self._store.close_session("a copy of it is taken up elsewhere: the ledger knows of later decisions")
        return self._intents.block.number

    def _require_open(self) -> None:
        if self._process != os.getpid():
            raise StateError(
                "the fleet is closed, or was opened before this process was forked; one process has it until it is "
                "closed. Open it again, or in the child."
            )


class _Horizon:
    """How far ahead a time may be, so that one wrong clock cannot make a crash skip every stream until it is reached.

    A date may be `CLOCK_SECONDS` beyond this machine's clock. A whole number has no clock: it may be as far beyond the
    newest that its own stream had decided, or any other stream has sent, as that is itself; the first is accepted.
    """

    def __init__(self, look_ahead: int | None, newest: Mapping[str, int]) -> None:
        self._look_ahead = look_ahead
        self._is_dated = False
        self._leader: str | None = None  # the stream that has sent the newest time; the newest of all others
        self._lead = self._next = 0
        for stream, time in newest.items():
            self._hear(stream, time)

    @property
    def reach(self) -> int:
        """How far beyond the newest decision times may be noted in the ledger before they are needed."""
        stated = self._look_ahead
        if self._is_dated:
            return (CLOCK_SECONDS if stated is None else stated) * _MICROSECONDS
        return LEAST_STEPS if stated is None else stated

    def find_far(self, keys: Sequence[Key | None], dated: Sequence[bool], decided: Mapping[str, int]) -> list[bool]:
        """Which times of a batch are too far ahead; all of it counts as sent. `decided`: the newest of each stream."""
        for key, is_date in zip(keys, dated, strict=True):
            if key is not None and not is_date:
                self._hear(*key)
        self._is_dated = self._is_dated or any(dated)
        seconds = CLOCK_SECONDS if self._look_ahead is None else self._look_ahead
        latest = place_of(_now()) + seconds * _MICROSECONDS
        return [
            key is not None
            and key[1] > max(decided.get(key[0], 0), latest if is_date else self._last_of(key[0], decided))
            for key, is_date in zip(keys, dated, strict=True)
        ]

    def _hear(self, stream: str, time: int) -> None:
        if stream == self._leader:
            self._lead = max(self._lead, time)
        elif time > self._lead:
            self._leader, self._lead, self._next = stream, time, self._lead
        else:
            self._next = max(self._next, time)

    def _last_of(self, stream: str, decided: Mapping[str, int]) -> int:
        """The last whole number that this stream may send."""
        others = self._next if stream == self._leader else self._lead
        if not others:
            return LATEST  # there is no other stream
        newest = max(others, decided.get(stream, 0))
        return newest + (max(newest, LEAST_STEPS) if self._look_ahead is None else self._look_ahead)


def _now() -> datetime:
    return datetime.now(UTC)


def key_of(stream: object, time: object) -> Key | Fault:
    """What identifies an observation, or its fault."""
    try:
        name = str(stream)
        if len(name.encode("utf-8")) > NAME_BYTES or "\0" in name:
            return "stream"
    except Exception:  # noqa: BLE001 - a name may be of any type
        return "stream"
    try:
        return name, place_of(time)
    except DataError:
        return "time"


def place_of(time: object) -> int:
    """A time as a whole number from 1: of microseconds since the year 1, or one more than the number it is.

    >>> place_of(0), place_of("0001-01-01T00:00:00Z"), place_of("2026-01-01T00:15+01:00") - place_of("2026-01-01")
    (1, 1, -2700000000)
    """
    try:
        if isinstance(time, str | datetime):
            found = datetime.fromisoformat(time) if isinstance(time, str) else time
            since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - _FIRST
            if since.days >= 0:
                return (since.days * 86_400 + since.seconds) * _MICROSECONDS + since.microseconds + 1
        elif not isinstance(time, bool | np.bool_) and 0 <= (steps := index(time)) < LATEST:  # type: ignore[arg-type]
            return steps + 1
    except (TypeError, ValueError, OverflowError):
        pass
    raise DataError(
        "the time of an observation must be a date and time such as 2026-01-01T00:15:00Z, or a whole number from 0."
    )
