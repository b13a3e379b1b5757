"""The made-up salaries of `wallflower.synthetic`. As a script: how long the engines take on them.

`python tests/explain/salaries.py 9 8 8`
"""

import os
import sys
import time

import numpy as np

from wallflower.queries.explain import exact
from wallflower.queries.explain.detectors import ClampedGrubbs, Distance, FixedBins, Grubbs, Histogram, Lof, Tukey
from wallflower.queries.explain.detectors.base import MarginDetector
from wallflower.queries.explain.space.tables import rank_table
from wallflower.synthetic import salaries

__all__ = ["salaries"]


def _measure(sizes):
    codes, metric, record = salaries(sizes=sizes)
    low, high, bits = 50_000.0, 400_000.0, sum(sizes) - len(sizes)
    if bits > 24:
        _time("Grubbs", bits, lambda: int(exact.count_by_population(codes, sizes, metric, record, Grubbs()).sum()))
        return
    detectors = [
        Grubbs(), Distance(25, 2000.0), FixedBins.equal(low, high, 200), ClampedGrubbs(low, high, 100_000),
        Tukey(tuple(np.linspace(low, high, 101).tolist())), Histogram(), Lof(),
    ]  # fmt: skip
    table = rank_table(codes, sizes, metric, record)
    for detector in detectors:
        name = type(detector).__name__
        _time(name, bits, lambda it=detector: int(exact.evaluate(codes, sizes, metric, record, it).valid.sum()))
        if isinstance(detector, MarginDetector):
            _time(f"margin: {name}", bits, lambda it=detector: int((exact.margins(table, it)[0] > 0).sum()))


def _time(name, bits, work):
    for _ in range(3):
        start, begun = time.perf_counter(), time.process_time()
        valid = work()
        spent, worked = time.perf_counter() - start, time.process_time() - begun
        print(  # noqa: T201
            f"{name:22} {spent:8.3f} s by the clock, {worked:8.3f} s of work;"
            f" {valid} of 2^{bits} valid; load {os.getloadavg()[0]:.1f}"
        )


if __name__ == "__main__":
    _measure(tuple(map(int, sys.argv[1:])) or (9, 8, 8))
