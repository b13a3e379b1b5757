"""Studies of our own: how good an answer is on public tables, beside what others give without privacy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from wallflower.lazy import load


def _draw(module: str, folder: Path, quick: bool, say: Callable[[str], None]) -> Iterable[Path]:
    paths: Iterable[Path] = load(f"wallflower.papers.studies.{module}").study(folder, quick, say)
    return paths


STUDIES: Final[Mapping[str, Callable[[Path, bool, Callable[[str], None]], Iterable[Path]]]] = {
    name: partial(_draw, name) for name in ("detector",)
}
