"""Accounts of what a detector and the flags of groups draw, in every mode."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.audit.answers import (
    Accounts,
    Case,
    DrawRecord,
    LawCheck,
    Part,
    Recorder,
    bounded_range,
    exponential,
    gaussian,
    gaussian_counts_at_delta,
    laplace,
    secret_pairing,
    sum_law,
    uniform,
)
from wallflower.audit.laws import Law
from wallflower.data import Points, Table
from wallflower.machine.lazy import load
from wallflower.privacy import Loss
from wallflower.queries.detector.audit.flags import LOSS, TABLES, WARDS, query_of, view_of
from wallflower.queries.detector.audit.tally import MOVED, TALLY_LOSS, UNFLAGGED, tally_of, view_days
from wallflower.queries.detector.audit.threshold import TABLES as TABLES_OF_THRESHOLDS
from wallflower.queries.detector.audit.threshold import is_candidate, read_flags, threshold_of, view_threshold
from wallflower.queries.detector.detector import Detector
from wallflower.queries.detector.grids import CELLS, Coins, lay_grids
from wallflower.queries.detector.model import Model
from wallflower.schema import Column, Schema
from wallflower.schema.columns import text_array

WITHOUT_DRAWS: Final = frozenset({"columns", "scale", "detector", "by", "time", "every", "start"})
KEY: Final = 2**128
FAR_DEVIATIONS: Final = 8
GRIDS: Final = 20  # the fewest
THRESHOLDS: Final = 2001
SPREADS: Final = 64  # candidates of a column of whole numbers from 0 to 15: 16 to an octave, from 1 to 16


def _points(records: Any) -> Points:
    facts = Schema(columns=(Column("a", low=0, high=15, integer=True),))
    return Points.from_array(np.array(records, dtype=np.float64)[:, None], columns=("a",), schema=facts)


def _pairs_apart(*differences: float) -> Points:
    """Return a table whose consecutive pairs have these differences."""
    return _points([value for difference in differences for value in (0.0, difference)])


def _counts(epsilon: Any) -> Part:
    """Noise in every cell of every grid: a record leaves one cell of each and joins one."""
    return laplace("counts", moves=2 * GRIDS, epsilon=epsilon, draws=GRIDS * CELLS)


def _counts_at_delta(epsilon: Any) -> Part:
    return gaussian_counts_at_delta("counts", moves=2 * GRIDS, epsilon=epsilon, delta=DELTA, draws=GRIDS * CELLS)


def _counts_at_rho(rho: Any) -> Part:
    """The squares of 2R moves of 1 add up to the length of the vector."""
    part = gaussian("counts", moves=1, rho=Fraction(rho) / (2 * GRIDS), draws=GRIDS * CELLS)
    return replace(part, spends=Fraction(rho))


def _law_along(tables: tuple[Any, Any]) -> Callable[[Detector, Any], Law]:
    """The law of the counts along the change from one adjacent table to the other: the sum of the noise of all cells
    that move, which is all that Gaussian noise tells of them. Counts and scale are those of the real answer."""

    def law(query: Detector, data: Any) -> Law:
        numbers = [_count_all(query, query.view(table)) for table in tables]
        change = numbers[1] - numbers[0]
        noise = Recorder()
        counts = np.array(_read_counts(query.answer(data, noise)))
        (scale,) = {float(drawn.scale) for drawn in noise.draws if drawn.law == "gaussian"}
        moved = int(np.abs(change).sum())
        at, chances = sum_law(scale, moved)
        far = math.ceil(FAR_DEVIATIONS * scale * math.sqrt(moved))
        sums = np.clip(int(change @ (counts - numbers[0])) + at, -far, far) + far  # what is beyond counts as the end
        return dict(enumerate(np.bincount(sums, weights=chances, minlength=2 * far + 1).tolist()))

    return law


def _count_all(query: Detector, data: Any) -> Any:
    return np.array(_read_counts(query.answer(data, Recorder())))


def _read_counts(value: Any) -> list[int]:
    return [int(count) for grid in value["counts"] for count in grid]


def _read_spreads(value: Any) -> float:
    return float(value["spreads"]["a"])


# One difference of 1 becomes one of 15: see the attack on spreads.
ADJACENT: Final = (_pairs_apart(1, 1, 14, 15), _pairs_apart(15, 1, 14, 15))
# By the order of values one record changes all pairs, from differences of 1 to differences of 3.
RANKED: Final = (_points([0, 1, 4, 5, 8, 9, 12, 13]), _points([15, 1, 4, 5, 8, 9, 12, 13]))
EQUAL: Final = _points([3.0] * 8)


def _labelled(*records: tuple[str, str]) -> Table:
    """Return records of a ward and of one of 40 codes, more than a grid has rows."""
    wards, codes = (text_array(cells) for cells in zip(*records, strict=True))
    facts = Schema(columns=(Column("ward", categories=WARDS), Column("code", categories=CODES)))
    return Table(arrow=load("pyarrow").table({"ward": wards, "code": codes}), schema=facts, name="made-up")


def _three_columns(first: float) -> Points:
    """One record decides whether the second column varies; two of three columns are drawn by the public key."""
    facts = Schema(columns=tuple(Column(name, low=0, high=15, integer=True) for name in "abc"))
    rows = [[row % 5, 3.0, row % 7] for row in range(8)]
    rows[0][1] = first
    return Points.from_array(np.array(rows, dtype=np.float64), columns=("a", "b", "c"), schema=facts)


EQUAL_COLUMNS: Final = Points.from_array(
    np.full((8, 3), 3.0), columns=("a", "b", "c"), schema=_three_columns(3.0).schema
)
CODES: Final = tuple(f"c{at}" for at in range(40))
LABELS: Final = (
    _labelled(("A", "c0"), ("A", "c1"), ("B", "c39")),
    _labelled(("C", "c20"), ("A", "c1"), ("B", "c39")),
)
# Two records stand apart, and two are wanted; then a third one stands apart, where nobody was.
FLAGGED: Final = (_points([0] * 6 + [6] * 2), _points([12] + [0] * 5 + [6] * 2))
QUARTER: Final = Fraction(1, 4)
DELTA: Final = "1e-6"
LARGE: Final = Loss("80")  # so that cells with one record stand out from the noise


def _is_between(value: Any) -> bool:
    """Whether the two are flagged: their cells hold two records each."""
    return bool(value["threshold"] < _score_of_two(value))


def _score_of_two(value: Any) -> float:
    return float(Model.from_json(value).score(np.array([[6.0]]))[0])


def _is_public(value: Any) -> bool:
    """Whether the grids follow from the released key and spreads, and the threshold is one of the released tables."""
    model, coins = Model.from_json(value), Coins(int(value["key"], 16))
    numbers = [at for at, name in enumerate(model.columns) if name not in model.labels]
    drawn = sorted(coins.shuffle(numbers)[: len(value["spreads"])])
    widths = {model.columns.index(name): spread for name, spread in value["spreads"].items()}
    sizes = {at: len(c.labels) for at, c in enumerate(model.schema.columns or ()) if c.categories is not None}
    are_grids = tuple(lay_grids(widths, GRIDS, coins, sizes)) == model.grids
    return (
        sorted(widths) == drawn
        and are_grids
        and (model.threshold is None or bool(np.isin(model.threshold, model.thresholds)))
    )


MOVED_CELL: Final = 88  # of the first grid by the schema: one record leaves it, and its noise is a 40th of the part
BY_SCHEMA: Final = {"counts": "which cells a record moves follows from released spreads; the law is by the schema"}


def _is_above(value: Any) -> bool:
    """On which side of where the tables differ the count of the cell is; noise in other cells is 0."""
    return _read_counts(value)[MOVED_CELL] >= 6


EARLIER: Final = Detector(loss=Loss("2"), spreads="schema").answer(
    Detector(loss=Loss("2"), spreads="schema").view(_pairs_apart(2, 3, 5, 15)), Recorder()
)


def _is_like_earlier(value: Any) -> bool:
    """Whether the grids are those of the earlier release, and the threshold is one of the released tables."""
    model = Model.from_json(value)
    return model.grids == Model.from_json(EARLIER).grids and (
        model.threshold is None or bool(np.isin(model.threshold, model.thresholds))
    )


def _has_grown(value: Any) -> bool:
    """On which side of where the tables differ the count of the cell is, beside those that were released earlier."""
    return _read_counts(value)[MOVED_CELL] >= 6 + _read_counts(EARLIER)[MOVED_CELL]


WITHOUT_LAW: Final = BY_SCHEMA | {"spreads": "the law of the same choice is added up where the loss is pure"}
SPLIT: Final = {"threshold": "the law of the same choice is added up by the schema"}
DETECTORS: Final[tuple[Case, ...]] = (
    Case(
        name="detector",
        rho=Fraction(1, 8) + Fraction(1, 80),
        query=Detector(loss=Loss("2")),
        tables=ADJACENT,
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            secret_pairing(8),
            exponential("spreads", epsilon=1, candidates=SPREADS),
            _counts(1),
        ),
        blank=EQUAL,
        laws=(
            LawCheck(parts=("spreads",), least=0.46, most=0.47, seen=_read_spreads, tables=RANKED),
            LawCheck(parts=("spreads",), least=0.9, seen=_read_spreads),
        ),
        without_law=BY_SCHEMA,
    ),
    Case(
        name="detector of two of three columns",
        rho=Fraction(1, 8) + Fraction(1, 80),
        query=Detector(loss=Loss("2")),
        tables=(_three_columns(3.0), _three_columns(9.0)),
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            secret_pairing(8),
            exponential("spreads", epsilon=1, candidates=SPREADS**2),
            _counts(1),
        ),
        blank=EQUAL_COLUMNS,
        without_law=BY_SCHEMA | {"spreads": "4,096 candidates; the law of one column runs the same code"},
    ),
    Case(
        name="detector with a threshold",
        rho=Fraction(85, 800) + Fraction(81, 8000),
        query=Detector(loss=Loss("2"), contamination=QUARTER),
        tables=ADJACENT,
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            secret_pairing(8),
            exponential("spreads", epsilon="9/10", candidates=SPREADS),
            _counts("9/10"),
            exponential("threshold", epsilon="1/5", candidates=THRESHOLDS),
        ),
        blank=EQUAL,
        laws=(LawCheck(parts=("spreads",), least=0.9, seen=_read_spreads),),
        without_law=BY_SCHEMA | {"threshold": "it depends on released counts, as by the schema, where its law is"},
    ),
    Case(
        name="detector by the schema",
        rho=Fraction(1, 20),
        released=_read_counts,
        query=Detector(loss=Loss("2"), spreads="schema"),
        tables=ADJACENT,
        is_public=_is_public,
        parts=(uniform("key", KEY), _counts(2)),
        laws=(LawCheck(parts=("counts",), draws=(MOVED_CELL,), least=0.0249, most=0.025, seen=_is_above),),
    ),
    Case(
        name="detector by the schema, with a threshold",
        rho=8 + Fraction(324, 5),
        released=_read_counts,
        query=Detector(loss=LARGE, spreads="schema", contamination=QUARTER),
        tables=FLAGGED,
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            _counts(72),
            exponential("threshold", epsilon=8, candidates=THRESHOLDS),
        ),
        laws=(
            LawCheck(parts=("counts",), draws=(MOVED_CELL,), least=0.0249, most=0.025, seen=_is_above, tables=ADJACENT),
            LawCheck(parts=("threshold",), least=0.93, most=0.95, seen=_is_between, coupled=_read_counts),
        ),
    ),
    Case(
        name="detector at δ",
        query=Detector(loss=Loss("5", delta=DELTA)),
        tables=ADJACENT,
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            secret_pairing(8),
            exponential("spreads", epsilon=3, candidates=SPREADS),
            _counts_at_delta(2),
        ),
        blank=EQUAL,
        laws=(LawCheck(parts=("spreads",), least=0.9, seen=_read_spreads),),
        without_law=BY_SCHEMA,
    ),
    Case(
        name="detector by the schema at δ, with a threshold",
        released=_read_counts,
        query=Detector(loss=Loss("16", delta=DELTA), spreads="schema", contamination=QUARTER),
        tables=FLAGGED,
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            _counts_at_delta("72/5"),
            exponential("threshold", epsilon="8/5", candidates=THRESHOLDS),
        ),
        laws=(
            LawCheck(parts=("counts",), least=0.99, law=_law_along(ADJACENT), tables=ADJACENT),
            LawCheck(parts=("threshold",), least=0.5, seen=_is_between, coupled=_read_counts),
        ),
    ),
    Case(
        name="detector that grows",
        rho=Fraction(1, 20),
        released=_read_counts,
        query=Detector(loss=Loss("2"), like=EARLIER, grow=True),
        tables=ADJACENT,
        is_public=_is_like_earlier,
        parts=(_counts(2),),
        laws=(LawCheck(parts=("counts",), draws=(MOVED_CELL,), least=0.0249, most=0.025, seen=_has_grown),),
    ),
    Case(
        name="detector that grows at δ, with a threshold",
        query=Detector(loss=Loss("16", delta=DELTA), like=EARLIER, grow=True, contamination=QUARTER),
        tables=ADJACENT,
        is_public=_is_like_earlier,
        parts=(_counts_at_delta("72/5"), exponential("threshold", epsilon="8/5", candidates=THRESHOLDS)),
        laws=(LawCheck(parts=("counts",), least=0.99, law=_law_along(ADJACENT)),),
        without_law=SPLIT,
    ),
    Case(
        name="detector that grows at ρ",
        released=_read_counts,
        query=Detector(loss=Loss.zcdp("5"), like=EARLIER, grow=True),
        tables=ADJACENT,
        is_public=_is_like_earlier,
        parts=(_counts_at_rho(5),),
        laws=(LawCheck(parts=("counts",), least=0.99, law=_law_along(ADJACENT)),),
    ),
    Case(
        name="detector of labels at δ",
        released=_read_counts,
        query=Detector(loss=Loss("16", delta=DELTA), spreads="schema"),
        tables=LABELS,
        is_public=_is_public,
        parts=(uniform("key", KEY), _counts_at_delta(16)),
        laws=(LawCheck(parts=("counts",), least=0.99, law=_law_along(LABELS)),),
    ),
    Case(
        name="detector at ρ",
        query=Detector(loss=Loss.zcdp("5/8")),
        tables=ADJACENT,
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            secret_pairing(8),
            bounded_range("spreads", rho="3/8", moves=1, candidates=SPREADS),
            _counts_at_rho("1/4"),
        ),
        blank=EQUAL,
        without_law=WITHOUT_LAW,
    ),
    Case(
        name="detector by the schema at ρ, with a threshold",
        released=_read_counts,
        query=Detector(loss=Loss.zcdp("50/9"), spreads="schema", contamination=QUARTER),
        tables=FLAGGED,
        is_public=_is_public,
        parts=(
            uniform("key", KEY),
            _counts_at_rho(5),
            bounded_range("threshold", rho="5/9", moves=1, candidates=THRESHOLDS),
        ),
        laws=(
            LawCheck(parts=("counts",), least=0.99, law=_law_along(ADJACENT), tables=ADJACENT),
            LawCheck(parts=("threshold",), least=0.5, seen=_is_between, coupled=_read_counts),
        ),
    ),
)


def _are_more(rows: Any) -> tuple[bool, bool]:
    """On which side of where the tables differ the two numbers are that a record moves by changing its ward."""
    return rows[0]["others"] >= 2, rows[1]["flagged"] >= 2


FLAGS: Final[tuple[Case, ...]] = (
    Case(
        name="flags of groups",
        rho=Fraction(1, 4),
        released=lambda rows: [row[part] for row in rows for part in ("flagged", "others")],
        query=query_of(),
        tables=(TABLES[0], TABLES[1]),
        view=view_of,  # type: ignore[arg-type]
        parts=(laplace("flagged and others", moves=2, epsilon=LOSS.epsilon, draws=2 * len(WARDS)),),
        laws=(LawCheck(parts=("flagged and others",), draws=(1, 2), least=0.99, seen=_are_more),),
    ),
)


def _tally_case(name: str, *, square: int, shares: tuple[float, ...], **more: Any) -> Case:
    """Three periods, whose factor has 32, 16 and 12 steps in its first column."""
    rho = TALLY_LOSS.rho
    drawn = DrawRecord("gaussian", Fraction(math.sqrt(square / (2 * rho))))
    noise = Part(name="factor times counts", spends=rho, draws=(drawn,) * 3, is_epsilon=False, noisy=(0, 1, 2))
    return Case(
        name=name,
        parts=(noise,),
        released=lambda totals: totals.hidden,
        laws=tuple(
            LawCheck(
                parts=("factor times counts",),
                draws=(place,),
                least=share - 1e-4,
                most=share + 1e-4,
                seen=lambda totals, place=place: totals.hidden[place],  # type: ignore[misc]
            )
            for place, share in enumerate(shares)
        ),
        **more,
    )


# (32, 16, 12) is the first column of the factor, (0, 0, 32) the last: they differ by (32, 16, -20).
TALLIES: Final[tuple[Case, ...]] = (
    _tally_case(
        "running totals",
        square=1680,
        shares=(1024 / 1680, 256 / 1680, 400 / 1680),
        query=tally_of(),
        tables=MOVED,
        view=view_days,
    ),
    _tally_case(
        "running totals, a flag more",
        square=1680,
        shares=(1024 / 1680, 256 / 1680, 144 / 1680),
        query=tally_of(),
        tables=UNFLAGGED,
        view=view_days,
    ),
    _tally_case(
        "running totals by public times",
        square=1424,
        shares=(1024 / 1424, 256 / 1424, 144 / 1424),
        query=tally_of(public_time=True),
        tables=UNFLAGGED,
        view=view_days,
        claimed={"public": ("day",)},
    ),
)
CHOSEN: Final[tuple[Case, ...]] = (
    Case(
        name="another threshold",
        rho=Fraction(1, 8),
        query=threshold_of(),
        tables=TABLES_OF_THRESHOLDS,
        view=view_threshold,
        is_public=is_candidate,
        parts=(exponential("threshold", epsilon=1, candidates=THRESHOLDS),),
        laws=(LawCheck(parts=("threshold",), least=0.97, seen=read_flags),),
    ),
    Case(
        name="another threshold by a released count",
        rho=Fraction(1, 8),
        query=threshold_of(contamination=None, counted=2),
        tables=TABLES_OF_THRESHOLDS,
        view=view_threshold,
        is_public=is_candidate,
        parts=(exponential("threshold", epsilon=1, candidates=THRESHOLDS),),
        laws=(LawCheck(parts=("threshold",), least=0.97, seen=read_flags),),
    ),
    Case(
        name="another threshold at ρ",
        query=threshold_of(loss=Loss.zcdp("1/8")),
        tables=TABLES_OF_THRESHOLDS,
        view=view_threshold,
        is_public=is_candidate,
        parts=(bounded_range("threshold", rho="1/8", moves=1, candidates=THRESHOLDS),),
        laws=(LawCheck(parts=("threshold",), least=0.5, most=0.53, seen=read_flags),),
    ),
    Case(
        name="another threshold by a released count at ρ",
        query=threshold_of(contamination=None, counted=2, loss=Loss.zcdp("1/8")),
        tables=TABLES_OF_THRESHOLDS,
        view=view_threshold,
        is_public=is_candidate,
        parts=(bounded_range("threshold", rho="1/8", moves=1, candidates=THRESHOLDS),),
        laws=(LawCheck(parts=("threshold",), least=0.5, most=0.53, seen=read_flags),),
    ),
)
ACCOUNTS: Final = Accounts(cases=(*DETECTORS, *FLAGS, *TALLIES, *CHOSEN), without_draws=WITHOUT_DRAWS)
