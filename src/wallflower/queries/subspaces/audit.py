"""Attacks on the choice of subspaces: the mechanisms we release, and broken ones that an audit has to catch.

The broken ones are mistakes that were made in print, or nearly by us. They live here, named broken, and no release can
reach them: nothing but an audit imports this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import Any, Final

import numpy as np

from wallflower.audit import Attack, Finding, Floats, Sampler, World, audit, audit_bound, audit_exact
from wallflower.audit.answers import (
    Accounts,
    Case,
    LawCheck,
    audit_cases,
    bounded_range,
    gaussian,
    laplace,
    permute_and_flip,
    permute_and_flip_at_rho,
)
from wallflower.audit.answers import (
    exponential as exponential_part,
)
from wallflower.audit.calibrations import attack_conversion
from wallflower.audit.laws import Law, audit_law, audit_parts, law_of, loss_between, range_between
from wallflower.data import Points
from wallflower.mechanisms import Additive, exponential, peel
from wallflower.neighbours.limits import rounding_bound
from wallflower.noise import Noise, system_noise
from wallflower.privacy import Kind, Loss, zcdp_of_epsilon
from wallflower.queries.subspaces import Subspaces
from wallflower.queries.subspaces.choice import Draws, parts
from wallflower.queries.subspaces.exact import scores

TRIALS, QUICK_TRIALS = 20_000, 2_000
FAR_DISTANCE: Final = 1000.0
PURE, APPROXIMATE, CONCENTRATED = Loss("1"), Loss("1", delta="1/100"), Loss.zcdp("1/2")
COLUMNS: Final = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Neighbouring tables, the replaced record first, and the columns in which that record finds company only in the
    second table, so that they are chosen less often there; in the others it leaves some."""

    first: list[tuple[float, ...]]
    second: list[tuple[float, ...]]
    falling: frozenset[int]


def _turned_pair(copies: int) -> Pair:
    """From a tie, the mass of one half of the columns rises by 2 and that of the other half falls by 2."""
    rest = [
        (0.0, FAR_DISTANCE),
        (FAR_DISTANCE, 0.0),
        (3 * FAR_DISTANCE, 3 * FAR_DISTANCE),
        (4 * FAR_DISTANCE, 3 * FAR_DISTANCE),
    ]
    tables = ([(left,) * copies + (right,) * copies for left, right in [mover, *rest]] for mover in _MOVERS)
    return Pair(first=next(tables), second=next(tables), falling=frozenset(range(copies, 2 * copies)))


_MOVERS: Final = ((0.5, 2 * FAR_DISTANCE), (2 * FAR_DISTANCE, 0.5))
_ENDS: Final = [(-1.0,) * COLUMNS, (1.0,) * COLUMNS]
TURNED, TURNED_TWICE = _turned_pair(1), _turned_pair(2)
HUB: Final = Pair(  # between two others it carries them both: 2k + 1 outliers at k = 1, in all columns but one
    first=[(FAR_DISTANCE, *(0.0,) * (COLUMNS - 1)), *_ENDS],
    second=[(0.0, *(FAR_DISTANCE,) * (COLUMNS - 1)), *_ENDS],
    falling=frozenset({0}),
)
TIED: Final = Pair(  # the same from a tie: in one column others stand apart, in the other together
    first=[
        (FAR_DISTANCE, 0.0),
        (-1.0, -1.0),
        (1.0, 1.0),
        *((4 * FAR_DISTANCE, place * FAR_DISTANCE) for place in (5, 6, 7)),
    ],
    second=[
        (0.0, FAR_DISTANCE),
        (-1.0, -1.0),
        (1.0, 1.0),
        *((4 * FAR_DISTANCE, place * FAR_DISTANCE) for place in (5, 6, 7)),
    ],
    falling=frozenset({0}),
)
_BESIDE: Final = [(-1.0, -1.0), (1.0, 1.0), *((4 * FAR_DISTANCE, place * FAR_DISTANCE) for place in (5, 6, 7, 7))]
CORNERS: Final = World(tuple((float(x), float(y)) for x in (0, 1) for y in (0, 1, 2)), 4)
LINE: Final = World(tuple((float(x), 0.0) for x in range(5)), 4)


