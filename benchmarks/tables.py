"""The tables of README.md, each from results.json alone."""

from __future__ import annotations

from typing import Any

TARGETS = {(1_000_000, 2): 3e9, (100_000, 7): None, (100_000, 30): None}  # at most 1.5 times the fastest peer; bytes
ALLOWED = 1.5
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
WATCH_OURS = {
    "event_batch": "wallflower, event",
    "event_single": "wallflower, event",
    "event_durable": "wallflower, event, durable",
    "fleet_batch": "wallflower, fleet of 1,000 streams",
    "person_batch": "wallflower, person",
    "window_batch": "wallflower, person in a window",
}
WATCH_PEERS = {
    "river_gaussian": "River GaussianScorer",
    "river_frozen": "River GaussianScorer, score only",
    "river_quantile": "River QuantileFilter",
    "pyod_ecod": "PyOD ECOD",
}
WATCH = WATCH_OURS | WATCH_PEERS
WATCH_LEAST = {"event_batch 1": 2e6, "event_batch 30": 5e5}  # observations a second
SENSORS = {
    "perturb_planar": "perturb, planar noise",
    "perturb_columns": "perturb, a draw for each column",
    "deal": "keys of `exact`, dealt for both servers",
    "deal_tagged": "the same with tags",
    "evaluate": "one threshold at one server",
    "correction": "correction of `paper`, after DBSCAN",
    "dbscan_ours": "DBSCAN, wallflower",
    "dbscan_sklearn": "DBSCAN, scikit-learn",
    "wire_grid": "signed batches to both servers, `grid`",
    "wire_grid_tls": "the same with TLS",
    "wire_exact": "signed batches to both servers, `exact`",
    "wire_exact_tls": "the same with TLS",
    "device_grid": "readings through the outbox to both servers, `grid`",
    "device_exact": "the same, `exact`",
}
SENSORS_MOST = {"correction": 0.015, "dbscan_ours": 0.6, "deal": 0.8, "evaluate": 0.15, "wire_grid": 0.25}
SENSORS_BYTES = {"dbscan_ours": 150e6}  # beyond what was there before
REFERENCE = {  # the columns of the specification, in the order of its rows
    "global": (9.7, 120, 395, 3198, 26),
    "smooth": (12.0, 22.5, 252, 192, 52),
    "slack 2": (2.7, 2.9, 2.9, 2.9, 11.1),
    "slack 3": (3.4, 3.9, 4.0, 4.0, 5.5),
}

Result = dict[str, Any]


def run_facts(results: Result) -> str:
    host = results["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in host["packages"].items())
    cells = [*results["cells"], *results["subspaces"].values()]
    cells += [results[part] for part in ("contests", "watch", "sensors", "explain") if results.get(part)]
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


def contests(results: Result) -> str:
    heads = ["table", "N", "d", "k", "slack", "outliers", "before noise", "exact", "extension", "×", "memory"]
    rows = [
        [
            name.rsplit(",", 2 if name.startswith(("uniform 1", "Gauss")) and name[-1].isdigit() else 1)[0],
            f"{one['n']:,}",
            str(one["dimension"]),
            str(one["neighbours"]),
            str(one["slack"]),
            f"{one['outliers']:,}",
            f"{one['answer']:,.2f}",
            f"{number(one['exact'])} s",
            f"{number(one['seconds'])} s",
            f"**{number(one['seconds'] / one['exact'])}**",
            f"{one['memory'] / 1e6:,.0f} MB",
        ]
        for name, one in results["contests"].get("results", {}).items()
    ]
    return grid(heads, rows)


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
        [table.capitalize()] + [memory_of(cell["results"][name]) for name in SUBSPACES]
        for table, cell in results["subspaces"].items()
    ]
    return grid(["data", *SUBSPACES.values()], rows)


def watch_targets(results: Result) -> str:
    found = results["watch"].get("results", {})
    rows = []
    for name, least in WATCH_LEAST.items():
        if name in found:
            got = 1 / found[name]["seconds"]
            asked = f"n = {found[name]['columns']}, in batch"
            rows.append([asked, f"at least {least:,.0f}/s", f"{number(got)}/s", "met" if got >= least else "missed"])
    if "river_gaussian 1" in found:
        ours, river = (found[name]["seconds"] for name in ("event_single 1", "river_gaussian 1"))
        bound = f"below River's GaussianScorer, {micro(river)}"
        rows.append(["n = 1, one by one", bound, micro(ours), "met" if ours < river else "missed"])
    return grid(["decisions", "target", "measured", ""], rows)


