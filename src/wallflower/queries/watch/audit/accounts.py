"""Accounts of what a watch and a baseline draw, in every mode."""

from __future__ import annotations

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
    coins,
    exponential,
    gaussian,
    join,
    laplace,
)
from wallflower.data import Points
from wallflower.privacy import Loss, zcdp_of_epsilon
from wallflower.queries.watch import Watch
from wallflower.queries.watch.audit.laws import COLUMNS, watch_for
from wallflower.queries.watch.baseline import Baseline
from wallflower.queries.watch.seasons import Season, SeasonalBaseline
from wallflower.schema import Column, Schema

ONE: Final = Loss("1")
UNIT: Final = 64  # coarse steps by which one entry moves a distance
CHANGE: Final = 4096  # steps of a season's grid by which one entry moves a sum
WITHOUT_DRAWS: Final = frozenset(
    {
        *("columns", "time", "low", "high", "change", "centre", "variance", "outlier_from", "outlier_share", "mean"),
        *("covariance", "weights", "guess", "clip_distance"),
        "season",  # the calendar decides how many buckets there are: each adds a draw to every part of a baseline
    }
)


def _stream(*distances: int) -> Points:
    """Observations of which as many entries are 1 as the distance has moves."""
    rows = np.array([[float(place < moves) for place in range(COLUMNS)] for moves in distances])
    return Points.from_array(rows, name="made-up")


def _partly(entry: float) -> Points:
    """An observation with an entry of 1, and one of this."""
    return Points.from_array(np.array([[1.0, entry, *(0.0,) * (COLUMNS - 2)]]), name="made-up")


def _person(loss: Loss, **details: Any) -> Watch:
    return watch_for(loss, **{"level": "person", "cutoff": 1} | details)


def _thresholds(epsilon: int, *, flags: int, moves: int, draws: int = 1) -> Part:
    """Noise on thresholds, in coarse steps: its part of ε is 1 of 1 + moves^(2/3), moves as many as all flags are."""
    part = epsilon / (1 + Fraction((flags * moves) ** (2 / 3)))
    return replace(laplace("threshold", moves=UNIT, epsilon=part, draws=draws, is_released=False), spends=part)


def _words(epsilon: int, thresholds: Part, observations: int, looks: int = 1) -> Part:
    """Coins that decide, for the rest."""
    words = tuple(DrawRecord("words", size=observations) for _ in range(looks))
    return Part(name="coins", spends=epsilon - thresholds.spends, draws=words)


def _sparse(
    name: str, epsilon: int, tables: tuple[Points, Points], thresholds: Part, looks: int, **details: Any
) -> Case:
    parts = (thresholds, _words(epsilon, thresholds, tables[0].n, looks))
    laws, one_sign = details.pop("laws", ()), details.get("monotone", False)
    return Case(
        name=name,
        query=_person(Loss(epsilon), **details),
        claimed=WHOLE_STREAM | ({"one_sign": True} if one_sign else {}),
        tables=tables,
        parts=parts,
        laws=laws,
    )


def _distances(rho: Fraction) -> tuple[Part, Part]:
    """Two observations of one person, each at this ρ."""
    return (
        gaussian("first distance", moves=UNIT, rho=rho, is_released=False),
        gaussian("second distance", moves=UNIT, rho=rho, is_released=False),
    )


