"""One record per person of a table of visits, beside DuckDB's own group-by: CPU seconds and peak memory.

`python benchmarks/people.py 10000000 1000000` prints a JSON list, a row for each kind of identifier, each set of
aggregates and each way. Each runs in a process of its own, which has rolled up a small table before the clock starts,
so that loops are compiled and modules loaded. User and system time count, on all cores; reading the Parquet file is
part of it. DuckDB compares identifiers as they are written; wallflower without case, surrounding spaces and Unicode
forms.
With `--runs` the run that took the least CPU time counts: other processes only add to it.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from wallflower.data import Column, Schema, TiledTable
from wallflower.data.scans import load_into
from wallflower.schema.person import Person

BATCH_ROWS = 1 << 20
WARM_ROWS, WARM_PEOPLE = 5000, 500
PEER = "duckdb"
WAYS = ("memory", "tiles", PEER)
KINDS = ("text", "integer")
BOUND = 1e9  # of every column, on either side
AGGREGATES = {
    "simple": {"pulse": "max", "weight": "mean", "cost": "sum", "height": "min", "visits": "count"},
    "ordered": {"pulse": "first", "weight": "last", "cost": "median", "height": "mode", "visits": "count"},
}
SQL = {
    "min": "min({0})",
    "max": "max({0})",
    "mean": "avg({0})",
    "sum": "sum({0})",
    "count": "count(*)",
    "first": "arg_min({0}, day)",
    "last": "arg_max({0}, day)",
    "median": "median({0})",
    "mode": "mode({0})",
}


def write_visits(path: Path, rows: int, people: int, kind: str) -> None:
    """Write visits of people in random order: most have about `rows / people` of them."""
    generator = np.random.default_rng(rows + people)
    types = [("patient", pa.string() if kind == "text" else pa.int64()), ("day", pa.int64())]
    schema = pa.schema(types + [(name, pa.float64()) for name in ("pulse", "weight", "cost", "height")])
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, rows, BATCH_ROWS):
            count = min(BATCH_ROWS, rows - start)
            patients = generator.integers(0, people, count)
            written = pa.array(patients)
            if kind == "text":
                written = pa.compute.binary_join_element_wise("P", written.cast(pa.string()), "-")
            columns = {
                "patient": written,
                "day": np.arange(start, start + count),
                "pulse": generator.normal(70, 10, count).round(),
                "weight": generator.normal(75, 12, count).round(1),
                "cost": generator.exponential(200, count).round(2),
                "height": generator.normal(170, 9, count).round(),
            }
            file.write_table(pa.table(columns, schema=schema))


def roll_up(path: str, way: str, aggregates: str) -> dict[str, float]:
    """Return the number of people and the sum of each column over them, by which ways are compared."""
    rollup = AGGREGATES[aggregates]
    if way == PEER:
        columns = ", ".join(f"{SQL[aggregate].format(name)} AS {name}" for name, aggregate in rollup.items())
        query = f"SELECT patient, {columns} FROM read_parquet(?) GROUP BY patient"  # noqa: S608 - names of our own
        records = duckdb.sql(query, params=[path]).to_arrow_table()
        return {"people": records.num_rows} | {name: _total(records[name].to_numpy()) for name in rollup}
    schema = Schema(
        columns=tuple(Column(name, low=-BOUND, high=BOUND) for name in rollup),
        person=Person(id="patient", rollup=rollup, order="day" if aggregates == "ordered" else None),
    )
    table = load_into(path, way, schema=schema)
    if not isinstance(table, TiledTable):
        return {"people": table.n} | {name: _total(table.cells(name)) for name in rollup}
    places = [table.columns.index(name) for name in rollup]
    cells = [np.concatenate(parts) for parts in zip(*table.sheet.chunks(places), strict=True)]
    return {"people": table.n} | {name: _total(column) for name, column in zip(rollup, cells, strict=True)}


def _total(cells: Any) -> float:
    return float(np.sort(np.asarray(cells, dtype=np.float64)).sum())


def measure(path: str, way: str, aggregates: str) -> dict[str, Any]:
    """Roll up one table in this process; the peak is that of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        warm = Path(folder) / "warm.parquet"
        write_visits(warm, WARM_ROWS, WARM_PEOPLE, "text")
        roll_up(str(warm), way, aggregates)
    before, start = _cpu_seconds(), time.perf_counter()
    totals = roll_up(path, way, aggregates)
    return {
        "way": way,
        "cpu": round(_cpu_seconds() - before, 2),
        "wall": round(time.perf_counter() - start, 2),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "totals": totals,
    }


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def compare(rows: int, people: int, kinds: tuple[str, ...], ways: tuple[str, ...], runs: int) -> list[dict[str, Any]]:
    """Measure every way on the same tables; `ratio` is CPU time as a multiple of DuckDB's."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            path = Path(folder) / f"{kind}.parquet"
            write_visits(path, rows, people, kind)
            for aggregates in AGGREGATES:
                measured = {way: _best(path, way, aggregates, runs) for way in ways}
                for row in measured.values():
                    ratio = {"ratio": round(row["cpu"] / measured[PEER]["cpu"], 2)} if measured[PEER]["cpu"] else {}
                    case = {"rows": rows, "people": people, "identifiers": kind, "aggregates": aggregates}
                    results.append(case | row | ratio | {"load": round(os.getloadavg()[0], 1)})
    return results


def _best(path: Path, way: str, aggregates: str, runs: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--file", str(path), "--way", way, "--aggregates", aggregates]
    rows = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(runs)]
    best: dict[str, Any] = min(rows, key=lambda row: row["cpu"])
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=int, nargs="?", default=10_000_000)
    parser.add_argument("people", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--aggregates", choices=tuple(AGGREGATES))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--file")
    parser.add_argument("--write", help="write the table to this file and stop")
    given = parser.parse_args()
    if given.write:
        write_visits(Path(given.write), given.rows, given.people, (given.kind or KINDS)[0])
    elif given.file:
        print(json.dumps(measure(given.file, given.way[0], given.aggregates)))
    else:
        ways = tuple(dict.fromkeys([*(given.way or WAYS), PEER]))
        print(json.dumps(compare(given.rows, given.people, tuple(given.kind or KINDS), ways, given.runs)))


if __name__ == "__main__":
    main()
