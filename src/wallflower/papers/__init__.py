"""The papers' figures drawn again: what they printed beside what can be had.

Much of what the papers printed is not private. It lives in this folder, is marked wherever it is shown, and no release
imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from wallflower.lazy import load


def _reproduced(module: str, folder: Path, quick: bool, say: Callable[[str], None]) -> Iterable[Path]:
    paths: Iterable[Path] = load(f"wallflower.papers.{module}").reproduce(folder, quick, say)
    return paths


DATA_FOLDER: Final = "WALLFLOWER_DATA"  # the variable that names where the papers' data sets are
PAPERS: Final[Mapping[str, Callable[[Path, bool, Callable[[str], None]], Iterable[Path]]]] = {
    name: partial(_reproduced, name.replace("-", "_"))
    for name in ("okada2015", "okada2015-ja", "degue2020", "pcor2021", "boehler2017")
}
