"""The tables of docs/scale.md, docs/radius.md and docs/profile.md, from results.json alone."""

from __future__ import annotations

from typing import Any

from tables import grid

Result = dict[str, Any]
SHARES = {"1/100": "1 %", "1/20": "5 %"}


def spreads(results: Result) -> str:
    rows = [
        [_title(name, found), *(f"{off:.2f}, {100 * wrong:.0f} %" for off, wrong in found["scale"].values())]
        for name, found in _measured(results)
    ]
    return grid(["table", "ε = 0.1", "ε = 0.3", "ε = 1"], rows)


def radii(results: Result) -> str:
    return _radii(results, "radius")


def radii_at_the_grid(results: Result) -> str:
    return _radii(results, "radius at the grid")


def _radii(results: Result, what: str) -> str:
    rows = [
        [_title(name, found), *(_points(found[what][share]) for share in SHARES)] for name, found in _measured(results)
    ]
    return grid(["table", *SHARES.values()], rows)


def profiles(results: Result) -> str:
    rows = [
        [_title(name, found), _points(found["cube"]), _points(found["graded"])] for name, found in _measured(results)
    ]
    return grid(["table", "outliers", "graded"], rows)


def _measured(results: Result) -> list[tuple[str, Result]]:
    return list(results.get("setup", {}).items())


def _title(name: str, found: Result) -> str:
    return f"{name} ({found['n']:,}, {found['columns']})"


def _points(errors: list[float]) -> str:
    return " / ".join(f"{error:.2g}" for error in errors)


SETUP_PAGES = {
    "scale.md": {"setup scale": spreads},
    "radius.md": {"setup radius": radii, "setup radius at the grid": radii_at_the_grid},
    "profile.md": {"setup profile": profiles},
}
