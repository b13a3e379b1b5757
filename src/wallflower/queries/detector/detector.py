"""Which records are unusual? A detector, fitted once under privacy, that scores any record afterwards.

A list of the outlying records cannot be private; what tells them apart can. Records are counted in random grids of two
columns each, whose cells wrap round and are a few spreads wide, or a label; the counts are released with noise. A
record is unusual where the cells it falls into are emptier than those of others. New records, the steward's own and
each person's own may be scored for ever: that costs nothing more. To publish *which of the fitted records* are flagged
is another release, which nothing here pays for.

Released    spreads, grids, noisy counts; a threshold where a share of outliers is wanted
Guarantee   that of the loss: pure ε-DP (and less than ε²/2 in zCDP), (ε, δ)-DP or ρ-zCDP
Neighbours  replace one record, in any order, N public
Arithmetic  whole-number counts and errors             Proof       proof.md, labels (K) (S) (C) (H) (D) (Z)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

import numpy as np

from wallflower.data import Points, Table, TiledPoints, TiledTable, load, points_of
from wallflower.drawing.picture import Figures, HeatMap, Picture
from wallflower.errors import DataError, ParameterError
from wallflower.mechanisms import Additive, calibrate_counts, choose_together, epsilon_of_range
from wallflower.neighbours.limits import SCALE_HELP, check_loss, check_scale
from wallflower.neighbours.radii import read_share
from wallflower.neighbours.spreads import (
    DIVISORS,
    bins_within,
    gap_counts,
    middle_of_bin,
    pair_up,
    pairing_size,
    quantile_errors,
)
from wallflower.noise import Noise, draws
from wallflower.privacy import Kind, Loss
from wallflower.queries.detector.grids import Coins, Floats, Ints, lay_grids
from wallflower.queries.detector.model import THRESHOLDS, Layout, Model, misses
from wallflower.queries.detector.tasks import cells_of, numbers_above
from wallflower.queries.near import SCALE_RELEASE, replace_amount, rescale
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
from wallflower.query.accuracy import LOW, Quality, percent, rate_errors, rate_number
from wallflower.schema import Column
from wallflower.theorems import name_labels
from wallflower.units import Claim

KEY: Final = 2**128
MIN_GRIDS, MAX_GRIDS = 20, 50
RECORDS_EPSILON_PER_SPREAD: Final = 50  # n times ε for a spread: nearly all are right within a factor of 2
RECORDS_EPSILON_FOR_QUARTILE: Final = 100  # n times ε for a spread, from which the upper quartile is used
MAX_COLUMNS: Final = 1000
THRESHOLD_SHARE: Final = Fraction(1, 10)  # part of ε, or of ρ, for a threshold
SPREADS_SHARE: Final = {  # part of the rest for spreads: Gaussian noise leaves more for them than Laplace noise
    Kind.PURE: Fraction(1, 2),
    Kind.APPROXIMATE: Fraction(3, 5),
    Kind.ZCDP: Fraction(3, 5),
}
EPSILONS: Final = ("0.01", "0.03", "0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5")

OWN_RECORDS: Final = (
    "Scoring costs nothing, but a list of which fitted records are flagged is not covered: show each person no more "
    "than the score of their own record."
)

Value = dict[str, Any]


SPREADS: Final = ("private", "schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How the loss is divided, and how many columns and grids are used: from public facts alone.  (D)

    `spreads` and `threshold` are what exponential choices spend as an ε, also where the loss is a ρ; `counts` is a loss
    of the kind of the query, with its δ.
    """

    spreads: Fraction
    counts: Loss
    threshold: Fraction
    columns: int  # of numbers
    grids: int

    @property
    def law(self) -> Additive:
        """The noise of each cell: a record leaves one cell of each grid and joins one.  (C)"""
        return calibrate_counts(2 * self.grids, self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector(Query[Points | TiledPoints, Value]):
    """Fit a detector of unusual records.

    >>> Detector(loss=Loss("1"), contamination=Fraction(1, 50)).cost()
    Loss(ε=1)
    """

    kind: ClassVar[str] = "detector"
    label: ClassVar[str] = "outlier-detector/1"
    question: ClassVar[str] = "Which records are unusual?"
    proof: ClassVar[str] = "queries/detector/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    is_model: ClassVar[bool] = True
    supports_tiles: ClassVar[bool] = True

    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    contamination: Fraction | None = field(
        default=None,
        metadata={"help": "share of the records to flag, such as 2% or 0.02; default: scores without flags"},
    )
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "columns to use; default: all columns of numbers and of labels", "names": "coded"},
    )
    spreads: str = field(
        default="private",
        metadata={
            "help": "source of the spreads: measured privately, or the schema's scales, which cost nothing",
            "choices": SPREADS,
        },
    )
    scale: int | ReleaseLike | None = field(default=None, metadata={"help": SCALE_HELP, "release": SCALE_RELEASE})

    like: Layout | ReleaseLike | dict[str, Any] | int | None = field(
        default=None,
        metadata={
            "help": "a detector (release, file or ledger entry) whose columns, spreads and grids are used: counts then "
            "add up",
            "release": ReleaseInput(kind="detector", as_value=True, also=("threshold",)),
        },
    )
    grow: bool = field(
        default=False,
        metadata={"help": "add the counts of the detector in like, so that the answer is a detector of both tables"},
    )

    def __post_init__(self) -> None:
        if self.like is not None and not isinstance(self.like, Layout):
            object.__setattr__(self, "like", Layout.of(self.like, with_counts=self.grow))  # before it is an entry
        normalise_fields(self)
        check_loss(self.kind, self.loss)
        check_scale(self.scale)
        if self.contamination is not None:
            object.__setattr__(self, "contamination", read_share(self.contamination, "contamination"))
        if self.spreads not in SPREADS:
            raise ParameterError(f"spreads: {self.spreads!r} is not known; it is one of {', '.join(SPREADS)}.")
        if self.layout is None and self.grow:
            raise ParameterError("grow: there is no detector to add counts to. Pass its release in like.")
        if self.layout is not None and (self.columns, self.scale, self.spreads) != (None, None, "private"):
            raise ParameterError(
                "like: columns, scale and spreads are those of the detector in like. Omit them, or omit like."
            )

    @property
    def layout(self) -> Layout | None:
        """Where the detector in `like` cuts its columns."""
        return self.like if isinstance(self.like, Layout) else None

    @classmethod
    def make_model(cls, value: Any) -> Model:
        return Model.of(value)

    def prepare(self, table: Any, find: FindRelease) -> Any:
        return rescale(self.scale, self.columns, table, find)

    def cost(self) -> Loss:
        return self.loss

    def rests_on(self, data: Any) -> tuple[str, ...]:
        measured = name_labels("scale", "P") + name_labels("mechanisms", "U")
        counted = {Kind.PURE: "L", Kind.APPROXIMATE: "L G1 G2 G3", Kind.ZCDP: "Z E1"}[self.loss.kind]
        if self.layout is not None:
            return (*name_labels("detector", "C H D A"), *name_labels("mechanisms", f"{counted} J1 J2 E2 E3"))
        return (*name_labels("detector", "K S C H D"), *measured, *name_labels("mechanisms", f"{counted} J1 J2 E2 E3"))

    def claim(self, facts: PublicFacts) -> Claim:
        claim = super(Detector, self).claim(facts)
        if self.loss.kind is not Kind.PURE:
            return claim
        split = self.split(facts.n, facts.dimension, count_labels(facts))
        rho = (split.spreads**2 + split.threshold**2) / 8 + split.counts.epsilon**2 / (4 * split.grids)  # (Z)
        return replace(claim, rho=rho)

    def view(self, data: Any) -> Points | TiledPoints:
        if self.layout is not None:
            return self._view_like(data, self.layout.model)
        points = (
            data.coded_points(self.columns) if isinstance(data, Table | TiledTable) else points_of(data, self.columns)
        )
        if points.dimension == count_labels(points) and not self.is_scaled:
            raise DataError(
                "a detector spends on the spreads of numbers, and all columns hold labels. Pass spreads='schema', so "
                "that all of the loss is spent on counts."
            )
        if points.n < 2 or points.dimension > MAX_COLUMNS:
            raise DataError(
                f"a detector needs two records or more, and at most {MAX_COLUMNS} columns. Choose among the columns."
            )
        return points

    def _view_like(self, data: Any, model: Model) -> Points | TiledPoints:
        """Records as those of the detector in `like` were read, or a refusal by what is public of them."""
        table = data if isinstance(data, Points | Table | TiledTable) else load(data)
        missing = [name for name in model.columns if name not in table.columns]
        if missing:
            raise DataError(f"like: the table has no column {missing[0]!r}, which that detector has. Pass another one.")
        points = model.project(table)
        model.require_same_grids(replace(model, schema=points.schema.only(model.columns)))
        if points.n < 2:
            raise DataError("a detector needs two records or more. Fit it to a larger table.")
        return points

    @property
    def is_scaled(self) -> bool:
        """Whether the columns come in spreads already, so that nothing is spent on them."""
        return self.scale is not None or self.spreads == "schema" or self.layout is not None

    def split(self, n: int, dimension: int, labels: int = 0) -> Split:
        """Divide the loss: a tenth for the threshold, of the rest a share for spreads, what is left for counts. Of the
        columns, `labels` hold labels, which need no spread."""
        threshold = self.loss.amount * THRESHOLD_SHARE if self.contamination is not None else Fraction(0)
        rest = self.loss.amount - threshold
        part = Fraction(0) if self.is_scaled else rest * SPREADS_SHARE[self.loss.kind]
        spreads, counts = self._epsilon_of(part), replace_amount(self.loss, rest - part)
        affordable = max(2, pairing_size(n) * spreads // RECORDS_EPSILON_PER_SPREAD)
        columns = dimension - labels if self.is_scaled else min(dimension - labels, affordable)
        grids = min(MAX_GRIDS, max(MIN_GRIDS, -(-(columns + labels) // 2)))
        if self.layout is not None:
            stated = self.layout.to_json()
            columns, grids = len(stated["spreads"]), len(stated["grids"])
        return Split(
            spreads=spreads, counts=counts, threshold=self._epsilon_of(threshold), columns=columns, grids=grids
        )

    def _epsilon_of(self, part: Fraction) -> Fraction:
        """What a part of the loss allows an exponential choice, as an ε.  (Z)"""
        return epsilon_of_range(part) if self.loss.kind is Kind.ZCDP else part

    def answer(self, data: Points | TiledPoints, noise: Noise) -> Value:
        if self.layout is not None:
            return self._answer_like(data, self.layout, noise)
        labels = label_sizes(data)
        split = self.split(data.n, data.dimension, len(labels))
        key = noise.below(KEY)  # public: columns and grids, and not the pairing (K)
        coins = Coins(key)
        numbers = [at for at in range(data.dimension) if at not in labels]
        chosen = sorted(coins.shuffle(numbers)[: split.columns])
        spreads = self.measure(data, chosen, split, noise)
        grids = lay_grids(spreads, split.grids, coins, labels)
        model = Model(
            columns=data.columns,
            grids=tuple(grids),
            counts=blur(cells_of(data, grids), split.law, noise),
            floor=floor_of(split.law),
            schema=data.schema.only(data.columns).bare(),
        )
        model = self._choose_threshold(model, data, split, noise)
        widths = {data.columns[at]: spread for at, spread in spreads.items()}
        named = [data.columns[at] for at in labels]
        return {"key": f"{key:032x}", "spreads": widths, "labels": named, **model.to_json()}

    def _answer_like(self, data: Points | TiledPoints, layout: Layout, noise: Noise) -> Value:
        """Counts in the grids of a released detector, added to its own where it grows.  (A)"""
        stated, earlier = layout.to_json(), layout.model
        split = self.split(data.n, data.dimension, count_labels(data))
        counts = blur(cells_of(data, earlier.grids), split.law, noise)
        model = replace(earlier, counts=counts, floor=floor_of(split.law))
        if self.grow:
            model = earlier + model
        model = self._choose_threshold(model, data, split, noise)
        return {"key": stated["key"], "spreads": stated["spreads"], "labels": stated["labels"], **model.to_json()}

    def _choose_threshold(self, model: Model, data: Points | TiledPoints, split: Split, noise: Noise) -> Model:
        """The detector with a threshold, where a share of these records is to be flagged.  (H)"""
        if self.contamination is None:
            return model
        wanted = round(self.contamination * data.n)
        above, marks = numbers_above(data, model), model.thresholds
        threshold = choose_threshold(marks, above, wanted, split.threshold, noise)
        miss = self.off(data.n, data.dimension) / data.n
        return replace(model, threshold=threshold, contamination=self.contamination, miss=miss)

    def measure(self, data: Points | TiledPoints, chosen: list[int], split: Split, noise: Noise) -> dict[int, float]:
        """The spread of each chosen column: 1 where columns come in spreads, else drawn together, by a secret pairing
        that ends with this call.  (S)"""
        if self.is_scaled:
            return dict.fromkeys(chosen, 1.0)
        share = (
            Fraction(3, 4)
            if pairing_size(data.n) * split.spreads >= RECORDS_EPSILON_FOR_QUARTILE * len(chosen)
            else Fraction(1, 2)
        )
        groups = [[at] for at in chosen]
        among = [bins_within(data, members) for members in groups]
        errors = [
            quantile_errors(counts, share, 1)[bins.start - 1 : bins.stop - 1]
            for counts, bins in zip(gap_counts(data, groups, pair_up(data.n, noise)), among, strict=True)
        ]
        indices = choose_together(errors, sensitivity=1, epsilon=split.spreads, noise=noise)
        drawn = zip(chosen, among, indices, strict=True)
        return {at: middle_of_bin(bins[index]) / DIVISORS[share] for at, bins, index in drawn}

    def picture(self, value: Value, facts: PublicFacts) -> Picture:
        """Which values of each column are unusual, over the range that its schema states; without one, its spreads."""
        return map_columns(Model.from_json(value)) or Figures(
            labels=tuple(value["spreads"]),
            headings=("spread",),
            values=tuple((spread,) for spread in value["spreads"].values()),
        )

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        labels = tuple(value["labels"])
        split = self.split(facts.n, facts.dimension, len(labels))
        flags = ""
        if self.contamination is not None:
            wanted, off = round(self.contamination * facts.n), self.off(facts.n, facts.dimension)
            low, high = max(0, wanted - off), min(facts.n, wanted + off)
            flags = f" It flags {low:,} to {high:,} of these (95 % confidence, ties aside); {wanted:,} were asked for."
        return Reading(
            mechanism="random grids",
            interval=None,
            text=f"A detector of {split.grids} grids over {split.columns + len(labels)} of {facts.dimension} columns, "
            f"fitted to {facts.n:,} records.{flags} Scoring records with it costs nothing.",
            brief=f"a detector of {split.grids} grids",
            extras={"columns_used": [*value["spreads"], *labels], "grids": split.grids},
            notes=(OWN_RECORDS,),
            quality=self._quality(facts.n, facts.dimension, len(labels)),
        )

    def off(self, n: int, dimension: int) -> int:
        """By how many records the threshold misses at most, 95 times of 100, where scores do not tie.  (H)"""
        threshold = self.split(n, dimension).threshold
        return min(n, count_misses(threshold)) if threshold else n

    def plan_on(self, data: Points | TiledPoints) -> Plan:
        return self._plan(data.n, data.dimension, count_labels(data))

    def plan(self, *, n: int, dimension: int) -> Plan:
        return self._plan(n, dimension, 0)

    def _plan(self, n: int, dimension: int, labels: int) -> Plan:
        split = self.split(n, dimension, labels)
        shape = (n, dimension, labels)
        useful = self._is_useful(*shape)
        smallest = least_amount(lambda amount: self._at(amount)._is_useful(*shape))
        words = self._words(n, dimension, split, labels)
        figures = {"columns": split.columns + labels, "grids": split.grids, "noise": self._noise(*shape)}
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen="random grids",
            headings={"columns": "columns", "grids": "grids", "noise": "noise of a cell, of all records"},
            options=(Option(mechanism="random grids", figures=figures, note="scores any record afterwards"),),
            useful=useful,
            reason=words,
            smallest_useful_epsilon=smallest,
            curve=tuple((float(amount), self._at(amount)._noise(*shape)) for amount in EPSILONS),
            measure="noise of a cell, as a share of all records",
            conditions=(*self._unseen(*shape), *self._unsteady(n, dimension)),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(loss=Loss("1"), contamination=Fraction(1, 50))

    def _words(self, n: int, dimension: int, split: Split, labels: int) -> str:
        flags = ""
        if self.contamination is not None:
            wanted, off = round(self.contamination * n), self.off(n, dimension)
            flags = f"; {max(0, wanted - off):,} to {min(n, wanted + off):,} records would be flagged (95 %)"
        if self.is_scaled:
            noise = self._noise(n, dimension, labels)
            return (
                f"{split.grids} grids over {dimension} columns, noise of a cell {percent(noise)} of the records{flags}"
            )
        affordable = float(n * split.spreads / RECORDS_EPSILON_PER_SPREAD)
        used = split.columns + labels
        part = "are looked at" if used == dimension else "can be looked at, drawn at random"
        some = f"{used} of {dimension} columns {part}{flags}"
        return (
            some
            if affordable >= min(2, dimension - labels)
            else f"records times ε do for {affordable:.2g} columns, and 2 are needed"
        )

    def _is_steady(self, n: int, dimension: int) -> bool:
        """Whether the threshold surely misses by less than the number of flags that is wanted."""
        return self.contamination is None or self.off(n, dimension) < self.contamination * n

    def _noise(self, n: int, dimension: int, labels: int) -> float:
        split = self.split(n, dimension, labels)
        return min(1.0, split.law.deviation() / n)

    def _is_useful(self, n: int, dimension: int, labels: int) -> bool:
        split = self.split(n, dimension, labels)
        is_wide = self.is_scaled or n * split.spreads >= RECORDS_EPSILON_PER_SPREAD * min(2, dimension - labels)
        return is_wide and floor_of(calibrate_counts(2 * MIN_GRIDS, split.counts)) <= n

    def _quality(self, n: int, dimension: int, labels: int) -> Quality:
        """By the flags, where there are any, and by the noise of a cell, which scores rest on, otherwise."""
        split = self.split(n, dimension, labels)
        conditions = (*self._unseen(n, dimension, labels), *self._unsteady(n, dimension))
        if self.contamination is not None:
            return rate_number(
                self.off(n, dimension),
                number=float(self.contamination * n),
                records=n,
                interval="not proved",
                name="the number of flags that is asked for",
                conditions=conditions,
            )
        noise = self._noise(n, dimension, labels)
        rule = f"the noise of a cell is {percent(noise)} of the records, in each of {split.grids} grids"
        wrong = noise / LOW[1] * LOW[0] if self._is_useful(n, dimension, labels) else 1.0  # 1 % and 10 % of the records
        return rate_errors(wrong, rule, conditions=conditions)

    def _unsteady(self, n: int, dimension: int) -> tuple[str, ...]:
        """The condition that scores can be used and flags cannot."""
        if self._is_steady(n, dimension):
            return ()
        return ("The threshold may miss by as many as are asked for: use the scores, not the flags, or spend more.",)

    def _unseen(self, n: int, dimension: int, labels: int) -> tuple[str, ...]:
        """The condition that some columns are not looked at."""
        used = self.split(n, dimension, labels).columns + labels
        if used == dimension:
            return ()
        some = f"{used} of {dimension} columns are looked at, drawn at random"
        return (f"{some}: a record that is unusual in the others only is not seen. Name fewer columns.",)

    def _at(self, amount: str) -> Self:
        return replace(self, loss=replace_amount(self.loss, Fraction(amount)))


def label_sizes(data: Points | TiledPoints) -> dict[int, int]:
    """The places of the columns of labels, and how many labels each has."""
    return {at: len(c.labels) for at, c in enumerate(data.schema.columns or ()) if c.categories is not None}


def count_labels(facts: PublicFacts) -> int:
    """How many columns hold labels, by the schema."""
    return len(label_sizes(facts)) if isinstance(facts, Points | TiledPoints) else 0


def blur(counts: Ints, law: Additive, noise: Noise) -> Ints:
    """Counts of R tables with the noise that hides one record, which is in one cell of each of them.  (C)"""
    drawn: Ints = counts + draws(noise, law.law, law.scale, counts.size).reshape(counts.shape)
    return drawn


def count_misses(epsilon: Fraction) -> int:
    """By how many records a chosen threshold misses at most, 95 times of 100, where scores do not tie.  (H)"""
    return math.ceil(2 * math.log(THRESHOLDS * 20) / float(epsilon))


def choose_threshold(thresholds: Floats, above: Ints, wanted: int, epsilon: Fraction, noise: Noise) -> float:
    """Choose a score privately so that about `wanted` records lie above it.  (H)"""
    (index,) = choose_together([misses(above, wanted)], sensitivity=1, epsilon=epsilon, noise=noise)
    return float(thresholds[index])


MAP_STEPS: Final = 11  # values of each column on a map
MAX_MAP_COLUMNS: Final = 24
RANGE_SCALES: Final = 4  # scales to either side of the centre, where a schema states these and no bounds


def map_columns(model: Model) -> HeatMap | None:
    """Return what each value of each column adds to a score by itself; None without public ranges in the schema."""
    used = sorted({column for grid in model.grids for column in grid.columns})
    ranges = [(at, _range_of((model.schema.columns or ())[at])) for at in used]
    known = [(at, ends) for at, ends in ranges if ends is not None][:MAX_MAP_COLUMNS]
    if not known:
        return None
    rows = {model.columns[at]: (np.linspace(low, high, MAP_STEPS), at) for at, (low, high) in known}
    values = {name: model.score_column(name, places) for name, (places, _) in rows.items()}
    shown = [tuple(map(float, row)) for row in values.values()]
    return HeatMap(
        down=tuple(f"{name} ({places[0]:.4g} to {places[-1]:.4g})" for name, (places, _) in rows.items()),
        across=tuple(_step(at) for at in range(MAP_STEPS)),
        names=("column, with its public range", "place in that range"),
        values=tuple(shown),
        marks=tuple(("",) * MAP_STEPS for _ in shown),
        measure="what the value adds to the score by itself",
        least=min(min(row) for row in shown),
    )


def _range_of(column: Column) -> tuple[float, float] | None:
    if column.low is not None and column.high is not None:
        return float(column.low), float(column.high)
    if float(column.scale) == 1 and float(column.center) == 0:
        return None
    centre, reach = float(column.center), RANGE_SCALES * float(column.scale)
    return centre - reach, centre + reach


def _step(at: int) -> str:
    return f"{at / (MAP_STEPS - 1):.0%}".replace("%", " %")


def floor_of(law: Additive) -> float:
    """Counts below the noise say nothing: below its deviation over √2, which is the scale of Laplace noise."""
    scale = float(law.scale)
    return max(1.0, scale if law.law == "laplace" else scale / math.sqrt(2))
