"""Compare records by another measure than Euclid's: named metrics, and functions of the user's.

The extension of the count asks of `near` only that it is symmetric and depends on the two records alone (proof.md of
`count`, labels (E) and (R)). Each relation here is such a function by construction:

`manhattan`, `chebyshev`   differences column by column, added up or their largest, in column order
`haversine`                the distance on a sphere of two columns, latitude and longitude in degrees, in kilometres
a function of (a, b)       a distance, or whether the two are near; called both ways, and one yes is enough

The first half is known before any record is looked at: which tables a metric can compare, and what it takes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points
from wallflower.errors import DataError, ParameterError
from wallflower.names import name_callable
from wallflower.neighbours.pairs import Floats, Index, Ints, Tree, as_matrix, build_tree
from wallflower.progress import Effort
from wallflower.schema import Schema

Metric = str | Callable[[Floats, Floats], Any]

EUCLIDEAN: Final = "euclidean"
HAVERSINE: Final = "haversine"
METRICS: Final = (EUCLIDEAN, "manhattan", "chebyshev", HAVERSINE)
PAIR_NANOSECONDS: Final = 5.0  # of one column
CALL_NANOSECONDS: Final = 1_000.0  # of a function, about
MAX_RECORDS: Final = 20_000  # whose pairs are all compared by a named metric: 50 MB of bits
MAX_RECORDS_OF_FUNCTION: Final = 2_000  # four million calls


def check_metric(metric: object) -> None:
    """Refuse what is neither the name of a metric nor a function."""
    if metric not in METRICS and not callable(metric):
        raise ParameterError(
            f"metric: {metric!r} is not known. It is one of {', '.join(METRICS)}, or in Python a function of two "
            "records. Pass one of them."
        )


def metric_name(metric: Metric) -> str:
    """The metric in a release: its name, or where the function is defined.

    >>> metric_name("manhattan"), metric_name(sum)
    ('manhattan', 'custom:builtins.sum')
    """
    return metric if isinstance(metric, str) else f"custom:{name_callable(metric)}"


def check_relatable(metric: Metric, n: int, dimension: int) -> None:
    """Refuse by public facts, before the charge: too many records, columns that are not coordinates, functions that
    fail on made-up records."""
    most = MAX_RECORDS if isinstance(metric, str) else MAX_RECORDS_OF_FUNCTION
    if metric != HAVERSINE and n > most:
        raise DataError(
            f"metric: {metric_name(metric)} compares all pairs, and takes up to {most:,} records. Count fewer, or by "
            "euclidean."
        )
    if metric == HAVERSINE and dimension != 2:
        raise DataError(
            f"metric: haversine is a distance of two columns, latitude and longitude in degrees, and {dimension} are "
            "chosen. Name the two with columns."
        )
    if not isinstance(metric, str):
        try:
            read_verdict(metric(freeze_record(np.zeros(dimension)), freeze_record(np.ones(dimension))), 1.0)
        except Exception as error:
            raise ParameterError(
                f"metric: the function fails on two made-up records of {dimension} numbers, with "
                f"{type(error).__name__}. It must return a distance, or whether the two are near. Correct it."
            ) from error


def require_degrees(schema: Schema, names: tuple[str, ...]) -> None:
    """Refuse columns that the schema scales: then they are not degrees any more."""
    known = {column.name: column for column in schema.columns or ()}
    for name in names:
        if name in known and (known[name].center, known[name].scale) != (0, 1):
            raise DataError(
                f"metric: haversine takes degrees, and the schema scales {name}. Remove its center and scale.",
                column=name,
            )


def relation_effort(metric: Metric, search: Effort, n: int, dimension: int) -> Effort:
    """What a count by another metric takes: pairs are compared before the search."""
    if metric == HAVERSINE:
        return search
    each = PAIR_NANOSECONDS * dimension if isinstance(metric, str) else 2 * CALL_NANOSECONDS
    return replace(search, steps=search.steps + each * n * n, memory=search.memory + 1.2 * n * n)


def read_verdict(result: Any, radius: float) -> bool:
    """Whether a function says near: a truth value is the answer itself, a number is a distance."""
    if isinstance(result, bool | np.bool_):
        return bool(result)
    return bool(float(result) <= radius)


def freeze_record(row: Floats) -> Floats:
    """A copy that no function can write to, so that no pair depends on the calls before."""
    copy = np.array(row, dtype=np.float64)
    copy.flags.writeable = False
    return copy


Bits = NDArray[np.uint8]
EARTH_RADIUS_KM: Final = 6371.0088  # mean radius of the Earth
ALL_NEAR_SQUARED_CHORD: Final = 5.0  # above the largest square of a chord
RECORDS_PER_BLOCK: Final = 256  # records whose pairs are compared at a time


@dataclass(frozen=True, slots=True, eq=False)
class Relation:
    """A symmetric relation among records, one row of bits each; no record is related to itself.

    `counts` and `lists` are those of a `Tree`, for the same solvers.
    """

    n: int
    rows: Bits

    @property
    def starts(self) -> Ints:
        """One leaf holds all records: a relation has no places."""
        return np.array([0, self.n])

    def counts(self, cap: int, of: Index | None = None) -> Ints:
        """How many others are near each record, counted up to `cap`."""
        who = np.arange(self.n) if of is None else of
        found = [int(self._near(record).sum()) for record in who.tolist()]
        return np.minimum(np.array(found, dtype=np.int64), cap)

    def lists(self, length: int, of: Index | None = None) -> tuple[Index, Ints]:
        """The first `length` neighbours of each record, in cyclic order from its own place on, and how many."""
        who = np.arange(self.n) if of is None else of
        met, found = np.zeros((len(who), length), dtype=np.int32), np.zeros(len(who), dtype=np.int64)
        for row, record in enumerate(who.tolist()):
            near = np.flatnonzero(self._near(record))
            first = np.roll(near, -int(np.searchsorted(near, record)))[:length]
            met[row, : len(first)], found[row] = first, len(first)
        return met, found

    def _near(self, record: int) -> Bits:
        return np.unpackbits(self.rows[record], count=self.n)


@dataclass(frozen=True, slots=True, eq=False)
class RelatedPoints:
    """Records of which only their relation matters: the facts of `Points` that a count goes by, and who is near."""

    n: int
    dimension: int
    places: tuple[tuple[int, ...], ...]
    values: Tree | Relation


def relate(values: Floats, metric: Metric, radius: float) -> Tree | Relation:
    """Who is near whom among these records.  (R)"""
    if metric == HAVERSINE:
        return build_tree(unit_vectors(values), squared_chord(radius))
    rows = _by_function(values, metric, radius) if callable(metric) else _by_columns(values, metric, radius)
    return Relation(n=len(values), rows=rows)


def relate_points(points: Points, metric: Metric, radius: float) -> RelatedPoints:
    """The records with who is near whom in the place of their values."""
    related = relate(points.values, metric, radius)
    return RelatedPoints(n=points.n, dimension=points.dimension, places=points.places, values=related)


def unit_vectors(values: Floats) -> Floats:
    """Latitudes and longitudes as places on a sphere of radius 1, each from its own record alone.

    The functions of `math` are called record by record: what NumPy computes may depend on the place in the array.
    """
    places = []
    for latitude, longitude in np.radians(as_matrix(values)).tolist():
        places.append(
            (math.cos(latitude) * math.cos(longitude), math.cos(latitude) * math.sin(longitude), math.sin(latitude))
        )
    return np.array(places, dtype=np.float64)


def squared_chord(radius: float) -> float:
    """Return the square of the chord that spans a distance in kilometres on the Earth; chords grow with the distance.

    >>> round(squared_chord(20_015.0) / 4, 6), squared_chord(20_016.0)
    (1.0, 5.0)
    """
    angle = radius / EARTH_RADIUS_KM
    return ALL_NEAR_SQUARED_CHORD if angle >= math.pi else (2.0 * math.sin(angle / 2.0)) ** 2


def _by_columns(values: Floats, metric: str, radius: float) -> Bits:
    """All pairs by a named metric; each entry is computed from its two records alone, in column order."""
    rows = []
    with np.errstate(over="ignore"):  # a sum beyond all numbers is beyond the radius
        for start in range(0, len(values), RECORDS_PER_BLOCK):
            block = values[start : start + RECORDS_PER_BLOCK]
            total = np.zeros((len(block), len(values)))
            for column in range(values.shape[1]):
                gap = np.abs(block[:, column, None] - values[None, :, column])
                total = total + gap if metric == "manhattan" else np.maximum(total, gap)
            near = total <= radius
            near[np.arange(len(block)), start + np.arange(len(block))] = False
            rows.append(np.packbits(near, axis=1))
    return np.concatenate(rows)


def _by_function(values: Floats, function: Callable[[Floats, Floats], Any], radius: float) -> Bits:
    """All pairs, both ways. Where the function fails the two are not near: an exception would tell about them."""
    records = [freeze_record(row) for row in values]

    def is_near(one: Floats, other: Floats) -> bool:
        try:
            return read_verdict(function(one, other), radius)
        except Exception:  # noqa: BLE001 - it is not our code, and it is looking at records
            return False

    near = np.zeros((len(values), len(values)), dtype=np.bool_)
    with warnings.catch_warnings(), np.errstate(all="ignore"):  # a warning would tell, too
        warnings.simplefilter("ignore")
        for one, first in enumerate(records):
            for other in range(one):
                near[one, other] = near[other, one] = is_near(first, records[other]) | is_near(records[other], first)
    return np.packbits(near, axis=1)
