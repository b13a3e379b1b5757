"""The outliers of every subspace of one table, counted by one contestant in a process of its own.

`python subspaces.py adult sklearn_counts --budget 60` prints one JSON object; `python subspaces.py available` the names
of the tables that are here. A peer has an equal share of the budget for each subspace: it is asked about random
records, some at a time, until they are all done or the share is spent; then its time is scaled up and it says
`extrapolated`. What it found is compared with what wallflower finds, record by record, after the clock is stopped.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from sklearn.neighbors import KDTree, NearestNeighbors

from cell import chunks, timed
from wallflower.errors import SourceError
from wallflower.neighbours.pairs import Floats, Ints, build_tree, count_neighbours, squared_reach
from wallflower.papers.data.tables import find_file
from wallflower.queries.subspaces.exact import MAX_RECORDS_OF_ALL_PAIRS, scores
from wallflower.queries.subspaces.family import Family, Subspace

# About the mean and the deviation of each of the seven attributes; sex is 1 for men.
ADULT = {
    "age": (38.6, 13.7),
    "fnlwgt": (190_000.0, 106_000.0),
    "education-num": (10.1, 2.57),
    "capital-gain": (1080.0, 7450.0),
    "capital-loss": (87.5, 403.0),
    "hours-per-week": (40.4, 12.4),
    "sex": (0.67, 0.47),
}
PART = 2048  # records asked about between two looks at the clock
HELD = 25_000_000  # neighbours listed at once at most: 200 MB of them

Ask = Callable[[Floats], Ints]
Peer = Callable[[Floats, float, int], Ask]


class Question(NamedTuple):
    """A table, its subspaces, and who is an outlier in them."""

    values: Floats
    family: list[Subspace]
    radius: float
    neighbours: int


def adult() -> Question:
    """All subspaces of the seven attributes, training and test part together."""
    with gzip.open(find_file("adult/adult.csv.gz"), "rt", encoding="utf-8", newline="") as file:
        rows = [
            [float(row[name]) if name != "sex" else float(row[name] == "Male") for name in ADULT]
            for row in csv.DictReader(file)
        ]
    center, scale = np.array(list(ADULT.values())).T
    return Question((np.array(rows) - center) / scale, Family().subspaces(list(ADULT)), 0.35, 3)


def ionosphere() -> Question:
    """All pairs of the 34 attributes; all records, good and bad."""
    with find_file("ionosphere/ionosphere.csv").open(encoding="utf-8", newline="") as file:
        names, *rows = csv.reader(file)
    values = np.array([row[:-1] for row in rows], dtype=np.float64)
    return Question(values, Family(size=2).subspaces(names[:-1]), 0.06, 3)


def count(question: Question) -> dict[str, object]:
    """How many outliers each subspace has."""
    return _ours(question, "count")


def mass(question: Question) -> dict[str, object]:
    """What they weigh: a largest flow for each subspace."""
    return _ours(question, "mass")


def _ours(question: Question, score: str) -> dict[str, object]:
    result = timed(lambda: scores(*question, score=score), seconds=0)
    return result | {"value": float(result["value"].sum()), "queries": len(question.values) * len(question.family)}


def sklearn_lists(table: Floats, reach: float, neighbours: int) -> Ask:
    """NearestNeighbors as it comes: all neighbours listed, the lists measured."""
    index = NearestNeighbors(radius=reach).fit(table)
    return lambda some: np.array(
        [
            len(near) - 1
            for part in chunks(some, max(1, HELD // len(table)))
            for near in index.radius_neighbors(part, return_distance=False)
        ]
    )


def sklearn_counts(table: Floats, reach: float, neighbours: int) -> Ask:
    """KDTree: all neighbours counted, none listed."""
    tree = KDTree(table)
    return lambda some: tree.query_radius(some, reach, count_only=True) - 1


def scipy_nearest(table: Floats, reach: float, neighbours: int) -> Ask:
    """cKDTree: the k-th neighbour within the radius, on all cores; the bound is open, so it is the next number."""
    tree, bound = cKDTree(table), np.nextafter(reach, np.inf)
    return lambda some: (
        np.isfinite(tree.query(some, neighbours + 1, distance_upper_bound=bound, workers=-1)[0]).sum(1) - 1
    )


class Seen(NamedTuple):
    """What a peer found in one subspace: the records it was asked about, and whether they are outliers."""

    rows: Ints
    outliers: np.ndarray


def survey(peer: Peer, question: Question, budget: float, size: int) -> tuple[dict[str, object], list[Seen]]:
    """Ask a peer about every subspace, one after the other."""
    n, share = len(question.values), budget / len(question.family)
    seconds, cpu, seen = 0.0, 0.0, []
    for place, subspace in enumerate(question.family):
        table = question.values[:, subspace]
        order = np.random.default_rng(place).permutation(n)
        reach = question.radius * math.sqrt(len(subspace))
        build = timed(partial(peer, table, reach, question.neighbours), seconds=0)
        parts = list(answers(build["value"], table, order, share, size))
        degrees = np.concatenate([part["value"] for part in parts])
        seen.append(Seen(order[: len(degrees)], degrees < question.neighbours))
        seconds += build["seconds"] + sum(part["seconds"] for part in parts) * n / len(degrees)
        cpu += build["cpu"] + sum(part["cpu"] for part in parts) * n / len(degrees)
    asked = sum(len(one.rows) for one in seen)
    whole = n * len(question.family)
    return {"seconds": seconds, "cpu": cpu, "extrapolated": asked < whole, "queries": asked}, seen


def answers(ask: Ask, table: Floats, order: Ints, share: float, size: int) -> Iterator[dict[str, object]]:
    """Timed answers about `size` records at a time, until the share is spent."""
    start = time.perf_counter()
    for part in chunks(table[order], size):
        yield timed(partial(ask, part), seconds=0)
        if time.perf_counter() - start > share:
            return


def compared(question: Question, seen: list[Seen]) -> dict[str, int]:
    """On how many records, and in how many subspaces asked about in full, the peer and wallflower differ."""
    ours = scores(*question, score="count")
    decisions = [outliers(question, subspace) for subspace in question.family]
    if [int(one.sum()) for one in decisions] != ours.tolist():
        raise SystemExit("the outliers found record by record are not as many as wallflower counts")
    full = [place for place, one in enumerate(seen) if len(one.rows) == len(question.values)]
    return {
        "outliers": sum(int(one.outliers.sum()) for one in seen),
        "differ": sum(int((mine[one.rows] != one.outliers).sum()) for mine, one in zip(decisions, seen, strict=True)),
        "full": len(full),
        "full_differ": sum(int(seen[place].outliers.sum()) != int(ours[place]) for place in full),
    }


def outliers(question: Question, subspace: Subspace) -> np.ndarray:
    """Who is an outlier, by wallflower's own tree and pair test."""
    tree = build_tree(question.values[:, subspace], squared_reach(question.radius, len(subspace), normalise=True))
    found_here = np.empty(tree.n, dtype=np.bool_)
    found_here[tree.order] = count_neighbours(tree, question.neighbours) < question.neighbours
    return found_here


