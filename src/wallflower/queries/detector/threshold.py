"""Which score flags the wanted share of the records? Another threshold for a detector that was released.

A detector was fitted without a threshold, or with one that misses the wanted number by too much, or the share is known
only since outliers were counted. Fitting again would pay for spreads and counts a second time. Given the released
detector, a score is a function of one record, so all of the loss is spent on the choice of the threshold.

Released    a threshold, and with it the detector that was released before
Guarantee   pure ε-DP (and ε²/8-zCDP), or ρ-zCDP     Neighbours  replace one record, N public
Arithmetic  whole-number errors, an exact draw       Proof       proof.md, label (H)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Final, Self

from wallflower.data import Points, Table, TiledTable, load
from wallflower.errors import LossMismatch, ParameterError
from wallflower.mechanisms import epsilon_of_range
from wallflower.names import account_name
from wallflower.neighbours.limits import check_loss
from wallflower.neighbours.radii import read_share
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.queries.detector.detector import OWN_RECORDS, choose_threshold, count_misses
from wallflower.queries.detector.model import Model, require_detector, take_model
from wallflower.queries.detector.tasks import numbers_above
from wallflower.queries.near import replace_amount
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
from wallflower.query.accuracy import rate_number
from wallflower.text import t
from wallflower.theorems import name_labels
from wallflower.units import Claim

Value = dict[str, Any]

USUAL: Final = Fraction(1, 50)  # share of outliers that a plan assumes, where a count that was released will state it
AMOUNTS: Final = ("0.01", "0.03", "0.1", "0.2", "0.3", "0.5", "1", "2", "3", "5")


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdView:
    """Records, the detector, and the number of records to flag, once releases were looked up."""

    table: Table | TiledTable | Points
    wanted: int | None = None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold(Query[ThresholdView, Value]):
    """Choose another threshold for a detector that was released.

    >>> Threshold(detector=7, contamination=Fraction(1, 50), loss=Loss("0.1")).cost()
    Loss(ε=1/10)
    """

    kind: ClassVar[str] = "threshold"
    label: ClassVar[str] = "outlier-detector-threshold/1"
    question: ClassVar[str] = "Above which score is the wanted share of the records flagged?"
    proof: ClassVar[str] = "queries/detector/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    companion_of: ClassVar[str] = "detector"
    is_model: ClassVar[bool] = True
    supports_tiles: ClassVar[bool] = True
    no_picture_because: ClassVar[str] = "one score; the detector that it belongs to has a picture"

    detector: int | ReleaseLike = field(
        metadata={
            "help": "the ledger entry of a release of detector, or the release",
            "release": ReleaseInput(kind="detector", also=("threshold",)),
        }
    )
    contamination: Fraction | None = field(
        default=None, metadata={"help": "share of the records to flag, such as 2% or 0.02"}
    )
    counted: int | ReleaseLike | None = field(
        default=None,
        metadata={
            "help": "instead of contamination: the ledger entry of a release of count, whose number of outliers is the "
            "number to flag, or the release",
            "release": ReleaseInput(kind="count"),
        },
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend, as text"})

    def __post_init__(self) -> None:
        normalise_fields(self)
        check_loss(self.kind, self.loss)
        if self.loss.kind is Kind.APPROXIMATE:
            raise LossMismatch("threshold has no use for a δ: its choice is pure. Pass epsilon alone, or rho.")
        require_detector(self.detector)
        if (self.contamination is None) == (self.counted is None):
            raise ParameterError(
                "contamination, counted: the number to flag comes from one of them. Pass a share of the records, or a "
                "release of count."
            )
        if self.contamination is not None:
            object.__setattr__(self, "contamination", read_share(self.contamination, "contamination"))

    @classmethod
    def make_model(cls, value: Any) -> Model:
        return Model.of(value)

    def cost(self) -> Loss:
        return self.loss

    @property
    def epsilon(self) -> Fraction:
        """The ε of the choice.  (Z)"""
        return epsilon_of_range(self.loss.rho) if self.loss.kind is Kind.ZCDP else self.loss.epsilon

    def rests_on(self, data: Any) -> tuple[str, ...]:
        more = " E1" if self.loss.kind is Kind.ZCDP else ""
        return (*name_labels("detector", "H"), *name_labels("mechanisms", f"J1 J2 E2 E3{more}"))

    def claim(self, facts: PublicFacts) -> Claim:
        claim = super(Threshold, self).claim(facts)
        return claim if self.loss.kind is Kind.ZCDP else replace(claim, rho=self.epsilon**2 / 8)  # (Z)

    def view(self, data: Any) -> ThresholdView:
        table = data if isinstance(data, Table | TiledTable | Points) else load(data)
        wanted = None if self.contamination is None else round(self.contamination * table.n)
        return ThresholdView(table=table, wanted=wanted)

    def take_releases(self, view: ThresholdView, find: Callable[[int], Mapping[str, Any] | None]) -> ThresholdView:
        """The view with its detector and the wanted number; refused by what is public of them."""
        model = take_model(self.detector, find, view.table, needs_threshold=False)
        wanted = view.wanted if self.counted is None else self._read_count(view, find)
        return replace(view, model=model, wanted=wanted)

    def _read_count(self, view: ThresholdView, find: FindRelease) -> int:
        """The released number of outliers of the same data set: post-processing of an answer that was paid for."""
        stored = find(int(self.counted))  # type: ignore[arg-type]
        if stored is None or stored["kind"] != "count" or type(stored["value"]) is not int:
            raise ParameterError(
                f"counted: entry {self.counted} of the ledger is not a release of count with one number. Count "
                "outliers first, without groups, and pass the release."
            )
        if len({account_name(name) or name for name in (str(stored["dataset"]), view.table.name)}) > 1:
            raise ParameterError(
                f"counted: release {self.counted} is of another data set than {view.table.name}. Pass one of the same."
            )
        return min(max(0, int(stored["value"])), view.n)

    def answer(self, data: ThresholdView, noise: Noise) -> Value:
        model, wanted = data.model, data.wanted
        assert model is not None, "take_releases() comes before any look at records"
        assert wanted is not None
        above = numbers_above(model.project(data.table), model)
        threshold = choose_threshold(model.thresholds, above, wanted, self.epsilon, noise)  # (H)
        share = Fraction(wanted, data.n)
        chosen = replace(model, threshold=threshold, contamination=share, miss=self.off(data.n) / data.n)
        return {"detector": int(self.detector), "wanted": wanted, **chosen.to_json()}  # type: ignore[arg-type]

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        wanted, off = int(value["wanted"]), self.off(facts.n)
        return Reading(
            mechanism="exponential",
            interval=None,
            text=t(
                "Above {threshold:.4g} the detector of release {detector} flags {low:,} to {high:,} of {n:,} records "
                "(95 % confidence, ties aside); {wanted:,} were asked for.",
                threshold=value["threshold"],
                detector=value["detector"],
                low=max(0, wanted - off),
                high=min(facts.n, wanted + off),
                n=facts.n,
                wanted=wanted,
            ),
            brief=t("a threshold of {threshold:.4g}", threshold=value["threshold"]),
            extras={"threshold": value["threshold"], "off": off},
            notes=(OWN_RECORDS,),
            quality=rate_number(
                off,
                number=wanted,
                records=facts.n,
                interval="not proved",
                name=t("the number of flags that is asked for"),
            ),
        )

    def off(self, n: int) -> int:
        """By how many records the threshold misses at most, 95 times of 100, where scores do not tie.  (H)"""
        return min(n, count_misses(self.epsilon))

    def plan_on(self, data: ThresholdView) -> Plan:
        return self._plan(data.n, data.dimension, data.wanted)

    def plan(self, *, n: int, dimension: int) -> Plan:
        return self._plan(n, dimension, None if self.contamination is None else round(self.contamination * n))

    def _plan(self, n: int, dimension: int, wanted: int | None) -> Plan:
        number = math.ceil(USUAL * n) if wanted is None else wanted
        off, useful = self.off(n), self.off(n) < number
        smallest = least_amount(lambda amount: self._at(amount).off(n) < number)
        words = t(
            "{low:,} to {high:,} records would be flagged (95 %), where {wanted:,} are wanted",
            low=max(0, number - off),
            high=min(n, number + off),
            wanted=number,
        )
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={"n": n, "dimension": dimension},
            chosen="exponential",
            headings={"off": t("misses by, at most (95 %)")},
            options=(Option(mechanism="exponential", figures={"off": off}, note=t("all of the loss for the choice")),),
            useful=useful,
            reason=words,
            smallest_useful_epsilon=smallest,
            curve=tuple((float(amount), float(self._at(amount).off(n))) for amount in AMOUNTS),
            measure=t("records that the threshold misses by, at most (95 %)"),
        )

    @classmethod
    def example(cls) -> Self:
        return cls(detector=1, contamination=Fraction(1, 50), loss=Loss("0.1"))

    def _at(self, amount: str) -> Self:
        return replace(self, loss=replace_amount(self.loss, Fraction(amount)))
