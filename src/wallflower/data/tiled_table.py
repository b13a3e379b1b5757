"""A table that an engine keeps: its public facts, and no records.

Its cells were held to the schema when it was kept, chunk by chunk, as those of a table in memory are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wallflower.data.cells import (
    coded_names,
    group_cells,
    measured_names,
    no_identifier,
    number_names,
    places_of,
    scale_columns,
)
from wallflower.data.people import PersonRows, choose_rows
from wallflower.engines.engine import Cells, Floats, Given, Sheet, Task, Tiles
from wallflower.engines.local import LocalSheet
from wallflower.schema import Column, Schema
from wallflower.schema.columns import pick, text_array


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Makes coordinates of cells, by the public schema alone."""

    schema: Schema

    def __call__(self, cells: Cells) -> Floats:
        return scale_columns(cells, self.schema)


@dataclass(frozen=True, slots=True)
class PointTask:
    """A task about points, as one about the cells they are made of."""

    shape: Coordinates
    task: Task

    def __call__(self, cells: Cells, given: Given) -> Given:
        return self.task(self.shape(cells), given)


@dataclass(frozen=True, slots=True)
class Groups:
    """Says of cells which group their records are in, by the public schema alone: the last column counts fastest."""

    columns: tuple[Column, ...]
    sizes: tuple[int, ...]

    def __call__(self, cells: Cells) -> NDArray[np.int64]:
        codes = [group_cells(column_cells, column) for column_cells, column in zip(cells, self.columns, strict=True)]
        return np.ravel_multi_index(codes, self.sizes).astype(np.int64)


@dataclass(frozen=True, slots=True)
class GroupTask:
    """A task about points and the groups of their records, as one about cells: first of the points, then of the
    groups."""

    shape: Coordinates
    groups: Groups
    task: Callable[[Floats, NDArray[np.int64], Given], Given]

    def __call__(self, cells: Cells, given: Given) -> Given:
        width = len(cells) - len(self.groups.columns)
        return self.task(self.shape(cells[:width]), self.groups(cells[width:]), given)


