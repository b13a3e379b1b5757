"""Whether two tables hold the same records: keyed tags that say nothing without the key.

Without a key, an attacker who knows all rows but one could guess the last until the tag fits; no ε would bound that. So
every tag is keyed, and the key stays with the steward (`release/steward_key.py`). Whether tables are the same
depends on records: it is told to the steward while loading, and to nobody else.

Row     its cells, sorted: a number as the 64 bits of its float, text as 64 bits of a keyed hash
Rows    one tag of all rows, sorted: equal when the tables are
Least   the least row tags, a sample that is drawn alike from every table, so that parts in common show

Cells are sorted inside a row, so neither the order nor the names of columns count, and common rows keep common tags
even when the tables differ elsewhere. What is not noticed: other columns of the same people, unless from one source.
"""

from __future__ import annotations

import heapq
import hmac
import math
import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points, Table, TablePoints, TiledTable
from wallflower.engines.local import sort_block, sort_rows
from wallflower.errors import ParameterError
from wallflower.machine.heavy import pyarrow_compute as _compute
from wallflower.machine.heavy import pyarrow_types as _types
from wallflower.schema.columns import EXACT_BELOW, numbers_of

KEY_BYTES: Final = 32
SKETCH: Final = 256
MIN_COMMON_TAGS: Final = 13  # of 256: one row in twenty
MAX_TWIN_RATE: Final = 100  # at most one row in a hundred may have a twin

_TAG_BYTES: Final = 16
_BLOCK: Final = 1 << 20  # rows of a table that an engine keeps, in memory at a time
_LOCAL: Final = ("duckdb", "sqlite")

