"""Who may import whom: the contracts of pyproject.toml, and what they cannot see."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "wallflower"
MODULES = sorted(PACKAGE.rglob("*.py"))
LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]

# `Lazy` names that point upwards, where a plain import could not. Each says why.
UPWARDS = {
    ("release", "drawing"),  # a Release draws itself in a notebook: plot()
    ("release", "report"),  # a Release draws itself in a notebook: _repr_html_()
    ("audit", "ledger"),  # audit_order watches a real release on a real ledger
    ("audit", "release"),
    ("audit", "queries"),  # audits(kind) finds the room by its name
}
# Who may draw noise that is not handed to them: the doors, for a table, a stream
# and the parties of sensors, and what attacks or simulates.
DRAWERS = {
    "release.py",
    "watching/__init__.py",
    "parties/party.py",
    "parties/device.py",
    "parties/demo.py",
    "checks.py",
    "audit.py",
    "papers/okada2015/accuracy.py",
    "papers/pcor2021/searches.py",
    "papers/degue2020/detection.py",
    "papers/boehler2017/modes.py",
    "queries/*/audit.py",
    "queries/sensors/comparison.py",  # its contract: deal(values, bits)
}
DOORS = {
    "noise.py": {"secrets", "opendp"},
    "synthetic.py": {"numpy.random"},
    "curator/desk/tokens.py": {"secrets"},  # what must not be guessed, and is no noise: tokens and ids
}
ENTROPY = ("random", "secrets", "numpy.random", "opendp", "uuid", "os.urandom", "os.getrandom")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def place(path: Path) -> str:
    return str(path.relative_to(PACKAGE))


def imports(path: Path) -> Iterator[str]:
    """Every module or name that a file imports, in full, lazily or not."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import():
                yield from (item.name for item in node.names)
            case ast.ImportFrom():
                yield from (f"{node.module}.{item.name}" for item in node.names)
            case ast.Call(func=ast.Name(id="Lazy"), args=[ast.Constant(value=str(name))]):
                yield name


def attributes(path: Path) -> Iterator[str]:
    """What a file reaches by a dot, with `np` read as numpy."""
    for node in ast.walk(tree(path)):
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
    assert kinds == {"layers", "independence", "forbidden"}
    for contract in LINTER["contracts"]:
        assert not contract.get("ignore_imports"), contract["name"]
        assert not contract.get("exhaustive_ignores"), contract["name"]


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_imports_are_at_the_top(path: Path) -> None:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inside = [below for below in ast.walk(node) if isinstance(below, ast.Import | ast.ImportFrom)]
            assert not inside, f"{place(path)}:{inside[0].lineno} imports inside a function"


def test_only_lazy_imports_by_name() -> None:
    for path in MODULES:
        named = {name for name in imports(path) if within(name, "importlib")}
        assert not named or place(path) == "lazy.py", f"{place(path)} imports by name; use Lazy"


def test_lazy_imports_keep_the_layers() -> None:
    """The linter does not see them, so they are held to its layers here."""
    order = next(contract["layers"] for contract in LINTER["contracts"] if contract["type"] == "layers")
    rank = {name.strip(): -depth for depth, layer in enumerate(order) for name in layer.split("|")}
    upwards = set()
    for path in MODULES:
        own = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for name in _lazy(path):
            other = name.split(".")[1] if "." in name else None  # `wallflower` itself: its version
            if other is not None and own != other and rank[own] <= rank[other]:
                upwards.add((own, other))
    assert upwards == UPWARDS


def _lazy(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        match node:
            case ast.Call(func=ast.Name(id="Lazy"), args=[ast.Constant(value=str(name))]) if within(name, "wallflower"):
                yield name


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
        if fetched & {"wallflower.noise.system_noise", "wallflower.noise.SystemNoise"}:
            assert any(path.relative_to(PACKAGE).match(drawer) for drawer in DRAWERS), f"{place(path)} draws noise"


def test_rooms_never_import_the_list_of_questions() -> None:
    for path in (PACKAGE / "queries").glob("*/*.py"):
        assert not {name for name in imports(path) if name.startswith("wallflower.queries.QUERIES")}
