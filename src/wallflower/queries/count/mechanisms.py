"""The three mechanisms of a count: how much noise each adds, and what it adds it to.

The extension is ours; noise for the global and for the smooth sensitivity is the paper's, done right [Oka15].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Protocol

from wallflower.data import Points, TiledPoints
from wallflower.machine.lazy import Lazy
from wallflower.mechanisms import Additive, calibrate, smooth_additive, smooth_beta
from wallflower.neighbours.limits import rounding_bound
from wallflower.neighbours.noisy_count import GAP, STEP, count_noise, noisy_steps, whole
from wallflower.neighbours.relation import RelatedPoints
from wallflower.noise import Noise
from wallflower.privacy import Loss
from wallflower.queries.count.by_tiles import CountTerms, count_exactly

if TYPE_CHECKING:
    import wallflower.neighbours.pairs as _pairs
    import wallflower.queries.count.lower as _lower
    import wallflower.queries.count.sensitivity as _sensitivity
else:
    _pairs = Lazy("wallflower.neighbours.pairs")
    _lower = Lazy("wallflower.queries.count.lower")
    _sensitivity = Lazy("wallflower.queries.count.sensitivity")


Countable = Points | TiledPoints | RelatedPoints


class NoisyTerms(CountTerms, Protocol):
    """What a mechanism goes by: the terms of a count, and what it may spend."""

    @property
    def loss(self) -> Loss: ...
    @property
    def each(self) -> Loss: ...
    def slack_for(self, n: int, dimension: int | None = None) -> int: ...
    def floor_noise(self, n: int, dimension: int) -> Additive: ...


def _extension_noise(query: NoisyTerms, n: int, dimension: int) -> Additive:
    return count_noise(query.slack_for(n, dimension), query.each)


def _global_noise(query: NoisyTerms, n: int, dimension: int) -> Additive:
    return calibrate(rounding_bound(n, dimension, query.neighbours), query.loss, step=Fraction(1))


def _smooth_noise(query: NoisyTerms, n: int, dimension: int) -> Additive:
    most = max(1, rounding_bound(n, dimension, query.neighbours))
    return smooth_additive(float(most), query.loss.epsilon, step=STEP)


def _extension_answer(query: NoisyTerms, data: Countable, noise: Noise) -> Fraction:
    slack = query.slack_for(data.n, data.dimension)  # (P) (E) (C1) (C2) (N)
    normalise, points = query.normalise, data if isinstance(data, TiledPoints) else data.values
    steps = noisy_steps(points, query.reach, query.neighbours, slack, query.each, noise, normalise=normalise)
    return Fraction(steps)


def noisy_floor(query: NoisyTerms, data: Points | TiledPoints, noise: Noise) -> int:
    """The number below the count that a two-sided interval begins at."""
    assert isinstance(data, Points)
    slack = query.slack_for(data.n, data.dimension)  # (P) (Q1) (Q2) (Q3) (H): one record moves it by at most that
    tree = _pairs.grow_tree(data.values, query.reach, normalise=query.normalise)
    bounds = _lower.certify_lower(tree, query.neighbours, float(slack), GAP)
    steps = math.floor(bounds.lower * STEP.denominator + 0.5)
    return whole(Fraction(steps + query.floor_noise(data.n, data.dimension).draw(noise)), data.n)


def _global_answer(query: NoisyTerms, data: Countable, noise: Noise) -> Fraction:
    assert not isinstance(data, RelatedPoints)
    return (count_exactly(query, data) + _global_noise(query, data.n, data.dimension).draw(noise)) / STEP  # (G)


def _smooth_answer(query: NoisyTerms, data: Countable, noise: Noise) -> Fraction:
    assert isinstance(data, Points)
    count = count_exactly(query, data)
    beta = smooth_beta(query.loss.epsilon, query.loss.delta, least=1, step=STEP)
    bound = _sensitivity.rounded_smooth_bound(
        data.values, query.reach, query.neighbours, beta=beta, normalise=query.normalise
    )  # (U) (L) (S)
    return count / STEP + smooth_additive(max(1.0, bound), query.loss.epsilon, step=STEP).draw(noise)


NOISE: Final[Mapping[str, Callable[[NoisyTerms, int, int], Additive]]] = {
    "extension": _extension_noise,
    "global": _global_noise,
    "smooth": _smooth_noise,
}
ANSWERS: Final[Mapping[str, Callable[[NoisyTerms, Countable, Noise], Fraction]]] = {
    "extension": _extension_answer,
    "global": _global_answer,
    "smooth": _smooth_answer,
}
