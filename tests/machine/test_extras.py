"""The core works without any extra, and a missing package names the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from wallflower.machine.heavy import EXTRAS

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COUNT = ("count", "ward.csv", "--ledger", "l.db", "--columns", "x,y", "--neighbours", "5", "--radius", "1")
COUNT += ("--epsilon", "0.5", "--force")
# Run the command line in a process in which no package of an extra can be imported.
CORE = f"""
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRAS)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
from wallflower.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    values = np.random.default_rng(1).normal(size=(300, 2))
    np.savetxt(tmp_path / "ward.csv", values, delimiter=",", header="x,y", comments="")
    return tmp_path


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def test_the_core_counts_a_csv_with_a_sqlite_ledger(folder: Path) -> None:
    done = run([sys.executable, "-c", CORE, *COUNT], folder)
    assert done.returncode == 0, done.stderr
    assert run([sys.executable, "-c", CORE, "ledger", "verify", "--ledger", "l.db"], folder).returncode == 0


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ((*COUNT, "--plot", "count.svg"), "plots"),
        (("serve",), "service"),
        (("budget", "show", "ward", "--ledger", "postgresql://localhost/none"), "postgres"),
        (("count", "duckdb:///ward.db?table=ward", *COUNT[2:]), "duckdb"),
    ],
)
def test_a_missing_extra_is_one_line_with_the_command(folder: Path, words: tuple[str, ...], extra: str) -> None:
    done = run([sys.executable, "-c", CORE, *words], folder)
    assert done.returncode not in (0, 1)
    assert f"pip install 'wallflower[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_package_belongs_to_an_extra_that_exists() -> None:
    extras = PROJECT["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    assert len(PROJECT["dependencies"]) <= 9


@pytest.mark.slow
def test_a_clean_environment_with_the_core_alone_counts(folder: Path) -> None:
    """Install the core into a new environment, count a CSV, and ask for a picture, which needs an extra."""
    home, limits = folder / "venv", ["--constraint", str(ROOT / "constraints.txt")]
    assert run([sys.executable, "-m", "venv", str(home)], folder).returncode == 0
    # pip runs in the repository: make names the constraints relative to it, in the environment of every test
    made = run([str(home / "bin" / "pip"), "install", "--quiet", *limits, "."], ROOT)
    assert made.returncode == 0, made.stderr
    wallflower = str(home / "bin" / "wallflower")
    done = run([wallflower, *COUNT], folder)
    assert done.returncode == 0, done.stderr
    assert "pip install 'wallflower[plots]'" in run([wallflower, *COUNT, "--plot", "count.svg"], folder).stderr
