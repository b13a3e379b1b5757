"""The ledger's database: one SQLite file or one PostgreSQL database, its tables, and short transactions.

The tables are defined once, here, with a version. `docs/decisions/0017-ledger-versions.md` says how the next version
will migrate. No connection outlives its transaction, so a forked child never shares one with its parent.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from wallflower.config import LEDGER as VARIABLE
from wallflower.config import find_ledger
from wallflower.errors import LedgerError, LedgerUnreachable
from wallflower.ledger.chain import COLUMNS
from wallflower.machine.heavy import require_package
from wallflower.machine.heavy import sqlalchemy as sa

VERSION: Final = 1
"""Version of the tables below, stored in `ledger_version`."""

_LOCK_TIMEOUT_SECONDS: Final = 60
_APPEND_ONLY: Final = "the ledger is append-only"
_REQUIRED: Final = ("time", "event", "dataset", "previous", "hash")
_NUMBERS: Final = ("id", "charge")


def _column(name: str, number: str) -> str:
    kind = number if name in _NUMBERS else "TEXT"
    return f'"{name}" {kind}{" NOT NULL" if name in (*_REQUIRED, "id") else ""}'


def _statements(number: str) -> tuple[str, ...]:
    """Statements that create version 1; `number` is the type of row numbers."""
    columns = ", ".join(_column(name, number) for name in COLUMNS)
    return (
        f"CREATE TABLE ledger_version (version {number} NOT NULL)",
        f"INSERT INTO ledger_version (version) VALUES ({VERSION})",  # noqa: S608 - a constant
        (
            f"CREATE TABLE entries ({columns}, PRIMARY KEY (id), UNIQUE (dataset, idempotency_key), UNIQUE (charge), "
            "CHECK (event IN ('charge', 'release', 'account', 'limit', 'quota', 'allowance', 'naming')), "
            "FOREIGN KEY (charge) REFERENCES entries (id))"
        ),
        # covers the sums of an account, so that they never read the table itself
        "CREATE INDEX entries_booked ON entries (dataset, event, unit, analyst, epsilon, booked_delta, rho, id)",
        "CREATE INDEX entries_names ON entries (dataset, names) WHERE names IS NOT NULL",
        "CREATE INDEX entries_event ON entries (event, dataset, id)",
        (
            "CREATE TABLE fingerprints (dataset TEXT NOT NULL, kind TEXT NOT NULL, tag TEXT NOT NULL, "
            "PRIMARY KEY (dataset, kind, tag), CHECK (kind IN ('rows', 'least', 'source')))"
        ),
        "CREATE INDEX fingerprints_tag ON fingerprints (tag)",
    )


# REPLACE deletes the row it replaces without firing the trigger on DELETE.
_REPLACED: Final = (
    "EXISTS (SELECT 1 FROM entries WHERE id = NEW.id OR charge = NEW.charge "
    "OR (dataset = NEW.dataset AND idempotency_key = NEW.idempotency_key))"
)
_TRIGGERS: Final = {
    "update": "UPDATE ON entries",
    "delete": "DELETE ON entries",
    "replace": f"INSERT ON entries WHEN {_REPLACED}",
}
_SCHEMA: Final[Mapping[str, tuple[str, ...]]] = {
    "sqlite": (
        *_statements("INTEGER"),
        *(
            f"CREATE TRIGGER entries_no_{name} BEFORE {change} BEGIN SELECT RAISE(ABORT, '{_APPEND_ONLY}'); END"
            for name, change in _TRIGGERS.items()
        ),
    ),
    "postgresql": (
        *_statements("BIGINT"),
        (
            "CREATE FUNCTION entries_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{_APPEND_ONLY}'; END $$"
        ),
        (
            "CREATE TRIGGER entries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON entries "
            "FOR EACH STATEMENT EXECUTE FUNCTION entries_append_only()"
        ),
    ),
}
_CONNECT: Final = (
    f"PRAGMA busy_timeout = {_LOCK_TIMEOUT_SECONDS * 1000}",
    "PRAGMA synchronous = FULL",
    "PRAGMA foreign_keys = ON",
)
_READ: Final[Mapping[str, tuple[str, ...]]] = {
    "sqlite": ("BEGIN",),
    "postgresql": ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",),
}
_WRITE: Final[Mapping[str, tuple[str, ...]]] = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": (
        "SET LOCAL synchronous_commit TO on",
        f"SET LOCAL lock_timeout TO '{_LOCK_TIMEOUT_SECONDS}s'",
        "LOCK TABLE entries IN EXCLUSIVE MODE",
    ),
}
_CREATE: Final[Mapping[str, tuple[str, ...]]] = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": (
        f"SET LOCAL lock_timeout TO '{_LOCK_TIMEOUT_SECONDS}s'",
        "SELECT pg_advisory_xact_lock(8241973505)",
    ),
}
_POSTGRES: Final = ("postgresql", "postgres", "postgresql+psycopg")


class Store:
    """A database that holds a ledger."""

    def __init__(self, where: str | Path | None) -> None:
        self._engine, self.place = open_engine(where if where is not None else _default())
        self.on_error: Callable[[], None] | None = None  # called for every transaction that the database failed
        self._create()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One moment of the ledger, however many statements look at it."""
        with self._transaction(_READ) as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One writer at a time; durable when this ends, nothing changed when it raises.

        A process that runs on while a newer version upgrades the ledger must not write rows as the older version did,
        so every writer looks at the version, under its lock.
        """
        with self._transaction(_WRITE) as db:
            self._require_version(db)
            yield db

    def require_version(self) -> None:
        """Refuse a ledger whose tables another wallflower has migrated since this process opened it."""
        with self._transaction(_READ) as db:
            self._require_version(db)

    def _require_version(self, db: sa.Connection) -> None:
        stored = db.exec_driver_sql("SELECT version FROM ledger_version").scalar()
        if stored != VERSION:
            raise LedgerError(
                f"ledger {self.place}: version {stored} was written by another wallflower while this process ran, and "
                f"this one knows version {VERSION}. Upgrade wallflower, and start this process again."
            )

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _transaction(self, opening: Mapping[str, tuple[str, ...]]) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as db:
                for statement in opening[db.dialect.name]:
                    db.exec_driver_sql(statement)
                yield db
        except sa.exc.SQLAlchemyError as error:
            if self.on_error is not None:
                self.on_error()
            raise LedgerUnreachable(
                f"ledger {self.place}: {_reason(error)}. It must be a SQLite file or a PostgreSQL database that can be "
                f"reached and written. Check the path or URL you gave, or ${VARIABLE}, then try again."
            ) from None

    def _create(self) -> None:
        """Create the tables in an empty database; check the version of one that has them."""
        with self._transaction(_READ) as db:
            if self._version(db) is not None:
                return
        with self._transaction(_CREATE) as db:
            if self._version(db) is None:  # another process may have been first
                for statement in _SCHEMA[db.dialect.name]:
                    db.exec_driver_sql(statement)

    def _version(self, db: sa.Connection) -> int | None:
        """Return the stored version, or None for an empty database; refuse every other database."""
        tables = sa.inspect(db).get_table_names()
        if not tables:
            return None
        stored = None
        if {"entries", "ledger_version"} <= set(tables):
            stored = db.scalar(sa.text("SELECT version FROM ledger_version"))
        if not isinstance(stored, int):
            raise LedgerError(
                f"ledger {self.place}: the database holds other tables and is not a ledger. A ledger needs a file or a "
                "database of its own. Give another path or URL."
            )
        if stored > VERSION:
            raise LedgerError(
                f"ledger {self.place}: version {stored} was written by a newer wallflower. This one reads version "
                f"{VERSION}. Upgrade wallflower."
            )
        return stored


def open_engine(where: str | Path) -> tuple[sa.Engine, str]:
    """What connects to a file or a database, and how to call it in a message."""
    url = _url(where)
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _prepare)
    return engine, _public_place(url)


def _url(where: str | Path) -> sa.URL:
    scheme, mark, _ = str(where).partition("://")
    if not mark:
        return _file(Path(where))
    url = _parse_url(str(where))
    if url and scheme == "sqlite" and url.database and url.database != ":memory:" and not url.host:
        return _file(Path(url.database))
    # A raw @ in a password moves its tail into the host, where an error message would show it.
    if not url or scheme not in _POSTGRES or "@" in f"{url.host}{url.database}":
        raise _unreadable(scheme)
    require_package("psycopg")
    return url.set(drivername="postgresql+psycopg", query={"connect_timeout": "10", **url.query})


def _parse_url(where: str) -> sa.URL | None:
    try:
        return sa.make_url(where)
    except (sa.exc.SQLAlchemyError, ValueError):
        return None  # the error would carry pieces of the URL


def _unreadable(scheme: str) -> LedgerError:
    return LedgerError(
        f"ledger: this {scheme}:// URL cannot be used. A ledger is a file path, sqlite:///FILE or "
        "postgresql://USER:PASSWORD@HOST/DATABASE. Correct it, and write special characters of a password as %40 "
        "for @, %3A for :, %2F for /."
    )


def _file(path: Path) -> sa.URL:
    path = path.expanduser().absolute()
    try:
        if not path.exists():
            path.touch(mode=0o600)
    except OSError as error:
        raise LedgerError(
            f"ledger {path}: {error.strerror}. A ledger is a file in a directory that exists and that you may write. "
            "Create the directory, or give another path."
        ) from None
    return sa.URL.create("sqlite", database=str(path))


def _default() -> str | Path:
    """The environment, then the file of the project, then the data home."""
    return os.environ.get(VARIABLE) or find_ledger() or _home()


def home_of() -> Path:
    """The folder that the ledger is kept in where nobody says another."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "wallflower"


def _home() -> Path:
    folder = home_of()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LedgerError(
            f"ledger {folder}: {error.strerror}. Without a path the ledger is kept there. "
            f"Make it a directory you may write, or set ${VARIABLE}."
        ) from None
    return folder / "ledger.db"


def _public_place(url: sa.URL) -> str:
    """The place without user, password or options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return f"postgresql://{url.host or ''}{f':{url.port}' if url.port else ''}/{url.database or ''}"


def _prepare(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # else the driver begins transactions of its own
    for statement in _CONNECT:
        connection.execute(statement).close()
    _switch_to_wal(connection, deadline=time.monotonic() + _LOCK_TIMEOUT_SECONDS)


def _switch_to_wal(connection: Any, *, deadline: float) -> None:
    """For this one lock SQLite does not wait by itself, so eight first openers would trip over each other."""
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _reason(error: sa.exc.SQLAlchemyError) -> str:
    words = str(error.orig) if isinstance(error, sa.exc.DBAPIError) else type(error).__name__
    return words.strip().partition("\n")[0].rstrip(".")
