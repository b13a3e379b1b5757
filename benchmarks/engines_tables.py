"""The table of docs/engines.md: one count by every engine, and without privacy, from results.json alone."""

from __future__ import annotations

from typing import Any

from tables import grid

Result = dict[str, Any]
HEADS = [
    "records",
    "columns",
    "",
    "CPU seconds",
    "times memory",
    "times a tenth",
    "peak",
    "load",
    "number before noise",
]
PEER = "scikit-learn"
NAMES = {"memory": "in memory", "tiles": "tiles", "local[2,4]": "Spark, two cores", PEER: "scikit-learn, not private"}


def engines(results: Result) -> str:
    """A row for each table and each way to count it."""
    rows = results.get("engines", {}).get("results", [])
    found = {(row["n"], row["dimension"], row["engine"]): row for row in rows}
    return grid(HEADS, [line(row, found) for row in rows])


def line(row: Result, found: dict[tuple[int, int, str], Result]) -> list[str]:
    n, dimension, engine = row["n"], row["dimension"], row["engine"]
    memory, tenth = found.get((n, dimension, "memory")), found.get((n // 10, dimension, engine))
    same = "" if engine == PEER or memory is None else "the same" if memory["steps"] == row["steps"] else "another"
    return [
        f"{n:,}",
        str(dimension),
        NAMES[engine],
        f"{row['cpu']:.1f}",
        times(row, memory),
        times(row, tenth),
        f"{row['memory'] / 1e9:.2f} GB",
        f"{row['load']:.1f}" if "load" in row else "",
        same,
    ]


def times(row: Result, other: Result | None) -> str:
    return "" if other is None else f"{row['cpu'] / other['cpu']:.2f}"
