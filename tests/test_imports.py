"""Who may import whom: the contracts of pyproject.toml, and what they cannot see."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp
import pytest

from sources import MODULES, PACKAGE, nodes, place, tree
from types_cache import known_types

ROOT = Path(__file__).parents[1]
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]

# Who may draw noise that is not handed to them: the doors, for a table, a stream
# and the parties of sensors, and what attacks or simulates.
DRAWERS = {
    "release/*.py",
    "release/steward_key.py",  # a key, which is no noise
    "rehearsal.py",  # for answers of made-up records
    "streams/watch.py",
    "streams/fleet.py",
    "streams/tally.py",
    "papers/okada2015/names.py",  # lists of names, as an account would release them
    "sensors/simulation.py",
    "sensors/audit.py",
    "sensors/parties/party.py",
    "sensors/parties/device.py",
    "sensors/parties/demo.py",
    "checks.py",
    "evidence.py",
    "audit/attacks.py",
    "papers/okada2015/accuracy.py",
    "papers/pcor2021/searches.py",
    "papers/degue2020/detection.py",
    "papers/boehler2017/modes.py",
    "queries/*/audit.py",
    "queries/*/audit/*.py",
    "sensors/comparison.py",  # its contract: deal(values, bits)
}
DOORS = {
    "noise.py": {"secrets", "opendp"},
    "synthetic.py": {"numpy.random"},
    "service/core/access/tokens.py": {"secrets"},  # what must not be guessed, and is no noise: tokens and ids
}
ENTROPY = ("random", "secrets", "numpy.random", "opendp", "uuid", "os.urandom", "os.getrandom")


@cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module or name that a file imports, in full."""
    names: list[str] = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom):
            names += (f"{node.module}.{item.name}" for item in node.names)
    return tuple(names)


def attributes(path: Path) -> Iterator[str]:
    """What a file reaches by a dot, with `np` read as numpy."""
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{'numpy' if node.value.id == 'np' else node.value.id}.{node.attr}"


def within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def test_contracts_are_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_contracts_have_no_exceptions() -> None:
    kinds = {contract["type"] for contract in LINTER["contracts"]}
    assert kinds == {"layers", "forbidden"}
    for contract in LINTER["contracts"]:
        assert not contract.get("ignore_imports"), contract["name"]
        assert not contract.get("exhaustive_ignores"), contract["name"]


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_imports_are_at_the_top(path: Path) -> None:
    found = [node for node in nodes(path) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside = [below for below in found if node.lineno <= below.lineno <= (node.end_lineno or 0)]
            assert not inside, f"{place(path)}:{inside[0].lineno} imports inside a function"


def test_only_lazy_imports_by_name() -> None:
    for path in MODULES:
        named = {name for name in imports(path) if within(name, "importlib")}
        assert not named or place(path) == "machine/lazy.py", f"{place(path)} imports by name; use Lazy or load"


def twins(block: ast.If) -> tuple[dict[str, str], dict[str, str]]:
    """What a block imports for the type checker, and what it names at run time instead: name and module."""
    checked = {
        item.asname or item.name: item.name
        for node in block.body
        if isinstance(node, ast.Import)
        for item in node.names
    }
    named = {}
    for node in block.orelse:
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="Lazy"), args=[ast.Constant(value=str(module))]),
            ):
                named[name] = module
    return checked, named


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_what_is_lazy_is_checked_under_the_same_name(path: Path) -> None:
    """So mypy knows every function that is called through a lazy module, and the contracts know every edge."""
    seen = 0
    for node in tree(path).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and node.orelse:
            checked, named = twins(node)
            assert checked == named, f"{place(path)}:{node.lineno}"
            seen += len(named)
    calls = [node for node in nodes(path) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Lazy"]
    assert len(calls) == seen, f"{place(path)} has a Lazy that no type checker sees"


def test_modules_form_no_cycle() -> None:
    """Lazy or not: whoever imports is above what is imported."""
    graph = grimp.build_graph("wallflower", cache_dir=None)
    below = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as found:
        pytest.fail(f"a cycle: {' -> '.join(found.args[1])}")


@pytest.mark.slow
def test_a_wrong_call_through_a_lazy_module_is_a_type_error(tmp_path: Path) -> None:
    wrong = {
        "_pairs.index_pointss(1)": "has no attribute",
        "_pairs.index_points()": "Missing positional argument",
        "_lower.lower_count(1, 2, 3, sensitivity='x')": "incompatible type",
    }
    door, shadow = PACKAGE / "queries" / "count" / "two_sided.py", tmp_path / "shadow.py"
    text = door.read_text(encoding="utf-8")
    shadow.write_text(text + "\n".join(wrong) + "\n", encoding="utf-8")
    mypy = [sys.executable, "-m", "mypy", "--cache-dir", known_types(tmp_path), "--shadow-file", str(door)]
    done = subprocess.run([*mypy, str(shadow), str(door)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    for line, words in enumerate(wrong.values(), start=len(text.splitlines()) + 1):
        assert re.search(rf"{door.name}:{line}: error: .*{words}", done.stdout), done.stdout


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_randomness_has_one_door(path: Path) -> None:
    allowed = DOORS.get(place(path), set())
    for name in (*imports(path), *attributes(path)):
        source = next((source for source in ENTROPY if within(name, source)), None)
        assert source is None or source in allowed, f"{place(path)} reaches {name}; noise comes from noise.py"


def test_noise_is_handed_over() -> None:
    """A question gets its noise from the one door; it never fetches it."""
    for path in MODULES:
        fetched = {name for name in imports(path) if within(name, "wallflower.noise")}
        if fetched & {f"wallflower.noise.{name}" for name in ("system_noise", "SystemNoise", "secret")}:
            assert any(path.relative_to(PACKAGE).match(drawer) for drawer in DRAWERS), f"{place(path)} draws noise"


def test_rooms_never_import_the_list_of_questions() -> None:
    for path in (PACKAGE / "queries").glob("*/*.py"):
        assert not {name for name in imports(path) if name.startswith("wallflower.queries.QUERIES")}


@pytest.mark.parametrize("path", [path for path in MODULES if place(path).startswith("queries/")], ids=place)
def test_no_question_is_handed_on_without_its_type(path: Path) -> None:
    """Else mypy takes any setting for granted, also where it decides how much noise there is."""
    for node in nodes(path):
        if isinstance(node, ast.arg) and node.arg == "query" and node.annotation is not None:
            assert ast.unparse(node.annotation) != "Any", f"{place(path)}:{node.lineno}"
