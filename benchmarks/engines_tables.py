"""The table of docs/engines.md: one count in memory and by tiles, from results.json alone."""

from __future__ import annotations

from typing import Any

from tables import grid

Result = dict[str, Any]
HEADS = ["records", "columns", "in memory", "peak", "tiles", "peak", "CPU, times", "the same number before noise"]


def engines(results: Result) -> str:
    """A row for each table."""
    found: dict[tuple[int, int], Result] = {}
    for row in results.get("engines", {}).get("results", []):
        found.setdefault((row["n"], row["dimension"]), {})[row["engine"]] = row
    return grid(HEADS, [line(n, dimension, pair["memory"], pair["tiles"]) for (n, dimension), pair in found.items()])


def line(n: int, dimension: int, memory: Result, tiles: Result) -> list[str]:
    took = [f"{one['cpu']:.1f} CPU-s" for one in (memory, tiles)]
    peak = [f"{one['memory'] / 1e9:.2f} GB" for one in (memory, tiles)]
    same = "yes" if memory["steps"] == tiles["steps"] else "no"
    return [f"{n:,}", str(dimension), took[0], peak[0], took[1], peak[1], f"{tiles['cpu'] / memory['cpu']:.2f}", same]
