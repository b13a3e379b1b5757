"""One measurement in a process of its own, so that peak memory is that of one contestant alone.

`python cell.py wallflower 100000 7 --budget 20` prints one JSON object. A peer that would need longer than the budget
is timed on random records as queries, against the whole table, and scaled up; it then says `extrapolated`.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

import wallflower as wf
from wallflower.neighbours.pairs import Floats, build_tree, count_neighbours, squared_reach
from wallflower.noise import system_noise
from wallflower.synthetic import mixture

NEIGHBOURS = 5
SPREAD = 10.0
SHARE = 0.012
PROBE = 64
CHUNK = 2048
ENOUGH = 0.5
# Found by `find_radius`; written down so that every run asks the same question.
RADII = {
    (10_000, 1): 0.0288,
    (10_000, 2): 0.399,
    (10_000, 3): 0.628,
    (10_000, 7): 0.892,
    (10_000, 30): 1.153,
    (100_000, 1): 0.00355,
    (100_000, 2): 0.135,
    (100_000, 3): 0.337,
    (100_000, 7): 0.702,
    (100_000, 30): 1.057,
    (1_000_000, 1): 0.000352,
    (1_000_000, 2): 0.0538,
    (1_000_000, 3): 0.168,
    (1_000_000, 7): 0.619,
    (1_000_000, 30): 0.969,
}

Ask = Callable[[Floats], int]


class Budget(NamedTuple):
    """Seconds: for asking about all records, or else about a sample of them."""

    whole: float
    sample: float


def records(n: int, dimension: int) -> Floats:
    """99 % of N(0, I), 1 % of N(0, 100 I), in random order."""
    return np.random.default_rng(1).permutation(mixture(n, dimension, seed=0, spread=SPREAD))


def radius_of(n: int, dimension: int) -> float:
    return RADII.get((n, dimension)) or find_radius(records(n, dimension))


def find_radius(values: Floats) -> float:
    """Where 1.2 % of (up to 20,000 of) the records are outliers; from above, since wide radii are found quickly."""
    some = np.linspace(0, len(values) - 1, min(len(values), 20_000)).astype(np.int32)
    high, low = 16.0, 16.0
    while outlier_share(values, low, some) <= SHARE:
        high, low = low, 0.8 * low
    for _ in range(8):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if outlier_share(values, middle, some) > SHARE else (low, middle)
    return float(f"{high:.3g}")


def outlier_share(values: Floats, radius: float, some: np.ndarray) -> float:
    tree = build_tree(values, squared_reach(radius, values.shape[1], normalise=True))
    return float((count_neighbours(tree, NEIGHBOURS, some) < NEIGHBOURS).mean())


def wallflower(values: Floats, radius: float, budget: Budget) -> dict[str, object]:
    """The private count: tree, capped degrees, extension, noise. The slack is the default, from public facts."""
    tiny, sparse = (
        wf.Points.from_array(np.random.default_rng(1).uniform(0, 1, (150, d))) for d in (values.shape[1], 2)
    )
    for points, reach in ((tiny, 1.0), (sparse, 0.11)):  # on sparse data prices and programme are compiled, too
        wf.Count(neighbours=NEIGHBOURS, radius=reach, loss=wf.Loss("1"), slack=2).answer(points, system_noise())
    points = wf.Points.from_array(values)
    query = wf.Count(neighbours=NEIGHBOURS, radius=radius, loss=wf.Loss("1"))
    return timed(lambda: query.answer(points, system_noise())) | {"queries": len(values)}


def scipy_ball(values: Floats, radius: float, budget: Budget) -> dict[str, object]:
    """cKDTree, then all neighbours counted."""

    def ready() -> Ask:
        tree = cKDTree(values)
        reach = radius * math.sqrt(values.shape[1])
        return lambda some: few(tree.query_ball_point(some, reach, return_length=True, workers=-1) - 1)

    return within(budget, values, ready, PROBE)


def scipy_nearest(values: Floats, radius: float, budget: Budget) -> dict[str, object]:
    """cKDTree, then the k-th neighbour within the radius: what a user who knows the trick would run."""

    def ready() -> Ask:
        tree = cKDTree(values)
        reach = radius * math.sqrt(values.shape[1])
        return lambda some: sum(
            few(np.isfinite(tree.query(part, NEIGHBOURS + 1, distance_upper_bound=reach, workers=-1)[0]).sum(1) - 1)
            for part in chunks(some, 100_000)
        )

    return within(budget, values, ready, PROBE)


def sklearn_auto(values: Floats, radius: float, budget: Budget) -> dict[str, object]:
    """NearestNeighbors as it comes: a tree up to 15 columns, brute force above."""
    return _sklearn(values, radius, budget, "auto")


def sklearn_brute(values: Floats, radius: float, budget: Budget) -> dict[str, object]:
    """NearestNeighbors told to compare all pairs by matrix products."""
    return _sklearn(values, radius, budget, "brute")


def _sklearn(values: Floats, radius: float, budget: Budget, algorithm: str) -> dict[str, object]:
    def ready() -> Ask:
        reach = radius * math.sqrt(values.shape[1])
        index = NearestNeighbors(radius=reach, algorithm=algorithm, n_jobs=-1).fit(values)
        return lambda some: sum(
            few(np.array([len(row) - 1 for row in index.radius_neighbors(part, return_distance=False)]))
            for part in chunks(some, CHUNK)
        )

    return within(budget, values, ready, PROBE if algorithm == "auto" and values.shape[1] <= 15 else CHUNK)


def within(budget: Budget, values: Floats, ready: Callable[[], Ask], probe: int) -> dict[str, object]:
    """Build, then ask for all records, or for as many as the budget allows."""
    build = timed(ready)
    ask = build.pop("value")
    first = timed(lambda: ask(values[:probe]), seconds=0)
    while first["seconds"] < min(ENOUGH, budget.whole) and probe < len(values):  # a short call is mostly its own start
        probe = 8 * probe
        first = timed(lambda size=probe: ask(values[:size]), seconds=0)
    probe = min(probe, len(values))
    rate = probe / max(first["seconds"], 1e-9)
    if budget.whole * rate >= len(values):
        full = timed(lambda: ask(values))
        return added(build, full, 1.0) | {"value": full["value"], "queries": len(values)}
    some = values[: max(probe, int(budget.sample * rate))]
    part = first if len(some) == probe else timed(lambda: ask(some), seconds=0)
    return added(build, part, len(values) / len(some)) | {"queries": len(some)}


def added(build: dict[str, float], part: dict[str, float], scale: float) -> dict[str, object]:
    return {key: build[key] + part[key] * scale for key in ("seconds", "cpu")} | {"extrapolated": scale > 1}


def timed(work: Callable[[], object], seconds: float = 1.0) -> dict[str, object]:
    """The fastest of up to five runs, repeated while they all fit into `seconds`."""
    best, spent, turns = (math.inf, math.inf), 0.0, 0
    while turns == 0 or (turns < 5 and spent + best[0] < seconds):
        wall, cpu = time.perf_counter(), time.process_time()
        value = work()
        best = min(best, (time.perf_counter() - wall, time.process_time() - cpu))
        spent, turns = spent + best[0], turns + 1
    return {"seconds": best[0], "cpu": best[1], "value": value, "extrapolated": False}


def chunks(values: Floats, size: int) -> list[Floats]:
    return [values[start : start + size] for start in range(0, len(values), size)]


def few(degrees: np.ndarray) -> int:
    return int(np.count_nonzero(degrees < NEIGHBOURS))


CONTESTANTS = {work.__name__: work for work in (wallflower, scipy_ball, scipy_nearest, sklearn_auto, sklearn_brute)}


def first_answers() -> dict[str, float]:
    """How long the first question takes in a new process, compiled code included, and the second."""
    points = wf.Points.from_array(np.random.default_rng(1).uniform(0, 1, (150, 2)))
    query = wf.Count(neighbours=NEIGHBOURS, radius=0.11, loss=wf.Loss("1"), slack=2)
    first, second = (timed(lambda: query.answer(points, system_noise()), seconds=0)["seconds"] for _ in range(2))
    return {"first": first, "second": second}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contestant", choices=[*CONTESTANTS, "first_answers"])
    parser.add_argument("n", type=int, nargs="?", default=400)
    parser.add_argument("dimension", type=int, nargs="?", default=2)
    parser.add_argument("--budget", type=float, default=20.0)
    parser.add_argument("--sample", type=float, default=5.0)
    parser.add_argument("--radius", type=float)
    ask = parser.parse_args()
    if ask.contestant == "first_answers":
        json.dump(first_answers(), sys.stdout)
        return
    radius = ask.radius or radius_of(ask.n, ask.dimension)
    found = CONTESTANTS[ask.contestant](records(ask.n, ask.dimension), radius, Budget(ask.budget, ask.sample))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    json.dump({"contestant": ask.contestant, "radius": radius, "peak_bytes": peak} | found, sys.stdout)


if __name__ == "__main__":
    main()
