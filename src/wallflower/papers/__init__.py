"""The papers' figures drawn again: what they printed beside what can be had.

Much of what the papers printed is not private. It lives in this folder, is marked wherever it is shown, and no release
imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from wallflower.errors import SourceError
from wallflower.machine.lazy import load


def _reproduce(module: str, folder: Path, quick: bool, say: Callable[[str], None]) -> Iterable[Path]:
    paths: Iterable[Path] = load(f"wallflower.papers.{module}").reproduce(folder, quick, say)
    return paths


def _measure(module: str, folder: Path, quick: bool, say: Callable[[str], None]) -> Iterable[Path]:
    root = Path(__file__).parents[3]
    if not (root / "studies").is_dir():
        raise SourceError("study: studies are part of the repository, not of the package. Run it from a checkout.")
    if str(root) not in sys.path:
        sys.path.append(str(root))
    paths: Iterable[Path] = load(f"studies.{module}").study(folder, quick, say)
    return paths


DATA_FOLDER: Final = "WALLFLOWER_DATA"  # the variable that names where the papers' data sets are
PAPERS: Final[Mapping[str, Callable[[Path, bool, Callable[[str], None]], Iterable[Path]]]] = {
    name: partial(_reproduce, name.replace("-", "_"))
    for name in ("okada2015", "okada2015-ja", "degue2020", "pcor2021", "boehler2017")
}
STUDIES: Final[Mapping[str, Callable[[Path, bool, Callable[[str], None]], Iterable[Path]]]] = {
    name: partial(_measure, name) for name in ("detector", "statements", "who")
}
ALL: Final = "all"


def draw_all(folder: Path, quick: bool, say: Callable[[str], None]) -> Iterator[Path]:
    """Every paper into a folder of its own, and an index page that leads to theirs."""
    page, pages = load("wallflower.papers.page"), {}
    for name, draw in PAPERS.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        for path in draw(place, quick, say):
            yield path
            if path.suffix == ".html":
                pages[page.page_title(path)] = path
    yield page.write_index(folder / "index.html", pages)
