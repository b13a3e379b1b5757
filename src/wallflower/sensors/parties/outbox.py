"""What a sensor remembers: its ledger, and every frame it has made, finished and paid for before the first is sent.

A batch is one transaction: clock and budget are looked at, noise is drawn, keys are dealt, and charge and frames are on
the disk together or not at all. A batch that is there is never made again, so noise is never drawn twice, whatever
dies. Its place is a window and a number under one parameter set; other readings there are refused.
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import BudgetExhausted, DataError, StateError
from wallflower.machine.vault import OpenVault, Vault
from wallflower.noise import Noise, words
from wallflower.privacy import Exact, Loss
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.parties.database import Database
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.protocol.batches import TAG_KEY, Place, commit_frame, prepare_batch, targets
from wallflower.sensors.protocol.seals import signature

_APPLICATION_ID: Final = 0x77666F31  # marks the file as the store of a sensor
_TABLES: Final = """
CREATE TABLE device (parameters BLOB NOT NULL, sensor INTEGER NOT NULL);
CREATE TABLE limits (id INTEGER PRIMARY KEY, epsilon TEXT NOT NULL);
CREATE TRIGGER limits_stay BEFORE UPDATE ON limits BEGIN SELECT RAISE(ABORT, 'a limit stays'); END;
CREATE TRIGGER limits_are_kept BEFORE DELETE ON limits BEGIN SELECT RAISE(ABORT, 'a limit is kept'); END;
CREATE TABLE sets (parameters BLOB PRIMARY KEY, stream TEXT NOT NULL, version INTEGER NOT NULL);
CREATE TABLE charges (
    parameters BLOB NOT NULL,
    window INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    epsilon TEXT NOT NULL,
    ids BLOB NOT NULL,
    digest BLOB NOT NULL,
    UNIQUE (parameters, window, seq)
);
CREATE TABLE secrets (
    parameters BLOB NOT NULL, window INTEGER NOT NULL, tag_key BLOB NOT NULL, UNIQUE (parameters, window)
);
CREATE TABLE frames (
    id INTEGER PRIMARY KEY,
    parameters BLOB NOT NULL,
    window INTEGER NOT NULL,
    seq INTEGER,
    target TEXT NOT NULL,
    body BLOB,
    signature BLOB NOT NULL,
    closes REAL NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'late', 'refused')),
    status INTEGER,
    UNIQUE (parameters, window, seq, target)
);
CREATE UNIQUE INDEX one_commit ON frames (parameters, window, target) WHERE seq IS NULL;
CREATE TRIGGER charges_stay BEFORE UPDATE ON charges BEGIN SELECT RAISE(ABORT, 'a charge stays'); END;
CREATE TRIGGER charges_are_kept BEFORE DELETE ON charges BEGIN SELECT RAISE(ABORT, 'a charge is kept'); END;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFrame:
    """A finished frame that still has to arrive; a commit has no `seq`."""

    id: int
    window: int
    seq: int | None
    body: bytes = field(repr=False)
    signature: bytes = field(repr=False)


class WindowError(DataError):
    """A window that takes no readings now, so that nothing was drawn and nothing paid."""


