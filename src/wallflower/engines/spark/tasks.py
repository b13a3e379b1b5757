"""What runs on the workers of a cluster: deterministic functions of records and of what was given.

An exception travels to the driver and into logs, and it likes to quote what it stumbled over. So nothing is raised
because of a record: a refusal comes back as a value, and whatever else fails is raised again without its own words.
"""

from __future__ import annotations

import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wallflower.engines.engine import Cells, ChunkTask, Codes, Floats, Given, Task
from wallflower.engines.local import Ints, Tiling, sort_block
from wallflower.errors import DataError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.machine.version import VERSION
from wallflower.progress import one_core

T = TypeVar("T")

CHUNK = 1 << 17  # records that travel together
PARCEL = "rows long, problem string, place string, cells binary"  # the same to Spark


class Parcel(NamedTuple):
    """Some records of a table, or what is wrong with them: the words of a refusal, and which column it names."""

    rows: int
    problem: str | None
    place: str | None
    cells: bytes


class TaskFailed(Exception):
    """A task could not be done; why is not told, since the reason may quote a record."""


def guard(call: Callable[[], T]) -> T:
    """What a task does, on one core; its failure holds nothing of what it saw."""
    try:
        with one_core():
            return call()
    except Exception as error:  # noqa: BLE001 - whatever happens, its words may quote a record
        kind = type(error).__name__
    finally:
        _forget_archives()
    raise TaskFailed(f"a task of wallflower failed ({kind})")


def _forget_archives() -> None:
    """Before each task Spark tells Python to look at its paths again, and each reader of an archive, one for every
    package in Spark's own, then reads all its names again: a fifth of a second. One that is forgotten does not, and is
    made from what is known of the archive when something is imported."""
    for path, reader in list(sys.path_importer_cache.items()):
        if isinstance(reader, zipimport.zipimporter):
            del sys.path_importer_cache[path]


def tell_version(_: object) -> str:
    """Which version a worker has."""
    return VERSION


@dataclass(frozen=True, slots=True)
class Fitter:
    """Holds the records of a part of the table to its schema, some at a time."""

    fit: Callable[[Any], Cells]

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        for table in _chunks(batches):
            parcel = guard(partial(self._parcel, table))
            yield _pa.RecordBatch.from_pylist([parcel._asdict()], _parcel_schema())
            if parcel.problem is not None:
                return

    def _parcel(self, table: Any) -> Parcel:
        try:
            cells = self.fit(table)
        except DataError as refusal:  # its words are those of the public schema
            return Parcel(0, str(refusal), refusal.column, b"")
        return Parcel(table.num_rows, None, None, bundle_cells(cells))


def carry(batches: Iterable[Any]) -> Iterator[Any]:
    """Pack the records of a part of the table as they are, some at a time."""
    for table in _chunks(batches):
        parcel = guard(partial(_pack, table))
        yield _pa.RecordBatch.from_pylist([parcel._asdict()], _parcel_schema())


def _pack(table: Any) -> Parcel:
    sink = _pa.BufferOutputStream()
    with _pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return Parcel(table.num_rows, None, None, sink.getvalue().to_pybytes())


def unpack(parcel: Parcel) -> Any:
    """Return the records that `carry` packed, as an Arrow table."""
    with _pa.ipc.open_stream(parcel.cells) as stream:
        return stream.read_all()


