"""Notebooks run from top to bottom, and were kept as they ran."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook", ROOT / "scripts" / "notebook.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_shows(path: Path) -> None:
    kept = json.loads(path.read_text(encoding="utf-8"))
    made = script().run(kept)
    for before, after in zip(kept["cells"], made["cells"], strict=True):
        assert before.get("execution_count") == after.get("execution_count"), "run scripts/notebook.py"
        told = [[each["output_type"] for each in cell.get("outputs", [])] for cell in (before, after)]
        assert told[0] == told[1]
    assert any(cell["cell_type"] == "code" for cell in made["cells"])


def test_there_is_a_notebook_and_its_page_leads_to_it() -> None:
    assert NOTEBOOKS
    for path in NOTEBOOKS:
        page = (ROOT / "docs" / f"{path.stem}.md").read_text(encoding="utf-8")
        assert f"(notebooks/{path.name})" in page
