"""Tiles on a cluster: Spark moves records, encrypted, and runs the same tasks on them as one machine would.

To Spark a table is a set of parcels, bytes that hold some records each. It reads them, deals them out to tiles, keeps
those on disk, and runs a task on each; what it loses, it makes again, and since tasks are deterministic the answer is
the same. Noise is drawn and the ledger is written where the question is asked, never on the cluster.

wf.open("hdfs://cluster/people", schema="people.toml", engine="spark://host:7077")
"""

from __future__ import annotations

import atexit
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from wallflower import progress
from wallflower.engines.engine import Cells, ChunkTask, Codes, Fit, Floats, Given, Task
from wallflower.engines.local import SAMPLE, plan_tiles
from wallflower.engines.spark import session as _session
from wallflower.engines.spark import tasks
from wallflower.engines.spark.tasks import bundle, bundle_cells, unbundle, unbundle_cells
from wallflower.errors import DataError, ParameterError, SourceError
from wallflower.machine.lazy import Lazy
from wallflower.machine.version import VERSION

if TYPE_CHECKING:
    import pyspark as _pyspark
else:
    _pyspark = Lazy("pyspark")

CATALOG: Final = "catalog://"
STORES: Final = ("abfs", "abfss", "file", "gs", "hdfs", "s3", "s3a", "viewfs", "wasbs")
PARTS: Final = 100  # steps that are told of a pass over the tiles: how many tiles there are depends on the records
WAVE: Final = 64  # tiles that are given something at a time
_GLOB: Final = re.compile(r"([\[\]{}*?\\])")


class SparkEngine:
    """Keeps tables on the cluster of a session."""

    name = "spark"

    def __init__(self, session: Any, *, insecure: bool = False) -> None:
        self._context = _session.private_context(session)
        if not insecure:
            _session.require_private(session)
        self._sql = _session.run(session.newSession)
        for name, value in _session.READING.items():
            self._sql.conf.set(name, value)
        self._greet()

    def _greet(self) -> None:
        """Workers must know the same tasks."""
        otherwise = ParameterError(
            "engine: the workers of the cluster cannot run wallflower. Install the same version there, for the Python "
            "that PYSPARK_PYTHON names, or ship it (spark.archives)."
        )
        versions = _session.run(lambda: self._context.parallelize([0], 1).map(tasks.tell_version).collect(), otherwise)
        if versions != [VERSION]:
            raise otherwise

    def find(self, source: object) -> SparkSource | None:
        """The source, if Spark reads it by itself: Parquet wherever it lies, a table of the catalog, a frame."""
        if is_frame(source):
            return SparkSource(self, source, None)
        if not isinstance(source, str | os.PathLike):
            return None
        text = os.fspath(source)
        if text.startswith(CATALOG):
            table = text.removeprefix(CATALOG)
            frame = _session.run(lambda: self._sql.table(table), _no_table(text))
            return SparkSource(self, frame, table.rpartition(".")[2].strip("`"))
        scheme, mark, _ = text.partition("://")
        if mark:
            return self._parquet(text, text) if scheme in STORES else None
        path = Path(text)
        if (not path.is_dir() and not path.name.lower().endswith(".parquet")) or not path.exists():
            return None
        return self._parquet(text, "file://" + _GLOB.sub(r"\\\1", str(path.resolve())))

    def _parquet(self, source: str, place: str) -> SparkSource:
        read = self._sql.read
        frame = _session.run(lambda: read.parquet(place), _no_table(source))
        inside = _session.run(lambda: read.option("recursiveFileLookup", "true").parquet(place).columns)
        stem = source.rstrip("/").rpartition("/")[2].removesuffix(".parquet")
        return SparkSource(self, frame, stem, frozenset(frame.columns) - frozenset(inside))

    def keep(self, words: str, chunks: Iterable[Cells], total: int) -> SparkSheet:
        """Keep a table that this process reads, and that comes in `total` chunks."""
        parcels = []
        with progress.steps(words, total) as step:
            for cells in chunks:
                parcels.append(tasks.Parcel(len(cells[0]), None, None, bundle_cells(cells)))
                step()
        return SparkSheet.persist(self, self.run(lambda context: context.parallelize(parcels, max(1, len(parcels)))))

    def run(self, call: Callable[[Any], Any]) -> Any:
        """What a job gives, or a refusal."""
        return _session.run(lambda: call(self._context))


