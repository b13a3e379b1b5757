"""What a server remembers of its windows: batches, commits, the letters of every step, and how far it has come.

collecting → sealed → exchanged → delivered → purged; a window without a row is open. A transition and what belongs to
it are one transaction. A letter is stored before it is sent, so a restart repeats the last step with the same bytes.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wallflower.errors import StateError
from wallflower.machine.vault import OpenVault, Vault
from wallflower.sensors.parties.database import Database
from wallflower.sensors.protocol.findings import SignedCommit

_SIDES: Final = ("asked", "answered")
STATES: Final = ("open", "collecting", "sealed", "exchanged", "delivered", "purged")
_APPLICATION_ID: Final = 0x77667331  # marks the file as the store of a server
_TABLES: Final = """
CREATE TABLE stream (parameters BLOB NOT NULL, party TEXT NOT NULL);
CREATE TABLE windows (
    window INTEGER PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('collecting', 'sealed', 'exchanged', 'delivered', 'purged'))
);
CREATE TABLE batches (
    window INTEGER NOT NULL,
    sensor INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    digest BLOB NOT NULL,
    count INTEGER NOT NULL,
    body BLOB,
    UNIQUE (window, sensor, seq)
);
CREATE TABLE commits (
    window INTEGER NOT NULL,
    sensor INTEGER NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    signature BLOB,
    certificate BLOB,
    UNIQUE (window, sensor)
);
CREATE TABLE letters (
    window INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest BLOB NOT NULL,
    asked BLOB,
    answered BLOB,
    UNIQUE (window, name)
);
"""


@dataclass(frozen=True, slots=True)
class Letter:
    """What was asked in a step, and the answer once there is one."""

    digest: bytes
    asked: bytes | None
    answered: bytes | None


class Windows:
    """The store of one server for one parameter set."""

    def __init__(self, path: Path, *, parameters: bytes, party: str, vault: Vault | OpenVault | None = None) -> None:
        self.database = Database(path, application_id=_APPLICATION_ID, tables=_TABLES, vault=vault)
        self._vault = self.database.vault
        try:
            with self.database.transaction() as db:
                row = db.execute("SELECT parameters, party FROM stream").fetchone()
                if row is None:
                    db.execute("INSERT INTO stream VALUES (?, ?)", (parameters, party))
            if row is not None and tuple(row) != (parameters, party):
                raise StateError(
                    f"{path}: it belongs to another party or parameter set. A new version starts a new file. Name one."
                )
            self.database.vacate()  # whoever died while forgetting has left bytes in the log
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self.database.close()

    def state(self, window: int) -> str:
        with self.database.transaction() as db:
            return _state(db, window)

    def list_unfinished(self) -> list[int]:
        """Windows that still have a step to go."""
        with self.database.transaction() as db:
            found = db.execute("SELECT window FROM windows WHERE state != 'purged' ORDER BY window")
            return [row[0] for row in found]

    def list_states(self) -> list[tuple[int, str]]:
        """Every window and how far it has come."""
        with self.database.transaction() as db:
            return [tuple(row) for row in db.execute("SELECT window, state FROM windows ORDER BY window")]

    def take(self, window: int, sensor: int, seq: int, body: bytes, count: int, *, closed: bool) -> int:
        """Keep a batch: 201 new, 200 the same again, 409 other bytes, 410 the window takes no more."""
        digest = hashlib.sha256(body).digest()
        with self.database.transaction() as db:
            key = (window, sensor, seq)
            asked = "SELECT digest FROM batches WHERE window = ? AND sensor = ? AND seq = ?"
            status = _same(db.execute(asked, key).fetchone(), digest)
            if status is None and (closed or _state(db, window) not in ("open", "collecting")):
                return 410
            if status is None:
                _open(db, window)
                db.execute(
                    "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", (*key, digest, count, self._seal_batch(body, *key))
                )
        return status or 201

    def commit(self, window: int, sensor: int, said: SignedCommit, *, closed: bool) -> int:
        """Keep a commit, with the same answers."""
        digest = hashlib.sha256(said.body).digest()
        with self.database.transaction() as db:
            asked = "SELECT digest FROM commits WHERE window = ? AND sensor = ?"
            status = _same(db.execute(asked, (window, sensor)).fetchone(), digest)
            if status is None and (closed or _state(db, window) not in ("open", "collecting")):
                return 410
            if status is None:
                _open(db, window)
                body = self._vault.seal(said.body, "commit", window, sensor)
                row = (window, sensor, digest, body, said.signature, said.certificate)
                db.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)", row)
        return status or 201

    def commits(self, window: int) -> dict[int, SignedCommit]:
        """The commit of each sensor that has finished."""
        asked = "SELECT sensor, body, signature, certificate FROM commits WHERE window = ? ORDER BY sensor"
        with self.database.transaction() as db:
            rows = db.execute(asked, (window,)).fetchall()
        bodies = {row[0]: self._vault.unseal(row[1], "commit", window, row[0]) for row in rows}
        return {row[0]: SignedCommit(bodies[row[0]], row[2] or b"", row[3] or b"") for row in rows}

    def batches(self, window: int, sensor: int | None = None) -> Iterator[bytes]:
        """The batches of a window, one at a time, in the order of sensors and numbers."""
        asked = "SELECT rowid FROM batches WHERE window = ? AND (? IS NULL OR sensor = ?) ORDER BY sensor, seq"
        with self.database.transaction() as db:
            places = [row[0] for row in db.execute(asked, (window, sensor, sensor))]
        for place in places:
            with self.database.transaction() as db:
                asked = "SELECT body, sensor, seq FROM batches WHERE rowid = ?"
                body, whose, seq = db.execute(asked, (place,)).fetchone()
            if body is not None:
                yield self._vault.unseal(body, "batch", window, whose, seq)

    def letter(self, window: int, name: str) -> Letter | None:
        with self.database.transaction() as db:
            asked = "SELECT digest, asked, answered FROM letters WHERE window = ? AND name = ?"
            row = db.execute(asked, (window, name)).fetchone()
        if row is None:
            return None
        sides = zip(_SIDES, row[1:], strict=True)
        opened = (None if body is None else self._vault.unseal(body, side, window, name) for side, body in sides)
        return Letter(row[0], *opened)

    def write(self, window: int, name: str, asked: bytes, answered: bytes | None = None) -> None:
        """Keep a letter before it is sent, or the answer before it is told."""
        with self.database.transaction() as db:
            self._write(db, window, name, asked, answered)

    def answer(self, window: int, name: str, answered: bytes) -> None:
        """Keep the answer to a letter that was sent."""
        with self.database.transaction() as db:
            db.execute(
                "UPDATE letters SET answered = ? WHERE window = ? AND name = ? AND answered IS NULL",
                (self._vault.seal(answered, _SIDES[1], window, name), window, name),
            )

    def move(self, window: int, state: str, **letters: tuple[bytes, bytes | None]) -> None:
        """Go on to a state, together with the letters that belong to it; never back."""
        with self.database.transaction() as db:
            _open(db, window)
            if STATES.index(_state(db, window)) < STATES.index(state):
                for name, (asked, answered) in letters.items():
                    self._write(db, window, name, asked, answered)
                db.execute("UPDATE windows SET state = ? WHERE window = ?", (state, window))

    def forget(self, window: int, kept: dict[bytes, bytes]) -> None:
        """Purge a window: batches stay only as what `kept` has for their digest, letters only as answers."""
        with self.database.transaction() as db:
            db.execute("UPDATE letters SET asked = NULL WHERE window = ?", (window,))
            db.execute("UPDATE batches SET body = NULL WHERE window = ?", (window,))
            rows = db.execute("SELECT rowid, digest, sensor, seq FROM batches WHERE window = ?", (window,)).fetchall()
            for place, digest, sensor, seq in rows:
                if digest in kept:
                    body = self._seal_batch(kept[digest], window, sensor, seq)
                    db.execute("UPDATE batches SET body = ? WHERE rowid = ?", (body, place))
            db.execute("UPDATE windows SET state = 'purged' WHERE window = ?", (window,))
        self.database.vacate()

    def _seal_batch(self, body: bytes, window: int, sensor: int, seq: int) -> bytes:
        return self._vault.seal(body, "batch", window, sensor, seq)

    def _write(self, db: sqlite3.Connection, window: int, name: str, asked: bytes, answered: bytes | None) -> None:
        digest, bodies = hashlib.sha256(asked).digest(), zip(_SIDES, (asked, answered), strict=True)
        sealed = (None if body is None else self._vault.seal(body, side, window, name) for side, body in bodies)
        db.execute("INSERT OR IGNORE INTO letters VALUES (?, ?, ?, ?, ?)", (window, name, digest, *sealed))


def _state(db: sqlite3.Connection, window: int) -> str:
    row = db.execute("SELECT state FROM windows WHERE window = ?", (window,)).fetchone()
    return "open" if row is None else str(row[0])


def _open(db: sqlite3.Connection, window: int) -> None:
    db.execute("INSERT OR IGNORE INTO windows VALUES (?, 'collecting')", (window,))


def _same(row: sqlite3.Row | None, digest: bytes) -> int | None:
    if row is None:
        return None
    return 200 if row[0] == digest else 409
