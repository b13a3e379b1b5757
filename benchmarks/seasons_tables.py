"""The table of docs/watch.md: watches by season beside the same rule without privacy, from results.json alone."""

from __future__ import annotations

from typing import Any

from tables import grid

Result = dict[str, Any]
HEADS = [
    "stream",
    "protected",
    "season",
    "alarms",
    "one threshold",
    "by season",
    "at best, ε = 1",
    "by season, ε = 1",
    "its alarms",
]
POOLED = "SKAB"


def seasons(results: Result) -> str:
    """A row for each stream, and for NAB and SKAB one for all of them together."""
    rows = []
    for group, found in results.get("seasons", {}).items():
        rows += [] if group == POOLED else [line(row) for row in found]
        rows += [line(together(group, found))] if group in (POOLED, "NAB") else []
    return grid(HEADS, rows)


def together(group: str, rows: list[Result]) -> Result:
    """All counts added."""
    counts = ("observations", "labelled", "flat", "plain", "plain_alarms", "best", "private", "private_alarms")
    added = {name: sum(row[name] for row in rows) for name in counts}
    same = {name: rows[0][name] if len({row[name] for row in rows}) == 1 else "" for name in ("protects", "season")}
    return {"name": f"{group}, {len(rows)} streams", **same, **added}


def line(row: Result) -> list[str]:
    def share(name: str, of: str) -> str:
        return f"{row[name] / max(1, row[of]):.3f}".lstrip("0")

    found = [share(name, "labelled") for name in ("flat", "plain", "best", "private")]
    alarms = share("plain_alarms", "observations"), share("private_alarms", "observations")
    return [row["name"], row["protects"], row["season"], alarms[0], *found, alarms[1]]
