"""In which attributes do the outliers show?

Of a public family of subspaces (column sets), the `top` with the most outliers are released, in order [Oka15]. Each is
scored by its outlier mass, which one record moves by at most 2 whatever the columns; one after another is drawn at
random, likelier the higher its score. A quarter of the loss shows by how much each name leads the median of the others,
since names alone say nothing where all subspaces are alike. With `counts`, the number of outliers in each of them
follows; the whole is one query with one charge.

Released    names of columns, in order, with their leads; with `counts` a whole number in [0, N] for each
Guarantee   pure ε-DP, (ε, δ)-DP or ρ-zCDP           Neighbours  replace one record, N public
Arithmetic  whole-number scores, exact coins          Proof       proof.md, labels (M) (K) (T) (B) (E) (C) (V) (R)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from wallflower import progress
from wallflower.data import TiledPoints
from wallflower.data.scans import MEMORY, has_room
from wallflower.drawing.picture import Bars, Ranks
from wallflower.errors import EngineMismatch, ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.mechanisms import Additive, calibrate, peel
from wallflower.neighbours.limits import (
    check_radius,
    per_column,
    require_single_coordinates,
    rounding_bound,
    search_effort,
)
from wallflower.neighbours.noisy_count import (
    count_noise,
    gap_steps,
    interval,
    noisy_steps,
    public_cap,
    round_to_records,
)
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.privacy import exact as read_exactly
from wallflower.progress import Effort
from wallflower.queries.near import NearQuery, Records, replace_amount
from wallflower.queries.subspaces.choice import (
    CHOOSERS,
    Draws,
    check_mechanism,
    count_loss,
    draws,
    least_lead,
    parts,
    precision,
    rho_of,
)
from wallflower.queries.subspaces.family import Family, Subspace
from wallflower.query import Option, Plan, PublicFacts, Reading, Status
from wallflower.query.accuracy import CONFIDENCE, MODERATE, Quality, rate_errors
from wallflower.schema.columns import list_names
from wallflower.text import join, t
from wallflower.units import Claim

if TYPE_CHECKING:
    import wallflower.queries.subspaces.exact as _exact
else:
    _exact = Lazy("wallflower.queries.subspaces.exact")  # compiled kernels, which a plan does without

MAX_TOP: Final = 100  # choices share the loss: more of them would all be near chance
VERIFIED_PART: Final = Fraction(1, 4)  # of the loss, for leads
ASSUMED_LEAD: Final = Fraction(1, 50)  # of the records: by how much a plan lets the best stand out
NEAR_CHANCE_LIFT, USEFUL_LIFT = 0.1, 0.5  # of the way from chance to certainty
MAX_COUNT_NOISE: Final = MODERATE[1]  # of the records: more than moderate noise makes counts not useful
RIGHT_NAMES: Final = 0.9  # of the names: what counts as low noise
AMOUNTS: Final = ("0.1", "0.2", "0.4", "0.8", "1.2", "1.6", "2.4", "3.2", "6.4", "12.8")
SCORES: Final = ("mass", "count")

Floats = NDArray[np.float64]
Value = list[list[str]] | list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Subspaces(NearQuery[Records, Value]):
    """Find the column sets in which most outliers show.

    >>> Subspaces(neighbours=3, radius=0.13, size=1, top=2, loss=Loss("1.6")).cost()
    Loss(ε=8/5)
    """

    kind: ClassVar[str] = "subspaces"
    label: ClassVar[str] = "outlier-subspaces/1"
    question: ClassVar[str] = "In which attributes do the outliers show?"
    proof: ClassVar[str] = "queries/subspaces/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    supports_tiles: ClassVar[bool] = True

    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns subspaces are made of; default: all number columns", "names": "measured"},
    )
    radius: float = field(
        metadata={
            "help": "records at most this far apart (root of the mean squared difference) are near",
            "span": "radius",
        }
    )
    top: int = field(default=1, metadata={"help": "how many subspaces to release, best first; they share the loss"})
    size: int | None = field(default=None, metadata={"help": "search all subspaces of this many columns"})
    upto: int | None = field(
        default=None, metadata={"help": "search all subspaces of up to this many columns; default: all there are"}
    )
    among: tuple[tuple[str, ...], ...] | None = field(default=None, metadata={"help": "search these subspaces only"})
    score: str = field(
        default="mass",
        metadata={
            "help": "mass: a graded count that one record moves by 2 at most; count: the paper's, needs far more loss",
            "choices": SCORES,
        },
    )
    mechanism: str | None = field(
        default=None,
        metadata={"help": "how to choose; default: whichever promises more", "choices": tuple(CHOOSERS)},
    )
    counts: bool = field(default=False, metadata={"help": "also count the outliers in each, from the same loss"})
    share: Fraction = field(
        default=Fraction(1, 2), metadata={"help": "with counts: the part of the loss that goes into the choice"}
    )
    verify: bool = field(
        default=True,
        metadata={"help": "spend a quarter of ε on whether the named subspaces stand out from the others"},
    )
    gap: float | None = field(
        default=None,
        metadata={"help": "for the plan only: by how many records the best stand out; default: 2 % of them"},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_radius(self.radius)
        check_mechanism(self.mechanism)
        object.__setattr__(self, "share", read_exactly(self.share, "share"))
        if not 0 < self.share < 1:
            raise ParameterError(f"share: {self.share} is not between 0 and 1; 1/2 gives choice and counts the same.")
        if isinstance(self.top, bool) or not isinstance(self.top, int) or not 1 <= self.top <= MAX_TOP:
            raise ParameterError(f"top: {self.top!r} is not an integer from 1 to {MAX_TOP}; 1 to 4 suit most losses.")
        if self.score not in SCORES:
            raise ParameterError(f"score: {self.score!r} is not known; it is one of {', '.join(SCORES)}.")
        if self.gap is not None and not 0 < self.gap < math.inf:
            raise ParameterError(f"gap: {self.gap!r} is not a positive number of records; omit it for 2 % of them.")
        self.family  # noqa: B018 - refuses settings that make no family
        if self.among is not None:
            named = tuple(dict.fromkeys(name for names in self.among for name in names))
            if self.columns not in (None, named):
                raise ParameterError("among, columns: the subspaces named bring their columns. Omit columns.")
            object.__setattr__(self, "columns", named)

    @property
    def family(self) -> Family:
        """The public list of subspaces."""
        return Family(size=self.size, upto=self.upto, among=self.among)

    def candidates(self, dimension: int) -> int:
        """Return how many subspaces are scored, or refuse too many."""
        candidates = self.family.check(dimension)
        if self.top > candidates:
            raise ParameterError(
                f"top: {self.top} of {candidates} subspaces cannot be released; pass {candidates} or less."
            )
        return candidates

    def verifies(self, dimension: int) -> bool:
        """Return whether leads are released: there must be others to lead, and scores in records."""
        return self.verify and self.score == "mass" and self.top < self.candidates(dimension)

    def effort(self, *, n: int, dimension: int) -> Effort:
        search = search_effort(n, self.size or self.upto or dimension, self.neighbours)
        return Effort(steps=self.candidates(dimension) * _rounds(n) * search.steps, memory=4 * search.memory)

    def claim(self, facts: PublicFacts) -> Claim:
        claim = super().claim(facts)
        if self.loss.kind is not Kind.PURE or not facts.n:  # noise goes by the number of records; ε²/2 holds without
            return claim
        return replace(claim, rho=self._rho(facts.n, facts.dimension))

    def view(self, data: Any) -> Records:
        points = self.view_records(data)
        if isinstance(points, TiledPoints):
            widest = self.family.widest(points.dimension)
            if not has_room(points.n, widest):
                raise EngineMismatch(
                    points.table.engine,
                    f"subspaces of {widest} columns and {points.n:,} records",
                    f"Ask for subspaces of fewer columns, or allow for more memory with {MEMORY}",
                )
        if self.score == "count":
            require_single_coordinates(points, "score: count", "mass")
        self.candidates(points.dimension)
        return points

    def conditions(self, data: Records) -> tuple[str, ...]:
        unverified = t(
            "Nothing verifies that the names stand out: where no subspace does, they are drawn at random. Ask with "
            "`verify`."
        )
        return (*(() if self.verifies(data.dimension) else (unverified,)), *self.check_columns(data))

    # The answer

    def answer(self, data: Records, noise: Noise) -> Value:
        family = self.family.subspaces(data.columns)
        scores, unit = self.score_family(data, family)
        places = self.choose(scores, unit, self.pick_draws(data.n, data.dimension), noise)
        chosen = [family[place] for place in places]
        names = [[data.columns[column] for column in subspace] for subspace in chosen]
        if not self.counts and not self.verifies(data.dimension):
            return names
        rows: list[dict[str, Any]] = [{"columns": columns} for columns in names]
        if self.verifies(data.dimension):
            for row, lead in zip(rows, self._leads(scores, places, noise), strict=True):
                row["lead"] = lead
        if self.counts:
            for row, subspace in zip(rows, chosen, strict=True):
                row["outliers"] = self._count(data, subspace, noise)
        return rows

    def score_family(self, data: Records, family: Sequence[Subspace]) -> tuple[list[int], int]:
        """Return the exact scores as whole numbers, and by how much one record can move each of them."""
        if not isinstance(data, TiledPoints):
            coordinates = [_coordinates(data.places, subspace) for subspace in family]
            units = self._units(data.values, coordinates, list(map(len, family)))
            return self._comparable(units, family, data.n)
        units = []
        with progress.steps("scoring subspaces", len(family)) as step:
            for subspace in family:  # one at a time in memory, so that a table may be wider than memory
                values = _values_in(data, subspace)
                with progress.hush():
                    units += self._units(values, [tuple(range(values.shape[1]))], [len(subspace)])
                step()
        return self._comparable(units, family, data.n)

    def _units(self, values: Floats, coordinates: Sequence[Subspace], sizes: Sequence[int]) -> list[int]:
        units = _exact.units(
            values, coordinates, self.radius, self.neighbours, score=self.score, normalise=self.normalise, sizes=sizes
        )
        return list(map(int, units))

    def _comparable(self, units: list[int], family: Sequence[Subspace], n: int) -> tuple[list[int], int]:
        """Return scores that one record moves by the same amount, whatever the columns, and that amount."""
        if self.score == "mass":
            return units, 2 * self.neighbours  # (M)
        bounds = {size: rounding_bound(n, size, self.neighbours) for size in set(map(len, family))}
        common = math.lcm(*bounds.values())
        scaled = [unit * (common // bounds[len(subspace)]) for unit, subspace in zip(units, family, strict=True)]
        return scaled, common  # (K)

    def choose(self, scores: Sequence[int], unit: int, way: Draws, noise: Noise) -> list[int]:
        """Draw the indices of the subspaces to release, best first.  (T)"""
        return peel(CHOOSERS[way.mechanism], scores, self.top, sensitivity=unit, epsilon=way.each, noise=noise)

    def _leads(self, scores: Sequence[int], places: Sequence[int], noise: Noise) -> list[int]:
        """Return by how many records of outlier mass each name leads the median of the others, with noise.  (V)"""
        others = sorted(score for place, score in enumerate(scores) if place not in set(places))
        median, law = others[(len(others) - 1) // 2], self.lead_noise()
        noisy = (scores[place] - median + law.draw(noise) for place in places)
        return [math.floor(Fraction(units, self.neighbours) + Fraction(1, 2)) for units in noisy]

    def _count(self, data: Records, subspace: Subspace, noise: Noise) -> int:
        slack, loss = self._count_terms(data.n, data.dimension)
        values = _values_in(data, subspace)
        radius, normalise = per_column(self.radius, len(subspace), values.shape[1], normalise=self.normalise)
        steps = noisy_steps(values, radius, self.neighbours, slack, loss, noise, normalise=normalise)
        return round_to_records(Fraction(steps), data.n)

    # What each part spends

    def pick_draws(self, n: int, dimension: int) -> Draws:
        """Return the mechanism asked for, or the one that promises more.  (B)"""
        ways = [self._way(name, dimension) for name in ((self.mechanism,) if self.mechanism else CHOOSERS)]
        return max(ways, key=lambda way: self._promise(way, n, dimension))

    def _way(self, mechanism: str, dimension: int) -> Draws:
        rest = self._rest(dimension)
        return draws(mechanism, parts(rest, self.share)[0] if self.counts else rest, self.top)

    def _rest(self, dimension: int | None) -> Loss:
        """Return what is left for names and counts: all of the loss, where no lead is released.  (V)"""
        if dimension is None or not self.verifies(dimension):
            return self.loss
        return replace_amount(self.loss, self.loss.amount * (1 - VERIFIED_PART))

    @property
    def _lead_loss(self) -> Loss:
        """What each lead may spend; it needs no δ.  (V)"""
        if self.loss.kind is Kind.ZCDP:
            return Loss.zcdp(self.loss.rho * VERIFIED_PART / self.top)
        return Loss(self.loss.epsilon * VERIFIED_PART / self.top)

    def lead_noise(self) -> Additive:
        """Return the noise of each lead, which one record moves by twice as much as a score.  (V)"""
        return calibrate(4 * self.neighbours, self._lead_loss, step=Fraction(1, self.neighbours))

    def lead_reach(self) -> float:
        """Return how far the noise of all leads reaches together, with 95 %."""
        return self.lead_noise().half_width(1 - (1 - CONFIDENCE) / self.top) + 0.5

    def _count_terms(self, n: int, dimension: int) -> tuple[int, Loss]:
        """Return the degree cap and the loss of each count.  (C)"""
        loss = parts(self._rest(dimension), self.share)[1]
        slack = public_cap(n, self.neighbours, Loss(loss.amount / self.top, kind=loss.kind, delta=loss.delta))
        return slack, count_loss(loss, self.top, slack)

    def _count_noise(self, n: int, dimension: int) -> Additive:
        """Return the noise of each count.  (C)"""
        slack, loss = self._count_terms(n, dimension)
        return count_noise(slack, loss, gap=gap_steps(n, self.neighbours, slack))

    def _rho(self, n: int, dimension: int) -> Fraction:
        """Return the zCDP parameter of a pure loss: of the choice, the leads, and the counts if there are any.  (R)"""
        counted = self._count_terms(n, dimension)[1].epsilon if self.counts else Fraction()
        led = self._lead_loss.epsilon if self.verifies(dimension) else Fraction()
        return rho_of(self.pick_draws(n, dimension), self.top) + self.top * (counted**2 + led**2) / 2

    # Readings

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        candidates, intervals = self.candidates(facts.dimension), self._intervals(value, facts)
        names = [" × ".join(columns) for columns in _columns(value)]
        leads = leads_of(value)
        reach = self.lead_reach() if leads else 0.0
        counted = [
            t(
                " In {name} about {count:,} of {n:,} records are outliers, and with 97.5 % at most {high:,}.",
                name=name,
                count=count,
                n=facts.n,
                high=high,
            )
            for name, count, (_, high) in zip(names, _outliers(value), intervals, strict=False)
        ]
        return Reading(
            mechanism=f"{self.pick_draws(facts.n, facts.dimension).mechanism} by {self.score}",
            interval=None,
            text=t(
                "{headline} Chosen from {family} ({candidates:,}).{counted}",
                headline=_headline(names, leads, reach),
                family=self.family.words(facts.dimension),
                candidates=candidates,
                counted=join("", iter(counted)),
            ),
            notes=self._notes(facts.n, facts.dimension),
            quality=self._quality(facts, names, leads, reach),
            extras={"candidates": candidates, "chance": self.top / candidates}
            | ({"lead_within": reach} if leads else {})
            | ({"intervals": [list(ends) for ends in intervals]} if self.counts else {}),
        )

    def _notes(self, n: int, dimension: int) -> tuple[str, ...]:
        unproved = t("Only the upper ends of the intervals of counts are proved: the lower ends cover the noise alone.")
        counted = (unproved,) if self.counts else ()
        if self.top == self.candidates(dimension):
            return counted
        needed = math.ceil(self.needed_lead(self.pick_draws(n, dimension), n, dimension))
        if needed > n:
            note = t(
                "Nine of ten names are right where the best stand out by {needed:,} records or more, and there are "
                "{n:,}: no table is clear enough.",
                needed=needed,
                n=n,
            )
        else:
            note = t(
                "Nine of ten names are right where the best stand out by {needed:,} records or more.", needed=needed
            )
        return (note, *counted)

    def _quality(self, facts: PublicFacts, names: Sequence[str], leads: Sequence[int], reach: float) -> Quality:
        """Rate the noise of the names: mostly noise where a released lead is within its noise, as names are then
        perhaps drawn at random; else by the plan's assumption about how far the best stand out."""
        unclear = [name for name, lead in zip(names, leads, strict=False) if lead <= reach]
        if unclear:
            condition = t(
                "Not shown to stand out, and perhaps drawn at random: {names}. Spend more, or ask for fewer.",
                names=list_names(unclear),
            )
            rule = t(
                "{unclear} of {leads} leads are within their noise (±{reach:.3g} records, 95 %)",
                unclear=len(unclear),
                leads=len(leads),
                reach=reach,
            )
            return rate_errors(1.0, rule, conditions=(condition,))
        n, dimension = facts.n, facts.dimension
        wrong = 1 - self.precision(n, dimension) if self.top < self.candidates(dimension) else MODERATE[0]
        error = wrong if self._is_useful(n, dimension) else 1.0
        return rate_errors(error, self._expectation(n, dimension), conditions=())

    def _intervals(self, value: Value, facts: PublicFacts) -> list[tuple[int, int]]:
        law = self._count_noise(facts.n, facts.dimension)
        return [interval(count, facts.n, law) for count in _outliers(value)]

    def picture(self, value: Value, facts: PublicFacts) -> Bars | Ranks:
        labels = tuple(" × ".join(columns) for columns in _columns(value))
        if not self.counts:
            return Ranks(labels=labels, among=self.family.words(facts.dimension))
        counts = _outliers(value)
        return Bars(
            labels=labels,
            lengths=tuple(map(float, counts)),
            intervals=tuple((float(low), float(high)) for low, high in self._intervals(value, facts)),
            across="outliers",
            marks=tuple(f"{count:,}" for count in counts),
        )

    # Plans

    def plan(self, *, n: int, dimension: int) -> Plan:
        candidates = self.candidates(dimension)
        smallest = self.find_least_amount(lambda query: query._is_useful(n, dimension))
        headings = {
            "precision": t("right, at least"),
            "wrong": t("wrong, at most"),
            "chance": t("by chance"),
            "needed": t("90 % right from"),
            "each": t("ε of each choice"),
        }
        if self.verifies(dimension):
            headings["lead"] = t("leads, all within ±")
        if self.counts:
            headings["half_width"] = t("counts, 95 % within ±")
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={
                "n": n,
                "dimension": dimension,
                "subspaces": candidates,
                "most_comparisons": candidates * n * (n - 1) * (_rounds(n) if self.score == "mass" else 1),
            },
            chosen=self.pick_draws(n, dimension).mechanism,
            headings=headings,
            options=tuple(self._option(name, n, dimension) for name in CHOOSERS),
            useful=self._is_useful(n, dimension),
            reason=self._reason(n, dimension, smallest),
            smallest_useful_epsilon=smallest,
            curve=self.trace(lambda query: query.precision(n, dimension), AMOUNTS),
            measure=t("share of right names expected, at least"),
            scale="linear",
        )

    def _option(self, mechanism: str, n: int, dimension: int) -> Option:
        way = self._way(mechanism, dimension)
        figures = {
            "precision": self._promise(way, n, dimension),
            "wrong": 1 - self._promise(way, n, dimension),
            "chance": self.top / self.candidates(dimension),
            "needed": self.needed_lead(way, n, dimension),
            "each": float(way.each),
        }
        if self.verifies(dimension):
            figures["lead"] = self.lead_reach()
        if self.counts:
            figures["half_width"] = self.blur(n, dimension)
        notes = {
            "permute-and-flip": t("the better one at equal loss"),
            "exponential": t("each choice may spend more when δ or ρ is stated"),
        }
        return Option(mechanism=mechanism, figures=figures, note=notes[mechanism])

    def _reason(self, n: int, dimension: int, smallest: str | None) -> str:
        useful, lift = self._is_useful(n, dimension), self.lift(n, dimension)
        limit = self._expectation(n, dimension)
        if not useful and lift < NEAR_CHANCE_LIFT:
            limit = t("near chance: {limit}", limit=limit)
        elif not useful and lift < USEFUL_LIFT:
            limit = t("weak: {limit}", limit=limit)
        return self.explain_use(limit, useful, smallest)

    def _expectation(self, n: int, dimension: int) -> str:
        """Return what to expect of the names, and of the counts if there are any."""
        candidates = self.candidates(dimension)
        limit: str
        if self.top < candidates:
            limit = t(
                "{wrong} of the names are expected to be wrong, where chance would give {chance:.0f} %, if the best "
                "stand out by {lead:g} records{share}",
                wrong=_at_most(1 - self.precision(n, dimension)),
                chance=100 * (1 - self.top / candidates),
                lead=self.lead(n),
                share=" (2 %)" if self.gap is None and n * ASSUMED_LEAD >= 1 else "",
            )
        elif candidates == 1:
            limit = t("there is one subspace to choose, so its name says nothing")
        else:
            limit = t(
                "all {candidates:,} subspaces are named, so that only their order says anything, which is not forecast",
                candidates=candidates,
            )
        if not self.counts:
            return limit
        return t(
            "{limit}; the noise of each count is within ±{blur:.3g} (95 %) among {n:,} records",
            limit=limit,
            blur=self.blur(n, dimension),
            n=n,
        )

    def _is_useful(self, n: int, dimension: int) -> bool:
        """Return whether names are better than chance, and counts, if there are any, are not mostly noise."""
        is_blurred = self.counts and self.blur(n, dimension) > MAX_COUNT_NOISE * n
        return self.lift(n, dimension) >= USEFUL_LIFT and not is_blurred

    def _promise(self, way: Draws, n: int, dimension: int) -> float:
        """Return the least expected share of right names, where the best stand out by `gap`.  (E)"""
        lead = self.lead(n) / self._unit(n, dimension)
        return precision(way, candidates=self.candidates(dimension), top=self.top, lead=lead)

    def _unit(self, n: int, dimension: int) -> int:
        """Return how many records one sensitivity is, at most.  (M) (K)"""
        widest = self.family.widest(dimension)
        return 2 if self.score == "mass" else max(1, rounding_bound(n, widest, self.neighbours))

    def lead(self, n: int) -> float:
        """Return by how many records the plan lets the best stand out: no table has a lead of more than all."""
        return min(float(n), self.gap or max(1.0, float(n * ASSUMED_LEAD)))

    def needed_lead(self, way: Draws, n: int, dimension: int) -> float:
        """Return by how many records the best must stand out for nine of ten names to be right.  (E)"""
        candidates = self.candidates(dimension)
        if self.top == candidates:
            return 0.0
        return self._unit(n, dimension) * least_lead(way, candidates=candidates, top=self.top, right=RIGHT_NAMES)

    def precision(self, n: int, dimension: int) -> float:
        """Return the share of right names to expect, at least, of the mechanism that is taken."""
        return self._promise(self.pick_draws(n, dimension), n, dimension)

    def lift(self, n: int, dimension: int) -> float:
        """Return how far from chance to certainty the precision is. Of one subspace only a count says anything."""
        candidates = self.candidates(dimension)
        if self.top == candidates:
            return float(candidates > 1 or self.counts)
        chance = self.top / candidates
        return (self.precision(n, dimension) - chance) / (1 - chance)

    def blur(self, n: int, dimension: int) -> float:
        """Return how far the noise of a count reaches, with 95 %."""
        return self._count_noise(n, dimension).half_width(CONFIDENCE)

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=0.5, size=1, top=2, loss=Loss("1.6"))


