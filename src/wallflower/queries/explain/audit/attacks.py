"""Attacks on explanations: the mechanisms we release, and broken ones that an audit has to catch.

The broken ones are mistakes that were made in print, or nearly by us. They live here, named broken, and no release can
reach them: nothing but an audit imports this folder. Tables are synthetic: V is the first record, and the contexts of a
table are few enough to tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np

from wallflower.audit import Attack, Finding, Sampler, Way, audit
from wallflower.audit.answers import audit_cases
from wallflower.audit.laws import Law, audit_law, audit_parts, law_of, loss_between
from wallflower.data import Points
from wallflower.noise import Noise, system_noise
from wallflower.privacy import Loss
from wallflower.queries.explain.audit.accounts import (
    ACCOUNTS,
    APART,
    CLOSE,
    CROWD,
    EMPTY,
    FAR_PAIR,
    HALVES,
    LAST,
    LONE,
    OUTWEIGHING_PAIR,
    TIED,
    Pair,
    best_first_law,
    query_for,
)
from wallflower.queries.explain.audit.worlds import attack_none, attack_worlds
from wallflower.queries.explain.case import Case, TiledCase
from wallflower.queries.explain.detectors import ClampedGrubbs, Distance
from wallflower.queries.explain.detectors.grubbs import kappas, scales
from wallflower.queries.explain.draws import ocdp
from wallflower.queries.explain.draws.exponential import choose
from wallflower.queries.explain.draws.utilities import Population
from wallflower.queries.explain.exact import margins
from wallflower.queries.explain.explain import Explain
from wallflower.queries.explain.space.tables import RankedTable

TRIALS, QUICK_TRIALS = 2_000, 200
ONE, TWO, SIX = Loss("1"), Loss("2"), Loss("6")
SAMPLES: Final = 8
CLOSEST: Final = "dp, distance, as close as can be"

Draw = Callable[[Noise], int]


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack, mechanism by mechanism: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _attack_laws(mode: str, quick: bool) -> Iterator[Finding]:
    for name, (pair, loss, details) in LAWS.items():
        if name.startswith(mode):
            query = query_for(pair, loss, **details)
            yield audit_law(*_laws(query, pair), claimed=query.cost(), name=name)
    for name, (pair, loss, details) in LAWS.items():
        if name in SHORTENED and name.startswith(mode):
            short = query_for(pair, Loss(loss.epsilon * Fraction(10, 9)), **details)
            finding = f"broken: a tenth short, {name}"
            yield audit_law(*_laws(short, pair), claimed=loss, name=finding, expected=True)


def _attack_several(quick: bool) -> Iterator[Finding]:
    """Several contexts: what the first of them spends, as often as there are contexts."""
    pair, loss, details = LAWS[CLOSEST]
    query = query_for(pair, loss, **details | {"top": 2})
    laws = [law_of(partial(_first_bits, query, query.view(points))) for points in pair.points()]
    spent = loss_between(laws[0], laws[1], loss)
    parts = {f"context {place}": spent for place in range(1, query.top + 1)}
    yield audit_parts(parts, claimed=float(loss.epsilon), name="dp, distance, two contexts, each")


def _attack_draws(quick: bool) -> Iterator[Finding]:
    for name, (pair, loss, details) in SOUND.items():
        query = query_for(pair, loss, **details)
        samplers = [_answers(query, points) for points in pair.points()]
        yield audit(*samplers, claimed=query.cost(), trials=QUICK_TRIALS if quick else TRIALS, name=name)


def _attack_best_first(quick: bool) -> Iterator[Finding]:
    """The sound search is among the accounts."""
    short = query_for(HALVES, Loss(SIX.epsilon * Fraction(10, 9)), mode="ocdp", search="best-first")
    laws = [best_first_law(short, short.view(points)) for points in HALVES.points()]
    yield audit_law(*laws, claimed=SIX, name="broken: a tenth short, ocdp, best-first", expected=True)


def _attack_steps(quick: bool) -> Iterator[Finding]:
    yield _wanders("bfs and dfs step to neighbours", (ocdp.bfs, ocdp.dfs), expected=False)
    yield _wanders("broken: flips without restoring", (_broken_flips,), expected=True)


def _attack_broken(quick: bool) -> Iterator[Finding]:
    for name, (pair, loss, broken) in BROKEN.items():
        first, second = (law_of(broken(_table(query_for(pair, loss), points))) for points in pair.points())
        yield audit_law(first, second, claimed=loss, name=f"broken: {name}", expected=True)


def _table(query: Explain, points: Points) -> RankedTable:
    case = query.view(points)
    assert isinstance(case, Case)
    return case.table


def _laws(query: Explain, pair: Pair) -> list[Law]:
    """Return the laws of answers: the bits of their contexts, one after another."""
    cases = [query.view(points) for points in pair.points()]
    return [law_of(partial(_bits, query, case)) for case in cases]


def _bits(query: Explain, case: Case | TiledCase, noise: Noise) -> str:
    return " ".join(item["bits"] for item in query.answer(case, noise))


def _first_bits(query: Explain, case: Case | TiledCase, noise: Noise) -> str:
    return query.answer(case, noise)[0]["bits"]


def _answers(query: Explain, points: Points) -> Sampler:
    """Return what is drawn, as a number: the contexts of an answer one after another, -1 for none."""
    case = query.view(points)
    detector = query.detector_for(case.n)
    table = case.table_for(detector)

    def draw(noise: Noise) -> int:
        drawn = query.draw(table, detector, case.n, noise)
        return sum(index * table.space.count**place for place, index in enumerate(reversed(drawn))) if drawn else -1

    return lambda size: np.array([draw(system_noise()) for _ in range(size)])


def _populations(table: RankedTable) -> list[int]:
    return [int(table.members(index).sum()) for index in range(table.space.count)]


def _exponential(scores: Sequence[int], rate: Fraction) -> Draw:
    return lambda noise: choose(scores, rate=rate, top=1, noise=noise)[0]


def _broken_price(table: RankedTable) -> Draw:
    """exp(2εu), the price of a choice mistaken by a factor of 2."""
    scores = _populations(table)
    return _exponential(scores, Fraction(2))


def _broken_monotone(table: RankedTable) -> Draw:
    """Margins weighed by exp(εq) instead of exp(εq/2): one record raises some and lowers others."""
    scores = np.minimum(*margins(table, Distance(10, 1.0))).astype(np.int64).tolist()
    return _exponential(scores, Fraction(2))


def _broken_unshared(table: RankedTable) -> Draw:
    """Breadth-first search that spends the whole loss in every step."""
    contexts = ocdp.score_contexts(table, Distance(1000, 1.0), Population())
    return lambda noise: ocdp.bfs(contexts, start=3, samples=1, rate=Fraction(2), top=1, noise=noise)[0]


def _broken_start(table: RankedTable) -> Draw:
    """A walk that starts at the largest valid context: the start reveals which one that is."""
    scores = _populations(table)[:-1]
    start = scores.index(max(scores))
    contexts = ocdp.score_contexts(table, Distance(1000, 1.0), Population())
    return lambda noise: ocdp.walk(contexts, start=start, samples=1, rate=Fraction(1), top=1, noise=noise)[0]


def _broken_none(table: RankedTable) -> Draw:
    """Says none exactly where no context is valid."""
    valid = bool((margins(table, Distance(1, 1.0))[0] > 0).any())
    return lambda noise: int(valid)


def _broken_unclamped(table: RankedTable) -> Draw:
    """Clamped Grubbs' margin of a metric that was not clamped."""
    detector = ClampedGrubbs(0.0, 10.0, 60)
    weights, kappa = scales(detector, table.own), kappas(0.05, 60)
    z = table.own - table.values
    inside = [table.members(index) for index in range(table.space.count)]
    sums = [(z[members].sum(), (z[members] ** 2).sum(), kappa[members.sum()]) for members in inside]
    scores = [int(np.clip((weights @ np.array(totals)).max(), -60, 60)) for totals in sums]
    return _exponential(scores, Fraction(1, 2))


