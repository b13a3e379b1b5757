"""Tables that are read some records at a time, for an engine to keep: Parquet on disk or in a store, delimited text,
databases, and whatever is in memory already.

The number of records is in the metadata of Parquet files; a database counts them, and a text file is read twice. It is
held to the schema's before a record is kept. Cells are
held to the schema chunk by chunk, with the refusals of a table that is read whole.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Unpack

from numpy.typing import NDArray

from wallflower.data import Table, load
from wallflower.data.cells import fit_cells, is_text, not_numbers, text_bytes
from wallflower.data.joins import SecondTable
from wallflower.data.people import record_schema, roll_up_chunks
from wallflower.data.readings import pivot
from wallflower.data.sources.databases import scan
from wallflower.data.sources.files import (
    find_parts,
    is_stored,
    pair_of,
    parts_of,
    read,
    require_fitting,
    select,
    suffix_of,
)
from wallflower.data.sources.texts import json_parts, not_open, not_readable, scan_lines, type_cells
from wallflower.data.tiled_table import TiledTable
from wallflower.engines.engine import Cells, Engine, Source
from wallflower.engines.local import LocalEngine
from wallflower.engines.spark.engine import connect, is_frame
from wallflower.engines.spark.session import is_master, is_session
from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_parquet as _parquet_reader
from wallflower.names import nearest_name
from wallflower.schema import Column, Schema, WayToRead
from wallflower.schema.columns import Selection, call_or_refuse, list_names, numbers_of, text_array
from wallflower.schema.schema import bounds_rows, require_rows

ENGINES: Final = ("memory", "tiles")
_OBJECTS: Final = (".jsonl", ".ndjson")
CHUNK: Final = 1 << 17  # records
MEMORY: Final = "WALLFLOWER_MEMORY"
ROW_BYTES, CELL_BYTES = 200, 40  # what a question takes in memory, for each record and for each of its cells


@dataclass(frozen=True, slots=True)
class Scan:
    """A source that is read in parts: which columns, how many records, the chunks as Arrow tables, and whether it has
    an order of its own."""

    columns: tuple[str, ...]
    rows: int
    stem: str | None
    chunks: Iterator[Any]
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Gauge:
    """Holds chunks of a table to its schema, here or wherever an engine reads them; `keys` are columns of text that the
    names of folders state."""

    facts: Schema
    is_stated: bool
    wanted: Selection
    keys: frozenset[str]

    def __call__(self, chunk: Any) -> Cells:
        """The cells of a chunk: numbers as they came, labels as codes, other texts as bytes."""
        columns = self.facts.columns or ()
        cells = {column.name: self._type_keys(column.name, chunk[column.name]) for column in columns}
        numbers = [column for column in columns if column.name in self.facts.numbers]
        text = [c.name for c in numbers if c.unit is None and is_text(cells[c.name].type)]
        if text:
            raise not_numbers(text, is_public=self.is_stated or len(text) < len(columns))
        fitted = [fit_cells(cells[column.name], column, self.facts.clip) for column in columns]
        return [_array(column_cells, column) for column, column_cells in zip(columns, fitted, strict=True)]

    def _type_keys(self, name: str, cells: Any) -> Any:
        return type_cells(name, cells, name in self.wanted.texts, self.wanted.form) if name in self.keys else cells


def keep(
    source: object,
    engine: Engine,
    *,
    schema: Schema | None = None,
    name: str | None = None,
    **written: Unpack[WayToRead],
) -> TiledTable:
    """Let an engine keep a table, held to its public schema."""
    facts, wanted = select((schema or Schema()).but_read(written))
    second = None if facts.join is None else SecondTable.read(facts)
    engine_source = engine.find(source)
    if engine_source is not None and (facts.person is not None or second is not None):
        scan, engine_source = _brought_scan(engine_source, wanted), None
    else:
        scan = scan_of(source, wanted) if engine_source is None else _engine_scan(engine_source, wanted)
    facts = facts if facts.person is not None and facts.person.rollup is not None else record_schema(facts)
    stem = scan.stem and (nearest_name(scan.stem) or scan.stem)
    called = name or facts.name or stem or "unnamed"
    if facts.person is not None and facts.person.time is not None:
        return _keep_readings(scan, engine, facts, called)
    if facts.person is not None and facts.person.rollup is not None:
        return _keep_people(scan, engine, facts, called, second)
    if second is not None:
        scan = replace(scan, columns=second.joined_names(scan.columns), chunks=map(second.join, scan.chunks))
    if scan.rows < 2:
        raise DataError(f"{called}: fewer than two records, and one record has no neighbours. Load more of them.")
    require_rows(facts, scan.rows, called)
    stated = facts.columns is not None
    facts = facts.only(scan.columns)
    fit = Gauge(facts, stated, wanted, frozenset() if engine_source is None else engine_source.keys)
    if engine_source is None:
        sheet = engine.keep("reading the data", map(fit, scan.chunks), math.ceil(scan.rows / CHUNK))
    else:
        sheet = engine_source.keep("reading the data", scan.columns, fit)
    if sheet.n != scan.rows:
        raise SourceError(f"{called}: the source has another number of records than it says. Check how it was written.")
    sheet.ordered = sheet.ordered and scan.ordered
    return TiledTable(sheet=sheet, schema=facts, name=called, engine=engine.name)


def _keep_people(
    scan: Scan, engine: Engine, facts: Schema, called: str, second: SecondTable | None = None
) -> TiledTable:
    """Let an engine keep one record per person; rows are brought together by this process.  (Y1)"""
    records = record_schema(facts)
    chunks = roll_up_chunks(scan.chunks, facts, rows=scan.rows, ordered=scan.ordered)
    chunks = chunks if second is None else map(second.join, chunks)
    fit = Gauge(records, True, Selection(), frozenset())
    sheet = engine.keep("bringing the rows of each person together", map(fit, chunks), math.ceil(scan.rows / CHUNK))
    if sheet.n < 2:
        raise DataError(f"{called}: fewer than two people, and one has no neighbours. Load more of them.")
    require_rows(facts, sheet.n, called)
    sheet.ordered = False
    return TiledTable(sheet=sheet, schema=records, name=called, engine=engine.name)


def _keep_readings(scan: Scan, engine: Engine, facts: Schema, called: str) -> TiledTable:
    """Let an engine keep one record for each time; readings are brought together in this process.  (Y4)"""
    table, facts = pivot(_pa.concat_tables(scan.chunks), facts, ordered=scan.ordered)
    fit = Gauge(facts, True, Selection(), frozenset())
    words, parts = "bringing the readings of each time together", math.ceil(table.num_rows / CHUNK)
    if table.num_rows < 2:
        raise DataError(f"{called}: fewer than two times, and one has no neighbours. Load more of them.")
    require_rows(facts, table.num_rows, called)
    return TiledTable(
        sheet=engine.keep(words, map(fit, _slices(table)), parts), schema=facts, name=called, engine=engine.name
    )


def read_parts(source: object, schema: Schema) -> Iterator[Cells]:
    """The cells of the columns that a schema names, some records at a time, held to it."""
    facts, wanted = select(schema)
    is_scanned = _is_parquet(source) or _is_delimited(source) or (isinstance(source, str) and "://" in source)
    if is_scanned:
        chunks = scan_of(source, wanted).chunks
    elif isinstance(source, str | os.PathLike) and Path(source).name.lower().removesuffix(".gz").endswith(_OBJECTS):
        chunks = _objects(Path(source), wanted)
    else:
        chunks = _slices(read(source, wanted).table)
    yield from map(Gauge(facts, True, wanted, frozenset()), chunks)


def _objects(path: Path, wanted: Selection) -> Iterator[Any]:
    """Objects, one a line, some at a time."""
    call_or_refuse(lambda: parts_of(path, sys.maxsize), lambda error: not_open(path, error))
    require_fitting(path, suffix_of(path), wanted.form)
    parts = json_parts(path, wanted)
    while (part := call_or_refuse(lambda: next(parts, None), lambda error: not_readable(path, error))) is not None:
        yield part


def _engine_scan(found: Source, wanted: Selection) -> Scan:
    if wanted.form.stated_parts:
        require_fitting(Path(found.stem or ""), ".parquet", wanted.form)
    return Scan(tuple(wanted.choose(found.columns)), found.rows, found.stem, iter(()))


def _brought_scan(found: Source, wanted: Selection) -> Scan:
    """A table that an engine reads, brought to this process, which brings the rows of people together."""
    scan = _engine_scan(found, wanted)

    def type_keys(table: Any) -> Any:
        return _pa.table({name: _type_key(name, table[name], found, wanted) for name in table.column_names})

    chunks = map(type_keys, found.chunks(scan.columns))
    return replace(scan, chunks=chunks, ordered=False)


def _type_key(name: str, cells: Any, found: Source, wanted: Selection) -> Any:
    return type_cells(name, cells, name in wanted.texts, wanted.form) if name in found.keys else cells


def load_into(
    source: object,
    engine: object,
    *,
    schema: Schema | None = None,
    name: str | None = None,
    **written: Unpack[WayToRead],
) -> Table | TiledTable:
    """A table in memory, or kept by an engine: as asked, or as the size of the table suggests."""
    if engine is None and is_frame(source):
        engine = source.sparkSession  # type: ignore[attr-defined]
    if is_stored(source) and engine in (None, "memory"):
        if engine is not None:
            raise SourceError(f"{source}: what is in a store is read part by part. Open it with engine='tiles'.")
        engine = "tiles"
    if engine is None:
        engine = "memory" if fits_memory(source, schema, **written) else "tiles"
    if engine == "memory":
        return load(source, schema=schema, name=name, **written)
    return keep(source, _engine(engine), schema=schema, name=name, **written)


def _engine(engine: object) -> Engine:
    if is_session(engine) or (isinstance(engine, str) and is_master(engine)):
        return connect(engine)
    if not isinstance(engine, str):
        return engine  # type: ignore[return-value]
    if engine not in ENGINES:
        known = f"{list_names(ENGINES)}, and clusters such as spark://host:7077 or local[2,4]"
        raise ParameterError(f"engine: {engine[:40]!r} is not known; there are {known}. Choose one.")
    return LocalEngine()


def fits_memory(source: object, schema: Schema | None, **written: Unpack[WayToRead]) -> bool:
    """Whether a table in Parquet may be held in memory, by its metadata alone; other sources are limited in bytes.

    A bound decides where the number itself is secret: what an engine refuses would tell it.
    """
    if not _is_parquet(source):
        return True
    facts, wanted = select((schema or Schema()).but_read(written))
    scan = scan_of(source, wanted)
    rows = facts.rows if facts.rows is not None and bounds_rows(facts) else scan.rows
    return has_room(rows, len(scan.columns))


def has_room(rows: int, columns: int) -> bool:
    """Return whether a query over that many records and columns may hold them in memory."""
    return rows * (ROW_BYTES + CELL_BYTES * columns) <= _memory()


def scan_of(source: object, wanted: Selection) -> Scan:
    """The source, opened to be read in parts."""
    if _is_parquet(source):
        return _parquet(Path(source), wanted)  # type: ignore[arg-type]
    if is_stored(source):
        return _scan_store(str(source), wanted)
    if isinstance(source, str) and "://" in source:
        columns, rows, stem, chunks = scan(source, wanted, CHUNK)
        return Scan(tuple(columns), rows, stem, chunks, ordered=False)
    if _is_delimited(source):
        return _scan_text(Path(source), wanted)  # type: ignore[arg-type]
    if isinstance(source, str | os.PathLike):
        raise SourceError(
            f"{Path(source).name}: an engine reads Parquet, a file or a directory, CSV, a database, or what is in "
            "memory. Convert it, or open it in memory (engine='memory', --engine memory)."
        )
    table = read(source, wanted).table
    return Scan(tuple(table.column_names), table.num_rows, None, _slices(table))


def _is_parquet(source: object) -> bool:
    if not isinstance(source, str | os.PathLike) or "://" in str(source):
        return False
    return Path(source).is_dir() or Path(source).name.lower().endswith(".parquet")


def _is_delimited(source: object) -> bool:
    if not isinstance(source, str | os.PathLike) or "://" in str(source):
        return False
    return Path(source).name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


def _scan_text(path: Path, wanted: Selection) -> Scan:
    call_or_refuse(lambda: parts_of(path, sys.maxsize), lambda error: not_open(path, error))
    suffix = suffix_of(path)
    require_fitting(path, suffix, wanted.form)

    def refusal(error: BaseException) -> SourceError | DataError:
        return not_readable(path, error)

    columns, rows, chunks = call_or_refuse(lambda: scan_lines(path, wanted, CHUNK), refusal)
    parts = iter(lambda: call_or_refuse(lambda: next(chunks, None), refusal), None)
    return Scan(tuple(columns), rows, path.name[: -len(suffix)], parts)


def _parquet(path: Path, wanted: Selection) -> Scan:
    require_fitting(path, ".parquet", wanted.form)
    parts = call_or_refuse(lambda: parts_of(path, sys.maxsize), lambda error: not_open(path, error))
    stem = path.stem if path.is_dir() else path.name[: -len(".parquet")]
    return _files(Files(path, tuple(parts), lambda part: part), stem, wanted)


def _scan_store(address: str, wanted: Selection) -> Scan:
    store = find_parts(address)
    require_fitting(store.root, ".parquet", wanted.form)
    return _files(Files(store.root, store.parts, store.open), store.root.stem, wanted)


@dataclass(frozen=True, slots=True)
class Files:
    """Files in Parquet that are one table: below which folder, and how each is opened."""

    root: Path
    parts: tuple[Path, ...]
    open: Callable[[Path], Any]

    def reader(self, part: Path) -> Any:
        return _parquet_reader.ParquetFile(self.open(part), pre_buffer=False)

    def refusal(self, error: BaseException) -> SourceError | DataError:
        return not_readable(self.root, error)


def _files(files: Files, stem: str, wanted: Selection) -> Scan:
    heads = call_or_refuse(lambda: [_head(files, part) for part in files.parts], files.refusal)
    keys = [dict(pair_of(name) for name in part.relative_to(files.root).parts[:-1]) for part in files.parts]
    chosen = wanted.choose([*heads[0][0], *keys[0]])
    for names, _ in heads[1:]:
        if not {*chosen} <= {*names, *keys[0]}:
            raise SourceError(f"{files.root}: its files differ in their columns. Write them with one schema.")
    parts = (
        chunk for part, key in zip(files.parts, keys, strict=True) for chunk in _part(files, part, key, chosen, wanted)
    )
    return Scan(tuple(chosen), sum(rows for _, rows in heads), stem, parts, ordered=not any(keys))


def _head(files: Files, part: Path) -> tuple[list[str], int]:
    with files.reader(part) as file:
        return file.schema_arrow.names, file.metadata.num_rows


def _part(files: Files, part: Path, keys: dict[str, str | None], chosen: list[str], wanted: Selection) -> Iterator[Any]:
    """The records of a file; what the names of its folders say, as key=value, are columns of it."""
    with call_or_refuse(lambda: files.reader(part), files.refusal) as file:
        batches = file.iter_batches(batch_size=CHUNK, columns=[name for name in chosen if name not in keys])
        while (batch := call_or_refuse(lambda: next(batches, None), files.refusal)) is not None:
            rows = batch.num_rows
            labels = {name: _partition_cells(name, keys[name], rows, wanted) for name in chosen if name in keys}
            yield _pa.table({name: labels[name] if name in keys else batch[name] for name in chosen})


def _partition_cells(name: str, value: str | None, rows: int, wanted: Selection) -> Any:
    cells = _pa.chunked_array([text_array([value] * rows)])
    return type_cells(name, cells, name in wanted.texts, wanted.form)


def _slices(table: Any) -> Iterator[Any]:
    for start in range(0, table.num_rows, CHUNK):
        yield table.slice(start, CHUNK)


def _array(cells: Any, column: Column) -> NDArray[Any]:
    if column.identifier or column.time:
        return text_bytes(cells, column)
    return numbers_of(cells.indices if column.categories is not None else cells)


def _memory() -> int:
    """How many bytes tables in memory may take: WALLFLOWER_MEMORY, or half of what the machine has."""
    text = os.environ.get(MEMORY)
    if text is None:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    if not text.strip().isdigit() or int(text) < 1:
        raise ParameterError(f"{MEMORY} is {text[:40]!r}; it is a whole number of bytes above zero. Correct it.")
    return int(text)
