"""Attacks on tiny worlds: every table of a few records beside V, and every table with one record more or less.

`attack_detector` takes any detector, so that a new one, or one of your own, is attacked like those of the registry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, Floats, Records, ScriptedNoise, World, audit_bound, audit_exact
from wallflower.data import Points
from wallflower.privacy import Loss
from wallflower.queries.explain.case import Case, TiledCase
from wallflower.queries.explain.detectors import (
    CustomDetector,
    CustomMarginDetector,
    Detector,
    Distance,
    MarginDetector,
)
from wallflower.queries.explain.detectors.registry import DETECTORS
from wallflower.queries.explain.draws import dp
from wallflower.queries.explain.exact import evaluate, margins
from wallflower.queries.explain.explain import Explain
from wallflower.queries.explain.space.tables import Counts, RankedTable, rank_table
from wallflower.schema import Schema

VALUES: Final = 3  # of the one context attribute; V has the first
OWN_METRIC: Final = 5.0
MAX_STEPS: Final = 10_000


@dataclass(frozen=True, slots=True)
class GrowingWorld(World):
    """Every table of up to `size` records; adjacent ones have one more or one less."""

    def tables(self) -> Iterator[Records]:
        for size in range(1, self.size + 1):
            yield from combinations_with_replacement(sorted(self.sites), size)

    def neighbours(self, table: Records) -> Iterator[Records]:
        if len(table) < self.size:
            yield from (tuple(sorted((*table, site))) for site in self.sites)
        if len(table) > 1:
            yield from (table[:at] + table[at + 1 :] for at in range(len(table)))


SITES: Final = tuple((float(value), x) for value, x in product((0, 1, 2), (0.0, 4.5, 9.0)))
GROWING: Final = GrowingWorld(SITES, 3)
REPLACING: Final = World(SITES, 3)


def attack_detector(detector: Detector) -> Iterator[Finding]:
    """Try to refute what a detector claims: that its contexts are those of `outlier`, that one record moves its score
    by no more than is charged, and what its other methods say of margins.

    >>> all(finding.ok for finding in attack_detector(Distance(2, 1.0)))
    True
    """
    exact, brute = partial(_contexts, detector), partial(_brute_contexts, detector)
    yield audit_exact(exact, brute, GROWING.arrays(), name=f"exact contexts: {detector}")
    if isinstance(detector, MarginDetector):
        one_record, moved = 1 + 2 * detector.max_rounding(), partial(_margins, detector)
        yield audit_bound(lambda _: one_record, moved, GROWING, name=f"margin: {detector}")
        scores = partial(_scores, detector)  # never above the population, so margins are attacked by themselves, too
        yield audit_bound(_allowed_steps, scores, GROWING, name=f"score: {detector}")
        factor = dp.record_factor(detector) or Fraction(2)
        replaced = float(factor * dp.STEPS)
        yield audit_bound(lambda _: replaced, scores, REPLACING, name=f"score, a record replaced: {detector}")
        wrong = partial(_wrong_margins, detector)
        yield audit_exact(wrong, lambda _: [], GROWING.arrays(), name=f"margins, where there is no outlier: {detector}")


def attack_worlds() -> Iterator[Finding]:
    """Attack every example of every detector, and broken ones."""
    classes: tuple[type[Detector], ...] = (*DETECTORS.values(), CustomDetector, CustomMarginDetector)
    for cls in classes:
        for detector in cls.examples() if cls.kind != "pyod" else ():  # PyOD need not be installed
            yield from attack_detector(detector)
    name = "broken: score of a margin that is not divided"
    yield audit_bound(_allowed_steps, _undivided_scores, GROWING, name=name, expected=True)
    name = "broken: a bound half as large as the truth"
    scores = partial(_scores, CustomMarginDetector(_distance_margin, bound=0.5))
    yield audit_bound(_allowed_steps, scores, GROWING, name=name, expected=True)
    exact, brute = partial(_contexts, Distance(2, 1.0)), partial(_brute_contexts, Distance(1, 1.0))
    name = "broken: exact contexts, V counted among its own neighbours"
    yield audit_exact(exact, brute, GROWING.arrays(), name=name, expected=True)


def attack_none() -> Iterator[Finding]:
    """Compare what the noise that decides about none hides with how far one record moves the greatest margin."""
    for detector in NAMED:
        bound, truth = partial(_hidden_steps, detector), partial(_greatest_margin, detector)
        yield audit_bound(bound, truth, GROWING, name=f"none: what its noise hides, {detector.partition(':')[0]}")


NAMED: Final = ("distance:k=2,radius=1", "bins:points=3,fraction=0.4", "tukey:points=4", "clamped-grubbs")


def _query(detector: str) -> Explain:
    domain = Schema.of(["a", "x"], edges={"a": [0.5, 1.5]}, bounds={"x": (0, 10)})
    settings: dict[str, Any] = {"record": "0", "metric": "x", "context": ("a",), "domain": domain, "size": 8}
    return Explain(**settings, detector=detector, loss=Loss("1"), doubt=Fraction(1, 2))


def _case(query: Explain, others: Floats) -> Case | TiledCase:
    return query.view(Points.from_array(_with_v(others), columns=("a", "x"), name="synthetic"))


def _with_v(others: Floats) -> Floats:
    return np.vstack([[0.0, OWN_METRIC], others])


def _hidden_steps(detector: str, others: Floats) -> float:
    """Return the scale of the noise times its ε, in steps: a draw so low that the answer is none is the only one."""
    query, script = _query(detector), ScriptedNoise(-(10**9))
    query.answer(_case(query, others), script)
    return float(script.asked[0][1] * query.loss.epsilon * query.doubt)


def _greatest_margin(detector: str, others: Floats) -> float:
    query = _query(detector)
    case = _case(query, others)
    margin_detector = query.margin_detector(case.n)
    return dp.greatest_margin(case.table_for(margin_detector), margin_detector)


def _table(others: Floats) -> RankedTable:
    rows = _with_v(others)
    return rank_table(rows[:, :1].astype(np.int64), [VALUES], rows[:, 1], 0)


def _allowed_steps(_: Floats) -> float:
    """Return how far a release takes one record to move a score, in steps."""
    return dp.STEPS


def _scores(detector: MarginDetector, others: Floats) -> Counts:
    """Return the score of every context, as a release draws by it."""
    blocks = dp.step_scores(_table(others), detector, Fraction(1), MAX_STEPS)
    (scores,) = blocks(lambda first, candidates, scores: scores.copy())
    return np.asarray(scores)


def _margins(detector: MarginDetector, others: Floats) -> Floats:
    return margins(_table(others), detector)[0]


def _wrong_margins(detector: MarginDetector, others: Floats) -> list[str]:
    """Return the contexts whose margin is positive without an outlier, or greater than it can be."""
    table = _table(others)
    values, populations = margins(table, detector)
    greatest = detector.greatest_margins(populations.astype(np.float64))
    is_outlier = [detector.outlier(*table.select(index)) for index in range(table.space.count)]
    wrong = (values > 0) & (~np.array(is_outlier) | (values > greatest + 1e-9))
    return [table.space.bits(index) for index in np.flatnonzero(wrong).tolist()]


def _undivided_scores(others: Floats) -> list[float]:
    """BROKEN: how far V is from the middle, a record's whole distance at a time."""
    table = _table(others)
    inside = [table.members(index) for index in range(table.space.count)]
    return [dp.GRID * float((table.own - table.values[members]).sum()) for members in inside]


def _distance_margin(values: Floats, index: int) -> float:
    return 3.0 - np.count_nonzero(np.abs(values - values[index]) <= 1.0)


def _contexts(detector: Detector, others: Floats) -> list[tuple[str, int]]:
    rows = _with_v(others)
    evaluation = evaluate(rows[:, :1].astype(np.int64), [VALUES], rows[:, 1], 0, detector)
    return sorted(evaluation.contexts().items())


def _brute_contexts(detector: Detector, others: Floats) -> list[tuple[str, int]]:
    """Return every set of values that has V's own and in which `outlier` calls V an outlier."""
    rows = [(0, OWN_METRIC), *((int(value), x) for value, x in others.tolist())]
    contexts = []
    for more in product((False, True), repeat=VALUES - 1):
        allowed = (True, *more)
        metric = np.array([x for value, x in rows if allowed[value]])
        if detector.outlier(metric, 0):
            contexts.append(("".join("1" if bit else "0" for bit in allowed), len(metric)))
    return sorted(contexts)
