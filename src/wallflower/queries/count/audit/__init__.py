"""Attacks on the outlier count: the mechanisms we release, and broken ones that an audit has to catch.

The broken ones are mistakes that were made in print or nearly by us. They live here, named broken, and no release can
reach them: nothing but an audit imports this folder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np

from wallflower.audit import (
    ROUNDING,
    TRIALS,
    Attack,
    Finding,
    Floats,
    ScriptedNoise,
    Way,
    World,
    audit,
    audit_bound,
    audit_exact,
    replay_sampler,
)
from wallflower.audit.answers import audit_cases
from wallflower.audit.calibrations import attack_calibrations, attack_smooth_noise
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.audit.scripts import ShortNoise
from wallflower.data import Points
from wallflower.mechanisms import Additive, calibrate, smooth_beta
from wallflower.neighbours.certificate import certify_exactly
from wallflower.neighbours.extension import certify
from wallflower.neighbours.limits import global_bound
from wallflower.neighbours.noisy_count import GAP, STEP
from wallflower.neighbours.pairs import plant
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.count import Count
from wallflower.queries.count.audit.accounts import ACCOUNTS
from wallflower.queries.count.audit.bounds import broken_bounds
from wallflower.queries.count.audit.caps import cap_findings
from wallflower.queries.count.audit.groups import group_findings
from wallflower.queries.count.audit.labels import label_findings
from wallflower.queries.count.audit.lower import lower_findings
from wallflower.queries.count.audit.shares import share_findings
from wallflower.queries.count.audit.worlds import (
    CIRCLE,
    CROWD,
    DIAMOND,
    DISC,
    FAR,
    HEXAGON,
    LINE,
    PATH,
    PLUS,
    ROW,
    SMALL_PLUS,
    STAR,
)
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.sensitivity import local_bounds

QUICK_TRIALS: Final = 8_000
ROUNDED: Final = "global, where rounding favours the attacker"
PURE, CONCENTRATED = Loss("1"), Loss.zcdp("1/2")
APPROXIMATE, WIDE = Loss("1", delta="1e-6"), Loss("1/4", delta="1/5")
SLACK: Final = 2


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack, mechanism by mechanism: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _attack(mechanism: str, quick: bool) -> Iterator[Finding]:
    """The laws of answers, and what their noise hides."""
    here = {name: case for name, case in SOUND.items() if case[0].mechanism == mechanism}
    for name, (asked, *tables) in here.items():
        first, second = (_law(asked, each) for each in tables)
        yield audit_law(first, second, claimed=asked.loss, name=name)
    for name, (asked, *tables) in here.items():
        if name in DRAWN or not quick:
            samplers = [replay_sampler(partial(asked.answer, _points(each))) for each in tables]
            trials = QUICK_TRIALS if quick else TRIALS
            yield audit(*samplers, claimed=asked.loss, trials=trials, name=f"{name}, by draws")
    yield from _BOUNDS[mechanism]()
    for name in (name for name in here if name in SHORTENED):
        asked, *tables = SOUND[name]
        first, second = (_law(asked, each, ShortNoise) for each in tables)
        yield audit_law(first, second, claimed=asked.loss, name=f"broken: a tenth short, {name}", expected=True)


def _broken_laws() -> Iterator[Finding]:
    first, second = _broken_by_value([0.5, *CROWD]), _broken_by_value([FAR, *CROWD])
    yield audit_law(first, second, claimed=PURE, name="broken: leaves out itself by value", expected=True)
    asked, name = SOUND[ROUNDED][0], "broken: 5k + 1 in spite of rounding"
    first, second = (_broken_strict(asked, each) for each in _ON_HEXAGON)
    yield audit_law(first, second, claimed=asked.loss, name=name, expected=True)


def _count(neighbours: int, loss: Loss, mechanism: str = "extension") -> Count:
    slack = SLACK if mechanism == "extension" else None
    return Count(neighbours=neighbours, radius=1.0, loss=loss, mechanism=mechanism, slack=slack, normalise=False)


def _points(records: Any) -> Points:
    values = np.array(records, dtype=np.float64)
    return Points.from_array(values[:, None] if values.ndim == 1 else values, name="made-up")


_ON_STAR: Final = [0.0, *STAR], [-FAR, *STAR]
_ON_LINE: Final = [0.0, *LINE], [-FAR, *LINE]
_ON_DISC: Final = [(0.0, 0.0), *DISC], [(-FAR, 0.0), *DISC]
_ON_HEXAGON: Final = [(0.04671127270200095, -0.53882462558908), *HEXAGON], [(0.0, -FAR), *HEXAGON]
SOUND: Final[dict[str, tuple[Count, Any, Any]]] = {
    "extension, pure": (_count(1, PURE), *_ON_STAR),
    "extension, pure, contested": (_count(1, PURE), *_ON_DISC),
    "extension, zCDP": (_count(1, CONCENTRATED), *_ON_STAR),
    "extension, approximate": (_count(1, WIDE), *_ON_STAR),
    "global, Laplace on a line": (_count(3, PURE, "global"), *_ON_LINE),
    "global, Laplace on a disc": (_count(1, PURE, "global"), *_ON_DISC),
    "global, Gaussian": (_count(3, CONCENTRATED, "global"), *_ON_LINE),
    "smooth, Laplace": (_count(3, APPROXIMATE, "smooth"), *_ON_LINE),
    ROUNDED: (Count(neighbours=5, radius=1.0, loss=Loss("2"), mechanism="global"), *_ON_HEXAGON),
}
DRAWN: Final = ("extension, pure",)
SHORTENED: Final = {
    "extension, pure",
    "extension, zCDP",
    "extension, approximate",
    "global, Laplace on a line",
    "global, Gaussian",
}


def _law(query: Count, records: Any, through: Callable[[Noise], Noise] = lambda noise: noise) -> Law:
    points = _points(records)
    return law_of(lambda noise: query.answer(points, through(noise)))


# The exact answer


def _oracles() -> Iterator[Finding]:
    for place, world in {"path": PATH, "diamond": DIAMOND}.items():
        for neighbours in (1, 2):
            exact = partial(count_outliers, radius=1.0, neighbours=neighbours, normalise=False)
            brute = partial(_brute_count, neighbours=neighbours)
            yield audit_exact(exact, brute, world.arrays(), name=f"exact count on a {place}, k = {neighbours}")
    yield audit_exact(_count_by_value, _brute_count, PATH.arrays(), name="broken: exact, by value", expected=True)


def _brute_count(values: Floats, neighbours: int = 1) -> int:
    """Every record beside every other one."""
    records = [tuple(row) for row in values.tolist()]
    near = [
        sum(math.dist(one, other) <= 1.0 for j, other in enumerate(records) if j != i) for i, one in enumerate(records)
    ]
    return sum(found < neighbours for found in near)


def _count_by_value(values: Floats) -> int:
    """BROKEN: a record's duplicates are not its neighbours (Definition 7 of the paper)."""
    gaps = np.sqrt(((values[:, None] - values) ** 2).sum(axis=2))
    return int(np.count_nonzero(np.count_nonzero((gaps > 0) & (gaps <= 1.0), axis=1) < 1))


