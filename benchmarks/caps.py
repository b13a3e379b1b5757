"""The degree cap of a count, chosen by its rule and as it was before: bias, noise, total error and time.

`python caps.py TABLE` prints a list of JSON objects, one for each number of neighbours, share of outliers and ε;
`python caps.py available` the tables that can be measured here. Nothing is drawn: the bias of every cap is computed
once, and what the noisy test of crowding would choose is added up from the law of its noise. A cap whose programme
takes longer than LIMIT seconds has no bias of its own; that of the next wider cap, which is no larger, stands for it.
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
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from intervals import ADBENCH, adbench, adult
from wallflower.errors import SourceError
from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import (
    GAP,
    STEP,
    CapRule,
    cap_rule,
    count_noise,
    crowding_steps,
    usual_slack,
)
from wallflower.neighbours.pairs import Floats, Tree, counts, plant, squared_reach
from wallflower.privacy import Loss
from wallflower.queries.count.groups import DEFAULT_SLACK, GroupCount

NEIGHBOURS = (3, 5, 10, 20, 50)
SHARES = (0.02, 0.1, 0.3)
EPSILONS = ("0.1", "0.3", "1", "3")
CAPS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24, 30, 36, 43, 50)  # above 20 only these are computed
RARE = 0.02  # a cap that is chosen less often counts with the bias of the next narrower one
LIMIT = 1.0  # CPU seconds of one programme, but the widest
GROUPS = 4
REAL = ("43_WDBC", "29_Pima", "6_cardio", "38_thyroid", "23_mammography")


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
    if ask.table == "available":
        json.dump([name for name in TABLES if is_there(name)], sys.stdout)
        return
    settings = islice((SMALL if ask.quick else TABLES).get(ask.table, TABLES[ask.table])(), 1 if ask.quick else None)
    warm_up()
    json.dump([row for setting in settings for row in measured(setting)], sys.stdout)


def is_there(table: str) -> bool:
    try:
        next(TABLES[table]())
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
SMALL: dict[str, Callable[[], Iterator[Setting]]] = {"micro-clusters 1,000": partial(micro_clusters, 400)}


# What the rules do


class OutOfTime(Exception):
    """A programme took longer than LIMIT."""


def measured(setting: Setting) -> Iterator[dict[str, Any]]:
    """At every ε: the cap, bias, noise and total error before, and what the rule now leads to."""
    k, reach = setting.neighbours, squared_reach(setting.radius, setting.tables[0].shape[1], normalise=True)
    n, by_group = sum(map(len, setting.tables)), len(setting.tables) > 1
    trees = [plant(values, reach) for values in setting.tables]
    start = time.process_time()
    outliers = sum(int(np.count_nonzero(counts(tree, k) < k)) for tree in trees)
    exact = time.process_time() - start
    start = time.process_time()
    steps = crowding_steps(setting.tables, setting.radius, k, normalise=True)
    testing = time.process_time() - start
    rules, usuals, chosen = {}, {}, {}
    for epsilon in EPSILONS:
        usuals[epsilon] = DEFAULT_SLACK if by_group else usual_slack(n, k, Loss(epsilon))
        rules[epsilon] = cap_rule(n, k, Loss(epsilon), usual=usuals[epsilon], own=0 if by_group else 1)
        chosen[epsilon] = cap_chances(rules[epsilon], float(steps * STEP))
    likely_caps = {cap for chances in chosen.values() for cap, chance in chances.items() if chance > RARE}
    bias, seconds = biases(trees, k, n - outliers, {*usuals.values(), *likely_caps})
    for epsilon, chances in chosen.items():
        loss, usual, rule = Loss(epsilon), usuals[epsilon], rules[epsilon]
        before = bias_at(bias, usual)
        expected = sum(chance * bias_at(bias, cap) for cap, chance in chances.items())
        noise = sum(chance * noise_error(cap, rule.numbers, by_group) for cap, chance in chances.items())
        likely = max(chances, key=chances.__getitem__)
        yield {
            "neighbours": k,
            "share": setting.share,
            "epsilon": epsilon,
            "n": n,
            "outliers": outliers,
            "crowding": round(float(steps * STEP) / n, 4),
            "exact": exact,
            "before": {
                "cap": usual,
                "bias": before,
                "is_least": usual not in bias,
                "noise": noise_error(usual, loss, by_group),
                "seconds": seconds_at(seconds, usual),
            },
            "now": {
                "cap": likely,
                "tested": rule.test is not None,
                "bias": expected,
                "noise": noise,
                "seconds": seconds_at(seconds, likely) + (testing if rule.test else 0.0),
            },
        }


def biases(
    trees: list[Tree], neighbours: int, inliers: int, wanted: set[int]
) -> tuple[dict[int, float], dict[int, float]]:
    """The bias of every cap, from the widest down, and what it takes; it ends with the first that takes too long."""
    bias: dict[int, float] = {}
    seconds: dict[int, float] = {}
    signal.signal(signal.SIGVTALRM, stop)
    known_caps = {*CAPS, neighbours}
    grid = {max(known for known in known_caps if known <= cap) for cap in wanted if cap > CAPS[-6]}
    for cap in sorted(grid | {cap for cap in wanted if cap <= CAPS[-6]}, reverse=True):
        start = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT if bias else 0.0)
        try:
            bias[cap] = inliers - sum(certify(tree, neighbours, float(cap), GAP).lower for tree in trees)
        except OutOfTime:
            seconds[cap] = math.inf
            break
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        seconds[cap] = time.process_time() - start
    return bias, seconds


def stop(*_: object) -> None:
    raise OutOfTime


def bias_at(bias: dict[int, float], cap: int) -> float:
    """The bias of the widest measured cap that is no wider: no smaller than the true one. Below all: the largest."""
    return bias[max((known for known in bias if known <= cap), default=min(bias))]


def seconds_at(seconds: dict[int, float], cap: int) -> float:
    """What the widest measured cap that is no wider took; where it took too long, LIMIT."""
    return min(LIMIT, seconds[max((known for known in seconds if known <= cap), default=min(seconds))])


def cap_chances(rule: CapRule, crowding: float) -> dict[int, float]:
    """How often the rule chooses each cap, for this many crowded records."""
    if rule.test is None:
        return {rule.narrow: 1.0}
    least = [rule.n * (rule.calm + beyond) - crowding for beyond in rule.growth]
    above = [1.0, *(rule.test.upper_tail(x) if x > 0 else 1 - rule.test.upper_tail(-x) for x in least), 0.0]
    return {rule.narrow + step: more - less for step, (more, less) in enumerate(pairwise(above))}


def noise_error(cap: int, loss: Loss, by_group: bool) -> float:
    """The mean absolute noise, of a group where groups are counted."""
    if not by_group:
        return count_noise(cap, loss).mean_error()
    return GroupCount(
        neighbours=1, radius=1.0, by=("group",), columns=None, slack=cap, loss=loss, normalise=True
    ).law.mean_error()


def warm_up() -> None:
    """Compile every kernel on a table that needs them all."""
    values = uniform(300)
    certify(plant(values, squared_reach(0.08, 2, normalise=True)), 5, 2.0, GAP)
    crowding_steps([values], 0.08, 5, normalise=True)


if __name__ == "__main__":
    main()