BOTH: Final = Pair(  # one column falls from a tie and its outliers go, in the other it is the reverse
    first=[(FAR_DISTANCE, 0.0), *_BESIDE],
    second=[(0.0, FAR_DISTANCE), *_BESIDE],
    falling=frozenset({0}),
)


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack, mechanism by mechanism: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _attack_choices(quick: bool) -> Iterator[Finding]:
    for name, (query, pair) in SOUND.items():
        yield audit_law(*_laws(query, pair), claimed=query.loss, name=name)
    for name, (query, pair) in list(PEELED.items())[: 1 if quick else None]:
        yield audit_law(*_laws(query, pair, _choose_by_peeling), claimed=query.loss, name=name)
    for name, query in COMPOSED.items():
        yield audit_parts(_choices(query), claimed=_whole(query.loss), name=f"{name}, each")
    for name, (query, pair) in list(DRAWN.items())[: 1 if quick else None]:
        trials = QUICK_TRIALS if quick else TRIALS
        yield audit(*_samplers(query, pair), claimed=query.loss, trials=trials, name=f"{name}, by draws")


def _broken_choices(quick: bool) -> Iterator[Finding]:
    for name, (query, pair, broken) in BROKEN.items():
        yield audit_law(
            *_laws(query, pair, partial(_choose_by, choose=broken)),
            claimed=query.loss,
            name=f"broken: {name}",
            expected=True,
        )


# Several choices, and counts: parts that add up


def _whole(loss: Loss) -> float:
    """What all parts may be: an ε, or in squares a ρ."""
    if loss.kind is Kind.APPROXIMATE:
        return zcdp_of_epsilon(float(loss.epsilon), float(loss.delta))
    return float(loss.amount)


def _choices(query: Subspaces) -> dict[str, float]:
    """What each choice spends, measured at the first, where one column rises from a tie and the other falls."""
    first, second = (law_of(partial(_first_columns, query, _points(table))) for table in (TURNED.first, TURNED.second))
    spent = _MEASURES[query.mechanism or "", query.loss.kind](first, second)
    return {f"choice {place}": spent for place in range(1, query.top + 1)}


def _first_columns(query: Subspaces, data: Points, noise: Noise) -> str:
    found: Any = query.answer(data, noise)[0]
    return str(found["columns"] if isinstance(found, dict) else found)


def _plain(first: Law, second: Law) -> float:
    return loss_between(first, second, Loss("1"))


_MEASURES: Final[dict[tuple[str, Kind], Callable[[Law, Law], float]]] = {
    ("permute-and-flip", Kind.PURE): _plain,
    ("exponential", Kind.PURE): range_between,
    ("permute-and-flip", Kind.ZCDP): lambda first, second: _plain(first, second) ** 2 / 2,
    ("exponential", Kind.ZCDP): lambda first, second: range_between(first, second) ** 2 / 8,
    ("exponential", Kind.APPROXIMATE): lambda first, second: range_between(first, second) ** 2 / 8,
}


def _attack_counts(quick: bool) -> Iterator[Finding]:
    """A choice and then a count, and two counts after two choices, where one pair shows all of it."""
    for name, query in COUNTED.items():
        yield audit_law(*_counted_laws(query), claimed=query.loss, name=name)
    for name, query in COUNTED_IN_PARTS.items():
        counts = parts(query.loss, query.share)[1]
        first, second = _count_laws(query)
        spent = {"a count": loss_between(first, second, counts)}
        yield audit_parts(spent, claimed=float(counts.amount), name=f"{name}, a count")
    query = COUNTED["mass, then a count"]
    short = replace(query, loss=Loss(query.loss.epsilon * Fraction(10, 9)))
    name = "broken: a tenth short, mass, then a count"
    yield audit_law(*_counted_laws(short), claimed=query.loss, name=name, expected=True)


def _counted_laws(query: Subspaces) -> list[Law]:
    return [law_of(partial(_sides, query, _points(table))) for table in (BOTH.first, BOTH.second)]


