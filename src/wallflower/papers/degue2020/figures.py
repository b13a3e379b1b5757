"""Figures 3 to 5 of [Deg20] as it describes them, by stable forms of its theorems and by runs of its mechanism.

Figure 3 has the paper's h throughout and ε moves; in Figure 4 h moves, for several ε; Figure 5 is the curve that ε
draws at the paper's h. In all of them the threshold is h, from which on an observation is an outlier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from wallflower.papers.degue2020.outlierdetect import (
    FACTS,
    SPREAD,
    TRUTH,
    Share,
    Simulation,
    simulate,
    theorem_2,
    theorem_3,
    world,
)
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel, Spots
from wallflower.queries.watch.detectors import COARSE_STEPS
from wallflower.queries.watch.forecast.rates import Mechanism, Rates, rates

NOT_COMPUTABLE: Final = "NOT COMPUTABLE AS PRINTED"
EPSILONS: Final = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30", "100")
LINE: Final = tuple(float(value) for value in np.geomspace(0.01, 100, 41))
CURVES: Final = ("0.01", "0.1", "1", "10")
HEIGHTS: Final = (3e3, TRUTH, 1.5e4)
SWEEP: Final = tuple(float(value) for value in np.linspace(4 * SPREAD, 0.01 * SPREAD, 40))  # as the paper: falling
SHORT: Final = (
    100  # observations of a run: they share one noisy threshold, and many short runs settle an average sooner
)
FAITHFUL: Final = 10.0  # up to this ε; beyond, noise is so small that the grid of the released mechanism shows
NOTHING, EVERYTHING = 1e-6, 1e6  # ε, as near to 0 and to infinity as matters
TWO: Final = 2.0  # error bars in standard errors

Runs = Mapping[tuple[str, float], Simulation]  # by ε and h


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the two ways to be wrong: how it is computed, how simulated, how printed."""

    symbol: str
    words: str
    exact: Callable[[Rates], float]
    printed: Callable[[float], float]
    simulated: Callable[[Simulation], Share]
    why: str


def _miss_share(found: Simulation) -> Share:
    return Share(found.true_positive.of - found.true_positive.flagged, found.true_positive.of)


FALSE_POSITIVE: Final = Kind(
    symbol="P_I",
    words="usual observations flagged",
    exact=lambda found: found.false_positive,
    printed=theorem_3,
    simulated=lambda found: found.false_positive,
    why="Theorem 3 is right, but on a machine its difference of error functions cancels and its exponential overflows: "
    "at ε=2 it gives .0363 where .0324 is true, at ε=5 it gives 0 where .0107 is true, at ε=10 nothing",
)
FALSE_NEGATIVE: Final = Kind(
    symbol="P_II",
    words="outliers missed",
    exact=lambda found: found.false_negative,
    printed=lambda epsilon: 1 - theorem_2(epsilon),
    simulated=_miss_share,
    why="Theorem 2 is right, but on a machine it is something that overflows times something that vanishes: from "
    "ε=6.6 on it gives nothing, where .061 is true",
)
KINDS: Final = (FALSE_POSITIVE, FALSE_NEGATIVE)


def simulations(runs: int) -> Runs:
    """Runs of the released mechanism, for every point of the three figures."""
    points = [(epsilon, TRUTH) for epsilon in EPSILONS] + [(epsilon, h) for epsilon in CURVES for h in HEIGHTS]
    return {(epsilon, h): simulate(epsilon, h, h, runs, SHORT) for epsilon, h in dict.fromkeys(points)}


@lru_cache(maxsize=2048)
def rates_at(h: float, epsilon: float, mechanism: Mechanism = "paper") -> Rates:
    """Threshold and definition of an outlier are one."""
    return rates(mechanism, threshold=h, epsilon=epsilon, **world(h))


def off_by(seen: Runs) -> float:
    """The furthest that a simulated rate is from the exact one, in standard errors, up to ε = `FAITHFUL`."""
    return max(
        _off(kind, epsilon, h, found)
        for (epsilon, h), found in seen.items()
        for kind in KINDS
        if float(epsilon) <= FAITHFUL
    )


def _off(kind: Kind, epsilon: str, h: float, found: Simulation) -> float:
    rate, share = kind.exact(rates_at(h, float(epsilon))), kind.simulated(found)
    least = math.sqrt(rate * (1 - rate) / share.of.sum())  # a share of 0 has a seen error of 0
    return abs(share.value - rate) / max(share.error, least)


