"""Figures 3 to 5 of [Deg20], the figure it lacks, and its mechanism's successor on real streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from wallflower.papers.data.streams import streams
from wallflower.papers.degue2020.detection import DETAIL, comparison_section, detail_sheet, judgements
from wallflower.papers.degue2020.outlierdetect import (
    TRUTH,
    Share,
    Simulation,
    naive_false_negative,
    naive_false_positive,
    own_epsilon,
    simulate,
    world,
)
from wallflower.papers.page import Curve, Panel, Section, Sheet, Spots, leave, write_page
from wallflower.queries.watch.rates import Mechanism, rates, roc, run_interval, staircase_at, true_positive_at

TITLE: Final = "Differentially Private Outlier Detection in Multivariate Gaussian Signals, its figures again"
LEAD: Final = (
    "Degue, Gopalakrishnan, Li, Balakrishnan and Le Ny, 2020. The example is theirs: 30 entries an observation, 1000 "
    "observations, the sum has mean 17,300 and variance 3.01e7, one entry changes by at most 500, an outlier is 9,130 "
    "from the mean. The paper's text was not at hand: which quantity stands in which figure is our reading. Dashed red "
    "curves do not hold what they say. ε is the paper's own parameter, E what one entry of one observation really pays."
)
NOT_COMPUTABLE: Final = "NOT COMPUTABLE AS PRINTED"
NO_GUARANTEE: Final = "NO GUARANTEE BEFOREHAND"
EPSILONS: Final = ("0.1", "0.2", "0.5", "1", "2", "5", "10")
LINE: Final = tuple(float(value) for value in np.geomspace(0.1, 10, 31))
TRUTHS: Final = (5e3, TRUTH, 1.5e4)
FLOORS: Final = {"P_I": 2e-4, "P_II": 1e-2}
CURVES: Final = ("0.1", "0.5", "2", "10")
THRESHOLDS: Final = (7e3, TRUTH, 1.1e4)
SPENT: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
ALLOWED: Final = (0.1, 0.01)
TWO: Final = 2.0  # error bars in standard errors

Runs = Mapping[tuple[float, str], Simulation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One of the two ways to be wrong: how it is computed, how simulated, how printed."""

    name: str
    symbol: str
    words: str
    exact: Callable[[Mechanism, float, float], float]
    naive: Callable[[float], float]
    simulated: Callable[[Simulation], Share]
    why: str


def _missed(found: Simulation) -> Share:
    return Share(found.true_positive.of - found.true_positive.flagged, found.true_positive.of)


FALSE_POSITIVE: Final = Kind(
    name="figure3",
    symbol="P_I",
    words="usual observations flagged",
    exact=lambda mechanism, epsilon, truth: _rates(mechanism, epsilon, truth).false_positive,
    naive=naive_false_positive,
    simulated=lambda found: found.false_positive,
    why="the theorem is right, but on a machine its difference of error functions cancels and its exponential "
    "overflows: at ε=2 it gives .0363 where .0324 is true, at ε=5 it gives 0 where .0107 is true, at ε=10 nothing",
)
FALSE_NEGATIVE: Final = Kind(
    name="figure4",
    symbol="P_II",
    words="outliers missed",
    exact=lambda mechanism, epsilon, truth: _rates(mechanism, epsilon, truth).false_negative,
    naive=naive_false_negative,
    simulated=_missed,
    why="the theorem is right, but on a machine it is something that overflows times something that vanishes: from "
    "ε=6.6 on it gives nothing, where .061 is true",
)


