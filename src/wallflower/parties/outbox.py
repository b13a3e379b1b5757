"""What a sensor remembers: its ledger, and every frame it has made, finished and paid for before the first is sent.

A batch is one transaction: the budget is looked at, noise is drawn, keys are dealt, and charge and frames are on the
disk together or not at all. A batch that is there is never made again, so noise is never drawn twice, whatever dies.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import BudgetExhausted, DataError, StateError
from wallflower.noise import Noise, words
from wallflower.parties.database import Database
from wallflower.parties.keys import Identity
from wallflower.privacy import Exact, Loss
from wallflower.queries.sensors.batches import TAG_KEY, Place, commit_frame, prepare_batch
from wallflower.queries.sensors.parameters import Parameters
from wallflower.queries.sensors.seals import signature

_NAME: Final = 0x77666F31
_TABLES: Final = """
CREATE TABLE device (parameters BLOB NOT NULL, sensor INTEGER NOT NULL);
CREATE TABLE limits (id INTEGER PRIMARY KEY, epsilon TEXT NOT NULL);
CREATE TABLE charges (
    window INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    epsilon TEXT NOT NULL,
    ids BLOB NOT NULL,
    UNIQUE (window, seq)
);
CREATE TABLE secrets (window INTEGER PRIMARY KEY, tag_key BLOB NOT NULL);
CREATE TABLE frames (
    id INTEGER PRIMARY KEY,
    window INTEGER NOT NULL,
    seq INTEGER,
    target TEXT NOT NULL,
    body BLOB,
    signature BLOB NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'late', 'refused')),
    status INTEGER,
    UNIQUE (window, seq, target)
);
CREATE UNIQUE INDEX one_commit ON frames (window, target) WHERE seq IS NULL;
CREATE TRIGGER charges_stay BEFORE UPDATE ON charges BEGIN SELECT RAISE(ABORT, 'a charge stays'); END;
CREATE TRIGGER charges_are_kept BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is kept'); END;
CREATE TRIGGER limits_stay BEFORE UPDATE ON limits BEGIN SELECT RAISE(ABORT, 'a limit stays'); END;
CREATE TRIGGER limits_are_kept BEFORE DELETE ON limits BEGIN SELECT RAISE(ABORT, 'a limit is kept'); END;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFrame:
    """A finished frame that still has to arrive; a commit has no `seq`."""

    id: int
    window: int
    seq: int | None
    body: bytes = field(repr=False)
    signature: bytes = field(repr=False)


