"""Databases as sources: DuckDB, SQLite and PostgreSQL, each opened for reading only and asked one query.

The query is the steward's, and the connection may do nothing but answer it: no other file, no second statement, no
setting. What a driver says when it fails is withheld, since it may quote a record or a password.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from wallflower.columns import Selection, SourceTable, arrow_of, call_or_refuse, list_names, too_large
from wallflower.errors import ParameterError, SourceError
from wallflower.lazy import Lazy

if TYPE_CHECKING:
    import duckdb as _duck
    import psycopg as _psycopg
    import pyarrow as _pa
else:
    _duck = Lazy("duckdb")
    _psycopg = Lazy("psycopg")
    _pa = Lazy("pyarrow")

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
    scheme, place, sql = _parts(url)
    return _answered(scheme, lambda: _DATABASES[scheme][0](place, sql, wanted, limit))


def scan(url: str, wanted: Selection, size: int) -> tuple[list[str], int, str, Iterator[Any]]:
    """The same of a DuckDB file, some records at a time: columns, number of records, what it is called, and chunks."""
    scheme, place, sql = _parts(url)
    if scheme != "duckdb" or place == "/:memory:":
        raise SourceError(
            f"{scheme}: an engine reads files of DuckDB and of Parquet, not this database. Copy the table to one of "
            "these, or open it in memory (engine='memory', --engine memory)."
        )
    path = _local(place)
    database = _answered(scheme, lambda: _duck.connect(str(path), read_only=True, config=_DUCKDB_MAY))
    try:
        rows, reader = _answered(scheme, lambda: _counted(database, sql, size))
        header = reader.schema.names
        chosen = [(name, header.index(name)) for name in wanted.choose(header)]
    except BaseException:
        database.close()
        raise

    def chunks() -> Iterator[Any]:
        with database:
            while (batch := _answered(scheme, lambda: next(reader, None))) is not None:
                yield _pa.table({name: batch.column(position) for name, position in chosen})

    return [name for name, _ in chosen], rows, path.stem, chunks()


def _counted(database: Any, sql: str, size: int) -> tuple[int, Any]:
    _require_query(database, sql)
    ((rows,),) = database.sql(f"SELECT count(*) FROM ({sql})").fetchall()  # noqa: S608 - the steward's own query
    return int(rows), database.sql(sql).to_arrow_reader(size)


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


def _answered(scheme: str, call: Callable[[], T]) -> T:
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
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as database:
        database.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _SQLITE_MAY else sqlite3.SQLITE_DENY)
        return SourceTable(table=_fetched(database.execute(sql), wanted, limit), stem=path.stem)


def _postgresql(place: str, sql: str, wanted: Selection, limit: int) -> SourceTable:
    with closing(_psycopg.connect(f"postgresql://{place}")) as database:
        database.read_only = True
        with database.cursor(name="wallflower") as cursor:  # a server-side cursor takes one query and nothing else
            cursor.execute(sql)
            return SourceTable(table=_fetched(cursor, wanted, limit), stem=database.info.dbname)


def _fetched(cursor: Any, wanted: Selection, limit: int) -> Any:
    header, rows = [item[0] for item in cursor.description], []
    chosen = [(name, header.index(name)) for name in wanted.choose(header)]
    while chunk := cursor.fetchmany(10_000):
        rows += chunk
        if len(rows) * len(header) * _BYTES_PER_FETCHED_CELL > limit:
            raise too_large(_ANSWER, limit)
    return _pa.table({name: arrow_of([row[position] for row in rows]) for name, position in chosen})


_DATABASES: Final[Mapping[str, tuple[Callable[[str, str, Selection, int], SourceTable], Any]]] = {
    "duckdb": (_duckdb, _duck),
    "sqlite": (_sqlite, sqlite3),
    "postgresql": (_postgresql, _psycopg),
    "postgres": (_postgresql, _psycopg),
}
