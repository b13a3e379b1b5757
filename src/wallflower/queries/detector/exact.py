"""How unusual records are in random grids, without noise: the oracle of the detector."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from wallflower.queries.detector.grids import SIDE, Grid


def exact_scores(records: Sequence[Sequence[float]], grids: Sequence[Grid], floor: float = 1.0) -> list[float]:
    """The score of each record by the definition, record by record and grid by grid.

    >>> grid = Grid(columns=(0, 1), widths=(1.0, 1.0), offsets=(0.0, 0.0))
    >>> [round(score, 6) for score in exact_scores([[0, 0], [0.5, 0.5], [9, 9]], [grid])]
    [-0.231049, -0.231049, 0.462098]
    """
    totals = [0.0] * len(records)
    for grid in grids:
        cells = [_cell(record, grid) for record in records]
        counts = Counter(cells)
        logs = {cell: math.log(max(count, floor)) for cell, count in counts.items()}
        base = sum(counts[cell] * logs[cell] for cell in counts) / len(records)
        for at, cell in enumerate(cells):
            totals[at] += base - logs[cell]
    return [total / len(grids) for total in totals]


def _cell(record: Sequence[float], grid: Grid) -> tuple[int, int]:
    """Row and column, each from 0 to 15."""
    sides = []
    for column, width, offset in zip(grid.columns, grid.widths, grid.offsets, strict=True):
        position = record[column] / width + offset
        sides.append(math.floor(position) % SIDE if math.isfinite(position) else 0)
    return sides[0], sides[1]
