"""A detector as a map: which values of each column it finds unusual, from released numbers and public ranges alone."""

from __future__ import annotations

from typing import Final

import numpy as np

from wallflower.queries.detector.model import Model
from wallflower.query.picture import HeatMap
from wallflower.schema import Column

STEPS: Final = 11  # values of each column that are shown
MOST: Final = 24  # columns on a map
REACH: Final = 4  # scales to either side of the centre, where a schema states these and no bounds


def map_columns(model: Model) -> HeatMap | None:
    """What each value of each column adds to a score by itself; None where no schema says where values may lie."""
    used = sorted({column for grid in model.grids for column in grid.columns})
    known = [(at, found) for at in used if (found := _range_of((model.schema.columns or ())[at])) is not None][:MOST]
    if not known:
        return None
    rows = {model.columns[at]: (np.linspace(low, high, STEPS), at) for at, (low, high) in known}
    values = {name: model.score_column(name, places) for name, (places, _) in rows.items()}
    shown = [tuple(map(float, found)) for found in values.values()]
    return HeatMap(
        down=tuple(f"{name} ({places[0]:.4g} to {places[-1]:.4g})" for name, (places, _) in rows.items()),
        across=tuple(_step(at) for at in range(STEPS)),
        names=("column, with its public range", "place in that range"),
        values=tuple(shown),
        marks=tuple(("",) * STEPS for _ in shown),
        measure="what the value adds to the score by itself",
        least=min(min(row) for row in shown),
    )


def _range_of(column: Column) -> tuple[float, float] | None:
    if column.low is not None and column.high is not None:
        return float(column.low), float(column.high)
    if float(column.scale) == 1 and float(column.center) == 0:
        return None
    centre, reach = float(column.center), REACH * float(column.scale)
    return centre - reach, centre + reach


def _step(at: int) -> str:
    return f"{at / (STEPS - 1):.0%}".replace("%", " %")
