"""Databases as sources: DuckDB, SQLite and PostgreSQL, each opened for reading only and asked one query.

The query is the steward's, and the connection may do nothing but answer it: no other file, no second statement, no
setting. What a driver says when it fails is withheld, since it may quote a record or a password.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

from wallflower.errors import ParameterError, SourceError
from wallflower.machine.heavy import duckdb as _duck
from wallflower.machine.heavy import psycopg as _psycopg
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.schema.columns import Selection, SourceTable, arrow_of, call_or_refuse, list_names, too_large

T = TypeVar("T")

_ANSWER: Final = "the answer of the query"
_BYTES_PER_FETCHED_CELL: Final = 64
_URL: Final = re.compile(r"(?P<scheme>\w+)(\+\w+)?://(?P<place>.*?)[?&](?P<key>sql|table)=(?P<text>.*)", re.DOTALL)
_TABLE: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_SQLITE_MAY: Final = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_DUCKDB_MAY: Final[Any] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


def ask(url: str, wanted: Selection, limit: int) -> SourceTable:
    """What the database at this URL answers to its ?table= or ?sql=."""
    scheme, location, sql = _parts(url)
    return _ask_or_refuse(scheme, lambda: _DATABASES[scheme][0](location, sql, wanted, limit))


@dataclass(frozen=True, slots=True)
class Scan:
    """An answer that is fetched in parts: its columns, how many records it has, what it is called, and the parts, in
    which only columns that are wanted are looked up. The caller closes the database."""

    header: list[str]
    rows: int
    stem: str | None
    parts: Iterator[Callable[[int], Any]]


def scan(url: str, wanted: Selection, size: int) -> tuple[list[str], int, str | None, Iterator[Any]]:
    """The same, some records at a time: columns, number of records, what it is called, and chunks."""
    scheme, location, sql = _parts(url)
    with ExitStack() as opened:
        scan = _ask_or_refuse(scheme, lambda: _SCANS[scheme](opened, location, sql, size))
        chosen = [(name, scan.header.index(name)) for name in wanted.choose(scan.header)]
        held = opened.pop_all()  # from here on it is open until all is read

    def chunks() -> Iterator[Any]:
        with held:
            while (part := _ask_or_refuse(scheme, lambda: next(scan.parts, None))) is not None:
                yield _pa.table({name: part(position) for name, position in chosen})

    return [name for name, _ in chosen], scan.rows, scan.stem, chunks()


def _scan_duckdb(opened: ExitStack, place: str, sql: str, size: int) -> Scan:
    if place == "/:memory:":
        raise SourceError("duckdb: an engine reads a database in a file, and this one has none. Name the file.")
    path = _local(place)
    database = opened.enter_context(_duck.connect(str(path), read_only=True, config=_DUCKDB_MAY))
    _require_query(database, sql)
    ((rows,),) = database.sql(_count(sql)).fetchall()
    reader = database.sql(sql).to_arrow_reader(size)
    return Scan(reader.schema.names, int(rows), path.stem, (batch.column for batch in reader))


def _scan_sqlite(opened: ExitStack, place: str, sql: str, size: int) -> Scan:
    path = _local(place)
    database = _open_sqlite(opened, path)
    database.execute("BEGIN")  # both queries see the same records
    database.set_authorizer(_sqlite_may)
    ((rows,),) = database.execute(_count(sql)).fetchall()
    cursor = database.execute(sql)
    return Scan([item[0] for item in cursor.description], int(rows), path.stem, _fetches(cursor, size))


def _scan_postgresql(opened: ExitStack, place: str, sql: str, size: int) -> Scan:
    database = _open_postgresql(opened, place)
    cursor = opened.enter_context(database.cursor(name="wallflower", scrollable=True))
    cursor.execute(sql)
    moved = database.execute("MOVE FORWARD ALL IN wallflower").statusmessage  # the query is answered once, and counted
    database.execute("MOVE ABSOLUTE 0 IN wallflower")
    header = [item[0] for item in cursor.description]
    return Scan(header, int(moved.split()[-1]), database.info.dbname, _fetches(cursor, size))


def _count(sql: str) -> str:
    return f"SELECT count(*) FROM ({sql})"  # noqa: S608 - the steward's own query


def _fetches(cursor: Any, size: int) -> Iterator[Callable[[int], Any]]:
    while rows := cursor.fetchmany(size):
        yield partial(_column, rows)


def _column(rows: Sequence[Sequence[Any]], position: int) -> Any:
    return arrow_of([row[position] for row in rows])


def _parts(url: str) -> tuple[str, str, str]:
    """Which database, where, and the query."""
    parts = _URL.fullmatch(url)
    if parts is None or parts["scheme"] not in _DATABASES:
        raise ParameterError(
            f"the URL is not one wallflower reads; it begins with {list_names(f'{name}://' for name in _DATABASES)} "
            "and ends in ?table=NAME or ?sql=SELECT ... . Write it so, with the query as it stands, "
            "not percent-encoded."
        )
    return parts["scheme"], parts["place"], _sql(parts["key"], parts["text"])


def _ask_or_refuse(scheme: str, call: Callable[[], T]) -> T:
    driver = _DATABASES[scheme][1]
    return call_or_refuse(
        call,
        lambda error: SourceError(
            f"the {scheme} database did not answer the query ({type(error).__name__}). Check the URL and the "
            "query in the database's own shell; its message is withheld here, since it may quote records or a password."
        ),
        driver.Error,
        driver.Warning,
    )


def _sql(key: str, text: str) -> str:
    sql = text.strip().rstrip("; \n")
    if key == "table":
        if not _TABLE.fullmatch(sql):
            raise ParameterError("?table= takes a plain name, such as patients or ward.patients. Else use ?sql=SELECT.")
        names = ".".join(f'"{name}"' for name in sql.split("."))
        return f"SELECT * FROM {names}"  # noqa: S608 - plain names, as checked, within quotes
    if not re.match(r"(select|with)\s", sql, re.IGNORECASE):
        raise ParameterError("?sql= takes one query that begins with SELECT or WITH. The database is only ever read.")
    return sql


def _local(place: str) -> Path:
    path = Path(place.removeprefix("/"))
    if not place.startswith("/") or "?" in place or path == Path():
        raise ParameterError(
            "a database file is written with three slashes (relative, duckdb:///warehouse.db) or four (absolute), "
            "and takes no options but ?table= or ?sql=. Write the URL so."
        )
    if not path.is_file():
        raise SourceError(f"{path}: there is no such database file. Check the path; three slashes are relative.")
    return path


def _duckdb(place: str, sql: str, wanted: Selection, limit: int) -> SourceTable:
    is_file = place != "/:memory:"
    path = _local(place) if is_file else None
    with _duck.connect(str(path or ":memory:"), read_only=is_file, config=_DUCKDB_MAY) as database:
        _require_query(database, sql)
        reader, batches, size = database.sql(sql).to_arrow_reader(100_000), [], 0
        for batch in reader:
            batches.append(batch)
            size += batch.nbytes
            if size > limit:
                raise too_large(_ANSWER, limit)
        table = _pa.Table.from_batches(batches, reader.schema)
        return SourceTable(table=wanted.take(table), stem=path.stem if path else None)


def _require_query(database: Any, sql: str) -> None:
    statements = database.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != _duck.StatementType.SELECT:
        raise ParameterError("?sql= takes one query that begins with SELECT or WITH. Ask the rest separately.")


def _sqlite(place: str, sql: str, wanted: Selection, limit: int) -> SourceTable:
    path = _local(place)
    with ExitStack() as opened:
        database = _open_sqlite(opened, path)
        database.set_authorizer(_sqlite_may)
        table = _fetch(database.execute(sql), wanted, limit)
        return SourceTable(table=table, stem=path.stem, declared=False)  # a cell of any column may have any type


def _open_sqlite(opened: ExitStack, path: Path) -> sqlite3.Connection:
    return opened.enter_context(closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)))


def _sqlite_may(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _SQLITE_MAY else sqlite3.SQLITE_DENY


def _postgresql(place: str, sql: str, wanted: Selection, limit: int) -> SourceTable:
    with ExitStack() as opened:
        database = _open_postgresql(opened, place)
        cursor = opened.enter_context(database.cursor(name="wallflower"))  # it takes one query and nothing else
        cursor.execute(sql)
        return SourceTable(table=_fetch(cursor, wanted, limit), stem=database.info.dbname)


def _open_postgresql(opened: ExitStack, place: str) -> Any:
    database = opened.enter_context(closing(_psycopg.connect(f"postgresql://{place}")))
    database.read_only = True
    return database


def _fetch(cursor: Any, wanted: Selection, limit: int) -> Any:
    header, rows = [item[0] for item in cursor.description], []
    chosen = [(name, header.index(name)) for name in wanted.choose(header)]
    while chunk := cursor.fetchmany(10_000):
        rows += chunk
        if len(rows) * len(header) * _BYTES_PER_FETCHED_CELL > limit:
            raise too_large(_ANSWER, limit)
    return _pa.table({name: _column(rows, position) for name, position in chosen})


_DATABASES: Final[Mapping[str, tuple[Callable[[str, str, Selection, int], SourceTable], Any]]] = {
    "duckdb": (_duckdb, _duck),
    "sqlite": (_sqlite, sqlite3),
    "postgresql": (_postgresql, _psycopg),
    "postgres": (_postgresql, _psycopg),
}
_SCANS: Final[Mapping[str, Callable[[ExitStack, str, str, int], Scan]]] = {
    "duckdb": _scan_duckdb,
    "sqlite": _scan_sqlite,
    "postgresql": _scan_postgresql,
    "postgres": _scan_postgresql,
}
