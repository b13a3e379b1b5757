"""Attacks on the profile: what we release, and broken ones that an audit has to catch.

The law of cube noise is added up here from its definition; that the sampler has it is a matter of tests/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from wallflower.audit import Attack, Finding, Floats, World, audit_bound, audit_exact
from wallflower.audit.answers import Accounts, Case, LawCheck, Recorder, audit_cases, cube, exponential, laplace
from wallflower.audit.laws import Law, PartialLaw, audit_law
from wallflower.data import Points
from wallflower.errors import ParameterError
from wallflower.neighbours.pairs import as_matrix
from wallflower.neighbours.radii import DEFAULT_RADII, count_curve, middle_radius, outlier_curve
from wallflower.privacy import Loss
from wallflower.queries.profile import Profile

FAR_DISTANCE: Final = 1e4
# Three records in one place are near each other at every radius, until one moves away: then all three are outliers.
REST: Final = [0.0, 0.0, *(FAR_DISTANCE * place for place in range(1, 4)), *[5 * FAR_DISTANCE] * 4]
TOGETHER, APART = [0.0, *REST], [9 * FAR_DISTANCE, *REST]
ASKED: Final = Profile(neighbours=2, radii=(0.5, 1.0), loss=Loss("4"), slack=2, normalise=False)
GRADED: Final = replace(ASKED, slack=None, graded=True)
PATH: Final = World(tuple((float(x),) for x in (0, 1, 2, 4)), 5)
BEYOND: Final = 12  # records
CORNERS: Final = 5  # pairs of numbers of which one is tried at both ends
SCRIPTED: Final = 200  # the scripted value of each geometric draw of a level
CROWDING_MOVES: Final = (4 + 5 + 2) * 128 + 4  # of a test of crowding by four neighbours


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _law(query: Profile, records: list[float], short: Fraction = Fraction(1)) -> Law:
    """The chance of every released pair of numbers."""
    return law_of_two_radii(query, query.view(Points.from_array(np.array(records)[:, None])), short)


def law_of_two_radii(query: Profile, view: Any, short: Fraction = Fraction(1)) -> Law:
    """The law of an answer of two numbers, by the law of its noise: P(z) proportional to exp(-max|z| / scale).

    The scale is the one that `answer` asks for. Noisy numbers are rounded to whole records, so that all noise that
    rounds to the same pair leads to the same answer; `answer` itself is asked what each pair leads to, with noise at
    either end of the pair. Pairs further out than any number of records by more than `BEYOND` are the rest.
    """
    n, tally = view.n, query.tally(view.n, 1)
    noise = Recorder(usual=SCRIPTED)
    query.answer(view, noise)
    scale = float(short / noise.draws[0].scale)
    curve = outlier_curve(view.values, query.grid, tally).tolist()
    edges = np.arange(-BEYOND, n + BEYOND + 2) * tally.unit - tally.unit // 2
    levels = np.arange(int(60 * scale) + 1)
    logs = 2 * np.log(2 * levels + 1) - levels / scale
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    chances = np.einsum("s,as,bs->ab", weights, *(_inside(edges - step, levels) for step in curve))
    law: dict[Any, float] = {}
    for place, chance in np.ndenumerate(chances):
        low, high = (
            [int(edges[at + end]) - end - step for at, step in zip(place, curve, strict=True)] for end in (0, 1)
        )
        output = _answer_with(query, view, low)
        if sum(place) % CORNERS == 0 and _answer_with(query, view, high) != output:
            raise ParameterError("law: noise that rounds to the same numbers leads to two answers. Use finer pairs.")
        law[output] = law.get(output, 0.0) + float(chance)
    return PartialLaw(law, max(0.0, 1 - float(chances.sum())))


def _answer_with(query: Profile, view: Points, noise: list[int]) -> Any:
    """The numbers of the real answer with this cube noise: its level by one draw, then each number within it."""
    level = max(map(abs, noise))
    numbers = {1: level, 2: 0, 3: 0} | {4 + place: number + level for place, number in enumerate(noise)}
    return tuple(query.answer(view, Recorder(numbers=numbers))["outliers"])


def _inside(edges: Any, levels: Any) -> Any:
    """Of each level, the share of a draw between two edges."""
    below = np.clip(edges[:, None] + levels, 0, 2 * levels + 1) / (2 * levels + 1)
    return np.array([high - low for low, high in pairwise(below)])


def _attack_noise(quick: bool) -> Iterator[Finding]:
    """By the extension it is among the accounts."""
    laws = [_law(GRADED, records) for records in (TOGETHER, APART)]
    yield audit_law(*laws, claimed=GRADED.loss, name="two radii, graded")
    laws = [_law(ASKED, records, Fraction(9, 10)) for records in (TOGETHER, APART)]
    yield audit_law(*laws, claimed=ASKED.loss, name="broken: a tenth short", expected=True)


def _attack_curve(quick: bool) -> Iterator[Finding]:
    for name, query in {"extension": ASKED, "graded": GRADED}.items():
        yield audit_bound(partial(_hidden, query), partial(_curve, query), PATH, name=f"what its noise hides, {name}")
    half = replace(ASKED, loss=Loss("8"))
    hidden = partial(_hidden, half, epsilon=4.0)
    yield audit_bound(hidden, partial(_curve, ASKED), PATH, name="broken: each radius at half the noise", expected=True)


def _hidden(query: Profile, values: Floats, epsilon: float | None = None) -> float:
    """By how many records the noise of an answer lets one record move the curve."""
    made = query.noise(len(values), 1)
    return float(made.scale * made.step) * (epsilon or float(query.loss.epsilon))


def _curve(query: Profile, values: Floats) -> Any:
    tally = query.tally(len(values), 1)
    return outlier_curve(values, (1.0, 2.0), tally) / tally.unit


def exact_profile(points: ArrayLike, radii: Sequence[float], neighbours: int, *, normalise: bool = True) -> list[int]:
    """Return the number of outliers at each radius, without privacy.

    >>> exact_profile([[0.0], [1.0], [2.0], [9.0]], (0.5, 1.0, 8.0), 1)
    [4, 1, 0]
    """
    return count_curve(as_matrix(points), radii, neighbours, normalise=normalise)


def _attack_exact(quick: bool) -> Iterator[Finding]:
    cases = list(PATH.arrays())
    exact = partial(exact_profile, radii=(1.0, 2.0), neighbours=1, normalise=False)
    yield audit_exact(exact, _brute, cases, name="exact profile")
    wrong = partial(exact_profile, radii=(1.0, 1.5), neighbours=1, normalise=False)
    yield audit_exact(wrong, _brute, cases, name="broken: another radius", expected=True)


def _brute(values: Floats) -> list[int]:
    places = range(len(values))
    near = {(i, j): abs(float(values[i, 0] - values[j, 0])) for i, j in product(places, places) if i != j}
    return [sum(all(near[i, j] > radius for j in places if j != i) for i in places) for radius in (1.0, 2.0)]


# Accounts of what an answer draws


WITHOUT_DRAWS: Final = frozenset({"columns", "scale"})
ADJACENT: Final = (
    Points.from_array(np.array(TOGETHER)[:, None]),
    Points.from_array(np.array(APART)[:, None]),
)
# One of two records in one place moves away, and at both radii both are outliers.
PAIRED: Final = (
    Points.from_array(np.array([[0.0], [0.0], [FAR_DISTANCE], [FAR_DISTANCE]])),
    Points.from_array(np.array([[-FAR_DISTANCE], [0.0], [FAR_DISTANCE], [FAR_DISTANCE]])),
)
# The three that have company from a radius of 3.8 on make the curve fall there by as much as one record moves it.
CROSSING: Final = tuple(
    Points.from_array(
        np.array(
            [
                [place],
                [0.0],
                [0.0],
                [FAR_DISTANCE],
                [FAR_DISTANCE],
                [FAR_DISTANCE + 3.8],
                *([k * FAR_DISTANCE] for k in (2, 3, 4)),
            ]
        )
    )
    for place in (0.0, 9 * FAR_DISTANCE)
)
# Five records have four neighbours, and no more, until one of them moves away.
CROWDED: Final = (
    Points.from_array(np.array([*[[0.0]] * 5, [9.0], [20.0]])),
    Points.from_array(np.array([*[[0.0]] * 4, [30.0], [9.0], [20.0]])),
)
GRID_RADII: Final = frozenset(middle_radius(DEFAULT_RADII, place) for place in range(101))
CASES: Final[tuple[Case, ...]] = (
    Case(
        name="two radii",
        query=ASKED,
        is_public=lambda value: tuple(value["radii"]) == ASKED.radii and len(value["outliers"]) == len(value["radii"]),
        tables=ADJACENT,
        parts=(cube("curve", size=2, moves=3 * 128 + 1, epsilon=4, usual=SCRIPTED),),
        rho=Fraction(8),
        usual=SCRIPTED,
        is_smoothed=True,
        laws=(LawCheck(parts=("curve",), least=0.9, law=law_of_two_radii),),
    ),
    Case(
        name="default radii",
        query=replace(ASKED, radii=None, normalise=True),
        tables=ADJACENT,
        parts=(replace(cube("curve", size=12, moves=3 * 128 + 1, epsilon=4, usual=SCRIPTED), noisy=()),),
        rho=Fraction(8),
        usual=SCRIPTED,
        is_smoothed=True,
        without_law={"curve": "noise of twelve numbers has too many branches; the laws of two radii run the same code"},
    ),
    Case(
        name="two radii, degree cap by the test",
        query=Profile(neighbours=4, radii=(0.5, 1.0), loss=Loss("60"), normalise=False),
        tables=CROWDED,
        parts=(
            laplace("crowding", moves=CROWDING_MOVES, epsilon=Fraction(60, 7)),
            cube("curve", size=2, moves=5 * 128 + 1, epsilon=Fraction(360, 7), usual=SCRIPTED),
        ),
        rho=Fraction(1800),
        usual=SCRIPTED,
        is_smoothed=True,
        laws=(LawCheck(parts=("crowding",), least=0.453, most=0.454, seen=lambda value: value["crowding"] > 0.9),),
        without_law={"curve": "as of two radii, at the loss that the test leaves"},
    ),
    Case(
        name="two radii by outlier mass",
        query=Profile(neighbours=1, radii=(0.5, 1.0), loss=Loss("8"), graded=True, normalise=False),
        tables=PAIRED,
        parts=(cube("curve", size=2, moves=2, epsilon=8, usual=SCRIPTED),),
        rho=Fraction(32),
        usual=SCRIPTED,
        is_smoothed=True,
        laws=(LawCheck(parts=("curve",), least=0.98, rare=(1e-4, 1e-5)),),
    ),
    Case(
        name="one radius by outlier mass",
        query=Profile(neighbours=1, radii=(0.5,), loss=Loss("8"), graded=True, normalise=False),
        tables=PAIRED,
        parts=(cube("curve", size=1, moves=2, epsilon=8, usual=SCRIPTED),),
        rho=Fraction(32),
        usual=SCRIPTED,
        laws=(LawCheck(parts=("curve",), least=0.99, rare=(1e-6, 1e-6)),),
    ),
    Case(
        name="a radius for a share",
        query=Profile(neighbours=2, shares=("2/3",), loss=Loss("1"), slack=2, normalise=False),
        tables=(CROSSING[0], CROSSING[1]),
        parts=(exponential("radii", epsilon=1, moves=3 * 128 + 1, candidates=101),),
        rho=Fraction(1, 8),
        is_public=lambda value: GRID_RADII.issuperset(value["radii"]),
        laws=(LawCheck(parts=("radii",), least=0.84, most=0.85, seen=lambda value: value["radii"][0] > 3.7),),
    ),
    Case(
        name="radii for two shares",
        query=Profile(neighbours=2, shares=("1/3", "2/3"), loss=Loss("1"), slack=2, normalise=False),
        tables=(CROSSING[0], CROSSING[1]),
        parts=(exponential("radii", epsilon=1, moves=3 * 128 + 1, candidates=101**2),),
        rho=Fraction(1, 8),
        is_public=lambda value: GRID_RADII.issuperset(value["radii"]),
        without_law={"radii": "10,201 candidates; their errors on both tables are compared, which bounds the law"},
    ),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "noise": _attack_noise,
    "curve": _attack_curve,
    "exact": _attack_exact,
}
