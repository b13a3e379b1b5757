"""The tables of README.md about explanations, each from results.json alone."""

from __future__ import annotations

from tables import Result, grid, memory_of, number

EXPLAIN = {"grubbs": "Grubbs", "histogram": "histogram", "lof": "LOF, k = 20"}
EXPLAIN_MORE = {
    "grubbs_35": "Grubbs, 35 values: all contexts counted",
    "lof_best_first": "LOF: a best-first draw, records that stand out",
    "lof_best_first_any": "the same, any outliers",
    "lof_bfs": "LOF: breadth first, n = 50",
    "tukey_dp": "Tukey: a draw by margins (mode dp)",
}
EXPLAIN_MOST = {"all_grubbs": 0.1, "all_histogram": 0.5, "all_lof": 8, "grubbs_35": 20, "lof_best_first": 0.06}
EXPLAIN_TIMES = {"grubbs": 50_000, "histogram": 5_000, "lof": 10_000}


def explain_targets(results: Result) -> str:
    found = results["explain"].get("results", {})
    words = {f"all_{name}": f"{label}: all contexts" for name, label in EXPLAIN.items()} | EXPLAIN_MORE
    rows = []
    for name, most in EXPLAIN_MOST.items():
        if name in found:
            got = found[name]["seconds"]
            rows.append([words[name], f"at most {most:g} s", f"{number(got)} s", "met" if got <= most else "missed"])
    for name, least in EXPLAIN_TIMES.items():
        if f"naive_{name}" in found:
            got = found[f"naive_{name}"]["seconds"] / found[f"all_{name}"]["seconds"]
            wanted = f"at least {least:,} times as fast as the loop"
            rows.append([words[f"all_{name}"], wanted, f"~{number(got)} times", "met" if got >= least else "missed"])
    return grid(["contexts of a record", "target", "measured", ""], rows)


def explain(results: Result) -> str:
    heads = ["detector", "contexts", "wallflower", "CPU", "naive loop", "CPU", "times as fast", "by CPU"]
    found = results["explain"].get("results", {})
    rows = []
    for name, words in EXPLAIN.items():
        if f"naive_{name}" in found:
            ours, loop = found[f"all_{name}"], found[f"naive_{name}"]
            rows.append(
                [
                    words,
                    f"{ours['contexts']:,}",
                    *(f"{number(ours[of])} s" for of in ("seconds", "cpu")),
                    *(f"~{number(loop[of])} s" for of in ("seconds", "cpu")),
                    *(f"~{number(loop[of] / ours[of])}" for of in ("seconds", "cpu")),
                    f"{loop['asked']:,}",
                    f"{loop['valid']:,}",
                    f"{loop['differ']:,}",
                    memory_of(ours),
                    "–".join(map(str, (ours["load"], loop["load"]))),
                ]
            )
    return grid([*heads, "asked", "valid", "differ", "memory", "load"], rows)


def explain_more(results: Result) -> str:
    found = results["explain"].get("results", {})
    rows = []
    for name, words in EXPLAIN_MORE.items():
        if name in found:
            one = found[name]
            ends = [f"{number(end)} s" for end in one["range"]] if "range" in one else ["", ""]
            asked = [f"{one.get('records', 1):,}", f"{one['contexts']:,}"]
            times = [f"{number(one[of])} s" for of in ("seconds", "cpu")]
            rows.append([words, *asked, *times, *ends, memory_of(one), f"{one['load']:g}"])
    return grid(["what", "records", "contexts", "median", "CPU", "fastest", "slowest", "memory", "load"], rows)


EXPLAIN_TABLES = {"explain-targets": explain_targets, "explain": explain, "explain-more": explain_more}
