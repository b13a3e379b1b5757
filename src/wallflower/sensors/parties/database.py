"""One SQLite file of one process: what is committed is on the disk, what fails leaves nothing behind."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from threading import RLock
from typing import Final, Self

from wallflower.errors import StateError
from wallflower.machine.vault import OpenVault, SealedStore, Vault

# Large pages: a batch of keys is millions of bytes, and is stored twice as fast.
_SETTINGS: Final = ("page_size = 16384", "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON")
_SEALED: Final = b"wallflower sealed store 1"
_FULL: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}


class DiskFull(StateError):
    """There is no room to remember, so nothing was done; the same again works when there is."""


class Database:
    """The file, locked for this process; threads take turns."""

    def __init__(
        self,
        path: Path,
        *,
        application_id: int,
        tables: str,
        vault: Vault | OpenVault | None = None,
    ) -> None:
        """Open the file, or create it with these tables; a file with another application id is refused."""
        self.vault = vault or OpenVault()
        self.path = path.expanduser().absolute()
        self._turn = RLock()
        self._lock = self._take_lock()
        try:
            self._db = self._connect(application_id, tables)
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._turn:
            self._db.close()
            self._lock.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is written in here is on the disk afterwards, or nothing is."""
        with self._turn:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._unusable(error) from None

    def vacate(self) -> None:
        """Let what was deleted vanish from the log beside the file as well."""
        with self._turn:
            try:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as error:
                raise self._unusable(error) from None

    def _connect(self, application_id: int, tables: str) -> sqlite3.Connection:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            db.row_factory = sqlite3.Row
            for setting in _SETTINGS:
                db.execute(f"PRAGMA {setting}").close()
            if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
                sealed = self._seal_table()
                db.executescript(
                    f"BEGIN IMMEDIATE; {tables} {sealed} PRAGMA application_id = {application_id}; COMMIT;"
                )
            (stored,) = db.execute("PRAGMA application_id").fetchone()
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from None
        if stored != application_id:
            db.close()
            raise self._unusable()
        try:
            self._require_key(db)
        except BaseException:
            db.close()
            raise
        return db

    def _seal_table(self) -> str:
        """What a sealed file says of its key: one value that opens with it."""
        if isinstance(self.vault, OpenVault):
            return ""
        told = self.vault.seal(_SEALED).hex()
        return f"CREATE TABLE vault (sealed BLOB NOT NULL); INSERT INTO vault VALUES (x'{told}');"  # noqa: S608 - hex

    def _require_key(self, db: sqlite3.Connection) -> None:
        """Refuse a sealed file without its key, and an open one with a key."""
        try:
            has_key = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vault'").fetchone() is not None
            told = db.execute("SELECT sealed FROM vault").fetchone()[0] if has_key else _SEALED
        except (sqlite3.Error, TypeError):
            raise self._unusable() from None
        if isinstance(self.vault, OpenVault) and has_key:
            raise SealedStore(f"{self.path}: it is sealed. Name the key that it was made with (--store-key).")
        if not isinstance(self.vault, OpenVault) and not has_key:
            raise SealedStore(
                f"{self.path}: it is not sealed, and has to be from the first day on. Leave --store-key out."
            )
        try:
            self.vault.unseal(told)
        except SealedStore:
            raise SealedStore(f"{self.path}: it is sealed with another key. Name that one (--store-key).") from None

    def _take_lock(self) -> FileIO:
        beside = self.path.with_name(f"{self.path.name}.lock")
        try:
            lock = FileIO(beside, "r+", opener=lambda place, flags: os.open(place, flags | os.O_CREAT, 0o600))
        except OSError as error:
            raise self._unusable(error) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise StateError(
                f"{self.path}: another process has it open, and one at a time may. Wait until it ends, or name another."
            ) from None
        return lock

    def _unusable(self, error: Exception | None = None) -> StateError:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _FULL:
            return DiskFull(f"{self.path}: no room, or the disk fails; nothing was stored. Make room and try again.")
        words = error.strerror if isinstance(error, OSError) else "is damaged, or not the file of this party"
        return StateError(f"{self.path}: {words}. Name the file that this party made, or a new one.")
