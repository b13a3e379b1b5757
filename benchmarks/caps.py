"""The degree cap of a count, chosen by its rule and by size alone: bias, noise, total error and time.

`python caps.py TABLE` prints a list of JSON objects, one for each number of neighbours, share of outliers and ε;
`python caps.py available` the tables that can be measured here. Nothing is drawn: the bias of every cap is computed
once, and what the noisy test of crowding would choose is added up from the law of its noise. A cap whose programme
takes longer than LIMIT seconds has no bias of its own. By size alone that of the next wider cap, which is no larger,
stands for it, and by the rule that of the next narrower one, which is no smaller.

The constants of the rule were chosen on TABLES; HELD_OUT were not looked at before.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from intervals import ADBENCH, adbench, adult
from wallflower.errors import SourceError
from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import (
    GAP,
    STEP,
    cap_rule,
    count_noise,
    crowding_steps,
    gap_steps,
    size_cap,
)
from wallflower.neighbours.pairs import Floats, build_tree, count_neighbours, squared_reach
from wallflower.privacy import Loss
from wallflower.queries.count.by_group import DEFAULT_SLACK, CountByGroup

NEIGHBOURS = (3, 5, 10, 20, 50)
SHARES = (0.02, 0.1, 0.3)
EPSILONS = ("0.1", "0.3", "1", "3")
CAPS = (*range(2, 15), 16, 18, 20, 22, 24, 27, 30, 36, 43, 50)  # of these, those up to the neighbours
RARE_CHANCE = 1e-9  # a cap that is chosen less often adds nothing to an expected error
LIMIT = 0.5  # CPU seconds of one programme, but the widest
GROUPS = 4
REAL = ("43_WDBC", "29_Pima", "6_cardio", "38_thyroid", "23_mammography")
UNSEEN = ("18_Ionosphere", "28_pendigits", "2_annthyroid", "31_satimage-2")


class Setting(NamedTuple):
    """A question about records, whole or by group."""

    neighbours: int
    share: float
    radius: float
    tables: list[Floats]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", help="a table, or `available`")
    parser.add_argument("--quick", action="store_true", help="the first setting only, of a small table")
    ask = parser.parse_args(arguments)
    tables = TABLES | HELD_OUT
    if ask.table == "available":
        json.dump([name for name in tables if is_there(name)], sys.stdout)
        return
    settings = islice((SMALL if ask.quick else tables).get(ask.table, tables[ask.table])(), 1 if ask.quick else None)
    warm_up()
    json.dump([row for setting in settings for row in compare_rules(measure_caps(setting))], sys.stdout)


def is_there(table: str) -> bool:
    try:
        next((TABLES | HELD_OUT)[table]())
    except SourceError:
        return False
    return True


# Tables


def scaled(read: Callable[[], Floats], groups: int = 1) -> Iterator[Setting]:
    """A table in scaled units, at every number of neighbours and every share of outliers."""
    values = read()
    values = (values - values.mean(0)) / np.where(values.std(0) > 0, values.std(0), 1)
    tables = [values[start::groups] for start in range(groups)]
    for neighbours in NEIGHBOURS:
        near = [cKDTree(part).query(part, min(len(part), neighbours + 1))[0][:, -1] for part in tables]
        furthest = np.concatenate(near) / math.sqrt(values.shape[1])
        for share in SHARES:
            yield Setting(neighbours, share, max(1e-6, float(np.quantile(furthest, 1 - share))) * (1 + 1e-9), tables)


def uniform(n: int) -> Floats:
    return np.random.default_rng(0).uniform(0, 1, (n, 2))


def gauss(n: int) -> Floats:
    return np.random.default_rng(0).normal(0, 1, (n, 2))


def mixture(n: int, dimension: int) -> Floats:
    """Eight clusters, and one record in fifty anywhere."""
    draw, far = np.random.default_rng(3), n // 50
    centres = draw.normal(0, 4, (8, dimension))
    near = centres[draw.integers(0, 8, n - far)] + draw.normal(0, 1, (n - far, dimension))
    return np.concatenate([near, draw.uniform(-15, 15, (far, dimension))])


def duplicates(n: int) -> Floats:
    """Whole years of age and of school: most places hold many records."""
    draw = np.random.default_rng(4)
    return np.stack([np.floor(draw.gamma(9, 4.3, n)), np.floor(draw.normal(10, 2.5, n))], axis=1)


def ring(n: int) -> Floats:
    draw = np.random.default_rng(21)
    angle, radius = draw.uniform(0, 2 * math.pi, n), draw.normal(5, 0.4, n)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def exponential(n: int) -> Floats:
    return np.random.default_rng(22).exponential(1, (n, 2))


def cube(n: int) -> Floats:
    return np.random.default_rng(23).uniform(0, 1, (n, 3))


def whole_numbers(n: int) -> Floats:
    draw = np.random.default_rng(24)
    return np.stack([np.floor(draw.normal(45, 14, n)), np.floor(draw.gamma(2, 20, n))], axis=1)


def mixture_of_widths(n: int, dimension: int, seed: int) -> Floats:
    """Twelve clusters of different widths, and one record in fifty anywhere."""
    draw, far = np.random.default_rng(seed), n // 50
    centres, widths = draw.normal(0, 4, (12, dimension)), draw.uniform(0.3, 2, (12, dimension))
    at = draw.integers(0, 12, n - far)
    near = centres[at] + widths[at] * draw.normal(0, 1, (n - far, dimension))
    return np.concatenate([near, draw.uniform(-15, 15, (far, dimension))])


def lattice(side: int, beside: int = 0) -> Iterator[Setting]:
    """Inner records have exactly the fewest neighbours that are enough; `beside` far from them is a dense cluster."""
    values = np.stack(np.meshgrid(np.arange(float(side)), np.arange(float(side))), -1).reshape(-1, 2)
    values = np.concatenate([values, np.random.default_rng(0).normal(-1000, 1, (beside, 2))])
    for neighbours, squared in ((4, 1), (8, 2), (12, 4), (20, 5), (48, 16)):
        yield Setting(neighbours, 0.0, math.sqrt(squared / 2) * (1 + 1e-9), [values])


def micro_clusters(n: int) -> Iterator[Setting]:
    """Groups in which everybody has just enough neighbours, and one record in fifty far from all."""
    for neighbours in NEIGHBOURS:
        groups = np.repeat(10.0 * np.arange(n // (neighbours + 1)), neighbours + 1)
        alone = -10.0 * np.arange(1, n // 50 + 1)
        yield Setting(neighbours, 0.02, 1.0, [np.concatenate([groups, alone])[:, None]])


TABLES: dict[str, Callable[[], Iterator[Setting]]] = {
    **{name.split("_", 1)[1]: partial(scaled, partial(adbench, name)) for name in ADBENCH if name in REAL},
    "adult age × hours-per-week": partial(scaled, partial(adult, ("age", "hours-per-week"))),
    "Gauss": partial(scaled, partial(gauss, 6_000)),
    "mixture, 2 columns": partial(scaled, partial(mixture, 6_000, 2)),
    "mixture, 7 columns": partial(scaled, partial(mixture, 6_000, 7)),
    "uniform 1,000": partial(scaled, partial(uniform, 1_000)),
    "uniform 6,000": partial(scaled, partial(uniform, 6_000)),
    "lattice 50 × 50": partial(lattice, 50),
    "lattice 100 × 100": partial(lattice, 100),
    "half a lattice": partial(lattice, 70, 4_900),
    "micro-clusters 1,000": partial(micro_clusters, 1_000),
    "micro-clusters 10,000": partial(micro_clusters, 10_000),
    "duplicates": partial(scaled, partial(duplicates, 20_000)),
    "Gauss, 4 groups": partial(scaled, partial(gauss, 6_000), GROUPS),
    "uniform, 4 groups": partial(scaled, partial(uniform, 6_000), GROUPS),
}
HELD_OUT: dict[str, Callable[[], Iterator[Setting]]] = {
    **{name.split("_", 1)[1]: partial(scaled, partial(adbench, name)) for name in ADBENCH if name in UNSEEN},
    "adult age × education-num": partial(scaled, partial(adult, ("age", "education-num"))),
    "mixture of widths, 2 columns": partial(scaled, partial(mixture_of_widths, 5_000, 2, 31)),
    "mixture of widths, 5 columns": partial(scaled, partial(mixture_of_widths, 5_000, 5, 32)),
    "ring": partial(scaled, partial(ring, 4_000)),
    "exponential": partial(scaled, partial(exponential, 8_000)),
    "uniform, 3 columns": partial(scaled, partial(cube, 3_000)),
    "whole numbers": partial(scaled, partial(whole_numbers, 15_000)),
}
SMALL: dict[str, Callable[[], Iterator[Setting]]] = {"micro-clusters 1,000": partial(micro_clusters, 400)}


# What the rules do


class OutOfTime(Exception):
    """A programme took longer than LIMIT."""


class Measurement(NamedTuple):
    """What was measured of a setting: nothing of it depends on the rule."""

    neighbours: int
    share: float
    n: int
    groups: int
    outliers: int
    crowding: float  # records
    exact: float  # seconds of the exact count
    testing: float  # seconds of the crowding test
    bias: dict[int, float]  # by cap; a cap that took longer than LIMIT is missing
    seconds: dict[int, float]


def measure_caps(setting: Setting) -> Measurement:
    """The crowding, and the bias of every cap from the widest down; after the first that takes too long, only of those
    that the size alone would choose."""
    k, reach = setting.neighbours, squared_reach(setting.radius, setting.tables[0].shape[1], normalise=True)
    n, trees = sum(map(len, setting.tables)), [build_tree(values, reach) for values in setting.tables]
    start = time.process_time()
    outliers = sum(int(np.count_nonzero(count_neighbours(tree, k) < k)) for tree in trees)
    exact = time.process_time() - start
    start = time.process_time()
    steps = crowding_steps(setting.tables, setting.radius, k, normalise=True)
    testing = time.process_time() - start
    bias: dict[int, float] = {}
    seconds: dict[int, float] = {}
    usual = {usual_cap(n, k, len(trees), Loss(epsilon)) for epsilon in EPSILONS}

    def gap_at(cap: int) -> float:
        """What the value may lie below the extension; by group, no more than GAP."""
        return GAP + (float(gap_steps(n, k, cap) * STEP) if len(trees) == 1 else 0.0)

    signal.signal(signal.SIGVTALRM, stop)
    for cap in sorted({cap for cap in (*CAPS, *usual) if cap <= k} | {k}, reverse=True):
        if math.inf in seconds.values() and cap not in usual:
            continue
        start = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT if bias else 0.0)
        try:
            bias[cap] = n - outliers - sum(certify(tree, k, float(cap), gap_at(cap)).lower for tree in trees)
            seconds[cap] = time.process_time() - start
        except OutOfTime:
            seconds[cap] = math.inf
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    groups, crowding = len(setting.tables), float(steps * STEP)
    return Measurement(k, setting.share, n, groups, outliers, crowding, exact, testing, bias, seconds)


def compare_rules(measured: Measurement) -> Iterator[dict[str, Any]]:
    """At every ε: the cap, bias, noise and total error by size alone, and what the rule leads to."""
    k, n, by_group = measured.neighbours, measured.n, measured.groups > 1
    for epsilon in EPSILONS:
        loss = Loss(epsilon)
        usual = usual_cap(n, k, measured.groups, loss)
        rule = cap_rule(n, k, loss, usual=usual, own=0 if by_group else 1)
        chances = {
            cap: chance for cap, chance in rule.cap_chances(measured.crowding / n).items() if chance > RARE_CHANCE
        }
        likely = max(chances, key=chances.__getitem__)
        seconds = sum(chance * seconds_at(measured.seconds, cap) for cap, chance in chances.items())
        yield {
            "neighbours": k,
            "share": measured.share,
            "epsilon": epsilon,
            "n": n,
            "outliers": measured.outliers,
            "crowding": round(measured.crowding / n, 4),
            "exact": measured.exact,
            "before": {
                "cap": usual,
                "bias": least_bias_at(measured.bias, usual),
                "is_least": min(usual, k) not in measured.bias,
                "noise": noise_error(usual, loss, by_group, gap=0),
                "seconds": seconds_at(measured.seconds, usual),
            },
            "now": {
                "cap": likely,
                "tested": rule.test is not None,
                "bias": sum(chance * bias_at(measured.bias, cap) for cap, chance in chances.items()),
                "noise": sum(
                    chance * noise_error(cap, rule.numbers, by_group, gap=gap_steps(n, k, cap))
                    for cap, chance in chances.items()
                ),
                "seconds": seconds + (measured.testing if rule.test else 0.0),
            },
        }


def stop(*_: object) -> None:
    raise OutOfTime


def usual_cap(n: int, neighbours: int, groups: int, loss: Loss) -> int:
    """The cap by size alone."""
    return DEFAULT_SLACK if groups > 1 else size_cap(n, neighbours, loss)


def least_bias_at(bias: dict[int, float], cap: int) -> float:
    """The bias of the narrowest measured cap that is no narrower: no larger than the true one."""
    return bias[min((known for known in bias if known >= cap), default=max(bias))]


def bias_at(bias: dict[int, float], cap: int) -> float:
    """The bias of the widest measured cap that is no wider: no smaller than the true one. Below all: the largest."""
    return bias[max((known for known in bias if known <= cap), default=min(bias))]


def seconds_at(seconds: dict[int, float], cap: int) -> float:
    """What the widest measured cap that is no wider took; where all of them took too long, LIMIT."""
    return min(LIMIT, seconds.get(max((known for known in seconds if known <= cap), default=0), LIMIT))


def noise_error(cap: int, loss: Loss, by_group: bool, *, gap: int) -> float:
    """The mean absolute noise, of a group where groups are counted."""
    if not by_group:
        return count_noise(cap, loss, gap=gap).mean_error()
    return CountByGroup(neighbours=1, radius=1.0, by=("group",), slack=cap, loss=loss).law.mean_error()


def warm_up() -> None:
    """Compile every kernel on a table that needs them all."""
    values = uniform(300)
    certify(build_tree(values, squared_reach(0.08, 2, normalise=True)), 5, 2.0, GAP)
    crowding_steps([values], 0.08, 5, normalise=True)


if __name__ == "__main__":
    main()
