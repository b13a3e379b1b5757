"""The outliers of every group: counted within each, released together for one price.

A record is an outlier of its group when fewer than `neighbours` others *of that group* are near. Every group of the
public domain is told, empty ones too, and a noisy size beside its count. A replaced record can leave one group and join
another; both counts together then move by at most twice the slack (proof.md, labels (B1) (B2) (B3)). Where the schema
states that everybody may know the group of each record, it keeps its group, and sizes are no secret (label (B4)).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.data import Points, Table, TiledPoints, TiledTable
from wallflower.data.cells import group_labels
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.mechanisms import Additive, calibrate
from wallflower.neighbours.limits import per_column, view_all
from wallflower.neighbours.noisy_count import (
    STEP,
    SURE,
    CapRule,
    ChosenCap,
    cap_rule,
    count_noise,
    crowding_steps,
    exact_steps,
    interval,
    join_widths,
    whole,
)
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.count.words import (
    EPSILONS,
    TOTALS,
    USEFUL,
    cap_notes,
    plan_notes,
    total_errors,
)
from wallflower.query import Option, Plan, PublicFacts, Quality, Reading, least_amount
from wallflower.query.accuracy import NoiseLaw, rank_highest, rate_groups
from wallflower.query.picture import Bars, HeatMap, Picture
from wallflower.schema import Column
from wallflower.schema.columns import pick

Row = dict[str, Any]
Floats = NDArray[np.float64]

OUTLIERS, SIZE = "outliers", "size"  # what a row tells besides the labels of its group
MOST_COLUMNS: Final = 2
MOST_GROUPS: Final = 10_000
SIZES: Final = Fraction(1, 10)  # the part of the loss that sizes get
DEFAULT_SLACK: Final = 3  # groups are small, so noise matters more than bias
FAINT: Final = 10  # deviations of the count: a smaller group is drawn without a colour
ONE_SIDED: Final = (
    "Each upper end is proved with 97.5 % confidence; the lower ends cover the noise only. A group of no more than {} "
    "records consists of outliers."
)


KEEPS: Final = (
    "Who has which {} is public by the schema, and so are the sizes: hidden is that one record is replaced by another "
    "of the same group."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Records with their groups: `domain` has the public labels of each column that groups are made by."""

    points: Points | TiledPoints
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
        """Every group of the domain, in its order: its labels, and the records in it."""
        sizes = [len(each) for each in self.domain]
        records = _groups_on_tiles(self.points, self.table, self.by, sizes)
        return zip(product(*self.domain), records or self._in_memory(sizes), strict=True)

    def _in_memory(self, sizes: list[int]) -> Iterator[Floats]:
        assert isinstance(self.table, Table)
        assert isinstance(self.points, Points)
        codes = np.ravel_multi_index([self.table.codes(name) for name in self.by], sizes)
        order = np.argsort(codes, kind="stable")
        for start, end in pairwise(np.searchsorted(codes[order], np.arange(self.groups + 1)).tolist()):
            yield self.points.values[order[start:end]]


