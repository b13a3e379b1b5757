"""What a watch must remember: its secret, what it spent, and every decision it told.

One SQLite file, readable by its owner only, and one writer at a time: the lock is a file beside it, held as long as the
process lives. A decision is on disk when `keep` returns. In the lock stands how many decisions there were, so that a
copy put in place of the file alone is found out; what any other copy may do, the ledger decides (hold.py).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Any, Final

from wallflower.errors import EpochClosed, StateError, StateUnreachable
from wallflower.ledger.chain import canonical
from wallflower.machine.vault import OpenVault, SealedStore, Vault

_APPLICATION_ID: Final = 0x77666C31  # marks the file as the state of a watch
_EPOCHS: Final = """
CREATE TABLE epochs (
    number INTEGER PRIMARY KEY,
    about TEXT NOT NULL,
    secret TEXT,
    checksum TEXT,
    block INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'exhausted', 'closed'))
);
"""
_DECISIONS: Final = """
CREATE TABLE decisions (
    epoch INTEGER NOT NULL,
    observation INTEGER NOT NULL,
    flag INTEGER CHECK (flag IN (0, 1)),
    score INTEGER,
    PRIMARY KEY (epoch, observation)
) WITHOUT ROWID;
"""
_TABLES: Final = f"""
BEGIN IMMEDIATE;
{_EPOCHS}
{_DECISIONS}
PRAGMA application_id = {_APPLICATION_ID};
COMMIT;
"""
_SEALED: Final = "sealed "
_NEXT: Final = """
SELECT 1 + max((SELECT coalesce(max(number), 0) FROM epochs), (SELECT coalesce(max(epoch), 0) FROM decisions))
"""

_ROOM: Final = frozenset((sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN))

Row = tuple[int | None, int | None]  # a flag and a score; no flag: it was not looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One charge and what was decided for it.

    `about` is public: the charge, the data set, the question and its columns. `block` is the number of the note in the
    ledger under which the latest decisions were made.
    """

    number: int
    about: dict[str, Any]
    secret: tuple[int, ...] = field(repr=False)
    block: int = 0
    spent: int = field(default=0, repr=False)
    exhausted: bool = False
    position: int = 0


