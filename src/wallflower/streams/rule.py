"""From an observation to a decision, by public facts alone: how entries are read, measured and judged.

A frame (pandas, polars, Arrow) is read by the names of its columns. No cell raises: one that is not a number is NaN,
which counts as the middle of its bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Column, Schema
from wallflower.data.cells import scale_columns
from wallflower.data.lines import number
from wallflower.errors import DataError, ParameterError
from wallflower.noise import Noise
from wallflower.queries.shift import Shift
from wallflower.queries.shift.charts import Chart
from wallflower.queries.watch import Watch
from wallflower.queries.watch.detectors import Detector, Output, Staircase, Table
from wallflower.queries.watch.statistics import Statistic
from wallflower.schema.columns import list_names, pick

Floats = NDArray[np.float64]
StreamQuery = Watch | Shift
Memory = tuple[int, ...]
Observation = float | Sequence[Any] | Mapping[str, Any] | NDArray[Any] | None


class Rule:
    """From an observation to a decision, by public facts alone."""

    def __init__(self, query: StreamQuery, facts: Schema) -> None:
        self.query, self.columns, self._facts = query, facts.names or (), facts
        self.gauge = query.statistic_on(len(self.columns), facts)
        self.detector: Detector | Chart
        if isinstance(query, Watch):
            self.detector = query.detector(self.gauge)
            query.require_reachable(self.gauge)
            self.has_scores, statistic = query.scores, query.statistic
        else:
            self.detector, self.has_scores, statistic = query.chart(self.gauge), True, "sum"
        self._known = frozenset(self.columns)
        self._season = query.seasonal_baseline
        self.is_single = len(self.columns) == 1 and statistic == "sum"
        self._is_plain = all(map(_is_plain, facts.columns or (), self.gauge.bounds.low, self.gauge.bounds.high))

    @property
    def needs_dates(self) -> bool:
        """Whether a phase is read from a calendar."""
        return self._season is not None and self._season.season.is_cycle

    def row(self, x: Observation) -> list[float]:
        """The entries of one observation, NaN where one is missing; refuses another number of them, or other names."""
        if _is_named(x):
            cells_of: dict[Any, Any] = dict(x.items())
            if self._season is not None:
                cells_of.pop(self._season.time, None)
            if not cells_of.keys() <= self._known:
                raise DataError(
                    f"an observation has names that are not columns; the columns are {list_names(self.columns)}. "
                    "Leave the others out."
                )
            return [number(cells_of.get(name)) for name in self.columns]
        many = isinstance(x, Sequence) and not isinstance(x, str | bytes)
        cells: Sequence[Any] = x.ravel() if isinstance(x, np.ndarray) else x if many else [x]  # type: ignore[assignment]
        if len(cells) != len(self.columns):
            raise DataError(
                f"an observation has {len(self.columns)} entries here ({list_names(self.columns)}). "
                "Pass as many, in order."
            )
        return [number(cell) for cell in cells]

    def row_or_missing(self, x: Any) -> list[float]:
        """The same, and NaN for every entry of an observation that is not built as the columns are."""
        try:
            return self.row(x)
        except Exception:  # noqa: BLE001 - an observation may be of any type, and none may end a batch
            return [math.nan] * len(self.columns)

    def entry(self, x: Observation) -> Any:
        """One observation as a quick decision takes it: a number, or the row."""
        return self.row(x)[0] if self.is_single else self.row(x)

    def in_spreads(self, rows: Any, given: Any, times: Sequence[str] | None) -> Any:
        """Observations as they are measured: by phase in spreads of theirs, else as they came."""
        season = self._season
        if season is None:
            return rows
        if season.time is not None and times is None:
            times = times_of(given, season.time)
        if season.time is not None and (times is None or len(times) != len(rows)):
            raise DataError(
                f"the phase of an observation is read off its time ({season.time}), and there is not one for each. "
                "Pass times=[...] with the batch, or a frame that has them."
            )
        places = season.buckets(times, len(rows))
        found = self.read_rows(rows)
        return season.standardise(scale_columns(found.T, self._facts), places)

    def measure(self, rows: Any) -> NDArray[np.int64]:
        """The distance of each observation."""
        found = self.read_rows(rows)
        is_ready = self._is_plain or self._season is not None
        return self.gauge.measure(found if is_ready else scale_columns(found.T, self._facts))

    def start(self) -> Memory:
        """What is remembered before the first observation."""
        return self.detector.start() if isinstance(self.detector, Chart) else ()

    def decide(
        self,
        distances: NDArray[np.int64],
        first: int,
        memory: Memory,
        noise: Noise,
        *,
        secret: Memory,
        spent: int,
        max_spent: int | None,
    ) -> tuple[Output, Memory]:
        """Decide about observations of which the first has this number; return what is remembered after them, too.

        The score of a shift is the observation where it began: negative where the mean fell, 0 without an alarm.
        """
        if not isinstance(self.detector, Chart):
            return self.detector.decide(distances, secret, spent, noise, max_spent=max_spent), memory
        progress = self.detector.decide(
            distances, first, memory, noise, secret=secret, spent=spent, max_spent=max_spent
        )
        alarms, onsets = np.array(progress.alarms, dtype=np.bool_), np.array(progress.onsets, dtype=np.int64)
        return Output(alarms, progress.spent, onsets), progress.memory

    def read_rows(self, rows: Any, read: Callable[[Any], list[float]] | None = None) -> Floats:
        """The entries of observations as numbers, row by row: none has a part in how another is read.  (Q)

        An array of numbers is taken as it is; everything else is never made one array, whose type would be that of
        all entries together.
        """
        array = np.asarray(rows) if hasattr(rows, "__array__") else None
        if array is None or array.dtype.kind not in "biuf":
            entries = [(read or self.row)(x) for x in rows]
            array = np.array(entries, dtype=np.float64).reshape(-1, len(self.columns))
        return self.gauge.shape_rows(array)

    def quick(self) -> Callable[[Any, int], bool] | None:
        """The same for one observation and one word, without the overhead of batches: of a single column it takes the
        number, of several the row. None where that is not all it takes.
        """
        detector = self.detector
        if self._season is not None or self.query.level != "entry" or not isinstance(detector, Staircase):
            return None
        if detector.scores or not self._is_plain:
            return None
        table = Table.of(detector.epsilon)
        quick = _quick_number if self.is_single else _quick_row
        return quick(self.gauge, detector.threshold, table)


def _quick_number(gauge: Statistic, threshold: int, table: Table) -> Callable[[float, int], bool]:
    """What gauge and staircase do, on plain numbers: the tests hold both to the same decisions."""
    (low,), (high,) = gauge.bounds.low, gauge.bounds.high
    middle, step, move, floor = low / 2 + high / 2, gauge.step, gauge.sensitivity, math.floor
    centre = floor(low / step + 0.5) - int(gauge.measure(np.array([low]))[0])
    entries, last = table.thresholds.tolist(), len(table.thresholds) - 1
    first = table.offset + 1

    def flag(x: float, word: int) -> bool:
        if x != x:
            x = middle
        elif x < low:
            x = low
        elif x > high:
            x = high
        distance = floor(x / step + 0.5) - centre
        place = ((distance if distance >= 0 else -distance) - threshold) // move + first
        return bool(word < entries[0 if place < 0 else last if place > last else place])

    return flag


def _quick_row(gauge: Statistic, threshold: int, table: Table) -> Callable[[Sequence[float], int], bool]:
    """The gauge on one row, and the staircase on plain numbers."""
    entries, last = table.thresholds.tolist(), len(table.thresholds) - 1
    first, move, distance_of = table.offset + 1, gauge.sensitivity, gauge.distance

    def flag(row: Sequence[float], word: int) -> bool:
        distance = int(distance_of(np.array([row]))[0])
        place = (abs(distance) - threshold) // move + first
        return bool(word < entries[0 if place < 0 else last if place > last else place])

    return flag


def _is_named(x: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether entries come by name: a Mapping, or a row of a pandas frame."""
    return hasattr(x, "items") and hasattr(x, "keys") and not isinstance(x, type)