def figure3(seen: Runs, runs: int) -> Section:
    """Both errors against ε at the paper's h."""
    mark = NOT_COMPUTABLE.replace(" ", "_")
    tails = ("", "_simulated", "_standard_error", f"_as_printed_{mark}")
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (float(epsilon), *(cell for kind in KINDS for cell in _cells(kind, seen[epsilon, TRUTH], float(epsilon))))
        for epsilon in EPSILONS
    )
    lines = tuple(_line(kind, seen) for kind in KINDS)
    ticks, across = tuple(map(float, EPSILONS)), "ε of the paper"
    return Section(
        name="figure3",
        title=f"Figure 3: P_I and P_II against ε, h = {TRUTH:g}",
        caption=f"As the paper describes it. Lines are Theorems 2 and 3 in forms that can be computed, points are "
        f"{runs} runs of the released mechanism with {SHORT} observations each, and two standard errors. All "
        "observations of a run share one noisy threshold, so that runs differ. It counts in whole steps of "
        f"ρ/{COARSE_STEPS}, so that its threshold is up to one step low: beyond ε={FAITHFUL:g}, where noise is "
        "as small, that shows. Right: the same on a logarithmic scale, and the printed formulas, where a machine can "
        "evaluate them.",
        sheet=Sheet(heading=("epsilon", *(f"{kind.symbol}{tail}" for kind in KINDS for tail in tails)), rows=rows),
        panels=(
            Panel(title="both errors", along=ticks, curves=lines, across=across, up="P_I, P_II", chance=0.5),
            Panel(
                title="the same, logarithmic",
                along=ticks,
                curves=(*lines, *map(_printed_curve, KINDS)),
                across=across,
                up="P_I, P_II",
                scale="rates",
                floor=2e-4,
            ),
        ),
    )


def figure4(seen: Runs, runs: int) -> Section:
    """Both errors against each other: h moves, one curve for each ε."""
    rows = tuple((float(epsilon), h, *_pair(seen, epsilon, h)) for epsilon in CURVES for h in HEIGHTS)
    heading = ("epsilon", "h", "P_I", "P_I_simulated", "P_I_standard_error")
    return Section(
        name="figure4",
        title="Figure 4: P_I against P_II, h varied",
        caption="As the paper describes it: one curve for each ε, from left to right h falls, from 4 σ to nearly 0, "
        "and what is an outlier with it. At ε=0.01 the curve is hardly more than a point: nothing is told whatever h "
        f"is. Points are {runs} runs of the released mechanism at h = {', '.join(f'{h:g}' for h in HEIGHTS)}, with two "
        "standard errors of P_II.",
        sheet=Sheet(heading=(*heading, "P_II", "P_II_simulated", "P_II_standard_error"), rows=rows),
        panels=(
            Panel(
                title="one curve for each ε",
                along=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
                curves=tuple(_sweep(seen, epsilon) for epsilon in CURVES),
                across="P_I, usual observations flagged",
                up="P_II, outliers missed",
                scale="plain",
            ),
        ),
    )


def figure5(seen: Runs, runs: int) -> Section:
    """The ROC that ε draws at the paper's h."""
    heading = ("epsilon", "P_I", "true_positive", "P_I_simulated", "true_positive_simulated")
    rows = tuple((float(epsilon), *_roc_row(seen[epsilon, TRUTH], float(epsilon))) for epsilon in EPSILONS)
    return Section(
        name="figure5",
        title=f"Figure 5: 1 - P_II against P_I, h fixed at {TRUTH:g}",
        caption="As the paper describes it: h stays and ε moves, so that there is one curve, from a guess at ε → 0 to "
        f"the corner at ε → ∞. Points are {runs} runs of the released mechanism. staircase: wallflower's default at "
        "the same true loss of one entry, E = ε/4, which is further along nearly the same curve. A ROC in the usual "
        "sense, where the threshold moves, is ours and is below.",
        sheet=Sheet(
            heading=(*heading, "true_positive_standard_error", "staircase_P_I", "staircase_true_positive"), rows=rows
        ),
        panels=(
            Panel(
                title=f"h = {TRUTH:g}, ε from {LINE[0]:g} to {LINE[-1]:g}",
                along=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
                curves=(_trace(), *(_spot(seen, epsilon) for epsilon in CURVES)),
                across="usual observations flagged, P_I",
                up="outliers found, 1 - P_II",
                scale="square",
            ),
        ),
    )


