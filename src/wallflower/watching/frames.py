"""Frames of observations, read by the names of their columns: pandas, polars and Arrow.

What is in a cell never raises: one that is no number is NaN, which counts as the middle of its bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wallflower.data.lines import number
from wallflower.errors import DataError
from wallflower.schema.columns import list_names

Floats = NDArray[np.float64]


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
