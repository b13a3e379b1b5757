"""Adjacent tables to explain an outlier of, and accounts of what an explanation draws in every mode and search.

In each pair V is the first record, and one other record joins. The law of best-first search among two contexts is
computed between bounds: two words decide, one after the other. For a fixed first word the second has one value where
the choice changes, which is found by halving; the chance of either side rises or falls with the first word, so its
values at the ends of small cells bound it in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from wallflower.audit.answers import (
    Accounts,
    Case,
    DrawRecord,
    LawCheck,
    Part,
    even_choice,
    exponential,
    laplace,
    uniform,
)
from wallflower.audit.laws import Law, PartialLaw
from wallflower.data import Points
from wallflower.privacy import Loss
from wallflower.queries.explain.explain import Explain
from wallflower.schema import Schema

EVERYWHERE: Final = "distance:k=1000,radius=1"  # V is an outlier in every context, whatever one record does


@dataclass(frozen=True, slots=True)
class Pair:
    """Adjacent tables: V first, then others as (value, metric); `more` is the record that joins."""

    values: int
    records: tuple[tuple[int, float], ...]
    more: tuple[int, float]

    def points(self) -> tuple[Points, Points]:
        """Return the two tables."""
        return _points(self.records), _points((*self.records, self.more))


def _points(records: tuple[tuple[int, float], ...]) -> Points:
    return Points.from_array(np.array(records, float), columns=("a", "x"), name="synthetic")


CROWD: Final = Pair(3, ((0, 5.0), *((1, 5.0),) * 8), (1, 5.0))  # contexts with value 1 outweigh all others, and gain
HALVES: Final = Pair(2, ((0, 5.0), (1, 5.0)), (1, 5.0))  # of two contexts the larger gains
OUTWEIGHING_PAIR: Final = Pair(2, ((0, 5.0), *((1, 5.0),) * 8), (1, 5.0))  # the same, and it outweighs the smaller
EMPTY: Final = Pair(2, ((0, 5.0),), (1, 5.0))  # nobody has value 1; then one has
APART: Final = Pair(  # a near record that joins raises the context {0, 1}, which is small, and lowers {0, 1, 2}
    3, ((0, 5.0), *((1, 0.0),) * 3, *((2, 5.0),) * 6), (1, 5.0)
)
CLOSE: Final = Pair(  # a near record that joins raises {0, 1}, which is likeliest by far, and lowers {0, 1, 2}
    3, ((0, 5.0), *((1, 0.0),) * 12, *((2, 5.0),) * 16), (1, 5.0)
)
LAST: Final = Pair(2, ((0, 5.0), *((1, 5.0),) * 3), (0, 5.0))  # in {0} nobody is near; then one is
LONE: Final = Pair(2, ((0, 5.0), *((1, 5.0),) * 6), (0, 5.0))  # the same: {0} gains a record, and both margins fall
FAR_PAIR: Final = Pair(2, ((0, 9.0), *((1, 1.0), (1, 1.5), (1, 2.0)) * 4), (1, 1e5))
TIED: Final = Pair(3, ((0, 5.0), (1, 5.0), (2, 5.0)), (1, 5.0))


def query_for(pair: Pair, loss: Loss, **details: Any) -> Explain:
    """Return a query about V; by default V is an outlier in every context."""
    domain = Schema.of(
        ["a", "x"], edges={"a": [value + 0.5 for value in range(pair.values - 1)]}, bounds={"x": (0, 10)}
    )
    defaults: dict[str, Any] = {"record": "0", "metric": "x", "context": ("a",), "domain": domain, "size": 14}
    return Explain(**defaults | {"detector": EVERYWHERE, "loss": loss} | details)


# The law of best-first search

LAW_CELLS: Final = 96
WORD_BITS: Final = 63  # of a word, above the coin
HALVINGS: Final = 30


class _TwoWords:
    """Returns one word where one is drawn, and another first where many are; what follows is never read."""

    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second

    def words(self, size: int) -> NDArray[np.uint64]:
        drawn = np.zeros(size, np.uint64)
        drawn[0] = self.first if size == 1 else self.second
        return drawn


def best_first_law(query: Explain, case: Any) -> Law:
    """Return the chances of two contexts, the smaller one's from below; what is not known of them is the rest."""
    at = np.concatenate([[0.0], -np.expm1(-np.geomspace(1e-6, 40.0, LAW_CELLS)), [1.0]])
    chances = np.array([_chance(query, case, min(int(u * 2.0**WORD_BITS), 2**WORD_BITS - 1) << 1) for u in at])
    widths = np.diff(at)
    low = float(widths @ np.minimum(chances[1:], chances[:-1]))
    high = float(widths @ np.maximum(chances[1:], chances[:-1]))
    return PartialLaw({"small": low, "large": 1 - high}, high - low)