# Bounds that must hold


def _extension_bounds() -> Iterator[Finding]:
    for neighbours, (place, world) in enumerate({"plus": SMALL_PLUS, "path": PATH}.items(), start=1):
        inliers, hidden = partial(_inliers, neighbours=neighbours), partial(_hidden, _count(neighbours, PURE))
        yield audit_bound(hidden, inliers, world, name=f"extension: what its noise hides, on a {place}")
    yield _solver_off(SMALL_PLUS)
    yield _certificates(0.0)
    yield _certificates(float(STEP), expected=True)


def _solver_off(world: World) -> Finding:
    """Whether the noise hides one record even where the solver is as far off as it may be, on one table and not on the
    other, and rounding favours the attacker."""
    query = _count(1, PURE)
    exact = {table: _inliers(np.array(table), 1) for table in world.tables()}
    off = {table: (_steps(world.size - value), _steps(world.size - value + GAP)) for table, value in exact.items()}
    shown = max(off[other][1] - off[table][0] for table in exact for other in world.neighbours(table))
    claimed = _hidden(query, np.array(next(world.tables()))) / float(STEP)
    return Finding(
        name="extension: what its noise hides, the solver off by as much as it may be",
        way=Way.WORLD,
        claimed=claimed,
        lower=float(shown),
        caught=shown > claimed * (1 + ROUNDING),
        words=f"the steps move by {shown}, the noise hides {claimed:.6g}",
    )


