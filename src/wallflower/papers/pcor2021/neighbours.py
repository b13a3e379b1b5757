"""Where output-constrained privacy ends: neighbouring tables in which other contexts are valid.

It compares only neighbours with the same valid contexts (the paper's COE). Here all contexts are examined, in a table
and in its neighbours: how often the sets agree when random records go, and what a record that somebody chose can do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count as numbers

import numpy as np

from wallflower.papers.data.registers import Register
from wallflower.papers.pcor2021.exact import Outlier
from wallflower.queries.explain.detectors import Detector
from wallflower.queries.explain.exact import Evaluation, evaluate
from wallflower.synthetic import Floats, Ints, pick_rows


@dataclass(frozen=True, slots=True)
class Match:
    """How the valid contexts of two tables compare, and the law of a draw among them in the one and the other.

    `shared` is the part valid in both of the contexts valid in either. `above` is the logarithm of the largest ratio of
    the probabilities, in the one table and the other, of a context valid in both, and `below` that of the ratio the
    other way. `lost` is the larger probability of contexts that are valid in one of the tables alone.
    """

    equal: bool
    shared: float
    above: float
    below: float
    lost: float

    @property
    def excess(self) -> float:
        """The larger of the two: what a loss would have to be for contexts valid in both alone."""
        return max(self.above, self.below)

    @classmethod
    def of(cls, one: Evaluation, other: Evaluation, rate: float) -> Match:
        """For draws proportional to exp(rate·population)."""
        either, both = int((one.valid | other.valid).sum()), one.valid & other.valid
        logs = [_log_law(each, rate) for each in (one, other)]
        ratios = (logs[0] - logs[1])[both] if both.any() else np.zeros(1)
        return cls(
            equal=bool((one.valid == other.valid).all()),
            shared=int(both.sum()) / either if either else 1.0,
            above=float(ratios.max()),
            below=float(-ratios.min()),
            lost=max(_mass(log[each.valid & ~both]) for log, each in zip(logs, (one, other), strict=True)),
        )


def _log_law(found: Evaluation, rate: float) -> Floats:
    """The logarithms of the probabilities of contexts, valid ones alone being right."""
    logs: Floats = rate * found.populations.astype(np.float64)
    if not found.valid.any():
        return logs
    highest = logs[found.valid].max()
    logs -= highest + float(np.log(np.exp(logs[found.valid] - highest).sum()))
    return logs


def _mass(logs: Floats) -> float:
    return float(np.exp(logs).sum())


def without(register: Register, row: int, detector: Detector, removed: Ints) -> Evaluation:
    """All contexts of the record in this row, once other records are removed."""
    kept = np.delete(np.arange(register.n), removed)
    left = register.codes[kept], register.sizes, register.metric[kept]
    return evaluate(*left, int(np.searchsorted(kept, row)), detector)


def matches(asked: Sequence[Outlier], removed: int, repetitions: int, rate: float) -> list[Match]:
    """Match every outlier, `times` times, with a number of random records of others removed."""
    found, seeds = [], numbers()
    for outlier in asked:
        before = _evaluate(outlier)
        others = np.delete(np.arange(outlier.register.n), outlier.row)
        for _ in range(repetitions):
            gone = others[pick_rows(len(others), removed, next(seeds))]
            found.append(Match.of(before, without(outlier.register, outlier.row, outlier.detector, gone), rate))
    return found


def match_chosen_records(outlier: Outlier, added: Sequence[float], rate: float) -> Iterator[Match]:
    """Matches with one record added, which has the outlier's values, so is in every context, and a chosen metric."""
    register, before = outlier.register, _evaluate(outlier)
    codes = np.vstack([register.codes, register.codes[outlier.row]])
    for metric in added:
        after = evaluate(codes, register.sizes, np.append(register.metric, metric), outlier.row, outlier.detector)
        yield Match.of(before, after, rate)


def _evaluate(outlier: Outlier) -> Evaluation:
    register = outlier.register
    return evaluate(register.codes, register.sizes, register.metric, outlier.row, outlier.detector)