@dataclass(frozen=True, slots=True, eq=False)
class SparkSource:
    """A table that Spark reads: `keys` are columns that the names of its folders state."""

    engine: SparkEngine
    frame: Any
    stem: str | None
    keys: frozenset[str] = frozenset()

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.frame.columns)

    @property
    def rows(self) -> int:
        count: int = _session.run(self.frame.count)
        return count

    def keep(self, words: str, columns: Sequence[str], fit: Fit) -> SparkSheet:
        """Let the cluster read these columns and hold them to the schema."""
        with progress.steps(words, 1) as step:
            sheet = SparkSheet.persist(self.engine, self._parcels(columns, tasks.Fitter(fit)))
            step()
        return sheet

    def chunks(self, columns: Sequence[str]) -> Iterator[Any]:
        """Bring these columns to this process, as Arrow tables."""
        for parcel in _fetch(self.engine, self._parcels(columns, tasks.carry)):
            yield tasks.unpack(parcel)

    def _parcels(self, columns: Sequence[str], task: Callable[[Iterable[Any]], Iterator[Any]]) -> Any:
        chosen = self.frame.select([self.frame[f"`{name.replace('`', '``')}`"] for name in columns])
        return _session.run(lambda: chosen.mapInArrow(task, tasks.PARCEL).rdd.map(_parcel))


