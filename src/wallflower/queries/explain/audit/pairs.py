"""Adjacent tables to explain an outlier of: V is the first record, and one other record joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wallflower.data import Points
from wallflower.privacy import Loss
from wallflower.queries.explain import Explain
from wallflower.schema import Schema

EVERYWHERE: Final = "distance:k=1000,radius=1"  # V is an outlier in every context, whatever one record does


@dataclass(frozen=True, slots=True)
class Pair:
    """Neighbouring tables: V first, then others as (value, metric); `more` is the record that joins."""

    values: int
    records: tuple[tuple[int, float], ...]
    more: tuple[int, float]

    def points(self) -> tuple[Points, Points]:
        tables = self.records, (*self.records, self.more)
        return tuple(Points.from_array(np.array(each, float), columns=("a", "x"), name="made-up") for each in tables)  # type: ignore[return-value]


CROWD: Final = Pair(3, ((0, 5.0), *((1, 5.0),) * 8), (1, 5.0))  # contexts with value 1 outweigh all others, and gain
HALVES: Final = Pair(2, ((0, 5.0), (1, 5.0)), (1, 5.0))  # of two contexts the larger gains
MANY: Final = Pair(2, ((0, 5.0), *((1, 5.0),) * 8), (1, 5.0))  # the same, and it outweighs the smaller
EMPTY: Final = Pair(2, ((0, 5.0),), (1, 5.0))  # nobody has value 1; then one has
APART: Final = Pair(  # a near record that joins raises the context {0, 1}, which is small, and lowers {0, 1, 2}
    3, ((0, 5.0), *((1, 0.0),) * 3, *((2, 5.0),) * 6), (1, 5.0)
)
CLOSE: Final = Pair(  # a near record that joins raises {0, 1}, which is likeliest by far, and lowers {0, 1, 2}
    3, ((0, 5.0), *((1, 0.0),) * 12, *((2, 5.0),) * 16), (1, 5.0)
)
LAST: Final = Pair(2, ((0, 5.0), *((1, 5.0),) * 3), (0, 5.0))  # in {0} nobody is near; then one is
LONE: Final = Pair(2, ((0, 5.0), *((1, 5.0),) * 6), (0, 5.0))  # the same: {0} gains a record, and both margins fall
FAR: Final = Pair(2, ((0, 9.0), *((1, 1.0), (1, 1.5), (1, 2.0)) * 4), (1, 1e5))
TIED: Final = Pair(3, ((0, 5.0), (1, 5.0), (2, 5.0)), (1, 5.0))


def question_for(pair: Pair, loss: Loss, **details: Any) -> Explain:
    domain = Schema.of(
        ["a", "x"], edges={"a": [value + 0.5 for value in range(pair.values - 1)]}, bounds={"x": (0, 10)}
    )
    usual: dict[str, Any] = {"record": "0", "metric": "x", "context": ("a",), "domain": domain, "size": 14}
    return Explain(**usual | {"detector": EVERYWHERE, "loss": loss} | details)
