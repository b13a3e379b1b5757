"""Where tables come from: files, databases and frames, read into Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from wallflower.data.sources.databases import ask
from wallflower.data.sources.texts import (
    GUESSED,
    json_lines,
    name_columns,
    not_open,
    not_readable,
    reader_of,
    type_cells,
)
from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.machine.heavy import polars_exceptions as _polars_errors
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_fs as _fs
from wallflower.machine.heavy import pyarrow_parquet as _parquet_reader
from wallflower.machine.heavy import python_calamine as _calamine
from wallflower.schema import Column, Schema
from wallflower.schema.column import TEXTS
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
    facts = _name_joined_columns(facts)
    texts = text_columns(facts)
    names, without = facts.names, facts.without
    if facts.join is not None:
        texts |= {facts.join.on}
        if names is not None:
            first = [name for name in names if name not in (facts.join.columns or ())]
            names = tuple(dict.fromkeys([facts.join.on, *first]))
    if facts.person is not None:
        texts |= {facts.person.id} if facts.person.time is None else {facts.person.id, facts.person.time}
        if facts.person.rollup is not None:
            names, without = facts.person.source_columns, ()
        elif names is not None:
            names = tuple(dict.fromkeys([facts.person.id, *names]))
    return facts, Selection(names=names, texts=texts, without=without, form=facts.file or Format())


def text_columns(facts: Schema) -> frozenset[str]:
    """Return the columns that are read as they are written: labels, identifiers, times and dates."""
    return frozenset(c.name for c in facts.columns or () if c.kind in TEXTS or c.unit is not None)


def read_second(facts: Schema, columns: tuple[str, ...] | None, *, limit_bytes: int | None = None) -> Any:
    """Return these columns of the second table of a join and its identifiers; None: all columns."""
    join = facts.join
    assert join is not None
    names = None if columns is None else (join.on, *columns)
    is_text = join.table.lower().removesuffix(".gz").endswith((".csv", ".tsv"))
    form = replace(facts.file, sheet=None) if facts.file is not None and is_text else Format()
    wanted = Selection(names=names, texts=text_columns(facts) | {join.on}, form=form)
    return read(join.table, wanted, limit_bytes=limit_bytes).table


def _name_joined_columns(facts: Schema) -> Schema:
    """State which columns a join adds, where the schema leaves it to the header of the second table."""
    join = facts.join
    if join is None:
        return facts
    columns = join.columns
    if columns is None:
        header = read_second(facts, None).column_names
        if join.on not in header:
            raise DataError(
                f"join: the second table has no column {join.on!r}, which identifies people. Correct the schema.",
                column=join.on,
            )
        columns = tuple(name for name in header if name != join.on and (facts.names is None or name in facts.names))
    if facts.columns is not None:
        more = [Column(name) for name in columns if name not in (facts.names or ())]
        facts = replace(facts, columns=(*facts.columns, *more))
    return replace(facts, join=replace(join, columns=columns) if columns else None)


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
    cells = call_or_refuse(lambda: np.asarray(array), lambda _: shape)
    if cells.ndim != 2 or cells.shape[1] == 0 or cells.dtype.kind not in "biuf":
        raise shape
    values = cells.astype(np.float64, copy=False)
    if cells.dtype.kind in "iu" and bool((np.abs(values) >= EXACT_BELOW).any()):
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
    files, folders = sorted(folder.glob("*.parquet")), [folder]
    while not files and folders:
        folders = sorted(subfolder for upper in folders for subfolder in upper.glob("*=*") if subfolder.is_dir())
        files = sorted(part for subfolder in folders for part in subfolder.glob("*.parquet"))
    keys = {tuple(pair_of(name)[0] for name in part.relative_to(folder).parts[:-1]) for part in files}
    if len(keys) > 1:
        raise SourceError(f"{folder}: its folders differ in what they are named by. Name all as key=value, alike.")
    return files


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
        table = file.read(columns=[name for name in chosen if name not in keys])
    rows = table.num_rows
    cells = {name: text_array([keys[name]] * rows) if name in keys else table[name] for name in chosen}
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


WORKBOOKS: Final = (".xlsx", ".xls", ".ods")

_BYTES_PER_CELL: Final = 16


def workbook(path: Path, wanted: Selection, limit: int) -> Any:
    """The columns of one sheet, the first unless another is named; its first line is the header."""
    rows = _rows(path, wanted.form.sheet, limit)
    if not rows:
        raise DataError(f"{path}: the sheet is empty. Name another (--sheet), or check how it was written.")
    header = name_columns([cell if isinstance(cell, str) else str(cell) for cell in rows[0]], path, "")
    if len(rows) == 1:
        raise DataError(f"{path}: has a header and no records. Check how it was written.")
    chosen = [(name, header.index(name)) for name in wanted.choose(header)]
    return _pa.table({name: _column([row[at] for row in rows[1:]], name in wanted.texts) for name, at in chosen})


def _rows(path: Path, sheet: str | None, limit: int) -> Sequence[Sequence[Any]]:
    try:
        opened = _calamine.CalamineWorkbook.from_path(path)
    except ModuleNotFoundError:
        raise SourceError(
            f"{path}: workbooks are read with python-calamine, which is not installed. Install it "
            "(pip install 'wallflower[excel]'), or save the sheet as CSV."
        ) from None
    except _calamine.CalamineError:
        opened = None
    if opened is None:
        raise SourceError(f"{path}: the workbook is damaged, locked or not what its name says. Save it again.")
    names = opened.sheet_names
    if sheet is not None and sheet not in names:
        raise DataError(f"{path}: there is no sheet {sheet!r}; there are {list_names(names)}. Name one of these.")
    opened_sheet = opened.get_sheet_by_name(sheet or names[0])
    if opened_sheet.height * opened_sheet.width * _BYTES_PER_CELL > limit:
        raise too_large(str(path), limit)
    rows: list[list[Any]] = opened_sheet.to_python(skip_empty_area=True)
    return rows


def _column(cells: Sequence[Any], is_text: bool) -> Any:
    """An empty cell is missing, a text is without the blanks around it, and a label 7.0 is a 7."""
    tidy = [(cell.strip() or None) if isinstance(cell, str) else cell for cell in cells]
    if is_text:
        tidy = [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in tidy]
    return arrow_of(tidy)


SCHEMES: Final = ("s3",)
SUFFIX: Final = ".parquet"


@dataclass(frozen=True, slots=True)
class Store:
    """The files of a table in a store, below `root` or that file itself."""

    system: Any
    root: Path
    parts: tuple[Path, ...]

    def open(self, part: Path) -> Any:
        """A file, of which ranges are fetched as they are read."""
        return self.system.open_input_file(str(part))


def is_stored(source: object) -> bool:
    """Whether this is the address of something in a store.

    >>> is_stored("s3://clinic/people"), is_stored("people.parquet"), is_stored("sqlite:///clinic.db?table=people")
    (True, False, False)
    """
    return isinstance(source, str) and source.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def find_parts(address: str) -> Store:
    """Look up the files of a table."""
    if "@" in address or "?" in address:
        raise SourceError(
            "the address of a store holds no key and no setting, since it is written down. Leave out what is before @ "
            "and after ?, and set them in the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL)."
        )
    return call_or_refuse(lambda: _find_store(address), lambda _: _unreachable(address))


def _find_store(address: str) -> Store:
    system, location = _fs.FileSystem.from_uri(address)
    root = Path(location)
    about = system.get_file_info(location)
    if about.type == _fs.FileType.Directory:
        listed = system.get_file_info(_fs.FileSelector(location, recursive=True))
    else:
        listed = [about]
    files = {
        Path(entry.path): entry.size
        for entry in listed
        if entry.type == _fs.FileType.File and entry.path.lower().endswith(SUFFIX)
    }
    parts = _least_deep(root, sorted(files))
    if not parts:
        raise SourceError(f"{address}: there is no .parquet file. Name one, or a folder that has some.")
    if not all(files[part] for part in parts):
        raise SourceError(f"{address}: a file is empty. Check how it was written.")
    return Store(system, root, parts)


def _least_deep(root: Path, files: list[Path]) -> tuple[Path, ...]:
    """The files of the folder, or if it has none those of the folders below that are called key=value: as on a disk."""
    below = {file: file.relative_to(root).parts[:-1] for file in files}
    named = [file for file in files if all("=" in name for name in below[file])]
    depth = min((len(below[file]) for file in named), default=0)
    parts = tuple(file for file in named if len(below[file]) == depth)
    if len({tuple(name.partition("=")[0] for name in below[part]) for part in parts}) > 1:
        raise SourceError(f"{root}: its folders differ in what they are named by. Name all as key=value, alike.")
    return parts


def _unreachable(address: str) -> SourceError:
    return SourceError(
        f"{address}: the store does not answer, or not to you. Check the address, and the keys, region and endpoint in "
        "the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL); its own message is withheld."
    )


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
