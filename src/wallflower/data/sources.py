"""Where tables come from: files, databases and frames, read into Arrow."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.columns import (
    EXACT_BELOW,
    LIMIT_VARIABLE,
    Selection,
    SourceTable,
    arrow_of,
    call_or_refuse,
    float_array,
    list_names,
    text_array,
    too_large,
    too_precise,
)
from wallflower.data.databases import ask
from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.lazy import Lazy

if TYPE_CHECKING:
    import polars.exceptions as _polars_errors
    import pyarrow as _pa
    import pyarrow.compute as _compute
    import pyarrow.csv as _csv_reader
    import pyarrow.parquet as _parquet_reader
else:
    _polars_errors = Lazy("polars.exceptions")
    _pa = Lazy("pyarrow")
    _compute = Lazy("pyarrow.compute")
    _csv_reader = Lazy("pyarrow.csv")
    _parquet_reader = Lazy("pyarrow.parquet")

MISSING: Final = ("", "?", "na", "n/a", "nan", "null", "none")

_DEFAULT_LIMIT: Final = 4 * 2**30
_VALUE_LIKE: Final = re.compile(r"[-+.]*\d[-+.,:/ \deETZ]*|\?|n/a|nan|null|true|false|[-+]?inf", re.IGNORECASE)


def read(source: object, wanted: Selection, *, limit_bytes: int | None = None) -> SourceTable:
    """The columns that are wanted, from whatever `source` is."""
    limit = _limit(limit_bytes)
    match source:
        case str() if "://" in source:
            return ask(source, wanted, limit)
        case str() | os.PathLike():
            return _file(Path(source), wanted, limit)
    reader = next((reader for mark, reader in _OBJECTS if hasattr(source, mark)), None)
    if reader is None:
        raise ParameterError(
            f"a {type(source).__name__} is not a source; wallflower reads paths, database URLs, Arrow, pandas and "
            "polars tables, and 2-D arrays. Turn it into one of these."
        )
    return SourceTable(table=call_or_refuse(lambda: reader(source, wanted), lambda _: _not_a_table(source)))


def matrix(array: Any) -> NDArray[np.float64]:
    """A 2-D array of numbers, as float64."""
    if np.ma.is_masked(array):
        raise DataError("the array has masked cells, and every record needs every number. Fill them with a constant.")
    shape = DataError(
        "the array is not a 2-D array of numbers (one row a record, one column a measurement). "
        "Reshape it, or pass a frame with named columns."
    )
    found = call_or_refuse(lambda: np.asarray(array), lambda _: shape)
    if found.ndim != 2 or found.shape[1] == 0 or found.dtype.kind not in "biuf":
        raise shape
    values = found.astype(np.float64)
    if found.dtype.kind in "iu" and bool((np.abs(values) >= EXACT_BELOW).any()):
        raise too_precise()
    return values


def number_columns(count: int) -> tuple[str, ...]:
    """Names for columns that have none: x1, x2, …"""
    return tuple(f"x{position}" for position in range(1, count + 1))


def name_columns(cells: Sequence[str], where: object, delimiter: str) -> list[str]:
    """The names in the first line of a text file; a line that is no header is refused, and not repeated."""
    header = [name.strip() for name in cells]
    if not any(header) or any(_VALUE_LIKE.fullmatch(name) for name in header):
        raise DataError(
            f"{where}: the first line must be a header, and this one is blank or has numbers where names should be. "
            "Add a line with the names of the columns."
        )
    if len(header) == 1 and re.search(r"[;\t,|]", header[0]):
        raise DataError(
            f"{where}: its cells are not separated by {delimiter!r}. Save it with commas (.csv) or tabs (.tsv)."
        )
    return header


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
    parts = call_or_refuse(lambda: _parts(path, limit), lambda error: _unopened(path, error))
    suffix = ".parquet" if path.is_dir() else _suffix(path)
    tables = [_part(part, suffix, wanted, limit) for part in parts]
    together = call_or_refuse(
        lambda: _pa.concat_tables(tables),
        lambda _: SourceError(f"{path}: its files differ in the types of their columns. Write them with one schema."),
    )
    return SourceTable(table=together, stem=path.stem if path.is_dir() else path.name[: -len(suffix)])


def _suffix(path: Path) -> str:
    for suffix in _READERS:
        if path.name.lower().endswith(suffix):
            return suffix
    raise SourceError(
        f"{path}: the kind of file is told by its name, which ends in one of {list_names(_READERS)}. "
        "Rename or convert it."
    )


def _part(path: Path, suffix: str, wanted: Selection, limit: int) -> Any:
    return call_or_refuse(lambda: _READERS[suffix](path, wanted, limit), lambda error: _unreadable(path, error))


def _parts(path: Path, limit: int) -> list[Path]:
    parts = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
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


def _unopened(path: Path, error: BaseException) -> SourceError:
    missing = isinstance(error, FileNotFoundError)
    why = "there is no such file" if missing else "the file cannot be opened"
    return SourceError(f"{path}: {why}. Check the path" + ("." if missing else " and who may read it."))


def _unreadable(path: Path, error: BaseException) -> SourceError:
    if isinstance(error, PermissionError):
        return _unopened(path, error)
    words = next((words for told, words in _FAULTS if told(error)), "the file is damaged or is not what its name says")
    return SourceError(f"{path}: {words}. Write it again; the reader's own message is withheld, it may quote records.")


_FAULTS: Final[tuple[tuple[Callable[[BaseException], bool], str], ...]] = (
    (lambda e: isinstance(e, UnicodeError) or "UTF8" in str(e), "the text is not UTF-8"),
    (lambda e: isinstance(e, (EOFError, zlib.error, gzip.BadGzipFile)), "the compressed file is cut short or damaged"),
    (lambda e: "CSV parse error: Expected" in str(e), "not every line has as many cells as the header"),
)


class _Metered(io.RawIOBase):
    """A stream that refuses to go on past the limit, and to end inside a quoted cell."""

    def __init__(self, stream: gzip.GzipFile | IO[bytes], name: str, limit: int) -> None:
        self._stream, self._name, self._limit = stream, name, limit
        self._seen = self._quotes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(size)
        self._seen += len(block)
        self._quotes += block.count(b'"')
        if self._seen > self._limit:
            raise too_large(self._name, self._limit)
        if not block and self._quotes % 2:
            raise SourceError(f"{self._name}: a quotation mark is opened and never closed. Write the file again.")
        return block


def _opened(path: Path) -> gzip.GzipFile | IO[bytes]:
    return gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")


def _delimited(delimiter: str) -> Callable[[Path, Selection, int], Any]:
    def reader(path: Path, wanted: Selection, limit: int) -> Any:
        header = _header(path, delimiter)
        chosen = wanted.choose(header)
        with _opened(path) as stream:
            text = _csv_reader.read_csv(
                _Metered(stream, str(path), limit),
                read_options=_csv_reader.ReadOptions(column_names=_distinct(header, chosen), skip_rows_after_names=1),
                parse_options=_csv_reader.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(header) > 1
                ),
                convert_options=_csv_reader.ConvertOptions(
                    column_types=dict.fromkeys(chosen, _pa.string()), strings_can_be_null=False, include_columns=chosen
                ),
            )
        return _pa.table({name: _typed(name, text[name], name in wanted.labels) for name in chosen})

    return reader


def _distinct(header: Sequence[str], chosen: Sequence[str]) -> list[str]:
    return [name if name in chosen else f"\0{position}" for position, name in enumerate(header)]


def _header(path: Path, delimiter: str) -> list[str]:
    with _opened(path) as stream:
        start = stream.read(4096)
    if b"\0" in start or start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError(f"{path}: is not UTF-8 text (UTF-16, or not text at all). Save it as CSV in UTF-8.")
    with io.TextIOWrapper(_opened(path), encoding="utf-8-sig", newline="") as text:
        lines = csv.reader(text, delimiter=delimiter)
        header, first = name_columns(next(lines, []), path, delimiter), next(lines, None)
    if first is None:
        raise DataError(f"{path}: has a header and no records. Check how it was written.")
    return header


def _typed(name: str, column: Any, is_label: bool) -> Any:
    """Cells of a text file: numbers when each is a number or missing, else text."""
    text = _compute.utf8_trim_whitespace(column)
    if is_label:
        return text
    lower = _compute.utf8_lower(text)
    missing = _compute.is_in(lower, value_set=text_array(MISSING))
    words = _compute.if_else(missing, text_array([None])[0], lower)
    if _compute.all(_compute.is_in(words, value_set=text_array(["true", "false", None]))).as_py():
        return _compute.equal(words, text_array(["true"])[0])
    try:
        numbers = words.cast(_pa.float64())
    except _pa.ArrowInvalid:
        return text
    large = _compute.greater_equal(_compute.abs(numbers), float_array(np.array([float(EXACT_BELOW)]))[0])
    whole = _compute.match_substring_regex(words, "^[-+]?[0-9]+$")
    if _compute.any(_compute.and_(large, whole)).as_py():
        raise too_precise(name)
    return numbers


def _parquet(path: Path, wanted: Selection, _: int) -> Any:
    with _parquet_reader.ParquetFile(path) as file:
        chosen = wanted.choose(file.schema_arrow.names)
        return file.read(columns=chosen).select(chosen)


def _arrow_file(path: Path, wanted: Selection, _: int) -> Any:
    with _pa.OSFile(str(path)) as stream:
        is_file = stream.read(6) == b"ARROW1"
        stream.seek(0)
        with (_pa.ipc.open_file if is_file else _pa.ipc.open_stream)(stream) as reader:
            return wanted.take(reader.read_all())


_READERS: Final[Mapping[str, Callable[[Path, Selection, int], Any]]] = {
    ".csv": _delimited(","),
    ".csv.gz": _delimited(","),
    ".tsv": _delimited("\t"),
    ".tsv.gz": _delimited("\t"),
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
