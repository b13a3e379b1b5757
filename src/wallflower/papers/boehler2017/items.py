"""Every item of [Boe17] beside ours: the table its page opens with."""

from __future__ import annotations

import os
from typing import Final

from wallflower.papers.boehler2017.figure3 import ACCURACY, SEPARATIONS, SUBSET, Figure3
from wallflower.papers.boehler2017.modes import ALONE, EPSILONS, EXACT, FACTS, LITERAL
from wallflower.papers.boehler2017.statements import HIGH, LIMIT, LOW, MIDDLE, SEPARATED
from wallflower.papers.data.readings import NEIGHBOURS, RADIUS, WIDE
from wallflower.papers.facts import DEVIATES, IMPROVED, WORKS, Comparison, judge
from wallflower.papers.methods import CurveLabel

Ours = tuple[str, str, str]  # what is here, its status, why it differs
ABOUT: Final = 0.05  # a share that is called "about" another
UNPRINTED: Final = "the parameters of DBSCAN and w_O are not printed"


def compare_items(found: Figure3, milliseconds: float) -> list[Comparison]:
    """A row for every printed fact, in the order of its file. The correction took `milliseconds`."""
    ours = _privacy() | _protocol() | _trust() | _setup(found) | _claims(found) | _rest(milliseconds)
    assert ours.keys() == FACTS.keys()
    return [Comparison(item, fact, *ours[item]) for item, fact in FACTS.items()]


def _privacy() -> dict[str, Ours]:
    return {
        "relaxed sensitivity": (
            "range of each column; metric privacy within a box",
            IMPROVED,
            "ε holds for all readings of the box in proportion to their distance, not for some of them only",
        ),
        "order of sensitivities": ("range ≤ width of the box", WORKS, ""),
        "extremes": ("ε W/R in a box of width W, stated beside ε", IMPROVED, "without a box there is no bound"),
        "percentiles": ("wf.sensors.usual_ranges, from a public history", WORKS, ""),
        "ranges that are too small": ("metric privacy says the same", WORKS, ""),
        "assumption: outer layer": ("distance from a public centre", WORKS, ""),
        "assumption: share known": ("outlier_share of usual_ranges, or a stated range", WORKS, ""),
        "assumption: one cluster": (
            "one centre a stream; a stream for each group",
            DEVIATES,
            "groups are told apart by something public: found in the readings, they would cost a part of ε",
        ),
    }


def _protocol() -> dict[str, Ours]:
    return {
        "false negatives": ("mode exact has none; mode paper looks for both", IMPROVED, ""),
        "scaling": (
            "public constants",
            DEVIATES,
            "with its own mean and deviation one reading of a batch moves all others, by more than its noise hides",
        ),
        "perturbation": ("noise = columns; planar is 13 % smaller for the same promise", IMPROVED, ""),
        "d_diff": ("modes paper and grid, in whole steps", WORKS, ""),
        "detection": ("mode paper: DBSCAN, or any `detector` by name", IMPROVED, ""),
        "gap rule": ("gap = literal; upper, the default, keeps what noise moved inwards", IMPROVED, ""),
        "candidates": ("I2 and I3 in mode paper", WORKS, ""),
        "layers": ("three layers in mode paper", WORKS, ""),
        "output": ("sealed to the owner", IMPROVED, ""),
    }


def _trust() -> dict[str, Ours]:
    return {
        "one perturbation": (
            "the same, exported by `sensors export`; readings add up in a ledger at the sensor",
            IMPROVED,
            "",
        ),
        "correction server": (
            "nothing in mode exact",
            DEVIATES,
            "d_diff has no finite ε: at the centre it is never negative, elsewhere it may be",
        ),
        "analyst": (
            "perturbed readings alone, in mode exact",
            DEVIATES,
            "d_TP is d_diff of one presumed reading, outlier or not: where one is presumed it gives its distance away",
        ),
        "adversary": ("the same; tags notice a changed share", IMPROVED, ""),
        "what colluding servers learn": (
            "every distance from the centre, exactly",
            DEVIATES,
            "d_c(T') - d_diff = d_c(T): nothing is left to narrow down but the direction",
        ),
        "extension": (
            "not built",
            DEVIATES,
            "order does not show gaps, which the rule needs, nor sums with w_O; in mode exact no d_diff is ever sent",
        ),
        "secure computation": (
            "mode exact: sensors deal keys once and take no part afterwards",
            IMPROVED,
            "comparison keys need no answer to the sensor",
        ),
    }


