"""Attacks on counts at one radius: the mechanisms we release, and broken ones that an audit has to catch.

The broken ones are mistakes that were made in print, or nearly by us. They live here, named broken, and no release can
reach them: nothing but an audit imports this package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit.attacks import (
    ROUNDING,
    TRIALS,
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
from wallflower.audit.calibrations import attack_smooth_noise
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.audit.scripts import ShortNoise
from wallflower.data import Column, Points, Schema, Table
from wallflower.machine.lazy import load
from wallflower.mechanisms import Additive, calibrate, smooth_beta
from wallflower.neighbours.certificate import certify_exactly
from wallflower.neighbours.extension import certify
from wallflower.neighbours.limits import global_bound
from wallflower.neighbours.noisy_count import GAP, LARGE_TABLE_RECORDS, STEP, exact_steps, gap_steps
from wallflower.neighbours.pairs import build_tree
from wallflower.neighbours.radii import Tally
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.count.at_radius import Counted, GlobalCount, OneSidedCount, RadiusCount, SmoothCount
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.sensitivity import local_bounds, sweep, window
from wallflower.schema.columns import float_array, text_array

FAR_DISTANCE: Final = 1000.0

# Neighbouring tables that one record tells apart as far as it can; some sure outliers and a sure cluster keep the
# counts away from 0 and N, where clamping would hide the difference.
_APART, _TOGETHER = (FAR_DISTANCE, 2 * FAR_DISTANCE), (4 * FAR_DISTANCE,) * 4
LINE: Final = [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, *_APART, *_TOGETHER]  # 0 carries them all: 2k+1 at k=3
STAR: Final = [-1.0, 1.0, *_APART, *_TOGETHER[:2]]  # E moves by slack + 1 at k=1
PENTAGON: Final = [(0.999 * math.cos(0.4 * math.pi * i), 0.999 * math.sin(0.4 * math.pi * i)) for i in range(5)]
DISC: Final = [*PENTAGON, *((x, 0.0) for x in (*_APART, *_TOGETHER[:2]))]  # (0, 0) carries them all: 5k+1 at k=1
CROWD: Final = [0.0] * 8  # duplicates, who ignore each other when self-exclusion goes by value

# Places where rounding favours the attacker: six records within reach of a seventh and, to the last digit, of no
# other; four records on one circle that a sweep by angles sees together only from the last of them.
HEXAGON: Final = [
    *[(0.900707975474482, 0.5884240744118252), (-0.5025163864955259, 0.7643825637604899)] * 5,
    *[(-1.356513089268007, -0.3628661362404154), (-0.8072854300704801, -1.666073325589985)] * 5,
    *[(0.5959389318995277, -1.8420318149386499), (1.449935634672009, -0.7147831149377445)] * 5,
    *[(FAR_DISTANCE * i, 0.0) for i in range(1, 9)],
    *[(-FAR_DISTANCE, 0.0)] * 8,
]
CIRCLE: Final = World(
    (
        (2.6392087301811333, -0.17250185753609004),
        (1.254983351895187, 0.6094291294493848),
        (-0.033679449989123755, -0.6430804714512026),
        (2.4976306472479544, -1.6558252126919273),
        (FAR_DISTANCE, FAR_DISTANCE),
    ),
    5,
)

# Worlds, with the radius in plain Euclid
PATH: Final = World(tuple((float(x),) for x in range(7)), 4)
SMALL_PLUS: Final = World(((0.0, 0.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0)), 5)
BRIDGE: Final = World(((0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 0.0), (9.0, 9.0)), 5)
PLUS: Final = World(((0.0, 0.0), (2.0, 0.0), (-2.0, 0.0), (0.0, 2.0), (0.0, -2.0), (9.0, 9.0)), 5)
DIAMOND: Final = World(((1.0, 2.0), (0.0, 2.0), (1.0, 1.0), (1.0, 3.0), (2.0, 2.0), (0.0, 0.0)), 5)
ROW: Final = World(((0.0, 0.0), (3.0, 0.0), (6.0, 0.0), (9.0, 0.0), (20.0, 0.0)), 7)


QUICK_TRIALS: Final = 8_000
ROUNDED: Final = "global, where rounding favours the attacker"
PURE, CONCENTRATED = Loss("1"), Loss.zcdp("1/2")
APPROXIMATE, WIDE = Loss("1", delta="1e-6"), Loss("1/4", delta="1/5")
SLACK: Final = 2


def attack(mechanism: str, quick: bool) -> Iterator[Finding]:
    """The laws of answers, and what their noise hides."""
    here = {name: case for name, case in SOUND.items() if case[0].mechanism == mechanism}
    for name, (asked, *tables) in here.items():
        first, second = (_law(asked, each) for each in tables)
        yield audit_law(first, second, claimed=asked.loss, name=name)
    for name, (asked, *tables) in here.items():
        if name in DRAWN or not quick:
            samplers = [replay_sampler(partial(_answer, asked, _points(each))) for each in tables]
            trials = QUICK_TRIALS if quick else TRIALS
            yield audit(*samplers, claimed=asked.loss, trials=trials, name=f"{name}, by draws")
    yield from _BOUNDS[mechanism]()
    for name in (name for name in here if name in SHORTENED):
        asked, *tables = SOUND[name]
        first, second = (_law(asked, each, ShortNoise) for each in tables)
        yield audit_law(first, second, claimed=asked.loss, name=f"broken: a tenth short, {name}", expected=True)


def broken_laws() -> Iterator[Finding]:
    first, second = _broken_by_value([0.5, *CROWD]), _broken_by_value([FAR_DISTANCE, *CROWD])
    yield audit_law(first, second, claimed=PURE, name="broken: leaves out itself by value", expected=True)
    asked, name = SOUND[ROUNDED][0], "broken: 5k + 1 in spite of rounding"
    first, second = (_broken_strict(asked, each) for each in _ON_HEXAGON)
    yield audit_law(first, second, claimed=asked.loss, name=name, expected=True)


def _extension(neighbours: int, loss: Loss) -> OneSidedCount:
    return OneSidedCount(neighbours=neighbours, radius=1.0, loss=loss, slack=SLACK, normalise=False)


def _global(neighbours: int, loss: Loss) -> GlobalCount:
    return GlobalCount(neighbours=neighbours, radius=1.0, loss=loss, normalise=False)


def _points(records: Any) -> Points:
    values = np.array(records, dtype=np.float64)
    return Points.from_array(values[:, None] if values.ndim == 1 else values, name="made-up")


_ON_STAR: Final = [0.0, *STAR], [-FAR_DISTANCE, *STAR]
_ON_LINE: Final = [0.0, *LINE], [-FAR_DISTANCE, *LINE]
_ON_DISC: Final = [(0.0, 0.0), *DISC], [(-FAR_DISTANCE, 0.0), *DISC]
_ON_HEXAGON: Final = [(0.04671127270200095, -0.53882462558908), *HEXAGON], [(0.0, -FAR_DISTANCE), *HEXAGON]
SOUND: Final[dict[str, tuple[RadiusCount[Counted], Any, Any]]] = {
    "extension, pure": (_extension(1, PURE), *_ON_STAR),
    "extension, pure, contested": (_extension(1, PURE), *_ON_DISC),
    "extension, zCDP": (_extension(1, CONCENTRATED), *_ON_STAR),
    "extension, approximate": (_extension(1, WIDE), *_ON_STAR),
    "global, Laplace on a line": (_global(3, PURE), *_ON_LINE),
    "global, Laplace on a disc": (_global(1, PURE), *_ON_DISC),
    "global, Gaussian": (_global(3, CONCENTRATED), *_ON_LINE),
    "smooth, Laplace": (SmoothCount(neighbours=3, radius=1.0, loss=APPROXIMATE, normalise=False), *_ON_LINE),
    ROUNDED: (GlobalCount(neighbours=5, radius=1.0, loss=Loss("2")), *_ON_HEXAGON),
}
DRAWN: Final = ("extension, pure",)
SHORTENED: Final = {
    "extension, pure",
    "extension, zCDP",
    "extension, approximate",
    "global, Laplace on a line",
    "global, Gaussian",
}


def _answer(query: RadiusCount[Counted], points: Points, noise: Noise) -> int:
    return query.answer(points, noise).value


def _law(query: RadiusCount[Counted], records: Any, through: Callable[[Noise], Noise] = lambda noise: noise) -> Law:
    points = _points(records)
    return law_of(lambda noise: query.answer(points, through(noise)).value)


# The exact answer


def oracles() -> Iterator[Finding]:
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
        inliers, hidden = partial(_inliers, neighbours=neighbours), partial(_hidden, _extension(neighbours, PURE))
        yield audit_bound(hidden, inliers, world, name=f"extension: what its noise hides, on a {place}")
    yield from _solver_off(SMALL_PLUS, 1)
    yield from _solver_off(BRIDGE, SLACK + 1, LARGE_TABLE_RECORDS)
    yield _certificates(0.0)
    yield _certificates(float(STEP), expected=True)
    yield _certified_steps(0)
    yield _certified_steps(1, expected=True)


def _solver_off(world: World, neighbours: int, beside: int = 0) -> Iterator[Finding]:
    """Whether the noise hides one record even where the solver is as far off as it may be, on one table and not on the
    other, and rounding favours the attacker. With `beside` records at another place the table is a large one, whose
    values may be further off; the noise of a small one does not hide that."""
    query, place = _extension(neighbours, PURE), np.full((beside, 2), 1000.0)
    gap = GAP + float(gap_steps(world.size + beside, neighbours, SLACK) * STEP)
    exact = {table: _inliers(np.array(table), neighbours) for table in world.tables()}
    off = {table: (_steps(world.size - value), _steps(world.size - value + gap)) for table, value in exact.items()}
    shown = max(off[other][1] - off[table][0] for table in exact for other in world.neighbours(table))
    small = np.array(next(world.tables()))
    name = "extension: what its noise hides, the solver off by as much as it may be"
    yield _compare_steps(name, shown, _hidden(query, np.concatenate([small, place])))
    if beside:
        yield _compare_steps(f"broken: noise of a small table, {name}", shown, _hidden(query, small), expected=True)


def _compare_steps(name: str, shown: int, hidden: float, *, expected: bool = False) -> Finding:
    claimed = hidden / float(STEP)
    return Finding(
        name=name,
        way=Way.WORLD,
        claimed=claimed,
        lower=float(shown),
        caught=shown > claimed * (1 + ROUNDING),
        expected=expected,
        text=f"the steps move by {shown}, the noise hides {claimed:.6g}",
    )


def _certificates(error: float, *, expected: bool = False) -> Finding:
    """Whether a certificate that whole numbers check supports the value before noise, on every table of a world."""

    def is_supported(values: Floats) -> bool:
        bounds = certify_exactly(build_tree(values, 1.0), 1, SLACK, GAP)
        return replace(bounds, value=bounds.value + error).supports(Fraction(GAP))

    tables = (np.array(table) for table in SMALL_PLUS.tables())
    name = f"{'broken: a step too high, ' if expected else ''}extension: exact certificates of its value"
    return audit_exact(is_supported, lambda _: True, tables, name=name, expected=expected)


def _certified_steps(error: int, *, expected: bool = False) -> Finding:
    """Whether what a certified count adds noise to is the number by brute force, in steps, on every table of a world
    where the two are the same: with as much slack as records, everybody with a neighbour is served."""

    def count(values: Floats) -> int:
        return exact_steps(values, 1.0, 1, len(values), normalise=False, certify=True) + error

    tables = (np.array(table) for table in SMALL_PLUS.tables())
    name = f"{'broken: a step too many, ' if expected else ''}extension: certified steps"
    return audit_exact(count, lambda values: 128 * _brute_count(values), tables, name=name, expected=expected)


def _steps(count: float) -> int:
    return math.floor(count / STEP + Fraction(1, 2))


def _global_bounds() -> Iterator[Finding]:
    outliers, hidden = partial(_outliers, radius=1.0), partial(_hidden, _global(1, PURE))
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
    query = SmoothCount(neighbours=1, radius=radius, loss=APPROXIMATE, normalise=normalise)
    truth = partial(_outliers, radius=radius, normalise=normalise)
    beta = smooth_beta(APPROXIMATE.epsilon, APPROXIMATE.delta, least=1, step=STEP)
    name = f"smooth: what its noise hides, {place}"
    return audit_bound(partial(_hidden, query), truth, world, beta=beta + 1e-12, name=name)


def _inliers(values: Floats, neighbours: int) -> float:
    return certify(build_tree(values, 1.0), neighbours, SLACK, GAP).lower


def _hidden(query: RadiusCount[Counted], values: Floats) -> float:
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


def _broken_strict(query: RadiusCount[Counted], records: Any) -> Law:
    """BROKEN: 5k + 1, which is true of real numbers in the plane and not of rounded distances."""
    n, strict = len(records), global_bound(len(records), 2, query.neighbours)
    count = count_outliers(records, query.radius, query.neighbours, normalise=query.normalise)
    return _noisy(count, n, calibrate(strict, query.loss, step=Fraction(1)))


def _noisy(count: int, n: int, noise: Additive) -> Law:
    return law_of(lambda source: min(max(count + noise.draw(source), 0), n))


# Broken bounds on what one record can do: each a mistake that was made in print, or nearly by us, on the way from what
# one ball can hold to smooth sensitivity

Cover = Callable[[Floats, NDArray[np.bool_], float], int]
BETA: Final = 0.3


def broken_bounds() -> Iterator[Finding]:
    """Every broken bound, on a world that shows it."""
    for name, (cover, world) in BROKEN_COVERS.items():
        yield audit_bound(
            partial(_local, cover=cover),
            partial(count_outliers, radius=1.0, neighbours=1, normalise=False),
            world,
            name=f"broken: {name}",
            expected=True,
        )
    for name, (bound, world, radius) in BROKEN_SMOOTHING.items():
        yield audit_bound(
            partial(bound, radius=radius, beta=BETA),
            partial(count_outliers, radius=radius, neighbours=1, normalise=False),
            world,
            beta=BETA,
            name=f"broken: {name}",
            expected=True,
        )


def ladder(values: Floats, radius: float, cover: Cover, *, capped: bool = True) -> list[int]:
    """U_0, U_1 … at k=1 from a bound `cover(values, members, radius)` on the members that fit one ball."""
    n, dimension = values.shape
    gaps = np.sqrt(((values[:, None] - values) ** 2).sum(axis=2))
    degree = np.count_nonzero(gaps <= radius, axis=1) - 1
    highest = global_bound(n, dimension, 1) if capped else 2 * n + 1
    return [
        min(highest, max(cover(values, np.abs(degree - level) <= t, radius) for level in (0, 1)) + t + 1)
        for t in range(n + 1)
    ]


def _local(values: Floats, *, cover: Cover) -> float:
    return ladder(values, 1.0, cover)[0]


def smooth_maximum(values: Floats, radius: float, beta: float, *, cover: Cover) -> float:
    """The largest of e^(-beta t) U_t."""
    return max(bound * math.exp(-beta * t) for t, bound in enumerate(ladder(values, radius, cover)))


def exact_cover(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """The most members in one ball, in one or two dimensions."""
    reach, chosen = (radius * (1 + 1e-9)) ** 2, values[members]
    if not len(chosen):
        return 0
    return int(window(np.sort(chosen[:, 0]), 4 * reach) if values.shape[1] == 1 else sweep(chosen, reach))


def _broken_skip_last(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: `i < |P|` with i from 1 never comes to the last of P (Algorithm 1 of the paper)."""
    ordered = np.sort(values[members, 0])[:-1]
    return int(window(ordered, 4 * (radius * (1 + 1e-9)) ** 2))


