"""Which columns of a table are coordinates, and which coordinates they are: public facts, wherever the records lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from wallflower.errors import DataError
from wallflower.schema import Schema
from wallflower.schema.columns import list_names, pick


def number_names(asked: Iterable[str], columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The columns asked for, all of them numbers."""
    names, numbers = pick(asked, columns), schema.numbers
    for name in names:
        if name not in numbers:
            raise DataError(
                f"column {name!r} holds labels, and points are made of numbers ({list_names(numbers) or 'none'}). "
                f"Leave it out; codes({name!r}) gives its codes.",
                column=name,
            )
    return names


def measured_names(asked: Iterable[str] | None, columns: Sequence[str], schema: Schema) -> tuple[str, ...]:
    """The columns asked for, or all: numbers, and labels that have a weight."""
    measured = schema.distance_columns
    names = pick(measured if asked is None else asked, columns)
    for name in names:
        if name not in measured:
            raise DataError(
                f"column {name!r} holds labels without a weight, and distances are taken over numbers and weighted "
                f"labels ({list_names(measured) or 'none'}). Leave it out, or state a weight in the schema.",
                column=name,
            )
    return names


def places_of(columns: Sequence[str], schema: Schema) -> tuple[tuple[int, ...], ...]:
    """For each column, which coordinates of a point it is: one, or of three labels and more, one a label."""
    widths = [column.width for column in schema.only(columns).columns or ()]
    ends = np.cumsum([0, *widths]).tolist()
    return tuple(tuple(range(first, last)) for first, last in pairwise(ends))
