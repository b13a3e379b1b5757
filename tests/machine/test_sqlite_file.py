"""A SQLite file that one process writes: locked, durable, and sealed if a key is named."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from wallflower.errors import SourceError, StateError
from wallflower.machine.sqlite_file import FileFormat, SqliteFile, lock_file, open_read_only
from wallflower.machine.vault import SIZE, SealedStore, Vault

NOTES = FileFormat(application_id=7, tables="CREATE TABLE notes (body BLOB NOT NULL);", content="a file of notes")


def bodies(file: SqliteFile) -> list[bytes]:
    with file.transaction() as db:
        return [row[0] for row in db.execute("SELECT body FROM notes ORDER BY rowid")]


def insert_then(file: SqliteFile, fail: Callable[[sqlite3.Connection], object]) -> None:
    with file.transaction() as db:
        db.execute("INSERT INTO notes VALUES (x'02')")
        fail(db)


def test_a_transaction_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    with SqliteFile(tmp_path / "notes.db", NOTES) as file:
        with file.transaction() as db:
            db.execute("INSERT INTO notes VALUES (x'01')")
        with pytest.raises(KeyError):
            insert_then(file, lambda db: {}["missing"])
        with pytest.raises(StateError, match="damaged, or not a file of notes"):
            insert_then(file, lambda db: db.execute("INSERT INTO notes VALUES (NULL)"))
        assert bodies(file) == [b"\1"]
    with SqliteFile(tmp_path / "notes.db", NOTES) as file:
        assert bodies(file) == [b"\1"]


def test_only_its_owner_reads_the_file_and_only_one_process_opens_it(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.touch(0o644)
    with SqliteFile(path, NOTES):
        assert {stat.S_IMODE(file.stat().st_mode) for file in (path, tmp_path / "notes.db.lock")} == {0o600}
        with pytest.raises(StateError, match="another process has it open"):
            SqliteFile(path, NOTES)
        with pytest.raises(StateError, match="another process has it open"):
            lock_file(path)
    lock_file(path).close()


def test_another_file_is_refused_and_its_lock_is_free_again(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    other = FileFormat(application_id=8, tables="CREATE TABLE other (x);", content="another file")
    SqliteFile(path, other).close()
    for _ in range(2):
        with pytest.raises(StateError, match="not a file of notes"):
            SqliteFile(path, NOTES)
    path.write_bytes(b"not a database, and longer than the header of one" * 20)
    with pytest.raises(StateError, match="damaged"):
        SqliteFile(path, NOTES)
    with pytest.raises(StateError, match="No such file or directory"):
        SqliteFile(tmp_path / "missing" / "notes.db", NOTES)


def test_damage_that_opening_does_not_see_is_found_by_the_check(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with SqliteFile(path, NOTES) as file:
        with file.transaction() as db:
            db.executemany("INSERT INTO notes VALUES (?)", [(bytes(3000),)] * 40)
        file.erase_deleted()  # moves the log into the file
        file.check_integrity()
    content = bytearray(path.read_bytes())
    content[4096 * 3 : 4096 * 4] = b"\xff" * 4096
    path.write_bytes(content)
    with SqliteFile(path, NOTES) as file, pytest.raises(StateError, match="damaged"):
        file.check_integrity()


def test_deleted_bytes_are_gone_from_file_and_log(tmp_path: Path) -> None:
    secret = b"a reading that must not stay"
    with SqliteFile(tmp_path / "notes.db", NOTES) as file:
        with file.transaction() as db:
            db.execute("INSERT INTO notes VALUES (?)", (secret,))
        assert any(secret in path.read_bytes() for path in tmp_path.iterdir())
        with file.transaction() as db:
            db.execute("DELETE FROM notes")
        file.erase_deleted()
        assert not any(secret in path.read_bytes() for path in tmp_path.iterdir())


def test_a_sealed_file_opens_with_its_key_only(tmp_path: Path) -> None:
    vault, other = Vault(bytes(range(SIZE))), Vault(bytes(SIZE))
    SqliteFile(tmp_path / "sealed.db", NOTES, vault=vault).close()
    SqliteFile(tmp_path / "open.db", NOTES).close()
    with pytest.raises(SealedStore, match="is sealed"):
        SqliteFile(tmp_path / "sealed.db", NOTES)
    with pytest.raises(SealedStore, match="another key"):
        SqliteFile(tmp_path / "sealed.db", NOTES, vault=other)
    with pytest.raises(SealedStore, match="not sealed"):
        SqliteFile(tmp_path / "open.db", NOTES, vault=vault)
    SqliteFile(tmp_path / "sealed.db", NOTES, vault=vault).close()
    with closing(sqlite3.connect(tmp_path / "sealed.db")) as db, db:
        db.execute("DELETE FROM vault")
    with pytest.raises(SealedStore, match="another key"):
        SqliteFile(tmp_path / "sealed.db", NOTES, vault=vault)


FULL = """
import resource, sys
from test_sqlite_file import NOTES, SqliteFile, bodies
from wallflower.errors import StateUnreachable
with SqliteFile(sys.argv[1], NOTES) as file:
    stored = 0
    try:
        while True:
            with file.transaction() as db:
                db.execute("INSERT INTO notes VALUES (?)", (bytes(9000),))
            stored += 1
    except StateUnreachable:
        print(stored == len(bodies(file)) > 0)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    with file.transaction() as db:
        db.execute("INSERT INTO notes VALUES (x'01')")
    print(len(bodies(file)) == stored + 1)
"""


def limit_file_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))


def test_a_full_disk_stores_nothing_and_the_same_process_continues_afterwards(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", FULL, str(tmp_path / "notes.db")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, preexec_fn=limit_file_size)
    assert (done.returncode, done.stdout) == (0, "True\nTrue\n"), done.stderr


def test_a_note_in_the_lock_file_outlives_the_process(tmp_path: Path) -> None:
    with SqliteFile(tmp_path / "notes.db", NOTES) as file:
        assert file.read_lock_note() == b""
        file.write_lock_note(b"epoch 3\n")
    with SqliteFile(tmp_path / "notes.db", NOTES) as file:
        assert file.read_lock_note() == b"epoch 3\n"


def test_a_reader_reads_beside_the_writer_and_creates_nothing(tmp_path: Path) -> None:
    with SqliteFile(tmp_path / "notes.db", NOTES) as file:
        with file.transaction() as db:
            db.execute("INSERT INTO notes VALUES (x'01')")
        with closing(open_read_only(tmp_path / "notes.db", replace_hint="Use it.")) as reader:
            assert reader.execute("SELECT count(*) FROM notes").fetchone() == (1,)
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute("DELETE FROM notes")
    with pytest.raises(SourceError, match="Use it"):
        open_read_only(tmp_path / "missing.db", replace_hint="Use it.")
    assert not (tmp_path / "missing.db").exists()