def _setup(found: Figure3) -> dict[str, Ours]:
    return {
        "points": (f"{found.points}", WORKS, ""),
        "dimensions": ("2", WORKS, ""),
        "standard deviation, mean": ("3, 0 per column", WORKS, ""),
        "outliers": ("10%: the outermost tenth", WORKS, ""),
        "separations": (
            f"{', '.join(map(str, SEPARATIONS))}: the outermost tenth is pushed outwards by so much",
            WORKS,
            "",
        ),
        "epsilon": (f"{', '.join(EPSILONS)} a column, twice that a reading", WORKS, ""),
        "runs": (f"{len(found.runs['columns', SEPARATIONS[0], LOW])}, mean", WORKS, "five unless it is to be quick"),
        "accuracy": ("the same", WORKS, ""),
        "subset size": ("the same, over all readings", WORKS, ""),
        "ground truth": ("what was pushed, which is what DBSCAN leaves outside the biggest cluster", WORKS, ""),
        "DBSCAN": (
            f"our own; radius {RADIUS}, {NEIGHBOURS} neighbours, scaled",
            DEVIATES,
            "chosen: nothing is printed",
        ),
        "w_O": (
            f"{WIDE}, in the units of the readings",
            DEVIATES,
            "chosen: nothing is printed; `wf.sensors.outlier_width` takes it from a history",
        ),
    }


def _claims(found: Figure3) -> dict[str, Ours]:
    def share(separation: int, epsilon: str, mode: CurveLabel = LITERAL) -> float:
        return found.mean(("columns", separation, epsilon), mode, ACCURACY)

    def accuracy(separation: int, epsilon: str, mode: CurveLabel = LITERAL) -> str:
        return f"{share(separation, epsilon, mode):.0%}"

    def agrees(does: bool, why: str) -> tuple[str, str]:
        return judge(does, f"{why}; {UNPRINTED}", runs=runs, wanted=int(FACTS["runs"].number))

    def subset(separation: int, epsilon: str) -> float:
        return found.mean(("columns", separation, epsilon), LITERAL, SUBSET)

    near, far = SEPARATED
    runs = len(found.runs["columns", SEPARATIONS[0], LOW])
    about, (least, *_) = FACTS["accuracy eps=0.1"].number / 100, FACTS["accuracy eps=0.5"].numbers
    wanted, size = (float(number) / 100 for number in FACTS["accuracy eps=0.1, well separated"].numbers)
    found_in = ", ".join(f"{accuracy(s, LOW)} in {subset(s, LOW):.1%}" for s in SEPARATED)
    best = f"{accuracy(far, LOW, EXACT)} in 10%"
    wide = [f"{subset(s, e):.1%} at {s}, ε={e}" for s in SEPARATIONS for e in EPSILONS if subset(s, e) >= LIMIT]
    return {
        "accuracy eps=0.1": (
            f"{accuracy(near, LOW)} at {near}, {accuracy(far, LOW)} at {far}",
            *agrees(all(abs(share(s, LOW) - about) <= ABOUT for s in SEPARATED), f"other shares are found, {far} most"),
        ),
        "accuracy eps=0.1, well separated": (
            f"{found_in}; mode exact: {best}",
            *(
                (IMPROVED, "")
                if share(far, LOW, EXACT) >= wanted
                else agrees(False, f"less than {wanted:.0%} in {size:.0%} is found")
            ),
        ),
        "accuracy eps=0.5": (
            ", ".join(f"{accuracy(s, MIDDLE)} at {s}" for s in SEPARATIONS),
            *agrees(
                all(share(s, MIDDLE) >= float(least) / 100 for s in SEPARATIONS),
                "the printed gap rule or a bridge of noise loses whole runs",
            ),
        ),
        "eps=1": (
            "DBSCAN alone: " + ", ".join(f"{accuracy(s, HIGH, ALONE)} at {s}" for s in SEPARATIONS),
            WORKS,
            "",
        ),
        "subset size in all cells": (
            "; ".join(wide) + ("; all others below" if wide else "all below"),
            *agrees(not wide, f"at {SEPARATIONS[0]} DBSCAN or the third layer take in too many"),
        ),
    }


def _rest(milliseconds: float) -> dict[str, Ours]:
    return {
        "time of the correction": (f"{milliseconds:.1f} ms", IMPROVED, "whole numbers in arrays, another machine"),
        "machine": (f"one of {os.cpu_count()} cores", DEVIATES, "another machine, another decade"),
        "reference": ("[Boe17] in docs/references.bib", WORKS, ""),
    }
