"""One SQLite file that one process writes: locked, durable, readable by its owner only, and sealed if a key is named.

A transaction is on the disk when it returns, or it left nothing behind. The lock is a file beside the database,
`NAME.lock`; it is held as long as the process lives, so that a crash frees it.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from threading import RLock
from typing import Final, Self

from wallflower.errors import SourceError, StateError, StateUnreachable
from wallflower.machine.vault import OpenVault, SealedStore, Vault

BUSY_TIMEOUT_MILLISECONDS: Final = 10_000  # a writer holds the file for a moment at a time
_SEALED: Final = b"wallflower sealed store 1"
# Errors after which the same call may succeed: there was no space, or the disk did not answer.
_TRANSIENT: Final = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN))
_ABANDONED: Final[list[sqlite3.Connection]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFormat:
    """The content of a file, and how its error messages name it.

    `application_id` marks the file, so that another program's database is refused. `content` completes the sentence
    "it is damaged, or not …"; `replace_hint` and `retry_hint` are sentences that say what to do if the file cannot be
    used at all, and if it cannot be written now. `key_option` names the option that takes the key of a sealed file.
    """

    application_id: int
    tables: str
    content: str
    replace_hint: str = "Use the file that wallflower made for this, or a new one."
    retry_hint: str = "Free some disk space and try again."
    key_option: str = "--store-key"
    page_bytes: int = 4096


class SqliteFile:
    """A SQLite file, locked for this process; its threads take turns.

    >>> import tempfile
    >>> notes = FileFormat(application_id=7, tables="CREATE TABLE notes (text TEXT);", content="a file of notes")
    >>> with tempfile.TemporaryDirectory() as folder, SqliteFile(Path(folder, "notes.db"), notes) as file:
    ...     with file.transaction() as db:
    ...         _ = db.execute("INSERT INTO notes VALUES ('seen')")
    ...     with file.transaction() as db:
    ...         [tuple(row) for row in db.execute("SELECT text FROM notes")]
    [('seen',)]
    """

    def __init__(self, path: str | Path, form: FileFormat, *, vault: Vault | OpenVault | None = None) -> None:
        """Open the file, or create it with the tables of its format.

        With a `vault` the file is marked as sealed when it is created, and from then on opens with that key only.
        Which values are sealed is up to the caller. Raises StateError if another process holds the lock or the file is
        something else, SealedStore if the key does not fit, StateUnreachable if the disk is full.
        """
        self.path = Path(path).expanduser().absolute()
        self.vault = vault or OpenVault()
        self._form = form
        self._turn = RLock()
        self._lock = lock_file(self.path, replace_hint=form.replace_hint)
        try:
            self._db = self._connect()
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and release its lock."""
        with self._turn:
            self._db.close()
            self._lock.close()

    def abandon(self) -> None:
        """In a forked child: let go of the lock and the connection, which stay with the parent."""
        self._lock.close()
        _ABANDONED.append(self._db)  # SQLite must not close in a child what its parent has opened

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run the block as one transaction: all of it is on the disk afterwards, or nothing is."""
        with self._turn:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        with suppress(sqlite3.Error):  # the first error is the one to report
                            self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise self._refuse(error) from None

    def erase_deleted(self) -> None:
        """Remove deleted rows from the write-ahead log too; the file itself overwrites them at once."""
        with self._turn:
            try:
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error as error:
                raise self._refuse(error) from None

    def check_integrity(self) -> None:
        """Read the whole file and raise StateError if it is damaged. Takes time in proportion to its size."""
        with self._turn:
            try:
                is_whole = self._db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            except sqlite3.Error as error:
                raise self._refuse(error) from None
        if not is_whole:
            raise self._refuse()

    def write_lock_note(self, note: bytes) -> None:
        """Store a short note in the lock file, where a copy put in place of the database does not change it."""
        try:
            os.pwrite(self._lock.fileno(), note, 0)
        except OSError:
            raise self._refuse_for_now() from None

    def read_lock_note(self, size: int = 200) -> bytes:
        """Return the first bytes of the lock file; empty if nothing was noted."""
        return os.pread(self._lock.fileno(), size, 0)

    def _connect(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = None
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            self.path.chmod(0o600)
            db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            db.row_factory = sqlite3.Row
            settings = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON")
            for setting in (f"page_size = {self._form.page_bytes}", *settings):
                db.execute(f"PRAGMA {setting}").close()
            if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
                mark = f"{self._key_check_table()} PRAGMA application_id = {self._form.application_id};"
                db.executescript(f"BEGIN IMMEDIATE; {self._form.tables} {mark} COMMIT;")
            if db.execute("PRAGMA application_id").fetchone()[0] != self._form.application_id:
                raise self._refuse()
            check_key(db, self.path, self.vault, self._form.key_option)
        except BaseException as error:
            if db is not None:
                db.close()
            if isinstance(error, sqlite3.Error | OSError):
                raise self._refuse(error) from None
            raise
        return db

    def _key_check_table(self) -> str:
        """Return the table by which a sealed file recognises its key: one known value, sealed."""
        if isinstance(self.vault, OpenVault):
            return ""
        sealed = self.vault.seal(_SEALED).hex()
        return f"CREATE TABLE vault (sealed BLOB NOT NULL); INSERT INTO vault VALUES (x'{sealed}');"  # noqa: S608 - hex

    def _refuse(self, error: Exception | None = None) -> StateError:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _TRANSIENT:
            return self._refuse_for_now()
        reason = error.strerror if isinstance(error, OSError) else f"it is damaged, or not {self._form.content}"
        return StateError(f"{self.path}: {reason}. {self._form.replace_hint}")

    def _refuse_for_now(self) -> StateUnreachable:
        return StateUnreachable(
            f"{self.path}: the disk is full or failing, and nothing was stored. {self._form.retry_hint}"
        )


def lock_file(path: Path, *, replace_hint: str = "Wait until it ends, or use another file.") -> FileIO:
    """Take the lock of a database file and return it; closing it releases it. Raises StateError if it is taken."""
    beside = path.with_name(f"{path.name}.lock")
    try:
        lock = FileIO(beside, "r+", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o600))
    except OSError as error:
        raise StateError(f"{path}: {error.strerror}. {replace_hint}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StateError(
            f"{path}: another process has it open, and only one may. Wait until it ends, or use another file."
        ) from None
    return lock


def open_read_only(path: Path, *, replace_hint: str) -> sqlite3.Connection:
    """Open a file for reading beside the process that writes it; no lock is taken and nothing is created."""
    db: sqlite3.Connection | None = None
    try:
        db = sqlite3.connect(f"{path.expanduser().absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MILLISECONDS}").close()
        db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
    except sqlite3.Error:
        if db is not None:
            db.close()
        raise SourceError(f"{path}: the file cannot be read. {replace_hint}") from None
    return db


def check_key(db: sqlite3.Connection, path: Path, vault: Vault | OpenVault, key_option: str) -> None:
    """Raise SealedStore if a file is sealed and no key or another key was named, or open and a key was named."""
    is_sealed = db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'vault'").fetchone() is not None
    if isinstance(vault, OpenVault):
        if is_sealed:
            raise SealedStore(f"{path}: the file is sealed. Name its key ({key_option}).")
        return
    if not is_sealed:
        raise SealedStore(f"{path}: the file is not sealed; only a new file can be. Omit {key_option}.")
    row = db.execute("SELECT sealed FROM vault").fetchone()
    try:
        vault.unseal(b"" if row is None else row[0])
    except SealedStore:
        raise SealedStore(f"{path}: the file is sealed with another key. Name that key ({key_option}).") from None
