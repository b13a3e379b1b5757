"""The figures of [Deg20] as it describes them, what it does not draw, and its mechanism's successor on real streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from wallflower.papers.data.streams import streams
from wallflower.papers.degue2020.beyond import error_runs, errors, roc_section, spending_section
from wallflower.papers.degue2020.detection import DETAIL, comparison_section, detail_sheet, judgements
from wallflower.papers.degue2020.figures import KINDS, SHORT, figure3, figure4, figure5, limits, simulations
from wallflower.papers.degue2020.items import compare_items
from wallflower.papers.degue2020.outlierdetect import CENTRE, ENTRIES, LENGTH, RHO, TRUTH, VARIANCE
from wallflower.papers.page import Section, first_section, leave, write_page

TITLE: Final = "Differentially Private Outlier Detection in Multivariate Gaussian Signals, its figures again"
LEAD: Final = (
    f"Degue, Gopalakrishnan, Li, Balakrishnan and Le Ny. The example is theirs: {ENTRIES} entries an observation, "
    f"{LENGTH} observations, the sum has mean {CENTRE:,g} and variance {VARIANCE:g}, one entry changes by at most "
    f"{RHO:g}, an outlier is {TRUTH:,g} from the mean. Figures 3 to 5 are drawn as the text describes them; Figures 1 "
    "and 2 are sketches without numbers. What is titled ours is no figure of the paper. Dashed red curves do not hold "
    "what they say. ε is the paper's own parameter, E what one entry of one observation really pays."
)


def reproduce(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write every table, picture and the page into `folder`."""
    sections = []
    say("Simulating decisions: the first tables follow.\n")
    for section in _sections(5 if quick else 100):
        say(f"{section.title}: done\n")
        sections.append(section)
    rows = judgements(streams(say), 2 if quick else 20)
    if rows:
        sections.append(comparison_section(rows))
        detail_sheet(rows).write(folder / DETAIL)
        yield folder / DETAIL
    for section in sections:
        yield from leave(folder, section, say)
    yield write_page(folder / "degue2020.html", TITLE, LEAD, sections)


def _sections(runs: int) -> Iterator[Section]:
    many = runs * LENGTH // SHORT
    seen = simulations(many)
    yield first_section(compare_items(seen))
    for figure in (figure3, figure4, figure5):
        yield figure(seen, many)
    yield limits()
    found = error_runs(runs)
    for kind in KINDS:
        yield errors(kind, found, runs)
    yield roc_section(runs)
    yield spending_section()