def _attack_leads(quick: bool) -> Iterator[Finding]:
    """A name and its lead: at a tie the choice spends three quarters, and the lead moves by twice a score.  (V)"""
    query = _query(PURE, verify=True)
    yield audit_law(*_lead_laws(query), claimed=query.loss, name="mass, then its lead")
    for name, broken in BROKEN_LEADS.items():
        found = _lead_laws(query, broken)
        yield audit_law(*found, claimed=query.loss, name=f"broken: {name}", expected=True)


def _lead_laws(query: Subspaces, make: Callable[[Subspaces], Subspaces] = lambda query: query) -> list[Law]:
    return [law_of(partial(_lead_sides, make(query), _points(table))) for table in (TURNED.first, TURNED.second)]


def _lead_sides(query: Subspaces, data: Points, noise: Noise) -> Any:
    """The name, and on which side of where the tables differ its lead is."""
    (found,) = query.answer(data, noise)
    assert isinstance(found, dict)
    return str(found["columns"]), found["lead"] >= _LEADS[found["columns"][0]]


_LEADS: Final = {"x1": 4, "x2": 0}  # from a tie in the first table, x1 leads by 4 in the second, and x2 by -4


class BrokenShortLead(Subspaces):
    """A lead with nine tenths of its noise."""

    __slots__ = ()

    def lead_noise(self) -> Additive:
        sound = super().lead_noise()
        return replace(sound, scale=sound.scale * Fraction(9, 10))


class BrokenMedianLead(Subspaces):
    """A lead as if the median did not move."""

    __slots__ = ()

    def lead_noise(self) -> Additive:
        sound = super().lead_noise()
        return replace(sound, scale=sound.scale / 2)


class BrokenTwiceLead(Subspaces):
    """A lead beside names that spend the whole loss."""

    __slots__ = ()

    def _rest(self, dimension: int | None) -> Loss:
        return self.loss


def _as(kind: type[Subspaces]) -> Callable[[Subspaces], Subspaces]:
    return lambda query: kind(**{item.name: getattr(query, item.name) for item in fields(query)})


BROKEN_LEADS: Final[dict[str, Callable[[Subspaces], Subspaces]]] = {
    "a lead a tenth short": _as(BrokenShortLead),
    "a lead whose median stands still": _as(BrokenMedianLead),
    "a lead that the names have spent": _as(BrokenTwiceLead),
}


def _count_laws(query: Subspaces) -> list[Law]:
    """The laws of the count alone: there is but one column to choose."""
    tables = ([(left,) for left, _ in table] for table in (BOTH.first, BOTH.second))
    return [law_of(partial(_count, query, _points(table))) for table in tables]


def _count(query: Subspaces, data: Points, noise: Noise) -> int:
    found: Any = query.answer(data, noise)
    return int(found[0]["outliers"])


def _sides(query: Subspaces, data: Points, noise: Noise) -> Any:
    return _side_of(query.answer(data, noise))


_OUTLIERS: Final = {"x1": 3, "x2": 3}  # outliers: in the first table of BOTH there are 3 and 2, in the second 0 and 5


def _query(loss: Loss, **details: Any) -> Subspaces:
    usual: dict[str, Any] = {"neighbours": 1, "radius": 1.0, "size": 1, "top": 1, "verify": False}
    return Subspaces(**usual | details, loss=loss)


def _points(records: Any) -> Points:
    return Points.from_array(np.array(records), name="made-up")


Answer = Callable[[Subspaces, Points], Callable[[Noise], Any]]
Choose = Callable[[Subspaces, list[int], int, Draws, Noise], list[int]]


def _laws(query: Subspaces, pair: Pair, answer: Answer | None = None) -> list[Law]:
    return [law_of((answer or _answer)(query, _points(table))) for table in (pair.first, pair.second)]


def _answer(query: Subspaces, data: Points) -> Callable[[Noise], Any]:
    """The answer itself."""
    return lambda noise: str(query.answer(data, noise))


