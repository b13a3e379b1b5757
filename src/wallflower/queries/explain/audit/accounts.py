"""Accounts of what an explanation draws, in every mode and search."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

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
from wallflower.privacy import Loss
from wallflower.queries.explain.audit.best_first import bracket
from wallflower.queries.explain.audit.pairs import CLOSE, CROWD, EMPTY, HALVES, LONE, MANY, TIED, Pair, question_for

ONE, TWO, SIX = Loss("1"), Loss("2"), Loss("6")
MOVES: Final = 257  # steps of 1/256 by which one record moves a score, one of them for rounding
STANDS_OUT: Final = 10**5  # a scripted draw at which the record surely stands out
WITHOUT_DRAWS: Final = frozenset({"identifier", "size", "near", "clear"})
WORDS: Final = (
    DrawRecord("words", size=1024),
    DrawRecord("words", size=1),
)  # of a best-first search: splits, and the root
RECORD: Final = {"own": (("record", Fraction(1)),)}  # a record that is replaced moves a distance's margins by 1, too
OUTPUT_CONSTRAINED: Final = {"mode": "ocdp"}


def _case(name: str, pair: Pair, loss: Loss, parts: tuple[Part, ...], **details: Any) -> Case:
    own: dict[str, Any] = {key: details.pop(key) for key in ("rho", "laws", "usual") if key in details}
    is_constrained = details.get("mode") == "ocdp"
    first, second = pair.points()
    if is_constrained and "laws" not in own:  # all valid contexts are valid in both tables: its own adjacency
        own["laws"] = (LawCheck(parts=tuple(part.name for part in parts), least=0.98),)
    own |= {"varies": is_constrained, "claimed": {"names": "0", **({} if is_constrained else RECORD)}}
    return Case(name=name, query=question_for(pair, loss, **details), tables=(first, second), parts=parts, **own)


def _choices(epsilon: Any, *candidates: int) -> tuple[Part, ...]:
    """Choices by margins, each at this ε."""
    return tuple(
        exponential(f"context {place}", epsilon=epsilon, moves=MOVES, candidates=left)
        for place, left in enumerate(candidates, start=1)
    )


def _free_choices(epsilon: Any, *candidates: int) -> tuple[Part, ...]:
    """Choices by populations, which one record only raises, each at this ε."""
    return tuple(
        exponential(f"choice {place}", epsilon=epsilon, candidates=left, monotone=True)
        for place, left in enumerate(candidates, start=1)
    )


ALL: Final = ("context 1",)
BOTH: Final = ("context 1", "context 2")
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
        laws=(LawCheck(parts=ALL, least=0.9),),
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
        laws=(LawCheck(parts=BOTH, least=0.7, most=0.71),),
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
        (laplace("none", moves=MOVES, epsilon=1, is_released=False), *_choices(5, 2)),
        detector="distance:k=3,radius=1",
        doubt="1/6",
        usual=STANDS_OUT,
        rho=Fraction(29, 8),
        laws=(LawCheck(parts=("none", *ALL), least=0.76, most=0.78),),
    ),
    _case(
        "dp, none or two contexts",
        LONE,
        SIX,
        (laplace("none", moves=MOVES, epsilon=1, is_released=False), *_choices("5/2", 2, 1)),
        detector="distance:k=3,radius=1",
        doubt="1/6",
        top=2,
        usual=STANDS_OUT,
        rho=Fraction(1, 2) + 2 * Fraction(25, 4) / 8,
        laws=(LawCheck(parts=("none", *BOTH), least=0.55, most=0.57),),
    ),
    _case("ocdp, direct", CROWD, ONE, _free_choices(1, 4), **OUTPUT_CONSTRAINED, search="direct"),
    _case("ocdp, two contexts", CROWD, ONE, _free_choices("1/2", 4, 3), **OUTPUT_CONSTRAINED, top=2),
    _case("ocdp, overlap", CROWD, ONE, _free_choices(1, 4), **OUTPUT_CONSTRAINED, utility="overlap", near="010"),
    _case(
        "ocdp, uniform",
        MANY,
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
        laws=(LawCheck(parts=("search",), least=0.95, law=bracket),),
        **OUTPUT_CONSTRAINED,
        search="best-first",
    ),
)
ACCOUNTS: Final = Accounts(cases=CASES, without_draws=WITHOUT_DRAWS)
