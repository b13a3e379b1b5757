"""Attacks on the detector: what we release, and broken ones that an audit has to catch.

Its tables have thousands of cells, each with a draw of its own. So what one record moves is found by trying, and what
one draw hides is added up exactly; the loss is their product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np

from wallflower.audit import Attack, Finding, Floats, Way, audit_exact
from wallflower.audit.answers import audit_cases, sum_law
from wallflower.audit.laws import Law, audit_law, law_of
from wallflower.audit.scripts import InOrder
from wallflower.data import Points
from wallflower.mechanisms import Additive, calibrate_counts
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.detector.audit.accounts import ACCOUNTS
from wallflower.queries.detector.audit.flags import flag_findings
from wallflower.queries.detector.audit.tally import tally_findings
from wallflower.queries.detector.audit.threshold import threshold_findings
from wallflower.queries.detector.detector import Detector, blur, choose_threshold
from wallflower.queries.detector.exact import exact_scores
from wallflower.queries.detector.grids import CELLS, Coins, Grid, Ints, count_cells, lay_grids
from wallflower.queries.detector.model import Model, count_above, misses
from wallflower.schema import Column, Schema

ONE: Final = Fraction(1)
AT_DELTA: Final = Loss("1", delta="1e-3")  # large, so that Gaussian noise is the smaller one in few grids
AT_RHO: Final = Loss.zcdp("1/2")
FACTS: Final = Schema(columns=(Column("a"), Column("b")))
GRIDS: Final = tuple(lay_grids({0: 1.0, 1: 2.0}, 4, Coins(7)))
SITES: Final = ((0.0, 0.0), (3.0, -5.0), (11.0, 40.0), (math.nan, math.inf))
SHOWN: Final = 2  # outputs of a cell beyond this count as this: what a draw hides is the same everywhere

Blur = Callable[[Ints, Fraction, Noise], Ints]


def findings(*, quick: bool) -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    for attack in ATTACKS.values():
        yield from attack(quick)


# Counts


def _tables(size: int) -> Iterator[Floats]:
    for places in product(SITES, repeat=size):
        yield np.array(places)


def _movement(grids: tuple[Grid, ...]) -> int:
    """The most that the counts move by, in all, when one of three records is replaced, on every table."""
    known = {table.tobytes(): count_cells(table, grids) for table in _tables(3)}
    most = 0
    for table in _tables(3):
        for at, site in product(range(3), SITES):
            other = table.copy()
            other[at] = site
            moved = np.abs(known[table.tobytes()] - known[other.tobytes()]).sum()
            most = max(most, int(moved))
    return most


def _unit_loss(hide: Blur, tables: int) -> float:
    """Return the exact loss if one cell of `tables` tables moves by 1, from the law of its draw."""

    def law(count: int) -> Any:
        counts = np.zeros((tables, 1), dtype=np.int64)
        counts[0, 0] = count

        def first(noise: Noise) -> int:
            blurred = hide(counts, ONE, _First(noise))
            return int(np.clip(blurred[0, 0], -SHOWN, SHOWN))

        return law_of(first)

    low, high = law(0), law(1)
    return max(abs(math.log(low[output] / high[output])) for output in low)


class _First:
    """Only the first draw is looked at; the others are 0."""

    def __init__(self, noise: Noise) -> None:
        self._noise, self._is_first = noise, True

    def laplace(self, scale: Fraction) -> int:
        was, self._is_first = self._is_first, False
        return self._noise.laplace(scale) if was else 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._noise, name)


def _audit_counts(name: str, hide: Blur, *, expected: bool = False) -> Finding:
    moved = _movement(GRIDS)
    lost = moved * _unit_loss(hide, len(GRIDS))
    return Finding(
        name=name,
        way=Way.WORLD,
        claimed=1.0,
        lower=lost,
        caught=lost > 1 + 1e-6,
        text=f"the counts of {len(GRIDS)} tables move by {moved}, which costs {lost:.4g}",
        expected=expected,
    )


def _hide(counts: Ints, epsilon: Fraction, noise: Noise) -> Ints:
    return blur(counts, calibrate_counts(2 * len(counts), Loss(epsilon)), noise)


def _once(counts: Ints, epsilon: Fraction, noise: Noise) -> Ints:
    """BROKEN: noise as for one table."""
    return blur(counts, calibrate_counts(2, Loss(epsilon)), noise)


def _one_cell(counts: Ints, epsilon: Fraction, noise: Noise) -> Ints:
    """BROKEN: as if a record only left a cell, and joined none."""
    return blur(counts, calibrate_counts(len(counts), Loss(epsilon)), noise)


def _short(counts: Ints, epsilon: Fraction, noise: Noise) -> Ints:
    """BROKEN: a tenth short."""
    return _hide(counts, epsilon * Fraction(10, 9), noise)


def _root(counts: Ints, epsilon: Fraction, noise: Noise) -> Ints:
    """BROKEN: Laplace noise for the length of the change, where only Gaussian noise may do so."""
    return blur(counts, calibrate_counts(math.isqrt(2 * len(counts)), Loss(epsilon)), noise)


def _attack_counts(quick: bool) -> Iterator[Finding]:
    yield _audit_counts("counts of all tables", _hide)
    yield _audit_counts("broken: noise for R tables counted once", _once, expected=True)
    yield _audit_counts("broken: one cell instead of two", _one_cell, expected=True)
    yield _audit_counts("broken: noise of counts a tenth short", _short, expected=True)
    yield _audit_counts("broken: Laplace noise for the root of the squares", _root, expected=True)
    for loss, name in ((AT_DELTA, "δ"), (AT_RHO, "ρ")):
        moved = _movement(GRIDS)
        law = calibrate_counts(moved, loss)
        yield _audit_sums(f"counts at {name}", law, loss)
        for words, scale in (
            ("a tenth short", law.scale * Fraction(9, 10)),
            ("one cell instead of two", calibrate_counts(moved // 2, loss).scale),
            ("noise for R tables counted once", calibrate_counts(2, loss).scale),
        ):
            yield _audit_sums(f"broken: counts at {name}, {words}", replace(law, scale=scale), loss, expected=True)
    twice = calibrate_counts(_movement(GRIDS), Loss(2 * AT_DELTA.epsilon, delta=AT_DELTA.delta))
    yield _audit_sums("broken: counts at δ, ε spent twice", twice, AT_DELTA, expected=True)
    at_delta = calibrate_counts(_movement(GRIDS), AT_DELTA)
    yield _audit_sums("broken: counts at δ, δ forgotten", at_delta, Loss(AT_DELTA.epsilon), expected=True)


def _audit_sums(name: str, law: Additive, claimed: Loss, *, expected: bool = False) -> Finding:
    """Gaussian noise on all cells that one record moves, by the law of its sum along that change: nothing else of the
    noise tells the tables apart. What is far away counts as the end, so that both laws have the same outputs."""
    moved, scale = _movement(GRIDS), float(law.scale)
    at, chances = sum_law(scale, moved)
    far = math.ceil(8 * scale * math.sqrt(moved))
    laws: list[Law] = []
    for start in (0, moved):
        sums = np.clip(start + at, -far, far) + far
        laws.append(dict(enumerate(np.bincount(sums, weights=chances, minlength=2 * far + 1).tolist())))
    return audit_law(*laws, claimed=claimed, name=name, expected=expected)


# The threshold


CROWD: Final = 10**12  # so that nearly all thresholds lie between the crowd's score and the next
GRID: Final = Grid(columns=(0, 1), widths=(1.0, 1.0), offsets=(0.0, 0.0))
USUAL, RARE, ALONE = (0.0, 0.0), (1.0, 1.0), (2.0, 2.0)


def _model() -> Model:
    """One cell with a crowd, one with two records, and none in the others."""
    counts = np.zeros((1, CELLS), dtype=np.int64)
    counts[0, GRID.cells(np.array([USUAL, RARE]))] = CROWD, 2
    return Model(columns=("a", "b"), schema=FACTS, grids=(GRID,), counts=counts, floor=1.0)


def _threshold_law(values: Floats, epsilon: Fraction) -> Any:
    """Whether the threshold flags each kind of record: what an attacker sees of it."""
    model = _model()
    seen, marks = model.score(np.array([USUAL, RARE, ALONE])), model.thresholds
    above = count_above(model.score(values), marks)
    return law_of(lambda noise: tuple((seen > choose_threshold(marks, above, 1, epsilon, noise)).tolist()))


def _attack_threshold(quick: bool) -> Iterator[Finding]:
    # one is wanted: below the rare one's score that was met and is no more, beyond it the reverse
    near, far = np.array([USUAL, USUAL, RARE]), np.array([ALONE, USUAL, RARE])
    for name, epsilon, expected in (
        ("threshold", ONE, False),
        ("broken: a threshold that nobody paid for", ONE * 2, True),
        ("broken: a threshold a tenth short", Fraction(10, 9), True),
    ):
        laws = [_threshold_law(values, epsilon) for values in (near, far)]
        yield audit_law(*laws, claimed=Loss("1"), name=name, expected=expected)


# Spreads and scores

SOME: Final = np.array([SITES[0]] * 5 + [SITES[1]] * 2 + [SITES[2]])
# One record makes a difference of 1 one of 15: the last candidate, which missed by 1, misses no more, and all below 14,
# which missed nothing, miss by 1.
DIFFERENCES, ADJACENT_DIFFERENCES = (1.0, 1.0, 14.0, 15.0), (15.0, 1.0, 14.0, 15.0)

Measure = Callable[[Points, Noise], float]


def _pairs(differences: tuple[float, ...]) -> Points:
    """Return records whose pairs, the first half with the second, have these differences."""
    values = np.zeros((2 * len(differences), 1))
    values[len(differences) :, 0] = differences
    facts = Schema(columns=(Column("a", low=0, high=15, integer=True),))
    return Points.from_array(values, columns=("a",), schema=facts)


def _spread_measure(epsilon: Fraction) -> Measure:
    query = Detector(loss=Loss("1"))
    split = replace(query.split(8, 1), spreads=epsilon)
    return lambda points, noise: query.measure(points, [0], split, noise)[0]


def _from_data(points: Points, noise: Noise) -> float:
    """BROKEN: the spread of the records themselves."""
    return float(np.std(points.values))


def _attack_spreads(quick: bool) -> Iterator[Finding]:
    for name, measure, expected in (
        ("spreads", _spread_measure(ONE), False),
        ("broken: spreads a tenth short", _spread_measure(Fraction(10, 9)), True),
        ("broken: widths from the data", _from_data, True),
    ):
        laws = [_spread_law(measure, _pairs(differences)) for differences in (DIFFERENCES, ADJACENT_DIFFERENCES)]
        yield audit_law(*laws, claimed=Loss("1"), name=name, expected=expected)


def _spread_law(measure: Measure, points: Points) -> Any:
    return law_of(lambda noise: measure(points, InOrder(noise)))


def _attack_scores(quick: bool) -> Iterator[Finding]:
    """Scores without noise against the definition, and what one record moves of the threshold's errors."""
    cases = list(_tables(3))

    def score(values: Floats) -> list[float]:
        model = Model(columns=("a", "b"), schema=FACTS, grids=GRIDS, counts=count_cells(values, GRIDS), floor=1.0)
        return [round(score, 9) for score in model.score(values).tolist()]

    def define_scores(values: Floats) -> list[float]:
        return [round(score, 9) for score in exact_scores(values.tolist(), GRIDS)]

    def score_with_another_floor(values: Floats) -> list[float]:
        model = Model(columns=("a", "b"), schema=FACTS, grids=GRIDS, counts=count_cells(values, GRIDS), floor=2.0)
        return [round(score, 9) for score in model.score(values).tolist()]

    yield audit_exact(score, define_scores, cases, name="scores are those of the definition")
    yield audit_exact(score_with_another_floor, define_scores, cases, name="broken: another floor", expected=True)
    model = Model(columns=("a", "b"), schema=FACTS, grids=GRIDS, counts=count_cells(SOME, GRIDS), floor=1.0)
    marks = model.thresholds
    errors = {table.tobytes(): misses(count_above(model.score(table), marks), 1) for table in cases}
    shown = 0
    for table in cases:
        for at, site in product(range(3), SITES):
            other = table.copy()
            other[at] = site
            shown = max(shown, int(np.abs(errors[table.tobytes()] - errors[other.tobytes()]).max()))
    yield Finding(
        name="one record moves the error of a threshold by 1",
        way=Way.WORLD,
        claimed=1.0,
        lower=float(shown),
        caught=shown > 1,
        text=f"an error moves by {shown}, the choice hides 1 ({len(cases)} tables)",
    )


def _attack_other_threshold(quick: bool) -> Iterator[Finding]:
    yield from threshold_findings()


def _attack_flags(quick: bool) -> Iterator[Finding]:
    yield from flag_findings()


def _attack_tally(quick: bool) -> Iterator[Finding]:
    yield from tally_findings()


ATTACKS: Final[dict[str, Attack]] = {
    "answers": lambda quick: audit_cases(ACCOUNTS.cases),
    "counts": _attack_counts,
    "threshold": _attack_threshold,
    "spreads": _attack_spreads,
    "scores": _attack_scores,
    "flags": _attack_flags,
    "another threshold": _attack_other_threshold,
    "tally": _attack_tally,
}
