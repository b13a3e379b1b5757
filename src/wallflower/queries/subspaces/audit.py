"""Attacks on the choice of subspaces: the mechanisms we release, and broken ones that an audit has to catch.

The broken ones are mistakes that were made in print, or nearly by us. They live here, named broken, and no release can
reach them: nothing but an audit imports this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, Sampler, World, audit, audit_bound
from wallflower.data import Points
from wallflower.mechanisms import exponential, peel
from wallflower.neighbours.limits import rounding_bound
from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries.subspaces import Subspaces
from wallflower.queries.subspaces.choice import Draws
from wallflower.queries.subspaces.exact import scores

TRIALS, QUICK_TRIALS, WHOLE_TRIALS = 20_000, 4_000, 5_000
LEAST_TRIALS: Final = 10_000  # to be sure of catching what is broken
FAR: Final = 1000.0
PURE, APPROXIMATE, CONCENTRATED = Loss("1"), Loss("1", delta="1/100"), Loss.zcdp("1/2")
COLUMNS: Final = 21


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Neighbouring tables, the replaced record first, and the columns in which that record finds company only in the
    second table, so that they are chosen less often there; in the others it leaves some."""

    first: list[tuple[float, ...]]
    second: list[tuple[float, ...]]
    falling: frozenset[int]


def _turned(copies: int) -> Pair:
    """From a tie, the mass of one half of the columns rises by 2 and that of the other half falls by 2."""
    rest = [(0.0, FAR), (FAR, 0.0), (3 * FAR, 3 * FAR), (4 * FAR, 3 * FAR)]
    tables = ([(left,) * copies + (right,) * copies for left, right in [mover, *rest]] for mover in _MOVERS)
    return Pair(first=next(tables), second=next(tables), falling=frozenset(range(copies, 2 * copies)))


