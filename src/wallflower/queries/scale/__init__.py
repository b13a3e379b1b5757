"""How wide is each column?

Distances do not move when a column is shifted, so a question about them needs a spread for each column and no location.
Records are paired at random, in secret; the spread is a quantile of the differences within pairs, of those that are not
0. All columns are chosen at once, for the price of one choice; columns of one unit may share one spread. Questions that
need a location too, as bounds do, get the median of each column for half of the loss, by a grid in parts of its spread.

Released    a spread for each column, or for a random part of them and the key that drew it; a location if asked for
Guarantee   pure ε-DP, and ε²/8-zCDP                 Neighbours  replace one record, in any order, N public
Arithmetic  whole-number errors, an exact draw       Proof       proof.md, labels (P) (S) (M) (T) (R)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Points, TiledPoints, TiledTable, points_of
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.mechanisms import choose_together
from wallflower.neighbours.limits import check_loss
from wallflower.neighbours.spreads import (
    BINS,
    DIVISORS,
    Ints,
    bins_within,
    draw_places,
    errors_of,
    facts_at,
    gap_counts,
    pair_up,
    pairing_size,
    value_of,
)
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.scale.locations import CellCounts, Cells, error_limit
from wallflower.query import Option, Plan, PublicFacts, Quality, Query, Reading, Status, least_amount, settle
from wallflower.query.accuracy import percent, rate_errors
from wallflower.query.picture import Figures
from wallflower.schema import Column, Schema
from wallflower.schema.columns import list_names, pick
from wallflower.units import Claim

ENOUGH: Final = 50  # records times ε for each spread, from which nearly all are right within a factor of 2
PLENTY: Final = 100  # from which a higher quantile, which says more of outliers' company, can be had
LOCATED: Final = 100  # records times the ε of locations for each column, from which medians are near the middle
BOUND: Final = 10  # spreads to either side of a location: bounds that leave ordinary records as they are
SURE: Final = 0.95
MOST: Final = 1000  # columns
KEY: Final = 2**128
BEYOND: Final = (
    "The median of {} is probably further than 4,096 spreads from 0, which is as far as was looked. State a public "
    "center, or bounds, in the schema."
)
EPSILONS: Final = ("0.01", "0.03", "0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5")
Value = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale(Query[Points | TiledPoints, Value]):
    """Measure how wide each column is.

    >>> Scale(loss=Loss("0.3")).cost()
    Loss(ε=3/10)
    """

    kind: ClassVar[str] = "scale"
    label: ClassVar[str] = "column-scale/2"
    question: ClassVar[str] = "How wide is each column?"
    proof: ClassVar[str] = "queries/scale/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    by_tiles: ClassVar[bool] = True

    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns to measure; all number columns unless given", "names": "numbers"},
    )
    units: tuple[tuple[str, ...], ...] | None = field(
        default=None, metadata={"help": "columns of one unit, which share one spread and cost as much as one column"}
    )

    location: bool = field(
        default=False,
        metadata={"help": "release the median of each column too, for bounds and for a watch, with half of the loss"},
    )
    subset: bool = field(
        default=False,
        metadata={"help": "with more columns than the loss allows for, measure a random part of them, publicly drawn"},
    )

    def __post_init__(self) -> None:
        settle(self)
        check_loss(self.kind, self.loss)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"scale is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        pooled = [name for names in self.units or () for name in names]
        if len(set(pooled)) < len(pooled) or any(not names for names in self.units or ()):
            raise ParameterError("units: a column is in two groups, or a group is empty. Name each column once.")
        if self.columns is not None and not set(pooled) <= set(self.columns):
            raise ParameterError("units: a column is not among the columns. Name it in both, or leave columns out.")
        if self.subset and self.location:
            raise ParameterError(
                "subset, location: locations are released of all columns that are measured, or of none. Ask for a "
                "subset first, and then for the locations of its columns by name."
            )

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        rho = self.loss.epsilon**2 / (16 if self.location else 8)  # (T), once or twice at half
        return replace(super(Scale, self).claim(facts), rho=rho)

    def view(self, data: Any) -> Points | TiledPoints:
        points = data.points(self.columns) if isinstance(data, TiledTable) else points_of(data, self.columns)
        if self.units:
            pick([name for names in self.units for name in names], points.columns)
        if points.n < 2 or points.dimension > MOST:
            raise DataError(f"scale needs two records or more, and at most {MOST} columns. Choose among the columns.")
        for members in self.groups(points.columns):
            if len({facts_at(points, at).scale for at in members}) > 1:
                raise DataError("units: columns of one unit have different scales in the schema. Leave them out there.")
        return points

    def answer(self, data: Points | TiledPoints, noise: Noise) -> Value:
        groups, public = self.groups(data.columns), Value()
        if (size := self.spread_count(data.n, data.dimension)) < len(groups):
            key = noise.below(KEY)
            groups = [groups[at] for at in draw_places(len(groups), size, key)]
            public["key"] = f"{key:032x}"
        errors = self.errors(data, groups, pair_up(data.n, noise))  # (P): nothing else ever sees the pairing
        spreads = self.choose(errors, data, groups, noise)
        located = self._locate(data, list(spreads.values()), noise) if self.location else {}
        return {"scale": spreads, **public, **located}

    def _locate(self, data: Points | TiledPoints, spreads: list[float], noise: Noise) -> Value:
        """The middle of each column, and the same as a baseline of one phase, which a watch takes."""
        widths = [spread / float(facts_at(data, at).scale) for at, spread in enumerate(spreads)]
        places = choose_together(
            self.location_errors(data, widths), sensitivity=1, epsilon=self.epsilon_each, noise=noise
        )  # (M)
        cells = self.cells(data, widths)
        middles = [cell.middle(place) for cell, place in zip(cells, places, strict=True)]
        known = [facts_at(data, at) for at in range(data.dimension)]
        locations = [middle * c.scale + c.center for middle, c in zip(middles, known, strict=True)]
        baseline: Value = {"phase": "always", "dataset": data.name, "time": None, "columns": list(data.columns)}
        baseline |= {"centre": [[middle] for middle in middles], "spread": [[width] for width in widths]}
        return {
            "location": dict(zip(data.columns, locations, strict=True)),
            "baseline": baseline | {"width": widths},
            "beyond": [data.columns[at] for at, cell in enumerate(cells) if cell.is_end(places[at])],
        }

    def cells(self, data: Points | TiledPoints, widths: list[float]) -> list[Cells]:
        """The candidates for each location, once spreads are known: in the units of the points."""
        made = []
        for at, width in enumerate(widths):
            c = facts_at(data, at)
            ends = [None if end is None else float((end - c.center) / c.scale) for end in (c.low, c.high)]
            made.append(Cells.of(width, *ends))
        return made

    def location_errors(self, data: Points | TiledPoints, widths: list[float]) -> list[Ints]:
        """By how much each candidate of each column misses the median: one record moves it by 1 at most.  (M)"""
        most, cells = error_limit(data.dimension, self.epsilon_each), self.cells(data, widths)
        return [np.minimum(cell.errors(found), most) for cell, found in zip(cells, _counts(data, cells), strict=True)]

    def errors(self, data: Points | TiledPoints, groups: list[list[int]], pairs: tuple[Ints, Ints]) -> list[Ints]:
        """By how much each candidate of each group misses its quantile: what one record moves by 1 at most.  (S)"""
        share = self.share_for(data.n, data.dimension)
        errors = []
        for members, counts in zip(groups, gap_counts(data, groups, pairs), strict=True):
            among = bins_within(data, members)
            errors.append(errors_of(counts, share, len(members))[among.start - 1 : among.stop - 1])
        return errors

    def choose(
        self, errors: list[Ints], data: Points | TiledPoints, groups: list[list[int]], noise: Noise
    ) -> dict[str, float]:
        """The spread of each column, drawn together with all others.  (T)"""
        divisor = DIVISORS[self.share_for(data.n, data.dimension)]
        places = choose_together(errors, sensitivity=1, epsilon=self.epsilon_each, noise=noise)
        spreads = {}
        for members, place in zip(groups, places, strict=True):
            for at in members:
                middle = value_of(bins_within(data, members)[place])
                spreads[at] = middle / divisor * float(facts_at(data, at).scale)
        return {data.columns[at]: spreads[at] for at in sorted(spreads)}

    @property
    def epsilon_each(self) -> Fraction:
        """The ε of the spreads, and of the locations where they are asked for.  (T)"""
        return self.loss.epsilon / (2 if self.location else 1)

    def picture(self, value: Value, facts: PublicFacts) -> Figures:
        """Spreads in units of their own, which no common axis shows; beside them the middles, if released."""
        spreads, middles = value["scale"], value.get("location", {})
        if not middles:
            return Figures(
                labels=tuple(spreads), headings=("spread",), values=tuple((one,) for one in spreads.values())
            )
        values = tuple((middles.get(name), spread) for name, spread in spreads.items())
        return Figures(labels=tuple(spreads), headings=("median", "spread"), values=values)

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        share, groups = self.share_for(facts.n, facts.dimension), self.spread_count(facts.n, facts.dimension)
        off = self.off(facts.n, groups)
        said = ", ".join(f"{name} {spread:.3g}" for name, spread in value["scale"].items())
        middles: dict[str, float] = value.get("location", {})
        fragment = Schema(
            columns=tuple(
                Column(name, scale=spread, center=middles.get(name, 0)) for name, spread in value["scale"].items()
            )
        )
        located = (
            f" Medians: {', '.join(f'{name} {middle:.4g}' for name, middle in middles.items())}." if middles else ""
        )
        left_out = [name for name in facts.columns if name not in value["scale"]]
        part = f" Drawn publicly, and not measured: {list_names(left_out)}." if left_out else ""
        bounds = {name: _around(middle, value["scale"][name]) for name, middle in middles.items()}
        beyond = value.get("beyond")
        return Reading(
            mechanism="joint exponential",
            interval=None,
            words=f"Spreads of the pairs of records that differ, as a bell curve's deviation: {said}. Pairs with equal "
            f"values are left out, so a column that mostly repeats has the spread of its other values. With 95 % none "
            f"misses its quantile by more than {off:,} of {pairing_size(facts.n) // 2:,} pairs.{located}{part}",
            extras={"schema": fragment.to_json(), "toml": fragment.to_toml(), "quantile": str(share), "off": off}
            | ({"bounds": bounds} if middles else {}),
            notes=(BEYOND.format(list_names(beyond)),) if beyond else (),
            quality=self._quality(facts.n, groups),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        groups = self.spread_count(n, dimension)
        useful, each = self._is_useful(n, dimension), float(self.epsilon_each) * pairing_size(n) / groups
        most = self._most(n)
        ways = f"name {most} columns at most, pool those of one unit, or have a random part of them measured (subset)"
        advice = f"; {ways}" if most else ""
        smallest = least_amount(lambda amount: self._at(amount)._is_useful(n, dimension))
        words = f"{each:,.1f} records times ε for each of {groups} spreads, and {ENOUGH} are needed"
        if self.location:
            words += (
                f"; {float(self.epsilon_each) * n / dimension:.3g} for each of {dimension} locations, and {LOCATED}"
            )
        figures = {"each": each, "off": min(1.0, self.off(n, groups) / max(1, pairing_size(n) // 2))}
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "spreads": groups},
            chosen="joint exponential",
            headings={"each": "records × ε a spread", "off": "95 % off by at most, of all pairs"},
            options=(Option(mechanism="joint exponential", figures=figures, note="all columns at once"),),
            useful=useful,
            reason=words if useful else f"{words}{advice}",
            smallest_useful_epsilon=smallest,
            curve=tuple(
                (float(e), min(1.0, self._at(e).off(n, groups) / max(1, pairing_size(n) // 2))) for e in EPSILONS
            ),
            measure="share of pairs that a spread misses its quantile by, 95 %",
        )

    @classmethod
    def example(cls) -> Self:
        return cls(loss=Loss("0.3"))

    def groups(self, columns: tuple[str, ...]) -> list[list[int]]:
        """The places of columns that share a spread, in the order of the table."""
        pooled = {name: place for place, names in enumerate(self.units or ()) for name in names}
        found: dict[Any, list[int]] = {}
        for at, name in enumerate(columns):
            found.setdefault(pooled.get(name, name), []).append(at)
        return list(found.values())

    def coordinates(self, dimension: int) -> int:
        """How many spreads are chosen."""
        return dimension - sum(len(names) - 1 for names in self.units or ())

    def spread_count(self, n: int, dimension: int) -> int:
        """How many spreads are chosen: of a subset as many as the loss allows for."""
        groups = self.coordinates(dimension)
        return min(groups, max(1, self._most(n))) if self.subset else groups

    def share_for(self, n: int, dimension: int) -> Fraction:
        """Which quantile of the differences is chosen: a rule by public facts."""
        enough = pairing_size(n) * self.epsilon_each >= PLENTY * self.spread_count(n, dimension)
        return Fraction(3, 4) if enough else Fraction(1, 2)

    def off(self, n: int, groups: int) -> int:
        """By how many pairs the worst of all spreads misses its quantile at most, 95 times of 100.  (R)"""
        nats = groups * math.log(BINS) - math.log1p(-SURE)
        return min(pairing_size(n) // 2, math.ceil(2 * nats / float(self.epsilon_each)))

    def _most(self, n: int) -> int:
        """How many spreads can be had."""
        return math.floor(pairing_size(n) * self.epsilon_each / ENOUGH)

    def _is_useful(self, n: int, dimension: int) -> bool:
        spread = pairing_size(n) * self.epsilon_each >= ENOUGH * self.spread_count(n, dimension)
        return spread and (not self.location or n * self.epsilon_each >= LOCATED * dimension)

    def _quality(self, n: int, groups: int) -> Quality:
        off = min(1.0, self.off(n, groups) / max(1, pairing_size(n) // 2))
        rule = f"every spread misses its quantile by at most {percent(off)} of the pairs (95 %)"
        return rate_errors(off, rule, interval="two-sided")

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount))


def _counts(data: Points | TiledPoints, cells: list[Cells]) -> list[Ints]:
    """How many records are in each cell of each column, wherever they lie: counts of parts add up."""
    if isinstance(data, Points):
        return [cell.count(data.values[:, at]) for at, cell in enumerate(cells)]
    totals = [np.zeros(cell.size, dtype=np.int64) for cell in cells]
    for told in data.each("finding locations", CellCounts(tuple(cells)), {}):
        for at, total in enumerate(totals):
            total += told[str(at)]
    return totals


def _around(middle: float, spread: float) -> tuple[float, float]:
    """Bounds by a location and a spread, to two digits of the spread: post-processing."""
    digits = 1 - math.floor(math.log10(spread))
    return round(middle - BOUND * spread, digits), round(middle + BOUND * spread, digits)