class Outbox:
    """The store of one sensor; what it adds and commits is under one parameter set."""

    def __init__(
        self,
        path: Path,
        *,
        identity: Identity,
        parameters: Parameters,
        noise: Noise,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        self._identity, self._parameters, self._noise = identity, parameters, noise
        self._set = parameters.hash
        self.sensor = number(identity.name)
        self._database = Database(path, application_id=_APPLICATION_ID, tables=_TABLES, vault=vault)
        self._vault = self._database.vault
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
            return _sum_charges(db)

    @property
    def left(self) -> Fraction:
        with self._database.transaction() as db:
            return max(_limit(db) - _sum_charges(db), Fraction())

    def add(self, window: int, seq: int, readings: ArrayLike) -> bool:
        """Pay for a batch and finish its frames, or refuse and change nothing. False if it was there already."""
        values = np.asarray(readings, dtype=np.float64)
        place = Place(sensor=self.sensor, window=window, seq=seq)
        mark = self._mark(place, values)
        with self._database.transaction() as db:
            asked = "SELECT digest FROM charges WHERE parameters = ? AND window = ? AND seq = ?"
            known = db.execute(asked, (self._set, window, seq)).fetchone()
            if known is not None:
                _require_same(known[0], mark, place)
                return False
            if self._is_committed(db, window):
                raise DataError(f"window {window}: it is committed and takes no more batches. Use the next one.")
            self._require_open(window)
            self._require_budget(db, len(values))
            batch = prepare_batch(self._parameters, values, place, self._tag_key(db, window), self._noise)
            ids = self._vault.seal(batch.ids.astype("<u8").tobytes(), "ids", self._set, window, seq)
            paid = (len(values), str(self._parameters.loss.amount), ids, mark)
            db.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?, ?)", (self._set, window, seq, *paid))
            for target, body in batch.frames.items():
                self._keep(db, window, seq, target, body)
        return True

    def finish(self, window: int) -> bool:
        """Commit a window: no further batch belongs to it. False if it was committed, or has nothing in it."""
        with self._database.transaction() as db:
            rows = self._ids(db, window)
            if not rows or self._is_committed(db, window):
                return False
            place = Place(sensor=self.sensor, window=window, seq=len(rows))
            body = commit_frame(
                self._parameters, place, np.concatenate(rows), _sum_charges(db), self._tag_key(db, window)
            )
            for target in targets(self._parameters):
                self._keep(db, window, None, target, body)
        return True

    def ids(self, window: int) -> NDArray[np.uint64]:
        """The id of each reading of a window, in the order the readings came."""
        with self._database.transaction() as db:
            return np.concatenate([np.empty(0, np.uint64), *self._ids(db, window)])

    def next_frame(self, target: str) -> PendingFrame | None:
        """The next frame for a reader: windows in turn, batches before the commit."""
        asked = """
            SELECT id, window, seq, body, signature FROM frames WHERE target = ? AND state = 'pending'
            ORDER BY window, seq IS NULL, seq LIMIT 1"""
        with self._database.transaction() as db:
            row = db.execute(asked, (target,)).fetchone()
        if row is None:
            return None
        body = self._vault.unseal(row["body"], "frame", self._set, row["window"], row["seq"], target)
        return PendingFrame(**dict(row) | {"body": body})

    def settle(self, frame: int, state: str, status: int | None) -> None:
        """Note what became of a frame. What has arrived is needed no more, and both halves together tell a distance."""
        with self._database.transaction() as db:
            db.execute("UPDATE frames SET state = ?, status = ?, body = NULL WHERE id = ?", (state, status, frame))

    def postpone(self, frame: int, status: int | None) -> None:
        """Note that a frame's time is over by this device's clock, and keep it: clocks are set right now and then."""
        with self._database.transaction() as db:
            db.execute("UPDATE frames SET state = 'late', status = ? WHERE id = ?", (status, frame))

    def resume(self) -> None:
        """Make pending again what was late only by a clock that was wrong."""
        asked = "UPDATE frames SET state = 'pending' WHERE state = 'late' AND body IS NOT NULL AND closes > ?"
        with self._database.transaction() as db:
            db.execute(f"{asked} AND parameters = ?", (time.time(), self._set))

    def fates(self) -> dict[str, dict[str, int]]:
        """How many frames of each reader are pending, sent, late or refused."""
        found: dict[str, dict[str, int]] = {}
        with self._database.transaction() as db:
            for target, state, count in db.execute("SELECT target, state, count(*) FROM frames GROUP BY 1, 2"):
                found.setdefault(target, {})[state] = count
        return found

    def _claim(self, path: Path) -> None:
        stated = self._parameters
        with self._database.transaction() as db:
            row = db.execute("SELECT parameters, sensor FROM device").fetchone()
            if row is None:
                db.execute("INSERT INTO device VALUES (?, ?)", (self._set, self.sensor))
            elif row[1] != self.sensor:
                raise StateError(f"{path}: it belongs to another sensor. Name this one's own file, or a new one.")
            elif row[0] != self._set:
                self._renew(db, path)
            db.execute("INSERT OR IGNORE INTO sets VALUES (?, ?, ?)", (self._set, stated.stream, stated.version))

    def _renew(self, db: sqlite3.Connection, path: Path) -> None:
        """Go over to another set, when nothing under the one before can arrive any more."""
        stated = self._parameters
        newest = db.execute("SELECT max(version) FROM sets WHERE stream = ?", (stated.stream,)).fetchone()[0]
        if stated.version < (newest or 0):
            raise StateError(
                f"{path}: version {stated.version} of the parameter set was replaced by {newest} here. Take the newest."
            )
        db.execute("UPDATE frames SET state = 'late' WHERE state = 'pending' AND closes <= ?", (time.time(),))
        waits = db.execute("SELECT max(closes) FROM frames WHERE state = 'pending'").fetchone()[0]
        if waits is not None:
            raise StateError(
                f"{path}: frames of an older parameter set are still to be sent, until {moment(waits)}. "
                "Send them first, or wait until then."
            )
        db.execute("UPDATE frames SET body = NULL")
        db.execute("UPDATE device SET parameters = ?", (self._set,))

    def _require_open(self, window: int) -> None:
        """Before anything is drawn or paid: what comes too early or too late would be spent for nothing."""
        now, first, last = time.time(), self._parameters.earliest(window), self._parameters.closes(window)
        if not first <= now < last:
            raise WindowError(
                f"window {window}: it takes readings from {moment(first)} to {moment(last)}, and by this device's "
                f"clock it is {moment(now)}. Nothing was drawn or paid. Check the clock, the window, and `starts`."
            )

    def _require_budget(self, db: sqlite3.Connection, readings: int) -> None:
        limit, spent = _limit(db), _sum_charges(db)
        cost = self._parameters.loss.amount * readings
        if spent + cost > limit:
            raise BudgetExhausted(
                self._identity.name,
                asked=f"ε={cost} for {readings:,} readings",
                left=f"ε={max(limit - spent, Fraction())}",
                remedy="Send fewer readings, or decide on a larger budget for this sensor (--budget).",
            )

    def _mark(self, place: Place, values: NDArray[np.float64]) -> bytes:
        """By which the same readings are known again; who has the file alone cannot try readings out."""
        own = self._identity.key.private_bytes_raw()
        secret = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"wallflower readings of a batch").derive(own)
        told = f"{place.window} {place.seq} {values.shape} ".encode("ascii")
        return hmac.digest(secret, self._set + told + np.ascontiguousarray(values).tobytes(), hashlib.sha256)

    def _is_committed(self, db: sqlite3.Connection, window: int) -> bool:
        asked = "SELECT 1 FROM frames WHERE parameters = ? AND window = ? AND seq IS NULL"
        return db.execute(asked, (self._set, window)).fetchone() is not None

    def _ids(self, db: sqlite3.Connection, window: int) -> list[NDArray[np.uint64]]:
        asked = "SELECT ids, seq FROM charges WHERE parameters = ? AND window = ? ORDER BY seq"
        rows = db.execute(asked, (self._set, window)).fetchall()
        bodies = (self._vault.unseal(row[0], "ids", self._set, window, row[1]) for row in rows)
        return [np.frombuffer(body, dtype="<u8") for body in bodies]

    def _tag_key(self, db: sqlite3.Connection, window: int) -> bytes:
        asked = "SELECT tag_key FROM secrets WHERE parameters = ? AND window = ?"
        row = db.execute(asked, (self._set, window)).fetchone()
        if row is not None:
            return self._vault.unseal(bytes(row[0]), "tag key", self._set, window)
        fresh = words(self._noise, TAG_KEY // 8).tobytes()
        db.execute(
            "INSERT INTO secrets VALUES (?, ?, ?)",
            (self._set, window, self._vault.seal(fresh, "tag key", self._set, window)),
        )
        return fresh

    def _keep(self, db: sqlite3.Connection, window: int, seq: int | None, target: str, body: bytes) -> None:
        sealed = self._vault.seal(body, "frame", self._set, window, seq, target)
        row = (self._set, window, seq, target, sealed, signature(self._identity.key, body))
        written = """
            INSERT INTO frames (parameters, window, seq, target, body, signature, closes)
            VALUES (?, ?, ?, ?, ?, ?, ?)"""
        db.execute(written, (*row, self._parameters.closes(window)))


def moment(seconds: float) -> str:
    """A time as people read it.

    >>> moment(1800000000)
    '2027-01-15 08:00:00 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "a time beyond the calendar"


def number(name: str) -> int:
    """The number of a sensor, from its name."""
    word, _, digits = name.partition("-")
    if word != "sensor" or not digits.isdigit():
        raise StateError(f"{name}: these are not a sensor's keys. Name a sensor's folder, as in keys/sensor-1.")
    return int(digits)


def _require_same(known: bytes, given: bytes, place: Place) -> None:
    if not hmac.compare_digest(known, given):
        raise DataError(
            f"window {place.window}: batch {place.seq} was made before, of other readings, which are paid for. "
            "Pass the same ones again, or use the next window."
        )


def _limit(db: sqlite3.Connection) -> Fraction:
    row = db.execute("SELECT epsilon FROM limits ORDER BY id DESC LIMIT 1").fetchone()
    return Fraction() if row is None else Fraction(row[0])


def _sum_charges(db: sqlite3.Connection) -> Fraction:
    rows = db.execute("SELECT epsilon, sum(readings) FROM charges GROUP BY epsilon")
    return sum((Fraction(epsilon) * readings for epsilon, readings in rows), Fraction())
