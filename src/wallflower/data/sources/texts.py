"""Tables written as text: delimited cells and JSON lines, as their `Format` says they are written.

Whether a column of text holds numbers is told by its cells alone: all of them are, or the column is text.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from wallflower.errors import DataError, SourceError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.machine.heavy import pyarrow_csv as _csv_reader
from wallflower.schema.columns import (
    EXACT_BELOW,
    Format,
    Selection,
    arrow_of,
    float_array,
    text_array,
    too_large,
    too_precise,
)

MISSING: Final = ("", "?", "na", "n/a", "nan", "null", "none")
GUESSED: Final = (".csv", ".tsv", ".jsonl", ".ndjson")  # kinds of files that declare no types

_KINDS: Final = ["truth", "number"]  # what cells that are all missing are, first
_BLOCK: Final = 1 << 22  # bytes
_VALUE_LIKE: Final = re.compile(r"[-+.]*\d[-+.,:/ \deETZ]*|\?|n/a|nan|null|true|false|[-+]?inf", re.IGNORECASE)


def name_columns(cells: Sequence[str], where: object, delimiter: str) -> list[str]:
    """The names in the first line of a file; a line that is no header is refused, and not repeated."""
    header = [name.strip() for name in cells]
    if not any(header) or any(_VALUE_LIKE.fullmatch(name) for name in header):
        raise DataError(
            f"{where}: the first line must be a header, and this one is blank or has numbers where names should be. "
            "Add a line with the names of the columns."
        )
    if delimiter and len(header) == 1 and (separator := re.search(r"[;\t,|]", header[0])):
        mark = "tab" if separator[0] == "\t" else separator[0]
        raise DataError(
            f"{where}: its cells are not separated by {delimiter!r}. If they are by {mark!r}, say so "
            f"(--separator {mark!r}, or separator in the schema's file)."
        )
    return header


def reader_of(delimiter: str) -> Callable[[Path, Selection, int], Any]:
    """A reader of lines whose cells are separated by this, unless it is said to be another mark."""

    def reader(path: Path, wanted: Selection, limit: int) -> Any:
        chosen, ways = _ways(path, wanted, delimiter)
        with _open_file(path) as stream:
            text = _csv_reader.read_csv(_MeteredStream(stream, str(path), limit, wanted.form.encoding), **ways)
        return _pa.table({name: type_cells(name, text[name], name in wanted.texts, wanted.form) for name in chosen})

    return reader


def scan_lines(path: Path, wanted: Selection, size: int) -> tuple[list[str], int, Iterator[Any]]:
    """The same some records at a time, however long the file is: its columns, how many records it has, and chunks.

    It is read twice, since the kind of a column is told by all of its cells: once for the kinds and the number of
    records, and once for the cells.
    """
    name = path.name.lower().removesuffix(".gz")
    chosen, ways = _ways(path, wanted, "\t" if name.endswith(".tsv") else ",")
    rows, kinds = 0, {name: _KINDS if name not in wanted.texts else ["text"] for name in chosen}
    for text in _blocks(path, wanted, ways):
        rows += len(text)
        for name, kept in kinds.items():
            kinds[name] = [kind for kind in kept if kind in _kinds_of(text[name], wanted.form)] or ["text"]

    def chunks() -> Iterator[Any]:
        for text in _slices(_blocks(path, wanted, ways), size):
            yield _pa.table({name: _type_as(name, text[name], kinds[name][0], wanted.form) for name in chosen})

    return chosen, rows, chunks()


def _ways(path: Path, wanted: Selection, delimiter: str) -> tuple[list[str], dict[str, Any]]:
    """The columns to read, and how: every cell as text."""
    mark = wanted.form.separator or delimiter
    header = _header(path, mark, wanted.form)
    chosen = wanted.choose(header)
    names = [name if name in chosen else f"\0{position}" for position, name in enumerate(header)]
    return chosen, {
        "read_options": _csv_reader.ReadOptions(column_names=names, skip_rows_after_names=1, block_size=_BLOCK),
        "parse_options": _csv_reader.ParseOptions(
            delimiter=mark, newlines_in_values=True, ignore_empty_lines=len(header) > 1
        ),
        "convert_options": _csv_reader.ConvertOptions(
            column_types=dict.fromkeys(chosen, _pa.string()), strings_can_be_null=False, include_columns=chosen
        ),
    }


def _blocks(path: Path, wanted: Selection, ways: dict[str, Any]) -> Iterator[Any]:
    """The cells of a file as text, block by block."""
    with _open_file(path) as stream:
        metered = _MeteredStream(stream, str(path), sys.maxsize, wanted.form.encoding)
        blocks = _csv_reader.open_csv(metered, **ways)
        for block in blocks:
            if len(block):
                yield _pa.Table.from_batches([block])


def _slices(blocks: Iterator[Any], size: int) -> Iterator[Any]:
    """Return the same records in parts of that many."""
    held: list[Any] = []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) >= size:
            together = _pa.concat_tables(held)
            whole = len(together) // size * size
            for start in range(0, whole, size):
                yield together.slice(start, size)
            held = [together.slice(whole)]
    if sum(map(len, held)):
        yield _pa.concat_tables(held)


def json_lines(path: Path, wanted: Selection, limit: int) -> Any:
    """One object a line; a key that an object lacks is a missing cell."""
    with _open_file(path) as stream:
        content = _MeteredStream(stream, str(path), limit, wanted.form.encoding, quotes=False).readall()
    return _objects(path, content.decode("utf-8-sig").splitlines(), wanted)


def json_parts(path: Path, wanted: Selection) -> Iterator[Any]:
    """The same some records at a time, where every part has all columns that are wanted."""
    with _open_file(path) as stream:
        lines = _MeteredStream(stream, str(path), sys.maxsize, wanted.form.encoding, quotes=False)
        rest, encoding = b"", "utf-8-sig"
        while block := lines.read(_BLOCK):
            whole, mark, rest = (rest + block).rpartition(b"\n")
            if mark:
                yield _objects(path, whole.decode(encoding).splitlines(), wanted)
                encoding = "utf-8"
        if rest.strip():
            yield _objects(path, rest.decode(encoding).splitlines(), wanted)


def _objects(path: Path, lines: Sequence[str], wanted: Selection) -> Any:
    rows = [json.loads(line) for line in lines if line.strip()]
    if not all(isinstance(row, dict) for row in rows):
        raise SourceError(f"{path}: a line is no JSON object. Write each record as one line, {{...}}.")
    header = list(dict.fromkeys(key for row in rows for key in row))
    chosen = wanted.choose(header)
    return _pa.table({name: arrow_of([row.get(name) for row in rows]) for name in chosen})


def type_cells(name: str, column: Any, is_text: bool, form: Format) -> Any:
    """Cells of a text file: numbers when each is a number or missing, else text."""
    return _type_as(name, column, "text" if is_text else (*_kinds_of(column, form), "text")[0], form)


def _words(column: Any) -> Any:
    """Cells in small letters, and none where one is missing."""
    lower = _compute.utf8_lower(_compute.utf8_trim_whitespace(column))
    missing = _compute.is_in(lower, value_set=text_array(MISSING))
    return _compute.if_else(missing, text_array([None])[0], lower)


def _kinds_of(column: Any, form: Format) -> list[str]:
    """Of which kinds all of these cells can be, besides text."""
    words, parsed = _words(column), []
    if _compute.all(_compute.is_in(words, value_set=text_array(["true", "false", None]))).as_py():
        parsed.append("truth")
    try:
        _with_points(words, form).cast(_pa.float64())
    except _pa.ArrowInvalid:
        return parsed
    return [*parsed, "number"]


def _type_as(name: str, column: Any, kind: str, form: Format) -> Any:
    """Cells that are known to be of a kind."""
    if kind == "text":
        return _compute.utf8_trim_whitespace(column)
    words = _words(column)
    if kind == "truth":
        return _compute.equal(words, text_array(["true"])[0])
    words = _with_points(words, form)
    numbers = words.cast(_pa.float64())
    large = _compute.greater_equal(_compute.abs(numbers), float_array(np.array([float(EXACT_BELOW)]))[0])
    whole = _compute.match_substring_regex(words, "^[-+]?[0-9]+$")
    if _compute.any(_compute.and_(large, whole)).as_py():
        raise too_precise(name)
    return numbers


def _with_points(words: Any, form: Format) -> Any:
    """Numbers as a program writes them: without marks between thousands, and with a decimal point."""
    mark, point = form.thousands, form.decimal or "."
    if mark is not None:
        ends = rf"($|{re.escape(point)})"
        grouped = _compute.match_substring_regex(words, rf"^[-+]?[0-9]{{1,3}}({re.escape(mark)}[0-9]{{3}})+{ends}")
        words = _compute.if_else(grouped, _compute.replace_substring(words, mark, ""), words)
    if point == ",":
        words = _compute.replace_substring(words, ".", "\N{MIDDLE DOT}")  # a point is no part of such a number
        words = _compute.replace_substring(words, ",", ".")
    return words


class _MeteredStream(io.RawIOBase):
    """A stream as UTF-8 that refuses to go on past the limit, and to end inside a quoted cell."""

    def __init__(
        self, stream: gzip.GzipFile | IO[bytes], name: str, limit: int, encoding: str | None, *, quotes: bool = True
    ) -> None:
        self._stream, self._name, self._limit = stream, name, limit
        self._seen = self._quotes = 0
        self._decoder = None if encoding is None else codecs.getincrementaldecoder(encoding)()
        self._pairs = quotes
        self._begun = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        block = self._stream.read(size)
        self._seen += len(block)
        if self._seen > self._limit:
            raise too_large(self._name, self._limit)
        if self._decoder is not None:
            block = self._decode(block)
        self._quotes += block.count(b'"')
        if not block and self._pairs and self._quotes % 2:
            raise SourceError(f"{self._name}: a quotation mark is opened and never closed. Write the file again.")
        return block

    def _decode(self, block: bytes) -> bytes:
        """The next of it as UTF-8: an empty block means the end, so it reads on where a character is cut."""
        assert self._decoder is not None
        text = self._decoder.decode(block, final=not block)
        while block and not text:
            block = self._stream.read(1)
            self._seen += len(block)
            text = self._decoder.decode(block, final=not block)
        if text and not self._begun:
            self._begun, text = True, text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
        return text.encode("utf-8")

    def readall(self) -> bytes:
        parts = []
        while part := self.read(2**20):
            parts.append(part)
        return b"".join(parts)


def _open_file(path: Path) -> gzip.GzipFile | IO[bytes]:
    return gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb")


def _header(path: Path, delimiter: str, form: Format) -> list[str]:
    with _open_file(path) as stream:
        start = stream.read(4096)
    if form.encoding is None and (b"\0" in start or start[:2] in (b"\xff\xfe", b"\xfe\xff")):
        raise SourceError(
            f"{path}: is not UTF-8 text (UTF-16, or not text at all). Say how it is written (--encoding utf-16), or "
            "save it as CSV in UTF-8."
        )
    with io.TextIOWrapper(_open_file(path), encoding=form.encoding or "utf-8-sig", newline="") as text:
        lines = csv.reader(text, delimiter=delimiter)
        cells = next(lines, [])
        first = next(lines, None)
    if cells:
        cells[0] = cells[0].removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
    header = name_columns(cells, path, delimiter)
    if first is None:
        raise DataError(f"{path}: has a header and no records. Check how it was written.")
    return header


def not_open(path: Path, error: BaseException) -> SourceError:
    """The refusal of a file that is not there, or that may not be read."""
    missing = isinstance(error, FileNotFoundError)
    why = "there is no such file" if missing else "the file cannot be opened"
    return SourceError(f"{path}: {why}. Check the path" + ("." if missing else " and who may read it."))


def not_readable(path: Path, error: BaseException) -> SourceError:
    """The refusal of a file that its reader stumbled over, without what the reader said."""
    if isinstance(error, PermissionError):
        return not_open(path, error)
    words, advice = next(
        ((words, advice) for matches, words, advice in _FAULTS if matches(error)),
        ("the file is damaged or is not what its name says", "Write it again"),
    )
    return SourceError(f"{path}: {words}. {advice}; the reader's own message is withheld, it may quote records.")


_FAULTS: Final[tuple[tuple[Callable[[BaseException], bool], str, str], ...]] = (
    (
        lambda e: isinstance(e, UnicodeError) or "UTF8" in str(e),
        "the text is not UTF-8, or not what its encoding was said to be",
        "Say how it is written (--encoding latin-1, or encoding in the schema's file), or write it again",
    ),
    (
        lambda e: isinstance(e, (EOFError, zlib.error, gzip.BadGzipFile)),
        "the compressed file is cut short or damaged",
        "Write it again",
    ),
    (
        lambda e: re.search(r"CSV parse error: (Row #\d+: )?Expected", str(e)) is not None,  # the row: with one thread
        "not every line has as many cells as the header",
        "Write it again, or say what separates its cells (--separator)",
    ),
    (lambda e: isinstance(e, json.JSONDecodeError), "a line is no JSON", "Write each record as one line, {...}"),
)
