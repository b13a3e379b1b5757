"""What is public stays: a name of Python, the command line, the service or stored JSON does not vanish unnoticed."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def script() -> Any:
    """scripts/surface.py, which is no part of the package."""
    spec = spec_from_file_location("surface", ROOT / "scripts" / "surface.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SURFACE = script()
KNOWN = json.loads(SURFACE.FILE.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_no_public_name_has_vanished(tmp_path: Path) -> None:
    """If one has to go: say so in the changelog under Privacy or Removed, and run `scripts/surface.py`."""
    assert SURFACE.missing(KNOWN, SURFACE.surface(tmp_path)) == []


def test_a_name_that_vanishes_is_named() -> None:
    part, names = next(iter(KNOWN.items()))
    assert SURFACE.missing(KNOWN, {**KNOWN, part: names[1:]}) == [f"{part}: {names[0]}"]
    assert SURFACE.missing(KNOWN, {**KNOWN, part: [*names, "more"]}) == []


def test_every_part_is_listed() -> None:
    assert set(KNOWN) == {"python", "queries", "command line", "http", "json"}
    assert all(len(names) > 20 for names in KNOWN.values())
