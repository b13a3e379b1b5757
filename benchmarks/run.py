"""Measure the private count against the counts a user would run without privacy, and write the tables of README.md.

Every measurement is a process of its own (cell.py, subspaces.py), one after the other. In each cell wallflower runs
before and after its peers and the slower run counts (once only where that takes over a minute). Cells measured before
and not asked for now are kept, so a long table can be measured in pieces.
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
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SIZES = (10_000, 100_000, 1_000_000)
DIMENSIONS = (1, 2, 3, 7, 30)
TARGETS = {(1_000_000, 2): 3e9, (100_000, 7): None, (100_000, 30): None}  # at most 1.5 times the fastest peer; bytes
ALLOWED = 1.5
TOO_LONG = {(1_000_000, 30)}  # not measured: boxes prune nothing in 30 columns; README.md says what is known
LONG = 60.0  # seconds: not run a second time
PEERS = {
    "scipy_ball": "scipy ball",
    "scipy_nearest": "scipy k-th",
    "sklearn_auto": "sklearn",
    "sklearn_brute": "sklearn brute",
}
SUBSPACES = {
    "count": "wallflower, count",
    "mass": "wallflower, mass",
    "sklearn_lists": "sklearn lists",
    "sklearn_counts": "sklearn counts",
    "scipy_nearest": "scipy k-th",
}
OURS = ("count", "mass")
COUNT_ALL = ("scipy_ball", "sklearn_auto", "sklearn_brute")
QUICK = ("ionosphere",)
BRUTE = range(4, 16)  # above, brute force is what scikit-learn chooses itself; below, nobody would
REFERENCE = {  # the columns of the specification, in the order of its rows
    "global": (9.7, 120, 395, 3198, 26),
    "smooth": (12.0, 22.5, 252, 192, 52),
    "slack 2": (2.7, 2.9, 2.9, 2.9, 11.1),
    "slack 3": (3.4, 3.9, 4.0, 4.0, 5.5),
}

Result = dict[str, Any]


def main(arguments: list[str] | None = None) -> None:
    ask = parsed(arguments)
    results: Result = load(ask.out / "results.json") | {"machine": machine()}
    results |= {"cells": results.get("cells", []), "subspaces": results.get("subspaces", {})}
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


def subspaces_part(results: Result, ask: argparse.Namespace) -> None:
    for table in run("subspaces.py", "available"):
        if not ask.quick or table in QUICK:
            results["subspaces"][table] = surveyed(table, ask)
            save(ask.out, results)


def accuracy_part(results: Result, ask: argparse.Namespace) -> None:
    if ask.repetitions:
        say("accuracy table")
        extra = ["--quick"] if ask.quick else []
        results["accuracy"] = run("accuracy.py", str(ask.repetitions), *extra)
        results["repetitions"] = ask.repetitions


PARTS = {"count": count_part, "subspaces": subspaces_part, "accuracy": accuracy_part}


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
    packages = ("wallflower", "numpy", "scipy", "scikit-learn", "numba")
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
    page = (HERE / "README.md").read_text()
    for name, table in TABLES.items():
        head, rest = page.split(f"<!-- {name} -->\n")
        page = f"{head}<!-- {name} -->\n{table(results)}\n<!-- /{name} -->{rest.split(f'<!-- /{name} -->')[1]}"
    (folder / "README.md").write_text(page)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def run_facts(results: Result) -> str:
    host = results["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in host["packages"].items())
    cells = (*results["cells"], *results["subspaces"].values())
    commands = sorted({(cell["date"], cell.get("command")) for cell in cells}, key=str)
    runs = [f"`{command}`, {date}." if command else f"Command not kept, {date}." for date, command in commands]
    facts = (
        "\\\n".join(runs) + "\n\n"
        f"{host['cores']} cores ({host['architecture']}), {host['memory_gb']} GB, Python {host['python']}, "
        f"{packages}."
    )
    first = results.get("first_answers")
    return facts + (
        f"\n\nFirst answer ever, compilation included: {first['ever']:.1f} s. First answer of a later process: "
        f"{first['later']:.2f} s; the same question again: {first['again']:.2f} s."
        if first
        else ""
    )


def speed(results: Result) -> str:
    heads = ["N", "d", "radius", "wallflower", *PEERS.values(), "× fastest", "CPU ×", "× k-th", "load"]
    rows = []
    for cell in results["cells"]:
        found = cell["results"]
        rows.append(
            [
                f"{cell['n']:,}",
                str(cell["dimension"]),
                f"{cell['radius']:g}",
                seconds(found["wallflower"]),
                *(seconds(found[name]) if name in found else "" for name in PEERS),
                f"**{ratio(found, COUNT_ALL, 'seconds'):.2g}**",
                f"{ratio(found, COUNT_ALL, 'cpu'):.2g}",
                f"{ratio(found, ('scipy_nearest',), 'seconds'):.2g}",
                "–".join(map(str, cell["load"])),
            ]
        )
    return grid(heads, rows)


def memory(results: Result) -> str:
    heads = ["N", "d", "wallflower", *PEERS.values()]
    rows = [
        [f"{cell['n']:,}", str(cell["dimension"])]
        + [
            f"{cell['results'][name]['peak_bytes'] / 1e6:,.0f} MB" if name in cell["results"] else ""
            for name in ("wallflower", *PEERS)
        ]
        for cell in results["cells"]
    ]
    return grid(heads, rows)


def growth(results: Result) -> str:
    """Seconds of ten times the records over seconds, by CPU time."""
    cpu = {(cell["n"], cell["dimension"]): cell["results"]["wallflower"]["cpu"] for cell in results["cells"]}
    rows = [
        [f"{n:,} → {10 * n:,}", str(d), f"{cpu[10 * n, d] / spent:.3g}"]
        for (n, d), spent in sorted(cpu.items(), key=lambda item: (item[0][1], item[0][0]))
        if (10 * n, d) in cpu
    ]
    return grid(["N", "d", "CPU time ×"], rows)


def targets(results: Result) -> str:
    cells = {(cell["n"], cell["dimension"]): cell["results"] for cell in results["cells"]}
    rows = []
    for (n, d), most in TARGETS.items():
        if (n, d) not in cells:
            continue
        got, peak = ratio(cells[n, d], COUNT_ALL, "seconds"), cells[n, d]["wallflower"]["peak_bytes"]
        held = got <= ALLOWED and (most is None or peak < most)
        bound = f", under {most / 1e9:g} GB" if most else ""
        rows.append(
            [f"N={n:,}, d={d}", f"{ALLOWED}×{bound}", f"{got:.2g}×, {peak / 1e9:.2f} GB", "met" if held else "missed"]
        )
    return grid(["cell", "at most", "measured", ""], rows)


def errors(results: Result) -> str:
    rows = []
    for place, row in enumerate(results.get("accuracy", [])):
        shown = [f"{row['errors'][name]:.3g} ({REFERENCE[name][place]:g})" for name in REFERENCE]
        question = f"{row['name']}, d={row['dimension']}, k={row['neighbours']}, r={row['radius']:g}"
        rows.append([question, f"{row['n']:,}", f"{row['outliers']:.4g}", *shown])
    return grid(["data", "N", "outliers", "Laplace, global bound", "smooth Laplace", "L = 2", "L = 3"], rows)


def subspaces(results: Result) -> str:
    heads = ["data", "who", "seconds", "CPU", "asked", "count ×", "CPU ×", "mass ×", "CPU ×", "load"]
    rows = []
    for table, cell in results["subspaces"].items():
        found, whole = cell["results"], cell["n"] * cell["subspaces"]
        for name, words in SUBSPACES.items():
            one = found[name]
            about = "~" if one["extrapolated"] else ""
            over = [f"{about}{found[our][of] / one[of]:.2g}" for our in OURS for of in ("seconds", "cpu")]
            rows.append(
                [
                    table.capitalize(),
                    words,
                    seconds(one),
                    f"{about}{number(one['cpu'])} s",
                    f"{100 * one['queries'] / whole:.3g} %",
                    *(over if name not in OURS else [""] * len(over)),
                    "–".join(map(str, cell["load"])),
                ]
            )
    return grid(heads, rows)


def questions(results: Result) -> str:
    heads = ["data", "N", "columns", "subspaces", "k", "radius", "outliers, all subspaces", "mass, all subspaces"]
    rows = [
        [
            table.capitalize(),
            f"{cell['n']:,}",
            *(f"{cell[of]:g}" for of in ("columns", "subspaces", "neighbours", "radius")),
        ]
        + [f"{cell['results'][name]['value']:,.0f}" for name in OURS]
        for table, cell in results["subspaces"].items()
    ]
    return grid(heads, rows)


def agreement(results: Result) -> str:
    heads = ["data", "who", "decisions compared", "outliers among them", "differ", "subspaces in full", "counts differ"]
    rows = [
        [
            table.capitalize(),
            words,
            *(f"{cell['results'][name][of]:,}" for of in ("queries", "outliers", "differ", "full", "full_differ")),
        ]
        for table, cell in results["subspaces"].items()
        for name, words in SUBSPACES.items()
        if name not in OURS
    ]
    return grid(heads, rows)


def subspaces_memory(results: Result) -> str:
    rows = [
        [table.capitalize()]
        + [
            " → ".join(f"{cell['results'][name][of] / 1e6:,.0f}" for of in ("before_bytes", "peak_bytes")) + " MB"
            for name in SUBSPACES
        ]
        for table, cell in results["subspaces"].items()
    ]
    return grid(["data", *SUBSPACES.values()], rows)


def ratio(found: Result, peers: tuple[str, ...], of: str) -> float:
    return found["wallflower"][of] / min(found[name][of] for name in peers if name in found)


def seconds(result: Result) -> str:
    return f"{'~' if result['extrapolated'] else ''}{number(result['seconds'])} s"


def number(value: float) -> str:
    """Three digits, never as a power of ten.

    >>> number(0.01234), number(12345.6)
    ('0.0123', '12,300')
    """
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"


def grid(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES = {
    "run": run_facts,
    "targets": targets,
    "speed": speed,
    "memory": memory,
    "growth": growth,
    "questions": questions,
    "subspaces": subspaces,
    "agreement": agreement,
    "subspaces-memory": subspaces_memory,
    "errors": errors,
}

if __name__ == "__main__":
    main()