def _chance(query: Explain, case: Any, first: int) -> float:
    """Return the chance that the smaller context is chosen, given the first word: over both sides of the coin."""
    return sum(_share(query, case, first, coin) for coin in (0, 1)) / 2


def _share(query: Explain, case: Any, first: int, coin: int) -> float:
    """Return the share of second words with this coin that choose the smaller context: from some word on."""

    def is_small(word: int) -> bool:
        (answer,) = query.answer(case, _TwoWords(first, word << 1 | coin))  # type: ignore[arg-type]
        return str(answer["bits"]).count("1") == 1

    low: int = 0
    high: int = 2**WORD_BITS - 1
    if is_small(low):
        return 1.0
    if not is_small(high):
        return 0.0
    for _ in range(HALVINGS):
        middle = (low + high) // 2
        low, high = (low, middle) if is_small(middle) else (middle, high)
    return 1.0 - high / 2.0**WORD_BITS


# Accounts

ONE, TWO, SIX = Loss("1"), Loss("2"), Loss("6")
MOVED_STEPS: Final = 257  # steps of 1/256 by which one record moves a score, one of them for rounding
STANDS_OUT: Final = 10**5  # a scripted draw at which the record surely stands out
WITHOUT_DRAWS: Final = frozenset({"identifier", "size", "near", "clear"})
WORDS: Final = (
    DrawRecord("words", size=1024),
    DrawRecord("words", size=1),
)  # of a best-first search: splits, and the root
RECORD: Final = {"own": (("record", Fraction(1)),)}  # a record that is replaced moves a distance's margins by 1, too
OUTPUT_CONSTRAINED: Final = {"mode": "ocdp"}


def _case(name: str, pair: Pair, loss: Loss, parts: tuple[Part, ...], **details: Any) -> Case:
    more: dict[str, Any] = {key: details.pop(key) for key in ("rho", "laws", "usual") if key in details}
    is_constrained = details.get("mode") == "ocdp"
    first, second = pair.points()
    if is_constrained and "laws" not in more:  # all valid contexts are valid in both tables: its own adjacency
        more["laws"] = (LawCheck(parts=tuple(part.name for part in parts), least=0.98),)
    more |= {"varies": is_constrained, "claimed": {"names": "0", **({} if is_constrained else RECORD)}}
    return Case(name=name, query=query_for(pair, loss, **details), tables=(first, second), parts=parts, **more)


def _choices(epsilon: Any, *candidates: int) -> tuple[Part, ...]:
    """Return choices by margins, each at this ε."""
    return tuple(
        exponential(f"context {place}", epsilon=epsilon, moves=MOVED_STEPS, candidates=left)
        for place, left in enumerate(candidates, start=1)
    )


def _free_choices(epsilon: Any, *candidates: int) -> tuple[Part, ...]:
    """Return choices by populations, which one record only raises, each at this ε."""
    return tuple(
        exponential(f"choice {place}", epsilon=epsilon, candidates=left, monotone=True)
        for place, left in enumerate(candidates, start=1)
    )