def _chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches as tables of about CHUNK records."""
    held: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            held.append(batch)
        if sum(batch.num_rows for batch in held) >= CHUNK:
            yield _pa.Table.from_batches(held)
            held = []
    if held:
        yield _pa.Table.from_batches(held)


def _parcel_schema() -> Any:
    text = _pa.string()
    return _pa.schema([("rows", _pa.int64()), ("problem", text), ("place", text), ("cells", _pa.binary())])


@dataclass(frozen=True, slots=True)
class Sampler:
    """The coordinates of every so-manieth record of a parcel."""

    columns: Sequence[int]
    shape: Callable[[Cells], Floats]
    every: int

    def __call__(self, parcel: Parcel) -> bytes:
        return guard(lambda: bundle({"points": self.shape(_cells(parcel, self.columns, self.every))}))


@dataclass(frozen=True, slots=True)
class Dealer:
    """Deals the records of parcels out to tiles, as (tile, bytes of their coordinates); `plan` is what to deal by."""

    columns: Sequence[int]
    shape: Callable[[Cells], Floats]
    plan: Any

    def __call__(self, parcels: Iterable[Parcel]) -> Iterator[tuple[int, bytes]]:
        tiling, start = read_plan(self.plan.value), 0
        for parcel in parcels:
            yield from guard(partial(self._deal, parcel, tiling, start))
            start += parcel.rows

    def _deal(self, parcel: Parcel, tiling: Tiling, start: int) -> list[tuple[int, bytes]]:
        values = self.shape(_cells(parcel, self.columns, 1))
        tile = tiling.assign(values, start)
        order = np.argsort(tile, kind="stable")
        values, tiles = values[order], np.unique(tile)
        edges = np.searchsorted(tile[order], np.append(tiles, tiling.tiles)).tolist()
        return [(int(t), values[a:b].tobytes()) for t, (a, b) in zip(tiles, pairwise(edges), strict=True)]


@dataclass(frozen=True, slots=True)
class Sorter:
    """Puts the records of one tile into lexicographic order."""

    width: int

    def __call__(self, dealt: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        pieces = list(dealt)
        if pieces:
            yield from guard(lambda: self._sort(pieces))

    def _sort(self, pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        values = sort_block(values_of(pieces, self.width))
        return [(pieces[0][0], values[at : at + CHUNK].tobytes()) for at in range(0, len(values), CHUNK)]


@dataclass(frozen=True, slots=True)
class Boxer:
    """The tile's number and its box, of a tile that has records."""

    width: int

    def __call__(self, pieces: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        kept = list(pieces)
        return [(kept[0][0], guard(lambda: self._box(kept)))] if kept else []

    def _box(self, pieces: list[tuple[int, bytes]]) -> bytes:
        values = values_of(pieces, self.width)
        return bundle({"low": values.min(axis=0), "high": values.max(axis=0)})


@dataclass(frozen=True, slots=True)
class Visitor:
    """Runs a task on one tile; `told` is what was given to each."""

    task: Task
    told: Any
    width: int

    def __call__(self, pieces: Iterable[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        kept = list(pieces)
        return [(kept[0][0], guard(lambda: self._answer(kept)))]

    def _answer(self, pieces: list[tuple[int, bytes]]) -> bytes:
        return bundle(self.task(values_of(pieces, self.width), unbundle(self.told.value[pieces[0][0]])))


@dataclass(frozen=True, slots=True)
class ChunkVisitor:
    """Runs a task on the cells of one parcel; `told` is what was given."""

    columns: Sequence[int]
    task: ChunkTask
    told: Any

    def __call__(self, parcel: Parcel) -> bytes:
        return guard(lambda: bundle(self.task(_cells(parcel, self.columns, 1), unbundle(self.told.value))))


@dataclass(frozen=True, slots=True)
class Grouper:
    """The records of a parcel that are in one group."""

    columns: Sequence[int]
    codes: Codes
    group: int

    def __call__(self, parcel: Parcel) -> Parcel:
        return guard(lambda: self._pick(parcel))

    def _pick(self, parcel: Parcel) -> Parcel:
        cells = unbundle_cells(parcel.cells)
        mine = self.codes([cells[column] for column in self.columns]) == self.group
        return Parcel(int(mine.sum()), None, None, bundle_cells([column[mine] for column in cells]))


def values_of(pieces: Iterable[tuple[int, bytes]], width: int) -> Floats:
    """The coordinates that were written as bytes."""
    return np.concatenate([np.frombuffer(cells) for _, cells in pieces]).reshape(-1, width)


def _cells(parcel: Parcel, columns: Sequence[int], every: int) -> Cells:
    cells = unbundle_cells(parcel.cells)
    return [cells[column][::every] for column in columns]


def write_plan(tiling: Tiling) -> bytes:
    """Where tiles are cut, as bytes: cuts are values of records, and travel as records do."""
    depth: Ints = np.array(tiling.depth)
    return bundle({"depth": depth, "column": tiling.column, "value": tiling.value, "first": tiling.first})


def read_plan(message: bytes) -> Tiling:
    """The cuts again."""
    arguments = unbundle(message)
    return Tiling(int(arguments["depth"]), arguments["column"], arguments["value"], arguments["first"])


def bundle(arrays: Given) -> bytes:
    """Arrays by name, each with its own type and shape, as one message.

    >>> {name: array.tolist() for name, array in unbundle(bundle({"a": np.eye(2), "b": np.array(7)})).items()}
    {'a': [[1.0, 0.0], [0.0, 1.0]], 'b': 7}
    """
    kept = [np.asarray(array) for array in arrays.values()]
    batch = _pa.record_batch(
        {
            "name": _pa.array(list(arrays), _pa.string()),
            "kind": _pa.array([array.dtype.str for array in kept], _pa.string()),
            "shape": _pa.array([array.shape for array in kept], _pa.list_(_pa.int64())),
            "cells": _pa.array([array.tobytes() for array in kept], _pa.large_binary()),
        }
    )
    sink = _pa.BufferOutputStream()
    with _pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    message: bytes = sink.getvalue().to_pybytes()
    return message


def unbundle(message: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a message. They are copies: compiled loops know no arrays that cannot be written to."""
    with _pa.ipc.open_stream(message) as stream:
        (batch,) = stream
    kinds, shapes = batch["kind"].to_pylist(), batch["shape"].to_pylist()
    return {
        name: np.frombuffer(cells.as_buffer(), dtype=kind).reshape(shape).copy()
        for name, kind, shape, cells in zip(batch["name"].to_pylist(), kinds, shapes, batch["cells"], strict=True)
    }


def bundle_cells(cells: Cells) -> bytes:
    """Columns of some records."""
    return bundle({str(index): column for index, column in enumerate(cells)})


def unbundle_cells(message: bytes) -> Cells:
    """The columns again, in order."""
    return list(unbundle(message).values())