def reproduce(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write every table, picture and the page into `folder`."""
    sections = []
    for section in _sections(10 if quick else 100):
        sections.append(section)
        yield from leave(folder, section, say)
    rows = judgements(streams(say), 3 if quick else 20)
    if rows:
        sections.append(comparison_section(rows))
        yield from leave(folder, sections[-1], say)
        detail_sheet(rows).write(folder / DETAIL)
        yield folder / DETAIL
    yield write_page(folder / "degue2020.html", TITLE, LEAD, sections)


def _sections(runs: int) -> Iterator[Section]:
    seen = {(truth, epsilon): simulate(epsilon, truth, truth, runs) for truth in TRUTHS for epsilon in EPSILONS}
    yield errors(FALSE_POSITIVE, seen, runs)
    yield errors(FALSE_NEGATIVE, seen, runs)
    yield figure5(runs)
    yield spending_section()


def errors(kind: Kind, seen: Runs, runs: int) -> Section:
    """Figure 3 or 4: a rate of errors against ε, for several definitions of an outlier, and at theirs in detail."""
    rows = [_errors_row(kind, seen[truth, epsilon], truth, epsilon) for truth in TRUTHS for epsilon in EPSILONS]
    heading = ("h", "epsilon", kind.symbol, "simulated", "standard_error", "run_from", "run_to")
    band = " The band is where the rate of one run lies, nine times of ten, by the law of the shared noisy threshold."
    return Section(
        name=kind.name,
        title=f"Figure {kind.name[-1]}: {kind.words} ({kind.symbol}), against ε",
        caption=f"Lines are exact, points are {runs} runs of the mechanism with 1000 observations each, and two "
        "standard errors. Left: the threshold equals h, from which on it is an outlier, as the paper has it. Right: "
        "the paper's h, and our staircase at the same true loss of one entry, E = ε/4. All observations of a run share "
        "one noisy threshold, so a run does not settle at these rates however long it is: run_from and run_to are what "
        f"the middle nine in ten of the runs gave.{band if kind is FALSE_POSITIVE else ''}",
        sheet=Sheet(heading=(*heading, f"naive_{NOT_COMPUTABLE.replace(' ', '_')}", "staircase"), rows=tuple(rows)),
        panels=(_all_truths(kind, seen), _own_truth(kind, seen)),
    )


def figure5(runs: int) -> Section:
    """ROC: the decision threshold moves, the definition of an outlier does not."""
    marks = {
        epsilon: [simulate(epsilon, threshold, TRUTH, max(10, runs // 2)) for threshold in THRESHOLDS]
        for epsilon in CURVES
    }
    left = tuple(
        _roc("paper", float(epsilon), f"OUTLIERDETECT, ε={epsilon}", spots=_roc_spots(marks[epsilon]))
        for epsilon in CURVES
    )
    right = (
        _roc("paper", 2.0, "OUTLIERDETECT, ε=2"),
        _roc("staircase", 0.5, "wallflower's default at the same true loss, E=0.5", ours=True),
    )
    rows = tuple(
        (float(epsilon), threshold, *each)
        for epsilon in CURVES
        for threshold, found in zip(THRESHOLDS, marks[epsilon], strict=True)
        for each in [_roc_row(epsilon, threshold, found)]
    )
    heading = ("epsilon", "threshold", "false_positive", "simulated_false", "error_false")
    return Section(
        name="figure5",
        title="Figure 5: outliers found against usual observations flagged (ROC)",
        caption="An outlier is 9,130 from the mean throughout; the threshold for a flag is moved. The paper lets the "
        "two be one, and then there is no such curve. One run wanders along its curve with its noisy threshold.",
        sheet=Sheet(heading=(*heading, "true_positive", "simulated_true", "error_true", "staircase_true"), rows=rows),
        panels=(
            _roc_panel("several ε, points at three thresholds", left),
            _roc_panel("at the same true loss of one entry, E=0.5", right),
        ),
    )


def spending_section() -> Section:
    """What the paper does not show: outliers found against the privacy really spent."""
    found = {(total, allowed): _spent_row(total, allowed) for allowed in ALLOWED for total in SPENT}
    own = f"own_{NO_GUARANTEE.replace(' ', '_')}"
    heading = ("E", "false_positive", own, "own_at_h", "true_cost", "laplace", "staircase")
    return Section(
        name="spent",
        title="Outliers found against the privacy spent",
        caption="The threshold is set so that 10 % or 1 % of the usual observations are flagged; outliers found, by "
        "the total E that one entry of one observation pays. By the paper's own accounting, (K+1)ε/2 for K flags, ε is "
        "what makes E of the flags expected (own), or of those expected at the only threshold the paper allows "
        "(own_at_h), where half of everything is flagged. For the neighbours the paper defines the same mechanism "
        "costs ε/4 however many flags there are (true cost); plain Laplace noise is a little better, and the "
        "staircase, with a coin between two thresholds, is the best there is.",
        sheet=Sheet(heading=heading, rows=tuple((*key, *row) for key, row in found.items())),
        panels=tuple(_spent_panel(found, allowed) for allowed in ALLOWED),
    )


def _rates(mechanism: Mechanism, epsilon: float, truth: float) -> Any:
    return rates(mechanism, threshold=truth, epsilon=epsilon, **world(truth))


def _errors_row(kind: Kind, found: Simulation, truth: float, epsilon: str) -> tuple[float, ...]:
    value, share = float(epsilon), kind.simulated(found)
    exact, ours = kind.exact("paper", value, truth), kind.exact("staircase", value / 4, truth)
    naive = kind.naive(value) if truth == TRUTH else float("nan")
    return truth, value, exact, share.value, share.error, *share.run, naive, ours


def _all_truths(kind: Kind, seen: Runs) -> Panel:
    curves = tuple(_line(kind, truth, seen) for truth in TRUTHS)
    return _errors_panel(kind, "OUTLIERDETECT, threshold = h", curves)


def _own_truth(kind: Kind, seen: Runs) -> Panel:
    band = None
    if kind is FALSE_POSITIVE:
        ends = [run_interval("paper", threshold=TRUTH, epsilon=epsilon, **world()) for epsilon in LINE]
        band = (tuple(low for low, _ in ends), tuple(high for _, high in ends))
    naive = Curve(
        label=f"the printed formula, evaluated as it stands: {NOT_COMPUTABLE}",
        along=LINE,
        values=tuple(kind.naive(epsilon) for epsilon in LINE),
        why=kind.why,
    )
    ours = Curve(
        label="wallflower's default at the same true loss, E = ε/4",
        along=LINE,
        values=tuple(kind.exact("staircase", epsilon / 4, TRUTH) for epsilon in LINE),
        ours=True,
    )
    return _errors_panel(kind, f"h={TRUTH:g}, the paper's", (_line(kind, TRUTH, seen, band), naive, ours))


def _line(
    kind: Kind, truth: float, seen: Runs, band: tuple[tuple[float, ...], tuple[float, ...]] | None = None
) -> Curve:
    shares = [kind.simulated(seen[truth, epsilon]) for epsilon in EPSILONS]
    return Curve(
        label=f"OUTLIERDETECT, h={truth:g}",
        along=LINE,
        values=tuple(kind.exact("paper", epsilon, truth) for epsilon in LINE),
        band=band,
        spots=Spots(
            along=tuple(map(float, EPSILONS)),
            values=tuple(share.value for share in shares),
            off=tuple(TWO * share.error for share in shares),
        ),
    )


def _errors_panel(kind: Kind, title: str, curves: tuple[Curve, ...]) -> Panel:
    return Panel(
        title=title,
        along=tuple(map(float, EPSILONS)),
        curves=curves,
        across="ε of the paper",
        up=f"{kind.words}, {kind.symbol}",
        scale="rates",
        floor=FLOORS[kind.symbol],
    )


def _roc(mechanism: Mechanism, epsilon: float, label: str, *, ours: bool = False, spots: Spots | None = None) -> Curve:
    found = roc(mechanism, epsilon=epsilon, points=120, **world())
    flagged, right = (tuple(map(float, rate)) for rate in (found.false_positive, found.true_positive))
    return Curve(label=label, along=flagged, values=right, ours=ours, spots=spots)


def _roc_panel(title: str, curves: tuple[Curve, ...]) -> Panel:
    return Panel(
        title=title,
        along=(1e-3, 1e-2, 1e-1, 1.0),
        curves=curves,
        across="usual observations flagged",
        up="outliers found",
        scale="roc",
    )


def _roc_spots(found: Sequence[Simulation]) -> Spots:
    return Spots(
        along=tuple(each.false_positive.value for each in found),
        values=tuple(each.true_positive.value for each in found),
        off=tuple(TWO * each.true_positive.error for each in found),
    )


def _roc_row(epsilon: str, threshold: float, found: Simulation) -> tuple[float, ...]:
    exact = rates("paper", threshold=threshold, epsilon=float(epsilon), **world())
    ours = staircase_at(exact.false_positive, epsilon=float(epsilon) / 4, **world()).true_positive
    wrong, right = found.false_positive, found.true_positive
    return exact.false_positive, wrong.value, wrong.error, exact.true_positive, right.value, right.error, ours


def _spent_row(total: float, allowed: float) -> tuple[float, ...]:
    own = [true_positive_at("paper", allowed, epsilon=own_epsilon(total, at), **world())[1] for at in (allowed, None)]
    real = true_positive_at("paper", allowed, epsilon=4 * total, **world())[1]
    plain = true_positive_at("laplace", allowed, epsilon=total, **world())[1]
    return *own, real, plain, staircase_at(allowed, epsilon=total, **world()).true_positive


def _spent_panel(found: Mapping[tuple[float, float], tuple[float, ...]], allowed: float) -> Panel:
    own, _, real, plain, ours = zip(*(found[total, allowed] for total in SPENT), strict=True)
    why = (
        "(K+1)ε/2 is known only when the flags K are, so no loss can be stated before they are seen; it is what a "
        "person present in every observation pays, and far more than the neighbours of the paper need"
    )
    return Panel(
        title=f"{allowed:.0%} of the usual observations flagged",
        along=SPENT,
        curves=(
            Curve(label=f"OUTLIERDETECT by the paper's own accounting: {NO_GUARANTEE}", values=own, why=why),
            Curve(label="OUTLIERDETECT at its true cost, ε = 4E: E-DP", values=real),
            Curve(label="Laplace noise on the distance: E-DP", values=plain),
            Curve(label="wallflower's default, the staircase: E-DP", values=ours, ours=True),
        ),
        across="E, what one entry of one observation pays",
        up="outliers found",
        chance=allowed,
    )
