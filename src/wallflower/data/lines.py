"""Observations as they come: lines of CSV or JSON from a pipe or a file, or a Parquet file piece by piece.

What has arrived is handed on at once. A cell that is missing or no number is NaN, so that none is refused for what it
is; cells that hold something else than a number, and names that the first line lacks, are counted. A line that is built
wrongly is refused by its number, after those before it were handed on; no message holds a cell.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data.sources.files import number_columns
from wallflower.data.sources.texts import name_columns
from wallflower.errors import DataError, SourceError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.heavy import pyarrow_parquet as _parquet_reader
from wallflower.machine.heavy import pyarrow_types as _types
from wallflower.schema.columns import Selection, call_or_refuse, list_names

Floats = NDArray[np.float64]
_Line = tuple[int, bytes]  # with its number, from 1
_Parse = Callable[[bytes], tuple[list[float], str]]  # the entries of a line, and its time

STDIN: Final = "-"
LONGEST: Final = 2**20  # bytes of a line

_BLOCK: Final = 2**16
_NO_NUMBERS: Final = (np.complexfloating, np.datetime64, np.timedelta64)  # in an array; alone they are none either
_ROWS: Final = 2**13  # of a Parquet file at a time


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Observations that have arrived, and when each was made, if that was asked for."""

    rows: Floats
    times: tuple[str, ...] | None


@dataclass(slots=True)
class Oddities:
    """What was read past in the lines so far: for the sender of the stream, and nobody else.

    unreadable     entries that are there and are not numbers, such as "4,2"; they count as missing
    unknown_names  lines with names that the first line lacks; these names are ignored
    """

    unreadable: int = 0
    unknown_names: int = 0

    def read(self, cell: object) -> float:
        """A cell as a number, NaN if it is none; one that is there and is none is counted."""
        value = number(cell)
        if value != value and not _is_missing(cell):
            self.unreadable += 1
        return value


def _is_missing(cell: object) -> bool:
    """Whether a cell says that nothing was measured, rather than something that cannot be read."""
    if cell is None or isinstance(cell, float):
        return True
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
    return isinstance(text, str) and text.strip().lower() in _MISSING


