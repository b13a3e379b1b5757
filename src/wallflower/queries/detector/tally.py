"""How many records has a detector flagged so far, period by period?

Given a detector that was released, the period of a record and whether it is flagged are functions of the record alone.
The running total after every period is released, with correlated noise that grows with the logarithm of the number of
periods instead of its root.

Released    a whole number for every period        Neighbours  replace one record, N public
Guarantee   ρ-zCDP                                 Arithmetic  whole-number counts and factor, discrete Gaussian
Proof       proof.md, label (R)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Table, load
from wallflower.drawing.picture import Band, Picture
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.mechanisms import MAX_PERIODS, Factorisation
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.detector.grids import Floats, Ints
from wallflower.queries.detector.model import Model, require_detector, take_model
from wallflower.queries.detector.periods import NOWHERE, Periods, read_length
from wallflower.query import (
    Option,
    Plan,
    PublicFacts,
    Query,
    Reading,
    ReleaseInput,
    ReleaseLike,
    Status,
    least_amount,
    normalise_fields,
)
from wallflower.query.accuracy import CONFIDENCE, rate_number
from wallflower.schema.columns import pick
from wallflower.text import t

Row = dict[str, Any]

UNTIL, FLAGGED = "until", "flagged"  # of a row: when its period ends, and how many were flagged by then
NEAR: Final = 50  # records for each record of noise: with fewer, a total is mostly noise
RHOS: Final = ("0.001", "0.003", "0.01", "0.03", "0.1", "0.3", "1", "3")


@dataclass(frozen=True, slots=True, kw_only=True)
class TallyView:
    """Records, the public periods that they fall into, and the detector, once it was looked up."""

    table: Table
    time: str
    periods: Periods
    is_public: bool
    model: Model | None = None

    @property
    def n(self) -> int:
        return self.table.n

    @property
    def dimension(self) -> int:
        return self.table.dimension

    @property
    def columns(self) -> tuple[str, ...]:
        return self.table.columns

    def counts(self) -> Ints:
        """How many records of each period are flagged: a record is in one period, or in none.  (R)"""
        assert self.model is not None, "take_releases() comes before any look at records"
        points = self.model.project(self.table)
        flagged = self.model.score(points.values) > self.model.require_threshold()
        return count_periods(self.periods, self._numbers()[flagged])

    def _numbers(self) -> Floats:
        return self.periods.numbers(self.table.times(self.time)) if self.is_public else self.table.cells(self.time)


def count_periods(periods: Periods, numbers: Floats) -> Ints:
    """How many of these are in each period."""
    places = periods.places(numbers)
    counts: Ints = np.bincount(places[places != NOWHERE], minlength=periods.count)
    return counts.astype(np.int64)


@dataclass(frozen=True, slots=True)
class RunningTotals:
    """What was computed under noise: `hidden` is all that depends on the records, and `rows` follow from it."""

    hidden: tuple[int, ...]
    rows: list[Row]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally(Query[TallyView, RunningTotals]):
    """Count the records that a detector has flagged so far, after every period.

    >>> query = Tally(detector=7, time="day", every="1 week", periods=52, loss=Loss.zcdp("0.02"))
    >>> query.cost(), round(query.factors.deviation(52), 2), round(query.factors.deviation_of_sums(52), 2)
    (Loss(ρ=1/50), 2.86, 10.2)
    """

    kind: ClassVar[str] = "tally"
    label: ClassVar[str] = "outlier-detector-tally/1"
    question: ClassVar[str] = "How many records has a detector flagged so far, period by period?"
    proof: ClassVar[str] = "queries/detector/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    companion_of: ClassVar[str] = "detector"

    detector: int | ReleaseLike = field(
        metadata={
            "help": "the ledger entry of a release of detector that was given a contamination, or the release",
            "release": ReleaseInput(kind="detector", also=("threshold",)),
        }
    )
    time: str = field(metadata={"help": "the column of dates or numbers that says when a record was made"})
    periods: int = field(metadata={"help": "number of periods, and of running totals"})
    every: str = field(default="1", metadata={"help": "length of a period: 1, or with a unit, such as '1 week'"})
    start: str | None = field(
        default=None,
        metadata={"help": "where the first period begins: a number or a date (default: the column's lower bound)"},
    )
    public_time: bool = field(
        default=False,
        metadata={"help": "the schema states `time = true` for the column: times are not protected, and noise is less"},
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend: a ρ, as text"})

    def __post_init__(self) -> None:
        normalise_fields(self)
        if self.loss.kind is not Kind.ZCDP:
            raise LossMismatch(f"tally has Gaussian noise; a {self.loss.kind} loss has no theorem here. Pass a rho.")
        if self.loss.amount <= 0:
            raise ParameterError("rho: a loss of 0 allows no answer at all; pass more than 0, such as '0.02'.")
        require_detector(self.detector)
        if isinstance(self.periods, bool) or not isinstance(self.periods, int) or not 1 <= self.periods <= MAX_PERIODS:
            raise ParameterError(f"periods: it is a whole number from 1 to {MAX_PERIODS:,}. Pass one.")
        if not isinstance(self.time, str) or not self.time:
            raise ParameterError("time: it is the name of a column. Pass one.")
        read_length(self.every)

    @property
    def factors(self) -> Factorisation:
        """The factors of the running totals; a record whose time is not public may move to another period.  (R)"""
        return Factorisation(self.periods, moves=not self.public_time)

    def cost(self) -> Loss:
        return self.loss

    def public_columns(self) -> tuple[str, ...]:
        return (self.time,) if self.public_time else ()

    def view(self, data: Any) -> TallyView:
        table = data if isinstance(data, Table) else load(data)
        (name,) = pick((self.time,), table.columns)
        column = next(column for column in table.schema.columns or () if column.name == name)
        if column.time and not self.public_time:
            raise ParameterError(
                f"time: the schema states that column {name!r} is public. Add public_time, which needs less noise."
            )
        if self.public_time and not column.time:
            raise DataError(
                f"public_time: the schema does not state `time = true` for column {name!r}. Drop public_time, or have "
                "the data steward state it.",
                column=name,
            )
        if not column.time:
            table.require((name,))
        periods = Periods.of(column, start=self.start, every=self.every, count=self.periods)
        return TallyView(table=table, time=name, periods=periods, is_public=self.public_time)

    def take_releases(self, view: TallyView, find: Callable[[int], Mapping[str, Any] | None]) -> TallyView:
        """The view with its detector; refused by what is public of both."""
        return replace(view, model=take_model(self.detector, find, view.table))

    def answer(self, data: TallyView, noise: Noise) -> RunningTotals:
        hidden = self.factors.hide(data.counts(), self.loss, noise)  # (R)
        return RunningTotals(tuple(hidden.tolist()), self.read_totals(hidden, data.periods, data.n))

    def read_totals(self, hidden: Ints, periods: Periods, most: int) -> list[Row]:
        """The rows of an answer: post-processing of what was hidden."""
        totals = np.clip(np.floor(self.factors.totals(hidden) + 0.5), 0, most).astype(np.int64)
        return [{UNTIL: periods.end(at), FLAGGED: total} for at, total in enumerate(totals.tolist())]

    def released(self, answer: RunningTotals) -> list[Row]:
        return answer.rows

    def reading(self, value: RunningTotals, facts: PublicFacts) -> Reading:
        last, intervals = value.rows[-1], self.intervals(value.rows, facts.n)
        low, high = intervals[-1]
        return Reading(
            mechanism="square-root factorisation",
            interval=None,
            text=t(
                "By {until} about {total:,} of {n:,} records were flagged ({low:,} to {high:,}, 95 % confidence for "
                "each of the {periods:,} totals by itself).",
                until=last[UNTIL],
                total=last[FLAGGED],
                n=facts.n,
                low=low,
                high=high,
                periods=len(value.rows),
            ),
            extras={"intervals": [list(ends) for ends in intervals], "last_interval": [low, high]},
            quality=rate_number(self.reach, number=last[FLAGGED], records=facts.n, interval="two-sided"),
            brief=t("{total:,} by {until}", total=last[FLAGGED], until=last[UNTIL]),
        )

    def picture(self, value: list[Row], facts: PublicFacts) -> Picture:
        ends = self.intervals(value, facts.n)
        return Band(
            middle=tuple(float(row[FLAGGED]) for row in value),
            low=tuple(float(low) for low, _ in ends),
            high=tuple(float(high) for _, high in ends),
            across=t("period"),
            up=t("flagged so far"),
            covers=t("95 %"),
        )

    def intervals(self, rows: list[Row], most: int) -> list[tuple[int, int]]:
        """The interval of each total, 95 % for each by itself."""
        widths = self.factors.half_widths(self.loss, CONFIDENCE)
        return [
            (max(0, row[FLAGGED] - width), min(most, row[FLAGGED] + width))
            for row, width in zip(rows, widths, strict=False)
        ]

    @property
    def reach(self) -> float:
        """How far the noise of the last total reaches, 95 times of 100."""
        return float(self.factors.half_widths(self.loss, CONFIDENCE)[-1])

    def plan(self, *, n: int, dimension: int) -> Plan:
        width, useful = self.reach, self._is_useful(n)
        smallest = least_amount(lambda amount: self._at(amount)._is_useful(n))
        unit = width / max(self.factors.deviation(self.periods), 1e-9)
        sums = unit * self.factors.deviation_of_sums(self.periods)
        reason = t(
            "the last of {periods:,} totals is within ±{width:.3g} (95 %) among {n:,} records",
            periods=self.periods,
            width=width,
            n=n,
        )
        if smallest and not useful:
            reason = t("{limit}; from ρ = {smallest} on it would be useful", limit=reason, smallest=smallest)
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "periods": self.periods},
            chosen="square-root factorisation",
            headings={"half_width": t("last total, 95 % within ±")},
            options=(
                Option(
                    mechanism="square-root factorisation",
                    figures={"half_width": width},
                    note=t("correlated noise"),
                ),
                Option(
                    mechanism="sums of periods",
                    figures={"half_width": sums},
                    note=t("for comparison: every period with noise of its own, added up"),
                ),
            ),
            useful=useful,
            reason=reason,
            smallest_useful_epsilon=smallest,
            curve=tuple((float(amount), self._at(amount).reach) for amount in RHOS),
            measure=t("half-width of the 95 % interval of the last total"),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(detector=1, time="day", start="0", periods=3, loss=Loss.zcdp("1/2"))

    def _is_useful(self, n: int) -> bool:
        return self.reach * NEAR <= n

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss.zcdp(amount))