def leads_of(value: Value) -> list[int]:
    """Return the released leads, if there are any."""
    return [row["lead"] for row in value if isinstance(row, dict) and "lead" in row]


def _columns(value: Value) -> list[list[str]]:
    return [row["columns"] if isinstance(row, dict) else row for row in value]


def _outliers(value: Value) -> list[int]:
    return [row["outliers"] for row in value if isinstance(row, dict) and "outliers" in row]


def _coordinates(places: Sequence[Subspace], subspace: Subspace) -> Subspace:
    """Return the coordinates of these columns: a column of labels may have several."""
    return tuple(place for column in subspace for place in places[column])


def _values_in(points: Records, subspace: Subspace) -> Floats:
    """Return the coordinates of all records in the columns of a subspace."""
    if isinstance(points, TiledPoints):
        return points.subspace(points.columns[column] for column in subspace).gather()
    return points.values[:, list(_coordinates(points.places, subspace))]


def _rounds(n: int) -> int:
    """Return how often a list of neighbours can be made longer by a factor of 4, and the two before."""
    return 2 + math.ceil(math.log(max(n, 2), 4))


def _headline(names: Sequence[str], leads: Sequence[int], reach: float) -> str:
    """Return the names, and which of them stand out from the median of the others by more than noise explains."""
    named = ", then ".join(names)
    if not leads:
        return t("Drawn for their outliers: {names}.", names=named)
    clear = [name for name, lead in zip(names, leads, strict=True) if lead > reach]
    which = (
        t("standing out from the median of the others: {names}", names=", ".join(clear))
        if clear
        else t("none is shown to stand out")
    )
    return t(
        "Drawn for their outliers: {names}; {which}. Leads in records of outlier mass: {leads} (±{reach:.3g}, 95 %).",
        names=named,
        which=which,
        leads=", ".join(f"{name} {lead:,}" for name, lead in zip(names, leads, strict=True)),
        reach=reach,
    )


def _at_most(share: float) -> str:
    """Return a bound in words: rounded up, and never to none.

    >>> _at_most(0.7549), _at_most(0.0004), _at_most(0.7)
    ('at most 76 %', 'under 1 %', 'at most 70 %')
    """
    if 0 <= share < 0.01:
        return t("under 1 %")
    return t("at most {percent} %", percent=math.ceil(100 * share - 1e-9))
