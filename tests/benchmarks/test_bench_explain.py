"""The loops that explanations are measured against agree with wallflower, and their tables are written. Not timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def measured(*arguments: str) -> Any:
    command = [sys.executable, str(FOLDER / "explain.py"), *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.heavy
@pytest.mark.parametrize("detector", ["grubbs", "histogram", "lof"])
def test_a_naive_loop_agrees_on_every_context_it_is_asked_about(detector: str) -> None:
    result = measured(f"naive_{detector}", "--budget=0")
    assert result["extrapolated"]
    assert result["asked"] >= 20
    assert result["differ"] == 0


@pytest.mark.heavy
@pytest.mark.parametrize("contestant", ["lof_best_first", "lof_bfs", "grubbs_35", "tukey_dp"])
def test_what_no_loop_is_set_beside_is_measured(contestant: str) -> None:
    result = measured(contestant, "--quick", "--records=2", "--budget=0")
    assert result["seconds"] > 0
    assert result["contexts"] == 1 << 22
    assert result["peak_bytes"] >= result["before_bytes"] > 0


def test_tables_are_written_from_results_alone() -> None:
    script = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); from explain_tables import EXPLAIN_TABLES as tables; "
        "results = json.load(sys.stdin); print(json.dumps({name: tables[name](results) for name in tables}))"
    )
    one = {"cpu": 0.04, "before_bytes": 1e8, "peak_bytes": 2e8, "load": 1.0, "contexts": 1 << 22}
    ours, loop = one | {"seconds": 0.02}, one | {"seconds": 2000.0, "asked": 40, "valid": 20, "differ": 0}
    results = {"explain": {"results": {"all_grubbs": ours, "naive_grubbs": loop, "lof_best_first": ours}}}
    for given in (results, {"explain": {}}):
        run = subprocess.run(
            [sys.executable, "-c", script, str(FOLDER)],
            input=json.dumps(given),
            check=True,
            capture_output=True,
            text=True,
        )
        tables = json.loads(run.stdout)
        found = "~100,000 times | met" in tables["explain-targets"] and "| 0.02 s |" in tables["explain-more"]
        assert found is bool(given["explain"])
