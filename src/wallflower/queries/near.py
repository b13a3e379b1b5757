"""What queries of one table share, and above all those about distances: fields, checks, views and plans.

`TableQuery` has a loss and columns. `NearQuery` adds who is near whom: the number of neighbours, the distance and the
scale of its columns. `CappedQuery` adds the degree cap of the Lipschitz extension, and `CurveQuery` counts outliers at
many radii by it. A query declares the fields and answers that are its own and inherits the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self, TypeAlias, TypeVar

from wallflower.data import Points, TiledPoints, TiledTable
from wallflower.errors import EngineMismatch, LossMismatch, ParameterError, ScaleMismatch
from wallflower.names import account_name
from wallflower.neighbours.limits import (
    SCALE_HELP,
    SLACK_HELP,
    check_loss,
    check_neighbours,
    check_scale,
    scale_notes,
    search_effort,
    view_all,
)
from wallflower.neighbours.noisy_count import CapRule
from wallflower.neighbours.radii import Tally
from wallflower.privacy import Kind, Loss
from wallflower.progress import Effort
from wallflower.query import FindRelease, PublicFacts, Query, ReleaseInput, ReleaseLike, least_amount, normalise_fields
from wallflower.query.accuracy import CONFIDENCE, check_distances, check_slack_size
from wallflower.schema.columns import list_names
from wallflower.text import t
from wallflower.theorems import name_labels

Records: TypeAlias = Points | TiledPoints
V = TypeVar("V", bound=PublicFacts)
A = TypeVar("A")

EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.7", "1", "1.5", "2", "3", "5")
MAX_SLACK: Final = 10**6
MIN_TARGET_RATIO: Final = 11  # wanted outliers × ε ÷ sensitivity, from which a drawn radius beats a random one


SCALE_RELEASE: Final = ReleaseInput(kind="scale")


@dataclass(frozen=True, kw_only=True)
class TableQuery(Query[V, A]):
    """Spend one stated loss on some columns of a table."""

    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns distances are taken over; default: all number columns", "names": "measured"},
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        check_loss(self.kind, self.loss)

    def cost(self) -> Loss:
        return self.loss

    def with_amount(self, amount: str) -> Self:
        """Return the same query at another ε, or ρ where the loss is a zCDP one."""
        return replace(self, loss=replace_amount(self.loss, Fraction(amount)))

    def find_least_amount(self, is_useful: Callable[[Self], bool]) -> str | None:
        """Return the least ε (or ρ), to two digits, at which the query is useful; None if 1000 is not enough."""
        return least_amount(lambda amount: is_useful(self.with_amount(amount)))

    def trace(
        self, measure: Callable[[Self], float], amounts: tuple[str, ...] = EPSILONS
    ) -> tuple[tuple[float, float], ...]:
        """Return a measure of accuracy at several amounts of the loss: the curve of a plan."""
        return tuple((float(amount), measure(self.with_amount(amount))) for amount in amounts)

    def explain_use(self, limit: str, useful: bool, smallest: str | None) -> str:
        """Return why a plan is useful or not, and from which ε it would be."""
        if useful:
            return limit
        if smallest is None:
            return t("{limit}; no reasonable loss makes it useful", limit=limit)
        symbol = "ρ" if self.loss.kind is Kind.ZCDP else "ε"
        return t(
            "{limit}; from {symbol} = {smallest} on it would be useful", limit=limit, symbol=symbol, smallest=smallest
        )


@dataclass(frozen=True, kw_only=True)
class NearQuery(TableQuery[V, A]):
    """Ask about outliers by distance: records with fewer than `neighbours` others near them [KN98]."""

    neighbours: int = field(metadata={"help": "with fewer than this many others near, a record is an outlier"})
    normalise: bool = field(
        default=True,
        metadata={"help": "root-mean-square distance over columns (as in Okada et al. 2015) instead of Euclidean"},
    )
    scale: int | ReleaseLike | None = field(default=None, metadata={"help": SCALE_HELP, "release": SCALE_RELEASE})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_neighbours(self.neighbours)
        check_scale(self.scale)

    def view_records(self, data: Any) -> Records:
        """Return the records in the columns of the query, in memory or as tiles, with labels as coordinates."""
        return view_all(data, self.columns, self.neighbours)

    def prepare(self, table: Any, find: FindRelease) -> Any:
        return rescale(self.scale, self.columns, table, find)

    def check_columns(self, data: Records) -> tuple[str, ...]:
        """Return the conditions that public facts of the columns put on every distance."""
        return check_distances(data, self.scale)

    def cautions(self, data: V) -> tuple[str, ...]:
        return scale_notes(self.scale)

    def estimate_searches(self, n: int, dimension: int, searches: int) -> Effort:
        """Return the effort of finding the neighbours of every record this many times, one after another."""
        effort = search_effort(n, dimension, self.neighbours)
        return replace(effort, steps=searches * effort.steps)


@dataclass(frozen=True, kw_only=True)
class CappedQuery(NearQuery[V, A]):
    """Count outliers by the Lipschitz extension, whose degree cap is `slack`."""

    min_slack: ClassVar[int] = 1

    slack: int | None = field(default=None, metadata={"help": SLACK_HELP})

    def __post_init__(self) -> None:
        super().__post_init__()
        slack, least = self.slack, self.min_slack
        if slack is None:
            return
        if isinstance(slack, bool) or not hasattr(slack, "__index__") or not least <= slack <= MAX_SLACK:
            raise ParameterError(
                f"slack: {slack!r} is not an integer from {least} to {MAX_SLACK:,}. Smaller values overcount even in "
                "dense data. Omit it for the default, or pass one such as 3."
            )

    def check_cap(self, rule: CapRule, measure_noise: Callable[[Self], float]) -> tuple[str, ...]:
        """Return the condition that the degree cap is below the neighbours, with the noise that a wider one costs."""
        if not check_slack_size(rule.narrow, self.neighbours):
            return ()
        wide_noise = measure_noise(replace(self, slack=self.neighbours))
        return check_slack_size(rule.narrow, self.neighbours, is_least=rule.test is not None, wide_noise=wide_noise)


@dataclass(frozen=True, kw_only=True)
class CurveQuery(CappedQuery[Records, dict[str, Any]]):
    """Count outliers at many radii: by the extension, or graded as the outlier mass. Its loss is pure."""

    graded: bool = field(
        default=False,
        metadata={"help": "use the outlier mass, which counts how many neighbours are missing: half the error"},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        require_pure(self.kind, self.loss)
        if self.slack is not None and self.graded:
            raise ParameterError("slack: the outlier mass (graded) has no degree cap. Omit slack, or graded.")

    def view(self, data: Any) -> Records:
        if isinstance(data, TiledTable) and self.graded:
            raise EngineMismatch(data.engine, f"{self.kind} with graded", "Omit graded")
        return self.view_records(data)

    def count_by(self, slack: int | None, dimension: int) -> Tally:
        """Return how outliers are counted at any radius with this degree cap.  (C)"""
        return Tally(
            neighbours=self.neighbours,
            slack=None if self.graded else slack,
            normalise=self.normalise,
            columns=dimension,
        )


def require_pure(kind: str, loss: Loss) -> None:
    """Refuse a loss other than pure ε."""
    if loss.kind is not Kind.PURE:
        raise LossMismatch(f"{kind}: a {loss.kind} loss has no theorem here. Only pure ε has. Pass ε alone.")


def replace_amount(loss: Loss, amount: Fraction) -> Loss:
    """Return a loss of the same kind, δ and adjacency with another ε or ρ.

    >>> replace_amount(Loss("1", delta="1e-6"), Fraction(1, 2))
    Loss(ε=1/2, δ=1/1000000)
    """
    return Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours)


def bound_draw_error(n: int, sensitivity: float, epsilon: Fraction, *, radii: int, shares: int = 1) -> float:
    """Return by how many records drawn radii miss their shares at most, with 95 %, if the grid crosses them.

    `sensitivity` is in records, and `radii` the size of the grid. Proved in proof.md of `radius`, label (R).

    >>> round(bound_draw_error(10_000, 3.0, Fraction(1), radii=101), 1)
    45.7
    """
    nats = shares * math.log(radii) - math.log1p(-CONFIDENCE)
    return min(float(n), 2 * sensitivity * nats / float(epsilon))


def is_share_findable(share: Fraction, n: int, sensitivity: float, epsilon: Fraction) -> bool:
    """Return whether a radius drawn for this share of the records beats one drawn at random, by public facts."""
    return float(share * n * epsilon) >= MIN_TARGET_RATIO * sensitivity


def name_curve_theorems(data: Records) -> tuple[str, ...]:
    """Return the labels that a number of outliers by the extension rests on, before noise."""
    return name_labels("count", "P E C1 C2 N F T C4" if isinstance(data, TiledPoints) else "P E C1 C2 N F")


def rescale(scale: int | ReleaseLike | None, columns: tuple[str, ...] | None, table: Any, find: FindRelease) -> Any:
    """Return the table with the scales of an earlier release in place of its schema's; None: as it is.

    That is post-processing of an answer that was paid for, so it costs nothing.
    """
    if scale is None:
        return table
    stored = find(int(scale))  # type: ignore[arg-type]
    if stored is None or not SCALE_RELEASE.accepts(stored["kind"], stored["value"]):
        raise ScaleMismatch(
            f"scale: entry {scale} of the ledger is not a release of scale. Ask scale first, and pass it."
        )
    if len({account_name(name) or name for name in (str(stored["dataset"]), table.name)}) > 1:
        raise ScaleMismatch(
            f"scale: release {scale} is of another data set than {table.name}. Scales hold for the records they were "
            "measured on; pass one of the same data set."
        )
    scales: dict[str, float] = stored["value"]["scale"]
    numbers = table.columns if isinstance(table, Points) else table.numbers
    missing = [name for name in columns or numbers if name in numbers and name not in scales]
    if missing:
        raise ScaleMismatch(
            f"scale: release {scale} has no scale for {list_names(missing)}, only for {list_names(scales)}. Name only "
            "these columns, or measure the others too."
        )
    return table.rescale(scales)
