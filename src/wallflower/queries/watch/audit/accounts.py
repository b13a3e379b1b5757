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
from wallflower.queries.watch.seasons import Seasons
from wallflower.queries.watch.seasons.phases import Phases
from wallflower.schema import Column, Schema

ONE, RHO, DELTA = Loss("1"), Loss.zcdp("1/2"), Loss("1", delta="1/100")
UNIT: Final = 64  # coarse steps by which one entry moves a distance
CHANGE: Final = 4096  # steps of a season's grid by which one entry moves a sum
CONVERTED: Final = zcdp_of_epsilon(1.0, 0.01)
WITHOUT_DRAWS: Final = frozenset(
    {
        *("columns", "time", "low", "high", "change", "centre", "variance", "outlier_from", "outlier_share", "mean"),
        *("covariance", "weights", "guess", "furthest"),
        "phase",  # which calendar decides how many phases there are: each adds a draw to every part of a season
    }
)


def _stream(*distances: int) -> Points:
    """Observations of which as many entries are 1 as the distance has moves."""
    rows = np.array([[float(place < moves) for place in range(COLUMNS)] for moves in distances])
    return Points.from_array(rows, name="made-up")


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
PLAIN, ONE_SIGN, TWO_FLAGS = (
    _thresholds(8, flags=1, moves=2),
    _thresholds(8, flags=1, moves=1, draws=2),
    _thresholds(16, flags=2, moves=2),
)
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
        query=_person(Loss("3"), window=3),
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
                parts=EVERYTHING, least=0.0, tables=(_stream(1, 1, 1), _stream(1, 2, 1)), rare=(1e-7, 1e-12)
            ),  # nobody is far; then somebody is
        ),
    ),
    _sparse("person, two flags", 16, (_stream(1, 2, 1), _stream(0, 3, 0)), TWO_FLAGS, 1, cutoff=2),
    _sparse("person, one sign", 8, (_stream(2, 2), _stream(3, 3)), ONE_SIGN, 2, monotone=True),
    _sparse("person, adaptive", 8, (_stream(2, 1), _stream(3, 0)), PLAIN, 2, adaptive=True),
    Case(
        name="person, Gaussian at ρ",
        query=_person(RHO, steps=2, cutoff=10),
        claimed={"steps": 2, **RECORD},
        tables=(_stream(1, 1, 1), _stream(2, 2, 2)),  # the third is not looked at
        parts=_distances(Fraction(1, 4)),
    ),
    Case(
        name="window, Gaussian at ρ",
        query=_person(RHO, window=2, cutoff=10),
        claimed=ENTRIES,
        tables=(_stream(1, 1), _stream(2, 2)),
        stated=Fraction(1, 4),
        parts=_distances(Fraction(1, 4)),
    ),
    Case(
        name="window, Gaussian at δ",
        query=_person(DELTA, window=2, cutoff=10),
        claimed={"window": 2, **RECORD},
        tables=(_stream(1, 1), _stream(2, 2)),
        parts=_distances(Fraction(CONVERTED) / 2),
        total=CONVERTED,
    ),
    Case(
        name="person, Gaussian at δ",
        query=_person(DELTA, steps=2, cutoff=10),
        claimed=RECORD,
        tables=(_stream(1, 1), _stream(2, 2)),
        parts=_distances(Fraction(CONVERTED) / 2),
        total=CONVERTED,
    ),
    Case(
        name="paper",
        query=watch_for(ONE, level="paper"),
        claimed=ENTRIES,
        tables=ADJACENT,
        parts=(
            Part(name="threshold", spends=Fraction(0), draws=(DrawRecord("laplace", Fraction(UNIT, 2)),)),
            laplace("distances", moves=UNIT, epsilon=1, draws=2, is_released=False),
        ),
    ),
)

# Seasons of one phase. One entry goes from one end of its bounds to the other.
BOUNDED: Final = Schema(columns=(Column("x", low=0, high=1),))


def _history(first: float) -> Points:
    return Points.from_array(
        np.array([[first], *([place % 4 / 4] for place in range(15))]), columns=("x",), schema=BOUNDED, name="made-up"
    )