ADJACENT: Final = (_stream(1, 1), _stream(2, 1))
MOVED_ALONG: Final = (_stream(1, 1, 1), _stream(2, 2, 2))
FLAGGED: Final = ("coins",)
EVERYTHING: Final = ("threshold", "coins")
PLAIN, ONE_SIGN, BOTH_SIDES, TWO_FLAGS = (
    _thresholds(8, flags=1, moves=2),
    _thresholds(16, flags=1, moves=1, draws=2),
    _thresholds(32, flags=1, moves=1, draws=2),
    _thresholds(16, flags=2, moves=2),
)
MIDDLE: Final = 8.0  # a centre from which sums lie to both sides
# A flag far above what was measured tells more than one nearby. Noise on a distance at this ρ is less than a move.
FAR_FLAG: Final = 8.0
SHARP: Final = Loss.zcdp("4")
SHARP_AT_DELTA: Final = Loss("8", delta="1/1000")
SHARP_CONVERTED: Final = zcdp_of_epsilon(8.0, 0.001)
BOTH_DISTANCES: Final = ("first distance", "second distance")
# What claims state besides: an observation has one entry of each column, and each is a factor of its own.
RECORD: Final = {"own": (("record", Fraction(COLUMNS)),)}
ENTRIES: Final = {"separable": True, **RECORD}
WHOLE_STREAM: Final = {"steps": None, **RECORD}
IDENTITY: Final = tuple(tuple(float(row == column) for column in range(COLUMNS)) for row in range(COLUMNS))
WATCHES: Final = (
    Case(
        name="event",
        query=watch_for(ONE),
        claimed=ENTRIES,
        tables=ADJACENT,
        parts=(coins("coins", words=2, spends=1),),
        laws=(LawCheck(parts=FLAGGED, least=0.99),),
    ),
    Case(
        name="event, by a level",
        query=watch_for(ONE, threshold=None, kappa=1.0, variance=4.0),  # a threshold of two moves, as in "event"
        claimed=ENTRIES,
        tables=ADJACENT,
        parts=(coins("coins", words=2, spends=1),),
        laws=(LawCheck(parts=FLAGGED, least=0.99),),
    ),
    Case(
        name="event, weighted",
        query=watch_for(ONE, statistic="weighted", weights=(1.0,) * COLUMNS),
        claimed=ENTRIES,
        tables=ADJACENT,
        parts=(coins("coins", words=2, spends=1),),
        laws=(LawCheck(parts=FLAGGED, least=0.99),),
    ),
    Case(
        name="event, an assumed change",
        query=watch_for(ONE, change=0.3),
        claimed={"moves": 4, "separable": True, "own": (("record", Fraction(54)),)},  # 1 / 0.3 and 16 / 0.3, rounded up
        tables=ADJACENT,
        parts=(coins("coins", words=2, spends=1),),
        laws=(LawCheck(parts=FLAGGED, least=0.99, tables=(_partly(0.7), _partly(1.0))),),
    ),
    *(
        Case(
            name=f"event, {statistic}",
            query=watch_for(ONE, threshold=0.5, statistic=statistic, mean=(0.0,) * COLUMNS, covariance=IDENTITY),
            claimed={"separable": True, "own": (("record", Fraction(most)),)},
            tables=(_stream(0, 1), _stream(1, 1)),
            parts=(coins("coins", words=2, spends=1),),
            laws=(LawCheck(parts=FLAGGED, least=0.5),),
        )
        for statistic, most in (("max", 1), ("mahalanobis", COLUMNS))
    ),
    Case(
        name="event, scores",
        released=lambda value: value["scores"],
        query=watch_for(Loss("2"), scores=True),
        claimed=ENTRIES,
        tables=ADJACENT,
        parts=(replace(laplace("scores", moves=1, epsilon=2, draws=2), spends=Fraction(2)),),
        laws=(LawCheck(parts=("scores",), draws=(0,), least=0.99),),
    ),
    Case(
        name="window of three",
        query=watch_for(Loss("3"), level="window", window=3),
        claimed=ENTRIES,
        tables=MOVED_ALONG,
        parts=(coins("coins", words=3, spends=3),),
        stated=Fraction(1),
        laws=(LawCheck(parts=FLAGGED, least=0.99),),
    ),
    _sparse(
        "person",
        8,
        (_stream(2, 1, 1), _stream(3, 0, 0)),
        PLAIN,
        1,
        laws=(
            LawCheck(parts=EVERYTHING, least=0.99, rare=(1e-7, 1e-12)),
            LawCheck(
                parts=EVERYTHING, least=0.3, most=0.31, tables=(_stream(1, 1, 1), _stream(1, 2, 1)), rare=(1e-7, 1e-12)
            ),  # nobody is far; then somebody is
        ),
    ),
    _sparse(
        "person, two flags",
        16,
        (_stream(1, 2, 1), _stream(0, 3, 0)),
        TWO_FLAGS,
        1,
        cutoff=2,
        laws=(LawCheck(parts=EVERYTHING, least=0.99, rare=(1e-7, 1e-16)),),
    ),
    _sparse(
        "person, one sign",
        16,
        (_stream(2, 2, 2), _stream(3, 2, 2)),
        ONE_SIGN,
        2,
        monotone=True,
        laws=(LawCheck(parts=EVERYTHING, least=0.99, rare=(1e-6, 1e-12)),),
    ),
    _sparse(
        "person, one sign, both sides",
        32,
        (_stream(10, 6), _stream(11, 7)),
        BOTH_SIDES,
        2,
        monotone=True,
        centre=MIDDLE,
        laws=(LawCheck(parts=EVERYTHING, least=0.99, rare=(1e-6, 1e-18)),),
    ),
    _sparse(
        "person, adaptive",
        8,
        (_stream(2, 2), _stream(3, 1)),
        PLAIN,
        2,
        adaptive=True,
        laws=(
            LawCheck(parts=EVERYTHING, least=0.85, most=0.87, rare=(1e-5, 1e-8)),
            # Coins pay for a distance and a threshold that go apart by a move each, as the coupling of (V) has them.
            LawCheck(parts=FLAGGED, least=0.69, most=0.70, tables=(_stream(1), _stream(0)), shifts={0: UNIT}),
        ),
    ),
    Case(
        name="person, Gaussian at ρ",
        query=_person(SHARP, threshold=FAR_FLAG, steps=2, cutoff=10),
        claimed={"steps": 2, **RECORD},
        tables=(_stream(3, 3, 3), _stream(2, 2, 2)),  # the third is not looked at
        parts=_distances(Fraction(2)),
        laws=(LawCheck(parts=BOTH_DISTANCES, least=0.95),),
    ),
    Case(
        name="window, Gaussian at ρ",
        query=watch_for(SHARP, threshold=FAR_FLAG, level="window", window=2),
        claimed=ENTRIES,
        tables=(_stream(3, 3), _stream(2, 2)),
        stated=Fraction(2),
        parts=_distances(Fraction(2)),
        laws=(LawCheck(parts=BOTH_DISTANCES, least=0.95),),
    ),
    Case(
        name="window, Gaussian at δ",
        query=watch_for(SHARP_AT_DELTA, threshold=FAR_FLAG, level="window", window=2),
        claimed={"window": 2, **RECORD},
        tables=(_stream(3, 3), _stream(2, 2)),
        parts=_distances(Fraction(SHARP_CONVERTED) / 2),
        total=SHARP_CONVERTED,
        laws=(LawCheck(parts=BOTH_DISTANCES, least=0.93),),
    ),
    Case(
        name="person, Gaussian at δ",
        query=_person(SHARP_AT_DELTA, threshold=FAR_FLAG, steps=2, cutoff=10),
        claimed=RECORD,
        tables=(_stream(3, 3), _stream(2, 2)),
        parts=_distances(Fraction(SHARP_CONVERTED) / 2),
        total=SHARP_CONVERTED,
        laws=(LawCheck(parts=BOTH_DISTANCES, least=0.93),),
    ),
    Case(
        name="paper",
        query=watch_for(Loss("8"), level="paper"),
        claimed=ENTRIES,
        tables=ADJACENT,
        parts=(
            Part(name="threshold", spends=Fraction(0), draws=(DrawRecord("laplace", Fraction(UNIT, 16)),)),
            laplace("distances", moves=UNIT, epsilon=8, draws=2, is_released=False),
        ),
        laws=(
            LawCheck(parts=("threshold", "distances"), least=0.99, tables=(_stream(1), _stream(0)), rare=(1e-7, 1e-12)),
        ),
    ),
)

