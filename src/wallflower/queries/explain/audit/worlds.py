"""Attacks on tiny worlds: every table of a few records beside V, and every table with one record more or less."""

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
from wallflower.queries.explain import Explain
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector, Distance, FixedBins, Grubbs, Tukey
from wallflower.queries.explain.draws import direct
from wallflower.queries.explain.exact import evaluate
from wallflower.queries.explain.space.ranked_table import RankedTable, rank_table
from wallflower.schema import Schema

VALUES: Final = 3  # of the one context attribute; V has the first
OWN: Final = 5.0
CAP: Final = 10_000  # steps
DETECTORS: Final[dict[str, Detector]] = {
    "distance": Distance(2, 1.0),
    "bins": FixedBins((0.0, 2.0, 4.0, 6.0), 0.4),
    "tukey": Tukey((0.0, 1.0, 2.0, 4.0)),
    "clamped Grubbs": ClampedGrubbs(0.0, 10.0, 8),
}


@dataclass(frozen=True, slots=True)
class GrowingWorld(World):
    """Every table of up to `size` records; neighbours have one more or one less."""

    def tables(self) -> Iterator[Records]:
        for size in range(1, self.size + 1):
            yield from combinations_with_replacement(sorted(self.sites), size)

    def neighbours(self, table: Records) -> Iterator[Records]:
        if len(table) < self.size:
            yield from (tuple(sorted((*table, site))) for site in self.sites)
        if len(table) > 1:
            yield from (table[:at] + table[at + 1 :] for at in range(len(table)))


OTHERS: Final = GrowingWorld(tuple((float(value), x) for value, x in product((0, 1, 2), (0.0, 4.5, 9.0))), 3)


def attack_worlds() -> Iterator[Finding]:
    for name, detector in DETECTORS.items():
        yield audit_bound(_allowance, partial(_scores, detector), OTHERS, name=f"score: {name}")
    yield audit_bound(
        _allowance, _unclamped_scores, OTHERS, name="broken: score of a margin that is not divided", expected=True
    )
    for name, detector in {**DETECTORS, "Grubbs": Grubbs()}.items():
        exact, brute = partial(_contexts, detector), partial(_brute, detector)
        yield audit_exact(exact, brute, OTHERS.arrays(), name=f"exact contexts: {name}")
    exact, brute = partial(_contexts, DETECTORS["distance"]), partial(_brute, Distance(1, 1.0))
    name = "broken: exact contexts, V counted among its own neighbours"
    yield audit_exact(exact, brute, OTHERS.arrays(), name=name, expected=True)


def attack_none() -> Iterator[Finding]:
    """What the noise that decides whether to say none hides, by its own word."""
    for name, detector in NAMED.items():
        bound, truth = partial(_hidden, detector), partial(_best, detector)
        yield audit_bound(bound, truth, OTHERS, name=f"none: what its noise hides, {name}")


NAMED: Final = {
    "distance": "distance:k=2,radius=1",
    "bins": "bins:points=3,fraction=0.4",
    "tukey": "tukey:points=4",
    "clamped Grubbs": "clamped-grubbs",
}


def _question(detector: str) -> Explain:
    domain = Schema.of(["a", "x"], edges={"a": [0.5, 1.5]}, bounds={"x": (0, 10)})
    asked: dict[str, Any] = {"record": "0", "metric": "x", "context": ("a",), "domain": domain, "size": 8}
    return Explain(**asked, detector=detector, loss=Loss("1"), doubt=Fraction(1, 2))


def _case(query: Explain, others: Floats) -> Any:
    rows = np.vstack([[0.0, OWN], others])
    return query.view(Points.from_array(rows, columns=("a", "x"), name="made-up"))


def _hidden(detector: str, others: Floats) -> float:
    """In steps: the answer is asked with a draw so low that it says none and draws no more."""
    query, script = _question(detector), ScriptedNoise(-(10**9))
    query.answer(_case(query, others), script)
    return float(script.asked[0][1] * query.loss.epsilon * query.doubt)


def _best(detector: str, others: Floats) -> float:
    query = _question(detector)
    case = _case(query, others)
    return direct.best_margin(case.table(), query.detector_for(case.n))


def _table(others: Floats) -> RankedTable:
    rows = np.vstack([[0.0, OWN], others])
    return rank_table(rows[:, :1].astype(np.int64), [VALUES], rows[:, 1], 0)


def _allowance(_: Floats) -> float:
    """What a release takes one record to move a score by, in steps."""
    return direct.STEPS


def _scores(detector: Detector, others: Floats) -> Any:
    """The score of every context, as a release draws by it."""
    table = _table(others)
    (found,) = direct.step_scores(table, detector, Fraction(1), CAP)(lambda first, taking, scores: scores.copy())
    return found


def _unclamped_scores(others: Floats) -> Any:
    """BROKEN: how far V is from the middle, a record's whole distance at a time."""
    table = _table(others)
    inside = [table.members(index) for index in range(table.space.count)]
    return [direct.GRID * float((table.values[table.record] - table.values[each]).sum()) for each in inside]


def _contexts(detector: Detector, others: Floats) -> list[tuple[str, int]]:
    rows = np.vstack([[0.0, OWN], others])
    found = evaluate(rows[:, :1].astype(np.int64), [VALUES], rows[:, 1], 0, detector)
    return sorted(found.contexts().items())


def _brute(detector: Detector, others: Floats) -> list[tuple[str, int]]:
    """Every set of values that has V's own, and the detector's plain word on the records in it."""
    rows = [(0, OWN), *((int(value), x) for value, x in others.tolist())]
    found = []
    for more in product((False, True), repeat=VALUES - 1):
        allowed = (True, *more)
        metric = np.array([x for value, x in rows if allowed[value]])
        if detector.outlier(metric, 0):
            found.append(("".join("1" if bit else "0" for bit in allowed), len(metric)))
    return sorted(found)
