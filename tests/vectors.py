"""Test vectors beside the repository; the tests that need them are skipped elsewhere, with this reason."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def vectors(name: str, suits: Callable[[Any], bool] = lambda case: True, *, part: str = "cases") -> list[Any]:
    """The cases of a file of vectors, or of a part of it, that suit a test."""
    beside = [parent / "shared" / "cases" for parent in Path(__file__).resolve().parents]
    for folder in [Path(os.environ["WALLFLOWER_CASES"])] if "WALLFLOWER_CASES" in os.environ else beside:
        if (folder / name).exists():
            found = json.loads((folder / name).read_text(encoding="utf-8"))[part]
            return [pytest.param(case, id=case.get("name")) for case in found if suits(case)]
    return [pytest.param(None, marks=pytest.mark.skip(reason=f"no shared/cases/{name} beside the repository"))]
