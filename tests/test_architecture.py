"""The page about the house says what is there: its rooms, its storeys, its contracts, its functions."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

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


def rows(heading: str) -> list[list[str]]:
    """The table under a heading, without its head."""
    _, _, below = PAGE.partition(f"\n## {heading}\n")
    return [row.split(" | ") for row in ROW.findall(below.partition("\n## ")[0])[1:]]


def storeys() -> list[list[str]]:
    layers = next(contract for contract in CONTRACTS if contract["id"] == "layers")["layers"]
    return [[room.strip() for room in layer.split("|")] for layer in layers]


def test_every_room_is_on_the_page_from_top_to_bottom() -> None:
    told = [NAMED.findall(room)[0] for room, _ in rows("What lives where")]
    built = {path.name for path in PACKAGE.glob("*.py")} | {f"{path.parent.name}/" for path in PACKAGE.glob("*/*.py")}
    assert set(told) == built - {"__init__.py"}
    order = {room: depth for depth, storey in enumerate(storeys()) for room in storey}
    depths = [order[room.removesuffix(".py").removesuffix("/")] for room in told]
    assert depths == sorted(depths)


def test_the_picture_has_the_storeys_of_the_contract() -> None:
    drawn = ElementTree.parse(ROOT / "docs" / "architecture.svg").getroot()
    svg = "{http://www.w3.org/2000/svg}"
    groups = [group for group in drawn.iter(f"{svg}g") if "storey" in group.get("class", "").split()]
    names = [[text.text for text in group.iter(f"{svg}text") if text.get("class") == "room"] for group in groups]
    assert [sorted(map(str, rooms)) for rooms in names] == [sorted(storey) for storey in storeys()]


@pytest.mark.parametrize("contract", CONTRACTS[1:], ids=lambda contract: contract["id"])
def test_every_contract_is_on_the_page(contract: dict[str, Any]) -> None:
    _, who, never = next(row for row in rows("Who may import whom") if row[0] == contract["name"])
    if contract["type"] == "forbidden":
        assert NAMED.findall(who) == [name.removeprefix("wallflower.") for name in contract["source_modules"]]
        assert NAMED.findall(never) == [name.removeprefix("wallflower.") for name in contract["forbidden_modules"]]
        assert never.startswith("directly: ") is contract.get("allow_indirect_imports", False)
    if contract["type"] == "layers":
        assert NAMED.findall(never) == [name.strip() for layer in contract["layers"] for name in layer.split("|")]


def test_the_page_has_no_contract_of_its_own() -> None:
    assert [row[0] for row in rows("Who may import whom")] == [contract["name"] for contract in CONTRACTS[1:]]


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


def test_the_way_of_a_count_is_told_with_places() -> None:
    assert len(PLACES.findall(PAGE)) > 50


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
