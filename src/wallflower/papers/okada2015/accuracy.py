"""How far off a released count is on average: every mechanism on every table of the comparison.

What depends on the records is computed once a table; noise is then drawn many times, as a release draws it. Rounding,
clamping to [0, N] and the bias of the extension are part of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np

from wallflower.mechanisms import Additive, calibrate, smooth_additive
from wallflower.neighbours.extension import certify
from wallflower.neighbours.noisy_count import GAP, STEP
from wallflower.neighbours.pairs import build_tree, squared_reach
from wallflower.noise import system_noise
from wallflower.papers.data.tables import Sample, mixture_sample, synthetic1_sample, tumours
from wallflower.papers.methods import laplace_pace, true_bound
from wallflower.privacy import Loss
from wallflower.queries.count.at_radius import OneSidedCount
from wallflower.queries.count.sensitivity import smooth_bound

DELTA: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A table of the comparison, drawn again for each of `seeds` seeds."""

    draw: Callable[[int], Sample]
    seeds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """A row: what was asked, how many outliers there are, and the mean absolute error of each mechanism."""

    name: str
    n: int
    dimension: int
    neighbours: int
    radius: float
    outliers: float
    errors: Mapping[str, float]


CASES: Final = (
    Case(draw=synthetic1_sample, seeds=20),
    Case(draw=tumours, seeds=1),
    Case(draw=lambda seed: mixture_sample(10_000, 7, 0.85, seed), seeds=3),
    Case(draw=lambda seed: mixture_sample(10_000, 30, 1.15, seed), seeds=3),
    Case(draw=lambda seed: mixture_sample(100_000, 2, 0.215, seed), seeds=20),
)
QUICK: Final = tuple(Case(draw=CASES[place].draw, seeds=seeds) for place, seeds in ((0, 10), (1, 1), (2, 1), (4, 1)))


def accuracy_table(repetitions: int, *, epsilon: str = "1", cases: Sequence[Case] = CASES) -> list[Accuracy]:
    """Mean absolute errors at one loss, each over `repetitions` draws a table. Smooth noise has δ = 1e-6."""
    return [_accuracy([case.draw(seed) for seed in range(case.seeds)], repetitions, Loss(epsilon)) for case in cases]


def _accuracy(samples: Sequence[Sample], repetitions: int, loss: Loss) -> Accuracy:
    found = [{name: method(sample, loss, repetitions) for name, method in COLUMNS.items()} for sample in samples]
    first = samples[0]
    return Accuracy(
        name=first.name,
        n=first.n,
        dimension=first.dimension,
        neighbours=first.neighbours,
        radius=first.radius,
        outliers=float(np.mean([sample.outliers for sample in samples])),
        errors={name: float(np.mean([errors[name] for errors in found])) for name in COLUMNS},
    )


def _global(sample: Sample, loss: Loss, repetitions: int) -> float:
    return _error(sample, sample.outliers, calibrate(true_bound(sample), loss, step=Fraction(1)), repetitions)


def _smooth(sample: Sample, loss: Loss, repetitions: int) -> float:
    _, beta = laplace_pace(float(loss.epsilon), DELTA)
    bound = smooth_bound(sample.values, sample.radius, sample.neighbours, beta=beta)
    return _error(sample, sample.outliers, smooth_additive(bound, loss.epsilon, step=STEP), repetitions)


def _extension(slack: int, sample: Sample, loss: Loss, repetitions: int) -> float:
    query = OneSidedCount(neighbours=sample.neighbours, radius=sample.radius, loss=loss, slack=slack)
    tree = build_tree(sample.values, squared_reach(sample.radius, sample.dimension, normalise=True))
    extended = sample.n - certify(tree, sample.neighbours, float(slack), GAP).lower
    return _error(sample, extended, query.noise(sample.n, sample.dimension), repetitions)


def _error(sample: Sample, value: float, noise: Additive, repetitions: int) -> float:
    """The mean distance between the true count and what would be released around `value`."""
    steps = np.array(system_noise().laplaces(noise.scale, repetitions)) + round(Fraction(value) / noise.step)
    answers = np.clip(np.floor(steps * float(noise.step) + 0.5), 0, sample.n)
    return float(np.abs(answers - sample.outliers).mean())


COLUMNS: Final[Mapping[str, Callable[[Sample, Loss, int], float]]] = {
    "global": _global,
    "smooth": _smooth,
    "slack 2": partial(_extension, 2),
    "slack 3": partial(_extension, 3),
}
