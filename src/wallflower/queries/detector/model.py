"""A detector that was released: spreads, grids and noisy counts. All it says of any record is post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from wallflower.data import Points, Table
from wallflower.data.cells import scale_columns
from wallflower.data.scans import read_parts
from wallflower.data.sources import matrix
from wallflower.errors import ParameterError
from wallflower.queries.detector.grids import CELLS, SIDE, Floats, Grid, Ints, parts_of
from wallflower.schema import Schema

THRESHOLDS: Final = 2001  # to choose among


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """What was released of a table with these columns; `threshold` if a share of outliers was wanted."""

    columns: tuple[str, ...]
    grids: tuple[Grid, ...]
    counts: Ints
    floor: float
    schema: Schema  # by which records are read, scaled and clipped as the fitted ones were
    threshold: float | None = None

    @cached_property
    def surprises(self) -> Floats:
        """How unusual each cell of each grid is: base - ln of its count, none below the floor."""
        return np.stack([_surprise(counts, self.floor) for counts in self.counts])

    def score(self, values: Floats) -> Floats:
        """How unusual records are: the mean over the grids. Term by term in one order, so that a record's score is a
        function of the record alone.  (H)
        """
        found = np.zeros(len(values))
        for part in parts_of(values):
            sums = np.zeros(len(found[part]))
            for grid, surprise in zip(self.grids, self.surprises, strict=True):
                sums += surprise[grid.cells(values[part])]
            found[part] = sums / len(self.grids)
        return found

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest score that the tables allow."""
        count = len(self.grids)
        return float(self.surprises.min(axis=1).sum() / count), float(self.surprises.max(axis=1).sum() / count)

    @property
    def thresholds(self) -> Floats:
        """Those that one is chosen among, rising."""
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
        if isinstance(records, Points | Table):
            points = records if isinstance(records, Points) else records.points(self.columns)
            scales = {column.name: float(column.scale) for column in self.schema.columns or ()}
            yield points.subspace(self.columns).rescale(scales).values
        elif isinstance(records, list | tuple | np.ndarray):
            yield Points.from_array(matrix(records), columns=self.columns, schema=self.schema).values
        else:
            for cells in read_parts(records, self.schema):
                yield scale_columns(cells, self.schema)

    def split_score(self, values: Floats) -> Floats:
        """The score of each record, column by column."""
        found = np.zeros((len(values), len(self.columns)))
        for part in parts_of(values):
            for grid, counts, surprise in zip(self.grids, self.counts, self.surprises, strict=True):
                cells = grid.cells(values[part])
                both = surprise[cells]
                alone = [
                    side[place] for side, place in zip(self._sides(counts), (cells // SIDE, cells % SIDE), strict=True)
                ]
                for column, own, other in zip(grid.columns, alone, alone[::-1], strict=True):
                    found[part, column] += (own + both - other) / 2
        return found / len(self.grids)

    def _sides(self, counts: Ints) -> tuple[Floats, Floats]:
        """How unusual each row and each column of a grid is by itself."""
        square = counts.reshape(SIDE, SIDE)
        return _surprise(square.sum(axis=1), self.floor), _surprise(square.sum(axis=0), self.floor)

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": list(self.columns),
            "grids": [grid.to_json() for grid in self.grids],
            "counts": self.counts.tolist(),
            "floor": self.floor,
            "threshold": self.threshold,
            "schema": self.schema.to_json(),
        }

    @classmethod
    def of(cls, given: Any) -> Self:
        """What was released: a release of `detector`, its value, or either as plain JSON."""
        value = given if isinstance(given, Mapping) else getattr(given, "value", None)
        if isinstance(value, Mapping) and isinstance(value.get("value"), Mapping):
            value = value["value"]
        if not isinstance(value, Mapping):
            raise _misbuilt()
        return cls.from_json(value)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The detector that `to_json` described."""
        try:
            made = cls(
                columns=tuple(map(str, stored["columns"])),
                grids=tuple(Grid.from_json(grid) for grid in stored["grids"]),
                counts=np.array(stored["counts"], dtype=np.int64),
                floor=float(stored["floor"]),
                threshold=None if stored.get("threshold") is None else float(stored["threshold"]),
                schema=Schema.from_json(stored["schema"]),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            raise _misbuilt() from None
        made._require_whole()
        return made

    def _require_whole(self) -> None:
        places = {column for grid in self.grids for column in grid.columns}
        is_whole = (
            self.grids
            and self.counts.shape == (len(self.grids), CELLS)
            and places <= set(range(len(self.columns)))
            and self.floor >= 1
            and all(0 < width < math.inf for grid in self.grids for width in grid.widths)
        )
        if not is_whole:
            raise _misbuilt()


def _surprise(counts: Ints, floor: float) -> Floats:
    """Less the fuller a cell is; 0 for the average record."""
    logs = np.log(np.maximum(counts, floor))
    weights = np.maximum(counts, 0)
    total = int(weights.sum())
    base = float(weights @ logs) / total if total else float(logs.mean())
    found: Floats = base - logs
    return found


def floor_of(grids: int, epsilon: Fraction) -> float:
    """Counts below the noise say nothing."""
    return float(max(Fraction(1), 2 * grids / epsilon))


def misses(scores: Floats, thresholds: Floats, wanted: int) -> Ints:
    """By how many records each threshold misses the number wanted above it; one record moves it by 1 at most.  (H)"""
    above = len(scores) - np.searchsorted(np.sort(scores), thresholds, side="right")
    return np.abs(above - wanted).astype(np.int64)


def _misbuilt() -> ParameterError:
    return ParameterError(
        "detector: it is not one, or is not whole. Pass what `detector` released, or the file that it was saved to."
    )
