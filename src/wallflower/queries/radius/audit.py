"""Attacks on the choice of a radius: what we release, and broken ones that an audit has to catch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike

from wallflower.audit import Attack, Finding, Floats, World, audit_bound, audit_exact
from wallflower.audit.answers import Accounts, Case, LawCheck, audit_cases, exponential, laplace
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.data import Points
from wallflower.neighbours.pairs import as_matrix
from wallflower.neighbours.radii import (
    DEFAULT_RADII,
    count_curve,
    curve_around,
    middle_radius,
    outlier_curve,
    pick_radii,
    radius_errors,
    radius_grid,
)
from wallflower.privacy import Loss
from wallflower.queries.radius import Radius

FAR_DISTANCE: Final = 1e4
# Three records in one place are near each other at every radius, until one moves away: then all three are outliers, at
# every radius. Three others have company from a radius of 3.8 on, so that there the curve falls by as much.
REST: Final = [
    0.0,
    0.0,
    FAR_DISTANCE,
    FAR_DISTANCE,
    FAR_DISTANCE + 3.8,
    2 * FAR_DISTANCE,
    3 * FAR_DISTANCE,
    4 * FAR_DISTANCE,
]
TOGETHER, APART = [0.0, *REST], [9 * FAR_DISTANCE, *REST]
ASKED: Final = Radius(
    neighbours=2,
    share=Fraction(6, 9),
    loss=Loss("1"),
    smallest=0.25,
    largest=4.0,
    slack=2,
    normalise=False,
    verify=False,
)
GRADED: Final = replace(ASKED, slack=None, graded=True)
PATH: Final = World(tuple((float(x),) for x in (0, 1, 2, 4)), 5)
GRID: Final = radius_grid(0.5, 4.0, 2)


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _law(query: Radius, records: list[float]) -> Law:
    values, tally = np.array(records)[:, None], query.tally(len(records), 1)
    shares, epsilon = [query.share], query.loss.epsilon
    curve = curve_around(values, query.grid, shares, tally, epsilon)
    return law_of(
        lambda noise: pick_radii(curve, len(values), query.grid, shares, tally, epsilon=epsilon, noise=noise)[0]
    )


def _attack_choice(quick: bool) -> Iterator[Finding]:
    for name, query in {"extension": ASKED, "graded": GRADED}.items():
        laws = [_law(query, records) for records in (TOGETHER, APART)]
        yield audit_law(*laws, claimed=query.loss, name=f"a radius, {name}")
    short = replace(ASKED, loss=Loss("10/9"))
    laws = [_law(short, records) for records in (TOGETHER, APART)]
    yield audit_law(*laws, claimed=ASKED.loss, name="broken: a tenth short", expected=True)


def _attack_curve(quick: bool) -> Iterator[Finding]:
    for name, query in {"extension": ASKED, "graded": GRADED}.items():
        tally = query.tally(PATH.size, 1)
        curve = partial(_curve, query=query)
        yield audit_bound(partial(_constant, tally.share), curve, PATH, name=f"the whole curve, {name}")
    one = partial(_curve, query=ASKED)
    yield audit_bound(partial(_constant, 1.0), one, PATH, name="broken: the curve moves by 1", expected=True)


def _constant(number: float, values: Floats) -> float:
    return number


def _curve(values: Floats, *, query: Radius) -> Any:
    tally = query.tally(len(values), 1)
    return outlier_curve(values, GRID, tally) / tally.unit


def exact_radius(
    points: ArrayLike, share: Fraction, radii: Sequence[float], neighbours: int, *, normalise: bool = True
) -> float:
    """Return the first radius of the grid whose error is the least, without privacy.

    >>> exact_radius([[0.0], [1.0], [2.0], [9.0]], Fraction(1, 4), (0.5, 1.0, 2.0, 8.0), 1)
    0.5
    """
    values = as_matrix(points)
    curve = np.array(count_curve(values, radii, neighbours, normalise=normalise), dtype=np.int64)
    errors = radius_errors(curve * share.denominator, share.numerator * len(values))
    return radii[int(np.argmin(errors))]


def _attack_oracle(quick: bool) -> Iterator[Finding]:
    cases = list(PATH.arrays())
    for share in (Fraction(1, 5), Fraction(3, 5)):
        exact = partial(exact_radius, share=share, radii=GRID, neighbours=1, normalise=False)
        yield audit_exact(exact, partial(_brute, share=share), cases, name=f"exact radius, a share of {share}")
    wrong = partial(exact_radius, share=Fraction(3, 5), radii=GRID, neighbours=2, normalise=False)
    brute = partial(_brute, share=Fraction(3, 5))
    yield audit_exact(wrong, brute, cases, name="broken: one neighbour more", expected=True)


def _brute(values: Floats, share: Fraction) -> float:
    """Every record beside every other one, radius by radius, and the first that misses least."""
    places = values[:, 0].tolist()

    def outliers(radius: float) -> int:
        return sum(sum(abs(one - other) <= radius for other in places) - 1 < 1 for one in places)

    found = [outliers(radius) for radius in GRID]
    wanted = share * len(places)
    missed = [
        max(Fraction(0), wanted - q, after - wanted) for q, after in zip(found, [*found[1:], found[-1]], strict=True)
    ]
    return GRID[min(range(len(GRID)), key=lambda at: (missed[at], at))]


# Accounts of what an answer draws


WITHOUT_DRAWS: Final = frozenset({"columns", "scale", "smallest", "largest", "slack"})
ADJACENT: Final = tuple(Points.from_array(np.array(records)[:, None]) for records in (TOGETHER, APART))
RADII: Final = 101  # of the public grid
FALLING: Final = 3.7  # beyond this radius the curve falls
GRID_RADII: Final = frozenset(middle_radius(DEFAULT_RADII, place) for place in range(RADII))
CHOICE, COUNTED = Fraction(3, 4), Fraction(1, 4)  # of ε
RHO: Final = CHOICE**2 / 8 + COUNTED**2 / 2


def _is_on_grid(value: dict[str, Any]) -> bool:
    return value["radius"] in GRID_RADII


def _is_beyond(value: dict[str, Any]) -> bool:
    return bool(value["radius"] > FALLING)


CASES: Final[tuple[Case, ...]] = (
    Case(
        name="a radius",
        query=replace(ASKED, smallest=None, largest=None, verify=True),
        tables=(ADJACENT[0], ADJACENT[1]),
        parts=(
            exponential("radius", epsilon=CHOICE, moves=3 * 128 + 1, candidates=RADII),
            laplace("outliers", moves=3 * 128 + 1, epsilon=COUNTED),
        ),
        rho=RHO,
        is_public=_is_on_grid,
        laws=(
            LawCheck(parts=("radius",), least=0.84, most=0.85, seen=_is_beyond),
            LawCheck(parts=("outliers",), least=0.9, seen=lambda value: value["outliers"]),
        ),
    ),
    Case(
        name="a radius, not verified",
        query=replace(ASKED, smallest=None, largest=None),
        tables=(ADJACENT[0], ADJACENT[1]),
        parts=(exponential("radius", epsilon=1, moves=3 * 128 + 1, candidates=RADII),),
        rho=Fraction(1, 8),
        is_public=_is_on_grid,
        laws=(LawCheck(parts=("radius",), least=0.84, most=0.85, seen=_is_beyond),),
    ),
    Case(
        name="a radius by outlier mass",
        query=replace(GRADED, smallest=None, largest=None, normalise=True, verify=True),
        tables=(ADJACENT[0], ADJACENT[1]),
        parts=(
            exponential("radius", epsilon=CHOICE, moves=2 * 2, candidates=RADII),
            laplace("mass", moves=2 * 2, epsilon=COUNTED),
        ),
        rho=RHO,
        is_public=_is_on_grid,
        laws=(
            LawCheck(parts=("radius",), least=0.42, most=0.43, seen=_is_beyond),
            LawCheck(parts=("mass",), least=0.99, seen=lambda value: value["mass"]),
        ),
    ),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "choice": _attack_choice,
    "curve": _attack_curve,
    "exact": _attack_oracle,
}
