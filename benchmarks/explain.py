"""Contexts of a made-up salary table by one contestant, in a process of its own.

`python explain.py all_lof` prints one JSON object. A naive loop is asked about random contexts, one after the other,
until its budget is spent; its time is then scaled up to all of them and it says `extrapolated`. What it found is
compared with what wallflower finds, context by context, after the clock is stopped.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import islice, pairwise
from statistics import median
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.neighbors import LocalOutlierFactor

from cell import timed
from wallflower.noise import system_noise
from wallflower.papers.data.registers import synthetic_salaries
from wallflower.papers.pcor2021.exact import likely
from wallflower.papers.pcor2021.margins import with_margin
from wallflower.queries.explain.detectors import Detector, Grubbs, Histogram, Lof
from wallflower.queries.explain.draws import ocdp
from wallflower.queries.explain.draws.best_first import draw_best_first
from wallflower.queries.explain.draws.dp import FULL_SCORE, draw_by_margin, population_scale, sufficient_score
from wallflower.queries.explain.draws.utilities import Population
from wallflower.queries.explain.exact import count_by_population, evaluate
from wallflower.queries.explain.space.tables import RankedTable, rank_table
from wallflower.synthetic import Floats, pick_rows, salaries

SIZES = (9, 8, 8)
MANY = (12, 12, 11)  # 35 values, 2^32 contexts
DETECTORS: dict[str, Detector] = {"grubbs": Grubbs(), "histogram": Histogram(), "lof": Lof()}
LOSS = Fraction(1, 5)
SAMPLES = 50
LEAST = 20  # contexts a naive loop is asked about at least

Result = dict[str, Any]


def whole(name: str, ask: argparse.Namespace) -> Result:
    """All contexts of one record, examined exactly."""
    codes, metric, record = salaries(sizes=SIZES)
    evaluate(codes[:3000], SIZES, metric[:3000], 0, DETECTORS[name])  # compiles
    work = partial(evaluate, codes, SIZES, metric, record, DETECTORS[name])
    before = peak()
    found = timed(work, seconds=ask.budget)
    return found | {"value": int(found["value"].valid.sum()), "contexts": 1 << 22, "before_bytes": before}


def naive(name: str, ask: argparse.Namespace) -> Result:
    """A loop over contexts: select the records, then ask numpy or scikit-learn."""
    codes, metric, record = salaries(sizes=SIZES)
    table = rank_table(codes, SIZES, metric, record)
    order = pick_rows(table.space.count, 1 << 16, seed=1).tolist()
    chosen = [allowed(table.space.bits(index)) for index in order]
    seen: dict[int, bool] = {}
    before, wall, cpu = peak(), time.perf_counter(), time.process_time()
    for index, values in zip(order, chosen, strict=True):
        inside = np.logical_and.reduce([here[column] for here, column in zip(values, codes.T, strict=True)])
        seen[index] = NAIVE[name](metric[inside], int(np.count_nonzero(inside[:record])))
        if time.perf_counter() - wall > ask.budget and len(seen) >= LEAST:
            break
    times = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    examine = DETECTORS[name].examine(table)
    return {of: value * table.space.count / len(seen) for of, value in times.items()} | {
        "extrapolated": True,
        "before_bytes": before,
        "contexts": table.space.count,
        "asked": len(seen),
        "valid": sum(seen.values()),
        "differ": sum(examine(index)[0] != found for index, found in seen.items()),
    }


def allowed(bits: str) -> list[np.ndarray]:
    """For every attribute, which of its values a context allows."""
    ends = np.cumsum([0, *SIZES])
    return [np.array([bit == "1" for bit in bits[a:b]]) for a, b in pairwise(ends)]


def naive_grubbs(values: Floats, at: int) -> bool:
    n, spread = len(values), values.std(ddof=1) if len(values) > 1 else 0.0
    if n < 3 or spread == 0:
        return False
    t = stdtrit(n - 2, 0.05 / (2 * n))
    return bool(abs(values[at] - values.mean()) / spread > (n - 1) / math.sqrt(n) * math.sqrt(t * t / (n - 2 + t * t)))


def naive_histogram(values: Floats, at: int) -> bool:
    counts, edges = np.histogram(values, bins=math.isqrt(len(values)))
    place = min(int(np.searchsorted(edges, values[at], side="right")) - 1, len(counts) - 1)
    return bool(counts[place] < 0.0025 * len(values))


def naive_lof(values: Floats, at: int) -> bool:
    if len(values) <= 20:
        return False
    return bool(-LocalOutlierFactor(n_neighbors=20).fit(values[:, None]).negative_outlier_factor_[at] > 1.5)


NAIVE = {"grubbs": naive_grubbs, "histogram": naive_histogram, "lof": naive_lof}


def grubbs_35(ask: argparse.Namespace) -> Result:
    """Grubbs in 2^32 contexts, or a quick 2^22: how many are valid of every population."""
    sizes = SIZES if ask.quick else MANY
    codes, metric, record = salaries(sizes=sizes)
    count_by_population(codes[:3000, :2], sizes[:2], metric[:3000], 0, Grubbs())  # compiles
    before = peak()
    found = timed(lambda: int(count_by_population(codes, sizes, metric, record, Grubbs()).sum()), seconds=0)
    return found | {"contexts": 1 << sum(size - 1 for size in sizes), "before_bytes": before}


def lof_best_first(ask: argparse.Namespace) -> Result:
    """A draw by best-first search about each of several records that stand out."""
    return over(highest(ask.records), lazily)


def lof_best_first_any(ask: argparse.Namespace) -> Result:
    """The same about records that are outliers somewhere, mostly in small contexts."""
    return over(outlying(ask.records), lazily)


def lazily(table: RankedTable) -> object:
    return draw_best_first(table, Lof(), Population(), rate=LOSS, top=1, noise=system_noise())


def lof_bfs(ask: argparse.Namespace) -> Result:
    """The paper's breadth-first search, 50 contexts, about each of several records, from a valid context."""
    rate = ocdp.SEARCHES["bfs"].rate(LOSS, utility=Population(), samples=SAMPLES, top=1)
    settings = {"samples": SAMPLES, "rate": rate, "top": 1, "noise": system_noise()}
    tables = outlying(ask.records)
    starts = {id(table): start(table) for table in tables}

    def draw(table: RankedTable) -> object:
        return ocdp.bfs(ocdp.score_contexts(table, Lof(), Population()), start=starts[id(table)], **settings)

    return over(tables, draw)


