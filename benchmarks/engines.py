"""One count of a table in Parquet, in memory and by tiles: CPU seconds, peak memory, and the number before noise.

`python benchmarks/engines.py 1000000 2` prints a JSON list, a row for each engine. Each runs in a process of its own,
which has compiled its loops before the clock starts. Reading is part of it, the fingerprint and the ledger are not.
`--engine local[2,4]` measures Spark on two cores: Java and the workers count, starting them does not. `--engine
scikit-learn` is the count of its KDTree, without privacy, in place of the number before noise: the peer. With `--runs`
the one that took the least CPU time counts: whoever else is busy only adds to it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.neighbors import KDTree

from wallflower.data import TiledTable
from wallflower.data.scans import load_into
from wallflower.neighbours.noisy_count import exact_steps

NEIGHBOURS, SLACK = 5, 10
PEER = "scikit-learn"
BATCH = 1 << 20
CENTRE = {2: 250.0, 7: 20_000.0}  # neighbours in the middle of the cloud, so that about 2 % of it are outliers


def radius_for(n: int, dimension: int) -> float:
    """A radius, as a root of the mean square, at which the middle of a normal cloud has so many neighbours."""
    ball = math.pi ** (dimension / 2) / math.gamma(dimension / 2 + 1)
    density = n * (2 * math.pi) ** (-dimension / 2)
    return (CENTRE[dimension] / (density * ball)) ** (1 / dimension) / math.sqrt(dimension)


def write_table(path: Path, n: int, dimension: int) -> None:
    """A standard normal cloud, written in parts."""
    made = np.random.default_rng(n + dimension)
    names = [f"x{column}" for column in range(dimension)]
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as file:
        for start in range(0, n, BATCH):
            rows = made.normal(size=(min(BATCH, n - start), dimension))
            file.write_table(pa.table(dict(zip(names, rows.T, strict=True))))


def count(path: str, engine: str, radius: float) -> dict[str, object]:
    """The number of outliers before noise, in steps of the grid, and what it took."""
    _count(pa.table({"x0": np.arange(9000.0) % 97, "x1": np.arange(9000.0) % 89}), engine, 0.5)  # compiles
    before, start = _family()[0], time.perf_counter()
    steps = _count(path, engine, radius)
    after, memory = _family()
    return {
        "engine": engine,
        "steps": steps,
        "cpu": round(after - before, 2),
        "wall": round(time.perf_counter() - start, 2),
        "memory": memory,
    }


def _family() -> tuple[float, int]:
    """CPU seconds of this process and of all that it started and that run, and the sum of their peaks in bytes."""
    parents, seconds, peaks = {}, {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            status = (entry / "status").read_text()
        except OSError:  # it has ended meanwhile
            continue
        who = int(entry.name)
        parents[who] = int(fields[1])
        seconds[who] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        peaks[who] = next((int(line.split()[1]) * 1024 for line in status.splitlines() if line[:6] == "VmHWM:"), 0)
    ours = [who for who in parents if os.getpid() in _line(who, parents)]
    return sum(seconds[who] for who in ours), sum(peaks[who] for who in ours)


def _line(who: int, parents: dict[int, int]) -> list[int]:
    line = [who]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    return line


def _count(source: object, engine: str, radius: float) -> int:
    if engine == PEER:
        return _outliers(source, radius)
    table = load_into(source, engine)
    points = table.points() if isinstance(table, TiledTable) else table.points().values
    return exact_steps(points, radius, NEIGHBOURS, SLACK, normalise=True)


def _outliers(source: object, radius: float) -> int:
    """What whoever needs no privacy would run."""
    table = source if isinstance(source, pa.Table) else pq.read_table(str(source))
    values = np.column_stack([column.to_numpy() for column in table.columns])
    found = KDTree(values).query_radius(values, radius * math.sqrt(values.shape[1]), count_only=True)
    return int((found - 1 < NEIGHBOURS).sum())


def compare(n: int, dimension: int, engines: tuple[str, ...], runs: int) -> list[dict[str, object]]:
    """Every engine on the same table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cloud.parquet"
        write_table(path, n, dimension)
        rows = []
        for engine in engines:
            command = [sys.executable, __file__, "--file", str(path), "--engine", engine]
            command += ["--radius", repr(radius_for(n, dimension))]
            told = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(runs)]
            best = min(told, key=lambda row: row["cpu"])
            rows.append({"n": n, "dimension": dimension, **best, "load": round(os.getloadavg()[0], 1)})
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="?")
    parser.add_argument("dimension", type=int, nargs="?", default=2)
    parser.add_argument("--engine", action="append")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--file")
    parser.add_argument("--radius", type=float)
    given = parser.parse_args()
    if given.file:
        print(json.dumps(count(given.file, *given.engine, given.radius)))
        return
    print(json.dumps(compare(given.n, given.dimension, tuple(given.engine or ("memory", "tiles")), given.runs)))


if __name__ == "__main__":
    main()
