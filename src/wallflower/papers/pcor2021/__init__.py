"""Tables 1 to 13 and Figures 1 to 5 of [Sha21] beside ours, where its guarantee ends, and what privacy costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wallflower.errors import SourceError
from wallflower.papers.data.registers import (
    Register,
    fewer_homicides,
    fewer_salaries,
    fewer_synthetic_salaries,
    homicides,
    ontario,
    synthetic_salaries,
)
from wallflower.papers.facts import printed_facts
from wallflower.papers.page import Section, first_section, leave, write_page
from wallflower.papers.pcor2021 import match, more
from wallflower.papers.pcor2021.example import table1
from wallflower.papers.pcor2021.figures import figure
from wallflower.papers.pcor2021.margins import private
from wallflower.papers.pcor2021.match import Neighbours
from wallflower.papers.pcor2021.overview import compare
from wallflower.papers.pcor2021.surveys import Survey
from wallflower.papers.pcor2021.tables import PAPER, experiments

TITLE: Final = "PCOR: Private Contextual Outlier Release via Differentially Private Search, beside ours"
LEAD: Final = (
    "Shafieinejad, Kerschbaum and Ilyas, 2021. Every table and figure, the printed values beside ours. The paper's "
    "guarantee, output-constrained privacy, holds only between tables with the same valid contexts. What has no other "
    "guarantee is marked NOT DP, dashed and red. Utility is the score of the released context over the highest of a "
    "valid one, 0 where nothing is released. Outliers are drawn at random among the records with a valid context: in "
    "the full registers for Grubbs from the tenth with the most extreme metrics, for the histogram from the outliers "
    "in one of 100 random contexts, as for LOF everywhere. All registers are public, so exact figures may be shown."
)
QUICKLY: Final = " This page was made quickly: the reduced registers stand in for the full ones."


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is asked: `full` outliers of the full registers, or none, `reduced` ones of the reduced registers, by
    best-first search `lazy`, releases behind each figure, neighbours, outliers that meet a chosen record, and records
    asked about privately.
    """

    full: int
    reduced: int
    lazy: int
    releases: int
    neighbours: Neighbours
    chosen: int
    private: int


FULL: Final = Size(
    full=8,
    reduced=100,
    lazy=1,
    releases=200,
    neighbours=Neighbours(outliers=100, each=2, ratios=4),
    chosen=25,
    private=8,
)
QUICK: Final = Size(
    full=0,
    reduced=6,
    lazy=0,
    releases=12,
    neighbours=Neighbours(outliers=6, each=1, ratios=2),
    chosen=2,
    private=1,
)


def reproduce(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write every table, picture and the page into `folder`."""
    sections = []
    for section in _sections(QUICK if quick else FULL, say):
        sections.append(section)
        yield from leave(folder, section, say)
    first = first_section(compare({section.name: section for section in sections}))
    yield from leave(folder, first, say)
    yield write_page(folder / f"{PAPER}.html", TITLE, LEAD + (QUICKLY if quick else ""), [first, *sections])


def _sections(size: Size, say: Callable[[str], None]) -> Iterator[Section]:
    full, reduced = _surveys(size, say)
    yield table1()
    done = []
    for experiment in experiments(full[0], reduced[0]):
        done.append(experiment)
        yield from experiment.sections()
    found = [match.find_matches(survey, size.neighbours) for survey in reduced]
    for number, survey, here in zip((12, 13), reduced, found, strict=False):
        yield match.match(number, survey, here)
    yield match.ratios(reduced[0], size.neighbours)
    yield match.chosen_record(reduced, size.chosen)
    yield from map(figure, done)
    yield more.inconsistencies()
    yield match.full_match(full, size.neighbours.each)
    yield more.own_searches(full[0], lazy=size.lazy)
    for survey, name in zip(full, ("detectors", "homicides"), strict=False):
        yield more.by_detector(survey, name)
    yield more.direct(full[0], printed_facts(PAPER)["direct approach / reference file"].value)
    yield more.locality(reduced)
    yield private([survey.register for survey in full], size.private)


def _surveys(size: Size, say: Callable[[str], None]) -> tuple[list[Survey], list[Survey]]:
    """Surveys of the full registers and of the reduced ones: salaries, and homicides if they are at hand."""
    salaries = _at_hand((ontario, fewer_salaries), say) or (synthetic_salaries(), fewer_synthetic_salaries())
    killed = _at_hand((homicides, fewer_homicides), say)
    full, reduced = (
        [Survey(register=each, count=count, total=size.releases) for each in registers]
        for registers, count in zip(
            zip(*filter(None, (salaries, killed)), strict=True), (size.full, size.reduced), strict=True
        )
    )
    return full if size.full else reduced, reduced


def _at_hand(
    makers: tuple[Callable[[], Register], Callable[[], Register]], say: Callable[[str], None]
) -> tuple[Register, Register] | None:
    try:
        return makers[0](), makers[1]()
    except SourceError as reason:
        say(f"skipped: {reason}")
        return None
