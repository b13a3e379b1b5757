"""The study of degree caps: the rule beside the cap by size alone."""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_a_row_of_the_study_says_what_both_rules_lead_to():
    command = [sys.executable, str(FOLDER / "caps.py"), "micro-clusters 1,000", "--quick"]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert [row["epsilon"] for row in rows] == ["0.1", "0.3", "1", "3"]
    assert all(row["outliers"] == 8 and row["crowding"] > 0.9 for row in rows)
    assert rows[0]["before"]["bias"] > 100  # a cap of 2 among clusters of 4
    assert rows[-1]["now"]["bias"] == 0


def test_the_kept_study_is_nowhere_much_worse_than_before():
    kept = json.loads((FOLDER / "results.json").read_text())["caps"]
    assert len(kept) >= 5
    assert all(found["worst"] <= 1.55 for found in kept.values())
    assert sum(found["better"] for found in kept.values()) > 0
