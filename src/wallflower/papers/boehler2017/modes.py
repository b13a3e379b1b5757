"""What each way to correct finds in perturbed readings, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from wallflower.noise import system_noise
from wallflower.papers.data.readings import BITS, NEIGHBOURS, RADIUS, STEP, SensorStream, steps
from wallflower.papers.degue2020.detection import Tally
from wallflower.papers.facts import printed_facts
from wallflower.papers.methods import NOT_PRIVATE, CurveLabel
from wallflower.sensors import comparison, perturbation
from wallflower.sensors.correction import GAPS, correct, flag_by_rings, ring_numbers
from wallflower.sensors.detectors import outside_biggest_cluster
from wallflower.sensors.perturbation import diagonal
from wallflower.synthetic import Flags, Ints

FACTS: Final = printed_facts("boehler2017")
EPSILONS: Final = FACTS["epsilon"].numbers  # of each column
NOISES: Final = ("columns", "planar")
LEAK: Final = (
    "the correction server learns d_diff, by how far noise moved each distance, and that has no finite ε: at the "
    "centre it is never negative. Together with the analyst it knows every distance from the centre exactly"
)

LITERAL: Final = CurveLabel(
    key="literal",
    label="paper, gap rule as printed",
    guarantee=NOT_PRIVATE,
    why=f"{LEAK}. The widest gap may be at the bottom, and then all but a few of the correct hits are thrown away",
)
UPPER: Final = CurveLabel(
    key="upper",
    label="paper, gap rule repaired",
    guarantee=NOT_PRIVATE,
    why=f"{LEAK}. The analyst learns d_TP, which is one reading's d_diff",
)
GRID: Final = CurveLabel(
    key="grid",
    label="grid, one comparison",
    guarantee=NOT_PRIVATE,
    why=f"{LEAK}. It learns rings too, and so every distance up to the width of one",
)
ALONE: Final = CurveLabel(key="alone", label="DBSCAN on perturbed readings, no correction", guarantee="metric ε")
EXACT: Final = CurveLabel(
    key="exact", label="wallflower's default, exact", guarantee="metric ε towards the analyst, nothing else"
)
CLEAN: Final = CurveLabel(
    key="clean", label="DBSCAN without noise", guarantee=NOT_PRIVATE, why="it needs every reading"
)
MODES: Final = (EXACT, GRID, UPPER, LITERAL, ALONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the modes that see noise found in one run.

    `hits` is how many outliers DBSCAN presumed rightly, `kept` how many of them each gap rule keeps; `auc` is how often
    a perturbed distance is larger for an outlier than for another reading.
    """

    tallies: Mapping[str, Tally]
    hits: int
    kept: Mapping[str, int]
    auc: float


def tally(flags: Flags, truth: Flags) -> Tally:
    """Accuracy, as the paper has it, is `recall`; its subset size is `alarms`."""
    return Tally(
        seen=len(truth), outliers=int(truth.sum()), flagged=int(flags.sum()), both=int(np.count_nonzero(flags & truth))
    )


def perturb_points(stream: SensorStream, points: Ints, noise: str, epsilon: str) -> Ints:
    """Noise at ε for each column: in every column, or planar for the same sum of them."""
    ranges, count = stream.ranges, len(stream.columns)
    drawn: dict[str, Any] = {"step": STEP, "noise": system_noise()}
    if noise == "columns":
        return perturbation.add_column_noise(points, ranges=ranges, epsilons=[epsilon] * count, **drawn)
    return perturbation.add_planar_noise(points, diameter=diagonal(ranges), epsilon=count * Fraction(epsilon), **drawn)


def presumed_outliers(readings: Ints) -> Flags:
    """The outliers of DBSCAN: all that is outside the biggest cluster."""
    return outside_biggest_cluster(readings * float(STEP), RADIUS, NEIGHBOURS)


def run(stream: SensorStream, noise: str, epsilon: str) -> Run:
    """One draw of noise, and what everyone makes of it."""
    points, centre = stream.points, [0] * len(stream.columns)
    seen = perturb_points(stream, points, noise, epsilon)
    distances, moved = perturbation.distances(seen, centre), perturbation.d_diff(points, seen, centre)
    alone = presumed_outliers(seen)
    found = {gap: correct(distances, moved, np.flatnonzero(alone), _width(stream), gap=gap) for gap in GAPS}
    flags = {gap: mark(stream, each.output) for gap, each in found.items()}
    ring = steps(stream.ring)
    flags |= {"alone": alone, "grid": flag_by_rings(moved, ring_numbers(distances, ring), ring, steps(stream.bound))}
    return Run(
        tallies={mode: tally(each, stream.truth) for mode, each in flags.items()},
        hits=int(stream.truth[alone].sum()),
        kept={gap: int(stream.truth[each.tp].sum()) for gap, each in found.items()},
        auc=auc(distances, stream.truth),
    )


def exact(stream: SensorStream) -> Tally:
    """What two servers find by one-time keys. They compare what was measured: noise plays no part."""
    scores = perturbation.scores(stream.points, [0] * len(stream.columns), stream.unit, BITS)
    shares = zip((0, 1), comparison.deal(scores, BITS), strict=True)
    one, other = (comparison.evaluate(party, keys, threshold(stream)) for party, keys in shares)
    return tally(comparison.open_flags(one, other), stream.truth)


def threshold(stream: SensorStream) -> int:
    """The threshold as a score."""
    return steps(stream.threshold) // stream.unit


def clean(stream: SensorStream) -> Tally:
    """What DBSCAN finds without noise: the paper's ground truth."""
    return tally(presumed_outliers(stream.points), stream.truth)


def auc(distances: Ints, truth: Flags) -> float:
    """How often an outlier is further out than another reading; of equal distances half.

    >>> auc(np.array([1, 5, 5, 9]), np.array([False, False, True, True]))
    0.875
    """
    values, counts = np.unique(distances, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    few, many = int(truth.sum()), int((~truth).sum())
    ranks = middle[np.searchsorted(values, distances[truth])].sum()
    return float((ranks - few * (few + 1) / 2) / max(1, few * many))


def _width(stream: SensorStream) -> float:
    return float(stream.width / STEP)


def mark(stream: SensorStream, places: Ints) -> Flags:
    """Flags at these places."""
    flags = np.zeros(len(stream.truth), dtype=np.bool_)
    flags[places] = True
    return flags