def copy_rows(sheet: Sheet, columns: Sequence[int], rows: NDArray[np.int64]) -> LocalSheet:
    """Copy these rows (rising, in the order in which one pass reads them) to a scratch file of this process."""
    copied, start = LocalSheet(), 0
    for cells in sheet.chunks(columns):
        stop = start + len(cells[0])
        first, last = np.searchsorted(rows, [start, stop]).tolist()
        if first < last:
            copied.add([column[rows[first:last] - start] for column in cells])
        start = stop
    return copied


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TiledTable:
    """What is public about a table that the engine named `engine` keeps in `sheet`, all of its columns in order."""

    sheet: Sheet
    schema: Schema
    name: str
    engine: str
    is_drawn: bool = False

    @property
    def n(self) -> int:
        """The number of records that a query sees."""
        if self.is_drawn or self._max_rows is None:
            return self.sheet.n
        return int(np.minimum(self._people().sizes, self._max_rows).sum())

    def draw(self, order: Callable[[int, int], NDArray[np.int64]]) -> TiledTable:
        """Return the table that one query looks at: at most `max_rows` rows of each person, drawn in secret.  (Y2)"""
        if self.is_drawn or self._max_rows is None:
            return self
        rows = choose_rows(self._people(), self._max_rows, order)
        sheet = copy_rows(self.sheet, range(self.dimension), rows)
        sheet.ordered = False
        return replace(self, sheet=sheet, is_drawn=True)

    @property
    def _max_rows(self) -> int | None:
        return None if self.schema.person is None else self.schema.person.max_rows

    def _people(self) -> PersonRows:
        """The rows by person, from the identifiers that the engine keeps."""
        person = self.schema.person
        assert person is not None
        parts = [cells[0] for cells in self.sheet.chunks([self.columns.index(person.id)])]
        texts = text_array(text.decode() or None for part in parts for text in part.tolist())
        return PersonRows(texts, person)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.names or ()

    @property
    def dimension(self) -> int:
        return len(self.columns)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that points are made of."""
        return self.schema.numbers

    def points(self, columns: Iterable[str] | None = None, *, labels: bool = False) -> TiledPoints:
        """The number columns (or those named), scaled by the public schema; with `labels`, weighted labels too."""
        if labels:
            names = measured_names(columns, self.columns, self.schema)
        else:
            names = number_names(columns, self.columns, self.schema)
        return TiledPoints(table=self, columns=names)

    def coded_points(self, columns: Iterable[str] | None = None) -> TiledPoints:
        """The numbers, scaled by the public schema, and the labels as codes: one coordinate for each column."""
        coded = replace(self, schema=self.schema.coded())
        return TiledPoints(table=coded, columns=coded_names(columns, self.columns, self.schema))

    def identifier(self, column: str) -> int:
        """The place of a column of identifiers."""
        (name,) = pick([column], self.columns)
        (facts,) = self.schema.only([name]).columns or ()
        if not facts.identifier:
            raise no_identifier(name)
        return self.columns.index(name)

    def group(self, by: Sequence[str], sizes: Sequence[int]) -> Iterator[TiledTable]:
        """A table for each group of these columns, which have that many labels, in the order of the groups."""
        codes, places = self.groups(by, sizes), [self.columns.index(name) for name in by]
        return (replace(self, sheet=sheet) for sheet in self.sheet.group(places, codes, math.prod(sizes)))

    def groups(self, by: Sequence[str], sizes: Sequence[int]) -> Groups:
        """Who says which group a record is in."""
        return Groups(self.schema.only(by).columns or (), tuple(sizes))

    def rescale(self, scales: Mapping[str, float]) -> TiledTable:
        """The same records by other public scales, column by column; the others keep theirs."""
        return replace(self, schema=self.schema.rescale(scales))

    def __repr__(self) -> str:
        return f"TiledTable(name={self.name!r}, n={self.n}, columns={self.columns!r}, engine={self.engine!r})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TiledPoints:
    """What is public about points whose records an engine keeps; they are seen tile by tile."""

    table: TiledTable
    columns: tuple[str, ...]

    @property
    def n(self) -> int:
        return self.table.n

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def schema(self) -> Schema:
        return self.table.schema.only(self.columns)

    @property
    def dimension(self) -> int:
        return len(self.columns)

    @property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """For each column, which coordinates of a point it is."""
        return places_of(self.columns, self.schema)

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return sum(map(len, self.places))

    def subspace(self, names: Iterable[str]) -> TiledPoints:
        """The same records, seen in these columns only."""
        return replace(self, columns=pick(names, self.columns))

    def tile(self, *, size: int) -> AbstractContextManager[Tiles]:
        """The records, cut into tiles of about `size`, for as long as the block lasts."""
        return self.table.sheet.tile(self._columns(), Coordinates(self.schema), size=size)

    def each(self, words: str, task: Task, given: Given) -> Iterator[Given]:
        """The task's answer for some points at a time, which are in no order that matters."""
        return self.table.sheet.each(words, self._columns(), PointTask(Coordinates(self.schema), task), given)

    def each_by(
        self,
        words: str,
        by: Sequence[str],
        sizes: Sequence[int],
        task: Callable[[Floats, NDArray[np.int64], Given], Given],
        given: Given,
    ) -> Iterator[Given]:
        """The task's answer for some points at a time and the groups of their records by these columns, which have so
        many labels."""
        places = [*self._columns(), *(self.table.columns.index(name) for name in by)]
        whole = GroupTask(Coordinates(self.schema), self.table.groups(by, sizes), task)
        return self.table.sheet.each(words, places, whole, given)

    def select(self, rows: NDArray[np.int64]) -> TiledPoints:
        """The points at these rows (rising, in the order in which one pass reads the source), kept in a scratch file of
        this process."""
        sheet = copy_rows(self.table.sheet, self._columns(), rows)
        return replace(self, table=replace(self.table, sheet=sheet, schema=self.schema))

    def gather(self) -> Floats:
        """All records in memory, as points there are: for a question that few columns are enough for."""
        shape = Coordinates(self.schema)
        return np.concatenate([shape(cells) for cells in self.table.sheet.chunks(self._columns())])

    def _columns(self) -> list[int]:
        return [self.table.columns.index(name) for name in self.columns]

    def __repr__(self) -> str:
        return f"TiledPoints(name={self.name!r}, n={self.n}, columns={self.columns!r})"
