"""What the bench says of intervals: the stated levels are held, where the default count is far off too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def ran(*arguments: str) -> Any:
    command = [sys.executable, str(FOLDER / "intervals.py"), *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["micro-clusters", "lattice"])
def test_stated_levels_are_held(table: str) -> None:
    rows = ran(table, "--quick")
    assert [row["epsilon"] for row in rows] == ["0.1", "0.3", "1", "3"]
    assert min(row["at_most"] for row in rows) >= 0.975
    assert min(row["two_sided"] for row in rows) >= 0.95


@pytest.mark.slow
def test_made_up_tables_are_always_there() -> None:
    assert {"uniform, 2 columns", "uniform, 3 columns", "lattice", "micro-clusters"} <= set(ran("available"))


def test_the_table_of_the_docs_states_what_was_measured() -> None:
    measured = json.loads((FOLDER / "results.json").read_text())["intervals"]
    assert all(found["at_most"] >= 0.975 and found["two_sided"] >= 0.95 for found in measured.values())
    page = (FOLDER.parent / "docs" / "count.md").read_text(encoding="utf-8")
    assert all(f"| {table} | {found['questions']} |" in page for table, found in measured.items())
