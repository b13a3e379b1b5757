"""Figures 4 and 5 of [Oka15ja]: the count of outliers in Ionosphere and in WDBC, plus and minus the noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from wallflower.papers.data.tables import Sample, available, ionosphere_ja, standardise, tumours
from wallflower.papers.methods import HONEST, JAPANESE, JAPANESE_LOWER, OURS
from wallflower.papers.okada2015.deviations import deviations, leaks, spreads
from wallflower.papers.okada2015_ja.comparison import comparisons
from wallflower.papers.page import Section, Sheet, first_section, leave, write_page
from wallflower.papers.witnesses import GROUPS
from wallflower.queries.count.exact import count_outliers

TITLE: Final = "Outlier detection under differential privacy (in Japanese), its figures again"
LEAD: Final = (
    "Okada, Fukuchi and Sakuma: 差分プライバシーを保証した外れ値検出, the predecessor of Okada et al. 2015. Dashed red "
    "curves are what the paper printed: they do not keep the privacy they claim and are shown for comparison only. "
    "Solid curves are sound. All tables are public, so true counts may be shown."
)
COMMON: Final = (
    "The paper prints no δ: 0.01, that of its English successor, is taken where a curve needs one. Distances are per "
    "column, since by plain Euclid every record is an outlier at the printed radius. wallflower's default takes slack "
    "2 up to N ε = 100 and slack 3 above, hence the step."
)
SPREAD: Final = (JAPANESE_LOWER, JAPANESE, OURS)
METHODS: Final = (JAPANESE_LOWER, JAPANESE, *HONEST)
RETURNS: Final = (
    "225 good and 10 bad returns, as they come: all values lie in [-1, 1]. The paper scales each column to variance 1; "
    "then 150 of 235 records are outliers, where it says 10."
)
TUMOURS: Final = (
    "357 benign and 10 malignant tumours in 30 columns, each scaled to mean 0 and variance 1. The paper prints d=32, "
    "which counts the number of the record and its label."
)
FIGURES: Final = (
    ("ja-figure4", "Figure 4: Ionosphere", RETURNS, ionosphere_ja),
    ("ja-figure5", "Figure 5: WDBC", TUMOURS, lambda: scale_columns(tumours())),
)


def scale_columns(sample: Sample) -> Sample:
    """Every column to mean 0 and variance 1."""
    return replace(sample, values=standardise(sample.values))


def reproduce(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write every table, picture and the page into `folder`; quick or not, nothing here is repeated."""
    sections = []
    for section in _sections(say):
        sections.append(section)
        yield from leave(folder, section, say)
    first = first_section(comparisons({section.name: section for section in sections}))
    yield from leave(folder, first, say)
    yield write_page(folder / "okada2015-ja.html", TITLE, LEAD, [first, *sections])


def _sections(say: Callable[[str], None]) -> Iterator[Section]:
    drawn: list[Sample] = []
    for name, title, caption, make in FIGURES:
        for sample in available((make,), say):
            drawn.append(sample)
            yield spreads(name, f"{title}, the count ± the noise", f"{caption} {COMMON}", sample, SPREAD)
            yield deviations(
                f"{name}-noise", f"{title}, every method", "Beyond the paper: the sound ones.", sample, METHODS
            )
    yield leaks(GROUPS)
    yield readings(drawn)


def readings(samples: Sequence[Sample]) -> Section:
    """How many outliers there are by each reading of the scale and of the distance; the paper says 10."""
    rows = tuple(
        (
            sample.name,
            "mean 0, variance 1" if here is not sample else "as drawn here",
            *(
                count_outliers(here.values, here.radius, here.neighbours, normalise=normalise)
                for normalise in (False, True)
            ),
        )
        for sample in samples
        for here in (sample, scale_columns(sample))
    )
    return Section(
        name="readings",
        title="How many outliers there are, by scale and distance",
        caption="The paper says 10 in both tables, by plain Euclid and scaled columns, with the radius that makes most "
        "records right. At the printed radii that is out of reach; distances per column come nearest.",
        sheet=Sheet(heading=("data", "columns", "plain Euclid, as printed", "per column"), rows=rows),
    )