def tukey_dp(ask: argparse.Namespace) -> Result:
    """A draw by margins from all contexts, as in mode dp, about the record that stands out."""
    register, (codes, metric, record) = synthetic_salaries(), salaries()
    detector, table = with_margin(register)["Tukey"], rank_table(codes, SIZES, metric, record)
    scale, cap = (
        population_scale(table.space.count, register.most, LOSS),
        FULL_SCORE * sufficient_score(table.space.count, LOSS),
    )
    settings = {"scale": scale, "cap": cap, "epsilon": LOSS, "top": 1, "noise": system_noise()}
    return over([table] * (1 if ask.quick else 5), partial(draw_by_margin, detector=detector, **settings))


def outlying(count: int) -> list[RankedTable]:
    """Tables of records, in random order, that LOF finds to be outliers in one of a hundred random contexts."""
    return [table for _, table in islice(likely(synthetic_salaries(), Lof(), seed=1), count)]


def highest(count: int) -> list[RankedTable]:
    """Tables of records, in random order, among the one in a thousand with the highest metric."""
    register = synthetic_salaries()
    top = np.argsort(register.metric)[-(register.n // 1000) :]
    rows = top[pick_rows(len(top), count, seed=1)].tolist()
    return [rank_table(register.codes, register.sizes, register.metric, row) for row in rows]


def start(table: RankedTable) -> int:
    examine = Lof().examine(table)
    return next(index for index in pick_rows(table.space.count, 1 << 16, seed=1).tolist() if examine(index)[0])


def over(tables: list[RankedTable], work: Callable[[RankedTable], object]) -> Result:
    """The median over records, each asked about once; the first once more, to warm up."""
    work(tables[0])
    before, found = peak(), [timed(partial(work, table), seconds=0) for table in tables]
    seconds = [one["seconds"] for one in found]
    return {
        "seconds": median(seconds),
        "cpu": median(one["cpu"] for one in found),
        "range": [min(seconds), max(seconds)],
        "records": len(tables),
        "contexts": tables[0].space.count,
        "before_bytes": before,
        "extrapolated": False,
    }


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


CONTESTANTS: dict[str, Callable[[argparse.Namespace], Result]] = {
    **{f"all_{name}": partial(whole, name) for name in DETECTORS},
    **{f"naive_{name}": partial(naive, name) for name in DETECTORS},
    **{work.__name__: work for work in (grubbs_35, lof_best_first, lof_best_first_any, lof_bfs, tukey_dp)},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contestant", choices=CONTESTANTS)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for a naive loop, or for repeating ours")
    parser.add_argument("--records", type=int, default=30, help="records that searches are asked about")
    parser.add_argument("--quick", action="store_true", help="fewer contexts")
    ask = parser.parse_args()
    found = CONTESTANTS[ask.contestant](ask)
    json.dump(found | {"peak_bytes": peak(), "load": round(os.getloadavg()[0], 1)}, sys.stdout)


if __name__ == "__main__":
    main()
