"""Opening a ledger, and everything that can be wrong with the place it is kept."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import sqlalchemy as sa
from ledgers import ROWS, ask, engine_of, filled, meddle

from postgres import PASSWORD, Server
from wallflower.errors import LedgerError, LossMismatch
from wallflower.ledger import Ledger
from wallflower.privacy import Loss

# Opening


def test_a_new_file_is_private_and_kept_safely(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with ledger._store.read() as db:
            pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
            assert [db.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas] == ["wal", 2, 1, 60000]


def test_without_a_path_the_variable_and_then_the_data_home_are_used(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setenv("WALLFLOWER_LEDGER", f"sqlite:///{tmp_path / 'named.db'}")
    Ledger.open().close()
    assert (tmp_path / "named.db").exists()
    assert not (tmp_path / "share").exists()
    monkeypatch.delenv("WALLFLOWER_LEDGER")
    Ledger.open().close()
    assert (tmp_path / "share" / "wallflower" / "ledger.db").exists()


def test_a_relative_path_survives_a_change_of_directory(tmp_path, monkeypatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Ledger.open("ledger.db") as ledger:
        monkeypatch.chdir(tmp_path / "elsewhere")
        ask(ledger, "0.5")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_was_written_is_there_after_opening_again(place: str) -> None:
    with Ledger.open(place) as ledger:
        filled(ledger)
        before = list(ledger.export())
    with Ledger.open(place) as again:
        assert list(again.export()) == before
        assert again.verify().entries == ROWS


def test_both_databases_have_the_same_tables_columns_and_indexes(postgres: Server, tmp_path: Path) -> None:
    def described(place: str) -> dict[str, object]:
        Ledger.open(place).close()
        with engine_of(place).connect() as db:
            found = sa.inspect(db)
            return {
                table: (
                    [(column["name"], column["nullable"]) for column in found.get_columns(table)],
                    sorted(
                        index["name"] for index in found.get_indexes(table) if not index.get("duplicates_constraint")
                    ),
                )
                for table in sorted(found.get_table_names())
            }

    assert described(str(tmp_path / "ledger.db")) == described(postgres.fresh())


def test_a_newer_ledger_is_refused(place: str) -> None:
    Ledger.open(place).close()
    meddle(place, "UPDATE ledger_version SET version = 99")
    with pytest.raises(LedgerError, match=r"version 99.*newer wallflower.*Upgrade wallflower"):
        Ledger.open(place)


@pytest.mark.parametrize("table", ["customers (id INTEGER)", "ledger_version (version INTEGER)"])
def test_a_database_of_something_else_is_refused_and_left_alone(place: str, table: str) -> None:
    with engine_of(place).begin() as db:
        db.exec_driver_sql(f"CREATE TABLE {table}")
    with pytest.raises(LedgerError, match=r"not a ledger.*Give another path or URL"):
        Ledger.open(place)
    with engine_of(place).connect() as db:
        assert sa.inspect(db).get_table_names() == [table.split()[0]]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    place.write_bytes(b"not a database at all" * 100)
    with pytest.raises(LedgerError, match=r"file is not a database.*Check the path"):
        Ledger.open(place)


@pytest.mark.parametrize("where", ["missing/ledger.db", "."])
def test_a_path_that_cannot_be_a_file_is_refused(tmp_path, monkeypatch, where: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match=r"directory|path"):
        Ledger.open(where)


def test_a_data_home_that_cannot_be_made_is_refused(tmp_path, monkeypatch) -> None:
    (tmp_path / "share").write_text("in the way")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv("WALLFLOWER_LEDGER", raising=False)
    with pytest.raises(LedgerError, match="WALLFLOWER_LEDGER"):
        Ledger.open()


@pytest.mark.parametrize(
    "where",
    [
        "mysql://u:hunter2@h/d",
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://u:hun@ter2@h/d",
        "postgresql://u:hun:ter2@h:hunter2/d",
        "postgresql://u:hunter2@127.0.0.1:1/d",
        "postgresql://127.0.0.1:1/d?user=u&password=hunter2",
        "postgresql://u:hunter2@127.0.0.1:1/d?nonsense=1",
    ],
)
def test_a_url_that_leads_nowhere_is_refused_without_its_password(where: str) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(where)
    assert "ter2" not in "".join(map(str, (caught.value, caught.value.__cause__, caught.value.__context__)))


def test_a_wrong_password_is_refused_and_no_password_is_ever_shown(postgres: Server) -> None:
    with pytest.raises(LedgerError, match="authentication failed") as caught:
        Ledger.open(postgres.url("wrong-sesame"))
    assert "sesame" not in str(caught.value)
    with Ledger.open(postgres.fresh()) as ledger:
        assert PASSWORD not in repr(ledger)


# Trouble


def test_a_writer_that_stays_too_long_gives_a_typed_error(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("wallflower.ledger.store._CONNECT", ("PRAGMA busy_timeout = 50",))
    place = tmp_path / "ledger.db"
    with Ledger.open(place) as ledger, ledger._store.write():
        with pytest.raises(LedgerError, match="locked"):
            ask(ledger, "0.1")
        assert ledger.history() == []


def test_opening_waits_for_another_that_is_opening_too(tmp_path: Path) -> None:
    place = tmp_path / "ledger.db"
    other = sqlite3.connect(place, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE draft (id INTEGER)")
    other.execute("BEGIN IMMEDIATE")
    other.execute("DROP TABLE draft")
    later = threading.Timer(0.3, other.commit)
    later.start()
    Ledger.open(place).close()
    later.join()
    other.close()


def test_unlike_losses_raise_their_own_error(ledger: Ledger) -> None:
    with pytest.raises(LossMismatch):
        Loss.zcdp("1") <= ledger.remaining("icu")  # noqa: B015


@contextmanager
def not_as_root() -> Iterator[None]:
    """Root may write anything, so it is somebody else for a while."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)


def test_a_file_that_may_not_be_written_is_refused() -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Path(folder) / "ledger.db"
        Ledger.open(place).close()
        place.chmod(0o444)
        with not_as_root(), pytest.raises(LedgerError), Ledger.open(place) as ledger:
            ask(ledger, "0.1")


def test_a_backup_taken_while_open_is_a_ledger(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        filled(ledger)
        source, copy = sqlite3.connect(tmp_path / "ledger.db"), sqlite3.connect(tmp_path / "backup.db")
        source.backup(copy)
        source.close()
        copy.close()
        with Ledger.open(tmp_path / "backup.db") as backup:
            assert backup.verify() == ledger.verify()
