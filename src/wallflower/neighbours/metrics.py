"""Names of metrics, and which tables each of them can compare: what is known before any record is looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.names import name_callable
from wallflower.progress import Effort
from wallflower.schema import Schema

Floats = NDArray[np.float64]
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
