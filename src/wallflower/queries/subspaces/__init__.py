"""In which attributes do the outliers show?

Of a public family of subspaces (column sets), the `top` with the most outliers are released, in order [Oka15]. Each is
scored by its outlier mass, which one record moves by at most 2 whatever the columns; one after another is chosen at
random, the higher its score the likelier. A quarter of the loss tells by how much each name leads the median of the
others, since names alone say nothing where all subspaces are alike. With `counts`, the number of outliers in each of
them follows, and the whole is one question with one charge.

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

from wallflower.data import Points, TiledPoints
from wallflower.errors import ParameterError
from wallflower.machine.lazy import Lazy
from wallflower.mechanisms import Additive, calibrate, peel
from wallflower.neighbours.limits import (
    SCALE_HELP,
    check_loss,
    check_neighbours,
    check_radius,
    check_scale,
    per_column,
    require_single_coordinates,
    rounding_bound,
    scale_notes,
    search_effort,
    view_all,
)
from wallflower.neighbours.noisy_count import SURE, count_noise, interval, noisy_steps, public_cap, whole
from wallflower.noise import Noise
from wallflower.privacy import Kind, Loss
from wallflower.privacy import exact as exactly
from wallflower.progress import Effort
from wallflower.queries.subspaces import words
from wallflower.queries.subspaces.by_tiles import Floats, require_room, score_in_turn, values_in
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
from wallflower.queries.subspaces.words import RIGHT
from wallflower.query import Option, Plan, PublicFacts, Query, Reading, ReleaseLike, Status, least_amount, settle
from wallflower.query.accuracy import check_distances
from wallflower.query.picture import Bars, Ranks
from wallflower.units import Claim

if TYPE_CHECKING:
    import wallflower.queries.subspaces.exact as _exact
else:
    _exact = Lazy("wallflower.queries.subspaces.exact")

MOST: Final = 100  # choices share the loss: more of them would all be near chance
VERIFIED: Final = Fraction(1, 4)  # of the loss, for leads
STANDS_OUT: Final = Fraction(1, 50)  # the share of the records by which a plan lets the best stand out
EPSILONS: Final = ("0.1", "0.2", "0.4", "0.8", "1.2", "1.6", "2.4", "3.2", "6.4", "12.8")
SCORES: Final = ("mass", "count")

Value = list[list[str]] | list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subspaces(Query[Points | TiledPoints, Value]):
    """Find the column sets in which most outliers show.

    >>> Subspaces(neighbours=3, radius=0.13, size=1, top=2, loss=Loss("1.6")).cost()
    Loss(ε=8/5)
    """

    kind: ClassVar[str] = "subspaces"
    label: ClassVar[str] = "outlier-subspaces/1"
    question: ClassVar[str] = "In which attributes do the outliers show?"
    proof: ClassVar[str] = "queries/subspaces/proof.md"
    status: ClassVar[Status] = Status.WHOLE_NUMBERS
    by_tiles: ClassVar[bool] = True

    neighbours: int = field(metadata={"help": "with fewer than this many others near, a record is an outlier"})
    radius: float = field(
        metadata={
            "help": "records at most this far apart (root of the mean squared difference) are near",
            "span": "radius",
        }
    )
    loss: Loss = field(metadata={"help": "privacy loss to spend in all, as text"})
    top: int = field(default=1, metadata={"help": "how many subspaces to release, best first; they share the loss"})
    size: int | None = field(default=None, metadata={"help": "look at all subspaces of this many columns"})
    upto: int | None = field(
        default=None, metadata={"help": "look at all subspaces of up to this many columns; default: at all there are"}
    )
    among: tuple[tuple[str, ...], ...] | None = field(default=None, metadata={"help": "look at these subspaces only"})
    columns: tuple[str, ...] | None = field(
        default=None,
        metadata={"help": "the columns subspaces are made of; all number columns unless given", "names": "measured"},
    )
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
    normalise: bool = field(
        default=True, metadata={"help": "distances per column (as in Okada et al. 2015) rather than plain Euclid"}
    )
    scale: int | ReleaseLike | None = field(default=None, metadata={"help": SCALE_HELP})

    def __post_init__(self) -> None:
        settle(self)
        check_neighbours(self.neighbours)
        check_radius(self.radius)
        check_scale(self.scale)
        check_loss(self.kind, self.loss)
        check_mechanism(self.mechanism)
        object.__setattr__(self, "share", exactly(self.share, "share"))
        if not 0 < self.share < 1:
            raise ParameterError(f"share: {self.share} is not between 0 and 1; 1/2 gives choice and counts the same.")
        if isinstance(self.top, bool) or not isinstance(self.top, int) or not 1 <= self.top <= MOST:
            raise ParameterError(f"top: {self.top!r} is not a whole number from 1 to {MOST}; 1 to 4 suit most losses.")
        if self.score not in SCORES:
            raise ParameterError(f"score: {self.score!r} is not known; it is one of {', '.join(SCORES)}.")
        if self.gap is not None and not 0 < self.gap < math.inf:
            raise ParameterError(
                f"gap: {self.gap!r} is not a positive number of records; leave it out for 2 % of them."
            )
        self.family  # noqa: B018 - refuses what makes no family
        if self.among is not None:
            named = tuple(dict.fromkeys(name for names in self.among for name in names))
            if self.columns not in (None, named):
                raise ParameterError("among, columns: the subspaces named bring their columns. Leave columns out.")
            object.__setattr__(self, "columns", named)

    @property
    def family(self) -> Family:
        return Family(size=self.size, upto=self.upto, among=self.among)

    def cost(self) -> Loss:
        return self.loss

    def effort(self, *, n: int, dimension: int) -> Effort:
        each = search_effort(n, self.size or self.upto or dimension, self.neighbours)
        return Effort(steps=self.candidates(dimension) * _rounds(n) * each.steps, memory=4 * each.memory)

    def claim(self, facts: PublicFacts) -> Claim:
        stated = super(Subspaces, self).claim(facts)
        if self.loss.kind is not Kind.PURE or not facts.n:  # noise goes by the number of records; ε²/2 holds without
            return stated
        return replace(stated, rho=self._rho(facts.n, facts.dimension))

    def view(self, data: Any) -> Points | TiledPoints:
        points = view_all(data, self.columns, self.neighbours)
        if isinstance(points, TiledPoints):
            require_room(points, self.family)
        if self.score == "count":
            require_single_coordinates(points, "score: count", "mass")
        self.candidates(points.dimension)
        return points

    def conditions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        unverified = () if self.verifies(data.dimension) else (words.UNVERIFIED,)
        return (*unverified, *check_distances(data, self.scale))

    def cautions(self, data: Points | TiledPoints) -> tuple[str, ...]:
        return scale_notes(self.scale)

    def answer(self, data: Points | TiledPoints, noise: Noise) -> Value:
        family = self.family.subspaces(data.columns)
        scores, unit = self.score_family(data, family)
        places = self.choose(scores, unit, self.pick_draws(data.n, data.dimension), noise)
        chosen = [family[place] for place in places]
        names = [[data.columns[column] for column in subspace] for subspace in chosen]
        if not self.counts and not self.verifies(data.dimension):
            return names
        rows: list[dict[str, Any]] = [{"columns": here} for here in names]
        if self.verifies(data.dimension):
            for row, lead in zip(rows, self._leads(scores, places, noise), strict=True):
                row["lead"] = lead
        if self.counts:
            for row, subspace in zip(rows, chosen, strict=True):
                row["outliers"] = self._count(data, subspace, noise)
        return rows

    def verifies(self, dimension: int) -> bool:
        """Whether leads are released: there must be others to lead, and scores in records."""
        return self.verify and self.score == "mass" and self.top < self.candidates(dimension)

    def _leads(self, scores: Sequence[int], places: Sequence[int], noise: Noise) -> list[int]:
        """By how many records of outlier mass each named subspace leads the median of the others, with noise.  (V)"""
        others = sorted(score for place, score in enumerate(scores) if place not in set(places))
        median, law = others[(len(others) - 1) // 2], self.lead_noise()
        noisy = (scores[place] - median + law.draw(noise) for place in places)
        return [math.floor(Fraction(units, self.neighbours) + Fraction(1, 2)) for units in noisy]

    def lead_noise(self) -> Additive:
        """The noise of each lead, which one record moves by twice as much as a score.  (V)"""
        return calibrate(4 * self.neighbours, self._lead_loss, step=Fraction(1, self.neighbours))

    @property
    def _lead_loss(self) -> Loss:
        """What each lead may spend; it needs no δ.  (V)"""
        if self.loss.kind is Kind.ZCDP:
            return Loss.zcdp(self.loss.rho * VERIFIED / self.top)
        return Loss(self.loss.epsilon * VERIFIED / self.top)

    def _rest(self, dimension: int | None) -> Loss:
        """What is left for names and counts: all of the loss, where no lead is released.  (V)"""
        loss = self.loss
        if dimension is None or not self.verifies(dimension):
            return loss
        amount = loss.amount * (1 - VERIFIED)
        return Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours)

    def lead_reach(self) -> float:
        """How far the noise of all leads reaches together, 95 times of 100."""
        return self.lead_noise().half_width(1 - (1 - SURE) / self.top) + 0.5

    def reading(self, value: Value, facts: PublicFacts) -> Reading:
        candidates = self.candidates(facts.dimension)
        named = [" × ".join(columns) for columns in _columns(value)]
        counted = zip(named, _outliers(value), self._intervals(value, facts), strict=False)
        more = "".join(
            f" In {name} about {count:,} of {facts.n:,} records are outliers, and with 97.5 % at most {high:,}."
            for name, count, (_, high) in counted
        )
        where, leads = self.family.words(facts.dimension), leads_of(value)
        reach = self.lead_reach() if leads else 0.0
        return Reading(
            mechanism=f"{self.pick_draws(facts.n, facts.dimension).mechanism} by {self.score}",
            interval=None,
            words=f"{words.headline(named, leads, reach)} Chosen from {where} ({candidates:,}).{more}",
            notes=words.notes(self, facts.n, facts.dimension),
            quality=words.quality(self, facts.n, facts.dimension, leads, reach, words.unclear(named, leads, reach)),
            extras={"candidates": candidates, "chance": self.top / candidates}
            | ({"lead_within": reach} if leads else {})
            | ({"intervals": [list(ends) for ends in self._intervals(value, facts)]} if self.counts else {}),
        )

    def picture(self, value: Value, facts: PublicFacts) -> Bars | Ranks:
        labels = tuple(" × ".join(columns) for columns in _columns(value))
        if not self.counts:
            return Ranks(labels=labels, among=self.family.words(facts.dimension))
        found = _outliers(value)
        return Bars(
            labels=labels,
            lengths=tuple(map(float, found)),
            intervals=tuple((float(low), float(high)) for low, high in self._intervals(value, facts)),
            across="outliers",
            marks=tuple(f"{count:,}" for count in found),
        )

    def plan(self, *, n: int, dimension: int) -> Plan:
        candidates = self.candidates(dimension)
        options = tuple(self._option(name, n, dimension) for name in CHOOSERS)
        chosen = self.pick_draws(n, dimension).mechanism
        smallest = least_amount(lambda amount: words.is_useful(self._at(amount), n, dimension))
        return Plan(
            query=self.kind,
            cost=self.cost(),
            facts={
                "n": n,
                "dimension": dimension,
                "subspaces": candidates,
                "most_comparisons": candidates * n * (n - 1) * (_rounds(n) if self.score == "mass" else 1),
            },
            chosen=chosen,
            headings=words.HEADINGS
            | (words.LEAD_HEADINGS if self.verifies(dimension) else {})
            | (words.COUNT_HEADINGS if self.counts else {}),
            options=options,
            useful=words.is_useful(self, n, dimension),
            reason=words.reason(self, n, dimension, smallest),
            smallest_useful_epsilon=smallest,
            curve=tuple((float(e), self._at(e).precision(n, dimension)) for e in EPSILONS),
            measure="share of right names expected, at least",
            scale="linear",
        )

    @classmethod
    def example(cls) -> Self:
        return cls(neighbours=5, radius=0.5, size=1, top=2, loss=Loss("1.6"))

    def candidates(self, dimension: int) -> int:
        """How many subspaces are looked at, or a refusal."""
        candidates = self.family.check(dimension)
        if self.top > candidates:
            raise ParameterError(
                f"top: {self.top} of {candidates} subspaces cannot be released; pass {candidates} or less."
            )
        return candidates

    def score_family(self, data: Points | TiledPoints, family: Sequence[Subspace]) -> tuple[list[int], int]:
        """The exact scores as whole numbers, and by how much one record can move each of them."""
        if isinstance(data, TiledPoints):
            return self._comparable(score_in_turn(data, family, self._units), family, data.n)
        places = data.places
        found = self._units(data.values, [_places(places, here) for here in family], list(map(len, family)))
        return self._comparable(found, family, data.n)

    def _units(self, values: Floats, wide: Sequence[Subspace], sizes: Sequence[int]) -> list[int]:
        found = _exact.units(
            values, wide, self.radius, self.neighbours, score=self.score, normalise=self.normalise, sizes=sizes
        )
        return list(map(int, found))

    def choose(self, scores: Sequence[int], unit: int, made: Draws, noise: Noise) -> list[int]:
        """The places of the subspaces to release, best first.  (T)"""
        chooser = CHOOSERS[made.mechanism]
        return peel(chooser, scores, self.top, sensitivity=unit, epsilon=made.each, noise=noise)

    def pick_draws(self, n: int, dimension: int) -> Draws:
        """The mechanism asked for, or the one that promises more.  (B)"""
        ways = [self._way(name, dimension) for name in ((self.mechanism,) if self.mechanism else CHOOSERS)]
        return max(ways, key=lambda way: self._promise(way, n, dimension))

    def _comparable(self, found: list[int], family: Sequence[Subspace], n: int) -> tuple[list[int], int]:
        """Scores as whole numbers that one record moves by the same amount, whatever the columns."""
        if self.score == "mass":
            return found, 2 * self.neighbours  # (M)
        bounds = {size: rounding_bound(n, size, self.neighbours) for size in set(map(len, family))}
        common = math.lcm(*bounds.values())
        return [units * (common // bounds[len(here)]) for units, here in zip(found, family, strict=True)], common  # (K)

    def _count(self, data: Points | TiledPoints, subspace: Subspace, noise: Noise) -> int:
        slack, loss = self._count_terms(data.n, data.dimension)
        values = values_in(data, subspace)
        radius, normalise = per_column(self.radius, len(subspace), values.shape[1], normalise=self.normalise)
        steps = noisy_steps(values, radius, self.neighbours, slack, loss, noise, normalise=normalise)
        return whole(Fraction(steps), data.n)

    def _count_terms(self, n: int, dimension: int) -> tuple[int, Loss]:
        """The slack and the loss of each count.  (C)"""
        loss = parts(self._rest(dimension), self.share)[1]
        slack = public_cap(n, self.neighbours, Loss(loss.amount / self.top, kind=loss.kind, delta=loss.delta))
        return slack, count_loss(loss, self.top, slack)

    def _rho(self, n: int, dimension: int) -> Fraction:
        """What a pure loss is as a zero-concentrated one: the choice, and the counts if there are any.  (R)"""
        counted = self._count_terms(n, dimension)[1].epsilon if self.counts else Fraction()
        led = self._lead_loss.epsilon if self.verifies(dimension) else Fraction()
        return rho_of(self.pick_draws(n, dimension), self.top) + self.top * (counted**2 + led**2) / 2

    def _intervals(self, value: Value, facts: PublicFacts) -> list[tuple[int, int]]:
        n = facts.n
        slack, loss = self._count_terms(n, facts.dimension)
        law = count_noise(slack, loss)
        return [interval(count, n, law) for count in _outliers(value)]

    def _way(self, mechanism: str, dimension: int) -> Draws:
        rest = self._rest(dimension)
        return draws(mechanism, parts(rest, self.share)[0] if self.counts else rest, self.top)

    def _promise(self, way: Draws, n: int, dimension: int) -> float:
        """The least expected share of right names, where the best stand out by `gap`.  (E)"""
        lead = self.lead(n) / self._unit(n, dimension)
        return precision(way, candidates=self.candidates(dimension), top=self.top, lead=lead)

    def _unit(self, n: int, dimension: int) -> int:
        """How many records one sensitivity is, at most.  (M) (K)"""
        widest = self.family.widest(dimension)
        return 2 if self.score == "mass" else max(1, rounding_bound(n, widest, self.neighbours))

    def lead(self, n: int) -> float:
        """By how many records the best are taken to stand out: no table has a lead of more than all of them."""
        return min(float(n), self.gap or max(1.0, float(n * STANDS_OUT)))

    def needed_lead(self, way: Draws, n: int, dimension: int) -> float:
        """By how many records the best must stand out for `RIGHT` of the names to be right.  (E)"""
        candidates = self.candidates(dimension)
        if self.top == candidates:
            return 0.0
        return self._unit(n, dimension) * least_lead(way, candidates=candidates, top=self.top, right=RIGHT)

    def precision(self, n: int, dimension: int) -> float:
        """The share of right names to expect, at least, of the mechanism that is taken."""
        return self._promise(self.pick_draws(n, dimension), n, dimension)

    def lift(self, n: int, dimension: int) -> float:
        """How far from chance to certainty the precision is. Of one subspace only a count tells anything."""
        candidates = self.candidates(dimension)
        if self.top == candidates:
            return float(candidates > 1 or self.counts)
        chance = self.top / candidates
        return (self.precision(n, dimension) - chance) / (1 - chance)

    def blur(self, n: int, dimension: int) -> float:
        """How far the noise of a count reaches, 95 times of 100."""
        return count_noise(*self._count_terms(n, dimension)).half_width(SURE)

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
        return Option(mechanism=mechanism, figures=figures, note=words.MECHANISM_NOTES[mechanism])

    def _at(self, amount: str) -> Self:
        loss = self.loss
        return replace(self, loss=Loss(amount, delta=loss.delta, kind=loss.kind, neighbours=loss.neighbours))


def _places(places: Sequence[Subspace], subspace: Subspace) -> Subspace:
    """The coordinates of these columns: labels may have several."""
    return tuple(place for column in subspace for place in places[column])


def _columns(value: Value) -> list[list[str]]:
    return [item["columns"] if isinstance(item, dict) else item for item in value]


def _outliers(value: Value) -> list[int]:
    return [item["outliers"] for item in value if isinstance(item, dict) and "outliers" in item]


def leads_of(value: Value) -> list[int]:
    """The released leads, if there are any."""
    return [item["lead"] for item in value if isinstance(item, dict) and "lead" in item]


def _rounds(n: int) -> int:
    """How often a list of neighbours can be made longer by a factor of 4, and the two before."""
    return 2 + math.ceil(math.log(max(n, 2), 4))
