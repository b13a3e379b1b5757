"""The package as syntax trees: each file is read once and walked once, for all tests that look at it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "wallflower"
MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of a file's tree, from the root down."""
    return tuple(ast.walk(tree(path)))


def place(path: Path) -> str:
    return str(path.relative_to(PACKAGE))
