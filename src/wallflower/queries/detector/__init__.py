"""Which records are unusual? A detector, fitted once under privacy, that scores any record afterwards.

A list of the outlying records cannot be private; what tells them apart can. Records are counted in random grids of two
columns each, whose cells wrap round and are a few spreads wide; the counts are released with noise. A record is unusual
where the cells it falls into are emptier than those of others. New records, the steward's own and each person's own
may be scored for ever: that costs nothing more. To publish *which of the fitted records* are flagged is another
release, which nothing here pays for.

Released    spreads, grids, noisy counts; a threshold where a share of outliers is wanted
Guarantee   pure ε-DP, and zCDP at less than ε²/2      Neighbours  replace one record, in any order, N public
Arithmetic  whole-number counts and errors             Proof       proof.md, labels (K) (S) (C) (H) (D) (Z)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from wallflower.data import Points, TiledPoints, TiledTable, points_of
from wallflower.errors import DataError, LossMismatch, ParameterError
from wallflower.mechanisms import choose_together
from wallflower.neighbours.limits import SCALE_HELP, check_loss, check_scale
from wallflower.neighbours.radii import read_share
from wallflower.neighbours.spreads import (
    DIVISORS,
    bins_within,
    errors_of,
    gap_counts,
    pair_up,
    pairing_size,
    value_of,
)
from wallflower.noise import Noise, draws
from wallflower.privacy import Kind, Loss
from wallflower.queries.detector.by_tiles import cells_of, numbers_above
from wallflower.queries.detector.grids import Coins, Floats, Ints, lay_grids
from wallflower.queries.detector.maps import map_columns
from wallflower.queries.detector.model import THRESHOLDS, Model, floor_of, misses
from wallflower.query import (
    Option,
    Plan,
    PublicFacts,
    Query,
    Reading,
    ReleaseLike,
    Status,
    least_amount,
    settle,
)
from wallflower.query.accuracy import LOW, Quality, percent, rate_errors, rate_number
from wallflower.query.picture import Figures, Picture
from wallflower.schema.columns import list_names
from wallflower.theorems import name_labels
from wallflower.units import Claim

KEY: Final = 2**128
FEWEST, MOST_GRIDS = 20, 50
ENOUGH: Final = 50  # records times ε for each spread, from which nearly all are right within a factor of 2
PLENTY: Final = 100
MOST: Final = 1000  # columns
TENTH: Final = Fraction(1, 10)  # of the loss, for a threshold
EPSILONS: Final = ("0.01", "0.03", "0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5")

OWN_RECORDS: Final = (
    "Scoring costs nothing, but a list of which fitted records are flagged is not covered: show each person no more "
    "than the score of their own record."
)

Value = dict[str, Any]


SPREADS: Final = ("private", "schema")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """What is spent on what, and how much is looked at: from public facts alone.  (D)"""

    spreads: Fraction
    counts: Fraction
    threshold: Fraction
    columns: int
    grids: int


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
    fits: ClassVar[bool] = True
    by_tiles: ClassVar[bool] = True

    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})
    contamination: Fraction | None = field(
        default=None, metadata={"help": "the share of the records to flag, 2% or 0.02; default: scores, and no flags"}
    )
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns to look at; all number columns unless given", "names": "numbers"},
    )
    spreads: str = field(
        default="private",
        metadata={
            "help": "where spreads come from: measured privately, or the schema's scales, for nothing",
            "choices": SPREADS,
        },
    )
    scale: int | ReleaseLike | None = field(default=None, metadata={"help": SCALE_HELP})

    def __post_init__(self) -> None:
        settle(self)
        check_loss(self.kind, self.loss)
        check_scale(self.scale)
        if self.loss.kind is not Kind.PURE:
            raise LossMismatch(f"detector is pure; a {self.loss.kind} loss has no theorem here. Pass ε alone.")
        if self.contamination is not None:
            object.__setattr__(self, "contamination", read_share(self.contamination, "contamination"))
        if self.spreads not in SPREADS:
            raise ParameterError(f"spreads: {self.spreads!r} is not known; it is one of {', '.join(SPREADS)}.")

    def cost(self) -> Loss:
        return self.loss

    def rests_on(self, data: Any) -> tuple[str, ...]:
        measured = name_labels("scale", "P") + name_labels("mechanisms", "U")
        return (*name_labels("detector", "K S C H D"), *measured, *name_labels("mechanisms", "L J1 J2 E2 E3"))

    def claim(self, facts: PublicFacts) -> Claim:
        split = self.split(facts.n, facts.dimension)
        rho = (split.spreads**2 + split.threshold**2) / 8 + split.counts**2 / (4 * split.grids)  # (Z)
        return replace(super(Detector, self).claim(facts), rho=rho)

    def view(self, data: Any) -> Points | TiledPoints:
        points = data.points(self.columns) if isinstance(data, TiledTable) else points_of(data, self.columns)
        if points.n < 2 or points.dimension > MOST:
            raise DataError(
                f"a detector needs two records or more, and at most {MOST} columns. Choose among the columns."
            )
        return points

    def cautions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        """The columns of labels, which a detector does not look at, where nobody has named columns."""
        left = data.unused_labels
        return (f"Columns of labels are not looked at: {list_names(left)}.",) if left and self.columns is None else ()

    @property
    def is_scaled(self) -> bool:
        """Whether the columns come in spreads already, so that nothing is spent on them."""
        return self.scale is not None or self.spreads == "schema"

    def split(self, n: int, dimension: int) -> Split:
        """How the loss is split: a tenth for the threshold, half of the rest for spreads, the rest for counts."""
        threshold = self.loss.epsilon * TENTH if self.contamination is not None else Fraction(0)
        rest = self.loss.epsilon - threshold
        spreads = Fraction(0) if self.is_scaled else rest / 2
        columns = dimension if self.is_scaled else min(dimension, max(2, pairing_size(n) * spreads // ENOUGH))
        grids = min(MOST_GRIDS, max(FEWEST, -(-columns // 2)))
        return Split(spreads=spreads, counts=rest - spreads, threshold=threshold, columns=columns, grids=grids)

    def answer(self, data: Points | TiledPoints, noise: Noise) -> Value:
        split = self.split(data.n, data.dimension)
        key = noise.below(KEY)  # public: columns and grids, and not the pairing (K)
        coins = Coins(key)
        chosen = sorted(coins.shuffle(range(data.dimension))[: split.columns])
        spreads = self.measure(data, chosen, split, noise)
        grids = lay_grids(spreads, split.grids, coins)
        model = Model(
            columns=data.columns,
            grids=tuple(grids),
            counts=blur(cells_of(data, grids), split.counts, noise),
            floor=floor_of(split.grids, split.counts),
            schema=data.schema.only(data.columns).bare(),
        )
        if self.contamination is not None:
            wanted = round(self.contamination * data.n)
            above, marks = numbers_above(data, model), model.thresholds
            threshold = choose_threshold(marks, above, wanted, split.threshold, noise)
            miss = self.off(data.n, data.dimension) / data.n
            model = replace(model, threshold=threshold, contamination=self.contamination, miss=miss)
        widths = {data.columns[at]: spread for at, spread in spreads.items()}
        return {"key": f"{key:032x}", "spreads": widths, **model.to_json()}

    def measure(self, data: Points | TiledPoints, chosen: list[int], split: Split, noise: Noise) -> dict[int, float]:
        """The spread of each chosen column: 1 where columns come in spreads, else drawn together, by a secret pairing
        that ends with this call.  (S)"""
        if self.is_scaled:
            return dict.fromkeys(chosen, 1.0)
        share = Fraction(3, 4) if pairing_size(data.n) * split.spreads >= PLENTY * len(chosen) else Fraction(1, 2)
        groups = [[at] for at in chosen]
        among = [bins_within(data, members) for members in groups]
        errors = [
            errors_of(counts, share, 1)[bins.start - 1 : bins.stop - 1]
            for counts, bins in zip(gap_counts(data, groups, pair_up(data.n, noise)), among, strict=True)
        ]
        places = choose_together(errors, sensitivity=1, epsilon=split.spreads, noise=noise)
        drawn = zip(chosen, among, places, strict=True)
        return {at: value_of(bins[place]) / DIVISORS[share] for at, bins, place in drawn}

    def picture(self, value: Value, facts: PublicFacts) -> Picture:
        """Which values of each column are unusual, over the range that its schema states; without one, its spreads."""
        return map_columns(Model.from_json(value)) or Figures(
            labels=tuple(value["spreads"]),
            headings=("spread",),
            values=tuple((spread,) for spread in value["spreads"].values()),
        )

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        split = self.split(facts.n, facts.dimension)
        flags = ""
        if self.contamination is not None:
            wanted, off = round(self.contamination * facts.n), self.off(facts.n, facts.dimension)
            low, high = max(0, wanted - off), min(facts.n, wanted + off)
            flags = f" It flags {low:,} to {high:,} of these (95 % confidence, ties aside); {wanted:,} were asked for."
        return Reading(
            mechanism="random grids",
            interval=None,
            words=f"A detector of {split.grids} grids over {split.columns} of {facts.dimension} columns, fitted to "
            f"{facts.n:,} records.{flags} It scores any record, for nothing.",
            brief=f"a detector of {split.grids} grids",
            extras={"columns_used": list(value["spreads"]), "grids": split.grids},
            notes=(OWN_RECORDS,),
            quality=self._quality(facts.n, facts.dimension),
        )

    def off(self, n: int, dimension: int) -> int:
        """By how many records the threshold misses at most, 95 times of 100, where scores do not tie.  (H)"""
        threshold = self.split(n, dimension).threshold
        return n if not threshold else min(n, math.ceil(2 * math.log(THRESHOLDS * 20) / float(threshold)))

    def plan(self, *, n: int, dimension: int) -> Plan:
        split = self.split(n, dimension)
        useful = self._is_useful(n, dimension)
        smallest = least_amount(lambda amount: self._at(amount)._is_useful(n, dimension))
        words = self._words(n, dimension, split)
        figures = {"columns": split.columns, "grids": split.grids, "noise": self._noise(n, dimension)}
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
            curve=tuple((float(amount), self._at(amount)._noise(n, dimension)) for amount in EPSILONS),
            measure="noise of a cell, as a share of all records",
            conditions=(*self._unseen(n, dimension), *self._unsteady(n, dimension)),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(loss=Loss("1"), contamination=Fraction(1, 50))

    def _words(self, n: int, dimension: int, split: Split) -> str:
        flags = ""
        if self.contamination is not None:
            wanted, off = round(self.contamination * n), self.off(n, dimension)
            flags = f"; {max(0, wanted - off):,} to {min(n, wanted + off):,} records would be flagged (95 %)"
        if self.is_scaled:
            return f"{split.grids} grids over {dimension} columns, {float(n * split.counts):.3g} records times ε{flags}"
        each = float(n * split.spreads / ENOUGH)
        part = "are looked at" if split.columns == dimension else "can be looked at, drawn at random"
        some = f"{split.columns} of {dimension} columns {part}{flags}"
        return some if each >= min(2, dimension) else f"records times ε do for {each:.2g} columns, and 2 are needed"

    def _is_steady(self, n: int, dimension: int) -> bool:
        """Whether the threshold surely misses by less than the number of flags that is wanted."""
        return self.contamination is None or self.off(n, dimension) < self.contamination * n

    def _noise(self, n: int, dimension: int) -> float:
        split = self.split(n, dimension)
        return min(1.0, 2**0.5 * 2 * split.grids / float(split.counts) / n)

    def _is_useful(self, n: int, dimension: int) -> bool:
        split = self.split(n, dimension)
        is_wide = self.is_scaled or n * split.spreads >= ENOUGH * min(2, dimension)
        return is_wide and n * split.counts >= 2 * FEWEST

    def _quality(self, n: int, dimension: int) -> Quality:
        """By the flags, where there are any, and by the noise of a cell, which scores rest on, otherwise."""
        split = self.split(n, dimension)
        conditions = (*self._unseen(n, dimension), *self._unsteady(n, dimension))
        if self.contamination is not None:
            return rate_number(
                self.off(n, dimension),
                number=float(self.contamination * n),
                records=n,
                interval="not proved",
                name="the number of flags that is asked for",
                conditions=conditions,
            )
        noise = self._noise(n, dimension)
        rule = f"the noise of a cell is {percent(noise)} of the records, in each of {split.grids} grids"
        wrong = noise / LOW[1] * LOW[0] if self._is_useful(n, dimension) else 1.0  # 1 % and 10 % of the records
        return rate_errors(wrong, rule, conditions=conditions)

    def _unsteady(self, n: int, dimension: int) -> tuple[str, ...]:
        """The condition that scores can be used and flags cannot."""
        if self._is_steady(n, dimension):
            return ()
        return ("The threshold may miss by as many as are asked for: use the scores, not the flags, or spend more.",)

    def _unseen(self, n: int, dimension: int) -> tuple[str, ...]:
        """The condition that some columns are not looked at."""
        split = self.split(n, dimension)
        if split.columns == dimension:
            return ()
        some = f"{split.columns} of {dimension} columns are looked at, drawn at random"
        return (f"{some}: a record that is unusual in the others only is not seen. Name fewer columns.",)

    def _at(self, amount: str) -> Self:
        return replace(self, loss=Loss(amount))


def blur(counts: Ints, epsilon: Fraction, noise: Noise) -> Ints:
    """Counts of R tables with the noise that hides one record, which is in one cell of each of them.  (C)"""
    scale = 2 * len(counts) / epsilon
    drawn: Ints = counts + draws(noise, "laplace", scale, counts.size).reshape(counts.shape)
    return drawn


def choose_threshold(thresholds: Floats, above: Ints, wanted: int, epsilon: Fraction, noise: Noise) -> float:
    """A score that about so many records are above, by how many are above each.  (H)"""
    (place,) = choose_together([misses(above, wanted)], sensitivity=1, epsilon=epsilon, noise=noise)
    return float(thresholds[place])
