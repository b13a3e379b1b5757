"""How many records of each group does a detector flag?

Given a detector that was released, the group of a record and whether it is flagged are functions of the record alone.
Every group of the public domain is released, empty ones too: how many are flagged, and how many are not.

Released    two whole numbers for every group            Neighbours  replace one record, N public
Guarantee   pure ε-DP                                     Arithmetic  whole-number counts, discrete Laplace
Proof       proof.md, label (F)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, Final, Self

from wallflower.data import Table, TiledTable, load
from wallflower.data.cells import group_labels
from wallflower.drawing.picture import Bars, Picture
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import Additive, calibrate
from wallflower.neighbours.limits import check_loss
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.detector.grids import Ints
from wallflower.queries.detector.model import Model, require_detector, take_model
from wallflower.queries.detector.tasks import flags_by
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
from wallflower.query.accuracy import NoiseLaw, rank_highest, rate_groups
from wallflower.schema.columns import pick
from wallflower.units import Claim

Row = dict[str, Any]

FLAGGED, OTHERS = "flagged", "others"  # keys of a row besides the labels of its group
MAX_COLUMNS: Final = 2
MAX_GROUPS: Final = 10_000
CONFIDENCE: Final = 0.95
NEAR: Final = Fraction(1, 50)  # of a group: noise above this hides the usual share of outliers
EPSILONS: Final = ("0.01", "0.03", "0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagView:
    """Records, the public domain of their groups, and the detector, once it was looked up."""

    table: Table | TiledTable
    by: tuple[str, ...]
    domain: tuple[tuple[str, ...], ...]
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

    @property
    def groups(self) -> int:
        return math.prod(map(len, self.domain))

    def counts(self) -> Ints:
        """How many records of each group are not flagged, and how many are: one record is in one cell.  (F)"""
        assert self.model is not None, "take_releases() comes before any look at records"
        return flags_by(self.table, self.by, [len(labels) for labels in self.domain], self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags(Query[FlagView, list[Row]]):
    """Count the records of each group that a detector flags, and those that it does not.

    >>> Flags(detector=7, by=("ward",), loss=Loss("0.5")).cost()
    Loss(ε=1/2)
    """

    kind: ClassVar[str] = "flags"
    label: ClassVar[str] = "outlier-detector-flags/1"
    question: ClassVar[str] = "How many records of each group does a detector flag?"
    proof: ClassVar[str] = "queries/detector/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    companion_of: ClassVar[str] = "detector"
    supports_tiles: ClassVar[bool] = True

    detector: int | ReleaseLike = field(
        metadata={
            "help": "the ledger entry of a release of detector that was given a contamination, or the release",
            "release": ReleaseInput(kind="detector", also=("threshold",)),
        }
    )
    by: tuple[str, ...] = field(
        metadata={"help": "one or two columns whose public labels make the groups", "names": "labels"}
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})

    def __post_init__(self) -> None:
        normalise_fields(self)
        check_loss(self.kind, self.loss)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"flags is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        require_detector(self.detector)
        names = self.by
        if not 1 <= len(names) <= MAX_COLUMNS or len(set(names)) < len(names) or {*names} & {FLAGGED, OTHERS}:
            raise ParameterError(
                "by: groups are made by one column or by two different ones, and none may be called "
                f"{FLAGGED!r} or {OTHERS!r}. Name one or two."
            )

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        return replace(super(Flags, self).claim(facts), rho=self.loss.epsilon**2 / 4)  # (Z): two cells at ε/2 each

    @property
    def law(self) -> Additive:
        """The noise of each number: a replaced record leaves one cell and joins one.  (F)"""
        return calibrate(2, self.loss, step=Fraction(1))

    def view(self, data: Any) -> FlagView:
        table = data if isinstance(data, Table | TiledTable) else load(data)
        by = pick(self.by, table.columns)
        facts = {column.name: column for column in table.schema.columns or ()}
        view = FlagView(table=table, by=by, domain=tuple(group_labels(facts[name]) for name in by))
        if view.groups > MAX_GROUPS:
            raise ParameterError(
                f"by: {view.groups:,} groups are more than the {MAX_GROUPS:,} that one answer may have. "
                "Group by one column, or by fewer categories."
            )
        return view

    def take_releases(self, view: FlagView, find: Callable[[int], Mapping[str, Any] | None]) -> FlagView:
        """The view with its detector; refused by what is public of both."""
        return replace(view, model=take_model(self.detector, find, view.table))

    def answer(self, data: FlagView, noise: Noise) -> list[Row]:
        law, rows = self.law, []
        for labels, (others, flagged) in zip(product(*data.domain), data.counts().tolist(), strict=True):
            numbers = [min(max(count + law.draw(noise), 0), data.n) for count in (flagged, others)]
            rows.append(dict(zip(data.by, labels, strict=True)) | dict(zip((FLAGGED, OTHERS), numbers, strict=True)))
        return rows

    def reading(self, value: list[Row], facts: PublicFacts) -> Reading:
        width = self.reach
        law = NoiseLaw.of(self.law)
        highest = rank_highest(((self._name(row), int(row[FLAGGED])) for row in value), law)
        most = max(value, key=lambda row: int(row[FLAGGED]))
        low, high = self._intervals([most], facts.n, groups=len(value))[0]  # of all: it is picked by its number
        rank = "the highest numbers of flags differ by no more than noise explains"
        if highest is not None:
            rank = f"{highest[0]} has the most flags, by more than noise explains (p = {highest[1]:.2g})"
        return Reading(
            mechanism="histogram",
            interval=None,
            text=f"{len(value):,} groups by {' and '.join(self.by)}: {rank}. In {self._name(most)} {low:,} to "
            f"{high:,} of about {most[FLAGGED] + most[OTHERS]:,} records are flagged (95 % confidence, all groups "
            f"together); estimate {most[FLAGGED]:,}. The noise of each number is within ±{width:.3g} (95 %).",
            extras={
                "groups": len(value),
                "intervals": [list(ends) for ends in self._intervals(value, facts.n)],
                "highest_interval": [low, high],
                "noise_law": law.to_json(),
                "highest": None if highest is None else {"group": highest[0], "p_value": highest[1]},
            },
            quality=rate_groups(
                width, [(row[FLAGGED], row[FLAGGED] + row[OTHERS]) for row in value], interval="two-sided"
            ),
        )

    def picture(self, value: list[Row], facts: PublicFacts) -> Picture:
        return Bars(
            labels=tuple(map(self._name, value)),
            lengths=tuple(float(row[FLAGGED]) for row in value),
            intervals=tuple((float(low), float(high)) for low, high in self._intervals(value, facts.n)),
            across="flagged records",
            marks=tuple(f"{row[FLAGGED]:,} of about {row[FLAGGED] + row[OTHERS]:,}" for row in value),
        )

    @property
    def reach(self) -> float:
        """How far the noise of a number reaches, 95 times of 100."""
        return self.law.half_width(CONFIDENCE)

    def plan_on(self, data: FlagView) -> Plan:
        return self._plan(data.n, data.dimension, data.groups)

    def plan(self, *, n: int, dimension: int) -> Plan:
        return self._plan(n, dimension, 1)

    def _plan(self, n: int, dimension: int, groups: int) -> Plan:
        """Where nobody says how many groups there are, of one that holds all records."""
        width, usual = self.reach, n / groups
        smallest = least_amount(lambda amount: self._at(amount).reach <= NEAR * usual)
        useful = width <= NEAR * usual
        words = f"noise within ±{width:.3g} (95 %) in each number, of groups of {usual:,.0f} records on average"
        advice = f"; from ε = {smallest} on it would be useful" if smallest and not useful else ""
        figures = {"error": self.law.mean_error(), "half_width": width}
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension, "groups": groups},
            chosen="histogram",
            headings={"error": "typical error of a number ±", "half_width": "95 % within ±"},
            options=(Option(mechanism="histogram", figures=figures, note="of flagged records and of the others"),),
            useful=useful,
            reason=f"{words}{advice}",
            smallest_useful_epsilon=smallest,
            curve=tuple((float(amount), self._at(amount).reach) for amount in EPSILONS),
            measure="half-width of the 95 % interval of a number",
        )

    @classmethod
    def example(cls) -> Self:
        return cls(detector=1, by=("ward",), loss=Loss("1"))

    def _intervals(self, value: list[Row], n: int, *, groups: int = 1) -> list[tuple[int, int]]:
        """Each with 95 %; with `groups`, all of that many at once, by a union bound."""
        off = math.ceil(self.law.half_width(1 - (1 - CONFIDENCE) / groups))
        return [(max(0, row[FLAGGED] - off), min(n, row[FLAGGED] + off)) for row in value]

    def _name(self, row: Row) -> str:
        return " × ".join(str(row[name]) for name in self.by)

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount))
