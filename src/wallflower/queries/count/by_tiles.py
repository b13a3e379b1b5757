"""The count of a table that an engine keeps: what it takes, and what it refuses before anything is charged."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from wallflower.data import Points, TiledPoints, TiledTable
from wallflower.errors import EngineMismatch
from wallflower.machine.lazy import Lazy
from wallflower.neighbours.limits import require_single_coordinates, view_tiles
from wallflower.neighbours.noisy_count import exact_count

if TYPE_CHECKING:
    import wallflower.queries.count.exact as _exact
else:
    _exact = Lazy("wallflower.queries.count.exact")


class CountTerms(Protocol):
    """What is read of a count."""

    @property
    def mechanism(self) -> str: ...
    @property
    def interval(self) -> str: ...
    @property
    def share(self) -> Fraction | None: ...
    @property
    def columns(self) -> tuple[str, ...] | None: ...
    @property
    def neighbours(self) -> int: ...
    @property
    def reach(self) -> float: ...
    @property
    def normalise(self) -> bool: ...


def view_of_tiles(query: CountTerms, table: TiledTable) -> TiledPoints:
    """The records as tiles, or a refusal that names what can be asked instead."""
    unfit = {
        "mechanism smooth": (query.mechanism == "smooth", "Choose the mechanism extension or global"),
        "a two-sided interval": (query.interval == "two-sided", "Ask for interval='noise'"),
    }
    for asked, (is_asked, instead) in unfit.items():
        if is_asked:
            raise EngineMismatch(table.engine, f"count with {asked}", instead)
    points = view_tiles(table, query.columns, query.neighbours)
    if query.mechanism == "global":
        require_single_coordinates(points, "mechanism: global", "extension")
    return points


def count_exactly(query: CountTerms, points: Points | TiledPoints) -> int:
    """How many outliers there are, without privacy."""
    if isinstance(points, TiledPoints):
        return exact_count(points, query.reach, query.neighbours, normalise=query.normalise)
    found: int = _exact.count_outliers(points.values, query.reach, query.neighbours, normalise=query.normalise)
    return found