def _choose_by(query: Subspaces, data: Points, choose: Choose) -> Callable[[Noise], Any]:
    """What is chosen, from scores computed once."""
    scored, unit = query.score_family(data, query.family.subspaces(data.columns))
    made = query.pick_draws(data.n, data.dimension)
    return lambda noise: tuple(choose(query, scored, unit, made, noise))


def _choose_by_peeling(query: Subspaces, data: Points) -> Callable[[Noise], Any]:
    return _choose_by(query, data, Subspaces.choose)


def _samplers(query: Subspaces, pair: Pair) -> tuple[Sampler, Sampler]:
    return tuple(_sampler(query, table, pair.falling) for table in (pair.first, pair.second))  # type: ignore[return-value]


def _sampler(query: Subspaces, records: Any, falling: frozenset[int]) -> Sampler:
    """Where the falling columns stand among the released ones, drawn again and again from scores computed once."""
    draw = _choose_by_peeling(query, _points(records))

    def one() -> int:
        return sum(1 << (query.top - at) for at, place in enumerate(draw(system_noise())) if place in falling)

    return lambda size: np.array([one() for _ in range(size)])


# The exact answer


def _oracles() -> Iterator[Finding]:
    for score, brute in _BRUTE.items():
        for name, world in (("corners", CORNERS), ("line", LINE)):
            for neighbours in (1, 2):
                exact = partial(_scores, score=score, neighbours=neighbours)
                plain = partial(_brute, brute, neighbours=neighbours)
                yield audit_exact(exact, plain, world.arrays(), name=f"exact {score}, k = {neighbours}, {name}")
    exact, name = partial(_scores, score="count", neighbours=1), "broken: exact mass, whole records only"
    yield audit_exact(exact, partial(_brute, _brute_mass, neighbours=1), LINE.arrays(), name=name, expected=True)


_FAMILY: Final = [(0,), (1,), (0, 1)]


def _scores(values: Floats, score: str, neighbours: int) -> list[float]:
    found = [scores(values, [each], 1.0, neighbours, score=score, normalise=False)[0] for each in _FAMILY]
    return [float(np.round(one * neighbours)) for one in found]


def _brute(score: Callable[[list[list[bool]], int], int], values: Floats, neighbours: int) -> list[float]:
    """Every subspace by the definition, in units of 1/neighbours, who is near whom from plain distances."""
    found = []
    for family in _FAMILY:
        rows = values[:, list(family)].tolist()
        near = [[i != j and math.dist(one, other) <= 1.0 for j, other in enumerate(rows)] for i, one in enumerate(rows)]
        found.append(float(score(near, neighbours)))
    return found


def _brute_count(near: list[list[bool]], neighbours: int) -> int:
    return neighbours * sum(sum(row) < neighbours for row in near)


def _brute_mass(near: list[list[bool]], neighbours: int) -> int:
    """N·k less the largest flow, which is the least cut: tried over every set of givers."""
    n = len(near)
    cuts = (
        neighbours * (n - size) + sum(min(neighbours, sum(near[i][j] for i in givers)) for j in range(n))
        for size in range(n + 1)
        for givers in combinations(range(n), size)
    )
    return n * neighbours - min(cuts)


_BRUTE: Final = {"count": _brute_count, "mass": _brute_mass}


# Broken, on purpose


def _broken_printed(query: Subspaces, scored: list[int], unit: int, made: Draws, noise: Noise) -> list[int]:
    """Algorithm 3 of [Oka15]: exp(ε u / h), h times, for scores u that one record moves by 1. That is 2ε."""
    each = 2 * query.loss.epsilon / query.top
    return peel(exponential, scored, query.top, sensitivity=unit, epsilon=each, noise=noise)


def _broken_short(query: Subspaces, scored: list[int], unit: int, made: Draws, noise: Noise) -> list[int]:
    """Nine tenths of the noise."""
    return query.choose(scored, unit, replace(made, each=made.each * Fraction(10, 9)), noise)


def _broken_unshared(query: Subspaces, scored: list[int], unit: int, made: Draws, noise: Noise) -> list[int]:
    """Every choice spends the whole loss."""
    return query.choose(scored, unit, replace(made, each=query.loss.epsilon), noise)


