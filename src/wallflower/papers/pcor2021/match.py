"""Tables 12 and 13, the ratios of 6.7, and the chosen record that shows what they leave out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Final

import numpy as np

from wallflower.papers.facts import printed_table
from wallflower.papers.page import Section, Sheet
from wallflower.papers.panels import Curve, Panel
from wallflower.papers.pcor2021.exact import DETECTORS, Outlier
from wallflower.papers.pcor2021.neighbours import Match, match_chosen_records, matches
from wallflower.papers.pcor2021.surveys import LOSS, Survey
from wallflower.papers.pcor2021.tables import PAPER

REMOVED: Final = (1, 5, 10, 25)
WRITTEN: Final = {"Grubbs": "Grubbs", "LOF": "LOF", "Histogram": "histogram"}  # the paper's rows, by our names
RATE: Final = float(LOSS) / 2  # the paper's eps1: weights are exp(eps1·population), and it books twice that
CHOSEN: Final = 5  # metrics of an added record, evenly over those there are, beside the outlier's own
DELTAS: Final = (0.1, 0.5, 0.9)

Found = Mapping[tuple[str, int], Sequence[Match]]  # by detector and how many are removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """How many outliers are asked about, and neighbours of each: for every number removed, and for the ratios."""

    outliers: int
    each: int
    ratios: int

    def many(self, detector: str, each: int) -> int:
        """Return the number of each, half of it where they take long."""
        return -(-each // 2) if detector == "LOF" else each


def find_matches(survey: Survey, size: Neighbours) -> Found:
    """Matches for the three detectors and every number of records removed."""
    return {
        (detector, removed): matches(
            survey.outliers(detector)[: size.outliers], removed, size.many(detector, size.each), RATE
        )
        for detector in DETECTORS
        for removed in REMOVED
    }


def match(number: int, survey: Survey, found: Found) -> Section:
    """Table 12 or 13."""
    printed = {row["algorithm"]: row for row in printed_table(PAPER, f"table{number}")}
    rows: list[tuple[str | float, ...]] = []
    for written, detector in WRITTEN.items():
        for removed in REMOVED:
            here = found[detector, removed]
            rows.append((written, removed, printed[written][f"delta_{removed}"], len(here), *shares(here)))
    return Section(
        name=f"table{number}",
        title=f"Table {number}: contexts set match, {survey.register.name}",
        caption=f"{survey.words}; the records removed are random. How the paper measures a match is not printed, so "
        "both are given: equal, the share of neighbours with exactly the same valid contexts, all that its guarantee "
        "speaks of; shared, of the contexts valid in either table the part valid in both, on average. It asked about "
        "100 outliers with 50 neighbours each; neighbours here are in their column. Levels of Grubbs and LOF are not "
        "printed.",
        sheet=Sheet(
            heading=("algorithm", "removed", "printed_match", "neighbours", "our_equal", "our_shared"), rows=tuple(rows)
        ),
        panels=tuple(_panel(written, detector, printed[written], found) for written, detector in WRITTEN.items()),
        across=3,
    )


def shares(found: Sequence[Match]) -> tuple[float, float]:
    """How many are equal, and how much is shared."""
    return mean(one.equal for one in found), mean(one.shared for one in found)


def _panel(written: str, detector: str, printed: Mapping[str, str], found: Found) -> Panel:
    equal, shared = zip(*(shares(found[detector, removed]) for removed in REMOVED), strict=True)
    percents = tuple(float(printed[f"delta_{removed}"].rstrip("%")) / 100 for removed in REMOVED)
    return Panel(
        title=written,
        along=tuple(map(float, REMOVED)),
        curves=(
            Curve(label="as printed", values=percents),
            Curve(label="here, equal sets", values=equal, ours=True),
            Curve(label="here, shared part", values=shared),
        ),
        across="records removed",
        up="contexts set match",
        scale="shares",
    )


def full_match(surveys: Sequence[Survey], repetitions: int) -> Section:
    """The same where registers are full, with one record removed and detectors that are quick."""
    rows: list[tuple[str | float, ...]] = []
    for survey in surveys:
        for detector in ("Grubbs", "histogram"):
            found = matches(survey.outliers(detector), 1, repetitions, RATE)
            rows.append((survey.register.name, survey.register.n, detector, len(found), *shares(found)))
    return Section(
        name="full-match",
        title="The same with one record removed, where there are many contexts",
        caption="Not in the paper, which took small registers to save time and expects larger ones to do better. Full "
        "ones have more contexts, so that one of them changes more often. LOF would take seconds for each.",
        sheet=Sheet(heading=("data", "records", "detector", "neighbours", "equal", "shared"), rows=tuple(rows)),
    )


def ratios(survey: Survey, size: Neighbours) -> Section:
    """6.7 (ii): of neighbours with unequal sets, how probable a context valid in both is in one and the other."""
    rows: list[tuple[str | float, ...]] = []
    for written, detector in WRITTEN.items():
        asked = survey.outliers(detector)[: size.outliers]
        tried = matches(asked, 1, size.many(detector, size.ratios), RATE)
        unequal = [one for one in tried if not one.equal and one.shared]
        over = sum(one.excess > float(LOSS) for one in unequal)
        worst = (max((getattr(one, each) for one in unequal), default=math.nan) for each in ("above", "below", "lost"))
        rows.append((written, len(tried), len(unequal), f"0, below e^{LOSS}", over, *worst))
    return Section(
        name="ratios",
        title="6.7 (ii): neighbours with unequal context sets, contexts valid in both",
        caption=f"{survey.words}; random neighbours with one record less. A draw weighs contexts by "
        f"exp({RATE:g}·population), the paper's ε={LOSS}. over: how many of the unequal ones have a context valid in "
        f"both whose probabilities differ by more than e^{LOSS}; then the largest logarithm of the ratio, of the whole "
        "table to the neighbour and back. It is large where the removed record makes the largest context valid or "
        "invalid, so that nearly all probability moves. That is rare among random records: in four draws of 3,600 "
        "neighbours in all about 175 were unequal and 3 of them over. A whole page has the draw that is known to hold "
        "them, so that its share is no estimate of how often it happens. impossible is what the experiment leaves "
        "out: the probability of outputs that cannot occur in the other table, which no ratio bounds.",
        sheet=Sheet(
            heading=(
                "detector",
                "neighbours",
                "unequal",
                "printed_over",
                "over",
                "log_ratio",
                "log_back",
                "impossible",
            ),
            rows=tuple(rows),
        ),
    )


def chosen_record(surveys: Sequence[Survey], count: int) -> Section:
    """What one record that somebody chose does, to the same ratio and to what is possible."""
    rows: list[tuple[str | float, ...]] = []
    for survey in surveys:
        between = np.linspace(survey.register.metric.min(), survey.register.metric.max(), CHOSEN).tolist()
        for written, detector in WRITTEN.items():
            found = [_worst_match(outlier, between) for outlier in survey.outliers(detector)[:count]]
            over = mean(excess > float(LOSS) for excess, _ in found)
            worst = max(excess for excess, _ in found)
            deltas = (mean(lost > delta for _, lost in found) for delta in DELTAS)
            rows.append((survey.register.name, written, len(found), over, worst, *deltas))
    return Section(
        name="chosen",
        title="A chosen record: why random neighbours do not suffice",
        caption="One record is added that shares all the record's own values; its metric is the record's own or one of "
        f"{CHOSEN}, evenly from the least to the largest there is. over: the share of outliers for which a context "
        f"valid in both tables is more than e^{LOSS} times as probable in one of them, and the largest logarithm of "
        "such a ratio. delta: the share for which outputs of such a probability are impossible in the other table; any "
        "(ε, δ)-guarantee needs a δ as large. From the exact law at the paper's rate; other changes may do more.",
        sheet=Sheet(
            heading=("data", "detector", "outliers", "over", "largest_log", *(f"delta_over_{d:g}" for d in DELTAS)),
            rows=tuple(rows),
        ),
    )


def _worst_match(outlier: Outlier, between: Sequence[float]) -> tuple[float, float]:
    found = list(match_chosen_records(outlier, (*between, float(outlier.register.metric[outlier.row])), RATE))
    return max(one.excess for one in found), max(one.lost for one in found)
