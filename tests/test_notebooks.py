"""Notebooks run from top to bottom, and were kept as they ran."""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

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
def test_a_notebook_runs_in_a_kernel_and_shows_what_it_shows(path: Path) -> None:
    kept = json.loads(path.read_text(encoding="utf-8"))
    made = script().run(copy.deepcopy(kept))
    for before, after in zip(kept["cells"], made["cells"], strict=True):
        assert before.get("execution_count") == after.get("execution_count"), "run scripts/notebook.py"
        assert shown_kinds(before) == shown_kinds(after)
    assert any(cell["cell_type"] == "code" for cell in made["cells"])


def shown_kinds(cell: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """What each output of a cell is and the formats that it comes in, such as image/png."""
    return [(each["output_type"], sorted(each.get("data", ()))) for each in cell.get("outputs", [])]


def test_every_plot_that_ends_a_cell_is_kept_as_a_picture() -> None:
    pictures = 0
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            *_, last = "".join(cell["source"]).splitlines() or [""]
            if cell["cell_type"] == "code" and re.search(r"\.plot\([^)]*\)+$", last):
                assert any("image/png" in each.get("data", ()) for each in cell["outputs"]), f"{path.name}: {last}"
                pictures += 1
    assert pictures >= 3


def test_the_page_of_notebooks_leads_to_each_and_each_leads_on() -> None:
    page = (ROOT / "docs" / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) >= 5
    for path in NOTEBOOKS:
        assert f"({path.name})" in page, f"docs/notebooks/README.md does not mention {path.name}"
        for target in re.findall(r"\]\(([^)#]+\.md)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target} leads nowhere"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_keeps_is_small_and_names_no_machine(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 150_000, "keep fewer or smaller outputs"
    assert "<script" not in text
    assert tempfile.gettempdir() not in text.replace('\\"', '"')
    assert not re.search(r"/(home|root|Users)/", text)
