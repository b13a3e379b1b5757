"""What [Deg20] does not draw: other definitions of an outlier, a threshold apart from it, and what is really spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from wallflower.papers.degue2020.figures import FALSE_POSITIVE, TWO, Kind, Runs, rates_at
from wallflower.papers.degue2020.outlierdetect import (
    ENTRIES,
    LENGTH,
    TRUTH,
    Simulation,
    input_perturbation_at,
    own_epsilon,
    simulate,
    world,
)
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel, Spots
from wallflower.queries.watch.forecast.rates import Mechanism, rates, roc, run_interval, staircase_at, true_positive_at

NO_GUARANTEE: Final = "NO GUARANTEE BEFOREHAND"
EPSILONS: Final = ("0.1", "0.2", "0.5", "1", "2", "5", "10")
LINE: Final = tuple(float(value) for value in np.geomspace(0.1, 10, 31))
TRUTHS: Final = (5e3, TRUTH, 1.5e4)
FLOORS: Final = {"P_I": 2e-4, "P_II": 1e-2}
CURVES: Final = ("0.1", "0.5", "2", "10")
THRESHOLDS: Final = (7e3, TRUTH, 1.1e4)
SPENT: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
ALLOWED: Final = (0.1, 0.01)


def error_runs(runs: int) -> Runs:
    """Runs of the mechanism at every definition of an outlier."""
    return {(epsilon, truth): simulate(epsilon, truth, truth, runs) for truth in TRUTHS for epsilon in EPSILONS}


def errors(kind: Kind, seen: Runs, runs: int) -> Section:
    """A rate of errors against ε, for several definitions of an outlier, and at the paper's beside the staircase."""
    rows = [_errors_row(kind, seen[epsilon, truth], truth, epsilon) for truth in TRUTHS for epsilon in EPSILONS]
    heading = ("h", "epsilon", kind.symbol, "simulated", "standard_error", "run_from", "run_to", "staircase")
    band = " The band is where the rate of one run lies, nine times of ten, by the law of the shared noisy threshold."
    return Section(
        name=f"ours-{kind.symbol}",
        title=f"Ours: {kind.words} ({kind.symbol}) against ε, for three definitions of an outlier",
        caption=f"No figure of the paper. Lines are exact, points are {runs} runs of the mechanism with {LENGTH} "
        "observations each, and two standard errors. Left: the threshold equals h, from which on it is an outlier. "
        "Right: the paper's h, and our staircase at the same true loss of one entry, E = ε/4. All observations of a "
        "run share one noisy threshold, so a run does not settle at these rates however long it is: run_from and "
        "run_to are what the middle nine in ten of the runs gave."
        f"{band if kind is FALSE_POSITIVE else ''}",
        sheet=Sheet(heading=heading, rows=tuple(rows)),
        panels=(_all_truths(kind, seen), _own_truth(kind, seen)),
    )


def roc_section(runs: int) -> Section:
    """ROC in the usual sense: the decision threshold moves, the definition of an outlier does not."""
    marks = {
        epsilon: [simulate(epsilon, threshold, TRUTH, max(5, runs // 2)) for threshold in THRESHOLDS]
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
        name="ours-roc",
        title="Ours: outliers found against usual observations flagged, the threshold moved",
        caption=f"No figure of the paper: an outlier is {TRUTH:,g} from the mean throughout, and the threshold for a "
        "flag is moved. The paper lets the two be one. One run wanders along its curve with its noisy threshold.",
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
    heading = ("E", "false_positive", own, "own_at_h", "true_cost", "input", "laplace", "staircase")
    return Section(
        name="spent",
        title="Ours: outliers found against the privacy spent",
        caption="No figure of the paper. The threshold is set so that 10 % or 1 % of the usual observations are "
        "flagged; outliers found, by the total E that one entry of one observation pays. By the paper's own "
        "accounting, (K+1)ε/2 for K flags, ε is what makes E of the flags expected (own), or of those expected at the "
        "only threshold the paper allows (own_at_h), where half of everything is flagged. For the neighbours the paper "
        "defines the same mechanism costs ε/4 however many flags there are (true cost). Its introduction names input "
        f"and output perturbation: noise on every entry (input) adds up {ENTRIES} times and finds fewer; noise on the "
        "distance (laplace) finds a little more than OUTLIERDETECT, and the staircase, with a coin between two "
        "thresholds, is the best there is.",
        sheet=Sheet(heading=heading, rows=tuple((*key, *row) for key, row in found.items())),
        panels=tuple(_spent_panel(found, allowed) for allowed in ALLOWED),
    )


def _errors_row(kind: Kind, found: Simulation, truth: float, epsilon: str) -> tuple[float, ...]:
    value, share = float(epsilon), kind.simulated(found)
    exact, ours = kind.exact(rates_at(truth, value)), kind.exact(rates_at(truth, value / 4, "staircase"))
    return truth, value, exact, share.value, share.error, *share.run, ours


def _all_truths(kind: Kind, seen: Runs) -> Panel:
    curves = tuple(_line(kind, truth, seen) for truth in TRUTHS)
    return _errors_panel(kind, "OUTLIERDETECT, threshold = h", curves)


def _own_truth(kind: Kind, seen: Runs) -> Panel:
    band = None
    if kind is FALSE_POSITIVE:
        ends = [run_interval("paper", threshold=TRUTH, epsilon=epsilon, **world()) for epsilon in LINE]
        band = (tuple(low for low, _ in ends), tuple(high for _, high in ends))
    ours = Curve(
        label="wallflower's default at the same true loss, E = ε/4",
        along=LINE,
        values=tuple(kind.exact(rates_at(TRUTH, epsilon / 4, "staircase")) for epsilon in LINE),
        ours=True,
    )
    return _errors_panel(kind, f"h={TRUTH:g}, the paper's", (_line(kind, TRUTH, seen, band), ours))


def _line(
    kind: Kind, truth: float, seen: Runs, band: tuple[tuple[float, ...], tuple[float, ...]] | None = None
) -> Curve:
    shares = [kind.simulated(seen[epsilon, truth]) for epsilon in EPSILONS]
    return Curve(
        label=f"OUTLIERDETECT, h={truth:g}",
        along=LINE,
        values=tuple(kind.exact(rates_at(truth, epsilon)) for epsilon in LINE),
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
    noisy_entries = input_perturbation_at(allowed, total)
    return *own, real, noisy_entries, plain, staircase_at(allowed, epsilon=total, **world()).true_positive


def _spent_panel(found: Mapping[tuple[float, float], tuple[float, ...]], allowed: float) -> Panel:
    own, _, real, noisy_entries, plain, ours = zip(*(found[total, allowed] for total in SPENT), strict=True)
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
            Curve(label="input perturbation, Laplace noise on every entry: E-DP", values=noisy_entries),
            Curve(label="output perturbation, Laplace noise on the distance: E-DP", values=plain),
            Curve(label="wallflower's default, the staircase: E-DP", values=ours, ours=True),
        ),
        across="E, what one entry of one observation pays",
        up="outliers found",
        chance=allowed,
    )
