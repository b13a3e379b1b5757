"""The benchmark runs, its contestants agree on the count, and it writes its own page. Nothing here is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from wallflower.errors import SourceError
from wallflower.papers.data.tables import find_file

FOLDER = Path(__file__).parents[2] / "benchmarks"
PEERS = ("scipy_ball", "scipy_nearest", "sklearn_auto", "sklearn_brute")


SUBSPACE_PEERS = ("sklearn_lists", "sklearn_counts", "scipy_nearest")


def measured(*arguments: str, script: str = "cell.py") -> Any:
    command = [sys.executable, str(FOLDER / script), *arguments]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


@pytest.mark.heavy
def test_peers_count_the_same_outliers():
    found = [measured(peer, "600", "5", "--radius", "1", "--budget", "60") for peer in PEERS]
    assert len({result["value"] for result in found}) == 1
    assert not any(result["extrapolated"] for result in found)


@pytest.mark.heavy
def test_a_peer_out_of_budget_says_so():
    result = measured("scipy_ball", "600", "2", "--radius", "1", "--budget", "0", "--sample", "0")
    assert result["extrapolated"]
    assert result["queries"] < 600


@pytest.fixture
def ionosphere():
    try:
        find_file("ionosphere/ionosphere.csv")
    except SourceError as reason:
        pytest.skip(str(reason))


@pytest.mark.heavy
@pytest.mark.usefixtures("ionosphere")
def test_peers_find_the_outliers_of_every_subspace():
    ours, *peers = (measured("ionosphere", who, script="subspaces.py") for who in ("count", *SUBSPACE_PEERS))
    for theirs in peers:
        assert ours["value"] == theirs["outliers"] > 0
        assert (theirs["differ"], theirs["full"], theirs["full_differ"]) == (0, 561, 0)
        assert not theirs["extrapolated"]


@pytest.mark.heavy
@pytest.mark.usefixtures("ionosphere")
def test_a_peer_out_of_budget_is_compared_on_what_it_was_asked():
    result = measured("ionosphere", "sklearn_counts", "--budget=0", "--part=40", script="subspaces.py")
    assert result["extrapolated"]
    assert result["queries"] == 561 * 40
    assert (result["differ"], result["full"]) == (0, 0)


@pytest.mark.heavy
@pytest.mark.usefixtures("ionosphere")
def test_subspaces_are_measured_alone(tmp_path: Path):
    asked = ("subspaces", "--quick", "--out", str(tmp_path))
    subprocess.run([sys.executable, "-m", "benchmarks", *asked], check=True, cwd=FOLDER.parent)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["cells"] == []
    assert list(results["subspaces"]) == ["ionosphere"]
    assert results["subspaces"]["ionosphere"]["results"]["mass"]["peak_bytes"] > 0
    assert "| Ionosphere | sklearn lists |" in (tmp_path / "README.md").read_text()


WATCHES = ("event_batch", "event_single", "event_durable", "person_batch", "window_batch")


@pytest.mark.heavy
def test_watches_are_measured_alone(tmp_path: Path):
    asked = ("watch", "--quick", "--out", str(tmp_path))
    subprocess.run([sys.executable, "-m", "benchmarks", *asked], check=True, cwd=FOLDER.parent)
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["cells"] == []
    found = results["watch"]["results"]
    assert {f"{name} {columns}" for name in WATCHES for columns in (1, 30)} <= set(found)
    assert all(one["seconds"] > 0 and one["peak_bytes"] > 0 and one["runs"] >= 5 for one in found.values())
    assert found["event_durable 1"]["disk"]["seconds"] > 0
    page = (tmp_path / "README.md").read_text()
    assert "| wallflower, event | 30 | 20,000 |" in page
    assert "| n = 1, one by one | below River's GaussianScorer" in page or find_spec("river") is None


@pytest.mark.heavy
def test_a_peer_that_is_not_installed_is_skipped_with_a_message():
    lonely = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); "
        "import watch; watch.find_spec = lambda name: None; sys.argv = ['watch.py', 'available']; watch.main()"
    )
    run = subprocess.run([sys.executable, "-c", lonely, str(FOLDER)], check=True, capture_output=True, text=True)
    assert {name for name, _ in json.loads(run.stdout)} == {*WATCHES, "fleet_batch"}
    assert "skipped: river is not installed" in run.stderr
    assert "skipped: pyod is not installed" in run.stderr


@pytest.mark.heavy
def test_a_tiny_run_writes_results_and_page(tmp_path: Path):
    page = (FOLDER / "README.md").read_text()
    asked = ("count", "--quick", "--sizes", "300", "--dimensions", "2", "--out", str(tmp_path))
    run = subprocess.run([sys.executable, str(FOLDER / "run.py"), *asked], check=True, capture_output=True, text=True)
    assert "n=300 d=2: wallflower" in run.stderr
    results = json.loads((tmp_path / "results.json").read_text())
    assert [cell["n"] for cell in results["cells"]] == [300]
    assert results["cells"][0]["results"]["wallflower"]["peak_bytes"] > 0
    assert "| 300 | 2 |" in (tmp_path / "README.md").read_text()
    assert (FOLDER / "README.md").read_text() == page
