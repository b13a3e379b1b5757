"""Kernels wait for the compiler until they are called, and call each other across modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "wallflower"
HEAVY = ("numba", "sqlalchemy", "scipy", "pyarrow", "duckdb", "matplotlib", "sklearn", "opendp", "alembic")
PARTIES = "import sys, wallflower.cli, wallflower.parties.startup"

ONE = """
from wallflower.jit import kernel

@kernel
def halved(value):
    return value / 2 if even(value) else value

@kernel
def even(value):
    return value % 2 == 0
"""
OTHER = """
from one import halved
from wallflower.jit import kernel

@kernel
def quartered(value):
    return halved(halved(value))
"""


def run(code: str, folder: Path | None = None) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_party_starts_without_what_it_may_never_need() -> None:
    assert run(f"{PARTIES}; print({{*{HEAVY}}} & {{*sys.modules}} or 'none')") == "none"


def test_a_kernel_calls_those_of_its_own_and_of_other_modules(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(ONE)
    (tmp_path / "other.py").write_text(OTHER)
    assert run("import other; print(other.quartered(8), other.halved(3), other.halved(6))", tmp_path) == "2.0 3.0 3.0"


def test_threads_may_be_the_first_to_call_at_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(ONE)
    (tmp_path / "other.py").write_text(OTHER)
    code = (
        "import other\nfrom concurrent.futures import ThreadPoolExecutor as Pool\n"
        "with Pool(8) as pool: print({*pool.map(lambda _: other.quartered(12), range(8))})"
    )
    assert run(code, tmp_path) == "{3.0}"


def test_kernels_name_each_other_without_a_module() -> None:
    """What is reached through a module is still a `Kernel` when the caller is compiled, in a process that is fresh."""
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {
            item.asname or item.name
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("wallflower")
            for item in node.names
            if (PACKAGE.parent / str(node.module).replace(".", "/") / f"{item.name}.py").exists()
        }
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and "kernel" in map(ast.unparse, node.decorator_list):
                reached = {ast.unparse(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                assert not reached & modules, f"{path.name}: {node.name} reaches a kernel through a module"
