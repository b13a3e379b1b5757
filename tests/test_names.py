"""Nouns for things, verbs for functions: no module, class, function or method is called by a bare participle."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sources import MODULES, PACKAGE, nodes, place, tree

IRREGULAR = frozenset(
    re.findall(
        r"\w+",
        "built chosen done drawn found given gone held kept known left made paid said seen sent shown spent taken told "
        "written",
    )
)
NOUNS = frozenset(
    [
        "Finding",
        "Packing",
        "Printed",
        "Reading",
        "Setting",
        "Spending",
        "Standing",
        "Tiling",
        "ceiling",
        "drawing",
        "meaning",
        "nothing",
        "printed",
        "reading",
        "rounding",
        "standing",
        "setting",
        "tiling",
        "warning",
    ]
)
# What users have typed since the first version, and read in the reference: `wf.watching`, `ledger.remaining`, …
PUBLIC = frozenset(("Watching", "watching", "booked", "exhausted", "left", "remaining", "said", "spent", "used"))
PARTICIPLE = re.compile(r"[A-Za-z]+(ed|ing)")


def names(path: Path) -> Iterator[str]:
    """What a module is called, and all that it defines, but errors: they are words for what happened."""
    yield path.parent.name if path.stem == "__init__" else path.stem
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.ClassDef) and not any("Error" in ast.unparse(base) for base in node.bases)
        ):
            yield node.name.strip("_")


def is_bare_participle(name: str) -> bool:
    """One word that says what was done to something, or what it is doing, and not what it is."""
    if "_" in name or name in NOUNS or re.search(r"[a-z][A-Z]", name):
        return False
    return name.lower() in IRREGULAR or bool(PARTICIPLE.fullmatch(name))


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_names_are_nouns_and_verbs(path: Path) -> None:
    wrong = [name for name in names(path) if is_bare_participle(name) and name not in PUBLIC]
    if path == PACKAGE / "errors.py":
        wrong = []
    assert not wrong, f"{place(path)}: {', '.join(wrong)}"


@pytest.mark.parametrize("path", MODULES, ids=place)
def test_a_module_says_in_its_first_line_what_lives_there(path: Path) -> None:
    first = (ast.get_docstring(tree(path)) or "").partition("\n")[0]
    assert len(first.split()) >= 3, f"{place(path)} has no first line"


def test_bare_participles_are_told_from_other_words() -> None:
    assert all(map(is_bare_participle, ("asked", "signed", "Opened", "following", "found", "made")))
    assert not any(map(is_bare_participle, ("ask", "Signature", "rounding", "RankedTable", "presumed_outliers")))