CASES: Final[tuple[Case, ...]] = (
    _case(
        "dp, never none",
        CLOSE,
        ONE,
        _choices(1, 4),
        detector="distance:k=15,radius=1",
        doubt=0,
        size=30,
        rho=Fraction(1, 8),
        laws=(LawCheck(parts=("context 1",), least=0.9),),
    ),
    _case(
        "dp, two contexts",
        CLOSE,
        ONE,
        _choices("1/2", 4, 3),
        detector="distance:k=15,radius=1",
        doubt=0,
        size=30,
        top=2,
        rho=Fraction(1, 16),
        laws=(LawCheck(parts=("context 1", "context 2"), least=0.7, most=0.71),),
    ),
    _case(
        "dp, two contexts, of which two tie",
        TIED,
        TWO,
        _choices(1, 4, 3),
        doubt=0,
        top=2,
        rho=Fraction(1, 4),
        laws=(LawCheck(parts=("context 1", "context 2"), least=0.37, most=0.39),),
    ),
    _case(
        "dp, none or a context",
        LONE,
        SIX,
        (laplace("none", moves=MOVED_STEPS, epsilon=1, is_released=False), *_choices(5, 2)),
        detector="distance:k=3,radius=1",
        doubt="1/6",
        usual=STANDS_OUT,
        rho=Fraction(29, 8),
        laws=(LawCheck(parts=("none", "context 1"), least=0.76, most=0.78),),
    ),
    _case(
        "dp, none or two contexts",
        LONE,
        SIX,
        (laplace("none", moves=MOVED_STEPS, epsilon=1, is_released=False), *_choices("5/2", 2, 1)),
        detector="distance:k=3,radius=1",
        doubt="1/6",
        top=2,
        usual=STANDS_OUT,
        rho=Fraction(1, 2) + 2 * Fraction(25, 4) / 8,
        laws=(LawCheck(parts=("none", "context 1", "context 2"), least=0.55, most=0.57),),
    ),
    _case("ocdp, direct", CROWD, ONE, _free_choices(1, 4), **OUTPUT_CONSTRAINED, search="direct"),
    _case("ocdp, two contexts", CROWD, ONE, _free_choices("1/2", 4, 3), **OUTPUT_CONSTRAINED, top=2),
    _case("ocdp, overlap", CROWD, ONE, _free_choices(1, 4), **OUTPUT_CONSTRAINED, utility="overlap", near="010"),
    _case(
        "ocdp, uniform",
        OUTWEIGHING_PAIR,
        ONE,
        (even_choice("first", candidates=2), even_choice("second", candidates=1), *_free_choices(1, 2)),
        **OUTPUT_CONSTRAINED,
        search="uniform",
        samples=2,
    ),
    _case(
        "ocdp, walk",
        CROWD,
        ONE,
        (uniform("step", 2), *_free_choices(1, 2)),
        **OUTPUT_CONSTRAINED,
        search="walk",
        samples=2,
    ),
    _case("ocdp, dfs", CROWD, TWO, _free_choices(1, 2, 2), **OUTPUT_CONSTRAINED, search="dfs", samples=1),
    _case("ocdp, bfs", CROWD, TWO, _free_choices(1, 2, 2), **OUTPUT_CONSTRAINED, search="bfs", samples=1),
    _case(
        "ocdp, bfs from a start",
        CROWD,
        TWO,
        _free_choices(1, 2, 2),
        **OUTPUT_CONSTRAINED,
        search="bfs",
        samples=1,
        start="110",
        unseen=True,
    ),
    _case(
        "ocdp, guided",
        EMPTY,
        TWO,
        (laplace("cells", moves=1, epsilon=2, draws=2, is_released=False),),
        **OUTPUT_CONSTRAINED,
        search="guided",
        samples=2,
        top=2,
    ),
    _case(
        "ocdp, best-first",
        HALVES,
        SIX,
        (Part(name="search", spends=Fraction(6), draws=WORDS),),
        laws=(LawCheck(parts=("search",), least=0.95, law=best_first_law),),
        **OUTPUT_CONSTRAINED,
        search="best-first",
    ),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)
