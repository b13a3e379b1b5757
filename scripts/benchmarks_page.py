"""Write docs/benchmarks.md, and its picture, from benchmarks/results.json: what was measured, when, on which machine.

Run `python scripts/benchmarks_page.py`; a test holds both files to the results.
"""

from __future__ import annotations

import json
import math
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "scripts")]  # both import their neighbours by name
tables, engines, detectors, explain, pictures = map(
    import_module, ("tables", "engines_tables", "detector_tables", "explain_tables", "pictures")
)

RESULTS: Final = ROOT / "benchmarks" / "results.json"
PAGE: Final = ROOT / "docs" / "benchmarks.md"
PICTURE: Final = pictures.FOLDER / "speed.svg"
OPENING: Final = """\
# How fast it is

Written by `make docs` from [benchmarks/results.json](../benchmarks/results.json); do not edit it by hand. `make bench`
measures again. How each figure is taken, what is compared with what, and the tables that are not here are in
[the page of the benchmarks](../benchmarks/README.md).
"""
COUNT: Final = """\
The private count, everything included, beside the counts without privacy that a user would run. A figure after ~ is
extrapolated from a part.

![Seconds that a private count takes, beside the fastest count without privacy: for 100,000 records and a million, in
one to 30 columns.](images/speed.svg)
"""
UNDATED: Final = "not kept"


def main() -> None:
    """Write the page and its picture."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(words(results), encoding="utf-8")
    PICTURE.write_text(draw(results), encoding="utf-8")


def words(results: dict[str, Any]) -> str:
    """The whole page."""
    parts = [
        OPENING,
        "## The machine",
        _machine(results),
        "## When",
        _dates(results),
        "## Count",
        COUNT,
        tables.targets(results),
        tables.speed(results),
        _first(results),
        "## Tables on disk and on clusters",
        engines.engines(results),
        "## Detector",
        "A million records in 20 columns, beside detectors of PyOD without privacy.",
        detectors.detectors(results),
        "## Watch",
        tables.watch_targets(results),
        tables.watch(results),
        "## Explain",
        explain.explain_targets(results),
        "## Sensors",
        tables.sensors_targets(results),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def draw(results: dict[str, Any]) -> str:
    """Seconds of the private count and of its fastest rival, on a logarithmic line."""
    cells = [cell for cell in results["cells"] if cell["n"] >= 100_000]
    top, step = 84, 34

    def place(seconds: float) -> float:
        return 230 + 110 * (math.log10(seconds) + 2)

    height = top + step * len(cells) + 40
    parts = [
        pictures.text(40, 36, "wallflower", "strong label-one"),
        pictures.text(150, 36, "the fastest without privacy", "strong label-two"),
    ]
    for power, name in ((-2, "0.01 s"), (-1, "0.1 s"), (0, "1 s"), (1, "10 s"), (2, "100 s")):
        x = place(10.0**power)
        parts += [
            pictures.curve([(x, top - 18), (x, height - 36)], "axis", 0.7),
            pictures.text(x, height - 16, name, "small middle"),
        ]
    for row, cell in enumerate(cells):
        y = top + step * row
        ours = cell["results"]["wallflower"]["seconds"]
        best = min(found["seconds"] for name, found in cell["results"].items() if name != "wallflower")
        parts += [
            pictures.text(40, y + 5, f"{cell['n']:,} × {cell['dimension']}", "small"),
            pictures.curve([(place(ours), y), (place(best), y)], "axis", 1.5),
            pictures.circle(place(ours), y, 6, "one"),
            pictures.circle(place(best), y, 6, "two"),
        ]
    return pictures.page(720, height, "Seconds of a private count beside the fastest count without privacy", parts)


def _machine(results: dict[str, Any]) -> str:
    host = results["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in host["packages"].items())
    rows = [
        ["processor", f"{host['cores']} cores, {host['architecture']}"],
        ["memory", f"{host['memory_gb']} GB"],
        ["Python", host["python"]],
        ["packages", packages],
    ]
    return tables.grid(["", ""], rows)


def _dates(results: dict[str, Any]) -> str:
    told = {"count": results["cells"], "subspaces": list(results["subspaces"].values())}
    told |= {name: [results[name]] for name in ("contests", "watch", "sensors", "explain", "engines", "detector")}
    rows = [[name, *_when(cells)] for name, cells in told.items()]
    rows += [[name, UNDATED, f"`python -m benchmarks {name}`"] for name in ("intervals", "seasons", "setup")]
    return tables.grid(["part", "day", "command"], rows)


def _when(cells: list[dict[str, Any]]) -> list[str]:
    days = sorted({str(cell.get("date") or UNDATED) for cell in cells})
    commands = sorted({f"`{cell['command']}`" if cell.get("command") else UNDATED for cell in cells})
    return [", ".join(days), ", ".join(commands)]


def _first(results: dict[str, Any]) -> str:
    first = results["first_answers"]
    return (
        f"The first answer ever, compilation included, took {first['ever']:.1f} s; the first of a later process "
        f"{first['later']:.2f} s, and the same question again {first['again']:.2f} s."
    )


if __name__ == "__main__":
    main()
