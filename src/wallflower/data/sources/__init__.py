"""Where tables come from: files, databases and frames, read into Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from wallflower.data.sources.databases import ask
from wallflower.data.sources.texts import GUESSED, json_lines, not_open, not_readable, reader_of, type_cells
from wallflower.data.sources.workbooks import WORKBOOKS, workbook
from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.machine.lazy import Lazy
from wallflower.schema import Schema
from wallflower.schema.columns import (
    EXACT_BELOW,
    FORMAT,
    LIMIT_VARIABLE,
    Format,
    Selection,
    SourceTable,
    arrow_of,
    call_or_refuse,
    list_names,
    pick,
    text_array,
    too_large,
    too_precise,
)
from wallflower.schema.facts import TEXTS

if TYPE_CHECKING:
    import polars.exceptions as _polars_errors
    import pyarrow as _pa
    import pyarrow.parquet as _parquet_reader
else:
    _polars_errors = Lazy("polars.exceptions")
    _pa = Lazy("pyarrow")
    _parquet_reader = Lazy("pyarrow.parquet")

_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
_DEFAULT_LIMIT: Final = 4 * 2**30


def read(source: object, wanted: Selection, *, limit_bytes: int | None = None) -> SourceTable:
    """The columns that are wanted, from whatever `source` is."""
    limit = _limit(limit_bytes)
    match source:
        case str() if "://" in source:
            return replace(ask(source, wanted, limit), ordered=False)
        case str() | os.PathLike():
            return _file(Path(source), wanted, limit)
    reader = next((reader for mark, reader in _OBJECTS if hasattr(source, mark)), None)
    if reader is None:
        raise ParameterError(
            f"a {type(source).__name__} is not a source; wallflower reads paths, database URLs, Arrow, pandas and "
            "polars tables, and 2-D arrays. Turn it into one of these."
        )
    return SourceTable(table=call_or_refuse(lambda: reader(source, wanted), lambda _: _not_a_table(source)))


def select(facts: Schema) -> tuple[Schema, Selection]:
    """What is public about the columns that are wanted, and how these are asked for."""
    if facts.columns is not None and facts.without:
        kept = [name for name in facts.names or () if name not in pick(facts.without, facts.names or ())]
        if not kept:
            raise DataError("every column is left out, and a question needs one. Leave out fewer of them.")
        facts = facts.only(kept)
    texts = frozenset(c.name for c in facts.columns or () if c.kind in TEXTS or c.unit is not None)
    return facts, Selection(names=facts.names, texts=texts, without=facts.without, form=facts.file or Format())


def matrix(array: Any) -> NDArray[np.float64]:
    """A 2-D array of numbers, as float64: a copy, which nobody else writes to."""
    return view_matrix(array).copy()


def view_matrix(array: Any) -> NDArray[np.float64]:
    """The same, to be read at once: of an array of floats no copy is made."""
    if np.ma.is_masked(array):
        raise DataError("the array has masked cells, and every record needs every number. Fill them with a constant.")
    shape = DataError(
        "the array is not a 2-D array of numbers (one row a record, one column a measurement). "
        "Reshape it, or pass a frame with named columns."
    )
    found = call_or_refuse(lambda: np.asarray(array), lambda _: shape)
    if found.ndim != 2 or found.shape[1] == 0 or found.dtype.kind not in "biuf":
        raise shape
    values = found.astype(np.float64, copy=False)
    if found.dtype.kind in "iu" and bool((np.abs(values) >= EXACT_BELOW).any()):
        raise too_precise()
    return values


def number_columns(count: int) -> tuple[str, ...]:
    """Names for columns that have none: x1, x2, …"""
    return tuple(f"x{position}" for position in range(1, count + 1))


def _limit(limit_bytes: int | None) -> int:
    text = os.environ.get(LIMIT_VARIABLE) if limit_bytes is None else str(limit_bytes)
    if text is None:
        return _DEFAULT_LIMIT
    if not re.fullmatch(r"[1-9]\d{0,17}", text.strip()):
        raise ParameterError(
            f"the limit on bytes (limit_bytes or {LIMIT_VARIABLE}) is {text[:40]!r}; it is a whole number above zero. "
            f"Leave it out for {_DEFAULT_LIMIT}."
        )
    return int(text)


# Files


def _file(path: Path, wanted: Selection, limit: int) -> SourceTable:
    parts = call_or_refuse(lambda: parts_of(path, limit), lambda error: not_open(path, error))
    suffix = ".parquet" if path.is_dir() else suffix_of(path)
    require_fitting(path, suffix, wanted.form)
    is_partitioned = path.is_dir() and any(part.parent != path for part in parts)
    if is_partitioned:
        together = call_or_refuse(
            lambda: _read_partitions(path, parts, wanted), lambda error: not_readable(path, error)
        )
    else:
        together = _concatenate(path, [_part(part, suffix, wanted, limit) for part in parts])
    return SourceTable(
        table=together,
        stem=path.stem if path.is_dir() else path.name[: -len(suffix)],
        declared=not (is_partitioned or suffix.removesuffix(".gz").endswith((*GUESSED, *WORKBOOKS))),
        headed=not suffix.removesuffix(".gz").endswith(GUESSED),
        ordered=not is_partitioned,
    )


def _concatenate(path: Path, tables: Sequence[Any]) -> Any:
    return call_or_refuse(
        lambda: _pa.concat_tables(tables),
        lambda _: SourceError(f"{path}: its files differ in the types of their columns. Write them with one schema."),
    )


def require_fitting(path: Path, suffix: str, form: Format) -> None:
    """Refuse what is said of a file that its kind has no use for, rather than leave it unheard."""
    kind = suffix.removesuffix(".gz")
    known = {".csv": FORMAT[:4], ".tsv": FORMAT[:4], ".jsonl": FORMAT[1:2], ".ndjson": FORMAT[1:2]}
    fitting = known.get(kind, ("sheet",) if kind in WORKBOOKS else ())
    unfit = [name for name in form.stated_parts if name not in fitting]
    if unfit:
        raise ParameterError(
            f"{path}: {list_names(unfit)} says nothing about a file that ends in {suffix}"
            + (f", which takes {list_names(fitting)}" if fitting else "")
            + ". Leave it out."
        )


def partitions(folder: Path) -> list[Path]:
    """The files of a directory, and of those below it that are called key=value; all lie equally deep."""
    found, folders = sorted(folder.glob("*.parquet")), [folder]
    while not found and folders:
        folders = sorted(one for upper in folders for one in upper.glob("*=*") if one.is_dir())
        found = sorted(part for one in folders for part in one.glob("*.parquet"))
    keys = {tuple(pair_of(name)[0] for name in part.relative_to(folder).parts[:-1]) for part in found}
    if len(keys) > 1:
        raise SourceError(f"{folder}: its folders differ in what they are named by. Name all as key=value, alike.")
    return found


def is_readable(path: Path) -> bool:
    """Whether the name of a file is that of a table."""
    return path.name.lower().endswith(tuple(_READERS))


def suffix_of(path: Path) -> str:
    for suffix in _READERS:
        if path.name.lower().endswith(suffix):
            return suffix
    raise SourceError(
        f"{path}: the kind of file is told by its name, which ends in one of {list_names(_READERS)}. "
        "Rename or convert it."
    )


def _part(path: Path, suffix: str, wanted: Selection, limit: int) -> Any:
    return call_or_refuse(lambda: _READERS[suffix](path, wanted, limit), lambda error: not_readable(path, error))


def parts_of(path: Path, limit: int) -> list[Path]:
    """The files of a table, none of them empty, and all together within the limit."""
    parts = partitions(path) if path.is_dir() else [path]
    if not parts:
        raise SourceError(f"{path}: is a directory without .parquet files. Name a file, or a directory that has some.")
    sizes = [part.stat().st_size for part in parts]
    if not all(part.is_file() for part in parts):
        raise SourceError(f"{path}: is not a regular file. Save the table to a file first.")
    if not all(sizes):
        raise SourceError(f"{path}: the file is empty. Check how it was written.")
    if sum(sizes) > limit:
        raise too_large(str(path), limit)
    return parts


def _parquet(path: Path, wanted: Selection, _: int) -> Any:
    with _parquet_reader.ParquetFile(path) as file:
        chosen = wanted.choose(file.schema_arrow.names)
        return file.read(columns=chosen).select(chosen)


def _partition(folder: Path, part: Path, wanted: Selection) -> Any:
    """A file of a partitioned directory: what the names of its folders say, as key=value, are columns of it."""
    keys = dict(pair_of(name) for name in part.relative_to(folder).parts[:-1])
    with _parquet_reader.ParquetFile(part) as file:
        chosen = wanted.choose([*file.schema_arrow.names, *keys])
        found = file.read(columns=[name for name in chosen if name not in keys])
    rows = found.num_rows
    cells = {name: text_array([keys[name]] * rows) if name in keys else found[name] for name in chosen}
    return _pa.table(cells)


def pair_of(name: str) -> tuple[str, str | None]:
    key, _, value = name.partition("=")
    return unquote(key), None if value == _NO_VALUE else unquote(value)


def _read_partitions(folder: Path, parts: Sequence[Path], wanted: Selection) -> Any:
    together = _concatenate(folder, [_partition(folder, part, wanted) for part in parts])
    keys = {pair_of(name)[0] for name in parts[0].relative_to(folder).parts[:-1]}
    columns = {name: together[name] for name in together.column_names}
    return _pa.table({
        name: type_cells(name, cells, name in wanted.texts, wanted.form) if name in keys else cells
        for name, cells in columns.items()
    })  # fmt: skip


def _arrow_file(path: Path, wanted: Selection, _: int) -> Any:
    with _pa.OSFile(str(path)) as stream:
        is_file = stream.read(6) == b"ARROW1"
        stream.seek(0)
        with (_pa.ipc.open_file if is_file else _pa.ipc.open_stream)(stream) as reader:
            return wanted.take(reader.read_all())


_READERS: Final[Mapping[str, Callable[[Path, Selection, int], Any]]] = {
    ".csv": reader_of(","),
    ".csv.gz": reader_of(","),
    ".tsv": reader_of("\t"),
    ".tsv.gz": reader_of("\t"),
    ".jsonl": json_lines,
    ".jsonl.gz": json_lines,
    ".ndjson": json_lines,
    ".ndjson.gz": json_lines,
    ".xlsx": workbook,
    ".xls": workbook,
    ".ods": workbook,
    ".parquet": _parquet,
    ".arrow": _arrow_file,
    ".feather": _arrow_file,
}


# Frames and arrays


def _pandas(frame: Any, wanted: Selection) -> Any:
    header = [str(name) for name in frame.columns]
    return _pa.table({name: arrow_of(frame.iloc[:, header.index(name)]) for name in wanted.choose(header)})


def _arrow(source: Any, wanted: Selection) -> Any:
    return wanted.take(_pa.table(source))


def _polars(frame: Any, wanted: Selection) -> Any:
    return _arrow(call_or_refuse(frame.collect, lambda _: _not_a_table(frame), _polars_errors.PolarsError), wanted)


def _not_a_table(source: object) -> DataError:
    kind = type(source).__name__
    return DataError(f"the {kind} is not a table with one type a column. Give it named columns, each of one type.")


def _array(array: Any, wanted: Selection) -> Any:
    values = matrix(array)
    names = wanted.names or number_columns(values.shape[1])
    if len(names) != values.shape[1]:
        raise DataError(f"the schema has {len(names)} columns and the array another number. Give each column a name.")
    return _pa.table(dict(zip(names, values.T, strict=True)))


_OBJECTS: Final[tuple[tuple[str, Callable[[Any, Selection], Any]], ...]] = (
    ("itertuples", _pandas),
    ("__arrow_c_stream__", _arrow),
    ("__arrow_c_array__", _arrow),
    ("collect_schema", _polars),
    ("__array__", _array),
)