def limits() -> Section:
    """Corollaries 1 and 2."""
    low, high = rates_at(TRUTH, NOTHING), rates_at(TRUTH, EVERYTHING)
    none, every = FACTS["limits eps->0"].value, FACTS["limits eps->inf"].value
    return Section(
        name="limits",
        title="The limits of both rates (Corollaries 1 and 2)",
        caption=f"At ε = {NOTHING:g} and ε = {EVERYTHING:g}. Near 0 all noise is alike and the flag is a coin; far out "
        "there is no noise left.",
        sheet=Sheet(
            heading=("limit", "printed", "true_positive", "P_I"),
            rows=(
                ("eps -> 0", none, low.true_positive, low.false_positive),
                ("eps -> inf", every, high.true_positive, high.false_positive),
            ),
        ),
    )


def _cells(kind: Kind, found: Simulation, epsilon: float) -> tuple[float, ...]:
    share = kind.simulated(found)
    return kind.exact(rates_at(TRUTH, epsilon)), share.value, share.error, kind.printed(epsilon)


def _line(kind: Kind, seen: Runs) -> Curve:
    shares = [kind.simulated(seen[epsilon, TRUTH]) for epsilon in EPSILONS]
    return Curve(
        label=f"{kind.symbol}, {kind.words}: exact, and simulated",
        along=LINE,
        values=tuple(kind.exact(rates_at(TRUTH, epsilon)) for epsilon in LINE),
        spots=Spots(
            along=tuple(map(float, EPSILONS)),
            values=tuple(share.value for share in shares),
            off=tuple(TWO * share.error for share in shares),
        ),
    )


def _printed_curve(kind: Kind) -> Curve:
    return Curve(
        label=f"{kind.symbol} by the printed formula as it stands: {NOT_COMPUTABLE}",
        along=LINE,
        values=tuple(kind.printed(epsilon) for epsilon in LINE),
        why=kind.why,
    )


def _pair(seen: Runs, epsilon: str, h: float) -> tuple[float, ...]:
    exact, shares = rates_at(h, float(epsilon)), [kind.simulated(seen[epsilon, h]) for kind in KINDS]
    return tuple(
        cell
        for kind, share in zip(KINDS, shares, strict=True)
        for cell in (kind.exact(exact), share.value, share.error)
    )


def _sweep(seen: Runs, epsilon: str) -> Curve:
    found = [rates_at(h, float(epsilon)) for h in SWEEP]
    wrong, missed = ([kind.simulated(seen[epsilon, h]) for h in HEIGHTS] for kind in KINDS)
    return Curve(
        label=f"ε={epsilon}",
        along=tuple(each.false_positive for each in found),
        values=tuple(each.false_negative for each in found),
        spots=Spots(
            along=tuple(share.value for share in wrong),
            values=tuple(share.value for share in missed),
            off=tuple(TWO * share.error for share in missed),
        ),
    )


def _roc_row(found: Simulation, epsilon: float) -> tuple[float, ...]:
    exact, ours = rates_at(TRUTH, epsilon), rates_at(TRUTH, epsilon / 4, "staircase")
    wrong, right = found.false_positive, found.true_positive
    own = exact.false_positive, exact.true_positive, wrong.value, right.value, right.error
    return *own, ours.false_positive, ours.true_positive


def _spot(seen: Runs, epsilon: str) -> Curve:
    """One simulated point, with the exact one beneath it."""
    exact, found = rates_at(TRUTH, float(epsilon)), seen[epsilon, TRUTH]
    return Curve(
        label=f"simulated at ε={epsilon}",
        along=(exact.false_positive,),
        values=(exact.true_positive,),
        spots=Spots(
            along=(found.false_positive.value,),
            values=(found.true_positive.value,),
            off=(TWO * found.true_positive.error,),
        ),
    )


def _trace() -> Curve:
    found = [rates_at(TRUTH, epsilon) for epsilon in LINE]
    return Curve(
        label="OUTLIERDETECT, exact, as ε moves",
        along=tuple(each.false_positive for each in found),
        values=tuple(each.true_positive for each in found),
    )
