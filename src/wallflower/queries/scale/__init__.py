"""How wide is each column?

Distances do not move when a column is shifted, so a question about them needs a spread for each column and no location.
Records are paired at random, in secret; the spread is a quantile of the differences within pairs, of those that are not
0. All columns are chosen at once, for the price of one choice; columns of one unit may share one spread. Questions that
need a location too, as bounds do, get the median of each column for half of the loss, by a grid in parts of its spread.
An eighth of ε shows how many pairs are equal and so were ignored, where the table is large enough to tell.

Released    a spread for each column, or for a random part of them and the key that drew it; the noisy share of equal
            pairs of each; a location if asked for
Guarantee   pure ε-DP, and ε²/8-zCDP                 Neighbours  replace one record, in any order, N public
Arithmetic  whole-number errors, an exact draw       Proof       proof.md, labels (P) (S) (M) (T) (R) (Z)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Points, TiledPoints, TiledTable, points_of
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.mechanisms import Cube, calibrate_cube, choose_together
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
from wallflower.query.accuracy import CONFIDENCE, percent, rate_errors
from wallflower.query.picture import Figures
from wallflower.schema import Column, Schema
from wallflower.schema.columns import list_names, pick
from wallflower.theorems import name_labels
from wallflower.units import Claim

ENOUGH: Final = 50  # records times ε for each spread, from which nearly all are right within a factor of 2
PLENTY: Final = 100  # from which a higher quantile, which says more of outliers' company, can be had
LOCATED: Final = 100  # records times the ε of locations for each column, from which medians are near the middle
BOUND: Final = 10  # spreads to either side of a location: bounds that leave ordinary records as they are
VERIFIED: Final = Fraction(1, 8)  # of ε, for the shares of equal pairs
KNOWN_WITHIN: Final = 0.25  # of the pairs: shares of equal pairs that are noisier than this say nothing
MOSTLY: Final = 0.5  # of the pairs: a column with more equal ones mostly repeats
MOST: Final = 1000  # columns
KEY: Final = 2**128
BEYOND: Final = (
    "The median of {} is probably further than 4,096 spreads from 0, which is as far as was looked. State a public "
    "center, or bounds, in the schema."
)
UNKNOWN_REPEATS: Final = (
    "Pairs with equal values are ignored, and their share is not known: a column that mostly repeats has the spread of "
    "its other values. Leave such columns out."
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
    label: ClassVar[str] = "column-scale/1"
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
    verify: bool = field(
        default=True,
        metadata={"help": "spend an eighth of ε on the share of equal pairs of each column, which spreads ignore"},
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

    def rests_on(self, data: Any) -> tuple[str, ...]:
        return name_labels("scale", "P S M T" if self.location else "P S T") + name_labels(
            "mechanisms", "J1 J2 E2 E3 U"
        )

    def claim(self, facts: PublicFacts) -> Claim:
        spreads = self.spread_epsilon(facts.n, facts.dimension)
        rho = spreads**2 / 8 * (2 if self.location else 1)  # (T), once or twice
        rho += self._verifying_epsilon(facts.n, facts.dimension) ** 2 / 2  # (Z)
        return replace(super(Scale, self).claim(facts), rho=rho)

    def verifies(self, n: int, dimension: int) -> bool:
        """Whether shares of equal pairs are released: a rule by public facts, as on small tables noise hides them."""
        if not self.verify or n < 2:
            return False
        groups, left = self.coordinates(dimension), (1 - VERIFIED) * self.loss.epsilon / (2 if self.location else 1)
        spreads = 1 if self.subset else groups  # of a subset, as many as the loss allows for
        if pairing_size(n) * left < ENOUGH * spreads or (self.location and n * left < LOCATED * dimension):
            return False  # an answer that is useful without these shares stays so
        return self._equal_noise(groups).reach(CONFIDENCE) <= KNOWN_WITHIN * (pairing_size(n) // 2)

    def _equal_noise(self, groups: int) -> Cube:
        """The noise of the numbers of equal pairs, all of which one record may move by 1.  (Z)"""
        return calibrate_cube(groups, 1, Loss(self.loss.epsilon * VERIFIED), step=Fraction(1))

    def _verifying_epsilon(self, n: int, dimension: int) -> Fraction:
        return self.loss.epsilon * VERIFIED if self.verifies(n, dimension) else Fraction(0)

    def spread_epsilon(self, n: int, dimension: int) -> Fraction:
        """The ε of the spreads, and of the locations where they are asked for.  (T) (Z)"""
        return (self.loss.epsilon - self._verifying_epsilon(n, dimension)) / (2 if self.location else 1)

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
        counts = gap_counts(data, groups, pair_up(data.n, noise))  # (P): nothing else ever sees the pairing
        spreads = self.choose(self._count_errors(data, groups, counts), data, groups, noise)
        equal = self._equal_shares(data, groups, counts, noise) if self.verifies(data.n, data.dimension) else {}
        located = self._locate(data, list(spreads.values()), noise) if self.location else {}
        return {"scale": spreads, **equal, **public, **located}

    def conditions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        return () if self.verifies(data.n, data.dimension) else (UNKNOWN_REPEATS,)

    def _equal_shares(
        self, data: Points | TiledPoints, groups: list[list[int]], counts: list[Ints], noise: Noise
    ) -> Value:
        """The share of pairs that are equal, of each column, with noise.  (Z)"""
        drawn, pairs = self._equal_noise(len(groups)).draw(noise), pairing_size(data.n) // 2
        shares: dict[int, float] = {}
        for members, count, more in zip(groups, counts, drawn, strict=True):
            share = (int(count[0]) // len(members) + more) / pairs
            shares |= {at: round(min(max(share, 0.0), 1.0), 4) for at in members}
        return {"equal_pairs": {data.columns[at]: shares[at] for at in sorted(shares)}}

    def _locate(self, data: Points | TiledPoints, spreads: list[float], noise: Noise) -> Value:
        """The middle of each column, and the same as a baseline of one phase, which a watch takes."""
        widths = [spread / float(facts_at(data, at).scale) for at, spread in enumerate(spreads)]
        places = choose_together(
            self.location_errors(data, widths),
            sensitivity=1,
            epsilon=self.spread_epsilon(data.n, data.dimension),
            noise=noise,
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
        most = error_limit(data.dimension, self.spread_epsilon(data.n, data.dimension))
        cells = self.cells(data, widths)
        return [np.minimum(cell.errors(found), most) for cell, found in zip(cells, _counts(data, cells), strict=True)]

    def errors(self, data: Points | TiledPoints, groups: list[list[int]], pairs: tuple[Ints, Ints]) -> list[Ints]:
        """By how much each candidate of each group misses its quantile: what one record moves by 1 at most.  (S)"""
        return self._count_errors(data, groups, gap_counts(data, groups, pairs))

    def _count_errors(self, data: Points | TiledPoints, groups: list[list[int]], counts: list[Ints]) -> list[Ints]:
        share = self.share_for(data.n, data.dimension)
        errors = []
        for members, count in zip(groups, counts, strict=True):
            among = bins_within(data, members)
            errors.append(errors_of(count, share, len(members))[among.start - 1 : among.stop - 1])
        return errors

    def choose(
        self, errors: list[Ints], data: Points | TiledPoints, groups: list[list[int]], noise: Noise
    ) -> dict[str, float]:
        """The spread of each column, drawn together with all others.  (T)"""
        divisor = DIVISORS[self.share_for(data.n, data.dimension)]
        epsilon = self.spread_epsilon(data.n, data.dimension)
        places = choose_together(errors, sensitivity=1, epsilon=epsilon, noise=noise)
        spreads = {}
        for members, place in zip(groups, places, strict=True):
            for at in members:
                middle = value_of(bins_within(data, members)[place])
                spreads[at] = middle / divisor * float(facts_at(data, at).scale)
        return {data.columns[at]: spreads[at] for at in sorted(spreads)}

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
        share, off = self.share_for(facts.n, facts.dimension), self.off(facts.n, facts.dimension)
        equal: dict[str, float] = value.get("equal_pairs", {})
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
            words=f"Spreads of the pairs of records that differ, as a bell curve's deviation: {said}."
            f"{self._equal_words(equal, facts)} With 95 % none misses its quantile by more than {off:,} of "
            f"{pairing_size(facts.n) // 2:,} pairs.{located}{part}",
            extras={"schema": fragment.to_json(), "toml": fragment.to_toml(), "quantile": str(share), "off": off}
            | ({"equal_pairs_within": self._equal_reach(len(equal), facts)} if equal else {})
            | ({"bounds": bounds} if middles else {}),
            notes=(BEYOND.format(list_names(beyond)),) if beyond else (),
            quality=self._quality(facts.n, facts.dimension, _repeating(equal)),
        )

    def _equal_reach(self, columns: int, facts: PublicFacts) -> float:
        """How far all released shares of equal pairs are from the true ones, 95 times of 100."""
        groups = min(columns, self.spread_count(facts.n, facts.dimension))
        return self._equal_noise(groups).reach(CONFIDENCE) / (pairing_size(facts.n) // 2)

    def _equal_words(self, equal: dict[str, float], facts: PublicFacts) -> str:
        """How many pairs were ignored, as far as it is known."""
        if not equal:
            return ""
        reach = self._equal_reach(len(equal), facts)
        beyond = {name: share for name, share in equal.items() if share > reach}
        if not beyond:
            return f" Pairs with equal values are ignored: at most {percent(min(1.0, max(equal.values()) + reach))}."
        named = ", ".join(f"about {percent(share)} of {name}" for name, share in beyond.items())
        return f" Pairs with equal values are ignored: {named} (95 %: all columns within {100 * reach:.2g} points)."

    def plan(self, *, n: int, dimension: int) -> Plan:
        groups, epsilon = self.spread_count(n, dimension), self.spread_epsilon(n, dimension)
        useful, each = self._is_useful(n, dimension), float(epsilon) * pairing_size(n) / groups
        most = self._most(n, dimension)
        ways = f"name {most} columns at most, pool those of one unit, or have a random part of them measured (subset)"
        advice = f"; {ways}" if most else ""
        smallest = least_amount(lambda amount: self._at(amount)._is_useful(n, dimension))
        words = f"{each:,.1f} records times ε for each of {groups} spreads, and {ENOUGH} are needed"
        if self.location:
            words += f"; {float(epsilon) * n / dimension:.3g} for each of {dimension} locations, and {LOCATED}"
        figures = {"each": each, "off": min(1.0, self.off(n, dimension) / max(1, pairing_size(n) // 2))}
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
                (float(e), min(1.0, self._at(e).off(n, dimension) / max(1, pairing_size(n) // 2))) for e in EPSILONS
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
        return min(groups, max(1, self._most(n, dimension))) if self.subset else groups

    def share_for(self, n: int, dimension: int) -> Fraction:
        """Which quantile of the differences is chosen: a rule by public facts."""
        enough = pairing_size(n) * self.spread_epsilon(n, dimension) >= PLENTY * self.spread_count(n, dimension)
        return Fraction(3, 4) if enough else Fraction(1, 2)

    def off(self, n: int, dimension: int) -> int:
        """By how many pairs the worst of all spreads misses its quantile at most, 95 times of 100.  (R)"""
        nats = self.spread_count(n, dimension) * math.log(BINS) - math.log1p(-CONFIDENCE)
        return min(pairing_size(n) // 2, math.ceil(2 * nats / float(self.spread_epsilon(n, dimension))))

    def _most(self, n: int, dimension: int) -> int:
        """How many spreads can be had."""
        return math.floor(pairing_size(n) * self.spread_epsilon(n, dimension) / ENOUGH)

    def _is_useful(self, n: int, dimension: int) -> bool:
        epsilon = self.spread_epsilon(n, dimension)
        spread = pairing_size(n) * epsilon >= ENOUGH * self.spread_count(n, dimension)
        return spread and (not self.location or n * epsilon >= LOCATED * dimension)

    def _quality(self, n: int, dimension: int, conditions: tuple[str, ...]) -> Quality:
        off = min(1.0, self.off(n, dimension) / max(1, pairing_size(n) // 2))
        rule = f"every spread misses its quantile by at most {percent(off)} of the pairs (95 %)"
        return rate_errors(off, rule, interval="two-sided", conditions=conditions)

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount))


def _repeating(equal: dict[str, float]) -> tuple[str, ...]:
    """The condition on columns that mostly repeat, by the released shares."""
    found = [f"{name} ({percent(share)} of its pairs are equal)" for name, share in equal.items() if share > MOSTLY]
    if not found:
        return ()
    return (
        f"Mostly repeated values: {list_names(found)}. The spread is that of the other pairs. Leave such columns out.",
    )


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