_MISSING: Final = frozenset(("", "na", "n/a", "nan", "-nan", "null", "none"))


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Observations of these columns, in batches of whatever has arrived, and what was read past in them."""

    columns: tuple[str, ...]
    batches: Iterator[Batch]
    oddities: Oddities = field(default_factory=Oddities)


def stream(source: str, wanted: Selection, *, time: str | None = None) -> Stream:
    """The observations of a file, or of standard input (`-`). Its first line is read now, the rest when asked for.

    `time` is the column of their times, if these are wanted.
    """
    if source.lower().endswith(".parquet"):
        return _parquet(Path(source), wanted, time)
    where = "standard input" if source == STDIN else source
    batches = read_lines(source, where)
    start = next((lines for batch in batches if (lines := _from_first(batch))), None)
    if start is None:
        raise DataError(f"{where}: there is nothing in it. Give it CSV with a header, or JSON lines.")
    start[0] = (start[0][0], start[0][1].removeprefix(codecs.BOM_UTF8))
    rest = chain([start], batches)
    is_json = start[0][1].lstrip()[:1] in (b"{", b"[")
    return _json_lines(start[0], rest, wanted, time) if is_json else _csv_lines(start[0], rest, wanted, where, time)


def number(cell: object) -> float:
    """A cell as a number, NaN if it is none.

    >>> number("2.5"), number(b" 7"), number("seven"), number(None), number(10**400)
    (2.5, 7.0, nan, nan, inf)
    """
    if type(cell) is float:
        return cell
    try:
        if isinstance(cell, np.ndarray):  # `float` would warn of one with axes, and of a masked one
            is_one = cell.size == 1 and not isinstance(cell, np.ma.MaskedArray)
            return number(cell.item()) if is_one else math.nan
        if isinstance(cell, _NO_NUMBERS):
            return math.nan
        return float(cell)  # type: ignore[arg-type]
    except OverflowError:
        return _infinity(cell)
    except Exception:  # noqa: BLE001 - a cell may be of any type, and none raises
        return math.nan


def _infinity(cell: Any) -> float:
    try:
        return math.inf if cell > 0 else -math.inf
    except Exception:  # noqa: BLE001
        return math.nan


# Lines


def read_lines(source: str, where: str) -> Iterator[list[_Line]]:
    """Whole lines, as many as are there; waits only for the first of them."""
    refusal = SourceError(f"{where}: cannot be read. Check the path, who may read it, and whether it is whole.")
    line_number, rest = 0, b""
    with call_or_refuse(lambda: _open_source(source), lambda _: refusal) as file:
        while block := call_or_refuse(lambda: file.read1(_BLOCK), lambda _: refusal):
            *whole, rest = (rest + block).split(b"\n")
            if len(rest) > LONGEST:
                raise DataError(f"line {line_number + len(whole) + 1}: is longer than {LONGEST:,} bytes. Break it.")
            if whole:
                yield list(enumerate(whole, line_number + 1))
            line_number += len(whole)
    if rest:
        yield [(line_number + 1, rest)]


def _open_source(source: str) -> AbstractContextManager[Any]:
    if source == STDIN:
        return nullcontext(sys.stdin.buffer)
    return gzip.open(source) if source.lower().endswith(".gz") else Path(source).open("rb")


def _from_first(batch: list[_Line]) -> list[_Line]:
    """The lines from the first that is not blank."""
    first = next((index for index, (_, line) in enumerate(batch) if line.strip()), len(batch))
    return batch[first:]


class MalformedLine(ValueError):
    """A line that does not have the form of the others; says how, never what is in it."""


def _rows(parse: _Parse, batches: Iterable[list[_Line]], *, timed: bool, blank_counts: bool = False) -> Iterator[Batch]:
    for batch in batches:
        parsed, refusal = [], None
        for line_number, line in batch:
            if not blank_counts and not line.strip():
                continue
            try:
                parsed.append(parse(line))
            except MalformedLine as fault:
                refusal = DataError(f"line {line_number}: {fault}")
                break
        if parsed:
            rows, times = zip(*parsed, strict=True)
            yield Batch(np.array(rows), times if timed else None)
        if refusal is not None:
            raise refusal


def _csv_lines(first: _Line, batches: Iterator[list[_Line]], wanted: Selection, where: str, time: str | None) -> Stream:
    delimiter = "\t" if where.lower().endswith((".tsv", ".tsv.gz")) else ","
    cells = call_or_refuse(lambda: _cells(first[1], delimiter), lambda fault: DataError(f"line {first[0]}: {fault}"))
    header = name_columns(cells, where, delimiter)
    chosen = wanted.choose(header)
    odd = Oddities()
    places, width, mark = [header.index(name) for name in chosen], len(header), delimiter.encode()
    at = None if time is None else header.index(_require_time(time, header))

    def parse(line: bytes) -> tuple[list[float], str]:
        cells = _cells(line, delimiter) if b'"' in line else line.split(mark)
        if len(cells) != width:
            raise MalformedLine(f"every line has as many cells as the header, {width}. Write it again.")
        return [odd.read(cells[index]) for index in places], "" if at is None else _word(cells[at])

    start = next(batches)[1:]
    rows = _rows(parse, chain([start], batches), timed=at is not None, blank_counts=width == 1)
    return Stream(tuple(chosen), rows, odd)


def _require_time(time: str, names: Sequence[str]) -> str:
    if time not in names:
        raise DataError(f"there is no column {time!r}, off which the phase of an observation is read. Send it along.")
    return time


def _word(cell: str | bytes) -> str:
    return cell.strip() if isinstance(cell, str) else cell.decode("utf-8", "replace").strip()


def _cells(line: bytes, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line.decode("utf-8", "replace")], delimiter=delimiter, strict=True), [])
    except csv.Error:
        raise MalformedLine("a cell is quoted and does not end on its line. Write it again.") from None


def _json_lines(first: _Line, batches: Iterator[list[_Line]], wanted: Selection, time: str | None) -> Stream:
    odd = Oddities()
    header = call_or_refuse(lambda: _json(first[1]), lambda fault: DataError(f"line {first[0]}: {fault}"))
    if time is not None:
        _require_time(time, list(header) if isinstance(header, dict) else [])
    if isinstance(header, list):
        chosen = wanted.names or number_columns(len(header))
        return Stream(chosen, _rows(_list_parser(len(chosen), odd), batches, timed=False), odd)
    stated = wanted.names or ()  # one of them may be missing from the first line, as an entry may be, but not all
    names = wanted.choose([*header, *(name for name in stated if name not in header and set(stated) & set(header))])
    parse = _object_parser(names, {*header, *names}, time, odd)
    return Stream(tuple(names), _rows(parse, batches, timed=time is not None), odd)


def _object_parser(names: Sequence[str], known: set[str], time: str | None, odd: Oddities) -> _Parse:
    def parse(line: bytes) -> tuple[list[float], str]:
        entry = _json(line)
        if not isinstance(entry, dict):
            raise MalformedLine("every line must be an object, as the first is. Write it again.")
        if not entry.keys() <= known:
            odd.unknown_names += 1
        return [odd.read(entry.get(name)) for name in names], "" if time is None else str(entry.get(time))

    return parse


def _list_parser(width: int, odd: Oddities) -> _Parse:
    def parse(line: bytes) -> tuple[list[float], str]:
        entry = _json(line)
        if not isinstance(entry, list) or len(entry) != width:
            raise MalformedLine(f"every line is a list with {width} entries here. Write it again.")
        return [odd.read(cell) for cell in entry], ""

    return parse


def _json(line: bytes) -> Any:
    try:
        return json.loads(line, parse_int=float)  # a whole number may have any length
    except (ValueError, RecursionError):
        raise MalformedLine("it is not JSON. Write one object, or one list, on each line.") from None


# Parquet


def _parquet(path: Path, wanted: Selection, time: str | None) -> Stream:
    refusal = SourceError(
        f"{path}: cannot be read as Parquet. Check the path, who may read it, and whether it is whole."
    )
    file = call_or_refuse(lambda: _parquet_reader.ParquetFile(path, pre_buffer=False), lambda _: refusal)
    schema = file.schema_arrow
    chosen = wanted.choose(schema.names)
    for name in chosen:
        kind = schema.field(name).type
        if not (
            _types.is_floating(kind) or _types.is_integer(kind) or _types.is_decimal(kind) or _types.is_boolean(kind)
        ):
            raise DataError(f"column {name!r} holds no numbers. Choose number columns (--columns a,b).", column=name)
    read = chosen if time is None else list(dict.fromkeys([*chosen, _require_time(time, schema.names)]))
    batches = call_or_refuse(lambda: file.iter_batches(_ROWS, columns=read), lambda _: refusal)

    def rows() -> Iterator[Batch]:
        with file:
            while (batch := call_or_refuse(lambda: next(batches, None), lambda _: refusal)) is not None:
                times = None if time is None else tuple(map(str, batch[time].to_pylist()))
                yield Batch(np.column_stack([_floats(batch[name]) for name in chosen]), times)

    return Stream(tuple(chosen), rows())


def _floats(cells: Any) -> Floats:
    """Numbers as they are, NaN where there is none."""
    numbers: Floats = cells.cast(_pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


VALUE: Final = "value"  # what a fleet of one column may call it
_MAX_DIGITS: Final = 4_000  # Python makes no whole number of more than 4,300


@dataclass(frozen=True, slots=True, eq=False)
class FleetBatch:
    """Observations that arrived together."""

    streams: list[str] = field(default_factory=list)
    times: list[str | int | None] = field(default_factory=list)  # None: a number too long to be a time
    rows: list[list[float]] = field(default_factory=list)

    @property
    def array(self) -> NDArray[np.float64]:
        return np.array(self.rows)


def fleet_batches(source: str, columns: Sequence[str]) -> Iterator[FleetBatch]:
    """The observations of a file, or of standard input (`-`), whatever has arrived together."""
    where = "standard input" if source == STDIN else source
    for lines in read_lines(source, where):
        batch, refusal = FleetBatch(), None
        for line_number, line in lines:
            if not line.strip():
                continue
            try:
                stream, time, row = _parse_line(line, columns)
            except ValueError as fault:
                refusal = DataError(f"line {line_number}: {fault}")
                break
            batch.streams.append(stream)
            batch.times.append(time)
            batch.rows.append(row)
        if batch.rows:
            yield batch
        if refusal is not None:
            raise refusal


def _parse_line(line: bytes, columns: Sequence[str]) -> tuple[str, str | int | None, list[float]]:
    entries = _parse_object(line)
    stream, time = entries.pop("stream", None), entries.pop("time", None)
    is_endless = isinstance(time, float) and math.isinf(time)
    has_time = is_endless or (isinstance(time, str | int) and not isinstance(time, bool))
    if not isinstance(stream, str) or not stream or not has_time:
        raise MalformedLine(
            "it has no stream or no time. A line of a fleet has a stream, as text, and a time, as text or a whole "
            "number. Mend the line; those before it are decided."
        )
    if len(columns) == 1 and VALUE in entries and columns[0] not in entries:
        entries[columns[0]] = entries.pop(VALUE)
    if not entries.keys() <= set(columns):
        raise MalformedLine(
            f"it has names that are not columns; besides stream and time a line has {list_names(columns)}"
            f"{' or value' if len(columns) == 1 else ''}. Leave the others out."
        )
    return stream, None if is_endless else time, [number(entries.get(name)) for name in columns]


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        entries = json.loads(line, parse_int=_parse_whole)
    except (ValueError, RecursionError):
        entries = None
    if not isinstance(entries, dict):
        raise MalformedLine("every line must be a JSON object. Write one on each line; those before it are decided.")
    return entries


def _parse_whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)
