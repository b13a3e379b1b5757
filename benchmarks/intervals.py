"""How often the stated interval of a count holds the truth: `python intervals.py TABLE` prints it as JSON.

Nothing is drawn: what a count is before its noise is computed once for every slack, and the chance that the reading of
the noisy count holds the truth is added up from the law of the noise, by the functions that make releases.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from wallflower.data import Points
from wallflower.errors import SourceError
from wallflower.mechanisms import Additive
from wallflower.neighbours.noisy_count import GAP, STEP, noisy_steps
from wallflower.neighbours.pairs import index_points
from wallflower.papers.data.tables import find_file
from wallflower.privacy import Loss
from wallflower.queries.count.at_radius import Counted, OneSidedCount
from wallflower.queries.count.exact import count_outliers
from wallflower.queries.count.lower import certify_lower
from wallflower.queries.count.two_sided import TwoSidedCount, TwoSidedCounted

SHARES = (0.01, 0.02, 0.05)
NEIGHBOURS = (3, 5, 10, 20)
EPSILONS = ("0.1", "0.3", "1", "3")
ADBENCH = ("43_WDBC", "18_Ionosphere", "29_Pima", "6_cardio", "38_thyroid", "31_satimage-2", "28_pendigits")
ADBENCH += ("2_annthyroid", "23_mammography", "32_shuttle")
ADULT = (("age", "hours-per-week"), ("age", "education-num"), ("education-num", "hours-per-week"))

Setting = tuple[int, float, np.ndarray]  # neighbours, radius, records


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="a table, or `available`")
    parser.add_argument("--quick", action="store_true", help="one number of neighbours, one share, and few records")
    ask = parser.parse_args(arguments)
    if ask.table == "available":
        json.dump([name for name in TABLES if is_there(name)], sys.stdout)
        return
    settings = islice((SMALL if ask.quick else TABLES).get(ask.table, TABLES[ask.table])(), 1 if ask.quick else None)
    rows = [row for setting in settings for row in measured(*setting)]
    json.dump(rows, sys.stdout)


def is_there(table: str) -> bool:
    try:
        next(TABLES[table]())
    except SourceError:
        return False
    return True


# Tables


def scaled(read: Callable[[], np.ndarray]) -> Iterator[Setting]:
    """A table in scaled units, at every number of neighbours and every share of outliers."""
    values = read()
    values = (values - values.mean(0)) / np.where(values.std(0) > 0, values.std(0), 1)
    tree = cKDTree(values)
    for neighbours in NEIGHBOURS:
        furthest = tree.query(values, neighbours + 1, workers=-1)[0][:, -1] / math.sqrt(values.shape[1])
        for share in SHARES:
            yield neighbours, max(1e-6, float(np.quantile(furthest, 1 - share))), values


def adbench(name: str) -> np.ndarray:
    with np.load(find_file(f"adbench/{name}.npz")) as stored:
        return stored["X"].astype(np.float64)


def adult(columns: tuple[str, str]) -> np.ndarray:
    with gzip.open(find_file("adult/adult.csv.gz"), "rt", encoding="utf-8") as lines:
        return np.array([[float(row[name]) for name in columns] for row in csv.DictReader(lines)])


def uniform(n: int, dimension: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(0, 1, (n, dimension))


def lattice(side: int = 40) -> Iterator[Setting]:
    """Inner records have exactly the fewest neighbours that are enough; those at the rim have too few."""
    values = np.array([(float(x), float(y)) for x in range(side) for y in range(side)])
    for neighbours, squared in ((3, 1), (4, 1), (5, 2), (8, 2), (10, 4), (20, 5)):
        yield neighbours, math.sqrt(squared / 2) * (1 + 1e-9), values


def micro_clusters(records: int = 1000) -> Iterator[Setting]:
    """Groups in which everybody has just enough neighbours, and a share of records far from all."""
    for neighbours in NEIGHBOURS:
        for share in SHARES:
            groups = np.repeat(10.0 * np.arange(records // (neighbours + 1)), neighbours + 1)
            alone = -10.0 * np.arange(1, round(share * len(groups)) + 1)
            yield neighbours, 1.0, np.concatenate([groups, alone])[:, None]


TABLES: dict[str, Callable[[], Iterator[Setting]]] = {
    **{name.split("_", 1)[1]: partial(scaled, partial(adbench, name)) for name in ADBENCH},
    **{f"adult {' × '.join(pair)}": partial(scaled, partial(adult, pair)) for pair in ADULT},
    "uniform, 2 columns": partial(scaled, partial(uniform, 1000, 2)),
    "uniform, 3 columns": partial(scaled, partial(uniform, 1000, 3)),
    "lattice": lattice,
    "micro-clusters": micro_clusters,
}
SMALL: dict[str, Callable[[], Iterator[Setting]]] = {"micro-clusters": partial(micro_clusters, 400)}


# Coverage


class Silence:
    """A noise of nothing: what is asked of it comes back as it was."""

    def laplace(self, scale: object) -> int:
        return 0

    gaussian = laplace


def measured(neighbours: int, radius: float, values: np.ndarray) -> Iterator[dict[str, Any]]:
    """At every ε: how often the truth is at most the stated end, and within the noise and the two-sided interval."""
    points, truth = Points.from_array(values, name="bench"), count_outliers(values, radius, neighbours)
    tree = index_points(values, radius, normalise=True)

    @cache
    def count(slack: int) -> float:
        steps = noisy_steps(values, radius, neighbours, slack, Loss("1"), Silence(), normalise=True)  # type: ignore[arg-type]
        return float(steps * STEP)

    @cache
    def floor(slack: int) -> float:
        return math.floor(certify_lower(tree, neighbours, float(slack), GAP).lower / STEP + 0.5) * float(STEP)

    for epsilon in EPSILONS:
        loss = Loss(epsilon)
        plain = OneSidedCount(neighbours=neighbours, radius=radius, loss=loss)
        two_sided = TwoSidedCount(neighbours=neighbours, radius=radius, loss=loss)
        slacks = [query.rule(points.n, points.dimension).narrow for query in (plain, two_sided)]
        at_most, both = noise_coverage(plain, points, truth, count(slacks[0]))
        yield {
            "neighbours": neighbours,
            "epsilon": epsilon,
            "n": points.n,
            "outliers": truth,
            "slacks": slacks,
            "bias": [count(slacks[0]) - truth, truth - floor(slacks[1])],
            "at_most": at_most,
            "noise": both,
            "two_sided": two_sided_coverage(two_sided, points, truth, count(slacks[1]), floor(slacks[1])),
            "widths": [
                plain.noise(points.n, points.dimension).half_width(),
                two_sided.noise(points.n, points.dimension).half_width(),
            ],
        }


def noise_coverage(query: OneSidedCount, points: Points, truth: int, start: float) -> tuple[float, float]:
    """The chances that the truth is at most the stated end, and that it is within the interval."""
    chance = partial(chance_from, query.noise(points.n, points.dimension), start, points.n)
    first = first_value(points.n, lambda value: query.reading(Counted(value), points).extras["at_most"] >= truth)
    beyond = first_value(points.n, lambda value: query.reading(Counted(value), points).interval[0] > truth)
    return chance(first), max(0.0, chance(first) - chance(beyond))


def two_sided_coverage(query: TwoSidedCount, points: Points, truth: int, start: float, floor: float) -> float:
    """The chance that the truth is within the two-sided interval: two numbers, with noise of their own."""
    n, dimension = points.n, points.dimension
    chance = partial(chance_from, query.noise(n, dimension), start, n)
    first = first_value(n, lambda value: query.reading(TwoSidedCounted(value), points).interval[1] >= truth)
    beyond = first_value(n, lambda below: query.reading(TwoSidedCounted(n, floor=below), points).interval[0] > truth)
    missed = chance_from(query.floor_noise(n, dimension), floor, n, beyond)
    within = max(
        0.0, chance(first) - chance(max(first, truth + 1))
    )  # where the value itself is no higher than the truth
    return chance(first) * (1 - missed) + within * missed


def first_value(n: int, holds: Callable[[int], bool]) -> int:
    """The first released number for which something holds that then goes on to hold; n + 1 where none is."""
    return bisect_left(range(n + 1), True, key=holds)


def chance_from(noise: Additive, start: float, n: int, value: int) -> float:
    """The chance that a count released around `start` is this value or higher."""
    if value <= 0:
        return 1.0
    return noise.upper_tail(value - 0.5 - start) if value <= n else 0.0


if __name__ == "__main__":
    main()
