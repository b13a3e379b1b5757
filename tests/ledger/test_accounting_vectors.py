"""The script that runs accounting vectors: on all that are shared, and on a file with a mistake in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from account_cases import read_cases

MODULE = "wallflower.testing.accounting_vectors"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", MODULE, *arguments], capture_output=True, text=True, check=False)


def shared_vectors() -> dict[str, Any]:
    found = read_cases()
    if found is None:
        pytest.skip("no shared/cases/accounting.json beside the repository")
    return found


NOT_OFFERED = ("migrations", "spans")  # of ledgers before the first release; spans of charges


def is_short(vector: Any) -> bool:
    """Whether it takes a ledger seconds; test_filter.py does the long ones without a ledger, charge by charge."""
    return sum(step.get("accepted") or 0 for step in vector.get("steps", ())) < 1000


def check(folder: Path, chosen: dict[str, Any]) -> None:
    done = run(vectors(folder, chosen))
    assert (done.returncode, done.stderr) == (0, "")
    count = sum(len(part) for name, part in chosen.items() if isinstance(part, list) and name not in NOT_OFFERED)
    assert done.stdout == f"{count} vectors, 0 differences\n"


@pytest.mark.slow
def test_all_short_shared_vectors_pass(tmp_path: Path) -> None:
    shared = shared_vectors()
    short = shared | {"runs": [vector for vector in shared["runs"] if is_short(vector)]}
    assert len(short["runs"]) >= len(shared["runs"]) - 1
    check(tmp_path, short)


@pytest.mark.heavy
def test_all_shared_vectors_pass(tmp_path: Path) -> None:
    check(tmp_path, shared_vectors())


RECORD = {"rows": "people", "unit": "record"}
ASK: dict[str, Any] = {"kind": "pure", "protects": "membership", "epsilon": "1/4"}
PRICE = {"accepted": True, "k": 2, "epsilon": "1/2", "delta": "0", "rho": "1/8"}
LIMIT = {"epsilon": "1", "delta": "0", "convert": "0", "rho": "0", "gauge": "sum"}
TOTALS = {"epsilon": "1", "delta": "0", "rho": "1/4", "limit": LIMIT}
RIGHT: dict[str, list[dict[str, Any]]] = {
    "prices": [{"name": "twice", "data": RECORD, "question": ASK, "price": PRICE}],
    "runs": [
        {
            "name": "one",
            "data": RECORD,
            "limit": {"epsilon": "1"},
            "steps": [{"ask": ASK, "times": 3, "accepted": 2, "why": "limit", "totals": TOTALS}],
        }
    ],
    "names": [{"name": "ICU", "account": "icu"}],
}


def vectors(tmp_path: Path, content: Any) -> str:
    place = tmp_path / "vectors.json"
    place.write_text(json.dumps(content), encoding="utf-8")
    return str(place)


@pytest.mark.slow
def test_right_vectors_pass(tmp_path: Path) -> None:
    done = run(vectors(tmp_path, RIGHT))
    assert (done.stdout, done.returncode) == ("3 vectors, 0 differences\n", 0)


@pytest.mark.slow
def test_every_wrong_number_is_told(tmp_path: Path) -> None:
    wrong = json.loads(json.dumps(RIGHT))
    wrong["prices"][0]["price"]["epsilon"] = "1/4"
    wrong["runs"][0]["steps"][0]["accepted"] = 3
    wrong["runs"][0]["steps"][0]["totals"]["rho"] = "1/2"
    wrong["names"][0]["account"] = "ICU"
    done = run(vectors(tmp_path, wrong))
    assert done.returncode == 1
    told = done.stdout.splitlines()
    assert told[0] == "prices: twice: epsilon is 1/2, expected 1/4"
    places = (
        "prices: twice",
        "runs: one: step 1",
        "runs: one: step 1",
        "names: ICU",
    )
    assert [line.startswith(place) for line, place in zip(told, places, strict=False)] == [True] * 4
    assert told[4:] == ["3 vectors, 4 differences"]


def test_without_a_file_it_says_how_it_is_used() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert "Usage" in done.stderr
