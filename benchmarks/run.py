"""Measure wallflower against what a user would run without privacy, and write the tables of README.md.

Every measurement is a process of its own (cell.py, subspaces.py, watch.py and so on), one after the other. In a cell
wallflower runs before and after its peers and the slower run counts (once only where that takes over a minute). Cells
measured before and not asked for now are kept, so a long table can be measured in pieces.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

from caps_tables import caps, summarise
from detector_tables import detectors
from engines_tables import engines
from explain_tables import EXPLAIN, EXPLAIN_MORE, EXPLAIN_TABLES
from intervals_tables import intervals, summary
from seasons_tables import seasons
from setup_tables import SETUP_PAGES
from tables import OURS, PEERS, SUBSPACES, TABLES, TARGETS, WATCH_OURS

HERE = Path(__file__).resolve().parent
SIZES = (10_000, 100_000, 1_000_000)
DIMENSIONS = (1, 2, 3, 7, 30)
TOO_LONG = {(1_000_000, 30)}  # not measured: boxes prune nothing in 30 columns; README.md says what is known
LONG = 60.0  # seconds: not run a second time
QUICK = ("ionosphere",)
QUICK_CAPS = ("micro-clusters 1,000",)
QUICK_INTERVALS = ("uniform, 2 columns", "lattice")
PAGES = {
    "count.md": {"intervals": intervals, "caps": caps},
    "detector.md": {"detectors": detectors},
    "engines.md": {"engines": engines},
    "watch.md": {"seasons": seasons},
    **SETUP_PAGES,
}
BRUTE = range(4, 16)  # above, brute force is what scikit-learn chooses itself; below, nobody would

Result = dict[str, Any]


def main(arguments: list[str] | None = None) -> None:
    ask = parsed(arguments)
    parts = (
        "subspaces",
        "watch",
        "sensors",
        "explain",
        "contests",
        "intervals",
        "caps",
        "seasons",
        "setup",
        "engines",
        "detector",
    )
    results: Result = {"cells": []} | {name: {} for name in parts}
    results |= load(ask.out / "results.json")
    results["machine"] = machine()
    for name, part in PARTS.items():
        if ask.part in (None, name):
            part(results, ask)
    save(ask.out, results)


def count_part(results: Result, ask: argparse.Namespace) -> None:
    results["first_answers"] = first_answers()
    cells = {(cell["n"], cell["dimension"]): cell for cell in results["cells"]}
    for n, dimension in product(ask.sizes, ask.dimensions):
        if (n, dimension) in TOO_LONG:
            say(f"n={n:,} d={dimension}: left out, it takes too long")
            continue
        cells[n, dimension] = measured(n, dimension, ask)
        results["cells"] = [cells[key] for key in sorted(cells)]
        save(ask.out, results)


def contests_part(results: Result, ask: argparse.Namespace) -> None:
    """The extension beside the exact count; the quick run leaves out the large tables."""
    before, found = os.getloadavg()[0], {}
    for name in run("contests.py", "available"):
        if ask.quick and "100,000" in name:
            continue
        say(f"contests: {name}")
        found[name] = run("contests.py", name)
        say(f"    {found[name]['seconds'] / found[name]['exact']:.1f} times the exact count")
    results["contests"] = circumstances(before) | {"results": found}


def subspaces_part(results: Result, ask: argparse.Namespace) -> None:
    for table in run("subspaces.py", "available"):
        if not ask.quick or table in QUICK:
            results["subspaces"][table] = surveyed(table, ask)
            save(ask.out, results)


def watch_part(results: Result, ask: argparse.Namespace) -> None:
    """Wallflower, its peers, and unless that is to be quick wallflower again; the slower counts."""
    before, found = os.getloadavg()[0], {}
    here = run("watch.py", "available")
    short = ["--seconds=0.1", "--batch=20000"] if ask.quick else []
    again = [] if ask.quick else [one for one in here if one[0] in WATCH_OURS]
    for name, columns in (*here, *again):
        say(f"watch n={columns}: {name}")
        result = run("watch.py", name, str(columns), *short)
        say(f"    {1 / result['seconds']:,.0f} observations/s")
        at = f"{name} {columns}"
        found[at] = max(result, found.get(at, result), key=lambda one: one["seconds"])
    results["watch"] = circumstances(before) | {"results": found}


def sensors_part(results: Result, ask: argparse.Namespace) -> None:
    before, found = os.getloadavg()[0], {}
    short = ["--seconds=0.1", "--readings=20000"] if ask.quick else []
    for name in run("sensors.py", "available"):
        say(f"sensors: {name}")
        found[name] = run("sensors.py", name, *short)
        say(f"    {found[name]['readings'] / found[name]['seconds']:,.0f} readings/s")
    results["sensors"] = circumstances(before) | {"results": found}


def explain_part(results: Result, ask: argparse.Namespace) -> None:
    """Wallflower, the naive loops, and wallflower again; the slower counts. Then what no loop could be set beside."""
    before, found = os.getloadavg()[0], {}
    short = ["--quick", "--records=2", "--budget=0"] if ask.quick else []
    ours = [f"all_{name}" for name in EXPLAIN]
    for name in (*ours, *(f"naive_{name}" for name in EXPLAIN), *ours, *EXPLAIN_MORE):
        say(f"explain: {name}")
        result = run("explain.py", name, *short)
        say(f"    {result['seconds']:.3g} s{' (extrapolated)' if result['extrapolated'] else ''}")
        found[name] = max(result, found.get(name, result), key=lambda one: one["seconds"])
    results["explain"] = circumstances(before) | {"results": found}


def intervals_part(results: Result, ask: argparse.Namespace) -> None:
    """What the intervals of a count hold; the table goes to docs/count.md."""
    for table in run("intervals.py", "available"):
        if not ask.quick or table in QUICK_INTERVALS:
            say(f"intervals: {table}")
            results["intervals"][table] = summary(run("intervals.py", table, *(["--quick"] if ask.quick else [])))
            save(ask.out, results)


def caps_part(results: Result, ask: argparse.Namespace) -> None:
    """The rule for the degree cap beside the cap by size alone; the table goes to docs/count.md."""
    for table in run("caps.py", "available"):
        if not ask.quick or table in QUICK_CAPS:
            say(f"caps: {table}")
            results["caps"][table] = summarise(run("caps.py", table, *(["--quick"] if ask.quick else [])))
            save(ask.out, results)


def seasons_part(results: Result, ask: argparse.Namespace) -> None:
    """Watches by season beside the same rule without privacy; the table goes to docs/watch.md."""
    for group in run("seasons.py", "available"):
        if not ask.quick or group == "days":
            say(f"seasons: {group}")
            results["seasons"][group] = run("seasons.py", group, *(["--runs=2"] if ask.quick else []))
            save(ask.out, results)


def accuracy_part(results: Result, ask: argparse.Namespace) -> None:
    if ask.repetitions:
        say("accuracy table")
        extra = ["--quick"] if ask.quick else []
        results["accuracy"] = run("accuracy.py", str(ask.repetitions), *extra)
        results["repetitions"] = ask.repetitions


def setup_part(results: Result, ask: argparse.Namespace) -> None:
    """Spreads, radii and profiles on real tables; the tables go to docs/scale.md, radius.md and profile.md."""
    for table in () if ask.quick else run("setup.py", "available"):
        say(f"setup: {table}")
        results["setup"][table] = run("setup.py", table)
        save(ask.out, results)


BOTH = ("memory", "tiles")
SPARK, PEER = "local[2,4]", "scikit-learn"
ALL = (*BOTH, SPARK, PEER)
WHERE = (  # records, columns, engines, and how often: the run with the least CPU time counts, since others are busy too
    (1_000_000, 2, ALL, 3),
    (10_000_000, 2, BOTH, 3),
    (1_000_000, 7, BOTH, 3),
    (10_000_000, 7, BOTH, 1),
    (100_000_000, 2, ("tiles",), 1),
    (10_000_000, 2, (SPARK,), 1),
    (10_000_000, 2, (PEER,), 1),
)


def engines_part(results: Result, ask: argparse.Namespace) -> None:
    """One count in memory, by tiles, on Spark and without privacy; the table goes to docs/engines.md."""
    before, kept = os.getloadavg()[0], [] if ask.quick else results["engines"].get("results", [])
    found = {(row["n"], row["dimension"], row["engine"]): row for row in kept}
    for n, dimension, ways, runs in ((10_000, 2, BOTH, 1),) if ask.quick else WHERE:
        for engine in ways:
            say(f"engines: n={n:,} d={dimension} {engine}")
            (row,) = run("engines.py", str(n), str(dimension), f"--engine={engine}", f"--runs={runs}")
            found[n, dimension, engine] = row
            say(f"    {row['cpu']:.1f} CPU seconds")
            rows = sorted(found.values(), key=lambda row: (row["n"], row["dimension"], ALL.index(row["engine"])))
            results["engines"] = circumstances(before) | {"results": rows}
            save(ask.out, results)


def detector_part(results: Result, ask: argparse.Namespace) -> None:
    """A detector beside PyOD's, fitted to a million records; the table goes to docs/detector.md."""
    before, found = os.getloadavg()[0], []
    for name in run("detector.py", "available"):
        say(f"detector: {name}")
        found.append(run("detector.py", name, *(("20000", "5") if ask.quick else ())))
        say(f"    fit {found[-1]['fit'][0]:.3g}, score {found[-1]['score'][0]:.3g} CPU seconds")
    results["detector"] = circumstances(before) | {"results": found}


