"""A tally over records as they come: paid for once, one running total released after every period.

with wf.tallying(query, ledger=None, dataset="ward", checkpoint="ward.tally") as tally:
    tally.add(records)             # as often as some arrive
    total = tally.close_period()   # by the clock, never by what is in the records

Counts are on disk when `add` returns. A total is computed once: what hides it is on disk, under a name of its own,
before the ledger notes that name, and the ledger notes it before the total is released. So a tally that died releases
the same total again, and of two copies of a checkpoint one alone goes on: proof.md of `ledger`, (B3).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from wallflower.data import Schema
from wallflower.errors import ParameterError, SessionClosed, StateError
from wallflower.ledger import Block, Ledger
from wallflower.ledger.chain import canonical
from wallflower.machine.sqlite_file import FileFormat, SqliteFile
from wallflower.machine.vault import read_vault
from wallflower.mechanisms import MAX_TOTAL
from wallflower.noise import Noise, system_noise
from wallflower.queries.detector.model import Model
from wallflower.queries.detector.tally import FLAGGED, Tally
from wallflower.query.accuracy import CONFIDENCE
from wallflower.release import declaration_of, default_analyst, require_useful
from wallflower.streams.session import Memory, Payer, Session
from wallflower.streams.watch import new_holder

_PLAN_RECORDS: Final = 100_000  # that a plan assumes, as nobody knows how many there will be
_FORMAT: Final = FileFormat(
    application_id=0x77666C37,
    tables="""
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    about TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'closed')),
    received INTEGER NOT NULL DEFAULT 0,
    counted BLOB NOT NULL
);
CREATE TABLE periods (
    session INTEGER NOT NULL,
    period INTEGER NOT NULL,
    counted BLOB NOT NULL,
    hidden INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (session, period)
) WITHOUT ROWID;
""",
    content="the checkpoint of a tally",
    replace_hint="Move the file away or name another; a new checkpoint starts a session, which is charged.",
    key_option="checkpoint_key",
)


@dataclass(frozen=True, slots=True)
class Total:
    """The number of records that were flagged up to the end of a period, from 1, with an interval of 95 %."""

    period: int
    flagged: int
    interval: tuple[int, int]

    def to_json(self) -> dict[str, Any]:
        return {"period": self.period, FLAGGED: self.flagged, "interval": list(self.interval)}


def tallying(
    query: Tally,
    *,
    ledger: Ledger | str | Path | None,
    dataset: str,
    checkpoint: str | Path,
    checkpoint_key: str | Path | None = None,
    analyst: str | None = None,
    idempotency_key: str | None = None,
    renew: bool = False,
    force: bool | None = None,
) -> OpenTally:
    """Open a tally, and charge it unless `checkpoint` holds a session that was charged and can go on.

    A record counts in the period that is open when it comes; `every` and `start` of the query are not used.

    query            a `wf.Tally`: the detector, the number of periods, its loss
    ledger           a Ledger, a path or a URL; None for the default one
    dataset          data set name; the budget is tracked under it
    checkpoint       a file that keeps counts and totals, created if needed; counts in it are not private
    checkpoint_key   the file of a key that seals the counts
    analyst          who asks; default: $WALLFLOWER_ANALYST, the project's, or you
    idempotency_key  identifies the charge
    renew            follow a session that is closed or has no more periods by a new one, which is charged
    force            totals that are mostly noise are refused where False, and warned about where None
    """
    book = ledger if isinstance(ledger, Ledger) else Ledger.open(ledger)
    stored = book.release(query.detector) if isinstance(query.detector, int) else None
    if stored is None or stored["kind"] != "detector" or stored["dataset"] != dataset:
        raise ParameterError(f"detector: entry {query.detector} is not a release of detector of {dataset}. Pass one.")
    model = Model.of(stored)
    model.require_threshold()
    store, noise = TallyStore(checkpoint, None if checkpoint_key is None else Path(checkpoint_key)), system_noise()
    try:
        payer = _TallyPayer(
            query=query,
            claim=query.claim(_Stream(model.columns)),
            declared=declaration_of(dataset, Schema()),
            dataset=dataset,
            analyst=analyst or default_analyst(),
            ledger=book,
            checkpoint=store,
            check_useful=lambda: require_useful(query.plan(n=_PLAN_RECORDS, dimension=len(model.columns)), force=force),
        )
        opened = payer.open_session(
            {},
            tuple,
            lambda _: store.count_periods() >= query.periods,
            idempotency_key=idempotency_key or new_holder("tally", noise),
            renew=renew,
        )
        return OpenTally(query, model, store, opened.session, opened.block, book, noise, resumed=opened.resumed)
    except BaseException:
        store.close()
        raise


@dataclass(frozen=True, slots=True)
class _Stream:
    """Public facts of records that are still to come."""

    columns: tuple[str, ...]
    n: int = 0

    @property
    def dimension(self) -> int:
        return len(self.columns)


class TallyStore:
    """The file of one tally, locked for this process."""

    def __init__(self, path: str | Path, key: Path | None) -> None:
        self._file = SqliteFile(path, _FORMAT, vault=read_vault(key))
        try:
            self._file.check_integrity()
        except BaseException:
            self._file.close()
            raise

    def newest(self) -> Session | None:
        """The latest session; raises SessionClosed where it cannot go on."""
        with self._file.transaction() as db:
            row = db.execute("SELECT * FROM sessions ORDER BY number DESC LIMIT 1").fetchone()
        if row is None:
            return None
        if row["status"] == "closed":
            raise self.close_session("what it must remember was given up")
        about = json.loads(row["about"])
        return Session(number=row["number"], about=about, secret=(), position=self.count_periods())

    def begin(self, about: dict[str, Any], secret: tuple[int, ...]) -> Session:
        """Start a session that is charged."""
        with self._file.transaction() as db:
            db.execute("UPDATE sessions SET status = 'closed'")
            (number,) = db.execute("SELECT 1 + coalesce(max(number), 0) FROM sessions").fetchone()
            db.execute(
                "INSERT INTO sessions (number, about, status, counted) VALUES (?, ?, 'open', ?)",
                (number, canonical(about), self._seal(0, number, 0)),
            )
        return Session(number=number, about=about, secret=secret)

    def close_session(self, why: str) -> SessionClosed:
        """Close the latest session for good; gives the error to raise."""
        with self._file.transaction() as db:
            db.execute("UPDATE sessions SET status = 'closed'")
        return SessionClosed(
            f"{self._file.path}: {why}. Going on could release more than was charged, so the session is closed. "
            "Start a new one, which is charged (renew=True)."
        )

    def count_periods(self) -> int:
        """How many periods of the latest session have a total."""
        return len(self.names())

    def names(self) -> list[str]:
        """The names of the totals of the latest session, in order."""
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT name FROM periods WHERE session = (SELECT max(number) FROM sessions) ORDER BY period"
            ).fetchall()
        return [row["name"] for row in rows]

    def hidden(self) -> list[int]:
        """What was computed under noise for each total of the latest session, in order."""
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT hidden FROM periods WHERE session = (SELECT max(number) FROM sessions) ORDER BY period"
            ).fetchall()
        return [int(row["hidden"]) for row in rows]

    def received(self, session: Session) -> int:
        """How many records were counted or passed over."""
        with self._file.transaction() as db:
            found = db.execute("SELECT received FROM sessions WHERE number = ?", (session.number,)).fetchone()
        return int(found["received"])

    def add(self, session: Session, *, received: int, flagged: int) -> None:
        """Count records in the period that is open."""
        with self._file.transaction() as db:
            row = db.execute("SELECT received, counted FROM sessions WHERE number = ?", (session.number,)).fetchone()
            counted = self._unseal(row["counted"], session.number, 0) + flagged
            db.execute(
                "UPDATE sessions SET received = ?, counted = ? WHERE number = ?",
                (row["received"] + received, self._seal(counted, session.number, 0), session.number),
            )

    def close_period(self, session: Session, query: Tally, name: str, noise: Noise) -> None:
        """Compute what hides the total of the open period, and keep it with its count; the next period is open then."""
        with self._file.transaction() as db:
            rows = db.execute("SELECT * FROM periods WHERE session = ? ORDER BY period", (session.number,)).fetchall()
            (last,) = db.execute("SELECT counted FROM sessions WHERE number = ?", (session.number,)).fetchone()
            counts = [self._unseal(row["counted"], session.number, row["period"]) for row in rows]
            counts.append(self._unseal(last, session.number, 0))
            factor = query.factors
            drawn = factor.law(query.loss).draw(noise)
            hidden = int(factor.spread(np.array(counts, dtype=np.int64))[-1]) + drawn
            period = len(counts)
            row = (session.number, period, self._seal(counts[-1], session.number, period), hidden, name)
            db.execute("INSERT INTO periods VALUES (?, ?, ?, ?, ?)", row)
            empty = self._seal(0, session.number, 0)
            db.execute("UPDATE sessions SET counted = ? WHERE number = ?", (empty, session.number))

    def close(self) -> None:
        self._file.close()

    def _seal(self, count: int, *place: int) -> bytes:
        return self._file.vault.seal(str(count).encode("ascii"), *place)

    def _unseal(self, stored: bytes, *place: int) -> int:
        return int(self._file.vault.unseal(bytes(stored), *place))


@dataclass(frozen=True, slots=True, kw_only=True)
class _TallyPayer(Payer):
    """Charges a tally, and refuses a checkpoint beside which another has gone on."""

    def _require_newest(self, session: Session, checkpoint: Memory) -> Block:
        block = self.ledger.latest_block(session.about["charge"], session.about["session"])
        if block is None:
            raise SessionClosed(
                f"{self.dataset}: the checkpoint was charged in another ledger. Open that ledger, or start a new "
                "session, which is charged (renew=True)."
            )
        assert isinstance(checkpoint, TallyStore)
        names = checkpoint.names()
        is_known = block.last == 0 or (block.last <= len(names) and names[block.last - 1] == block.holder)
        if not is_known or len(names) > block.last + 1:
            raise checkpoint.close_session("the ledger knows of totals that it does not know, or of fewer")
        return block


class OpenTally:
    """An open tally. One process has it."""

    def __init__(
        self,
        query: Tally,
        model: Model,
        store: TallyStore,
        session: Session,
        block: Block,
        ledger: Ledger,
        noise: Noise,
        *,
        resumed: bool,
    ) -> None:
        self.resumed = resumed
        self._query, self._model, self._store, self._session = query, model, store, session
        self._block, self._ledger, self._noise = block, ledger, noise
        self._lock = RLock()

    @property
    def charge(self) -> int:
        """The entry of the ledger that paid for this session."""
        return int(self._session.about["charge"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The entries of a record, as the detector was fitted to them."""
        return self._model.columns

    @property
    def received(self) -> int:
        """How many records were counted, flagged or not."""
        return self._store.received(self._session)

    @property
    def exhausted(self) -> bool:
        """Whether all periods have a total."""
        return self._store.count_periods() >= self._query.periods

    def add(self, records: object, *, first: int | None = None) -> int:
        """Count records in the open period: a frame, a file, or rows of the detector's columns. Returns their number.

        `first` is the number of the first record, from 1: records that were received before are not counted again, so
        a source that delivers at least once may repeat them.
        """
        with self._lock:
            self._require_periods()
            flags = self._model.predict(records)
            known = self.received
            again = 0 if first is None else known + 1 - first
            if again < 0:
                raise StateError(f"records: {first} was passed, and {known + 1} is next. Pass all records in order.")
            fresh = flags[again:]
            if known + len(fresh) > MAX_TOTAL:
                raise StateError("records: there are too many for one session. Open a new one.")
            if len(fresh):
                self._store.add(self._session, received=len(fresh), flagged=int(fresh.sum()))
            return len(fresh)

    def close_period(self) -> Total:
        """Close the open period and release the total so far. Call it by a clock that does not depend on records."""
        with self._lock:
            self._release_stored()
            self._require_periods()
            name = hashlib.sha256(new_holder("total", self._noise).encode()).hexdigest()
            self._store.close_period(self._session, self._query, name, self._noise)
            self._release_stored()
            return self.totals[-1]

    @property
    def totals(self) -> Sequence[Total]:
        """All totals so far: released once, and the same whenever they are read."""
        with self._lock:
            self._release_stored()
            hidden = np.array(self._store.hidden(), dtype=np.int64)
            widths = self._query.factors.half_widths(self._query.loss, CONFIDENCE)
            found = np.maximum(0, np.floor(self._query.factors.totals(hidden) + 0.5)) if len(hidden) else hidden
            return tuple(
                Total(at, int(total), (max(0, int(total) - width), int(total) + width))
                for at, (total, width) in enumerate(zip(found.tolist(), widths, strict=False), start=1)
            )

    def close(self) -> None:
        """Put the tally down; the next to open its checkpoint goes on."""
        with self._lock:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _release_stored(self) -> None:
        """Note in the ledger the last total that is stored, unless it is noted: before that it is nobody's.  (B3)"""
        names = self._store.names()
        if len(names) == self._block.last:
            return
        last, name = len(names), names[-1]
        asked = replace(
            self._block, number=self._block.number + 1, settled=last - 1, last=last, spent=0, holder=name, hash=""
        )
        block = self._ledger.reserve(asked, after=self._block)
        if block.holder != name:
            raise self._store.close_session("a copy of it goes on elsewhere")
        self._block = block

    def _require_periods(self) -> None:
        if self.exhausted:
            raise StateError("the tally has released all its totals. Open a new one with renew, which is charged.")
