"""What the extension costs beside the exact count, where records contest their neighbours' supply.

`python contests.py "uniform 1,000, 2, 5"` prints one JSON object; `python contests.py available` what can be measured
here. Both sides grow their own tree; time is processor time, the median of three runs, or of one that took long.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import numpy as np

from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import GAP
from wallflower.neighbours.pairs import Floats, counts, plant, squared_reach
from wallflower.queries.count.exact import count_outliers

DATA = Path(os.environ.get("WALLFLOWER_DATA", "../shared/data"))
LONG = 5.0  # seconds: not run again
SHARE = 0.05
SLACKS = {1_000: 3, 10_000: 5, 100_000: 8}  # what suits tables of this size at a loss of 1


T = TypeVar("T")


class Case(NamedTuple):
    """A table, and a question about it; `radius` is None where it follows from the share of outliers."""

    make: Callable[[], Floats]
    neighbours: int
    slack: int
    radius: float | None = None


def uniform(n: int, dimension: int) -> Floats:
    return np.random.default_rng(0).uniform(0, 1, (n, dimension))


def gauss(n: int, dimension: int) -> Floats:
    return np.random.default_rng(0).normal(0, 1, (n, dimension))


def lattice() -> Floats:
    return np.stack(np.meshgrid(np.arange(40.0), np.arange(40.0)), -1).reshape(-1, 2)


def clusters() -> Floats:
    """Two hundred places with six records each."""
    return np.repeat(np.random.default_rng(0).uniform(0, 1000, (200, 2)), 6, axis=0)


def adbench(name: str) -> Callable[[], Floats]:
    def read() -> Floats:
        values = np.load(DATA / "adbench" / name)["X"].astype(np.float64)
        return (values - values.mean(0)) / np.maximum(values.std(0), 1e-12)

    return read


CASES = {
    **{
        f"uniform {n:,}, {d}, {k}": Case(lambda n=n, d=d: uniform(n, d), k, slack)
        for n, slack in SLACKS.items()
        for d, k in ((2, 5), (3, 5), (2, 10), (2, 20))
        if (n, k) != (10_000, 20)
    },
    "Gauss 100,000, 2, 5": Case(lambda: gauss(100_000, 2), 5, 8),
    "Gauss 100,000, 2, 20": Case(lambda: gauss(100_000, 2), 20, 8),
    "uniform 1,000, all contested": Case(lambda: uniform(1_000, 2), 10, 3, math.sqrt(14 / (2000 * math.pi))),
    "lattice 40 x 40, 8": Case(lattice, 8, 3, 1.0),
    "clusters of six, 5": Case(clusters, 5, 3, 1.0),
    "mammography, 5": Case(adbench("23_mammography.npz"), 5, 5),
    "mammography, 20, slack 3": Case(adbench("23_mammography.npz"), 20, 3),
    "shuttle, 5": Case(adbench("32_shuttle.npz"), 5, 7),
    "shuttle, 20": Case(adbench("32_shuttle.npz"), 20, 7),
}


def available() -> list[str]:
    here = (DATA / "adbench").is_dir()
    return [name for name in CASES if here or not name.startswith(("mammography", "shuttle"))]


def measure(case: Case) -> dict[str, object]:
    values = case.make()
    radius = case.radius or find_radius(values, case.neighbours)
    reach = squared_reach(radius, values.shape[1], normalise=True)
    warm_up()
    exact, outliers = timed(lambda: count_outliers(values, radius, case.neighbours))
    ours, bounds = timed(lambda: certify(plant(values, reach), case.neighbours, float(case.slack), GAP))
    return {
        "n": len(values),
        "dimension": values.shape[1],
        "neighbours": case.neighbours,
        "slack": case.slack,
        "outliers": outliers,
        "answer": len(values) - bounds.lower,
        "gap": bounds.upper - bounds.lower,
        "exact": exact,
        "seconds": ours,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def warm_up() -> None:
    """Compile every kernel on a table that needs them all."""
    values = uniform(300, 2)
    count_outliers(values, 0.08, 5)
    certify(plant(values, squared_reach(0.08, 2, normalise=True)), 5, 2.0, GAP)


def find_radius(values: Floats, neighbours: int) -> float:
    """Where about one record in twenty is an outlier, by those of up to 20,000 of them."""
    some = np.linspace(0, len(values) - 1, min(len(values), 20_000)).astype(np.int32)
    low, high = 1e-6, 64.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        tree = plant(values, squared_reach(middle, values.shape[1], normalise=True))
        low, high = (middle, high) if (counts(tree, neighbours, some) < neighbours).mean() > SHARE else (low, middle)
    return high


def timed(work: Callable[[], T]) -> tuple[float, T]:
    spent: list[float] = []
    while len(spent) < 3 and sum(spent) < LONG:
        start = time.process_time()
        result = work()
        spent.append(time.process_time() - start)
    return median(spent), result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=("available", *CASES))
    name = parser.parse_args().name
    print(json.dumps(available() if name == "available" else measure(CASES[name])))
