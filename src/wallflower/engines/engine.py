"""Where tables live that do not fit into memory: an engine keeps them, cuts records into tiles, and runs tasks on each.

A task is a function of one tile, or of one chunk of cells, and of what is given to it. It is deterministic, so one that
is run again gives the same; it knows neither noise nor ledger; and it raises nothing because of a record. Within a tile
records stand in lexicographic order: what a task returns is a function of which records there are, not of the order
they came in. Which records stand together in a chunk is the engine's affair: callers combine what chunks
return so that it does not matter. Tasks can be pickled, with public settings only; what is private is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Given = Mapping[str, NDArray[Any]]
Task = Callable[[Floats, Given], Given]
Cells = list[NDArray[Any]]
ChunkTask = Callable[[Cells, Given], Given]
Codes = Callable[[Cells], NDArray[np.int64]]
Fit = Callable[[Any], Cells]  # the cells of an Arrow table, held to a public schema, or a refusal


class Tiles(Protocol):
    """Records, cut into tiles. `low` and `high` are the boxes of the tiles, which may overlap."""

    low: Floats
    high: Floats

    def each(self, words: str, task: Task, given: Callable[[int], Given | None]) -> Iterator[tuple[int, Given]]:
        """The task's answer for every tile that something is given to, with the tile's number."""


class Sheet(Protocol):
    """A table that an engine keeps: columns of numbers, of codes, or of texts as bytes of UTF-8 (a numpy type S).

    It is `ordered` where records stand in an order of their source's own: then a row number names a record.
    """

    n: int
    ordered: bool

    def tile(
        self, columns: Sequence[int], shape: Callable[[Cells], Floats], *, size: int
    ) -> AbstractContextManager[Tiles]:
        """Cut the records into tiles of about `size`; `shape` makes coordinates of the cells of these columns."""

    def chunks(self, columns: Sequence[int]) -> Iterator[Cells]:
        """The cells of these columns, some records at a time, always in the same order."""

    def each(self, words: str, columns: Sequence[int], task: ChunkTask, given: Given) -> Iterator[Given]:
        """The task's answer for every chunk of the cells of these columns, in any order; no chunk is empty."""

    def group(self, columns: Sequence[int], codes: Codes, groups: int) -> Iterator[Sheet]:
        """The records of each group as a sheet with all columns, group after group, also where it has none; `codes`
        says of the cells of these columns which group each record is in. A sheet lasts until the next is asked for."""


class Source(Protocol):
    """A table that an engine reads by itself. Columns that are `keys` are stated by the names of folders, as text."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""

    @property
    def keys(self) -> frozenset[str]:
        """Which of them are keys."""

    @property
    def rows(self) -> int:
        """How many records there are."""

    @property
    def stem(self) -> str | None:
        """What it is called."""

    def keep(self, words: str, columns: Sequence[str], fit: Fit) -> Sheet:
        """Keep these columns of it, held to a schema."""

    def chunks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Bring these columns to this process, as Arrow tables."""


class Engine(Protocol):
    """Who keeps tables."""

    @property
    def name(self) -> str:
        """What it is called."""

    def find(self, source: object) -> Source | None:
        """The source, if the engine reads it by itself; None where it is handed chunks."""

    def keep(self, words: str, chunks: Iterable[Cells], total: int) -> Sheet:
        """Keep a table that comes in `total` chunks."""