def _broken_sensitivity(query: Subspaces, scored: list[int], unit: int, made: Draws, noise: Noise) -> list[int]:
    """The mass as if one record moved it by 1: what it takes is counted, what it gives is not."""
    return query.choose(scored, unit // 2, made, noise)


def _broken_unscaled(query: Subspaces, scored: list[int], unit: int, made: Draws, noise: Noise) -> list[int]:
    """Counts as if one record moved them by 1."""
    return query.choose(scored, unit // rounding_bound(10**9, 1, query.neighbours), made, noise)


# Bounds


def _bounds() -> Iterator[Finding]:
    for name, world in (("corners", CORNERS), ("line", LINE)):
        for score, size in ((score, size) for score in _BRUTE for size in (1, 2)):
            asked = _query(PURE, score=score, size=size, normalise=False)
            bound, truth = partial(_unit, asked), partial(_released_scores, asked)
            yield audit_bound(bound, truth, world, name=f"{score} moves by its unit, {size} of 2 columns, {name}")
    for name, world in (("corners", CORNERS), ("line", LINE)):
        asked = _query(PURE, size=None, upto=2, normalise=False)
        bound = partial(_lead_unit, asked)
        yield audit_bound(bound, partial(_exact_leads, asked), world, name=f"a lead moves by twice its unit, {name}")
    name, truth = "broken: mass moves by 1", partial(_released_scores, _query(PURE))
    yield audit_bound(lambda _: 1.0, truth, LINE, name=name, expected=True)


def _released_scores(query: Subspaces, values: Floats) -> list[int]:
    """The scores that a release chooses by."""
    return query.score_family(_points(values), query.family.subspaces(("x1", "x2")))[0]


def _exact_leads(query: Subspaces, values: Floats) -> list[int]:
    """The lead of every subspace over the median of the others, without noise."""
    scored = _released_scores(query, values)
    others = (sorted(scored[:place] + scored[place + 1 :]) for place in range(len(scored)))
    return [score - rest[(len(rest) - 1) // 2] for score, rest in zip(scored, others, strict=True)]


def _lead_unit(query: Subspaces, values: Floats) -> float:
    noise = query.lead_noise()
    return float(noise.scale * query._lead_loss.epsilon)


def _unit(query: Subspaces, values: Floats) -> float:
    """By how much one record moves the scores, according to a release."""
    return float(query.score_family(_points(values), query.family.subspaces(("x1", "x2")))[1])


_BY_COUNT: Final = {"score": "count"}
SOUND: Final[dict[str, tuple[Subspaces, Pair]]] = {
    "mass, permute-and-flip": (_query(PURE), TURNED),
    "mass, exponential": (_query(PURE, mechanism="exponential"), HUB),
    "count, permute-and-flip": (_query(PURE, **_BY_COUNT), TIED),
    "count, exponential": (_query(PURE, mechanism="exponential", **_BY_COUNT), HUB),
}
PEELED: Final[dict[str, tuple[Subspaces, Pair]]] = {
    "mass, two in order": (_query(PURE, top=2), TURNED_TWICE),
    "mass, exponential at δ, two in order": (_query(APPROXIMATE, top=2, mechanism="exponential"), TURNED_TWICE),
    "mass, exponential at ρ, two in order": (_query(CONCENTRATED, top=2, mechanism="exponential"), TURNED_TWICE),
}
_FLIPS, _POWERS = {"mechanism": "permute-and-flip"}, {"mechanism": "exponential"}
COMPOSED: Final[dict[str, Subspaces]] = {
    "two flips": _query(PURE, top=2, **_FLIPS),
    "two flips at ρ": _query(CONCENTRATED, top=2, **_FLIPS),
    "two exponentials": _query(PURE, top=2, **_POWERS),
    "two exponentials at ρ": _query(CONCENTRATED, top=2, **_POWERS),
    "two exponentials at δ": _query(APPROXIMATE, top=2, **_POWERS),
}
COUNTED: Final[dict[str, Subspaces]] = {
    "mass, then a count": _query(PURE, counts=True, **_FLIPS),
    "mass, two and their counts": _query(PURE, counts=True, top=2, **_FLIPS),
}
COUNTED_IN_PARTS: Final[dict[str, Subspaces]] = {
    "mass at ρ": _query(CONCENTRATED, counts=True, **_FLIPS),
    "mass at δ": _query(APPROXIMATE, counts=True, **_POWERS),
}
DRAWN: Final[dict[str, tuple[Subspaces, Pair]]] = {
    "mass, permute-and-flip": (_query(PURE), TURNED),
    "mass, permute-and-flip, hub": (_query(PURE), HUB),
    "count, permute-and-flip, hub": (_query(PURE, **_BY_COUNT), HUB),
}
BROKEN: Final[dict[str, tuple[Subspaces, Pair, Choose]]] = {
    "Algorithm 3 as printed": (_query(PURE, mechanism="exponential", **_BY_COUNT), HUB, _broken_printed),
    "a tenth short": (_query(PURE), TURNED, _broken_short),
    "two choices at the whole loss each": (_query(PURE, top=2), TURNED_TWICE, _broken_unshared),
    "mass chosen as if it moved by 1": (_query(PURE), TURNED, _broken_sensitivity),
    "counts chosen as if they moved by 1": (_query(PURE, **_BY_COUNT), TIED, _broken_unscaled),
}
# Accounts of what an answer draws


WITHOUT_DRAWS: Final = frozenset({"normalise", "columns", "scale", "size", "upto", "among", "gap"})
MOVES: Final = 2  # of a mass, in units of 1/neighbours: what a record takes and what it gives
COUNT_MOVES: Final = 3 * 128 + 1  # slack 2
ON_TURNED: Final = (_points(TURNED.first), _points(TURNED.second))
ON_TURNED_TWICE: Final = (_points(TURNED_TWICE.first), _points(TURNED_TWICE.second))
ON_BOTH: Final = (_points(BOTH.first), _points(BOTH.second))
ON_TIED: Final = (_points(TIED.first), _points(TIED.second))
CONVERTED: Final = zcdp_of_epsilon(1.0, 0.01)
ON_PLANES: Final = tuple(
    _points([(first, 0.0, 0.0), *((k * FAR_DISTANCE, k * FAR_DISTANCE, 0.0) for k in range(1, 9))])
    for first in (0.0, FAR_DISTANCE)
)
CONVERTED_HALF: Final = zcdp_of_epsilon(0.5, 0.005)
CHOICES: Final = ("first", "second")


def _names_of(found: Any) -> tuple[str, ...]:
    return tuple(str(item["columns"]) for item in found)


CASES: Final[tuple[Case, ...]] = (
    Case(
        name="a subspace",
        query=_query(PURE),
        tables=ON_TURNED,
        parts=(permute_and_flip("subspace", epsilon=1, moves=MOVES, candidates=2),),
        rho=Fraction(1, 2),
        laws=(LawCheck(parts=("subspace",), least=0.9),),
    ),
    Case(
        name="a subspace, exponential",
        query=_query(PURE, mechanism="exponential", normalise=False),
        tables=ON_TURNED,
        parts=(exponential_part("subspace", epsilon=1, moves=MOVES, candidates=2),),
        rho=Fraction(1, 8),
        laws=(LawCheck(parts=("subspace",), least=0.61, most=0.63),),
    ),
    Case(
        name="a subspace by count",
        query=_query(PURE, score="count", mechanism="permute-and-flip"),
        tables=ON_TIED,
        parts=(permute_and_flip("subspace", epsilon=1, moves=3, candidates=2),),
        rho=Fraction(1, 2),
        laws=(LawCheck(parts=("subspace",), least=0.9),),
    ),
    Case(
        name="two subspaces",
        query=_query(PURE, top=2),
        tables=ON_TURNED_TWICE,
        parts=(
            permute_and_flip("first", epsilon="1/2", moves=MOVES, candidates=4),
            permute_and_flip("second", epsilon="1/2", moves=MOVES, candidates=3),
        ),
        laws=(LawCheck(parts=CHOICES, least=0.87, most=0.88, seen=str),),
        rho=Fraction(1, 4),
    ),
    Case(
        name="two subspaces at ρ",
        query=_query(CONCENTRATED, top=2, mechanism="exponential"),
        tables=ON_TURNED_TWICE,
        parts=(
            bounded_range("first", rho="1/4", moves=MOVES, candidates=4),
            bounded_range("second", rho="1/4", moves=MOVES, candidates=3),
        ),
        laws=(LawCheck(parts=CHOICES, least=0.88, most=0.9, seen=str),),
    ),
    Case(
        name="two subspaces at ρ, permute-and-flip",
        query=_query(CONCENTRATED, top=2, mechanism="permute-and-flip"),
        tables=ON_TURNED_TWICE,
        parts=(
            permute_and_flip_at_rho("first", rho="1/4", moves=MOVES, candidates=4),
            permute_and_flip_at_rho("second", rho="1/4", moves=MOVES, candidates=3),
        ),
        laws=(LawCheck(parts=CHOICES, least=0.41, most=0.43, seen=str),),
    ),
    Case(
        name="two subspaces at δ",
        query=_query(APPROXIMATE, top=2, mechanism="exponential"),
        tables=ON_TURNED_TWICE,
        parts=(
            bounded_range("first", rho=Fraction(CONVERTED) / 2, moves=MOVES, candidates=4),
            bounded_range("second", rho=Fraction(CONVERTED) / 2, moves=MOVES, candidates=3),
        ),
        total=CONVERTED,
        laws=(LawCheck(parts=CHOICES, least=0.92, most=0.94, seen=str),),
    ),
    Case(
        name="two subspaces at δ, permute-and-flip",
        query=_query(APPROXIMATE, top=2, mechanism="permute-and-flip"),
        tables=ON_TURNED_TWICE,
        parts=(
            permute_and_flip("first", epsilon="1/2", moves=MOVES, candidates=4),
            permute_and_flip("second", epsilon="1/2", moves=MOVES, candidates=3),
        ),
        laws=(LawCheck(parts=CHOICES, least=0.81, most=0.82, seen=str),),
    ),
    *(
        Case(
            name=f"a subspace by count at {name}",
            query=_query(loss, score="count", mechanism="permute-and-flip"),
            tables=ON_TIED,
            parts=(part,),
            laws=(LawCheck(parts=("subspace",), least=least, most=most),),
        )
        for name, loss, part, least, most in (
            ("δ", APPROXIMATE, permute_and_flip("subspace", epsilon=1, moves=3, candidates=2), 0.97, 1.0),
            ("ρ", CONCENTRATED, permute_and_flip_at_rho("subspace", rho="1/2", moves=3, candidates=2), 0.51, 0.53),
        )
    ),
    Case(
        name="a subspace of two columns by count",
        query=_query(PURE, score="count", size=2, mechanism="exponential"),
        tables=(ON_PLANES[0], ON_PLANES[1]),
        parts=(exponential_part("subspace", epsilon=1, moves=7, candidates=3),),  # it, and six around it
        rho=Fraction(1, 8),
        laws=(LawCheck(parts=("subspace",), least=0.097, most=0.098),),
    ),
    Case(
        name="two subspaces and their counts at δ",
        query=_query(APPROXIMATE, counts=True, top=2, mechanism="exponential"),
        tables=ON_BOTH,
        parts=(
            bounded_range("first", rho=Fraction(CONVERTED_HALF) / 2, moves=MOVES, candidates=2),
            bounded_range("second", rho=Fraction(CONVERTED_HALF) / 2, moves=MOVES, candidates=1),
            laplace("count of first", moves=COUNT_MOVES, epsilon="1/4"),
            laplace("count of second", moves=COUNT_MOVES, epsilon="1/4"),
        ),
        total=CONVERTED_HALF + 0.5,  # a ρ for the choices, and an ε for the counts
        laws=(
            LawCheck(parts=CHOICES, least=0.49, most=0.5, seen=_names_of),
            LawCheck(parts=("count of first",), least=0.9, seen=lambda value: _side_of(value)[0]),
            LawCheck(parts=("count of second",), least=0.9, seen=lambda value: _side_of(value)[1]),
        ),
    ),
    Case(
        name="a subspace and its count",
        query=_query(PURE, counts=True),
        tables=ON_BOTH,
        parts=(
            permute_and_flip("subspace", epsilon="1/2", moves=MOVES, candidates=2),
            laplace("count", moves=COUNT_MOVES, epsilon="1/2"),
        ),
        rho=Fraction(1, 4),
        laws=(LawCheck(parts=("subspace", "count"), least=0.9, seen=lambda value: _side_of(value)),),
    ),
    Case(
        name="two subspaces and their counts",
        query=_query(PURE, counts=True, top=2, share="1/4"),
        tables=ON_BOTH,
        parts=(
            permute_and_flip("first", epsilon="1/8", moves=MOVES, candidates=2),
            permute_and_flip("second", epsilon="1/8", moves=MOVES, candidates=1),
            laplace("count of first", moves=COUNT_MOVES, epsilon="3/8"),
            laplace("count of second", moves=COUNT_MOVES, epsilon="3/8"),
        ),
        rho=Fraction(5, 32),
        laws=(
            LawCheck(parts=CHOICES, least=0.49, most=0.5, seen=_names_of),
            LawCheck(parts=("count of first",), least=0.9, seen=lambda value: _side_of(value)[0]),
            LawCheck(parts=("count of second",), least=0.9, seen=lambda value: _side_of(value)[1]),
        ),
    ),
    Case(
        name="a subspace and its count at ρ",
        query=_query(CONCENTRATED, counts=True),
        tables=ON_BOTH,
        parts=(
            bounded_range("subspace", rho="1/4", moves=MOVES, candidates=2),
            gaussian("count", moves=COUNT_MOVES, rho="1/4"),
        ),
        laws=(
            LawCheck(parts=("subspace",), least=0.94, seen=_names_of),
            LawCheck(parts=("count",), least=0.63, most=0.64, seen=lambda value: _side_of(value)),
        ),
    ),
)
LEAD_CASES: Final[tuple[Case, ...]] = (
    Case(
        name="a subspace and its lead",
        query=_query(PURE, verify=True),
        tables=ON_TURNED,
        parts=(
            permute_and_flip("subspace", epsilon="3/4", moves=MOVES, candidates=2),
            laplace("lead", moves=2 * MOVES, epsilon="1/4"),
        ),
        rho=Fraction(5, 16),
        laws=(LawCheck(parts=("subspace", "lead"), least=0.9, seen=lambda value: _lead_side_of(value)),),
    ),
    Case(
        name="a subspace and its lead at ρ",
        query=_query(CONCENTRATED, verify=True, mechanism="exponential"),
        tables=ON_TURNED,
        parts=(
            bounded_range("subspace", rho="3/8", moves=MOVES, candidates=2),
            gaussian("lead", moves=2 * MOVES, rho="1/8"),
        ),
        laws=(
            LawCheck(parts=("subspace",), least=0.92, seen=_names_of),
            LawCheck(parts=("lead",), least=0.63, most=0.64, seen=lambda value: _lead_side_of(value)),
        ),
    ),
)
ACCOUNTS: Final = Accounts(cases=(*CASES, *LEAD_CASES), without_draws=WITHOUT_DRAWS)


def _lead_side_of(found: Any) -> Any:
    """The name, and on which side of where the tables differ its lead is."""
    return tuple((str(item["columns"]), item["lead"] >= _LEADS[item["columns"][0]]) for item in found)


def _side_of(found: Any) -> Any:
    """What is released, in order, and on which side of where the tables differ each count is."""
    return tuple((str(item["columns"]), item["outliers"] >= _OUTLIERS[item["columns"][0]]) for item in found)


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "choices": _attack_choices,
    "counts": _attack_counts,
    "leads": _attack_leads,
    "exact": lambda quick: _oracles(),
    "bounds": lambda quick: _bounds(),
    "conversion": lambda quick: attack_conversion(),
    "broken": _broken_choices,
}
