"""Compile the kernels into numba's cache: run each query once on made-up records, with a ledger for the moment.

A container that starts with this cache answers its first query without waiting for the compiler, which takes ten
seconds and more. The cache holds machine code for the processor that it was built on; on another one kernels are
compiled again.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import wallflower as wf
from wallflower.schema import Column, Schema
from wallflower.synthetic import mixture

ROWS = 6_000  # above the size up to which kernels run as plain Python


def main() -> int:
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder:
        sys.stderr.write("NUMBA_CACHE_DIR is not set: name the folder that the service will use.\n")
        return 1
    with tempfile.TemporaryDirectory() as place:
        run_queries(Path(place))
    kept = len(list(Path(folder).rglob("*.nbi")))
    sys.stdout.write(f"{kept} kernels are compiled in {folder}\n")
    return 0 if kept else 1


def run_queries(folder: Path) -> None:
    """Ask each query that has kernels once."""
    names = ["a", "b", "c", "d"]
    records = mixture(ROWS, len(names), seed=1)
    file = folder / "made-up.csv"
    lines = [",".join(names), *(",".join(f"{value:.6f}" for value in row) for row in records)]
    file.write_text("\n".join(lines), encoding="utf-8")
    ledger = str(folder / "ledger.db")
    with wf.Ledger.open(ledger) as book:
        book.grant("made-up", wf.Loss("100"), by="image", reason="made-up records")
    columns = tuple(Column(name, low=-10, high=10, center=0, scale=1) for name in names)
    schema = Schema(columns=columns, name="made-up", clip=True)
    table = wf.open(file, schema=schema, ledger=ledger, analyst="image")
    near = {"neighbours": 5, "epsilon": "2", "force": True}
    table.count(radius=1.0, **near)
    table.profile(radii=(0.5, 1.0), **near)
    table.radius(share="0.02", **near)
    table.subspaces(radius=0.5, size=2, top=2, **near)
    table.scale(columns=["a"], epsilon="2", force=True)
    table.detector(epsilon="2", force=True)


if __name__ == "__main__":
    sys.exit(main())
