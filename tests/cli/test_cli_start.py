"""A command loads what its question needs, and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "duckdb",
    "fastapi",
    "matplotlib",
    "numba",
    "opendp",
    "pandas",
    "scipy",
    "scipy.optimize",
    "sklearn",
    "sqlalchemy",
)
CALL = f"""
import sys
from wallflower.cli import main
code = main(sys.argv[1:])
print(*sorted({{*{HEAVY!r}}} & set(sys.modules)), sep=",")
sys.exit(code)
"""


def loaded(*arguments: object) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", CALL, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split(",")) - {""}


@pytest.mark.slow
def test_a_process_that_imports_the_script_and_runs_nothing_of_it_loads_no_command() -> None:
    """As a worker of the service does, since Python imports again what the first process was started with."""
    script = Path(sys.executable).with_name("wallflower")
    probe = f"import runpy, sys; runpy.run_path({str(script)!r}, run_name='__mp_main__'); print(*sys.modules, sep=',')"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    seen = set(done.stdout.strip().split(","))
    assert "wallflower.cli" in seen
    assert not {name for name in seen if name.startswith("wallflower.cli.")}
    assert not seen & {"pydantic", "rich", "typer"}


@pytest.mark.slow
def test_help_and_a_plan_from_public_numbers_load_nothing_heavy() -> None:
    assert loaded("count", "--help") == set()
    plan = ("plan", "count", "--records", 1000, "--dimension", 2, "--neighbours", 5, "--radius", 1.3, "--epsilon", 1)
    assert loaded(*plan) == set()


@pytest.mark.slow
def test_a_count_loads_neither_pandas_nor_what_brings_an_old_ledger_over(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "".join(f"{row % 7},{row % 5}\n" for row in range(50)))
    ask = (
        "count",
        table,
        "--neighbours",
        3,
        "--radius",
        0.5,
        "--epsilon",
        "0.01",
        "--force",
        "--ledger",
        tmp_path / "l.db",
    )
    for _ in ("a new ledger", "one that is there"):
        seen = loaded(*ask)
        assert "sqlalchemy" in seen
        assert not seen & {"matplotlib", "pandas", "scipy.optimize", "sklearn"}