PARTS = {
    "count": count_part,
    "contests": contests_part,
    "subspaces": subspaces_part,
    "watch": watch_part,
    "sensors": sensors_part,
    "explain": explain_part,
    "accuracy": accuracy_part,
    "intervals": intervals_part,
    "caps": caps_part,
    "seasons": seasons_part,
    "setup": setup_part,
    "engines": engines_part,
    "detector": detector_part,
}


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, help="measure this part alone")
    parser.add_argument("--quick", action="store_true", help="small tables and short budgets only")
    parser.add_argument("--sizes", type=numbers, help="numbers of records, such as 10000,100000")
    parser.add_argument("--dimensions", type=numbers, help="numbers of columns, such as 2,7")
    parser.add_argument("--budget", type=float, default=8.0, help="seconds a peer may ask before it is extrapolated")
    parser.add_argument("--target-budget", type=float, default=60.0, help="the same for a target, or for a table")
    parser.add_argument("--repetitions", type=int, default=2000, help="draws in the accuracy table; 0 leaves it out")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for results.json and README.md")
    ask = parser.parse_args(arguments)
    ask.sizes = ask.sizes or (SIZES[:1] if ask.quick else SIZES)
    ask.dimensions = ask.dimensions or ((2, 7) if ask.quick else DIMENSIONS)
    ask.repetitions = min(ask.repetitions, 100) if ask.quick else ask.repetitions
    ask.out.mkdir(parents=True, exist_ok=True)
    return ask


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(float(part)) for part in text.split(","))


