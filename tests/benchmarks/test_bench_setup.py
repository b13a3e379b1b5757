"""What the docs say of spreads, radii and profiles is what was measured."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_the_tables_of_the_docs_state_what_was_measured() -> None:
    measured = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))["setup"]
    pages = {
        page: (FOLDER.parent / "docs" / page).read_text(encoding="utf-8")
        for page in ("scale.md", "radius.md", "profile.md")
    }
    for name, found in measured.items():
        assert all(f"| {name} ({found['n']:,}, {found['columns']}) |" in page for page in pages.values())
        assert all(first > last for first, last in ((row[0], row[-1]) for row in (found["cube"], found["graded"])))
        off, wrong = found["scale"]["1"]
        assert off < 0.2
        assert wrong <= 0.06
