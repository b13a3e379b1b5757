"""What a fleet must remember: every decision it told, by stream and time, in one SQLite file or PostgreSQL database.

One process at a time has a fleet: of a file by a lock beside it, of a database by an advisory lock. Decisions and how
far the fleet has come are kept in one transaction. When the fleet is put down in good order, the store is marked with
the ledger's last row: as long as that is the last, the store knows all that was told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, Final

from wallflower.errors import LedgerError, SessionClosed, StateError, StateUnreachable
from wallflower.ledger.chain import canonical
from wallflower.ledger.store import open_engine
from wallflower.machine.heavy import sqlalchemy as sa
from wallflower.machine.sqlite_file import lock_file
from wallflower.streams.session import Row, Session

Key = tuple[str, int]  # a stream, and a time of it

_ROOM: Final = "wallflower_fleets"  # of a database, so that a ledger may be there too
_TABLES: Final = (
    """
    CREATE TABLE IF NOT EXISTS fleet_sessions (
        fleet TEXT NOT NULL,
        number INTEGER NOT NULL,
        about TEXT NOT NULL,
        checksum TEXT NOT NULL,
        block INTEGER NOT NULL,
        position BIGINT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('open', 'closed')),
        mark TEXT NOT NULL,
        barred BIGINT NOT NULL,
        PRIMARY KEY (fleet, number)
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS fleet_decisions (
        fleet TEXT NOT NULL,
        session INTEGER NOT NULL,
        stream TEXT NOT NULL,
        time BIGINT NOT NULL,
        flag INTEGER CHECK (flag IN (0, 1)),
        score BIGINT,
        PRIMARY KEY (fleet, session, stream, time)
    )
    """,
)
_OPENING: Final[Mapping[str, tuple[str, ...]]] = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": ("SET LOCAL synchronous_commit TO on", f"SET LOCAL search_path TO {_ROOM}"),
}
_ASKED: Final = 2_000  # keys looked for at a time; SQLite takes 32,766 variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How the latest process put the fleet down: the ledger's last row then, and what it skipped itself."""

    hash: str = ""
    barred: int = 0