def _broken_at_records(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: only balls around records of the table, though a new record may stand anywhere (the Japanese bound)."""
    gaps = np.sqrt(((values[:, None] - values[members]) ** 2).sum(axis=2))
    return int(np.count_nonzero(gaps <= radius, axis=1).max())


def _broken_centres(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: a new member brings a new centre, and with it more than one."""
    gaps = np.sqrt(((values[members][:, None] - values[members]) ** 2).sum(axis=2))
    return int(np.count_nonzero(gaps <= 2 * radius, axis=1).max(initial=0))


def _broken_switch(values: Floats, members: NDArray[np.bool_], radius: float) -> int:
    """BROKEN: exact while there are few members, a rough bound from then on."""
    many = int(np.count_nonzero(members))
    return many if many > 3 else exact_cover(values, members, radius)


def _broken_cap(values: Floats, radius: float, beta: float) -> float:
    """BROKEN: stops by the capped bound but keeps terms that are not capped (Algorithm 2 of the paper)."""
    highest, best = global_bound(len(values), values.shape[1], 1), 0.0
    for t, bound in enumerate(ladder(values, radius, exact_cover, capped=False)):
        if best >= highest * math.exp(-beta * t):
            break
        best = max(best, bound * math.exp(-beta * t))
    return best


BROKEN_COVERS: Final[dict[str, tuple[Cover, World]]] = {
    "Algorithm 1 skips the last record": (_broken_skip_last, PATH),
    "the Japanese bound on a line": (_broken_at_records, PATH),
    "the Japanese bound in the plane": (_broken_at_records, DIAMOND),
}
BROKEN_SMOOTHING: Final[dict[str, tuple[Callable[..., float], World, float]]] = {
    "cover counted around its own members": (partial(smooth_maximum, cover=_broken_centres), PLUS, 1.2),
    "exact cover if small, else a rough bound": (partial(smooth_maximum, cover=_broken_switch), ROW, 1.0),
    "Algorithm 2 caps half of its terms": (_broken_cap, PATH, 1.0),
}


# Labels in distances: a record is a number and one of three labels; the oracle takes the distance as it is stated, from
# the cells themselves

WARDS: Final = ("A", "B", "C")
WEIGHT: Final = 1.25
REACH: Final = 0.9  # with a mean over two columns: labels that differ are 0.88 apart, places one apart 0.71
SCHEMA: Final = Schema(columns=(Column("x"), Column("ward", categories=WARDS, weight=WEIGHT)))
# The first is near the second and the third, which differ in both columns and are not near each other; the last is far.
LABELLED: Final = World(((0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, 2.0), (9.0, 2.0)), 4)
PLENTY: Final = 1000  # a degree cap that never binds


def label_findings() -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    yield audit_exact(_count_labelled, _brute_labelled, LABELLED.arrays(), name="exact counts with labels in distances")
    tally = Tally(neighbours=1, slack=SLACK, columns=2)
    yield audit_bound(
        lambda _: float(tally.sensitivity),
        partial(_labelled_steps, tally),
        LABELLED,
        name="labels: what the noise hides",
    )
    codes = "broken: labels taken for numbers"
    yield audit_exact(
        partial(_count_labelled, points=_as_numbers), _brute_labelled, LABELLED.arrays(), name=codes, expected=True
    )
    wide = Tally(neighbours=1, slack=PLENTY)
    yield audit_exact(
        lambda values: _labelled_steps(wide, values) / wide.unit,
        _brute_labelled,
        LABELLED.arrays(),
        name="broken: a mean over coordinates instead of columns",
        expected=True,
    )


def _labelled_points(values: Any) -> Points:
    places, wards = np.array(values, dtype=np.float64).T
    cells = {"x": float_array(places), "ward": text_array(WARDS[int(ward)] for ward in wards)}
    return Table(arrow=load("pyarrow").table(cells), schema=SCHEMA, name="made-up").points(labels=True)  # (W)


def _as_numbers(values: Any) -> Points:
    """BROKEN: the first and the last of three labels are twice as far apart."""
    return Points.from_array(np.array(values) * np.array([1.0, WEIGHT]), columns=("x", "ward"), name="made-up")


def _count_labelled(values: Floats, points: Any = _labelled_points) -> int:
    query = OneSidedCount(neighbours=1, radius=REACH, slack=PLENTY, loss=PURE)
    return query.answer(points(values), ScriptedNoise()).value


def _labelled_steps(tally: Tally, values: Floats) -> float:
    return float(tally.steps(_labelled_points(values).values, REACH))


def _brute_labelled(values: Floats) -> int:
    """Every record beside every other one, by the distance that is stated."""
    records = [tuple(row) for row in values.tolist()]

    def near(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
        apart = (one[0] - other[0]) ** 2 + WEIGHT**2 * (one[1] != other[1])
        return math.sqrt(apart / 2) <= REACH

    return sum(not any(near(one, other) for j, other in enumerate(records) if j != i) for i, one in enumerate(records))
