"""The outliers of every group: counted within each, released together at the cost of one count.

A record is an outlier of its group when fewer than `neighbours` others *of that group* are near. Every group of the
public domain has a row, empty ones too, with a noisy size beside its count. A replaced record can leave one group and
join another; both counts together then move by at most twice the slack (proof.md, labels (B1) (B2) (B3)). Where the
schema states that the group of each record is public, a record keeps its group, and sizes are exact (label (B4)).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.data import Points, Table, TiledPoints, TiledTable
from wallflower.data.cells import group_labels
from wallflower.drawing.picture import Bars, HeatMap, Picture
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.mechanisms import Additive, calibrate
from wallflower.neighbours.limits import check_radius, per_column, view_all
from wallflower.neighbours.noisy_count import (
    STEP,
    CapRule,
    ChosenCap,
    cap_rule,
    count_noise,
    crowding_steps,
    exact_steps,
    interval,
    join_widths,
    round_to_records,
)
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.progress import Effort
from wallflower.queries.count.at_radius import (
    NOISE_LABELS,
    TOTALS,
    USEFUL_SHARE,
    CountQuery,
    describe_cap,
    describe_rule,
    expect_errors,
)
from wallflower.queries.near import CappedQuery, Records
from wallflower.query import Option, Plan, PublicFacts, Reading
from wallflower.query.accuracy import CONFIDENCE, NoiseLaw, check_distances, rank_highest, rate_groups
from wallflower.schema import Column
from wallflower.schema.columns import pick
from wallflower.text import t
from wallflower.theorems import name_labels
from wallflower.units import Claim

Row = dict[str, Any]  # the labels of a group by column, its outliers and its size
Floats = NDArray[np.float64]

OUTLIERS, SIZE = "outliers", "size"  # the parts of a row besides the labels of its group
MAX_GROUP_COLUMNS: Final = 2
MAX_GROUPS: Final = 10_000
SIZES_PART: Final = Fraction(1, 10)  # of the loss, for sizes
DEFAULT_SLACK: Final = 3  # groups are small, so noise matters more than bias
MIN_DEVIATIONS: Final = 10  # of the count: a smaller group is drawn without a colour
HEADINGS: Final[Mapping[str, str]] = {
    **TOTALS,
    "error": t("typical noise of a group ±"),
    "half_width": t("95 % within ±"),
    "deviation": t("deviation"),
    "sizes": t("sizes, 95 % within ±"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Records with their groups: `domain` has the public labels of each column that groups are made by."""

    points: Records
    table: Table | TiledTable
    by: tuple[str, ...]
    domain: tuple[tuple[str, ...], ...]

    @property
    def n(self) -> int:
        return self.points.n

    @property
    def dimension(self) -> int:
        return self.points.dimension

    @property
    def columns(self) -> tuple[str, ...]:
        return self.points.columns

    @property
    def groups(self) -> int:
        return math.prod(map(len, self.domain))

    def members(self) -> Iterator[tuple[tuple[str, ...], Floats | TiledPoints]]:
        """Yield every group of the domain, in its order: its labels, and the records in it."""
        sizes = [len(labels) for labels in self.domain]
        return zip(product(*self.domain), self._records_by_group(sizes), strict=True)

    def _records_by_group(self, sizes: list[int]) -> Iterator[Floats | TiledPoints]:
        if isinstance(self.table, TiledTable):
            assert isinstance(self.points, TiledPoints)
            for table in self.table.group(self.by, sizes):
                yield replace(self.points, table=table)
            return
        assert isinstance(self.points, Points)
        codes = np.ravel_multi_index([self.table.codes(name) for name in self.by], sizes)
        order = np.argsort(codes, kind="stable")
        for start, end in pairwise(np.searchsorted(codes[order], np.arange(self.groups + 1)).tolist()):
            yield self.points.values[order[start:end]]


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """Released counts by group, and the degree cap that a released test chose for all of them, if there was one."""

    value: list[Row]
    cap: ChosenCap | None = None