def _broken_flips(contexts: ocdp.ContextScores, *, start: int, samples: int, **_: Any) -> list[int]:
    """Algorithm 5 of [Sha21] as printed: bits are flipped one after another, and never flipped back."""
    visited, here = [start], start
    for bit in range(contexts.space.length):
        here ^= 1 << bit
        if contexts.score(here) is not None and here not in visited and len(visited) < samples:
            visited.append(here)
    return visited


def _wanders(name: str, searches: Sequence[Callable[..., list[int]]], *, expected: bool) -> Finding:
    """How far the visited contexts lie apart, where two of sixteen are not valid: each should be beside another one."""
    space = _table(query_for(CROWD, ONE), CROWD.points()[0]).space
    apart = 0
    for search in searches:
        contexts = ocdp.ContextScores(space, lambda index: (index not in (1, 4), 1))
        drawn = search(contexts, start=0, samples=6, rate=Fraction(1), top=16, noise=system_noise())
        visited = {0, *drawn}  # 16 contexts are all that was visited
        apart = max(apart, *(min((here ^ other).bit_count() for other in visited - {here}) for here in visited))
    return Finding(
        name=name,
        way=Way.WORLD,
        claimed=1.0,
        lower=float(apart),
        caught=apart > 1,
        text=f"visited contexts differ from the nearest other one in {apart} values",
        expected=expected,
    )