class SparkSheet:
    """A table in parcels, kept on the disks of the cluster."""

    def __init__(self, engine: SparkEngine, parcels: Any) -> None:
        self._engine, self._parcels = engine, parcels
        self.ordered = False  # Spark packs files by their sizes, which follow from what is in them
        heads = engine.run(lambda _: self._parcels.map(_head).collect())
        problems = sorted({(column or "", words) for _, words, column in heads if words is not None})
        if problems:
            column, words = problems[0]
            raise DataError(words, column=column or None)
        self.n = sum(rows for rows, _, _ in heads)

    @classmethod
    def persist(cls, engine: SparkEngine, parcels: Any) -> SparkSheet:
        """A table whose parcels are written down, for as long as somebody has it."""
        written = parcels.persist(_pyspark.StorageLevel.DISK_ONLY)
        sheet = cls(engine, written)
        weakref.finalize(sheet, _drop, written).atexit = False
        return sheet

    def chunks(self, columns: Sequence[int]) -> Iterator[Cells]:
        for parcel in _fetch(self._engine, self._parcels):
            cells = unbundle_cells(parcel.cells)
            yield [cells[column] for column in columns]

    def each(self, words: str, columns: Sequence[int], task: ChunkTask, given: Given) -> Iterator[Given]:
        """The task's answer for every parcel."""
        sent = self._engine.run(lambda context: context.broadcast(bundle(given)))
        visitor = tasks.ChunkVisitor(columns, task, sent)
        try:
            with progress.steps(words, 1) as step:
                for answer in self._engine.run(lambda _: self._parcels.map(visitor).collect()):
                    yield unbundle(answer)
                step()
        finally:
            _drop(sent)

    def group(self, columns: Sequence[int], codes: Codes, groups: int) -> Iterator[SparkSheet]:
        """Each group is picked from the whole table whenever it is looked at: there are as many as labels, so few."""
        for group in range(groups):
            yield SparkSheet(self._engine, self._parcels.map(tasks.Grouper(columns, codes, group)).filter(_rows))

    @contextmanager
    def tile(self, columns: Sequence[int], shape: Callable[[Cells], Floats], *, size: int) -> Iterator[SparkTiles]:
        """Cut the records into tiles, which last as long as the block."""
        with progress.steps("cutting the table into tiles", 2) as step:
            sampler = tasks.Sampler(columns, shape, max(1, self.n // SAMPLE))
            sample = np.concatenate(
                [unbundle(part)["points"] for part in self._engine.run(lambda _: self._parcels.map(sampler).collect())]
            )
            tiling, width = plan_tiles(sample, self.n, size), sample.shape[1]
            step()
            plan = self._engine.run(lambda context: context.broadcast(tasks.write_plan(tiling)))
            dealer = tasks.Dealer(columns, shape, plan)
            dealt = self._parcels.mapPartitions(dealer).partitionBy(tiling.tiles, _same)
            kept = dealt.mapPartitions(tasks.Sorter(width)).persist(_pyspark.StorageLevel.DISK_ONLY)
            step()
        try:
            yield SparkTiles(self._engine, kept, tiling.tiles, width)
        finally:
            _drop(kept)
            _drop(plan)


class SparkTiles:
    """Tiles on the disks of the cluster, one to a partition; those without a record are left out."""

    def __init__(self, engine: SparkEngine, kept: Any, tiles: int, width: int) -> None:
        self._engine, self._kept, self._width = engine, kept, width
        self._places: list[int] = []
        boxes: list[dict[str, Any]] = []
        with progress.steps("sorting tiles", PARTS) as step:
            for wave in range(0, tiles, WAVE):
                places = list(range(wave, min(tiles, wave + WAVE)))
                for index, box in engine.run(partial(_run_job, kept, tasks.Boxer(width), places)):
                    self._places.append(index)
                    boxes.append(unbundle(box))
                _advance(step, places, tiles)
        self.low, self.high = np.array([box["low"] for box in boxes]), np.array([box["high"] for box in boxes])

    def each(self, words: str, task: Task, given: Callable[[int], Given | None]) -> Iterator[tuple[int, Given]]:
        """The task's answer for every tile that something is given to; others are not touched."""
        with progress.steps(words, PARTS) as step:
            for wave in range(0, len(self._places), WAVE):
                tiles = list(range(wave, min(len(self._places), wave + WAVE)))
                arguments = {tile: bundle(what) for tile in tiles if (what := given(tile)) is not None}
                if arguments:
                    yield from zip(arguments, self._answers(task, arguments), strict=True)
                _advance(step, tiles, len(self._places))

    def _answers(self, task: Task, told: dict[int, bytes]) -> Iterator[Given]:
        """What is given holds records: it is broadcast, which Spark encrypts, and no part of any plan."""
        places = [self._places[tile] for tile in told]
        sent = self._engine.run(lambda context: context.broadcast(dict(zip(places, told.values(), strict=True))))
        visitor = tasks.Visitor(task, sent, self._width)
        try:
            for _, answer in self._engine.run(partial(_run_job, self._kept, visitor, places)):
                yield unbundle(answer)
        finally:
            _drop(sent)


def connect(engine: object) -> SparkEngine:
    """The engine of a session, or of the cluster that a text names; one of these a process, for as long as it runs."""
    if not isinstance(engine, str):
        return SparkEngine(engine)
    if engine not in _started:
        session = _session.start(engine)
        atexit.register(session.close)
        _started[engine] = SparkEngine(session.session)
    return _started[engine]


_started: Final[dict[str, SparkEngine]] = {}


def is_frame(thing: object) -> bool:
    """Whether this is a frame of Spark; asked without importing it."""
    return type(thing).__module__.startswith("pyspark.sql") and hasattr(type(thing), "mapInArrow")


def _fetch(engine: SparkEngine, parcels: Any) -> Iterator[tasks.Parcel]:
    """Bring parcels to this process, a part of the table at a time."""
    held = [engine.run(lambda _: parcels.toLocalIterator(prefetchPartitions=True))]
    try:
        while (parcel := _session.run(lambda: next(held[0], None))) is not None:
            yield parcel
    finally:
        with _session.quiet():  # a caller that stops early leaves a connection, which ends here
            held.clear()


def _parcel(row: Any) -> tasks.Parcel:
    return tasks.Parcel(row.rows, row.problem, row.place, bytes(row.cells))


def _head(parcel: tasks.Parcel) -> tuple[int, str | None, str | None]:
    return parcel.rows, parcel.problem, parcel.place


def _run_job(tiles: Any, task: Callable[[Any], Any], places: list[int], context: Any) -> Any:
    return context.runJob(tiles, task, places)


def _rows(parcel: tasks.Parcel) -> int:
    return parcel.rows


def _same(tile: int) -> int:
    return tile


def _advance(step: progress.Step, done: Sequence[int], of: int) -> None:
    step(PARTS * (done[-1] + 1) // of - PARTS * done[0] // of)


def _drop(held: Any) -> None:
    """Free what the cluster holds; one that is gone holds nothing."""
    with suppress(SourceError):
        _session.run(held.destroy if hasattr(held, "destroy") else held.unpersist)


def _no_table(source: str) -> SourceError:
    return SourceError(
        f"{source}: Spark finds no table there, or may not read it. Check the name, and what the cluster may read."
    )
