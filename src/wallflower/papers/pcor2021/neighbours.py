"""Where output-constrained privacy ends: neighbouring tables in which other contexts are valid.

It compares only neighbours with the same valid contexts (the paper's COE). Here all contexts are examined, in a table
and in its neighbours: how often the sets agree when random records go, and what a record that somebody chose can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count as numbers

import numpy as np

from wallflower.papers.data.registers import Register
from wallflower.papers.pcor2021.exact import Outlier
from wallflower.queries.explain.detectors import Detector
from wallflower.queries.explain.exact import Evaluation, evaluate
from wallflower.queries.explain.space.cube import Bools
from wallflower.synthetic import Ints, pick_rows


@dataclass(frozen=True, slots=True)
class Match:
    """How the valid contexts of two tables compare."""

    equal: bool
    shared: float  # of the contexts valid in either, the part valid in both

    @classmethod
    def of(cls, one: Bools, other: Bools) -> Match:
        """
        >>> Match.of(np.array([True, True, False]), np.array([True, False, False]))
        Match(equal=False, shared=0.5)
        """
        either = int((one | other).sum())
        return cls(bool((one == other).all()), int((one & other).sum()) / either if either else 1.0)


def without(register: Register, row: int, detector: Detector, removed: Ints) -> Bools:
    """Which contexts are valid for the record in this row once other records are removed."""
    kept = np.delete(np.arange(register.n), removed)
    left = register.codes[kept], register.sizes, register.metric[kept]
    return evaluate(*left, int(np.searchsorted(kept, row)), detector).valid


def matches(asked: Sequence[Outlier], removed: int, repetitions: int) -> list[Match]:
    """For every outlier, so many times, with so many random records of others removed."""
    found, seeds = [], numbers()
    for outlier in asked:
        before = _evaluated(outlier).valid
        others = np.delete(np.arange(outlier.register.n), outlier.row)
        for _ in range(repetitions):
            gone = others[pick_rows(len(others), removed, next(seeds))]
            found.append(Match.of(before, without(outlier.register, outlier.row, outlier.detector, gone)))
    return found


def impossible(outlier: Outlier, added: Sequence[float], rate: float) -> float:
    """The δ that one added record makes necessary at least, whatever ε: the probability of what cannot happen beside.

    The record has the outlier's own values, so it is in every context, and one of the metrics `added`. Outputs of a
    draw proportional to exp(rate·population) are weighed in the table, and in its neighbour, that are invalid in
    the other.
    """
    register, before = outlier.register, _evaluated(outlier)
    codes = np.vstack([register.codes, register.codes[outlier.row]])
    most = 0.0
    for metric in added:
        after = evaluate(codes, register.sizes, np.append(register.metric, metric), outlier.row, outlier.detector)
        for one, other in ((before, after), (after, before)):
            most = max(most, _lost(one, other, rate))
    return most


def _evaluated(outlier: Outlier) -> Evaluation:
    register = outlier.register
    return evaluate(register.codes, register.sizes, register.metric, outlier.row, outlier.detector)


def _lost(one: Evaluation, other: Evaluation, rate: float) -> float:
    """The probability, in one table, of contexts that are invalid in the other; none where none is valid."""
    here, gone = one.populations[one.valid], one.populations[one.valid & ~other.valid]
    return (
        float(np.exp(rate * (gone - here.max())).sum() / np.exp(rate * (here - here.max())).sum()) if len(gone) else 0.0
    )
