"""What the extension costs beside the exact count, where records contest their neighbours' supply.

Cases named "by the rule" ask the default count at ε = 1, the test of crowding included; the others fix the degree cap.
"The narrow cap" is the least that the rule has for a table of this size, which the noise of the test can choose.

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
from wallflower.neighbours.noisy_count import GAP, STEP, cap_rule, crowding_steps, gap_steps
from wallflower.neighbours.pairs import Floats, build_tree, count_neighbours, squared_reach
from wallflower.neighbours.region import Certificate
from wallflower.privacy import Loss
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
    slack: int | None  # None: by the rule, for a count at ε = 1
    radius: float | None = None
    share: float = SHARE


def uniform(n: int, dimension: int) -> Floats:
    return np.random.default_rng(0).uniform(0, 1, (n, dimension))


def gauss(n: int, dimension: int) -> Floats:
    return np.random.default_rng(0).normal(0, 1, (n, dimension))


def exponential(n: int) -> Floats:
    return np.random.default_rng(22).exponential(1, (n, 2))


def lattice(side: int = 40) -> Floats:
    return np.stack(np.meshgrid(np.arange(float(side)), np.arange(float(side))), -1).reshape(-1, 2)


def clusters() -> Floats:
    """Two hundred places with six records each."""
    return np.repeat(np.random.default_rng(0).uniform(0, 1000, (200, 2)), 6, axis=0)


def micro_clusters(n: int, neighbours: int) -> Floats:
    """Groups in which everybody has just enough neighbours."""
    return np.repeat(10.0 * np.arange(n // (neighbours + 1)), neighbours + 1)[:, None]


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
    **{
        f"by the rule: uniform {n:,}, {k}, {share:.0%}": Case(lambda n=n: uniform(n, 2), k, None, share=share)
        for n, k, share in (
            (6_000, 20, 0.3),
            (6_000, 20, 0.86),
            (6_000, 50, 0.86),
            (12_500, 20, 0.02),
            (12_500, 10, 0.3),
            (50_000, 20, 0.3),
            (100_000, 20, 0.02),
            (100_000, 20, 0.1),
            (100_000, 20, 0.3),
            (100_000, 20, 0.5),
            (100_000, 20, 0.7),
            (100_000, 20, 0.9),
            (100_000, 50, 0.3),
        )
    },
    **{
        f"by the rule: Gauss {n:,}, {k}, {share:.0%}": Case(lambda n=n: gauss(n, 2), k, None, share=share)
        for n, k, share in (
            (10_000, 10, 0.3),
            (10_000, 20, 0.1),
            (10_000, 20, 0.3),
            (100_000, 20, 0.3),
            (100_000, 50, 0.1),
            (100_000, 50, 0.3),
        )
    },
    **{
        f"the narrow cap: {name} 100,000, 50, {share:.0%}": Case(make, 50, 11, share=share)
        for name, make, share in (
            ("Gauss", lambda: gauss(100_000, 2), 0.1),
            ("Gauss", lambda: gauss(100_000, 2), 0.3),
            ("exponential", lambda: exponential(100_000), 0.3),
        )
    },
    "by the rule: exponential 100,000, 50, 10%": Case(lambda: exponential(100_000), 50, None, share=0.1),
    **{
        f"by the rule: micro-clusters 100,000, {k}": Case(lambda k=k: micro_clusters(100_000, k), k, None, 1.0)
        for k in (10, 20)
    },
    **{
        f"by the rule: lattice {side} x {side}, 12": Case(
            lambda side=side: lattice(side), 12, None, 2**0.5 * (1 + 1e-9)
        )
        for side in (50, 100, 316)
    },
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
    radius = case.radius or find_radius(values, case.neighbours, case.share)
    warm_up()
    exact, outliers = timed(lambda: count_outliers(values, radius, case.neighbours))
    slack = case.slack or choose_cap(values, radius, case.neighbours)
    ours, bounds = timed(lambda: count_by_extension(values, radius, case))
    return {
        "n": len(values),
        "dimension": values.shape[1],
        "neighbours": case.neighbours,
        "slack": slack,
        "outliers": outliers,
        "answer": len(values) - bounds.lower,
        "gap": bounds.upper - bounds.lower,
        "exact": exact,
        "seconds": ours,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def count_by_extension(values: Floats, radius: float, case: Case) -> Certificate:
    """The extension at the cap of the case; by the rule, the test that chooses it is part of the work."""
    slack = case.slack or choose_cap(values, radius, case.neighbours)
    reach = squared_reach(radius, values.shape[1], normalise=True)
    gap = GAP + float(gap_steps(len(values), case.neighbours, slack) * STEP)
    return certify(build_tree(values, reach), case.neighbours, float(slack), gap)


def choose_cap(values: Floats, radius: float, neighbours: int) -> int:
    """The cap that the rule chooses for these records, without noise."""
    rule = cap_rule(len(values), neighbours, Loss("1"), dimension=values.shape[1])
    if rule.test is None:
        return rule.narrow
    return rule.cap_at(float(crowding_steps([values], radius, neighbours, normalise=True) * STEP) / len(values))


def warm_up() -> None:
    """Compile every kernel on a table that needs them all."""
    values = uniform(300, 2)
    count_outliers(values, 0.08, 5)
    certify(build_tree(values, squared_reach(0.08, 2, normalise=True)), 5, 2.0, GAP)


def find_radius(values: Floats, neighbours: int, share: float = SHARE) -> float:
    """Where about this share of the records are outliers, by those of up to 20,000 of them."""
    some = np.linspace(0, len(values) - 1, min(len(values), 20_000)).astype(np.int32)
    low, high = 1e-6, 64.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        tree = build_tree(values, squared_reach(middle, values.shape[1], normalise=True))
        low, high = (
            (middle, high) if (count_neighbours(tree, neighbours, some) < neighbours).mean() > share else (low, middle)
        )
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
