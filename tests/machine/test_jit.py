"""Kernels wait for the compiler until they are called, and call each other across modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from sources import MODULES, PACKAGE, tree
from wallflower.machine.jit import Kernel

HEAVY = ("numba", "sqlalchemy", "scipy", "pyarrow", "duckdb", "matplotlib", "sklearn", "opendp")
PARTIES = "import sys, wallflower.cli, wallflower.sensors.parties.web"

ONE = """
from wallflower.machine.jit import kernel

@kernel
def halved(value):
    return value / 2 if even(value) else value

@kernel
def even(value):
    return value % 2 == 0
"""
OTHER = """
from one import halved
from wallflower.machine.jit import kernel

@kernel
def quartered(value):
    return halved(halved(value))
"""


def run(code: str, folder: Path | None = None, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_party_starts_without_what_it_may_never_need() -> None:
    assert run(f"{PARTIES}; print({{*{HEAVY}}} & {{*sys.modules}} or 'none')") == "none"


@pytest.mark.slow
def test_a_kernel_calls_those_of_its_own_and_of_other_modules(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(ONE)
    (tmp_path / "other.py").write_text(OTHER)
    assert run("import other; print(other.quartered(8), other.halved(3), other.halved(6))", tmp_path) == "2.0 3.0 3.0"


@pytest.mark.slow
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
    for path in MODULES:
        modules = {
            item.asname or item.name
            for node in tree(path).body
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("wallflower")
            for item in node.names
            if (PACKAGE.parent / str(node.module).replace(".", "/") / f"{item.name}.py").exists()
        }
        for node in tree(path).body:
            if isinstance(node, ast.FunctionDef) and "kernel" in map(ast.unparse, node.decorator_list):
                reached = {ast.unparse(part.value) for part in ast.walk(node) if isinstance(part, ast.Attribute)}
                assert not reached & modules, f"{path.name}: {node.name} reaches a kernel through a module"


def first(number: float) -> float:
    return second(number) + third(0)


def other(number: float) -> float:
    return second(number)


def second(number: float) -> float:
    return third(number) / 2


def third(number: float) -> float:
    return number / 2


CALLS = {"first": ("second", "third"), "other": ("second",), "second": ("third",), "third": ()}


def test_a_name_leads_to_compiled_code_only_after_all_that_the_code_calls() -> None:
    """Another thread may compile a function as soon as its name leads to it."""

    class Names(dict[str, Any]):
        def __setitem__(self, name: str, value: Any) -> None:
            waiting = [called for called in CALLS[name] if isinstance(self[called], Kernel)]
            assert not waiting, f"{name} can be called, and {waiting} cannot be compiled into it yet"
            super().__setitem__(name, value)

    names = Names()
    names.update({each.__name__: Kernel(FunctionType(each.__code__, names)) for each in (first, other, second, third)})
    assert names["first"]._ready is names["first"]  # within reach; nothing is compiled here, nor kept on disk
    assert not any(isinstance(names[name], Kernel) for name in CALLS)


LIGHT = """
from wallflower.machine.jit import light_kernel

@light_kernel
def total(values):
    found = 0.0
    for value in values:
        found += doubled(value)
    return found

@light_kernel
def doubled(value):
    return 2 * value
"""


@pytest.mark.slow
def test_light_kernels_are_compiled_if_there_is_much_to_do_or_they_have_taken_long(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(LIGHT)
    code = (
        "import sys, one, numpy as np\nfrom wallflower.machine.jit import LightKernel\n"
        "before, told = LightKernel.left, [one.total(np.ones(9)), 'numba' in sys.modules]\n"
        "after, LightKernel.left = LightKernel.left, float(sys.argv[1])\n"
        "told += [one.total(np.ones(int(sys.argv[2]))), 'numba' in sys.modules]\n"
        "print(*told, 0 < after < before, LightKernel.left)"
    )
    assert run(code, tmp_path, "9", "9").startswith("18.0 False 18.0 False True 8.")
    assert run(code, tmp_path, "9", "99999") == "18.0 False 199998.0 True True 0.0"
    assert run(code, tmp_path, "0", "9") == "18.0 False 18.0 True True 0.0"


BOTH_WAYS = """
import sys
from hashlib import sha256
import numpy as np
from wallflower.machine import jit
from wallflower.neighbours.extension import certify
from wallflower.neighbours.pairs import build_tree, count_neighbours, find_near_points, list_neighbours

is_light = sys.argv[1] == "light"
jit.LightKernel.left, jit.SMALL = (np.inf, np.inf) if is_light else (0.0, 0)
random, told = np.random.default_rng(7), []
for world in range(16):  # every kind of table with every number of neighbours, and four that are larger
    dimension, n = int(random.integers(1, 10)), int(random.integers(3, 36)) if world < 12 else 59
    grid = random.integers(0, 4, size=(n, dimension)) / 4
    points = grid if world % 3 else random.normal(size=(n, dimension))
    tree = build_tree(np.ascontiguousarray(points), float(random.uniform(0.05, 0.4)) * dimension)
    near, (met, found) = count_neighbours(tree, n), list_neighbours(tree, n)
    seen, many = find_near_points(tree, points[:9] + 1 / 8, n, np.full(len(points[:9]), -1, dtype=np.int32))
    told += [near.tolist(), [row[:size].tolist() for row, size in zip(met, found)]]
    told += [[row[:size].tolist() for row, size in zip(seen, many)]]
    for slack in (0.5, 1.0, 2.0, 3.0) if world < 12 else (1.0, 3.0):
        bounds = certify(tree, 1 + world % 4, slack, 1 / 256)
        told += [float(bounds.lower).hex(), float(bounds.upper).hex()]
assert is_light != ("numba" in sys.modules)
print(sha256(repr(told).encode()).hexdigest())
"""


@pytest.mark.slow
def test_light_kernels_give_the_same_bits_both_ways() -> None:
    assert run(BOTH_WAYS, None, "light") == run(BOTH_WAYS, None, "compiled")