def watch(results: Result) -> str:
    heads = ["who", "n", "at a time", "observations/s", "time each", "fastest"]
    heads += ["one by one ×", "CPU ×", "batch ×", "CPU ×", "memory", "load"]
    found = results["watch"].get("results", {})
    rows = []
    for one in sorted(found.values(), key=lambda one: (one["columns"], list(WATCH).index(one["contestant"]))):
        ours = [found[f"{way} {one['columns']}"] for way in ("event_single", "event_batch")]
        over = [f"{our[of] / one[of]:.2g}" for our in ours for of in ("seconds", "cpu")]
        rows.append(
            [
                WATCH[one["contestant"]],
                str(one["columns"]),
                f"{one['together']:,}",
                number(1 / one["seconds"]),
                micro(one["seconds"]),
                micro(one["range"][0]),
                *(over if one["contestant"] in WATCH_PEERS else [""] * len(over)),
                memory_of(one),
                f"{one['load']:g}",
            ]
        )
    return grid(heads, rows)


def watch_durable(results: Result) -> str:
    heads = ["n", "durable", "fastest", "CPU", "the disk alone", "fastest", "not durable"]
    found = results["watch"].get("results", {})
    rows = [
        [
            str(one["columns"]),
            *(micro(seconds) for seconds in (one["seconds"], one["range"][0], one["cpu"])),
            *(micro(seconds) for seconds in (one["disk"]["seconds"], one["disk"]["range"][0])),
            micro(found[f"event_single {one['columns']}"]["seconds"]),
        ]
        for one in found.values()
        if one["contestant"] == "event_durable"
    ]
    return grid(heads, rows)


def sensors_targets(results: Result) -> str:
    found = results["sensors"].get("results", {})
    rows = []
    for name, most in SENSORS_MOST.items():
        if name in found:
            took = found[name]["seconds"] * 100_000 / found[name]["readings"]
            over = found[name]["peak_bytes"] - found[name]["before_bytes"]
            room = SENSORS_BYTES.get(name)
            met = took <= most and (room is None or over <= room)
            asked = f"{most:g} s" + (f", {room / 1e6:.0f} MB" if room else "")
            got = f"{number(took)} s" + (f", {over / 1e6:.0f} MB" if room else "")
            rows.append([SENSORS[name], asked, got, "met" if met else "missed"])
    return grid(["for 100,000 readings", "at most", "measured", ""], rows)


def sensors(results: Result) -> str:
    found = results["sensors"].get("results", {})
    rows = [
        [
            SENSORS[name],
            f"{one['readings']:,}",
            f"{number(one['seconds'])} s",
            f"{number(one['range'][0])} s",
            number(one["readings"] / one["seconds"]),
            " → ".join(f"{one[of] / 1e6:,.0f}" for of in ("before_bytes", "peak_bytes")) + " MB",
            f"{one['load']:g}",
        ]
        for name, one in found.items()
    ]
    return grid(["work", "readings", "time", "fastest", "readings/s", "memory", "load"], rows)


def memory_of(result: Result) -> str:
    return " → ".join(f"{result[of] / 1e6:,.0f}" for of in ("before_bytes", "peak_bytes")) + " MB"


def ratio(found: Result, peers: tuple[str, ...], of: str) -> float:
    return found["wallflower"][of] / min(found[name][of] for name in peers if name in found)


def seconds(result: Result) -> str:
    return f"{'~' if result['extrapolated'] else ''}{number(result['seconds'])} s"


def micro(value: float) -> str:
    return f"{number(value * 1e6)} µs"


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
    "contests": contests,
    "questions": questions,
    "subspaces": subspaces,
    "agreement": agreement,
    "subspaces-memory": subspaces_memory,
    "watch-targets": watch_targets,
    "watch": watch,
    "watch-durable": watch_durable,
    "sensors-targets": sensors_targets,
    "sensors": sensors,
    "errors": errors,
}
