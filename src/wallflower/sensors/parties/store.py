"""The store of a server or the stream owner: batches, commits, messages of every step, and the state of each window.

collecting → sealed → exchanged → delivered → purged; a window without a row is open. A transition and what belongs to
it are one transaction. A message is stored before it is sent, so a restart repeats the last step with the same bytes.

The perturbed readings that an analyst keeps are read from its store for other analyses (`read_perturbed_windows`). They
were perturbed at the source, so anything computed from them is post-processing and costs no further ε. Keys and
messages of the protocol stay in the store.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import ParameterError, StateError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.sqlite_file import FileFormat, SqliteFile, check_key, open_read_only
from wallflower.machine.vault import OpenVault, Vault
from wallflower.sensors.parameters import Direct, Parameters
from wallflower.sensors.protocol.findings import SignedCommit
from wallflower.sensors.protocol.frames import Frame, FrameError, decode
from wallflower.sensors.protocol.rounds import list_readings

_SIDES: Final = ("request", "response")
STATES: Final = ("open", "collecting", "sealed", "exchanged", "delivered", "purged")
_KEY_OPTION: Final = "--store-key"
_FORMAT: Final = FileFormat(
    application_id=0x77667331,
    content="the store of a server",
    key_option=_KEY_OPTION,
    page_bytes=16_384,  # a batch of keys is millions of bytes, and is stored twice as fast in large pages
    tables="""
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
CREATE TABLE messages (
    window INTEGER NOT NULL,
    name TEXT NOT NULL,
    digest BLOB NOT NULL,
    request BLOB,
    response BLOB,
    UNIQUE (window, name)
);
""",
)


@dataclass(frozen=True, slots=True)
class Message:
    """The request of a step, by its digest once it is purged, and the response once there is one."""

    digest: bytes
    request: bytes | None
    response: bytes | None


class WindowStore:
    """The store of one party for one parameter set."""

    def __init__(self, path: Path, *, parameters: bytes, party: str, vault: Vault | OpenVault | None = None) -> None:
        self._file = SqliteFile(path, _FORMAT, vault=vault)
        self._vault = self._file.vault
        try:
            with self._file.transaction() as db:
                row = db.execute("SELECT parameters, party FROM stream").fetchone()
                if row is None:
                    db.execute("INSERT INTO stream VALUES (?, ?)", (parameters, party))
            if row is not None and tuple(row) != (parameters, party):
                raise StateError(
                    f"{path}: the store belongs to another party or parameter set. A new version starts a new file. "
                    "Name one."
                )
            self._file.erase_deleted()  # a process that died while purging has left bytes in the log
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._file.close()

    def state(self, window: int) -> str:
        """Return the state of a window."""
        with self._file.transaction() as db:
            return _read_state(db, window)

    def list_unfinished(self) -> list[int]:
        """Return the windows that are not purged."""
        with self._file.transaction() as db:
            rows = db.execute("SELECT window FROM windows WHERE state != 'purged' ORDER BY window")
            return [row[0] for row in rows]

    def list_states(self) -> list[tuple[int, str]]:
        """Return every window and its state."""
        with self._file.transaction() as db:
            return [tuple(row) for row in db.execute("SELECT window, state FROM windows ORDER BY window")]

    def add_batch(self, window: int, sensor: int, seq: int, body: bytes, count: int, *, closed: bool) -> int:
        """Store a batch; return 201 for a new one, 200 for the same bytes, 409 for others, 410 for a closed window."""
        digest, key = hashlib.sha256(body).digest(), (window, sensor, seq)
        with self._file.transaction() as db:
            known = db.execute("SELECT digest FROM batches WHERE window = ? AND sensor = ? AND seq = ?", key).fetchone()
            status = _admit(db, window, known, digest, closed=closed)
            if status == 201:
                sealed = self._seal_batch(body, *key)
                db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?)", (*key, digest, count, sealed))
        return status

    def add_commit(self, window: int, sensor: int, commit: SignedCommit, *, closed: bool) -> int:
        """Store a commit; return a status as `add_batch` does."""
        digest, key = hashlib.sha256(commit.body).digest(), (window, sensor)
        with self._file.transaction() as db:
            known = db.execute("SELECT digest FROM commits WHERE window = ? AND sensor = ?", key).fetchone()
            status = _admit(db, window, known, digest, closed=closed)
            if status == 201:
                body = self._vault.seal(commit.body, "commit", window, sensor)
                row = (window, sensor, digest, body, commit.signature, commit.certificate)
                db.execute("INSERT INTO commits VALUES (?, ?, ?, ?, ?, ?)", row)
        return status

    def commits(self, window: int) -> dict[int, SignedCommit]:
        """Return the commit of each sensor that has finished."""
        query = "SELECT sensor, body, signature, certificate FROM commits WHERE window = ? ORDER BY sensor"
        with self._file.transaction() as db:
            rows = db.execute(query, (window,)).fetchall()
        bodies = {row[0]: self._vault.unseal(row[1], "commit", window, row[0]) for row in rows}
        return {row[0]: SignedCommit(bodies[row[0]], row[2] or b"", row[3] or b"") for row in rows}

    def batches(self, window: int, sensor: int | None = None) -> Iterator[bytes]:
        """Yield the batches of a window, one at a time, by sensor and number."""
        query = "SELECT rowid FROM batches WHERE window = ? AND (? IS NULL OR sensor = ?) ORDER BY sensor, seq"
        with self._file.transaction() as db:
            row_ids = [row[0] for row in db.execute(query, (window, sensor, sensor))]
        for row_id in row_ids:
            with self._file.transaction() as db:
                row = db.execute("SELECT body, sensor, seq FROM batches WHERE rowid = ?", (row_id,)).fetchone()
            if row["body"] is not None:
                yield self._vault.unseal(row["body"], "batch", window, row["sensor"], row["seq"])

    def message(self, window: int, name: str) -> Message | None:
        """Return the message of a step; None if there is none."""
        with self._file.transaction() as db:
            query = "SELECT digest, request, response FROM messages WHERE window = ? AND name = ?"
            row = db.execute(query, (window, name)).fetchone()
        if row is None:
            return None
        sides = ((side, row[side]) for side in _SIDES)
        bodies = (None if body is None else self._vault.unseal(body, side, window, name) for side, body in sides)
        return Message(row["digest"], *bodies)

    def add_message(self, window: int, name: str, request: bytes, response: bytes | None = None) -> None:
        """Store a request before it is sent, or a request and its response before the response is sent."""
        with self._file.transaction() as db:
            self._insert_message(db, window, name, request, response)

    def add_response(self, window: int, name: str, response: bytes) -> None:
        """Store the response to a request that was sent."""
        with self._file.transaction() as db:
            db.execute(
                "UPDATE messages SET response = ? WHERE window = ? AND name = ? AND response IS NULL",
                (self._vault.seal(response, "response", window, name), window, name),
            )

    def advance(self, window: int, state: str, **messages: tuple[bytes, bytes | None]) -> None:
        """Move a window on to a state, together with the messages that belong to it; never back."""
        with self._file.transaction() as db:
            _open_window(db, window)
            if STATES.index(_read_state(db, window)) < STATES.index(state):
                for name, (request, response) in messages.items():
                    self._insert_message(db, window, name, request, response)
                db.execute("UPDATE windows SET state = ? WHERE window = ?", (state, window))

    def purge(self, window: int, kept: dict[bytes, bytes]) -> None:
        """Erase batches, except what `kept` has for their digest, and all requests; responses stay."""
        with self._file.transaction() as db:
            db.execute("UPDATE messages SET request = NULL WHERE window = ?", (window,))
            db.execute("UPDATE batches SET body = NULL WHERE window = ?", (window,))
            rows = db.execute("SELECT rowid, digest, sensor, seq FROM batches WHERE window = ?", (window,)).fetchall()
            for row_id, digest, sensor, seq in rows:
                if digest in kept:
                    body = self._seal_batch(kept[digest], window, sensor, seq)
                    db.execute("UPDATE batches SET body = ? WHERE rowid = ?", (body, row_id))
            db.execute("UPDATE windows SET state = 'purged' WHERE window = ?", (window,))
        self._file.erase_deleted()

    def _seal_batch(self, body: bytes, window: int, sensor: int, seq: int) -> bytes:
        return self._vault.seal(body, "batch", window, sensor, seq)

    def _insert_message(
        self, db: sqlite3.Connection, window: int, name: str, request: bytes, response: bytes | None
    ) -> None:
        digest, bodies = hashlib.sha256(request).digest(), zip(_SIDES, (request, response), strict=True)
        sealed = (None if body is None else self._vault.seal(body, side, window, name) for side, body in bodies)
        db.execute("INSERT OR IGNORE INTO messages VALUES (?, ?, ?, ?, ?)", (window, name, digest, *sealed))


def _read_state(db: sqlite3.Connection, window: int) -> str:
    row = db.execute("SELECT state FROM windows WHERE window = ?", (window,)).fetchone()
    return "open" if row is None else str(row[0])


def _open_window(db: sqlite3.Connection, window: int) -> None:
    db.execute("INSERT OR IGNORE INTO windows VALUES (?, 'collecting')", (window,))


def _admit(db: sqlite3.Connection, window: int, known: sqlite3.Row | None, digest: bytes, *, closed: bool) -> int:
    """Return the status of something new for a window, and open the window for it if it is admitted (201)."""
    if known is not None:
        return 200 if known["digest"] == digest else 409
    if closed or _read_state(db, window) not in ("open", "collecting"):
        return 410
    _open_window(db, window)
    return 201


EXPORT_KEYS: Final = ("window", "sensor", "id")  # the columns before those of the stream


@dataclass(frozen=True, slots=True, eq=False)
class PerturbedWindow:
    """The readings of one window in the units of the columns, with the ids by which results name them."""

    window: int
    ids: NDArray[np.uint64]
    sensors: NDArray[np.uint64]
    values: NDArray[np.float64]

    def to_arrow(self, names: tuple[str, ...]) -> _pa.Table:
        """Return a pyarrow Table: window, sensor, id in hexadecimal, and one column for each of the stream."""
        keys: list[Any] = [
            np.full(len(self.ids), self.window),
            self.sensors.astype(np.int64),
            [f"{number:016x}" for number in self.ids.tolist()],
        ]
        columns = dict(zip((*EXPORT_KEYS, *names), [*keys, *self.values.T], strict=True))
        return _pa.table(columns, schema=export_schema(names))


def export_schema(names: tuple[str, ...]) -> _pa.Schema:
    """Return the schema of `PerturbedWindow.to_arrow`."""
    keys = zip(EXPORT_KEYS, (_pa.int64(), _pa.int64(), _pa.string()), strict=True)
    return _pa.schema([*keys, *((name, _pa.float64()) for name in names)])


def read_perturbed_windows(
    path: Path, parameters: Parameters, *, window: int | None = None, vault: Vault | OpenVault | None = None
) -> Iterator[PerturbedWindow]:
    """Yield the windows of an analyst's store in rising order; the analyst may be running.

    Ids that came twice are omitted, as they are when a window is judged.
    """
    vault = vault or OpenVault()
    _check_exportable(parameters)
    with closing(open_read_only(path, replace_hint="Name the file that `sensors analyst` keeps.")) as db:
        _check_analyst_store(db, path, parameters, vault)
        query = "SELECT DISTINCT window FROM batches WHERE body IS NOT NULL AND (? IS NULL OR window = ?) ORDER BY 1"
        for (number,) in db.execute(query, (window, window)).fetchall():
            readings = list_readings(parameters, "analyst", _decode_batches(db, path, parameters, number, vault))
            values = parameters.to_units(readings.values)
            yield PerturbedWindow(window=number, ids=readings.ids, sensors=readings.sensors, values=values)


def _check_exportable(parameters: Parameters) -> None:
    """Raise ParameterError for a stream without perturbed readings, or with the name of an export column."""
    if isinstance(parameters.settings, Direct):
        raise ParameterError(
            "mode direct: no perturbed reading leaves the sensor, so the analyst has none. Modes exact, grid and paper "
            "have them."
        )
    if taken := sorted(set(parameters.names) & set(EXPORT_KEYS)):
        raise ParameterError(f"columns: every export has a column {taken[0]}. Rename yours in a new version.")


def _check_analyst_store(db: sqlite3.Connection, path: Path, parameters: Parameters, vault: Vault | OpenVault) -> None:
    try:
        row = db.execute("SELECT parameters, party FROM stream").fetchone()
    except sqlite3.Error:
        row = None
    if row is None or tuple(row) != (parameters.hash, "analyst"):
        raise StateError(
            f"{path}: not the store of an analyst of this parameter set. Only the analyst keeps perturbed readings. "
            "Name its store and its set."
        )
    check_key(db, path, vault, _KEY_OPTION)


def _decode_batches(
    db: sqlite3.Connection, path: Path, parameters: Parameters, window: int, vault: Vault | OpenVault
) -> Iterator[Frame]:
    query = "SELECT rowid FROM batches WHERE window = ? AND body IS NOT NULL ORDER BY sensor, seq"
    for (row_id,) in db.execute(query, (window,)).fetchall():
        body, sensor, seq = db.execute("SELECT body, sensor, seq FROM batches WHERE rowid = ?", (row_id,)).fetchone()
        try:
            yield decode(vault.unseal(body, "batch", window, sensor, seq), parameters=parameters.hash)
        except FrameError:
            raise StateError(f"{path}: a batch is damaged. Restore the store from a copy.") from None
