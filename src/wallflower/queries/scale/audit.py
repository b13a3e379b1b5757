"""Attacks on the choice of spreads: what we release, and broken ones that an audit has to catch.

The pairing is secret and even, and the proof compares laws pairing by pairing, with the replaced record at its place.
So laws are compared for one pairing, the first half of the records with the second; their means are closer.  (P)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Attack, Finding, Floats, Way, audit_exact
from wallflower.audit.answers import (
    Accounts,
    Case,
    LawCheck,
    audit_cases,
    cube,
    exponential,
    secret_pairing,
    uniform,
)
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.audit.scripts import InOrder
from wallflower.data import Points
from wallflower.mechanisms import choose_together
from wallflower.neighbours.spreads import (
    BINS,
    DIVISORS,
    EDGES,
    Ints,
    histogram,
    interval,
    middle_of_bin,
    quantile_errors,
)
from wallflower.privacy import Loss
from wallflower.queries.scale import Scale
from wallflower.queries.scale.locations import Cells
from wallflower.schema import Column, Schema

ONE: Final = Scale(loss=Loss("1"))
POOLED: Final = Scale(loss=Loss("1"), units=(("a", "b"),))
HALF, UPPER = Fraction(1, 2), Fraction(3, 4)
SITES: Final = (0.0, 1.0, 2.0, 5.0)
# One record makes a difference of 1 one of 15: the last candidate, which missed by 1, misses no more, and all below 14,
# which missed nothing, miss by 1.
NEAR_PAIR, FAR_PAIR = (1.0, 1.0, 14.0, 15.0), (15.0, 1.0, 14.0, 15.0)


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


def _table(differences: tuple[float, ...], columns: int = 1) -> Points:
    """Records whose pairs differ by so much, in all columns alike."""
    values = np.zeros((2 * len(differences), columns))
    values[len(differences) :] = np.array(differences)[:, None]
    names = ("a", "b")[:columns]
    facts = Schema(columns=tuple(Column(name, low=0, high=15, integer=True) for name in names))
    return Points.from_array(values, columns=names, schema=facts)


def _law(query: Scale, table: Points) -> Law:
    return law_of(lambda noise: tuple(query.answer(table, InOrder(noise))["scale"].values()))


def _laws(query: Scale, columns: int = 1) -> list[Law]:
    return [_law(query, _table(differences, columns)) for differences in (NEAR_PAIR, FAR_PAIR)]


def _attack_choice(quick: bool) -> Iterator[Finding]:
    yield audit_law(*_laws(ONE), claimed=ONE.loss, name="one column")
    yield audit_law(*_laws(POOLED, 2), claimed=POOLED.loss, name="two columns of one unit")
    short = replace(ONE, loss=Loss("10/9"))
    yield audit_law(*_laws(short), claimed=ONE.loss, name="broken: a tenth short", expected=True)


# Locations. The lowest of four records goes to the far end: its cell misses the median by one more, and a
# hundred cells beyond the others by one less.

LEAST, GONE = (0.0, 1.0, 1.0, 1.0), (100.0, 1.0, 1.0, 1.0)
LOCATING: Final = Scale(loss=Loss("2"), location=True)  # half of it locates


def _location_law(query: Scale, records: tuple[float, ...]) -> Law:
    facts = Schema(columns=(Column("a", low=0, high=100),))
    table = Points.from_array(np.array(records)[:, None], columns=("a",), schema=facts)
    errors = query.location_errors(table, [4.0])
    return law_of(
        lambda noise: choose_together(errors, sensitivity=1, epsilon=query.spread_epsilon(len(records), 1), noise=noise)
    )


def _attack_locations(quick: bool) -> Iterator[Finding]:
    laws = [_location_law(LOCATING, records) for records in (LEAST, GONE)]
    yield audit_law(*laws, claimed=Loss("1"), name="locations, half of the loss")
    for name, loss in (("at the whole loss", Loss("4")), ("a tenth short", Loss("20/9"))):
        laws = [_location_law(replace(LOCATING, loss=loss), records) for records in (LEAST, GONE)]
        yield audit_law(*laws, claimed=Loss("1"), name=f"broken: locations {name}", expected=True)
    cells, cases = Cells(0.0, 1.0, 6), [table[:, 0] for table in _tables(4)]
    brute = partial(_brute_median, cells)
    yield audit_exact(partial(_misses, cells), brute, cases, name="who misses the median, and by how much")
    later = partial(_misses, Cells(0.5, 1.0, 6))
    yield audit_exact(later, brute, cases, name="broken: cells begin later", expected=True)
    yield _moves("one record moves the error of a location by 1", lambda table: _misses(cells, table[:, 0]), 1)
    twice = "broken: ranks counted twice"
    yield _moves(twice, lambda table: 2 * _misses(cells, table[:, 0]), 1, expected=True)


def _misses(cells: Cells, values: Floats) -> Ints:
    return cells.errors(cells.count(values))


def _brute_median(cells: Cells, values: Floats) -> list[int]:
    """The definition, record by record and cell by cell."""
    places = [min(max(math.floor((x - cells.start) / cells.step), 0), cells.size - 1) for x in values.tolist()]
    half = Fraction(len(places), 2)
    return [
        math.ceil(max(Fraction(0), sum(p < c for p in places) - half, half - sum(p <= c for p in places)))
        for c in range(cells.size)
    ]


# The errors


def _pairs(values: Floats) -> tuple[Ints, Ints]:
    half = len(values) // 2
    return np.arange(half), np.arange(half, 2 * half)


def _errors(values: Floats, share: Fraction, columns: int = 1) -> Ints:
    return quantile_errors(histogram(values, *_pairs(values)), share, columns)


def _brute(values: Floats, share: Fraction) -> list[int]:
    """The definition, pair by pair and bin by bin,."""
    gaps = [abs(values[a, 0] - values[b, 0]) for a, b in zip(*_pairs(values), strict=True)]
    some = [gap for gap in gaps if gap >= EDGES[0]]
    tops = [*EDGES[1:].tolist(), float("inf")]
    found = []
    for low, high in zip(EDGES.tolist(), tops, strict=True):
        below, upto = sum(gap < low for gap in some), sum(gap < high for gap in some)
        missed = max(Fraction(0), below - share * len(some), share * len(some) - upto)
        found.append(-(-missed.numerator // missed.denominator))
    return found


def spreads_of(values: Floats, pairs: tuple[Ints, Ints], share: Fraction, groups: list[list[int]]) -> list[float]:
    """Return the exact spread of each group of columns: that of the first bin that misses the quantile least."""
    histograms = [histogram(values[:, members], *pairs) for members in groups]
    bins = [
        int(np.argmin(quantile_errors(counts, share, len(members)))) + 1
        for counts, members in zip(histograms, groups, strict=True)
    ]
    return [middle_of_bin(place) / DIVISORS[share] for place in bins]


def _tables(size: int, columns: int = 1) -> Iterator[Floats]:
    for places in product(SITES, repeat=size):
        yield np.repeat(np.array(places)[:, None], columns, axis=1)


def _attack_errors(quick: bool) -> Iterator[Finding]:
    cases = list(_tables(4))[:: 16 if quick else 1]
    for share in (HALF, UPPER):
        exact, brute = (
            partial(_error_intervals, errors=_errors, share=share),
            partial(_error_intervals, errors=_brute, share=share),
        )
        yield audit_exact(exact, brute, cases, name=f"who misses little, quantile {share}")
    brute, wrong = (
        partial(_error_intervals, errors=_brute, share=HALF),
        partial(_error_intervals, errors=_broken_zeros, share=HALF),
    )
    yield audit_exact(wrong, brute, cases, name="broken: no difference counts", expected=True)
    yield _moves("one record moves an error by 1", lambda table: _errors(table, UPPER), 1)
    yield _moves("the same, of two columns of one unit", lambda table: _errors(table, UPPER, 2), 2)
    broken = "broken: two columns of one unit, not divided by two"
    yield _moves(broken, lambda table: _errors(table, UPPER, 1), 2, expected=True)


def _error_intervals(
    values: Floats, *, errors: Callable[[Floats, Fraction], Any], share: Fraction
) -> list[tuple[int, int]]:
    """Between which bins the error is 0, and 1 at most."""
    found = errors(values, share)
    return [interval(found, level) for level in (0, 1)]


def _broken_zeros(values: Floats, share: Fraction) -> Ints:
    """BROKEN: pairs that do not differ are taken for small differences."""
    found = histogram(values, *_pairs(values)).copy()
    found[1] += found[0]
    return quantile_errors(found, share, 1)


def _moves(name: str, errors: Callable[[Floats], Ints], columns: int, *, expected: bool = False) -> Finding:
    """The most that any error moves when one of four records is replaced, on every table of a tiny world."""
    known = {tuple(table[:, 0].tolist()): errors(table) for table in _tables(4, columns)}
    shown = 0
    for places, mine in known.items():
        for at, site in product(range(4), SITES):
            other = known[(*places[:at], site, *places[at + 1 :])]
            shown = max(shown, int(np.abs(mine - other).max()))
    return Finding(
        name=name,
        way=Way.WORLD,
        claimed=1.0,
        lower=float(shown),
        caught=shown > 1,
        text=f"an error moves by {shown}, the choice hides 1 ({len(known)} tables)",
        expected=expected,
    )


# Accounts of what an answer draws. The script pairs neighbours in the table.


WITHOUT_DRAWS: Final = frozenset({"columns"})
KEY: Final = 2**128
WHOLE_SPREADS: Final = 64  # candidates of a column of whole numbers from 0 to 15: 16 to an octave, from 1 to 16
SPREADS: Final = 427  # of a column of numbers from 0 to 100: the same, from 2^-20 on
LOCATIONS: Final = 374  # quarters of the spread that the script chooses, from 0 to 100
UPPER_LOCATIONS: Final = 637  # the same by the third quartile


def _beside(records: Any, *, low: float = 0, high: float = 15, integer: bool = True) -> Points:
    """Records of equal columns."""
    values = np.array(records, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    names = ("a", "b")[: values.shape[1]]
    facts = Schema(columns=tuple(Column(name, low=low, high=high, integer=integer) for name in names))
    return Points.from_array(values, columns=names, schema=facts)


def _pairs_apart(differences: tuple[float, ...], columns: int = 1) -> Points:
    """Pairs of neighbours that differ by so much."""
    return _beside([[place] * columns for difference in differences for place in (0.0, difference)])


EQUAL, EQUAL_COLUMNS = _beside([3.0] * 8), _beside([[3.0, 3.0]] * 8)
ADJACENT: Final = (_pairs_apart(NEAR_PAIR), _pairs_apart(FAR_PAIR))
ADJACENT_COLUMNS: Final = (_pairs_apart(NEAR_PAIR, 2), _pairs_apart(FAR_PAIR, 2))
# By the order of values one record changes all pairs, from differences of 1 to differences of 3.
RANKED: Final = (_beside([0, 1, 4, 5, 8, 9, 12, 13]), _beside([15, 1, 4, 5, 8, 9, 12, 13]))
# The lowest record goes to the far end, and most differences stay what they are.
MEDIANS: Final = tuple(_beside([first, 1, 1, 2, 1, 2, 1, 2], high=100, integer=False) for first in (0.0, 100.0))
# Of an odd number one stays alone. The script pairs the last with the first, and leaves the last but one alone.
ODD: Final = tuple(_beside([0, 1, 2, 0, 14, 0, 15, 0, last]) for last in (1, 15))


def _half_bounded(first: float) -> Points:
    values = np.array([[first], *([place] for place in (1.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0))])
    return Points.from_array(values, columns=("a",), schema=Schema(columns=(Column("a", low=0),)))


EVEN: Final = _beside([3.0] * 8, high=100, integer=False)
# Many records: their shares of equal pairs can be told. One record makes an equal pair one that differs by 99.
RECORDS: Final = 400  # records
USUAL: Final = 100  # what the script draws
FEW_REPEATED: Final = tuple(_beside([first, 1, 1, 2, 1, 2, 1, 1], high=100, integer=False) for first in (1, 100))
REPEATED: Final = tuple(
    _beside([first, 1, *([1, 2] * (RECORDS // 2 - 1))], high=100, integer=False) for first in (1, 100)
)
REPEATED_COLUMNS: Final = tuple(
    _beside([[first, first], [1, 1], *([[1, 1], [2, 2]] * (2 * RECORDS - 1))], high=100, integer=False)
    for first in (1, 100)
)
SPREADING, VERIFYING = Fraction(7, 8), Fraction(1, 8)  # of ε


def _spread(value: Any) -> tuple[float, ...]:
    return tuple(value["scale"].values())


def _equal_pairs(value: Any) -> tuple[float, ...]:
    return tuple(value["equal_pairs"].values())


CANDIDATES: Final = frozenset(
    middle_of_bin(place) / divisor for place in range(1, BINS + 1) for divisor in DIVISORS.values()
)


def _is_public(value: Any) -> bool:
    """Whether spreads are of the public bins, and locations the middles of quarters of them."""
    widths = value["scale"]
    located = ((name, (at / widths[name] * 4) % 1) for name, at in value.get("location", {}).items())
    return CANDIDATES.issuperset(widths.values()) and all(math.isclose(part, 0.5, abs_tol=1e-6) for _, part in located)


AS_ALONE: Final = "the law of this choice is that of the cases without equal pairs, which run the same code"
AS_OF_FEW: Final = "the law is that of few records; here the table is large enough for the default loss"
CASES: Final[tuple[Case, ...]] = (
    Case(
        name="spreads",
        query=ONE,
        tables=ADJACENT,
        parts=(secret_pairing(8), exponential("spreads", epsilon=1, candidates=WHOLE_SPREADS)),
        rho=Fraction(1, 8),
        is_public=_is_public,
        blank=EQUAL,
        laws=(
            LawCheck(parts=("spreads",), least=0.46, most=0.47, tables=RANKED),
            LawCheck(parts=("spreads",), least=0.9),
        ),
    ),
    Case(
        name="spreads of an odd number of records",
        query=ONE,
        tables=(ODD[0], ODD[1]),
        parts=(secret_pairing(9), exponential("spreads", epsilon=1, candidates=WHOLE_SPREADS)),
        rho=Fraction(1, 8),
        is_public=_is_public,
        blank=_beside([3.0] * 9),
        laws=(LawCheck(parts=("spreads",), least=0.9),),
    ),
    Case(
        name="spreads of one unit",
        query=POOLED,
        tables=ADJACENT_COLUMNS,
        parts=(secret_pairing(8), exponential("spreads", epsilon=1, candidates=WHOLE_SPREADS)),
        rho=Fraction(1, 8),
        is_public=_is_public,
        blank=EQUAL_COLUMNS,
        laws=(LawCheck(parts=("spreads",), least=0.9),),
    ),
    Case(
        name="spreads of two columns",
        query=ONE,
        tables=ADJACENT_COLUMNS,
        parts=(secret_pairing(8), exponential("spreads", epsilon=1, candidates=WHOLE_SPREADS**2)),
        rho=Fraction(1, 8),
        is_public=_is_public,
        blank=EQUAL_COLUMNS,
        laws=(LawCheck(parts=("spreads",), least=0.96),),
    ),
    Case(
        name="spreads of a random column",
        query=replace(ONE, subset=True),
        tables=ADJACENT_COLUMNS,
        parts=(uniform("key", KEY), secret_pairing(8), exponential("spreads", epsilon=1, candidates=WHOLE_SPREADS)),
        rho=Fraction(1, 8),
        is_public=_is_public,
        blank=EQUAL_COLUMNS,
        laws=(LawCheck(parts=("spreads",), least=0.95),),
    ),
    Case(
        name="equal pairs of few records",
        query=replace(ONE, loss=Loss("64")),
        tables=(FEW_REPEATED[0], FEW_REPEATED[1]),
        parts=(
            secret_pairing(8),
            exponential("spreads", epsilon=56, candidates=SPREADS),
            cube("equal pairs", size=1, moves=1, epsilon=8, usual=USUAL),
        ),
        usual=USUAL,
        rho=Fraction(56**2, 8) + Fraction(8**2, 2),
        is_public=_is_public,
        blank=EVEN,
        laws=(LawCheck(parts=("equal pairs",), least=0.99, seen=_equal_pairs, rare=(1e-6, 1e-6)),),
        without_law={"spreads": AS_ALONE},
    ),
    Case(
        name="spreads and equal pairs",
        query=ONE,
        tables=(REPEATED[0], REPEATED[1]),
        parts=(
            secret_pairing(RECORDS),
            exponential("spreads", epsilon=SPREADING, candidates=SPREADS),
            cube("equal pairs", size=1, moves=1, epsilon=VERIFYING, usual=USUAL),
        ),
        usual=USUAL,
        rho=SPREADING**2 / 8 + VERIFYING**2 / 2,
        is_public=_is_public,
        blank=_beside([3.0] * RECORDS, high=100, integer=False),
        without_law={"spreads": AS_ALONE, "equal pairs": AS_OF_FEW},
    ),
    Case(
        name="spreads and equal pairs of two columns",
        query=ONE,
        tables=(REPEATED_COLUMNS[0], REPEATED_COLUMNS[1]),
        parts=(
            secret_pairing(4 * RECORDS),
            exponential("spreads", epsilon=SPREADING, candidates=SPREADS**2),
            cube("equal pairs", size=2, moves=1, epsilon=VERIFYING, usual=USUAL),
        ),
        usual=USUAL,
        rho=SPREADING**2 / 8 + VERIFYING**2 / 2,
        is_public=_is_public,
        blank=_beside([[3.0, 3.0]] * (4 * RECORDS), high=100, integer=False),
        without_law={"spreads": AS_ALONE, "equal pairs": AS_OF_FEW},
    ),
    Case(
        name="spreads of one unit and equal pairs",
        query=POOLED,
        tables=(REPEATED_COLUMNS[0], REPEATED_COLUMNS[1]),
        parts=(
            secret_pairing(4 * RECORDS),
            exponential("spreads", epsilon=SPREADING, candidates=SPREADS),
            cube("equal pairs", size=1, moves=1, epsilon=VERIFYING, usual=USUAL),
        ),
        usual=USUAL,
        rho=SPREADING**2 / 8 + VERIFYING**2 / 2,
        is_public=_is_public,
        blank=_beside([[3.0, 3.0]] * (4 * RECORDS), high=100, integer=False),
        without_law={"spreads": AS_ALONE, "equal pairs": AS_OF_FEW},
    ),
    Case(
        name="spreads, equal pairs and locations",
        query=LOCATING,
        varies=True,  # how many locations there are follows from the released spread
        tables=(REPEATED[0], REPEATED[1]),
        parts=(
            secret_pairing(RECORDS),
            exponential("spreads", epsilon=SPREADING, candidates=SPREADS),
            cube("equal pairs", size=1, moves=1, epsilon=2 * VERIFYING, usual=USUAL),
            exponential("locations", epsilon=SPREADING, candidates=UPPER_LOCATIONS),
        ),
        usual=USUAL,
        rho=SPREADING**2 / 4 + (2 * VERIFYING) ** 2 / 2,
        is_public=_is_public,
        blank=_beside([3.0] * RECORDS, high=100, integer=False),
        without_law={"spreads": AS_ALONE, "equal pairs": AS_OF_FEW, "locations": AS_ALONE},
    ),
    Case(
        name="spreads, equal pairs not verified",
        query=replace(ONE, verify=False),
        tables=(REPEATED[0], REPEATED[1]),
        parts=(secret_pairing(RECORDS), exponential("spreads", epsilon=1, candidates=SPREADS)),
        rho=Fraction(1, 8),
        is_public=_is_public,
        blank=_beside([3.0] * RECORDS, high=100, integer=False),
        without_law={"spreads": AS_ALONE},
    ),
    Case(
        name="spreads and locations",
        query=LOCATING,
        varies=True,  # how many locations there are follows from the released spread
        tables=(MEDIANS[0], MEDIANS[1]),
        parts=(
            secret_pairing(8),
            exponential("spreads", epsilon=1, candidates=SPREADS),
            exponential("locations", epsilon=1, candidates=LOCATIONS),
        ),
        rho=Fraction(1, 4),
        is_public=_is_public,
        blank=EVEN,
        laws=(
            LawCheck(parts=("spreads",), least=0.35, most=0.36, seen=_spread),
            LawCheck(parts=("locations",), least=0.9),
        ),
    ),
    Case(
        name="spreads and locations of a column with one bound",
        query=LOCATING,
        tables=(_half_bounded(0.0), _half_bounded(100.0)),
        parts=(
            secret_pairing(8),
            exponential("spreads", epsilon=1, candidates=BINS),
            exponential("locations", epsilon=1, candidates=2**15),
        ),
        rho=Fraction(1, 4),
        blank=replace(_half_bounded(1.0), values=np.ones((8, 1))),
        without_law={
            "spreads": "960 candidates; a column with two bounds has fewer, and their law is there",
            "locations": "32,768 candidates; the same",
        },
    ),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "choice": _attack_choice,
    "errors": _attack_errors,
    "locations": _attack_locations,
}
