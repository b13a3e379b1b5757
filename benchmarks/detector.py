"""Fit a detector and score the same records, beside PyOD's without privacy: CPU and wall seconds, and peak memory.

`python detector.py available` prints who can be measured here; `python detector.py HBOS 1000000 20` one JSON object.
Each is a process of its own, which has compiled its loops before the clock starts. Ours is the whole of
`Detector.answer`, spreads, counts, noise and threshold, and then `decision_function` on the array.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from wallflower.data import Points
from wallflower.noise import system_noise
from wallflower.privacy import Loss
from wallflower.queries.detector import Detector
from wallflower.queries.detector.model import Model
from wallflower.synthetic import mixture

OURS = "wallflower"
PEERS = ("IForest", "HBOS")
SEVERAL = 3  # runs; the fastest counts, as whatever else the machine does only adds to it
WARM = 40_000  # records that loops are compiled on

Scored = Callable[[Any], Any]


def ours(rows: Any) -> Scored:
    query = Detector(loss=Loss("1"), contamination=Fraction(1, 50))
    return Model.of(query.answer(Points.from_array(rows, name="rows"), system_noise())).decision_function


def peer(name: str) -> Callable[[Any], Scored]:
    return lambda rows: getattr(import_module(f"pyod.models.{name.lower()}"), name)().fit(rows).decision_function


def measure(name: str, n: int, dimension: int) -> dict[str, Any]:
    fit = ours if name == OURS else peer(name)
    rows = np.random.default_rng(1).permutation(mixture(n, dimension, seed=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(rows[:WARM])(rows[:WARM])
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        fits, scores = [], []
        for _ in range(SEVERAL):
            score, took = timed(lambda: fit(rows))
            fits.append(took)
            scores.append(timed(lambda score=score: score(rows))[1])
    return {
        "name": name,
        "n": n,
        "dimension": dimension,
        "fit": min(fits),
        "score": min(scores),
        "before": before * 1024,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def timed(work: Callable[[], Any]) -> tuple[Any, tuple[float, float]]:
    """What the work gives, and the CPU and wall seconds that it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    found = work()
    return found, (round(time.process_time() - cpu, 4), round(time.perf_counter() - wall, 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("n", type=int, nargs="?", default=1_000_000)
    parser.add_argument("dimension", type=int, nargs="?", default=20)
    given = parser.parse_args()
    here = [OURS, *(PEERS if find_spec("pyod") else ())]
    print(json.dumps(here if given.name == "available" else measure(given.name, given.n, given.dimension)))


if __name__ == "__main__":
    main()
