"""What every reader of a source works with: which columns are wanted, and how to refuse without quoting a record.

Readers like to quote the cell they stumble over. So every call of one goes through `call_or_refuse`, which drops the
reader's own error, chain and all, and raises one of ours that names files and columns but never a value.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError, PrivacyError, SourceError
from wallflower.machine.heavy import pyarrow as _pa

T = TypeVar("T")

EXACT_BELOW: Final = 2**53
LIMIT_VARIABLE: Final = "WALLFLOWER_MAX_BYTES"

_BROKEN: Final = (OSError, EOFError, ValueError, TypeError, OverflowError, csv.Error, zlib.error)
_LISTED: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a file is written, as the steward states it: nothing here is guessed from cells.

    `separator`, `encoding`, `decimal` and `thousands` are those of text (default: what the file's name says, UTF-8, a
    point, none); `sheet` is that of a workbook (default: the first).
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    sheet: str | None = None

    def __post_init__(self) -> None:
        stated = {name: getattr(self, name) for name in FORMAT}
        for name, value in stated.items():
            if value is not None and (not isinstance(value, str) or not value):
                raise ParameterError(f"{name}: must be a non-empty string. Omit it for the default.")
        if self.separator is not None:
            object.__setattr__(self, "separator", _SPELT.get(self.separator.lower(), self.separator))
        for name, allowed in _MARKS.items():
            if stated[name] is not None and stated[name] not in allowed:
                known = " or ".join(map(repr, allowed))
                raise ParameterError(f"{name}: {stated[name][:40]!r} is not known; it is {known}. Choose one of these.")
        if self.separator is not None and (len(self.separator) != 1 or self.separator in _NO_SEPARATOR):
            raise ParameterError(
                f"separator: {self.separator[:40]!r} cannot separate cells; it is one character, such as ; or tab, and "
                "no letter, digit, quotation mark or end of a line. Choose another."
            )
        point = self.decimal or "."
        if self.thousands == point or (self.decimal is not None and self.separator == point):
            raise ParameterError("decimal: the same mark has a second meaning. Give each meaning a mark of its own.")
        if self.encoding is not None and not _is_text_encoding(self.encoding):
            raise ParameterError(
                f"encoding: {self.encoding[:40]!r} is not known; there are utf-8, latin-1, cp1252, utf-16 and "
                "others of Python's. Choose one of these."
            )

    @property
    def stated_parts(self) -> dict[str, str]:
        """What was not left out."""
        return {name: value for name in FORMAT if (value := getattr(self, name)) is not None}


FORMAT: Final = ("separator", "encoding", "decimal", "thousands", "sheet")
_SPELT: Final = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}
_MARKS: Final = {"decimal": (".", ","), "thousands": (",", ".", " ", "'", "_", "\u00a0", "\u202f")}
_NO_SEPARATOR: Final = frozenset('"\r\n\0' + "0123456789" + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _is_text_encoding(name: str) -> bool:
    try:
        "x".encode(name)
        return codecs.lookup(name).name not in ("idna", "punycode", "raw_unicode_escape", "unicode_escape")
    except (LookupError, ValueError):
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a public schema asks of a source: which columns (None: all but those `without`), and how they are read.

    `texts` are columns that are read as they are written: labels, names of records, times and dates.
    """

    names: tuple[str, ...] | None = None
    texts: frozenset[str] = frozenset()
    without: tuple[str, ...] = ()
    form: Format = Format()

    def choose(self, header: Sequence[str]) -> list[str]:
        """The columns to read, in the order they were asked for."""
        if self.names is not None and not set(self.names) & set(header):
            raise DataError(
                f"asked for columns {list_names(self.names)}, and the source has none of them. "
                "Check that its first line is a header, and that the schema belongs to it."
            )
        if self.names is None and self.without:
            if not set(self.without) & set(header):
                raise DataError(
                    f"asked to leave out {list_names(self.without)}, and the source has none of them. "
                    "Check that its first line is a header, and how the names are spelt."
                )
            pick(self.without, header)
            header = [name for name in header if name not in self.without]
        counts = Counter(header)
        twice = [name for name in self.names or () if counts[name] > 1]
        if twice or (self.names is None and len(counts) < len(header)):
            # without a schema the header may be a record, and is not repeated
            which = f"column {list_names(twice)}" if twice else "a column"
            raise DataError(f"{which} is in the source more than once; names must differ. Rename one.")
        if self.names is None and not all(header):
            raise DataError(
                "a column of the source has no name, and without a schema every column is read. "
                "Name it, save without the index, or choose columns (--columns a,b or a schema)."
            )
        return list(pick(header if self.names is None else self.names, header))

    def take(self, table: Any) -> Any:
        """Those columns of an Arrow table."""
        header = table.column_names
        return table.select([header.index(name) for name in self.choose(header)])


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """An Arrow table and where it came from.

    table     the records
    stem      the name of the file or database
    declared  the source declares the types of its columns; otherwise they are inferred from cells
    headed    the source declares the names of its columns; otherwise the first line may be a record
    ordered   the source has an order of its own; that of a database or of folders by a column may follow from cells
    """

    table: Any
    stem: str | None = None
    declared: bool = True
    headed: bool = True
    ordered: bool = True


