"""Why is this record an outlier: a context in which it is one.

A context allows some values of every context attribute, the record's own among them [Sha21]. Among the records it
selects, a detector says whether the record is an outlier in the metric. Released are one or more such contexts that
select many records. The record itself is public to whoever asks; everybody else is protected.

Released    contexts, as predicates and bit strings; or none
Guarantee   mode dp: pure ε-DP; mode ocdp: output-constrained at ε, which is weaker    Neighbours  one other record
Arithmetic  whole-number scores, exact draws; best-first search: real numbers          Proof       proof.md
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from wallflower.data import Points, Table, TiledTable, load
from wallflower.errors import DataError, ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.privacy import exact as exactly
from wallflower.progress import Effort
from wallflower.queries.explain import words
from wallflower.queries.explain.by_tiles import TiledCase, case_on_tiles
from wallflower.queries.explain.case import Case
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector
from wallflower.queries.explain.detectors.names import detector_of, kind_of, name_of, text_of, wrap_detector
from wallflower.queries.explain.rules import MODES, SEARCHES, UTILITIES, check
from wallflower.queries.explain.space.contexts import Domain, pandas_filter, polars_filter, predicate, where
from wallflower.queries.explain.words import SILENT, SURE
from wallflower.query import Condition, Option, Plan, PublicFacts, Query, Reading, Status, least_amount, settle
from wallflower.query.picture import Choices
from wallflower.schema import Column, Schema
from wallflower.units import Claim

if TYPE_CHECKING:
    import wallflower.queries.explain.forecast as _forecast
    import wallflower.queries.explain.modes as _modes
else:
    _forecast = Lazy("wallflower.queries.explain.forecast")
    _modes = Lazy("wallflower.queries.explain.modes")

REAL: Final = ("best-first",)  # searches that draw real numbers
PATIENCE: Final = 60.0  # seconds that examining every context may take before a search takes its place
USEFUL: Final = 0.5  # of the population of the largest context, on average
EPSILONS: Final = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5")

Value = list[dict[str, str]]
DP, OCDP = Condition("mode", "dp"), Condition("mode", "ocdp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explain(Query[Case | TiledCase, Value]):
    """Explain one outlier by a context.

    >>> Explain.example().cost()
    Loss(ε=1)
    """

    kind: ClassVar[str] = "explain"
    label: ClassVar[str] = "outlier-context/1"
    question: ClassVar[str] = "Why is this record an outlier?"
    proof: ClassVar[str] = "queries/explain/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    by_tiles: ClassVar[bool] = True

    record: str = field(metadata={"help": "which record: its identifier, or its row counted from 0", "names": "record"})
    metric: str = field(metadata={"help": "the number column in which the record is unusual", "names": "numbers"})
    context: tuple[str, ...] = field(metadata={"help": "the columns whose values make a context", "names": "groups"})
    domain: Schema = field(
        metadata={"help": "their public values: categories or edges in a .toml or .json file (wallflower data domain)"}
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend in all, as text"})
    size: int | None = field(
        default=None,
        metadata={
            "help": "public bound on the number of records; default: `rows` of the domain file",
            "names": "rows",
        },
    )
    identifier: str | None = field(
        default=None,
        metadata={
            "help": "the column that `record` is looked up in; default: `record` is a row",
            "names": "identifiers",
        },
    )
    detector: str | Detector = field(
        default="tukey",
        metadata={
            "help": "tukey, distance, bins or clamped-grubbs, with a margin; grubbs, histogram, lof or pyod, without; "
            "settings as in lof:k=20,threshold=1.5"
        },
    )
    mode: str | None = field(
        default=None,
        metadata={
            "help": "dp: differential privacy, the default with a margin; ocdp: the paper's weaker relation",
            "choices": MODES,
        },
    )
    top: int = field(default=1, metadata={"help": "how many contexts to release; they share the loss"})
    utility: str | Any = field(
        default="population",
        metadata={
            "help": "prefer contexts with many records, or much in common with `near`",
            "choices": UTILITIES,
            "when": OCDP,
        },
    )
    near: str | None = field(
        default=None,
        metadata={"help": "the public context that overlap counts, as bits", "names": "context", "when": OCDP},
    )
    search: str | None = field(
        default=None, metadata={"help": "how to search; default: by what is public", "choices": SEARCHES, "when": OCDP}
    )
    samples: int = field(
        default=50, metadata={"help": "how many contexts uniform, walk, dfs and bfs visit", "when": OCDP}
    )
    start: str | None = field(
        default=None,
        metadata={
            "help": "where walk, dfs and bfs start, as bits; default: a valid context",
            "names": "context",
            "when": OCDP,
        },
    )
    unseen: bool = field(
        default=False, metadata={"help": "I chose `start` without looking at the data, which it needs", "when": OCDP}
    )
    doubt: Fraction = field(
        default=Fraction(1, 10),
        metadata={"help": "part of the loss that decides whether to say none; 0: never", "when": DP},
    )
    clear: float = field(
        default=0.1,
        metadata={"help": "for the plan only: by which share of a context the record stands out, if it can"},
    )

    def __post_init__(self) -> None:
        settle(self)
        object.__setattr__(self, "domain", _schema(self.domain))
        object.__setattr__(self, "detector", wrap_detector(self.detector))
        object.__setattr__(self, "record", str(self.record))
        object.__setattr__(self, "doubt", exactly(self.doubt, "doubt"))
        check(self)

    def cost(self) -> Loss:
        return self.loss

    def effort(self, *, n: int, dimension: int) -> Effort:
        listed = self.contexts if self.way_of_search(n) == "direct" else 0
        seconds = _forecast.seconds(self.kind_of_detector, self.contexts if listed else self.samples, n)
        return Effort(steps=1e9 * seconds + 50_000.0 * n + 15_000.0 * listed, memory=1_000.0 * n + 1_000.0 * listed)

    def claim(self, facts: PublicFacts) -> Claim:
        stated = super(Explain, self).claim(facts)
        return stated if self.mode == "ocdp" else _modes.claim_more(stated, self, self.detector_for(facts.n))

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.context, self.metric)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The context attributes and their public values."""
        return tuple(Domain.of(self._column(name)) for name in self.context)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(len(domain.labels) for domain in self.domains)

    @property
    def contexts(self) -> int:
        """How many contexts hold the record."""
        return 1 << sum(size - 1 for size in self.sizes)

    def wants(self) -> Schema:
        found = tuple(map(self._column, self.columns))
        named = () if self.identifier is None else (Column(self.identifier, identifier=True),)
        return Schema(columns=found + named, clip=self.domain.clip)

    def record_name(self) -> str:
        return self.record if self.identifier is None else f"{self.identifier}={self.record}"

    def require_bound(self, rows: int | None) -> None:
        if rows is not None and self.most < rows:
            raise ParameterError(
                f"size: {self.most:,} is stated, and by the schema of the data set it may have up to {rows:,} records. "
                f"Pass {rows:,} or more."
            )

    def view(self, data: Any) -> Case | TiledCase:
        table = data if isinstance(data, Table | Points | TiledTable) else load(data, schema=self.wants())
        most = self.most
        if table.n > most:
            raise DataError(f"the table has more records than the public bound of {most:,}. Raise `size`.")
        _modes.check(self, self.detector_for(most), most)
        if isinstance(table, TiledTable):
            return case_on_tiles(self, table, self.detector_for(most))
        return Case(table, self.domains, self.metric, self._row(table), most)

    def answer(self, data: Case | TiledCase, noise: Noise) -> Value:
        found = _modes.find_contexts(self, data, self.detector_for(data.n), noise)
        domains = self.domains
        return [{"context": predicate(domains, bits), "bits": bits} for bits in found]

    def detector_for(self, size: int) -> Detector:
        """The detector, for tables of at most `size` records."""
        asked = self.detector
        found = detector_of(asked, self._column(self.metric), size) if isinstance(asked, str) else asked
        if isinstance(found, ClampedGrubbs) and found.largest < size:
            raise ParameterError(
                f"detector: largest is {found.largest:,}, and tables may have {size:,} records. Leave largest out, or "
                f"pass {size:,} or more."
            )
        return found

    def way_of_search(self, n: int) -> str:
        """How contexts are found: as asked, or by what is public.  (A)"""
        if self.mode == "dp":
            return "direct"
        if self.search is not None:
            return self.search
        if _forecast.seconds(self.kind_of_detector, self.contexts, n) <= PATIENCE:
            return "direct"
        return "guided" if self.kind_of_detector not in _forecast.NANOSECONDS else "best-first"

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        search = self.way_of_search(facts.n)
        bits = [item["bits"] for item in value]
        return Reading(
            mechanism=f"{self.mode}, {search}, {name_of(self.detector)} by {self.utility}",
            interval=None,
            words=words.reading(self, value),
            notes=words.notes(self, value, facts.n),
            quality=words.quality(self, value, facts.n),
            extras={"contexts": self.contexts} | ({"filters": [self._filters(each) for each in bits]} if bits else {}),
            status=Status.REAL_ARITHMETIC if search in REAL else None,
        )

    def picture(self, value: Value, facts: PublicFacts) -> Choices:
        groups = tuple((domain.name, tuple(map(str, domain.labels))) for domain in self.domains)
        rows = tuple(tuple(bit == "1" for bit in item["bits"]) for item in value)
        return Choices(groups=groups, rows=rows, words=tuple(item["context"] for item in value))

    def plan(self, *, n: int, dimension: int) -> Plan:
        size = self.size or self.domain.rows or n
        if self.mode == "dp":
            _modes.check(self, self.detector_for(size), size)  # a plan for what is refused would promise nothing
        chosen = self.way_of_search(size)
        ways = ("direct",) if self.mode == "dp" else tuple(dict.fromkeys((chosen, *SEARCHES)))
        smallest = least_amount(lambda amount: self._at(amount).is_useful(size))
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": size, "dimension": dimension, "values": sum(self.sizes), "contexts": self.contexts},
            chosen=chosen,
            headings=_HEADINGS,
            options=tuple(self._option(way, size) for way in ways),
            useful=self.is_useful(size),
            reason=words.reason(self, size, smallest),
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), self._at(e)._gain(size)) for e in EPSILONS),
            measure="expected utility: population as a share of the largest, 0 for none",
            scale="linear",
        )

    @classmethod
    def example(cls) -> Self:
        domain = Schema.of(
            ["x1", "x2"], edges={"x1": (-0.5, 0.0, 0.5)}, bounds={"x2": (-4.0, 4.0)}, clip=True, name="domain"
        )
        return cls(record="3", metric="x2", context=("x1",), domain=domain, size=1000, loss=Loss("1"))

    @property
    def most(self) -> int:
        """The public bound on the number of records."""
        size = self.size or self.domain.rows
        if size is None:
            raise ParameterError(
                "size: no public bound on the number of records is stated, and the number itself is protected. Pass "
                "size, or state rows in the domain file."
            )
        return size

    @property
    def kind_of_detector(self) -> type:
        return kind_of(self.detector) if isinstance(self.detector, str) else type(self.detector)

    def to_json(self) -> dict[str, Any]:
        named = {"detector": text_of(self.detector), "utility": str(self.utility)}
        return super(Explain, self).to_json() | named

    def parts(self) -> tuple[Fraction, Fraction]:
        """dp: what decides whether to say none, and what each context spends.  (N) (D)"""
        whole = self.loss.epsilon
        return whole * self.doubt, whole * (1 - self.doubt) / self.top

    def is_useful(self, size: int) -> bool:
        """Whether a clear outlier is as good as sure of a valid context, and a large one."""
        if words.says_nothing(self, size):
            return False
        if self.mode == "ocdp":
            return self.expected_utility("direct", size) >= USEFUL
        seen = self.outlook(size)
        return seen.none <= SILENT and seen.invalid <= SURE and seen.utility >= USEFUL

    def _option(self, way: str, size: int) -> Option:
        figures: dict[str, float] = {}
        if self.mode == "dp":
            figures |= asdict(self.outlook(size))
        elif way in ("direct", "best-first", "uniform"):
            figures["utility"] = self.expected_utility(way, size)
        if way == "direct":
            figures["seconds"] = _forecast.seconds(self.kind_of_detector, self.contexts, size)
        return Option(mechanism=way, figures=figures, note=_NOTES["dp" if self.mode == "dp" else way])

    def outlook(self, size: int) -> _forecast.Outlook:
        """What to expect in mode dp, under the model of `forecast`."""
        model = _forecast.spread(self.sizes)
        return _forecast.outlook(
            model, self.detector_for(size), size, parts=self.parts(), top=self.top, clear=self.clear
        )

    def expected_utility(self, way: str, size: int) -> float:
        """The utility to expect in mode ocdp, under the model of `forecast`."""
        model = _forecast.spread(self.sizes)
        if way == "uniform":
            return model.best_of(self.samples)
        return model.utility(model.shares * size, float(self.loss.epsilon / self.top))

    def _gain(self, size: int) -> float:
        if self.mode == "ocdp":
            return self.expected_utility("direct", size)
        seen = self.outlook(size)
        return (1 - seen.none) * seen.utility

    def _filters(self, bits: str) -> dict[str, str]:
        domains = self.domains
        return {
            "sql": where(domains, bits),
            "pandas": pandas_filter(domains, bits),
            "polars": polars_filter(domains, bits),
        }

    def _column(self, name: str) -> Column:
        known = {column.name: column for column in self.domain.columns or ()}
        return known.get(name) or Column(name)

    def _row(self, table: Table | Points) -> int:
        if self.identifier is None:
            row = int(self.record)
            if isinstance(table, Table) and not table.ordered:  # another record could move the one that is asked about
                raise DataError(
                    "record: the rows of a database, and of folders by a column, have no order of their own. Name the "
                    "record by a column of identifiers."
                )
            if row >= table.n:
                raise DataError("record: the table has no such row; rows are counted from 0. Check it.")
            return row
        if isinstance(table, Points):
            raise DataError("identifier: points have no identifiers. Name the record by its row, or load a table.")
        return table.row(self.identifier, self.record)

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount, kind=self.loss.kind, neighbours=self.loss.neighbours))


def _schema(domain: Any) -> Schema:
    """The domain, from a file or plain JSON where it is not a Schema yet; words for readers are no part of it."""
    if isinstance(domain, Schema):
        return domain.bare()
    return (Schema.from_json(domain) if isinstance(domain, dict) else Schema.read(domain)).bare()


_HEADINGS: Final = {
    "baseless": "baseless, at most",
    "least_none": "none, at least",
    "none": "none",
    "valid": "valid",
    "invalid": "invalid, at most",
    "utility": "expected utility",
    "seconds": "seconds, about",
}
_NOTES: Final = {
    "dp": "every context is weighed by margin and population",
    "direct": "an exact draw among all valid contexts",
    "best-first": "the same law, and only the promising ones are examined; proved for real numbers",
    "uniform": "the best of a few valid ones",
    "walk": "the paper's random walk",
    "dfs": "the paper's private depth-first search; its choices share the loss",
    "bfs": "the paper's private breadth-first search; its choices share the loss",
    "guided": "noisy counts lead the way; for detectors that are slow",
}
