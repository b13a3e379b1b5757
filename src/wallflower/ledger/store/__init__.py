"""Where the ledger is kept: one SQLite file or one PostgreSQL database, opened for short transactions.

No connection outlives its transaction, so a forked child never shares one with its parent.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from wallflower.config import LEDGER as VARIABLE
from wallflower.config import find_ledger
from wallflower.errors import LedgerError, LedgerUnreachable
from wallflower.ledger.store.newest import HEAD, STATEMENTS
from wallflower.machine.lazy import Lazy

if TYPE_CHECKING:
    import alembic.command as _alembic
    import alembic.config as _alembic_config
    import sqlalchemy as sa
else:
    _alembic = Lazy("alembic.command")
    _alembic_config = Lazy("alembic.config")
    sa = Lazy("sqlalchemy")

_PATIENCE: Final = 60
_CONNECT: Final = (
    f"PRAGMA busy_timeout = {_PATIENCE * 1000}",
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
        f"SET LOCAL lock_timeout TO '{_PATIENCE}s'",
        "LOCK TABLE entries IN EXCLUSIVE MODE",
    ),
}
_MIGRATE: Final[Mapping[str, tuple[str, ...]]] = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": (f"SET LOCAL lock_timeout TO '{_PATIENCE}s'", "SELECT pg_advisory_xact_lock(8241973505)"),
}
_POSTGRES: Final = ("postgresql", "postgres", "postgresql+psycopg")


class Store:
    """A database with an up-to-date ledger in it."""

    def __init__(self, where: str | Path | None) -> None:
        self._engine, self.place = open_engine(where if where is not None else _default())
        self.on_error: Callable[[], None] | None = None  # called for every transaction that the database failed
        self._migrate()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One moment of the ledger, however many statements look at it."""
        with self._transaction(_READ) as db:
            yield db

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """One writer at a time; durable when this ends, nothing changed when it raises."""
        with self._transaction(_WRITE) as db:
            yield db

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

    def _migrate(self) -> None:
        with self._transaction(_READ) as db:
            if self._revision(db) == HEAD:
                return
        with self._transaction(_MIGRATE) as db:
            stored = self._revision(db)
            if stored == HEAD:
                return
            if stored is None and db.dialect.name == "sqlite":
                for statement in STATEMENTS:
                    db.exec_driver_sql(statement)
                return
            config = _alembic_config.Config(attributes={"connection": db})
            config.set_main_option("script_location", "wallflower.ledger.store:migrations")
            _alembic.upgrade(config, HEAD)

    def _revision(self, db: sa.Connection) -> str | None:
        tables = sa.inspect(db).get_table_names()
        if not tables:
            return None
        stored = None
        if {"entries", "alembic_version"} <= set(tables):
            stored = db.scalar(sa.text("SELECT version_num FROM alembic_version"))
        if stored is None or not stored.isdigit():
            raise LedgerError(
                f"ledger {self.place}: it holds other tables and is not a ledger. A ledger needs a file or a database "
                "of its own. Give another path or URL."
            )
        if stored > HEAD:
            raise LedgerError(
                f"ledger {self.place}: it is at revision {stored}, written by a newer wallflower. This one knows "
                f"revisions up to {HEAD}. Upgrade wallflower."
            )
        return str(stored)


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
    _switch_to_wal(connection, deadline=time.monotonic() + _PATIENCE)


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
