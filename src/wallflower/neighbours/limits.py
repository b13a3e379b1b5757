"""What is known without data: which parameters make sense, and the most the count can ever move.

Proved in proof.md of `count`, label (G).
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points, TiledPoints, TiledTable, points_of
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.progress import Effort

Floats = NDArray[np.float64]

# How many points can stand around one, pairwise more than one radius apart: exact for strict distances up to three
# dimensions [SW53], upper bounds on the kissing number above [OS79; Mus08; BV08; MV10; LdL24].
KISSING_NUMBERS: Final = (
    *(2, 5, 12, 24, 44, 78, 134, 240, 363, 553, 868, 1356),
    *(2066, 3177, 4858, 7320, 10978, 16406, 24417, 36195, 53524, 80810, 122351, 196560),
)

SLACK_HELP: Final = (
    "degree cap: how many others one record can support; a lower one means less noise and more overcounting "
    "(default: by a rule)"
)
SCALE_HELP: Final = "divide every column by its spread: the ledger entry of a release of scale, or the release itself"


def check_neighbours(neighbours: int) -> None:
    """Refuse a number of neighbours that is not a positive whole number."""
    if isinstance(neighbours, bool) or not hasattr(neighbours, "__index__") or not 1 <= neighbours <= 10**6:
        raise ParameterError(f"neighbours: {neighbours!r} is not a whole number from 1 to 1,000,000.")


def check_radius(radius: float) -> None:
    """Refuse a radius that is not a positive distance."""
    if not 1e-100 <= radius <= 1e100:
        raise ParameterError(f"radius: {radius!r} is outside 1e-100 to 1e100; pass a positive distance.")


def search_effort(n: int, dimension: int, neighbours: int) -> Effort:
    """Estimate the work of finding the neighbours of every record.

    A tree of few columns spares most comparisons, one of many columns spares none.
    """
    near, comparisons = min(neighbours, n), float(n) ** (2 - 1 / dimension) * dimension
    return Effort(
        steps=2 * comparisons + 100.0 * n * near * (10 + near),
        memory=n * (500.0 + 40.0 * dimension + 256.0 * near),
    )


def check_scale(scale: object) -> None:
    """Refuse what is no number of a ledger entry."""
    if scale is not None and (isinstance(scale, bool) or not isinstance(scale, int) or not 0 < scale < 2**31):
        raise ParameterError(
            f"scale: {scale!r} is neither a release of scale nor its number in the ledger. Pass one of them."
        )


def check_loss(asker: str, loss: Loss) -> None:
    """Refuse a loss that questions about one table have no theorem for."""
    if not isinstance(loss, Loss):
        raise ParameterError("loss: pass a Loss, such as Loss('0.5').")
    if loss.kind not in (Kind.PURE, Kind.APPROXIMATE, Kind.ZCDP):
        raise LossMismatch(f"{asker} has no theorem for a {loss.kind} loss; pass Loss('0.5') or Loss.zcdp('0.1').")
    if loss.neighbours is not Neighbours.REPLACE_ONE:
        raise LossMismatch(f"{asker} protects replaced records, not {loss.neighbours}; leave neighbours out.")
    if loss.amount == 0:
        raise ParameterError("epsilon: a loss of 0 allows no answer at all; pass more than 0, such as '0.1'.")


def view_points(data: Any, columns: tuple[str, ...] | None, neighbours: int, *, labels: bool = False) -> Points:
    """The records in these columns, if there are enough of them for the question to make sense.

    With `labels`, columns of labels that have a weight are part of the distances; then ask for these by `per_column`.
    """
    points = points_of(data, columns, labels=labels)
    _require_enough(points.n, neighbours)
    return points


def view_tiles(table: TiledTable, columns: tuple[str, ...] | None, neighbours: int) -> TiledPoints:
    """The same of a table that an engine keeps, with labels."""
    points = table.points(columns, labels=True)
    _require_enough(points.n, neighbours)
    return points


def view_all(data: Any, columns: tuple[str, ...] | None, neighbours: int) -> Points | TiledPoints:
    """Either of the two, wherever the table lies."""
    if isinstance(data, TiledTable):
        return view_tiles(data, columns, neighbours)
    return view_points(data, columns, neighbours, labels=True)


def records_of(points: Points | TiledPoints) -> Floats | TiledPoints:
    """What is counted: the coordinates of all records, or the records tile by tile."""
    return points if isinstance(points, TiledPoints) else points.values


def _require_enough(n: int, neighbours: int) -> None:
    if n <= neighbours:
        raise DataError(
            f"asked for {neighbours} neighbours among {n} records: every record would be an outlier. "
            f"Choose fewer than {n} neighbours."
        )


def per_column(radius: float, columns: int, coordinates: int, *, normalise: bool) -> tuple[float, bool]:
    """Radius and `normalise` for a search over coordinates, where distances are a mean over columns.

    A column of three labels or more is several coordinates; the mean is still over columns.

    >>> per_column(0.5, 4, 9, normalise=True), per_column(0.5, 4, 4, normalise=True)
    ((1.0, False), (0.5, True))
    """
    if not normalise or columns == coordinates:
        return radius, normalise
    return radius * math.sqrt(columns), False


def require_single_coordinates(points: Points | TiledPoints, asked: str, instead: str) -> None:
    """Refuse columns that are several coordinates where a bound goes by the number of columns (G)."""
    wide = [name for name, places in zip(points.columns, points.places, strict=True) if len(places) > 1]
    if wide:
        raise DataError(
            f"{asked}: its bound goes by the number of coordinates, and {', '.join(wide)} has more than two labels, "
            f"each a coordinate of its own. Choose {instead}, or leave it out.",
            column=wide[0],
        )


def scale_notes(scale: object) -> tuple[str, ...]:
    """The release that columns are divided by, for a note."""
    return () if scale is None else (f"Every column is divided by its spread, as released in ledger entry {scale}.",)


def kissing_number(dimension: int) -> int:
    """An upper bound on the strict kissing number.

    >>> [kissing_number(d) for d in (1, 2, 3, 24)]
    [2, 5, 12, 196560]
    """
    if dimension < 1:
        raise ParameterError(f"dimension: {dimension!r} is below 1; choose at least one column.")
    if dimension <= len(KISSING_NUMBERS):
        return KISSING_NUMBERS[dimension - 1]
    share = _cap_share(dimension)
    return math.floor(min(1e15, 2 / share * (1 + 1e-9))) if share > 0 else 10**15


def _cap_share(dimension: int) -> float:
    """Twice the share of a sphere that is within 30° of one of its points: the regularised incomplete beta function
    I(1/4; (d-1)/2, 1/2), by its power series. The terms are positive and each is less than a quarter of the one before,
    so what is left out is below a part in 10¹⁸ and only makes the bound larger."""
    a, total, term = (dimension - 1) / 2, 0.0, 1.0
    for k in range(30):
        total += term / (a + k)
        term *= (k + 0.5) / (k + 1) / 4
    return math.exp(math.lgamma(a + 0.5) - math.lgamma(a) - math.lgamma(0.5) - a * math.log(4)) * total


def global_bound(n: int, dimension: int, neighbours: int) -> int:
    """The most the count can move when one of `n` records is replaced (G).

    >>> global_bound(367, 2, 3), global_bound(3, 2, 3)
    (16, 0)
    """
    check_neighbours(neighbours)
    return 0 if n <= neighbours else min(n, neighbours * kissing_number(dimension) + 1)


def rounding_bound(n: int, dimension: int, neighbours: int) -> int:
    """`global_bound`, made safe for distances that are rounded: six at 60° may all count as apart (G).

    >>> rounding_bound(367, 2, 3), rounding_bound(367, 1, 3)
    (19, 7)
    """
    strict = global_bound(n, dimension, neighbours)
    return min(n, 6 * neighbours + 1) if dimension == 2 and strict else strict
