"""Figure 3 of [Boe17], how long its phases take, and its correction beside ours on real sensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wallflower.papers.boehler2017.figure3 import (
    ACCURACY,
    SEPARATIONS,
    SUBSET,
    Figure3,
    detail,
    figure3,
    figure_section,
    gaps,
)
from wallflower.papers.boehler2017.items import compare_items
from wallflower.papers.boehler2017.losses import EPSILON, PricedStream, constants, meaning
from wallflower.papers.boehler2017.modes import FACTS, NOISES
from wallflower.papers.boehler2017.real import DETAIL, StreamRuns, comparison_section, detail_sheet, run_stream
from wallflower.papers.boehler2017.statements import choices, statements
from wallflower.papers.boehler2017.timings import milliseconds, timings
from wallflower.papers.data.readings import NEIGHBOURS, RADIUS, WIDE, available, make_stream, meters, motes
from wallflower.papers.page import Section, first_section, leave, write_page

TITLE: Final = "Privacy-Preserving Outlier Detection for Data Streams, its figure again"
LEAD: Final = (
    "Böhler, Bernau and Kerschbaum, 2017. Sensors perturb their readings, an analyst looks for outliers in what it "
    "gets, and a correction server, who knows by how far noise moved each reading, corrects the result. The readings "
    "of Figure 3 are made as the text says: N(0, 3²) in two columns, and the outermost tenth pushed outwards by the "
    "separation. An outlier is what DBSCAN leaves outside the biggest cluster; its parameters (radius "
    f"{RADIUS}, {NEIGHBOURS} neighbours) and w_O ({WIDE}) are not printed and are ours. The paper's ε is that of one "
    "column. Dashed red curves are not private: what the correction server learns has no finite ε."
)
RUNS_DETAIL: Final = "figure3-detail.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is computed. The paper's readings stay as many: DBSCAN depends on how dense they are."""

    points: int
    runs: int
    repetitions: int


POINTS: Final = int(FACTS["points"].number)
FULL: Final = Size(points=POINTS, runs=int(FACTS["runs"].number), repetitions=5)
QUICK: Final = Size(points=POINTS, runs=1, repetitions=3)


def reproduce(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write every table, picture and the page into `folder`."""
    size = QUICK if quick else FULL
    say(f"Figure 3: {size.runs} run(s) of {size.points:,} points in every cell.\n")
    found = figure3(size.points, size.runs)
    detail(found).write(folder / RUNS_DETAIL)
    yield folder / RUNS_DETAIL
    real = [run_stream(stream, size.runs) for stream in available((motes, meters), say)]
    if real:
        detail_sheet(real).write(folder / DETAIL)
        yield folder / DETAIL
    sections = []
    for section in _sections(found, real, size):
        say(f"{section.title}: done\n")
        sections.append(section)
    for section in sections:
        yield from leave(folder, section, say)
    yield write_page(folder / "boehler2017.html", TITLE, LEAD, sections)


def _sections(found: Figure3, real: list[StreamRuns], size: Size) -> Iterator[Section]:
    timed = timings(size.points, size.repetitions)
    yield first_section(compare_items(found, milliseconds(timed.sheet)))
    yield statements(found)
    yield figure_section(found, ACCURACY)
    yield figure_section(found, SUBSET)
    yield gaps(found)
    yield choices(size.points)
    if real:
        yield comparison_section(real)
    priced = [*_synthetic_streams(found), *_real_streams(real)]
    yield meaning(priced)
    yield constants([each.stream for each in priced])
    yield timed


def _synthetic_streams(found: Figure3) -> Iterator[PricedStream]:
    for separation in SEPARATIONS:
        one, other = (found.runs[noise, separation, EPSILON] for noise in NOISES)
        yield PricedStream(stream=make_stream(separation, found.points, seed=0), columns=one, planar=other)


def _real_streams(real: list[StreamRuns]) -> Iterator[PricedStream]:
    for each in real:
        one, other = (each.runs[noise, EPSILON] for noise in NOISES)
        yield PricedStream(stream=each.stream, columns=one, planar=other)