def _is_plain(column: Column, low: float, high: float) -> bool:
    """Whether the schema leaves numbers from low to high as they are."""
    is_wide = (column.low is None or column.low <= low) and (column.high is None or high <= column.high)
    return is_wide and (column.center, column.scale) == (0, 1)


def names_of(query: StreamQuery, columns: Sequence[str] | None, schema: Schema | None) -> tuple[str, ...]:
    """What the entries of an observation are called."""
    stated = None if schema is None or schema.columns is None else schema.numbers
    given = tuple(columns) if columns is not None else None
    names = query.columns or given or (None if schema is None else schema.default_numbers)
    if not names or (query.columns and given not in (None, query.columns)):
        raise ParameterError(
            "columns: a watch must know what the entries of an observation are called, and be told once. "
            "Pass columns=[...], or state them in the query or the schema."
        )
    return pick(names, names if stated is None else stated)


def rows_of(given: Any, columns: Sequence[str]) -> Any:
    """Observations one after another: a frame as numbers in the order of `columns`, everything else as it came."""
    if isinstance(given, Mapping | str | bytes):
        raise DataError(
            f"a batch is a list of observations, one after another ({list_names(columns)}), or a frame. "
            "Put a single one into a list."
        )
    cells = _cells(given)
    if cells is not None:
        return _numbers(cells, columns)
    return given if isinstance(given, Sequence) or hasattr(given, "__array__") else list(given)


def times_of(given: Any, column: str) -> list[str] | None:
    """The times of a frame, or of observations that come by name, as text; None if they have none."""
    cells = _cells(given)
    if cells is not None:
        return next((list(map(str, found)) for name, found in cells if name == column), None)
    if isinstance(given, Sequence) and given and all(isinstance(row, Mapping) and column in row for row in given):
        return [str(row[column]) for row in given]
    return None


def _cells(given: Any) -> list[tuple[str, Any]] | None:
    """The columns of a frame with their names; None if it is none."""
    if hasattr(given, "itertuples"):  # pandas
        return [(str(name), given.iloc[:, place]) for place, name in enumerate(given.columns)]
    if hasattr(given, "get_columns"):  # polars
        return list(zip(given.columns, given.get_columns(), strict=True))
    if hasattr(given, "column_names"):  # Arrow
        return list(zip(given.column_names, given.columns, strict=True))
    return None


def _numbers(cells: Iterable[tuple[str, Any]], columns: Sequence[str]) -> Floats:
    """The wanted columns side by side; others, such as one of times, are left unread."""
    known = list(cells)
    counts = Counter(name for name, _ in known)
    if any(counts[name] != 1 for name in columns):
        raise DataError(
            f"a frame is read by the names of its columns, and it needs each of {list_names(columns)} once. "
            "Rename its columns, or pass its values in this order."
        )
    found = dict(known)
    return np.column_stack([_column(found[name]) for name in columns])


def _column(cells: Any) -> Floats:
    values = np.asarray(cells)
    if values.dtype.kind in "biuf":
        with np.errstate(over="ignore"):
            return values.astype(np.float64)
    return np.array([number(cell) for cell in values], dtype=np.float64)
