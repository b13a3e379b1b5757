"""The papers' figures drawn again: what they printed beside what can be had.

Much of what the papers printed is not private. It lives in this folder, is marked wherever it is shown, and no release
imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from wallflower.papers import degue2020, okada2015, okada2015_ja

PAPERS: Final[Mapping[str, Callable[[Path, bool, Callable[[str], None]], Iterable[Path]]]] = {
    "okada2015": okada2015.reproduce,
    "okada2015-ja": okada2015_ja.reproduce,
    "degue2020": degue2020.reproduce,
}
