"""Test vectors beside the repository; the tests that need them are skipped elsewhere, with this reason."""

import json
import os
from pathlib import Path

import pytest


def vectors():
    beside = [parent / "shared" / "cases" for parent in Path(__file__).resolve().parents]
    for folder in [Path(os.environ["WALLFLOWER_CASES"])] if "WALLFLOWER_CASES" in os.environ else beside:
        if (folder / "explain.json").exists():
            return [
                pytest.param(case, id=case["name"])
                for case in json.loads((folder / "explain.json").read_text())["cases"]
            ]
    return [pytest.param(None, marks=pytest.mark.skip(reason="no shared/cases/explain.json beside the repository"))]
