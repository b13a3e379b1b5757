"""Every item of [Deg20] beside ours: the table its page opens with."""

from __future__ import annotations

from typing import Final

from wallflower.papers.degue2020.figures import (
    CURVES,
    EVERYTHING,
    FAITHFUL,
    HEIGHTS,
    KINDS,
    NOTHING,
    SHORT,
    SWEEP,
    Runs,
    off_by,
    rates_at,
)
from wallflower.papers.degue2020.outlierdetect import (
    CENTRE,
    ENTRIES,
    FACTS,
    LENGTH,
    RHO,
    SPREAD,
    TRUTH,
    VARIANCE,
    input_perturbation_at,
    outlier_share,
    world,
)
from wallflower.papers.facts import DEVIATES, IMPROVED, WORKS, Comparison
from wallflower.queries.watch.forecast.rates import staircase_at, true_positive_at

SPENT: Final = 1.0  # the loss of one entry at which ways to perturb are compared
ALLOWED: Final = 0.01  # share of usual observations that is flagged there

Ours = tuple[str, str, str]  # what is here, its status, why it differs


def compare_items(seen: Runs) -> list[Comparison]:
    """A row for every printed fact, in the order of its file."""
    ours = _model() | _mechanism() | _example() | _figures(seen) | _claims()
    assert ours.keys() == FACTS.keys()
    return [Comparison(item, fact, *ours[item]) for item, fact in FACTS.items()]


def _model() -> dict[str, Ours]:
    return {
        "input and output perturbation": _perturbations(),
        "outlier of level kappa": (f"`kappa` of `watch`; h is κ = {TRUTH / SPREAD:.3f}", WORKS, ""),
        "decision": ("threshold", WORKS, ""),
        "query": ("statistic sum, also weighted, mahalanobis and max", IMPROVED, ""),
        "correlated signals": (
            "covariance in watch and its plan; here independent entries are drawn",
            DEVIATES,
            "Σ itself is not printed; the mechanism sees nothing but the sum, whose mean and variance are as printed",
        ),
        "neighbours": (
            "level event with change; left out, the bounds enforce it; persons and windows too",
            IMPROVED,
            "one change for all observations, as the mechanism uses only the largest",
        ),
        "sensitivity": ("move of the gauge, in whole steps of a grid", WORKS, ""),
    }


def _perturbations() -> Ours:
    """The two ways that the introduction names, beside the mechanism and the default, at the same loss of one entry."""
    ways = {
        "noise on every entry": input_perturbation_at(ALLOWED, SPENT),
        "OUTLIERDETECT": true_positive_at("paper", ALLOWED, epsilon=4 * SPENT, **world())[1],
        "noise on the distance": true_positive_at("laplace", ALLOWED, epsilon=SPENT, **world())[1],
        "staircase": staircase_at(ALLOWED, epsilon=SPENT, **world()).true_positive,
    }
    found = ", ".join(f"{way} {share:.3f}" for way, share in ways.items())
    ours = f"outliers found at E={SPENT:g} and {ALLOWED:.0%} false alarms: {found}"
    return (ours, IMPROVED, "") if max(ways, key=lambda way: ways[way]) == "staircase" else (ours, WORKS, "")


def _mechanism() -> dict[str, Ours]:
    return {
        "OUTLIERDETECT": (
            "level paper, on whole numbers; the default is the staircase",
            IMPROVED,
            "the staircase finds more at the same loss of one entry",
        ),
        "privacy": (
            "ε/4 is booked, whatever K is",
            DEVIATES,
            "K is known only afterwards, so nothing could be promised beforehand; for these neighbours ε/4 is proved",
        ),
        "noise": ("LaplaceSum, in logarithms", IMPROVED, "nothing cancels or overflows"),
        "scores": ("integrated in logarithms", WORKS, ""),
        "true positive rate": _rate("of a formula that overflows from ε=6.6 on"),
        "false positive rate": _rate("of a formula that cancels from ε=2 on"),
        "limits eps->0": (_both(NOTHING), WORKS, ""),
        "limits eps->inf": (_both(EVERYTHING), WORKS, ""),
        "complement of P_I": ("true negative rate 1 - P_I", DEVIATES, "a slip: by Theorem 2, 1 - P_II is that of hits"),
    }


def _example() -> dict[str, Ours]:
    return {
        "m": (str(LENGTH), WORKS, f"rates of Figures 3 to 5 are over runs of {SHORT}, each with its own threshold"),
        "n": (str(ENTRIES), WORKS, ""),
        "1 mu": (f"{CENTRE:g}", WORKS, ""),
        "1 Sigma 1": (f"{VARIANCE:g}", WORKS, ""),
        "rho = Delta": (f"{RHO:g}", WORKS, ""),
        "h": (f"{TRUTH:g} ({outlier_share():.1%} outliers)", WORKS, ""),
    }


def _figures(seen: Runs) -> dict[str, Ours]:
    points = ", ".join(
        f"({found.false_positive:.3f}, {found.true_positive:.3f})"
        for epsilon in CURVES
        for found in [rates_at(TRUTH, float(epsilon))]
    )
    return {
        "Figure 1": ("not drawn", DEVIATES, "a sketch without numbers; docs/watch.md says what is done in which order"),
        "Figure 2": ("not drawn", DEVIATES, "a sketch without numbers; rates integrates over the regions it shows"),
        "Figure 3": (
            f"drawn; simulated within {off_by(seen):.1f} standard errors up to ε={FAITHFUL:g}, in Figures 3 to 5",
            WORKS,
            "",
        ),
        "Figure 4": (f"drawn, ε = {', '.join(CURVES)}; simulated at {len(HEIGHTS)} h too", IMPROVED, ""),
        "Figure 5": (
            f"{points} at ε = {', '.join(CURVES)}",
            WORKS,
            "its caption says curves; with h fixed there is one, which ε draws",
        ),
    }


def _claims() -> dict[str, Ours]:
    quiet = [kind.exact(rates_at(h, float(CURVES[0]))) for h in SWEEP for kind in KINDS]
    small, large = (rates_at(h, 1.0) for h in (HEIGHTS[0], HEIGHTS[-1]))
    moved = (
        f"ε=1, h {HEIGHTS[0]:g} → {HEIGHTS[-1]:g}: P_I {small.false_positive:.3f} → {large.false_positive:.3f}, "
        f"P_II {small.false_negative:.3f} → {large.false_negative:.3f}"
    )
    return {
        "no information at high privacy": (f"both errors from {min(quiet):.3f} to {max(quiet):.3f}", WORKS, ""),
        "higher h": (moved, WORKS, ""),
        "smaller eps": ("both errors rise as ε falls", WORKS, ""),
        "future work": ("none of it", DEVIATES, "no method is given for either"),
    }


def _rate(why: str) -> Ours:
    return "rates, at any ε to all digits", IMPROVED, f"the same algebra in place {why}"


def _both(epsilon: float) -> str:
    found = rates_at(TRUTH, epsilon)
    return f"TPR {found.true_positive:.5f}, P_I {found.false_positive:.5f} at ε={epsilon:g}"
