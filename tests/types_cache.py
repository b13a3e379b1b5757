"""What mypy has found out already, for tests that run it: `make lint` leaves it behind, and a copy spares them most."""

from __future__ import annotations

import shutil
from pathlib import Path

CACHE = Path(__file__).parents[1] / ".mypy_cache"


def known_types(folder: Path) -> str:
    """A cache of its own for one run, which begins with all that was known; empty where nothing was."""
    copied = folder / "cache"
    if CACHE.is_dir():
        shutil.copytree(CACHE, copied)
    return str(copied)
