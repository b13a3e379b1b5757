"""Run a notebook in a Jupyter kernel and keep what it printed and drew: `python scripts/notebook.py FILE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

SECONDS = 300  # for one cell


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with new outputs, as Jupyter makes them."""
    document = nbformat.reads(json.dumps(notebook), as_version=4)
    NotebookClient(document, timeout=SECONDS, kernel_name="python3", record_timing=False).execute()
    return {**json.loads(nbformat.writes(document)), "metadata": notebook["metadata"]}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    made = run(json.loads(place.read_text(encoding="utf-8")))
    place.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