def _certificates(error: float, *, expected: bool = False) -> Finding:
    """Whether a certificate that whole numbers check supports the value before noise, on every table of a world."""

    def is_supported(values: Floats) -> bool:
        bounds = certify_exactly(plant(values, 1.0), 1, SLACK, GAP)
        return replace(bounds, value=bounds.value + error).supports(Fraction(GAP))

    tables = (np.array(table) for table in SMALL_PLUS.tables())
    name = f"{'broken: a step too high, ' if expected else ''}extension: exact certificates of its value"
    return audit_exact(is_supported, lambda _: True, tables, name=name, expected=expected)


def _steps(count: float) -> int:
    return math.floor(count / STEP + Fraction(1, 2))


def _global_bounds() -> Iterator[Finding]:
    outliers, hidden = partial(_outliers, radius=1.0), partial(_hidden, _count(1, PURE, "global"))
    yield audit_bound(hidden, outliers, DIAMOND, name="global: what its noise hides, on a diamond")


def _smooth_bounds() -> Iterator[Finding]:
    local = partial(local_bounds, radius=1.0, neighbours=1, upto=0, normalise=False)
    for place, world in {"path": PATH, "diamond": DIAMOND}.items():
        bound, outliers = (lambda values: local(values)[0]), partial(_outliers, radius=1.0)
        yield audit_bound(bound, outliers, world, name=f"local bound on a {place}")
    yield _smooth("on a path", PATH, 1.0)
    yield _smooth("on a plus", PLUS, 1.2)
    yield _smooth("on a row", ROW, 1.0)
    yield _smooth("where rounding favours the attacker", CIRCLE, 1.0, normalise=True)
    yield from attack_smooth_noise()


_BOUNDS: Final = {"extension": _extension_bounds, "global": _global_bounds, "smooth": _smooth_bounds}


def _outliers(values: Floats, radius: float, normalise: bool = False) -> int:
    return count_outliers(values, radius, 1, normalise=normalise)


def _smooth(place: str, world: World, radius: float, *, normalise: bool = False) -> Finding:
    """What the noise of an answer goes by: large enough on every table, and as smooth as its δ needs."""
    query = Count(neighbours=1, radius=radius, loss=APPROXIMATE, mechanism="smooth", normalise=normalise)
    truth = partial(_outliers, radius=radius, normalise=normalise)
    beta = smooth_beta(APPROXIMATE.epsilon, APPROXIMATE.delta, least=1, step=STEP)
    name = f"smooth: what its noise hides, {place}"
    return audit_bound(partial(_hidden, query), truth, world, beta=beta + 1e-12, name=name)


def _inliers(values: Floats, neighbours: int) -> float:
    return certify(plant(values, 1.0), neighbours, SLACK, GAP).lower


def _hidden(query: Count, values: Floats) -> float:
    """By how many records the noise of an answer lets one record move the count, by its own word."""
    script = ScriptedNoise()
    query.answer(_points(values), script)
    ((_, scale),) = script.asked
    return float(scale * query.loss.epsilon * _UNITS[query.mechanism])


_UNITS: Final = {"extension": STEP, "global": Fraction(1), "smooth": STEP / 2}  # smooth: half of ε is for the value


# Broken, on purpose


def _broken_by_value(records: list[float]) -> Law:
    """BROKEN: the noise as if duplicates were neighbours."""
    n, count = len(records), _count_by_value(np.array(records)[:, None])
    return _noisy(count, n, calibrate(global_bound(n, 1, 1), PURE, step=Fraction(1)))


def _broken_strict(query: Count, records: Any) -> Law:
    """BROKEN: 5k + 1, which is true of real numbers in the plane and not of rounded distances."""
    n, strict = len(records), global_bound(len(records), 2, query.neighbours)
    count = count_outliers(records, query.reach, query.neighbours, normalise=query.normalise)
    return _noisy(count, n, calibrate(strict, query.loss, step=Fraction(1)))


def _noisy(count: int, n: int, noise: Additive) -> Law:
    return law_of(lambda source: min(max(count + noise.draw(source), 0), n))


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "noise": lambda quick: attack_calibrations(),
    "extension": partial(_attack, "extension"),
    "global": partial(_attack, "global"),
    "smooth": partial(_attack, "smooth"),
    "exact": lambda quick: _oracles(),
    "broken": lambda quick: chain(_broken_laws(), broken_bounds()),
    "two-sided": lambda quick: lower_findings(),
    "groups": lambda quick: group_findings(),
    "share": lambda quick: share_findings(),
    "labels": lambda quick: label_findings(),
    "degree cap": lambda quick: cap_findings(),
}