class CappedRows(list[Row]):
    """Released counts by group, and beside them the degree cap that was chosen for all of them."""

    def __init__(self, rows: Iterable[Row], chosen: ChosenCap) -> None:
        super().__init__(rows)
        self.chosen = chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCount:
    """How the outliers of every group are counted, planned and told."""

    neighbours: int
    radius: float
    by: tuple[str, ...]
    columns: tuple[str, ...] | None
    slack: int | None  # None: by the rule
    loss: Loss
    normalise: bool
    public: bool = False  # by the schema: everybody may know who is in which group

    def __post_init__(self) -> None:
        if not 1 <= len(self.by) <= MOST_COLUMNS or len(set(self.by)) < len(self.by):
            raise ParameterError(
                f"by: groups are made by one column or by two different ones, not by {len(self.by)}. Name one or two."
            )
        both = sorted({*self.by} & {*(self.columns or ()), OUTLIERS, SIZE})
        if both:
            raise ParameterError(
                f"by: {', '.join(both)} cannot make groups: it is a column that distances are taken over, or the name "
                "of a part of the answer. Choose another, or leave it out of columns."
            )
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch("by: counts by group have a theorem for a pure loss only. State epsilon alone.")

    def rule(self, n: int) -> CapRule:
        """How the degree cap is chosen: one for all groups.  (X)"""
        own = 1 if self.public else 0
        return cap_rule(n, self.neighbours, self.loss, slack=self.slack, usual=DEFAULT_SLACK, own=own)

    def with_cap(self, n: int, chosen: ChosenCap | None = None) -> GroupCount:
        """The same counts with their degree cap fixed, and with the loss that its choice leaves; a calm table's cap
        unless one is given.  (X)"""
        rule = self.rule(n)
        return replace(self, slack=rule.narrow if chosen is None else chosen.cap, loss=rule.numbers)

    @property
    def cap(self) -> int:
        """The degree cap that is asked for, or fixed."""
        return DEFAULT_SLACK if self.slack is None else self.slack

    @property
    def law(self) -> Additive:
        """The noise of each count."""
        if self.public:
            return count_noise(self.cap, self.loss)  # (B4)
        each = 2 * (self.cap * STEP.denominator + 1)  # (B1) (B2)
        return calibrate(each, Loss((1 - SIZES) * self.loss.amount), step=STEP)

    @property
    def size_law(self) -> Additive | None:
        """The noise of each size; None where sizes are public."""
        return None if self.public else calibrate(2, Loss(SIZES * self.loss.amount), step=Fraction(1))  # (B3)

    def rho_at(self, n: int) -> Fraction | None:
        """The zCDP parameter of counts and sizes together, and of the crowding test where one is made; None where ε²/2,
        which every pure loss has, is the best that is proved.  (B5) (X)"""
        if self.public:
            return None
        rule = self.rule(max(n, 1))
        sizes = SIZES * rule.numbers.epsilon
        counts, cap = rule.numbers.epsilon - sizes, rule.narrow
        longest = Fraction((cap + 1) * STEP.denominator + 1, cap * STEP.denominator + 1)
        tested = (self.loss.epsilon - rule.numbers.epsilon) ** 2 / 2
        return max((counts**2 + sizes**2) / 4, (counts * longest) ** 2 / 8) + tested

    @property
    def reach(self) -> float:
        """How far the noise of a count reaches, 95 times of 100."""
        return self.law.half_width(SURE)

    def view(self, data: Any) -> GroupView:
        """The records and the public domain of their groups, or a refusal from public facts."""
        if not isinstance(data, Table | TiledTable):
            raise DataError(
                f"groups by {' and '.join(self.by)} were asked for, and these are numbers alone. Open a table whose "
                "schema gives each of these columns its public categories."
            )
        by = pick(self.by, data.columns)
        facts = {column.name: column for column in data.schema.columns or ()}
        if self.public:
            _require_public([facts[name] for name in by])
        columns = self.columns or tuple(name for name in data.schema.distance_columns if name not in by)
        view = GroupView(
            points=view_all(data, pick(columns, data.columns), self.neighbours),
            table=data,
            by=by,
            domain=tuple(group_labels(facts[name]) for name in by),
        )
        if view.groups > MOST_GROUPS:
            raise ParameterError(
                f"by: {view.groups:,} groups are more than the {MOST_GROUPS:,} that are told at once. "
                "Group by one column, or by fewer categories."
            )
        return view

    def answer(self, data: GroupView, noise: Noise) -> list[Row]:
        """A noisy count and a noisy size of every group."""
        rule = self.rule(data.n)
        if rule.test is not None:
            chosen = rule.choose(self._crowding_steps(data), noise)
            return CappedRows(self.with_cap(data.n, chosen).answer(data, noise), chosen)
        if self.slack is None:
            return self.with_cap(data.n).answer(data, noise)
        law, size_law, rows = self.law, self.size_law, []
        with progress.steps("counting groups", data.groups) as step:
            for labels, records in data.members():
                count = whole(Fraction(self._steps(records, data.dimension) + law.draw(noise)), data.n)
                held = _size(records)
                size = held if size_law is None else min(max(held + size_law.draw(noise), 0), data.n)
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
        """The crowding of all groups together; groups without enough records for one inlier have none.  (X)"""
        total = 0
        for _, records in data.members():
            if _size(records) > self.neighbours:
                radius, normalise = self._search(records, data.dimension)
                total += crowding_steps([records], radius, self.neighbours, normalise=normalise)
        return total

    def _search(self, records: Floats | TiledPoints, columns: int) -> tuple[float, bool]:
        width = records.width if isinstance(records, TiledPoints) else records.shape[1]
        return per_column(self.radius, columns, width, normalise=self.normalise)

    def reading(self, value: list[Row], facts: PublicFacts) -> Reading:
        chosen = value.chosen if isinstance(value, CappedRows) else None
        return self.with_cap(facts.n, chosen)._read(value, facts, chosen or self.rule(facts.n).take_narrow())

    def _read(self, value: list[Row], facts: PublicFacts, chosen: ChosenCap) -> Reading:
        intervals = self._intervals(value, facts.n)
        law = NoiseLaw.of(self.law)
        highest = rank_highest(((self._name(row), int(row[OUTLIERS])) for row in value), law)
        return Reading(
            mechanism="extension",
            interval=None,
            words=self._sentence(value, intervals, highest),
            extras={
                **chosen.facts,
                "groups": len(value),
                "intervals": [list(ends) for ends in intervals],
                "noise_law": law.to_json(),
                "highest": None if highest is None else {"group": highest[0], "p_value": highest[1]},
            },
            notes=(
                ONE_SIDED.format(self.neighbours),
                *cap_notes(chosen, self.neighbours),
                *((KEEPS.format(" and ".join(self.by)),) if self.public else ()),
            ),
            quality=self._quality(value),
        )

    def _sentence(self, value: list[Row], intervals: list[tuple[int, int]], highest: tuple[str, float] | None) -> str:
        """What is proved of the group with the highest count first; ranked only where the noise does not explain it."""
        place = max(range(len(value)), key=lambda at: int(value[at][OUTLIERS]))
        row, about = value[place], "" if self.public else "about "
        rank = "the highest counts differ by no more than noise explains"
        if highest is not None:
            rank = f"{highest[0]} has the highest count, by more than noise explains (p = {highest[1]:.2g})"
        return (
            f"{len(value):,} groups by {' and '.join(self.by)}: {rank}. In {self._name(row)} at most "
            f"{intervals[place][1]:,} of {about}{row[SIZE]:,} records are outliers (97.5 % confidence); estimate "
            f"{row[OUTLIERS]:,}. The noise in each group is within ±{self.reach:.3g} (95 %)."
        )

    def picture(self, value: list[Row], facts: PublicFacts) -> Picture:
        """Bars for groups by one column; for groups by two, a map of the shares of outliers."""
        if self.slack is None:
            chosen = value.chosen if isinstance(value, CappedRows) else None
            return self.with_cap(facts.n, chosen).picture(value, facts)
        if len(self.by) == 1:
            return Bars(
                labels=tuple(map(self._name, value)),
                lengths=tuple(float(row[OUTLIERS]) for row in value),
                intervals=tuple((float(low), float(high)) for low, high in self._intervals(value, facts.n)),
                across="outliers",
                marks=tuple(f"{row[OUTLIERS]:,} of about {row[SIZE]:,}" for row in value),
            )
        down, across = (tuple(dict.fromkeys(str(row[name]) for row in value)) for name in self.by)
        least = FAINT * self.law.deviation()
        shares = [min(1.0, row[OUTLIERS] / row[SIZE]) if row[SIZE] >= max(1.0, least) else None for row in value]
        marks = [f"{row[OUTLIERS]:,}" for row in value]
        return HeatMap(
            down=down,
            across=across,
            names=(self.by[0], self.by[1]),
            values=tuple(tuple(shares[at : at + len(across)]) for at in range(0, len(value), len(across))),
            marks=tuple(tuple(marks[at : at + len(across)]) for at in range(0, len(value), len(across))),
            marked="outliers",
            measure="share of outliers",
        )

    def plan(self, kind: str, *, n: int, dimension: int, groups: int | None = None) -> Plan:
        """What to expect; where nobody says how many groups there are, of one that holds all records."""
        calm, usual = self.with_cap(n), n / (groups or 1)
        width = calm.reach
        smallest = least_amount(lambda amount: self._at(amount).with_cap(n).reach <= USEFUL * usual)
        useful = width <= USEFUL * usual
        among = f"{groups:,} groups of {usual:,.0f} records on average" if groups else f"the groups of {n:,} records"
        advice = f"; from ε = {smallest} on it would be" if smallest else "; no reasonable loss makes it so"
        crowded = self.with_cap(n, self.rule(n).likely_cap()).reach
        limit = f"noise within {join_widths(width, crowded)} in each of {among}"
        small = (
            f"In a group of fewer than {math.ceil(width / USEFUL):,} records the noise is above a tenth of its size."
        )
        sizes = calm.size_law.half_width(SURE) if calm.size_law else 0.0
        totals = total_errors(self.rule(n), self.neighbours, lambda chosen: self.with_cap(n, chosen).law.mean_error())
        figures = (*totals, calm.law.mean_error(), width, calm.law.deviation(), sizes)
        return Plan(
            query=kind,
            cost=self.loss,
            facts={"n": n, "dimension": dimension} | ({"groups": groups} if groups else {}),
            chosen="extension",
            headings=_HEADINGS,
            options=(
                Option(
                    mechanism="extension",
                    figures=dict(zip(_HEADINGS, figures, strict=True)),
                    note="may overcount where many records have barely enough neighbours in their group",
                ),
            ),
            useful=useful,
            reason=limit if useful else f"{limit}{advice}",
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), self._at(e).with_cap(n).reach) for e in EPSILONS),
            measure="half-width of the 95 % interval of a group",
            notes=(small, *plan_notes(self.rule(n), self.neighbours)),
        )

    def _quality(self, value: list[Row]) -> Quality:
        groups = [(row[OUTLIERS], row[SIZE]) for row in value]
        return rate_groups(self.reach, groups, interval="upper end only")

    def _intervals(self, value: list[Row], n: int) -> list[tuple[int, int]]:
        law = self.law
        return [interval(row[OUTLIERS], n, law) for row in value]

    def _name(self, row: Row) -> str:
        return " × ".join(str(row[name]) for name in self.by)

    def _at(self, amount: str) -> GroupCount:
        return replace(self, loss=Loss(amount))


def _size(records: Floats | TiledPoints) -> int:
    return records.n if isinstance(records, TiledPoints) else len(records)


def _groups_on_tiles(points: Any, table: Any, by: tuple[str, ...], sizes: list[int]) -> Iterator[TiledPoints] | None:
    """The records of each group where an engine keeps them, or None."""
    if not isinstance(points, TiledPoints):
        return None
    return (replace(points, table=group) for group in table.group(by, sizes))


def _require_public(columns: list[Column]) -> None:
    """Refuse to take groups for public where the schema does not say that they are."""
    private = [column.name for column in columns if not column.public]
    if private:
        raise DataError(
            f"public_groups: {' and '.join(private)} is not public by the schema. Leave it out, which hides who is in "
            "which group; or the data owner states `public = true` for the column.",
            column=private[0],
        )


_HEADINGS: Final = {
    **TOTALS,
    "error": "typical noise of a group ±",
    "half_width": "95 % within ±",
    "deviation": "deviation",
    "sizes": "sizes, 95 % within ±",
}
