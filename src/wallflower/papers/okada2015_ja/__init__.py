"""Figures 4 and 5 of [Oka15ja]: the noise on Ionosphere and on WDBC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from wallflower.papers.data.tables import Sample, available, ionosphere, tumours
from wallflower.papers.methods import HONEST, JAPANESE
from wallflower.papers.okada2015.deviations import deviations
from wallflower.papers.page import Section, leave, write_page

TITLE: Final = "Outlier detection under differential privacy (in Japanese), its figures again"
LEAD: Final = (
    "差分プライバシーを保証した外れ値検出, the predecessor of Okada et al. 2015. "
    "The dashed red curve follows the paper's own bound, which is invalid: it does not keep the privacy it claims and "
    "is shown for comparison only. Its equations were not at hand; the curve is the simplest bound that agrees with "
    "what is known of them. Solid curves are sound."
)
COMMON: Final = (
    "δ = 0.01 where a curve needs one. wallflower's default takes slack 2 up to N ε = 100 and slack 3 above, "
    "hence the step."
)
FIGURES: Final = (
    (
        "ja-figure4",
        "Figure 4: noise on Ionosphere",
        "225 good and 10 bad returns, as they come (all values lie in [-1, 1]).",
        partial(ionosphere, 5, 0.3),
    ),
    (
        "ja-figure5",
        "Figure 5: noise on WDBC",
        "357 benign and 10 malignant tumours in 30 columns, scaled by public constants.",
        tumours,
    ),
)


def reproduce(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Write every table, picture and the page into `folder`; quick or not, nothing here is repeated."""
    sections = []
    for section in _sections(say):
        sections.append(section)
        yield from leave(folder, section, say)
    yield write_page(folder / "okada2015-ja.html", TITLE, LEAD, sections)


def _sections(say: Callable[[str], None]) -> Iterator[Section]:
    for name, title, caption, make in FIGURES:
        samples: list[Sample] = available((make,), say)
        if samples:
            yield deviations(name, title, f"{caption} {COMMON}", samples, (JAPANESE, *HONEST))