OURS = {work.__name__: work for work in (count, mass)}
PEERS = {work.__name__: work for work in (sklearn_lists, sklearn_counts, scipy_nearest)}
TABLES = {table.__name__: table for table in (adult, ionosphere)}


def warm_up(contestant: str) -> None:
    """Compile, load and start whatever the first call has to."""
    family = [(0,), (0, 1), (1, 2)]
    for n, radius in ((100, 0.05), (MAX_RECORDS_OF_ALL_PAIRS + 1, 0.01)):  # all pairs; trees
        tiny = Question(np.random.default_rng(1).uniform(0, 1, (n, 3)), family, radius, 3)
        if contestant in OURS:
            OURS[contestant](tiny)
        else:
            survey(PEERS[contestant], tiny, math.inf, PART)


def available() -> list[str]:
    """The tables that can be had here; says which cannot, and why."""
    here = []
    for name, table in TABLES.items():
        try:
            table()
        except SourceError as reason:
            print(f"skipped: {reason}", file=sys.stderr)
        else:
            here.append(name)
    return here


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=[*TABLES, "available"])
    parser.add_argument("contestant", choices=[*OURS, *PEERS], nargs="?", default="count")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for all subspaces together")
    parser.add_argument("--part", type=int, default=PART, help="records asked about between two looks at the clock")
    ask = parser.parse_args()
    if ask.table == "available":
        json.dump(available(), sys.stdout)
        return
    question, seen = TABLES[ask.table](), []
    warm_up(ask.contestant)
    before = peak()
    if ask.contestant in OURS:
        result = OURS[ask.contestant](question)
    else:
        result, seen = survey(PEERS[ask.contestant], question, ask.budget, ask.part)
    result |= {"before_bytes": before, "peak_bytes": peak()} | (compared(question, seen) if seen else {})
    facts = {
        "n": len(question.values),
        "columns": question.values.shape[1],
        "subspaces": len(question.family),
        "radius": question.radius,
        "neighbours": question.neighbours,
    }
    json.dump({"contestant": ask.contestant, "question": facts} | result, sys.stdout)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
