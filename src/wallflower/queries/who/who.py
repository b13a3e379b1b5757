"""Which records should a person look at? Names for a review, and a promise to everybody who is not named.

A differentially private list of outliers is nearly always wrong: (I). This query gives those it names no protection at
all, and everybody else all of it. A detector that was released before scores the records. Down the order of scores each
record is named with a chance that depends on ε alone, until enough are named. Nothing else is released: not how many
records were passed over, nor how many are above the bar.

Released    identifiers or row numbers of at most `most` records, in their order, with what was asked of these alone
Guarantee   for everybody who is not named: pure ε, beside what the detector cost. For those who are: none
Adjacency   one record replaced by another, in its place; N public
Arithmetic  scores compared as they are, coins exact
Proof       proof.md, labels (I) (L) (T) (A) (R) (P) (B) (C)
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wallflower.data import Points, Table, TiledTable, load
from wallflower.data.cells import no_identifier
from wallflower.data.tiled_table import Coordinates, copy_rows
from wallflower.drawing.picture import Curve, Picture
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.neighbours.limits import check_loss
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.detector import Model
from wallflower.queries.who.walk import expected_ranks, furthest_rank, name_chance, name_in_order, rank_chance
from wallflower.query import (
    FindRelease,
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
from wallflower.query.accuracy import percent
from wallflower.schema import Column
from wallflower.schema.columns import list_names, pick
from wallflower.text import Message, join, t
from wallflower.theorems import name_labels
from wallflower.units import Claim, Naming

Floats = NDArray[np.float64]
Row = dict[str, Any]
Ids = Callable[[Sequence[int]], list[bytes | None]]

SHOWN: Final = ("score", "contributions", "row")  # of those who are named, and of nobody else
MIN_RECORDS_PER_NAME: Final = 10
MIN_OUTLIERS_PER_RANK: Final = 2  # expected outliers for each rank that names come from, on average
PLAIN_EPSILONS: Final = ("0.1", "0.2", "0.3", "0.5", "0.75", "1", "1.5", "2", "3", "5")
CURVE_POINTS: Final = 40
PROMISE: Final = t(
    "No guarantee covers the records that this list names: for them nothing here is private. For everybody whom it "
    "does not name, the guarantee of the account goes on. A record that is not named is not cleared."
)


class Candidate(NamedTuple):
    """A record in the order of the list: the highest score first, then by identifier, then by row."""

    descending: float
    identifier: bytes
    row: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoView:
    """Records with a public identifier, and the detector, once it was looked up."""

    table: Table | TiledTable | Points
    identifier: str | None
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
    def schema(self) -> Any:
        return self.table.schema

    @property
    def expected_outliers(self) -> float | None:
        """The number of records that the detector was to flag; None where nobody said."""
        share = None if self.model is None else self.model.contamination
        return None if share is None else float(share) * self.n

    def ranked(self, above: float | None, first: int) -> Iterator[Candidate]:
        """Yield the records above the bar in their order, searching for more only when `first` of them are used up.

        The order of two records follows from these two alone, so a third cannot change it.  (L)
        """
        done = 0
        while True:
            candidates = self._best(above, first)
            yield from candidates[done:]
            if len(candidates) < first:
                return
            done, first = first, 4 * first

    def describe(self, named: Sequence[Candidate], show: Sequence[str]) -> list[Row]:
        """Return what the list says of those who are named: functions of their own records and of the model."""
        rows: list[Row] = [{"record": self._name(candidate)} for candidate in named]
        if "score" in show:
            for row, candidate in zip(rows, named, strict=True):
                row["score"] = -candidate.descending
        if {"contributions", "row"} & {*show}:
            numbers = np.array([candidate.row for candidate in named], dtype=np.int64)
            parts = self._contributions(numbers) if "contributions" in show else []
            cells = self._cells(numbers) if "row" in show else {}
            for at, row in enumerate(rows):
                row |= {"contributions": parts[at]} if parts else {}
                row |= {"row": {name: values[at] for name, values in cells.items()}} if cells else {}
        return rows

    def _best(self, above: float | None, size: int) -> list[Candidate]:
        best: list[Candidate] = []
        for start, scores, identifiers in self._scored():
            places = np.arange(len(scores)) if above is None else np.flatnonzero(scores > above)
            if len(places) > size:
                least = np.partition(scores[places], -size)[-size]
                places = places[scores[places] >= least]  # all that tie with the last one too
            names = identifiers(places.tolist())
            found = (
                Candidate(-score, name or b"", start + place)
                for score, name, place in zip(scores[places].tolist(), names, places.tolist(), strict=True)
            )
            best = heapq.nsmallest(size, [*best, *found])
        return best

    def _scored(self) -> Iterator[tuple[int, Floats, Ids]]:
        """Yield the scores of some records at a time, with the number of the first row and with their identifiers."""
        assert self.model is not None, "take_releases() comes before any look at records"
        if isinstance(self.table, TiledTable):
            yield from self._scored_tiles(self.table, self.model)
            return
        if isinstance(self.table, Points):
            yield 0, self.model.score(next(self.model.parts(self.table))), lambda rows: [None] * len(rows)
            return
        yield 0, self.model.score(next(self.model.parts(self.table))), self._texts(self.table)

    def _scored_tiles(self, table: TiledTable, model: Model) -> Iterator[tuple[int, Floats, Ids]]:
        points = model.project(table)
        places = [table.columns.index(name) for name in points.columns]
        more = [] if self.identifier is None else [table.identifier(self.identifier)]
        shape, start = Coordinates(points.schema), 0
        for cells in table.sheet.chunks([*places, *more]):
            scores = model.score(shape(cells[: len(places)]))
            texts = cells[-1] if more else None
            yield (
                start,
                scores,
                lambda rows, texts=texts: (  # type: ignore[misc]
                    [None] * len(rows) if texts is None else [bytes(texts[row]) or None for row in rows]
                ),
            )
            start += len(scores)

    def _texts(self, table: Table) -> Ids:
        if self.identifier is None:
            return lambda rows: [None] * len(rows)
        column = table.arrow[self.identifier]
        return lambda rows: [
            None if text is None else text.encode("utf-8", "surrogatepass")
            for text in column.take(np.asarray(rows, dtype=np.int64)).to_pylist()
        ]

    def _name(self, candidate: Candidate) -> str | int | None:
        if self.identifier is None:
            return candidate.row
        return candidate.identifier.decode("utf-8", "replace") or None

    def _contributions(self, rows: NDArray[np.int64]) -> list[dict[str, float]]:
        assert self.model is not None
        if isinstance(self.table, TiledTable):
            rising, order = np.unique(rows, return_inverse=True)
            points = self.model.project(self.table)
            values = points.select(rising).gather()[order] if len(rows) else np.empty((0, len(points.columns)))
        else:
            values = next(self.model.parts(self.table))[rows]
        return [dict(zip(self.model.columns, parts, strict=True)) for parts in self.model.split_score(values).tolist()]

    def _cells(self, rows: NDArray[np.int64]) -> dict[str, list[Any]]:
        """Return all cells of these rows as they were read, column by column, in the order of `rows`."""
        if isinstance(self.table, Points):
            return {name: self.table.values[rows, at].tolist() for at, name in enumerate(self.table.columns)}
        if isinstance(self.table, Table):
            return {name: self.table.arrow[name].take(rows).to_pylist() for name in self.table.columns}
        rising, order = np.unique(rows, return_inverse=True)
        parts = list(copy_rows(self.table.sheet, range(self.dimension), rising).chunks(range(self.dimension)))
        return {
            column.name: _read_cells(np.concatenate([part[at] for part in parts])[order] if parts else [], column)
            for at, column in enumerate(self.table.schema.columns or ())
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Who(Query[WhoView, list[Row]]):
    """Name records for review, and protect everybody who is not named.

    >>> Who(detector=7, most=20, loss=Loss("0.75")).cost()
    Loss(ε=3/4)
    """

    kind: ClassVar[str] = "who"
    label: ClassVar[str] = "outlier-names/1"
    question: ClassVar[str] = "Which records should a person review?"
    proof: ClassVar[str] = "queries/who/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    companion_of: ClassVar[str] = "detector"
    supports_tiles: ClassVar[bool] = True
    is_delivered_once: ClassVar[bool] = True

    detector: int | ReleaseLike = field(
        metadata={
            "help": "the ledger entry of the detector that the steward has allowed to name records, or its release",
            "release": ReleaseInput(kind="detector"),
        }
    )
    most: int = field(metadata={"help": "names to ask for; all of them count towards the steward's allowance"})
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    above: float | None = field(
        default=None,
        metadata={"help": "name only records with a score above this public bar; default: the detector's threshold"},
    )
    identifier: str | None = field(
        default=None,
        metadata={
            "help": "column of identifiers to name records by; default: the person of the schema, else row numbers",
            "names": "identifiers",
        },
    )
    show: tuple[str, ...] = field(
        default=(),
        metadata={"help": "what else to show of those who are named: score, contributions, row"},
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        check_loss(self.kind, self.loss)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(
                f"who is pure; a {self.loss.kind} loss has no theorem for a list of names. Pass ε alone."
            )  # (C)
        for name, number in (("detector", self.detector), ("most", self.most)):
            if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 2**31:
                raise ParameterError(f"{name}: must be a whole number above 0, got {str(number)[:40]!r}. Pass one.")
        if self.above is not None:
            object.__setattr__(self, "above", float(self.above))
            if not abs(float(self.above)) < float("inf"):
                raise ParameterError("above: must be a finite number. Pass a score, or leave it at its default.")
        if not {*self.show} <= {*SHOWN} or len({*self.show}) < len(self.show):
            raise ParameterError(f"show: must be some of {list_names(SHOWN)}, each once. Correct it.")

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        assert isinstance(self.detector, int)
        identifier = getattr(facts, "identifier", self.identifier)
        naming = Naming(detector=self.detector, most=self.most, by_row=identifier is None)
        return replace(super(Who, self).claim(facts), naming=naming)

    def rests_on(self, data: WhoView) -> tuple[str, ...]:
        return (*name_labels("who", "L T A R C"), *name_labels("detector", "H"), *name_labels("ledger", "N"))

    def view(self, data: Any) -> WhoView:
        table = data if isinstance(data, Table | TiledTable | Points) else load(data, schema=self.wants())
        view = WhoView(table=table, identifier=self._find_identifier(table))
        if self.most * MIN_RECORDS_PER_NAME > table.n:
            raise ParameterError(
                f"most: {self.most:,} names are more than a tenth of {table.n:,} records, so the list would pick out "
                f"ordinary ones. Ask for at most {table.n // MIN_RECORDS_PER_NAME:,}."
            )
        return view

    def take_releases(self, view: WhoView, find: FindRelease) -> WhoView:
        """The view with its detector; refused by what is public of both."""
        stored = find(int(self.detector))  # type: ignore[arg-type]
        if stored is None or stored["kind"] != "detector":
            raise ParameterError(
                f"detector: entry {self.detector} of the ledger is not a release of detector. Fit one first, and pass "
                "its entry."
            )
        model = Model.of(stored)
        missing = [name for name in model.columns if name not in view.table.columns]
        if missing:
            raise DataError(f"detector: the table has no column {missing[0]!r}, which it was fitted to.")
        model.project(view.table)  # or a refusal of its columns
        return replace(view, model=model)

    def answer(self, data: WhoView, noise: Noise) -> list[Row]:
        bar = self.above if self.above is not None or data.model is None else data.model.threshold
        first = max(furthest_rank(self.most, self.loss.epsilon), self.most) + 1
        named = name_in_order(data.ranked(bar, first), self.most, self.loss.epsilon, noise)  # (L)
        return data.describe(named, self.show)

    def reading(self, value: list[Row] | None, facts: PublicFacts) -> Reading:
        """Read no number off the list: how long it is belongs to the list, and `value` may be withheld.  (P)"""
        return Reading(
            mechanism="one coin per record",
            interval=None,
            text=join("", (PROMISE, " ", self._ranks_text(), ".")),
            brief=t("a list of up to {most:,} names, given once to the person who asked", most=self.most),
        )

    def picture(self, value: list[Row] | None, facts: PublicFacts) -> Picture:
        """How often each rank is named: from the parameters alone, so it tells nothing of the list.  (R)"""
        last = max(2, min(facts.n, furthest_rank(self.most, self.loss.epsilon)))
        ranks = sorted({round(float(rank)) for rank in np.geomspace(1, last, CURVE_POINTS)})
        chances = tuple(rank_chance(rank, self.most, self.loss.epsilon) for rank in ranks)
        return Curve(places=tuple(map(float, ranks)), heights=chances, across="rank by score", up="chance to be named")

    def plan(self, *, n: int, dimension: int) -> Plan:
        return self._plan(n, dimension, None)

    def plan_on(self, data: WhoView) -> Plan:
        return self._plan(data.n, data.dimension, data.expected_outliers)

    def _plan(self, n: int, dimension: int, outliers: float | None) -> Plan:
        ranks = expected_ranks(self.most, self.loss.epsilon)
        room = n if outliers is None else outliers / MIN_OUTLIERS_PER_RANK
        figures = {
            "ranks": ranks,
            "furthest": float(furthest_rank(self.most, self.loss.epsilon)),
            "skipped": 1 - name_chance(self.loss.epsilon),
        }
        few = () if outliers is None else (t("; about {outliers:,} outliers are expected", outliers=round(outliers)),)
        unknown = t(
            "The detector states no share of outliers: check that far more than {ranks:,.0f} can be expected.",
            ranks=ranks,
        )
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen="one coin per record",
            headings={
                "ranks": "ranks that names come from, on average",
                "furthest": "nobody beyond this rank",
                "skipped": "chance that a record is skipped",
            },
            options=(Option(mechanism="one coin per record", figures=figures, note="no guarantee for the named"),),
            useful=ranks <= room,
            reason=join("", (self._ranks_text(), *few)),
            smallest_useful_epsilon=least_amount(lambda amount: expected_ranks(self.most, Fraction(amount)) <= room),
            curve=tuple((float(amount), expected_ranks(self.most, Fraction(amount))) for amount in PLAIN_EPSILONS),
            measure="ranks that names come from, on average",
            conditions=() if outliers is not None else (unknown,),
            notes=(PROMISE,),
        )

    def _ranks_text(self) -> Message:
        """Which ranks names come from, and how often a record is skipped: public, by ε and the number of names."""
        return t(
            "{most:,} names come from about the first {ranks:,.0f} records; a record is skipped {skipped} of the time; "
            "beyond rank {furthest:,} nobody is named more than once in 10⁹",
            most=self.most,
            ranks=expected_ranks(self.most, self.loss.epsilon),
            skipped=percent(1 - name_chance(self.loss.epsilon)),
            furthest=furthest_rank(self.most, self.loss.epsilon),
        )

    def _find_identifier(self, table: Table | TiledTable | Points) -> str | None:
        """Return the column that records are named by; None for row numbers, where rows have an order of their own."""
        if isinstance(table, Points):
            if self.identifier is not None:
                raise DataError("identifier: points have no identifiers. Load a table, or omit it for row numbers.")
            return None
        person = table.schema.person
        name = self.identifier or (None if person is None else person.id)
        if name is None:
            if not (table.ordered if isinstance(table, Table) else table.sheet.ordered):
                raise DataError(
                    f"{table.name}: its rows have no order of their own, so row numbers name nobody. Name records by a "
                    "column of identifiers."
                )
            return None
        (name,) = pick([name], table.columns)
        (facts,) = table.schema.only([name]).columns or ()
        if not facts.identifier:
            raise no_identifier(name)
        return name

    @classmethod
    def example(cls) -> Self:
        return cls(detector=1, most=4, loss=Loss("1"))


def _read_cells(cells: Any, column: Column) -> list[Any]:
    """Return cells as an engine keeps them in the words of the source: labels and identifiers as text."""
    values = list(cells)
    if column.categories is not None:
        return [column.labels[int(code)] for code in values]
    if column.identifier or column.time:
        return [bytes(text).decode("utf-8", "replace") or None for text in values]
    return [float(number) for number in values]
