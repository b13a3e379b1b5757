"""Tables 2 to 13 of [Sha21] as far as they are known, where its guarantee ends, and what differential privacy costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Final

import numpy as np

from wallflower.errors import SourceError
from wallflower.papers.data.registers import Register, homicides, ontario, synthetic_salaries
from wallflower.papers.page import Curve, Panel, Section, Sheet, leave, write_page
from wallflower.papers.pcor2021.exact import DETECTORS
from wallflower.papers.pcor2021.margins import private
from wallflower.papers.pcor2021.neighbours import Match, impossible, matches
from wallflower.papers.pcor2021.tables import (
    LOSS,
    PAPER,
    SAMPLES,
    UNKNOWN,
    Survey,
    detectors,
    direct,
    epsilons,
    overlap,
    samples,
    searches,
)

TITLE: Final = "PCOR: Private Contextual Outlier Release via Differentially Private Search, its tables again"
LEAD: Final = (
    "Shafieinejad, Kerschbaum and Ilyas, 2021. The paper's text was not at hand: what its Tables 2 to 13 compare is "
    "known in outline, so tables here are named after what they compare, and the few values known to be printed stand "
    "beside ours. Its guarantee, output-constrained privacy, holds only between tables with the same valid contexts. "
    "What has no other guarantee is marked NOT DP, dashed and red. Utility is the population of the released context "
    "over the largest of a valid one, 0 where nothing is released; its interval, 19 in 20, is over records. Records "
    "are drawn at random among those with a valid context: for Grubbs from the tenth with the most extreme metrics, "
    "for LOF from the outliers in one of 100 random contexts. All registers are public, so exact figures may be shown."
)
REMOVED: Final = (1, 5, 10, 25)
CHOSEN: Final = 5  # metrics of an added record, evenly over those there are, beside the outlier's own
CHEAP: Final = 3  # times as many neighbours where examining them takes next to no time
DELTAS: Final = (0.1, 0.5, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many records are asked about, where a detector is slow, and by best-first search; releases about each, its
    neighbours, and records asked about privately.
    """

    records: int
    slow: int
    lazy: int
    releases: int
    neighbours: int
    private: int


FULL: Final = Size(records=12, slow=6, lazy=1, releases=5, neighbours=2, private=8)
QUICK: Final = Size(records=2, slow=1, lazy=0, releases=2, neighbours=1, private=1)


def reproduce(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write every table, picture and the page into `folder`."""
    sections = []
    for section in _sections(QUICK if quick else FULL, say):
        sections.append(section)
        yield from leave(folder, section, say)
    yield write_page(folder / "pcor2021.html", TITLE, LEAD, sections)


def _sections(size: Size, say: Callable[[str], None]) -> Iterator[Section]:
    large, *small = surveys = _surveys(size, say)
    yield searches(large, lazy=size.lazy)
    yield detectors("detectors", f"Breadth first by detector, ε={LOSS}, n={SAMPLES}", large, paper=PAPER["utility"])
    yield epsilons(large)
    yield samples(large)
    yield overlap(large)
    for survey in small:
        yield detectors("homicides", f"The same on homicide records, ε={LOSS}, n={SAMPLES}", survey, paper=UNKNOWN)
    yield direct(large)
    yield match(surveys, size.neighbours)
    yield chosen_record_section(surveys)
    yield private([survey.register for survey in surveys], size.private)


def _surveys(size: Size, say: Callable[[str], None]) -> list[Survey]:
    """Of salaries, and of homicides if they are at hand."""
    registers = _at_hand(ontario, say) or synthetic_salaries(), _at_hand(homicides, say)
    return [
        Survey(register=register, count=size.records, slow=size.slow, repetitions=size.releases)
        for register in registers
        if register
    ]


def _at_hand(make: Callable[[], Register], say: Callable[[str], None]) -> Register | None:
    try:
        return make()
    except SourceError as reason:
        say(f"skipped: {reason}")
        return None


def match(surveys: Sequence[Survey], repetitions: int) -> Section:
    """How often the valid contexts stay the same when random records of others go."""
    found = {
        (survey.register.name, detector, removed): matches(
            survey.outliers(detector), removed, repetitions * (CHEAP if detector == "Grubbs" else 1)
        )
        for survey in surveys
        for detector in _quick_enough(survey)
        for removed in REMOVED
    }
    rows: tuple[tuple[str | float, ...], ...] = tuple(
        (*key, len(each), _equal(each), mean(one.shared for one in each)) for key, each in found.items()
    )
    return Section(
        name="coe-match",
        title="COE match: are the same contexts valid after random records are removed?",
        caption="equal: the share of neighbours with exactly the same valid contexts, which are all that the paper's "
        "guarantee speaks of. shared: of the contexts valid in either table, the part valid in both. Every set is "
        "examined in full; neighbours are drawn. LOF is left out where it would take seconds for each. What the paper "
        "counts as a match, and its values, were not at hand.",
        sheet=Sheet(heading=("data", "detector", "removed", "neighbours", "equal", "shared"), rows=rows),
        panels=tuple(_match_panel(survey, found) for survey in surveys),
    )


def _quick_enough(survey: Survey) -> list[str]:
    return [detector for detector in DETECTORS if not survey.outliers(detector)[0].is_slow]


def _equal(found: Sequence[Match]) -> float:
    return mean(one.equal for one in found)


def _match_panel(survey: Survey, found: Mapping[tuple[str, str, int], Sequence[Match]]) -> Panel:
    name = survey.register.name
    return Panel(
        title=name,
        along=tuple(map(float, REMOVED)),
        curves=tuple(
            Curve(label=detector, values=tuple(_equal(found[name, detector, removed]) for removed in REMOVED))
            for detector in _quick_enough(survey)
        ),
        across="records removed",
        up="neighbours with equal valid contexts",
        scale="shares",
    )


def chosen_record_section(surveys: Sequence[Survey]) -> Section:
    """What one record that somebody chose makes impossible."""
    rows: list[tuple[str | float, ...]] = []
    for survey in surveys:
        register = survey.register
        between = np.linspace(register.metric.min(), register.metric.max(), CHOSEN).tolist()
        for detector in _quick_enough(survey):
            asked = survey.outliers(detector)
            found = [impossible(each, (*between, float(register.metric[each.row])), float(LOSS)) for each in asked]
            rows.append((register.name, detector, len(found), *(mean(d > delta for d in found) for delta in DELTAS)))
    return Section(
        name="chosen",
        title=f"A chosen record: how often output-constrained privacy at ε={LOSS} is no privacy",
        caption="One record is added that shares all the record's own values; its metric is the record's own or one of "
        f"{CHOSEN}, evenly from the least to the largest there is. Some outputs of the direct draw then become "
        "impossible, or were so before; their probability is a δ that any (ε, δ)-guarantee needs at least. The shares "
        "of records for which it exceeds .1, .5 and .9, from the exact law; other changes may do more.",
        sheet=Sheet(
            heading=("data", "detector", "records", *(f"delta_over_{delta:g}" for delta in DELTAS)), rows=tuple(rows)
        ),
    )