_MOVERS: Final = ((0.5, 2 * FAR), (2 * FAR, 0.5))
_ENDS: Final = [(-1.0,) * COLUMNS, (1.0,) * COLUMNS]
TURNED, TURNED_TWICE = _turned(1), _turned(2)
HUB: Final = Pair(  # between two others it carries them both: 2k + 1 outliers at k = 1, in all columns but one
    first=[(FAR, *(0.0,) * (COLUMNS - 1)), *_ENDS],
    second=[(0.0, *(FAR,) * (COLUMNS - 1)), *_ENDS],
    falling=frozenset({0}),
)
CORNERS: Final = World(tuple((float(x), float(y)) for x in (0, 1) for y in (0, 1, 2)), 4)
LINE: Final = World(tuple((float(x), 0.0) for x in range(5)), 4)


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    trials = QUICK_TRIALS if quick else TRIALS
    for name, (query, pair) in SOUND.items():
        yield audit(*_samplers(query, pair), claimed=query.loss, trials=trials, name=name)
    query = _asked(PURE, counts=True)
    samplers = _whole(query, TURNED.first), _whole(query, TURNED.second)
    yield audit(*samplers, claimed=PURE, trials=WHOLE_TRIALS // (10 if quick else 1), name="mass, then a count")
    yield from _bounds()
    for name, (query, pair, broken) in BROKEN.items():
        samplers = _samplers(query, pair, broken)
        enough = max(trials, LEAST_TRIALS)
        yield audit(*samplers, claimed=query.loss, trials=enough, name=f"broken: {name}", expected=True)


def _asked(loss: Loss, **details: Any) -> Subspaces:
    usual: dict[str, Any] = {"neighbours": 1, "radius": 1.0, "size": 1, "top": 1}
    return Subspaces(**usual | details, loss=loss)


def _points(records: Any) -> Points:
    return Points.from_array(np.array(records), name="made-up")


Choose = Callable[[Subspaces, list[int], int, Draws], list[int]]


def _released(query: Subspaces, scored: list[int], unit: int, made: Draws) -> list[int]:
    return query.chosen(scored, unit, made, system_noise())


def _sampler(query: Subspaces, records: Any, falling: frozenset[int], choose: Choose) -> Sampler:
    """Where the falling columns stand among the released ones, drawn again and again from scores computed once."""
    data = _points(records)
    scored, unit = query.scored(data, query.family.subspaces(data.columns))
    made = query.made(data.n, data.dimension)

    def one() -> int:
        return sum(
            1 << (query.top - at) for at, place in enumerate(choose(query, scored, unit, made)) if place in falling
        )

    return lambda size: np.array([one() for _ in range(size)])


def _samplers(query: Subspaces, pair: Pair, choose: Choose = _released) -> tuple[Sampler, Sampler]:
    return tuple(_sampler(query, table, pair.falling, choose) for table in (pair.first, pair.second))  # type: ignore[return-value]


def _whole(query: Subspaces, records: Any) -> Sampler:
    """The whole answer as one number: the column and its count."""
    data = _points(records)

    def one() -> int:
        (item,) = query.answer(data, system_noise())
        return data.columns.index(item["columns"][0]) * 100 + item["outliers"]  # type: ignore[call-overload, no-any-return]

    return lambda size: np.array([one() for _ in range(size)])


def _broken_printed(query: Subspaces, scored: list[int], unit: int, made: Draws) -> list[int]:
    """Algorithm 3 of [Oka15]: exp(ε u / h), h times, for scores u that one record moves by 1. That is 2ε."""
    each = 2 * query.loss.epsilon / query.top
    return peel(exponential, scored, query.top, sensitivity=unit, epsilon=each, noise=system_noise())


def _broken_unshared(query: Subspaces, scored: list[int], unit: int, made: Draws) -> list[int]:
    """Every choice spends the whole loss."""
    return query.chosen(scored, unit, replace(made, each=query.loss.epsilon), system_noise())


def _broken_sensitivity(query: Subspaces, scored: list[int], unit: int, made: Draws) -> list[int]:
    """The mass as if one record moved it by 1: what it takes is counted, what it gives is not."""
    return query.chosen(scored, unit // 2, made, system_noise())


def _broken_unscaled(query: Subspaces, scored: list[int], unit: int, made: Draws) -> list[int]:
    """Counts as if one record moved them by 1."""
    return query.chosen(scored, unit // rounding_bound(10**9, 1, query.neighbours), made, system_noise())


def _bounds() -> Iterator[Finding]:
    for name, world in (("corners", CORNERS), ("line", LINE)):
        for family in ([(0,)], [(0, 1)]):
            size = len(family[0])
            truth = partial(_score, family, "mass")
            yield audit_bound(lambda _: 2.0, truth, world, name=f"mass moves by 2, {size} of 2 columns, {name}")
            bound = partial(_most, size)
            truth = partial(_score, family, "count")
            yield audit_bound(bound, truth, world, name=f"count moves by its bound, {size} of 2 columns, {name}")
    name, truth = "broken: mass moves by 1", partial(_score, [(0,)], "mass")
    yield audit_bound(lambda _: 1.0, truth, LINE, name=name, expected=True)


def _score(family: Any, score: str, values: Floats) -> float:
    return float(scores(values, family, 1 / math.sqrt(len(family[0])), 1, score=score)[0])


def _most(size: int, values: Floats) -> float:
    return float(rounding_bound(len(values), size, 1))


_BY_COUNT: Final = {"score": "count"}
SOUND: Final[dict[str, tuple[Subspaces, Pair]]] = {
    "mass, permute-and-flip": (_asked(PURE), TURNED),
    "mass, permute-and-flip, hub": (_asked(PURE), HUB),
    "mass, exponential": (_asked(PURE, mechanism="exponential"), HUB),
    "mass, two in order": (_asked(PURE, top=2), TURNED_TWICE),
    "mass, exponential at δ, two in order": (_asked(APPROXIMATE, top=2, mechanism="exponential"), TURNED_TWICE),
    "mass, exponential at ρ": (_asked(CONCENTRATED, top=2, mechanism="exponential"), TURNED_TWICE),
    "count, permute-and-flip": (_asked(PURE, **_BY_COUNT), HUB),
    "count, exponential": (_asked(PURE, mechanism="exponential", **_BY_COUNT), HUB),
}
BROKEN: Final[dict[str, tuple[Subspaces, Pair, Choose]]] = {
    "Algorithm 3 as printed": (_asked(PURE, mechanism="exponential", **_BY_COUNT), HUB, _broken_printed),
    "two choices at the whole loss each": (_asked(PURE, top=2), TURNED_TWICE, _broken_unshared),
    "mass moves by 1": (_asked(PURE), TURNED, _broken_sensitivity),
    "counts move by 1": (_asked(PURE, **_BY_COUNT), HUB, _broken_unscaled),
}