def _wide_history(first: float) -> Points:
    rows = np.array([[place % 4 / 4] * 2 for place in range(16)])
    rows[0, 0] = first
    return Points.from_array(rows, columns=("x", "y"), name="made-up")


WIDE_HISTORIES: Final = (_wide_history(0.0), _wide_history(1.0))
HISTORIES: Final = (_history(0.0), _history(1.0))
NARROW: Final = 1  # the first candidate of a width, in steps, which the script chooses
FAR_STEPS: Final = 3  # three spreads of it, rounded up
WIDTHS: Final = 87  # candidates: eight to a doubling up to 4096 steps


def _season(epsilon: Fraction) -> Part:
    """One season of one phase and one column."""
    return join(
        "season",
        laplace("rough centre", moves=CHANGE, epsilon=epsilon / 5),
        exponential("width", epsilon=epsilon / 5, moves=4, candidates=WIDTHS),
        laplace("centre", moves=2 * FAR_STEPS, epsilon=2 * epsilon / 5),
        laplace("spread", moves=FAR_STEPS, epsilon=epsilon / 5),
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


KNOWN: Final = Seasons(
    dataset="made-up",
    columns=("x",),
    phases=Phases(kind="always"),
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
    ),
    Case(
        name="event, by a season that is re-estimated",
        query=Watch(threshold=2.0, loss=ONE, baseline=KNOWN, relearn=8),
        is_smoothed=True,
        tables=HISTORIES,
        parts=(
            coins("first block", words=8, spends="4/5"),
            _season(Fraction(1, 5)),
            coins("second block", words=8, spends=0),
        ),
        laws=(LawCheck(parts=("first block",), least=0.9, seen=lambda value: 1 in value["flagged"]),),
    ),
)
# One observation is at the end where nobody else is, and comes a step nearer: as far from their mean as can be.
APART: Final = (_stream(COLUMNS, *(0,) * 7), _stream(COLUMNS - 1, *(0,) * 7))
GUESS: Final = COLUMNS / 2
ABOVE: Final = 40.0  # a variance that noise alone makes of these
BASELINES: Final = (
    Case(
        name="baseline",
        query=Baseline(low=0.0, high=1.0, loss=ONE),
        tables=(_stream(4, 0), _stream(3, 0)),
        parts=(
            laplace("sum", moves=UNIT, epsilon="1/2"),
            laplace("squares", moves=2 * COLUMNS * UNIT * UNIT, epsilon="1/2", is_released=False),
        ),
        rho=Fraction(1, 4),
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
        laws=(
            LawCheck(
                parts=("squares",),
                least=0.9,
                coupled=lambda value: [round((value["centre"] - GUESS) * UNIT * APART[0].n)],
                seen=lambda value: value["variance"] > ABOVE,
            ),
        ),
    ),
    Case(
        name="baseline, person",
        query=Baseline(low=0.0, high=1.0, loss=ONE, level="person"),
        tables=(_stream(4, 4), _stream(3, 3)),
        parts=(
            laplace("sum", moves=2 * UNIT, epsilon="1/2"),
            laplace("squares", moves=2 * 2 * COLUMNS * UNIT * UNIT, epsilon="1/2", is_released=False),
        ),
        rho=Fraction(1, 4),
    ),
    Case(
        name="baseline by phase",
        query=Baseline(low=0.0, high=1.0, loss=ONE, phase="always"),
        tables=HISTORIES,
        parts=(_season(Fraction(1)),),
        is_smoothed=True,
        rho=Fraction(7, 50),
    ),
    Case(
        name="baseline by phase, columns together",
        query=Baseline(low=0.0, high=1.0, loss=ONE, phase="always"),
        tables=WIDE_HISTORIES,
        parts=(_season_of_two_columns(Fraction(1)),),
        is_smoothed=True,
        rho=Fraction(7, 50),
    ),
)
ACCOUNTS: Final = Accounts(cases=(*WATCHES, *SEASONS, *BASELINES), without_draws=WITHOUT_DRAWS)
