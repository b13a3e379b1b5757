"""The table of docs/detector.md: fitting and scoring beside PyOD, from results.json alone."""

from __future__ import annotations

from typing import Any

from tables import grid

Result = dict[str, Any]
HEADS = ["detector", "fit", "times ours", "score", "times ours", "peak memory"]


def detectors(results: Result) -> str:
    """A row for each contestant, ours first."""
    found = results.get("detector", {}).get("results", [])
    if not found:
        return grid(HEADS, [])
    return grid(HEADS, [line(one, found[0]) for one in found])


def line(one: Result, ours: Result) -> list[str]:
    ratios = [f"{one[part][0] / ours[part][0]:.2g}" for part in ("fit", "score")]
    took = [f"{one[part][0]:.2f} CPU-s, {one[part][1]:.2f} s" for part in ("fit", "score")]
    return [one["name"], took[0], ratios[0], took[1], ratios[1], f"{one['memory'] / 1e9:.2f} GB"]
