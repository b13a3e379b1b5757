"""The table of docs/count.md: how often the stated intervals of a count hold the truth, from results.json alone."""

from __future__ import annotations

from typing import Any

from tables import grid

Result = dict[str, Any]
HEADS = ["table", "questions", "at most", "honest", "noise", "noise, worst", "honest reaches"]


def intervals(results: Result) -> str:
    found = {table: rows for table, rows in results.get("intervals", {}).items() if rows}
    return grid(HEADS, [line(table, rows) for table, rows in found.items()])


def line(table: str, rows: list[Result]) -> list[str]:
    """The worst of all questions, but for how many noise intervals cover as often as an honest one must."""
    at_most, honest, noise = ([row[name] for row in rows] for name in ("at_most", "honest", "noise"))
    covering = sum(share >= 0.95 for share in noise)
    wider = sum(row["widths"][1] / row["widths"][0] for row in rows) / len(rows)
    shares = (f"{100 * min(some):.1f} %" for some in (at_most, honest))
    return [table, str(len(rows)), *shares, f"{covering} of {len(rows)}", f"{100 * min(noise):.0f} %", f"{wider:.1f}×"]
