"""How contexts are found in each mode."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from wallflower.errors import ParameterError
from wallflower.mechanisms import Additive
from wallflower.noise import Noise
from wallflower.queries.explain.by_tiles import TiledCase
from wallflower.queries.explain.case import Case
from wallflower.queries.explain.detectors import ClampedGrubbs, Detector
from wallflower.queries.explain.draws import best_first, direct, guided_search, walks
from wallflower.queries.explain.draws.utilities import CustomUtility, Overlap, Population, Utility
from wallflower.queries.explain.exact import ASKED, ENGINES, HELD
from wallflower.queries.explain.parameters import MarginSettings, SearchSettings, Settings
from wallflower.queries.explain.space.blocks import SWEPT
from wallflower.queries.explain.space.cells import CellTable, cells_of
from wallflower.queries.explain.space.contexts import Space
from wallflower.queries.explain.space.ranked_table import Floats, RankedTable
from wallflower.units import Claim

Way = Callable[[SearchSettings, RankedTable | CellTable, Detector, Utility, Noise], list[int]]

MISSED: Final = 100  # one in so many draws may be invalid where the record stands out enough
REACH: Final = 3  # a context of all records scores so many times what is enough
DOUBTED: Final = 50  # about one in twice so many answers names a context where nothing stands out
_DOUBT: Final = Fraction(math.log(DOUBTED))


def check(query: Settings, detector: Detector, size: int) -> None:
    """Refuse by public facts, before anything is paid: too many contexts, or too much rounding."""
    bits, way = query.contexts.bit_length() - 1, query.way_of_search(size)
    asking = type(detector) not in ENGINES or not isinstance(query.utility, str)
    _try_out(query, detector)
    most = {"direct": ASKED.bit_length() - 1 if asking else SWEPT, "best-first": best_first.LENGTH, "guided": SWEPT}
    if bits > most.get(way, bits):
        raise ParameterError(
            f"context: there are 2^{bits} contexts, and {way} takes up to 2^{most[way]} here. Name fewer columns or "
            "values, or search another way."
        )
    if way == "guided" and math.prod(query.sizes) > guided_search.CELLS:
        raise ParameterError(
            f"context: {math.prod(query.sizes):,} combinations of values are more than the {guided_search.CELLS:,} "
            "that get noise. Name fewer columns or values, or search another way."
        )
    if isinstance(detector, ClampedGrubbs) and query.mode == "dp":
        places = (detector.low, (detector.low + detector.high) / 2, detector.high)
        far = detector.largest >= direct.ROUNDED
        if far or max(direct.rounding(detector, own) for own in places) >= 1 / (2 * direct.GRID):
            raise ParameterError(
                f"size: sums over {detector.largest:,} records are rounded by more than the grid of scores allows. "
                "Pass a smaller bound on the records, or choose another detector."
            )


def _try_out(query: Settings, detector: Detector) -> None:
    """Refuse foreign code that fails on made-up values: on records it would fail in silence, and be paid for."""
    values = np.append(np.linspace(0.0, 1.0, 99), 10.0)
    try:
        if type(detector) not in ENGINES:
            detector.outlier(values, 99)
        if isinstance(query.utility, CustomUtility):
            query.utility.function("1" * sum(query.sizes), values)
    except Exception as error:
        raise ParameterError(
            "detector, utility: a function of your own fails on a hundred made-up numbers of which the record is the "
            f"last, with {type(error).__name__}. It must answer for any numbers. Mend it, or install what it needs."
        ) from error


def claim_more(stated: Claim, query: MarginSettings, detector: Detector) -> Claim:
    """In mode dp: its squares, and what it costs a record that is replaced.  (Z) (X)"""
    deciding, each = query.parts()
    factor = direct.record_factor(detector)
    own = () if factor is None else (("record", factor),)
    return replace(stated, rho=deciding**2 / 2 + query.top * each**2 / 8, own=own)


def find_contexts(query: Settings, data: Case | TiledCase, detector: Detector, noise: Noise) -> list[str]:
    """The bits of the contexts to release."""
    table = data.table_for(detector)
    return [table.space.bits(index) for index in draw_contexts(query, table, data.n, detector, noise)]


def draw_contexts(
    query: Settings, table: RankedTable | CellTable, size: int, detector: Detector, noise: Noise
) -> list[int]:
    """The contexts to release, by index."""
    return (_by_margin if query.mode == "dp" else _by_search)(query, table, size, detector, noise)


def scale_of(contexts: int, size: int, each: Fraction) -> Fraction:
    """By how much populations are divided before they are compared with margins: 1 or more, and public.  (D)"""
    return max(Fraction(1), size / (REACH * enough(contexts, each)))


def enough(contexts: int, each: Fraction) -> Fraction:
    """The score from which on a draw is invalid once in `MISSED` times at most.  (I)"""
    return Fraction(math.ceil(1000 * 2 / float(each) * math.log(contexts * MISSED)), 1000)


def exponents(margins: Floats, populations: Floats, *, contexts: int, size: int, each: Fraction) -> Floats:
    """The logarithms of the weights of contexts with such margins and populations.  (D)"""
    step = direct.GRID / float(scale_of(contexts, size, each))
    most = min(direct.HIGHEST, int(direct.GRID * REACH * enough(contexts, each)))
    scores = np.minimum(np.floor(step * populations), np.floor(direct.GRID * margins))
    return np.clip(scores, -most, most) * float(each) / (2 * direct.STEPS)


def chance_of_none(margin: float, deciding: Fraction) -> float:
    """How likely it is to say none where the largest margin of all contexts is this one.  (N)"""
    if not deciding:
        return 0.0
    spread = direct.STEPS / deciding
    lacking = math.ceil(spread * _DOUBT) - math.floor(direct.GRID * margin)
    return Additive("laplace", spread, Fraction(1)).upper_tail(1 - lacking)  # noise is as likely as its negative


def _by_margin(
    query: MarginSettings, table: RankedTable | CellTable, size: int, detector: Detector, noise: Noise
) -> list[int]:
    deciding, each = query.parts()
    table, contexts = cells_of(table, detector), table.space.count
    if deciding and not _stands_out(table, detector, deciding, noise):
        return []
    scale = scale_of(contexts, size, each)
    cap = REACH * enough(contexts, each)
    return direct.by_margin(table, detector, scale=scale, cap=cap, epsilon=each, top=query.top, noise=noise)


def _stands_out(table: RankedTable | CellTable, detector: Detector, epsilon: Fraction, noise: Noise) -> bool:
    """Whether the largest margin, with noise, is above what noise alone would make of none.  (N)"""
    spread = direct.STEPS / epsilon
    return direct.best_margin(table, detector) + noise.laplace(spread) >= spread * _DOUBT


def _by_search(
    query: SearchSettings, table: RankedTable | CellTable, size: int, detector: Detector, noise: Noise
) -> list[int]:
    return _WAYS[query.way_of_search(size)](query, table, detector, _utility(query), noise)


def _utility(query: SearchSettings) -> Utility:
    if isinstance(query.utility, str):
        return Overlap(query.near) if query.near is not None else Population()
    return query.utility


def _rate(query: SearchSettings, way: str, utility: Utility) -> Fraction:
    return walks.rate_of(way, query.loss.epsilon, utility=utility, samples=query.samples, top=query.top)  # (O)


def _direct(
    query: SearchSettings, table: RankedTable | CellTable, detector: Detector, utility: Utility, noise: Noise
) -> list[int]:
    rate = _rate(query, "direct", utility)
    return direct.direct(table, detector, utility, rate=rate, top=query.top, noise=noise)


def _best_first(
    query: SearchSettings, table: RankedTable | CellTable, detector: Detector, utility: Utility, noise: Noise
) -> list[int]:
    rate = _rate(query, "best-first", utility)
    drawn, finished = best_first.best_first(table, detector, utility, rate=rate, top=query.top, noise=noise)
    return drawn if finished else []


def _uniform(
    query: SearchSettings, table: RankedTable | CellTable, detector: Detector, utility: Utility, noise: Noise
) -> list[int]:
    rate = _rate(query, "uniform", utility)
    return walks.uniform(table, detector, utility, samples=query.samples, rate=rate, top=query.top, noise=noise)


def _guided_search(
    query: SearchSettings, table: RankedTable | CellTable, detector: Detector, utility: Utility, noise: Noise
) -> list[int]:
    most = max(query.samples, query.top)
    return guided_search.guided_search(
        table, detector, utility, epsilon=query.loss.epsilon, evaluations=most, top=query.top, noise=noise
    )


def _start(table: RankedTable | CellTable, detector: Detector, ask: walks.ContextScores, noise: Noise) -> int | None:
    """Where a search starts: it depends on which contexts are valid, and on nothing else of the data.  (O)"""
    found = walks.first_valid(ask)
    if found is None and type(detector) in ENGINES and table.space.count <= HELD:
        return walks.uniform_valid(table, detector, noise)
    return found


def _given_start(space: Space, bits: str) -> int:
    """The start that was asked for, with the record's own values: whether it has them is not known before the look."""
    return space.index(space.widen(bits))


def _walk_way(way: str, step: Callable[..., list[int]]) -> Way:
    def search(
        query: SearchSettings, table: RankedTable | CellTable, detector: Detector, utility: Utility, noise: Noise
    ) -> list[int]:
        ask = walks.score_contexts(table, detector, utility)
        start = _start(table, detector, ask, noise) if query.start is None else _given_start(table.space, query.start)
        if start is None or ask.score(start) is None:
            return []
        rate = _rate(query, way, utility)
        return step(ask, start=start, samples=query.samples, rate=rate, top=query.top, noise=noise)

    return search


_WAYS: Final[Mapping[str, Way]] = {
    "direct": _direct,
    "best-first": _best_first,
    "uniform": _uniform,
    "walk": _walk_way("walk", walks.walk),
    "dfs": _walk_way("dfs", walks.dfs),
    "bfs": _walk_way("bfs", walks.bfs),
    "guided": _guided_search,
}
