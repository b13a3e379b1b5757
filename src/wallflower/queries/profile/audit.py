"""Attacks on the profile: what we release, and broken ones that an audit has to catch.

The law of cube noise is added up here from its definition; that the sampler has it is a matter of tests/.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any, Final

import numpy as np

from wallflower.audit import Attack, Finding, Floats, World, audit_bound, audit_exact
from wallflower.audit.answers import Accounts, Case, LawCheck, audit_cases, cube, exponential
from wallflower.audit.laws import Law, audit_law
from wallflower.data import Points
from wallflower.neighbours.radii import USUAL, middle_of, outlier_curve
from wallflower.privacy import Loss
from wallflower.queries.profile import Profile
from wallflower.queries.profile.exact import exact_profile

FAR: Final = 1e4
# Three records in one place are near each other at every radius, until one moves away: then all three are outliers.
REST: Final = [0.0, 0.0, *(FAR * place for place in range(1, 4)), *[5 * FAR] * 4]
TOGETHER, APART = [0.0, *REST], [9 * FAR, *REST]
ASKED: Final = Profile(neighbours=2, radii=(0.5, 1.0), loss=Loss("4"), slack=2, normalise=False)
GRADED: Final = replace(ASKED, slack=None, graded=True)
PATH: Final = World(tuple((float(x),) for x in (0, 1, 2, 4)), 5)
BEYOND: Final = 16  # records: what is further out counts as there


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _law(query: Profile, records: list[float], short: Fraction = Fraction(1)) -> Law:
    """The chance of every released pair of numbers."""
    n = len(records)
    tally, scale = query.tally(n, 1), float(query.noise(n, 1).scale * short)
    curve = outlier_curve(np.array(records)[:, None], query.places, tally)
    edges = np.arange(-BEYOND, n + BEYOND + 1) * tally.unit - tally.unit // 2
    levels = np.arange(int(60 * scale) + 1)
    logs = 2 * np.log(2 * levels + 1) - levels / scale
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    inside = [_inside(edges - step, levels) for step in curve.tolist()]
    chances = np.einsum("s,as,bs->ab", weights, *inside)
    found: dict[Any, float] = {}
    for (a, b), chance in np.ndenumerate(chances):
        noisy = [(place - BEYOND) * tally.unit for place in (a, b)]
        output = tuple(query.finish(noisy, n, tally)["outliers"])
        found[output] = found.get(output, 0.0) + float(chance)
    return found


def _inside(edges: Any, levels: Any) -> Any:
    """Of each level, the share of a draw between two edges; the first and the last reach without end."""
    below = np.clip(edges[:, None] + levels, 0, 2 * levels + 1) / (2 * levels + 1)
    below[0], below[-1] = 0.0, 1.0
    return np.array([high - low for low, high in pairwise(below)])


def _attack_noise(quick: bool) -> Iterator[Finding]:
    for name, query in {"extension": ASKED, "graded": GRADED}.items():
        laws = [_law(query, records) for records in (TOGETHER, APART)]
        yield audit_law(*laws, claimed=query.loss, name=f"two radii, {name}")
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


WITHOUT_DRAWS: Final = frozenset({"columns", "scale", "slack"})
ADJACENT: Final = (
    Points.from_array(np.array(TOGETHER)[:, None]),
    Points.from_array(np.array(APART)[:, None]),
)
# One of two records in one place moves away, and at both radii both are outliers.
PAIRED: Final = (
    Points.from_array(np.array([[0.0], [0.0], [FAR], [FAR]])),
    Points.from_array(np.array([[-FAR], [0.0], [FAR], [FAR]])),
)
# The three that have company from a radius of 3.8 on make the curve fall there by as much as one record moves it.
CROSSING: Final = tuple(
    Points.from_array(np.array([[place], [0.0], [0.0], [FAR], [FAR], [FAR + 3.8], *([k * FAR] for k in (2, 3, 4))]))
    for place in (0.0, 9 * FAR)
)
SCRIPTED: Final = 200  # the scripted value of each geometric draw of a level
GRID_RADII: Final = frozenset(middle_of(USUAL, place) for place in range(101))
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
    ),
    Case(
        name="default radii",
        query=replace(ASKED, radii=None, normalise=True),
        tables=ADJACENT,
        parts=(replace(cube("curve", size=12, moves=3 * 128 + 1, epsilon=4, usual=SCRIPTED), noisy=()),),
        rho=Fraction(8),
        usual=SCRIPTED,
        is_smoothed=True,
    ),
    Case(
        name="two radii by outlier mass",
        query=Profile(neighbours=1, radii=(0.5, 1.0), loss=Loss("8"), graded=True, normalise=False),
        tables=PAIRED,
        parts=(cube("curve", size=2, moves=2, epsilon=8, usual=SCRIPTED),),
        rho=Fraction(32),
        usual=SCRIPTED,
        is_smoothed=True,
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
        laws=(LawCheck(parts=("radii",), least=0.8, seen=lambda value: value["radii"][0] > 3.7),),
    ),
    Case(
        name="radii for two shares",
        query=Profile(neighbours=2, shares=("1/3", "2/3"), loss=Loss("1"), slack=2, normalise=False),
        tables=(CROSSING[0], CROSSING[1]),
        parts=(exponential("radii", epsilon=1, moves=3 * 128 + 1, candidates=101**2),),
        rho=Fraction(1, 8),
        is_public=lambda value: GRID_RADII.issuperset(value["radii"]),
    ),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "noise": _attack_noise,
    "curve": _attack_curve,
    "exact": _attack_exact,
}