_OCDP: Final = {"mode": "ocdp"}
LAWS: Final[dict[str, tuple[Pair, Loss, dict[str, Any]]]] = {
    CLOSEST: (CLOSE, ONE, {"detector": "distance:k=15,radius=1", "doubt": 0, "size": 30}),
    "dp, clamped Grubbs": (FAR_PAIR, TWO, {"detector": "clamped-grubbs", "doubt": 0}),
    "dp, distance": (APART, TWO, {"detector": "distance:k=10,radius=1", "doubt": 0}),
    "none, or not": (LAST, TWO, {"detector": "distance:k=1,radius=1", "doubt": "99/100"}),
    "none, or a context": (LONE, SIX, {"detector": "distance:k=3,radius=1", "doubt": "1/6"}),
    "none, or a context, at little": (LONE, ONE, {"detector": "distance:k=3,radius=1", "doubt": "1/2"}),
    "dp, bins": (APART, TWO, {"detector": "bins:points=6,fraction=0.5", "doubt": 0}),
    "dp, tukey": (FAR_PAIR, TWO, {"detector": "tukey:points=5", "doubt": 0}),
    "ocdp, guided": (EMPTY, TWO, _OCDP | {"search": "guided", "samples": 1}),
    "ocdp, direct": (CROWD, ONE, _OCDP),
    "ocdp, direct, overlap": (CROWD, ONE, _OCDP | {"utility": "overlap", "near": "010"}),
    "ocdp, uniform": (OUTWEIGHING_PAIR, ONE, _OCDP | {"search": "uniform", "samples": 2}),
    "ocdp, walk": (CROWD, ONE, _OCDP | {"search": "walk", "samples": 2}),
    "ocdp, dfs": (CROWD, TWO, _OCDP | {"search": "dfs", "samples": 1}),
    "ocdp, bfs": (CROWD, TWO, _OCDP | {"search": "bfs", "samples": 1}),
}
SHORTENED: Final = (CLOSEST, "none, or not", "ocdp, direct", "ocdp, dfs", "ocdp, guided")
SOUND: Final[dict[str, tuple[Pair, Loss, dict[str, Any]]]] = {
    "dp, distance, by draws": (APART, TWO, {"detector": "distance:k=10,radius=1", "doubt": 0}),
    "ocdp, best-first, by draws": (CROWD, ONE, _OCDP | {"search": "best-first"}),
    "ocdp, bfs, by draws": (CROWD, ONE, _OCDP | {"search": "bfs", "samples": SAMPLES}),
}
BROKEN: Final[dict[str, tuple[Pair, Loss, Callable[[RankedTable], Draw]]]] = {
    "choices at twice the price": (CROWD, ONE, _broken_price),
    "margins at the price of populations": (APART, TWO, _broken_monotone),
    "every step at the whole loss": (CROWD, TWO, _broken_unshared),
    "a start that was looked for": (TIED, ONE, _broken_start),
    "none where there is none": (LAST, ONE, _broken_none),
    "a margin of what is not clamped": (FAR_PAIR, ONE, _broken_unclamped),
}
ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "dp": partial(_attack_laws, "dp"),
    "none": partial(_attack_laws, "none"),
    "several": _attack_several,
    "worlds": lambda quick: chain(attack_worlds(), attack_none()),
    "ocdp": partial(_attack_laws, "ocdp"),
    "best-first": _attack_best_first,
    "steps": _attack_steps,
    "draws": _attack_draws,
    "broken": _attack_broken,
}
