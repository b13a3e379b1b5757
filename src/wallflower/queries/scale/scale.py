"""How wide is each column?

Distances do not change when a column is shifted, so queries about them need a spread for each column and no location.
Records are paired at random, in secret; the spread is a quantile of the differences within pairs that are not 0. The
spreads of all columns are chosen at once, at the cost of one choice; columns of one unit may share one spread. With
`location`, half of the loss releases the median of each column too, on a grid whose step is a part of the spread. An
eighth of ε shows how many pairs are equal and so were ignored, where the table is large enough for that.

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

from wallflower.data import Points, TiledTable, points_of
from wallflower.drawing.picture import Figures
from wallflower.errors import DataError, ParameterError
from wallflower.mechanisms import Cube, calibrate_cube, choose_together
from wallflower.neighbours.spreads import (
    BINS,
    DIVISORS,
    Ints,
    bins_within,
    column_facts,
    draw_places,
    gap_counts,
    middle_of_bin,
    pair_up,
    pairing_size,
    quantile_errors,
)
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.near import Records, TableQuery, require_pure
from wallflower.queries.scale.locations import CellCounts, Cells, error_limit
from wallflower.query import Option, Plan, PublicFacts, Quality, Reading, Status
from wallflower.query.accuracy import CONFIDENCE, percent, rate_errors
from wallflower.schema import Column, Schema
from wallflower.schema.columns import list_names, pick
from wallflower.text import t
from wallflower.theorems import name_labels
from wallflower.units import Claim

MIN_SPREAD_RATIO: Final = 50  # records × ε per spread, from which nearly all are right within a factor of 2
MIN_QUARTILE_RATIO: Final = 100  # the same for the third quartile, which says more about the neighbours of outliers
MIN_LOCATION_RATIO: Final = 100  # records × ε per column, from which medians are near the middle
BOUND_SPREADS: Final = 10  # to either side of a location: bounds that leave ordinary records as they are
VERIFIED_PART: Final = Fraction(1, 8)  # of ε, for the shares of equal pairs
MAX_SHARE_NOISE: Final = 0.25  # of the pairs: noisier shares of equal pairs say nothing
REPEATING_SHARE: Final = 0.5  # of the pairs: a column with more equal ones mostly repeats
MAX_COLUMNS: Final = 1000
KEYS: Final = 2**128
AMOUNTS: Final = ("0.01", "0.03", "0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5")
Value = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Scale(TableQuery[Records, Value]):
    """Measure how wide each column is.

    >>> Scale(loss=Loss("0.3")).cost()
    Loss(ε=3/10)
    """

    kind: ClassVar[str] = "scale"
    label: ClassVar[str] = "column-scale/1"
    question: ClassVar[str] = "How wide is each column?"
    proof: ClassVar[str] = "queries/scale/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    supports_tiles: ClassVar[bool] = True

    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns to measure; default: all number columns", "names": "numbers"},
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
        super().__post_init__()
        require_pure(self.kind, self.loss)
        pooled = [name for names in self.units or () for name in names]
        if len(set(pooled)) < len(pooled) or any(not names for names in self.units or ()):
            raise ParameterError("units: a column is in two groups, or a group is empty. Name each column once.")
        if self.columns is not None and not set(pooled) <= set(self.columns):
            raise ParameterError("units: a column is not among the columns. Name it in both, or omit columns.")
        if self.subset and self.location:
            raise ParameterError(
                "subset, location: locations are released of all columns that are measured, or of none. Ask for a "
                "subset first, and then for the locations of its columns by name."
            )

    def rests_on(self, data: Any) -> tuple[str, ...]:
        return name_labels("scale", "P S M T" if self.location else "P S T") + name_labels(
            "mechanisms", "J1 J2 E2 E3 U"
        )

    def claim(self, facts: PublicFacts) -> Claim:
        spreads = self.spread_epsilon(facts.n, facts.dimension)
        rho = spreads**2 / 8 * (2 if self.location else 1)  # (T), once or twice
        rho += self._verifying_epsilon(facts.n, facts.dimension) ** 2 / 2  # (Z)
        return replace(super().claim(facts), rho=rho)

    def verifies(self, n: int, dimension: int) -> bool:
        """Whether shares of equal pairs are released: a rule by public facts, as on small tables noise hides them."""
        if not self.verify or n < 2:
            return False
        groups, left = (
            self.coordinates(dimension),
            (1 - VERIFIED_PART) * self.loss.epsilon / (2 if self.location else 1),
        )
        spreads = 1 if self.subset else groups  # of a subset, as many as the loss allows for
        if pairing_size(n) * left < MIN_SPREAD_RATIO * spreads or (
            self.location and n * left < MIN_LOCATION_RATIO * dimension
        ):
            return False  # an answer that is useful without these shares stays so
        return self._equal_noise(groups).reach(CONFIDENCE) <= MAX_SHARE_NOISE * (pairing_size(n) // 2)

    def _equal_noise(self, groups: int) -> Cube:
        """The noise of the numbers of equal pairs, all of which one record may move by 1.  (Z)"""
        return calibrate_cube(groups, 1, Loss(self.loss.epsilon * VERIFIED_PART), step=Fraction(1))

    def _verifying_epsilon(self, n: int, dimension: int) -> Fraction:
        return self.loss.epsilon * VERIFIED_PART if self.verifies(n, dimension) else Fraction(0)

    def spread_epsilon(self, n: int, dimension: int) -> Fraction:
        """The ε of the spreads, and of the locations where they are asked for.  (T) (Z)"""
        return (self.loss.epsilon - self._verifying_epsilon(n, dimension)) / (2 if self.location else 1)

    def view(self, data: Any) -> Records:
        points = data.points(self.columns) if isinstance(data, TiledTable) else points_of(data, self.columns)
        if self.units:
            pick([name for names in self.units for name in names], points.columns)
        if points.n < 2 or points.dimension > MAX_COLUMNS:
            raise DataError(
                f"scale needs two records or more, and at most {MAX_COLUMNS} columns. Choose among the columns."
            )
        for members in self.groups(points.columns):
            if len({column_facts(points, at).scale for at in members}) > 1:
                raise DataError(
                    "units: columns of one unit have different scales in the schema. Omit the scales there."
                )
        return points

    def answer(self, data: Records, noise: Noise) -> Value:
        groups, public = self.groups(data.columns), Value()
        if (size := self.spread_count(data.n, data.dimension)) < len(groups):
            key = noise.below(KEYS)
            groups = [groups[at] for at in draw_places(len(groups), size, key)]
            public["key"] = f"{key:032x}"
        counts = gap_counts(data, groups, pair_up(data.n, noise))  # (P): nothing else ever sees the pairing
        spreads = self.choose(self._count_errors(data, groups, counts), data, groups, noise)
        equal = self._equal_shares(data, groups, counts, noise) if self.verifies(data.n, data.dimension) else {}
        located = self._locate(data, list(spreads.values()), noise) if self.location else {}
        return {"scale": spreads, **equal, **public, **located}

    def conditions(self, data: Records) -> tuple[str, ...]:
        if self.verifies(data.n, data.dimension):
            return ()
        return (
            t(
                "Pairs with equal values are ignored, and their share is not known: a column that mostly repeats has "
                "the spread of its other values. Omit such columns."
            ),
        )

    def _equal_shares(self, data: Records, groups: list[list[int]], counts: list[Ints], noise: Noise) -> Value:
        """The share of pairs that are equal, of each column, with noise.  (Z)"""
        drawn, pairs = self._equal_noise(len(groups)).draw(noise), pairing_size(data.n) // 2
        shares: dict[int, float] = {}
        for members, count, more in zip(groups, counts, drawn, strict=True):
            share = (int(count[0]) // len(members) + more) / pairs
            shares |= {at: round(min(max(share, 0.0), 1.0), 4) for at in members}
        return {"equal_pairs": {data.columns[at]: shares[at] for at in sorted(shares)}}

    def _locate(self, data: Records, spreads: list[float], noise: Noise) -> Value:
        """The middle of each column, and the same as a baseline of one phase, which a watch takes."""
        widths = [spread / float(column_facts(data, at).scale) for at, spread in enumerate(spreads)]
        places = choose_together(
            self.location_errors(data, widths),
            sensitivity=1,
            epsilon=self.spread_epsilon(data.n, data.dimension),
            noise=noise,
        )  # (M)
        cells = self.cells(data, widths)
        middles = [cell.middle(place) for cell, place in zip(cells, places, strict=True)]
        known = [column_facts(data, at) for at in range(data.dimension)]
        locations = [middle * c.scale + c.center for middle, c in zip(middles, known, strict=True)]
        baseline: Value = {"season": "always", "dataset": data.name, "time": None, "columns": list(data.columns)}
        baseline |= {"centre": [[middle] for middle in middles], "spread": [[width] for width in widths]}
        return {
            "location": dict(zip(data.columns, locations, strict=True)),
            "baseline": baseline | {"width": widths},
            "beyond": [data.columns[at] for at, cell in enumerate(cells) if cell.is_end(places[at])],
        }

    def cells(self, data: Records, widths: list[float]) -> list[Cells]:
        """The candidates for each location, once spreads are known: in the units of the points."""
        cells = []
        for at, width in enumerate(widths):
            column = column_facts(data, at)
            ends = (
                None if end is None else float((end - column.center) / column.scale)
                for end in (column.low, column.high)
            )
            cells.append(Cells.of(width, *ends))
        return cells

    def location_errors(self, data: Records, widths: list[float]) -> list[Ints]:
        """By how much each candidate of each column misses the median: one record moves it by 1 at most.  (M)"""
        most = error_limit(data.dimension, self.spread_epsilon(data.n, data.dimension))
        cells = self.cells(data, widths)
        return [np.minimum(cell.errors(count), most) for cell, count in zip(cells, _counts(data, cells), strict=True)]

    def errors(self, data: Records, groups: list[list[int]], pairs: tuple[Ints, Ints]) -> list[Ints]:
        """By how much each candidate of each group misses its quantile: what one record moves by 1 at most.  (S)"""
        return self._count_errors(data, groups, gap_counts(data, groups, pairs))

    def _count_errors(self, data: Records, groups: list[list[int]], counts: list[Ints]) -> list[Ints]:
        share = self.share_for(data.n, data.dimension)
        errors = []
        for members, count in zip(groups, counts, strict=True):
            among = bins_within(data, members)
            errors.append(quantile_errors(count, share, len(members))[among.start - 1 : among.stop - 1])
        return errors

    def choose(self, errors: list[Ints], data: Records, groups: list[list[int]], noise: Noise) -> dict[str, float]:
        """The spread of each column, drawn together with all others.  (T)"""
        divisor = DIVISORS[self.share_for(data.n, data.dimension)]
        epsilon = self.spread_epsilon(data.n, data.dimension)
        places = choose_together(errors, sensitivity=1, epsilon=epsilon, noise=noise)
        spreads = {}
        for members, place in zip(groups, places, strict=True):
            for at in members:
                middle = middle_of_bin(bins_within(data, members)[place])
                spreads[at] = middle / divisor * float(column_facts(data, at).scale)
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
        off, equal = self.off(facts.n, facts.dimension), value.get("equal_pairs", {})
        spreads: dict[str, float] = value["scale"]
        medians: dict[str, float] = value.get("location", {})
        fragment = Schema(
            columns=tuple(Column(name, scale=spread, center=medians.get(name, 0)) for name, spread in spreads.items())
        )
        extras: dict[str, Any] = {"schema": fragment.to_json(), "toml": fragment.to_toml()}
        extras |= {"quantile": str(self.share_for(facts.n, facts.dimension)), "off": off}
        if equal:
            extras["equal_pairs_within"] = self._equal_reach(len(equal), facts)
        if medians:
            extras["bounds"] = {name: _bounds_around(median, spreads[name]) for name, median in medians.items()}
        beyond = value.get("beyond")
        note = t(
            "The median of {names} is probably further than 4,096 spreads from 0, which is the end of the grid. State "
            "a public center, or bounds, in the schema.",
            names=list_names(beyond or ()),
        )
        return Reading(
            mechanism="joint exponential",
            interval=None,
            text=self._sentence(value, facts),
            extras=extras,
            notes=(note,) if beyond else (),
            quality=self._quality(facts.n, facts.dimension, _repeating(equal)),
        )

    def _sentence(self, value: Value, facts: PublicFacts) -> str:
        medians: dict[str, float] = value.get("location", {})
        named = ", ".join(f"{name} {median:.4g}" for name, median in medians.items())
        unmeasured = [name for name in facts.columns if name not in value["scale"]]
        return t(
            "Spreads of the pairs of records that differ, as the standard deviation of a normal distribution: "
            "{spreads}.{equal} With 95 % none misses its quantile by more than {off:,} of {pairs:,} pairs."
            "{medians}{unmeasured}",
            spreads=", ".join(f"{name} {spread:.3g}" for name, spread in value["scale"].items()),
            equal=self._equal_words(value.get("equal_pairs", {}), facts),
            off=self.off(facts.n, facts.dimension),
            pairs=pairing_size(facts.n) // 2,
            medians=t(" Medians: {medians}.", medians=named) if medians else "",
            unmeasured=t(" Not in the publicly drawn subset: {names}.", names=list_names(unmeasured))
            if unmeasured
            else "",
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
            most = percent(min(1.0, max(equal.values()) + reach))
            return t(" Pairs with equal values are ignored: at most {most}.", most=most)
        return t(
            " Pairs with equal values are ignored: {shares} (95 %: all columns within {points:.2g} points).",
            shares=", ".join(f"about {percent(share)} of {name}" for name, share in beyond.items()),
            points=100 * reach,
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        groups, epsilon = self.spread_count(n, dimension), float(self.spread_epsilon(n, dimension))
        ratio, affordable = epsilon * pairing_size(n) / groups, self._affordable_spreads(n, dimension)
        smallest = self.find_least_amount(lambda query: query._is_useful(n, dimension))
        limit: str = t(
            "{ratio:,.1f} records times ε for each of {spreads} spreads, and {needed} are needed",
            ratio=ratio,
            spreads=groups,
            needed=MIN_SPREAD_RATIO,
        )
        if self.location:
            limit = t(
                "{limit}; {ratio:.3g} for each of {columns} locations, and {needed}",
                limit=limit,
                ratio=epsilon * n / dimension,
                columns=dimension,
                needed=MIN_LOCATION_RATIO,
            )
        useful = self._is_useful(n, dimension)
        if not useful and affordable:
            limit = t(
                "{limit}; name {columns} columns at most, pool those of one unit, or have a random part of them "
                "measured (subset)",
                limit=limit,
                columns=affordable,
            )
        figures = {"each": ratio, "off": self._off_share(n, dimension)}
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "spreads": groups},
            chosen="joint exponential",
            headings={"each": t("records × ε a spread"), "off": t("95 % off by at most, of all pairs")},
            options=(Option(mechanism="joint exponential", figures=figures, note=t("all columns at once")),),
            useful=useful,
            reason=limit,
            smallest_useful_epsilon=smallest,
            curve=self.trace(lambda query: query._off_share(n, dimension), AMOUNTS),
            measure=t("share of pairs that a spread misses its quantile by, 95 %"),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(loss=Loss("0.3"))

    def groups(self, columns: tuple[str, ...]) -> list[list[int]]:
        """The places of columns that share a spread, in the order of the table."""
        pooled = {name: place for place, names in enumerate(self.units or ()) for name in names}
        groups: dict[int | str, list[int]] = {}
        for at, name in enumerate(columns):
            groups.setdefault(pooled.get(name, name), []).append(at)
        return list(groups.values())

    def coordinates(self, dimension: int) -> int:
        """How many spreads are chosen."""
        return dimension - sum(len(names) - 1 for names in self.units or ())

    def spread_count(self, n: int, dimension: int) -> int:
        """How many spreads are chosen: of a subset as many as the loss allows for."""
        groups = self.coordinates(dimension)
        return min(groups, max(1, self._affordable_spreads(n, dimension))) if self.subset else groups

    def share_for(self, n: int, dimension: int) -> Fraction:
        """Which quantile of the differences is chosen: a rule by public facts."""
        enough = pairing_size(n) * self.spread_epsilon(n, dimension) >= MIN_QUARTILE_RATIO * self.spread_count(
            n, dimension
        )
        return Fraction(3, 4) if enough else Fraction(1, 2)

    def off(self, n: int, dimension: int) -> int:
        """By how many pairs the worst of all spreads misses its quantile at most, 95 times of 100.  (R)"""
        nats = self.spread_count(n, dimension) * math.log(BINS) - math.log1p(-CONFIDENCE)
        return min(pairing_size(n) // 2, math.ceil(2 * nats / float(self.spread_epsilon(n, dimension))))

    def _off_share(self, n: int, dimension: int) -> float:
        return min(1.0, self.off(n, dimension) / max(1, pairing_size(n) // 2))

    def _affordable_spreads(self, n: int, dimension: int) -> int:
        """Return how many spreads the loss allows for."""
        return math.floor(pairing_size(n) * self.spread_epsilon(n, dimension) / MIN_SPREAD_RATIO)

    def _is_useful(self, n: int, dimension: int) -> bool:
        epsilon = self.spread_epsilon(n, dimension)
        spread = pairing_size(n) * epsilon >= MIN_SPREAD_RATIO * self.spread_count(n, dimension)
        return spread and (not self.location or n * epsilon >= MIN_LOCATION_RATIO * dimension)

    def _quality(self, n: int, dimension: int, conditions: tuple[str, ...]) -> Quality:
        off = self._off_share(n, dimension)
        rule = t("every spread misses its quantile by at most {share} of the pairs (95 %)", share=percent(off))
        return rate_errors(off, rule, interval="two-sided", conditions=conditions)


def _repeating(equal: dict[str, float]) -> tuple[str, ...]:
    """Return the condition on columns that mostly repeat, by the released shares."""
    names = [
        f"{name} ({percent(share)} of its pairs are equal)" for name, share in equal.items() if share > REPEATING_SHARE
    ]
    if not names:
        return ()
    return (
        t(
            "Mostly repeated values: {names}. The spread is that of the other pairs. Omit such columns.",
            names=list_names(names),
        ),
    )


def _counts(data: Records, cells: list[Cells]) -> list[Ints]:
    """How many records are in each cell of each column, wherever they lie: counts of parts add up."""
    if isinstance(data, Points):
        return [cell.count(data.values[:, at]) for at, cell in enumerate(cells)]
    totals = [np.zeros(cell.size, dtype=np.int64) for cell in cells]
    for counts in data.each("finding locations", CellCounts(tuple(cells)), {}):
        for at, total in enumerate(totals):
            total += counts[str(at)]
    return totals


def _bounds_around(median: float, spread: float) -> tuple[float, float]:
    """Return bounds by a location and a spread, to two digits of the spread: post-processing."""
    digits = 1 - math.floor(math.log10(spread))
    return round(median - BOUND_SPREADS * spread, digits), round(median + BOUND_SPREADS * spread, digits)