class FleetStore:
    """The decisions of one fleet, locked for this process."""

    def __init__(self, where: str | Path, fleet: str) -> None:
        self._fleet = fleet
        try:
            self._engine, self._place = open_engine(where)
        except LedgerError:
            raise _unusable("the store") from None
        self._lock = self._take_lock(fleet)
        try:
            with self._access() as db:
                for statement in _TABLES:
                    db.exec_driver_sql(statement)
        except BaseException:
            self._lock.close()
            raise

    def newest(self) -> Session | None:
        """The latest session, or None in a new store. Raises SessionClosed when it cannot go on."""
        with self._access() as db:
            found = self._latest(db)
        if found is None:
            return None
        if found["status"] == "closed" or _checksum(found["about"]) != found["checksum"]:
            raise self.close_session("what it must remember is damaged or was given up")
        return Session(
            number=found["number"],
            about=json.loads(found["about"]),
            secret=(),
            block=found["block"],
            position=found["position"],
        )

    def begin(self, about: dict[str, Any], secret: tuple[int, ...]) -> Session:
        """Start a session that is paid for; it is on disk when this returns. A fleet has no secret."""
        assert not secret
        words = canonical(about)
        with self._access() as db:
            before = self._latest(db)
            number = 1 if before is None else before["number"] + 1
            self._run(db, "UPDATE fleet_sessions SET status = 'closed' WHERE fleet = :fleet")
            self._run(
                db,
                "INSERT INTO fleet_sessions VALUES (:fleet, :number, :about, :checksum, 0, 0, 'open', '', 0)",
                number=number,
                about=words,
                checksum=_checksum(words),
            )
        return Session(number=number, about=about, secret=())

    def close_session(self, why: str) -> SessionClosed:
        """Close the latest session for good; gives the error to raise."""
        with self._access() as db:
            self._run(db, "UPDATE fleet_sessions SET status = 'closed' WHERE fleet = :fleet")
        return SessionClosed(
            f"{self._place}: {why}. Going on could tell more than was paid for, so the session is closed. "
            "Start a new one, which is paid for (renew=True, --renew)."
        )

    def position_of(self, session: Session) -> int:
        """The greatest time of a session that is stored as decided, whether or not the answer to COMMIT arrived."""
        asked = "SELECT position FROM fleet_sessions WHERE fleet = :fleet AND number = :number"
        with self._access() as db:
            return int(self._run(db, asked, number=session.number).scalar_one())

    def mark_of(self, session: Session) -> Mark:
        """How the fleet was put down last."""
        with self._access() as db:
            found = self._latest(db)
        if found is None or found["number"] != session.number:
            return Mark()
        return Mark(hash=found["mark"], barred=found["barred"])

    def mark(self, session: Session, mark: Mark) -> None:
        """Say that the store knows all that was told up to a row of the ledger, except what is barred."""
        with self._access() as db:
            self._run(
                db,
                "UPDATE fleet_sessions SET mark = :mark, barred = :barred WHERE fleet = :fleet AND number = :number",
                mark=mark.hash,
                barred=mark.barred,
                number=session.number,
            )

    def latest_times(self, session: Session) -> dict[str, int]:
        """The greatest time of each stream that was decided."""
        asked = (
            "SELECT stream, max(time) AS newest FROM fleet_decisions "
            "WHERE fleet = :fleet AND session = :session GROUP BY stream"
        )
        with self._access() as db:
            return {row.stream: row.newest for row in self._run(db, asked, session=session.number)}

    def recall(self, session: Session, keys: Sequence[Key]) -> dict[Key, Row]:
        """The decisions about these that were kept."""
        found: dict[Key, Row] = {}
        with self._access() as db:
            for start in range(0, len(keys), _ASKED):
                part = keys[start : start + _ASKED]
                places = ", ".join(f"(:s{place}, CAST(:t{place} AS BIGINT))" for place in range(len(part)))
                named: dict[str, Any] = {f"s{place}": stream for place, (stream, _) in enumerate(part)}
                named |= {f"t{place}": time for place, (_, time) in enumerate(part)}
                rows = self._run(
                    db,
                    f"WITH asked (stream, time) AS (VALUES {places}) "  # noqa: S608 - names of variables alone
                    "SELECT d.stream, d.time, d.flag, d.score FROM fleet_decisions d JOIN asked "
                    "ON d.stream = asked.stream AND d.time = asked.time "
                    "WHERE d.fleet = :fleet AND d.session = :session",
                    session=session.number,
                    **named,
                )
                found |= {(row.stream, row.time): (row.flag, row.score) for row in rows}
        return found

    @contextmanager
    def keep(self, session: Session, kept: dict[Key, Row]) -> Iterator[None]:
        """A transaction in which decisions are made: what stands in `kept` at its end is on disk when it has ended, and
        how far the fleet has come with it; or nothing.
        """
        with self._access() as db:
            yield
            rows = [
                {
                    "fleet": self._fleet,
                    "session": session.number,
                    "stream": key[0],
                    "time": key[1],
                    "flag": f,
                    "score": s,
                }
                for key, (f, s) in kept.items()
            ]
            if rows:
                db.execute(
                    sa.text("INSERT INTO fleet_decisions VALUES (:fleet, :session, :stream, :time, :flag, :score)"),
                    rows,
                )
            self._run(
                db,
                "UPDATE fleet_sessions SET block = :block, "
                "position = CASE WHEN position > :position THEN position ELSE :position END "
                "WHERE fleet = :fleet AND number = :number",
                block=session.block,
                position=session.position,
                number=session.number,
            )

    def close(self) -> None:
        if not isinstance(self._lock, FileIO):
            with suppress(sa.exc.SQLAlchemyError):  # PostgreSQL ends a closed session later, and its locks with it
                self._lock.exec_driver_sql("SELECT pg_advisory_unlock_all()")
        self._lock.close()
        self._engine.dispose()

    def _latest(self, db: sa.Connection) -> dict[str, Any] | None:
        asked = "SELECT * FROM fleet_sessions WHERE fleet = :fleet ORDER BY number DESC LIMIT 1"
        found = self._run(db, asked).mappings().one_or_none()
        return None if found is None else dict(found)

    def _run(self, db: sa.Connection, statement: str, **values: Any) -> sa.CursorResult[Any]:
        return db.execute(sa.text(statement), {"fleet": self._fleet, **values})

    @contextmanager
    def _access(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as db:
                for statement in _OPENING[db.dialect.name]:
                    db.exec_driver_sql(statement)
                yield db
        except sa.exc.SQLAlchemyError:
            raise StateUnreachable(
                f"{self._place}: it cannot be reached or written at the moment, or holds something else. A fleet tells "
                "nothing that is not kept. Mend that, then open the fleet again: it goes on, and skips what it "
                "may have looked at meanwhile."
            ) from None

    def _take_lock(self, fleet: str) -> FileIO | sa.Connection:
        if self._engine.dialect.name == "sqlite":
            return lock_file(Path(str(self._engine.url.database)))
        number = int.from_bytes(hashlib.sha256(fleet.encode()).digest()[:8], "big", signed=True)
        db: sa.Connection | None = None
        try:
            db = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            is_ours = db.scalar(sa.text("SELECT pg_try_advisory_lock(:number)"), {"number": number})
            db.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {_ROOM}")
        except sa.exc.SQLAlchemyError:
            if db is not None:
                with suppress(sa.exc.SQLAlchemyError):
                    db.close()
            raise _unusable(self._place) from None
        if not is_ours:
            db.close()
            raise StateError(
                f"{self._place}: another process has this fleet, and one at a time may. Wait until it ends, or give "
                "this one a data set of its own."
            )
        return db


def _checksum(about: str) -> str:
    return hashlib.sha256(about.encode("ascii")).hexdigest()


def _unusable(place: str) -> StateError:
    return StateError(
        f"{place}: it cannot be opened. A fleet is kept in a SQLite file or a PostgreSQL database that wallflower may "
        "write, as a ledger is. Check the path or the URL."
    )
