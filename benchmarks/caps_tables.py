"""The table of docs/count.md: the rule for the degree cap beside the cap by size alone, from results.json."""

from __future__ import annotations

from statistics import median
from typing import Any

from caps import HELD_OUT
from tables import grid, number

Result = dict[str, Any]
HEADS = [
    "table",
    "cells",
    "tested",
    "bad before",
    "better by 2",
    "worst ratio",
    "median ratio",
    "slowest before",
    "now",
]
BAD = 3.0  # times the noise: a bias that is larger is bad


def caps(results: Result) -> str:
    rows = [line(table, summary) for table, summary in results.get("caps", {}).items()]
    return grid(HEADS, [*rows, *(line(name, add_up(part)) for name, part in split_tables(results).items() if part)])


def split_tables(results: Result) -> dict[str, list[Result]]:
    """The summaries of the tables that the constants were chosen on, and of those that were held out."""
    tables = results.get("caps", {})
    return {
        "**all that constants were chosen on**": [tables[name] for name in tables if name not in HELD_OUT],
        "**all held out**": [tables[name] for name in tables if name in HELD_OUT],
    }


def add_up(summaries: list[Result]) -> Result:
    """One summary of several; the median is that of the tables' medians."""
    sums = {name: sum(part[name] for part in summaries) for name in ("cells", "tested", "unknown", "bad", "better")}
    most = {name: max(part[name] for part in summaries) for name in ("worst", "before", "now")}
    return sums | most | {"median": median(part["median"] for part in summaries)}


def summarise(rows: list[Result]) -> Result:
    """What the cells of a table come to. Where the programme of the cap before took too long its bias is a lower bound,
    so such cells count as bad where that bound already is, and never towards the worst and the median ratio."""
    known = [row for row in rows if not row["before"]["is_least"]]
    bad = [row for row in rows if row["before"]["bias"] > BAD * row["before"]["noise"]]
    return {
        "cells": len(rows),
        "tested": sum(row["now"]["tested"] for row in rows),
        "unknown": len(rows) - len(known),
        "bad": len(bad),
        "better": sum(ratio(row) <= 0.5 for row in bad),
        "worst": max((ratio(row) for row in known), default=0.0),
        "median": median(ratio(row) for row in known or rows),
        "before": max(row["before"]["seconds"] for row in rows),
        "now": max(row["now"]["seconds"] for row in rows),
    }


def ratio(row: Result) -> float:
    """The total error by the rule, in parts of that by size alone."""
    now, before = row["now"], row["before"]
    return float((now["bias"] + now["noise"]) / (before["bias"] + before["noise"]))


def line(table: str, found: Result) -> list[str]:
    unknown = f" ({found['unknown']} not solved in a second)" if found["unknown"] else ""
    counts = [f"{found['cells']}{unknown}", *(str(found[name]) for name in ("tested", "bad", "better"))]
    times = [f"{number(found[name])} s" for name in ("before", "now")]
    return [
        f"{table} (held out)" if table in HELD_OUT else table,
        *counts,
        f"{found['worst']:.2f}",
        f"{found['median']:.2f}",
        *times,
    ]