# SeasonalBaseline of one phase. One entry goes from one end of its bounds to the other.
BOUNDED: Final = Schema(columns=(Column("x", low=0, high=1),))


def _history(first: float) -> Points:
    return Points.from_array(
        np.array([[first], *([place % 4 / 4] for place in range(15))]), columns=("x",), schema=BOUNDED, name="made-up"
    )


def _short_history(first: float) -> Points:
    return Points.from_array(np.array([[first], [0.25]]), columns=("x",), schema=BOUNDED, name="made-up")


def _wide_history(first: float) -> Points:
    rows = np.array([[place % 4 / 4] * 2 for place in range(16)])
    rows[0, 0] = first
    return Points.from_array(rows, columns=("x", "y"), name="made-up")


WIDE_HISTORIES: Final = (_wide_history(0.0), _wide_history(1.0))
HISTORIES: Final = (_history(0.0), _history(1.0))
NARROW: Final = 1  # the first candidate of a width, in steps, which the script chooses
FAR_STEPS: Final = 3  # three spreads of it, rounded up
WIDTHS: Final = 87  # candidates: eight to a doubling up to 4096 steps


def _season(epsilon: Fraction) -> tuple[Part, ...]:
    """One season of one phase and one column."""
    return (
        laplace("rough centre", moves=CHANGE, epsilon=epsilon / 5),
        exponential("width", epsilon=epsilon / 5, moves=4, candidates=WIDTHS),
        laplace("centre", moves=2 * FAR_STEPS, epsilon=2 * epsilon / 5),
        laplace("spread", moves=FAR_STEPS, epsilon=epsilon / 5),
    )