class Outbox:
    """The store of one sensor under one parameter set."""

    def __init__(self, path: Path, *, identity: Identity, parameters: Parameters, noise: Noise) -> None:
        self._identity, self._parameters, self._noise = identity, parameters, noise
        self.sensor = number(identity.name)
        self._database = Database(path, name=_NAME, tables=_TABLES)
        try:
            self._claim(path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._database.close()

    def limit(self, epsilon: Exact) -> None:
        """State the sensor's whole budget; stating the same again changes nothing."""
        stated = Loss(epsilon, kind=self._parameters.loss.kind, neighbours=self._parameters.loss.neighbours)
        with self._database.transaction() as db:
            if _limit(db) != stated.amount:
                db.execute("INSERT INTO limits (epsilon) VALUES (?)", (str(stated.amount),))

    @property
    def spent(self) -> Fraction:
        """ε of all readings this sensor ever perturbed, added up."""
        with self._database.transaction() as db:
            return _spent(db)

    @property
    def left(self) -> Fraction:
        with self._database.transaction() as db:
            return max(_limit(db) - _spent(db), Fraction())

    def add(self, window: int, seq: int, readings: ArrayLike) -> bool:
        """Pay for a batch and finish its frames, or refuse and change nothing. False if it was there already."""
        values = np.asarray(readings, dtype=np.float64)
        place = Place(sensor=self.sensor, window=window, seq=seq)
        with self._database.transaction() as db:
            known = db.execute("SELECT readings FROM charges WHERE window = ? AND seq = ?", (window, seq)).fetchone()
            if known is not None:
                return self._repeated(known[0], len(values))
            if db.execute("SELECT 1 FROM frames WHERE window = ? AND seq IS NULL", (window,)).fetchone():
                raise DataError(f"window {window}: it is committed and takes no more batches. Use the next one.")
            self._require_budget(db, len(values))
            batch = prepare_batch(self._parameters, values, place, self._tag_key(db, window), self._noise)
            row = (window, seq, len(values), str(self._parameters.loss.amount), batch.ids.astype("<u8").tobytes())
            db.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?)", row)
            for target, body in batch.frames.items():
                self._keep(db, window, seq, target, body)
        return True

    def finish(self, window: int) -> bool:
        """Commit a window: no further batch belongs to it. False if it was committed, or has nothing in it."""
        with self._database.transaction() as db:
            if db.execute("SELECT 1 FROM frames WHERE window = ? AND seq IS NULL", (window,)).fetchone():
                return False
            rows = db.execute("SELECT ids FROM charges WHERE window = ? ORDER BY seq", (window,)).fetchall()
            targets = [row[0] for row in db.execute("SELECT DISTINCT target FROM frames WHERE window = ?", (window,))]
            if not rows:
                return False
            ids = np.concatenate([np.frombuffer(row[0], dtype="<u8") for row in rows])
            place = Place(sensor=self.sensor, window=window, seq=len(rows))
            body = commit_frame(self._parameters, place, ids, _spent(db), self._tag_key(db, window))
            for target in sorted(targets):
                self._keep(db, window, None, target, body)
        return True

    def ids(self, window: int) -> NDArray[np.uint64]:
        """The id of each reading of a window, in the order the readings came."""
        with self._database.transaction() as db:
            rows = db.execute("SELECT ids FROM charges WHERE window = ? ORDER BY seq", (window,)).fetchall()
        return np.concatenate([np.empty(0, np.uint64), *(np.frombuffer(row[0], dtype="<u8") for row in rows)])

    def pending(self, target: str) -> PendingFrame | None:
        """The next frame for a reader: windows in turn, batches before the commit."""
        asked = """
            SELECT id, window, seq, body, signature FROM frames WHERE target = ? AND state = 'pending'
            ORDER BY window, seq IS NULL, seq LIMIT 1"""
        with self._database.transaction() as db:
            row = db.execute(asked, (target,)).fetchone()
        return None if row is None else PendingFrame(**dict(row))

    def settle(self, frame: int, state: str, status: int | None) -> None:
        """Note what became of a frame. What has arrived is needed no more, and both halves together tell a distance."""
        with self._database.transaction() as db:
            db.execute("UPDATE frames SET state = ?, status = ?, body = NULL WHERE id = ?", (state, status, frame))

    def fates(self) -> dict[str, dict[str, int]]:
        """How many frames of each reader are pending, sent, late or refused."""
        found: dict[str, dict[str, int]] = {}
        with self._database.transaction() as db:
            for target, state, count in db.execute("SELECT target, state, count(*) FROM frames GROUP BY 1, 2"):
                found.setdefault(target, {})[state] = count
        return found

    def _claim(self, path: Path) -> None:
        own = (self._parameters.hash, self.sensor)
        with self._database.transaction() as db:
            row = db.execute("SELECT parameters, sensor FROM device").fetchone()
            if row is None:
                db.execute("INSERT INTO device VALUES (?, ?)", own)
            elif row[1] != self.sensor:
                raise StateError(f"{path}: it belongs to another sensor. Name this one's own file, or a new one.")
            elif row[0] != self._parameters.hash:
                if db.execute("SELECT 1 FROM frames WHERE state = 'pending'").fetchone():
                    raise StateError(f"{path}: frames of an older parameter set are still to be sent. Send them first.")
                db.execute("UPDATE device SET parameters = ?", (self._parameters.hash,))

    def _require_budget(self, db: sqlite3.Connection, readings: int) -> None:
        limit, spent = _limit(db), _spent(db)
        cost = self._parameters.loss.amount * readings
        if spent + cost > limit:
            raise BudgetExhausted(
                self._identity.name,
                asked=f"ε={cost} for {readings:,} readings",
                left=f"ε={max(limit - spent, Fraction())}",
                remedy="Send fewer readings, or decide on a larger budget for this sensor (--budget).",
            )

    def _repeated(self, known: int, given: int) -> bool:
        if known != given:
            raise DataError("this batch was made before, with another number of readings. Pass the same ones again.")
        return False

    def _tag_key(self, db: sqlite3.Connection, window: int) -> bytes:
        row = db.execute("SELECT tag_key FROM secrets WHERE window = ?", (window,)).fetchone()
        if row is not None:
            return bytes(row[0])
        fresh = words(self._noise, TAG_KEY // 8).tobytes()
        db.execute("INSERT INTO secrets VALUES (?, ?)", (window, fresh))
        return fresh

    def _keep(self, db: sqlite3.Connection, window: int, seq: int | None, target: str, body: bytes) -> None:
        row = (window, seq, target, body, signature(self._identity.key, body))
        db.execute("INSERT INTO frames (window, seq, target, body, signature) VALUES (?, ?, ?, ?, ?)", row)


def number(name: str) -> int:
    """The number of a sensor, from its name."""
    word, _, digits = name.partition("-")
    if word != "sensor" or not digits.isdigit():
        raise StateError(f"{name}: these are not a sensor's keys. Name a sensor's folder, as in keys/sensor-1.")
    return int(digits)


def _limit(db: sqlite3.Connection) -> Fraction:
    row = db.execute("SELECT epsilon FROM limits ORDER BY id DESC LIMIT 1").fetchone()
    return Fraction() if row is None else Fraction(row[0])


def _spent(db: sqlite3.Connection) -> Fraction:
    rows = db.execute("SELECT epsilon, sum(readings) FROM charges GROUP BY epsilon")
    return sum((Fraction(epsilon) * readings for epsilon, readings in rows), Fraction())
