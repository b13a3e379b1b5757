"""Attacks on another threshold for a released detector, and broken ones that an audit has to catch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.audit import Finding, audit_exact
from wallflower.audit.laws import audit_law, law_of
from wallflower.data import Column, Points, Schema
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.detector.detector import choose_threshold
from wallflower.queries.detector.grids import CELLS, Floats, Grid
from wallflower.queries.detector.model import Model
from wallflower.queries.detector.threshold import Threshold, ThresholdView
from wallflower.query import Query

CROWD: Final = 10**12  # so that nearly all thresholds lie between the score of the crowd and the next
GRID: Final = Grid(columns=(0, 1), widths=(1.0, 1.0), offsets=(0.0, 0.0))
FACTS: Final = Schema(columns=(Column("a"), Column("b")))
USUAL, RARE, ALONE = (0.0, 0.0), (1.0, 1.0), (2.0, 2.0)
NAME: Final = "made-up"
LOSS: Final = Loss("1")
THIRD: Final = Fraction(1, 3)


def points_of(*records: tuple[float, float]) -> Points:
    return Points.from_array(records, columns=("a", "b"), name=NAME, schema=FACTS)


# One of three is wanted: below the score of the rare one that is met and then no more, beyond it the reverse.
TABLES: Final = (points_of(USUAL, USUAL, RARE), points_of(ALONE, USUAL, RARE))


def released_model() -> Model:
    """One cell with a crowd, one with two records, and none in the others."""
    counts = np.zeros((1, CELLS), dtype=np.int64)
    counts[0, GRID.cells(np.array([USUAL, RARE]))] = CROWD, 2
    return Model(columns=("a", "b"), schema=FACTS, grids=(GRID,), counts=counts, floor=1.0)


def view_threshold(query: Query[Any, Any], table: Any) -> ThresholdView:
    """A table, kept by any engine, beside the detector and the count that were released before."""
    assert isinstance(query, Threshold)
    releases: Mapping[int, Mapping[str, Any]] = {
        1: {"kind": "detector", "dataset": NAME, "value": released_model().to_json()},
        2: {"kind": "count", "dataset": NAME, "value": 1},
    }
    view: ThresholdView = query.take_releases(query.view(table), releases.get)
    return view


def read_flags(value: Any) -> tuple[bool, ...]:
    """Which kinds of records are flagged: what an attacker sees of a threshold."""
    scores = Model.from_json(value).score(np.array([USUAL, RARE, ALONE]))
    return tuple((scores > value["threshold"]).tolist())


def is_candidate(value: Any) -> bool:
    """Whether the threshold is one that follows from the released tables."""
    return bool(np.isin(value["threshold"], Model.from_json(value).thresholds))


def threshold_findings() -> Iterator[Finding]:
    """Every attack: what must hold, then what must be caught."""
    yield _audit_scores("scores of a released detector", 1.0)
    yield _audit_scores("broken: scores by another floor", 2.0, expected=True)
    for name, query, loss, expected in (
        ("another threshold", threshold_of(), LOSS, False),
        ("another threshold by a released count", threshold_of(contamination=None, counted=2), LOSS, False),
        ("another threshold at ρ", threshold_of(loss=Loss.zcdp("1/8")), Loss.zcdp("1/8"), False),
        ("broken: another threshold, a tenth short", threshold_of(loss=Loss("10/9")), LOSS, True),
        ("broken: another threshold, ε spent twice", threshold_of(loss=Loss("2")), LOSS, True),
        ("broken: a choice at ρ as if it were pure", threshold_of(_Pure), Loss.zcdp("1/8"), True),
        ("broken: candidates between the scores of the records", threshold_of(_EndsSeen), LOSS, True),
        ("broken: the number of rare records is wanted", threshold_of(_WantedSeen), LOSS, True),
    ):
        laws = [_law(query, table) for table in TABLES]
        yield audit_law(*laws, claimed=loss, name=name, expected=expected)


def threshold_of(kind: type[Threshold] = Threshold, **settings: Any) -> Threshold:
    return kind(**{"detector": 1, "contamination": THIRD, "loss": LOSS, **settings})


def _law(query: Threshold, table: Points) -> Any:
    view = view_threshold(query, table)
    return law_of(lambda noise: read_flags(query.answer(view, noise)))


def _audit_scores(name: str, floor: float, *, expected: bool = False) -> Finding:
    """Count what is above every threshold, record by record."""
    model = replace(released_model(), floor=floor)

    def count(values: Floats) -> list[int]:
        return [int((model.score(values) > mark).sum()) for mark in released_model().thresholds[::10]]

    def brute(values: Floats) -> list[int]:
        held = {USUAL: float(CROWD), RARE: 2.0}
        total = CROWD + 2.0
        base = sum(size * np.log(size) for size in held.values()) / total
        scores = [base - np.log(held.get((a, b), 1.0)) for a, b in values.tolist()]
        return [sum(score > mark for score in scores) for mark in released_model().thresholds[::10]]

    return audit_exact(count, brute, [table.values for table in TABLES], name=name, expected=expected)


# Broken, on purpose


class _Pure(Threshold):
    """BROKEN: a ρ of 1/8 spent as if it were an ε of 3."""

    @property
    def epsilon(self) -> Fraction:
        return Fraction(3)


class _EndsSeen(Threshold):
    """BROKEN: candidates lie between the least and the greatest score of the records."""

    def answer(self, data: ThresholdView, noise: Noise) -> dict[str, Any]:
        assert data.model is not None
        scores = data.model.score(data.table.values)  # type: ignore[union-attr]
        marks = np.linspace(scores.min(), scores.max(), 2001)
        above = np.array([int((scores > mark).sum()) for mark in marks])
        chosen = choose_threshold(marks, above, 1, self.epsilon, noise)
        return replace(data.model, threshold=chosen).to_json()


class _WantedSeen(Threshold):
    """BROKEN: as many are wanted as there are in cells that hold few."""

    def answer(self, data: ThresholdView, noise: Noise) -> dict[str, Any]:
        assert data.model is not None
        scores = data.model.score(data.table.values)  # type: ignore[union-attr]
        wanted = 2 * int((scores == data.model.ends[1]).sum())
        return Threshold.answer(self, replace(data, wanted=wanted), noise)
