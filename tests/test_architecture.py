"""The architecture page and the decision records name files and functions that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "wallflower"
DECISIONS = ROOT / "docs" / "decisions"
RECORDS = sorted(DECISIONS.glob("0*.md"))
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CONTRACTS: list[dict[str, Any]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
    "importlinter"
]["contracts"]

NAMED = re.compile(r"`([^`]+)`")
ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)
PLACES = re.compile(r"((?:`[\w.]+`(?:, | and |,\s))*`[\w.]+`)\s+in\s+`([\w/]+\.py)`")
PATH = re.compile(r"`([\w/]+\.(?:py|md))`")


@cache
def defined(path: Path) -> set[str]:
    """What a module defines at its top, and in its classes as Class.name."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef():
                inside = (part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
                found |= {node.name, *(f"{node.name}.{name}" for name in inside)}
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found.add(node.name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
    return found


def about_the_code() -> list[Any]:
    pages = [ROOT / "docs" / "architecture.md", *RECORDS]
    return [pytest.param(page.read_text(encoding="utf-8"), id=page.stem) for page in pages]


@pytest.mark.parametrize("text", about_the_code())
def test_what_is_said_to_be_in_a_file_is_there(text: str) -> None:
    for names, place in PLACES.findall(text):
        missing = set(NAMED.findall(names)) - defined(PACKAGE / place)
        assert not missing, f"{place} has no {', '.join(sorted(missing))}"


@pytest.mark.parametrize("text", about_the_code())
def test_files_that_are_named_exist(text: str) -> None:
    for place in PATH.findall(text):
        inside = "/" in place or (PACKAGE / place).exists()
        found = (PACKAGE / place).exists() or (ROOT / place).exists() if inside else list(PACKAGE.rglob(place))
        assert found, f"there is no {place}"


def test_the_walk_of_a_count_names_modules() -> None:
    assert len(PLACES.findall(PAGE)) > 20


# Decision records


def test_decisions_are_numbered_and_listed() -> None:
    assert [path.name[:4] for path in RECORDS] == [f"{number:04}" for number in range(1, len(RECORDS) + 1)]
    listed = (DECISIONS / "README.md").read_text(encoding="utf-8")
    for path in RECORDS:
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        assert title.startswith(f"{path.name[:4]}: ")
        assert f"[{title}]({path.name})" in listed


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_decision_has_a_context_and_consequences_on_one_page(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert len(text.splitlines()) <= 30
