"""A detector that was released: spreads, grids and noisy counts. All it says of any record is post-processing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Self, overload

import numpy as np

from wallflower.data import Points, Table, TiledPoints, TiledTable
from wallflower.data.cells import check_numbers, scale_columns
from wallflower.data.scans import read_parts
from wallflower.data.sources.files import view_matrix
from wallflower.errors import DataError, ParameterError
from wallflower.machine.heavy import pyarrow as _pa
from wallflower.names import account_name
from wallflower.queries.detector.drift import Drift, drift_of
from wallflower.queries.detector.grids import (
    CELLS,
    MIN_COMPILED_RECORDS,
    SIDE,
    Floats,
    Grid,
    Ints,
    add_surprises,
    parts_of,
)
from wallflower.schema import Column, Schema
from wallflower.schema.columns import list_names

MODELS: Final = ("detector", "threshold")  # queries whose releases hold a detector
ARROW_KEY: Final = b"wallflower-detector"
MAX_GRIDS_OF_OTHERS: Final = 1000  # of a detector that somebody else released
MAX_COUNT: Final = 2**50  # of a cell, so that sums are whole numbers in floats too
THRESHOLDS: Final = 2001  # to choose among


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """What a detector has released, ready to score records.

    columns        the columns that it was fitted to
    grids          where each grid cuts them
    counts         how many records each cell has, noisily
    floor          what an empty cell counts as
    schema         by which records are read, scaled and clipped as the fitted ones were
    threshold      above it a record is flagged, if a share of outliers was wanted
    contamination  the share of outliers that was wanted
    miss           by how much the share of the fitted records above the threshold misses it at most, with 95 %
    """

    columns: tuple[str, ...]
    grids: tuple[Grid, ...]
    counts: Ints
    floor: float
    schema: Schema
    threshold: float | None = None
    contamination: Fraction | None = None
    miss: float = 1.0

    def __add__(self, other: object) -> Model:
        """The detector of the records of both: counts add up, and so do the squares of their noise.  (A)

        Both have the same grids: one was fitted `like` the other. A threshold is that of one of them and is dropped.
        """
        if not isinstance(other, Model):
            return NotImplemented
        self.require_same_grids(other)
        return replace(
            self,
            counts=self.counts + other.counts,
            floor=math.hypot(self.floor, other.floor),
            threshold=None,
            contamination=None,
            miss=1.0,
        )

    def __radd__(self, other: object) -> Model:
        """So that `sum` adds up detectors."""
        return self if other == 0 else NotImplemented

    def require_same_grids(self, other: Model) -> None:
        """Refuse a detector whose counts mean something else.

        other  a detector whose counts are to be added
        """
        if self.columns != other.columns:
            raise ParameterError(
                f"detector: these are of other columns ({list_names(other.columns)}, and not "
                f"{list_names(self.columns)}), so their counts do not add up. Fit one like the other."
            )
        for mine, theirs in zip(self.schema.columns or (), other.schema.columns or (), strict=True):
            if _reading_of(mine) != _reading_of(theirs):
                raise ParameterError(
                    f"detector: column {mine.name!r} was read by other categories, another scale, centre or unit, so "
                    "the counts do not add up. Fit one like the other, by the same schema."
                )
        if self.grids != other.grids:
            raise ParameterError(
                "detector: these have other grids, drawn by another key or by other spreads, so their counts do not "
                "add up. Fit one like the other (like = its release)."
            )

    @property
    def scales(self) -> dict[str, float]:
        """What each column was scaled by."""
        return {column.name: float(column.scale) for column in self.schema.columns or ()}

    @cached_property
    def surprises(self) -> Floats:
        """How unusual each cell of each grid is: base - ln of its count, none below the floor."""
        return np.stack([_surprise(counts, self.floor) for counts in self.counts])

    def score(self, values: Floats) -> Floats:
        """How unusual records are: the mean over the grids."""
        return add_surprises(values, self.grids, self.surprises)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest score that the tables allow."""
        count = len(self.grids)
        return float(self.surprises.min(axis=1).sum() / count), float(self.surprises.max(axis=1).sum() / count)

    @property
    def thresholds(self) -> Floats:
        """The candidates that a threshold is chosen among, rising."""
        return np.linspace(*self.ends, THRESHOLDS)

    def decision_function(self, records: object) -> Floats:
        """How unusual records are, the greater the more so: of a file, a frame or an array with the columns that the
        detector was fitted to. Above `threshold` they are flagged."""
        return np.concatenate([self.score(values) for values in self.parts(records)])

    def predict(self, records: object) -> Ints:
        """1 for the records that are flagged, 0 for the others."""
        return (self.decision_function(records) > self.require_threshold()).astype(np.int64)

    def contributions(self, records: object) -> Floats:
        """By how much each column adds to the score of each record: Shapley's value, which adds up to the score."""
        return np.concatenate([self.split_score(values) for values in self.parts(records)])

    def largest_contributions(self, records: object) -> Floats:
        """The largest contribution of any column to the score of each record. The score is a mean, in which ordinary
        columns can hide one that is extreme: a record with a small score and a large contribution is worth a look."""
        largest: Floats = self.contributions(records).max(axis=1)
        return largest

    def drift(self, records: object) -> Drift:
        """Whether the share of these records that is flagged is still the share that was wanted of the fitted ones."""
        records_in, flagged, threshold = 0, 0, self.require_threshold()
        for values in self.parts(records):
            records_in += len(values)
            flagged += int((self.score(values) > threshold).sum())
        return drift_of(records_in, flagged, wanted=self.contamination, miss=self.miss)

    def require_threshold(self) -> float:
        """Where flags begin, or a refusal."""
        if self.threshold is None:
            raise ParameterError(
                "detector: it was fitted without a contamination, so it has scores and no flags. "
                "Fit one with a contamination, or choose a threshold of your own for its scores."
            )
        return self.threshold

    def parts(self, records: object) -> Iterator[Floats]:
        """Records as the fitted ones were read, scaled and clipped, some at a time."""
        if isinstance(records, Table | Points):
            yield self.project(records).values
        elif isinstance(records, list | tuple | np.ndarray):
            yield from self._row_parts(records) if self.labels else self._array_parts(view_matrix(records))
        else:
            for cells in read_parts(records, self.schema):
                yield scale_columns(cells, self.schema)

    @overload
    def project(self, records: Table | Points) -> Points: ...

    @overload
    def project(self, records: TiledTable) -> TiledPoints: ...

    def project(self, records: Table | TiledTable | Points) -> Points | TiledPoints:
        """Records in the columns and scales of the fitted ones, or a refusal by what is public of them."""
        if isinstance(records, Points):
            return records.subspace(self.columns).rescale(self.scales)
        self._check_labels(records.schema)
        return records.rescale(self.scales).coded_points(self.columns)

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of labels."""
        return tuple(column.name for column in self.schema.columns or () if column.categories is not None)

    def _check_labels(self, schema: Schema) -> None:
        """Refuse a table whose columns have other categories: codes would mean something else."""
        for column in schema.columns or ():
            if column.name in self.columns:
                (fitted,) = self.schema.only([column.name]).columns or ()
                if fitted.labels != column.labels:
                    raise DataError(
                        f"detector: column {column.name!r} has other categories here than in the table that the "
                        "detector was fitted to. Pass records by the same schema.",
                        column=column.name,
                    )

    def _row_parts(self, rows: Any) -> Iterator[Floats]:
        """Rows that hold labels too, as text."""
        if any(len(row) != len(self.columns) for row in rows):
            raise DataError(
                f"detector: a record has {len(self.columns)} cells, in this order: {list_names(self.columns)}."
            )
        cells = {name: _pa.array([row[at] for row in rows]) for at, name in enumerate(self.columns)}
        yield from self.parts(_pa.table(cells))

    def _array_parts(self, values: Floats) -> Iterator[Floats]:
        """Some rows at a time, column by column, so that what is computed on the way stays in the cache."""
        Points.from_array(values[:1], columns=self.columns, schema=self.schema)  # or a refusal of its shape
        for start in range(0, len(values), MIN_COMPILED_RECORDS):
            cells = np.ascontiguousarray(values[start : start + MIN_COMPILED_RECORDS].T)
            for column, numbers in zip(self.schema.columns or (), cells, strict=True):
                check_numbers(numbers, column, self.schema.clip)
            yield scale_columns(cells, self.schema)

    def split_score(self, values: Floats) -> Floats:
        """The score of each record, column by column."""
        shares = np.zeros((len(values), len(self.columns)))
        for part in parts_of(values):
            for grid, counts, surprise in zip(self.grids, self.counts, self.surprises, strict=True):
                cells = grid.cells(values[part])
                both = surprise[cells]
                alone = [
                    side[cell] for side, cell in zip(self._sides(counts), (cells // SIDE, cells % SIDE), strict=True)
                ]
                for column, first, other in zip(grid.columns, alone, alone[::-1], strict=True):
                    shares[part, column] += (first + both - other) / 2
        return shares / len(self.grids)

    def score_column(self, name: str, values: Floats) -> Floats:
        """What values of one column add to the score by themselves, whatever the others."""
        column = self.columns.index(name)
        scaled = scale_columns([np.asarray(values, dtype=np.float64)], self.schema.only([name]))[:, 0]
        scores = np.zeros(len(scaled))
        for grid, counts in zip(self.grids, self.counts, strict=True):
            for at, index in enumerate(grid.columns):
                if index == column:
                    scores += self._sides(counts)[at][grid.side(at, scaled)]
        return scores / len(self.grids)

    def map_scores(self, columns: tuple[str, str], first: Floats, second: Floats) -> Floats:
        """What two columns add to the score, a row for each value of the first and a column for each of the second:
        the others are summed over, in grids that have one of the two, and add nothing in those that have neither."""
        places = [self.columns.index(name) for name in columns]
        scaled = [
            scale_columns([np.asarray(values, dtype=np.float64)], self.schema.only([name]))[:, 0]
            for name, values in zip(columns, (first, second), strict=True)
        ]
        scores = np.zeros((len(scaled[0]), len(scaled[1])))
        for grid, counts, surprise in zip(self.grids, self.counts, self.surprises, strict=True):
            sides = {
                places.index(column): (at, grid.side(at, scaled[places.index(column)]))
                for at, column in enumerate(grid.columns)
                if column in places
            }
            if len(sides) == 2:
                table = surprise.reshape(SIDE, SIDE)
                scores += (table.T if sides[0][0] else table)[np.ix_(sides[0][1], sides[1][1])]
            for axis, (at, cells) in sides.items() if len(sides) == 1 else ():
                alone = self._sides(counts)[at][cells]
                scores += alone[None, :] if axis else alone[:, None]
        return scores / len(self.grids)

    def _sides(self, counts: Ints) -> tuple[Floats, Floats]:
        """How unusual each row and each column of a grid is by itself."""
        square = counts.reshape(SIDE, SIDE)
        return _surprise(square.sum(axis=1), self.floor), _surprise(square.sum(axis=0), self.floor)

    def to_json(self) -> dict[str, Any]:
        """What was released, as plain JSON."""
        return {
            "columns": list(self.columns),
            "grids": [grid.to_json() for grid in self.grids],
            "counts": self.counts.tolist(),
            "floor": self.floor,
            "threshold": self.threshold,
            "contamination": None if self.contamination is None else str(self.contamination),
            "miss": self.miss,
            "schema": self.schema.to_json(),
        }

    def to_arrow(self) -> Any:
        """A pyarrow Table with a row for each grid; what there is once is in its metadata. Released numbers only."""
        whole = self.to_json()
        grids, counts = whole.pop("grids"), _pa.array(self.counts.ravel().astype(np.int64))
        columns = {name: _pa.array([grid[name] for grid in grids]) for name in ("columns", "widths", "offsets")}
        columns["counts"] = _pa.FixedSizeListArray.from_arrays(counts, CELLS)
        del whole["counts"]
        return _pa.table(columns).replace_schema_metadata({ARROW_KEY: json.dumps(whole)})

    @classmethod
    def from_arrow(cls, table: Any) -> Self:
        """The detector that `to_arrow` described."""
        try:
            whole = json.loads((table.schema.metadata or {})[ARROW_KEY])
            rows = table.to_pylist()
        except (KeyError, ValueError):
            raise _model_error() from None
        if not isinstance(whole, Mapping):
            raise _model_error()
        return cls.from_json({**whole, "grids": rows, "counts": [row.get("counts") for row in rows]})

    @classmethod
    def of(cls, released: Any) -> Self:
        """What was released: a release of `detector`, its value, or either as plain JSON."""
        value = released if isinstance(released, Mapping) else getattr(released, "value", None)
        if isinstance(value, Mapping) and isinstance(value.get("value"), Mapping):
            value = value["value"]
        if not isinstance(value, Mapping):
            raise _model_error()
        return cls.from_json(value)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The detector that `to_json` described."""
        try:
            columns = tuple(map(str, stored["columns"]))
            model = cls(
                columns=columns,
                grids=tuple(Grid.from_json(grid) for grid in stored["grids"]),
                counts=np.array(stored["counts"], dtype=np.int64),
                floor=float(stored["floor"]),
                threshold=None if stored.get("threshold") is None else float(stored["threshold"]),
                contamination=None if stored.get("contamination") is None else Fraction(stored["contamination"]),
                miss=float(stored.get("miss", 1.0)),
                schema=Schema.from_json(stored["schema"]).only(columns),  # a ledger keeps no order of names
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            raise _model_error() from None
        model._require_whole()
        return model

    def _require_whole(self) -> None:
        places = {column for grid in self.grids for column in grid.columns}
        is_whole = (
            self.grids
            and self.counts.shape == (len(self.grids), CELLS)
            and places <= set(range(len(self.columns)))
            and 1 <= self.floor < math.inf
            and all(0 < width < math.inf for grid in self.grids for width in grid.widths)
            and all(math.isfinite(offset) for grid in self.grids for offset in grid.offsets)
        )
        if not is_whole:
            raise _model_error()


def require_detector(number: object) -> None:
    """Refuse a number that cannot be an entry of a ledger."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 2**31:
        raise ParameterError(
            "detector: that is neither a release of detector nor its number in the ledger. Pass one of them."
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """Where a released detector cuts its columns, and its counts where others are added to them: public, as JSON."""

    text: str

    @classmethod
    def of(cls, released: Any, *, with_counts: bool) -> Self:
        """The layout of a release of `detector`, of its value, or of either as plain JSON."""
        value = released if isinstance(released, Mapping) else getattr(released, "value", None)
        if isinstance(value, Mapping) and isinstance(value.get("value"), Mapping):
            value = value["value"]
        if not isinstance(value, Mapping):
            raise _model_error()
        named = {name: value[name] for name in ("columns", "grids", "schema") if name in value}
        kept = {name: value.get(name, default) for name, default in (("key", ""), ("spreads", {}), ("labels", []))}
        counts = {name: value.get(name) for name in ("counts", "floor")} if with_counts else {}
        layout = cls(json.dumps(named | kept | counts, ensure_ascii=False, sort_keys=True))
        layout._require_whole()
        return layout

    def _require_whole(self) -> None:
        """Refuse before a charge what a release could not be made of."""
        stated, model = self.to_json(), self.model
        spreads, labels = stated["spreads"], stated["labels"]
        is_whole = (
            isinstance(stated["key"], str)
            and isinstance(spreads, dict)
            and isinstance(labels, list)
            and {*spreads, *labels} <= {*model.columns}
            and {*labels} == {*model.labels}
            and all(isinstance(spread, int | float) and 0 < spread < math.inf for spread in spreads.values())
            and len(model.grids) <= MAX_GRIDS_OF_OTHERS
            and np.abs(model.counts).max() <= MAX_COUNT
        )
        if not is_whole:
            raise _model_error()

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def model(self) -> Model:
        """The detector, with its counts if they were kept, else without any record."""
        value = self.to_json()
        if not isinstance(value.get("grids"), list):
            raise _model_error()
        empty = {"counts": [[0] * CELLS] * len(value["grids"]), "floor": 1.0}
        return Model.from_json(empty | value)


def _reading_of(column: Column) -> tuple[Any, ...]:
    """How a cell of a column becomes a coordinate."""
    return column.labels, float(column.scale), float(column.center), column.unit, column.since


def take_model(
    number: object,
    find: Callable[[int], Mapping[str, Any] | None],
    table: Table | TiledTable | Points,
    *,
    needs_threshold: bool = True,
) -> Model:
    """The detector of an entry of the ledger, which can flag these records; refused by what is public of both."""
    assert isinstance(number, int)
    stored = find(number)
    if stored is None or stored["kind"] not in MODELS:
        raise ParameterError(
            f"detector: entry {number} of the ledger is not a release of detector. Fit one first, and pass what it "
            "gives."
        )
    if len({account_name(name) or name for name in (str(stored["dataset"]), table.name)}) > 1:
        raise ParameterError(
            f"detector: release {number} is of another data set than {table.name}. Pass one of the same."
        )
    model = Model.of(stored)
    if needs_threshold:
        model.require_threshold()
    missing = [name for name in model.columns if name not in table.columns]
    if missing:
        raise DataError(f"detector: the table has no column {missing[0]!r}, which it was fitted to.")
    model.project(table)  # or a refusal of its columns
    return model


def _surprise(counts: Ints, floor: float) -> Floats:
    """Less the fuller a cell is; 0 for the average record."""
    logs = np.log(np.maximum(counts, floor))
    weights = np.maximum(counts, 0)
    total = int(weights.sum())
    base = float(weights @ logs) / total if total else float(logs.mean())
    surprise: Floats = base - logs
    return surprise


def count_above(scores: Floats, thresholds: Floats) -> Ints:
    """How many scores are above each threshold; counts of parts add up.  (H)"""
    above: Ints = len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right")
    return above


def misses(above: Ints, wanted: int) -> Ints:
    """By how many records each threshold misses the number wanted above it; one record moves it by 1 at most.  (H)"""
    return np.abs(above - wanted).astype(np.int64)


def _model_error() -> ParameterError:
    return ParameterError(
        "detector: it is not one, or is not whole. Pass what `detector` released, or the file that it was saved to."
    )
