"""The table of docs/count.md: how often the stated intervals of a count hold the truth, from results.json alone."""

from __future__ import annotations

from typing import Any

from tables import grid

Result = dict[str, Any]
HEADS = ["table", "questions", "at most", "two-sided", "noise", "noise, worst", "two-sided reaches"]


def intervals(results: Result) -> str:
    return grid(HEADS, [line(table, found) for table, found in results.get("intervals", {}).items()])


def summary(rows: list[Result]) -> Result:
    """The worst of all questions, how many noise intervals cover as often as a two-sided one must, and the price."""
    worst = {name: round(min(row[name] for row in rows), 4) for name in ("at_most", "two_sided", "noise")}
    covering = sum(row["noise"] >= 0.95 for row in rows)
    wider = sum(row["widths"][1] / row["widths"][0] for row in rows) / len(rows)
    return {"questions": len(rows), **worst, "covering": covering, "wider": round(wider, 2)}


def line(table: str, found: Result) -> list[str]:
    questions = found["questions"]
    shares = (f"{100 * found[name]:.1f} %" for name in ("at_most", "two_sided"))
    noise = f"{found['covering']} of {questions}", f"{100 * found['noise']:.0f} %"
    return [table, str(questions), *shares, *noise, f"{found['wider']:.1f}×"]
