"""The table as the engines see it: records in order of the metric, values numbered from the record in question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wallflower.errors import DataError, ParameterError
from wallflower.queries.explain.detectors import HUGE
from wallflower.queries.explain.space.contexts import Space

Floats = NDArray[np.float64]
Slots = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RankedTable:
    """Records in rising order of the metric.

    `slots` numbers the values of every attribute anew: 0 is the record's own, then the others in domain order; slot j
    of an attribute with f others is bit f - j of its part of an index, so the first value is the highest bit.
    """

    space: Space
    slots: Slots
    values: Floats
    record: int

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def own(self) -> float:
        """The metric of the record in question."""
        return float(self.values[self.record])

    @property
    def weights(self) -> NDArray[np.int32]:
        """Every record counts for one."""
        return np.ones(self.n, np.int32)

    def members(self, index: int) -> NDArray[np.bool_]:
        """Which records a context selects."""
        return choose_records(self.slots, self.space.free, index)


def choose_records(slots: Slots, free: Sequence[int], index: int) -> NDArray[np.bool_]:
    """Which records the first attributes let in, as far as `free` counts their other values."""
    found, shift = np.ones(len(slots), dtype=np.bool_), sum(free)
    for attribute, others in enumerate(free):
        shift -= others
        allowed = [True, *((index >> shift + others - slot) & 1 == 1 for slot in range(1, others + 1))]
        found &= np.array(allowed)[slots[:, attribute]]
    return found


def slots_of(codes: NDArray[Any], own: NDArray[np.int64]) -> Slots:
    """Codes, numbered anew from the record's own."""
    return np.where(codes == own, 0, np.where(codes < own, codes + 1, codes)).astype(np.int64)


def rank_table(codes: ArrayLike, domain_sizes: ArrayLike, metric: ArrayLike, record: int) -> RankedTable:
    """Check a table against its public domains and put it in order."""
    places = np.asarray(codes)
    places = places[:, None] if places.ndim == 1 else places
    sizes = tuple(int(size) for size in np.atleast_1d(np.asarray(domain_sizes)))
    values = np.asarray(metric, dtype=np.float64)
    if places.ndim != 2 or values.ndim != 1 or places.shape != (len(values), len(sizes)):
        raise DataError("codes and metric must have one row per record, codes one column per domain; pass them so.")
    if not np.issubdtype(places.dtype, np.integer) or not ((places >= 0) & (places < np.array(sizes))).all():
        raise DataError("codes must be whole numbers from 0 within the public domains; encode the table with them.")
    if not (np.abs(values) <= HUGE).all():
        raise DataError("the metric holds missing or immense numbers; every value must be within ±1e100.")
    if not 0 <= record < len(values):
        raise ParameterError(f"record: {record!r} is no row of the table; count rows from 0.")
    own = places[record].astype(np.int64)
    slots = slots_of(places, own)
    order = np.argsort(values, kind="stable")
    space = Space(sizes, tuple(own.tolist()))
    return RankedTable(space, slots[order], values[order], int(np.flatnonzero(order == record)[0]))