def measured(n: int, dimension: int, ask: argparse.Namespace) -> Result:
    """One cell: wallflower, its peers, wallflower again."""
    budget = ask.target_budget if (n, dimension) in TARGETS else ask.budget
    budget = min(budget, 2.0) if ask.quick else budget
    peers = [name for name in PEERS if name != "sklearn_brute" or dimension in BRUTE]
    before, radius, found = os.getloadavg()[0], [], {}
    for name in ("wallflower", *peers, "wallflower"):
        if name in found and found[name]["seconds"] > LONG:
            continue
        say(f"n={n:,} d={dimension}: {name}")
        result = run("cell.py", name, str(n), str(dimension), f"--budget={budget}", f"--sample={ask.budget}", *radius)
        say(f"    {result['seconds']:.3g} s{' (extrapolated)' if result['extrapolated'] else ''}")
        radius = ["--radius", repr(result["radius"])]
        found[name] = max(result, found.get(name, result), key=lambda one: one["seconds"])
    return {
        "n": n,
        "dimension": dimension,
        "radius": found["wallflower"]["radius"],
        **circumstances(before),
        "results": found,
    }


def surveyed(table: str, ask: argparse.Namespace) -> Result:
    """All subspaces of one table: wallflower, its peers, wallflower again."""
    before, found, question = os.getloadavg()[0], {}, {}
    for name in (*SUBSPACES, *OURS):
        say(f"subspaces of {table}: {name}")
        result = run("subspaces.py", table, name, f"--budget={ask.target_budget}")
        say(f"    {result['seconds']:.3g} s{' (extrapolated)' if result['extrapolated'] else ''}")
        question = result.pop("question")
        found[name] = max(result, found.get(name, result), key=lambda one: one["seconds"])
    return question | circumstances(before) | {"results": found}


def circumstances(load_before: float) -> Result:
    return {
        "date": today(),
        "command": shlex.join(["python", "benchmarks/run.py", *sys.argv[1:]]),
        "load": [round(load_before, 1), round(os.getloadavg()[0], 1)],
    }


def first_answers() -> Result:
    """The first answer ever, compilers and all, and the first of a later process."""
    say("first answers")
    with tempfile.TemporaryDirectory() as cache:
        ever, later = (run("cell.py", "first_answers", cache=cache) for _ in range(2))
    return {"ever": ever["first"], "later": later["first"], "again": later["second"]}


def run(script: str, *arguments: str, cache: str | None = None) -> Any:
    environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cache else {})
    command = [sys.executable, str(HERE / script), *arguments]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def machine() -> Result:
    packages = ["wallflower", "numpy", "scipy", "scikit-learn", "numba"]
    packages += [name for name in ("river", "pyod", "cryptography", "uvicorn") if find_spec(name)]
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def load(path: Path) -> Result:
    return json.loads(path.read_text()) if path.exists() else {}


def save(folder: Path, results: Result) -> None:
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "README.md").write_text(written(HERE / "README.md", TABLES | EXPLAIN_TABLES, results))
    for page, tables in PAGES.items():
        path = HERE.parent / "docs" / page
        (path if folder == HERE else folder / page).write_text(written(path, tables, results))


def written(path: Path, tables: dict[str, Callable[[Result], str]], results: Result) -> str:
    """A page with its tables as they are now."""
    page = path.read_text()
    for name, table in tables.items():
        head, rest = page.split(f"<!-- {name} -->\n")
        page = f"{head}<!-- {name} -->\n{table(results)}\n<!-- /{name} -->{rest.split(f'<!-- /{name} -->')[1]}"
    return page


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


if __name__ == "__main__":
    main()
