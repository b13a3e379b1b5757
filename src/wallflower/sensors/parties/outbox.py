"""The store of a sensor: its ledger, and every frame it has made, finished and charged before the first is sent.

A batch is one transaction: clock and budget are checked, noise is drawn, keys are dealt, and charge and frames are on
the disk together or not at all. A stored batch is never made again, so noise is never drawn twice, even after a crash.
A batch is named by its window and number under one parameter set; other readings under that name are refused.
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
from wallflower.machine.sqlite_file import FileFormat, SqliteFile
from wallflower.machine.vault import OpenVault, Vault
from wallflower.noise import Noise, words
from wallflower.privacy import Exact, Loss
from wallflower.sensors.comparison import TAG_KEY_BYTES
from wallflower.sensors.device import prepare_batch, prepare_commit, recipients
from wallflower.sensors.parameters import Parameters
from wallflower.sensors.parties.keys import Identity
from wallflower.sensors.protocol.frames import BatchId
from wallflower.text import decimal

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
_FORMAT: Final = FileFormat(
    application_id=0x77666F31, tables=_TABLES, content="the store of a sensor", page_bytes=16_384
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFrame:
    """A finished frame that has not arrived yet; a commit has no `seq`."""

    id: int
    window: int
    seq: int | None
    body: bytes = field(repr=False)
    signature: bytes = field(repr=False)


class WindowError(DataError):
    """A window that takes no readings now; nothing was drawn and nothing charged."""


class Outbox:
    """The store of one sensor; it adds and commits under one parameter set at a time."""

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
        self.sensor = sensor_number(identity.name)
        self._file = SqliteFile(path, _FORMAT, vault=vault)
        self._vault = self._file.vault
        try:
            self._claim(path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def set_limit(self, epsilon: Exact) -> None:
        """Set the sensor's total budget; setting the same again changes nothing."""
        limit = Loss(epsilon, kind=self._parameters.loss.kind, neighbours=self._parameters.loss.neighbours)
        with self._file.transaction() as db:
            if _read_limit(db) != limit.amount:
                db.execute("INSERT INTO limits (epsilon) VALUES (?)", (str(limit.amount),))

    @property
    def spent(self) -> Fraction:
        """ε of all readings that this sensor ever perturbed, added up."""
        with self._file.transaction() as db:
            return _sum_charges(db)

    @property
    def left(self) -> Fraction:
        """ε that is left of the limit."""
        with self._file.transaction() as db:
            return max(_read_limit(db) - _sum_charges(db), Fraction())

    def add(self, window: int, seq: int, readings: ArrayLike) -> bool:
        """Charge a batch and store its frames, or raise an error and change nothing. False if it was stored before."""
        values = np.asarray(readings, dtype=np.float64)
        batch = BatchId(sensor=self.sensor, window=window, seq=seq)
        fingerprint = self._fingerprint(batch, values)
        with self._file.transaction() as db:
            query = "SELECT digest FROM charges WHERE parameters = ? AND window = ? AND seq = ?"
            known = db.execute(query, (self._set, window, seq)).fetchone()
            if known is not None:
                _check_same(known[0], fingerprint, batch)
                return False
            if self._is_committed(db, window):
                raise DataError(f"window {window}: it is committed and takes no more batches. Use the next one.")
            self._check_open(window)
            self._check_budget(db, len(values))
            prepared = prepare_batch(self._parameters, values, batch, self._tag_key(db, window), self._noise)
            ids = self._vault.seal(prepared.ids.astype("<u8").tobytes(), "ids", self._set, window, seq)
            charge = (len(values), str(self._parameters.loss.amount), ids, fingerprint)
            db.execute("INSERT INTO charges VALUES (?, ?, ?, ?, ?, ?, ?)", (self._set, window, seq, *charge))
            for target, body in prepared.frames.items():
                self._insert_frame(db, window, seq, target, body)
        return True

    def finish(self, window: int) -> bool:
        """Commit a window: it takes no further batch. False if it was committed before, or is empty."""
        with self._file.transaction() as db:
            rows = self._ids(db, window)
            if not rows or self._is_committed(db, window):
                return False
            batch = BatchId(sensor=self.sensor, window=window, seq=len(rows))
            tag_key = self._tag_key(db, window)
            body = prepare_commit(self._parameters, batch, np.concatenate(rows), _sum_charges(db), tag_key)
            for target in recipients(self._parameters):
                self._insert_frame(db, window, None, target, body)
        return True

    def ids(self, window: int) -> NDArray[np.uint64]:
        """Return the id of each reading of a window, in the order of the readings."""
        with self._file.transaction() as db:
            return np.concatenate([np.empty(0, np.uint64), *self._ids(db, window)])

    def next_frame(self, target: str) -> PendingFrame | None:
        """Return the next frame for a recipient: windows in turn, batches before the commit."""
        query = """
            SELECT id, window, seq, body, signature FROM frames WHERE target = ? AND state = 'pending'
            ORDER BY window, seq IS NULL, seq LIMIT 1"""
        with self._file.transaction() as db:
            row = db.execute(query, (target,)).fetchone()
        if row is None:
            return None
        body = self._vault.unseal(row["body"], "frame", self._set, row["window"], row["seq"], target)
        return PendingFrame(**dict(row) | {"body": body})

    def settle(self, frame: int, state: str, status: int | None) -> None:
        """Record the fate of a frame and erase its body: the frames of both recipients together reveal a distance."""
        with self._file.transaction() as db:
            db.execute("UPDATE frames SET state = ?, status = ?, body = NULL WHERE id = ?", (state, status, frame))

    def postpone(self, frame: int, status: int | None) -> None:
        """Record that a frame is late by this device's clock, and keep it: a wrong clock may be corrected."""
        with self._file.transaction() as db:
            db.execute("UPDATE frames SET state = 'late', status = ? WHERE id = ?", (status, frame))

    def resume(self) -> None:
        """Make frames pending again that were late only by a wrong clock."""
        query = "UPDATE frames SET state = 'pending' WHERE state = 'late' AND body IS NOT NULL AND closes > ?"
        with self._file.transaction() as db:
            db.execute(f"{query} AND parameters = ?", (time.time(), self._set))

    def count_frames(self) -> dict[str, dict[str, int]]:
        """Return how many frames for each recipient are pending, sent, late or refused."""
        counts: dict[str, dict[str, int]] = {}
        with self._file.transaction() as db:
            for target, state, count in db.execute("SELECT target, state, count(*) FROM frames GROUP BY 1, 2"):
                counts.setdefault(target, {})[state] = count
        return counts

    def _claim(self, path: Path) -> None:
        stated = self._parameters
        with self._file.transaction() as db:
            row = db.execute("SELECT parameters, sensor FROM device").fetchone()
            if row is None:
                db.execute("INSERT INTO device VALUES (?, ?)", (self._set, self.sensor))
            elif row[1] != self.sensor:
                raise StateError(
                    f"{path}: the store belongs to another sensor. Name the store of this one, or a new file."
                )
            elif row[0] != self._set:
                self._switch_parameters(db, path)
            db.execute("INSERT OR IGNORE INTO sets VALUES (?, ?, ?)", (self._set, stated.stream, stated.version))

    def _switch_parameters(self, db: sqlite3.Connection, path: Path) -> None:
        """Switch to another set, if no frame of the one before can arrive any more."""
        stated = self._parameters
        newest = db.execute("SELECT max(version) FROM sets WHERE stream = ?", (stated.stream,)).fetchone()[0]
        if stated.version < (newest or 0):
            raise StateError(
                f"{path}: version {stated.version} of the parameter set was replaced by {newest} here. Use the newest."
            )
        db.execute("UPDATE frames SET state = 'late' WHERE state = 'pending' AND closes <= ?", (time.time(),))
        waits = db.execute("SELECT max(closes) FROM frames WHERE state = 'pending'").fetchone()[0]
        if waits is not None:
            raise StateError(
                f"{path}: frames of an older parameter set are still to be sent, until {format_time(waits)}. "
                "Send them first, or wait until then."
            )
        db.execute("UPDATE frames SET body = NULL")
        db.execute("UPDATE device SET parameters = ?", (self._set,))

    def _check_open(self, window: int) -> None:
        """Raise WindowError before anything is drawn or charged: readings that come too early or too late are lost."""
        now, first, last = time.time(), self._parameters.accepts_from(window), self._parameters.closes_at(window)
        if not first <= now < last:
            raise WindowError(
                f"window {window}: it takes readings from {format_time(first)} to {format_time(last)}, and by this "
                f"device's clock it is {format_time(now)}. Nothing was charged. Check clock, window and `starts`."
            )

    def _check_budget(self, db: sqlite3.Connection, readings: int) -> None:
        limit, spent = _read_limit(db), _sum_charges(db)
        cost = self._parameters.loss.amount * readings
        if spent + cost > limit:
            raise BudgetExhausted(
                self._identity.name,
                asked=f"ε = {decimal(cost)} for {readings:,} readings",
                left=f"ε = {decimal(max(limit - spent, Fraction()))}",
                remedy="Send fewer readings, or set a larger budget for this sensor (--budget).",
            )

    def _fingerprint(self, batch: BatchId, values: NDArray[np.float64]) -> bytes:
        """Return what identifies the same readings; keyed, so that the file alone does not allow guessing them."""
        key = self._identity.key.private_bytes_raw()
        secret = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"wallflower readings of a batch").derive(key)
        name = f"{batch.window} {batch.seq} {values.shape} ".encode("ascii")
        return hmac.digest(secret, self._set + name + np.ascontiguousarray(values).tobytes(), hashlib.sha256)

    def _is_committed(self, db: sqlite3.Connection, window: int) -> bool:
        query = "SELECT 1 FROM frames WHERE parameters = ? AND window = ? AND seq IS NULL"
        return db.execute(query, (self._set, window)).fetchone() is not None

    def _ids(self, db: sqlite3.Connection, window: int) -> list[NDArray[np.uint64]]:
        query = "SELECT ids, seq FROM charges WHERE parameters = ? AND window = ? ORDER BY seq"
        rows = db.execute(query, (self._set, window)).fetchall()
        bodies = (self._vault.unseal(row[0], "ids", self._set, window, row[1]) for row in rows)
        return [np.frombuffer(body, dtype="<u8") for body in bodies]

    def _tag_key(self, db: sqlite3.Connection, window: int) -> bytes:
        query = "SELECT tag_key FROM secrets WHERE parameters = ? AND window = ?"
        row = db.execute(query, (self._set, window)).fetchone()
        if row is not None:
            return self._vault.unseal(bytes(row[0]), "tag key", self._set, window)
        tag_key = words(self._noise, TAG_KEY_BYTES // 8).tobytes()
        db.execute(
            "INSERT INTO secrets VALUES (?, ?, ?)",
            (self._set, window, self._vault.seal(tag_key, "tag key", self._set, window)),
        )
        return tag_key

    def _insert_frame(self, db: sqlite3.Connection, window: int, seq: int | None, target: str, body: bytes) -> None:
        sealed = self._vault.seal(body, "frame", self._set, window, seq, target)
        row = (self._set, window, seq, target, sealed, self._identity.key.sign(body))
        query = """
            INSERT INTO frames (parameters, window, seq, target, body, signature, closes)
            VALUES (?, ?, ?, ?, ?, ?, ?)"""
        db.execute(query, (*row, self._parameters.closes_at(window)))


def format_time(seconds: float) -> str:
    """Return a time as text for people.

    >>> format_time(1800000000)
    '2027-01-15 08:00:00 UTC'
    """
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "a time beyond the calendar"


def sensor_number(name: str) -> int:
    """Return the number of a sensor from its name."""
    word, _, digits = name.partition("-")
    if word != "sensor" or not digits.isdigit():
        raise StateError(f"{name}: not the keys of a sensor. Name the folder of a sensor, such as keys/sensor-1.")
    return int(digits)


def _check_same(known: bytes, fingerprint: bytes, batch: BatchId) -> None:
    if not hmac.compare_digest(known, fingerprint):
        raise DataError(
            f"window {batch.window}: batch {batch.seq} was made before, of other readings, which were charged. "
            "Pass the same ones again, or use the next window."
        )


def _read_limit(db: sqlite3.Connection) -> Fraction:
    row = db.execute("SELECT epsilon FROM limits ORDER BY id DESC LIMIT 1").fetchone()
    return Fraction() if row is None else Fraction(row[0])


def _sum_charges(db: sqlite3.Connection) -> Fraction:
    rows = db.execute("SELECT epsilon, sum(readings) FROM charges GROUP BY epsilon")
    return sum((Fraction(epsilon) * readings for epsilon, readings in rows), Fraction())