@dataclass(frozen=True, kw_only=True)
class CountByGroup(CountQuery[GroupView, GroupCounts], CappedQuery[GroupView, GroupCounts]):
    """Count the outliers of every group of one or two label columns.

    >>> query = CountByGroup(neighbours=3, radius=0.5, by=("ward",), loss=Loss("1"))
    >>> query.law.half_width(0.95) > replace(query, public_groups=True).law.half_width(0.95)
    True
    """

    title: ClassVar[str] = "a count by group"
    mechanism: ClassVar[str] = "extension"

    radius: float
    by: tuple[str, ...]
    public_groups: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_radius(self.radius)
        if not 1 <= len(self.by) <= MAX_GROUP_COLUMNS or len(set(self.by)) < len(self.by):
            raise ParameterError(
                f"by: groups are made by one column or by two different ones, not by {len(self.by)}. Name one or two."
            )
        both = sorted({*self.by} & {*(self.columns or ()), OUTLIERS, SIZE})
        if both:
            raise ParameterError(
                f"by: {', '.join(both)} cannot make groups: it is a column of the distance, or the name of a part of "
                "the answer. Choose another, or omit it from columns."
            )
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch("by: counts by group have a theorem for a pure loss only. State epsilon alone.")

    def rule(self, n: int) -> CapRule:
        """Return how the degree cap is chosen: one for all groups.  (X)"""
        own = 1 if self.public_groups else 0
        return cap_rule(n, self.neighbours, self.loss, slack=self.slack, usual=DEFAULT_SLACK, own=own)

    def with_cap(self, n: int, chosen: ChosenCap | None = None) -> Self:
        """Return the counts with their degree cap fixed and the loss that its choice leaves; by default the cap of a
        table that is not crowded.  (X)"""
        rule = self.rule(n)
        return replace(self, slack=rule.narrow if chosen is None else chosen.cap, loss=rule.numbers)

    @property
    def cap(self) -> int:
        """The degree cap that is asked for, or fixed."""
        return DEFAULT_SLACK if self.slack is None else self.slack

    @property
    def law(self) -> Additive:
        """The noise of each count."""
        if self.public_groups:
            return count_noise(self.cap, self.loss)  # (B4)
        moves = 2 * (self.cap * STEP.denominator + 1)  # (B1) (B2)
        return calibrate(moves, Loss((1 - SIZES_PART) * self.loss.amount), step=STEP)

    @property
    def size_law(self) -> Additive | None:
        """The noise of each size; None where sizes are public."""
        if self.public_groups:
            return None
        return calibrate(2, Loss(SIZES_PART * self.loss.amount), step=Fraction(1))  # (B3)

    @property
    def reach(self) -> float:
        """How far the noise of a count reaches, with 95 %."""
        return self.law.half_width(CONFIDENCE)

    def rho_at(self, n: int) -> Fraction | None:
        """Return the zCDP parameter of counts, sizes and the test of crowding together; None where ε²/2, which every
        pure loss has, is the best that is proved.  (B5) (X)"""
        if self.public_groups:
            return None
        rule = self.rule(max(n, 1))
        sizes = SIZES_PART * rule.numbers.epsilon
        counts, cap = rule.numbers.epsilon - sizes, rule.narrow
        longest = Fraction((cap + 1) * STEP.denominator + 1, cap * STEP.denominator + 1)
        tested = (self.loss.epsilon - rule.numbers.epsilon) ** 2 / 2
        return max((counts**2 + sizes**2) / 4, (counts * longest) ** 2 / 8) + tested

    def claim(self, facts: PublicFacts) -> Claim:
        return replace(super().claim(facts), rho=self.rho_at(facts.n))  # (B5)

    def public_columns(self) -> tuple[str, ...]:
        return self.by if self.public_groups else ()  # (B4)

    def effort(self, *, n: int, dimension: int) -> Effort:
        return self.estimate_searches(n, dimension, 1)

    def view(self, data: Any) -> GroupView:
        if not isinstance(data, Table | TiledTable):
            raise DataError(
                f"by: the data have numbers only, so there are no groups by {' and '.join(self.by)}. Open a table "
                "whose schema gives each of these columns its public categories."
            )
        by = pick(self.by, data.columns)
        facts = {column.name: column for column in data.schema.columns or ()}
        if self.public_groups:
            _require_public([facts[name] for name in by])
        columns = self.columns or tuple(name for name in data.schema.default_distance_columns if name not in by)
        view = GroupView(
            points=view_all(data, pick(columns, data.columns), self.neighbours),
            table=data,
            by=by,
            domain=tuple(group_labels(facts[name]) for name in by),
        )
        if view.groups > MAX_GROUPS:
            raise ParameterError(
                f"by: there are {view.groups:,} groups, and at most {MAX_GROUPS:,} are released at once. Group by one "
                "column, or by fewer categories."
            )
        return view

    def conditions(self, data: GroupView) -> tuple[str, ...]:
        distances = check_distances(data.points, self.scale)
        return (*distances, *self.check_cap(self.rule(data.n), lambda wide: wide.reach))

    def rests_on(self, data: GroupView) -> tuple[str, ...]:
        groups = "B4" if self.public_groups else "B1 B2 B3"
        labels = f"P E C1 C2 N F{' X' if self.slack is None else ''} {groups}"
        return name_labels("count", labels) + name_labels("mechanisms", NOISE_LABELS[self.loss.kind])

    def answer(self, data: GroupView, noise: Noise) -> GroupCounts:
        rule = self.rule(data.n)
        chosen = None if rule.test is None else rule.choose(self._crowding_steps(data), noise)
        return GroupCounts(self.with_cap(data.n, chosen)._count_groups(data, noise), chosen)

    def _count_groups(self, data: GroupView, noise: Noise) -> list[Row]:
        """Return a noisy count and a noisy size of every group, with a degree cap that is fixed."""
        law, size_law, rows = self.law, self.size_law, []
        with progress.steps("counting groups", data.groups) as step:
            for labels, records in data.members():
                count = round_to_records(Fraction(self._steps(records, data.dimension) + law.draw(noise)), data.n)
                size = _size(records)
                if size_law is not None:
                    size = min(max(size + size_law.draw(noise), 0), data.n)
                rows.append(dict(zip(data.by, labels, strict=True)) | {OUTLIERS: count, SIZE: size})
                step()
        return rows

    def _steps(self, records: Floats | TiledPoints, columns: int) -> int:
        if _size(records) <= self.neighbours:
            return _size(records) * STEP.denominator  # nobody has enough neighbours
        radius, normalise = self._search(records, columns)
        with progress.hush():  # how many parts a group has is private
            return exact_steps(records, radius, self.neighbours, self.cap, normalise=normalise)

    def _crowding_steps(self, data: GroupView) -> int:
        """Return the crowding of all groups together; groups with too few records for an inlier have none.  (X)"""
        total = 0
        for _, records in data.members():
            if _size(records) > self.neighbours:
                radius, normalise = self._search(records, data.dimension)
                total += crowding_steps([records], radius, self.neighbours, normalise=normalise)
        return total

    def _search(self, records: Floats | TiledPoints, columns: int) -> tuple[float, bool]:
        width = records.width if isinstance(records, TiledPoints) else records.shape[1]
        return per_column(self.radius, columns, width, normalise=self.normalise)

    def as_released(self, extras: Mapping[str, Any], facts: PublicFacts) -> Self:
        if "crowding" not in extras:
            return self
        return self.with_cap(facts.n, ChosenCap(extras["slack"], extras["crowding"], extras["slack_reason"]))

    def reading(self, value: GroupCounts, facts: PublicFacts) -> Reading:
        chosen = value.cap or self.rule(facts.n).take_narrow()
        return self.with_cap(facts.n, value.cap)._read(value.value, facts, chosen)

    def _read(self, rows: list[Row], facts: PublicFacts, chosen: ChosenCap) -> Reading:
        intervals, law = self._intervals(rows, facts.n), NoiseLaw.of(self.law)
        highest = rank_highest(((self._name(row), int(row[OUTLIERS])) for row in rows), law)
        one_sided = t(
            "Each upper end is proved with 97.5 % confidence; the lower ends cover the noise only. A group of no more "
            "than {neighbours} records consists of outliers.",
            neighbours=self.neighbours,
        )
        public = t(
            "Who has which {columns} is public by the schema, and so are the sizes: the guarantee covers the "
            "replacement of one record by another of the same group.",
            columns=" and ".join(self.by),
        )
        return Reading(
            mechanism=self.mechanism,
            interval=None,
            text=self._sentence(rows, intervals, highest),
            extras={
                **chosen.facts,
                "groups": len(rows),
                "intervals": [list(ends) for ends in intervals],
                "noise_law": law.to_json(),
                "highest": None if highest is None else {"group": highest[0], "p_value": highest[1]},
            },
            notes=(
                one_sided,
                *describe_cap(chosen, self.neighbours),
                *((public,) if self.public_groups else ()),
            ),
            quality=rate_groups(self.reach, [(row[OUTLIERS], row[SIZE]) for row in rows], interval="upper end only"),
        )

    def _sentence(self, rows: list[Row], intervals: list[tuple[int, int]], highest: tuple[str, float] | None) -> str:
        """State what is proved of the group with the highest count; rank it only where noise does not explain it."""
        at = max(range(len(rows)), key=lambda index: int(rows[index][OUTLIERS]))
        if highest is None:
            rank = t("the highest counts differ by no more than noise explains")
        else:
            rank = t(
                "{group} has the highest count, by more than noise explains (p = {p:.2g})",
                group=highest[0],
                p=highest[1],
            )
        numbers = {"group": self._name(rows[at]), "high": intervals[at][1], "size": rows[at][SIZE]}
        template_numbers = numbers | {"value": rows[at][OUTLIERS], "reach": self.reach}
        if self.public_groups:
            within = t(
                "In {group} at most {high:,} of {size:,} records are outliers (97.5 % confidence); estimate {value:,}. "
                "The noise in each group is within ±{reach:.3g} (95 %).",
                **template_numbers,
            )
        else:
            within = t(
                "In {group} at most {high:,} of about {size:,} records are outliers (97.5 % confidence); estimate "
                "{value:,}. The noise in each group is within ±{reach:.3g} (95 %).",
                **template_numbers,
            )
        return t(
            "{groups:,} groups by {columns}: {rank}. {within}",
            groups=len(rows),
            columns=" and ".join(self.by),
            rank=rank,
            within=within,
        )

    def picture(self, value: list[Row], facts: PublicFacts) -> Picture:
        """Return bars for groups by one column; for groups by two, a map of the shares of outliers."""
        capped = self.with_cap(facts.n)
        return capped._draw_bars(value, facts.n) if len(self.by) == 1 else capped._draw_map(value)

    def _draw_bars(self, rows: list[Row], n: int) -> Bars:
        return Bars(
            labels=tuple(map(self._name, rows)),
            lengths=tuple(float(row[OUTLIERS]) for row in rows),
            intervals=tuple((float(low), float(high)) for low, high in self._intervals(rows, n)),
            across="outliers",
            marks=tuple(f"{row[OUTLIERS]:,} of about {row[SIZE]:,}" for row in rows),
        )

    def _draw_map(self, rows: list[Row]) -> HeatMap:
        down, across = (tuple(dict.fromkeys(str(row[name]) for row in rows)) for name in self.by)
        least = max(1.0, MIN_DEVIATIONS * self.law.deviation())
        shares = [min(1.0, row[OUTLIERS] / row[SIZE]) if row[SIZE] >= least else None for row in rows]
        marks = [f"{row[OUTLIERS]:,}" for row in rows]
        starts = range(0, len(rows), len(across))
        return HeatMap(
            down=down,
            across=across,
            names=(self.by[0], self.by[1]),
            values=tuple(tuple(shares[at : at + len(across)]) for at in starts),
            marks=tuple(tuple(marks[at : at + len(across)]) for at in starts),
            marked="outliers",
            measure="share of outliers",
        )

    def plan_on(self, data: GroupView) -> Plan:
        return self._plan(data.n, data.dimension, data.groups)

    def plan(self, *, n: int, dimension: int) -> Plan:
        return self._plan(n, dimension, None)

    def _plan(self, n: int, dimension: int, groups: int | None) -> Plan:
        """Return what to expect; where the number of groups is not known, of one group that holds all records."""
        calm, rule, mean_size = self.with_cap(n), self.rule(n), n / (groups or 1)
        width = calm.reach
        smallest = self.find_least_amount(lambda query: query.with_cap(n).reach <= USEFUL_SHARE * mean_size)
        useful = width <= USEFUL_SHARE * mean_size
        widths = join_widths(width, self.with_cap(n, rule.likely_cap()).reach)
        if groups:
            limit = t(
                "noise within {widths} in each of {groups:,} groups of {size:,.0f} records on average",
                widths=widths,
                groups=groups,
                size=mean_size,
            )
        else:
            limit = t("noise within {widths} in each of the groups of {n:,} records", widths=widths, n=n)
        small = t(
            "In a group of fewer than {records:,} records the noise is above a tenth of its size.",
            records=math.ceil(width / USEFUL_SHARE),
        )
        sizes = calm.size_law.half_width(CONFIDENCE) if calm.size_law else 0.0
        totals = expect_errors(rule, self.neighbours, lambda chosen: self.with_cap(n, chosen).law.mean_error())
        figures = (*totals, calm.law.mean_error(), width, calm.law.deviation(), sizes)
        option = Option(
            mechanism=self.mechanism,
            figures=dict(zip(HEADINGS, figures, strict=True)),
            note=t("may overcount where many records have barely enough neighbours in their group"),
        )
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension} | ({"groups": groups} if groups else {}),
            chosen=self.mechanism,
            headings=HEADINGS,
            options=(option,),
            useful=useful,
            reason=self.explain_use(limit, useful, smallest),
            smallest_useful_epsilon=smallest,
            curve=self.trace(lambda query: query.with_cap(n).reach),
            measure=t("half-width of the 95 % interval of a group"),
            notes=(small, describe_rule(rule, self.neighbours)),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=1.3, by=("ward",), loss=Loss("1"))

    def _intervals(self, rows: list[Row], n: int) -> list[tuple[int, int]]:
        law = self.law
        return [interval(row[OUTLIERS], n, law) for row in rows]

    def _name(self, row: Row) -> str:
        return " × ".join(str(row[name]) for name in self.by)


def _size(records: Floats | TiledPoints) -> int:
    return records.n if isinstance(records, TiledPoints) else len(records)


def _require_public(columns: list[Column]) -> None:
    """Refuse to take groups for public where the schema does not say that they are."""
    private = [column.name for column in columns if not column.public]
    if private:
        raise DataError(
            f"public_groups: column {' and '.join(private)} is not marked `public = true` in the schema. Drop "
            "public_groups (group membership is then protected too), or have the data steward mark it.",
            column=private[0],
        )
