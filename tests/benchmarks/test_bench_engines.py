"""The table of docs/engines.md says what was measured, and both engines count the same. Nothing here is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_both_engines_found_the_same_on_every_table_that_was_measured() -> None:
    rows = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))["engines"]["results"]
    tables = {(row["n"], row["dimension"]) for row in rows}
    assert {(10**6, 2), (10**6, 7), (10**7, 2)} <= tables
    for n, dimension in tables:
        found = {row["engine"]: row["steps"] for row in rows if (row["n"], row["dimension"]) == (n, dimension)}
        assert len({found[engine] for engine in found if engine != "scikit-learn"}) == 1


@pytest.mark.slow
def test_the_benchmark_compares_the_engines() -> None:
    command = [sys.executable, str(FOLDER / "engines.py"), "20000", "2"]
    command += [f"--engine={engine}" for engine in ("memory", "tiles", "scikit-learn")]
    memory, tiles, peer = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert [row["engine"] for row in (memory, tiles, peer)] == ["memory", "tiles", "scikit-learn"]
    assert memory["steps"] == tiles["steps"] > 0
    assert 128 * peer["steps"] == tiles["steps"]  # nobody contests a neighbour here