class State:
    """The file of one watch, locked for this process."""

    def __init__(self, path: str | Path, vault: Vault | OpenVault | None = None) -> None:
        """With a vault the secret of an epoch is sealed; what was decided is told anyway, and stays readable."""
        self._vault = vault or OpenVault()
        self._path = Path(path).expanduser().absolute()
        self._lock = lock_file(self._path)
        try:
            self._db = self._connect()
        except BaseException:
            self._lock.close()
            raise

    def newest(self) -> Epoch | None:
        """The latest epoch, or None in a new file. Raises EpochClosed when it cannot go on."""
        with self._access() as db:
            row = db.execute("SELECT * FROM epochs ORDER BY number DESC LIMIT 1").fetchone()
            if row is None and db.execute("SELECT count(*) FROM decisions").fetchone()[0] == 0:
                return None
            place = 0 if row is None else row["number"]
            found = "SELECT count(*), max(observation) FROM decisions WHERE epoch = ?"
            count, last = db.execute(found, (place,)).fetchone()
        if row is None or row["status"] == "closed" or _checksum(row["about"], row["secret"]) != row["checksum"]:
            raise self.close_epoch("what it must remember is damaged or was given up")
        about = json.loads(row["about"])
        if count != (last or 0) or self._read_witness(about) > count:
            raise self.close_epoch("it is an older copy: more was decided than it knows of")
        return Epoch(
            number=place,
            about=about,
            secret=tuple(json.loads(self._unseal_secret(row["secret"], row["about"]))),
            block=row["block"],
            spent=row["spent"],
            exhausted=row["status"] == "exhausted",
            position=count,
        )

    def begin(self, about: dict[str, Any], secret: tuple[int, ...]) -> Epoch:
        """Start an epoch that is paid for; it and its secret are on disk when this returns."""
        words = canonical(about)
        kept = self._seal_secret(json.dumps(list(secret)), words)
        with self._access() as db:
            db.execute("UPDATE epochs SET status = 'closed' WHERE status = 'open'")
            (number,) = db.execute(_NEXT).fetchone()
            row = (number, words, kept, _checksum(words, kept))
            db.execute("INSERT INTO epochs VALUES (?, ?, ?, ?, 0, 0, 'open')", row)
        return Epoch(number=number, about=about, secret=secret)

    def keep(self, epoch: Epoch, decisions: Sequence[Row]) -> None:
        """Keep the latest decisions of an epoch and where it stands after them: all of it is on disk, or nothing."""
        first = epoch.position - len(decisions) + 1
        rows = ((epoch.number, first + place, *decision) for place, decision in enumerate(decisions))
        with self._access() as db:
            db.executemany("INSERT INTO decisions VALUES (?, ?, ?, ?)", rows)
            status = "exhausted" if epoch.exhausted else "open"
            stands = (epoch.block, epoch.spent, status, epoch.number)
            db.execute("UPDATE epochs SET block = ?, spent = ?, status = ? WHERE number = ?", stands)
        try:
            os.pwrite(self._lock.fileno(), _witness(epoch.about, epoch.position), 0)
        except OSError:
            raise _unwritable(self._path) from None

    def position_of(self, epoch: Epoch) -> int:
        """How many decisions of an epoch are on disk, whether or not whoever kept them heard of it."""
        asked = "SELECT coalesce(max(observation), 0) FROM decisions WHERE epoch = ?"
        with self._access() as db:
            return int(db.execute(asked, (epoch.number,)).fetchone()[0])

    def recall(self, epoch: Epoch, first: int, count: int) -> list[Row]:
        """Decisions as they were told."""
        asked = "SELECT flag, score FROM decisions WHERE epoch = ? AND observation BETWEEN ? AND ? ORDER BY observation"
        with self._access() as db:
            return [tuple(row) for row in db.execute(asked, (epoch.number, first, first + count - 1))]

    def close_epoch(self, why: str) -> EpochClosed:
        """Close the latest epoch for good; gives the error to raise."""
        with self._access() as db:
            db.execute("UPDATE epochs SET status = 'closed' WHERE number = (SELECT max(number) FROM epochs)")
        return EpochClosed(
            f"{self._path}: {why}. Going on could tell more than was paid for, so the epoch is closed. "
            "Start a new one, which is paid for (renew=True, --renew)."
        )

    def _seal_secret(self, secret: str, about: str) -> str:
        if isinstance(self._vault, OpenVault):
            return secret
        return _SEALED + self._vault.seal(secret.encode("ascii"), about).hex()

    def _unseal_secret(self, kept: str, about: str) -> str:
        """The secret as it is; the epoch stays as it was where the key is missing or another one."""
        is_sealed = kept.startswith(_SEALED)
        if is_sealed is isinstance(self._vault, OpenVault):
            words = (
                "sealed. Name the key that it began" if is_sealed else "not sealed. Leave out the key that it is asked"
            )
            raise SealedStore(f"{self._path}: its epoch is {words} with (state_key, --state-key).")
        try:
            return (
                self._vault.unseal(bytes.fromhex(kept.removeprefix(_SEALED)), about).decode("ascii")
                if is_sealed
                else kept
            )
        except (SealedStore, ValueError):
            raise SealedStore(
                f"{self._path}: its epoch is sealed with another key. Name that one (state_key, --state-key)."
            ) from None

    def close(self) -> None:
        self._db.close()
        self._lock.close()

    def abandon(self) -> None:
        """In a forked child: let go of the lock, which stays with the parent, and of its connection."""
        self._lock.close()
        _ABANDONED.append(self._db)  # SQLite must not close in a child what its parent has opened

    @contextmanager
    def _access(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._db as db:
                db.execute("BEGIN IMMEDIATE")
                yield db
        except sqlite3.Error as error:
            is_room = error.sqlite_errorcode & 0xFF in _ROOM
            raise (_unwritable(self._path) if is_room else _unusable(self._path, error)) from None

    def _connect(self) -> sqlite3.Connection:
        try:
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            self._path.chmod(0o600)
            db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            db.row_factory = sqlite3.Row
            for setting in ("journal_mode = WAL", "synchronous = FULL"):
                db.execute(f"PRAGMA {setting}").close()
            if not db.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone():
                db.executescript(_TABLES)
            is_ours = db.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID
            is_whole = db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        except (sqlite3.Error, OSError) as error:
            raise _unusable(self._path, error) from None
        if not (is_ours and is_whole):
            db.close()
            raise _unusable(self._path)
        return db

    def _read_witness(self, about: dict[str, Any]) -> int:
        """How many decisions of this epoch were told at least; 0 if nobody knows."""
        name, _, count = os.pread(self._lock.fileno(), 200, 0).decode("ascii", "replace").partition(" ")
        return int(count) if name == about["epoch"] and count.strip().isdigit() else 0


_ABANDONED: Final[list[sqlite3.Connection]] = []


def lock_file(path: Path) -> FileIO:
    """The lock of a state file, or a refusal at once."""
    beside = path.with_name(f"{path.name}.lock")
    try:
        lock = FileIO(beside, "r+", opener=lambda name, flags: os.open(name, flags | os.O_CREAT, 0o600))
    except OSError as error:
        raise _unusable(path, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise StateError(
            f"{path}: another process is watching with this state, and one at a time may. "
            "Wait until it ends, or give this watch a state file of its own."
        ) from None
    return lock


def _witness(about: dict[str, Any], position: int) -> bytes:
    return f"{about['epoch']} {position:020}\n".encode("ascii")


def _checksum(about: str, secret: str | None) -> str:
    return hashlib.sha256(canonical({"about": about, "secret": secret}).encode("ascii")).hexdigest()


def _unwritable(path: Path) -> StateUnreachable:
    return StateUnreachable(
        f"{path}: it cannot be written at the moment. A watch tells nothing that is not on disk. Make room, then open "
        "the watch again: it goes on, and passes over what it looked at meanwhile."
    )


def _unusable(path: Path, error: Exception | None = None) -> StateError:
    words = error.strerror if isinstance(error, OSError) else "is damaged, or not the state of a watch"
    return StateError(
        f"{path}: {words}. A state is a file that wallflower makes and may write. Move it away or name another; "
        "a new one starts an epoch of its own, which is paid for."
    )
