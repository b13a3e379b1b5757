"""Why is this record an outlier: a context in which it is one.

A context allows some values of every context attribute, the record's own among them [Sha21]. Among the records it
selects, a detector says whether the record is an outlier in the metric. Released are one or more such contexts that
select many records. The record itself is known to the analyst; every other record is protected.

Released    contexts, as predicates and bit strings; or none
Guarantee   mode dp: pure ε-DP; mode ocdp: output-constrained at ε, which is weaker    Neighbours  one other record
Arithmetic  whole-number scores, exact draws; best-first search: real numbers          Proof       proof.md
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Points, Table, TiledTable, load
from wallflower.drawing.picture import Choices
from wallflower.errors import DataError, EngineMismatch, ParameterError
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss, Neighbours
from wallflower.privacy import exact as exact_fraction
from wallflower.progress import Effort
from wallflower.queries.explain import forecast
from wallflower.queries.explain.case import Case, TiledCase, require_cells
from wallflower.queries.explain.detectors.base import CellDetector, Detector, MarginDetector
from wallflower.queries.explain.detectors.registry import (
    DETECTORS,
    detector_class,
    detector_name,
    is_custom,
    list_detectors,
    make_detector,
    take_detector,
)
from wallflower.queries.explain.draws import dp
from wallflower.queries.explain.draws.ocdp import MAX_NOISY_CELLS, SEARCHES, Question
from wallflower.queries.explain.draws.utilities import MAX_SCORED_BITS, CustomUtility, Overlap, Population, Utility
from wallflower.queries.explain.exact import margins
from wallflower.queries.explain.space.contexts import Domain, pandas_filter, polars_filter, predicate, where
from wallflower.queries.explain.space.tables import AnyTable, rank_table
from wallflower.query import (
    Condition,
    Option,
    Plan,
    PublicFacts,
    Quality,
    Query,
    Reading,
    Status,
    least_amount,
    normalise_fields,
    require_settings_of_mode,
    two_digits_up,
)
from wallflower.query.accuracy import MODERATE, rate_errors
from wallflower.schema import Column, Schema
from wallflower.text import Message, join, t
from wallflower.units import Claim

MODES: Final = ("dp", "ocdp")
UTILITIES: Final = ("population", "overlap")
MAX_TOP: Final = 100
MAX_DIRECT_SECONDS: Final = 60.0  # that examining every context may take before a search takes its place
MIN_UTILITY: Final = 0.5  # population, as a share of the largest context, that makes a plan useful
MAX_INVALID: Final = 0.05  # chance of an invalid context in a useful plan
MAX_NONE: Final = 0.2  # chance of none in a useful plan
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
    supports_tiles: ClassVar[bool] = True

    record: str = field(metadata={"help": "which record: its identifier, or its row counted from 0", "names": "record"})
    metric: str = field(metadata={"help": "the number column in which the record is unusual", "names": "numbers"})
    context: tuple[str, ...] = field(metadata={"help": "the columns whose values make a context", "names": "groups"})
    domain: Schema = field(
        metadata={"help": "their public values: categories or edges in a .toml or .json file (wallflower data domain)"}
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend in all, as text"})
    size: int | None = field(
        default=None,
        metadata={"help": "public bound on the number of records; default: `rows` of the domain file", "names": "rows"},
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
            "help": f"{list_detectors(with_margin=True)}, with a margin; {list_detectors(with_margin=False)}, without; "
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
    top: int = field(default=1, metadata={"help": "how many contexts to release; they share ε"})
    utility: str | Utility = field(
        default="population",
        metadata={
            "help": "prefer contexts with many records, or much in common with `near`",
            "choices": UTILITIES,
            "when": OCDP,
        },
    )
    near: str | None = field(
        default=None,
        metadata={"help": "reference context for utility overlap, as bits", "names": "context", "when": OCDP},
    )
    search: str | None = field(
        default=None,
        metadata={"help": "how to search; default: by public facts", "choices": tuple(SEARCHES), "when": OCDP},
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
        default=False,
        metadata={"help": "confirm that `start` was chosen without looking at the data (required)", "when": OCDP},
    )
    doubt: Fraction = field(
        default=Fraction(1, 10),
        metadata={"help": "share of ε that decides whether to answer none; 0: always name a context", "when": DP},
    )
    clear: float = field(
        default=0.1, metadata={"help": "planning assumption: the record's margin, as a share of the context"}
    )

    def __post_init__(self) -> None:
        normalise_fields(self)
        object.__setattr__(self, "domain", _read_schema(self.domain))
        object.__setattr__(self, "detector", take_detector(self.detector))
        object.__setattr__(self, "record", str(self.record))
        object.__setattr__(self, "doubt", exact_fraction(self.doubt, "doubt"))
        self._check_columns()
        self._check_numbers()
        self._settle_mode()
        self._check_search()

    # Parameters

    def _check_columns(self) -> None:
        if not self.context or len({*self.columns, self.identifier}) < len(self.columns) + 1:
            raise ParameterError(
                "context, metric, identifier: name one context column or more, and each column for one purpose."
            )
        if self.identifier is None and not self.record.isdecimal():
            raise ParameterError(
                f"record: {self.record[:40]!r} is not a row counted from 0. Name the column it is found in: identifier."
            )
        self.domains  # noqa: B018 - refuses a column without public values

    def _check_numbers(self) -> None:
        for name, least, most in (("top", 1, MAX_TOP), ("samples", 1, 100_000), ("size", 1, 10**9)):
            number = getattr(self, name)
            is_whole = isinstance(number, int) and not isinstance(number, bool)
            if number is not None and not (is_whole and least <= number <= most):
                raise ParameterError(f"{name}: {number!r} is not a whole number from {least} to {most:,}; pass one.")
        if self.top > self.contexts:
            raise ParameterError(f"top: there are {self.contexts} contexts in all; pass {self.contexts} or less.")
        if not 0 <= self.doubt < 1:
            raise ParameterError(f"doubt: {self.doubt} is not from 0 to below 1; it is a share of ε, such as 1/10.")
        if not 0 < self.clear <= 1:
            raise ParameterError(f"clear: {self.clear!r} is not a share above 0; pass one such as 0.1.")

    def _settle_mode(self) -> None:
        """Choose the mode if none is stated, and state the loss in its relation, for one other record."""
        has_margin = issubclass(self.detector_class, MarginDetector)
        if self.mode is None and not has_margin:
            raise ParameterError(
                f"detector: {detector_name(self.detector)} has no margin, so there is no differential privacy for it. "
                f"Choose {list_detectors(with_margin=True)}, or accept the weaker relation of the paper with mode ocdp."
            )
        mode = self.mode or "dp"
        # text can name code of the user's, and cannot say whether it has a margin; `detector_for` refuses to make it
        if mode not in MODES or (mode == "dp" and not has_margin and not is_custom(self.detector)):
            raise ParameterError(
                f"mode: {mode!r} is not possible here; it is dp for a detector with a margin "
                f"({list_detectors(with_margin=True)}), or ocdp. Choose one."
            )
        kind = Kind.PURE if mode == "dp" else Kind.OUTPUT_CONSTRAINED
        if self.loss.delta or self.loss.kind not in (Kind.PURE, kind) or not self.loss.amount:
            raise ParameterError(f"loss: explain in mode {mode} spends an epsilon above 0, without delta. Pass one.")
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "loss", Loss(self.loss.amount, kind=kind, neighbours=Neighbours.ADD_REMOVE))

    def _check_search(self) -> None:
        utility: object = self.utility
        if callable(utility):
            raise ParameterError(
                "utility: a function needs its sensitivity, the most that one other record changes it by. Without it "
                "there is no guarantee. Pass wallflower.CustomUtility(function, sensitivity=...)."
            )
        if not isinstance(utility, Utility) and utility not in UTILITIES:
            raise ParameterError(f"utility: {utility!r} is not known; choose among {', '.join(UTILITIES)}.")
        if self.search is not None and self.search not in SEARCHES:
            raise ParameterError(f"search: {self.search!r} is not known; choose among {', '.join(SEARCHES)}.")
        require_settings_of_mode(self)
        if (self.near is None) != (self.utility != "overlap"):
            raise ParameterError(
                "near: overlap needs the bits of a context, and nothing else does. Pass both or neither."
            )
        for bits in filter(None, (self.near, self.start)):
            predicate(self.domains, bits)
        if self.search is not None and SEARCHES[self.search].needs_counts and not self.utility_object.counts_records:
            raise ParameterError(f"search: {self.search} needs a utility that counts records. Search another way.")
        if self.start is not None and not self.unseen:
            raise ParameterError(
                "start: no guarantee covers a start that was chosen by looking at the data. Pass unseen if it was not, "
                "or omit start."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.context, self.metric)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The context attributes and their public values."""
        return tuple(Domain.of(self._column(name)) for name in self.context)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(len(domain.labels) for domain in self.domains)

    @property
    def contexts(self) -> int:
        """The number of contexts that hold the record."""
        return 1 << sum(size - 1 for size in self.sizes)

    @property
    def max_records(self) -> int:
        """The public bound on the number of records."""
        size = self.size or self.domain.rows
        if size is None:
            raise ParameterError(
                "size: no public bound on the number of records is stated, and the number itself is protected. Pass "
                "size, or state rows in the domain file."
            )
        return size

    @property
    def detector_class(self) -> type[Detector]:
        return detector_class(self.detector)

    @property
    def utility_object(self) -> Utility:
        """The utility of mode ocdp."""
        if isinstance(self.utility, Utility):
            return self.utility
        return Population() if self.near is None else Overlap(self.near)

    def detector_for(self, size: int) -> Detector:
        """Return the detector, for tables of at most `size` records."""
        detector = self.detector
        if isinstance(detector, str):
            detector = make_detector(detector, self._column(self.metric), size)
        detector.check_size(size)
        return detector

    def margin_detector(self, size: int) -> MarginDetector:
        """Return the detector of mode dp."""
        detector = self.detector_for(size)
        if not isinstance(detector, MarginDetector):
            raise ParameterError(f"detector: {detector_name(detector)} has no margin. Use it with mode ocdp.")
        return detector

    def search_for(self, n: int) -> str:
        """Return how contexts are found: as stated, or by public facts.  (A)"""
        if self.mode == "dp":
            return "direct"
        if self.search is not None:
            return self.search
        if self.detector_class.estimate_seconds(self.contexts, n) <= MAX_DIRECT_SECONDS:
            return "direct"
        return "best-first" if self.detector_class.examines_all else "guided"

    def parts(self) -> tuple[Fraction, Fraction]:
        """Return the ε of mode dp that decides whether to answer none, and the ε of each context.  (N) (D)"""
        epsilon = self.loss.epsilon
        return epsilon * self.doubt, epsilon * (1 - self.doubt) / self.top

    def to_json(self) -> dict[str, Any]:
        code = {"detector": str(self.detector), "utility": str(self.utility)}
        return super(Explain, self).to_json() | code

    # Cost and data

    def cost(self) -> Loss:
        return self.loss

    def claim(self, facts: PublicFacts) -> Claim:
        claim = super(Explain, self).claim(facts)
        if self.mode == "ocdp":
            return claim
        deciding, each = self.parts()
        factor = dp.record_factor(self.margin_detector(facts.n))
        own = () if factor is None else (("record", factor),)
        return replace(claim, rho=deciding**2 / 2 + self.top * each**2 / 8, own=own)  # (Z) (X)

    def effort(self, *, n: int, dimension: int) -> Effort:
        listed = self.contexts if self.search_for(n) == "direct" else 0
        seconds = self.detector_class.estimate_seconds(listed or self.samples, n)
        return Effort(steps=1e9 * seconds + 50_000.0 * n + 15_000.0 * listed, memory=1_000.0 * n + 1_000.0 * listed)

    def wants(self) -> Schema:
        columns = tuple(map(self._column, self.columns))
        names = () if self.identifier is None else (Column(self.identifier, identifier=True),)
        return Schema(columns=columns + names, clip=self.domain.clip)

    def record_name(self) -> str:
        return self.record if self.identifier is None else f"{self.identifier}={self.record}"

    def require_bound(self, rows: int | None) -> None:
        if rows is not None and self.max_records < rows:
            raise ParameterError(
                f"size: {self.max_records:,} is stated, and by the schema of the data set it may have up to {rows:,} "
                f"records. Pass {rows:,} or more."
            )

    def view(self, data: Any) -> Case | TiledCase:
        table = data if isinstance(data, Table | Points | TiledTable) else load(data, schema=self.wants())
        size = self.max_records
        if table.n > size:
            raise DataError(f"the table has more records than the public bound of {size:,}. Raise `size`.")
        detector = self.detector_for(size)
        self._require_feasible(detector, size)
        if isinstance(table, TiledTable):
            if not self.utility_object.counts_records:
                raise EngineMismatch(table.engine, "explain with a utility of your own", "Choose population or overlap")
            cells = [name for name, cls in DETECTORS.items() if issubclass(cls, CellDetector)]
            require_cells(table.engine, detector, math.prod(self.sizes), size, ", ".join(cells))
            return TiledCase.find(table, self.domains, self.metric, self.record, self.identifier, size)
        return Case(table, self.domains, self.metric, self._row(table), size)

    def _require_feasible(self, detector: Detector, size: int) -> None:
        """Refuse by public facts, before the charge: too many contexts, too much rounding, code that fails."""
        bits, search = self.contexts.bit_length() - 1, SEARCHES[self.search_for(size)]
        self._try_out(detector)
        limits = [search.max_bits] if search.max_bits is not None else []
        if search.name == "direct":
            limits += [detector.max_bits, *(() if self.utility_object.counts_records else (MAX_SCORED_BITS,))]
        if limits and bits > min(limits):
            raise ParameterError(
                f"context: there are 2^{bits} contexts, and {search.name} takes up to 2^{min(limits)} here. Name fewer "
                "columns or values, or search another way."
            )
        if search.name == "guided" and math.prod(self.sizes) > MAX_NOISY_CELLS:
            raise ParameterError(
                f"context: {math.prod(self.sizes):,} combinations of values are more than the {MAX_NOISY_CELLS:,} "
                "that get noise. Name fewer columns or values, or search another way."
            )
        if self.mode == "dp":
            detector = self.margin_detector(size)
            dp.require_rounding(detector, detector.max_rounding())

    def _try_out(self, detector: Detector) -> None:
        """Refuse code of the user's that fails on synthetic values: on records it would fail in silence, and be paid
        for."""
        values = np.append(np.linspace(0.0, 1.0, 99), 10.0)
        try:
            if not detector.examines_all or type(detector) not in DETECTORS.values():
                detector.outlier(values, 99)
                if isinstance(detector, MarginDetector):
                    margins(rank_table([[0], [1]] * 50, [2], values, 99), detector)
                    detector.greatest_margins(np.array([1.0, 100.0]))
            if isinstance(self.utility, CustomUtility):
                self.utility.function("1" * sum(self.sizes), values)
        except Exception as error:
            raise ParameterError(
                "detector, utility: code of your own fails on a hundred synthetic numbers of which the record is the "
                f"last, with {type(error).__name__}. It must answer for any numbers. Fix it, or install what it needs."
            ) from error

    def _row(self, table: Table | Points) -> int:
        if self.identifier is None:
            row = int(self.record)
            if isinstance(table, Table) and not table.ordered:  # another record could move the one in question
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

    # Answer

    def answer(self, data: Case | TiledCase, noise: Noise) -> Value:
        detector, domains = self.detector_for(data.n), self.domains
        table = data.table_for(detector)
        drawn = [table.space.bits(index) for index in self.draw(table, detector, data.n, noise)]
        return [{"context": predicate(domains, bits), "bits": bits} for bits in drawn]

    def draw(self, table: AnyTable, detector: Detector, size: int, noise: Noise) -> list[int]:
        """Draw the contexts to release, by index."""
        if self.mode == "dp":
            deciding, each = self.parts()
            assert isinstance(detector, MarginDetector)  # `view` refuses others
            return dp.draw_contexts(table, detector, size=size, deciding=deciding, each=each, top=self.top, noise=noise)
        search = SEARCHES[self.search_for(size)]
        question = Question(
            table=table,
            detector=detector,
            utility=self.utility_object,
            epsilon=self.loss.epsilon,
            samples=self.samples,
            top=self.top,
            start=self.start,
            noise=noise,
        )
        return search.find(question)

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        search = self.search_for(facts.n)
        bits = [item["bits"] for item in value]
        filters = {"filters": [self._filters(context) for context in bits]} if bits else {}
        return Reading(
            mechanism=f"{self.mode}, {search}, {detector_name(self.detector)} by {self.utility}",
            interval=None,
            text=self._summary(value),
            notes=self._notes(value, facts.n),
            quality=self._quality(value, facts.n),
            extras={"contexts": self.contexts, **filters},
            status=Status.REAL_ARITHMETIC if SEARCHES[search].is_real else None,
        )

    def picture(self, value: Value, facts: PublicFacts) -> Choices:
        groups = tuple((domain.name, tuple(map(str, domain.labels))) for domain in self.domains)
        rows = tuple(tuple(bit == "1" for bit in item["bits"]) for item in value)
        return Choices(groups=groups, rows=rows, words=tuple(item["context"] for item in value))

    def _summary(self, value: Value) -> Message:
        if not value and self.mode == "dp":
            return t("None: no context makes this record an outlier clearly enough to name it at this ε.")
        if not value:
            return t("None: no context was found in which this record is an outlier.")
        contexts = join(t("; or "), [_among(item["context"]) for item in value])
        if self.mode == "ocdp":
            return t("In {metric}, the record is an outlier among {contexts}.", metric=self.metric, contexts=contexts)
        if not self.doubt:
            return t(
                "If the record is an outlier anywhere, then in {metric} among {contexts} (unless the draw was "
                "unlucky).",
                metric=self.metric,
                contexts=contexts,
            )
        return t(
            "In {metric}, the record is an outlier among {contexts} (unless the draw was unlucky).",
            metric=self.metric,
            contexts=contexts,
        )

    def _notes(self, value: Value, size: int) -> tuple[str, ...]:
        if self.mode == "ocdp":
            return ()
        caution = self.margin_detector(size).caution()
        notes: list[str] = [] if caution is None else [caution]
        outlook = self.outlook(size)
        if value and self.doubt:
            notes += [
                t(
                    "Where nothing stands out, at most {share} % of answers name a context nevertheless.",
                    share=two_digits_up(max(100 * outlook.baseless, 1e-9)),
                )
            ]
        if not value and outlook.least_none >= MAX_INVALID:
            notes += [
                t(
                    "At this ε at least {share} of answers are none, however clear the outlier.",
                    share=percent(outlook.least_none),
                )
            ]
        return tuple(notes)

    def _quality(self, value: Value, size: int) -> Quality:
        """Rate a context, or none, for a record that stands out as the plan assumes."""
        if self.detector_for(size).flags_everyone(size):
            return rate_errors(1.0, t("by this detector every record is an outlier, whatever the records are"))
        if self.mode == "ocdp":
            if value:
                return rate_errors(0.0, t("this mode names only contexts in which the record is an outlier"))
            if self.search_for(size) == "direct":
                return rate_errors(0.0, t("every context was examined"))
            return rate_errors(MODERATE[0], t("not every context need have been examined"))
        outlook, assumption = self.outlook(size), self.margin_detector(size).assumption(self.clear)
        if not value:
            rule = t("none is answered {share} of the time where {assumption}",
                     share=percent(outlook.none), assumption=assumption)  # fmt: skip
            return rate_errors(outlook.none, rule)
        rule = t(
            "it is invalid with a chance of at most {chance:.2g} where {assumption}",
            chance=outlook.invalid,
            assumption=assumption,
        )
        baseless = t("A context is named whether or not anything stands out: use a doubt above 0 to decide that.")
        wrong = max(outlook.invalid, min(outlook.none, MODERATE[0]))
        return rate_errors(wrong, rule, conditions=() if self.doubt else (baseless,))

    def _filters(self, bits: str) -> dict[str, str]:
        domains = self.domains
        return {
            "sql": where(domains, bits),
            "pandas": pandas_filter(domains, bits),
            "polars": polars_filter(domains, bits),
        }

    # Plan

    def plan(self, *, n: int, dimension: int) -> Plan:
        size = self.size or self.domain.rows or n
        if self.mode == "dp":
            self._require_feasible(self.detector_for(size), size)  # no plan for what would be refused
        chosen = self.search_for(size)
        searches = ("direct",) if self.mode == "dp" else tuple(dict.fromkeys((chosen, *SEARCHES)))
        smallest = least_amount(lambda amount: self._at(amount).is_useful(size))
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": size, "dimension": dimension, "values": sum(self.sizes), "contexts": self.contexts},
            chosen=chosen,
            headings=_HEADINGS,
            options=tuple(self._option(search, size) for search in searches),
            useful=self.is_useful(size),
            reason=self._reason(size, smallest),
            smallest_useful_epsilon=smallest,
            curve=tuple((float(epsilon), self._at(epsilon)._gain(size)) for epsilon in EPSILONS),
            measure="expected utility: population as a share of the largest, 0 for none",
            scale="linear",
        )

    def outlook(self, size: int) -> forecast.Outlook:
        """Return what to expect of mode dp, under the model of `forecast`."""
        deciding, each = self.parts()
        model, detector = forecast.spread_evenly(self.sizes), self.margin_detector(size)
        return forecast.expect(model, detector, size, deciding=deciding, each=each, top=self.top, clear=self.clear)

    def expected_utility(self, search: str, size: int) -> float:
        """Return the utility to expect of mode ocdp, under the model of `forecast`."""
        model = forecast.spread_evenly(self.sizes)
        if search == "uniform":
            return model.best_of(self.samples)
        return model.utility(model.shares * size, float(self.loss.epsilon / self.top))

    def is_useful(self, size: int) -> bool:
        """Return whether a clear outlier almost surely gets a valid context, and a large one."""
        if self.detector_for(size).flags_everyone(size):
            return False
        if self.mode == "ocdp":
            return self.expected_utility("direct", size) >= MIN_UTILITY
        outlook = self.outlook(size)
        return outlook.none <= MAX_NONE and outlook.invalid <= MAX_INVALID and outlook.utility >= MIN_UTILITY

    def _reason(self, size: int, smallest: str | None) -> Message:
        """Say why a plan is useful or not."""
        if self.detector_for(size).flags_everyone(size):
            return t(
                "in a table of at most {size:,} records nobody has that many nearby records: everybody is an outlier",
                size=size,
            )
        prospect = self._prospect(size)
        if self.is_useful(size):
            return prospect
        if smallest:
            return t("{prospect}; it becomes useful at ε = {epsilon}", prospect=prospect, epsilon=smallest)
        return t("{prospect}; no reasonable ε makes it useful", prospect=prospect)

    def _prospect(self, size: int) -> Message:
        if self.mode == "ocdp":
            return t(
                "one of {contexts:,} contexts, with {share} of the records of the largest valid one expected (if "
                "records spread evenly over the values)",
                contexts=self.contexts,
                share=percent(self.expected_utility("direct", size)),
            )
        outlook = self.outlook(size)
        if outlook.least_none > MAX_NONE:
            return t(
                "it would answer none {share} of the time even for the clearest outlier possible",
                share=percent(outlook.least_none),
            )
        return t(
            "none {none} of the time; else one of {contexts:,} contexts, invalid with a chance of at most {invalid:.2g}"
            ", with {share} of the records of the largest expected (if records spread evenly over the values, and "
            "{assumption})",
            none=percent(outlook.none),
            contexts=self.contexts,
            invalid=outlook.invalid,
            share=percent(outlook.utility),
            assumption=self.margin_detector(size).assumption(self.clear),
        )

    def _option(self, search: str, size: int) -> Option:
        figures: dict[str, float] = {}
        if self.mode == "dp":
            figures |= asdict(self.outlook(size))
        elif search in ("direct", "best-first", "uniform"):
            figures["utility"] = self.expected_utility(search, size)
        if search == "direct":
            figures["seconds"] = self.detector_class.estimate_seconds(self.contexts, size)
        note = t("every context is weighed by margin and population") if self.mode == "dp" else SEARCHES[search].note
        return Option(mechanism=search, figures=figures, note=note)

    def _gain(self, size: int) -> float:
        if self.mode == "ocdp":
            return self.expected_utility("direct", size)
        outlook = self.outlook(size)
        return (1 - outlook.none) * outlook.utility

    @classmethod
    def example(cls) -> Self:
        domain = Schema.of(
            ["x1", "x2"], edges={"x1": (-0.5, 0.0, 0.5)}, bounds={"x2": (-4.0, 4.0)}, clip=True, name="domain"
        )
        return cls(record="3", metric="x2", context=("x1",), domain=domain, size=1000, loss=Loss("1"))

    def _column(self, name: str) -> Column:
        known = {column.name: column for column in self.domain.columns or ()}
        return known.get(name) or Column(name)

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount, kind=self.loss.kind, neighbours=self.loss.neighbours))


def percent(share: float) -> Message:
    """Return a share as text that never calls a chance certain: a float of 1 is a chance just below 1.

    >>> percent(0.994), percent(0.314), percent(2e-7), percent(1.0)
    ('over 99 %', '31 %', 'under 1 %', 'over 99.9 %')
    """
    if share > 0.999:
        return t("over 99.9 %")
    if share > 0.99:
        return t("over 99 %")
    return t("under 1 %") if 0 < share < 0.01 else t("{percent:.0f} %", percent=100 * share)


def _among(context: str) -> str:
    return context if context == predicate((), "") else t("records where {context}", context=context)


def _read_schema(domain: Any) -> Schema:
    """Return the domain, from a file or plain JSON where it is not a Schema yet, without its texts for readers."""
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