def call_or_refuse(
    call: Callable[[], T], refusal: Callable[[BaseException], PrivacyError], *more: type[BaseException]
) -> T:
    """`call()`, or a typed refusal. It is raised outside `except`, so that it carries nothing of the reader's error."""
    try:
        return call()
    except PrivacyError:
        raise
    except (*_BROKEN, *more, _pa.ArrowException) as error:
        error_to_raise = refusal(error)
    raise error_to_raise


def pick(asked: Iterable[str], allowed: Sequence[str]) -> tuple[str, ...]:
    """The names asked for, each known and each once."""
    names = (asked,) if isinstance(asked, str) else tuple(asked)
    if not names:
        raise DataError(f"no column was asked for; there are {list_names(allowed)}. Choose at least one.")
    for name, count in Counter(names).items():
        if name not in allowed:
            close = difflib.get_close_matches(str(name), allowed, n=1)
            advice = f"Did you mean {close[0]!r}?" if close else "Choose among these."
            raise DataError(
                f"column {name!r} was asked for and is not there; there are {list_names(allowed)}. {advice}",
                column=str(name),
            )
        if count > 1:
            raise DataError(f"column {name!r} was asked for more than once. Name each column once.", column=name)
    return names


# `pa.array`, `pa.scalar` and `to_numpy` import pandas, where it is installed, only to ask it whether it is meant. That
# takes longer than all a small question does, so numbers and words go to Arrow and back by their buffers.


def text_array(words: Iterable[str | None]) -> Any:
    """Words as Arrow."""
    entries = list(words)
    texts = [(word or "").encode("utf-8") for word in entries]
    valid = np.packbits(np.array([word is not None for word in entries], dtype=bool), bitorder="little")
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    buffers = [_pa.py_buffer(part) for part in (valid, ends, b"".join(texts))]
    return _pa.Array.from_buffers(_pa.string(), len(entries), buffers)


def float_array(values: NDArray[np.float64]) -> Any:
    """Numbers as Arrow, sharing their memory."""
    kept = np.ascontiguousarray(values, dtype=np.float64)
    return _pa.Array.from_buffers(_pa.float64(), len(kept), [None, _pa.py_buffer(kept)])


def numbers_of(cells: Any) -> NDArray[Any]:
    """The numbers of an Arrow column without missing ones."""
    return np.from_dlpack(cells.combine_chunks() if isinstance(cells, _pa.ChunkedArray) else cells)


def split_list(given: str, mark: str = ",") -> list[str]:
    """The parts of `a, b`; a part that holds the mark stands in double quotes, and a quote in these is doubled.

    >>> split_list('age, "Salary, paid", height "')
    ['age', 'Salary, paid', 'height "']
    """
    parts = [part[1:-1].replace('""', '"') if part[:1] == '"' else part for part in pieces_of(given, mark)]
    return [part for part in parts if part]


def pieces_of(given: str, mark: str) -> list[str]:
    """The text between the marks that stand outside of quotes, quotes and all."""
    pieces, is_quoted = [""], False
    for sign in given:
        if sign == '"' and (is_quoted or not pieces[-1].strip() or pieces[-1].lstrip()[0] == '"'):
            is_quoted = not is_quoted
        if sign == mark and not is_quoted:
            pieces.append("")
        else:
            pieces[-1] += sign
    tidy = [piece.strip() for piece in pieces]
    if is_quoted or any(piece[:1] == '"' and (len(piece) < 2 or piece[-1] != '"') for piece in tidy):
        raise ParameterError('a double quote is opened and never closed. Write a list as a,b or as a,"b, c".')
    return [piece for piece in tidy if piece]


def join_list(names: Iterable[str], mark: str = ",") -> str:
    """The text that `split_list` takes apart again.

    >>> join_list(["age", "Salary, paid"])
    'age,"Salary, paid"'
    """
    return mark.join(_quote(name) if re.search(r'[,;"]|^\s|\s$', name) else name for name in names)


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def list_names(names: Iterable[str]) -> str:
    """Public names for a message, not too many."""
    known = list(names)
    return ", ".join(known[:_LISTED]) + (" and more" if len(known) > _LISTED else "")


def too_precise(name: str | None = None) -> DataError:
    """The refusal of whole numbers that would run together, in a column or somewhere in an array."""
    where = "the array" if name is None else f"column {name!r}"
    return DataError(
        f"{where} holds whole numbers of 2**53 or more, which a float64 cannot tell apart. "
        "Leave it out if it is an identifier, or subtract a public constant.",
        column=name,
    )


def arrow_of(cells: Any) -> Any:
    """Cells as Arrow; a mix of kinds becomes text, to be refused by name where numbers are wanted."""
    try:
        return _pa.array(cells, from_pandas=True)
    except (_pa.ArrowException, TypeError, ValueError, OverflowError):
        return _pa.array([None if cell is None else str(cell) for cell in cells], type=_pa.string())


def too_large(what: str, limit: int) -> SourceError:
    return SourceError(
        f"{what}: is larger than the limit of {limit} bytes. "
        f"If that is meant, raise it with limit_bytes or {LIMIT_VARIABLE}."
    )