AT_CENTRE: Final = 1434  # steps: the mean of a history of which one entry is there
CENTRED: Final = (_history(AT_CENTRE / CHANGE), _history(1.0))  # one entry is at the rough centre; then far from it
WIDENED: Final = (_history(0.25), _history(1.0))  # some widths hold fewer than three quarters of all for it, some more


def _laws_of_season() -> tuple[LawCheck, ...]:
    """Part by part, where both tables release the same before it: the losses add up."""
    return (
        LawCheck(parts=("rough centre",), least=0.99, seen=lambda value: value["centre"][0][0] > 0.9),
        LawCheck(
            parts=("width",),
            least=0.53,
            most=0.55,
            seen=lambda value: value["width"][0],
            tables=WIDENED,
            shifts={0: -3 * CHANGE // 4},
        ),
        LawCheck(parts=("centre",), least=0.99, seen=lambda value: value["centre"][0][0] > 0.336),
        LawCheck(
            parts=("spread",),
            least=0.99,
            seen=lambda value: value["spread"][0][0] > 0.01,
            tables=CENTRED,
            shifts={0: AT_CENTRE - CHANGE, 2: -FAR_STEPS},
        ),
    )


def _season_of_two_columns(epsilon: Fraction) -> Part:
    """The same of two columns that are learnt together: a quarter of each part for both, the rest for each."""

    def both_and_each(name: str, moves: int, part: Fraction, *, is_released: bool = True) -> Part:
        return join(
            name,
            laplace(f"{name} of both", moves=moves, epsilon=part / 4, is_released=is_released),
            laplace(f"{name} of each", moves=moves, epsilon=3 * part / 4, draws=2, is_released=is_released),
        )

    return join(
        "season",
        both_and_each("rough centre", CHANGE, epsilon / 5),
        exponential("width", epsilon=epsilon / 5, moves=4, candidates=WIDTHS),
        both_and_each("centre", 2 * FAR_STEPS, 2 * epsilon / 5),
        both_and_each("spread", FAR_STEPS, epsilon / 5, is_released=False),  # the least spread hides what few steps do
    )


KNOWN: Final = SeasonalBaseline(
    dataset="made-up",
    columns=("x",),
    season=Season(kind="always"),
    time=None,
    centre=((0.25,),),
    spread=((0.25,),),
    width=(0.25,),
)
SEASONS: Final = (
    Case(
        name="event, by a season",
        query=Watch(threshold=2.0, loss=ONE, baseline=KNOWN),
        claimed={"separable": True, "own": (("record", Fraction(1)),)},
        tables=HISTORIES,
        parts=(coins("coins", words=16, spends=1),),
        laws=(LawCheck(parts=FLAGGED, least=0.99, tables=(_short_history(0.0), _short_history(1.0))),),
    ),
    Case(
        name="event, by a season that is re-estimated",
        query=Watch(threshold=2.0, loss=ONE, baseline=KNOWN, relearn=8),
        is_smoothed=True,
        tables=HISTORIES,
        shifts={1: -CHANGE, 3: -2 * FAR_STEPS},
        parts=(
            coins("first block", words=8, spends="4/5"),
            *_season(Fraction(1, 5)),
            coins("second block", words=8, spends=0),
        ),
        laws=(
            LawCheck(parts=("first block",), least=0.9, seen=lambda value: 1 in value["flagged"]),
            LawCheck(parts=("rough centre",), least=0.99, seen=lambda value: value["baseline"]["centre"][0][0] > 0.9),
            LawCheck(parts=("centre",), least=0.99, seen=lambda value: value["baseline"]["centre"][0][0] > 0.29),
        ),
        without_law=dict.fromkeys(("width", "spread"), "as of a baseline by season, which runs the same code"),
    ),
)
# One observation is at the end where nobody else is, and comes a step nearer: as far from their mean as can be.
APART: Final = (_stream(COLUMNS, *(0,) * 7), _stream(COLUMNS - 1, *(0,) * 7))
GUESS: Final = COLUMNS / 2
ALL_APART: Final = (_stream(COLUMNS, COLUMNS), _stream(COLUMNS - 1, COLUMNS - 1))  # a person is in both observations
ABOVE: Final = 200.0  # a variance that noise alone makes of these


def _laws_of_sums(tables: tuple[Points, Points], *, mean: float = 6.0, guess: float = 0.0) -> tuple[LawCheck, LawCheck]:
    """The sum by itself, above a mean that it has by noise alone, then the squares where both tables release the same
    sum: the losses add up."""
    n = tables[0].n
    return (
        LawCheck(parts=("sum",), least=0.99, seen=lambda value: value["centre"] > mean),
        LawCheck(
            parts=("squares",),
            least=0.93,
            coupled=lambda value: [round((value["centre"] - guess) * UNIT * n)],
            seen=lambda value: value["variance"] > ABOVE,
        ),
    )


BASELINES: Final = (
    Case(
        name="baseline",
        query=Baseline(low=0.0, high=1.0, loss=ONE),
        tables=APART,
        parts=(
            laplace("sum", moves=UNIT, epsilon="1/2"),
            laplace("squares", moves=2 * COLUMNS * UNIT * UNIT, epsilon="1/2", is_released=False),
        ),
        rho=Fraction(1, 4),
        laws=_laws_of_sums(APART),
    ),
    Case(
        name="baseline around a guess",
        query=Baseline(low=0.0, high=1.0, loss=ONE, guess=GUESS),
        tables=APART,
        parts=(
            laplace("sum", moves=UNIT, epsilon="1/2"),
            laplace("squares", moves=COLUMNS * UNIT * UNIT, epsilon="1/2", is_released=False),
        ),
        rho=Fraction(1, 4),
        laws=_laws_of_sums(APART, guess=GUESS),
    ),
    Case(
        name="baseline, person",
        query=Baseline(low=0.0, high=1.0, loss=ONE, level="person"),
        tables=ALL_APART,
        parts=(
            laplace("sum", moves=2 * UNIT, epsilon="1/2"),
            laplace("squares", moves=2 * 2 * COLUMNS * UNIT * UNIT, epsilon="1/2", is_released=False),
        ),
        rho=Fraction(1, 4),
        laws=_laws_of_sums(ALL_APART, mean=24.0),
    ),
    Case(
        name="baseline by season",
        query=Baseline(low=0.0, high=1.0, loss=ONE, season="always"),
        tables=HISTORIES,
        parts=_season(Fraction(1)),
        shifts={0: -CHANGE, 2: -2 * FAR_STEPS},
        laws=_laws_of_season(),
        is_smoothed=True,
        rho=Fraction(7, 50),
    ),
    Case(
        name="baseline by season, columns together",
        query=Baseline(low=0.0, high=1.0, loss=ONE, season="always"),
        tables=WIDE_HISTORIES,
        parts=(_season_of_two_columns(Fraction(1)),),
        is_smoothed=True,
        rho=Fraction(7, 50),
        without_law={
            "season": "by season the law of one column is added up; here parts, scales and draws are compared"
        },
    ),
)
ACCOUNTS: Final = Accounts(cases=(*WATCHES, *SEASONS, *BASELINES), without_draws=WITHOUT_DRAWS)