Bits = NDArray[np.uint64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Keyed tags of a table: of all `rows`, the `least` of single rows, and of the `source`, where one is known."""

    rows: str = field(repr=False)
    least: tuple[str, ...] = field(repr=False)
    source: str | None = field(default=None, repr=False)

    def share(self, least: Iterable[str]) -> float:
        """How much of the rows of both these tags have in common, or 0 when it may be chance.

        The least of both are a sample of the rows of both, and those in each of the two estimate the share |A∩B|/|A∪B|
        [Bro97]. A part below a twentieth of both together is not noticed.

        Independent tables share rows by chance, though no more of them than there are expected twins inside both: a
        row that is met a and b times on average is common ab times, and has (a² + b²)/2 twins. Tables with twins have
        no sketch (`_Least`). That few show in either, and yet 13 rows of the sample are common, happens to fewer than
        one of 10,000 pairs. Rows that differ by design, as the hours of a year, do match without being the same.
        """
        ours, theirs = set(self.least), set(least)
        sample = heapq.nsmallest(SKETCH, ours | theirs)
        common = len(ours & theirs & set(sample))
        return common / len(sample) if common >= MIN_COMMON_TAGS else 0.0


def fingerprint(
    table: Table | Points | TiledTable, key: bytes, *, source: str | os.PathLike[str] | None = None
) -> Fingerprint:
    """The tags of a table, the same for every order of rows and columns, names of columns and ways to write a number.

    Points of a table count as its columns, unscaled. Other points are known only as they were scaled, so the same array
    under another scale is another table here.
    """
    if len(key) != KEY_BYTES:
        raise ParameterError(
            f"key: it has another length than {KEY_BYTES} bytes, and a short one can be guessed. Use steward_key()."
        )
    tag, least = hmac.new(_subkey(key, "rows"), digestmod="sha256"), _Least(_subkey(key, "row"))
    tag.update(table.dimension.to_bytes(8, "little"))
    for rows in _sorted_rows(table, _subkey(key, "label")):
        tag.update(rows.tobytes())
        least.add(rows)
    return Fingerprint(
        rows=tag.hexdigest(),
        least=least.tags(),
        source=None if source is None else _tag(_subkey(key, "source"), _place(os.fspath(source)).encode("utf-8")),
    )


def overlap(one: Fingerprint, other: Fingerprint) -> float:
    """The share of rows in common: 1 for equal tables, 0 where what is common may be chance, else an estimate.

    Its standard error is at most 1/32, that of a share among 256. Equal tables are always told: that a column of n coin
    flips has as many heads as another, about once in √(πn) times, costs the steward one command; a copy that is
    overlooked costs its people a second budget.
    """
    return 1.0 if one.rows == other.rows else one.share(other.least)


def _subkey(key: bytes, purpose: str) -> bytes:
    """A key for each purpose, so that no tag of one kind can be a tag of another."""
    return hmac.digest(key, f"wallflower/fingerprint/1/{purpose}".encode(), "sha256")


def _tag(key: bytes, message: bytes) -> str:
    return hmac.digest(key, message, "sha256").hex()


# Canonical rows


def _columns(table: Table | Points, key: bytes) -> list[Bits]:
    match table:
        case Table():
            return [_cells(table.arrow[name], key) for name in table.columns]
        case TablePoints():
            return [_cells(table._table.arrow[name], key) for name in table.columns]
        case Points():
            return [_number_bits(values) for values in table.values.T]


def _cells(cells: Any, key: bytes) -> Bits:
    return _number_bits(numbers_of(cells)) if _types.is_floating(cells.type) else _text_bits(cells, key)


def _number_bits(values: NDArray[np.float64]) -> Bits:
    return (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0, of which there is one


def _text_bits(cells: Any, key: bytes) -> Bits:
    whole = cells.combine_chunks()
    coded = whole if _types.is_dictionary(whole.type) else _compute.fill_null(whole, "").dictionary_encode()
    bits: Bits = _labels_bits(coded.dictionary.to_pylist(), key)[numbers_of(coded.indices)]
    return bits


def _labels_bits(labels: Iterable[str], key: bytes) -> Bits:
    return np.frombuffer(b"".join(_label_bits(label, key) for label in labels), dtype="<u8")


def _label_bits(label: str, key: bytes) -> bytes:
    """A label that reads as a number is that number: whether 0 and 1 are labels is the schema's choice."""
    try:
        number = float(label)
    except ValueError:
        number = math.inf
    if abs(number) < EXACT_BELOW:
        return struct.pack("<d", number + 0.0)
    return blake2b(label.encode("utf-8"), key=key, digest_size=8).digest()


def _sorted_rows(table: Table | Points | TiledTable, key: bytes) -> Iterator[Bits]:
    """The rows in lexicographic order, cells sorted inside each: all at once, or in blocks where an engine has them."""
    if not isinstance(table, TiledTable):
        rows = np.sort(np.column_stack(_columns(table, key)), axis=1)
        yield np.ascontiguousarray(sort_block(rows), dtype="<u8")
        return
    labels = [_labels_bits(c.labels, key) if c.categories is not None else None for c in table.schema.columns or ()]
    chunks = (
        np.sort(np.column_stack([_chunk_bits(c, bits, key) for c, bits in zip(cells, labels, strict=True)]), axis=1)
        for cells in table.sheet.chunks(range(table.dimension))
    )
    for block in sort_rows(chunks, _BLOCK):
        yield np.ascontiguousarray(block, dtype="<u8")


def _chunk_bits(cells: NDArray[Any], labels: Bits | None, key: bytes) -> Bits:
    if cells.dtype.kind == "S":
        return _labels_bits((text.decode("utf-8") for text in cells.tolist()), key)
    return _number_bits(cells) if labels is None else labels[cells]


# Tags of rows


class _Least:
    """The least tags of rows that occur once, or none where rows coincide by chance; rows come in order, in blocks.

    How often they do shows inside the table: the chance that a further record of its population equals a row that
    occurs once is estimated by the share of records whose row occurs twice [Goo53]. Values of few kinds, as ages or
    answers, thus have no sketch, while one row that occurs very often, as all zeros, takes nothing from the others.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._singles, self._twins = key, 0, 0
        self._tags: list[bytes] = []
        self._open: tuple[Bits, int] | None = None  # the last row so far, which may go on, and how often it came

    def add(self, rows: Bits) -> None:
        starts = np.flatnonzero(np.append(True, (rows[1:] != rows[:-1]).any(axis=1)))
        counts = np.diff(np.append(starts, len(rows)))
        if self._open is not None and np.array_equal(self._open[0], rows[0]):
            counts[0] += self._open[1]
        else:
            self._close()
        self._take(rows[starts[:-1]], counts[:-1])
        self._open = rows[-1].copy(), int(counts[-1])

    def tags(self) -> tuple[str, ...]:
        """What was least, once all rows have come."""
        self._close()
        return () if 2 * self._twins * MAX_TWIN_RATE > self._singles else tuple(tag.hex() for tag in self._tags)

    def _close(self) -> None:
        if self._open is not None:
            row, count = self._open
            self._take(row[None], np.array([count]))
            self._open = None

    def _take(self, rows: Bits, counts: NDArray[np.int64]) -> None:
        single = rows[counts == 1]
        self._singles += len(single)
        self._twins += int((counts == 2).sum())
        width, text = rows.shape[1] * 8, single.tobytes()
        # BLAKE2 with a key is a keyed hash as HMAC is, and four times as quick on messages as short as a row.
        tags = (
            blake2b(text[start : start + width], key=self._key, digest_size=_TAG_BYTES).digest()
            for start in range(0, len(text), width)
        )
        self._tags = heapq.nsmallest(SKETCH, chain(self._tags, tags))


# Sources


def _place(source: str) -> str:
    """A file by where links lead; a database without user and password, which change while it stays the same."""
    scheme, mark, rest = source.partition("://")
    if not mark:
        return str(Path(source).resolve())
    kind = scheme.partition("+")[0]
    if kind in _LOCAL:
        file, ask, query = rest.removeprefix("/").partition("?")
        return f"{kind}://{Path(file).resolve()}{ask}{query}"
    host, ask, query = rest.partition("?")
    return f"{kind}://{host.rpartition('@')[2]}{ask}{query}"
