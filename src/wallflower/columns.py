"""What every reader of a source works with: which columns are wanted, and how to refuse without quoting a record.

Readers like to quote the cell they stumble over. So every call of one goes through `call_or_refuse`, which drops the
reader's own error, chain and all, and raises one of ours that names files and columns but never a value.
"""

from __future__ import annotations

import csv
import difflib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, PrivacyError, SourceError
from wallflower.lazy import Lazy

if TYPE_CHECKING:
    import pyarrow as _pa
else:
    _pa = Lazy("pyarrow")

T = TypeVar("T")

EXACT_BELOW: Final = 2**53
LIMIT_VARIABLE: Final = "WALLFLOWER_MAX_BYTES"

_BROKEN: Final = (OSError, EOFError, ValueError, TypeError, OverflowError, csv.Error, zlib.error)
_LISTED: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What a public schema asks of a source: which columns (None: all), and which of them hold labels."""

    names: tuple[str, ...] | None = None
    labels: frozenset[str] = frozenset()

    def choose(self, header: Sequence[str]) -> list[str]:
        """The columns to read, in the order they were asked for."""
        if self.names is not None and not set(self.names) & set(header):
            raise DataError(
                f"asked for columns {list_names(self.names)}, and the source has none of them. "
                "Check that its first line is a header, and that the schema belongs to it."
            )
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
    """An Arrow table, and what the place it came from is called."""

    table: Any
    stem: str | None = None


def call_or_refuse(
    call: Callable[[], T], refusal: Callable[[BaseException], PrivacyError], *more: type[BaseException]
) -> T:
    """`call()`, or a typed refusal. It is raised outside `except`, so that it carries nothing of the reader's error."""
    try:
        return call()
    except PrivacyError:
        raise
    except (*_BROKEN, *more, _pa.ArrowException) as error:
        said = refusal(error)
    raise said


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
    given = list(words)
    texts = [(word or "").encode("utf-8") for word in given]
    valid = np.packbits([word is not None for word in given], bitorder="little")
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    buffers = [_pa.py_buffer(part) for part in (valid, ends, b"".join(texts))]
    return _pa.Array.from_buffers(_pa.string(), len(given), buffers)


def float_array(values: NDArray[np.float64]) -> Any:
    """Numbers as Arrow, sharing their memory."""
    kept = np.ascontiguousarray(values, dtype=np.float64)
    return _pa.Array.from_buffers(_pa.float64(), len(kept), [None, _pa.py_buffer(kept)])


def numbers_of(cells: Any) -> NDArray[Any]:
    """The numbers of an Arrow column without missing ones."""
    return np.from_dlpack(cells.combine_chunks() if isinstance(cells, _pa.ChunkedArray) else cells)


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
