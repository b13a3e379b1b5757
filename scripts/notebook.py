"""Run a notebook, cell by cell in one session, and keep what it printed and drew: `python scripts/notebook.py FILE`."""

from __future__ import annotations

import ast
import base64
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with its outputs made anew."""
    names: dict[str, Any] = {"__name__": "notebook"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = list(outputs_of("".join(cell["source"]), names))
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def outputs_of(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """What a cell prints, and its last expression, if that is a figure or anything else but nothing."""
    tree, last = ast.parse(source), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "notebook", "exec"), names)  # noqa: S102 - the notebooks are ours
        value = None if last is None else eval(compile(last, "notebook", "eval"), names)  # noqa: S307
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": printed.getvalue().splitlines(keepends=True)})
    if value is not None:
        found.append({"data": shown(value), "metadata": {}, "output_type": "display_data"})
    return found


def shown(value: Any) -> dict[str, Any]:
    """A figure as a picture, what has a card as its card, everything as text."""
    if hasattr(value, "savefig"):
        target = io.BytesIO()
        value.savefig(target, format="png", dpi=80)
        return {"image/png": base64.b64encode(target.getvalue()).decode(), "text/plain": ["a figure"]}
    told = {"text/plain": str(value).splitlines(keepends=True)}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_().splitlines(keepends=True), **told}
    return told


if __name__ == "__main__":
    place = Path(sys.argv[1])
    made = run(json.loads(place.read_text(encoding="utf-8")))
    place.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
